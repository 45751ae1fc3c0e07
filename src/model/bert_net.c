/* The `bert` classifier: the forward pass.
 *
 * Texts lie one after the other without padding. Everything but attention works on the rows
 * of a group of texts, as many as pay for bringing the weights of a layer into the cache:
 * that takes longer than to pass the rows through it. Attention works on one head of one
 * text, a few queries at a time, so that the scores stay there. A row of a product depends
 * on nothing but itself, so texts may be grouped as is convenient.
 *
 * The files around this one: docs/design.md, "From a text to BERT's answer". */
#include "model/bert.h"

#include "base/elementary.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "nn/vector.h"

#include <string.h>

enum {
    GROUP_ROWS = 2048, /* texts are grouped up to about so many pieces, */
    ATTENDED = 256,    /* and for attention up to so many */
    JOINED = SF_BERT_JOINED
};

/* ------------------------------------------------------------------ the net */

size_t sf_bert_sets(const sf_bert_layout *l) { return l->shape.form.shared ? 1 : l->shape.layers; }
size_t sf_bert_set(const sf_bert_layout *l, size_t layer) { return l->shape.form.shared ? 0 : layer; }

const float *sf_bert_bias(const sf_bert_net *net, size_t offset)
{
    return offset == SIZE_MAX ? NULL : net->parameters + offset;
}

const float *sf_bert_shift(const sf_bert_net *net, size_t offset)
{
    return offset == SIZE_MAX ? net->zeros : net->parameters + offset;
}

typedef struct packing {
    sf_bert_net *net;
    size_t first;
} packing;

enum { MATRICES = 5 };

static void pack_layers(void *context, size_t begin, size_t end, int worker)
{
    const packing *p = context;
    const sf_bert_layout *l = p->net->layout;
    size_t H = l->shape.hidden, F = l->shape.inner;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        sf_bert_matrices *m = &p->net->layers[p->first + i / MATRICES];
        const sf_bert_layer *o = &l->layers[p->first + i / MATRICES];
        sf_packed *packed[] = {&m->qkv, &m->attention, &m->inner, &m->outer, &m->gate};
        const size_t weights[] = {o->qkv_weight, o->attention_weight, o->inner_weight, o->outer_weight,
                                  o->inner_weight + F * H},
                     strides[] = {H, H, H, F, H};
        const size_t n = i % MATRICES;
        if (n == 4 && !l->shape.form.gated) continue;
        sf_view source = {(float *)p->net->parameters + weights[n], strides[n], SF_F32}; /* read only */
        sf_pack(packed[n], source, 1, 0, sf_packed_panels(packed[n]));
    }
}

/* What does not belong to a layer, and the vectors of distances. */
static void update_embeddings(sf_bert_net *net)
{
    const sf_bert_layout *l = net->layout;
    const sf_bert_shape *s = &l->shape;
    const float *p = net->parameters;
    if (s->form.width)
        sf_pack(&net->projection, (sf_view){(float *)p + l->projection_weight, s->form.width, SF_F32}, 1, 0,
                sf_packed_panels(&net->projection));
    for (size_t h = 0; net->biases && h < s->heads; h++)
        for (size_t i = 0; i < 2 * s->tokens - 1; i++)
            net->biases[h * (2 * s->tokens - 1) + i] = p[l->relative + (size_t)l->buckets[i] * s->heads + h] /
                                                       sf_bert_scale(s);
    for (size_t i = 0; net->relative.values && i < sf_bert_relative_rows(s); i++) {
        const float *row = p + l->relative + i * s->hidden;
        float *normed = net->zeros + s->hidden; /* behind the zeros there is room for one row */
        const sf_view to = {normed, s->hidden, SF_F32};
        if (s->form.places_normed)
            sf_norm_rows(to, to, (sf_view){(float *)row, s->hidden, SF_F32}, p + l->relative_norm_weight,
                         p + l->relative_norm_bias, s->epsilon, 1, s->hidden, net->isa);
        sf_view_keep(net->relative, i, s->form.places_normed ? normed : row, s->hidden, net->isa);
    }
}

/* The vectors of distances of layers: the table times a matrix, then the heads of it packed. */
static void place_layers(void *context, size_t begin, size_t end, int worker)
{
    const packing *k = context;
    sf_bert_net *net = k->net;
    const sf_bert_shape *s = &net->layout->shape;
    const size_t H = s->hidden, d = H / s->heads, rows = sf_bert_relative_rows(s);
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        sf_bert_places *places = &net->places[k->first + i / 2];
        const sf_bert_layer *o = &net->layout->layers[k->first + i / 2];
        const int which = (int)(i % 2);
        const size_t weight = which == SF_PLACE_KEYS ? o->place_key_weight : o->place_query_weight,
                     bias = which == SF_PLACE_KEYS ? o->place_key_bias : o->place_query_bias;
        if (!places->packed[which]) continue;
        sf_packed *heads = places->packed[which], *matrix = &heads[s->heads]; /* one more, for the matrix */
        sf_pack(matrix, (sf_view){(float *)net->parameters + weight, H, SF_F32}, 1, 0, sf_packed_panels(matrix));
        sf_product(places->vectors[which], net->relative, matrix, net->parameters + bias, SF_LINEAR, 0, rows);
        for (size_t h = 0; h < s->heads; h++)
            sf_pack(&heads[h], sf_view_at(places->vectors[which], 0, h * d), 1, 0, sf_packed_panels(&heads[h]));
    }
}

void sf_bert_net_update(sf_bert_net *net, size_t first, int threads)
{
    packing p = {net, sf_bert_set(net->layout, first)};
    sf_parallel(threads, MATRICES * (sf_bert_sets(net->layout) - p.first), 1, pack_layers, &p);
    if (first == 0) update_embeddings(net);
    p.first = first;
    if (net->places) sf_parallel(threads, 2 * (net->layout->shape.layers - first), 1, place_layers, &p);
}

static int shape_places(sf_bert_net *net)
{
    const sf_bert_shape *s = &net->layout->shape;
    const size_t H = s->hidden, rows = sf_bert_relative_rows(s);
    const int used[2] = {s->form.place_keys, s->form.place_queries};
    net->places = sf_calloc(s->layers, sizeof *net->places);
    if (!net->places || sf_view_new(&net->relative, rows, H, net->type)) return -1;
    for (size_t i = 0; i < 2 * s->layers; i++) {
        sf_bert_places *places = &net->places[i / 2];
        const int which = (int)(i % 2);
        if (!used[which]) continue;
        sf_packed *packed = places->packed[which] = sf_calloc(s->heads + 1, sizeof *packed);
        int failed = !packed || sf_view_new(&places->vectors[which], rows, H, net->type);
        for (size_t h = 0; !failed && h < s->heads; h++)
            failed = sf_packed_shape(&packed[h], H / s->heads, rows, net->type, net->isa);
        if (failed || sf_packed_shape(&packed[s->heads], H, H, net->type, net->isa)) return -1;
    }
    return 0;
}

static int shape_net(sf_bert_net *net)
{
    const sf_bert_shape *s = &net->layout->shape;
    const size_t H = s->hidden, F = s->inner;
    net->layers = sf_calloc(sf_bert_sets(net->layout), sizeof *net->layers);
    net->zeros = sf_calloc(2 * (H > s->form.width ? H : s->form.width), sizeof *net->zeros);
    if (!net->layers || !net->zeros) return -1;
    for (size_t i = 0; i < sf_bert_sets(net->layout); i++) {
        sf_bert_matrices *m = &net->layers[i];
        if (sf_packed_shape(&m->qkv, H, 3 * H, net->type, net->isa) ||
            sf_packed_shape(&m->attention, H, H, net->type, net->isa) ||
            sf_packed_shape(&m->inner, H, F, net->type, net->isa) ||
            sf_packed_shape(&m->outer, F, H, net->type, net->isa) ||
            (s->form.gated && sf_packed_shape(&m->gate, H, F, net->type, net->isa)))
            return -1;
    }
    if (s->form.width && sf_packed_shape(&net->projection, s->form.width, H, net->type, net->isa)) return -1;
    if (s->form.relative == SF_RELATIVE_PARTS) return shape_places(net);
    if (s->form.relative != SF_RELATIVE_BIAS) return 0;
    return (net->biases = sf_alloc(s->heads * (2 * s->tokens - 1), sizeof *net->biases)) ? 0 : -1;
}

safer_status sf_bert_net_new(sf_bert_net **out, const sf_bert_layout *layout, const float *parameters,
                             sf_arithmetic arithmetic, int threads, safer_error *error)
{
    sf_bert_net *net = sf_calloc(1, sizeof *net);
    if (net) *net = (sf_bert_net){layout, parameters, arithmetic.type, arithmetic.isa, .layers = NULL};
    if (!net || shape_net(net)) {
        sf_bert_net_free(net);
        return sf_fail_memory(error);
    }
    sf_bert_net_update(net, 0, threads);
    *out = net;
    return SAFER_OK;
}

void sf_bert_net_free(sf_bert_net *net)
{
    if (!net) return;
    for (size_t i = 0; net->layers && i < sf_bert_sets(net->layout); i++) sf_bert_matrices_free(&net->layers[i]);
    for (size_t i = 0; net->places && i < 2 * net->layout->shape.layers; i++) {
        sf_packed *packed = net->places[i / 2].packed[i % 2];
        for (size_t h = 0; packed && h <= net->layout->shape.heads; h++) sf_packed_free(&packed[h]);
        free(packed);
        free(net->places[i / 2].vectors[i % 2].values);
    }
    sf_packed_free(&net->projection);
    free(net->relative.values);
    free(net->places);
    free(net->biases);
    free(net->zeros);
    free(net->layers);
    free(net);
}

void sf_bert_matrices_free(sf_bert_matrices *m)
{
    sf_packed_free(&m->qkv);
    sf_packed_free(&m->attention);
    sf_packed_free(&m->inner);
    sf_packed_free(&m->outer);
    sf_packed_free(&m->gate);
}

/* --------------------------------------------------------------------- rows */

static size_t size_of(sf_dtype type) { return type == SF_F32 ? sizeof(float) : sizeof(sf_bf16); }

int sf_view_new(sf_view *out, size_t rows, size_t stride, sf_dtype type)
{
    *out = (sf_view){sf_alloc_aligned(rows * stride, size_of(type)), stride, type};
    return out->values ? 0 : -1;
}

float *sf_view_row(sf_view view, size_t row) { return (float *)view.values + row * view.stride; }

void sf_view_keep(sf_view out, size_t row, const float *x, size_t N, sf_isa isa)
{
    if (out.type == SF_BF16)
        sf_to_bf16((sf_bf16 *)out.values + row * out.stride, x, N, isa);
    else if (sf_view_row(out, row) != x)
        memcpy(sf_view_row(out, row), x, N * sizeof *x);
}

int sf_bert_rows_work(sf_bert_rows *r, const sf_bert_net *net)
{
    const sf_bert_shape *s = &net->layout->shape;
    const size_t E = s->form.width;
    if ((E && (sf_view_new(&r->narrow, s->tokens, E, SF_F32) || sf_view_new(&r->factor, s->tokens, E, net->type))) ||
        (s->form.gated && sf_view_new(&r->gate, JOINED, s->inner, net->type)) ||
        (s->form.prenorm && sf_view_new(&r->normed, JOINED, s->hidden, SF_F32))) {
        sf_bert_rows_work_free(r);
        return -1;
    }
    return 0;
}

void sf_bert_rows_work_free(sf_bert_rows *r)
{
    sf_view *views[] = {&r->narrow, &r->factor, &r->gate, &r->normed};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        free(views[i]->values);
        views[i]->values = NULL;
    }
}

size_t sf_bert_place(const sf_bert_shape *s, uint32_t id, size_t *seen)
{
    if (!s->form.padded) return (*seen)++;
    return id == s->form.pad ? s->form.pad : s->form.pad + ++*seen;
}

/* The sums of the embeddings of a piece's word, position and type. */
static void sum_embeddings(sf_view x, const sf_bert_net *net, const uint32_t *ids, size_t N)
{
    const sf_bert_layout *l = net->layout;
    const float *p = net->parameters;
    const size_t E = sf_bert_width(&l->shape);
    size_t seen = 0;
    for (size_t i = 0; i < N; i++) {
        float *row = sf_view_row(x, i);
        memcpy(row, p + l->words + ids[i] * E, E * sizeof *row);
        if (l->positions != SIZE_MAX)
            sf_add(row, p + l->positions + sf_bert_place(&l->shape, ids[i], &seen) * E, E, net->isa);
        if (l->types != SIZE_MAX) sf_add(row, p + l->types, E, net->isa);
    }
}

static void copy_rows(sf_view out, sf_view x, size_t N, size_t width)
{
    for (size_t i = 0; out.values && i < N; i++) memcpy(sf_view_row(out, i), sf_view_row(x, i), width * sizeof(float));
}

void sf_bert_embed(const sf_bert_rows *rows, const sf_bert_net *net, const uint32_t *ids, size_t N)
{
    const sf_bert_layout *l = net->layout;
    const sf_encoder_form *f = &l->shape.form;
    const float *p = net->parameters;
    const size_t H = l->shape.hidden, E = sf_bert_width(&l->shape);
    const sf_view sum = f->width ? rows->narrow : rows->x;
    sum_embeddings(sum, net, ids, N);
    if (f->width && !f->projected_first) {
        copy_rows(rows->sum1, sum, N, E);
        sf_norm_rows(sum, rows->factor, sum, p + l->norm_weight, sf_bert_shift(net, l->norm_bias), l->shape.epsilon, N,
                     E, net->isa);
    }
    if (f->width) {
        for (size_t i = 0; i < N; i++) sf_view_keep(rows->factor, i, sf_view_row(sum, i), E, net->isa);
        sf_product(rows->x, rows->factor, &net->projection, sf_bert_bias(net, l->projection_bias), SF_LINEAR, 0, N);
    }
    if (f->width && !f->projected_first) {
        for (size_t i = 0; i < N; i++) sf_view_keep(rows->input, i, sf_view_row(rows->x, i), H, net->isa);
        return;
    }
    copy_rows(rows->sum1, rows->x, N, H);
    sf_norm_rows(rows->x, rows->input, rows->x, p + l->norm_weight, sf_bert_shift(net, l->norm_bias), l->shape.epsilon,
                 N, H, net->isa);
}

/* A norm: offsets of its weight and bias. */
typedef struct norm {
    size_t weight, bias;
} norm;

/* x = norm(x + a * packed + bias), kept in `out` too; `sum`, when there, gets what is normed. */
static void join(sf_view x, sf_view out, sf_view sum, sf_view a, const sf_packed *packed, const float *bias, norm n,
                 const sf_bert_net *net, size_t N)
{
    size_t H = net->layout->shape.hidden;
    if (!sum.values) sum = x;
    if (sum.values != x.values) copy_rows(sum, x, N, H);
    for (size_t i = 0; i < N; i += JOINED) {
        const size_t rows = sf_least(JOINED, N - i);
        const sf_view some = sf_view_at(sum, i, 0);
        sf_product(some, sf_view_at(a, i, 0), packed, bias, SF_LINEAR, 1, rows);
        sf_norm_rows(sf_view_at(x, i, 0), sf_view_at(out, i, 0), some, net->parameters + n.weight,
                     sf_bert_shift(net, n.bias), net->layout->shape.epsilon, rows, H, net->isa);
    }
}

/* prenorm: x = x + a * packed + bias; `out` gets norm(x) for the next product, and `sum`, when there, x. */
static void pass_on(sf_view x, sf_view out, sf_view sum, sf_view normed, sf_view a, const sf_packed *packed,
                    const float *bias, norm n, const sf_bert_net *net, size_t N)
{
    const size_t H = net->layout->shape.hidden;
    for (size_t i = 0; i < N; i += JOINED) {
        const size_t rows = sf_least(JOINED, N - i);
        const sf_view some = sf_view_at(x, i, 0), next = sf_view_at(out, i, 0);
        sf_product(some, sf_view_at(a, i, 0), packed, bias, SF_LINEAR, 1, rows);
        if (sum.values) copy_rows(sf_view_at(sum, i, 0), some, rows, H);
        sf_norm_rows(normed, next, some, net->parameters + n.weight, sf_bert_shift(net, n.bias),
                     net->layout->shape.epsilon, rows, H, net->isa);
    }
}

/* inner = activation(middle * inner + bias), perhaps times a gate; kept before the activation in training. */
static void widen(const sf_bert_rows *r, const sf_bert_net *net, const sf_bert_layer *l, const sf_bert_matrices *m,
                  size_t N)
{
    const sf_activation activation = net->layout->shape.activation;
    const size_t F = net->layout->shape.inner;
    const float *bias = sf_bert_bias(net, l->inner_bias);
    const int gated = net->layout->shape.form.gated;
    if (r->raw.values) {
        sf_product(r->raw, r->middle, &m->inner, bias, SF_LINEAR, 0, N);
        if (gated) sf_product(sf_view_at(r->raw, 0, F), r->middle, &m->gate, bias ? bias + F : NULL, SF_LINEAR, 0, N);
        sf_activate_rows(r->inner, r->raw, activation, N, F, net->isa);
        if (gated) sf_multiply_rows(r->inner, sf_view_at(r->raw, 0, F), N, F, net->isa);
        return;
    }
    sf_product(r->inner, r->middle, &m->inner, bias, activation, 0, N);
    for (size_t i = 0; gated && i < N; i += JOINED) {
        const size_t rows = sf_least(JOINED, N - i);
        sf_product(r->gate, sf_view_at(r->middle, i, 0), &m->gate, bias ? bias + F : NULL, SF_LINEAR, 0, rows);
        sf_multiply_rows(sf_view_at(r->inner, i, 0), r->gate, rows, F, net->isa);
    }
}

void sf_bert_transform(const sf_bert_rows *r, sf_view next, const sf_bert_net *net, size_t layer, size_t N)
{
    const sf_bert_layout *layout = net->layout;
    const sf_bert_layer *l = &layout->layers[layer];
    const sf_bert_matrices *m = &net->layers[sf_bert_set(layout, layer)];
    const float *after = sf_bert_bias(net, l->attention_bias), *end = sf_bert_bias(net, l->outer_bias);
    const norm first = {l->norm1_weight, l->norm1_bias}, second = {l->norm2_weight, l->norm2_bias};
    if (!layout->shape.form.prenorm) {
        join(r->x, r->middle, r->sum1, r->context, &m->attention, after, first, net, N);
        widen(r, net, l, m, N);
        join(r->x, next, r->sum2, r->inner, &m->outer, end, second, net, N);
        return;
    }
    pass_on(r->x, r->middle, r->sum1, r->normed, r->context, &m->attention, after, second, net, N);
    widen(r, net, l, m, N);
    if (layer + 1 == layout->shape.layers) {
        const norm last = {layout->end_weight, layout->end_bias};
        join(r->x, next, r->sum2, r->inner, &m->outer, end, last, net, N);
    } else {
        const norm following = {l[1].norm1_weight, l[1].norm1_bias};
        pass_on(r->x, next, r->sum2, r->normed, r->inner, &m->outer, end, following, net, N);
    }
}

/* ------------------------------------------------------------------- features */

struct sf_bert_scratch {
    sf_bert_attention attention;
    sf_bert_rows rows;
    float *work;     /* of pooling */
    size_t capacity; /* rows of a group */
};

void sf_bert_scratch_free(sf_bert_scratch *s)
{
    if (!s) return;
    sf_bert_rows *r = &s->rows;
    if (r->input.values != r->x.values) free(r->input.values);
    free(r->x.values);
    free(r->qkv.values);
    free(r->context.values);
    free(r->inner.values);
    sf_bert_rows_work_free(r);
    sf_bert_attention_free(&s->attention);
    free(s->work);
    free(s);
}

safer_status sf_bert_scratch_new(sf_bert_scratch **out, const sf_bert_net *net, safer_error *error)
{
    const sf_bert_shape *shape = &net->layout->shape;
    size_t H = shape->hidden, T = shape->tokens;
    sf_bert_scratch *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->capacity = GROUP_ROWS + T;
    sf_bert_rows *r = &s->rows;
    int failed = sf_bert_attention_new(&s->attention, net) || sf_view_new(&r->x, s->capacity, H, SF_F32) ||
                 sf_view_new(&r->qkv, ATTENDED + T, 3 * H, net->type) ||
                 sf_view_new(&r->context, s->capacity, H, net->type) ||
                 sf_view_new(&r->inner, s->capacity, shape->inner, net->type) || sf_bert_rows_work(r, net) ||
                 !(s->work = sf_alloc_aligned(3 * H, sizeof *s->work));
    r->input = r->x; /* unless it is bf16, or normed */
    if (net->type == SF_BF16 || shape->form.prenorm)
        failed = sf_view_new(&r->input, s->capacity, H, net->type) || failed;
    r->middle = r->input; /* the layer's input is not needed any more */
    if (failed) {
        sf_bert_scratch_free(s);
        return sf_fail_memory(error);
    }
    *out = s;
    return SAFER_OK;
}

/* Those of the rows that are filled text by text, for the text that begins at `first`. */
static sf_bert_rows rows_at(const sf_bert_scratch *s, size_t first)
{
    sf_bert_rows r = {0};
    r.x = sf_view_at(s->rows.x, first, 0);
    r.input = sf_view_at(s->rows.input, first, 0);
    r.context = sf_view_at(s->rows.context, first, 0);
    r.narrow = s->rows.narrow;
    r.factor = s->rows.factor;
    return r;
}

static void mean_of(float *out, sf_view x, size_t T, size_t H, sf_isa isa)
{
    memset(out, 0, H * sizeof *out);
    for (size_t i = 0; i < T; i++) sf_add(out, sf_view_row(x, i), H, isa);
    for (size_t j = 0; j < H; j++) out[j] /= (float)T;
}

/* The dense layer of a head. */
static void dense(float *features, float *work, const sf_bert_net *net)
{
    const sf_bert_layout *l = net->layout;
    const size_t H = l->shape.hidden;
    const float *weight = net->parameters + l->pooler_weight, *bias = sf_bert_bias(net, l->pooler_bias);
    float *raw = work + H, *active = work + 2 * H;
    for (size_t o = 0; o < H; o++, weight += H) {
        float sum = bias ? bias[o] : 0;
        for (size_t j = 0; j < H; j++) sum += weight[j] * work[j];
        raw[o] = sum;
    }
    for (size_t o = 0; o < H; o++)
        active[o] = l->shape.pooler == SF_ENCODER_RELU ? (raw[o] > 0 ? raw[o] : 0) : (float)sf_tanh((double)raw[o]);
    if (l->shape.pooler > SF_ENCODER_RELU) sf_activate(active, raw, sf_bert_dense(l->shape.pooler), H, net->isa);
    const sf_view from = {active, H, SF_F32}, to = {features, H, SF_F32};
    if (l->shape.form.dense_norm)
        sf_norm_rows(to, to, from, net->parameters + l->pooler_norm_weight, sf_bert_shift(net, l->pooler_norm_bias),
                     l->shape.epsilon, 1, H, net->isa);
    else
        memcpy(features, active, H * sizeof *features);
}

sf_activation sf_bert_dense(sf_encoder_activation activation)
{
    return activation == SF_ENCODER_SILU        ? SF_SILU
           : activation == SF_ENCODER_GELU_TANH ? SF_GELU_TANH
           : activation == SF_ENCODER_GELU      ? SF_GELU
                                                : SF_RELU;
}

void sf_bert_pool_text(float *features, float *work, const sf_bert_net *net, sf_view x, size_t T)
{
    const sf_bert_shape *s = &net->layout->shape;
    const size_t H = s->hidden;
    float *pooled = s->pool == SF_POOL_POOLER ? work : features;
    if (s->pool == SF_POOL_MEAN || (s->pool == SF_POOL_POOLER && s->form.dense_mean))
        mean_of(pooled, x, T, H, net->isa);
    else
        memcpy(pooled, sf_view_row(x, 0), H * sizeof *pooled);
    if (s->pool == SF_POOL_POOLER) dense(features, work, net);
}

/* Attention in a layer of texts first..last-1. Their queries, keys and values are made for a few texts at a time,
 * always in the same place, so that attention finds them in the cache. */
static void attend_group(const sf_bert_net *net, const sf_bert_batch *batch, size_t first, size_t last, size_t layer,
                         sf_bert_scratch *s)
{
    const size_t *at = batch->offsets;
    const float *bias = sf_bert_bias(net, net->layout->layers[layer].qkv_bias);
    const sf_packed *matrix = &net->layers[sf_bert_set(net->layout, layer)].qkv;
    for (size_t t = first, next; t < last; t = next) {
        for (next = t + 1; next < last && at[next + 1] - at[t] <= ATTENDED;) next++;
        const sf_bert_rows rows = rows_at(s, at[t] - at[first]);
        sf_product(s->rows.qkv, rows.input, matrix, bias, SF_LINEAR, 0, at[next] - at[t]);
        for (size_t u = t; u < next; u++)
            sf_bert_attend(sf_view_at(rows.context, at[u] - at[t], 0), sf_view_at(s->rows.qkv, at[u] - at[t], 0), net,
                           layer, at[u + 1] - at[u], &s->attention);
    }
}

/* Texts first..last-1, which fit into the scratch: the rows of their last layer are left there. */
static void encode_group(const sf_bert_net *net, const sf_bert_batch *batch, size_t first, size_t last,
                         sf_bert_scratch *s)
{
    const sf_bert_shape *shape = &net->layout->shape;
    size_t start = batch->offsets[first], N = batch->offsets[last] - start;
    const sf_bert_rows *all = &s->rows;
    for (size_t t = first; t < last; t++) {
        sf_bert_rows r = rows_at(s, batch->offsets[t] - start);
        sf_bert_embed(&r, net, batch->ids + batch->offsets[t], batch->offsets[t + 1] - batch->offsets[t]);
    }
    for (size_t layer = 0; layer < shape->layers; layer++) {
        attend_group(net, batch, first, last, layer, s);
        sf_bert_transform(all, all->input, net, layer, N);
    }
}

/* Encodes as many texts from `first` on as fit; returns the one behind them. */
static size_t encode_next(const sf_bert_net *net, const sf_bert_batch *batch, size_t first, sf_bert_scratch *scratch)
{
    size_t last = first + 1, start = batch->offsets[first];
    while (last < batch->count && batch->offsets[last + 1] - start <= scratch->capacity) last++;
    encode_group(net, batch, first, last, scratch);
    return last;
}

void sf_bert_features(float *features, const sf_bert_net *net, const sf_bert_batch *batch, sf_bert_scratch *scratch)
{
    const size_t *at = batch->offsets;
    for (size_t first = 0, last; first < batch->count; first = last) {
        last = encode_next(net, batch, first, scratch);
        for (size_t t = first; t < last; t++)
            sf_bert_pool_text(features + t * net->layout->shape.hidden, scratch->work, net,
                              sf_view_at(scratch->rows.x, at[t] - at[first], 0), at[t + 1] - at[t]);
    }
}

void sf_bert_part_means(const sf_bert_net *net, const sf_bert_batch *batch, const sf_bert_parts *parts,
                        sf_bert_scratch *scratch)
{
    const size_t *at = batch->offsets, H = net->layout->shape.hidden;
    for (size_t first = 0, last; first < batch->count; first = last) {
        last = encode_next(net, batch, first, scratch);
        for (size_t t = first; t < last; t++)
            for (size_t i = 0; i < parts[t].count; i++) {
                const size_t begin = parts[t].begin[i], pieces = parts[t].begin[i + 1] - begin;
                float *mean = parts[t].means + i * H;
                if (pieces)
                    mean_of(mean, sf_view_at(scratch->rows.x, at[t] - at[first] + begin, 0), pieces, H, net->isa);
                else
                    memset(mean, 0, H * sizeof *mean);
            }
    }
}

void sf_bert_logits(float *logits, const sf_bert_net *net, const float *features, size_t count)
{
    const sf_bert_layout *l = net->layout;
    size_t H = l->shape.hidden, classes = l->shape.classes;
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < classes; c++) {
            const float *weight = net->parameters + l->classifier_weight + c * H;
            float sum = net->parameters[l->classifier_bias + c];
            for (size_t j = 0; j < H; j++) sum += weight[j] * features[i * H + j];
            logits[i * classes + c] = sum;
        }
}
