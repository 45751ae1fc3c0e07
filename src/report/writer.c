/* Writing HTML, SVG, XML, JSON, CSV and Markdown: what each escapes. writer.h says who
 * uses it. */
#include "report/writer.h"

#include "base/gzip.h"
#include "base/number.h"
#include "text/unicode.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sf_writer_free(sf_writer *writer)
{
    sf_buffer_free(&writer->out);
    *writer = (sf_writer){0};
}

void sf_put_bytes(sf_writer *writer, const void *bytes, size_t length)
{
    if (sf_buffer_add(&writer->out, bytes, length)) writer->failed = 1;
}

void sf_put(sf_writer *writer, const char *string) { sf_put_bytes(writer, string, strlen(string)); }

void sf_putf(sf_writer *writer, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text)
        writer->failed = 1; /* a defect: long strings have sf_put */
    else
        sf_put_bytes(writer, text, (size_t)length);
}

/* --------------------------------------------------------------- characters */

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* The next character at p < end, at most 4 bytes; *code is U+FFFD, and one byte is taken,
 * when it is not UTF-8. */
static size_t next_code(const char *p, const char *end, uint32_t *code)
{
    size_t length = sf_utf8_decode(p, end, code);
    if (length) return length;
    *code = 0xfffd;
    return 1;
}

/* What neither HTML nor XML may hold. */
static int is_forbidden(uint32_t code)
{
    return (code < 0x20 && code != '\t' && code != '\n' && code != '\r') || (code >= 0x7f && code < 0xa0) ||
           (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef);
}

static const char *html_name(uint32_t code)
{
    switch (code) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return is_forbidden(code) || code == 0xfffd ? REPLACEMENT : NULL;
    }
}

void sf_put_html(sf_writer *writer, const char *bytes, size_t length)
{
    const char *p = bytes, *end = bytes + length, *plain = p;
    while (p < end) {
        uint32_t code;
        size_t size = next_code(p, end, &code);
        const char *name = html_name(code);
        if (name) {
            sf_put_bytes(writer, plain, (size_t)(p - plain));
            sf_put(writer, name);
            plain = p + size;
        }
        p += size;
    }
    sf_put_bytes(writer, plain, (size_t)(end - plain));
}

/* How many bytes the first `most` characters are. */
static size_t first_characters(const char *string, size_t most)
{
    const char *p = string, *end = string + strlen(string);
    uint32_t code;
    while (p < end && most--) p += next_code(p, end, &code);
    return (size_t)(p - string);
}

void sf_put_html_short(sf_writer *writer, const char *string, size_t most)
{
    size_t length = first_characters(string, most);
    sf_put_html(writer, string, length);
    if (string[length]) sf_put(writer, "…");
}

static void put_json_inside(sf_writer *writer, const char *bytes, size_t length)
{
    const char *p = bytes, *end = bytes + length, *plain = p;
    while (p < end) {
        uint32_t code;
        size_t size = next_code(p, end, &code);
        if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == '"' || code == '\\' || code == '<' || code == '>' ||
            code == '&' || code == 0x2028 || code == 0x2029 || code == 0xfffd) {
            sf_put_bytes(writer, plain, (size_t)(p - plain));
            sf_putf(writer, "\\u%04x", (unsigned)code);
            plain = p + size;
        }
        p += size;
    }
    sf_put_bytes(writer, plain, (size_t)(end - plain));
}

void sf_put_json(sf_writer *writer, const char *bytes, size_t length)
{
    sf_put(writer, "\"");
    put_json_inside(writer, bytes, length);
    sf_put(writer, "\"");
}

void sf_put_json_short(sf_writer *writer, const char *string, size_t most)
{
    size_t length = first_characters(string, most);
    sf_put(writer, "\"");
    put_json_inside(writer, string, length);
    sf_put(writer, string[length] ? "…\"" : "\"");
}

size_t sf_utf16_length(const char *bytes, size_t length)
{
    size_t units = 0;
    for (const char *p = bytes, *end = p + length; p < end; units++) {
        uint32_t code;
        p += next_code(p, end, &code);
        units += code > 0xffff;
    }
    return units;
}

/* Whether an ASCII character means nothing in Markdown; a point before a letter may be one of an address, and a colon
 * before anything but a blank too. */
static int is_plain(uint32_t code, char next)
{
    const int is_letter = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z');
    if ((code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z')) return 1;
    if (code == '.') return !is_letter;
    return code == ':' ? next == ' ' : strchr(" ,;-=%/'\"()", (int)code) != NULL;
}

void sf_put_markdown(sf_writer *writer, const char *string, size_t most)
{
    const size_t length = first_characters(string, most);
    for (const char *p = string, *end = p + length; p < end;) {
        uint32_t code;
        const size_t size = next_code(p, end, &code);
        if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029)
            sf_put(writer, " ");
        else if (code < 0x80 && !is_plain(code, p[1]))
            sf_putf(writer, "&#%u;", (unsigned)code);
        else if (code == 0xfffd || is_forbidden(code))
            sf_put(writer, REPLACEMENT);
        else
            sf_put_bytes(writer, p, size);
        p += size;
    }
    if (string[length]) sf_put(writer, "…");
}

void sf_put_uri(sf_writer *writer, const char *string)
{
    for (const unsigned char *p = (const unsigned char *)string; *p; p++) {
        const int is_letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9');
        sf_putf(writer, is_letter || strchr("-._~", *p) ? "%c" : "%%%02X", *p);
    }
}

void sf_put_csv(sf_writer *writer, const char *string)
{
    int formula = *string && strchr("=+-@\t\r", *string) != NULL;
    int quoted = strpbrk(string, ",\"\r\n") || *string == ' ' || (*string && string[strlen(string) - 1] == ' ');
    if (quoted) sf_put(writer, "\"");
    if (formula) sf_put(writer, "'");
    for (const char *quote; (quote = strchr(string, '"')); string = quote + 1) {
        sf_put_bytes(writer, string, (size_t)(quote - string));
        sf_put(writer, "\"\"");
    }
    sf_put(writer, string);
    if (quoted) sf_put(writer, "\"");
}

/* ------------------------------------------------------------------ numbers */

void sf_put_fixed(sf_writer *writer, double x, int decimals)
{
    int64_t scale = 1;
    for (int i = 0; i < decimals; i++) scale *= 10;
    int64_t scaled = llround(x * (double)scale);
    uint64_t size = (uint64_t)(scaled < 0 ? -scaled : scaled);
    sf_putf(writer, "%s%llu", scaled < 0 ? "-" : "", (unsigned long long)(size / (uint64_t)scale));
    if (decimals) sf_putf(writer, ".%0*llu", decimals, (unsigned long long)(size % (uint64_t)scale));
}

void sf_put_real(sf_writer *writer, double x)
{
    char text[SF_REAL_SIZE] = "";
    if (sf_format_real(text, x)) writer->failed = 1;
    sf_put(writer, text);
}

void sf_put_count(sf_writer *writer, uint64_t n)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (int i = 0; i < length; i++) sf_putf(writer, "%s%c", i && (length - i) % 3 == 0 ? "," : "", digits[i]);
}

static void put_hundredths(sf_writer *writer, uint64_t n)
{
    sf_putf(writer, "%llu.%02llu", (unsigned long long)(n / 100), (unsigned long long)(n % 100));
}

void sf_put_percent(sf_writer *writer, uint64_t part, uint64_t whole)
{
    if (!whole) {
        sf_put(writer, "–");
        return;
    }
    put_hundredths(writer, part * 10000 / whole);
    sf_put(writer, "%");
}

void sf_put_interval(sf_writer *writer, size_t part, size_t whole)
{
    double low, high;
    safer_interval(part, whole, &low, &high);
    put_hundredths(writer, sf_myriads_down(low));
    sf_put(writer, " to ");
    put_hundredths(writer, sf_myriads_up(high));
}

/* fma rounds once, so its sign is that of x·10000 − k, whatever the product was rounded to. */
int64_t sf_myriads_below(double x)
{
    double k = floor(x * 10000);
    if (fma(x, 10000, -k) < 0) k--;
    return (int64_t)fmax(-1e12, fmin(1e12, k));
}

uint32_t sf_myriads_down(double x)
{
    int64_t k = sf_myriads_below(x);
    return k > 0 ? (uint32_t)k : 0;
}

uint32_t sf_myriads_up(double x)
{
    double k = ceil(x * 10000);
    if (fma(x, 10000, -k) > 0) k++;
    return k > 0 ? (uint32_t)k : 0;
}

/* ----------------------------------------------------------- packed blocks */

static void put_base64(sf_writer *writer, const unsigned char *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t groups = (length + 2) / 3;
    if (sf_buffer_reserve(&writer->out, 4 * groups + 1)) {
        writer->failed = 1;
        return;
    }
    char *out = writer->out.bytes + writer->out.length;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        unsigned bits = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                        (left > 2 ? bytes[i + 2] : 0);
        *out++ = digits[bits >> 18];
        *out++ = digits[bits >> 12 & 63];
        *out++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[bits & 63] : '=';
    }
    *out = '\0';
    writer->out.length += 4 * groups;
}

void sf_put_packed(sf_writer *writer, const char *bytes, size_t length)
{
    sf_buffer packed = {0};
    if (sf_gzip(&packed, bytes, length))
        writer->failed = 1;
    else
        put_base64(writer, (const unsigned char *)packed.bytes, packed.length);
    sf_buffer_free(&packed);
}
