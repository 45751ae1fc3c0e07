/* One training step of the `bow` and `cnn` classifiers. */
#ifndef SF_TRAIN_CNN_STEP_H
#define SF_TRAIN_CNN_STEP_H

#include "model/cnn.h"

/* Some texts in a row, as numbers. */
typedef struct sf_cnn_batch {
    const uint32_t *ids;   /* (offsets[count]) */
    const size_t *offsets; /* (count+1) */
    const int *labels;     /* (count) */
    size_t count;
} sf_cnn_batch;

typedef struct sf_cnn_options {
    double rate, decay;
    float dropout;
    int freeze; /* word vectors stay as they are */
    int threads;
    uint64_t seed; /* of the dropout masks */
} sf_cnn_options;

typedef struct sf_cnn_step sf_cnn_step;

/* Working memory for batches of up to so many texts and words in all. */
safer_status sf_cnn_step_new(sf_cnn_step **out, const sf_cnn_layout *layout, const sf_cnn_options *options,
                             size_t texts, size_t words, safer_error *error);
void sf_cnn_step_free(sf_cnn_step *step);

/* The summed loss of a batch and the gradient of its mean; `number` counts steps from 1
 * and chooses the dropout masks. Bits do not depend on threads. */
void sf_cnn_step_gradient(double *loss, sf_cnn_step *step, const float *parameters, const sf_cnn_batch *batch,
                          uint64_t number);

/* Applies it: Adam on all parameters behind the embedding, and on the embedding rows of
 * the batch's words. */
void sf_cnn_step_update(sf_cnn_step *step, float *parameters, float *means, float *variances, uint64_t number);

/* For the tests: the gradient (layout->size) in full. */
void sf_cnn_step_read(float *gradient, const sf_cnn_step *step);

#endif
