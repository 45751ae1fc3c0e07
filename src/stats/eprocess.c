/* The `adaptive` method: sample until every reported radius is decided.
 *
 * What is assumed: the votes of a text are independent and identically distributed, which a
 * function of independent draws gives, and a black box with independent noise too.
 *
 * Claim. Radius R of a text has p0(R) = 1/2 + q_X(R), which is known before sampling and
 * does not fall as R grows. If g(y) - g(c) > 2 q_X(R) for all c != y, then y is certified
 * at R. Let H_c(R) be "g(y) - g(c) <= 2 q_X(R)". Under H_c(R) the e-value of evalue.c for
 * the pair (y,c) is an e-process, so that the smallest over c reaches 1/delta with
 * probability at most delta if any H_c(R) is true: no factor for the number of classes.
 *
 * With two labels and no other answer g(c) = 1 - g(y), the null is "g(y) <= p0", and the
 * one-number form is used. With three labels or more, or where answers that are not a label
 * are possible, the two-class form is used against every c. Which of them is settled by
 * the options, before the first sample; taking the better of both would be selection.
 * Should a none-vote arrive where none was declared possible, it is a failure of y: still
 * sound, since g(y) > p0 is sufficient in any case. The smallest over c needs one
 * evaluation: with the votes for y given, the two-class form falls as votes move from
 * "others" to c, so the minimum is at the class with most votes.
 *
 * One delta for all radii. The nulls are nested. Let r be the smallest reported radius whose
 * null is true. A false claim is a claim at r or beyond; a claim at R demands E >= 1/delta
 * at every reported R' <= R, at r in particular; by Ville that ever happens with probability
 * at most delta. Since E falls in p0 wherever it exceeds 1 (evalue.c), the demand at smaller
 * radii is implied by the one at R, whatever list is reported: a claim may be rechecked
 * alone, and radii left out of the list can be claimed from the same counts.
 *
 * Which E. By Ville the running maximum over time would do. Claims are made from E at the
 * stopping time, with the same final counts for all radii, because then the counts of a
 * record prove its claims. A radius claimed early whose E has sunk again when the last one
 * is decided is open again: sampling stops at the first n at which none is open.
 *
 * Futility. Giving up is always sound, so this part needs no proof. A radius
 * is futile
 *   - when p0 >= 1, or n = n_max without a claim;
 *   - when it could not be claimed even if all remaining samples voted y. E grows with every
 *     such vote, so that one number decides: the most failures with which n_max samples can
 *     still claim. (Two-class form: the most half-points lost. A vote for c loses two, any
 *     other one; of all votes with the same sum draws give the largest product, the factor
 *     being log-concave in the score, so the limit is computed with draws.)
 *   - when the votes reject "the success rate is p1 or more", where p1 is the rate that the
 *     limit above leaves possible: the mirror image of the claim, an e-value reaching
 *     1/futility. A text whose rate is p1 or more is given up with probability at most
 *     `futility`; one well below p1 would have run to n_max in vain.
 * Computed exactly (delta .01, n_max 5000, futility .005; tests/test_stats_rates.c does it at
 * 2000): at the worst rate .0020 of power is lost. Against the first two rules alone, p = p0 =
 * .75 takes 3790 samples instead of 4479, p = .70 535 instead of 3774, p = .63 130 instead
 * of 3035.
 *
 * Speed. While one radius is known to be open no other needs to be looked at, and that one
 * only when it can have changed. With one number, k and the threshold both move by at most 1
 * per sample, so a boundary that is d votes away cannot be reached in fewer than d samples.
 * With the two-class form log E grows by at most log(1/m) per sample. An evaluation takes .4
 * microseconds; a text that runs to n = 5000 with six radii costs about a millisecond, .2
 * microseconds per sample.
 *
 * Rounding: claims compare log E rounded down with log(1/delta) rounded up. */
#include "stats/eprocess.h"

#include "base/elementary.h"
#include "base/memory.h"
#include "stats/evalue.h"
#include "stats/special.h"

#include <assert.h>
#include <math.h>

/* What one radius needs to be decided. */
typedef struct radius {
    int possible;       /* 0: not even unanimous votes could claim it */
    uint64_t most_lost; /* failures (or half-points) beyond which it is hopeless */
    int may_give_up;    /* whether the statistical rule applies */
    union {
        struct {
            sf_boundary claim, give_up;
        } one;
        struct {
            sf_margin claim, give_up;
        } pair;
    } form;
} radius;

struct sf_eprocess {
    sf_eprocess_options options;
    double claim_target, give_up_target;
    radius *radii;
    size_t count, radius_capacity;
    size_t y, suspect; /* suspect: the radius that was open when last examined */
    uint64_t *counts;  /* options.classes */
    uint64_t n, next;  /* nothing can be decided before n = next */
    int done;
};

/* The votes as one radius sees them. */
typedef struct state {
    uint64_t n, wins, losses; /* losses: of the strongest other class; the rest are draws */
} state;

static int is_one_number(const sf_eprocess_options *options) { return options->classes == 2 && !options->none; }

static state state_of(const sf_eprocess_options *options, size_t y, const uint64_t *counts, uint64_t n)
{
    state s = {n, counts[y], 0};
    for (size_t c = 0; c < options->classes; c++)
        if (c != y && counts[c] > s.losses) s.losses = counts[c];
    assert(s.wins + s.losses <= n);
    return s;
}

static uint64_t lost(const sf_eprocess_options *options, state s)
{
    return is_one_number(options) ? s.n - s.wins : s.n - s.wins + s.losses;
}

static double pair_log_e(const sf_margin *margin, state s)
{
    return sf_margin_log_e(margin, s.wins, s.n - s.wins - s.losses, s.losses);
}

/* The same for the mirror image: evidence that y does worse. */
static double pair_log_e_against(const sf_margin *margin, state s)
{
    return sf_margin_log_e(margin, s.losses, s.n - s.wins - s.losses, s.wins);
}

/* ----------------------------------------------------------------- options */

sf_eprocess_options sf_eprocess_options_default(void)
{
    return (sf_eprocess_options){.delta = 0.01, .futility = 0.005, .n_max = 5000, .classes = 2};
}

safer_status sf_eprocess_check(const sf_eprocess_options *options, safer_error *error)
{
    if (!(options->delta > 0 && options->delta < 1))
        return sf_fail(error, SAFER_INVALID, "`delta` must lie between 0 and 1, not %g", options->delta);
    if (!(options->futility >= 0 && options->futility < 1))
        return sf_fail(error, SAFER_INVALID, "futility must be at least 0 and below 1, not %g", options->futility);
    if (options->n_max < 1 || options->n_max >= SF_SAMPLES_MAX)
        return sf_fail(error, SAFER_INVALID, "`n` must be from 1 to %llu", (unsigned long long)SF_SAMPLES_MAX - 1);
    if (options->classes < 2) return sf_fail(error, SAFER_INVALID, "at least two classes are needed");
    return SAFER_OK;
}

/* -------------------------------------------------------------- one radius */

/* Constants of a radius, at n = 0. */
static void prepare_one(const sf_eprocess *process, radius *r, double p0)
{
    double target = process->claim_target;
    uint64_t n = process->options.n_max;
    r->form.one.claim = sf_boundary_of(p0, target);
    uint64_t enough = sf_null_threshold(&r->form.one.claim.null, target, n);
    r->possible = enough <= n;
    if (!r->possible) return;
    r->most_lost = n - enough;
    r->may_give_up = process->options.futility > 0 && r->most_lost > 0;
    if (r->may_give_up) r->form.one.give_up = sf_boundary_of((double)r->most_lost / (double)n, process->give_up_target);
}

static void prepare_pair(const sf_eprocess *process, radius *r, double p0)
{
    double target = process->claim_target;
    uint64_t n = process->options.n_max, low = 0, high = n + 1; /* draws: low can still claim, high cannot */
    const sf_margin *margin = &r->form.pair.claim;
    sf_margin_set(&r->form.pair.claim, p0, 1);
    r->possible = sf_margin_log_e(margin, n, 0, 0) >= target;
    if (!r->possible) return;
    while (high - low > 1) {
        uint64_t draws = low + (high - low) / 2;
        if (sf_margin_log_e(margin, n - draws, draws, 0) >= target)
            low = draws;
        else
            high = draws;
    }
    r->most_lost = low;
    r->may_give_up = process->options.futility > 0 && low > 0;
    if (r->may_give_up) sf_margin_set(&r->form.pair.give_up, (double)low / (2 * (double)n), 1);
}

static void prepare(const sf_eprocess *process, radius *r, double p0)
{
    *r = (radius){0};
    if (p0 >= 1) return;
    if (is_one_number(&process->options))
        prepare_one(process, r, p0);
    else
        prepare_pair(process, r, p0);
}

/* The verdict on one radius by itself. */
static sf_verdict judge(const sf_eprocess *process, const radius *r, state s)
{
    const sf_eprocess_options *options = &process->options;
    if (!r->possible) return SF_FUTILE;
    int one = is_one_number(options);
    double log_e = one ? sf_null_log_e(&r->form.one.claim.null, s.wins, s.n) : pair_log_e(&r->form.pair.claim, s);
    if (log_e >= process->claim_target) return SF_CLAIMED;
    if (s.n >= options->n_max || lost(options, s) > r->most_lost) return SF_FUTILE;
    if (!r->may_give_up) return SF_OPEN;
    double against = one ? sf_null_log_e(&r->form.one.give_up.null, s.n - s.wins, s.n)
                         : pair_log_e_against(&r->form.pair.give_up, s);
    return against >= process->give_up_target ? SF_FUTILE : SF_OPEN;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Steps from b up to a; an open radius is below its boundary, but for the last bits of a sum. */
static uint64_t steps(uint64_t a, uint64_t b) { return a > b ? a - b : 1; }

/* How many samples it takes a log e-value that gains at most `most` each to reach `target`. */
static uint64_t samples_to_gain(double log_e, double target, double most)
{
    double needed = (target - log_e) / most * (1 - 1e-9);
    return needed < 1 ? 1 : needed > 1e9 ? SF_SAMPLES_MAX : (uint64_t)ceil(needed);
}

/* An open radius cannot be decided before this many more samples. */
static uint64_t patience(const sf_eprocess *process, radius *r, state s)
{
    const sf_eprocess_options *options = &process->options;
    uint64_t wait = options->n_max - s.n, left = r->most_lost + 1 - lost(options, s);
    if (is_one_number(options)) {
        uint64_t failures = s.n - s.wins;
        wait = smaller(wait, smaller(left, steps(sf_boundary_advance(&r->form.one.claim, s.n), s.wins)));
        if (r->may_give_up) wait = smaller(wait, steps(sf_boundary_advance(&r->form.one.give_up, s.n), failures));
    } else {
        const sf_margin *claim = &r->form.pair.claim, *against = &r->form.pair.give_up;
        wait = smaller(wait, (left + 1) / 2);
        wait = smaller(wait, samples_to_gain(pair_log_e(claim, s), process->claim_target, -sf_log(claim->m)));
        if (r->may_give_up)
            wait = smaller(wait, samples_to_gain(pair_log_e_against(against, s), process->give_up_target,
                                                 -sf_log(against->m)));
    }
    return wait > 0 ? wait : 1;
}

/* ------------------------------------------------------------- the process */

safer_status sf_eprocess_new(sf_eprocess **out, const sf_eprocess_options *options, safer_error *error)
{
    safer_status status = sf_eprocess_check(options, error);
    if (status != SAFER_OK) return status;
    sf_eprocess *process = sf_calloc(1, sizeof *process);
    if (!process) return sf_fail_memory(error);
    process->counts = sf_calloc(options->classes, sizeof *process->counts);
    if (!process->counts) {
        free(process);
        return sf_fail_memory(error);
    }
    process->options = *options;
    process->claim_target = sf_log_e_target(options->delta);
    process->give_up_target = options->futility > 0 ? sf_log_e_target(options->futility) : HUGE_VAL;
    process->done = 1; /* nothing to decide yet */
    *out = process;
    return SAFER_OK;
}

void sf_eprocess_free(sf_eprocess *process)
{
    if (!process) return;
    free(process->counts);
    free(process->radii);
    free(process);
}

void sf_eprocess_decide(const sf_eprocess *process, sf_verdict *verdicts, const uint64_t *counts, uint64_t n)
{
    state s = state_of(&process->options, process->y, counts, n);
    sf_verdict smaller_radii = SF_CLAIMED; /* all of them, or what keeps the next from being claimed */
    for (size_t i = 0; i < process->count; i++) {
        sf_verdict own = judge(process, &process->radii[i], s);
        verdicts[i] = own == SF_CLAIMED ? smaller_radii : own;
        if (own == SF_FUTILE || smaller_radii == SF_CLAIMED) smaller_radii = own;
    }
}

/* Finds a radius that is open and notes how long it will stay so; without one, all is
 * decided. The one found last time is tried first. */
static void examine(sf_eprocess *process)
{
    state s = state_of(&process->options, process->y, process->counts, process->n);
    for (size_t i = 0; i < process->count; i++) {
        size_t r = (process->suspect + i) % process->count;
        if (judge(process, &process->radii[r], s) != SF_OPEN) continue;
        process->suspect = r;
        process->next = s.n + patience(process, &process->radii[r], s);
        return;
    }
    process->done = 1;
}

safer_status sf_eprocess_begin(sf_eprocess *process, size_t y, const double *p0, size_t radii, safer_error *error)
{
    if (y >= process->options.classes)
        return sf_fail(error, SAFER_INVALID, "class %zu of %zu cannot be certified", y, process->options.classes);
    for (size_t i = 0; i < radii; i++)
        if (!(p0[i] >= 0.5) || (i > 0 && p0[i] < p0[i - 1]))
            return sf_fail(error, SAFER_INVALID, "radius %zu: p0 = %g must be at least 1/2 and not fall", i, p0[i]);
    if (sf_grow(&process->radii, &process->radius_capacity, radii, sizeof *process->radii))
        return sf_fail_memory(error);
    for (size_t i = 0; i < radii; i++) prepare(process, &process->radii[i], p0[i]);
    for (size_t c = 0; c < process->options.classes; c++) process->counts[c] = 0;
    process->count = radii;
    process->y = y;
    process->suspect = 0;
    process->n = process->next = 0;
    process->done = 0;
    examine(process);
    return SAFER_OK;
}

int sf_eprocess_done(const sf_eprocess *process) { return process->done; }

int sf_eprocess_add(sf_eprocess *process, int vote)
{
    assert(!process->done);
    assert(vote >= -1 && (vote < 0 || (size_t)vote < process->options.classes));
    if (vote >= 0) process->counts[vote]++;
    process->n++;
    if (process->n >= process->next) examine(process);
    return process->done;
}

static int is_open_after(const sf_eprocess *process, const radius *r, state now, uint64_t more)
{
    return judge(process, r, (state){now.n + more, now.wins + more, now.losses}) == SF_OPEN;
}

/* An open radius stays so until it is claimed, since E grows with every vote for y; one that was given up may be open
 * again by then, so all are looked at until none is open. */
uint64_t sf_eprocess_soonest(const sf_eprocess *process)
{
    assert(!process->done);
    const state now = state_of(&process->options, process->y, process->counts, process->n);
    uint64_t soonest = 0;
    for (size_t i = 0, settled = 0; settled < process->count; i = (i + 1) % process->count, settled++) {
        const radius *r = &process->radii[i];
        if (!is_open_after(process, r, now, soonest)) continue;
        uint64_t low = soonest, high = process->options.n_max - now.n; /* open after low, not after high */
        while (high - low > 1) {
            const uint64_t more = low + (high - low) / 2;
            if (is_open_after(process, r, now, more))
                low = more;
            else
                high = more;
        }
        soonest = high;
        settled = 0;
    }
    return soonest;
}

uint64_t sf_eprocess_samples(const sf_eprocess *process) { return process->n; }

const uint64_t *sf_eprocess_counts(const sf_eprocess *process) { return process->counts; }

/* --------------------------------------------------- from the counts alone */

static int reaches(const sf_eprocess_options *options, size_t y, double p0, const uint64_t *counts, uint64_t n,
                   double rigour)
{
    assert(p0 >= 0.5);
    if (!(p0 < 1)) return 0;
    state s = state_of(options, y, counts, n);
    double target = sf_log_e_target(options->delta);
    if (is_one_number(options)) {
        sf_null null = sf_null_of(p0);
        null.rigour = rigour;
        return sf_null_log_e(&null, s.wins, s.n) >= target;
    }
    sf_margin margin;
    sf_margin_set(&margin, p0, rigour);
    return pair_log_e(&margin, s) >= target;
}

int sf_eprocess_claims(const sf_eprocess_options *options, size_t y, double p0, const uint64_t *counts, uint64_t n)
{
    return reaches(options, y, p0, counts, n, 1);
}

int sf_eprocess_grants(const sf_eprocess_options *options, size_t y, double p0, const uint64_t *counts, uint64_t n)
{
    return reaches(options, y, p0, counts, n, 0.5);
}

double sf_eprocess_bound(const sf_eprocess_options *options, size_t y, const uint64_t *counts, uint64_t n)
{
    double low = 0.5, high = 1;
    if (!sf_eprocess_claims(options, y, low, counts, n)) return 0;
    for (;;) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) return low;
        if (sf_eprocess_claims(options, y, middle, counts, n))
            low = middle;
        else
            high = middle;
    }
}
