/* The word pieces of a text whose words are drawn.
 *
 * A text is cut where the pieces of its parts certainly are those of the whole
 * (sf_piecer_find_cuts, in what lies between the slots). Parts without
 * a slot are encoded once for all draws; the words of a slot, with what is glued to it (a space
 * before it, punctuation behind it), once for all texts (lexpieces.h); parts with several slots,
 * or with much glued to one, when they are drawn. The pieces put together equal those of the
 * rendered text, always. */
#ifndef SF_MODEL_PIECES_H
#define SF_MODEL_PIECES_H

#include "draw/slots.h"
#include "model/lexpieces.h"

typedef struct sf_pieces sf_pieces;

/* Prepares a text for a model that reads so much of it. `words` are the lexicon's, for the same window. They, slots and
 * lexicon must outlive it. */
safer_status sf_pieces_new(sf_pieces **out, const sf_piecer *piecer, const safer_lexicon *lexicon, sf_lexpieces *words,
                           const sf_slots *slots, sf_window window, safer_error *error);
void sf_pieces_free(sf_pieces *pieces);

/* Working memory of one thread. Zero-initialise. */
typedef struct sf_pieces_scratch {
    sf_buffer text;
    sf_ids ids;
    sf_piecer_scratch piecer;
} sf_pieces_scratch;
void sf_pieces_scratch_free(sf_pieces_scratch *scratch);

/* The pieces of one draw that the model reads, into ids (window.most); returns how many, or SIZE_MAX when memory is
 * out. */
size_t sf_pieces_draw(uint32_t *ids, const sf_pieces *pieces, const uint32_t *draws, sf_pieces_scratch *scratch);

/* How many slots, from the first on, can ever be seen: a slot is hidden when over every
 * draw of this text and of every text with words exchanged for synonyms, the pieces before
 * the part it stands in fill the window. Where the last pieces are read, none is. */
size_t sf_pieces_visible(const sf_pieces *pieces);

/* How many bytes of the text are rendered and encoded for every draw, because their pieces cannot be looked up. */
size_t sf_pieces_rendered(const sf_pieces *pieces);

#endif
