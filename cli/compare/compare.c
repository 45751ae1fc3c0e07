/* safer compare: defences x models x data sets from one file, and how they differ. */
#include "compare/compare.h"
#include "verbs.h"

#include <stdlib.h>

typedef struct request {
    const char *output, *markdown, *csv;
    cli_crew_flags crew;
} request;

static void list(cli_options *options, void *into)
{
    request *r = into;
    cli_add_output(options, "output", &r->output, "FOLDER", "for lexicons, models and records (also -o FOLDER)");
    cli_add_output(options, "markdown", &r->markdown, "FILE", "also write the tables as Markdown");
    cli_add_output(options, "csv", &r->csv, "FOLDER", "also write cells.csv and pairs.csv");
    cli_crew_options(options, &r->crew);
    r->crew.again = "the same command resumes from here";
}

static safer_status give_results(const request *r, const cmp_config *config, safer_error *error)
{
    cmp_pairs pairs = {0};
    safer_status status = cmp_pairs_make(&pairs, config, error);
    cli_progress_clear();
    if (status == SAFER_OK && cli_settings()->json)
        cli_print_json(cmp_json(config, &pairs, r->output));
    else if (status == SAFER_OK)
        cmp_print(config, &pairs);
    if (status == SAFER_OK && r->markdown) status = cmp_write_markdown(r->markdown, config, &pairs, error);
    if (status == SAFER_OK && r->csv) status = cmp_write_csv(r->csv, config, &pairs, error);
    free(pairs.items);
    return status;
}

static int run(void *from, char **arguments, size_t count)
{
    const request *r = from;
    safer_error error = {0};
    cmp_config config;
    cmp_folder folder = {.lock = -1};
    int code = CLI_DONE;
    (void)count;
    safer_crew *crew = cli_crew_join(&r->crew, &cli_compare);
    if (!r->output) cli_misuse(&cli_compare, "-o FOLDER is needed: where models and records go");
    safer_status status = cmp_config_read(&config, arguments[0], &error);
    if (status == SAFER_OK && cli_crew_helps()) {
        code = cmp_help(&config, crew);
        cmp_config_free(&config);
        return code;
    }
    if (status == SAFER_OK) status = cmp_folder_open(&folder, r->output, &error);
    if (status == SAFER_OK) code = cmp_study_run(&config, &folder, 0, crew);
    const int whole = !crew || safer_crew_check(crew, 0, NULL) == SAFER_OK;
    if (status == SAFER_OK && whole && code != CLI_INTERRUPTED) status = give_results(r, &config, &error);
    if (status != SAFER_OK) code = cli_fail(&error);
    cmp_folder_close(&folder);
    cmp_config_free(&config);
    return code;
}

const cli_verb cli_compare = {
    .name = "compare",
    .brief = "defences, models and data from one file: tables and tests",
    .usage = "CONFIG.json -o FOLDER [--markdown FILE] [--csv FOLDER]",
    .summary = "Trains, certifies and attacks every combination of defence, model and data that a small JSON\n"
               "file asks for, and prints their accuracies with intervals and McNemar's test for every two.\n"
               "Lexicons, models and records stay in FOLDER; the same command again does only what is missing.\n"
               "With --mpi the texts of every certificate and attack are shared; FOLDER must be a common one.",
    .examples = "  safer compare compare.json -o out\n"
                "  safer compare compare.json -o out --markdown table.md --csv tables\n"
                "  safer compare compare.json -o out --json > results.json\n"
                "  mpirun -n 4 safer compare compare.json -o out --mpi\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
