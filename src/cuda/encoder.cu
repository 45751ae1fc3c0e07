/* An encoder on the GPU: its weights, answers, and the means of parts of texts.
 *
 * Texts lie one after the other without padding. bf16 everywhere between kernels, sums in f32. A layer is
 *
 *   qkv = x * W + b;  context = attention(qkv);  y = context * W + b + x;  x = norm(y)
 *   inner = gelu(x * W + b);                     y = inner * W + b + x;    x = norm(y)
 *
 * with bias, residual and activation in the products' own kernels; or, where norms come first, qkv and inner of
 * norm(x) and norm(y), without those at the end. Every kernel computes a row, or a text, in an order that does not
 * depend on the others. */
#include "cuda/encoder.cuh"

#include "cuda/forms.cuh"
#include "cuda/memory.cuh"
#include "cuda/plain.cuh"
#include "cuda/pool.cuh"
#include "cuda/relative.cuh"
#include "cuda/rotary.cuh"
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
    float *norm[4];                   /* weight and bias of the first norm, of the second; NULL: none */
    float *turns;                     /* of rotary positions; NULL: none */
    bf16 *place_keys, *place_queries; /* (columns, hidden) of disentangled attention; NULL: none */
    attend_kind kind;
};

/* What one answer at a time works with. */
struct slot {
    cudaStream_t stream;
    bf16 *x, *y, *qkv, *context, *inner;
    bf16 *embedded, *raw; /* before their projection, before the activation: NULL where they are not needed */
    bf16 *places_by[2];   /* scores by keys of places, by queries of places */
    chunk *chunks;
    void *workspace;
    uint32_t *ids, *starts;
    uint16_t *places;
    sf_attend_block *blocks;
    span *parts;
    float *logits;
    char *host; /* pinned: what comes back, parts, and then what else is copied to the device */
};

} // namespace

struct sf_device_net {
    sf_encoder shape; /* its pointers are not used */
    int device, slots;
    size_t rows;
    cublasLtHandle_t library;
    float *words, *positions, *type, *norm_weight, *norm_bias, *end_norm[2];
    product projection;
    relation distances;    /* what all layers share */
    column_range *columns; /* of scores by places, by length; or NULL */
    heads scores;
    struct layer *layers;
    head end;
    struct slot *slot;
    memory memory;
};

namespace
{

/* ------------------------------------------------------------------ weights */

/* NULL becomes NULL. */
safer_status copy_floats(float **out, sf_device_net *net, const float *from, size_t count, safer_error *error)
{
    *out = NULL;
    if (!from) return SAFER_OK;
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
    if (from.bias) SF_TRY_RETURN(copy_rounded(&bias, net, from.bias, outputs, error));
    const product_options options = {epilogue, bias, NULL, added};
    return product_make(out, net->library, FORWARD, weight, (int)outputs, (int)inputs, options, error);
}

cublasLtEpilogue_t linear(sf_encoder_pair p) { return p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT; }

safer_status load_layer(struct layer *out, sf_device_net *net, const sf_encoder_layer *from, safer_error *error)
{
    const sf_encoder *e = &net->shape;
    const size_t H = e->hidden, F = e->inner, G = inner_outputs(e);
    SF_TRY_RETURN(load_product(&out->qkv, net, from->qkv, 3 * H, H, linear(from->qkv), 0, error));
    SF_TRY_RETURN(load_product(&out->attention, net, from->attention, H, H, linear(from->attention), 1, error));
    SF_TRY_RETURN(
        load_product(&out->inner, net, from->inner, G, H, epilogue_of(e, from->inner.bias != NULL), 0, error));
    SF_TRY_RETURN(load_product(&out->outer, net, from->outer, H, F, linear(from->outer), 1, error));
    const float *norms[] = {from->norm1.weight, from->norm1.bias, from->norm2.weight, from->norm2.bias};
    for (int i = 0; i < 4; i++) SF_TRY_RETURN(copy_floats(&out->norm[i], net, norms[i], H, error));
    return SAFER_OK;
}

/* One of the two tables there are, copied once. */
safer_status load_turns(sf_device_net *net, const sf_encoder *e, safer_error *error)
{
    for (size_t i = 0; i < e->layers; i++) {
        size_t same = 0;
        while (e->layer[same].turns != e->layer[i].turns) same++;
        if (same < i)
            net->layers[i].turns = net->layers[same].turns;
        else
            SF_TRY_RETURN(
                copy_floats(&net->layers[i].turns, net, e->layer[i].turns, e->tokens * (e->hidden / e->heads), error));
    }
    return SAFER_OK;
}

safer_status load_end(sf_device_net *net, const sf_encoder *e, safer_error *error)
{
    const size_t H = e->hidden;
    const sf_encoder_pair norm = e->pooler.weight ? e->pooler_norm : (sf_encoder_pair){};
    float *p[6] = {};
    SF_TRY_RETURN(copy_floats(&p[0], net, e->classifier.weight, e->classes * H, error));
    SF_TRY_RETURN(copy_floats(&p[1], net, e->classifier.bias, e->classes, error));
    SF_TRY_RETURN(copy_floats(&p[2], net, e->pooler.weight, H * H, error));
    SF_TRY_RETURN(copy_floats(&p[3], net, e->pooler.bias, H, error));
    SF_TRY_RETURN(copy_floats(&p[4], net, norm.weight, H, error));
    SF_TRY_RETURN(copy_floats(&p[5], net, norm.bias, H, error));
    net->end = (head){(int)H, (int)e->classes, e->mean, p[2], p[3], e->pooler_activation, p[4],
                      p[5],   e->epsilon,      p[0],    p[1]};
    SF_TRY_RETURN(copy_floats(&net->end_norm[0], net, e->end.weight, H, error));
    return copy_floats(&net->end_norm[1], net, e->end.bias, H, error);
}

template <int N>
void run_norm(bf16 *out, const bf16 *in, float *const *norm_, const sf_device_net *net, size_t rows,
              cudaStream_t stream)
{
    norm<N><<<(unsigned)((rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK), 32 * ROWS_A_BLOCK, 0, stream>>>(
        out, in, norm_[0], norm_[1], (int)net->shape.hidden, net->shape.epsilon, (int)rows);
}

/* One side of a layer's places: (columns, hidden) from the table. */
safer_status load_places(bf16 **out, sf_device_net *net, sf_encoder_pair from, const bf16 *table, void *workspace,
                         safer_error *error)
{
    const size_t H = net->shape.hidden, before = net->memory.count + 1;
    product p;
    *out = NULL;
    if (!from.weight) return SAFER_OK;
    SF_TRY_RETURN(take(out, &net->memory, (size_t)net->distances.columns * H, error));
    SF_TRY_RETURN(load_product(&p, net, from, H, H, linear(from), 0, error));
    SF_TRY_RETURN(
        product_run(*out, table, NULL, &p, (size_t)net->distances.columns, net->library, workspace, 0, error));
    SF_CUDA_TRY(cudaDeviceSynchronize(), "computing places");
    give_back(&net->memory, before);
    return SAFER_OK;
}

/* The vectors of places of every layer, from their table, which is normed before or not. */
safer_status load_parts(sf_device_net *net, const sf_encoder *e, safer_error *error)
{
    const size_t H = e->hidden, columns = place_columns(e);
    float *whole, *norm_[2];
    bf16 *table, *normed;
    void *workspace;
    net->distances.columns = (int)columns;
    net->columns = column_ranges(e);
    if (!net->columns) return fail(error, SAFER_MEMORY, "out of memory");
    SF_TRY_RETURN(heads_make(&net->scores, net->library, HEADS_SCORES, (int)H, (int)e->heads, (int)columns, 1, error));
    SF_TRY_RETURN(copy_floats(&norm_[0], net, e->relative_norm.weight, H, error));
    SF_TRY_RETURN(copy_floats(&norm_[1], net, e->relative_norm.bias, H, error));
    SF_TRY_RETURN(take(&table, &net->memory, columns * H, error));
    SF_TRY_RETURN(take(&normed, &net->memory, columns * H, error));
    SF_TRY_RETURN(take_bytes(&workspace, &net->memory, PRODUCT_WORKSPACE, error));
    SF_TRY_RETURN(copy_floats(&whole, net, e->relative, e->relative_rows * H, error));
    const size_t first = places_of(e).first;
    round_rows<<<(unsigned)((columns * H + 255) / 256), 256>>>(table, whole + first * H, H, e->relative_rows - first,
                                                               columns);
    if (norm_[0]) {
        FOR_WIDTH(H, run_norm, normed, table, norm_, net, columns, 0);
        table = normed;
    }
    SF_CUDA_TRY(cudaDeviceSynchronize(), "computing places");
    for (size_t i = 0; i < e->layers; i++) {
        struct layer *l = &net->layers[i];
        if (e->form.place_keys)
            SF_TRY_RETURN(load_places(&l->place_keys, net, e->layer[i].place_key, table, workspace, error));
        if (e->form.place_queries)
            SF_TRY_RETURN(load_places(&l->place_queries, net, e->layer[i].place_query, table, workspace, error));
    }
    return SAFER_OK;
}

safer_status load_distances(sf_device_net *net, const sf_encoder *e, safer_error *error)
{
    const int reach = reach_of(e->tokens), heads = (int)e->heads;
    int32_t *buckets = NULL, *stretched = stretch_buckets(e->buckets, e->tokens, places_of(e).first);
    float *table = NULL, *bias = NULL;
    if (!stretched) return fail(error, SAFER_MEMORY, "out of memory");
    safer_status status = take(&buckets, &net->memory, 2 * (size_t)reach, error);
    if (status == SAFER_OK)
        status = check(cudaMemcpy(buckets, stretched, 2 * (size_t)reach * sizeof *buckets, cudaMemcpyHostToDevice),
                       "copying weights", error);
    free(stretched);
    if (status != SAFER_OK) return status;
    net->distances.reach = reach;
    net->distances.buckets = buckets;
    if (e->form.relative == SF_RELATIVE_PARTS) return load_parts(net, e, error);
    SF_TRY_RETURN(copy_floats(&table, net, e->relative, e->relative_rows * e->heads, error));
    SF_TRY_RETURN(take(&bias, &net->memory, 2 * (size_t)reach * e->heads, error));
    spread_bias<<<dim3((unsigned)(2 * reach + 255) / 256, (unsigned)heads), 256>>>(bias, table, buckets, reach, heads);
    SF_CUDA_TRY(cudaDeviceSynchronize(), "computing places");
    net->distances.bias = bias;
    return SAFER_OK;
}

safer_status load(sf_device_net *net, const sf_encoder *e, safer_error *error)
{
    const size_t H = e->hidden, E = width_of(e), normed = e->form.projected_first ? H : E;
    SF_TRY_RETURN(copy_floats(&net->words, net, e->words, e->vocabulary * E, error));
    SF_TRY_RETURN(copy_floats(&net->positions, net, e->places, e->positions * E, error));
    SF_TRY_RETURN(copy_floats(&net->type, net, e->type, E, error));
    SF_TRY_RETURN(copy_floats(&net->norm_weight, net, e->norm.weight, normed, error));
    SF_TRY_RETURN(copy_floats(&net->norm_bias, net, e->norm.bias, normed, error));
    if (e->form.width)
        SF_TRY_RETURN(load_product(&net->projection, net, e->projection, H, E, linear(e->projection), 0, error));
    for (size_t i = 0; i < e->layers; i++) {
        if (e->form.shared && i)
            net->layers[i] = net->layers[0];
        else
            SF_TRY_RETURN(load_layer(&net->layers[i], net, &e->layer[i], error));
        net->layers[i].kind = kind_of(e, i);
    }
    net->distances.window = (int)e->form.window;
    SF_TRY_RETURN(load_turns(net, e, error));
    if (e->form.relative != SF_RELATIVE_NONE) SF_TRY_RETURN(load_distances(net, e, error));
    return load_end(net, e, error);
}

/* -------------------------------------------------------------------- slots */

/* A text has at least one row, so there are no more texts than rows. */
size_t most_blocks(size_t rows) { return rows; }

/* Means come back by so many at a time: all of a batch would be more pinned memory than a machine likes to give. */
size_t staged_parts(const sf_device_net *net)
{
    const size_t some = ((size_t)1 << 20) / net->shape.hidden;
    return some < net->rows ? some : net->rows;
}

/* Floats that come back: logits, or means. */
size_t staged(const sf_device_net *net)
{
    const size_t logits = net->rows * net->shape.classes, means = staged_parts(net) * net->shape.hidden;
    return logits > means ? logits : means;
}

size_t host_bytes(const sf_device_net *net)
{
    const size_t rows = net->rows;
    return staged(net) * sizeof(float) + rows * sizeof(span) + (2 * rows + 1) * sizeof(uint32_t) +
           most_blocks(rows) * sizeof(sf_attend_block) + rows * sizeof(uint16_t);
}

span *host_parts(const struct slot *s, const sf_device_net *net) { return (span *)((float *)s->host + staged(net)); }

safer_status make_slot(struct slot *s, sf_device_net *net, safer_error *error)
{
    const size_t rows = net->rows, H = net->shape.hidden;
    SF_CUDA_TRY(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "making a stream");
    SF_TRY_RETURN(take(&s->x, &net->memory, rows * H, error));
    SF_TRY_RETURN(take(&s->y, &net->memory, rows * H, error));
    SF_TRY_RETURN(take(&s->qkv, &net->memory, rows * 3 * H, error));
    SF_TRY_RETURN(take(&s->context, &net->memory, rows * H, error));
    SF_TRY_RETURN(take(&s->inner, &net->memory, rows * net->shape.inner, error));
    if (net->shape.form.width) SF_TRY_RETURN(take(&s->embedded, &net->memory, rows * width_of(&net->shape), error));
    if (activates_apart(&net->shape))
        SF_TRY_RETURN(take(&s->raw, &net->memory, rows * inner_outputs(&net->shape), error));
    if (net->shape.form.relative == SF_RELATIVE_PARTS) {
        const size_t size = place_rows(&net->shape, rows) * net->shape.heads * (size_t)net->distances.columns;
        if (net->shape.form.place_keys) SF_TRY_RETURN(take(&s->places_by[0], &net->memory, size, error));
        if (net->shape.form.place_queries) SF_TRY_RETURN(take(&s->places_by[1], &net->memory, size, error));
        s->chunks = (chunk *)malloc(most_chunks(&net->shape, rows) * sizeof *s->chunks);
        if (!s->chunks) return fail(error, SAFER_MEMORY, "out of memory");
    }
    SF_TRY_RETURN(take_bytes(&s->workspace, &net->memory, PRODUCT_WORKSPACE, error));
    SF_TRY_RETURN(take(&s->ids, &net->memory, rows, error));
    SF_TRY_RETURN(take(&s->starts, &net->memory, (rows + 1), error));
    SF_TRY_RETURN(take(&s->places, &net->memory, rows, error));
    SF_TRY_RETURN(take(&s->blocks, &net->memory, most_blocks(rows), error));
    SF_TRY_RETURN(take(&s->parts, &net->memory, rows, error));
    SF_TRY_RETURN(take(&s->logits, &net->memory, rows * net->shape.classes, error));
    SF_CUDA_TRY(cudaMallocHost(&s->host, host_bytes(net)), "taking pinned memory");
    return SAFER_OK;
}

void free_slots(sf_device_net *net)
{
    for (int i = 0; net->slot && i < net->slots; i++) {
        if (net->slot[i].stream) cudaStreamDestroy(net->slot[i].stream);
        cudaFreeHost(net->slot[i].host);
        free(net->slot[i].chunks);
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

/* What `send` found in a batch. */
struct sent {
    size_t rows, blocks, chunks;
};

template <int N> void run_embed(const struct slot *s, const sf_device_net *net, bf16 *out, bf16 *sums, size_t rows)
{
    const float *weight = sums ? NULL : net->norm_weight; /* sums are normed later */
    embed<N><<<(unsigned)((rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK), 32 * ROWS_A_BLOCK, 0, s->stream>>>(
        out, sums, s->ids, s->places, net->words, net->positions, net->type, weight, net->norm_bias,
        (int)width_of(&net->shape), net->shape.epsilon, (int)rows);
}

safer_status run_embeddings(const struct slot *s, const sf_device_net *net, size_t rows, safer_error *error)
{
    const sf_encoder *e = &net->shape;
    const int first = e->form.projected_first;
    FOR_WIDTH(width_of(e), run_embed, s, net, e->form.width ? s->embedded : s->x, first ? s->embedded : NULL, rows);
    if (!e->form.width) return SAFER_OK;
    float *const norm_[] = {net->norm_weight, net->norm_bias};
    SF_TRY_RETURN(product_run(first ? s->y : s->x, s->embedded, NULL, &net->projection, rows, net->library,
                              s->workspace, s->stream, error));
    if (first) FOR_WIDTH(e->hidden, run_norm, s->x, s->y, norm_, net, rows, s->stream);
    return SAFER_OK;
}

template <int KIND, bool TURNED = false>
void run_attend(const struct slot *s, const sf_device_net *net, const sf_attend_block *blocks, size_t count,
                const relation &r)
{
    const int H = (int)net->shape.hidden, heads = (int)net->shape.heads, D = H / heads;
    const float scale = scale_of(&net->shape, 1.4426950408889634f);
    const dim3 grid((unsigned)count, (unsigned)heads);
    if (D == 32)
        attend<32, KIND, TURNED>
            <<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(s->context, NULL, s->qkv, blocks, H, scale, r);
    else if (D == 64)
        attend<64, KIND, TURNED>
            <<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(s->context, NULL, s->qkv, blocks, H, scale, r);
    else
        attend_plain<KIND><<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(s->context, s->qkv, blocks, H, D, scale, r);
}

/* Disentangled attention: of some texts at a time, after their scores by places. */
safer_status run_parts(const struct slot *s, const sf_device_net *net, const struct layer *l, const sent *b,
                       safer_error *error)
{
    const size_t H = net->shape.hidden;
    for (const chunk *c = s->chunks; c < s->chunks + b->chunks; c++) {
        bf16 *queries = s->qkv + c->row * 3 * H, *keys = queries + H;
        relation r;
        relate_chunk(&r, &net->distances, net->columns, c);
        if (l->place_keys)
            SF_TRY_RETURN(heads_run(&net->scores, s->places_by[0], queries, l->place_keys + (size_t)r.low * H, c->rows,
                                    r.columns, net->library, s->workspace, s->stream, error));
        if (l->place_queries)
            SF_TRY_RETURN(heads_run(&net->scores, s->places_by[1], keys, l->place_queries + (size_t)r.low * H, c->rows,
                                    r.columns, net->library, s->workspace, s->stream, error));
        r.keys = s->places_by[0];
        r.queries = s->places_by[1];
        run_attend<ATTEND_PARTS>(s, net, s->blocks + c->block, c->blocks, r);
    }
    return SAFER_OK;
}

safer_status run_attention(const struct slot *s, const sf_device_net *net, const struct layer *l, const sent *b,
                           safer_error *error)
{
    const int H = (int)net->shape.hidden, D = H / (int)net->shape.heads;
    relation r = net->distances;
    if (l->turns && (D == 32 || D == 64)) { /* no other kind has them */
        r.turns = l->turns;
        if (l->kind == ATTEND_ALL) run_attend<ATTEND_ALL, true>(s, net, s->blocks, b->blocks, r);
        if (l->kind == ATTEND_LOCAL) run_attend<ATTEND_LOCAL, true>(s, net, s->blocks, b->blocks, r);
        return SAFER_OK;
    }
    if (l->turns) run_turn(s->qkv, s->blocks, b->blocks, l->turns, H, D, TURN, s->stream);
    if (l->kind == ATTEND_ALL) run_attend<ATTEND_ALL>(s, net, s->blocks, b->blocks, r);
    if (l->kind == ATTEND_LOCAL) run_attend<ATTEND_LOCAL>(s, net, s->blocks, b->blocks, r);
    if (l->kind == ATTEND_BIASED) run_attend<ATTEND_BIASED>(s, net, s->blocks, b->blocks, r);
    return l->kind == ATTEND_PARTS ? run_parts(s, net, l, b, error) : SAFER_OK;
}

safer_status run_inner(const struct slot *s, const sf_device_net *net, const bf16 *in, const struct layer *l,
                       size_t rows, safer_error *error)
{
    const sf_encoder *e = &net->shape;
    bf16 *out = activates_apart(e) ? s->raw : s->inner;
    SF_TRY_RETURN(product_run(out, in, NULL, &l->inner, rows, net->library, s->workspace, s->stream, error));
    if (activates_apart(e)) run_activate(s->inner, s->raw, e->activation, e->form.gated, e->inner, rows, s->stream);
    return SAFER_OK;
}

safer_status run_layer(const struct slot *s, const sf_device_net *net, const struct layer *l, const sent *b,
                       safer_error *error)
{
    const cudaStream_t stream = s->stream;
    const size_t H = net->shape.hidden, rows = b->rows;
    const int before = net->shape.form.prenorm;
    const bf16 *in = s->x;
    if (before && l->norm[0]) {
        FOR_WIDTH(H, run_norm, s->context, s->x, l->norm, net, rows, stream);
        in = s->context;
    }
    SF_TRY_RETURN(product_run(s->qkv, in, NULL, &l->qkv, rows, net->library, s->workspace, stream, error));
    SF_TRY_RETURN(run_attention(s, net, l, b, error));
    SF_TRY_RETURN(product_run(s->y, s->context, s->x, &l->attention, rows, net->library, s->workspace, stream, error));
    if (before) {
        FOR_WIDTH(H, run_norm, s->context, s->y, l->norm + 2, net, rows, stream);
        SF_TRY_RETURN(run_inner(s, net, s->context, l, rows, error));
        return product_run(s->x, s->inner, s->y, &l->outer, rows, net->library, s->workspace, stream, error);
    }
    FOR_WIDTH(H, run_norm, s->x, s->y, l->norm, net, rows, stream);
    SF_TRY_RETURN(run_inner(s, net, s->x, l, rows, error));
    SF_TRY_RETURN(product_run(s->y, s->inner, s->x, &l->outer, rows, net->library, s->workspace, stream, error));
    FOR_WIDTH(H, run_norm, s->x, s->y, l->norm + 2, net, rows, stream);
    return SAFER_OK;
}

/* Lays out the batch in pinned memory and copies it to the device. */
safer_status send(sent *out, const struct slot *s, const sf_device_net *net, const uint32_t *ids, const size_t *offsets,
                  size_t count, safer_error *error)
{
    const size_t rows = offsets[count] - offsets[0];
    uint32_t *host_ids = (uint32_t *)(host_parts(s, net) + net->rows), *starts = host_ids + rows;
    sf_attend_block *block = (sf_attend_block *)(starts + count + 1);
    size_t made = 0;
    memcpy(host_ids, ids + offsets[0], rows * sizeof *ids);
    for (size_t i = 0; i <= count; i++) starts[i] = (uint32_t)(offsets[i] - offsets[0]);
    for (size_t i = 0; i < count; i++)
        for (uint32_t q = 0, length = starts[i + 1] - starts[i]; q < length; q += SF_ATTEND_QUERIES)
            block[made++] = (sf_attend_block){starts[i], length, q};
    uint16_t *places = (uint16_t *)(block + made);
    for (size_t i = 0; i < count; i++)
        place_text(places + starts[i], host_ids + starts[i], starts[i + 1] - starts[i], &net->shape);
    *out = {rows, made, s->chunks ? cut_chunks(s->chunks, block, made, place_rows(&net->shape, net->rows)) : 0};
    static const char what[] = "copying texts";
    SF_CUDA_TRY(cudaMemcpyAsync(s->ids, host_ids, rows * sizeof *ids, cudaMemcpyHostToDevice, s->stream), what);
    SF_CUDA_TRY(cudaMemcpyAsync(s->starts, starts, (count + 1) * sizeof *starts, cudaMemcpyHostToDevice, s->stream),
                what);
    SF_CUDA_TRY(cudaMemcpyAsync(s->blocks, block, made * sizeof *block, cudaMemcpyHostToDevice, s->stream), what);
    SF_CUDA_TRY(cudaMemcpyAsync(s->places, places, rows * sizeof *places, cudaMemcpyHostToDevice, s->stream), what);
    return SAFER_OK;
}

/* Copies a batch to the device and runs all layers: *last is (rows, hidden), behind the norm at the end. */
safer_status encode(const bf16 **last, const struct slot *s, const sf_device_net *net, const uint32_t *ids,
                    const size_t *offsets, size_t count, safer_error *error)
{
    sent b;
    SF_CUDA_TRY(cudaSetDevice(net->device), "choosing the device");
    SF_TRY_RETURN(send(&b, s, net, ids, offsets, count, error));
    SF_TRY_RETURN(run_embeddings(s, net, b.rows, error));
    for (size_t i = 0; i < net->shape.layers; i++) SF_TRY_RETURN(run_layer(s, net, &net->layers[i], &b, error));
    *last = s->x;
    if (net->end_norm[0]) {
        FOR_WIDTH(net->shape.hidden, run_norm, s->y, s->x, net->end_norm, net, b.rows, s->stream);
        *last = s->y;
    }
    return SAFER_OK;
}

/* Means (parts, hidden) of the device to where each belongs. */
safer_status fetch_means(const sf_device_part *parts, size_t count, const float *means, const struct slot *s,
                         const sf_device_net *net, safer_error *error)
{
    const size_t H = net->shape.hidden, most = staged_parts(net);
    for (size_t first = 0; first < count; first += most) {
        const size_t some = count - first < most ? count - first : most;
        SF_CUDA_TRY(cudaMemcpyAsync(s->host, means + first * H, some * H * sizeof *means, cudaMemcpyDeviceToHost,
                                    s->stream),
                    "copying means");
        SF_CUDA_TRY(cudaStreamSynchronize(s->stream), "computing means");
        for (size_t i = 0; i < some; i++)
            memcpy(parts[first + i].mean, (const float *)s->host + i * H, H * sizeof *means);
    }
    return SAFER_OK;
}

safer_status check_encoder(const sf_encoder *e, safer_error *error)
{
    if (form_fault(e) || e->hidden / e->heads > PLAIN_WIDTH)
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
    free(net->columns);
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
    const bf16 *last;
    SF_TRY_RETURN(encode(&last, s, net, ids, offsets, count, error));
    classify<<<(unsigned)count, POOL_THREADS, 2 * net->shape.hidden * sizeof(float), s->stream>>>(s->logits, last,
                                                                                                  s->starts, net->end);
    SF_CUDA_TRY(cudaGetLastError(), "starting a kernel");
    const size_t bytes = count * net->shape.classes * sizeof *logits;
    SF_CUDA_TRY(cudaMemcpyAsync(s->host, s->logits, bytes, cudaMemcpyDeviceToHost, s->stream), "copying answers");
    SF_CUDA_TRY(cudaStreamSynchronize(s->stream), "computing answers");
    memcpy(logits, s->host, bytes);
    return SAFER_OK;
}

/* Of qkv nothing is needed behind the last layer, and it has room for more floats than there are rows. */
safer_status sf_cuda_means(const sf_device_part *parts, size_t part_count, sf_device_net *net, int slot,
                           const uint32_t *ids, const size_t *offsets, size_t count, safer_error *error)
{
    const struct slot *s = &net->slot[slot];
    const bf16 *last;
    span *host = host_parts(s, net);
    float *means = (float *)s->qkv;
    SF_TRY_RETURN(encode(&last, s, net, ids, offsets, count, error));
    for (size_t i = 0; i < part_count; i++) host[i] = {(uint32_t)parts[i].begin, (uint32_t)parts[i].count};
    SF_CUDA_TRY(cudaMemcpyAsync(s->parts, host, part_count * sizeof *host, cudaMemcpyHostToDevice, s->stream),
                "copying parts");
    mean_spans<<<(unsigned)part_count, POOL_THREADS, 0, s->stream>>>(means, last, s->parts, (int)net->shape.hidden);
    SF_CUDA_TRY(cudaGetLastError(), "starting a kernel");
    return fetch_means(parts, part_count, means, s, net, error);
}
