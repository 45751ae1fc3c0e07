/* Synonym sets: what training by bounds makes of texts. A text is a list of items: an item below the vocabulary's size
 * is a word that stays; item vocabulary + k may be any word of set k, whose first is the word itself. */
#ifndef SF_TRAIN_IBP_SETS_H
#define SF_TRAIN_IBP_SETS_H

#include "ibp/network.h"
#include "train/texts.h"

typedef struct sf_ibp_sets {
    uint32_t *members;
    size_t *offsets; /* (count+1) */
    size_t count;
} sf_ibp_sets;

/* One set for every word of the corpus's lexicon. Zeros, or what was made: to be freed. */
safer_status sf_ibp_sets_make(sf_ibp_sets *out, const sf_textset *corpus, safer_error *error);
void sf_ibp_sets_free(sf_ibp_sets *sets);

/* Turns the tokens of texts into items. */
void sf_ibp_sets_apply(sf_texts *texts, const sf_ibp_sets *sets, size_t vocabulary);

/* The words that each position of a text may hold, in memory that is reused from text to text. Zero-initialise; -1 when
 * memory is out. */
typedef struct sf_ibp_listed {
    uint32_t *ids;
    size_t *begin;
    size_t id_capacity, begin_capacity;
} sf_ibp_listed;
int sf_ibp_sets_list(sf_ibp_choices *out, sf_ibp_listed *memory, const sf_texts *texts, size_t text,
                     const sf_ibp_sets *sets, size_t vocabulary);
void sf_ibp_listed_free(sf_ibp_listed *memory);

#endif
