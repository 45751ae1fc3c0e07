/* A lexicon for one text under attack, in which every slot draws from all that any of its
 * synonyms could draw.
 *
 * Models with a fast path prepare a text once and are then asked about draws by number. An
 * attack changes the words of the text, and with them the distributions; prepared with this
 * lexicon, one preparation serves them all. It says only what can be drawn, not how
 * probable it is. */
#ifndef SF_ATTACK_SHADOW_H
#define SF_ATTACK_SHADOW_H

#include "draw/slots.h"

typedef struct sf_shadow {
    safer_lexicon lexicon; /* the real one but for its kernel; borrowed */
    uint32_t *row_of;      /* (words): right for the slots of the text and their synonyms */
    uint32_t *rows_of;     /* (rows): the word whose synonyms a row unites */
    uint64_t *offsets;
    uint32_t *ids, *weights, *totals;
    uint32_t rows;
    size_t rows_capacity, offset_capacity, total_capacity, id_capacity, weight_capacity;
    uint32_t *maps;        /* of every row and choice: from an index of what it draws to one of the row */
    uint64_t *map_offsets; /* (rows+1): where a row's maps begin */
    size_t map_capacity, map_offset_capacity;
} sf_shadow; /* zero-initialise; reused from text to text */

safer_status sf_shadow_make(sf_shadow *shadow, const safer_lexicon *lexicon, const sf_slots *slots, safer_error *error);
void sf_shadow_free(sf_shadow *shadow);

/* The maps of a slot's word: first its own, then its synonyms', one behind the other, each as
 * long as what it draws. */
const uint32_t *sf_shadow_maps(const sf_shadow *shadow, uint32_t word);

#endif
