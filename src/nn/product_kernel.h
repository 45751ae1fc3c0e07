/* What the files of the matrix product share: the shape of a block, and one kernel for each
 * instruction set.
 *
 * A product is made of blocks of SF_BLOCK rows by SF_BLOCK columns. Its inner dimension is
 * walked in steps of SF_STEP, zero-padded:
 *
 *   left side   (step, row, SF_STEP)                   bf16; f32 for sets without, and for f32
 *   right side  (panel, step, half, pair, column, 2)   bf16: a panel is two halves of 16
 *               columns; the elements of two neighbouring rows lie side by side, as the
 *               dot-product instructions need them
 *               (panel, step, row, column)             f32
 *   result      (row, column)                          f32 */
#ifndef SF_NN_PRODUCT_KERNEL_H
#define SF_NN_PRODUCT_KERNEL_H

#include "nn/product.h"

#include <string.h>

#if SF_HAVE_X86
#include <immintrin.h>
#endif

enum {
    SF_BLOCK = 32,
    SF_STEP = 32,
    SF_HALF = 16,
    SF_PAIRS = SF_STEP / 2,
    SF_STEP_SIZE = SF_STEP * SF_BLOCK, /* elements of a step of either side */
    SF_SUMS = SF_BLOCK * SF_BLOCK      /* elements of a result */
};

/* A product as it was asked for. */
typedef struct sf_job {
    sf_view out, a;
    const sf_packed *packed;
    const float *bias;
    sf_activation activation;
    int add;
} sf_job;

/* The plain way, for all but the tiles of AMX. */
typedef struct sf_kernel {
    size_t depth; /* inner elements of the left side to work on at a time, at most SF_DEPTH */
    /* Brings `rows` rows of K elements into the kernel's form, zero-padded to SF_BLOCK rows. */
    void (*take)(void *out, sf_view in, size_t rows, size_t K);
    /* c = a b, or c += a b when `add`, for `rows` rows at least. */
    void (*multiply)(float *c, const void *a, const void *b, size_t steps, size_t rows, int add);
} sf_kernel;

enum { SF_DEPTH = 512 };

#if SF_HAVE_X86
#define SF_TARGET_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define SF_TARGET_AMX_VBMI \
    __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")))
enum { SF_TILE_BYTES = 1024 };
typedef struct sf_tile_shapes {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} sf_tile_shapes;
extern const sf_tile_shapes sf_tiles; /* eight of 16 rows of 64 bytes */

/* Compilers do not know that tile loads read memory: what was written must be there. */
#define SF_TILE_FENCE() __asm__ volatile("" ::: "memory")

extern const sf_kernel sf_kernel_avx2, sf_kernel_avx512, sf_kernel_avx512_bf16;

/* The whole product, and the rate of the bare loop. */
void sf_product_amx(const sf_job *job, size_t M);
double sf_peak_amx(double seconds);
#endif

/* The f32 kernel, of instructions as wide as `width` has them: its bits depend on `fused` alone, which needs a
 * processor with AVX2 at least. */
const sf_kernel *sf_kernel_f32(int fused, sf_isa width);

/* A step of a panel, from a square of a (K, N) matrix or, `transposed`, of an (N, K) one: 32 by 32
 * elements, of which `rows` rows of `columns` are there. */
void sf_pack_step(sf_bf16 *out, sf_view in, int transposed, size_t rows, size_t columns, sf_isa isa);

/* sf_view_at, for kernels: a call out of a loop of tile instructions is dear, see
 * product_amx.c. */
static inline __attribute__((always_inline)) sf_view sf_shift(sf_view view, size_t row, size_t column)
{
    view.values = (char *)view.values + (row * view.stride + column) * sf_element(view.type);
    return view;
}

static inline size_t sf_blocks(size_t count) { return count / SF_BLOCK + (count % SF_BLOCK != 0); }
static inline float *sf_floats(sf_view view, size_t row) { return (float *)view.values + row * view.stride; }
static inline sf_bf16 *sf_halves(sf_view view, size_t row) { return (sf_bf16 *)view.values + row * view.stride; }

static inline float sf_widen(sf_bf16 x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline sf_bf16 sf_round(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return (sf_bf16)(bits >> 16 | 0x40); /* NaN may not become infinity */
    return (sf_bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#if SF_HAVE_X86
/* 32 elements of a row, rounded, of which `count` are there. */
SF_TARGET_AVX512_BF16 static inline __attribute__((always_inline)) __m512i sf_take_32(sf_view in, size_t row,
                                                                                      size_t column, size_t count)
{
    const __mmask32 mask = count < SF_STEP ? ((__mmask32)1 << count) - 1 : UINT32_MAX;
    if (in.type == SF_BF16) return _mm512_maskz_loadu_epi16(mask, sf_halves(in, row) + column);
    const float *x = sf_floats(in, row) + column;
    const __m512 low = _mm512_maskz_loadu_ps((__mmask16)mask, x),
                 high = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), x + 16);
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}
#endif

#endif
