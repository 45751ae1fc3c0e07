/* TextFooler (Jin, Jin, Zhou and Szolovits, AAAI 2020), on a given table of synonyms.
 *
 * Words are ranked by what the target loses when each is taken out. In that order every
 * synonym of a word is tried, all in one batch: a wrong answer ends it; otherwise the synonym
 * that hurts most stays, if the target is then less sure than it was. */
#include "attack/search.h"

#include "base/memory.h"

#include <string.h>

/* Every other word in the slot of the current text. */
static int add_synonyms(sf_search *s, const uint32_t *current, uint32_t slot)
{
    for (uint32_t k = 1; k < sf_victim_choices(s->victim, slot); k++) {
        uint32_t *row = sf_search_add(s, current);
        if (!row) return -1;
        row[slot] = k;
        (void)sf_search_settle(s);
    }
    return 0;
}

/* One word after the other. */
static safer_status descend(sf_search *s, const sf_ranked *order, uint32_t *current, safer_error *error)
{
    double score = s->start.score;
    size_t changed = 0;
    for (size_t i = 0; i < s->open_count && changed < s->radius; i++) {
        const uint32_t slot = s->open[order[i].number];
        if (add_synonyms(s, current, slot)) return sf_fail_memory(error);
        safer_status status = sf_search_ask(s, error);
        if (status == SAFER_OK) status = sf_search_harvest(s, SF_LOWEST, error);
        if (status != SAFER_OK || s->won) return status;
        for (size_t k = 0; k < s->answered; k++)
            if (s->answers[k].score < score) {
                score = s->answers[k].score;
                current[slot] = sf_search_row(s, k)[slot];
            }
        changed += current[slot] != 0;
        if (s->stopped) return SAFER_OK;
    }
    return SAFER_OK;
}

safer_status sf_attack_textfooler(sf_search *s, safer_error *error)
{
    safer_status status = SAFER_OK;
    int complete = 0;
    double *importance = sf_calloc(s->open_count, sizeof *importance);
    sf_ranked *order = sf_alloc(s->open_count, sizeof *order);
    uint32_t *current = sf_calloc(s->slots, sizeof *current);
    if (!importance || !order || !current) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_search_importance(importance, &complete, s, 1, error));
    for (size_t i = 0; i < s->open_count; i++) order[i] = (sf_ranked){importance[i], i};
    sf_rank(order, s->open_count);
    if (complete) SF_TRY(descend(s, order, current, error));
done:
    free(importance);
    free(order);
    free(current);
    return status;
}
