/* Attention of heads of any width, without tensor cores: a query a warp, 32 keys at a time. */
#ifndef SF_CUDA_PLAIN_CUH
#define SF_CUDA_PLAIN_CUH

#include "cuda/attention.cuh"

namespace sf
{

enum { PLAIN_WIDTH = 256 };

template <int KIND>
__global__ void __launch_bounds__(SF_ATTEND_THREADS)
    attend_plain(bf16 *context, const bf16 *qkv, const sf_attend_block *blocks, int hidden, int D, float scale,
                 const relation r)
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
        float out[PLAIN_WIDTH / 32] = {}, most = KIND == ATTEND_LOCAL ? -1e30f : -INFINITY, sum = 0;
        const int last = KIND == ATTEND_LOCAL ? min(length, q + r.window + 1) : length;
        for (int first = KIND == ATTEND_LOCAL ? max(0, q - r.window) / 32 * 32 : 0; first < last; first += 32) {
            const int key = first + lane, some = min(32, length - first), far = key - q;
            float score = -INFINITY;
            if (key < length && (KIND != ATTEND_LOCAL || (far <= r.window && -far <= r.window))) {
                const bf16 *k = base + hidden + key * stride;
                score = 0;
                for (int i = 0; i < D; i++) score = fmaf(queries[warp][i], __bfloat162float(k[i]), score);
                if (KIND == ATTEND_PARTS) score += place_terms(r, b.row, q, key, place_column(r, far + r.reach));
                score *= scale;
                if (KIND == ATTEND_BIASED) score += r.bias[(size_t)blockIdx.y * 2 * r.reach + far + r.reach];
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
