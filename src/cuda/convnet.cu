/* A convolutional network on the GPU: its weights, and answers.
 *
 * A text has all its frames, those that see only blanks too: then all texts are alike, and nothing but sums of
 * products decides the time. Convolutions run over all texts of a call as if they were one; frames at the seams between
 * texts, computed from both, are never read. bf16 between kernels, sums in f32. */
#include "cuda/convnet.cuh"

#include "cuda/frames.cuh"
#include "cuda/memory.cuh"

#include <stdlib.h>
#include <string.h>

using namespace sf;

namespace
{

enum { LEAST_TEXTS = 16 }; /* of a call */

/* What one answer at a time works with. */
struct slot {
    cudaStream_t stream;
    uint8_t *codes;
    bf16 *first, *raw;          /* (texts, frames[0], F): behind the first maximum, before the second */
    bf16 *frames[2];            /* (texts, frames[1], F), by turns */
    bf16 *features, *hidden[2]; /* (texts, inputs), (texts, hidden) */
    float *logits;
    void *workspace;
    char *host; /* pinned: logits, then codes */
};

} // namespace

struct sf_device_convnet {
    sf_convnet shape;
    int device, slots;
    size_t texts;
    cublasLtHandle_t library;
    float *parameters;
    bf16 *rounded;
    product products[SF_CONVNET_MATRICES];
    slot *slot_of;
    memory memory;
};

namespace sf
{

convnet_matrix convnet_matrix_at(const sf_convnet *net, size_t i)
{
    const size_t convolutions = SF_CONVNET_CONVS - 1;
    if (i < convolutions) {
        const size_t width = convolution_width(i + 1);
        return {net->conv_weight[i + 1],
                net->conv_bias[i + 1],
                (int)(width * net->features),
                (int)net->features,
                (int)width,
                PRODUCT_ROWS};
    }
    const size_t k = i - convolutions;
    return {net->dense_weight[k],
            net->dense_bias[k],
            (int)(k ? net->hidden : convnet_inputs(net)),
            (int)net->hidden,
            1,
            512};
}

safer_status convnet_forward(product *out, cublasLtHandle_t library, const convnet_matrix *m, const bf16 *rounded,
                             safer_error *error)
{
    const product_options options = {CUBLASLT_EPILOGUE_RELU_BIAS, rounded + m->bias, NULL, 0, m->width, m->rows};
    return product_make(out, library, BACK, rounded + m->weight, m->inputs, m->outputs, options, error);
}

safer_status convnet_check(const sf_convnet *net, safer_error *error)
{
    if (net->hidden % 8 == 0 && net->features % 16 == 0) return SAFER_OK;
    return fail(error, SAFER_INPUT, "the GPU computes dense layers of a multiple of 8 numbers; this network's have %zu",
                net->hidden);
}

__global__ void round_numbers(bf16 *out, const float *in, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i < count) out[i] = __float2bfloat16_rn(in[i]);
}

} // namespace sf

namespace
{

safer_status load(sf_device_convnet *net, const float *parameters, safer_error *error)
{
    const size_t size = net->shape.size;
    SF_TRY_RETURN(take(&net->parameters, &net->memory, size, error));
    SF_TRY_RETURN(take(&net->rounded, &net->memory, size, error));
    SF_CUDA_TRY(cudaMemcpy(net->parameters, parameters, size * sizeof *parameters, cudaMemcpyHostToDevice),
                "copying weights");
    round_numbers<<<(unsigned)((size + 255) / 256), 256>>>(net->rounded, net->parameters, size);
    SF_CUDA_TRY(cudaDeviceSynchronize(), "rounding weights");
    for (size_t i = 0; i < SF_CONVNET_MATRICES; i++) {
        const convnet_matrix m = convnet_matrix_at(&net->shape, i);
        SF_TRY_RETURN(convnet_forward(&net->products[i], net->library, &m, net->rounded, error));
    }
    return SAFER_OK;
}

/* -------------------------------------------------------------------- slots */

/* Zeros, so that rows behind the last are numbers. */
safer_status take_frames(bf16 **out, sf_device_convnet *net, size_t frames, safer_error *error)
{
    const size_t count = (net->texts * frames + FRAME_PAD) * net->shape.features;
    SF_TRY_RETURN(take(out, &net->memory, count, error));
    SF_CUDA_TRY(cudaMemset(*out, 0, count * sizeof **out), "clearing memory");
    return SAFER_OK;
}

safer_status make_slot(slot *s, sf_device_convnet *net, safer_error *error)
{
    const size_t texts = net->texts, H = net->shape.hidden, logits = texts * net->shape.classes,
                 codes = texts * net->shape.characters;
    SF_CUDA_TRY(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "making a stream");
    SF_TRY_RETURN(take_frames(&s->first, net, net->shape.frames[0], error));
    SF_TRY_RETURN(take_frames(&s->raw, net, net->shape.frames[0], error));
    for (int i = 0; i < 2; i++) {
        SF_TRY_RETURN(take_frames(&s->frames[i], net, net->shape.frames[1], error));
        SF_TRY_RETURN(take(&s->hidden[i], &net->memory, texts * H, error));
    }
    SF_TRY_RETURN(take(&s->features, &net->memory, texts * convnet_inputs(&net->shape), error));
    SF_TRY_RETURN(take_bytes(&s->workspace, &net->memory, PRODUCT_WORKSPACE, error));
    SF_TRY_RETURN(take(&s->codes, &net->memory, codes, error));
    SF_TRY_RETURN(take(&s->logits, &net->memory, logits, error));
    SF_CUDA_TRY(cudaMallocHost(&s->host, logits * sizeof(float) + codes), "taking pinned memory");
    SF_CUDA_TRY(cudaDeviceSynchronize(), "clearing memory"); /* the slot's stream does not wait for it */
    return SAFER_OK;
}

void free_slots(sf_device_convnet *net)
{
    for (int i = 0; net->slot_of && i < net->slots; i++) {
        if (net->slot_of[i].stream) cudaStreamDestroy(net->slot_of[i].stream);
        cudaFreeHost(net->slot_of[i].host);
        net->slot_of[i] = {};
    }
}

/* As many texts as memory allows. */
safer_status make_slots(sf_device_convnet *net, safer_error *error)
{
    const size_t before = net->memory.count;
    for (;; net->texts /= 2) {
        safer_status status = SAFER_OK;
        for (int i = 0; i < net->slots && status == SAFER_OK; i++) status = make_slot(&net->slot_of[i], net, error);
        if (status != SAFER_MEMORY || net->texts / 2 < LEAST_TEXTS) return status;
        (void)cudaGetLastError();
        free_slots(net);
        give_back(&net->memory, before);
    }
}

/* ------------------------------------------------------------------ answers */

void pool(bf16 *out, const bf16 *in, const sf_device_convnet *net, size_t stage, size_t count, cudaStream_t stream)
{
    const size_t frames = net->shape.frames[stage], total = count * frames * net->shape.features;
    pool_frames<<<(unsigned)((total / 8 + 255) / 256), 256, 0, stream>>>(out, in, (int)net->shape.features, (int)frames,
                                                                         (int)net->shape.frames[stage - 1], total);
}

safer_status run(void *out, const bf16 *in, const sf_device_convnet *net, size_t product_, size_t rows, const slot *s,
                 safer_error *error)
{
    return product_run(out, in, NULL, &net->products[product_], rows, net->library, s->workspace, s->stream, error);
}

safer_status forward(const slot *s, const sf_device_convnet *net, size_t count, safer_error *error)
{
    const sf_convnet *n = &net->shape;
    const int F = (int)n->features, total = (int)(count * n->frames[0]);
    const float *p = net->parameters;
    frames_of_codes<<<frame_grid(F, total), FRAME_THREADS, 0, s->stream>>>(s->first, NULL, s->codes,
                                                                           p + n->conv_weight[0], p + n->conv_bias[0],
                                                                           F, (int)n->characters, (int)n->frames[0],
                                                                           total);
    SF_TRY_RETURN(run(s->raw, s->first, net, 0, (size_t)total, s, error));
    pool(s->frames[0], s->raw, net, 1, count, s->stream);
    for (size_t i = 0; i < 4; i++)
        SF_TRY_RETURN(run(s->frames[1 - i % 2], s->frames[i % 2], net, 1 + i, count * n->frames[1], s, error));
    pool(s->features, s->frames[0], net, 2, count, s->stream);
    SF_TRY_RETURN(run(s->hidden[0], s->features, net, 5, count, s, error));
    SF_TRY_RETURN(run(s->hidden[1], s->hidden[0], net, 6, count, s, error));
    output_layer<<<(unsigned)count, OUTPUT_THREADS, 0, s->stream>>>(s->logits, s->hidden[1], p + n->output_weight,
                                                                    p + n->output_bias, (int)n->hidden,
                                                                    (int)n->classes);
    SF_CUDA_TRY(cudaGetLastError(), "starting a kernel");
    return SAFER_OK;
}

} // namespace

/* -------------------------------------------------------------- the interface */

void sf_cuda_convnet_free(sf_device_convnet *net)
{
    if (!net) return;
    cudaSetDevice(net->device);
    free_slots(net);
    give_back_all(&net->memory);
    if (net->library) cublasLtDestroy(net->library);
    free(net->slot_of);
    free(net);
}

safer_status sf_cuda_convnet_new(sf_device_convnet **out, int device, const sf_convnet *shape, const float *parameters,
                                 int slots, size_t *texts, safer_error *error)
{
    SF_TRY_RETURN(convnet_check(shape, error));
    sf_device_convnet *net = (sf_device_convnet *)calloc(1, sizeof *net);
    if (!net) return fail(error, SAFER_MEMORY, "out of memory");
    net->shape = *shape;
    net->device = device;
    net->slots = slots;
    net->texts = *texts;
    net->slot_of = (slot *)calloc((size_t)slots, sizeof *net->slot_of);
    safer_status status = net->slot_of ? SAFER_OK : fail(error, SAFER_MEMORY, "out of memory");
    if (status == SAFER_OK) status = check(cudaSetDevice(device), "choosing the device", error);
    if (status == SAFER_OK) status = check(cublasLtCreate(&net->library), "its start", error);
    if (status == SAFER_OK) status = load(net, parameters, error);
    if (status == SAFER_OK) status = make_slots(net, error);
    if (status != SAFER_OK) {
        sf_cuda_convnet_free(net);
        return status;
    }
    *texts = net->texts;
    *out = net;
    return SAFER_OK;
}

safer_status sf_cuda_convnet_answer(float *logits, sf_device_convnet *net, int slot_number, const uint8_t *codes,
                                    size_t count, safer_error *error)
{
    const slot *s = &net->slot_of[slot_number];
    const size_t bytes = count * net->shape.classes * sizeof *logits, read = count * net->shape.characters;
    char *host_codes = s->host + net->texts * net->shape.classes * sizeof *logits;
    SF_CUDA_TRY(cudaSetDevice(net->device), "choosing the device");
    memcpy(host_codes, codes, read);
    SF_CUDA_TRY(cudaMemcpyAsync(s->codes, host_codes, read, cudaMemcpyHostToDevice, s->stream), "copying texts");
    SF_TRY_RETURN(forward(s, net, count, error));
    SF_CUDA_TRY(cudaMemcpyAsync(s->host, s->logits, bytes, cudaMemcpyDeviceToHost, s->stream), "copying answers");
    SF_CUDA_TRY(cudaStreamSynchronize(s->stream), "computing answers");
    memcpy(logits, s->host, bytes);
    return SAFER_OK;
}
