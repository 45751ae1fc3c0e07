/* charcnn on a GPU against the CPU: answers near, and the same bits in every batch; gradients, the loss of a course and
 * a state that goes on. With --speed: how fast; with --small: little work, for compute-sanitizer. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/progress.h"
#include "model/charcnn_answer.h"
#include "nn/layers.h"
#include "train/charcnn_learner.h"
#include "train/charcnn_scale.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "plugin.h"

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

/* ------------------------------------------------------------------- training */

enum { BATCH = 10 };

typedef struct lesson {
    sf_device_convnet_step *step;
    uint8_t *codes;
    size_t *lengths;
    int labels[BATCH];
    float *masks; /* (2, BATCH, hidden) of `options` and step 1 */
    sf_charcnn_options options;
} lesson;

static sf_device_convnet_step *put_step(const fixture *x, size_t texts, float smoothing)
{
    sf_device_convnet_step *step = NULL;
    sf_device_convnet_training how = {
        .net = &x->shape, .trained = x->parameters, .texts = texts, .smoothing = smoothing, .clip = 1};
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) how.shares[i] = sf_charcnn_share(&x->layout, i);
    need(table->convnet_step_new(&step, 0, &how, &error) == SAFER_OK, error.message);
    return step;
}

/* Of one text more than the batch: its rows lie behind the last. */
static lesson begin(const fixture *x)
{
    const size_t H = x->shape.hidden;
    lesson l = {.options = {.dropout = 0.25f, .smoothing = 0.1f, .decay = 0.01, .seed = 3}};
    l.step = put_step(x, BATCH + 1, l.options.smoothing);
    l.codes = make_texts(&l.lengths, BATCH + 1, x->shape.characters);
    l.masks = sf_alloc(2 * BATCH * H, sizeof *l.masks);
    for (size_t i = 0; i < BATCH; i++) {
        l.labels[i] = (int)(bits() % x->shape.classes);
        for (size_t k = 0; k < 2; k++)
            sf_dropout_mask(l.masks + (k * BATCH + i) * H, l.options.dropout, sf_charcnn_step_dropout(&l.options), 1,
                            (uint32_t)(2 * i + k), H);
    }
    return l;
}

static void end(lesson *l)
{
    table->convnet_step_free(l->step);
    free(l->codes);
    free(l->lengths);
    free(l->masks);
}

static double learn(float *gradient, lesson *l, size_t count)
{
    double loss;
    const float *masks = count == BATCH ? l->masks : NULL;
    int labels[BATCH + 1] = {0};
    memcpy(labels, l->labels, sizeof l->labels);
    need(table->convnet_step_gradient(&loss, gradient, l->step, l->codes, count, labels, masks, &error) == SAFER_OK,
         error.message);
    return loss;
}

/* A tensor's gradient, or the gains', against that in f32: by how much of its length it is off. */
static double off(const float *ours, const float *theirs, size_t first, size_t count)
{
    double length = 0, far = 0;
    for (size_t i = first; i < first + count; i++) {
        length += (double)theirs[i] * (double)theirs[i];
        far += pow((double)ours[i] - (double)theirs[i], 2);
    }
    return length > 0 ? sqrt(far / length) : sqrt(far);
}

/* After a larger batch, whose rows must leave nothing behind. */
static void test_gradient(const fixture *x, const char *name)
{
    const size_t size = x->layout.trained;
    lesson l = begin(x);
    float *own = sf_calloc(size, sizeof *own), *again = sf_calloc(size, sizeof *again), *cpu[2];
    const double first = learn(own, &l, BATCH);
    (void)learn(NULL, &l, BATCH + 1);
    const double second = learn(again, &l, BATCH);
    need(memcmp(own, again, size * sizeof *own) == 0 && memcmp(&first, &second, sizeof first) == 0,
         "the same step gives other bits");
    double losses[2], worst = 0, reference = 0;
    const char *where = "";
    for (int i = 0; i < 2; i++) {
        sf_charcnn_step *step = NULL;
        sf_charcnn_options options = l.options;
        const sf_charcnn_batch batch = {l.codes, l.lengths, l.labels, BATCH};
        options.type = i ? SF_BF16 : SF_F32;
        need(sf_charcnn_step_new(&step, &x->layout, &options, BATCH, &error) == SAFER_OK, error.message);
        cpu[i] = sf_calloc(size, sizeof(float));
        memcpy(cpu[i], sf_charcnn_step_gradient(&losses[i], step, x->parameters, &batch, 1), size * sizeof(float));
        sf_charcnn_step_free(step);
    }
    for (size_t t = 0; t <= x->layout.tensor_count; t++) {
        const int gains = t == x->layout.tensor_count;
        const size_t at = gains ? x->layout.size : x->layout.tensors[t].offset,
                     count = gains ? size - at : x->layout.tensors[t].count;
        const char *tensor = gains ? "gains" : x->layout.tensors[t].name;
        const double far = off(own, cpu[0], at, count), theirs = off(cpu[1], cpu[0], at, count);
        if (getenv("ALL")) printf("  %-20s %.4f %.4f\n", tensor, far, theirs);
        if (far > worst) worst = far, where = tensor;
        reference = fmax(reference, theirs);
        need(far < 2 * theirs + 0.1, tensor); /* where two frames are nearly equal, another is the largest */
    }
    printf(
        "%s: loss %.5f, on the CPU %.5f (f32), %.5f (bf16); gradient off by at most %.4f (%s), bf16 on the CPU %.4f\n",
        name, first / BATCH, losses[0] / BATCH, losses[1] / BATCH, worst, where, reference);
    for (int i = 0; i < 2; i++) free(cpu[i]);
    free(own);
    free(again);
    end(&l);
}

static void take_steps(lesson *l, size_t first, size_t last)
{
    for (size_t i = first; i <= last; i++) {
        const sf_adam a = sf_adam_at(1e-3, 0.01, i);
        const sf_device_adam adam = {a.beta1, a.beta2, a.correct1, a.correct2, a.epsilon, a.rate, a.decay};
        learn(NULL, l, BATCH);
        need(table->convnet_step_update(l->step, &adam, &error) == SAFER_OK, error.message);
    }
}

/* A state that was read and written back goes on with the same bits, and answers as a net of its weights does. */
static void test_state(const fixture *x, const char *name)
{
    const size_t size = x->layout.trained, K = x->shape.classes;
    lesson l = begin(x);
    float *kept[6];
    for (int i = 0; i < 6; i++) kept[i] = sf_calloc(size, sizeof(float));
    take_steps(&l, 1, 3);
    need(table->convnet_step_read(kept[0], kept[1], kept[2], l.step, &error) == SAFER_OK, error.message);
    take_steps(&l, 4, 6);
    need(table->convnet_step_read(kept[3], kept[4], kept[5], l.step, &error) == SAFER_OK, error.message);
    need(memcmp(kept[0], kept[3], size * sizeof(float)) != 0, "steps change nothing");
    need(table->convnet_step_write(l.step, kept[0], kept[1], kept[2], &error) == SAFER_OK, error.message);
    take_steps(&l, 4, 6);
    need(table->convnet_step_read(kept[0], kept[1], kept[2], l.step, &error) == SAFER_OK, error.message);
    for (int i = 0; i < 3; i++)
        need(memcmp(kept[i], kept[i + 3], size * sizeof(float)) == 0, "a state that was written goes on otherwise");
    float there[BATCH * 8], here[BATCH * 8];
    double far = 0, spread = 0;
    sf_charcnn_scaling *scaling = NULL;
    fixture learned = *x;
    learned.parameters = sf_calloc(size, sizeof(float));
    need(sf_charcnn_scaling_new(&scaling, &x->layout, 0, &error) == SAFER_OK, error.message);
    sf_charcnn_scale(learned.parameters, scaling, kept[0]);
    net n = put(&learned);
    answer(here, &learned, n, l.codes, BATCH, BATCH, 0);
    need(table->convnet_step_answer(there, l.step, l.codes, BATCH, &error) == SAFER_OK, error.message);
    for (size_t i = 0; i < BATCH * K; i++) {
        far = fmax(far, fabs((double)there[i] - (double)here[i]));
        spread = fmax(spread, fabs((double)here[i]));
    }
    printf("%s: a state that was read and written goes on with the same bits; answers up to %.3f, off by %.4f\n", name,
           spread, far);
    need(far <= 0.02 * spread, "what is learned answers otherwise than its net");
    table->convnet_free(n.net);
    sf_charcnn_scaling_free(scaling);
    free(learned.parameters);
    for (int i = 0; i < 6; i++) free(kept[i]);
    end(&l);
}

/* The losses of a course with fresh texts in every step, as the trainer takes it: near those of the CPU. */
static void take_course(double *losses, const fixture *x, const sf_device_choice *choice, sf_dtype type, size_t steps)
{
    enum { TEXTS = 32 };
    const size_t L = x->shape.characters, size = x->layout.trained;
    const sf_charcnn_options options = {.type = type, .dropout = 0.1f, .clip = 1, .decay = 0.01, .seed = 1};
    sf_charcnn_learner *learner = NULL;
    const sf_charcnn_state own = {sf_alloc_aligned(size, sizeof(float)), sf_calloc(size, sizeof(float)),
                                  sf_calloc(size, sizeof(float))};
    memcpy(own.trained, x->parameters, size * sizeof(float));
    need(sf_charcnn_learner_new(&learner, choice, &x->layout, own.trained, &options, TEXTS, &error) == SAFER_OK,
         error.message);
    state = 7;
    for (size_t i = 0; i < steps; i++) {
        size_t *lengths;
        uint8_t *codes = make_texts(&lengths, TEXTS, L);
        int labels[TEXTS];
        for (size_t t = 0; t < TEXTS; t++) { /* the label is the half of the alphabet that is read: it can be learned */
            labels[t] = (int)(t % 2);
            for (size_t k = 0; k < lengths[t]; k++)
                if (codes[t * L + k]) codes[t * L + k] = (uint8_t)(codes[t * L + k] % 34 + 1 + (t % 2) * 34);
        }
        const sf_charcnn_batch batch = {codes, lengths, labels, TEXTS};
        losses[i] = 0;
        need(sf_charcnn_learner_step(&losses[i], learner, &batch, own, 2e-3, i + 1, &error) == SAFER_OK, error.message);
        losses[i] /= TEXTS;
        free(codes);
        free(lengths);
    }
    sf_charcnn_learner_free(learner);
    free(own.trained);
    free(own.means);
    free(own.variances);
}

static void test_curve(const fixture *x, const char *name, size_t steps)
{
    double f32[64], bf16[64], device[64], own = 0, far = 0;
    take_course(f32, x, &(sf_device_choice){0}, SF_F32, steps);
    take_course(bf16, x, &(sf_device_choice){0}, SF_BF16, steps);
    take_course(device, x, &(sf_device_choice){table, 0, 1}, SF_BF16, steps);
    printf("%s: loss of steps, GPU / bf16 / f32 on the CPU:", name);
    for (size_t i = 0; i < steps; i++) {
        if (i < 10) { /* later every rounding shows */
            own = fmax(own, fabs(bf16[i] - f32[i]));
            far = fmax(far, fabs(device[i] - f32[i]));
        }
        if (i == 0 || i == 1 || i == 3 || i == 7 || i + 1 == steps)
            printf(" %zu: %.4f / %.4f / %.4f%s", i + 1, device[i], bf16[i], f32[i], i + 1 == steps ? "\n" : ",");
    }
    printf("%s: in the first 10 off by at most %.4f, bf16 on the CPU %.4f\n", name, far, own);
    need(far < 3 * own + 0.02, "the loss takes another way than on the CPU");
    need(steps < 20 || device[steps - 1] < device[0], "the loss does not fall");
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

static void measure_training(const fixture *x, const char *name)
{
    enum { COUNT = 128 };
    size_t *lengths;
    uint8_t *codes = make_texts(&lengths, COUNT, x->shape.characters);
    float *masks = sf_alloc(2 * COUNT * x->shape.hidden, sizeof *masks);
    sf_device_convnet_step *step = put_step(x, COUNT, 0);
    const sf_device_adam adam = {0.9f, 0.999f, 0.1f, 0.001f, 1e-8f, 1e-5f, 1e-7f};
    double best = 1e9;
    int labels[COUNT];
    for (size_t i = 0; i < COUNT; i++) labels[i] = (int)(i % 2);
    for (size_t i = 0; i < 2 * COUNT * x->shape.hidden; i++) masks[i] = bits() % 2 ? 2 : 0;
    for (int i = 0; i < 12; i++) {
        double loss, start = sf_seconds();
        need(table->convnet_step_gradient(&loss, NULL, step, codes, COUNT, labels, masks, &error) == SAFER_OK,
             error.message);
        need(table->convnet_step_update(step, &adam, &error) == SAFER_OK, error.message);
        if (i) best = fmin(best, sf_seconds() - start);
    }
    printf("%s, training, batches of %d: %.2f ms (%.0f texts/s, %.0f TFLOP/s)\n", name, COUNT, 1e3 * best, COUNT / best,
           3 * COUNT * work_of(&x->layout) / best / 1e12);
    table->convnet_step_free(step);
    free(codes);
    free(lengths);
    free(masks);
}

int main(int argc, char **argv)
{
    need(argc > 1, "usage: test_convnet PLUGIN [--speed|--small]");
    const int speed = argc > 2 && strcmp(argv[2], "--speed") == 0, small = argc > 2 && strcmp(argv[2], "--small") == 0;
    open_plugin(argv[1]);
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
        test_gradient(&x, shapes[i].name);
        test_state(&x, shapes[i].name);
        if (i < 2) test_curve(&x, shapes[i].name, small ? 2 : 30);
        if (speed && i > 1) {
            measure(&x, shapes[i].name);
            measure_training(&x, shapes[i].name);
        }
        free(x.parameters);
    }
    puts("fine");
    return 0;
}
