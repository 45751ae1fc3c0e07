/* A linear classifier on features that stay as they are: what a frozen encoder makes of texts.
 *
 * The features of an encoder differ in size by orders of magnitude and are far from 0, and a classifier learns slowly
 * from such numbers. So it learns from x' = (x - centre) * scale, of mean 0 and variance 1 over a sample of texts, by
 * softmax regression with AdamW; in the end both are put into its weights:
 * W x' + b = (W scale) x + b - (W scale) centre. A feature that does not vary is left out. Everything is summed in one
 * order, by one thread: it takes a thousandth of the encoder's time. */
#ifndef SF_TRAIN_HEAD_H
#define SF_TRAIN_HEAD_H

#include "base/error.h"
#include "base/rng.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sf_head {
    size_t features, classes;
    float *parameters;     /* (classes, features), then (classes); size of them */
    float *centre, *scale; /* (features) */
    size_t size;
    float *gradient, *row, *mask, *logits; /* working memory */
} sf_head;

typedef struct sf_head_options {
    double decay;  /* of weights, not of biases */
    double clip;   /* of the gradient's length; 0: none */
    float dropout; /* of the features */
    sf_stream stream;
} sf_head_options;

safer_status sf_head_new(sf_head **out, size_t features, size_t classes, safer_error *error);
void sf_head_free(sf_head *head); /* NULL is fine */

/* Centre and scale, from x (count, features). */
void sf_head_standardise(sf_head *head, const float *x, size_t count);

/* Begins with the classifier weight (classes, features), bias (classes); and writes what was learned as such a one. */
void sf_head_begin(sf_head *head, const float *weight, const float *bias);
void sf_head_finish(float *weight, float *bias, const sf_head *head);

/* One step, the `number`-th from 1, with rows x[0..count-1] (features); means and variances are Adam's (size). Returns
 * the summed loss. */
double sf_head_step(sf_head *head, const float *const *x, const int *labels, size_t count, float *means,
                    float *variances, double rate, uint64_t number, const sf_head_options *options);

/* The class of x. */
int sf_head_answer(sf_head *head, const float *x);

#endif
