/* Overlaps: how much of its distribution a word keeps when a synonym takes its place. */
#ifndef SF_LEXICON_OVERLAP_H
#define SF_LEXICON_OVERLAP_H

#include "lexicon/kernel.h"

/* s(x,x') = sum over z of min(pi_x(z), pi_x'(z)), as an exact fraction. */
void sf_overlap_rows(const sf_kernel_view *kernel, uint32_t row_a, uint32_t row_b, uint64_t *numerator,
                     uint64_t *denominator);

/* s(x,x') as the largest double that is at most the fraction. */
double sf_overlap(const sf_kernel_view *kernel, uint32_t x, uint32_t other);

/* s_x = min over S_x of s(x,x'), 1 where x has no synonym; worst[x] is the synonym that
 * attains it (the first in id order), or SF_NONE. */
void sf_overlap_all(double *overlap, uint32_t *worst, const sf_kernel_view *kernel, const sf_graph *graph, int threads);

/* prod[r] = product of the radii[r] smallest of the `count` overlaps, rounded down, for
 * rising radii; a radius above count takes them all. Sorts `overlaps`. */
void sf_overlap_products(double *products, const size_t *radii, size_t radius_count, double *overlaps, size_t count);

#endif
