/* The `adaptive` method: sample until every reported radius is decided.
 *
 * A radius R of a text is a number p0 = 1/2 + q_X(R) (sf_null_probability in binomial.h).
 * It is claimed when the votes say, at error probability delta, that class y beats every
 * other class by more than 2 q_X(R). One delta covers all radii of a text together.
 *
 *     sf_eprocess_new(&process, &options, error);
 *     for each text:
 *         sf_eprocess_begin(process, y, p0, radii, error);
 *         for (i = 0; !sf_eprocess_done(process); i++)
 *             sf_eprocess_add(process, vote of sample i);
 *         sf_eprocess_claims(&options, y, p0[r], sf_eprocess_counts(process), sf_eprocess_samples(process)) ...
 *     sf_eprocess_free(process);
 *
 * Samples count in index order and never past the one that decides. Verdicts are functions
 * of the counts alone: what a record holds is enough to check it (sf_eprocess_claims). One
 * process per thread. */
#ifndef SF_STATS_EPROCESS_H
#define SF_STATS_EPROCESS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sf_eprocess_options {
    double delta;    /* error probability, in (0,1) */
    double futility; /* in [0,1): the chance of giving up a radius that n_max samples would more
                        likely than not have claimed. 0: give up only what is certain to fail */
    uint64_t n_max;  /* most samples of a text, 1 .. 999999999 */
    size_t classes;  /* labels, at least 2 */
    int none;        /* an answer that is no label is possible. It counts for no class; if y
                        shall beat it too, make it a class instead */
} sf_eprocess_options;

/* delta .01, futility .005, n_max 5000, two classes, no `none`. */
sf_eprocess_options sf_eprocess_options_default(void);

/* SAFER_INVALID, with the field's name, when an option is out of range. */
safer_status sf_eprocess_check(const sf_eprocess_options *options, safer_error *error);

typedef enum sf_verdict {
    SF_OPEN,    /* more samples may decide it */
    SF_CLAIMED, /* certified at this radius and below */
    SF_FUTILE,  /* given up; nothing is said */
} sf_verdict;

typedef struct sf_eprocess sf_eprocess;

safer_status sf_eprocess_new(sf_eprocess **out, const sf_eprocess_options *options, safer_error *error);
void sf_eprocess_free(sf_eprocess *process); /* NULL is fine */

/* Starts a text: class y is to be certified at each of the radii p0[0] <= p0[1] <= ...,
 * every one at least 1/2 (at 1 or more a radius is futile at once). Memory is kept from
 * text to text. */
safer_status sf_eprocess_begin(sf_eprocess *process, size_t y, const double *p0, size_t radii, safer_error *error);

/* Whether every radius is decided; then no sample may be added. */
int sf_eprocess_done(const sf_eprocess *process);

/* Counts the next sample's answer: a label, or -1 for none. Returns sf_eprocess_done. */
int sf_eprocess_add(sf_eprocess *process, int vote);

/* How many more samples decide every radius if all vote for y. By this batches are sized, not decisions made. */
uint64_t sf_eprocess_soonest(const sf_eprocess *process);

/* Samples so far, and the votes of every class (they sum to less when there were none-votes). */
uint64_t sf_eprocess_samples(const sf_eprocess *process);
const uint64_t *sf_eprocess_counts(const sf_eprocess *process);

/* -------------------------------------------------- from the counts alone */

/* The verdicts on the radii of sf_eprocess_begin in any state, by their definitions and
 * without the process's shortcuts: it is done at the first state in which none is SF_OPEN.
 * `counts` has one entry per class; none-votes are what they lack to n. The reference that the
 * process is tested against, and by which its error rates are computed exactly. */
void sf_eprocess_decide(const sf_eprocess *process, sf_verdict *verdicts, const uint64_t *counts, uint64_t n);

/* Whether these counts claim a radius: exactly what the process says at its stopping time. */
int sf_eprocess_claims(const sf_eprocess_options *options, size_t y, double p0, const uint64_t *counts, uint64_t n);

/* Whether these counts claim a radius on any machine: the same test with half of the allowance for errors.
 * For what was computed elsewhere, where the last bits of log, exp and asin may be others: what such a
 * machine claims is granted, and what is granted is true. For the allowance is twice the errors at least:
 * 1e-12 + 1e-14 |value| over ten times the largest that was found for tails (special.c), 16, 4 and 64 eps
 * for 8, 2 and 25 in the two-class form (evalue.c), with log, exp and log1p that err by at most 2 eps. */
int sf_eprocess_grants(const sf_eprocess_options *options, size_t y, double p0, const uint64_t *counts, uint64_t n);

/* The largest p0 that these counts claim, 0 when they do not even claim 1/2: a lower
 * confidence bound on g(y) with two labels, on (1 + g(y) - max g(c))/2 with more. */
double sf_eprocess_bound(const sf_eprocess_options *options, size_t y, const uint64_t *counts, uint64_t n);

#endif
