/* SHA-256 by libcrypto: the identity of files, rows and answers. Inside, where nobody has a reason to lie,
 * base/hash.h is faster. */
#ifndef SF_BASE_SHA256_H
#define SF_BASE_SHA256_H

#include "base/error.h"

#include <stddef.h>

/* What comes out, in both of its forms. All zeros: no digest, and hex is "". */
typedef struct sf_digest {
    unsigned char bytes[32];
    char hex[65]; /* 64 lower-case digits, as sha256sum prints them */
} sf_digest;

/* Of bytes at once. */
safer_status sf_sha256(sf_digest *out, const void *bytes, size_t length, safer_error *error);

/* Of bytes that come piece by piece. Begins as zeros; a failure is kept until the end. */
typedef struct sf_sha256_sum {
    struct evp_md_ctx_st *context;
    int failed;
} sf_sha256_sum;

void sf_sha256_add(sf_sha256_sum *sum, const void *bytes, size_t length);

/* The decimal length, ':', the bytes and ',': so that what follows cannot be taken for a part of it. */
void sf_sha256_netstring(sf_sha256_sum *sum, const void *bytes, size_t length);

/* The digest of all that was added. The sum is released and zero again, whatever comes back; with `out` NULL
 * that is all. */
safer_status sf_sha256_end(sf_digest *out, sf_sha256_sum *sum, safer_error *error);

#endif
