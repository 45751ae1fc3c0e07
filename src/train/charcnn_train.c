/* The `charcnn` classifier: training.
 *
 * Every mini-batch sees fresh draws of its texts (the sample number is the epoch), changed a
 * little further: a network of eleven million weights knows 22,500 reviews by heart after a
 * few epochs. Some of the runs between blanks are blanked, the text begins a few characters
 * later, and a long one may begin anywhere. Dev texts are drawn too, the same from epoch to
 * epoch, and answered by the code that will answer later, or on the device that learns. The rest
 * is a course (course.h), whose rate falls, so that the number of epochs is part of the run. */
#include "train/charcnn_train.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "draw/drawn.h"
#include "model/charcnn.h"
#include "model/charcnn_answer.h"
#include "model/charcnn_codes.h"
#include "train/charcnn_learner.h"
#include "train/charcnn_scale.h"
#include "train/course.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { DEV_DRAWS = 4, DEV_GROUP = 32 };
#define DEV_SAMPLE (UINT64_C(1) << 32) /* the first: epochs stay below */

/* What random numbers other than order, draws and dropout are for. */
enum { PURPOSE_WEIGHTS = 3, PURPOSE_CHANGES = 4 };

/* Memory of one thread for drawing and measuring. */
typedef struct reader {
    sf_drawn drawn;
    sf_charcnn_scratch *scratch;
    uint8_t *codes; /* (DEV_GROUP, L) */
    uint8_t *whole; /* of a text, all its characters */
    size_t capacity;
} reader;

typedef struct trainer {
    sf_course course; /* first */
    const safer_train_options *options;
    const sf_charcnn_plan *plan;
    sf_train_split split;
    sf_charcnn_layout layout;
    float *trained; /* (trained) */
    sf_charcnn_learner *learner;
    sf_charcnn_scaling *scaling; /* for measuring and saving: */
    float *parameters;           /* (size) */
    sf_charcnn_net *net;         /* for measuring on the CPU */
    reader *readers;             /* (threads) */

    /* One batch. */
    size_t batch; /* texts, at most */
    const uint32_t *texts;
    uint8_t *codes; /* (batch, L) */
    size_t *lengths;
    int *labels;
    float *logits; /* (batch, classes) */
    atomic_int failed;
} trainer;

static void trainer_free(sf_course *course)
{
    trainer *t = (trainer *)course;
    for (int i = 0; t->readers && i < sf_threads(t->options->threads); i++) {
        sf_drawn_free(&t->readers[i].drawn);
        sf_charcnn_scratch_free(t->readers[i].scratch);
        free(t->readers[i].codes);
        free(t->readers[i].whole);
    }
    sf_train_split_free(&t->split);
    sf_charcnn_learner_free(t->learner);
    sf_charcnn_scaling_free(t->scaling);
    sf_charcnn_net_free(t->net);
    void *owned[] = {t->parameters, t->trained, t->readers, t->codes, t->lengths, t->labels, t->logits};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
}

/* -------------------------------------------------------------------- start */

/* Uniform numbers of this variance. */
static void random_fill(float *out, size_t count, double variance, uint64_t seed, uint32_t tensor)
{
    const sf_stream stream = sf_stream_of(seed, PURPOSE_WEIGHTS, SF_STAGE_TRAINING);
    const double range = sqrt(3 * variance);
    for (size_t i = 0; i < count; i += 4) {
        uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), tensor, 0}, block[4];
        sf_philox(block, counter, stream.key);
        for (size_t k = 0; k < 4 && i + k < count; k++) out[i + k] = (float)(range * ((double)block[k] * 0x1p-31 - 1));
    }
}

/* The matrices' variance does not matter for what scaling (sf_charcnn_scale) makes of them,
 * but for how far a step of a given rate moves them: with this one, by a few hundredths. Of
 * the first layer a frame sums seven weights. Biases are 0, gains 1. */
static void first_weights(trainer *t)
{
    const sf_charcnn_layout *l = &t->layout;
    memset(t->trained, 0, l->size * sizeof *t->trained);
    for (size_t i = 0; i < l->tensor_count; i++) {
        const size_t at = l->tensors[i].offset;
        double variance = at == l->conv_weight[0]  ? 1.0 / SF_CHARCNN_WIDE
                          : at == l->output_weight ? 1 / (double)l->shape.hidden
                                                   : 0.0025;
        if (l->tensors[i].rank > 1)
            random_fill(t->trained + at, l->tensors[i].count, variance, t->options->seed, (uint32_t)i);
    }
    for (size_t i = l->size; i < l->trained; i++) t->trained[i] = 1;
}

static safer_status new_readers(trainer *t, safer_error *error)
{
    safer_status status = SAFER_OK;
    size_t threads = (size_t)sf_threads(t->options->threads);
    if (!(t->readers = sf_calloc(threads, sizeof *t->readers))) return sf_fail_memory(error);
    for (size_t i = 0; i < threads; i++) {
        if (t->net) SF_TRY(sf_charcnn_scratch_new(t->net, &t->readers[i].scratch, error));
        if (!(t->readers[i].codes = sf_alloc(DEV_GROUP * t->layout.shape.characters, 1))) return sf_fail_memory(error);
    }
done:
    return status;
}

/* Of the texts as they are, as far as they are read. */
static uint64_t count_characters(trainer *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->split.fit_count; i++) {
        safer_row row = safer_data_row(t->split.fit_data, t->split.fit[i]);
        sum += sf_charcnn_encode(t->readers[0].codes, row.text, row.text_length, t->layout.shape.characters);
    }
    return sum;
}

static void plan_course(trainer *t)
{
    const safer_train_options *o = t->options;
    double numbers[] = {o->course.rate,
                        o->course.decay,
                        o->course.dropout,
                        o->course.clip,
                        o->course.warmup,
                        (double)o->course.batch,
                        (double)o->course.epochs,
                        t->plan->smoothing,
                        t->plan->blanked,
                        t->plan->moved,
                        (double)t->plan->shift,
                        (double)t->layout.shape.characters,
                        (double)o->course.precision,
                        (double)t->layout.size};
    sf_course *c = &t->course;
    c->texts = t->split.fit_count;
    c->tokens = count_characters(t);
    c->parameters = t->trained;
    c->size = t->layout.trained;
    c->model_size = t->layout.size;
    c->falls = 1;
    c->fingerprint = sf_course_fingerprint(numbers, sizeof numbers / sizeof numbers[0], t->trained, t->layout.trained,
                                           &t->split, o);
}

static sf_dtype type_of(const safer_train_options *o)
{
    return o->course.precision == SAFER_PRECISION_F32 ? SF_F32 : SF_BF16;
}

static safer_status make_room(trainer *t, safer_error *error)
{
    t->parameters = sf_alloc_aligned(t->layout.size, sizeof *t->parameters);
    t->trained = sf_alloc_aligned(t->layout.trained, sizeof *t->trained);
    t->codes = sf_alloc(t->batch * t->layout.shape.characters, 1);
    t->lengths = sf_alloc(t->batch, sizeof *t->lengths);
    t->labels = sf_alloc(t->batch, sizeof *t->labels);
    t->logits = sf_alloc(t->batch * t->layout.shape.classes, sizeof *t->logits);
    if (!t->parameters || !t->trained || !t->codes || !t->lengths || !t->labels || !t->logits)
        return sf_fail_memory(error);
    return sf_charcnn_scaling_new(&t->scaling, &t->layout, t->options->threads, error);
}

/* A device that cannot have this network, or not in this arithmetic, is none that "auto" means. */
static safer_status make_learner(trainer *t, safer_error *error)
{
    safer_status status;
    const safer_train_options *o = t->options;
    sf_device_choice choice = {0};
    const char *device = o->device ? o->device : "cpu";
    const int any = strcmp(device, "auto") == 0;
    const sf_charcnn_options options = {.type = type_of(o),
                                        .dropout = (float)o->course.dropout,
                                        .smoothing = (float)t->plan->smoothing,
                                        .clip = o->course.clip,
                                        .decay = o->course.decay,
                                        .threads = o->threads,
                                        .seed = o->seed};
    if (!any || options.type == SF_BF16) SF_TRY(sf_device_choose(&choice, device, error));
    status = sf_charcnn_learner_new(&t->learner, &choice, &t->layout, t->trained, &options, t->batch, error);
    if (status == SAFER_INPUT && choice.count && any) {
        choice = (sf_device_choice){0};
        status = sf_charcnn_learner_new(&t->learner, &choice, &t->layout, t->trained, &options, t->batch, error);
    }
done:
    return status;
}

static safer_status start(sf_course *course, safer_error *error)
{
    safer_status status;
    trainer *t = (trainer *)course;
    const safer_train_options *o = t->options = course->options;
    t->plan = course->plan;
    SF_TRY(sf_isa_check(error));
    if (o->charcnn.characters < SF_CHARCNN_SHORTEST || o->charcnn.characters > SF_CHARCNN_LONGEST) {
        status = sf_fail(error, SAFER_INVALID, "`characters` is %d; charcnn needs from %d to %d", o->charcnn.characters,
                         SF_CHARCNN_SHORTEST, SF_CHARCNN_LONGEST);
        goto done;
    }
    SF_TRY(sf_train_split_make(&t->split, o, error));
    sf_charcnn_shape shape = {.characters = (size_t)o->charcnn.characters,
                              .features = t->plan->features,
                              .hidden = t->plan->hidden,
                              .classes = safer_data_label_count(o->train)};
    sf_charcnn_layout_make(&t->layout, &shape);
    t->batch = (size_t)o->course.batch < t->split.fit_count ? (size_t)o->course.batch : t->split.fit_count;
    SF_TRY(make_room(t, error));
    first_weights(t);
    SF_TRY(make_learner(t, error));
    if (!sf_charcnn_learner_is_away(t->learner))
        SF_TRY(sf_charcnn_net_new(&t->net, &t->layout, sf_arithmetic_fast(type_of(o)), error));
    SF_TRY(new_readers(t, error));
    plan_course(t);
done:
    return status;
}

/* -------------------------------------------------------------------- texts */

/* The codes of a drawn text, blank at the end; returns how many it has. */
static size_t draw_text(uint8_t *codes, trainer *t, int worker, const safer_row *row, uint64_t sample)
{
    const size_t L = t->layout.shape.characters;
    sf_drawn *drawn = &t->readers[worker].drawn;
    size_t count = 0;
    if (sf_drawn_text(drawn, t->options->lexicon, row->text, row->text_length, t->options->deletion, t->options->seed,
                      sample, NULL) != SAFER_OK)
        atomic_store(&t->failed, 1);
    else
        count = sf_charcnn_encode(codes, drawn->text.bytes, drawn->text.length, L);
    memset(codes + count, 0, L - count);
    return count;
}

/* A share of [0, 1) for change number `index` of a text in this epoch. */
static double chance(sf_stream stream, const trainer *t, uint32_t index)
{
    return sf_draw_unit(stream, (uint64_t)t->course.epoch, index);
}

/* The same for a text to learn from, changed further as the plan says. */
static size_t change_text(uint8_t *codes, trainer *t, int worker, const safer_row *row)
{
    const size_t L = t->layout.shape.characters;
    const sf_charcnn_plan *plan = t->plan;
    const sf_stream stream = sf_stream_of(t->options->seed, sf_hash(row->text, row->text_length, PURPOSE_CHANGES),
                                          SF_STAGE_TRAINING);
    reader *r = &t->readers[worker];
    size_t count, from = 0;
    if (sf_drawn_text(&r->drawn, t->options->lexicon, row->text, row->text_length, t->options->deletion,
                      t->options->seed, (uint64_t)t->course.epoch, NULL) != SAFER_OK ||
        sf_grow(&r->whole, &r->capacity, r->drawn.text.length + 1, 1)) {
        atomic_store(&t->failed, 1);
        return 0;
    }
    count = sf_charcnn_encode(r->whole, r->drawn.text.bytes, r->drawn.text.length, SIZE_MAX);
    if (chance(stream, t, 0) < plan->moved && count > L)
        from = (size_t)(chance(stream, t, 1) * (double)(count - L + 1));
    from += (size_t)(chance(stream, t, 2) * plan->shift);
    if (from > count) from = count;
    count = count - from > L ? L : count - from;
    memcpy(codes, r->whole + from, count);
    memset(codes + count, 0, L - count);
    for (size_t i = 0, drop = 0; plan->blanked > 0 && i < count; i++) {
        if (codes[i] && (i == 0 || !r->whole[from + i - 1])) drop = chance(stream, t, 3 + (uint32_t)i) < plan->blanked;
        if (drop) codes[i] = 0;
    }
    return count;
}

static void draw_texts(void *context, size_t begin, size_t end, int worker)
{
    trainer *t = context;
    for (size_t b = begin; b < end; b++) {
        safer_row row = safer_data_row(t->split.fit_data, t->split.fit[t->texts[b]]);
        t->labels[b] = row.label;
        t->lengths[b] = change_text(t->codes + b * t->layout.shape.characters, t, worker, &row);
    }
}

/* ---------------------------------------------------------------------- dev */

typedef struct measuring {
    trainer *t;
    size_t draws; /* of each text */
    size_t first; /* of the draws that a device is asked about */
    atomic_size_t right;
} measuring;

/* Items are draws of texts. */
static void measure_draws(void *context, size_t begin, size_t end, int worker)
{
    measuring *m = context;
    trainer *t = m->t;
    reader *r = &t->readers[worker];
    size_t lengths[DEV_GROUP] = {0}, right = 0;
    int labels[DEV_GROUP];
    for (size_t i = begin; i < end; i++) {
        safer_row row = safer_data_row(t->split.dev_data, t->split.dev[i / m->draws]);
        lengths[i - begin] = draw_text(r->codes + (i - begin) * t->layout.shape.characters, t, worker, &row,
                                       DEV_SAMPLE + i % m->draws);
    }
    sf_charcnn_classify_codes(labels, NULL, NULL, t->net, r->codes, lengths, end - begin, r->scratch);
    for (size_t i = begin; i < end; i++)
        right += labels[i - begin] == safer_data_row(t->split.dev_data, t->split.dev[i / m->draws]).label;
    atomic_fetch_add(&m->right, right);
}

/* The same for draws that are answered on a device. */
static void draw_dev(void *context, size_t begin, size_t end, int worker)
{
    measuring *m = context;
    trainer *t = m->t;
    for (size_t i = begin; i < end; i++) {
        safer_row row = safer_data_row(t->split.dev_data, t->split.dev[(m->first + i) / m->draws]);
        t->labels[i] = row.label;
        draw_text(t->codes + i * t->layout.shape.characters, t, worker, &row, DEV_SAMPLE + (m->first + i) % m->draws);
    }
}

static safer_status measure_away(measuring *m, size_t total, safer_error *error)
{
    safer_status status = SAFER_OK;
    trainer *t = m->t;
    const size_t K = t->layout.shape.classes;
    for (m->first = 0; m->first < total; m->first += t->batch) {
        const size_t count = sf_least(t->batch, total - m->first);
        sf_parallel(t->options->threads, count, 4, draw_dev, m);
        SF_TRY(sf_charcnn_learner_answer(t->logits, t->learner, t->codes, count, error));
        for (size_t i = 0; i < count; i++) {
            int label;
            sf_charcnn_classes(&label, NULL, t->logits + i * K, 1, K);
            atomic_fetch_add(&m->right, label == t->labels[i]);
        }
    }
done:
    return status;
}

static safer_status measure(sf_course *course, double *accuracy, safer_error *error)
{
    safer_status status = SAFER_OK;
    trainer *t = (trainer *)course;
    measuring m = {.t = t, .draws = t->options->lexicon || sf_deletes(t->options->deletion) ? DEV_DRAWS : 1};
    size_t count = t->split.dev_count * m.draws;
    if (t->net) {
        sf_charcnn_scale(t->parameters, t->scaling, t->trained);
        sf_charcnn_net_load(t->net, t->parameters, t->options->threads);
        sf_parallel(t->options->threads, count, DEV_GROUP, measure_draws, &m);
    } else {
        SF_TRY(measure_away(&m, count, error));
    }
    if (atomic_load(&t->failed)) return sf_fail_memory(error);
    *accuracy = (double)atomic_load(&m.right) / (double)count;
done:
    return status;
}

/* --------------------------------------------------------------------- steps */

static sf_charcnn_state state_of(const sf_course *c)
{
    return (sf_charcnn_state){c->parameters, c->means, c->variances};
}

static safer_status fetch(sf_course *course, safer_error *error)
{
    return sf_charcnn_learner_fetch(((trainer *)course)->learner, state_of(course), error);
}

static safer_status changed(sf_course *course, safer_error *error)
{
    return sf_charcnn_learner_changed(((trainer *)course)->learner, state_of(course), error);
}

static safer_status step(sf_course *course, const uint32_t *texts, size_t count, double rate, double *loss,
                         safer_error *error)
{
    safer_status status;
    trainer *t = (trainer *)course;
    t->texts = texts;
    sf_parallel(t->options->threads, count, 4, draw_texts, t);
    if (atomic_load(&t->failed)) return sf_fail_memory(error);
    sf_charcnn_batch batch = {t->codes, t->lengths, t->labels, count};
    SF_TRY(sf_charcnn_learner_step(loss, t->learner, &batch, state_of(course), rate, course->steps, error));
    for (size_t b = 0; b < count; b++) course->read += t->lengths[b];
done:
    return status;
}

static safer_status save(sf_course *course, const char *output, const char *labels, const char *trained_with,
                         safer_error *error)
{
    trainer *t = (trainer *)course;
    sf_charcnn_scale(t->parameters, t->scaling, t->trained);
    return sf_charcnn_save(output, &t->layout, t->parameters, labels, trained_with, error);
}

sf_charcnn_plan sf_charcnn_plan_of(const safer_train_options *options)
{
    int large = options->charcnn.size == SAFER_CHARCNN_LARGE;
    return (sf_charcnn_plan){.features = large ? 1024 : 256,
                             .hidden = large ? 2048 : 1024,
                             .blanked = 0.2,
                             .moved = 0.5,
                             .shift = SF_CHARCNN_POOL * SF_CHARCNN_POOL * SF_CHARCNN_POOL};
}

safer_status sf_charcnn_train_plan(const char *output, const safer_train_options *options, const sf_charcnn_plan *plan,
                                   safer_train_report *report, safer_error *error)
{
    static const sf_course_methods methods = {.size = sizeof(trainer),
                                              .start = start,
                                              .step = step,
                                              .measure = measure,
                                              .save = save,
                                              .fetch = fetch,
                                              .changed = changed,
                                              .free = trainer_free};
    return sf_course_train(&methods, plan, output, options, report, error);
}

safer_status sf_charcnn_train(const char *output, const safer_train_options *options, safer_train_report *report,
                              safer_error *error)
{
    const sf_charcnn_plan plan = sf_charcnn_plan_of(options);
    return sf_charcnn_train_plan(output, options, &plan, report, error);
}
