/* A convolutional network over characters, described: what every processor that computes one is given.
 *
 *   frames = six convolutions over a text's codes with ReLU, the maximum over every three frames after three of them
 *   two dense layers with ReLU, then the output layer
 *
 * Widths, order and what a code is are in model/charcnn_layout.h. All parameters lie in one array of floats; here is
 * where. Training has a gain for every output of a matrix behind them (train/charcnn_scale.h). */
#ifndef SF_NN_CONVNET_H
#define SF_NN_CONVNET_H

#include <stddef.h>

enum {
    SF_CONVNET_CONVS = 6,
    SF_CONVNET_STAGES = 3,  /* after the first, second and last convolution */
    SF_CONVNET_MATRICES = 7 /* all convolutions but the first, and the dense layers */
};

typedef struct sf_convnet {
    size_t characters;                /* of a text, blanks at its end included */
    size_t features;                  /* a multiple of 16 */
    size_t hidden, classes;           /* outputs of the dense layers, of the output layer */
    size_t frames[SF_CONVNET_STAGES]; /* of a text, behind every maximum */
    size_t size, trained;             /* of all parameters; and gains */
    /* Offsets. */
    size_t conv_weight[SF_CONVNET_CONVS]; /* (codes but the blank, 7, features), then (width, features, features) */
    size_t conv_bias[SF_CONVNET_CONVS];
    size_t dense_weight[2], dense_bias[2]; /* (inputs, hidden) */
    size_t output_weight, output_bias;     /* (classes, hidden) */
    size_t gains[SF_CONVNET_MATRICES];
} sf_convnet;

#endif
