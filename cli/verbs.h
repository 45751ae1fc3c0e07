/* All that the program can do, as the help, the manual page and completions list it. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "cli.h"

extern const cli_verb cli_lexicon_build, cli_lexicon_import, cli_lexicon_export, cli_lexicon_show, cli_lexicon_stats,
    cli_lexicon_check, cli_lexicon_diff, cli_lexicon_audit, cli_model_convert, cli_model_average, cli_model_fit,
    cli_model_show, cli_train, cli_certify, cli_predict, cli_verify, cli_merge, cli_attack, cli_report, cli_evidence,
    cli_serve, cli_sample, cli_sweep, cli_compare, cli_devices, cli_fold, cli_label;

/* The first word of a command line: a verb, or a name for several, whose second word is the action. */
typedef struct cli_group {
    const char *name;
    const char *brief;        /* a few words, for lists */
    const char *examples;     /* of a group with actions */
    const cli_verb *verbs[9]; /* NULL after the last */
} cli_group;

extern const cli_group cli_groups[];
extern const size_t cli_group_count;

int cli_has_actions(const cli_group *group);
const char *cli_action_name(const cli_verb *verb); /* "build" of "lexicon build" */

#endif
