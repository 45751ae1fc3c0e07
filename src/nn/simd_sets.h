/* Includes the header that KERNELS names once for each instruction set (see nn/simd.h). No guard. */
#include "nn/simd.h"

#define NAME(x) x##_portable
#define TARGET
#define PART v4
#define PARTI v4i
#define AVX512 0
#include "nn/simd_lanes.h"
#include KERNELS
#undef NAME
#undef TARGET
#undef PART
#undef PARTI

#if SF_HAVE_X86
#define NAME(x) x##_avx2
#define TARGET SF_TARGET_AVX2
#define PART v8
#define PARTI v8i
#include "nn/simd_lanes.h"
#include KERNELS
#undef NAME
#undef TARGET
#undef PART
#undef PARTI
#undef AVX512

#define NAME(x) x##_avx512
#define TARGET SF_TARGET_AVX512
#define AVX512 1
#include "nn/simd_lanes.h"
#include KERNELS
#undef NAME
#undef TARGET
#endif

#undef AVX512
#undef INLINE
#undef MADD
#undef KERNELS
