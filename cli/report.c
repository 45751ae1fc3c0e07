/* safer report */
#define _GNU_SOURCE
#include "data_options.h"
#include "results.h"
#include "verbs.h"

#include <stdlib.h>
#include <sys/stat.h>

static void print_written(const char *output, char **runs, const safer_summary *summaries, size_t count)
{
    struct stat info;
    uint64_t bytes = stat(output, &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    cli_progress_clear();
    if (!cli_settings()->json) {
        printf("wrote %s (%s): %s\n", output, cli_some(bytes, "byte", "bytes"), cli_some(count, "run", "runs"));
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *entry = cli_headline_json(&summaries[i]);
        cli_extend(entry, json_pack("{s:s, s:I, s:I}", "run", runs[i], "texts", (json_int_t)summaries[i].texts,
                                    "examples", (json_int_t)summaries[i].texts));
        cli_append(list, entry);
    }
    cli_print_json(json_pack("{s:s, s:I, s:o}", "output", output, "bytes", (json_int_t)bytes, "runs", list));
}

typedef struct request {
    const char *output;
    uint64_t texts, seed;
    cli_list lexicons, attacks;
    cli_data data;
    safer_report_options options;
} request;

static void list(cli_options *options, void *into)
{
    request *r = into;
    *r = (request){.seed = 1, .data = cli_data_default(), .options = safer_report_options_default()};
    r->texts = r->options.texts;
    cli_add_output(options, "output", &r->output, "FILE", "where to write the page (also -o FILE)");
    cli_data_options(options, &r->data);
    cli_add_uint(options, "seed", &r->seed, "N", "for --sample random:N (default {default})");
    cli_add_list(options, "lexicon", &r->lexicons, "FILE",
                 "the lexicon of a run, to show words; may be given several times");
    cli_add_list(options, "attack", &r->attacks, "FILE",
                 "records of an attack on a run's model and data; may be given several times");
    cli_add_uint(options, "texts", &r->texts, "N", "show the words of the first N texts (default {default})");
    cli_add_string(options, "title", &r->options.title, "TEXT", "the page's title");
    cli_add_path(options, "notes", &r->options.notes, "FILE", "plain text to show before the figures");
    cli_add_output(options, "svg", &r->options.svg, "FOLDER", "also write the plots as SVG files");
    cli_add_output(options, "csv", &r->options.csv, "FOLDER", "also write the tables as CSV files");
}

static int run(void *from, char **runs, size_t count)
{
    request *r = from;
    safer_report_options *o = &r->options;
    if (!r->output) cli_misuse(&cli_report, "-o FILE is needed: where to write the page");
    if (r->lexicons.count && !r->data.path)
        cli_misuse(&cli_report, "--lexicon needs --data DATA: words are shown in their texts");
    if (r->attacks.count && !r->data.path)
        cli_misuse(&cli_report, "--attack needs --data DATA: attacks are shown in the texts");
    safer_error error = {0};
    int code = CLI_DONE;
    safer_summary *summaries = calloc(count, sizeof *summaries);
    safer_lexicon **lexicons = calloc(r->lexicons.count + 1, sizeof *lexicons);
    if (!summaries || !lexicons) cli_no_memory();
    for (size_t i = 0; i < r->lexicons.count; i++) lexicons[i] = cli_lexicon_open(r->lexicons.items[i]);
    safer_data *data = r->data.path ? cli_data_open(&r->data, r->seed) : NULL;
    o->data = data;
    o->lexicons = (const safer_lexicon *const *)lexicons;
    o->lexicon_count = r->lexicons.count;
    o->attacks = r->attacks.items;
    o->attack_count = r->attacks.count;
    o->texts = (size_t)r->texts;
    o->progress = *cli_progress();
    if (safer_report(summaries, r->output, (const char *const *)runs, count, o, &error) != SAFER_OK)
        code = cli_fail(&error);
    else
        print_written(r->output, runs, summaries, count);
    for (size_t i = 0; i < r->lexicons.count; i++) safer_lexicon_free(lexicons[i]);
    safer_data_free(data);
    free(r->lexicons.items);
    free(r->attacks.items);
    free(lexicons);
    for (size_t i = 0; i < count; i++) safer_summary_free(&summaries[i]);
    free(summaries);
    return code;
}

const cli_verb cli_report = {
    .name = "report",
    .brief = "one page about one or more runs: figures, plots, every text",
    .usage = "RUN.jsonl... [--data D --lexicon L] -o report.html",
    .summary = "Writes one HTML page about one or more runs of certify: accuracies with intervals, certified\n"
               "accuracy by radius, plots, and a table of all texts. With the data it shows the texts, with\n"
               "the lexicon also how far each word can be moved. The page needs no network and no other file.",
    .examples = "  safer report run.jsonl -o report.html\n"
                "  safer report ngram.jsonl cnn.jsonl --data test.tsv --lexicon imdb.lex -o report.html \\\n"
                "      --svg plots --csv tables\n",
    .min_arguments = 1,
    .max_arguments = SIZE_MAX,
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
