/* The way back through attention: gradients of queries, and of keys and values.
 *
 * Both kernels compute the shares again, from the scores and the logarithm of each row's sum that the way forward
 * left. One has queries in its rows and walks over keys, the other has keys in its rows and walks over queries; so
 * every gradient is summed by one warp in a fixed order, and nothing is added up in memory. A warp has 16 rows.
 *
 * Of kinds of attention with tables of distances, the gradients of scores are summed by distance: BIASED over all rows
 * of a block, tile by tile; PARTS for each row, where the pieces at distances of one bucket lie side by side. Scores of
 * PARTS are dear, since their terms are gathered two bytes at a time: so the first kernel writes shares and gradients
 * of scores down, as the products have them, and the second (attend_back_written) reads them. */
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
    float
        *diagonals; /* BIASED: (blocks, heads, tiles, 128): sums of gradients at distances -64 .. 63 from the tile's */
    int tiles;      /* of the longest text */
};

/* A block's numbers for one tile, where threads other than those that have them can read them. */
typedef bf16 stage_row[SF_ATTEND_KEYS + 2];

__device__ inline void stage_scores(stage_row *stage, const float (*ds)[4])
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(uint32_t *)&stage[row + h * 8][j * 8 + (lane & 3) * 2] = pack(ds[j][2 * h], ds[j][2 * h + 1]);
}

/* A warp's first `rows` rows of the stage; those at `out` are `apart` apart. */
__device__ inline void store_stage(bf16 *out, size_t apart, const stage_row *stage, int rows)
{
    const int lane = threadIdx.x % 32;
    const stage_row *const own = stage + threadIdx.x / 32 * 16;
#pragma unroll
    for (int row = 0; row < 16; row++)
        if (row < rows) *(uint32_t *)(out + row * apart + lane * 2) = *(const uint32_t *)&own[row][lane * 2];
}

/* Sums of a tile of scores along its diagonals, each by one thread; rows are queries. */
__device__ inline void sum_diagonals(float *out, const stage_row *stage)
{
    const int far = (int)threadIdx.x - 64;
    float sum = 0;
    for (int row = max(0, -far); row < min((int)BACK_ROWS, SF_ATTEND_KEYS - far); row++)
        sum += __bfloat162float(stage[row][row + far]);
    out[threadIdx.x] = sum;
}

/* The sum over neighbours at distances of one bucket, as far as it has come. */
struct run {
    int bucket;
    float sum;
};

/* 1 or -1 when the buckets that sum_runs walks over are such a step apart each, as near ones are; else 0. */
__device__ inline int runs_of_one(const int32_t *buckets, int step, int count)
{
    const int rise = buckets[step] - buckets[0];
    bool ones = count > 1 && (rise == 1 || rise == -1);
    for (int n = (int)(threadIdx.x % 32) - 15; n < count - 1; n += 32)
        ones &= buckets[step * (n + 1)] - buckets[step * n] == rise;
    return __all_sync(~0u, ones) ? rise : 0;
}

/* Goes on with a tile of scores of a warp's first `rows` rows, the first of which is (columns) at `out` and the others
 * each `apart` farther; lane l < 16 has the sum of row l. buckets: of the first row's first neighbour; of neighbour i
 * of row l it is that at step * (i - l). Where every neighbour has a bucket of its own, rows are copied, the warp side
 * by side; else each lane goes along its own. */
__device__ inline void sum_runs(bf16 *out, size_t apart, run *r, stage_row *stage, const int32_t *buckets, int step,
                                int rows, int count)
{
    const int lane = threadIdx.x % 32;
    stage_row *const tile = stage + threadIdx.x / 32 * 16;
    const int rise = runs_of_one(buckets, step, count);
    if (lane < rows) {
        bf16 *const own = out + lane * apart, *const scores = tile[lane];
        buckets -= step * lane;
        if (rise) {
            if (r->bucket == buckets[0])
                scores[0] = __float2bfloat16_rn(r->sum + __bfloat162float(scores[0]));
            else if (r->bucket >= 0)
                own[r->bucket] = __float2bfloat16_rn(r->sum);
            *r = {buckets[step * (count - 1)], __bfloat162float(scores[count - 1])}; /* the last may go on */
        } else {
            for (int first = 0; first < count; first += 8) {
                int bucket[8];
                float score[8];
#pragma unroll
                for (int i = 0; i < 8; i++)
                    bucket[i] = buckets[step * (first + i)], score[i] = __bfloat162float(scores[first + i]);
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    if (first + i >= count) break;
                    if (bucket[i] != r->bucket) {
                        if (r->bucket >= 0) own[r->bucket] = __float2bfloat16_rn(r->sum);
                        *r = {bucket[i], 0};
                    }
                    r->sum += score[i];
                }
            }
        }
        buckets += step * lane;
    }
    __syncwarp();
    for (int row = 0; rise && row < rows; row++) {
        const int begin = buckets[-step * row];
        for (int i = lane; i < count - 1; i += 32) out[row * apart + begin + rise * i] = tile[row][i];
    }
}

/* BIASED: scores of rows `first` .. and the tile from `other` on, with their scale, get what their distance adds. Rows
 * are queries, or else keys. */
template <bool QUERIES>
__device__ inline void add_bias(float (*s)[4], const relation &r, int first, int other, float scale)
{
    const int lane = threadIdx.x % 32, apart = other + (lane & 3) * 2 - first - lane / 4;
    /* Element (j, 2 h + e) is at distance `apart` + 8 (j - h) + e, in the order of rows and columns. */
    float bias[9][2];
#pragma unroll
    for (int i = 0; i < 18; i++) {
        const int far = apart + (i / 2 - 1) * 8 + i % 2;
        bias[i / 2][i % 2] = r.bias[(size_t)blockIdx.y * 2 * r.reach + (QUERIES ? far : -far) + r.reach];
    }
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[j][i] = fmaf(s[j][i], scale, bias[j - (i >> 1) + 1][i & 1]);
}

/* PARTS: what scores of queries `first` .. and the keys from `other` on begin with, before their products. */
__device__ inline void begin_with_places(float (*s)[4], const relation &r, size_t row, int first, int other, int length)
{
    const int lane = threadIdx.x % 32, apart = other + (lane & 3) * 2 - first - lane / 4;
    int column[9][2];
#pragma unroll
    for (int i = 0; i < 18; i++) column[i / 2][i % 2] = place_column(r, apart + (i / 2 - 1) * 8 + i % 2 + r.reach);
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int h = i >> 1, query = min(first + lane / 4 + h * 8, length - 1),
                      key = min(other + j * 8 + (lane & 3) * 2 + (i & 1), length - 1);
            s[j][i] = place_terms(r, row, query, key, column[j - h + 1][i & 1]);
        }
}

/* Of gradients by places, those of a piece and of the block's head: where column 0 is, or would be. */
template <int KIND> __device__ inline bf16 *place_row(bf16 *of, const relation &r, size_t row, int piece)
{
    if (KIND != ATTEND_PARTS || !of) return NULL;
    return of + ((row - r.first + (size_t)piece) * gridDim.y + blockIdx.y) * r.columns - r.low;
}

/* Whether a piece sees another. */
template <int KIND> __device__ inline bool sees(const relation &r, int far)
{
    return KIND != ATTEND_LOCAL || (far <= r.window && -far <= r.window);
}

template <int D, int KIND>
__global__ void __launch_bounds__(SF_ATTEND_THREADS, KIND == ATTEND_PARTS ? 3 : 1)
    attend_back_queries(const back b, const relation r)
{
    constexpr int tile = SF_ATTEND_KEYS * D * (int)sizeof(bf16);
    __shared__ __align__(128) char memory[4 * tile];
    __shared__ __align__(16) stage_row stage[KIND >= ATTEND_BIASED ? BACK_ROWS : 1];
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
    const float by = KIND == ATTEND_BIASED ? 1 : b.scale2;
    bf16 *dplaces = place_row<KIND>(r.dkeys, r, k.row, first + (lane & 15));
    const size_t apart = (size_t)gridDim.y * r.columns, wide = (size_t)gridDim.y * r.width; /* of rows there */
    const size_t written = ((k.row - r.first + (size_t)first) * gridDim.y + blockIdx.y) * r.width;
    bf16 *const shares = r.shares + written, *const dscores = r.dscores + written;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = first + lane / 4 + h * 8;
        const size_t at = (k.row + (size_t)(row < length ? row : 0)) * b.heads + blockIdx.y;
        sum[h] = row < length ? b.sums[at] : INFINITY;
        delta[h] = b.deltas[at];
    }
    int begin, count;
    tiles_seen<KIND>(&begin, &count, (int)k.query, (int)k.query + BACK_ROWS - 1, length, r.window);
    const size_t skipped = (size_t)begin * SF_ATTEND_KEYS;
    tile_load<D>(shared + (begin & 1) * 2 * tile, base + skipped * stride + b.hidden, stride, length - (int)skipped);
    tile_load<D>(shared + (begin & 1) * 2 * tile + tile, base + skipped * stride + 2 * b.hidden, stride,
                 length - (int)skipped);
    copy_commit();
    run so_far = {-1, 0};
    for (int t = begin; t < count; t++) {
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
        if constexpr (KIND == ATTEND_PARTS)
            begin_with_places(s, r, k.row, first, t * SF_ATTEND_KEYS, length); /* they arrive during the next product */
        times_tile<D>(ds, dout, here + tile);
        times_tile<D>(s, q, here);
        if constexpr (KIND == ATTEND_BIASED) add_bias<true>(s, r, first, t * SF_ATTEND_KEYS, b.scale2);
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int key = t * SF_ATTEND_KEYS + j * 8 + (lane & 3) * 2 + (i & 1);
                const bool seen = key < length && sees<KIND>(r, key - first - lane / 4 - (i >> 1) * 8);
                s[j][i] = seen ? exp2_fast(fmaf(s[j][i], by, -sum[i >> 1])) : 0;
                ds[j][i] = s[j][i] * (ds[j][i] - delta[i >> 1]);
            }
        add_times_tile<D>(dq, ds, here);
        if constexpr (KIND == ATTEND_PARTS) {
            stage_scores(stage, s);
            __syncwarp();
            store_stage(shares + t * SF_ATTEND_KEYS, wide, stage, length - first);
            __syncwarp();
        }
        if constexpr (KIND >= ATTEND_BIASED) stage_scores(stage, ds);
        if (KIND == ATTEND_BIASED && b.diagonals) {
            __syncthreads();
            sum_diagonals(b.diagonals + ((blockIdx.x * (size_t)b.heads + blockIdx.y) * b.tiles + t) * 128, stage);
        }
        if constexpr (KIND == ATTEND_PARTS) {
            __syncwarp();
            store_stage(dscores + t * SF_ATTEND_KEYS, wide, stage, length - first);
            if (r.dkeys && first < length)
                sum_runs(dplaces - (lane & 15) * apart, apart, &so_far, stage,
                         r.buckets + t * SF_ATTEND_KEYS - first + r.reach, 1, min(16, length - first),
                         min((int)SF_ATTEND_KEYS, length - t * SF_ATTEND_KEYS));
            __syncwarp();
        }
    }
    if (so_far.bucket >= 0) dplaces[so_far.bucket] = __float2bfloat16_rn(so_far.sum);
    store_rows<D>(b.dqkv + k.row * stride + blockIdx.y * D, stride, dq, b.scale, first, length);
}

/* Of all kinds but PARTS. */
template <int D, int KIND>
__global__ void __launch_bounds__(SF_ATTEND_THREADS) attend_back_keys(const back b, const relation r)
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
    const float by = KIND == ATTEND_BIASED ? 1 : b.scale2;
    int begin, count;
    tiles_seen<KIND>(&begin, &count, (int)k.query, (int)k.query + BACK_ROWS - 1, length, r.window);
    const size_t skipped = (size_t)begin * SF_ATTEND_KEYS;
    tile_load<D>(shared + (begin & 1) * 2 * tile, base + skipped * stride, stride, length - (int)skipped);
    tile_load<D>(shared + (begin & 1) * 2 * tile + tile, slope + skipped * b.hidden, b.hidden, length - (int)skipped);
    copy_commit();
    for (int t = begin; t < count; t++) {
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
        if constexpr (KIND == ATTEND_BIASED) add_bias<false>(s, r, first, t * SF_ATTEND_KEYS, b.scale2);
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int query = j * 8 + (lane & 3) * 2 + (i & 1);
                const bool seen = sees<KIND>(r, t * SF_ATTEND_KEYS + query - first - lane / 4 - (i >> 1) * 8);
                s[j][i] = seen ? exp2_fast(fmaf(s[j][i], by, -sums[t & 1][query])) : 0;
                ds[j][i] = s[j][i] * (ds[j][i] - deltas[t & 1][query]);
            }
        add_times_tile<D>(dv, s, here + tile);
        add_times_tile<D>(dk, ds, here);
    }
    bf16 *out = b.dqkv + k.row * stride + blockIdx.y * D;
    store_rows<D>(out + b.hidden, stride, dk, b.scale, first, length);
    store_rows<D>(out + 2 * b.hidden, stride, dv, 1, first, length);
}

/* out (16, D) += a warp's 16 columns of square (64, 64), transposed, * tile (64, D). They are put on the stage too, as
 * rows, where there is one. */
template <int D>
__device__ inline void add_columns_times_tile(float (*out)[4], uint32_t square, uint32_t tile, stage_row *stage)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        uint32_t left[4];
        load_matrices_transposed(left, square + tile_at<64>(j * 16 + (lane & 7) + ((lane >> 4) << 3),
                                                            warp * 2 + ((lane >> 3) & 1)));
#pragma unroll
        for (int i = 0; i < 4 && stage; i++)
            *(uint32_t *)&stage[warp * 16 + lane / 4 + (i & 1) * 8][j * 16 + (lane & 3) * 2 + (i >> 1) * 8] = left[i];
#pragma unroll
        for (int c = 0; c < D / 16; c++) {
            uint32_t part[4];
            load_matrices_transposed(part, tile + tile_at<D>(j * 16 + (lane & 15), c * 2 + (lane >> 4)));
            multiply(out[2 * c], left, part[0], part[1]);
            multiply(out[2 * c + 1], left, part[2], part[3]);
        }
    }
}

/* PARTS: gradients of keys and values, from the shares and the gradients of scores that attend_back_queries wrote. */
template <int D>
__global__ void __launch_bounds__(SF_ATTEND_THREADS, 4) attend_back_written(const back b, const relation r)
{
    constexpr int tile = SF_ATTEND_KEYS * D * (int)sizeof(bf16),
                  square = SF_ATTEND_KEYS * BACK_ROWS * (int)sizeof(bf16);
    __shared__ __align__(128) char memory[2 * tile + 2 * square];
    __shared__ __align__(16) stage_row stage[BACK_ROWS];
    const sf_attend_block k = b.blocks[blockIdx.x];
    const int lane = threadIdx.x % 32, length = (int)k.length, first = (int)k.query + threadIdx.x / 32 * 16;
    const size_t stride = 3 * (size_t)b.hidden, wide = (size_t)gridDim.y * r.width;
    const bf16 *const queries = b.qkv + k.row * stride + blockIdx.y * D, *const slopes = b.dcontext +
                                                                                         k.row * (size_t)b.hidden +
                                                                                         blockIdx.y * D;
    const size_t written = ((k.row - r.first) * (size_t)gridDim.y + blockIdx.y) * r.width + k.query;
    const uint32_t shared = (uint32_t)__cvta_generic_to_shared(memory);
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};
    bf16 *const dplaces = place_row<ATTEND_PARTS>(r.dqueries, r, k.row, first + (lane & 15));
    const size_t apart = (size_t)gridDim.y * r.columns;
    run so_far = {-1, 0};
    for (int done = 0; done < length; done += SF_ATTEND_KEYS) {
        __syncthreads(); /* the tiles before were read */
        tile_load<D>(shared, queries + done * stride, stride, length - done);
        tile_load<D>(shared + tile, slopes + done * (size_t)b.hidden, b.hidden, length - done);
        tile_load<64>(shared + 2 * tile, r.shares + written + done * wide, wide, length - done);
        tile_load<64>(shared + 2 * tile + square, r.dscores + written + done * wide, wide, length - done);
        copy_commit();
        copy_wait<0>();
        __syncthreads();
        add_columns_times_tile<D>(dv, shared + 2 * tile, shared + tile, NULL);
        add_columns_times_tile<D>(dk, shared + 2 * tile + square, shared, stage);
        __syncwarp();
        if (r.dqueries && first < length)
            sum_runs(dplaces - (lane & 15) * apart, apart, &so_far, stage, r.buckets + first - done + r.reach, -1,
                     min(16, length - first), min((int)SF_ATTEND_KEYS, length - done));
        __syncwarp();
    }
    if (so_far.bucket >= 0) dplaces[so_far.bucket] = __float2bfloat16_rn(so_far.sum);
    bf16 *out = b.dqkv + k.row * stride + blockIdx.y * D;
    store_rows<D>(out + b.hidden, stride, dk, b.scale, first, length);
    store_rows<D>(out + 2 * b.hidden, stride, dv, 1, first, length);
}

/* sums (SUM_SHARES, heads, slots) of diagonals by distance, slots as gather_bias has them: each share of the blocks in
 * order. */
enum { SUM_SHARES = 8 };
static __global__ void __launch_bounds__(128)
    add_diagonals(float *sums, const float *diagonals, const sf_attend_block *blocks, int count, int tiles)
{
    const int heads = gridDim.x, head = blockIdx.x, apart = (int)blockIdx.y - tiles,
              each = (count + SUM_SHARES - 1) / SUM_SHARES;
    float sum = 0;
    for (int i = (int)blockIdx.z * each; i < min(count, (int)(blockIdx.z + 1) * each); i++) {
        const int t = (int)blocks[i].query / BACK_ROWS + apart;
        if (t < 0 || t * SF_ATTEND_KEYS >= (int)blocks[i].length) continue;
        sum += diagonals[(((size_t)i * heads + head) * tiles + t) * 128 + threadIdx.x];
    }
    sums[(((size_t)blockIdx.z * heads + head) * gridDim.y + blockIdx.y) * 128 + threadIdx.x] = sum;
}

/* all (count) += the shares' sums. */
static __global__ void __launch_bounds__(256) add_shares(float *all, const float *sums, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i >= count) return;
    float sum = all[i];
    for (int k = 0; k < SUM_SHARES; k++) sum += sums[k * count + i];
    all[i] = sum;
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
