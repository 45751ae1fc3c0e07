/* Certifying a data set. */
#include "certify/retrace.h"
#include "certify/summary.h"

#include "base/memory.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "run/guard.h"
#include "run/rows.h"

#include <stdint.h>
#include <stdio.h>

enum { MOST_DRAWS = 1 << 16 }; /* rendered at the same time, of all texts: some 100 MB */

typedef struct certifying {
    const safer_model *model;
    const safer_lexicon *lexicon;
    const safer_data *data;
    const int *classes; /* of each of the data's labels, the model's class */
    safer_certify_options options;
    sf_config config;             /* of this run */
    safer_workspace **workspaces; /* one per worker */
    sf_retrace retrace;           /* for the records of an earlier run, */
    safer_reader *reader;         /* and their texts */
    safer_summary summary;
    unsigned char *held; /* of each text, whether it is certified and answered; NULL: nobody asks */
} certifying;

static safer_status certify_row(void *context, const sf_row *row, int worker, json_t **record, double *seconds,
                                safer_error *error)
{
    certifying *r = context;
    return sf_record_row(record, seconds, &r->workspaces[worker], r->model, r->lexicon, row, &r->options, error);
}

static safer_status count_record(void *context, const json_t *record, const char *name, size_t line, safer_error *error)
{
    certifying *r = context;
    sf_record read;
    safer_status status = sf_record_read(&read, record, &r->config, name, line, error);
    if (status != SAFER_OK) return status;
    if (r->held) r->held[r->summary.texts] = (unsigned char)sf_record_holds(&read);
    sf_summary_add(&r->summary, &read);
    return SAFER_OK;
}

/* What an earlier run left is believed no more than any other file: it is rechecked as verify does. */
static safer_status recheck_record(void *context, const json_t *record, const char *name, size_t line,
                                   safer_error *error)
{
    safer_status status;
    certifying *r = context;
    sf_record read;
    SF_TRY(sf_record_read(&read, record, &r->config, name, line, error));
    SF_TRY(sf_record_recheck(&read, &r->config, name, line, error));
    const size_t number = sf_shard_row(r->config.shard, line - 2);
    if (number >= safer_data_size(r->data)) goto done; /* more than there are texts: told at the end */
    safer_row row;
    SF_TRY(safer_data_read(&row, &r->reader, r->data, number, error));
    status = sf_retrace_text(&r->retrace, &read, &r->config, row, row.label >= 0 ? r->classes[row.label] : -1, name,
                             line, error);
done:
    return status;
}

static void describe(void *context, char *stage, size_t size)
{
    const safer_summary *s = &((const certifying *)context)->summary;
    if (!s->texts)
        snprintf(stage, size, "certifying");
    else
        snprintf(stage, size, "certifying, %zu%% certified so far", 100 * s->certificates / s->texts); /* cut */
}

safer_status sf_certify_follow(const safer_model *model, const json_t *theirs, const sf_span *texts, size_t count,
                               safer_error *error)
{
    if (json_is_true(json_object_get(json_object_get(theirs, "model"), "random"))) sf_model_set_random(model);
    safer_status status = sf_model_probe(model, texts, count, error);
    return status == SAFER_OK ? sf_model_identify(model, error) : status;
}

safer_status sf_certify_probe(const safer_model *model, const safer_data *data, const safer_progress *progress,
                              safer_error *error)
{
    enum { TEXTS = 16 };
    sf_span texts[TEXTS];
    safer_reader *readers[TEXTS] = {0}; /* one each: all texts are there at the same time */
    size_t count = safer_data_size(data) < TEXTS ? safer_data_size(data) : TEXTS;
    safer_status status = SAFER_OK;
    if (!sf_model_is_remote(model)) return SAFER_OK;
    for (size_t i = 0; i < count; i++) {
        safer_row row;
        SF_TRY(safer_data_read(&row, &readers[i], data, i, error));
        texts[i] = (sf_span){row.text, row.text_length};
    }
    /* A stage of its own only where it lasts: nothing is reported at its beginning and end. */
    sf_meter meter = {.progress = progress, .stage = "asking the model twice", .last = sf_seconds()};
    const sf_duty before = sf_duty_change((sf_duty){&meter, 0});
    status = sf_model_probe(model, texts, count, error); /* first: what goes wrong does so on the data */
    if (status == SAFER_OK) status = sf_model_identify(model, error);
    (void)sf_duty_change(before);
done:
    for (size_t i = 0; i < count; i++) safer_reader_free(readers[i]);
    return status;
}

/* A helper of a crew makes the records of rank 0's run: with the same things, but for the data, of which it knows only
 * what rank 0 says. */
static safer_status join_run(void *context, const json_t *theirs, const sf_span *texts, size_t count,
                             safer_error *error)
{
    certifying *r = context;
    safer_status status;
    sf_config config;
    json_t *own = NULL;
    SF_TRY(sf_certify_follow(r->model, theirs, texts, count, error));
    own = sf_config_json(r->model, r->lexicon, NULL, &r->options);
    SF_TRY(sf_origin_follow(&own, theirs, error));
    SF_TRY(sf_config_read(&config, theirs, "the configuration of rank 0", error));
    r->options.delta = config.delta; /* of one text */
done:
    json_decref(own);
    return status;
}

/* Before a run, but not on a helper: what the records will say of labels, and of a remote model. */
static safer_status begin(certifying *r, sf_guard *guard, int **classes, const char *path, int resume,
                          safer_error *error)
{
    safer_status status;
    if (path) SF_TRY(sf_model_check_name(r->model, "to write records", error));
    SF_TRY(sf_map_labels(classes, r->model, r->data, error));
    SF_TRY(sf_guard_begin(guard, path, resume, r->model, error));
    SF_TRY(sf_certify_probe(r->model, r->data, &r->options.progress, error));
    r->classes = *classes;
done:
    return status;
}

/* How the threads share texts, which changes no record. */
static void share_threads(certifying *r, int threads, size_t texts)
{
    /* One thread per text; with fewer texts than calls gain, several threads share a batch. */
    const int calls = r->model->calls ? r->model->calls : threads;
    r->options.threads = texts && texts < (size_t)calls ? calls / (int)texts : 1;
    const size_t in_flight = texts < (size_t)threads ? texts : (size_t)threads;
    if (in_flight && r->options.batch > MOST_DRAWS / in_flight) r->options.batch = MOST_DRAWS / in_flight;
}

static safer_status certify_all(safer_summary *out, unsigned char *held, const char *path, int resume,
                                const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                                const safer_certify_options *given, safer_error *error)
{
    safer_certify_options own = safer_certify_options_default();
    safer_status status = sf_certify_take(&own, given, model, lexicon, error);
    if (status != SAFER_OK) return status;
    const int helps = own.crew && safer_crew_rank(own.crew) > 0;
    int *classes = NULL, threads = model->concurrency ? model->concurrency : sf_threads(own.threads);
    json_t *config = NULL;
    sf_guard guard = {0};
    const sf_shard shard = {own.shard, own.shards};
    const size_t all = helps ? 0 : safer_data_size(data), texts = sf_shard_size(shard, all);
    const double start = sf_seconds();
    certifying r = {.model = model,
                    .lexicon = lexicon,
                    .data = data,
                    .options = own,
                    .retrace = {.lexicon = lexicon},
                    .held = held};
    if (!helps) SF_TRY(begin(&r, &guard, &classes, path, resume, error));
    if (own.family_wise && all) r.options.delta = own.delta / (double)all;
    share_threads(&r, threads, helps ? SIZE_MAX : texts);
    config = helps ? json_object() : sf_config_json(model, lexicon, data, &own);
    r.workspaces = sf_calloc((size_t)threads + 1, sizeof *r.workspaces);
    if (!config || !r.workspaces) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (!helps) SF_TRY(sf_config_read(&r.config, config, "the configuration", error));
    if (!helps) SF_TRY(sf_summary_start(&r.summary, &r.config, error));
    sf_rows rows = {.count = texts,
                    .shard = shard,
                    .model = model,
                    .threads = threads,
                    .config = config,
                    .progress = &own.progress,
                    .context = &r,
                    .data = data,
                    .classes = classes,
                    .work = certify_row,
                    .recheck = recheck_record,
                    .add = count_record,
                    .describe = describe,
                    .crew = own.crew,
                    .join = join_run};
    SF_TRY(sf_rows_run(&rows, path, resume, &r.summary.resumed, error));
    r.summary.seconds = sf_seconds() - start;
    if (out && !helps) {
        *out = r.summary;
        r.summary = (safer_summary){0}; /* the caller's now */
    }
done:
    if (status != SAFER_OK) sf_guard_end(&guard, error);
    safer_summary_free(&r.summary);
    for (int i = 0; r.workspaces && i <= threads; i++) safer_workspace_free(r.workspaces[i]);
    free(r.workspaces);
    sf_retrace_free(&r.retrace);
    safer_reader_free(r.reader);
    free(classes);
    json_decref(config);
    return status;
}

safer_status safer_certify(safer_summary *out, const char *path, int resume, const safer_model *model,
                           const safer_lexicon *lexicon, const safer_data *data, const safer_certify_options *options,
                           safer_error *error)
{
    return certify_all(out, NULL, path, resume, model, lexicon, data, options, error);
}

safer_status sf_certify_each(safer_summary *out, unsigned char *held, const safer_model *model,
                             const safer_lexicon *lexicon, const safer_data *data, const safer_certify_options *options,
                             safer_error *error)
{
    return certify_all(out, held, NULL, 0, model, lexicon, data, options, error);
}
