/* sentencepiece's table of characters (precompiled_charsmap): what strings become before anything else is done.
 *
 * The bytes are 1. the size of a tree in bytes, 4 bytes, least first; 2. the tree, a double array of 4-byte units as
 * darts-clone writes them (label in bits 0-7 and 31, whether a value follows in bit 8, the way on in bits 9-30); 3. the
 * strings that values point to, each ended by a NUL. */
#ifndef SF_TEXT_CHARSMAP_H
#define SF_TEXT_CHARSMAP_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdint.h>

typedef struct sf_charsmap sf_charsmap;

/* Every unit that a text can reach and every string that a value points to is checked. `name` is for messages. */
safer_status sf_charsmap_new(sf_charsmap **out, const char *bytes, size_t length, const char *name, safer_error *error);
void sf_charsmap_free(sf_charsmap *map);

/* Appends what valid UTF-8 becomes. *head, how many of the first bytes stem from the first character of a text, becomes
 * how many do so afterwards. -1 without memory. */
int sf_charsmap_apply(sf_buffer *out, const sf_charsmap *map, const char *text, size_t length, size_t *head);

/* What an ASCII character becomes where no other joins its cluster: *out is NULL when it stays. */
void sf_charsmap_ascii(const char **out, const sf_charsmap *map, unsigned char character);
/* Whether the table has strings of several characters that begin with this one. */
int sf_charsmap_continues(const sf_charsmap *map, unsigned char character);
/* Whether the table has strings that begin with a character which joins what follows it (Prepend). */
int sf_charsmap_prepends(const sf_charsmap *map);

#endif
