/* Attacking a data set: configuration, records, totals. */
#include "attack/attack.h"

#include "attack/records.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "certify/record.h"
#include "run/rows.h"

#include <stdio.h>
#include <string.h>

enum { FORMAT = 1 };

/* ------------------------------------------------------------------ records */

json_t *sf_attack_config(const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                         const safer_attack_options *o)
{
    json_t *labels = json_array();
    for (size_t k = 0; k < model->classes; k++) json_array_append_new(labels, json_string(model->labels[k]));
    json_t *config = json_pack(
        "{s:s, s:s, s:i, s:{s:s, s:o, s:s*}, s:{s:o, s:s}, s:{s:o, s:I}, s:o, s:b, s:I, s:o, s:I, s:i, s:i, s:i, s:f, s:I}",
        "safer", SAFER_VERSION, "kind", "attack", "format", FORMAT, "model", "arch", model->class->arch, "hash",
        sf_hex_json(model->hash), "arithmetic", model->arithmetic, "lexicon", "hash",
        sf_hex_json(sf_lexicon_hash(lexicon)), "kernel", lexicon->kernel_name, "data", "hash",
        sf_hex_json(safer_data_hash(data)), "texts", (json_int_t)safer_data_size(data), "labels", labels, "smoothed",
        o->smoothed != 0, "n", (json_int_t)o->n, "radius", sf_radius_json(o->radius), "max_queries",
        (json_int_t)o->max_queries, "population", o->population, "iterations", o->iterations, "tries", o->tries,
        "alpha", o->alpha, "seed", (json_int_t)o->seed);
    if (sf_model_is_random(model)) json_object_set_new(json_object_get(config, "model"), "random", json_true());
    return config;
}

json_t *sf_label_json(const safer_model *model, int label)
{
    return label >= 0 && (size_t)label < model->classes ? json_string(model->labels[label]) : json_null();
}

json_t *sf_changes_json(const safer_change *changes, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list,
                              json_pack("{s:I, s:I, s:s, s:s}", "word", (json_int_t)changes[i].word + 1, "byte",
                                        (json_int_t)changes[i].begin, "from", changes[i].from, "to", changes[i].to));
    return list;
}

static const char *const outcomes[] =
    {[SAFER_ATTACK_FAILED] = "failed", [SAFER_ATTACK_SUCCEEDED] = "succeeded", [SAFER_ATTACK_SKIPPED] = "skipped"};

/* NULL without memory. */
static json_t *record_json(const safer_attack_result *r, size_t row, const safer_model *model)
{
    json_t *text = r->text ? json_stringn(r->text, r->text_length) : json_null();
    return json_pack("{s:I, s:s, s:o, s:o, s:o, s:s, s:s?, s:I, s:I, s:f, s:f, s:I, s:o, s:o, s:I, s:I}", "row",
                     (json_int_t)row, "id", r->id, "label", sf_label_json(model, r->label), "before",
                     sf_label_json(model, r->before), "after", sf_label_json(model, r->after), "outcome",
                     outcomes[r->outcome], "reason", r->reason, "words", (json_int_t)r->words, "choices",
                     (json_int_t)r->choices, "score_before", r->score_before, "score_after", r->score_after, "changed",
                     (json_int_t)r->changed, "changes", sf_changes_json(r->changes, r->changed), "text", text,
                     "queries", (json_int_t)r->queries, "checks", (json_int_t)r->checks);
}

safer_status sf_attack_summary_add(safer_attack_summary *s, const json_t *record, const char *name, size_t line,
                                   safer_error *error)
{
    const char *outcome = "";
    json_t *reason = NULL;
    json_int_t words = 0, choices = 0, changed = 0, queries = 0, checks = 0;
    if (json_unpack((json_t *)(uintptr_t)record, "{s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "outcome", &outcome, "reason",
                    &reason, "words", &words, "choices", &choices, "changed", &changed, "queries", &queries, "checks",
                    &checks) != 0)
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: not a record", name, line);
    s->texts++;
    s->skipped += strcmp(outcome, "skipped") == 0;
    s->without_choices += choices == 0;
    s->limited += json_is_string(reason) && strcmp(json_string_value(reason), "the queries are used up") == 0;
    if (strcmp(outcome, "succeeded") == 0) {
        s->succeeded++;
        s->changed += (uint64_t)changed;
        s->changed_share += words > 0 ? (double)changed / (double)words : 0;
    }
    s->queries += (uint64_t)queries;
    s->checks += (uint64_t)checks;
    return SAFER_OK;
}

/* ---------------------------------------------------------------------- run */

typedef struct run {
    const safer_model *model;
    const safer_lexicon *lexicon;
    const safer_data *data;
    const int *classes;
    const safer_attack_options *options;
    safer_attacker **attackers; /* one a worker */
    safer_attack_summary summary;
} run;

static safer_status attack_row(void *context, size_t index, int worker, json_t **record, double *seconds,
                               safer_error *error)
{
    run *r = context;
    safer_attack_result result;
    const safer_row row = safer_data_row(r->data, index);
    safer_status status = safer_attack_text(&result, &r->attackers[worker], r->model, r->lexicon, row.text,
                                            row.text_length, row.label >= 0 ? r->classes[row.label] : -1, r->options,
                                            error);
    if (status != SAFER_OK) return status;
    result.id = row.id;
    *record = record_json(&result, index + 1, r->model);
    *seconds = result.seconds;
    return SAFER_OK;
}

safer_status sf_show_record(const safer_attack_options *options, const json_t *record, safer_error *error)
{
    if (!options->each) return SAFER_OK;
    char *line = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!line) return sf_fail_memory(error);
    options->each(options->each_context, line);
    free(line);
    return SAFER_OK;
}

static safer_status count_record(void *context, const json_t *record, const char *name, size_t line, safer_error *error)
{
    run *r = context;
    safer_status status = sf_attack_summary_add(&r->summary, record, name, line, error);
    return status == SAFER_OK ? sf_show_record(r->options, record, error) : status;
}

static void describe(void *context, char *stage, size_t size)
{
    const safer_attack_summary *s = &((const run *)context)->summary;
    const size_t attacked = s->texts - s->skipped;
    if (!attacked)
        snprintf(stage, size, "attacking");
    else
        snprintf(stage, size, "attacking, %.1f%% succeed so far", 100.0 * (double)s->succeeded / (double)attacked);
}

safer_status safer_attack(safer_attack_summary *out, const char *path, int resume, const safer_model *model,
                          const safer_lexicon *lexicon, const safer_data *data, const safer_attack_options *options,
                          safer_error *error)
{
    safer_status status;
    int *classes = NULL;
    const int threads = model->concurrency ? model->concurrency : sf_threads(options->threads);
    const double start = sf_seconds();
    json_t *config = NULL;
    run r = {.model = model, .lexicon = lexicon, .data = data, .options = options};
    SF_TRY(sf_attack_check(options, error));
    SF_TRY(sf_map_labels(&classes, model, data, error));
    if (model->class->probe && resume && path && sf_rows_were_random(path)) sf_model_set_random(model);
    SF_TRY(sf_certify_probe(model, data, error));
    r.classes = classes;
    config = sf_attack_config(model, lexicon, data, options);
    if (config) json_object_set_new(config, "method", json_string(safer_attack_name(options->method)));
    r.attackers = sf_calloc((size_t)threads, sizeof *r.attackers);
    if (!config || !r.attackers) {
        status = sf_fail_memory(error);
        goto done;
    }
    const sf_rows rows = {.count = safer_data_size(data),
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
    for (int i = 0; r.attackers && i < threads; i++) safer_attacker_free(r.attackers[i]);
    free(r.attackers);
    free(classes);
    json_decref(config);
    return status;
}
