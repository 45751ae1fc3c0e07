/* The `bert` classifier, on the way back through attention: one head of one text.
 *
 * The shares are computed again. What scores get by their distance (relative positions) gives its gradient to what all
 * texts share: a bias's numbers, or the vectors of distances, of which a head has columns of its own. */
#include "train/bert_inside.h"

#include "base/memory.h"
#include "nn/vector.h"

#include <string.h>

enum { QUERIES = SF_BERT_QUERIES };

static size_t padded(size_t count) { return (count + 31) / 32 * 32; }

void sf_step_worker_free(sf_step_worker *w)
{
    sf_bert_attention_free(&w->attention);
    sf_bert_rows_work_free(&w->work);
    sf_packed *packed[] = {&w->keys, &w->values, &w->queries, &w->slopes, &w->places};
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) sf_packed_free(packed[i]);
    sf_view *views[] = {&w->dshares,  &w->dscores,    &w->turned,  &w->dkeys,  &w->dvalues,
                        &w->dqueries, &w->by_queries, &w->by_keys, &w->factor, &w->across};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) free(views[i]->values);
}

int sf_step_worker_new(sf_step_worker *w, const sf_bert_step *s)
{
    const sf_bert_shape *shape = &s->layout->shape;
    const size_t T = shape->tokens, H = shape->hidden, d = H / shape->heads, stride = padded(T);
    const size_t rows = padded(sf_bert_relative_rows(shape));
    const sf_dtype type = s->options.type;
    const sf_isa isa = s->net->isa;
    if (sf_bert_attention_new(&w->attention, s->net) || sf_bert_rows_work(&w->work, s->net) ||
        sf_packed_shape(&w->keys, T, d, type, isa) || sf_packed_shape(&w->values, d, T, type, isa) ||
        sf_packed_shape(&w->queries, QUERIES, d, type, isa) || sf_packed_shape(&w->slopes, QUERIES, d, type, isa) ||
        sf_view_new(&w->dshares, QUERIES, stride, SF_F32) || sf_view_new(&w->dscores, QUERIES, stride, type) ||
        sf_view_new(&w->turned, T, QUERIES, type) || sf_view_new(&w->dkeys, T, d, SF_F32) ||
        sf_view_new(&w->dvalues, T, d, SF_F32))
        return -1;
    if (shape->form.relative != SF_RELATIVE_PARTS) return 0;
    const size_t most = T > QUERIES ? T : QUERIES;
    return sf_view_new(&w->dqueries, QUERIES, d, SF_F32) || sf_view_new(&w->by_queries, QUERIES, rows, SF_F32) ||
           sf_view_new(&w->by_keys, T, rows, SF_F32) || sf_view_new(&w->factor, most, rows, type) ||
           sf_view_new(&w->across, rows, padded(most), type) || sf_packed_shape(&w->places, rows, d, type, isa);
}

/* ------------------------------------------------------------------ distances */

/* The bias of a distance: its gradient is the sum of those of all scores at that distance. `slopes` are those before
 * the scale. */
static void bias_back(sf_bert_step *s, const sf_bert_head *h, sf_view slopes, size_t first, size_t count)
{
    const sf_bert_shape *shape = &s->layout->shape;
    const float scale = 1.0f / sf_bert_scale(shape);
    float *g = s->gradient + s->layout->relative + h->head;
    if (!s->embeddings) return;
    for (size_t i = 0; i < count; i++) {
        const int32_t *rows = s->layout->buckets + shape->tokens - 1 - (first + i);
        const float *x = sf_view_row(slopes, i);
        for (size_t j = 0; j < h->T; j++) g[(size_t)rows[j] * shape->heads] += scale * x[j];
    }
}

/* Adds the gradients of a block's scores to those of both products with the vectors of distances. */
static void scatter(sf_step_worker *w, const sf_bert_head *h, size_t first, size_t count)
{
    const sf_bert_layout *l = h->net->layout;
    const int32_t base = (int32_t)(w->attention.first_panel * SF_PANEL);
    memset(w->by_queries.values, 0, count * w->by_queries.stride * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        const int32_t *rows = l->buckets + l->shape.tokens - 1 - (first + i);
        const float *x = sf_view_row(w->dshares, i);
        float *own = sf_view_row(w->by_queries, i);
        for (size_t j = 0; j < h->T; j++) {
            own[rows[j] - base] += x[j];
            sf_view_row(w->by_keys, j)[rows[j] - base] += x[j];
        }
    }
}

/* Of products (count, rows) with vectors of distances, given their gradient: that of the left side is added to `d`, and
 * that of the vectors to this head's columns. `right` is the left side, packed (count, d). */
static void places_back(sf_bert_step *s, sf_step_worker *w, const sf_bert_head *h, int which, sf_view slopes, sf_view d,
                        const sf_packed *right, size_t count)
{
    const sf_bert_net *net = h->net;
    const sf_bert_shape *shape = &net->layout->shape;
    const size_t size = shape->hidden / shape->heads, first = w->attention.first_panel * SF_PANEL,
                 rows = sf_least(w->attention.panels * SF_PANEL, sf_bert_relative_rows(shape) - first);
    const sf_view vectors = sf_view_at(net->places[h->layer].vectors[which], first, h->head * size),
                  out = sf_view_at(s->places.slopes[which], first, h->head * size);
    for (size_t i = 0; i < count; i++) sf_view_keep(w->factor, i, sf_view_row(slopes, i), rows, net->isa);
    (void)sf_packed_shape(&w->places, rows, size, net->type, net->isa); /* was made large enough */
    sf_pack(&w->places, vectors, 0, 0, sf_packed_panels(&w->places));
    sf_product(d, w->factor, &w->places, NULL, SF_LINEAR, 1, count);
    sf_transpose(w->across, w->factor, count, rows, net->isa);
    sf_product(out, w->across, right, NULL, SF_LINEAR, 1, rows);
}

/* ------------------------------------------------------------------ attention */

/* Shares of a block and the gradients of its scores, before the scale: F32 and as factors. */
static void slopes_of(sf_step_worker *w, const sf_bert_head *h, sf_bert_seen seen, size_t first, size_t count)
{
    const sf_bert_net *net = h->net;
    const float scale = sf_bert_scale(&net->layout->shape);
    const size_t width = seen.high - seen.low;
    sf_bert_attention *a = &w->attention;
    for (size_t i = 0; i < count; i++) {
        const sf_bert_seen row = sf_bert_sees_row(seen, first + i);
        float *shares = sf_view_row(a->scores, i), *ds = sf_view_row(w->dshares, i);
        memset(shares, 0, row.low * sizeof *shares);
        memset(shares + row.high, 0, (width - row.high) * sizeof *shares);
        memset(ds, 0, row.low * sizeof *ds);
        memset(ds + row.high, 0, (width - row.high) * sizeof *ds);
        sf_softmax_row(shares + row.low, scale, row.high - row.low, net->isa);
        sf_softmax_row_backward(ds + row.low, ds + row.low, shares + row.low, scale, row.high - row.low, net->isa);
        sf_view_keep(w->dscores, i, ds, width, net->isa);
        sf_view_keep(a->shares, i, shares, width, net->isa);
    }
}

/* The other sides of the keys and values that are seen. */
static void pack_seen(sf_step_worker *w, const sf_bert_head *h, sf_bert_seen s, size_t d)
{
    const sf_bert_net *net = h->net;
    (void)sf_packed_shape(&w->keys, s.high - s.low, d, net->type, net->isa); /* all were made large enough */
    (void)sf_packed_shape(&w->values, d, s.high - s.low, net->type, net->isa);
    sf_pack(&w->keys, sf_view_at(h->keys, s.low, 0), 0, 0, sf_packed_panels(&w->keys));
    sf_pack(&w->values, sf_view_at(h->values, s.low, 0), 1, 0, sf_packed_panels(&w->values));
}

/* Queries first..first+count-1. */
static void attend_block(sf_bert_step *s, sf_step_worker *w, const sf_bert_head *h, sf_view dqueries, sf_view slopes,
                         size_t first, size_t count)
{
    const sf_bert_net *net = h->net;
    const sf_bert_shape *shape = &net->layout->shape;
    const size_t d = shape->hidden / shape->heads;
    const sf_bert_seen seen = sf_bert_sees(h, first, count);
    const size_t width = seen.high - seen.low;
    const int local = seen.window != SIZE_MAX, parts = shape->form.relative == SF_RELATIVE_PARTS;
    sf_bert_attention *a = &w->attention;
    if (local) pack_seen(w, h, seen, d);
    (void)sf_packed_shape(&w->queries, count, d, net->type, net->isa);
    (void)sf_packed_shape(&w->slopes, count, d, net->type, net->isa);
    sf_pack(&w->queries, sf_view_at(h->queries, first, 0), 0, 0, sf_packed_panels(&w->queries));
    sf_pack(&w->slopes, slopes, 0, 0, sf_packed_panels(&w->slopes));
    sf_bert_head_scores(a, h, seen, first, count);
    sf_product(w->dshares, slopes, &w->values, NULL, SF_LINEAR, 0, count);
    slopes_of(w, h, seen, first, count);
    if (shape->form.relative == SF_RELATIVE_BIAS) bias_back(s, h, w->dshares, first, count);
    sf_product(parts ? w->dqueries : dqueries, w->dscores, &w->keys, NULL, SF_LINEAR, 0, count);
    if (parts) {
        scatter(w, h, first, count);
        if (shape->form.place_keys) places_back(s, w, h, SF_PLACE_KEYS, w->by_queries, w->dqueries, &w->queries, count);
        for (size_t i = 0; i < count; i++) sf_view_keep(dqueries, i, sf_view_row(w->dqueries, i), d, net->isa);
    }
    sf_transpose(w->turned, w->dscores, count, width, net->isa);
    sf_product(sf_view_at(w->dkeys, seen.low, 0), w->turned, &w->queries, NULL, SF_LINEAR, local || first > 0, width);
    sf_transpose(w->turned, a->shares, count, width, net->isa);
    sf_product(sf_view_at(w->dvalues, seen.low, 0), w->turned, &w->slopes, NULL, SF_LINEAR, local || first > 0, width);
}

void sf_step_attend_back(sf_bert_step *s, size_t text, size_t head, int index)
{
    const sf_bert_net *net = s->net;
    const sf_bert_shape *shape = &net->layout->shape;
    const size_t H = shape->hidden, d = H / shape->heads, row = s->batch->offsets[text],
                 T = s->batch->offsets[text + 1] - row;
    sf_step_worker *w = &s->workers[index];
    const sf_bert_head h = sf_bert_head_of(net, sf_step_shift(sf_step_rows(s, s->layer)->qkv, row), s->layer, head, T);
    const sf_view dqkv = sf_view_at(s->dqkv, row, head * d), dcontext = sf_view_at(s->dcontext, row, head * d);
    const int parts = shape->form.relative == SF_RELATIVE_PARTS;
    sf_bert_head_begin(&w->attention, &h);
    if (net->layout->layers[s->layer].window >= T) {
        pack_seen(w, &h, (sf_bert_seen){0, T, SIZE_MAX}, d);
    } else {
        memset(w->dkeys.values, 0, T * d * sizeof(float));
        memset(w->dvalues.values, 0, T * d * sizeof(float));
    }
    if (parts) memset(w->by_keys.values, 0, T * w->by_keys.stride * sizeof(float));
    for (size_t first = 0; first < T; first += QUERIES)
        attend_block(s, w, &h, sf_view_at(dqkv, first, 0), sf_view_at(dcontext, first, 0), first,
                     sf_least(QUERIES, T - first));
    if (parts && shape->form.place_queries) places_back(s, w, &h, SF_PLACE_QUERIES, w->by_keys, w->dkeys, &w->keys, T);
    for (size_t i = 0; i < T; i++) {
        sf_view_keep(sf_view_at(dqkv, 0, H), i, sf_view_row(w->dkeys, i), d, net->isa);
        sf_view_keep(sf_view_at(dqkv, 0, 2 * H), i, sf_view_row(w->dvalues, i), d, net->isa);
    }
}
