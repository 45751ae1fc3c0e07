/* One training step by interval bounds, from the inside: what ibp_step.c, ibp_batch.c and
 * ibp_triplet.c share. */
#ifndef SF_TRAIN_IBP_INSIDE_H
#define SF_TRAIN_IBP_INSIDE_H

#include "base/rng.h"
#include "train/ibp_step.h"

/* Words of a product; columns of a worker's share; other words of a triplet. */
enum { SF_IBP_BLOCK = 256, SF_IBP_COLUMNS = 32, SF_IBP_OTHERS = 8 };

/* The three runs through the text. */
enum { SF_VALUE, SF_LOW, SF_HIGH, SF_IBP_RUNS };

struct sf_ibp_step {
    sf_ibp_layout layout;
    const sf_ibp_sets *sets;
    sf_ibp_options options;
    sf_stream dropout, others;

    uint32_t *word_place;           /* (vocabulary): where a word is among the batch's, or SF_NONE */
    uint32_t *item_place;           /* (vocabulary + sets): the same among the types */
    uint32_t *words;                /* (W): the batch's words */
    uint32_t *types;                /* (U): the batch's items, sets first */
    uint32_t *single;               /* those that stay, while they are being numbered */
    uint32_t *own;                  /* (U): the word itself, among the batch's */
    uint32_t *members;              /* words of the sets, among the batch's */
    size_t *member_begin;           /* (S+1) */
    uint32_t *rows_of[SF_IBP_RUNS]; /* (words): the row of each position */
    uint32_t *text;                 /* (words): the text each position is in */
    uint32_t *occurrences;          /* (words): where each type occurs */
    size_t *begin;                  /* (U+1): in the occurrences */
    uint32_t other[SF_IBP_OTHERS];  /* a triplet's other words, among the batch's */
    size_t W, S, U;                 /* words, sets, types */

    /* Parts of one piece of memory, set again for every batch. */
    float *memory;
    size_t capacity;
    float *vectors, *dvectors;                             /* (W, D) */
    float *pre, *dpre;                                     /* (W, Q) */
    float *hull, *dhull;                                   /* (U+2S, Q) */
    uint32_t *arg_low, *arg_high;                          /* (S, Q): which word gives the end */
    float *centre, *radius;                                /* (S, Q): Jia's cnn */
    float *rows, *drows;                                   /* (U+2S, R): or the hull itself */
    float *x[SF_IBP_RUNS];                                 /* (words, F): activations, then their gradients */
    uint32_t *arg[SF_IBP_RUNS];                            /* (texts, F): of max pooling, where the greatest is */
    float *dbias;                                          /* (SF_IBP_RUNS, texts, F) */
    float *features[SF_IBP_RUNS], *dfeatures[SF_IBP_RUNS]; /* (texts, F) */
    float *feature_mask;                                   /* (texts, F) */
    float *mid[SF_IBP_RUNS];                               /* (texts, F): value, centre, radius, dropped out */
    float *before[SF_IBP_RUNS];                            /* (texts, H): value, centre, radius; then gradients */
    float *after[SF_IBP_RUNS];       /* (texts, H): value, centre, radius, dropped out; then gradients */
    float *hidden_mask;              /* (texts, H) */
    float *logits, *worst, *dlogits; /* (texts, K) */
    float *conv_parts;               /* (blocks, 2, R, Q) */
    float *first_parts;              /* (blocks, Q, D) */
    float *bias_parts;               /* (blocks, Q) */
    float *pull, *apart;             /* (U): a triplet's excess; (U, SF_IBP_OTHERS): distances from the others */
    float *conv_size, *hidden_size;  /* |W| */
    float *dafter;                   /* (SF_IBP_RUNS, H): of one text */

    float *gradient; /* (size - vocabulary * dim): of all behind the word vectors */

    /* Of the step in progress. */
    const float *parameters;
    const sf_ibp_batch *batch;
    float eps, kappa;
    uint64_t number;
};

static inline size_t sf_ibp_blocks(size_t count) { return (count + SF_IBP_BLOCK - 1) / SF_IBP_BLOCK; }
static inline int sf_ibp_has_taps(const sf_ibp_step *s)
{
    return s->layout.shape.wordwise && s->layout.shape.convolution;
}
/* Whether the word vectors are trained, by one loss or the other. */
static inline int sf_ibp_moves_vectors(const sf_ibp_step *s) { return !s->options.freeze || s->options.triplet > 0; }

/* Numbers the words, items and positions of s->batch (ibp_batch.c). */
void sf_ibp_step_number(sf_ibp_step *step);

/* Carves the arrays for a batch that was numbered. */
safer_status sf_ibp_step_room(sf_ibp_step *step, safer_error *error);

/* Adds the gradient of the triplet loss, and returns that loss for the whole batch (ibp_triplet.c). */
double sf_ibp_triplets(sf_ibp_step *step);

#endif
