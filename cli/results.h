/* The results of a run, for people and for programs. */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include "cli.h"

/* The results of a run as `certify --json` prints them, and as a table. */
json_t *cli_summary_json(const safer_summary *s, uint64_t seed);
void cli_summary_print(const safer_summary *s, const safer_certify_options *options);

enum { CLI_RESULT_WIDTH = 24 }; /* of the first column of that table */

/* Says, before any figure, what makes the figures of a run say little; nothing where there is nothing to say. */
void cli_caution_print(const safer_summary *s);

/* The headline of a run, "93.41% certified and answered" (static), and the same for programs: `caution`,
 * `certified_answered`, `certified_accuracy` and `stable`. */
const char *cli_headline(const safer_summary *s);
json_t *cli_headline_json(const safer_summary *s);

/* A figure as a number from 0 to 1; null where there is nothing to count. */
json_t *cli_figure_json(size_t part, size_t whole);
json_t *cli_interval_json(size_t part, size_t whole);

/* "2 words put in, taken out or replaced"; returns `out`. */
const char *cli_edits(char out[80], safer_edit_kind kind, size_t edits);

#endif
