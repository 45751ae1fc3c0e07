/* The options of attacks. */
#ifndef CLI_ATTACK_OPTIONS_H
#define CLI_ATTACK_OPTIONS_H

#include "cli.h"

const char *cli_attack_methods(size_t number); /* "textfooler", ... */

/* --method; NULL: not given. */
void cli_attack_method_option(cli_options *options, const char **method);
void cli_search_options(cli_options *options, safer_attack_options *o);   /* how texts are searched */
void cli_likeness_options(cli_options *options, safer_attack_options *o); /* what replacements must have in common */
void cli_vote_options(cli_options *options, safer_attack_options *o);     /* how the smoothed classifier votes */

#endif
