/* Components that antonyms do not share, and that are no larger than asked for: the pairs that are cut for it. */
#ifndef SF_LEXICON_CUTS_H
#define SF_LEXICON_CUTS_H

#include "lexicon/draft.h"

/* A pair that is no pair of synonyms any more. */
typedef struct sf_cut {
    sf_pair pair;    /* a < b; how similar they are, 0 where that is not known */
    double strength; /* what they were ordered by, strongest first; below -2 where similarity is not known */
    int for_size;    /* joining them would have made a component too large; else: brought antonyms together */
} sf_cut;

typedef struct sf_cuts {
    sf_cut *items; /* in the order in which they were cut, strongest first; release with free */
    size_t count, for_size;
    size_t parted; /* antonyms that shared a component before */
} sf_cuts;

/* What is looked at. */
typedef struct sf_cutting {
    uint32_t words;
    const sf_pair *edges; /* a -> b, any order, repeats allowed */
    size_t count;
    int similar;                    /* edges say how similar their words are; else */
    const float *const *rows;       /* words: the vector of each, or NULL; may itself be NULL */
    size_t dim;                     /* of these */
    const sf_constraints *antonyms; /* sorted, in the same numbers */
    size_t most;                    /* words of a component; 0: any number */
} sf_cutting;

/* How strong the pair of edge e of a is, and how similar its words, where that is known. Of `from` only `similar`,
 * `rows` and `dim` count. */
sf_cut sf_cut_weigh(const sf_graph *graph, const sf_cutting *from, uint32_t a, uint64_t e);

safer_status sf_cuts_find(sf_cuts *out, const sf_cutting *from, safer_error *error);

/* Cuts what the options ask for out of a draft, counts it, and lists it in its provenance. */
safer_status sf_draft_cut(sf_draft *draft, safer_error *error);

#endif
