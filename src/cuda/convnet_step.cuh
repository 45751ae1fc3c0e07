/* Training of convolutional networks on the GPU: see sf_device_table. */
#ifndef SF_CUDA_CONVNET_STEP_CUH
#define SF_CUDA_CONVNET_STEP_CUH

#include "nn/device.h"

safer_status sf_cuda_convnet_step_new(sf_device_convnet_step **out, int device,
                                      const sf_device_convnet_training *training, safer_error *error);
void sf_cuda_convnet_step_free(sf_device_convnet_step *step);
safer_status sf_cuda_convnet_step_write(sf_device_convnet_step *step, const float *trained, const float *means,
                                        const float *variances, safer_error *error);
safer_status sf_cuda_convnet_step_read(float *trained, float *means, float *variances, sf_device_convnet_step *step,
                                       safer_error *error);
safer_status sf_cuda_convnet_step_gradient(double *loss, float *gradient, sf_device_convnet_step *step,
                                           const uint8_t *codes, size_t count, const int *labels, const float *masks,
                                           safer_error *error);
safer_status sf_cuda_convnet_step_update(sf_device_convnet_step *step, const sf_device_adam *adam, safer_error *error);
safer_status sf_cuda_convnet_step_answer(float *logits, sf_device_convnet_step *step, const uint8_t *codes,
                                         size_t count, safer_error *error);

#endif
