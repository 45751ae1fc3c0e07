/* The certificate of one text: draws, votes, bound, radii. Its parts: certify/workspace.h (memory, and
 * the text at hand), ask.h and votes.h (draws and answers), evidence.h (what they prove). */
#ifndef SF_CERTIFY_CERTIFICATE_H
#define SF_CERTIFY_CERTIFICATE_H

#include "certify/evidence.h"
#include "certify/workspace.h"

/* Finds out which remote model this is, by the probe set, and whether it answers at random. */
safer_status sf_certify_probe(const safer_model *model, const safer_data *data, const safer_progress *progress,
                              safer_error *error);

/* The same on a helper of a crew, which has the configuration and the first texts of rank 0. */
safer_status sf_certify_follow(const safer_model *model, const json_t *theirs, const sf_span *texts, size_t count,
                               safer_error *error);

/* What is proven after a batch, where the method may be looked at before its end: adaptive, while
 * it samples. One delta covers all looks and the final certificate together.
 * Returns 0 where nothing may be said yet. */
int sf_certificate_claims(safer_workspace *workspace, const safer_certificate *so_far, double *bound, size_t *radius);

#endif
