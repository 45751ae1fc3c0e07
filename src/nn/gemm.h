/* Matrix products in f32 by oneDNN's sgemm, each on the calling thread alone.
 *
 * This is the only file that knows oneDNN and OpenMP. Every thread of ours multiplies matrices of
 * its own, so a product must not start more threads: OpenMP is set to use one, and after every
 * product the calling thread has its own number of OpenMP threads back. (OpenMP keeps that number
 * for each thread apart.) Bits do not depend on threads, but may on M.
 *
 * Signals wait until a product is done: for AVX-512, oneDNN's sgemm uses the stack pointer as one more register that
 * points into the heap, and the frame of a signal, which the kernel would write there, destroys what it finds. */
#ifndef SF_NN_GEMM_H
#define SF_NN_GEMM_H

#include "base/error.h"

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

/* out (M, N) = left right, or out += left right when `add`. out_stride is at least N. Nothing
 * happens when M is 0. SAFER_OK, SAFER_MEMORY or SAFER_SYSTEM: without a message, since workers
 * multiply and their caller reports (sf_gemm_fail). oneDNN allocates before it writes: after
 * SAFER_MEMORY out is as it was. */
safer_status sf_gemm(sf_gemm_sides sides, float *out, size_t out_stride, sf_gemm_side left, sf_gemm_side right, int add,
                     size_t M, size_t N, size_t K);

/* The same for matrices whose rows follow each other without a gap. */
safer_status sf_gemm_dense(sf_gemm_sides sides, float *out, const float *left, const float *right, int add, size_t M,
                           size_t N, size_t K);

/* Writes the message for a status of the above, SAFER_OK for none, and returns it. */
safer_status sf_gemm_fail(safer_error *error, safer_status status);

#endif
