/* Principal directions: eigenvectors of the covariance of a sample. */
#include "train/principal.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "lexicon/allbutthetop.h"

#include <string.h>

typedef struct summing {
    const float *vectors; /* (count, dim) */
    const double *mean;
    double *covariance; /* (dim, dim) */
    size_t count, dim, sample;
} summing;

static void sum_mean(double *mean, const float *vectors, size_t count, size_t dim)
{
    for (size_t d = 0; d < dim; d++) mean[d] = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t d = 0; d < dim; d++) mean[d] += (double)vectors[i * dim + d];
    for (size_t d = 0; d < dim; d++) mean[d] /= (double)count;
}

/* Rows begin..end-1 of the covariance, each by one thread. */
static void sum_covariance(void *context, size_t begin, size_t end, int worker)
{
    const summing *s = context;
    const size_t D = s->dim;
    (void)worker;
    memset(s->covariance + begin * D, 0, (end - begin) * D * sizeof *s->covariance);
    for (size_t i = 0; i < s->sample; i++) {
        const float *x = s->vectors + i * s->count / s->sample * D;
        for (size_t a = begin; a < end; a++) {
            const double difference = (double)x[a] - s->mean[a];
            double *row = s->covariance + a * D;
            for (size_t b = 0; b < D; b++) row[b] += difference * ((double)x[b] - s->mean[b]);
        }
    }
}

safer_status sf_principal_find(sf_principal *out, const float *vectors, size_t count, size_t dim, size_t sample,
                               int threads, safer_error *error)
{
    safer_status status;
    sf_principal p = {sf_alloc(dim, sizeof *p.mean), sf_alloc(dim, sizeof *p.values),
                      sf_alloc(dim * dim, sizeof *p.directions)};
    double *covariance = sf_alloc(dim * dim, sizeof *covariance);
    if (!p.mean || !p.values || !p.directions || !covariance) {
        status = sf_fail_memory(error);
        goto done;
    }
    sum_mean(p.mean, vectors, count, dim);
    summing s = {vectors, p.mean, covariance, count, dim, sample};
    sf_parallel(threads, dim, 8, sum_covariance, &s);
    SF_TRY(sf_eigen_symmetric(covariance, p.values, p.directions, dim, error));
    *out = p;
    p = (sf_principal){0};
done:
    free(covariance);
    sf_principal_free(&p);
    return status;
}

void sf_principal_free(sf_principal *p)
{
    free(p->mean);
    free(p->values);
    free(p->directions);
    *p = (sf_principal){0};
}
