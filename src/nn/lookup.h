/* Convolution over words by table look-up, in whole numbers.
 *
 * A convolution of width T over word vectors needs no matrix product once
 * U_t[w] = W_t . e_w is known for every tap t and word w: the pre-activation at a position
 * is the bias plus T rows of U. Here the rows are 16-bit fixed-point numbers. That makes
 *
 *   - sums exact, so that their order does not matter: windows of words that never change
 *     are added up once, a window's fixed taps are added up once, windows are sorted by
 *     how many of their words are drawn, and the answer is still the same to the last bit
 *     as that of the plain walk through the rendered text;
 *   - a row half as long in the cache and a register wide enough for 32 filters.
 *
 * A window's sum is at most SF_LOOKUP_LIMIT in magnitude, because every term is clamped
 * to its share when it is made (sf_lookup_quantise). Four rectified sums then fit in 16
 * unsigned bits, which is why the limit is what it is: they are widened to 32 bits once
 * in four positions. A text of up to SF_LOOKUP_POSITIONS windows cannot overflow those.
 *
 * All functions give the same bits on every instruction set: the whole-number ones
 * because they are exact, sf_affine because it is vectorised over outputs only, each
 * output being a sum in the order of the inputs without fused operations. */
#ifndef SF_NN_LOOKUP_H
#define SF_NN_LOOKUP_H

#include "nn/isa.h"

#include <stddef.h>
#include <stdint.h>

#define SF_LOOKUP_LANES 32         /* rows are a multiple of this long, and 64-byte aligned */
#define SF_LOOKUP_LIMIT 16383      /* of a window's sum */
#define SF_LOOKUP_POSITIONS 262144 /* 2^18 * SF_LOOKUP_LIMIT < 2^32 */

/* One drawn word of a window: the row at rows[slot] + offset. */
typedef struct sf_term {
    uint32_t slot, offset;
} sf_term;

/* Windows with the same number of drawn words. */
typedef struct sf_windows {
    const int16_t *fixed; /* (count, stride): bias and fixed words of each */
    size_t stride;        /* 0: one row for all */
    const sf_term *terms; /* (count, taps) */
    size_t count, taps;
} sf_windows;

/* sums[f] += max(0, window[f]) over all windows. F: a multiple of SF_LOOKUP_LANES. */
void sf_lookup_sum(uint32_t *sums, const sf_windows *windows, const int16_t *const *rows, size_t F, sf_isa isa);

/* tops[f] = max(tops[f], window[f]) over all windows. */
void sf_lookup_max(int16_t *tops, const sf_windows *windows, const int16_t *const *rows, size_t F, sf_isa isa);

/* out[f] = inp[f] * scale[f], clamped to +-limit and rounded to the nearest, ties to even. */
void sf_lookup_quantise(int16_t *out, const float *inp, const float *scale, int limit, size_t F);

/* out = bias + inp * weight: a linear layer whose bits depend on nothing but its input.
 * bias NULL: 0. OC: a multiple of 16 (pad with zeros). */
void sf_affine(float *out,          /* (OC) */
               const float *inp,    /* (C) */
               const float *weight, /* (C, OC) */
               const float *bias,   /* (OC) */
               size_t C, size_t OC, sf_isa isa);

#endif
