/* Attacks that put tokens in, take them out, or replace them by any word: what no table of synonyms lists.
 *
 * They need no synonyms. A token is a word, a number or a mark, as where draws delete (draw/slots.h). What is asked
 * about a new text is what the deployed classifier would say of it, the lexicon's fold included. */
#ifndef SF_ATTACK_REWRITE_H
#define SF_ATTACK_REWRITE_H

#include "attack/poll.h"
#include "attack/reach.h"
#include "attack/search.h"
#include "attack/wordlist.h"

typedef enum sf_operation { SF_PUT_IN = 1, SF_TAKE_OUT = 2, SF_REPLACE = 4 } sf_operation;

typedef struct sf_edit {
    sf_operation operation;
    uint32_t token; /* which, of the folded text; put in: in front of which, their number: at the end */
    uint32_t word;  /* of the lexicon */
} sf_edit;

typedef struct sf_edits {
    sf_edit *list; /* by token; what is put in first */
    size_t count, capacity;
} sf_edits;

typedef struct sf_rewrite {
    /* What to do; set before. */
    sf_victim *victim;
    const sf_wordlist *words; /* not needed to take out */
    unsigned operations;
    size_t radius; /* edits */
    uint64_t max_queries;
    double level;    /* of the tests of all that is found, */
    int looks;       /* and of each */
    sf_reach *reach; /* only new texts that it covers count; NULL: all */

    /* What came of it. */
    sf_answer start, best_answer;
    sf_finding finding;
    int won, stopped, has_best;
    size_t flips;
    uint64_t queries, checks;
    sf_slots slots; /* the text */
    sf_edits best;  /* to the new text with the lowest margin; when won, to the adversarial one, */
    sf_buffer text; /* which is this one */

    /* Working memory. */
    sf_poll poll;
    int target;
    sf_edits now, trial;
    double margin; /* of `now` */
    sf_edit *tried;
    sf_answer *answers;
    sf_buffer *texts;
    sf_span *spans;
    size_t count, tried_capacity, answer_capacity, text_capacity, span_capacity, text_count;
    sf_ranked *order;         /* tokens by what the target loses without them */
    unsigned char *touched;   /* tokens that were edited or tried for nothing */
    uint32_t *own;            /* zeros */
    uint32_t *word_of;        /* (tokens): which word of the text it is, or SF_NONE */
    uint32_t *before, *after; /* (words): of the text and of a new one, in the lexicon, where they must be alike */
    size_t order_capacity, touched_capacity, own_capacity, place_capacity, before_capacity, after_capacity;
    unsigned tests;
} sf_rewrite; /* zero-initialise; reused from text to text */

void sf_rewrite_free(sf_rewrite *rewrite);

static inline int sf_is_rewriting(safer_attack_method method) { return method >= SAFER_ATTACK_INSERT; }

/* What a method may do. */
unsigned sf_rewrite_operations(safer_attack_method method);

/* Attacks the text, for the class that must not win any more (-1: what is answered). */
safer_status sf_rewrite_attack(sf_rewrite *rewrite, const char *text, size_t length, int target, safer_error *error);

/* Tests the best text, whatever its votes were; then it may be won. */
safer_status sf_rewrite_test(sf_rewrite *rewrite, safer_error *error);

/* Appends the text with these edits; and the word of one, as it stands there. 0, or -1 without memory. */
int sf_rewrite_write(sf_buffer *out, const sf_rewrite *rewrite, const sf_edits *edits);
int sf_rewrite_word(sf_buffer *out, const sf_rewrite *rewrite, const sf_edit *edit);

#endif
