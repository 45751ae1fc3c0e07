/* Matrix products: bf16 with sums in f32, and f32.
 *
 * The right-hand side is packed once (weights: when a model is opened) and used often.
 * Both precisions have the same interface: a matrix is a view of rows of F32 or BF16
 * numbers, and the packed side says in which precision the product runs. In bf16, a left
 * side of F32 is rounded as it is read; in f32, every view must be F32.
 *
 * A row of the result depends on its row of the left side and on the packed side alone:
 * not on M, on the other rows, on alignment, or on threads. The order of the sums is fixed:
 * in bf16 for an instruction set. In f32 it is the order of the inner dimension; the set
 * SF_PORTABLE rounds every product and every sum, so that its bits are the same on every
 * machine, and all other sets fuse the two, so that theirs are the same. How wide the
 * instructions are makes no difference, and the widest that there are (sf_isa_choose) are
 * taken. Sets with bf16 arithmetic take numbers below 1.2e-38 for 0, on the way in and on
 * the way out. Nothing here uses threads: callers give each thread rows of its own, a few
 * hundred at least when it should be fast. Some 130 KB of stack are used, and no other memory.
 *
 * On AMX a left side is read where it lies when it is bf16, begins at a multiple of 64
 * bytes, and has a K and a stride that are multiples of 32, the stride not of 1024;
 * otherwise its rows are copied, which costs up to a tenth. */
#ifndef SF_NN_PRODUCT_H
#define SF_NN_PRODUCT_H

#include "nn/isa.h"
#include "nn/safetensors.h" /* sf_dtype */

typedef uint16_t sf_bf16;

/* Rows of numbers, `stride` elements from one row to the next. */
typedef struct sf_view {
    void *values;
    size_t stride;
    sf_dtype type; /* SF_F32 or SF_BF16 */
} sf_view;

/* Bytes of an element. (Inlined always: see sf_shift in product_kernel.h.) */
static inline __attribute__((always_inline)) size_t sf_element(sf_dtype type)
{
    return type == SF_F32 ? sizeof(float) : sizeof(sf_bf16);
}

/* Of a whole block and what is left of the rows. */
static inline size_t sf_least(size_t a, size_t b) { return a < b ? a : b; }

/* The view from row r, column c on. */
sf_view sf_view_at(sf_view view, size_t row, size_t column);

/* Rounded to nearest, ties to even; NaN stays NaN. */
void sf_to_bf16(sf_bf16 *out, const float *inp, size_t N, sf_isa isa);
void sf_from_bf16(float *out, const sf_bf16 *inp, size_t N, sf_isa isa);

/* out (N, M) = in (M, N) transposed, converting as above. The two do not overlap. Strides of
 * out that are large powers of two are slow. */
void sf_transpose(sf_view out, sf_view in, size_t M, size_t N, sf_isa isa);

/* ----------------------------------------------------------- the right side */

/* A (K, N) matrix in the form the kernels read: panels of columns, zero-padded.
 * Zero-initialise; shaped again and again, its memory grows as needed. */
typedef struct sf_packed {
    size_t K, N;
    sf_dtype type; /* SF_BF16 or SF_F32: the precision of products with it */
    sf_isa isa;
    sf_isa width; /* f32: of the instructions */
    void *values;
    size_t capacity; /* bytes */
} sf_packed;

/* 0, or -1 when memory is out. */
int sf_packed_shape(sf_packed *packed, size_t K, size_t N, sf_dtype type, sf_isa isa);
void sf_packed_free(sf_packed *packed);

/* How many panels of columns there are, and the filling of panels first..first+count-1
 * from a (K, N) matrix or, `transposed`, from an (N, K) one, as the weights of a linear
 * layer (outputs, inputs) are. Panels may be filled by different threads. */
size_t sf_packed_panels(const sf_packed *packed);
void sf_pack(sf_packed *packed, sf_view source, int transposed, size_t first, size_t count);

/* Panels first..first+count-1, which are SF_PANEL columns each, as a matrix of their own that is not to be freed. */
enum { SF_PANEL = 32 };
sf_packed sf_packed_part(const sf_packed *packed, size_t first, size_t count);

/* ---------------------------------------------------------------- the product */

typedef enum sf_activation { SF_LINEAR, SF_GELU, SF_GELU_TANH, SF_RELU, SF_SILU } sf_activation;

/* out (M, N) = activation(a (M, K) * packed + bias), or out += a * packed + bias when `add` (with SF_LINEAR and an
 * F32 out only). The activation is that of vector.h, the rough one when out is BF16 (GELU on AMX with other bits, as
 * near). bias (N) may be NULL. Any M, N, K from 1 on. The rows of out and a must
 * not overlap, except that those of a may overlap each other (stride below K): a convolution over time is a product. */
void sf_product(sf_view out, sf_view a, const sf_packed *packed, const float *bias, sf_activation activation, int add,
                size_t M);

/* Peak rate of this thread's bare multiply loop for the bf16 kernel of an instruction
 * set, in FLOP/s, the best of short stretches during `seconds`: what the benchmarks compare
 * with. For AMX it is the tile multiplication alone, on numbers that are not 0 (which would
 * be faster); for the others the kernel's loop on a block in the first-level cache. */
double sf_product_peak(sf_isa isa, double seconds);

#endif
