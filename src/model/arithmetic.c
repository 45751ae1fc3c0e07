/* How a network computes, and the name of the bits that this gives. */
#include "model/arithmetic.h"

#include <string.h>

sf_arithmetic sf_arithmetic_fast(sf_dtype type)
{
    const sf_isa best = sf_isa_choose();
    /* In f32 all but products computes as AVX2 does, which fuses nothing: one name for all sets. */
    return (sf_arithmetic){type, type == SF_F32 && best > SF_AVX2 ? SF_AVX2 : best};
}

sf_arithmetic sf_arithmetic_of(safer_precision precision)
{
    if (precision == SAFER_PRECISION_PORTABLE) return (sf_arithmetic){SF_F32, SF_PORTABLE};
    return sf_arithmetic_fast(precision == SAFER_PRECISION_F32 ? SF_F32 : SF_BF16);
}

const char *sf_arithmetic_name(sf_arithmetic arithmetic)
{
    static const char *const bf16[] = {"bf16 portable", "bf16 avx2", "bf16 avx512", "bf16 avx512-bf16", "bf16 amx 2"};
    if (arithmetic.type == SF_BF16) return bf16[arithmetic.isa];
    return arithmetic.isa == SF_PORTABLE ? SF_PORTABLE_NAME : "f32 fma";
}

int sf_arithmetic_same(const char *a, const char *b)
{
    return strcmp(a ? a : SF_PORTABLE_NAME, b ? b : SF_PORTABLE_NAME) == 0;
}
