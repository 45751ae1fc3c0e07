/* The `charcnn` classifier, from the inside: the character-level convolutional network of
 * Zhang, Zhao & LeCun (2015), "Character-level Convolutional Networks for Text
 * Classification".
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
 * The first convolution multiplies nothing: a character is one row of weights a tap, and a
 * frame is the bias plus seven rows. The others are products whose left rows overlap.
 *
 * Blanks. Convolutions without padding give the same frame wherever they read the same,
 * so one frame a stage stands for all that see only blanks. It is computed when weights
 * are loaded; of a text only the frames that depend on its characters are computed, and
 * followed by as many copies of the blank frame as the next stage looks at. */
#ifndef SF_MODEL_CHARCNN_H
#define SF_MODEL_CHARCNN_H

#include "model/model.h"
#include "train/train.h"
#include "nn/product.h"

enum {
    SF_CHARCNN_ALPHABET = 69,
    SF_CHARCNN_CODES = SF_CHARCNN_ALPHABET + 1, /* 0 is blank */
    SF_CHARCNN_CONVS = 6,
    SF_CHARCNN_WIDE = 7,   /* width of the first two convolutions */
    SF_CHARCNN_NARROW = 3, /* of the others */
    SF_CHARCNN_POOL = 3,
    SF_CHARCNN_LANES = 16,     /* features are a multiple of this */
    SF_CHARCNN_SHORTEST = 123, /* the fewest characters that leave a frame */
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

/* --------------------------------------------------------------- characters */

/* The code of a character of any case: 1..69, or 0 for blanks and all others. */
uint8_t sf_charcnn_code(uint32_t character);

/* The codes of the first `limit` characters; returns how many there are. A byte that is
 * not UTF-8 is a character of its own, and blank: so the codes of parts that are put
 * together are the codes of the whole. */
size_t sf_charcnn_encode(uint8_t *codes, const char *text, size_t length, size_t limit);

/* --------------------------------------------------------------- row kernels */

/* The network's own loops, with the same bits on every instruction set. A view's rows are
 * frames of F features, F32 or BF16; gradients that come in are f32 rows of F. */

/* Frames of stage A: frame p of `count` is the largest of the first convolution's frames
 * 3p..3p+2, rectified. Only features block*16 .. block*16+15 are made. table: (codes, 7,
 * 16) of this block. which: where the largest was, may be NULL. */
void sf_charcnn_first(sf_view out, uint8_t *which, const float *table, const float *bias, const uint8_t *codes,
                      size_t count, size_t block, sf_isa isa);

/* Where each code occurs among the first `count`: places (count), code after code, those of
 * code c from begin[c] to begin[c+1]. begin: (codes + 1). */
void sf_charcnn_places(uint32_t *places, uint32_t *begin, const uint8_t *codes, size_t count);

/* Adds the gradients of the block: of the table (codes, 7, 16; nothing for blanks) and the
 * bias (16), from that of stage A's frames. places: of the 3 * count + 6 characters that
 * were read. spread: (3 * count + 12, 16) to work in. */
void sf_charcnn_first_backward(float *dtable, float *dbias, float *spread, const float *dout, sf_view out,
                               const uint8_t *which, const uint32_t *places, const uint32_t *begin, size_t count,
                               size_t block, sf_isa isa);

/* Row p of out is the largest of rows 3p..3p+2, which are rectified already. */
void sf_charcnn_pool(sf_view out, uint8_t *which, sf_view in, size_t count, size_t F, sf_isa isa);

/* din rows 3p..3p+2 =: the gradient goes to the largest where it was above 0. dbias (F)
 * gets its sums over rows. */
void sf_charcnn_pool_backward(sf_view din, float *dbias, const float *dout, sf_view out, const uint8_t *which,
                              size_t count, size_t F, sf_isa isa);

/* din = dout where out is above 0, else 0; dbias (F) gets its sums over rows. */
void sf_charcnn_relu_backward(sf_view din, float *dbias, const float *dout, sf_view out, size_t rows, size_t F,
                              sf_isa isa);

/* ------------------------------------------------------------------- the net */

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

/* Of dense weights, which no cache holds: a part that the second-level cache does. */
enum { SF_CHARCNN_SLICE = 1024, SF_CHARCNN_PIECE = 128 };

/* Memory for the weights; they are undefined until loaded. */
safer_status sf_charcnn_net_new(sf_charcnn_net **out, const sf_charcnn_layout *layout, sf_dtype type,
                                safer_error *error);
void sf_charcnn_net_free(sf_charcnn_net *net);

/* Copies what it needs of the parameters. */
void sf_charcnn_net_load(sf_charcnn_net *net, const float *parameters, int threads);

/* Pieces first..last-1 of a dense layer with ReLU: out (count, H). */
void sf_charcnn_dense(float *out, sf_view in, const sf_charcnn_net *net, size_t layer, size_t first, size_t last,
                      size_t count);

/* Some texts on their way through the convolutions. Their rows lie one after the other;
 * at stages A and B a text has `rows` rows, of which the first `used` depend on its
 * characters and the rest are blank frames. Frames at the seams between texts, computed
 * from both, are looked at by nobody. */
typedef struct sf_charcnn_extent {
    size_t used[SF_CHARCNN_STAGES]; /* frames that depend on the characters */
    size_t rows[SF_CHARCNN_C];      /* kept at A and B */
    size_t first[SF_CHARCNN_C];     /* where they begin */
} sf_charcnn_extent;

typedef struct sf_charcnn_pass {
    size_t capacity, count;
    size_t total[SF_CHARCNN_C]; /* rows at A and B */
    sf_charcnn_extent *extents; /* (capacity) */
    int keep;                   /* for the backward pass: what follows is kept apart */
    void *frames[SF_CHARCNN_C]; /* (rows, F) of stages A and B */
    void *between[3];           /* (rows of B, F): after the third, fourth and fifth convolution */
    void *raw;                  /* (rows, F) before pooling */
    uint8_t *which[SF_CHARCNN_STAGES];
} sf_charcnn_pass;

safer_status sf_charcnn_pass_new(sf_charcnn_pass **out, const sf_charcnn_net *net, size_t texts, int keep,
                                 safer_error *error);
void sf_charcnn_pass_free(sf_charcnn_pass *pass);

/* Sends `count` texts through: codes (count, L), blank where a text has ended; lengths
 * (count), at most L each. out (count, inputs) of the net's type. */
void sf_charcnn_pass_run(sf_charcnn_pass *pass, void *out, const sf_charcnn_net *net, const uint8_t *codes,
                         const size_t *lengths, size_t count);

/* ------------------------------------------------------ the model, its file */

typedef struct sf_charcnn_model {
    safer_model base;
    sf_safetensors *file; /* what another precision is made from */
    sf_charcnn_layout layout;
    sf_charcnn_net *net;
    char arithmetic[32];
} sf_charcnn_model;

extern const sf_model_class sf_charcnn_class;
void sf_charcnn_model_free(sf_charcnn_model *model);

/* Takes the file over on success only. Answers come from products in bf16 ... */
safer_status sf_charcnn_open(safer_model **out, sf_safetensors *file, safer_error *error);

/* ... until another precision, SF_F32 or SF_BF16, is asked for. */
safer_status sf_charcnn_set_precision(safer_model *model, sf_dtype type, safer_error *error);

safer_status sf_charcnn_save(const char *path, const sf_charcnn_layout *layout, const float *parameters,
                             const char *labels, const char *trained_with, safer_error *error);

/* How many leading slots can be seen: the others begin behind the last character that is
 * read, in every draw of this text and of every text with words exchanged for synonyms. */
size_t sf_charcnn_visible(const void *prepared);

typedef struct sf_charcnn_scratch sf_charcnn_scratch;
safer_status sf_charcnn_scratch_new(const sf_charcnn_net *net, sf_charcnn_scratch **out, safer_error *error);
void sf_charcnn_scratch_free(sf_charcnn_scratch *scratch);

/* (texts, classes) of the last answers, by whichever way; of the last 128 at most. */
const float *sf_charcnn_scratch_logits(const sf_charcnn_scratch *scratch);

/* The classes of texts given as codes (count, L) and lengths; probabilities (count,
 * classes) and logits (count, classes) may be NULL. */
void sf_charcnn_classify_codes(int *labels, float *probabilities, float *logits, const sf_charcnn_net *net,
                               const uint8_t *codes, const size_t *lengths, size_t count, sf_charcnn_scratch *scratch);

/* ------------------------------------------------------------------- scaling */

/* What is trained is not the weights W of a matrix but V and a gain g for each output:
 *
 *   W = g (V - mean V) / (rms(V - mean V) sqrt(n m))
 *
 * over the n inputs of the output, m being the mean square expected of an input: "weight
 * standardisation" (Qiao et al. 2019), as in networks without normalising layers (Brock et
 * al. 2021). Frames are nowhere negative, so without it a step of Adam moves a sum of
 * thousands of inputs by a multiple of its spread, and the network ends up answering the
 * same for all texts. Measured on IMDB (a prototype in PyTorch), dev accuracy after 15
 * epochs: 0.52 to 0.57 with plain weights at seven rates, 0.79 with standardised ones. The
 * file holds W: the answering network is the paper's. */
typedef struct sf_charcnn_scaling sf_charcnn_scaling;

safer_status sf_charcnn_scaling_new(sf_charcnn_scaling **out, const sf_charcnn_layout *layout, int threads,
                                    safer_error *error);
void sf_charcnn_scaling_free(sf_charcnn_scaling *scaling);

/* parameters (size) = what trained (layout->trained) stands for. */
void sf_charcnn_scale(float *parameters, sf_charcnn_scaling *scaling, const float *trained);

/* gradient (trained) of what the last sf_charcnn_scale saw, from the gradient (size) of the
 * parameters that lies in it. */
void sf_charcnn_scale_backward(float *gradient, sf_charcnn_scaling *scaling, const float *trained);

/* ---------------------------------------------------------------- one step */

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

/* ---------------------------------------------------------------- training */

/* What the options of safer_train do not say. */
typedef struct sf_charcnn_plan {
    size_t features, hidden; /* small: 256, 1024; large: 1024, 2048 */
    double smoothing;        /* of the labels */
    /* How a training text is changed beside the draws of its slots: */
    double blanked; /* share of its runs between blanks that are blanked */
    double moved;   /* probability to begin anywhere, so that its end may be read */
    int shift;      /* fewer than so many of its first characters are left out */
} sf_charcnn_plan;

sf_charcnn_plan sf_charcnn_plan_of(const safer_train_options *options);

safer_status sf_charcnn_train_plan(const char *output, const safer_train_options *options, const sf_charcnn_plan *plan,
                                   safer_train_report *report, safer_error *error);
safer_status sf_charcnn_train(const char *output, const safer_train_options *options, safer_train_report *report,
                              safer_error *error);

#endif
