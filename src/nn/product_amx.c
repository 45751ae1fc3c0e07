/* The bf16 product on AMX.
 *
 * A block of 32 by 32 sums is four tiles; a step of 32 along the inner dimension loads two
 * tiles of the left side and two of the right and multiplies each with each: four loads and
 * four multiplications of 16 cycles, so that the loads must cost less than 64 cycles. What
 * was measured on Sapphire Rapids (2.3 GHz with tiles in use, as shares of the bare loop):
 *
 *   - 32 rows of the left side stay in the first-level cache while the panels of the right
 *     side pass by, out of the second-level one. Loaded plainly, the panels push the rows
 *     out, and everything comes from the second level (0.75). Loaded with the hint "not
 *     into the first level" they do not (1.00 up to depth 640).
 *   - All four loads first, then the multiplications (1.00); taking turns costs 6%.
 *   - There are few tile registers to rename: while a multiplication waits, only some 8 tile
 *     instructions further on can be taken in. Other work between them is free only when it
 *     is spread evenly: 96 instructions after the fourth multiplication of each step halve
 *     the rate, 12 after each of the eight tile instructions cost nothing.
 *   - Storing the sums costs 10% at depth 256, and reading them back at once another 10%. So
 *     they are stored when the next block begins, tile by tile as their registers are needed,
 *     and leave (bias, activation, conversion, the write to memory) row by row between the
 *     tile instructions of that block: 0.82 at depth 384 with all that in the second-level
 *     cache. Where results go is asked for beforehand; in f32 that is up to half as fast again.
 *   - One call of a function with SSE instructions in it cost 500 cycles per block: none here. */
#include "nn/product_kernel.h"

#if SF_HAVE_X86
#include "base/progress.h"
#include "nn/simd.h"

#include <float.h>
#include <math.h>

#define TARGET SF_TARGET_AMX

/* The activations of vector.h, inlined between tile instructions. */
#define NAME(x) x##_amx
#define AVX512 1
#include "nn/simd_lanes.h"
#include "nn/activation_kernels.h"

#define NOINLINE TARGET static __attribute__((noinline))

enum {
    TILE = SF_TILE_BYTES,
    STRIDE = 128,    /* bytes of a row of sums */
    AHEAD = 4,       /* the most lines of the left side asked for in a step */
    SOON = 5,        /* and lines of sums */
    PANELS = 16,     /* whose sums are kept when the inner dimension is cut */
    DEEP = 1536,     /* the most of it at a time, where that can be chosen */
    LEVEL2 = 1200000 /* bytes of the right side that stay in the second-level cache */
};

/* Palette 1: eight tiles of 16 rows of 64 bytes. In memory for good, because compilers think
 * that only its first bytes are read. */
const sf_tile_shapes sf_tiles = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

/* ------------------------------------------------------------------- leaving */

/* How sums leave: not yet, as bf16, as f32, added to what is there. */
enum { STAY, HALF, FULL, ADD };

typedef struct leaving {
    int mode, active;
    sf_activation activation;
    const float *sums;
    char *out;
    size_t stride; /* bytes */
    size_t rows;
    __mmask32 mask; /* the columns that are there */
    float bias[SF_BLOCK];
} leaving;

/* GELU for results in bf16, x Phi(x): Phi is a parabola for every half between -3.74 and 3.74, and 0 or 1 outside, with
 * an error of 5e-4 of the result where rounding it leaves 4e-3. Looked up because while tiles are multiplied the
 * processor has one unit for multiplications and another for all else: four of the first, of which the polynomial of
 * nn/activation_kernels.h has fourteen, hide behind the tiles. */
INLINE __m512 rough_gelu(__m512 x)
{
    static const _Alignas(64) float parabolas[3][16] = {
        /* of 0, 1/2, ..., 7/2, none, -7/2, ..., -1/2 */
        {0.5f, 0.691462461f, 0.841344746f, 0.933192799f, 0.977249868f, 0.993790335f, 0.998650102f, 0.999768692f, 0.0f,
         0.000231308267f, 0.00134989803f, 0.00620966533f, 0.0227501319f, 0.0668072013f, 0.158655254f, 0.308537539f},
        {0.395847337f, 0.350012483f, 0.241961942f, 0.130769578f, 0.0552514248f, 0.0182486721f, 0.0047112647f,
         0.00114083366f, 0.0f, 0.00114083366f, 0.0047112647f, 0.0182486721f, 0.0552514248f, 0.130769578f, 0.241961942f,
         0.350012483f},
        {0.0f, -0.0870775566f, -0.120044582f, -0.096852185f, -0.0541989148f, -0.0221874036f, -0.00680381876f,
         -0.000737705051f, 0.0f, 0.000737705051f, 0.00680381876f, 0.0221874036f, 0.0541989148f, 0.096852185f,
         0.120044582f, 0.0870775566f}};
    const __m512 halves = _mm512_set1_ps(6291456.0f); /* 1.5 * 2^22: a sum with it is a whole number of halves */
    const __m512 y = _mm512_range_ps(x, _mm512_set1_ps(3.74f), 2); /* the smaller in size, with the sign of x */
    const __m512 at = _mm512_add_ps(y, halves), r = _mm512_sub_ps(y, _mm512_sub_ps(at, halves));
    __m512 p = _mm512_permutexvar_ps((__m512i)at, _mm512_load_ps(parabolas[2]));
    p = _mm512_fmadd_ps(p, r, _mm512_permutexvar_ps((__m512i)at, _mm512_load_ps(parabolas[1])));
    p = _mm512_fmadd_ps(p, r, _mm512_permutexvar_ps((__m512i)at, _mm512_load_ps(parabolas[0])));
    return _mm512_mul_ps(x, p);
}

INLINE __m512 activated(__m512 x, sf_activation activation, int rough)
{
    v16 y = (v16)x;
    if (activation == SF_GELU && rough) return rough_gelu(x);
    if (activation == SF_GELU)
        activate16_amx(&y, SF_GELU, 0);
    else if (activation == SF_GELU_TANH)
        activate16_amx(&y, SF_GELU_TANH, rough);
    else if (activation == SF_SILU)
        activate16_amx(&y, SF_SILU, rough);
    else
        activate16_amx(&y, SF_RELU, rough);
    return (__m512)y;
}

/* The same in registers, which the compiler would otherwise load again for every row. */
typedef struct door {
    const float *sums;
    char *out;
    size_t stride;
    __mmask32 mask;
    sf_activation activation;
    __m512 low, high; /* bias */
} door;

INLINE door open_door(const leaving *l)
{
    return (door){
        l->sums, l->out, l->stride, l->mask, l->activation, _mm512_loadu_ps(l->bias), _mm512_loadu_ps(l->bias + 16)};
}

/* One row leaves, and the door moves on to the next. */
INLINE void leave_row(door *d, int mode, int active)
{
    const __mmask16 low = (__mmask16)d->mask, high = (__mmask16)(d->mask >> 16);
    __m512 x = _mm512_add_ps(_mm512_load_ps(d->sums), d->low), y = _mm512_add_ps(_mm512_load_ps(d->sums + 16), d->high);
    if (active) {
        x = activated(x, d->activation, mode == HALF);
        y = activated(y, d->activation, mode == HALF);
    }
    if (mode == HALF) {
        _mm512_mask_storeu_epi16(d->out, d->mask, (__m512i)_mm512_cvtne2ps_pbh(y, x));
    } else {
        if (mode == ADD) {
            x = _mm512_add_ps(_mm512_maskz_loadu_ps(low, d->out), x);
            y = _mm512_add_ps(_mm512_maskz_loadu_ps(high, d->out + 64), y);
        }
        _mm512_mask_storeu_ps(d->out, low, x);
        _mm512_mask_storeu_ps(d->out + 64, high, y);
    }
    d->sums += SF_BLOCK;
    d->out += d->stride;
}

INLINE void leave_as(const leaving *l, int mode, int active)
{
    door d = open_door(l);
    for (size_t r = 0; r < l->rows; r++) leave_row(&d, mode, active);
}

/* Does nothing for sums that stay. */
NOINLINE void leave_all(const leaving *l)
{
    if (l->mode == HALF && l->active)
        leave_as(l, HALF, 1);
    else if (l->mode == HALF)
        leave_as(l, HALF, 0);
    else if (l->mode == FULL && l->active)
        leave_as(l, FULL, 1);
    else if (l->mode == FULL)
        leave_as(l, FULL, 0);
    else if (l->mode == ADD)
        leave_as(l, ADD, 0);
}

/* The block of sums at this row and column of the result is ready to leave. */
INLINE void plan(leaving *l, const sf_job *j, const float *sums, size_t row, size_t column, size_t rows)
{
    const size_t columns = sf_least(SF_BLOCK, j->packed->N - column);
    const __m512 none = _mm512_set1_ps(-0.0f); /* x + -0 is x, even for x = -0 */
    l->mode = j->add ? ADD : j->out.type == SF_BF16 ? HALF : FULL;
    l->active = j->activation != SF_LINEAR;
    l->activation = j->activation;
    l->sums = sums;
    l->out = sf_shift(j->out, row, column).values;
    l->stride = j->out.stride * sf_element(j->out.type);
    l->rows = rows;
    l->mask = UINT32_MAX >> (SF_BLOCK - columns);
    _mm512_storeu_ps(l->bias, j->bias ? _mm512_mask_loadu_ps(none, (__mmask16)l->mask, j->bias + column) : none);
    _mm512_storeu_ps(l->bias + 16,
                     j->bias ? _mm512_mask_loadu_ps(none, (__mmask16)(l->mask >> 16), j->bias + column + 16) : none);
}

/* --------------------------------------------------------------------- block */

typedef struct work {
    const char *a, *b;
    size_t stride, step, steps; /* of the left side: bytes from row to row, and from step to step */
    const float *more;          /* sums to add to, or NULL */
    float *before;              /* where the sums of the block before, still in the tiles, go */

    /* What will be wanted soon: the rows of the left side that come next, some lines of the cache
     * in each step (an address, which may run past their end); the sums of the next block, or
     * NULL; and the places where those of this one will go, one or two lines per row, or NULL. */
    uintptr_t ahead;
    size_t ahead_lines;
    const char *soon, *out;
    size_t out_stride;
    int out_lines;
} work;

/* The compilers' own prefetch asks to read unless compiled for this instruction. */
INLINE void ask_to_write(const char *line) { __asm__ volatile("prefetchw %0" ::"m"(*line)); }

/* Stands in where nothing leaves: when another thread shares the core, tile instructions that
 * follow each other closely are 8% slower. */
#define SPACE() __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop")

/* A place between tile instructions, the i-th of eight of a step, where lines of the cache may
 * be asked for and a row may leave. */
#define SLOT(i) \
    if ((i) < AHEAD && (i) < lines) _mm_prefetch((const char *)ahead + (i)*64, _MM_HINT_T1); \
    if ((i) >= 8 - SOON && soon) _mm_prefetch(soon + ((i)-8 + SOON) * 64, _MM_HINT_T0); \
    if ((i) >= 1 && (i) <= 3 && wanted) { \
        ask_to_write(out); \
        if (w->out_lines == 2) ask_to_write(out + 64); \
        out += w->out_stride; \
        wanted--; \
    } \
    if (mode == STAY) SPACE(); \
    if (mode != STAY && (pattern >> (i)&1) && left) { \
        leave_row(&d, mode, active); \
        left--; \
    }

#define LOADS \
    _tile_stream_loadd(6, b, SF_HALF * 4); \
    SLOT(0) \
    _tile_loadd(4, a, stride); \
    SLOT(1) \
    _tile_stream_loadd(7, b + TILE, SF_HALF * 4); \
    SLOT(2) \
    _tile_loadd(5, a + SF_HALF * stride, stride); \
    SLOT(3)

/* The sums of the block before give way to those of this one. */
#define CHANGE(tile, at) \
    _tile_stored(tile, w->before + (at), STRIDE); \
    if (w->more) \
        _tile_loadd(tile, w->more + (at), STRIDE); \
    else \
        _tile_zero(tile);

INLINE void block_as(const work *w, const leaving *l, int mode, int active)
{
    const char *a = w->a, *b = w->b, *out = w->out, *soon = NULL;
    const size_t stride = w->stride, steps = w->steps, lines = w->ahead_lines;
    uintptr_t ahead = w->ahead;
    unsigned wanted = 0, pattern = 0, left = SF_BLOCK; /* nothing leaves in the first step: it is still in the tiles */
    door d = open_door(l);
    SF_TILE_FENCE();
    LOADS
    CHANGE(0, 0)
    _tile_dpbf16ps(0, 4, 6);
    CHANGE(1, SF_HALF)
    _tile_dpbf16ps(1, 4, 7);
    CHANGE(2, SF_SUMS / 2)
    _tile_dpbf16ps(2, 5, 6);
    CHANGE(3, SF_SUMS / 2 + SF_HALF)
    _tile_dpbf16ps(3, 5, 7);
    soon = w->soon;
    wanted = out ? SF_BLOCK : 0;
    pattern = steps > 11 ? 0x70 : steps > 8 ? 0xf0 : 0xff; /* the places where a row leaves */
    for (size_t s = 1; s < steps; s++) {
        a += w->step, b += 2 * TILE, ahead += lines * 64;
        LOADS
        _tile_dpbf16ps(0, 4, 6);
        SLOT(4)
        _tile_dpbf16ps(1, 4, 7);
        SLOT(5)
        _tile_dpbf16ps(2, 5, 6);
        SLOT(6)
        _tile_dpbf16ps(3, 5, 7);
        SLOT(7)
        if (soon) soon += SOON * 64;
    }
    if (mode != STAY)
        for (; left; left--) leave_row(&d, mode, active);
}

NOINLINE void block_stay(const work *w, const leaving *l) { block_as(w, l, STAY, 0); }
NOINLINE void block_half(const work *w, const leaving *l) { block_as(w, l, HALF, 0); }
NOINLINE void block_full(const work *w, const leaving *l) { block_as(w, l, FULL, 0); }
NOINLINE void block_add(const work *w, const leaving *l) { block_as(w, l, ADD, 0); }
NOINLINE void block_half_active(const work *w, const leaving *l) { block_as(w, l, HALF, 1); }
NOINLINE void block_full_active(const work *w, const leaving *l) { block_as(w, l, FULL, 1); }

/* A block is multiplied while the one before leaves. */
INLINE void block(const work *w, const leaving *l)
{
    if (l->mode == STAY || l->rows < SF_BLOCK) {
        block_stay(w, l);
        leave_all(l);
    } else if (l->mode == HALF) {
        if (l->active)
            block_half_active(w, l);
        else
            block_half(w, l);
    } else if (l->mode == FULL) {
        if (l->active)
            block_full_active(w, l);
        else
            block_full(w, l);
    } else {
        block_add(w, l);
    }
}

/* ----------------------------------------------------------------- left side */

TARGET static void take(char *out, sf_view in, size_t rows, size_t K)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < K; k += SF_STEP)
            _mm512_store_si512(out + k / SF_STEP * 2 * TILE + r * 64, sf_take_32(in, r, k, K - k));
    for (size_t r = rows; r < SF_BLOCK; r++)
        for (size_t k = 0; k < K; k += SF_STEP)
            _mm512_store_si512(out + k / SF_STEP * 2 * TILE + r * 64, _mm512_setzero_si512());
}

/* Whether 32 rows can be loaded from where they are: whole steps of whole lines of the cache,
 * and a stride that spreads them over its sets. With few panels copying would cost more than
 * it gains. */
static int in_place(sf_view a, size_t K, size_t panels)
{
    if (a.type != SF_BF16 || K % SF_STEP) return 0;
    return panels <= 2 || ((uintptr_t)a.values % 64 == 0 && a.stride % 32 == 0 && a.stride % 1024 != 0);
}

/* ------------------------------------------------------------------- product */

/* What a thread works in. The inner dimension from `begin` to `end` is cut into so many pieces
 * of `depth`. */
typedef struct state {
    sf_job job;
    size_t begin, end, depth, cuts;
    int in_place;
    float *before; /* the sums in the tiles belong here */
    leaving leaving;
    _Alignas(64) char left[SF_DEPTH * SF_BLOCK * sizeof(sf_bf16)];
    _Alignas(64) float sums[PANELS * SF_SUMS];
} state;

/* The left side of a block: 32 rows of D elements at (row, k). */
INLINE void set_left(state *s, work *w, size_t row, size_t k, size_t rows, size_t D)
{
    const sf_view a = sf_shift(s->job.a, row, k);
    w->steps = sf_blocks(D);
    if (s->in_place && rows == SF_BLOCK) {
        w->a = a.values;
        w->stride = a.stride * sizeof(sf_bf16);
        w->step = SF_STEP * sizeof(sf_bf16);
    } else {
        take(s->left, a, rows, D);
        w->a = s->left;
        w->stride = SF_STEP * sizeof(sf_bf16);
        w->step = 2 * TILE;
    }
}

/* Rows of the result, in panels first..last-1. There are `next` rows after them. */
TARGET static void multiply_rows(state *s, size_t row, size_t rows, size_t next, size_t first, size_t last)
{
    const sf_view a = s->job.a, out = s->job.out;
    const sf_packed *p = s->job.packed;
    const size_t stride = a.stride * sf_element(a.type), steps = (last - first) * sf_blocks(s->end - s->begin);
    const size_t lines = (next * stride / 64 + steps - 1) / steps;
    work w = {.ahead = (uintptr_t)sf_shift(a, row, 0).values + rows * stride};
    w.ahead_lines = lines <= AHEAD && a.stride <= 2 * p->K ? lines : 0;
    w.out_stride = out.stride * sf_element(out.type);
    w.out_lines = out.type == SF_F32 ? 2 : 1;
    for (size_t k = s->begin; k < s->end; k += s->depth) {
        const size_t D = sf_least(s->depth, s->end - k);
        const int begins = k == s->begin, ends = k + D == s->end;
        set_left(s, &w, row, k, rows, D);
        for (size_t n = first; n < last; n++) {
            float *sums = s->sums + (s->cuts > 1 ? n - first : 0) * SF_SUMS;
            w.b = (const char *)p->values + (n * sf_blocks(p->K) + k / SF_STEP) * 2 * TILE;
            w.more = begins ? NULL : sums;
            w.soon = begins || n + 1 == last ? NULL : (const char *)(sums + SF_SUMS);
            w.out = ends && rows == SF_BLOCK ? sf_shift(out, row, n * SF_BLOCK).values : NULL;
            w.before = s->before;
            block(&w, &s->leaving);
            w.ahead += w.ahead_lines * w.steps * 64;
            s->before = sums;
            s->leaving.mode = STAY;
            if (ends) plan(&s->leaving, &s->job, sums, row, n * SF_BLOCK, rows);
        }
    }
}

/* All rows, with the inner dimension from s->begin to s->end. As many panels at a time as stay
 * in the second-level cache. */
TARGET static void multiply(state *s, size_t M)
{
    const size_t panels = sf_blocks(s->job.packed->N), steps = sf_blocks(s->end - s->begin);
    s->cuts = (steps * SF_STEP + SF_DEPTH - 1) / SF_DEPTH;
    s->depth = (steps + s->cuts - 1) / s->cuts * SF_STEP;
    size_t group = LEVEL2 / (steps * 2 * TILE);
    if (s->cuts > 1) group = sf_least(group, PANELS);
    if (group == 0) group = 1;
    const size_t groups = (panels + group - 1) / group;
    group = (panels + groups - 1) / groups;
    for (size_t first = 0; first < panels; first += group)
        for (size_t row = 0; row < M; row += SF_BLOCK) {
            size_t rows = sf_least(SF_BLOCK, M - row);
            multiply_rows(s, row, rows, sf_least(SF_BLOCK, M - row - rows), first, sf_least(panels, first + group));
        }
}

/* One step deep, into f32 as it is, as scores of attention are: there is nothing to hide the way
 * out behind, and whole blocks go straight from the tiles to their place. */
TARGET static void multiply_shallow(state *s, size_t M)
{
    const sf_view out = s->job.out;
    const size_t panels = sf_blocks(s->job.packed->N), N = s->job.packed->N;
    work w;
    for (size_t row = 0; row < M; row += SF_BLOCK) {
        const size_t rows = sf_least(SF_BLOCK, M - row);
        const char *b = s->job.packed->values;
        set_left(s, &w, row, 0, rows, s->job.packed->K);
        SF_TILE_FENCE();
        _tile_loadd(4, w.a, w.stride);
        _tile_loadd(5, w.a + SF_HALF * w.stride, w.stride);
        for (size_t n = 0; n < panels; n++, b += 2 * TILE) {
            const int whole = rows == SF_BLOCK && N - n * SF_BLOCK >= SF_BLOCK;
            float *sums = whole ? sf_shift(out, row, n * SF_BLOCK).values : s->sums;
            const size_t stride = whole ? out.stride : SF_BLOCK;
            _tile_stream_loadd(6, b, SF_HALF * 4);
            _tile_stream_loadd(7, b + TILE, SF_HALF * 4);
            _tile_zero(0);
            _tile_dpbf16ps(0, 4, 6);
            _tile_zero(1);
            _tile_dpbf16ps(1, 4, 7);
            _tile_zero(2);
            _tile_dpbf16ps(2, 5, 6);
            _tile_zero(3);
            _tile_dpbf16ps(3, 5, 7);
            _tile_stored(0, sums, stride * sizeof *sums);
            _tile_stored(1, sums + SF_HALF, stride * sizeof *sums);
            _tile_stored(2, sums + SF_HALF * stride, stride * sizeof *sums);
            _tile_stored(3, sums + SF_HALF * stride + SF_HALF, stride * sizeof *sums);
            if (whole) continue;
            SF_TILE_FENCE();
            plan(&s->leaving, &s->job, sums, row, n * SF_BLOCK, rows);
            leave_all(&s->leaving);
        }
    }
    SF_TILE_FENCE();
}

/* A deep product into f32 is made of less deep ones, one added to the other: of a deep right
 * side only few panels would stay in the cache. */
TARGET void sf_product_amx(const sf_job *job, size_t M)
{
    const size_t K = job->packed->K, steps = sf_blocks(K);
    const size_t parts = job->out.type == SF_F32 && job->activation == SF_LINEAR ? (steps * SF_STEP + DEEP - 1) / DEEP
                                                                                 : 1;
    const size_t depth = (steps + parts - 1) / parts * SF_STEP;
    state s;
    s.job = *job;
    s.in_place = in_place(job->a, K, sf_blocks(job->packed->N));
    s.before = s.sums;
    s.leaving = (leaving){.mode = STAY};
    _tile_loadconfig(&sf_tiles);
    if (steps == 1 && job->out.type == SF_F32 && job->activation == SF_LINEAR && !job->bias && !job->add) {
        multiply_shallow(&s, M);
        _tile_release();
        return;
    }
    for (s.begin = 0; s.begin < K; s.begin = s.end) {
        s.end = sf_least(K, s.begin + depth);
        multiply(&s, M);
        s.job.add = 1; /* the block that is leaving has its orders already */
        s.job.bias = NULL;
    }
    _tile_stored(0, s.before, STRIDE);
    _tile_stored(1, s.before + SF_HALF, STRIDE);
    _tile_stored(2, s.before + SF_SUMS / 2, STRIDE);
    _tile_stored(3, s.before + SF_SUMS / 2 + SF_HALF, STRIDE);
    _tile_release();
    leave_all(&s.leaving);
}

/* The numbers matter: with zeros the loop is a fifth faster. */
TARGET double sf_peak_amx(double seconds)
{
    enum { ROUNDS = 4000 };
    sf_bf16 numbers[4][TILE / 2];
    double best = 0, begin = sf_seconds(), now = begin;
    for (uint32_t i = 0, x = 1; i < 4 * TILE / 2; i++, x = x * 1664525 + 1013904223)
        numbers[i / (TILE / 2)][i % (TILE / 2)] = (sf_bf16)(0x3f00 | (x >> 24) | (x >> 8 & 0x8000));
    SF_TILE_FENCE();
    _tile_loadconfig(&sf_tiles);
    _tile_loadd(4, numbers[0], 64);
    _tile_loadd(5, numbers[1], 64);
    _tile_loadd(6, numbers[2], 64);
    _tile_loadd(7, numbers[3], 64);
    do {
        const double start = now;
        for (int i = 0; i < ROUNDS; i++) {
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        now = sf_seconds();
        const double rate = ROUNDS * 4 * 2.0 * 16 * 16 * 32 / (now - start);
        if (rate > best) best = rate;
    } while (now - begin < seconds);
    _tile_release();
    return best;
}

#endif
