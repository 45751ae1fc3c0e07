/* The weights of a sum of models: what safer_sum_fit minimises. */
#ifndef SF_TRAIN_SUM_FIT_H
#define SF_TRAIN_SUM_FIT_H

#include "model/sum.h"

/* weights (members), each at least 0, that minimise the loss of sum_fit.c over leads (texts, members, others): by how
 * much a member puts the label of a text ahead of every other class. */
safer_status sf_sum_minimise(double *weights, const double *leads, size_t texts, size_t members, size_t others,
                             safer_error *error);

#endif
