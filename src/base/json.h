/* JSON read and written, each whole or not at all. The values are jansson's; its own reader and writer are not used,
 * since they go on when memory ends: strings are then read without some of their characters, or the program is
 * aborted, and members are written without their names. (They also write 0.68 as 0.68000000000000005.) */
#ifndef SF_BASE_JSON_H
#define SF_BASE_JSON_H

#include "base/buffer.h"
#include "base/error.h"

#include <jansson.h>

/* As json_loadb, for the flags JSON_REJECT_DUPLICATES, JSON_DECODE_ANY, JSON_DECODE_INT_AS_REAL and JSON_ALLOW_NUL:
 * the same texts give the same values. SAFER_OK; SAFER_INPUT, and *problem, which may be NULL, says what is wrong and
 * where; or SAFER_MEMORY. There is no message, and *out is NULL unless all is well. */
safer_status sf_json_parse(json_t **out, const char *bytes, size_t length, size_t flags, json_error_t *problem);

/* Add a member or an element, which is taken over. When memory is out, also because there is no value, the whole is
 * released and *object or *array becomes NULL; what is added to NULL is released. So one look in the end is enough. */
void sf_json_put(json_t **object, const char *name, json_t *value);
void sf_json_push(json_t **array, json_t *value);

/* Appends the value on one line, without spaces: members in their order, strings by sf_quote, reals by
 * sf_format_real. 0, or -1 when there is no value or memory is out; what was appended is then not whole. */
int sf_json_add(sf_buffer *out, const json_t *value);

/* The same as a string of its own, which the caller frees; NULL where sf_json_add fails. */
char *sf_json_text(const json_t *value);

#endif
