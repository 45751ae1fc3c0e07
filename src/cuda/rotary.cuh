/* Rotary positions: queries and keys are turned where they lie, before attention reads them. */
#ifndef SF_CUDA_ROTARY_CUH
#define SF_CUDA_ROTARY_CUH

#include "cuda/attention.cuh"

namespace sf
{

/* V is 1 or 4. */
template <int V> __device__ inline void copy_words(uint32_t *to, const uint32_t *from)
{
    if constexpr (V == 4)
        *(uint4 *)to = *(const uint4 *)from;
    else
        *to = *from;
}

/* 2 * V cosines or sines. */
template <int V> __device__ inline void copy_turns(float *to, const float *from)
{
    if constexpr (V == 4) {
        *(float4 *)to = *(const float4 *)from;
        *(float4 *)(to + 4) = *(const float4 *)(from + 4);
    } else {
        *(float2 *)to = *(const float2 *)from;
    }
}

/* Of qkv (rows, 3 * hidden), numbers k and k + D/2 of every head of queries and keys. turns (tokens, D): D/2 cosines of
 * a position, then as many sines. Back: the other way round, as gradients are. A block of attention for as many
 * blocks as the grid is high, 2 * V pairs a thread, which D/2 is a multiple of. */
template <int V>
__global__ void __launch_bounds__(256)
    turn(bf16 *qkv, const sf_attend_block *blocks, const float *turns, int hidden, int D, int back)
{
    const sf_attend_block b = blocks[blockIdx.x];
    const int half = D / 2, each = hidden / (2 * V); /* of a row, whose queries and keys are `hidden` pairs */
    const int rows = min((int)SF_ATTEND_QUERIES, (int)(b.length - b.query));
    for (int i = (int)(blockIdx.y * 256 + threadIdx.x); i < rows * each; i += 256 * (int)gridDim.y) {
        const int row = i / each, pair = 2 * V * (i % each), head = pair / half, k = pair % half;
        const size_t place = b.query + row;
        uint32_t *low = (uint32_t *)(qkv + (b.row + place) * 3 * hidden + head * D + k), *high = low + half / 2;
        __align__(16) uint32_t x[V], y[V], left[V], right[V];
        __align__(16) float cosine[2 * V], sine[2 * V];
        copy_words<V>(x, low), copy_words<V>(y, high);
        copy_turns<V>(cosine, turns + place * D + k), copy_turns<V>(sine, turns + place * D + k + half);
#pragma unroll
        for (int v = 0; v < V; v++) {
            const float c = cosine[2 * v], d = cosine[2 * v + 1], s = back ? -sine[2 * v] : sine[2 * v],
                        t = back ? -sine[2 * v + 1] : sine[2 * v + 1];
            left[v] = pack(low_of(x[v]) * c - low_of(y[v]) * s, high_of(x[v]) * d - high_of(y[v]) * t);
            right[v] = pack(low_of(y[v]) * c + low_of(x[v]) * s, high_of(y[v]) * d + high_of(x[v]) * t);
        }
        copy_words<V>(low, left), copy_words<V>(high, right);
    }
}

inline void run_turn(bf16 *qkv, const sf_attend_block *blocks, size_t count, const float *turns, int hidden, int D,
                     int back, cudaStream_t stream)
{
    if (D % 16)
        turn<1><<<dim3((unsigned)count, 4), 256, 0, stream>>>(qkv, blocks, turns, hidden, D, back);
    else
        turn<4><<<dim3((unsigned)count, 4), 256, 0, stream>>>(qkv, blocks, turns, hidden, D, back);
}

} // namespace sf
#endif
