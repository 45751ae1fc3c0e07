/* JSON read (RFC 8259): one function for each sort of value, which takes it from the text and leaves the reader
 * behind it. base/json.h says why jansson's own reader is not used; tests/fuzz/fuzz_json.c compares the two. */
#include "base/json.h"
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEEP = 2048 }; /* values in values */

typedef struct reader {
    const char *begin, *at, *end;
    size_t flags;
    int depth;
    safer_status status; /* the first failure */
    json_error_t *problem;
    sf_buffer scratch; /* of a string, with its escapes taken out */
} reader;

/* Always NULL. Lines and columns count from 1, columns in characters. */
__attribute__((format(printf, 2, 3))) static json_t *refuse(reader *r, const char *format, ...)
{
    if (r->status != SAFER_OK) return NULL;
    r->status = SAFER_INPUT;
    if (!r->problem) return NULL;
    *r->problem = (json_error_t){.line = 1, .position = (int)(r->at - r->begin)};
    for (const char *c = r->begin; c < r->at; c++) {
        r->problem->column += ((unsigned char)*c & 0xc0) != 0x80;
        if (*c == '\n') {
            r->problem->line++;
            r->problem->column = 0;
        }
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->problem->text, sizeof r->problem->text - 1, format, arguments);
    va_end(arguments);
    return NULL;
}

static json_t *no_memory(reader *r)
{
    if (r->status == SAFER_OK) r->status = SAFER_MEMORY;
    return NULL;
}

/* What was found instead of something else. */
static json_t *refuse_near(reader *r, const char *expected)
{
    if (r->at == r->end) return refuse(r, "%s expected near end of file", expected);
    return refuse(r, "%s expected near '%.*s'", expected, sf_clip(r->at, (size_t)(r->end - r->at), 20), r->at);
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && memchr(" \t\n\r", *r->at, 4)) r->at++;
}

/* Takes the character, if it is the next one. */
static int take(reader *r, char character)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != character) return 0;
    r->at++;
    return 1;
}

/* -------------------------------------------------------------------- strings */

static int add(reader *r, const void *bytes, size_t length)
{
    if (sf_buffer_add(&r->scratch, bytes, length) == 0) return 0;
    (void)no_memory(r);
    return -1;
}

static int add_code_point(reader *r, unsigned c)
{
    const char one[] = {(char)c}, two[] = {(char)(0xc0 | c >> 6), (char)(0x80 | (c & 63))},
               three[] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))},
               four[] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 63)), (char)(0x80 | (c >> 6 & 63)),
                         (char)(0x80 | (c & 63))};
    if (c < 0x80) return add(r, one, 1);
    return c < 0x800 ? add(r, two, 2) : c < 0x10000 ? add(r, three, 3) : add(r, four, 4);
}

/* The four digits of \uXXXX, which the reader stands behind the u of; -1 where there are none. */
static int hexadecimal(const reader *r)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdefABCDEF",
                   *digit = r->end - r->at > i && r->at[i] ? strchr(digits, r->at[i]) : NULL;
        if (!digit) return -1;
        value = value * 16 + (int)(digit - digits < 16 ? digit - digits : digit - digits - 6);
    }
    return value;
}

/* A \uXXXX, perhaps with its other half; the reader stands behind the first u. */
static int take_unicode(reader *r)
{
    int c = hexadecimal(r), low = -1;
    if (c < 0) return refuse(r, "invalid escape"), -1;
    r->at += 4;
    if (c >= 0xd800 && c < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u') {
        r->at += 2;
        low = hexadecimal(r);
        if (low >= 0xdc00 && low < 0xe000) {
            r->at += 4;
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    if (c >= 0xd800 && c < 0xe000) return refuse(r, "invalid Unicode '\\u%04X'", (unsigned)c), -1;
    if (c == 0 && !(r->flags & JSON_ALLOW_NUL)) return refuse(r, "\\u0000 is not allowed here"), -1;
    return add_code_point(r, (unsigned)c);
}

static int take_escape(reader *r)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *name = r->at < r->end && *r->at ? strchr(names, *r->at) : NULL;
    if (name) {
        r->at++;
        return add(r, meant + (name - names), 1);
    }
    if (r->at == r->end || *r->at != 'u') return refuse(r, "invalid escape"), -1;
    r->at++;
    return take_unicode(r);
}

/* How many bytes the character at hand has; 0 where it is not UTF-8. */
static size_t character(const reader *r)
{
    const unsigned char *c = (const unsigned char *)r->at;
    const size_t size = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
    if ((size_t)(r->end - r->at) < size) return 0;
    for (size_t i = 1; i < size; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    const int wrong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) || /* too long; half a pair */
                      (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f);   /* too long; beyond 10ffff */
    return wrong ? 0 : size;
}

/* The string whose quote was taken, into the scratch. */
static int take_string(reader *r)
{
    sf_buffer_clear(&r->scratch);
    if (add(r, "", 0)) return -1; /* it may be empty */
    while (r->at < r->end && *r->at != '"') {
        const char *begin = r->at;
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= 0x20) {
            const size_t size = character(r);
            if (!size) return refuse(r, "unable to decode byte 0x%x", (unsigned char)*r->at), -1;
            r->at += size;
        }
        if (add(r, begin, (size_t)(r->at - begin))) return -1;
        if (r->at == r->end || *r->at == '"') continue;
        if (*r->at != '\\') return refuse(r, "control character 0x%x", (unsigned char)*r->at), -1;
        r->at++;
        if (take_escape(r)) return -1;
    }
    if (r->at == r->end) return refuse(r, "the text ends inside a string"), -1;
    r->at++;
    return 0;
}

static json_t *read_string(reader *r)
{
    json_t *value = take_string(r) ? NULL : json_stringn_nocheck(r->scratch.bytes, r->scratch.length);
    return value ? value : no_memory(r);
}

/* -------------------------------------------------------------------- numbers */

static void skip_digits(reader *r)
{
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
}

/* Whether a number's form is right; *is_real when it has a fraction or an exponent. */
static int skip_number(reader *r, int *is_real)
{
    const char *digits;
    if (*r->at == '-') r->at++;
    digits = r->at;
    skip_digits(r);
    int right = r->at > digits && (*digits != '0' || r->at == digits + 1);
    *is_real = 0;
    if (right && r->at < r->end && *r->at == '.') {
        digits = ++r->at;
        skip_digits(r);
        right = r->at > digits;
        *is_real = 1;
    }
    if (right && r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-')) r->at++;
        digits = r->at;
        skip_digits(r);
        right = r->at > digits;
        *is_real = 1;
    }
    return right;
}

static json_t *read_number(reader *r)
{
    const char *begin = r->at;
    int is_real;
    if (!skip_number(r, &is_real)) return refuse_near(r, "a digit");
    json_t *value;
    if (is_real || (r->flags & JSON_DECODE_INT_AS_REAL)) {
        double number = 0;
        if (!sf_parse_double(begin, r->at, &number) || !isfinite(number)) return refuse(r, "real number overflow");
        value = json_real(number);
    } else {
        char text[32];
        const size_t length = (size_t)(r->at - begin);
        errno = ERANGE;
        long long number = 0;
        if (length < sizeof text) {
            memcpy(text, begin, length);
            text[length] = '\0';
            errno = 0;
            number = strtoll(text, NULL, 10);
        }
        if (errno == ERANGE) return refuse(r, "too big %sinteger", *begin == '-' ? "negative " : "");
        value = json_integer(number);
    }
    return value ? value : no_memory(r);
}

/* --------------------------------------------------------------------- values */

static json_t *read_value(reader *r);

static json_t *read_array(reader *r)
{
    json_t *array = json_array();
    if (!array) return no_memory(r);
    if (take(r, ']')) return array;
    do {
        json_t *value = read_value(r);
        if (!value) goto failed;
        if (json_array_append_new(array, value)) {
            (void)no_memory(r);
            goto failed;
        }
    } while (take(r, ','));
    if (take(r, ']')) return array;
    (void)refuse_near(r, "']'");
failed:
    json_decref(array);
    return NULL;
}

/* A member's name, as a copy: the scratch is used again for its value. */
static char *read_name(reader *r, json_t *object)
{
    if (!take(r, '"')) return refuse_near(r, "a string"), NULL;
    if (take_string(r)) return NULL;
    if (memchr(r->scratch.bytes, 0, r->scratch.length)) return refuse(r, "NUL byte in object key not supported"), NULL;
    if ((r->flags & JSON_REJECT_DUPLICATES) && json_object_get(object, r->scratch.bytes))
        return refuse(r, "duplicate object key near '%.*s'", sf_clip(r->scratch.bytes, r->scratch.length, 40),
                      r->scratch.bytes),
               NULL;
    char *name = r->scratch.bytes;
    r->scratch = (sf_buffer){0};
    return name;
}

static json_t *read_object(reader *r)
{
    json_t *object = json_object();
    char *name = NULL;
    if (!object) return no_memory(r);
    if (take(r, '}')) return object;
    do {
        if (!(name = read_name(r, object))) goto failed;
        if (!take(r, ':')) {
            (void)refuse_near(r, "':'");
            goto failed;
        }
        json_t *value = read_value(r);
        if (!value) goto failed;
        if (json_object_set_new_nocheck(object, name, value)) {
            (void)no_memory(r);
            goto failed;
        }
        free(name);
        name = NULL;
    } while (take(r, ','));
    if (take(r, '}')) return object;
    (void)refuse_near(r, "'}'");
failed:
    free(name);
    json_decref(object);
    return NULL;
}

static json_t *read_nested(reader *r)
{
    if (r->depth == MOST_DEEP) return refuse(r, "maximum parsing depth reached");
    r->depth++;
    json_t *value = *r->at++ == '{' ? read_object(r) : read_array(r);
    r->depth--;
    return value;
}

static json_t *read_value(reader *r)
{
    static const struct {
        const char *word;
        json_t *(*make)(void);
    } words[] = {{"true", json_true}, {"false", json_false}, {"null", json_null}};
    skip_blanks(r);
    if (r->at == r->end) return refuse_near(r, "a value");
    if (*r->at == '{' || *r->at == '[') return read_nested(r);
    if (*r->at == '-' || (*r->at >= '0' && *r->at <= '9')) return read_number(r);
    if (take(r, '"')) return read_string(r);
    for (size_t i = 0; i < 3; i++) {
        const size_t length = strlen(words[i].word);
        const char *behind = r->at + length;
        if ((size_t)(r->end - r->at) < length || memcmp(r->at, words[i].word, length) != 0) continue;
        if (behind < r->end && ((*behind | 32) >= 'a' && (*behind | 32) <= 'z')) break; /* "nullify" */
        r->at = behind;
        return words[i].make();
    }
    return refuse(r, "invalid token near '%.*s'", sf_clip(r->at, (size_t)(r->end - r->at), 20), r->at);
}

safer_status sf_json_parse(json_t **out, const char *bytes, size_t length, size_t flags, json_error_t *problem)
{
    reader r = {.begin = bytes, .at = bytes, .end = bytes + length, .flags = flags, .problem = problem};
    const int saved = errno;
    *out = NULL;
    skip_blanks(&r);
    if (!(flags & JSON_DECODE_ANY) && (r.at == r.end || (*r.at != '{' && *r.at != '[')))
        (void)refuse_near(&r, "'[' or '{'");
    else
        *out = read_value(&r);
    skip_blanks(&r);
    if (*out && r.at < r.end) {
        json_decref(*out);
        *out = refuse_near(&r, "end of file");
    }
    sf_buffer_free(&r.scratch);
    errno = saved;
    return r.status;
}
