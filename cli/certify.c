/* safer certify | verify */
#include "certify_options.h"
#include "crew.h"
#include "data_options.h"
#include "gates.h"
#include "model_options.h"
#include "results.h"
#include "shard_options.h"
#include "verbs.h"

/* ----------------------------------------------------------------- certify */

typedef struct request {
    const char *lexicon, *output, *shard;
    int resume;
    cli_gates gates;
    cli_model_flags model;
    cli_data data;
    cli_certify_flags certify;
    cli_crew_flags crew;
    const char *misfit; /* why the lexicon may not fit the texts, where the results do not know; or "" */
} request;

static void list_certify(cli_options *options, void *into)
{
    request *r = into;
    *r = (request){.gates = cli_gates_default(),
                   .model = cli_model_default(),
                   .data = cli_data_default(),
                   .certify = cli_certify_default()};
    cli_add_heading(options, "What");
    cli_share_labels(&r->model, &r->data);
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
    cli_shard_option(options, &r->shard);
    cli_gates_options(options, &r->gates);
    cli_remote_options(options, &r->model);
    cli_model_name_option(options, &r->model);
    cli_crew_options(options, &r->crew);
}

static void check_request(request *r)
{
    const cli_verb *verb = &cli_certify;
    if (!r->model.path) cli_misuse(verb, "--model MODEL is needed");
    if (!r->lexicon) cli_misuse(verb, "--lexicon FILE is needed");
    if (!r->data.path) cli_misuse(verb, "--data DATA is needed");
    if (r->resume && !r->output) cli_misuse(verb, "--resume needs -o FILE");
    if (r->output) cli_interrupt_again(CLI_RESUME);
    if (r->output) cli_model_need_name(&r->model, verb);
    if (r->gates.not_worse_than && !r->output) cli_misuse(verb, "--not-worse-than needs -o FILE: records are compared");
    cli_gates_finish(&r->gates, verb);
    cli_certify_finish(&r->certify, verb);
    cli_shard_finish(r->shard, &r->certify.options.shard, &r->certify.options.shards, verb);
    const char *gate = cli_gates_given(&r->gates);
    if (r->shard && gate)
        cli_misuse(verb, "%s and --shard: it is about the whole run; safer merge, then safer evidence %s", gate, gate);
}

static void print_results(const request *r, const safer_model *model, const safer_summary *summary,
                          const cli_verdict *verdict)
{
    const safer_certify_options *o = &r->certify.options;
    cli_progress_clear();
    if (cli_settings()->json) {
        json_t *result = cli_summary_json(summary, o->seed), *traffic = cli_traffic_json(model);
        if (*r->misfit && json_is_null(json_object_get(result, "caution")))
            cli_set(result, "caution", json_string(r->misfit));
        cli_shard_add_json(result, o->shard, o->shards);
        if (traffic) cli_set(result, "traffic", traffic);
        cli_verdict_add_json(result, verdict);
        cli_print_json(result);
    } else {
        cli_shard_print(o->shard, o->shards, CLI_RESULT_WIDTH);
        cli_summary_print(summary, o);
        cli_traffic_print(model, CLI_RESULT_WIDTH);
        cli_verdict_print(verdict);
    }
}

/* The baseline is read first: that it cannot be read should not be said after hours. */
static int certify(const request *r, const safer_model *model, const safer_lexicon *lexicon, const safer_data *data)
{
    safer_error error = {0};
    safer_summary summary = {0};
    cli_verdict verdict = {0};
    int code = CLI_DONE;
    safer_status status = SAFER_OK;
    if (r->gates.not_worse_than && !cli_crew_helps())
        status = safer_run_read(&verdict.baseline, r->gates.not_worse_than, &error);
    if (status == SAFER_OK)
        status = safer_certify(&summary, r->output, r->resume, model, lexicon, data, &r->certify.options, &error);
    const int certified = status == SAFER_OK && !cli_crew_helps();
    if (certified) {
        cli_interrupt_again(NULL);
        status = cli_verdict_reach(&verdict, &r->gates, &summary, r->output, &error);
        if (status != SAFER_OK) cli_verdict_free(&verdict); /* nothing can be said of it */
        print_results(r, model, &summary, &verdict);
        code = cli_verdict_code(&verdict);
    }
    if (status != SAFER_OK) code = cli_fail(&error);
    safer_summary_free(&summary);
    cli_verdict_free(&verdict);
    return code;
}

static int run_certify(void *from, char **arguments, size_t count)
{
    request *r = from;
    (void)arguments, (void)count;
    r->certify.options.crew = cli_crew_join(&r->crew, &cli_certify);
    check_request(r);
    if (r->crew.mpi) cli_model_need_labels(&r->model, &cli_certify);
    safer_lexicon *lexicon = cli_lexicon_open(r->lexicon);
    safer_data *data = cli_crew_helps() ? NULL : cli_data_open(&r->data, r->certify.options.seed);
    safer_model *model = cli_model_open(&r->model, &cli_certify, data);
    cli_note_training(model, lexicon, r->certify.options.deletion);
    r->misfit = cli_fit_say(lexicon, data, 1);
    cli_gates_check_labels(&r->gates, model, &cli_certify);
    const int code = certify(r, model, lexicon, data);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    cli_gates_free(&r->gates);
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
    cli_crew_flags crew;
} verify_request;

static void list_verify(cli_options *options, void *into)
{
    verify_request *r = into;
    *r = (verify_request){.seed = 1, .model = cli_model_default(), .data = cli_data_default()};
    cli_share_labels(&r->model, &r->data);
    cli_model_options(options, &r->model);
    cli_add_path(options, "lexicon", &r->lexicon, "FILE", "the lexicon of the run");
    cli_data_options(options, &r->data);
    cli_add_uint(options, "seed", &r->seed, "N", "for --sample random:N (default {default})");
    cli_remote_options(options, &r->model);
    cli_model_name_option(options, &r->model);
    cli_crew_options(options, &r->crew);
}

static json_t *phrases_json(const char *const *phrases)
{
    json_t *list = json_array();
    while (*phrases) cli_append(list, json_string(*phrases++));
    return list;
}

static json_t *radius_json(size_t radius)
{
    return radius == SAFER_ALL ? json_string("all") : json_sprintf("%zu", radius);
}

/* What the share is worth: of how many changed words it speaks, and how often it may be wrong. */
static void print_claim(const safer_verification *v)
{
    const int bounds = v->method == SAFER_METHOD_IBP, groups = v->method == SAFER_METHOD_GROUPS;
    if ((bounds && !v->summary.additive) || v->radius == SAFER_ALL)
        printf("claimed: any number of words changed");
    else
        printf("claimed: at most %s word%s changed", cli_count(v->radius), v->radius == 1 ? "" : "s");
    char edits[80];
    if (v->edits) printf(", and at most %s", cli_edits(edits, v->edit_kind, v->edits));
    if (bounds)
        printf(", by interval bounds\n");
    else if (groups)
        printf(", by votes of %s groups\n", cli_count(v->deletion.groups));
    else
        printf("; delta %s for %s, alpha %s\n", cli_real(v->delta), v->family_wise ? "all texts together" : "each text",
               cli_real(v->alpha));
}

static void print_verification(const safer_verification *v, int files, int model)
{
    const safer_summary *s = &v->summary;
    cli_progress_clear();
    if (cli_settings()->json) {
        json_t *result = cli_headline_json(s);
        cli_extend(result, json_pack("{s:b, s:i, s:b, s:I, s:s, s:o, s:f, s:b, s:f, s:o, s:o}", "verified", 1, "format",
                                     v->format, "asked_again", model, "records", (json_int_t)s->texts, "method",
                                     safer_method_name(v->method), "radius", radius_json(v->radius), "delta", v->delta,
                                     "family_wise", v->family_wise, "alpha", v->alpha, "checked",
                                     phrases_json(v->checked), "not_checked", phrases_json(v->not_checked)));
        if (v->edits)
            cli_extend(result,
                       json_pack("{s:o, s:I, s:s}", v->deletion.groups ? "groups" : "delete",
                                 v->deletion.groups ? json_integer((json_int_t)v->deletion.groups)
                                                    : cli_deletion_json(v->deletion),
                                 "edits", (json_int_t)v->edits, "edit_kind", safer_edit_kind_name(v->edit_kind)));
        cli_shard_add_json(result, v->shard, v->shards);
        cli_print_json(result);
        return;
    }
    cli_caution_print(s);
    if (v->shards) printf("part %s of %s: ", cli_count(v->shard), cli_count(v->shards));
    printf("%s%s; %s\n", cli_some(s->texts, "record holds", "records hold"),
           model   ? ", and the model gives the same again"
           : files ? ", and are those of these texts"
                   : "",
           cli_headline(s));
    print_claim(v);
    printf("not checked: ");
    for (size_t i = 0; v->not_checked[i]; i++) printf("%s%s", i ? "; " : "", v->not_checked[i]);
    printf("\n");
}

static int run_verify(void *from, char **arguments, size_t count)
{
    verify_request *r = from;
    const int ask = r->model.path != NULL, files = r->lexicon && r->data.path;
    (void)count;
    safer_crew *crew = cli_crew_join(&r->crew, &cli_verify);
    if ((r->lexicon != NULL) != (r->data.path != NULL)) cli_misuse(&cli_verify, "--lexicon and --data: both or none");
    if (ask && !files) cli_misuse(&cli_verify, "--model needs --lexicon and --data");
    if (r->crew.mpi && !ask) cli_misuse(&cli_verify, "--mpi needs --model: only asking it again is shared");
    if (r->crew.mpi) cli_model_need_labels(&r->model, &cli_verify);
    safer_error error = {0};
    safer_verification found = {0};
    safer_lexicon *lexicon = files ? cli_lexicon_open(r->lexicon) : NULL;
    safer_data *data = files && !cli_crew_helps() ? cli_data_open(&r->data, r->seed) : NULL;
    safer_model *model = ask ? cli_model_open(&r->model, &cli_verify, data) : NULL;
    int code = CLI_DONE;
    if (safer_verify_crew(&found, arguments[0], model, lexicon, data, cli_settings()->threads, crew, cli_progress(),
                          &error) != SAFER_OK)
        code = cli_fail(&error);
    else if (!cli_crew_helps())
        print_verification(&found, files, ask);
    safer_summary_free(&found.summary);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    safer_model_free(model);
    return code;
}

const cli_verb cli_verify = {
    .name = "verify",
    .brief = "recompute every decision of a run from its records",
    .usage = "RUN.jsonl [--lexicon L --data D [--model M]]",
    .summary = "Recomputes every decision of a run from its records. With the lexicon and the data it also\n"
               "checks what the records say of the texts; with the model too, it draws and asks everything\n"
               "again. The last line says what was not checked.",
    .examples = "  safer verify run.jsonl\n"
                "  safer verify run.jsonl --lexicon imdb.lex --data test.tsv\n"
                "  safer verify run.jsonl --model cnn.safetensors --lexicon imdb.lex --data test.tsv\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .request_size = sizeof(verify_request),
    .list = list_verify,
    .run = run_verify,
};
