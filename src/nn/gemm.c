/* Matrix products in f32 by oneDNN's sgemm, each on the calling thread alone. */
#define _GNU_SOURCE
#include "nn/gemm.h"

#include <oneapi/dnnl/dnnl.h>
#include <signal.h>

/* From libgomp, which oneDNN uses; <omp.h> belongs to one compiler. */
extern void omp_set_num_threads(int threads);
extern int omp_get_max_threads(void);

safer_status sf_gemm(sf_gemm_sides sides, float *out, size_t out_stride, sf_gemm_side left, sf_gemm_side right, int add,
                     size_t M, size_t N, size_t K)
{
    if (M == 0) return SAFER_OK;
    sigset_t all, before;
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const dnnl_status_t result = dnnl_sgemm(sides == SF_GEMM_TN ? 'T' : 'N', sides == SF_GEMM_NT ? 'T' : 'N',
                                            (dnnl_dim_t)M, (dnnl_dim_t)N, (dnnl_dim_t)K, 1.0f, left.values,
                                            (dnnl_dim_t)left.stride, right.values, (dnnl_dim_t)right.stride,
                                            add ? 1.0f : 0.0f, out, (dnnl_dim_t)out_stride);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    omp_set_num_threads(threads);
    if (result == dnnl_success) return SAFER_OK;
    return result == dnnl_out_of_memory ? SAFER_MEMORY : SAFER_SYSTEM;
}

safer_status sf_gemm_dense(sf_gemm_sides sides, float *out, const float *left, const float *right, int add, size_t M,
                           size_t N, size_t K)
{
    const sf_gemm_side a = {left, sides == SF_GEMM_TN ? M : K}, b = {right, sides == SF_GEMM_NT ? K : N};
    return sf_gemm(sides, out, N, a, b, add, M, N, K);
}

safer_status sf_gemm_fail(safer_error *error, safer_status status)
{
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    return status == SAFER_OK ? SAFER_OK : sf_fail(error, status, "a matrix product failed (dnnl_sgemm)");
}
