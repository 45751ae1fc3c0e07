/* Products of plain matrices: against a naive product in double precision, for every order of the sides; and every
 * row has the same bits alone and among others. */
#include "nn/gemm.h"

#include "nn/isa.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 120000 };
static float left[MOST], right[MOST], out[MOST], before[MOST];

static void fill(float *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) numbers[i] = next_float();
}

static double at(const float *side, size_t stride, int turned, size_t row, size_t column)
{
    return (double)side[turned ? column * stride + row : row * stride + column];
}

static void check_product(sf_gemm_sides sides, int add, size_t M, size_t N, size_t K, size_t gap)
{
    const size_t rows[] = {sides == SF_GEMM_TN ? K : M, sides == SF_GEMM_NT ? N : K}, stride = N + gap;
    const sf_gemm_side a = {left, (sides == SF_GEMM_TN ? M : K) + gap},
                       b = {right, (sides == SF_GEMM_NT ? K : N) + gap};
    assert_true(rows[0] * a.stride <= MOST && rows[1] * b.stride <= MOST && (M + 1) * stride <= MOST);
    fill(out, (M + 1) * stride);
    memcpy(before, out, (M + 1) * stride * sizeof *out);
    if (gap)
        sf_gemm(sides, out, stride, a, b, add, M, N, K);
    else
        sf_gemm_dense(sides, out, left, right, add, M, N, K);
    for (size_t i = 0; i < (M + 1) * stride; i++) {
        const size_t m = i / stride, n = i % stride;
        double want = add ? (double)before[i] : 0;
        if (m >= M || n >= N) { /* not ours */
            assert_true(out[i] == before[i]);
            continue;
        }
        for (size_t k = 0; k < K; k++)
            want += at(left, a.stride, sides == SF_GEMM_TN, m, k) * at(right, b.stride, sides == SF_GEMM_NT, k, n);
        assert_true(fabs((double)out[i] - want) <= 1e-5 * (double)K);
    }
}

static const sf_gemm_sides all[] = {SF_GEMM_NN, SF_GEMM_NT, SF_GEMM_TN};

static void products_equal_the_definition(void **unused)
{
    (void)unused;
    fill(left, MOST);
    fill(right, MOST);
    for (int round = 0; round < 600; round++)
        check_product(all[round % 3], (int)next_below(2), 1 + next_below(38), 1 + next_below(38), 1 + next_below(38),
                      next_below(2) * next_below(8));
    for (int round = 0; round < 12; round++) /* beyond a panel, in every direction */
        check_product(all[round % 3], round & 1, 225 + next_below(20), 33 + next_below(40), 257 + next_below(40),
                      (size_t)(round / 6));
    float untouched = 3;
    sf_gemm_dense(SF_GEMM_NN, &untouched, NULL, NULL, 0, 0, 1, 1);
    assert_true(untouched == 3);
}

/* Nor on where a panel ends: the inner dimension goes beyond one. */
static void a_row_does_not_depend_on_others(void **unused)
{
    (void)unused;
    enum { M = 61, N = 45, K = 300 };
    static float alone[N];
    fill(left, M * K);
    fill(right, K * N);
    for (size_t i = 0; i < COUNT(all); i++) {
        const int turned = all[i] == SF_GEMM_TN;
        sf_gemm_dense(all[i], out, left, right, 0, M, N, K);
        for (size_t m = 0; m < M; m++) {
            const sf_gemm_side row = {left + (turned ? m : m * K), turned ? M : K},
                               b = {right, all[i] == SF_GEMM_NT ? K : N};
            sf_gemm(all[i], alone, N, row, b, 0, 1, N, K);
            assert_memory_equal(alone, out + m * N, sizeof alone);
        }
        for (size_t m = 0; m < M; m++) /* in the order of the inner dimension */
            for (size_t n = 0; n < N; n++) {
                float sum = 0;
                for (size_t k = 0; k < K; k++) {
                    const float x = (float)at(left, turned ? M : K, turned, m, k),
                                y = (float)at(right, all[i] == SF_GEMM_NT ? K : N, all[i] == SF_GEMM_NT, k, n);
                    sum = sf_isa_choose() >= SF_AVX2 ? fmaf(x, y, sum) : sum + x * y;
                }
                assert_true(sum == out[m * N + n]);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal_the_definition),
        cmocka_unit_test(a_row_does_not_depend_on_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
