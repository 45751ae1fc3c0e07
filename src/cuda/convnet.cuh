/* Convolutional networks on the GPU: see sf_device_table. */
#ifndef SF_CUDA_CONVNET_CUH
#define SF_CUDA_CONVNET_CUH

#include "cuda/product.cuh"

safer_status sf_cuda_convnet_new(sf_device_convnet **out, int device, const sf_convnet *net, const float *parameters,
                                 int slots, size_t *texts, safer_error *error);
void sf_cuda_convnet_free(sf_device_convnet *net);
safer_status sf_cuda_convnet_answer(float *logits, sf_device_convnet *net, int slot, const uint8_t *codes, size_t count,
                                    safer_error *error);

namespace sf
{

/* Rows behind the last of an array of frames, which sliding products read and write: 2 * 7 and a few. */
enum { FRAME_PAD = 16 };

inline size_t convolution_width(size_t i) { return i < 2 ? 7 : 3; }
inline size_t convnet_inputs(const sf_convnet *net) { return net->frames[2] * net->features; }

/* A matrix of parameters is (inputs, outputs), other than an encoder's: its way forward is a product of kind BACK, in *
 * W, with the names of its sides exchanged. The first of seven is the second convolution. `rounded` are all parameters
 * in bf16. */
struct convnet_matrix {
    size_t weight, bias; /* offsets */
    int inputs, outputs, width;
    size_t rows; /* of a usual batch */
};

convnet_matrix convnet_matrix_at(const sf_convnet *net, size_t index);

safer_status convnet_forward(product *out, cublasLtHandle_t library, const convnet_matrix *m, const bf16 *rounded,
                             safer_error *error);

/* What the GPU can compute. */
safer_status convnet_check(const sf_convnet *net, safer_error *error);

/* out[i] = in[i] rounded, by 256 threads a block. */
__global__ void round_numbers(bf16 *out, const float *in, size_t count);

} // namespace sf
#endif
