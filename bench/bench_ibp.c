/* How fast training by interval bounds is: texts per second of a step (gradient and update) on
 * batches like those of IMDB, with the share of sf_gemm's own rate that its products get.
 *
 * bench_ibp [--json]. Agreement first: with eps 0 the worst margins must be the differences
 * of the plain logits; gradients are checked by tests/test_ibp.c. */
#include "bench.h"

#include "base/memory.h"
#include "base/progress.h"
#include "nn/gemm.h"
#include "train/ibp_step.h"

#include <math.h>

/* 32 reviews of 230 words; word ranks fall off as they do in English, so that a batch has
 * some 2,400 different words; 43% of the words have synonyms, 3 on average. */
enum {
    V = 40000,
    D = 100,
    P = 100,
    F = 100,
    H = 100,
    K = 2,
    TEXTS = 32,
    WORDS = 230,
    SYNONYMS = 3,
    BATCHES = 8,
    ROUNDS = 5,
    REVIEWS = 20000,
    EPOCHS = 60
};

static uint64_t state = 9;

typedef struct fixture {
    sf_ibp_sets sets;
    uint32_t *items; /* (BATCHES, TEXTS * WORDS) */
    size_t offsets[TEXTS + 1];
    int labels[TEXTS];
} fixture;

/* Set k is that of word k; words with 43% of the occurrences have more than themselves. */
static void make_fixture(fixture *x)
{
    size_t count = 0;
    x->sets = (sf_ibp_sets){sf_alloc(V * (SYNONYMS + 1), sizeof(uint32_t)), sf_calloc(V + 1, sizeof(size_t)), V};
    x->items = sf_alloc(BATCHES * TEXTS * WORDS, sizeof *x->items);
    check(x->sets.members && x->sets.offsets && x->items, "out of memory");
    for (uint32_t w = 0; w < V; w++) {
        x->sets.members[count++] = w;
        for (uint32_t k = 0; w % 7 < 3 && k < SYNONYMS; k++)
            x->sets.members[count++] = (uint32_t)(bench_unit(&state) * (V - 1)) + 1;
        x->sets.offsets[w + 1] = count;
    }
    for (size_t i = 0; i < BATCHES * TEXTS * WORDS; i++) {
        uint32_t word = (uint32_t)exp(bench_unit(&state) * log((double)V)); /* a rank's share falls as 1/rank */
        x->items[i] = word % 7 < 3 ? V + word : word;
    }
    for (size_t b = 0; b < TEXTS; b++) {
        x->offsets[b + 1] = x->offsets[b] + WORDS;
        x->labels[b] = (int)(b % 2);
    }
}

/* Products of a step's shape on one thread, as fast as sf_gemm does them: FLOP/s. */
static double sgemm_rate(void)
{
    enum { M = 256, N = 3 * F };
    float *a = sf_alloc_aligned(M * P, sizeof *a), *b = sf_alloc_aligned(N * P, sizeof *b),
          *c = sf_alloc_aligned(M * N, sizeof *c);
    double best = 0;
    check(a && b && c, "out of memory");
    for (size_t i = 0; i < M * P; i++) a[i] = (float)bench_unit(&state);
    for (size_t i = 0; i < N * P; i++) b[i] = (float)bench_unit(&state);
    for (int round = 0; round < 30; round++) {
        double start = sf_seconds();
        for (int i = 0; i < 20; i++) sf_gemm_dense(SF_GEMM_NT, c, a, b, 0, M, N, P);
        double rate = 20.0 * 2 * M * N * P / (sf_seconds() - start);
        if (rate > best) best = rate;
    }
    free(a);
    free(b);
    free(c);
    return best;
}

typedef struct speed {
    double texts, work; /* per second, the best round; floating-point operations of a text's products */
} speed;

static speed measure(fixture *x, int wordwise, int convolution, int freeze, int threads)
{
    sf_ibp_layout l;
    sf_ibp_step *step = NULL;
    sf_ibp_shape shape = {.convolution = convolution,
                          .wordwise = wordwise,
                          .vocabulary = V,
                          .dim = D,
                          .inner = wordwise ? P : 0,
                          .width = convolution ? 3 : 1,
                          .filters = F,
                          .hidden = H,
                          .classes = K,
                          .max_words = 1000};
    sf_ibp_options o = {.rate = 0.001, .decay = 0.0001, .clip = 0.25, .freeze = freeze, .threads = threads, .seed = 1};
    speed best = {0};
    double loss;
    sf_ibp_layout_make(&l, &shape);
    float *parameters = sf_alloc_aligned(l.size, sizeof *parameters);
    float *means = sf_calloc(l.size, sizeof *means), *variances = sf_calloc(l.size, sizeof *variances);
    check(parameters && means && variances, "out of memory");
    for (size_t i = 0; i < V * D; i++) parameters[i] = (float)(bench_unit(&state) - 0.5);
    sf_ibp_first_weights(parameters, &l, 1);
    check(sf_ibp_step_new(&step, &l, &x->sets, &o, TEXTS * WORDS, NULL) == SAFER_OK, "out of memory");
    for (int round = 0; round <= ROUNDS; round++) { /* the first one checks, and warms up */
        double start = sf_seconds(), work = 0;
        for (size_t i = 0; i < BATCHES; i++) {
            sf_ibp_batch batch = {x->items + i * TEXTS * WORDS, x->offsets, x->labels, TEXTS};
            uint64_t number = (uint64_t)round * BATCHES + i + 1;
            check(sf_ibp_step_gradient(&loss, step, parameters, &batch, 0.5, round ? 1 : 0, number, NULL) == SAFER_OK,
                  "a step failed");
            for (size_t b = 0; !round && b < TEXTS; b++) {
                const float *logits = sf_ibp_step_logits(step) + b * K, *worst = sf_ibp_step_worst(step) + b * K;
                size_t y = (size_t)x->labels[b];
                check(fabsf(worst[1 - y] - (logits[1 - y] - logits[y])) < 1e-3f,
                      "without a box the worst margins are not the plain ones");
            }
            sf_ibp_step_update(step, parameters, means, variances, number);
            work += sf_ibp_step_work(step);
        }
        double texts = BATCHES * TEXTS / (sf_seconds() - start);
        if (round && texts > best.texts) best = (speed){texts, work / (BATCHES * TEXTS)};
    }
    sf_ibp_step_free(step);
    free(parameters);
    free(means);
    free(variances);
    return best;
}

int main(int argc, char **argv)
{
    int json = bench_option(argc, argv, "--json");
    const struct {
        const char *name;
        int wordwise, convolution, freeze;
    } cases[] = {{"jia-cnn", 1, 1, 1},
                 {"jia-cnn-trained-vectors", 1, 1, 0},
                 {"jia-bow", 1, 0, 1},
                 {"huang-cnn", 0, 1, 1},
                 {"huang-bow", 0, 0, 1}};
    fixture x = {0};
    make_fixture(&x);
    double peak = sgemm_rate();
    json_t *rows = json_array();
    if (!json)
        printf("batches of %d texts of %d words, D %d, %d filters, hidden %d; "
               "sf_gemm alone: %.0f GFLOP/s on one thread\n",
               TEXTS, WORDS, D, F, H, peak * 1e-9);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int threads = 1; threads <= 2; threads++) {
            speed s = measure(&x, cases[i].wordwise, cases[i].convolution, cases[i].freeze, threads);
            double share = s.texts * s.work / (peak * threads), minutes = (double)REVIEWS * EPOCHS / s.texts / 60;
            if (json)
                json_array_append_new(rows,
                                      json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "net", cases[i].name, "threads",
                                                threads, "texts_per_second", s.texts, "gflops", s.texts * s.work * 1e-9,
                                                "sgemm_share", share, "minutes", minutes));
            else
                printf("%-24s %d thread%s  %6.0f texts/s  %5.1f GFLOP/s in products, %4.1f%% of sf_gemm's; "
                       "%d reviews, %d epochs: %.1f minutes\n",
                       cases[i].name, threads, threads > 1 ? "s" : " ", s.texts, s.texts * s.work * 1e-9, 100 * share,
                       REVIEWS, EPOCHS, minutes);
        }
    if (json) {
        json_t *out = json_pack("{s:f, s:O}", "sgemm_gflops", peak * 1e-9, "nets", rows);
        bench_print_json(out);
    }
    json_decref(rows);
    free(x.sets.members);
    free(x.sets.offsets);
    free(x.items);
    return 0;
}
