/* Training of models. Part of safer.h, which says what holds throughout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_TRAIN_H
#define SAFER_TRAIN_H

#include "safer/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum safer_arch {
    SAFER_ARCH_NGRAM, /* a linear model on hashed n-grams */
    SAFER_ARCH_BOW,   /* the mean of word vectors */
    SAFER_ARCH_CNN,   /* a convolution over word vectors */
    SAFER_ARCH_CHARCNN,
    SAFER_ARCH_BERT,
    SAFER_ARCH_CONTEXT /* a score for every word in the context of the canonical text; its worst case is exact */
} safer_arch;
SAFER_NAMED(safer_arch); /* "ngram", "bow", "cnn", "charcnn", "bert", "context" */

/* How the vectors of a text become one. */
typedef enum safer_pool {
    SAFER_POOL_DEFAULT, /* bow, cnn: mean; bert: the encoder's own */
    SAFER_POOL_MEAN,
    SAFER_POOL_MAX, /* bow, cnn */
    SAFER_POOL_CLS  /* bert: the first piece's */
} safer_pool;
SAFER_NAMED(safer_pool); /* "default", "mean", "max", "cls" */

/* Training by bounds over the lexicon's synonyms instead of draws. */
typedef enum safer_defense {
    SAFER_DEFENSE_NONE,
    SAFER_DEFENSE_IBP_JIA,
    SAFER_DEFENSE_IBP_HUANG,
    SAFER_DEFENSE_EXACT /* the worst case itself, of a bow without hidden layer */
} safer_defense;
SAFER_NAMED(safer_defense); /* "none", "ibp-jia", "ibp-huang", "exact" */

/* Which side of a text is cut off that has too many pieces. */
typedef enum safer_truncation_side {
    SAFER_TRUNCATION_DEFAULT, /* the encoder's */
    SAFER_TRUNCATION_LEFT,    /* its end is read */
    SAFER_TRUNCATION_RIGHT    /* its beginning is read */
} safer_truncation_side;
SAFER_NAMED(safer_truncation_side); /* "default", "left", "right" */

typedef enum safer_charcnn_size { SAFER_CHARCNN_SMALL, SAFER_CHARCNN_LARGE } safer_charcnn_size;
SAFER_NAMED(safer_charcnn_size); /* "small", "large" */

#define SAFER_ALL_LAYERS (-1)

/* SAFER_DEFAULT stands for what suits the architecture. */
typedef struct safer_train_options {
    size_t size;
    safer_arch arch;              /* cnn */
    const safer_data *train;      /* labelled */
    const safer_data *dev;        /* labelled, with train's labels; NULL: every 10th row of each class of train */
    const safer_lexicon *lexicon; /* texts are drawn from its kernel, again for every mini-batch; NULL: plain text */
    uint64_t seed;                /* 1 */
    int threads;                  /* 0: all cores; the result does not depend on it */
    int resume;                   /* all but ngram: continue from OUTPUT's checkpoint when there is one */
    safer_progress progress;      /* the stage shows epoch, loss and dev accuracy */

    /* The course of training: all but ngram. */
    struct {
        double dropout; /* bow, cnn 0.2; charcnn 0.5; bert 0.1 (of the pooled vector); context 0.5 (of what words are in
                          * their contexts) */
        double rate;    /* Adam's: 0.001; charcnn 0.002; bert 0.00006, and 0.001 for the head alone; context 2 */
        double decay;   /* weight decay: 0.0001; charcnn 0.1; bert 0.01, and 0.3 for the head alone; context 0.00001 */
        double clip;    /* the gradient's length at most, 0: any; bow, cnn 0; charcnn, bert 1 */
        double warmup;  /* share of the steps in which the rate rises; then it falls to 0. charcnn, bert: 0.1 */
        int batch;      /* texts per step; 32, charcnn 128 */
        int epochs;     /* at most; bow, cnn 10; charcnn 30; bert 3, and 20 for the head alone; context 12 */
        int patience;   /* epochs without a better dev accuracy before it stops; 0: any number. bow, cnn 3; else 0 */
        safer_pool pool;           /* bow, cnn, bert */
        safer_precision precision; /* charcnn, bert, context: of products; bf16 */
    } course;

    struct {
        int order; /* the longest n-gram; 3 */
        int bits;  /* size of the hashed feature table, a power of two; 22 */
    } ngram;

    /* bow and cnn */
    struct {
        const char *vectors; /* pretrained word vectors to start from; NULL: learned from random ones. A folder, or a
                              * file that ends in .safetensors or .onnx: an encoder, which reads every word alone */
        int dim;             /* of word vectors that are learned, or an encoder's; 100 */
        const char *widths;  /* cnn: filter widths, "3" or "3,4,5" */
        int filters;         /* cnn: per width; 100 */
        int hidden;          /* units of the layer before the output; 100 */
        int max_words;       /* only the first so many words of a text are read; 0: all */
        int min_count;       /* context too: words seen less often are unknown; 2 */
        int freeze;          /* word vectors are not trained */
    } cnn;

    /* bow and cnn, trained by bounds */
    struct {
        safer_defense kind; /* ibp: epochs is 60, clip 0.25 and patience 0 by default; exact: 12 epochs at rate 2 */
        double kappa;       /* weight of the worst case in the loss, in the end; 0.8, exact 1, context 1 */
        int ramp;           /* epochs in which that weight and the intervals grow from 0; two thirds of all, exact 0 */
        int train_vectors;  /* classification trains pretrained vectors too; else only triplets do. Without
                             * `vectors` it always does */
        double triplet;     /* weight of a loss that pulls vectors of synonyms together and others apart; 0 */
        double margin;      /* how far apart that loss moves other words; 10 */
    } defense;

    struct {
        int characters; /* read of a text; 1014 */
        safer_charcnn_size size;
    } charcnn;

    struct {
        const char *encoder; /* to start from: a converted encoder, a HuggingFace directory, or a trained model */
        int layers;          /* trained, from the top; 0: the head alone, as in the paper; SAFER_ALL_LAYERS: with
                              * the embeddings */
        int tokens;          /* most pieces of a text; 0: as many as the encoder takes, up to 512 */
        safer_truncation_side truncation_side;
    } bert;

    /* charcnn, bert: where it is trained, context: where its encoder reads the texts, as safer_model_set_device has it;
     * NULL: the CPU. Of several GPUs one is used. A checkpoint of one device can be resumed on another, and the model
     * is then neither's alone; but not one of context. */
    const char *device;

    /* Every token (word, number, mark) of a draw is deleted so often: for certificates with the same `deletion`.
     * Zeros: none is. With groups every draw keeps one of so many, by another hash each time. Not with a defense. */
    safer_deletion deletion;
    const char *arch_choice; /* a JSON object that the model's provenance gets under this name; NULL: nothing. What
                              * safer_train_choose tried */

    /* Above 1: so many models, with the seeds from `seed` on. `output`, whose name ends with ".json", is their sum, and
     * they lie beside it (both.json: both.1.safetensors, ...). Its weights are found on `dev`; without, all are 1. With
     * `resume` models that are there are kept. 1 to SAFER_SUM_MEMBERS; 1 */
    int seeds;

    /* context: besides course (rate, decay, dropout, epochs, batch), defense.kappa, cnn.min_count and, of bert, all but
     * `layers`. Its lexicon has the kernel representative, and becomes part of the model. */
    struct {
        int size; /* numbers of a word's context, at most 256; 16 */
    } context;
} safer_train_options;

typedef struct safer_train_report {
    size_t texts, tokens; /* read once each, without augmentation */
    size_t parameters;
    int epochs, best_epoch; /* run, and the one that is kept */
    double loss;            /* mean of the last epoch */
    double dev_accuracy;    /* of the kept model on draws of the dev texts (plain text without a lexicon); with a
                               * defense, and of context: the share of dev texts that its bounds certify */
    double seconds, tokens_per_second;
} safer_train_report; /* of several seeds: parameters and seconds add up, epochs are the most, loss and speed are means,
                       * of the models that were trained now; dev_accuracy is the sum's (without dev the mean) */

SAFER_OPTIONS(safer_train_options);

/* Trains and writes a model file (safetensors) at `output`, whole or not at all; beside
 * it, while training, a checkpoint that ends with the run. `report` may be NULL. */
SAFER_API safer_status safer_train(const char *output, const safer_train_options *options, safer_train_report *report,
                                   safer_error *error);

/* How the weights of a sum of models are found. */
typedef struct safer_sum_options {
    size_t size;
    int bounds;    /* for certificates by bounds (SAFER_METHOD_IBP): by what members prove, not by what they answer */
    uint64_t seed; /* of the draw of every text that members read, with a lexicon and without `bounds`; 1 */
    int threads;   /* 0: as many as there are cores; the result does not depend on it */
    safer_progress progress;
} safer_sum_options;

SAFER_OPTIONS(safer_sum_options);

typedef struct safer_sum_result {
    size_t members, texts;
    double weights[SAFER_SUM_MEMBERS]; /* of every member; 0: it does not help, and is left out */
    double before,
        after; /* the share of the texts that the sum answers rightly, or certifies: with its own weights, with
                           * these */
} safer_sum_result;

/* Finds the weights of `model`, a sum of models opened from the file `input`, on labelled texts that no member was
 * trained on, and writes the sum with them to `output`. Members read texts as the lexicon draws them (NULL: as they
 * are). docs/models.md */
SAFER_API safer_status safer_sum_fit(safer_sum_result *out, const char *output, const char *input,
                                     const safer_model *model, const safer_data *data, const safer_lexicon *lexicon,
                                     const safer_sum_options *options, safer_error *error);

/* How texts without labels get some. */
typedef struct safer_label_options {
    size_t size;
    double
        keep; /* only this share of the answered texts, rounded up to a whole number: those whose first class leads the
                   * second by most, of equals the first ones. Above 0, at most 1, which needs no scores; 1 */
    size_t
        batch;   /* texts that a thread asks about at once; the result does not depend on it; 0: what suits the model */
    int threads; /* 0: as many as there are cores; the result does not depend on it */
    safer_progress progress;
} safer_label_options;

SAFER_OPTIONS(safer_label_options);

typedef struct safer_label_summary {
    size_t texts, none, kept;       /* asked about; of these without an answer, and with a label in the end */
    size_t known, agreed;           /* answered texts that the data has a label of the model's for; answered so */
    size_t kept_known, kept_agreed; /* the same of those that are kept */
    int by_difference; /* 1: a remote model's scores are no probabilities, and a lead is their difference; else it is */
    double least_lead; /* the natural logarithm of how many times the first class is as probable as the second. This is
                        * the least of the kept texts; HUGE_VAL: the second class has nothing */
    double seconds;
} safer_label_summary;

/* What a model says of every text as it is written: labels[i] gets the class of text i, or -1 where there was no answer
 * or the text is not kept. When it fails or is cancelled, they have what was answered until then. The data's own labels
 * are compared and otherwise not used; safer_data_write makes a data set of the new ones, to train from. `out` may be
 * NULL. docs/train.md */
SAFER_API safer_status safer_label(safer_label_summary *out, int *labels, const safer_model *model,
                                   const safer_data *data, const safer_label_options *options, safer_error *error);

#ifdef __cplusplus
}
#endif
#endif
