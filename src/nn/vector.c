/* Element-wise and row-wise functions of the encoder: one source, three instruction sets. */
#include "nn/vector.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { NORM_ROWS = 4 }; /* normed together */

#define KERNELS "nn/vector_kernels.h"
#include "nn/simd_sets.h"

#if SF_HAVE_X86
/* 2^t for t <= 0, to within 1e-4: what rounding to bf16 leaves of it is 4e-3. Never below
 * 2^-100: numbers without a leading 1 are slow, and there is no sum in which it matters. */
SF_TARGET_AVX512_BF16 static inline __attribute__((always_inline)) __m512 power16(__m512 t)
{
    t = _mm512_max_ps(t, _mm512_set1_ps(-100.0f));
    const __m512 n = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), f = _mm512_sub_ps(t, n);
    __m512 p = _mm512_set1_ps(0.0551716649f);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.242611122f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.693260986f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.999928074f));
    return _mm512_scalef_ps(p, n);
}

SF_TARGET_AVX512_BF16 static float exp_row_bf16(sf_bf16 *out, const float *x, float scale, size_t N)
{
    const __m512 factor = _mm512_set1_ps(scale * 1.44269504f),
                 top = _mm512_set1_ps(-largest_avx512(x, N) * (scale * 1.44269504f));
    __m512 a = _mm512_setzero_ps(), b = a;
    size_t i = 0;
    for (; i + 32 <= N; i += 32) {
        const __m512 p = power16(_mm512_fmadd_ps(_mm512_loadu_ps(x + i), factor, top));
        const __m512 q = power16(_mm512_fmadd_ps(_mm512_loadu_ps(x + i + 16), factor, top));
        a = _mm512_add_ps(a, p);
        b = _mm512_add_ps(b, q);
        _mm512_storeu_si512(out + i, (__m512i)_mm512_cvtne2ps_pbh(q, p));
    }
    for (; i < N; i += 16) {
        const __mmask16 rest = (__mmask16)(N - i < 16 ? (1u << (N - i)) - 1 : 0xffffu);
        const __m512 p = power16(_mm512_fmadd_ps(_mm512_maskz_loadu_ps(rest, x + i), factor, top));
        a = _mm512_mask_add_ps(a, rest, a, p);
        _mm256_mask_storeu_epi16(out + i, rest, (__m256i)_mm512_cvtneps_pbh(p));
    }
    const v16 sum = (v16)_mm512_add_ps(a, b);
    return total_avx512(&sum);
}

SF_TARGET_AVX512_BF16 static void round_row_bf16(sf_bf16 *out, const float *x, size_t N)
{
    size_t i = 0;
    for (; i + 32 <= N; i += 32)
        _mm512_storeu_si512(out + i, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + i + 16), _mm512_loadu_ps(x + i)));
    sf_to_bf16(out + i, x + i, N - i, SF_AVX512_BF16);
}
#endif

/* For products on this set: where those take numbers below 1.2e-38 for 0, they may become 0 here. */
static void round_row(sf_bf16 *out, const float *x, size_t N, sf_isa isa)
{
#if SF_HAVE_X86
    if (isa >= SF_AVX512_BF16) {
        round_row_bf16(out, x, N);
        return;
    }
#endif
    sf_to_bf16(out, x, N, isa);
}

void sf_activate(float *out, const float *x, sf_activation activation, size_t N, sf_isa isa)
{
    SF_DISPATCH(isa, activate, out, x, activation, 0, N);
}

void sf_activate_rough(float *out, const float *x, sf_activation activation, size_t N, sf_isa isa)
{
    SF_DISPATCH(isa, activate, out, x, activation, 1, N);
}

/* `count` elements from (row, column) on as floats: where they lie, or in `room`. */
enum { PIECE = 512 };

static float *read_piece(float room[PIECE], sf_view view, size_t row, size_t column, size_t count, sf_isa isa)
{
    size_t at = row * view.stride + column;
    if (view.type == SF_F32) return (float *)view.values + at;
    sf_from_bf16(room, (const sf_bf16 *)view.values + at, count, isa);
    return room;
}

void sf_activate_rows(sf_view out, sf_view x, sf_activation activation, size_t M, size_t N, sf_isa isa)
{
    float a[PIECE];
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j += PIECE) {
            size_t count = N - j < PIECE ? N - j : PIECE;
            const float *inp = read_piece(a, x, i, j, count, isa);
            float *to = out.type == SF_F32 ? (float *)out.values + i * out.stride + j : a;
            SF_DISPATCH(isa, activate, to, inp, activation, out.type == SF_BF16, count);
            if (out.type == SF_BF16) sf_to_bf16((sf_bf16 *)out.values + i * out.stride + j, a, count, isa);
        }
}

void sf_activate_rows_backward(sf_view dinp, sf_view dout, sf_view x, sf_activation activation, size_t M, size_t N,
                               sf_isa isa)
{
    float a[PIECE], b[PIECE];
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j += PIECE) {
            size_t count = N - j < PIECE ? N - j : PIECE;
            const float *inp = read_piece(a, x, i, j, count, isa), *d = read_piece(b, dout, i, j, count, isa);
            float *to = dinp.type == SF_F32 ? (float *)dinp.values + i * dinp.stride + j : b;
            SF_DISPATCH(isa, activate_backward, to, d, inp, activation, dinp.type == SF_BF16, count);
            if (dinp.type == SF_BF16) sf_to_bf16((sf_bf16 *)dinp.values + i * dinp.stride + j, b, count, isa);
        }
}

void sf_multiply_rows(sf_view x, sf_view y, size_t M, size_t N, sf_isa isa)
{
    float a[PIECE], b[PIECE];
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j += PIECE) {
            const size_t count = N - j < PIECE ? N - j : PIECE;
            float *out = read_piece(a, x, i, j, count, isa);
            SF_DISPATCH(isa, multiply, out, read_piece(b, y, i, j, count, isa), count);
            if (x.type == SF_BF16) round_row((sf_bf16 *)x.values + i * x.stride + j, a, count, isa);
        }
}

void sf_gate_rows_backward(sf_view d, sf_view x, sf_activation activation, size_t M, size_t N, sf_isa isa)
{
    float a[PIECE], b[PIECE], c[PIECE], first[PIECE], second[PIECE];
    const int rough = d.type == SF_BF16;
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j += PIECE) {
            const size_t count = N - j < PIECE ? N - j : PIECE;
            const float *x1 = read_piece(a, x, i, j, count, isa), *x2 = read_piece(b, x, i, N + j, count, isa),
                        *slope = read_piece(c, d, i, N + j, count, isa);
            const sf_view out = sf_view_at(d, i, j), gate = sf_view_at(d, i, N + j);
            memcpy(first, slope, count * sizeof *first);
            SF_DISPATCH(isa, multiply, first, x2, count);
            SF_DISPATCH(isa, activate_backward, first, first, x1, activation, rough, count);
            SF_DISPATCH(isa, activate, second, x1, activation, rough, count);
            SF_DISPATCH(isa, multiply, second, slope, count);
            if (d.type == SF_BF16) {
                sf_to_bf16(out.values, first, count, isa);
                sf_to_bf16(gate.values, second, count, isa);
            } else {
                memcpy(out.values, first, count * sizeof *first);
                memcpy(gate.values, second, count * sizeof *second);
            }
        }
}

void sf_turn_rows(sf_view x, const float *turns, int back, size_t M, size_t heads, size_t d, sf_isa isa)
{
    float a[PIECE], b[PIECE];
    const size_t half = d / 2;
    for (size_t i = 0; i < M; i++)
        for (size_t h = 0; h < heads; h++)
            for (size_t k = 0; k < half; k += PIECE) {
                const size_t count = sf_least(PIECE, half - k), column = h * d + k;
                const float *cosines = turns + i * d + k;
                float *first = read_piece(a, x, i, column, count, isa),
                      *second = read_piece(b, x, i, column + half, count, isa);
                SF_DISPATCH(isa, turn, first, second, cosines, cosines + half, back ? -1.0f : 1.0f, count);
                if (x.type == SF_F32) continue;
                round_row(sf_view_at(x, i, column).values, a, count, isa);
                round_row(sf_view_at(x, i, column + half).values, b, count, isa);
            }
}

void sf_add_at(float *x, const float *a, const float *b, size_t stride, const int32_t *at, int32_t first, size_t N,
               sf_isa isa)
{
    if (a) SF_DISPATCH(isa, add_at, x, a, 0, at, first, N);
    if (b) SF_DISPATCH(isa, add_at, x, b, stride, at, first, N);
}

void sf_softmax_row(float *x, float scale, size_t N, sf_isa isa) { SF_DISPATCH(isa, softmax_row, x, scale, N); }

float sf_exp_row(sf_bf16 *out, float *x, float scale, size_t N, sf_isa isa)
{
#if SF_HAVE_X86
    if (isa >= SF_AVX512_BF16) return exp_row_bf16(out, x, scale, N);
#endif
    return SF_DISPATCH(isa, exp_row, out, x, scale, N, isa);
}

void sf_scale(float *x, float factor, size_t N, sf_isa isa) { SF_DISPATCH(isa, scale, x, factor, N); }

void sf_softmax_row_backward(float *dx, const float *dp, const float *p, float scale, size_t N, sf_isa isa)
{
    SF_DISPATCH(isa, softmax_row_backward, dx, dp, p, scale, N);
}

void sf_norm_rows(sf_view out, sf_view kept, sf_view x, const float *weight, const float *bias, float epsilon, size_t M,
                  size_t N, sf_isa isa)
{
    for (size_t first = 0; first < M; first += NORM_ROWS) {
        const size_t count = sf_least(NORM_ROWS, M - first);
        float *y = (float *)out.values + first * out.stride;
        SF_DISPATCH(isa, norm_rows, y, out.stride, (const float *)x.values + first * x.stride, x.stride, weight, bias,
                    epsilon, count, N);
        for (size_t r = first; kept.values != out.values && r < first + count; r++, y += out.stride) {
            if (kept.type == SF_BF16)
                round_row((sf_bf16 *)kept.values + r * kept.stride, y, N, isa);
            else
                memcpy((float *)kept.values + r * kept.stride, y, N * sizeof *y);
        }
    }
}

void sf_norm_row_backward(float *dx, float *dweight, float *dbias, const float *dout, const float *x,
                          const float *weight, float epsilon, size_t N, sf_isa isa)
{
    SF_DISPATCH(isa, norm_row_backward, dx, dweight, dbias, dout, x, weight, epsilon, N);
}

void sf_add(float *out, const float *x, size_t N, sf_isa isa) { SF_DISPATCH(isa, add, out, x, N); }
