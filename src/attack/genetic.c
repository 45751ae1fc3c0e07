/* The genetic attack (Alzantot et al., EMNLP 2018; as Jia, Raghunathan, Göksel and Liang use it,
 * EMNLP 2019), on a given table of synonyms.
 *
 * A mutation picks a slot at random, asks about every word that may stand there, and keeps the
 * one with the lowest margin. The first population mutates the text itself. Then, again and
 * again, the best member stays and the others are replaced by children of two parents, chosen
 * with weights sigmoid(-margin), each slot from either, and mutated. The questions of a whole
 * generation are one batch. A child that is not alike enough (attack/likeness.h) is its first parent again. */
#include "attack/search.h"

#include "base/elementary.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

typedef struct population {
    sf_search *search;
    size_t size;
    uint32_t *members, *children; /* (size, slots) */
    double *margins;              /* (size), rising is worse for the attack */
    double *sums;                 /* (size): of the weights up to each member */
    uint32_t *mutated;            /* (size): the slot of each, */
    size_t *first;                /* (size+1): and where the questions about it begin */
    uint32_t *slots;              /* scratch: (open_count) */
} population;

static void population_free(population *p)
{
    free(p->members);
    free(p->children);
    free(p->margins);
    free(p->sums);
    free(p->mutated);
    free(p->first);
    free(p->slots);
}

static int population_new(population *p, sf_search *s)
{
    *p = (population){.search = s, .size = (size_t)s->options->population};
    p->members = sf_calloc(p->size * s->slots, sizeof *p->members);
    p->children = sf_calloc(p->size * s->slots, sizeof *p->children);
    p->margins = sf_calloc(p->size, sizeof *p->margins);
    p->sums = sf_calloc(p->size, sizeof *p->sums);
    p->mutated = sf_calloc(p->size, sizeof *p->mutated);
    p->first = sf_calloc(p->size + 1, sizeof *p->first);
    p->slots = sf_alloc(s->open_count, sizeof *p->slots);
    return p->members && p->children && p->margins && p->sums && p->mutated && p->first && p->slots ? 0 : -1;
}

/* What the random numbers of a child are for; those of crossing follow, one a slot. */
enum { MUTATION, FIRST_PARENT, SECOND_PARENT, REPAIR, CROSSING = 1 << 20 };

static uint32_t below(const population *p, uint64_t birth, uint32_t purpose, size_t bound)
{
    return sf_draw_below(p->search->stream, (uint64_t)SAFER_ATTACK_GENETIC << 56 | birth, purpose, (uint32_t)bound);
}

/* The open slots that are changed; how many. */
static size_t changed_slots(population *p, const uint32_t *member)
{
    const sf_search *s = p->search;
    size_t count = 0;
    for (size_t i = 0; i < s->open_count; i++)
        if (member[s->open[i]]) p->slots[count++] = s->open[i];
    return count;
}

/* A slot to mutate: any, or, where no more words may change, one that is changed. */
static uint32_t slot_to_mutate(population *p, const uint32_t *member, uint64_t birth)
{
    const sf_search *s = p->search;
    const size_t changed = changed_slots(p, member);
    if (changed >= s->radius) return p->slots[below(p, birth, MUTATION, changed)];
    return s->open[below(p, birth, MUTATION, s->open_count)];
}

/* Adds every word in the slot of a member to the batch. */
static int add_mutations(population *p, size_t i, uint64_t birth)
{
    sf_search *s = p->search;
    const uint32_t *member = p->members + i * s->slots;
    const uint32_t slot = p->mutated[i] = slot_to_mutate(p, member, birth);
    for (uint32_t k = 0; k < sf_victim_choices(s->victim, slot); k++) {
        uint32_t *row = sf_search_add(s, member);
        if (!row) return -1;
        row[slot] = k;
        (void)sf_search_settle(s);
    }
    p->first[i + 1] = s->count;
    return 0;
}

/* Mutates members first .. size-1, the births of this generation counting from `birth`. */
static safer_status mutate(population *p, size_t first, uint64_t birth, safer_error *error)
{
    sf_search *s = p->search;
    p->first[first] = 0;
    for (size_t i = first; i < p->size; i++)
        if (add_mutations(p, i, birth + i)) return sf_fail_memory(error);
    safer_status status = sf_search_ask(s, error);
    if (status == SAFER_OK) status = sf_search_harvest(s, SF_LOWEST, error);
    if (status != SAFER_OK || s->won || s->stopped) return status;
    for (size_t i = first; i < p->size; i++) {
        size_t best = p->first[i]; /* there is one: members are alike enough */
        for (size_t k = best + 1; k < p->first[i + 1]; k++)
            if (s->answers[k].margin < s->answers[best].margin) best = k;
        p->members[i * s->slots + p->mutated[i]] = sf_search_row(s, best)[p->mutated[i]];
        p->margins[i] = s->answers[best].margin;
    }
    return SAFER_OK;
}

static size_t pick_parent(const population *p, uint64_t birth, uint32_t purpose)
{
    const double point = sf_draw_unit(p->search->stream, (uint64_t)SAFER_ATTACK_GENETIC << 56 | birth, purpose) *
                         p->sums[p->size - 1];
    size_t i = 0;
    while (i + 1 < p->size && p->sums[i] <= point) i++;
    return i;
}

/* Takes changes back, at random, until no more words are changed than may be. */
static void repair(population *p, uint32_t *child, uint64_t birth)
{
    size_t changed = changed_slots(p, child);
    for (uint32_t step = 0; changed > p->search->radius; step++) {
        const size_t i = below(p, birth, REPAIR + step, changed);
        child[p->slots[i]] = 0;
        p->slots[i] = p->slots[--changed];
    }
}

static void cross(population *p, uint32_t *child, uint64_t birth)
{
    const size_t slots = p->search->slots;
    const uint32_t *mother = p->members + pick_parent(p, birth, FIRST_PARENT) * slots;
    const uint32_t *father = p->members + pick_parent(p, birth, SECOND_PARENT) * slots;
    for (size_t s = 0; s < slots; s++) /* where they agree nothing is to be drawn */
        child[s] = mother[s] == father[s] || below(p, birth, CROSSING + (uint32_t)s, 2) ? mother[s] : father[s];
    repair(p, child, birth);
    if (!sf_search_alike(p->search, child)) memcpy(child, mother, slots * sizeof *child);
}

/* The best member and children of the others. */
static void breed(population *p, uint64_t birth)
{
    const size_t slots = p->search->slots;
    size_t best = 0;
    for (size_t i = 0; i < p->size; i++) {
        p->sums[i] = (i ? p->sums[i - 1] : 0) + 1 / (1 + sf_exp(p->margins[i]));
        if (p->margins[i] < p->margins[best]) best = i;
    }
    memcpy(p->children, p->members + best * slots, slots * sizeof *p->children);
    for (size_t i = 1; i < p->size; i++) cross(p, p->children + i * slots, birth + i);
    uint32_t *members = p->members;
    p->members = p->children;
    p->children = members;
    p->margins[0] = p->margins[best];
}

safer_status sf_attack_genetic(sf_search *s, safer_error *error)
{
    safer_status status = SAFER_OK;
    population p;
    if (population_new(&p, s)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(mutate(&p, 0, 0, error));
    for (int i = 0; i < s->options->iterations && s->matters && !s->won && !s->stopped; i++) {
        const uint64_t birth = ((uint64_t)i + 1) * p.size;
        breed(&p, birth);
        SF_TRY(mutate(&p, 1, birth, error));
    }
done:
    population_free(&p);
    return status;
}
