/* The `charcnn` classifier: its weights in the form that answers, and the dense layers.
 *
 * The convolutions are in model/charcnn_pass.h. For the files of charcnn here and in training. */
#ifndef SF_MODEL_CHARCNN_NET_H
#define SF_MODEL_CHARCNN_NET_H

#include "model/charcnn_layout.h"
#include "model/arithmetic.h"

/* Of dense weights, which no cache holds: a part that the second-level cache does. */
enum { SF_CHARCNN_SLICE = 1024, SF_CHARCNN_PIECE = 128 };

/* The weights in the form that answers. */
typedef struct sf_charcnn_net {
    sf_charcnn_layout layout;
    sf_dtype type; /* of products and frames: BF16, or F32 for checks */
    sf_isa isa;
    float *table;                     /* (F/16, codes, 7, 16): the first convolution */
    float *bias;                      /* (6, F) */
    sf_packed conv[SF_CHARCNN_CONVS]; /* the first is not used */
    sf_packed *hidden[2];             /* (slices, pieces): SF_CHARCNN_SLICE inputs, SF_CHARCNN_PIECE outputs each */
    size_t slices[2], pieces;
    float *hidden_bias; /* (2, H) */
    float *output_weight, *output_bias;
    void *blank[SF_CHARCNN_STAGES];     /* (F): the frame that sees only blanks */
    struct sf_charcnn_pass *blank_pass; /* of one text, all blank: how they were computed */
    uint8_t *blank_codes;               /* (L) */
    void *blank_out;                    /* (inputs) */
} sf_charcnn_net;

/* Memory for the weights; they are undefined until loaded. */
safer_status sf_charcnn_net_new(sf_charcnn_net **out, const sf_charcnn_layout *layout, sf_arithmetic arithmetic,
                                safer_error *error);
void sf_charcnn_net_free(sf_charcnn_net *net);

/* Copies what it needs of the parameters. */
void sf_charcnn_net_load(sf_charcnn_net *net, const float *parameters, int threads);

/* Pieces first..last-1 of a dense layer with ReLU: out (count, H). */
void sf_charcnn_dense(float *out, sf_view in, const sf_charcnn_net *net, size_t layer, size_t first, size_t last,
                      size_t count);

#endif
