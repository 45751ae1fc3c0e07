/* Element-wise and row-wise functions: every instruction set against doubles, on all lengths
 * around those of a vector. */
#define _GNU_SOURCE
#include "support.h"

#include "nn/attention.h"
#include "nn/vector.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LONGEST = 100 };

static sf_isa isas[5];
static int isa_count;

static int find_isas(void **state)
{
    (void)state;
    sf_isa best = sf_isa_choose();
    for (int i = SF_PORTABLE; i <= SF_AMX; i++)
        if (i <= (int)best) isas[isa_count++] = (sf_isa)i;
    return 0;
}

/* Numbers of all kinds between -size and size. */
static void fill(float *x, size_t N, float size, uint32_t seed)
{
    for (size_t i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = size * ((float)(seed >> 8) / 8388608.0f - 1.0f);
    }
}

static double exact(double x, sf_activation activation)
{
    if (activation == SF_GELU) return 0.5 * x * erfc(-x / sqrt(2));
    if (activation == SF_GELU_TANH) return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    if (activation == SF_RELU) return x > 0 ? x : 0;
    if (activation == SF_SILU) return x / (1 + exp(-x));
    return x;
}

static double slope(double x, sf_activation activation)
{
    if (activation == SF_GELU) return 0.5 * erfc(-x / sqrt(2)) + x * exp(-x * x / 2) / sqrt(2 * M_PI);
    if (activation == SF_RELU) return x > 0;
    return (exact(x + 1e-5, activation) - exact(x - 1e-5, activation)) / 2e-5;
}

static void check(double got, double expected, double tolerance, const char *what, sf_isa isa, size_t N)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%s, %s, length %zu: %.9g instead of %.9g", what, sf_isa_name(isa), N, got, expected);
}

static void test_activations(void **state)
{
    (void)state;
    float x[LONGEST], y[LONGEST + 1], d[LONGEST], back[LONGEST];
    for (int k = 0; k < isa_count; k++)
        for (int a = SF_LINEAR; a <= SF_SILU; a++)
            for (size_t N = 0; N <= LONGEST; N++) {
                fill(x, N, N % 3 ? 4 : 30, (uint32_t)N);
                fill(d, N, 2, (uint32_t)N + 7);
                for (int rough = 0; rough < 2; rough++) {
                    y[N] = 12345;
                    (rough ? sf_activate_rough : sf_activate)(y, x, (sf_activation)a, N, isas[k]);
                    assert_true(y[N] == 12345);
                    for (size_t i = 0; i < N; i++) {
                        double size = fmax(1, fabs((double)x[i]));
                        check((double)y[i], exact((double)x[i], (sf_activation)a), (rough ? 1e-4 : 5e-7) * size,
                              rough ? "rough" : "activation", isas[k], N);
                    }
                }
                const sf_view to = {back, N, SF_F32}, from = {d, N, SF_F32}, at = {x, N, SF_F32};
                sf_activate_rows_backward(to, from, at, (sf_activation)a, 1, N, isas[k]);
                for (size_t i = 0; i < N; i++)
                    check((double)back[i], (double)d[i] * slope((double)x[i], (sf_activation)a),
                          a == SF_GELU_TANH || a == SF_SILU ? 2e-4 : 3e-6, "slope", isas[k], N);
                memcpy(y, x, N * sizeof *x); /* in place */
                sf_activate(y, y, (sf_activation)a, N, isas[k]);
                memcpy(back, x, N * sizeof *x);
                sf_activate(x, back, (sf_activation)a, N, isas[k]);
                assert_memory_equal(x, y, N * sizeof *x);
            }
}

static sf_bf16 halve(float x)
{
    sf_bf16 out;
    sf_to_bf16(&out, &x, 1, SF_PORTABLE);
    return out;
}

static float widen(sf_bf16 x)
{
    float out;
    sf_from_bf16(&out, &x, 1, SF_PORTABLE);
    return out;
}

/* Views of either type, rows that are longer than a piece. */
static void test_views(void **state)
{
    (void)state;
    enum { M = 3, N = 700, STRIDE = 710 };
    static float x[M * STRIDE], d[M * STRIDE], wide[M * STRIDE];
    static sf_bf16 half_x[M * STRIDE], half_d[M * STRIDE], half[M * STRIDE];
    fill(x, M * STRIDE, 4, 1);
    fill(d, M * STRIDE, 2, 2);
    for (size_t i = 0; i < M * STRIDE; i++) {
        half_x[i] = halve(x[i]), half_d[i] = halve(d[i]);
        x[i] = widen(half_x[i]), d[i] = widen(half_d[i]);
    }
    for (int k = 0; k < isa_count; k++)
        for (int types = 0; types < 4; types++) {
            sf_view in = types & 1 ? (sf_view){half_x, STRIDE, SF_BF16} : (sf_view){x, STRIDE, SF_F32};
            sf_view out = types & 2 ? (sf_view){half, STRIDE, SF_BF16} : (sf_view){wide, STRIDE, SF_F32};
            sf_view dout = types & 1 ? (sf_view){half_d, STRIDE, SF_BF16} : (sf_view){d, STRIDE, SF_F32};
            for (int back = 0; back < 2; back++) {
                if (back)
                    sf_activate_rows_backward(out, dout, in, SF_GELU, M, N, isas[k]);
                else
                    sf_activate_rows(out, in, SF_GELU, M, N, isas[k]);
                for (size_t i = 0; i < M; i++)
                    for (size_t j = 0; j < N; j++) {
                        size_t at = i * STRIDE + j;
                        double expected = back ? (double)d[at] * slope((double)x[at], SF_GELU)
                                               : exact((double)x[at], SF_GELU);
                        double got = (double)(types & 2 ? widen(half[at]) : wide[at]);
                        check(got, expected, types & 2 ? 0.004 * fabs(expected) + 5e-4 : 3e-6, "rows", isas[k], N);
                    }
            }
        }
}

/* x as a view of either type; what it holds then. */
static sf_view as_view(float *x, sf_bf16 *room, size_t count, size_t stride, int half)
{
    if (!half) return (sf_view){x, stride, SF_F32};
    for (size_t i = 0; i < count; i++) x[i] = widen(room[i] = halve(x[i]));
    return (sf_view){room, stride, SF_BF16};
}

static double element(sf_view v, size_t at)
{
    return v.type == SF_F32 ? (double)((float *)v.values)[at] : (double)widen(((sf_bf16 *)v.values)[at]);
}

/* Gates and turns, of rows longer than a piece, against their definitions. */
static void test_gates_and_turns(void **state)
{
    (void)state;
    enum { M = 2, N = 600, STRIDE = 2 * N + 3, HEADS = 3, D = 10 };
    static float x[M * STRIDE], y[M * STRIDE], d[M * STRIDE], turns[M * D];
    static sf_bf16 half_x[M * STRIDE], half_y[M * STRIDE], half_d[M * STRIDE];
    for (int k = 0; k < isa_count; k++)
        for (int half = 0; half < 2; half++) {
            const double near = half ? 0.01 : 1e-5;
            fill(x, M * STRIDE, 3, 1), fill(y, M * STRIDE, 2, 2), fill(d, M * STRIDE, 2, 3);
            sf_view a = as_view(x, half_x, M * STRIDE, STRIDE, half), b = as_view(y, half_y, M * STRIDE, STRIDE, half),
                    c = as_view(d, half_d, M * STRIDE, STRIDE, half);
            sf_gate_rows_backward(c, a, SF_GELU, M, N, isas[k]);
            sf_multiply_rows(b, a, M, N, isas[k]);
            for (size_t i = 0; i < M; i++)
                for (size_t j = 0; j < N; j++) {
                    const size_t at = i * STRIDE + j;
                    const double x1 = (double)x[at], x2 = (double)x[at + N], out = half ? (double)d[at + N] : 0;
                    if (half) { /* in F32 the gradient was written over */
                        check(element(c, at), out * x2 * slope(x1, SF_GELU), near * fabs(out * x2) + 1e-3, "gate",
                              isas[k], N);
                        check(element(c, at + N), out * exact(x1, SF_GELU), near * fabs(out * x1) + 1e-3, "gate",
                              isas[k], N);
                    } else {
                        check(element(c, at) * exact(x1, SF_GELU), element(c, at + N) * x2 * slope(x1, SF_GELU), 1e-4,
                              "gate", isas[k], N);
                    }
                }
            for (size_t i = 0; half && i < M * STRIDE; i++)
                if (i % STRIDE < N) check(element(b, i), (double)x[i] * (double)y[i], near * 6, "product", isas[k], N);
            fill(turns, M * D, 1, 4), fill(x, M * STRIDE, 3, 5);
            a = as_view(x, half_x, M * STRIDE, STRIDE, half);
            memcpy(y, x, sizeof y);
            sf_turn_rows(a, turns, k % 2, M, HEADS, D, isas[k]);
            for (size_t i = 0; i < M * HEADS * D; i++) {
                const size_t row = i / (HEADS * D), at = row * STRIDE + i % (HEADS * D), n = i % D % (D / 2);
                const double cosine = (double)turns[row * D + n],
                             sine = (k % 2 ? -1 : 1) * (double)turns[row * D + D / 2 + n];
                const double own = (double)y[at], other = (double)y[i % D < D / 2 ? at + D / 2 : at - D / 2];
                check(element(a, at), own * cosine + (i % D < D / 2 ? -1 : 1) * other * sine, near * 6, "turn", isas[k],
                      N);
            }
        }
}

static void test_picked_sums(void **state)
{
    (void)state;
    enum { STRIDE = 40 };
    static float a[STRIDE], b[LONGEST * STRIDE], x[LONGEST + 1], y[LONGEST];
    int32_t at[LONGEST];
    fill(a, STRIDE, 1, 1), fill(b, LONGEST * STRIDE, 1, 2);
    for (int k = 0; k < isa_count; k++)
        for (size_t N = 0; N <= LONGEST; N++) {
            for (size_t i = 0; i < N; i++) at[i] = (int32_t)(32 + i * 7 % STRIDE);
            for (int which = 0; which < 4; which++) {
                fill(x, N, 1, 3);
                memcpy(y, x, N * sizeof *y);
                x[N] = 12345;
                sf_add_at(x, which & 1 ? a : NULL, which & 2 ? b : NULL, STRIDE, at, 32, N, isas[k]);
                assert_true(x[N] == 12345);
                for (size_t i = 0; i < N; i++) {
                    float sum = y[i];
                    if (which & 1) sum += a[at[i] - 32];
                    if (which & 2) sum += b[i * STRIDE + (size_t)(at[i] - 32)];
                    assert_true(x[i] == sum);
                }
            }
        }
}

static void test_softmax(void **state)
{
    (void)state;
    float x[LONGEST], y[LONGEST], d[LONGEST], back[LONGEST];
    sf_bf16 halves[LONGEST + 1];
    for (int k = 0; k < isa_count; k++)
        for (size_t N = 1; N <= LONGEST; N++)
            for (int kind = 0; kind < 3; kind++) {
                const float sizes[] = {3, 80, 2000}, scale = kind == 1 ? 0.18f : 1;
                double expected[LONGEST], sum = 0, top = -DBL_MAX, dot = 0, total = 0;
                fill(x, N, sizes[kind], (uint32_t)N);
                fill(d, N, 1, (uint32_t)N + 3);
                for (size_t i = 0; i < N; i++) top = fmax(top, (double)x[i]);
                for (size_t i = 0; i < N; i++) sum += expected[i] = exp((double)scale * ((double)x[i] - top));
                memcpy(y, x, N * sizeof *x);
                sf_softmax_row(y, scale, N, isas[k]);
                for (size_t i = 0; i < N; i++) {
                    check((double)y[i], expected[i] / sum, 2e-6, "softmax", isas[k], N);
                    dot += (double)y[i] * (double)d[i];
                    total += (double)y[i];
                }
                check(total, 1, 2e-6, "sum of shares", isas[k], N);
                sf_softmax_row_backward(back, d, y, scale, N, isas[k]);
                for (size_t i = 0; i < N; i++)
                    check((double)back[i], (double)scale * (double)y[i] * ((double)d[i] - dot), 1e-6,
                          "slope of softmax", isas[k], N);
                halves[N] = 4711;
                memcpy(y, x, N * sizeof *x);
                check((double)sf_exp_row(halves, y, scale, N, isas[k]), sum, 3e-4 * sum, "sum of exponentials", isas[k],
                      N);
                for (size_t i = 0; i < N; i++)
                    check((double)widen(halves[i]), expected[i], 0.0042 * expected[i] + 1e-26, "exponential", isas[k],
                          N);
                assert_int_equal(halves[N], 4711);
            }
}

static void test_norms(void **state)
{
    (void)state;
    const double epsilon = 1e-5;
    float x[LONGEST], w[LONGEST], b[LONGEST], y[LONGEST], d[LONGEST], dx[LONGEST], dw[LONGEST], db[LONGEST];
    for (int k = 0; k < isa_count; k++)
        for (size_t N = 2; N <= LONGEST; N++) {
            double mean = 0, variance = 0, s = 0, p = 0, normal[LONGEST];
            fill(x, N, 3, (uint32_t)N);
            fill(w, N, 2, (uint32_t)N + 1);
            fill(b, N, 2, (uint32_t)N + 2);
            fill(d, N, 1, (uint32_t)N + 3);
            for (size_t i = 0; i < N; i++) x[i] += 10, mean += (double)x[i] / (double)N;
            for (size_t i = 0; i < N; i++) variance += pow((double)x[i] - mean, 2) / (double)N;
            double rate = 1 / sqrt(variance + epsilon);
            const sf_view row = {x, N, SF_F32}, normed = {y, N, SF_F32};
            sf_norm_rows(normed, normed, row, w, b, (float)epsilon, 1, N, isas[k]);
            for (size_t i = 0; i < N; i++) {
                normal[i] = ((double)x[i] - mean) * rate;
                check((double)y[i], normal[i] * (double)w[i] + (double)b[i], 1e-4, "norm", isas[k], N);
                s += (double)d[i] * (double)w[i] / (double)N;
                p += (double)d[i] * (double)w[i] * normal[i] / (double)N;
            }
            for (size_t i = 0; i < N; i++) dw[i] = 1, db[i] = 2; /* they are added to */
            sf_norm_row_backward(dx, dw, db, d, x, w, (float)epsilon, N, isas[k]);
            for (size_t i = 0; i < N; i++) {
                check((double)dx[i], rate * ((double)d[i] * (double)w[i] - s - normal[i] * p), 1e-3 * rate,
                      "slope of norm", isas[k], N);
                check((double)dw[i], 1 + (double)d[i] * normal[i], 1e-4, "weight's slope", isas[k], N);
                check((double)db[i], 2 + (double)d[i], 1e-6, "bias's slope", isas[k], N);
            }
        }
}

/* A row of several has the bits that it has alone, and in bf16 those of sf_to_bf16. */
static void test_norms_of_rows(void **state)
{
    (void)state;
    enum { ROWS = 7, WIDTH = 100, STRIDE = 104 };
    float x[ROWS * STRIDE], y[ROWS * STRIDE], w[WIDTH], b[WIDTH], alone[WIDTH];
    sf_bf16 kept[ROWS * STRIDE], halves[WIDTH];
    fill(x, ROWS * STRIDE, 3, 1);
    fill(w, WIDTH, 2, 2);
    fill(b, WIDTH, 2, 3);
    for (int k = 0; k < isa_count; k++)
        for (size_t M = 1; M <= ROWS; M++) {
            const sf_view rows = {x, STRIDE, SF_F32}, out = {y, STRIDE, SF_F32}, half = {kept, STRIDE, SF_BF16},
                          one = {alone, WIDTH, SF_F32};
            sf_norm_rows(out, half, rows, w, b, 1e-5f, M, WIDTH, isas[k]);
            for (size_t r = 0; r < M; r++) {
                sf_norm_rows(one, one, sf_view_at(rows, r, 0), w, b, 1e-5f, 1, WIDTH, isas[k]);
                assert_memory_equal(y + r * STRIDE, alone, sizeof alone);
                sf_to_bf16(halves, alone, WIDTH, isas[k]);
                assert_memory_equal(kept + r * STRIDE, halves, sizeof halves);
            }
        }
}

/* Attention in one pass, where there is one, against sums in double precision; with scores far beyond what a power of
 * two can be, too. */
static void test_attention(void **state)
{
    (void)state;
    enum { MOST = 70, WIDE = 64 };
    static float numbers[3 * MOST * WIDE], x[3 * MOST * WIDE];
    static sf_bf16 halves[3 * MOST * WIDE], out[MOST * WIDE];
    const size_t lengths[] = {1, 15, 16, 31, 33, MOST};
    const float sizes[] = {1, 40};
    const sf_isa isa = isas[isa_count - 1];
    if (!sf_attend_can(SF_BF16, isa, WIDE)) skip();
    for (size_t c = 0; c < 2 * 2 * 6; c++) {
        const size_t T = lengths[c % 6], d = c / 6 % 2 ? WIDE : WIDE / 2, H = 3 * d;
        sf_packed keys = {0}, values = {0};
        const sf_view all = {halves, H, SF_BF16};
        fill(numbers, T * H, sizes[c / 12], (uint32_t)c);
        sf_to_bf16(halves, numbers, T * H, isa);
        sf_from_bf16(x, halves, T * H, isa);
        assert_false(sf_packed_shape(&keys, d, T, SF_BF16, isa) || sf_packed_shape(&values, T, d, SF_BF16, isa));
        sf_attend((sf_view){out, d, SF_BF16}, all, sf_view_at(all, 0, d), sf_view_at(all, 0, 2 * d), &keys, &values,
                  0.25f, T, d);
        for (size_t i = 0; i < T; i++) {
            double scores[MOST], top = -HUGE_VAL, sum = 0;
            for (size_t j = 0; j < T; j++) {
                scores[j] = 0;
                for (size_t k = 0; k < d; k++) scores[j] += 0.25 * (double)x[i * H + k] * (double)x[j * H + d + k];
                top = scores[j] > top ? scores[j] : top;
            }
            for (size_t j = 0; j < T; j++) sum += scores[j] = exp(scores[j] - top);
            for (size_t k = 0; k < d; k++) {
                double want = 0;
                float got;
                for (size_t j = 0; j < T; j++) want += scores[j] / sum * (double)x[j * H + 2 * d + k];
                sf_from_bf16(&got, out + i * d + k, 1, isa);
                check((double)got, want, 0.02 * (double)sizes[c / 12], "attention", isa, T);
            }
        }
        sf_packed_free(&keys);
        sf_packed_free(&values);
    }
}

/* Numbers that are none stay so, and infinities do not become numbers. */
static void test_odd_numbers(void **state)
{
    (void)state;
    for (int k = 0; k < isa_count; k++)
        for (int a = SF_GELU; a <= SF_GELU_TANH; a++) {
            float x[3] = {NAN, INFINITY, -FLT_MAX}, y[3];
            sf_activate(y, x, (sf_activation)a, 3, isas[k]);
            assert_true(isnan(y[0]));
            assert_true(isinf(y[1]));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations), cmocka_unit_test(test_views),           cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_norms),       cmocka_unit_test(test_norms_of_rows),   cmocka_unit_test(test_attention),
        cmocka_unit_test(test_odd_numbers), cmocka_unit_test(test_gates_and_turns), cmocka_unit_test(test_picked_sums),
    };
    return cmocka_run_group_tests_name("vector", tests, find_isas, NULL);
}
