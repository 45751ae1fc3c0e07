/* Strings of JSON. */
#include "base/quote.h"

#include <string.h>

/* Whether JSON has another way to write this byte. */
static inline int is_special(unsigned char byte) { return byte < 0x20 || byte == '"' || byte == '\\'; }

/* How many bytes from the start on can be copied as they are, in steps of 32: a loop that
 * the compiler turns into vectors. */
static size_t plain_blocks(const char *bytes, size_t length)
{
    size_t done = 0;
    for (; length - done >= 32; done += 32) {
        unsigned char special = 0;
        for (size_t i = 0; i < 32; i++) special |= (unsigned char)is_special((unsigned char)bytes[done + i]);
        if (special) break;
    }
    return done;
}

static char *escape(char *out, unsigned char byte)
{
    static const char hex[] = "0123456789ABCDEF";
    *out++ = '\\';
    switch (byte) {
    case '\b': *out++ = 'b'; break;
    case '\f': *out++ = 'f'; break;
    case '\n': *out++ = 'n'; break;
    case '\t': *out++ = 't'; break;
    case '\r': *out++ = 'r'; break;
    case '"':
    case '\\': *out++ = (char)byte; break;
    default:
        memcpy(out, "u00", 3);
        out[3] = hex[byte >> 4];
        out[4] = hex[byte & 15];
        out += 5;
    }
    return out;
}

int sf_quote(sf_buffer *out, const char *bytes, size_t length)
{
    size_t at = 0;
    if (sf_buffer_reserve(out, length)) return -1; /* mostly all that is needed */
    while (at < length) {
        size_t plain = plain_blocks(bytes + at, length - at);
        if (plain && sf_buffer_add(out, bytes + at, plain)) return -1;
        at += plain;
        size_t block = length - at < 32 ? length - at : 32;
        if (sf_buffer_reserve(out, 6 * block)) return -1;
        char *p = out->bytes + out->length;
        for (size_t end = at + block; at < end; at++) {
            if (is_special((unsigned char)bytes[at]))
                p = escape(p, (unsigned char)bytes[at]);
            else
                *p++ = bytes[at];
        }
        out->length = (size_t)(p - out->bytes);
        *p = '\0';
    }
    return 0;
}
