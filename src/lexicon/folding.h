/* The fold of a lexicon in the making: its table, and words brought to the spelling that folded texts have. */
#ifndef SF_LEXICON_FOLDING_H
#define SF_LEXICON_FOLDING_H

#include "base/words.h"
#include "lexicon/table.h"
#include "lexicon/vectors.h"
#include "text/fold.h"

#include <jansson.h>

typedef struct sf_folding {
    sf_buffer table; /* empty: nothing is folded */
    sf_fold fold;
    json_t *spellings;   /* folded word -> the words, spelled otherwise, that became it; in order */
    size_t lost;         /* words that fold to nothing, or to several words, */
    sf_dropped *dropped; /* noted here; may be NULL */
} sf_folding;            /* zero-initialise */

/* Begins with a specification; NULL and "none": nothing is folded. */
safer_status sf_folding_begin(sf_folding *folding, const char *spec, safer_error *error);
void sf_folding_free(sf_folding *folding);

static inline const sf_fold *sf_folding_fold(const sf_folding *folding)
{
    return folding->table.length ? &folding->fold : NULL;
}

/* Words and rows; words and pairs. Of words that fold alike the one that is spelled so already keeps its row, else the
 * first. Without a fold nothing happens. */
safer_status sf_folding_vectors(sf_folding *folding, sf_vectors *vectors, safer_error *error);
safer_status sf_folding_table(sf_folding *folding, sf_table *table, safer_error *error);

/* What provenance says: the steps, the versions, and which words of `words` other spellings were merged with. NULL
 * without memory. *merged: how many spellings. */
json_t *sf_folding_json(const sf_folding *folding, const sf_words *words, size_t *merged);

#endif
