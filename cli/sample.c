/* safer sample */
#include "certify_options.h"
#include "data_options.h"
#include "verbs.h"

#include <string.h>

typedef struct printing {
    const char *id;
    json_t *rows; /* with --json */
} printing;

static int print_draw(void *context, uint64_t index, const char *text, size_t length)
{
    printing *p = context;
    if (p->rows) {
        cli_append(p->rows,
                   json_pack("{s:s, s:I, s:s%}", "id", p->id, "sample", (json_int_t)index, "text", text, length));
        return 0;
    }
    printf("%s%s\t%llu%s\t", cli_dim(), p->id, (unsigned long long)index, cli_plain());
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n')
            fputs("\\n", stdout);
        else if (text[i] == '\t')
            fputs("\\t", stdout);
        else if (text[i] == '\r')
            fputs("\\r", stdout);
        else if (text[i] == '\\')
            fputs("\\\\", stdout);
        else
            putchar(text[i]);
    }
    putchar('\n');
    return ferror(stdout);
}

typedef struct request {
    const char *lexicon, *stage, *deletion;
    uint64_t seed, first, count, groups;
    cli_data data;
} request;

static const char *stages(size_t number) { return safer_stage_name((safer_stage)number); }

static void list(cli_options *options, void *into)
{
    request *r = into;
    *r = (request){.stage = safer_stage_name(SAFER_STAGE_CERTIFICATION),
                   .deletion = "0",
                   .seed = 1,
                   .count = 10,
                   .data = cli_data_default()};
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "synonyms and kernel, from safer lexicon");
    cli_data_options(options, &r->data);
    cli_add_uint(options, "count", &r->count, "N", "draws of each text (default {default})");
    cli_add_uint(options, "first", &r->first, "N", "the number of the first one (default {default})");
    cli_add_choice(options, "stage", &r->stage, stages, "NAME",
                   "certification, or selection: those that choose the prediction (default {default})");
    cli_add_string(options, "delete", &r->deletion, "P",
                   "delete every word, number and mark with this chance, or by length: " CLI_DELETE_HELP);
    cli_add_uint(options, "groups", &r->groups, "G", "the texts of G groups of words, numbers and marks, from 0");
    cli_add_uint(options, "seed", &r->seed, "N", "of the random draws (default {default})");
}

static int run(void *from, char **arguments, size_t texts)
{
    request *r = from;
    safer_stage stage;
    safer_error error = {0};
    int code = CLI_DONE;
    if (!r->lexicon) cli_misuse(&cli_sample, "--lexicon FILE is needed");
    if (!texts == !r->data.path) cli_misuse(&cli_sample, "texts are needed: as arguments, or --data DATA");
    const safer_deletion deletion = cli_deletion(r->deletion, r->groups, &cli_sample);
    if (safer_stage_parse(&stage, r->stage, &error) != SAFER_OK) return cli_fail(&error);
    safer_lexicon *lexicon = cli_lexicon_open(r->lexicon);
    safer_data *data = r->data.path ? cli_data_load(&r->data, r->seed) : NULL;
    printing p = {.rows = cli_settings()->json ? json_array() : NULL};
    for (size_t i = 0; code == CLI_DONE && i < (data ? safer_data_size(data) : texts); i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i + 1);
        safer_row row = data ? safer_data_row(data, i)
                             : (safer_row){.id = number, .text = arguments[i], .text_length = strlen(arguments[i])};
        p.id = row.id;
        if (safer_draw_deleting(lexicon, row.text, row.text_length, deletion, stage, r->seed, r->first, r->count,
                                print_draw, &p, &error) != SAFER_OK)
            code = error.status == SAFER_CALLBACK ? CLI_SYSTEM : cli_fail(&error);
    }
    if (p.rows && code == CLI_DONE)
        cli_print_json(p.rows);
    else
        json_decref(p.rows);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    return code;
}

const cli_verb cli_sample = {
    .name = "sample",
    .brief = "the draws of a text, as certify asks about them",
    .usage = "--lexicon L [--data D | TEXT...]",
    .summary = "Prints what the smoothed classifier asks its model about: draws of each text, in order,\n"
               "the very ones that certify uses with the same seed.",
    .examples = "  safer sample --lexicon imdb.lex \"A fine film.\"\n"
                "  safer sample --lexicon imdb.lex --data test.tsv --limit 3 --count 100 --stage selection\n",
    .max_arguments = SIZE_MAX,
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
