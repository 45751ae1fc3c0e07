/* Labels for texts that have none: what a model, the teacher, says of each.
 *
 * Threads ask about many texts at a time. An answer is a function of its text, so neither threads nor batches change
 * it.
 *
 * Of a share of the texts, those stay that the model is surest of: whose first class leads the second by most. Where
 * scores are probabilities, the lead is how many times the first is as probable as the second. (Their difference would
 * be 1 of all texts that a sum of models is sure of, whose first probability is 1 as a float, while the second still
 * tells 1e-9 from 1e-30.) Other scores, such as logits of a service, lead by their difference. */
#include "base/memory.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "data/data.h"
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 64, /* texts asked at once, where the model has no wish of its own */
    FIRST = 64  /* texts by which a remote model shows whether it gives scores */
};

/* What was said of a text. */
typedef struct answer {
    float first, second; /* the two greatest scores */
} answer;

typedef struct worker {
    void *scratch;
    safer_reader *reader;
    sf_buffer bytes; /* of the texts at hand: a reader keeps one at a time */
    sf_span *texts;  /* (batch) */
    float *scores;   /* (batch, classes) */
} worker;

typedef struct labelling {
    const safer_model *model;
    const safer_data *data;
    size_t batch, begin; /* begin: the first text of those that are asked about now */
    int *labels;         /* (texts) */
    answer *answers;     /* (texts) */
    worker *workers;
    int threads;
    atomic_int other; /* some scores are no probabilities */
    sf_meter meter;
    pthread_mutex_t lock;
    safer_status status; /* the first that failed, and why */
    safer_error error;
} labelling;

void safer_label_options_init(safer_label_options *options, size_t size)
{
    static const safer_label_options defaults = {.keep = 1};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

/* ---------------------------------------------------------------------- asking */

static safer_status worker_begin(worker *w, const labelling *l, safer_error *error)
{
    const safer_model *model = l->model;
    if (w->texts) return SAFER_OK;
    w->scores = sf_calloc(l->batch, model->classes * sizeof *w->scores);
    w->texts = sf_alloc(l->batch, sizeof *w->texts);
    if (!w->scores || !w->texts) return sf_fail_memory(error);
    return model->class->scratch_new ? model->class->scratch_new(model, &w->scratch, error) : SAFER_OK;
}

static void worker_free(worker *w, const safer_model *model)
{
    if (w->scratch) model->class->scratch_free(w->scratch);
    safer_reader_free(w->reader);
    sf_buffer_free(&w->bytes);
    free(w->texts);
    free(w->scores);
}

static safer_status read_texts(worker *w, const labelling *l, size_t first, size_t count, safer_error *error)
{
    sf_buffer_clear(&w->bytes);
    for (size_t i = 0; i < count; i++) {
        safer_row row;
        const safer_status status = safer_data_read(&row, &w->reader, l->data, first + i, error);
        if (status != SAFER_OK) return status;
        if (sf_buffer_add(&w->bytes, row.text, row.text_length)) return sf_fail_memory(error);
        w->texts[i].length = row.text_length;
    }
    const char *at = w->bytes.bytes ? w->bytes.bytes : "";
    for (size_t i = 0; i < count; at += w->texts[i++].length) w->texts[i].bytes = at;
    return SAFER_OK;
}

/* The two greatest scores; *other: they are no probabilities. What is no number leads by nothing. */
static answer best_two(const float *scores, size_t classes, int *other)
{
    answer a = {-HUGE_VALF, -HUGE_VALF};
    double sum = 0;
    *other = 0;
    for (size_t k = 0; k < classes; k++) {
        if (!isfinite(scores[k])) return (answer){1, 1};
        sum += (double)scores[k];
        *other |= scores[k] < 0;
        if (scores[k] > a.first) {
            a.second = a.first;
            a.first = scores[k];
        } else if (scores[k] > a.second) {
            a.second = scores[k];
        }
    }
    *other |= fabs(sum - 1) > 0.01;
    return a;
}

static void forget(int *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) labels[i] = -1;
}

/* Asks about texts of a batch, at most. */
static safer_status ask(labelling *l, worker *w, size_t first, size_t count, safer_error *error)
{
    safer_status status;
    const size_t classes = l->model->classes;
    SF_TRY(worker_begin(w, l, error));
    SF_TRY(read_texts(w, l, first, count, error));
    status = sf_model_classify(l->model, w->texts, count, l->labels + first, w->scores, w->scratch, error);
    if (status != SAFER_OK) {
        forget(l->labels + first, count); /* whatever there was among them */
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        int other;
        if (l->labels[first + i] < 0) continue;
        l->answers[first + i] = best_two(w->scores + i * classes, classes, &other);
        if (other && sf_model_is_remote(l->model)) atomic_store(&l->other, 1);
    }
done:
    return status;
}

static void ask_some(void *context, size_t begin, size_t end, int number)
{
    labelling *l = context;
    for (size_t i = begin; i < end && !sf_meter_cancelled(&l->meter); i += l->batch) {
        const size_t count = end - i < l->batch ? end - i : l->batch;
        safer_error error = {0};
        const safer_status status = ask(l, &l->workers[number], l->begin + i, count, &error);
        if (status != SAFER_OK) {
            pthread_mutex_lock(&l->lock);
            if (l->status == SAFER_OK) {
                l->status = status;
                l->error = error;
            }
            pthread_mutex_unlock(&l->lock);
            atomic_store(&l->meter.cancelled, 1); /* nobody asks any more */
            return;
        }
        sf_meter_add(&l->meter, count, sf_duty_now().worker);
    }
}

/* Texts begin .. end-1, in pieces that leave no thread without one. */
static safer_status ask_range(labelling *l, size_t begin, size_t end, safer_error *error)
{
    const size_t each = (end - begin + (size_t)l->threads - 1) / (size_t)l->threads;
    l->begin = begin;
    const sf_duty before = sf_duty_change((sf_duty){&l->meter, 0});
    if (!sf_meter_cancelled(&l->meter) && end > begin)
        sf_model_parallel(l->model, l->threads, end - begin, each < l->batch ? each : l->batch, ask_some, l);
    (void)sf_duty_change(before);
    if (l->status != SAFER_OK && error) *error = l->error;
    return l->status;
}

/* Whether of the first texts no answer says how sure it is: each gives everything to one class. */
static int is_flat(const labelling *l, size_t end)
{
    size_t answered = 0;
    for (size_t i = 0; i < end; i++) {
        if (l->labels[i] < 0) continue;
        if (l->answers[i].first != 1 || l->answers[i].second != 0) return 0;
        answered++;
    }
    return answered > 0;
}

static safer_status ask_all(labelling *l, const safer_label_options *o, safer_error *error)
{
    safer_status status;
    const size_t texts = safer_data_size(l->data);
    const int ranks = o->keep < 1 && sf_model_is_remote(l->model);
    const size_t first = !ranks ? 0 : texts < FIRST ? texts : FIRST;
    sf_meter_start(&l->meter, &o->progress, "labelling", texts);
    SF_TRY(ask_range(l, 0, first, error)); /* what cannot be ranked is better known now than after all texts */
    int flat = first && is_flat(l, first);
    if (!flat) SF_TRY(ask_range(l, first, texts, error));
    SF_TRY(sf_meter_finish(&l->meter, error));
    if (!flat && ranks) flat = is_flat(l, texts);
    if (flat)
        status = sf_fail(error, SAFER_INVALID,
                         "`keep`: %g needs scores, by which texts can be ranked, but the model answers labels alone; "
                         "1 keeps all texts",
                         o->keep);
done:
    return status;
}

/* -------------------------------------------------------------------- choosing */

typedef struct rank {
    double behind; /* less is better */
    size_t text;
} rank;

static int compare_ranks(const void *left, const void *right)
{
    const rank *a = left, *b = right;
    if (a->behind != b->behind) return a->behind < b->behind ? -1 : 1;
    return (a->text > b->text) - (a->text < b->text);
}

/* How far the second class is behind: a share of the first, or the difference. */
static double behind(const answer *a, int other)
{
    if (other) return (double)a->second - (double)a->first;
    return a->first > 0 ? (double)a->second / (double)a->first : 1;
}

/* Takes the labels of all but the surest away. */
static safer_status choose(safer_label_summary *out, labelling *l, double keep, safer_error *error)
{
    const size_t texts = safer_data_size(l->data);
    const int other = atomic_load(&l->other);
    size_t answered = 0;
    rank *ranks = sf_alloc(texts, sizeof *ranks);
    if (!ranks) return sf_fail_memory(error);
    for (size_t i = 0; i < texts; i++)
        if (l->labels[i] >= 0) ranks[answered++] = (rank){behind(&l->answers[i], other), i};
    qsort(ranks, answered, sizeof *ranks, compare_ranks);
    /* Rounded up, but 0.07 of 100, which is a little above 7 in binary, is 7. */
    const size_t kept = keep < 1 ? (size_t)ceil(keep * (double)answered * (1 - 1e-12)) : answered;
    for (size_t r = kept; r < answered; r++) l->labels[ranks[r].text] = -1;
    out->kept = kept;
    out->none = texts - answered;
    out->by_difference = other;
    if (kept) out->least_lead = other ? 0 - ranks[kept - 1].behind : log(1 / ranks[kept - 1].behind);
    free(ranks);
    return SAFER_OK;
}

/* The class of each of the data's labels, or -1 for one that the model does not know. */
static int class_of(const safer_model *model, const char *label)
{
    for (size_t k = 0; k < model->classes; k++)
        if (strcmp(model->labels[k], label) == 0) return (int)k;
    return -1;
}

/* Compares with labels that the data has: to be called before and after texts are left out. */
static safer_status compare(size_t *known, size_t *agreed, const labelling *l, safer_error *error)
{
    const size_t count = safer_data_label_count(l->data);
    int *classes = sf_alloc(count, sizeof *classes);
    if (!classes) return sf_fail_memory(error);
    for (size_t k = 0; k < count; k++) classes[k] = class_of(l->model, safer_data_label(l->data, k));
    *known = *agreed = 0;
    for (size_t i = 0; i < safer_data_size(l->data); i++) {
        const uint32_t label = *sf_data_label_of(l->data, i);
        if (l->labels[i] < 0 || label == SF_NONE || classes[label] < 0) continue;
        ++*known;
        *agreed += classes[label] == l->labels[i];
    }
    free(classes);
    return SAFER_OK;
}

/* ------------------------------------------------------------------------- all */

static safer_status check(const safer_label_options *o, safer_error *error)
{
    if (!(o->keep > 0 && o->keep <= 1))
        return sf_fail(error, SAFER_INVALID, "`keep`: %g (above 0, at most 1)", o->keep);
    if (o->batch > 1 << 20) return sf_fail(error, SAFER_INVALID, "`batch`: %zu (0 to 1048576)", o->batch);
    if (o->threads < 0) return sf_fail(error, SAFER_INVALID, "`threads`: %d", o->threads);
    return SAFER_OK;
}

safer_status safer_label(safer_label_summary *out, int *labels, const safer_model *model, const safer_data *data,
                         const safer_label_options *options, safer_error *error)
{
    safer_status status;
    safer_label_options o = safer_label_options_default();
    safer_label_summary s = {.texts = safer_data_size(data)};
    const double start = sf_seconds();
    labelling l = {.model = model, .data = data, .labels = labels, .lock = PTHREAD_MUTEX_INITIALIZER};
    forget(labels, s.texts); /* texts that nobody asks about any more have none */
    SF_TRY(SF_TAKE_OPTIONS(&o, options, safer_label_options, error));
    SF_TRY(check(&o, error));
    l.batch = o.batch ? o.batch : model->group ? model->group : BATCH;
    l.threads = model->concurrency ? model->concurrency : sf_threads(o.threads);
    l.answers = sf_calloc(s.texts, sizeof *l.answers);
    l.workers = sf_calloc((size_t)l.threads + 1, sizeof *l.workers);
    if (!l.answers || !l.workers) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(ask_all(&l, &o, error));
    SF_TRY(compare(&s.known, &s.agreed, &l, error));
    SF_TRY(choose(&s, &l, o.keep, error));
    SF_TRY(compare(&s.kept_known, &s.kept_agreed, &l, error));
    if (!s.kept) {
        status = sf_fail(error, SAFER_INPUT, "the model answered none of the %zu texts with a label", s.texts);
        goto done;
    }
    s.seconds = sf_seconds() - start;
    if (out) *out = s;
done:
    for (int i = 0; l.workers && i <= l.threads; i++) worker_free(&l.workers[i], model);
    free(l.workers);
    free(l.answers);
    return status;
}
