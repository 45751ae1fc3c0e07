/* One step of training a convolutional network on the GPU.
 *
 * What is trained lies in one array of floats, as on the CPU. Beside it lie the weights that it stands for,
 * standardised and rounded to bf16, which products read; those of the convolutions a second time with their taps
 * reversed, for the way back. The way forward keeps the frames before and behind every convolution.
 *
 * Backwards through a convolution, with D the gradient of its output rows: that of its input is again a convolution,
 * of D with the reversed taps. Every text keeps as many rows as the convolution shortens it by, in which D is zero:
 * so it comes out right at the seams. D has rows of zeros before the first and behind the last.
 *
 * Every sum has a fixed order: the same batches give the same bits on the same kind of GPU. */
#include "cuda/convnet_step.cuh"

#include "cuda/convnet.cuh"
#include "cuda/frames_back.cuh"
#include "cuda/loss.cuh"
#include "cuda/memory.cuh"
#include "cuda/rows_back.cuh"
#include "cuda/standard.cuh"

#include <stdlib.h>
#include <string.h>

using namespace sf;

namespace
{

enum {
    MATRICES = SF_CONVNET_MATRICES,
    CONVOLUTIONS = MATRICES - 2,
    SQUARES = 1024
}; /* blocks of the gradient's length */

} // namespace

struct sf_device_convnet_step {
    sf_convnet shape;
    int device;
    size_t texts;
    float smoothing;
    double clip;
    memory memory;
    cublasLtHandle_t library;
    cudaStream_t stream;
    void *workspace;

    float *trained, *gradient, *means, *variances; /* (trained) */
    int stale;                                     /* the weights are not those of what is trained */
    bf16 *rounded;                                 /* (size) */
    bf16 *turned[CONVOLUTIONS];
    standards standard_of;
    convnet_matrix matrix[MATRICES];
    product forward[MATRICES], back[MATRICES], weights[MATRICES];

    /* The batch on its way forward; F numbers a row. */
    uint8_t *codes, *which;    /* which of three was the largest, of the first convolution */
    bf16 *first, *raw;         /* (texts, frames[0]) */
    bf16 *frames, *between[4]; /* (texts, frames[1]): behind the second maximum, and every convolution from there */
    bf16 *features;            /* (texts, inputs) */
    bf16 *hidden[2], *dropped; /* (texts, hidden): after ReLU; the first after dropout */
    float *masks, *logits;
    int *labels;
    convnet_end end;

    /* And back. */
    bf16 *dhidden[2], *dfeatures, *dframes[2], *dfirst[2];
    float *parts, *partial, *scale;
    double *squares;
};

namespace
{

/* -------------------------------------------------------------------- start */

/* Zeros, FRAME_PAD rows of them also before the first and behind the last. */
safer_status take_frames(bf16 **out, sf_device_convnet_step *s, size_t frames, safer_error *error)
{
    const size_t F = s->shape.features, count = (s->texts * frames + 2 * FRAME_PAD) * F;
    bf16 *all = NULL;
    SF_TRY_RETURN(take(&all, &s->memory, count, error));
    SF_CUDA_TRY(cudaMemset(all, 0, count * sizeof *all), "clearing memory");
    *out = all + FRAME_PAD * F;
    return SAFER_OK;
}

safer_status make_frames(sf_device_convnet_step *s, safer_error *error)
{
    const size_t T = s->texts, A = s->shape.frames[0], B = s->shape.frames[1], inputs = convnet_inputs(&s->shape);
    SF_TRY_RETURN(take(&s->codes, &s->memory, T * s->shape.characters, error));
    SF_TRY_RETURN(take(&s->which, &s->memory, T * A * s->shape.features, error));
    SF_TRY_RETURN(take_frames(&s->first, s, A, error));
    SF_TRY_RETURN(take_frames(&s->raw, s, A, error));
    SF_TRY_RETURN(take_frames(&s->frames, s, B, error));
    for (int i = 0; i < 4; i++) SF_TRY_RETURN(take_frames(&s->between[i], s, B, error));
    SF_TRY_RETURN(take(&s->features, &s->memory, T * inputs, error));
    SF_TRY_RETURN(take(&s->dfeatures, &s->memory, T * inputs, error));
    for (int i = 0; i < 2; i++) {
        SF_TRY_RETURN(take_frames(&s->dframes[i], s, B, error));
        SF_TRY_RETURN(take_frames(&s->dfirst[i], s, A, error));
    }
    return SAFER_OK;
}

safer_status make_end(sf_device_convnet_step *s, safer_error *error)
{
    const size_t T = s->texts, H = s->shape.hidden, C = s->shape.classes;
    const float *p = s->trained;
    for (int i = 0; i < 2; i++) {
        SF_TRY_RETURN(take(&s->hidden[i], &s->memory, T * H, error));
        SF_TRY_RETURN(take(&s->dhidden[i], &s->memory, T * H, error));
    }
    SF_TRY_RETURN(take(&s->dropped, &s->memory, T * H, error));
    SF_TRY_RETURN(take(&s->masks, &s->memory, 2 * T * H, error));
    SF_TRY_RETURN(take(&s->logits, &s->memory, T * C, error));
    SF_TRY_RETURN(take(&s->labels, &s->memory, T, error));
    s->end = {p + s->shape.output_weight,
              p + s->shape.output_bias,
              (int)H,
              (int)C,
              s->smoothing,
              0,
              s->labels,
              NULL,
              NULL,
              NULL,
              NULL};
    SF_TRY_RETURN(take(&s->end.last, &s->memory, T * H, error));
    SF_TRY_RETURN(take(&s->end.dlogits, &s->memory, T * C, error));
    return take(&s->end.losses, &s->memory, T, error);
}

safer_status make_standards(sf_device_convnet_step *s, const double *shares, safer_error *error)
{
    for (size_t i = 0; i < MATRICES; i++) {
        const convnet_matrix *m = &s->matrix[i];
        standard *t = &s->standard_of.m[i];
        const size_t N = (size_t)m->outputs, blocks = ((size_t)m->inputs + STANDARD_ROWS - 1) / STANDARD_ROWS;
        t->offset = m->weight;
        t->gains = s->shape.gains[i];
        t->inputs = m->inputs;
        t->outputs = m->outputs;
        t->share = shares[i];
        SF_TRY_RETURN(take(&t->sums, &s->memory, blocks * N, error));
        SF_TRY_RETURN(take(&t->products, &s->memory, blocks * N, error));
        SF_TRY_RETURN(take(&t->spread, &s->memory, N, error));
        float **const numbers[] = {&t->mean, &t->scale, &t->a, &t->b, &t->c};
        for (int k = 0; k < 5; k++) SF_TRY_RETURN(take(numbers[k], &s->memory, N, error));
    }
    return SAFER_OK;
}

/* The way back, and the gradient of the weights. Names of sides are exchanged as in convnet_forward. */
safer_status make_products(sf_device_convnet_step *s, size_t i, safer_error *error)
{
    const convnet_matrix *m = &s->matrix[i];
    const product_options plain = {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0, m->width, m->rows};
    SF_TRY_RETURN(convnet_forward(&s->forward[i], s->library, m, s->rounded, error));
    SF_TRY_RETURN(product_make(&s->weights[i], s->library, WEIGHTS, NULL, m->inputs, m->outputs, plain, error));
    if (i >= CONVOLUTIONS)
        return product_make(&s->back[i], s->library, FORWARD, s->rounded + m->weight, m->inputs, m->outputs, plain,
                            error);
    SF_TRY_RETURN(take(&s->turned[i], &s->memory, (size_t)m->inputs * m->outputs, error));
    return product_make(&s->back[i], s->library, FORWARD, s->turned[i], m->outputs, m->inputs, plain, error);
}

safer_status make_arrays(sf_device_convnet_step *s, safer_error *error)
{
    const size_t N = s->shape.trained, F = s->shape.features, H = s->shape.hidden, widest = F > H ? F : H;
    const size_t tables = (size_t)TABLE_BLOCKS * TABLE_ROWS * F, sums = SUM_BLOCKS * widest;
    SF_TRY_RETURN(take(&s->trained, &s->memory, N, error));
    SF_TRY_RETURN(take(&s->gradient, &s->memory, N, error));
    SF_TRY_RETURN(take(&s->means, &s->memory, N, error));
    SF_TRY_RETURN(take(&s->variances, &s->memory, N, error));
    SF_TRY_RETURN(take(&s->rounded, &s->memory, s->shape.size, error));
    SF_TRY_RETURN(take(&s->parts, &s->memory, TAPS * TAPS * F * F, error));
    SF_TRY_RETURN(take(&s->partial, &s->memory, tables > sums ? tables : sums, error));
    SF_TRY_RETURN(take(&s->scale, &s->memory, 1, error));
    SF_TRY_RETURN(take(&s->squares, &s->memory, SQUARES, error));
    SF_TRY_RETURN(take_bytes(&s->workspace, &s->memory, PRODUCT_WORKSPACE, error));
    SF_CUDA_TRY(cudaMemset(s->means, 0, N * sizeof *s->means), "clearing memory");
    SF_CUDA_TRY(cudaMemset(s->variances, 0, N * sizeof *s->variances), "clearing memory");
    return SAFER_OK;
}

safer_status make(sf_device_convnet_step *s, const sf_device_convnet_training *t, safer_error *error)
{
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    SF_CUDA_TRY(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "making a stream");
    SF_CUDA_TRY(cublasLtCreate(&s->library), "its start");
    SF_CUDA_TRY(cudaFuncSetAttribute(table_back, cudaFuncAttributeMaxDynamicSharedMemorySize, TABLE_BYTES),
                "asking for shared memory");
    for (size_t i = 0; i < MATRICES; i++) s->matrix[i] = convnet_matrix_at(&s->shape, i);
    SF_TRY_RETURN(make_arrays(s, error));
    SF_TRY_RETURN(make_frames(s, error));
    SF_TRY_RETURN(make_end(s, error));
    SF_TRY_RETURN(make_standards(s, t->shares, error));
    for (size_t i = 0; i < MATRICES; i++) SF_TRY_RETURN(make_products(s, i, error));
    SF_CUDA_TRY(cudaMemcpy(s->trained, t->trained, s->shape.trained * sizeof *s->trained, cudaMemcpyHostToDevice),
                "copying parameters");
    SF_CUDA_TRY(cudaDeviceSynchronize(), "clearing memory"); /* the stream does not wait for it */
    s->stale = 1;
    return SAFER_OK;
}

/* ------------------------------------------------------------------ weights */

unsigned blocks_of(size_t count) { return (unsigned)((count + 255) / 256); }

/* For all matrices: blocks of columns, of rows. */
dim3 standard_grid(const sf_device_convnet_step *s, int rows)
{
    const size_t F = s->shape.features, H = s->shape.hidden, inputs = convnet_inputs(&s->shape),
                 longest = inputs > 7 * F ? inputs : 7 * F;
    const size_t most = longest > H ? longest : H;
    return dim3(blocks_of(F > H ? F : H), rows ? (unsigned)((most + STANDARD_ROWS - 1) / STANDARD_ROWS) : 1, MATRICES);
}

/* The weights that what is trained stands for. */
void load_weights(sf_device_convnet_step *s)
{
    if (!s->stale) return;
    const dim3 all = standard_grid(s, 1), columns = standard_grid(s, 0);
    const size_t F = s->shape.features;
    round_numbers<<<blocks_of(s->shape.size), 256, 0, s->stream>>>(s->rounded, s->trained,
                                                                   s->shape.size); /* biases stay */
    standard_sums<<<all, 256, 0, s->stream>>>(s->standard_of, s->trained, s->trained);
    standard_numbers<<<columns, 256, 0, s->stream>>>(s->standard_of, s->trained);
    standard_write<<<all, 256, 0, s->stream>>>(s->rounded, s->standard_of, s->trained);
    for (size_t i = 0; i < CONVOLUTIONS; i++) {
        const int width = s->matrix[i].width;
        turn_taps<<<blocks_of((size_t)width * F * F), 256, 0, s->stream>>>(s->turned[i],
                                                                           s->rounded + s->matrix[i].weight, (int)F,
                                                                           width);
    }
    s->stale = 0;
}

void standardise_back(sf_device_convnet_step *s)
{
    const dim3 all = standard_grid(s, 1), columns = standard_grid(s, 0);
    standard_sums<<<all, 256, 0, s->stream>>>(s->standard_of, s->gradient, s->trained);
    standard_numbers_back<<<columns, 256, 0, s->stream>>>(s->gradient, s->standard_of, s->trained);
    standard_write_back<<<all, 256, 0, s->stream>>>(s->gradient, s->standard_of, s->trained);
}

/* ------------------------------------------------------------------ forward */

safer_status run(void *out, const bf16 *in, const bf16 *other, const product *p, size_t rows,
                 const sf_device_convnet_step *s, safer_error *error)
{
    return product_run(out, in, other, p, rows, s->library, s->workspace, s->stream, error);
}

void pool(bf16 *out, const bf16 *in, const sf_device_convnet_step *s, size_t stage, size_t count)
{
    const size_t frames = s->shape.frames[stage], total = count * frames * s->shape.features;
    pool_frames<<<blocks_of(total / 8), 256, 0, s->stream>>>(out, in, (int)s->shape.features, (int)frames,
                                                             (int)s->shape.frames[stage - 1], total);
}

/* Of a convolution from the third on: what it reads. */
const bf16 *input_of(const sf_device_convnet_step *s, size_t matrix)
{
    return matrix == 1 ? s->frames : s->between[matrix - 2];
}

safer_status forward(sf_device_convnet_step *s, const uint8_t *codes, size_t count, int masked, safer_error *error)
{
    const sf_convnet *n = &s->shape;
    const int F = (int)n->features, total = (int)(count * n->frames[0]);
    const float *p = s->trained;
    SF_CUDA_TRY(cudaMemcpyAsync(s->codes, codes, count * n->characters, cudaMemcpyHostToDevice, s->stream),
                "copying texts");
    load_weights(s);
    frames_of_codes<<<frame_grid(F, total), FRAME_THREADS, 0, s->stream>>>(s->first, s->which, s->codes,
                                                                           p + n->conv_weight[0], p + n->conv_bias[0],
                                                                           F, (int)n->characters, (int)n->frames[0],
                                                                           total);
    SF_TRY_RETURN(run(s->raw, s->first, NULL, &s->forward[0], (size_t)total, s, error));
    pool(s->frames, s->raw, s, 1, count);
    for (size_t i = 1; i < CONVOLUTIONS; i++)
        SF_TRY_RETURN(run(s->between[i - 1], input_of(s, i), NULL, &s->forward[i], count * n->frames[1], s, error));
    pool(s->features, s->between[3], s, 2, count);
    SF_TRY_RETURN(run(s->hidden[0], s->features, NULL, &s->forward[CONVOLUTIONS], count, s, error));
    if (masked)
        drop<<<blocks_of(count * n->hidden), 256, 0, s->stream>>>(s->dropped, s->hidden[0], s->masks,
                                                                  count * n->hidden);
    return run(s->hidden[1], masked ? s->dropped : s->hidden[0], NULL, &s->forward[CONVOLUTIONS + 1], count, s, error);
}

/* ----------------------------------------------------------------- backward */

void sum_bias(const sf_device_convnet_step *s, size_t bias, const bf16 *d, size_t columns, size_t rows)
{
    sum_rows<<<dim3((unsigned)((columns + 511) / 512), SUM_BLOCKS), 256, 0, s->stream>>>(s->partial, d, (int)columns,
                                                                                         (int)rows);
    add_partial<<<blocks_of(columns), 256, 0, s->stream>>>(s->gradient + bias, NULL, NULL, s->partial, 1, (int)columns,
                                                           0);
}

/* Both dense layers: from dhidden[1] to dfeatures. */
safer_status dense_back(sf_device_convnet_step *s, size_t count, int masked, safer_error *error)
{
    const size_t H = s->shape.hidden;
    for (size_t i = 2; i-- > 0;) {
        const size_t at = CONVOLUTIONS + i;
        const bf16 *in = !i ? s->features : masked ? s->dropped : s->hidden[0];
        sum_bias(s, s->matrix[at].bias, s->dhidden[i], H, count);
        SF_TRY_RETURN(run(s->gradient + s->matrix[at].weight, in, s->dhidden[i], &s->weights[at], count, s, error));
        SF_TRY_RETURN(run(i ? s->dhidden[0] : s->dfeatures, s->dhidden[i], NULL, &s->back[at], count, s, error));
        if (i)
            drop_back<<<blocks_of(count * H), 256, 0, s->stream>>>(s->dhidden[0], s->hidden[0],
                                                                   masked ? s->masks : NULL, count * H);
    }
    return SAFER_OK;
}

/* Rows of zeros behind the last: what an earlier, larger batch or a sliding product left there. */
safer_status seal(const sf_device_convnet_step *s, bf16 *d, size_t rows, safer_error *error)
{
    const size_t F = s->shape.features;
    SF_CUDA_TRY(cudaMemsetAsync(d + rows * F, 0, FRAME_PAD * F * sizeof *d, s->stream), "clearing memory");
    return SAFER_OK;
}

safer_status unpool(sf_device_convnet_step *s, bf16 *d, const bf16 *dout, const bf16 *raw, size_t stage, size_t count,
                    safer_error *error)
{
    const size_t F = s->shape.features, rows = s->shape.frames[stage - 1],
                 total = count * ((rows + POOL - 1) / POOL) * (F / 2);
    pool_back<<<blocks_of(total), 256, 0, s->stream>>>(d, dout, raw, (int)F, (int)s->shape.frames[stage], (int)rows,
                                                       total);
    return seal(s, d, count * rows, error);
}

/* One convolution: the gradients of its weights and bias, and `to`, that of its input, from d, that of its output. */
safer_status convolution_back(sf_device_convnet_step *s, bf16 *to, const bf16 *d, const bf16 *in, size_t i, size_t rows,
                              safer_error *error)
{
    const convnet_matrix *m = &s->matrix[i];
    const size_t F = s->shape.features, size = (size_t)m->inputs * F;
    sum_bias(s, m->bias, d, F, rows);
    SF_TRY_RETURN(run(s->parts, in, d, &s->weights[i], rows, s, error));
    add_parts<<<blocks_of(size), 256, 0, s->stream>>>(s->gradient + m->weight, s->parts, m->width, size);
    return run(to, d - (size_t)(m->width - 1) * F, NULL, &s->back[i], rows, s, error);
}

void first_back(sf_device_convnet_step *s, const bf16 *d, size_t count)
{
    const sf_convnet *n = &s->shape;
    const int F = (int)n->features, blocks = count < TABLE_BLOCKS ? (int)count : (int)TABLE_BLOCKS;
    const size_t numbers = (size_t)((CODES - 1) * TAPS + 1) * n->features;
    table_back<<<dim3((unsigned)((F + TABLE_LANES - 1) / TABLE_LANES), (unsigned)blocks), TABLE_LANES, TABLE_BYTES,
                 s->stream>>>(s->partial, d, s->first, s->which, s->codes, F, (int)n->characters, (int)n->frames[0],
                              (int)count);
    add_tables<<<blocks_of(numbers), 256, 0, s->stream>>>(s->gradient + n->conv_weight[0],
                                                          s->gradient + n->conv_bias[0], s->partial, F, blocks);
}

safer_status convolutions_back(sf_device_convnet_step *s, size_t count, safer_error *error)
{
    const size_t F = s->shape.features, rows = count * s->shape.frames[1], first_rows = count * s->shape.frames[0];
    bf16 *d = s->dframes[0], *other = s->dframes[1];
    SF_TRY_RETURN(unpool(s, d, s->dfeatures, s->between[3], 2, count, error));
    for (size_t i = CONVOLUTIONS - 1; i >= 1; i--) {
        SF_TRY_RETURN(convolution_back(s, other, d, input_of(s, i), i, rows, error));
        if (i > 1) frames_relu_back<<<blocks_of(rows * F), 256, 0, s->stream>>>(other, input_of(s, i), rows * F);
        SF_TRY_RETURN(seal(s, other, rows, error));
        bf16 *const keep = d;
        d = other;
        other = keep;
    }
    SF_TRY_RETURN(unpool(s, s->dfirst[0], d, s->raw, 1, count, error));
    SF_TRY_RETURN(convolution_back(s, s->dfirst[1], s->dfirst[0], s->first, 0, first_rows, error));
    first_back(s, s->dfirst[1], count);
    return SAFER_OK;
}

safer_status end_back(sf_device_convnet_step *s, size_t count, int masked, safer_error *error)
{
    const sf_convnet *n = &s->shape;
    s->end.share = 1.0f / (float)count;
    s->end.masks = masked ? s->masks + count * n->hidden : NULL;
    convnet_loss<<<(unsigned)count, POOL_THREADS, 0, s->stream>>>(s->dhidden[1], s->hidden[1], s->end);
    dense_gradient<<<blocks_of(n->classes * n->hidden), 256, 0, s->stream>>>(
        s->gradient + n->output_weight, s->gradient + n->output_bias, s->end.dlogits, s->end.last, (int)n->classes,
        (int)n->hidden, (int)count);
    SF_TRY_RETURN(dense_back(s, count, masked, error));
    SF_TRY_RETURN(convolutions_back(s, count, error));
    standardise_back(s);
    SF_CUDA_TRY(cudaGetLastError(), "starting a kernel");
    return SAFER_OK;
}

safer_status add_losses(double *loss, sf_device_convnet_step *s, size_t count, safer_error *error)
{
    float *losses = (float *)malloc(count * sizeof *losses);
    if (!losses) return fail(error, SAFER_MEMORY, "out of memory");
    safer_status status = check(cudaMemcpyAsync(losses, s->end.losses, count * sizeof *losses, cudaMemcpyDeviceToHost,
                                                s->stream),
                                "copying the loss", error);
    if (status == SAFER_OK) status = check(cudaStreamSynchronize(s->stream), "training", error);
    *loss = 0;
    for (size_t i = 0; i < count && status == SAFER_OK; i++) *loss += (double)losses[i];
    free(losses);
    return status;
}

} // namespace

/* -------------------------------------------------------------- the interface */

void sf_cuda_convnet_step_free(sf_device_convnet_step *s)
{
    if (!s) return;
    cudaSetDevice(s->device);
    if (s->stream) cudaStreamDestroy(s->stream);
    give_back_all(&s->memory);
    if (s->library) cublasLtDestroy(s->library);
    free(s);
}

safer_status sf_cuda_convnet_step_new(sf_device_convnet_step **out, int device, const sf_device_convnet_training *t,
                                      safer_error *error)
{
    SF_TRY_RETURN(convnet_check(t->net, error));
    sf_device_convnet_step *s = (sf_device_convnet_step *)calloc(1, sizeof *s);
    if (!s) return fail(error, SAFER_MEMORY, "out of memory");
    s->shape = *t->net;
    s->device = device;
    s->texts = t->texts;
    s->smoothing = t->smoothing;
    s->clip = t->clip;
    const safer_status status = make(s, t, error);
    if (status != SAFER_OK)
        sf_cuda_convnet_step_free(s);
    else
        *out = s;
    return status;
}

safer_status sf_cuda_convnet_step_write(sf_device_convnet_step *s, const float *trained, const float *means,
                                        const float *variances, safer_error *error)
{
    static const char what[] = "copying parameters";
    const size_t bytes = s->shape.trained * sizeof *trained;
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    SF_CUDA_TRY(cudaStreamSynchronize(s->stream), "training");
    SF_CUDA_TRY(cudaMemcpy(s->trained, trained, bytes, cudaMemcpyHostToDevice), what);
    SF_CUDA_TRY(cudaMemcpy(s->means, means, bytes, cudaMemcpyHostToDevice), what);
    SF_CUDA_TRY(cudaMemcpy(s->variances, variances, bytes, cudaMemcpyHostToDevice), what);
    SF_CUDA_TRY(cudaDeviceSynchronize(), what); /* the stream does not wait for it */
    s->stale = 1;
    return SAFER_OK;
}

safer_status sf_cuda_convnet_step_read(float *trained, float *means, float *variances, sf_device_convnet_step *s,
                                       safer_error *error)
{
    static const char what[] = "copying parameters";
    const size_t bytes = s->shape.trained * sizeof *trained;
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    SF_CUDA_TRY(cudaStreamSynchronize(s->stream), "training");
    SF_CUDA_TRY(cudaMemcpy(trained, s->trained, bytes, cudaMemcpyDeviceToHost), what);
    SF_CUDA_TRY(cudaMemcpy(means, s->means, bytes, cudaMemcpyDeviceToHost), what);
    SF_CUDA_TRY(cudaMemcpy(variances, s->variances, bytes, cudaMemcpyDeviceToHost), what);
    return SAFER_OK;
}

safer_status sf_cuda_convnet_step_gradient(double *loss, float *gradient, sf_device_convnet_step *s,
                                           const uint8_t *codes, size_t count, const int *labels, const float *masks,
                                           safer_error *error)
{
    static const char what[] = "copying texts";
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    SF_CUDA_TRY(cudaMemcpyAsync(s->labels, labels, count * sizeof *labels, cudaMemcpyHostToDevice, s->stream), what);
    if (masks)
        SF_CUDA_TRY(cudaMemcpyAsync(s->masks, masks, 2 * count * s->shape.hidden * sizeof *masks,
                                    cudaMemcpyHostToDevice, s->stream),
                    what);
    SF_TRY_RETURN(forward(s, codes, count, masks != NULL, error));
    SF_TRY_RETURN(end_back(s, count, masks != NULL, error));
    SF_TRY_RETURN(add_losses(loss, s, count, error));
    if (gradient)
        SF_CUDA_TRY(cudaMemcpy(gradient, s->gradient, s->shape.trained * sizeof *gradient, cudaMemcpyDeviceToHost),
                    "copying the gradient");
    return SAFER_OK;
}

safer_status sf_cuda_convnet_step_update(sf_device_convnet_step *s, const sf_device_adam *a, safer_error *error)
{
    const size_t count = s->shape.trained;
    const adam numbers = {a->beta1, a->beta2, a->correct1, a->correct2, a->epsilon, a->rate, a->decay};
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    sum_squares<<<SQUARES, 256, 0, s->stream>>>(s->squares, s->gradient, count);
    clip_scale<<<1, 1, 0, s->stream>>>(s->scale, s->squares, SQUARES, s->clip);
    update<<<blocks_of(count), 256, 0, s->stream>>>(s->trained, NULL, s->means, s->variances, s->gradient, s->scale,
                                                    NULL, numbers, count);
    s->stale = 1;
    SF_CUDA_TRY(cudaGetLastError(), "starting a kernel");
    return SAFER_OK;
}

safer_status sf_cuda_convnet_step_answer(float *logits, sf_device_convnet_step *s, const uint8_t *codes, size_t count,
                                         safer_error *error)
{
    const sf_convnet *n = &s->shape;
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    SF_TRY_RETURN(forward(s, codes, count, 0, error));
    output_layer<<<(unsigned)count, OUTPUT_THREADS, 0, s->stream>>>(s->logits, s->hidden[1], s->end.weight, s->end.bias,
                                                                    (int)n->hidden, (int)n->classes);
    SF_CUDA_TRY(cudaGetLastError(), "starting a kernel");
    SF_CUDA_TRY(cudaMemcpyAsync(logits, s->logits, count * n->classes * sizeof *logits, cudaMemcpyDeviceToHost,
                                s->stream),
                "copying answers");
    SF_CUDA_TRY(cudaStreamSynchronize(s->stream), "computing answers");
    return SAFER_OK;
}
