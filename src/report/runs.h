/* The runs of a report: every record read, checked, and kept as numbers. */
#ifndef SF_REPORT_RUNS_H
#define SF_REPORT_RUNS_H

#include "base/buffer.h"
#include "certify/record.h"

/* What a record says of its text. Classes are numbers of the run's labels, -1 for none. */
typedef struct sf_entry {
    size_t id; /* where it begins in the run's ids */
    int label, prediction, base, target;
    size_t words, slots, visible, radius;
    uint64_t n, queries;
    double bound, q; /* 0 in a run by interval bounds, which has instead */
    double margin;   /* the target's least lead over another class, in logits */
    int abstained, exact, certified;
} sf_entry;

typedef struct sf_run {
    const char *path; /* as the caller gave it */
    char *name;       /* what the report calls it */
    json_t *json;     /* the configuration */
    sf_config config;
    safer_summary summary;
    sf_entry *entries;
    size_t count, capacity;
    sf_buffer ids; /* terminated, one after the other */
    int has_data;  /* the report was given its texts, */
    int lexicon;   /* and the lexicon of this number; -1: none */
} sf_run;

/* Reads a run; zero-initialise it first, and free it whether or not this succeeds. */
safer_status sf_report_run_read(sf_run *run, const char *path, safer_error *error);
void sf_report_run_free(sf_run *run);

/* Names the runs after their files: the last part of the path without its ending, or the
 * whole path where two have the same last part. A path given twice is an error. */
safer_status sf_report_runs_name(sf_run *runs, size_t count, safer_error *error);

/* Finds out which runs the data and the lexicons belong to. One that belongs to none is an
 * error. Data may be NULL. */
safer_status sf_report_runs_match(sf_run *runs, size_t count, const safer_data *data,
                                  const safer_lexicon *const *lexicons, size_t lexicon_count, safer_error *error);

const char *sf_entry_id(const sf_run *run, const sf_entry *entry);
const char *sf_run_label(const sf_run *run, int label); /* "" for -1 */

/* Whether its certificates come from votes on draws, not from interval bounds. */
int sf_run_has_votes(const sf_run *run);
int sf_runs_have_votes(const sf_run *runs, size_t count); /* one of them at least */

/* Whether the answer can be told right or wrong, and is right. */
int sf_entry_is_right(const sf_entry *entry);

#endif
