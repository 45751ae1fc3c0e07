/* Unicode's normal forms. ASCII is in every form and nothing before it joins it, so only what is not ASCII, with the
 * one character before it, is taken apart, ordered and put together again. */
#include "text/forms.h"

#include "text/unicode.h"
#include "text/wordpiece_parts.h"

#include <string.h>
#include <utf8proc.h>

enum { MOST = 18 }; /* characters that one is taken apart to */

int sf_form_holds(sf_form form, const char *text, size_t length)
{
    /* All characters below U+0300 are in NFC; their first bytes, and all bytes that follow, lie below 0xcc. */
    const unsigned char most = form == SF_FORM_NFC ? 0xcc : 0x80;
    unsigned char above = 0;
    for (size_t i = 0; i < length; i++) above |= (unsigned char)text[i] >= most;
    return !above;
}

int sf_form_order(sf_ids *points)
{
    size_t count = points->count;
    for (size_t i = 0; i < count;) {
        size_t begin = i;
        uint32_t present[256 / 32] = {0};
        unsigned last = 0, falls = 0, class;
        for (; i < count && (class = sf_bert_combining(points->ids[i])) != 0; i++, last = class) {
            falls |= class < last;
            present[class / 32] |= 1u << class % 32;
        }
        if (falls) {
            if (sf_grow(&points->ids, &points->capacity, count + (i - begin), sizeof *points->ids)) return -1;
            uint32_t *sorted = points->ids + count;
            size_t n = 0;
            for (unsigned c = 1; c < 256; c++) {
                if (!(present[c / 32] >> c % 32 & 1)) continue;
                for (size_t k = begin; k < i; k++)
                    if (sf_bert_combining(points->ids[k]) == c) sorted[n++] = points->ids[k];
            }
            memcpy(points->ids + begin, sorted, n * sizeof *sorted);
        }
        if (i == begin) i++;
    }
    return 0;
}

/* Characters of Unicode 10 and later that it does not replace by what they look like. */
static int is_young(uint32_t code)
{
    static const uint32_t young[][2] = {{0x32ff, 0x32ff},   {0xa7f1, 0xa7f4},   {0xab69, 0xab69},   {0x10781, 0x107ba},
                                        {0x1ccd6, 0x1ccf9}, {0x1e030, 0x1e06d}, {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9}};
    for (size_t i = 0; i < sizeof young / sizeof *young; i++)
        if (code >= young[i][0] && code <= young[i][1]) return 1;
    return 0;
}

static size_t take_apart(uint32_t out[MOST], sf_form form, uint32_t code)
{
    if (form == SF_FORM_NFC || form == SF_FORM_NFD) return sf_bert_decompose(out, code);
    utf8proc_int32_t points[MOST];
    int boundary = 0;
    out[0] = code;
    if (code < 0xa0 || is_young(code) || sf_bert_undivided(code)) return 1;
    const utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)code, points, MOST,
                                                           UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &boundary);
    if (count < 1 || count > MOST) return 1;
    for (utf8proc_ssize_t i = 0; i < count; i++) out[i] = (uint32_t)points[i];
    return (size_t)count;
}

/* The one character that two are together, or 0. */
static uint32_t compose(uint32_t first, uint32_t second)
{
    if (second < 0x300) return 0;
    utf8proc_int32_t pair[2] = {(utf8proc_int32_t)first, (utf8proc_int32_t)second};
    const utf8proc_ssize_t count = utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    return count == 1 && !sf_bert_undivided((uint32_t)pair[0]) ? (uint32_t)pair[0] : 0;
}

/* Puts ordered characters together where nothing blocks it. */
static void put_together(sf_ids *points)
{
    size_t kept = 0, starter = SIZE_MAX;
    unsigned last = 0; /* the class of what is kept behind the starter; 256: the starter itself */
    for (size_t i = 0; i < points->count; i++) {
        const uint32_t code = points->ids[i];
        const unsigned class = sf_bert_combining(code);
        if (starter != SIZE_MAX && (kept == starter + 1 || (last < class && last != 0))) {
            const uint32_t both = compose(points->ids[starter], code);
            if (both) {
                points->ids[starter] = both;
                continue;
            }
        }
        if (class == 0) starter = kept;
        last = class;
        points->ids[kept++] = code;
    }
    points->count = kept;
}

/* What is not ASCII, with what is before it. */
static int add_stretch(sf_buffer *out, sf_form form, const char *p, const char *end, sf_ids *points)
{
    points->count = 0;
    while (p < end) {
        uint32_t code = 0xfffd, parts[MOST];
        const size_t step = sf_utf8_decode(p, end, &code), count = take_apart(parts, form, code);
        for (size_t i = 0; i < count; i++)
            if (sf_ids_push(points, parts[i])) return -1;
        p += step ? step : 1;
    }
    if (sf_form_order(points)) return -1;
    if (form == SF_FORM_NFC || form == SF_FORM_NFKC) put_together(points);
    for (size_t i = 0; i < points->count; i++) {
        char bytes[4];
        if (sf_buffer_add(out, bytes, sf_utf8_encode(points->ids[i], bytes))) return -1;
    }
    return 0;
}

int sf_form_apply(sf_buffer *out, sf_form form, const char *text, size_t length, sf_ids *points)
{
    const char *p = text, *end = text + length;
    while (p < end) {
        const char *plain = p;
        while (p < end && !(*p & 0x80)) p++;
        const char *high = p > plain && p < end ? p - 1 : p;
        if (high > plain && sf_buffer_add(out, plain, (size_t)(high - plain))) return -1;
        while (p < end && *p & 0x80) p++;
        if (high < p && add_stretch(out, form, high, p, points)) return -1;
    }
    return 0;
}
