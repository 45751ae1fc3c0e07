/* The `bert` classifier: training.
 *
 * Every mini-batch sees fresh draws of its texts (the sample number is the epoch). After
 * every epoch the model is measured on one draw of each dev text, the same from epoch to
 * epoch. The rest is a course (course.h), whose rate falls, so that the number of epochs is
 * part of it. docs/train.md has the recipe.
 *
 * When no layer is trained, what the encoder makes of a draw never changes: it is computed once
 * and kept, for up to DRAWS draws of each text, and the head (head.h) learns from that for as
 * many epochs as pay. The encoder then has the identity for a classifier, so that its answers are
 * the features, on a device too; a pooler of its own is part of it. */
#define _GNU_SOURCE
#include "train/bert_learner.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "draw/drawn.h"
#include "train/course.h"
#include "train/head.h"

#include <stdatomic.h>
#include <string.h>

enum {
    PURPOSE_HEAD = 3,
    DEV_SAMPLE = 1 << 30,
    DEV_TEXTS = 256, /* measured together */
    DRAWS = 3,       /* of a text whose features are kept */
    STANDARD = 512   /* texts that tell how large features are */
};
#define KEPT ((size_t)4 << 30) /* bytes of features: fewer draws when all would take more */

/* Memory of one thread for drawing. */
typedef struct reader {
    sf_drawn drawn;
    sf_ids encoded;
    sf_piecer_scratch piecer;
} reader;

typedef struct trainer {
    sf_course course; /* first */
    const safer_train_options *options;
    sf_train_split split;
    sf_bert_checkpoint start; /* its parameters are moved to the layout below */
    sf_bert_layout layout;
    float *parameters;
    sf_bert_learner *learner;
    reader *readers; /* (threads) */

    /* Some texts, to learn from or to measure. */
    size_t capacity; /* texts */
    const safer_data *data;
    size_t *rows; /* of the data */
    uint64_t sample;
    uint32_t *ids; /* (capacity, tokens): drawn texts, then moved together */
    size_t *lengths, *offsets;
    int *labels;
    float *logits; /* of dev texts */
    atomic_int failed;

    /* The head alone; else NULL. */
    sf_head *head;
    sf_bert_layout whole;   /* of the model that is saved; that above has the identity for a classifier */
    size_t draws;           /* of a text */
    float *kept, *dev_kept; /* (draws, texts, hidden), (dev texts, hidden) */
    uint8_t *known;         /* (draws, texts): kept already */
    int dev_known;
    const float **inputs; /* (capacity): features of a batch */
} trainer;

static void trainer_free(sf_course *course)
{
    trainer *t = (trainer *)course;
    for (int i = 0; t->readers && i < sf_threads(t->options->threads); i++) {
        sf_drawn_free(&t->readers[i].drawn);
        sf_ids_free(&t->readers[i].encoded);
        sf_piecer_scratch_free(&t->readers[i].piecer);
    }
    sf_bert_learner_free(t->learner);
    sf_train_split_free(&t->split);
    sf_bert_checkpoint_free(&t->start);
    sf_bert_layout_free(&t->layout);
    free(t->parameters);
    free(t->rows);
    free(t->ids);
    free(t->lengths);
    free(t->offsets);
    free(t->labels);
    free(t->logits);
    free(t->readers);
    sf_head_free(t->head);
    sf_bert_layout_free(&t->whole);
    free(t->kept);
    free(t->dev_kept);
    free(t->known);
    free(t->inputs);
}

/* --------------------------------------------------------------------- start */

static int same_labels(const trainer *t)
{
    size_t classes = t->start.layout.shape.classes;
    if (classes != safer_data_label_count(t->options->train)) return 0;
    for (size_t c = 0; c < classes; c++)
        if (strcmp(t->start.labels[c], safer_data_label(t->options->train, c)) != 0) return 0;
    return 1;
}

/* Small normal-like numbers for a new classifier: sums of uniform ones. */
static void first_head(float *weights, size_t count, uint64_t seed)
{
    sf_stream stream = sf_stream_of(seed, PURPOSE_HEAD, SF_STAGE_TRAINING);
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < 12; k++) sum += (double)sf_draw_below(stream, i, k, 1 << 24) / (1 << 24) - 0.5;
        weights[i] = (float)(0.02 * sum);
    }
}

/* The shape of the model that training makes. */
static safer_status choose_shape(sf_bert_shape *out, const trainer *t, safer_error *error)
{
    const safer_train_options *o = t->options;
    sf_bert_shape shape = t->start.layout.shape;
    shape.classes = safer_data_label_count(o->train);
    if (o->course.pool) shape.pool = o->course.pool == SAFER_POOL_MEAN ? SF_POOL_MEAN : SF_POOL_CLS;
    if (o->bert.tokens && ((size_t)o->bert.tokens > sf_bert_most_tokens(&shape) || o->bert.tokens < 3))
        return sf_fail(error, SAFER_INVALID, "`tokens` is %d; it must be from 3 to the encoder's %zu positions",
                       o->bert.tokens, sf_bert_most_tokens(&shape));
    if (o->bert.tokens) shape.tokens = (size_t)o->bert.tokens;
    if (o->bert.truncation_side) shape.ending = o->bert.truncation_side == SAFER_TRUNCATION_LEFT;
    size_t layers = sf_train_layers(o);
    if (layers != SIZE_MAX && layers > shape.layers)
        return sf_fail(error, SAFER_INVALID, "`bert.layers` is %zu, but the encoder has %zu layers", layers,
                       shape.layers);
    *out = shape;
    return SAFER_OK;
}

static const sf_bert_tensor *find_tensor(const sf_bert_layout *layout, const char *name)
{
    for (size_t k = 0; k < layout->tensor_count; k++)
        if (strcmp(layout->tensors[k].name, name) == 0) return &layout->tensors[k];
    return NULL;
}

/* Parameters of a layout: those that another has too, but for a classifier that is not kept; the rest new. */
static void fill(float *parameters, const sf_bert_layout *layout, const sf_bert_layout *from, const float *values,
                 int keep_head, uint64_t seed)
{
    for (size_t i = 0; i < layout->tensor_count; i++) {
        const sf_bert_tensor *to = &layout->tensors[i], *source = find_tensor(from, to->name);
        int head = to->offset == layout->classifier_weight || to->offset == layout->classifier_bias;
        if (source && (!head || keep_head))
            memcpy(parameters + to->offset, values + source->offset, to->count * sizeof(float));
        else if (to->rank == 2)
            first_head(parameters + to->offset, to->count, seed);
        else
            memset(parameters + to->offset, 0, to->count * sizeof(float));
    }
}

/* The head begins as the start's, when that has the same labels, else at 0. */
static safer_status start_head(trainer *t, safer_error *error)
{
    const sf_bert_layout *from = &t->start.layout;
    const size_t H = t->whole.shape.hidden, C = t->whole.shape.classes;
    safer_status status = sf_head_new(&t->head, H, C, error);
    if (status != SAFER_OK || !same_labels(t)) return status;
    memcpy(t->head->parameters, t->start.parameters + from->classifier_weight, C * H * sizeof(float));
    memcpy(t->head->parameters + C * H, t->start.parameters + from->classifier_bias, C * sizeof(float));
    return SAFER_OK;
}

/* Parameters of the model to train: the encoder's, and a head that is new unless the
 * start has one for the same labels. */
static safer_status take_parameters(trainer *t, safer_error *error)
{
    safer_status status;
    sf_bert_shape shape;
    const int frozen = sf_train_layers(t->options) == 0;
    SF_TRY(choose_shape(&shape, t, error));
    if (frozen) {
        if (sf_bert_layout_make(&t->whole, &shape)) return sf_fail_memory(error);
        SF_TRY(start_head(t, error));
        shape.classes = shape.hidden;
    }
    if (sf_bert_layout_make(&t->layout, &shape)) return sf_fail_memory(error);
    t->parameters = sf_alloc_aligned(t->layout.size, sizeof *t->parameters);
    if (!t->parameters) return sf_fail_memory(error);
    fill(t->parameters, &t->layout, &t->start.layout, t->start.parameters, !frozen && same_labels(t), t->options->seed);
    float *identity = t->parameters + t->layout.classifier_weight;
    for (size_t i = 0; frozen && i < shape.hidden * shape.hidden; i++) identity[i] = i % (shape.hidden + 1) == 0;
    free(t->start.parameters);
    t->start.parameters = NULL;
done:
    return status;
}

static sf_bert_moments moments_of(const sf_course *c) { return (sf_bert_moments){c->means, c->variances}; }

static safer_status fetch(sf_course *course, safer_error *error)
{
    trainer *t = (trainer *)course;
    return t->head ? SAFER_OK : sf_bert_learner_fetch(t->learner, moments_of(course), error);
}

static safer_status changed(sf_course *course, safer_error *error)
{
    trainer *t = (trainer *)course;
    return t->head ? SAFER_OK : sf_bert_learner_changed(t->learner, moments_of(course), error);
}

static void plan_course(trainer *t, size_t first)
{
    const safer_train_options *o = t->options;
    double numbers[] = {o->course.rate,
                        o->course.decay,
                        o->course.dropout,
                        o->course.clip,
                        o->course.warmup,
                        (double)o->course.batch,
                        (double)o->course.epochs,
                        (double)first,
                        (double)t->layout.shape.tokens,
                        (double)t->layout.shape.ending,
                        (double)t->layout.shape.pool,
                        (double)o->course.precision,
                        (double)t->draws};
    sf_course *c = &t->course;
    c->texts = t->split.fit_count;
    c->parameters = t->head ? t->head->parameters : t->parameters + first;
    c->size = t->head ? t->head->size : t->layout.size - first;
    c->model_size = t->head ? t->whole.size : t->layout.size;
    c->falls = 1;
    c->fingerprint = sf_course_fingerprint(numbers, sizeof numbers / sizeof numbers[0], t->parameters, t->layout.size,
                                           &t->split, o);
}

/* A device that cannot have this encoder, or not in this arithmetic, is none that "auto" means. */
static safer_status make_learner(trainer *t, const sf_bert_options *options, size_t batch, safer_error *error)
{
    safer_status status;
    sf_device_choice choice = {0};
    const char *device = t->options->device ? t->options->device : "cpu";
    const int any = strcmp(device, "auto") == 0;
    if (!any || options->type == SF_BF16) SF_TRY(sf_device_choose(&choice, device, error));
    status = sf_bert_learner_new(&t->learner, &choice, &t->layout, t->parameters, options, batch, error);
    if (status == SAFER_INPUT && choice.count && any) {
        choice = (sf_device_choice){0};
        status = sf_bert_learner_new(&t->learner, &choice, &t->layout, t->parameters, options, batch, error);
    }
done:
    return status;
}

static safer_status make_room(trainer *t, size_t batch, safer_error *error)
{
    const size_t dev = t->split.dev_count < DEV_TEXTS ? t->split.dev_count : DEV_TEXTS;
    const size_t capacity = t->capacity = batch > dev ? batch : dev;
    t->rows = sf_alloc(capacity, sizeof *t->rows);
    t->ids = sf_alloc(capacity * t->layout.shape.tokens, sizeof *t->ids);
    t->lengths = sf_alloc(capacity, sizeof *t->lengths);
    t->offsets = sf_calloc(capacity + 1, sizeof *t->offsets);
    t->labels = sf_alloc(capacity, sizeof *t->labels);
    t->logits = sf_alloc(capacity * t->layout.shape.classes, sizeof *t->logits);
    t->readers = sf_calloc((size_t)sf_threads(t->options->threads), sizeof *t->readers);
    return t->rows && t->ids && t->lengths && t->offsets && t->labels && t->logits && t->readers
               ? SAFER_OK
               : sf_fail_memory(error);
}

/* Without a lexicon, and where there is only one draw, all are the same. */
static size_t count_draws(const trainer *t)
{
    const safer_train_options *o = t->options;
    const size_t one = t->split.fit_count * t->layout.shape.hidden * sizeof(float);
    size_t draws = (size_t)o->course.epochs < DRAWS ? (size_t)o->course.epochs : DRAWS;
    const int drawn = o->lexicon && strcmp(o->lexicon->kernel_name, "representative") != 0;
    if (!drawn && !sf_deletes(o->deletion)) return 1;
    while (draws > 1 && one > KEPT / draws) draws--;
    return draws;
}

static safer_status make_head_room(trainer *t, safer_error *error)
{
    const size_t H = t->layout.shape.hidden, texts = t->split.fit_count;
    t->draws = count_draws(t);
    t->kept = sf_alloc(t->draws * texts, H * sizeof *t->kept);
    t->dev_kept = sf_alloc(t->split.dev_count, H * sizeof *t->dev_kept);
    t->known = sf_calloc(t->draws * texts, 1);
    t->inputs = sf_alloc(t->capacity, sizeof *t->inputs);
    return t->kept && t->dev_kept && t->known && t->inputs ? SAFER_OK : sf_fail_memory(error);
}

static safer_status standardise(trainer *t, safer_error *error);

static safer_status start(sf_course *course, safer_error *error)
{
    safer_status status;
    trainer *t = (trainer *)course;
    const safer_train_options *o = t->options = course->options;
    SF_TRY(sf_isa_check(error));
    SF_TRY(sf_train_split_make(&t->split, o, error));
    SF_TRY(sf_bert_checkpoint_open(&t->start, o->bert.encoder, error));
    SF_TRY(take_parameters(t, error));
    const size_t batch = (size_t)o->course.batch < t->split.fit_count ? (size_t)o->course.batch : t->split.fit_count;
    const sf_bert_options options = {.layers = sf_train_layers(o),
                                     .decay = o->course.decay,
                                     .clip = o->course.clip,
                                     .dropout = (float)o->course.dropout,
                                     .type = o->course.precision == SAFER_PRECISION_F32 ? SF_F32 : SF_BF16,
                                     .threads = o->threads,
                                     .seed = o->seed};
    SF_TRY(make_learner(t, &options, batch, error));
    SF_TRY(make_room(t, batch, error));
    if (t->head) {
        SF_TRY(make_head_room(t, error));
        SF_TRY(standardise(t, error));
    }
    plan_course(t, sf_bert_trained_of(&t->layout, &options).start);
done:
    return status;
}

/* -------------------------------------------------------------------- texts */

/* A drawn text as pieces in its frame, [CLS] and [SEP]; returns how many, SIZE_MAX without memory. */
static size_t draw_text(uint32_t *ids, const trainer *t, reader *r, const safer_data *data, size_t row_number,
                        uint64_t sample)
{
    safer_row row = safer_data_row(data, row_number);
    const sf_piecer *piecer = t->start.piecer;
    const sf_tokenizer_frame frame = sf_piecer_frame(piecer);
    if (sf_drawn_text(&r->drawn, t->options->lexicon, row.text, row.text_length, t->options->deletion, t->options->seed,
                      sample, NULL) != SAFER_OK ||
        sf_piecer_encode(&r->encoded, piecer, r->drawn.text.bytes, r->drawn.text.length,
                         sf_bert_window(&t->layout.shape, piecer), &r->piecer))
        return SIZE_MAX;
    const size_t count = r->encoded.count, before = frame.before_count, after = frame.after_count;
    if (before) memcpy(ids, frame.before, before * sizeof *ids);
    if (count) memcpy(ids + before, r->encoded.ids, count * sizeof *ids);
    if (after) memcpy(ids + before + count, frame.after, after * sizeof *ids);
    return before + count + after;
}

static void draw_texts(void *context, size_t begin, size_t end, int worker)
{
    trainer *t = context;
    for (size_t b = begin; b < end; b++) {
        t->labels[b] = safer_data_row(t->data, t->rows[b]).label;
        t->lengths[b] = draw_text(t->ids + b * t->layout.shape.tokens, t, &t->readers[worker], t->data, t->rows[b],
                                  t->sample);
        if (t->lengths[b] == SIZE_MAX) atomic_store(&t->failed, 1);
    }
}

/* Draws of t->rows, one after the other without gaps. */
static safer_status draw_batch(sf_bert_batch *out, trainer *t, const safer_data *data, uint64_t sample, size_t count,
                               safer_error *error)
{
    t->data = data;
    t->sample = sample;
    sf_parallel(t->options->threads, count, 1, draw_texts, t);
    if (atomic_load(&t->failed)) return sf_fail_memory(error);
    for (size_t b = 0; b < count; b++) {
        memmove(t->ids + t->offsets[b], t->ids + b * t->layout.shape.tokens, t->lengths[b] * sizeof *t->ids);
        t->offsets[b + 1] = t->offsets[b] + t->lengths[b];
    }
    *out = (sf_bert_batch){t->ids, t->offsets, count};
    return SAFER_OK;
}

/* ------------------------------------------------------------------ the head */

/* Features (count, hidden) of draws of t->rows. */
static safer_status encode(float *features, trainer *t, const safer_data *data, uint64_t sample, size_t count,
                           safer_error *error)
{
    safer_status status;
    sf_bert_batch batch;
    SF_TRY(draw_batch(&batch, t, data, sample, count, error));
    SF_TRY(sf_bert_learner_features(features, t->learner, &batch, error));
done:
    return status;
}

/* t->inputs and t->labels of texts, at most t->capacity; what is not known of them is computed. */
static safer_status recall(trainer *t, const uint32_t *texts, size_t count, size_t draw, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t H = t->layout.shape.hidden, first = draw * t->split.fit_count;
    size_t missing = 0;
    for (size_t b = 0; b < count; b++)
        if (!t->known[first + texts[b]]) t->rows[missing++] = t->split.fit[texts[b]];
    if (missing) SF_TRY(encode(t->logits, t, t->split.fit_data, draw, missing, error));
    t->course.read += missing ? t->offsets[missing] : 0;
    const float *fresh = t->logits;
    for (size_t b = 0; b < count; b++) {
        float *own = t->kept + (first + texts[b]) * H;
        if (!t->known[first + texts[b]]) {
            memcpy(own, fresh, H * sizeof *own);
            fresh += H;
            t->known[first + texts[b]] = 1;
        }
        t->inputs[b] = own;
        t->labels[b] = safer_data_row(t->split.fit_data, t->split.fit[texts[b]]).label;
    }
done:
    return status;
}

/* The scale of features, from texts spread evenly; a head that was taken over is brought to it. */
static safer_status standardise(trainer *t, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t H = t->layout.shape.hidden, texts = t->split.fit_count, C = t->whole.shape.classes;
    const size_t sample = texts < STANDARD ? texts : STANDARD;
    float *features = sf_alloc(sample, H * sizeof *features), *plain = sf_alloc(t->head->size, sizeof *plain);
    uint32_t *chosen = sf_alloc(t->capacity, sizeof *chosen);
    if (!features || !plain || !chosen) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t first = 0; first < sample; first += t->capacity) {
        const size_t count = sample - first < t->capacity ? sample - first : t->capacity;
        for (size_t i = 0; i < count; i++) chosen[i] = (uint32_t)((first + i) * texts / sample);
        SF_TRY(recall(t, chosen, count, 0, error));
        for (size_t i = 0; i < count; i++) memcpy(features + (first + i) * H, t->inputs[i], H * sizeof *features);
    }
    sf_head_standardise(t->head, features, sample);
    memcpy(plain, t->head->parameters, t->head->size * sizeof *plain);
    sf_head_begin(t->head, plain, plain + C * H);
done:
    free(features);
    free(plain);
    free(chosen);
    return status;
}

static safer_status measure_head(trainer *t, double *accuracy, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t H = t->layout.shape.hidden, dev = t->split.dev_count;
    size_t right = 0;
    for (size_t first = 0; !t->dev_known && first < dev; first += t->capacity) {
        const size_t count = dev - first < t->capacity ? dev - first : t->capacity;
        memcpy(t->rows, t->split.dev + first, count * sizeof *t->rows);
        SF_TRY(encode(t->dev_kept + first * H, t, t->split.dev_data, DEV_SAMPLE, count, error));
    }
    t->dev_known = 1;
    for (size_t i = 0; i < dev; i++)
        right += sf_head_answer(t->head, t->dev_kept + i * H) ==
                 safer_data_row(t->split.dev_data, t->split.dev[i]).label;
    *accuracy = (double)right / (double)dev;
done:
    return status;
}

static safer_status step_head(trainer *t, const uint32_t *texts, size_t count, double rate, double *loss,
                              safer_error *error)
{
    const safer_train_options *o = t->options;
    const sf_head_options options = {o->course.decay, o->course.clip, (float)o->course.dropout,
                                     sf_bert_step_dropout(&(sf_bert_options){.seed = o->seed})};
    const safer_status status = recall(t, texts, count, (size_t)t->course.epoch % t->draws, error);
    if (status == SAFER_OK)
        *loss += sf_head_step(t->head, t->inputs, t->labels, count, t->course.means, t->course.variances, rate,
                              t->course.steps, &options);
    return status;
}

/* The encoder with the classifier that was learned, in the features' own scale. */
static safer_status save_head(trainer *t, const char *output, const char *labels, const char *trained_with,
                              safer_error *error)
{
    float *parameters = sf_alloc_aligned(t->whole.size, sizeof *parameters);
    if (!parameters) return sf_fail_memory(error);
    fill(parameters, &t->whole, &t->layout, t->parameters, 0, 0);
    sf_head_finish(parameters + t->whole.classifier_weight, parameters + t->whole.classifier_bias, t->head);
    const safer_status status = sf_bert_save(output, &t->whole, parameters, t->start.piecer, labels, trained_with,
                                             error);
    free(parameters);
    return status;
}

/* --------------------------------------------------------------------- steps */

static safer_status measure(sf_course *course, double *accuracy, safer_error *error)
{
    safer_status status = SAFER_OK;
    trainer *t = (trainer *)course;
    const size_t C = t->layout.shape.classes;
    size_t right = 0;
    if (t->head) return measure_head(t, accuracy, error);
    for (size_t first = 0; first < t->split.dev_count; first += t->capacity) {
        const size_t left = t->split.dev_count - first, count = left < t->capacity ? left : t->capacity;
        sf_bert_batch batch;
        memcpy(t->rows, t->split.dev + first, count * sizeof *t->rows);
        SF_TRY(draw_batch(&batch, t, t->split.dev_data, DEV_SAMPLE, count, error));
        SF_TRY(sf_bert_learner_answer(t->logits, t->learner, &batch, error));
        for (size_t i = 0; i < count; i++) {
            size_t best = 0;
            for (size_t c = 1; c < C; c++)
                if (t->logits[i * C + c] > t->logits[i * C + best]) best = c;
            right += (int)best == t->labels[i];
        }
    }
    *accuracy = (double)right / (double)t->split.dev_count;
done:
    return status;
}

static safer_status step(sf_course *course, const uint32_t *texts, size_t count, double rate, double *loss,
                         safer_error *error)
{
    safer_status status;
    trainer *t = (trainer *)course;
    sf_bert_batch batch;
    if (t->head) return step_head(t, texts, count, rate, loss, error);
    for (size_t b = 0; b < count; b++) t->rows[b] = t->split.fit[texts[b]];
    SF_TRY(draw_batch(&batch, t, t->split.fit_data, (uint64_t)course->epoch, count, error));
    SF_TRY(sf_bert_learner_step(loss, t->learner, &batch, t->labels, moments_of(course), rate, course->steps, error));
    course->read += t->offsets[count];
done:
    return status;
}

static safer_status save(sf_course *course, const char *output, const char *labels, const char *trained_with,
                         safer_error *error)
{
    trainer *t = (trainer *)course;
    if (t->head) return save_head(t, output, labels, trained_with, error);
    return sf_bert_save(output, &t->layout, t->parameters, t->start.piecer, labels, trained_with, error);
}

safer_status sf_bert_train(const char *output, const safer_train_options *options, safer_train_report *report,
                           safer_error *error)
{
    static const sf_course_methods methods = {.size = sizeof(trainer),
                                              .start = start,
                                              .step = step,
                                              .measure = measure,
                                              .save = save,
                                              .fetch = fetch,
                                              .changed = changed,
                                              .free = trainer_free};
    return sf_course_train(&methods, NULL, output, options, report, error);
}
