/* The `charcnn` classifier: its own loops over rows of frames, one source for three
 * instruction sets. Sums run over taps and rows in a fixed order and lanes are features,
 * so all sets give the same bits. */
#include "model/charcnn.h"

#include <string.h>

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
#include "nn/charcnn_kernels.h"
#undef NAME
#undef TARGET

#if defined(__x86_64__)
#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2")))
#include "nn/charcnn_kernels.h"
#undef NAME
#undef TARGET

#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#include "nn/charcnn_kernels.h"
#undef NAME
#undef TARGET

#define DISPATCH(function, ...) \
    do { \
        if (isa >= SF_AVX512) \
            function##_avx512(__VA_ARGS__); \
        else if (isa >= SF_AVX2) \
            function##_avx2(__VA_ARGS__); \
        else \
            function##_portable(__VA_ARGS__); \
    } while (0)
#else
#define DISPATCH(function, ...) ((void)isa, function##_portable(__VA_ARGS__))
#endif

void sf_charcnn_first(sf_view out, uint8_t *which, const float *table, const float *bias, const uint8_t *codes,
                      size_t count, size_t block, sf_isa isa)
{
    DISPATCH(first, out, which, table, bias, codes, count, block);
}

void sf_charcnn_places(uint32_t *places, uint32_t *begin, const uint8_t *codes, size_t count)
{
    uint32_t next[SF_CHARCNN_CODES];
    memset(begin, 0, (SF_CHARCNN_CODES + 1) * sizeof *begin);
    for (size_t i = 0; i < count; i++) begin[codes[i] + 1]++;
    for (size_t c = 0; c < SF_CHARCNN_CODES; c++) {
        next[c] = begin[c];
        begin[c + 1] += begin[c];
    }
    for (size_t i = 0; i < count; i++) places[next[codes[i]]++] = (uint32_t)i;
}

void sf_charcnn_first_backward(float *dtable, float *dbias, float *spread, const float *dout, sf_view out,
                               const uint8_t *which, const uint32_t *places, const uint32_t *begin, size_t count,
                               size_t block, sf_isa isa)
{
    DISPATCH(first_backward, dtable, dbias, spread, dout, out, which, places, begin, count, block);
}

void sf_charcnn_pool(sf_view out, uint8_t *which, sf_view in, size_t count, size_t F, sf_isa isa)
{
    DISPATCH(pool, out, which, in, count, F);
}

void sf_charcnn_pool_backward(sf_view din, float *dbias, const float *dout, sf_view out, const uint8_t *which,
                              size_t count, size_t F, sf_isa isa)
{
    DISPATCH(pool_backward, din, dbias, dout, out, which, count, F);
}

void sf_charcnn_relu_backward(sf_view din, float *dbias, const float *dout, sf_view out, size_t rows, size_t F,
                              sf_isa isa)
{
    DISPATCH(relu_backward, din, dbias, dout, out, rows, F);
}
