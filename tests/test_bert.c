/* The BERT encoder and its training step: the forward pass against a naive one in double, gradients against finite
 * differences, and both against what another implementation wrote (tests/golden). */
#include "support.h"

#include "base/memory.h"
#include "base/rng.h"
#include "model/bert.h"
#include "nn/vector.h"
#include "train/bert_step.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { CLASSES = 3 };

static const sf_bert_shape tiny = {.vocabulary = 40,
                                   .positions = 24,
                                   .types = 2,
                                   .layers = 2,
                                   .hidden = 12,
                                   .heads = 3,
                                   .inner = 20,
                                   .classes = CLASSES,
                                   .activation = SF_GELU,
                                   .pool = SF_POOL_MEAN,
                                   .epsilon = 1e-5f,
                                   .tokens = 20};

/* Numbers between -1 and 1. */
static float noise(uint64_t i)
{
    return (float)sf_draw_below(sf_stream_of(7, 7, SF_STAGE_TRAINING), i, 0, 2000001) / 1e6f - 1;
}

static float *random_parameters(const sf_bert_layout *l, float size)
{
    float *p = sf_alloc_aligned(l->size, sizeof *p);
    for (size_t i = 0; i < l->size; i++) p[i] = size * noise(i);
    for (size_t t = 0; t < l->tensor_count; t++) /* norms near 1 */
        if (strstr(l->tensors[t].name, "LayerNorm.weight"))
            for (size_t i = 0; i < l->tensors[t].count; i++) p[l->tensors[t].offset + i] += 1;
    return p;
}

/* ------------------------------------------------ a plain reference, in doubles */

static void naive_linear(double *out, const double *x, const float *weight, const float *bias, size_t C, size_t OC)
{
    for (size_t o = 0; o < OC; o++) {
        out[o] = (double)bias[o];
        for (size_t c = 0; c < C; c++) out[o] += (double)weight[o * C + c] * x[c];
    }
}

static void naive_norm(double *x, const float *weight, const float *bias, double epsilon, size_t H)
{
    double mean = 0, variance = 0;
    for (size_t j = 0; j < H; j++) mean += x[j] / (double)H;
    for (size_t j = 0; j < H; j++) variance += (x[j] - mean) * (x[j] - mean) / (double)H;
    for (size_t j = 0; j < H; j++)
        x[j] = (x[j] - mean) / sqrt(variance + epsilon) * (double)weight[j] + (double)bias[j];
}

static double naive_activation(double x, sf_activation activation)
{
    if (activation == SF_GELU) return 0.5 * x * (1 + erf(x / sqrt(2)));
    if (activation == SF_GELU_TANH) return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    return x > 0 ? x : 0;
}

static void naive_logits(double *logits, const sf_bert_layout *l, const float *p, const uint32_t *ids, size_t T)
{
    const sf_bert_shape *s = &l->shape;
    size_t H = s->hidden, F = s->inner, d = H / s->heads;
    double *x = calloc(T * H, sizeof *x), *qkv = calloc(T * 3 * H, sizeof *qkv), *context = calloc(T * H, sizeof *x);
    double *scores = calloc(T, sizeof *scores), *inner = calloc(F, sizeof *inner), *y = calloc(H, sizeof *y);
    for (size_t i = 0; i < T; i++) {
        for (size_t j = 0; j < H; j++)
            x[i * H + j] = (double)p[l->words + ids[i] * H + j] + (double)p[l->positions + i * H + j] +
                           (s->types ? (double)p[l->types + j] : 0);
        naive_norm(x + i * H, p + l->norm_weight, p + l->norm_bias, (double)s->epsilon, H);
    }
    for (size_t layer = 0; layer < s->layers; layer++) {
        const sf_bert_layer *o = &l->layers[layer];
        for (size_t i = 0; i < T; i++)
            naive_linear(qkv + i * 3 * H, x + i * H, p + o->qkv_weight, p + o->qkv_bias, H, 3 * H);
        for (size_t h = 0; h < s->heads; h++)
            for (size_t i = 0; i < T; i++) {
                double sum = 0;
                for (size_t k = 0; k < T; k++) {
                    scores[k] = 0;
                    for (size_t j = 0; j < d; j++)
                        scores[k] += qkv[i * 3 * H + h * d + j] * qkv[k * 3 * H + H + h * d + j];
                    sum += scores[k] = exp(scores[k] / sqrt((double)d));
                }
                for (size_t j = 0; j < d; j++) {
                    context[i * H + h * d + j] = 0;
                    for (size_t k = 0; k < T; k++)
                        context[i * H + h * d + j] += scores[k] / sum * qkv[k * 3 * H + 2 * H + h * d + j];
                }
            }
        for (size_t i = 0; i < T; i++) {
            double *row = x + i * H;
            naive_linear(y, context + i * H, p + o->attention_weight, p + o->attention_bias, H, H);
            for (size_t j = 0; j < H; j++) row[j] += y[j];
            naive_norm(row, p + o->norm1_weight, p + o->norm1_bias, (double)s->epsilon, H);
            naive_linear(inner, row, p + o->inner_weight, p + o->inner_bias, H, F);
            for (size_t j = 0; j < F; j++) inner[j] = naive_activation(inner[j], s->activation);
            naive_linear(y, inner, p + o->outer_weight, p + o->outer_bias, F, H);
            for (size_t j = 0; j < H; j++) row[j] += y[j];
            naive_norm(row, p + o->norm2_weight, p + o->norm2_bias, (double)s->epsilon, H);
        }
    }
    memcpy(y, x, H * sizeof *y);
    if (s->pool == SF_POOL_MEAN)
        for (size_t j = 0; j < H; j++) {
            y[j] = 0;
            for (size_t i = 0; i < T; i++) y[j] += x[i * H + j] / (double)T;
        }
    if (s->pool == SF_POOL_POOLER) {
        naive_linear(context, y, p + l->pooler_weight, p + l->pooler_bias, H, H);
        for (size_t j = 0; j < H; j++) y[j] = s->pooler == SF_ENCODER_RELU ? fmax(0, context[j]) : tanh(context[j]);
    }
    naive_linear(logits, y, p + l->classifier_weight, p + l->classifier_bias, H, s->classes);
    free(x), free(qkv), free(context), free(scores), free(inner), free(y);
}

/* ------------------------------------------------------------------- batches */

typedef struct texts {
    uint32_t ids[200];
    size_t offsets[9];
    int labels[8];
    sf_bert_batch batch;
} texts;

/* `count` texts of different lengths, up to `longest` pieces. */
static void make_texts(texts *t, const sf_bert_shape *shape, size_t count, size_t longest)
{
    *t = (texts){.batch = {t->ids, t->offsets, count}};
    for (size_t i = 0; i < count; i++) {
        size_t length = 2 + (i * 7 + 3) % (longest - 1);
        t->offsets[i + 1] = t->offsets[i] + length;
        for (size_t k = 0; k < length; k++)
            t->ids[t->offsets[i] + k] = (uint32_t)((i * 31 + k * 17 + k * k) % shape->vocabulary);
        t->labels[i] = (int)(i % shape->classes);
    }
}

static void compare_forward(const sf_bert_shape *shape, sf_dtype type, double tolerance)
{
    sf_bert_layout l;
    sf_bert_net *net = NULL;
    sf_bert_scratch *scratch = NULL;
    texts t;
    float features[8 * 64], logits[8 * CLASSES], one[64];
    double expected[CLASSES];
    assert_int_equal(sf_bert_layout_make(&l, shape), 0);
    float *p = random_parameters(&l, 0.4f);
    make_texts(&t, shape, 8, shape->tokens);
    assert_int_equal(sf_bert_net_new(&net, &l, p, sf_arithmetic_fast(type), 1, NULL), SAFER_OK);
    assert_int_equal(sf_bert_scratch_new(&scratch, net, NULL), SAFER_OK);
    sf_bert_features(features, net, &t.batch, scratch);
    sf_bert_logits(logits, net, features, 8);
    for (size_t i = 0; i < 8; i++) {
        naive_logits(expected, &l, p, t.ids + t.offsets[i], t.offsets[i + 1] - t.offsets[i]);
        for (size_t c = 0; c < CLASSES; c++)
            if (!(fabs(expected[c] - (double)logits[i * CLASSES + c]) <= tolerance))
                fail_msg("text %zu, class %zu: %g instead of %g", i, c, (double)logits[i * CLASSES + c], expected[c]);
        /* Alone, the text gives the same bits. */
        size_t offsets[2] = {0, t.offsets[i + 1] - t.offsets[i]};
        sf_bert_batch alone = {t.ids + t.offsets[i], offsets, 1};
        sf_bert_features(one, net, &alone, scratch);
        assert_memory_equal(one, features + i * shape->hidden, shape->hidden * sizeof *one);
    }
    sf_bert_scratch_free(scratch);
    sf_bert_net_free(net);
    sf_bert_layout_free(&l);
    free(p);
}

static void forward_equals_the_reference(void **state)
{
    (void)state;
    for (int variant = 0; variant < 6; variant++) {
        sf_bert_shape shape = tiny;
        if (variant == 1) shape.pool = SF_POOL_CLS, shape.activation = SF_RELU;
        if (variant == 2) shape.pool = SF_POOL_POOLER, shape.activation = SF_GELU_TANH;
        if (variant == 3) shape.pool = SF_POOL_POOLER, shape.pooler = SF_ENCODER_RELU, shape.types = 0;
        if (variant == 4) shape.hidden = 32, shape.heads = 1, shape.inner = 33;
        if (variant == 5) shape.layers = 1, shape.hidden = 33, shape.heads = 11, shape.inner = 64;
        compare_forward(&shape, SF_F32, 2e-5);
        compare_forward(&shape, SF_BF16, 0.1);
    }
}

/* -------------------------------------------------------- a text and its batch */

static size_t next_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33);
}

enum { MANY = 60, LONGEST = 100, WIDEST = 128 };

typedef struct asking {
    const sf_bert_net *net;
    sf_bert_scratch *scratch[2];
    const uint32_t *ids;                    /* (MANY, LONGEST) */
    const size_t *lengths, *order, *starts; /* starts: of batches in the order */
    float *features;                        /* (MANY, hidden), in the order of the texts */
} asking;

static void ask_batches(void *context, size_t begin, size_t end, int worker)
{
    asking *q = context;
    const size_t H = q->net->layout->shape.hidden;
    for (size_t b = begin; b < end; b++) {
        static _Thread_local uint32_t ids[MANY * LONGEST];
        static _Thread_local float features[MANY * WIDEST];
        size_t offsets[MANY + 1] = {0}, count = q->starts[b + 1] - q->starts[b];
        for (size_t i = 0; i < count; i++) {
            const size_t text = q->order[q->starts[b] + i];
            memcpy(ids + offsets[i], q->ids + text * LONGEST, q->lengths[text] * sizeof *ids);
            offsets[i + 1] = offsets[i] + q->lengths[text];
        }
        sf_bert_features(features, q->net, &(sf_bert_batch){ids, offsets, count}, q->scratch[worker]);
        for (size_t i = 0; i < count; i++)
            memcpy(q->features + q->order[q->starts[b] + i] * H, features + i * H, H * sizeof *features);
    }
}

/* The answer of a text is a function of the text: the same bits alone, at any place of any batch, on any thread. With
 * weights so large, too, that attention takes its other way. */
static void compare_batches(size_t hidden, size_t heads, sf_dtype type, float size)
{
    static uint32_t ids[MANY * LONGEST];
    static float alone[MANY * WIDEST], together[MANY * WIDEST];
    size_t lengths[MANY], order[MANY], starts[MANY + 1];
    uint64_t state = hidden + heads;
    sf_bert_shape shape = tiny;
    sf_bert_layout l;
    sf_bert_net *net = NULL;
    shape.hidden = hidden, shape.heads = heads, shape.inner = 96, shape.tokens = shape.positions = LONGEST;
    assert_int_equal(sf_bert_layout_make(&l, &shape), 0);
    float *p = random_parameters(&l, size);
    assert_int_equal(sf_bert_net_new(&net, &l, p, sf_arithmetic_fast(type), 1, NULL), SAFER_OK);
    asking q = {.net = net, .ids = ids, .lengths = lengths, .order = order, .starts = starts, .features = alone};
    for (int i = 0; i < 2; i++) assert_int_equal(sf_bert_scratch_new(&q.scratch[i], net, NULL), SAFER_OK);
    for (size_t i = 0; i < MANY * LONGEST; i++) ids[i] = (uint32_t)(next_number(&state) % shape.vocabulary);
    for (size_t i = 0; i < MANY; i++) lengths[i] = 1 + next_number(&state) % LONGEST;
    for (size_t i = 0; i <= MANY; i++) starts[i] = i;
    for (size_t i = 0; i < MANY; i++) order[i] = i;
    sf_parallel(1, MANY, 1, ask_batches, &q);
    q.features = together;
    for (int round = 0; round < 4; round++) {
        size_t batches = 0;
        for (size_t i = MANY; i > 1; i--) {
            const size_t other = next_number(&state) % i, text = order[i - 1];
            order[i - 1] = order[other];
            order[other] = text;
        }
        for (size_t first = 0; first < MANY; first += 1 + next_number(&state) % (round ? MANY / 2 : MANY))
            starts[batches++] = first;
        starts[batches] = MANY;
        memset(together, 0, sizeof together);
        sf_parallel(1 + round % 2, batches, 1, ask_batches, &q);
        assert_memory_equal(together, alone, MANY * hidden * sizeof *alone);
    }
    for (int i = 0; i < 2; i++) sf_bert_scratch_free(q.scratch[i]);
    sf_bert_net_free(net);
    sf_bert_layout_free(&l);
    free(p);
}

static void batches_do_not_matter(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++)
        for (int type = 0; type < 2; type++) {
            compare_batches(64, 2, type ? SF_BF16 : SF_F32, large ? 4 : 0.4f);  /* heads of 32 */
            compare_batches(128, 2, type ? SF_BF16 : SF_F32, large ? 4 : 0.4f); /* of 64 */
            compare_batches(48, 2, type ? SF_BF16 : SF_F32, large ? 4 : 0.4f);  /* of 24 */
        }
}

/* ------------------------------------------------------------------ gradients */

static double loss_of(const sf_bert_layout *l, const float *p, const texts *t)
{
    double sum = 0, logits[CLASSES];
    for (size_t i = 0; i < t->batch.count; i++) {
        double total = 0;
        naive_logits(logits, l, p, t->ids + t->offsets[i], t->offsets[i + 1] - t->offsets[i]);
        for (size_t c = 0; c < CLASSES; c++) total += exp(logits[c]);
        sum += log(total) - logits[t->labels[i]];
    }
    return sum;
}

/* Against finite differences of the reference in doubles: a few elements of every tensor. */
static void gradients_equal_differences(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        sf_bert_shape shape = tiny;
        sf_bert_layout l;
        sf_bert_step *step = NULL;
        texts t;
        if (variant == 1) shape.pool = SF_POOL_CLS, shape.activation = SF_RELU;
        if (variant == 2) shape.pool = SF_POOL_POOLER, shape.activation = SF_GELU_TANH;
        if (variant == 3) shape.pool = SF_POOL_POOLER, shape.pooler = SF_ENCODER_RELU, shape.types = 0;
        sf_bert_options options = {.layers = SIZE_MAX, .type = SF_F32, .threads = 2, .seed = 1};
        assert_int_equal(sf_bert_layout_make(&l, &shape), 0);
        float *p = random_parameters(&l, 0.4f);
        make_texts(&t, &shape, 5, shape.tokens);
        assert_int_equal(sf_bert_step_new(&step, &l, p, &options, 5, 100, NULL), SAFER_OK);
        double loss = sf_bert_step_gradient(step, &t.batch, t.labels, 1), expected_loss = loss_of(&l, p, &t);
        assert_true(fabs(loss - expected_loss) < 1e-4 * expected_loss);
        const float *gradient = sf_bert_step_read(step);
        for (size_t k = 0; k < l.tensor_count; k++) {
            const sf_bert_tensor *tensor = &l.tensors[k];
            double worst = 0, largest = 0;
            for (size_t i = 0; i < tensor->count; i += 1 + tensor->count / 23) {
                size_t at = tensor->offset + i;
                float kept = p[at], up, down;
                double h = 1e-3;
                p[at] = up = kept + (float)h;
                double above = loss_of(&l, p, &t);
                p[at] = down = kept - (float)h;
                double below = loss_of(&l, p, &t);
                p[at] = kept;
                double slope = (above - below) / ((double)up - (double)down) / 5,
                       error = fabs(slope - (double)gradient[at]);
                worst = error > worst ? error : worst;
                largest = fabs(slope) > largest ? fabs(slope) : largest;
            }
            if (!(worst <= 1e-3 * largest + 2e-6))
                fail_msg("variant %d, %s: off by %g of %g", variant, tensor->name, worst, largest);
        }
        sf_bert_step_free(step);
        sf_bert_layout_free(&l);
        free(p);
    }
}

/* ------------------------------------------- TensorFlow.js (scripts/golden-bert) */

static size_t number(const json_t *object, const char *key)
{
    return (size_t)json_integer_value(json_object_get(object, key));
}

static double element(const json_t *list, size_t i) { return json_number_value(json_array_get(list, i)); }

static void another_implementation_agrees(void **state)
{
    (void)state;
    json_error_t problem;
    json_t *golden = json_load_file(SOURCE_DIR "/tests/golden/bert.json", 0, &problem),
           *s = json_object_get(golden, "shape");
    assert_non_null(golden);
    sf_bert_shape shape = {.vocabulary = number(s, "vocabulary"),
                           .positions = number(s, "positions"),
                           .types = number(s, "types"),
                           .layers = number(s, "layers"),
                           .hidden = number(s, "hidden"),
                           .heads = number(s, "heads"),
                           .inner = number(s, "inner"),
                           .classes = number(s, "classes"),
                           .activation = SF_GELU,
                           .pool = SF_POOL_POOLER,
                           .epsilon = (float)json_real_value(json_object_get(s, "epsilon")),
                           .tokens = number(s, "positions")};
    sf_bert_layout l;
    assert_int_equal(sf_bert_layout_make(&l, &shape), 0);
    const json_t *parameters = json_object_get(golden, "parameters"), *lists = json_object_get(golden, "texts");
    const json_t *slopes = json_object_get(golden, "gradient");
    assert_int_equal(json_array_size(parameters), l.size);
    assert_int_equal(json_array_size(slopes), l.size);
    float *p = sf_alloc_aligned(l.size, sizeof *p);
    for (size_t i = 0; i < l.size; i++) p[i] = (float)element(parameters, i);
    texts t = {.batch = {t.ids, t.offsets, json_array_size(lists)}};
    for (size_t i = 0; i < t.batch.count; i++) {
        const json_t *ids = json_array_get(lists, i);
        t.labels[i] = (int)element(json_object_get(golden, "labels"), i);
        t.offsets[i + 1] = t.offsets[i] + json_array_size(ids);
        for (size_t k = 0; k < json_array_size(ids); k++) t.ids[t.offsets[i] + k] = (uint32_t)element(ids, k);
    }
    sf_bert_options options = {.layers = SIZE_MAX, .type = SF_F32, .threads = 1, .seed = 1};
    sf_bert_step *step = NULL;
    sf_bert_scratch *scratch = NULL;
    assert_int_equal(sf_bert_step_new(&step, &l, p, &options, 8, 100, NULL), SAFER_OK);
    assert_int_equal(sf_bert_scratch_new(&scratch, sf_bert_step_net(step), NULL), SAFER_OK);
    float features[8 * 64], logits[8 * CLASSES];
    sf_bert_features(features, sf_bert_step_net(step), &t.batch, scratch);
    sf_bert_logits(logits, sf_bert_step_net(step), features, t.batch.count);
    for (size_t i = 0; i < t.batch.count; i++)
        for (size_t c = 0; c < shape.classes; c++)
            assert_true(fabs((double)logits[i * shape.classes + c] -
                             element(json_array_get(json_object_get(golden, "logits"), i), c)) < 1e-5);
    double loss = sf_bert_step_gradient(step, &t.batch, t.labels, 1) / (double)t.batch.count;
    assert_true(fabs(loss - json_real_value(json_object_get(golden, "loss"))) < 1e-5);
    const float *gradient = sf_bert_step_read(step);
    for (size_t k = 0; k < l.tensor_count; k++) {
        double off = 0, size = 0;
        for (size_t i = l.tensors[k].offset; i < l.tensors[k].offset + l.tensors[k].count; i++) {
            off += pow((double)gradient[i] - element(slopes, i), 2);
            size += pow(element(slopes, i), 2);
        }
        if (!(sqrt(off) <= 1e-4 * sqrt(size) + 1e-7))
            fail_msg("%s: the gradient is off by %g of %g", l.tensors[k].name, sqrt(off), sqrt(size));
    }
    sf_bert_scratch_free(scratch);
    sf_bert_step_free(step);
    sf_bert_layout_free(&l);
    free(p);
    json_decref(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_equals_the_reference),
        cmocka_unit_test(batches_do_not_matter),
        cmocka_unit_test(gradients_equal_differences),
        cmocka_unit_test(another_implementation_agrees),
    };
    return cmocka_run_group_tests_name("bert", tests, NULL, NULL);
}
