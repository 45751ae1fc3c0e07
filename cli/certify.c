/* safer certify | verify */
#include "certify_options.h"
#include "data_options.h"
#include "model_options.h"
#include "results.h"
#include "verbs.h"

#include <math.h>

/* ----------------------------------------------------------------- certify */

typedef struct request {
    const char *lexicon, *output;
    int resume;
    double require; /* NaN: nothing */
    cli_model_flags model;
    cli_data data;
    cli_certify_flags certify;
} request;

static void list_certify(cli_options *options, void *into)
{
    request *r = into;
    *r = (request){.require = (double)NAN,
                   .model = cli_model_default(),
                   .data = cli_data_default(),
                   .certify = cli_certify_default()};
    cli_add_heading(options, "What");
    cli_model_options(options, &r->model);
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "synonyms and kernel, from safer lexicon");
    cli_data_options(options, &r->data);
    cli_add_heading(options, "Certificate");
    cli_certify_options(options, &r->certify, CLI_SEED_HELP);
    cli_add_flag(options, "family-wise", &r->certify.options.family_wise,
                 "delta covers all texts together: each gets delta/N");
    cli_add_flag(options, "unlabelled", &r->certify.options.unlabelled, "certify the prediction, not the label");
    cli_add_heading(options, "Results");
    cli_add_output(options, "output", &r->output, "FILE", "write one record per text, JSON Lines (also -o FILE)");
    cli_add_flag(options, "resume", &r->resume, "continue FILE after its last whole record");
    cli_add_real(options, "require", &r->require, "ACC",
                 "exit 1 when less than ACC (0 to 1) is certified and answered");
    cli_remote_options(options, &r->model);
}

static void check_request(request *r)
{
    const cli_verb *verb = &cli_certify;
    if (!r->model.path) cli_misuse(verb, "--model MODEL is needed");
    if (!r->lexicon) cli_misuse(verb, "--lexicon FILE is needed");
    if (!r->data.path) cli_misuse(verb, "--data DATA is needed");
    if (r->resume && !r->output) cli_misuse(verb, "--resume needs -o FILE");
    if (r->require < 0 || r->require > 1) cli_misuse(verb, "--require %g: a share from 0 to 1", r->require);
    cli_certify_finish(&r->certify, verb);
}

static void print_results(const request *r, const safer_model *model, const safer_summary *summary)
{
    cli_progress_clear();
    if (cli_settings()->json) {
        json_t *result = cli_summary_json(summary, r->certify.options.seed), *traffic = cli_traffic_json(model);
        if (traffic) json_object_set_new(result, "traffic", traffic);
        cli_print_json(result);
    } else {
        cli_summary_print(summary, &r->certify.options);
        cli_traffic_print(model, CLI_RESULT_WIDTH);
    }
}

/* Whether the headline is what --require asks for, and worth something; says why not. */
static int is_met(double require, const safer_summary *summary)
{
    const safer_figure f = safer_summary_headline(summary);
    const double share = f.whole ? (double)f.part / (double)f.whole : 0.0;
    char caution[300];
    if (isnan(require)) return 1;
    if (safer_summary_caution(summary, caution, sizeof caution)) {
        cli_complain("--require %s: %s", cli_real(require), caution);
        return 0;
    }
    if (share >= require) return 1;
    cli_complain("%s: %s%% of %s texts, below the required %s", f.name, cli_percent(f.part, f.whole),
                 cli_count(f.whole), cli_real(require));
    return 0;
}

static int run_certify(void *from, char **arguments, size_t count)
{
    request *r = from;
    (void)arguments, (void)count;
    check_request(r);
    safer_error error = {0};
    safer_summary summary;
    int code = CLI_DONE;
    safer_lexicon *lexicon = cli_lexicon_open(r->lexicon);
    safer_data *data = cli_data_load(&r->data, r->certify.options.seed);
    safer_model *model = cli_model_open(&r->model, &cli_certify, data);
    cli_note_training(model, lexicon);
    if (safer_certify(&summary, r->output, r->resume, model, lexicon, data, &r->certify.options, &error) != SAFER_OK) {
        code = cli_fail(&error);
        if (code == CLI_INTERRUPTED && r->output) cli_say("continue with --resume");
    } else {
        print_results(r, model, &summary);
        if (!is_met(r->require, &summary)) code = CLI_UNMET;
        safer_summary_free(&summary);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    return code;
}

const cli_verb cli_certify = {
    .name = "certify",
    .brief = "prove, text by text, that no substitution changes the answer",
    .usage = "--model M --lexicon L --data D [options] [-o OUT.jsonl]",
    .summary = "Certifies every text: whether any replacement of words by their synonyms could change\n"
               "the smoothed classifier's answer (with --method ibp: the model's own). Prints accuracies,\n"
               "what is certified and answered, by radius and by class; -o writes a record for every text,\n"
               "from which safer verify can recompute all decisions.",
    .examples = "  safer certify --model cnn.safetensors --lexicon imdb.lex --data test.tsv -o run.jsonl\n"
                "  safer certify --model cnn.safetensors --lexicon imdb.lex --data test.tsv --sample every:20 \\\n"
                "      --method hoeffding --n 5000 --require 0.81\n"
                "  safer certify --method ibp --model ibp.safetensors --lexicon imdb.lex --data test.tsv\n",
    .request_size = sizeof(request),
    .list = list_certify,
    .run = run_certify,
};

/* ------------------------------------------------------------------ verify */

typedef struct verify_request {
    const char *lexicon;
    uint64_t seed;
    cli_model_flags model;
    cli_data data;
} verify_request;

static void list_verify(cli_options *options, void *into)
{
    verify_request *r = into;
    *r = (verify_request){.seed = 1, .model = cli_model_default(), .data = cli_data_default()};
    cli_model_options(options, &r->model);
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "the lexicon of the run");
    cli_data_options(options, &r->data);
    cli_add_uint(options, "seed", &r->seed, "N", "for --sample random:N (default {default})");
    cli_remote_options(options, &r->model);
}

static int run_verify(void *from, char **arguments, size_t count)
{
    verify_request *r = from;
    const int all = r->model.path && r->lexicon && r->data.path, any = r->model.path || r->lexicon || r->data.path;
    (void)count;
    if (any && !all) cli_misuse(&cli_verify, "--model, --lexicon and --data: all three or none");
    safer_error error = {0};
    safer_summary summary;
    safer_lexicon *lexicon = all ? cli_lexicon_open(r->lexicon) : NULL;
    safer_data *data = all ? cli_data_load(&r->data, r->seed) : NULL;
    safer_model *model = all ? cli_model_open(&r->model, &cli_verify, data) : NULL;
    int code = CLI_DONE;
    if (safer_verify(&summary, arguments[0], model, lexicon, data, cli_settings()->threads, cli_progress(), &error) !=
        SAFER_OK) {
        code = cli_fail(&error);
    } else {
        cli_progress_clear();
        if (cli_settings()->json) {
            json_t *result = cli_headline_json(&summary);
            json_object_update_new(result, json_pack("{s:b, s:b, s:I}", "verified", 1, "asked_again", all, "records",
                                                     (json_int_t)summary.texts));
            cli_print_json(result);
        } else {
            cli_caution_print(&summary);
            printf("%s records hold%s; %s\n", cli_count(summary.texts),
                   all ? ", and the model gives the same again" : "", cli_headline(&summary));
        }
        safer_summary_free(&summary);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    return code;
}

const cli_verb cli_verify = {
    .name = "verify",
    .brief = "recompute every decision of a run from its records",
    .usage = "RUN.jsonl [--model M --lexicon L --data D]",
    .summary = "Recomputes every decision of a run from its records. With the model, the lexicon and\n"
               "the data it also draws and asks everything again.",
    .examples = "  safer verify run.jsonl\n"
                "  safer verify run.jsonl --model cnn.safetensors --lexicon imdb.lex --data test.tsv\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .request_size = sizeof(verify_request),
    .list = list_verify,
    .run = run_verify,
};
