/* Writing HTML, SVG, XML, JSON, CSV and Markdown from bytes that nobody vouches for.
 *
 * A writer is a buffer that remembers whether memory ran out, so that a page can be
 * written straight down and asked once at the end. Every byte that comes from data, a
 * record or a path goes through one of the functions below that say what they escape;
 * sf_put and sf_putf are for what this program says itself. */
#ifndef SF_REPORT_WRITER_H
#define SF_REPORT_WRITER_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sf_writer {
    sf_buffer out;
    int failed; /* memory ran out; what is written is not whole */
} sf_writer;    /* zero-initialise */

void sf_writer_free(sf_writer *writer);

/* As it stands. */
void sf_put(sf_writer *writer, const char *string);
void sf_put_bytes(sf_writer *writer, const void *bytes, size_t length);
void sf_putf(sf_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text of an HTML or SVG element, or inside a quoted attribute: & < > " ' are named, and
 * what neither may hold (NUL and other controls, bytes that are not UTF-8, noncharacters)
 * becomes U+FFFD. */
void sf_put_html(sf_writer *writer, const char *bytes, size_t length);

/* The same, at most `most` characters of it, with "…" for the rest. */
void sf_put_html_short(sf_writer *writer, const char *string, size_t most);

/* A JSON string with its quotes that may stand inside a <script> element: besides what JSON
 * asks for, < > & and U+2028, U+2029 are written as \u; a byte that is not UTF-8 becomes
 * U+FFFD. The string has sf_utf16_length of the same bytes units in JavaScript. */
void sf_put_json(sf_writer *writer, const char *bytes, size_t length);
void sf_put_json_short(sf_writer *writer, const char *string, size_t most); /* as sf_put_html_short */

/* How many units of UTF-16 the bytes are, each that is not UTF-8 counting as one. */
size_t sf_utf16_length(const char *bytes, size_t length);

/* Text of Markdown, on one line: what Markdown or HTML could take for its own, and what would become a link, is written
 * by its number, controls and line ends as a blank; at most `most` characters of it, with "…" for the rest. Inside
 * <code> it cannot call a user by name either. */
void sf_put_markdown(sf_writer *writer, const char *string, size_t most);

/* A file's name as a relative reference (RFC 3986): all bytes but letters, digits, - . _ ~ as %XX. */
void sf_put_uri(sf_writer *writer, const char *string);

/* A field of CSV: quoted when it must be, and with ' in front when a spreadsheet would
 * take it for a formula (it begins with = + - @, tab or carriage return). */
void sf_put_csv(sf_writer *writer, const char *string);

/* x with so many decimals (0 to 9), rounded to nearest; the same under every locale. */
void sf_put_fixed(sf_writer *writer, double x, int decimals);

/* x so that reading gives it back. */
void sf_put_real(sf_writer *writer, double x);

/* "44,593" */
void sf_put_count(sf_writer *writer, uint64_t n);

/* A share in per cent with two decimals, cut; "–" of nothing. */
void sf_put_percent(sf_writer *writer, uint64_t part, uint64_t whole);

/* Its 95% interval in per cent, the ends rounded outward: "82.79 to 86.75". whole >= 1. */
void sf_put_interval(sf_writer *writer, size_t part, size_t whole);

/* x in [0, 1] in ten-thousandths: the largest that is not above it, the smallest that is
 * not below it. */
uint32_t sf_myriads_down(double x);
uint32_t sf_myriads_up(double x);

/* The largest that is not above any finite x, kept within 10^12. */
int64_t sf_myriads_below(double x);

/* The bytes packed by gzip, in base64. */
void sf_put_packed(sf_writer *writer, const char *bytes, size_t length);

#endif
