/* The `charcnn` classifier: codes of characters. */
#ifndef SF_MODEL_CHARCNN_CODES_H
#define SF_MODEL_CHARCNN_CODES_H

#include <stddef.h>
#include <stdint.h>

/* The code of a character of any case: 1..69, or 0 for blanks and all others. */
uint8_t sf_charcnn_code(uint32_t character);

/* The codes of the first `limit` characters; returns how many there are. A byte that is
 * not UTF-8 is a character of its own, and blank: so the codes of parts that are put
 * together are the codes of the whole. */
size_t sf_charcnn_encode(uint8_t *codes, const char *text, size_t length, size_t limit);

/* How many characters sf_charcnn_encode finds in all. */
size_t sf_charcnn_characters(const char *text, size_t length);

#endif
