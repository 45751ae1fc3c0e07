/* The layers of an encoder in training: the way forward and the way back.
 *
 * The way forward keeps what the way back reads: the factors of every product, the sums before every norm, and the
 * inner layer before its activation. Attention's shares, and scores by places, are computed again.
 * Every sum has a fixed order: the same batches give the same bits on the same kind of GPU. */
#include "cuda/step_state.cuh"

#include "cuda/relative.cuh"
#include "cuda/rotary.cuh"
#include "cuda/rows_back.cuh"
#include "cuda/widths.cuh"

namespace sf
{

static unsigned blocks_of(size_t count, size_t each) { return (unsigned)((count + each - 1) / each); }

static safer_status run(void *out, const bf16 *in, const bf16 *other, const product *p, const sf_device_step *s,
                        size_t rows, safer_error *error)
{
    return product_run(out, in, other, p, rows, s->library, s->workspace, s->stream, error);
}

/* ------------------------------------------------------------------ forward */

template <int N>
static void run_embed(const sf_device_step *s, bf16 *out, bf16 *sums, const float *weight, const float *bias,
                      size_t rows)
{
    const float *p = s->parameters;
    embed<N><<<blocks_of(rows, ROWS_A_BLOCK), 32 * ROWS_A_BLOCK, 0, s->stream>>>(
        out, sums, s->ids, s->places, p + s->words, at_or_null(s->parameters, s->positions),
        at_or_null(s->parameters, s->type), weight, bias, (int)width_of(&s->shape), s->shape.epsilon, (int)rows);
}

template <int N>
static void run_norm(const sf_device_step *s, bf16 *out, const bf16 *in, const size_t *norm_, size_t rows)
{
    norm<N><<<blocks_of(rows, ROWS_A_BLOCK), 32 * ROWS_A_BLOCK, 0, s->stream>>>(out, in, s->parameters + norm_[0],
                                                                                at_or_null(s->parameters, norm_[1]),
                                                                                (int)s->shape.hidden, s->shape.epsilon,
                                                                                (int)rows);
}

static safer_status embeddings_forward(sf_device_step *s, size_t rows, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    const float *weight = s->parameters + s->norm[0], *bias = at_or_null(s->parameters, s->norm[1]);
    bf16 *out = s->layers[0].input;
    if (!e->form.width) {
        FOR_WIDTH(e->hidden, run_embed, s, out, s->embedded, weight, bias, rows);
    } else if (e->form.projected_first) {
        FOR_WIDTH(width_of(e), run_embed, s, NULL, s->narrow, NULL, NULL, rows);
        SF_TRY_RETURN(run(s->embedded, s->narrow, NULL, &s->project, s, rows, error));
        FOR_WIDTH(e->hidden, run_norm, s, out, s->embedded, s->norm, rows);
    } else {
        FOR_WIDTH(width_of(e), run_embed, s, s->narrow, s->embedded, weight, bias, rows);
        return run(out, s->narrow, NULL, &s->project, s, rows, error);
    }
    return SAFER_OK;
}

/* Tables of distances, from the parameters as they are now. */
static safer_status distances_forward(sf_device_step *s, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    const size_t H = e->hidden, columns = (size_t)s->distances.columns;
    const int reach = s->distances.reach;
    if (e->form.relative == SF_RELATIVE_BIAS)
        spread_bias<<<dim3(blocks_of(2 * (size_t)reach, 256), (unsigned)e->heads), 256, 0, s->stream>>>(
            s->bias, s->parameters + s->relative, s->distances.buckets, reach, (int)e->heads);
    if (e->form.relative != SF_RELATIVE_PARTS) return SAFER_OK;
    round_rows<<<blocks_of(columns * H, 256), 256, 0, s->stream>>>(s->table, s->parameters + s->relative + s->place * H,
                                                                   H, e->relative_rows - s->place, columns);
    if (s->relative_norm[0] != SIZE_MAX)
        FOR_WIDTH(H, run_norm, s, s->table_normed, s->table, s->relative_norm, columns);
    for (size_t i = 0; i < e->layers; i++)
        for (int k = 0; k < SIDES; k++) {
            step_layer *l = &s->layers[i];
            if (l->side[k])
                SF_TRY_RETURN(run(l->side[k], s->table_normed, NULL, &l->side_forward[k], s, columns, error));
        }
    return SAFER_OK;
}

template <int KIND>
static void run_attend(const sf_device_step *s, const step_layer *l, const sf_attend_block *blocks, size_t count,
                       const relation &r)
{
    const dim3 grid((unsigned)count, (unsigned)s->shape.heads);
    const int H = (int)s->shape.hidden;
    const float scale = scale_of(&s->shape, 1.4426950408889634f);
    if (H / (int)s->shape.heads == 32)
        attend<32, KIND><<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(l->context, l->sums, l->qkv, blocks, H, scale, r);
    else
        attend<64, KIND><<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(l->context, l->sums, l->qkv, blocks, H, scale, r);
}

/* Scores by places of a chunk, and what attention is told of them. */
static safer_status place_scores(relation *out, const sf_device_step *s, const step_layer *l, const chunk *c,
                                 safer_error *error)
{
    const size_t H = s->shape.hidden;
    relate_chunk(out, &s->distances, s->columns, c);
    out->keys = l->side[PLACE_KEYS] ? s->places_by[PLACE_KEYS] : NULL;
    out->queries = l->side[PLACE_QUERIES] ? s->places_by[PLACE_QUERIES] : NULL;
    for (int k = 0; k < SIDES; k++)
        if (l->side[k])
            SF_TRY_RETURN(heads_run(&s->scores, s->places_by[k], l->qkv + c->row * 3 * H + (size_t)k * H,
                                    l->side[k] + (size_t)out->low * H, c->rows, out->columns, s->library, s->workspace,
                                    s->stream, error));
    return SAFER_OK;
}

static safer_status attention_forward(const sf_device_step *s, const step_layer *l, const sent *b, safer_error *error)
{
    const int H = (int)s->shape.hidden;
    if (l->turns) run_turn(l->qkv, s->blocks, b->blocks, l->turns, H, H / (int)s->shape.heads, TURN, s->stream);
    if (l->kind == ATTEND_ALL) run_attend<ATTEND_ALL>(s, l, s->blocks, b->blocks, s->distances);
    if (l->kind == ATTEND_LOCAL) run_attend<ATTEND_LOCAL>(s, l, s->blocks, b->blocks, s->distances);
    if (l->kind == ATTEND_BIASED) run_attend<ATTEND_BIASED>(s, l, s->blocks, b->blocks, s->distances);
    for (size_t i = 0; l->kind == ATTEND_PARTS && i < b->chunks; i++) {
        const chunk *c = &s->chunks[i];
        relation r;
        SF_TRY_RETURN(place_scores(&r, s, l, c, error));
        run_attend<ATTEND_PARTS>(s, l, s->blocks + c->block, c->blocks, r);
    }
    return SAFER_OK;
}

static safer_status inner_forward(const sf_device_step *s, const step_layer *l, size_t rows, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    SF_TRY_RETURN(run(activates_apart(e) ? l->raw : l->inner, l->middle, NULL, &l->forward[INNER], s, rows, error));
    if (activates_apart(e)) run_activate(l->inner, l->raw, e->activation, e->form.gated, e->inner, rows, s->stream);
    return SAFER_OK;
}

static safer_status layer_forward(const sf_device_step *s, const step_layer *l, bf16 *next, const sent *b,
                                  safer_error *error)
{
    const size_t H = s->shape.hidden, rows = b->rows;
    const int before = s->shape.form.prenorm;
    if (l->normed != l->input) FOR_WIDTH(H, run_norm, s, l->normed, l->input, l->norm, rows);
    SF_TRY_RETURN(run(l->qkv, l->normed, NULL, &l->forward[QKV], s, rows, error));
    SF_TRY_RETURN(attention_forward(s, l, b, error));
    SF_TRY_RETURN(run(l->sum1, l->context, l->input, &l->forward[ATTENTION], s, rows, error));
    FOR_WIDTH(H, run_norm, s, l->middle, l->sum1, before ? l->norm + 2 : l->norm, rows);
    SF_TRY_RETURN(inner_forward(s, l, rows, error));
    if (before) return run(next, l->inner, l->sum1, &l->forward[OUTER], s, rows, error);
    SF_TRY_RETURN(run(l->sum2, l->inner, l->middle, &l->forward[OUTER], s, rows, error));
    FOR_WIDTH(H, run_norm, s, next, l->sum2, l->norm + 2, rows);
    return SAFER_OK;
}

safer_status step_forward(sf_device_step *s, const sent *b, safer_error *error)
{
    const size_t layers = s->shape.layers;
    bf16 *end = s->end_sum ? s->end_sum : s->last;
    SF_TRY_RETURN(distances_forward(s, error));
    SF_TRY_RETURN(embeddings_forward(s, b->rows, error));
    for (size_t i = 0; i < layers; i++)
        SF_TRY_RETURN(layer_forward(s, &s->layers[i], i + 1 < layers ? s->layers[i + 1].input : end, b, error));
    if (s->end_sum) FOR_WIDTH(s->shape.hidden, run_norm, s, s->last, s->end_sum, s->end_norm, b->rows);
    return SAFER_OK;
}

/* --------------------------------------------------------------------- back */

/* dsum from d, plus `rest`, and the gradients of the norm and of the bias before it (SIZE_MAX: none), of rows of
 * `width` numbers. */
template <int N>
static void norm_back_of(const sf_device_step *s, bf16 *dsum, const bf16 *d, const bf16 *sum, const bf16 *rest,
                         const size_t *norm_, size_t bias, int add, size_t width, size_t rows)
{
    run_norm_back<N>(dsum, s->partial, d, sum, rest, s->parameters + norm_[0], (int)width, s->shape.epsilon, (int)rows,
                     s->stream);
    add_partial<<<dim3(blocks_of(width, 256), 3), 256, 0, s->stream>>>(s->gradient + norm_[0],
                                                                       at_or_null(s->gradient, norm_[1]),
                                                                       at_or_null(s->gradient, bias), s->partial, 3,
                                                                       (int)width, add);
}

/* SIZE_MAX: there is none. */
static void sum_bias(const sf_device_step *s, size_t bias, const bf16 *d, size_t columns, int add, size_t rows)
{
    if (bias == SIZE_MAX) return;
    sum_rows<<<dim3(blocks_of(columns, 512), SUM_BLOCKS), 256, 0, s->stream>>>(s->partial, d, (int)columns, (int)rows);
    add_partial<<<blocks_of(columns, 256), 256, 0, s->stream>>>(s->gradient + bias, NULL, NULL, s->partial, 1,
                                                                (int)columns, add);
}

template <int D, int KIND>
static void run_attend_back(const sf_device_step *s, const step_layer *l, const sf_attend_block *blocks, size_t count,
                            const relation &r)
{
    const int H = (int)s->shape.hidden, heads = (int)s->shape.heads;
    const float scale = scale_of(&s->shape, 1);
    const back k = {l->qkv,       s->dcontext, l->sums, s->deltas, s->dqkv,
                    blocks,       H,           heads,   scale,     scale * 1.4426950408889634f,
                    s->diagonals, s->tiles};
    const dim3 grid((unsigned)count, (unsigned)heads);
    attend_back_queries<D, KIND><<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(k, r);
    if constexpr (KIND == ATTEND_PARTS)
        attend_back_written<D><<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(k, r);
    else
        attend_back_keys<D, KIND><<<grid, SF_ATTEND_THREADS, 0, s->stream>>>(k, r);
}

/* The gradients of biases by distance, of one layer: added to those of the layers above. */
static void bias_back(const sf_device_step *s, const sent *b)
{
    const unsigned heads = (unsigned)s->shape.heads;
    const size_t slots = (size_t)s->tiles * 256 * heads;
    add_diagonals<<<dim3(heads, 2 * (unsigned)s->tiles, SUM_SHARES), 128, 0, s->stream>>>(
        s->shares, s->diagonals, s->back_blocks, (int)b->back_blocks, s->tiles);
    add_shares<<<blocks_of(slots, 256), 256, 0, s->stream>>>(s->bias_sums, s->shares, slots);
}

/* Disentangled attention, of some texts at a time; s->dside gets the gradients of vectors of places of side `k` when
 * all are done: so sides come one after the other. */
template <int D>
static safer_status parts_back(const sf_device_step *s, const step_layer *l, const sent *b, safer_error *error)
{
    const size_t H = s->shape.hidden, size = (size_t)s->distances.columns * H;
    SF_CUDA_TRY(cudaMemsetAsync(s->dside, 0, SIDES * size * sizeof *s->dside, s->stream), "clearing memory");
    for (size_t i = 0; i < b->chunks; i++) {
        const chunk *c = &s->chunks[i], *back_c = &s->back_chunks[i];
        relation r;
        SF_TRY_RETURN(place_scores(&r, s, l, c, error));
        for (int k = 0; k < SIDES; k++)
            if (l->side[k])
                SF_CUDA_TRY(cudaMemsetAsync(s->dplaces_by[k], 0,
                                            c->rows * s->shape.heads * (size_t)r.columns * sizeof(bf16), s->stream),
                            "clearing memory");
        r.shares = s->shares_of_chunk;
        r.dscores = s->dscores;
        r.width = (int)((c->longest + SF_ATTEND_KEYS - 1) / SF_ATTEND_KEYS * SF_ATTEND_KEYS);
        r.dkeys = l->side[PLACE_KEYS] ? s->dplaces_by[PLACE_KEYS] : NULL;
        r.dqueries = l->side[PLACE_QUERIES] ? s->dplaces_by[PLACE_QUERIES] : NULL;
        run_attend_back<D, ATTEND_PARTS>(s, l, s->back_blocks + back_c->block, back_c->blocks, r);
        for (int k = 0; k < SIDES; k++) {
            if (!l->side[k]) continue;
            const size_t at = c->row * 3 * H + (size_t)k * H, low = (size_t)r.low * H;
            SF_TRY_RETURN(heads_run(&s->vectors, s->dplaces_by[k], s->dqkv + at, l->side[k] + low, c->rows, r.columns,
                                    s->library, s->workspace, s->stream, error));
            SF_TRY_RETURN(heads_run(&s->tables, s->dplaces_by[k], l->qkv + at, s->dside + k * size + low, c->rows,
                                    r.columns, s->library, s->workspace, s->stream, error));
        }
    }
    return SAFER_OK;
}

static __global__ void __launch_bounds__(256) add_rounded(float *all, const bf16 *x, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i < count) all[i] += __bfloat162float(x[i]);
}

/* From the vectors of places to the matrices that made them and to their table. */
static safer_status sides_back(const sf_device_step *s, const step_layer *l, safer_error *error)
{
    const size_t H = s->shape.hidden, columns = (size_t)s->distances.columns, size = columns * H;
    for (int k = 0; k < SIDES; k++) {
        if (!l->side[k]) continue;
        round_rows<<<blocks_of(size, 256), 256, 0, s->stream>>>(s->dside_rounded, s->dside + k * size, H, columns,
                                                                columns);
        SF_TRY_RETURN(run(s->gradient + l->side_weight[k], s->dside_rounded, s->table_normed, &l->side_weights[k], s,
                          columns, error));
        sum_bias(s, l->side_bias[k], s->dside_rounded, H, l->side_add, columns);
        if (!s->embeddings) continue;
        SF_TRY_RETURN(run(s->dtable_rounded, s->dside_rounded, NULL, &l->side_backward[k], s, columns, error));
        add_rounded<<<blocks_of(size, 256), 256, 0, s->stream>>>(s->dtable, s->dtable_rounded, size);
    }
    return SAFER_OK;
}

template <int D>
static safer_status attention_back(const sf_device_step *s, const step_layer *l, const sent *b, safer_error *error)
{
    const int H = (int)s->shape.hidden, heads = (int)s->shape.heads;
    const sf_attend_block *blocks = s->back_blocks;
    attend_deltas<D>
        <<<blocks_of(b->rows, 8), 256, 0, s->stream>>>(s->deltas, l->context, s->dcontext, H, heads, (int)b->rows);
    if (l->kind == ATTEND_ALL) run_attend_back<D, ATTEND_ALL>(s, l, blocks, b->back_blocks, s->distances);
    if (l->kind == ATTEND_LOCAL) run_attend_back<D, ATTEND_LOCAL>(s, l, blocks, b->back_blocks, s->distances);
    if (l->kind == ATTEND_BIASED) run_attend_back<D, ATTEND_BIASED>(s, l, blocks, b->back_blocks, s->distances);
    if (l->kind == ATTEND_BIASED && s->diagonals) bias_back(s, b);
    if (l->kind == ATTEND_PARTS) SF_TRY_RETURN(parts_back<D>(s, l, b, error));
    if (l->turns) run_turn(s->dqkv, s->blocks, b->blocks, l->turns, H, D, TURN_BACK, s->stream);
    return SAFER_OK;
}

static __global__ void __launch_bounds__(256) relu_back(bf16 *d, const bf16 *activated, size_t count)
{
    const size_t i = blockIdx.x * (size_t)256 + threadIdx.x;
    if (i < count && !(__bfloat162float(activated[i]) > 0)) d[i] = __float2bfloat16_rn(0);
}

/* From the gradient `d` of outer's result: that of `middle` in `out`, with `rest` added where the product has it. */
static safer_status inner_back(const sf_device_step *s, const step_layer *l, bf16 *out, const bf16 *d, const bf16 *rest,
                               size_t rows, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    const size_t F = e->inner;
    float *g = s->gradient;
    bf16 *draw = e->form.gated ? s->draw : s->dinner;
    SF_TRY_RETURN(run(g + l->weight[OUTER], d, l->inner, &l->weights[OUTER], s, rows, error));
    SF_TRY_RETURN(run(s->dinner, d, NULL, &l->backward[OUTER], s, rows, error));
    if (activates_apart(e))
        run_activate_back(draw, s->dinner, l->raw, e->activation, e->form.gated, F, rows, s->stream);
    else if (e->activation == SF_ENCODER_RELU)
        relu_back<<<blocks_of(rows * F, 256), 256, 0, s->stream>>>(s->dinner, l->inner, rows * F);
    sum_bias(s, l->bias[INNER], draw, inner_outputs(e), l->add, rows);
    SF_TRY_RETURN(run(g + l->weight[INNER], draw, l->middle, &l->weights[INNER], s, rows, error));
    return run(out, draw, rest, &l->backward[INNER], s, rows, error);
}

/* From the gradient `d` of the attention product's result to s->dqkv. */
static safer_status qkv_back(const sf_device_step *s, const step_layer *l, const bf16 *d, const sent *b,
                             safer_error *error)
{
    const size_t H = s->shape.hidden, rows = b->rows;
    float *g = s->gradient;
    SF_TRY_RETURN(run(g + l->weight[ATTENTION], d, l->context, &l->weights[ATTENTION], s, rows, error));
    SF_TRY_RETURN(run(s->dcontext, d, NULL, &l->backward[ATTENTION], s, rows, error));
    SF_TRY_RETURN(H / s->shape.heads == 32 ? attention_back<32>(s, l, b, error) : attention_back<64>(s, l, b, error));
    sum_bias(s, l->bias[QKV], s->dqkv, 3 * H, l->add, rows);
    SF_TRY_RETURN(run(g + l->weight[QKV], s->dqkv, l->normed, &l->weights[QKV], s, rows, error));
    return l->kind == ATTEND_PARTS ? sides_back(s, l, error) : SAFER_OK;
}

/* Norms after the parts of a layer. */
static safer_status layer_back(const sf_device_step *s, const step_layer *l, const sent *b, int lowest,
                               safer_error *error)
{
    const size_t H = s->shape.hidden, rows = b->rows;
    FOR_WIDTH(H, norm_back_of, s, s->dsum, s->d, l->sum2, NULL, l->norm + 2, l->bias[OUTER], l->add, H, rows);
    SF_TRY_RETURN(inner_back(s, l, s->d, s->dsum, s->dsum, rows, error));
    FOR_WIDTH(H, norm_back_of, s, s->dsum, s->d, l->sum1, NULL, l->norm, l->bias[ATTENTION], l->add, H, rows);
    SF_TRY_RETURN(qkv_back(s, l, s->dsum, b, error));
    return lowest ? SAFER_OK : run(s->d, s->dqkv, s->dsum, &l->backward[QKV], s, rows, error);
}

/* Norms before them. */
static safer_status layer_back_before(const sf_device_step *s, const step_layer *l, const sent *b, int lowest,
                                      safer_error *error)
{
    const size_t H = s->shape.hidden, rows = b->rows;
    sum_bias(s, l->bias[OUTER], s->d, H, l->add, rows);
    SF_TRY_RETURN(inner_back(s, l, s->dsum, s->d, NULL, rows, error));
    FOR_WIDTH(H, norm_back_of, s, s->d, s->dsum, l->sum1, s->d, l->norm + 2, SIZE_MAX, l->add, H, rows);
    sum_bias(s, l->bias[ATTENTION], s->d, H, l->add, rows);
    SF_TRY_RETURN(qkv_back(s, l, s->d, b, error));
    if (l->normed == l->input) return lowest ? SAFER_OK : run(s->d, s->dqkv, s->d, &l->backward[QKV], s, rows, error);
    SF_TRY_RETURN(run(s->dsum, s->dqkv, NULL, &l->backward[QKV], s, rows, error));
    FOR_WIDTH(H, norm_back_of, s, s->d, s->dsum, l->input, s->d, l->norm, SIZE_MAX, l->add, H, rows);
    return SAFER_OK;
}

static safer_status embeddings_back(const sf_device_step *s, const sent *b, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    const size_t E = width_of(e), H = e->hidden, rows = b->rows;
    float *g = s->gradient;
    const bf16 *d = s->d;
    if (e->form.width && !e->form.projected_first) {
        sum_bias(s, s->projection[1], d, H, 0, rows);
        SF_TRY_RETURN(run(g + s->projection[0], d, s->narrow, &s->project_weights, s, rows, error));
        SF_TRY_RETURN(run(s->dnarrow, d, NULL, &s->project_back, s, rows, error));
        FOR_WIDTH(E, norm_back_of, s, s->dsum, s->dnarrow, s->embedded, NULL, s->norm, SIZE_MAX, 0, E, rows);
        d = s->dsum;
    } else {
        FOR_WIDTH(H, norm_back_of, s, s->dsum, d, s->embedded, NULL, s->norm, SIZE_MAX, 0, H, rows);
        d = s->dsum;
        if (e->form.width) {
            SF_TRY_RETURN(run(g + s->projection[0], d, s->narrow, &s->project_weights, s, rows, error));
            SF_TRY_RETURN(run(s->dnarrow, d, NULL, &s->project_back, s, rows, error));
            d = s->dnarrow;
        }
    }
    const size_t tables[] = {s->words, s->positions}, sizes[] = {e->vocabulary, e->positions};
    for (int k = 0; k < 2; k++) {
        if (tables[k] == SIZE_MAX) continue;
        SF_CUDA_TRY(cudaMemsetAsync(g + tables[k], 0, sizes[k] * E * sizeof *g, s->stream), "clearing memory");
        gather_rows<<<(unsigned)b->entries[k], 128, 0, s->stream>>>(g + tables[k], s->lists[k][0], s->lists[k][1],
                                                                    s->lists[k][2], d, (int)E);
    }
    sum_bias(s, s->type, d, E, 0, rows);
    return SAFER_OK;
}

/* The gradients of tables of distances, from those of all layers. */
static safer_status distances_back(const sf_device_step *s, safer_error *error)
{
    const sf_encoder *e = &s->shape;
    const size_t H = e->hidden, columns = (size_t)s->distances.columns, size = columns * H;
    float *g = s->gradient + s->relative + s->place * H; /* rows that are not used keep zeros */
    const size_t left = e->relative_rows - s->place, used = left < columns ? left : columns;
    if (e->form.relative == SF_RELATIVE_BIAS)
        gather_bias<<<dim3((unsigned)e->relative_rows, (unsigned)e->heads), 128, 0, s->stream>>>(
            g, s->bias_sums, s->distances.buckets, s->distances.reach, (int)e->heads, s->tiles * 256);
    if (e->form.relative != SF_RELATIVE_PARTS) return SAFER_OK;
    if (s->relative_norm[0] == SIZE_MAX) {
        SF_CUDA_TRY(cudaMemcpyAsync(g, s->dtable, used * H * sizeof *g, cudaMemcpyDeviceToDevice, s->stream),
                    "copying the gradient");
        return SAFER_OK;
    }
    round_rows<<<blocks_of(size, 256), 256, 0, s->stream>>>(s->dtable_rounded, s->dtable, H, columns, columns);
    FOR_WIDTH(H, norm_back_of, s, s->dside_rounded, s->dtable_rounded, s->table, NULL, s->relative_norm, SIZE_MAX, 0, H,
              columns);
    widen<<<blocks_of(used * H, 256), 256, 0, s->stream>>>(g, s->dside_rounded, used * H);
    return SAFER_OK;
}

safer_status step_back(sf_device_step *s, const sent *b, safer_error *error)
{
    static const char what[] = "clearing memory";
    const size_t H = s->shape.hidden;
    if (s->bias_sums)
        SF_CUDA_TRY(
            cudaMemsetAsync(s->bias_sums, 0, (size_t)s->tiles * 256 * s->shape.heads * sizeof(float), s->stream), what);
    if (s->dtable)
        SF_CUDA_TRY(cudaMemsetAsync(s->dtable, 0, (size_t)s->distances.columns * H * sizeof(float), s->stream), what);
    if (s->end_sum) FOR_WIDTH(H, norm_back_of, s, s->d, s->d, s->end_sum, NULL, s->end_norm, SIZE_MAX, 0, H, b->rows);
    for (size_t i = s->shape.layers; i-- > s->first;) {
        const int lowest = i == s->first && !s->embeddings;
        SF_TRY_RETURN((s->shape.form.prenorm ? layer_back_before : layer_back)(s, &s->layers[i], b, lowest, error));
    }
    if (!s->embeddings) return SAFER_OK;
    if (s->shape.form.relative != SF_RELATIVE_NONE) SF_TRY_RETURN(distances_back(s, error));
    return embeddings_back(s, b, error);
}

} // namespace sf
