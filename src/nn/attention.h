/* Attention of one head of one text, in bf16 on AMX: out = softmax(scale * Q K^T) V.
 *
 * The same bits as the product of queries and keys (nn/product.h), sf_exp_row of every row (nn/vector.h), the product
 * with the values and a division, but scores never leave the first-level cache. */
#ifndef SF_NN_ATTENTION_H
#define SF_NN_ATTENTION_H

#include "nn/product.h"

/* Whether sf_attend can be used for heads of d numbers. */
int sf_attend_can(sf_dtype type, sf_isa isa, size_t d);

/* Floats of `room` for texts of T pieces, at a multiple of 64 bytes. */
size_t sf_attend_room(size_t T);

/* out (T, d) = bf16; queries (T, d) bf16; keys, packed, (d, T); values, packed, (T, d). */
void sf_attend(sf_view out, sf_view queries, const sf_packed *keys, const sf_packed *values, float scale, float *room,
               size_t T, size_t d);

#endif
