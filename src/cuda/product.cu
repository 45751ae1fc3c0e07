/* Products by cuBLASLt. In its terms, which are of columns: out^T = weight^T^T * in^T. */
#include "cuda/product.cuh"

namespace sf {

/* The layouts of one call: rows of ours are columns of its. */
struct layouts {
    cublasLtMatrixLayoutOpaque_t weight, in, out;
};

static safer_status lay_out(layouts *l, const product *p, size_t rows, safer_error *error)
{
    SF_CUDA_TRY(cublasLtMatrixLayoutInit(&l->weight, CUDA_R_16BF, p->inputs, p->outputs, p->inputs), "a layout");
    SF_CUDA_TRY(cublasLtMatrixLayoutInit(&l->in, CUDA_R_16BF, p->inputs, rows, p->inputs), "a layout");
    SF_CUDA_TRY(cublasLtMatrixLayoutInit(&l->out, CUDA_R_16BF, p->outputs, rows, p->outputs), "a layout");
    return SAFER_OK;
}

template <typename T>
static cublasStatus_t set(cublasLtMatmulDescOpaque_t *operation, cublasLtMatmulDescAttributes_t attribute, T value)
{
    return cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value);
}

safer_status product_make(product *out, cublasLtHandle_t library, const bf16 *weight, const bf16 *bias, int outputs,
                          int inputs, cublasLtEpilogue_t epilogue, int added, safer_error *error)
{
    static const char what[] = "choosing a product";
    product p = {};
    layouts l;
    cublasLtMatmulPreferenceOpaque_t wish;
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    const uint32_t none = CUBLASLT_REDUCTION_SCHEME_NONE;
    const size_t workspace = PRODUCT_WORKSPACE;
    p.outputs = outputs;
    p.inputs = inputs;
    p.weight = weight;
    p.added = added;
    SF_CUDA_TRY(cublasLtMatmulDescInit(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), what);
    SF_CUDA_TRY(set(&p.operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T), what);
    SF_CUDA_TRY(set(&p.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue), what);
    SF_CUDA_TRY(set(&p.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias), what);
    SF_CUDA_TRY(set(&p.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF), what);
    SF_CUDA_TRY(cublasLtMatmulPreferenceInit(&wish), what);
    SF_CUDA_TRY(cublasLtMatmulPreferenceSetAttribute(&wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &none, sizeof none),
                what);
    SF_CUDA_TRY(cublasLtMatmulPreferenceSetAttribute(&wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                     sizeof workspace),
                what);
    const safer_status status = lay_out(&l, &p, PRODUCT_ROWS, error);
    if (status != SAFER_OK) return status;
    SF_CUDA_TRY(cublasLtMatmulAlgoGetHeuristic(library, &p.operation, &l.weight, &l.in, &l.out, &l.out, &wish, 1, &best,
                                               &found),
                what);
    if (!found) return fail(error, SAFER_SYSTEM, "cuBLASLt has no product for weights of %d by %d", outputs, inputs);
    p.algorithm = best.algo;
    *out = p;
    return SAFER_OK;
}

safer_status product_run(bf16 *out, const bf16 *in, const bf16 *added, const product *p, size_t rows,
                         cublasLtHandle_t library, void *workspace, cudaStream_t stream, safer_error *error)
{
    const float one = 1, some = p->added ? 1 : 0;
    layouts l;
    const safer_status status = lay_out(&l, p, rows, error);
    if (status != SAFER_OK) return status;
    SF_CUDA_TRY(cublasLtMatmul(library, (cublasLtMatmulDesc_t)&p->operation, &one, p->weight, &l.weight, in, &l.in, &some,
                               p->added ? added : out, &l.out, out, &l.out, &p->algorithm, workspace, PRODUCT_WORKSPACE,
                               stream),
                "a product");
    return SAFER_OK;
}

} // namespace sf
