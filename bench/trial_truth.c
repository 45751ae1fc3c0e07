/* What is true of a text: every attack, every draw of it, in whole numbers.
 *
 * g(X', c) is the weight of the draws of X' that get class c over the weight of all draws of X'. Every draw of every
 * attacked text is in one table of answers, with an axis per slot; an axis of draws becomes an axis of options by
 * multiplying with their weights, one slot after the other, which gives g for all attacks at once. No sum exceeds
 * the product of the totals, which is below 2^60 here.
 *
 * Nothing here is copied from the library: overlaps and products are fractions, and who wins is a comparison of
 * whole numbers. */
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- everything */

/* [class][index] from draws to options along one slot; `inner` indices run before it, `outer` behind. */
static void contract(uint64_t *out, const uint64_t *in, const trial_slot *s, size_t inner, size_t outer)
{
    for (size_t k = 0; k < outer; k++)
        for (size_t o = 0; o < s->options; o++) {
            uint64_t *to = out + inner * (o + s->options * k);
            memset(to, 0, inner * sizeof *to);
            for (size_t d = 0; d < s->drawn; d++) {
                const uint64_t weight = s->weight[o][d];
                const uint64_t *from = in + inner * (d + s->drawn * k);
                for (size_t i = 0; weight && i < inner; i++) to[i] += weight * from[i];
            }
        }
}

static void find_shares(trial_truth *t, const trial_text *text, const trial_table *table)
{
    static uint64_t a[TABLE], b[TABLE];
    for (size_t c = 0; c < t->classes; c++) {
        uint64_t *from = a, *to = b;
        size_t inner = 1, outer = text->draws;
        for (size_t i = 0; i < text->draws; i++) from[i] = table->answer[i] == (int)c;
        for (size_t s = 0; s < text->slots; s++) {
            outer /= text->slot[s].drawn;
            contract(to, from, &text->slot[s], inner, outer);
            inner *= text->slot[s].options;
            uint64_t *free_one = from;
            from = to;
            to = free_one;
        }
        for (size_t i = 0; i < text->options; i++) t->shares[i * CLASSES + c] = from[i];
    }
}

int trial_wins(const trial_truth *t, size_t attack, int class)
{
    const uint64_t *weight = t->shares + attack * CLASSES;
    for (size_t c = 0; c < t->classes; c++)
        if ((int)c != class && weight[c] >= weight[class]) return 0;
    return 1;
}

/* |g(X',c) - g(X,c)| */
static fraction distance(const trial_truth *t, size_t attack, size_t class)
{
    const wide left = (wide)t->shares[attack * CLASSES + class] * t->totals[0];
    const wide right = (wide)t->shares[class] * t->totals[attack];
    return (fraction){left > right ? left - right : right - left, (wide)t->totals[0] * t->totals[attack]};
}

static void look_at_attack(trial_truth *t, size_t attack, size_t changed)
{
    for (size_t c = 0; c < t->classes; c++) {
        if (changed < t->falls[c] && !trial_wins(t, attack, (int)c)) {
            t->falls[c] = changed;
            t->falls_at[c] = attack;
        }
        if (!attack) continue;
        const fraction moved = distance(t, attack, c);
        if (fraction_compare(moved, t->moved[changed]) > 0) t->moved[changed] = moved;
    }
}

static void try_everything(trial_truth *t, const trial_text *text)
{
    size_t number[WORDS] = {0}, attack = 0;
    do {
        uint64_t total = 1;
        for (size_t s = 0; s < text->slots; s++) total *= text->slot[s].total[number[s]];
        t->totals[attack++] = total;
    } while (next_attack(text, number));
    attack = 0;
    do {
        size_t changed = 0;
        for (size_t s = 0; s < text->slots; s++) changed += number[s] != 0;
        look_at_attack(t, attack++, changed);
    } while (next_attack(text, number));
    for (size_t k = 1; k <= text->slots; k++) /* at most so many */
        if (fraction_compare(t->moved[k - 1], t->moved[k]) > 0) t->moved[k] = t->moved[k - 1];
}

/* ----------------------------------------------------------------- overlaps */

static int compare_overlaps(const void *a, const void *b)
{
    return fraction_compare(*(const fraction *)a, *(const fraction *)b);
}

static void find_overlaps(trial_truth *t, const trial_text *text)
{
    fraction overlaps[WORDS];
    for (size_t s = 0; s < t->visible; s++) overlaps[s] = text->slot[s].overlap;
    qsort(overlaps, t->visible, sizeof *overlaps, compare_overlaps);
    t->kept[0] = (fraction){1, 1};
    for (size_t s = 0; s < WORDS; s++) {
        const fraction *last = &t->kept[s], next = s < t->visible ? overlaps[s] : (fraction){1, 1};
        t->kept[s + 1] = (fraction){last->up * next.up, last->down * next.down};
        t->below += next.up < next.down;
    }
}

void trial_truth_find(trial_truth *out, const trial_text *text, const trial_table *table, size_t classes, int base,
                      size_t visible)
{
    uint64_t *shares = out->shares ? out->shares : malloc(TABLE * CLASSES * sizeof *shares);
    uint64_t *totals = out->totals ? out->totals : malloc(TABLE * sizeof *totals);
    if (!shares || !totals) trial_stop("out of memory");
    *out = (trial_truth){.classes = classes,
                         .words = text->words,
                         .slots = text->slots,
                         .visible = visible,
                         .base = base,
                         .draws = 1,
                         .shares = shares,
                         .totals = totals};
    for (size_t c = 0; c < CLASSES; c++) out->falls[c] = SIZE_MAX;
    for (size_t k = 0; k <= WORDS; k++) out->moved[k] = (fraction){0, 1};
    for (size_t s = 0; s < visible; s++) out->draws *= text->slot[s].support;
    find_shares(out, text, table);
    try_everything(out, text);
    find_overlaps(out, text);
    memcpy(out->weight, out->shares, sizeof out->weight);
    out->total = out->totals[0];
}

void trial_truth_free(trial_truth *t)
{
    free(t->shares);
    free(t->totals);
    *t = (trial_truth){0};
}

/* -------------------------------------------------------------------- claims */

size_t changes_of(const trial_truth *t, size_t radius) { return radius < t->slots ? radius : t->slots; }

static fraction exact_q(const trial_truth *t, size_t radius)
{
    const fraction kept = t->kept[changes_of(t, radius)];
    return (fraction){kept.down - kept.up, kept.down};
}

/* The most weight of another class than this. */
static uint64_t rival_of(const trial_truth *t, int class)
{
    uint64_t most = 0;
    for (size_t c = 0; c < t->classes; c++)
        if ((int)c != class && t->weight[c] > most) most = t->weight[c];
    return most;
}

static const char *check_q(const safer_certificate *c, const trial_truth *t)
{
    for (size_t r = 0; r < SAFER_RADII; r++) {
        const size_t radius = safer_reported_radius(r);
        const fraction q = exact_q(t, radius);
        if (fraction_against(q, c->q[r]) > 0) return "q is below 1 minus the product of the overlaps";
        if ((long double)c->q[r] > fraction_value(q) + 1e-9L) return "q is above 1 minus the product of the overlaps";
        if (fraction_against(t->moved[changes_of(t, radius)], c->q[r]) > 0) return "a share moves by more than q";
    }
    return NULL;
}

static const char *check_radius(const safer_certificate *c, const trial_truth *t, const safer_certify_options *o)
{
    if (c->radius != SAFER_ALL && c->radius >= (t->below ? t->below : 1))
        return "the radius is more than there are words";
    for (size_t r = 0; r < SAFER_RADII; r++)
        if (c->certified_at[r] != (c->radius >= safer_reported_radius(r)))
            return "certified_at is not what the radius says";
    if (c->certified != (c->radius >= o->radius)) return "certified is not what the radius says";
    return NULL;
}

static const char *check_exact(const safer_certificate *c, const trial_truth *t)
{
    const uint64_t rival = rival_of(t, c->target);
    const fraction lead = {(wide)t->total + t->weight[c->target] - rival, 2 * (wide)t->total};
    int winner = 0, tie = 0;
    for (size_t k = 1; k < t->classes; k++)
        if (t->weight[k] > t->weight[winner]) winner = (int)k;
    for (size_t k = 0; k < t->classes; k++) tie |= (int)k != winner && t->weight[k] == t->weight[winner];
    if (c->prediction != winner) return "the prediction is not the class with most weight";
    if (c->abstained != tie) return "abstained is not whether there is a tie";
    for (size_t k = 0; k < t->classes; k++)
        if (fabs(c->shares[k] - (double)t->weight[k] / (double)t->total) > 1e-12) return "a share is not the true one";
    if (fraction_against(lead, c->bound) < 0) return "the bound is above the truth";
    if ((long double)c->bound < fraction_value(lead) - 1e-9L) return "the bound is far below the truth";
    if (c->radius && t->falls[c->target] <= changes_of(t, c->radius)) return "CERTIFIED, BUT AN ATTACK SUCCEEDS";
    const long double margin = 2 * fraction_value(lead) - 1;
    const size_t next = c->radius == SAFER_ALL ? 0 : c->radius + 1;
    if (next && margin > 2 * fraction_value(exact_q(t, next)) + 1e-9L) return "a larger radius should be certified";
    return NULL;
}

static const char *check_sampled(const safer_certificate *c, const trial_truth *t, const safer_certify_options *o)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < t->classes; k++) sum += c->votes[k];
    if (sum > c->n || c->n > o->n) return "there are more votes than draws";
    if (o->method != SAFER_METHOD_ADAPTIVE && c->n != o->n) return "not all draws were made";
    return NULL;
}

const char *trial_claim_check(const safer_certificate *c, const trial_truth *t, const safer_certify_options *o)
{
    if (c->words != t->words) return "the number of words";
    if (c->slots != t->slots) return "the number of slots";
    if (c->visible != t->visible) return "the number of visible slots";
    if (c->base != t->base) return "the answer to the text itself";
    if (c->prediction < 0 || c->target < 0) return "there is no class";
    if (c->exact != (o->method == SAFER_METHOD_ADAPTIVE && t->draws <= o->n)) return "whether it is exact";
    const char *wrong = check_q(c, t);
    if (!wrong) wrong = check_radius(c, t, o);
    if (!wrong) wrong = c->exact ? check_exact(c, t) : check_sampled(c, t, o);
    return wrong;
}
