/* UTF-8 and the few Unicode properties that words need. */
#ifndef SF_TEXT_UNICODE_H
#define SF_TEXT_UNICODE_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

/* Decodes one code point at p < end. Returns its length in bytes, or 0 when the bytes
 * are not valid UTF-8 (overlong forms and surrogates are not). */
size_t sf_utf8_decode(const char *p, const char *end, uint32_t *code);

/* Writes a code point; returns its length, 1 to 4. */
size_t sf_utf8_encode(uint32_t code, char out[4]);

/* The offset of the first byte that is not valid UTF-8; `length` when all is. */
size_t sf_utf8_valid(const char *bytes, size_t length);

/* Appends the bytes with U+FFFD for every one that is not valid. 0, or -1 without memory. */
int sf_utf8_repair(sf_buffer *out, const char *bytes, size_t length);

/* General category L: letters, not marks, digits or symbols. */
int sf_is_letter(uint32_t code);

/* A decimal digit of any script, general category Nd. */
int sf_is_digit(uint32_t code);

/* White space as Unicode has it (the property White_Space, which does not change): U+0009 to U+000D, U+0020, U+0085,
 * U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000. */
int sf_is_space(uint32_t code);

/* Whether another case of it takes more than one letter, as ß (SS) and ﬁ (FI) do. */
int sf_case_expands(uint32_t code);

/* One code point to one code point, whatever surrounds it. */
uint32_t sf_lower(uint32_t code);
uint32_t sf_upper(uint32_t code);
uint32_t sf_title(uint32_t code);

#endif
