/* Layers for training: forward and backward, in single precision.
 *
 * Outputs come first, dimensions last. Backward functions add to the gradients they are
 * given (the caller zeroes them), except where "=" is written. Nothing here allocates or
 * uses threads; every sum runs in a fixed order, so results repeat to the last bit. The
 * direct convolution is the naive reference for the look-up form. */
#ifndef SF_NN_LAYERS_H
#define SF_NN_LAYERS_H

#include "base/rng.h"

#include <stddef.h>
#include <stdint.h>

/* out = inp * weight^T + bias */
void sf_linear_forward(float *out,          /* (B, OC) */
                       const float *inp,    /* (B, C) */
                       const float *weight, /* (OC, C) */
                       const float *bias,   /* (OC) */
                       size_t B, size_t C, size_t OC);
void sf_linear_backward(float *dinp,         /* (B, C) =, may be NULL */
                        float *dweight,      /* (OC, C), may be NULL */
                        float *dbias,        /* (OC), may be NULL */
                        const float *dout,   /* (B, OC) */
                        const float *inp,    /* (B, C) */
                        const float *weight, /* (OC, C) */
                        size_t B, size_t C, size_t OC);

void sf_relu_forward(float *out, const float *inp, size_t N);
/* dinp = dout where out > 0, else 0; in place is fine. */
void sf_relu_backward(float *dinp, const float *dout, const float *out, size_t N);

/* Inverted dropout: inp[i] is multiplied by mask[i], which is 0 with probability p and
 * 1/(1-p) otherwise. The mask is a function of (stream, sample, unit i). Backward is the
 * same multiplication. */
void sf_dropout_mask(float *mask, float p, sf_stream stream, uint64_t sample, uint32_t layer, size_t N);
void sf_dropout_forward(float *out, float *mask, const float *inp, float p, sf_stream stream, uint64_t sample,
                        uint32_t layer, size_t N);
void sf_dropout_backward(float *dinp, const float *dout, const float *mask, size_t N);

/* Softmax and cross entropy of one row; returns the loss. dlogits = scale * gradient. */
float sf_softmax_loss(float *probabilities, /* (K) */
                      float *dlogits,       /* (K) =, may be NULL */
                      const float *logits,  /* (K) */
                      int target, float scale, size_t K);
/* The probabilities alone, the same bits on every machine. */
void sf_softmax_forward(float *probabilities, const float *logits, size_t K);

/* The convolution of width T over the words of one text, zero padded so that every word
 * is the middle of one window: position i reads words i - (T-1)/2 ... i - (T-1)/2 + T-1. */
#define SF_LEFT(T) (((T)-1) / 2)

/* Direct form: the reference. */
void sf_conv_naive_forward(float *out,          /* (N, F) before the activation */
                           const float *inp,    /* (N, D) */
                           const float *weight, /* (T, F, D) */
                           const float *bias,   /* (F) */
                           size_t N, size_t T, size_t F, size_t D);

/* Look-up form: rows[ids[j]*R + t*F ...] holds tap t of word ids[j], already multiplied. */
void sf_conv_forward(float *out,          /* (N, P), the first F of each row */
                     const float *rows,   /* (words, R) */
                     const uint32_t *ids, /* (N) */
                     const float *bias,   /* (F), NULL: 0 */
                     size_t N, size_t T, size_t F, size_t R, size_t P);

/* The gradient for one occurrence: word j of a text of N words reached T windows. */
void sf_conv_backward_word(float *drow,       /* (T, F) of the word */
                           const float *dout, /* (N, P), the first F of each row */
                           size_t j, size_t N, size_t T, size_t F, size_t P);

/* Pooling over positions, after ReLU (or not): x (N, P), the first F of each row, becomes
 * the activation. N = 0 gives 0. */
void sf_pool_forward(float *out,    /* (F) */
                     uint32_t *arg, /* (F): where the maximum was; unused for the mean */
                     float *x, int relu, int max, size_t N, size_t F, size_t P);
/* x becomes the gradient before the activation; dbias, when not NULL, gets its sum. */
void sf_pool_backward(float *x, float *dbias, /* (F) */
                      const float *dout, const uint32_t *arg, int relu, int max, size_t N, size_t F, size_t P);

/* Adam (Kingma & Ba 2015) with decoupled weight decay (Loshchilov & Hutter 2019). */
typedef struct sf_adam {
    float rate, beta1, beta2, epsilon, decay;
    float correct1, correct2; /* 1 - beta^step */
} sf_adam;

sf_adam sf_adam_at(double rate, double decay, uint64_t step); /* step counts from 1 */
void sf_adam_update(float *parameter, float *mean, float *variance, const float *gradient, const sf_adam *adam,
                    size_t N);

#endif
