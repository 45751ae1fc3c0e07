/* One training step of the `bert` classifier. */
#ifndef SF_TRAIN_BERT_STEP_H
#define SF_TRAIN_BERT_STEP_H

#include "base/rng.h"
#include "model/bert.h"

typedef struct sf_bert_options {
    size_t layers; /* trained, from the top; SIZE_MAX: all, and the embeddings */
    double decay;  /* of weights, not of biases and norms */
    double clip;   /* of the gradient's length; 0: none */
    float dropout; /* of the features */
    sf_dtype type; /* of products */
    int threads;
    uint64_t seed; /* of the dropout masks */
} sf_bert_options;

/* Of the dropout masks: of the number of a step, and of a text in it (sf_dropout_mask's layer). */
sf_stream sf_bert_step_dropout(const sf_bert_options *options);

/* What is trained: layers from `layer` on, and all parameters from `start` on, which lie at the end of the array. */
typedef struct sf_bert_trained {
    size_t layer, start;
    int embeddings; /* too */
} sf_bert_trained;

sf_bert_trained sf_bert_trained_of(const sf_bert_layout *layout, const sf_bert_options *options);

typedef struct sf_bert_step sf_bert_step;

/* Working memory for batches of up to so many texts and pieces. Parameters are borrowed
 * and changed by updates. */
safer_status sf_bert_step_new(sf_bert_step **out, const sf_bert_layout *layout, float *parameters,
                              const sf_bert_options *options, size_t texts, size_t pieces, safer_error *error);
void sf_bert_step_free(sf_bert_step *step);

/* The net of the present parameters. */
const sf_bert_net *sf_bert_step_net(const sf_bert_step *step);

/* The summed loss of a batch and the gradient of its mean; `number` counts steps from 1 and
 * chooses the dropout masks. Bits do not depend on threads. */
double sf_bert_step_gradient(sf_bert_step *step, const sf_bert_batch *batch, const int *labels, uint64_t number);

/* Clips it and applies it with AdamW; means and variances (size - first) belong to the
 * trained parameters. */
void sf_bert_step_update(sf_bert_step *step, float *means, float *variances, double rate, uint64_t number);

/* After the parameters were changed from outside. */
void sf_bert_step_refresh(sf_bert_step *step);

const float *sf_bert_step_read(const sf_bert_step *step); /* the gradient (layout->size), for tests */

#endif
