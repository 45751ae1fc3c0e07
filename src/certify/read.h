/* Finished runs, read back and checked. */
#ifndef SF_CERTIFY_READ_H
#define SF_CERTIFY_READ_H

#include "base/source.h"
#include "certify/summary.h"

/* Sees a run as it is read: `config` once, then `record` for every text in order, with its JSON. What
 * they want to keep they copy, or take a reference to. */
typedef struct sf_run_visitor {
    safer_status (*config)(void *context, json_t *json, const sf_config *config, safer_error *error);
    safer_status (*record)(void *context, json_t *json, const sf_record *record, size_t line, safer_error *error);
    void *context;
} sf_run_visitor;

/* Reads a finished run, or a part of one, and checks it on the way: every seal and decision, and that no record
 * is missing, repeated or out of place. The first line that does not hold is an error that names it.
 * The summary's `seconds` is 0; it ends with safer_summary_free. */
safer_status sf_run_walk(safer_summary *out, const char *path, const sf_run_visitor *visitor, safer_error *error);

/* A whole run, read in this way. It stays where it is, on the disk: a record is read again when it is asked for, so
 * that a run of any length needs little memory. Any threads may read one. */
typedef struct sf_run {
    const char *path; /* borrowed */
    sf_source source;
    json_t *config_json;
    sf_config config;
    uint64_t *lines; /* (count): where the line of each record begins; NULL before sf_run_index */
    size_t count;
    safer_summary summary;
} sf_run;

safer_status sf_run_load(sf_run *out, const char *path, safer_error *error);
void sf_run_free(sf_run *run); /* an all-zero run is fine */

/* Before records are asked for: finds their lines. */
safer_status sf_run_index(sf_run *run, safer_error *error);

/* The record of line `index` + 2. It lives as long as its JSON, which the caller releases. The window is the thread's
 * own, on the run's source. */
safer_status sf_run_record(sf_record *out, json_t **json, const sf_run *run, size_t index, sf_window *window,
                           safer_error *error);

#endif
