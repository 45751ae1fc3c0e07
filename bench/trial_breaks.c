/* Faults on request: what the library gives is changed before it is compared with the truth, as if the library had the
 * fault. A trial that finds nothing wrong then could not have found anything. */
#include "trial.h"

const char *const trial_break_names[BREAKS] = {
#define X(name, text) text,
    TRIAL_BREAKS(X)
#undef X
};

static void set_radius(safer_certificate *c, const trial_truth *t, const safer_certify_options *o, size_t radius)
{
    c->radius = radius && radius >= t->below ? SAFER_ALL : radius;
    for (size_t r = 0; r < SAFER_RADII; r++) c->certified_at[r] = c->radius >= safer_reported_radius(r);
    c->certified = c->radius >= o->radius;
}

/* The largest radius at which a lead passes, with overlaps `raised` times too high. */
static size_t radius_of(const trial_truth *t, long double lead, long double raised, int tie_is_enough)
{
    size_t radius = 0;
    long double factor = 1;
    for (size_t k = 0; k <= t->below; k++) {
        if (k) factor *= raised;
        long double kept = fraction_value(t->kept[k]) * factor;
        if (kept > 1) kept = 1;
        const long double twice_q = 2 * (1 - kept);
        if (lead < twice_q - 1e-15L || (!tie_is_enough && lead <= twice_q + 1e-15L)) return k ? radius : 0;
        radius = k;
    }
    return SAFER_ALL;
}

static long double lead_of(const safer_certificate *c, const trial_truth *t)
{
    double most = 0;
    for (size_t k = 0; k < t->classes; k++)
        if ((int)k != c->target && c->shares[k] > most) most = c->shares[k];
    return (long double)c->shares[c->target] - (long double)most;
}

void trial_break_claim(safer_certificate *c, trial_break fault, const trial_truth *t, const safer_certify_options *o)
{
    switch (fault) {
    case BREAK_RADIUS:
        if (c->exact && c->radius != SAFER_ALL) set_radius(c, t, o, c->radius + 1);
        break;
    case BREAK_OVERLAP:
        if (c->exact) set_radius(c, t, o, radius_of(t, lead_of(c, t), 1.01L, 0));
        break;
    case BREAK_TIE:
        if (c->exact) set_radius(c, t, o, radius_of(t, lead_of(c, t), 1, 1));
        break;
    case BREAK_CLASS: c->target = (c->target + 1) % (int)t->classes; break;
    case BREAK_Q: c->q[SAFER_RADII - 1] -= c->q[SAFER_RADII - 1] > 1e-12 ? 1e-12 : 0; break;
    case BREAK_BOUND: c->bound += c->exact ? 1e-12 : 0; break;
    case BREAK_PLAIN:
        if (!c->exact) set_radius(c, t, o, radius_of(t, lead_of(c, t), 1, 0));
        break;
    case BREAK_VOTE: c->abstained = c->exact ? c->abstained : 0; break;
    default: break;
    }
}
