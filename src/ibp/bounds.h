/* Bounds of what a classifier can answer when every word of a text may be any of its synonyms.
 *
 * The face of this room. bounds.c has the theory: the box of a text, and why its bounds hold for
 * the program that answers, rounding included; it knows one network (network.h). margins.c takes
 * whole texts and a lexicon's synonyms, and sums of models. Training that keeps the bounds close is
 * train/ibp_step.h. */
#ifndef SF_IBP_BOUNDS_H
#define SF_IBP_BOUNDS_H

#include "draw/slots.h"
#include "lexicon/lexicon.h"

/* SAFER_INVALID for a model that cannot be looked into: it must be bow or cnn, or context with this very lexicon, or a
 * sum of such and of members that read the text in the canonical form of this very lexicon. */
safer_status sf_ibp_check(const safer_model *model, const safer_lexicon *lexicon, safer_error *error);

/* Whether what substitutions change in such a model adds up over words, so that its worst case is known for every
 * number of changed words: bow without a hidden layer, context, and sums of such and of canonical members. */
int sf_ibp_adds(const safer_model *model);

/* How many of the slots, from the first on, a model that passes sf_ibp_check can see. */
size_t sf_ibp_visible(const safer_model *model, const sf_slots *slots);

/* Working memory of one thread; NULL, or what an earlier call with the same model left. */
typedef struct sf_ibp_scratch sf_ibp_scratch;
void sf_ibp_scratch_free(sf_ibp_scratch *scratch);

/* margins[c] (classes): by how much the target leads class c at least, as the program computes
 * it, for the text and everything that the lexicon's synonyms can make of it. 0 for the target
 * itself; -DBL_MAX where nothing can be said. Those of bow, cnn and context are differences of logits, those
 * of a sum differences of its sums, in units of 1; those of context alone are the worst case itself. The model must
 * pass sf_ibp_check; `answered` is its own scratch after it has answered this very text. */
safer_status sf_ibp_margins(double *margins, const safer_model *model, const safer_lexicon *lexicon,
                            const sf_slots *slots, size_t target, const void *answered, sf_ibp_scratch **scratch,
                            safer_error *error);

/* Of a model that adds up: margins that are no lower, and the curve (visible + 1): curve[R] is by how much the target
 * leads every other class at least when at most R words change. It does not rise, its last number is the least margin,
 * and but for rounding errors an attack brings the lead there. It lives until the next call. */
safer_status sf_ibp_curve(double *margins, const double **curve, const safer_model *model, const safer_lexicon *lexicon,
                          const sf_slots *slots, size_t target, const void *answered, sf_ibp_scratch **scratch,
                          safer_error *error);

/* The same as sf_ibp_margins of every member of a sum, (members, classes), before the weights, and nearly: to choose
 * weights by. */
safer_status sf_ibp_member_margins(double *margins, const safer_model *model, const safer_lexicon *lexicon,
                                   const sf_slots *slots, size_t target, const void *answered, sf_ibp_scratch **scratch,
                                   safer_error *error);

/* Whether such margins certify the target: every other class is behind. */
int sf_ibp_certifies(const double *margins, size_t classes, size_t target);

#endif
