/* A text as the certificate sees it: folded, where the lexicon has a fold; all its words, and the slots, the words
 * whose substitutes are drawn. This is the one place where a text is read with a lexicon: what the slots call the text
 * is Phi(text), and nobody who has slots looks at the text that was given.
 *
 * A word is a slot when the lexicon gives it synonyms or draws anything but itself. All
 * other words, and everything between words, keep their bytes. */
#ifndef SF_DRAW_SLOTS_H
#define SF_DRAW_SLOTS_H

#include "base/buffer.h"
#include "base/deletion.h"
#include "lexicon/lexicon.h"
#include "text/word.h"

#include <string.h>

typedef struct sf_text_word {
    uint32_t begin, end;      /* bytes of the text */
    uint32_t key, key_length; /* in the keys below */
    uint32_t word;            /* number in the lexicon, or SF_NONE */
    uint32_t slot;            /* number of the slot, or SF_NONE */
    sf_case pattern;
} sf_text_word;

/* What draws with deletion keep or delete, and what groups consist of: a word; a number, a run of digits; or a mark,
 * any other character that is not white space. */
typedef struct sf_token {
    uint32_t begin, end; /* bytes of the text */
    uint32_t slot;       /* number of the slot, or SF_NONE */
} sf_token;

typedef struct sf_slots {
    const char *text; /* Phi(given): borrowed, or in the folder below */
    size_t length;
    sf_span given; /* borrowed: what was read, before it was folded */
    uint64_t hash; /* of the text: what its random stream depends on */
    sf_text_word *words;
    size_t word_count, word_capacity;
    uint32_t *slots; /* of each slot: the index of its word */
    size_t slot_count, slot_capacity;
    sf_buffer keys; /* lower-cased words, one after the other, terminated */
    sf_word_reader reader;
    sf_folder folder;

    /* Only after sf_slots_split: */
    int split;         /* draws keep some of the tokens */
    uint32_t deletion; /* the chance that a draw deletes a token, of 2^32; 0: none is deleted by chance */
    size_t groups;     /* draws keep the tokens of one of so many groups (draw/sampler.h); 0: there are none */
    sf_token *tokens;
    size_t token_count, token_capacity;
} sf_slots; /* zero-initialise; reused from text to text */

/* Reads a text, which must be shorter than 2^31 bytes, folded too, and outlive the slots. Without a lexicon (NULL) it
 * has no slots, and is not folded. */
safer_status sf_slots_read(sf_slots *slots, const safer_lexicon *lexicon, const char *text, size_t length,
                           safer_error *error);
void sf_slots_free(sf_slots *slots);

/* Whether the fold changed the text. */
static inline int sf_slots_folded(const sf_slots *slots)
{
    return slots->text != slots->given.bytes &&
           (slots->length != slots->given.length || memcmp(slots->text, slots->given.bytes, slots->length) != 0);
}

/* Where in the given text a byte of the text came from. */
static inline size_t sf_slots_origin(const sf_slots *slots, size_t byte)
{
    return slots->text == slots->given.bytes ? byte : sf_folder_origin(&slots->folder, byte);
}

/* From here on, until the next text is read, draws delete each token so often, or keep those of one group. Zeros:
 * nothing is deleted, and nothing changes. */
safer_status sf_slots_split(sf_slots *slots, safer_deletion deletion, safer_error *error);
#define SF_SPLIT ((safer_deletion){.chance = 0.5}) /* where tokens alone are wanted */

/* The numbers of a draw. First, of every slot an index into the support of its word. Of a text that is split
 * there follow bits, 32 to a number, the lowest first: bit t is 1 where token t is kept. */
size_t sf_slots_width(const sf_slots *slots);
static inline int sf_slots_keeps(const sf_slots *slots, const uint32_t *draw, size_t token)
{
    return (int)(draw[slots->slot_count + token / 32] >> token % 32 & 1);
}

/* Appends the text with a draw in every slot; of a text that is split, the tokens that are kept, one space between two
 * of them. 0, or -1 when memory is out. */
int sf_slots_render(sf_buffer *out, const sf_slots *slots, const safer_lexicon *lexicon, const uint32_t *draws);

/* Appends what a draw puts into a slot. 0, or -1 when memory is out. */
int sf_slots_render_slot(sf_buffer *out, const sf_slots *slots, const safer_lexicon *lexicon, size_t slot,
                         uint32_t draw);

/* Appends one token, as it stands or as it is drawn. 0, or -1 when memory is out. */
int sf_slots_render_token(sf_buffer *out, const sf_slots *slots, const safer_lexicon *lexicon, const sf_token *token,
                          const uint32_t *draws);

/* overlaps[s] = s_x of every slot; returns how many. */
size_t sf_slots_overlaps(double *overlaps, const sf_slots *slots, const safer_lexicon *lexicon);

#endif
