/* An encoder, described: what every processor that computes one is given.
 *
 *   x = norm(word + position + type)
 *   every layer:   x = norm(x + attention(x)),   x = norm(x + outer(activation(inner(x))))
 *   the end:       the first vector or the mean of all, then a dense layer or none, then the classifier
 *
 * Matrices are (outputs, inputs), rows one after the other, F32. Nothing is owned. */
#ifndef SF_NN_ENCODER_H
#define SF_NN_ENCODER_H

#include <stddef.h>
#include <stdint.h>

typedef enum sf_encoder_activation {
    SF_ENCODER_GELU,
    SF_ENCODER_GELU_TANH,
    SF_ENCODER_RELU,
    SF_ENCODER_TANH
} sf_encoder_activation;

typedef struct sf_encoder_pair {
    const float *weight, *bias; /* of a layer norm: (hidden) both */
} sf_encoder_pair;

typedef struct sf_encoder_layer {
    sf_encoder_pair qkv;       /* (3 * hidden, hidden): query, key, value, each head after head */
    sf_encoder_pair attention; /* (hidden, hidden) */
    sf_encoder_pair norm1;
    sf_encoder_pair inner; /* (inner, hidden) */
    sf_encoder_pair outer; /* (hidden, inner) */
    sf_encoder_pair norm2;
} sf_encoder_layer;

typedef struct sf_encoder {
    size_t vocabulary, positions, layers, hidden, heads, inner, classes;
    size_t tokens; /* most pieces of a text */
    float epsilon; /* of the norms */
    sf_encoder_activation activation;
    const float *words, *places; /* (vocabulary, hidden), (positions, hidden) */
    const float *type;           /* (hidden): of all pieces; NULL: none */
    sf_encoder_pair norm;        /* of the sum */
    const sf_encoder_layer *layer;
    int mean;                                /* the mean of all vectors; else the first */
    sf_encoder_pair pooler;                  /* (hidden, hidden) behind it; weight NULL: none */
    sf_encoder_activation pooler_activation; /* tanh or relu */
    sf_encoder_pair classifier;              /* (classes, hidden) */
} sf_encoder;

#endif
