/* The `bert` classifier on devices: as they are given it, and how its texts get there. */
#include "model/bert_names.h"

#include "base/memory.h"
#include "model/nets.h"

#include <assert.h>
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
    size_t classes, hidden;
};

/* All that are asked of one device want the same: logits, or parts of an encoder without classes. */
typedef struct texts_asked {
    sf_asking asking;
    sf_bert_batch batch;
    const sf_device_part *parts;
    size_t part_count;
    float *logits;
} texts_asked;

static safer_status call_device(sf_bert_device *d, const texts_asked *t, safer_error *error)
{
    const sf_device_table *table = d->nets.table;
    const sf_bert_batch *b = &t->batch;
    const sf_nets_slot slot = sf_nets_take(&d->nets);
    const safer_status status = d->classes
                                    ? table->answer(t->logits, slot.net, slot.slot, b->ids, b->offsets, b->count, error)
                                    : table->means(t->parts, t->part_count, slot.net, slot.slot, b->ids, b->offsets,
                                                   b->count, error);
    sf_nets_give(&d->nets, slot);
    return status;
}

/* Puts the texts of a thread behind the first `rows` pieces, `count` texts and `part_count` parts. */
static void append(uint32_t *ids, size_t *offsets, sf_device_part *parts, size_t rows, const texts_asked *t)
{
    const sf_bert_batch *b = &t->batch;
    memcpy(ids + rows, b->ids + b->offsets[0], t->asking.count * sizeof *ids);
    for (size_t i = 0; i < b->count; i++) offsets[i] = rows + b->offsets[i] - b->offsets[0];
    for (size_t i = 0; i < t->part_count; i++) {
        parts[i] = t->parts[i];
        parts[i].begin += rows;
    }
}

/* The texts of several threads in one call. */
static safer_status ask_together(void *self, sf_asking *first, size_t rows, safer_error *error)
{
    sf_bert_device *d = self;
    texts_asked *t = (texts_asked *)first, all = {0};
    if (!first->next) return call_device(d, t, error);
    size_t count = 0, parted = 0;
    for (; t; t = (texts_asked *)t->asking.next) count += t->batch.count, parted += t->part_count;
    uint32_t *ids = sf_alloc(rows, sizeof *ids);
    size_t *offsets = sf_alloc(count + 1, sizeof *offsets);
    sf_device_part *parts = sf_alloc(parted + 1, sizeof *parts);
    all.logits = sf_alloc(count * d->classes + 1, sizeof *all.logits);
    safer_status status = ids && offsets && parts && all.logits ? SAFER_OK : sf_fail_memory(error);
    rows = 0;
    for (t = (texts_asked *)first; t && status == SAFER_OK; t = (texts_asked *)t->asking.next) {
        append(ids, offsets + all.batch.count, parts + all.part_count, rows, t);
        rows += t->asking.count;
        all.batch.count += t->batch.count;
        all.part_count += t->part_count;
    }
    if (status == SAFER_OK) {
        offsets[count] = rows;
        all.batch.ids = ids;
        all.batch.offsets = offsets;
        all.parts = parts;
        status = call_device(d, &all, error);
    }
    const float *logits = all.logits;
    for (t = (texts_asked *)first; t && status == SAFER_OK && d->classes; t = (texts_asked *)t->asking.next) {
        memcpy(t->logits, logits, t->batch.count * d->classes * sizeof *logits);
        logits += t->batch.count * d->classes;
    }
    free(ids);
    free(offsets);
    free(parts);
    free(all.logits);
    return status;
}

/* As many texts from `first` on as a call takes; returns the one behind them. */
static size_t take_texts(texts_asked *out, const sf_bert_device *d, const sf_bert_batch *batch, size_t first,
                         safer_error *error)
{
    const size_t *at = batch->offsets;
    size_t last = first + 1;
    while (last < batch->count && at[last + 1] - at[first] <= d->nets.most) last++;
    *out = (texts_asked){.asking = {.count = at[last] - at[first], .error = error},
                         .batch = {batch->ids, at + first, last - first}};
    return last;
}

safer_status sf_bert_device_answer(float *logits, sf_bert_device *d, const sf_bert_batch *batch, safer_error *error)
{
    safer_status status = SAFER_OK;
    assert(d->classes);
    for (size_t first = 0, last; first < batch->count && status == SAFER_OK; first = last) {
        texts_asked own;
        last = take_texts(&own, d, batch, first, error);
        own.logits = logits + first * d->classes;
        status = sf_feeder_ask(&d->nets.feeder, &own.asking);
    }
    return status;
}

/* The parts of a text that begins at this piece of a call, without those that have none; returns how many. */
static size_t list_parts(sf_device_part *out, const sf_bert_parts *parts, size_t at, size_t hidden)
{
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const size_t begin = parts->begin[i], pieces = parts->begin[i + 1] - begin;
        float *mean = parts->means + i * hidden;
        if (pieces)
            out[count++] = (sf_device_part){at + begin, pieces, mean};
        else
            memset(mean, 0, hidden * sizeof *mean);
    }
    return count;
}

safer_status sf_bert_device_part_means(sf_bert_device *d, const sf_bert_batch *batch, const sf_bert_parts *parts,
                                       safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t *at = batch->offsets;
    size_t most = 0;
    assert(!d->classes);
    for (size_t i = 0; i < batch->count; i++) most += parts[i].count;
    sf_device_part *listed = sf_alloc(most + 1, sizeof *listed);
    if (!listed) return sf_fail_memory(error);
    for (size_t first = 0, last; first < batch->count && status == SAFER_OK; first = last) {
        texts_asked own;
        last = take_texts(&own, d, batch, first, error);
        own.parts = listed;
        for (size_t i = first; i < last; i++)
            own.part_count += list_parts(listed + own.part_count, &parts[i], at[i] - at[first], d->hidden);
        if (own.part_count) status = sf_feeder_ask(&d->nets.feeder, &own.asking);
    }
    free(listed);
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

static safer_status start(sf_bert_device **out, const sf_device_choice *choice, const sf_bert_layout *layout,
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
    d->hidden = layout->shape.hidden;
    const safer_status status = sf_nets_start(&d->nets, &kind, choice, &encoder, error);
    if (status == SAFER_OK)
        *out = d;
    else
        sf_bert_device_free(d);
    free((void *)encoder.layer);
    return status;
}

safer_status sf_bert_device_open(sf_bert_device **out, const char *name, int most, const sf_bert_layout *layout,
                                 const float *parameters, safer_error *error)
{
    sf_device_choice choice;
    safer_status status = sf_device_choose(&choice, name, error);
    *out = NULL;
    if (status != SAFER_OK || !choice.count) return status;
    if (choice.count > most) choice.count = most;
    status = start(out, &choice, layout, parameters, error);
    return status == SAFER_INPUT && strcmp(name, "auto") == 0 ? SAFER_OK : status; /* not this one */
}
