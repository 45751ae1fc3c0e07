/* gzip: read with its checksums verified, which libarchive skips, and written. */
#ifndef SF_BASE_GZIP_H
#define SF_BASE_GZIP_H

#include "base/buffer.h"
#include "base/error.h"

int sf_is_gzip(const char *bytes, size_t length);

/* Appends the contents of all members. Damage, truncation and anything but zero bytes
 * behind the last member are errors that name the file. */
safer_status sf_gunzip(sf_buffer *out, const char *bytes, size_t length, const char *name, safer_error *error);

/* Appends the bytes as one member, the same for the same bytes. 0, or -1 when memory is out. */
int sf_gzip(sf_buffer *out, const char *bytes, size_t length);

#endif
