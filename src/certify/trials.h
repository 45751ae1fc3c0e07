/* Ways to train a classifier, tried on the same labelled texts, and which of them is taken.
 *
 * The texts are cut into five parts. For each part a model learns from the other four and certifies it, so every text
 * is certified once, by a model that has not seen it, and all ways are compared text by text. The first way is taken
 * unless another one is better by more than chance: of the texts that one of two holds and the other does not, the
 * other must win so many that an even coin would do as well in at most one of twenty cases (McNemar's exact test,
 * one-sided). A raw maximum would often take a dearer way for a handful of texts.
 *
 * What is found is a choice and no claim: a certificate does not depend on how kernel and architecture were chosen, as
 * long as they were not chosen on the texts that are certified. All is a function of texts, ways and seed. */
#ifndef SF_CERTIFY_TRIALS_H
#define SF_CERTIFY_TRIALS_H

#include "lexicon/lexicon.h"

#include <jansson.h>

enum { SF_FOLDS = 5, SF_TRIALS_PATH = 4096 };

/* Whether a way that holds `won` texts alone is taken instead of the best before it, which holds `lost` alone. *p is
 * the chance of so many or more with an even coin, rounded up. */
int sf_trial_is_better(double *p, size_t won, size_t lost);

typedef struct sf_trials {
    const char *what; /* is tried: "kernel", "arch" */
    const safer_data *data;
    uint64_t seed;
    int threads;
    const safer_progress *progress;
    safer_choice *choice;

    size_t *rows;                    /* (choice->texts), ascending */
    unsigned char *part;             /* of each: 0 .. SF_FOLDS - 1, or SF_FOLDS: always learned from */
    unsigned char *held, *best_held; /* whether each text that is held out is, of this trial and of the best, part by
                                      * part */
    char folder[SF_TRIALS_PATH];     /* of the models; empty: there is none */
    const char *name;                /* which is being tried, */
    size_t number;                   /* and with which part */
    char stage[256];
} sf_trials;

/* Picks the texts, at most `most` of those that have a label, and empties the choice. Where nothing can be tried,
 * choice->untried says why. Ends with sf_trials_end, in any case. */
safer_status sf_trials_start(sf_trials *t, size_t most, safer_error *error);
void sf_trials_end(sf_trials *t);

/* Tries one more: these options, but for texts, lexicon, seed, threads and progress. */
safer_status sf_trials_add(sf_trials *t, const char *name, const safer_lexicon *lexicon,
                           const safer_train_options *training, safer_error *error);

/* What provenance says of it: counts alone, no times. NULL without memory. */
json_t *sf_trials_json(const sf_trials *t);

#endif
