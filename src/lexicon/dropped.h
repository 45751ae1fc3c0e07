/* Words that were read and are not in the lexicon, or have no synonyms there, each with the reason: docs/lexicon.md
 * lists the reasons. A user who misses a word finds it here. */
#ifndef SF_LEXICON_DROPPED_H
#define SF_LEXICON_DROPPED_H

#include "base/words.h"

typedef struct sf_dropped {
    int wanted;     /* 0: nothing is kept */
    sf_words lines; /* "word TAB reason", each once */
} sf_dropped;       /* zero-initialise */

/* Notes a word as it was read; what is not UTF-8 in it becomes U+FFFD. `dropped` may be NULL. */
safer_status sf_dropped_add(sf_dropped *dropped, const char *word, size_t length, const char *reason,
                            safer_error *error);

/* Notes an entry that is not one word: "phrase" when there are several words in it, "not UTF-8" or else "no word". */
safer_status sf_dropped_add_entry(sf_dropped *dropped, const char *entry, size_t length, safer_error *error);

/* Writes word<TAB>reason lines, in the order in which they were noted, escaped as in TSV data. */
safer_status sf_dropped_write(const sf_dropped *dropped, const char *path, safer_error *error);

void sf_dropped_free(sf_dropped *dropped);

#endif
