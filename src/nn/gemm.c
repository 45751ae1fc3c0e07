/* Matrix products in f32 of two sides that are used once. nn/gemm.h says what they promise.
 *
 * The right side is cut into panels of PANEL columns by DEPTH rows, which are copied so that a kernel reads them in one
 * go, from the first-level cache; the left side is read where it lies, in either direction. */
#include "nn/gemm.h"

#include "nn/product.h"

#include <string.h>

#if SF_HAVE_X86
#include <immintrin.h>
#endif

enum {
    PANEL = 32,
    DEPTH = 256,
    EDGE = 224, /* rows of a panel that is not full, at a time: a multiple of the kernels' */
};

/* Rows of the left side: from one to the next, and from one of its numbers to the next. */
typedef struct left_side {
    const float *at;
    size_t row, step;
} left_side;

static inline __attribute__((always_inline)) left_side rows_from(left_side a, size_t m)
{
    return (left_side){a.at + m * a.row, a.row, a.step};
}

typedef float v4_any __attribute__((vector_size(16), aligned(4), may_alias));

#define NAME(x) x##_portable
#define TARGET
#define VECTOR v4_any
#define LANES 4
#define ROWS 4
#define MADD(a, b, c) ((a) * (b) + (c))
#include "nn/gemm_kernels.h"

#if SF_HAVE_X86
typedef float v8_any __attribute__((vector_size(32), aligned(4), may_alias));
typedef float v16_any __attribute__((vector_size(64), aligned(4), may_alias));

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR v8_any
#define LANES 8
#define ROWS 6
#define MADD(a, b, c) ((v8_any)_mm256_fmadd_ps(_mm256_set1_ps(a), (__m256)(b), (__m256)(c)))
#include "nn/gemm_kernels.h"

#define NAME(x) x##_avx512
#define TARGET SF_TARGET_AVX512
#define VECTOR v16_any
#define LANES 16
#define ROWS 14
#define MADD(a, b, c) ((v16_any)_mm512_fmadd_ps(_mm512_set1_ps(a), (__m512)(b), (__m512)(c)))
#include "nn/gemm_kernels.h"
#endif

/* out (K, PANEL) = K rows of N numbers of the right side, which begins at `from` and lies transposed or not;
 * zero-padded. */
static void pack(float *out, sf_gemm_side from, int transposed, size_t N, size_t K, sf_isa isa)
{
    const sf_view panel = {out, PANEL, SF_F32}, side = {(float *)from.values, from.stride, SF_F32};
    if (N < PANEL) memset(out, 0, K * PANEL * sizeof *out);
    if (transposed)
        sf_transpose(panel, side, N, K, isa);
    else
        for (size_t k = 0; k < K; k++) memcpy(out + k * PANEL, from.values + k * from.stride, N * sizeof *out);
}

static void copy_rows(float *out, size_t out_stride, const float *in, size_t in_stride, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++) memcpy(out + r * out_stride, in + r * in_stride, columns * sizeof *out);
}

/* Kernels write whole vectors: those of a panel that is not full go through a buffer. */
static void multiply_edge(float *out, size_t stride, left_side a, const float *b, size_t M, size_t N, size_t K, int add,
                          sf_isa isa)
{
    float edge[EDGE * PANEL] __attribute__((aligned(64)));
    for (size_t m = 0; m < M; m += EDGE) {
        const size_t rows = M - m < EDGE ? M - m : EDGE;
        if (add) memset(edge, 0, sizeof edge);
        if (add) copy_rows(edge, PANEL, out + m * stride, stride, rows, N);
        SF_DISPATCH(isa, multiply, edge, PANEL, rows_from(a, m), b, rows, N, K, add);
        copy_rows(out + m * stride, stride, edge, PANEL, rows, N);
    }
}

void sf_gemm(sf_gemm_sides sides, float *out, size_t out_stride, sf_gemm_side left, sf_gemm_side right, int add,
             size_t M, size_t N, size_t K)
{
    float panel[DEPTH * PANEL] __attribute__((aligned(64)));
    const sf_isa isa = sf_isa_choose();
    const int turned = sides == SF_GEMM_NT;
    left_side a = {left.values, sides == SF_GEMM_TN ? 1 : left.stride, sides == SF_GEMM_TN ? left.stride : 1};
    if (M == 0) return;
    for (size_t k = 0; k < K; k += DEPTH, a.at += DEPTH * a.step)
        for (size_t n = 0; n < N; n += PANEL) {
            const size_t depth = K - k < DEPTH ? K - k : DEPTH, columns = N - n < PANEL ? N - n : PANEL;
            const float *b = right.values + (turned ? n * right.stride + k : k * right.stride + n);
            pack(panel, (sf_gemm_side){b, right.stride}, turned, columns, depth, isa);
            if (columns == PANEL)
                SF_DISPATCH(isa, multiply, out + n, out_stride, a, panel, M, PANEL, depth, add || k > 0);
            else
                multiply_edge(out + n, out_stride, a, panel, M, columns, depth, add || k > 0, isa);
        }
}

void sf_gemm_dense(sf_gemm_sides sides, float *out, const float *left, const float *right, int add, size_t M, size_t N,
                   size_t K)
{
    const sf_gemm_side a = {left, sides == SF_GEMM_TN ? M : K}, b = {right, sides == SF_GEMM_NT ? K : N};
    sf_gemm(sides, out, N, a, b, add, M, N, K);
}
