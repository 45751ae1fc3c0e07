/* The `context` classifier: answering. context.h says what it is, context_text.c how texts are read and encoded, and
 * ibp/margins.c bounds it.
 *
 * Attacks and searches ask about many forms of one text, all of which have the same canonical form: the last one and
 * its contexts are kept, and the encoder runs once for all. */
#include "model/context.h"

#include "base/memory.h"
#include "model/nets.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------ what is added up */

void sf_context_layout_make(sf_context_layout *out, size_t classes, size_t vocabulary, size_t size)
{
    const size_t outputs = classes == 2 ? 1 : classes;
    sf_context_layout l = {.shape = {vocabulary, classes, outputs, size}};
    l.words = l.bias + outputs;
    l.common = l.words + vocabulary * outputs;
    l.each = l.common + outputs * size;
    l.total = l.each + vocabulary * outputs * size;
    *out = l;
}

/* In units, cut before it is divided. What is no number, which finite parameters never give, is the least one. */
static int64_t whole(double value, double words)
{
    const double most = value < SF_CONTEXT_MOST ? value : SF_CONTEXT_MOST,
                 cut = value > -SF_CONTEXT_MOST ? most : -SF_CONTEXT_MOST;
    return (int64_t)llrint(ldexp(cut, SF_CONTEXT_BITS) / words);
}

int64_t sf_context_word(const sf_context_sum *sum, uint32_t word, sf_contexts contexts, size_t i, size_t output)
{
    const sf_context_layout *l = &sum->layout;
    const float *context = sf_context_at(contexts, i);
    const size_t k = l->shape.size, place = word * l->shape.outputs + output;
    const float *common = sum->parameters + l->common + output * k, *each = sum->parameters + l->each + place * k;
    double value = (double)sum->parameters[l->words + place];
    for (size_t j = 0; context && j < k; j++) value += ((double)common[j] + (double)each[j]) * (double)context[j];
    return whole(value, (double)contexts.words);
}

int64_t sf_context_bias(const sf_context_sum *sum, size_t output)
{
    return whole((double)sum->parameters[sum->layout.bias + output], 1);
}

int64_t sf_context_word_lead(const sf_context_sum *sum, uint32_t word, sf_contexts contexts, size_t i, size_t y,
                             size_t c)
{
    if (sum->layout.shape.outputs > 1)
        return sf_context_word(sum, word, contexts, i, y) - sf_context_word(sum, word, contexts, i, c);
    const int64_t first = sf_context_word(sum, word, contexts, i, 0);
    return y ? first : -first;
}

int64_t sf_context_bias_lead(const sf_context_sum *sum, size_t y, size_t c)
{
    if (sum->layout.shape.outputs > 1) return sf_context_bias(sum, y) - sf_context_bias(sum, c);
    return y ? sf_context_bias(sum, 0) : -sf_context_bias(sum, 0);
}

/* ------------------------------------------------------------------- answering */

/* Working memory of one thread. */
typedef struct scratch {
    const sf_context_model *model;
    sf_context_reader reader;
    sf_slots slots;
    sf_context_text texts[SF_CONTEXT_GROUP + 1]; /* the first: the last one of the call before */
    int known;                                   /* whether there is one */
    uint32_t *numbers[SF_CONTEXT_GROUP];         /* of the words of each text */
    size_t number_capacity[SF_CONTEXT_GROUP];
    int64_t *totals; /* (classes) of the last text */
} scratch;

const int64_t *sf_context_said(const void *pointer) { return ((const scratch *)pointer)->totals; }

sf_contexts sf_context_answered(const void *pointer)
{
    const scratch *s = pointer;
    return sf_contexts_of(&s->texts[0], s->model->sum.layout.shape.size);
}

const sf_context_sum *sf_context_sum_of(const safer_model *model) { return &((const sf_context_model *)model)->sum; }
const safer_lexicon *sf_context_lexicon(const safer_model *model) { return ((const sf_context_model *)model)->lexicon; }

uint32_t sf_context_number(const safer_model *model, const char *key, size_t length)
{
    return sf_words_find(&((const sf_context_model *)model)->words, key, length) + 1; /* SF_NONE + 1 is 0 */
}

static void scratch_free(void *pointer)
{
    scratch *s = pointer;
    if (!s) return;
    sf_context_reader_free(&s->reader);
    sf_slots_free(&s->slots);
    for (size_t i = 0; i <= SF_CONTEXT_GROUP; i++) sf_context_text_free(&s->texts[i]);
    for (size_t i = 0; i < SF_CONTEXT_GROUP; i++) free(s->numbers[i]);
    free(s->totals);
    free(s);
}

static safer_status scratch_new(const safer_model *model, void **out, safer_error *error)
{
    scratch *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->model = (const sf_context_model *)model;
    s->totals = sf_calloc(model->classes, sizeof *s->totals);
    if (!s->totals) {
        scratch_free(s);
        return sf_fail_memory(error);
    }
    *out = s;
    return SAFER_OK;
}

/* Text i of a group: its words by number, and its canonical form. */
static safer_status read_text(scratch *s, size_t i, sf_span text, safer_error *error)
{
    const sf_context_model *m = s->model;
    const safer_status status = sf_slots_read(&s->slots, m->lexicon, text.bytes, text.length, error);
    if (status != SAFER_OK) return status;
    if (sf_grow(&s->numbers[i], &s->number_capacity[i], s->slots.word_count + 1, sizeof **s->numbers) ||
        sf_context_text_set(&s->texts[i + 1], &s->slots, m->lexicon))
        return sf_fail_memory(error);
    for (size_t w = 0; w < s->slots.word_count; w++) {
        const sf_text_word *word = &s->slots.words[w];
        s->numbers[i][w] = sf_context_number(&m->base, s->slots.keys.bytes + word->key, word->key_length);
    }
    return SAFER_OK;
}

/* What the words of a text give every class. */
static void add_up(scratch *s, const uint32_t *numbers, const sf_context_text *text)
{
    const sf_context_sum *sum = &s->model->sum;
    const size_t outputs = sum->layout.shape.outputs;
    const sf_contexts contexts = sf_contexts_of(text, sum->layout.shape.size);
    int64_t *totals = outputs == 1 ? s->totals + 1 : s->totals;
    s->totals[0] = 0;
    for (size_t o = 0; o < outputs; o++) totals[o] = sf_context_bias(sum, o);
    for (size_t w = 0; w < text->words; w++)
        for (size_t o = 0; o < outputs; o++) totals[o] += sf_context_word(sum, numbers[w], contexts, w, o);
}

/* Up to SF_CONTEXT_GROUP texts. Those that differ from the one before are encoded, together. */
static safer_status classify_group(const sf_context_model *m, const sf_span *texts, size_t count, int *labels,
                                   float *scores, scratch *s, safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_context_encoder encoder = {m->encoder.piecer, &m->encoder.layout,       m->net,
                                        m->device,         m->sum.layout.shape.size, m->mean,
                                        m->projection};
    sf_context_text *fresh[SF_CONTEXT_GROUP];
    size_t source[SF_CONTEXT_GROUP], asked = 0, before = 0; /* before: the text with the contexts of the last one */
    const int known = s->known;
    s->known = 0; /* until all is done */
    for (size_t i = 0; i < count; i++) {
        SF_TRY(read_text(s, i, texts[i], error));
        if (!(i || known) || !sf_context_text_same(&s->texts[i + 1], &s->texts[before])) {
            fresh[asked++] = &s->texts[i + 1];
            before = i + 1;
        }
        source[i] = before;
    }
    if (asked) SF_TRY(sf_context_encode(fresh, asked, &encoder, &s->reader, error));
    for (size_t i = 0; i < count; i++) {
        add_up(s, s->numbers[i], &s->texts[source[i]]);
        labels[i] = sf_model_answer(scores ? scores + i * m->base.classes : NULL, s->totals, m->base.classes,
                                    SF_CONTEXT_BITS);
    }
    const sf_context_text last = s->texts[before];
    s->texts[before] = s->texts[0];
    s->texts[0] = last;
    s->known = 1;
done:
    return status;
}

static safer_status classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *pointer, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < count && status == SAFER_OK; i += SF_CONTEXT_GROUP) {
        const size_t group = count - i < SF_CONTEXT_GROUP ? count - i : SF_CONTEXT_GROUP;
        status = classify_group((const sf_context_model *)model, texts + i, group, labels + i,
                                scores ? scores + i * model->classes : NULL, pointer, error);
    }
    return status;
}

/* ----------------------------------------------------------------------- model */

void sf_context_model_free(sf_context_model *m)
{
    if (!m) return;
    sf_bert_net_free(m->net);
    sf_bert_device_free(m->device);
    sf_bert_checkpoint_free(&m->encoder);
    safer_lexicon_free(m->lexicon);
    sf_words_free(&m->words);
    free(m->mean);
    free(m->projection);
    free(m->parameters);
    sf_model_clear(&m->base);
    free(m);
}

static void model_free(safer_model *model) { sf_context_model_free((sf_context_model *)model); }

/* What runs the encoder from now on: one of them. */
static void take_over(sf_context_model *m, sf_bert_net *net, sf_bert_device *device)
{
    sf_bert_net_free(m->net);
    sf_bert_device_free(m->device);
    m->net = net;
    m->device = device;
    m->base.concurrency = device ? sf_bert_device_concurrency(device) : 0;
    m->base.calls = device ? 1 : 0; /* a text is one question, whatever is drawn of it */
}

static safer_status set_precision(safer_model *model, safer_precision precision, safer_error *error)
{
    sf_context_model *m = (sf_context_model *)model;
    const sf_arithmetic arithmetic = sf_arithmetic_of(precision);
    sf_bert_net *net = NULL;
    const safer_status status = sf_bert_net_new(&net, &m->encoder.layout, m->encoder.parameters, arithmetic, 0, error);
    if (status != SAFER_OK) return status;
    take_over(m, net, NULL);
    model->arithmetic = sf_arithmetic_name(arithmetic);
    return SAFER_OK;
}

static safer_status set_device(safer_model *model, const char *name, safer_error *error)
{
    sf_context_model *m = (sf_context_model *)model;
    sf_bert_device *device = NULL;
    const safer_status status = sf_bert_device_open(&device, name, SF_NETS_DEVICES, &m->encoder.layout,
                                                    m->encoder.parameters, error);
    if (status != SAFER_OK) return status;
    if (!device) return m->device ? set_precision(model, SAFER_PRECISION_BF16, error) : SAFER_OK;
    take_over(m, NULL, device);
    model->arithmetic = sf_bert_device_arithmetic(device);
    return SAFER_OK;
}

const sf_model_class sf_context_class = {
    .arch = "context",
    .classify = classify,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .free = model_free,
    .set_precision = set_precision,
    .set_device = set_device,
};
