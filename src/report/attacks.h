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

/* Writes attacks-A for the first `count` texts. An attack on other data, or on the model of
 * none of the runs, is an error. */
safer_status sf_report_attack(sf_writer *out, const char *path, size_t number, const sf_report_run *runs,
                              size_t run_count, const safer_data *data, size_t count, safer_error *error);

#endif
