/* The `bert` classifier: training.
 *
 * Every mini-batch sees fresh draws of its texts (the sample number is the epoch). The rate
 * rises from 0 over the first steps and falls back to 0 at the last (linearly both), so the
 * number of epochs is part of the run. After every epoch the model is measured on one draw
 * of each dev text, the same from epoch to epoch, and the best epoch is kept.
 *
 * All randomness is a function of the seed and of counters. The state of a run is: the
 * trained parameters, Adam's moments, the best parameters and a few numbers. It is written
 * beside the output every few minutes, after every epoch and when the run is interrupted;
 * going on from it gives the same file as never having stopped. */
#define _GNU_SOURCE
#include "model/bert.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "model/drawn.h"
#include "model/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PURPOSE_ORDER = 2, PURPOSE_HEAD = 3, DEV_SAMPLE = 1 << 30, CHECKPOINT_SECONDS = 300, DEV_GROUP = 8 };

/* Memory of one thread for drawing and measuring. */
typedef struct reader {
    sf_drawn drawn;
    sf_ids encoded;
    sf_wordpiece_scratch wordpiece;
    sf_bert_scratch *net;
} reader;

typedef struct trainer {
    const safer_train_options *options;
    sf_train_split split;
    sf_bert_checkpoint start; /* its parameters are moved to the layout below */
    sf_bert_layout layout;
    float *parameters, *means, *variances, *best; /* the last three: of what is trained */
    size_t first, trained; /* parameters */
    sf_bert_step *step;
    uint64_t fingerprint;
    char *checkpoint;
    double saved_at;

    uint32_t *order;
    uint32_t *ids;     /* (batch, tokens): drawn texts, then moved together */
    size_t *lengths, *offsets;
    int *labels;
    reader *readers;
    size_t batch_first;
    atomic_int failed;

    /* The state. */
    uint64_t steps;
    int epoch, best_epoch;
    double best_accuracy, loss, loss_sum; /* of the last epoch; of this one so far */
    uint64_t pieces; /* read in this run */

    sf_meter meter;
    char stage[96];
} trainer;

static void trainer_free(trainer *t)
{
    for (int i = 0; t->readers && i < sf_threads(t->options->threads); i++) {
        sf_drawn_free(&t->readers[i].drawn);
        sf_ids_free(&t->readers[i].encoded);
        sf_wordpiece_scratch_free(&t->readers[i].wordpiece);
        sf_bert_scratch_free(t->readers[i].net);
    }
    sf_bert_step_free(t->step);
    sf_train_split_free(&t->split);
    sf_bert_checkpoint_free(&t->start);
    sf_bert_layout_free(&t->layout);
    free(t->parameters);
    free(t->means);
    free(t->variances);
    free(t->best);
    free(t->checkpoint);
    free(t->order);
    free(t->ids);
    free(t->lengths);
    free(t->offsets);
    free(t->labels);
    free(t->readers);
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

/* Parameters of the model to train: the encoder's, and a head that is new unless the
 * start has one for the same labels. */
static safer_status take_parameters(trainer *t, safer_error *error)
{
    const safer_train_options *o = t->options;
    const sf_bert_layout *from = &t->start.layout;
    sf_bert_shape shape = from->shape;
    int keep_head = same_labels(t);
    shape.classes = safer_data_label_count(o->train);
    if (o->pool) shape.pool = strcmp(o->pool, "mean") == 0 ? SF_POOL_MEAN : SF_POOL_CLS;
    if (o->tokens && ((size_t)o->tokens > shape.positions || o->tokens < 3))
        return sf_fail(error, SAFER_INVALID, "tokens is %d; it must be from 3 to the encoder's %zu positions", o->tokens, shape.positions);
    if (o->tokens) shape.tokens = (size_t)o->tokens;
    size_t layers = sf_train_layers(o);
    if (layers != SIZE_MAX && layers > shape.layers)
        return sf_fail(error, SAFER_INVALID, "train_layers is %zu, but the encoder has %zu layers", layers, shape.layers);
    if (sf_bert_layout_make(&t->layout, &shape)) return sf_fail_memory(error);
    t->parameters = sf_alloc_aligned(t->layout.size, sizeof *t->parameters);
    if (!t->parameters) return sf_fail_memory(error);
    for (size_t i = 0; i < t->layout.tensor_count; i++) {
        const sf_bert_tensor *to = &t->layout.tensors[i], *source = NULL;
        for (size_t k = 0; k < from->tensor_count; k++)
            if (strcmp(from->tensors[k].name, to->name) == 0) source = &from->tensors[k];
        int head = to->offset == t->layout.classifier_weight || to->offset == t->layout.classifier_bias;
        if (source && (!head || keep_head)) memcpy(t->parameters + to->offset, t->start.parameters + source->offset, to->count * sizeof(float));
        else if (to->rank == 2) first_head(t->parameters + to->offset, to->count, o->seed);
        else memset(t->parameters + to->offset, 0, to->count * sizeof(float));
    }
    free(t->start.parameters);
    t->start.parameters = NULL;
    return SAFER_OK;
}

/* Everything that decides how a run goes; a checkpoint of another run is refused. */
static uint64_t fingerprint_of(const trainer *t)
{
    const safer_train_options *o = t->options;
    double numbers[] = {o->rate, o->decay, o->dropout, o->clip, o->warmup, (double)o->batch, (double)o->epochs, (double)t->first,
                        (double)t->layout.shape.tokens, (double)t->layout.shape.pool, (double)strlen(o->precision)};
    uint64_t hash = sf_hash(numbers, sizeof numbers, o->seed);
    hash = sf_hash(t->parameters, t->layout.size * sizeof *t->parameters, hash);
    const safer_data *parts[] = {t->split.fit_data, t->split.dev_data};
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < (i ? t->split.dev_count : t->split.fit_count); k++) {
            safer_row row = safer_data_row(parts[i], i ? t->split.dev[k] : t->split.fit[k]);
            hash = sf_hash(row.text, row.text_length, hash ^ (uint64_t)row.label);
        }
    return o->lexicon ? sf_hash(o->lexicon->image.bytes, o->lexicon->image.length, hash) : hash;
}

static safer_status start(trainer *t, const char *output, safer_error *error)
{
    safer_status status;
    const safer_train_options *o = t->options;
    SF_TRY(sf_isa_check(error));
    SF_TRY(sf_train_split_make(&t->split, o, error));
    SF_TRY(sf_bert_checkpoint_open(&t->start, o->encoder, error));
    SF_TRY(take_parameters(t, error));
    size_t batch = (size_t)o->batch < t->split.fit_count ? (size_t)o->batch : t->split.fit_count, tokens = t->layout.shape.tokens;
    sf_bert_options options = {.layers = sf_train_layers(o), .decay = o->decay, .clip = o->clip, .dropout = (float)o->dropout,
                               .type = strcmp(o->precision, "f32") == 0 ? SF_F32 : SF_BF16, .threads = o->threads, .seed = o->seed};
    SF_TRY(sf_bert_step_new(&t->step, &t->layout, t->parameters, &options, batch, batch * tokens, error));
    t->first = sf_bert_step_first(t->step);
    t->trained = t->layout.size - t->first;
    t->means = sf_calloc(t->trained, sizeof *t->means);
    t->variances = sf_calloc(t->trained, sizeof *t->variances);
    t->best = sf_alloc_aligned(t->trained, sizeof *t->best);
    t->order = sf_alloc(t->split.fit_count, sizeof *t->order);
    t->ids = sf_alloc(batch * tokens, sizeof *t->ids);
    t->lengths = sf_alloc(batch, sizeof *t->lengths);
    t->offsets = sf_calloc(batch + 1, sizeof *t->offsets);
    t->labels = sf_alloc(batch, sizeof *t->labels);
    t->readers = sf_calloc((size_t)sf_threads(o->threads), sizeof *t->readers);
    t->checkpoint = sf_alloc(strlen(output) + sizeof ".checkpoint", 1);
    if (!t->means || !t->variances || !t->best || !t->order || !t->ids || !t->lengths || !t->offsets || !t->labels || !t->readers ||
        !t->checkpoint) {
        status = sf_fail_memory(error);
        goto done;
    }
    sprintf(t->checkpoint, "%s.checkpoint", output);
    for (int i = 0; i < sf_threads(o->threads); i++)
        SF_TRY(sf_bert_scratch_new(&t->readers[i].net, sf_bert_step_net(t->step), error));
    memcpy(t->best, t->parameters + t->first, t->trained * sizeof *t->best);
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
    const float *arrays[] = {t->parameters + t->first, t->means, t->variances, t->best};
    const char *names[] = {"parameters", "means", "variances", "best"};
    sf_tensor tensors[5];
    for (int i = 0; i < 4; i++)
        tensors[i] = (sf_tensor){.name = names[i], .type = SF_F32, .rank = 1, .shape = {t->trained}, .count = t->trained, .bytes = arrays[i]};
    tensors[4] = (sf_tensor){.name = "state", .type = SF_F64, .rank = 1, .shape = {STATE}, .count = STATE, .bytes = state};
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, t->fingerprint);
    const sf_metadata metadata[] = {{"arch", "checkpoint"}, {"run", fingerprint}};
    t->saved_at = sf_seconds();
    return sf_safetensors_write(t->checkpoint, tensors, 5, metadata, 2, error);
}

static safer_status read_checkpoint(trainer *t, safer_error *error)
{
    safer_status status;
    sf_safetensors *file = NULL;
    char fingerprint[20];
    double state[STATE];
    float *arrays[] = {t->parameters + t->first, t->means, t->variances, t->best};
    const char *names[] = {"parameters", "means", "variances", "best"}, *run;
    const size_t numbers = STATE;
    const sf_tensor *tensor;
    uint64_t steps = (t->split.fit_count + (size_t)t->options->batch - 1) / (size_t)t->options->batch;
    SF_TRY(sf_safetensors_open(&file, t->checkpoint, error));
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, t->fingerprint);
    run = sf_safetensors_metadata(file, "run");
    if (!run || strcmp(run, fingerprint) != 0) {
        status = sf_fail(error, SAFER_INPUT, "%s is the checkpoint of a run with other options or data; remove it or do not resume",
                         t->checkpoint);
        goto done;
    }
    for (int i = 0; i < 4; i++) {
        SF_TRY(sf_safetensors_require(&tensor, file, names[i], SF_F32, 1, &t->trained, error));
        SF_TRY(sf_tensor_to_f32(arrays[i], tensor, file, error));
    }
    SF_TRY(sf_safetensors_require(&tensor, file, "state", SF_F64, 1, &numbers, error));
    memcpy(state, tensor->bytes, sizeof state);
    if (!(state[0] >= 0 && state[0] < 0x1p53 && state[1] >= 0 && state[1] <= t->options->epochs && state[2] >= 0 && state[2] <= state[1] &&
          state[0] >= state[1] * (double)steps && state[0] <= (state[1] + 1) * (double)steps)) {
        status = sf_fail(error, SAFER_INPUT, "%s: tensor \"state\" holds no state of a run", t->checkpoint);
        goto done;
    }
    t->steps = (uint64_t)state[0];
    t->epoch = (int)state[1];
    t->best_epoch = (int)state[2];
    t->best_accuracy = state[3];
    t->loss = state[4];
    t->loss_sum = state[5];
    sf_bert_step_refresh(t->step);
done:
    sf_safetensors_free(file);
    return status;
}

/* -------------------------------------------------------------------- texts */

/* A drawn text as pieces with [CLS] and [SEP]; returns how many, SIZE_MAX without memory. */
static size_t draw_text(uint32_t *ids, const trainer *t, reader *r, const safer_data *data, size_t row_number, uint64_t sample)
{
    safer_row row = safer_data_row(data, row_number);
    sf_wordpiece_specials special = sf_wordpiece_special(t->start.wordpiece);
    r->encoded.count = 0;
    if (sf_drawn_text(&r->drawn, t->options->lexicon, row.text, row.text_length, t->options->seed, sample, NULL) != SAFER_OK ||
        sf_wordpiece_encode(&r->encoded, t->start.wordpiece, r->drawn.text.bytes, r->drawn.text.length, t->layout.shape.tokens - 2, &r->wordpiece))
        return SIZE_MAX;
    ids[0] = special.cls;
    if (r->encoded.count) memcpy(ids + 1, r->encoded.ids, r->encoded.count * sizeof *ids);
    ids[r->encoded.count + 1] = special.sep;
    return r->encoded.count + 2;
}

static void draw_texts(void *context, size_t begin, size_t end, int worker)
{
    trainer *t = context;
    for (size_t b = begin; b < end; b++) {
        size_t row = t->split.fit[t->order[t->batch_first + b]];
        t->labels[b] = safer_data_row(t->split.fit_data, row).label;
        t->lengths[b] = draw_text(t->ids + b * t->layout.shape.tokens, t, &t->readers[worker], t->split.fit_data, row, (uint64_t)t->epoch);
        if (t->lengths[b] == SIZE_MAX) atomic_store(&t->failed, 1);
    }
}

/* ---------------------------------------------------------------------- dev */

typedef struct measuring {
    trainer *t;
    atomic_size_t right;
} measuring;

static void measure_texts(void *context, size_t begin, size_t end, int worker)
{
    measuring *m = context;
    trainer *t = m->t;
    const sf_bert_net *net = sf_bert_step_net(t->step);
    size_t H = t->layout.shape.hidden, C = t->layout.shape.classes, tokens = t->layout.shape.tokens, offsets[DEV_GROUP + 1] = {0};
    uint32_t *ids = sf_alloc(DEV_GROUP * tokens, sizeof *ids);
    float *features = sf_alloc_aligned(DEV_GROUP * H, sizeof *features), *logits = sf_alloc(DEV_GROUP * C, sizeof *logits);
    if (!ids || !features || !logits) atomic_store(&t->failed, 1);
    for (size_t first = begin; !atomic_load(&t->failed) && first < end; first += DEV_GROUP) {
        size_t count = end - first < DEV_GROUP ? end - first : DEV_GROUP;
        for (size_t i = 0; i < count; i++) {
            size_t length = draw_text(ids + offsets[i], t, &t->readers[worker], t->split.dev_data, t->split.dev[first + i], DEV_SAMPLE);
            if (length == SIZE_MAX) atomic_store(&t->failed, 1);
            offsets[i + 1] = offsets[i] + (length == SIZE_MAX ? 2 : length);
        }
        if (atomic_load(&t->failed)) break;
        sf_bert_batch batch = {ids, offsets, count};
        sf_bert_features(features, net, &batch, t->readers[worker].net);
        sf_bert_logits(logits, net, features, count);
        for (size_t i = 0; i < count; i++) {
            size_t best = 0;
            for (size_t c = 1; c < C; c++)
                if (logits[i * C + c] > logits[i * C + best]) best = c;
            atomic_fetch_add(&m->right, (int)best == safer_data_row(t->split.dev_data, t->split.dev[first + i]).label);
        }
    }
    free(ids);
    free(features);
    free(logits);
}

static safer_status measure(double *accuracy, trainer *t, safer_error *error)
{
    measuring m = {.t = t};
    sf_parallel(t->options->threads, t->split.dev_count, DEV_GROUP, measure_texts, &m);
    if (atomic_load(&t->failed)) return sf_fail_memory(error);
    *accuracy = (double)atomic_load(&m.right) / (double)t->split.dev_count;
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
    size_t batch = (size_t)t->options->batch, fit = t->split.fit_count, steps = (fit + batch - 1) / batch;
    shuffle(t);
    while (t->steps < ((uint64_t)t->epoch + 1) * steps) {
        size_t first = (size_t)(t->steps - (uint64_t)t->epoch * steps) * batch, count = fit - first < batch ? fit - first : batch;
        t->batch_first = first;
        sf_parallel(t->options->threads, count, 1, draw_texts, t);
        if (atomic_load(&t->failed)) return sf_fail_memory(error);
        for (size_t b = 0; b < count; b++) { /* together, without gaps */
            memmove(t->ids + t->offsets[b], t->ids + b * t->layout.shape.tokens, t->lengths[b] * sizeof *t->ids);
            t->offsets[b + 1] = t->offsets[b] + t->lengths[b];
        }
        sf_bert_batch texts = {t->ids, t->offsets, count};
        t->loss_sum += sf_bert_step_gradient(t->step, &texts, t->labels, t->steps + 1);
        if (!isfinite(t->loss_sum))
            return sf_fail(error, SAFER_INVALID, "the loss of epoch %d is not a finite number; lower rate (now %g)", t->epoch + 1,
                           t->options->rate);
        t->steps++;
        sf_bert_step_update(t->step, t->means, t->variances, rate_at(t, t->steps, (uint64_t)t->options->epochs * steps), t->steps);
        t->pieces += t->offsets[count];
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
    double accuracy = t->best_epoch ? t->best_accuracy : -1;
    size_t batch = (size_t)o->batch, fit = t->split.fit_count, steps = (fit + batch - 1) / batch;
    size_t done_here = (size_t)(t->steps - (uint64_t)t->epoch * steps) * batch;
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
            memcpy(t->best, t->parameters + t->first, t->trained * sizeof *t->best);
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
    memcpy(t->parameters + t->first, t->best, t->trained * sizeof *t->best);
    if (!labels || !trained_with) status = sf_fail_memory(error);
    else status = sf_bert_save(output, &t->layout, t->parameters, t->start.wordpiece, labels, trained_with, error);
    free(labels);
    free(trained_with);
    if (status == SAFER_OK) unlink(t->checkpoint);
    return status;
}

safer_status sf_bert_train(const char *output, const safer_train_options *options, safer_train_report *report, safer_error *error)
{
    safer_status status;
    double begin = sf_seconds(), seconds;
    trainer *t = sf_calloc(1, sizeof *t);
    if (!t) return sf_fail_memory(error);
    t->options = options;
    SF_TRY(start(t, output, error));
    if (options->resume && access(t->checkpoint, F_OK) == 0) SF_TRY(read_checkpoint(t, error));
    seconds = sf_seconds();
    SF_TRY(run(t, error));
    seconds = sf_seconds() - seconds;
    SF_TRY(save(t, output, error));
    *report = (safer_train_report){.texts = t->split.fit_count, .tokens = t->pieces, .parameters = t->layout.size, .epochs = t->epoch,
                                   .best_epoch = t->best_epoch, .loss = t->loss, .dev_accuracy = t->best_accuracy,
                                   .seconds = sf_seconds() - begin, .tokens_per_second = (double)t->pieces / (seconds > 0 ? seconds : 1)};
done:
    trainer_free(t);
    free(t);
    return status;
}
