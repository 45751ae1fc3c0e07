/* Bounds and tests for counts at a fixed number of samples.
 *
 * Everything that a certificate rests on is rounded to the safe side: lower bounds down,
 * upper bounds, slacks and p-values up. Pure functions; any number of threads. Counts are
 * at most SF_SAMPLES_MAX (special.h), levels lie in (0,1); anything else is a broken
 * invariant. */
#ifndef SF_STATS_BINOMIAL_H
#define SF_STATS_BINOMIAL_H

#include <stddef.h>
#include <stdint.h>

/* The number every test of this room compares with: 1/2 + q, rounded up. q >= 0. Class y
 * is certified when g(y) is above it; at 1 or more nothing can be. */
double sf_null_probability(double q);

/* Clopper-Pearson: p with P[Bin(n,p) >= k] <= delta, so that k successes in n put the
 * true probability at or above p with confidence 1 - delta. 0 when k = 0. */
double sf_binomial_lower(uint64_t k, uint64_t n, double delta);

/* The `binomial` method: whether k votes for the class in n say g > 1/2 + q. */
int sf_binomial_certifies(uint64_t k, uint64_t n, double q, double delta);

/* Whether they put it at or above p on any machine (sf_eprocess_grants). */
int sf_binomial_grants(uint64_t k, uint64_t n, double p, double delta);

/* The paper's slack on the difference of two vote shares,
 * 2 sqrt((log(1/delta) + log(classes)) / (2n)), n >= 1, classes >= 2. */
double sf_hoeffding_slack(uint64_t n, size_t classes, double delta);

/* The `hoeffding` method: whether (k - rival)/n - 2q - slack > 0, with `rival` the most
 * votes that another class has. */
int sf_hoeffding_certifies(uint64_t k, uint64_t rival, uint64_t n, size_t classes, double q, double delta);

/* The same quantity as a bound, (1 + (k - rival)/n - slack)/2 rounded down, at least 0; and whether q, or a
 * bound, is what any machine may claim (sf_eprocess_grants). */
double sf_hoeffding_lower(uint64_t k, uint64_t rival, uint64_t n, size_t classes, double delta);
int sf_hoeffding_grants(uint64_t k, uint64_t rival, uint64_t n, size_t classes, double q, double delta);
int sf_hoeffding_grants_lower(uint64_t k, uint64_t rival, uint64_t n, size_t classes, double bound, double delta);

/* Wilson's score interval, for tables and pictures only: not rounded to any side. z is
 * the normal quantile, SF_Z95 for 95% confidence. */
#define SF_Z95 1.959963984540054
typedef struct sf_interval {
    double low, high;
} sf_interval;
sf_interval sf_wilson(uint64_t k, uint64_t n, double z);

/* Exact two-sided p-value of "successes and failures are equally likely": McNemar's
 * test, given how often only the first and only the second of two systems was right. */
double sf_sign_test(uint64_t first, uint64_t second);

/* The same one-sided: P[Bin(first + second, 1/2) >= first], small when the first happens more often. */
double sf_sign_test_above(uint64_t first, uint64_t second);

#endif
