/* Bounds of one network, from the inside: for this room, and for training, which measures itself by
 * them. Everything else uses bounds.h. */
#ifndef SF_IBP_NETWORK_H
#define SF_IBP_NETWORK_H

#include "model/cnn.h"

/* Position i may hold any of the words ids[begin[i]] .. ids[begin[i+1]-1], numbers of the
 * model's vocabulary, at least one. */
typedef struct sf_ibp_choices {
    const uint32_t *ids;
    const size_t *begin; /* (count+1) */
    size_t count;
} sf_ibp_choices;

/* Working memory of one thread; NULL, or what an earlier call left. */
typedef struct sf_ibp_network_scratch sf_ibp_network_scratch;
void sf_ibp_network_scratch_free(sf_ibp_network_scratch *scratch);

/* margins[c] (classes) is at most logit[target] - logit[c], as the program computes them,
 * for every way to choose; 0 for the target itself. Whatever cannot be bounded is -DBL_MAX.
 * No logit is further from 0 than *extent (may be NULL), which is DBL_MAX when it is not known. */
safer_status sf_ibp_network_margins(double *margins, double *extent, const sf_cnn_net *net, const sf_ibp_choices *text,
                                    size_t target, sf_ibp_network_scratch **scratch, safer_error *error);

#endif
