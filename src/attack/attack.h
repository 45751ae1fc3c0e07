/* Attacks on one text. */
#ifndef SF_ATTACK_ATTACK_H
#define SF_ATTACK_ATTACK_H

#include "attack/rewrite.h"
#include "attack/search.h"
#include "attack/spelling.h"

/* SAFER_INVALID, with the field's name, when an option is out of range. */
safer_status sf_attack_check(const safer_attack_options *options, safer_error *error);

/* The state of one thread. */
struct safer_attacker {
    safer_attack_options options;
    sf_victim *victim;
    sf_search search;
    sf_spelling spelling; /* of the methods that spell words otherwise */
    sf_rewrite rewrite;   /* of those that put in, take out or replace, */
    sf_wordlist own;      /* and their words, unless they are shared: rewrite.words; */
    sf_likeness likeness; /* what new texts must have in common, unless that is shared; */
    sf_reach reach;       /* in a cross-check: what is certified */
    sf_buffer text;       /* the new text */
    sf_buffer words;      /* exchanged words, terminated, one behind the other */
    safer_change *changes;
    size_t change_capacity;
};

/* `likeness` is shared; with NULL the attacker makes what the options ask for. */
safer_status sf_attacker_new(safer_attacker **out, const safer_model *model, const safer_lexicon *lexicon,
                             const safer_attack_options *options, const sf_likeness *likeness, int ties_lose,
                             safer_error *error);

/* Writes the best text of the search and its changes into the attacker; of the spelling, or of the edits that
 * have won. */
safer_status sf_attacker_write(safer_attacker *attacker, size_t *changed, safer_error *error);
safer_status sf_attacker_write_spelling(safer_attacker *attacker, size_t *changed, safer_error *error);
safer_status sf_attacker_write_edits(safer_attacker *attacker, size_t *changed, safer_error *error);

/* Whether a method needs words to put in. */
static inline int sf_needs_words(safer_attack_method method)
{
    return method == SAFER_ATTACK_INSERT || method == SAFER_ATTACK_OUTOFLIST;
}

#endif
