/* What a new text must have in common with the text it replaces, where an attack is to be natural as well: TextFooler's
 * constraints (Jin et al., 2020). They hold between the text and the new one, whatever lies between.
 *
 *   part of speech  a word and what replaces it can be the same part of speech (lexicon/parts.h)
 *   cosine          of the vectors of the two words, at least so much; a word without a vector is not replaced
 *   similarity      of the mean vectors of the SF_WINDOW words around each changed word, before and after all changes;
 *                   words without a vector do not count, and without any nothing is alike
 *
 * Vectors have length 1, so that every word counts the same. */
#ifndef SF_ATTACK_LIKENESS_H
#define SF_ATTACK_LIKENESS_H

#include "base/sha256.h"
#include "lexicon/lexicon.h"

#include <jansson.h>

enum { SF_WINDOW = 15 }; /* words, as in TextFooler; at the ends of a text the first or last so many */

typedef struct sf_likeness {
    const safer_lexicon *lexicon;
    unsigned char *parts; /* (words of the lexicon); NULL: any part */
    float *vectors;       /* (words of the lexicon, dim): of length 1, or zeros; NULL: not needed */
    size_t dim;
    double min_cosine, min_similarity; /* 0: any */
    sf_digest parts_digest, vectors_digest;
} sf_likeness; /* zero-initialise; read by any thread */

/* Whether the options ask for any of it. */
int sf_likeness_asked(const safer_attack_options *options);

/* SAFER_INVALID, with the field's name, when they do so wrongly. */
safer_status sf_likeness_check(const safer_attack_options *options, safer_error *error);

/* Reads the files of the options. */
safer_status sf_likeness_make(sf_likeness *out, const safer_lexicon *lexicon, const safer_attack_options *options,
                              safer_error *error);
void sf_likeness_free(sf_likeness *likeness);

/* Adds what a new text must have in common to the configuration of a run. */
void sf_likeness_add(json_t **config, const sf_likeness *likeness);

/* Whether a word of the lexicon may be replaced by another one of it. */
int sf_likeness_words(const sf_likeness *likeness, uint32_t from, uint32_t to);

/* Whether the text is similar enough with other words in it: (count) words of the lexicon, or SF_NONE. */
int sf_likeness_texts(const sf_likeness *likeness, const uint32_t *before, const uint32_t *after, size_t count);

#endif
