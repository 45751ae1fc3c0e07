/* A text as the certificate sees it: all its words, and the slots, the words whose
 * substitutes are drawn.
 *
 * A word is a slot when the lexicon gives it synonyms or draws anything but itself. All
 * other words, and everything between words, keep their bytes. */
#ifndef SF_DRAW_SLOTS_H
#define SF_DRAW_SLOTS_H

#include "base/buffer.h"
#include "lexicon/lexicon.h"
#include "text/word.h"

typedef struct sf_text_word {
    uint32_t begin, end;      /* bytes of the text */
    uint32_t key, key_length; /* in the keys below */
    uint32_t word;            /* number in the lexicon, or SF_NONE */
    uint32_t slot;            /* number of the slot, or SF_NONE */
    sf_case pattern;
} sf_text_word;

typedef struct sf_slots {
    const char *text; /* borrowed */
    size_t length;
    uint64_t hash; /* of the text: what its random stream depends on */
    sf_text_word *words;
    size_t word_count, word_capacity;
    uint32_t *slots; /* of each slot: the index of its word */
    size_t slot_count, slot_capacity;
    sf_buffer keys; /* lower-cased words, one after the other, terminated */
    sf_word_reader reader;
} sf_slots; /* zero-initialise; reused from text to text */

/* Reads a text, which must be shorter than 2^31 bytes and outlive the slots. */
safer_status sf_slots_read(sf_slots *slots, const safer_lexicon *lexicon, const char *text, size_t length,
                           safer_error *error);
void sf_slots_free(sf_slots *slots);

/* Appends the text with a draw in every slot: draws[s] is an index into the support of
 * slot s's word. 0, or -1 when memory is out. */
int sf_slots_render(sf_buffer *out, const sf_slots *slots, const safer_lexicon *lexicon, const uint32_t *draws);

/* overlaps[s] = s_x of every slot; returns how many. */
size_t sf_slots_overlaps(double *overlaps, const sf_slots *slots, const safer_lexicon *lexicon);

#endif
