/* Principal directions: those that most differences between vectors lie in. */
#ifndef SF_TRAIN_PRINCIPAL_H
#define SF_TRAIN_PRINCIPAL_H

#include "base/error.h"

#include <stddef.h>

typedef struct sf_principal {
    double *mean;       /* (dim) */
    double *values;     /* (dim), falling: of the sample's sums of squares along each direction */
    double *directions; /* (dim, dim): row i belongs to value i, and has length 1 */
} sf_principal;

/* Of vectors (count, dim), `count` at least 1: the mean of all, and the directions of a sample, spread evenly. The same
 * for any number of threads: every sum is that of one, over vectors in their order. */
safer_status sf_principal_find(sf_principal *out, const float *vectors, size_t count, size_t dim, size_t sample,
                               int threads, safer_error *error);
void sf_principal_free(sf_principal *principal);

#endif
