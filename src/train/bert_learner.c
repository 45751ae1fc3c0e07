/* A `bert` that learns, on the CPU or on a device. */
#include "train/bert_learner.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/layers.h"

#include <string.h>

enum { GROUP = 8 }; /* texts of a forward pass on the CPU */

struct sf_bert_learner {
    const sf_bert_layout *layout;
    float *parameters;
    sf_bert_options options;
    size_t texts; /* of a batch, at most */

    /* On the CPU. */
    sf_bert_step *step;
    sf_bert_scratch **scratch; /* (threads) */
    float *features;           /* (threads, GROUP, hidden) */

    /* On a device. */
    const sf_device_table *table; /* NULL: on the CPU */
    sf_device_step *device;
    float *masks; /* (texts, hidden) of dropout; NULL: none */
};

void sf_bert_learner_free(sf_bert_learner *l)
{
    if (!l) return;
    if (l->device) l->table->step_free(l->device);
    for (int i = 0; l->scratch && i < sf_threads(l->options.threads); i++) sf_bert_scratch_free(l->scratch[i]);
    sf_bert_step_free(l->step);
    free(l->scratch);
    free(l->features);
    free(l->masks);
    free(l);
}

static safer_status start_cpu(sf_bert_learner *l, safer_error *error)
{
    safer_status status;
    const size_t threads = (size_t)sf_threads(l->options.threads);
    SF_TRY(sf_bert_step_new(&l->step, l->layout, l->parameters, &l->options, l->texts,
                            l->texts * l->layout->shape.tokens, error));
    l->scratch = sf_calloc(threads, sizeof *l->scratch);
    l->features = sf_alloc_aligned(threads * GROUP * l->layout->shape.hidden, sizeof *l->features);
    if (!l->scratch || !l->features) return sf_fail_memory(error);
    for (size_t i = 0; i < threads; i++) SF_TRY(sf_bert_scratch_new(&l->scratch[i], sf_bert_step_net(l->step), error));
done:
    return status;
}

static void mark_decays(uint8_t *out, const sf_bert_layout *layout)
{
    for (size_t t = 0; t < layout->tensor_count; t++)
        memset(out + layout->tensors[t].offset, layout->tensors[t].rank == 2, layout->tensors[t].count);
}

static safer_status start_device(sf_bert_learner *l, int device, safer_error *error)
{
    safer_status status;
    const sf_bert_layout *layout = l->layout;
    const size_t tokens = layout->shape.tokens;
    const sf_bert_trained trained = sf_bert_trained_of(layout, &l->options);
    sf_encoder encoder = {0};
    uint8_t *decays = sf_alloc(layout->size, 1);
    if (l->options.dropout > 0) l->masks = sf_alloc(l->texts * layout->shape.hidden, sizeof *l->masks);
    if (!decays || (l->options.dropout > 0 && !l->masks) || sf_bert_encoder(&encoder, layout, l->parameters)) {
        status = sf_fail_memory(error);
        goto done;
    }
    mark_decays(decays, layout);
    const sf_device_training training = {.encoder = &encoder,
                                         .parameters = l->parameters,
                                         .size = layout->size,
                                         .start = trained.start,
                                         .layer = trained.layer,
                                         .embeddings = trained.embeddings,
                                         .decays = decays,
                                         .texts = l->texts,
                                         .rows = l->texts * tokens,
                                         .clip = l->options.clip};
    status = l->table->step_new(&l->device, device, &training, error);
    if (status == SAFER_MEMORY)
        sf_fail(
            error, status,
            "cuda:%d has not enough free memory for a step of %zu texts of up to %zu pieces: lower `batch` or `tokens`",
            device, l->texts, tokens);
done:
    free((void *)encoder.layer);
    free(decays);
    return status;
}

safer_status sf_bert_learner_new(sf_bert_learner **out, const sf_device_choice *choice, const sf_bert_layout *layout,
                                 float *parameters, const sf_bert_options *options, size_t texts, safer_error *error)
{
    sf_bert_learner *l = sf_calloc(1, sizeof *l);
    if (!l) return sf_fail_memory(error);
    l->layout = layout;
    l->parameters = parameters;
    l->options = *options;
    l->texts = texts;
    if (choice->count) l->table = choice->table;
    const safer_status status = l->table ? start_device(l, choice->first, error) : start_cpu(l, error);
    if (status == SAFER_OK)
        *out = l;
    else
        sf_bert_learner_free(l);
    return status;
}

/* ---------------------------------------------------------------------- steps */

static safer_status step_on_device(double *loss, sf_bert_learner *l, const sf_bert_batch *batch, const int *labels,
                                   double rate, uint64_t number, safer_error *error)
{
    safer_status status;
    const size_t H = l->layout->shape.hidden;
    const sf_stream stream = sf_bert_step_dropout(&l->options);
    const sf_adam a = sf_adam_at(rate, l->options.decay, number);
    const sf_device_adam adam = {a.beta1, a.beta2, a.correct1, a.correct2, a.epsilon, a.rate, a.decay};
    double own = 0;
    for (size_t t = 0; l->masks && t < batch->count; t++)
        sf_dropout_mask(l->masks + t * H, l->options.dropout, stream, number, (uint32_t)t, H);
    SF_TRY(l->table->step_gradient(&own, NULL, l->device, batch->ids, batch->offsets, batch->count, labels, l->masks,
                                   error));
    SF_TRY(l->table->step_update(l->device, &adam, error));
    *loss += own;
done:
    return status;
}

safer_status sf_bert_learner_step(double *loss, sf_bert_learner *l, const sf_bert_batch *batch, const int *labels,
                                  sf_bert_moments moments, double rate, uint64_t number, safer_error *error)
{
    if (l->table) return step_on_device(loss, l, batch, labels, rate, number, error);
    *loss += sf_bert_step_gradient(l->step, batch, labels, number);
    sf_bert_step_update(l->step, moments.means, moments.variances, rate, number);
    return SAFER_OK;
}

/* -------------------------------------------------------------------- answers */

typedef struct answering {
    sf_bert_learner *learner;
    const sf_bert_batch *batch;
    float *logits;
    int features; /* instead of logits */
} answering;

static void answer_texts(void *context, size_t begin, size_t end, int worker)
{
    const answering *a = context;
    sf_bert_learner *l = a->learner;
    const sf_bert_net *net = sf_bert_step_net(l->step);
    float *features = l->features + (size_t)worker * GROUP * l->layout->shape.hidden;
    for (size_t first = begin; first < end; first += GROUP) {
        const size_t count = end - first < GROUP ? end - first : GROUP, from = a->batch->offsets[first];
        size_t offsets[GROUP + 1];
        for (size_t i = 0; i <= count; i++) offsets[i] = a->batch->offsets[first + i] - from;
        const sf_bert_batch part = {a->batch->ids + from, offsets, count};
        sf_bert_features(features, net, &part, l->scratch[worker]);
        float *out = a->logits + first * l->layout->shape.classes;
        if (a->features)
            memcpy(out, features, count * l->layout->shape.hidden * sizeof *out);
        else
            sf_bert_logits(out, net, features, count);
    }
}

static safer_status answer(float *logits, sf_bert_learner *l, const sf_bert_batch *batch, int features,
                           safer_error *error)
{
    answering a = {l, batch, logits, features};
    if (!l->table) sf_parallel(l->options.threads, batch->count, GROUP, answer_texts, &a);
    for (size_t first = 0; l->table && first < batch->count; first += l->texts) {
        const size_t left = batch->count - first, count = left < l->texts ? left : l->texts;
        const safer_status status = l->table->step_answer(logits + first * l->layout->shape.classes, l->device,
                                                          batch->ids, batch->offsets + first, count, error);
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

safer_status sf_bert_learner_answer(float *logits, sf_bert_learner *l, const sf_bert_batch *batch, safer_error *error)
{
    return answer(logits, l, batch, 0, error);
}

safer_status sf_bert_learner_features(float *features, sf_bert_learner *l, const sf_bert_batch *batch,
                                      safer_error *error)
{
    return answer(features, l, batch, 1, error); /* on a device: the identity's logits */
}

/* ---------------------------------------------------------------------- state */

safer_status sf_bert_learner_fetch(sf_bert_learner *l, sf_bert_moments moments, safer_error *error)
{
    return l->table ? l->table->step_read(l->parameters, moments.means, moments.variances, l->device, error) : SAFER_OK;
}

safer_status sf_bert_learner_changed(sf_bert_learner *l, sf_bert_moments moments, safer_error *error)
{
    if (l->table) return l->table->step_write(l->device, l->parameters, moments.means, moments.variances, error);
    sf_bert_step_refresh(l->step);
    return SAFER_OK;
}
