/* What the fuzz targets share: the entry that libFuzzer or replay.c calls, a check that no build switches off, and
 * bytes of which not one more can be read. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "base/file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes one input; returns 0, or ends the process when a property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

/* The bytes in memory of their own, exactly as long, so that a sanitizer sees a read beyond. To be freed. */
static inline char *fuzz_copy(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size ? size : 1);
    require(bytes);
    if (size) memcpy(bytes, data, size);
    return bytes;
}

/* Reads all of it: a sanitizer sees what may not be read. */
static inline void fuzz_read(const void *bytes, size_t size)
{
    volatile unsigned char sink;
    for (size_t i = 0; i < size; i++) sink = ((const unsigned char *)bytes)[i];
    (void)sink;
}

/* The copy as a file in memory, which sf_file_free frees. */
static inline sf_file fuzz_file(const uint8_t *data, size_t size)
{
    char *bytes = fuzz_copy(data, size);
    return (sf_file){.bytes = bytes, .length = size, .heap = bytes};
}

#endif
