/* Products of rows and weights by cuBLASLt, with the same bits for a row whatever the other rows are.
 *
 * cuBLASLt has many kernels and would choose another one for another number of rows. Here one is chosen when the
 * weights are loaded, for PRODUCT_ROWS rows, and used for all; none that splits the inner dimension is taken. So a
 * sum's order depends on the shape of the weights alone. */
#ifndef SF_CUDA_PRODUCT_CUH
#define SF_CUDA_PRODUCT_CUH

#include "cuda/fail.cuh"
#include "cuda/numbers.cuh"

namespace sf {

enum {
    PRODUCT_WORKSPACE = 32 << 20,
    PRODUCT_ROWS = 1 << 16 /* for which kernels are chosen, however many there are */
};

typedef struct product {
    int outputs, inputs;
    const bf16 *weight; /* (outputs, inputs), on the device */
    int added;          /* to what: out = in * weight + bias + what */
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatmulAlgo_t algorithm;
} product;

/* `bias` (outputs) lies on the device and stays there. */
safer_status product_make(product *out, cublasLtHandle_t library, const bf16 *weight, const bf16 *bias, int outputs,
                          int inputs, cublasLtEpilogue_t epilogue, int added, safer_error *error);

/* out (rows, outputs) from in (rows, inputs); `added` (rows, outputs) exactly where the product was made so. */
safer_status product_run(bf16 *out, const bf16 *in, const bf16 *added, const product *p, size_t rows,
                         cublasLtHandle_t library, void *workspace, cudaStream_t stream, safer_error *error);

} // namespace sf
#endif
