/* A lexicon in the making: what building and importing have in common. */
#ifndef SF_LEXICON_DRAFT_H
#define SF_LEXICON_DRAFT_H

#include "lexicon/corpus.h"
#include "lexicon/inputs.h"
#include "lexicon/lexicon.h"
#include "lexicon/vectors.h"

#include <jansson.h>

typedef struct sf_draft {
    sf_words words;
    uint64_t *counts; /* NULL: unknown */
    sf_pair *edges;   /* a -> b */
    size_t edge_count;
    int with_similarity;
    const float **rows; /* vector of each word, borrowed, or NULL; may itself be NULL */
    size_t dim;
    sf_corpus corpus;   /* in this draft's word numbers; no texts: no ladder */
    json_t *provenance; /* an object, owned */
} sf_draft;

void sf_draft_free(sf_draft *draft);

/* Checks the options that both ways share, and names the offending one. */
safer_status sf_draft_check(const safer_lexicon_options *options, safer_error *error);

/* Starts the provenance of a lexicon "made" in this way. */
safer_status sf_draft_describe(sf_draft *draft, const char *made, const safer_lexicon_options *options,
                               safer_error *error);

/* Refuses, excludes and protects; builds graph, ladder, kernel and overlaps; assembles. */
safer_status sf_draft_finish(safer_lexicon **out, sf_draft *draft, const safer_lexicon_options *options,
                             safer_lexicon_report *report, safer_error *error);

/* What the vector file held. */
void sf_draft_report_vectors(safer_lexicon_report *report, const sf_vectors *vectors);

/* Counts the words of the data sets; nothing without any. */
safer_status sf_draft_count(sf_draft *draft, const sf_inputs *inputs, const sf_words *words,
                            const safer_lexicon_options *options, safer_lexicon_report *report, safer_error *error);

/* Remembers how long a stage took since *clock, and restarts the clock. */
void sf_draft_time(safer_lexicon_report *report, const char *stage, double *clock);

#endif
