/* charcnn on a GPU against the CPU: answers near, and the same bits in every batch. With --speed: how fast; with
 * --small: little work, for compute-sanitizer. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/progress.h"
#include "model/charcnn_answer.h"
#include "nn/device.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void need(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "test_convnet: %s\n", what);
    exit(1);
}

static uint64_t state = 1;
static uint32_t bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}
static float noise(void) { return (float)((double)bits() / 2147483648.0 - 1); }

static const sf_device_table *table;
static safer_error error;

typedef struct fixture {
    sf_charcnn_layout layout;
    sf_convnet shape;
    float *parameters; /* (trained) */
} fixture;

/* Weights such that frames neither vanish nor grow. */
static void make(fixture *x, const sf_charcnn_shape *shape)
{
    sf_charcnn_layout_make(&x->layout, shape);
    x->shape = sf_charcnn_convnet(&x->layout);
    x->parameters = sf_alloc_aligned(x->layout.trained, sizeof *x->parameters);
    for (size_t i = x->layout.size; i < x->layout.trained; i++) x->parameters[i] = 1 + noise() / 4;
    for (size_t t = 0; t < x->layout.tensor_count; t++) {
        const size_t *s = x->layout.tensors[t].shape, rank = x->layout.tensors[t].rank;
        const double inputs = rank == 1   ? 20
                              : rank == 2 ? (double)(t + 2 == x->layout.tensor_count ? s[1] : s[0])
                              : t == 0    ? 7
                                          : (double)(s[0] * s[1]);
        for (size_t i = 0; i < x->layout.tensors[t].count; i++)
            x->parameters[x->layout.tensors[t].offset + i] = noise() * (float)sqrt(4 / inputs);
    }
}

/* Texts of any length, some of one character and some empty. */
static uint8_t *make_texts(size_t **lengths, size_t count, size_t L)
{
    uint8_t *codes = sf_calloc(count * L, 1);
    *lengths = sf_calloc(count, sizeof **lengths);
    for (size_t i = 0; i < count; i++) {
        (*lengths)[i] = i < 3 ? i * L / 2 : bits() % (L + 1);
        for (size_t k = 0; k < (*lengths)[i]; k++)
            codes[i * L + k] = (uint8_t)(bits() % 5 ? bits() % SF_CHARCNN_CODES : 0);
    }
    return codes;
}

/* -------------------------------------------------------------------- answers */

typedef struct net {
    sf_device_convnet *net;
    size_t texts;
} net;

static net put(const fixture *x)
{
    net n = {.texts = 1024};
    need(table->convnet_new(&n.net, 0, &x->shape, x->parameters, 2, &n.texts, &error) == SAFER_OK, error.message);
    return n;
}

/* In calls of up to `batch` texts. */
static void answer(float *logits, const fixture *x, net n, const uint8_t *codes, size_t count, size_t batch, int slot)
{
    if (batch > n.texts) batch = n.texts;
    for (size_t first = 0; first < count; first += batch)
        need(table->convnet_answer(logits + first * x->shape.classes, n.net, slot, codes + first * x->shape.characters,
                                   sf_least(batch, count - first), &error) == SAFER_OK,
             error.message);
}

static void test_near(const fixture *x, const char *name)
{
    enum { COUNT = 24 };
    const size_t K = x->shape.classes;
    net n = put(x);
    size_t *lengths;
    int labels[COUNT];
    uint8_t *codes = make_texts(&lengths, COUNT, x->shape.characters);
    float logits[COUNT * 8], reference[2][COUNT * 8];
    answer(logits, x, n, codes, COUNT, COUNT, 0);
    for (int i = 0; i < 2; i++) {
        sf_charcnn_net *cpu = NULL;
        sf_charcnn_scratch *scratch = NULL;
        need(sf_charcnn_net_new(&cpu, &x->layout, sf_arithmetic_fast(i ? SF_BF16 : SF_F32), &error) == SAFER_OK,
             error.message);
        sf_charcnn_net_load(cpu, x->parameters, 0);
        need(sf_charcnn_scratch_new(cpu, &scratch, &error) == SAFER_OK, error.message);
        sf_charcnn_classify_codes(labels, NULL, reference[i], cpu, codes, lengths, COUNT, scratch);
        sf_charcnn_scratch_free(scratch);
        sf_charcnn_net_free(cpu);
    }
    double worst = 0, own = 0, spread = 0;
    for (size_t i = 0; i < COUNT * K; i++) {
        worst = fmax(worst, fabs((double)logits[i] - (double)reference[0][i]));
        own = fmax(own, fabs((double)reference[1][i] - (double)reference[0][i]));
        spread = fmax(spread, fabs((double)reference[0][i]));
    }
    printf("%s: logits up to %.3f; the GPU differs by %.4f from f32, bf16 on the CPU by %.4f\n", name, spread, worst,
           own);
    need(worst < 3 * own + 0.01 * spread, "too far from the CPU's");
    table->convnet_free(n.net);
    free(codes);
    free(lengths);
}

/* The same texts alone, in batches, in another order, by another slot. */
static void test_bits(const fixture *x, const char *name, size_t count)
{
    const size_t K = x->shape.classes, L = x->shape.characters, batches[] = {1, 7, 333, 4096};
    net n = put(x);
    size_t *lengths, *order = sf_alloc(count, sizeof *order), wrong = 0;
    uint8_t *codes = make_texts(&lengths, count, L), *shuffled = sf_alloc(count, L);
    float *first = sf_alloc(count * K, sizeof *first), *other = sf_alloc(count * K, sizeof *other);
    answer(first, x, n, codes, count, 64, 0);
    for (size_t i = 0; i < count; i++) order[i] = i;
    for (size_t i = count; i-- > 1;) {
        const size_t k = bits() % (i + 1), keep = order[i];
        order[i] = order[k];
        order[k] = keep;
    }
    for (size_t i = 0; i < count; i++) memcpy(shuffled + i * L, codes + order[i] * L, L);
    for (size_t b = 0; b < 8; b++) {
        answer(other, x, n, b < 4 ? codes : shuffled, count, batches[b % 4], (int)(b % 2));
        for (size_t i = 0; i < count; i++)
            wrong += memcmp(first + (b < 4 ? i : order[i]) * K, other + i * K, K * sizeof *first) != 0;
    }
    printf("%s: %zu texts alone, in batches and shuffled: %zu of %zu with other bits\n", name, count, wrong, 8 * count);
    need(wrong == 0, "an answer depends on its batch");
    table->convnet_free(n.net);
    free(order);
    free(codes);
    free(lengths);
    free(shuffled);
    free(first);
    free(other);
}

/* ---------------------------------------------------------------------- speed */

/* Multiplications and additions of a text's products, forward. */
static double work_of(const sf_charcnn_layout *l)
{
    const double F = (double)l->shape.features, H = (double)l->shape.hidden;
    double rows = 7 * (double)(l->frames[0] - 6);
    for (size_t i = 1; i <= 4; i++) rows += 3 * (double)(l->frames[1] - 2 * i);
    return 2 * (rows * F * F + (double)l->inputs * H + H * H);
}

typedef struct lane {
    const fixture *x;
    net n;
    const uint8_t *codes;
    size_t count;
    int slot;
} lane;

static void *answer_part(void *argument)
{
    lane *l = argument;
    float *logits = sf_alloc(l->count * l->x->shape.classes, sizeof *logits);
    answer(logits, l->x, l->n, l->codes, l->count, l->n.texts, l->slot);
    free(logits);
    return NULL;
}

static void measure(const fixture *x, const char *name)
{
    enum { COUNT = 8192 };
    net n = put(x);
    size_t *lengths;
    uint8_t *codes = make_texts(&lengths, COUNT, x->shape.characters);
    for (int slots = 1; slots <= 2; slots++) {
        double best = 1e9;
        for (int repeat = 0; repeat < 6; repeat++) {
            pthread_t threads[2];
            lane lanes[2];
            const double start = sf_seconds();
            for (int i = 0; i < slots; i++) {
                const size_t half = COUNT / (size_t)slots;
                lanes[i] = (lane){x, n, codes + (size_t)i * half * x->shape.characters, half, i};
                pthread_create(&threads[i], NULL, answer_part, &lanes[i]);
            }
            for (int i = 0; i < slots; i++) pthread_join(threads[i], NULL);
            best = fmin(best, sf_seconds() - start);
        }
        printf("%s, forward, calls of %zu, %d at once: %.0f texts/s, %.0f TFLOP/s\n", name, n.texts, slots,
               COUNT / best, COUNT * work_of(&x->layout) / best / 1e12);
    }
    table->convnet_free(n.net);
    free(codes);
    free(lengths);
}

int main(int argc, char **argv)
{
    need(argc > 1, "usage: test_convnet PLUGIN [--speed|--small]");
    const int speed = argc > 2 && strcmp(argv[2], "--speed") == 0, small = argc > 2 && strcmp(argv[2], "--small") == 0;
    void *plugin = dlopen(argv[1], RTLD_NOW);
    need(plugin != NULL, plugin ? "" : dlerror());
    sf_device_plugin_function get;
    *(void **)&get = dlsym(plugin, "sf_device_plugin");
    need(get != NULL, "no plugin");
    table = get();
    static const struct {
        const char *name;
        sf_charcnn_shape shape;
    } shapes[] = {{"shortest", {SF_CHARCNN_SHORTEST, 16, 8, 3}},
                  {"odd", {301, 48, 40, 5}},
                  {"small", {1014, 256, 1024, 2}},
                  {"large", {1014, 1024, 2048, 4}}};
    for (size_t i = 0; i < (small ? 2 : 4); i++) {
        fixture x;
        make(&x, &shapes[i].shape);
        test_near(&x, shapes[i].name);
        test_bits(&x, shapes[i].name, small ? 10 : i == 3 ? 200 : 1000);
        if (speed && i > 1) measure(&x, shapes[i].name);
        free(x.parameters);
    }
    puts("fine");
    return 0;
}
