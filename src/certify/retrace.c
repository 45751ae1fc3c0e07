/* A record, compared with what it was made from. */
#include "certify/retrace.h"

#include "base/memory.h"
#include "base/number.h"
#include "draw/enumerate.h"
#include "draw/groups.h"
#include "stats/edits.h"

#include <stdlib.h>
#include <string.h>

void sf_retrace_free(sf_retrace *t)
{
    sf_slots_free(&t->slots);
    sf_sampler_free(&t->sampler);
    free(t->overlaps);
    t->overlaps = NULL;
    t->overlap_capacity = 0;
}

/* ------------------------------------------------------------------ the text */

/* Whether q is that of the radius: never below it, which would be a stronger claim. */
static int is_q(const sf_retrace *t, const sf_record *r, double q, size_t radius)
{
    const double own = sf_q_at(t->overlaps, r->visible, radius);
    return q >= own && q <= own + SF_TOLERANCE;
}

/* What of the q of a record does not follow from the overlaps of its slots, or NULL. */
static const char *fault_of_overlaps(const sf_retrace *t, const sf_record *r, const sf_config *config)
{
    const int all = r->radius == SAFER_ALL;
    for (size_t i = 0; i < SAFER_RADII; i++)
        if (!is_q(t, r, r->q_at[i], sf_reported_radii[i])) return "q_at does not follow from the overlaps of the words";
    if (!is_q(t, r, r->q, SAFER_ALL)) return "q does not follow from the overlaps of the words";
    if (config->deletes && !is_q(t, r, sf_record_q_edits(r, 0), config->radius))
        return "q_edits does not follow from the overlaps of the words";
    if (!is_q(t, r, r->q_radius, r->radius)) return "q_radius does not follow from the overlaps of the words";
    /* Radii end where all further words have overlap 1: the next one is then "all". */
    if (!all && r->radius > 0 && (r->radius >= r->visible || t->overlaps[r->radius] >= 1))
        return "the radius is that of more words than cost anything";
    /* Where not even q = 0 is certified, no word is looked at: q_next is 0. */
    if (!is_q(t, r, r->q_next, all ? SAFER_ALL : r->radius + 1) && (r->radius > 0 || r->q_next > 0))
        return "q_next does not follow from the overlaps of the words";
    return NULL;
}

/* The same for what an exact record says about all draws of the visible slots. */
static const char *fault_of_draws(const sf_retrace *t, const sf_record *r, const sf_config *config)
{
    sf_weight total, stored;
    const uint64_t draws = sf_enumerate_total(&total, &t->sampler, r->visible, config->n);
    if (!draws) return "the text has too many draws to be exact";
    if (sf_record_total(r, &stored) || stored != total) return "the total is not that of all draws of the text";
    const uint64_t asks = config->format >= 2 && config->remote && !t->slots.groups ? 2 : 1;
    return r->queries != draws * asks ? "queries are not the number of draws" : NULL;
}

static const char *fault_of_text(const sf_retrace *t, const sf_record *r, const sf_config *config, safer_row row,
                                 int label)
{
    if (strcmp(r->id, row.id) != 0) return "the id is not that of the data";
    if (r->label != label) return "the label is not that of the data";
    if (r->words != t->slots.word_count) return "the number of words is not that of the text";
    if (r->slots != t->slots.slot_count) return "the number of slots is not that of the text";
    if (config->deletes && r->tokens != t->slots.token_count) return "the number of tokens is not that of the text";
    if (config->folded && r->unfolded != r->base && !sf_slots_folded(&t->slots))
        return "unfolded is not base, but the fold leaves the text as it is";
    if (config->method == SAFER_METHOD_IBP) return NULL;
    const char *fault = fault_of_overlaps(t, r, config);
    return !fault && r->exact ? fault_of_draws(t, r, config) : fault;
}

safer_status sf_retrace_text(sf_retrace *t, const sf_record *r, const sf_config *config, safer_row row, int label,
                             const char *path, size_t line, safer_error *error)
{
    safer_status status;
    SF_TRY(sf_slots_read(&t->slots, t->lexicon, row.text, row.text_length, error));
    SF_TRY(sf_slots_split(&t->slots, config->options.deletion, error));
    SF_TRY(sf_sampler_prepare(&t->sampler, &t->slots, t->lexicon, error));
    if (t->slots.groups) SF_TRY(sf_sampler_group(&t->sampler, &t->slots, t->lexicon, config->options.seed, error));
    if (sf_grow(&t->overlaps, &t->overlap_capacity, t->slots.slot_count + 1, sizeof *t->overlaps))
        return sf_fail_memory(error);
    (void)sf_slots_overlaps(t->overlaps, &t->slots, t->lexicon);
    for (size_t s = 0; t->slots.deletion && s < t->slots.slot_count; s++)
        t->overlaps[s] = sf_deletion_overlap(t->slots.deletion, t->overlaps[s]);
    if (r->visible <= t->slots.slot_count) qsort(t->overlaps, r->visible, sizeof *t->overlaps, sf_compare_doubles);
    const char *fault = fault_of_text(t, r, config, row, label);
    if (fault) status = sf_fail(error, SAFER_INPUT, "%s, line %zu: %s", path, line, fault);
done:
    return status;
}

/* --------------------------------------------------------------- the answers */

static int are_votes(const json_t *counts, const uint64_t *votes, const sf_config *config)
{
    for (size_t k = 0; k < config->classes; k++)
        if ((uint64_t)json_integer_value(json_object_get(counts, sf_config_label(config, (int)k))) != votes[k])
            return 0;
    return 1;
}

/* A claim may say less, never more. */
static int is_margin(double stored, double own) { return stored <= own && stored >= own - SF_TOLERANCE; }

static int are_margins(const json_t *margins, const safer_certificate *c, const sf_config *config)
{
    for (size_t k = 0; k < config->classes; k++) {
        const double stored = json_real_value(json_object_get(margins, sf_config_label(config, (int)k)));
        if ((int)k != c->target && !is_margin(stored, c->margins[k])) return 0;
    }
    return 1;
}

/* What of the margins by radius is another, or NULL. */
static const char *different_curve(const sf_record *r, const safer_certificate *c, const safer_workspace *w)
{
    for (size_t i = 0; i < SAFER_RADII; i++)
        if (!is_margin(r->margin_at[i], c->margin_at[i])) return "margin_at";
    if (r->radius != c->radius) return "radius"; /* before the margins there, which would say so less clearly */
    if (!is_margin(r->margin_radius, w->margin_radius)) return "margin_radius";
    return is_margin(r->margin_next, w->margin_next) ? NULL : "margin_next";
}

/* What was counted. */
static const char *different_counts(const sf_record *r, const sf_config *config, const safer_certificate *c,
                                    const safer_workspace *w)
{
    if (c->margins && !are_margins(r->margins, c, config)) return "margins";
    if (c->margins) return c->additive ? different_curve(r, c, w) : NULL;
    if (c->exact) return sf_record_has_tally(r, config, &w->tally) ? NULL : "weights";
    if (r->vote && (r->vote_n != c->vote_n || !are_votes(r->vote, c->vote_votes, config))) return "vote";
    if (r->n != c->n) return "n";
    return are_votes(r->counts, c->votes, config) ? NULL : "counts";
}

const char *sf_retrace_answers(const sf_record *r, const sf_config *config, const safer_certificate *c,
                               const safer_workspace *w)
{
    if (r->target != c->target) return "target";
    if (r->prediction != c->prediction) return "prediction";
    if (r->abstained != c->abstained) return "abstained";
    if (r->base != c->base) return "base";
    if (c->folded && r->unfolded != c->unfolded) return "unfolded";
    if (r->words != c->words) return "words";
    if (r->slots != c->slots) return "slots";
    if (r->visible != c->visible) return "visible";
    if (r->tokens != c->tokens) return "tokens";
    if (r->exact != c->exact) return "exact";
    const char *different = different_counts(r, config, c, w);
    if (different) return different;
    if (r->certified != c->certified) return "certified";
    if (r->radius != c->radius) return "radius";
    if (r->edits != c->edits) return "edits";
    return NULL;
}
