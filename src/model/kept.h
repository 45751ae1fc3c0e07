/* The word pieces of a text whose tokens are deleted and whose words are drawn (draw/slots.h, sf_slots_split).
 *
 * What a draw keeps stands between single spaces. Where the text may be cut in front of a space, whatever stands on
 * both sides (sf_edges), the pieces of a token are always the same but for one thing: whether it is the first that is
 * kept, and has no space before it. So they are cut twice per token and looked up from then on, those of slots for all
 * texts (lexpieces.h). Tokens without such a place between them are rendered together and encoded when they are drawn.
 * The pieces put together equal those of the rendered draw, always. */
#ifndef SF_MODEL_KEPT_H
#define SF_MODEL_KEPT_H

#include "model/pieces.h"

typedef struct sf_kept sf_kept;

/* Prepares a text that is split, for a model that reads so much of a draw. `words` are the lexicon's, for the same
 * window. They, slots and lexicon must outlive it. */
safer_status sf_kept_new(sf_kept **out, const sf_piecer *piecer, const safer_lexicon *lexicon, sf_lexpieces *words,
                         const sf_slots *slots, sf_window window, safer_error *error);
void sf_kept_free(sf_kept *kept); /* NULL is fine */

/* The pieces of one draw (sf_slots_width numbers) that the model reads, into ids (window.most); returns how many, or
 * SIZE_MAX when memory is out. */
size_t sf_kept_draw(uint32_t *ids, const sf_kept *kept, const uint32_t *draw, sf_pieces_scratch *scratch);

/* How many tokens of the text may be rendered when they are kept: those without certain cuts on both sides. */
size_t sf_kept_rendered(const sf_kept *kept);

#endif
