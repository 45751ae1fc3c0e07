/* Memory of a device, given back together. */
#ifndef SF_CUDA_MEMORY_CUH
#define SF_CUDA_MEMORY_CUH

#include "cuda/fail.cuh"

#include <stdlib.h>

namespace sf
{

struct memory {
    void **taken;
    size_t count, capacity;
}; /* zero-initialise */

inline safer_status take_bytes(void **out, memory *m, size_t bytes, safer_error *error)
{
    if (m->count == m->capacity) {
        const size_t capacity = 2 * m->capacity + 64;
        void **taken = (void **)realloc(m->taken, capacity * sizeof *taken);
        if (!taken) return fail(error, SAFER_MEMORY, "out of memory");
        m->taken = taken;
        m->capacity = capacity;
    }
    SF_CUDA_TRY(cudaMalloc(out, bytes ? bytes : 1), "taking memory");
    m->taken[m->count++] = *out;
    return SAFER_OK;
}

template <typename T> safer_status take(T **out, memory *m, size_t count, safer_error *error)
{
    return take_bytes((void **)out, m, count * sizeof **out, error);
}

/* All but the first `kept`. */
inline void give_back(memory *m, size_t kept)
{
    while (m->count > kept) cudaFree(m->taken[--m->count]);
}

inline void give_back_all(memory *m)
{
    give_back(m, 0);
    free(m->taken);
    *m = {};
}

} // namespace sf

/* For functions that return a safer_status. */
#define SF_TRY_RETURN(call) \
    do { \
        const safer_status status_ = (call); \
        if (status_ != SAFER_OK) return status_; \
    } while (0)

#endif
