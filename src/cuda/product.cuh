/* Products of rows and weights by cuBLASLt, with the same bits for a row whatever the other rows are.
 *
 * cuBLASLt has many kernels and would choose another one for another number of rows. Here one is chosen when the
 * weights are loaded, for PRODUCT_ROWS rows, and used for all; of those that give rows, none that splits the inner
 * dimension is taken. So a sum's order depends on the shape of the weights alone.
 *
 * Sliding rows, for convolutions of width W: row r of `in` is the W short rows from r on, so rows overlap. cuBLASLt has
 * no such matrix, but rows r, r + W, r + 2W, .. of it lie one after the other without overlapping: so it is W
 * products in one call, each of every W-th row. They read up to 2W, and write up to W, rows more than there are. */
#ifndef SF_CUDA_PRODUCT_CUH
#define SF_CUDA_PRODUCT_CUH

#include "cuda/fail.cuh"
#include "cuda/numbers.cuh"

namespace sf
{

enum {
    PRODUCT_WORKSPACE = 32 << 20,
    PRODUCT_ROWS = 1 << 16 /* for which kernels are chosen, however many there are */
};

/* With weights W (outputs, inputs):
 *   FORWARD   out (rows, outputs) = in (rows, inputs) * W^T + bias, and an activation
 *   BACK      out (rows, inputs) = in (rows, outputs) * W, perhaps times an activation's slope
 *   WEIGHTS   out (outputs, inputs) F32 = in (rows, outputs)^T * other (rows, inputs); with sliding rows W such
 *             results, whose sum it is: the rows of `other` behind the last must be zeros */
enum product_kind { FORWARD, BACK, WEIGHTS };

struct product {
    product_kind kind;
    int outputs, inputs, width;
    const bf16 *weight; /* on the device; not of WEIGHTS */
    int added;          /* FORWARD and BACK: something is added: the caller's `other`; WEIGHTS: what `out` holds */
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatmulAlgo_t algorithm;
};

/* What a product does besides. All pointers are on the device and stay valid. */
struct product_options {
    cublasLtEpilogue_t epilogue;
    const bf16 *bias; /* FORWARD: (outputs) */
    bf16 *raw;        /* (rows, outputs) FORWARD with ..._AUX_BIAS: gets what is activated; BACK with DGELU: is read */
    int added;
    int width = 1;              /* of sliding rows; 1: they do not slide */
    size_t rows = PRODUCT_ROWS; /* to choose the kernel for */
};

safer_status product_make(product *out, cublasLtHandle_t library, product_kind kind, const bf16 *weight, int outputs,
                          int inputs, product_options options, safer_error *error);

/* `other`: what is added, or of WEIGHTS the right side; else NULL. */
safer_status product_run(void *out, const bf16 *in, const bf16 *other, const product *p, size_t rows,
                         cublasLtHandle_t library, void *workspace, cudaStream_t stream, safer_error *error);

} // namespace sf
#endif
