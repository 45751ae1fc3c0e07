/* XXH64, written from its specification: four lanes of 8 bytes, each folded by two
 * multiplications and a rotation, merged, then the tail, then an avalanche. */
#include "base/hash.h"

#include <string.h>

#define P1 UINT64_C(0x9E3779B185EBCA87)
#define P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define P3 UINT64_C(0x165667B19E3779F9)
#define P4 UINT64_C(0x85EBCA77C2B2AE63)
#define P5 UINT64_C(0x27D4EB2F165667C5)

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static uint64_t read64(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

static uint32_t read32(const unsigned char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap32(x);
#endif
    return x;
}

static uint64_t fold(uint64_t lane, uint64_t input) { return rotate(lane + input * P2, 31) * P1; }
static uint64_t merge(uint64_t h, uint64_t lane) { return (h ^ fold(0, lane)) * P1 + P4; }

uint64_t sf_hash(const void *bytes, size_t length, uint64_t seed)
{
    const unsigned char *p = bytes, *end = p + length;
    uint64_t h;
    if (length >= 32) {
        uint64_t a = seed + P1 + P2, b = seed + P2, c = seed, d = seed - P1;
        do {
            a = fold(a, read64(p));
            b = fold(b, read64(p + 8));
            c = fold(c, read64(p + 16));
            d = fold(d, read64(p + 24));
            p += 32;
        } while (end - p >= 32);
        h = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
        h = merge(merge(merge(merge(h, a), b), c), d);
    } else {
        h = seed + P5;
    }
    h += length;
    for (; end - p >= 8; p += 8) h = rotate(h ^ fold(0, read64(p)), 27) * P1 + P4;
    if (end - p >= 4) {
        h = rotate(h ^ read32(p) * P1, 23) * P2 + P3;
        p += 4;
    }
    for (; p < end; p++) h = rotate(h ^ *p * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}
