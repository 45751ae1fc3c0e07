/* Random exchanges: the baseline. Every try changes a random number of words, up to the
 * radius, each to a random synonym. */
#include "attack/search.h"

#include "base/memory.h"

/* Slots numbered behind those of the text hold the draws that belong to none. */
static void exchange_some(uint32_t *row, const sf_search *s, uint32_t *shuffled, uint64_t try)
{
    const uint32_t most = (uint32_t)(s->open_count < s->radius ? s->open_count : s->radius);
    const uint32_t count = 1 + sf_draw_below(s->stream, try, (uint32_t)s->slots, most);
    for (size_t i = 0; i < s->open_count; i++) shuffled[i] = s->open[i];
    for (uint32_t i = 0; i < count; i++) { /* the first steps of Fisher and Yates */
        const uint32_t other = i +
                               sf_draw_below(s->stream, try, (uint32_t)s->slots + 1 + i, (uint32_t)s->open_count - i);
        const uint32_t slot = shuffled[other];
        shuffled[other] = shuffled[i];
        shuffled[i] = slot;
        row[slot] = 1 + sf_draw_below(s->stream, try, slot, sf_victim_choices(s->victim, slot) - 1);
    }
}

safer_status sf_attack_random(sf_search *s, safer_error *error)
{
    enum { STRIDE = 32 };
    const uint64_t method = (uint64_t)SAFER_ATTACK_RANDOM << 56, tries = (uint64_t)s->options->tries;
    safer_status status = SAFER_OK;
    uint32_t *shuffled = sf_alloc(s->open_count, sizeof *shuffled);
    if (!shuffled) return sf_fail_memory(error);
    for (uint64_t i = 0; i < tries && !s->won && !s->stopped;) {
        for (uint64_t end = i + STRIDE < tries ? i + STRIDE : tries; i < end; i++) {
            uint32_t *row = sf_search_add(s, NULL);
            if (!row) {
                status = sf_fail_memory(error);
                goto done;
            }
            exchange_some(row, s, shuffled, method | i);
            (void)sf_search_settle(s);
        }
        SF_TRY(sf_search_ask(s, error));
        SF_TRY(sf_search_harvest(s, SF_FIRST, error));
    }
done:
    free(shuffled);
    return status;
}
