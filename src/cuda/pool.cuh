/* The end of an encoder on the GPU: from the vectors of a text to its logits, a text a block; or to the means of its
 * parts, a part a block. */
#ifndef SF_CUDA_POOL_CUH
#define SF_CUDA_POOL_CUH

#include "cuda/activation.cuh"

namespace sf
{

enum { POOL_THREADS = 256 };

struct head {
    int hidden, classes, mean;
    const float *pooler_weight, *pooler_bias; /* NULL: none */
    sf_encoder_activation activation;         /* of that */
    const float *norm_weight, *norm_bias;     /* of the norm behind it; NULL: none */
    float epsilon;
    const float *weight, *bias;
};

/* outputs of a dense layer: each by a warp, its terms summed in a fixed order. */
__device__ inline float dense(const float *row, const float *in, int count)
{
    float sum = 0;
    for (int i = threadIdx.x % 32; i < count; i += 32) sum = fmaf(row[i], in[i], sum);
    return warp_sum(sum);
}

/* Mean and scale of a vector's norm, the same in every warp: each sums all of it. */
__device__ inline void norm_of(float *mean, float *scale, const float *x, int count, float epsilon)
{
    float sum = 0, square = 0;
    for (int i = threadIdx.x % 32; i < count; i += 32) sum += x[i];
    *mean = warp_sum(sum) / (float)count;
    for (int i = threadIdx.x % 32; i < count; i += 32) square = fmaf(x[i] - *mean, x[i] - *mean, square);
    *scale = rsqrtf(warp_sum(square) / (float)count + epsilon);
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
            const float sum = dense(h.pooler_weight + (size_t)c * h.hidden, pooled, h.hidden) +
                              (h.pooler_bias ? h.pooler_bias[c] : 0);
            if (threadIdx.x % 32 == 0) made[c] = activated(sum, h.activation);
        }
        __syncthreads();
        if (h.norm_weight) {
            float mean, scale;
            norm_of(&mean, &scale, made, h.hidden, h.epsilon);
            for (int c = threadIdx.x; c < h.hidden; c += POOL_THREADS)
                pooled[c] = fmaf((made[c] - mean) * scale, h.norm_weight[c], h.norm_bias ? h.norm_bias[c] : 0);
            __syncthreads();
        } else {
            pooled = made;
        }
    }
    for (int c = warp; c < h.classes; c += POOL_THREADS / 32) {
        const float sum = dense(h.weight + (size_t)c * h.hidden, pooled, h.hidden) + h.bias[c];
        if (threadIdx.x % 32 == 0) logits[(size_t)blockIdx.x * h.classes + c] = sum;
    }
}

/* Pieces begin .. begin+count-1 of a batch. */
struct span {
    uint32_t begin, count;
};

/* means (parts, hidden) of the rows of x that each part has; every number is summed by one thread, row by row. */
static __global__ void __launch_bounds__(POOL_THREADS)
    mean_spans(float *means, const bf16 *x, const span *parts, const int hidden)
{
    const span p = parts[blockIdx.x];
    const bf16 *rows = x + (size_t)p.begin * hidden;
    for (int c = threadIdx.x; c < hidden; c += POOL_THREADS) {
        float sum = __bfloat162float(rows[c]);
        for (size_t i = 1; i < p.count; i++) sum += __bfloat162float(rows[i * hidden + c]);
        means[(size_t)blockIdx.x * hidden + c] = sum / (float)p.count;
    }
}

} // namespace sf
#endif
