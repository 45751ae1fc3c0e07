/* safer report */
#define _GNU_SOURCE
#include "cli.h"

#include <stdlib.h>
#include <sys/stat.h>

static void print_written(const char *output, char **runs, const safer_summary *summaries, size_t count)
{
    struct stat info;
    uint64_t bytes = stat(output, &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    cli_progress_clear();
    if (!cli_settings()->json) {
        printf("wrote %s (%s bytes): %zu run%s\n", output, cli_count(bytes), count, count == 1 ? "" : "s");
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:f}", "run", runs[i], "examples", (json_int_t)summaries[i].texts,
                            "certified_accuracy",
                            summaries[i].texts ? (double)summaries[i].certified / (double)summaries[i].texts : 0.0));
    cli_print_json(json_pack("{s:s, s:I, s:o}", "output", output, "bytes", (json_int_t)bytes, "runs", list));
}

int cli_report(int argc, char **argv)
{
    static const cli_verb verb = {
        "report",
        "RUN.jsonl... [--data D --lexicon L] -o report.html",
        "Writes one HTML page about one or more runs of certify: accuracies with intervals, certified\n"
        "accuracy by radius, plots, and a table of all texts. With the data it shows the texts, with\n"
        "the lexicon also how far each word can be moved. The page needs no network and no other file.",
        "  safer report run.jsonl -o report.html\n"
        "  safer report ngram.jsonl cnn.jsonl --data test.tsv --lexicon imdb.lex -o report.html --svg plots --csv tables\n",
        1,
        SIZE_MAX};
    const char *output = NULL;
    uint64_t texts = 25000, seed = 1;
    cli_list lexicon_paths = {0}, attacks = {0};
    cli_data d = cli_data_default();
    safer_report_options o = safer_report_options_default();
    const cli_option options[] = {
        {"output", CLI_STRING, &output, "FILE", "where to write the page (also -o FILE)"},
        CLI_DATA_OPTIONS(d),
        {"seed", CLI_UINT, &seed, "N", "for --sample random:N (default 1)"},
        {"lexicon", CLI_LIST, &lexicon_paths, "FILE",
         "the lexicon of a run, to show words; may be given several times"},
        {"attack", CLI_LIST, &attacks, "FILE",
         "records of an attack on a run's model and data; may be given several times"},
        {"texts", CLI_UINT, &texts, "N", "show the words of the first N texts (default 25000)"},
        {"svg", CLI_STRING, &o.svg, "DIR", "also write the plots as SVG files"},
        {"csv", CLI_STRING, &o.csv, "DIR", "also write runs.csv, radii.csv and texts.csv"},
        {0},
    };
    size_t count = cli_parse(argc, argv, &verb, options);
    if (!output) cli_misuse(&verb, "-o FILE is needed: where to write the page");
    if (lexicon_paths.count && !d.path)
        cli_misuse(&verb, "--lexicon needs --data DATA: words are shown in their texts");
    if (attacks.count && !d.path) cli_misuse(&verb, "--attack needs --data DATA: attacks are shown in the texts");

    safer_error error = {0};
    int code = CLI_DONE;
    safer_summary *summaries = calloc(count, sizeof *summaries);
    safer_lexicon **lexicons = calloc(lexicon_paths.count + 1, sizeof *lexicons);
    if (!summaries || !lexicons) abort();
    for (size_t i = 0; i < lexicon_paths.count; i++) lexicons[i] = cli_lexicon_open(lexicon_paths.items[i]);
    safer_data *data = d.path ? cli_data_load(&d, seed) : NULL;
    o.data = data;
    o.lexicons = (const safer_lexicon *const *)lexicons;
    o.lexicon_count = lexicon_paths.count;
    o.attacks = attacks.items;
    o.attack_count = attacks.count;
    o.texts = (size_t)texts;
    o.progress = *cli_progress();
    if (safer_report(summaries, output, (const char *const *)argv, count, &o, &error) != SAFER_OK)
        code = cli_fail(&error);
    else
        print_written(output, argv, summaries, count);
    for (size_t i = 0; i < lexicon_paths.count; i++) safer_lexicon_free(lexicons[i]);
    safer_data_free(data);
    free(lexicon_paths.items);
    free(attacks.items);
    free(lexicons);
    free(summaries);
    return code;
}
