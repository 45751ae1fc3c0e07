/* Checking a run: every decision from its record, and, with the model, every count. */
#include "certify/read.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "run/rows.h"

#include <stdint.h>

typedef struct replay {
    const safer_model *model;
    const safer_lexicon *lexicon;
    const safer_data *data;
    const sf_run *run;
    int *classes; /* of each of the data's labels, the model's class */
    safer_certify_options options;
    safer_workspace **workspaces; /* one per worker */
    safer_status *statuses;       /* one per record */
    safer_error *errors;          /* one per worker: the message of the record that failed there */
    size_t *failed;               /* one per worker: its first failure, SIZE_MAX for none */
    sf_meter meter;
} replay;

/* Draws and asks again; the whole record must come out the same. */
static safer_status replay_record(replay *r, size_t i, int worker, safer_error *error)
{
    safer_certificate c;
    safer_row row = safer_data_row(r->data, i);
    const int label = row.label >= 0 ? r->classes[row.label] : -1;
    safer_status status = safer_certify_text(&c, &r->workspaces[worker], r->model, r->lexicon, row.text,
                                             row.text_length, label, &r->options, error);
    if (status != SAFER_OK) return status;
    c.id = row.id;
    json_t *again = sf_record_json(&c, i + 1, r->workspaces[worker]);
    if (!again) return sf_fail_memory(error);
    int same = json_equal(again, r->run->json[i]);
    json_decref(again);
    return same ? SAFER_OK
                : sf_fail(error, SAFER_INPUT, "%s, line %zu: the model gives another record", r->run->path, i + 2);
}

static void replay_records(void *context, size_t begin, size_t end, int worker)
{
    replay *r = context;
    for (size_t i = begin; i < end; i++) {
        safer_error error = {0};
        if (sf_meter_cancelled(&r->meter)) return;
        r->statuses[i] = replay_record(r, i, worker, &error);
        if (r->statuses[i] != SAFER_OK && i < r->failed[worker]) {
            r->failed[worker] = i;
            r->errors[worker] = error;
        }
        sf_meter_add(&r->meter, 1, worker);
    }
}

static safer_status replay_all(replay *r, int threads, const safer_progress *progress, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t count = r->run->count;
    threads = r->model->concurrency ? r->model->concurrency : sf_threads(threads);
    r->workspaces = sf_calloc((size_t)threads, sizeof *r->workspaces);
    r->statuses = sf_calloc(count, sizeof *r->statuses);
    r->errors = sf_calloc((size_t)threads, sizeof *r->errors);
    r->failed = sf_alloc((size_t)threads, sizeof *r->failed);
    if (!r->workspaces || !r->statuses || !r->errors || !r->failed) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_map_labels(&r->classes, r->model, r->data, error));
    for (int i = 0; i < threads; i++) r->failed[i] = SIZE_MAX;
    sf_meter_start(&r->meter, progress, "asking again", count);
    sf_parallel(threads, count, 1, replay_records, r);
    SF_TRY(sf_meter_finish(&r->meter, error));
    size_t first = SIZE_MAX;
    for (int i = 0; i < threads; i++) {
        if (r->failed[i] >= first) continue;
        first = r->failed[i];
        status = r->statuses[first];
        if (error) *error = r->errors[i];
    }
done:
    for (int i = 0; r->workspaces && i < threads; i++) safer_workspace_free(r->workspaces[i]);
    free(r->workspaces);
    free(r->classes);
    free(r->statuses);
    free(r->errors);
    free(r->failed);
    return status;
}

safer_status safer_verify(safer_summary *out, const char *path, const safer_model *model, const safer_lexicon *lexicon,
                          const safer_data *data, int threads, const safer_progress *progress, safer_error *error)
{
    safer_status status;
    sf_run run = {0};
    double start = sf_seconds();
    if ((model || lexicon || data) && !(model && lexicon && data))
        return sf_fail(error, SAFER_INVALID, "model, lexicon and data: all three or none are needed to ask again");
    SF_TRY(sf_run_load(&run, path, error));
    if (model) {
        if (run.config.random) {
            status = sf_fail(error, SAFER_INVALID,
                             "%s: the model answered at random; its counts cannot be asked again, only rechecked",
                             path);
            goto done;
        }
        SF_TRY(sf_model_check_name(model, "to be compared with that of the run", error));
        SF_TRY(sf_certify_probe(model, data, error));
        SF_TRY(sf_run_belongs(&run, model, lexicon, data, error));
        replay r = {.model = model, .lexicon = lexicon, .data = data, .run = &run, .options = run.config.options};
        r.options.delta = run.config.delta;
        r.options.threads = 1; /* one thread per text */
        SF_TRY(replay_all(&r, threads, progress, error));
    }
    run.summary.seconds = sf_seconds() - start;
    *out = run.summary;
done:
    sf_run_free(&run);
    return status;
}
