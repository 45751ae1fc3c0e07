/* Rows times a panel of columns, for one width of instructions: included by nn/gemm.c, no guard, with
 *
 *   NAME(x)        the name of a function x of this kernel; TARGET, the attribute of its functions
 *   VECTOR, LANES  a vector of floats at any address, and how many it holds
 *   ROWS           rows whose sums are in registers at a time: two vectors each
 *   MADD(a, b, c)  a number times a vector plus a vector: fused, or each of the two rounded
 *
 * Every sum adds its products one after the other, in the order of the inner dimension, to 0 or to what out holds.
 * So how the matrices are cut into pieces changes no bit, and MADD does. */

/* `rows` rows, at most ROWS, by `vectors` vectors, at most two: both constants, so that the sums are in registers. */
TARGET static inline __attribute__((always_inline)) void NAME(tile)(float *out, size_t stride, left_side a,
                                                                    const float *b, size_t K, int add,
                                                                    const size_t rows, const size_t vectors)
{
    VECTOR sum[ROWS][2];
    for (size_t r = 0; r < rows; r++)
        for (size_t n = 0; n < vectors; n++)
            sum[r][n] = add ? *(const VECTOR *)(out + r * stride + n * LANES) : (VECTOR){0};
    for (size_t k = 0; k < K; k++, a.at += a.step, b += PANEL) {
        VECTOR x[2] = {0};
        for (size_t n = 0; n < vectors; n++) x[n] = *(const VECTOR *)(b + n * LANES);
        for (size_t r = 0; r < rows; r++)
            for (size_t n = 0; n < vectors; n++) sum[r][n] = MADD(a.at[r * a.row], x[n], sum[r][n]);
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t n = 0; n < vectors; n++) *(VECTOR *)(out + r * stride + n * LANES) = sum[r][n];
}

TARGET static inline __attribute__((always_inline)) void NAME(strip)(float *out, size_t stride, left_side a,
                                                                     const float *b, size_t M, size_t K, int add,
                                                                     const size_t vectors)
{
    size_t m = 0;
    for (; m + ROWS <= M; m += ROWS) NAME(tile)(out + m * stride, stride, rows_from(a, m), b, K, add, ROWS, vectors);
    for (; m + 4 <= M; m += 4) NAME(tile)(out + m * stride, stride, rows_from(a, m), b, K, add, 4, vectors);
    for (; m < M; m++) NAME(tile)(out + m * stride, stride, rows_from(a, m), b, K, add, 1, vectors);
}

/* out (M, N) = a (M, K) b (K, N), or out += a b; b is a panel, N at most PANEL and rounded up to LANES. */
TARGET static void NAME(multiply)(float *out, size_t stride, left_side a, const float *b, size_t M, size_t N, size_t K,
                                  int add)
{
    size_t n = 0;
    for (; n + LANES < N; n += 2 * LANES) NAME(strip)(out + n, stride, a, b + n, M, K, add, 2);
    if (n < N) NAME(strip)(out + n, stride, a, b + n, M, K, add, 1);
}

#undef NAME
#undef TARGET
#undef VECTOR
#undef LANES
#undef ROWS
#undef MADD
