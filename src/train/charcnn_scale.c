/* Training of `charcnn`: weights from what is trained, and back.
 *
 * An output's inputs are a column of a matrix. Matrices are walked in blocks of rows, so
 * that memory is read as it lies; a block leaves the sums of its columns, and blocks are
 * added up in order: nothing depends on threads. */
#include "train/charcnn_scale.h"

#include "base/memory.h"
#include "base/parallel.h"

#include <math.h>
#include <string.h>

enum { ROWS = 128 };

typedef struct matrix {
    size_t offset, gains; /* among the parameters */
    size_t inputs, outputs;
    double share;        /* 1 / (n m) */
    size_t block;        /* the first of its blocks */
    float *mean, *scale; /* (outputs): W = (V - mean) scale */
    double *spread;      /* (outputs): the root mean square of V - mean */
    float *a, *b, *c;    /* (outputs): dV = a dW - b V + c */
} matrix;

/* A block of rows: of V, of what is written, and where the sums of its columns go. */
typedef struct rows {
    const matrix *m;
    const float *v;        /* (count, N) */
    float *out;            /* (count, N): weights, or their gradient, which becomes that of V */
    float *sum, *products; /* (N) */
    size_t count, N;
} rows;

struct sf_charcnn_scaling {
    sf_charcnn_layout layout;
    int threads;
    matrix matrices[SF_CHARCNN_MATRICES];
    size_t blocks, widest;
    float *sums; /* (blocks, 2, widest) */
    float *numbers;
    double *spreads;

    /* Of the call in progress. */
    const float *trained;
    float *out; /* parameters or gradient */
    void (*visit)(const rows *block);
};

/* The mean square of what a matrix reads: of ReLU, and of the largest of three ReLUs, for
 * independent normal sums. */
static double mean_square(size_t index) { return index < 2 || index == SF_CHARCNN_CONVS - 1 ? 1.26 : 0.5; }

static size_t inputs_of(const sf_charcnn_layout *l, size_t index)
{
    const size_t convs = SF_CHARCNN_CONVS - 1;
    if (index < convs) return sf_charcnn_width(index + 1) * l->shape.features;
    return index == convs ? l->inputs : l->shape.hidden;
}

double sf_charcnn_share(const sf_charcnn_layout *l, size_t index)
{
    return 1 / ((double)inputs_of(l, index) * mean_square(index));
}

void sf_charcnn_scaling_free(sf_charcnn_scaling *s)
{
    if (!s) return;
    free(s->sums);
    free(s->numbers);
    free(s->spreads);
    free(s);
}

safer_status sf_charcnn_scaling_new(sf_charcnn_scaling **out, const sf_charcnn_layout *l, int threads,
                                    safer_error *error)
{
    const size_t convs = SF_CHARCNN_CONVS - 1, F = l->shape.features, H = l->shape.hidden;
    sf_charcnn_scaling *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->layout = *l;
    s->threads = threads;
    s->widest = F > H ? F : H;
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) {
        matrix *m = &s->matrices[i];
        m->offset = i < convs ? l->conv_weight[i + 1] : l->hidden_weight[i - convs];
        m->gains = l->gains[i];
        m->inputs = inputs_of(l, i);
        m->outputs = i < convs ? F : H;
        m->share = sf_charcnn_share(l, i);
        m->block = s->blocks;
        s->blocks += (m->inputs + ROWS - 1) / ROWS;
    }
    s->sums = sf_alloc_aligned(s->blocks * 2 * s->widest, sizeof *s->sums);
    s->numbers = sf_alloc_aligned(SF_CHARCNN_MATRICES * 5 * s->widest, sizeof *s->numbers);
    s->spreads = sf_alloc(SF_CHARCNN_MATRICES * s->widest, sizeof *s->spreads);
    if (!s->sums || !s->numbers || !s->spreads) {
        sf_charcnn_scaling_free(s);
        return sf_fail_memory(error);
    }
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) {
        matrix *m = &s->matrices[i];
        float **const place[] = {&m->mean, &m->scale, &m->a, &m->b, &m->c};
        for (size_t k = 0; k < 5; k++) *place[k] = s->numbers + (i * 5 + k) * s->widest;
        m->spread = s->spreads + i * s->widest;
    }
    *out = s;
    return SAFER_OK;
}

/* Items are blocks. */
static void visit_blocks(void *context, size_t begin, size_t end, int worker)
{
    const sf_charcnn_scaling *s = context;
    size_t i = 0;
    (void)worker;
    for (size_t block = begin; block < end; block++) {
        while (i + 1 < SF_CHARCNN_MATRICES && s->matrices[i + 1].block <= block) i++;
        const matrix *m = &s->matrices[i];
        const size_t first = (block - m->block) * ROWS, N = m->outputs, at = m->offset + first * N;
        s->visit(&(rows){.m = m,
                         .v = s->trained + at,
                         .out = s->out + at,
                         .sum = s->sums + block * 2 * s->widest,
                         .products = s->sums + (block * 2 + 1) * s->widest,
                         .count = m->inputs - first > ROWS ? ROWS : m->inputs - first,
                         .N = N});
    }
}

static void visit_all(sf_charcnn_scaling *s, void (*visit)(const rows *block))
{
    s->visit = visit;
    sf_parallel(s->threads, s->blocks, 1, visit_blocks, s);
}

/* Sums of x and x V over the rows. */
static void sum_rows(const rows *r, const float *x)
{
    const size_t N = r->N;
    const float *v = r->v;
    float *sum = r->sum, *products = r->products;
    memset(sum, 0, N * sizeof *sum);
    memset(products, 0, N * sizeof *products);
    for (size_t k = 0; k < r->count; k++)
        for (size_t n = 0; n < N; n++) {
            sum[n] += x[k * N + n];
            products[n] += x[k * N + n] * v[k * N + n];
        }
}

static void sum_forward(const rows *r) { sum_rows(r, r->v); }
static void sum_backward(const rows *r) { sum_rows(r, r->out); }

static void write_forward(const rows *r)
{
    const size_t N = r->N;
    const float *v = r->v, *mean = r->m->mean, *scale = r->m->scale;
    for (size_t k = 0; k < r->count; k++)
        for (size_t n = 0; n < N; n++) r->out[k * N + n] = (v[k * N + n] - mean[n]) * scale[n];
}

static void write_backward(const rows *r)
{
    const size_t N = r->N;
    const float *v = r->v, *a = r->m->a, *b = r->m->b, *c = r->m->c;
    float *out = r->out;
    for (size_t k = 0; k < r->count; k++)
        for (size_t n = 0; n < N; n++) out[k * N + n] = a[n] * out[k * N + n] - b[n] * v[k * N + n] + c[n];
}

static void add_up(double *sum, double *products, const sf_charcnn_scaling *s, const matrix *m, size_t n)
{
    const size_t blocks = (m->inputs + ROWS - 1) / ROWS;
    *sum = *products = 0;
    for (size_t k = m->block; k < m->block + blocks; k++) {
        *sum += (double)s->sums[k * 2 * s->widest + n];
        *products += (double)s->sums[(k * 2 + 1) * s->widest + n];
    }
}

void sf_charcnn_scale(float *parameters, sf_charcnn_scaling *s, const float *trained)
{
    const sf_charcnn_layout *l = &s->layout;
    s->trained = trained;
    s->out = parameters;
    visit_all(s, sum_forward);
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) {
        matrix *m = &s->matrices[i];
        for (size_t n = 0; n < m->outputs; n++) {
            double sum, squares, mean, spread;
            add_up(&sum, &squares, s, m, n);
            mean = sum / (double)m->inputs;
            spread = sqrt(fmax(squares / (double)m->inputs - mean * mean, 1e-12));
            m->mean[n] = (float)mean;
            m->spread[n] = spread;
            m->scale[n] = (float)((double)trained[m->gains + n] * sqrt(m->share) / spread);
        }
    }
    visit_all(s, write_forward);
    for (size_t i = 0; i < l->tensor_count; i++) { /* the others stay as they are */
        const size_t at = l->tensors[i].offset;
        int scaled = 0;
        for (size_t k = 0; k < SF_CHARCNN_MATRICES; k++) scaled |= at == s->matrices[k].offset;
        if (!scaled) memcpy(parameters + at, trained + at, l->tensors[i].count * sizeof *parameters);
    }
}

/* With u = (V - mean) / spread and W = g k u, k = sqrt(share):
 * dg = k sum(dW u), and dV = (g k / spread) (dW - mean(dW) - u mean(dW u)). */
void sf_charcnn_scale_backward(float *gradient, sf_charcnn_scaling *s, const float *trained)
{
    s->trained = trained;
    s->out = gradient;
    visit_all(s, sum_backward);
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) {
        matrix *m = &s->matrices[i];
        for (size_t n = 0; n < m->outputs; n++) {
            const double inputs = (double)m->inputs, mean = (double)m->mean[n], spread = m->spread[n],
                         k = sqrt(m->share);
            double sum, products;
            add_up(&sum, &products, s, m, n);
            const double along = (products - mean * sum) / (inputs * spread); /* mean(dW u) */
            const double a = (double)trained[m->gains + n] * k / spread, b = a * along / spread;
            gradient[m->gains + n] = (float)(k * inputs * along);
            m->a[n] = (float)a;
            m->b[n] = (float)b;
            m->c[n] = (float)(b * mean - a * sum / inputs);
        }
    }
    visit_all(s, write_backward);
}
