/* Training on the GPU: see sf_device_table. */
#ifndef SF_CUDA_STEP_CUH
#define SF_CUDA_STEP_CUH

#include "nn/device.h"

safer_status sf_cuda_step_new(sf_device_step **out, int device, const sf_device_training *training, safer_error *error);
void sf_cuda_step_free(sf_device_step *step);
safer_status sf_cuda_step_write(sf_device_step *step, const float *parameters, const float *means,
                                const float *variances, safer_error *error);
safer_status sf_cuda_step_read(float *parameters, float *means, float *variances, sf_device_step *step,
                               safer_error *error);
safer_status sf_cuda_step_gradient(double *loss, float *gradient, sf_device_step *step, const uint32_t *ids,
                                   const size_t *offsets, size_t count, const int *labels, const float *masks,
                                   safer_error *error);
safer_status sf_cuda_step_update(sf_device_step *step, const sf_device_adam *adam, safer_error *error);
safer_status sf_cuda_step_answer(float *logits, sf_device_step *step, const uint32_t *ids, const size_t *offsets,
                                 size_t count, safer_error *error);

#endif
