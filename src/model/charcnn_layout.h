/* The `charcnn` classifier: what it computes, its shape, and where its parameters lie.
 *
 * It is the character-level convolutional network of Zhang, Zhao & LeCun (2015), "Character-level
 * Convolutional Networks for Text Classification".
 *
 * A text is its first L characters, each lower-cased on its own and looked up in an
 * alphabet of 69; every other character (the space too, as in the paper) is blank, and a
 * shorter text is filled up with blanks. Six convolutions over time follow, without
 * padding, of width 7, 7, 3, 3, 3, 3, each with a bias and ReLU; the 1st, 2nd and 6th are
 * followed by the maximum over every three frames (a rest of one or two is dropped). All
 * that remains goes through two dense layers with ReLU and a linear output layer:
 *
 *   characters            L
 *   A   conv 7, pool 3    (L-6)/3 frames of F features
 *   B   conv 7, pool 3    (A-6)/3
 *   C   4 x conv 3, pool  (B-8)/3
 *   dense, dense          H units each, dropout after each in training
 *   output                classes
 *
 * The paper's alphabet names the hyphen twice, hence 69 and not 70, and its texts run
 * backwards, which only renames the taps of the filters.
 *
 * The first convolution multiplies nothing: a character is one row of weights per tap, and a
 * frame is the bias plus seven rows (nn/frames.h). The others are products whose left rows
 * overlap.
 *
 * Blanks. Convolutions without padding give the same frame wherever they read the same,
 * so one frame per stage stands for all that see only blanks. It is computed when weights
 * are loaded; of a text only the frames that depend on its characters are computed, and
 * followed by as many copies of the blank frame as the next stage reads. */
#ifndef SF_MODEL_CHARCNN_LAYOUT_H
#define SF_MODEL_CHARCNN_LAYOUT_H

#include "nn/convnet.h"
#include "nn/frames.h"

enum {
    SF_CHARCNN_ALPHABET = 69,
    SF_CHARCNN_CODES = SF_CHARCNN_ALPHABET + 1, /* 0 is blank */
    SF_CHARCNN_CONVS = 6,
    SF_CHARCNN_WIDE = SF_FRAME_TAPS,   /* 7: width of the first two convolutions */
    SF_CHARCNN_NARROW = 3,             /* of the others */
    SF_CHARCNN_POOL = SF_FRAME_POOL,   /* 3 frames */
    SF_CHARCNN_LANES = SF_FRAME_LANES, /* 16: features are a multiple of this */
    SF_CHARCNN_SHORTEST = 123,         /* the fewest characters that leave a frame */
    SF_CHARCNN_LONGEST = 1 << 16,
    SF_CHARCNN_TENSORS = 2 * (SF_CHARCNN_CONVS + 3),
    SF_CHARCNN_MATRICES = SF_CHARCNN_CONVS + 1, /* all convolutions but the first, and the dense layers */
};

/* What follows the characters: after the first, second and last pooling. */
enum { SF_CHARCNN_A, SF_CHARCNN_B, SF_CHARCNN_C, SF_CHARCNN_STAGES };

typedef struct sf_charcnn_shape {
    size_t characters; /* L: SF_CHARCNN_SHORTEST .. SF_CHARCNN_LONGEST */
    size_t features;   /* F: a multiple of SF_CHARCNN_LANES */
    size_t hidden;     /* H */
    size_t classes;
} sf_charcnn_shape;

/* Where each tensor lies in the one array of parameters. */
typedef struct sf_charcnn_layout {
    sf_charcnn_shape shape;
    struct {
        char name[24];
        size_t rank, shape[3], count, offset;
    } tensors[SF_CHARCNN_TENSORS];
    size_t tensor_count;
    size_t size;                      /* all parameters */
    size_t frames[SF_CHARCNN_STAGES]; /* of a text */
    size_t inputs;                    /* of the first dense layer: frames[C] * F */
    /* Offsets. The convolutions' tensors come first and end at `convolutions`. */
    size_t conv_weight[SF_CHARCNN_CONVS]; /* (69, 7, F), then (width, F, F): tap, input, output */
    size_t conv_bias[SF_CHARCNN_CONVS];   /* (F) */
    size_t convolutions;
    size_t hidden_weight[2];           /* (inputs, H), (H, H): input, output */
    size_t hidden_bias[2];             /* (H) */
    size_t output_weight, output_bias; /* (classes, H), (classes) */
    /* Training has a gain for every output of the matrices, behind the parameters. */
    size_t gains[SF_CHARCNN_MATRICES];
    size_t trained; /* all parameters and gains */
} sf_charcnn_layout;

/* The shape must be in range. */
void sf_charcnn_layout_make(sf_charcnn_layout *out, const sf_charcnn_shape *shape);

size_t sf_charcnn_width(size_t convolution); /* 7, 7, 3, 3, 3, 3 */

/* The same as devices are told it. */
sf_convnet sf_charcnn_convnet(const sf_charcnn_layout *layout);

#endif
