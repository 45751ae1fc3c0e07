/* Samples per second of the CNN: table look-ups beside im2col and sf_gemm.
 *
 * One text of 250 words, 43% of them slots with 50 substitutes each, all different (the
 * worst case for the cache); word vectors of 100, 100 filters of width 3, mean pool, 100
 * hidden units, 2 classes. Both sides get the same indices, drawn beforehand: making
 * random numbers is the sampler's work and is not timed here. The reference copies word
 * vectors into the im2col matrix, 16 samples per product, and does the rest in plain loops
 * and a second product. Agreement is checked first. With --json one object for programs. */
#define _GNU_SOURCE
#include "bench.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/progress.h"
#include "nn/gemm.h"

#include <math.h>

enum {
    WORDS = 250,
    CHOICES = 50,
    D = BENCH_DIM,
    F = BENCH_FILTERS,
    T = BENCH_WIDTH,
    H = BENCH_HIDDEN,
    K = BENCH_CLASSES,
    SAMPLES = 1024,
    BATCH = 16,
    CHUNK = 32,
    MAX_THREADS = 2
};

typedef struct fixture {
    safer_model *model;
    safer_lexicon *lexicon;
    sf_slots slots;
    sf_buffer text;
    sf_cnn_layout layout;
    void *prepared;
    uint32_t *draws; /* (SAMPLES, slots) */
    uint32_t *ids;   /* (SAMPLES, WORDS): the same as vocabulary numbers */
    int *labels;
    void *scratch[MAX_THREADS];
    float *columns[MAX_THREADS]; /* (BATCH * WORDS, T * D) */
    float *outputs[MAX_THREADS]; /* (BATCH * WORDS, F) */
    float *weight;               /* (T * D, F) */
    float *logits;               /* (SAMPLES, K) of the reference */
} fixture;

static void add_word(sf_words *words, const char *word)
{
    uint32_t id;
    check(sf_words_add(words, word, strlen(word), &id, NULL) == SAFER_OK, "out of memory");
}

static void make_fixture(fixture *x)
{
    safer_error error = {0};
    sf_buffer table = {0};
    sf_words words = {0};
    char word[8];
    uint64_t state = 1;
    size_t slots = 0, fixed = 0;
    for (size_t i = 0; i < WORDS; i++) {
        int slot = (i * 43) % 100 < 43;
        bench_name_word(word, slot ? 's' : 'f', slot ? slots++ * CHOICES : fixed++);
        sf_buffer_format(&x->text, "%s ", word);
        add_word(&words, word);
        if (!slot) continue;
        sf_buffer_format(&table, "%s\t", word);
        for (size_t k = 1; k < CHOICES; k++) {
            bench_name_word(word, 's', (slots - 1) * CHOICES + k);
            sf_buffer_format(&table, "%s ", word);
            add_word(&words, word);
        }
        sf_buffer_add_byte(&table, '\n');
    }
    x->lexicon = bench_lexicon(table.bytes, table.length);
    x->model = bench_cnn(&x->layout, &words, &state);
    check(sf_slots_read(&x->slots, x->lexicon, x->text.bytes, x->text.length, &error) == SAFER_OK, error.message);
    check(x->slots.word_count == WORDS && x->slots.slot_count == slots, "the text is not what it should be");
    x->draws = sf_alloc(SAMPLES * slots, sizeof *x->draws);
    x->ids = sf_alloc(SAMPLES * WORDS, sizeof *x->ids);
    x->labels = sf_alloc(SAMPLES, sizeof *x->labels);
    x->logits = sf_alloc(SAMPLES * K, sizeof *x->logits);
    x->weight = sf_alloc_aligned(T * D * F, sizeof *x->weight);
    check(x->draws && x->ids && x->labels && x->logits && x->weight, "out of memory");
    for (size_t s = 0; s < SAMPLES; s++)
        for (size_t i = 0; i < WORDS; i++) {
            const sf_text_word *t = &x->slots.words[i];
            const char *key = x->slots.keys.bytes + t->key;
            if (t->slot != SF_NONE) {
                safer_word source = safer_lexicon_word(x->lexicon, t->word);
                bench_noise(&state);
                uint32_t draw = (uint32_t)(state >> 40) % CHOICES;
                check(source.support_count == CHOICES, "a slot has other substitutes than it should");
                x->draws[s * slots + t->slot] = draw;
                key = safer_lexicon_word(x->lexicon, source.support[draw]).word;
            }
            x->ids[s * WORDS + i] = sf_words_find(&words, key, strlen(key)) + 1;
        }
    const sf_cnn_model *inside = (const sf_cnn_model *)x->model;
    for (size_t t = 0; t < T; t++)
        for (size_t f = 0; f < F; f++)
            for (size_t d = 0; d < D; d++)
                x->weight[(t * D + d) * F + f] = inside->parameters[x->layout.conv_weight + (t * F + f) * D + d];
    for (int i = 0; i < MAX_THREADS; i++) {
        x->columns[i] = sf_alloc_aligned(BATCH * WORDS * T * D, sizeof(float));
        x->outputs[i] = sf_alloc_aligned(BATCH * WORDS * F, sizeof(float));
        check(x->columns[i] && x->outputs[i], "out of memory");
        check(x->model->class->scratch_new(x->model, &x->scratch[i], &error) == SAFER_OK, error.message);
    }
    sf_words_free(&words);
    sf_buffer_free(&table);
}

static void look_up(void *context, size_t begin, size_t end, int worker)
{
    fixture *x = context;
    check(x->model->class->sample(x->model, x->prepared, x->draws + begin * x->slots.slot_count, end - begin,
                                  x->labels + begin, x->scratch[worker], NULL) == SAFER_OK,
          "sampling failed");
}

/* The reference, BATCH samples at a time. */
static void multiply(void *context, size_t begin, size_t end, int worker)
{
    fixture *x = context;
    const sf_cnn_layout *l = &x->layout;
    const float *w = ((const sf_cnn_model *)x->model)->parameters;
    float *columns = x->columns[worker], *out = x->outputs[worker], features[BATCH * F], hidden[BATCH * H];
    for (size_t s = begin; s < end; s += BATCH) {
        for (size_t b = 0; b < BATCH; b++)
            for (size_t i = 0; i < WORDS; i++)
                for (size_t t = 0; t < T; t++) {
                    float *to = columns + ((b * WORDS + i) * T + t) * D;
                    if (i + t < 1 || i + t > WORDS)
                        memset(to, 0, D * sizeof *to);
                    else
                        memcpy(to, w + l->embedding + x->ids[(s + b) * WORDS + i + t - 1] * D, D * sizeof *to);
                }
        sf_gemm_dense(SF_GEMM_NN, out, columns, x->weight, 0, BATCH * WORDS, F, T * D);
        for (size_t b = 0; b < BATCH; b++)
            for (size_t f = 0; f < F; f++) features[b * F + f] = 0;
        for (size_t b = 0; b < BATCH; b++)
            for (size_t i = 0; i < WORDS; i++)
                for (size_t f = 0; f < F; f++) {
                    float y = out[(b * WORDS + i) * F + f] + w[l->conv_bias + f];
                    features[b * F + f] += (y > 0 ? y : 0) * (1.0f / WORDS);
                }
        sf_gemm_dense(SF_GEMM_NT, hidden, features, w + l->hidden_weight, 0, BATCH, H, F);
        for (size_t b = 0; b < BATCH; b++)
            for (size_t k = 0; k < K; k++) {
                float sum = w[l->output_bias + k];
                for (size_t h = 0; h < H; h++) {
                    float y = hidden[b * H + h] + w[l->hidden_bias + h];
                    sum += (y > 0 ? y : 0) * w[l->output_weight + k * H + h];
                }
                x->logits[(s + b) * K + k] = sum;
            }
    }
}

/* Samples per second, after one round that warms up. */
static double rate(fixture *x, sf_task task, size_t samples, int threads, int rounds)
{
    sf_parallel(threads, samples, CHUNK, task, x);
    return (double)samples / bench_best(rounds, threads, samples, CHUNK, task, x);
}

static double agreement(fixture *x)
{
    double worst = 0;
    size_t slots = x->slots.slot_count;
    multiply(x, 0, 256, 0);
    for (size_t s = 0; s < 256; s++) {
        int label;
        check(x->model->class->sample(x->model, x->prepared, x->draws + s * slots, 1, &label, x->scratch[0], NULL) ==
                  SAFER_OK,
              "sampling failed");
        const float *logits = sf_cnn_scratch_logits(x->scratch[0]);
        for (size_t k = 0; k < K; k++) {
            double off = fabs((double)logits[k] - (double)x->logits[s * K + k]);
            if (off > worst) worst = off;
        }
    }
    return worst;
}

/* Rows that one sample reads, a fixed one and one for each drawn word of a window. */
static size_t rows_read(const fixture *x)
{
    size_t rows = 0;
    for (size_t i = 0; i < WORDS; i++) {
        size_t drawn = 0;
        for (size_t j = i ? i - 1 : 0; j <= i + 1 && j < WORDS; j++) drawn += x->slots.words[j].slot != SF_NONE;
        rows += drawn ? drawn + 1 : 0;
    }
    return rows;
}

/* Bytes per second that sf_lookup_sum itself gets from a table in the first-level cache. */
static double peak_bytes(void)
{
    enum { COUNT = 64, ROWS = 16, WIDTH = 128 };
    int16_t *table = sf_alloc_aligned(ROWS * WIDTH, sizeof *table);
    const int16_t *rows[ROWS];
    sf_term terms[COUNT * 3];
    uint32_t sums[WIDTH] = {0};
    double best = 0;
    check(table != NULL, "out of memory");
    memset(table, 0, ROWS * WIDTH * sizeof *table);
    for (size_t i = 0; i < ROWS; i++) rows[i] = table + i * WIDTH;
    for (size_t i = 0; i < COUNT * 3; i++) terms[i] = (sf_term){(uint32_t)(i * 7 % ROWS), 0};
    sf_windows w = {table, 0, terms, COUNT, 3};
    for (int round = 0; round < 20; round++) {
        double start = sf_seconds();
        for (int i = 0; i < 2000; i++) sf_lookup_sum(sums, &w, rows, WIDTH, sf_isa_choose());
        double bytes = 2000.0 * COUNT * 4 * WIDTH * sizeof *table / (sf_seconds() - start);
        if (bytes > best) best = bytes;
    }
    free(table);
    return best;
}

int main(int argc, char **argv)
{
    int json = bench_option(argc, argv, "--json");
    fixture x = {0};
    safer_error error = {0};
    make_fixture(&x);
    double start = sf_seconds(), cold, warm;
    check(x.model->class->prepare(x.model, x.lexicon, &x.slots, &x.prepared, &error) == SAFER_OK, error.message);
    cold = sf_seconds() - start;
    x.model->class->release(x.prepared);
    start = sf_seconds();
    check(x.model->class->prepare(x.model, x.lexicon, &x.slots, &x.prepared, &error) == SAFER_OK, error.message);
    warm = sf_seconds() - start;

    double off = agreement(&x), fast[MAX_THREADS], slow[MAX_THREADS];
    check(off < 1e-3, "look-ups and matrix products disagree");
    for (int t = 0; t < MAX_THREADS; t++) {
        fast[t] = rate(&x, look_up, SAMPLES, t + 1, 100);
        slow[t] = rate(&x, multiply, 64, t + 1, 40);
    }
    double bytes = (double)rows_read(&x) * 128 * sizeof(int16_t), share = fast[0] * bytes / peak_bytes();
    double per_position = 1e9 / fast[0] / WORDS, per_slot = 1e9 / fast[0] / (double)x.slots.slot_count;
    double gflops = slow[0] * 2.0 * WORDS * T * D * F * 1e-9;
    if (json) {
        json_t *out = json_pack("{s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
                                "isa", sf_isa_name(sf_isa_choose()), "words", WORDS, "slots", (int)x.slots.slot_count,
                                "choices", CHOICES, "disagreement", off, "lookup_1", fast[0], "lookup_2", fast[1],
                                "sgemm_1", slow[0], "sgemm_2", slow[1], "ratio_1", fast[0] / slow[0], "ratio_2",
                                fast[1] / slow[1], "ns_per_position", per_position, "ns_per_slot", per_slot,
                                "load_share", share, "prepare_cold_ms", cold * 1e3, "prepare_warm_ms", warm * 1e3);
        bench_print_json(out);
    } else {
        printf("%d words, %zu slots with %d substitutes, D %d, %d filters of width %d, hidden %d; %s; "
               "indices drawn beforehand\n",
               WORDS, x.slots.slot_count, CHOICES, D, F, T, H, sf_isa_name(sf_isa_choose()));
        printf("largest difference of a logit from im2col + sf_gemm: %.1e\n", off);
        for (int t = 0; t < MAX_THREADS; t++)
            printf("%d thread%s  look-up %10.0f samples/s   sgemm %8.0f samples/s   ratio %6.1f\n", t + 1,
                   t ? "s" : " ", fast[t], slow[t], fast[t] / slow[t]);
        printf("look-up: %.2f ns per position, %.2f ns per slot, %.1f GB/s of rows, "
               "%.0f%% of what the same loop reads from L1\n",
               per_position, per_slot, fast[0] * bytes * 1e-9, 100 * share);
        printf("sgemm: %.0f GFLOP/s on one thread. prepare: %.2f ms the first time, %.2f ms with rows made\n", gflops,
               cold * 1e3, warm * 1e3);
    }
    x.model->class->release(x.prepared);
    for (int i = 0; i < MAX_THREADS; i++) {
        x.model->class->scratch_free(x.scratch[i]);
        free(x.columns[i]);
        free(x.outputs[i]);
    }
    safer_model_free(x.model);
    safer_lexicon_free(x.lexicon);
    sf_slots_free(&x.slots);
    sf_buffer_free(&x.text);
    free(x.draws);
    free(x.ids);
    free(x.labels);
    free(x.weight);
    free(x.logits);
    return 0;
}
