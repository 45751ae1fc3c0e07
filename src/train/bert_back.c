/* The `bert` classifier, on the way back: through the layers, block of rows by block of rows. bert_step.c says how the
 * work is spread.
 *
 * `d` is the gradient of a layer's output, and becomes that of its input. Where norms come first it is that of the
 * stream that every part of a layer adds to; what passes a norm on its way to a part comes back through it and is
 * added. */
#include "train/bert_inside.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/vector.h"

#include <string.h>

enum { BLOCK = SF_STEP_BLOCK, MATRICES = SF_STEP_MATRICES };

static sf_step_sums sums_of(sf_bert_step *s, size_t block)
{
    size_t H = s->layout->shape.hidden;
    float *p = s->partial + block * s->partial_size;
    return (sf_step_sums){p,         p + H,     p + 2 * H, p + 3 * H,  p + 4 * H,
                          p + 5 * H, p + 6 * H, p + 9 * H, p + 10 * H, p + 11 * H};
}

static void add_rows(float *sum, sf_view x, size_t count, size_t N, sf_isa isa)
{
    float row[1024];
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < N; j += 1024) {
            size_t n = N - j < 1024 ? N - j : 1024;
            const float *values = sf_view_row(x, i) + j;
            if (x.type == SF_BF16) {
                sf_from_bf16(row, (const sf_bf16 *)x.values + i * x.stride + j, n, isa);
                values = row;
            }
            sf_add(sum + j, values, n, isa);
        }
}

/* A norm on the way back: its parameters, their gradients, and what it normed. */
typedef struct norm {
    const float *weight;
    float *dweight, *dbias;
    sf_view x;
} norm;

/* d = the gradient before the norm, kept as a factor too; `bias` gets its sum over rows. */
static void norm_back(sf_view d, sf_view kept, float *bias, const norm *n, const sf_bert_net *net, size_t count)
{
    const size_t H = net->layout->shape.hidden;
    for (size_t i = 0; i < count; i++) {
        float *x = sf_view_row(d, i);
        if (n)
            sf_norm_row_backward(x, n->dweight, n->dbias, x, sf_view_row(n->x, i), n->weight,
                                 net->layout->shape.epsilon, H, net->isa);
        if (bias) sf_add(bias, x, H, net->isa);
        if (kept.values) sf_view_keep(kept, i, x, H, net->isa);
    }
}

static void add_to(sf_view d, sf_view x, size_t count, size_t H, sf_isa isa)
{
    for (size_t i = 0; i < count; i++) sf_add(sf_view_row(d, i), sf_view_row(x, i), H, isa);
}

/* The outer and the inner matrix: from douter to dinner, and on to `out`, which may be added to. */
static void narrow_back(sf_bert_step *s, size_t row, size_t count, const sf_bert_matrices *m, const sf_bert_rows *r,
                        float *inner_bias, sf_view out, int add)
{
    const sf_bert_shape *shape = &s->layout->shape;
    const size_t F = shape->inner;
    const sf_view douter = sf_step_shift(s->douter, row), dinner = sf_step_shift(s->dinner, row);
    if (shape->form.gated) {
        sf_product(sf_view_at(dinner, 0, F), douter, &m->outer, NULL, SF_LINEAR, 0, count);
        sf_gate_rows_backward(dinner, r->raw, shape->activation, count, F, s->net->isa);
    } else {
        sf_product(dinner, douter, &m->outer, NULL, SF_LINEAR, 0, count);
        sf_activate_rows_backward(dinner, dinner, r->raw, shape->activation, count, F, s->net->isa);
    }
    add_rows(inner_bias, dinner, count, shape->form.gated ? 2 * F : F, s->net->isa);
    sf_product(out, dinner, &m->inner, NULL, SF_LINEAR, add, count);
}

/* From the gradient of a layer's output to that of its context, for a block of rows. */
static void backward_block(sf_bert_step *s, size_t b)
{
    const sf_bert_layout *layout = s->layout;
    const sf_bert_layer *l = &layout->layers[s->layer];
    const sf_bert_matrices *m = &s->back[sf_bert_set(layout, s->layer) - (layout->shape.form.shared ? 0 : s->first)];
    const float *p = s->parameters;
    const size_t row = b * BLOCK, count = s->rows - row < BLOCK ? s->rows - row : BLOCK, H = layout->shape.hidden;
    const sf_bert_rows r = sf_step_shifted(sf_step_rows(s, s->layer), row);
    const sf_view d = sf_step_shift(s->d, row), douter = sf_step_shift(s->douter, row),
                  dattention = sf_step_shift(s->dattention, row), through = sf_step_shift(s->through, row);
    const sf_step_sums g = sums_of(s, b);
    memset(s->partial + b * s->partial_size, 0, s->partial_size * sizeof *s->partial);
    if (layout->shape.form.prenorm) {
        const norm end = {p + layout->end_weight, g.end_weight, g.end_bias, r.sum2},
                   second = {p + l->norm2_weight, g.norm2_weight, g.norm2_bias, r.sum1};
        norm_back(d, douter, g.outer_bias, s->layer + 1 == layout->shape.layers ? &end : NULL, s->net, count);
        narrow_back(s, row, count, m, &r, g.inner_bias, through, 0);
        norm_back(through, (sf_view){0}, NULL, &second, s->net, count);
        add_to(d, through, count, H, s->net->isa);
        norm_back(d, dattention, g.attention_bias, NULL, s->net, count);
    } else {
        const norm first = {p + l->norm1_weight, g.norm1_weight, g.norm1_bias, r.sum1},
                   second = {p + l->norm2_weight, g.norm2_weight, g.norm2_bias, r.sum2};
        norm_back(d, douter, g.outer_bias, &second, s->net, count);
        narrow_back(s, row, count, m, &r, g.inner_bias, d, 1);
        norm_back(d, dattention, g.attention_bias, &first, s->net, count);
    }
    sf_product(sf_step_shift(s->dcontext, row), dattention, &m->attention, NULL, SF_LINEAR, 0, count);
}

static void backward_blocks(void *context, size_t begin, size_t end, int index)
{
    (void)index;
    for (size_t b = begin; b < end; b++) backward_block(context, b);
}

/* Attention text by text; or, where the gradient of what all texts share is summed too, head by head. */
static void backward_texts(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    const sf_bert_shape *shape = &s->layout->shape;
    const float *turns = s->layout->layers[s->layer].turns;
    for (size_t t = begin; t < end; t++) {
        const size_t row = s->batch->offsets[t], T = s->batch->offsets[t + 1] - row;
        for (size_t h = 0; h < shape->heads; h++) sf_step_attend_back(s, t, h, index);
        if (turns)
            sf_turn_rows(sf_step_shift(s->dqkv, row), turns, 1, T, 2 * shape->heads, shape->hidden / shape->heads,
                         s->net->isa);
    }
}

static void backward_heads(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    for (size_t h = begin; h < end; h++)
        for (size_t t = 0; t < s->batch->count; t++) sf_step_attend_back(s, t, h, index);
}

/* To the gradient of the layer's input. */
static void backward_inputs(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    const sf_bert_layout *layout = s->layout;
    const sf_bert_layer *l = &layout->layers[s->layer];
    const sf_bert_matrices *m = &s->back[sf_bert_set(layout, s->layer) - (layout->shape.form.shared ? 0 : s->first)];
    const size_t H = layout->shape.hidden;
    const int normed = layout->shape.form.prenorm && s->layer > 0;
    (void)index;
    for (size_t b = begin; b < end; b++) {
        size_t row = b * BLOCK, count = s->rows - row < BLOCK ? s->rows - row : BLOCK;
        const sf_view d = sf_step_shift(s->d, row), dqkv = sf_step_shift(s->dqkv, row),
                      through = sf_step_shift(s->through, row);
        const sf_step_sums g = sums_of(s, b);
        add_rows(g.qkv_bias, dqkv, count, 3 * H, s->net->isa);
        if (normed) {
            const norm first = {s->parameters + l->norm1_weight, g.norm1_weight, g.norm1_bias,
                                sf_step_shift(sf_step_rows(s, s->layer - 1)->sum2, row)};
            sf_product(through, dqkv, &m->qkv, NULL, SF_LINEAR, 0, count);
            norm_back(through, (sf_view){0}, NULL, &first, s->net, count);
            add_to(d, through, count, H, s->net->isa);
        } else if (s->layer > s->first || s->embeddings) {
            sf_product(d, dqkv, &m->qkv, NULL, SF_LINEAR, 1, count);
        }
    }
}

/* Whether a layer adds to what another that shares its parameters left. */
static int again(const sf_bert_step *s)
{
    return s->layout->shape.form.shared && s->layer + 1 < s->layout->shape.layers;
}

/* Adds up what the blocks have: vectors of a layer. */
static void collect(sf_bert_step *s)
{
    const sf_bert_layout *layout = s->layout;
    const sf_bert_layer *l = &layout->layers[s->layer];
    const int last = layout->shape.form.prenorm && s->layer + 1 == layout->shape.layers;
    size_t H = layout->shape.hidden, F = layout->shape.inner, blocks = (s->rows + BLOCK - 1) / BLOCK;
    sf_step_sums first = sums_of(s, 0);
    const struct {
        size_t offset, count;
        float *from;
    } vectors[] = {
        {l->norm2_weight, H, first.norm2_weight},
        {l->norm2_bias, H, first.norm2_bias},
        {l->outer_bias, H, first.outer_bias},
        {l->norm1_weight, H, first.norm1_weight},
        {l->norm1_bias, H, first.norm1_bias},
        {l->attention_bias, H, first.attention_bias},
        {l->inner_bias, layout->shape.form.gated ? 2 * F : F, first.inner_bias},
        {l->qkv_bias, 3 * H, first.qkv_bias},
        {last ? layout->end_weight : SIZE_MAX, H, first.end_weight},
        {last ? layout->end_bias : SIZE_MAX, H, first.end_bias},
    };
    for (size_t v = 0; v < sizeof vectors / sizeof vectors[0]; v++) {
        if (vectors[v].offset == SIZE_MAX) continue;
        float *g = s->gradient + vectors[v].offset;
        if (!again(s)) memset(g, 0, vectors[v].count * sizeof *g);
        for (size_t b = 0; b < blocks; b++)
            sf_add(g, vectors[v].from + b * s->partial_size, vectors[v].count, s->net->isa);
    }
}

/* ------------------------------------------------ weights: dout^T * inp */

static void prepare_weights(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    (void)index;
    for (size_t b = begin; b < end; b++)
        for (sf_step_weight *w = s->weights; w < s->weights + MATRICES; w++) {
            size_t row = b * BLOCK, count = s->rows - row < BLOCK ? s->rows - row : BLOCK;
            sf_transpose(sf_view_at(w->turned, 0, row), sf_step_shift(w->dout, row), count, w->outputs, s->net->isa);
            (void)sf_packed_shape(&w->packed[b], count, w->inputs, s->options.type,
                                  s->net->isa); /* was made large enough */
            sf_pack(&w->packed[b], sf_step_shift(w->inp, row), 0, 0, sf_packed_panels(&w->packed[b]));
        }
}

static size_t strips(const sf_step_weight *w) { return (w->outputs + w->strip - 1) / w->strip; }

static void multiply_weights(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    size_t blocks = (s->rows + BLOCK - 1) / BLOCK;
    (void)index;
    for (size_t i = begin; i < end; i++) {
        size_t strip = i;
        sf_step_weight *w = s->weights;
        while (strip >= strips(w)) strip -= strips(w++);
        size_t row = strip * w->strip, count = w->outputs - row < w->strip ? w->outputs - row : w->strip;
        sf_view out = {s->gradient + w->weight + row * w->inputs, w->inputs, SF_F32};
        for (size_t b = 0; b < blocks; b++)
            sf_product(out, sf_view_at(w->turned, row, b * BLOCK), &w->packed[b], NULL, SF_LINEAR, b > 0 || again(s),
                       count);
    }
}

static void weight_gradients(sf_bert_step *s)
{
    const sf_bert_layer *l = &s->layout->layers[s->layer];
    const sf_bert_rows *r = sf_step_rows(s, s->layer);
    const sf_view douts[MATRICES] = {s->douter, s->dinner, s->dattention, s->dqkv},
                  inputs[MATRICES] = {r->inner, r->middle, r->context, r->input};
    const size_t offsets[MATRICES] = {l->outer_weight, l->inner_weight, l->attention_weight, l->qkv_weight};
    size_t products = 0;
    for (int i = 0; i < MATRICES; i++) {
        sf_step_weight *w = &s->weights[i];
        w->dout = douts[i];
        w->inp = inputs[i];
        w->weight = offsets[i];
        products += strips(w);
    }
    sf_parallel(s->threads, (s->rows + BLOCK - 1) / BLOCK, 1, prepare_weights, s);
    sf_parallel(s->threads, products, 1, multiply_weights, s);
}

void sf_step_backward(sf_bert_step *s)
{
    const sf_bert_shape *shape = &s->layout->shape;
    const size_t blocks = (s->rows + BLOCK - 1) / BLOCK;
    const int relative = shape->form.relative != SF_RELATIVE_NONE, parts = shape->form.relative == SF_RELATIVE_PARTS;
    if (s->embeddings)
        memset(s->gradient, 0, s->layout->layers[0].qkv_weight * sizeof *s->gradient); /* they come first */
    for (size_t layer = shape->layers; layer-- > s->first;) {
        s->layer = layer;
        if (parts) sf_step_places_begin(s);
        sf_parallel(s->threads, blocks, 1, backward_blocks, s);
        if (relative)
            sf_parallel(s->threads, shape->heads, 1, backward_heads, s);
        else
            sf_parallel(s->threads, s->batch->count, 1, backward_texts, s);
        sf_parallel(s->threads, blocks, 1, backward_inputs, s);
        collect(s);
        weight_gradients(s);
        if (parts) sf_step_places_layer(s);
    }
    if (s->embeddings) sf_step_embeddings(s);
}
