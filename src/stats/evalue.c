/* E-values for votes.
 *
 * Ville (1939): if M_0 = 1, M_t >= 0 and E[M_t | past] <= M_(t-1), then the probability
 * that M_t ever reaches 1/delta is at most delta. So one may look after every sample and
 * stop whenever one likes. (Looking at Clopper-Pearson in the same way turns 1% into 7%
 * after 200 samples and 14% after 5000; tests/test_stats_rates.c computes both exactly.)
 *
 * One number. Samples X_i in {0,1} succeed with probability p <= p0. For theta >= p0 the
 * likelihood ratio multiplies by theta/p0 on a success and (1-theta)/(1-p0) on a failure;
 * its expected factor is 1 + (p-p0) (theta-p0)/(p0(1-p0)) <= 1. A mixture over theta with
 * weights fixed beforehand is again a supermartingale. With the arcsine (Jeffreys) prior
 * cut to [p0,1] it is
 *     E(k,n) = int_p0^1 theta^(k-1/2) (1-theta)^(n-k-1/2) dtheta
 *              / ( int_p0^1 theta^(-1/2) (1-theta)^(-1/2) dtheta * p0^k (1-p0)^(n-k) ).
 * With a = k+1/2 and b = n-k+1/2 the numerator over p0^a (1-p0)^b is Mills' ratio of the
 * beta distribution (special.h), so
 *     log E = log mills(p0; a, b) + [ log(p0(1-p0))/2 - log(2 asin sqrt(1-p0)) ],
 * and the bracket is a constant of p0. No large numbers cancel.
 *
 * E depends on the order of the samples nowhere: the counts at the stopping time are enough
 * to check it again.
 *
 * Monotone in k and n. E(k+1,n+1)/E(k,n) is the posterior mean of theta/p0 >= 1 and
 * E(k,n+1)/E(k,n) that of (1-theta)/(1-p0) <= 1, since theta >= p0 throughout. So the
 * smallest k that reaches a level moves by 0 or 1 when n grows by 1.
 *
 * Monotone in p0: for p0 in [1/2,1), wherever E > 1 it falls as p0 grows. (Let h(p0) be the
 * prior's hazard, density over mass above p0, and s = (k - n p0)/(p0(1-p0)) the slope of
 * the log-likelihood at p0. Then d log E/d p0 = h (1 - 1/E) - s. The log-likelihood is
 * concave, so E is at most the prior's mean of exp(s(theta-p0)) above p0; E > 1 needs s > 0.
 * If s >= h the derivative is negative. Else compare with an exponential distribution of
 * rate h: the arcsine hazard increases on [1/2,1), so the prior above p0 is stochastically
 * smaller, E < h/(h-s), and h(1-1/E) < s.) And s > 0 at p0 implies it below p0. So the p0 at
 * which E >= 1/delta form an interval [1/2, p*]: claims about nested radii can never
 * contradict each other, and p* is itself a lower confidence bound on the probability.
 *
 * Two classes (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by
 * betting", JRSS-B 86). Several labels, or answers that are not a label: the score Y in
 * {0, 1/2, 1} has mean (1 + g(y) - g(c))/2, and the null "mean <= m" is tested by
 * prod (1 + lambda (Y_i - m)), lambda in (0, 1/m): nonnegative, and its expected factor
 * is 1 + lambda (E[Y] - m) <= 1. Written with t = lambda m in (0,1) the factor is
 *     1 - t + t Y/m,
 * which falls in m for fixed t: bets are fixed as t, so E falls in m outright. E is the plain
 * mean over SF_MARGIN_BETS bets t, and depends on the counts of the three scores alone.
 *
 * The bets: 23 uniform, j/24; 5 closing in on 1 (1 - 2^-i/24), for near-unanimous votes,
 * where everything close to 1 shares the work; 4 closing in on 0 (2^-i/24), without which
 * margins that need more than some 20,000 samples would never be claimed. Against the
 * one-number form where both apply (two labels only) it needs 6 to 9% more samples at
 * unanimity (116 for 109 at p0 = .95, 12 for 11 at .6), the same at (p,p0) = (.9,.8) and 3%
 * fewer at (.85,.8).
 *
 * A fixed mixture with the one-number form would be valid too: g(y) - g(c) <= 2q and
 * g(y) + g(c) <= 1 give g(y) <= 1/2 + q, so that form is an e-process under the same null.
 * (The larger of the two would not be: that is selection.) Measured, half and half saves
 * at most 3% of the samples where third answers never occur and costs 2 to 13% where they
 * do, so it was left out.
 *
 * Rounding: logarithms of e-values are rounded down by the stated error of their parts,
 * targets up. A null p0 that was rounded up is a larger null: safe. */
#include "stats/evalue.h"

#include "base/elementary.h"
#include "stats/special.h"

#include <assert.h>
#include <float.h>
#include <math.h>

double sf_log_e_target(double delta)
{
    assert(delta > 0 && delta < 1);
    return -sf_log(delta) * (1 + 8 * DBL_EPSILON);
}

/* ------------------------------------------------------------ one number */

sf_null sf_null_of(double p0)
{
    assert(p0 > 0 && p0 < 1);
    return (sf_null){p0, 0.5 * (sf_log(p0) + sf_log1p(-p0)) - sf_log(2 * sf_asin(sqrt(1 - p0))), 1};
}

double sf_null_log_e(const sf_null *null, uint64_t k, uint64_t n)
{
    assert(k <= n && n < SF_SAMPLES_MAX);
    double mills = sf_log_beta_mills(null->p0, (double)k + 0.5, (double)(n - k) + 0.5);
    return mills + null->offset - null->rigour * sf_log_tail_error(mills) -
           null->rigour * sf_log_tail_error(null->offset);
}

/* The smallest k in [low, high) that reaches the target, or high. */
static uint64_t search(const sf_null *null, double target, uint64_t n, uint64_t low, uint64_t high)
{
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (sf_null_log_e(null, middle, n) >= target)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t sf_null_threshold(const sf_null *null, double target, uint64_t n)
{
    assert(target > 0);
    return search(null, target, n, 0, n + 1);
}

sf_boundary sf_boundary_of(double p0, double target)
{
    assert(target > 0);
    return (sf_boundary){sf_null_of(p0), target, 0, 1};
}

uint64_t sf_boundary_advance(sf_boundary *boundary, uint64_t n)
{
    assert(n >= boundary->n);
    uint64_t high = boundary->k + (n - boundary->n);
    boundary->k = search(&boundary->null, boundary->target, n, boundary->k, high < n + 1 ? high : n + 1);
    boundary->n = n;
    return boundary->k;
}

/* ----------------------------------------------------------- two classes */

static double bet(int j)
{
    if (j < 4) return ldexp(1.0 / 24, j - 4);
    if (j < 27) return (j - 3) / 24.0;
    return 1 - ldexp(1.0 / 24, 26 - j);
}

/* log(1 + x) rounded down: x carries a relative error of 3 eps, which the logarithm
 * multiplies by at most 2 for x >= -1/2, and log1p adds its own, at most 2 eps: 8 eps. */
static double log_factor(double x, double rigour)
{
    double value = sf_log1p(x);
    return value - rigour * 16 * DBL_EPSILON * fabs(value);
}

void sf_margin_set(sf_margin *margin, double m, double rigour)
{
    assert(m > 0 && m < 1);
    margin->m = m;
    margin->rigour = rigour;
    for (int j = 0; j < SF_MARGIN_BETS; j++) {
        double t = bet(j);
        margin->win[j] = log_factor(t * (1 - m) / m, rigour);
        margin->draw[j] = log_factor(t * (0.5 - m) / m, rigour);
        margin->lose[j] = log_factor(-t, rigour);
    }
}

double sf_margin_log_e(const sf_margin *margin, uint64_t wins, uint64_t draws, uint64_t losses)
{
    double w = (double)wins, d = (double)draws, l = (double)losses, slip = margin->rigour * 4 * DBL_EPSILON;
    double term[SF_MARGIN_BETS], top = -HUGE_VAL;
    for (int j = 0; j < SF_MARGIN_BETS; j++) {
        double a = w * margin->win[j], b = d * margin->draw[j], c = l * margin->lose[j];
        term[j] = a + b + c - slip * (fabs(a) + fabs(b) + fabs(c)); /* their roundings: below 2 eps */
        if (term[j] > top) top = term[j];
    }
    double sum = 0;
    for (int j = 0; j < SF_MARGIN_BETS; j++) sum += sf_exp(term[j] - top);
    /* 31 sums of positive terms, eps/2 each, exp, 2 eps, and a logarithm below 3.5, 2 eps of it: below 25 eps. */
    return top + sf_log(sum / SF_MARGIN_BETS) - margin->rigour * 64 * DBL_EPSILON - slip * fabs(top);
}
