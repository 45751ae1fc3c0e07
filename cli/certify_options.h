/* The options of a certificate. */
#ifndef CLI_CERTIFY_OPTIONS_H
#define CLI_CERTIFY_OPTIONS_H

#include "cli.h"

typedef struct cli_certify_flags {
    const char *method, *radius, *deletion, *edit_kind;
    uint64_t groups, edits;
    uint64_t batch;
    safer_certify_options options;
} cli_certify_flags;

cli_certify_flags cli_certify_default(void);
void cli_test_options(cli_options *options, cli_certify_flags *c); /* method, n, n0, delta and alpha */
void cli_edit_options(cli_options *options, cli_certify_flags *c); /* delete, groups, edits and edit-kind */
void cli_certify_options(cli_options *options, cli_certify_flags *c,
                         const char *seed_help); /* with radius, seed, batch */
void cli_radius_option(cli_options *options, const char **radius);
#define CLI_SEED_HELP "of the random draws (default {default})"
#define CLI_DELETE_HELP "keep:K, K of 256 stay (default {default})"

/* Turns the flags into options, or says what is wrong and exits. */
void cli_certify_finish(cli_certify_flags *c, const cli_verb *verb);

/* The part of it that is about method, deletion, groups and edits; `method` of the options is that of the flags. */
safer_status cli_edits_finish(cli_certify_flags *c, safer_error *error);

/* "all" or a number of words from 1; cli_radius_of gives 0 for anything else, cli_radius
 * says what is wrong and exits. */
size_t cli_radius_of(const char *text);
size_t cli_radius(const char *text, const cli_verb *verb);

/* --delete: a chance or keep:K; --groups: a number, 0 for none. cli_deletion says what is wrong and exits; as JSON the
 * first is a number or a string. */
safer_deletion cli_deletion(const char *text, uint64_t groups, const cli_verb *verb);
json_t *cli_deletion_json(safer_deletion deletion);
int cli_deletes(safer_deletion deletion); /* either of them */

/* Refuses a seed that records could not hold: says so and exits. */
void cli_check_seed(uint64_t seed, const cli_verb *verb);

#endif
