/* What attacks made of the texts, packed for the page.
 *
 * Reads the JSON Lines of an attack: a configuration with "kind": "attack", the hashes of model
 * and data, and one record per text with its row, outcome, the answer after it, and "changes", a
 * list of {"byte", "to"}: where the word begins in the text, and what took its place. Lines
 * are sealed as those of a run. The block attacks-A holds
 *
 *   {"name": ..., "runs": [numbers], "rows": [[row, outcome, after, [at, length, to, ...]], ...]}
 *
 * where outcome is 0 failed, 1 succeeded, 2 skipped, and places are units of UTF-16. */
#ifndef SF_REPORT_ATTACKS_H
#define SF_REPORT_ATTACKS_H

#include "report/runs.h"
#include "report/writer.h"

/* What a report keeps of an attack. */
typedef struct sf_report_attack {
    const char *path;
    char method[64]; /* as its configuration calls it, cut */
    int smoothed;    /* it attacked the smoothed classifier, not the model itself */
    size_t texts;    /* that it was to attack; `summary.texts` are there */
    safer_attack_summary summary;
    unsigned char of_run[SF_MOST_RUNS]; /* it attacked the model of this run */
    unsigned char *outcomes; /* (sf_page_rows of the data): a safer_outcome + 1 for every text shown; 0: none */
    sf_writer packed;        /* attacks-A, before it is packed */
} sf_report_attack;

/* Reads an attack; the first `count` of the texts shown are in the page. One on other data, or on the model of none of
 * the runs, is an error. Zero-initialise it first, and free it whether or not this succeeds. */
safer_status sf_report_attack_read(sf_report_attack *attack, const char *path, const sf_report_run *runs,
                                   size_t run_count, const safer_data *data, size_t count, safer_error *error);
void sf_report_attack_free(sf_report_attack *attack);

/* Writes attacks-A. */
void sf_report_attack_put(sf_writer *out, const sf_report_attack *attack, size_t number);

/* What attacks on the model of a run made of the text in a place of those shown, all of them together. */
typedef enum sf_fate {
    SF_NOT_ATTACKED,
    SF_HELD,         /* all failed */
    SF_FELL,         /* one of them succeeded */
    SF_WRONG_BEFORE, /* none succeeded; for one of them the answer was wrong already */
} sf_fate;
sf_fate sf_report_fate(const sf_report_attack *attacks, size_t count, size_t run, size_t place);

#endif
