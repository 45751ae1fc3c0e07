/* The matrix products: every instruction set against a naive product in double precision,
 * and against itself where bits must not change. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/parallel.h"
#include "nn/product_kernel.h"
#include "nn/vector.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ------------------------------------------------------------------ support */

static sf_isa best(void)
{
    unsetenv("SAFER_ISA");
    return sf_isa_choose();
}

static void *must(void *pointer)
{
    assert_non_null(pointer);
    return pointer;
}

static size_t size_of(sf_dtype type) { return type == SF_F32 ? sizeof(float) : sizeof(sf_bf16); }

/* Rounding by another way: the neighbour that is nearer, or the even one. */
static sf_bf16 rounded(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) return (sf_bf16)(bits >> 16 | 0x40);
    uint32_t low = bits & 0xffff, high = bits >> 16;
    return (sf_bf16)(low > 0x8000 || (low == 0x8000 && high % 2) ? high + 1 : high);
}

static float widened(sf_bf16 x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float get(sf_view v, size_t row, size_t column)
{
    size_t at = row * v.stride + column;
    return v.type == SF_F32 ? ((float *)v.values)[at] : widened(((sf_bf16 *)v.values)[at]);
}

static void put(sf_view v, size_t row, size_t column, float x)
{
    size_t at = row * v.stride + column;
    if (v.type == SF_F32)
        ((float *)v.values)[at] = x;
    else
        ((sf_bf16 *)v.values)[at] = rounded(x);
}

/* A matrix that ends with its last element at a page that may not be touched, and begins
 * after one. */
typedef struct guarded {
    char *map;
    size_t size;
    sf_view view;
} guarded;

static guarded guard(size_t rows, size_t columns, size_t stride, sf_dtype type)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = ((rows - 1) * stride + columns) * size_of(type);
    guarded g = {.size = (bytes + page - 1) / page * page + 2 * page};
    g.map = mmap(NULL, g.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.map != MAP_FAILED);
    assert_int_equal(mprotect(g.map, page, PROT_NONE), 0);
    assert_int_equal(mprotect(g.map + g.size - page, page, PROT_NONE), 0);
    g.view = (sf_view){g.map + g.size - page - bytes, stride, type};
    memset(g.map + page, 0xff, g.size - 2 * page); /* NaN, between rows too */
    return g;
}

static void unguard(guarded *g) { munmap(g->map, g->size); }

static void fill(sf_view v, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) put(v, i, j, next_float());
}

static double activated(double x, sf_activation activation)
{
    switch (activation) {
    case SF_GELU: return 0.5 * x * erfc(-x / sqrt(2.0));
    case SF_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case SF_RELU: return x > 0 ? x : 0;
    default: return x;
    }
}

/* ----------------------------------------------------------------- the product */

typedef struct problem {
    size_t M, N, K, a_stride, out_stride, b_stride;
    sf_dtype a_type, b_type, out_type, type;
    sf_activation activation;
    int add, with_bias, transposed;
    guarded a, b, out, bias;
} problem;

static void make(problem *p)
{
    size_t rows = p->transposed ? p->N : p->K, columns = p->transposed ? p->K : p->N;
    p->a = guard(p->M, p->K, p->a_stride, p->a_type);
    p->b = guard(rows, columns, p->b_stride, p->b_type);
    p->out = guard(p->M, p->N, p->out_stride, p->out_type);
    p->bias = guard(1, p->N, p->N, SF_F32);
    fill(p->a.view, p->M, p->K);
    fill(p->b.view, rows, columns);
    fill(p->bias.view, 1, p->N);
}

static void unmake(problem *p)
{
    unguard(&p->a);
    unguard(&p->b);
    unguard(&p->out);
    unguard(&p->bias);
}

static void pack(sf_packed *packed, const problem *p, sf_isa isa)
{
    assert_int_equal(sf_packed_shape(packed, p->K, p->N, p->type, isa), 0);
    sf_pack(packed, p->b.view, p->transposed, 0, sf_packed_panels(packed));
}

static void run(const problem *p, const sf_packed *packed)
{
    sf_product(p->out.view, p->a.view, packed, p->with_bias ? p->bias.view.values : NULL, p->activation, p->add, p->M);
}

static float in_bf16(float x, const problem *p) { return p->type == SF_BF16 ? widened(rounded(x)) : x; }

/* Compares with the naive product; `before` is what was in out. */
static void compare(const problem *p, const float *before, sf_isa isa)
{
    for (size_t i = 0; i < p->M; i++)
        for (size_t n = 0; n < p->N; n++) {
            double sum = p->with_bias ? (double)get(p->bias.view, 0, n) : 0, size = fabs(sum);
            for (size_t k = 0; k < p->K; k++) {
                float b = p->transposed ? get(p->b.view, n, k) : get(p->b.view, k, n);
                double term = (double)in_bf16(get(p->a.view, i, k), p) * (double)in_bf16(b, p);
                sum += term;
                size += fabs(term);
            }
            double want = activated(sum, p->activation) + (p->add ? (double)before[i * p->N + n] : 0);
            double have = (double)get(p->out.view, i, n);
            double slack = (size + fabs(want)) * 1e-6 * sqrt((double)p->K) * 0.3 + 1e-30;
            if (p->activation != SF_LINEAR && p->activation != SF_RELU)
                slack += (p->out_type == SF_BF16 ? 1e-4 : 5e-7) * fmax(1, fabs(sum));
            if (p->out_type == SF_BF16) slack += fabs(want) * 0x1p-8;
            if (!(fabs(have - want) <= slack))
                fail_msg("%s: (%zu, %zu) of %zu x %zu, K %zu, strides %zu %zu, a %d, out %d, activation %d, add %d: "
                         "%.9g, not %.9g (+- %.2g)",
                         sf_isa_name(isa), i, n, p->M, p->N, p->K, p->a_stride, p->out_stride, (int)p->a_type,
                         (int)p->out_type, (int)p->activation, p->add, have, want, slack);
        }
}

/* What lies between the rows of out is as it was. */
static void check_gaps(const problem *p)
{
    const unsigned char *bytes = p->out.view.values;
    size_t size = size_of(p->out_type);
    for (size_t i = 0; i + 1 < p->M; i++)
        for (size_t at = (i * p->out_stride + p->N) * size; at < (i + 1) * p->out_stride * size; at++)
            assert_int_equal(bytes[at], 0xff);
}

static void try(problem *p, sf_isa isa)
{
    sf_packed packed = {0};
    float *before = must(sf_alloc(p->M * p->N, sizeof *before));
    make(p);
    pack(&packed, p, isa);
    if (p->add) fill(p->out.view, p->M, p->N);
    for (size_t i = 0; i < p->M * p->N; i++) before[i] = get(p->out.view, i / p->N, i % p->N);
    run(p, &packed);
    compare(p, before, isa);
    check_gaps(p);
    unmake(p);
    free(before);
    sf_packed_free(&packed);
}

static problem random_problem(size_t M, size_t N, size_t K, sf_dtype type)
{
    static const sf_dtype types[] = {SF_F32, SF_BF16};
    problem p = {.M = M, .N = N, .K = K, .type = type};
    p.a_type = type == SF_F32 ? SF_F32 : types[next_below(2)];
    p.out_type = type == SF_F32 ? SF_F32 : types[next_below(2)];
    p.b_type = types[next_below(2)];
    p.transposed = (int)next_below(2);
    p.with_bias = (int)next_below(2);
    p.activation = next_below(2) ? SF_LINEAR : (sf_activation)next_below(4);
    p.add = p.activation == SF_LINEAR && p.out_type == SF_F32 && next_below(2);
    p.a_stride = next_below(4) == 0 ? 1 + next_below((uint32_t)K)
                                    : K + (next_below(2) ? next_below(40) : 0); /* rows may overlap */
    p.out_stride = N + (next_below(2) ? next_below(40) : 0);
    p.b_stride = (p.transposed ? K : N) + (next_below(2) ? next_below(40) : 0);
    return p;
}

static void products_are_right(void **unused)
{
    static const size_t depths[] = {1, 2, 31, 32, 33, 64, 383, 384, 385, 512, 513, 544, 1024, 1025, 1537};
    (void)unused;
    for (int isa = 0; isa <= (int)best(); isa++) {
        for (int round = 0; round < 120; round++) {
            problem p = random_problem(1 + next_below(70), 1 + next_below(70), 1 + next_below(70), SF_BF16);
            try(&p, (sf_isa)isa);
        }
        for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++)
            for (int round = 0; round < 3; round++) {
                problem p = random_problem(1 + next_below(70), 1 + next_below(100), depths[d], SF_BF16);
                try(&p, (sf_isa)isa);
            }
        problem wide = random_problem(33, 1100, 600, SF_BF16);
        try(&wide, (sf_isa)isa);
        for (int add = 0; add < 2; add++) { /* so deep that it is made of several */
            problem deep = random_problem(40, 70, 3100, SF_BF16);
            deep.out_type = SF_F32;
            deep.activation = SF_LINEAR;
            deep.add = add;
            deep.with_bias = 1;
            try(&deep, (sf_isa)isa);
        }
    }
}

/* Aligned rows are multiplied where they are, all others are copied first. */
static void aligned_rows_are_right(void **unused)
{
    static const size_t strides[] = {64, 96, 384, 1024, 2048};
    (void)unused;
    for (int isa = 0; isa <= (int)best(); isa++)
        for (size_t s = 0; s < sizeof strides / sizeof strides[0]; s++)
            for (int shifted = 0; shifted < 2; shifted++) {
                problem p = {.M = 70,
                             .N = 100,
                             .K = 64,
                             .a_stride = strides[s],
                             .out_stride = 100,
                             .b_stride = 100,
                             .a_type = SF_BF16,
                             .b_type = SF_F32,
                             .out_type = SF_BF16,
                             .type = SF_BF16,
                             .with_bias = 1};
                sf_packed packed = {0};
                sf_bf16 *room = must(sf_alloc_aligned(p.M * p.a_stride + 64, sizeof *room));
                make(&p);
                pack(&packed, &p, (sf_isa)isa);
                sf_view copy = {room + (shifted ? 1 : 0), p.a_stride, SF_BF16};
                for (size_t i = 0; i < p.M; i++)
                    for (size_t k = 0; k < p.K; k++) put(copy, i, k, get(p.a.view, i, k));
                sf_product(p.out.view, copy, &packed, p.bias.view.values, SF_LINEAR, 0, p.M);
                compare(&p, NULL, (sf_isa)isa);
                free(room);
                unmake(&p);
                sf_packed_free(&packed);
            }
}

static void f32_products_are_right(void **unused)
{
    (void)unused;
    for (int round = 0; round < 100; round++) {
        problem p = random_problem(1 + next_below(70), 1 + next_below(70), 1 + next_below(200), SF_F32);
        try(&p, round % 2 ? best() : SF_PORTABLE);
    }
    for (int round = 0; round < 4; round++) { /* overlapping rows */
        problem p = random_problem(20, 10, round % 2 ? 9000 : 3000, SF_F32);
        p.a_stride = 100;
        try(&p, round % 2 ? best() : SF_PORTABLE);
    }
}

/* Every element of out as bits. */
static uint32_t bits(sf_view v, size_t row, size_t column)
{
    uint32_t word;
    if (v.type == SF_BF16) return ((sf_bf16 *)v.values)[row * v.stride + column];
    memcpy(&word, (float *)v.values + row * v.stride + column, sizeof word);
    return word;
}

/* A row's result is the same to the last bit whatever M is, wherever the row lies, in
 * whichever type and stride, and whatever the other rows hold: NaN, for one. */
static void rows_are_independent(void **unused)
{
    static const size_t depths[] = {31, 32, 77, 384, 385, 800, 1600};
    (void)unused;
    for (int isa = 0; isa <= (int)best(); isa++)
        for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++)
            for (int round = 0; round < 6; round++) {
                problem p = random_problem(65 + next_below(40), 33 + next_below(200), depths[d],
                                           round < 5 ? SF_BF16 : SF_F32);
                p.a_stride = next_below(2) ? (p.K + 31) / 32 * 32 : p.K + next_below(9);
                p.a_type = p.type;
                p.add = 0;
                sf_packed packed = {0};
                make(&p);
                pack(&packed, &p, (sf_isa)isa);
                run(&p, &packed);
                const float *bias = p.with_bias ? p.bias.view.values : NULL;
                for (int try = 0; try < 10; try++) {
                    size_t M = 1 + next_below(70), at = next_below((uint32_t)M), row = next_below((uint32_t)p.M),
                           stride = p.K + next_below(70);
                    guarded a = guard(M, p.K, stride, next_below(2) ? SF_F32 : p.type),
                            out = guard(M, p.N, p.N, p.out_type);
                    if (next_below(2)) fill(a.view, M, p.K); /* else all NaN */
                    for (size_t k = 0; k < p.K; k++) put(a.view, at, k, get(p.a.view, row, k));
                    sf_product(out.view, a.view, &packed, bias, p.activation, 0, M);
                    for (size_t n = 0; n < p.N; n++) assert_int_equal(bits(out.view, at, n), bits(p.out.view, row, n));
                    unguard(&a);
                    unguard(&out);
                }
                unmake(&p);
                sf_packed_free(&packed);
            }
}

/* x, or 0 where it has no leading 1: what bf16 instructions make of their results. */
static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

/* Both factors of one term; 0 behind the last. */
static void factors(float *a, float *b, const problem *p, size_t row, size_t column, size_t k)
{
    *a = k < p->K ? in_bf16(get(p->a.view, row, k), p) : 0;
    *b = k < p->K ? in_bf16(p->transposed ? get(p->b.view, column, k) : get(p->b.view, k, column), p) : 0;
}

/* One sum as its instruction set defines it, step by step. */
static float defined_sum(const problem *p, size_t row, size_t column, sf_isa isa)
{
    const size_t K = (p->K + 31) / 32 * 32;
    const int dot = p->type == SF_BF16 && isa == SF_AVX512_BF16, tiles = p->type == SF_BF16 && isa == SF_AMX;
    float sum = 0, pairs[2] = {0}, a, b;
    for (size_t k = 0; k < K; k++) {
        factors(&a, &b, p, row, column, dot ? k ^ 1 : k); /* dot: the second of a pair first */
        if (tiles) { /* the firsts and the seconds of 16 pairs, then both, then all */
            pairs[k % 2] = flushed(fmaf(a, b, k % 32 < 2 ? 0 : pairs[k % 2]));
            if (k % 32 == 31) sum = flushed(sum + flushed(pairs[0] + pairs[1]));
        } else if (dot) {
            sum = flushed(fmaf(a, b, sum));
        } else {
            sum = isa == SF_PORTABLE ? a * b + sum : fmaf(a, b, sum);
        }
    }
    return p->with_bias ? sum + get(p->bias.view, 0, column) : sum;
}

/* Which bits an arithmetic has (model/arithmetic.h) is not what one processor happens to do. In f32 instructions of
 * every width make the same. */
static void sums_have_the_bits_of_their_definition(void **unused)
{
    static const char *const widths[] = {"portable", "avx2", "avx512"};
    (void)unused;
    for (int isa = 0; isa <= (int)best(); isa++)
        for (int f32 = 0; f32 < 2; f32++)
            for (int round = 0; round < 12; round++) {
                problem p = random_problem(1 + next_below(40), 1 + next_below(70), 1 + next_below(300),
                                           f32 ? SF_F32 : SF_BF16);
                sf_packed packed = {0};
                p.add = 0;
                p.activation = SF_LINEAR;
                p.out_type = SF_F32;
                make(&p);
                setenv("SAFER_ISA", widths[round % 3], 1);
                pack(&packed, &p, (sf_isa)isa);
                run(&p, &packed);
                unsetenv("SAFER_ISA");
                for (size_t i = 0; i < p.M * p.N; i++) {
                    const float want = defined_sum(&p, i / p.N, i % p.N, (sf_isa)isa),
                                have = get(p.out.view, i / p.N, i % p.N);
                    if (memcmp(&want, &have, sizeof want) != 0)
                        fail_msg("%s, f32 %d, K %zu: %a, not %a", sf_isa_name((sf_isa)isa), f32, p.K, (double)have,
                                 (double)want);
                }
                unmake(&p);
                sf_packed_free(&packed);
            }
}

/* The activation inside is the activation outside. */
static void activations_are_those_of_vectors(void **unused)
{
    (void)unused;
    for (int isa = 0; isa <= (int)best(); isa++)
        for (int activation = 0; activation <= (int)SF_RELU; activation++)
            for (int half = 0; half < 2; half++) {
                problem p = {.M = 70,
                             .N = 70,
                             .K = 400,
                             .a_stride = 400,
                             .out_stride = 70,
                             .b_stride = 70,
                             .out_type = SF_F32,
                             .type = SF_BF16,
                             .with_bias = 1};
                sf_packed packed = {0};
                make(&p);
                pack(&packed, &p, (sf_isa)isa);
                run(&p, &packed);
                guarded out = guard(p.M, p.N, p.N, half ? SF_BF16 : SF_F32);
                sf_product(out.view, p.a.view, &packed, p.bias.view.values, (sf_activation)activation, 0, p.M);
                float *want = must(malloc(p.M * p.N * sizeof *want));
                if (half)
                    sf_activate_rough(want, p.out.view.values, (sf_activation)activation, p.M * p.N, (sf_isa)isa);
                else
                    sf_activate(want, p.out.view.values, (sf_activation)activation, p.M * p.N, (sf_isa)isa);
                for (size_t i = 0; i < p.M * p.N; i++) {
                    float have = get(out.view, 0, i), x = half ? widened(rounded(want[i])) : want[i];
                    const int own = half && activation == SF_GELU && isa == SF_AMX; /* see gelu_on_amx_is_near */
                    assert_true(own || have == x);
                }
                free(want);
                unguard(&out);
                unmake(&p);
                sf_packed_free(&packed);
            }
}

/* GELU into bf16 on AMX has bits of its own. It keeps the promise of sf_activate_rough (nn/vector.h), to which rounding
 * adds 2^-8 of the result: for every bf16, and for every 4093rd of all floats. */
static void gelu_on_amx_is_near(void **unused)
{
    (void)unused;
    enum { K = 32, N = 4096 };
    static float weights[N * K], x[N];
    static sf_bf16 left[K], out[N];
    const sf_view zeros = {weights, K, SF_F32}, a = {left, K, SF_BF16}, to = {out, N, SF_BF16};
    const uint64_t steps[] = {0x10000, 4093}, end = (uint64_t)1 << 32;
    sf_packed packed = {0};
    if (best() < SF_AMX) skip();
    assert_int_equal(sf_packed_shape(&packed, K, N, SF_BF16, SF_AMX), 0);
    sf_pack(&packed, zeros, 1, 0, sf_packed_panels(&packed));
    for (int way = 0; way < 2; way++)
        for (uint64_t bits = 0; bits < end;) {
            for (size_t i = 0; i < N; i++, bits += steps[way]) {
                const uint32_t some = (uint32_t)(bits < end ? bits : 0);
                memcpy(&x[i], &some, sizeof some);
            }
            sf_product(to, a, &packed, x, SF_GELU, 0, 1); /* of 0 + x */
            for (size_t i = 0; i < N; i++) {
                const double have = (double)widened(out[i]),
                             want = 0.5 * (double)x[i] * erfc(-(double)x[i] / sqrt(2.0));
                if (isnan(x[i])) assert_true(isnan(have));
                if (!(fabsf(x[i]) < 3.3e38f)) continue; /* what is larger may round to infinity */
                if (!(fabs(have - want) <= 0x1p-8 * fabs(want) + 1e-4 * fmax(1, fabs((double)x[i]))))
                    fail_msg("gelu(%.9g) is %.9g instead of %.9g", (double)x[i], have, want);
            }
        }
    sf_packed_free(&packed);
}

/* The one that plain rounding would turn into infinity. */
static float smallest_nan(void)
{
    const uint32_t word = 0x7f800001;
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

/* NaN and infinity arrive where they belong and nowhere else. */
static void specials_stay_in_their_rows(void **unused)
{
    (void)unused;
    for (int isa = 0; isa <= (int)best(); isa++)
        for (int type = 0; type < 2; type++) {
            problem p = {.M = 66,
                         .N = 35,
                         .K = 45,
                         .a_stride = 45,
                         .out_stride = 35,
                         .b_stride = 35,
                         .type = SF_BF16,
                         .a_type = type ? SF_BF16 : SF_F32,
                         .out_type = type ? SF_BF16 : SF_F32};
            sf_packed packed = {0};
            make(&p);
            pack(&packed, &p, (sf_isa)isa);
            put(p.a.view, 3, 44, type ? (float)NAN : smallest_nan());
            put(p.a.view, 4, 5, type ? (float)NAN : smallest_nan());
            put(p.a.view, 40, 0, INFINITY);
            put(p.a.view, 65, 7, -INFINITY);
            run(&p, &packed);
            for (size_t i = 0; i < p.M; i++)
                for (size_t n = 0; n < p.N; n++) {
                    float x = get(p.out.view, i, n), b0 = get(p.b.view, 0, n), b7 = get(p.b.view, 7, n);
                    if (i == 3 || i == 4)
                        assert_true(isnan(x));
                    else if (i == 40)
                        assert_true(x == (b0 > 0 ? INFINITY : -INFINITY));
                    else if (i == 65)
                        assert_true(x == (b7 > 0 ? -INFINITY : INFINITY));
                    else
                        assert_true(isfinite(x));
                }
            unmake(&p);
            sf_packed_free(&packed);
        }
}

/* A product that leaves nothing but NaN behind does not touch the next one. */
static void products_forget(void **unused)
{
    (void)unused;
    for (int isa = 0; isa <= (int)best(); isa++)
        for (int round = 0; round < 20; round++) {
            problem before = random_problem(64, 64, 544, SF_BF16);
            problem p = random_problem(1 + next_below(40), 1 + next_below(40), 1 + next_below(60), SF_BF16);
            sf_packed packed = {0};
            make(&before);
            for (size_t i = 0; i < before.M; i++)
                for (size_t k = 0; k < before.K; k++) put(before.a.view, i, k, (float)NAN);
            pack(&packed, &before, (sf_isa)isa);
            run(&before, &packed);
            unmake(&before);
            sf_packed_free(&packed);
            try(&p, (sf_isa)isa);
        }
}

/* --------------------------------------------------------------- conversions */

static void conversions_are_right(void **unused)
{
    enum { N = 70000 };
    float *x = must(malloc(N * sizeof *x)), *back = must(malloc(N * sizeof *back));
    sf_bf16 *out = must(malloc(N * sizeof *out));
    (void)unused;
    for (size_t i = 0; i < N; i++) { /* all upper halves, and lower ones around the tie */
        uint32_t word = (uint32_t)i << 16 | (next_below(3) ? 0x7ffe + next_below(5) : next_below(0x10000));
        if (i >= 65536) word = next_below(4) ? 0x7f800000 + next_below(3) : 0xff7fffff;
        memcpy(x + i, &word, sizeof word);
    }
    for (int isa = 0; isa <= (int)best(); isa++) {
        memset(out, 0x55, N * sizeof *out);
        sf_to_bf16(out, x, N, (sf_isa)isa);
        for (size_t i = 0; i < N; i++) {
            assert_int_equal(out[i], rounded(x[i]));
            assert_true(isnan(x[i]) == isnan(widened(out[i])));
        }
        sf_from_bf16(back, out, N, (sf_isa)isa);
        for (size_t i = 0; i < N; i++) {
            float want = widened(out[i]);
            assert_memory_equal(back + i, &want, sizeof want);
        }
    }
    for (int isa = 0; isa <= (int)best(); isa++)
        for (size_t count = 1; count < 70; count++) { /* no element more */
            guarded f = guard(1, count, count, SF_F32), h = guard(1, count, count, SF_BF16);
            fill(f.view, 1, count);
            sf_to_bf16(h.view.values, f.view.values, count, (sf_isa)isa);
            for (size_t i = 0; i < count; i++) assert_true(get(h.view, 0, i) == widened(rounded(get(f.view, 0, i))));
            assert_int_equal(((unsigned char *)h.view.values)[-1], 0xff);
            sf_from_bf16(f.view.values, h.view.values, count, (sf_isa)isa);
            for (size_t i = 0; i < count; i++) assert_true(get(h.view, 0, i) == get(f.view, 0, i));
            unguard(&f);
            unguard(&h);
        }
    free(x);
    free(back);
    free(out);
}

static void transposes_are_right(void **unused)
{
    static const sf_dtype types[] = {SF_F32, SF_BF16};
    (void)unused;
    for (int isa = 0; isa <= (int)best(); isa++)
        for (int round = 0; round < 300; round++) {
            size_t M = 1 + next_below(100), N = 1 + next_below(100), in_stride = N + next_below(9),
                   out_stride = M + next_below(9);
            guarded in = guard(M, N, in_stride, types[next_below(2)]),
                    out = guard(N, M, out_stride, types[next_below(2)]);
            fill(in.view, M, N);
            sf_transpose(out.view, in.view, M, N, (sf_isa)isa);
            for (size_t i = 0; i < M; i++)
                for (size_t j = 0; j < N; j++) {
                    float want = get(in.view, i, j), have = get(out.view, j, i);
                    assert_true(have == (out.view.type == SF_BF16 ? widened(rounded(want)) : want));
                }
            for (size_t j = 0; j + 1 < N; j++)
                for (size_t i = M; i < out_stride; i++) assert_true(isnan(get(out.view, j, i)));
            unguard(&in);
            unguard(&out);
        }
}

/* ------------------------------------------------------------------- packing */

/* All sets pack the same bits, from both orientations, in any pieces, over whatever was there. */
static void packs_are_the_same(void **unused)
{
    (void)unused;
    for (int isa = 0; isa <= (int)best(); isa++)
        for (int round = 0; round < 60; round++) {
            problem p = random_problem(1, 1 + next_below(150), 1 + next_below(150), next_below(3) ? SF_BF16 : SF_F32);
            sf_packed want = {0}, have = {0};
            p.b_stride = (p.transposed ? p.K : p.N) + next_below(5);
            make(&p);
            pack(&want, &p, SF_PORTABLE);
            size_t rows = p.transposed ? p.N : p.K, columns = p.transposed ? p.K : p.N,
                   panels = sf_packed_panels(&want);
            guarded other = guard(columns, rows, rows + next_below(5), p.b_type);
            sf_transpose(other.view, p.b.view, rows, columns, SF_PORTABLE);
            for (int turned = 0; turned < 2; turned++) {
                assert_int_equal(sf_packed_shape(&have, p.K, p.N, p.type, (sf_isa)isa), 0);
                memset(have.values, 0xff, have.capacity);
                for (size_t i = panels; i-- > 0;)
                    sf_pack(&have, turned ? other.view : p.b.view, turned ? !p.transposed : p.transposed, i, 1);
                assert_true(have.capacity >= want.capacity);
                size_t padded = (p.K + 31) / 32 * 32 * ((p.N + 31) / 32 * 32) * size_of(p.type);
                assert_memory_equal(want.values, have.values, padded);
            }
            unguard(&other);
            unmake(&p);
            sf_packed_free(&want);
            sf_packed_free(&have);
        }
}

static safer_status shape_twice(void *context, safer_error *error)
{
    sf_packed packed = {0};
    (void)context;
    int failed = sf_packed_shape(&packed, 100, 100, SF_BF16, SF_PORTABLE);
    failed = failed || sf_packed_shape(&packed, 1000, 100, SF_BF16, SF_PORTABLE);
    sf_packed_free(&packed);
    return failed ? sf_fail(error, SAFER_MEMORY, "out of memory") : SAFER_OK;
}

static void shapes_grow_and_fail(void **unused)
{
    sf_packed packed = {0};
    (void)unused;
    check_every_allocation(shape_twice, NULL);
    assert_int_equal(sf_packed_shape(&packed, 64, 64, SF_BF16, SF_PORTABLE), 0);
    void *values = packed.values;
    assert_int_equal(sf_packed_shape(&packed, 33, 40, SF_BF16, SF_PORTABLE), 0); /* smaller: no new memory */
    assert_ptr_equal(values, packed.values);
    assert_int_equal((uintptr_t)values % 64, 0);
    assert_int_equal(sf_packed_panels(&packed), 2);
    assert_int_equal(sf_packed_shape(&packed, SIZE_MAX / 2, 3, SF_F32, SF_PORTABLE), -1);
    assert_int_equal(sf_packed_shape(&packed, SIZE_MAX - 1, 3, SF_BF16, SF_PORTABLE), -1);
    assert_int_equal(packed.K, 33); /* as it was */
    sf_packed_free(&packed);
    assert_null(packed.values);
}

/* --------------------------------------------------------------- instruction sets */

static void sets_are_chosen_and_checked(void **unused)
{
    static const char *const names[] = {"portable", "avx2", "avx512", "avx512-bf16", "amx"};
    safer_error error = {0};
    (void)unused;
    sf_isa top = best();
    assert_ok(sf_isa_check(&error));
    for (int isa = 0; isa < 5; isa++) {
        assert_string_equal(sf_isa_name((sf_isa)isa), names[isa]);
        setenv("SAFER_ISA", names[isa], 1);
        assert_int_equal(sf_isa_choose(), isa < (int)top ? isa : (int)top);
        if (isa <= (int)top)
            assert_ok(sf_isa_check(&error));
        else
            assert_fails(sf_isa_check(&error), SAFER_INVALID, names[isa]);
    }
    setenv("SAFER_ISA", "mmx", 1);
    assert_fails(sf_isa_check(&error), SAFER_INVALID, "mmx");
    assert_int_equal(sf_isa_choose(), top);
    setenv("SAFER_ISA", "", 1);
    assert_fails(sf_isa_check(&error), SAFER_INVALID, "SAFER_ISA");
    unsetenv("SAFER_ISA");
    for (int isa = 0; isa <= (int)top; isa++) assert_true(sf_product_peak((sf_isa)isa, 0.001) > 1e5);
}

/* -------------------------------------------------------------------- threads */

typedef struct shared {
    problem *p;
    const sf_packed *packed;
} shared;

static void multiply_some(void *context, size_t begin, size_t end, int worker)
{
    const shared *s = context;
    const problem *p = s->p;
    (void)worker;
    sf_product(sf_view_at(p->out.view, begin, 0), sf_view_at(p->a.view, begin, 0), s->packed,
               p->with_bias ? p->bias.view.values : NULL, p->activation, 0, end - begin);
}

/* Threads that share rows out in any way get what one thread gets. */
static void threads_change_nothing(void **unused)
{
    (void)unused;
    for (int isa = 0; isa <= (int)best(); isa++) {
        problem p = random_problem(300, 100, 200, SF_BF16);
        sf_packed packed = {0};
        p.add = 0;
        make(&p);
        pack(&packed, &p, (sf_isa)isa);
        run(&p, &packed);
        size_t bytes = ((p.M - 1) * p.out_stride + p.N) * size_of(p.out_type);
        char *first = must(malloc(bytes));
        memcpy(first, p.out.view.values, bytes);
        memset(p.out.view.values, 0, bytes);
        for (size_t i = 0; i < p.M; i++) /* gaps too */
            for (size_t n = p.N; n < p.out_stride && i + 1 < p.M; n++)
                memset((char *)p.out.view.values + (i * p.out_stride + n) * size_of(p.out_type), 0xff,
                       size_of(p.out_type));
        sf_parallel(4, p.M, 37, multiply_some, &(shared){&p, &packed});
        assert_memory_equal(first, p.out.view.values, bytes);
        free(first);
        unmake(&p);
        sf_packed_free(&packed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(aligned_rows_are_right),
        cmocka_unit_test(f32_products_are_right),
        cmocka_unit_test(rows_are_independent),
        cmocka_unit_test(sums_have_the_bits_of_their_definition),
        cmocka_unit_test(activations_are_those_of_vectors),
        cmocka_unit_test(gelu_on_amx_is_near),
        cmocka_unit_test(specials_stay_in_their_rows),
        cmocka_unit_test(products_forget),
        cmocka_unit_test(conversions_are_right),
        cmocka_unit_test(transposes_are_right),
        cmocka_unit_test(packs_are_the_same),
        cmocka_unit_test(shapes_grow_and_fail),
        cmocka_unit_test(sets_are_chosen_and_checked),
        cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
