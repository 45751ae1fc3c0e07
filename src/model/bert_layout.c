/* Where each parameter of a `bert` model lies. */
#include "base/memory.h"
#include "model/bert.h"

#include <stdio.h>

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

static void place_layer(sf_bert_layout *l, size_t i)
{
    size_t H = l->shape.hidden, F = l->shape.inner;
    sf_bert_layer *layer = &l->layers[i];
    layer->qkv_weight = place_in(l, i, H, H, "attention.self.query.weight");
    place_in(l, i, H, H, "attention.self.key.weight");
    place_in(l, i, H, H, "attention.self.value.weight");
    layer->qkv_bias = place_in(l, i, H, 0, "attention.self.query.bias");
    place_in(l, i, H, 0, "attention.self.key.bias");
    place_in(l, i, H, 0, "attention.self.value.bias");
    layer->attention_weight = place_in(l, i, H, H, "attention.output.dense.weight");
    layer->attention_bias = place_in(l, i, H, 0, "attention.output.dense.bias");
    layer->norm1_weight = place_in(l, i, H, 0, "attention.output.LayerNorm.weight");
    layer->norm1_bias = place_in(l, i, H, 0, "attention.output.LayerNorm.bias");
    layer->inner_weight = place_in(l, i, F, H, "intermediate.dense.weight");
    layer->inner_bias = place_in(l, i, F, 0, "intermediate.dense.bias");
    layer->outer_weight = place_in(l, i, H, F, "output.dense.weight");
    layer->outer_bias = place_in(l, i, H, 0, "output.dense.bias");
    layer->norm2_weight = place_in(l, i, H, 0, "output.LayerNorm.weight");
    layer->norm2_bias = place_in(l, i, H, 0, "output.LayerNorm.bias");
}

int sf_bert_layout_make(sf_bert_layout *out, const sf_bert_shape *shape)
{
    size_t H = shape->hidden;
    sf_bert_layout l = {.shape = *shape,
                        .types = SIZE_MAX,
                        .pooler_weight = SIZE_MAX,
                        .pooler_bias = SIZE_MAX,
                        .classifier_weight = SIZE_MAX,
                        .classifier_bias = SIZE_MAX};
    l.layers = sf_calloc(shape->layers, sizeof *l.layers);
    l.tensors = sf_calloc(9 + 16 * shape->layers, sizeof *l.tensors);
    if (!l.layers || !l.tensors) {
        sf_bert_layout_free(&l);
        return -1;
    }
    l.words = place(&l, shape->vocabulary, H, "embeddings.word_embeddings.weight");
    l.positions = place(&l, shape->positions, H, "embeddings.position_embeddings.weight");
    if (shape->types) l.types = place(&l, shape->types, H, "embeddings.token_type_embeddings.weight");
    l.norm_weight = place(&l, H, 0, "embeddings.LayerNorm.weight");
    l.norm_bias = place(&l, H, 0, "embeddings.LayerNorm.bias");
    for (size_t i = 0; i < shape->layers; i++) place_layer(&l, i);
    if (shape->pool == SF_POOL_POOLER) {
        l.pooler_weight = place(&l, H, H, "pooler.dense.weight");
        l.pooler_bias = place(&l, H, 0, "pooler.dense.bias");
    }
    if (shape->classes) {
        l.classifier_weight = place(&l, shape->classes, H, "classifier.weight");
        l.classifier_bias = place(&l, shape->classes, 0, "classifier.bias");
    }
    *out = l;
    return 0;
}

void sf_bert_layout_free(sf_bert_layout *layout)
{
    free(layout->layers);
    free(layout->tensors);
    *layout = (sf_bert_layout){0};
}
