/* Reading a finished run, line by line, and believing nothing of it. */
#include "certify/record.h"

#include <string.h>

typedef struct reading {
    const char *path;
    const sf_run_visit *visit;
    json_t *config_json; /* the first line; the configuration's labels live in it */
    sf_config config;
    uint64_t seed; /* of the records' seals: the configuration's */
    size_t line;
    safer_summary summary;
} reading;

static safer_status read_config(reading *r, json_t *object, uint64_t check, safer_error *error)
{
    safer_status status;
    r->seed = check;
    r->config_json = json_incref(object);
    SF_TRY(sf_config_read(&r->config, object, r->path, error));
    if (r->visit->config) status = r->visit->config(r->visit->context, object, &r->config, error);
done:
    return status;
}

static safer_status read_record(reading *r, json_t *object, safer_error *error)
{
    safer_status status;
    SF_TRY(sf_record_in_place(object, r->path, r->line, error));
    SF_TRY(sf_record_recheck(object, &r->config, r->path, r->line, error));
    SF_TRY(sf_summary_add(&r->summary, object, r->path, r->line, error));
    if (r->visit->record) status = r->visit->record(r->visit->context, object, r->line, error);
done:
    return status;
}

static safer_status read_line(reading *r, const char *bytes, size_t length, safer_error *error)
{
    safer_status status;
    json_error_t where;
    uint64_t check;
    json_t *object = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &where);
    if (!object) return sf_fail(error, SAFER_INPUT, "%s, line %zu: %s", r->path, r->line, where.text);
    SF_TRY(sf_record_unseal(object, bytes, length, r->line == 1 ? 0 : r->seed, &check, r->path, r->line, error));
    status = r->line == 1 ? read_config(r, object, check, error) : read_record(r, object, error);
done:
    json_decref(object);
    return status;
}

safer_status sf_run_read(safer_summary *out, const char *path, const sf_run_visit *visit, safer_error *error)
{
    safer_status status;
    sf_file file = {0};
    reading r = {.path = path, .visit = visit};
    SF_TRY(sf_file_read(&file, path, error));
    for (const char *p = file.bytes, *end = p + file.length; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        r.line++;
        if (!newline) {
            status = sf_fail(error, SAFER_INPUT, "%s, line %zu: the record is cut; resume the run", path, r.line);
            goto done;
        }
        SF_TRY(read_line(&r, p, (size_t)(newline - p), error));
        p = newline + 1;
    }
    if (r.line == 0) status = sf_fail(error, SAFER_INPUT, "%s is empty", path);
    else if (r.summary.texts != r.config.texts)
        status = sf_fail(error, SAFER_INPUT, "%s holds %zu records of %zu; resume the run", path, r.summary.texts, r.config.texts);
    else *out = r.summary;
done:
    json_decref(r.config_json);
    sf_file_free(&file);
    return status;
}
