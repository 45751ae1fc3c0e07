/* The `charcnn` classifier: training.
 *
 * Every mini-batch sees fresh draws of its texts (the sample number is the epoch), changed a
 * little further: a network of eleven million weights knows 22,500 reviews by heart after a
 * few epochs. Some of the runs between blanks are blanked, the text begins a few characters
 * later, and a long one may begin anywhere. The rate
 * rises from 0 over the first steps and falls back to 0 at the last (linearly both), so the
 * number of epochs is part of the run. After every epoch the model is measured on draws of
 * the dev texts that stay the same from epoch to epoch, with the code that will answer
 * later. The best epoch is kept.
 *
 * All randomness is a function of the seed and of counters. The state of a run is: the
 * parameters, Adam's moments, the best parameters and a few numbers. It is written beside
 * the output after every epoch, every few minutes and when the run is interrupted; going on
 * from it gives the same file as never having stopped. */
#define _GNU_SOURCE
#include "model/charcnn.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "model/drawn.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEV_DRAWS = 4, DEV_GROUP = 32, CHECKPOINT_SECONDS = 300 };
#define DEV_SAMPLE (UINT64_C(1) << 32) /* the first: epochs stay below */

/* What random numbers other than draws and dropout are for. */
enum { PURPOSE_ORDER = 2, PURPOSE_WEIGHTS = 3, PURPOSE_CHANGES = 4 };

/* Memory of one thread for drawing and measuring. */
typedef struct reader {
    sf_drawn drawn;
    sf_charcnn_scratch *scratch;
    uint8_t *codes; /* (DEV_GROUP, L) */
    uint8_t *whole; /* of a text, all its characters */
    size_t capacity;
} reader;

typedef struct trainer {
    const safer_train_options *options;
    const sf_charcnn_plan *plan;
    sf_train_split split;
    sf_charcnn_layout layout;
    float *trained, *means, *variances, *best; /* (trained) each */
    sf_charcnn_step *step;
    sf_charcnn_scaling *scaling; /* for measuring and saving: */
    float *parameters;           /* (size) */
    sf_charcnn_net *net;
    reader *readers;     /* (threads) */

    /* One batch. */
    uint32_t *order; /* (texts): of the epoch */
    uint8_t *codes;  /* (batch, L) */
    size_t *lengths;
    int *labels;
    size_t batch_first;
    atomic_int failed;

    /* The state, all of it in the checkpoint. */
    uint64_t steps;       /* done */
    int epoch, best_epoch;
    double best_accuracy;
    double loss, loss_sum; /* of the last epoch; of this one so far */

    uint64_t fingerprint;
    char *checkpoint; /* its path */
    double saved_at;
    char stage[96];
    sf_meter meter;
} trainer;

static void trainer_free(trainer *t)
{
    for (int i = 0; t->readers && i < sf_threads(t->options->threads); i++) {
        sf_drawn_free(&t->readers[i].drawn);
        sf_charcnn_scratch_free(t->readers[i].scratch);
        free(t->readers[i].codes);
        free(t->readers[i].whole);
    }
    sf_train_split_free(&t->split);
    sf_charcnn_step_free(t->step);
    sf_charcnn_scaling_free(t->scaling);
    sf_charcnn_net_free(t->net);
    void *owned[] = {t->parameters, t->trained, t->means,   t->variances, t->best,      t->readers,
                     t->order,      t->codes,   t->lengths, t->labels,    t->checkpoint};
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

/* He's rule: a layer of n inputs whose mean square is m gets weights of variance 1/(n m),
 * so that its sums have variance 1. A character switches one input a tap on. What scaling
 * (sf_charcnn_scale) makes of the matrices does not depend on their variance, but how far
 * a step moves them does. Biases are 0, gains 1. */
static void first_weights(trainer *t)
{
    const sf_charcnn_layout *l = &t->layout;
    const double F = (double)l->shape.features, H = (double)l->shape.hidden, pooled = 1.26, rectified = 0.5;
    const uint64_t seed = t->options->seed;
    memset(t->trained, 0, l->size * sizeof *t->trained);
    for (uint32_t i = 0; i < SF_CHARCNN_CONVS; i++) {
        double n = (double)sf_charcnn_width(i) * (i ? F : 1), m = i == 0 ? 1 : i < 3 ? pooled : rectified;
        size_t count = i ? sf_charcnn_width(i) * l->shape.features * l->shape.features
                         : (size_t)SF_CHARCNN_ALPHABET * SF_CHARCNN_WIDE * l->shape.features;
        random_fill(t->trained + l->conv_weight[i], count, 1 / (n * m), seed, i);
    }
    random_fill(t->trained + l->hidden_weight[0], l->inputs * l->shape.hidden, 1 / ((double)l->inputs * pooled), seed, SF_CHARCNN_CONVS);
    random_fill(t->trained + l->hidden_weight[1], l->shape.hidden * l->shape.hidden, 1 / (H * rectified), seed, SF_CHARCNN_CONVS + 1);
    random_fill(t->trained + l->output_weight, l->shape.classes * l->shape.hidden, 1 / H, seed, SF_CHARCNN_CONVS + 2);
    for (size_t i = l->size; i < l->trained; i++) t->trained[i] = 1;
}

/* Everything that decides how a run goes; a checkpoint of another run is refused. */
static uint64_t fingerprint_of(const trainer *t)
{
    const safer_train_options *o = t->options;
    double numbers[] = {o->rate, o->decay, o->dropout, o->clip, o->warmup, (double)o->batch, (double)o->epochs, t->plan->smoothing,
                        t->plan->blanked, t->plan->moved, (double)t->plan->shift, (double)t->layout.shape.characters,
                        (double)strlen(o->precision), (double)t->layout.size};
    uint64_t hash = sf_hash(numbers, sizeof numbers, o->seed);
    hash = sf_hash(t->trained, t->layout.trained * sizeof *t->trained, hash);
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < (i ? t->split.dev_count : t->split.fit_count); k++) {
            safer_row row = safer_data_row(i ? t->split.dev_data : t->split.fit_data, i ? t->split.dev[k] : t->split.fit[k]);
            hash = sf_hash(row.text, row.text_length, hash ^ (uint64_t)row.label);
        }
    return o->lexicon ? sf_hash(o->lexicon->image.bytes, o->lexicon->image.length, hash) : hash;
}

static safer_status new_readers(trainer *t, safer_error *error)
{
    safer_status status = SAFER_OK;
    size_t threads = (size_t)sf_threads(t->options->threads);
    if (!(t->readers = sf_calloc(threads, sizeof *t->readers))) return sf_fail_memory(error);
    for (size_t i = 0; i < threads; i++) {
        SF_TRY(sf_charcnn_scratch_new(t->net, &t->readers[i].scratch, error));
        if (!(t->readers[i].codes = sf_alloc(DEV_GROUP * t->layout.shape.characters, 1))) return sf_fail_memory(error);
    }
done:
    return status;
}

static safer_status start(trainer *t, const char *output, safer_error *error)
{
    safer_status status;
    const safer_train_options *o = t->options;
    const sf_dtype type = strcmp(o->precision, "f32") == 0 ? SF_F32 : SF_BF16;
    SF_TRY(sf_isa_check(error));
    if (o->characters < SF_CHARCNN_SHORTEST || o->characters > SF_CHARCNN_LONGEST) {
        status = sf_fail(error, SAFER_INVALID, "characters is %d; charcnn needs from %d to %d", o->characters, SF_CHARCNN_SHORTEST,
                         SF_CHARCNN_LONGEST);
        goto done;
    }
    SF_TRY(sf_train_split_make(&t->split, o, error));
    sf_charcnn_shape shape = {.characters = (size_t)o->characters, .features = t->plan->features, .hidden = t->plan->hidden,
                              .classes = safer_data_label_count(o->train)};
    sf_charcnn_layout_make(&t->layout, &shape);
    size_t batch = (size_t)o->batch < t->split.fit_count ? (size_t)o->batch : t->split.fit_count, size = t->layout.trained;
    t->parameters = sf_alloc_aligned(t->layout.size, sizeof *t->parameters);
    t->trained = sf_alloc_aligned(size, sizeof *t->trained);
    t->means = sf_calloc(size, sizeof *t->means);
    t->variances = sf_calloc(size, sizeof *t->variances);
    t->best = sf_alloc_aligned(size, sizeof *t->best);
    t->order = sf_alloc(t->split.fit_count, sizeof *t->order);
    t->codes = sf_alloc(batch * shape.characters, 1);
    t->lengths = sf_alloc(batch, sizeof *t->lengths);
    t->labels = sf_alloc(batch, sizeof *t->labels);
    t->checkpoint = sf_alloc(strlen(output) + sizeof ".checkpoint", 1);
    if (!t->parameters || !t->trained || !t->means || !t->variances || !t->best || !t->order || !t->codes || !t->lengths || !t->labels ||
        !t->checkpoint) {
        status = sf_fail_memory(error);
        goto done;
    }
    sprintf(t->checkpoint, "%s.checkpoint", output);
    sf_charcnn_options step = {.type = type, .dropout = (float)o->dropout, .smoothing = (float)t->plan->smoothing, .clip = o->clip,
                               .decay = o->decay, .threads = o->threads, .seed = o->seed};
    SF_TRY(sf_charcnn_step_new(&t->step, &t->layout, &step, batch, error));
    SF_TRY(sf_charcnn_scaling_new(&t->scaling, &t->layout, o->threads, error));
    SF_TRY(sf_charcnn_net_new(&t->net, &t->layout, type, error));
    SF_TRY(new_readers(t, error));
    first_weights(t);
    memcpy(t->best, t->trained, size * sizeof *t->best);
    t->fingerprint = fingerprint_of(t);
done:
    return status;
}

/* -------------------------------------------------------------- checkpoints */

enum { STATE = 6 };

static safer_status write_checkpoint(trainer *t, safer_error *error)
{
    char fingerprint[20];
    const double state[STATE] = {(double)t->steps, t->epoch, t->best_epoch, t->best_accuracy, t->loss, t->loss_sum};
    const float *arrays[] = {t->trained, t->means, t->variances, t->best};
    const char *names[] = {"trained", "means", "variances", "best"};
    sf_tensor tensors[5];
    for (int i = 0; i < 4; i++)
        tensors[i] = (sf_tensor){.name = names[i], .type = SF_F32, .rank = 1, .shape = {t->layout.trained}, .count = t->layout.trained,
                                 .bytes = arrays[i]};
    tensors[4] = (sf_tensor){.name = "state", .type = SF_F64, .rank = 1, .shape = {STATE}, .count = STATE, .bytes = state};
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, t->fingerprint);
    const sf_metadata metadata[] = {{"arch", "checkpoint"}, {"run", fingerprint}};
    t->saved_at = sf_seconds();
    return sf_safetensors_write(t->checkpoint, tensors, 5, metadata, 2, error);
}

static uint64_t steps_of_epoch(const trainer *t)
{
    return (t->split.fit_count + (size_t)t->options->batch - 1) / (size_t)t->options->batch;
}

static safer_status read_checkpoint(trainer *t, safer_error *error)
{
    safer_status status;
    sf_safetensors *file = NULL;
    char fingerprint[20];
    double state[STATE];
    float *arrays[] = {t->trained, t->means, t->variances, t->best};
    const char *names[] = {"trained", "means", "variances", "best"}, *run;
    const size_t numbers = STATE;
    const sf_tensor *tensor;
    const double steps = (double)steps_of_epoch(t);
    SF_TRY(sf_safetensors_open(&file, t->checkpoint, error));
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, t->fingerprint);
    run = sf_safetensors_metadata(file, "run");
    if (!run || strcmp(run, fingerprint) != 0) {
        status = sf_fail(error, SAFER_INPUT, "%s is the checkpoint of a run with other options or data; remove it or do not resume",
                         t->checkpoint);
        goto done;
    }
    for (int i = 0; i < 4; i++) {
        SF_TRY(sf_safetensors_require(&tensor, file, names[i], SF_F32, 1, &t->layout.trained, error));
        SF_TRY(sf_tensor_to_f32(arrays[i], tensor, file, error));
    }
    SF_TRY(sf_safetensors_require(&tensor, file, "state", SF_F64, 1, &numbers, error));
    memcpy(state, tensor->bytes, sizeof state);
    if (!(state[0] >= 0 && state[0] < 0x1p53 && state[1] >= 0 && state[1] <= t->options->epochs && state[2] >= 0 && state[2] <= state[1] &&
          state[0] >= state[1] * steps && state[0] <= (state[1] + 1) * steps)) {
        status = sf_fail(error, SAFER_INPUT, "%s: tensor \"state\" holds no state of a run", t->checkpoint);
        goto done;
    }
    t->steps = (uint64_t)state[0];
    t->epoch = (int)state[1];
    t->best_epoch = (int)state[2];
    t->best_accuracy = state[3];
    t->loss = state[4];
    t->loss_sum = state[5];
done:
    sf_safetensors_free(file);
    return status;
}

/* -------------------------------------------------------------------- texts */

/* The codes of a drawn text, blank at the end; returns how many it has. */
static size_t draw_text(uint8_t *codes, trainer *t, int worker, const safer_row *row, uint64_t sample)
{
    const size_t L = t->layout.shape.characters;
    sf_drawn *drawn = &t->readers[worker].drawn;
    size_t count = 0;
    if (sf_drawn_text(drawn, t->options->lexicon, row->text, row->text_length, t->options->seed, sample, NULL) != SAFER_OK)
        atomic_store(&t->failed, 1);
    else
        count = sf_charcnn_encode(codes, drawn->text.bytes, drawn->text.length, L);
    memset(codes + count, 0, L - count);
    return count;
}

/* A share of [0, 1) for change number `index` of a text in this epoch. */
static double chance(sf_stream stream, const trainer *t, uint32_t index) { return sf_draw_unit(stream, (uint64_t)t->epoch, index); }

/* The same for a text to learn from, changed further as the plan says. */
static size_t change_text(uint8_t *codes, trainer *t, int worker, const safer_row *row)
{
    const size_t L = t->layout.shape.characters;
    const sf_charcnn_plan *plan = t->plan;
    const sf_stream stream = sf_stream_of(t->options->seed, sf_hash(row->text, row->text_length, PURPOSE_CHANGES), SF_STAGE_TRAINING);
    reader *r = &t->readers[worker];
    size_t count, from = 0;
    if (sf_drawn_text(&r->drawn, t->options->lexicon, row->text, row->text_length, t->options->seed, (uint64_t)t->epoch, NULL) !=
            SAFER_OK ||
        sf_grow(&r->whole, &r->capacity, r->drawn.text.length + 1, 1)) {
        atomic_store(&t->failed, 1);
        return 0;
    }
    count = sf_charcnn_encode(r->whole, r->drawn.text.bytes, r->drawn.text.length, SIZE_MAX);
    if (chance(stream, t, 0) < plan->moved && count > L) from = (size_t)(chance(stream, t, 1) * (double)(count - L + 1));
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
        safer_row row = safer_data_row(t->split.fit_data, t->split.fit[t->order[t->batch_first + b]]);
        t->labels[b] = row.label;
        t->lengths[b] = change_text(t->codes + b * t->layout.shape.characters, t, worker, &row);
    }
}

static uint64_t count_characters(trainer *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->split.fit_count; i++) {
        safer_row row = safer_data_row(t->split.fit_data, t->split.fit[i]);
        sum += sf_charcnn_encode(t->readers[0].codes, row.text, row.text_length, t->layout.shape.characters);
    }
    return sum;
}

/* ---------------------------------------------------------------------- dev */

typedef struct measuring {
    trainer *t;
    size_t draws; /* of each text */
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
        lengths[i - begin] = draw_text(r->codes + (i - begin) * t->layout.shape.characters, t, worker, &row, DEV_SAMPLE + i % m->draws);
    }
    sf_charcnn_classify_codes(labels, NULL, NULL, t->net, r->codes, lengths, end - begin, r->scratch);
    for (size_t i = begin; i < end; i++)
        right += labels[i - begin] == safer_data_row(t->split.dev_data, t->split.dev[i / m->draws]).label;
    atomic_fetch_add(&m->right, right);
}

/* The share of draws of dev texts that the present parameters classify rightly. */
static safer_status measure(double *accuracy, trainer *t, safer_error *error)
{
    measuring m = {.t = t, .draws = t->options->lexicon ? DEV_DRAWS : 1};
    size_t count = t->split.dev_count * m.draws;
    sf_charcnn_scale(t->parameters, t->scaling, t->trained);
    sf_charcnn_net_load(t->net, t->parameters, t->options->threads);
    sf_parallel(t->options->threads, count, DEV_GROUP, measure_draws, &m);
    if (atomic_load(&t->failed)) return sf_fail_memory(error);
    *accuracy = (double)atomic_load(&m.right) / (double)count;
    return SAFER_OK;
}

/* -------------------------------------------------------------------- epochs */

static void shuffle(trainer *t)
{
    sf_stream stream = sf_stream_of(t->options->seed, PURPOSE_ORDER, SF_STAGE_TRAINING);
    size_t count = t->split.fit_count;
    for (size_t i = 0; i < count; i++) t->order[i] = (uint32_t)i;
    for (size_t i = count; i > 1; i--) {
        uint32_t j = sf_draw_below(stream, (uint64_t)t->epoch, (uint32_t)i, (uint32_t)i), swap = t->order[i - 1];
        t->order[i - 1] = t->order[j];
        t->order[j] = swap;
    }
}

static void tell(trainer *t, double loss, double accuracy)
{
    int length = snprintf(t->stage, sizeof t->stage, "epoch %d of %d", t->epoch + 1, t->options->epochs);
    if (loss >= 0) length += snprintf(t->stage + length, sizeof t->stage - (size_t)length, ": loss %.3f", loss);
    if (accuracy >= 0) snprintf(t->stage + length, sizeof t->stage - (size_t)length, "%s dev %.4f", loss >= 0 ? "," : ":", accuracy);
}

/* Rises over the first steps, falls to 0 over the rest. */
static double rate_at(const trainer *t, uint64_t step, uint64_t total)
{
    double rising = ceil(t->options->warmup * (double)total), at = (double)step;
    if (at <= rising) return t->options->rate * at / rising;
    return t->options->rate * ((double)total + 1 - at) / ((double)total + 1 - rising);
}

/* What remains of the pass over the texts. A cancelled pass returns SAFER_OK: the caller asks the meter. */
static safer_status run_epoch(trainer *t, double accuracy, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t batch = (size_t)t->options->batch, fit = t->split.fit_count;
    const uint64_t steps = steps_of_epoch(t);
    shuffle(t);
    while (t->steps < ((uint64_t)t->epoch + 1) * steps) {
        size_t first = (size_t)(t->steps - (uint64_t)t->epoch * steps) * batch, count = fit - first < batch ? fit - first : batch;
        double loss;
        t->batch_first = first;
        sf_parallel(t->options->threads, count, 4, draw_texts, t);
        if (atomic_load(&t->failed)) return sf_fail_memory(error);
        sf_charcnn_batch texts = {t->codes, t->lengths, t->labels, count};
        sf_charcnn_step_gradient(&loss, t->step, t->trained, &texts, ++t->steps);
        t->loss_sum += loss;
        if (!isfinite(t->loss_sum))
            return sf_fail(error, SAFER_INVALID, "the loss of epoch %d is not a finite number; lower rate (now %g)", t->epoch + 1,
                           t->options->rate);
        sf_charcnn_step_update(t->step, t->trained, t->means, t->variances,
                               rate_at(t, t->steps, (uint64_t)t->options->epochs * steps), t->steps);
        tell(t, t->loss_sum / (double)(first + count), accuracy);
        if (sf_meter_add(&t->meter, count, 0)) return write_checkpoint(t, error);
        if (sf_seconds() - t->saved_at > CHECKPOINT_SECONDS) SF_TRY(write_checkpoint(t, error));
    }
    t->loss = t->loss_sum / (double)fit;
    t->loss_sum = 0;
done:
    return status;
}

static safer_status run(trainer *t, safer_error *error)
{
    safer_status status = SAFER_OK;
    const safer_train_options *o = t->options;
    const size_t fit = t->split.fit_count;
    double accuracy = t->best_epoch ? t->best_accuracy : -1;
    size_t done_here = (size_t)(t->steps - (uint64_t)t->epoch * steps_of_epoch(t)) * (size_t)o->batch;
    tell(t, -1, -1);
    t->saved_at = sf_seconds();
    sf_meter_start(&t->meter, &o->progress, t->stage, (uint64_t)o->epochs * fit);
    sf_meter_add(&t->meter, (uint64_t)t->epoch * fit + (done_here < fit ? done_here : fit), 0);
    while (t->epoch < o->epochs && !(o->patience && t->epoch - t->best_epoch >= o->patience)) {
        if (sf_meter_cancelled(&t->meter)) break;
        SF_TRY(run_epoch(t, accuracy, error));
        if (sf_meter_cancelled(&t->meter)) break;
        SF_TRY(measure(&accuracy, t, error));
        tell(t, t->loss, accuracy);
        t->epoch++;
        if (t->best_epoch == 0 || accuracy > t->best_accuracy) {
            t->best_epoch = t->epoch;
            t->best_accuracy = accuracy;
            memcpy(t->best, t->trained, t->layout.trained * sizeof *t->best);
        }
        SF_TRY(write_checkpoint(t, error));
        t->meter.last = 0; /* an epoch's result is always told */
        sf_meter_add(&t->meter, 0, 0);
    }
    status = sf_meter_finish(&t->meter, error);
done:
    return status;
}

static safer_status save(trainer *t, const char *output, safer_error *error)
{
    safer_status status;
    char *labels = sf_train_labels_json(t->options->train), *trained_with = sf_train_provenance_json(t->options);
    sf_charcnn_scale(t->parameters, t->scaling, t->best);
    if (!labels || !trained_with)
        status = sf_fail_memory(error);
    else
        status = sf_charcnn_save(output, &t->layout, t->parameters, labels, trained_with, error);
    free(labels);
    free(trained_with);
    if (status == SAFER_OK) unlink(t->checkpoint);
    return status;
}

sf_charcnn_plan sf_charcnn_plan_of(const safer_train_options *options)
{
    int large = strcmp(options->size, "large") == 0;
    return (sf_charcnn_plan){.features = large ? 1024 : 256, .hidden = large ? 2048 : 1024, .blanked = 0.3, .moved = 0.5,
                             .shift = SF_CHARCNN_POOL * SF_CHARCNN_POOL * SF_CHARCNN_POOL};
}

safer_status sf_charcnn_train_plan(const char *output, const safer_train_options *options, const sf_charcnn_plan *plan,
                                   safer_train_report *report, safer_error *error)
{
    safer_status status;
    double begin = sf_seconds(), seconds;
    uint64_t before;
    trainer *t = sf_calloc(1, sizeof *t);
    if (!t) return sf_fail_memory(error);
    t->options = options;
    t->plan = plan;
    SF_TRY(start(t, output, error));
    if (options->resume && access(t->checkpoint, F_OK) == 0) SF_TRY(read_checkpoint(t, error));
    before = t->steps;
    seconds = sf_seconds();
    SF_TRY(run(t, error));
    seconds = sf_seconds() - seconds;
    SF_TRY(save(t, output, error));
    *report = (safer_train_report){.texts = t->split.fit_count, .tokens = (size_t)count_characters(t), .parameters = t->layout.size,
                                   .epochs = t->epoch, .best_epoch = t->best_epoch, .loss = t->loss, .dev_accuracy = t->best_accuracy,
                                   .seconds = sf_seconds() - begin};
    report->tokens_per_second = (double)report->tokens * (double)(t->steps - before) / (double)steps_of_epoch(t);
    report->tokens_per_second /= seconds > 0 ? seconds : 1;
done:
    trainer_free(t);
    free(t);
    return status;
}

safer_status sf_charcnn_train(const char *output, const safer_train_options *options, safer_train_report *report, safer_error *error)
{
    const sf_charcnn_plan plan = sf_charcnn_plan_of(options);
    return sf_charcnn_train_plan(output, options, &plan, report, error);
}
