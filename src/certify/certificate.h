/* The certificate of one text: draws, votes, bound, radii. */
#ifndef SF_CERTIFY_CERTIFICATE_H
#define SF_CERTIFY_CERTIFICATE_H

#include "draw/sampler.h"
#include "ibp/bounds.h"
#include "model/model.h"
#include "stats/eprocess.h"
#include "stats/exact.h"

extern const size_t sf_reported_radii[SAFER_RADII];

/* SAFER_INVALID, with the field's name, when an option is out of range, or when the method
 * cannot certify this model with this lexicon (NULL, both: any). */
safer_status sf_certify_check(const safer_certify_options *options, const safer_model *model,
                              const safer_lexicon *lexicon, safer_error *error);

/* q_X at a radius, rounded up, from the overlaps of the text's slots, rising. */
double sf_q_at(const double *overlaps, size_t slots, size_t radius);

/* The parts of a decision that follow from the counts: what a record can be checked by. */
typedef struct sf_evidence {
    safer_method method;
    double delta;
    size_t classes, target;
    int exact;
    uint64_t n;
    const uint64_t *votes; /* sampled */
    const sf_tally *tally; /* exact */
} sf_evidence;

/* Whether the evidence certifies the target at q. */
int sf_evidence_certifies(const sf_evidence *evidence, double q);

/* What a record shows as its bound, rounded down. */
double sf_evidence_bound(const sf_evidence *evidence);

/* Finds out, for a model that lives elsewhere, whether it answers at random. */
safer_status sf_certify_probe(const safer_model *model, const safer_data *data, safer_error *error);

/* Sees a certificate as it grows: when the text was read (words, slots, visible and q are known),
 * when the prediction was chosen (not of exact certificates; the workspace holds the votes of the
 * selection), and after every batch of the certificate's own draws (n and votes are those so
 * far; an exact one has no votes yet). Nonzero ends it with SAFER_CANCELLED. */
typedef enum sf_moment { SF_TEXT_READ, SF_PREDICTION_CHOSEN, SF_BATCH_ASKED } sf_moment;

typedef struct sf_watch {
    int (*look)(void *context, sf_moment moment, const safer_certificate *so_far, safer_workspace *workspace);
    void *context;
} sf_watch;

/* What is proven after a batch, where the method may be looked at before its end: adaptive, while
 * it samples. The error probability delta covers all looks and the final certificate together.
 * Returns 0 where nothing may be said yet. */
int sf_certificate_claims(safer_workspace *workspace, const safer_certificate *so_far, double *bound, size_t *radius);

/* The state of one thread. */
struct safer_workspace {
    const safer_model *model;
    const safer_lexicon *lexicon;
    safer_certify_options options; /* delta is the text's own */
    sf_slots slots;
    sf_sampler sampler;
    sf_eprocess *process;
    sf_tally tally;
    uint64_t *votes, *selection; /* classes */
    double *shares;              /* classes */
    double *overlaps;            /* slots, rising */
    uint32_t *draws;             /* (batch, slots) */
    int *answers;                /* batch */
    sf_buffer *texts;            /* batch: rendered, for models without a fast path */
    sf_span *spans;              /* batch */
    void **scratch;              /* the model's, one a thread */
    int threads;                 /* that share a batch */
    size_t visible;              /* slots the model can ever see: the others leave the product */
    size_t overlap_capacity, draw_capacity;
    double q_radius, q_next; /* q at the certified radius and at the next */
    double *margins;         /* classes: ibp */
    sf_ibp_scratch *ibp;
    sf_watch watch; /* of the text at hand; look may be NULL */
};

/* What safer_certify_text makes when it is given none. */
safer_status sf_workspace_new(safer_workspace **out, const safer_model *model, const safer_lexicon *lexicon,
                              const safer_certify_options *options, safer_error *error);

#endif
