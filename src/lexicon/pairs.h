/* All pairs of vectors whose inner product reaches a threshold: exact, in blocks. */
#ifndef SF_LEXICON_PAIRS_H
#define SF_LEXICON_PAIRS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sf_pair {
    uint32_t a, b;    /* a < b */
    float similarity; /* the inner product, computed in double */
} sf_pair;

/* For qsort and bsearch: by a, then b. */
int sf_pair_compare(const void *left, const void *right);

typedef struct sf_pairs {
    sf_pair *items; /* sorted by a, then b; release with free */
    size_t count;
} sf_pairs;

/* The rows of `values` (count, dim) taken two at a time. A pair is in exactly when its
 * inner product, summed in double in a fixed order, is at least `threshold`. */
safer_status sf_pairs_find(sf_pairs *out, const float *values, size_t count, size_t dim, double threshold, int threads,
                           const safer_progress *progress, const char *stage, safer_error *error);

/* The same by the definition, one pair after the other: the reference for tests. */
safer_status sf_pairs_find_naive(sf_pairs *out, const float *values, size_t count, size_t dim, double threshold,
                                 safer_error *error);

#endif
