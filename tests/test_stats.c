/* src/stats: special functions against 60-digit arithmetic, bounds against exact integers,
 * e-values against direct integration and exact enumeration. Error rates of the whole
 * methods are in test_stats_rates.c. */
#include "support.h"

#include "base/rng.h"
#include "stats/binomial.h"
#include "stats/eprocess.h"
#include "stats/evalue.h"
#include "stats/exact.h"
#include "stats/select.h"
#include "stats/special.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static void assert_close(double got, double want, double absolute, double relative, const char *what, size_t row)
{
    double error = fabs(got - want);
    if (!(error <= absolute + relative * fabs(want)))
        fail_msg("%s, row %zu: got %.17g, want %.17g, error %.3g", what, row, got, want, error);
}

/* ------------------------------------------------------ special functions */

/* Computed with mpmath 1.3 at 60 digits from the doubles as written. */

static void test_stirling(void **state)
{
    (void)state;
    static const double rows[][2] = {
        {0.5, 0.15342640972002734529},
        {0.625, 0.12564141593998438361},
        {0.75, 0.10626293633956786156},
        {1.0, 0.08106146679532725822},
        {1.25, 0.065431966887856779931},
        {1.5, 0.054814121051917653896},
        {2.0, 0.041340695955409294094},
        {2.5, 0.033162873519936287485},
        {3.0, 0.027677925684998339149},
        {4.5, 0.018488450532673185231},
        {7.25, 0.011487002684428696791},
        {9.5, 0.008768700134139385463},
        {9.999, 0.008331396020466342872},
        {10.0, 0.0083305634333628712565},
        {10.5, 0.0079341145643140205472},
        {12.5, 0.0066652470327076824424},
        {33.5, 0.0024874883216959427643},
        {100.5, 0.00082918465990464866307},
        {1000.5, 0.000083291684715974056425},
        {123456.5, 6.7500158625225146085e-7},
        {1000000000.5, 8.3333333291666666685e-11},
    };
    for (size_t i = 0; i < LENGTH(rows); i++)
        assert_close(sf_stirling_correction(rows[i][0]), rows[i][1], rows[i][0] < 12 ? 1e-16 : 0, 1e-15,
                     "Stirling's correction", i);
}

static void test_beta_tails(void **state)
{
    (void)state;
    static const double rows[][6] = {
        /* x, a, b, log lower tail, log upper tail, log Mills' ratio */
        {0.25, 0.5, 0.5, -1.0986122886681096914, -0.40546510810816438198, 1.5762529945270715653},
        {0.5, 0.5, 0.5, -0.69314718055994530942, -0.69314718055994530942, 1.1447298858494001741},
        {0.999, 0.5, 0.5, -0.020340514397558021779, -3.9052936169690370665, 0.69381415853822295679},
        {0.3, 5.5, 2.5, -4.4821282833327100064, -0.011373754711309087911, 3.219499505954391136},
        {0.9, 100.5, 3.5, -5.7528530036490818621, -0.0031787601613294622814, 3.6669170851354113361},
        {0.5, 60.0, 1.0, -41.588830833596718565, -8.6736173798840354758e-19, 38.187633451934563189},
        {0.5, 30.5, 30.5, -0.69314718055994530942, -0.69314718055994530942, -1.1324002217360559746},
        {0.75, 4500.5, 500.5, -366.42026265601093047, -7.3400982128661306996e-160, 359.79886053076090922},
        {0.9, 4500.5, 500.5, -0.68814343846879612044, -0.69817608604993337263, -2.8339706034672091973},
        {0.88, 4500.5, 500.5, -12.400504092208008729, -4.1165215551206960649e-6, 7.7513499528765788716},
        {0.92, 4500.5, 500.5, -2.3252586243925343079e-7, -15.274264498070363127, -4.6427812705735821255},
        {0.01, 300.5, 20.5, -1312.9733816172470438, 0, 1307.2786376885245808},
        {1e-300, 2.5, 3.5, -1724.5532752074463654, 0, 1723.6369844755722103},
        {1e-10, 40.5, 0.5, -934.97306493388488754, 0, 931.27176295987118926},
        {0.9999999999999991, 40.5, 3.5, -8.4332551329410995993e-49, -110.69448672245964875, -1.2527629684953593113},
        {0.5, 5000.5, 0.5, -3470.5670392784020299, 0, 3462.7427933275031154},
        {0.999, 5000.5, 0.5, -6.4626009550472927923, -0.001561950244822701523, 4.7690609545473321341},
        {0.9999, 5000.5, 0.5, -1.1479507260272697939, -0.38167970229897098771, 1.0373088350727017656},
        {0.5, 1.0, 1000000.0, 0, -693147.18055994530942, -13.122363377404328795},
        {1e-06, 1.5, 1000000.0, -0.84958205115947013766, -0.55790606235425609076, 0.32131182501095704306},
        {1e-06, 0.5, 1e9, 0, -1004.0272419589109807, -6.9082546550190607989},
        {0.5, 1000000.5, 1000000.5, -0.69314718055994530942, -0.69314718055994530942, -6.335390461057436965},
        {0.4995, 1000000.5, 1000000.5, -2.5427536801066202364, -0.081914778405152224162, -4.7241570589020587696},
        {0.45, 1000000.5, 1000000.5, -10056.211610847637706, 0, 10044.698635388865957},
        {0.9, 900000000.0, 100000000.0, -0.69316960865423007196, -0.69312475296866867863, -8.9318463330686729297},
        {0.90001, 900000000.0, 100000000.0, -0.15772989449156094995, -1.9246997861580345269, -9.6078328863907440562},
        {0.8, 900000000.0, 100000000.0, -36690024.21670973024, 0, 36690005.796028970288},
        {0.5, 1e9, 1e9, -0.69314718055994530942, -0.69314718055994530942, -9.789267975423505491},
        {0.50001, 1e9, 1e9, -0.20523816967102019788, -1.6844487586876029841, -10.380569553474803987},
        {0.25, 1e9, 1e9, -287682083.38577879046, 0, 287682063.35566013258},
        {0.999999, 1e9, 1000.0, -0.70161866819192565405, -0.68474685659059418641, -3.219602129046655408},
        {0.9999995, 1e9, 0.5, -503.68079146287545169, -1.7956083942609271065e-219, 497.46518585278806468},
        {1e-09, 0.5, 1e9, -0.17114331517946696671, -1.8496055102631192704, -0.27724056671341915183},
        {0.7, 2.25, 1234.5, 0, -1477.9755435671960734, -6.7613128200762604607},
        {0.123456789, 77.7, 512.3, -1.2603899019304034909, -0.33343767668677908691, -1.3376382003133328654},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const double *r = rows[i];
        sf_log_tails tails = sf_log_beta_tails(r[0], r[1], r[2]);
        double allowed[3]; /* the promised error is ten times what may be seen */
        for (int j = 0; j < 3; j++) allowed[j] = sf_log_tail_error(r[3 + j]) / 10;
        assert_close(tails.lower, r[3], allowed[0], 0, "lower tail", i);
        assert_close(tails.upper, r[4], allowed[1], 0, "upper tail", i);
        assert_close(sf_log_beta_mills(r[0], r[1], r[2]), r[5], allowed[2], 0, "Mills' ratio", i);
    }
    sf_log_tails zero = sf_log_beta_tails(0, 2, 3), one = sf_log_beta_tails(1, 2, 3);
    assert_true(isinf(zero.lower) && zero.upper == 0 && one.lower == 0 && isinf(one.upper));
}

/* I_x(a,b) + I_(1-x)(b,a) = 1 and I_x(a,b) = I_x(a+1,b) + kernel/a, over a wide grid. */
static void test_beta_identities(void **state)
{
    (void)state;
    static const double sizes[] = {0.5, 1, 1.5, 3, 7.5, 20, 63.5, 400, 5000.5, 80000, 1e6 + 0.5, 3e7};
    size_t row = 0;
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (size_t j = 0; j < LENGTH(sizes); j++)
            for (int z = -6; z <= 6; z += 2, row++) {
                double a = sizes[i], b = sizes[j], mean = a / (a + b);
                double x = mean + z * sqrt(mean * (1 - mean) / (a + b + 1));
                if (!(x > 0 && x < 1)) continue;
                sf_log_tails tails = sf_log_beta_tails(x, a, b);
                assert_close(exp(tails.lower) + exp(tails.upper), 1, 1e-13, 0, "sum of tails", row);
                double step = exp(sf_log_beta_kernel(x, a, b) - tails.lower) / a;
                double next = exp(sf_log_beta_tails(x, a + 1, b).lower - tails.lower);
                assert_close(next + step, 1, 4e-13, 0, "step in a", row);
            }
}

/* ---------------------------------------------- exact integers for the tests */

/* Nonnegative integers of up to 6,400 bits. */
enum { LIMBS = 100 };
typedef struct big {
    uint64_t limb[LIMBS]; /* least significant first */
} big;
__extension__ typedef unsigned __int128 wide;

static big big_of(uint64_t value)
{
    big b = {{value}};
    return b;
}

static void big_add(big *a, const big *b)
{
    wide carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (wide)a->limb[i] + b->limb[i];
        a->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
    assert_true(carry == 0);
}

static void big_subtract(big *a, const big *b)
{
    uint64_t borrow = 0;
    for (int i = 0; i < LIMBS; i++) {
        wide d = (wide)a->limb[i] - b->limb[i] - borrow;
        a->limb[i] = (uint64_t)d;
        borrow = (uint64_t)(d >> 64) & 1;
    }
    assert_true(borrow == 0);
}

static void big_multiply(big *a, uint64_t factor)
{
    wide carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (wide)a->limb[i] * factor;
        a->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
    assert_true(carry == 0);
}

static void big_shift(big *a, int bits)
{
    for (; bits >= 64; bits -= 64) {
        assert_true(a->limb[LIMBS - 1] == 0);
        memmove(a->limb + 1, a->limb, sizeof a->limb - sizeof a->limb[0]);
        a->limb[0] = 0;
    }
    if (bits > 0) big_multiply(a, UINT64_C(1) << bits);
}

static int big_compare(const big *a, const big *b)
{
    for (int i = LIMBS - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* A double in (0,1) as mantissa / 2^exponent. */
static uint64_t dyadic(double x, int *exponent)
{
    int e;
    uint64_t mantissa = (uint64_t)ldexp(frexp(x, &e), 53);
    *exponent = 53 - e;
    return mantissa;
}

/* a times (2^exponent - mantissa). */
static void big_multiply_rest(big *a, uint64_t mantissa, int exponent)
{
    big product = *a;
    big_multiply(&product, mantissa);
    big_shift(a, exponent);
    big_subtract(a, &product);
}

/* The sign of P[Bin(n,p) >= k] - delta, exactly. */
static int compare_tail(int k, int n, double p, double delta)
{
    int e, ed;
    uint64_t m = dyadic(p, &e), md = dyadic(delta, &ed);
    /* sum over i >= k of C(n,i) P^i Q^(n-i), P + Q = 2^e, by Horner from i = n. */
    big sum = big_of(0), power = big_of(1);
    uint64_t choose = 1;
    for (int i = n; i >= k; i--) {
        big term = power;
        big_multiply(&term, choose);
        big_multiply(&sum, m);
        big_add(&sum, &term);
        big_multiply_rest(&power, m, e);
        choose = (uint64_t)((wide)choose * (unsigned)i / (unsigned)(n - i + 1));
    }
    for (int i = 0; i < k; i++) big_multiply(&sum, m);
    big_shift(&sum, ed);
    big limit = big_of(md);
    big_shift(&limit, e * n);
    return big_compare(&sum, &limit);
}

/* ------------------------------------------------------------- binomial */

static void test_clopper_pearson_values(void **state)
{
    (void)state;
    static const struct {
        uint64_t k, n;
        double delta, bound; /* 60 digits, to 20 */
    } rows[] = {
        {1, 10, 0.05, 0.0051161968918237014254},    {5, 10, 0.05, 0.22244110100812908173},
        {9, 10, 0.05, 0.60583669756349522259},      {10, 10, 0.05, 0.74113444910694772144},
        {60, 100, 0.01, 0.47890361279771205273},    {3000, 5000, 0.01, 0.58370826033434059269},
        {4500, 5000, 0.01, 0.88971097615713098015}, {4990, 5000, 0.001, 0.99518002477167050795},
        {13, 20, 1e-06, 0.15827624714981725237},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        double got = sf_binomial_lower(rows[i].k, rows[i].n, rows[i].delta);
        assert_close(got, rows[i].bound, 0, 1e-11, "Clopper-Pearson", i);
        assert_true(got <= rows[i].bound);
    }
    /* The slacks DESIGN quotes at n = 5000, delta = .01. */
    assert_close(0.6 - sf_binomial_lower(3000, 5000, 0.01), 0.0163, 5e-5, 0, "slack at .6", 0);
    assert_close(0.9 - sf_binomial_lower(4500, 5000, 0.01), 0.0103, 5e-5, 0, "slack at .9", 0);
    assert_close(1.0 - sf_binomial_lower(5000, 5000, 0.01), 0.0009, 5e-5, 0, "slack at 1", 0);
    assert_true(sf_binomial_lower(0, 5000, 0.01) == 0 && sf_binomial_lower(0, 0, 0.01) == 0);
    /* n at its limit */
    assert_close(sf_binomial_lower(1000000000, 1000000000, 0.01), exp(log(0.01) / 1e9), 1e-15, 0, "1e9", 0);
    assert_close(sf_binomial_lower(1, 1000000000, 0.01), -expm1(log1p(-0.01) / 1e9), 0, 1e-9, "1 of 1e9", 0);
}

/* For every k <= n <= 60 the bound holds in exact arithmetic, and one hardly higher would not. */
static void test_clopper_pearson_exactly(void **state)
{
    (void)state;
    static const double deltas[] = {0.05, 0.01, 1e-6};
    for (size_t d = 0; d < LENGTH(deltas); d++)
        for (int n = 1; n <= 60; n += n < 20 || d == 1 ? 1 : 8)
            for (int k = 1; k <= n; k++) {
                double delta = deltas[d], low = sf_binomial_lower((uint64_t)k, (uint64_t)n, delta);
                if (compare_tail(k, n, low, delta) > 0) fail_msg("lower bound of %d in %d is too high", k, n);
                if (compare_tail(k, n, low * (1 + 1e-9), delta) <= 0) fail_msg("%d in %d: too low", k, n);
            }
}

static void test_binomial_method(void **state)
{
    (void)state;
    assert_true(sf_null_probability(0) == 0.5 && sf_null_probability(0.25) == 0.75);
    assert_true(sf_null_probability(1e-20) > 0.5); /* rounded up */
    double q = 0.1;
    assert_true(sf_null_probability(q) - 0.5 >= q);
    for (uint64_t k = 0; k <= 200; k++)
        assert_int_equal(sf_binomial_certifies(k, 200, q, 0.01), sf_binomial_lower(k, 200, 0.01) > 0.6);
    assert_false(sf_binomial_certifies(200, 200, 0.5, 0.01));
    assert_false(sf_binomial_certifies(200, 200, 0.7, 0.01));
    assert_true(sf_binomial_certifies(5000, 5000, 0.499, 0.01)); /* .99908 > .999 */
    assert_false(sf_binomial_certifies(4999, 5000, 0.499, 0.01));
}

static void test_hoeffding(void **state)
{
    (void)state;
    double slack = sf_hoeffding_slack(5000, 2, 0.01);
    assert_close(slack / 2, 0.0230, 5e-5, 0, "Hoeffding", 0);
    assert_close(slack, 2 * sqrt(log(200.0) / 10000), 0, 1e-14, "Hoeffding", 1);
    assert_true(slack >= 2 * sqrt(log(200.0) / 10000));
    /* The margin has to exceed 2q + slack = .246036: 1,231 votes of 5000, not 1,230. */
    assert_true(sf_hoeffding_certifies(3000, 1769, 5000, 2, 0.1, 0.01));
    assert_false(sf_hoeffding_certifies(3000, 1770, 5000, 2, 0.1, 0.01));
    assert_false(sf_hoeffding_certifies(1000, 4000, 5000, 2, 0, 0.01));
    assert_false(sf_hoeffding_certifies(5000, 0, 5000, 2, 0.49, 0.01));
}

/* What a machine with other last bits may say: no less than this one says, and 1e-9 more is too much. */
static void test_grants(void **state)
{
    static const double deltas[] = {1e-9, 0.01, 0.2, 0.9};
    (void)state;
    for (size_t d = 0; d < COUNT(deltas); d++) {
        const double delta = deltas[d];
        for (uint64_t n = 10; n <= 100000; n *= 10)
            for (uint64_t k = n / 2 + 1; k <= n; k += k == n ? 1 : (n - k + 2) / 3) {
                double bound = sf_binomial_lower(k, n, delta);
                assert_true(sf_binomial_grants(k, n, bound, delta));
                assert_false(sf_binomial_grants(k, n, bound + 1e-9, delta));
                if (k == n) /* delta^(1/n), with 64 bits */
                    for (double p = bound; sf_binomial_grants(k, n, p, delta); p = nextafter(p, 1))
                        assert_true((long double)n * logl((long double)p) <= logl((long double)delta));
                bound = sf_hoeffding_lower(k, n - k, n, 2, delta);
                assert_true(sf_hoeffding_grants_lower(k, n - k, n, 2, bound, delta));
                assert_true(sf_hoeffding_grants_lower(k, n - k, n, 2, 0, delta));
                assert_false(sf_hoeffding_grants_lower(k, n - k, n, 2, bound + 1e-9, delta));
                if (bound >= 0.5) {
                    assert_true(sf_hoeffding_grants(k, n - k, n, 2, fmax(bound - 0.5 - 1e-15, 0), delta));
                    assert_false(sf_hoeffding_grants(k, n - k, n, 2, bound - 0.5 + 1e-9, delta));
                }
                for (size_t classes = 2; classes <= 3; classes++) {
                    sf_eprocess_options options = sf_eprocess_options_default();
                    uint64_t counts[] = {k, n - k, 0};
                    options.delta = delta;
                    options.classes = classes;
                    bound = sf_eprocess_bound(&options, 0, counts, n);
                    assert_int_equal(bound > 0, sf_eprocess_claims(&options, 0, 0.5, counts, n));
                    if (!(bound > 0)) continue;
                    assert_true(sf_eprocess_grants(&options, 0, bound, counts, n));
                    if (classes == 2 && n <= 1000)
                        assert_true(sf_eprocess_grants(&options, 0, nextafter(bound, 1), counts, n));
                    assert_false(sf_eprocess_grants(&options, 0, bound + 1e-9, counts, n));
                }
            }
    }
}

static void test_reporting(void **state)
{
    (void)state;
    sf_interval w = sf_wilson(8, 10, SF_Z95); /* the formula at 30 digits */
    assert_close(w.low, 0.49016247153664173, 1e-12, 0, "Wilson", 0);
    assert_close(w.high, 0.94331784854562474, 1e-12, 0, "Wilson", 1);
    w = sf_wilson(0, 10, SF_Z95);
    assert_true(w.low == 0 && w.high > 0.27 && w.high < 0.28);
    w = sf_wilson(10, 10, SF_Z95);
    assert_true(w.high == 1);
    w = sf_wilson(0, 0, SF_Z95);
    assert_true(w.low == 0 && w.high == 1);

    assert_true(sf_sign_test(0, 0) == 1 && sf_sign_test(7, 7) == 1);
    assert_true(sf_sign_test_above(0, 0) == 1 && sf_sign_test_above(0, 9) == 1 && sf_sign_test_above(5, 0) > 0.03125);
    for (unsigned n = 1; n <= 50; n++) { /* sums of binomial coefficients are exact here */
        uint64_t sum = 0, choose = 1;
        for (unsigned k = 0; 2 * k < n; k++) {
            sum += choose;
            double p = fmin(ldexp((double)sum, 1 - (int)n), 1);
            double got = sf_sign_test(k, n - k);
            assert_close(got, p, 0, 1e-11, "sign test", n * 100 + k);
            assert_true(got >= p && sf_sign_test(n - k, k) == got);
            p = ldexp((double)sum, -(int)n);
            got = sf_sign_test_above(n - k, k);
            assert_close(got, p, 0, 1e-11, "one-sided sign test", n * 100 + k);
            assert_true(got >= p && sf_sign_test_above(k, n - k) >= 1 - p);
            choose = choose * (n - k) / (k + 1);
        }
    }
}

/* --------------------------------------------------------------- e-values */

static void test_log_e_values(void **state)
{
    (void)state;
    static const struct {
        uint64_t k, n;
        double p0, log_e; /* 60 digits */
    } rows[] = {
        {0, 0, 0.5, 2.0224127947671507789e-33},
        {1, 1, 0.5, 0.49263300040660052707},
        {0, 1, 0.5, -1.0123055338772537913},
        {7, 10, 0.6, -0.66681007851337738274},
        {13, 13, 0.6, 5.6063773179002964061},
        {95, 105, 0.85, 0.15146035752180739787},
        {3000, 5000, 0.5, 96.88627559676299344},
        {4900, 5000, 0.98, -2.7867355816894926277},
        {5000, 5000, 0.99, 48.173187715472341148},
        {0, 5000, 0.75, -9.1127502484932585301},
        {4999, 5000, 0.99, 43.5580671986310808},
        {500000, 1000000, 0.5, -7.1335468816268644844},
        {990000, 1000000, 0.989, 42.97471383274196825},
        {999999998, 999999999, 0.9999, 99986.916799056266974},
        {600000000, 999999999, 0.5, 20135503.87955533517},
        {17, 20, 0.9999999999990905, -1.9459101490516753263},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        sf_null null = sf_null_of(rows[i].p0);
        double got = sf_null_log_e(&null, rows[i].k, rows[i].n);
        assert_close(got, rows[i].log_e, 1e-11, 2e-14, "log E", i);
        assert_true(got < rows[i].log_e); /* rounded down */
    }
    assert_true(sf_log_e_target(0.01) >= log(100.0));
}

/* E by Simpson's rule on theta = sin(phi)^2, where the integrand is smooth. */
static double integrated_log_e(double k, double n, double p0)
{
    enum { PIECES = 20000 };
    const double half_pi = 1.57079632679489661923;
    double from = asin(sqrt(p0)), h = (half_pi - from) / PIECES, sum = 0;
    double top = k / n > p0 ? k / n : p0; /* where the likelihood ratio is largest */
    double scale = k * log(top / p0) + (k < n ? (n - k) * log((1 - top) / (1 - p0)) : 0);
    for (int i = 0; i <= PIECES; i++) {
        double phi = from + i * h;
        double value = 2 * k * log(sin(phi)) - k * log(p0) - scale;
        if (k < n) value += (n - k) * (2 * log(cos(phi)) - log(1 - p0));
        sum += exp(value) * (i == 0 || i == PIECES ? 1 : i % 2 ? 4 : 2);
    }
    return scale + log(sum * h / 3 / (half_pi - from));
}

static void test_log_e_by_integration(void **state)
{
    (void)state;
    static const double nulls[] = {0.5, 0.6, 0.75, 0.9, 0.99};
    static const unsigned sizes[] = {1, 2, 5, 20, 105, 700, 2000};
    for (size_t j = 0; j < LENGTH(nulls); j++)
        for (size_t i = 0; i < LENGTH(sizes); i++)
            for (unsigned part = 0; part <= 10; part++) {
                unsigned n = sizes[i], k = n * part / 10;
                sf_null null = sf_null_of(nulls[j]);
                double want = integrated_log_e(k, n, nulls[j]);
                /* Below the null the integrand dies within a few pieces. */
                double tolerance = k < nulls[j] * n ? 1e-5 : 1e-9;
                assert_close(sf_null_log_e(&null, k, n), want, tolerance, 1e-11, "log E", n * 100 + part);
            }
}

static void test_monotone_e(void **state)
{
    (void)state;
    sf_stream stream = sf_stream_of(5, 0, SF_STAGE_DATA);
    for (uint64_t i = 0; i < 3000; i++) {
        uint64_t n = 1 + sf_draw_below(stream, i, 0, 3000);
        uint64_t k = n / 2 + sf_draw_below(stream, i, 1, (uint32_t)(n - n / 2 + 1));
        double p0 = 0.5 + 0.499 * sf_draw_unit(stream, i, 2);
        double higher = p0 + (1 - p0) * 0.5 * sf_draw_unit(stream, i, 3);
        sf_null null = sf_null_of(p0), other = sf_null_of(higher);
        double log_e = sf_null_log_e(&null, k, n);
        /* Where E > 1 at the higher null it is larger at the lower. */
        if (sf_null_log_e(&other, k, n) > 1e-9 && higher > p0) assert_true(log_e > sf_null_log_e(&other, k, n));
        if (k < n) assert_true(sf_null_log_e(&null, k + 1, n) > log_e);
        assert_true(sf_null_log_e(&null, k + 1, n + 1) >= log_e - 1e-11);
        assert_true(sf_null_log_e(&null, k, n + 1) <= log_e + 1e-11);
    }
}

static void test_boundary(void **state)
{
    (void)state;
    static const double nulls[] = {0.02, 0.5, 0.7, 0.93, 0.999};
    double target = sf_log_e_target(0.01);
    for (size_t j = 0; j < LENGTH(nulls); j++) {
        sf_null null = sf_null_of(nulls[j]);
        sf_boundary each = sf_boundary_of(nulls[j], target), leaps = each;
        uint64_t reached = 0;
        for (uint64_t n = 0; n <= 700; n++) {
            uint64_t k = 0;
            while (k <= n && sf_null_log_e(&null, k, n) < target) k++;
            assert_int_equal(sf_null_threshold(&null, target, n), k);
            assert_int_equal(sf_boundary_advance(&each, n), k);
            if (n * n % 7 == 2) assert_int_equal(sf_boundary_advance(&leaps, n), k);
            reached += k <= n;
        }
        assert_true(reached > 0 || nulls[j] > 0.99);
    }
}

static void test_margin(void **state)
{
    (void)state;
    sf_margin low, high;
    sf_margin_set(&low, 0.6, 1);
    sf_margin_set(&high, 0.61, 1);
    assert_true(fabs(sf_margin_log_e(&low, 0, 0, 0)) < 1e-13 && sf_margin_log_e(&low, 0, 0, 0) <= 0);
    for (unsigned w = 0; w < 300; w += 7)
        for (unsigned d = 1; d < 200; d += 9)
            for (unsigned l = 1; l < 200; l += 11) {
                double e = sf_margin_log_e(&low, w, d, l);
                assert_true(e >= sf_margin_log_e(&high, w, d, l));
                assert_true(e < sf_margin_log_e(&low, w + 1, d - 1, l) && e < sf_margin_log_e(&low, w, d + 1, l - 1));
                assert_true(e < sf_margin_log_e(&low, w + 1, d, l)); /* grows with a win, at most by log 1/m */
                assert_true(sf_margin_log_e(&low, w + 1, d, l) - e < -log(0.6));
            }
}

/* ----------------------------------------------------------- the process */

static int random_vote(sf_stream stream, uint64_t sample, const double *p, int classes)
{
    double u = sf_draw_unit(stream, sample, 0);
    for (int c = 0; c < classes; c++) {
        if (u < p[c]) return c;
        u -= p[c];
    }
    return -1;
}

static int is_open(const sf_eprocess *process, size_t radii, size_t classes, uint64_t more)
{
    uint64_t counts[4];
    sf_verdict verdicts[8];
    int open = 0;
    memcpy(counts, sf_eprocess_counts(process), classes * sizeof *counts);
    counts[0] += more;
    sf_eprocess_decide(process, verdicts, counts, sf_eprocess_samples(process) + more);
    for (size_t r = 0; r < radii; r++) open |= verdicts[r] == SF_OPEN;
    return open;
}

/* It is done after so many votes for the class, and not before. */
static void check_soonest(const sf_eprocess *process, size_t radii, size_t classes)
{
    const uint64_t soonest = sf_eprocess_soonest(process);
    for (uint64_t more = 0; more < soonest; more++) assert_true(is_open(process, radii, classes, more));
    assert_false(is_open(process, radii, classes, soonest));
}

/* The process with its shortcuts stops exactly where the definition says, and says the same. */
static void test_process_against_definition(void **state)
{
    (void)state;
    safer_error error = {0};
    static const double chances[][4] = {{0.97, 0.03},
                                        {0.8, 0.2},
                                        {0.3, 0.7},
                                        {0.4, 0.55, 0.03},
                                        {0.9, 0.05, 0.04},
                                        {0.6, 0.3},
                                        {0.93, 0.01, 0.01, 0.05},
                                        {1, 0}};
    static const int classes[] = {2, 2, 2, 3, 3, 2, 4, 2}, none[] = {0, 0, 0, 1, 0, 1, 0, 0};
    static const double p0[] = {0.5, 0.52, 0.6, 0.6, 0.75, 0.94, 0.999, 1.2};
    int seen[3] = {0};
    for (size_t i = 0; i < LENGTH(chances); i++) {
        sf_eprocess_options options = sf_eprocess_options_default();
        options.classes = (size_t)classes[i];
        options.none = none[i];
        options.n_max = i % 2 ? 600 : 1500;
        options.delta = i % 3 ? 0.01 : 0.05;
        options.futility = i % 4 == 3 ? 0 : 0.005;
        sf_eprocess *process;
        assert_ok(sf_eprocess_new(&process, &options, &error));
        for (uint64_t text = 0; text < 12; text++) {
            size_t radii = 1 + text % LENGTH(p0);
            sf_stream stream = sf_stream_of(11, text, SF_STAGE_CERTIFICATION);
            assert_ok(sf_eprocess_begin(process, 0, p0, radii, &error));
            sf_verdict verdicts[LENGTH(p0)];
            for (uint64_t n = 0;; n++) {
                assert_int_equal(sf_eprocess_samples(process), n);
                sf_eprocess_decide(process, verdicts, sf_eprocess_counts(process), n);
                int open = 0;
                for (size_t r = 0; r < radii; r++) open |= verdicts[r] == SF_OPEN;
                assert_int_equal(sf_eprocess_done(process), !open);
                if (!open) break;
                if (n % 97 < 3) check_soonest(process, radii, options.classes);
                assert_true(n < options.n_max);
                sf_eprocess_add(process, random_vote(stream, n, chances[i], classes[i]));
            }
            const uint64_t *counts = sf_eprocess_counts(process);
            uint64_t n = sf_eprocess_samples(process);
            double bound = sf_eprocess_bound(&options, 0, counts, n);
            for (size_t r = 0; r < radii; r++) {
                seen[verdicts[r]]++;
                assert_int_equal(verdicts[r] == SF_CLAIMED, sf_eprocess_claims(&options, 0, p0[r], counts, n));
                assert_int_equal(verdicts[r] == SF_CLAIMED, p0[r] <= bound);
            }
            if (bound > 0) assert_true(bound >= 0.5 && sf_eprocess_claims(&options, 0, bound, counts, n));
        }
        sf_eprocess_free(process);
    }
    assert_true(seen[SF_CLAIMED] > 50 && seen[SF_FUTILE] > 50 && seen[SF_OPEN] == 0);
}

/* The verdict on radius r where the process stopped. */
static sf_verdict verdict_of(const sf_eprocess *process, size_t r)
{
    sf_verdict verdicts[2];
    assert_true(sf_eprocess_done(process) && r < LENGTH(verdicts));
    sf_eprocess_decide(process, verdicts, sf_eprocess_counts(process), sf_eprocess_samples(process));
    return verdicts[r];
}

static void test_process_edges(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_eprocess_options options = sf_eprocess_options_default();
    sf_eprocess *process;
    assert_ok(sf_eprocess_new(&process, &options, &error));
    assert_true(sf_eprocess_done(process));

    double impossible[] = {1.0, 1.7};
    assert_ok(sf_eprocess_begin(process, 1, impossible, 2, &error));
    assert_true(sf_eprocess_done(process) && sf_eprocess_samples(process) == 0);
    assert_int_equal(verdict_of(process, 0), SF_FUTILE);
    assert_int_equal(verdict_of(process, 1), SF_FUTILE);
    double hopeless = 0.9999; /* needs more than 5000 unanimous votes */
    assert_ok(sf_eprocess_begin(process, 1, &hopeless, 1, &error));
    assert_true(sf_eprocess_done(process));
    assert_ok(sf_eprocess_begin(process, 1, &hopeless, 0, &error)); /* nothing to decide */
    assert_true(sf_eprocess_done(process));

    double p0[] = {0.6, 0.55};
    assert_fails(sf_eprocess_begin(process, 1, p0, 2, &error), SAFER_INVALID, "radius 1");
    assert_fails(sf_eprocess_begin(process, 2, p0, 1, &error), SAFER_INVALID, "class 2 of 2");
    p0[0] = 0.4;
    assert_fails(sf_eprocess_begin(process, 0, p0, 1, &error), SAFER_INVALID, "1/2");
    p0[0] = (double)NAN;
    assert_fails(sf_eprocess_begin(process, 0, p0, 1, &error), SAFER_INVALID, "radius 0");

    /* Unanimous votes: 11 at p0 = .6. A none-vote where none was declared is a failure. */
    double null = 0.6;
    assert_ok(sf_eprocess_begin(process, 1, &null, 1, &error));
    while (!sf_eprocess_add(process, 1)) {}
    assert_int_equal(sf_eprocess_samples(process), 11);
    assert_int_equal(verdict_of(process, 0), SF_CLAIMED);
    assert_int_equal(sf_eprocess_counts(process)[1], 11);
    assert_ok(sf_eprocess_begin(process, 1, &null, 1, &error));
    assert_int_equal(sf_eprocess_counts(process)[1], 0);
    while (!sf_eprocess_add(process, -1)) {}
    assert_int_equal(verdict_of(process, 0), SF_FUTILE);
    assert_true(sf_eprocess_samples(process) < 20);
    uint64_t counts[2] = {0, 11};
    assert_true(sf_eprocess_claims(&options, 1, 0.6, counts, 11));
    assert_false(sf_eprocess_claims(&options, 1, 0.6, counts, 12));
    assert_false(sf_eprocess_claims(&options, 1, 1.0, counts, 11));
    assert_true(sf_eprocess_bound(&options, 0, counts, 11) == 0);
    sf_eprocess_free(process);
    sf_eprocess_free(NULL);

    options.delta = 0;
    assert_fails(sf_eprocess_new(&process, &options, &error), SAFER_INVALID, "delta");
    options = sf_eprocess_options_default();
    options.futility = 1;
    assert_fails(sf_eprocess_check(&options, &error), SAFER_INVALID, "futility");
    options = sf_eprocess_options_default();
    options.n_max = 0;
    assert_fails(sf_eprocess_check(&options, &error), SAFER_INVALID, "n must be");
    options.n_max = SF_SAMPLES_MAX;
    assert_fails(sf_eprocess_check(&options, &error), SAFER_INVALID, "n must be");
    options = sf_eprocess_options_default();
    options.classes = 1;
    assert_fails(sf_eprocess_check(&options, &error), SAFER_INVALID, "two classes");
}

static safer_status make_process(void *context, safer_error *error)
{
    (void)context;
    sf_eprocess_options options = sf_eprocess_options_default();
    sf_eprocess *process = NULL;
    double p0[40];
    for (int i = 0; i < 40; i++) p0[i] = 0.5 + i / 100.0;
    safer_status status = sf_eprocess_new(&process, &options, error);
    if (status == SAFER_OK) status = sf_eprocess_begin(process, 0, p0, 40, error);
    sf_eprocess_free(process);
    if (status != SAFER_OK) return status;
    sf_tally tally = {0};
    status = sf_tally_new(&tally, 3, error);
    sf_tally_free(&tally);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    check_every_allocation(make_process, NULL);
}

/* ----------------------------------------------------- selection and exact */

static void test_selection(void **state)
{
    (void)state;
    uint64_t votes[] = {3, 40, 12, 40};
    sf_election e = sf_elect(votes, 4);
    assert_true(e.winner == 1 && e.runner_up == 3 && e.p_value == 1);
    assert_false(sf_election_is_clear(&e, 0.999));
    uint64_t clear[] = {90, 10};
    e = sf_elect(clear, 2);
    assert_true(e.winner == 0 && e.runner_up == 1 && sf_election_is_clear(&e, 0.001));
    uint64_t nothing[] = {0, 0};
    e = sf_elect(nothing, 2);
    assert_true(e.winner == 0 && e.runner_up == 1 && e.p_value == 1);
}

static void test_exact(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_tally tally;
    assert_ok(sf_tally_new(&tally, 3, &error));
    assert_false(sf_tally_certifies(&tally, 0, 0));
    assert_true(sf_tally_bound(&tally, 0) == 0);
    /* Against plain integers: q = j/4096, weights below 2^20. */
    sf_stream stream = sf_stream_of(3, 0, SF_STAGE_DATA);
    int certified = 0, ties = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t scale = i % 2 ? 1u << 18 : 40;
        int64_t y = sf_draw_below(stream, i, 0, 3 * scale), b = sf_draw_below(stream, i, 1, scale);
        int64_t c = sf_draw_below(stream, i, 2, scale), none = sf_draw_below(stream, i, 3, scale);
        int64_t j = i % 2 ? sf_draw_below(stream, i, 4, 1024) : 256 * sf_draw_below(stream, i, 4, 4);
        int64_t total = y + b + c + none, rival = b > c ? b : c;
        sf_tally_clear(&tally);
        assert_int_equal(sf_tally_add(&tally, 0, (sf_weight)y), 0);
        assert_int_equal(sf_tally_add(&tally, 1, (sf_weight)b), 0);
        assert_int_equal(sf_tally_add(&tally, 2, (sf_weight)c), 0);
        assert_int_equal(sf_tally_add(&tally, -1, (sf_weight)none), 0);
        int want = (y - rival) * 2048 > j * total;
        ties += (y - rival) * 2048 == j * total;
        certified += want;
        assert_int_equal(sf_tally_certifies(&tally, 0, (double)j / 4096), want);
        if (total > 0)
            assert_close(sf_tally_bound(&tally, 0), (double)(total + y - rival) / (double)(2 * total), 2e-16, 0,
                         "bound", i);
    }
    assert_true(certified > 1000 && ties > 0);

    /* Totals of 2^128 - 1: y has 3/4 of it less or more one. */
    sf_weight all = ~(sf_weight)0, quarter = all / 4;
    sf_tally_clear(&tally);
    assert_int_equal(sf_tally_add(&tally, 0, all - quarter), 0);
    assert_int_equal(sf_tally_add(&tally, 1, quarter), 0);
    assert_int_equal(sf_tally_add(&tally, 2, 1), -1);
    assert_true(sf_tally_certifies(&tally, 0, 0.25)); /* (3/4 + tiny) - (1/4 - tiny) > 1/2 */
    assert_false(sf_tally_certifies(&tally, 0, nextafter(0.25, 1)));
    assert_false(sf_tally_certifies(&tally, 1, 0));
    assert_close(sf_tally_bound(&tally, 0), 0.75, 1e-15, 0, "bound", 0);
    assert_close(sf_tally_bound(&tally, 1), 0.25, 1e-15, 0, "bound", 1);
    sf_tally_clear(&tally);
    assert_int_equal(sf_tally_add(&tally, 0, all / 2 + 1), 0); /* 2^127 against 2^127 - 1: one vote apart */
    assert_int_equal(sf_tally_add(&tally, 1, all / 2), 0);
    assert_true(sf_tally_certifies(&tally, 0, 0) && sf_tally_certifies(&tally, 0, 1e-300));
    assert_true(sf_tally_certifies(&tally, 0, ldexp(1, -130)) && !sf_tally_certifies(&tally, 0, ldexp(1, -128)));
    assert_true(sf_tally_certifies(&tally, 0, DBL_TRUE_MIN));

    sf_tally_clear(&tally); /* unanimity */
    assert_int_equal(sf_tally_add(&tally, 2, 1), 0);
    assert_true(sf_tally_certifies(&tally, 2, nextafter(0.5, 0)) && !sf_tally_certifies(&tally, 2, 0.5));
    assert_true(sf_tally_bound(&tally, 2) == 1);
    sf_tally_free(&tally);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stirling),
        cmocka_unit_test(test_beta_tails),
        cmocka_unit_test(test_beta_identities),
        cmocka_unit_test(test_clopper_pearson_values),
        cmocka_unit_test(test_clopper_pearson_exactly),
        cmocka_unit_test(test_binomial_method),
        cmocka_unit_test(test_hoeffding),
        cmocka_unit_test(test_grants),
        cmocka_unit_test(test_reporting),
        cmocka_unit_test(test_log_e_values),
        cmocka_unit_test(test_log_e_by_integration),
        cmocka_unit_test(test_monotone_e),
        cmocka_unit_test(test_boundary),
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_process_against_definition),
        cmocka_unit_test(test_process_edges),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
