/* Certifying a data set. */
#include "certify/retrace.h"
#include "certify/summary.h"

#include "base/memory.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "run/guard.h"
#include "run/rows.h"

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
    sf_retrace retrace;           /* for the records of an earlier run */
    safer_summary summary;
} certifying;

static safer_status certify_row(void *context, size_t index, int worker, json_t **record, double *seconds,
                                safer_error *error)
{
    certifying *r = context;
    safer_certificate c;
    const size_t number = sf_shard_row(r->config.shard, index);
    safer_row row = safer_data_row(r->data, number);
    int label = row.label >= 0 ? r->classes[row.label] : -1;
    safer_status status = safer_certify_text(&c, &r->workspaces[worker], r->model, r->lexicon, row.text,
                                             row.text_length, label, &r->options, error);
    if (status != SAFER_OK) return status;
    c.id = row.id;
    *record = sf_record_json(&c, number + 1, r->workspaces[worker]);
    *seconds = c.seconds;
    return SAFER_OK;
}

static safer_status count_record(void *context, const json_t *record, const char *name, size_t line, safer_error *error)
{
    certifying *r = context;
    sf_record read;
    safer_status status = sf_record_read(&read, record, &r->config, name, line, error);
    if (status == SAFER_OK) sf_summary_add(&r->summary, &read);
    return status;
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
    const safer_row row = safer_data_row(r->data, number);
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

safer_status sf_certify_probe(const safer_model *model, const safer_data *data, const safer_progress *progress,
                              safer_error *error)
{
    enum { TEXTS = 16 };
    sf_span texts[TEXTS];
    size_t count = safer_data_size(data) < TEXTS ? safer_data_size(data) : TEXTS;
    if (!sf_model_is_remote(model)) return SAFER_OK;
    for (size_t i = 0; i < count; i++) {
        safer_row row = safer_data_row(data, i);
        texts[i] = (sf_span){row.text, row.text_length};
    }
    /* A stage of its own only where it lasts: nothing is reported at its beginning and end. */
    sf_meter meter = {.progress = progress, .stage = "asking the model twice", .last = sf_seconds()};
    const sf_duty before = sf_duty_change((sf_duty){&meter, 0});
    safer_status status = sf_model_probe(model, texts, count, error); /* first: what goes wrong does so on the data */
    if (status == SAFER_OK) status = sf_model_identify(model, error);
    (void)sf_duty_change(before);
    return status;
}

safer_status safer_certify(safer_summary *out, const char *path, int resume, const safer_model *model,
                           const safer_lexicon *lexicon, const safer_data *data, const safer_certify_options *given,
                           safer_error *error)
{
    safer_certify_options own = safer_certify_options_default();
    const safer_certify_options *options = &own;
    safer_status status = sf_certify_take(&own, given, model, lexicon, error);
    if (status != SAFER_OK) return status;
    int *classes = NULL, threads = model->concurrency ? model->concurrency : sf_threads(options->threads);
    json_t *config = NULL;
    sf_guard guard = {0};
    const size_t all = safer_data_size(data), texts = sf_shard_size((sf_shard){options->shard, options->shards}, all);
    double start = sf_seconds();
    certifying r = {
        .model = model, .lexicon = lexicon, .data = data, .options = *options, .retrace = {.lexicon = lexicon}};
    if (path) SF_TRY(sf_model_check_name(model, "to write records", error));
    if (options->family_wise && all) r.options.delta = options->delta / (double)all;
    SF_TRY(sf_map_labels(&classes, model, data, error));
    SF_TRY(sf_guard_begin(&guard, path, resume, model, error));
    SF_TRY(sf_certify_probe(model, data, &options->progress, error));
    r.classes = classes;
    /* One thread per text; with fewer texts than calls gain, several threads share a batch. */
    const int calls = model->calls ? model->calls : threads;
    r.options.threads = texts && texts < (size_t)calls ? calls / (int)texts : 1;
    const size_t in_flight = texts < (size_t)threads ? texts : (size_t)threads;
    if (in_flight && r.options.batch > MOST_DRAWS / in_flight) r.options.batch = MOST_DRAWS / in_flight;
    config = sf_config_json(model, lexicon, data, options);
    r.workspaces = sf_calloc((size_t)threads, sizeof *r.workspaces);
    if (!config || !r.workspaces) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_config_read(&r.config, config, "the configuration", error));
    SF_TRY(sf_summary_start(&r.summary, &r.config, error));
    sf_rows rows = {.count = texts,
                    .model = model,
                    .threads = threads,
                    .config = config,
                    .progress = &options->progress,
                    .context = &r,
                    .work = certify_row,
                    .recheck = recheck_record,
                    .add = count_record,
                    .describe = describe};
    SF_TRY(sf_rows_run(&rows, path, resume, &r.summary.resumed, error));
    r.summary.seconds = sf_seconds() - start;
    if (out) {
        *out = r.summary;
        r.summary = (safer_summary){0}; /* the caller's now */
    }
done:
    if (status != SAFER_OK) sf_guard_end(&guard, error);
    safer_summary_free(&r.summary);
    for (int i = 0; r.workspaces && i < threads; i++) safer_workspace_free(r.workspaces[i]);
    free(r.workspaces);
    sf_retrace_free(&r.retrace);
    free(classes);
    json_decref(config);
    return status;
}
