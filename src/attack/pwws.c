/* PWWS, probability weighted word saliency (Ren, Deng, He and Che, ACL 2019), on a given table
 * of synonyms.
 *
 * The best synonym of each word is found on the text as it is: the one that takes most from
 * the target. Words are then exchanged for it in the order of (softmax of saliency) times
 * (what it takes), saliency being what the target loses when the word is taken out. The order
 * does not depend on answers, so the texts on the way are asked about in batches. */
#include "attack/search.h"

#include "base/elementary.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { STRIDE = 32 }; /* exchanges asked about at once; those behind the first success are for nothing */

/* gain[i], best[i]: of open slot i, the most that a synonym takes from the target, and which; 0: none may be tried. */
static safer_status find_best(double *gain, uint32_t *best, sf_search *s, safer_error *error)
{
    for (size_t i = 0; i < s->open_count; i++)
        for (uint32_t k = 1; k < sf_victim_choices(s->victim, s->open[i]); k++) {
            uint32_t *row = sf_search_add(s, NULL);
            if (!row) return sf_fail_memory(error);
            row[s->open[i]] = k;
            (void)sf_search_settle(s);
        }
    safer_status status = sf_search_ask(s, error);
    if (status == SAFER_OK) status = sf_search_harvest(s, SF_LOWEST, error); /* one word may be enough */
    if (status != SAFER_OK || s->won || s->stopped) return status;
    size_t at = 0;
    for (size_t i = 0; i < s->open_count; i++)
        for (; at < s->answered && sf_search_row(s, at)[s->open[i]]; at++) {
            const double taken = s->start.score - s->answers[at].score;
            if (best[i] && !(taken > gain[i])) continue;
            gain[i] = taken;
            best[i] = sf_search_row(s, at)[s->open[i]];
        }
    return SAFER_OK;
}

/* Saliencies as weights that sum to 1. */
static void softmax(double *x, size_t count)
{
    double top = 0, sum = 0;
    for (size_t i = 0; i < count; i++) top = i == 0 || x[i] > top ? x[i] : top;
    for (size_t i = 0; i < count; i++) sum += x[i] = sf_exp(x[i] - top);
    for (size_t i = 0; i < count; i++) x[i] /= sum;
}

/* Exchanges one word more in every text, up to the radius. What makes a text unlike the first is passed over. */
static safer_status walk(sf_search *s, const sf_ranked *order, const uint32_t *best, uint32_t *current,
                         safer_error *error)
{
    size_t changed = 0;
    for (size_t i = 0; i < s->open_count && changed < s->radius && !s->stopped;) {
        for (; i < s->open_count && changed < s->radius && s->count < STRIDE; i++) {
            uint32_t *choice = &current[s->open[order[i].number]];
            *choice = best[order[i].number];
            if (!*choice) continue;
            if (!sf_search_add(s, current)) return sf_fail_memory(error);
            if (sf_search_settle(s))
                changed++;
            else
                *choice = 0;
        }
        safer_status status = sf_search_ask(s, error);
        if (status == SAFER_OK) status = sf_search_harvest(s, SF_FIRST, error);
        if (status != SAFER_OK || s->won) return status;
    }
    return SAFER_OK;
}

safer_status sf_attack_pwws(sf_search *s, safer_error *error)
{
    safer_status status = SAFER_OK;
    int complete = 0;
    double *saliency = sf_calloc(s->open_count, sizeof *saliency), *gain = sf_calloc(s->open_count, sizeof *gain);
    uint32_t *best = sf_calloc(s->open_count, sizeof *best), *current = sf_calloc(s->slots, sizeof *current);
    sf_ranked *order = sf_alloc(s->open_count, sizeof *order);
    if (!saliency || !gain || !best || !current || !order) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_search_importance(saliency, &complete, s, 0, error));
    if (complete) SF_TRY(find_best(gain, best, s, error));
    if (s->won || s->stopped) goto done;
    softmax(saliency, s->open_count);
    for (size_t i = 0; i < s->open_count; i++) order[i] = (sf_ranked){saliency[i] * gain[i], i};
    sf_rank(order, s->open_count);
    SF_TRY(walk(s, order, best, current, error));
done:
    free(saliency);
    free(gain);
    free(best);
    free(current);
    free(order);
    return status;
}
