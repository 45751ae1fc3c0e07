/* The `charcnn` classifier on devices. */
#ifndef SF_MODEL_CHARCNN_DEVICE_H
#define SF_MODEL_CHARCNN_DEVICE_H

#include "model/charcnn_layout.h"
#include "nn/device.h"

/* The network on one or more devices of a kind. Any number of threads may ask; their texts meet in calls
 * (model/nets.h). */
typedef struct sf_charcnn_device sf_charcnn_device;

/* Parameters (layout->size) are read during the call only. */
safer_status sf_charcnn_device_new(sf_charcnn_device **out, const sf_device_choice *choice,
                                   const sf_charcnn_layout *layout, const float *parameters, safer_error *error);
void sf_charcnn_device_free(sf_charcnn_device *device); /* NULL is fine */

/* The name of its bits, as long as it lives, and how many threads keep it busy. */
const char *sf_charcnn_device_arithmetic(const sf_charcnn_device *device);
int sf_charcnn_device_concurrency(const sf_charcnn_device *device);

/* logits (count, classes) of codes (count, L), blank where a text has ended. */
safer_status sf_charcnn_device_answer(float *logits, sf_charcnn_device *device, const uint8_t *codes, size_t count,
                                      safer_error *error);

#endif
