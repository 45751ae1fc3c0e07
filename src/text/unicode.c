/* UTF-8 and the few Unicode properties that words need, on top of utf8proc. */
#include "text/unicode.h"

#include <utf8proc.h>

size_t sf_utf8_decode(const char *p, const char *end, uint32_t *code)
{
    const unsigned char *b = (const unsigned char *)p;
    size_t left = (size_t)(end - p);
    if (b[0] < 0x80) {
        *code = b[0];
        return 1;
    }
    size_t length = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
    if (b[0] < 0xc2 || b[0] > 0xf4 || left < length) return 0;
    uint32_t c = b[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((b[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (b[i] & 0x3f);
    }
    if ((length == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) || (length == 4 && (c < 0x10000 || c > 0x10ffff)))
        return 0;
    *code = c;
    return length;
}

size_t sf_utf8_encode(uint32_t code, char out[4])
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)out);
}

size_t sf_utf8_valid(const char *bytes, size_t length)
{
    const char *p = bytes, *end = bytes + length;
    uint32_t code;
    while (p < end) {
        size_t step = sf_utf8_decode(p, end, &code);
        if (step == 0) break;
        p += step;
    }
    return (size_t)(p - bytes);
}

int sf_utf8_repair(sf_buffer *out, const char *bytes, size_t length)
{
    while (length) {
        size_t good = sf_utf8_valid(bytes, length);
        if (sf_buffer_add(out, bytes, good)) return -1;
        if (good == length) break;
        if (sf_buffer_add(out, "\xef\xbf\xbd", 3)) return -1;
        bytes += good + 1;
        length -= good + 1;
    }
    return 0;
}

int sf_is_letter(uint32_t code)
{
    if (code < 0x80) return (code | 0x20) - 'a' < 26;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

int sf_is_digit(uint32_t code)
{
    if (code < 0x80) return code - '0' < 10;
    return utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_ND;
}

int sf_is_space(uint32_t code)
{
    if (code < 0x80) return code == ' ' || code - 0x09 < 5;
    return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

int sf_case_expands(uint32_t code)
{
    utf8proc_int32_t folded[8];
    int boundary = 0;
    return code >= 0x80 && utf8proc_decompose_char((utf8proc_int32_t)code, folded, 8, UTF8PROC_CASEFOLD, &boundary) > 1;
}

uint32_t sf_lower(uint32_t code)
{
    if (code < 0x80) return code - 'A' < 26 ? code | 0x20 : code;
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
}

uint32_t sf_upper(uint32_t code)
{
    if (code < 0x80) return code - 'a' < 26 ? code & ~0x20u : code;
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)code);
}

uint32_t sf_title(uint32_t code)
{
    if (code < 0x80) return sf_upper(code);
    return (uint32_t)utf8proc_totitle((utf8proc_int32_t)code);
}
