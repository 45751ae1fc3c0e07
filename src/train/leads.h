/* What models that add up over words learn from: by how much a text's class leads the others. */
#ifndef SF_TRAIN_LEADS_H
#define SF_TRAIN_LEADS_H

#include <stddef.h>

/* The cross entropy of what class y leads every other class by (K; that over itself is not read); pulls (K) gets its
 * gradient by each. */
double sf_lead_entropy(double *pulls, const double *leads, size_t K, size_t y);

/* One number down its gradient, at a rate of its own (AdaGrad; Duchi, Hazan and Singer 2011). */
void sf_descend(float *number, float *squares, double gradient, double rate, double decay);

#endif
