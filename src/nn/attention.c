/* Attention of one head of one text on AMX.
 *
 * 16 queries at a time, and 32 keys: a panel. The exponentials are most of the work, by vector instructions; the tile
 * instructions around them are few, and the processor does them meanwhile, as long as neither waits for the other. So
 * three panels are under way: the scores of one are multiplied while the exponentials of the one before are taken and
 * the values of the one before that are mixed.
 *
 * Softmax stays the same when all scores of a row are shifted, and the numbers of bf16 and f32 are as exact far from
 * 1 as near it. So scores are taken as they are, without looking for the largest first: that is one pass less, and
 * nothing has to wait for the last score. A score beyond +-80 (as a power of two) counts as that (far enough from
 * 2^-126, below which numbers are slow); if then the sum of a row is not between 2^-30 and 2^70, what was cut may
 * matter: its 16 rows are done again with the largest of each row taken off, and the rest of the head like that at
 * once. All of it is a function of the text. */
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

/* What a block of queries works in: scores and shares of two panels, in turns. */
typedef struct room {
    _Alignas(LINE) float scores[2][QUERIES * SF_BLOCK];
    _Alignas(LINE) sf_bf16 shares[2][QUERIES * SF_STEP];
    _Alignas(LINE) float sums[QUERIES * SF_HALF]; /* of the shares of a row, lane by lane */
    _Alignas(LINE) float mixed[QUERIES * WIDEST];
    _Alignas(LINE) sf_bf16 last[QUERIES * WIDEST]; /* queries, where there are less than 16 */
    float tops[QUERIES];
} room;

/* The head, and the queries of a block. */
typedef struct head {
    const char *queries, *keys, *values;
    size_t stride; /* bytes from query to query */
    size_t panels, T;
    float factor; /* scores to powers of two */
} head;

/* --------------------------------------------------------------- exponentials */

/* 2^(i/16), less i where it will be added again: in the highest four bits of the fraction. */
static const _Alignas(LINE) uint32_t roots[16] = {0x3f800000u, 0x3f7daac3u, 0x3f7b95c2u, 0x3f79c3d3u,
                                                  0x3f7837f0u, 0x3f76f532u, 0x3f75fed7u, 0x3f75583fu,
                                                  0x3f7504f3u, 0x3f7508a4u, 0x3f75672au, 0x3f76248cu,
                                                  0x3f7744fdu, 0x3f78ccdfu, 0x3f7ac0c7u, 0x3f7d257du};

/* 2^(factor * x / 16) to within 3e-4, where rounding to bf16 leaves 4e-3; 0 where the mask has none. The nearest
 * sixteenth is looked up, the rest is a straight line: of the two units for vectors only one multiplies while tiles
 * do. */
INLINE __m512 power_of(__m512 x, __m512 factor, __m512 limit, __mmask16 mask)
{
    const __m512 round = _mm512_set1_ps(12582912.0f); /* 1.5 * 2^23: a sum with it is a whole number */
    x = _mm512_range_ps(x, limit, 2);                 /* the smaller in size, with the sign of x */
    const __m512 n = _mm512_fmadd_ps(x, factor, round), f = _mm512_fmsub_ps(x, factor, _mm512_sub_ps(n, round));
    const __m512i root = _mm512_permutexvar_epi32((__m512i)n, _mm512_load_si512(roots));
    const __m512 y = (__m512)_mm512_maskz_add_epi32(mask, root, _mm512_slli_epi32((__m512i)n, 19));
    return _mm512_fmadd_ps(_mm512_mul_ps(y, f), _mm512_set1_ps(0.0433216988f), y); /* log 2 / 16 */
}

/* The columns of a panel that are there. */
INLINE __mmask32 columns_of(const head *h, size_t panel)
{
    return UINT32_MAX >> (SF_BLOCK - sf_least(SF_BLOCK, h->T - panel * SF_BLOCK));
}

/* Scores of a panel on the way to shares. */
typedef struct panel {
    const float *scores;
    sf_bf16 *shares;
    __m512 factor, limit;
    __mmask32 mask;
    int there; /* whether there is one */
} panel;

INLINE panel panel_of(room *r, const head *h, size_t n, int there)
{
    return (panel){r->scores[n % 2],
                   r->shares[n % 2],
                   _mm512_set1_ps(16 * h->factor),
                   _mm512_set1_ps(80.0f / h->factor),
                   there ? columns_of(h, n) : 0,
                   there};
}

/* Row i of them; `shifted`: less the largest of the row. */
INLINE void soften(room *r, const panel *p, size_t i, int shifted)
{
    if (!p->there) return;
    __m512 x = _mm512_load_ps(p->scores + i * SF_BLOCK), y = _mm512_load_ps(p->scores + i * SF_BLOCK + SF_HALF);
    float *sum = r->sums + i * SF_HALF;
    if (shifted) {
        x = _mm512_sub_ps(x, _mm512_set1_ps(r->tops[i]));
        y = _mm512_sub_ps(y, _mm512_set1_ps(r->tops[i]));
    }
    x = power_of(x, p->factor, p->limit, (__mmask16)p->mask);
    y = power_of(y, p->factor, p->limit, (__mmask16)(p->mask >> 16));
    _mm512_store_ps(sum, _mm512_add_ps(_mm512_load_ps(sum), _mm512_add_ps(x, y)));
    _mm512_store_si512(p->shares + i * SF_STEP, (__m512i)_mm512_cvtne2ps_pbh(y, x));
}

/* The largest score of each row. */
INLINE void find_tops(room *r, const head *h, int wide)
{
    for (size_t i = 0; i < QUERIES * SF_HALF; i++)
        r->sums[i] = -FLT_MAX; /* until there are shares: the largest of a lane */
    for (size_t n = 0; n < h->panels; n++) {
        const __mmask32 mask = columns_of(h, n);
        float *scores = r->scores[n % 2];
        const char *keys = h->keys + n * (wide ? 4 : 2) * TILE;
        _tile_zero(4);
        _tile_zero(5);
        for (size_t step = 0; step < (wide ? 2 : 1); step++, keys += 2 * TILE) {
            _tile_loadd(6, h->queries + step * LINE, h->stride);
            _tile_loadd(7, keys, LINE);
            _tile_dpbf16ps(4, 6, 7);
            _tile_loadd(7, keys + TILE, LINE);
            _tile_dpbf16ps(5, 6, 7);
        }
        _tile_stored(4, scores, 2 * LINE);
        _tile_stored(5, scores + SF_HALF, 2 * LINE);
        SF_TILE_FENCE();
        for (size_t i = 0; i < QUERIES; i++) {
            __m512 top = _mm512_load_ps(r->sums + i * SF_HALF);
            top = _mm512_mask_max_ps(top, (__mmask16)mask, top, _mm512_load_ps(scores + i * SF_BLOCK));
            top = _mm512_mask_max_ps(top, (__mmask16)(mask >> 16), top,
                                     _mm512_load_ps(scores + i * SF_BLOCK + SF_HALF));
            _mm512_store_ps(r->sums + i * SF_HALF, top);
        }
    }
    for (size_t i = 0; i < QUERIES; i++) r->tops[i] = _mm512_reduce_max_ps(_mm512_load_ps(r->sums + i * SF_HALF));
}

/* ---------------------------------------------------------------------- a block */

/* A row of the panel before, and then a tile instruction or two if these `have` something to do. */
#define ROW(i, have, ...) \
    soften(r, &p, i, shifted); \
    if (have) { \
        __VA_ARGS__; \
    }

/* The scores of panel n (tiles 4 and 5), the shares of n - 1, the values of n - 2 (tiles 0 to 3). */
INLINE void advance(room *r, const head *h, size_t n, int wide, int shifted)
{
    const int scores = n<h->panels, values = n> 1;
    const char *k = h->keys + n * (wide ? 4 : 2) * TILE, *v = h->values + (n - 2) * 2 * TILE,
               *u = v + h->panels * 2 * TILE;
    const panel p = panel_of(r, h, n - 1, n > 0 && n <= h->panels);
    SF_TILE_FENCE();
    ROW(0, scores, _tile_loadd(6, h->queries, h->stride))
    ROW(1, scores, _tile_loadd(7, k, LINE); _tile_zero(4))
    ROW(2, scores, _tile_dpbf16ps(4, 6, 7); _tile_loadd(7, k + TILE, LINE))
    ROW(3, scores, _tile_zero(5); _tile_dpbf16ps(5, 6, 7))
    ROW(4, scores && wide, _tile_loadd(6, h->queries + LINE, h->stride); _tile_loadd(7, k + 2 * TILE, LINE))
    ROW(5, scores && wide, _tile_dpbf16ps(4, 6, 7); _tile_loadd(7, k + 3 * TILE, LINE))
    ROW(6, scores && wide, _tile_dpbf16ps(5, 6, 7))
    ROW(7, values, _tile_loadd(6, r->shares[n % 2], LINE))
    ROW(8, values, _tile_loadd(7, v, LINE))
    ROW(9, values, _tile_dpbf16ps(0, 6, 7); _tile_loadd(7, v + TILE, LINE))
    ROW(10, scores, _tile_stored(4, r->scores[n % 2], 2 * LINE))
    ROW(11, values, _tile_dpbf16ps(1, 6, 7))
    ROW(12, scores, _tile_stored(5, r->scores[n % 2] + SF_HALF, 2 * LINE))
    ROW(13, values && wide, _tile_loadd(7, u, LINE))
    ROW(14, values && wide, _tile_dpbf16ps(2, 6, 7); _tile_loadd(7, u + TILE, LINE))
    ROW(15, values && wide, _tile_dpbf16ps(3, 6, 7))
}

/* mixed and sums of 16 queries. */
INLINE void mix(room *r, const head *h, int wide, int shifted)
{
    memset(r->sums, 0, sizeof r->sums);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t n = 0; n < h->panels + 2; n++) advance(r, h, n, wide, shifted);
    SF_TILE_FENCE();
    _tile_stored(0, r->mixed, WIDEST * sizeof(float));
    _tile_stored(1, r->mixed + SF_HALF, WIDEST * sizeof(float));
    if (wide) {
        _tile_stored(2, r->mixed + SF_BLOCK, WIDEST * sizeof(float));
        _tile_stored(3, r->mixed + SF_BLOCK + SF_HALF, WIDEST * sizeof(float));
    }
    SF_TILE_FENCE();
}

/* totals (16); whether nothing was lost in the first `rows` of them. */
INLINE int add_up(float *totals, const room *r, size_t rows)
{
    int fine = 1;
    for (size_t i = 0; i < rows; i++) {
        totals[i] = _mm512_reduce_add_ps(_mm512_load_ps(r->sums + i * SF_HALF));
        fine &= totals[i] > 0x1p-30f && totals[i] < 0x1p70f;
    }
    return fine;
}

INLINE void attend_as(sf_view out, sf_view queries, head *h, int wide)
{
    room r;
    float totals[QUERIES];
    int shifted = 0;
    for (size_t first = 0; first < h->T; first += QUERIES) {
        const size_t rows = sf_least(QUERIES, h->T - first), d = wide ? WIDEST : SF_BLOCK;
        h->queries = (const char *)sf_halves(queries, first);
        h->stride = queries.stride * sizeof(sf_bf16);
        if (rows < QUERIES) { /* what lies behind them may not be ours to read */
            memset(r.last, 0, sizeof r.last);
            for (size_t i = 0; i < rows; i++)
                memcpy(r.last + i * WIDEST, sf_halves(queries, first + i), d * sizeof(sf_bf16));
            h->queries = (const char *)r.last;
            h->stride = WIDEST * sizeof(sf_bf16);
        }
        if (!shifted) mix(&r, h, wide, 0);
        if (shifted || !add_up(totals, &r, rows)) {
            shifted = 1;
            find_tops(&r, h, wide);
            mix(&r, h, wide, 1);
            (void)add_up(totals, &r, rows);
        }
        for (size_t i = 0; i < rows; i++)
            for (size_t n = 0; n < d; n += SF_BLOCK) {
                const __m512 part = _mm512_set1_ps(1.0f / totals[i]);
                const float *x = r.mixed + i * WIDEST + n;
                const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(_mm512_load_ps(x + SF_HALF), part),
                                                                  _mm512_mul_ps(_mm512_load_ps(x), part));
                _mm512_storeu_si512(sf_halves(out, first + i) + n, both);
            }
    }
}

TARGET static void attend_32(sf_view out, sf_view queries, head *h) { attend_as(out, queries, h, 0); }
TARGET static void attend_64(sf_view out, sf_view queries, head *h) { attend_as(out, queries, h, 1); }

TARGET void sf_attend(sf_view out, sf_view queries, const sf_packed *keys, const sf_packed *values, float scale,
                      size_t T, size_t d)
{
    head h = {.keys = keys->values, .values = values->values, .panels = sf_blocks(T), .T = T};
    h.factor = scale * 1.44269504f; /* 1 / log 2 */
    _tile_loadconfig(&sf_tiles);
    if (d == WIDEST)
        attend_64(out, queries, &h);
    else
        attend_32(out, queries, &h);
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
