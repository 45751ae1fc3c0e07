/* The `bert` classifier as a model: text to pieces to answer. */
#include "model/bert.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "model/nets.h"
#include "nn/layers.h"

#include <stdio.h>
#include <string.h>

enum {
    GROUP = 8,        /* texts a forward pass: enough rows to fill the products */
    DEVICE_GROUP = 64 /* texts that a thread gathers for a device, where they meet those of others */
};

typedef struct bert {
    safer_model base;
    sf_bert_checkpoint checkpoint;
    sf_bert_net *net;         /* NULL on a device */
    sf_bert_device *device;   /* NULL on the CPU */
    sf_lexpieces_last *words; /* outside the model, which is const for all who ask it */
} bert;

/* Working memory of one thread. */
typedef struct scratch {
    sf_bert_scratch *net;
    size_t group;  /* texts that it holds */
    uint32_t *ids; /* (group * tokens) */
    size_t offsets[DEVICE_GROUP + 1];
    float *features, *logits; /* of a group */
    sf_ids encoded;
    sf_pieces_scratch pieces;
} scratch;

static void scratch_free(void *pointer)
{
    scratch *s = pointer;
    if (!s) return;
    sf_bert_scratch_free(s->net);
    sf_ids_free(&s->encoded);
    sf_pieces_scratch_free(&s->pieces);
    free(s->ids);
    free(s->features);
    free(s->logits);
    free(s);
}

static safer_status scratch_new(const safer_model *model, void **out, safer_error *error)
{
    safer_status status = SAFER_OK;
    const bert *m = (const bert *)model;
    const sf_bert_shape *shape = &m->checkpoint.layout.shape;
    scratch *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->group = m->device ? DEVICE_GROUP : GROUP;
    s->ids = sf_alloc(s->group * shape->tokens, sizeof *s->ids);
    s->features = sf_alloc_aligned(s->group * shape->hidden, sizeof *s->features);
    s->logits = sf_alloc_aligned(s->group * shape->classes, sizeof *s->logits);
    if (!s->ids || !s->features || !s->logits) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (!m->device) SF_TRY(sf_bert_scratch_new(&s->net, m->net, error));
    *out = s;
    s = NULL;
done:
    scratch_free(s);
    return status;
}

/* The texts gathered in the scratch. */
static safer_status answer(const bert *m, size_t count, int *labels, float *scores, scratch *s, safer_error *error)
{
    size_t classes = m->base.classes;
    sf_bert_batch batch = {s->ids, s->offsets, count};
    if (m->device) {
        const safer_status status = sf_bert_device_answer(s->logits, m->device, &batch, error);
        if (status != SAFER_OK) return status;
    } else {
        sf_bert_features(s->features, m->net, &batch, s->net);
        sf_bert_logits(s->logits, m->net, s->features, count);
    }
    for (size_t i = 0; i < count; i++) {
        const float *logits = s->logits + i * classes;
        labels[i] = 0;
        for (size_t c = 1; c < classes; c++)
            if (logits[c] > logits[labels[i]]) labels[i] = (int)c;
        if (scores) sf_softmax_forward(scores + i * classes, logits, classes);
    }
    return SAFER_OK;
}

/* Text `i` of a group gets its frame, [CLS] and [SEP], around the `count` pieces that lie in their place. */
static uint32_t *begin_text(const bert *m, scratch *s, size_t i)
{
    const sf_tokenizer_frame frame = sf_piecer_frame(m->checkpoint.piecer);
    uint32_t *ids = s->ids + s->offsets[i];
    for (size_t k = 0; k < frame.before_count; k++) *ids++ = frame.before[k];
    return ids;
}

static void end_text(const bert *m, scratch *s, size_t i, size_t count)
{
    const sf_tokenizer_frame frame = sf_piecer_frame(m->checkpoint.piecer);
    uint32_t *end = s->ids + s->offsets[i] + frame.before_count + count;
    for (size_t k = 0; k < frame.after_count; k++) *end++ = frame.after[k];
    s->offsets[i + 1] = (size_t)(end - s->ids);
}

static safer_status classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *pointer, safer_error *error)
{
    const bert *m = (const bert *)model;
    scratch *s = pointer;
    const sf_window window = sf_bert_window(&m->checkpoint.layout.shape, m->checkpoint.piecer);
    safer_status status = SAFER_OK;
    for (size_t first = 0; first < count && status == SAFER_OK; first += s->group) {
        size_t group = count - first < s->group ? count - first : s->group;
        for (size_t i = 0; i < group; i++) {
            if (sf_piecer_encode(&s->encoded, m->checkpoint.piecer, texts[first + i].bytes, texts[first + i].length,
                                 window, &s->pieces.piecer))
                return sf_fail_memory(error);
            uint32_t *ids = begin_text(m, s, i);
            if (s->encoded.count) memcpy(ids, s->encoded.ids, s->encoded.count * sizeof *ids);
            end_text(m, s, i, s->encoded.count);
        }
        status = answer(m, group, labels + first, scores ? scores + first * model->classes : NULL, s, error);
    }
    return status;
}

/* ------------------------------------------------------------------ fast path */

typedef struct prepared {
    sf_lexpieces *words; /* held */
    sf_pieces *pieces;   /* or, of a text that is split: */
    sf_kept *kept;
    size_t width; /* numbers of a draw */
} prepared;

static void release(void *pointer)
{
    prepared *p = pointer;
    if (!p) return;
    sf_pieces_free(p->pieces);
    sf_kept_free(p->kept);
    sf_lexpieces_free(p->words);
    free(p);
}

static safer_status prepare(const safer_model *model, const safer_lexicon *lexicon, const sf_slots *slots, void **out,
                            safer_error *error)
{
    const bert *m = (const bert *)model;
    const sf_piecer *piecer = m->checkpoint.piecer;
    const sf_window window = sf_bert_window(&m->checkpoint.layout.shape, piecer);
    prepared *p = sf_calloc(1, sizeof *p);
    if (!p) return sf_fail_memory(error);
    p->width = sf_slots_width(slots);
    p->words = sf_lexpieces_of(m->words, piecer, lexicon, sf_window_reach(window));
    safer_status status = !p->words      ? sf_fail_memory(error)
                          : slots->split ? sf_kept_new(&p->kept, piecer, lexicon, p->words, slots, window, error)
                                         : sf_pieces_new(&p->pieces, piecer, lexicon, p->words, slots, window, error);
    if (status == SAFER_OK)
        *out = p;
    else
        release(p);
    return status;
}

static safer_status sample(const safer_model *model, const void *pointer, const uint32_t *draws, size_t count,
                           int *labels, void *scratch_pointer, safer_error *error)
{
    const bert *m = (const bert *)model;
    const prepared *p = pointer;
    scratch *s = scratch_pointer;
    safer_status status = SAFER_OK;
    for (size_t first = 0; first < count && status == SAFER_OK; first += s->group) {
        size_t group = count - first < s->group ? count - first : s->group;
        for (size_t i = 0; i < group; i++) {
            const uint32_t *draw = draws + (first + i) * p->width;
            uint32_t *ids = begin_text(m, s, i);
            const size_t pieces = p->kept ? sf_kept_draw(ids, p->kept, draw, &s->pieces)
                                          : sf_pieces_draw(ids, p->pieces, draw, &s->pieces);
            if (pieces == SIZE_MAX) return sf_fail_memory(error);
            end_text(m, s, i, pieces);
        }
        status = answer(m, group, labels + first, NULL, s, error);
    }
    return status;
}

static size_t visible(const void *pointer) { return sf_pieces_visible(((const prepared *)pointer)->pieces); }

/* ---------------------------------------------------------------------- model */

static void model_free(safer_model *model)
{
    bert *m = (bert *)model;
    sf_bert_net_free(m->net);
    sf_bert_device_free(m->device);
    sf_lexpieces_last_free(m->words);
    sf_bert_checkpoint_free(&m->checkpoint);
    sf_model_clear(model);
    free(m);
}

static safer_status set_precision(safer_model *model, safer_precision precision, safer_error *error)
{
    bert *m = (bert *)model;
    const sf_arithmetic arithmetic = sf_arithmetic_of(precision);
    sf_bert_net *net = NULL;
    safer_status status = sf_bert_net_new(&net, &m->checkpoint.layout, m->checkpoint.parameters, arithmetic, 0, error);
    if (status != SAFER_OK) return status;
    sf_bert_net_free(m->net);
    sf_bert_device_free(m->device);
    m->net = net;
    m->device = NULL;
    model->arithmetic = sf_arithmetic_name(arithmetic);
    model->concurrency = model->calls = 0;
    model->group = GROUP;
    return SAFER_OK;
}

static safer_status set_device(safer_model *model, const char *name, safer_error *error)
{
    bert *m = (bert *)model;
    sf_bert_device *device = NULL;
    const safer_status status = sf_bert_device_open(&device, name, SF_NETS_DEVICES, &m->checkpoint.layout,
                                                    m->checkpoint.parameters, error);
    if (status != SAFER_OK) return status;
    if (!device) return m->device ? set_precision(model, SAFER_PRECISION_BF16, error) : SAFER_OK;
    sf_bert_net_free(m->net);
    sf_bert_device_free(m->device);
    m->net = NULL;
    m->device = device;
    model->arithmetic = sf_bert_device_arithmetic(device);
    model->concurrency = sf_bert_device_concurrency(device);
    model->calls = 1; /* a text's draws are one question */
    model->group = 0;
    return SAFER_OK;
}

static const sf_model_class bert_class = {
    .arch = "bert",
    .classify = classify,
    .prepare = prepare,
    .sample = sample,
    .release = release,
    .visible = visible,
    .deletes = 1,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .free = model_free,
    .set_precision = set_precision,
    .set_device = set_device,
};

safer_status sf_bert_open(safer_model **out, const char *path, safer_error *error)
{
    safer_status status;
    bert *m = sf_calloc(1, sizeof *m);
    if (!m) return sf_fail_memory(error);
    m->base.class = &bert_class;
    if (!(m->words = sf_lexpieces_last_new())) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_isa_check(error));
    SF_TRY(sf_bert_checkpoint_open(&m->checkpoint, path, error));
    if (m->checkpoint.layout.shape.classes < 2) {
        status = sf_fail(error, SAFER_INPUT,
                         "%s is an encoder without a classifier; train one with safer train --arch bert --encoder",
                         path);
        goto done;
    }
    m->base.labels = m->checkpoint.labels; /* taken over */
    m->base.classes = m->checkpoint.layout.shape.classes;
    m->base.trained_with = m->checkpoint.trained_with;
    m->base.hash = m->checkpoint.hash;
    m->base.sha256 = m->checkpoint.sha256;
    m->checkpoint.labels = NULL;
    m->checkpoint.trained_with = NULL;
    SF_TRY(set_precision(&m->base, SAFER_PRECISION_BF16, error));
    *out = &m->base;
    m = NULL;
done:
    if (m) model_free(&m->base);
    return status;
}
