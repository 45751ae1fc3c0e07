/* Words in a text. */
#include "text/word.h"

#include "text/unicode.h"

#include <string.h>

void sf_word_reader_start(sf_word_reader *reader, const char *text, size_t length)
{
    reader->text = text;
    reader->length = length;
    reader->at = 0;
}

void sf_word_reader_free(sf_word_reader *reader) { sf_buffer_free(&reader->key); }

/* The letter at p, or 0 bytes. */
static size_t letter_at(const char *p, const char *end, uint32_t *code)
{
    if (p >= end) return 0;
    unsigned char byte = (unsigned char)*p;
    if (byte < 0x80) {
        *code = byte;
        return (byte | 0x20u) - 'a' < 26;
    }
    size_t step = sf_utf8_decode(p, end, code);
    return step && sf_is_letter(*code) ? step : 0;
}

/* The length of an apostrophe at p, or 0. */
static size_t apostrophe_at(const char *p, const char *end)
{
    if (p < end && *p == '\'') return 1;
    if (end - p >= 3 && memcmp(p, "\xe2\x80\x99", 3) == 0) return 3;
    return 0;
}

/* The first letter from p on, with its code and length; or the end. */
static inline const char *find_letter(const char *p, const char *end, uint32_t *code, size_t *step)
{
    while (p < end && (*step = letter_at(p, end, code)) == 0) {
        if ((unsigned char)*p < 0x80) {
            p++;
        } else {
            size_t skip = sf_utf8_decode(p, end, code);
            p += skip ? skip : 1;
        }
    }
    return p;
}

int sf_word_reader_next(sf_word_reader *reader, sf_word *word)
{
    const char *end = reader->text + reader->length;
    uint32_t code = 0;
    size_t step = 0;
    const char *p = find_letter(reader->text + reader->at, end, &code, &step);
    if (p >= end) {
        reader->at = reader->length;
        return 0;
    }

    /* Lower-cases into the key letter by letter; this loop reads every text there is, so
     * room is made ahead and ASCII takes no calls. */
    sf_buffer *key = &reader->key;
    sf_buffer_clear(key);
    word->begin = (size_t)(p - reader->text);
    int all_lower = 1, all_upper = 1, title = 1, first = 1, first_lower = 0;
    while (step) {
        if (key->capacity - key->length < 8 && sf_buffer_reserve(key, 64)) return -1;
        char *out = key->bytes + key->length;
        if (code < 0x80) {
            int is_lower = (code & 0x20) != 0;
            *out = (char)(code | 0x20);
            key->length++;
            all_lower &= is_lower;
            all_upper &= !is_lower;
            title &= is_lower != first;
            if (first) first_lower = is_lower;
        } else {
            uint32_t lower = sf_lower(code);
            key->length += sf_utf8_encode(lower, out);
            all_lower &= code == lower;
            all_upper &= code == sf_upper(lower);
            title &= code == (first ? sf_title(lower) : lower);
            if (first) first_lower = code == lower;
        }
        first = 0;
        p += step;
        step = letter_at(p, end, &code);
        if (step == 0) {
            size_t mark = apostrophe_at(p, end);
            if (mark && (step = letter_at(p + mark, end, &code)) != 0) {
                key->bytes[key->length++] = '\'';
                p += mark;
            }
        }
    }
    key->bytes[key->length] = '\0';
    word->end = reader->at = (size_t)(p - reader->text);
    word->key = key->bytes;
    word->key_length = key->length;
    word->pattern = all_lower ? SF_LOWER : title ? SF_TITLE : all_upper ? SF_UPPER : first_lower ? SF_LOWER : SF_TITLE;
    return 1;
}

int sf_word_render(sf_buffer *out, const char *key, size_t length, sf_case pattern)
{
    if (pattern == SF_LOWER) return sf_buffer_add(out, key, length);
    const char *p = key, *end = key + length;
    for (int first = 1; p < end; first = 0) {
        uint32_t code;
        char bytes[4];
        size_t step = sf_utf8_decode(p, end, &code);
        if (step == 0) return sf_buffer_add(out, p, (size_t)(end - p)); /* not a key; keep its bytes */
        if (pattern == SF_UPPER)
            code = sf_upper(code);
        else if (first)
            code = sf_title(code);
        else
            return sf_buffer_add(out, p, (size_t)(end - p));
        if (sf_buffer_add(out, bytes, sf_utf8_encode(code, bytes))) return -1;
        p += step;
    }
    return 0;
}

int sf_word_fold(sf_buffer *out, const char *bytes, size_t length)
{
    const char *p = bytes, *end = bytes + length;
    while (p < end) {
        uint32_t code;
        char lower[4];
        size_t step = sf_utf8_decode(p, end, &code);
        if (step == 0) return -2;
        size_t wrote = code == 0x2019 ? sf_utf8_encode('\'', lower) : sf_utf8_encode(sf_lower(code), lower);
        if (sf_buffer_add(out, lower, wrote)) return -1;
        p += step;
    }
    return 0;
}

/* 1: reading the rendered key gives it back, in the expected pattern. 0: it does not. -1: no memory. */
static int comes_back(const sf_buffer *surface, const char *key, size_t length, sf_case expected)
{
    sf_word_reader reader = {0};
    sf_word word;
    sf_word_reader_start(&reader, surface->bytes, surface->length);
    int found = sf_word_reader_next(&reader, &word);
    if (found > 0)
        found = word.begin == 0 && word.end == surface->length && word.key_length == length &&
                memcmp(word.key, key, length) == 0 && word.pattern == expected;
    sf_word_reader_free(&reader);
    return found;
}

int sf_word_is_one(const char *key, size_t length)
{
    const sf_buffer surface = {(char *)(uintptr_t)key, length, length};
    return comes_back(&surface, key, length, SF_LOWER);
}

sf_admission sf_word_admit(const char *key, size_t length)
{
    if (length == 0) return SF_REFUSED;
    sf_buffer surface[3] = {{0}, {0}, {0}};
    sf_admission result = SF_CASELESS;
    for (const char *p = key, *end = key + length; p < end;) {
        uint32_t code;
        size_t step = sf_utf8_decode(p, end, &code);
        if (step == 0 || sf_case_expands(code)) return SF_REFUSED;
        p += step;
    }
    for (int pattern = SF_LOWER; pattern <= SF_UPPER; pattern++) {
        if (sf_word_render(&surface[pattern], key, length, (sf_case)pattern)) {
            result = SF_ADMISSION_NO_MEMORY;
            goto done;
        }
        if (surface[pattern].length != length || memcmp(surface[pattern].bytes, key, length) != 0) result = SF_CASED;
    }
    for (int pattern = SF_LOWER; pattern <= SF_UPPER; pattern++) {
        int same = comes_back(&surface[pattern], key, length, result == SF_CASED ? (sf_case)pattern : SF_LOWER);
        if (same <= 0) {
            result = same < 0 ? SF_ADMISSION_NO_MEMORY : SF_REFUSED;
            break;
        }
    }
done:
    for (int pattern = SF_LOWER; pattern <= SF_UPPER; pattern++) sf_buffer_free(&surface[pattern]);
    return result;
}
