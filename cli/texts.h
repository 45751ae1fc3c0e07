/* Texts that a verb is given: its arguments, or the lines of standard input where there are none. */
#ifndef CLI_TEXTS_H
#define CLI_TEXTS_H

#include <stddef.h>

typedef struct cli_given {
    char **arguments;
    size_t count, next; /* next: the number of texts so far */
    char *line;         /* owned */
    size_t capacity;
} cli_given; /* arguments and count set, else zeros */

/* 1 for a text, which holds until the next call; 0 at the end; -1 when it cannot be read. */
int cli_next_text(cli_given *texts, const char **text, size_t *length);

#endif
