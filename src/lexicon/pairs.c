/* All pairs above a threshold.
 *
 * The Gram matrix is computed tile by tile with single-precision matrix products and
 * never kept: each worker has one tile of TILE_ROWS x TILE_COLUMNS numbers, scans it for
 * candidates while it is in cache, and drops it. Only tiles on or above the diagonal
 * are computed.
 *
 * Exactness: a product of two rows in single precision, in whatever order, differs from
 * the true one by at most dim * 2^-24 * |a||b| / (1 - dim * 2^-24) (Higham, Accuracy and
 * Stability, section 3.1). A candidate is whatever reaches the threshold less twice
 * that; every candidate is then decided in double. So the result depends neither on the
 * matrix library nor on the number of threads. */
#include "lexicon/pairs.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "lexicon/vectors.h"
#include "nn/gemm.h"

#include <math.h>
#include <string.h>

enum { TILE_ROWS = 512, TILE_COLUMNS = 1024, SCAN = 64 };

typedef struct found {
    sf_pair *items;
    size_t count, capacity;
    float *tile; /* (TILE_ROWS, TILE_COLUMNS) */
    int failed;  /* memory was out */
} found;

typedef struct search {
    const float *values;
    size_t count, dim, tile_columns; /* tiles across */
    double threshold;
    float candidate; /* the threshold less the error of single precision */
    found *found;    /* one per worker */
    sf_meter meter;
} search;

static int add_pair(found *f, size_t a, size_t b, double similarity)
{
    if (sf_grow(&f->items, &f->capacity, f->count + 1, sizeof *f->items)) return -1;
    f->items[f->count++] = (sf_pair){(uint32_t)a, (uint32_t)b, (float)similarity};
    return 0;
}

/* Row `a` against the tile's columns b0 .. b0+columns-1. */
static void scan_row(const search *job, found *f, const float *products, size_t a, size_t b0, size_t columns)
{
    for (size_t j = 0; j < columns; j += SCAN) {
        size_t stop = columns - j < SCAN ? columns : j + SCAN;
        int hit = 0; /* written so that it vectorises */
        for (size_t k = j; k < stop; k++) hit |= products[k] >= job->candidate;
        if (!hit) continue;
        for (size_t k = j; k < stop; k++) {
            if (!(products[k] >= job->candidate) || b0 + k <= a) continue;
            double exact = sf_vectors_dot(job->values + a * job->dim, job->values + (b0 + k) * job->dim, job->dim);
            if (exact >= job->threshold && add_pair(f, a, b0 + k, exact)) {
                f->failed = 1;
                return;
            }
        }
    }
}

static void search_tiles(void *context, size_t begin, size_t end, int worker)
{
    search *job = context;
    found *f = &job->found[worker];
    for (size_t t = begin; t < end; t++) {
        size_t a0 = t / job->tile_columns * TILE_ROWS, b0 = t % job->tile_columns * TILE_COLUMNS;
        size_t rows = job->count - a0 < TILE_ROWS ? job->count - a0 : TILE_ROWS;
        size_t columns = job->count - b0 < TILE_COLUMNS ? job->count - b0 : TILE_COLUMNS;
        if (f->failed || sf_meter_cancelled(&job->meter)) return;
        if (b0 + columns <= a0 + 1) continue; /* wholly below the diagonal */
        const sf_gemm_side left = {job->values + a0 * job->dim, job->dim},
                           right = {job->values + b0 * job->dim, job->dim};
        sf_gemm(SF_GEMM_NT, f->tile, TILE_COLUMNS, left, right, 0, rows, columns, job->dim);
        for (size_t i = 0; i < rows; i++) scan_row(job, f, f->tile + i * TILE_COLUMNS, a0 + i, b0, columns);
        sf_meter_add(&job->meter, 1, worker);
    }
}

int sf_pair_compare(const void *left, const void *right)
{
    const sf_pair *p = left, *q = right;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    return p->b < q->b ? -1 : p->b > q->b;
}

static double longest_row(const float *values, size_t count, size_t dim)
{
    double longest = 0;
    for (size_t i = 0; i < count; i++) {
        double square = sf_vectors_dot(values + i * dim, values + i * dim, dim);
        if (square > longest) longest = square;
    }
    return sqrt(longest);
}

safer_status sf_pairs_find(sf_pairs *out, const float *values, size_t count, size_t dim, double threshold, int threads,
                           const safer_progress *progress, const char *stage, safer_error *error)
{
    safer_status status = SAFER_OK;
    *out = (sf_pairs){0};
    threads = sf_threads(threads);
    double longest = longest_row(values, count, dim);
    double margin = 2.0 * 1.01 * (double)dim * 0x1p-24 * longest * longest;
    search job = {.values = values, .count = count, .dim = dim, .threshold = threshold};
    job.candidate = nextafterf((float)(threshold - margin), -INFINITY);
    job.tile_columns = (count + TILE_COLUMNS - 1) / TILE_COLUMNS;
    size_t tile_rows = (count + TILE_ROWS - 1) / TILE_ROWS, total = 0;
    job.found = sf_calloc((size_t)threads, sizeof *job.found);
    if (!job.found) return sf_fail_memory(error);
    for (int i = 0; i < threads; i++)
        if (!(job.found[i].tile = sf_alloc_aligned((size_t)TILE_ROWS * TILE_COLUMNS, sizeof(float)))) {
            status = sf_fail_memory(error);
            goto done;
        }

    sf_meter_start(&job.meter, progress, stage, (tile_rows * job.tile_columns + job.tile_columns) / 2);
    sf_parallel(threads, tile_rows * job.tile_columns, 1, search_tiles, &job);
    SF_TRY(sf_meter_finish(&job.meter, error));
    for (int i = 0; i < threads; i++) {
        if (job.found[i].failed) {
            status = sf_fail_memory(error);
            goto done;
        }
        total += job.found[i].count;
    }
    if (!(out->items = sf_alloc(total, sizeof *out->items))) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (int i = 0; i < threads; i++) {
        if (job.found[i].count)
            memcpy(out->items + out->count, job.found[i].items, job.found[i].count * sizeof *out->items);
        out->count += job.found[i].count;
    }
    qsort(out->items, out->count, sizeof *out->items, sf_pair_compare);
done:
    for (int i = 0; i < threads; i++) {
        free(job.found[i].items);
        free(job.found[i].tile);
    }
    free(job.found);
    return status;
}

safer_status sf_pairs_find_naive(sf_pairs *out, const float *values, size_t count, size_t dim, double threshold,
                                 safer_error *error)
{
    found f = {0};
    *out = (sf_pairs){0};
    for (size_t a = 0; a < count; a++) {
        for (size_t b = a + 1; b < count; b++) {
            double similarity = sf_vectors_dot(values + a * dim, values + b * dim, dim);
            if (similarity >= threshold && add_pair(&f, a, b, similarity)) {
                free(f.items);
                return sf_fail_memory(error);
            }
        }
    }
    *out = (sf_pairs){f.items, f.count};
    return SAFER_OK;
}
