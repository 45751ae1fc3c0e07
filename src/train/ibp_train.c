/* Training by bounds: `safer train --defense ibp-jia`, `ibp-huang` and `exact`.
 *
 * Texts are read as they are; what varies is the box around them. kappa and eps rise from 0,
 * linearly over the first `ramp` epochs, to options->defense.kappa and 1. After every epoch the
 * model is measured on the dev texts: the share certified for their label by the bounds
 * that `safer certify --method ibp` computes. The rest is a course (train/course.h);
 * what is trained, and why it works, ibp_step.h. */
#include "train/ibp_step.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "ibp/bounds.h"
#include "ibp/network.h"
#include "nn/layers.h"
#include "train/course.h"
#include "train/ibp_sets.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

typedef struct trainer {
    sf_course course; /* first */
    const safer_train_options *options;
    sf_textset corpus; /* tokens become items of the sets once it is read */
    sf_ibp_sets sets;
    sf_ibp_layout layout;
    sf_cnn_layout folded_layout;
    float *parameters, *folded, *scale;
    int frozen, still; /* the word vectors: no part in classification; in nothing */
    double ramp;       /* steps */
    sf_ibp_step *step;
    sf_linear_step *linear; /* the one or the other */
    sf_textbatch batch;
} trainer;

static void trainer_free(sf_course *course)
{
    trainer *t = (trainer *)course;
    sf_textset_free(&t->corpus);
    sf_ibp_step_free(t->step);
    sf_linear_step_free(t->linear);
    sf_ibp_sets_free(&t->sets);
    free(t->parameters);
    free(t->folded);
    free(t->scale);
    sf_textbatch_free(&t->batch);
}

/* --------------------------------------------------------------------- start */

static sf_ibp_shape read_shape(const trainer *t, size_t dim)
{
    const safer_train_options *o = t->options;
    sf_ibp_shape s = {.convolution = o->arch == SAFER_ARCH_CNN,
                      .wordwise = o->defense.kind == SAFER_DEFENSE_IBP_JIA,
                      .max_pool = o->course.pool == SAFER_POOL_MAX,
                      .dim = dim,
                      .vocabulary = (size_t)t->corpus.words.count + 1,
                      .hidden = (size_t)o->cnn.hidden,
                      .width = 1,
                      .classes = safer_data_label_count(o->train),
                      .max_words = sf_texts_limit(o)};
    if (o->defense.kind == SAFER_DEFENSE_EXACT) {
        s.hidden = 0;
        s.dim = s.classes == 2 ? 1 : s.classes;
    }
    if (s.wordwise) s.inner = (size_t)o->cnn.hidden;
    if (s.convolution) {
        s.width = (size_t)strtoul(o->cnn.widths, NULL, 10);
        s.filters = (size_t)o->cnn.filters;
    }
    return s;
}

/* Vectors of the file, and random ones within 0.1 for words that it lacks; 0 for a linear
 * classifier. */
static void first_vectors(trainer *t, const sf_vectors *vectors)
{
    size_t D = t->layout.shape.dim, V = t->layout.shape.vocabulary;
    if (t->layout.linear) {
        memset(t->parameters, 0, V * D * sizeof *t->parameters);
        return;
    }
    sf_stream stream = sf_stream_of(t->options->seed, UINT64_C(0x766563746f727300), SF_STAGE_TRAINING); /* "vectors" */
    for (size_t i = 0; i < V * D; i++) t->parameters[i] = (float)(0.1 * (2 * sf_draw_unit(stream, i, 0) - 1));
    if (vectors) sf_textset_place(t->parameters, &t->corpus, vectors);
}

/* Word vectors that are not trained are not part of the course: its checkpoints stay small. */
static void plan_course(trainer *t, const sf_train_split *split)
{
    const safer_train_options *o = t->options;
    size_t base = t->still ? t->layout.shape.vocabulary * t->layout.shape.dim : 0;
    double numbers[] = {o->course.rate,
                        o->course.decay,
                        o->course.dropout,
                        o->course.clip,
                        o->defense.kappa,
                        o->defense.triplet,
                        o->defense.margin,
                        t->ramp,
                        (double)o->course.batch,
                        (double)t->frozen,
                        (double)t->layout.shape.wordwise,
                        (double)t->layout.shape.convolution,
                        (double)t->layout.shape.max_pool,
                        (double)t->layout.shape.max_words,
                        (double)t->layout.size};
    sf_course *c = &t->course;
    c->texts = t->corpus.fit.count;
    c->tokens = t->corpus.fit.offsets[c->texts];
    c->parameters = t->parameters + base;
    c->size = t->layout.size - base;
    c->model_size = t->layout.size;
    c->fingerprint = sf_course_fingerprint(numbers, sizeof numbers / sizeof numbers[0], t->parameters, t->layout.size,
                                           split, o);
}

static safer_status make_room(trainer *t, safer_error *error)
{
    const safer_train_options *o = t->options;
    safer_status status = sf_textbatch_new(&t->batch, &t->corpus.fit, (size_t)o->course.batch, error);
    if (status != SAFER_OK) return status;
    t->parameters = sf_alloc_aligned(t->layout.size, sizeof *t->parameters);
    t->folded = sf_alloc_aligned(t->folded_layout.size, sizeof *t->folded);
    t->scale = sf_alloc(t->folded_layout.features, sizeof *t->scale);
    if (!t->parameters || !t->folded || !t->scale) return sf_fail_memory(error);
    sf_ibp_options options = {.rate = o->course.rate,
                              .decay = o->course.decay,
                              .clip = o->course.clip,
                              .dropout = (float)o->course.dropout,
                              .freeze = t->frozen,
                              .triplet = o->defense.triplet,
                              .margin = o->defense.margin,
                              .threads = o->threads,
                              .seed = o->seed};
    sf_linear_options linear = {
        .rate = o->course.rate, .decay = o->course.decay, .dropout = o->course.dropout, .seed = o->seed};
    if (t->layout.linear)
        return sf_linear_step_new(&t->linear, &t->layout, &t->sets, &linear, t->corpus.fit.longest, error);
    return sf_ibp_step_new(&t->step, &t->layout, &t->sets, &options, t->batch.words, error);
}

static safer_status start(sf_course *course, safer_error *error)
{
    safer_status status;
    trainer *t = (trainer *)course;
    const safer_train_options *o = t->options = course->options;
    sf_train_split split = {0};
    sf_vectors vectors = {0};
    SF_TRY(sf_train_split_make(&split, o, error));
    SF_TRY(sf_textset_read(&t->corpus, &split, SF_KNOW_SYNONYMS, o, error));
    if (o->cnn.vectors) SF_TRY(sf_textset_vectors(&vectors, &t->corpus, o, error));
    sf_ibp_shape shape = read_shape(t, o->cnn.vectors ? vectors.dim : (size_t)o->cnn.dim);
    sf_ibp_layout_make(&t->layout, &shape);
    sf_ibp_fold_layout(&t->folded_layout, &t->layout);
    t->frozen = o->cnn.freeze || (o->cnn.vectors && !o->defense.train_vectors);
    t->still = t->frozen && !(o->defense.triplet > 0);
    SF_TRY(sf_ibp_sets_make(&t->sets, &t->corpus, error));
    sf_ibp_sets_apply(&t->corpus.fit, &t->sets, t->layout.shape.vocabulary);
    sf_ibp_sets_apply(&t->corpus.dev, &t->sets, t->layout.shape.vocabulary);
    SF_TRY(make_room(t, error));
    first_vectors(t, o->cnn.vectors ? &vectors : NULL);
    sf_ibp_first_weights(t->parameters, &t->layout, o->seed);
    t->ramp = (double)o->defense.ramp * ceil((double)t->corpus.fit.count / (double)o->course.batch);
    plan_course(t, &split);
done:
    sf_train_split_free(&split);
    sf_vectors_free(&vectors);
    return status;
}

/* ---------------------------------------------------------------------- dev */

typedef struct measuring {
    trainer *t;
    const sf_cnn_net *net;
    sf_ibp_network_scratch **scratch; /* one per worker */
    sf_ibp_listed *listed;            /* one per worker */
    double *margins;                  /* (workers, classes) */
    atomic_size_t certified;
    atomic_int failed;
} measuring;

static void measure_texts(void *context, size_t begin, size_t end, int worker)
{
    measuring *m = context;
    const trainer *t = m->t;
    size_t certified = 0, K = t->layout.shape.classes;
    double *margins = m->margins + (size_t)worker * K;
    for (size_t i = begin; i < end; i++) {
        sf_ibp_choices text;
        size_t label = (size_t)t->corpus.dev.labels[i];
        if (sf_ibp_sets_list(&text, &m->listed[worker], &t->corpus.dev, i, &t->sets, t->layout.shape.vocabulary) ||
            sf_ibp_network_margins(margins, NULL, m->net, &text, label, &m->scratch[worker], NULL) != SAFER_OK)
            atomic_store(&m->failed, 1);
        else
            certified += (size_t)sf_ibp_certifies(margins, K, label);
    }
    atomic_fetch_add(&m->certified, certified);
}

/* The share of dev texts that the present parameters certify. */
static safer_status measure(sf_course *course, double *accuracy, safer_error *error)
{
    trainer *t = (trainer *)course;
    safer_status status = SAFER_OK;
    int threads = sf_threads(t->options->threads);
    size_t workers = (size_t)threads;
    sf_cnn_net *net = NULL;
    measuring m = {.t = t};
    m.scratch = sf_calloc(workers, sizeof *m.scratch);
    m.listed = sf_calloc(workers, sizeof *m.listed);
    m.margins = sf_alloc(workers * t->layout.shape.classes, sizeof *m.margins);
    sf_ibp_fold(t->folded, &t->layout, t->parameters, threads);
    if (!m.scratch || !m.listed || !m.margins || sf_cnn_scales(t->scale, &t->folded_layout, t->folded, threads)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_cnn_net_new(&net, &t->folded_layout, t->folded, t->scale, error));
    m.net = net;
    sf_parallel(threads, t->corpus.dev.count, 16, measure_texts, &m);
    if (atomic_load(&m.failed)) status = sf_fail_memory(error);
    *accuracy = (double)atomic_load(&m.certified) / (double)t->corpus.dev.count;
done:
    for (size_t i = 0; i < workers; i++) {
        if (m.scratch) sf_ibp_network_scratch_free(m.scratch[i]);
        if (m.listed) sf_ibp_listed_free(&m.listed[i]);
    }
    free(m.scratch);
    free(m.listed);
    free(m.margins);
    sf_cnn_net_free(net);
    return status;
}

/* --------------------------------------------------------------------- steps */

static safer_status step(sf_course *course, const uint32_t *texts, size_t count, double rate, double *loss,
                         safer_error *error)
{
    trainer *t = (trainer *)course;
    const sf_texts *fit = &t->corpus.fit;
    double sum, risen = t->ramp > 0 ? (double)(course->steps - 1) / t->ramp : 1;
    (void)rate; /* the step's own, which does not change */
    if (risen > 1) risen = 1;
    sf_textbatch_choose(&t->batch, fit, texts, count);
    for (size_t b = 0; b < count; b++)
        memcpy(t->batch.ids + t->batch.offsets[b], fit->tokens + fit->offsets[texts[b]],
               (t->batch.offsets[b + 1] - t->batch.offsets[b]) * sizeof *t->batch.ids);
    sf_ibp_batch batch = {t->batch.ids, t->batch.offsets, t->batch.labels, count};
    course->read += t->batch.offsets[count];
    if (t->linear) {
        *loss += sf_linear_step_learn(t->linear, t->parameters, course->variances, &batch,
                                      t->options->defense.kappa * risen, risen, course->steps);
        return SAFER_OK;
    }
    safer_status status = sf_ibp_step_gradient(&sum, t->step, t->parameters, &batch, t->options->defense.kappa * risen,
                                               risen, course->steps, error);
    if (status != SAFER_OK) return status;
    sf_ibp_step_update(t->step, t->parameters, course->means, course->variances, course->steps);
    *loss += sum;
    return SAFER_OK;
}

static safer_status save(sf_course *course, const char *output, const char *labels, const char *trained_with,
                         safer_error *error)
{
    trainer *t = (trainer *)course;
    sf_ibp_fold(t->folded, &t->layout, t->parameters, t->options->threads);
    if (sf_cnn_scales(t->scale, &t->folded_layout, t->folded, t->options->threads)) return sf_fail_memory(error);
    return sf_cnn_save(output, &t->folded_layout, t->folded, t->scale, &t->corpus.words, labels, trained_with, error);
}

safer_status sf_ibp_train(const char *output, const safer_train_options *options, safer_train_report *report,
                          safer_error *error)
{
    static const sf_course_methods methods = {
        .size = sizeof(trainer), .start = start, .step = step, .measure = measure, .save = save, .free = trainer_free};
    return sf_course_train(&methods, NULL, output, options, report, error);
}
