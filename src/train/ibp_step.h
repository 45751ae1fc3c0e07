/* Training by bounds: the networks, and one step.
 *
 * What a network can answer at most and at least when every word may be any of its synonyms
 * (ibp/bounds.h) is trained to be close. Two ways to take the first interval, after
 *   - Jia, Raghunathan, Goeksel and Liang 2019 (`ibp-jia`): a linear layer with ReLU is
 *     applied word by word, and the interval is taken of its outputs;
 *   - Huang et al. 2019 (`ibp-huang`): the word vectors of all synonyms are pushed exactly
 *     through the first affine layer, and the interval is taken of what comes out, tap by
 *     tap of a convolution.
 * The loss of a text is (1 - kappa) * its cross entropy + kappa * the cross entropy of the
 * worst margins. While kappa rises, the box is shrunk to the share eps around the word
 * (ibp_step.c, ibp_train.c).
 *
 * A third defense, `exact`, is for a `bow` without a hidden layer (ibp_linear.c): there the worst
 * case needs no interval.
 *
 * What is trained is written as an ordinary `bow` or `cnn` model (ibp_layout.c): the word-wise layer
 * is a function of the word alone, so its outputs take the place of the word vectors, and in a
 * `bow` after Huang so does the first affine layer's product. A model file therefore knows
 * nothing of how it was trained, and its bounds are at least as tight as those trained on. */
#ifndef SF_TRAIN_IBP_STEP_H
#define SF_TRAIN_IBP_STEP_H

#include "model/cnn.h"
#include "train/ibp_sets.h"

/* --------------------------------------------------------------- the network */

typedef struct sf_ibp_shape {
    int convolution;   /* cnn; 0: bow */
    int wordwise;      /* after Jia; 0: after Huang */
    int max_pool;      /* a text's greatest numbers; 0: their mean. Not for bow after Huang, nor a linear bow */
    size_t vocabulary; /* with the unknown word, number 0 */
    size_t dim;        /* of the word vectors */
    size_t inner;      /* outputs of the word-wise layer; 0 without one */
    size_t width;      /* of the convolution; 1 for bow */
    size_t filters;    /* of the convolution */
    size_t hidden;     /* 0: a linear bow, whose dim is 1 for two classes and else their number */
    size_t classes;
    size_t max_words;
} sf_ibp_shape;

/* Where each tensor lies in the one array of parameters; the word vectors come first. */
typedef struct sf_ibp_layout {
    sf_ibp_shape shape;
    size_t embedding;                  /* (vocabulary, dim) */
    size_t word_weight, word_bias;     /* (inner, dim), (inner): Jia */
    size_t conv_weight, conv_bias;     /* (width, filters, inner or dim), (filters): cnn */
    size_t hidden_weight, hidden_bias; /* (hidden, features or dim), (hidden) */
    size_t output_weight, output_bias; /* (classes, hidden), (classes); linear: none, (dim) */
    size_t size;
    size_t first;      /* the matrix that word vectors are multiplied by: (hull, dim) */
    size_t hull;       /* Q: numbers of a word that the interval is taken of */
    size_t row;        /* R: what a word contributes to the windows: width * features */
    size_t features;   /* F: of a text, after the mean */
    int linear;        /* no hidden layer: the word vectors are the logits */
    int pooled_hidden; /* bow after Huang: the features are the hidden layer, before its bias */
} sf_ibp_layout;

void sf_ibp_layout_make(sf_ibp_layout *out, const sf_ibp_shape *shape);

/* Random weights as PyTorch's, biases 0; the word vectors are left alone. */
void sf_ibp_first_weights(float *parameters, const sf_ibp_layout *layout, uint64_t seed);

/* The same network as an ordinary model: its layout, and its parameters (out->size). */
void sf_ibp_fold_layout(sf_cnn_layout *out, const sf_ibp_layout *layout);
void sf_ibp_fold(float *folded, const sf_ibp_layout *layout, const float *parameters, int threads);

/* ------------------------------------------------------------------ one step */

typedef struct sf_ibp_batch {
    const uint32_t *items; /* (offsets[count]) */
    const size_t *offsets; /* (count+1) */
    const int *labels;     /* (count) */
    size_t count;
} sf_ibp_batch;

typedef struct sf_ibp_options {
    double rate, decay, clip; /* Adam; decay is added to the gradient; clip 0: any length */
    float dropout;
    int freeze;             /* how texts are classified does not move the word vectors; triplets do */
    double triplet, margin; /* weight of the triplet loss, 0: none; how far apart other words should be */
    int threads;
    uint64_t seed; /* of dropout masks and of the triplets' other words */
} sf_ibp_options;

typedef struct sf_ibp_step sf_ibp_step;

/* For batches of up to so many words in all; the sets are borrowed. */
safer_status sf_ibp_step_new(sf_ibp_step **out, const sf_ibp_layout *layout, const sf_ibp_sets *sets,
                             const sf_ibp_options *options, size_t words, safer_error *error);
void sf_ibp_step_free(sf_ibp_step *step);

/* The summed loss of a batch and the gradient of its mean; `number` counts steps from 1 and
 * chooses the dropout masks. Bits do not depend on threads. */
safer_status sf_ibp_step_gradient(double *loss, sf_ibp_step *step, const float *parameters, const sf_ibp_batch *batch,
                                  double kappa, double eps, uint64_t number, safer_error *error);

/* Applies it. The moments are those of all parameters or, when the word vectors are frozen,
 * of those behind them. Of the word vectors only those of the batch move. */
void sf_ibp_step_update(sf_ibp_step *step, float *parameters, float *means, float *variances, uint64_t number);

/* For tests and benchmarks: the gradient (layout->size) in full; the texts' logits (texts,
 * classes) and worst margins, upper bounds of logit[c] - logit[label] (texts, classes). */
void sf_ibp_step_read(float *gradient, const sf_ibp_step *step);
const float *sf_ibp_step_logits(const sf_ibp_step *step);
const float *sf_ibp_step_worst(const sf_ibp_step *step);
/* Multiplications and additions of the step's matrix products. */
double sf_ibp_step_work(const sf_ibp_step *step);

/* --------------------------------------------------- one step, linear classifier */

typedef struct sf_linear_options {
    double rate, decay, dropout;
    uint64_t seed; /* of which words are dropped */
} sf_linear_options;

typedef struct sf_linear_step sf_linear_step;

/* For texts of up to so many words; the sets are borrowed. */
safer_status sf_linear_step_new(sf_linear_step **out, const sf_ibp_layout *layout, const sf_ibp_sets *sets,
                                const sf_linear_options *options, size_t longest, safer_error *error);
void sf_linear_step_free(sf_linear_step *step);

/* Learns from the texts one after the other, and returns their summed loss, each before its
 * update. `squares`, as many as parameters, are AdaGrad's; `number` counts steps. */
double sf_linear_step_learn(sf_linear_step *step, float *parameters, float *squares, const sf_ibp_batch *batch,
                            double kappa, double eps, uint64_t number);

#endif
