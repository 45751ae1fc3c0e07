/* Filters: pairs of synonyms that the options leave out by how frequent the words are, what part of speech they can be,
 * and how near they are. docs/lexicon.md, "Filters", has the rules. */
#ifndef SF_LEXICON_FILTER_H
#define SF_LEXICON_FILTER_H

#include "lexicon/draft.h"

/* Takes what the options leave out from a draft, counts it, and lists it in its provenance. */
safer_status sf_draft_filter(sf_draft *draft, safer_error *error);

#endif
