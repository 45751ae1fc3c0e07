/* Rotary positions: queries and keys are turned where they lie, before attention reads them. That is what attend_plain
 * needs, and training, whose way back reads them again. In answers `attend` turns both itself. */
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

/* Of qkv (rows, 3 * hidden), numbers k and k + D/2 of every head of queries and keys. turns as turn_rows has them.
 * Back: the other way round, as gradients are. A block of attention for as many blocks as the grid is high, which share
 * its heads; 2 * V pairs a thread, which D/2 is a multiple of. A thread turns the same numbers of one head after the
 * other, for its cosines and sines are more bytes than they. */
enum turn_kind { TURN, TURN_BACK };
template <int V>
__global__ void __launch_bounds__(256)
    turn(bf16 *qkv, const sf_attend_block *blocks, const float *turns, int hidden, int D, turn_kind kind)
{
    const sf_attend_block b = blocks[blockIdx.x];
    const int half = D / 2, each = half / (2 * V);
    const int rows = min((int)SF_ATTEND_QUERIES, (int)(b.length - b.query));
    for (int i = (int)threadIdx.x; i < rows * each; i += 256) {
        const int row = i / each, k = 2 * V * (i % each);
        const size_t place = b.query + row;
        bf16 *const own = qkv + (b.row + place) * 3 * hidden + k;
        __align__(16) float cosine[2 * V], sine[2 * V];
        copy_turns<V>(cosine, turns + place * D + k), copy_turns<V>(sine, turns + place * D + k + half);
        if (kind == TURN_BACK)
#pragma unroll
            for (int v = 0; v < 2 * V; v++) sine[v] = -sine[v];
#pragma unroll 4
        for (int at = (int)blockIdx.y * D; at < 2 * hidden; at += (int)gridDim.y * D) {
            uint32_t *low = (uint32_t *)(own + at), *high = (uint32_t *)(own + at + half);
            __align__(16) uint32_t x[V], y[V];
            copy_words<V>(x, low), copy_words<V>(y, high);
#pragma unroll
            for (int v = 0; v < V; v++)
                turn_words(&x[v], &y[v], make_float2(cosine[2 * v], cosine[2 * v + 1]),
                           make_float2(sine[2 * v], sine[2 * v + 1]));
            copy_words<V>(low, x), copy_words<V>(high, y);
        }
    }
}

inline void run_turn(bf16 *qkv, const sf_attend_block *blocks, size_t count, const float *turns, int hidden, int D,
                     turn_kind kind, cudaStream_t stream)
{
    if (D % 16)
        turn<1><<<dim3((unsigned)count, 4), 256, 0, stream>>>(qkv, blocks, turns, hidden, D, kind);
    else
        turn<4><<<dim3((unsigned)count, 4), 256, 0, stream>>>(qkv, blocks, turns, hidden, D, kind);
}

} // namespace sf
#endif
