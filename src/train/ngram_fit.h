/* Fitting the n-gram classifier. */
#ifndef SF_TRAIN_NGRAM_FIT_H
#define SF_TRAIN_NGRAM_FIT_H

#include "base/progress.h"
#include "model/ngram.h"

typedef struct sf_ngram_example {
    const uint32_t *features; /* distinct buckets */
    uint32_t count;
    int label;
} sf_ngram_example;

typedef struct sf_ngram_settings {
    double cost;      /* C: what an error costs beside the squared weights */
    double alpha;     /* added to the naive-Bayes counts */
    double weight;    /* of one example: 1, or 1/copies when each text is there several times */
    int passes;       /* over the examples, at most */
    double tolerance; /* stop when no probability is off by more */
    uint64_t seed;    /* of the order in which examples are visited */
    int threads;
    int worker; /* the calling thread's index, for the meter */
} sf_ngram_settings;

typedef struct sf_ngram_fitted {
    int passes;
    double loss; /* mean logarithmic loss of the last pass, each example before its update */
} sf_ngram_fitted;

/* Writes weights (2^bits, outputs) and bias (outputs). `meter`, which may be NULL, advances
 * by one per example, pass and output; it may ask to stop. */
safer_status sf_ngram_fit(float *weights, float *bias, const sf_ngram_example *examples, size_t count, size_t classes,
                          int bits, const sf_ngram_settings *settings, sf_meter *meter, sf_ngram_fitted *fitted,
                          safer_error *error);

#endif
