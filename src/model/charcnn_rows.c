/* The `charcnn` classifier: its own loops over rows of frames, one source for three
 * instruction sets. Sums run over taps and rows in a fixed order and lanes are features,
 * so all sets give the same bits. */
#include "model/charcnn.h"

typedef float v16 __attribute__((vector_size(64)));
typedef int32_t v16i __attribute__((vector_size(64)));
typedef uint32_t v16u __attribute__((vector_size(64)));
typedef uint16_t v16h __attribute__((vector_size(32)));
typedef uint8_t v16b __attribute__((vector_size(16)));
/* In memory. */
typedef float v16_any __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t v16i_any __attribute__((vector_size(64), aligned(4), may_alias));
typedef int16_t v16s_any __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint16_t v16h_any __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint8_t v16b_any __attribute__((vector_size(16), aligned(1), may_alias));

#define NAME(x) x##_portable
#define TARGET
#include "model/charcnn_kernels.h"
#undef NAME
#undef TARGET

#if defined(__x86_64__)
#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2")))
#include "model/charcnn_kernels.h"
#undef NAME
#undef TARGET

#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#include "model/charcnn_kernels.h"
#undef NAME
#undef TARGET

#define DISPATCH(function, ...)                                \
    do {                                                       \
        if (isa >= SF_AVX512) function##_avx512(__VA_ARGS__);  \
        else if (isa >= SF_AVX2) function##_avx2(__VA_ARGS__); \
        else function##_portable(__VA_ARGS__);                 \
    } while (0)
#else
#define DISPATCH(function, ...) ((void)isa, function##_portable(__VA_ARGS__))
#endif

void sf_charcnn_first(sf_view out, uint8_t *which, const float *table, const float *bias, const uint8_t *codes, size_t count,
                      size_t block, sf_isa isa)
{
    DISPATCH(first, out, which, table, bias, codes, count, block);
}

void sf_charcnn_first_backward(float *dtable, float *dbias, const float *dout, sf_view out, const uint8_t *which,
                               const uint8_t *codes, size_t count, size_t block, sf_isa isa)
{
    DISPATCH(first_backward, dtable, dbias, dout, out, which, codes, count, block);
}

void sf_charcnn_pool(sf_view out, uint8_t *which, sf_view in, size_t count, size_t F, sf_isa isa)
{
    DISPATCH(pool, out, which, in, count, F);
}

void sf_charcnn_pool_backward(sf_view din, float *dbias, const float *dout, sf_view out, const uint8_t *which, size_t count,
                              size_t F, sf_isa isa)
{
    DISPATCH(pool_backward, din, dbias, dout, out, which, count, F);
}

void sf_charcnn_relu_backward(sf_view din, float *dbias, const float *dout, sf_view out, size_t rows, size_t F, sf_isa isa)
{
    DISPATCH(relu_backward, din, dbias, dout, out, rows, F);
}
