/* A sum of models: what several classifiers say of a text, added up.
 *
 * The file is JSON, and paths in it are relative to it:
 *
 *     {"arch": "sum", "members": [
 *         {"model": "exact.safetensors", "weight": 1},
 *         {"model": "ngram.safetensors", "weight": 0.5, "canonical": "words.lex"}]}
 *
 * A member with "canonical" reads the text as that lexicon, whose kernel must be
 * `representative`, draws it: every word as the one that stands for its component. No exchange
 * of words for synonyms of that lexicon changes what such a member reads.
 *
 * What a member says of a class is its logit (bow, cnn, context) or the logarithm of its probability,
 * times the weight, as a whole number of 2^-SF_SUM_BITS. Whole numbers add up exactly; the
 * class with the greatest sum wins, the first of equal ones. Rounding rises with what is rounded,
 * so a bound on the lead of a member's logits is one on that of its whole numbers (ibp/margins.c). */
#ifndef SF_MODEL_SUM_H
#define SF_MODEL_SUM_H

#include "model/model.h"

enum { SF_SUM_BITS = 20, SF_SUM_MEMBERS = SAFER_SUM_MEMBERS };

/* No member says more of a class, nor less than its negative. */
#define SF_SUM_MOST (INT64_C(1) << 50)

typedef struct sf_sum_member {
    safer_model *model;
    safer_lexicon *canonical; /* or NULL: it reads the text as it is */
    double weight;            /* above 0 */
} sf_sum_member;

typedef struct sf_sum_model {
    safer_model base;
    sf_sum_member *members;
    size_t count;
} sf_sum_model;

extern const sf_model_class sf_sum_class;

/* Whether a file looks like a sum: text that begins with '{'. Model files of other kinds begin with
 * the length of their header, which has a zero among its 8 bytes. */
int sf_sum_is(const char *path);

safer_status sf_sum_open(safer_model **out, const char *path, safer_error *error);

/* What a member said of the last text of the last answer (classes). */
const int64_t *sf_sum_said(const void *scratch, size_t member);

/* That member's own scratch. */
const void *sf_sum_scratch(const void *scratch, size_t member);

#endif
