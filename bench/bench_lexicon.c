/* Speed of making and loading lexicons, as ratios in one run.
 *
 * Agreement with the naive version is checked first. Then: parsing of vector text; all
 * pairs beside the bare matrix product, for 70,000 x 100 and 400,000 x 300 vectors;
 * loading a .lex of 87,000 words. With --json one object for programs. */
#define _GNU_SOURCE
#include "bench.h"

#include "base/progress.h"
#include "lexicon/pairs.h"
#include "lexicon/vectors.h"
#include "nn/gemm.h"

static float *make_rows(size_t count, size_t dim)
{
    uint64_t state = 1;
    float *values = aligned_alloc(64, (count * dim * sizeof *values + 63) & ~(size_t)63);
    check(values != NULL, "out of memory");
    for (size_t i = 0; i < count * dim; i++) values[i] = bench_noise(&state);
    /* One word in ten is close to its neighbour. */
    for (size_t i = 10; i < count; i += 10)
        for (size_t k = 0; k < dim; k++) values[i * dim + k] = values[(i - 1) * dim + k] + 0.3f * bench_noise(&state);
    sf_vectors_normalise(values, count, dim, 0);
    return values;
}

/* ------------------------------------------------- matrix product and pairs */

enum { M = 1536 };

typedef struct product {
    const float *values;
    size_t dim;
    float *out; /* (M, M) per worker */
} product;

static void multiply(void *context, size_t begin, size_t end, int worker)
{
    product *job = context;
    for (size_t i = begin; i < end; i++)
        sf_gemm_dense(SF_GEMM_NT, job->out + (size_t)worker * M * M, job->values, job->values + i % 8 * M * job->dim, 0,
                      M, M, job->dim);
}

/* GFLOP/s of the bare product on all threads, best of five. */
static double product_rate(const float *values, size_t dim, int threads)
{
    product job = {values, dim, malloc((size_t)threads * M * M * sizeof(float))};
    check(job.out != NULL, "out of memory");
    multiply(&job, 0, 1, 0);
    const double seconds = bench_best(5, threads, 16, 1, multiply, &job);
    free(job.out);
    return 16.0 * 2 * M * M * (double)dim / seconds * 1e-9;
}

typedef struct timer {
    double start, limit, share;
} timer;

static int stop_after(void *context, const char *stage, uint64_t done, uint64_t total)
{
    timer *t = context;
    (void)stage;
    t->share = total ? (double)done / (double)total : 0;
    return sf_seconds() - t->start > t->limit;
}

/* Useful GFLOP/s of the all-pairs step: the products of the upper triangle, n(n+1)/2 of
 * them. Stops after `limit` seconds and counts what was done. */
static double pairs_rate(const float *values, size_t count, size_t dim, double limit, double *seconds, double *share)
{
    timer t = {sf_seconds(), limit, 0};
    safer_progress progress = {stop_after, &t};
    sf_pairs pairs = {0};
    safer_error error;
    safer_status status = sf_pairs_find(&pairs, values, count, dim, 0.8, 0, &progress, "pairs", &error);
    *seconds = sf_seconds() - t.start;
    *share = status == SAFER_OK ? 1 : t.share;
    check(status == SAFER_OK || status == SAFER_CANCELLED, error.message);
    free(pairs.items);
    return *share * (double)count * ((double)count + 1) * (double)dim / *seconds * 1e-9;
}

static void agree_first(const float *values, size_t dim)
{
    sf_pairs naive, fast;
    check(sf_pairs_find_naive(&naive, values, 3000, dim, 0.8, NULL) == SAFER_OK, "naive pairs");
    check(sf_pairs_find(&fast, values, 3000, dim, 0.8, 0, NULL, "", NULL) == SAFER_OK, "pairs");
    check(naive.count == fast.count && naive.count > 0 &&
              memcmp(naive.items, fast.items, naive.count * sizeof(sf_pair)) == 0,
          "the pairs differ from the naive ones");
    free(naive.items);
    free(fast.items);
}

/* --------------------------------------------------------- parsing, loading */

static double parse_rate(size_t rows, double *megabytes)
{
    uint64_t state = 7;
    char *text = malloc(rows * (100 * 7 + 16));
    size_t length = 0;
    check(text != NULL, "out of memory");
    for (size_t i = 0; i < rows; i++) {
        length += (size_t)sprintf(text + length, "w%zu", i);
        for (int k = 0; k < 100; k++) length += (size_t)sprintf(text + length, " %.3f", (double)bench_noise(&state));
        text[length++] = '\n';
    }
    double best = 0;
    for (int round = 0; round < 3; round++) {
        sf_vectors vectors;
        double start = sf_seconds();
        check(sf_vectors_parse(&vectors, text, length, "bench", NULL, 0, NULL) == SAFER_OK, "parsing");
        double rate = (double)length * 1e-6 / (sf_seconds() - start);
        check(vectors.words.count == rows, "rows lost");
        sf_vectors_free(&vectors);
        if (rate > best) best = rate;
    }
    *megabytes = (double)length * 1e-6;
    free(text);
    return best;
}

/* Writes a table of 87,000 words in groups, imports it, and times opening the file. */
static double load_milliseconds(size_t *bytes)
{
    const char *table = bench_path("t.tsv"), *lex = bench_path("t.lex");
    char word[16];
    FILE *file = fopen(table, "w");
    check(file != NULL, "temporary file");
    for (unsigned i = 0; i < 87000; i++) {
        unsigned n = i;
        for (int k = 0; k < 5; k++, n /= 26) word[k] = (char)('a' + n % 26);
        word[5] = '\0';
        fprintf(file, i % 6 ? " %s" : i ? "\n%s\t" : "%s\t", word);
    }
    fclose(file);
    safer_lexicon_options options = safer_lexicon_options_default();
    safer_lexicon *lexicon = NULL;
    safer_error error = {0};
    options.table = table;
    check(safer_lexicon_import(&lexicon, &options, NULL, &error) == SAFER_OK, error.message);
    check(safer_lexicon_save(lexicon, lex, &error) == SAFER_OK, error.message);
    *bytes = safer_lexicon_describe(lexicon).bytes;
    safer_lexicon_free(lexicon);
    double best = 1e9;
    for (int round = 0; round < 9; round++) {
        double start = sf_seconds();
        check(safer_lexicon_open(&lexicon, lex, &error) == SAFER_OK, error.message);
        double took = (sf_seconds() - start) * 1e3;
        safer_lexicon_free(lexicon);
        if (took < best) best = took;
    }
    return best;
}

int main(int argc, char **argv)
{
    int json = bench_option(argc, argv, "--json"), threads = sf_threads(0);
    static const struct {
        size_t count, dim;
        double limit;
    } shapes[2] = {{71450, 100, 20}, {400000, 300, 8}};
    json_t *pairs_json = json_array();
    setvbuf(stdout, NULL, _IOLBF, 0);
    char cpu[256];
    bench_cpu(cpu, sizeof cpu);
    if (!json) printf("%s, %d threads\n", cpu, threads);

    for (int s = 0; s < 2; s++) {
        float *values = make_rows(shapes[s].count, shapes[s].dim);
        double seconds, share;
        agree_first(values, shapes[s].dim);
        double bare = product_rate(values, shapes[s].dim, threads);
        double rate = pairs_rate(values, shapes[s].count, shapes[s].dim, shapes[s].limit, &seconds, &share);
        double again = product_rate(values, shapes[s].dim, threads);
        if (again > bare) bare = again;
        free(values);
        if (!json)
            printf("all pairs     %zu x %zu: %.0f GFLOP/s, %.0f%% of sf_gemm's %.0f (%.1f s for %.0f%%)\n",
                   shapes[s].count, shapes[s].dim, rate, 100 * rate / bare, bare, seconds, 100 * share);
        json_array_append_new(pairs_json, json_pack("{s:I,s:I,s:f,s:f,s:f}", "count", (json_int_t)shapes[s].count,
                                                    "dim", (json_int_t)shapes[s].dim, "gflops", rate, "sgemm_gflops",
                                                    bare, "ratio", rate / bare));
    }
    double megabytes;
    double parse = parse_rate(90000, &megabytes);
    size_t bytes;
    double load = load_milliseconds(&bytes);
    if (!json) {
        printf("vector text   %.0f MB at %.0f MB/s\n", megabytes, parse);
        printf("open .lex     87,000 words, %.1f MB: %.2f ms\n", (double)bytes * 1e-6, load);
        json_decref(pairs_json);
    } else {
        json_t *root = json_pack("{s:s,s:i,s:o,s:f,s:f}", "cpu", cpu, "threads", threads, "all_pairs", pairs_json,
                                 "parse_mb_s", parse, "open_ms", load);
        bench_print_json(root);
    }
    return 0;
}
