/* A lexicon in the making: what building and importing have in common. */
#ifndef SF_LEXICON_DRAFT_H
#define SF_LEXICON_DRAFT_H

#include "lexicon/corpus.h"
#include "lexicon/counterfit.h"
#include "lexicon/dropped.h"
#include "lexicon/folding.h"
#include "lexicon/inputs.h"
#include "lexicon/lexicon.h"
#include "lexicon/vectors.h"
#include "lexicon/wordnet.h"

#include <jansson.h>

typedef struct sf_draft {
    const safer_lexicon_options *options; /* borrowed */
    safer_lexicon_report *report;         /* the caller's, or the one below */
    safer_lexicon_report own_report;
    double clock; /* when the present stage began */

    sf_folding folding; /* of words and texts */
    sf_words vocab;     /* of options->vocab, or empty */
    sf_dropped dropped; /* kept when options->dropped says where to */
    sf_inputs inputs;   /* until they are used up */
    sf_vectors vectors; /* what `rows` points into */

    sf_wordnet wordnet;      /* of options->wordnet, when building; else empty */
    sf_constraints antonyms; /* first in the numbers of the vectors, then in the draft's */

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

/* Begins a draft of zeros (with_similarity may be set): an empty report, and the options that both
 * ways share checked; the message names the offending one. */
safer_status sf_draft_begin(sf_draft *draft, const safer_lexicon_options *options, safer_lexicon_report *report,
                            safer_error *error);
void sf_draft_free(sf_draft *draft);

/* Starts the provenance of a lexicon "made" in this way, and reads the vocabulary. */
safer_status sf_draft_describe(sf_draft *draft, const char *made, safer_error *error);

/* Counts the words of the data sets, which are released; nothing without any. */
safer_status sf_draft_count(sf_draft *draft, const sf_words *words, safer_error *error);

/* Takes word x of those that were counted into the draft, with its count; map[x] becomes its number. */
safer_status sf_draft_keep(sf_draft *draft, uint32_t *map, uint32_t x, const char *word, size_t length,
                           safer_error *error);
/* Once all words are chosen: texts and counts in this draft's numbers. Words that were not kept have SF_NONE. */
void sf_draft_renumber(sf_draft *draft, const uint32_t *map);

/* Refuses, excludes and protects; builds graph, ladder, kernel and overlaps; assembles. */
safer_status sf_draft_finish(safer_lexicon **out, sf_draft *draft, safer_error *error);

/* The same words and synonyms with another kernel; the provenance gets why it was chosen, unless that is NULL. */
safer_status sf_lexicon_rework(safer_lexicon **out, const safer_lexicon *lexicon, const char *kernel, json_t *choice,
                               int threads, safer_error *error);

/* What the vector file held. */
void sf_draft_report_vectors(sf_draft *draft);

/* Remembers how long a stage took, and restarts the clock. */
void sf_draft_time(sf_draft *draft, const char *stage);

#endif
