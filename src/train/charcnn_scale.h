/* Training of `charcnn`: weights from what is trained, and back. */
#ifndef SF_TRAIN_CHARCNN_SCALE_H
#define SF_TRAIN_CHARCNN_SCALE_H

#include "base/error.h"
#include "model/charcnn_layout.h"

/* What is trained is not the weights W of a matrix but V and a gain g for each output:
 *
 *   W = g (V - mean V) / (rms(V - mean V) sqrt(n m))
 *
 * over the n inputs of the output, m being the mean square expected of an input: "weight
 * standardisation" (Qiao et al. 2019), as in networks without normalising layers (Brock et
 * al. 2021). Frames are nowhere negative, so without it a step of Adam moves a sum of
 * thousands of inputs by a multiple of its spread, and the network ends up answering the
 * same for all texts. Measured on IMDB (a prototype in PyTorch), dev accuracy after 15
 * epochs: 0.52 to 0.57 with plain weights at seven rates, 0.79 with standardised ones. The
 * file holds W: the answering network is the paper's. */
typedef struct sf_charcnn_scaling sf_charcnn_scaling;

safer_status sf_charcnn_scaling_new(sf_charcnn_scaling **out, const sf_charcnn_layout *layout, int threads,
                                    safer_error *error);
void sf_charcnn_scaling_free(sf_charcnn_scaling *scaling);

/* The mean square of the weights of a matrix whose gains are 1: 1 / (n m). */
double sf_charcnn_share(const sf_charcnn_layout *layout, size_t index);

/* parameters (size) = what trained (layout->trained) stands for. */
void sf_charcnn_scale(float *parameters, sf_charcnn_scaling *scaling, const float *trained);

/* gradient (trained) of what the last sf_charcnn_scale saw, from the gradient (size) of the
 * parameters that lies in it. */
void sf_charcnn_scale_backward(float *gradient, sf_charcnn_scaling *scaling, const float *trained);

#endif
