/* The beta function and its tails in logarithms: what every bound of this room stands on.
 *
 * Own code, no globals, no errno: any number of threads. Nothing here is rounded to a
 * side; the functions below state how far they can be off, and every bound built on
 * them moves by that much towards the safe side. Arguments outside the stated ranges
 * are a broken invariant (assert). */
#ifndef SF_STATS_SPECIAL_H
#define SF_STATS_SPECIAL_H

#include <stdint.h>

/* The largest parameter of the beta functions, and so the largest number of samples. */
#define SF_BETA_MAX 1e9
#define SF_SAMPLES_MAX UINT64_C(1000000000)

/* log Gamma(x) - ((x - 1/2) log x - x + log(2 pi)/2), Stirling's correction, x >= 0.5.
 * Error below 1e-16. */
double sf_stirling_correction(double x);

/* log( x^a (1-x)^b / B(a,b) ), x in (0,1): the factor all tails share. Error below
 * 5e-15 (1 + |value|), whatever the size of a and b. */
double sf_log_beta_kernel(double x, double a, double b);

/* log of (integral from x to 1 of t^(a-1) (1-t)^(b-1) dt) / (x^a (1-x)^b): the upper tail
 * over the kernel, "Mills' ratio" of the beta distribution. x in (0,1), a and b in
 * [0.5, 1e9]. The kernel is not even computed where it cancels. */
double sf_log_beta_mills(double x, double a, double b);

/* The logarithms of both tails of the beta distribution, I_x(a,b) and 1 - I_x(a,b).
 * x in [0,1], a and b in [0.5, 1e9]. Either may be -INFINITY (x = 0 or 1), and 0 where
 * the other tail is below 1e-17. */
typedef struct sf_log_tails {
    double lower; /* log I_x(a,b) */
    double upper; /* log (1 - I_x(a,b)) */
} sf_log_tails;
sf_log_tails sf_log_beta_tails(double x, double a, double b);

/* log P[Bin(n,p) >= k], p in [0,1], k <= n + 1, n <= SF_SAMPLES_MAX. */
double sf_log_binomial_tail(uint64_t k, uint64_t n, double p);

/* How far the logarithm of a tail or of Mills' ratio can be from the truth: the true value
 * lies within sf_log_tail_error(log_value) = 1e-12 + 1e-14 |log_value| of the computed one.
 * Over ten times the largest error found (special.c says how). */
double sf_log_tail_error(double log_value);

#endif
