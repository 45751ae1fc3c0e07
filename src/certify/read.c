/* Finished runs: read line by line, and nothing of them believed. */
#include "certify/read.h"

#include "base/memory.h"

typedef struct reading {
    const char *path;
    const sf_run_visitor *visitor;
    json_t *config_json; /* the first line; the configuration's labels live in it */
    sf_config config;
    safer_summary summary;
} reading;

static safer_status read_config(reading *r, json_t *object, uint64_t seal, safer_error *error)
{
    safer_status status;
    r->config_json = json_incref(object);
    SF_TRY(sf_config_read(&r->config, object, r->path, error));
    r->config.seal = seal;
    SF_TRY(sf_summary_start(&r->summary, &r->config, error));
    status = r->visitor->config(r->visitor->context, object, &r->config, error);
done:
    return status;
}

static safer_status read_line(void *context, json_t *object, uint64_t seal, size_t line, safer_error *error)
{
    reading *r = context;
    safer_status status;
    sf_record record;
    if (line == 1) return read_config(r, object, seal, error);
    SF_TRY(sf_record_read(&record, object, &r->config, r->path, line, error));
    SF_TRY(sf_record_recheck(&record, &r->config, r->path, line, error));
    sf_summary_add(&r->summary, &record);
    status = r->visitor->record(r->visitor->context, object, &record, line, error);
done:
    return status;
}

safer_status sf_run_walk(safer_summary *out, const char *path, const sf_run_visitor *visitor, safer_error *error)
{
    reading r = {.path = path, .visitor = visitor};
    safer_status status = sf_sealed_read(path, "run", 0, read_line, &r, error);
    if (status == SAFER_OK && r.summary.texts != r.config.texts)
        status = sf_fail(error, SAFER_INPUT, "%s holds %zu records of %zu; resume the run", path, r.summary.texts,
                         r.config.texts);
    if (status == SAFER_OK)
        *out = r.summary;
    else
        safer_summary_free(&r.summary);
    json_decref(r.config_json);
    return status;
}

/* ---------------------------------------------------------------- kept whole */

typedef struct keeping {
    sf_run *run;
    size_t record_capacity, json_capacity;
} keeping;

static safer_status keep_config(void *context, json_t *json, const sf_config *config, safer_error *error)
{
    sf_run *run = ((keeping *)context)->run;
    (void)error;
    run->config_json = json_incref(json);
    run->config = *config;
    return SAFER_OK;
}

static safer_status keep_record(void *context, json_t *json, const sf_record *record, size_t line, safer_error *error)
{
    keeping *k = context;
    sf_run *run = k->run;
    (void)line;
    if (sf_grow(&run->records, &k->record_capacity, run->count + 1, sizeof *run->records) ||
        sf_grow(&run->json, &k->json_capacity, run->count + 1, sizeof *run->json))
        return sf_fail_memory(error);
    run->records[run->count] = *record;
    run->json[run->count++] = json_incref(json);
    return SAFER_OK;
}

safer_status sf_run_load(sf_run *out, const char *path, safer_error *error)
{
    keeping k = {.run = out};
    *out = (sf_run){.path = path};
    safer_status status = sf_run_walk(&out->summary, path, &(sf_run_visitor){keep_config, keep_record, &k}, error);
    if (status != SAFER_OK) sf_run_free(out);
    return status;
}

void sf_run_free(sf_run *run)
{
    for (size_t i = 0; i < run->count; i++) json_decref(run->json[i]);
    free(run->json);
    free(run->records);
    safer_summary_free(&run->summary);
    json_decref(run->config_json);
    *run = (sf_run){0};
}

safer_status sf_run_belongs(const sf_run *run, const safer_model *model, const safer_lexicon *lexicon,
                            const safer_data *data, safer_error *error)
{
    static const struct {
        const char *member, *name;
    } parts[] = {{"model", "model"},
                 {"lexicon", "lexicon"},
                 {"data", "data set, or to other rows of it"},
                 {"labels", "list of labels"}};
    const char *other = "configuration";
    json_t *expected = sf_config_json(model, lexicon, data, &run->config.options),
           *version = json_object_get(run->config_json, "safer"); /* any will do that writes this format */
    if (!expected || (version && json_object_set(expected, "safer", version) != 0)) {
        json_decref(expected);
        return sf_fail_memory(error);
    }
    int same = json_equal(expected, run->config_json);
    for (size_t i = sizeof parts / sizeof parts[0]; i-- > 0;)
        if (!json_equal(json_object_get(expected, parts[i].member), json_object_get(run->config_json, parts[i].member)))
            other = parts[i].name;
    json_decref(expected);
    return same ? SAFER_OK : sf_fail(error, SAFER_INPUT, "%s belongs to another %s", run->path, other);
}
