/* Which words may take another's place, and that nothing else in a text changes when they
 * do. The certificate rests on this: the smoothed classifier reads X and X' anew, and the
 * slots, keys and patterns it finds must be those of X but for the exchanged words. */
#define _GNU_SOURCE
#include "support.h"

#include "base/buffer.h"
#include "text/unicode.h"
#include "text/word.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/* -------------------------------------------------------------- admission */

/* The 104 letters with a full case folding of their own (status F in CaseFolding.txt): their
 * capital is written with two or three. */
static const uint32_t expanding[][2] = {
    {0xdf, 0xdf},     {0x130, 0x130},   {0x149, 0x149},   {0x1f0, 0x1f0},   {0x390, 0x390},   {0x3b0, 0x3b0},
    {0x587, 0x587},   {0x1e96, 0x1e9a}, {0x1e9e, 0x1e9e}, {0x1f50, 0x1f50}, {0x1f52, 0x1f52}, {0x1f54, 0x1f54},
    {0x1f56, 0x1f56}, {0x1f80, 0x1faf}, {0x1fb2, 0x1fb4}, {0x1fb6, 0x1fb7}, {0x1fbc, 0x1fbc}, {0x1fc2, 0x1fc4},
    {0x1fc6, 0x1fc7}, {0x1fcc, 0x1fcc}, {0x1fd2, 0x1fd3}, {0x1fd6, 0x1fd7}, {0x1fe2, 0x1fe4}, {0x1fe6, 0x1fe7},
    {0x1ff2, 0x1ff4}, {0x1ff6, 0x1ff7}, {0x1ffc, 0x1ffc}, {0xfb00, 0xfb06}, {0xfb13, 0xfb17},
};

static int expands(uint32_t code)
{
    for (size_t i = 0; i < COUNT(expanding); i++)
        if (code >= expanding[i][0] && code <= expanding[i][1]) return 1;
    return 0;
}

/* What a key is by the definition, worked out on code points without writing or reading
 * anything. Written in a pattern and read again a key must stay
 *   - one word: letters, with single apostrophes between them;
 *   - itself: small letters, each the small form of its capital, and that one letter;
 *   - of as many letters: no letter becomes two;
 *   - in that pattern: Title must differ from lower, UPPER from lower and from Title.
 * Where no pattern changes anything the word has no case, and one pattern. */
static sf_admission admission_by_definition(const uint32_t *codes, size_t count)
{
    int title_changes = 0, upper_changes = 0, upper_is_title = 1;
    for (size_t i = 0; i < count; i++) {
        int apostrophe = codes[i] == '\'';
        utf8proc_int32_t c = (utf8proc_int32_t)codes[i];
        utf8proc_int32_t upper = utf8proc_toupper(c), title = utf8proc_totitle(c);
        utf8proc_category_t category = utf8proc_category(c);
        if (apostrophe) {
            if (i == 0 || i + 1 == count || codes[i - 1] == '\'' || codes[i + 1] == '\'') return SF_REFUSED;
            continue;
        }
        if (category < UTF8PROC_CATEGORY_LU || category > UTF8PROC_CATEGORY_LO) return SF_REFUSED;
        if (utf8proc_tolower(c) != c || utf8proc_tolower(upper) != c) return SF_REFUSED;
        utf8proc_int32_t folded[8];
        int boundary = 0;
        if (utf8proc_decompose_char(c, folded, 8, UTF8PROC_CASEFOLD, &boundary) != 1) return SF_REFUSED; /* ß: ss */
        if (expands(codes[i]) || (i == 0 && utf8proc_tolower(title) != c)) return SF_REFUSED;
        if (i == 0) title_changes = title != c;
        upper_changes |= upper != c;
        upper_is_title &= upper == (i == 0 ? title : c);
    }
    if (count == 0) return SF_REFUSED;
    if (!title_changes && !upper_changes) return SF_CASELESS;
    return title_changes && upper_changes && !upper_is_title ? SF_CASED : SF_REFUSED;
}

static void check_admission(const uint32_t *codes, size_t count)
{
    char key[64];
    size_t length = 0;
    for (size_t i = 0; i < count; i++) length += sf_utf8_encode(codes[i], key + length);
    sf_admission expected = admission_by_definition(codes, count), got = sf_word_admit(key, length);
    if (got != expected)
        fail_msg("\"%.*s\" (U+%04X, ...): %d, not %d", (int)length, key, (unsigned)codes[0], (int)got, (int)expected);
}

/* Every code point alone and in every place of a word. */
static void test_admission_exhaustive(void **state)
{
    (void)state;
    size_t cased = 0, caseless = 0, expanding_count = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xd800 && c < 0xe000) continue;
        if (sf_case_expands(c) != expands(c)) fail_msg("U+%04X", (unsigned)c);
        expanding_count += expands(c) != 0;
        check_admission((const uint32_t[]){c}, 1);
        check_admission((const uint32_t[]){'a', c}, 2);
        check_admission((const uint32_t[]){c, 'a'}, 2);
        check_admission((const uint32_t[]){'a', c, 'a'}, 3);
        cased += admission_by_definition((const uint32_t[]){c, c}, 2) == SF_CASED;
        caseless += admission_by_definition((const uint32_t[]){c, c}, 2) == SF_CASELESS;
    }
    assert_int_equal(expanding_count, 104);
    /* The definition is no "no" to everything: Unicode has about 1,400 pairs of capital
     * and small letters, and well over 100,000 letters without case. */
    assert_in_range(cased, 1200, 1600);
    assert_in_range(caseless, 100000, 200000);
}

/* Pairs and triples of code points that have something odd about them. */
static void test_admission_odd(void **state)
{
    (void)state;
    static const uint32_t odd[] = {'a',    'I',    '\'',   0x2019, '-',    '1',     ' ',     0,       0xdf,
                                   0x1e9e, 0x130,  0x131,  0x149,  0x17f,  0x1c4,   0x1c5,   0x1c6,   0x301,
                                   0x345,  0x3c2,  0x3c3,  0x3a3,  0x5d0,  0x10d0,  0x1c90,  0x1f80,  0x1f88,
                                   0x200d, 0x212a, 0x2c65, 0x4e2d, 0xfb01, 0x10428, 0x10400, 0x1f600, 0xe9,
                                   0xb5,   0xaa,   0x2b0,  0x13a0, 0xab70};
    for (size_t i = 0; i < COUNT(odd); i++)
        for (size_t j = 0; j < COUNT(odd); j++) {
            check_admission((const uint32_t[]){odd[i], odd[j]}, 2);
            for (size_t k = 0; k < COUNT(odd); k++) check_admission((const uint32_t[]){odd[i], odd[j], odd[k]}, 3);
        }
    for (int round = 0; round < 50000; round++) {
        uint32_t codes[8];
        size_t count = next_below(COUNT(codes) + 1);
        for (size_t i = 0; i < count; i++)
            codes[i] = next_below(2) ? 'a' + next_below(26) : odd[next_below(COUNT(odd))];
        check_admission(codes, count);
    }
}

static void test_admission_known(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        sf_admission expected;
    } cases[] = {
        {"good", SF_CASED},
        {"don't", SF_CASED},
        {"o'brien", SF_CASED},
        {"rock'n'roll", SF_CASED},
        {"naïve", SF_CASED},
        {"привет", SF_CASED},
        {"δρόμο", SF_CASED},
        {"𐐼𐐯𐑅", SF_CASED},
        {"i'm", SF_CASED},
        {"ok", SF_CASED},
        {"éa", SF_CASED},
        /* Title and UPPER of ǆ differ, so even alone it can tell them apart. */
        {"ǆ", SF_CASED},
        {"ǆungla", SF_CASED},
        /* without case */
        {"日本語", SF_CASELESS},
        {"中", SF_CASELESS},
        {"שלום", SF_CASELESS},
        {"مرحبا", SF_CASELESS},
        {"ไทย", SF_CASELESS},
        {"ひらがな", SF_CASELESS},
        {"한국어", SF_CASELESS},
        {"ש'ל", SF_CASELESS},
        /* one letter: "A" is both Title and UPPER */
        {"a", SF_REFUSED},
        {"i", SF_REFUSED},
        {"é", SF_REFUSED},
        {"ß", SF_REFUSED},
        {"д", SF_REFUSED},
        /* capitals that are not theirs */
        {"ſo", SF_REFUSED},
        {"οδός", SF_REFUSED},
        {"ılık", SF_REFUSED},
        {"µm", SF_REFUSED},
        {"ϐα", SF_REFUSED},
        /* capitals of two letters */
        {"straße", SF_REFUSED},
        {"ﬁ", SF_REFUSED},
        {"ŉ", SF_REFUSED},
        {"ǰa", SF_REFUSED},
        {"ﬃ", SF_REFUSED},
        {"ᾳb", SF_REFUSED},
        /* no capital to begin with, or none to tell UPPER by */
        {"ŉa", SF_REFUSED},
        {"ﬁsh", SF_REFUSED},
        {"თბილისი", SF_REFUSED},
        {"日a", SF_REFUSED},
        {"a日", SF_REFUSED},
        {"ªb", SF_REFUSED},
        /* not small, or not a key */
        {"Good", SF_REFUSED},
        {"GOOD", SF_REFUSED},
        {"don\u2019t", SF_REFUSED},
        {"İa", SF_REFUSED},
        {"\u212aa", SF_REFUSED},
        /* not one word */
        {"", SF_REFUSED},
        {"new york", SF_REFUSED},
        {"well-known", SF_REFUSED},
        {"new_york", SF_REFUSED},
        {"mp3", SF_REFUSED},
        {"3", SF_REFUSED},
        {"covid-19", SF_REFUSED},
        {"nai\u0308ve", SF_REFUSED},
        {"e\u0301", SF_REFUSED},
        {"'tis", SF_REFUSED},
        {"dogs'", SF_REFUSED},
        {"a''b", SF_REFUSED},
        {" good", SF_REFUSED},
        {"good ", SF_REFUSED},
        {"good\n", SF_REFUSED},
        {"'", SF_REFUSED},
        {"go\u200dod", SF_REFUSED},
        {"👍", SF_REFUSED},
        {"u.s.", SF_REFUSED},
        {"مَر", SF_REFUSED},
        {"\xff", SF_REFUSED},
        {"a\xff", SF_REFUSED},
        {"\xc3", SF_REFUSED},
        {"go\xc3", SF_REFUSED},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (sf_word_admit(cases[i].key, strlen(cases[i].key)) != cases[i].expected)
            fail_msg("\"%s\": %d", cases[i].key, (int)sf_word_admit(cases[i].key, strlen(cases[i].key)));
    assert_int_equal(sf_word_admit("a\0b", 3), SF_REFUSED);
    assert_int_equal(sf_word_admit("ab\0", 3), SF_REFUSED);
    assert_int_equal(sf_word_admit("straße", 7), SF_REFUSED); /* STRASSE, or STRAẞE */

    static const struct {
        const char *key;
        int one;
    } ones[] = {{"good", 1},        {"a", 1},         {"don't", 1},      {"日本", 1}, {"οδός", 1}, {"ﬁsh", 1},
                {"Good", 0},        {"two words", 0}, {"", 0},           {"mp3", 0},  {"'a", 0},   {"a'", 0},
                {"nai\u0308ve", 0}, {"\xff", 0},      {"don\u2019t", 0}, {"ẞ", 0}};
    for (size_t i = 0; i < COUNT(ones); i++)
        assert_int_equal(sf_word_is_one(ones[i].key, strlen(ones[i].key)), ones[i].one);
}

/* A word of the class without case is written in one way only. If a letter had a small form
 * that has no capital (ẞ and ß, in tables that lack the way back), a text could hold a
 * caseless word in the pattern Title, and nothing caseless could stand in for it. */
static void test_caseless_has_one_form(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint32_t lower = sf_lower(c);
        assert_int_equal(sf_lower(lower), lower);
        assert_int_equal(sf_is_letter(lower), sf_is_letter(c));
        if (lower != c && sf_is_letter(c) && sf_upper(lower) == lower && sf_title(lower) == lower)
            fail_msg("U+%04X has the small form U+%04X, which has no capital", (unsigned)c, (unsigned)lower);
    }
}

/* --------------------------------------------------------------- exchange */

typedef struct slot {
    size_t begin, end;
    char key[256];
    size_t key_length;
    sf_case pattern;
} slot;

enum { SLOTS = 128 };

static size_t read_slots(slot *out, const char *text, size_t length)
{
    static sf_word_reader reader;
    sf_word word;
    size_t n = 0;
    sf_word_reader_start(&reader, text, length);
    while (sf_word_reader_next(&reader, &word) > 0) {
        assert_true(n < SLOTS && word.key_length < sizeof out[n].key);
        out[n] = (slot){.begin = word.begin, .end = word.end, .key_length = word.key_length, .pattern = word.pattern};
        memcpy(out[n].key, word.key, word.key_length);
        n++;
    }
    sf_word_reader_free(&reader);
    return n;
}

/* Words to be found in texts. Those that are admitted also take others' places. */
static const char *const vocabulary[] = {
    "good",   "bad",     "fine",        "don't",
    "can't",  "o'brien", "rock'n'roll", "l'été",
    "ok",     "go",      "it",          "i'm",
    "a",      "i",       "naïve",       "élan",
    "über",   "straße",  "ß",           "ǆ",
    "ǆungla", "ﬁsh",     "ﬁ",           "ŉ",
    "ſo",     "ılık",    "istanbul",    "привет",
    "дом",    "я",       "οδός",        "οδοσ",
    "δρόμο",  "თბილისი", "𐐼𐐯𐑅",         "ⱥb",
    "ɐɐ",     "ɫa",      "日本語",      "中",
    "שלום",   "مرحبا",   "ไทย",         "한국어",
    "ש'ל",    "ªb",      "ª",           "ʻokina",
    "µm",     "ᾳb",      "ﬀ",           "donaudampfschifffahrtsgesellschaft",
    "ĳs",     "ﬆ",       "ꮳꮃ",      "ԅԅ",
    "ĸ",      "ñandú",   "k",           "s",
    "ω",      "ωμέγα",   "æ",           "œuvre",
    "ǳǳ",     "ℊa",
};

/* What lies between words: among it everything that could join with a word. */
static const char *const gaps[] = {
    " ",
    " ",
    " ",
    ", ",
    ". ",
    "-",
    "--",
    "'",
    "\u2019",
    "''",
    "'\u2019",
    "\u2019\u2019",
    "' ",
    " '",
    " \u2019",
    "\u2018",
    "1",
    "19",
    "_",
    "/",
    "\n",
    "\t",
    "\u0301",
    "\u0308 ",
    "\u200d",
    "\u200c",
    "\u00ad",
    "\u200b",
    "👍",
    "👩\u200d💻",
    "\ufe0f",
    "\ufeff",
    "Ⓐ",
    "ⅷ",
    "\xff",
    "\xc3",
    "\xe2",
    "\xe2\x80",
    "\xe2\x80\x98",
    "\x80",
    "\x99",
    "\xf0\x9f\x98",
    "\xed\xa0\x80",
    "'\xff",
    "\xff'",
    "'1",
    "1'",
    "'\u0301",
    "\u0345",
    "<br />",
    "&amp;",
    "\\",
    "\"",
    "'-'",
    "",
    "",
};

/* Writes the word in some way: a pattern, or any letter large. */
static void write_somehow(sf_buffer *out, const char *key)
{
    size_t length = strlen(key);
    unsigned how = next_below(5);
    if (how < 3) {
        assert_int_equal(sf_word_render(out, key, length, (sf_case)how), 0);
        return;
    }
    for (const char *p = key, *end = key + length; p < end;) {
        uint32_t code = 0;
        char bytes[4];
        p += sf_utf8_decode(p, end, &code);
        if (code == '\'' && how == 4)
            code = 0x2019;
        else if (next_below(2))
            code = next_below(2) ? sf_upper(code) : sf_title(code);
        assert_int_equal(sf_buffer_add(out, bytes, sf_utf8_encode(code, bytes)), 0);
    }
}

static void make_text(sf_buffer *out)
{
    size_t words = next_below(12);
    sf_buffer_clear(out);
    assert_int_equal(sf_buffer_add(out, "", 0), 0);
    for (size_t i = 0; i <= words; i++) {
        for (unsigned k = next_below(3); k-- > 0 || i == 0;) {
            const char *gap = gaps[next_below(COUNT(gaps))];
            assert_int_equal(sf_buffer_add_string(out, gap), 0);
            if (next_below(16) == 0) assert_int_equal(sf_buffer_add_byte(out, (char)next_below(256)), 0); /* NUL too */
            if (i == 0) break;
        }
        if (i < words) write_somehow(out, vocabulary[next_below(COUNT(vocabulary))]);
    }
}

static sf_admission classes[COUNT(vocabulary)];
static size_t members[3][COUNT(vocabulary)], member_count[3];

static int sort_vocabulary(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(vocabulary); i++) {
        classes[i] = sf_word_admit(vocabulary[i], strlen(vocabulary[i]));
        if (classes[i] > SF_CASELESS) return -1;
        members[classes[i]][member_count[classes[i]]++] = i;
    }
    return member_count[SF_CASED] > 20 && member_count[SF_CASELESS] > 8 && member_count[SF_REFUSED] > 8 ? 0 : -1;
}

/* Puts y[i] (NULL: nothing) in the place of slot i and checks what is read afterwards. */
static void check_exchange(const char *text, size_t length, const slot *before, size_t count, const char *const *y)
{
    static slot after[SLOTS];
    sf_buffer changed = {0};
    size_t at = 0, begins[SLOTS], ends[SLOTS];
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sf_buffer_add(&changed, text + at, before[i].begin - at), 0);
        begins[i] = changed.length;
        if (y[i])
            assert_int_equal(sf_word_render(&changed, y[i], strlen(y[i]), before[i].pattern), 0);
        else
            assert_int_equal(sf_buffer_add(&changed, text + before[i].begin, before[i].end - before[i].begin), 0);
        ends[i] = changed.length;
        at = before[i].end;
    }
    assert_int_equal(sf_buffer_add(&changed, text + at, length - at), 0);

    size_t n = read_slots(after, changed.bytes, changed.length);
    if (n != count) fail_msg("%zu words, then %zu: \"%s\" -> \"%s\"", count, n, text, changed.bytes);
    for (size_t i = 0; i < count; i++) {
        const char *key = y[i] ? y[i] : before[i].key;
        size_t key_length = y[i] ? strlen(y[i]) : before[i].key_length;
        if (after[i].begin != begins[i] || after[i].end != ends[i] || after[i].pattern != before[i].pattern ||
            after[i].key_length != key_length || memcmp(after[i].key, key, key_length) != 0)
            fail_msg("word %zu is \"%.*s\" (%d), not \"%.*s\" (%d): \"%s\" -> \"%s\"", i, (int)after[i].key_length,
                     after[i].key, (int)after[i].pattern, (int)key_length, key, (int)before[i].pattern, text,
                     changed.bytes);
    }
    sf_buffer_free(&changed);
}

/* One word at a time, by every admitted word of its class; then several at once. */
static void test_exchange(void **state)
{
    (void)state;
    static slot before[SLOTS];
    sf_buffer text = {0};
    size_t exchanged = 0, caseless = 0;
    for (int round = 0; round < 20000; round++) {
        const char *y[SLOTS] = {NULL};
        make_text(&text);
        size_t count = read_slots(before, text.bytes, text.length);
        check_exchange(text.bytes, text.length, before, count, y); /* nothing: the text itself */
        for (size_t i = 0; i < count; i++) {
            sf_admission class = sf_word_admit(before[i].key, before[i].key_length);
            if (class == SF_REFUSED) continue;
            size_t m = member_count[class];
            for (size_t tries = 0; tries < 4 || (round % 40 == 0 && tries < m); tries++) {
                y[i] = vocabulary[members[class][round % 40 == 0 ? tries % m : next_below((unsigned)m)]];
                check_exchange(text.bytes, text.length, before, count, y);
                exchanged++;
                caseless += class == SF_CASELESS;
            }
            y[i] = NULL;
        }
        for (int several = 0; several < 4; several++) {
            for (size_t i = 0; i < count; i++) {
                sf_admission class = sf_word_admit(before[i].key, before[i].key_length);
                y[i] = class == SF_REFUSED || next_below(3) == 0
                           ? NULL
                           : vocabulary[members[class][next_below((unsigned)member_count[class])]];
            }
            check_exchange(text.bytes, text.length, before, count, y);
        }
    }
    assert_true(exchanged > 100000 && caseless > 10000); /* the texts had what they were to have */
    sf_buffer_free(&text);
}

/* The same draw gives the same bytes from X and from X': a text of which every word is
 * written as (pattern, key) is the same whether a word was there or was put there. */
static void test_draws_agree(void **state)
{
    (void)state;
    static slot before[SLOTS], after[SLOTS];
    sf_buffer text = {0}, other = {0}, first = {0}, second = {0};
    for (int round = 0; round < 20000; round++) {
        make_text(&text);
        size_t count = read_slots(before, text.bytes, text.length), at = 0;
        const char *draw[SLOTS] = {NULL};
        sf_buffer_clear(&other);
        for (size_t i = 0; i < count; i++) { /* X' = X with synonyms in any of the slots */
            sf_admission class = sf_word_admit(before[i].key, before[i].key_length);
            size_t m = member_count[class];
            const char *synonym = class != SF_REFUSED && next_below(2)
                                      ? vocabulary[members[class][next_below((unsigned)m)]]
                                      : NULL;
            if (class != SF_REFUSED) draw[i] = vocabulary[members[class][next_below((unsigned)m)]];
            assert_int_equal(sf_buffer_add(&other, text.bytes + at, before[i].begin - at), 0);
            if (synonym)
                assert_int_equal(sf_word_render(&other, synonym, strlen(synonym), before[i].pattern), 0);
            else
                assert_int_equal(sf_buffer_add(&other, text.bytes + before[i].begin, before[i].end - before[i].begin),
                                 0);
            at = before[i].end;
        }
        assert_int_equal(sf_buffer_add(&other, text.bytes + at, text.length - at), 0);
        assert_int_equal(read_slots(after, other.bytes, other.length), count);
        for (int side = 0; side < 2; side++) {
            const sf_buffer *from = side ? &other : &text;
            const slot *slots = side ? after : before;
            sf_buffer *out = side ? &second : &first;
            sf_buffer_clear(out);
            at = 0;
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(sf_buffer_add(out, from->bytes + at, slots[i].begin - at), 0);
                const char *key = draw[i] ? draw[i] : slots[i].key;
                assert_int_equal(
                    sf_word_render(out, key, draw[i] ? strlen(draw[i]) : slots[i].key_length, slots[i].pattern), 0);
                at = slots[i].end;
            }
            assert_int_equal(sf_buffer_add(out, from->bytes + at, from->length - at), 0);
        }
        assert_int_equal(first.length, second.length);
        assert_memory_equal(first.bytes, second.bytes, first.length);
    }
    sf_buffer_free(&text);
    sf_buffer_free(&other);
    sf_buffer_free(&first);
    sf_buffer_free(&second);
}

/* Every letter there is, as it may stand in a text: its key, if admitted, can be exchanged
 * in the pattern in which it was read. */
static void test_exchange_every_letter(void **state)
{
    (void)state;
    static slot before[SLOTS];
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (!sf_is_letter(c)) continue;
        for (int form = 0; form < 4; form++) {
            char text[32];
            size_t length = 0;
            if (form == 1 || form == 3) text[length++] = 'b';
            length += sf_utf8_encode(c, text + length);
            if (form == 2) length += sf_utf8_encode(c, text + length);
            if (form == 3) text[length++] = 'Q';
            text[length] = '\0';
            size_t count = read_slots(before, text, length);
            assert_int_equal(count, 1);
            sf_admission class = sf_word_admit(before[0].key, before[0].key_length);
            if (class == SF_REFUSED) continue;
            char key[256];
            snprintf(key, sizeof key, "%.*s", (int)before[0].key_length, before[0].key);
            const char *itself = key, *other = class == SF_CASED ? "good" : "日本語";
            check_exchange(text, length, before, 1, &itself);
            check_exchange(text, length, before, 1, &other);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admission_exhaustive),
        cmocka_unit_test(test_admission_odd),
        cmocka_unit_test(test_admission_known),
        cmocka_unit_test(test_caseless_has_one_form),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_draws_agree),
        cmocka_unit_test(test_exchange_every_letter),
    };
    return cmocka_run_group_tests_name("text: exchange", tests, sort_vocabulary, NULL);
}
