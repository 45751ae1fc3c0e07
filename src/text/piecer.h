/* What turns the texts of a model into numbers of pieces: BERT's own tokenizer (wordpiece.h), which is the fastest, or
 * any other (tokenizer.h). Who has one need not know which.
 *
 * A piecer does not change once it is there: any number of threads may use one, each with a scratch of its own. */
#ifndef SF_TEXT_PIECER_H
#define SF_TEXT_PIECER_H

#include "text/tokenizer.h"
#include "text/tokenizer_places.h"
#include "text/wordpiece.h"

typedef struct sf_piecer sf_piecer;

/* From a HuggingFace folder: BERT's, where it is that of plain BERT, else sf_tokenizer_open, which says what `type` and
 * `read` are. The caller frees *out, which is set on success only. */
safer_status sf_piecer_open(sf_piecer **out, const char *directory, const char *type, sf_digest_list *read,
                            safer_error *error);
/* Of a tokenizer that is there, which it takes over, also on failure. */
safer_status sf_piecer_of_wordpiece(sf_piecer **out, sf_wordpiece *wordpiece, safer_error *error);
safer_status sf_piecer_of_tokenizer(sf_piecer **out, sf_tokenizer *tokenizer, safer_error *error);
void sf_piecer_free(sf_piecer *piecer); /* NULL is fine */

/* Which of the two it is: the other is NULL. For who writes it down. */
const sf_wordpiece *sf_piecer_wordpiece(const sf_piecer *piecer);
const sf_tokenizer *sf_piecer_tokenizer(const sf_piecer *piecer);

size_t sf_piecer_size(const sf_piecer *piecer);              /* largest number + 1 */
sf_tokenizer_frame sf_piecer_frame(const sf_piecer *piecer); /* what stands around a text; lives as long as it */
size_t sf_piecer_framed(const sf_piecer *piecer);            /* how many numbers that are, before and after */

/* How many pieces, the frame included, its files allow a text; SIZE_MAX when they say nothing, or when it is plain
 * BERT's, whose tokenizer_config.json the model reads itself. */
size_t sf_piecer_longest(const sf_piecer *piecer);

/* Whether longer texts lose their beginning there, not their end. */
int sf_piecer_ending(const sf_piecer *piecer);

/* Working memory of one thread for one piecer. Zero-initialise. */
typedef struct sf_piecer_scratch {
    sf_wordpiece_scratch wordpiece;
    sf_tokenizer_scratch *tokenizer; /* made when it is needed */
} sf_piecer_scratch;
void sf_piecer_scratch_free(sf_piecer_scratch *scratch);

/* What a model reads of a text, without the frame: its first `most` pieces, or its last ones. */
typedef struct sf_window {
    size_t most;
    int last;
} sf_window;

/* From the first on, so many pieces of a text have to be known. */
static inline size_t sf_window_reach(sf_window window) { return window.last ? SIZE_MAX : window.most; }

/* Adds the next pieces of a text to the `count` that are in ids (window.most): the first ones as long as there is room;
 * the last ones push the earlier ones out. Returns how many there are then. */
size_t sf_window_add(uint32_t *ids, size_t count, const uint32_t *more, size_t more_count, sf_window window);

/* The pieces of a text that a model reads, in the place of what *out held. -1 without memory. */
int sf_piecer_encode(sf_ids *out, const sf_piecer *piecer, const char *text, size_t length, sf_window window,
                     sf_piecer_scratch *scratch);

/* Appends the pieces of a part of a text, the first `limit` of them. `inside`: it begins at a cut (below), not where
 * the text begins. */
int sf_piecer_encode_part(sf_ids *out, const sf_piecer *piecer, const char *text, size_t length, size_t limit,
                          int inside, sf_piecer_scratch *scratch);

/* ------------------------------------------------------------- drawn words */

/* How many pieces a text with a word in it has at least: 1 where letters certainly never vanish, else 0. */
uint32_t sf_piecer_least(const sf_piecer *piecer);

/* Whether cuts depend on the letters of the words around them, and parts on whether they begin a text. */
int sf_piecer_minds_letters(const sf_piecer *piecer);

/* What lies between two drawn words of a text, or before the first, or behind the last: bytes begin to end. */
typedef struct sf_gap {
    size_t begin, end;
    sf_letters before, after; /* with which the words around it can end and begin; need not be known (below) */
    size_t first, last;       /* places where the text may be cut; SIZE_MAX: none */
} sf_gap;

/* Finds the first and the last place of a gap where the text may be cut: the pieces of the parts, put together, are
 * those of the whole, whatever words stand around the gap. The beginning and the end of a text are such places. */
void sf_piecer_find_cuts(sf_gap *gap, const sf_piecer *piecer, const char *text, size_t length);

/* The edges of a token that stands between spaces (tokenizer_places.h): its bytes, at least one; or a drawn word, which
 * begins and ends with some of these letters (need not be known where sf_piecer_minds_letters is 0). */
sf_edges sf_piecer_edges(const sf_piecer *piecer, const char *token, size_t length);
sf_edges sf_piecer_word_edges(const sf_piecer *piecer, sf_letters begins, sf_letters ends);

#endif
