/* Lexicons made of their parts, as no file and no builder of ours would make them. */
#ifndef TESTS_ASSEMBLE_H
#define TESTS_ASSEMBLE_H

#include "lexicon/lexicon.h"
#include "lexicon/overlap.h"
#include "support.h"

/* The lexicon of words, synonyms and a kernel, which it takes over and frees. Counts may be NULL. `lying`: every
 * overlap is said to be 1. */
static inline safer_lexicon *assemble_lexicon(sf_words *words, const uint64_t *counts, sf_graph *graph,
                                              sf_kernel *kernel, const char *name, int directed, int lying)
{
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    double *overlap = calloc(words->count, sizeof *overlap);
    uint32_t *worst = calloc(words->count, sizeof *worst);
    sf_kernel_view view = sf_kernel_as_view(kernel);
    assert_true(overlap && worst);
    sf_overlap_all(overlap, worst, &view, graph, 1);
    for (uint32_t i = 0; lying && i < words->count; i++) overlap[i] = 1;
    sf_lexicon_parts parts = {.words = words,
                              .counts = counts,
                              .graph = graph,
                              .kernel = kernel,
                              .overlap = overlap,
                              .worst = worst,
                              .kernel_name = name,
                              .provenance = "{}",
                              .directed = directed};
    assert_ok(sf_lexicon_assemble(&lexicon, &parts, &error));
    sf_words_free(words);
    sf_graph_free(graph);
    sf_kernel_free(kernel);
    free(overlap);
    free(worst);
    return lexicon;
}

#endif
