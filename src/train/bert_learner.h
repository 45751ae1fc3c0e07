/* A `bert` that learns: on the CPU (bert_step.h) or on a device (nn/device.h), which are two ways of one step. */
#ifndef SF_TRAIN_BERT_LEARNER_H
#define SF_TRAIN_BERT_LEARNER_H

#include "train/bert_step.h"

typedef struct sf_bert_learner sf_bert_learner;

/* Adam's moments, (size - start of what is trained) each. */
typedef struct sf_bert_moments {
    float *means, *variances;
} sf_bert_moments;

/* For batches of up to so many texts. Layout and parameters are borrowed; the latter are changed by steps. On a device:
 * the first of those chosen. The batches are never made smaller there, since the sums of a step, and so the model,
 * would depend on how much memory happens to be free: too little is an error. */
safer_status sf_bert_learner_new(sf_bert_learner **out, const sf_device_choice *choice, const sf_bert_layout *layout,
                                 float *parameters, const sf_bert_options *options, size_t texts, safer_error *error);
void sf_bert_learner_free(sf_bert_learner *learner); /* NULL is fine */

/* One step, the `number`-th from 1: adds the loss of each text to *loss. */
safer_status sf_bert_learner_step(double *loss, sf_bert_learner *learner, const sf_bert_batch *batch, const int *labels,
                                  sf_bert_moments moments, double rate, uint64_t number, safer_error *error);

/* logits (count, classes) of any number of texts, by the present parameters. */
safer_status sf_bert_learner_answer(float *logits, sf_bert_learner *learner, const sf_bert_batch *batch,
                                    safer_error *error);

/* Features (count, hidden) of any number of texts, for a layout whose classifier is the identity. */
safer_status sf_bert_learner_features(float *features, sf_bert_learner *learner, const sf_bert_batch *batch,
                                      safer_error *error);

/* Parameters and moments here become those of the learner, and the other way round. */
safer_status sf_bert_learner_fetch(sf_bert_learner *learner, sf_bert_moments moments, safer_error *error);
safer_status sf_bert_learner_changed(sf_bert_learner *learner, sf_bert_moments moments, safer_error *error);

#endif
