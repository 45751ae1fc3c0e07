/* Draws from the smoothing kernel of a text.
 *
 * One Philox block serves four neighbouring slots of a sample: word s mod 4 of block
 * s div 4. A word that Lemire's method rejects (a chance of total/2^32) is replaced by
 * the slot's own further blocks.
 *
 * Where draws delete, word t mod 4 of block t div 4 of a counter of their own, whose last word no slot comes to,
 * decides token t: it is deleted when the word is below `deletion`, with a chance of exactly deletion/2^32. What is
 * kept is drawn as it would be without deletion. */
#include "draw/sampler.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

sf_draw_rule sf_sampler_rule(const safer_lexicon *l, uint32_t word)
{
    uint32_t row = l->kernel.row_of[word];
    uint64_t first = l->kernel.offsets[row];
    sf_draw_rule rule = {.total = l->kernel.totals[row],
                         .equal = l->equal[row],
                         .count = (uint32_t)(l->kernel.offsets[row + 1] - first),
                         .weights = l->kernel.weights + first};
    rule.reject = (0u - rule.total) % rule.total;
    return rule;
}

safer_status sf_sampler_prepare(sf_sampler *sampler, const sf_slots *slots, const safer_lexicon *l, safer_error *error)
{
    if (sf_grow(&sampler->rules, &sampler->capacity, slots->slot_count + 1, sizeof *sampler->rules))
        return sf_fail_memory(error);
    sampler->slots = slots->slot_count;
    sampler->width = sf_slots_width(slots);
    sampler->split = slots->split;
    sampler->deletion = slots->deletion;
    sampler->groups = slots->groups;
    sampler->tokens = slots->tokens;
    sampler->token_count = slots->split ? slots->token_count : 0;
    sampler->part_count = 0;
    for (size_t s = 0; s < slots->slot_count; s++)
        sampler->rules[s] = sf_sampler_rule(l, slots->words[slots->slots[s]].word);
    return SAFER_OK;
}

void sf_sampler_free(sf_sampler *sampler)
{
    free(sampler->rules);
    free(sampler->group);
    free(sampler->parts);
    *sampler = (sf_sampler){0};
}

uint32_t sf_draw_item(const sf_draw_rule *rule, uint32_t r)
{
    if (rule->equal == 1) return r;
    if (rule->equal) return r / rule->equal;
    uint32_t i = 0;
    while (r >= rule->weights[i]) r -= rule->weights[i++];
    return i;
}

/* A point of 0 .. total-1 from blocks of the slot's own (counter word 3 from 1 on). */
static uint32_t draw_again(const sf_draw_rule *rule, sf_stream stream, uint64_t sample, uint32_t slot)
{
    uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), slot, 1}, block[4];
    for (;; counter[3]++) {
        sf_philox(block, counter, stream.key);
        for (int i = 0; i < 4; i++) {
            uint64_t product = (uint64_t)block[i] * rule->total;
            if ((uint32_t)product >= rule->reject) return (uint32_t)(product >> 32);
        }
    }
}

/* The index into the slot's support. `block` is that of s div 4. */
static uint32_t draw_slot(const sf_sampler *sampler, sf_stream stream, uint64_t sample, size_t s,
                          const uint32_t block[4])
{
    const sf_draw_rule *rule = &sampler->rules[s];
    const uint64_t product = (uint64_t)block[s % 4] * rule->total;
    return sf_draw_item(rule, (uint32_t)product >= rule->reject ? (uint32_t)(product >> 32)
                                                                : draw_again(rule, stream, sample, (uint32_t)s));
}

/* Bit t of bits: whether token t is kept. */
static void draw_tokens(uint32_t *bits, const sf_sampler *sampler, sf_stream stream, uint64_t sample)
{
    uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), 0, UINT32_MAX}, block[4];
    for (size_t t = 0; t < sampler->token_count; t += 4) {
        counter[2] = (uint32_t)(t / 4);
        sf_philox(block, counter, stream.key);
        uint32_t kept = 0;
        for (uint32_t k = 0; k < 4; k++) kept |= (uint32_t)(block[k] >= sampler->deletion) << k;
        if (sampler->token_count - t < 4) kept &= (1u << (sampler->token_count - t)) - 1;
        bits[t / 32] |= kept << t % 32;
    }
}

/* A draw of a text that is split. Slots whose tokens are deleted need no block. */
static void draw_kept(uint32_t *draw, const sf_sampler *sampler, sf_stream stream, uint64_t sample)
{
    uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), UINT32_MAX, 0}, block[4] = {0};
    uint32_t *bits = draw + sampler->slots;
    memset(draw, 0, sampler->width * sizeof *draw);
    draw_tokens(bits, sampler, stream, sample);
    for (size_t group = 0; group < sampler->width - sampler->slots; group++)
        for (uint32_t left = bits[group]; left; left &= left - 1) {
            const uint32_t s = sampler->tokens[32 * group + (size_t)__builtin_ctz(left)].slot;
            if (s == SF_NONE) continue;
            if (counter[2] != s / 4) {
                counter[2] = s / 4;
                sf_philox(block, counter, stream.key);
            }
            draw[s] = draw_slot(sampler, stream, sample, s, block);
        }
}

void sf_sampler_draw(uint32_t *draws, const sf_sampler *sampler, sf_stream stream, uint64_t first, size_t count)
{
    assert(!sampler->groups);
    for (size_t i = 0; i < count; i++) {
        uint64_t sample = first + i;
        uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), 0, 0}, block[4] = {0};
        if (sampler->deletion) {
            draw_kept(draws, sampler, stream, sample);
            draws += sampler->width;
            continue;
        }
        for (size_t s = 0; s < sampler->slots; s++) {
            if (s % 4 == 0) {
                counter[2] = (uint32_t)(s / 4);
                sf_philox(block, counter, stream.key);
            }
            *draws++ = draw_slot(sampler, stream, sample, s, block);
        }
    }
}
