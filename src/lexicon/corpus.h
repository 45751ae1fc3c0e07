/* Words counted in data sets, and each text as the numbers of its words. */
#ifndef SF_LEXICON_CORPUS_H
#define SF_LEXICON_CORPUS_H

#include "base/words.h"
#include "text/fold.h"

typedef struct sf_corpus {
    size_t texts, tokens;
    uint64_t *counts;  /* of each word of the set */
    uint64_t *offsets; /* texts+1 */
    uint32_t *ids;     /* the words of each text that are in the set, in order */
} sf_corpus;

/* Looks the words of data sets up in `words`; of folded texts, where there is a fold. */
safer_status sf_corpus_of(sf_corpus *out, const safer_data *const *sets, size_t count, const sf_words_view *words,
                          const sf_fold *fold, int threads, const safer_progress *progress, safer_error *error);

void sf_corpus_free(sf_corpus *corpus);

/* Renames word numbers: map[old] is the new number, or SF_NONE to drop the word. */
void sf_corpus_renumber(sf_corpus *corpus, const uint32_t *map);

/* The share of texts for which the product of all overlaps exceeds one half. `overlap`
 * is indexed by word number; `scratch` holds as many numbers as the longest text. */
double sf_corpus_share_above_half(const sf_corpus *corpus, const double *overlap, double *scratch);
size_t sf_corpus_longest(const sf_corpus *corpus);

#endif
