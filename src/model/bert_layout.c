/* Where each parameter of a `bert` model lies, and what follows from its settings alone: the rows of distances, the
 * angles of positions. */
#include "base/elementary.h"
#include "base/memory.h"
#include "model/bert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- parameters */

/* The next tensor, of rows x columns (columns 0: a vector); returns its offset. */
static size_t place(sf_bert_layout *l, size_t rows, size_t columns, const char *name)
{
    sf_bert_tensor *t = &l->tensors[l->tensor_count++];
    *t = (sf_bert_tensor){
        .rank = columns ? 2 : 1, .shape = {rows, columns}, .count = rows * (columns ? columns : 1), .offset = l->size};
    snprintf(t->name, sizeof t->name, "%s", name);
    l->size += t->count;
    return t->offset;
}

static size_t place_in(sf_bert_layout *l, size_t layer, size_t rows, size_t columns, const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "encoder.layer.%zu.%s", layer, name);
    return place(l, rows, columns, full);
}

/* A bias, or SIZE_MAX where there is none. */
static size_t place_bias(sf_bert_layout *l, size_t layer, size_t rows, const char *name, int plain)
{
    return plain ? SIZE_MAX : place_in(l, layer, rows, 0, name);
}

static void place_attention(sf_bert_layout *l, sf_bert_layer *layer, size_t i)
{
    const sf_encoder_form *f = &l->shape.form;
    const size_t H = l->shape.hidden;
    if (f->prenorm) { /* one matrix, as such encoders have it */
        layer->qkv_weight = place_in(l, i, 3 * H, H, "attention.self.qkv.weight");
        layer->qkv_bias = place_bias(l, i, 3 * H, "attention.self.qkv.bias", f->attention_plain);
    } else {
        layer->qkv_weight = place_in(l, i, H, H, "attention.self.query.weight");
        place_in(l, i, H, H, "attention.self.key.weight");
        place_in(l, i, H, H, "attention.self.value.weight");
        layer->qkv_bias = place_bias(l, i, H, "attention.self.query.bias", f->attention_plain);
        (void)place_bias(l, i, H, "attention.self.key.bias", f->attention_plain);
        (void)place_bias(l, i, H, "attention.self.value.bias", f->attention_plain);
    }
    if (f->relative == SF_RELATIVE_PARTS && !f->places_shared && f->place_keys) {
        layer->place_key_weight = place_in(l, i, H, H, "attention.self.place_key.weight");
        layer->place_key_bias = place_in(l, i, H, 0, "attention.self.place_key.bias");
    }
    if (f->relative == SF_RELATIVE_PARTS && !f->places_shared && f->place_queries) {
        layer->place_query_weight = place_in(l, i, H, H, "attention.self.place_query.weight");
        layer->place_query_bias = place_in(l, i, H, 0, "attention.self.place_query.bias");
    }
    layer->attention_weight = place_in(l, i, H, H, "attention.output.dense.weight");
    layer->attention_bias = place_bias(l, i, H, "attention.output.dense.bias", f->attention_plain);
}

static void place_layer(sf_bert_layout *l, size_t i)
{
    const sf_encoder_form *f = &l->shape.form;
    const size_t H = l->shape.hidden, F = l->shape.inner, G = f->gated ? 2 * F : F;
    sf_bert_layer *layer = &l->layers[i];
    memset(layer, 0xff, sizeof *layer); /* SIZE_MAX: not there */
    place_attention(l, layer, i);
    if (!f->prenorm || i > 0) {
        layer->norm1_weight = place_in(l, i, H, 0, "attention.output.LayerNorm.weight");
        layer->norm1_bias = place_bias(l, i, H, "attention.output.LayerNorm.bias", f->norm_plain);
    }
    layer->inner_weight = place_in(l, i, G, H, "intermediate.dense.weight");
    layer->inner_bias = place_bias(l, i, G, "intermediate.dense.bias", f->inner_plain);
    layer->outer_weight = place_in(l, i, H, F, "output.dense.weight");
    layer->outer_bias = place_bias(l, i, H, "output.dense.bias", f->inner_plain);
    layer->norm2_weight = place_in(l, i, H, 0, "output.LayerNorm.weight");
    layer->norm2_bias = place_bias(l, i, H, "output.LayerNorm.bias", f->norm_plain);
    if (f->relative == SF_RELATIVE_PARTS && f->places_shared) { /* rows of qkv */
        layer->place_query_weight = layer->qkv_weight, layer->place_query_bias = layer->qkv_bias;
        layer->place_key_weight = layer->qkv_weight + H * H, layer->place_key_bias = layer->qkv_bias + H;
    }
}

static void place_embeddings(sf_bert_layout *l)
{
    const sf_bert_shape *s = &l->shape;
    const sf_encoder_form *f = &s->form;
    const size_t E = sf_bert_width(s), normed = f->projected_first ? s->hidden : E;
    l->words = place(l, s->vocabulary, E, "embeddings.word_embeddings.weight");
    if (!f->placeless) l->positions = place(l, s->positions, E, "embeddings.position_embeddings.weight");
    if (s->types) l->types = place(l, s->types, E, "embeddings.token_type_embeddings.weight");
    l->norm_weight = place(l, normed, 0, "embeddings.LayerNorm.weight");
    if (!f->norm_plain) l->norm_bias = place(l, normed, 0, "embeddings.LayerNorm.bias");
    if (f->width) {
        l->projection_weight = place(l, s->hidden, E, "embeddings.projection.weight");
        if (!f->projected_first) l->projection_bias = place(l, s->hidden, 0, "embeddings.projection.bias");
    }
    if (f->relative == SF_RELATIVE_BIAS)
        l->relative = place(l, f->buckets, s->heads, "encoder.relative_attention_bias.weight");
    if (f->relative == SF_RELATIVE_PARTS)
        l->relative = place(l, sf_bert_relative_rows(s), s->hidden, "encoder.rel_embeddings.weight");
    if (f->relative == SF_RELATIVE_PARTS && f->places_normed) {
        l->relative_norm_weight = place(l, s->hidden, 0, "encoder.LayerNorm.weight");
        l->relative_norm_bias = place(l, s->hidden, 0, "encoder.LayerNorm.bias");
    }
}

static void place_end(sf_bert_layout *l)
{
    const sf_bert_shape *s = &l->shape;
    const sf_encoder_form *f = &s->form;
    const size_t H = s->hidden;
    if (f->prenorm) {
        l->end_weight = place(l, H, 0, "encoder.final_norm.weight");
        if (!f->norm_plain) l->end_bias = place(l, H, 0, "encoder.final_norm.bias");
    }
    if (s->pool == SF_POOL_POOLER) {
        l->pooler_weight = place(l, H, H, "pooler.dense.weight");
        if (!f->dense_plain) l->pooler_bias = place(l, H, 0, "pooler.dense.bias");
        if (f->dense_norm) l->pooler_norm_weight = place(l, H, 0, "pooler.norm.weight");
        if (f->dense_norm && !f->norm_plain) l->pooler_norm_bias = place(l, H, 0, "pooler.norm.bias");
    }
    if (s->classes) {
        l->classifier_weight = place(l, s->classes, H, "classifier.weight");
        l->classifier_bias = place(l, s->classes, 0, "classifier.bias");
    }
}

/* ------------------------------------------------------------------ distances */

/* MPNet's 32 buckets: 16 for keys before the query and as many for those after it; 8 of each for distances below 8,
 * the others two for every doubling. */
static int32_t bias_bucket(ptrdiff_t distance)
{
    const int32_t side = distance > 0 ? 16 : 0;
    size_t n = (size_t)(distance < 0 ? -distance : distance), squared;
    int32_t bucket = 8;
    if (n < 8) return side + (int32_t)n;
    if (n > 128) n = 128;
    for (squared = n * n / 64; squared >= 2 && bucket < 15; squared /= 2) bucket++;
    return side + bucket;
}

/* DeBERTa's: each of the near distances has its own, the far ones share them by their logarithm, in F32 as
 * the reference rounds it. `distance` is query - key. */
static int32_t part_bucket(const sf_encoder_form *f, ptrdiff_t distance)
{
    const ptrdiff_t middle = (ptrdiff_t)f->buckets / 2, n = distance < 0 ? -distance : distance;
    const ptrdiff_t rows = (ptrdiff_t)(f->buckets ? f->buckets : f->span);
    ptrdiff_t bucket = distance;
    if (f->buckets && n > middle) {
        const float near = (float)n / (float)middle, far = (float)((double)(f->span - 1) / (double)middle);
        const float part = (float)sf_log((double)near) / (float)sf_log((double)far) * (float)(middle - 1);
        bucket = (ptrdiff_t)ceilf(part) + middle;
        if (distance < 0) bucket = -bucket;
    }
    bucket += rows;
    return (int32_t)(bucket < 0 ? 0 : bucket >= 2 * rows ? 2 * rows - 1 : bucket);
}

static int make_buckets(sf_bert_layout *l)
{
    const ptrdiff_t T = (ptrdiff_t)l->shape.tokens;
    if (l->shape.form.relative == SF_RELATIVE_NONE) return 0;
    l->buckets = sf_alloc(2 * l->shape.tokens - 1, sizeof *l->buckets);
    for (ptrdiff_t i = 1 - T; l->buckets && i < T; i++)
        l->buckets[i + T - 1] = l->shape.form.relative == SF_RELATIVE_BIAS ? bias_bucket(i)
                                                                           : part_bucket(&l->shape.form, -i);
    return l->buckets ? 0 : -1;
}

/* --------------------------------------------------------------------- angles */

/* In F32 where the reference has it: the rates of the angles, and the angles. */
static float *turns_of(const sf_bert_shape *s, double theta)
{
    const size_t d = s->hidden / s->heads, half = d / 2;
    float *turns = sf_alloc(s->tokens * d, sizeof *turns);
    for (size_t k = 0; turns && k < half; k++) {
        const double power = (double)((float)(2 * k) / (float)d);
        const float rate = 1.0f / (float)sf_exp(sf_log(theta) * power);
        for (size_t i = 0; i < s->tokens; i++) {
            double sine, cosine;
            sf_sin_cos(&sine, &cosine, (double)((float)i * rate));
            turns[i * d + k] = (float)cosine;
            turns[i * d + half + k] = (float)sine;
        }
    }
    return turns;
}

/* --------------------------------------------------------------------- layout */

size_t sf_bert_width(const sf_bert_shape *s) { return s->form.width ? s->form.width : s->hidden; }

size_t sf_bert_most_tokens(const sf_bert_shape *s)
{
    return s->form.padded && s->positions > s->form.pad ? s->positions - s->form.pad - 1 : s->positions;
}

size_t sf_bert_relative_rows(const sf_bert_shape *s)
{
    const sf_encoder_form *f = &s->form;
    if (f->relative == SF_RELATIVE_BIAS) return f->buckets;
    return f->relative == SF_RELATIVE_PARTS ? 2 * (f->buckets ? f->buckets : f->span) : 0;
}

float sf_bert_scale(const sf_bert_shape *s)
{
    const size_t parts = 1 + (size_t)(s->form.place_keys != 0) + (size_t)(s->form.place_queries != 0);
    return 1.0f / sqrtf((float)(s->hidden / s->heads * parts));
}

int sf_bert_layout_make(sf_bert_layout *out, const sf_bert_shape *shape)
{
    const sf_encoder_form *f = &shape->form;
    sf_bert_layout l;
    memset(&l, 0xff, sizeof l); /* SIZE_MAX: not there */
    l.shape = *shape;
    l.size = l.tensor_count = 0;
    l.buckets = NULL;
    l.turns[0] = l.turns[1] = NULL;
    l.layers = sf_calloc(shape->layers, sizeof *l.layers);
    l.tensors = sf_calloc(20 + 20 * shape->layers, sizeof *l.tensors);
    if (f->theta > 0) l.turns[0] = turns_of(shape, f->theta);
    if (f->local_theta > 0) l.turns[1] = turns_of(shape, f->local_theta);
    if (!l.layers || !l.tensors || make_buckets(&l) || (f->theta > 0 && !l.turns[0]) ||
        (f->local_theta > 0 && !l.turns[1])) {
        sf_bert_layout_free(&l);
        return -1;
    }
    place_embeddings(&l);
    for (size_t i = 0; i < shape->layers; i++) {
        if (f->shared && i)
            l.layers[i] = l.layers[0];
        else
            place_layer(&l, i);
        l.layers[i].turns = l.turns[f->local[i] != 0];
        l.layers[i].window = f->local[i] ? f->window : SIZE_MAX;
    }
    place_end(&l);
    *out = l;
    return 0;
}

void sf_bert_layout_free(sf_bert_layout *layout)
{
    free(layout->layers);
    free(layout->tensors);
    free(layout->buckets);
    free(layout->turns[0]);
    free(layout->turns[1]);
    *layout = (sf_bert_layout){0};
}
