/* Products of heads by cuBLASLt. Its matrices are of columns, so a row of ours is a column of its. */
#include "cuda/heads.cuh"

namespace sf
{

struct head_layouts {
    cublasLtMatrixLayoutOpaque_t scores, vectors, table;
};

/* (rows, columns), columns `stride` apart; one of them for every head, `apart` from the one before. */
static safer_status lay(cublasLtMatrixLayoutOpaque_t *out, cudaDataType type, size_t rows, size_t columns,
                        int64_t stride, int32_t heads, int64_t apart, safer_error *error)
{
    static const char what[] = "a layout of heads";
    SF_CUDA_TRY(cublasLtMatrixLayoutInit(out, type, rows, columns, stride), what);
    SF_CUDA_TRY(cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &heads, sizeof heads), what);
    SF_CUDA_TRY(
        cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart), what);
    return SAFER_OK;
}

static safer_status lay_out(head_layouts *l, const heads *h, size_t rows, int C, safer_error *error)
{
    const int H = h->hidden, D = H / h->count;
    const cudaDataType of_table = h->kind == HEADS_TABLE ? CUDA_R_32F : CUDA_R_16BF;
    safer_status status = lay(&l->scores, CUDA_R_16BF, (size_t)C, rows, (int64_t)h->count * C, h->count, C, error);
    if (status == SAFER_OK) status = lay(&l->vectors, CUDA_R_16BF, (size_t)D, rows, 3 * H, h->count, D, error);
    if (status == SAFER_OK) status = lay(&l->table, of_table, (size_t)D, (size_t)C, H, h->count, D, error);
    return status;
}

/* Left, right and result, of the kind. */
template <typename T> static void sides(T out[3], heads_kind kind, T scores, T vectors, T table)
{
    out[0] = kind == HEADS_TABLE ? vectors : table;
    out[1] = kind == HEADS_SCORES ? vectors : scores;
    out[2] = kind == HEADS_SCORES ? scores : kind == HEADS_VECTORS ? vectors : table;
}

safer_status heads_make(heads *out, cublasLtHandle_t library, heads_kind kind, int hidden, int count, int columns,
                        float scale, safer_error *error)
{
    static const char what[] = "choosing a product of heads";
    heads h = {kind, hidden, count, scale, {}, {}};
    head_layouts l;
    cublasLtMatmulPreferenceOpaque_t wish;
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    const uint32_t schemes = kind == HEADS_TABLE ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                                 : CUBLASLT_REDUCTION_SCHEME_NONE;
    const size_t workspace = PRODUCT_WORKSPACE;
    const uint32_t aligned = 16; /* heads begin within rows */
    const cublasOperation_t transposed = CUBLAS_OP_T;
    SF_CUDA_TRY(cublasLtMatmulDescInit(&h.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), what);
    if (kind != HEADS_VECTORS)
        SF_CUDA_TRY(cublasLtMatmulDescSetAttribute(
                        &h.operation, kind == HEADS_SCORES ? CUBLASLT_MATMUL_DESC_TRANSA : CUBLASLT_MATMUL_DESC_TRANSB,
                        &transposed, sizeof transposed),
                    what);
    const safer_status status = lay_out(&l, &h, HEADS_ROWS, columns, error);
    if (status != SAFER_OK) return status;
    cublasLtMatrixLayout_t side[3];
    sides<cublasLtMatrixLayout_t>(side, kind, &l.scores, &l.vectors, &l.table);
    SF_CUDA_TRY(cublasLtMatmulPreferenceInit(&wish), what);
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t bytes;
    } wishes[] = {{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes},
                  {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &aligned, sizeof aligned},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &aligned, sizeof aligned},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &aligned, sizeof aligned},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &aligned, sizeof aligned}};
    for (const auto &w : wishes)
        SF_CUDA_TRY(cublasLtMatmulPreferenceSetAttribute(&wish, w.attribute, w.value, w.bytes), what);
    SF_CUDA_TRY(cublasLtMatmulAlgoGetHeuristic(library, &h.operation, side[0], side[1], side[2], side[2], &wish, 1,
                                               &best, &found),
                what);
    if (!found)
        return fail(error, SAFER_SYSTEM, "cuBLASLt has no product for %d heads of %d and %d places", count,
                    hidden / count, columns);
    h.algorithm = best.algo;
    *out = h;
    return SAFER_OK;
}

safer_status heads_run(const heads *h, bf16 *scores, bf16 *vectors, void *table, size_t rows, int columns,
                       cublasLtHandle_t library, void *workspace, cudaStream_t stream, safer_error *error)
{
    const float by = h->kind == HEADS_SCORES ? 1 : h->scale, some = h->kind == HEADS_SCORES ? 0 : 1;
    head_layouts l;
    cublasLtMatrixLayout_t side[3];
    void *at[3];
    const safer_status status = lay_out(&l, h, rows, columns, error);
    if (status != SAFER_OK) return status;
    sides<cublasLtMatrixLayout_t>(side, h->kind, &l.scores, &l.vectors, &l.table);
    sides<void *>(at, h->kind, scores, vectors, table);
    SF_CUDA_TRY(cublasLtMatmul(library, (cublasLtMatmulDesc_t)&h->operation, &by, at[0], side[0], at[1], side[1], &some,
                               at[2], side[2], at[2], side[2], &h->algorithm, workspace, PRODUCT_WORKSPACE, stream),
                "a product of heads");
    return SAFER_OK;
}

} // namespace sf
