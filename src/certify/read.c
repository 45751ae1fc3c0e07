/* Finished runs: read line by line, and nothing of them believed. */
#include "certify/read.h"

#include "base/json.h"
#include "base/memory.h"

#include <string.h>

typedef struct loading {
    const char *path;
    const sf_run_visitor *visitor;
    json_t *config_json; /* the first line; the configuration's labels live in it */
    sf_config config;
    safer_summary summary;
} loading;

static safer_status read_config(loading *r, json_t *object, uint64_t seal, safer_error *error)
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

static safer_status take_line(void *context, json_t *object, uint64_t seal, size_t line, safer_error *error)
{
    loading *r = context;
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

static safer_status walk(safer_summary *out, const sf_source *source, const sf_run_visitor *visitor, safer_error *error)
{
    const char *path = source->path;
    loading r = {.path = path, .visitor = visitor};
    safer_status status = sf_sealed_walk(source, "run", 0, take_line, &r, error);
    const size_t texts = sf_shard_size(r.config.shard, r.config.texts);
    if (status == SAFER_OK && r.summary.texts != texts)
        status = sf_fail(error, SAFER_INPUT, "%s holds %zu of %zu records; resume the run", path, r.summary.texts,
                         texts);
    if (status == SAFER_OK)
        *out = r.summary;
    else
        safer_summary_free(&r.summary);
    json_decref(r.config_json);
    return status;
}

safer_status sf_run_walk(safer_summary *out, const char *path, const sf_run_visitor *visitor, safer_error *error)
{
    sf_source source;
    safer_status status = sf_source_open(&source, path, 1, error);
    if (status == SAFER_OK) status = walk(out, &source, visitor, error);
    sf_source_close(&source);
    return status;
}

/* ---------------------------------------------------------------- kept whole */

static safer_status keep_config(void *context, json_t *json, const sf_config *config, safer_error *error)
{
    sf_run *run = context;
    (void)error;
    run->config_json = json_incref(json);
    run->config = *config;
    return SAFER_OK;
}

static safer_status pass_record(void *context, json_t *json, const sf_record *record, size_t line, safer_error *error)
{
    (void)context, (void)json, (void)record, (void)line, (void)error;
    return SAFER_OK;
}

safer_status sf_run_load(sf_run *out, const char *path, safer_error *error)
{
    safer_status status;
    *out = (sf_run){.path = path};
    SF_TRY(sf_source_open(&out->source, path, 1, error));
    SF_TRY(walk(&out->summary, &out->source, &(sf_run_visitor){keep_config, pass_record, out}, error));
    out->count = out->summary.texts;
done:
    if (status != SAFER_OK) sf_run_free(out);
    return status;
}

safer_status sf_run_index(sf_run *run, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_window window = {.source = &run->source};
    uint64_t at = 0;
    run->lines = sf_alloc(run->count, sizeof *run->lines);
    if (!run->lines) return sf_fail_memory(error);
    for (size_t i = 0; i < run->count; i++) { /* all are there */
        sf_span line;
        int whole;
        SF_TRY(sf_window_line(&window, &at, &line, &whole, error));
        run->lines[i] = at;
    }
done:
    sf_window_free(&window);
    return status;
}

safer_status sf_run_record(sf_record *out, json_t **json, const sf_run *run, size_t index, sf_window *window,
                           safer_error *error)
{
    safer_status status;
    uint64_t seal, at = run->lines[index];
    const size_t number = index + 2;
    json_t *object = NULL;
    sf_span line;
    int whole;
    SF_TRY(sf_window_line(window, &at, &line, &whole, error));
    status = sf_json_parse(&object, line.bytes, line.length, JSON_REJECT_DUPLICATES, NULL);
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    if (!object) return sf_fail(error, SAFER_INPUT, "%s, line %zu: cannot be read again", run->path, number);
    SF_TRY(sf_unseal(object, line.bytes, line.length, run->config.seal, &seal, run->path, number, error));
    SF_TRY(sf_record_read(out, object, &run->config, run->path, number, error));
    *json = object;
    object = NULL;
done:
    json_decref(object);
    return status;
}

void sf_run_free(sf_run *run)
{
    safer_summary_free(&run->summary);
    free(run->lines);
    json_decref(run->config_json);
    sf_source_close(&run->source);
    *run = (sf_run){0};
}
