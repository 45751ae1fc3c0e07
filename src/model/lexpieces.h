/* The pieces of a lexicon's words, cut once for all texts.
 *
 * Every word is cut when a text first needs it, in the case pattern and with the neighbours it is needed with, and
 * stays: a text then costs what its own words cost, also where thousands can be drawn for each of them. A table holds
 * at most every word in every pattern and in each of a few surroundings, so its size is bounded. Any number of threads
 * may use one at the same time. */
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

/* What stands around a word in the part of a text that it is cut with: " word", "word.". */
typedef struct sf_surroundings {
    sf_span before, after;
    int inside; /* as sf_piecer_encode_part has it */
} sf_surroundings;

/* The number by which the table has these surroundings; SF_NONE: it does not, they are too long or there are too many
 * others. -1 when memory is out. */
int sf_lexpieces_find(uint32_t *number, sf_lexpieces *table, const sf_surroundings *surroundings);

/* The pieces of a word in such surroundings, the first `limit` of them: their number, and then they. NULL when memory
 * is out. */
const uint32_t *sf_lexpieces_word(sf_lexpieces *table, const safer_lexicon *lexicon, uint32_t surroundings,
                                  uint32_t word, sf_case pattern);

/* The least number of pieces that a word of a kernel row has there, at least sf_piecer_least; SIZE_MAX when memory is
 * out. */
size_t sf_lexpieces_least(sf_lexpieces *table, const safer_lexicon *lexicon, uint32_t surroundings, uint32_t row,
                          sf_case pattern);

/* With which letters the words of a kernel row begin and end in a pattern. */
typedef struct sf_lexletters {
    sf_letters begins, ends;
} sf_lexletters;
sf_lexletters sf_lexpieces_letters(sf_lexpieces *table, const safer_lexicon *lexicon, uint32_t row, sf_case pattern);

/* The same of one word. */
sf_lexletters sf_lexpieces_word_letters(const safer_lexicon *lexicon, uint32_t word, sf_case pattern);

/* Working memory for who prepares texts: taken, and given back. NULL when memory is out. */
typedef struct sf_lexpieces_tools {
    sf_buffer text;
    sf_ids ids;
    sf_piecer_scratch piecer;
    struct sf_lexpieces_tools *next;
} sf_lexpieces_tools;
sf_lexpieces_tools *sf_lexpieces_take(sf_lexpieces *table);
void sf_lexpieces_give(sf_lexpieces *table, sf_lexpieces_tools *tools); /* NULL is fine */

/* What a model keeps: the table of the lexicon that was used last, and of the last one of texts under attack. */
typedef struct sf_lexpieces_last sf_lexpieces_last;
sf_lexpieces_last *sf_lexpieces_last_new(void); /* NULL when memory is out */
void sf_lexpieces_last_free(sf_lexpieces_last *last);

/* The table of this lexicon, held for the caller: the one that is kept, or a new one in its place. NULL when memory
 * is out. */
sf_lexpieces *sf_lexpieces_of(sf_lexpieces_last *last, const sf_piecer *piecer, const safer_lexicon *lexicon,
                              size_t limit);

#endif
