/* Attention of one head of one text on AMX.
 *
 * 16 queries are a block, 32 keys a panel of it. The panels of all blocks pass through a pipeline: scores are
 * multiplied; then their exponentials, the shares, are taken by vector instructions; then the values are mixed by the
 * shares; then, once per block, what was mixed leaves. So neither the tiles nor the vectors wait for the other. It
 * matters that scores are not read soon after they were stored, that the tile instructions are spread between the
 * rows, and that they are few: no more than some eight can be under way.
 *
 * A share is a power of two, and needs to be no better than bf16. So it is put together from whole numbers: the power
 * as a multiple n + f of 1/128, whose bits are those of 2^n (1 + f) in bf16, less a number from a table that makes it
 * 2^(n + f). Its error is below 0.0073 of it, and 0.0023 in the mean square; rounding alone would leave 0.0039 and
 * 0.0017. The sums by which shares are divided are those of the shares as they were rounded.
 *
 * Softmax stays the same when all scores of a row are shifted, and the numbers of bf16 and f32 are as exact far from
 * 1 as near it. So scores are taken as they are, without looking for the largest first: that is one pass less. If a
 * power of two is then outside of -127 to 128, or a sum of shares outside of 2^-30 to 2^70, the block and the rest
 * of the head are done again with the largest score of each row taken off. All of it is a function of the text. */
#include "nn/attention.h"

#include "nn/product_kernel.h"

#include <float.h>

#if SF_HAVE_X86

#define TARGET SF_TARGET_AMX_VBMI
#define INLINE TARGET static inline __attribute__((always_inline))

enum { QUERIES = SF_HALF, WIDEST = 2 * SF_BLOCK, TILE = SF_TILE_BYTES, LINE = 64 };

int sf_attend_can(sf_dtype type, sf_isa isa, size_t d)
{
    return type == SF_BF16 && isa >= SF_AMX && (d == SF_BLOCK || d == WIDEST);
}

/* A panel of a block of queries, and its number in the order of all panels; or none. */
typedef struct place {
    size_t block, panel;
    int there, last; /* the last panel of its block */
} place;

/* The stages of the pipeline: how many panels behind the first. */
enum { FIRST, SECOND, SHARE, VALUE, MIXED, LEAVE, RING = 8 };

/* The head, and what it works in. */
typedef struct head {
    _Alignas(LINE) float scores[2][QUERIES * SF_BLOCK];
    _Alignas(LINE) sf_bf16 shares[2][QUERIES * SF_STEP];
    _Alignas(LINE) float sums[4][QUERIES * SF_HALF]; /* heads of 64: of the shares of a row, lane by lane */
    _Alignas(LINE) float mixed[2][QUERIES * WIDEST]; /* heads of 32: column 32 is the sum of the shares */
    _Alignas(LINE) sf_bf16 last[QUERIES * WIDEST];   /* queries, where there are less than 16 */
    _Alignas(LINE) sf_bf16 ones[QUERIES * SF_STEP];
    int lost;        /* whether a sum is beyond what can be trusted */
    __m512i strange; /* bits that are 0 as long as every power can be taken */
    float tops[QUERIES];
    float factor; /* scores to powers of two */
    sf_view out, queries;
    sf_view inputs[3]; /* queries, keys and values, beside which those of the next head lie */
    const char *keys, *values;
    const char *now; /* the queries of the block that began, and the bytes from one to the next */
    size_t stride;
    const char *then; /* those of the panel before, perhaps of another block */
    size_t then_stride;
    size_t panels, T;
    place places[RING];
    size_t turn; /* of the first stage */
} head;

/* --------------------------------------------------------------- exponentials */

/* 128 (1 + f - 2^f) for every 64th of f. */
static const _Alignas(LINE) uint8_t bends[64] = {0,  1,  1,  2,  2,  3,  4,  4,  5,  5,  5,  6,  6,  7,  7,  8,
                                                 8,  8,  9,  9,  9,  9,  10, 10, 10, 10, 10, 11, 11, 11, 11, 11,
                                                 11, 11, 11, 11, 11, 11, 11, 11, 11, 10, 10, 10, 10, 10, 9,  9,
                                                 9,  8,  8,  8,  7,  7,  6,  6,  5,  5,  4,  3,  3,  2,  1,  1};

/* Scores of a panel on the way to shares. */
typedef struct panel {
    const float *scores;
    sf_bf16 *shares;
    float *sums;
    __m512 factor, limit;
    __mmask32 mask;  /* of shares: the even places are the first 16 columns, the odd ones the others */
    __mmask16 begun; /* none of the sums, or all */
} panel;

INLINE const place *at(const head *h, size_t stage) { return &h->places[(h->turn - stage) % RING]; }

INLINE size_t columns_of(const head *h, size_t n) { return sf_least(SF_BLOCK, h->T - n * SF_BLOCK); }

INLINE panel panel_of(head *h)
{
    const place *now = at(h, SHARE);
    const size_t columns = now->there ? columns_of(h, now->panel) : SF_BLOCK;
    const __mmask32 even = UINT32_MAX >> (SF_BLOCK - 2 * sf_least(columns, SF_HALF)),
                    odd = columns > SF_HALF ? UINT32_MAX >> (2 * (SF_BLOCK - columns)) : 0;
    return (panel){h->scores[(h->turn - SHARE) % 2],
                   h->shares[(h->turn - SHARE) % 2],
                   h->sums[now->block % 4],
                   _mm512_set1_ps(128 * h->factor),
                   _mm512_set1_ps(120.0f / h->factor),
                   (even & 0x55555555u) | (odd & 0xaaaaaaaau),
                   now->panel ? 0xffff : 0};
}

/* Row i of them; `shifted`: less the largest of the row. */
INLINE void soften(const head *h, const panel *p, __m512i *strange, size_t i, int wide, int shifted)
{
    /* A sum with 1.5 * 2^23 is a whole number in its lower bits; 127 is where the exponents of bf16 begin. */
    const __m512 whole = _mm512_set1_ps(12582912.0f + 127 * 128);
    const __m512i bits = _mm512_set1_epi32(0x4b400000), /* of 1.5 * 2^23 */
        second = _mm512_set4_epi32(0x0d0c0d0c, 0x09080908, 0x05040504, 0x01000100);
    __m512 x = _mm512_load_ps(p->scores + i * SF_BLOCK), y = _mm512_load_ps(p->scores + i * SF_BLOCK + SF_HALF);
    if (shifted) {
        const __m512 top = _mm512_set1_ps(h->tops[i]);
        x = _mm512_range_ps(_mm512_sub_ps(x, top), p->limit, 2); /* the smaller in size, with the sign of x */
        y = _mm512_range_ps(_mm512_sub_ps(y, top), p->limit, 2);
    }
    x = _mm512_fmadd_ps(x, p->factor, whole);
    y = _mm512_fmadd_ps(y, p->factor, whole);
    *strange = _mm512_ternarylogic_epi32(*strange, (__m512i)x, bits, 0xf6); /* strange | (x ^ bits) */
    *strange = _mm512_ternarylogic_epi32(*strange, (__m512i)y, bits, 0xf6);
    const __m512i line = _mm512_mask_shuffle_epi8((__m512i)x, 0xccccccccccccccccu, (__m512i)y, second);
    const __m512i bend = _mm512_maskz_permutexvar_epi8(0x5555555555555555u, _mm512_srli_epi16(line, 1),
                                                       _mm512_load_si512(bends));
    const __m512i shares = _mm512_maskz_sub_epi16(p->mask, line, bend);
    _mm512_store_si512(p->shares + i * SF_STEP, shares);
    if (!wide) return;
    float *sum = p->sums + i * SF_HALF;
    _mm512_store_ps(sum, _mm512_dpbf16_ps(_mm512_maskz_load_ps(p->begun, sum), (__m512bh)shares,
                                          (__m512bh)_mm512_load_si512(h->ones)));
}

/* ------------------------------------------------------------- the two ends */

/* The queries of the block that begins. */
INLINE void begin_block(head *h, size_t block, int wide)
{
    const size_t first = block * QUERIES, rows = sf_least(QUERIES, h->T - first);
    h->now = (const char *)sf_halves(h->queries, first);
    h->stride = h->queries.stride * sizeof(sf_bf16);
    for (size_t i = 0; i < rows; i++) /* those of the next head are asked for; an address, which may be nobody's */
        for (size_t n = 0; n < 3; n++)
            _mm_prefetch((const char *)((uintptr_t)sf_halves(h->inputs[n], first + i) + (wide ? 2 * LINE : LINE)),
                         _MM_HINT_T0);
    if (rows == QUERIES) return;
    memset(h->last, 0, sizeof h->last); /* what lies behind them may not be ours to read */
    for (size_t i = 0; i < rows; i++)
        memcpy(h->last + i * WIDEST, sf_halves(h->queries, first + i), (wide ? WIDEST : SF_BLOCK) * sizeof(sf_bf16));
    h->now = (const char *)h->last;
    h->stride = WIDEST * sizeof(sf_bf16);
}

/* Row i of what was mixed leaves. */
INLINE void leave(head *h, size_t i, int wide)
{
    const size_t block = at(h, LEAVE)->block, row = block * QUERIES + i;
    const float *x = h->mixed[block % 2] + i * WIDEST;
    if (row >= h->T) return;
    const float total = wide ? _mm512_reduce_add_ps(_mm512_load_ps(h->sums[block % 4] + i * SF_HALF)) : x[SF_BLOCK];
    const __m512 part = _mm512_set1_ps(1.0f / total);
    if (!(total > 0x1p-30f && total < 0x1p70f)) h->lost = 1;
    for (size_t n = 0; n < (wide ? WIDEST : SF_BLOCK); n += SF_BLOCK) {
        const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(_mm512_load_ps(x + n + SF_HALF), part),
                                                          _mm512_mul_ps(_mm512_load_ps(x + n), part));
        _mm512_storeu_si512(sf_halves(h->out, row) + n, both);
    }
}

/* ------------------------------------------------------------------ a panel */

/* A row of every stage that works on vectors, and then tile instructions. */
#define ROW(i, ...) \
    if (share) soften(h, &p, &strange, i, wide, shifted); \
    if (leaves) leave(h, i, wide); \
    __VA_ARGS__

#define IF(have, ...) \
    if (have) { \
        __VA_ARGS__; \
    }

/* A tile goes to memory, and begins again. */
#define EMPTY(have, tile, to, stride) IF(have, _tile_stored(tile, to, stride); _tile_zero(tile))

/* `steady`: all stages have work, and no block ends. */
#define STAGES_OF(h) \
    const int first = steady || at(h, FIRST)->there, second = steady || at(h, SECOND)->there, \
              share = steady || at(h, SHARE)->there, value = steady || at(h, VALUE)->there, \
              full = !steady && at(h, MIXED)->there && at(h, MIXED)->last, \
              leaves = !steady && at(h, LEAVE)->there && at(h, LEAVE)->last; \
    float *scores = h->scores[(h->turn - SECOND) % 2], *mixed = h->mixed[at(h, MIXED)->block % 2]; \
    const sf_bf16 *shares = h->shares[(h->turn - VALUE) % 2]; \
    const char *v = h->values + at(h, VALUE)->panel * 2 * TILE; \
    const panel p = panel_of(h); \
    __m512i strange = h->strange; \
    enum { SCORES_STRIDE = 2 * LINE, MIXED_STRIDE = WIDEST * sizeof(float) };

/* Heads of 32. Tiles: 0, 1: mixed; 2: sums of shares; 3: queries; 4: scores; 5: shares; 6: keys or values; 7: ones. */
INLINE void advance_32(head *h, int shifted, int steady)
{
    enum { wide = 0 };
    STAGES_OF(h)
    const char *k = h->keys + at(h, FIRST)->panel * 2 * TILE, *l = h->keys + at(h, SECOND)->panel * 2 * TILE + TILE;
    const int begins = first && at(h, FIRST)->panel == 0;
    SF_TILE_FENCE();
    ROW(0, EMPTY(second, 4, scores, SCORES_STRIDE))
    ROW(1, IF(second, _tile_loadd(6, l, LINE)))
    ROW(2, ;)
    ROW(3, IF(second, _tile_dpbf16ps(4, 3, 6)))
    ROW(4, IF(value, _tile_loadd(5, shares, LINE)))
    ROW(5, IF(value, _tile_loadd(6, v, LINE)))
    ROW(6, EMPTY(full, 0, mixed, MIXED_STRIDE))
    ROW(7, IF(value, _tile_dpbf16ps(0, 5, 6)))
    ROW(8, EMPTY(second, 4, scores + SF_HALF, SCORES_STRIDE))
    ROW(9, IF(first, _tile_loadd(6, k, LINE)))
    ROW(10, IF(begins, _tile_loadd(3, h->now, h->stride)))
    ROW(11, IF(first, _tile_dpbf16ps(4, 3, 6)))
    ROW(12, IF(value, _tile_loadd(6, v + TILE, LINE)) EMPTY(full, 2, mixed + SF_BLOCK, MIXED_STRIDE))
    ROW(13, IF(value, _tile_dpbf16ps(2, 5, 7)))
    ROW(14, EMPTY(full, 1, mixed + SF_HALF, MIXED_STRIDE))
    ROW(15, IF(value, _tile_dpbf16ps(1, 5, 6)))
    SF_TILE_FENCE();
    h->strange = strange;
}

/* Heads of 64. Tiles: 0 to 3: mixed; 4, 7: scores; 5: queries or shares; 6: keys or values. */
INLINE void advance_64(head *h, int shifted, int steady)
{
    enum { wide = 1 };
    STAGES_OF(h)
    const char *k = h->keys + at(h, SECOND)->panel * 4 * TILE, *u = v + h->panels * 2 * TILE;
    (void)first;
    SF_TILE_FENCE();
    ROW(0, IF(second, _tile_loadd(5, h->then, h->then_stride)))
    ROW(1, IF(second, _tile_loadd(6, k, LINE)))
    ROW(2, IF(second, _tile_dpbf16ps(4, 5, 6); _tile_loadd(6, k + TILE, LINE)))
    ROW(3, IF(second, _tile_dpbf16ps(7, 5, 6); _tile_loadd(5, h->then + LINE, h->then_stride)))
    ROW(4, IF(second, _tile_loadd(6, k + 2 * TILE, LINE)))
    ROW(5, IF(second, _tile_dpbf16ps(4, 5, 6); _tile_loadd(6, k + 3 * TILE, LINE)))
    ROW(6, IF(second, _tile_dpbf16ps(7, 5, 6)))
    ROW(7, IF(value, _tile_loadd(5, shares, LINE)))
    ROW(8, IF(value, _tile_loadd(6, v, LINE)) EMPTY(full, 0, mixed, MIXED_STRIDE))
    ROW(9, IF(value, _tile_dpbf16ps(0, 5, 6); _tile_loadd(6, v + TILE, LINE)))
    ROW(10, EMPTY(full, 1, mixed + SF_HALF, MIXED_STRIDE))
    ROW(11, IF(value, _tile_dpbf16ps(1, 5, 6); _tile_loadd(6, u, LINE)) EMPTY(second, 4, scores, SCORES_STRIDE))
    ROW(12, EMPTY(full, 2, mixed + SF_BLOCK, MIXED_STRIDE))
    ROW(13, IF(value, _tile_dpbf16ps(2, 5, 6); _tile_loadd(6, u + TILE, LINE))
                EMPTY(second, 7, scores + SF_HALF, SCORES_STRIDE))
    ROW(14, EMPTY(full, 3, mixed + SF_BLOCK + SF_HALF, MIXED_STRIDE))
    ROW(15, IF(value, _tile_dpbf16ps(3, 5, 6)))
    SF_TILE_FENCE();
    h->strange = strange;
}

/* Blocks from `first` to the one before `last`, or to the first in which something was strange: returns where it
 * ended. */
INLINE size_t pass(head *h, size_t first, size_t last, int wide, int shifted)
{
    place next = {first, 0, 1, h->panels == 1};
    memset(h->places, 0, sizeof h->places);
    h->turn = 0;
    h->lost = 0;
    h->strange = _mm512_setzero_si512();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    if (wide)
        _tile_zero(7);
    else
        _tile_loadd(7, h->ones, LINE);
    for (;;) {
        place *now = &h->places[++h->turn % RING];
        now->block = next.block;
        now->panel = next.panel;
        now->there = next.there;
        now->last = next.last;
        h->then = h->now, h->then_stride = h->stride;
        if (next.there && next.panel == 0) begin_block(h, next.block, wide);
        const int steady = next.there && at(h, VALUE)->there && !at(h, MIXED)->last && !at(h, LEAVE)->last;
        if (wide && steady)
            advance_64(h, shifted, 1);
        else if (wide)
            advance_64(h, shifted, 0);
        else if (steady)
            advance_32(h, shifted, 1);
        else
            advance_32(h, shifted, 0);
        const place *done = at(h, LEAVE);
        if (done->there && done->last) {
            if (h->lost || _mm512_test_epi32_mask(h->strange, _mm512_set1_epi32((int)0xffff8000u))) return done->block;
            if (done->block + 1 == last) return last;
        }
        if (++next.panel == h->panels) {
            next.panel = 0;
            next.there = ++next.block < last;
        }
        next.last = next.panel + 1 == h->panels;
    }
}

/* ------------------------------------------------------------------- a head */

/* The largest score of each row of a block. */
INLINE void find_tops(head *h, size_t block, int wide)
{
    float *tops = h->sums[0], *scores = h->scores[0]; /* the largest of a lane; there are no sums yet */
    begin_block(h, block, wide);
    for (size_t i = 0; i < QUERIES * SF_HALF; i++) tops[i] = -FLT_MAX;
    for (size_t n = 0; n < h->panels; n++) {
        const __mmask32 mask = UINT32_MAX >> (SF_BLOCK - columns_of(h, n));
        const char *keys = h->keys + n * (wide ? 4 : 2) * TILE;
        SF_TILE_FENCE();
        _tile_zero(4);
        _tile_zero(5);
        for (size_t step = 0; step < (wide ? 2 : 1); step++, keys += 2 * TILE) {
            _tile_loadd(6, h->now + step * LINE, h->stride);
            _tile_loadd(7, keys, LINE);
            _tile_dpbf16ps(4, 6, 7);
            _tile_loadd(7, keys + TILE, LINE);
            _tile_dpbf16ps(5, 6, 7);
        }
        _tile_stored(4, scores, 2 * LINE);
        _tile_stored(5, scores + SF_HALF, 2 * LINE);
        SF_TILE_FENCE();
        for (size_t i = 0; i < QUERIES; i++) {
            __m512 top = _mm512_load_ps(tops + i * SF_HALF);
            top = _mm512_mask_max_ps(top, (__mmask16)mask, top, _mm512_load_ps(scores + i * SF_BLOCK));
            top = _mm512_mask_max_ps(top, (__mmask16)(mask >> 16), top,
                                     _mm512_load_ps(scores + i * SF_BLOCK + SF_HALF));
            _mm512_store_ps(tops + i * SF_HALF, top);
        }
    }
    for (size_t i = 0; i < QUERIES; i++) h->tops[i] = _mm512_reduce_max_ps(_mm512_load_ps(tops + i * SF_HALF));
}

INLINE void attend_as(head *h, int wide)
{
    const size_t blocks = (h->T + QUERIES - 1) / QUERIES;
    for (size_t block = pass(h, 0, blocks, wide, 0); block < blocks; block++) {
        find_tops(h, block, wide);
        (void)pass(h, block, block + 1, wide, 1);
    }
}

TARGET static void attend_32(head *h) { attend_as(h, 0); }
TARGET static void attend_64(head *h) { attend_as(h, 1); }

/* Values as the right side of a product, but with those of keys j and j + 16 of a panel side by side: as the shares. */
TARGET static void pack_values(char *out, sf_view values, size_t T, size_t d)
{
    const __m512i order = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0), none = _mm512_setzero_si512();
    for (size_t column = 0; column < d; column += SF_BLOCK)
        for (size_t first = 0; first < T; first += SF_BLOCK, out += 2 * TILE)
            for (size_t i = 0; i < SF_HALF; i++) {
                const size_t a = first + i, b = a + SF_HALF;
                const __m512i x = a < T ? _mm512_loadu_si512(sf_halves(values, a) + column) : none;
                const __m512i y = b < T ? _mm512_loadu_si512(sf_halves(values, b) + column) : none;
                const __m512i p = _mm512_permutexvar_epi64(order, x), q = _mm512_permutexvar_epi64(order, y);
                _mm512_store_si512(out + i * LINE, _mm512_unpacklo_epi16(p, q));
                _mm512_store_si512(out + TILE + i * LINE, _mm512_unpackhi_epi16(p, q));
            }
}

TARGET void sf_attend(sf_view out, sf_view queries, sf_view keys, sf_view values, sf_packed *packed_keys,
                      sf_packed *packed_values, float scale, size_t T, size_t d)
{
    head h;
    h.out = out;
    h.queries = queries;
    h.inputs[0] = queries, h.inputs[1] = keys, h.inputs[2] = values;
    h.keys = packed_keys->values;
    h.values = packed_values->values;
    h.panels = sf_blocks(T);
    h.T = T;
    h.factor = scale * 1.44269504f; /* 1 / log 2 */
    for (size_t i = 0; i < QUERIES; i++) _mm512_store_si512(h.ones + i * SF_STEP, _mm512_set1_epi16(0x3f80));
    sf_pack(packed_keys, keys, 1, 0, h.panels);
    pack_values(packed_values->values, values, T, d);
    SF_TILE_FENCE();
    _tile_loadconfig(&sf_tiles);
    if (d == WIDEST)
        attend_64(&h);
    else
        attend_32(&h);
    _tile_release();
}

#else

int sf_attend_can(sf_dtype type, sf_isa isa, size_t d) { return (void)type, (void)isa, (void)d, 0; }

void sf_attend(sf_view out, sf_view queries, sf_view keys, sf_view values, sf_packed *packed_keys,
               sf_packed *packed_values, float scale, size_t T, size_t d)
{
    (void)out, (void)queries, (void)keys, (void)values, (void)packed_keys, (void)packed_values, (void)scale, (void)T,
        (void)d;
}

#endif
