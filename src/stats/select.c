/* Choosing a class by vote.
 *
 * Cohen, Rosenfeld & Kolter (2019, "Certified adversarial robustness via randomized
 * smoothing", section 3.2.1, PREDICT): return the class with most votes if a two-sided exact
 * test of "the first two are equally likely" rejects at level alpha, else abstain. That the
 * two were picked by the same votes costs nothing: Hung & Fithian (2019, "Rank verification
 * for exponential families", Annals of Statistics 47, theorem 1) show that the two-sided
 * binomial p-value of winner against runner-up, conditional on their sum, is valid for "the
 * winner is not the most probable class". So the probability of returning a class other than
 * the smoothed prediction is at most alpha, for any number of classes.
 *
 * The p-value is rounded up (binomial.c): abstaining is the safe side. */
#include "stats/select.h"

#include "stats/binomial.h"

#include <assert.h>

sf_election sf_elect(const uint64_t *counts, size_t classes)
{
    assert(classes >= 2);
    sf_election e = {.winner = 0};
    for (size_t c = 1; c < classes; c++)
        if (counts[c] > counts[e.winner]) e.winner = c;
    e.runner_up = e.winner == 0;
    for (size_t c = 0; c < classes; c++)
        if (c != e.winner && counts[c] > counts[e.runner_up]) e.runner_up = c;
    e.p_value = sf_sign_test(counts[e.winner], counts[e.runner_up]);
    return e;
}

int sf_election_is_clear(const sf_election *election, double alpha) { return election->p_value <= alpha; }
