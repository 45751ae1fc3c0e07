/* The `bow` and `cnn` classifiers: training.
 *
 * Every mini-batch sees fresh draws of its texts (the sample number is the epoch); after
 * every epoch the model is measured on draws of the dev texts that stay the same from
 * epoch to epoch, with the code that will answer later. The rest is a course (course.h). */
#include "train/cnn_step.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/layers.h"
#include "train/course.h"
#include "train/texts.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { DEV_DRAWS = 8 };                /* of each dev text */
#define DEV_SAMPLE (UINT64_C(1) << 32) /* the first: epochs stay below */

/* What random numbers other than draws and dropout are for. */
enum { PURPOSE_WEIGHTS = 2 };

typedef struct trainer {
    sf_course course; /* first */
    const safer_train_options *options;
    sf_textset corpus;
    sf_cnn_layout layout;
    float *parameters; /* (size) */
    float *scale;      /* (features) */
    sf_cnn_step *step;

    const uint32_t *texts;
    sf_textbatch batch;
    size_t *lengths; /* (batch): of the draws */
} trainer;

static void trainer_free(sf_course *course)
{
    trainer *t = (trainer *)course;
    sf_textset_free(&t->corpus);
    free(t->parameters);
    free(t->scale);
    sf_cnn_step_free(t->step);
    sf_textbatch_free(&t->batch);
    free(t->lengths);
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
    memset(t->parameters, 0, l->size * sizeof *t->parameters);
    for (size_t i = 0; i < l->tensor_count; i++) {
        size_t rank = l->tensors[i].rank;
        const size_t *shape = l->tensors[i].shape;
        double inputs = rank == 3 ? (double)(shape[0] * shape[2]) : (double)shape[1]; /* (width, filters, dim) */
        if (rank > 1)
            random_fill(t->parameters + l->tensors[i].offset, l->tensors[i].count, i == 0 ? 0.1 : 1 / sqrt(inputs),
                        t->options->seed, i);
    }
    if (vectors) sf_textset_place(t->parameters + l->embedding, &t->corpus, vectors);
}

/* -------------------------------------------------------------------- start */

static void read_shape(sf_cnn_shape *s, const trainer *t, size_t dim)
{
    const safer_train_options *o = t->options;
    s->convolution = o->arch == SAFER_ARCH_CNN;
    s->max_pool = o->course.pool == SAFER_POOL_MAX;
    s->vocabulary = (size_t)t->corpus.words.count + 1;
    s->dim = dim;
    s->hidden = (size_t)o->cnn.hidden;
    s->classes = safer_data_label_count(o->train);
    s->max_words = sf_texts_limit(o);
    if (s->convolution) {
        s->filters = (size_t)o->cnn.filters;
        for (const char *at = o->cnn.widths; *at && s->width_count < SF_CNN_WIDTHS; at += *at == ',') {
            size_t width = 0;
            while (*at >= '0' && *at <= '9') width = 10 * width + (size_t)(*at++ - '0');
            s->widths[s->width_count++] = width;
        }
    } else {
        s->width_count = s->widths[0] = 1;
        s->filters = dim;
    }
}

/* The number of epochs does not decide how it goes, only how far. */
static void plan_course(trainer *t, const sf_train_split *split)
{
    const safer_train_options *o = t->options;
    double numbers[] = {o->course.rate,
                        o->course.decay,
                        o->course.dropout,
                        (double)o->course.batch,
                        (double)o->cnn.freeze,
                        (double)t->layout.shape.max_pool,
                        (double)t->layout.shape.convolution,
                        (double)t->layout.shape.max_words,
                        (double)t->layout.size};
    sf_course *c = &t->course;
    c->texts = t->corpus.fit.count;
    c->tokens = t->corpus.fit.offsets[c->texts];
    c->parameters = t->parameters;
    c->size = c->model_size = t->layout.size;
    c->fingerprint = sf_course_fingerprint(numbers, sizeof numbers / sizeof numbers[0], t->parameters, t->layout.size,
                                           split, o);
}

static safer_status start(sf_course *course, safer_error *error)
{
    safer_status status;
    trainer *t = (trainer *)course;
    const safer_train_options *o = t->options = course->options;
    sf_train_split split = {0};
    sf_vectors vectors = {0};
    sf_cnn_shape shape = {0};
    SF_TRY(sf_train_split_make(&split, o, error));
    SF_TRY(sf_textset_read(&t->corpus, &split, SF_KNOW_DRAWN, o, error));
    if (o->cnn.vectors) SF_TRY(sf_textset_vectors(&vectors, &t->corpus, o, error));
    read_shape(&shape, t, o->cnn.vectors ? vectors.dim : (size_t)o->cnn.dim);
    sf_cnn_layout_make(&t->layout, &shape);
    SF_TRY(sf_textbatch_new(&t->batch, &t->corpus.fit, (size_t)o->course.batch, error));
    t->parameters = sf_alloc_aligned(t->layout.size, sizeof *t->parameters);
    t->scale = sf_alloc(t->layout.features, sizeof *t->scale);
    t->lengths = sf_alloc(t->batch.size, sizeof *t->lengths);
    if (!t->parameters || !t->scale || !t->lengths) {
        status = sf_fail_memory(error);
        goto done;
    }
    first_weights(t, o->cnn.vectors ? &vectors : NULL);
    plan_course(t, &split);
    sf_cnn_options step = {.rate = o->course.rate,
                           .decay = o->course.decay,
                           .dropout = (float)o->course.dropout,
                           .freeze = o->cnn.freeze,
                           .threads = o->threads,
                           .seed = o->seed};
    status = sf_cnn_step_new(&t->step, &t->layout, &step, t->batch.size, t->batch.words, error);
done:
    sf_train_split_free(&split);
    sf_vectors_free(&vectors);
    return status;
}

/* ---------------------------------------------------------------------- dev */

typedef struct measuring {
    trainer *t;
    const sf_cnn_net *net;
    sf_cnn_scratch **scratch; /* one per worker */
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
            if (sf_cnn_classify_ids(&label, NULL, m->net, ids, count, m->scratch[worker], NULL) != SAFER_OK)
                atomic_store(&m->failed, 1);
            else
                right += label == dev->labels[i];
        }
    atomic_fetch_add(&m->right, right);
}

/* The share of draws of dev texts that the present parameters classify rightly. */
static safer_status measure(sf_course *course, double *accuracy, safer_error *error)
{
    trainer *t = (trainer *)course;
    safer_status status = SAFER_OK;
    int threads = sf_threads(t->options->threads);
    sf_cnn_net *net = NULL;
    measuring m = {.t = t, .draws = t->options->lexicon || t->corpus.deletes ? DEV_DRAWS : 1};
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

/* --------------------------------------------------------------------- steps */

static void draw_texts(void *context, size_t begin, size_t end, int worker)
{
    trainer *t = context;
    (void)worker;
    for (size_t b = begin; b < end; b++)
        t->lengths[b] = sf_textset_draw(t->batch.ids + t->batch.offsets[b], &t->corpus, &t->corpus.fit, t->texts[b],
                                        t->options->seed, (uint64_t)t->course.epoch);
}

static safer_status step(sf_course *course, const uint32_t *texts, size_t count, double rate, double *loss,
                         safer_error *error)
{
    trainer *t = (trainer *)course;
    double sum;
    (void)rate; /* the step's own, which does not change */
    (void)error;
    t->texts = texts;
    sf_textbatch_choose(&t->batch, &t->corpus.fit, texts, count);
    sf_parallel(t->options->threads, count, 4, draw_texts, t);
    sf_textbatch_shorten(&t->batch, t->lengths, count);
    sf_cnn_batch batch = {t->batch.ids, t->batch.offsets, t->batch.labels, count};
    sf_cnn_step_gradient(&sum, t->step, t->parameters, &batch, course->steps);
    sf_cnn_step_update(t->step, t->parameters, course->means, course->variances, course->steps);
    course->read += t->batch.offsets[count];
    *loss += sum;
    return SAFER_OK;
}

static safer_status save(sf_course *course, const char *output, const char *labels, const char *trained_with,
                         safer_error *error)
{
    trainer *t = (trainer *)course;
    if (sf_cnn_scales(t->scale, &t->layout, t->parameters, t->options->threads)) return sf_fail_memory(error);
    return sf_cnn_save(output, &t->layout, t->parameters, t->scale, &t->corpus.words, labels, trained_with, error);
}

safer_status sf_cnn_train(const char *output, const safer_train_options *options, safer_train_report *report,
                          safer_error *error)
{
    static const sf_course_methods methods = {
        .size = sizeof(trainer), .start = start, .step = step, .measure = measure, .save = save, .free = trainer_free};
    return sf_course_train(&methods, NULL, output, options, report, error);
}
