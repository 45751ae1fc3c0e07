/* XXH64 (Collet), a fast 64-bit hash: word tables, text keys and file checksums.
 * Not cryptographic. The value is the same on every machine. */
#ifndef SF_BASE_HASH_H
#define SF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t sf_hash(const void *bytes, size_t length, uint64_t seed);

#endif
