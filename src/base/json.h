/* JSON read, and written: compact, and whole or not at all. jansson reads, but calls it a wrong text when memory ends
 * while it reads; its own writer leaves out a member's name when memory ends at that moment, and writes 0.68 as
 * 0.68000000000000005. */
#ifndef SF_BASE_JSON_H
#define SF_BASE_JSON_H

#include "base/buffer.h"
#include "base/error.h"

#include <jansson.h>

/* As json_loadb: SAFER_OK, or SAFER_INPUT and *problem says what is wrong, or SAFER_MEMORY. There is no message, and
 * *out is NULL unless all is well. */
safer_status sf_json_parse(json_t **out, const char *bytes, size_t length, size_t flags, json_error_t *problem);

/* Appends the value on one line, without spaces: members in their order, strings by sf_quote, reals by
 * sf_format_real. 0, or -1 when there is no value or memory is out; what was appended is then not whole. */
int sf_json_add(sf_buffer *out, const json_t *value);

/* The same as a string of its own, which the caller frees; NULL where sf_json_add fails. */
char *sf_json_text(const json_t *value);

#endif
