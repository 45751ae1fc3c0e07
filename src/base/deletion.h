/* How often draws delete a token: with one chance for all texts, or with one by the length of the text.
 *
 * By length: of a text of L tokens draws keep each with the chance keep/(16 sqrt(L)), rounded down to a fraction of 2^32,
 * or 1/2 where that is less. So they keep `keep` tokens of a text of 256 on average, and twice as many of one that is
 * four times as long. What that costs where edits change the length is in stats/edits.c. Pure functions; any number of
 * threads. */
#ifndef SF_BASE_DELETION_H
#define SF_BASE_DELETION_H

#include "base/error.h"
#include "safer/certify.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* A chance p, 0 < p < 1, as a fraction of 2^32, which a double holds exactly: the nearest of 1 .. 2^32 - 1; 0 for
 * p = 0. A word of a block (base/rng.h) is below it with just this chance. */
uint32_t sf_deletion_of(double p);
double sf_deletion_share(uint32_t deletion);

/* Whether anything is deleted; SAFER_INVALID where the members are out of their ranges. */
static inline int sf_deletes(safer_deletion d) { return d.keep > 0 || d.chance > 0; }
safer_status sf_deletion_check(safer_deletion deletion, safer_error *error);

/* The same with a chance that is a fraction of 2^32. */
safer_deletion sf_deletion_round(safer_deletion deletion);

/* The chance in a text of so many tokens, of 2^32; 0: nothing is deleted. */
uint32_t sf_deletion_at(safer_deletion deletion, size_t tokens);

/* As records have it: a real number, or "keep:25". The value is NULL without memory; -1 where it is neither, or a
 * number that is no fraction of 2^32. */
json_t *sf_deletion_json(safer_deletion deletion);
int sf_deletion_read(safer_deletion *out, const json_t *value);

#endif
