/* The options of a data set, and opening what a verb works on. */
#include "data_options.h"

#include <stdlib.h>
#include <string.h>

static const char *formats(size_t number) /* without "auto", which is what happens when none is given */
{
    return safer_format_name((safer_format)(number + 1));
}

cli_data cli_data_default(void) { return (cli_data){.options = safer_data_options_default()}; }

void cli_column_options(cli_options *options, safer_data_options *o)
{
    cli_add_string(options, "text-column", &o->text_column, "COLUMN",
                   "the text's column, by name or number from 1 on (default: by its usual names)");
    cli_add_string(options, "label-column", &o->label_column, "COLUMN", "the label's");
    cli_add_string(options, "id-column", &o->id_column, "COLUMN", "the id's");
    cli_add_string(options, "title-column", &o->title_column, "COLUMN", "the title's, which is put before the text");
}

void cli_data_options(cli_options *options, cli_data *d)
{
    cli_add_path(options, "data", &d->path, "DATA",
                 "the texts: TSV, CSV, JSONL, fastText or a folder, also compressed");
    cli_add_choice(options, "format", &d->format, formats, "NAME", "{choices} (default: told by the file)");
    cli_column_options(options, &d->options);
    cli_add_string(options, "labels", &d->labels, d->labels_shared ? "LIST" : "MAP",
                   d->labels_shared
                       ? "0=neg,1=pos: other names for the data's labels; neg,pos: the classes of a remote "
                         "model (default: the data's)"
                       : "other names for labels: 0=neg,1=pos");
    cli_add_string(options, "sample", &d->options.sample, "HOW", "every:N of each class, or random:N");
    cli_add_uint(options, "limit", &d->limit, "N", "only the first N texts");
    cli_add_flag(options, "repair", &d->options.repair, "replace invalid UTF-8 instead of refusing it");
    cli_add_flag(options, "strip-br", &d->options.strip_breaks, "turn <br /> into a space, as folders always do");
}

safer_status cli_data_try(safer_data **out, cli_data *d, uint64_t seed, safer_error *error)
{
    safer_status status = d->format ? safer_format_parse(&d->options.format, d->format, error) : SAFER_OK;
    d->options.limit = d->limit;
    d->options.labels = d->labels_shared && d->labels && !strchr(d->labels, '=') ? NULL : d->labels;
    d->options.seed = seed;
    if (status == SAFER_OK) status = safer_data_load(out, d->path, &d->options, error);
    if (status == SAFER_OK && safer_data_note(*out)) cli_say("%s: %s", d->path, safer_data_note(*out));
    return status;
}

safer_data *cli_data_load(cli_data *d, uint64_t seed)
{
    safer_error error = {0};
    safer_data *data = NULL;
    if (cli_data_try(&data, d, seed, &error) != SAFER_OK) exit(cli_fail(&error));
    return data;
}

safer_data *cli_data_open(cli_data *d, uint64_t seed)
{
    d->options.on_disk = 1;
    return cli_data_load(d, seed);
}

cli_data cli_data_beside(const cli_data *d, const char *path, const safer_data *labels_of)
{
    cli_data beside = cli_data_default();
    beside.path = path;
    beside.options.repair = d->options.repair;
    beside.options.strip_breaks = d->options.strip_breaks;
    beside.options.text_column = d->options.text_column;
    beside.options.label_column = d->options.label_column;
    beside.options.id_column = d->options.id_column;
    beside.options.title_column = d->options.title_column;
    beside.labels = d->labels;
    beside.labels_shared = d->labels_shared;
    beside.options.labels_of = labels_of;
    return beside;
}

safer_lexicon *cli_lexicon_open(const char *path)
{
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    if (safer_lexicon_open(&lexicon, path, &error) != SAFER_OK) exit(cli_fail(&error));
    return lexicon;
}

safer_lexicon_info cli_lexicon_info(const safer_lexicon *lexicon)
{
    const safer_lexicon_info info = safer_lexicon_describe(lexicon);
    if (info.pairs && !info.components) cli_no_memory(); /* words that are pairs are components */
    return info;
}

enum { SURVEYED = 500 }; /* texts that are looked at: enough for a share of words */

/* Some of the texts, which may be on the disk, evenly spread; NULL: one cannot be read, as who reads all will say. */
static safer_data *some_of(const safer_data *data)
{
    const size_t all = safer_data_size(data), count = all < SURVEYED ? all : SURVEYED;
    char **texts = calloc(count + 1, sizeof *texts);
    size_t *lengths = calloc(count + 1, sizeof *lengths);
    safer_data *some = NULL;
    safer_reader *reader = NULL;
    safer_row row;
    size_t i;
    if (!texts || !lengths) cli_no_memory();
    for (i = 0; i < count && safer_data_read(&row, &reader, data, all / count * i, NULL) == SAFER_OK; i++) {
        texts[i] = malloc(row.text_length + 1);
        if (!texts[i]) cli_no_memory();
        memcpy(texts[i], row.text, row.text_length + 1);
        lengths[i] = row.text_length;
    }
    if (i == count &&
        safer_data_from_texts(&some, (const char *const *)texts, lengths, NULL, NULL, count, NULL) != SAFER_OK)
        some = NULL;
    for (i = 0; i < count; i++) free(texts[i]);
    free(texts);
    free(lengths);
    safer_reader_free(reader);
    return some;
}

const char *cli_fit_say(const safer_lexicon *lexicon, const safer_data *data, int results)
{
    static char caution[300];
    safer_survey survey;
    int found = 0;
    *caution = '\0';
    if (!lexicon || !data) return caution;
    safer_data *some = some_of(data);
    if (some && safer_lexicon_survey(&survey, lexicon, some, 1, NULL, NULL) == SAFER_OK)
        found = safer_survey_caution(&survey, lexicon, caution, sizeof caution) > results;
    safer_data_free(some);
    if (!found) return "";
    cli_say("caution: %s", caution);
    return caution;
}
