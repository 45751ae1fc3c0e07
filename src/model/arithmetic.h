/* How a network computes, and the name of the bits that this gives.
 *
 * A record names the arithmetic of its model, so that another machine can tell whether it would get
 * the same answers to the last bit. A name stands for bits, not for instructions: what gives the same
 * bits has the same name, and nothing else has.
 *
 *   portable           f32, every operation rounded by itself, sums in a fixed order: the same bits on
 *                      every machine. ngram, bow and cnn always; the others where it is asked for.
 *   f32 fma            f32, products fused with their sums; all else as portable. AVX2 and all that
 *                      include it. (A processor without computes f32 as portable does.)
 *   bf16 SET           bf16 with sums in f32, by instruction set (nn/isa.h): they round in different
 *                      places, so no two are the same (portable and avx2 differ only where a product
 *                      is below 2^-126). SET is portable, avx2, avx512, avx512-bf16 or amx 2: where the bits of a
 *                      set change from one version to another, it gets another number.
 *
 *   bf16 cuda sm_NN cublaslt VERSION GPU
 *                      bf16 on a GPU (nn/device.h): of its instructions, the library of its products and its name,
 *                      by which that library chooses them.
 *
 * What decides the bits of a product is written down and tested step by step (tests/test_product.c);
 * scripts/same-bits compares whole models. Format 1 of records had the same names for bf16 (amx without
 * its number), no name for models that were always portable, and "f32 SET" for products by oneDNN, whose
 * bits depend on more than that: none of today's arithmetics has them. */
#ifndef SF_MODEL_ARITHMETIC_H
#define SF_MODEL_ARITHMETIC_H

#include "nn/product.h"
#include "safer.h"

#define SF_PORTABLE_NAME "portable"
#define SF_FORMER_AMX_NAME "bf16 amx" /* before 0.2.0: GELU and attention of bert were computed otherwise */

typedef struct sf_arithmetic {
    sf_dtype type; /* of products: SF_BF16 or SF_F32 */
    sf_isa isa;    /* of all kernels; in f32, where wider ones of the product have the same bits, those are used */
} sf_arithmetic;

/* As fast as this processor can, or SAFER_ISA allows. */
sf_arithmetic sf_arithmetic_fast(sf_dtype type);

sf_arithmetic sf_arithmetic_of(safer_precision precision);

/* Static. */
const char *sf_arithmetic_name(sf_arithmetic arithmetic);

/* Whether two names, of records of either format, stand for the same bits. NULL: no name was written. */
int sf_arithmetic_same(const char *a, const char *b);

#endif
