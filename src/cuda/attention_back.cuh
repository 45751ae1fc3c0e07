/* The way back through attention: gradients of queries, and of keys and values.
 *
 * Both kernels compute the shares again, from the scores and the logarithm of each row's sum that the way forward
 * left. One has queries in its rows and walks over keys, the other has keys in its rows and walks over queries; so
 * every gradient is summed by one warp in a fixed order, and nothing is added up in memory. A warp has 16 rows. */
#ifndef SF_CUDA_ATTENTION_BACK_CUH
#define SF_CUDA_ATTENTION_BACK_CUH

#include "cuda/attention.cuh"

namespace sf
{

enum { BACK_ROWS = 64 }; /* of a block */

/* Rows `first`.. of a matrix as the left side of products: 16 rows by D columns. Rows from `length` on are 0. */
template <int D>
__device__ inline void load_rows(uint32_t (*out)[4], const bf16 *base, size_t stride, int first, int length)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int s = 0; s < D / 16; s++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = first + lane / 4 + (i & 1) * 8, column = s * 16 + (lane & 3) * 2 + (i >> 1) * 8;
            out[s][i] = row < length ? *(const uint32_t *)(base + row * stride + column) : 0;
        }
}

/* out (16, 64) = rows (16, D) * tile (64, D) transposed. */
template <int D> __device__ inline void times_tile(float (*out)[4], const uint32_t (*rows)[4], uint32_t tile)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int c = 0; c < D / 16; c++) {
            uint32_t part[4];
            load_matrices(part, tile + tile_at<D>(j * 16 + (lane & 7) + ((lane >> 4) << 3), c * 2 + ((lane >> 3) & 1)));
            multiply(out[2 * j], rows[c], part[0], part[1]);
            multiply(out[2 * j + 1], rows[c], part[2], part[3]);
        }
}

/* out (16, D) += left (16, 64), rounded, * tile (64, D). */
template <int D> __device__ inline void add_times_tile(float (*out)[4], const float (*left)[4], uint32_t tile)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const float *a = left[2 * j], *b = left[2 * j + 1];
        const uint32_t rounded[4] = {pack(a[0], a[1]), pack(a[2], a[3]), pack(b[0], b[1]), pack(b[2], b[3])};
#pragma unroll
        for (int c = 0; c < D / 16; c++) {
            uint32_t part[4];
            load_matrices_transposed(part, tile + tile_at<D>(j * 16 + (lane & 15), c * 2 + (lane >> 4)));
            multiply(out[2 * c], rounded, part[0], part[1]);
            multiply(out[2 * c + 1], rounded, part[2], part[3]);
        }
    }
}

template <int D>
__device__ inline void store_rows(bf16 *base, size_t stride, const float (*x)[4], float scale, int first, int length)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = first + lane / 4 + h * 8;
        if (row < length)
#pragma unroll
            for (int c = 0; c < D / 8; c++)
                *(uint32_t *)(base + row * stride + c * 8 + (lane & 3) * 2) = pack(x[c][2 * h] * scale,
                                                                                   x[c][2 * h + 1] * scale);
    }
}

/* What the kernels below are given. The scale of scores is `scale`; `scale2` = scale * log2(e). */
struct back {
    const bf16 *qkv, *dcontext; /* (rows, 3 * hidden), (rows, hidden) */
    const float *sums;          /* (rows, heads): the logarithm to base 2 of each row's sum of powers of 2 */
    const float *deltas;        /* (rows, heads): the product of context and its gradient */
    bf16 *dqkv;
    const sf_attend_block *blocks; /* of BACK_ROWS rows */
    int hidden, heads;
    float scale, scale2;
};

template <int D> __global__ void __launch_bounds__(SF_ATTEND_THREADS) attend_back_queries(const back b)
{
    constexpr int tile = SF_ATTEND_KEYS * D * (int)sizeof(bf16);
    __shared__ __align__(128) char memory[4 * tile];
    const sf_attend_block k = b.blocks[blockIdx.x];
    const int lane = threadIdx.x % 32, length = (int)k.length, first = (int)k.query + threadIdx.x / 32 * 16;
    const size_t stride = 3 * (size_t)b.hidden;
    const bf16 *base = b.qkv + k.row * stride + blockIdx.y * D,
               *slope = b.dcontext + k.row * (size_t)b.hidden + blockIdx.y * D;
    const uint32_t shared = (uint32_t)__cvta_generic_to_shared(memory);
    uint32_t q[D / 16][4], dout[D / 16][4];
    load_rows<D>(q, base, stride, first, length);
    load_rows<D>(dout, slope, b.hidden, first, length);
    float sum[2], delta[2], dq[D / 8][4] = {};
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = first + lane / 4 + h * 8;
        const size_t at = (k.row + (size_t)(row < length ? row : 0)) * b.heads + blockIdx.y;
        sum[h] = row < length ? b.sums[at] : INFINITY;
        delta[h] = b.deltas[at];
    }
    const int count = (length + SF_ATTEND_KEYS - 1) / SF_ATTEND_KEYS;
    tile_load<D>(shared, base + b.hidden, stride, length);
    tile_load<D>(shared + tile, base + 2 * b.hidden, stride, length);
    copy_commit();
    for (int t = 0; t < count; t++) {
        const uint32_t here = shared + (t & 1) * 2 * tile, there = shared + (~t & 1) * 2 * tile;
        copy_wait<0>();
        __syncthreads();
        if (t + 1 < count) {
            const int done = (t + 1) * SF_ATTEND_KEYS;
            tile_load<D>(there, base + done * stride + b.hidden, stride, length - done);
            tile_load<D>(there + tile, base + done * stride + 2 * b.hidden, stride, length - done);
            copy_commit();
        }
        float s[8][4] = {}, ds[8][4] = {};
        times_tile<D>(s, q, here);
        times_tile<D>(ds, dout, here + tile);
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int key = t * SF_ATTEND_KEYS + j * 8 + (lane & 3) * 2 + (i & 1);
                const float share = key < length ? exp2_fast(fmaf(s[j][i], b.scale2, -sum[i >> 1])) : 0;
                ds[j][i] = share * (ds[j][i] - delta[i >> 1]);
            }
        add_times_tile<D>(dq, ds, here);
    }
    store_rows<D>(b.dqkv + k.row * stride + blockIdx.y * D, stride, dq, b.scale, first, length);
}

template <int D> __global__ void __launch_bounds__(SF_ATTEND_THREADS) attend_back_keys(const back b)
{
    constexpr int tile = SF_ATTEND_KEYS * D * (int)sizeof(bf16);
    __shared__ __align__(128) char memory[4 * tile];
    __shared__ float sums[2][SF_ATTEND_KEYS], deltas[2][SF_ATTEND_KEYS];
    const sf_attend_block k = b.blocks[blockIdx.x];
    const int lane = threadIdx.x % 32, length = (int)k.length, first = (int)k.query + threadIdx.x / 32 * 16;
    const size_t stride = 3 * (size_t)b.hidden;
    const bf16 *base = b.qkv + k.row * stride + blockIdx.y * D,
               *slope = b.dcontext + k.row * (size_t)b.hidden + blockIdx.y * D;
    const uint32_t shared = (uint32_t)__cvta_generic_to_shared(memory);
    uint32_t key[D / 16][4], value[D / 16][4];
    load_rows<D>(key, base + b.hidden, stride, first, length);
    load_rows<D>(value, base + 2 * b.hidden, stride, first, length);
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};
    const int count = (length + SF_ATTEND_KEYS - 1) / SF_ATTEND_KEYS;
    tile_load<D>(shared, base, stride, length);
    tile_load<D>(shared + tile, slope, b.hidden, length);
    copy_commit();
    for (int t = 0; t < count; t++) {
        const uint32_t here = shared + (t & 1) * 2 * tile, there = shared + (~t & 1) * 2 * tile;
        if (threadIdx.x < SF_ATTEND_KEYS) {
            const int row = t * SF_ATTEND_KEYS + (int)threadIdx.x;
            const size_t at = (k.row + (size_t)(row < length ? row : 0)) * b.heads + blockIdx.y;
            sums[t & 1][threadIdx.x] = row < length ? b.sums[at] : INFINITY; /* then the share is 0 */
            deltas[t & 1][threadIdx.x] = b.deltas[at];
        }
        copy_wait<0>();
        __syncthreads();
        if (t + 1 < count) {
            const int done = (t + 1) * SF_ATTEND_KEYS;
            tile_load<D>(there, base + done * stride, stride, length - done);
            tile_load<D>(there + tile, slope + done * (size_t)b.hidden, b.hidden, length - done);
            copy_commit();
        }
        float s[8][4] = {}, ds[8][4] = {};
        times_tile<D>(s, key, here);
        times_tile<D>(ds, value, here + tile);
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int query = j * 8 + (lane & 3) * 2 + (i & 1);
                s[j][i] = exp2_fast(fmaf(s[j][i], b.scale2, -sums[t & 1][query]));
                ds[j][i] = s[j][i] * (ds[j][i] - deltas[t & 1][query]);
            }
        add_times_tile<D>(dv, s, here + tile);
        add_times_tile<D>(dk, ds, here);
    }
    bf16 *out = b.dqkv + k.row * stride + blockIdx.y * D;
    store_rows<D>(out + b.hidden, stride, dk, b.scale, first, length);
    store_rows<D>(out + 2 * b.hidden, stride, dv, 1, first, length);
}

/* deltas (rows, heads): a warp a row, D / 8 lanes a head at a time. */
template <int D>
__global__ void __launch_bounds__(256)
    attend_deltas(float *deltas, const bf16 *context, const bf16 *dcontext, int hidden, int heads, int rows)
{
    constexpr int lanes = D / 8; /* 16 bytes each: 4 or 8 lanes */
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    for (int at = lane * 8; at < (hidden + 255) / 256 * 256; at += 256) {
        float sum = 0;
        if (at < hidden) {
            const uint4 x = *(const uint4 *)(context + (size_t)row * hidden + at),
                        y = *(const uint4 *)(dcontext + (size_t)row * hidden + at);
            const uint32_t a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int i = 0; i < 4; i++) sum = fmaf(low_of(a[i]), low_of(b[i]), fmaf(high_of(a[i]), high_of(b[i]), sum));
        }
#pragma unroll
        for (int i = lanes / 2; i; i /= 2) sum += __shfl_xor_sync(~0u, sum, i);
        if (at < hidden && lane % lanes == 0) deltas[(size_t)row * heads + at / D] = sum;
    }
}

} // namespace sf
#endif
