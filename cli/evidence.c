/* safer evidence */
#include "data_options.h"
#include "gates.h"
#include "model_options.h"
#include "verbs.h"

#include <math.h>
#include <stdlib.h>

typedef struct request {
    const char *output, *lexicon, *baseline, *card;
    uint64_t seed;
    cli_gates gates;
    cli_model_flags model;
    cli_data data;
} request;

static void list(cli_options *options, void *into)
{
    request *r = into;
    *r = (request){.seed = 1, .gates = cli_gates_default(), .model = cli_model_default(), .data = cli_data_default()};
    cli_add_heading(options, "What");
    cli_add_output(options, "output", &r->output, "FOLDER", "where to write the files (also -o FOLDER)");
    cli_add_path(options, "baseline", &r->baseline, "RUN", "list the texts that held in this run and do not any more");
    cli_add_path(options, "model-card", &r->card, "FILE",
                 "take name, version, license, tags and link from it: Markdown or JSON");
    cli_add_heading(options, "Requirements");
    cli_gates_options(options, &r->gates);
    cli_add_heading(options, "To check the run again");
    cli_share_labels(&r->model, &r->data);
    cli_model_options(options, &r->model);
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "the lexicon of the run");
    cli_data_options(options, &r->data);
    cli_add_uint(options, "seed", &r->seed, "N", "for --sample random:N (default {default})");
    cli_remote_options(options, &r->model);
    cli_model_name_option(options, &r->model);
}

static json_t *files_json(void)
{
    json_t *files = json_array();
    for (size_t i = 0; safer_evidence_file(i); i++) cli_append(files, json_string(safer_evidence_file(i)));
    return files;
}

static void print_written(const request *r, const cli_verdict *verdict)
{
    cli_progress_clear();
    if (cli_settings()->json) {
        json_t *result = json_pack("{s:s, s:o}", "output", r->output, "files", files_json());
        cli_verdict_add_json(result, verdict);
        cli_print_json(result);
        return;
    }
    printf("wrote %s:", r->output);
    for (size_t i = 0; safer_evidence_file(i); i++) printf("%s %s", i ? "," : "", safer_evidence_file(i));
    printf("\n");
    cli_verdict_print(verdict);
}

static safer_status write_evidence(cli_verdict *verdict, const request *r, const char *run,
                                   const safer_evidence_options *options, safer_error *error)
{
    const char *before = r->gates.not_worse_than ? r->gates.not_worse_than : r->baseline;
    cli_verdict_reserve(verdict, &r->gates);
    safer_status status = safer_evidence(verdict->gates, r->output, run, options, error);
    if (status == SAFER_OK && before) status = safer_run_read(&verdict->run, run, error);
    if (status == SAFER_OK && before) status = safer_run_read(&verdict->baseline, before, error);
    return status;
}

static void check_request(request *r)
{
    const cli_verb *verb = &cli_evidence;
    if (!r->output) cli_misuse(verb, "-o FOLDER is needed: where to write the files");
    if (r->baseline && r->gates.not_worse_than)
        cli_misuse(verb, "--baseline and --not-worse-than: one of them; the second requires more");
    if ((r->lexicon != NULL) != (r->data.path != NULL)) cli_misuse(verb, "--lexicon and --data: both or none");
    if (r->model.path && !r->lexicon) cli_misuse(verb, "--model needs --lexicon and --data");
    cli_gates_finish(&r->gates, verb);
}

static int run(void *from, char **arguments, size_t count)
{
    request *r = from;
    safer_error error = {0};
    cli_verdict verdict = {0};
    int code;
    (void)count;
    check_request(r);
    safer_lexicon *lexicon = r->lexicon ? cli_lexicon_open(r->lexicon) : NULL;
    safer_data *data = r->data.path ? cli_data_open(&r->data, r->seed) : NULL;
    safer_model *model = r->model.path ? cli_model_open(&r->model, &cli_evidence, data) : NULL;
    safer_evidence_options options = safer_evidence_options_default();
    options.model = model;
    options.lexicon = lexicon;
    options.data = data;
    if (!isnan(r->gates.require)) options.require = r->gates.require;
    options.recalls = r->gates.recalls;
    options.recall_count = r->gates.recall_words.count;
    options.baseline = r->baseline;
    options.not_worse_than = r->gates.not_worse_than;
    options.model_card = r->card;
    options.threads = cli_settings()->threads;
    options.progress = *cli_progress();
    if (write_evidence(&verdict, r, arguments[0], &options, &error) != SAFER_OK) {
        code = cli_fail(&error);
    } else {
        print_written(r, &verdict);
        code = cli_verdict_code(&verdict);
    }
    cli_verdict_free(&verdict);
    cli_gates_free(&r->gates);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    return code;
}

const cli_verb cli_evidence = {
    .name = "evidence",
    .brief = "what other programs read about a run: CycloneDX, in-toto, SARIF, JUnit, Markdown",
    .usage = "RUN.jsonl [--baseline BASE.jsonl] [--require ACC] [options] -o FOLDER",
    .summary = "Checks a run of certify and writes five files about it: bom.cdx.json (CycloneDX 1.6),\n"
               "statement.intoto.json (in-toto, to be signed), results.sarif (SARIF 2.1.0), junit.xml and\n"
               "summary.md. Requirements that are not met, and certificates lost against a baseline, stand in\n"
               "all of them; the files are written in any case.",
    .examples = "  safer evidence run.jsonl --require 0.8 -o evidence\n"
                "  safer evidence run.jsonl --not-worse-than main.jsonl --require-recall toxic=0.85 \\\n"
                "      --model-card README.md -o evidence\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
