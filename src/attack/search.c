/* What all methods share. */
#include "attack/search.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { CONFIRMATIONS = 20 }; /* tests of a text, at most; what is found later does not count */

const sf_attack_function sf_attack_functions[SAFER_ATTACKS] = {[SAFER_ATTACK_TEXTFOOLER] = sf_attack_textfooler,
                                                               [SAFER_ATTACK_GENETIC] = sf_attack_genetic,
                                                               [SAFER_ATTACK_PWWS] = sf_attack_pwws,
                                                               [SAFER_ATTACK_RANDOM] = sf_attack_random};

void sf_search_free(sf_search *s)
{
    free(s->open);
    free(s->batch);
    free(s->answers);
    free(s->best);
    free(s->before);
    free(s->after);
    *s = (sf_search){0};
}

void sf_search_again(sf_search *s)
{
    s->has_best = s->won = s->stopped = 0;
    s->count = s->answered = 0;
    s->victim->exhausted = 0;
    s->finding = (sf_finding){0};
}

/* What the text's own words are answered with. */
static safer_status ask_start(sf_search *s, int target, safer_error *error)
{
    uint32_t *own = sf_search_add(s, NULL);
    size_t answered = 0;
    if (!own) return sf_fail_memory(error);
    s->victim->target = target;
    safer_status status = sf_victim_ask(&s->start, &answered, s->victim, own, 1, error);
    if (status != SAFER_OK) return status;
    if (!answered)
        s->stopped = 1;
    else if (target < 0 && s->start.label >= 0) {
        s->victim->target = s->start.label;
        s->start = sf_victim_start(s->victim);
    }
    s->count = 0;
    return SAFER_OK;
}

/* Whether putting any other word into the slot can change anything at all. */
static int may_matter(const sf_victim *v, uint32_t slot)
{
    const sf_item *items = v->items + v->first[slot];
    for (uint32_t k = 1; k < sf_victim_choices(v, slot); k++)
        if (!v->options.smoothed || items[k].row != items[0].row) return 1;
    return 0;
}

/* Where new texts must be alike: the words of the text, and room for those of a new one. */
static int read_words(sf_search *s)
{
    const sf_slots *slots = &s->victim->slots;
    if (sf_grow(&s->before, &s->before_capacity, slots->word_count + 1, sizeof *s->before) ||
        sf_grow(&s->after, &s->after_capacity, slots->word_count + 1, sizeof *s->after))
        return -1;
    for (size_t i = 0; i < slots->word_count; i++) s->before[i] = slots->words[i].word;
    return 0;
}

safer_status sf_search_begin(sf_search *s, sf_victim *v, const safer_attack_options *options, int target,
                             safer_error *error)
{
    s->victim = v;
    s->options = options;
    s->slots = v->slots.slot_count;
    s->radius = options->radius;
    s->open_count = s->flips = 0;
    s->confirmed = 0;
    s->matters = 0;
    s->stream = sf_stream_of(options->seed, v->slots.hash, SF_STAGE_SEARCH);
    sf_search_again(s);
    if (sf_grow(&s->open, &s->open_capacity, s->slots + 1, sizeof *s->open) ||
        sf_grow(&s->best, &s->best_capacity, s->slots + 1, sizeof *s->best))
        return sf_fail_memory(error);
    for (size_t i = 0; i < v->visible; i++) {
        if (sf_victim_choices(v, i) > 1) s->open[s->open_count++] = (uint32_t)i;
        s->matters |= may_matter(v, (uint32_t)i);
    }
    if (v->options.likeness && read_words(s)) return sf_fail_memory(error);
    return ask_start(s, target, error);
}

uint32_t *sf_search_add(sf_search *s, const uint32_t *choices)
{
    if (sf_grow(&s->batch, &s->batch_capacity, (s->count + 1) * s->slots + 1, sizeof *s->batch) ||
        sf_grow(&s->answers, &s->answer_capacity, s->count + 1, sizeof *s->answers))
        return NULL;
    uint32_t *row = s->batch + s->count++ * s->slots;
    if (choices)
        memcpy(row, choices, s->slots * sizeof *row);
    else
        memset(row, 0, s->slots * sizeof *row);
    return row;
}

int sf_search_alike(sf_search *s, const uint32_t *choices)
{
    const sf_victim *v = s->victim;
    const sf_slots *slots = &v->slots;
    if (!v->options.likeness) return 1;
    if (slots->word_count) memcpy(s->after, s->before, slots->word_count * sizeof *s->after);
    for (size_t i = 0; i < s->slots; i++)
        if (choices[i]) s->after[slots->slots[i]] = v->items[v->first[i] + choices[i]].word;
    return sf_likeness_texts(v->options.likeness, s->before, s->after, slots->word_count);
}

int sf_search_settle(sf_search *s)
{
    const int alike = sf_search_alike(s, sf_search_row(s, s->count - 1));
    s->count -= !alike;
    return alike;
}

size_t sf_search_changed(const sf_search *s, const uint32_t *choices)
{
    size_t changed = 0;
    for (size_t i = 0; i < s->slots; i++) changed += choices[i] != 0;
    return changed;
}

static int has_removed(const sf_search *s, const uint32_t *choices)
{
    for (size_t i = 0; i < s->slots; i++)
        if (choices[i] == SF_REMOVED) return 1;
    return 0;
}

static int is_wrong(const sf_search *s, const sf_answer *a)
{
    return a->label >= 0 && a->label != s->victim->target && !a->refuted;
}

/* Whether the batch's i-th text may be handed out: some words changed, none missing. */
static int is_text(const sf_search *s, size_t i)
{
    const uint32_t *row = sf_search_row(s, i);
    return sf_search_changed(s, row) && !has_removed(s, row);
}

static void keep_best(sf_search *s, size_t i)
{
    if (s->has_best && !(s->answers[i].margin < s->best_answer.margin)) return;
    memcpy(s->best, sf_search_row(s, i), s->slots * sizeof *s->best);
    s->best_answer = s->answers[i];
    s->has_best = 1;
}

safer_status sf_search_ask(sf_search *s, safer_error *error)
{
    safer_status status = sf_victim_ask(s->answers, &s->answered, s->victim, s->batch, s->count, error);
    if (status != SAFER_OK) return status;
    if (s->answered < s->count) s->stopped = 1;
    for (size_t i = 0; i < s->answered; i++)
        if (is_text(s, i)) keep_best(s, i);
    s->count = 0;
    return SAFER_OK;
}

/* The k-th test of a text gets level / k(k+1): together they use no more than the level. */
safer_status sf_search_test(sf_search *s, const uint32_t *choices, int rival, safer_error *error)
{
    const double k = ++s->confirmed;
    return sf_victim_confirm(&s->finding, s->victim, choices, rival, s->level / (k * (k + 1)), s->looks, error);
}

safer_status sf_search_harvest(sf_search *s, sf_pick pick, safer_error *error)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < s->answered; i++) {
        if (!is_wrong(s, &s->answers[i]) || !is_text(s, i)) continue;
        if (found == SIZE_MAX || (pick == SF_LOWEST && s->answers[i].score < s->answers[found].score)) found = i;
    }
    if (found == SIZE_MAX) return SAFER_OK;
    const sf_answer answer = s->answers[found];
    const uint32_t *row = sf_search_row(s, found);
    s->flips++;
    if (!s->cross_check && answer.exact) {
        int folds = 0;
        const safer_status status = s->claimed ? sf_victim_folds(&folds, s->victim, row, error) : SAFER_OK;
        if (status != SAFER_OK) return status;
        s->won = !folds;
        s->finding = (sf_finding){.beaten = 1, .exact = 1};
        if (folds) sf_victim_refute(s->victim, found);
    } else if (s->confirmed < CONFIRMATIONS) {
        safer_status status = sf_search_test(s, row, answer.rival, error);
        if (status != SAFER_OK) return status;
        s->won = s->finding.beaten;
        if (!s->won) sf_victim_refute(s->victim, found);
    }
    if (!s->won) return SAFER_OK;
    memcpy(s->best, row, s->slots * sizeof *s->best);
    s->best_answer = answer;
    s->has_best = 1;
    return SAFER_OK;
}

/* -------------------------------------------------------------- importance */

safer_status sf_search_importance(double *importance, int *complete, sf_search *s, int with_gain, safer_error *error)
{
    const int before = s->start.label;
    s->count = 0;
    for (size_t i = 0; i < s->open_count; i++) {
        importance[i] = 0;
        if (!may_matter(s->victim, s->open[i])) continue;
        uint32_t *row = sf_search_add(s, NULL);
        if (!row) return sf_fail_memory(error);
        row[s->open[i]] = SF_REMOVED;
    }
    safer_status status = sf_search_ask(s, error);
    if (status != SAFER_OK) return status;
    *complete = !s->stopped;
    for (size_t i = 0, k = 0; i < s->open_count && k < s->answered; i++) {
        if (!may_matter(s->victim, s->open[i])) continue;
        const sf_answer *a = &s->answers[k++];
        importance[i] = s->start.score - a->score;
        if (with_gain && a->label >= 0 && a->label != before)
            importance[i] += a->top - sf_victim_start_score(s->victim, a->label);
    }
    return SAFER_OK;
}

static int compare_ranked(const void *left, const void *right)
{
    const sf_ranked *a = left, *b = right;
    if (a->value != b->value) return a->value < b->value ? 1 : -1;
    return (a->number > b->number) - (a->number < b->number);
}

void sf_rank(sf_ranked *ranked, size_t count) { qsort(ranked, count, sizeof *ranked, compare_ranked); }
