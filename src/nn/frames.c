/* What a convolution over time needs beside matrix products: one source, three instruction sets. */
#include "nn/frames.h"

#include <assert.h>
#include <string.h>

#define KERNELS "nn/frames_kernels.h"
#include "nn/simd_sets.h"

void sf_frames_of_codes(sf_view out, uint8_t *which, const float *table, const float *bias, const uint8_t *codes,
                        size_t count, size_t block, sf_isa isa)
{
    SF_DISPATCH(isa, of_codes, out, which, table, bias, codes, count, block);
}

void sf_frames_places(uint32_t *places, uint32_t *begin, const uint8_t *codes, size_t count, size_t kinds)
{
    uint32_t next[UINT8_MAX + 1];
    assert(kinds <= UINT8_MAX + 1);
    memset(begin, 0, (kinds + 1) * sizeof *begin);
    for (size_t i = 0; i < count; i++) begin[codes[i] + 1]++;
    for (size_t c = 0; c < kinds; c++) {
        next[c] = begin[c];
        begin[c + 1] += begin[c];
    }
    for (size_t i = 0; i < count; i++) places[next[codes[i]]++] = (uint32_t)i;
}

void sf_frames_of_codes_backward(float *dtable, float *dbias, float *spread, const float *dout, sf_view out,
                                 const uint8_t *which, const uint32_t *places, const uint32_t *begin, size_t count,
                                 size_t block, size_t kinds, sf_isa isa)
{
    SF_DISPATCH(isa, of_codes_backward, dtable, dbias, spread, dout, out, which, places, begin, count, block, kinds);
}

void sf_frames_pool(sf_view out, uint8_t *which, sf_view in, size_t count, size_t F, sf_isa isa)
{
    SF_DISPATCH(isa, pool, out, which, in, count, F);
}

void sf_frames_pool_backward(sf_view din, float *dbias, const float *dout, sf_view out, const uint8_t *which,
                             size_t count, size_t F, sf_isa isa)
{
    SF_DISPATCH(isa, pool_backward, din, dbias, dout, out, which, count, F);
}

void sf_frames_relu_backward(sf_view din, float *dbias, const float *dout, sf_view out, size_t rows, size_t F,
                             sf_isa isa)
{
    SF_DISPATCH(isa, relu_backward, din, dbias, dout, out, rows, F);
}
