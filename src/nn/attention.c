/* Attention of one head of one text on AMX.
 *
 * 16 queries at a time, and 32 keys: a panel. The exponentials are most of the work, by vector instructions; the tile
 * instructions around them are few, and the processor does them meanwhile, as long as neither waits for the other. So
 * three panels are under way: the scores of one are multiplied while the exponentials of the one before are taken and
 * the values of the one before that are mixed.
 *
 * Softmax stays the same when all scores of a row are shifted, and the numbers of bf16 and f32 are as exact far from 1
 * as near it. So scores are taken as they are, without looking for the largest first: its place is one pass less, and
 * nothing has to wait for the last score. A score beyond +-120 (as a power of two) counts as that; if then the sum of
 * a row is not between 2^-60 and 2^60, what was cut may matter, and the 16 rows are done again with the largest of
 * each row taken off. All of it is a function of the row and the keys. */
#include "nn/attention.h"

#include "nn/product_kernel.h"

#include <float.h>

#if SF_HAVE_X86

#define TARGET SF_TARGET_AMX
#define INLINE TARGET static inline __attribute__((always_inline))

enum { QUERIES = SF_HALF, WIDEST = 2 * SF_BLOCK, TILE = SF_TILE_BYTES, LINE = 64 };

int sf_attend_can(sf_dtype type, sf_isa isa, size_t d)
{
    return type == SF_BF16 && isa >= SF_AMX && (d == SF_BLOCK || d == WIDEST);
}

/* Where scores are multiplied, shares taken or values mixed: a panel of a block of queries. */
typedef struct place {
    size_t block, panel;
    int there; /* whether there is anything to do */
} place;

/* The head, and what it works in. Panels take turns in two places, blocks in as many as are under way at once. */
enum { TURNS = 4 };
typedef struct head {
    sf_view out, queries;
    const char *keys, *values;
    size_t panels, T;
    float factor; /* scores to powers of two */
    float tops[TURNS][QUERIES];
    _Alignas(LINE) float scores[2][QUERIES * SF_BLOCK];
    _Alignas(LINE) sf_bf16 shares[2][QUERIES * SF_STEP];
    _Alignas(LINE) float sums[TURNS][QUERIES * SF_HALF]; /* of the shares of a row, lane by lane */
    _Alignas(LINE) float mixed[QUERIES * WIDEST];
    _Alignas(LINE) sf_bf16 last[QUERIES * WIDEST]; /* queries, where there are less than 16 */
} head;

/* --------------------------------------------------------------- exponentials */

/* 2^(factor * x) to within 1e-4, where rounding to bf16 leaves 4e-3; 0 where the mask has none. */
INLINE __m512 power_of(__m512 x, __m512 factor, __m512 limit, __mmask16 mask)
{
    const __m512 round = _mm512_set1_ps(12582912.0f); /* 1.5 * 2^23: a sum with it is a whole number */
    x = _mm512_range_ps(x, limit, 2);                 /* the smaller in size, with the sign of x */
    const __m512 n = _mm512_fmadd_ps(x, factor, round), f = _mm512_fmsub_ps(x, factor, _mm512_sub_ps(n, round));
    __m512 p = _mm512_set1_ps(0.0551716649f);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.242611122f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.693260986f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.999928074f));
    return (__m512)_mm512_maskz_add_epi32(mask, (__m512i)p, _mm512_slli_epi32((__m512i)n, 23)); /* the exponents */
}

/* The columns of a panel that are there. */
INLINE __mmask32 columns_of(const head *h, size_t panel)
{
    return UINT32_MAX >> (SF_BLOCK - sf_least(SF_BLOCK, h->T - panel * SF_BLOCK));
}

/* Row i of the scores at a place becomes shares; `shifted`: less the largest of the row. */
INLINE void soften(head *h, place p, size_t turn, size_t i, int shifted)
{
    const __m512 factor = _mm512_set1_ps(h->factor), limit = _mm512_set1_ps(120.0f / h->factor);
    const __mmask32 mask = columns_of(h, p.panel);
    const float *scores = h->scores[turn] + i * SF_BLOCK;
    float *sum = h->sums[p.block % TURNS] + i * SF_HALF;
    __m512 x = _mm512_load_ps(scores), y = _mm512_load_ps(scores + SF_HALF);
    if (shifted) {
        const __m512 top = _mm512_set1_ps(h->tops[p.block % TURNS][i]);
        x = _mm512_sub_ps(x, top);
        y = _mm512_sub_ps(y, top);
    }
    x = power_of(x, factor, limit, (__mmask16)mask);
    y = power_of(y, factor, limit, (__mmask16)(mask >> 16));
    _mm512_store_ps(sum, _mm512_add_ps(_mm512_load_ps(sum), _mm512_add_ps(x, y)));
    _mm512_store_si512(h->shares[turn] + i * SF_STEP, (__m512i)_mm512_cvtne2ps_pbh(y, x));
}

/* ------------------------------------------------------------------ a head */

typedef struct rows {
    const char *values;
    size_t stride; /* bytes */
} rows;

/* The queries of a block: where they are, or copied, since what lies behind the last may not be ours to read. */
INLINE rows queries_of(head *h, size_t block, int wide)
{
    const size_t first = block * QUERIES, count = sf_least(QUERIES, h->T - first), d = wide ? WIDEST : SF_BLOCK;
    if (count == QUERIES)
        return (rows){(const char *)sf_halves(h->queries, first), h->queries.stride * sizeof(sf_bf16)};
    memset(h->last, 0, sizeof h->last);
    for (size_t i = 0; i < count; i++)
        memcpy(h->last + i * WIDEST, sf_halves(h->queries, first + i), d * sizeof(sf_bf16));
    return (rows){(const char *)h->last, WIDEST * sizeof(sf_bf16)};
}

/* The largest score of each row of a block. */
TARGET static __attribute__((noinline)) void find_tops(head *h, rows q, size_t block, int wide)
{
    _Alignas(LINE) float scores[QUERIES * SF_BLOCK];
    __m512 tops[QUERIES];
    for (size_t i = 0; i < QUERIES; i++) tops[i] = _mm512_set1_ps(-FLT_MAX);
    for (size_t n = 0; n < h->panels; n++) {
        const __mmask32 mask = columns_of(h, n);
        const char *k = h->keys + n * (wide ? 4 : 2) * TILE;
        _tile_zero(4);
        _tile_zero(5);
        for (size_t step = 0; step < (wide ? 2 : 1); step++, k += 2 * TILE) {
            _tile_loadd(6, q.values + step * LINE, q.stride);
            _tile_loadd(7, k, LINE);
            _tile_dpbf16ps(4, 6, 7);
            _tile_loadd(7, k + TILE, LINE);
            _tile_dpbf16ps(5, 6, 7);
        }
        _tile_stored(4, scores, 2 * LINE);
        _tile_stored(5, scores + SF_HALF, 2 * LINE);
        SF_TILE_FENCE();
        for (size_t i = 0; i < QUERIES; i++) {
            const float *x = scores + i * SF_BLOCK;
            tops[i] = _mm512_mask_max_ps(tops[i], (__mmask16)mask, tops[i], _mm512_load_ps(x));
            tops[i] = _mm512_mask_max_ps(tops[i], (__mmask16)(mask >> 16), tops[i], _mm512_load_ps(x + SF_HALF));
        }
    }
    for (size_t i = 0; i < QUERIES; i++) h->tops[block % TURNS][i] = _mm512_reduce_max_ps(tops[i]);
}

/* A row of shares, and then a tile instruction or two where there is something to do. */
#define ROW(i, work, ...) \
    if (shares.there) soften(h, shares, !turn, i, shifted); \
    if (work) { \
        __VA_ARGS__; \
    }

/* The scores of one panel (tiles 4 and 5), the shares of the one before, the values of that before (tiles 0 to 3). The
 * queries of a head of 32 are in tile 3. */
INLINE void advance(head *h, rows q, place scores, place shares, place values, size_t turn, int wide, int shifted)
{
    const char *k = h->keys + scores.panel * (wide ? 4 : 2) * TILE, *v = h->values + values.panel * 2 * TILE,
               *u = v + h->panels * 2 * TILE;
    float *out = h->scores[turn];
    SF_TILE_FENCE();
    ROW(0, scores.there && wide, _tile_loadd(6, q.values, q.stride))
    ROW(1, scores.there, _tile_loadd(7, k, LINE))
    ROW(2, scores.there, _tile_zero(4); if (wide) _tile_dpbf16ps(4, 6, 7); else _tile_dpbf16ps(4, 3, 7))
    ROW(3, scores.there, _tile_loadd(7, k + TILE, LINE))
    ROW(4, scores.there, _tile_zero(5); if (wide) _tile_dpbf16ps(5, 6, 7); else _tile_dpbf16ps(5, 3, 7))
    ROW(5, scores.there && wide, _tile_loadd(6, q.values + LINE, q.stride); _tile_loadd(7, k + 2 * TILE, LINE))
    ROW(6, scores.there && wide, _tile_dpbf16ps(4, 6, 7); _tile_loadd(7, k + 3 * TILE, LINE))
    ROW(7, scores.there && wide, _tile_dpbf16ps(5, 6, 7))
    ROW(8, values.there, _tile_loadd(6, h->shares[turn], LINE); _tile_loadd(7, v, LINE))
    ROW(9, values.there, _tile_dpbf16ps(0, 6, 7))
    ROW(10, scores.there, _tile_stored(4, out, 2 * LINE))
    ROW(11, values.there, _tile_loadd(7, v + TILE, LINE); _tile_dpbf16ps(1, 6, 7))
    ROW(12, scores.there, _tile_stored(5, out + SF_HALF, 2 * LINE))
    ROW(13, values.there && wide, _tile_loadd(7, u, LINE))
    ROW(14, values.there && wide, _tile_dpbf16ps(2, 6, 7); _tile_loadd(7, u + TILE, LINE))
    ROW(15, values.there && wide, _tile_dpbf16ps(3, 6, 7))
    SF_TILE_FENCE();
}

/* The tiles of a block are ready: into `mixed`. */
INLINE void put_down(head *h, int wide)
{
    _tile_stored(0, h->mixed, WIDEST * sizeof(float));
    _tile_stored(1, h->mixed + SF_HALF, WIDEST * sizeof(float));
    _tile_zero(0);
    _tile_zero(1);
    if (wide) {
        _tile_stored(2, h->mixed + SF_BLOCK, WIDEST * sizeof(float));
        _tile_stored(3, h->mixed + SF_BLOCK + SF_HALF, WIDEST * sizeof(float));
        _tile_zero(2);
        _tile_zero(3);
    }
}

/* From there to `out`; whether nothing was cut that matters. */
INLINE int finish(head *h, size_t block, int wide)
{
    const size_t first = block * QUERIES, count = sf_least(QUERIES, h->T - first);
    int fine = 1;
    for (size_t i = 0; i < count; i++) {
        const float total = _mm512_reduce_add_ps(_mm512_load_ps(h->sums[block % TURNS] + i * SF_HALF));
        const __m512 part = _mm512_set1_ps(1.0f / total);
        fine &= total > 0x1p-60f && total < 0x1p100f;
        for (size_t n = 0; n < (wide ? WIDEST : SF_BLOCK); n += SF_BLOCK) {
            const float *x = h->mixed + i * WIDEST + n;
            const __m512 low = _mm512_mul_ps(_mm512_load_ps(x), part),
                         high = _mm512_mul_ps(_mm512_load_ps(x + SF_HALF), part);
            _mm512_storeu_si512(sf_halves(h->out, first + i) + n, (__m512i)_mm512_cvtne2ps_pbh(high, low));
        }
    }
    return fine;
}

/* The panels of all blocks, one after the other; 0 as soon as something was cut that matters. */
INLINE int sweep(head *h, int wide, int shifted)
{
    const size_t blocks = (h->T + QUERIES - 1) / QUERIES;
    place scores = {0, 0, 1}, shares = {0}, values = {0}, ready = {0};
    rows q = {0};
    for (size_t turn = 0; scores.there || shares.there || values.there || ready.there; turn = !turn) {
        if (scores.there && scores.panel == 0) {
            q = queries_of(h, scores.block, wide);
            memset(h->sums[scores.block % TURNS], 0, sizeof h->sums[0]);
            if (shifted) find_tops(h, q, scores.block, wide);
            SF_TILE_FENCE();
            if (!wide) _tile_loadd(3, q.values, q.stride);
        }
        advance(h, q, scores, shares, values, turn, wide, shifted);
        if (ready.there && !finish(h, ready.block, wide) && !shifted) return 0;
        ready = (place){values.block, 0, values.there && values.panel + 1 == h->panels};
        if (ready.there) put_down(h, wide);
        values = shares;
        shares = scores;
        if (++scores.panel == h->panels) scores = (place){scores.block + 1, 0, scores.block + 1 < blocks};
    }
    return 1;
}

TARGET static int sweep_32(head *h) { return sweep(h, 0, 0); }
TARGET static int sweep_64(head *h) { return sweep(h, 1, 0); }
TARGET static int sweep_32_shifted(head *h) { return sweep(h, 0, 1); }
TARGET static int sweep_64_shifted(head *h) { return sweep(h, 1, 1); }

TARGET void sf_attend(sf_view out, sf_view queries, const sf_packed *keys, const sf_packed *values, float scale,
                      size_t T, size_t d)
{
    const int wide = d == WIDEST;
    head h;
    h.out = out;
    h.queries = queries;
    h.keys = keys->values;
    h.values = values->values;
    h.panels = sf_blocks(T);
    h.T = T;
    h.factor = scale * 1.44269504f; /* 1 / log 2 */
    _tile_loadconfig(&sf_tiles);    /* all empty */
    if (!(wide ? sweep_64(&h) : sweep_32(&h))) {
        _tile_loadconfig(&sf_tiles);
        (void)(wide ? sweep_64_shifted(&h) : sweep_32_shifted(&h));
    }
    _tile_release();
}

#else

int sf_attend_can(sf_dtype type, sf_isa isa, size_t d) { return (void)type, (void)isa, (void)d, 0; }

void sf_attend(sf_view out, sf_view queries, const sf_packed *keys, const sf_packed *values, float scale, size_t T,
               size_t d)
{
    (void)out, (void)queries, (void)keys, (void)values, (void)scale, (void)T, (void)d;
}

#endif
