/* Element-wise and row-wise functions of the encoder, in single precision.
 *
 * Written on vectors of 16 and compiled once for each instruction set, with every sum in a
 * fixed order. Sets with fused multiplication differ from the others in the last bits. */
#ifndef SF_NN_VECTOR_H
#define SF_NN_VECTOR_H

#include "nn/product.h"

/* out = activation(x), in place is fine. Errors are below 5e-7 * max(1, |x|); `rough`, for
 * results that become bf16, below 1e-4 * max(1, |x|). */
void sf_activate(float *out, const float *x, sf_activation activation, size_t N, sf_isa isa);
void sf_activate_rough(float *out, const float *x, sf_activation activation, size_t N, sf_isa isa);

/* The same for rows of views of any type, rough when the result is bf16: out (M, N) =
 * activation(x (M, N)). */
void sf_activate_rows(sf_view out, sf_view x, sf_activation activation, size_t M, size_t N, sf_isa isa);
/* dinp (M, N) = dout (M, N) * activation'(x (M, N)). */
void sf_activate_rows_backward(sf_view dinp, sf_view dout, sf_view x, sf_activation activation, size_t M, size_t N,
                               sf_isa isa);

/* x (M, N) *= y (M, N), both of one type. */
void sf_multiply_rows(sf_view x, sf_view y, size_t M, size_t N, sf_isa isa);
/* The gradient of activation(x1) * x2 for x (M, 2 N) = [x1, x2], all of one type: d (M, 2 N) = [d1, d2], and comes with
 * that of the product in the place of d2. */
void sf_gate_rows_backward(sf_view d, sf_view x, sf_activation activation, size_t M, size_t N, sf_isa isa);

/* Turns the heads of rows, each of d numbers, by the angles of their positions: (x, y) = (x_k, x_{k+d/2}) becomes
 * (x cos - y sin, y cos + x sin); `back`, the other way. turns (M, d): d/2 cosines and then d/2 sines of each row. */
void sf_turn_rows(sf_view x, const float *turns, int back, size_t M, size_t heads, size_t d, sf_isa isa);

/* x[j] += a[at[j] - first] + b[j * stride + at[j] - first] for j < N; a or b may be NULL, which adds nothing. */
void sf_add_at(float *x, const float *a, const float *b, size_t stride, const int32_t *at, int32_t first, size_t N,
               sf_isa isa);

/* x = softmax(scale * x) of a row of N. */
void sf_softmax_row(float *x, float scale, size_t N, sf_isa isa);
/* out = e^(scale * (x - the largest x)) of a row, rounded to bf16; returns the sum. The row
 * is softmax(scale * x) but for a division by it. Spoils x. */
float sf_exp_row(sf_bf16 *out, float *x, float scale, size_t N, sf_isa isa);
/* dx = scale * p * (dp - sum(p * dp)): the gradient before softmax(scale * x) = p. In place is fine. */
void sf_softmax_row_backward(float *dx, const float *dp, const float *p, float scale, size_t N, sf_isa isa);

/* Layer norm of rows: out (M, N) = (x (M, N) - mean) / sqrt(variance + epsilon) * weight + bias, both F32, in place is
 * fine; every row is a function of itself. `kept`, when it lies elsewhere, gets them too, for products on this set. */
void sf_norm_rows(sf_view out, sf_view kept, sf_view x, const float *weight, const float *bias, float epsilon, size_t M,
                  size_t N, sf_isa isa);
/* dx =; dweight and dbias are added to. dx may be dout. */
void sf_norm_row_backward(float *dx, float *dweight, float *dbias, const float *dout, const float *x,
                          const float *weight, float epsilon, size_t N, sf_isa isa);

/* out += x; x *= factor */
void sf_add(float *out, const float *x, size_t N, sf_isa isa);
void sf_scale(float *x, float factor, size_t N, sf_isa isa);

#endif
