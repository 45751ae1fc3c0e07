/* What a convolution over time needs beside matrix products: its first layer, which reads codes and
 * multiplies nothing; pooling; and the gradients of both.
 *
 * Rows are frames of F features, F a multiple of SF_FRAME_LANES. A view's rows are F32 or BF16;
 * gradients that come in are f32 rows of F. Sums run over taps and rows in a fixed order and lanes
 * are features, so all instruction sets give the same bits. */
#ifndef SF_NN_FRAMES_H
#define SF_NN_FRAMES_H

#include "nn/product.h"

enum {
    SF_FRAME_LANES = 16, /* features of a block */
    SF_FRAME_TAPS = 7,   /* codes that a frame of the first layer reads */
    SF_FRAME_POOL = 3,   /* frames of which the largest stays */
};

/* Frames of codes: frame p of `count` is the largest of the sums that begin at codes 3p, 3p+1 and
 * 3p+2, rectified; a sum is the bias and a row of the table for each of seven codes. Only features
 * block*16 .. block*16+15 are made. table: (kinds, 7, 16) of this block; codes: (3 * count + 6);
 * which: where the largest was, may be NULL. */
void sf_frames_of_codes(sf_view out, uint8_t *which, const float *table, const float *bias, const uint8_t *codes,
                        size_t count, size_t block, sf_isa isa);

/* Where each kind of code occurs among the first `count`: places (count), kind after kind, those
 * of kind c from begin[c] to begin[c+1]. begin: (kinds + 1); codes are below `kinds`, 256 at most. */
void sf_frames_places(uint32_t *places, uint32_t *begin, const uint8_t *codes, size_t count, size_t kinds);

/* Adds the gradients of the block: of the table (kinds, 7, 16; nothing for code 0, which stands for
 * no character) and the bias (16), from that of the frames. places: of the 3 * count + 6 codes that
 * were read. spread: (3 * count + 12, 16) to work in. */
void sf_frames_of_codes_backward(float *dtable, float *dbias, float *spread, const float *dout, sf_view out,
                                 const uint8_t *which, const uint32_t *places, const uint32_t *begin, size_t count,
                                 size_t block, size_t kinds, sf_isa isa);

/* Row p of out is the largest of rows 3p..3p+2, which are rectified already. which: as above. */
void sf_frames_pool(sf_view out, uint8_t *which, sf_view in, size_t count, size_t F, sf_isa isa);

/* din rows 3p..3p+2 =: the gradient goes to the largest where it was above 0. dbias (F)
 * gets its sums over rows. */
void sf_frames_pool_backward(sf_view din, float *dbias, const float *dout, sf_view out, const uint8_t *which,
                             size_t count, size_t F, sf_isa isa);

/* din = dout where out is above 0, else 0; dbias (F) gets its sums over rows. */
void sf_frames_relu_backward(sf_view din, float *dbias, const float *dout, sf_view out, size_t rows, size_t F,
                             sf_isa isa);

#endif
