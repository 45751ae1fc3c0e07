/* The n-gram classifier: a linear function of which n-grams of tokens occur in a text.
 *
 *   1. The tokens are the text's words (text/word.h: lower-cased letters, apostrophes kept)
 *      and what stands between them: runs of the digits 0-9, every other ASCII mark by
 *      itself, runs of bytes beyond ASCII; spaces and control characters are ignored. Each
 *      token is hashed to 64 bits.
 *   2. For n = 1 .. ngrams and every position, the hashes of n tokens in a row are combined
 *      and the top `bits` bits name a bucket. A bucket counts once per text.
 *   3. Each class has a weight per bucket and a bias. Its score is the bias plus the sum over
 *      the text's k buckets times 16/sqrt(k), so that long texts do not count for more; the
 *      largest score wins, ties go to the lowest class. With two classes there is one
 *      score, for class 1 against 0.
 *
 * The sum runs over buckets in the order of their first occurrence, in double precision.
 * Classifying a draw combines the hashes of the drawn words and goes through the same
 * function as classifying its rendered text: the answers are equal bit for bit.
 *
 * File: tensors "weights" F32 (2^bits, outputs) and "bias" F32 (outputs), outputs being 1
 * for two classes; metadata "arch" = "ngram", "ngrams", "hashing" = "1", "cost" (the C that
 * was chosen; for the reader only), labels and trained_with as every model. */
#ifndef SF_MODEL_NGRAM_H
#define SF_MODEL_NGRAM_H

#include "model/model.h"

/* ---------------------------------------------------------------- features */

/* The buckets of one text at a time. Zero-initialise; reused from text to text. */
typedef struct sf_ngram_scratch {
    uint64_t *hashes;  /* of the tokens */
    uint64_t *states;  /* of the n-grams that begin at each token */
    uint32_t *places;  /* of each slot: which token it is */
    uint32_t *buckets; /* the result: distinct */
    struct {
        uint32_t bucket, stamp;
    } * seen; /* a hash set, emptied by a new stamp */
    double *sums;
    size_t hash_capacity, state_capacity, place_capacity, bucket_capacity, seen_capacity, sum_capacity;
    uint32_t stamp;
    sf_word_reader reader;
} sf_ngram_scratch;

void sf_ngram_scratch_clear(sf_ngram_scratch *scratch);

uint64_t sf_ngram_word_hash(const char *key, size_t length);

/* Fills `hashes` with the tokens of a text; *tokens gets their number. -1 without memory. */
int sf_ngram_read(sf_ngram_scratch *scratch, const char *text, size_t length, size_t *tokens);

/* The same from a text already read, and `places`. */
int sf_ngram_read_slots(sf_ngram_scratch *scratch, const sf_slots *slots, size_t *tokens);

/* Room for the hashes and buckets of so many tokens. -1 without memory. */
int sf_ngram_reserve(sf_ngram_scratch *scratch, size_t tokens, int ngrams);

/* `buckets` of the first `tokens` hashes, after sf_ngram_reserve; returns how many. */
size_t sf_ngram_features(sf_ngram_scratch *scratch, size_t tokens, int ngrams, int bits);

/* ------------------------------------------------------------------- model */

typedef struct sf_ngram {
    safer_model base;
    int ngrams, bits;
    size_t outputs; /* 1 for two classes, else the classes */
    float *weights; /* (2^bits, outputs) */
    float *bias;    /* (outputs) */
} sf_ngram;

#define SF_NGRAM_HASHING "1" /* changes whenever a text's buckets do */

/* How many weights a bucket has. */
size_t sf_ngram_outputs(size_t classes);

/* 16/sqrt(count): 1 for a text of 256 buckets. 0 for an empty one. */
double sf_ngram_scale(size_t count);

/* sums (outputs): the scores of a text with these buckets. */
void sf_ngram_sum(double *sums, const uint32_t *buckets, size_t count, const float *weights, const float *bias,
                  size_t outputs);

/* The winner; scores, when not NULL, gets (classes) probabilities. */
int sf_ngram_decide(const double *sums, size_t classes, float *scores);

/* The fast path with scores: labels (count), scores (count, classes) or NULL. */
safer_status sf_ngram_sample_scores(const safer_model *model, const void *prepared, const uint32_t *draws, size_t count,
                                    int *labels, float *scores, void *scratch, safer_error *error);

#endif
