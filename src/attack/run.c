/* Attacking a data set. */
#include "attack/attack.h"

#include "attack/records.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "certify/certificate.h"
#include "certify/origin.h"
#include "run/guard.h"
#include "run/rows.h"

#include <stdio.h>

typedef struct attacking {
    const safer_model *model;
    const safer_lexicon *lexicon;
    const safer_data *data;
    const int *classes;
    const safer_attack_options *options;
    sf_shard shard;
    safer_attacker **attackers; /* one per worker */
    safer_attack_summary summary;
} attacking;

static safer_status attack_row(void *context, size_t index, int worker, json_t **record, double *seconds,
                               safer_error *error)
{
    attacking *r = context;
    safer_attack_result result;
    const size_t number = sf_shard_row(r->shard, index);
    const safer_row row = safer_data_row(r->data, number);
    safer_status status = safer_attack_text(&result, &r->attackers[worker], r->model, r->lexicon, row.text,
                                            row.text_length, row.label >= 0 ? r->classes[row.label] : -1, r->options,
                                            error);
    if (status != SAFER_OK) return status;
    result.id = row.id;
    *record = sf_attack_record_json(&result, number + 1, r->model);
    *seconds = result.seconds;
    return SAFER_OK;
}

static safer_status count_record(void *context, const json_t *record, const char *name, size_t line, safer_error *error)
{
    attacking *r = context;
    sf_attack_record read;
    safer_status status = sf_attack_record_read(&read, record, SF_FORMAT, name, line, error);
    if (status != SAFER_OK) return status;
    sf_attack_summary_add(&r->summary, &read);
    return sf_show_record(r->options, record, error);
}

static void describe(void *context, char *stage, size_t size)
{
    const safer_attack_summary *s = &((const attacking *)context)->summary;
    const size_t attacked = s->texts - s->skipped;
    if (!attacked)
        snprintf(stage, size, "attacking");
    else
        snprintf(stage, size, "attacking, %zu%% succeed so far", 100 * s->succeeded / attacked); /* cut */
}

safer_status safer_attack(safer_attack_summary *out, const char *path, int resume, const safer_model *model,
                          const safer_lexicon *lexicon, const safer_data *data, const safer_attack_options *given,
                          safer_error *error)
{
    safer_attack_options own = safer_attack_options_default();
    const safer_attack_options *options = &own;
    safer_status status = SF_TAKE_OPTIONS(&own, given, safer_attack_options, error);
    if (status != SAFER_OK) return status;
    int *classes = NULL;
    const int threads = model->concurrency ? model->concurrency : sf_threads(options->threads);
    const double start = sf_seconds();
    json_t *config = NULL;
    sf_guard guard = {0};
    attacking r = {.model = model, .lexicon = lexicon, .data = data, .options = options};
    r.shard = (sf_shard){options->shard, options->shards};
    SF_TRY(sf_attack_check(options, error));
    if (path) SF_TRY(sf_model_check_name(model, "to write records", error));
    SF_TRY(sf_map_labels(&classes, model, data, error));
    SF_TRY(sf_guard_begin(&guard, path, resume, model, error));
    SF_TRY(sf_certify_probe(model, data, &options->progress, error));
    r.classes = classes;
    config = sf_attack_config("attack", model, lexicon, data, options);
    sf_member_add(&config, "method", json_string(safer_attack_method_name(options->method)));
    sf_shard_add(&config, r.shard);
    r.attackers = sf_calloc((size_t)threads, sizeof *r.attackers);
    if (!config || !r.attackers) {
        status = sf_fail_memory(error);
        goto done;
    }
    const sf_rows rows = {.count = sf_shard_size(r.shard, safer_data_size(data)),
                          .model = model,
                          .threads = threads,
                          .config = config,
                          .progress = &options->progress,
                          .context = &r,
                          .work = attack_row,
                          .add = count_record,
                          .describe = describe};
    SF_TRY(sf_rows_run(&rows, path, resume, &r.summary.resumed, error));
    r.summary.seconds = sf_seconds() - start;
    *out = r.summary;
done:
    if (status != SAFER_OK) sf_guard_end(&guard, error);
    for (int i = 0; r.attackers && i < threads; i++) safer_attacker_free(r.attackers[i]);
    free(r.attackers);
    free(classes);
    json_decref(config);
    return status;
}
