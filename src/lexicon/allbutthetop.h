/* All-but-the-top (Mu and Viswanath, ICLR 2018): removes the mean and the directions
 * that all word vectors share. */
#ifndef SF_LEXICON_ALLBUTTHETOP_H
#define SF_LEXICON_ALLBUTTHETOP_H

#include "base/error.h"

#include <stddef.h>

/* Changes `values` (count, dim) in place: subtracts the mean, and the projection on the
 * first `components` principal directions of the centred vectors. components < dim. The
 * rows are not scaled afterwards. */
safer_status sf_all_but_the_top(float *values, size_t count, size_t dim, size_t components, int threads,
                                safer_error *error);

/* Eigenvalues and eigenvectors of a symmetric matrix (n, n), by Jacobi rotations.
 * `matrix` is destroyed; values descend; row i of `vectors` (n, n) belongs to value i. */
safer_status sf_eigen_symmetric(double *matrix, double *values, double *vectors, size_t n, safer_error *error);

#endif
