/* Bounds and tests for counts at a fixed number of samples.
 *
 * Clopper-Pearson (Clopper & Pearson 1934, Biometrika 26). P[Bin(n,p) >= k] grows with p.
 * Let p_L(k) be any p at which it is at most delta. If the true probability is p and the
 * count K gives p_L(K) > p, then P[Bin(n,p) >= K] <= delta; the set of such K is an upper
 * tail of Bin(n,p) whose own probability is therefore at most delta. So P[p_L(K) > p] <=
 * delta for every p, and *any* p that passes the tail inequality will do: a bisection may
 * stop anywhere on the passing side and needs no monotone arithmetic.
 *
 * Rounding. The tail is computed in logarithms (special.c) and its stated error is added
 * before it is compared with log(delta), which is itself rounded down. The returned double
 * has passed that comparison. The loss is below 1e-11 of the slack.
 *
 * The exception, k = n: the tail is p^n, the bound delta^(1/n), and the same comparison
 * n log(p) (1 + error) <= log(delta) is made with p^n instead of a beta tail.
 *
 * Hoeffding (the paper's test; Hoeffding 1963, JASA 58, theorem 1). Each vote share is
 * within t = sqrt(log(classes/delta)/(2n)) of its mean, on the side that matters, except
 * with probability delta/classes; so the margin is overstated by more than 2t with
 * probability at most delta. The slack is rounded up, the margin down.
 *
 * Two-sided sign test (McNemar 1947; exact form): under the null the discordant pairs are
 * fair coins, and p = min(1, 2 P[Bin(n,1/2) >= larger]); rounded up. One-sided: without the 2, and of the first. */
#include "stats/binomial.h"

#include "base/elementary.h"
#include "base/number.h"
#include "safer.h"
#include "stats/special.h"

#include <assert.h>
#include <float.h>
#include <math.h>

/* sf_log, sf_exp, sqrt and a product after them, together: below 4 eps. */
#define SLIP (8 * DBL_EPSILON)

/* `rigour` below is the share of the allowances for errors that is taken off: 1, or 1/2 where it is asked
 * what any machine may claim (sf_eprocess_grants says why that is enough). */
static double log_down(double delta, double rigour) { return sf_log(delta) * (1 + rigour * SLIP); } /* delta < 1 */

double sf_null_probability(double q)
{
    assert(q >= 0);
    double p = 0.5 + q;
    return p - 0.5 < q ? nextafter(p, HUGE_VAL) : p; /* the subtraction is exact for p <= 1 */
}

/* ------------------------------------------------------- Clopper-Pearson */

/* Whether P[Bin(n,p) >= k] <= delta beyond numerical doubt. 1 <= k <= n, 0 < p < 1. */
static int tail_is_below(uint64_t k, uint64_t n, double p, double log_delta, double rigour)
{
    if (k == n) return (double)n * sf_log(p) * (1 - rigour * SLIP) <= log_delta;
    double tail = sf_log_binomial_tail(k, n, p);
    return tail + rigour * sf_log_tail_error(tail) <= log_delta;
}

double sf_binomial_lower(uint64_t k, uint64_t n, double delta)
{
    assert(k <= n && n <= SF_SAMPLES_MAX);
    assert(delta > 0 && delta < 1);
    if (k == 0) return 0;
    double log_delta = log_down(delta, 1), low = 0, high = 1;
    for (;;) { /* low has passed (0 trivially does), high has not been seen to */
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) return low;
        if (tail_is_below(k, n, middle, log_delta, 1))
            low = middle;
        else
            high = middle;
    }
}

int sf_binomial_certifies(uint64_t k, uint64_t n, double q, double delta)
{
    double p0 = sf_null_probability(q);
    return p0 < 1 && sf_binomial_lower(k, n, delta) > p0;
}

int sf_binomial_grants(uint64_t k, uint64_t n, double p, double delta)
{
    assert(k <= n && n <= SF_SAMPLES_MAX);
    assert(delta > 0 && delta < 1);
    if (p <= 0) return 1;
    return k > 0 && p < 1 && tail_is_below(k, n, p, log_down(delta, 0.5), 0.5);
}

/* ------------------------------------------------------------- Hoeffding */

static double slack_of(uint64_t n, size_t classes, double delta, double rigour)
{
    assert(n >= 1 && classes >= 2);
    assert(delta > 0 && delta < 1);
    return 2 * sqrt((sf_log((double)classes) - sf_log(delta)) / (2 * (double)n)) * (1 + rigour * SLIP);
}

double sf_hoeffding_slack(uint64_t n, size_t classes, double delta) { return slack_of(n, classes, delta, 1); }

/* Whether the lead exceeds 2q and the slack. */
static int leads_by(uint64_t k, uint64_t rival, uint64_t n, double q, double slack)
{
    assert(k <= n && rival <= n - k);
    assert(q >= 0);
    return k > rival && sf_ratio_down(k - rival, n) > nextafter(2 * q + slack, HUGE_VAL);
}

int sf_hoeffding_certifies(uint64_t k, uint64_t rival, uint64_t n, size_t classes, double q, double delta)
{
    return leads_by(k, rival, n, q, slack_of(n, classes, delta, 1));
}

int sf_hoeffding_grants(uint64_t k, uint64_t rival, uint64_t n, size_t classes, double q, double delta)
{
    return leads_by(k, rival, n, q, slack_of(n, classes, delta, 0.5));
}

/* (1 + lead - slack)/2, down. */
static double bound_of(uint64_t k, uint64_t rival, uint64_t n, double slack)
{
    double lead = ((double)k - (double)rival) / (double)n, bound = 0.5 + (lead - slack) / 2;
    return bound > 0 ? nextafter(nextafter(bound, 0), 0) : 0;
}

double sf_hoeffding_lower(uint64_t k, uint64_t rival, uint64_t n, size_t classes, double delta)
{
    return bound_of(k, rival, n, slack_of(n, classes, delta, 1));
}

int sf_hoeffding_grants_lower(uint64_t k, uint64_t rival, uint64_t n, size_t classes, double bound, double delta)
{
    return bound <= bound_of(k, rival, n, slack_of(n, classes, delta, 0.5));
}

/* ------------------------------------------------------------- reporting */

sf_interval sf_wilson(uint64_t k, uint64_t n, double z)
{
    assert(k <= n && z > 0);
    if (n == 0) return (sf_interval){0, 1};
    double size = (double)n, p = (double)k / size, zz = z * z / size;
    double centre = (p + zz / 2) / (1 + zz);
    double half = sqrt(zz * (p * (1 - p) + zz / 4)) / (1 + zz);
    return (sf_interval){k == 0 ? 0 : fmax(centre - half, 0), k == n ? 1 : fmin(centre + half, 1)};
}

void safer_interval(size_t part, size_t whole, double *low, double *high)
{
    const sf_interval interval = sf_wilson(part, whole, SF_Z95);
    *low = interval.low;
    *high = interval.high;
}

double sf_sign_test_above(uint64_t first, uint64_t second)
{
    assert(first <= SF_SAMPLES_MAX && second <= SF_SAMPLES_MAX - first);
    if (first == 0) return 1;
    double tail = sf_log_binomial_tail(first, first + second, 0.5);
    return fmin(sf_exp(tail + sf_log_tail_error(tail)) * (1 + SLIP), 1);
}

double sf_sign_test(uint64_t first, uint64_t second)
{
    if (first == second) return 1;
    return fmin(2 * sf_sign_test_above(first > second ? first : second, first > second ? second : first), 1);
}
