/* Elementary functions whose results have the same bits on every machine.
 *
 * Taylor series throughout, so that every coefficient can be seen to be right; arguments are
 * brought so close to 0 that the first term left out is below 2^-57 of the result. The ways to
 * keep the errors of the roundings small are those of fdlibm (Ng, Sun Microsystems 1993): what is
 * large is exact, and what carries an error is small beside it.
 *
 * exp. x = k log 2 + r, |r| <= log(2)/2. log 2 is split: k times its first 32 bits is exact, and so
 *   is the difference to x; what the second part rounds off is kept as `rest`. Then
 *   e^r - 1 = r + (r^2 (1/2 + r/6 + ... + r^11/13!) + rest), and 2^k scales exactly.
 *
 * log. x = 2^k (1 + f), 1 + f from sqrt(1/2) to sqrt(2), f exact. With s = f/(2 + f),
 *   log(1 + f) = 2 atanh s = 2s + s R,  R = s^2 (2/3 + s^2 (2/5 + ... + 2/21 s^18)),
 *   and 2s = f - f^2/2 + s f^2/2, where f is exact: log(1 + f) = f - (f^2/2 - s (f^2/2 + R)).
 *   log1p uses f = x where that is in range, and else adds what 1 + x rounded off, over 1 + x.
 *
 * asin. x + x z/6 (1 + 9 z/20 (1 + 25 z/42 (...))), z = x^2, up to 1/2; beyond, the half angle:
 *   pi/2 - 2 asin sqrt((1 - x)/2). */
#include "base/elementary.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "results must have the same bits everywhere: compile without -ffast-math"
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "expressions must round to their own type");

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* log 2 = LOG2_HIGH + LOG2_LOW; the first has 32 bits. */
static const double LOG2_HIGH = 0x1.62e42feep-1, LOG2_LOW = 0x1.a39ef35793c76p-33;

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^k, -1022 <= k <= 1023 */
static double power_of_two(int k) { return of_bits((uint64_t)(k + 1023) << 52); }

/* c[0] + x (c[1] + x (c[2] + ...)) */
static double polynomial(const double *c, size_t count, double x)
{
    double sum = c[--count];
    while (count) sum = c[--count] + x * sum;
    return sum;
}

/* ------------------------------------------------------------- exponentials */

/* x = k log 2 + r + rest, |x| < 1000; rest is below half an ulp of r. */
typedef struct reduced {
    int k;
    double r, rest;
} reduced;

static reduced reduce(double x)
{
    const double k = (x * 0x1.71547652b82fep0 + 0x1.8p52) - 0x1.8p52; /* to the nearest whole number */
    const double high = x - k * LOG2_HIGH, low = k * LOG2_LOW, r = high - low;
    return (reduced){(int)k, r, (high - r) - low};
}

/* e^(r + rest) - 1 - r */
static double beyond_linear(double r, double rest)
{
    static const double c[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                               1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                               1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    return r * r * polynomial(c, LENGTH(c), r) + rest;
}

double sf_exp(double x)
{
    if (!(x < 710)) return x + HUGE_VAL; /* NaN stays */
    if (x < -746) return 0;
    const reduced a = reduce(x);
    const double y = 1 + (a.r + beyond_linear(a.r, a.rest));
    if (a.k > 1000) return y * power_of_two(a.k - 1000) * 0x1p1000;
    if (a.k < -1000) return y * power_of_two(a.k + 1000) * 0x1p-1000;
    return y * power_of_two(a.k);
}

double sf_expm1(double x)
{
    if (!(x < 40)) return sf_exp(x); /* 1 is below half an ulp */
    if (x < -40) return -1;
    const reduced a = reduce(x);
    const double y = a.r + beyond_linear(a.r, a.rest), scale = power_of_two(a.k);
    return a.k == 0 ? y : (scale - 1) + scale * y;
}

double sf_tanh(double x)
{
    const double y = sf_expm1(-2 * fabs(x)); /* tanh |x| = (1 - e^-2|x|) / (1 + e^-2|x|) */
    return copysign(-y / (2 + y), x);
}

/* --------------------------------------------------------------- logarithms */

/* k log 2 + log(1 + f) + rest, for 1 + f from sqrt(1/2) to sqrt(2). */
static double log_of_parts(int k, double f, double rest)
{
    static const double c[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                               2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    const double s = f / (2 + f), z = s * s, half = 0.5 * f * f, whole = (double)k;
    const double curve = s * (half + z * polynomial(c, LENGTH(c), z));
    return whole * LOG2_HIGH - ((half - (curve + (whole * LOG2_LOW + rest))) - f);
}

/* x = 2^k (1 + f) for a normal number above 0. */
static double split(double x, int *k)
{
    const uint64_t below = bits_of(x) - bits_of(0x1.6a09e667f3bcdp-1); /* of sqrt(1/2), so that it has k = 0 */
    *k = (int)((int64_t)below >> 52);
    return of_bits(bits_of(x) - ((uint64_t)*k << 52)) - 1;
}

double sf_log(double x)
{
    int k, less = 0;
    if (!(x > 0)) return x < 0 ? (double)NAN : x - HUGE_VAL; /* NaN stays */
    if (x > DBL_MAX) return x;
    if (x < DBL_MIN) {
        x *= 0x1p54;
        less = 54;
    }
    const double f = split(x, &k);
    return log_of_parts(k - less, f, 0);
}

double sf_log1p(double x)
{
    int k;
    if (x > -0.29 && x < 0.41) return log_of_parts(0, x, 0);
    if (!(x > -1 && x <= DBL_MAX)) return sf_log(1 + x);
    const double sum = 1 + x, rest = x < 1 ? x - (sum - 1) : 1 - (sum - x), f = split(sum, &k);
    return log_of_parts(k, f, rest / sum);
}

/* --------------------------------------------------------------------- asin */

double sf_asin(double x)
{
#define RATIO(n) ((2.0 * (n)-1) * (2.0 * (n)-1) / (2.0 * (n) * (2.0 * (n) + 1)))
    static const double ratio[] = {RATIO(1),  RATIO(2),  RATIO(3),  RATIO(4),  RATIO(5),  RATIO(6),  RATIO(7),
                                   RATIO(8),  RATIO(9),  RATIO(10), RATIO(11), RATIO(12), RATIO(13), RATIO(14),
                                   RATIO(15), RATIO(16), RATIO(17), RATIO(18), RATIO(19), RATIO(20), RATIO(21),
                                   RATIO(22), RATIO(23), RATIO(24), RATIO(25)};
#undef RATIO
    static const double quarter_turn = 0x1.921fb54442d18p0, rest = 0x1.1a62633145c07p-54; /* pi/2 */
    assert(x >= 0 && x <= 1);
    const double z = x > 0.5 ? (1 - x) / 2 : x * x, y = x > 0.5 ? sqrt(z) : x;
    double sum = z * ratio[LENGTH(ratio) - 1];
    for (size_t n = LENGTH(ratio) - 1; n-- > 0;) sum = z * ratio[n] * (1 + sum);
    return x > 0.5 ? quarter_turn - (2 * (y + y * sum) - rest) : y + y * sum;
}

/* -------------------------------------------------------------- sine, cosine */

/* x less a whole number n of quarter turns, by parts of pi/2 of which the first two, times n, are exact; then the two
 * series of Taylor. */
void sf_sin_cos(double *sine, double *cosine, double x)
{
    static const double first = 0x1.921fb544p0, second = 0x1.0b4611a6p-34, third = 0x1.3198a2e037073p-69;
    static const double parts = 0x1.45f306dc9c883p-1; /* 2/pi */
    assert(x >= 0 && x <= 0x1p20);
    const double n = floor(x * parts + 0.5), r = ((x - n * first) - n * second) - n * third, z = r * r;
    double s = 0, c = 0;
    for (int k = 10; k >= 1; k--) { /* r - r^3/3! + ..., 1 - r^2/2! + ... */
        s = -z / (double)(2 * k * (2 * k + 1)) * (1 + s);
        c = -z / (double)((2 * k - 1) * 2 * k) * (1 + c);
    }
    s = r + r * s;
    c = 1 + c;
    const int turn = (int)(n - 4 * floor(n / 4));
    *sine = turn == 0 ? s : turn == 1 ? c : turn == 2 ? -s : -c;
    *cosine = turn == 0 ? c : turn == 1 ? -s : turn == 2 ? -c : s;
}
