/* The word pieces of a lexicon's words, cut once for all texts.
 *
 * Every word is cut when a text first needs it, in the case pattern it is needed in, and stays: a text then costs what
 * its own words cost, also where thousands can be drawn for each of them. A table holds at most every word in every
 * pattern, so its size is bounded by that of the lexicon. Any number of threads may use one at the same time. */
#ifndef SF_MODEL_LEXPIECES_H
#define SF_MODEL_LEXPIECES_H

#include "lexicon/lexicon.h"
#include "text/word.h"
#include "text/piecer.h"

typedef struct sf_lexpieces sf_lexpieces;

/* For texts of at most `limit` pieces. NULL when memory is out. Nothing of the lexicon is kept: every call below is
 * given it, or one with the same bytes. */
sf_lexpieces *sf_lexpieces_new(const sf_piecer *piecer, const safer_lexicon *lexicon, size_t limit);
void sf_lexpieces_free(sf_lexpieces *table); /* gives one hold back; the last ends it */

/* The pieces of a word by itself, the first `limit` of them: their number, and then they. NULL when memory is out. */
const uint32_t *sf_lexpieces_word(sf_lexpieces *table, const safer_lexicon *lexicon, uint32_t word, sf_case pattern);

/* The least number of pieces that a word of a kernel row has, at least sf_piecer_least; SIZE_MAX when memory is out. */
size_t sf_lexpieces_least(sf_lexpieces *table, const safer_lexicon *lexicon, uint32_t row, sf_case pattern);

/* What a model keeps: the table of the lexicon that was used last. */
typedef struct sf_lexpieces_last sf_lexpieces_last;
sf_lexpieces_last *sf_lexpieces_last_new(void); /* NULL when memory is out */
void sf_lexpieces_last_free(sf_lexpieces_last *last);

/* The table of this lexicon, held for the caller: the one that is kept, or a new one in its place. NULL when memory
 * is out. */
sf_lexpieces *sf_lexpieces_of(sf_lexpieces_last *last, const sf_piecer *piecer, const safer_lexicon *lexicon,
                              size_t limit);

#endif
