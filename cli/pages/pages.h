/* What safer-pages writes: the manual page and completions for shells, from the tables of options. */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include "verbs.h"

/* The manual page: a template (docs/safer.1.in, which says what is filled in), of which `text` is the content. */
safer_status pages_manual(FILE *out, const char *text, safer_error *error);

void pages_bash(FILE *out);
void pages_zsh(FILE *out);
void pages_fish(FILE *out);

#endif
