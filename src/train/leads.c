/* Leads of a class over the others: their loss, and a step down. */
#include "train/leads.h"

#include <math.h>

double sf_lead_entropy(double *pulls, const double *leads, size_t K, size_t y)
{
    double top = 0, sum; /* logits are -lead, and 0 for y */
    for (size_t c = 0; c < K; c++)
        if (c != y && -leads[c] > top) top = -leads[c];
    sum = exp(-top);
    for (size_t c = 0; c < K; c++)
        if (c != y) sum += exp(-leads[c] - top);
    for (size_t c = 0; c < K; c++) pulls[c] = c == y ? 0 : -exp(-leads[c] - top) / sum;
    return top + log(sum);
}

void sf_descend(float *number, float *squares, double gradient, double rate, double decay)
{
    double g = gradient + decay * (double)*number, sum = (double)*squares + g * g;
    *squares = (float)sum;
    if (sum > 0) *number = (float)((double)*number - rate * g / sqrt(sum));
}
