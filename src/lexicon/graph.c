/* The synonym graph. */
#include "lexicon/graph.h"

#include "base/memory.h"

#include <string.h>

static size_t sort_edges(sf_pair *edges, size_t count)
{
    size_t kept = 0;
    if (count) qsort(edges, count, sizeof *edges, sf_pair_compare);
    for (size_t i = 0; i < count; i++) {
        if (edges[i].a == edges[i].b) continue;
        if (kept && sf_pair_compare(&edges[kept - 1], &edges[i]) == 0) continue;
        edges[kept++] = edges[i];
    }
    return kept;
}

/* ------------------------------------------------------------- components */

static uint32_t root_of(uint32_t *parent, uint32_t x)
{
    while (parent[x] != x) {
        parent[x] = parent[parent[x]]; /* halve the path */
        x = parent[x];
    }
    return x;
}

static safer_status find_components(sf_graph *g, safer_error *error)
{
    uint32_t n = g->words;
    uint32_t *parent = sf_alloc(n, sizeof *parent), *number = sf_alloc(n, sizeof *number);
    g->component = sf_alloc(n, sizeof *g->component);
    g->members = sf_alloc(n, sizeof *g->members);
    if (!parent || !number || !g->component || !g->members) goto no_memory;
    for (uint32_t x = 0; x < n; x++) parent[x] = x;
    for (uint32_t x = 0; x < n; x++) {
        for (uint64_t e = g->offsets[x]; e < g->offsets[x + 1]; e++) {
            uint32_t a = root_of(parent, x), b = root_of(parent, g->ids[e]);
            if (a < b)
                parent[b] = a; /* the smallest member is the root */
            else
                parent[a] = b;
        }
    }
    for (uint32_t x = 0; x < n; x++) {
        uint32_t root = root_of(parent, x);
        if (root == x) number[x] = g->components++;
        g->component[x] = number[root];
    }
    g->member_offsets = sf_calloc((size_t)g->components + 2, sizeof *g->member_offsets);
    if (!g->member_offsets) goto no_memory;
    /* Counting sort; after placing, offsets[c+1] has walked to the end of c's range. */
    uint64_t *at = g->member_offsets + 1;
    for (uint32_t x = 0; x < n; x++) at[g->component[x] + 1]++;
    for (uint32_t c = 0; c < g->components; c++) at[c + 1] += at[c];
    for (uint32_t x = 0; x < n; x++) g->members[at[g->component[x]]++] = x;
    free(parent);
    free(number);
    return SAFER_OK;
no_memory:
    free(parent);
    free(number);
    return sf_fail_memory(error);
}

safer_status sf_graph_build(sf_graph *out, uint32_t words, const sf_pair *edges, size_t count, sf_direction direction,
                            int with_similarity, size_t *added, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_graph g = {.words = words};
    sf_pair *list = sf_alloc(count ? count * 2 : 1, sizeof *list);
    size_t kept = 0;
    if (added) *added = 0;
    if (!list) goto no_memory;
    if (count) memcpy(list, edges, count * sizeof *list);
    kept = sort_edges(list, count);
    if (direction == SF_SYMMETRIC) {
        size_t given = kept;
        for (size_t i = 0; i < given; i++) list[given + i] = (sf_pair){list[i].b, list[i].a, list[i].similarity};
        kept = sort_edges(list, 2 * given);
        if (added) *added = kept - given;
    }
    g.offsets = sf_calloc((size_t)words + 1, sizeof *g.offsets);
    g.ids = sf_alloc(kept, sizeof *g.ids);
    if (with_similarity) g.similarity = sf_alloc(kept, sizeof *g.similarity);
    if (!g.offsets || !g.ids || (with_similarity && !g.similarity)) goto no_memory;
    for (size_t i = 0; i < kept; i++) {
        g.offsets[list[i].a + 1]++;
        g.ids[i] = list[i].b;
        if (with_similarity) g.similarity[i] = list[i].similarity;
    }
    for (uint32_t x = 0; x < words; x++) g.offsets[x + 1] += g.offsets[x];
    SF_TRY(find_components(&g, error));
    *out = g;
    g = (sf_graph){0};
    goto done;
no_memory:
    status = sf_fail_memory(error);
done:
    free(list);
    sf_graph_free(&g);
    return status;
}

void sf_graph_free(sf_graph *graph)
{
    free(graph->offsets);
    free(graph->ids);
    free(graph->similarity);
    free(graph->component);
    free(graph->member_offsets);
    free(graph->members);
    *graph = (sf_graph){0};
}

size_t sf_graph_component_size(const sf_graph *graph, uint32_t component)
{
    return (size_t)(graph->member_offsets[component + 1] - graph->member_offsets[component]);
}
