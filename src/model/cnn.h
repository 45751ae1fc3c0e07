/* The `bow` and `cnn` classifiers, from the inside: for this room, and for ibp and train, which bound
 * and train what is declared here. Everything else uses model.h.
 *
 * Words are numbered by the model's own vocabulary, 0 being every unknown word. `cnn`:
 * word vectors, convolutions of one or more widths, ReLU, mean or maximum over the
 * positions of the text, an optional hidden layer with ReLU, softmax. `bow`: the word
 * vectors themselves are pooled; it is treated as one convolution of width 1 that
 * multiplies by nothing and rectifies nothing.
 *
 * Training works with the float parameters. Answers come from sf_cnn_net, which holds
 * the same network in the look-up form of nn/lookup.h: its whole-number rows *define*
 * the answer, for whole texts and for draws alike. */
#ifndef SF_MODEL_CNN_H
#define SF_MODEL_CNN_H

#include "base/words.h"
#include "model/model.h"
#include "nn/lookup.h"

enum { SF_CNN_WIDTHS = 16, SF_CNN_WIDEST = 100, SF_CNN_TENSORS = 1 + 2 * SF_CNN_WIDTHS + 4 };

typedef struct sf_cnn_shape {
    int convolution; /* 1: cnn; 0: bow, with one width of 1 and dim filters */
    int max_pool;
    size_t vocabulary; /* with the unknown word */
    size_t dim;
    size_t widths[SF_CNN_WIDTHS], width_count;
    size_t filters; /* per width */
    size_t hidden;  /* 0: no hidden layer */
    size_t classes;
    size_t max_words; /* words read; at most SF_LOOKUP_POSITIONS */
} sf_cnn_shape;

/* Where each tensor lies in the one array of parameters. */
typedef struct sf_cnn_layout {
    sf_cnn_shape shape;
    struct {
        char name[40];
        size_t rank, shape[3], count, offset;
    } tensors[SF_CNN_TENSORS];
    size_t tensor_count;
    size_t size;     /* all parameters */
    size_t row;      /* R: sum of widths * filters, a word's row of U */
    size_t features; /* P: width_count * filters */
    size_t inputs;   /* of the output layer: hidden, or the features without one */
    /* Offsets. Convolutions of all widths lie together: (R, dim) and (P). */
    size_t embedding, conv_weight, conv_bias, hidden_weight, hidden_bias, output_weight, output_bias;
} sf_cnn_layout;

void sf_cnn_layout_make(sf_cnn_layout *out, const sf_cnn_shape *shape);

/* ----------------------------------------------------------------- the net */

typedef struct sf_cnn_net sf_cnn_net;

/* How many quanta are in 1, for every feature: as fine as the vocabulary's largest row
 * allows. scale (P) is part of the model file. 0, or -1 when memory is out. */
int sf_cnn_scales(float *scale, const sf_cnn_layout *layout, const float *parameters, int threads);

/* Parameters are borrowed. Rows are made when they are first needed. */
safer_status sf_cnn_net_new(sf_cnn_net **out, const sf_cnn_layout *layout, const float *parameters, const float *scale,
                            safer_error *error);
void sf_cnn_net_free(sf_cnn_net *net);

typedef struct sf_cnn_scratch sf_cnn_scratch;
safer_status sf_cnn_scratch_new(const sf_cnn_net *net, sf_cnn_scratch **out, safer_error *error);
void sf_cnn_scratch_free(sf_cnn_scratch *scratch);

/* (classes) of the last answer, by whichever way. */
const float *sf_cnn_scratch_logits(const sf_cnn_scratch *scratch);

/* The class of a text given as word numbers; probabilities (classes) may be NULL. Words
 * after max_words are not looked at. */
safer_status sf_cnn_classify_ids(int *label, float *probabilities, const sf_cnn_net *net, const uint32_t *ids,
                                 size_t count, sf_cnn_scratch *scratch, safer_error *error);

/* The parts of an answer, for bounding it (ibp/bounds.c). A word's row holds all its taps as
 * whole numbers; the features (features) are those of a text whose `count` words (at most
 * max_words) have these rows. Each is a rising function of every number of every row: sums,
 * maxima and ReLU rise, and so does rounding. They live in the scratch until the next call. */
const sf_cnn_layout *sf_cnn_net_layout(const sf_cnn_net *net);
const float *sf_cnn_net_parameters(const sf_cnn_net *net);
size_t sf_cnn_row_length(const sf_cnn_net *net);
const double *sf_cnn_units(const sf_cnn_net *net); /* (features): what 1 in a row is worth */
const int16_t *sf_cnn_row(const sf_cnn_net *net, uint32_t word, sf_cnn_scratch *scratch);
safer_status sf_cnn_features(const float **features, const sf_cnn_net *net, const int16_t *const *rows, size_t count,
                             sf_cnn_scratch *scratch, safer_error *error);

/* ----------------------------------------------------- the model, its file */

typedef struct sf_cnn_model {
    safer_model base;
    float *parameters;
    sf_words words; /* word k has number k + 1 */
    sf_cnn_net *net;
} sf_cnn_model;

extern const sf_model_class sf_bow_class, sf_cnn_class;
static inline int sf_cnn_is(const safer_model *model)
{
    return model->class == &sf_bow_class || model->class == &sf_cnn_class;
}
void sf_cnn_model_free(sf_cnn_model *model);

/* The number of a word (its key) in the model's vocabulary: 0 when it is unknown. */
uint32_t sf_cnn_number(const sf_cnn_model *model, const char *key, size_t length);

safer_status sf_cnn_save(const char *path, const sf_cnn_layout *layout, const float *parameters, const float *scale,
                         const sf_words *words, const char *labels, const char *trained_with, safer_error *error);

/* The words, each followed by a newline. 0, or -1 when memory is out. */
int sf_cnn_words_pack(sf_buffer *out, const sf_words *words);
/* The words of such a tensor. */
safer_status sf_cnn_words_read(sf_words *words, const sf_safetensors *file, const char *name, safer_error *error);

#endif
