/* The `bert` classifier on devices: as they are given it, and how its texts get there. */
#include "model/bert_names.h"

#include "base/memory.h"
#include "model/nets.h"

#include <stdio.h>
#include <string.h>

/* SIZE_MAX: not there. */
static sf_encoder_pair affine(const float *parameters, size_t weight, size_t bias)
{
    return (sf_encoder_pair){weight == SIZE_MAX ? NULL : parameters + weight,
                             bias == SIZE_MAX ? NULL : parameters + bias};
}

static sf_encoder_layer layer_of(const sf_bert_layer *o, const float *p)
{
    return (sf_encoder_layer){.qkv = affine(p, o->qkv_weight, o->qkv_bias),
                              .attention = affine(p, o->attention_weight, o->attention_bias),
                              .norm1 = affine(p, o->norm1_weight, o->norm1_bias),
                              .inner = affine(p, o->inner_weight, o->inner_bias),
                              .outer = affine(p, o->outer_weight, o->outer_bias),
                              .norm2 = affine(p, o->norm2_weight, o->norm2_bias),
                              .place_key = affine(p, o->place_key_weight, o->place_key_bias),
                              .place_query = affine(p, o->place_query_weight, o->place_query_bias),
                              .turns = o->turns,
                              .local = o->window != SIZE_MAX};
}

int sf_bert_encoder(sf_encoder *out, const sf_bert_layout *l, const float *p)
{
    const sf_bert_shape *shape = &l->shape;
    sf_encoder_layer *layers = sf_alloc(shape->layers, sizeof *layers);
    if (!layers) return -1;
    for (size_t i = 0; i < shape->layers; i++) layers[i] = layer_of(&l->layers[i], p);
    *out = (sf_encoder){.vocabulary = shape->vocabulary,
                        .positions = shape->positions,
                        .layers = shape->layers,
                        .hidden = shape->hidden,
                        .heads = shape->heads,
                        .inner = shape->inner,
                        .classes = shape->classes,
                        .tokens = shape->tokens,
                        .epsilon = shape->epsilon,
                        .activation = sf_bert_activation(shape->activation),
                        .form = shape->form,
                        .words = p + l->words,
                        .places = l->positions == SIZE_MAX ? NULL : p + l->positions,
                        .type = l->types == SIZE_MAX ? NULL : p + l->types,
                        .norm = affine(p, l->norm_weight, l->norm_bias),
                        .projection = affine(p, l->projection_weight, l->projection_bias),
                        .scale = sf_bert_scale(shape),
                        .relative = l->relative == SIZE_MAX ? NULL : p + l->relative,
                        .relative_rows = sf_bert_relative_rows(shape),
                        .relative_norm = affine(p, l->relative_norm_weight, l->relative_norm_bias),
                        .buckets = l->buckets,
                        .layer = layers,
                        .end = affine(p, l->end_weight, l->end_bias),
                        .mean = shape->pool == SF_POOL_MEAN ||
                                (shape->pool == SF_POOL_POOLER && shape->form.dense_mean),
                        .pooler = affine(p, l->pooler_weight, l->pooler_bias),
                        .pooler_activation = shape->pooler,
                        .pooler_norm = affine(p, l->pooler_norm_weight, l->pooler_norm_bias),
                        .classifier = affine(p, l->classifier_weight, l->classifier_bias)};
    return 0;
}

/* -------------------------------------------------------------------- devices */

struct sf_bert_device {
    sf_nets nets; /* first */
    size_t classes;
};

typedef struct texts_asked {
    sf_asking asking;
    const sf_bert_batch *batch;
    float *logits;
} texts_asked;

static safer_status call_device(sf_bert_device *d, float *logits, const sf_bert_batch *batch, safer_error *error)
{
    const sf_nets_slot slot = sf_nets_take(&d->nets);
    const safer_status status = d->nets.table->answer(logits, slot.net, slot.slot, batch->ids, batch->offsets,
                                                      batch->count, error);
    sf_nets_give(&d->nets, slot);
    return status;
}

/* The texts of several threads in one call. */
static safer_status ask_together(void *self, sf_asking *first, size_t rows, safer_error *error)
{
    sf_bert_device *d = self;
    texts_asked *t = (texts_asked *)first;
    if (!first->next) return call_device(d, t->logits, t->batch, error);
    size_t count = 0, at = 0;
    for (t = (texts_asked *)first; t; t = (texts_asked *)t->asking.next) count += t->batch->count;
    uint32_t *ids = sf_alloc(rows, sizeof *ids);
    size_t *offsets = sf_alloc(count + 1, sizeof *offsets);
    float *logits = sf_alloc(count * d->classes, sizeof *logits);
    safer_status status = ids && offsets && logits ? SAFER_OK : sf_fail_memory(error);
    for (t = (texts_asked *)first, rows = 0; t && status == SAFER_OK; t = (texts_asked *)t->asking.next) {
        const sf_bert_batch *b = t->batch;
        memcpy(ids + rows, b->ids + b->offsets[0], (b->offsets[b->count] - b->offsets[0]) * sizeof *ids);
        for (size_t i = 0; i < b->count; i++) offsets[at++] = rows + b->offsets[i] - b->offsets[0];
        rows += b->offsets[b->count] - b->offsets[0];
    }
    if (status == SAFER_OK) {
        offsets[count] = rows;
        status = call_device(d, logits, &(sf_bert_batch){ids, offsets, count}, error);
    }
    at = 0;
    for (t = (texts_asked *)first; t && status == SAFER_OK; t = (texts_asked *)t->asking.next) {
        memcpy(t->logits, logits + at, t->batch->count * d->classes * sizeof *logits);
        at += t->batch->count * d->classes;
    }
    free(ids);
    free(offsets);
    free(logits);
    return status;
}

safer_status sf_bert_device_answer(float *logits, sf_bert_device *d, const sf_bert_batch *batch, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (size_t first = 0; first < batch->count && status == SAFER_OK;) {
        size_t last = first + 1;
        while (last < batch->count && batch->offsets[last + 1] - batch->offsets[first] <= d->nets.most) last++;
        const sf_bert_batch part = {batch->ids, batch->offsets + first, last - first};
        texts_asked own = {{.count = batch->offsets[last] - batch->offsets[first], .error = error},
                           &part,
                           logits + first * d->classes};
        status = sf_feeder_ask(&d->nets.feeder, &own.asking);
        first = last;
    }
    return status;
}

const char *sf_bert_device_arithmetic(const sf_bert_device *d) { return d->nets.arithmetic; }
int sf_bert_device_concurrency(const sf_bert_device *d) { return sf_nets_concurrency(&d->nets); }

static safer_status net_new(void **out, const sf_device_table *table, int device, const void *encoder, size_t *rows,
                            safer_error *error)
{
    sf_device_net *net = NULL;
    const safer_status status = table->net_new(&net, device, encoder, SF_NETS_SLOTS, rows, error);
    *out = net;
    return status;
}

static void net_free(const sf_device_table *table, void *net) { table->net_free(net); }

void sf_bert_device_free(sf_bert_device *d)
{
    if (!d) return;
    sf_nets_end(&d->nets);
    free(d);
}

safer_status sf_bert_device_new(sf_bert_device **out, const sf_device_choice *choice, const sf_bert_layout *layout,
                                const float *parameters, safer_error *error)
{
    static const sf_nets_kind kind = {net_new, net_free, ask_together, .most = 1 << 16, .share = 1 << 11};
    sf_encoder encoder = {0};
    sf_bert_device *d = sf_calloc(1, sizeof *d);
    if (!d || sf_bert_encoder(&encoder, layout, parameters)) {
        free(d);
        return sf_fail_memory(error);
    }
    d->classes = layout->shape.classes;
    const safer_status status = sf_nets_start(&d->nets, &kind, choice, &encoder, error);
    if (status == SAFER_OK)
        *out = d;
    else
        sf_bert_device_free(d);
    free((void *)encoder.layer);
    return status;
}
