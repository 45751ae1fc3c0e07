/* The vote that chooses a prediction: draws until the leading class is clear, or given up.
 *
 *     const sf_vote_rule rule = sf_vote_rule_of(classes, alpha, n_max);
 *     sf_vote vote;
 *     sf_vote_begin(&vote, &rule, counts);
 *     for (i = 0; !sf_vote_done(&vote); i++)
 *         sf_vote_add(&vote, answer to draw i);
 *     sf_vote_clear(counts, classes, alpha) ...
 *
 * A class is returned when the vote is clear, else nothing is said: the probability that a vote is ever
 * clear for a class that is not the most probable one, or for one of several that are equally probable, is
 * at most alpha. The head of vote.c has the proof. Draws count in order and never past the one that ends
 * the vote. All verdicts are functions of the counts, so that a record can be checked by what it holds.
 * Nothing is computed with functions whose last digits differ between C libraries: the verdicts are the same on
 * every machine. */
#ifndef SF_STATS_VOTE_H
#define SF_STATS_VOTE_H

#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------- from the counts alone */

/* The class with most votes; of several, the first. classes >= 2. */
size_t sf_vote_leader(const uint64_t *counts, size_t classes);

/* Whether the leader may be returned: E(a,b) >= (classes - 1) / alpha, for the votes a of the leader and b of
 * the runner-up, E rounded down. At most SF_SAMPLES_MAX votes (special.h); 0 < alpha < 1. */
int sf_vote_clear(const uint64_t *counts, size_t classes, double alpha);

/* A vote of at most n_max draws, 1 .. SF_SAMPLES_MAX. A value: copy it freely, share it between threads. */
typedef struct sf_vote_rule {
    size_t classes;
    uint64_t n_max;
    double needed; /* (classes - 1) / alpha, rounded up */
    uint64_t lead; /* the least lead with which n_max votes for two classes are clear; 0: not even n_max */
} sf_vote_rule;

sf_vote_rule sf_vote_rule_of(size_t classes, double alpha, uint64_t n_max);

typedef enum sf_vote_verdict {
    SF_VOTE_OPEN,    /* draw on */
    SF_VOTE_CLEAR,   /* return the leader */
    SF_VOTE_GIVEN_UP /* abstain: n_max draws are made, or being clear by then is unlikely */
} sf_vote_verdict;

/* The verdict on n draws with these votes; answers that are no label are what the counts lack to n. `insist`:
 * nothing is given up before n_max. */
sf_vote_verdict sf_vote_decide(const sf_vote_rule *rule, const uint64_t *counts, uint64_t n, int insist);

/* Whether a vote can end with these counts: it is decided, and was open before its last draw, for at least
 * one class (or no label) that this draw can have had. Changes counts while it looks. */
int sf_vote_can_end(const sf_vote_rule *rule, uint64_t *counts, uint64_t n, int insist);

/* ------------------------------------------------------------- draw by draw */

typedef struct sf_vote {
    const sf_vote_rule *rule; /* borrowed */
    uint64_t *counts;         /* classes: the caller's */
    uint64_t n;               /* draws so far */
    uint64_t clear_from;      /* it cannot be clear before so many draws */
    int insist;               /* nothing is given up before n_max */
    sf_vote_verdict verdict;
} sf_vote;

/* Sets the counts to 0. The rule and the counts must outlive the vote. */
void sf_vote_begin(sf_vote *vote, const sf_vote_rule *rule, uint64_t *counts);

/* Whether the vote has ended; then no answer may be added. */
int sf_vote_done(const sf_vote *vote);

/* Counts the next draw's answer: a class, or -1 for no label. Returns sf_vote_done. */
int sf_vote_add(sf_vote *vote, int answer);

/* How many more answers make an open vote clear if all are for its leader; where it cannot be, those that are left. By
 * this batches are sized, not decisions made. */
uint64_t sf_vote_soonest(const sf_vote *vote);

/* From here on nothing is given up before n_max: a vote that was goes on. */
void sf_vote_insist(sf_vote *vote);

#endif
