/* The weights of a sum of models, found on texts that no member was trained on.
 *
 * What a member says of a text enters as leads: by how much its logit of the text's label is above that of every other
 * class. A sum's lead is the weighted sum of its members' leads, so the sum is right where all its leads are above 0,
 * and certified by bounds where the weighted sum of lower bounds is: the same problem with other numbers
 * (ibp/margins.c). The weights minimise
 *
 *     F(w) = sum over texts of log(1 + sum over other classes c of exp(-sum over members m of w_m lead_mc))
 *            + RIDGE * sum over members of (w_m - 1)^2,        w >= 0,
 *
 * the loss of logistic regression. F is strictly convex, so the weights are unique, also where two members are the
 * same; where members are always right they stay finite. Found by Newton's step for one weight after the other; a step
 * that would not lower F is halved. Sums go over texts in order: the same weights for any number of threads. */
#define _GNU_SOURCE
#include "train/sum_fit.h"

#include "base/elementary.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "draw/drawn.h"
#include "ibp/bounds.h"
#include "model/sum.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RIDGE 1.0
#define LEAST_WEIGHT 0.001 /* a member with less is left out */
#define MOST_LEAD 1e4      /* of one member: beyond, nothing changes; bounds may be vast */
enum { ROUNDS = 500 };

void safer_sum_options_init(safer_sum_options *options, size_t size)
{
    static const safer_sum_options defaults = {.seed = 1};
    sf_options_init(options, size, &defaults, sizeof defaults);
}

/* ------------------------------------------------------------------ minimising */

/* exp(-lead) of every other class of text i, into e (others); returns 1 + their sum, from the largest on, divided by
 * exp(*top), so that nothing overflows. */
static double parts_of(double *e, double *top, const double *leads, const double *weights, size_t members,
                       size_t others)
{
    *top = 0;
    for (size_t c = 0; c < others; c++) {
        e[c] = 0;
        for (size_t m = 0; m < members; m++) e[c] -= weights[m] * leads[m * others + c];
        *top = e[c] > *top ? e[c] : *top;
    }
    double sum = sf_exp(-*top);
    for (size_t c = 0; c < others; c++) sum += e[c] = sf_exp(e[c] - *top);
    return sum;
}

static double loss_of(const double *weights, const double *leads, size_t texts, size_t members, size_t others,
                      double *e)
{
    double loss = 0, top;
    for (size_t i = 0; i < texts; i++) {
        const double sum = parts_of(e, &top, leads + i * members * others, weights, members, others);
        loss += top + sf_log(sum);
    }
    for (size_t m = 0; m < members; m++) loss += RIDGE * (weights[m] - 1) * (weights[m] - 1);
    return loss;
}

/* The step of Newton for weight m. */
static double step_of(size_t m, const double *weights, const double *leads, size_t texts, size_t members, size_t others,
                      double *e)
{
    double slope = 2 * RIDGE * (weights[m] - 1), curve = 2 * RIDGE, top;
    for (size_t i = 0; i < texts; i++) {
        const double *own = leads + i * members * others, *lead = own + m * others;
        const double sum = parts_of(e, &top, own, weights, members, others);
        double mean = 0, square = 0;
        for (size_t c = 0; c < others; c++) {
            mean += e[c] / sum * lead[c];
            square += e[c] / sum * lead[c] * lead[c];
        }
        slope -= mean;
        curve += square - mean * mean;
    }
    return -slope / curve;
}

safer_status sf_sum_minimise(double *weights, const double *leads, size_t texts, size_t members, size_t others,
                             safer_error *error)
{
    double *e = sf_alloc(others + 1, sizeof *e), moved = 1;
    if (!e) return sf_fail_memory(error);
    for (size_t m = 0; m < members; m++) weights[m] = 1;
    double loss = loss_of(weights, leads, texts, members, others, e);
    for (int round = 0; round < ROUNDS && moved > 1e-7; round++) {
        moved = 0;
        for (size_t m = 0; m < members; m++) {
            const double before = weights[m], step = step_of(m, weights, leads, texts, members, others, e);
            for (double part = 1; part > 1e-6; part /= 2) {
                weights[m] = before + part * step > 0 ? before + part * step : 0;
                const double now = loss_of(weights, leads, texts, members, others, e);
                if (now <= loss) {
                    loss = now;
                    break;
                }
                weights[m] = before;
            }
            moved = fmax(moved, fabs(weights[m] - before));
        }
    }
    free(e);
    return SAFER_OK;
}

/* ---------------------------------------------------------------------- leads */

typedef struct reading {
    const safer_model *model;
    const sf_sum_model *sum;
    const safer_data *data;
    const safer_lexicon *lexicon; /* or NULL */
    const safer_sum_options *options;
    const int *classes;
    double *leads; /* (texts, members, others) */
    sf_meter meter;
    pthread_mutex_t lock;
    safer_status status; /* the first that failed, and why */
    safer_error error;
} reading;

/* Of one thread. */
typedef struct reader {
    void *scratch;
    sf_drawn drawn;
    sf_slots slots;
    sf_ibp_scratch *bounds;
    double *margins; /* (members, classes) */
} reader;

static double clipped(double x) { return x > MOST_LEAD ? MOST_LEAD : x > -MOST_LEAD ? x : -MOST_LEAD; }

/* What the members say of the last text that was asked about, before their weights. */
static void read_said(double *margins, const reader *w, const sf_sum_model *sum, size_t target)
{
    const size_t K = sum->base.classes;
    for (size_t m = 0; m < sum->count; m++) {
        const int64_t *said = sf_sum_said(w->scratch, m);
        for (size_t k = 0; k < K; k++)
            margins[m * K + k] = ldexp((double)(said[target] - said[k]), -SF_SUM_BITS) / sum->members[m].weight;
    }
}

static safer_status read_text(reading *r, reader *w, size_t i, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t K = r->model->classes, others = K - 1;
    const safer_row row = safer_data_row(r->data, i);
    const size_t target = (size_t)r->classes[row.label];
    sf_span text = {row.text, row.text_length};
    int label;
    if (r->lexicon && !r->options->bounds) {
        SF_TRY(sf_drawn_text(&w->drawn, r->lexicon, row.text, row.text_length, (safer_deletion){0}, r->options->seed, 0,
                             error));
        text = (sf_span){w->drawn.text.bytes ? w->drawn.text.bytes : "", w->drawn.text.length};
    }
    SF_TRY(r->model->class->classify(r->model, &text, 1, &label, NULL, w->scratch, error));
    if (r->options->bounds) {
        SF_TRY(sf_slots_read(&w->slots, r->lexicon, row.text, row.text_length, error));
        SF_TRY(
            sf_ibp_member_margins(w->margins, r->model, r->lexicon, &w->slots, target, w->scratch, &w->bounds, error));
    } else {
        read_said(w->margins, w, r->sum, target);
    }
    for (size_t m = 0; m < r->sum->count; m++)
        for (size_t k = 0, c = 0; k < K; k++)
            if (k != target) r->leads[(i * r->sum->count + m) * others + c++] = clipped(w->margins[m * K + k]);
done:
    return status;
}

static void reader_free(reader *w, const safer_model *model)
{
    if (w->scratch) model->class->scratch_free(w->scratch);
    sf_drawn_free(&w->drawn);
    sf_slots_free(&w->slots);
    sf_ibp_scratch_free(w->bounds);
    free(w->margins);
}

static void read_texts(void *context, size_t begin, size_t end, int worker)
{
    reading *r = context;
    reader w = {0};
    safer_error error = {0};
    safer_status status = r->model->class->scratch_new(r->model, &w.scratch, &error);
    w.margins = sf_alloc(r->sum->count * r->model->classes, sizeof *w.margins);
    if (status == SAFER_OK && !w.margins) status = sf_fail_memory(&error);
    for (size_t i = begin; i < end && status == SAFER_OK && !sf_meter_cancelled(&r->meter); i++) {
        status = read_text(r, &w, i, &error);
        sf_meter_add(&r->meter, 1, worker);
    }
    reader_free(&w, r->model);
    if (status == SAFER_OK) return;
    pthread_mutex_lock(&r->lock);
    if (r->status == SAFER_OK) {
        r->status = status;
        r->error = error;
    }
    pthread_mutex_unlock(&r->lock);
}

static safer_status read_leads(reading *r, safer_error *error)
{
    const size_t texts = safer_data_size(r->data);
    const int threads = sf_threads(r->options->threads),
              many = r->model->concurrency > threads ? r->model->concurrency : threads;
    sf_meter_start(&r->meter, &r->options->progress, "reading", texts);
    sf_parallel(many, texts, 16, read_texts, r);
    const safer_status status = sf_meter_finish(&r->meter, error);
    if (r->status == SAFER_OK) return status;
    if (error) *error = r->error;
    return r->status;
}

/* --------------------------------------------------------------------- the fit */

static double share_right(const double *weights, const reading *r)
{
    const size_t texts = safer_data_size(r->data), members = r->sum->count, others = r->model->classes - 1;
    size_t right = 0;
    for (size_t i = 0; i < texts; i++) {
        int ahead = 1;
        for (size_t c = 0; c < others; c++) {
            double lead = 0;
            for (size_t m = 0; m < members; m++) lead += weights[m] * r->leads[(i * members + m) * others + c];
            ahead &= lead > 0;
        }
        right += (size_t)ahead;
    }
    return texts ? (double)right / (double)texts : 0;
}

static int same_folder(const char *a, const char *b)
{
    const size_t length = (size_t)(sf_base_name(a) - a);
    return length == (size_t)(sf_base_name(b) - b) && memcmp(a, b, length) == 0;
}

/* Names a file of a member so that it is found from anywhere. */
static safer_status name_fully(json_t *member, const char *key, const char *input, safer_error *error)
{
    const char *name = json_string_value(json_object_get(member, key));
    if (!name || *name == '/') return SAFER_OK;
    char path[PATH_MAX], full[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%.*s%s", (int)(sf_base_name(input) - input), input, name);
    if (length >= PATH_MAX || !realpath(path, full))
        return sf_fail(error, SAFER_SYSTEM, "%s: the path of %s cannot be found out", input, name);
    return json_object_set_new(member, key, json_string(full)) ? sf_fail_memory(error) : SAFER_OK;
}

/* The sum's own file with other weights; members without one are not in it. Names are relative to the file: elsewhere
 * they are written in full. */
static safer_status write_sum(const char *output, const char *input, const double *weights, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_file file = {0};
    json_t *root = NULL, *kept = json_array();
    char *text = NULL;
    SF_TRY(sf_file_load(&file, input, error));
    SF_TRY(sf_model_json(&root, file.bytes, file.length, JSON_REJECT_DUPLICATES, input, error));
    json_t *members = json_object_get(root, "members");
    for (size_t m = 0; m < json_array_size(members); m++) {
        json_t *member = json_array_get(members, m);
        if (weights[m] == 0) continue;
        if (!same_folder(input, output)) {
            SF_TRY(name_fully(member, "model", input, error));
            SF_TRY(name_fully(member, "canonical", input, error));
        }
        if (json_object_set_new(member, "weight", json_real(weights[m])) || json_array_append(kept, member)) {
            status = sf_fail_memory(error);
            goto done;
        }
    }
    if (json_object_set(root, "members", kept) || !(text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(6)))) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_file_write(output, text, strlen(text), error));
done:
    free(text);
    json_decref(kept);
    json_decref(root);
    sf_file_free(&file);
    return status;
}

static safer_status check(const safer_model *model, const safer_data *data, const safer_lexicon *lexicon,
                          const safer_sum_options *o, const char *input, safer_error *error)
{
    if (model->class != &sf_sum_class)
        return sf_fail(error, SAFER_INVALID, "`model`: %s is no sum of models, a file of JSON (it is %s)", input,
                       model->class->arch);
    if (safer_data_size(data) < 2) return sf_fail(error, SAFER_INVALID, "`data`: too few texts to fit weights on");
    for (size_t i = 0; i < safer_data_size(data); i++)
        if (safer_data_row(data, i).label < 0)
            return sf_fail(error, SAFER_INVALID, "`data`: text %zu has no label", i + 1);
    if (o->threads < 0) return sf_fail(error, SAFER_INVALID, "`threads`: %d", o->threads);
    if (!o->bounds) return SAFER_OK;
    return lexicon ? sf_ibp_check(model, lexicon, error)
                   : sf_fail(error, SAFER_INVALID, "`bounds`: they need a lexicon");
}

/* To six digits, as the file has them; what is next to nothing is nothing. The greatest member always stays. */
static void settle(double *weights, size_t count)
{
    size_t most = 0;
    for (size_t m = 0; m < count; m++) {
        if (weights[m] > weights[most]) most = m;
        weights[m] = weights[m] < LEAST_WEIGHT ? 0 : round(weights[m] * 1e4) / 1e4;
    }
    if (weights[most] == 0) weights[most] = 1;
}

safer_status safer_sum_fit(safer_sum_result *out, const char *output, const char *input, const safer_model *model,
                           const safer_data *data, const safer_lexicon *lexicon, const safer_sum_options *options,
                           safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_sum_options o;
    double given[SAFER_SUM_MEMBERS] = {0};
    int *classes = NULL;
    reading r = {.model = model, .data = data, .lexicon = lexicon, .options = &o, .lock = PTHREAD_MUTEX_INITIALIZER};
    safer_sum_options_init(&o, sizeof o);
    SF_TRY(SF_TAKE_OPTIONS(&o, options, safer_sum_options, error));
    SF_TRY(check(model, data, lexicon, &o, input, error));
    r.sum = (const sf_sum_model *)model;
    const size_t texts = safer_data_size(data), members = r.sum->count, others = model->classes - 1;
    SF_TRY(sf_map_labels(&classes, model, data, error));
    r.leads = sf_alloc(texts * members, others * sizeof *r.leads);
    if (!r.leads) {
        status = sf_fail_memory(error);
        goto done;
    }
    r.classes = classes;
    SF_TRY(read_leads(&r, error));
    for (size_t m = 0; m < members; m++) given[m] = r.sum->members[m].weight;
    *out = (safer_sum_result){.members = members, .texts = texts, .before = share_right(given, &r)};
    SF_TRY(sf_sum_minimise(out->weights, r.leads, texts, members, others, error));
    settle(out->weights, members);
    out->after = share_right(out->weights, &r);
    SF_TRY(write_sum(output, input, out->weights, error));
done:
    free(classes);
    free(r.leads);
    return status;
}
