/* All draws of a text, by number. */
#include "draw/enumerate.h"

#include "draw/groups.h"

#include <assert.h>
#include <string.h>

/* The chance to be deleted, out/whole in lowest terms. */
typedef struct chance {
    uint64_t deleted, kept, whole;
} chance;

static chance chance_of(const sf_sampler *sampler)
{
    const int shift = __builtin_ctz(sampler->deletion);
    const uint64_t deleted = sampler->deletion >> shift, whole = UINT64_C(1) << (32 - shift);
    return (chance){deleted, whole - deleted, whole};
}

/* What a token that is kept may be, and the total of the weights. */
static uint32_t items_of(const sf_sampler *sampler, size_t token)
{
    const uint32_t slot = sampler->tokens[token].slot;
    return slot == SF_NONE ? 1 : sampler->rules[slot].count;
}

static uint32_t total_of(const sf_sampler *sampler, size_t token)
{
    const uint32_t slot = sampler->tokens[token].slot;
    return slot == SF_NONE ? 1 : sampler->rules[slot].total;
}

static uint64_t count_split(const sf_sampler *sampler, uint64_t most, sf_weight *total)
{
    uint64_t draws = 1;
    const chance c = chance_of(sampler);
    for (size_t t = 0; t < sampler->token_count; t++)
        if (__builtin_mul_overflow(draws, (uint64_t)items_of(sampler, t) + 1, &draws) || draws > most ||
            sf_weight_multiply(total, c.whole) || sf_weight_multiply(total, total_of(sampler, t)))
            return 0;
    return draws;
}

uint64_t sf_enumerate_total(sf_weight *total, const sf_sampler *sampler, size_t visible, uint64_t most)
{
    assert(most >= 1);
    uint64_t draws = 1;
    if (sampler->groups) {
        assert(sampler->part_count > 0);
        *total = sampler->groups;
        return sampler->part_count;
    }
    *total = 1; /* at least every product of weights, each being at most its slot's total */
    if (sampler->deletion) return count_split(sampler, most, total);
    for (size_t s = 0; s < visible; s++)
        if (__builtin_mul_overflow(draws, (uint64_t)sampler->rules[s].count, &draws) || draws > most ||
            sf_weight_multiply(total, sampler->rules[s].total))
            return 0;
    return draws;
}

uint64_t sf_enumerate_count(const sf_sampler *sampler, size_t visible, uint64_t most)
{
    sf_weight total;
    return sf_enumerate_total(&total, sampler, visible, most);
}

static void draw_split(uint32_t *draw, const sf_sampler *sampler, uint64_t number)
{
    memset(draw, 0, sampler->width * sizeof *draw);
    for (size_t t = 0; t < sampler->token_count; t++) {
        const uint64_t choices = (uint64_t)items_of(sampler, t) + 1, digit = number % choices;
        number /= choices;
        if (!digit) continue;
        draw[sampler->slots + t / 32] |= 1u << t % 32;
        if (sampler->tokens[t].slot != SF_NONE) draw[sampler->tokens[t].slot] = (uint32_t)(digit - 1);
    }
}

void sf_enumerate_draws(uint32_t *draws, const sf_sampler *sampler, size_t visible, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t rest = first + i;
        if (sampler->groups) {
            sf_groups_draw(draws, sampler, sampler->parts[rest]);
            draws += sampler->width;
            continue;
        }
        if (sampler->deletion) {
            draw_split(draws, sampler, rest);
            draws += sampler->width;
            continue;
        }
        for (size_t s = 0; s < sampler->slots; s++) {
            const uint32_t choices = s < visible ? sampler->rules[s].count : 1;
            *draws++ = (uint32_t)(rest % choices);
            rest /= choices;
        }
    }
}

static sf_weight weight_split(const sf_sampler *sampler, const uint32_t *draw)
{
    sf_weight weight = 1;
    const chance c = chance_of(sampler);
    for (size_t t = 0; t < sampler->token_count; t++) {
        const uint32_t slot = sampler->tokens[t].slot;
        const int kept = (int)(draw[sampler->slots + t / 32] >> t % 32 & 1);
        weight *= kept ? c.kept : c.deleted;
        weight *= !kept ? total_of(sampler, t) : slot == SF_NONE ? 1 : sampler->rules[slot].weights[draw[slot]];
    }
    return weight;
}

/* That of a group without tokens is the number of such groups. */
static sf_weight weight_of_group(const sf_sampler *sampler, const uint32_t *draw)
{
    for (size_t i = sampler->slots; i < sampler->width; i++)
        if (draw[i]) return 1;
    return sampler->groups - (sampler->part_count - 1);
}

sf_weight sf_enumerate_weight(const sf_sampler *sampler, size_t visible, const uint32_t *draw)
{
    sf_weight weight = 1;
    if (sampler->groups) return weight_of_group(sampler, draw);
    if (sampler->deletion) return weight_split(sampler, draw);
    for (size_t s = 0; s < visible; s++) weight *= sampler->rules[s].weights[draw[s]];
    return weight;
}
