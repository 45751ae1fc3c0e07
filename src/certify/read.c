/* Reading a finished run, line by line, and believing nothing of it. */
#include "certify/record.h"

#include "base/memory.h"

#include <string.h>

safer_status sf_lines_read(const char *path, const char *what, size_t flags, sf_line_visit visit, void *context,
                           safer_error *error)
{
    safer_status status;
    sf_file file = {0};
    json_t *object = NULL;
    uint64_t seed = 0, check = 0; /* records are sealed with the seal of the configuration */
    size_t line = 0;
    SF_TRY(sf_file_read(&file, path, error));
    for (const char *p = file.bytes, *end = p + file.length; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const size_t length = newline ? (size_t)(newline - p) : 0;
        json_error_t where;
        line++;
        if (!newline) {
            status = sf_fail(error, SAFER_INPUT, "%s, line %zu: the record is cut; resume the %s", path, line, what);
            goto done;
        }
        object = json_loadb(p, length, JSON_REJECT_DUPLICATES | flags, &where);
        if (!object) {
            status = sf_fail(error, SAFER_INPUT, "%s, line %zu: %s", path, line, where.text);
            goto done;
        }
        SF_TRY(sf_record_unseal(object, p, length, seed, &check, path, line, error));
        if (line == 1) seed = check;
        SF_TRY(visit(context, object, check, line, error));
        json_decref(object);
        object = NULL;
        p = newline + 1;
    }
    if (line == 0) status = sf_fail(error, SAFER_INPUT, "%s is empty", path);
done:
    json_decref(object);
    sf_file_free(&file);
    return status;
}

typedef struct reading {
    const char *path;
    const sf_run_visit *visit;
    json_t *config_json; /* the first line; the configuration's labels live in it */
    sf_config config;
    safer_summary summary;
} reading;

static safer_status read_config(reading *r, json_t *object, uint64_t check, safer_error *error)
{
    safer_status status;
    r->config_json = json_incref(object);
    SF_TRY(sf_config_read(&r->config, object, r->path, error));
    r->config.check = check;
    if (r->visit->config) status = r->visit->config(r->visit->context, object, &r->config, error);
done:
    return status;
}

static safer_status read_line(void *context, json_t *object, uint64_t check, size_t line, safer_error *error)
{
    reading *r = context;
    safer_status status;
    if (line == 1) return read_config(r, object, check, error);
    SF_TRY(sf_record_in_place(object, r->path, line, error));
    SF_TRY(sf_record_recheck(object, &r->config, r->path, line, error));
    SF_TRY(sf_summary_add(&r->summary, object, r->path, line, error));
    if (r->visit->record) status = r->visit->record(r->visit->context, object, line, error);
done:
    return status;
}

safer_status sf_run_read(safer_summary *out, const char *path, const sf_run_visit *visit, safer_error *error)
{
    reading r = {.path = path, .visit = visit};
    safer_status status = sf_lines_read(path, "run", 0, read_line, &r, error);
    if (status == SAFER_OK && r.summary.texts != r.config.texts)
        status = sf_fail(error, SAFER_INPUT, "%s holds %zu records of %zu; resume the run", path, r.summary.texts,
                         r.config.texts);
    if (status == SAFER_OK) *out = r.summary;
    json_decref(r.config_json);
    return status;
}

/* -------------------------------------------------------------- kept whole */

typedef struct keeping {
    sf_kept_run *run;
    size_t capacity;
} keeping;

static safer_status keep_config(void *context, json_t *json, const sf_config *config, safer_error *error)
{
    sf_kept_run *run = ((keeping *)context)->run;
    (void)error;
    run->config_json = json_incref(json);
    run->config = *config;
    return SAFER_OK;
}

static safer_status keep_record(void *context, json_t *record, size_t line, safer_error *error)
{
    keeping *k = context;
    (void)line;
    if (sf_grow(&k->run->records, &k->capacity, k->run->count + 1, sizeof *k->run->records))
        return sf_fail_memory(error);
    k->run->records[k->run->count++] = json_incref(record);
    return SAFER_OK;
}

safer_status sf_run_load(sf_kept_run *out, const char *path, safer_error *error)
{
    keeping k = {.run = out};
    *out = (sf_kept_run){.path = path};
    safer_status status = sf_run_read(&out->summary, path, &(sf_run_visit){keep_config, keep_record, &k}, error);
    if (status != SAFER_OK) sf_run_free(out);
    return status;
}

void sf_run_free(sf_kept_run *run)
{
    for (size_t i = 0; i < run->count; i++) json_decref(run->records[i]);
    free(run->records);
    json_decref(run->config_json);
    *run = (sf_kept_run){0};
}

safer_status sf_run_belongs(const sf_kept_run *run, const safer_model *model, const safer_lexicon *lexicon,
                            const safer_data *data, safer_error *error)
{
    static const struct {
        const char *member, *name;
    } parts[] = {{"model", "model"},
                 {"lexicon", "lexicon"},
                 {"data", "data set, or to other rows of it"},
                 {"labels", "list of labels"}};
    const char *other = "version or configuration";
    json_t *expected = sf_config_json(model, lexicon, data, &run->config.options);
    if (!expected) return sf_fail_memory(error);
    int same = json_equal(expected, run->config_json);
    for (size_t i = sizeof parts / sizeof parts[0]; i-- > 0;)
        if (!json_equal(json_object_get(expected, parts[i].member), json_object_get(run->config_json, parts[i].member)))
            other = parts[i].name;
    json_decref(expected);
    return same ? SAFER_OK : sf_fail(error, SAFER_INPUT, "%s belongs to another %s", run->path, other);
}
