/* The f32 product of one block, for one width of instructions: included by nn/product_f32.c, no guard, with
 *
 *   NAME(x)        the name of a function x of this kernel; TARGET, the attribute of its functions
 *   VECTOR, LANES  a vector of floats at any address, and how many it holds
 *   ROWS           rows whose sums are in registers at a time: two vectors each
 *   MADD(a, b, c)  a number times a vector plus a vector: fused, or each of the two rounded
 *
 * Every sum adds its products one after the other, in the order of the inner dimension. So width and ROWS
 * change no bit, and MADD does. */

TARGET static inline __attribute__((always_inline)) void NAME(tile)(float *c, const float *a, const float *b,
                                                                    size_t steps, int add)
{
    VECTOR sum[ROWS][2];
    for (size_t r = 0; r < ROWS; r++)
        for (size_t n = 0; n < 2; n++) sum[r][n] = add ? *(const VECTOR *)(c + r * SF_BLOCK + n * LANES) : (VECTOR){0};
    for (size_t s = 0; s < steps; s++, a += SF_STEP_SIZE, b += SF_STEP_SIZE)
        for (size_t k = 0; k < SF_STEP; k += 2) /* by two, unrolled: fewer moves between registers */
            for (size_t i = k; i < k + 2; i++) {
                const VECTOR x = *(const VECTOR *)(b + i * SF_BLOCK), y = *(const VECTOR *)(b + i * SF_BLOCK + LANES);
                for (size_t r = 0; r < ROWS; r++) {
                    sum[r][0] = MADD(a[r * SF_STEP + i], x, sum[r][0]);
                    sum[r][1] = MADD(a[r * SF_STEP + i], y, sum[r][1]);
                }
            }
    for (size_t r = 0; r < ROWS; r++)
        for (size_t n = 0; n < 2; n++) *(VECTOR *)(c + r * SF_BLOCK + n * LANES) = sum[r][n];
}

TARGET static void NAME(multiply)(float *c, const void *a, const void *b, size_t steps, size_t rows, int add)
{
    for (size_t n = 0; n < SF_BLOCK; n += 2 * LANES)
        for (size_t r = 0; r < rows; r += ROWS)
            NAME(tile)(c + r * SF_BLOCK + n, (const float *)a + r * SF_STEP, (const float *)b + n, steps, add);
}

#undef NAME
#undef TARGET
#undef VECTOR
#undef LANES
#undef ROWS
#undef MADD
