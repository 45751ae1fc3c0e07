/* Whether a text lies in what a certificate against edits covers: so many tokens of the folded text put in, out or
 * replaced by anything, as far as the kind allows, and synonyms in so many of those that stay.
 *
 * It is the definition of docs/edits.md and knows nothing of how an attack found the text. White space between tokens
 * does not count: draws that delete do not have it. */
#ifndef SF_ATTACK_REACH_H
#define SF_ATTACK_REACH_H

#include "draw/slots.h"

typedef struct sf_reach {
    const safer_lexicon *lexicon;
    safer_edit_kind kind;
    size_t edits;  /* at most SAFER_EDITS */
    size_t radius; /* of synonyms */
    sf_slots from, to;
    sf_buffer word;
    size_t *rows; /* two, of (edits+1, 2 edits+1) */
    size_t row_capacity;
} sf_reach; /* zero-initialise; reused from text to text */

void sf_reach_free(sf_reach *reach);

/* Begins with a text, which must outlive it; kind, edits and radius are set. */
safer_status sf_reach_begin(sf_reach *reach, const safer_lexicon *lexicon, const char *text, size_t length,
                            safer_error *error);

safer_status sf_reach_covers(int *covered, sf_reach *reach, const char *text, size_t length, safer_error *error);

#endif
