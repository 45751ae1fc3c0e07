/* One training step of the `bow` and `cnn` classifiers.
 *
 * A batch of 32 IMDB reviews, drawn, holds 7,300 words but only 2,500 different ones, so the
 * convolution is computed in its look-up form here too: U = E W^T for the different words
 * (one matrix product), then additions per position. Backwards, the gradient of U is
 * collected word by word from its occurrences, and two products give those of E and W.
 *
 * Nothing depends on the number of threads: texts are independent of each other; words
 * are taken in blocks of fixed size; a word's occurrences are added in the order of the
 * batch, and the blocks' shares of the gradient of W in the order of the blocks.
 *
 * Adam on the embedding is lazy: only rows of words in the batch move, and their moments
 * decay only then (as in PyTorch's SparseAdam). The dense rule would touch five million
 * numbers per step where 250,000 have a gradient. The network is described in model/cnn.h. */
#include "train/cnn_step.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/gemm.h"
#include "nn/layers.h"

#include <string.h>

enum { BLOCK = 256 }; /* words per matrix product */

struct sf_cnn_step {
    sf_cnn_layout layout;
    sf_cnn_options options;
    sf_stream dropout;
    size_t texts, words; /* capacity */

    uint32_t *place;       /* (vocabulary): where a word is in `different`, or SF_NONE */
    uint32_t *different;   /* the batch's different words, as they come */
    size_t count;          /* of them */
    uint32_t *local;       /* (words): each word's place */
    uint32_t *text;        /* (words): the text each is in */
    uint32_t *occurrences; /* (words): where each different word occurs, one after the other */
    size_t *begin;         /* (different+1): in the occurrences */

    float *vectors, *dvectors; /* (different, dim) */
    float *rows, *drows;       /* (different, R): U; for bow these are the vectors */
    float *partial;            /* (blocks, R, dim): shares of the gradient of W */
    float *gradient;           /* (size - vocabulary * dim): of all behind the embedding */

    float *x;                                     /* (words, P): activations, then their gradients */
    float *features, *feature_mask, *dfeatures;   /* (texts, P) */
    uint32_t *arg;                                /* (texts, P) */
    float *dbias;                                 /* (texts, P) */
    float *relu, *hidden, *hidden_mask, *dhidden; /* (texts, H) */
    float *logits, *dlogits;                      /* (texts, classes) */
    float *losses;                                /* (texts) */

    /* Of the step in progress. */
    const float *parameters;
    const sf_cnn_batch *batch;
    uint64_t number;
    float *moved, *means, *variances;
    sf_adam adam;
};

void sf_cnn_step_free(sf_cnn_step *s)
{
    if (!s) return;
    if (s->rows != s->vectors) free(s->rows);
    if (s->drows != s->dvectors) free(s->drows);
    void *owned[] = {s->place,        s->different, s->local,   s->text,     s->occurrences, s->begin,
                     s->vectors,      s->dvectors,  s->partial, s->gradient, s->x,           s->features,
                     s->feature_mask, s->dfeatures, s->arg,     s->dbias,    s->relu,        s->hidden,
                     s->hidden_mask,  s->dhidden,   s->logits,  s->dlogits,  s->losses};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
    free(s);
}

static void *floats(int *failed, size_t a, size_t b)
{
    size_t count;
    void *p = __builtin_mul_overflow(a, b, &count) ? NULL : sf_alloc_aligned(count, sizeof(float));
    if (!p) *failed = 1;
    return p;
}

safer_status sf_cnn_step_new(sf_cnn_step **out, const sf_cnn_layout *l, const sf_cnn_options *options, size_t texts,
                             size_t words, safer_error *error)
{
    const sf_cnn_shape *shape = &l->shape;
    size_t V = shape->vocabulary, D = shape->dim, R = l->row, P = l->features, H = shape->hidden, K = shape->classes;
    size_t different = words < V ? words : V;
    int failed = 0;
    sf_cnn_step *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->layout = *l;
    s->options = *options;
    s->dropout = sf_stream_of(options->seed, UINT64_C(0x64726f706f757400), SF_STAGE_TRAINING); /* "dropout" */
    s->texts = texts;
    s->words = words;
    s->place = floats(&failed, V, 1);
    s->different = floats(&failed, different, 1);
    s->local = floats(&failed, words, 1);
    s->text = floats(&failed, words, 1);
    s->occurrences = floats(&failed, words, 1);
    s->begin = sf_calloc(different + 1, sizeof *s->begin);
    s->vectors = floats(&failed, different, D);
    s->dvectors = floats(&failed, different, D);
    s->rows = shape->convolution ? floats(&failed, different, R) : s->vectors;
    s->drows = shape->convolution ? floats(&failed, different, R) : s->dvectors;
    if (shape->convolution) s->partial = floats(&failed, (different + BLOCK - 1) / BLOCK, R * D);
    s->gradient = floats(&failed, l->size - V * D, 1);
    s->x = floats(&failed, words, P);
    s->features = floats(&failed, texts, P);
    s->feature_mask = floats(&failed, texts, P);
    s->dfeatures = floats(&failed, texts, P);
    s->arg = floats(&failed, texts, P);
    s->dbias = floats(&failed, texts, P);
    s->relu = floats(&failed, texts, H);
    s->hidden = floats(&failed, texts, H);
    s->hidden_mask = floats(&failed, texts, H);
    s->dhidden = floats(&failed, texts, H);
    s->logits = floats(&failed, texts, K);
    s->dlogits = floats(&failed, texts, K);
    s->losses = floats(&failed, texts, 1);
    if (failed || !s->begin) {
        sf_cnn_step_free(s);
        return sf_fail_memory(error);
    }
    memset(s->place, 0xff, V * sizeof *s->place);
    *out = s;
    return SAFER_OK;
}

/* ---------------------------------------------------------------- the words */

/* Numbers the batch's different words and lists where each occurs. */
static void number_words(sf_cnn_step *s)
{
    const sf_cnn_batch *b = s->batch;
    for (size_t i = 0; i < s->count; i++) s->place[s->different[i]] = SF_NONE; /* of the step before */
    s->count = 0;
    for (size_t t = 0; t < b->count; t++)
        for (size_t i = b->offsets[t]; i < b->offsets[t + 1]; i++) {
            uint32_t *place = &s->place[b->ids[i]];
            if (*place == SF_NONE) {
                *place = (uint32_t)s->count;
                s->begin[s->count] = 0;
                s->different[s->count++] = b->ids[i];
            }
            s->local[i] = *place;
            s->text[i] = (uint32_t)t;
            s->begin[*place]++;
        }
    size_t sum = 0;
    for (size_t i = 0; i < s->count; i++) { /* counts become ends, and filling backwards makes them begins */
        sum += s->begin[i];
        s->begin[i] = sum;
    }
    s->begin[s->count] = sum;
    for (size_t i = sum; i-- > 0;) s->occurrences[--s->begin[s->local[i]]] = (uint32_t)i;
}

/* One block of words. */
static void project_words(void *context, size_t first, size_t last, int worker)
{
    sf_cnn_step *s = context;
    const sf_cnn_layout *l = &s->layout;
    size_t D = l->shape.dim, R = l->row;
    (void)worker;
    for (size_t i = first; i < last; i++)
        memcpy(s->vectors + i * D, s->parameters + l->embedding + s->different[i] * D, D * sizeof *s->vectors);
    if (l->shape.convolution)
        sf_gemm_dense(SF_GEMM_NT, s->rows + first * R, s->vectors + first * D, s->parameters + l->conv_weight, 0,
                      last - first, R, D);
}

static void collect_word(sf_cnn_step *s, size_t word)
{
    const sf_cnn_layout *l = &s->layout;
    size_t R = l->row, P = l->features, F = l->shape.filters;
    float *drow = s->drows + word * R;
    memset(drow, 0, R * sizeof *drow);
    for (size_t o = s->begin[word]; o < s->begin[word + 1]; o++) {
        uint32_t at = s->occurrences[o], text = s->text[at];
        size_t first = s->batch->offsets[text], N = s->batch->offsets[text + 1] - first, tap = 0;
        for (size_t g = 0; g < l->shape.width_count; g++) {
            size_t T = l->shape.widths[g];
            sf_conv_backward_word(drow + tap * F, s->x + first * P + g * F, at - first, N, T, F, P);
            tap += T;
        }
    }
}

/* Likewise. */
static void collect_words(void *context, size_t first, size_t last, int worker)
{
    sf_cnn_step *s = context;
    const sf_cnn_layout *l = &s->layout;
    size_t D = l->shape.dim, R = l->row, block = first / BLOCK;
    (void)worker;
    for (size_t i = first; i < last; i++) collect_word(s, i);
    if (!l->shape.convolution) return;
    if (!s->options.freeze)
        sf_gemm_dense(SF_GEMM_NN, s->dvectors + first * D, s->drows + first * R, s->parameters + l->conv_weight, 0,
                      last - first, D, R);
    sf_gemm_dense(SF_GEMM_TN, s->partial + block * R * D, s->drows + first * R, s->vectors + first * D, 0, R, D,
                  last - first);
}

/* ---------------------------------------------------------------- the texts */

static void do_text(sf_cnn_step *s, size_t b)
{
    const sf_cnn_layout *l = &s->layout;
    const sf_cnn_shape *shape = &l->shape;
    const float *w = s->parameters;
    size_t first = s->batch->offsets[b], N = s->batch->offsets[b + 1] - first, tap = 0;
    size_t F = shape->filters, P = l->features, H = shape->hidden, K = shape->classes;
    float *x = s->x + first * P, *features = s->features + b * P, *dfeatures = s->dfeatures + b * P;
    float *hidden = s->hidden + b * H, *relu = s->relu + b * H, *dhidden = s->dhidden + b * H;
    float *logits = s->logits + b * K, *dlogits = s->dlogits + b * K;
    for (size_t g = 0; g < shape->width_count; g++) {
        sf_conv_forward(x + g * F, s->rows + tap * F, s->local + first,
                        shape->convolution ? w + l->conv_bias + g * F : NULL, N, shape->widths[g], F, l->row, P);
        sf_pool_forward(features + g * F, s->arg + b * P + g * F, x + g * F, shape->convolution, shape->max_pool, N, F,
                        P);
        tap += shape->widths[g];
    }
    sf_dropout_forward(features, s->feature_mask + b * P, features, s->options.dropout, s->dropout, s->number,
                       (uint32_t)(2 * b), P);
    if (H) {
        sf_linear_forward(relu, features, w + l->hidden_weight, w + l->hidden_bias, 1, P, H);
        sf_relu_forward(relu, relu, H);
        sf_dropout_forward(hidden, s->hidden_mask + b * H, relu, s->options.dropout, s->dropout, s->number,
                           (uint32_t)(2 * b + 1), H);
    }
    const float *last = H ? hidden : features;
    sf_linear_forward(logits, last, w + l->output_weight, w + l->output_bias, 1, l->inputs, K);
    s->losses[b] = sf_softmax_loss(logits, dlogits, logits, s->batch->labels[b], 1 / (float)s->batch->count, K);

    sf_linear_backward(H ? dhidden : dfeatures, NULL, NULL, dlogits, last, w + l->output_weight, 1, l->inputs, K);
    if (H) {
        sf_dropout_backward(dhidden, dhidden, s->hidden_mask + b * H, H);
        sf_relu_backward(dhidden, dhidden, relu, H);
        sf_linear_backward(dfeatures, NULL, NULL, dhidden, features, w + l->hidden_weight, 1, P, H);
    }
    sf_dropout_backward(dfeatures, dfeatures, s->feature_mask + b * P, P);
    for (size_t g = 0; g < shape->width_count; g++)
        sf_pool_backward(x + g * F, s->dbias + b * P + g * F, dfeatures + g * F, s->arg + b * P + g * F,
                         shape->convolution, shape->max_pool, N, F, P);
}

static void do_texts(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    for (size_t b = begin; b < end; b++) do_text(context, b);
}

/* Adds up what texts and blocks left, in their order. */
static void reduce(sf_cnn_step *s)
{
    const sf_cnn_layout *l = &s->layout;
    const sf_cnn_shape *shape = &l->shape;
    size_t base = shape->vocabulary * shape->dim, B = s->batch->count, P = l->features, H = shape->hidden;
    float *gradient = s->gradient;
    memset(gradient, 0, (l->size - base) * sizeof *gradient);
    if (shape->convolution) {
        float *dweight = gradient + (l->conv_weight - base), *dbias = gradient + (l->conv_bias - base);
        for (size_t k = 0; k * BLOCK < s->count; k++) {
            const float *partial = s->partial + k * l->row * shape->dim;
            for (size_t i = 0; i < l->row * shape->dim; i++) dweight[i] += partial[i];
        }
        for (size_t b = 0; b < B; b++)
            for (size_t p = 0; p < P; p++) dbias[p] += s->dbias[b * P + p];
    }
    if (H)
        sf_linear_backward(NULL, gradient + (l->hidden_weight - base), gradient + (l->hidden_bias - base), s->dhidden,
                           s->features, NULL, B, P, H);
    sf_linear_backward(NULL, gradient + (l->output_weight - base), gradient + (l->output_bias - base), s->dlogits,
                       H ? s->hidden : s->features, NULL, B, l->inputs, shape->classes);
}

void sf_cnn_step_gradient(double *loss, sf_cnn_step *s, const float *parameters, const sf_cnn_batch *batch,
                          uint64_t number)
{
    s->parameters = parameters;
    s->batch = batch;
    s->number = number;
    number_words(s);
    sf_parallel(s->options.threads, s->count, BLOCK, project_words, s);
    sf_parallel(s->options.threads, batch->count, 1, do_texts, s);
    if (s->layout.shape.convolution || !s->options.freeze)
        sf_parallel(s->options.threads, s->count, BLOCK, collect_words, s);
    reduce(s);
    *loss = 0;
    for (size_t b = 0; b < batch->count; b++) *loss += (double)s->losses[b];
}

/* --------------------------------------------------------------- the update */

static void move_words(void *context, size_t begin, size_t end, int worker)
{
    sf_cnn_step *s = context;
    size_t D = s->layout.shape.dim;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        size_t at = s->layout.embedding + s->different[i] * D;
        sf_adam_update(s->moved + at, s->means + at, s->variances + at, s->dvectors + i * D, &s->adam, D);
    }
}

void sf_cnn_step_update(sf_cnn_step *s, float *parameters, float *means, float *variances, uint64_t number)
{
    size_t base = s->layout.shape.vocabulary * s->layout.shape.dim;
    s->adam = sf_adam_at(s->options.rate, s->options.decay, number);
    s->moved = parameters;
    s->means = means;
    s->variances = variances;
    if (!s->options.freeze) sf_parallel(s->options.threads, s->count, BLOCK, move_words, s);
    sf_adam_update(parameters + base, means + base, variances + base, s->gradient, &s->adam, s->layout.size - base);
}

void sf_cnn_step_read(float *gradient, const sf_cnn_step *s)
{
    size_t D = s->layout.shape.dim, base = s->layout.shape.vocabulary * D;
    memset(gradient, 0, base * sizeof *gradient);
    for (size_t i = 0; !s->options.freeze && i < s->count; i++)
        memcpy(gradient + s->different[i] * D, s->dvectors + i * D, D * sizeof *gradient);
    memcpy(gradient + base, s->gradient, (s->layout.size - base) * sizeof *gradient);
}
