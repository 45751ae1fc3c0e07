/* Instruction sets: which kernels this processor can run.
 *
 * Higher includes lower. What a kernel computes may differ in the last bits between sets
 * where its header says so; every set is checked against the portable one. */
#ifndef SF_NN_ISA_H
#define SF_NN_ISA_H

#include "base/error.h"

typedef enum sf_isa { SF_PORTABLE, SF_AVX2, SF_AVX512, SF_AVX512_BF16, SF_AMX } sf_isa;

/* The best this processor has, or what the environment variable SAFER_ISA (portable,
 * avx2, avx512, avx512-bf16, amx) asks for if the processor has it. Asks the system for
 * the use of AMX the first time. */
sf_isa sf_isa_choose(void);

const char *sf_isa_name(sf_isa isa);

/* SAFER_INVALID when SAFER_ISA names no set, or one that this processor lacks. */
safer_status sf_isa_check(safer_error *error);

/* Whether there are functions for sets other than the portable one; what stands before them. */
#if defined(__x86_64__)
#define SF_HAVE_X86 1
#define SF_TARGET_AVX2 __attribute__((target("avx2")))
#define SF_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define SF_TARGET_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#else
#define SF_HAVE_X86 0
#endif

/* Calls function_avx512, function_avx2 or function_portable, the best of them that `isa` includes. */
#if SF_HAVE_X86
#define SF_DISPATCH(isa, function, ...) \
    ((isa) >= SF_AVX512 ? function##_avx512(__VA_ARGS__) \
     : (isa) >= SF_AVX2 ? function##_avx2(__VA_ARGS__) \
                        : function##_portable(__VA_ARGS__))
#else
#define SF_DISPATCH(isa, function, ...) ((void)(isa), function##_portable(__VA_ARGS__))
#endif

/* Before a function: it is compiled for several sets, and the loader takes the best. For loops
 * that compute element by element, where every set gives the same bits: nothing is fused
 * (-ffp-contract=off) and sums keep their order. (Sanitizers are not ready when the loader asks.) */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SF_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SF_WIDE
#endif

#endif
