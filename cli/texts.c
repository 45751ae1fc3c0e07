/* Texts that a verb is given. */
#define _GNU_SOURCE
#include "texts.h"

#include <stdio.h>
#include <string.h>

int cli_next_text(cli_given *t, const char **text, size_t *length)
{
    if (t->count) {
        if (t->next == t->count) return 0;
        *text = t->arguments[t->next++];
        *length = strlen(*text);
        return 1;
    }
    ssize_t got = getline(&t->line, &t->capacity, stdin);
    if (got < 0) return ferror(stdin) ? -1 : 0;
    if (got && t->line[got - 1] == '\n') got--;
    *text = t->line;
    *length = (size_t)got;
    t->next++;
    return 1;
}
