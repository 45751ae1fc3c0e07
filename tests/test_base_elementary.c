/* Elementary functions: errors against the C library's long double, which has eleven bits more; ends of the ranges;
 * and the bits themselves, which must be these on every machine, with every compiler. */
#include "support.h"

#include "base/elementary.h"
#include "base/hash.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { POINTS = 200000 };

typedef enum spacing { EVEN, FINE } spacing; /* FINE: as many points in every power of 2 */

typedef struct range {
    const char *name;
    double (*function)(double);
    long double (*reference)(long double);
    double low, high;
    spacing spacing;
    double promised; /* ulp */
    uint64_t bits;   /* a hash of all results */
} range;

static double next_unit(void)
{
    return ((double)next_below(1u << 26) + (double)next_below(1u << 27) * 0x1p-27) * 0x1p-26;
}

/* Of both signs where `low` is below 0 and points are fine. */
static double point_of(const range *r)
{
    double unit = next_unit();
    if (r->spacing == EVEN) return r->low + (r->high - r->low) * unit;
    const double least = r->low < 0 ? 0x1p-70 : r->low;
    const int from = ilogb(least), to = ilogb(r->high);
    const double size = ldexp(1 + unit, from + (int)next_below((uint32_t)(to - from)));
    return r->low < 0 && next_below(2) ? -fmin(size, -r->low) : size;
}

/* The distance from the true value, in ulp of that. */
static double error_of(double got, long double want)
{
    const double near = fabs((double)want), ulp = nextafter(near, HUGE_VAL) - near;
    return (double)fabsl((long double)got - want) / ulp;
}

static void test_ranges(void **state)
{
    (void)state;
    const range ranges[] = {
        {"exp", sf_exp, expl, -700, 709, EVEN, 1, UINT64_C(0x7775a6de6d991dc0)},
        {"exp near 0", sf_exp, expl, -1, 1, FINE, 1, UINT64_C(0xd482b0e2b4add6a3)},
        {"expm1", sf_expm1, expm1l, -50, 100, EVEN, 3, UINT64_C(0xff258b5ba8806a75)},
        {"expm1 near 0", sf_expm1, expm1l, -1, 1, FINE, 3, UINT64_C(0xc4ef55be0f1b2679)},
        {"log", sf_log, logl, DBL_MIN, DBL_MAX, FINE, 1, UINT64_C(0x1e9187b23f911629)},
        {"log near 1", sf_log, logl, 0.25, 4, EVEN, 1, UINT64_C(0x05fec10f57074dc2)},
        {"log1p", sf_log1p, log1pl, -0.9999, 5, EVEN, 1, UINT64_C(0x0ed338db52131efd)},
        {"log1p near 0", sf_log1p, log1pl, -0.5, 2, FINE, 1, UINT64_C(0xa38d5eb7b9123b8b)},
        {"log1p of large", sf_log1p, log1pl, 1, 0x1p100, FINE, 1, UINT64_C(0x63b9e0fc65d1049a)},
        {"asin", sf_asin, asinl, 0, 1, EVEN, 3, UINT64_C(0xee7650a4880453aa)},
        {"asin near 0", sf_asin, asinl, 0x1p-60, 1, FINE, 3, UINT64_C(0x4b9994de7b521f01)},
        {"tanh", sf_tanh, tanhl, -25, 25, EVEN, 3, UINT64_C(0xd85917fe76b495fa)},
        {"tanh near 0", sf_tanh, tanhl, -1, 1, FINE, 3, UINT64_C(0x707c26a8a1818395)},
    };
    int wrong = 0;
    for (size_t i = 0; i < COUNT(ranges); i++) {
        const range *r = &ranges[i];
        uint64_t hash = 0;
        double worst = 0, where = 0;
        next_seed(i + 1);
        for (size_t j = 0; j < POINTS; j++) {
            const double x = point_of(r), y = r->function(x), error = error_of(y, r->reference((long double)x));
            hash = sf_hash(&y, sizeof y, hash);
            if (!(error <= worst)) worst = error, where = x;
        }
        /* Where long double is double there is nothing to measure with, only bits to compare. */
        if (LDBL_MANT_DIG > DBL_MANT_DIG + 8 && !(worst <= r->promised)) {
            print_error("%s: off by %.3f ulp at %a\n", r->name, worst, where);
            wrong++;
        }
        if (hash != r->bits) {
            print_error("%s: other bits than written here: 0x%016llx (largest error %.3f ulp)\n", r->name,
                        (unsigned long long)hash, worst);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static void assert_bits(double got, double want)
{
    if (memcmp(&got, &want, sizeof got) != 0) fail_msg("got %a, want %a", got, want);
}

static void test_ends(void **state)
{
    (void)state;
    assert_bits(sf_exp(0), 1);
    assert_bits(sf_exp(-HUGE_VAL), 0);
    assert_bits(sf_exp(-746), 0);
    assert_bits(sf_exp(-745), 0x1p-1074);
    assert_true(sf_exp(709.7) < DBL_MAX && sf_exp(709.7) > DBL_MAX / 2);
    assert_bits(sf_exp(709.8), HUGE_VAL);
    assert_bits(sf_exp(HUGE_VAL), HUGE_VAL);
    assert_bits(sf_expm1(0), 0);
    assert_bits(sf_expm1(-800), -1);
    assert_bits(sf_expm1(800), HUGE_VAL);
    assert_bits(sf_expm1(1e-300), 1e-300);
    assert_bits(sf_log(1), 0);
    assert_bits(sf_log(2), 0x1.62e42fefa39efp-1);
    assert_bits(sf_log(0), -HUGE_VAL);
    assert_bits(sf_log(HUGE_VAL), HUGE_VAL);
    assert_bits(sf_log(0x1p-1074), -0x1.74385446d71c3p9);
    assert_bits(sf_log1p(0), 0);
    assert_bits(sf_log1p(-1), -HUGE_VAL);
    assert_bits(sf_log1p(HUGE_VAL), HUGE_VAL);
    assert_bits(sf_log1p(-1e-300), -1e-300);
    assert_bits(sf_asin(0), 0);
    assert_bits(sf_asin(1), 0x1.921fb54442d18p0);
    assert_bits(sf_tanh(0), 0);
    assert_bits(sf_tanh(-40), -1);
    assert_bits(sf_tanh(HUGE_VAL), 1);
    assert_true(isnan(sf_log(-1)) && isnan(sf_log1p(-2)) && isnan(sf_log1p(-HUGE_VAL)));
    double (*const functions[])(double) = {sf_exp, sf_expm1, sf_log, sf_log1p, sf_tanh};
    for (size_t i = 0; i < COUNT(functions); i++) assert_true(isnan(functions[i]((double)NAN)));
}

/* Numbers without a leading 1: an error of at most one step. */
static void test_denormals(void **state)
{
    (void)state;
    for (double x = -745; x < -708; x += 0.01) assert_true(fabs(sf_exp(x) - (double)expl((long double)x)) <= 0x1p-1074);
    for (double x = 0x1p-1074; x < DBL_MIN; x *= 1.7) assert_true(error_of(sf_log(x), logl((long double)x)) <= 1);
}

static void test_sines(void **state)
{
    (void)state;
    for (double x = 0; x <= 0x1p20; x = x < 100 ? x + 0.0137 : x * 1.00037) {
        double sine, cosine;
        sf_sin_cos(&sine, &cosine, x);
        assert_true(fabs(sine - (double)sinl((long double)x)) <= 1e-15);
        assert_true(fabs(cosine - (double)cosl((long double)x)) <= 1e-15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_denormals),
        cmocka_unit_test(test_sines),
    };
    return cmocka_run_group_tests_name("base: elementary functions", tests, NULL, NULL);
}
