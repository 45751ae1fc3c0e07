/* Zip files whose entries are stored as they are, not compressed: as PyTorch writes them, and NumPy.
 *
 * The entries are used in place, so a small file cannot become a large one. Everything is checked before it is used:
 * the records at the end and where they lie, that no two entries have one name or share bytes, every entry's CRC-32. */
#ifndef SF_BASE_ZIP_H
#define SF_BASE_ZIP_H

#include "base/buffer.h"
#include "base/error.h"

typedef struct sf_zip_entry {
    sf_span name, data; /* in the file's bytes */
} sf_zip_entry;

/* Zero-initialise. */
typedef struct sf_zip {
    sf_zip_entry *entries; /* in the order of their names */
    size_t count;
} sf_zip;

int sf_is_zip(const char *bytes, size_t length); /* by its first bytes */

/* The bytes are borrowed and outlive it; `name` is for messages. */
safer_status sf_zip_open(sf_zip *out, const char *bytes, size_t length, const char *name, safer_error *error);
void sf_zip_free(sf_zip *zip);

const sf_zip_entry *sf_zip_find(const sf_zip *zip, const char *name, size_t length); /* or NULL */

#endif
