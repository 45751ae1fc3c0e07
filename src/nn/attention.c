/* Attention of one head of one text on AMX.
 *
 * 32 queries at a time: their scores with all keys (tiles of 16 by 16, stored as they are), then row by row their
 * exponentials, rounded to bf16 in the place of the scores, then the product of these with the values. For 256 pieces
 * the scores take 33 KB, the packed keys 16 KB, which the loads do not bring into the first level. */
#include "nn/attention.h"

#include "nn/product_kernel.h"
#include "nn/vector.h"

#if SF_HAVE_X86

#define TARGET SF_TARGET_AMX
#define INLINE TARGET static inline __attribute__((always_inline))

enum { QUERIES = SF_BLOCK, WIDEST = 128, TILE = SF_TILE_BYTES };

int sf_attend_can(sf_dtype type, sf_isa isa, size_t d) { return type == SF_BF16 && isa >= SF_AMX && d % SF_STEP == 0 && d <= WIDEST; }

/* Floats from one row of scores to the next: rows begin in different sets of the cache. */
static size_t stride_of(size_t T) { return sf_blocks(T) * SF_BLOCK + SF_HALF; }

size_t sf_attend_room(size_t T) { return QUERIES * stride_of(T); }

/* The sums in the tiles go where they belong, and the tile is empty again. */
#define LEAVE(tile, row, column) \
    if (before) _tile_stored(tile, before + (row)*stride + (column), stride * sizeof(float)); \
    _tile_zero(tile);

/* scores (32, T) = a (32, d) * keys. */
INLINE void multiply_keys(float *scores, size_t stride, const char *a, size_t a_stride, const sf_packed *keys)
{
    const size_t panels = sf_blocks(keys->N), steps = keys->K / SF_STEP;
    const char *b = keys->values;
    float *before = NULL;
    SF_TILE_FENCE();
    for (size_t n = 0; n < panels; n++) {
        for (size_t s = 0; s < steps; s++, b += 2 * TILE) {
            _tile_stream_loadd(6, b, SF_HALF * 4);
            _tile_loadd(4, a + s * SF_STEP * sizeof(sf_bf16), a_stride);
            _tile_stream_loadd(7, b + TILE, SF_HALF * 4);
            _tile_loadd(5, a + s * SF_STEP * sizeof(sf_bf16) + SF_HALF * a_stride, a_stride);
            if (s == 0) {
                LEAVE(0, 0, 0)
            }
            _tile_dpbf16ps(0, 4, 6);
            if (s == 0) {
                LEAVE(1, 0, SF_HALF)
            }
            _tile_dpbf16ps(1, 4, 7);
            if (s == 0) {
                LEAVE(2, SF_HALF, 0)
            }
            _tile_dpbf16ps(2, 5, 6);
            if (s == 0) {
                LEAVE(3, SF_HALF, SF_HALF)
            }
            _tile_dpbf16ps(3, 5, 7);
        }
        before = scores + n * SF_BLOCK;
    }
    LEAVE(0, 0, 0)
    LEAVE(1, 0, SF_HALF)
    LEAVE(2, SF_HALF, 0)
    LEAVE(3, SF_HALF, SF_HALF)
    SF_TILE_FENCE();
}

/* sums (32, 32) = shares (32, T) * a panel of the values. */
INLINE void multiply_values(float *sums, const char *shares, size_t stride, const char *b, size_t steps)
{
    SF_TILE_FENCE();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t s = 0; s < steps; s++, b += 2 * TILE, shares += SF_STEP * sizeof(sf_bf16)) {
        _tile_stream_loadd(6, b, SF_HALF * 4);
        _tile_loadd(4, shares, stride);
        _tile_stream_loadd(7, b + TILE, SF_HALF * 4);
        _tile_loadd(5, shares + SF_HALF * stride, stride);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, SF_BLOCK * sizeof *sums);
    _tile_stored(1, sums + SF_HALF, SF_BLOCK * sizeof *sums);
    _tile_stored(2, sums + SF_SUMS / 2, SF_BLOCK * sizeof *sums);
    _tile_stored(3, sums + SF_SUMS / 2 + SF_HALF, SF_BLOCK * sizeof *sums);
    SF_TILE_FENCE();
}

/* Rows of scores become rows of bf16 in the same place, zero-padded; factors (rows) = 1 / their sums. */
static void soften(float *scores, size_t stride, float *factors, float scale, size_t rows, size_t T, sf_isa isa)
{
    for (size_t r = 0; r < rows; r++, scores += stride) {
        sf_bf16 *shares = (void *)scores;
        factors[r] = 1.0f / sf_exp_row(shares, scores, scale, T, isa);
        memset(shares + T, 0, (sf_blocks(T) * SF_STEP - T) * sizeof *shares);
    }
    for (size_t r = rows; r < QUERIES; r++, scores += stride) memset(scores, 0, sf_blocks(T) * SF_STEP * sizeof(sf_bf16));
}

TARGET void sf_attend(sf_view out, sf_view queries, const sf_packed *keys, const sf_packed *values, float scale,
                      float *room, size_t T, size_t d)
{
    const size_t stride = stride_of(T), steps = sf_blocks(T);
    _Alignas(64) float sums[SF_SUMS];
    _Alignas(64) sf_bf16 last[QUERIES * WIDEST];
    float factors[QUERIES];
    _tile_loadconfig(&sf_tiles);
    for (size_t first = 0; first < T; first += QUERIES) {
        const size_t rows = sf_least(QUERIES, T - first);
        sf_view q = sf_shift(queries, first, 0);
        if (rows < QUERIES) { /* what lies behind them may not be ours to read */
            memset(last, 0, sizeof last);
            for (size_t r = 0; r < rows; r++) memcpy(last + r * d, sf_halves(q, r), d * sizeof *last);
            q = (sf_view){last, d, SF_BF16};
        }
        multiply_keys(room, stride, q.values, q.stride * sizeof(sf_bf16), keys);
        soften(room, stride, factors, scale, rows, T, keys->isa);
        for (size_t n = 0; n < d; n += SF_BLOCK) {
            const char *b = (const char *)values->values + n / SF_BLOCK * steps * 2 * TILE;
            multiply_values(sums, (const char *)room, stride * sizeof *room, b, steps);
            for (size_t r = 0; r < rows; r++) {
                const __m512 factor = _mm512_set1_ps(factors[r]);
                const __m512 x = _mm512_mul_ps(_mm512_load_ps(sums + r * SF_BLOCK), factor),
                             y = _mm512_mul_ps(_mm512_load_ps(sums + r * SF_BLOCK + SF_HALF), factor);
                _mm512_storeu_si512(sf_halves(out, first + r) + n, (__m512i)_mm512_cvtne2ps_pbh(y, x));
            }
        }
    }
    _tile_release();
}

#else

int sf_attend_can(sf_dtype type, sf_isa isa, size_t d) { return (void)type, (void)isa, (void)d, 0; }
size_t sf_attend_room(size_t T) { return (void)T, 0; }
void sf_attend(sf_view out, sf_view queries, const sf_packed *keys, const sf_packed *values, float scale, float *room,
               size_t T, size_t d)
{
    (void)out, (void)queries, (void)keys, (void)values, (void)scale, (void)room, (void)T, (void)d;
}

#endif
