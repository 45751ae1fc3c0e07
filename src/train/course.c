/* A course of training: checkpoints, epochs, the report. course.h says what it is. */
#define _GNU_SOURCE
#include "train/course.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/rng.h"
#include "nn/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PURPOSE_ORDER = 1, CHECKPOINT_SECONDS = 300, STATE = 6 };

uint64_t sf_course_fingerprint(const double *numbers, size_t count, const float *parameters, size_t size,
                               const sf_train_split *split, const safer_train_options *options)
{
    uint64_t hash = sf_hash(numbers, count * sizeof *numbers, options->seed);
    hash = sf_hash(parameters, size * sizeof *parameters, hash); /* vectors, shapes */
    for (int dev = 0; dev < 2; dev++)
        for (size_t i = 0; i < (dev ? split->dev_count : split->fit_count); i++) {
            safer_row row = safer_data_row(dev ? split->dev_data : split->fit_data,
                                           dev ? split->dev[i] : split->fit[i]);
            hash = sf_hash(row.text, row.text_length, hash ^ (uint64_t)row.label);
        }
    const safer_deletion d = options->deletion;
    if (d.chance > 0) hash = sf_hash(&d.chance, sizeof d.chance, hash);
    if (d.groups) hash = sf_hash(&d.groups, sizeof d.groups, hash + 1);
    if (d.keep) hash = sf_hash(&d.keep, sizeof d.keep, hash);
    return options->lexicon ? sf_hash(options->lexicon->image.bytes, options->lexicon->image.length, hash) : hash;
}

static size_t batch_of(const sf_course *c) { return (size_t)c->options->course.batch; }
static uint64_t steps_of_epoch(const sf_course *c) { return (c->texts + batch_of(c) - 1) / batch_of(c); }

/* -------------------------------------------------------------- checkpoints */

static const char *const array_names[] = {"parameters", "means", "variances", "best"};
enum { ARRAYS = 4 };

static safer_status fetch(sf_course *c, safer_error *error)
{
    return c->methods->fetch ? c->methods->fetch(c, error) : SAFER_OK;
}

static safer_status write_checkpoint(sf_course *c, safer_error *error)
{
    char fingerprint[20];
    const double state[STATE] = {(double)c->steps, c->epoch, c->best_epoch, c->best_accuracy, c->loss, c->loss_sum};
    const float *arrays[ARRAYS] = {c->parameters, c->means, c->variances, c->best};
    sf_tensor tensors[ARRAYS + 1];
    for (int i = 0; i < ARRAYS; i++)
        tensors[i] = (sf_tensor){.name = array_names[i],
                                 .type = SF_F32,
                                 .rank = 1,
                                 .shape = {c->size},
                                 .count = c->size,
                                 .bytes = arrays[i]};
    tensors[ARRAYS] = (sf_tensor){
        .name = "state", .type = SF_F64, .rank = 1, .shape = {STATE}, .count = STATE, .bytes = state};
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, c->fingerprint);
    const sf_metadata metadata[] = {{"arch", "checkpoint"}, {"run", fingerprint}};
    const safer_status status = fetch(c, error);
    if (status != SAFER_OK) return status;
    c->saved_at = sf_seconds();
    return sf_safetensors_write(c->checkpoint, tensors, ARRAYS + 1, metadata, 2, error);
}

/* Whether these numbers can be those of a course with the present options: whole numbers of steps and epochs, a share
 * of dev texts, losses that are finite. */
static int is_state(const sf_course *c, const double s[STATE])
{
    double steps = (double)steps_of_epoch(c);
    for (int i = 0; i < 3; i++)
        if (!(s[i] >= 0 && s[i] < 0x1p53) || floor(s[i]) != s[i]) return 0;
    return s[1] <= 1e6 && s[2] <= s[1] && s[0] >= s[1] * steps && s[0] <= (s[1] + 1) * steps && s[3] >= 0 &&
           s[3] <= 1 && isfinite(s[4]) && isfinite(s[5]);
}

static safer_status read_checkpoint(sf_course *c, safer_error *error)
{
    safer_status status;
    sf_safetensors *file = NULL;
    char fingerprint[20];
    double state[STATE];
    float *arrays[ARRAYS] = {c->parameters, c->means, c->variances, c->best};
    const size_t numbers = STATE;
    const sf_tensor *tensor;
    SF_TRY(sf_safetensors_open(&file, c->checkpoint, error));
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, c->fingerprint);
    const char *run = sf_safetensors_metadata(file, "run");
    if (!run || strcmp(run, fingerprint) != 0) {
        status = sf_fail(error, SAFER_INPUT,
                         "%s is the checkpoint of a run with other options or data%s; remove it or do not resume",
                         c->checkpoint, c->other ? c->other : "");
        goto done;
    }
    for (int i = 0; i < ARRAYS; i++) {
        SF_TRY(sf_safetensors_require(&tensor, file, array_names[i], SF_F32, 1, &c->size, error));
        SF_TRY(sf_tensor_to_f32(arrays[i], tensor, file, error));
    }
    SF_TRY(sf_safetensors_require(&tensor, file, "state", SF_F64, 1, &numbers, error));
    memcpy(state, tensor->bytes, sizeof state);
    if (!is_state(c, state)) {
        status = sf_fail(error, SAFER_INPUT, "%s: tensor \"state\" holds no state of a run", c->checkpoint);
        goto done;
    }
    c->steps = (uint64_t)state[0];
    c->epoch = (int)state[1];
    c->best_epoch = (int)state[2];
    c->best_accuracy = state[3];
    c->loss = state[4];
    c->loss_sum = state[5];
    if (c->methods->changed) status = c->methods->changed(c, error);
done:
    sf_safetensors_free(file);
    return status;
}

/* -------------------------------------------------------------------- epochs */

static void shuffle(sf_course *c)
{
    sf_stream stream = sf_stream_of(c->options->seed, PURPOSE_ORDER, SF_STAGE_TRAINING);
    for (size_t i = 0; i < c->texts; i++) c->order[i] = (uint32_t)i;
    for (size_t i = c->texts; i > 1; i--) {
        uint32_t j = sf_draw_below(stream, (uint64_t)c->epoch, (uint32_t)i, (uint32_t)i), swap = c->order[i - 1];
        c->order[i - 1] = c->order[j];
        c->order[j] = swap;
    }
}

static void tell(sf_course *c, double loss, double accuracy)
{
    int length = snprintf(c->stage, sizeof c->stage, "epoch %d of %d", c->epoch + 1, c->options->course.epochs);
    if (loss >= 0) /* one of three hundred digits has no room */
        length += snprintf(c->stage + length, sizeof c->stage - (size_t)length,
                           loss < 1e9 ? ": loss %.3f" : ": loss %.3g", loss);
    if (accuracy < 0) return;
    char cut[8];
    sf_format_down(cut, accuracy, 4);
    snprintf(c->stage + length, sizeof c->stage - (size_t)length, "%s dev %s", loss >= 0 ? "," : ":", cut);
}

/* Linear both ways; never quite 0. */
static double rate_of_step(const sf_course *c)
{
    double total = (double)((uint64_t)c->options->course.epochs * steps_of_epoch(c)),
           rising = ceil(c->options->course.warmup * total), at = (double)c->steps;
    if (!c->falls) return c->options->course.rate;
    if (at <= rising) return c->options->course.rate * at / rising;
    return c->options->course.rate * (total + 1 - at) / (total + 1 - rising);
}

/* One step. Weights that a network no longer uses shrink without end: as denormal numbers they make
 * products several times slower and decide nothing. */
static safer_status take_step(sf_course *c, const uint32_t *texts, size_t count, safer_error *error)
{
    fenv_t before;
    sf_flush_denormals(&before);
    safer_status status = c->methods->step(c, texts, count, rate_of_step(c), &c->loss_sum, error);
    fesetenv(&before);
    return status;
}

/* What remains of the pass over the texts. A cancelled pass returns SAFER_OK: the caller asks the meter. */
static safer_status run_epoch(sf_course *c, double accuracy, safer_error *error)
{
    safer_status status = SAFER_OK;
    uint64_t before = (uint64_t)c->epoch * steps_of_epoch(c);
    shuffle(c);
    while (c->steps < before + steps_of_epoch(c)) {
        size_t first = (size_t)(c->steps - before) * batch_of(c), left = c->texts - first,
               count = left < batch_of(c) ? left : batch_of(c);
        c->steps++;
        SF_TRY(take_step(c, c->order + first, count, error));
        if (!isfinite(c->loss_sum)) {
            status = sf_fail(error, SAFER_INVALID, "the loss of epoch %d is not a finite number; lower `rate` (now %g)",
                             c->epoch + 1, c->options->course.rate);
            goto done;
        }
        tell(c, c->loss_sum / (double)(first + count), accuracy);
        if (sf_meter_add(&c->meter, count, 0)) return write_checkpoint(c, error);
        if (sf_seconds() - c->saved_at > CHECKPOINT_SECONDS) SF_TRY(write_checkpoint(c, error));
    }
    c->loss = c->loss_sum / (double)c->texts;
    c->loss_sum = 0;
done:
    return status;
}

static safer_status run_epochs(sf_course *c, safer_error *error)
{
    safer_status status = SAFER_OK;
    const safer_train_options *o = c->options;
    double accuracy = c->best_epoch ? c->best_accuracy : -1;
    size_t here = (size_t)(c->steps - (uint64_t)c->epoch * steps_of_epoch(c)) * batch_of(c);
    tell(c, -1, -1);
    c->saved_at = sf_seconds();
    sf_meter_start(&c->meter, &o->progress, c->stage, (uint64_t)o->course.epochs * c->texts);
    c->meter.last = 0; /* what was done before is reported at once, so that rates do not count it */
    sf_meter_add(&c->meter, (uint64_t)c->epoch * c->texts + (here < c->texts ? here : c->texts), 0);
    while (c->epoch < o->course.epochs && !(o->course.patience && c->epoch - c->best_epoch >= o->course.patience)) {
        if (sf_meter_cancelled(&c->meter)) break;
        SF_TRY(run_epoch(c, accuracy, error));
        if (sf_meter_cancelled(&c->meter)) break;
        SF_TRY(c->methods->measure(c, &accuracy, error));
        tell(c, c->loss, accuracy);
        c->epoch++;
        if (c->best_epoch == 0 || accuracy > c->best_accuracy) {
            c->best_epoch = c->epoch;
            c->best_accuracy = accuracy;
            SF_TRY(fetch(c, error));
            memcpy(c->best, c->parameters, c->size * sizeof *c->best);
        }
        SF_TRY(write_checkpoint(c, error));
        c->meter.last = 0; /* an epoch's result is always reported */
        sf_meter_add(&c->meter, 0, 0);
    }
    status = sf_meter_finish(&c->meter, error);
done:
    return status;
}

static safer_status save(sf_course *c, const char *output, safer_error *error)
{
    char *labels = sf_train_labels_json(c->options->train), *trained_with = sf_train_provenance_json(c->options);
    safer_status status = labels && trained_with ? c->methods->save(c, output, labels, trained_with, error)
                                                 : sf_fail_memory(error);
    free(labels);
    free(trained_with);
    if (status == SAFER_OK) unlink(c->checkpoint);
    return status;
}

static safer_status make_room(sf_course *c, const char *output, safer_error *error)
{
    c->means = sf_calloc(c->size, sizeof *c->means);
    c->variances = sf_calloc(c->size, sizeof *c->variances);
    c->best = sf_alloc_aligned(c->size, sizeof *c->best);
    c->order = sf_alloc(c->texts, sizeof *c->order);
    c->checkpoint = sf_alloc(strlen(output) + sizeof ".checkpoint", 1);
    if (!c->means || !c->variances || !c->best || !c->order || !c->checkpoint) return sf_fail_memory(error);
    sprintf(c->checkpoint, "%s.checkpoint", output);
    memcpy(c->best, c->parameters, c->size * sizeof *c->best);
    return SAFER_OK;
}

static safer_train_report report_of(const sf_course *c, double seconds)
{
    return (safer_train_report){.texts = c->texts,
                                .tokens = (size_t)(c->tokens ? c->tokens : c->read),
                                .parameters = c->model_size,
                                .epochs = c->epoch,
                                .best_epoch = c->best_epoch,
                                .loss = c->loss,
                                .dev_accuracy = c->best_accuracy,
                                .seconds = seconds,
                                .tokens_per_second = (double)c->read / (c->seconds > 0 ? c->seconds : 1)};
}

static safer_status run(sf_course *c, const char *output, safer_train_report *report, safer_error *error)
{
    safer_status status;
    const double begin = sf_seconds();
    SF_TRY(c->methods->start(c, error));
    SF_TRY(make_room(c, output, error));
    if (c->options->resume && access(c->checkpoint, F_OK) == 0) SF_TRY(read_checkpoint(c, error));
    c->seconds = sf_seconds();
    SF_TRY(run_epochs(c, error));
    c->seconds = sf_seconds() - c->seconds;
    memcpy(c->parameters, c->best, c->size * sizeof *c->best);
    SF_TRY(save(c, output, error));
    *report = report_of(c, sf_seconds() - begin);
done:
    return status;
}

safer_status sf_course_train(const sf_course_methods *methods, const void *plan, const char *output,
                             const safer_train_options *options, safer_train_report *report, safer_error *error)
{
    sf_course *c = sf_calloc(1, methods->size);
    if (!c) return sf_fail_memory(error);
    c->methods = methods;
    c->options = options;
    c->plan = plan;
    safer_status status = run(c, output, report, error);
    methods->free(c);
    void *owned[] = {c->means, c->variances, c->best, c->order, c->checkpoint};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
    free(c);
    return status;
}
