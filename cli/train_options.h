/* The options of training. */
#ifndef CLI_TRAIN_OPTIONS_H
#define CLI_TRAIN_OPTIONS_H

#include "cli.h"

typedef struct cli_train_flags {
    const char *arch, *pool, *precision, *defense, *size, *layers, *truncation_side; /* NULL: not given */
    safer_train_options options;
} cli_train_flags;

cli_train_flags cli_train_default(void);
void cli_arch_option(cli_options *options, cli_train_flags *t);
void cli_train_options(cli_options *options, cli_train_flags *t);   /* with headings */
void cli_defense_options(cli_options *options, cli_train_flags *t); /* training by interval bounds; with a heading */

/* Reads the names of choices into the options, or says what is wrong. */
safer_status cli_train_finish(cli_train_flags *t, safer_error *error);

/* Refuses options that the architecture has no use for; `automatic`: it is not chosen yet. */
void cli_train_check_uses(const cli_train_flags *t, int automatic, const cli_verb *verb);

/* Says that --arch is missing, and exits. */
_Noreturn void cli_arch_missing(const cli_verb *verb);

#endif
