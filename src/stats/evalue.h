/* E-values: evidence against "the probability is at most p0", of votes counted so far.
 *
 * An e-process starts at 1 and, while its null hypothesis is true, has expectation at most
 * 1 at every stopping time; by Ville's inequality it ever reaches 1/delta with probability
 * at most delta. Both kinds below are functions of the counts alone. Logarithms are rounded
 * down. Values, not objects: copy them freely, share them between threads. */
#ifndef SF_STATS_EVALUE_H
#define SF_STATS_EVALUE_H

#include <stdint.h>

/* log(1/delta), rounded up: what the logarithm of an e-value has to reach. */
double sf_log_e_target(double delta);

/* ------------------------------------------------------------ one number */

/* The null "each sample succeeds with probability at most p0", and constants of p0. */
typedef struct sf_null {
    double p0;
    double offset; /* log sqrt(p0 (1-p0)) - log of the prior's mass above p0 */
    double rigour; /* share of the allowance for errors that is taken off: 1, or 1/2 (sf_eprocess_grants) */
} sf_null;

sf_null sf_null_of(double p0); /* 0 < p0 < 1; rigour 1 */

/* log E(k,n) for k successes in n samples. Grows with k; a success never lowers it and a
 * failure never raises it. With p0 >= 1/2 it falls as p0 grows wherever it is positive. */
double sf_null_log_e(const sf_null *null, uint64_t k, uint64_t n);

/* The smallest k <= n with log E(k,n) >= target, or n + 1. target > 0. */
uint64_t sf_null_threshold(const sf_null *null, double target, uint64_t n);

/* That threshold followed as n grows: each step of n raises it by 0 or 1, so moving on by
 * d samples costs about log2(d) evaluations. */
typedef struct sf_boundary {
    sf_null null;
    double target;
    uint64_t n, k; /* k: the smallest count that suffices at n; n + 1 when none does */
} sf_boundary;

sf_boundary sf_boundary_of(double p0, double target); /* at n = 0 */

/* Moves to n, which must not be below boundary->n, and returns the threshold there. */
uint64_t sf_boundary_advance(sf_boundary *boundary, uint64_t n);

/* ----------------------------------------------------------- two classes */

/* The null "P[f=y] - P[f=c] is at most 2m - 1", i.e. the score Y = 1, 0 or 1/2 of a vote
 * for y, for c or for anything else has mean at most m. */
enum { SF_MARGIN_BETS = 32 };
typedef struct sf_margin {
    double m, rigour;                                                       /* as in sf_null */
    double win[SF_MARGIN_BETS], draw[SF_MARGIN_BETS], lose[SF_MARGIN_BETS]; /* log factors, rounded down */
} sf_margin;

void sf_margin_set(sf_margin *margin, double m, double rigour); /* 0 < m < 1 */

/* log E for `wins` votes for y, `losses` for c and `draws` for others. Falls when a win
 * becomes a draw or a draw a loss, and as m grows. */
double sf_margin_log_e(const sf_margin *margin, uint64_t wins, uint64_t draws, uint64_t losses);

#endif
