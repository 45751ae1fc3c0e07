/* An encoder, described: what every processor that computes one is given.
 *
 *   x = norm(word + position + type)                  where narrower than `hidden`, a matrix widens it
 *   every layer:   x = norm(x + attention(x)),        x = norm(x + outer(activation(inner(x))))
 *   or, prenorm:   x = x + attention(norm(x)),        x = x + outer(...(norm(x))), and a norm at the end of all layers
 *   the end:       the first vector or the mean of all, then a dense layer or none, then the classifier
 *
 * BERT, DistilBERT, RoBERTa, XLM-RoBERTa, ELECTRA, ALBERT, MPNet, DeBERTa-v2 and ModernBERT are settings of it
 * (sf_encoder_form).
 * Attention of piece i to piece j, of a head of d numbers, with scale = 1 / sqrt(d * parts):
 *
 *   score(i, j) = scale * query_i . key_j                                                  BERT
 *               + bias[bucket(j - i)]                                                      relative BIAS (MPNet)
 *               + scale * (query_i . place_key[bucket] + key_j . place_query[bucket])      relative PARTS (DeBERTa)
 *
 * where query and key are turned by angles that grow with their positions (rotary), and in local layers only pieces
 * with |i - j| <= window are seen.
 *
 * Matrices are (outputs, inputs), rows one after the other, F32. Nothing is owned. */
#ifndef SF_NN_ENCODER_H
#define SF_NN_ENCODER_H

#include <stddef.h>
#include <stdint.h>

typedef enum sf_encoder_activation {
    SF_ENCODER_TANH, /* of the dense layer at the end only */
    SF_ENCODER_RELU,
    SF_ENCODER_GELU,
    SF_ENCODER_GELU_TANH,
    SF_ENCODER_SILU
} sf_encoder_activation;

typedef enum sf_encoder_relative {
    SF_RELATIVE_NONE,
    SF_RELATIVE_BIAS, /* a number of each head for every bucket of distances */
    SF_RELATIVE_PARTS /* vectors of the buckets take part as queries and keys: disentangled attention */
} sf_encoder_relative;

enum { SF_ENCODER_LAYERS = 256 }; /* at most */

/* How an encoder differs from BERT, which is all zeros. */
typedef struct sf_encoder_form {
    /* Embeddings. */
    size_t width;        /* of the embeddings, which a matrix then brings to `hidden`; 0: `hidden`, and no matrix */
    int projected_first; /* it comes before their norm, without a bias; else after it, with one */
    int placeless;       /* there is no table of positions */
    int padded; /* positions are counted from `pad`, without pieces `pad`, which have position `pad`; else from 0 */
    size_t pad;

    /* Layers. */
    int shared;          /* all layers are the first one */
    int prenorm;         /* norms before the parts of a layer, but for the first layer's attention */
    int gated;           /* inner is (2 * inner, hidden): activation(first half) * second half */
    int attention_plain; /* no biases: of qkv and attention, */
    int inner_plain;     /* of inner and outer, */
    int norm_plain;      /* of norms */

    /* Attention. */
    sf_encoder_relative relative;
    size_t buckets; /* BIAS: rows of the table, 32 of which are used; PARTS: for distances; 0: each has its own row */
    size_t span;    /* PARTS: the farthest distance; rows of the table are 2 * buckets, or else 2 * span */
    int place_keys; /* PARTS: queries meet keys of places ("c2p") */
    int place_queries; /* PARTS: keys meet queries of places ("p2c") */
    int places_shared; /* PARTS: made by the same matrices as those of the pieces; else by their own */
    int places_normed; /* PARTS: the table is normed before */
    double theta;      /* rotary: the base of the angles of global layers; 0: not rotary */
    double local_theta;
    size_t window;                    /* of local layers */
    uint8_t local[SF_ENCODER_LAYERS]; /* 1: the layer is local */

    /* The end: of a dense layer. */
    int dense_mean;  /* of the mean of all vectors; else of the first */
    int dense_plain; /* without a bias */
    int dense_norm;  /* a norm after its activation */
} sf_encoder_form;

typedef struct sf_encoder_pair {
    const float *weight, *bias; /* of a layer norm: (hidden) both; bias NULL: none, which is zeros */
} sf_encoder_pair;

typedef struct sf_encoder_layer {
    sf_encoder_pair qkv;       /* (3 * hidden, hidden): query, key, value, each head after head */
    sf_encoder_pair attention; /* (hidden, hidden) */
    sf_encoder_pair norm1;     /* weight NULL: none (prenorm's first layer) */
    sf_encoder_pair inner;     /* (inner, hidden), gated (2 * inner, hidden) */
    sf_encoder_pair outer;     /* (hidden, inner) */
    sf_encoder_pair norm2;
    sf_encoder_pair place_key, place_query; /* PARTS: (hidden, hidden) that the table passes; weight NULL: not used */
    const float
        *turns; /* rotary: (tokens, d): of every position d/2 cosines, then d/2 sines. Numbers k and k + d/2 of a
                           head are turned together: (x, y) to (x cos - y sin, y cos + x sin). NULL: not rotary */
    int local;
} sf_encoder_layer;

typedef struct sf_encoder {
    size_t vocabulary, positions, layers, hidden, heads, inner, classes;
    size_t tokens; /* most pieces of a text */
    float epsilon; /* of the norms */
    sf_encoder_activation activation;
    sf_encoder_form form;
    const float *words, *places; /* (vocabulary, width), (positions, width); places NULL: none */
    const float *type;           /* (width): of all pieces; NULL: none */
    sf_encoder_pair norm;        /* of the sum, (width); of (hidden) when the projection comes first */
    sf_encoder_pair projection;  /* (hidden, width); weight NULL: none */
    float scale;                 /* of scores */
    const float *relative;       /* BIAS: (buckets, heads); PARTS: (rows, hidden); else NULL */
    size_t relative_rows;
    sf_encoder_pair relative_norm; /* of its rows; weight NULL: none */
    const int32_t *buckets;        /* (2 * tokens - 1): the row for distance key - query + tokens - 1; NULL without */
    const sf_encoder_layer *layer;
    sf_encoder_pair end;                     /* prenorm: the last norm */
    int mean;                                /* the mean of all vectors; else the first */
    sf_encoder_pair pooler;                  /* (hidden, hidden) behind it; weight NULL: none */
    sf_encoder_activation pooler_activation; /* of that */
    sf_encoder_pair pooler_norm;             /* behind it; weight NULL: none */
    sf_encoder_pair classifier;              /* (classes, hidden) */
} sf_encoder;

/* Whether it is computed as BERT is, however its settings came about. */
static inline int sf_encoder_is_bert(const sf_encoder *e)
{
    const sf_encoder_form *f = &e->form;
    return !f->width && !f->placeless && !f->padded && !f->shared && !f->prenorm && !f->gated && !f->attention_plain &&
           !f->inner_plain && !f->norm_plain && f->relative == SF_RELATIVE_NONE && !(f->theta > 0) && !f->window &&
           !f->dense_mean && !f->dense_plain && !f->dense_norm && e->activation != SF_ENCODER_SILU &&
           e->pooler_activation <= SF_ENCODER_RELU;
}

#endif
