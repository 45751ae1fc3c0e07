/* Products of all heads with a table of places, for disentangled attention (nn/encoder.h), by cuBLASLt.
 *
 * A head's numbers lie in columns of rows that hold all heads: it is as many products in one call as there are
 * heads. As in product.cuh, the kernel is chosen once, for any number of rows, so that a row's bits do not depend on
 * the others. */
#ifndef SF_CUDA_HEADS_CUH
#define SF_CUDA_HEADS_CUH

#include "cuda/product.cuh"

namespace sf
{

/* With a table (columns, hidden), vectors (rows, 3 * hidden) of which `hidden` are used, and scores (rows, heads,
 * columns):
 *   SCORES    scores = vectors * table^T
 *   VECTORS   vectors += scale * scores * table
 *   TABLE     table F32 += scale * scores^T * vectors */
enum { HEADS_ROWS = 8192 }; /* at a time: scores of more would not fit into memory, nor those of so many into caches */
enum heads_kind { HEADS_SCORES, HEADS_VECTORS, HEADS_TABLE };

struct heads {
    heads_kind kind;
    int hidden, count;
    float scale;
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatmulAlgo_t algorithm;
};

safer_status heads_make(heads *out, cublasLtHandle_t library, heads_kind kind, int hidden, int count, int columns,
                        float scale, safer_error *error);

/* scores, vectors, table: two of them are read, one is written, all on the device. `columns` of the table, from where
 * it points on, no more than it was made for, and a multiple of 8. */
safer_status heads_run(const heads *h, bf16 *scores, bf16 *vectors, void *table, size_t rows, int columns,
                       cublasLtHandle_t library, void *workspace, cudaStream_t stream, safer_error *error);

} // namespace sf
#endif
