/* The `bow` and `cnn` classifiers: training.
 *
 * Every mini-batch sees fresh draws of its texts (the sample number is the epoch); after
 * every epoch the model is measured on draws of the dev texts that stay the same from
 * epoch to epoch, with the code that will answer later. The best epoch is kept.
 *
 * All randomness (order, draws, dropout, first weights) is a function of the seed and of
 * counters, so the whole state of a run is: parameters, Adam's moments, the best
 * parameters so far and five numbers. That is the checkpoint, written after every epoch
 * beside the output; going on from it gives the same file as never having stopped. */
#define _GNU_SOURCE
#include "model/cnn.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "lexicon/vectors.h"
#include "model/texts.h"
#include "nn/layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEV_DRAWS = 8 }; /* of each dev text */
#define DEV_SAMPLE (UINT64_C(1) << 32) /* the first: epochs stay below */

/* What random numbers other than draws and dropout are for. */
enum { PURPOSE_ORDER = 1, PURPOSE_WEIGHTS = 2 };

typedef struct trainer {
    const safer_train_options *options;
    sf_textset corpus;
    sf_cnn_layout layout;
    float *parameters, *means, *variances, *best; /* (size) each */
    float *scale;                                 /* (features) */
    sf_cnn_step *step;

    /* One batch. */
    uint32_t *order; /* (texts): of the epoch */
    uint32_t *ids;
    size_t *offsets;
    int *labels;
    size_t batch_first;

    /* The state, all of it in the checkpoint. */
    int epoch;      /* done */
    uint64_t steps; /* done */
    int best_epoch;
    double best_accuracy;
    double loss; /* of the last epoch */

    uint64_t fingerprint;
    char *checkpoint; /* its path */
    char stage[160];
    sf_meter meter;
} trainer;

static void trainer_free(trainer *t)
{
    sf_textset_free(&t->corpus);
    free(t->parameters);
    free(t->means);
    free(t->variances);
    free(t->best);
    free(t->scale);
    sf_cnn_step_free(t->step);
    free(t->order);
    free(t->ids);
    free(t->offsets);
    free(t->labels);
    free(t->checkpoint);
}

/* ------------------------------------------------------------ first weights */

static void random_fill(float *out, size_t count, double range, uint64_t seed, uint64_t tensor)
{
    sf_stream stream = sf_stream_of(seed, PURPOSE_WEIGHTS, SF_STAGE_TRAINING);
    for (size_t i = 0; i < count; i++) out[i] = (float)(range * (2 * sf_draw_unit(stream, tensor << 48 | i, 0) - 1));
}

/* As PyTorch does it: uniform within 1/sqrt(inputs); biases 0; word vectors that no file
 * gives within 0.1. */
static void first_weights(trainer *t, const sf_vectors *vectors)
{
    const sf_cnn_layout *l = &t->layout;
    size_t D = l->shape.dim;
    memset(t->parameters, 0, l->size * sizeof *t->parameters);
    for (size_t i = 0; i < l->tensor_count; i++) {
        size_t rank = l->tensors[i].rank;
        const size_t *shape = l->tensors[i].shape;
        double inputs = rank == 3 ? (double)(shape[0] * shape[2]) : (double)shape[1]; /* (width, filters, dim) */
        if (rank > 1)
            random_fill(t->parameters + l->tensors[i].offset, l->tensors[i].count, i == 0 ? 0.1 : 1 / sqrt(inputs), t->options->seed, i);
    }
    for (uint32_t w = 0; vectors && w < t->corpus.words.count; w++) {
        uint32_t at = sf_words_find(&vectors->words, sf_words_string(&t->corpus.words, w), sf_words_length(&t->corpus.words, w));
        if (at != SF_NONE)
            memcpy(t->parameters + l->embedding + ((size_t)w + 1) * D, vectors->values + at * D, D * sizeof *t->parameters);
    }
}

static safer_status read_vectors(sf_vectors *out, const trainer *t, safer_error *error)
{
    sf_file file = {0};
    safer_status status;
    SF_TRY(sf_file_read(&file, t->options->vectors, error));
    SF_TRY(sf_vectors_parse(out, file.bytes, file.length, t->options->vectors, &t->corpus.words, t->options->threads, error));
done:
    sf_file_free(&file);
    return status;
}

/* -------------------------------------------------------------------- start */

static void read_shape(sf_cnn_shape *s, const trainer *t, size_t dim)
{
    const safer_train_options *o = t->options;
    s->convolution = strcmp(o->arch, "cnn") == 0;
    s->max_pool = strcmp(o->pool, "max") == 0;
    s->vocabulary = (size_t)t->corpus.words.count + 1;
    s->dim = dim;
    s->hidden = (size_t)o->hidden;
    s->classes = safer_data_label_count(o->train);
    s->max_words = o->max_words && o->max_words < SF_LOOKUP_POSITIONS ? (size_t)o->max_words : SF_LOOKUP_POSITIONS;
    if (s->convolution) {
        s->filters = (size_t)o->filters;
        for (const char *at = o->widths; *at && s->width_count < SF_CNN_WIDTHS; at += *at == ',') {
            size_t width = 0;
            while (*at >= '0' && *at <= '9') width = 10 * width + (size_t)(*at++ - '0');
            s->widths[s->width_count++] = width;
        }
    } else {
        s->width_count = s->widths[0] = 1;
        s->filters = dim;
    }
}

static int falling(const void *left, const void *right)
{
    const size_t *a = left, *b = right;
    return *a < *b ? 1 : *a > *b ? -1 : 0;
}

/* The words of the longest `batch` texts together: no batch has more. */
static size_t most_words(const sf_texts *texts, size_t batch)
{
    size_t sum = 0, *lengths = sf_alloc(texts->count, sizeof *lengths);
    if (!lengths) return SIZE_MAX;
    for (size_t i = 0; i < texts->count; i++) lengths[i] = texts->offsets[i + 1] - texts->offsets[i];
    qsort(lengths, texts->count, sizeof *lengths, falling);
    for (size_t i = 0; i < batch && i < texts->count; i++) sum += lengths[i];
    free(lengths);
    return sum;
}

/* Everything that decides how a run goes; a checkpoint of another run is refused. */
static uint64_t fingerprint_of(const trainer *t)
{
    const safer_train_options *o = t->options;
    const sf_texts *parts[] = {&t->corpus.fit, &t->corpus.dev};
    double numbers[] = {o->rate, o->decay, o->dropout, (double)o->batch, (double)o->freeze, (double)t->layout.shape.max_pool,
                        (double)t->layout.shape.convolution, (double)t->layout.size};
    uint64_t hash = sf_hash(numbers, sizeof numbers, o->seed);
    hash = sf_hash(t->parameters, t->layout.size * sizeof *t->parameters, hash); /* vectors, shapes */
    for (int i = 0; i < 2; i++) {
        size_t tokens = parts[i]->offsets[parts[i]->count];
        if (tokens) hash = sf_hash(parts[i]->tokens, tokens * sizeof *parts[i]->tokens, hash);
        hash = sf_hash(parts[i]->hashes, parts[i]->count * sizeof *parts[i]->hashes, hash);
        hash = sf_hash(parts[i]->labels, parts[i]->count * sizeof *parts[i]->labels, hash);
    }
    return o->lexicon ? sf_hash(o->lexicon->image.bytes, o->lexicon->image.length, hash) : hash;
}

static safer_status start(trainer *t, const char *output, safer_error *error)
{
    safer_status status;
    const safer_train_options *o = t->options;
    sf_train_split split = {0};
    sf_vectors vectors = {0};
    sf_cnn_shape shape = {0};
    size_t batch = (size_t)o->batch, words;
    SF_TRY(sf_train_split_make(&split, o, error));
    SF_TRY(sf_textset_read(&t->corpus, &split, o->lexicon,
                          o->max_words && o->max_words < SF_LOOKUP_POSITIONS ? (size_t)o->max_words : SF_LOOKUP_POSITIONS,
                          (size_t)o->min_count, error));
    if (o->vectors) SF_TRY(read_vectors(&vectors, t, error));
    if (o->vectors && vectors.words.count == 0) {
        status = sf_fail(error, SAFER_INPUT, "%s: not one word of the training texts has a vector there", o->vectors);
        goto done;
    }
    read_shape(&shape, t, o->vectors ? vectors.dim : (size_t)o->dim);
    sf_cnn_layout_make(&t->layout, &shape);
    if (batch > t->corpus.fit.count) batch = t->corpus.fit.count;
    words = most_words(&t->corpus.fit, batch);
    if (words == SIZE_MAX) goto no_memory;
    if (words > UINT32_MAX) {
        status = sf_fail(error, SAFER_INVALID, "batch is %d: the longest texts have %zu words together; lower it or give max_words",
                         o->batch, words);
        goto done;
    }
    t->parameters = sf_alloc_aligned(t->layout.size, sizeof *t->parameters);
    t->means = sf_calloc(t->layout.size, sizeof *t->means);
    t->variances = sf_calloc(t->layout.size, sizeof *t->variances);
    t->best = sf_alloc_aligned(t->layout.size, sizeof *t->best);
    t->scale = sf_alloc(t->layout.features, sizeof *t->scale);
    t->order = sf_alloc(t->corpus.fit.count, sizeof *t->order);
    t->ids = sf_alloc(words, sizeof *t->ids);
    t->offsets = sf_calloc(batch + 1, sizeof *t->offsets);
    t->labels = sf_alloc(batch, sizeof *t->labels);
    t->checkpoint = sf_alloc(strlen(output) + sizeof ".checkpoint", 1);
    if (!t->parameters || !t->means || !t->variances || !t->best || !t->scale || !t->order || !t->ids || !t->offsets || !t->labels ||
        !t->checkpoint)
        goto no_memory;
    sprintf(t->checkpoint, "%s.checkpoint", output);
    first_weights(t, o->vectors ? &vectors : NULL);
    memcpy(t->best, t->parameters, t->layout.size * sizeof *t->best);
    t->fingerprint = fingerprint_of(t);
    sf_cnn_options step = {.rate = o->rate, .decay = o->decay, .dropout = (float)o->dropout, .freeze = o->freeze, .threads = o->threads,
                           .seed = o->seed};
    status = sf_cnn_step_new(&t->step, &t->layout, &step, batch, words, error);
    goto done;
no_memory:
    status = sf_fail_memory(error);
done:
    sf_train_split_free(&split);
    sf_vectors_free(&vectors);
    return status;
}

/* -------------------------------------------------------------- checkpoints */

enum { STATE = 5 };

static safer_status write_checkpoint(const trainer *t, safer_error *error)
{
    char fingerprint[20];
    const double state[STATE] = {t->epoch, (double)t->steps, t->best_epoch, t->best_accuracy, t->loss};
    const float *arrays[] = {t->parameters, t->means, t->variances, t->best};
    const char *names[] = {"parameters", "means", "variances", "best"};
    sf_tensor tensors[5];
    for (int i = 0; i < 4; i++)
        tensors[i] = (sf_tensor){.name = names[i], .type = SF_F32, .rank = 1, .shape = {t->layout.size}, .count = t->layout.size,
                                 .bytes = arrays[i]};
    tensors[4] = (sf_tensor){.name = "state", .type = SF_F64, .rank = 1, .shape = {STATE}, .count = STATE, .bytes = state};
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, t->fingerprint);
    const sf_metadata metadata[] = {{"arch", "checkpoint"}, {"run", fingerprint}};
    return sf_safetensors_write(t->checkpoint, tensors, 5, metadata, 2, error);
}

static safer_status read_checkpoint(trainer *t, safer_error *error)
{
    safer_status status;
    sf_safetensors *file = NULL;
    char fingerprint[20];
    double state[STATE];
    float *arrays[] = {t->parameters, t->means, t->variances, t->best};
    const char *names[] = {"parameters", "means", "variances", "best"}, *run;
    const size_t numbers = STATE;
    const sf_tensor *tensor;
    SF_TRY(sf_safetensors_open(&file, t->checkpoint, error));
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, t->fingerprint);
    run = sf_safetensors_metadata(file, "run");
    if (!run || strcmp(run, fingerprint) != 0) {
        status = sf_fail(error, SAFER_INPUT, "%s is the checkpoint of a run with other options or data; remove it or do not resume",
                         t->checkpoint);
        goto done;
    }
    for (int i = 0; i < 4; i++) {
        SF_TRY(sf_safetensors_require(&tensor, file, names[i], SF_F32, 1, &t->layout.size, error));
        SF_TRY(sf_tensor_to_f32(arrays[i], tensor, file, error));
    }
    SF_TRY(sf_safetensors_require(&tensor, file, "state", SF_F64, 1, &numbers, error));
    memcpy(state, tensor->bytes, sizeof state);
    if (!(state[0] >= 1 && state[0] <= 1e6 && state[1] >= 1 && state[1] < 0x1p53 && state[2] >= 0 && state[2] <= state[0])) {
        status = sf_fail(error, SAFER_INPUT, "%s: tensor \"state\" holds no state of a run", t->checkpoint);
        goto done;
    }
    t->epoch = (int)state[0];
    t->steps = (uint64_t)state[1];
    t->best_epoch = (int)state[2];
    t->best_accuracy = state[3];
    t->loss = state[4];
done:
    sf_safetensors_free(file);
    return status;
}

/* ---------------------------------------------------------------------- dev */

typedef struct measuring {
    trainer *t;
    const sf_cnn_net *net;
    sf_cnn_scratch **scratch; /* one a worker */
    uint32_t *ids;            /* (workers, longest) */
    int draws;
    atomic_size_t right;
    atomic_int failed;
} measuring;

static void measure_texts(void *context, size_t begin, size_t end, int worker)
{
    measuring *m = context;
    const sf_texts *dev = &m->t->corpus.dev;
    uint32_t *ids = m->ids + (size_t)worker * dev->longest;
    size_t right = 0;
    for (size_t i = begin; i < end; i++)
        for (int k = 0; k < m->draws; k++) {
            int label;
            size_t count = sf_textset_draw(ids, &m->t->corpus, dev, i, m->t->options->seed, DEV_SAMPLE + (uint64_t)k);
            if (sf_cnn_classify_ids(&label, NULL, m->net, ids, count, m->scratch[worker], NULL) != SAFER_OK) atomic_store(&m->failed, 1);
            else right += label == dev->labels[i];
        }
    atomic_fetch_add(&m->right, right);
}

/* The share of draws of dev texts that the present parameters classify rightly. */
static safer_status measure(double *accuracy, trainer *t, safer_error *error)
{
    safer_status status = SAFER_OK;
    int threads = sf_threads(t->options->threads);
    sf_cnn_net *net = NULL;
    measuring m = {.t = t, .draws = t->options->lexicon ? DEV_DRAWS : 1};
    m.scratch = sf_calloc((size_t)threads, sizeof *m.scratch);
    m.ids = sf_alloc((size_t)threads * t->corpus.dev.longest, sizeof *m.ids);
    if (!m.scratch || !m.ids || sf_cnn_scales(t->scale, &t->layout, t->parameters, threads)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_cnn_net_new(&net, &t->layout, t->parameters, t->scale, error));
    m.net = net;
    for (int i = 0; i < threads; i++) SF_TRY(sf_cnn_scratch_new(net, &m.scratch[i], error));
    sf_parallel(threads, t->corpus.dev.count, 16, measure_texts, &m);
    if (atomic_load(&m.failed)) status = sf_fail_memory(error);
    *accuracy = (double)atomic_load(&m.right) / ((double)t->corpus.dev.count * m.draws);
done:
    for (int i = 0; m.scratch && i < threads; i++) sf_cnn_scratch_free(m.scratch[i]);
    free(m.scratch);
    free(m.ids);
    sf_cnn_net_free(net);
    return status;
}

/* -------------------------------------------------------------------- epochs */

static void shuffle(trainer *t)
{
    sf_stream stream = sf_stream_of(t->options->seed, PURPOSE_ORDER, SF_STAGE_TRAINING);
    size_t count = t->corpus.fit.count;
    for (size_t i = 0; i < count; i++) t->order[i] = (uint32_t)i;
    for (size_t i = count; i > 1; i--) {
        uint32_t j = sf_draw_below(stream, (uint64_t)t->epoch, (uint32_t)i, (uint32_t)i), swap = t->order[i - 1];
        t->order[i - 1] = t->order[j];
        t->order[j] = swap;
    }
}

static void draw_texts(void *context, size_t begin, size_t end, int worker)
{
    trainer *t = context;
    (void)worker;
    for (size_t b = begin; b < end; b++)
        sf_textset_draw(t->ids + t->offsets[b], &t->corpus, &t->corpus.fit, t->order[t->batch_first + b], t->options->seed,
                       (uint64_t)t->epoch);
}

static void tell(trainer *t, double loss, double accuracy)
{
    int length = snprintf(t->stage, sizeof t->stage, "epoch %d of %d", t->epoch + 1, t->options->epochs);
    if (loss >= 0) length += snprintf(t->stage + length, sizeof t->stage - (size_t)length, ": loss %.3f", loss);
    if (accuracy >= 0) snprintf(t->stage + length, sizeof t->stage - (size_t)length, "%s dev %.3f", loss >= 0 ? "," : ":", accuracy);
}

/* One pass over the texts. A cancelled pass returns SAFER_OK: the caller asks the meter. */
static safer_status run_epoch(trainer *t, double accuracy, safer_error *error)
{
    const sf_texts *fit = &t->corpus.fit;
    size_t batch = (size_t)t->options->batch;
    double sum = 0;
    shuffle(t);
    for (size_t first = 0; first < fit->count; first += batch) {
        size_t count = fit->count - first < batch ? fit->count - first : batch;
        double loss;
        t->batch_first = first;
        for (size_t b = 0; b < count; b++) {
            uint32_t text = t->order[first + b];
            t->offsets[b + 1] = t->offsets[b] + (fit->offsets[text + 1] - fit->offsets[text]);
            t->labels[b] = fit->labels[text];
        }
        sf_parallel(t->options->threads, count, 4, draw_texts, t);
        sf_cnn_batch b = {t->ids, t->offsets, t->labels, count};
        safer_status status = sf_cnn_step_gradient(&loss, t->step, t->parameters, &b, ++t->steps, error);
        if (status != SAFER_OK) return status;
        sf_cnn_step_update(t->step, t->parameters, t->means, t->variances, t->steps);
        sum += loss;
        tell(t, sum / (double)(first + count), accuracy);
        if (sf_meter_add(&t->meter, count, 0)) return SAFER_OK;
    }
    t->loss = sum / (double)fit->count;
    return isfinite(t->loss) ? SAFER_OK
                             : sf_fail(error, SAFER_INVALID, "the loss of epoch %d is not a finite number; lower rate (now %g)",
                                       t->epoch + 1, t->options->rate);
}

static safer_status run(trainer *t, safer_error *error)
{
    safer_status status = SAFER_OK;
    const safer_train_options *o = t->options;
    double accuracy = -1;
    tell(t, -1, -1);
    sf_meter_start(&t->meter, &o->progress, t->stage, (uint64_t)o->epochs * t->corpus.fit.count);
    sf_meter_add(&t->meter, (uint64_t)t->epoch * t->corpus.fit.count, 0);
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
            memcpy(t->best, t->parameters, t->layout.size * sizeof *t->best);
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
    if (!labels || !trained_with || sf_cnn_scales(t->scale, &t->layout, t->best, t->options->threads))
        status = sf_fail_memory(error);
    else
        status = sf_cnn_save(output, &t->layout, t->best, t->scale, &t->corpus.words, labels, trained_with, error);
    free(labels);
    free(trained_with);
    if (status == SAFER_OK) unlink(t->checkpoint);
    return status;
}

safer_status sf_cnn_train(const char *output, const safer_train_options *options, safer_train_report *report, safer_error *error)
{
    safer_status status;
    double begin = sf_seconds(), seconds;
    int before;
    trainer *t = sf_calloc(1, sizeof *t);
    if (!t) return sf_fail_memory(error);
    t->options = options;
    SF_TRY(start(t, output, error));
    if (options->resume && access(t->checkpoint, F_OK) == 0) SF_TRY(read_checkpoint(t, error));
    before = t->epoch;
    seconds = sf_seconds();
    SF_TRY(run(t, error));
    seconds = sf_seconds() - seconds;
    SF_TRY(save(t, output, error));
    *report = (safer_train_report){.texts = t->corpus.fit.count, .tokens = t->corpus.fit.offsets[t->corpus.fit.count],
                                   .parameters = t->layout.size, .epochs = t->epoch, .best_epoch = t->best_epoch, .loss = t->loss,
                                   .dev_accuracy = t->best_accuracy, .seconds = sf_seconds() - begin};
    report->tokens_per_second = (double)report->tokens * (t->epoch - before) / (seconds > 0 ? seconds : 1);
done:
    trainer_free(t);
    free(t);
    return status;
}
