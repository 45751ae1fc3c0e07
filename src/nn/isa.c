/* Instruction sets: which kernels this processor can run. */
#define _GNU_SOURCE
#include "nn/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { ISAS = SF_AMX + 1, UNKNOWN = -1 };

static const char *const names[ISAS] = {"portable", "avx2", "avx512", "avx512-bf16", "amx"};

/* What the processor has does not change: it is looked up once, by any number of threads
 * with the same result. (Asking the processor is slow under a hypervisor.) */
static atomic_int known = UNKNOWN;

#if defined(__x86_64__)
/* Tiles are 8 KB more for the kernel to save at every switch, so that Linux requires each
 * process to ask for them once. It refuses when it or the processor has none. */
static int allow_tiles(void)
{
#if defined(__linux__)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return 0;
#endif
}

static int has_amx(void)
{
    enum { BF16 = 1 << 22, TILE = 1 << 24 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & BF16) && (d & TILE) &&
           __builtin_cpu_supports("avx512vbmi") && allow_tiles();
}

static sf_isa look(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return SF_PORTABLE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return SF_AVX2;
    if (!__builtin_cpu_supports("avx512bf16")) return SF_AVX512;
    return has_amx() ? SF_AMX : SF_AVX512_BF16;
}
#else
static sf_isa look(void) { return SF_PORTABLE; }
#endif

static sf_isa best(void)
{
    int isa = atomic_load_explicit(&known, memory_order_relaxed);
    if (isa == UNKNOWN) {
        isa = (int)look();
        atomic_store_explicit(&known, isa, memory_order_relaxed);
    }
    return (sf_isa)isa;
}

/* The set of that name, or UNKNOWN. */
static int find(const char *name)
{
    for (int isa = 0; isa < ISAS; isa++)
        if (strcmp(names[isa], name) == 0) return isa;
    return UNKNOWN;
}

sf_isa sf_isa_choose(void)
{
    const sf_isa top = best();
    const char *wish = getenv("SAFER_ISA");
    int isa = wish ? find(wish) : UNKNOWN;
    return isa != UNKNOWN && isa < (int)top ? (sf_isa)isa : top;
}

const char *sf_isa_name(sf_isa isa) { return names[isa]; }

safer_status sf_isa_check(safer_error *error)
{
    const char *wish = getenv("SAFER_ISA");
    if (!wish) return SAFER_OK;
    int isa = find(wish);
    if (isa == UNKNOWN)
        return sf_fail(error, SAFER_INVALID,
                       "SAFER_ISA is \"%s\"; it may be portable, avx2, avx512, avx512-bf16 or amx", wish);
    if (isa > (int)best())
        return sf_fail(error, SAFER_INVALID, "SAFER_ISA is %s, but this processor has %s at best", wish, names[best()]);
    return SAFER_OK;
}
