/* Training of `charcnn`: one step. */
#ifndef SF_TRAIN_CHARCNN_STEP_H
#define SF_TRAIN_CHARCNN_STEP_H

#include "base/rng.h"
#include "model/charcnn_layout.h"
#include "nn/product.h"

typedef struct sf_charcnn_batch {
    const uint8_t *codes;  /* (count, L) */
    const size_t *lengths; /* (count) */
    const int *labels;     /* (count) */
    size_t count;
} sf_charcnn_batch;

typedef struct sf_charcnn_options {
    sf_dtype type; /* of the products */
    float dropout;
    float smoothing; /* of the labels: this share is spread over all classes */
    double clip;     /* the gradient's norm is cut to this; 0: never */
    double decay;
    int threads;
    uint64_t seed; /* of the dropout masks */
} sf_charcnn_options;

/* Where the dropout masks come from: of text b in step `number`, layers 2b and 2b + 1. */
sf_stream sf_charcnn_step_dropout(const sf_charcnn_options *options);

typedef struct sf_charcnn_step sf_charcnn_step;

/* Working memory for batches of up to so many texts. */
safer_status sf_charcnn_step_new(sf_charcnn_step **out, const sf_charcnn_layout *layout,
                                 const sf_charcnn_options *options, size_t texts, safer_error *error);
void sf_charcnn_step_free(sf_charcnn_step *step);

/* The summed loss of a batch and the gradient of its mean, clipped; `number` counts steps
 * from 1 and chooses the dropout masks. Bits do not depend on threads. trained: (trained).
 * Returns (trained), valid until the next call. */
const float *sf_charcnn_step_gradient(double *loss, sf_charcnn_step *step, const float *trained,
                                      const sf_charcnn_batch *batch, uint64_t number);

/* Applies it: Adam with decoupled decay. */
void sf_charcnn_step_update(sf_charcnn_step *step, float *trained, float *means, float *variances, double rate,
                            uint64_t number);

#endif
