/* What was tried to choose a kernel or an architecture, for people and programs. */
#ifndef CLI_TRIALS_H
#define CLI_TRIALS_H

#include "cli.h"

/* `what` was tried, "kernel" or "arch", is the member with its name. */
json_t *cli_trials_json(const safer_choice *choice, const char *what);

/* A heading and a line for each; nothing where nothing was tried. "kernels tried on 4,000 texts, WITH" */
void cli_print_trials(const safer_choice *choice, const char *plural, const char *with);

#endif
