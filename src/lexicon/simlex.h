/* Rank correlation of vector similarities with human judgement (SimLex-999). */
#ifndef SF_LEXICON_SIMLEX_H
#define SF_LEXICON_SIMLEX_H

#include "base/words.h"

typedef struct sf_simlex {
    uint32_t (*pairs)[2]; /* word numbers */
    double *scores;
    size_t count, pair_capacity, score_capacity;
} sf_simlex;

/* Reads "word1 word2 score" lines, or SimLex-999's own table (its header names the
 * columns). Pairs with a word that is not in `words` are left out. */
safer_status sf_simlex_read(sf_simlex *out, const char *path, const sf_words *words, safer_error *error);
safer_status sf_simlex_parse(sf_simlex *out, const char *bytes, size_t length, const char *name, const sf_words *words,
                             safer_error *error);
void sf_simlex_free(sf_simlex *simlex);

/* Spearman's rho between the scores and the cosines of the vectors. */
safer_status sf_simlex_correlation(double *rho, const sf_simlex *simlex, const float *values, size_t dim,
                                   safer_error *error);

#endif
