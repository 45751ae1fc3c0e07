/* UTF-8, letters and words. Which words may take another's place is in
 * test_text_exchange.c. */
#define _GNU_SOURCE
#include "support.h"

#include "base/buffer.h"
#include "text/name.h"
#include "text/unicode.h"
#include "text/word.h"

#include <string.h>
#include <utf8proc.h>

/* ------------------------------------------------------------------ UTF-8 */

/* Table 3-7 of the Unicode standard: well-formed byte sequences. */
static const struct {
    unsigned char from[4], to[4];
    size_t length;
} well_formed[] = {
    {{0x00}, {0x7f}, 1},
    {{0xc2, 0x80}, {0xdf, 0xbf}, 2},
    {{0xe0, 0xa0, 0x80}, {0xe0, 0xbf, 0xbf}, 3},
    {{0xe1, 0x80, 0x80}, {0xec, 0xbf, 0xbf}, 3},
    {{0xed, 0x80, 0x80}, {0xed, 0x9f, 0xbf}, 3},
    {{0xee, 0x80, 0x80}, {0xef, 0xbf, 0xbf}, 3},
    {{0xf0, 0x90, 0x80, 0x80}, {0xf0, 0xbf, 0xbf, 0xbf}, 4},
    {{0xf1, 0x80, 0x80, 0x80}, {0xf3, 0xbf, 0xbf, 0xbf}, 4},
    {{0xf4, 0x80, 0x80, 0x80}, {0xf4, 0x8f, 0xbf, 0xbf}, 4},
};

static size_t length_by_table(const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < COUNT(well_formed); i++) {
        size_t n = well_formed[i].length, k = 0;
        while (k < n && k < length && bytes[k] >= well_formed[i].from[k] && bytes[k] <= well_formed[i].to[k]) k++;
        if (k == n) return n;
    }
    return 0;
}

static uint32_t code_by_length(const unsigned char *b, size_t length)
{
    switch (length) {
    case 1: return b[0];
    case 2: return (b[0] & 0x1fu) * 64 + (b[1] & 0x3fu);
    case 3: return (b[0] & 0x0fu) * 4096 + (b[1] & 0x3fu) * 64 + (b[2] & 0x3fu);
    default: return (b[0] & 0x07u) * 262144 + (b[1] & 0x3fu) * 4096 + (b[2] & 0x3fu) * 64 + (b[3] & 0x3fu);
    }
}

static void check_decode(const unsigned char *bytes, size_t length)
{
    uint32_t code = 12345;
    size_t expected = length_by_table(bytes, length);
    size_t got = sf_utf8_decode((const char *)bytes, (const char *)bytes + length, &code);
    if (got != expected || (got && code != code_by_length(bytes, got)))
        fail_msg("%02x %02x %02x %02x, %zu bytes: length %zu, code %x", bytes[0], bytes[1], bytes[2], bytes[3], length,
                 got, (unsigned)code);
}

static void test_decode(void **state)
{
    (void)state;
    unsigned char b[4] = {0};
    for (unsigned i = 0; i < 256; i++) /* every string of three bytes, and every one of them cut */
        for (unsigned j = 0; j < 256; j++)
            for (unsigned k = 0; k < 256; k++) {
                b[0] = (unsigned char)i, b[1] = (unsigned char)j, b[2] = (unsigned char)k;
                check_decode(b, 3);
                if (k == 0x80) check_decode(b, 2);
                if (j == 0x80) check_decode(b, 1);
            }
    static const unsigned char edges[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
                                          0xa0, 0xbf, 0xc0, 0xc2, 0xe2, 0xf0, 0xff};
    for (unsigned i = 0xe0; i < 256; i++)
        for (unsigned j = 0; j < 256; j++)
            for (size_t k = 0; k < COUNT(edges); k++)
                for (size_t l = 0; l < COUNT(edges); l++) {
                    b[0] = (unsigned char)i, b[1] = (unsigned char)j, b[2] = edges[k], b[3] = edges[l];
                    for (size_t length = 1; length <= 4; length++) check_decode(b, length);
                }
    /* Nothing beyond the end is looked at (the sanitizer watches). */
    for (unsigned i = 0; i < 256; i++)
        for (size_t length = 1; length <= 4; length++) {
            unsigned char *exact = malloc(length);
            assert_non_null(exact);
            memset(exact, 0xa1, length);
            exact[0] = (unsigned char)i;
            uint32_t code;
            assert_int_equal(sf_utf8_decode((char *)exact, (char *)exact + length, &code),
                             length_by_table(exact, length));
            free(exact);
        }
}

static void test_encode(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x110000; code++) {
        if (code >= 0xd800 && code < 0xe000) continue;
        char bytes[5] = {0, 0, 0, 0, 'Z'};
        uint32_t back = 0;
        size_t length = sf_utf8_encode(code, bytes);
        if (length != (code < 0x80      ? 1u
                       : code < 0x800   ? 2u
                       : code < 0x10000 ? 3u
                                        : 4u) ||
            bytes[4] != 'Z' || length_by_table((unsigned char *)bytes, length) != length ||
            sf_utf8_decode(bytes, bytes + length, &back) != length || back != code)
            fail_msg("U+%04X", (unsigned)code);
    }
}

static void test_valid(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length, valid;
        const char *repaired;
    } cases[] = {
        {"", 0, 0, ""},
        {"abc", 3, 3, "abc"},
        {"a\xc3\xa9z", 4, 4, "aéz"},
        {"\xff", 1, 0, "\uFFFD"},
        {"ab\xff"
         "cd",
         5, 2, "ab\uFFFDcd"},
        {"ab\xc3", 3, 2, "ab\uFFFD"},
        {"\xe2\x82", 2, 0, "\uFFFD\uFFFD"}, /* one for every byte */
        {"\xe2\x82"
         "a",
         3, 0, "\uFFFD\uFFFDa"},
        {"\xe2\x82\xac\xe2\x82", 5, 3, "€\uFFFD\uFFFD"},
        {"\xc0\x80", 2, 0, "\uFFFD\uFFFD"},               /* overlong */
        {"x\xed\xa0\x80y", 5, 1, "x\uFFFD\uFFFD\uFFFDy"}, /* a surrogate */
        {"\xf4\x90\x80\x80", 4, 0, "\uFFFD\uFFFD\uFFFD\uFFFD"},
        {"\xf4\x8f\xbf\xbf", 4, 4, "\xf4\x8f\xbf\xbf"},
        {"\x80\x80", 2, 0, "\uFFFD\uFFFD"},
        {"\xf0\x9f\x98\xc3\xa9", 5, 0, "\uFFFD\uFFFD\uFFFDé"}, /* the good one after it is kept */
        {"\uFFFD", 3, 3, "\uFFFD"},
        {"\xef\xbb\xbf"
         "a",
         4, 4,
         "\xef\xbb\xbf"
         "a"},
    };
    sf_buffer out = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(sf_utf8_valid(cases[i].bytes, cases[i].length), cases[i].valid);
        sf_buffer_clear(&out);
        assert_int_equal(sf_buffer_add_string(&out, "<"), 0); /* it appends */
        assert_int_equal(sf_utf8_repair(&out, cases[i].bytes, cases[i].length), 0);
        assert_string_equal(out.bytes + 1, cases[i].repaired);
        assert_int_equal(out.bytes[0], '<');
    }
    sf_buffer_clear(&out);
    assert_int_equal(sf_utf8_repair(&out, "a\0b\xff", 4), 0);
    assert_int_equal(out.length, 6);
    assert_memory_equal(out.bytes, "a\0b\xef\xbf\xbd", 6);

    /* Random bytes: the bytes that are valid by the table stay, one mark for each other. */
    static const unsigned char likely[] = {0x41, 0x80, 0x8f, 0xa0, 0xbf, 0xc3, 0xe2, 0xed, 0xf0, 0xf4};
    for (int round = 0; round < 20000; round++) {
        unsigned char bytes[24];
        size_t length = next_below(sizeof bytes + 1), at = 0, first = length;
        for (size_t i = 0; i < length; i++)
            bytes[i] = next_below(3) ? likely[next_below(COUNT(likely))] : (unsigned char)next_below(256);
        sf_buffer_clear(&out);
        assert_int_equal(sf_utf8_repair(&out, (char *)bytes, length), 0);
        for (size_t i = 0; i < length;) {
            size_t step = length_by_table(bytes + i, length - i);
            if (step)
                assert_memory_equal(out.bytes + at, bytes + i, step);
            else
                assert_memory_equal(out.bytes + at, "\xef\xbf\xbd", 3);
            if (!step && first == length) first = i;
            at += step ? step : 3;
            i += step ? step : 1;
        }
        assert_int_equal(length ? out.length : 0, at);
        assert_int_equal(sf_utf8_valid((char *)bytes, length), first);
        assert_int_equal(sf_utf8_valid(out.bytes, out.length), out.length);
    }
    sf_buffer_free(&out);
}

static void test_letters(void **state)
{
    (void)state;
    static const uint32_t letters[] = {'a',    'z',     'A',     'Z',     0xaa,   0xb5,   0xba,   0xc0,
                                       0xe9,   0xdf,    0x130,   0x149,   0x1c5,  0x294,  0x2b0,  0x3c2,
                                       0x416,  0x5d0,   0x639,   0x904,   0xe01,  0x10d0, 0x1c90, 0x13a0,
                                       0xab70, 0x2071,  0x212a,  0x3042,  0x30a2, 0x4e2d, 0xac00, 0xfb01,
                                       0xff21, 0x10400, 0x10428, 0x1d400, 0x20000};
    static const uint32_t others[] = {0,       '@',     '[',     '`',      '{',    '0',    '9',    '_',    '\'',
                                      '-',     ' ',     0x7f,    0x80,     0xa0,   0xad,   0xd7,   0xf7,   0x2c2,
                                      0x301,   0x345,   0x5b0,   0x64e,    0x660,  0x93f,  0x200c, 0x200d, 0x2019,
                                      0x2160,  0x2460,  0x24b6,  0x3000,   0xd800, 0xe000, 0xfe0f, 0xfeff, 0xfffd,
                                      0x1f600, 0xe0100, 0xf0000, 0x10ffff, 0x378};
    for (size_t i = 0; i < COUNT(letters); i++)
        if (!sf_is_letter(letters[i])) fail_msg("U+%04X is a letter", (unsigned)letters[i]);
    for (size_t i = 0; i < COUNT(others); i++)
        if (sf_is_letter(others[i])) fail_msg("U+%04X is no letter", (unsigned)others[i]);

    static const struct {
        uint32_t code, lower, upper, title;
    } cases[] = {
        {'a', 'a', 'A', 'A'},
        {'Z', 'z', 'Z', 'Z'},
        {'@', '@', '@', '@'},
        {'[', '[', '[', '['},
        {'`', '`', '`', '`'},
        {'{', '{', '{', '{'},
        {0xe9, 0xe9, 0xc9, 0xc9},
        {0x130, 'i', 0x130, 0x130},
        {0x131, 0x131, 'I', 'I'},
        {0x17f, 0x17f, 'S', 'S'},
        {0x1c6, 0x1c6, 0x1c4, 0x1c5},
        {0x1c5, 0x1c6, 0x1c4, 0x1c5},
        {0x1c4, 0x1c6, 0x1c4, 0x1c5},
        {0x3c2, 0x3c2, 0x3a3, 0x3a3},
        {0x3a3, 0x3c3, 0x3a3, 0x3a3},
        {0x10d0, 0x10d0, 0x1c90, 0x10d0},
        {0x1c90, 0x10d0, 0x1c90, 0x1c90},
        {0x212a, 'k', 0x212a, 0x212a},
        {0x10428, 0x10428, 0x10400, 0x10400},
        {0x4e2d, 0x4e2d, 0x4e2d, 0x4e2d},
        {0x149, 0x149, 0x149, 0x149},
        {0xff, 0xff, 0x178, 0x178},
        {0xb5, 0xb5, 0x39c, 0x39c},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (sf_lower(cases[i].code) != cases[i].lower || sf_upper(cases[i].code) != cases[i].upper ||
            sf_title(cases[i].code) != cases[i].title)
            fail_msg("U+%04X: lower %X, upper %X, title %X", (unsigned)cases[i].code, (unsigned)sf_lower(cases[i].code),
                     (unsigned)sf_upper(cases[i].code), (unsigned)sf_title(cases[i].code));
    /* What the shortcuts for ASCII say is what the tables say. */
    for (uint32_t c = 0; c < 0x80; c++) {
        utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
        assert_int_equal(sf_is_letter(c), category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL);
        assert_int_equal(sf_lower(c), utf8proc_tolower((utf8proc_int32_t)c));
        assert_int_equal(sf_upper(c), utf8proc_toupper((utf8proc_int32_t)c));
        assert_int_equal(sf_title(c), utf8proc_totitle((utf8proc_int32_t)c));
    }
}

/* ------------------------------------------------------------------ words */

/* All words of a text as "key:pattern:begin-end key:pattern:begin-end". */
static void describe(sf_buffer *out, sf_word_reader *reader, const char *text, size_t length)
{
    sf_word word;
    int found;
    sf_buffer_clear(out);
    assert_int_equal(sf_buffer_add(out, "", 0), 0);
    sf_word_reader_start(reader, text, length);
    while ((found = sf_word_reader_next(reader, &word)) > 0) {
        assert_int_equal(strlen(word.key), word.key_length); /* terminated, and no NUL inside */
        assert_int_equal(sf_buffer_format(out, "%s%s:%c:%zu-%zu", out->length ? " " : "", word.key, "ltU"[word.pattern],
                                          word.begin, word.end),
                         0);
    }
    assert_int_equal(found, 0);
    assert_int_equal(sf_word_reader_next(reader, &word), 0); /* and it stays at the end */
}

#define T(text, words) \
    { \
        text, sizeof(text) - 1, words \
    }
static const struct {
    const char *text;
    size_t length;
    const char *words;
} word_cases[] = {
    T("", ""),
    T(" \n\t.,!?", ""),
    T("hello", "hello:l:0-5"),
    T("Hello, WORLD! x", "hello:t:0-5 world:U:7-12 x:l:14-15"),
    T("I am A b", "i:t:0-1 am:l:2-4 a:t:5-6 b:l:7-8"), /* a single capital is Title */
    T("iPhone McCoy eBay LaTeX HTMLs", "iphone:l:0-6 mccoy:t:7-12 ebay:l:13-17 latex:t:18-23 htmls:t:24-29"),
    /* apostrophes */
    T("don't", "don't:l:0-5"),
    T("don\u2019t", "don't:l:0-7"),
    T("DON'T Don\u2019t I'M I'm", "don't:U:0-5 don't:t:6-13 i'm:U:14-17 i'm:t:18-21"),
    T("rock'n'roll", "rock'n'roll:l:0-11"),
    T("rock 'n' roll", "rock:l:0-4 n:l:6-7 roll:l:9-13"),
    T("rock-'n'-roll", "rock:l:0-4 n:l:6-7 roll:l:9-13"),
    T("O'Brien O'BRIEN o'brien", "o'brien:t:0-7 o'brien:U:8-15 o'brien:l:16-23"),
    T("dogs' 'tis 'a'", "dogs:l:0-4 tis:l:7-10 a:l:12-13"),
    T("a''b a'\u2019b \u2019\u2019a", "a:l:0-1 b:l:3-4 a:l:5-6 b:l:10-11 a:l:18-19"),
    T("a'1 1'a a' b", "a:l:0-1 a:l:6-7 a:l:8-9 b:l:11-12"),
    T("'", ""),
    T("a'", "a:l:0-1"),
    T("'a", "a:l:1-2"),
    T("a'b'c\u2019d", "a'b'c'd:l:0-9"),
    T("a\u2018b a\u02bcb a`b", "a:l:0-1 b:l:4-5 a\u02bcb:l:6-10 a:l:11-12 b:l:13-14"), /* U+02BC is a letter */
    /* accents, composed and not */
    T("naïve NAÏVE Naïve", "naïve:l:0-6 naïve:U:7-13 naïve:t:14-20"),
    T("nai\u0308ve", "nai:l:0-3 ve:l:5-7"),
    T("E\u0301A", "e:t:0-1 a:t:3-4"),
    /* other scripts */
    T("ß Straße STRASSE", "ß:l:0-2 straße:t:3-10 strasse:U:11-18"),
    T("Привет ПРИВЕТ привет", "привет:t:0-12 привет:U:13-25 привет:l:26-38"),
    T("ΟΔΟΣ οδός Οδος", "οδοσ:U:0-8 οδός:l:9-17 οδος:t:18-26"), /* no final sigma out of a capital */
    T("İstanbul ılık ILIK", "istanbul:t:0-9 ılık:l:10-16 ilik:U:17-21"),
    T("თბილისი ᲗᲑᲘᲚᲘᲡᲘ", "თბილისი:l:0-21 თბილისი:U:22-43"),
    T("𐐔𐐯𐑅 𐐔𐐇𐐝", "𐐼𐐯𐑅:t:0-12 𐐼𐐯𐑅:U:13-25"),
    T("ǅungla Ǆ ǅ ǆ", "ǆungla:t:0-7 ǆ:U:8-10 ǆ:t:11-13 ǆ:l:14-16"),
    T("日本語。中文", "日本語:l:0-9 中文:l:12-18"),
    T("مرحبا שלום", "مرحبا:l:0-10 שלום:l:11-19"),
    T("مَر", "م:l:0-2 ر:l:4-6"), /* a vowel sign is a mark */
    T("ＡＢｃ", "ａｂｃ:t:0-9"),
    T("ﬁsh ŉ ſo \u212a \u212aelvin", "ﬁsh:l:0-5 ŉ:l:6-8 ſo:l:9-12 k:t:13-16 kelvin:t:17-25"),
    T("ʻokina ªb", "ʻokina:l:0-7 ªb:l:8-11"),
    /* what is not a letter stays outside */
    T("mp3 3D covid-19 x1y2_z", "mp:l:0-2 d:t:5-6 covid:l:7-12 x:l:16-17 y:l:18-19 z:l:21-22"),
    T("well-known", "well:l:0-4 known:l:5-10"),
    T("👩\u200d💻 codes a👍b", "codes:l:12-17 a:l:18-19 b:l:23-24"),
    T("a\u200db a\u00adb a\u200bb", "a:l:0-1 b:l:4-5 a:l:6-7 b:l:9-10 a:l:11-12 b:l:15-16"),
    T("\ufeffThe Ⅷ Ⓐ", "the:t:3-6"),
    T("<br />it", "br:l:1-3 it:l:6-8"),
    /* bytes */
    T("a\0b\0", "a:l:0-1 b:l:2-3"),
    T("a\xff"
      "b",
      "a:l:0-1 b:l:2-3"),
    T("\xc3"
      "a caf\xc3",
      "a:l:1-2 caf:l:3-6"),
    T("\xe2\x80"
      "a b\xe2\x80"
      "c d\xe2\x80\x99",
      "a:l:2-3 b:l:4-5 c:l:7-8 d:l:9-10"),
    T("\xc0\x80"
      "a\xed\xa0\x80"
      "b\xf4\x90\x80\x80"
      "c\x80",
      "a:l:2-3 b:l:6-7 c:l:11-12"),
    T("a\xe2\x80\x99\xff"
      "b'\xc3\xa9'\xc3",
      "a:l:0-1 b'é:l:5-9"),
};

static void test_words(void **state)
{
    (void)state;
    sf_buffer out = {0};
    sf_word_reader reader = {0}; /* one for all */
    for (size_t i = 0; i < COUNT(word_cases); i++) {
        char *exact = malloc(word_cases[i].length + 1);
        assert_non_null(exact);
        char *text = exact + 1; /* ends where the memory ends */
        memcpy(text, word_cases[i].text, word_cases[i].length);
        describe(&out, &reader, text, word_cases[i].length);
        if (strcmp(out.bytes, word_cases[i].words) != 0)
            fail_msg("\"%s\":\n  %s\n  expected\n  %s", word_cases[i].text, out.bytes, word_cases[i].words);
        free(exact);
    }
    sf_word_reader_free(&reader);
    sf_buffer_free(&out);
}

static void test_long_word(void **state)
{
    (void)state;
    enum { N = 10 << 20 };
    char *text = malloc(N);
    assert_non_null(text);
    sf_word_reader reader = {0};
    sf_word word;
    for (int round = 0; round < 2; round++) {
        memset(text, 'A', N);
        if (round == 1)
            for (size_t i = 1; i + 1 < N; i += 2) text[i] = '\'';
        size_t length = round ? N - 1 : N; /* begins and ends with a letter */
        sf_word_reader_start(&reader, text, length);
        assert_int_equal(sf_word_reader_next(&reader, &word), 1);
        assert_true(word.begin == 0 && word.end == length && word.key_length == length && word.pattern == SF_UPPER);
        assert_true(word.key[0] == 'a' && word.key[length - 1] == 'a' && word.key[1] == (round ? '\'' : 'a'));
        assert_int_equal(sf_word_reader_next(&reader, &word), 0);
    }
    memset(text, '\'', N); /* and none at all */
    sf_word_reader_start(&reader, text, N);
    assert_int_equal(sf_word_reader_next(&reader, &word), 0);
    sf_word_reader_free(&reader);
    free(text);
}

/* ------------------------------------------------- against another reading */

/* A text as code points, by the table above; bytes that are not valid stand for themselves. */
typedef struct glyph {
    size_t at, length;
    uint32_t code;
    char kind; /* L letter, A apostrophe, x anything else */
} glyph;

static size_t read_glyphs(glyph *out, const char *text, size_t length)
{
    size_t n = 0;
    for (size_t at = 0; at < length; n++) {
        const unsigned char *b = (const unsigned char *)text + at;
        size_t step = length_by_table(b, length - at);
        uint32_t code = step ? code_by_length(b, step) : UINT32_MAX;
        utf8proc_category_t category = step ? utf8proc_category((utf8proc_int32_t)code) : UTF8PROC_CATEGORY_CN;
        int letter = category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
                     category == UTF8PROC_CATEGORY_LT || category == UTF8PROC_CATEGORY_LM ||
                     category == UTF8PROC_CATEGORY_LO;
        out[n] = (glyph){at, step ? step : 1, code, letter ? 'L' : code == '\'' || code == 0x2019 ? 'A' : 'x'};
        at += out[n].length;
    }
    return n;
}

/* The words of a text, written a second time from their definition. */
static void check_against_definition(sf_word_reader *reader, const char *text, size_t length)
{
    static glyph glyphs[4096];
    assert_true(length < COUNT(glyphs));
    size_t n = read_glyphs(glyphs, text, length), end_of_last = 0, joined = 0;
    char rebuilt[4096];
    sf_word word;
    sf_buffer key = {0};
    sf_word_reader_start(reader, text, length);
    for (size_t i = 0; i < n;) {
        if (glyphs[i].kind != 'L') {
            i++;
            continue;
        }
        size_t from = i, capitals = 0, small = 0, capital_rest = 0;
        sf_buffer_clear(&key);
        for (;; i++) {
            if (i < n && glyphs[i].kind == 'L') {
                utf8proc_int32_t code = (utf8proc_int32_t)glyphs[i].code, lower = utf8proc_tolower(code);
                char bytes[4];
                assert_int_equal(
                    sf_buffer_add(&key, bytes, (size_t)utf8proc_encode_char(lower, (utf8proc_uint8_t *)bytes)), 0);
                small += code == lower;
                capitals += code == utf8proc_toupper(lower);
                capital_rest += i > from && code != lower;
            } else if (i + 1 < n && glyphs[i].kind == 'A' && glyphs[i - 1].kind == 'L' && glyphs[i + 1].kind == 'L') {
                assert_int_equal(sf_buffer_add_byte(&key, '\''), 0);
                small++, capitals++; /* takes no side */
            } else {
                break;
            }
        }
        utf8proc_int32_t first = (utf8proc_int32_t)glyphs[from].code, first_lower = utf8proc_tolower(first);
        sf_case pattern = small == i - from                                             ? SF_LOWER
                          : first == utf8proc_totitle(first_lower) && capital_rest == 0 ? SF_TITLE
                          : capitals == i - from                                        ? SF_UPPER
                          : first == first_lower                                        ? SF_LOWER
                                                                                        : SF_TITLE;
        assert_int_equal(sf_word_reader_next(reader, &word), 1);
        assert_int_equal(word.begin, glyphs[from].at);
        assert_int_equal(word.end, glyphs[i - 1].at + glyphs[i - 1].length);
        assert_int_equal(word.key_length, key.length);
        assert_memory_equal(word.key, key.bytes, key.length);
        assert_int_equal(word.pattern, pattern);
        /* Gaps and words laid end to end are the text. */
        assert_true(word.begin >= end_of_last);
        memcpy(rebuilt + joined, text + end_of_last, word.begin - end_of_last);
        joined += word.begin - end_of_last;
        memcpy(rebuilt + joined, text + word.begin, word.end - word.begin);
        joined += word.end - word.begin;
        end_of_last = word.end;
        /* Folding what is written gives the key. */
        sf_buffer_clear(&key);
        assert_int_equal(sf_word_fold(&key, text + word.begin, word.end - word.begin), 0);
        assert_int_equal(key.length, word.key_length);
        assert_memory_equal(key.bytes, word.key, key.length);
    }
    assert_int_equal(sf_word_reader_next(reader, &word), 0);
    memcpy(rebuilt + joined, text + end_of_last, length - end_of_last);
    assert_int_equal(joined + length - end_of_last, length);
    assert_memory_equal(rebuilt, text, length);
    sf_buffer_free(&key);
}

static void test_random_texts(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "a",      "B",      "I",    "z",      "é",        "É",      "ß",
        "ẞ",      "ǆ",      "ǅ",    "Ǆ",      "ς",        "Σ",      "İ",
        "ı",      "ſ",      "ﬁ",    "ŉ",      "中",       "א",      "ა",
        "Ა",    "𐐨",      "𐐀",    "\u212a", "'",        "'",      "\u2019",
        "\u2018", "-",      " ",    ".",      "1",        "\u0301", "\u200d",
        "\u00ad", "👍",      "\xff", "\xc3",   "\xe2\x80", "\x80",   "\xed\xa0\x80",
        "\n",     "\ufeff", "ʻ",    "ª",      "Ⓐ",        "ⅷ",      "_",
    };
    sf_word_reader reader = {0};
    for (int round = 0; round < 100000; round++) {
        char text[256];
        size_t length = 0, count = next_below(30);
        for (size_t i = 0; i < count; i++) {
            if (next_below(10) == 0) { /* any code point at all */
                uint32_t code = next_below(0x110000);
                if (code < 0xd800 || code >= 0xe000) length += sf_utf8_encode(code, text + length);
            } else if (next_below(12) == 0) {
                text[length++] = (char)next_below(256);
            } else {
                const char *piece = pieces[next_below(COUNT(pieces))];
                size_t n = strlen(piece);
                memcpy(text + length, piece, n);
                length += n;
            }
        }
        check_against_definition(&reader, text, length);
    }
    /* Every code point, between letters and apostrophes. */
    for (uint32_t code = 0; code < 0x110000; code++) {
        char text[16] = "a'";
        if (code >= 0xd800 && code < 0xe000) continue;
        size_t length = 2 + sf_utf8_encode(code, text + 2);
        memcpy(text + length, "'B", 2);
        check_against_definition(&reader, text, length + 2);
    }
    sf_word_reader_free(&reader);
}

/* ------------------------------------------------------- writing a word */

static void test_render(void **state)
{
    (void)state;
    static const struct {
        const char *key, *lower, *title, *upper;
    } cases[] = {
        {"", "", "", ""},
        {"hello", "hello", "Hello", "HELLO"},
        {"a", "a", "A", "A"},
        {"don't", "don't", "Don't", "DON'T"},
        {"élan", "élan", "Élan", "ÉLAN"},
        {"ǆungla", "ǆungla", "ǅungla", "ǄUNGLA"},
        {"привет", "привет", "Привет", "ПРИВЕТ"},
        {"𐐼𐐯", "𐐼𐐯", "𐐔𐐯", "𐐔𐐇"},
        {"日本", "日本", "日本", "日本"},
        {"თბ", "თბ", "თბ", "ᲗᲑ"},
        {"ⱥb", "ⱥb", "Ⱥb", "ȺB"}, /* of another length in bytes */
        {"\xff"
         "ab",
         "\xff"
         "ab",
         "\xff"
         "ab",
         "\xff"
         "ab"}, /* not a key: its bytes, untouched */
        {"ab\xff", "ab\xff", "Ab\xff", "AB\xff"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *expected[] = {cases[i].lower, cases[i].title, cases[i].upper};
        for (int pattern = SF_LOWER; pattern <= SF_UPPER; pattern++) {
            sf_buffer out = {0};
            assert_int_equal(sf_buffer_add_string(&out, "<"), 0); /* it appends */
            assert_int_equal(sf_word_render(&out, cases[i].key, strlen(cases[i].key), (sf_case)pattern), 0);
            assert_string_equal(out.bytes + 1, expected[pattern]);
            sf_buffer_free(&out);
        }
    }
}

static void test_fold(void **state)
{
    (void)state;
    static const struct {
        const char *text, *folded;
    } cases[] = {{"", ""},
                 {"Hello World", "hello world"},
                 {"DON\u2019T", "don't"},
                 {"ΟΔΟΣ", "οδοσ"},
                 {"Éa-1ẞ", "éa-1ß"},
                 {"\u212a", "k"},
                 {"İ", "i"},
                 {"日本", "日本"}};
    sf_buffer out = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        sf_buffer_clear(&out);
        assert_int_equal(sf_buffer_add(&out, "", 0), 0);
        assert_int_equal(sf_word_fold(&out, cases[i].text, strlen(cases[i].text)), 0);
        assert_string_equal(out.bytes, cases[i].folded);
    }
    assert_int_equal(sf_word_fold(&out, "a\xff", 2), -2);
    assert_int_equal(sf_word_fold(&out, "\xe2\x80", 2), -2);
    sf_buffer_free(&out);
}

/* ------------------------------------------------------------ allocations */

static safer_status use_everything(void *context, safer_error *error)
{
    static const char text[] = "A Fairly-Long text, with a word of Donaudampfschifffahrtsgesellschaftskapitän\xff";
    sf_word_reader reader = {0};
    sf_word word;
    sf_buffer rendered = {0}, folded = {0}, repaired = {0};
    int found;
    (void)context;
    (void)error;
    sf_word_reader_start(&reader, text, sizeof text - 1);
    while ((found = sf_word_reader_next(&reader, &word)) > 0) {
        int one = sf_word_is_one(word.key, word.key_length);
        sf_admission admission = sf_word_admit(word.key, word.key_length);
        if (one < 0 || admission == SF_ADMISSION_NO_MEMORY ||
            sf_word_render(&rendered, word.key, word.key_length, SF_UPPER) ||
            sf_word_fold(&folded, text + word.begin, word.end - word.begin) == -1) {
            found = -1;
            break;
        }
        if (one != 1 || admission != (word.key_length == 1 ? SF_REFUSED : SF_CASED)) found = 5;
    }
    if (found == 0 && sf_utf8_repair(&repaired, text, sizeof text - 1)) found = -1;
    sf_word_reader_free(&reader);
    sf_buffer_free(&rendered);
    sf_buffer_free(&folded);
    sf_buffer_free(&repaired);
    return found == 0 ? SAFER_OK : found == -1 ? SAFER_MEMORY : SAFER_INVALID;
}

static void test_allocations(void **state)
{
    (void)state;
    check_every_allocation(use_everything, NULL);
}

static void test_path_names(void **state)
{
    (void)state;
    static const struct {
        const char *path, *name;
    } cases[] = {
        {"words.lex", "words.lex"},
        {"/some/folder/words.lex", "words.lex"},
        {"bert/", "bert"},
        {"models/bert///", "bert"},
        {"/", "/"},
        {"", ""},
        {"x/\xff\xc3\xa9.tsv", "\xef\xbf\xbd\xc3\xa9.tsv"},
        {"a\nb\x7f", "a\xef\xbf\xbd"
                     "b\xef\xbf\xbd"},
        {"no-archive:member", "no-archive:member"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *name = sf_path_name(cases[i].path);
        assert_string_equal(name, cases[i].name);
        free(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),       cmocka_unit_test(test_encode),     cmocka_unit_test(test_valid),
        cmocka_unit_test(test_letters),      cmocka_unit_test(test_words),      cmocka_unit_test(test_long_word),
        cmocka_unit_test(test_random_texts), cmocka_unit_test(test_render),     cmocka_unit_test(test_fold),
        cmocka_unit_test(test_allocations),  cmocka_unit_test(test_path_names),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
