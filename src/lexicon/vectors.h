/* Word vectors: reading GloVe text and word2vec binary files. */
#ifndef SF_LEXICON_VECTORS_H
#define SF_LEXICON_VECTORS_H

#include "lexicon/dropped.h"
#include "safer.h"

/* count x dim numbers, row by row, for the words' lower-cased forms. */
typedef struct sf_vectors {
    sf_words words;
    float *values; /* (count, dim) */
    size_t dim;
    /* What the file held, and what was set aside. */
    size_t rows;
    size_t duplicates; /* the same key again: the one that was lower case, else the first, counts */
    size_t unusable;   /* phrases with spaces, or not UTF-8 */
    size_t zeros;      /* all-zero vectors: they have no direction */
} sf_vectors;

/* Reads a vector file's contents; `name` is for messages. Text: a word and dim numbers per
 * line, with or without a "count dim" header. Binary: word2vec's. With `keep` only words
 * of that set are kept (the counts above are of the whole file). Ragged rows and
 * numbers that are not finite are errors that name the line. */
safer_status sf_vectors_parse(sf_vectors *out, const char *bytes, size_t length, const char *name, const sf_words *keep,
                              int threads, safer_error *error);

/* The same, which also notes the rows that are set aside, and those that `keep` lacks. */
safer_status sf_vectors_parse_noting(sf_vectors *out, const char *bytes, size_t length, const char *name,
                                     const sf_words *keep, sf_dropped *dropped, int threads, safer_error *error);

void sf_vectors_free(sf_vectors *vectors);

/* Scales every row to length 1. A row shorter than 1e-20 is left as it is. */
void sf_vectors_normalise(float *values, size_t count, size_t dim, int threads);

/* The inner product in double precision, always summed in the same order. */
double sf_vectors_dot(const float *a, const float *b, size_t dim);

#endif
