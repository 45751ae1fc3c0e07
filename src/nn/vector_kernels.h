/* The functions of nn/vector.h for one instruction set: included as nn/simd.h says; no guard. */

#include "nn/activation_kernels.h"

/* The lanes added up, always in the same order: halves, then halves of those. */
INLINE float NAME(total)(const v16 *x)
{
#if AVX512
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256((__m512)*x), _mm512_extractf32x8_ps((__m512)*x, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
    float a[16];
    NAME(store)(a, x);
    for (int width = 8; width; width /= 2)
        for (int i = 0; i < width; i++) a[i] += a[i + width];
    return a[0];
#endif
}

INLINE void NAME(activate_as)(float *out, const float *x, sf_activation activation, int rough, size_t N)
{
    size_t i = 0;
    v16 v;
    for (; i + 16 <= N; i += 16) {
        NAME(load)(&v, x + i);
        NAME(activate16)(&v, activation, rough);
        NAME(store)(out + i, &v);
    }
    if (i < N) {
        float rest[16] = {0};
        memcpy(rest, x + i, (N - i) * sizeof *x);
        NAME(load)(&v, rest);
        NAME(activate16)(&v, activation, rough);
        NAME(store)(rest, &v);
        memcpy(out + i, rest, (N - i) * sizeof *out);
    }
}

TARGET static void NAME(activate)(float *out, const float *x, sf_activation activation, int rough, size_t N)
{ /* so that the compiler makes a loop of each */
    if (activation == SF_GELU && rough)
        NAME(activate_as)(out, x, SF_GELU, 1, N);
    else if (activation == SF_GELU)
        NAME(activate_as)(out, x, SF_GELU, 0, N);
    else if (activation == SF_GELU_TANH)
        NAME(activate_as)(out, x, SF_GELU_TANH, 0, N);
    else if (activation == SF_RELU)
        NAME(activate_as)(out, x, SF_RELU, 0, N);
    else if (activation == SF_SILU)
        NAME(activate_as)(out, x, SF_SILU, 0, N);
    else if (out != x)
        memcpy(out, x, N * sizeof *out);
}

INLINE void NAME(slope_as)(float *dinp, const float *dout, const float *x, sf_activation activation, int rough,
                           size_t N)
{
    size_t i = 0;
    v16 v, d;
    for (; i + 16 <= N; i += 16) {
        NAME(load)(&v, x + i);
        NAME(load)(&d, dout + i);
        NAME(slope16)(&d, &v, activation, rough);
        NAME(store)(dinp + i, &d);
    }
    if (i < N) {
        float rest[16] = {0}, slope[16] = {0};
        memcpy(rest, x + i, (N - i) * sizeof *x);
        memcpy(slope, dout + i, (N - i) * sizeof *dout);
        NAME(load)(&v, rest);
        NAME(load)(&d, slope);
        NAME(slope16)(&d, &v, activation, rough);
        NAME(store)(slope, &d);
        memcpy(dinp + i, slope, (N - i) * sizeof *dinp);
    }
}

TARGET static void NAME(activate_backward)(float *dinp, const float *dout, const float *x, sf_activation activation,
                                           int rough, size_t N)
{
    if (activation == SF_GELU && rough)
        NAME(slope_as)(dinp, dout, x, SF_GELU, 1, N);
    else if (activation == SF_GELU)
        NAME(slope_as)(dinp, dout, x, SF_GELU, 0, N);
    else if (activation == SF_GELU_TANH)
        NAME(slope_as)(dinp, dout, x, SF_GELU_TANH, 0, N);
    else if (activation == SF_RELU)
        NAME(slope_as)(dinp, dout, x, SF_RELU, 0, N);
    else if (activation == SF_SILU)
        NAME(slope_as)(dinp, dout, x, SF_SILU, 0, N);
    else if (dinp != dout)
        memcpy(dinp, dout, N * sizeof *dinp);
}

/* The largest of a row. */
INLINE float NAME(largest)(const float *x, size_t N)
{
#if AVX512
    __m512 a = _mm512_set1_ps(-FLT_MAX), b = a; /* two, since a maximum takes its time */
    size_t i = 0;
    for (; i + 32 <= N; i += 32) {
        a = _mm512_max_ps(a, _mm512_loadu_ps(x + i));
        b = _mm512_max_ps(b, _mm512_loadu_ps(x + i + 16));
    }
    for (; i < N; i += 16) {
        const __mmask16 rest = (__mmask16)(N - i < 16 ? (1u << (N - i)) - 1 : 0xffffu);
        a = _mm512_mask_max_ps(a, rest, a, _mm512_maskz_loadu_ps(rest, x + i));
    }
    return _mm512_reduce_max_ps(_mm512_max_ps(a, b));
#else
    size_t i = 0;
    float lanes[16], top = -FLT_MAX;
    for (size_t l = 0; l < 16; l++) lanes[l] = -FLT_MAX;
    for (; i + 16 <= N; i += 16)
        for (size_t l = 0; l < 16; l++) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
    for (size_t l = 0; l < 16; l++) top = lanes[l] > top ? lanes[l] : top;
    for (; i < N; i++) top = x[i] > top ? x[i] : top;
    return top;
#endif
}

/* x = e^(scale * (x - top)); returns the sum. */
INLINE float NAME(exponentials)(float *x, float top, float scale, size_t N)
{
    size_t i;
    v16 v, sum = {0};
    float lanes[16];
    for (i = 0; i + 16 <= N; i += 16) {
        NAME(load)(&v, x + i);
        v = (v - top) * scale;
        NAME(exp16)(&v);
        sum += v;
        NAME(store)(x + i, &v);
    }
    if (i < N) {
        memset(lanes, 0, sizeof lanes);
        memcpy(lanes, x + i, (N - i) * sizeof *x);
        NAME(load)(&v, lanes);
        v = (v - top) * scale;
        NAME(exp16)(&v);
        NAME(store)(lanes, &v);
        memset(lanes + (N - i), 0, (16 - (N - i)) * sizeof *lanes);
        memcpy(x + i, lanes, (N - i) * sizeof *x);
        NAME(load)(&v, lanes);
        sum += v;
    }
    return NAME(total)(&sum);
}

TARGET static void NAME(scale)(float *x, float factor, size_t N)
{
    for (size_t i = 0; i < N; i++) x[i] *= factor;
}

TARGET static void NAME(softmax_row)(float *x, float scale, size_t N)
{
    NAME(scale)(x, 1.0f / NAME(exponentials)(x, NAME(largest)(x, N), scale, N), N);
}

TARGET static float NAME(exp_row)(sf_bf16 *out, float *x, float scale, size_t N, sf_isa isa)
{
    float sum = NAME(exponentials)(x, NAME(largest)(x, N), scale, N);
    sf_to_bf16(out, x, N, isa);
    return sum;
}

TARGET static void NAME(softmax_row_backward)(float *dx, const float *dp, const float *p, float scale, size_t N)
{
    size_t i = 0;
    v16 a, b, sum = {0};
    for (; i + 16 <= N; i += 16) {
        NAME(load)(&a, dp + i);
        NAME(load)(&b, p + i);
        sum += a * b;
    }
    float dot = NAME(total)(&sum);
    for (; i < N; i++) dot += dp[i] * p[i];
    for (i = 0; i < N; i++) dx[i] = scale * p[i] * (dp[i] - dot);
}

/* Mean and 1/sqrt(variance + epsilon) of up to four rows, side by side: so the sums of one do not wait for
 * themselves. */
INLINE void NAME(moments)(float *mean, float *rate, const float *x, size_t stride, float epsilon, size_t M, size_t N)
{
    size_t i;
    v16 v, sum[NORM_ROWS] = {{0}};
    for (i = 0; i + 16 <= N; i += 16)
        for (size_t r = 0; r < M; r++) {
            NAME(load)(&v, x + r * stride + i);
            sum[r] += v;
        }
    for (size_t r = 0; r < M; r++) {
        float m = NAME(total)(&sum[r]);
        for (size_t k = i; k < N; k++) m += x[r * stride + k];
        mean[r] = m / (float)N;
        sum[r] = (v16){0};
    }
    for (i = 0; i + 16 <= N; i += 16)
        for (size_t r = 0; r < M; r++) {
            NAME(load)(&v, x + r * stride + i);
            v -= mean[r];
            sum[r] += v * v;
        }
    for (size_t r = 0; r < M; r++) {
        float variance = NAME(total)(&sum[r]);
        for (size_t k = i; k < N; k++) variance += (x[r * stride + k] - mean[r]) * (x[r * stride + k] - mean[r]);
        rate[r] = 1.0f / sqrtf(variance / (float)N + epsilon);
    }
}

TARGET static void NAME(norm_rows)(float *out, size_t out_stride, const float *x, size_t stride, const float *weight,
                                   const float *bias, float epsilon, size_t M, size_t N)
{
    float mean[NORM_ROWS], rate[NORM_ROWS];
    size_t i;
    v16 v, w, b;
    if (M == NORM_ROWS)
        NAME(moments)(mean, rate, x, stride, epsilon, NORM_ROWS, N);
    else
        for (size_t r = 0; r < M; r++) NAME(moments)(mean + r, rate + r, x + r * stride, stride, epsilon, 1, N);
    for (size_t r = 0; r < M; r++) {
        for (i = 0; i + 16 <= N; i += 16) {
            NAME(load)(&v, x + r * stride + i);
            NAME(load)(&w, weight + i);
            NAME(load)(&b, bias + i);
            v = (v - mean[r]) * rate[r] * w + b;
            NAME(store)(out + r * out_stride + i, &v);
        }
        for (; i < N; i++) out[r * out_stride + i] = (x[r * stride + i] - mean[r]) * rate[r] * weight[i] + bias[i];
    }
}

TARGET static void NAME(norm_row_backward)(float *dx, float *dweight, float *dbias, const float *dout, const float *x,
                                           const float *weight, float epsilon, size_t N)
{
    float mean, rate;
    size_t i = 0;
    v16 d, w, v, sum = {0}, product = {0};
    NAME(moments)(&mean, &rate, x, N, epsilon, 1, N);
    for (; i + 16 <= N; i += 16) {
        NAME(load)(&d, dout + i);
        NAME(load)(&w, weight + i);
        NAME(load)(&v, x + i);
        sum += d * w;
        product += d * w * ((v - mean) * rate);
    }
    float s = NAME(total)(&sum), p = NAME(total)(&product);
    for (; i < N; i++) {
        s += dout[i] * weight[i];
        p += dout[i] * weight[i] * ((x[i] - mean) * rate);
    }
    s /= (float)N;
    p /= (float)N;
    for (i = 0; i < N; i++) {
        float normal = (x[i] - mean) * rate, slope = dout[i];
        dweight[i] += slope * normal;
        dbias[i] += slope;
        dx[i] = rate * (slope * weight[i] - s - normal * p);
    }
}

TARGET static void NAME(add)(float *out, const float *x, size_t N)
{
    for (size_t i = 0; i < N; i++) out[i] += x[i];
}

TARGET static void NAME(multiply)(float *x, const float *y, size_t N)
{
    for (size_t i = 0; i < N; i++) x[i] *= y[i];
}

TARGET static void NAME(turn)(float *restrict x, float *restrict y, const float *restrict cosines,
                              const float *restrict sines, float sign, size_t N)
{
    for (size_t i = 0; i < N; i++) {
        const float a = x[i], b = y[i], c = cosines[i], s = sign * sines[i];
        x[i] = a * c - b * s;
        y[i] = b * c + a * s;
    }
}

/* x[i] += a[i * stride + at[i] - first] */
TARGET static void NAME(add_at)(float *x, const float *a, size_t stride, const int32_t *at, int32_t first, size_t N)
{
    size_t i = 0;
#if AVX512
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                  steps = _mm512_sub_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)stride)),
                                           _mm512_set1_epi32(first));
    for (; i + 16 <= N; i += 16) {
        const __m512i from = _mm512_add_epi32(_mm512_loadu_si512(at + i), steps);
        const __m512 found = _mm512_i32gather_ps(from, a + i * stride, sizeof(float));
        _mm512_storeu_ps(x + i, _mm512_add_ps(_mm512_loadu_ps(x + i), found));
    }
#endif
    for (; i < N; i++) x[i] += a[i * stride + (size_t)(at[i] - first)];
}
