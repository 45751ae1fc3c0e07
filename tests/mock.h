/* What the parts of the plugin without a device (mock_plugin.c) share. */
#ifndef MOCK_H
#define MOCK_H

#include "nn/device.h"

#include <stdio.h>
#include <stdlib.h>

static inline long order(const char *name, long otherwise)
{
    const char *value = getenv(name);
    return value ? atol(value) : otherwise;
}

static inline safer_status fail(safer_error *error, safer_status status, const char *message)
{
    if (error) {
        error->status = status;
        snprintf(error->message, sizeof error->message, "%s", message);
    }
    return status;
}

/* Zeros. The test ends when there is no memory. */
static inline void *room(size_t count, size_t size)
{
    void *pointer = calloc(count + 1, size);
    if (!pointer) abort();
    return pointer;
}

/* Answers by device, and the most texts of one: for test_device.c. */
extern size_t mock_answers[16], mock_most_texts;

/* Counts an answer that is about to be given, waits as ordered; fails when it is the one that is to. */
void mock_trace(int device);
safer_status mock_call(long *calls, const char *what, safer_error *error);
void mock_count(int device, size_t texts); /* an answer */

/* Adam, and the clipping before it, of numbers first .. last-1; decays NULL: all do. */
typedef struct mock_state {
    float *parameters, *means, *variances; /* the moments from `first` on */
    double *gradient;
    const uint8_t *decays;
} mock_state;
void mock_update(mock_state s, size_t first, size_t last, double clip, const sf_device_adam *adam);

/* The entries of the table for convolutional networks (mock_convnet.c). */
safer_status mock_convnet_new(sf_device_convnet **out, int device, const sf_convnet *net, const float *parameters,
                              int slots, size_t *texts, safer_error *error);
void mock_convnet_free(sf_device_convnet *net);
safer_status mock_convnet_answer(float *logits, sf_device_convnet *net, int slot, const uint8_t *codes, size_t count,
                                 safer_error *error);
safer_status mock_convnet_step_new(sf_device_convnet_step **out, int device, const sf_device_convnet_training *training,
                                   safer_error *error);
void mock_convnet_step_free(sf_device_convnet_step *step);
safer_status mock_convnet_step_write(sf_device_convnet_step *step, const float *trained, const float *means,
                                     const float *variances, safer_error *error);
safer_status mock_convnet_step_read(float *trained, float *means, float *variances, sf_device_convnet_step *step,
                                    safer_error *error);
safer_status mock_convnet_step_gradient(double *loss, float *gradient, sf_device_convnet_step *step,
                                        const uint8_t *codes, size_t count, const int *labels, const float *masks,
                                        safer_error *error);
safer_status mock_convnet_step_update(sf_device_convnet_step *step, const sf_device_adam *adam, safer_error *error);
safer_status mock_convnet_step_answer(float *logits, sf_device_convnet_step *step, const uint8_t *codes, size_t count,
                                      safer_error *error);

#endif
