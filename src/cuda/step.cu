/* One step of training an encoder on the GPU: its memory, its batches, and the interface.
 *
 * All parameters lie in one array of floats, as on the CPU; beside it lie the same ones rounded to bf16, which products
 * read, and the gradient. step_layers.cu has the way forward and the way back. */
#include "cuda/step.cuh"

#include "cuda/relative.cuh"
#include "cuda/rows_back.cuh"
#include "cuda/step_state.cuh"

#include <string.h>

using namespace sf;

namespace
{

enum { SQUARES = 1024 }; /* blocks of the gradient's length */

size_t offset_of(const sf_device_training *t, const float *p) { return p ? (size_t)(p - t->parameters) : SIZE_MAX; }

void offsets_of(size_t out[2], const sf_device_training *t, sf_encoder_pair p)
{
    out[0] = offset_of(t, p.weight);
    out[1] = p.weight ? offset_of(t, p.bias) : SIZE_MAX;
}

/* -------------------------------------------------------------------- start */

void describe_layer(step_layer *out, const sf_device_training *t, size_t i)
{
    const sf_encoder *e = t->encoder;
    const sf_encoder_layer *l = &e->layer[i];
    const sf_encoder_pair factors[FACTORS] = {l->qkv, l->attention, l->inner, l->outer},
                          sides[SIDES] = {e->form.place_keys ? l->place_key : (sf_encoder_pair){},
                                          e->form.place_queries ? l->place_query : (sf_encoder_pair){}};
    size_t pair[2];
    for (int k = 0; k < FACTORS; k++) {
        offsets_of(pair, t, factors[k]);
        out->weight[k] = pair[0], out->bias[k] = pair[1];
    }
    for (int k = 0; k < SIDES; k++) {
        offsets_of(pair, t, sides[k]);
        out->side_weight[k] = pair[0], out->side_bias[k] = pair[1];
    }
    offsets_of(out->norm, t, l->norm1);
    offsets_of(out->norm + 2, t, l->norm2);
    out->kind = kind_of(e, i);
    out->add = e->form.shared && i + 1 < e->layers;
    out->side_add = out->add || e->form.places_shared;
}

product_options forward_options(const sf_device_step *s, const step_layer *l, int k)
{
    const int bias = l->bias[k] != SIZE_MAX;
    product_options o = {bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT, at_or_null(s->rounded, l->bias[k]),
                         NULL, k == ATTENTION || k == OUTER};
    if (k != INNER) return o;
    o.epilogue = epilogue_of(&s->shape, bias);
    if (o.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS) o.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS, o.raw = l->raw;
    if (o.epilogue == CUBLASLT_EPILOGUE_GELU) o.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, o.raw = l->raw;
    return o;
}

safer_status make_products(step_layer *l, sf_device_step *s, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    const int H = (int)e->hidden, F = (int)e->inner, G = (int)inner_outputs(e);
    const int outputs[FACTORS] = {3 * H, H, G, H}, inputs[FACTORS] = {H, H, H, F};
    const int before = e->form.prenorm, gelu = !activates_apart(e) && e->activation != SF_ENCODER_RELU;
    for (int k = 0; k < FACTORS; k++) {
        product_options backward = {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL,
                                    k == QKV ? !before || l->normed == l->input : k == INNER && !before},
                        weights = {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, l->add};
        if (k == OUTER && gelu) backward.epilogue = CUBLASLT_EPILOGUE_DGELU, backward.raw = l->raw;
        const bf16 *weight = s->rounded + l->weight[k];
        SF_TRY_RETURN(product_make(&l->forward[k], s->library, FORWARD, weight, outputs[k], inputs[k],
                                   forward_options(s, l, k), error));
        SF_TRY_RETURN(product_make(&l->backward[k], s->library, BACK, weight, outputs[k], inputs[k], backward, error));
        SF_TRY_RETURN(product_make(&l->weights[k], s->library, WEIGHTS, NULL, outputs[k], inputs[k], weights, error));
    }
    return SAFER_OK;
}

/* Vectors of places, and their products. */
safer_status make_sides(step_layer *l, sf_device_step *s, safer_error *error)
{
    const int H = (int)s->shape.hidden;
    const product_options plain = {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0},
                          weights = {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, l->side_add};
    for (int k = 0; k < SIDES; k++) {
        if (l->side_weight[k] == SIZE_MAX) continue;
        const bf16 *weight = s->rounded + l->side_weight[k], *bias = at_or_null(s->rounded, l->side_bias[k]);
        const product_options forward = {bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT, bias, NULL, 0};
        SF_TRY_RETURN(take(&l->side[k], &s->memory, (size_t)s->distances.columns * s->shape.hidden, error));
        SF_TRY_RETURN(product_make(&l->side_forward[k], s->library, FORWARD, weight, H, H, forward, error));
        SF_TRY_RETURN(product_make(&l->side_backward[k], s->library, BACK, weight, H, H, plain, error));
        SF_TRY_RETURN(product_make(&l->side_weights[k], s->library, WEIGHTS, NULL, H, H, weights, error));
    }
    return SAFER_OK;
}

safer_status make_layer(step_layer *l, sf_device_step *s, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    const size_t N = s->rows, H = e->hidden, F = e->inner;
    SF_TRY_RETURN(take(&l->input, &s->memory, N * H, error));
    l->normed = l->input;
    if (e->form.prenorm && l->norm[0] != SIZE_MAX) SF_TRY_RETURN(take(&l->normed, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&l->qkv, &s->memory, 3 * N * H, error));
    SF_TRY_RETURN(take(&l->context, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&l->sum1, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&l->middle, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&l->raw, &s->memory, N * inner_outputs(e), error));
    SF_TRY_RETURN(take(&l->inner, &s->memory, N * F, error));
    if (!e->form.prenorm) SF_TRY_RETURN(take(&l->sum2, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&l->sums, &s->memory, N * e->heads, error));
    SF_TRY_RETURN(make_sides(l, s, error));
    return make_products(l, s, error);
}

/* One of the two tables there are, copied once. */
safer_status make_turns(sf_device_step *s, const sf_encoder *e, safer_error *error)
{
    const size_t count = e->tokens * (e->hidden / e->heads);
    for (size_t i = 0; i < e->layers; i++) {
        size_t same = 0;
        float **out = &s->layers[i].turns;
        while (e->layer[same].turns != e->layer[i].turns) same++;
        *out = s->layers[same].turns;
        if (same < i || !e->layer[i].turns) continue;
        SF_TRY_RETURN(take(out, &s->memory, count, error));
        SF_CUDA_TRY(cudaMemcpy(*out, e->layer[i].turns, count * sizeof **out, cudaMemcpyHostToDevice),
                    "copying parameters");
    }
    return SAFER_OK;
}

safer_status make_end(sf_device_step *s, const sf_device_training *t, safer_error *error)
{
    const sf_encoder *e = t->encoder;
    const size_t B = s->texts, H = e->hidden, C = e->classes;
    offsets_of(s->end_norm, t, e->end);
    offsets_of(s->end_offsets, t, e->classifier);
    offsets_of(s->end_offsets + 2, t, e->pooler);
    offsets_of(s->end_offsets + 4, t, e->pooler.weight ? e->pooler_norm : (sf_encoder_pair){});
    const size_t *o = s->end_offsets;
    const float *p[6];
    for (int i = 0; i < 6; i++) p[i] = at_or_null(s->parameters, o[i]);
    s->end = {(int)H, (int)C, e->mean, p[2], p[3], e->pooler_activation, p[4], p[5], e->epsilon, p[0], p[1]};
    float **vectors[] = {&s->ends_of.pooled, &s->ends_of.features,  &s->ends_of.dropped,
                         &s->ends_of.raw,    &s->ends_of.activated, &s->ends_of.unit,
                         &s->ends_of.slopes, &s->ends_of.dfeatures, &s->masks};
    for (float **vector : vectors) SF_TRY_RETURN(take(vector, &s->memory, B * H, error));
    SF_TRY_RETURN(take(&s->ends_of.dlogits, &s->memory, B * C, error));
    SF_TRY_RETURN(take(&s->ends_of.losses, &s->memory, B, error));
    return take(&s->labels, &s->memory, B, error);
}

/* Biases by distance. */
safer_status make_bias(sf_device_step *s, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    const size_t slots = (size_t)s->tiles * 256 * e->heads, blocks = s->rows / BACK_ROWS + s->texts;
    SF_TRY_RETURN(take(&s->bias, &s->memory, 2 * (size_t)s->distances.reach * e->heads, error));
    s->distances.bias = s->bias;
    if (!s->embeddings) return SAFER_OK;
    SF_TRY_RETURN(take(&s->diagonals, &s->memory, blocks * e->heads * (size_t)s->tiles * 128, error));
    SF_TRY_RETURN(take(&s->shares, &s->memory, SUM_SHARES * slots, error));
    return take(&s->bias_sums, &s->memory, slots, error);
}

/* Scores by places, their gradients, and their products. */
safer_status make_parts(sf_device_step *s, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    const int H = (int)e->hidden, heads = (int)e->heads, columns = s->distances.columns;
    const size_t size = (size_t)columns * e->hidden, chunk_size = place_rows(e, s->rows) * e->heads * (size_t)columns,
                 chunks = most_chunks(e, s->rows);
    SF_TRY_RETURN(take(&s->table, &s->memory, size, error));
    s->table_normed = s->table;
    if (s->relative_norm[0] != SIZE_MAX) SF_TRY_RETURN(take(&s->table_normed, &s->memory, size, error));
    for (int k = 0; k < SIDES; k++) {
        SF_TRY_RETURN(take(&s->places_by[k], &s->memory, chunk_size, error));
        SF_TRY_RETURN(take(&s->dplaces_by[k], &s->memory, chunk_size, error));
    }
    const size_t scores = place_rows(e, s->rows) * e->heads * (size_t)s->tiles * SF_ATTEND_KEYS;
    SF_TRY_RETURN(take(&s->shares_of_chunk, &s->memory, scores, error));
    SF_TRY_RETURN(take(&s->dscores, &s->memory, scores, error));
    SF_TRY_RETURN(take(&s->dside, &s->memory, SIDES * size, error));
    SF_TRY_RETURN(take(&s->dtable, &s->memory, size, error));
    SF_TRY_RETURN(take(&s->dside_rounded, &s->memory, size, error));
    SF_TRY_RETURN(take(&s->dtable_rounded, &s->memory, size, error));
    s->chunks = (chunk *)malloc(2 * chunks * sizeof *s->chunks);
    if (!s->chunks) return fail(error, SAFER_MEMORY, "out of memory");
    s->back_chunks = s->chunks + chunks;
    const float scale = scale_of(e, 1);
    SF_TRY_RETURN(heads_make(&s->scores, s->library, HEADS_SCORES, H, heads, columns, scale, error));
    SF_TRY_RETURN(heads_make(&s->vectors, s->library, HEADS_VECTORS, H, heads, columns, scale, error));
    return heads_make(&s->tables, s->library, HEADS_TABLE, H, heads, columns, scale, error);
}

safer_status make_distances(sf_device_step *s, const sf_device_training *t, safer_error *error)
{
    const sf_encoder *e = t->encoder;
    int32_t *buckets = NULL;
    s->distances.window = (int)e->form.window;
    if (e->form.relative == SF_RELATIVE_NONE) return SAFER_OK;
    s->relative = offset_of(t, e->relative);
    offsets_of(s->relative_norm, t, e->relative_norm);
    s->distances.reach = reach_of(e->tokens);
    s->distances.columns = (int)place_columns(e);
    s->tiles = (int)((e->tokens + BACK_ROWS - 1) / BACK_ROWS);
    const size_t count = 2 * (size_t)s->distances.reach;
    SF_TRY_RETURN(take(&buckets, &s->memory, count, error));
    s->place = places_of(e).first;
    int32_t *stretched = stretch_buckets(e->buckets, e->tokens, s->place);
    if (!stretched) return fail(error, SAFER_MEMORY, "out of memory");
    const safer_status status = check(cudaMemcpy(buckets, stretched, count * sizeof *buckets, cudaMemcpyHostToDevice),
                                      "copying parameters", error);
    free(stretched);
    s->distances.buckets = buckets;
    if (status != SAFER_OK) return status;
    if (e->form.relative == SF_RELATIVE_BIAS) return make_bias(s, error);
    s->columns = column_ranges(e);
    if (!s->columns) return fail(error, SAFER_MEMORY, "out of memory");
    return make_parts(s, error);
}

/* What embeddings are made with. */
safer_status make_embeddings(sf_device_step *s, const sf_device_training *t, safer_error *error)
{
    const sf_encoder *e = t->encoder;
    const size_t N = s->rows, H = e->hidden, E = width_of(e);
    s->words = offset_of(t, e->words);
    s->positions = offset_of(t, e->places);
    s->type = offset_of(t, e->type);
    offsets_of(s->norm, t, e->norm);
    offsets_of(s->projection, t, e->projection);
    SF_TRY_RETURN(take(&s->embedded, &s->memory, N * (e->form.projected_first ? H : E), error));
    if (!e->form.width) return SAFER_OK;
    SF_TRY_RETURN(take(&s->narrow, &s->memory, N * E, error));
    SF_TRY_RETURN(take(&s->dnarrow, &s->memory, N * E, error));
    const bf16 *weight = s->rounded + s->projection[0], *bias = at_or_null(s->rounded, s->projection[1]);
    const product_options forward = {bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT, bias, NULL, 0},
                          plain = {CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0};
    SF_TRY_RETURN(product_make(&s->project, s->library, FORWARD, weight, (int)H, (int)E, forward, error));
    SF_TRY_RETURN(product_make(&s->project_back, s->library, BACK, weight, (int)H, (int)E, plain, error));
    return product_make(&s->project_weights, s->library, WEIGHTS, NULL, (int)H, (int)E, plain, error);
}

safer_status make_arrays(sf_device_step *s, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    const size_t N = s->rows, H = e->hidden, F = e->inner, G = inner_outputs(e), E = width_of(e),
                 trained = s->size - s->start, most = E > H ? E : H, widest = 3 * most > G ? 3 * most : G;
    SF_TRY_RETURN(take_bytes(&s->workspace, &s->memory, PRODUCT_WORKSPACE, error));
    SF_TRY_RETURN(take(&s->gradient, &s->memory, s->size, error));
    SF_TRY_RETURN(take(&s->means, &s->memory, trained, error));
    SF_TRY_RETURN(take(&s->variances, &s->memory, trained, error));
    SF_TRY_RETURN(take(&s->last, &s->memory, N * H, error));
    if (e->form.prenorm) SF_TRY_RETURN(take(&s->end_sum, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&s->d, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&s->dsum, &s->memory, N * most, error));
    SF_TRY_RETURN(take(&s->dinner, &s->memory, N * F, error));
    if (e->form.gated) SF_TRY_RETURN(take(&s->draw, &s->memory, N * G, error));
    SF_TRY_RETURN(take(&s->dcontext, &s->memory, N * H, error));
    SF_TRY_RETURN(take(&s->dqkv, &s->memory, 3 * N * H, error));
    SF_TRY_RETURN(take(&s->deltas, &s->memory, N * e->heads, error));
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
    SF_TRY_RETURN(make_embeddings(s, t, error));
    SF_TRY_RETURN(make_distances(s, t, error));
    for (size_t i = 0; i < e->layers; i++) {
        describe_layer(&s->layers[i], t, i);
        SF_TRY_RETURN(make_layer(&s->layers[i], s, error));
    }
    SF_TRY_RETURN(make_turns(s, e, error));
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
        place_text(places + starts[i], host_ids + starts[i], starts[i + 1] - starts[i], &s->shape);
    *out = {rows, cut(blocks, starts, count, SF_ATTEND_QUERIES), cut(back_blocks, starts, count, BACK_ROWS), {0, 0}, 0};
    if (s->chunks) {
        const size_t most = place_rows(&s->shape, s->rows);
        out->chunks = cut_chunks(s->chunks, blocks, out->blocks, most);
        (void)cut_chunks(s->back_chunks, back_blocks, out->back_blocks, most);
    }
    piece pieces[11] = {{s->ids, host_ids, rows * sizeof *ids},
                        {s->starts, starts, (count + 1) * sizeof *starts},
                        {s->places, places, rows * sizeof *places},
                        {s->blocks, blocks, out->blocks * sizeof *blocks},
                        {s->back_blocks, back_blocks, out->back_blocks * sizeof *blocks}};
    int made = 5;
    if (listed) {
        out->entries[0] = list_rows(lists, lists + N, lists + 2 * N, host_ids, rows, s->shape.vocabulary);
        out->entries[1] = list_rows(lists + 3 * N, lists + 4 * N, lists + 5 * N, places, rows, UINT16_MAX + 1);
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

/* ---------------------------------------------------------------------- end */

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
            g + o[2], at_or_null(g, o[3]), s->ends_of.slopes, s->ends_of.pooled, H, H, (int)count);
    if (o[4] != SIZE_MAX)
        norm_gradient<<<(unsigned)(H + 255) / 256, 256, 0, s->stream>>>(g + o[4], at_or_null(g, o[5]),
                                                                        s->ends_of.dfeatures, s->ends_of.unit, H,
                                                                        (int)count);
}

safer_status check_shape(const sf_device_training *t, safer_error *error)
{
    const sf_encoder *e = t->encoder;
    const size_t D = e->hidden / e->heads;
    if (D != 32 && D != 64)
        return fail(error, SAFER_INPUT,
                    "the GPU trains encoders whose heads have 32 or 64 numbers; this one's have %zu", D);
    const char *fault = form_fault(e);
    if (fault) return fail(error, SAFER_INPUT, "the GPU trains encoders %s", fault);
    if (e->words && offset_of(t, e->layer[0].qkv.weight) % 8)
        return fail(error, SAFER_INPUT,
                    "the GPU trains encoders whose tables of distances have a multiple of 8 numbers");
    return SAFER_OK;
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
    free(s->chunks);
    free(s->columns);
    if (s->library) cublasLtDestroy(s->library);
    free(s->layers);
    free(s);
}

safer_status sf_cuda_step_new(sf_device_step **out, int device, const sf_device_training *t, safer_error *error)
{
    SF_TRY_RETURN(check_shape(t, error));
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
    s->layers = (step_layer *)calloc(t->encoder->layers, sizeof *s->layers);
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
    SF_TRY_RETURN(step_forward(s, &b, error));
    loss_forward<<<(unsigned)count, POOL_THREADS, 0, s->stream>>>(s->ends_of, s->last, s->starts, s->end,
                                                                  1.0f / (float)count);
    end_back(s, count);
    SF_TRY_RETURN(step_back(s, &b, error));
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
    SF_TRY_RETURN(step_forward(s, &b, error));
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
