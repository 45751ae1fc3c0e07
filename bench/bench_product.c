/* Matrix products beside the bare multiply loop and sf_gemm, in GFLOP/s.
 *
 * For the shapes of encoders, on one thread and on two: the bf16 product of the best
 * instruction set as a share of what its bare loop, without loads and stores, reaches on as
 * many threads in the same run; f32 by sf_gemm; and the other sets. Other programs and
 * other guests of the machine take their share of the cores, their caches and tiles. So
 * products and bare loops take turns, each piece of work is timed by itself on the clock of
 * its thread, and the typical rate of the best tenth of the pieces counts; what the rounds
 * took by the wall is shown beside it. Agreement with the portable product is checked first.
 * Then what surrounds a product: activation, conversion, transposition, packing. With --json
 * one object for programs, with --quick less of all. */
#define _GNU_SOURCE
#include "bench.h"

#include "base/memory.h"
#include "base/progress.h"
#include "nn/gemm.h"
#include "nn/product.h"

#include <math.h>
#include <time.h>

enum { MAX_M = 8192, MAX_K = 1536, MAX_N = 3072, THREADS = 2, PIECES = 2, SAMPLES = 1024 };

/* Rates of pieces of work, in GFLOP/s. */
typedef struct samples {
    double rates[SAMPLES];
    size_t count;
} samples;

typedef struct fixture {
    float *a32, *b32, *out32, *bias;
    sf_bf16 *a, *out;
    sf_packed packed;
    size_t M, K, N;
    sf_isa isa;
    sf_task task;
    samples samples[THREADS], peaks[THREADS];
} fixture;

/* ----------------------------------------------------------------- what is timed */

static sf_view rows_of(void *values, size_t width, sf_dtype type, size_t row)
{
    return sf_view_at((sf_view){values, width, type}, row, 0);
}

static void multiply_as(fixture *x, size_t begin, size_t end, sf_activation activation)
{
    sf_view out = rows_of(x->out, x->N, SF_BF16, begin), a = rows_of(x->a, x->K, SF_BF16, begin);
    sf_product(out, a, &x->packed, x->bias, activation, 0, end - begin);
}

static void multiply_bf16(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    multiply_as(context, begin, end, SF_LINEAR);
}

static void multiply_gelu(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    multiply_as(context, begin, end, SF_GELU);
}

static void multiply_add(void *context, size_t begin, size_t end, int worker)
{
    fixture *x = context;
    sf_view out = rows_of(x->out32, x->N, SF_F32, begin), a = rows_of(x->a32, x->K, SF_F32, begin);
    (void)worker;
    sf_product(out, a, &x->packed, x->bias, SF_LINEAR, 1, end - begin);
}

static void multiply_f32(void *context, size_t begin, size_t end, int worker)
{
    fixture *x = context;
    (void)worker;
    sf_gemm_dense(SF_GEMM_NN, x->out32 + begin * x->N, x->a32 + begin * x->K, x->b32, 0, end - begin, x->N, x->K);
}

/* ----------------------------------------------------------------------- timing */

static double thread_seconds(void)
{
    struct timespec t;
    check(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0, "no clock");
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void add_sample(samples *s, double rate)
{
    if (s->count < SAMPLES) s->rates[s->count++] = rate * 1e-9;
}

static void bare_loop(void *context, size_t begin, size_t end, int worker)
{
    fixture *x = context;
    for (size_t i = begin; i < end; i++) add_sample(&x->peaks[worker], sf_product_peak(x->isa, 0.0003));
}

static void timed(void *context, size_t begin, size_t end, int worker)
{
    fixture *x = context;
    double start = thread_seconds();
    x->task(x, begin, end, worker);
    add_sample(&x->samples[worker],
               2.0 * (double)(end - begin) * (double)x->N * (double)x->K / (thread_seconds() - start));
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The median of the best tenth. */
static double typical(double *rates, size_t count)
{
    qsort(rates, count, sizeof *rates, descending);
    return rates[count / 20];
}

/* The sum over threads. */
static double total(samples *s, int threads)
{
    double sum = 0;
    for (int t = 0; t < threads; t++) {
        if (s[t].count) sum += typical(s[t].rates, s[t].count);
        s[t].count = 0;
    }
    return sum;
}

/* GFLOP/s by the wall, those of undisturbed pieces, and their share of the bare loop. */
typedef struct result {
    double wall, rate, share;
} result;

static result measure(fixture *x, sf_task task, int threads, int rounds)
{
    double walls[200];
    result r;
    check(rounds <= 200, "too many rounds");
    x->task = task;
    for (int i = 0; i < rounds; i++) {
        sf_parallel(threads, (size_t)threads, 1, bare_loop, x);
        double start = sf_seconds();
        sf_parallel(threads, x->M, x->M / PIECES, timed, x);
        walls[i] = 2e-9 * (double)x->M * (double)x->N * (double)x->K / (sf_seconds() - start);
    }
    r.wall = typical(walls, (size_t)rounds);
    r.rate = total(x->samples, threads);
    r.share = r.rate / total(x->peaks, threads);
    return r;
}

/* ---------------------------------------------------------------------- fixture */

static void make_fixture(fixture *x)
{
    uint64_t state = 1;
    size_t A = (size_t)MAX_M * MAX_K, B = (size_t)MAX_K * MAX_N, O = (size_t)MAX_M * MAX_N;
    x->a32 = sf_alloc_aligned(A, sizeof *x->a32);
    x->b32 = sf_alloc_aligned(B, sizeof *x->b32);
    x->out32 = sf_alloc_aligned(O, sizeof *x->out32);
    x->bias = sf_alloc_aligned(MAX_N, sizeof *x->bias);
    x->a = sf_alloc_aligned(A, sizeof *x->a);
    x->out = sf_alloc_aligned(O, sizeof *x->out);
    check(x->a32 && x->b32 && x->out32 && x->bias && x->a && x->out, "out of memory");
    for (size_t i = 0; i < A; i++) x->a32[i] = bench_noise(&state);
    for (size_t i = 0; i < B; i++) x->b32[i] = bench_noise(&state) * 0.1f;
    for (size_t i = 0; i < MAX_N; i++) x->bias[i] = bench_noise(&state);
    memset(x->out32, 0, O * sizeof *x->out32);
    memset(x->out, 0, O * sizeof *x->out);
    x->isa = sf_isa_choose();
    sf_to_bf16(x->a, x->a32, A, x->isa);
}

static void shape(fixture *x, size_t M, size_t K, size_t N, sf_isa isa)
{
    x->M = M;
    x->K = K;
    x->N = N;
    check(sf_packed_shape(&x->packed, K, N, SF_BF16, isa) == 0, "out of memory");
    sf_pack(&x->packed, (sf_view){x->b32, N, SF_F32}, 0, 0, sf_packed_panels(&x->packed));
}

/* The largest difference from the portable product, relative to the largest result. */
static double agreement(fixture *x)
{
    enum { M = 64, K = 1536, N = 384 };
    float *have = sf_alloc(M * N, sizeof *have), *want = sf_alloc(M * N, sizeof *want);
    double worst = 0, most = 0;
    check(have && want, "out of memory");
    for (int i = 0; i < 2; i++) {
        shape(x, M, K, N, i ? x->isa : SF_PORTABLE);
        sf_product((sf_view){i ? have : want, N, SF_F32}, (sf_view){x->a, K, SF_BF16}, &x->packed, x->bias, SF_LINEAR,
                   0, M);
    }
    for (size_t i = 0; i < (size_t)M * N; i++) {
        worst = fmax(worst, fabs((double)have[i] - (double)want[i]));
        most = fmax(most, fabs((double)want[i]));
    }
    free(have);
    free(want);
    return worst / most;
}

/* ------------------------------------------------------------------- around it */

typedef struct around {
    double to, from, turn_f32, turn_bf16, pack, pack_transposed, copy; /* GB/s read and written */
} around;

#define TIMED(result, bytes, statement) \
    do { \
        double rates[20]; \
        for (int i_ = 0; i_ < rounds; i_++) { \
            double start_ = sf_seconds(); \
            statement; \
            rates[i_] = (double)(bytes)*1e-9 / (sf_seconds() - start_); \
        } \
        (result) = typical(rates, (size_t)rounds); \
    } while (0)

static around measure_around(fixture *x, int rounds)
{
    enum { M = 8000, N = 1536, K = 1536, P = 1536 };
    size_t count = (size_t)M * N;
    around r;
    shape(x, M, K, P, x->isa);
    size_t panels = sf_packed_panels(&x->packed);
    TIMED(r.copy, count * 8, memcpy(x->out32, x->a32, count * 4));
    TIMED(r.to, count * 6, sf_to_bf16(x->a, x->a32, count, x->isa));
    TIMED(r.from, count * 6, sf_from_bf16(x->out32, x->a, count, x->isa));
    TIMED(r.turn_f32, count * 6,
          sf_transpose((sf_view){x->out, M, SF_BF16}, (sf_view){x->a32, N, SF_F32}, M, N, x->isa));
    TIMED(r.turn_bf16, count * 4,
          sf_transpose((sf_view){x->out, M, SF_BF16}, (sf_view){x->a, N, SF_BF16}, M, N, x->isa));
    TIMED(r.pack, (size_t)K * P * 6, sf_pack(&x->packed, (sf_view){x->b32, P, SF_F32}, 0, 0, panels));
    TIMED(r.pack_transposed, (size_t)K * P * 6, sf_pack(&x->packed, (sf_view){x->b32, K, SF_F32}, 1, 0, panels));
    return r;
}

/* ---------------------------------------------------------------------- output */

static void add_row(json_t *rows, const fixture *x, int threads, result bf16, result f32)
{
    json_t *row = json_pack("{s:I, s:I, s:I, s:i, s:f, s:f, s:f, s:f}", "M", (json_int_t)x->M, "K", (json_int_t)x->K,
                            "N", (json_int_t)x->N, "threads", threads, "bf16", bf16.rate, "share", bf16.share,
                            "bf16_wall", bf16.wall, "f32", f32.rate);
    check(row && json_array_append_new(rows, row) == 0, "out of memory");
}

static void compare_shapes(fixture *x, json_t *rows, int json, int quick)
{
    static const size_t shapes[][2] = {{384, 384}, {384, 1536}, {1536, 384}, {768, 3072}};
    if (!json) printf("   M     K     N threads    bf16  of the bare loop   by the wall   f32 (sf_gemm)\n");
    for (size_t M = 2048; M <= (quick ? 2048 : MAX_M); M *= 2)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int threads = 1; threads <= THREADS; threads++) {
                shape(x, M, shapes[s][0], shapes[s][1], x->isa);
                const double flops = 2.0 * (double)M * (double)x->N * (double)x->K;
                const int rounds = quick ? 30 : flops > 1e10 ? 40 : 100;
                result bf16 = measure(x, multiply_bf16, threads, rounds), f32 = measure(x, multiply_f32, threads, 2);
                add_row(rows, x, threads, bf16, f32);
                if (json) continue;
                printf("%5zu %5zu %5zu %5d %9.0f %13.0f%% %14.0f %12.0f\n", M, x->K, x->N, threads, bf16.rate,
                       100 * bf16.share, bf16.wall, f32.rate);
                fflush(stdout);
            }
}

static void compare_forms(fixture *x, json_t *out, int json)
{
    shape(x, 2048, 384, 1536, x->isa);
    result gelu = measure(x, multiply_gelu, 1, 60), add = measure(x, multiply_add, 1, 60);
    check(json_object_set_new(out, "gelu_share", json_real(gelu.share)) == 0, "out of memory");
    check(json_object_set_new(out, "f32_add_share", json_real(add.share)) == 0, "out of memory");
    if (json) return;
    printf("2048 x 384 x 1536 with GELU: %.0f (%.0f%%); from f32, added to f32: %.0f (%.0f%%)\n", gelu.rate,
           100 * gelu.share, add.rate, 100 * add.share);
}

static void compare_sets(fixture *x, json_t *out, int json)
{
    const sf_isa best = x->isa;
    for (int isa = 0; isa <= (int)best; isa++) {
        x->isa = (sf_isa)isa;
        shape(x, 256, 384, 1536, x->isa);
        result r = measure(x, multiply_bf16, 1, isa ? 40 : 5);
        check(json_object_set_new(out, sf_isa_name(x->isa), json_real(r.rate)) == 0, "out of memory");
        if (json) continue;
        printf("256 x 384 x 1536, %-12s %7.0f GFLOP/s, %3.0f%% of its loop in L1\n", sf_isa_name(x->isa), r.rate,
               100 * r.share);
    }
    x->isa = best;
}

int main(int argc, char **argv)
{
    const int json = bench_option(argc, argv, "--json"), quick = bench_option(argc, argv, "--quick");
    fixture x = {0};
    make_fixture(&x);
    double off = agreement(&x);
    check(off < 1e-5, "this instruction set and the portable one disagree");
    json_t *rows = json_array(), *sets = json_object();
    json_t *out = json_pack("{s:s, s:f, s:o, s:o}", "isa", sf_isa_name(x.isa), "disagreement", off, "products", rows,
                            "sets", sets);
    check(rows && sets && out, "out of memory");
    if (!json) printf("%s; largest difference from portable %.1e; GFLOP/s\n", sf_isa_name(x.isa), off);
    compare_shapes(&x, rows, json, quick);
    compare_forms(&x, out, json);
    compare_sets(&x, sets, json);
    around r = measure_around(&x, quick ? 5 : 15);
    if (json) {
        json_t *gb = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "copy", r.copy, "to_bf16", r.to, "from_bf16",
                               r.from, "transpose_f32", r.turn_f32, "transpose_bf16", r.turn_bf16, "pack", r.pack,
                               "pack_transposed", r.pack_transposed);
        check(gb && json_object_set_new(out, "gigabytes", gb) == 0, "out of memory");
        bench_print_json(out);
    } else {
        printf(
            "8000 x 1536, GB/s: memcpy %.1f; to bf16 %.1f, from bf16 %.1f; transposed to bf16: f32 %.1f, bf16 %.1f\n",
            r.copy, r.to, r.from, r.turn_f32, r.turn_bf16);
        printf("1536 x 1536, GB/s: packed %.1f, packed transposed %.1f\n", r.pack, r.pack_transposed);
        json_decref(out);
    }
    sf_packed_free(&x.packed);
    free(x.a32);
    free(x.b32);
    free(x.out32);
    free(x.bias);
    free(x.a);
    free(x.out);
    return 0;
}
