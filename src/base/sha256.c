/* libcrypto's functions fail when memory is out, or when the administrator of the machine allows no SHA-256. */
#include "base/sha256.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

static safer_status fail(safer_error *error)
{
    return sf_fail(error, SAFER_SYSTEM, "libcrypto computes no SHA-256 (out of memory, or not allowed here)");
}

static void write_hex(sf_digest *digest)
{
    for (size_t i = 0; i < sizeof digest->bytes; i++) {
        digest->hex[2 * i] = "0123456789abcdef"[digest->bytes[i] >> 4];
        digest->hex[2 * i + 1] = "0123456789abcdef"[digest->bytes[i] & 15];
    }
    digest->hex[sizeof digest->hex - 1] = '\0';
}

safer_status sf_sha256(sf_digest *out, const void *bytes, size_t length, safer_error *error)
{
    sf_digest digest;
    if (EVP_Digest(bytes, length, digest.bytes, NULL, EVP_sha256(), NULL) != 1) return fail(error);
    write_hex(&digest);
    *out = digest;
    return SAFER_OK;
}

void sf_sha256_add(sf_sha256_sum *sum, const void *bytes, size_t length)
{
    if (!sum->context && !sum->failed) {
        sum->context = EVP_MD_CTX_new();
        sum->failed = !sum->context || EVP_DigestInit_ex(sum->context, EVP_sha256(), NULL) != 1;
    }
    if (!sum->failed && length > 0) sum->failed = EVP_DigestUpdate(sum->context, bytes, length) != 1;
}

void sf_sha256_netstring(sf_sha256_sum *sum, const void *bytes, size_t length)
{
    char prefix[32];
    sf_sha256_add(sum, prefix, (size_t)snprintf(prefix, sizeof prefix, "%zu:", length));
    sf_sha256_add(sum, bytes, length);
    sf_sha256_add(sum, ",", 1);
}

safer_status sf_sha256_end(sf_digest *out, sf_sha256_sum *sum, safer_error *error)
{
    sf_digest digest;
    safer_status status = SAFER_OK;
    if (out) {
        sf_sha256_add(sum, NULL, 0); /* nothing may have been added */
        if (sum->failed || EVP_DigestFinal_ex(sum->context, digest.bytes, NULL) != 1) status = fail(error);
    }
    EVP_MD_CTX_free(sum->context);
    *sum = (sf_sha256_sum){0};
    if (out && status == SAFER_OK) {
        write_hex(&digest);
        *out = digest;
    }
    return status;
}
