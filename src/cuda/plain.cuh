/* Attention of heads of any width, without tensor cores: a query a warp, 32 keys at a time. */
#ifndef SF_CUDA_PLAIN_CUH
#define SF_CUDA_PLAIN_CUH

#include "cuda/attention.cuh"

namespace sf
{

enum { PLAIN_WIDTH = 256 };

static __global__ void __launch_bounds__(SF_ATTEND_THREADS)
    attend_plain(bf16 *context, const bf16 *qkv, const sf_attend_block *blocks, int hidden, int D, float scale)
{
    __shared__ float queries[SF_ATTEND_THREADS / 32][PLAIN_WIDTH];
    const sf_attend_block b = blocks[blockIdx.x];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, length = (int)b.length;
    const size_t stride = 3 * (size_t)hidden;
    const bf16 *base = qkv + b.row * stride + blockIdx.y * D;
    const int end = min((int)b.query + SF_ATTEND_QUERIES, length);
    for (int q = (int)b.query + warp; q < end; q += SF_ATTEND_THREADS / 32) {
        for (int i = lane; i < D; i += 32) queries[warp][i] = __bfloat162float(base[q * stride + i]);
        __syncwarp();
        float out[PLAIN_WIDTH / 32] = {}, most = -INFINITY, sum = 0;
        for (int first = 0; first < length; first += 32) {
            const int key = first + lane, some = min(32, length - first);
            float score = -INFINITY;
            if (key < length) {
                const bf16 *k = base + hidden + key * stride;
                score = 0;
                for (int i = 0; i < D; i++) score = fmaf(queries[warp][i], __bfloat162float(k[i]), score);
                score *= scale;
            }
            float top = score;
#pragma unroll
            for (int i = 16; i; i /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, i));
            const float next = fmaxf(most, top), old = exp2_fast(most - next), share = exp2_fast(score - next);
            most = next;
            sum = sum * old + warp_sum(share);
#pragma unroll
            for (int i = 0; i < PLAIN_WIDTH / 32; i++) out[i] *= old;
            for (int j = 0; j < some; j++) {
                const float p = __shfl_sync(~0u, share, j);
                const bf16 *v = base + 2 * hidden + (first + j) * stride;
#pragma unroll
                for (int i = 0; i < PLAIN_WIDTH / 32; i++)
                    if (lane + 32 * i < D) out[i] = fmaf(p, __bfloat162float(v[lane + 32 * i]), out[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < PLAIN_WIDTH / 32; i++)
            if (lane + 32 * i < D)
                context[(b.row + q) * (size_t)hidden + blockIdx.y * D + lane + 32 * i] = __float2bfloat16_rn(out[i] /
                                                                                                             sum);
        __syncwarp();
    }
}

} // namespace sf
#endif
