/* Certificates without sampling: all draws of a text, with integer weights.
 *
 * When a text has few distinct draws they are enumerated (draw/enumerate.h), each is asked
 * once, and its weight is added to the class it voted for. The decision is then made in
 * integers: no error probability is spent and nothing is rounded. */
#ifndef SF_STATS_EXACT_H
#define SF_STATS_EXACT_H

#include "base/error.h"
#include "base/number.h"

#include <stddef.h>
#include <stdint.h>

/* The weight that voted for each class. */
typedef struct sf_tally {
    size_t classes;
    sf_weight total;  /* includes answers that are not a label */
    sf_weight *votes; /* classes */
} sf_tally;

safer_status sf_tally_new(sf_tally *out, size_t classes, safer_error *error); /* classes >= 2 */
void sf_tally_clear(sf_tally *tally);                                         /* for the next text */
void sf_tally_free(sf_tally *tally);                                          /* an all-zero tally is fine */

/* Adds a draw that voted for `vote` (-1: no label). Returns 0, or -1, unchanged, when the
 * total overflows. */
int sf_tally_add(sf_tally *tally, int vote, sf_weight weight);

/* Whether g(y) - g(c) > 2q for every c != y, decided exactly. q >= 0. */
int sf_tally_certifies(const sf_tally *tally, size_t y, double q);

/* (1 + g(y) - max g(c))/2 rounded down: with two labels, g(y). What a record shows as its
 * bound; sf_tally_certifies decides. 0 when nothing was added. */
double sf_tally_bound(const sf_tally *tally, size_t y);

#endif
