/* Numbers of the trial: fractions compared without error, random numbers, the binomial distribution. */
#include "trial.h"

#include <math.h>

/* ---------------------------------------------------------------- fractions */

/* By their continued fractions, so that nothing is multiplied. */
int fraction_compare(fraction a, fraction b)
{
    for (int sign = 1;; sign = -sign) {
        const wide i = a.up / a.down, j = b.up / b.down;
        if (i != j) return i < j ? -sign : sign;
        const fraction rest_a = {a.down, a.up % a.down}, rest_b = {b.down, b.up % b.down};
        if (!rest_a.down || !rest_b.down) return sign * ((rest_a.down != 0) - (rest_b.down != 0));
        a = rest_a;
        b = rest_b;
    }
}

/* Bit by bit: doubling and taking 1 off are exact for a double below 2. */
int fraction_against(fraction a, double b)
{
    const double whole = floor(b);
    if (a.up / a.down != (wide)whole) return a.up / a.down < (wide)whole ? -1 : 1;
    a.up %= a.down;
    for (b -= whole; b > 0;) {
        a.up *= 2;
        b *= 2;
        const int bit_a = a.up >= a.down, bit_b = b >= 1;
        if (bit_a != bit_b) return bit_a - bit_b;
        if (bit_a) a.up -= a.down;
        if (bit_b) b -= 1;
    }
    return a.up > 0;
}

long double fraction_value(fraction a) { return (long double)a.up / (long double)a.down; }

/* ----------------------------------------------------------- random numbers */

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
uint64_t random_bits(trial_random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

trial_random random_of(uint64_t seed, uint64_t purpose, uint64_t number)
{
    trial_random r = {seed};
    r.state = random_bits(&r) ^ purpose;
    r.state = random_bits(&r) ^ number;
    r.state = random_bits(&r);
    return r;
}

uint32_t random_below(trial_random *r, uint32_t bound) { return (uint32_t)((random_bits(r) >> 32) * bound >> 32); }

int random_chance(trial_random *r, uint32_t of_hundred) { return random_below(r, 100) < of_hundred; }

double random_unit(trial_random *r) { return (double)(random_bits(r) >> 11) * 0x1p-53; }

/* ----------------------------------------------------------------- binomial */

/* The probability of k, and with it of everything on its side: the terms fall away from the mean. */
static double sum_from(uint64_t k, uint64_t n, double p, int upward)
{
    const double dn = (double)n;
    double dk = (double)k;
    double term = exp(lgamma(dn + 1) - lgamma(dk + 1) - lgamma(dn - dk + 1) + dk * log(p) + (dn - dk) * log1p(-p));
    double sum = term;
    while (upward ? k < n : k > 0) {
        term *= upward ? (dn - dk) / (dk + 1) * (p / (1 - p)) : dk / (dn - dk + 1) * ((1 - p) / p);
        sum += term;
        if (term < 1e-17 * sum) break;
        upward ? k++ : k--;
        dk = (double)k;
    }
    return sum;
}

double binomial_tail(uint64_t k, uint64_t n, double p)
{
    if (k == 0) return 1;
    if (p <= 0 || k > n) return 0;
    if (p >= 1) return 1;
    return (double)k > (double)n * p ? sum_from(k, n, p, 1) : 1 - sum_from(k - 1, n, p, 0);
}

double binomial_upper(uint64_t k, uint64_t n, double level)
{
    if (k >= n) return 1;
    double low = (double)k / (double)n, high = 1;
    for (int step = 0; step < 60; step++) {
        const double middle = (low + high) / 2;
        if (1 - binomial_tail(k + 1, n, middle) > level)
            low = middle;
        else
            high = middle;
    }
    return high;
}
