/* Vectors of 16 lanes: one source of kernels for every instruction set.
 *
 * Kernels are written with the compiler's vector types in a header X_kernels.h that defines no
 * guard. The file X.c names it and includes nn/simd_sets.h, which includes it once for each set:
 *
 *   #define KERNELS "nn/X_kernels.h"
 *   #include "nn/simd_sets.h"
 *
 * There NAME(x) is the name of a function x of this set, x_portable, x_avx2 or x_avx512, as
 * SF_DISPATCH (nn/isa.h) calls it; TARGET is the attribute of its functions, INLINE that of
 * functions which become part of others; AVX512 is 1 where the instructions of that set may be
 * used by name, else 0, and then PART and PARTI are vectors as long as a register, of floats and
 * of whole numbers; and the functions of nn/simd_lanes.h are there. Vectors go in and out by
 * address: how they are passed by value depends on the set. */
#ifndef SF_NN_SIMD_H
#define SF_NN_SIMD_H

#include "nn/isa.h"

#include <stdint.h>

#if SF_HAVE_X86
#include <immintrin.h>
#endif

typedef float v4 __attribute__((vector_size(16)));
typedef float v8 __attribute__((vector_size(32)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef float v16 __attribute__((vector_size(64)));
typedef int32_t v16i __attribute__((vector_size(64)));
typedef uint32_t v16u __attribute__((vector_size(64)));
typedef uint16_t v16h __attribute__((vector_size(32)));
typedef uint8_t v16b __attribute__((vector_size(16)));

/* In memory, at any address that suits an element. */
typedef float v16_any __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t v16i_any __attribute__((vector_size(64), aligned(4), may_alias));
typedef int16_t v16s_any __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint16_t v16h_any __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint8_t v16b_any __attribute__((vector_size(16), aligned(1), may_alias));

#endif
