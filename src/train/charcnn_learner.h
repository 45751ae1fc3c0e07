/* A `charcnn` that learns: on the CPU (charcnn_step.h) or on a device (nn/device.h), which are two ways of one step. */
#ifndef SF_TRAIN_CHARCNN_LEARNER_H
#define SF_TRAIN_CHARCNN_LEARNER_H

#include "nn/device.h"
#include "train/charcnn_step.h"

typedef struct sf_charcnn_learner sf_charcnn_learner;

/* What is trained and Adam's moments, (layout.trained) each. */
typedef struct sf_charcnn_state {
    float *trained, *means, *variances;
} sf_charcnn_state;

/* For batches of up to so many texts, that starts from `trained`. On a device: the first of those chosen. The batches
 * are never made smaller there, since the sums of a step, and so the model, would depend on how much memory happens to
 * be free: too little is an error. */
safer_status sf_charcnn_learner_new(sf_charcnn_learner **out, const sf_device_choice *choice,
                                    const sf_charcnn_layout *layout, const float *trained,
                                    const sf_charcnn_options *options, size_t texts, safer_error *error);
void sf_charcnn_learner_free(sf_charcnn_learner *learner); /* NULL is fine */

/* One step, the `number`-th from 1: adds the loss of each text to *loss. */
safer_status sf_charcnn_learner_step(double *loss, sf_charcnn_learner *learner, const sf_charcnn_batch *batch,
                                     sf_charcnn_state state, double rate, uint64_t number, safer_error *error);

/* Whether it is on a device. Then it answers there: logits (count, classes) of up to as many texts as a batch has,
 * codes (count, L), by what it has learned so far. */
int sf_charcnn_learner_is_away(const sf_charcnn_learner *learner);
safer_status sf_charcnn_learner_answer(float *logits, sf_charcnn_learner *learner, const uint8_t *codes, size_t count,
                                       safer_error *error);

/* The state here becomes that of the learner, and the other way round. */
safer_status sf_charcnn_learner_fetch(sf_charcnn_learner *learner, sf_charcnn_state state, safer_error *error);
safer_status sf_charcnn_learner_changed(sf_charcnn_learner *learner, sf_charcnn_state state, safer_error *error);

#endif
