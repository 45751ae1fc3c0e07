/* All draws of a text, by number.
 *
 * A text with few slots has few distinct draws: then each can be asked once, and the shares of the
 * classes are known exactly instead of estimated.
 *
 * Draw number d of the slots 0 .. visible-1 is d in mixed radix, the first slot lowest: slot 0
 * holds item d mod count(0) of its support, slot 1 item (d div count(0)) mod count(1), and so on.
 * So the numbers 0 .. draws-1 and the distinct draws correspond one to one. Slots from `visible`
 * on, which the model cannot see, hold the first item of their support in every draw.
 *
 * Of a text that is split (sf_slots_split) the digits are those of the tokens: 0 where the token is deleted, then what
 * it may be, one or the items of its slot. The weight of a deletion is that of the chance, in lowest terms, times the
 * total of the slot; all slots are visible.
 *
 * Of a text in groups the draws are the groups with tokens, and one that stands for all without (draw/groups.h); what
 * was said of `most` and of the weights' sum does not matter there: there are at most SAFER_GROUPS.
 *
 * The weight of a draw is the product of its items' weights; its probability is that weight over
 * the product of the slots' totals, which is what the weights of all draws add up to.
 *
 * Pure functions; any number of threads. */
#ifndef SF_DRAW_ENUMERATE_H
#define SF_DRAW_ENUMERATE_H

#include "base/number.h"
#include "draw/sampler.h"

/* How many distinct draws the first `visible` slots have: 1 for no slots. 0 when there are more than
 * `most` (at least 1), or when the sum of their weights does not fit sf_weight: then the text must be sampled. */
uint64_t sf_enumerate_count(const sf_sampler *sampler, size_t visible, uint64_t most);

/* The same, and what the weights add up to, of no meaning where it returns 0. */
uint64_t sf_enumerate_total(sf_weight *total, const sf_sampler *sampler, size_t visible, uint64_t most);

/* draws (count, width): the draws with numbers first .. first+count-1, as sf_sampler_draw lays them
 * out. They must be below sf_enumerate_count. */
void sf_enumerate_draws(uint32_t *draws, const sf_sampler *sampler, size_t visible, uint64_t first, size_t count);

/* The weight of one draw. No product, and no sum of these weights over distinct draws, overflows
 * where sf_enumerate_count is not 0. */
sf_weight sf_enumerate_weight(const sf_sampler *sampler, size_t visible, const uint32_t *draw);

#endif
