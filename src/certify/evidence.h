/* From evidence to a decision: what votes prove, and at which radius.
 *
 * The decision is a function of what stands in a record, so that the certifier and the verifier
 * make it by the same code. Pure functions; any number of threads. */
#ifndef SF_CERTIFY_EVIDENCE_H
#define SF_CERTIFY_EVIDENCE_H

#include "stats/eprocess.h"
#include "stats/exact.h"

extern const size_t sf_reported_radii[SAFER_RADII];

/* Whether a method draws samples, of a number and with a chance of error: bounds and groups do not. */
static inline int sf_method_samples(safer_method method)
{
    return method != SAFER_METHOD_IBP && method != SAFER_METHOD_GROUPS;
}

/* q_X at a radius, rounded up, from the overlaps of the text's slots, rising. */
double sf_q_at(const double *overlaps, size_t slots, size_t radius);

/* The parts of a decision that follow from the counts: what a record can be checked by. */
typedef struct sf_evidence {
    safer_method method; /* not SAFER_METHOD_IBP, which counts nothing */
    double delta;
    size_t classes, target;
    int exact;
    uint64_t n;
    const uint64_t *votes; /* classes: sampled */
    const sf_tally *tally; /* exact */
} sf_evidence;

/* Whether the evidence certifies the target at q. */
int sf_evidence_certifies(const sf_evidence *evidence, double q);

/* What a record shows as its bound, rounded down. */
double sf_evidence_bound(const sf_evidence *evidence);

/* Whether any machine may say so: the last bits of the C library's functions may differ, and the allowance
 * for that is twice what is needed (sf_eprocess_grants). What is granted is proven; what this machine
 * certifies, and its bound, are granted. Exact certificates have no such last bits. */
int sf_evidence_grants(const sf_evidence *evidence, double q);
int sf_evidence_grants_bound(const sf_evidence *evidence, double bound);

/* The largest radius at which the evidence certifies the target, given the overlaps of the slots,
 * rising: 0 .. slots - 1, or SAFER_ALL. *q_radius and *q_next get q at that radius and at the next,
 * which failed (SAFER_ALL: the same twice). */
size_t sf_evidence_radius(double *q_radius, double *q_next, const sf_evidence *evidence, const double *overlaps,
                          size_t slots);

/* The largest number of edits, at most `most`, at whose q the evidence certifies the target: q (most + 1), of 0, 1, ...
 * edits. */
size_t sf_evidence_edits(const sf_evidence *evidence, const double *q, size_t most);

/* How the method `adaptive` counts the votes of at most n samples. */
sf_eprocess_options sf_evidence_process(double delta, size_t classes, uint64_t n);

#endif
