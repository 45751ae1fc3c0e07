/* Records of a run: one JSON object a line.
 *
 * The first line is the configuration, every further one a text's certificate. Each ends
 * with "check", the XXH64 of the rest (less "seconds"), seeded with the configuration's,
 * so that no edit goes unnoticed, and a record names its row, so that no line can be moved,
 * repeated or taken out. What was decided can be recomputed from what stands in
 * the record: counts, n, q and the configuration; with the method ibp: the margins. */
#ifndef SF_CERTIFY_RECORD_H
#define SF_CERTIFY_RECORD_H

#include "certify/certificate.h"

#include <jansson.h>

/* "adaptive", ... */
const char *sf_method_name(safer_method method);

/* A number, or "all". */
json_t *sf_radius_json(size_t radius);

/* A hash as 16 digits. */
json_t *sf_hex_json(uint64_t value);

/* The configuration of a run: everything that its records depend on. NULL without memory. */
json_t *sf_config_json(const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                       const safer_certify_options *options);

/* What checking a record needs of the configuration. */
typedef struct sf_config {
    safer_method method;
    double delta; /* a text's; like n and n0 of no meaning for ibp */
    uint64_t n, n0;
    size_t radius, texts;
    int unlabelled;
    int remote; /* the model lives elsewhere: some answers may be no label */
    int random; /* it answers the same text differently */
    size_t classes;
    json_t *labels; /* borrowed: array of names */
    safer_certify_options options;
    uint64_t check; /* the seal of the configuration, where it was read from a run */
} sf_config;

safer_status sf_config_read(sf_config *out, json_t *config, const char *name, safer_error *error);

/* The certificate in the workspace as a JSON object, without "seconds" and "check". `row` is
 * the text's place in the data, from 1: a record in another line is out of place. 0: the text is not
 * of a data set, and the record has no "row". */
json_t *sf_record_json(const safer_certificate *certificate, size_t row, const safer_workspace *workspace);

/* Whether the record of a line (the configuration is line 1) is the one that belongs there. */
safer_status sf_record_in_place(const json_t *record, const char *name, size_t line, safer_error *error);

/* One line with newline: the object, "seconds" and "check". NULL without memory; free it. */
char *sf_record_line(json_t *object, double seconds, uint64_t seed, size_t *length);

/* Checks a line's seal on its very bytes (without the newline) and removes "seconds" and
 * "check" from its parsed form. *check gets the seal. */
safer_status sf_record_unseal(json_t *object, const char *bytes, size_t length, uint64_t seed, uint64_t *check,
                              const char *name, size_t line, safer_error *error);

/* Recomputes every decision of a record. */
safer_status sf_record_recheck(const json_t *record, const sf_config *config, const char *name, size_t line,
                               safer_error *error);

/* Adds a record to the totals of its run. */
safer_status sf_summary_add(safer_summary *summary, const json_t *record, const char *name, size_t line,
                            safer_error *error);

/* Reads all lines of a file of records (`what` it is: a "run", an "attack"), checks their seals
 * and hands over each, without "seconds" and "check"; the first is the configuration. `flags`
 * are jansson's. */
typedef safer_status (*sf_line_visit)(void *context, json_t *object, uint64_t check, size_t line, safer_error *error);
safer_status sf_lines_read(const char *path, const char *what, size_t flags, sf_line_visit visit, void *context,
                           safer_error *error);

/* Reads a finished run and checks it on the way: every seal and decision, and that no record
 * is missing, repeated or out of place. `config` is called once, then `record` for every
 * text in order; what they want to keep they copy, or take a reference to. Either may be
 * NULL. The summary's `seconds` is 0. */
typedef struct sf_run_visit {
    safer_status (*config)(void *context, json_t *json, const sf_config *config, safer_error *error);
    safer_status (*record)(void *context, json_t *record, size_t line, safer_error *error);
    void *context;
} sf_run_visit;

safer_status sf_run_read(safer_summary *out, const char *path, const sf_run_visit *visit, safer_error *error);

/* A whole run, read in this way and kept. */
typedef struct sf_kept_run {
    const char *path; /* borrowed */
    json_t *config_json;
    sf_config config;
    json_t **records; /* (count) */
    size_t count;
    safer_summary summary;
} sf_kept_run;

/* The first line that does not hold is an error that names it. */
safer_status sf_run_load(sf_kept_run *out, const char *path, safer_error *error);
void sf_run_free(sf_kept_run *run); /* an all-zero run is fine */

/* Whether the run was made with this model, lexicon and data. */
safer_status sf_run_belongs(const sf_kept_run *run, const safer_model *model, const safer_lexicon *lexicon,
                            const safer_data *data, safer_error *error);

#endif
