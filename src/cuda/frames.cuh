/* The frames of a convolutional network: from codes, and the maxima of three. Texts lie one after the other, each with
 * the same number of frames; a frame is a row of F numbers. */
#ifndef SF_CUDA_FRAMES_CUH
#define SF_CUDA_FRAMES_CUH

#include "cuda/numbers.cuh"

namespace sf
{

enum {
    CODES = 70,       /* 0 is blank */
    TAPS = 7,         /* of the first two convolutions */
    POOL = 3,         /* frames of which the largest is kept */
    FRAME_LANES = 16, /* features of a block */
    FRAME_ROWS = 64,  /* frames of a block at a time */
    FRAME_THREADS = FRAME_ROWS * FRAME_LANES / 4
};

/* The index of the largest of three, the first of equal ones. */
__device__ inline int largest(float x, float y, float z) { return z > fmaxf(x, y) ? 2 : y > x ? 1 : 0; }

/* out (texts * frames, F), and which (the same; may be NULL) of the three was the largest: the first convolution with
 * its ReLU and maximum. A frame before it is the bias and a row of the weights for every tap, added in the order of the
 * taps. codes (texts, L); weight (CODES - 1, TAPS, F), of blanks zeros. A thread has four features. */
static __global__ void __launch_bounds__(FRAME_THREADS)
    frames_of_codes(bf16 *out, uint8_t *which, const uint8_t *codes, const float *weight, const float *bias, int F,
                    int L, int frames, int total)
{
    enum { QUARTERS = FRAME_LANES / 4 };
    __shared__ float4 table[CODES * TAPS * QUARTERS]; /* 31,360 bytes */
    const int first = blockIdx.x * FRAME_LANES, lane = threadIdx.x % QUARTERS;
    for (int i = threadIdx.x; i < CODES * TAPS * QUARTERS; i += FRAME_THREADS) {
        const int row = i / QUARTERS - TAPS; /* of the weights: blanks have none */
        table[i] = row < 0 ? make_float4(0, 0, 0, 0)
                           : *(const float4 *)(weight + (size_t)row * F + first + i % QUARTERS * 4);
    }
    __syncthreads();
    const float4 start = *(const float4 *)(bias + first + 4 * lane);
    for (int at = blockIdx.y * FRAME_ROWS + threadIdx.x / QUARTERS; at < total; at += gridDim.y * FRAME_ROWS) {
        const uint8_t *read = codes + (size_t)(at / frames) * L + POOL * (at % frames);
        float4 sum[POOL] = {start, start, start};
#pragma unroll
        for (int t = 0; t < TAPS; t++)
#pragma unroll
            for (int j = 0; j < POOL; j++) {
                const float4 x = table[(read[j + t] * TAPS + t) * QUARTERS + lane];
                sum[j].x += x.x, sum[j].y += x.y, sum[j].z += x.z, sum[j].w += x.w;
            }
        const size_t to = (size_t)at * F + first + 4 * lane;
        const float4 most = make_float4(fmaxf(fmaxf(sum[0].x, sum[1].x), sum[2].x),
                                        fmaxf(fmaxf(sum[0].y, sum[1].y), sum[2].y),
                                        fmaxf(fmaxf(sum[0].z, sum[1].z), sum[2].z),
                                        fmaxf(fmaxf(sum[0].w, sum[1].w), sum[2].w));
        *(uint2 *)(out + to) = make_uint2(pack(fmaxf(most.x, 0), fmaxf(most.y, 0)),
                                          pack(fmaxf(most.z, 0), fmaxf(most.w, 0)));
        if (which)
            *(uchar4 *)(which + to) = make_uchar4((unsigned char)largest(sum[0].x, sum[1].x, sum[2].x),
                                                  (unsigned char)largest(sum[0].y, sum[1].y, sum[2].y),
                                                  (unsigned char)largest(sum[0].z, sum[1].z, sum[2].z),
                                                  (unsigned char)largest(sum[0].w, sum[1].w, sum[2].w));
    }
}

/* Its grid: blocks of features, and as many of frames as keep a GPU busy; each fills its table once. */
inline dim3 frame_grid(int F, int total)
{
    const int blocks = (total + FRAME_ROWS - 1) / FRAME_ROWS;
    return dim3((unsigned)(F / FRAME_LANES), (unsigned)(blocks < 256 ? blocks : 256));
}

__device__ inline uint32_t larger_pair(uint32_t a, uint32_t b)
{
    return pack(fmaxf(low_of(a), low_of(b)), fmaxf(high_of(a), high_of(b)));
}

/* out (texts * frames, F): of every three rows of a text the largest numbers. in (texts, rows, F). Eight numbers a
 * thread, `total` of them in all, by 256 threads a block. */
static __global__ void __launch_bounds__(256)
    pool_frames(bf16 *out, const bf16 *in, int F, int frames, int rows, size_t total)
{
    const size_t at = (blockIdx.x * (size_t)256 + threadIdx.x) * 8;
    if (at >= total) return;
    const size_t frame = at / F, text = frame / frames, row = text * rows + POOL * (frame % frames);
    const bf16 *from = in + row * F + at % F;
    const uint4 x = *(const uint4 *)from, y = *(const uint4 *)(from + F), z = *(const uint4 *)(from + 2 * (size_t)F);
    *(uint4 *)(out + at) = make_uint4(larger_pair(larger_pair(x.x, y.x), z.x), larger_pair(larger_pair(x.y, y.y), z.y),
                                      larger_pair(larger_pair(x.z, y.z), z.z), larger_pair(larger_pair(x.w, y.w), z.w));
}

enum { OUTPUT_THREADS = 128 };

/* logits (texts, classes) of x (texts, H) by weight (classes, H): a text a block, a class a warp. */
static __global__ void __launch_bounds__(OUTPUT_THREADS)
    output_layer(float *logits, const bf16 *x, const float *weight, const float *bias, int H, int classes)
{
    const bf16 *row = x + (size_t)blockIdx.x * H;
    for (int c = threadIdx.x / 32; c < classes; c += OUTPUT_THREADS / 32) {
        float sum = 0;
        for (int i = threadIdx.x % 32; i < H; i += 32)
            sum = fmaf(weight[(size_t)c * H + i], __bfloat162float(row[i]), sum);
        sum = warp_sum(sum) + bias[c];
        if (threadIdx.x % 32 == 0) logits[(size_t)blockIdx.x * classes + c] = sum;
    }
}

} // namespace sf
#endif
