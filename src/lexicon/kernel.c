/* Smoothing kernels. */
#include "lexicon/kernel.h"

#include "base/memory.h"
#include "base/number.h"

#include <string.h>

safer_status sf_kernel_start(sf_kernel *kernel, uint32_t words, safer_error *error)
{
    *kernel = (sf_kernel){.words = words};
    kernel->row_of = sf_alloc(words, sizeof *kernel->row_of);
    if (!kernel->row_of || sf_grow(&kernel->offsets, &kernel->offset_capacity, 1, sizeof *kernel->offsets)) {
        sf_kernel_free(kernel);
        return sf_fail_memory(error);
    }
    memset(kernel->row_of, 0xff, words * sizeof *kernel->row_of);
    kernel->offsets[0] = 0;
    return SAFER_OK;
}

safer_status sf_kernel_add(sf_kernel *kernel, const uint32_t *ids, const uint32_t *weights, size_t count, uint32_t *row,
                           safer_error *error)
{
    uint64_t total = 0;
    if (count == 0) return sf_fail(error, SAFER_INVALID, "a kernel row without words");
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= kernel->words || (i && ids[i] <= ids[i - 1]))
            return sf_fail(error, SAFER_INVALID,
                           "the words of a kernel row must be distinct, in order and in the lexicon");
        if (weights[i] == 0) return sf_fail(error, SAFER_INVALID, "a kernel weight of 0");
        total += weights[i];
    }
    if (total > UINT32_MAX) return sf_fail(error, SAFER_INVALID, "kernel weights that sum to 2^32 or more");
    size_t filled = (size_t)kernel->offsets[kernel->rows];
    if (sf_grow(&kernel->offsets, &kernel->offset_capacity, (size_t)kernel->rows + 2, sizeof *kernel->offsets) ||
        sf_grow(&kernel->totals, &kernel->row_capacity, (size_t)kernel->rows + 1, sizeof *kernel->totals) ||
        sf_grow(&kernel->ids, &kernel->id_capacity, filled + count, sizeof *kernel->ids) ||
        sf_grow(&kernel->weights, &kernel->weight_capacity, filled + count, sizeof *kernel->weights))
        return sf_fail_memory(error);
    memcpy(kernel->ids + filled, ids, count * sizeof *ids);
    memcpy(kernel->weights + filled, weights, count * sizeof *weights);
    kernel->totals[kernel->rows] = (uint32_t)total;
    kernel->offsets[kernel->rows + 1] = filled + count;
    *row = kernel->rows++;
    return SAFER_OK;
}

sf_kernel_view sf_kernel_as_view(const sf_kernel *kernel)
{
    return (sf_kernel_view){kernel->words, kernel->rows,    kernel->row_of, kernel->offsets,
                            kernel->ids,   kernel->weights, kernel->totals};
}

void sf_kernel_free(sf_kernel *kernel)
{
    free(kernel->row_of);
    free(kernel->offsets);
    free(kernel->ids);
    free(kernel->weights);
    free(kernel->totals);
    *kernel = (sf_kernel){0};
}

/* ------------------------------------------------------- the constructions */

safer_status sf_kernel_spec_parse(sf_kernel_spec *out, const char *text, safer_error *error)
{
    uint64_t k;
    if (strcmp(text, "component") == 0) {
        *out = (sf_kernel_spec){.kind = SF_COMPONENT};
    } else if (strcmp(text, "representative") == 0) {
        *out = (sf_kernel_spec){.kind = SF_REPRESENTATIVE};
    } else if (strncmp(text, "topk:", 5) == 0 && sf_to_uint64(text + 5, &k) == 0 && k >= 1 && k < UINT32_MAX) {
        *out = (sf_kernel_spec){.kind = SF_TOPK, .k = (uint32_t)k};
    } else {
        return sf_fail(error, SAFER_INVALID,
                       "`kernel` is \"%s\"; it must be topk:K (K at least 1), component or representative", text);
    }
    return SAFER_OK;
}

static int compare_ids(const void *left, const void *right)
{
    uint32_t p, q;
    memcpy(&p, left, sizeof p);
    memcpy(&q, right, sizeof q);
    return p < q ? -1 : p > q;
}

static uint32_t most_frequent(const uint32_t *members, size_t size, const uint64_t *counts)
{
    uint32_t best = members[0];
    for (size_t i = 1; counts && i < size; i++)
        if (counts[members[i]] > counts[best]) best = members[i]; /* members ascend: ties keep the smaller id */
    return best;
}

safer_status sf_kernel_build(sf_kernel *out, const sf_graph *graph, const uint64_t *counts, const sf_nearest *nearest,
                             sf_kernel_spec spec, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_kernel kernel = {0};
    uint32_t *sorted = NULL, *ones = NULL, row = 0;
    size_t largest = 1;
    for (uint32_t c = 0; c < graph->components; c++)
        if (sf_graph_component_size(graph, c) > largest) largest = sf_graph_component_size(graph, c);
    sorted = sf_alloc(largest, sizeof *sorted);
    ones = sf_alloc(largest, sizeof *ones);
    if (!sorted || !ones) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < largest; i++) ones[i] = 1;
    SF_TRY(sf_kernel_start(&kernel, graph->words, error));

    for (uint32_t c = 0; c < graph->components; c++) {
        const uint32_t *members = graph->members + graph->member_offsets[c];
        size_t size = sf_graph_component_size(graph, c);
        if (spec.kind == SF_TOPK && size > spec.k) { /* every member has a set of its own */
            for (size_t m = 0; m < size; m++) {
                memcpy(sorted, nearest->ids + nearest->offsets[members[m]], spec.k * sizeof *sorted);
                qsort(sorted, spec.k, sizeof *sorted, compare_ids);
                SF_TRY(sf_kernel_add(&kernel, sorted, ones, spec.k, &row, error));
                kernel.row_of[members[m]] = row;
            }
        } else { /* all members share one */
            uint32_t chosen = most_frequent(members, size, counts);
            if (spec.kind == SF_REPRESENTATIVE)
                SF_TRY(sf_kernel_add(&kernel, &chosen, ones, 1, &row, error));
            else
                SF_TRY(sf_kernel_add(&kernel, members, ones, size, &row, error));
            for (size_t m = 0; m < size; m++) kernel.row_of[members[m]] = row;
        }
    }
    *out = kernel;
    kernel = (sf_kernel){0};
done:
    sf_kernel_free(&kernel);
    free(sorted);
    free(ones);
    return status;
}
