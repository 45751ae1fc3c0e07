/* All draws of a text, by number. */
#include "draw/enumerate.h"

#include <assert.h>

uint64_t sf_enumerate_count(const sf_sampler *sampler, size_t visible, uint64_t most)
{
    assert(most >= 1);
    uint64_t draws = 1;
    sf_weight total = 1; /* at least every product of weights, each being at most its slot's total */
    for (size_t s = 0; s < visible; s++)
        if (__builtin_mul_overflow(draws, (uint64_t)sampler->rules[s].count, &draws) || draws > most ||
            sf_weight_multiply(&total, sampler->rules[s].total))
            return 0;
    return draws;
}

void sf_enumerate_draws(uint32_t *draws, const sf_sampler *sampler, size_t visible, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t rest = first + i;
        for (size_t s = 0; s < sampler->slots; s++) {
            const uint32_t choices = s < visible ? sampler->rules[s].count : 1;
            *draws++ = (uint32_t)(rest % choices);
            rest /= choices;
        }
    }
}

sf_weight sf_enumerate_weight(const sf_sampler *sampler, size_t visible, const uint32_t *draw)
{
    sf_weight weight = 1;
    for (size_t s = 0; s < visible; s++) weight *= sampler->rules[s].weights[draw[s]];
    return weight;
}
