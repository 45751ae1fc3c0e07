/* Training of the `context` classifier (model/context_sum.h): `safer train --arch context`.
 *
 * The encoder stays as it is, and no substitution changes what it reads: the canonical form of every text. So it reads
 * each text once; the contexts of all words, a few numbers each, are kept, and everything else works with them.
 *
 *   1. The projection: of SAMPLE_TEXTS texts, spread evenly, SAMPLE_WORDS vectors of words each; their mean, and their
 *      first principal directions, each brought to variance 1.
 *   2. The contexts of the words of all texts and dev texts.
 *   3. Epochs, text by text (context_step.h). In the first two thirds words, `common` and biases are learned, which are
 *      the same in every context; then what words are in their contexts joins.
 *
 * After every epoch the share of dev texts whose certificate is for any number of changed words is measured, exactly,
 * by the functions that certify uses (ibp/context.c); the best epoch of all is kept. The rest is a course
 * (train/course.h). The same for any number of threads: contexts depend on nothing but their text, and learning is one
 * thread's. */
#include "train/context_step.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "model/canonical.h"
#include "model/context.h"
#include "train/course.h"
#include "train/principal.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { SAMPLE_TEXTS = 512, SAMPLE_WORDS = 32 };
#define KEPT ((size_t)4 << 30) /* bytes of contexts, at most */

typedef struct trainer {
    sf_course course; /* first */
    const safer_train_options *options;
    sf_train_split split;
    sf_textset corpus; /* tokens become items of the sets once it is read */
    sf_ibp_sets sets;
    sf_bert_checkpoint start;
    sf_bert_layout encoder; /* without a head */
    float *encoder_parameters;
    sf_bert_net *net;         /* until all contexts are known: on the CPU, */
    sf_bert_device *device;   /* or on a device */
    float *mean, *projection; /* (hidden), (size, hidden) */
    float *contexts[2];       /* (words, size): of texts, and of dev texts */
    sf_context_layout layout;
    float *parameters;
    sf_context_step *step;
} trainer;

static void trainer_free(sf_course *course)
{
    trainer *t = (trainer *)course;
    sf_train_split_free(&t->split);
    sf_textset_free(&t->corpus);
    sf_ibp_sets_free(&t->sets);
    sf_bert_net_free(t->net);
    sf_bert_device_free(t->device);
    sf_bert_checkpoint_free(&t->start);
    sf_bert_layout_free(&t->encoder);
    free(t->encoder_parameters);
    free(t->mean);
    free(t->projection);
    free(t->contexts[0]);
    free(t->contexts[1]);
    free(t->parameters);
    sf_context_step_free(t->step);
}

/* -------------------------------------------------------------------- encoding */

/* Of one thread. */
typedef struct worker {
    sf_context_reader reader;
    sf_slots slots;
    sf_context_text texts[SF_CONTEXT_GROUP];
} worker;

/* Texts that are read by the encoder; what becomes of their vectors is one of two things. */
typedef struct encoding {
    const trainer *t;
    sf_context_encoder encoder; /* without a projection: the first */
    const safer_data *data;
    const size_t *rows; /* (count) */
    size_t count;
    float *sample;         /* (count, SAMPLE_WORDS, hidden), */
    size_t *taken;         /* (count): so many of them */
    float *contexts;       /* (words, size): */
    const size_t *offsets; /* (count+1): those of each text */
    worker *workers;
    sf_meter meter;
    atomic_int failed;
    safer_error error; /* of the thread that failed first */
} encoding;

/* Without a projection. */
static sf_context_encoder encoder_of(const trainer *t)
{
    return (sf_context_encoder){.piecer = t->start.piecer, .layout = &t->encoder, .net = t->net, .device = t->device};
}

static void take_sample(encoding *e, size_t text, const float *vectors, size_t count)
{
    const size_t H = e->encoder.layout->shape.hidden, taken = count < SAMPLE_WORDS ? count : SAMPLE_WORDS;
    for (size_t i = 0; i < taken; i++)
        memcpy(e->sample + (text * SAMPLE_WORDS + i) * H, vectors + i * count / taken * H, H * sizeof *vectors);
    e->taken[text] = taken;
}

static void keep_contexts(encoding *e, size_t text, const sf_context_text *read)
{
    const size_t k = e->encoder.size,
                 words = e->offsets[text + 1] - e->offsets[text]; /* at most as many as there are */
    for (size_t i = 0; i < read->count && read->first + i < words; i++)
        memcpy(e->contexts + (e->offsets[text] + read->first + i) * k, read->contexts + i * k, k * sizeof *e->contexts);
}

static safer_status encode_group(encoding *e, size_t first, size_t count, worker *w, safer_error *error)
{
    const safer_lexicon *lexicon = e->t->options->lexicon;
    const size_t H = e->encoder.layout->shape.hidden;
    sf_context_text *texts[SF_CONTEXT_GROUP];
    for (size_t i = 0; i < count; i++) {
        const safer_row row = safer_data_row(e->data, e->rows[first + i]);
        safer_status status = sf_slots_read(&w->slots, lexicon, row.text, row.text_length, error);
        if (status != SAFER_OK) return status;
        if (sf_context_text_set(texts[i] = &w->texts[i], &w->slots, lexicon)) return sf_fail_memory(error);
    }
    const safer_status status = sf_context_encode(texts, count, &e->encoder, &w->reader, error);
    if (status != SAFER_OK) return status;
    const float *vectors = w->reader.means;
    for (size_t i = 0; i < count; vectors += texts[i++]->count * H) {
        if (e->sample)
            take_sample(e, first + i, vectors, texts[i]->count);
        else
            keep_contexts(e, first + i, texts[i]);
    }
    return SAFER_OK;
}

/* Groups begin..end-1. */
static void encode_groups(void *context, size_t begin, size_t end, int number)
{
    encoding *e = context;
    for (size_t g = begin; g < end; g++) {
        const size_t first = g * SF_CONTEXT_GROUP, left = e->count - first,
                     count = left < SF_CONTEXT_GROUP ? left : SF_CONTEXT_GROUP;
        safer_error error = {0};
        if (sf_meter_cancelled(&e->meter) || atomic_load(&e->failed)) return;
        if (encode_group(e, first, count, &e->workers[number], &error) != SAFER_OK) {
            if (!atomic_exchange(&e->failed, 1)) e->error = error;
            return;
        }
        sf_meter_add(&e->meter, count, number);
    }
}

/* A thread that asks a device waits while it computes: more of them than there are cores keep it busy, with a group of
 * texts each. */
static int threads_of(const trainer *t)
{
    const int threads = sf_threads(t->options->threads),
              many = t->device ? sf_bert_device_concurrency(t->device) / 2 : 0;
    return many > threads ? many : threads;
}

static safer_status encode(encoding *e, const char *stage, safer_error *error)
{
    const trainer *t = e->t;
    const int threads = threads_of(t);
    e->workers = sf_calloc((size_t)threads, sizeof *e->workers);
    if (!e->workers) return sf_fail_memory(error);
    sf_meter_start(&e->meter, &t->options->progress, stage, e->count);
    sf_parallel(threads, (e->count + SF_CONTEXT_GROUP - 1) / SF_CONTEXT_GROUP, 1, encode_groups, e);
    safer_status status = sf_meter_finish(&e->meter, error);
    if (status == SAFER_OK && atomic_load(&e->failed)) {
        status = e->error.status;
        if (error) *error = e->error;
    }
    for (int i = 0; i < threads; i++) {
        worker *w = &e->workers[i];
        sf_context_reader_free(&w->reader);
        sf_slots_free(&w->slots);
        for (size_t k = 0; k < SF_CONTEXT_GROUP; k++) sf_context_text_free(&w->texts[k]);
    }
    free(e->workers);
    return status;
}

/* ------------------------------------------------------------------ projection */

/* The first directions, each divided by the deviation along it; a direction without any says nothing. */
static void set_projection(trainer *t, const sf_principal *p, size_t count)
{
    const size_t H = t->encoder.shape.hidden, k = t->layout.shape.size;
    for (size_t d = 0; d < H; d++) t->mean[d] = (float)p->mean[d];
    for (size_t j = 0; j < k; j++) {
        const double variance = p->values[j] / (double)count,
                     scale = variance > 1e-12 * p->values[0] / (double)count && variance > 1e-30 ? 1 / sqrt(variance)
                                                                                                 : 0;
        for (size_t d = 0; d < H; d++) t->projection[j * H + d] = (float)(scale * p->directions[j * H + d]);
    }
}

static safer_status find_projection(trainer *t, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t H = t->encoder.shape.hidden, texts = t->split.fit_count,
                 count = texts < SAMPLE_TEXTS ? texts : SAMPLE_TEXTS;
    size_t vectors = 0, *rows = sf_alloc(count, sizeof *rows);
    sf_principal principal = {0};
    encoding e = {.t = t,
                  .encoder = encoder_of(t),
                  .data = t->split.fit_data,
                  .rows = rows,
                  .count = count,
                  .sample = sf_alloc(count * SAMPLE_WORDS, H * sizeof *e.sample),
                  .taken = sf_calloc(count, sizeof *e.taken)};
    if (!rows || !e.sample || !e.taken) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < count; i++) rows[i] = t->split.fit[i * texts / count];
    SF_TRY(encode(&e, "projection", error));
    for (size_t i = 0; i < count; vectors += e.taken[i++])
        memmove(e.sample + vectors * H, e.sample + i * SAMPLE_WORDS * H, e.taken[i] * H * sizeof *e.sample);
    if (vectors == 0) {
        status = sf_fail(error, SAFER_INPUT, "no word of the training texts is read by the encoder");
        goto done;
    }
    SF_TRY(sf_principal_find(&principal, e.sample, vectors, H, vectors, t->options->threads, error));
    set_projection(t, &principal, vectors);
done:
    sf_principal_free(&principal);
    free(rows);
    free(e.sample);
    free(e.taken);
    return status;
}

static safer_status find_contexts(trainer *t, int dev, safer_error *error)
{
    encoding e = {.t = t,
                  .encoder = encoder_of(t),
                  .data = dev ? t->split.dev_data : t->split.fit_data,
                  .rows = dev ? t->split.dev : t->split.fit,
                  .count = dev ? t->split.dev_count : t->split.fit_count,
                  .contexts = t->contexts[dev],
                  .offsets = dev ? t->corpus.dev.offsets : t->corpus.fit.offsets};
    e.encoder.size = t->layout.shape.size;
    e.encoder.mean = t->mean;
    e.encoder.projection = t->projection;
    return encode(&e, dev ? "contexts of dev texts" : "contexts", error);
}

/* ----------------------------------------------------------------------- start */

/* A device that is not of this arithmetic is none that "auto" means. */
static safer_status make_encoder(trainer *t, safer_error *error)
{
    const safer_train_options *o = t->options;
    const int any = o->device && strcmp(o->device, "auto") == 0;
    if (o->device && !(any && o->course.precision != SAFER_PRECISION_BF16)) {
        const safer_status status = sf_bert_device_open(&t->device, o->device, 1, &t->encoder, t->encoder_parameters,
                                                        error);
        if (status != SAFER_OK || t->device) return status;
    }
    return sf_bert_net_new(&t->net, &t->encoder, t->encoder_parameters, sf_arithmetic_of(o->course.precision),
                           o->threads, error);
}

static safer_status take_encoder(trainer *t, safer_error *error)
{
    const safer_train_options *o = t->options;
    safer_status status = sf_bert_checkpoint_open(&t->start, o->bert.encoder, error);
    if (status != SAFER_OK) return status;
    const sf_bert_shape *shape = &t->start.layout.shape;
    if (o->bert.tokens && ((size_t)o->bert.tokens > sf_bert_most_tokens(shape) || o->bert.tokens < 3))
        return sf_fail(error, SAFER_INVALID, "`tokens` is %d; it must be from 3 to the encoder's %zu positions",
                       o->bert.tokens, sf_bert_most_tokens(shape));
    if ((size_t)o->context.size > shape->hidden)
        return sf_fail(error, SAFER_INVALID, "`context.size` is %d; the encoder's vectors have %zu numbers",
                       o->context.size, shape->hidden);
    status = sf_bert_encoder_of(
        &t->encoder, &t->encoder_parameters, &t->start, o->bert.tokens ? (size_t)o->bert.tokens : shape->tokens,
        o->bert.truncation_side ? o->bert.truncation_side == SAFER_TRUNCATION_LEFT : shape->ending, error);
    if (status != SAFER_OK) return status;
    free(t->start.parameters);
    t->start.parameters = NULL;
    return make_encoder(t, error);
}

static safer_status make_room(trainer *t, safer_error *error)
{
    const sf_texts *fit = &t->corpus.fit, *dev = &t->corpus.dev;
    const size_t H = t->encoder.shape.hidden, k = t->layout.shape.size, words = fit->offsets[fit->count],
                 dev_words = dev->offsets[dev->count];
    if (words + dev_words > KEPT / (k * sizeof(float)))
        return sf_fail(error, SAFER_INVALID,
                       "`context.size` is %zu: the contexts of %zu words would take more than 4 GiB; lower it", k,
                       words + dev_words);
    t->mean = sf_alloc(H, sizeof *t->mean);
    t->projection = sf_alloc(k * H, sizeof *t->projection);
    t->contexts[0] = sf_calloc(words * k + 1, sizeof *t->contexts[0]);
    t->contexts[1] = sf_calloc(dev_words * k + 1, sizeof *t->contexts[1]);
    t->parameters = sf_calloc(t->layout.total, sizeof *t->parameters);
    return t->mean && t->projection && t->contexts[0] && t->contexts[1] && t->parameters ? SAFER_OK
                                                                                         : sf_fail_memory(error);
}

static void plan_course(trainer *t)
{
    const safer_train_options *o = t->options;
    const double numbers[] = {o->course.rate,
                              o->course.decay,
                              o->course.dropout,
                              o->defense.kappa,
                              (double)o->course.batch,
                              (double)o->course.epochs,
                              (double)o->course.precision,
                              (double)t->layout.shape.size,
                              (double)t->layout.total,
                              (double)t->encoder.shape.tokens,
                              (double)t->encoder.shape.ending};
    sf_course *c = &t->course;
    c->other = ", or on another device or processor"; /* their projections differ */
    c->texts = t->corpus.fit.count;
    c->tokens = t->corpus.fit.offsets[c->texts];
    c->parameters = t->parameters;
    c->size = t->layout.total;
    c->model_size = t->layout.total + t->encoder.size + (t->layout.shape.size + 1) * t->encoder.shape.hidden;
    c->fingerprint = sf_course_fingerprint(numbers, sizeof numbers / sizeof numbers[0], t->projection,
                                           t->layout.shape.size * t->encoder.shape.hidden, &t->split, o);
}

static safer_status start(sf_course *course, safer_error *error)
{
    safer_status status;
    trainer *t = (trainer *)course;
    const safer_train_options *o = t->options = course->options;
    safer_train_options whole = *o; /* all words of a text that training can read */
    const sf_context_step_options options = {o->course.rate, o->course.decay, o->course.dropout, o->defense.kappa,
                                             o->seed};
    whole.cnn.max_words = 0;
    SF_TRY(sf_isa_check(error));
    SF_TRY(sf_train_split_make(&t->split, o, error));
    SF_TRY(take_encoder(t, error));
    SF_TRY(sf_textset_read(&t->corpus, &t->split, SF_KNOW_SYNONYMS, &whole, error));
    const size_t vocabulary = (size_t)t->corpus.words.count + 1;
    sf_context_layout_make(&t->layout, safer_data_label_count(o->train), vocabulary, (size_t)o->context.size);
    SF_TRY(sf_ibp_sets_make(&t->sets, &t->corpus, error));
    sf_ibp_sets_apply(&t->corpus.fit, &t->sets, vocabulary);
    sf_ibp_sets_apply(&t->corpus.dev, &t->sets, vocabulary);
    SF_TRY(make_room(t, error));
    SF_TRY(sf_context_step_new(&t->step, &t->layout, &t->sets, &options, t->corpus.fit.longest, error));
    SF_TRY(find_projection(t, error));
    SF_TRY(find_contexts(t, 0, error));
    SF_TRY(find_contexts(t, 1, error));
    sf_bert_net_free(t->net);
    sf_bert_device_free(t->device);
    t->net = NULL;
    t->device = NULL;
    plan_course(t);
done:
    return status;
}

/* ------------------------------------------------------------------------- dev */

static sf_contexts contexts_of(const trainer *t, int dev, size_t text)
{
    const sf_texts *texts = dev ? &t->corpus.dev : &t->corpus.fit;
    const size_t first = texts->offsets[text], words = texts->offsets[text + 1] - first, k = t->layout.shape.size;
    return (sf_contexts){t->contexts[dev] + first * k, 0, words, k, words};
}

typedef struct measuring {
    const trainer *t;
    sf_ibp_listed *listed; /* one per worker */
    atomic_size_t certified;
    atomic_int failed;
} measuring;

/* Whether every other class is behind, whatever is exchanged. */
static int certifies(const trainer *t, const sf_ibp_choices *text, size_t index)
{
    const sf_context_sum sum = {t->layout, t->parameters};
    const size_t label = (size_t)t->corpus.dev.labels[index];
    for (size_t c = 0; c < t->layout.shape.classes; c++) {
        int64_t least = 1;
        if (c != label) (void)sf_ibp_context_lead(&least, NULL, &sum, contexts_of(t, 1, index), text, label, c);
        if (least <= 0) return 0;
    }
    return 1;
}

static void measure_texts(void *context, size_t begin, size_t end, int number)
{
    measuring *m = context;
    const trainer *t = m->t;
    size_t certified = 0;
    for (size_t i = begin; i < end; i++) {
        sf_ibp_choices text;
        if (sf_ibp_sets_list(&text, &m->listed[number], &t->corpus.dev, i, &t->sets, t->layout.shape.vocabulary))
            atomic_store(&m->failed, 1);
        else
            certified += (size_t)certifies(t, &text, i);
    }
    atomic_fetch_add(&m->certified, certified);
}

/* The share of dev texts that the present parameters certify. */
static safer_status measure(sf_course *course, double *accuracy, safer_error *error)
{
    trainer *t = (trainer *)course;
    const int threads = sf_threads(t->options->threads);
    measuring m = {.t = t, .listed = sf_calloc((size_t)threads, sizeof *m.listed)};
    if (!m.listed) return sf_fail_memory(error);
    sf_parallel(threads, t->corpus.dev.count, 16, measure_texts, &m);
    for (int i = 0; i < threads; i++) sf_ibp_listed_free(&m.listed[i]);
    free(m.listed);
    *accuracy = (double)atomic_load(&m.certified) / (double)t->corpus.dev.count;
    return atomic_load(&m.failed) ? sf_fail_memory(error) : SAFER_OK;
}

/* ----------------------------------------------------------------------- steps */

static safer_status step(sf_course *course, const uint32_t *texts, size_t count, double rate, double *loss,
                         safer_error *error)
{
    trainer *t = (trainer *)course;
    const int epochs = t->options->course.epochs, each = course->epoch >= epochs - epochs / 3;
    (void)rate, (void)error; /* the step's own, which does not change */
    for (size_t b = 0; b < count; b++) {
        const sf_texts *fit = &t->corpus.fit;
        const sf_context_lesson lesson = {fit->tokens + fit->offsets[texts[b]], contexts_of(t, 0, texts[b]),
                                          (size_t)fit->labels[texts[b]]};
        *loss += sf_context_step_learn(t->step, t->parameters, course->variances, &lesson, each,
                                       course->steps << 16 | b);
        course->read += lesson.contexts.words;
    }
    return SAFER_OK;
}

static safer_status save(sf_course *course, const char *output, const char *labels, const char *trained_with,
                         safer_error *error)
{
    const trainer *t = (const trainer *)course;
    const sf_context_parts parts = {.layout = &t->encoder,
                                    .encoder = t->encoder_parameters,
                                    .piecer = t->start.piecer,
                                    .lexicon = t->options->lexicon,
                                    .words = &t->corpus.words,
                                    .mean = t->mean,
                                    .projection = t->projection,
                                    .sum = {t->layout, t->parameters}};
    for (size_t i = 0; i < t->layout.total; i++)
        if (!isfinite(t->parameters[i]))
            return sf_fail(error, SAFER_INVALID, "a number that was learned is not finite; lower `rate` (now %g)",
                           t->options->course.rate);
    return sf_context_save(output, &parts, labels, trained_with, error);
}

safer_status sf_context_train(const char *output, const safer_train_options *options, safer_train_report *report,
                              safer_error *error)
{
    static const sf_course_methods methods = {
        .size = sizeof(trainer), .start = start, .step = step, .measure = measure, .save = save, .free = trainer_free};
    return sf_course_train(&methods, NULL, output, options, report, error);
}
