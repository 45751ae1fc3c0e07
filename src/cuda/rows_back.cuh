/* The way back through norms, sums over rows, and the update: what training does besides products and attention.
 *
 * Sums over rows are made in two steps: each block sums rows of its own, in order, and then the blocks' sums are
 * added in order. How many blocks there are depends on nothing. */
#ifndef SF_CUDA_ROWS_BACK_CUH
#define SF_CUDA_ROWS_BACK_CUH

#include "cuda/rows.cuh"

namespace sf
{

enum { SUM_BLOCKS = 256 }; /* of all sums over rows */

/* dsum from the gradient d of a norm's output and the sum that was normed, plus `rest` where it is not NULL; partial
 * (SUM_BLOCKS, 3, hidden): the block's sums of the gradients of weight and bias, and of dsum without the rest. All
 * warps of a block take turns with its rows. */
template <int N>
__global__ void __launch_bounds__(32 * ROWS_A_BLOCK)
    norm_back(bf16 *dsum, float *partial, const bf16 *d, const bf16 *sum, const bf16 *rest, const float *weight,
              int hidden, float epsilon, int rows)
{
    extern __shared__ float memory[]; /* (ROWS_A_BLOCK, hidden) */
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, each = (rows + SUM_BLOCKS - 1) / SUM_BLOCKS;
    const int end = min(rows, (int)(blockIdx.x + 1) * each);
    float sums[3][N][4] = {};
    for (int row = (int)blockIdx.x * each + warp; row < end; row += ROWS_A_BLOCK) {
        float x[N][4] = {}, g[N][4] = {}, total = 0, square = 0, dot = 0, plain = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int at = 4 * (lane + 32 * i);
            if (at >= hidden) continue;
            const uint2 a = *(const uint2 *)(sum + (size_t)row * hidden + at),
                        b = *(const uint2 *)(d + (size_t)row * hidden + at);
            x[i][0] = low_of(a.x), x[i][1] = high_of(a.x), x[i][2] = low_of(a.y), x[i][3] = high_of(a.y);
            g[i][0] = low_of(b.x), g[i][1] = high_of(b.x), g[i][2] = low_of(b.y), g[i][3] = high_of(b.y);
            total += (x[i][0] + x[i][1]) + (x[i][2] + x[i][3]);
        }
        const float mean = warp_sum(total) / (float)hidden;
#pragma unroll
        for (int i = 0; i < N; i++)
            if (4 * (lane + 32 * i) < hidden)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    x[i][j] -= mean;
                    square = fmaf(x[i][j], x[i][j], square);
                }
        const float scale = rsqrtf(warp_sum(square) / (float)hidden + epsilon);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int at = 4 * (lane + 32 * i);
            if (at >= hidden) continue;
            const float4 w4 = *(const float4 *)(weight + at);
            const float w[4] = {w4.x, w4.y, w4.z, w4.w};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                x[i][j] *= scale;
                sums[0][i][j] = fmaf(g[i][j], x[i][j], sums[0][i][j]);
                sums[1][i][j] += g[i][j];
                g[i][j] *= w[j];
                dot = fmaf(g[i][j], x[i][j], dot);
                plain += g[i][j];
            }
        }
        dot = warp_sum(dot) / (float)hidden;
        plain = warp_sum(plain) / (float)hidden;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int at = 4 * (lane + 32 * i);
            if (at >= hidden) continue;
            float out[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                out[j] = scale * (g[i][j] - plain - x[i][j] * dot);
                sums[2][i][j] += out[j];
            }
            if (rest) {
                const uint2 c = *(const uint2 *)(rest + (size_t)row * hidden + at);
                out[0] += low_of(c.x), out[1] += high_of(c.x), out[2] += low_of(c.y), out[3] += high_of(c.y);
            }
            *(uint2 *)(dsum + (size_t)row * hidden + at) = make_uint2(pack(out[0], out[1]), pack(out[2], out[3]));
        }
    }
#pragma unroll
    for (int k = 0; k < 3; k++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (4 * (lane + 32 * i) + j < hidden) memory[warp * hidden + 4 * (lane + 32 * i) + j] = sums[k][i][j];
        __syncthreads();
        for (int c = threadIdx.x; c < hidden; c += 32 * ROWS_A_BLOCK) {
            float all = 0;
            for (int w = 0; w < ROWS_A_BLOCK; w++) all += memory[w * hidden + c];
            partial[((size_t)blockIdx.x * 3 + k) * hidden + c] = all;
        }
    }
}

/* Starts it. More shared memory than 48 KB, for rows of more than 1,536 numbers, must be asked for. */
template <int N>
inline void run_norm_back(bf16 *dsum, float *partial, const bf16 *d, const bf16 *sum, const bf16 *rest,
                          const float *weight, int hidden, float epsilon, int rows, cudaStream_t stream)
{
    const int bytes = ROWS_A_BLOCK * hidden * (int)sizeof(float);
    if (bytes > 48 << 10) cudaFuncSetAttribute(norm_back<N>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    norm_back<N>
        <<<SUM_BLOCKS, 32 * ROWS_A_BLOCK, bytes, stream>>>(dsum, partial, d, sum, rest, weight, hidden, epsilon, rows);
}

/* partial (SUM_BLOCKS, columns): sums over the rows of a matrix. */
static __global__ void __launch_bounds__(256) sum_rows(float *partial, const bf16 *x, int columns, int rows)
{
    const int each = (rows + SUM_BLOCKS - 1) / SUM_BLOCKS, end = min(rows, (int)(blockIdx.y + 1) * each);
    const int c = 2 * (blockIdx.x * 256 + threadIdx.x);
    if (c >= columns) return;
    float low = 0, high = 0;
    for (int row = (int)blockIdx.y * each; row < end; row++) {
        const uint32_t pair = *(const uint32_t *)(x + (size_t)row * columns + c);
        low += low_of(pair), high += high_of(pair);
    }
    *(float2 *)(partial + (size_t)blockIdx.y * columns + c) = make_float2(low, high);
}

/* Up to three vectors of `columns` sums each from partial (SUM_BLOCKS, vectors, columns); `add`: to what they hold. */
static __global__ void __launch_bounds__(256)
    add_partial(float *a, float *b, float *c, const float *partial, int vectors, int columns, int add)
{
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= columns) return;
    float *const out = blockIdx.y == 0 ? a : blockIdx.y == 1 ? b : c;
    float sum = 0;
    for (int i = 0; i < SUM_BLOCKS; i++) sum += partial[((size_t)i * vectors + blockIdx.y) * columns + at];
    if (out) out[at] = add ? out[at] + sum : sum;
}

/* The gradient of rows of an embedding: entry e is row key[e] of `out`, and the sum of rows list[start[e]] ..
 * list[start[e+1]-1] of d. */
static __global__ void __launch_bounds__(128) gather_rows(float *out, const uint32_t *keys, const uint32_t *starts,
                                                          const uint32_t *list, const bf16 *d, int hidden)
{
    const uint32_t e = blockIdx.x;
    for (int c = threadIdx.x; c < hidden; c += 128) {
        float sum = 0;
        for (uint32_t i = starts[e]; i < starts[e + 1]; i++) sum += __bfloat162float(d[(size_t)list[i] * hidden + c]);
        out[(size_t)keys[e] * hidden + c] = sum;
    }
}

/* out, in floats. */
static __global__ void __launch_bounds__(256) widen(float *out, const bf16 *in, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i < count) out[i] = __bfloat162float(in[i]);
}

/* ------------------------------------------------------------------ the update */

/* squares (gridDim): of a gradient's numbers, each block its own share in a fixed order. */
static __global__ void __launch_bounds__(256) sum_squares(double *squares, const float *x, size_t count)
{
    __shared__ double memory[256];
    const size_t each = (count + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * each, end = min(count, begin + each);
    double sum = 0;
    for (size_t i = begin + threadIdx.x; i < end; i += 256) sum += (double)x[i] * (double)x[i];
    memory[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half; half /= 2) {
        if ((int)threadIdx.x < half) memory[threadIdx.x] += memory[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) squares[blockIdx.x] = memory[0];
}

/* *scale = what the gradient is multiplied by so that it is not longer than `clip`. */
static __global__ void clip_scale(float *scale, const double *squares, int count, double clip)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += squares[i];
    *scale = clip > 0 && sqrt(sum) > clip ? (float)(clip / sqrt(sum)) : 1.0f;
}

struct adam {
    float beta1, beta2, correct1, correct2, epsilon, rate, decay;
};

/* AdamW; decays (count): 1 for parameters that decay; NULL: all do. Rounded copies of the parameters are made too,
 * unless `rounded` is NULL. */
static __global__ void __launch_bounds__(256)
    update(float *parameters, bf16 *rounded, float *means, float *variances, const float *gradient, const float *scale,
           const uint8_t *decays, adam a, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i >= count) return;
    const float g = gradient[i] * *scale, mean = a.beta1 * means[i] + (1 - a.beta1) * g,
                variance = a.beta2 * variances[i] + (1 - a.beta2) * g * g;
    const float step = (mean / a.correct1) / (sqrtf(variance / a.correct2) + a.epsilon);
    const float p = parameters[i] - (a.rate * step + (!decays || decays[i] ? a.decay * parameters[i] : 0));
    means[i] = mean;
    variances[i] = variance;
    parameters[i] = p;
    if (rounded) rounded[i] = __float2bfloat16_rn(p);
}

} // namespace sf
#endif
