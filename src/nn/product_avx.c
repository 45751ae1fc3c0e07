/* The bf16 product on AVX2, AVX-512 and AVX-512-BF16.
 *
 * The first two have no bf16 arithmetic: the left side is widened to f32 as it is taken, the
 * right side as it is loaded, which is a shift for one element of a pair and a mask for the
 * other. Sums stay in registers for a few rows at a time. (On Intel's processors the bf16 dot
 * product of AVX-512 is slower than widening, 86 GFLOP/s beside 145; but those that have it
 * have AMX too. It is for AMD's.) */
#include "nn/product_kernel.h"

#if SF_HAVE_X86

#define INLINE static inline __attribute__((always_inline))

/* A step of the right side of one half, 16 pairs of 16 columns. */
enum { HALF_SIZE = SF_PAIRS * SF_HALF * 2 };

/* ---------------------------------------------------------------------- AVX2 */

#define TARGET __attribute__((target("avx2,fma")))

/* Rounds to bf16 and back to f32; NaN stays. */
INLINE TARGET __m256 round_avx2(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x), one = _mm256_set1_epi32(1);
    __m256i up = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(_mm256_srli_epi32(bits, 16), one));
    __m256i sum = _mm256_and_si256(_mm256_add_epi32(bits, up), _mm256_set1_epi32((int)0xffff0000));
    return _mm256_blendv_ps(_mm256_castsi256_ps(sum), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

INLINE TARGET __m256 take_8_avx2(sf_view in, size_t row, size_t column)
{
    if (in.type == SF_F32) return round_avx2(_mm256_loadu_ps(sf_floats(in, row) + column));
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(sf_halves(in, row) + column));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

static TARGET void take_avx2(void *out, sf_view in, size_t rows, size_t K)
{
    const size_t steps = sf_blocks(K);
    float *a = out;
    for (size_t r = 0; r < SF_BLOCK; r++) {
        size_t k = 0;
        if (r < rows) {
            for (; k + 8 <= K; k += 8)
                _mm256_storeu_ps(a + k / SF_STEP * SF_STEP_SIZE + r * SF_STEP + k % SF_STEP, take_8_avx2(in, r, k));
            for (; k < K; k++)
                a[k / SF_STEP * SF_STEP_SIZE + r * SF_STEP + k % SF_STEP] = sf_widen(
                    in.type == SF_F32 ? sf_round(sf_floats(in, r)[k]) : sf_halves(in, r)[k]);
        }
        for (; k < steps * SF_STEP; k++) a[k / SF_STEP * SF_STEP_SIZE + r * SF_STEP + k % SF_STEP] = 0;
    }
}

/* Four rows of one half: eight sums of eight columns. */
INLINE TARGET void multiply_4_avx2(float *c, const float *a, const sf_bf16 *b, size_t steps, int add)
{
    const __m256i mask = _mm256_set1_epi32((int)0xffff0000);
    __m256 sum[4][2];
    for (size_t r = 0; r < 4; r++)
        for (size_t n = 0; n < 2; n++)
            sum[r][n] = add ? _mm256_loadu_ps(c + r * SF_BLOCK + 8 * n) : _mm256_setzero_ps();
    for (size_t s = 0; s < steps; s++, a += SF_STEP_SIZE, b += SF_STEP_SIZE)
        for (size_t p = 0; p < SF_PAIRS; p++) {
            const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(b + p * 2 * SF_HALF));
            const __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(b + p * 2 * SF_HALF + 16));
            const __m256 even[2] = {_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)),
                                    _mm256_castsi256_ps(_mm256_slli_epi32(y, 16))};
            for (size_t r = 0; r < 4; r++) {
                const __m256 left = _mm256_broadcast_ss(a + r * SF_STEP + 2 * p);
                for (size_t n = 0; n < 2; n++) sum[r][n] = _mm256_fmadd_ps(left, even[n], sum[r][n]);
            }
            const __m256 odd[2] = {_mm256_castsi256_ps(_mm256_and_si256(x, mask)),
                                   _mm256_castsi256_ps(_mm256_and_si256(y, mask))};
            for (size_t r = 0; r < 4; r++) {
                const __m256 left = _mm256_broadcast_ss(a + r * SF_STEP + 2 * p + 1);
                for (size_t n = 0; n < 2; n++) sum[r][n] = _mm256_fmadd_ps(left, odd[n], sum[r][n]);
            }
        }
    for (size_t r = 0; r < 4; r++)
        for (size_t n = 0; n < 2; n++) _mm256_storeu_ps(c + r * SF_BLOCK + 8 * n, sum[r][n]);
}

static TARGET void multiply_avx2(float *c, const void *a, const void *b, size_t steps, size_t rows, int add)
{
    for (size_t half = 0; half < 2; half++)
        for (size_t r = 0; r < rows; r += 4)
            multiply_4_avx2(c + r * SF_BLOCK + half * SF_HALF, (const float *)a + r * SF_STEP,
                            (const sf_bf16 *)b + half * HALF_SIZE, steps, add);
}
#undef TARGET

const sf_kernel sf_kernel_avx2 = {256, take_avx2, multiply_avx2};

/* ------------------------------------------------------------------- AVX-512 */

#define TARGET SF_TARGET_AVX512

/* 16 elements of a row, rounded but as f32, of which `count` are there. */
INLINE TARGET __m512 take_16_avx512(sf_view in, size_t row, size_t column, size_t count)
{
    const __mmask16 mask = (__mmask16)(count < 16 ? (1u << count) - 1 : 0xffff);
    if (in.type == SF_BF16) {
        const __m256i x = _mm256_maskz_loadu_epi16(mask, sf_halves(in, row) + column);
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
    }
    const __m512 x = _mm512_maskz_loadu_ps(mask, sf_floats(in, row) + column);
    const __m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    const __m512i up = _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(_mm512_srli_epi32(bits, 16), one));
    const __m512i sum = _mm512_and_si512(_mm512_add_epi32(bits, up), _mm512_set1_epi32((int)0xffff0000));
    return _mm512_mask_mov_ps(_mm512_castsi512_ps(sum), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

static TARGET void take_avx512(void *out, sf_view in, size_t rows, size_t K)
{
    float *a = out;
    for (size_t r = 0; r < SF_BLOCK; r++)
        for (size_t k = 0; k < sf_blocks(K) * SF_STEP; k += 16)
            _mm512_storeu_ps(a + k / SF_STEP * SF_STEP_SIZE + r * SF_STEP + k % SF_STEP,
                             r < rows && k < K ? take_16_avx512(in, r, k, K - k) : _mm512_setzero_ps());
}

/* Eight rows of two halves: sixteen sums of sixteen columns. */
INLINE TARGET void load_sums(__m512 sum[8][2], const float *c, int add)
{
    for (size_t r = 0; r < 8; r++)
        for (size_t n = 0; n < 2; n++)
            sum[r][n] = add ? _mm512_loadu_ps(c + r * SF_BLOCK + 16 * n) : _mm512_setzero_ps();
}

INLINE TARGET void store_sums(float *c, __m512 sum[8][2])
{
    for (size_t r = 0; r < 8; r++)
        for (size_t n = 0; n < 2; n++) _mm512_storeu_ps(c + r * SF_BLOCK + 16 * n, sum[r][n]);
}

INLINE TARGET void multiply_8_avx512(float *c, const float *a, const sf_bf16 *b, size_t steps, int add)
{
    const __m512i mask = _mm512_set1_epi32((int)0xffff0000);
    __m512 sum[8][2];
    load_sums(sum, c, add);
    for (size_t s = 0; s < steps; s++, a += SF_STEP_SIZE, b += SF_STEP_SIZE)
        for (size_t p = 0; p < SF_PAIRS; p++) {
            const __m512i x = _mm512_loadu_si512(b + p * 2 * SF_HALF),
                          y = _mm512_loadu_si512(b + HALF_SIZE + p * 2 * SF_HALF);
            const __m512 even[2] = {_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
                                    _mm512_castsi512_ps(_mm512_slli_epi32(y, 16))};
            const __m512 odd[2] = {_mm512_castsi512_ps(_mm512_and_si512(x, mask)),
                                   _mm512_castsi512_ps(_mm512_and_si512(y, mask))};
            for (size_t r = 0; r < 8; r++) {
                const __m512 first = _mm512_set1_ps(a[r * SF_STEP + 2 * p]),
                             second = _mm512_set1_ps(a[r * SF_STEP + 2 * p + 1]);
                for (size_t n = 0; n < 2; n++) sum[r][n] = _mm512_fmadd_ps(first, even[n], sum[r][n]);
                for (size_t n = 0; n < 2; n++) sum[r][n] = _mm512_fmadd_ps(second, odd[n], sum[r][n]);
            }
        }
    store_sums(c, sum);
}

static TARGET void multiply_avx512(float *c, const void *a, const void *b, size_t steps, size_t rows, int add)
{
    for (size_t r = 0; r < rows; r += 8)
        multiply_8_avx512(c + r * SF_BLOCK, (const float *)a + r * SF_STEP, b, steps, add);
}
#undef TARGET

const sf_kernel sf_kernel_avx512 = {256, take_avx512, multiply_avx512};

/* -------------------------------------------------------------- AVX-512-BF16 */

#define TARGET SF_TARGET_AVX512_BF16

static TARGET void take_bf16(void *out, sf_view in, size_t rows, size_t K)
{
    sf_bf16 *a = out;
    for (size_t r = 0; r < SF_BLOCK; r++)
        for (size_t k = 0; k < K; k += SF_STEP)
            _mm512_storeu_si512(a + k / SF_STEP * SF_STEP_SIZE + r * SF_STEP,
                                r < rows ? sf_take_32(in, r, k, K - k) : _mm512_setzero_si512());
}

INLINE TARGET __m512bh pair_bf16(const sf_bf16 *a)
{
    int pair;
    memcpy(&pair, a, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}

INLINE TARGET void multiply_8_bf16(float *c, const sf_bf16 *a, const sf_bf16 *b, size_t steps, int add)
{
    __m512 sum[8][2];
    load_sums(sum, c, add);
    for (size_t s = 0; s < steps; s++, a += SF_STEP_SIZE, b += SF_STEP_SIZE)
        for (size_t p = 0; p < SF_PAIRS; p++) {
            const __m512bh x = (__m512bh)_mm512_loadu_si512(b + p * 2 * SF_HALF);
            const __m512bh y = (__m512bh)_mm512_loadu_si512(b + HALF_SIZE + p * 2 * SF_HALF);
            for (size_t r = 0; r < 8; r++) {
                const __m512bh left = pair_bf16(a + r * SF_STEP + 2 * p);
                sum[r][0] = _mm512_dpbf16_ps(sum[r][0], left, x);
                sum[r][1] = _mm512_dpbf16_ps(sum[r][1], left, y);
            }
        }
    store_sums(c, sum);
}

static TARGET void multiply_bf16(float *c, const void *a, const void *b, size_t steps, size_t rows, int add)
{
    for (size_t r = 0; r < rows; r += 8)
        multiply_8_bf16(c + r * SF_BLOCK, (const sf_bf16 *)a + r * SF_STEP, b, steps, add);
}
#undef TARGET

const sf_kernel sf_kernel_avx512_bf16 = {512, take_bf16, multiply_bf16};

#endif
