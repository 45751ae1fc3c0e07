/* Digests of files: of one, and of several as one, those of a folder that were read. */
#ifndef SF_BASE_DIGEST_H
#define SF_BASE_DIGEST_H

#include "base/sha256.h"

#include <stdint.h>

/* Of a file as it is on disk, and how many bytes that were. It is not kept in memory. */
safer_status sf_file_digest(sf_digest *out, uint64_t *length, const char *path, safer_error *error);

typedef struct sf_digest_entry {
    char *name; /* owned */
    sf_digest digest;
} sf_digest_entry;

/* Begins as zeros. */
typedef struct sf_digest_list {
    sf_digest_entry *entries;
    size_t count, capacity;
} sf_digest_list;

/* Notes the bytes of a file that was read. One that is read twice counts once; when its bytes are others by then,
 * that is SAFER_INPUT. A NULL list notes nothing. */
safer_status sf_digest_list_add(sf_digest_list *list, const char *name, const void *bytes, size_t length,
                                safer_error *error);

/* The SHA-256 over all of them, in the byte order of their names: the name, NUL, the 32 bytes of its digest. */
safer_status sf_digest_list_end(sf_digest *out, sf_digest_list *list, safer_error *error);

void sf_digest_list_free(sf_digest_list *list);

#endif
