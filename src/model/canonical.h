/* The canonical form of texts: every word that a lexicon knows is replaced by the one that represents its component. No
 * exchange of words for synonyms of that lexicon changes it, whatever reads it. */
#ifndef SF_MODEL_CANONICAL_H
#define SF_MODEL_CANONICAL_H

#include "draw/slots.h"

/* Whether all texts that exchanging synonyms can make of one are drawn as the same text: the kernel is
 * `representative`, or as good. */
int sf_canonical_is(const safer_lexicon *lexicon);

/* Whether two lexicons are one, byte by byte: proofs rest on it. */
int sf_canonical_same(const safer_lexicon *a, const safer_lexicon *b);

/* Appends the canonical form of a text that was read with such a lexicon, and where each of its words ends there,
 * counted from where the form begins: ends (words). 0, or -1 when memory is out. */
int sf_canonical_render(sf_buffer *out, size_t *ends, const sf_slots *slots, const safer_lexicon *lexicon);

#endif
