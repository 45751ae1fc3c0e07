/* Training of the `context` classifier: one text at a time.
 *
 * The loss of a text is (1 - kappa) times the cross entropy of its leads, as it stands, and kappa times that of its
 * least leads over all choices of synonyms, which are known exactly: the worst word of every position, in its context
 * (the theorem is ibp/context.c's; here in real numbers). Learning is AdaGrad's, number by number, as that of linear
 * classifiers (ibp_linear.c).
 *
 * The numbers of a word in its context, `each`, are many, and most words are seen a few times only. They learn at a
 * rate of their own, after the rest has settled, and at the share `dropout` of positions, chosen anew for every text,
 * they do not count, so that what a word says by itself stays with the word. */
#ifndef SF_TRAIN_CONTEXT_STEP_H
#define SF_TRAIN_CONTEXT_STEP_H

#include "model/context_sum.h"
#include "train/ibp_sets.h"

typedef struct sf_context_step_options {
    double rate, decay, dropout, kappa;
    uint64_t seed; /* of where `each` does not count */
} sf_context_step_options;

/* A text to learn from: its items, and what stands around them. */
typedef struct sf_context_lesson {
    const uint32_t *items; /* (contexts.words) */
    sf_contexts contexts;
    size_t label;
} sf_context_lesson;

typedef struct sf_context_step sf_context_step;

/* For texts of up to so many words; the sets are borrowed. */
safer_status sf_context_step_new(sf_context_step **out, const sf_context_layout *layout, const sf_ibp_sets *sets,
                                 const sf_context_step_options *options, size_t longest, safer_error *error);
void sf_context_step_free(sf_context_step *step);

/* Learns from a text, and returns its loss before that. `squares`, as many as parameters, are AdaGrad's; `each`:
 * whether these numbers are learned; `number` is another for every text and epoch. */
double sf_context_step_learn(sf_context_step *step, float *parameters, float *squares, const sf_context_lesson *lesson,
                             int each, uint64_t number);

#endif
