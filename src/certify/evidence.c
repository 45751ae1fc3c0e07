/* From evidence to a decision. certificate.c has the theorem, stats/ the tests of each method. */
#include "certify/evidence.h"

#include "base/number.h"
#include "stats/binomial.h"

#include <math.h>

/* ------------------------------------------------------------------- radii */

const size_t sf_reported_radii[SAFER_RADII] = {1, 2, 5, 10, 20, SAFER_ALL};

size_t safer_reported_radius(size_t index) { return index < SAFER_RADII ? sf_reported_radii[index] : SAFER_ALL; }

double sf_q_at(const double *overlaps, size_t slots, size_t radius)
{
    double product = 1.0;
    for (size_t i = 0; i < slots && i < radius && overlaps[i] < 1.0; i++)
        product = sf_multiply_down(product, overlaps[i]);
    return sf_complement_up(product);
}

/* ---------------------------------------------------------------- evidence */

/* With several classes, or answers that are not a label, the rival is the strongest other class. */
static uint64_t strongest_rival(const sf_evidence *e)
{
    uint64_t most = 0;
    for (size_t c = 0; c < e->classes; c++)
        if (c != e->target && e->votes[c] > most) most = e->votes[c];
    return most;
}

/* A remote model may give no label. `none` stays 0 nevertheless: such a vote is in n and in no
 * class, so with two labels it counts against y. That is sound: what is then proven is
 * g(y) > 1/2 + q, and g(c) <= 1 - g(y) holds whatever share of the answers is no label, so that
 * g(y) - g(c) > 2q. With more labels it is a draw between y and its rival, which it is. */
sf_eprocess_options sf_evidence_process(double delta, size_t classes, uint64_t n)
{
    sf_eprocess_options o = sf_eprocess_options_default();
    o.delta = delta;
    o.n_max = n;
    o.classes = classes;
    o.none = 0;
    return o;
}

int sf_evidence_certifies(const sf_evidence *e, double q)
{
    if (e->exact) return sf_tally_certifies(e->tally, e->target, q);
    if (e->method == SAFER_METHOD_HOEFFDING)
        return sf_hoeffding_certifies(e->votes[e->target], strongest_rival(e), e->n, e->classes, q, e->delta);
    if (e->method == SAFER_METHOD_BINOMIAL) return sf_binomial_certifies(e->votes[e->target], e->n, q, e->delta);
    sf_eprocess_options o = sf_evidence_process(e->delta, e->classes, e->n);
    double p0 = sf_null_probability(q);
    return p0 < 1 && sf_eprocess_claims(&o, e->target, p0, e->votes, e->n);
}

double sf_evidence_bound(const sf_evidence *e)
{
    if (e->exact) return sf_tally_bound(e->tally, e->target);
    if (e->method == SAFER_METHOD_BINOMIAL) return sf_binomial_lower(e->votes[e->target], e->n, e->delta);
    if (e->method == SAFER_METHOD_HOEFFDING)
        return sf_hoeffding_lower(e->votes[e->target], strongest_rival(e), e->n, e->classes, e->delta);
    sf_eprocess_options o = sf_evidence_process(e->delta, e->classes, e->n);
    return sf_eprocess_bound(&o, e->target, e->votes, e->n);
}

int sf_evidence_grants(const sf_evidence *e, double q)
{
    if (e->exact) return sf_tally_certifies(e->tally, e->target, q);
    const double p0 = sf_null_probability(q);
    if (e->method == SAFER_METHOD_HOEFFDING)
        return sf_hoeffding_grants(e->votes[e->target], strongest_rival(e), e->n, e->classes, q, e->delta);
    if (e->method == SAFER_METHOD_BINOMIAL)
        return p0 < 1 && sf_binomial_grants(e->votes[e->target], e->n, nextafter(p0, 1), e->delta);
    const sf_eprocess_options o = sf_evidence_process(e->delta, e->classes, e->n);
    return p0 < 1 && sf_eprocess_grants(&o, e->target, p0, e->votes, e->n);
}

int sf_evidence_grants_bound(const sf_evidence *e, double bound)
{
    if (e->exact) return bound <= sf_tally_bound(e->tally, e->target);
    if (e->method == SAFER_METHOD_HOEFFDING)
        return sf_hoeffding_grants_lower(e->votes[e->target], strongest_rival(e), e->n, e->classes, bound, e->delta);
    if (e->method == SAFER_METHOD_BINOMIAL) return sf_binomial_grants(e->votes[e->target], e->n, bound, e->delta);
    const sf_eprocess_options o = sf_evidence_process(e->delta, e->classes, e->n);
    return bound <= 0 || sf_eprocess_grants(&o, e->target, bound < 0.5 ? 0.5 : bound, e->votes, e->n);
}

/* Walking up: the nulls are nested, so the first radius that fails ends it. Radii past the last
 * overlap below 1 change nothing. */
size_t sf_evidence_radius(double *q_radius, double *q_next, const sf_evidence *evidence, const double *overlaps,
                          size_t slots)
{
    double product = 1.0;
    *q_radius = *q_next = 0;
    if (!sf_evidence_certifies(evidence, 0)) return 0;
    for (size_t i = 0; i < slots && overlaps[i] < 1.0; i++) {
        product = sf_multiply_down(product, overlaps[i]);
        *q_next = sf_complement_up(product);
        if (!sf_evidence_certifies(evidence, *q_next)) return i;
        *q_radius = *q_next;
    }
    return SAFER_ALL;
}

/* Nested as well: q rises. */
size_t sf_evidence_edits(const sf_evidence *evidence, const double *q, size_t most)
{
    size_t edits = 0;
    while (edits < most && sf_evidence_certifies(evidence, q[edits + 1])) edits++;
    return edits;
}
