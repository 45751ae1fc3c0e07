/* src/stats: error rates, power and sample sizes of the methods, computed exactly.
 *
 * No simulation: the distribution of the counts is carried forward sample by sample, the
 * library's own decision is asked in every state that can be reached, and the probability of
 * the states where it stops is summed. A null is tested at its boundary, where the rate is
 * largest, and below. */
#include "support.h"

#include "stats/binomial.h"
#include "stats/eprocess.h"
#include "stats/evalue.h"
#include "stats/select.h"
#include "stats/special.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { TRUTHS = 8, RADII = 6 };

/* What happens to a text whose votes have a given distribution. */
typedef struct outcome {
    double claimed[RADII]; /* probability that the radius is claimed */
    double samples;        /* expected number */
    double left;           /* probability that was cut off because it was tiny */
} outcome;

static sf_eprocess *process_of(const sf_eprocess_options *options, const double *p0, size_t radii)
{
    safer_error error = {0};
    sf_eprocess *process;
    assert_ok(sf_eprocess_new(&process, options, &error));
    assert_ok(sf_eprocess_begin(process, 0, p0, radii, &error));
    return process;
}

/* Whether the process stops in this state, and how many radii it then claims. */
static int stops(const sf_eprocess *process, const uint64_t *counts, uint64_t n, size_t radii, size_t *claims)
{
    sf_verdict verdicts[RADII];
    sf_eprocess_decide(process, verdicts, counts, n);
    *claims = 0;
    for (size_t r = 0; r < radii; r++) {
        if (verdicts[r] == SF_OPEN) return 0;
        if (verdicts[r] == SF_CLAIMED) *claims = r + 1;
    }
    return 1;
}

/* Two classes; `p` are the probabilities of class 0. */
static void run_two(outcome *out, const sf_eprocess_options *options, const double *p0, size_t radii, const double *p,
                    size_t truths)
{
    sf_eprocess *process = process_of(options, p0, radii);
    size_t n_max = (size_t)options->n_max;
    double(*mass)[TRUTHS] = calloc(n_max + 2, sizeof *mass); /* [k][truth] of the states that continue */
    assert_non_null(mass);
    for (size_t t = 0; t < truths; t++) {
        out[t] = (outcome){0};
        mass[0][t] = 1;
    }
    size_t low = 0, high = 0; /* the k that are alive */
    for (size_t n = 0; low <= high; n++) {
        for (size_t k = low; k <= high; k++) {
            size_t claims = 0;
            uint64_t counts[2] = {k, n - k};
            double most = 0;
            for (size_t t = 0; t < truths; t++) most = fmax(most, mass[k][t]);
            int tiny = most < 1e-16, stop = tiny || stops(process, counts, n, radii, &claims);
            for (size_t t = 0; t < truths; t++) {
                if (tiny)
                    out[t].left += mass[k][t];
                else if (stop)
                    for (size_t r = 0; r < claims; r++) out[t].claimed[r] += mass[k][t];
                else
                    out[t].samples += mass[k][t];
                if (stop) mass[k][t] = 0;
            }
        }
        for (; low <= high; low++) { /* the ends that died */
            int alive = 0;
            for (size_t t = 0; t < truths; t++) alive |= mass[low][t] > 0;
            if (alive) break;
        }
        if (low > high) break;
        assert_true(n < n_max);
        high++;
        for (size_t k = high; k + 1 > low; k--)
            for (size_t t = 0; t < truths; t++)
                mass[k][t] = mass[k][t] * (1 - p[t]) + (k > low ? mass[k - 1][t] * p[t] : 0);
    }
    free(mass);
    sf_eprocess_free(process);
    for (size_t t = 0; t < truths; t++) assert_true(out[t].left < 1e-9);
}

/* Class 0, a rival and the rest (a third class, or no label); p[t] are the first two. */
static void run_three(outcome *out, const sf_eprocess_options *options, double p0, double (*p)[2], size_t truths)
{
    sf_eprocess *process = process_of(options, &p0, 1);
    size_t n_max = (size_t)options->n_max, side = n_max + 2;
    double(*mass)[TRUTHS] = calloc(side * side, sizeof *mass); /* [k * side + rival][truth] */
    assert_non_null(mass);
    for (size_t t = 0; t < truths; t++) {
        out[t] = (outcome){0};
        mass[0][t] = 1;
    }
    for (size_t n = 0;; n++) {
        int alive = 0;
        for (size_t k = 0; k <= n; k++)
            for (size_t c = 0; k + c <= n; c++) {
                double *m = mass[k * side + c], most = 0;
                for (size_t t = 0; t < truths; t++) most = fmax(most, m[t]);
                if (most <= 0) continue;
                size_t claims = 0;
                uint64_t counts[3] = {k, c, n - k - c};
                int stop = stops(process, counts, n, 1, &claims);
                alive |= !stop;
                for (size_t t = 0; t < truths; t++) {
                    if (!stop)
                        out[t].samples += m[t];
                    else if (claims)
                        out[t].claimed[0] += m[t];
                    if (stop) m[t] = 0;
                }
            }
        if (!alive) break;
        for (size_t k = n + 1; k + 1 > 0; k--)
            for (size_t c = n + 1 - k; c + 1 > 0; c--)
                for (size_t t = 0; t < truths; t++) {
                    double third = 1 - p[t][0] - p[t][1], *m = mass[k * side + c];
                    m[t] *= third > 0 ? third : 0;
                    if (k > 0) m[t] += p[t][0] * mass[(k - 1) * side + c][t];
                    if (c > 0) m[t] += p[t][1] * mass[k * side + c - 1][t];
                }
    }
    free(mass);
    sf_eprocess_free(process);
}

/* ------------------------------------------------------------ expectations */

/* log of n! / (a! b! c!) */
static double log_multinomial(unsigned a, unsigned b, unsigned c)
{
    return lgamma(a + b + c + 1.0) - lgamma(a + 1.0) - lgamma(b + 1.0) - lgamma(c + 1.0);
}

static double log_power(unsigned n, double p) { return n ? n * log(p) : 0; }

/* At p = p0 the expectation of E is exactly 1 at every n; below p0 it is less. */
static void test_expectation_of_e(void **state)
{
    (void)state;
    static const double nulls[] = {0.5, 0.62, 0.8, 0.95};
    for (size_t j = 0; j < LENGTH(nulls); j++)
        for (unsigned n = 1; n <= 64; n = n * 3 / 2 + 1) {
            sf_null null = sf_null_of(nulls[j]);
            double at = 0, below = 0, p = nulls[j], less = p - 0.03;
            for (unsigned k = 0; k <= n; k++) {
                double log_e = log_multinomial(k, n - k, 0) + sf_null_log_e(&null, k, n);
                at += exp(log_e + log_power(k, p) + log_power(n - k, 1 - p));
                below += exp(log_e + log_power(k, less) + log_power(n - k, 1 - less));
            }
            assert_true(at < 1 && at > 1 - 1e-10); /* rounded down, hardly */
            assert_true(below < at);
        }
}

/* The same for three answers: 1 when the mean score is m, less when it is below. */
static void test_expectation_of_margin(void **state)
{
    (void)state;
    enum { N = 30 };
    static const double cases[][3] = {
        {0.6, 0.2, 0.2}, {0.5, 0.5, 0}, {0.9, 0.02, 0.08}, {0.1, 0.05, 0.85}, {0.7, 0.0, 0.3}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const double *p = cases[i];
        double m = (1 + p[0] - p[1]) / 2, at = 0, below = 0;
        sf_margin margin, larger;
        sf_margin_set(&margin, m, 1);
        sf_margin_set(&larger, m + 0.02, 1);
        for (unsigned w = 0; w <= N; w++)
            for (unsigned l = 0; w + l <= N; l++) {
                unsigned d = N - w - l;
                double log_p = log_multinomial(w, l, d);
                log_p += log_power(w, p[0]) + log_power(l, p[1]) + log_power(d, p[2]);
                at += exp(log_p + sf_margin_log_e(&margin, w, d, l));
                below += exp(log_p + sf_margin_log_e(&larger, w, d, l));
            }
        assert_true(fabs(at - 1) < 1e-11 && below < 0.999);
    }
}

/* --------------------------------------------------- false certificates */

static void test_adaptive_rate(void **state)
{
    (void)state;
    static const double deltas[] = {0.05, 0.01}, nulls[] = {0.5, 0.6, 0.75, 0.9, 0.98};
    print_message("false claims, n_max 2000:  delta    p0   at p0  -.005    -.02    -.05\n");
    for (size_t d = 0; d < LENGTH(deltas); d++)
        for (size_t j = 0; j < LENGTH(nulls); j++) {
            sf_eprocess_options options = sf_eprocess_options_default();
            options.delta = deltas[d];
            options.n_max = 2000;
            double p0 = nulls[j], p[] = {p0, p0 - 0.005, p0 - 0.02, p0 - 0.05};
            outcome out[4];
            run_two(out, &options, &p0, 1, p, 4);
            print_message("                          %6.2f %5.2f  %.5f %.5f %.5f %.5f\n", deltas[d], p0,
                          out[0].claimed[0], out[1].claimed[0], out[2].claimed[0], out[3].claimed[0]);
            for (int t = 0; t < 4; t++) assert_true(out[t].claimed[0] <= deltas[d]);
            assert_true(out[0].claimed[0] > deltas[d] / 3); /* and not by being useless */
        }
}

/* The whole curve at one delta: a false claim is one at any radius whose null is true. */
static void test_adaptive_curve_rate(void **state)
{
    (void)state;
    static const double p0[RADII] = {0.5, 0.55, 0.6, 0.7, 0.85, 0.95};
    sf_eprocess_options options = sf_eprocess_options_default();
    options.n_max = 1000;
    options.delta = 0.05;
    double p[TRUTHS] = {0.5, 0.55, 0.6, 0.7, 0.85, 0.95, 0.58, 0.45};
    outcome out[TRUTHS];
    run_two(out, &options, p0, RADII, p, TRUTHS);
    for (int t = 0; t < TRUTHS; t++) {
        int first = 0; /* the smallest radius with a true null */
        while (first < RADII && p0[first] < p[t]) first++;
        print_message("curve, delta .05, p = %.2f: false claim %.5f, samples %.0f\n", p[t], out[t].claimed[first],
                      out[t].samples);
        assert_true(out[t].claimed[first] <= options.delta);
        for (int r = first + 1; r < RADII; r++) assert_true(out[t].claimed[r] <= out[t].claimed[r - 1]);
    }
}

/* The smallest k that Clopper-Pearson certifies, not below `from`. */
static uint64_t binomial_threshold(uint64_t from, uint64_t n, double q, double delta)
{
    uint64_t k = from;
    while (k <= n && !sf_binomial_certifies(k, n, q, delta)) k++;
    return k;
}

static void test_binomial_rate(void **state)
{
    (void)state;
    static const double deltas[] = {0.05, 0.01}, bounds[] = {0, 0.1, 0.25, 0.4, 0.48};
    static const uint64_t sizes[] = {50, 500, 2000};
    for (size_t d = 0; d < LENGTH(deltas); d++)
        for (size_t j = 0; j < LENGTH(bounds); j++)
            for (size_t i = 0; i < LENGTH(sizes); i++) {
                double p0 = sf_null_probability(bounds[j]);
                uint64_t n = sizes[i], k = binomial_threshold((uint64_t)(p0 * (double)n), n, bounds[j], deltas[d]);
                double rate = k > n ? 0 : exp(sf_log_binomial_tail(k, n, p0));
                assert_true(rate <= deltas[d]);
                assert_true(n < 2000 || rate > deltas[d] / 2);
            }
}

/* The trap: Clopper-Pearson after every sample. The same bookkeeping must find it out. */
static void test_peeking_rate(void **state)
{
    (void)state;
    enum { N = 2000 };
    static const double bounds[] = {0, 0.25, 0.4};
    for (size_t j = 0; j < LENGTH(bounds); j++) {
        double p0 = sf_null_probability(bounds[j]), delta = 0.01, rate = 0, early = 0;
        double *mass = calloc(N + 2, sizeof *mass);
        assert_non_null(mass);
        mass[0] = 1;
        uint64_t threshold = 0;
        for (uint64_t n = 1; n <= N; n++) {
            for (uint64_t k = n; k > 0; k--) mass[k] = mass[k] * (1 - p0) + mass[k - 1] * p0;
            mass[0] *= 1 - p0;
            threshold = binomial_threshold(threshold, n, bounds[j], delta);
            for (uint64_t k = threshold; k <= n; k++) {
                rate += mass[k];
                mass[k] = 0;
            }
            if (n == 300) early = rate;
        }
        free(mass);
        print_message("peeking at Clopper-Pearson, delta .01, p0 = %.2f: %.4f after 300 samples, %.4f after 2000\n", p0,
                      early, rate);
        assert_true(early > 4 * delta && rate > 9 * delta && rate < 0.15);
    }
}

/* Three answers, at the boundary g(y) - g(c) = 2q, the rest a third class or no label. With
 * a third class it is also tried as the rival, and the listed one as the rest. */
static void test_margin_rate(void **state)
{
    (void)state;
    static const double bounds[] = {0, 0.1, 0.25}, rest[] = {0, 0.05, 0.2, 0.4};
    enum { RESTS = LENGTH(rest) };
    for (int none = 0; none < 2; none++)
        for (size_t j = 0; j < LENGTH(bounds); j++) {
            sf_eprocess_options options = sf_eprocess_options_default();
            options.delta = 0.05;
            options.n_max = 160;
            options.classes = none ? 2 : 3;
            options.none = none;
            size_t truths = none ? RESTS : 2 * RESTS;
            double p[2 * RESTS][2];
            for (size_t t = 0; t < RESTS; t++) {
                p[t][0] = p[RESTS + t][0] = (1 - rest[t]) / 2 + bounds[j];
                p[t][1] = (1 - rest[t]) / 2 - bounds[j];
                p[RESTS + t][1] = rest[t];
            }
            outcome out[2 * RESTS];
            run_three(out, &options, sf_null_probability(bounds[j]), p, truths);
            print_message("margin, delta .05, n_max 160, q = %.2f, rest %s:", bounds[j], none ? "none " : "third");
            for (size_t t = 0; t < truths; t++) {
                print_message(" %.5f", out[t].claimed[0]);
                assert_true(out[t].claimed[0] <= options.delta);
                if (t >= RESTS) assert_true(fabs(out[t].claimed[0] - out[t - RESTS].claimed[0]) < 1e-9);
            }
            print_message("\n");
            assert_true(out[0].claimed[0] > options.delta / 5);
        }
}

/* The chance that `predict` returns a class that is not strictly the most probable. */
static void test_selection_rate(void **state)
{
    (void)state;
    static const double cases[][3] = {
        {0.45, 0.45, 0.1}, {0.5, 0.5, 0}, {0.34, 0.33, 0.33}, {0.4, 0.35, 0.25}, {0.3, 0.3, 0.4}};
    static const int best[] = {-1, -1, 0, 0, 2};
    enum { N = 40 };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const double *p = cases[i];
        double wrong = 0, returned = 0;
        for (unsigned a = 0; a <= N; a++)
            for (unsigned b = 0; a + b <= N; b++) {
                unsigned c = N - a - b;
                uint64_t counts[3] = {a, b, c};
                sf_election e = sf_elect(counts, 3);
                if (!sf_election_is_clear(&e, 0.05)) continue;
                double log_p = log_multinomial(a, b, c);
                double chance = exp(log_p + log_power(a, p[0]) + log_power(b, p[1]) + log_power(c, p[2]));
                returned += chance;
                if ((int)e.winner != best[i]) wrong += chance;
            }
        assert_true(returned > 0.001 && wrong <= 0.05);
    }
}

/* ------------------------------------------------- samples and lost power */

static void test_mean_samples(void **state)
{
    (void)state;
    static const double rows[][4] = {
        /* p, p0, DESIGN's mean samples (simulated), n_max */
        {0.98, 0.6, 13, 500},
        {0.95, 0.85, 105, 1500},
        {0.9, 0.8, 148, 2000},
        {0.85, 0.8, 729, 6000},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        sf_eprocess_options options = sf_eprocess_options_default();
        options.n_max = (uint64_t)rows[i][3];
        options.futility = 0;
        outcome out;
        run_two(&out, &options, &rows[i][1], 1, &rows[i][0], 1);
        print_message("(%.2f, %.2f): %.1f samples, claimed %.6f\n", rows[i][0], rows[i][1], out.samples,
                      out.claimed[0]);
        assert_true(out.claimed[0] > 0.9999);
        assert_true(fabs(out.samples / rows[i][2] - 1) < 0.06);
    }
}

static void test_futility(void **state)
{
    (void)state;
    static const double nulls[] = {0.5, 0.75, 0.95};
    print_message("futility, n_max 2000:   p0      p   power  without   samples  without\n");
    for (size_t j = 0; j < LENGTH(nulls); j++) {
        sf_eprocess_options options = sf_eprocess_options_default(), patient = options;
        options.n_max = patient.n_max = 2000;
        patient.futility = 0;
        sf_null null = sf_null_of(nulls[j]);
        double p0 = nulls[j], p1 = (double)sf_null_threshold(&null, sf_log_e_target(0.01), 2000) / 2000, d = p1 - p0;
        double p[TRUTHS] = {p0 - 4 * d, p0 - d, p0, p0 + d / 2, p1, p1 + d / 2, p1 + d, p1 + (1 - p1) / 2};
        if (p[6] > 1) p[6] = 1 - (1 - p1) / 4;
        outcome with[TRUTHS], without[TRUTHS];
        run_two(with, &options, &p0, 1, p, TRUTHS);
        run_two(without, &patient, &p0, 1, p, TRUTHS);
        for (int t = 0; t < TRUTHS; t++) {
            double lost = without[t].claimed[0] - with[t].claimed[0];
            print_message("                     %.3f  %.4f  %.4f  %.4f  %8.1f %8.1f\n", p0, p[t], with[t].claimed[0],
                          without[t].claimed[0], with[t].samples, without[t].samples);
            assert_true(lost > -1e-12 && lost < 0.003);
            assert_true(with[t].samples <= without[t].samples);
        }
        assert_true(with[0].samples < without[0].samples / 4);
        assert_true(with[1].samples < without[1].samples * 0.6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expectation_of_e), cmocka_unit_test(test_expectation_of_margin),
        cmocka_unit_test(test_adaptive_rate),    cmocka_unit_test(test_adaptive_curve_rate),
        cmocka_unit_test(test_binomial_rate),    cmocka_unit_test(test_peeking_rate),
        cmocka_unit_test(test_margin_rate),      cmocka_unit_test(test_selection_rate),
        cmocka_unit_test(test_mean_samples),     cmocka_unit_test(test_futility),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
