/* A step of training on a GPU against the same one on the CPU. With --speed: how fast; with --small: little work, for
 * compute-sanitizer. With --forms encoders that are not BERT's (--forms --small, --forms --speed [NAME]). */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/progress.h"
#include "nn/layers.h"
#include "train/bert_learner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "architectures.h"

typedef struct fixture {
    sf_bert_layout layout;
    float *parameters;
    sf_encoder encoder;
    uint8_t *decays;
    sf_device_step *step;
    uint32_t *ids;
    size_t offsets[1025], count;
    int labels[1024];
} fixture;

static void make(fixture *x, const sf_bert_shape *shape, size_t count, size_t least)
{
    *x = (fixture){.count = count};
    need(sf_bert_layout_make(&x->layout, shape) == 0, "out of memory");
    x->parameters = sf_alloc_aligned(x->layout.size, sizeof *x->parameters);
    x->decays = sf_calloc(x->layout.size, 1);
    random_weights(x->parameters, &x->layout);
    for (size_t t = 0; t < x->layout.tensor_count; t++)
        memset(x->decays + x->layout.tensors[t].offset, x->layout.tensors[t].rank == 2, x->layout.tensors[t].count);
    need(sf_bert_encoder(&x->encoder, &x->layout, x->parameters) == 0, "out of memory");
    x->ids = sf_alloc(count * shape->tokens, sizeof *x->ids);
    for (size_t i = 0; i < count; i++) {
        x->offsets[i + 1] = x->offsets[i] + least + bits() % (shape->tokens - least + 1);
        x->labels[i] = (int)(bits() % shape->classes);
        for (size_t k = x->offsets[i]; k < x->offsets[i + 1]; k++) x->ids[k] = bits() % (uint32_t)shape->vocabulary;
    }
    sf_device_training how = {.encoder = &x->encoder,
                              .parameters = x->parameters,
                              .size = x->layout.size,
                              .embeddings = 1,
                              .decays = x->decays,
                              .texts = count,
                              .rows = count * shape->tokens,
                              .clip = 1};
    need(table->step_new(&x->step, 0, &how, &error) == SAFER_OK, error.message);
}

static void drop(fixture *x)
{
    table->step_free(x->step);
    free((void *)x->encoder.layer);
    free(x->parameters);
    free(x->decays);
    free(x->ids);
    sf_bert_layout_free(&x->layout);
}

/* How far a tensor's gradient is from another. */
typedef struct distance {
    double own; /* of its own length */
    double all; /* of the longest of the same product's: queries, keys and values are one */
} distance;

static double length_of(const float *a, const float *b, const sf_bert_tensor *t)
{
    double sum = 0;
    for (size_t i = t->offset; i < t->offset + t->count; i++) sum += pow((double)a[i] - (b ? (double)b[i] : 0), 2);
    return sqrt(sum);
}

/* What two names of a layer's attention have in common, "...self." and "weight" or "bias". */
static int beside(const char *a, const char *b)
{
    const char *end = strstr(a, ".self."), *kind = strrchr(a, '.');
    return end && strncmp(a, b, (size_t)(end - a) + 6) == 0 && strcmp(kind, strrchr(b, '.')) == 0;
}

/* The gradient of a row's scores sums to 0, whatever its terms are: queries and keys get what is left of terms as large
 * as those of values, and the roundings of these. In the last layer of a model that reads the first vector only one
 * query has a gradient, and a tenth of its length may be such roundings; so it is measured by the longest of the three.
 */
static distance far_from(const float *found, const float *expected, const sf_bert_layout *l, size_t t)
{
    const sf_bert_tensor *tensor = &l->tensors[t];
    const double far = length_of(found, expected, tensor), own = length_of(expected, NULL, tensor);
    double most = own;
    for (size_t i = 0; i < l->tensor_count; i++)
        if (beside(tensor->name, l->tensors[i].name)) most = fmax(most, length_of(expected, NULL, &l->tensors[i]));
    return (distance){own > 0 ? far / own : 0, most > 0 ? far / most : 0};
}

static void test_gradient(fixture *x, const char *name)
{
    const size_t size = x->layout.size;
    double loss[4];
    float *gradient[3];
    for (int i = 0; i < 3; i++) gradient[i] = sf_calloc(size, sizeof(float));
    float *own = gradient[0], *again = sf_calloc(size, sizeof(float));
    need(table->step_gradient(&loss[0], own, x->step, x->ids, x->offsets, x->count, x->labels, NULL, &error) ==
             SAFER_OK,
         error.message);
    need(table->step_gradient(&loss[3], again, x->step, x->ids, x->offsets, x->count, x->labels, NULL, &error) ==
             SAFER_OK,
         error.message);
    need(memcmp(own, again, size * sizeof *own) == 0 && memcmp(&loss[0], &loss[3], sizeof(double)) == 0,
         "the same step gives other bits");
    float *moments = sf_calloc(2 * size, sizeof *moments);
    for (int i = 1; i < 3; i++) {
        sf_bert_step *step = NULL;
        sf_bert_options options = {
            .layers = SIZE_MAX, .decay = 0.01, .clip = 1, .type = i == 1 ? SF_F32 : SF_BF16, .threads = 0, .seed = 1};
        need(sf_bert_step_new(&step, &x->layout, x->parameters, &options, x->count, x->offsets[x->count], &error) ==
                 SAFER_OK,
             error.message);
        sf_bert_batch batch = {x->ids, x->offsets, x->count};
        loss[i] = sf_bert_step_gradient(step, &batch, x->labels, 1);
        memcpy(gradient[i], sf_bert_step_read(step), size * sizeof(float));
        sf_bert_step_free(step);
    }
    double worst = 0, reference = 0, alone = 0;
    const char *where = "", *which = "";
    for (size_t t = 0; t < x->layout.tensor_count; t++) {
        const char *tensor = x->layout.tensors[t].name;
        const distance far = far_from(own, gradient[1], &x->layout, t),
                       cpu = far_from(gradient[2], gradient[1], &x->layout, t);
        if (getenv("ALL")) printf("  %-60s %.4f %.4f, CPU %.4f %.4f\n", tensor, far.own, far.all, cpu.own, cpu.all);
        if (far.all > worst) worst = far.all, where = tensor;
        reference = fmax(reference, cpu.all);
        if (strstr(tensor, "key.bias")) continue; /* 0 but for rounding, or nearly so */
        if (far.own > alone) alone = far.own, which = tensor;
    }
    printf("%s: loss %.5f, CPU %.5f (f32), %.5f (bf16); gradient off by %.4f (%s), bf16 on the CPU %.4f (%016llx); "
           "of its own length by %.4f (%s)\n",
           name, loss[0] / (double)x->count, loss[1] / (double)x->count, loss[2] / (double)x->count, worst, where,
           reference, bits_of(own, size * sizeof *own), alone, which);
    expect(worst < 3 * reference + 0.03, name, "too far from the CPU's");
    expect(alone < 0.3, name, "another gradient than the CPU's"); /* a part that is missing or turned is half of it */
    for (int i = 0; i < 3; i++) free(gradient[i]);
    free(again);
    free(moments);
}

/* The loss falls on one batch, as it does on the CPU. */
static void test_course(fixture *x, const char *name, size_t steps)
{
    double first = 0, last = 0;
    for (size_t i = 1; i <= steps; i++) {
        double loss;
        const sf_adam a = sf_adam_at(1e-4, 0.01, i);
        const sf_device_adam adam = {a.beta1, a.beta2, a.correct1, a.correct2, a.epsilon, a.rate, a.decay};
        need(table->step_gradient(&loss, NULL, x->step, x->ids, x->offsets, x->count, x->labels, NULL, &error) ==
                 SAFER_OK,
             error.message);
        need(table->step_update(x->step, &adam, &error) == SAFER_OK, error.message);
        if (i == 1) first = loss / (double)x->count;
        last = loss / (double)x->count;
    }
    printf("%s: loss %.4f, after %zu steps %.4f\n", name, first, steps, last);
    expect(last < 0.7 * first, name, "the loss does not fall");
}

static void take_steps(fixture *x, size_t first, size_t last)
{
    for (size_t i = first; i <= last; i++) {
        double loss;
        const sf_adam a = sf_adam_at(1e-4, 0.01, i);
        const sf_device_adam adam = {a.beta1, a.beta2, a.correct1, a.correct2, a.epsilon, a.rate, a.decay};
        need(table->step_gradient(&loss, NULL, x->step, x->ids, x->offsets, x->count, x->labels, NULL, &error) ==
                 SAFER_OK,
             error.message);
        need(table->step_update(x->step, &adam, &error) == SAFER_OK, error.message);
    }
}

/* A state that was read and written back goes on with the same bits. */
static void test_state(fixture *x, const char *name)
{
    const size_t size = x->layout.size;
    float *kept[6];
    for (int i = 0; i < 6; i++) kept[i] = sf_calloc(size, sizeof(float));
    take_steps(x, 1, 4);
    need(table->step_read(kept[0], kept[1], kept[2], x->step, &error) == SAFER_OK, error.message);
    take_steps(x, 5, 8);
    need(table->step_read(kept[3], kept[4], kept[5], x->step, &error) == SAFER_OK, error.message);
    need(memcmp(kept[0], kept[3], size * sizeof(float)) != 0, "steps change nothing");
    need(table->step_write(x->step, kept[0], kept[1], kept[2], &error) == SAFER_OK, error.message);
    take_steps(x, 5, 8);
    need(table->step_read(kept[0], kept[1], kept[2], x->step, &error) == SAFER_OK, error.message);
    for (int i = 0; i < 3; i++)
        need(memcmp(kept[i], kept[i + 3], size * sizeof(float)) == 0, "a state that was written goes on otherwise");
    for (int i = 0; i < 6; i++) free(kept[i]);
    printf("%s: a state that was read and written goes on with the same bits\n", name);
}

/* The losses of a course with fresh texts in every step, as the trainer takes it: near those of the CPU. */
static void take_course(double *losses, fixture *x, const sf_device_choice *choice, sf_dtype type, size_t steps)
{
    const sf_bert_shape *shape = &x->layout.shape;
    const sf_bert_options options = {
        .layers = SIZE_MAX, .decay = 0.01, .clip = 1, .dropout = 0.1f, .type = type, .threads = 0, .seed = 1};
    sf_bert_learner *learner = NULL;
    float *parameters = sf_alloc_aligned(x->layout.size, sizeof *parameters);
    sf_bert_moments moments = {sf_calloc(x->layout.size, sizeof(float)), sf_calloc(x->layout.size, sizeof(float))};
    memcpy(parameters, x->parameters, x->layout.size * sizeof *parameters);
    need(sf_bert_learner_new(&learner, choice, &x->layout, parameters, &options, x->count, &error) == SAFER_OK,
         error.message);
    state = 7;
    for (size_t i = 0; i < steps; i++) {
        for (size_t t = 0; t < x->count; t++) { /* the label is that of most pieces: it can be learned */
            for (size_t k = x->offsets[t]; k < x->offsets[t + 1]; k++)
                x->ids[k] = bits() % (uint32_t)shape->vocabulary / 2 * 2 + (bits() % 4 < (t % 2 ? 3 : 1));
            x->labels[t] = (int)(t % 2);
        }
        const sf_bert_batch batch = {x->ids, x->offsets, x->count};
        losses[i] = 0;
        need(sf_bert_learner_step(&losses[i], learner, &batch, x->labels, moments, 2e-4, i + 1, &error) == SAFER_OK,
             error.message);
        losses[i] /= (double)x->count;
    }
    sf_bert_learner_free(learner);
    free(parameters);
    free(moments.means);
    free(moments.variances);
}

static void test_curve(fixture *x, const char *name, size_t steps)
{
    double f32[64], bf16[64], device[64], own = 0, far = 0;
    take_course(f32, x, &(sf_device_choice){0}, SF_F32, steps);
    take_course(bf16, x, &(sf_device_choice){0}, SF_BF16, steps);
    take_course(device, x, &(sf_device_choice){table, 0, 1}, SF_BF16, steps);
    printf("%s: loss of steps, GPU / bf16 / f32 on the CPU:", name);
    for (size_t i = 0; i < steps; i++) {
        if (i < 15) { /* later every rounding shows */
            own = fmax(own, fabs(bf16[i] - f32[i]));
            far = fmax(far, fabs(device[i] - f32[i]));
        }
        if (i == 0 || i == 1 || i == 3 || i == 7 || (i + 1) % 15 == 0)
            printf(" %zu: %.4f / %.4f / %.4f%s", i + 1, device[i], bf16[i], f32[i], i + 1 == steps ? "\n" : ",");
    }
    printf("%s: in the first 15 off by at most %.4f, bf16 on the CPU %.4f\n", name, far, own);
    expect(far < 3 * own + 0.02, name, "the loss takes another way than on the CPU");
}

static void measure(const sf_bert_shape *shape, const char *name)
{
    fixture x;
    make(&x, shape, 128, shape->tokens);
    const sf_device_adam adam = {0.9f, 0.999f, 0.1f, 0.001f, 1e-8f, 1e-5f, 1e-7f};
    double best = 1e9, update = 1e9;
    for (int i = 0; i < 12; i++) {
        double loss, start = sf_seconds();
        need(table->step_gradient(&loss, NULL, x.step, x.ids, x.offsets, x.count, x.labels, NULL, &error) == SAFER_OK,
             error.message);
        const double middle = sf_seconds();
        need(table->step_update(x.step, &adam, &error) == SAFER_OK, error.message);
        float *p = x.parameters;
        if (i == 0) need(table->step_read(p, NULL, NULL, x.step, &error) == SAFER_OK, error.message);
        update = fmin(update, sf_seconds() - middle);
        best = fmin(best, middle - start);
    }
    const double H = (double)shape->hidden, F = (double)shape->inner, T = (double)shape->tokens;
    const double work = 3 * 128 * (double)shape->layers * T * (2 * H * (4 * H + 2 * F) + 4 * T * H);
    printf("%s: gradient %.2f ms (%.0f texts/s, %.0f TFLOP/s; the update of the step before in it)\n", name, 1e3 * best,
           128 / best, work / best / 1e12);
    drop(&x);
}

/* --------------------------------------------------------------------- forms */

static void test_forms(int small)
{
    for (int i = 0; i < ARCHITECTURES; i++)
        for (size_t size = 64; size >= 32; size /= 2) {
            const sf_bert_shape shape = architecture_small(&architectures[i], size, small ? 100 : 300);
            fixture x;
            char name[80];
            if (small && size == 32) continue;
            snprintf(name, sizeof name, "%s, heads of %zu", architectures[i].name, size);
            make(&x, &shape, small ? 4 : 16, 3);
            test_gradient(&x, name);
            if (!small && size == 64) test_course(&x, name, 60);
            if (size == 64) test_state(&x, name);
            drop(&x);
        }
}

/* All that are measured, or BERT and the one of this name alone. */
static void measure_forms(const char *name)
{
    enum { TEXTS = 128, T = 256 };
    double bert = 0;
    for (int i = 0; i < ARCHITECTURES; i++) {
        const architecture *a = &architectures[i];
        sf_bert_shape shape = architecture_base(a);
        fixture x;
        const sf_device_adam adam = {0.9f, 0.999f, 0.1f, 0.001f, 1e-8f, 1e-5f, 1e-7f};
        double best = 1e9;
        if (a->other || (name && i > 0 && strcmp(a->name, name) != 0)) continue;
        shape.tokens = T;
        const double before = memory_taken();
        make(&x, &shape, TEXTS, T);
        const double taken = memory_taken() - before;
        for (int turn = 0; turn < 8; turn++) {
            double loss, start = sf_seconds();
            need(table->step_gradient(&loss, NULL, x.step, x.ids, x.offsets, x.count, x.labels, NULL, &error) ==
                     SAFER_OK,
                 error.message);
            best = fmin(best, sf_seconds() - start);
            need(table->step_update(x.step, &adam, &error) == SAFER_OK, error.message);
        }
        const double each = best / TEXTS / architecture_work(&shape, T);
        if (i == 0) bert = each;
        printf(
            "%-12s training %d texts of %d: %.2f ms, %.0f texts/s, %.0f TFLOP/s, %.2f of BERT's time; memory %.2f GB\n",
            a->name, TEXTS, T, 1e3 * best, TEXTS / best, 3 / each / 1e12, each / bert, taken / 1e9);
        expect(each <= a->most * bert, a->name, "slower than it may be");
        drop(&x);
    }
}

int main(int argc, char **argv)
{
    need(argc > 1, "usage: test_training PLUGIN [--speed|--small|--forms [--small|--speed [NAME]]]");
    const int speed = argc > 2 && strcmp(argv[2], "--speed") == 0, small = argc > 2 && strcmp(argv[2], "--small") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_plugin(argv[1]);
    if (argc > 2 && strcmp(argv[2], "--forms") == 0) {
        if (argc > 3 && strcmp(argv[3], "--speed") == 0)
            measure_forms(argc > 4 ? argv[4] : NULL);
        else
            test_forms(argc > 3);
        return finish();
    }
    static const struct {
        const char *name;
        sf_bert_shape shape;
    } shapes[] = {
        {"heads of 32",
         {.vocabulary = 900,
          .positions = 200,
          .types = 2,
          .layers = 3,
          .hidden = 96,
          .heads = 3,
          .inner = 384,
          .classes = 2,
          .activation = SF_GELU,
          .pool = SF_POOL_POOLER,
          .epsilon = 1e-12f,
          .tokens = 150}},
        {"heads of 64",
         {.vocabulary = 900,
          .positions = 200,
          .types = 2,
          .layers = 2,
          .hidden = 256,
          .heads = 4,
          .inner = 512,
          .classes = 4,
          .activation = SF_GELU,
          .pool = SF_POOL_MEAN,
          .epsilon = 1e-12f,
          .tokens = 200}},
        {"rows of 1,600",
         {.vocabulary = 900,
          .positions = 60,
          .types = 2,
          .layers = 1,
          .hidden = 1600,
          .heads = 25,
          .inner = 1600,
          .classes = 2,
          .activation = SF_GELU,
          .pool = SF_POOL_MEAN,
          .epsilon = 1e-12f,
          .tokens = 40}},
        {"relu",
         {.vocabulary = 900,
          .positions = 200,
          .types = 0,
          .layers = 2,
          .hidden = 64,
          .heads = 2,
          .inner = 128,
          .classes = 3,
          .activation = SF_RELU,
          .pool = SF_POOL_CLS,
          .epsilon = 1e-12f,
          .tokens = 70}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        fixture x;
        make(&x, &shapes[i].shape, 16, 3);
        test_gradient(&x, shapes[i].name);
        if (!small) test_course(&x, shapes[i].name, 100);
        test_state(&x, shapes[i].name);
        test_curve(&x, shapes[i].name, small ? 2 : 30);
        drop(&x);
    }
    if (!small) {
        static const sf_bert_shape gte = {.vocabulary = 3000,
                                          .positions = 512,
                                          .types = 2,
                                          .layers = 12,
                                          .hidden = 384,
                                          .heads = 12,
                                          .inner = 1536,
                                          .classes = 2,
                                          .activation = SF_GELU,
                                          .pool = SF_POOL_MEAN,
                                          .epsilon = 1e-12f,
                                          .tokens = 128};
        fixture x;
        make(&x, &gte, 16, 3);
        test_curve(&x, "gte-small's shape", 30);
        drop(&x);
    }
    if (speed) {
        static const sf_bert_shape gte = {.vocabulary = 30522,
                                          .positions = 512,
                                          .types = 2,
                                          .layers = 12,
                                          .hidden = 384,
                                          .heads = 12,
                                          .inner = 1536,
                                          .classes = 2,
                                          .activation = SF_GELU,
                                          .pool = SF_POOL_CLS,
                                          .epsilon = 1e-12f,
                                          .tokens = 256},
                                   base = {.vocabulary = 30522,
                                           .positions = 512,
                                           .types = 2,
                                           .layers = 12,
                                           .hidden = 768,
                                           .heads = 12,
                                           .inner = 3072,
                                           .classes = 2,
                                           .activation = SF_GELU,
                                           .pool = SF_POOL_CLS,
                                           .epsilon = 1e-12f,
                                           .tokens = 256};
        measure(&gte, "gte-small's shape, 128 texts of 256");
        measure(&base, "BERT-base's shape, 128 texts of 256");
    }
    return finish();
}
