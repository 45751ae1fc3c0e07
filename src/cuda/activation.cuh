/* Activations: of numbers, and of an inner layer where no product has them: that of SiLU and of gated layers. */
#ifndef SF_CUDA_ACTIVATION_CUH
#define SF_CUDA_ACTIVATION_CUH

#include "cuda/numbers.cuh"
#include "nn/encoder.h"

namespace sf
{

/* 1 - erf(z) for z >= 0, to 1.5e-7 (Abramowitz and Stegun 7.1.26), in a fraction of erff's instructions: what it makes
 * is rounded to bf16. */
__device__ inline float erf_rest(float z)
{
    const float t = reciprocal_fast(fmaf(0.3275911f, z, 1));
    const float p = fmaf(fmaf(fmaf(fmaf(1.061405429f, t, -1.453152027f), t, 1.421413741f), t, -0.284496736f), t,
                         0.254829592f);
    return p * t * exp2_fast(-1.44269504f * z * z);
}

/* x * Phi(x), Phi(x) being a half of what is left for x < 0, and 1 without that half for x > 0. */
__device__ inline float gelu(float x) { return fmaf(-fabsf(0.5f * x), erf_rest(fabsf(0.70710678f * x)), fmaxf(x, 0)); }

__device__ inline float activated(float x, sf_encoder_activation kind)
{
    switch (kind) {
    case SF_ENCODER_TANH: return tanhf(x);
    case SF_ENCODER_RELU: return fmaxf(x, 0);
    case SF_ENCODER_GELU: return gelu(x);
    case SF_ENCODER_GELU_TANH: return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    default: return x / (1 + __expf(-x));
    }
}

/* The derivative at x. */
__device__ inline float activation_slope(float x, sf_encoder_activation kind)
{
    switch (kind) {
    case SF_ENCODER_TANH: return 1 - tanhf(x) * tanhf(x);
    case SF_ENCODER_RELU: return x > 0 ? 1.0f : 0.0f;
    case SF_ENCODER_GELU: {
        const float rest = 0.5f * erf_rest(fabsf(0.70710678f * x));
        return (x < 0 ? rest : 1 - rest) + 0.39894228f * x * __expf(-0.5f * x * x);
    }
    case SF_ENCODER_GELU_TANH: {
        const float t = tanhf(0.79788456f * (x + 0.044715f * x * x * x));
        return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456f * (1 + 3 * 0.044715f * x * x);
    }
    default: {
        const float s = 1 / (1 + __expf(-x));
        return s * (1 + x * (1 - s));
    }
    }
}

__device__ inline void unpack8(float *out, uint4 in)
{
    const uint32_t pairs[4] = {in.x, in.y, in.z, in.w};
#pragma unroll
    for (int i = 0; i < 4; i++) out[2 * i] = low_of(pairs[i]), out[2 * i + 1] = high_of(pairs[i]);
}

__device__ inline uint4 pack8(const float *x)
{
    return make_uint4(pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7]));
}

/* out (rows, inner) from raw (rows, inner), or when `gated` from raw (rows, 2 * inner): activation(first half) * second
 * half. Eight numbers a thread; inner is a multiple of 8. */
template <sf_encoder_activation kind>
__global__ void __launch_bounds__(256) activate(bf16 *out, const bf16 *raw, int gated, int inner, uint32_t eights)
{
    const uint32_t i = blockIdx.x * 256 + threadIdx.x, each = (uint32_t)inner / 8;
    if (i >= eights) return;
    const size_t row = i / each, at = i % each * 8;
    const bf16 *from = raw + row * inner * (gated ? 2 : 1) + at;
    float x[8], gate[8];
    unpack8(x, *(const uint4 *)from);
    if (gated) unpack8(gate, *(const uint4 *)(from + inner));
#pragma unroll
    for (int k = 0; k < 8; k++) x[k] = activated(x[k], kind) * (gated ? gate[k] : 1);
    *(uint4 *)(out + row * inner + at) = pack8(x);
}

/* draw, of the shape of raw, from d (rows, inner). */
template <sf_encoder_activation kind>
__global__ void __launch_bounds__(256)
    activate_back(bf16 *draw, const bf16 *d, const bf16 *raw, int gated, int inner, uint32_t eights)
{
    const uint32_t i = blockIdx.x * 256 + threadIdx.x, each = (uint32_t)inner / 8;
    if (i >= eights) return;
    const size_t row = i / each, at = i % each * 8, wide = row * inner * (gated ? 2 : 1) + at;
    float x[8], gate[8], g[8];
    unpack8(x, *(const uint4 *)(raw + wide));
    unpack8(g, *(const uint4 *)(d + row * inner + at));
    if (gated) {
        unpack8(gate, *(const uint4 *)(raw + wide + inner));
        float dgate[8];
#pragma unroll
        for (int k = 0; k < 8; k++) dgate[k] = g[k] * activated(x[k], kind), g[k] *= gate[k];
        *(uint4 *)(draw + wide + inner) = pack8(dgate);
    }
#pragma unroll
    for (int k = 0; k < 8; k++) g[k] *= activation_slope(x[k], kind);
    *(uint4 *)(draw + wide) = pack8(g);
}

/* Start them, for `rows` rows: fewer than 2^35 numbers, which is more than memory has room for. */
#define SF_FOR_ACTIVATION(kind, name, ...) \
    do { \
        const uint32_t eights = (uint32_t)(rows * inner / 8), blocks = (eights + 255) / 256; \
        switch (kind) { \
        case SF_ENCODER_TANH: name<SF_ENCODER_TANH><<<blocks, 256, 0, stream>>>(__VA_ARGS__, eights); break; \
        case SF_ENCODER_RELU: name<SF_ENCODER_RELU><<<blocks, 256, 0, stream>>>(__VA_ARGS__, eights); break; \
        case SF_ENCODER_GELU: name<SF_ENCODER_GELU><<<blocks, 256, 0, stream>>>(__VA_ARGS__, eights); break; \
        case SF_ENCODER_GELU_TANH: name<SF_ENCODER_GELU_TANH><<<blocks, 256, 0, stream>>>(__VA_ARGS__, eights); break; \
        case SF_ENCODER_SILU: name<SF_ENCODER_SILU><<<blocks, 256, 0, stream>>>(__VA_ARGS__, eights); break; \
        } \
    } while (0)

inline void run_activate(bf16 *out, const bf16 *raw, sf_encoder_activation kind, int gated, size_t inner, size_t rows,
                         cudaStream_t stream)
{
    SF_FOR_ACTIVATION(kind, activate, out, raw, gated, (int)inner);
}

inline void run_activate_back(bf16 *draw, const bf16 *d, const bf16 *raw, sf_encoder_activation kind, int gated,
                              size_t inner, size_t rows, cudaStream_t stream)
{
    SF_FOR_ACTIVATION(kind, activate_back, draw, d, raw, gated, (int)inner);
}

} // namespace sf
#endif
