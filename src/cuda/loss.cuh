/* The end of an encoder in training: from the last layer to the loss, and back. All in f32, a text a block. */
#ifndef SF_CUDA_LOSS_CUH
#define SF_CUDA_LOSS_CUH

#include "cuda/pool.cuh"

namespace sf
{

/* Of every text; (texts, hidden) unless said otherwise. */
struct ends {
    float *pooled, *features, *dropped; /* before the pooler, after it, and after dropout */
    float *raw, *activated, *unit;      /* before the pooler's activation, after it, and normed without its weight */
    float *slopes, *dfeatures;          /* the gradients before the pooler's activation, and of `features` */
    float *dlogits, *losses;            /* (texts, classes), (texts) */
    const float *masks;                 /* of dropout; NULL: none */
    const int *labels;                  /* (texts) */
};

static __global__ void __launch_bounds__(POOL_THREADS)
    loss_forward(ends e, const bf16 *x, const uint32_t *starts, const head h, float share)
{
    const size_t t = blockIdx.x, first = starts[t], length = starts[t + 1] - first, H = h.hidden;
    const int warp = threadIdx.x / 32;
    for (int c = threadIdx.x; c < h.hidden; c += POOL_THREADS) {
        const bf16 *column = x + first * H + c;
        float sum = __bfloat162float(column[0]);
        if (h.mean) {
            for (size_t i = 1; i < length; i++) sum += __bfloat162float(column[i * H]);
            sum /= (float)length;
        }
        e.pooled[t * H + c] = sum;
        if (!h.pooler_weight) e.features[t * H + c] = sum;
    }
    __syncthreads();
    for (int c = warp; h.pooler_weight && c < h.hidden; c += POOL_THREADS / 32) {
        const float sum = dense(h.pooler_weight + (size_t)c * H, e.pooled + t * H, h.hidden) +
                          (h.pooler_bias ? h.pooler_bias[c] : 0);
        if (threadIdx.x % 32 == 0) {
            e.raw[t * H + c] = sum;
            e.activated[t * H + c] = e.features[t * H + c] = activated(sum, h.activation);
        }
    }
    __syncthreads();
    if (h.norm_weight) {
        float mean, scale;
        norm_of(&mean, &scale, e.activated + t * H, h.hidden, h.epsilon);
        for (int c = threadIdx.x; c < h.hidden; c += POOL_THREADS) {
            const float unit = e.unit[t * H + c] = (e.activated[t * H + c] - mean) * scale;
            e.features[t * H + c] = fmaf(unit, h.norm_weight[c], h.norm_bias ? h.norm_bias[c] : 0);
        }
        __syncthreads();
    }
    for (int c = threadIdx.x; c < h.hidden; c += POOL_THREADS)
        e.dropped[t * H + c] = e.features[t * H + c] * (e.masks ? e.masks[t * H + c] : 1);
    __syncthreads();
    float *logits = e.dlogits + t * h.classes;
    for (int c = warp; c < h.classes; c += POOL_THREADS / 32) {
        const float sum = dense(h.weight + (size_t)c * H, e.dropped + t * H, h.hidden) + h.bias[c];
        if (threadIdx.x % 32 == 0) logits[c] = sum;
    }
    __syncthreads();
    if (threadIdx.x) return;
    float most = logits[0], sum = 0;
    for (int c = 1; c < h.classes; c++) most = fmaxf(most, logits[c]);
    for (int c = 0; c < h.classes; c++) sum += expf(logits[c] - most);
    e.losses[t] = logf(sum) + most - logits[e.labels[t]];
    for (int c = 0; c < h.classes; c++)
        logits[c] = (expf(logits[c] - most) / sum - (c == e.labels[t] ? 1.0f : 0.0f)) * share;
}

/* What the norm's way back takes from all of a vector's gradient: its means, plain and along `unit`. */
__device__ inline void norm_means(float *plain, float *along, const float *g, const float *unit, int count)
{
    float sum = 0, dot = 0;
    for (int i = threadIdx.x % 32; i < count; i += 32) sum += g[i], dot = fmaf(g[i], unit[i], dot);
    *plain = warp_sum(sum) / (float)count;
    *along = warp_sum(dot) / (float)count;
}

/* d (rows, hidden): the gradient of the last layer's output; every row is written. */
static __global__ void __launch_bounds__(POOL_THREADS) loss_back(bf16 *d, ends e, const uint32_t *starts, const head h)
{
    extern __shared__ float memory[]; /* (hidden) */
    const size_t t = blockIdx.x, first = starts[t], length = starts[t + 1] - first, H = h.hidden;
    for (int c = threadIdx.x; c < h.hidden; c += POOL_THREADS) {
        float sum = 0;
        for (int k = 0; k < h.classes; k++) sum = fmaf(e.dlogits[t * h.classes + k], h.weight[k * H + c], sum);
        if (e.masks) sum *= e.masks[t * H + c];
        e.dfeatures[t * H + c] = sum;
        memory[c] = h.norm_weight ? sum * h.norm_weight[c] : sum;
    }
    __syncthreads();
    float mean = 0, scale = 1, plain = 0, along = 0;
    if (h.norm_weight) {
        norm_of(&mean, &scale, e.activated + t * H, h.hidden, h.epsilon);
        norm_means(&plain, &along, memory, e.unit + t * H, h.hidden);
        __syncthreads();
    }
    for (int c = threadIdx.x; c < h.hidden; c += POOL_THREADS) {
        float sum = memory[c];
        if (h.norm_weight) sum = scale * (sum - plain - e.unit[t * H + c] * along);
        if (h.pooler_weight) {
            const float f = e.activated[t * H + c];
            sum *= h.activation == SF_ENCODER_RELU   ? (f > 0 ? 1.0f : 0.0f)
                   : h.activation == SF_ENCODER_TANH ? 1 - f * f
                                                     : activation_slope(e.raw[t * H + c], h.activation);
        }
        e.slopes[t * H + c] = memory[c] = sum;
    }
    __syncthreads();
    for (int c = threadIdx.x; c < h.hidden; c += POOL_THREADS) {
        float sum = memory[c];
        if (h.pooler_weight) {
            sum = 0;
            for (size_t o = 0; o < H; o++) sum = fmaf(memory[o], h.pooler_weight[o * H + c], sum);
        }
        for (size_t i = 0; i < length; i++)
            d[(first + i) * H + c] = __float2bfloat16_rn(h.mean ? sum / (float)length : i ? 0 : sum);
    }
}

/* weight (outputs, inputs) and bias (outputs): the sums over texts of left (texts, outputs) times right (texts,
 * inputs), in order. */
static __global__ void __launch_bounds__(256) dense_gradient(float *weight, float *bias, const float *left,
                                                             const float *right, int outputs, int inputs, int texts)
{
    const int at = blockIdx.x * 256 + threadIdx.x, o = at / inputs, i = at % inputs;
    if (o >= outputs) return;
    float sum = 0, plain = 0;
    for (size_t t = 0; t < (size_t)texts; t++) {
        sum = fmaf(left[t * outputs + o], right[t * inputs + i], sum);
        plain += left[t * outputs + o];
    }
    weight[at] = sum;
    if (i == 0 && bias) bias[o] = plain;
}

/* weight and bias (columns) of a norm, bias perhaps NULL: the sums over texts, in order, of d (texts, columns) times
 * unit, and of d. */
static __global__ void __launch_bounds__(256)
    norm_gradient(float *weight, float *bias, const float *d, const float *unit, int columns, int texts)
{
    const int c = blockIdx.x * 256 + threadIdx.x;
    if (c >= columns) return;
    float sum = 0, plain = 0;
    for (size_t t = 0; t < (size_t)texts; t++) {
        sum = fmaf(d[t * columns + c], unit[t * columns + c], sum);
        plain += d[t * columns + c];
    }
    weight[c] = sum;
    if (bias) bias[c] = plain;
}

} // namespace sf
#endif
