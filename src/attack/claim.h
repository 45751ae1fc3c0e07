/* What a record of a run claims, and the attack on it. */
#ifndef SF_ATTACK_CLAIM_H
#define SF_ATTACK_CLAIM_H

#include "attack/attack.h"

#include <jansson.h>

typedef struct sf_claim {
    int target, exact;
    size_t radius; /* words that may be exchanged for synonyms */
    size_t words;
    size_t edits; /* that are certified besides, of `kind`, */
    safer_edit_kind kind;
    size_t edit_radius; /* beside synonyms in so many words */
} sf_claim;

/* Whether there is anything to attack. */
static inline int sf_claim_covers(const sf_claim *claim) { return claim->radius > 0 || claim->edits > 0; }

/* Attacks the text with every method within what is claimed, and adds to the record what came of it. */
safer_status sf_claim_attack(safer_attacker *attacker, const sf_claim *claim, const char *text, size_t length,
                             json_t **record, safer_error *error);

#endif
