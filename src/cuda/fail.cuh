/* How the plugin says what went wrong. */
#ifndef SF_CUDA_FAIL_CUH
#define SF_CUDA_FAIL_CUH

#include "nn/device.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <stdio.h>

namespace sf
{

template <typename... T>
inline safer_status fail(safer_error *error, safer_status status, const char *format, T... arguments)
{
    if (error) {
        error->status = status;
        snprintf(error->message, sizeof error->message, format, arguments...);
    }
    return status;
}

/* The status of a call of CUDA's or cuBLASLt's; `what` was being done. */
inline safer_status check(cudaError_t code, const char *what, safer_error *error)
{
    if (code == cudaSuccess) return SAFER_OK;
    (void)cudaGetLastError(); /* told here, not once more by the next kernel: memory may be taken again, less of it */
    const safer_status status = code == cudaErrorMemoryAllocation ? SAFER_MEMORY : SAFER_SYSTEM;
    return fail(error, status, "the GPU failed at %s: %s", what, cudaGetErrorString(code));
}

inline safer_status check(cublasStatus_t code, const char *what, safer_error *error)
{
    if (code == CUBLAS_STATUS_SUCCESS) return SAFER_OK;
    const safer_status status = code == CUBLAS_STATUS_ALLOC_FAILED ? SAFER_MEMORY : SAFER_SYSTEM;
    return fail(error, status, "cuBLASLt failed at %s: %s", what, cublasLtGetStatusString(code));
}

} // namespace sf

#define SF_CUDA_TRY(call, what) \
    do { \
        const safer_status status_ = sf::check((call), (what), error); \
        if (status_ != SAFER_OK) return status_; \
    } while (0)

#endif
