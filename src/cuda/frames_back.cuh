/* Frames of a convolutional network on the way back, and the end of the network: what training does besides products.
 * Every sum has a fixed order. */
#ifndef SF_CUDA_FRAMES_BACK_CUH
#define SF_CUDA_FRAMES_BACK_CUH

#include "cuda/frames.cuh"
#include "cuda/pool.cuh"

namespace sf
{

/* ---------------------------------------------------------------- maxima */

/* d (texts, rows, F): of frames after ReLU, from dout (texts, frames, F) of the maxima of every three: the first of the
 * largest gets it, if it is above 0. All others get 0, and so do the rows behind. raw (texts, rows, F): the frames. Two
 * numbers of three rows a thread, by 256 threads a block; `total` threads in all: texts * groups * F / 2. */
static __global__ void __launch_bounds__(256)
    pool_back(bf16 *d, const bf16 *dout, const bf16 *raw, int F, int frames, int rows, size_t total)
{
    const size_t thread = blockIdx.x * (size_t)256 + threadIdx.x;
    if (thread >= total) return;
    const int groups = (rows + POOL - 1) / POOL, c = (int)(thread % (F / 2)) * 2;
    const size_t group = thread / (F / 2), text = group / groups;
    const int p = (int)(group % groups), first = POOL * p;
    const size_t at = (text * rows + first) * F + c;
    uint32_t out[POOL] = {0, 0, 0};
    if (p < frames) {
        const uint32_t g = *(const uint32_t *)(dout + (text * frames + p) * F + c), x = *(const uint32_t *)(raw + at),
                       y = *(const uint32_t *)(raw + at + F), z = *(const uint32_t *)(raw + at + 2 * (size_t)F);
        const int low = largest(low_of(x), low_of(y), low_of(z)), high = largest(high_of(x), high_of(y), high_of(z));
        const uint32_t most = larger_pair(larger_pair(x, y), z);
        const float low_d = low_of(most) > 0 ? low_of(g) : 0, high_d = high_of(most) > 0 ? high_of(g) : 0;
#pragma unroll
        for (int j = 0; j < POOL; j++) out[j] = pack(low == j ? low_d : 0, high == j ? high_d : 0);
    }
#pragma unroll
    for (int j = 0; j < POOL; j++)
        if (first + j < rows) *(uint32_t *)(d + at + (size_t)j * F) = out[j];
}

/* d[i] becomes 0 where out[i], which it is the gradient of, is not above 0. By 256 threads a block. */
static __global__ void __launch_bounds__(256) frames_relu_back(bf16 *d, const bf16 *out, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i < count && !(__bfloat162float(out[i]) > 0)) d[i] = __float2bfloat16_rn(0);
}

/* ------------------------------------------------------- the first convolution */

enum {
    TABLE_ROWS = CODES * TAPS + 1, /* of a block's sums: weights by code and tap, then the bias */
    TABLE_LANES = 32,              /* features of a block */
    TABLE_BLOCKS = 48,             /* that share the texts, at most */
    TABLE_BYTES = TABLE_ROWS * TABLE_LANES * sizeof(float)
};

/* partial (gridDim.y, TABLE_ROWS, F): the sums over a block's texts of the gradient of the first convolution's
 * weights, of blanks too, and of its bias. d, out and which (texts, frames, F): of the maxima behind it. A thread
 * has a feature, and a column of the shared memory that no other reads. */
static __global__ void __launch_bounds__(TABLE_LANES)
    table_back(float *partial, const bf16 *__restrict__ d, const bf16 *__restrict__ out,
               const uint8_t *__restrict__ which, const uint8_t *__restrict__ codes, int F, int L, int frames,
               int texts)
{
    extern __shared__ float table_sums[]; /* (TABLE_ROWS, TABLE_LANES) */
    const int f = blockIdx.x * TABLE_LANES + threadIdx.x;
    if (f >= F) return;
    float *column = table_sums + threadIdx.x, total = 0;
    for (int i = 0; i < TABLE_ROWS; i++) column[i * TABLE_LANES] = 0;
    for (int text = blockIdx.y; text < texts; text += gridDim.y)
        for (int p = 0; p < frames; p++) {
            const size_t at = ((size_t)text * frames + p) * F + f;
            const float g = __bfloat162float(out[at]) > 0 ? __bfloat162float(d[at]) : 0;
            const uint8_t *read = codes + (size_t)text * L + POOL * p + which[at];
            float *place[TAPS], sum[TAPS];
            total += g;
#pragma unroll
            for (int t = 0; t < TAPS; t++) {
                place[t] = column + (read[t] * TAPS + t) * TABLE_LANES; /* each tap another */
                sum[t] = *place[t] + g;
            }
#pragma unroll
            for (int t = 0; t < TAPS; t++) *place[t] = sum[t];
        }
    column[(TABLE_ROWS - 1) * TABLE_LANES] = total;
    for (int i = 0; i < TABLE_ROWS; i++)
        partial[((size_t)blockIdx.y * TABLE_ROWS + i) * F + f] = column[i * TABLE_LANES];
}

/* weight (CODES - 1, TAPS, F) and bias (F) from `blocks` partial sums. By 256 threads a block. */
static __global__ void __launch_bounds__(256)
    add_tables(float *weight, float *bias, const float *partial, int F, int blocks)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x, weights = (size_t)(CODES - 1) * TAPS * F;
    if (i >= weights + F) return;
    float sum = 0;
    for (int b = 0; b < blocks; b++)
        sum += partial[(size_t)b * TABLE_ROWS * F + (size_t)TAPS * F + i]; /* behind blanks' */
    if (i < weights)
        weight[i] = sum;
    else
        bias[i - weights] = sum;
}

/* ------------------------------------------------------------------- the end */

/* out[i] = in[i] * mask[i], by 256 threads a block. */
static __global__ void __launch_bounds__(256) drop(bf16 *out, const bf16 *in, const float *mask, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i < count) out[i] = __float2bfloat16_rn(__bfloat162float(in[i]) * mask[i]);
}

/* The same back, and through the ReLU before it; mask may be NULL. */
static __global__ void __launch_bounds__(256) drop_back(bf16 *d, const bf16 *relu, const float *mask, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i >= count) return;
    const float g = __bfloat162float(d[i]) * (mask ? mask[i] : 1);
    d[i] = __float2bfloat16_rn(__bfloat162float(relu[i]) > 0 ? g : 0);
}

/* From the second dense layer to the loss of every text, and back to that layer before its ReLU. */
struct convnet_end {
    const float *weight, *bias; /* (classes, hidden), (classes) */
    int hidden, classes;
    float smoothing, share;  /* of the labels; of a text in the gradient */
    const int *labels;       /* (texts) */
    const float *masks;      /* (texts, hidden), or NULL */
    float *last;             /* (texts, hidden): the layer after dropout */
    float *dlogits, *losses; /* (texts, classes), (texts) */
};

/* d and relu (texts, hidden); a text a block. */
static __global__ void __launch_bounds__(POOL_THREADS) convnet_loss(bf16 *d, const bf16 *relu, const convnet_end e)
{
    const size_t t = blockIdx.x, H = e.hidden;
    const int C = e.classes, label = e.labels[t];
    float *last = e.last + t * H, *logits = e.dlogits + t * C;
    for (size_t h = threadIdx.x; h < H; h += POOL_THREADS)
        last[h] = __bfloat162float(relu[t * H + h]) * (e.masks ? e.masks[t * H + h] : 1);
    __syncthreads();
    for (int c = threadIdx.x / 32; c < C; c += POOL_THREADS / 32) {
        const float sum = dense(e.weight + (size_t)c * H, last, e.hidden) + e.bias[c];
        if (threadIdx.x % 32 == 0) logits[c] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float most = logits[0], sum = 0, mean = 0;
        for (int c = 1; c < C; c++) most = fmaxf(most, logits[c]);
        for (int c = 0; c < C; c++) sum += expf(logits[c] - most), mean += logits[c] / (float)C;
        e.losses[t] = logf(sum) + most - logits[label] + e.smoothing * (logits[label] - mean);
        for (int c = 0; c < C; c++) {
            const float wanted = c == label ? 1.0f : 0.0f;
            logits[c] = e.share * (expf(logits[c] - most) / sum - wanted + e.smoothing * (wanted - 1 / (float)C));
        }
    }
    __syncthreads();
    for (size_t h = threadIdx.x; h < H; h += POOL_THREADS) {
        float sum = 0;
        for (int c = 0; c < C; c++) sum = fmaf(logits[c], e.weight[c * H + h], sum);
        if (e.masks) sum *= e.masks[t * H + h];
        d[t * H + h] = __float2bfloat16_rn(__bfloat162float(relu[t * H + h]) > 0 ? sum : 0);
    }
}

/* out[i] = the sum of parts[k * count + i], in order. By 256 threads a block. */
static __global__ void __launch_bounds__(256) add_parts(float *out, const float *parts, int number, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i >= count) return;
    float sum = parts[i];
    for (int k = 1; k < number; k++) sum += parts[k * count + i];
    out[i] = sum;
}

} // namespace sf
#endif
