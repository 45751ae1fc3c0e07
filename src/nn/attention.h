/* Attention of one head of one text, in bf16 on AMX: out = softmax(scale * Q K^T) V.
 *
 * As the products of nn/product.h with sf_exp_row of nn/vector.h between them, to the precision of bf16, but in one
 * pass in which the scores never leave the first-level cache. The result depends on queries, keys and
 * values alone. */
#ifndef SF_NN_ATTENTION_H
#define SF_NN_ATTENTION_H

#include "nn/product.h"

/* Whether sf_attend can be used: for products in this precision on this set, with heads of d numbers. */
int sf_attend_can(sf_dtype type, sf_isa isa, size_t d);

/* Some 12 KB of stack are used, and no other memory. */
void sf_attend(sf_view out,                   /* (T, d) bf16 */
               sf_view queries, sf_view keys, /* (T, d) bf16 */
               sf_view values,                /* (T, d) bf16 */
               sf_packed *packed_keys,        /* to work in: shaped for (d, T) */
               sf_packed *packed_values,      /* and for (T, d) */
               float scale, size_t T, size_t d);

#endif
