/* The end of an encoder on the GPU: from the vectors of a text to its logits, a text a block. */
#ifndef SF_CUDA_POOL_CUH
#define SF_CUDA_POOL_CUH

#include "cuda/numbers.cuh"

namespace sf
{

enum { POOL_THREADS = 256 };

struct head {
    int hidden, classes, mean;
    const float *pooler_weight, *pooler_bias; /* NULL: none */
    int pooler_relu;
    const float *weight, *bias;
};

/* outputs of a dense layer: each by a warp, its terms summed in a fixed order. */
__device__ inline float dense(const float *row, const float *in, int count)
{
    float sum = 0;
    for (int i = threadIdx.x % 32; i < count; i += 32) sum = fmaf(row[i], in[i], sum);
    return warp_sum(sum);
}

static __global__ void __launch_bounds__(POOL_THREADS)
    classify(float *logits, const bf16 *x, const uint32_t *starts, const head h)
{
    extern __shared__ float memory[]; /* the pooled vector, and what the pooler makes of it */
    float *pooled = memory, *made = memory + h.hidden;
    const size_t first = starts[blockIdx.x], length = starts[blockIdx.x + 1] - first;
    for (int c = threadIdx.x; c < h.hidden; c += POOL_THREADS) {
        const bf16 *column = x + first * h.hidden + c;
        float sum = __bfloat162float(column[0]);
        if (h.mean) {
            for (size_t i = 1; i < length; i++) sum += __bfloat162float(column[i * h.hidden]);
            sum /= (float)length;
        }
        pooled[c] = sum;
    }
    __syncthreads();
    const int warp = threadIdx.x / 32;
    if (h.pooler_weight) {
        for (int c = warp; c < h.hidden; c += POOL_THREADS / 32) {
            const float sum = dense(h.pooler_weight + (size_t)c * h.hidden, pooled, h.hidden) + h.pooler_bias[c];
            if (threadIdx.x % 32 == 0) made[c] = h.pooler_relu ? fmaxf(sum, 0) : tanhf(sum);
        }
        __syncthreads();
        pooled = made;
    }
    for (int c = warp; c < h.classes; c += POOL_THREADS / 32) {
        const float sum = dense(h.weight + (size_t)c * h.hidden, pooled, h.hidden) + h.bias[c];
        if (threadIdx.x % 32 == 0) logits[(size_t)blockIdx.x * h.classes + c] = sum;
    }
}

} // namespace sf
#endif
