/* The `bert` classifier on devices: as they are given it, and how its texts get there.
 *
 * Every device has SLOTS slots: while one computes, the texts of the next are copied. A call is made by the thread
 * whose texts come first (base/feeder.h), on a slot that is free: there are as many slots as calls at once. */
#include "model/bert.h"

#include "base/feeder.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

static sf_encoder_pair affine(const float *parameters, size_t weight, size_t bias)
{
    return (sf_encoder_pair){parameters + weight, parameters + bias};
}

static sf_encoder_activation activation_of(sf_activation activation)
{
    return activation == SF_RELU        ? SF_ENCODER_RELU
           : activation == SF_GELU_TANH ? SF_ENCODER_GELU_TANH
                                        : SF_ENCODER_GELU;
}

int sf_bert_encoder(sf_encoder *out, const sf_bert_layout *l, const float *p)
{
    const sf_bert_shape *shape = &l->shape;
    sf_encoder_layer *layers = sf_alloc(shape->layers, sizeof *layers);
    if (!layers) return -1;
    for (size_t i = 0; i < shape->layers; i++) {
        const sf_bert_layer *o = &l->layers[i];
        layers[i] = (sf_encoder_layer){.qkv = affine(p, o->qkv_weight, o->qkv_bias),
                                       .attention = affine(p, o->attention_weight, o->attention_bias),
                                       .norm1 = affine(p, o->norm1_weight, o->norm1_bias),
                                       .inner = affine(p, o->inner_weight, o->inner_bias),
                                       .outer = affine(p, o->outer_weight, o->outer_bias),
                                       .norm2 = affine(p, o->norm2_weight, o->norm2_bias)};
    }
    *out = (sf_encoder){.vocabulary = shape->vocabulary,
                        .positions = shape->positions,
                        .layers = shape->layers,
                        .hidden = shape->hidden,
                        .heads = shape->heads,
                        .inner = shape->inner,
                        .classes = shape->classes,
                        .tokens = shape->tokens,
                        .epsilon = shape->epsilon,
                        .activation = activation_of(shape->activation),
                        .words = p + l->words,
                        .places = p + l->positions,
                        .type = l->types == SIZE_MAX ? NULL : p + l->types,
                        .norm = affine(p, l->norm_weight, l->norm_bias),
                        .layer = layers,
                        .mean = shape->pool == SF_POOL_MEAN,
                        .pooler_activation = shape->pooler_relu ? SF_ENCODER_RELU : SF_ENCODER_TANH,
                        .classifier = affine(p, l->classifier_weight, l->classifier_bias)};
    if (shape->pool == SF_POOL_POOLER) out->pooler = affine(p, l->pooler_weight, l->pooler_bias);
    return 0;
}

/* -------------------------------------------------------------------- devices */

enum {
    SLOTS = 2,
    MOST_ROWS = 1 << 16,    /* pieces of a call */
    ROWS_OF_TEXT = 1 << 11, /* that one text is counted for: a few draws of it */
    MOST_DEVICES = 16,
    MOST_IN_FLIGHT = 256
};

struct sf_bert_device {
    const sf_device_table *table;
    int count; /* of devices */
    sf_device_net *nets[MOST_DEVICES];
    size_t rows, classes; /* of a call, at most */
    char arithmetic[sizeof((sf_device_info *)0)->arithmetic];
    sf_feeder feeder;
    pthread_mutex_t lock;
    int busy[SLOTS * MOST_DEVICES]; /* slots */
};

typedef struct texts_asked {
    sf_asking asking;
    const sf_bert_batch *batch;
    float *logits;
} texts_asked;

/* One that nobody uses: first those of idle devices. */
static int take_slot(sf_bert_device *d)
{
    int slot = 0;
    pthread_mutex_lock(&d->lock);
    while (d->busy[slot]) slot++;
    d->busy[slot] = 1;
    pthread_mutex_unlock(&d->lock);
    return slot;
}

static void give_slot(sf_bert_device *d, int slot)
{
    pthread_mutex_lock(&d->lock);
    d->busy[slot] = 0;
    pthread_mutex_unlock(&d->lock);
}

static safer_status call_device(sf_bert_device *d, float *logits, const sf_bert_batch *batch, safer_error *error)
{
    const int slot = take_slot(d);
    const safer_status status = d->table->answer(logits, d->nets[slot % d->count], slot / d->count, batch->ids,
                                                 batch->offsets, batch->count, error);
    give_slot(d, slot);
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
        while (last < batch->count && batch->offsets[last + 1] - batch->offsets[first] <= d->rows) last++;
        const sf_bert_batch part = {batch->ids, batch->offsets + first, last - first};
        texts_asked own = {{.count = batch->offsets[last] - batch->offsets[first], .error = error},
                           &part,
                           logits + first * d->classes};
        status = sf_feeder_ask(&d->feeder, &own.asking);
        first = last;
    }
    return status;
}

const char *sf_bert_device_arithmetic(const sf_bert_device *d) { return d->arithmetic; }

int sf_bert_device_concurrency(const sf_bert_device *d)
{
    const size_t texts = 2 * (size_t)d->count * SLOTS * (d->rows / ROWS_OF_TEXT);
    return texts < MOST_IN_FLIGHT ? (int)texts : MOST_IN_FLIGHT;
}

void sf_bert_device_free(sf_bert_device *d)
{
    if (!d) return;
    for (int i = 0; i < d->count; i++)
        if (d->nets[i]) d->table->net_free(d->nets[i]);
    sf_feeder_end(&d->feeder);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static safer_status make_nets(sf_bert_device *d, int first, const sf_encoder *encoder, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (int i = 0; i < d->count && status == SAFER_OK; i++) {
        sf_device_info info;
        size_t rows = MOST_ROWS;
        SF_TRY(d->table->describe(&info, first + i, error));
        if (i == 0) memcpy(d->arithmetic, info.arithmetic, sizeof info.arithmetic);
        if (strcmp(d->arithmetic, info.arithmetic) != 0) {
            status = sf_fail(
                error, SAFER_INVALID,
                "device: cuda:%d computes in \"%s\" and cuda:%d in \"%s\", whose bits may differ: choose one", first,
                d->arithmetic, first + i, info.arithmetic);
            goto done;
        }
        status = d->table->net_new(&d->nets[i], first + i, encoder, SLOTS, &rows, error);
        if (status == SAFER_MEMORY)
            sf_fail(error, status, "cuda:%d has not enough free memory for this model: %.1f of %.1f GB are free",
                    first + i, (double)info.free_memory * 1e-9, (double)info.memory * 1e-9);
        if (status != SAFER_OK) goto done;
        if (rows < d->rows) d->rows = rows;
    }
done:
    return status;
}

safer_status sf_bert_device_new(sf_bert_device **out, const sf_device_choice *choice, const sf_bert_layout *layout,
                                const float *parameters, safer_error *error)
{
    safer_status status;
    sf_encoder encoder = {0};
    sf_bert_device *d = sf_calloc(1, sizeof *d);
    if (!d) return sf_fail_memory(error);
    d->table = choice->table;
    d->count = choice->count < MOST_DEVICES ? choice->count : MOST_DEVICES;
    d->rows = MOST_ROWS;
    d->classes = layout->shape.classes;
    pthread_mutex_init(&d->lock, NULL);
    sf_feeder_start(&d->feeder, ask_together, d, 1, SLOTS * d->count);
    if (sf_bert_encoder(&encoder, layout, parameters)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(make_nets(d, choice->first, &encoder, error));
    d->feeder.most = d->rows;
    *out = d;
    d = NULL;
done:
    free((void *)encoder.layer);
    sf_bert_device_free(d);
    return status;
}
