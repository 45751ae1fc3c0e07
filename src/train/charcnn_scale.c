/* The `charcnn` classifier: weights from what is trained, and back.
 *
 * An output's inputs are a column of a matrix. Matrices are walked in blocks of rows, so
 * that memory is read as it lies; a block leaves the sums of its columns, and blocks are
 * added up in order: nothing depends on threads. */
#include "base/memory.h"
#include "base/parallel.h"
#include "model/charcnn.h"

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
    int backward;
};

/* The mean square of what a matrix reads: of ReLU, and of the largest of three ReLUs, for
 * independent normal sums. */
static double mean_square(size_t index) { return index < 2 || index == SF_CHARCNN_CONVS - 1 ? 1.26 : 0.5; }

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
        m->inputs = i < convs ? sf_charcnn_width(i + 1) * F : i == convs ? l->inputs : H;
        m->outputs = i < convs ? F : H;
        m->share = 1 / ((double)m->inputs * mean_square(i));
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

/* The matrix that holds a block, and the rows of it. */
static const matrix *find_block(const sf_charcnn_scaling *s, size_t block, size_t *first, size_t *last)
{
    size_t i = SF_CHARCNN_MATRICES - 1;
    while (s->matrices[i].block > block) i--;
    const matrix *m = &s->matrices[i];
    *first = (block - m->block) * ROWS;
    *last = m->inputs - *first > ROWS ? *first + ROWS : m->inputs;
    return m;
}

/* Sums of V and V V, or of dW and dW V. */
static void sum_blocks(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_scaling *s = context;
    (void)worker;
    for (size_t block = begin; block < end; block++) {
        size_t first, last;
        const matrix *m = find_block(s, block, &first, &last);
        const size_t N = m->outputs;
        const float *v = s->trained + m->offset, *x = s->backward ? s->out + m->offset : v;
        float *sum = s->sums + block * 2 * s->widest, *products = sum + s->widest;
        memset(sum, 0, N * sizeof *sum);
        memset(products, 0, N * sizeof *products);
        for (size_t r = first; r < last; r++)
            for (size_t n = 0; n < N; n++) {
                sum[n] += x[r * N + n];
                products[n] += x[r * N + n] * v[r * N + n];
            }
    }
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

static void write_blocks(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_scaling *s = context;
    (void)worker;
    for (size_t block = begin; block < end; block++) {
        size_t first, last;
        const matrix *m = find_block(s, block, &first, &last);
        const size_t N = m->outputs;
        const float *v = s->trained + m->offset;
        float *out = s->out + m->offset;
        for (size_t r = first; r < last; r++)
            if (s->backward)
                for (size_t n = 0; n < N; n++)
                    out[r * N + n] = m->a[n] * out[r * N + n] - m->b[n] * v[r * N + n] + m->c[n];
            else
                for (size_t n = 0; n < N; n++) out[r * N + n] = (v[r * N + n] - m->mean[n]) * m->scale[n];
    }
}

void sf_charcnn_scale(float *parameters, sf_charcnn_scaling *s, const float *trained)
{
    const sf_charcnn_layout *l = &s->layout;
    s->trained = trained;
    s->out = parameters;
    s->backward = 0;
    sf_parallel(s->threads, s->blocks, 1, sum_blocks, s);
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
    sf_parallel(s->threads, s->blocks, 1, write_blocks, s);
    for (size_t i = 0; i < l->tensor_count; i++) { /* the rest is what it is */
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
    s->backward = 1;
    sf_parallel(s->threads, s->blocks, 1, sum_blocks, s);
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
    sf_parallel(s->threads, s->blocks, 1, write_blocks, s);
}
