/* Draws from the smoothing kernel of a text.
 *
 * Draw i of slot s is a pure function of (seed, text, stage, i, s): no order, batch or
 * thread can change it. Nothing is allocated while drawing. */
#ifndef SF_DRAW_SAMPLER_H
#define SF_DRAW_SAMPLER_H

#include "base/rng.h"
#include "draw/slots.h"

/* How one slot draws. */
typedef struct sf_draw_rule {
    uint32_t total;  /* of the weights */
    uint32_t reject; /* 2^32 mod total: what Lemire's method turns away */
    uint32_t equal;  /* the common weight, or 0: search the sums below */
    uint32_t count;  /* of the support */
    const uint32_t *weights;
} sf_draw_rule;

/* The item of the support that holds the point r of 0 .. total-1. */
uint32_t sf_draw_item(const sf_draw_rule *rule, uint32_t r);

/* How a slot with this word draws. */
sf_draw_rule sf_sampler_rule(const safer_lexicon *lexicon, uint32_t word);

typedef struct sf_sampler {
    sf_draw_rule *rules; /* one per slot */
    size_t slots, capacity;
    size_t width;           /* numbers of a draw: sf_slots_width */
    int split;              /* that of the slots, like the next four: sf_slots_split */
    uint32_t deletion;      /* the chance of 2^32 */
    size_t groups;          /* or so many groups: then only sf_sampler_group (draw/groups.h) makes it ready */
    const sf_token *tokens; /* borrowed */
    size_t token_count;
    uint32_t *group, *parts; /* (tokens): the group of each; (part_count): draw/groups.h */
    size_t group_capacity, part_count, part_capacity;
} sf_sampler; /* zero-initialise; reused from text to text */

safer_status sf_sampler_prepare(sf_sampler *sampler, const sf_slots *slots, const safer_lexicon *lexicon,
                                safer_error *error);
void sf_sampler_free(sf_sampler *sampler);

/* Not of a text in groups, which has no samples.
 * draws (count, width): samples first .. first+count-1, as sf_slots_width lays them out; the index of a slot is below
 * its rule's count, and 0 where its token is deleted. All draws, without sampling: draw/enumerate.h. */
void sf_sampler_draw(uint32_t *draws, const sf_sampler *sampler, sf_stream stream, uint64_t first, size_t count);

#endif
