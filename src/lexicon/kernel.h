/* Smoothing kernels: the distribution pi_x from which a word x draws its substitute.
 *
 * A kernel is a set of rows, each a sparse distribution with whole-number weights, and
 * for every word the row it draws from. Words may share a row. Nothing that uses a
 * kernel may assume that rows are uniform, of one size, or hold the word itself. */
#ifndef SF_LEXICON_KERNEL_H
#define SF_LEXICON_KERNEL_H

#include "lexicon/graph.h"
#include "lexicon/nearest.h"

/* Read-only form, also what a lexicon file maps. */
typedef struct sf_kernel_view {
    uint32_t words, rows;
    const uint32_t *row_of;  /* words */
    const uint64_t *offsets; /* rows+1 */
    const uint32_t *ids;     /* ascending within a row */
    const uint32_t *weights; /* at least 1 */
    const uint32_t *totals;  /* rows: the sum of the weights, below 2^32 */
} sf_kernel_view;

typedef struct sf_kernel {
    uint32_t words, rows;
    uint32_t *row_of;
    uint64_t *offsets;
    uint32_t *ids, *weights, *totals;
    size_t row_capacity, offset_capacity, id_capacity, weight_capacity;
} sf_kernel;

/* An empty kernel for so many words; every word must be given a row. */
safer_status sf_kernel_start(sf_kernel *kernel, uint32_t words, safer_error *error);

/* Adds any distribution: count >= 1 distinct ids below `words`, ascending; weights >= 1,
 * summing to less than 2^32. *row gets its number. */
safer_status sf_kernel_add(sf_kernel *kernel, const uint32_t *ids, const uint32_t *weights, size_t count, uint32_t *row,
                           safer_error *error);

sf_kernel_view sf_kernel_as_view(const sf_kernel *kernel);
void sf_kernel_free(sf_kernel *kernel);

typedef enum sf_kernel_kind { SF_TOPK, SF_COMPONENT, SF_REPRESENTATIVE } sf_kernel_kind;

typedef struct sf_kernel_spec {
    sf_kernel_kind kind;
    uint32_t k; /* of topk, at least 1 */
} sf_kernel_spec;

/* "topk:100", "component", "representative". */
safer_status sf_kernel_spec_parse(sf_kernel_spec *out, const char *text, safer_error *error);

/* topk: uniform on the first k of x's component, nearest first (all of it when it is no
 * larger). component: uniform on the component. representative: the component's most
 * frequent word, ties to the smaller id. `nearest` is needed for topk only, with a
 * floor of at most k and a limit of at least k. */
safer_status sf_kernel_build(sf_kernel *out, const sf_graph *graph, const uint64_t *counts, const sf_nearest *nearest,
                             sf_kernel_spec spec, safer_error *error);

#endif
