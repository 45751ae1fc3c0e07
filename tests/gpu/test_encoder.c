/* Encoders on a GPU against the same ones on the CPU, their logits and the means of words: near, and the same bits in
 * every batch. With --speed LENGTHS: how
 * fast, also with texts as long as the lines of that file say; with --small: little work, for compute-sanitizer. With
 * --forms those that are not BERT's (--forms --small, --forms --speed [NAME]); with --golden FOLDER checkpoints' logits
 * beside those that scripts/golden-encoders had from transformers. */
#define _GNU_SOURCE
#include "base/elementary.h"
#include "base/memory.h"
#include "base/progress.h"
#include "model/bert.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "architectures.h"

typedef struct fixture {
    sf_bert_layout layout;
    float *parameters;
    sf_encoder encoder;
    sf_device_net *net;
    size_t rows;
} fixture;

static void make(fixture *x, const sf_bert_shape *shape)
{
    need(sf_bert_layout_make(&x->layout, shape) == 0, "out of memory");
    x->parameters = sf_alloc_aligned(x->layout.size, sizeof *x->parameters);
    random_weights(x->parameters, &x->layout);
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
    expect(worst < 3 * own + 0.01 * spread, name, "too far from the CPU's");
    free(features);
    free(t.ids);
    free(t.offsets);
}

/* The same texts, shuffled; order[i]: which one is text i. */
static texts shuffle(size_t *order, const texts *t, const fixture *x)
{
    texts s = make_texts(t->count, 1, x->encoder.tokens, 2);
    for (size_t i = 0; i < t->count; i++) order[i] = i;
    for (size_t i = t->count; i-- > 1;) {
        const size_t k = bits() % (i + 1), keep = order[i];
        order[i] = order[k];
        order[k] = keep;
    }
    for (size_t i = 0; i < t->count; i++) {
        const size_t from = t->offsets[order[i]], length = t->offsets[order[i] + 1] - from;
        s.offsets[i + 1] = s.offsets[i] + length;
        memcpy(s.ids + s.offsets[i], t->ids + from, length * sizeof *s.ids);
    }
    return s;
}

/* The same texts alone, in batches, in another order, by another slot. */
static void test_bits(fixture *x, const char *name, size_t count)
{
    const size_t classes = x->encoder.classes, batches[] = {1, 7, 333, 4096};
    texts t = make_texts(count, 1, x->encoder.tokens, x->encoder.vocabulary);
    size_t *order = sf_alloc(count, sizeof *order), wrong = 0;
    texts s = shuffle(order, &t, x);
    float *first = sf_alloc(count * classes, sizeof *first), *other = sf_alloc(count * classes, sizeof *other);
    answer(first, x, &t, 64, 0);
    for (size_t b = 0; b < 4; b++) {
        answer(other, x, &t, batches[b], (int)(b % 2));
        for (size_t i = 0; i < count; i++)
            wrong += memcmp(first + i * classes, other + i * classes, classes * sizeof *first) != 0;
    }
    for (size_t b = 0; b < 4; b++) {
        answer(other, x, &s, batches[b], 1);
        for (size_t i = 0; i < count; i++)
            wrong += memcmp(first + order[i] * classes, other + i * classes, classes * sizeof *first) != 0;
    }
    printf("%s: %zu texts alone, in batches and shuffled: %zu of %zu with other bits (%016llx)\n", name, count, wrong,
           8 * count, bits_of(first, count * classes * sizeof *first));
    expect(wrong == 0, name, "an answer depends on its batch");
    free(order);
    free(first);
    free(other);
    free(t.ids);
    free(t.offsets);
    free(s.ids);
    free(s.offsets);
}

/* ----------------------------------------------------------------- means of words */

/* Words of 0 to 3 pieces behind the first piece of a text, to the last but one, as many for every text of this length;
 * begin (count+1). Returns how many. */
static size_t cut_words(size_t *begin, size_t length)
{
    size_t count = 0;
    begin[0] = length > 1;
    for (size_t at = begin[0]; count + 1 < length && at + 1 < length; at = begin[++count])
        begin[count + 1] = at + (length + 5 * count) % 4 < length - 1 ? at + (length + 5 * count) % 4 : length - 1;
    return count;
}

/* Word w of text i goes to row offsets[i] + w. In calls of up to `batch` texts, and of the rows that fit. */
static void ask_means(float *means, fixture *x, const texts *t, size_t batch, int slot)
{
    const size_t H = x->encoder.hidden;
    sf_device_part *parts = sf_alloc(x->rows, sizeof *parts);
    size_t *begin = sf_alloc(x->encoder.tokens + 1, sizeof *begin);
    for (size_t first = 0, last; first < t->count; first = last) {
        size_t made = 0;
        for (last = first; last < t->count && last - first < batch; last++) {
            const size_t at = t->offsets[last];
            if (last > first && t->offsets[last + 1] - t->offsets[first] > x->rows) break;
            const size_t words = cut_words(begin, t->offsets[last + 1] - at);
            for (size_t w = 0; w < words; w++)
                if (begin[w + 1] > begin[w])
                    parts[made++] = (sf_device_part){at - t->offsets[first] + begin[w], begin[w + 1] - begin[w],
                                                     means + (at + w) * H};
        }
        if (made)
            need(table->means(parts, made, x->net, slot, t->ids, t->offsets + first, last - first, &error) == SAFER_OK,
                 error.message);
    }
    free(parts);
    free(begin);
}

static float *room_for(const fixture *x, const texts *t)
{
    float *room = sf_calloc(t->offsets[t->count] * x->encoder.hidden, sizeof *room);
    need(room != NULL, "out of memory");
    return room;
}

static void ask_cpu(float *means, const fixture *x, const texts *t, safer_precision precision)
{
    const size_t H = x->encoder.hidden;
    sf_bert_net *net = NULL;
    sf_bert_scratch *scratch = NULL;
    size_t *begin = sf_alloc(x->encoder.tokens + 1, sizeof *begin);
    need(sf_bert_net_new(&net, &x->layout, x->parameters, sf_arithmetic_of(precision), 0, &error) == SAFER_OK,
         error.message);
    need(sf_bert_scratch_new(&scratch, net, &error) == SAFER_OK, error.message);
    for (size_t i = 0; i < t->count; i++) {
        const size_t offsets[] = {0, t->offsets[i + 1] - t->offsets[i]};
        const sf_bert_batch one = {t->ids + t->offsets[i], offsets, 1};
        const sf_bert_parts parts = {begin, cut_words(begin, offsets[1]), means + t->offsets[i] * H};
        sf_bert_part_means(net, &one, &parts, scratch);
    }
    sf_bert_scratch_free(scratch);
    sf_bert_net_free(net);
    free(begin);
}

/* The root of the mean square of a difference, or of numbers. */
static double size_of(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += pow((double)a[i] - (b ? (double)b[i] : 0), 2);
    return sqrt(sum / (double)count);
}

/* Over all numbers: the worst one of millions says little. */
static void means_are_near(fixture *x, const char *name)
{
    texts t = make_texts(24, 1, x->encoder.tokens, x->encoder.vocabulary);
    float *means = room_for(x, &t), *expected = room_for(x, &t), *rounded = room_for(x, &t);
    const size_t count = t.offsets[t.count] * x->encoder.hidden;
    ask_means(means, x, &t, 24, 0);
    ask_cpu(expected, x, &t, SAFER_PRECISION_F32);
    ask_cpu(rounded, x, &t, SAFER_PRECISION_BF16);
    const double far = size_of(means, expected, count), own = size_of(rounded, expected, count),
                 spread = size_of(expected, NULL, count);
    printf("%s: means of size %.3f; the GPU differs by %.5f from f32, bf16 on the CPU by %.5f\n", name, spread, far,
           own);
    expect(spread > 0 && far < 4 * own + 0.01 * spread, name, "means are too far from the CPU's");
    free(means);
    free(expected);
    free(rounded);
    free(t.ids);
    free(t.offsets);
}

/* Alone, in batches, in another order, by another slot. */
static void means_have_the_same_bits(fixture *x, const char *name, size_t count)
{
    const size_t H = x->encoder.hidden, batches[] = {1, 7, 333, 4096};
    texts t = make_texts(count, 1, x->encoder.tokens, x->encoder.vocabulary);
    size_t *order = sf_alloc(count, sizeof *order), wrong = 0;
    texts s = shuffle(order, &t, x);
    float *first = room_for(x, &t), *other = room_for(x, &t);
    ask_means(first, x, &t, 64, 0);
    for (size_t b = 0; b < 8; b++) {
        const texts *asked = b < 4 ? &t : &s;
        ask_means(other, x, asked, batches[b % 4], (int)(b % 2));
        for (size_t i = 0; i < count; i++) {
            const size_t from = t.offsets[b < 4 ? i : order[i]], rows = asked->offsets[i + 1] - asked->offsets[i];
            wrong += memcmp(first + from * H, other + asked->offsets[i] * H, rows * H * sizeof *first) != 0;
        }
        memset(other, 0, asked->offsets[count] * H * sizeof *other);
    }
    printf("%s: means of %zu texts alone, in batches and shuffled: %zu of %zu with other bits (%016llx)\n", name, count,
           wrong, 8 * count, bits_of(first, t.offsets[count] * H * sizeof *first));
    expect(wrong == 0, name, "a mean depends on its batch");
    free(order);
    free(first);
    free(other);
    free(t.ids);
    free(t.offsets);
    free(s.ids);
    free(s.offsets);
}

/* Of this encoder without an end. */
static void test_means(sf_bert_shape shape, const char *name, size_t count)
{
    fixture x;
    const uint64_t before = state; /* the other tests have the numbers that they had without this one */
    shape.classes = 0;
    shape.pool = SF_POOL_MEAN;
    make(&x, &shape);
    means_are_near(&x, name);
    means_have_the_same_bits(&x, name, count);
    drop(&x);
    state = before;
}

/* ---------------------------------------------------------------------- speed */

typedef struct lane {
    fixture *x;
    const texts *t;
    float *means; /* of words, for all texts; or NULL: logits are asked */
    int slot, slots;
} lane;

static void *answer_half(void *argument)
{
    lane *l = argument;
    const size_t half = l->t->count / (size_t)l->slots;
    texts part = {l->t->ids, l->t->offsets + half * (size_t)l->slot, half};
    if (l->means) {
        ask_means(l->means, l->x, &part, half, l->slot);
        return NULL;
    }
    float *logits = sf_alloc(half * l->x->encoder.classes, sizeof *logits);
    answer(logits, l->x, &part, half, l->slot);
    free(logits);
    return NULL;
}

static void measure(fixture *x, const texts *t, float *means, const char *name)
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
                lanes[i] = (lane){x, t, means, i, slots};
                pthread_create(&threads[i], NULL, answer_half, &lanes[i]);
            }
            for (int i = 0; i < slots; i++) pthread_join(threads[i], NULL);
            best = fmin(best, sf_seconds() - start);
        }
        printf("%s, %d at once: %.0f texts/s, %.0f TFLOP/s\n", name, slots, (double)t->count / best,
               work / best / 1e12);
    }
}

/* --------------------------------------------------------------------- forms */

static void test_forms(int small)
{
    for (int i = 0; i < ARCHITECTURES; i++)
        for (size_t size = 64; size >= 24; size = size == 64 ? 32 : size - 8) { /* heads of 64, 32 and 24 */
            const architecture *a = &architectures[i];
            fixture x;
            char name[80];
            const sf_bert_shape shape = architecture_small(a, size, small ? 130 : 512);
            if (small && size == 32) continue;
            snprintf(name, sizeof name, "%s, heads of %zu", a->name, size);
            make(&x, &shape);
            test_near(&x, name);
            test_bits(&x, name, small ? 10 : size == 64 ? 1000 : 200);
            drop(&x);
            test_means(shape, name, small ? 10 : 200);
        }
}

/* Every form of BERT-base's size, or one: texts of 256 and of 512 pieces, beside BERT for the same work. */
static void measure_forms(const char *only)
{
    double bert[2] = {0, 0};
    for (int i = 0; i < ARCHITECTURES; i++) {
        const architecture *a = &architectures[i];
        const sf_bert_shape shape = architecture_base(a);
        fixture x;
        if (a->other || (only && i && strcmp(a->name, only) != 0)) continue;
        const double before = memory_taken();
        make(&x, &shape);
        printf("%-12s memory %.2f GB", a->name, (memory_taken() - before) / 1e9);
        for (int k = 0; k < 2; k++) {
            const size_t T = k ? 512 : 256;
            texts t = make_texts(1 << (k ? 10 : 11), T, T, x.encoder.vocabulary);
            float *logits = sf_alloc(t.count * x.encoder.classes, sizeof *logits);
            double best = 1e9;
            for (int turn = 0; turn < 5; turn++) {
                const double start = sf_seconds();
                answer(logits, &x, &t, t.count, 0);
                best = fmin(best, sf_seconds() - start);
            }
            const double each = best / (double)t.count / architecture_work(&shape, T);
            if (i == 0) bert[k] = each;
            printf("; %zu pieces: %.0f texts/s, %.0f TFLOP/s, %.2f of BERT's time", T, (double)t.count / best,
                   1 / each / 1e12, each / bert[k]);
            expect(each <= a->most * bert[k], a->name, "slower than it may be");
            free(logits);
            free(t.ids);
            free(t.offsets);
        }
        puts("");
        drop(&x);
    }
}

/* As scripts/golden-encoders makes them. */
static void golden_sequence(uint32_t *ids, size_t length, size_t number, const json_t *golden)
{
    const uint32_t first = (uint32_t)json_integer_value(json_object_get(golden, "first")),
                   vocabulary = (uint32_t)json_integer_value(json_object_get(golden, "vocabulary"));
    uint32_t next = (uint32_t)(number * 2654435761u);
    for (size_t i = 0; i < length; i++) {
        next = next * 1664525u + 1013904223u;
        ids[i] = first + (next >> 8) % (vocabulary - first);
    }
    ids[0] = (uint32_t)json_integer_value(json_object_get(golden, "begin"));
    if (length > 1) ids[length - 1] = (uint32_t)json_integer_value(json_object_get(golden, "end"));
}

static void test_golden(const char *folder, const char *name)
{
    char path[1024];
    sf_bert_checkpoint c;
    sf_device_net *net = NULL;
    sf_encoder e;
    size_t rows = 1 << 14, longest = 0;
    snprintf(path, sizeof path, "%s/%s/golden.json", folder, name);
    json_t *golden = json_load_file(path, 0, NULL);
    need(golden != NULL, path);
    *strrchr(path, '/') = 0;
    need(sf_bert_checkpoint_open(&c, path, &error) == SAFER_OK, error.message);
    need(sf_bert_encoder(&e, &c.layout, c.parameters) == 0, "out of memory");
    need(table->net_new(&net, 0, &e, 1, &rows, &error) == SAFER_OK, error.message);
    const json_t *inputs = json_object_get(golden, "inputs");
    const double own = json_real_value(json_object_get(golden, "bf16"));
    double far = 0, spread = 0;
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        uint32_t ids[1024];
        float logits[8];
        const json_t *input = json_array_get(inputs, i);
        const size_t length = (size_t)json_integer_value(json_array_get(input, 0)), offsets[] = {0, length};
        need(length <= 1024 && e.classes <= 8, "an input is too long");
        golden_sequence(ids, length, i, golden);
        need(table->answer(logits, net, 0, ids, offsets, 1, &error) == SAFER_OK, error.message);
        for (size_t k = 0; k < e.classes; k++) {
            const double expected = json_real_value(json_array_get(json_array_get(input, 1), k));
            far = fmax(far, fabs((double)logits[k] - expected));
            spread = fmax(spread, fabs(expected));
        }
        if (length > longest) longest = length;
    }
    printf("%-18s %zu inputs of up to %zu pieces, logits up to %.2f: off by %.4f, PyTorch's own bf16 by %.4f\n", name,
           json_array_size(inputs), longest, spread, far, own);
    expect(far < 2 * own + 0.02, name, "too far from transformers");
    table->net_free(net);
    free((void *)e.layer);
    sf_bert_checkpoint_free(&c);
    json_decref(golden);
}

static void test_goldens(const char *folder)
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, NULL, alphasort);
    need(count > 2, "there are no checkpoints");
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.' && !strchr(entries[i]->d_name, '.')) test_golden(folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    const int forms = argc > 2 && strcmp(argv[2], "--forms") == 0;
    const int speed = argc > 3 && strcmp(argv[2], "--speed") == 0, small = argc > 2 && strcmp(argv[2], "--small") == 0;
    need(argc > 1, "usage: test_encoder PLUGIN [--speed LENGTHS|--small|--forms [--small|--speed [NAME]]|"
                   "--golden FOLDER]");
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_plugin(argv[1]);
    if (forms && argc > 3 && strcmp(argv[3], "--speed") == 0)
        measure_forms(argc > 4 ? argv[4] : NULL);
    else if (forms)
        test_forms(argc > 3);
    else if (argc > 3 && strcmp(argv[2], "--golden") == 0)
        test_goldens(argv[3]);
    if (forms || (argc > 3 && !speed)) return finish();
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
        test_means(shape, shapes[i].name, small ? 10 : 400);
        if (speed && i < 2) {
            texts even = make_texts(2048, 256, 256, x.encoder.vocabulary),
                  real = make_texts_as(argv[3], 8192, shape.positions, x.encoder.vocabulary);
            float *means = room_for(&x, &even);
            measure(&x, &even, NULL, "256 pieces");
            measure(&x, &real, NULL, "lengths of IMDB");
            measure(&x, &even, means, "256 pieces, means of words");
            free(means);
        }
        drop(&x);
    }
    return finish();
}
