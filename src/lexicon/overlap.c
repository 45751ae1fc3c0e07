/* Overlaps.
 *
 * The theorem behind every certificate (SAFER, theorem 1, in general form): for
 * independent kernels, |g(X',c) - g(X,c)| <= 1 - prod_i s(x_i, x'_i), because the sum
 * of the smaller of two product measures is at least the product of the sums of the
 * smaller factors. So every s must be a lower bound:
 *
 *   - with weights w, w' and totals W, W' below 2^32, s = sum min(w W', w' W) / (W W')
 *     is computed in 64-bit integers without error (the sum is at most W W' < 2^64);
 *   - the fraction becomes the largest double below or equal to it;
 *   - products of overlaps round down at every multiplication.
 *
 * Hence q_X = 1 - prod s, rounded up, is never too small. */
#include "lexicon/overlap.h"

#include "base/number.h"
#include "base/parallel.h"
#include "base/words.h"

#include <stdlib.h>

void sf_overlap_rows(const sf_kernel_view *kernel, uint32_t row_a, uint32_t row_b, uint64_t *numerator,
                     uint64_t *denominator)
{
    uint64_t total_a = kernel->totals[row_a], total_b = kernel->totals[row_b], common = 0;
    uint64_t i = kernel->offsets[row_a], i_end = kernel->offsets[row_a + 1];
    uint64_t j = kernel->offsets[row_b], j_end = kernel->offsets[row_b + 1];
    while (i < i_end && j < j_end) {
        uint32_t a = kernel->ids[i], b = kernel->ids[j];
        if (a == b) {
            uint64_t left = kernel->weights[i] * total_b, right = kernel->weights[j] * total_a;
            common += left < right ? left : right;
        }
        i += a <= b;
        j += b <= a;
    }
    *numerator = common;
    *denominator = total_a * total_b;
}

double sf_overlap(const sf_kernel_view *kernel, uint32_t x, uint32_t other)
{
    uint64_t numerator, denominator;
    if (kernel->row_of[x] == kernel->row_of[other]) return 1.0;
    sf_overlap_rows(kernel, kernel->row_of[x], kernel->row_of[other], &numerator, &denominator);
    return sf_ratio_down(numerator, denominator);
}

typedef struct job {
    double *overlap;
    uint32_t *worst;
    const sf_kernel_view *kernel;
    const sf_graph *graph;
} job;

static void overlap_words(void *context, size_t begin, size_t end, int worker)
{
    job *j = context;
    (void)worker;
    for (size_t x = begin; x < end; x++) {
        double least = 2.0;
        j->worst[x] = SF_NONE;
        for (uint64_t e = j->graph->offsets[x]; e < j->graph->offsets[x + 1]; e++) {
            double s = sf_overlap(j->kernel, (uint32_t)x, j->graph->ids[e]);
            if (s < least) {
                least = s;
                j->worst[x] = j->graph->ids[e];
            }
        }
        j->overlap[x] = least > 1.0 ? 1.0 : least;
    }
}

void sf_overlap_all(double *overlap, uint32_t *worst, const sf_kernel_view *kernel, const sf_graph *graph, int threads)
{
    job j = {overlap, worst, kernel, graph};
    sf_parallel(threads, graph->words, 256, overlap_words, &j);
}

void sf_overlap_products(double *products, const size_t *radii, size_t radius_count, double *overlaps, size_t count)
{
    double product = 1.0;
    size_t taken = 0;
    qsort(overlaps, count, sizeof *overlaps, sf_compare_doubles);
    for (size_t r = 0; r < radius_count; r++) {
        for (; taken < count && taken < radii[r] && overlaps[taken] < 1.0; taken++)
            product = sf_multiply_down(product, overlaps[taken]);
        products[r] = product;
    }
}
