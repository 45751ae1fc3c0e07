/* What an encoder does row by row: embeddings and layer norms, a row a warp. */
#ifndef SF_CUDA_ROWS_CUH
#define SF_CUDA_ROWS_CUH

#include "cuda/numbers.cuh"

namespace sf
{

enum { ROWS_A_BLOCK = 8 };

/* The norm of a row of 4 * 32 * N numbers at most, held by a warp: lane l has numbers 4 * (l + 32 i) .. + 3. bias NULL:
 * none. */
template <int N>
__device__ inline void norm_row(bf16 *out, float (*x)[4], const float *weight, const float *bias, int hidden,
                                float epsilon)
{
    const int lane = threadIdx.x % 32;
    float sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < N; i++) sum += (x[i][0] + x[i][1]) + (x[i][2] + x[i][3]);
    const float mean = warp_sum(sum) / (float)hidden;
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
        const float4 w = *(const float4 *)(weight + at),
                     b = bias ? *(const float4 *)(bias + at) : make_float4(0, 0, 0, 0);
        *(uint2 *)(out + at) = make_uint2(pack(fmaf(x[i][0] * scale, w.x, b.x), fmaf(x[i][1] * scale, w.y, b.y)),
                                          pack(fmaf(x[i][2] * scale, w.z, b.z), fmaf(x[i][3] * scale, w.w, b.w)));
    }
}

template <int N>
__global__ void __launch_bounds__(32 * ROWS_A_BLOCK)
    norm(bf16 *out, const bf16 *in, const float *weight, const float *bias, int hidden, float epsilon, int rows)
{
    const int row = blockIdx.x * ROWS_A_BLOCK + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float x[N][4] = {};
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int at = 4 * (lane + 32 * i);
        if (at >= hidden) continue;
        const uint2 pair = *(const uint2 *)(in + (size_t)row * hidden + at);
        x[i][0] = low_of(pair.x), x[i][1] = high_of(pair.x), x[i][2] = low_of(pair.y), x[i][3] = high_of(pair.y);
    }
    norm_row<N>(out + (size_t)row * hidden, x, weight, bias, hidden, epsilon);
}

/* places: of every row, its place in its text. positions and types may be NULL; sums (rows, hidden), when not NULL, get
 * what is normed; weight NULL: nothing is. */
template <int N>
__global__ void __launch_bounds__(32 * ROWS_A_BLOCK)
    embed(bf16 *out, bf16 *sums, const uint32_t *ids, const uint16_t *places, const float *words,
          const float *positions, const float *types, const float *weight, const float *bias, int hidden, float epsilon,
          int rows)
{
    const int row = blockIdx.x * ROWS_A_BLOCK + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float *word = words + (size_t)ids[row] * hidden;
    const float *place = positions ? positions + (size_t)places[row] * hidden : NULL;
    float x[N][4] = {};
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int at = 4 * (lane + 32 * i);
        if (at >= hidden) continue;
        const float4 w = *(const float4 *)(word + at);
        x[i][0] = w.x, x[i][1] = w.y, x[i][2] = w.z, x[i][3] = w.w;
        if (place) {
            const float4 p = *(const float4 *)(place + at);
            x[i][0] += p.x, x[i][1] += p.y, x[i][2] += p.z, x[i][3] += p.w;
        }
        if (types) {
            const float4 t = *(const float4 *)(types + at);
            x[i][0] += t.x, x[i][1] += t.y, x[i][2] += t.z, x[i][3] += t.w;
        }
        if (sums)
            *(uint2 *)(sums + (size_t)row * hidden + at) = make_uint2(pack(x[i][0], x[i][1]), pack(x[i][2], x[i][3]));
    }
    if (weight) norm_row<N>(out + (size_t)row * hidden, x, weight, bias, hidden, epsilon);
}

/* Rows of floats, rounded: rows from `given` on become zeros. */
static __global__ void __launch_bounds__(256)
    round_rows(bf16 *out, const float *in, size_t columns, size_t given, size_t rows)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i < rows * columns) out[i] = __float2bfloat16_rn(i < given * columns ? in[i] : 0);
}

} // namespace sf
#endif
