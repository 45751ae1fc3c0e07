/* src/stats/vote.c: its verdicts against exact arithmetic, and its error rates and lengths computed exactly.
 *
 * Rates: the distribution of the counts is carried forward draw by draw, the library's own verdict is asked in
 * every state that can be reached, and the probability of the states where it stops is summed. */
#include "support.h"

#include "base/number.h"
#include "stats/special.h"
#include "stats/vote.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------- exact numbers */

/* A whole number of any size: 64-bit digits, the lowest first. */
enum { DIGITS = 3000 };
typedef struct whole {
    size_t count;
    uint64_t digits[DIGITS];
} whole;

static void multiply(whole *x, uint64_t factor)
{
    sf_weight carry = 0;
    for (size_t i = 0; i < x->count; i++) {
        carry += (sf_weight)x->digits[i] * factor;
        x->digits[i] = (uint64_t)carry;
        carry >>= 64;
    }
    if (!carry) return;
    assert_true(x->count < DIGITS);
    x->digits[x->count++] = (uint64_t)carry;
}

static int at_least(const whole *x, const whole *y)
{
    if (x->count != y->count) return x->count > y->count;
    for (size_t i = x->count; i-- > 0;)
        if (x->digits[i] != y->digits[i]) return x->digits[i] > y->digits[i];
    return 1;
}

/* Whether (2a-1)!! (2b-1)!! / (a+b)! >= (classes - 1) / alpha, for the very number that `alpha` is. */
static int exactly_clear(uint64_t a, uint64_t b, size_t classes, double alpha)
{
    static whole left, right;
    int exponent;
    const double mantissa = frexp(alpha, &exponent); /* alpha = mantissa 2^53 / 2^(53 - exponent) */
    left.count = right.count = 1;
    left.digits[0] = (uint64_t)ldexp(mantissa, 53);
    right.digits[0] = classes - 1;
    for (int i = 0; i < 53 - exponent; i++) multiply(&right, 2);
    for (uint64_t i = 1; i <= a; i++) multiply(&left, 2 * i - 1);
    for (uint64_t i = 1; i <= b; i++) multiply(&left, 2 * i - 1);
    for (uint64_t i = 1; i <= a + b; i++) multiply(&right, i);
    return at_least(&left, &right);
}

/* The fewest votes that are clear against b. */
static uint64_t fewest_clear(uint64_t b, size_t classes, double alpha, int (*clear)(uint64_t, uint64_t, size_t, double))
{
    uint64_t low = b, high = 2 * b + 2000;
    assert_true(clear(high, b, classes, alpha) && !clear(low, b, classes, alpha));
    while (high - low > 1) {
        const uint64_t a = low + (high - low) / 2;
        if (clear(a, b, classes, alpha))
            high = a;
        else
            low = a;
    }
    return high;
}

static int clear_here(uint64_t a, uint64_t b, size_t classes, double alpha)
{
    const uint64_t counts[5] = {b, a, b > 3 ? 3 : 0, 0, 0};
    return sf_vote_clear(counts, classes, alpha);
}

static const double levels[] = {0.2, 0.05, 0.001};

/* Never bold, and never shy either: no E comes so close to its threshold that rounding down decides. */
static void test_against_exact(void **state)
{
    (void)state;
    static const uint64_t larger[] = {256, 257, 1000, 2500};
    for (size_t classes = 2; classes <= 5; classes++)
        for (size_t l = 0; l < COUNT(levels); l++) {
            for (uint64_t n = 0; n <= 90; n++)
                for (uint64_t b = 0; 2 * b <= n; b++)
                    assert_int_equal(clear_here(n - b, b, classes, levels[l]),
                                     exactly_clear(n - b, b, classes, levels[l]));
            for (uint64_t b = 50; b < 300; b += 7)
                assert_int_equal(fewest_clear(b, classes, levels[l], clear_here),
                                 fewest_clear(b, classes, levels[l], exactly_clear));
        }
    for (size_t i = 0; i < COUNT(larger); i++)
        assert_int_equal(fewest_clear(larger[i], 2, 0.001, clear_here),
                         fewest_clear(larger[i], 2, 0.001, exactly_clear));
    assert_false(clear_here(12, 0, 2, 0.001));
    assert_true(clear_here(13, 0, 2, 0.001));
    assert_false(clear_here(14, 0, 5, 0.001));
    assert_true(clear_here(15, 0, 5, 0.001));
}

/* log E by way of the beta function. */
static double log_e(uint64_t a, uint64_t b)
{
    return -sf_log_beta_kernel(0.5, (double)a + 0.5, (double)b + 0.5) - log(2 * 3.14159265358979323846);
}

static void test_large_counts(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {13, 14, 100, 4999, 100000, 12345678, 999999999, SF_SAMPLES_MAX};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const uint64_t n = numbers[i];
        const sf_vote_rule rule = sf_vote_rule_of(2, 0.001, n);
        const uint64_t a = (n + rule.lead) / 2;
        print_message("%llu votes: a lead of %llu is clear\n", (unsigned long long)n, (unsigned long long)rule.lead);
        assert_int_equal((n + rule.lead) % 2, 0);
        assert_true(log_e(a, n - a) > log(1000) - 1e-12 && log_e(a - 1, n - a + 1) < log(1000) + 1e-8);
    }
    assert_int_equal(sf_vote_rule_of(2, 0.001, 12).lead, 0);
    assert_int_equal(sf_vote_rule_of(3, 0.001, 13).lead, 0);
    assert_int_equal(sf_vote_rule_of(2, 1e-300, 500).lead, 0);
    assert_int_equal(sf_vote_rule_of(2, 0x1p-1074, SF_SAMPLES_MAX).lead, 0); /* 1/alpha is infinite */
}

/* E itself, from the least alpha at which the votes are clear: at most the true value, and hardly less. */
static void test_rounding(void **state)
{
    (void)state;
    static const uint64_t pairs[][2] = {{13, 0},      {40, 9},          {300, 200},         {400, 255},
                                        {400, 256},   {400, 257},       {500, 300},         {1200, 1000},
                                        {5500, 5000}, {106500, 104000}, {2000000, 1990000}, {500100000, 499890000}};
    for (size_t i = 0; i < COUNT(pairs); i++) {
        const uint64_t counts[] = {pairs[i][1], pairs[i][0]};
        double low = 0x1p-1000, high = 0.999;
        const double truth = log_e(counts[1], counts[0]);
        if (!sf_vote_clear(counts, 2, high) || sf_vote_clear(counts, 2, low)) fail();
        while (high / low > 1 + 1e-15) {
            const double middle = sqrt(low * high) > low ? sqrt(low * high) : high;
            if (middle >= high) break;
            if (sf_vote_clear(counts, 2, middle))
                high = middle;
            else
                low = middle;
        }
        const double found = -log(high);
        print_message("log E(%llu,%llu) = %.6f, short by %.1e\n", (unsigned long long)counts[1],
                      (unsigned long long)counts[0], truth, truth - found);
        assert_true(found <= truth + 4e-15 * (1 + truth));
        assert_true(found >= truth - 4e-10);
    }
}

/* --------------------------------------------------------------- error rates */

enum { OUTCOMES = 3, TRUTHS = 8, SIDE = 181 };

/* What a vote does when its answers have a given distribution. */
typedef struct outcome {
    double returned[OUTCOMES]; /* probability, of each class */
    double draws;              /* expected number */
} outcome;

/* Three answers; with two classes the third is no label. `insist`: to the end. */
static void run(outcome *out, size_t classes, double alpha, size_t horizon, int insist, double truths[][OUTCOMES],
                size_t count)
{
    static double mass[2][SIDE][SIDE][TRUTHS]; /* of the states that go on, by the votes of the first two */
    const sf_vote_rule rule = sf_vote_rule_of(classes, alpha, horizon);
    assert_true(horizon < SIDE);
    memset(mass, 0, sizeof mass);
    memset(out, 0, count * sizeof *out);
    for (size_t t = 0; t < count; t++) mass[0][0][0][t] = 1;
    for (size_t n = 0; n <= horizon; n++) {
        double(*here)[SIDE][TRUTHS] = mass[n % 2], (*next)[SIDE][TRUTHS] = mass[(n + 1) % 2];
        for (size_t i = 0; i <= n + 1 && i < SIDE; i++) memset(next[i], 0, sizeof next[i]);
        for (size_t i = 0; i <= n; i++)
            for (size_t j = 0; i + j <= n; j++) {
                const uint64_t counts[OUTCOMES] = {i, j, n - i - j};
                sf_vote_verdict verdict = sf_vote_decide(&rule, counts, n, insist);
                assert_int_equal(verdict == SF_VOTE_CLEAR, sf_vote_clear(counts, classes, alpha));
                for (size_t t = 0; t < count; t++) {
                    const double p = here[i][j][t];
                    if (p <= 0) continue;
                    if (verdict == SF_VOTE_CLEAR) out[t].returned[sf_vote_leader(counts, classes)] += p;
                    if (verdict != SF_VOTE_OPEN) continue;
                    out[t].draws += p;
                    next[i + 1][j][t] += p * truths[t][0];
                    next[i][j + 1][t] += p * truths[t][1];
                    next[i][j][t] += p * truths[t][2];
                }
            }
    }
}

/* The probability of an answer that is not the one class with the largest probability. */
static double wrong(const outcome *out, const double *truth, size_t classes)
{
    double sum = 0, most = 0;
    size_t right = OUTCOMES, times = 0;
    for (size_t c = 0; c < classes; c++) most = truth[c] > most ? truth[c] : most;
    for (size_t c = 0; c < classes; c++)
        if (truth[c] == most) right = c, times++;
    for (size_t c = 0; c < classes; c++)
        if (c != right || times > 1) sum += out->returned[c];
    return sum;
}

static void check_rates(size_t classes, size_t horizon, double truths[][OUTCOMES], size_t count)
{
    for (size_t l = 0; l < COUNT(levels); l++) {
        outcome out[TRUTHS];
        double worst = 0;
        run(out, classes, levels[l], horizon, 1, truths, count);
        for (size_t t = 0; t < count; t++) {
            const double rate = wrong(&out[t], truths[t], classes);
            print_message("%zu classes, alpha %.3f, (%.3f %.3f %.3f): wrong %.6f\n", classes, levels[l], truths[t][0],
                          truths[t][1], truths[t][2], rate);
            assert_true(rate <= levels[l]);
            worst = rate > worst ? rate : worst;
        }
        assert_true(worst > levels[l] / 5); /* the nulls are the hard ones */
    }
}

static void test_error_rates(void **state)
{
    (void)state;
    double two[][OUTCOMES] = {{0.5, 0.5, 0},     {0.499, 0.501, 0}, {0.52, 0.48, 0},  {0.55, 0.45, 0},
                              {0.25, 0.25, 0.5}, {0.24, 0.26, 0.5}, {0.05, 0.05, 0.9}};
    double three[][OUTCOMES] = {{0.5, 0.5, 0},
                                {0.4, 0.4, 0.2},
                                {0.35, 0.35, 0.3},
                                {0.25, 0.375, 0.375},
                                {1.0 / 3, 1.0 / 3, 1.0 / 3},
                                {0.3333, 0.3333, 0.3334},
                                {0.334, 0.333, 0.333},
                                {0.2, 0.39, 0.41}};
    check_rates(2, 180, two, COUNT(two));
    check_rates(3, 150, three, COUNT(three));
}

/* ----------------------------------------------------- lengths, and giving up */

/* Two classes, longer: by the votes of the first. */
static outcome run_long(double p, uint64_t n_max, int insist)
{
    const sf_vote_rule rule = sf_vote_rule_of(2, 0.001, n_max);
    double *mass = calloc(n_max + 2, sizeof *mass);
    outcome out = {0};
    uint64_t low = 0, high = 0;
    assert_non_null(mass);
    mass[0] = 1;
    for (uint64_t n = 0; n <= n_max && low <= high; n++) {
        for (uint64_t k = low; k <= high; k++) {
            const uint64_t counts[] = {k, n - k};
            sf_vote_verdict verdict = mass[k] > 0 ? sf_vote_decide(&rule, counts, n, insist) : SF_VOTE_OPEN;
            if (verdict == SF_VOTE_CLEAR) out.returned[sf_vote_leader(counts, 2)] += mass[k];
            if (verdict != SF_VOTE_OPEN) mass[k] = 0;
            out.draws += mass[k];
        }
        mass[high + 1] = 0;
        for (uint64_t k = high + 1; k-- > low;) {
            mass[k + 1] += mass[k] * p;
            mass[k] *= 1 - p;
        }
        for (high++; low <= high && mass[low] < 1e-18; low++) continue;
        while (high > low && mass[high] < 1e-18) high--;
    }
    free(mass);
    return out;
}

/* The table in the head of vote.c, and the like for fewer draws. */
static void test_giving_up(void **state)
{
    (void)state;
    static const double rows[][4] = {
        /* n_max, g, at most so many draws, at most so much less often clear than to the end */
        {5000, 0.5, 200, 1},   {5000, 0.52, 300, 1},   {5000, 0.54, 700, 1},    {5000, 0.56, 700, 1},
        {5000, 0.58, 600, 1},  {5000, 0.6, 450, 0.17}, {5000, 0.65, 203, 0.02}, {5000, 0.7, 110, 0.001},
        {5000, 0.8, 46, 1e-6}, {5000, 0.9, 24, 1e-9},  {5000, 1, 13, 0},        {500, 0.5, 150, 1},
        {500, 0.7, 200, 0.08}, {100, 0.5, 100, 0},     {100, 0.8, 45, 0},       {99, 0.75, 64, 0},
    };
    print_message("n_max     g      draws  to the end    clear  to the end\n");
    for (size_t i = 0; i < COUNT(rows); i++) {
        const uint64_t n_max = (uint64_t)rows[i][0];
        const outcome with = run_long(rows[i][1], n_max, 0), without = run_long(rows[i][1], n_max, 1);
        print_message("%5llu  %.2f  %9.1f   %9.1f   %.6f    %.6f\n", (unsigned long long)n_max, rows[i][1], with.draws,
                      without.draws, with.returned[0] + with.returned[1], without.returned[0] + without.returned[1]);
        assert_true(rows[i][1] > 0.5 || without.returned[0] + without.returned[1] <= 0.001); /* a tie: alpha */
        assert_true(with.draws <= rows[i][2]);
        assert_true(without.returned[0] - with.returned[0] <= rows[i][3]);
        assert_true(with.returned[0] <= without.returned[0] + 1e-12 && with.draws <= without.draws + 1e-9);
    }
}

/* A model that gives no label, and draws that are spread over many classes, are given up soon too. */
static void test_giving_up_elsewhere(void **state)
{
    (void)state;
    uint64_t counts[50];
    sf_vote vote;
    sf_vote_rule rule = sf_vote_rule_of(2, 0.001, 5000);
    sf_vote_begin(&vote, &rule, counts);
    while (!sf_vote_done(&vote)) sf_vote_add(&vote, -1);
    assert_true(vote.verdict == SF_VOTE_GIVEN_UP && vote.n < 500);
    next_seed(1);
    rule = sf_vote_rule_of(50, 0.001, 5000);
    sf_vote_begin(&vote, &rule, counts);
    while (!sf_vote_done(&vote)) sf_vote_add(&vote, (int)next_below(50));
    assert_true(vote.verdict == SF_VOTE_GIVEN_UP && vote.n < 1500);
    /* A lead among few votes is not: here every tenth draw has a label. */
    sf_vote_begin(&vote, &rule, counts);
    while (!sf_vote_done(&vote)) sf_vote_add(&vote, vote.n % 10 ? -1 : 7);
    assert_true(vote.verdict == SF_VOTE_CLEAR && vote.n < 200);
}

/* -------------------------------------------------------------- draw by draw */

static int next_answer(const sf_vote_rule *rule, const uint32_t *shares)
{
    uint32_t ball = next_below(1000);
    for (size_t c = 0; c < rule->classes; c++) {
        if (ball < shares[c]) return (int)c;
        ball -= shares[c];
    }
    return -1;
}

/* So many votes for the leader, and not one fewer, make it clear, or are all that are left. */
static void check_soonest(const sf_vote *vote)
{
    uint64_t *leader = &vote->counts[sf_vote_leader(vote->counts, vote->rule->classes)];
    const uint64_t votes = *leader, soonest = sf_vote_soonest(vote);
    assert_true(soonest >= 1 && vote->n + soonest <= vote->rule->n_max);
    *leader = votes + soonest;
    assert_int_not_equal(sf_vote_decide(vote->rule, vote->counts, vote->n + soonest, 1), SF_VOTE_OPEN);
    *leader = votes + soonest - 1;
    assert_int_equal(sf_vote_decide(vote->rule, vote->counts, vote->n + soonest - 1, 1), SF_VOTE_OPEN);
    *leader = votes;
}

/* Every verdict on the way is that of the counts; a vote that ended can end there, and nowhere before. What was
 * given up goes on when one insists. */
static void follow(const sf_vote_rule *rule, const uint32_t *shares)
{
    uint64_t counts[5];
    sf_vote vote;
    sf_vote_begin(&vote, rule, counts);
    for (int insist = 0; insist < 2; insist++) {
        const uint64_t before = vote.n;
        while (!sf_vote_done(&vote)) {
            check_soonest(&vote);
            assert_false(vote.n > before && sf_vote_can_end(rule, counts, vote.n, insist));
            const int done = sf_vote_add(&vote, next_answer(rule, shares));
            assert_int_equal(vote.verdict, sf_vote_decide(rule, counts, vote.n, insist));
            assert_int_equal(done, vote.verdict != SF_VOTE_OPEN);
        }
        assert_true(sf_vote_can_end(rule, counts, vote.n, insist));
        assert_true(vote.n <= rule->n_max && (vote.n == rule->n_max || !insist || vote.verdict == SF_VOTE_CLEAR));
        sf_vote_insist(&vote);
        if (sf_vote_done(&vote)) break;
        assert_true(vote.n < rule->n_max);
    }
    if (vote.verdict != SF_VOTE_CLEAR) return;
    counts[sf_vote_leader(counts, rule->classes)]++; /* it would have ended before */
    assert_false(sf_vote_can_end(rule, counts, vote.n + 1, 0) || sf_vote_can_end(rule, counts, vote.n + 1, 1));
}

static void test_draw_by_draw(void **state)
{
    (void)state;
    static const uint32_t shares[][5] = {{500, 500, 0, 0, 0},   {560, 440, 0, 0, 0},       {700, 300, 0, 0, 0},
                                         {990, 10, 0, 0, 0},    {100, 300, 0, 0, 0},       {400, 350, 250, 0, 0},
                                         {333, 333, 334, 0, 0}, {200, 200, 200, 200, 200}, {300, 250, 50, 50, 50},
                                         {1000, 0, 0, 0, 0}};
    static const uint64_t most[] = {1, 5, 13, 100, 1000};
    next_seed(4);
    for (size_t s = 0; s < COUNT(shares); s++)
        for (size_t m = 0; m < COUNT(most); m++)
            for (size_t classes = s < 5 ? 2 : s < 7 ? 3 : 5; classes <= 5; classes++)
                for (size_t l = 0; l < COUNT(levels); l++) {
                    const sf_vote_rule rule = sf_vote_rule_of(classes, levels[l], most[m]);
                    for (int repeat = 0; repeat < 5; repeat++) follow(&rule, shares[s]);
                }
}

static void test_ends_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        uint64_t counts[2], n;
        int can, insisting;
    } ends[] = {
        {{13, 0}, 13, 1, 1},        /* clear */
        {{13, 0}, 20, 1, 1},        /* clear, and seven draws without a label before the last */
        {{14, 0}, 14, 0, 0},        /* it was clear before */
        {{0, 0}, 0, 0, 0},          /* no draw at all */
        {{13, 0}, 12, 0, 0},        /* more votes than draws */
        {{6000, 0}, 6000, 0, 0},    /* more draws than there may be */
        {{7, 6}, 13, 0, 0},         /* too early to give up */
        {{50, 50}, 100, 1, 0},      /* the first time it may be given up */
        {{60, 40}, 100, 0, 0},      /* but not with this lead */
        {{200, 200}, 400, 0, 0},    /* it was given up long before */
        {{2600, 2400}, 5000, 0, 1}, /* the same; insisting, all draws were made */
        {{2669, 2331}, 5000, 0, 1}, /* clear with the last draw, if one insisted */
        {{160, 90}, 250, 1, 1},     /* clear */
    };
    const sf_vote_rule rule = sf_vote_rule_of(2, 0.001, 5000);
    for (size_t i = 0; i < COUNT(ends); i++) {
        uint64_t counts[2];
        memcpy(counts, ends[i].counts, sizeof counts);
        assert_int_equal(sf_vote_can_end(&rule, counts, ends[i].n, 0), ends[i].can);
        assert_int_equal(sf_vote_can_end(&rule, counts, ends[i].n, 1), ends[i].insisting);
        assert_memory_equal(counts, ends[i].counts, sizeof counts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_exact), cmocka_unit_test(test_large_counts),
        cmocka_unit_test(test_rounding),      cmocka_unit_test(test_error_rates),
        cmocka_unit_test(test_giving_up),     cmocka_unit_test(test_giving_up_elsewhere),
        cmocka_unit_test(test_draw_by_draw),  cmocka_unit_test(test_ends_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
