/* Tables of distances, as attention reads them: made of the encoder's own. */
#ifndef SF_CUDA_RELATIVE_CUH
#define SF_CUDA_RELATIVE_CUH

#include "cuda/attention.cuh"

#include <stdlib.h>

namespace sf
{

/* out (heads, 2 * reach), times log2(e), from table (buckets, heads); `buckets` (2 * reach) as below. */
static __global__ void __launch_bounds__(256)
    spread_bias(float *out, const float *table, const int32_t *buckets, int reach, int heads)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < 2 * reach)
        out[(size_t)blockIdx.y * 2 * reach + i] = table[(size_t)buckets[i] * heads + blockIdx.y] * 1.4426950408889634f;
}

/* The gradient of a table of biases. partial (heads, slots): of scores, slot s at distance distances[s]; bucket b gets
 * the sum over its slots, in order. A bucket and a head a block. */
static __global__ void __launch_bounds__(128)
    gather_bias(float *gradient, const float *partial, const int32_t *buckets, int reach, int heads, int slots)
{
    __shared__ float memory[128];
    const int bucket = blockIdx.x, head = blockIdx.y;
    float sum = 0;
    for (int s = threadIdx.x; s < slots; s += 128) { /* slots of 128 distances, from -64 on, around multiples of 64 */
        const int at = (s / 128 - slots / 256) * 64 + s % 128 - 64 + reach;
        if (buckets[at] == bucket) sum += partial[(size_t)head * slots + s];
    }
    memory[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half; half /= 2) {
        if ((int)threadIdx.x < half) memory[threadIdx.x] += memory[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) gradient[(size_t)bucket * heads + head] = memory[0];
}

/* How far tables of distances reach. */
inline int reach_of(size_t tokens) { return (int)tokens + ATTEND_SLACK; }

/* The bucket, less `first`, of every distance up to reach: those beyond texts have that of the farthest. To be freed;
 * or NULL. */
inline int32_t *stretch_buckets(const int32_t *buckets, size_t tokens, size_t first)
{
    const int reach = reach_of(tokens), most = (int)tokens - 1;
    int32_t *out = (int32_t *)malloc(2 * (size_t)reach * sizeof *out);
    for (int i = 0; out && i < 2 * reach; i++) {
        const int distance = i - reach < -most ? -most : i - reach > most ? most : i - reach;
        out[i] = buckets[distance + most] - (int32_t)first;
    }
    return out;
}

} // namespace sf
#endif
