/* Encoders of every form, for the tests on a GPU: settings of one shape, and random weights that use all of them. */
#ifndef TESTS_GPU_ARCHITECTURES_H
#define TESTS_GPU_ARCHITECTURES_H

#include "model/bert.h"

#include <math.h>
#include <string.h>

#include "plugin.h"

typedef struct architecture {
    const char *name;
    sf_encoder_form form;
    sf_activation activation;
    sf_encoder_activation pooler;
    int types, other; /* other: a variation, which is not measured */
    double most;      /* of the time of BERT for the same work */
} architecture;

#define PARTS .relative = SF_RELATIVE_PARTS, .place_keys = 1, .place_queries = 1
#define MODERN \
    .placeless = 1, .prenorm = 1, .gated = 1, .attention_plain = 1, .inner_plain = 1, .norm_plain = 1, \
    .theta = 160000, .local_theta = 10000, .window = 64, .dense_plain = 1, .dense_norm = 1

/* No pooler here has ReLU, whose gradient jumps where a unit is near 0: one of 768 did so, and the gradient of words
 * was off by 0.06. test_kernels.cu has ReLU. */
static const architecture architectures[] = {
    {"bert", {0}, SF_GELU, SF_ENCODER_TANH, 2, 0, 1},
    {"roberta", {.padded = 1, .pad = 1}, SF_GELU, SF_ENCODER_TANH, 1, 0, 1.15},
    {"electra", {.width = 64}, SF_GELU, SF_ENCODER_GELU, 2, 0, 1.15},
    {"albert", {.width = 64, .shared = 1}, SF_GELU_TANH, SF_ENCODER_TANH, 2, 0, 1.15},
    {"mpnet",
     {.padded = 1, .pad = 1, .relative = SF_RELATIVE_BIAS, .buckets = 32},
     SF_GELU,
     SF_ENCODER_TANH,
     0,
     0,
     1.15},
    {"deberta-v3",
     {PARTS, .placeless = 1, .buckets = 256, .span = 512, .places_shared = 1, .places_normed = 1},
     SF_GELU,
     SF_ENCODER_GELU,
     0,
     0,
     2},
    {"modernbert", {MODERN}, SF_GELU, SF_ENCODER_GELU, 0, 0, 1.15},
    {"deberta-v2", {PARTS, .span = 150}, SF_GELU, SF_ENCODER_GELU, 2, 1, 2},
    {"deberta, projected, c2p",
     {.relative = SF_RELATIVE_PARTS, .place_keys = 1, .width = 64, .projected_first = 1, .buckets = 32, .span = 512},
     SF_GELU,
     SF_ENCODER_GELU,
     0,
     1,
     2},
    {"modernbert, mean, silu", {MODERN, .dense_mean = 1}, SF_SILU, SF_ENCODER_SILU, 0, 1, 1.15},
    {"biases before norms",
     {.prenorm = 1, .theta = 1000, .local_theta = 100, .window = 20},
     SF_GELU_TANH,
     SF_ENCODER_TANH,
     2,
     1,
     1.15},
    {"gates after norms", {.gated = 1}, SF_GELU_TANH, SF_ENCODER_TANH, 2, 1, 1.15},
    {"silu", {0}, SF_SILU, SF_ENCODER_GELU_TANH, 2, 1, 1.15},
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

/* A small one, with heads of `size` numbers. */
static inline sf_bert_shape architecture_small(const architecture *a, size_t size, size_t tokens)
{
    sf_bert_shape s = {.vocabulary = 900,
                       .positions = tokens + (a->form.padded ? a->form.pad + 1 : 0),
                       .types = (size_t)a->types,
                       .layers = 4,
                       .hidden = 192,
                       .heads = 192 / size,
                       .inner = a->form.gated ? 256 : 384,
                       .classes = 3,
                       .activation = a->activation,
                       .pool = SF_POOL_POOLER,
                       .pooler = a->pooler,
                       .epsilon = 1e-6f,
                       .tokens = tokens,
                       .form = a->form};
    for (size_t i = 0; s.form.window && i < s.layers; i++) s.form.local[i] = i % 3 != 0;
    return s;
}

/* One of the size of BERT-base, and about of its work. */
static inline sf_bert_shape architecture_base(const architecture *a)
{
    sf_bert_shape s = architecture_small(a, 64, 512);
    s.vocabulary = 8000, s.layers = 12, s.hidden = 768, s.heads = 12, s.inner = a->form.gated ? 2048 : 3072;
    if (a->form.width) s.form.width = 128;
    for (size_t i = 0; s.form.window && i < s.layers; i++) s.form.local[i] = i % 3 != 0;
    return s;
}

/* Multiplications and additions of one text's forward pass; DeBERTa's further products of attention are not counted. */
static inline double architecture_work(const sf_bert_shape *s, size_t T)
{
    const double H = (double)s->hidden, F = (double)s->inner, pieces = (double)T;
    double work = 2 * pieces * H * (double)s->form.width;
    for (size_t i = 0; i < s->layers; i++) {
        double seen = 0;
        for (size_t q = 0; q < T; q++) {
            const size_t w = s->form.local[i] ? s->form.window : T, low = q > w ? q - w : 0;
            seen += (double)((q + w + 1 < T ? q + w + 1 : T) - low);
        }
        work += 2 * pieces * (4 * H * H + (s->form.gated ? 3 : 2) * H * F) + 4 * seen * H;
    }
    return work;
}

/* Weights such that activations stay about 1 and attention is neither even nor on one key alone. */
static inline void random_weights(float *parameters, const sf_bert_layout *layout)
{
    for (size_t t = 0; t < layout->tensor_count; t++) {
        const sf_bert_tensor *tensor = &layout->tensors[t];
        const char *name = tensor->name;
        const int norm = strstr(name, "orm.weight") != NULL, embeds = strstr(name, "_embeddings.") != NULL;
        float scale = tensor->rank == 2 && !embeds ? 1.7f / sqrtf((float)tensor->shape[1]) : 0.2f;
        if (strstr(name, "rel_embeddings") || strstr(name, "relative_attention_bias")) scale = 1;
        for (size_t i = 0; i < tensor->count; i++)
            parameters[tensor->offset + i] = norm ? 1 + 0.2f * noise() : scale * noise();
    }
}

/* Bytes of the device that are taken. */
static inline double memory_taken(void)
{
    sf_device_info info;
    need(table->describe(&info, 0, &error) == SAFER_OK, error.message);
    return (double)info.memory - (double)info.free_memory;
}

#endif
