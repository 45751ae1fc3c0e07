/* Strings of JSON. */
#ifndef SF_BASE_QUOTE_H
#define SF_BASE_QUOTE_H

#include "base/buffer.h"

/* Appends the inside of a JSON string, without its quotes: what JSON writes otherwise is
 * escaped, as jansson escapes it, all else stays. 0, or -1 when memory is out. */
int sf_quote(sf_buffer *out, const char *bytes, size_t length);

#endif
