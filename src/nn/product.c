/* Matrix products: bf16 with sums in f32, and f32. */
#include "nn/product.h"

#include "base/memory.h"
#include "base/progress.h"
#include "nn/product_kernel.h"
#include "nn/vector.h"

#include <assert.h>

sf_view sf_view_at(sf_view view, size_t row, size_t column) { return sf_shift(view, row, column); }

/* ----------------------------------------------------------- the right side */

int sf_packed_shape(sf_packed *packed, size_t K, size_t N, sf_dtype type, sf_isa isa)
{
    size_t inner, outer, bytes; /* padded */
    if (__builtin_mul_overflow(sf_blocks(K), SF_STEP, &inner) ||
        __builtin_mul_overflow(sf_blocks(N), SF_BLOCK, &outer) || __builtin_mul_overflow(inner, outer, &bytes) ||
        __builtin_mul_overflow(bytes, sf_element(type), &bytes))
        return -1;
    if (bytes > packed->capacity || !packed->values) {
        void *values = sf_alloc_aligned(bytes, 1);
        if (!values) return -1;
        free(packed->values);
        packed->values = values;
        packed->capacity = bytes;
    }
    packed->K = K;
    packed->N = N;
    packed->type = type;
    packed->isa = isa;
    packed->width = type == SF_F32 ? sf_isa_choose() : isa;
    return 0;
}

void sf_packed_free(sf_packed *packed)
{
    free(packed->values);
    *packed = (sf_packed){0};
}

size_t sf_packed_panels(const sf_packed *packed) { return sf_blocks(packed->N); }

static size_t panel_size(const sf_packed *packed) { return sf_blocks(packed->K) * SF_STEP_SIZE; }

sf_packed sf_packed_part(const sf_packed *packed, size_t first, size_t count)
{
    sf_packed part = *packed;
    _Static_assert((int)SF_PANEL == (int)SF_BLOCK, "a panel is as wide as a block");
    part.values = (char *)packed->values + first * panel_size(packed) * sf_element(packed->type);
    part.N = sf_least(count * SF_BLOCK, packed->N - first * SF_BLOCK);
    return part;
}

/* The rows and columns of a matrix that belong to panel p and step s. */
static void pack_bf16(const sf_packed *packed, sf_view source, int transposed, size_t p)
{
    sf_bf16 *out = (sf_bf16 *)packed->values + p * panel_size(packed);
    const size_t n = p * SF_BLOCK, columns = sf_least(SF_BLOCK, packed->N - n);
    for (size_t k = 0; k < packed->K; k += SF_STEP, out += SF_STEP_SIZE) {
        const size_t depth = sf_least(SF_STEP, packed->K - k);
        if (transposed)
            sf_pack_step(out, sf_shift(source, n, k), 1, columns, depth, packed->isa);
        else
            sf_pack_step(out, sf_shift(source, k, n), 0, depth, columns, packed->isa);
    }
}

static void pack_f32(const sf_packed *packed, sf_view source, int transposed, size_t p)
{
    const size_t n = p * SF_BLOCK, columns = sf_least(SF_BLOCK, packed->N - n);
    const sf_view out = {(float *)packed->values + p * panel_size(packed), SF_BLOCK, SF_F32};
    if (columns < SF_BLOCK || packed->K % SF_STEP) memset(out.values, 0, panel_size(packed) * sizeof(float));
    if (transposed) {
        sf_transpose(out, sf_shift(source, n, 0), columns, packed->K, packed->isa);
        return;
    }
    for (size_t k = 0; k < packed->K; k++) {
        const sf_view from = sf_shift(source, k, n);
        if (source.type == SF_F32)
            memcpy(sf_floats(out, k), from.values, columns * sizeof(float));
        else
            sf_from_bf16(sf_floats(out, k), from.values, columns, packed->isa);
    }
}

void sf_pack(sf_packed *packed, sf_view source, int transposed, size_t first, size_t count)
{
    for (size_t p = first; p < first + count; p++) {
        if (packed->type == SF_BF16)
            pack_bf16(packed, source, transposed, p);
        else
            pack_f32(packed, source, transposed, p);
    }
}

/* -------------------------------------------------------- portable bf16 kernel */

static void take_portable(void *out, sf_view in, size_t rows, size_t K)
{
    float *a = out;
    memset(a, 0, sf_blocks(K) * SF_STEP_SIZE * sizeof *a);
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < K; k++) {
            const sf_bf16 x = in.type == SF_F32 ? sf_round(sf_floats(in, r)[k]) : sf_halves(in, r)[k];
            a[k / SF_STEP * SF_STEP_SIZE + r * SF_STEP + k % SF_STEP] = sf_widen(x);
        }
}

static void multiply_portable(float *c, const void *left, const void *right, size_t steps, size_t rows, int add)
{
    const float *a = left;
    const sf_bf16 *b = right;
    if (!add) memset(c, 0, rows * SF_BLOCK * sizeof *c);
    for (size_t s = 0; s < steps; s++, a += SF_STEP_SIZE, b += SF_STEP_SIZE) {
        float wide[SF_STEP][SF_BLOCK];
        for (size_t k = 0; k < SF_STEP; k++)
            for (size_t n = 0; n < SF_BLOCK; n++) {
                const size_t pair = (n / SF_HALF * SF_PAIRS + k / 2) * SF_HALF + n % SF_HALF;
                wide[k][n] = sf_widen(b[pair * 2 + k % 2]);
            }
        for (size_t r = 0; r < rows; r++)
            for (size_t k = 0; k < SF_STEP; k++) {
                const float x = a[r * SF_STEP + k];
                for (size_t n = 0; n < SF_BLOCK; n++) c[r * SF_BLOCK + n] += x * wide[k][n];
            }
    }
}

static const sf_kernel kernel_portable = {256, take_portable, multiply_portable};

/* ----------------------------------------------------------------- the product */

static void activate(float *out, const float *x, const sf_job *j, size_t N)
{
    if (j->out.type == SF_BF16)
        sf_activate_rough(out, x, j->activation, N, j->packed->isa);
    else
        sf_activate(out, x, j->activation, N, j->packed->isa);
}

/* What happens to a block of sums on its way out, while it is in the cache. */
static void finish(const sf_job *j, float *c, size_t row, size_t column, size_t rows)
{
    const size_t columns = sf_least(SF_BLOCK, j->packed->N - column);
    const sf_view out = sf_shift(j->out, row, column);
    if (j->bias)
        for (size_t r = 0; r < rows; r++)
            for (size_t n = 0; n < columns; n++) c[r * SF_BLOCK + n] += j->bias[column + n];
    if (j->activation != SF_LINEAR) activate(c, c, j, rows * SF_BLOCK);
    for (size_t r = 0; r < rows; r++) {
        if (out.type == SF_BF16)
            sf_to_bf16(sf_halves(out, r), c + r * SF_BLOCK, columns, j->packed->isa);
        else if (j->add)
            sf_add(sf_floats(out, r), c + r * SF_BLOCK, columns, j->packed->isa);
        else if (columns == SF_BLOCK) /* of a known length: faster */
            memcpy(sf_floats(out, r), c + r * SF_BLOCK, SF_BLOCK * sizeof(float));
        else
            memcpy(sf_floats(out, r), c + r * SF_BLOCK, columns * sizeof(float));
    }
}

static const sf_kernel *kernel_of(sf_isa isa)
{
#if SF_HAVE_X86
    if (isa >= SF_AVX512_BF16) return &sf_kernel_avx512_bf16;
    if (isa >= SF_AVX512) return &sf_kernel_avx512;
    if (isa >= SF_AVX2) return &sf_kernel_avx2;
#endif
    (void)isa;
    return &kernel_portable;
}

/* Rows of the left side are taken a block at a time, and as many panels pass by as their
 * sums have room. */
static void product_by_blocks(const sf_job *j, const sf_kernel *kernel, size_t M)
{
    enum { PANELS = 16 };
    const sf_packed *p = j->packed;
    const size_t panels = sf_blocks(p->N), panel = panel_size(p) * sf_element(p->type);
    _Alignas(64) float left[SF_BLOCK * SF_DEPTH], sums[PANELS * SF_SUMS];
    for (size_t first = 0; first < panels; first += PANELS)
        for (size_t row = 0; row < M; row += SF_BLOCK) {
            const size_t rows = sf_least(SF_BLOCK, M - row), count = sf_least(PANELS, panels - first);
            for (size_t k = 0; k < p->K; k += kernel->depth) {
                const size_t depth = sf_least(kernel->depth, p->K - k);
                const char *b = (const char *)p->values + first * panel + k * SF_BLOCK * sf_element(p->type);
                kernel->take(left, sf_shift(j->a, row, k), rows, depth);
                for (size_t n = 0; n < count; n++, b += panel)
                    kernel->multiply(sums + n * SF_SUMS, left, b, sf_blocks(depth), rows, k != 0);
            }
            for (size_t n = 0; n < count; n++) finish(j, sums + n * SF_SUMS, row, (first + n) * SF_BLOCK, rows);
        }
}

void sf_product(sf_view out, sf_view a, const sf_packed *packed, const float *bias, sf_activation activation, int add,
                size_t M)
{
    const sf_job j = {out, a, packed, bias, activation, add};
    assert(!add || (activation == SF_LINEAR && out.type == SF_F32));
    assert(packed->type == SF_BF16 || (out.type == SF_F32 && a.type == SF_F32));
    if (packed->type == SF_F32) product_by_blocks(&j, sf_kernel_f32(packed->isa != SF_PORTABLE, packed->width), M);
#if SF_HAVE_X86
    else if (packed->isa == SF_AMX)
        sf_product_amx(&j, M);
#endif
    else
        product_by_blocks(&j, kernel_of(packed->isa), M);
}

/* The kernel's own loop on blocks that stay in the first-level cache. */
static double peak_of(const sf_kernel *kernel, double seconds)
{
    enum { STEPS = 4 };
    _Alignas(64) float left[STEPS * SF_STEP_SIZE], sums[SF_SUMS], numbers[SF_STEP_SIZE];
    _Alignas(64) sf_bf16 right[STEPS * SF_STEP_SIZE];
    double best = 0, begin = sf_seconds(), now = begin;
    for (uint32_t i = 0, x = 1; i < SF_STEP_SIZE; i++, x = x * 1664525 + 1013904223)
        numbers[i] = (float)(int32_t)x * 0x1p-31f;
    for (size_t s = 0; s < STEPS; s++) sf_to_bf16(right + s * SF_STEP_SIZE, numbers, SF_STEP_SIZE, SF_PORTABLE);
    kernel->take(left, (sf_view){numbers, 1, SF_F32}, SF_BLOCK, STEPS * SF_STEP);
    do {
        const double start = now;
        double flops = 0;
        do {
            kernel->multiply(sums, left, right, STEPS, SF_BLOCK, 0);
            flops += 2.0 * SF_SUMS * STEPS * SF_STEP;
            now = sf_seconds();
        } while (now - start < 1e-4);
        if (flops / (now - start) > best) best = flops / (now - start);
    } while (now - begin < seconds);
    return best;
}

double sf_product_peak(sf_isa isa, double seconds)
{
#if SF_HAVE_X86
    if (isa == SF_AMX) return sf_peak_amx(seconds);
#endif
    return peak_of(kernel_of(isa), seconds);
}
