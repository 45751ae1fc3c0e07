/* Bounds of one network, from the inside: for this room, and for training, which measures itself by
 * them. Everything else uses bounds.h. */
#ifndef SF_IBP_NETWORK_H
#define SF_IBP_NETWORK_H

#include "model/cnn.h"
#include "model/context_sum.h"

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

/* Whether its logits add up over words: there is no layer between their mean and the logits. */
int sf_ibp_network_adds(const sf_cnn_net *net);

/* What is known of the lead of one class over another, times a factor: it is the sum of `bias` and of a
 * value for every position's word, as real numbers; the program's own is below that by `error` at most. */
typedef struct sf_ibp_lead {
    double bias, error;
    double size; /* no sum of magnitudes exceeds it: neither that of the terms nor, divided by the factor, a logit */
} sf_ibp_lead;

/* Of a network that adds up, with the scratch of an earlier sf_ibp_network_margins of this text: adds to
 * values[j] what ids[j] gives class y over class c, times the factor. */
sf_ibp_lead sf_ibp_network_lead(double *values, const sf_cnn_net *net, const sf_ibp_choices *text, size_t y, size_t c,
                                double factor, sf_ibp_network_scratch *scratch);

/* Of a `context` model, in its whole numbers and exactly (context.c has the theorem): the lead of class y over class c
 * in the text whose every word is the first of its choices, and in *least the least lead of all texts that choices
 * make. drops (count), unless it is NULL: by how much each word can lower it, 0 or less. */
int64_t sf_ibp_context_lead(int64_t *least, int64_t *drops, const sf_context_sum *sum, sf_contexts contexts,
                            const sf_ibp_choices *text, size_t y, size_t c);

/* Adds to values[j] what ids[j] gives class y over class c, times the factor: sf_ibp_network_lead, without an error. */
sf_ibp_lead sf_ibp_context_values(double *values, const sf_context_sum *sum, sf_contexts contexts,
                                  const sf_ibp_choices *text, size_t y, size_t c, double factor);

/* No logit of a text that choices make is further from 0, in units of 1. */
double sf_ibp_context_extent(const sf_context_sum *sum, sf_contexts contexts, const sf_ibp_choices *text);

/* The rounding error of a sum of k terms, or of one that meets k roundings, for each unit of their magnitudes. */
double sf_ibp_gamma(double k, double unit);

#endif
