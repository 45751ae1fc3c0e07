/* Which pairs of a draft may not be exchanged, whatever they mean. */
#ifndef SF_LEXICON_PRUNE_H
#define SF_LEXICON_PRUNE_H

#include "lexicon/draft.h"

/* Drops the pairs that the admission rule, the exclusions and the protections forbid, and counts them. */
safer_status sf_draft_prune(sf_draft *draft, safer_error *error);

#endif
