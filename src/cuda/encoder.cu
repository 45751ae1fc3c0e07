/* An encoder on the GPU: its weights, and answers.
 *
 * Texts lie one after the other without padding. bf16 everywhere between kernels, sums in f32. A layer is
 *
 *   qkv = x * W + b;  context = attention(qkv);  y = context * W + b + x;  x = norm(y)
 *   inner = gelu(x * W + b);                     y = inner * W + b + x;    x = norm(y)
 *
 * with bias, residual and activation in the products' own kernels. Every kernel computes a row, or a text, in an
 * order that does not depend on the others. */
#include "cuda/encoder.cuh"

#include "cuda/attention.cuh"
#include "cuda/memory.cuh"
#include "cuda/plain.cuh"
#include "cuda/pool.cuh"
#include "cuda/product.cuh"
#include "cuda/rows.cuh"
#include "cuda/widths.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

using namespace sf;

namespace
{

struct layer {
    product qkv, attention, inner, outer;
    float *norm[4]; /* weight and bias of the first norm, of the second */
};

/* What one answer at a time works with. */
struct slot {
    cudaStream_t stream;
    bf16 *x, *y, *qkv, *context, *inner;
    void *workspace;
    uint32_t *ids, *starts;
    uint16_t *places;
    sf_attend_block *blocks;
    float *logits;
    char *host; /* pinned: logits, and then what is copied to the device */
};

} // namespace

struct sf_device_net {
    sf_encoder shape; /* its pointers are not used */
    int device, slots;
    size_t rows;
    cublasLtHandle_t library;
    float *words, *positions, *type, *norm_weight, *norm_bias;
    struct layer *layers;
    head end;
    struct slot *slot;
    memory memory;
};

namespace
{

/* ------------------------------------------------------------------ weights */

safer_status copy_floats(float **out, sf_device_net *net, const float *from, size_t count, safer_error *error)
{
    SF_TRY_RETURN(take(out, &net->memory, count, error));
    SF_CUDA_TRY(cudaMemcpy(*out, from, count * sizeof **out, cudaMemcpyHostToDevice), "copying weights");
    return SAFER_OK;
}

__global__ void round_floats(bf16 *out, const float *in, size_t count)
{
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count) out[i] = __float2bfloat16_rn(in[i]);
}

safer_status copy_rounded(bf16 **out, sf_device_net *net, const float *from, size_t count, safer_error *error)
{
    float *whole = NULL;
    SF_TRY_RETURN(take(out, &net->memory, count, error));
    SF_TRY_RETURN(copy_floats(&whole, net, from, count, error));
    round_floats<<<(unsigned)((count + 255) / 256), 256>>>(*out, whole, count);
    SF_CUDA_TRY(cudaDeviceSynchronize(), "rounding weights");
    give_back(&net->memory, net->memory.count - 1);
    return SAFER_OK;
}

safer_status load_product(product *out, sf_device_net *net, sf_encoder_pair from, size_t outputs, size_t inputs,
                          cublasLtEpilogue_t epilogue, int added, safer_error *error)
{
    bf16 *weight = NULL, *bias = NULL;
    SF_TRY_RETURN(copy_rounded(&weight, net, from.weight, outputs * inputs, error));
    SF_TRY_RETURN(copy_rounded(&bias, net, from.bias, outputs, error));
    const product_options options = {epilogue, bias, NULL, added};
    return product_make(out, net->library, FORWARD, weight, (int)outputs, (int)inputs, options, error);
}

safer_status load_layer(struct layer *out, sf_device_net *net, const sf_encoder_layer *from, safer_error *error)
{
    const size_t H = net->shape.hidden, F = net->shape.inner;
    const cublasLtEpilogue_t activation = net->shape.activation == SF_ENCODER_RELU ? CUBLASLT_EPILOGUE_RELU_BIAS
                                                                                   : CUBLASLT_EPILOGUE_GELU_BIAS;
    SF_TRY_RETURN(load_product(&out->qkv, net, from->qkv, 3 * H, H, CUBLASLT_EPILOGUE_BIAS, 0, error));
    SF_TRY_RETURN(load_product(&out->attention, net, from->attention, H, H, CUBLASLT_EPILOGUE_BIAS, 1, error));
    SF_TRY_RETURN(load_product(&out->inner, net, from->inner, F, H, activation, 0, error));
    SF_TRY_RETURN(load_product(&out->outer, net, from->outer, H, F, CUBLASLT_EPILOGUE_BIAS, 1, error));
    const float *norms[] = {from->norm1.weight, from->norm1.bias, from->norm2.weight, from->norm2.bias};
    for (int i = 0; i < 4; i++) SF_TRY_RETURN(copy_floats(&out->norm[i], net, norms[i], H, error));
    return SAFER_OK;
}

safer_status load_end(sf_device_net *net, const sf_encoder *e, safer_error *error)
{
    const size_t H = e->hidden;
    float *p[4] = {NULL, NULL, NULL, NULL};
    SF_TRY_RETURN(copy_floats(&p[0], net, e->classifier.weight, e->classes * H, error));
    SF_TRY_RETURN(copy_floats(&p[1], net, e->classifier.bias, e->classes, error));
    if (e->pooler.weight) {
        SF_TRY_RETURN(copy_floats(&p[2], net, e->pooler.weight, H * H, error));
        SF_TRY_RETURN(copy_floats(&p[3], net, e->pooler.bias, H, error));
    }
    net->end = (head){(int)H, (int)e->classes, e->mean, p[2], p[3], e->pooler_activation == SF_ENCODER_RELU, p[0],
                      p[1]};
    return SAFER_OK;
}

safer_status load(sf_device_net *net, const sf_encoder *e, safer_error *error)
{
    const size_t H = e->hidden;
    SF_TRY_RETURN(copy_floats(&net->words, net, e->words, e->vocabulary * H, error));
    SF_TRY_RETURN(copy_floats(&net->positions, net, e->places, e->positions * H, error));
    if (e->type) SF_TRY_RETURN(copy_floats(&net->type, net, e->type, H, error));
    SF_TRY_RETURN(copy_floats(&net->norm_weight, net, e->norm.weight, H, error));
    SF_TRY_RETURN(copy_floats(&net->norm_bias, net, e->norm.bias, H, error));
    for (size_t i = 0; i < e->layers; i++) SF_TRY_RETURN(load_layer(&net->layers[i], net, &e->layer[i], error));
    return load_end(net, e, error);
}

/* -------------------------------------------------------------------- slots */

/* A text has at least one row, so there are no more texts than rows. */
size_t most_blocks(size_t rows) { return rows; }

size_t host_bytes(const sf_device_net *net)
{
    const size_t rows = net->rows;
    return rows * net->shape.classes * sizeof(float) + (2 * rows + 1) * sizeof(uint32_t) +
           most_blocks(rows) * sizeof(sf_attend_block) + rows * sizeof(uint16_t);
}

safer_status make_slot(struct slot *s, sf_device_net *net, safer_error *error)
{
    const size_t rows = net->rows, H = net->shape.hidden;
    SF_CUDA_TRY(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "making a stream");
    SF_TRY_RETURN(take(&s->x, &net->memory, rows * H, error));
    SF_TRY_RETURN(take(&s->y, &net->memory, rows * H, error));
    SF_TRY_RETURN(take(&s->qkv, &net->memory, rows * 3 * H, error));
    SF_TRY_RETURN(take(&s->context, &net->memory, rows * H, error));
    SF_TRY_RETURN(take(&s->inner, &net->memory, rows * net->shape.inner, error));
    SF_TRY_RETURN(take_bytes(&s->workspace, &net->memory, PRODUCT_WORKSPACE, error));
    SF_TRY_RETURN(take(&s->ids, &net->memory, rows, error));
    SF_TRY_RETURN(take(&s->starts, &net->memory, (rows + 1), error));
    SF_TRY_RETURN(take(&s->places, &net->memory, rows, error));
    SF_TRY_RETURN(take(&s->blocks, &net->memory, most_blocks(rows), error));
    SF_TRY_RETURN(take(&s->logits, &net->memory, rows * net->shape.classes, error));
    SF_CUDA_TRY(cudaMallocHost(&s->host, host_bytes(net)), "taking pinned memory");
    return SAFER_OK;
}

void free_slots(sf_device_net *net)
{
    for (int i = 0; net->slot && i < net->slots; i++) {
        if (net->slot[i].stream) cudaStreamDestroy(net->slot[i].stream);
        cudaFreeHost(net->slot[i].host);
        net->slot[i] = (struct slot){};
    }
}

/* As many rows as memory allows, at least 4096. */
safer_status make_slots(sf_device_net *net, safer_error *error)
{
    const size_t before = net->memory.count;
    for (;; net->rows /= 2) {
        safer_status status = SAFER_OK;
        for (int i = 0; i < net->slots && status == SAFER_OK; i++) status = make_slot(&net->slot[i], net, error);
        if (status != SAFER_MEMORY || net->rows / 2 < 4096 || net->rows / 2 < net->shape.tokens) return status;
        (void)cudaGetLastError();
        free_slots(net);
        give_back(&net->memory, before);
    }
}

/* ------------------------------------------------------------------ answers */

template <int N>
void run_norm(bf16 *out, const bf16 *in, float *const *norm_, const sf_device_net *net, size_t rows,
              cudaStream_t stream)
{
    norm<N><<<(unsigned)((rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK), 32 * ROWS_A_BLOCK, 0, stream>>>(
        out, in, norm_[0], norm_[1], (int)net->shape.hidden, net->shape.epsilon, (int)rows);
}

template <int N> void run_embed(const struct slot *s, const sf_device_net *net, size_t rows)
{
    embed<N><<<(unsigned)((rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK), 32 * ROWS_A_BLOCK, 0, s->stream>>>(
        s->x, NULL, s->ids, s->places, net->words, net->positions, net->type, net->norm_weight, net->norm_bias,
        (int)net->shape.hidden, net->shape.epsilon, (int)rows);
}

void run_attention(const struct slot *s, const sf_device_net *net, size_t blocks)
{
    const int H = (int)net->shape.hidden, heads = (int)net->shape.heads, D = H / heads;
    const float scale = 1.4426950408889634f / sqrtf((float)D);
    const dim3 grid((unsigned)blocks, (unsigned)heads);
    if (D == 32)
        attend<32><<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(s->context, NULL, s->qkv, s->blocks, H, scale);
    else if (D == 64)
        attend<64><<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(s->context, NULL, s->qkv, s->blocks, H, scale);
    else
        attend_plain<<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(s->context, s->qkv, s->blocks, H, D, scale);
}

safer_status run_layer(const struct slot *s, const sf_device_net *net, const struct layer *l, size_t rows,
                       size_t blocks, safer_error *error)
{
    const cudaStream_t stream = s->stream;
    SF_TRY_RETURN(product_run(s->qkv, s->x, NULL, &l->qkv, rows, net->library, s->workspace, stream, error));
    run_attention(s, net, blocks);
    SF_TRY_RETURN(product_run(s->y, s->context, s->x, &l->attention, rows, net->library, s->workspace, stream, error));
    FOR_WIDTH(net->shape.hidden, run_norm, s->x, s->y, l->norm, net, rows, stream);
    SF_TRY_RETURN(product_run(s->inner, s->x, NULL, &l->inner, rows, net->library, s->workspace, stream, error));
    SF_TRY_RETURN(product_run(s->y, s->inner, s->x, &l->outer, rows, net->library, s->workspace, stream, error));
    FOR_WIDTH(net->shape.hidden, run_norm, s->x, s->y, l->norm + 2, net, rows, stream);
    return SAFER_OK;
}

/* Lays out the batch in pinned memory and copies it to the device. Returns how many blocks attention has. */
safer_status send(size_t *blocks, const struct slot *s, const sf_device_net *net, const uint32_t *ids,
                  const size_t *offsets, size_t count, safer_error *error)
{
    const size_t rows = offsets[count] - offsets[0];
    uint32_t *host_ids = (uint32_t *)((float *)s->host + net->rows * net->shape.classes), *starts = host_ids + rows;
    sf_attend_block *block = (sf_attend_block *)(starts + count + 1);
    size_t made = 0;
    memcpy(host_ids, ids + offsets[0], rows * sizeof *ids);
    for (size_t i = 0; i <= count; i++) starts[i] = (uint32_t)(offsets[i] - offsets[0]);
    for (size_t i = 0; i < count; i++)
        for (uint32_t q = 0, length = starts[i + 1] - starts[i]; q < length; q += SF_ATTEND_QUERIES)
            block[made++] = (sf_attend_block){starts[i], length, q};
    uint16_t *places = (uint16_t *)(block + made);
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = starts[i]; k < starts[i + 1]; k++) places[k] = (uint16_t)(k - starts[i]);
    static const char what[] = "copying texts";
    SF_CUDA_TRY(cudaMemcpyAsync(s->ids, host_ids, rows * sizeof *ids, cudaMemcpyHostToDevice, s->stream), what);
    SF_CUDA_TRY(cudaMemcpyAsync(s->starts, starts, (count + 1) * sizeof *starts, cudaMemcpyHostToDevice, s->stream),
                what);
    SF_CUDA_TRY(cudaMemcpyAsync(s->blocks, block, made * sizeof *block, cudaMemcpyHostToDevice, s->stream), what);
    SF_CUDA_TRY(cudaMemcpyAsync(s->places, places, rows * sizeof *places, cudaMemcpyHostToDevice, s->stream), what);
    *blocks = made;
    return SAFER_OK;
}

safer_status check_encoder(const sf_encoder *e, safer_error *error)
{
    if (e->hidden % 8 || e->inner % 8 || e->hidden / e->heads % 8 || e->hidden / e->heads > PLAIN_WIDTH ||
        e->hidden > 2048)
        return fail(
            error, SAFER_INPUT,
            "the GPU computes encoders of up to 2048 numbers a piece whose heads have a multiple of 8 of them, at most "
            "%d; this one has %zu and %zu heads",
            (int)PLAIN_WIDTH, e->hidden, e->heads);
    return SAFER_OK;
}

} // namespace

/* -------------------------------------------------------------- the interface */

void sf_cuda_net_free(sf_device_net *net)
{
    if (!net) return;
    cudaSetDevice(net->device);
    free_slots(net);
    give_back_all(&net->memory);
    if (net->library) cublasLtDestroy(net->library);
    free(net->slot);
    free(net->layers);
    free(net);
}

safer_status sf_cuda_net_new(sf_device_net **out, int device, const sf_encoder *encoder, int slots, size_t *rows,
                             safer_error *error)
{
    SF_TRY_RETURN(check_encoder(encoder, error));
    sf_device_net *net = (sf_device_net *)calloc(1, sizeof *net);
    if (!net) return fail(error, SAFER_MEMORY, "out of memory");
    net->shape = *encoder;
    net->device = device;
    net->slots = slots;
    net->rows = *rows;
    net->layers = (struct layer *)calloc(encoder->layers, sizeof *net->layers);
    net->slot = (struct slot *)calloc((size_t)slots, sizeof *net->slot);
    safer_status status = net->layers && net->slot ? SAFER_OK : fail(error, SAFER_MEMORY, "out of memory");
    if (status == SAFER_OK) status = check(cudaSetDevice(device), "choosing the device", error);
    if (status == SAFER_OK) status = check(cublasLtCreate(&net->library), "its start", error);
    if (status == SAFER_OK) status = load(net, encoder, error);
    if (status == SAFER_OK) status = make_slots(net, error);
    if (status != SAFER_OK) {
        sf_cuda_net_free(net);
        return status;
    }
    *rows = net->rows;
    *out = net;
    return SAFER_OK;
}

safer_status sf_cuda_answer(float *logits, sf_device_net *net, int slot, const uint32_t *ids, const size_t *offsets,
                            size_t count, safer_error *error)
{
    const struct slot *s = &net->slot[slot];
    const size_t rows = offsets[count] - offsets[0];
    size_t blocks = 0;
    SF_CUDA_TRY(cudaSetDevice(net->device), "choosing the device");
    SF_TRY_RETURN(send(&blocks, s, net, ids, offsets, count, error));
    FOR_WIDTH(net->shape.hidden, run_embed, s, net, rows);
    for (size_t i = 0; i < net->shape.layers; i++)
        SF_TRY_RETURN(run_layer(s, net, &net->layers[i], rows, blocks, error));
    classify<<<(unsigned)count, POOL_THREADS, 2 * net->shape.hidden * sizeof(float), s->stream>>>(s->logits, s->x,
                                                                                                  s->starts, net->end);
    SF_CUDA_TRY(cudaGetLastError(), "starting a kernel");
    const size_t bytes = count * net->shape.classes * sizeof *logits;
    SF_CUDA_TRY(cudaMemcpyAsync(s->host, s->logits, bytes, cudaMemcpyDeviceToHost, s->stream), "copying answers");
    SF_CUDA_TRY(cudaStreamSynchronize(s->stream), "computing answers");
    memcpy(logits, s->host, bytes);
    return SAFER_OK;
}
