/* Finished runs, read back and checked. */
#ifndef SF_CERTIFY_READ_H
#define SF_CERTIFY_READ_H

#include "certify/summary.h"

/* Sees a run as it is read: `config` once, then `record` for every text in order, with its JSON. What
 * they want to keep they copy, or take a reference to. */
typedef struct sf_run_visitor {
    safer_status (*config)(void *context, json_t *json, const sf_config *config, safer_error *error);
    safer_status (*record)(void *context, json_t *json, const sf_record *record, size_t line, safer_error *error);
    void *context;
} sf_run_visitor;

/* Reads a finished run and checks it on the way: every seal and decision, and that no record
 * is missing, repeated or out of place. The first line that does not hold is an error that names it.
 * The summary's `seconds` is 0; it ends with safer_summary_free. */
safer_status sf_run_walk(safer_summary *out, const char *path, const sf_run_visitor *visitor, safer_error *error);

/* A whole run, read in this way and kept. */
typedef struct sf_run {
    const char *path; /* borrowed */
    json_t *config_json;
    sf_config config;
    sf_record *records; /* (count) */
    json_t **json;      /* (count): of the records */
    size_t count;
    safer_summary summary;
} sf_run;

safer_status sf_run_load(sf_run *out, const char *path, safer_error *error);
void sf_run_free(sf_run *run); /* an all-zero run is fine */

/* Whether the run was made with this model, lexicon and data. */
safer_status sf_run_belongs(const sf_run *run, const safer_model *model, const safer_lexicon *lexicon,
                            const safer_data *data, safer_error *error);

#endif
