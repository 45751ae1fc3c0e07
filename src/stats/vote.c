/* The vote that chooses a prediction.
 *
 * What is assumed: the answers to a text's draws are independent and identically distributed. g(c) is the
 * probability of class c; the right answer is the class with the largest g, and no answer when several
 * share it. a and b are the votes of the leader and of the runner-up.
 *
 * E. For a class w with i votes and a class r with j,
 *     E(i,j) = (2i-1)!! (2j-1)!! / (i+j)!
 * is the likelihood of those i + j votes under "each is for w with probability theta", theta drawn from the
 * arcsine law Beta(1/2,1/2), over that under theta = 1/2. It depends on the order of the votes in no way.
 * Three facts:
 *   1. A further vote multiplies it: E(i+1,j) = E(i,j) (2i+1)/(i+j+1). So for j < i it falls as j grows,
 *      and for i >= j it does not fall as i grows.
 *   2. Two sides. If g(w) = g(r), votes for neither leave E as it is, and one for either multiplies it by
 *      a factor of mean 1: E is a martingale that begins at 1, and ever reaches t with probability at most
 *      1/t (Ville), whichever of the two is then ahead.
 *   3. One side. Let E+ be the same with theta drawn from the half of the law above 1/2. If g(w) <= g(r),
 *      the likelihood ratio of every such theta is a supermartingale that begins at 1, so E+ ever reaches
 *      t with probability at most 1/t. E is the mean of E+ and of its mirror image E-, and where i >= j,
 *      E+ >= E-: where w is not behind, E >= t implies E+ >= t.
 *
 * Claim. If the vote is called clear when E(a,b) >= t = (K-1)/alpha, the probability that it ever is, for a
 * class that is not the right answer, is at most alpha.
 *   One right class r. That w is returned means that w is ahead of r, which has at most b votes, so by fact 1
 *   E of the pair (w,r) is at least E(a,b) >= t; by fact 3 the probability is at most 1/t for every w, and
 *   there are K - 1 of them.
 *   m > 1 classes share the largest g. Returning one of them means that E of its pair with any other of them
 *   reached t (fact 1), which by fact 2 has probability at most 1/t for both classes of the pair together.
 *   ceil(m/2) pairs cover the m classes, and each of the other K - m is wrong as above: at most
 *   (ceil(m/2) + K - m)/t <= (K-1)/t.
 * When to stop may depend on the votes so far, and on all that is independent of the votes, such as a certificate
 * by other draws; and abstaining is no error. So n_max, giving up and insisting need no proof. An answer that is no
 * label is a vote for neither of any pair.
 *
 * Against a test of a fixed number of draws (Cohen, Rosenfeld & Kolter 2019), which select.c has: at alpha =
 * .001 with two classes 13 votes for one class are clear, where 11 are the least with which any such test can be.
 *
 * Giving up. A text with g near 1/2 would always take n_max draws, and few of these texts are worth it: at
 * g = .54 a clear vote takes 3,163 draws, as many as two hundred ordinary texts. With n_max draws for two classes
 * a lead L is clear. From draw FIRST_LOOK on a vote is given up when its lead, growing as so far, stays below:
 *     lead sqrt(n/(a+b)) n_max / n < L
 * (where some draws are for neither, the lead that is clear is less, about as the square root of those for
 * either; so the lead counts as that much more). The caller may insist: where the same text has a certificate, an
 * answer is worth all n_max draws. At n_max = 5000, alpha = .001 and two classes, computed over all paths by
 * tests/test_vote.c:
 *
 *     g               .5     .52     .54     .56     .58     .60     .65     .70     .80
 *     draws          148     202     432     546     483     386     199     109      45
 *       insisting  4,996   4,919   3,163   1,408     768     480     203     110      45
 *     clear        .0007   .0055   .1276   .4177   .6648   .8319   .9850   .9995   1.000
 *       insisting  .0007   .0521   .8635   .9999   1.000   1.000   1.000   1.000   1.000
 *
 * Rounding. E is rounded down. C(2b,b)/4^b = E(b,b) is a product for small b; for others its lower bound
 *     1/sqrt(pi (b + 1/4 + 1/(32 b)))
 * is used: the square of their quotient is E(b,b)^2 (b + 1/4 + 1/(32b)) pi, which tends to 1 and falls in b, since
 * (2b+1)^2 b (32b^2 + 72b + 41) is less than 4 (b+1)^3 (32b^2 + 8b + 1), by 3b + 4. From there E(i,b) is
 * multiplied up, two operations per vote, to a or until it suffices: at most about 5 sqrt(a+b) steps. */
#include "stats/vote.h"

#include "stats/special.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#define PI_UP 3.1415926535897936 /* at least pi */
enum { FIRST_LOOK = 100 };       /* draws before which nothing is given up */
enum { PRODUCT_UP_TO = 256 };    /* where the bound is low by 3e-10 of the value, and less beyond */

/* ------------------------------------------------------------------- E(a,b) */

/* E(b,b) = C(2b,b) / 4^b, or a little less, but for the roundings of at most PRODUCT_UP_TO steps. */
static double e_of_tie(uint64_t b)
{
    const double x = (double)b;
    double e = 1;
    if (b > PRODUCT_UP_TO) return 1 / sqrt(PI_UP * (x + 0.25 + 1 / (32 * x)));
    for (uint64_t i = 1; i <= b; i++) e *= (double)(2 * i - 1) / (double)(2 * i);
    return e;
}

/* The fewest votes a <= most that are clear against b, or most + 1 (also where E leaves the range of double). A
 * step has two roundings, each by a relative 1/2 DBL_EPSILON at most: twice as much is taken off. */
static uint64_t votes_needed(double needed, uint64_t b, uint64_t most)
{
    double e = e_of_tie(b);
    for (uint64_t a = b; a <= most && e <= DBL_MAX; a++) {
        const double steps = (double)(a - b) + PRODUCT_UP_TO + 8;
        if (e * (1 - 2 * DBL_EPSILON * steps) >= needed) return a;
        e *= (double)(2 * a + 1) / (double)(a + b + 1);
    }
    return most + 1;
}

static double needed_for(size_t classes, double alpha)
{
    assert(classes >= 2 && alpha > 0 && alpha < 1);
    return nextafter((double)(classes - 1) / alpha, HUGE_VAL);
}

/* ----------------------------------------------------- from the counts alone */

size_t sf_vote_leader(const uint64_t *counts, size_t classes)
{
    size_t leader = 0;
    for (size_t c = 1; c < classes; c++)
        if (counts[c] > counts[leader]) leader = c;
    return leader;
}

/* The votes of the first two. */
typedef struct duel {
    uint64_t a, b;
} duel;

static duel duel_of(const uint64_t *counts, size_t classes)
{
    const size_t leader = sf_vote_leader(counts, classes);
    duel d = {.a = counts[leader]};
    for (size_t c = 0; c < classes; c++)
        if (c != leader && counts[c] > d.b) d.b = counts[c];
    assert(d.a <= SF_SAMPLES_MAX && d.b <= SF_SAMPLES_MAX - d.a);
    return d;
}

int sf_vote_clear(const uint64_t *counts, size_t classes, double alpha)
{
    const duel d = duel_of(counts, classes);
    return votes_needed(needed_for(classes, alpha), d.b, d.a) <= d.a;
}

/* Fewer votes of n_max than the least that are clear never are, and more always are. */
sf_vote_rule sf_vote_rule_of(size_t classes, double alpha, uint64_t n_max)
{
    assert(n_max >= 1 && n_max <= SF_SAMPLES_MAX);
    sf_vote_rule rule = {.classes = classes, .n_max = n_max, .needed = needed_for(classes, alpha)};
    uint64_t low = n_max / 2, high = n_max + 1; /* low, a tie or less, is not clear */
    while (high - low > 1) {
        const uint64_t a = low + (high - low) / 2;
        if (votes_needed(rule.needed, n_max - a, a) <= a)
            high = a;
        else
            low = a;
    }
    if (high <= n_max) rule.lead = high - (n_max - high);
    return rule;
}

/* Whether the lead, growing as so far, stays below the one that is needed. */
static int is_hopeless(const sf_vote_rule *rule, duel d, uint64_t n)
{
    if (n < FIRST_LOOK || rule->lead == 0) return 0;
    const double votes = (double)(d.a + d.b), draws = (double)n;
    const double lead = d.a > d.b ? (double)(d.a - d.b) * sqrt(draws / votes) : 0;
    return lead * (double)rule->n_max < (double)rule->lead * draws;
}

static sf_vote_verdict decide(const sf_vote_rule *rule, duel d, uint64_t n, int clear, int insist)
{
    if (clear) return SF_VOTE_CLEAR;
    return n >= rule->n_max || (!insist && is_hopeless(rule, d, n)) ? SF_VOTE_GIVEN_UP : SF_VOTE_OPEN;
}

sf_vote_verdict sf_vote_decide(const sf_vote_rule *rule, const uint64_t *counts, uint64_t n, int insist)
{
    const duel d = duel_of(counts, rule->classes);
    return decide(rule, d, n, votes_needed(rule->needed, d.b, d.a) <= d.a, insist);
}

int sf_vote_can_end(const sf_vote_rule *rule, uint64_t *counts, uint64_t n, int insist)
{
    uint64_t votes = 0;
    int was_open = 0;
    for (size_t c = 0; c < rule->classes; c++) votes += counts[c];
    if (n < 1 || n > rule->n_max || votes > n || sf_vote_decide(rule, counts, n, insist) == SF_VOTE_OPEN) return 0;
    if (votes < n) was_open = sf_vote_decide(rule, counts, n - 1, insist) == SF_VOTE_OPEN;
    for (size_t c = 0; c < rule->classes && !was_open; c++) {
        if (!counts[c]) continue;
        counts[c]--;
        was_open = sf_vote_decide(rule, counts, n - 1, insist) == SF_VOTE_OPEN;
        counts[c]++;
    }
    return was_open;
}

/* -------------------------------------------------------------- draw by draw */

void sf_vote_begin(sf_vote *vote, const sf_vote_rule *rule, uint64_t *counts)
{
    *vote = (sf_vote){.rule = rule, .counts = counts, .verdict = SF_VOTE_OPEN};
    for (size_t c = 0; c < rule->classes; c++) counts[c] = 0;
}

int sf_vote_done(const sf_vote *vote) { return vote->verdict != SF_VOTE_OPEN; }

/* The votes that the leader lacks to be clear do not become fewer but by a vote for it: b never falls, and
 * another leader would have to be clear against more. So the vote cannot be clear for that many draws. */
int sf_vote_add(sf_vote *vote, int answer)
{
    const sf_vote_rule *rule = vote->rule;
    int clear = 0;
    assert(!sf_vote_done(vote));
    assert(answer >= -1 && (answer < 0 || (size_t)answer < rule->classes));
    if (answer >= 0) vote->counts[answer]++;
    vote->n++;
    const duel d = duel_of(vote->counts, rule->classes);
    if (vote->n >= vote->clear_from) {
        const uint64_t enough = votes_needed(rule->needed, d.b, d.a + (rule->n_max - vote->n));
        clear = enough <= d.a;
        if (!clear) vote->clear_from = vote->n + (enough - d.a);
    }
    vote->verdict = decide(rule, d, vote->n, clear, vote->insist);
    return sf_vote_done(vote);
}

uint64_t sf_vote_soonest(const sf_vote *vote)
{
    const uint64_t left = vote->rule->n_max - vote->n;
    const duel d = duel_of(vote->counts, vote->rule->classes);
    const uint64_t enough = votes_needed(vote->rule->needed, d.b, d.a + left);
    assert(!sf_vote_done(vote));
    return enough - d.a < left ? enough - d.a : left;
}

void sf_vote_insist(sf_vote *vote)
{
    vote->insist = 1;
    if (vote->verdict == SF_VOTE_GIVEN_UP && vote->n < vote->rule->n_max) vote->verdict = SF_VOTE_OPEN;
}
