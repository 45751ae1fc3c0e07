/* Encoders on the GPU: see sf_device_table. */
#ifndef SF_CUDA_ENCODER_CUH
#define SF_CUDA_ENCODER_CUH

#include "nn/device.h"

safer_status sf_cuda_net_new(sf_device_net **out, int device, const sf_encoder *encoder, int slots, size_t *rows,
                             safer_error *error);
void sf_cuda_net_free(sf_device_net *net);
safer_status sf_cuda_answer(float *logits, sf_device_net *net, int slot, const uint32_t *ids, const size_t *offsets,
                            size_t count, safer_error *error);
safer_status sf_cuda_means(const sf_device_part *parts, size_t part_count, sf_device_net *net, int slot,
                           const uint32_t *ids, const size_t *offsets, size_t count, safer_error *error);

#endif
