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
#include "nn/attention.h"
#include "nn/vector.h"

#include <math.h>
#include <string.h>

enum {
    GROUP_ROWS = 2048, /* texts are grouped up to about so many pieces, */
    ATTENDED = 256,    /* and for attention up to so many */
    JOINED = 128       /* rows that are still in the cache when they are normed */
};

/* ------------------------------------------------------------------ the net */

typedef struct packing {
    sf_bert_net *net;
    size_t first;
} packing;

static void pack_layers(void *context, size_t begin, size_t end, int worker)
{
    const packing *p = context;
    const sf_bert_layout *l = p->net->layout;
    size_t H = l->shape.hidden, F = l->shape.inner;
    (void)worker;
    for (size_t i = begin; i < end; i++) { /* four matrices per layer */
        sf_bert_matrices *m = &p->net->layers[p->first + i / 4];
        const sf_bert_layer *o = &l->layers[p->first + i / 4];
        sf_packed *packed[] = {&m->qkv, &m->attention, &m->inner, &m->outer};
        const size_t weights[] = {o->qkv_weight, o->attention_weight, o->inner_weight, o->outer_weight},
                     strides[] = {H, H, H, F};
        sf_view source = {(float *)p->net->parameters + weights[i % 4], strides[i % 4], SF_F32}; /* read only */
        sf_pack(packed[i % 4], source, 1, 0, sf_packed_panels(packed[i % 4]));
    }
}

void sf_bert_net_update(sf_bert_net *net, size_t first, int threads)
{
    packing p = {net, first};
    sf_parallel(threads, 4 * (net->layout->shape.layers - first), 1, pack_layers, &p);
}

safer_status sf_bert_net_new(sf_bert_net **out, const sf_bert_layout *layout, const float *parameters,
                             sf_arithmetic arithmetic, int threads, safer_error *error)
{
    size_t H = layout->shape.hidden, F = layout->shape.inner;
    sf_encoder encoder;
    if (sf_bert_encoder(&encoder, layout, parameters)) return sf_fail_memory(error);
    const int known = sf_encoder_is_bert(&encoder);
    free((void *)encoder.layer);
    if (!known) return sf_fail(error, SAFER_INPUT, "the encoder is not of the form of BERT and DistilBERT");
    sf_bert_net *net = sf_calloc(1, sizeof *net);
    int failed = !net;
    if (net) {
        *net = (sf_bert_net){layout, parameters, arithmetic.type, arithmetic.isa,
                             sf_calloc(layout->shape.layers, sizeof *net->layers)};
        failed = !net->layers;
    }
    for (size_t i = 0; !failed && i < layout->shape.layers; i++) {
        sf_bert_matrices *m = &net->layers[i];
        failed = sf_packed_shape(&m->qkv, H, 3 * H, net->type, net->isa) ||
                 sf_packed_shape(&m->attention, H, H, net->type, net->isa) ||
                 sf_packed_shape(&m->inner, H, F, net->type, net->isa) ||
                 sf_packed_shape(&m->outer, F, H, net->type, net->isa);
    }
    if (failed) {
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
    for (size_t i = 0; net->layers && i < net->layout->shape.layers; i++) {
        sf_packed_free(&net->layers[i].qkv);
        sf_packed_free(&net->layers[i].attention);
        sf_packed_free(&net->layers[i].inner);
        sf_packed_free(&net->layers[i].outer);
    }
    free(net->layers);
    free(net);
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

void sf_bert_embed(const sf_bert_rows *rows, const sf_bert_net *net, const uint32_t *ids, size_t N)
{
    const sf_bert_layout *l = net->layout;
    const float *p = net->parameters;
    size_t H = l->shape.hidden;
    for (size_t i = 0; i < N; i++) {
        float *x = sf_view_row(rows->x, i);
        memcpy(x, p + l->words + ids[i] * H, H * sizeof *x);
        sf_add(x, p + l->positions + i * H, H, net->isa);
        if (l->types != SIZE_MAX) sf_add(x, p + l->types, H, net->isa);
        if (rows->sum1.values) memcpy(sf_view_row(rows->sum1, i), x, H * sizeof *x);
    }
    sf_norm_rows(rows->x, rows->input, rows->x, p + l->norm_weight, p + l->norm_bias, l->shape.epsilon, N, H, net->isa);
}

/* x = norm(x + a * packed + bias), kept in `out` too; `sum`, when there, gets what is normed. */
static void join(sf_view x, sf_view out, sf_view sum, sf_view a, const sf_packed *packed, const float *bias,
                 const float *weight, const float *shift, const sf_bert_net *net, size_t N)
{
    size_t H = net->layout->shape.hidden;
    if (!sum.values) sum = x;
    for (size_t i = 0; sum.values != x.values && i < N; i++)
        memcpy(sf_view_row(sum, i), sf_view_row(x, i), H * sizeof(float));
    for (size_t i = 0; i < N; i += JOINED) {
        const size_t rows = sf_least(JOINED, N - i);
        const sf_view some = sf_view_at(sum, i, 0);
        sf_product(some, sf_view_at(a, i, 0), packed, bias, SF_LINEAR, 1, rows);
        sf_norm_rows(sf_view_at(x, i, 0), sf_view_at(out, i, 0), some, weight, shift, net->layout->shape.epsilon, rows,
                     H, net->isa);
    }
}

void sf_bert_transform(const sf_bert_rows *r, sf_view next, const sf_bert_net *net, size_t layer, size_t N)
{
    const sf_bert_layer *l = &net->layout->layers[layer];
    const sf_bert_matrices *m = &net->layers[layer];
    const float *p = net->parameters;
    sf_activation activation = net->layout->shape.activation;
    join(r->x, r->middle, r->sum1, r->context, &m->attention, p + l->attention_bias, p + l->norm1_weight,
         p + l->norm1_bias, net, N);
    if (r->raw.values) {
        sf_product(r->raw, r->middle, &m->inner, p + l->inner_bias, SF_LINEAR, 0, N);
        sf_activate_rows(r->inner, r->raw, activation, N, net->layout->shape.inner, net->isa);
    } else {
        sf_product(r->inner, r->middle, &m->inner, p + l->inner_bias, activation, 0, N);
    }
    join(r->x, next, r->sum2, r->inner, &m->outer, p + l->outer_bias, p + l->norm2_weight, p + l->norm2_bias, net, N);
}

/* ----------------------------------------------------------------- attention */

int sf_bert_attention_new(sf_bert_attention *out, const sf_bert_net *net)
{
    size_t T = net->layout->shape.tokens, d = net->layout->shape.hidden / net->layout->shape.heads,
           stride = (T + 31) / 32 * 32;
    *out = (sf_bert_attention){0};
    if (sf_packed_shape(&out->keys, d, T, net->type, net->isa) ||
        sf_packed_shape(&out->values, T, d, net->type, net->isa) ||
        sf_view_new(&out->scores, SF_BERT_QUERIES, stride, SF_F32) ||
        sf_view_new(&out->mixed, SF_BERT_QUERIES, d, SF_F32) ||
        (net->type == SF_BF16 && sf_view_new(&out->shares, SF_BERT_QUERIES, stride, SF_BF16))) {
        sf_bert_attention_free(out);
        return -1;
    }
    if (net->type == SF_F32) out->shares = out->scores;
    return 0;
}

void sf_bert_attention_free(sf_bert_attention *a)
{
    sf_packed_free(&a->keys);
    sf_packed_free(&a->values);
    if (a->shares.values != a->scores.values) free(a->shares.values);
    free(a->scores.values);
    free(a->mixed.values);
    *a = (sf_bert_attention){0};
}

void sf_bert_attend(sf_view context, sf_view qkv, const sf_bert_net *net, size_t T, sf_bert_attention *a)
{
    size_t H = net->layout->shape.hidden, heads = net->layout->shape.heads, d = H / heads;
    float scale = 1.0f / sqrtf((float)d);
    for (size_t h = 0; h < heads; h++) {
        sf_view queries = sf_view_at(qkv, 0, h * d), out = sf_view_at(context, 0, h * d);
        (void)sf_packed_shape(&a->keys, d, T, net->type, net->isa); /* was made large enough */
        (void)sf_packed_shape(&a->values, T, d, net->type, net->isa);
        const sf_view keys = sf_view_at(qkv, 0, H + h * d), values = sf_view_at(qkv, 0, 2 * H + h * d);
        if (sf_attend_can(net->type, net->isa, d)) {
            sf_attend(out, queries, keys, values, &a->keys, &a->values, scale, T, d);
            continue;
        }
        sf_pack(&a->keys, keys, 1, 0, sf_packed_panels(&a->keys));
        sf_pack(&a->values, values, 0, 0, sf_packed_panels(&a->values));
        for (size_t first = 0; first < T; first += SF_BERT_QUERIES) {
            size_t count = T - first < SF_BERT_QUERIES ? T - first : SF_BERT_QUERIES;
            sf_product(a->scores, sf_view_at(queries, first, 0), &a->keys, NULL, SF_LINEAR, 0, count);
            sf_view mixed = sf_view_at(out, first, 0);
            if (net->type == SF_F32) {
                for (size_t i = 0; i < count; i++) sf_softmax_row(sf_view_row(a->scores, i), scale, T, net->isa);
                sf_product(mixed, a->shares, &a->values, NULL, SF_LINEAR, 0, count);
                continue;
            }
            float sums[SF_BERT_QUERIES]; /* in bf16 the division comes last: it is then one of d numbers, not of T */
            for (size_t i = 0; i < count; i++)
                sums[i] = sf_exp_row((sf_bf16 *)a->shares.values + i * a->shares.stride, sf_view_row(a->scores, i),
                                     scale, T, net->isa);
            sf_product(a->mixed, a->shares, &a->values, NULL, SF_LINEAR, 0, count);
            for (size_t i = 0; i < count; i++) {
                sf_scale(sf_view_row(a->mixed, i), 1.0f / sums[i], d, net->isa);
                sf_view_keep(mixed, i, sf_view_row(a->mixed, i), d, net->isa);
            }
        }
    }
}

/* ------------------------------------------------------------------- features */

struct sf_bert_scratch {
    sf_bert_attention attention;
    sf_bert_rows rows;
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
    sf_bert_attention_free(&s->attention);
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
                 sf_view_new(&r->inner, s->capacity, shape->inner, net->type);
    r->input = r->x;
    if (net->type == SF_BF16) failed = failed || sf_view_new(&r->input, s->capacity, H, SF_BF16);
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
    return r;
}

void sf_bert_pool_text(float *features, const sf_bert_net *net, sf_view x, size_t T)
{
    const sf_bert_layout *l = net->layout;
    size_t H = l->shape.hidden;
    if (l->shape.pool == SF_POOL_MEAN) {
        memset(features, 0, H * sizeof *features);
        for (size_t i = 0; i < T; i++) sf_add(features, sf_view_row(x, i), H, net->isa);
        for (size_t j = 0; j < H; j++) features[j] /= (float)T;
    } else if (l->shape.pool == SF_POOL_CLS) {
        memcpy(features, sf_view_row(x, 0), H * sizeof *features);
    } else {
        const float *cls = sf_view_row(x, 0), *weight = net->parameters + l->pooler_weight;
        for (size_t o = 0; o < H; o++, weight += H) {
            float sum = net->parameters[l->pooler_bias + o];
            for (size_t j = 0; j < H; j++) sum += weight[j] * cls[j];
            features[o] = l->shape.pooler == SF_ENCODER_RELU ? (sum > 0 ? sum : 0) : (float)sf_tanh((double)sum);
        }
    }
}

/* Attention in a layer of texts first..last-1. Their queries, keys and values are made for a few texts at a time, always
 * in the same place, so that attention finds them in the cache. */
static void attend_group(const sf_bert_net *net, const sf_bert_batch *batch, size_t first, size_t last, size_t layer,
                         sf_bert_scratch *s)
{
    const size_t *at = batch->offsets;
    const float *bias = net->parameters + net->layout->layers[layer].qkv_bias;
    for (size_t t = first, next; t < last; t = next) {
        for (next = t + 1; next < last && at[next + 1] - at[t] <= ATTENDED;) next++;
        const sf_bert_rows rows = rows_at(s, at[t] - at[first]);
        sf_product(s->rows.qkv, rows.input, &net->layers[layer].qkv, bias, SF_LINEAR, 0, at[next] - at[t]);
        for (size_t u = t; u < next; u++)
            sf_bert_attend(sf_view_at(rows.context, at[u] - at[t], 0), sf_view_at(s->rows.qkv, at[u] - at[t], 0), net,
                           at[u + 1] - at[u], &s->attention);
    }
}

/* Texts first..last-1, which fit into the scratch. */
static void encode_group(float *features, const sf_bert_net *net, const sf_bert_batch *batch, size_t first, size_t last,
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
    for (size_t t = first; t < last; t++)
        sf_bert_pool_text(features + t * shape->hidden, net, sf_view_at(s->rows.x, batch->offsets[t] - start, 0),
                          batch->offsets[t + 1] - batch->offsets[t]);
}

void sf_bert_features(float *features, const sf_bert_net *net, const sf_bert_batch *batch, sf_bert_scratch *scratch)
{
    for (size_t first = 0; first < batch->count;) {
        size_t last = first + 1, start = batch->offsets[first];
        while (last < batch->count && batch->offsets[last + 1] - start <= scratch->capacity) last++;
        encode_group(features, net, batch, first, last, scratch);
        first = last;
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
