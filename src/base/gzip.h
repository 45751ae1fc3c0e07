/* gzip, with its checksums verified: libarchive skips them. */
#ifndef SF_BASE_GZIP_H
#define SF_BASE_GZIP_H

#include "base/buffer.h"
#include "base/error.h"

int sf_is_gzip(const char *bytes, size_t length);

/* Appends the contents of all members. Damage, truncation and anything but zero bytes
 * behind the last member are errors that name the file. */
safer_status sf_gunzip(sf_buffer *out, const char *bytes, size_t length, const char *name, safer_error *error);

#endif
