/* Any bytes as a text: its words lie in order and in bounds, laid end to end with what is
 * between them they are the text, reading again gives the same, what is written of a key
 * reads back as the admission says, and an admitted word can take another's place without
 * anything else changing. */
#include "fuzz.h"

#include "text/unicode.h"
#include "text/word.h"

static void add(sf_buffer *out, const char *bytes, size_t length) { require(sf_buffer_add(out, bytes, length) == 0); }

/* "begin-end:pattern:key;" of every word, so that two readings can be compared. */
static size_t describe(sf_buffer *out, const char *text, size_t length)
{
    sf_word_reader reader = {0};
    sf_word word;
    size_t count = 0;
    sf_buffer_clear(out);
    sf_word_reader_start(&reader, text, length);
    for (; sf_word_reader_next(&reader, &word) > 0; count++) {
        require(sf_buffer_format(out, "%zu-%zu:%d:", word.begin, word.end, (int)word.pattern) == 0);
        add(out, word.key, word.key_length);
        add(out, ";", 1);
    }
    sf_word_reader_free(&reader);
    add(out, "", 0);
    return count;
}

/* The key by itself: admitted exactly when every pattern comes back and no letter has a
 * capital of two. */
static sf_admission check_key(const char *key, size_t length)
{
    sf_admission admission = sf_word_admit(key, length);
    require(admission != SF_ADMISSION_NO_MEMORY && sf_word_admit(key, length) == admission);
    require(sf_word_is_one(key, length) == 1);
    int changes = 0, back = 0, expands = 0;
    for (size_t i = 0; i < length;) {
        uint32_t code;
        size_t step = sf_utf8_decode(key + i, key + length, &code);
        require(step);
        expands |= sf_case_expands(code);
        i += step;
    }
    for (int pattern = SF_LOWER; pattern <= SF_UPPER; pattern++) {
        sf_buffer surface = {0};
        sf_word_reader reader = {0};
        sf_word word;
        require(sf_word_render(&surface, key, length, (sf_case)pattern) == 0);
        changes |= surface.length != length || memcmp(surface.bytes, key, length) != 0;
        sf_word_reader_start(&reader, surface.bytes, surface.length);
        if (sf_word_reader_next(&reader, &word) == 1 && word.begin == 0 && word.end == surface.length &&
            word.key_length == length && memcmp(word.key, key, length) == 0)
            back |= 1 << (3 * pattern + (int)word.pattern);
        sf_word_reader_free(&reader);
        sf_buffer_free(&surface);
    }
    require((admission == SF_CASED) == (!expands && changes && back == (1 << 0 | 1 << 4 | 1 << 8)));
    require((admission == SF_CASELESS) == (!expands && !changes && back == (1 << 0 | 1 << 3 | 1 << 6)));
    return admission;
}

/* The text with every admitted word exchanged for a fixed one of its class. */
static void check_exchange(const char *text, size_t length)
{
    static const char *const substitute[] = {NULL, "don't", "日本語"};
    sf_buffer changed = {0}, expected = {0}, got = {0};
    sf_word_reader reader = {0};
    sf_word word;
    size_t at = 0;
    sf_word_reader_start(&reader, text, length);
    while (sf_word_reader_next(&reader, &word) > 0) {
        sf_admission class = check_key(word.key, word.key_length);
        require(class != SF_CASELESS || word.pattern == SF_LOWER);
        add(&changed, text + at, word.begin - at);
        size_t begin = changed.length;
        const char *key = substitute[class] ? substitute[class] : word.key;
        size_t key_length = substitute[class] ? strlen(key) : word.key_length;
        if (substitute[class])
            require(sf_word_render(&changed, key, key_length, word.pattern) == 0);
        else
            add(&changed, text + word.begin, word.end - word.begin);
        require(sf_buffer_format(&expected, "%zu-%zu:%d:", begin, changed.length, (int)word.pattern) == 0);
        add(&expected, key, key_length);
        add(&expected, ";", 1);
        at = word.end;
    }
    add(&changed, text + at, length - at);
    add(&expected, "", 0);
    describe(&got, changed.bytes, changed.length);
    require(got.length == expected.length && memcmp(got.bytes, expected.bytes, got.length) == 0);
    sf_word_reader_free(&reader);
    sf_buffer_free(&changed);
    sf_buffer_free(&expected);
    sf_buffer_free(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);

    sf_word_reader reader = {0};
    sf_word word;
    sf_buffer rebuilt = {0}, folded = {0}, first = {0}, second = {0}, repaired = {0};
    size_t at = 0, count = 0;
    uint32_t code;
    sf_word_reader_start(&reader, text, size);
    for (; sf_word_reader_next(&reader, &word) > 0; count++) {
        require(word.begin >= at && word.begin < word.end && word.end <= size);
        require(count == 0 || word.begin > at); /* two words touch nowhere */
        for (size_t i = at; i < word.begin;) {  /* and no letter lies between them */
            size_t step = sf_utf8_decode(text + i, text + size, &code);
            require(!step || !sf_is_letter(code));
            i += step ? step : 1;
        }
        add(&rebuilt, text + at, word.begin - at);
        add(&rebuilt, text + word.begin, word.end - word.begin);
        at = word.end;
        require(sf_utf8_valid(word.key, word.key_length) == word.key_length && word.key[word.key_length] == '\0');
        sf_buffer_clear(&folded);
        require(sf_word_fold(&folded, text + word.begin, word.end - word.begin) == 0);
        require(folded.length == word.key_length && memcmp(folded.bytes, word.key, folded.length) == 0);
    }
    add(&rebuilt, text + at, size - at);
    require(rebuilt.length == size && (size == 0 || memcmp(rebuilt.bytes, text, size) == 0));
    sf_word_reader_free(&reader);

    require(describe(&first, text, size) == count && describe(&second, text, size) == count);
    require(first.length == second.length && memcmp(first.bytes, second.bytes, first.length) == 0);
    if (size <= 4096) check_exchange(text, size);

    /* The whole of it as a key: admitted only if it reads as one word. */
    sf_admission admission = sf_word_admit(text, size);
    if (admission != SF_REFUSED) require(sf_word_is_one(text, size) == 1 && count == 1);

    require(sf_utf8_repair(&repaired, text, size) == 0);
    require(repaired.length == 0 || sf_utf8_valid(repaired.bytes, repaired.length) == repaired.length);
    require((repaired.length == size) == (sf_utf8_valid(text, size) == size));

    sf_buffer_free(&rebuilt);
    sf_buffer_free(&folded);
    sf_buffer_free(&first);
    sf_buffer_free(&second);
    sf_buffer_free(&repaired);
    free(text);
    return 0;
}
