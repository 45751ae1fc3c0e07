/* Every word's component, nearest first: what `topk` takes its sets from. */
#ifndef SF_LEXICON_NEAREST_H
#define SF_LEXICON_NEAREST_H

#include "lexicon/graph.h"

typedef struct sf_nearest {
    uint64_t *offsets; /* words+1; empty ranges for words of small components */
    uint32_t *ids;     /* the word itself first, then its component by falling similarity */
} sf_nearest;

/* For words whose component has more than `floor` members: its first `limit` words.
 * rows[x] is x's vector, or NULL; `rows` may be NULL. Similarity is the inner product,
 * computed in double and rounded to float; ties go to the smaller id. Words without a
 * vector come after those with one, ordered by graph distance and then id; a word
 * without a vector ranks all others that way. */
safer_status sf_nearest_build(sf_nearest *out, const sf_graph *graph, const float *const *rows, size_t dim,
                              size_t floor, size_t limit, int threads, const safer_progress *progress,
                              safer_error *error);
void sf_nearest_free(sf_nearest *nearest);

#endif
