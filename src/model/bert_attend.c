/* The `bert` classifier: attention, of every kind that nn/encoder.h describes.
 *
 * One head of one text at a time, a few queries at a time, so that the scores stay in the cache. On AMX attention as
 * BERT has it is one pipeline (nn/attention.h); all else passes the products of nn/product.h here.
 *
 * Relative positions add to the scores what belongs to the distance of key and query. A bias is one number per head and
 * distance: the distances of a row of scores lie side by side, so it is added as a vector. In disentangled attention
 * queries are multiplied with the key of every distance that the text has (a few hundred: far ones share theirs), keys
 * with the query of every distance, and then each score picks its two numbers. Local layers see a window of keys:
 * for a block of queries those of all its windows are multiplied, and what a query does not see has a share of 0. */
#include "model/bert.h"

#include "base/memory.h"
#include "nn/attention.h"
#include "nn/vector.h"

#include <string.h>

/* -------------------------------------------------------------------- memory */

static size_t padded(size_t count) { return (count + 31) / 32 * 32; }

int sf_bert_attention_new(sf_bert_attention *out, const sf_bert_net *net)
{
    const sf_bert_shape *shape = &net->layout->shape;
    const size_t T = shape->tokens, d = shape->hidden / shape->heads, stride = padded(T);
    const int parts = shape->form.relative == SF_RELATIVE_PARTS;
    const size_t rows = padded(sf_bert_relative_rows(shape));
    *out = (sf_bert_attention){0};
    if (sf_packed_shape(&out->keys, d, T, net->type, net->isa) ||
        sf_packed_shape(&out->values, T, d, net->type, net->isa) ||
        sf_view_new(&out->scores, SF_BERT_QUERIES, stride, SF_F32) ||
        sf_view_new(&out->mixed, SF_BERT_QUERIES, d, SF_F32) ||
        (net->type == SF_BF16 && sf_view_new(&out->shares, SF_BERT_QUERIES, stride, SF_BF16)) ||
        (parts && shape->form.place_keys && sf_view_new(&out->by_queries, SF_BERT_QUERIES, rows, SF_F32)) ||
        (parts && shape->form.place_queries && sf_view_new(&out->by_keys, T, rows, SF_F32))) {
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
    free(a->by_queries.values);
    free(a->by_keys.values);
    *a = (sf_bert_attention){0};
}

/* -------------------------------------------------------------------- scores */

sf_bert_head sf_bert_head_of(const sf_bert_net *net, sf_view qkv, size_t layer, size_t head, size_t T)
{
    const size_t H = net->layout->shape.hidden, d = H / net->layout->shape.heads;
    return (sf_bert_head){net,
                          layer,
                          head,
                          T,
                          sf_view_at(qkv, 0, head * d),
                          sf_view_at(qkv, 0, H + head * d),
                          sf_view_at(qkv, 0, 2 * H + head * d)};
}

sf_bert_seen sf_bert_sees(const sf_bert_head *h, size_t first, size_t count)
{
    const size_t window = h->net->layout->layers[h->layer].window;
    if (window >= h->T) return (sf_bert_seen){0, h->T, SIZE_MAX};
    return (sf_bert_seen){first > window ? first - window : 0, sf_least(h->T, first + count + window), window};
}

sf_bert_seen sf_bert_sees_row(sf_bert_seen s, size_t i)
{
    if (s.window == SIZE_MAX) return (sf_bert_seen){0, s.high - s.low, SIZE_MAX};
    return (sf_bert_seen){i > s.window + s.low ? i - s.window - s.low : 0, sf_least(s.high, i + s.window + 1) - s.low,
                          s.window};
}

/* The distances of a text of T pieces, from -(T-1) to T-1: their rows. */
static const int32_t *rows_of(const sf_bert_layout *l, size_t T) { return l->buckets + l->shape.tokens - T; }

/* Products with all rows of the distances that a text has. */
static void multiply_places(sf_view out, sf_view x, const sf_packed *packed, const sf_bert_head *h,
                            sf_bert_attention *a, size_t count)
{
    const int32_t *rows = rows_of(h->net->layout, h->T);
    const size_t high = (size_t)rows[0] / SF_PANEL, low = (size_t)rows[2 * h->T - 2] / SF_PANEL; /* they fall */
    const sf_packed part = sf_packed_part(packed, low, high - low + 1);
    a->first_panel = low;
    a->panels = high - low + 1;
    sf_product(out, x, &part, NULL, SF_LINEAR, 0, count);
}

/* Keys of a range, as the right side. */
static void pack_keys(sf_bert_attention *a, const sf_bert_head *h, sf_bert_seen s)
{
    const sf_bert_shape *shape = &h->net->layout->shape;
    (void)sf_packed_shape(&a->keys, shape->hidden / shape->heads, s.high - s.low, h->net->type,
                          h->net->isa); /* was made large enough */
    sf_pack(&a->keys, sf_view_at(h->keys, s.low, 0), 1, 0, sf_packed_panels(&a->keys));
}

void sf_bert_head_begin(sf_bert_attention *a, const sf_bert_head *h)
{
    if (h->net->layout->layers[h->layer].window >= h->T) pack_keys(a, h, (sf_bert_seen){0, h->T, SIZE_MAX});
    if (a->by_keys.values)
        multiply_places(a->by_keys, h->keys, &h->net->places[h->layer].packed[SF_PLACE_QUERIES][h->head], h, a, h->T);
}

void sf_bert_head_scores(sf_bert_attention *a, const sf_bert_head *h, sf_bert_seen s, size_t first, size_t count)
{
    const sf_bert_net *net = h->net;
    const sf_bert_layout *l = net->layout;
    const size_t T = h->T, stride = 2 * l->shape.tokens - 1;
    if (s.window != SIZE_MAX) pack_keys(a, h, s);
    sf_product(a->scores, sf_view_at(h->queries, first, 0), &a->keys, NULL, SF_LINEAR, 0, count);
    if (l->shape.form.relative == SF_RELATIVE_NONE) return;
    if (a->by_queries.values)
        multiply_places(a->by_queries, sf_view_at(h->queries, first, 0),
                        &net->places[h->layer].packed[SF_PLACE_KEYS][h->head], h, a, count);
    for (size_t i = 0; i < count; i++) { /* distance 0 - i stands first */
        float *x = sf_view_row(a->scores, i);
        const size_t from = l->shape.tokens - 1 - (first + i);
        if (l->shape.form.relative == SF_RELATIVE_BIAS)
            sf_add(x, net->biases + h->head * stride + from, T, net->isa);
        else
            sf_add_at(x, a->by_queries.values ? sf_view_row(a->by_queries, i) : NULL, a->by_keys.values,
                      a->by_keys.stride, l->buckets + from, (int32_t)(a->first_panel * SF_PANEL), T, net->isa);
    }
}

/* ---------------------------------------------------------------- attention */

/* Shares of a row in F32; what is not seen has none. */
static void soften(float *x, sf_bert_seen row, size_t width, float scale, sf_isa isa)
{
    memset(x, 0, row.low * sizeof *x);
    memset(x + row.high, 0, (width - row.high) * sizeof *x);
    sf_softmax_row(x + row.low, scale, row.high - row.low, isa);
}

/* The same in bf16, still to be divided by what is returned. */
static float soften_bf16(sf_bf16 *out, float *x, sf_bert_seen row, size_t width, float scale, sf_isa isa)
{
    memset(out, 0, row.low * sizeof *out);
    memset(out + row.high, 0, (width - row.high) * sizeof *out);
    return sf_exp_row(out + row.low, x + row.low, scale, row.high - row.low, isa);
}

/* Queries first..first+count-1 of a head. */
static void attend_block(sf_view out, const sf_bert_head *h, size_t first, size_t count, sf_bert_attention *a)
{
    const sf_bert_net *net = h->net;
    const sf_bert_shape *shape = &net->layout->shape;
    const sf_bert_seen s = sf_bert_sees(h, first, count);
    const size_t d = shape->hidden / shape->heads, width = s.high - s.low;
    const float scale = sf_bert_scale(shape);
    sf_bert_head_scores(a, h, s, first, count);
    if (s.window != SIZE_MAX) {
        (void)sf_packed_shape(&a->values, width, d, net->type, net->isa); /* was made large enough */
        sf_pack(&a->values, sf_view_at(h->values, s.low, 0), 0, 0, sf_packed_panels(&a->values));
    }
    if (net->type == SF_F32) {
        for (size_t i = 0; i < count; i++)
            soften(sf_view_row(a->scores, i), sf_bert_sees_row(s, first + i), width, scale, net->isa);
        sf_product(out, a->shares, &a->values, NULL, SF_LINEAR, 0, count);
        return;
    }
    float sums[SF_BERT_QUERIES]; /* in bf16 the division comes last: it is then one of d numbers, not of T */
    for (size_t i = 0; i < count; i++)
        sums[i] = soften_bf16((sf_bf16 *)a->shares.values + i * a->shares.stride, sf_view_row(a->scores, i),
                              sf_bert_sees_row(s, first + i), width, scale, net->isa);
    sf_product(a->mixed, a->shares, &a->values, NULL, SF_LINEAR, 0, count);
    for (size_t i = 0; i < count; i++) {
        sf_scale(sf_view_row(a->mixed, i), 1.0f / sums[i], d, net->isa);
        sf_view_keep(out, i, sf_view_row(a->mixed, i), d, net->isa);
    }
}

void sf_bert_attend(sf_view context, sf_view qkv, const sf_bert_net *net, size_t layer, size_t T, sf_bert_attention *a)
{
    const sf_bert_shape *shape = &net->layout->shape;
    const sf_bert_layer *l = &net->layout->layers[layer];
    const size_t heads = shape->heads, d = shape->hidden / heads;
    const int as_bert = shape->form.relative == SF_RELATIVE_NONE && l->window >= T;
    if (l->turns) sf_turn_rows(qkv, l->turns, 0, T, 2 * heads, d, net->isa); /* queries and keys lie side by side */
    for (size_t n = 0; n < heads; n++) {
        const sf_bert_head h = sf_bert_head_of(net, qkv, layer, n, T);
        const sf_view out = sf_view_at(context, 0, n * d);
        (void)sf_packed_shape(&a->keys, d, T, net->type, net->isa); /* was made large enough */
        (void)sf_packed_shape(&a->values, T, d, net->type, net->isa);
        if (as_bert && sf_attend_can(net->type, net->isa, d)) {
            sf_attend(out, h.queries, h.keys, h.values, &a->keys, &a->values, sf_bert_scale(shape), T, d);
            continue;
        }
        sf_bert_head_begin(a, &h);
        if (l->window >= T) sf_pack(&a->values, h.values, 0, 0, sf_packed_panels(&a->values));
        for (size_t first = 0; first < T; first += SF_BERT_QUERIES)
            attend_block(sf_view_at(out, first, 0), &h, first, sf_least(SF_BERT_QUERIES, T - first), a);
    }
}
