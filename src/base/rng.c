/* Philox 4x32-10. */
#include "base/rng.h"

#include "base/hash.h"

#include <assert.h>
#include <math.h>

void sf_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

sf_stream sf_stream_of(uint64_t seed, uint64_t text_hash, sf_stage stage)
{
    uint64_t parts[3] = {seed, text_hash, (uint64_t)stage};
    unsigned char bytes[24]; /* little-endian on every machine */
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(parts[i / 8] >> 8 * (i % 8));
    uint64_t key = sf_hash(bytes, sizeof bytes, 0);
    return (sf_stream){{(uint32_t)key, (uint32_t)(key >> 32)}};
}

uint32_t sf_draw_below(sf_stream stream, uint64_t sample, uint32_t slot, uint32_t bound)
{
    /* Accept x when the low half of x*bound is at least 2^32 mod bound: then each
     * result has the same number of accepted x. Four tries per block. */
    uint32_t reject = (0u - bound) % bound;
    uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), slot, 0}, block[4];
    for (;; counter[3]++) {
        sf_philox(block, counter, stream.key);
        for (int i = 0; i < 4; i++) {
            uint64_t product = (uint64_t)block[i] * bound;
            if ((uint32_t)product >= reject) return (uint32_t)(product >> 32);
        }
    }
}

double sf_draw_unit(sf_stream stream, uint64_t sample, uint32_t slot)
{
    uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), slot, 0}, block[4];
    sf_philox(block, counter, stream.key);
    uint64_t bits = (uint64_t)block[0] << 21 ^ block[1] >> 11; /* 53 bits */
    return (double)bits * 0x1p-53;
}
