/* The runs of a report: every record read, checked and counted, and as many kept as a page can show. */
#ifndef SF_REPORT_RUNS_H
#define SF_REPORT_RUNS_H

#include "base/buffer.h"
#include "certify/read.h"
#include "report/counts.h"

/* A page that lists more texts than this is slow to open. Of more texts, so many are shown, spread evenly over the
 * data; figures and pictures are about all of them. */
enum { SF_PAGE_ROWS = 100000 };

enum { SF_MOST_RUNS = 16 }; /* that colours and broken lines can distinguish */

/* How many of so many texts are shown, and which is the k-th of them; both from 0. */
size_t sf_page_rows(size_t texts);
size_t sf_page_row(size_t texts, size_t k);

/* What a report keeps of a run. */
typedef struct sf_report_run {
    const char *path; /* as the caller gave it */
    char *name;       /* what the report calls it */
    json_t *json;     /* the configuration */
    sf_config config;
    safer_summary summary;
    size_t count;       /* of its texts, */
    sf_record *records; /* and of those that are shown; their ids are in `ids`, their JSON is gone, q is sf_shown_q */
    size_t shown, capacity;
    sf_buffer ids;     /* terminated, one after the other */
    sf_counts *counts; /* of all texts */
    sf_buffer held;    /* a bit for each, the lowest first: it is certified for its own label, and answered */
    uint64_t hash;     /* of what the model answered to all of them */
    int has_data;      /* the report was given its texts, */
    int lexicon;       /* and the lexicon of this number; -1: none */
} sf_report_run;

/* Reads a run; zero-initialise it first, and free it whether or not this succeeds. */
safer_status sf_report_run_read(sf_report_run *run, const char *path, safer_error *error);
void sf_report_run_free(sf_report_run *run);

/* Names the runs after their files: the last part of the path without its ending, or the
 * whole path where two have the same last part. A path given twice is an error. */
safer_status sf_report_runs_name(sf_report_run *runs, size_t count, safer_error *error);

/* Finds out which runs the data and the lexicons belong to. One that belongs to none is an
 * error. Data may be NULL. */
safer_status sf_report_runs_match(sf_report_run *runs, size_t count, const safer_data *data,
                                  const safer_lexicon *const *lexicons, size_t lexicon_count, safer_error *error);

const char *sf_report_run_label(const sf_report_run *run, int label); /* "" for -1 */

/* Whether its certificates come from votes on draws, not from interval bounds. */
int sf_report_run_has_votes(const sf_report_run *run);
int sf_report_run_has_edits(const sf_report_run *run);        /* and from draws that delete words */
int sf_report_run_held(const sf_report_run *run, size_t row); /* from 0, of all texts */

#endif
