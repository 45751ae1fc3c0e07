/* Choosing a class by the vote of a fixed number of samples, and saying whether the vote was clear.
 *
 * How runs chose their predictions before stats/vote.h: such runs can still be asked again. */
#ifndef SF_STATS_SELECT_H
#define SF_STATS_SELECT_H

#include <stddef.h>
#include <stdint.h>

typedef struct sf_election {
    size_t winner;    /* the class with most votes; of several, the first */
    size_t runner_up; /* the same among the others */
    double p_value;   /* of "the winner is not the class with the largest probability", rounded up */
} sf_election;

/* classes >= 2. Answers that are not a label are simply not in `counts`. */
sf_election sf_elect(const uint64_t *counts, size_t classes);

/* Whether a deployed `predict` may return the winner at level alpha, or must abstain. */
int sf_election_is_clear(const sf_election *election, double alpha);

#endif
