/* The results of a run, for people and for programs. */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include "cli.h"

/* "95%: 82.79 to 86.75", as percentages. Static. */
const char *cli_interval(size_t part, size_t whole);

/* The results of a run as `certify --json` prints them, and as a table. */
json_t *cli_summary_json(const safer_summary *s, uint64_t seed);
void cli_summary_print(const safer_summary *s, const safer_certify_options *options);

#endif
