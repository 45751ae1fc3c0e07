/* The weights of a sum of models: the smallest loss, against a search without derivatives; members that are alike. What
 * the program makes of it is in test_cli_ibp.py. */
#include "train/sum_fit.h"

#include "support.h"

#include <math.h>
#include <stdlib.h>

enum { TEXTS = 60, MEMBERS = 3, OTHERS = 2 };

static safer_error error;

static double uniform(void) { return (double)next_below(1000001) / 1e6; }

/* The loss as its definition says. */
static double plain_loss(const double *weights, const double *leads)
{
    double loss = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        double sum = 1;
        for (size_t c = 0; c < OTHERS; c++) {
            double lead = 0;
            for (size_t m = 0; m < MEMBERS; m++) lead += weights[m] * leads[(i * MEMBERS + m) * OTHERS + c];
            sum += exp(-lead);
        }
        loss += log(sum);
    }
    for (size_t m = 0; m < MEMBERS; m++) loss += (weights[m] - 1) * (weights[m] - 1);
    return loss;
}

/* Members that are right more or less often; `fault`: the last one is wrong. */
static void make_leads(double *leads, double scale, int fault)
{
    for (size_t i = 0; i < TEXTS * MEMBERS * OTHERS; i++) {
        const size_t m = i / OTHERS % MEMBERS;
        leads[i] = scale * (4 * uniform() - (fault && m == MEMBERS - 1 ? 3.5 : 1.5 + 0.2 * (double)m));
    }
}

static void test_the_least_loss(void **state)
{
    (void)state;
    double leads[TEXTS * MEMBERS * OTHERS], weights[MEMBERS], near[MEMBERS];
    size_t left_out = 0;
    for (int turn = 0; turn < 200; turn++) {
        make_leads(leads, turn % 4 == 3 ? 300 : 1 + turn % 4, turn % 3 == 0);
        assert_ok(sf_sum_minimise(weights, leads, TEXTS, MEMBERS, OTHERS, &error));
        const double loss = plain_loss(weights, leads);
        for (size_t m = 0; m < MEMBERS; m++) {
            assert_true(weights[m] >= 0);
            left_out += weights[m] == 0;
        }
        for (int tries = 0; tries < 200; tries++) { /* convex: no point near it is below when none is anywhere */
            const double far = tries % 2 ? 1e-3 : 0.1;
            for (size_t m = 0; m < MEMBERS; m++) near[m] = fmax(0, weights[m] + far * (2 * uniform() - 1));
            assert_true(plain_loss(near, leads) >= loss - 1e-9 * loss);
        }
    }
    assert_true(left_out > 0);
}

static void test_members_that_are_alike(void **state)
{
    (void)state;
    double leads[TEXTS * MEMBERS * OTHERS], weights[MEMBERS];
    make_leads(leads, 1, 0);
    for (size_t i = 0; i < TEXTS; i++)
        for (size_t c = 0; c < OTHERS; c++) leads[(i * MEMBERS + 1) * OTHERS + c] = leads[i * MEMBERS * OTHERS + c];
    assert_ok(sf_sum_minimise(weights, leads, TEXTS, MEMBERS, OTHERS, &error));
    assert_true(fabs(weights[0] - weights[1]) < 1e-4);
}

static void test_members_that_are_always_right(void **state)
{
    (void)state;
    double leads[TEXTS * MEMBERS * OTHERS], weights[MEMBERS];
    for (size_t i = 0; i < TEXTS * MEMBERS * OTHERS; i++) leads[i] = 1 + uniform();
    assert_ok(sf_sum_minimise(weights, leads, TEXTS, MEMBERS, OTHERS, &error));
    for (size_t m = 0; m < MEMBERS; m++) assert_true(weights[m] > 0.5 && weights[m] < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_loss),
        cmocka_unit_test(test_members_that_are_alike),
        cmocka_unit_test(test_members_that_are_always_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
