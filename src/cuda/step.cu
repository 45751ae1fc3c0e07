/* One step of training an encoder on the GPU.
 *
 * All parameters lie in one array of floats, as on the CPU; beside it lie the same ones rounded to bf16, which products
 * read, and the gradient. The way forward keeps what the way back reads: the factors of every product, the
 * sums before every norm, and the inner layer before its activation. Attention's shares are computed again.
 * Every sum has a fixed order: the same batches give the same bits on the same kind of GPU. */
#include "cuda/step.cuh"

#include "cuda/attention_back.cuh"
#include "cuda/loss.cuh"
#include "cuda/memory.cuh"
#include "cuda/product.cuh"
#include "cuda/rows_back.cuh"
#include "cuda/widths.cuh"

#include <math.h>
#include <string.h>

using namespace sf;

namespace
{

enum { SQUARES = 1024, FACTORS = 4 }; /* blocks of the gradient's length; matrices of a layer */

/* What a layer keeps, and its products: forward, back, and of the weights' gradients. */
struct layer {
    bf16 *input, *qkv, *context, *sum1, *middle, *raw, *inner, *sum2;
    float *sums; /* of attention */
    product forward[FACTORS], backward[FACTORS], weights[FACTORS];
    size_t weight[FACTORS], bias[FACTORS], norm[4]; /* offsets of parameters */
};

} // namespace

struct sf_device_step {
    sf_encoder shape;
    sf_encoder_layer *described;
    int device;
    size_t size, start, first, texts, rows;
    int embeddings;
    double clip;
    memory memory;
    cublasLtHandle_t library;
    cudaStream_t stream;
    void *workspace;
    float *parameters, *gradient, *means, *variances;
    bf16 *rounded;
    uint8_t *decays;
    layer *layers;
    bf16 *last, *embedded;                     /* (rows, hidden): the end, and the sum that is normed first */
    bf16 *d, *dsum, *dinner, *dcontext, *dqkv; /* gradients on their way down */
    float *deltas, *partial, *scale;
    double *squares;
    size_t words, positions, type, norm[2]; /* offsets; type: SIZE_MAX without */
    head end;
    size_t end_offsets[4]; /* classifier, its bias, pooler, its bias; SIZE_MAX without */
    ends ends_of;
    float *masks;
    int *labels;
    /* The batch. */
    uint32_t *ids, *starts;
    uint16_t *places;
    sf_attend_block *blocks, *back_blocks;
    uint32_t *lists[2][3]; /* of words and of places: keys, starts, rows */
    char *host;            /* pinned */
    size_t host_bytes;
};

namespace
{

size_t offset_of(const sf_device_training *t, const float *p) { return p ? (size_t)(p - t->parameters) : SIZE_MAX; }

/* -------------------------------------------------------------------- start */

void describe_layer(layer *out, const sf_device_training *t, const sf_encoder_layer *l)
{
    const sf_encoder_pair factors[FACTORS] = {l->qkv, l->attention, l->inner, l->outer};
    for (int i = 0; i < FACTORS; i++) {
        out->weight[i] = offset_of(t, factors[i].weight);
        out->bias[i] = offset_of(t, factors[i].bias);
    }
    const float *norms[] = {l->norm1.weight, l->norm1.bias, l->norm2.weight, l->norm2.bias};
    for (int i = 0; i < 4; i++) out->norm[i] = offset_of(t, norms[i]);
}

safer_status make_products(layer *l, sf_device_step *s, safer_error *error)
{
    const int H = (int)s->shape.hidden, F = (int)s->shape.inner;
    const int relu = s->shape.activation == SF_ENCODER_RELU;
    const int outputs[FACTORS] = {3 * H, H, F, H}, inputs[FACTORS] = {H, H, H, F};
    for (int i = 0; i < FACTORS; i++) {
        product_options forward = {CUBLASLT_EPILOGUE_BIAS, s->rounded + l->bias[i], NULL, i == 1 || i == 3},
                        backward = {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, i == 0 || i == 2},
                        weights = {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0};
        if (i == 2) forward.epilogue = relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
        if (i == 2 && !relu) forward.raw = l->raw;
        if (i == 3 && !relu) backward.epilogue = CUBLASLT_EPILOGUE_DGELU, backward.raw = l->raw;
        const bf16 *weight = s->rounded + l->weight[i];
        SF_TRY_RETURN(product_make(&l->forward[i], s->library, FORWARD, weight, outputs[i], inputs[i], forward, error));
        SF_TRY_RETURN(product_make(&l->backward[i], s->library, BACK, weight, outputs[i], inputs[i], backward, error));
        SF_TRY_RETURN(product_make(&l->weights[i], s->library, WEIGHTS, NULL, outputs[i], inputs[i], weights, error));
    }
    return SAFER_OK;
}

safer_status make_layer(layer *l, sf_device_step *s, safer_error *error)
{
    const size_t N = s->rows, H = s->shape.hidden, F = s->shape.inner;
    SF_TRY_RETURN(take(&l->input, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&l->qkv, &s->memory, 3 * N * H, error));
    SF_TRY_RETURN(take(&l->context, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&l->sum1, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&l->middle, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&l->raw, &s->memory, N * F, error));
    SF_TRY_RETURN(take(&l->inner, &s->memory, N * F, error));
    SF_TRY_RETURN(take(&l->sum2, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&l->sums, &s->memory, N * s->shape.heads, error));
    return make_products(l, s, error);
}

safer_status make_end(sf_device_step *s, const sf_device_training *t, safer_error *error)
{
    const sf_encoder *e = t->encoder;
    const size_t B = s->texts, H = e->hidden, C = e->classes;
    const float *parts[] = {e->classifier.weight, e->classifier.bias, e->pooler.weight, e->pooler.bias};
    for (int i = 0; i < 4; i++) s->end_offsets[i] = offset_of(t, e->pooler.weight || i < 2 ? parts[i] : NULL);
    const size_t *o = s->end_offsets;
    const int pooler = o[2] != SIZE_MAX;
    s->end = {(int)H,
              (int)C,
              e->mean,
              pooler ? s->parameters + o[2] : NULL,
              pooler ? s->parameters + o[3] : NULL,
              e->pooler_activation == SF_ENCODER_RELU,
              s->parameters + o[0],
              s->parameters + o[1]};
    SF_TRY_RETURN(take(&s->ends_of.pooled, &s->memory, B * H, error));
    SF_TRY_RETURN(take(&s->ends_of.features, &s->memory, B * H, error));
    SF_TRY_RETURN(take(&s->ends_of.dropped, &s->memory, B * H, error));
    SF_TRY_RETURN(take(&s->ends_of.slopes, &s->memory, B * H, error));
    SF_TRY_RETURN(take(&s->ends_of.dlogits, &s->memory, B * C, error));
    SF_TRY_RETURN(take(&s->ends_of.losses, &s->memory, B, error));
    SF_TRY_RETURN(take(&s->masks, &s->memory, B * H, error));
    return take(&s->labels, &s->memory, B, error);
}

safer_status make_arrays(sf_device_step *s, safer_error *error)
{
    const size_t N = s->rows, H = s->shape.hidden, F = s->shape.inner, trained = s->size - s->start;
    const size_t widest = 3 * H > F ? 3 * H : F;
    SF_TRY_RETURN(take_bytes(&s->workspace, &s->memory, PRODUCT_WORKSPACE, error));
    SF_TRY_RETURN(take(&s->gradient, &s->memory, s->size, error));
    SF_TRY_RETURN(take(&s->means, &s->memory, trained, error));
    SF_TRY_RETURN(take(&s->variances, &s->memory, trained, error));
    SF_TRY_RETURN(take(&s->last, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&s->embedded, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&s->d, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&s->dsum, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&s->dinner, &s->memory, N * F, error));
    SF_TRY_RETURN(take(&s->dcontext, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&s->dqkv, &s->memory, 3 * N * H, error));
    SF_TRY_RETURN(take(&s->deltas, &s->memory, N * s->shape.heads, error));
    SF_TRY_RETURN(take(&s->partial, &s->memory, SUM_BLOCKS * widest, error));
    SF_TRY_RETURN(take(&s->scale, &s->memory, 1, error));
    SF_TRY_RETURN(take(&s->squares, &s->memory, SQUARES, error));
    SF_TRY_RETURN(take(&s->ids, &s->memory, N, error));
    SF_TRY_RETURN(take(&s->starts, &s->memory, N + 1, error));
    SF_TRY_RETURN(take(&s->places, &s->memory, N, error));
    SF_TRY_RETURN(take(&s->blocks, &s->memory, N, error));
    SF_TRY_RETURN(take(&s->back_blocks, &s->memory, N, error));
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 3; i++) SF_TRY_RETURN(take(&s->lists[k][i], &s->memory, N + 1, error));
    s->host_bytes = (N + 1) * (8 * sizeof(uint32_t) + 2 * sizeof(sf_attend_block) + sizeof(uint16_t));
    SF_CUDA_TRY(cudaMallocHost(&s->host, s->host_bytes), "taking pinned memory");
    SF_CUDA_TRY(cudaMemset(s->means, 0, trained * sizeof *s->means), "clearing memory");
    SF_CUDA_TRY(cudaMemset(s->variances, 0, trained * sizeof *s->variances), "clearing memory");
    SF_CUDA_TRY(cudaMemset(s->gradient, 0, s->size * sizeof *s->gradient), "clearing memory");
    return SAFER_OK;
}

__global__ void round_parameters(bf16 *out, const float *in, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i < count) out[i] = __float2bfloat16_rn(in[i]);
}

safer_status load_parameters(sf_device_step *s, const float *parameters, safer_error *error)
{
    SF_CUDA_TRY(cudaMemcpyAsync(s->parameters, parameters, s->size * sizeof *parameters, cudaMemcpyHostToDevice,
                                s->stream),
                "copying parameters");
    round_parameters<<<(unsigned)((s->size + 255) / 256), 256, 0, s->stream>>>(s->rounded, s->parameters, s->size);
    SF_CUDA_TRY(cudaStreamSynchronize(s->stream), "copying parameters");
    return SAFER_OK;
}

safer_status make(sf_device_step *s, const sf_device_training *t, safer_error *error)
{
    const sf_encoder *e = t->encoder;
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    SF_CUDA_TRY(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "making a stream");
    SF_CUDA_TRY(cublasLtCreate(&s->library), "its start");
    SF_TRY_RETURN(take(&s->parameters, &s->memory, s->size, error));
    SF_TRY_RETURN(take(&s->rounded, &s->memory, s->size, error));
    SF_TRY_RETURN(take(&s->decays, &s->memory, s->size, error));
    SF_CUDA_TRY(cudaMemcpy(s->decays, t->decays, s->size, cudaMemcpyHostToDevice), "copying parameters");
    SF_TRY_RETURN(load_parameters(s, t->parameters, error));
    SF_TRY_RETURN(make_arrays(s, error));
    for (size_t i = 0; i < e->layers; i++) {
        describe_layer(&s->layers[i], t, &e->layer[i]);
        SF_TRY_RETURN(make_layer(&s->layers[i], s, error));
    }
    s->words = offset_of(t, e->words);
    s->positions = offset_of(t, e->places);
    s->type = offset_of(t, e->type);
    s->norm[0] = offset_of(t, e->norm.weight);
    s->norm[1] = offset_of(t, e->norm.bias);
    return make_end(s, t, error);
}

/* -------------------------------------------------------------------- batch */

/* Rows by key, in order: keys that occur, where their rows start, and the rows. */
template <typename K>
size_t list_rows(uint32_t *keys, uint32_t *starts, uint32_t *list, const K *key_of, size_t rows, size_t range)
{
    size_t entries = 0, at = 0;
    uint32_t *first = (uint32_t *)malloc((range + rows) * sizeof *first), *next = first + range; /* chains of rows */
    if (!first) return SIZE_MAX;
    memset(first, 0xff, range * sizeof *first);
    for (size_t i = rows; i-- > 0;) next[i] = first[key_of[i]], first[key_of[i]] = (uint32_t)i;
    for (size_t i = 0; i < rows; i++) {
        if (first[key_of[i]] != i) continue; /* not the first of its key */
        keys[entries] = key_of[i];
        starts[entries++] = (uint32_t)at;
        for (uint32_t k = (uint32_t)i; k != UINT32_MAX; k = next[k]) list[at++] = k;
    }
    starts[entries] = (uint32_t)at;
    free(first);
    return entries;
}

struct sent {
    size_t rows, blocks, back_blocks, entries[2];
};

struct piece {
    void *to;
    const void *from;
    size_t bytes;
};

size_t cut(sf_attend_block *out, const uint32_t *starts, size_t count, uint32_t queries)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t q = 0, length = starts[i + 1] - starts[i]; q < length; q += queries)
            out[made++] = {starts[i], length, q};
    return made;
}

safer_status send(sent *out, sf_device_step *s, const uint32_t *ids, const size_t *offsets, size_t count, int listed,
                  safer_error *error)
{
    const size_t rows = offsets[count] - offsets[0], N = s->rows + 1;
    uint32_t *host_ids = (uint32_t *)s->host, *starts = host_ids + N, *lists = starts + N;
    sf_attend_block *blocks = (sf_attend_block *)(lists + 6 * N), *back_blocks = blocks + N;
    uint16_t *places = (uint16_t *)(back_blocks + N);
    memcpy(host_ids, ids + offsets[0], rows * sizeof *ids);
    for (size_t i = 0; i <= count; i++) starts[i] = (uint32_t)(offsets[i] - offsets[0]);
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = starts[i]; k < starts[i + 1]; k++) places[k] = (uint16_t)(k - starts[i]);
    *out = {rows, cut(blocks, starts, count, SF_ATTEND_QUERIES), cut(back_blocks, starts, count, BACK_ROWS), {0, 0}};
    piece pieces[11] = {{s->ids, host_ids, rows * sizeof *ids},
                        {s->starts, starts, (count + 1) * sizeof *starts},
                        {s->places, places, rows * sizeof *places},
                        {s->blocks, blocks, out->blocks * sizeof *blocks},
                        {s->back_blocks, back_blocks, out->back_blocks * sizeof *blocks}};
    int made = 5;
    if (listed) {
        out->entries[0] = list_rows(lists, lists + N, lists + 2 * N, host_ids, rows, s->shape.vocabulary);
        out->entries[1] = list_rows(lists + 3 * N, lists + 4 * N, lists + 5 * N, places, rows, s->shape.positions);
        if (out->entries[0] == SIZE_MAX || out->entries[1] == SIZE_MAX)
            return fail(error, SAFER_MEMORY, "out of memory");
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < 3; i++)
                pieces[made++] = {s->lists[k][i], lists + (size_t)(3 * k + i) * N,
                                  (i == 2 ? rows : out->entries[k] + 1) * sizeof *lists};
    }
    for (int i = 0; i < made; i++)
        SF_CUDA_TRY(cudaMemcpyAsync(pieces[i].to, pieces[i].from, pieces[i].bytes, cudaMemcpyHostToDevice, s->stream),
                    "copying texts");
    return SAFER_OK;
}

/* ------------------------------------------------------------------ forward */

template <int N> void run_embed(const sf_device_step *s, bf16 *out, size_t rows)
{
    const float *p = s->parameters;
    embed<N><<<(unsigned)((rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK), 32 * ROWS_A_BLOCK, 0, s->stream>>>(
        out, s->embedded, s->ids, s->places, p + s->words, p + s->positions, s->type == SIZE_MAX ? NULL : p + s->type,
        p + s->norm[0], p + s->norm[1], (int)s->shape.hidden, s->shape.epsilon, (int)rows);
}

template <int N> void run_norm(const sf_device_step *s, bf16 *out, const bf16 *in, const size_t *norm_, size_t rows)
{
    norm<N><<<(unsigned)((rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK), 32 * ROWS_A_BLOCK, 0, s->stream>>>(
        out, in, s->parameters + norm_[0], s->parameters + norm_[1], (int)s->shape.hidden, s->shape.epsilon, (int)rows);
}

safer_status run(void *out, const bf16 *in, const bf16 *other, const product *p, const sf_device_step *s, size_t rows,
                 safer_error *error)
{
    return product_run(out, in, other, p, rows, s->library, s->workspace, s->stream, error);
}

template <int D> void run_attend(const sf_device_step *s, const layer *l, const sent *b)
{
    attend<D><<<dim3((unsigned)b->blocks, (unsigned)s->shape.heads), SF_ATTEND_THREADS, 0, s->stream>>>(
        l->context, l->sums, l->qkv, s->blocks, (int)s->shape.hidden, 1.4426950408889634f / sqrtf((float)D));
}

safer_status forward(sf_device_step *s, const sent *b, safer_error *error)
{
    const size_t H = s->shape.hidden, rows = b->rows, layers = s->shape.layers;
    FOR_WIDTH(H, run_embed, s, s->layers[0].input, rows);
    for (size_t i = 0; i < layers; i++) {
        layer *l = &s->layers[i];
        bf16 *next = i + 1 < layers ? s->layers[i + 1].input : s->last;
        SF_TRY_RETURN(run(l->qkv, l->input, NULL, &l->forward[0], s, rows, error));
        if (H / s->shape.heads == 32)
            run_attend<32>(s, l, b);
        else
            run_attend<64>(s, l, b);
        SF_TRY_RETURN(run(l->sum1, l->context, l->input, &l->forward[1], s, rows, error));
        FOR_WIDTH(H, run_norm, s, l->middle, l->sum1, l->norm, rows);
        SF_TRY_RETURN(run(l->inner, l->middle, NULL, &l->forward[2], s, rows, error));
        SF_TRY_RETURN(run(l->sum2, l->inner, l->middle, &l->forward[3], s, rows, error));
        FOR_WIDTH(H, run_norm, s, next, l->sum2, l->norm + 2, rows);
    }
    return SAFER_OK;
}

/* --------------------------------------------------------------------- back */

/* dsum from d, and the gradients of the norm and of the bias before it (SIZE_MAX: none). */
template <int N>
void norm_back_of(const sf_device_step *s, bf16 *dsum, const bf16 *d, const bf16 *sum, const size_t *norm_, size_t bias,
                  size_t rows)
{
    const int H = (int)s->shape.hidden;
    run_norm_back<N>(dsum, s->partial, d, sum, s->parameters + norm_[0], H, s->shape.epsilon, (int)rows, s->stream);
    add_partial<<<dim3((unsigned)((H + 255) / 256), 3), 256, 0, s->stream>>>(
        s->gradient + norm_[0], s->gradient + norm_[1], bias == SIZE_MAX ? NULL : s->gradient + bias, s->partial, 3, H);
}

void sum_bias(const sf_device_step *s, size_t bias, const bf16 *d, int columns, size_t rows)
{
    sum_rows<<<dim3((unsigned)((columns + 511) / 512), SUM_BLOCKS), 256, 0, s->stream>>>(s->partial, d, columns,
                                                                                         (int)rows);
    add_partial<<<(unsigned)((columns + 255) / 256), 256, 0, s->stream>>>(s->gradient + bias, NULL, NULL, s->partial, 1,
                                                                          columns);
}

template <int D> void run_attend_back(const sf_device_step *s, const layer *l, const sent *b)
{
    const int H = (int)s->shape.hidden, heads = (int)s->shape.heads;
    const float scale = 1 / sqrtf((float)D);
    const back k = {l->qkv,         s->dcontext, l->sums, s->deltas, s->dqkv,
                    s->back_blocks, H,           heads,   scale,     scale * 1.4426950408889634f};
    attend_deltas<D><<<(unsigned)((b->rows + 7) / 8), 256, 0, s->stream>>>(s->deltas, l->context, s->dcontext, H, heads,
                                                                           (int)b->rows);
    const dim3 grid((unsigned)b->back_blocks, (unsigned)heads);
    attend_back_queries<D><<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(k);
    attend_back_keys<D><<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(k);
}

__global__ void __launch_bounds__(256) relu_back(bf16 *d, const bf16 *activated, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i < count && !(__bfloat162float(activated[i]) > 0)) d[i] = __float2bfloat16_rn(0);
}

safer_status layer_back(sf_device_step *s, const layer *l, const sent *b, int lowest, safer_error *error)
{
    const size_t H = s->shape.hidden, F = s->shape.inner, rows = b->rows;
    float *g = s->gradient;
    FOR_WIDTH(H, norm_back_of, s, s->dsum, s->d, l->sum2, l->norm + 2, l->bias[3], rows);
    SF_TRY_RETURN(run(g + l->weight[3], s->dsum, l->inner, &l->weights[3], s, rows, error));
    SF_TRY_RETURN(run(s->dinner, s->dsum, NULL, &l->backward[3], s, rows, error));
    if (s->shape.activation == SF_ENCODER_RELU)
        relu_back<<<(unsigned)((rows * F + 255) / 256), 256, 0, s->stream>>>(s->dinner, l->inner, rows * F);
    sum_bias(s, l->bias[2], s->dinner, (int)F, rows);
    SF_TRY_RETURN(run(g + l->weight[2], s->dinner, l->middle, &l->weights[2], s, rows, error));
    SF_TRY_RETURN(run(s->d, s->dinner, s->dsum, &l->backward[2], s, rows, error));
    FOR_WIDTH(H, norm_back_of, s, s->dsum, s->d, l->sum1, l->norm, l->bias[1], rows);
    SF_TRY_RETURN(run(g + l->weight[1], s->dsum, l->context, &l->weights[1], s, rows, error));
    SF_TRY_RETURN(run(s->dcontext, s->dsum, NULL, &l->backward[1], s, rows, error));
    if (H / s->shape.heads == 32)
        run_attend_back<32>(s, l, b);
    else
        run_attend_back<64>(s, l, b);
    sum_bias(s, l->bias[0], s->dqkv, (int)(3 * H), rows);
    SF_TRY_RETURN(run(g + l->weight[0], s->dqkv, l->input, &l->weights[0], s, rows, error));
    if (!lowest) SF_TRY_RETURN(run(s->d, s->dqkv, s->dsum, &l->backward[0], s, rows, error));
    return SAFER_OK;
}

void embeddings_back(sf_device_step *s, const sent *b)
{
    const int H = (int)s->shape.hidden;
    float *g = s->gradient;
    FOR_WIDTH(s->shape.hidden, norm_back_of, s, s->dsum, s->d, s->embedded, s->norm, SIZE_MAX, b->rows);
    cudaMemsetAsync(g + s->words, 0, s->shape.vocabulary * s->shape.hidden * sizeof *g, s->stream);
    cudaMemsetAsync(g + s->positions, 0, s->shape.positions * s->shape.hidden * sizeof *g, s->stream);
    for (int k = 0; k < 2; k++)
        gather_rows<<<(unsigned)b->entries[k], 128, 0, s->stream>>>(g + (k ? s->positions : s->words), s->lists[k][0],
                                                                    s->lists[k][1], s->lists[k][2], s->dsum, H);
    if (s->type != SIZE_MAX) sum_bias(s, s->type, s->dsum, H, b->rows);
}

void end_back(sf_device_step *s, size_t count)
{
    const int H = s->end.hidden, C = s->end.classes;
    const size_t *o = s->end_offsets;
    float *g = s->gradient;
    loss_back<<<(unsigned)count, POOL_THREADS, H * sizeof(float), s->stream>>>(s->d, s->ends_of, s->starts, s->end);
    dense_gradient<<<(unsigned)((C * H + 255) / 256), 256, 0, s->stream>>>(g + o[0], g + o[1], s->ends_of.dlogits,
                                                                           s->ends_of.dropped, C, H, (int)count);
    if (o[2] != SIZE_MAX)
        dense_gradient<<<(unsigned)(((size_t)H * H + 255) / 256), 256, 0, s->stream>>>(
            g + o[2], g + o[3], s->ends_of.slopes, s->ends_of.pooled, H, H, (int)count);
}

safer_status check_shape(const sf_encoder *e, safer_error *error)
{
    const size_t D = e->hidden / e->heads;
    if ((D == 32 || D == 64) && e->hidden % 8 == 0 && e->inner % 8 == 0 && e->hidden <= 2048) return SAFER_OK;
    return fail(error, SAFER_INPUT, "the GPU trains encoders whose heads have 32 or 64 numbers; this one's have %zu",
                D);
}

} // namespace

/* -------------------------------------------------------------- the interface */

void sf_cuda_step_free(sf_device_step *s)
{
    if (!s) return;
    cudaSetDevice(s->device);
    if (s->stream) cudaStreamDestroy(s->stream);
    give_back_all(&s->memory);
    cudaFreeHost(s->host);
    if (s->library) cublasLtDestroy(s->library);
    free(s->layers);
    free(s);
}

safer_status sf_cuda_step_new(sf_device_step **out, int device, const sf_device_training *t, safer_error *error)
{
    SF_TRY_RETURN(check_shape(t->encoder, error));
    sf_device_step *s = (sf_device_step *)calloc(1, sizeof *s);
    if (!s) return fail(error, SAFER_MEMORY, "out of memory");
    s->shape = *t->encoder;
    s->device = device;
    s->size = t->size;
    s->start = t->start;
    s->first = t->layer;
    s->embeddings = t->embeddings;
    s->clip = t->clip;
    s->texts = t->texts;
    s->rows = t->rows;
    s->layers = (layer *)calloc(t->encoder->layers, sizeof *s->layers);
    const safer_status status = s->layers ? make(s, t, error) : fail(error, SAFER_MEMORY, "out of memory");
    if (status != SAFER_OK)
        sf_cuda_step_free(s);
    else
        *out = s;
    return status;
}

safer_status sf_cuda_step_write(sf_device_step *s, const float *parameters, const float *means, const float *variances,
                                safer_error *error)
{
    const size_t bytes = (s->size - s->start) * sizeof *means;
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    SF_TRY_RETURN(load_parameters(s, parameters, error));
    if (means) SF_CUDA_TRY(cudaMemcpy(s->means, means, bytes, cudaMemcpyHostToDevice), "copying parameters");
    if (variances)
        SF_CUDA_TRY(cudaMemcpy(s->variances, variances, bytes, cudaMemcpyHostToDevice), "copying parameters");
    return SAFER_OK;
}

safer_status sf_cuda_step_read(float *parameters, float *means, float *variances, sf_device_step *s, safer_error *error)
{
    const size_t bytes = (s->size - s->start) * sizeof *means;
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    SF_CUDA_TRY(cudaStreamSynchronize(s->stream), "training");
    SF_CUDA_TRY(cudaMemcpy(parameters, s->parameters, s->size * sizeof *parameters, cudaMemcpyDeviceToHost),
                "copying parameters");
    if (means) SF_CUDA_TRY(cudaMemcpy(means, s->means, bytes, cudaMemcpyDeviceToHost), "copying parameters");
    if (variances)
        SF_CUDA_TRY(cudaMemcpy(variances, s->variances, bytes, cudaMemcpyDeviceToHost), "copying parameters");
    return SAFER_OK;
}

safer_status sf_cuda_step_gradient(double *loss, float *gradient, sf_device_step *s, const uint32_t *ids,
                                   const size_t *offsets, size_t count, const int *labels, const float *masks,
                                   safer_error *error)
{
    static const char what[] = "copying texts";
    const size_t H = s->shape.hidden;
    sent b;
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    SF_TRY_RETURN(send(&b, s, ids, offsets, count, s->embeddings, error));
    SF_CUDA_TRY(cudaMemcpyAsync(s->labels, labels, count * sizeof *labels, cudaMemcpyHostToDevice, s->stream), what);
    if (masks)
        SF_CUDA_TRY(cudaMemcpyAsync(s->masks, masks, count * H * sizeof *masks, cudaMemcpyHostToDevice, s->stream),
                    what);
    s->ends_of.masks = masks ? s->masks : NULL;
    s->ends_of.labels = s->labels;
    SF_TRY_RETURN(forward(s, &b, error));
    loss_forward<<<(unsigned)count, POOL_THREADS, 0, s->stream>>>(s->ends_of, s->last, s->starts, s->end,
                                                                  1.0f / (float)count);
    end_back(s, count);
    for (size_t i = s->shape.layers; i-- > s->first;)
        SF_TRY_RETURN(layer_back(s, &s->layers[i], &b, i == s->first && !s->embeddings, error));
    if (s->embeddings) embeddings_back(s, &b);
    SF_CUDA_TRY(cudaGetLastError(), "starting a kernel");
    float *losses = (float *)malloc(count * sizeof *losses);
    if (!losses) return fail(error, SAFER_MEMORY, "out of memory");
    safer_status status = check(cudaMemcpyAsync(losses, s->ends_of.losses, count * sizeof *losses,
                                                cudaMemcpyDeviceToHost, s->stream),
                                "copying the loss", error);
    if (status == SAFER_OK) status = check(cudaStreamSynchronize(s->stream), "training", error);
    *loss = 0;
    for (size_t i = 0; i < count && status == SAFER_OK; i++) *loss += (double)losses[i];
    free(losses);
    if (status == SAFER_OK && gradient)
        status = check(cudaMemcpy(gradient, s->gradient, s->size * sizeof *gradient, cudaMemcpyDeviceToHost),
                       "copying the gradient", error);
    return status;
}

safer_status sf_cuda_step_update(sf_device_step *s, const sf_device_adam *a, safer_error *error)
{
    const size_t first = s->start, count = s->size - first;
    const adam numbers = {a->beta1, a->beta2, a->correct1, a->correct2, a->epsilon, a->rate, a->decay};
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    sum_squares<<<SQUARES, 256, 0, s->stream>>>(s->squares, s->gradient + first, count);
    clip_scale<<<1, 1, 0, s->stream>>>(s->scale, s->squares, SQUARES, s->clip);
    update<<<(unsigned)((count + 255) / 256), 256, 0, s->stream>>>(s->parameters + first, s->rounded + first, s->means,
                                                                   s->variances, s->gradient + first, s->scale,
                                                                   s->decays + first, numbers, count);
    SF_CUDA_TRY(cudaGetLastError(), "starting a kernel");
    return SAFER_OK;
}

safer_status sf_cuda_step_answer(float *logits, sf_device_step *s, const uint32_t *ids, const size_t *offsets,
                                 size_t count, safer_error *error)
{
    sent b;
    SF_CUDA_TRY(cudaSetDevice(s->device), "choosing the device");
    SF_TRY_RETURN(send(&b, s, ids, offsets, count, 0, error));
    SF_TRY_RETURN(forward(s, &b, error));
    classify<<<(unsigned)count, POOL_THREADS, 2 * s->shape.hidden * sizeof(float), s->stream>>>(s->ends_of.dlogits,
                                                                                                s->last, s->starts,
                                                                                                s->end);
    SF_CUDA_TRY(cudaGetLastError(), "starting a kernel");
    SF_CUDA_TRY(cudaMemcpyAsync(logits, s->ends_of.dlogits, count * s->shape.classes * sizeof *logits,
                                cudaMemcpyDeviceToHost, s->stream),
                "copying answers");
    SF_CUDA_TRY(cudaStreamSynchronize(s->stream), "computing answers");
    return SAFER_OK;
}
