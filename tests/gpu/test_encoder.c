/* Encoders on a GPU against the same ones on the CPU: near, and the same bits in every batch. With --speed LENGTHS: how
 * fast, also with texts as long as the lines of that file say; with --small: little work, for compute-sanitizer. */
#define _GNU_SOURCE
#include "base/elementary.h"
#include "base/memory.h"
#include "base/progress.h"
#include "model/bert.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "plugin.h"

typedef struct fixture {
    sf_bert_layout layout;
    float *parameters;
    sf_encoder encoder;
    sf_device_net *net;
    size_t rows;
} fixture;

/* Weights such that activations stay about 1 and attention is neither even nor on one key alone. */
static void make(fixture *x, const sf_bert_shape *shape)
{
    need(sf_bert_layout_make(&x->layout, shape) == 0, "out of memory");
    x->parameters = sf_alloc_aligned(x->layout.size, sizeof *x->parameters);
    for (size_t t = 0; t < x->layout.tensor_count; t++) {
        const sf_bert_tensor *tensor = &x->layout.tensors[t];
        const int norm = strstr(tensor->name, "LayerNorm.weight") != NULL;
        const float scale = tensor->rank == 2 && !strstr(tensor->name, "embeddings")
                                ? 1.7f / sqrtf((float)tensor->shape[1])
                                : 0.2f;
        for (size_t i = 0; i < tensor->count; i++)
            x->parameters[tensor->offset + i] = norm ? 1 + 0.2f * noise() : scale * noise();
    }
    need(sf_bert_encoder(&x->encoder, &x->layout, x->parameters) == 0, "out of memory");
    x->rows = 1 << 16;
    need(table->net_new(&x->net, 0, &x->encoder, 2, &x->rows, &error) == SAFER_OK, error.message);
}

static void drop(fixture *x)
{
    table->net_free(x->net);
    free((void *)x->encoder.layer);
    free(x->parameters);
    sf_bert_layout_free(&x->layout);
}

typedef struct texts {
    uint32_t *ids;
    size_t *offsets, count;
} texts;

static texts make_texts(size_t count, size_t least, size_t most, size_t vocabulary)
{
    texts t = {sf_alloc(count * most, sizeof *t.ids), sf_alloc(count + 1, sizeof *t.offsets), count};
    t.offsets[0] = 0;
    for (size_t i = 0; i < count; i++) {
        t.offsets[i + 1] = t.offsets[i] + least + bits() % (most - least + 1);
        for (size_t k = t.offsets[i]; k < t.offsets[i + 1]; k++) t.ids[k] = bits() % (uint32_t)vocabulary;
    }
    return t;
}

/* As long as a file says, shuffled. */
static texts make_texts_as(const char *path, size_t count, size_t most, size_t vocabulary)
{
    size_t lengths[1000], known = 0;
    FILE *file = fopen(path, "r");
    need(file != NULL, "the file of lengths cannot be opened");
    while (known < sizeof lengths / sizeof *lengths && fscanf(file, "%zu", &lengths[known]) == 1) known++;
    fclose(file);
    need(known > 0, "the file of lengths holds none");
    texts t = {sf_alloc(count * most, sizeof *t.ids), sf_alloc(count + 1, sizeof *t.offsets), count};
    t.offsets[0] = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t length = lengths[bits() % known];
        t.offsets[i + 1] = t.offsets[i] + (length < most ? length : most);
        for (size_t k = t.offsets[i]; k < t.offsets[i + 1]; k++) t.ids[k] = bits() % (uint32_t)vocabulary;
    }
    return t;
}

/* In calls of up to `batch` texts, and of the rows that fit. */
static void answer(float *logits, fixture *x, const texts *t, size_t batch, int slot)
{
    for (size_t first = 0; first < t->count;) {
        size_t last = first + 1;
        while (last < t->count && last - first < batch && t->offsets[last + 1] - t->offsets[first] <= x->rows) last++;
        need(table->answer(logits + first * x->encoder.classes, x->net, slot, t->ids, t->offsets + first, last - first,
                           &error) == SAFER_OK,
             error.message);
        first = last;
    }
}

/* ---------------------------------------------------------------------- tests */

static void test_near(fixture *x, const char *name)
{
    enum { COUNT = 24 };
    const size_t classes = x->encoder.classes, H = x->encoder.hidden;
    texts t = make_texts(COUNT, 1, x->encoder.tokens, x->encoder.vocabulary);
    float logits[COUNT * 8], expected[COUNT * 8], rounded[COUNT * 8],
        *features = sf_alloc_aligned(COUNT * H, sizeof *features);
    answer(logits, x, &t, COUNT, 0);
    for (int p = 0; p < 2; p++) {
        sf_bert_net *net = NULL;
        sf_bert_scratch *scratch = NULL;
        need(sf_bert_net_new(&net, &x->layout, x->parameters,
                             sf_arithmetic_of(p ? SAFER_PRECISION_BF16 : SAFER_PRECISION_F32), 0, &error) == SAFER_OK,
             error.message);
        need(sf_bert_scratch_new(&scratch, net, &error) == SAFER_OK, error.message);
        sf_bert_batch batch = {t.ids, t.offsets, COUNT};
        sf_bert_features(features, net, &batch, scratch);
        sf_bert_logits(p ? rounded : expected, net, features, COUNT);
        sf_bert_scratch_free(scratch);
        sf_bert_net_free(net);
    }
    double worst = 0, own = 0, spread = 0;
    for (size_t i = 0; i < COUNT * classes; i++) {
        worst = fmax(worst, fabs((double)logits[i] - (double)expected[i]));
        own = fmax(own, fabs((double)rounded[i] - (double)expected[i]));
        spread = fmax(spread, fabs((double)expected[i]));
    }
    printf("%s: logits up to %.3f; the GPU differs by %.4f from f32, bf16 on the CPU by %.4f\n", name, spread, worst,
           own);
    need(worst < 3 * own + 0.01 * spread, "too far from the CPU's");
    free(features);
    free(t.ids);
    free(t.offsets);
}

/* The same texts alone, in batches, in another order, by another slot. */
static void test_bits(fixture *x, const char *name, size_t count)
{
    const size_t classes = x->encoder.classes, batches[] = {1, 7, 333, 4096};
    texts t = make_texts(count, 1, x->encoder.tokens, x->encoder.vocabulary),
          s = make_texts(count, 1, x->encoder.tokens, 2);
    size_t *order = sf_alloc(count, sizeof *order), wrong = 0;
    float *first = sf_alloc(count * classes, sizeof *first), *other = sf_alloc(count * classes, sizeof *other);
    answer(first, x, &t, 64, 0);
    for (size_t b = 0; b < 4; b++) {
        answer(other, x, &t, batches[b], (int)(b % 2));
        for (size_t i = 0; i < count; i++)
            wrong += memcmp(first + i * classes, other + i * classes, classes * sizeof *first) != 0;
    }
    for (size_t i = 0; i < count; i++) order[i] = i;
    for (size_t i = count; i-- > 1;) {
        const size_t k = bits() % (i + 1), keep = order[i];
        order[i] = order[k];
        order[k] = keep;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t from = t.offsets[order[i]], length = t.offsets[order[i] + 1] - from;
        s.offsets[i + 1] = s.offsets[i] + length;
        memcpy(s.ids + s.offsets[i], t.ids + from, length * sizeof *s.ids);
    }
    for (size_t b = 0; b < 4; b++) {
        answer(other, x, &s, batches[b], 1);
        for (size_t i = 0; i < count; i++)
            wrong += memcmp(first + order[i] * classes, other + i * classes, classes * sizeof *first) != 0;
    }
    printf("%s: %zu texts alone, in batches and shuffled: %zu of %zu with other bits\n", name, count, wrong, 8 * count);
    need(wrong == 0, "an answer depends on its batch");
    free(order);
    free(first);
    free(other);
    free(t.ids);
    free(t.offsets);
    free(s.ids);
    free(s.offsets);
}

/* ---------------------------------------------------------------------- speed */

typedef struct lane {
    fixture *x;
    const texts *t;
    int slot, slots;
} lane;

static void *answer_half(void *argument)
{
    lane *l = argument;
    const size_t half = l->t->count / (size_t)l->slots;
    texts part = {l->t->ids, l->t->offsets + half * (size_t)l->slot, half};
    float *logits = sf_alloc(half * l->x->encoder.classes, sizeof *logits);
    answer(logits, l->x, &part, half, l->slot);
    free(logits);
    return NULL;
}

static void measure(fixture *x, const texts *t, const char *name)
{
    const double H = (double)x->encoder.hidden, F = (double)x->encoder.inner;
    double work = 0;
    for (size_t i = 0; i < t->count; i++) {
        const double T = (double)(t->offsets[i + 1] - t->offsets[i]);
        work += (double)x->encoder.layers * T * (2 * H * (4 * H + 2 * F) + 4 * T * H);
    }
    for (int slots = 1; slots <= 2; slots++) {
        double best = 1e9;
        for (int repeat = 0; repeat < 6; repeat++) {
            pthread_t threads[2];
            lane lanes[2];
            const double start = sf_seconds();
            for (int i = 0; i < slots; i++) {
                lanes[i] = (lane){x, t, i, slots};
                pthread_create(&threads[i], NULL, answer_half, &lanes[i]);
            }
            for (int i = 0; i < slots; i++) pthread_join(threads[i], NULL);
            best = fmin(best, sf_seconds() - start);
        }
        printf("%s, %d at once: %.0f texts/s, %.0f TFLOP/s\n", name, slots, (double)t->count / best,
               work / best / 1e12);
    }
}

int main(int argc, char **argv)
{
    const int speed = argc > 3 && strcmp(argv[2], "--speed") == 0, small = argc > 2 && strcmp(argv[2], "--small") == 0;
    need(argc > 1, "usage: test_encoder PLUGIN [--speed LENGTHS|--small]");
    open_plugin(argv[1]);
    int count = 0;
    sf_device_info info;
    need(table->count(&count, &error) == SAFER_OK, error.message);
    need(table->describe(&info, 0, &error) == SAFER_OK, error.message);
    printf("%d: %s, %s, %.1f of %.1f GiB free\n", count, info.name, info.arithmetic,
           (double)info.free_memory / 1073741824.0, (double)info.memory / 1073741824.0);
    static const struct {
        const char *name;
        sf_bert_shape shape;
    } shapes[] = {
        {"heads of 32",
         {.vocabulary = 3000,
          .positions = 512,
          .types = 2,
          .layers = 12,
          .hidden = 384,
          .heads = 12,
          .inner = 1536,
          .classes = 2,
          .activation = SF_GELU,
          .pool = SF_POOL_POOLER,
          .epsilon = 1e-12f,
          .tokens = 512}},
        {"heads of 64",
         {.vocabulary = 3000,
          .positions = 512,
          .types = 2,
          .layers = 12,
          .hidden = 768,
          .heads = 12,
          .inner = 3072,
          .classes = 4,
          .activation = SF_GELU,
          .pool = SF_POOL_CLS,
          .epsilon = 1e-12f,
          .tokens = 512}},
        {"heads of 24",
         {.vocabulary = 500,
          .positions = 130,
          .types = 0,
          .layers = 2,
          .hidden = 120,
          .heads = 5,
          .inner = 240,
          .classes = 3,
          .activation = SF_RELU,
          .pool = SF_POOL_MEAN,
          .epsilon = 1e-5f,
          .tokens = 130}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        fixture x;
        sf_bert_shape shape = shapes[i].shape;
        if (small) shape.layers = 2, shape.tokens = 130;
        make(&x, &shape);
        test_near(&x, shapes[i].name);
        test_bits(&x, shapes[i].name, small ? 10 : i == 1 ? 200 : 1000);
        if (speed && i < 2) {
            texts even = make_texts(2048, 256, 256, x.encoder.vocabulary),
                  real = make_texts_as(argv[3], 8192, shape.positions, x.encoder.vocabulary);
            measure(&x, &even, "256 pieces");
            measure(&x, &real, "lengths of IMDB");
        }
        drop(&x);
    }
    puts("fine");
    return 0;
}
