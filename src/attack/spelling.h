/* Attacks that spell words otherwise: look-alike letters, characters that are not seen, typing errors.
 *
 * They need no synonyms: every word of the text, as it was given, may be spelled otherwise. What is asked about a new
 * text is what the deployed classifier would say of it, the lexicon's fold included, so they show what a fold is worth:
 * against one that covers them they change nothing. */
#ifndef SF_ATTACK_SPELLING_H
#define SF_ATTACK_SPELLING_H

#include "attack/victim.h"

enum { SF_ALIKE = 16 };

/* A word that can be spelled otherwise. */
typedef struct sf_spelled {
    size_t word, begin, end; /* which of the text's words, and its bytes */
    unsigned choice;         /* the spelling that hurts most, from 1 */
    double loss;             /* of the target's score, with that spelling alone */
} sf_spelled;

typedef struct sf_spelling {
    /* What to do; set before. */
    sf_victim *victim;
    safer_attack_method method;
    size_t radius;        /* words that may be spelled otherwise */
    uint64_t max_queries; /* 0: any number */
    uint64_t seed;
    double level; /* of the tests of all that is found, */
    int looks;    /* and of each */
    int within;   /* only new texts that the lexicon folds as it folds the text: what a certificate covers */

    /* What came of it. */
    sf_answer start, best_answer;
    sf_finding finding;
    int won, stopped, has_best;
    size_t flips, changed;
    uint64_t queries, checks;
    sf_buffer text;     /* the new text, when won; else the last that was tried */
    sf_spelled *places; /* words that have spellings; when won, the first `changed` are spelled otherwise */
    size_t place_count;

    /* Working memory. */
    sf_span given;
    sf_stream stream;
    sf_word_reader reader;
    sf_folder folder;
    sf_buffer folded; /* the text as it was given, folded */
    uint32_t *own;    /* zeros */
    size_t place_capacity, own_capacity;
    unsigned tests;
    uint32_t alike[128][SF_ALIKE]; /* characters that look like plain letters */
    unsigned char alike_count[128];
} sf_spelling; /* zero-initialise; reused from text to text */

void sf_spelling_free(sf_spelling *spelling);

static inline int sf_is_spelling(safer_attack_method method)
{
    return method >= SAFER_ATTACK_HOMOGLYPH && method <= SAFER_ATTACK_TYPO;
}

/* Attacks the text, for the class that must not win any more (-1: what is answered). */
safer_status sf_spelling_attack(sf_spelling *spelling, const char *text, size_t length, int target, safer_error *error);

/* Appends the spelling of a place. 0, or -1 without memory. */
int sf_spelling_write(sf_buffer *out, const sf_spelling *spelling, const sf_spelled *place);

#endif
