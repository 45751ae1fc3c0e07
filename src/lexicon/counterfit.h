/* Counter-fitting (Mrksic et al., NAACL 2016): moves synonyms together and antonyms
 * apart while the neighbourhoods of the original space are kept. */
#ifndef SF_LEXICON_COUNTERFIT_H
#define SF_LEXICON_COUNTERFIT_H

#include "base/words.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sf_constraints {
    uint32_t (*pairs)[2]; /* both directions, sorted, no duplicates */
    size_t count, capacity;
    size_t lines, unknown; /* pairs read, and those with a word outside the vocabulary */
} sf_constraints;

/* Adds the pairs of a file: two words per line, blanks between. Call sf_constraints_sort
 * when all files are read. */
safer_status sf_constraints_read(sf_constraints *constraints, const char *path, const sf_words *words,
                                 safer_error *error);
safer_status sf_constraints_parse(sf_constraints *constraints, const char *bytes, size_t length, const char *name,
                                  const sf_words *words, safer_error *error);
/* Adds one pair, in the numbers of its words; nothing when one is SF_NONE or both are the same. */
safer_status sf_constraints_add(sf_constraints *constraints, uint32_t a, uint32_t b, safer_error *error);
void sf_constraints_sort(sf_constraints *constraints);
/* Renames the words: map[old] is the new number, which rises with the old one, or SF_NONE to drop their pairs. */
void sf_constraints_renumber(sf_constraints *constraints, const uint32_t *map);
void sf_constraints_free(sf_constraints *constraints);

/* The published settings. */
typedef struct sf_counterfit_options {
    double repel, attract, preserve; /* k1, k2, k3 = 0.1 */
    double antonym_distance;         /* delta = 1: antonyms closer than this are pushed */
    double synonym_distance;         /* gamma = 0: synonyms farther than this are pulled */
    double radius;                   /* rho = 0.2: pairs this close at the start are preserved */
    int steps;                       /* 20 */
} sf_counterfit_options;

sf_counterfit_options sf_counterfit_options_default(void);

/* Changes `values` (count, dim; rows of length 1) in place. A pair that is both synonym
 * and antonym counts as antonym. *preserved gets the number of preserved pairs. */
safer_status sf_counterfit(float *values, size_t count, size_t dim, const sf_constraints *synonyms,
                           const sf_constraints *antonyms, const sf_counterfit_options *options, int threads,
                           const safer_progress *progress, size_t *preserved, safer_error *error);

#endif
