/* Errors that sampled certificates may make, counted and held against their level. */
#include "trial.h"

#include <stdlib.h>
#include <string.h>

double trial_rate_chance(const trial_rate *rate) { return binomial_tail(rate->errors, rate->cases, rate->level); }

int trial_rate_is_wrong(const trial_rate *rate) { return rate->cases && trial_rate_chance(rate) < 1e-6; }

void trial_tally_add(trial_tally *tally, const char *what, double level, int error)
{
    size_t i = 0;
    while (i < tally->count && (tally->rates[i].level != level || strcmp(tally->rates[i].what, what) != 0)) i++;
    if (i == tally->count) {
        if (i == sizeof tally->rates / sizeof *tally->rates) trial_stop("too many kinds of errors");
        snprintf(tally->rates[i].what, sizeof tally->rates[i].what, "%s", what);
        tally->rates[i].level = level;
        tally->count++;
    }
    tally->rates[i].cases++;
    tally->rates[i].errors += (uint64_t)(error != 0);
}

void trial_tally_claim(trial_tally *tally, const safer_certificate *c, const trial_truth *t,
                       const safer_certify_options *o)
{
    char what[100];
    const char *method = safer_method_name(o->method);
    uint64_t rival = 0;
    for (size_t k = 0; k < t->classes; k++)
        if ((int)k != c->target && t->weight[k] > rival) rival = t->weight[k];
    const fraction lead = {(wide)t->total + t->weight[c->target] - rival, 2 * (wide)t->total};
    const size_t falls = t->falls[c->target];
    if (falls != SIZE_MAX) {
        snprintf(what, sizeof what, "%s, can be attacked: certified", method);
        trial_tally_add(tally, what, o->delta, c->radius && falls <= changes_of(t, c->radius));
    }
    snprintf(what, sizeof what, "%s: bound above the truth", method);
    trial_tally_add(tally, what, o->delta, fraction_against(lead, c->bound) < 0);
    trial_tally_add(tally, "vote: answered, and it is not the winner", o->alpha,
                    !c->abstained && !trial_wins(t, 0, c->prediction));
}

static int compare_rates(const void *a, const void *b)
{
    const trial_rate *x = a, *y = b;
    const int order = strcmp(x->what, y->what);
    return order ? order : (x->level < y->level) - (x->level > y->level);
}

size_t trial_tally_print(trial_tally *tally)
{
    size_t wrong = 0;
    qsort(tally->rates, tally->count, sizeof *tally->rates, compare_rates);
    printf("  %-44s %6s %12s %10s %9s %9s\n", "errors that may happen", "level", "cases", "errors", "share",
           "at most*");
    for (size_t i = 0; i < tally->count; i++) {
        const trial_rate *rate = &tally->rates[i];
        const int is_wrong = trial_rate_is_wrong(rate);
        printf("  %-44s %6g %12llu %10llu %9.5f %9.5f%s\n", rate->what, rate->level, (unsigned long long)rate->cases,
               (unsigned long long)rate->errors, (double)rate->errors / (double)rate->cases,
               binomial_upper(rate->errors, rate->cases, .001), is_wrong ? "  WRONG: too many" : "");
        wrong += (size_t)is_wrong;
    }
    printf("  * upper confidence limit, 99.9%%; too many: more than the level allows, with a chance below 1e-6\n");
    return wrong;
}
