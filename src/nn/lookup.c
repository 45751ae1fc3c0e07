/* Convolution over words by table look-up, in whole numbers.
 *
 * Each function exists in a portable version, which is the definition, and in versions
 * for AVX2 and AVX-512 that the tests compare with it bit by bit. */
#include "nn/lookup.h"

#include <assert.h>
#include <string.h>

#if SF_HAVE_X86
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* ---------------------------------------------------------------- portable */

/* The sum of window i for the 32 filters from f. */
static void window_portable(int16_t out[SF_LOOKUP_LANES], const sf_windows *w, const int16_t *const *rows, size_t i,
                            size_t f)
{
    memcpy(out, w->fixed + i * w->stride + f, SF_LOOKUP_LANES * sizeof *out);
    for (size_t t = 0; t < w->taps; t++) {
        const sf_term *term = &w->terms[i * w->taps + t];
        const int16_t *row = rows[term->slot] + term->offset + f;
        for (int l = 0; l < SF_LOOKUP_LANES; l++) out[l] = (int16_t)(out[l] + row[l]);
    }
}

static void sum_portable(uint32_t *sums, const sf_windows *w, const int16_t *const *rows, size_t F)
{
    int16_t x[SF_LOOKUP_LANES];
    for (size_t f = 0; f < F; f += SF_LOOKUP_LANES)
        for (size_t i = 0; i < w->count; i++) {
            window_portable(x, w, rows, i, f);
            for (size_t l = 0; l < SF_LOOKUP_LANES; l++) {
                const unsigned rectified = x[l] > 0 ? (unsigned)x[l] : 0;
                sums[f + l] += rectified;
            }
        }
}

static void max_portable(int16_t *tops, const sf_windows *w, const int16_t *const *rows, size_t F)
{
    int16_t x[SF_LOOKUP_LANES];
    for (size_t f = 0; f < F; f += SF_LOOKUP_LANES)
        for (size_t i = 0; i < w->count; i++) {
            window_portable(x, w, rows, i, f);
            for (size_t l = 0; l < SF_LOOKUP_LANES; l++)
                if (x[l] > tops[f + l]) tops[f + l] = x[l];
        }
}

/* Lanes of one accumulator block: long enough to hide the latency of the adds. */
enum { AFFINE_BLOCK = 64 };

INLINE void affine_block(float *out, const float *inp, const float *weight, const float *bias, size_t C, size_t OC,
                         size_t lanes)
{
    float sum[AFFINE_BLOCK];
    for (size_t l = 0; l < lanes; l++) sum[l] = bias ? bias[l] : 0.0f;
    for (size_t c = 0; c < C; c++) {
        const float x = inp[c], *row = weight + c * OC;
        for (size_t l = 0; l < lanes; l++) sum[l] += x * row[l];
    }
    memcpy(out, sum, lanes * sizeof *out);
}

static void affine_portable(float *out, const float *inp, const float *weight, const float *bias, size_t C, size_t OC)
{
    for (size_t o = 0; o < OC; o += 16) affine_block(out + o, inp, weight + o, bias ? bias + o : NULL, C, OC, 16);
}

#if SF_HAVE_X86

/* ------------------------------------------------------------------- AVX2 */

/* N vectors of 16 filters; T drawn words per window, or as many as there are when T is 0.
 * With constants for both the loops unroll and the sums stay in registers. */
#define TARGET SF_TARGET_AVX2

INLINE TARGET __m256i window_avx2(const int16_t *fixed, const sf_term *terms, size_t taps, const int16_t *const *rows,
                                  size_t f)
{
    __m256i x = _mm256_load_si256((const __m256i *)(const void *)(fixed + f));
    for (size_t t = 0; t < taps; t++)
        x = _mm256_add_epi16(x, _mm256_load_si256(
                                    (const __m256i *)(const void *)(rows[terms[t].slot] + terms[t].offset + f)));
    return x;
}

INLINE TARGET void sum_block_avx2(uint32_t *sums, const sf_windows *w, const int16_t *const *rows, size_t f,
                                  size_t taps)
{
    const __m256i zero = _mm256_setzero_si256(), low = _mm256_set1_epi32(0xffff);
    __m256i even[2] = {zero, zero}, odd[2] = {zero, zero};
    for (size_t i = 0; i < w->count;) {
        __m256i four[2] = {zero, zero};
        size_t end = w->count - i > 4 ? i + 4 : w->count;
        for (; i < end; i++)
            for (size_t n = 0; n < 2; n++) {
                __m256i x = window_avx2(w->fixed + i * w->stride, w->terms + i * taps, taps, rows, f + 16 * n);
                four[n] = _mm256_add_epi16(four[n], _mm256_max_epi16(x, zero));
            }
        for (size_t n = 0; n < 2; n++) {
            even[n] = _mm256_add_epi32(even[n], _mm256_and_si256(four[n], low));
            odd[n] = _mm256_add_epi32(odd[n], _mm256_srli_epi32(four[n], 16));
        }
    }
    for (size_t n = 0; n < 2; n++) {
        uint32_t a[8], b[8];
        _mm256_storeu_si256((__m256i *)(void *)a, even[n]);
        _mm256_storeu_si256((__m256i *)(void *)b, odd[n]);
        for (size_t l = 0; l < 8; l++) {
            sums[f + 16 * n + 2 * l] += a[l];
            sums[f + 16 * n + 2 * l + 1] += b[l];
        }
    }
}

static TARGET void sum_avx2(uint32_t *sums, const sf_windows *w, const int16_t *const *rows, size_t F)
{
    for (size_t f = 0; f < F; f += SF_LOOKUP_LANES) switch (w->taps) {
        case 1: sum_block_avx2(sums, w, rows, f, 1); break;
        case 2: sum_block_avx2(sums, w, rows, f, 2); break;
        case 3: sum_block_avx2(sums, w, rows, f, 3); break;
        default: sum_block_avx2(sums, w, rows, f, w->taps);
        }
}

static TARGET void max_avx2(int16_t *tops, const sf_windows *w, const int16_t *const *rows, size_t F)
{
    for (size_t f = 0; f < F; f += 16) {
        __m256i top = _mm256_loadu_si256((const __m256i *)(const void *)(tops + f));
        for (size_t i = 0; i < w->count; i++)
            top = _mm256_max_epi16(top,
                                   window_avx2(w->fixed + i * w->stride, w->terms + i * w->taps, w->taps, rows, f));
        _mm256_storeu_si256((__m256i *)(void *)(tops + f), top);
    }
}

static TARGET void affine_avx2(float *out, const float *inp, const float *weight, const float *bias, size_t C,
                               size_t OC)
{
    size_t o = 0;
    for (; o + 64 <= OC; o += 64) affine_block(out + o, inp, weight + o, bias ? bias + o : NULL, C, OC, 64);
    for (; o < OC; o += 16) affine_block(out + o, inp, weight + o, bias ? bias + o : NULL, C, OC, 16);
}
#undef TARGET

/* ---------------------------------------------------------------- AVX-512 */

#define TARGET __attribute__((target("avx512f,avx512bw")))

INLINE TARGET __m512i row_avx512(const int16_t *row) { return _mm512_load_si512((const void *)row); }

/* N vectors of 32 filters each. */
INLINE TARGET void sum_block_avx512(uint32_t *sums, const sf_windows *w, const int16_t *const *rows, size_t f,
                                    size_t taps, size_t N)
{
    const __m512i zero = _mm512_setzero_si512(), low = _mm512_set1_epi32(0xffff);
    const __m512i first = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    __m512i even[4], odd[4];
    for (size_t n = 0; n < N; n++) even[n] = odd[n] = zero;
    for (size_t i = 0; i < w->count;) {
        __m512i four[4];
        size_t end = w->count - i > 4 ? i + 4 : w->count;
        for (size_t n = 0; n < N; n++) four[n] = zero;
        for (; i < end; i++) {
            const int16_t *fixed = w->fixed + i * w->stride + f;
            const sf_term *terms = w->terms + i * taps;
            __m512i x[4];
            for (size_t n = 0; n < N; n++) x[n] = row_avx512(fixed + 32 * n);
            for (size_t t = 0; t < taps; t++) {
                const int16_t *row = rows[terms[t].slot] + terms[t].offset + f;
                for (size_t n = 0; n < N; n++) x[n] = _mm512_add_epi16(x[n], row_avx512(row + 32 * n));
            }
            for (size_t n = 0; n < N; n++) four[n] = _mm512_add_epi16(four[n], _mm512_max_epi16(x[n], zero));
        }
        for (size_t n = 0; n < N; n++) {
            even[n] = _mm512_add_epi32(even[n], _mm512_and_si512(four[n], low));
            odd[n] = _mm512_add_epi32(odd[n], _mm512_srli_epi32(four[n], 16));
        }
    }
    for (size_t n = 0; n < N; n++) { /* even and odd filters back in line */
        uint32_t *at = sums + f + 32 * n;
        __m512i a = _mm512_permutex2var_epi32(even[n], first, odd[n]),
                b = _mm512_permutex2var_epi32(even[n], second, odd[n]);
        _mm512_storeu_si512(at, _mm512_add_epi32(a, _mm512_loadu_si512(at)));
        _mm512_storeu_si512(at + 16, _mm512_add_epi32(b, _mm512_loadu_si512(at + 16)));
    }
}

INLINE TARGET void sum_taps_avx512(uint32_t *sums, const sf_windows *w, const int16_t *const *rows, size_t F,
                                   size_t taps)
{
    size_t f = 0;
    for (; f + 128 <= F; f += 128) sum_block_avx512(sums, w, rows, f, taps, 4);
    for (; f + 64 <= F; f += 64) sum_block_avx512(sums, w, rows, f, taps, 2);
    for (; f < F; f += 32) sum_block_avx512(sums, w, rows, f, taps, 1);
}

static TARGET void sum_avx512(uint32_t *sums, const sf_windows *w, const int16_t *const *rows, size_t F)
{
    switch (w->taps) {
    case 1: sum_taps_avx512(sums, w, rows, F, 1); break;
    case 2: sum_taps_avx512(sums, w, rows, F, 2); break;
    case 3: sum_taps_avx512(sums, w, rows, F, 3); break;
    default: sum_taps_avx512(sums, w, rows, F, w->taps);
    }
}

static TARGET void max_avx512(int16_t *tops, const sf_windows *w, const int16_t *const *rows, size_t F)
{
    for (size_t f = 0; f < F; f += 32) {
        __m512i top = _mm512_loadu_si512(tops + f);
        for (size_t i = 0; i < w->count; i++) {
            const sf_term *terms = w->terms + i * w->taps;
            __m512i x = row_avx512(w->fixed + i * w->stride + f);
            for (size_t t = 0; t < w->taps; t++)
                x = _mm512_add_epi16(x, row_avx512(rows[terms[t].slot] + terms[t].offset + f));
            top = _mm512_max_epi16(top, x);
        }
        _mm512_storeu_si512(tops + f, top);
    }
}

INLINE TARGET void affine_block_avx512(float *out, const float *inp, const float *weight, const float *bias, size_t C,
                                       size_t OC, size_t N)
{
    __m512 sum[8];
    for (size_t n = 0; n < N; n++) sum[n] = bias ? _mm512_loadu_ps(bias + 16 * n) : _mm512_setzero_ps();
    for (size_t c = 0; c < C; c++) {
        const __m512 x = _mm512_set1_ps(inp[c]);
        for (size_t n = 0; n < N; n++) /* two operations: a fused one would round differently */
            sum[n] = _mm512_add_ps(sum[n], _mm512_mul_ps(x, _mm512_loadu_ps(weight + c * OC + 16 * n)));
    }
    for (size_t n = 0; n < N; n++) _mm512_storeu_ps(out + 16 * n, sum[n]);
}

static TARGET void affine_avx512(float *out, const float *inp, const float *weight, const float *bias, size_t C,
                                 size_t OC)
{
    size_t o = 0;
    for (; o + 128 <= OC; o += 128) affine_block_avx512(out + o, inp, weight + o, bias ? bias + o : NULL, C, OC, 8);
    for (; o + 64 <= OC; o += 64) affine_block_avx512(out + o, inp, weight + o, bias ? bias + o : NULL, C, OC, 4);
    for (; o < OC; o += 16) affine_block_avx512(out + o, inp, weight + o, bias ? bias + o : NULL, C, OC, 1);
}
#undef TARGET

#endif

/* ---------------------------------------------------------------- dispatch */

void sf_lookup_sum(uint32_t *sums, const sf_windows *windows, const int16_t *const *rows, size_t F, sf_isa isa)
{
    assert(F % SF_LOOKUP_LANES == 0);
    SF_DISPATCH(isa, sum, sums, windows, rows, F);
}

void sf_lookup_max(int16_t *tops, const sf_windows *windows, const int16_t *const *rows, size_t F, sf_isa isa)
{
    assert(F % SF_LOOKUP_LANES == 0);
    SF_DISPATCH(isa, max, tops, windows, rows, F);
}

void sf_lookup_quantise(int16_t *out, const float *inp, const float *scale, int limit, size_t F)
{
    const float high = (float)limit, magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to whole numbers */
    for (size_t f = 0; f < F; f++) {
        float x = inp[f] * scale[f];
        x = x > high ? high : x < -high ? -high : x == x ? x : 0; /* absurd weights may give NaN */
        out[f] = (int16_t)((x + magic) - magic);
    }
}

void sf_affine(float *out, const float *inp, const float *weight, const float *bias, size_t C, size_t OC, sf_isa isa)
{
    assert(OC % 16 == 0);
    SF_DISPATCH(isa, affine, out, inp, weight, bias, C, OC);
}
