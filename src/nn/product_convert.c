/* Conversion, transposition and packing of matrices.
 *
 * All three are on the path of every training step, and should run as fast as memory. The
 * vectorised versions are for AVX-512; results are the same to the last bit. */
#include "nn/product_kernel.h"

#define INLINE static inline __attribute__((always_inline))

/* ---------------------------------------------------------------- conversion */

static void to_portable(sf_bf16 *out, const float *inp, size_t N)
{
    for (size_t i = 0; i < N; i++) out[i] = sf_round(inp[i]);
}

static void from_portable(float *out, const sf_bf16 *inp, size_t N)
{
    for (size_t i = 0; i < N; i++) out[i] = sf_widen(inp[i]);
}

#if SF_HAVE_X86
#define TARGET SF_TARGET_AVX2

INLINE TARGET __m256i round_avx2(const float *x)
{
    const __m256 value = _mm256_loadu_ps(x);
    const __m256i bits = _mm256_castps_si256(value), high = _mm256_srli_epi32(bits, 16), one = _mm256_set1_epi32(1);
    const __m256i up = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(high, one));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, up), 16),
                  nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(rounded, nan, _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q)));
}

static TARGET void to_avx2(sf_bf16 *out, const float *inp, size_t N)
{
    size_t i = 0;
    for (; i + 16 <= N; i += 16) {
        const __m256i both = _mm256_packus_epi32(round_avx2(inp + i), round_avx2(inp + i + 8));
        _mm256_storeu_si256((__m256i *)(void *)(out + i), _mm256_permute4x64_epi64(both, 0xd8));
    }
    to_portable(out + i, inp + i, N - i);
}

static TARGET void from_avx2(float *out, const sf_bf16 *inp, size_t N)
{
    size_t i = 0;
    for (; i + 8 <= N; i += 8) {
        const __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(inp + i)));
        _mm256_storeu_ps(out + i, _mm256_castsi256_ps(_mm256_slli_epi32(x, 16)));
    }
    from_portable(out + i, inp + i, N - i);
}
#undef TARGET

#define TARGET SF_TARGET_AVX512

/* The first `count` of 16. */
INLINE TARGET __mmask16 first_16(size_t count) { return (__mmask16)(count < 16 ? (1u << count) - 1 : 0xffff); }

INLINE TARGET __m256i round_avx512(__m512 x)
{
    const __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
    const __m512i up = _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(high, _mm512_set1_epi32(1)));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, up), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40)));
}

INLINE TARGET __m512i widen_avx512(__m256i x) { return _mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16); }

static TARGET void to_avx512(sf_bf16 *out, const float *inp, size_t N)
{
    size_t i = 0;
    for (; i + 16 <= N; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(out + i), round_avx512(_mm512_loadu_ps(inp + i)));
    const __mmask16 mask = first_16(N - i);
    if (i < N) _mm256_mask_storeu_epi16(out + i, mask, round_avx512(_mm512_maskz_loadu_ps(mask, inp + i)));
}

static TARGET void from_avx512(float *out, const sf_bf16 *inp, size_t N)
{
    size_t i = 0;
    for (; i + 16 <= N; i += 16)
        _mm512_storeu_si512(out + i, widen_avx512(_mm256_loadu_si256((const __m256i *)(const void *)(inp + i))));
    const __mmask16 mask = first_16(N - i);
    if (i < N) _mm512_mask_storeu_epi32(out + i, mask, widen_avx512(_mm256_maskz_loadu_epi16(mask, inp + i)));
}
#endif

void sf_to_bf16(sf_bf16 *out, const float *inp, size_t N, sf_isa isa) { SF_DISPATCH(isa, to, out, inp, N); }

void sf_from_bf16(float *out, const sf_bf16 *inp, size_t N, sf_isa isa) { SF_DISPATCH(isa, from, out, inp, N); }

/* ------------------------------------------------- squares of 32 by 32 elements */

/* Of a square only `rows` rows of `columns` elements are there; when it is packed the rest
 * is zero. */

INLINE sf_bf16 half_at(sf_view view, size_t row, size_t column)
{
    return view.type == SF_F32 ? sf_round(sf_floats(view, row)[column]) : sf_halves(view, row)[column];
}

INLINE float float_at(sf_view view, size_t row, size_t column)
{
    return view.type == SF_F32 ? sf_floats(view, row)[column] : sf_widen(sf_halves(view, row)[column]);
}

static void transpose_portable(sf_view out, sf_view in, size_t rows, size_t columns)
{
    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < rows; i++) {
            if (out.type == SF_BF16)
                sf_halves(out, j)[i] = half_at(in, i, j);
            else
                sf_floats(out, j)[i] = float_at(in, i, j);
        }
}

static void pack_portable(sf_bf16 *out, sf_view in, int transposed, size_t rows, size_t columns)
{
    memset(out, 0, SF_STEP_SIZE * sizeof *out);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            size_t k = transposed ? j : i, n = transposed ? i : j;
            out[((n / SF_HALF * SF_PAIRS + k / 2) * SF_HALF + n % SF_HALF) * 2 + k % 2] = half_at(in, i, j);
        }
}

#if SF_HAVE_X86

/* 32 elements of a row as bf16. */
INLINE TARGET __m512i row_of_halves(sf_view in, size_t row, size_t columns)
{
    if (in.type == SF_BF16) {
        const __mmask32 mask = columns < 32 ? ((__mmask32)1 << columns) - 1 : UINT32_MAX;
        return _mm512_maskz_loadu_epi16(mask, sf_halves(in, row));
    }
    const float *x = sf_floats(in, row);
    const __mmask16 high = first_16(columns > 16 ? columns - 16 : 0);
    const __m256i low = round_avx512(_mm512_maskz_loadu_ps(first_16(columns), x));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low),
                              round_avx512(_mm512_maskz_loadu_ps(high, x + (high ? 16 : 0))), 1);
}

/* 16 elements of a row as f32, in the bits of integers. */
INLINE TARGET __m512i row_of_floats(sf_view in, size_t row, size_t columns)
{
    const __mmask16 mask = first_16(columns);
    if (in.type == SF_F32) return _mm512_castps_si512(_mm512_maskz_loadu_ps(mask, sf_floats(in, row)));
    return widen_avx512(_mm256_maskz_loadu_epi16(mask, sf_halves(in, row)));
}

/* Rows become columns: 16 by 16 elements of 32 bits. */
INLINE TARGET void turn(__m512i x[16])
{
    __m512i y[16];
    for (size_t i = 0; i < 16; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    for (size_t i = 0; i < 16; i += 4)
        for (size_t j = 0; j < 2; j++) {
            x[i + 2 * j] = _mm512_unpacklo_epi64(y[i + j], y[i + j + 2]);
            x[i + 2 * j + 1] = _mm512_unpackhi_epi64(y[i + j], y[i + j + 2]);
        }
    for (size_t j = 0; j < 4; j++) { /* now x[4 i + j] holds columns j, j + 4, j + 8, j + 12 of rows 4 i to 4 i + 3 */
        const __m512i a = _mm512_shuffle_i32x4(x[j], x[j + 4], 0x88), b = _mm512_shuffle_i32x4(x[j], x[j + 4], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(x[j + 8], x[j + 12], 0x88),
                      d = _mm512_shuffle_i32x4(x[j + 8], x[j + 12], 0xdd);
        y[j] = _mm512_shuffle_i32x4(a, c, 0x88);
        y[j + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
        y[j + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
        y[j + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    for (size_t i = 0; i < 16; i++) x[i] = y[i];
}

/* 16 rows of 16 pairs: in[i] is row i, and pair p of them all comes out as x[p]. */
INLINE TARGET void turn_pairs(__m512i x[16], sf_view in, size_t first, size_t rows, size_t columns)
{
    for (size_t i = 0; i < 16; i++)
        x[i] = first + i < rows ? row_of_halves(in, first + i, columns) : _mm512_setzero_si512();
    turn(x);
}

static TARGET void pack_avx512(sf_bf16 *out, sf_view in, int transposed, size_t rows, size_t columns)
{
    if (transposed) {
        for (size_t half = 0; half < 2; half++) {
            __m512i x[16];
            turn_pairs(x, in, half * SF_HALF, rows, columns);
            for (size_t p = 0; p < SF_PAIRS; p++) _mm512_storeu_si512(out + (half * SF_PAIRS + p) * SF_HALF * 2, x[p]);
        }
        return;
    }
    const __m512i order = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4,
                                           0); /* unpacking works in quarters: so columns stay in line */
    for (size_t p = 0; p < SF_PAIRS; p++) {
        const __m512i zero = _mm512_setzero_si512();
        const __m512i x = _mm512_permutexvar_epi64(order, 2 * p < rows ? row_of_halves(in, 2 * p, columns) : zero);
        const __m512i y = _mm512_permutexvar_epi64(order,
                                                   2 * p + 1 < rows ? row_of_halves(in, 2 * p + 1, columns) : zero);
        _mm512_storeu_si512(out + p * SF_HALF * 2, _mm512_unpacklo_epi16(x, y));
        _mm512_storeu_si512(out + (SF_PAIRS + p) * SF_HALF * 2, _mm512_unpackhi_epi16(x, y));
    }
}

static TARGET void transpose_halves(sf_view out, sf_view in, size_t rows, size_t columns)
{
    const __mmask32 mask = rows < 32 ? ((__mmask32)1 << rows) - 1 : UINT32_MAX;
    const __m512i low = _mm512_set1_epi32(0xffff);
    const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    __m512i x[16], y[16];
    turn_pairs(x, in, 0, rows, columns);
    turn_pairs(y, in, 16, rows, columns);
    for (size_t p = 0; 2 * p < columns; p++) {
        const __m512i even = _mm512_packus_epi32(_mm512_and_si512(x[p], low), _mm512_and_si512(y[p], low));
        _mm512_mask_storeu_epi16(sf_halves(out, 2 * p), mask, _mm512_permutexvar_epi64(order, even));
        if (2 * p + 1 == columns) break;
        const __m512i odd = _mm512_packus_epi32(_mm512_srli_epi32(x[p], 16), _mm512_srli_epi32(y[p], 16));
        _mm512_mask_storeu_epi16(sf_halves(out, 2 * p + 1), mask, _mm512_permutexvar_epi64(order, odd));
    }
}

static TARGET void transpose_floats(sf_view out, sf_view in, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i += 16)
        for (size_t j = 0; j < columns; j += 16) {
            const sf_view from = sf_shift(in, i, j), to = sf_shift(out, j, i);
            __m512i x[16];
            for (size_t r = 0; r < 16; r++)
                x[r] = i + r < rows ? row_of_floats(from, r, columns - j) : _mm512_setzero_si512();
            turn(x);
            for (size_t c = 0; c < 16 && j + c < columns; c++)
                _mm512_mask_storeu_epi32(sf_floats(to, c), first_16(rows - i), x[c]);
        }
}
#undef TARGET

#endif

static void transpose_square(sf_view out, sf_view in, size_t rows, size_t columns, sf_isa isa)
{
#if SF_HAVE_X86
    if (isa >= SF_AVX512 && out.type == SF_BF16) {
        transpose_halves(out, in, rows, columns);
        return;
    }
    if (isa >= SF_AVX512) {
        transpose_floats(out, in, rows, columns);
        return;
    }
#endif
    (void)isa;
    transpose_portable(out, in, rows, columns);
}

/* Asks for rows that will be read soon, and for the lines of the cache that will be written at
 * these places soon. Each row is a page of its own: the processor does not see them coming,
 * and would wait for one after the other. */
INLINE void ask_to_read(sf_view in, size_t rows, size_t columns)
{
    const size_t size = sf_element(in.type);
    for (size_t i = 0; i < rows; i++)
        for (size_t at = 0; at < columns * size; at += 64)
            __builtin_prefetch((const char *)in.values + i * in.stride * size + at);
}

INLINE void ask_to_write(sf_view out, size_t rows)
{
    const size_t size = sf_element(out.type);
    for (size_t i = 0; i < rows; i++)
        for (size_t at = 0; at < SF_BLOCK * size; at += 64) {
            const char *line = (const char *)out.values + i * out.stride * size + at;
#if SF_HAVE_X86
            __asm__ volatile(
                "prefetchw %0" ::"m"(*line)); /* the builtin asks to read unless compiled for this instruction */
#else
            __builtin_prefetch(line, 1);
#endif
        }
}

void sf_transpose(sf_view out, sf_view in, size_t M, size_t N, sf_isa isa)
{
    enum { WIDE = 256, AHEAD = 2 * SF_BLOCK - 1 }; /* the last element of the next square, and what follows */
    for (size_t wide = 0; wide < N; wide += WIDE)
        for (size_t i = 0; i < M; i += SF_BLOCK) {
            const size_t rows = sf_least(SF_BLOCK, M - i), columns = sf_least(WIDE, N - wide), next = i + rows;
            if (next < M) ask_to_read(sf_shift(in, next, wide), sf_least(SF_BLOCK, M - next), columns);
            for (size_t j = wide; j < wide + columns; j += SF_BLOCK) {
                const size_t some = sf_least(SF_BLOCK, N - j);
                if (i + AHEAD < M) ask_to_write(sf_shift(out, j, i + AHEAD), some);
                transpose_square(sf_shift(out, j, i), sf_shift(in, i, j), rows, some, isa);
            }
        }
}

void sf_pack_step(sf_bf16 *out, sf_view in, int transposed, size_t rows, size_t columns, sf_isa isa)
{
#if SF_HAVE_X86
    if (isa >= SF_AVX512) {
        pack_avx512(out, in, transposed, rows, columns);
        return;
    }
#endif
    (void)isa;
    pack_portable(out, in, transposed, rows, columns);
}
