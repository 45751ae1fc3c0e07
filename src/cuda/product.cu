/* Products by cuBLASLt. Its matrices are of columns, so a row of ours is a column of its. */
#include "cuda/product.cuh"

namespace sf
{

/* Left and right side of a product in its terms, and the result. */
struct layouts {
    cublasLtMatrixLayoutOpaque_t left, right, out;
};

/* (rows, columns), columns `stride` apart; `count` of them, each `apart` from the one before. */
static cublasStatus_t lay(cublasLtMatrixLayoutOpaque_t *out, cudaDataType type, int rows, size_t columns,
                          int64_t stride, int32_t count, int64_t apart)
{
    cublasStatus_t code = cublasLtMatrixLayoutInit(out, type, (uint64_t)rows, columns, stride);
    if (count > 1 && code == CUBLAS_STATUS_SUCCESS)
        code = cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    if (count > 1 && code == CUBLAS_STATUS_SUCCESS)
        code = cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart);
    return code;
}

static safer_status lay_out(layouts *l, const product *p, size_t rows, safer_error *error)
{
    static const char what[] = "a layout";
    const int O = p->outputs, I = p->inputs, W = p->width;
    const size_t each = (rows + (size_t)W - 1) / (size_t)W;
    const cudaDataType narrow = CUDA_R_16BF;
    if (p->kind == FORWARD) { /* (O, rows) = (I, O)^T * (I, rows) */
        SF_CUDA_TRY(lay(&l->left, narrow, I, (size_t)O, I, W, 0), what);
        SF_CUDA_TRY(lay(&l->right, narrow, I, each, I, W, I / W), what);
        SF_CUDA_TRY(lay(&l->out, narrow, O, each, (int64_t)W * O, W, O), what);
    } else if (p->kind == BACK) { /* (I, rows) = (I, O) * (O, rows) */
        SF_CUDA_TRY(lay(&l->left, narrow, I, (size_t)O, I, W, 0), what);
        SF_CUDA_TRY(lay(&l->right, narrow, O, each, O, W, O / W), what);
        SF_CUDA_TRY(lay(&l->out, narrow, I, each, (int64_t)W * I, W, I), what);
    } else { /* (I, O) = (I, rows) * (O, rows)^T */
        SF_CUDA_TRY(lay(&l->left, narrow, I, each, (int64_t)W * I, W, I), what);
        SF_CUDA_TRY(lay(&l->right, narrow, O, each, O, W, O / W), what);
        SF_CUDA_TRY(lay(&l->out, CUDA_R_32F, I, (size_t)O, I, W, (int64_t)I * O), what);
    }
    return SAFER_OK;
}

template <typename T>
static cublasStatus_t set(cublasLtMatmulDescOpaque_t *operation, cublasLtMatmulDescAttributes_t attribute, T value)
{
    return cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value);
}

static safer_status describe(product *p, product_options o, safer_error *error)
{
    static const char what[] = "describing a product";
    SF_CUDA_TRY(cublasLtMatmulDescInit(&p->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), what);
    if (p->kind == FORWARD) SF_CUDA_TRY(set(&p->operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T), what);
    if (p->kind == WEIGHTS) SF_CUDA_TRY(set(&p->operation, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T), what);
    SF_CUDA_TRY(set(&p->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, o.epilogue), what);
    if (o.bias) {
        SF_CUDA_TRY(set(&p->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias), what);
        SF_CUDA_TRY(set(&p->operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF), what);
    }
    if (o.raw) {
        const int64_t stride = p->kind == FORWARD ? p->outputs : p->inputs;
        SF_CUDA_TRY(set(&p->operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o.raw), what);
        SF_CUDA_TRY(set(&p->operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, stride), what);
    }
    return SAFER_OK;
}

safer_status product_make(product *out, cublasLtHandle_t library, product_kind kind, const bf16 *weight, int outputs,
                          int inputs, product_options options, safer_error *error)
{
    static const char what[] = "choosing a product";
    product p = {};
    layouts l;
    cublasLtMatmulPreferenceOpaque_t wish;
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    const uint32_t schemes = kind == WEIGHTS ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE;
    const size_t workspace = PRODUCT_WORKSPACE;
    p.kind = kind;
    p.outputs = outputs;
    p.inputs = inputs;
    p.width = options.width;
    p.weight = weight;
    p.added = options.added;
    safer_status status = describe(&p, options, error);
    if (status == SAFER_OK) status = lay_out(&l, &p, options.rows, error);
    if (status != SAFER_OK) return status;
    SF_CUDA_TRY(cublasLtMatmulPreferenceInit(&wish), what);
    SF_CUDA_TRY(cublasLtMatmulPreferenceSetAttribute(&wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                     sizeof schemes),
                what);
    SF_CUDA_TRY(cublasLtMatmulPreferenceSetAttribute(&wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                     sizeof workspace),
                what);
    SF_CUDA_TRY(cublasLtMatmulAlgoGetHeuristic(library, &p.operation, &l.left, &l.right, &l.out, &l.out, &wish, 1,
                                               &best, &found),
                what);
    if (!found) return fail(error, SAFER_SYSTEM, "cuBLASLt has no product for weights of %d by %d", outputs, inputs);
    p.algorithm = best.algo;
    *out = p;
    return SAFER_OK;
}

safer_status product_run(void *out, const bf16 *in, const bf16 *other, const product *p, size_t rows,
                         cublasLtHandle_t library, void *workspace, cudaStream_t stream, safer_error *error)
{
    const float one = 1, some = p->added ? 1 : 0;
    layouts l;
    const safer_status status = lay_out(&l, p, rows, error);
    if (status != SAFER_OK) return status;
    const bf16 *left = p->kind == WEIGHTS ? other : p->weight;
    SF_CUDA_TRY(cublasLtMatmul(library, (cublasLtMatmulDesc_t)&p->operation, &one, left, &l.left, in, &l.right, &some,
                               p->added && p->kind != WEIGHTS ? (const void *)other : out, &l.out, out, &l.out,
                               &p->algorithm, workspace, PRODUCT_WORKSPACE, stream),
                "a product");
    return SAFER_OK;
}

} // namespace sf
