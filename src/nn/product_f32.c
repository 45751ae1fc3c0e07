/* The f32 product: fused multiply-add, or not fused, which every processor can do.
 *
 * Fused or not makes other bits; how wide the instructions are does not. So there are two sorts of
 * kernels, and for each as many widths as there are instruction sets. */
#include "nn/product_kernel.h"

typedef float v4_any __attribute__((vector_size(16), aligned(4), may_alias));
typedef float v8_any __attribute__((vector_size(32), aligned(4), may_alias));
typedef float v16_any __attribute__((vector_size(64), aligned(4), may_alias));

enum { DEPTH = 128 }; /* of a block: both sides fit in the first-level cache */

static void take(void *out, sf_view in, size_t rows, size_t K)
{
    float *a = out;
    const size_t steps = sf_blocks(K);
    for (size_t s = 0; s < steps; s++)
        for (size_t r = 0; r < SF_BLOCK; r++, a += SF_STEP) {
            const size_t count = r < rows ? sf_least(SF_STEP, K - s * SF_STEP) : 0;
            if (count == SF_STEP) { /* of a known length: no call */
                memcpy(a, sf_floats(in, r) + s * SF_STEP, SF_STEP * sizeof *a);
                continue;
            }
            memset(a, 0, SF_STEP * sizeof *a);
            if (count) memcpy(a, sf_floats(in, r) + s * SF_STEP, count * sizeof *a);
        }
}

/* -------------------------------------------------------------- not fused */

#define PLAIN_MADD(a, b, c) ((a) * (b) + (c))

#define NAME(x) plain_##x##_portable
#define TARGET
#define VECTOR v4_any
#define LANES 4
#define ROWS 4
#define MADD PLAIN_MADD
#include "nn/product_f32_kernels.h"

static const sf_kernel plain_portable = {DEPTH, take, plain_multiply_portable};

#if SF_HAVE_X86
#define NAME(x) plain_##x##_avx2
#define TARGET SF_TARGET_AVX2
#define VECTOR v8_any
#define LANES 8
#define ROWS 4
#define MADD PLAIN_MADD
#include "nn/product_f32_kernels.h"

#define NAME(x) plain_##x##_avx512
#define TARGET SF_TARGET_AVX512
#define VECTOR v16_any
#define LANES 16
#define ROWS 8
#define MADD PLAIN_MADD
#include "nn/product_f32_kernels.h"

static const sf_kernel plain_avx2 = {DEPTH, take, plain_multiply_avx2},
                       plain_avx512 = {DEPTH, take, plain_multiply_avx512};

/* ------------------------------------------------------------------ fused */

#define NAME(x) fused_##x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR v8_any
#define LANES 8
#define ROWS 4
#define MADD(a, b, c) ((v8_any)_mm256_fmadd_ps(_mm256_set1_ps(a), (__m256)(b), (__m256)(c)))
#include "nn/product_f32_kernels.h"

#define NAME(x) fused_##x##_avx512
#define TARGET SF_TARGET_AVX512
#define VECTOR v16_any
#define LANES 16
#define ROWS 8
#define MADD(a, b, c) ((v16_any)_mm512_fmadd_ps(_mm512_set1_ps(a), (__m512)(b), (__m512)(c)))
#include "nn/product_f32_kernels.h"

static const sf_kernel fused_avx2 = {DEPTH, take, fused_multiply_avx2},
                       fused_avx512 = {DEPTH, take, fused_multiply_avx512};

const sf_kernel *sf_kernel_f32(int fused, sf_isa width)
{
    if (fused) return width >= SF_AVX512 ? &fused_avx512 : &fused_avx2;
    return width >= SF_AVX512 ? &plain_avx512 : width >= SF_AVX2 ? &plain_avx2 : &plain_portable;
}
#else
const sf_kernel *sf_kernel_f32(int fused, sf_isa width)
{
    (void)fused;
    (void)width;
    return &plain_portable;
}
#endif
