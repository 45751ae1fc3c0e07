/* What the files of one training step of the `bert` classifier share: its state. See bert_step.c. */
#ifndef SF_TRAIN_BERT_INSIDE_H
#define SF_TRAIN_BERT_INSIDE_H

#include "train/bert_step.h"

enum { SF_STEP_BLOCK = SF_BERT_ROWS, SF_STEP_MATRICES = 4 };

/* Memory of one thread. */
typedef struct sf_step_worker {
    sf_bert_attention attention;
    sf_bert_rows work;         /* of the forward pass: the views to work in */
    sf_packed keys, values;    /* transposed the other way: (T, d) and (d, T) */
    sf_packed queries, slopes; /* (QUERIES, d) */
    sf_view dshares, dscores;  /* (QUERIES, tokens): F32, and in the type of the net */
    sf_view turned;            /* (tokens, QUERIES) */
    sf_view dkeys, dvalues;    /* (tokens, d) F32 */
    /* Disentangled attention: */
    sf_view dqueries;            /* (QUERIES, d) F32 */
    sf_view by_queries, by_keys; /* (QUERIES, rows), (tokens, rows) F32: gradients of those of sf_bert_attention */
    sf_view factor, across;      /* (tokens, rows), (rows, tokens): either of them as a factor, and turned */
    sf_packed places;            /* (rows, d) */
} sf_step_worker;

/* Gradients of vectors that are sums over rows, one set per block. */
typedef struct sf_step_sums {
    float *norm2_weight, *norm2_bias, *outer_bias, *norm1_weight, *norm1_bias, *attention_bias, *qkv_bias, *end_weight,
        *end_bias, *inner_bias;
} sf_step_sums;

/* One weight gradient: out (outputs, inputs) = turned (outputs, N) * packed (N, inputs), the
 * latter in blocks of rows. */
typedef struct sf_step_weight {
    sf_view dout, inp; /* (N, outputs), (N, inputs) */
    size_t outputs, inputs, weight;
    size_t strip; /* outputs worked on together */
    sf_view turned;
    sf_packed *packed; /* (blocks) */
} sf_step_weight;

typedef struct sf_step_chunk {
    size_t offset, count;
    int decays;
} sf_step_chunk;

/* Disentangled attention: gradients of a layer's vectors of distances, and of the table that all are made of. */
typedef struct sf_step_places {
    sf_view slopes[2];      /* (rows, hidden) F32 */
    sf_view table;          /* (rows, hidden) F32 */
    sf_view factor, turned; /* (rows, hidden), (hidden, rows) in the type of the net */
    sf_packed relative;     /* (rows, hidden) */
    sf_packed matrix;       /* (hidden, hidden) */
} sf_step_places;

struct sf_bert_step {
    const sf_bert_layout *layout;
    sf_bert_options options;
    float *parameters, *gradient;
    sf_bert_net *net;
    sf_bert_matrices *back; /* of the trained layers: packed for the way back */
    size_t first;           /* trained layer */
    size_t start;           /* trained parameter */
    int embeddings;         /* are trained */
    size_t texts, capacity; /* of a batch: texts, pieces */
    sf_bert_rows *saved;    /* of the trained layers; the frozen share one */
    sf_bert_rows frozen;
    sf_view x, last, embedded; /* (N, hidden): F32; the last layer's output as a factor; embeddings before the norm */
    sf_view d;                 /* (N, hidden) F32: the gradient on its way down */
    sf_view through;           /* (N, hidden) F32: prenorm: that which passes a norm */
    sf_view douter, dinner, dattention, dcontext, dqkv; /* as factors */
    sf_step_weight weights[SF_STEP_MATRICES];
    sf_step_places places;
    float *partial; /* (blocks, partial_size) */
    size_t partial_size;
    float *features, *dropped, *masks, *dfeatures, *probabilities;
    float *room; /* (8, the wider of hidden and width): of the head and of the embeddings */
    sf_step_worker *workers;
    int threads;
    sf_step_chunk *chunks;
    size_t chunk_count;
    double *squares; /* (chunks) */

    /* The batch at hand. */
    const sf_bert_batch *batch;
    size_t rows, layer;
    double rate, scale;
    uint64_t number;
    float *means, *variances;
};

/* What the forward pass of a layer left; the view from a row on. */
static inline sf_bert_rows *sf_step_rows(sf_bert_step *s, size_t layer)
{
    return layer < s->first ? &s->frozen : &s->saved[layer - s->first];
}

static inline sf_view sf_step_shift(sf_view view, size_t row) { return view.values ? sf_view_at(view, row, 0) : view; }

sf_bert_rows sf_step_shifted(const sf_bert_rows *rows, size_t row);

/* bert_back.c: from the gradient of the last layer's output, in `d`, to all trained parameters but the head's. */
void sf_step_backward(sf_bert_step *step);

/* bert_attend_back.c: memory, and dqkv of a head of a text; `index` is the worker's. */
int sf_step_worker_new(sf_step_worker *worker, const sf_bert_step *step);
void sf_step_worker_free(sf_step_worker *worker);
void sf_step_attend_back(sf_bert_step *step, size_t text, size_t head, int index);

/* bert_embed_back.c: of the embeddings and of the table of distances, which layers add to. */
int sf_step_places_new(sf_step_places *places, const sf_bert_step *step);
void sf_step_places_free(sf_step_places *places);
void sf_step_places_begin(sf_bert_step *step);
void sf_step_places_layer(sf_bert_step *step);
void sf_step_embeddings(sf_bert_step *step);

#endif
