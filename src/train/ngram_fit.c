/* Naive-Bayes-weighted logistic regression, by coordinate descent on the dual.
 *
 * Wang & Manning (ACL 2012) weight each feature by its log-count ratio
 *
 *     r_j = ln((alpha + p_j) / P) - ln((alpha + q_j) / Q),
 *
 * p_j and q_j being the number of texts of the class and of the others that have j, P and Q
 * the sums of the numerators. On x_ij = c_i r_j (j in text i), c_i being the text's scale
 * (sf_ngram_scale), we fit, with y_i = +-1,
 *
 *     min over w, b of  1/2 |w|^2 + 1/2 b^2 + C sum_i ln(1 + exp(-y_i (w.x_i + b))).
 *
 * Yu, Huang & Lin (Machine Learning 85, 2011) solve the dual, one a_i in (0, C) a text, by
 * exact minimisation over one a_i at a time while w = sum_i a_i y_i x_i is kept up to date.
 * With t the logit of a_i/C, d = |x_i|^2 + 1 and m = y_i (w.x_i + b) the optimum solves
 *
 *     t + m + d (C s(t) - a_i) = 0,        s(t) = 1 / (1 + exp(-t)),
 *
 * whose left side rises with a slope of at least 1: Newton's method within a bracket. At
 * the solution of the whole problem a_i = C s(-m), so |a_i/C - s(-m)| says how far a text is
 * from optimal. Unlike liblinear, which iterates on a_i, nothing degenerates at 0 or C.
 *
 * A text only needs v_j = w_j r_j, which is also all that the model keeps: an update of a_i
 * by e adds e y_i c_i r_j^2 to v_j. So the table holds (v_j, r_j^2) side by side, one cache line
 * a feature and pass.
 *
 * Several classes are fitted one against the rest, a class a task; nothing depends on the
 * number of threads. */
#include "base/memory.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "train/ngram_fit.h"

#include <math.h>
#include <string.h>

typedef struct cell {
    float v, square; /* w_j r_j and r_j^2 */
} cell;

typedef struct fit_job {
    float *weights, *bias;
    const sf_ngram_example *examples;
    size_t count, classes, outputs, buckets;
    const sf_ngram_settings *settings;
    const float *seen; /* buckets: how many texts have it */
    sf_meter *meter;
    sf_ngram_fitted *fitted; /* outputs */
    atomic_int no_memory;
} fit_job;

/* What one problem works on. */
typedef struct problem {
    cell *cells;
    double bias;
    double *dual, *norm; /* a_i and |x_i|^2 + 1 */
    uint32_t *order;
    int positive; /* the class that is +1 */
} problem;

/* The cells for one class against the others; v starts at zero. */
static void weigh(const fit_job *job, problem *p)
{
    const sf_ngram_settings *s = job->settings;
    for (size_t i = 0; i < job->count; i++) {
        const sf_ngram_example *e = &job->examples[i];
        if (e->label == p->positive)
            for (uint32_t k = 0; k < e->count; k++) p->cells[e->features[k]].v += 1;
    }
    double positive = 0, negative = 0;
    for (size_t j = 0; j < job->buckets; j++) {
        if (job->seen[j] == 0) continue;
        positive += s->alpha + s->weight * (double)p->cells[j].v;
        negative += s->alpha + s->weight * (double)(job->seen[j] - p->cells[j].v);
    }
    double shift = log(negative / positive);
    for (size_t j = 0; j < job->buckets; j++) {
        if (job->seen[j] == 0) continue;
        double in = s->alpha + s->weight * (double)p->cells[j].v;
        double out = s->alpha + s->weight * (double)(job->seen[j] - p->cells[j].v);
        double r = log(in / out) + shift;
        p->cells[j] = (cell){0, (float)(r * r)};
    }
    for (size_t i = 0; i < job->count; i++) {
        const sf_ngram_example *e = &job->examples[i];
        double squares = 0, scale = sf_ngram_scale(e->count);
        for (uint32_t k = 0; k < e->count; k++) squares += (double)p->cells[e->features[k]].square;
        p->norm[i] = 1 + scale * scale * squares;
    }
}

static double logistic(double t) { return t >= 0 ? 1 / (1 + exp(-t)) : exp(t) / (1 + exp(t)); }

/* The t with t + m + d (C s(t) - a) = 0. */
static double solve_one(double m, double d, double cost, double a)
{
    double low = -m - d * (cost - a), high = -m + d * a, t = -m;
    for (int i = 0; i < 60 && high - low > 1e-9; i++) {
        double s = logistic(t), value = t + m + d * (cost * s - a);
        if (fabs(value) < 1e-9) break;
        if (value > 0)
            high = t;
        else
            low = t;
        t -= value / (1 + d * cost * s * (1 - s));
        if (!(t > low && t < high)) t = low + (high - low) / 2;
    }
    return t;
}

enum { AHEAD = 16 };

static double margin(const problem *p, const sf_ngram_example *e)
{
    double sum = 0;
    for (uint32_t k = 0; k < e->count; k++) {
        if (k + AHEAD < e->count) __builtin_prefetch(&p->cells[e->features[k + AHEAD]], 1);
        sum += (double)p->cells[e->features[k]].v;
    }
    sum = p->bias + sf_ngram_scale(e->count) * sum;
    return e->label == p->positive ? sum : -sum;
}

/* One update; returns how far the probability was off. */
static double visit(problem *p, const sf_ngram_example *e, size_t i, double cost, double *loss)
{
    double m = margin(p, e), old = p->dual[i];
    double off = fabs(old / cost - logistic(-m));
    *loss += m > 0 ? log1p(exp(-m)) : -m + log1p(exp(m));
    p->dual[i] = cost * logistic(solve_one(m, p->norm[i], cost, old));
    double step = p->dual[i] - old;
    if (e->label != p->positive) step = -step;
    p->bias += step;
    float change = (float)(step * sf_ngram_scale(e->count));
    for (uint32_t k = 0; k < e->count; k++) {
        cell *c = &p->cells[e->features[k]];
        c->v += change * c->square;
    }
    return off;
}

static void shuffle(uint32_t *order, size_t count, uint64_t seed, int pass)
{
    sf_stream stream = sf_stream_of(seed, 0, SF_STAGE_TRAINING);
    for (size_t i = count; i-- > 1;) {
        size_t j = sf_draw_below(stream, (uint64_t)pass, (uint32_t)i, (uint32_t)(i + 1));
        uint32_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

static sf_ngram_fitted descend(const fit_job *job, problem *p, int worker)
{
    const sf_ngram_settings *s = job->settings;
    double cost = s->cost * s->weight, worst = (double)INFINITY;
    sf_ngram_fitted done = {0};
    for (size_t i = 0; i < job->count; i++) p->order[i] = (uint32_t)i;
    while (done.passes < s->passes && worst > s->tolerance) {
        double loss = 0;
        worst = 0;
        shuffle(p->order, job->count, s->seed, done.passes);
        for (size_t n = 0; n < job->count; n++) {
            size_t i = p->order[n];
            double off = visit(p, &job->examples[i], i, cost, &loss);
            if (off > worst) worst = off;
            if (n % 256 == 255 && job->meter && sf_meter_add(job->meter, 256, worker)) return done;
        }
        done.passes++;
        done.loss = loss / (double)job->count;
    }
    return done;
}

static void fit_outputs(void *context, size_t begin, size_t end, int worker)
{
    fit_job *job = context;
    for (size_t k = begin; k < end; k++) {
        problem p = {.positive = job->outputs == 1 ? 1 : (int)k};
        p.cells = sf_calloc(job->buckets, sizeof *p.cells);
        p.dual = sf_calloc(job->count, sizeof *p.dual);
        p.norm = sf_alloc(job->count, sizeof *p.norm);
        p.order = sf_alloc(job->count, sizeof *p.order);
        if (p.cells && p.dual && p.norm && p.order) {
            weigh(job, &p);
            job->fitted[k] = descend(job, &p, job->settings->worker + worker);
            for (size_t j = 0; j < job->buckets; j++) job->weights[j * job->outputs + k] = p.cells[j].v;
            job->bias[k] = (float)p.bias;
        } else {
            atomic_store(&job->no_memory, 1);
        }
        free(p.cells);
        free(p.dual);
        free(p.norm);
        free(p.order);
    }
}

safer_status sf_ngram_fit(float *weights, float *bias, const sf_ngram_example *examples, size_t count, size_t classes,
                          int bits, const sf_ngram_settings *settings, sf_meter *meter, sf_ngram_fitted *fitted,
                          safer_error *error)
{
    safer_status status = SAFER_OK;
    fit_job job = {.weights = weights,
                   .bias = bias,
                   .examples = examples,
                   .count = count,
                   .classes = classes,
                   .outputs = sf_ngram_outputs(classes),
                   .buckets = (size_t)1 << bits,
                   .settings = settings,
                   .meter = meter};
    float *seen = sf_calloc(job.buckets, sizeof *seen);
    job.fitted = sf_calloc(job.outputs, sizeof *job.fitted);
    if (!seen || !job.fitted) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < examples[i].count; k++) seen[examples[i].features[k]] += 1;
    job.seen = seen;
    sf_parallel(settings->threads, job.outputs, 1, fit_outputs, &job);
    if (atomic_load(&job.no_memory)) {
        status = sf_fail_memory(error);
        goto done;
    }
    *fitted = (sf_ngram_fitted){0};
    for (size_t k = 0; k < job.outputs; k++) {
        if (job.fitted[k].passes > fitted->passes) fitted->passes = job.fitted[k].passes;
        fitted->loss += job.fitted[k].loss / (double)job.outputs;
    }
done:
    free(seen);
    free(job.fitted);
    return status;
}
