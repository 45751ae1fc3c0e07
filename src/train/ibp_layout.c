/* The networks that are trained by their bounds: where their parameters lie, how they begin,
 * and how they become ordinary models. */
#include "train/ibp_step.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/layers.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static size_t place(sf_ibp_layout *l, size_t count)
{
    size_t at = l->size;
    l->size += count;
    return at;
}

void sf_ibp_layout_make(sf_ibp_layout *out, const sf_ibp_shape *s)
{
    sf_ibp_layout l = {.shape = *s};
    size_t word = s->wordwise ? s->inner : s->dim; /* numbers of a word that reach the text */
    l.linear = !s->convolution && !s->hidden;
    l.pooled_hidden = !s->convolution && !s->wordwise && !l.linear;
    l.features = s->convolution ? s->filters : l.pooled_hidden ? s->hidden : word;
    l.row = s->width * l.features;
    l.embedding = place(&l, s->vocabulary * s->dim);
    if (s->wordwise) {
        l.word_weight = place(&l, s->inner * s->dim);
        l.word_bias = place(&l, s->inner);
    }
    if (s->convolution) {
        l.conv_weight = place(&l, l.row * word);
        l.conv_bias = place(&l, s->filters);
    }
    l.hidden_weight = place(&l, s->hidden * (l.pooled_hidden ? s->dim : l.features));
    l.hidden_bias = place(&l, s->hidden);
    l.output_weight = place(&l, s->classes * s->hidden);
    l.output_bias = place(&l, l.linear ? s->dim : s->classes);
    l.hull = s->wordwise ? s->inner : l.row;
    l.first = s->wordwise ? l.word_weight : s->convolution ? l.conv_weight : l.hidden_weight;
    *out = l;
}

/* ------------------------------------------------------------ first weights */

/* What random numbers other than draws and dropout are for, as in train/cnn_train.c. */
enum { PURPOSE_WEIGHTS = 2 };

static void random_fill(float *out, size_t count, size_t inputs, uint64_t seed, uint64_t tensor)
{
    sf_stream stream = sf_stream_of(seed, PURPOSE_WEIGHTS, SF_STAGE_TRAINING);
    double range = 1 / sqrt((double)inputs);
    for (size_t i = 0; i < count; i++) out[i] = (float)(range * (2 * sf_draw_unit(stream, tensor << 48 | i, 0) - 1));
}

void sf_ibp_first_weights(float *parameters, const sf_ibp_layout *l, uint64_t seed)
{
    const sf_ibp_shape *s = &l->shape;
    size_t word = s->wordwise ? s->inner : s->dim, inputs = l->pooled_hidden ? s->dim : l->features,
           base = s->vocabulary * s->dim;
    memset(parameters + base, 0, (l->size - base) * sizeof *parameters);
    if (l->linear) return;
    if (s->wordwise) random_fill(parameters + l->word_weight, s->inner * s->dim, s->dim, seed, 1);
    if (s->convolution) random_fill(parameters + l->conv_weight, l->row * word, s->width * word, seed, 2);
    random_fill(parameters + l->hidden_weight, s->hidden * inputs, inputs, seed, 3);
    random_fill(parameters + l->output_weight, s->classes * s->hidden, s->hidden, seed, 4);
}

/* ------------------------------------------------------------------- folding */

void sf_ibp_fold_layout(sf_cnn_layout *out, const sf_ibp_layout *l)
{
    const sf_ibp_shape *s = &l->shape;
    sf_cnn_shape shape = {.convolution = s->convolution,
                          .max_pool = s->max_pool,
                          .vocabulary = s->vocabulary,
                          .hidden = s->hidden,
                          .classes = s->classes,
                          .max_words = s->max_words,
                          .width_count = 1,
                          .widths = {s->width}};
    shape.dim = s->wordwise ? s->inner : s->convolution || l->linear ? s->dim : s->hidden;
    shape.filters = s->convolution ? s->filters : shape.dim;
    sf_cnn_layout_make(out, &shape);
}

typedef struct folding {
    float *out;
    const sf_ibp_layout *layout;
    const float *parameters;
} folding;

static void fold_words(void *context, size_t begin, size_t end, int worker)
{
    const folding *job = context;
    const sf_ibp_layout *l = job->layout;
    size_t D = l->shape.dim, Q = l->hull;
    (void)worker;
    for (size_t w = begin; w < end; w++) {
        float *out = job->out + w * Q;
        const float *vector = job->parameters + l->embedding + w * D;
        if (l->shape.wordwise) {
            sf_linear_forward(out, vector, job->parameters + l->word_weight, job->parameters + l->word_bias, 1, D, Q);
            sf_relu_forward(out, out, Q);
        } else {
            const float none = 0;
            for (size_t q = 0; q < Q; q++)
                sf_linear_forward(out + q, vector, job->parameters + l->first + q * D, &none, 1, D, 1);
        }
    }
}

/* The output layer only shares out what the word vectors say. */
static void fold_linear(float *folded, const sf_cnn_layout *to, const sf_ibp_layout *l, const float *parameters)
{
    size_t D = l->shape.dim, K = l->shape.classes;
    const float *bias = parameters + l->output_bias;
    memcpy(folded, parameters, l->shape.vocabulary * D * sizeof *folded);
    memset(folded + to->output_weight, 0, K * D * sizeof *folded);
    for (size_t k = 0; k < K; k++) {
        folded[to->output_weight + (D == 1 ? k : k * D + k)] = D > 1 ? 1.0f : k ? 0.5f : -0.5f;
        folded[to->output_bias + k] = D > 1 ? bias[k] : k ? 0.5f * bias[0] : -0.5f * bias[0];
    }
}

void sf_ibp_fold(float *folded, const sf_ibp_layout *l, const float *parameters, int threads)
{
    const sf_ibp_shape *s = &l->shape;
    sf_cnn_layout to;
    folding job = {folded, l, parameters};
    sf_ibp_fold_layout(&to, l);
    assert(to.embedding == 0);
    if (l->linear) {
        fold_linear(folded, &to, l, parameters);
        return;
    }
    if (!s->wordwise && s->convolution)
        memcpy(folded, parameters + l->embedding, s->vocabulary * s->dim * sizeof *folded);
    else
        sf_parallel(threads, s->vocabulary, 256, fold_words, &job);
    if (s->convolution) {
        memcpy(folded + to.conv_weight, parameters + l->conv_weight, l->row * to.shape.dim * sizeof *folded);
        memcpy(folded + to.conv_bias, parameters + l->conv_bias, s->filters * sizeof *folded);
    }
    if (l->pooled_hidden) { /* the product is in the word vectors: what is left is the bias and the ReLU */
        memset(folded + to.hidden_weight, 0, s->hidden * s->hidden * sizeof *folded);
        for (size_t h = 0; h < s->hidden; h++) folded[to.hidden_weight + h * s->hidden + h] = 1;
    } else {
        memcpy(folded + to.hidden_weight, parameters + l->hidden_weight, s->hidden * l->features * sizeof *folded);
    }
    memcpy(folded + to.hidden_bias, parameters + l->hidden_bias, s->hidden * sizeof *folded);
    memcpy(folded + to.output_weight, parameters + l->output_weight, s->classes * s->hidden * sizeof *folded);
    memcpy(folded + to.output_bias, parameters + l->output_bias, s->classes * sizeof *folded);
}
