/* The synonym graph: S_x for every word, and its connected components. */
#ifndef SF_LEXICON_GRAPH_H
#define SF_LEXICON_GRAPH_H

#include "base/error.h"
#include "lexicon/pairs.h"

#include <stddef.h>
#include <stdint.h>

/* S_x without x itself: the ids of offsets[x] .. offsets[x+1]-1, ascending. */
typedef struct sf_graph {
    uint32_t words;
    uint64_t *offsets;   /* words+1 */
    uint32_t *ids;       /* offsets[words] */
    float *similarity;   /* the same length, or NULL when none is known */
    uint32_t *component; /* words: number of the component, by smallest member */
    uint32_t components;
    uint64_t *member_offsets; /* components+1 */
    uint32_t *members;        /* words: the members of each component, ascending */
} sf_graph;

typedef enum sf_direction {
    SF_SYMMETRIC, /* every pair counts both ways */
    SF_DIRECTED   /* b may replace a, and not the reverse unless that is listed too */
} sf_direction;

/* Takes edges a -> b in any order, with repeats and loops (which are dropped; of repeats
 * the first in (a,b) order counts). *added gets the number of edges that symmetry added.
 * `with_similarity` keeps the edges' numbers. */
safer_status sf_graph_build(sf_graph *out, uint32_t words, const sf_pair *edges, size_t count, sf_direction direction,
                            int with_similarity, size_t *added, safer_error *error);
void sf_graph_free(sf_graph *graph);

size_t sf_graph_component_size(const sf_graph *graph, uint32_t component);

#endif
