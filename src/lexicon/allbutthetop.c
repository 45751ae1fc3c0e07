/* All-but-the-top.
 *
 * As published (algorithm 1): with the mean m and the first D principal directions u_d of
 * the centred vectors, v becomes v - m - sum_d (u_d . v) u_d. The projection is that of v
 * itself, not of v - m; the two differ by the same vector for all words. */
#include "lexicon/allbutthetop.h"

#include "base/memory.h"
#include "base/parallel.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------ eigenvectors */

/* Rotates rows p and q of an (n, n) matrix. */
static void rotate_rows(double *m, size_t n, size_t p, size_t q, double c, double s)
{
    double *row_p = m + p * n, *row_q = m + q * n;
    for (size_t k = 0; k < n; k++) {
        double x = row_p[k], y = row_q[k];
        row_p[k] = c * x - s * y;
        row_q[k] = s * x + c * y;
    }
}

static void rotate_columns(double *m, size_t n, size_t p, size_t q, double c, double s)
{
    for (size_t k = 0; k < n; k++) {
        double x = m[k * n + p], y = m[k * n + q];
        m[k * n + p] = c * x - s * y;
        m[k * n + q] = s * x + c * y;
    }
}

static double off_diagonal(const double *m, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) sum += m[i * n + j] * m[i * n + j];
    return sum;
}

safer_status sf_eigen_symmetric(double *matrix, double *values, double *vectors, size_t n, safer_error *error)
{
    double scale = 0;
    memset(vectors, 0, n * n * sizeof *vectors);
    for (size_t i = 0; i < n; i++) {
        vectors[i * n + i] = 1;
        for (size_t j = 0; j < n; j++) scale += matrix[i * n + j] * matrix[i * n + j];
    }
    if (!isfinite(scale)) return sf_fail(error, SAFER_INPUT, "the covariance of the word vectors is not finite");
    int sweep = 0;
    for (; sweep < 60 && off_diagonal(matrix, n) > 1e-30 * scale; sweep++) {
        for (size_t p = 0; p < n; p++) {
            for (size_t q = p + 1; q < n; q++) {
                double apq = matrix[p * n + q];
                if (apq == 0) continue;
                double theta = (matrix[q * n + q] - matrix[p * n + p]) / (2 * apq);
                double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
                double c = 1 / sqrt(t * t + 1), s = t * c;
                rotate_columns(matrix, n, p, q, c, s);
                rotate_rows(matrix, n, p, q, c, s);
                rotate_rows(vectors, n, p, q, c, s);
            }
        }
    }
    if (sweep == 60) return sf_fail(error, SAFER_INPUT, "the principal directions of the word vectors do not converge");
    for (size_t i = 0; i < n; i++) values[i] = matrix[i * n + i];
    for (size_t i = 0; i < n; i++) { /* order by selection: n is a few hundred */
        size_t best = i;
        for (size_t j = i + 1; j < n; j++)
            if (values[j] > values[best]) best = j;
        if (best == i) continue;
        double swap = values[i];
        values[i] = values[best];
        values[best] = swap;
        for (size_t k = 0; k < n; k++) {
            swap = vectors[i * n + k];
            vectors[i * n + k] = vectors[best * n + k];
            vectors[best * n + k] = swap;
        }
    }
    return SAFER_OK;
}

/* ----------------------------------------------------- mean and covariance */

/* Sums are taken over fixed blocks of rows and then over blocks in order, so that the
 * number of threads does not matter. */
enum { BLOCK_ROWS = 4096 };

typedef struct moments {
    float *values;
    size_t count, dim, components;
    const double *mean;       /* (dim) */
    const double *directions; /* (components, dim) */
    double *scratch;          /* (dim) per worker */
    double *partial;          /* a block each: (dim) for the mean, (dim, dim) for the covariance */
} moments;

static void sum_blocks(void *context, size_t begin, size_t end, int worker)
{
    moments *job = context;
    (void)worker;
    for (size_t b = begin; b < end; b++) {
        double *sum = job->partial + b * job->dim;
        size_t stop = (b + 1) * BLOCK_ROWS < job->count ? (b + 1) * BLOCK_ROWS : job->count;
        for (size_t i = b * BLOCK_ROWS; i < stop; i++)
            for (size_t k = 0; k < job->dim; k++) sum[k] += (double)job->values[i * job->dim + k];
    }
}

static void covariance_blocks(void *context, size_t begin, size_t end, int worker)
{
    moments *job = context;
    size_t dim = job->dim;
    double *centred = job->scratch + (size_t)worker * dim;
    for (size_t b = begin; b < end; b++) {
        double *sum = job->partial + b * dim * dim;
        size_t stop = (b + 1) * BLOCK_ROWS < job->count ? (b + 1) * BLOCK_ROWS : job->count;
        for (size_t i = b * BLOCK_ROWS; i < stop; i++) {
            const float *row = job->values + i * dim;
            for (size_t k = 0; k < dim; k++) centred[k] = (double)row[k] - job->mean[k];
            for (size_t j = 0; j < dim; j++) {
                double x = centred[j];
                for (size_t k = j; k < dim; k++) sum[j * dim + k] += x * centred[k];
            }
        }
    }
}

static void project_rows(void *context, size_t begin, size_t end, int worker)
{
    moments *job = context;
    size_t dim = job->dim;
    double *row = job->scratch + (size_t)worker * dim;
    for (size_t i = begin; i < end; i++) {
        float *v = job->values + i * dim;
        for (size_t k = 0; k < dim; k++) row[k] = (double)v[k] - job->mean[k];
        for (size_t c = 0; c < job->components; c++) {
            const double *u = job->directions + c * dim;
            double along = 0;
            for (size_t k = 0; k < dim; k++) along += u[k] * (double)v[k];
            for (size_t k = 0; k < dim; k++) row[k] -= along * u[k];
        }
        for (size_t k = 0; k < dim; k++) v[k] = (float)row[k];
    }
}

safer_status sf_all_but_the_top(float *values, size_t count, size_t dim, size_t components, int threads,
                                safer_error *error)
{
    if (components == 0 || count == 0) return SAFER_OK;
    if (components >= dim)
        return sf_fail(error, SAFER_INVALID,
                       "`all_but_the_top`: %zu directions to remove, but the vectors have only %zu", components, dim);
    safer_status status;
    size_t blocks = (count + BLOCK_ROWS - 1) / BLOCK_ROWS;
    double *mean = sf_calloc(dim, sizeof *mean), *covariance = sf_calloc(dim * dim, sizeof *covariance);
    double *eigen = sf_alloc(dim, sizeof *eigen), *vectors = sf_alloc(dim * dim, sizeof *vectors);
    double *partial = sf_calloc(blocks, dim * dim * sizeof *partial);
    double *scratch = sf_alloc((size_t)sf_threads(threads) * dim, sizeof *scratch);
    if (!mean || !covariance || !eigen || !vectors || !partial || !scratch) {
        status = sf_fail_memory(error);
        goto done;
    }
    moments job = {.values = values,
                   .count = count,
                   .dim = dim,
                   .components = components,
                   .mean = mean,
                   .directions = vectors,
                   .scratch = scratch,
                   .partial = partial};
    sf_parallel(threads, blocks, 1, sum_blocks, &job);
    for (size_t b = 0; b < blocks; b++)
        for (size_t k = 0; k < dim; k++) mean[k] += partial[b * dim + k];
    for (size_t k = 0; k < dim; k++) mean[k] /= (double)count;

    memset(partial, 0, blocks * dim * sizeof *partial);
    sf_parallel(threads, blocks, 1, covariance_blocks, &job);
    for (size_t b = 0; b < blocks; b++)
        for (size_t j = 0; j < dim; j++)
            for (size_t k = j; k < dim; k++)
                covariance[j * dim + k] += partial[(b * dim + j) * dim + k] / (double)count;
    for (size_t j = 0; j < dim; j++)
        for (size_t k = 0; k < j; k++) covariance[j * dim + k] = covariance[k * dim + j];
    SF_TRY(sf_eigen_symmetric(covariance, eigen, vectors, dim, error));
    sf_parallel(threads, count, 1024, project_rows, &job);
    status = SAFER_OK;
done:
    free(mean);
    free(covariance);
    free(eigen);
    free(vectors);
    free(partial);
    free(scratch);
    return status;
}
