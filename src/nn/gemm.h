/* Matrix products in f32 of two sides that are used once, each on the calling thread: training, and the search for
 * synonyms. (nn/product.h is for a right side that is packed once and used often.)
 *
 * Every sum adds its products in the order of the inner dimension. So a row of the result depends on its row of the
 * left side and on the right side alone, not on M, on the other rows or on threads, and its bits are the same on all
 * processors that fuse multiplication and addition (SF_AVX2 and above), and on all that do not. Nothing here can
 * fail: 60 KB of stack are used, and no other memory. */
#ifndef SF_NN_GEMM_H
#define SF_NN_GEMM_H

#include <stddef.h>

/* Which sides lie transposed: first the left, then the right. */
typedef enum sf_gemm_sides {
    SF_GEMM_NN, /* left (M, K), right (K, N) */
    SF_GEMM_NT, /* left (M, K), right (N, K) */
    SF_GEMM_TN, /* left (K, M), right (K, N) */
} sf_gemm_sides;

/* A matrix of a product: rows as they lie, `stride` numbers from one to the next. */
typedef struct sf_gemm_side {
    const float *values;
    size_t stride; /* at least the length of a row */
} sf_gemm_side;

/* out (M, N) = left right, or out += left right when `add`. out_stride is at least N. N and K are at least 1; nothing
 * happens when M is 0. */
void sf_gemm(sf_gemm_sides sides, float *out, size_t out_stride, sf_gemm_side left, sf_gemm_side right, int add,
             size_t M, size_t N, size_t K);

/* The same for matrices whose rows follow each other without a gap. */
void sf_gemm_dense(sf_gemm_sides sides, float *out, const float *left, const float *right, int add, size_t M, size_t N,
                   size_t K);

#endif
