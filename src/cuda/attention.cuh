/* Attention of an encoder on the GPU: scores never leave the registers.
 *
 * A block takes 128 queries of one head of one text, a warp 32 of them, and walks over the keys 64 at a time.
 * Exponentials are what bounds heads of 32 (16 a cycle and multiprocessor), so everything else is kept out of their
 * way: two tiles of queries share every fragment of keys and values, and what was summed is rescaled only when the
 * largest score of a row grew by more than 2^8, which almost never happens after the first keys.
 *
 * Encoders differ in what a score knows about the distance of its two pieces: kinds of attention (`relation`), of which
 * each has kernels of its own, so that BERT's are not slowed down. So have rotary positions, where attention turns
 * queries and keys while it reads them.
 *
 * The order of every sum depends on the text's length and the query's place in it alone. */
#ifndef SF_CUDA_ATTENTION_CUH
#define SF_CUDA_ATTENTION_CUH

#include "cuda/numbers.cuh"

enum { SF_ATTEND_QUERIES = 128, SF_ATTEND_KEYS = 64, SF_ATTEND_THREADS = 128 };

/* What a block works on: `length` rows of qkv from `row` on are a text, its queries from `query` on are the block's. */
typedef struct sf_attend_block {
    uint32_t row, length, query;
} sf_attend_block;

namespace sf
{

/* LOCAL: pieces farther than a window are not seen. BIASED: a number of every head is added for each distance. PARTS:
 * queries meet keys of places, and keys queries of places. */
enum attend_kind { ATTEND_ALL, ATTEND_LOCAL, ATTEND_BIASED, ATTEND_PARTS };

/* How far it is from queries to keys. Tables of distances have 2 * reach entries, that of key - query at + reach, which
 * is at least ATTEND_SLACK more than texts are long, so that rows behind their end need no care. */
enum { ATTEND_SLACK = 256 };
struct relation {
    int window;                 /* LOCAL */
    int reach;                  /* BIASED, PARTS */
    const float *bias;          /* BIASED: (heads, 2 * reach), times log2(e) */
    const int32_t *buckets;     /* PARTS: (2 * reach): columns of what follows */
    int columns;                /* of those, a multiple of 8 */
    uint32_t first;             /* the row of qkv that the following begin with */
    const bf16 *keys, *queries; /* (rows, heads, columns): of queries by keys of places, of keys by queries of places;
                                   NULL: none */
    bf16 *dkeys, *dqueries;     /* their gradients, which start as zeros */
    int low;                    /* PARTS: the first column that is there */
    const float *turns;         /* TURNED: (tokens, D) of rotary positions */
    bf16 *shares,
        *dscores; /* PARTS, training: (rows, heads, width): what the way back of queries leaves that of keys */
    int width;    /* a multiple of SF_ATTEND_KEYS */
};

/* The place of 16 bytes in a tile of D columns, so that neither copies nor ldmatrix meet in a bank. */
template <int D> __device__ inline uint32_t tile_at(uint32_t row, uint32_t chunk)
{
    constexpr uint32_t chunks = D / 8;
    return (row * chunks + (chunks == 4 ? chunk ^ ((row >> 1) & 3) : chunk ^ (row & 7))) * 16;
}

/* Copies 64 rows of D columns into a tile; rows from `valid` on become 0. */
template <int D> __device__ inline void tile_load(uint32_t tile, const bf16 *from, size_t stride, int valid)
{
    constexpr int chunks = D / 8;
#pragma unroll
    for (int i = threadIdx.x; i < SF_ATTEND_KEYS * chunks; i += SF_ATTEND_THREADS) {
        const int row = i / chunks, chunk = i % chunks;
        copy_async(tile + tile_at<D>(row, chunk), from + (row < valid ? row : 0) * stride + chunk * 8, row < valid);
    }
}

/* Which tiles of keys the queries first .. last see. */
template <int KIND> __device__ inline void tiles_seen(int *begin, int *end, int first, int last, int length, int window)
{
    *begin = KIND == ATTEND_LOCAL ? max(0, first - window) / SF_ATTEND_KEYS : 0;
    const int most = KIND == ATTEND_LOCAL ? min(length, last + window + 1) : length;
    *end = (most + SF_ATTEND_KEYS - 1) / SF_ATTEND_KEYS;
}

/* The column, of those that are there, of a distance that stands at `at` in the table. Texts have columns for all their
 * distances; rows behind their end, which nobody reads, get one that is there. */
__device__ inline int place_column(const relation &r, int at)
{
    return min(max(r.buckets[at] - r.low, 0), r.columns - 1);
}

/* What PARTS adds to a score, before its scale: `query` and `key` are places in a text that begins at `row`. */
__device__ inline float place_terms(const relation &r, size_t row, int query, int key, int column)
{
    const size_t base = (row - r.first) * gridDim.y + blockIdx.y, heads = gridDim.y;
    float sum = 0;
    if (r.keys) sum = __bfloat162float(r.keys[(base + query * heads) * r.columns + column]);
    if (r.queries) sum += __bfloat162float(r.queries[(base + key * heads) * r.columns + column]);
    return sum;
}

/* Turns two pairs of numbers, each by its own angle: bf16 in the halves of a word, x with y. */
__device__ inline void turn_words(uint32_t *x, uint32_t *y, float2 cosine, float2 sine)
{
    const float a = low_of(*x), b = high_of(*x), c = low_of(*y), d = high_of(*y);
    *x = pack(fmaf(a, cosine.x, -__fmul_rn(c, sine.x)), fmaf(b, cosine.y, -__fmul_rn(d, sine.y)));
    *y = pack(fmaf(c, cosine.x, __fmul_rn(a, sine.x)), fmaf(d, cosine.y, __fmul_rn(b, sine.y)));
}

/* Turns 16 rows, `first` .. of a text, as the left side of products has them. turns (tokens, D): D/2 cosines of a
 * position, then as many sines; numbers k and k + D/2 are a pair, which one thread has. */
template <int D> __device__ inline void turn_rows(uint32_t (*rows)[4], const float *turns, int first, int length)
{
    constexpr int half = D / 2, steps = D / 32;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int s = 0; s < steps; s++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = first + lane / 4 + (i & 1) * 8, k = s * 16 + (lane & 3) * 2 + (i >> 1) * 8;
            if (row >= length) continue;
            const float *turn = turns + (size_t)row * D + k;
            turn_words(&rows[s][i], &rows[s + steps][i], *(const float2 *)turn, *(const float2 *)(turn + half));
        }
}

/* What a thread has of 64 keys on their way into a tile: D/32 times 16 bytes and the 16 that they are turned with. Keys
 * wait in registers while the tile before them is used, and are turned there. */
template <int D> struct waiting {
    uint4 low[D / 32], high[D / 32];
};

/* Its i-th row of the tile, and chunk of the first half of that row. Of eight rows in turn the first and the fifth, the
 * second and the sixth ..., so that no two of eight threads meet in a bank. */
template <int D> __device__ inline int waiting_row(int i)
{
    const int row = ((int)threadIdx.x + i * SF_ATTEND_THREADS) / (D / 16);
    return (row & ~7) + (row & 1) * 4 + (row >> 1 & 3);
}
template <int D> __device__ inline int waiting_chunk() { return (int)threadIdx.x % (D / 16); }

/* Keys of a text from `first` on. Rows from `length` on, whose scores are not used, become the last one. */
template <int D>
__device__ inline void waiting_load(waiting<D> *w, const bf16 *keys, size_t stride, int first, int length)
{
#pragma unroll
    for (int i = 0; i < D / 32; i++) {
        const int place = min(first + waiting_row<D>(i), length - 1);
        const bf16 *from = keys + place * stride + waiting_chunk<D>() * 8;
        w->low[i] = __ldcg((const uint4 *)from);
        w->high[i] = __ldcg((const uint4 *)(from + D / 2));
    }
}

/* Turns them, as `turn` does. */
template <int D> __device__ inline void waiting_turn(waiting<D> *w, const float *turns, int first, int length)
{
    constexpr int half = D / 2;
#pragma unroll
    for (int i = 0; i < D / 32; i++) {
        const int place = min(first + waiting_row<D>(i), length - 1);
        const float4 *turn = (const float4 *)(turns + (size_t)place * D + waiting_chunk<D>() * 8);
        const float4 c = turn[0], d = turn[1], s = turn[half / 4], t = turn[half / 4 + 1];
        turn_words(&w->low[i].x, &w->high[i].x, make_float2(c.x, c.y), make_float2(s.x, s.y));
        turn_words(&w->low[i].y, &w->high[i].y, make_float2(c.z, c.w), make_float2(s.z, s.w));
        turn_words(&w->low[i].z, &w->high[i].z, make_float2(d.x, d.y), make_float2(t.x, t.y));
        turn_words(&w->low[i].w, &w->high[i].w, make_float2(d.z, d.w), make_float2(t.z, t.w));
    }
}

template <int D> __device__ inline void waiting_store(uint32_t tile, const waiting<D> &w)
{
#pragma unroll
    for (int i = 0; i < D / 32; i++) {
        store_shared(tile + tile_at<D>(waiting_row<D>(i), waiting_chunk<D>()), w.low[i]);
        store_shared(tile + tile_at<D>(waiting_row<D>(i), waiting_chunk<D>() + D / 16), w.high[i]);
    }
}

/* context (rows, hidden) from qkv (rows, 3 * hidden). sums (rows, heads), which may be NULL, get the logarithm to
 * base 2 of each row's sum of powers of 2: what training needs. `scale` holds log2(e). TURNED: queries and keys are
 * turned on the way. */
template <int D, int KIND, bool TURNED = false>
__global__ void __launch_bounds__(SF_ATTEND_THREADS, D == 32 && KIND <= ATTEND_LOCAL ? 3 : 2)
    attend(bf16 *context, float *sums, const bf16 *qkv, const sf_attend_block *blocks, int hidden, float scale,
           const relation r)
{
    constexpr int steps = D / 16, columns = D / 8, keys = SF_ATTEND_KEYS, tile = keys * D * (int)sizeof(bf16);
    __shared__ __align__(128) char memory[4 * tile]; /* keys and values, twice */
    const sf_attend_block b = blocks[blockIdx.x];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, length = (int)b.length;
    const size_t stride = 3 * (size_t)hidden;
    const bf16 *base = qkv + b.row * stride + blockIdx.y * D;
    const uint32_t shared = (uint32_t)__cvta_generic_to_shared(memory);
    const int first = (int)b.query + warp * 32; /* of the warp's queries */

    uint32_t q[2][steps][4];
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int s = 0; s < steps; s++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = first + m * 16 + lane / 4 + (i & 1) * 8,
                          column = s * 16 + (lane & 3) * 2 + (i >> 1) * 8;
                q[m][s][i] = row < length ? *(const uint32_t *)(base + row * stride + column) : 0;
            }
    float out[2][columns][4] = {}, most[2][2], sum[2][2] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) most[i / 2][i % 2] = KIND == ATTEND_LOCAL ? -1e30f : -INFINITY;

    int begin, count;
    tiles_seen<KIND>(&begin, &count, (int)b.query, (int)b.query + SF_ATTEND_QUERIES - 1, length, r.window);
    [[maybe_unused]] waiting<D> next_keys;
    if constexpr (TURNED)
        waiting_load<D>(&next_keys, base + hidden, stride, begin * keys, length);
    else
        tile_load<D>(shared + (begin & 1) * 2 * tile, base + hidden + (size_t)begin * keys * stride, stride,
                     length - begin * keys);
    tile_load<D>(shared + (begin & 1) * 2 * tile + tile, base + 2 * hidden + (size_t)begin * keys * stride, stride,
                 length - begin * keys);
    copy_commit();
    if constexpr (TURNED) {
#pragma unroll
        for (int m = 0; m < 2; m++) turn_rows<D>(q[m], r.turns, first + m * 16, length);
        waiting_turn<D>(&next_keys, r.turns, begin * keys, length);
        waiting_store<D>(shared + (begin & 1) * 2 * tile, next_keys);
        if (begin + 1 < count) waiting_load<D>(&next_keys, base + hidden, stride, (begin + 1) * keys, length);
    }
    for (int k = begin; k < count; k++) {
        const uint32_t here = shared + (k & 1) * 2 * tile, there = shared + (~k & 1) * 2 * tile;
        if constexpr (TURNED) /* before the barrier, at which early warps wait anyhow */
            if (k + 1 < count) waiting_turn<D>(&next_keys, r.turns, (k + 1) * keys, length);
        copy_wait<0>();
        __syncthreads();
        if (k + 1 < count) {
            const bf16 *next = base + (size_t)(k + 1) * keys * stride;
            if constexpr (!TURNED) tile_load<D>(there, next + hidden, stride, length - (k + 1) * keys);
            tile_load<D>(there + tile, next + 2 * hidden, stride, length - (k + 1) * keys);
            copy_commit();
            if constexpr (TURNED) {
                waiting_store<D>(there, next_keys);
                if (k + 2 < count) waiting_load<D>(&next_keys, base + hidden, stride, (k + 2) * keys, length);
            }
        }
        if (first >= length) continue;
        if (KIND == ATTEND_LOCAL && (k * keys > first + 31 + r.window || (k + 1) * keys <= first - r.window)) continue;
        float s[2][8][4] = {};
#pragma unroll
        for (int j = 0; j < 4; j++) /* 16 keys */
#pragma unroll
            for (int c = 0; c < steps; c++) {
                uint32_t key[4];
                load_matrices(key,
                              here + tile_at<D>(j * 16 + (lane & 7) + ((lane >> 4) << 3), c * 2 + ((lane >> 3) & 1)));
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    multiply(s[m][2 * j], q[m][c], key[0], key[1]);
                    multiply(s[m][2 * j + 1], q[m][c], key[2], key[3]);
                }
            }
        if constexpr (KIND == ATTEND_BIASED || KIND == ATTEND_PARTS) {
            /* Distances of a thread's scores: those of 11 steps of 8, and of the two keys beside each other. */
            const int nearest = k * keys - first + (lane & 3) * 2 - lane / 4 - 24 + r.reach;
            if constexpr (KIND == ATTEND_BIASED) {
                const float *table = r.bias + (size_t)blockIdx.y * 2 * r.reach + nearest;
                float bias[11][2];
#pragma unroll
                for (int i = 0; i < 22; i++) bias[i / 2][i % 2] = table[i / 2 * 8 + i % 2];
#pragma unroll
                for (int i = 0; i < 64; i++) {
                    const int m = i / 32, j = i / 4 % 8, h = i / 2 % 2;
                    s[m][j][i % 4] = fmaf(s[m][j][i % 4], scale, bias[j - 2 * m - h + 3][i & 1]);
                }
            } else {
                int column[11][2];
#pragma unroll
                for (int i = 0; i < 22; i++) column[i / 2][i % 2] = place_column(r, nearest + i / 2 * 8 + i % 2);
#pragma unroll
                for (int i = 0; i < 64; i++) {
                    const int m = i / 32, j = i / 4 % 8, h = i / 2 % 2;
                    const int query = min(first + m * 16 + lane / 4 + h * 8, length - 1),
                              key = min(k * keys + j * 8 + (lane & 3) * 2 + (i & 1), length - 1);
                    s[m][j][i % 4] += place_terms(r, b.row, query, key, column[j - 2 * m - h + 3][i & 1]);
                }
            }
        }
        const int begins = k * keys - first + (lane & 3) * 2 - lane / 4; /* key - query of a thread's first score */
        const bool near = first + 31 - k * keys <= r.window && (k + 1) * keys - 1 - first <= r.window; /* all see all */
        if (KIND == ATTEND_LOCAL && !near)
#pragma unroll
            for (int i = 0; i < 64; i++) {
                const int far = begins + (i / 4 % 8) * 8 + (i & 1) - i / 32 * 16 - i / 2 % 2 * 8;
                if ((uint32_t)(far + r.window) > 2 * (uint32_t)r.window) /* on either side */
                    s[i / 32][i / 4 % 8][i % 4] = -INFINITY;
            }
        if ((k + 1) * keys > length)
#pragma unroll
            for (int i = 0; i < 64; i++)
                if (k * keys + (i / 4 % 8) * 8 + (lane & 3) * 2 + (i & 1) >= length)
                    s[i / 32][i / 4 % 8][i % 4] = -INFINITY;
        const float by = KIND == ATTEND_BIASED ? 1 : scale;
        bool grew = false;
        float top[2][2];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int m = i / 2, h = i % 2;
            float t = s[m][0][2 * h];
#pragma unroll
            for (int j = 0; j < 8; j++) t = fmaxf(t, fmaxf(s[m][j][2 * h], s[m][j][2 * h + 1]));
            t = fmaxf(t, __shfl_xor_sync(~0u, t, 1));
            t = fmaxf(t, __shfl_xor_sync(~0u, t, 2));
            top[m][h] = t * by; /* scale > 0 and holds log2(e) */
            grew |= top[m][h] > most[m][h] + 8;
        }
        if (__any_sync(~0u, grew))
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int m = i / 2, h = i % 2;
                const float next = fmaxf(most[m][h], top[m][h]), share = exp2_fast(most[m][h] - next);
                most[m][h] = next;
                sum[m][h] *= share;
#pragma unroll
                for (int c = 0; c < columns; c++) {
                    out[m][c][2 * h] *= share;
                    out[m][c][2 * h + 1] *= share;
                }
            }
#pragma unroll
        for (int j = 0; j < 4; j++) { /* 16 keys */
            uint32_t share[2][4];
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int i = 0; i < 4; i++) { /* rows h, keys 8 * (i >> 1) */
                    const int h = i & 1;
                    const float *x = s[m][2 * j + (i >> 1)] + 2 * h;
                    const float a = exp2_fast(fmaf(x[0], by, -most[m][h])), c = exp2_fast(fmaf(x[1], by, -most[m][h]));
                    sum[m][h] += a + c;
                    share[m][i] = pack(a, c);
                }
#pragma unroll
            for (int c = 0; c < steps; c++) {
                uint32_t value[4];
                load_matrices_transposed(value, here + tile + tile_at<D>(j * 16 + (lane & 15), c * 2 + (lane >> 4)));
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    multiply(out[m][2 * c], share[m], value[0], value[1]);
                    multiply(out[m][2 * c + 1], share[m], value[2], value[3]);
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int m = i / 2, h = i % 2, row = first + m * 16 + lane / 4 + h * 8;
        float total = sum[m][h];
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        const float share = 1 / total;
        if (sums && row < length && (lane & 3) == 0)
            sums[(b.row + row) * (size_t)gridDim.y + blockIdx.y] = most[m][h] + log2f(total);
        if (row < length)
#pragma unroll
            for (int c = 0; c < columns; c++)
                *(uint32_t *)(context + (b.row + row) * (size_t)hidden + blockIdx.y * D + c * 8 +
                              (lane & 3) * 2) = pack(out[m][c][2 * h] * share, out[m][c][2 * h + 1] * share);
    }
}

} // namespace sf
#endif
