/* BERT's tokenizer: by hand on a small vocabulary, against the Rust library's pieces kept in
 * tests/golden, against a plain implementation that works on whole texts step by step, and on
 * every character there is. */
#define _GNU_SOURCE
#include "test_wordpiece.h"

/* ---------------------------------------------------------------- by hand */

static void test_uncased(void **unused)
{
    static const example list[] = {
        {"", ""},
        {" \t\r\n ", ""},
        {"hello world", "hello world"},
        {"  Hello,\tWORLD!\n", "hello , world !"},
        {"unaffable", "un ##aff ##able"},
        {"UNWANTED runnings", "un ##w ##a ##n ##t ##ed runn ##ing ##s"},
        {"goodgood", "good ##good"},
        {"I", "i"},
        {"x2 42", "x ##2 4 ##2"},
        {"a-b's", "a - b ' s"},
        {"##ing", "# # i ##n ##g"}, /* # is punctuation: a continuing piece cannot be written */
        {"it\u2019s\u2014so", "i ##t \u2019 s \u2014 s ##o"},
        /* what the vocabulary does not have */
        {"\u00a9", "[UNK]"},
        {"good\u00a9", "[UNK]"},
        {"good \u00a9!", "good [UNK] !"},
        {"good\u00a7\u00a9a \u2026", "good [UNK] [UNK] [UNK]"}, /* a paragraph sign is punctuation */
        /* accents, composed and not */
        {"naïve nai\u0308ve NAÏVE", "naive naive naive"},
        {"\u0301cafe\u0301\u0323 é", "cafe e"},
        {"\u0301", ""},
        {"a \u0301 b", "a b"},
        {"\u212b\u212a", "a ##k"},      /* the signs of Ångström and Kelvin */
        {"x\u2260y \u2260", "x = y ="}, /* = and a stroke: punctuation once the stroke is gone */
        {"a\u1fefb", "a ` b"},
        /* letters whose small forms are odd */
        {"İstanbul ISTANBUL ıstanbul", "istanbul istanbul [UNK]"},
        {"ß ẞ aß", "ß ß a ##ß"},
        {"ΟΔΟΣ οδος", "ο ##δ ##ο ##σ ο ##δ ##ο ##ς"}, /* no final sigma in lower-casing */
        {"ﬁ ﬁn", "ﬁ ﬁ ##n"},                          /* ligatures stay */
        {"Ⓐ ½", "ⓐ ½"},
        /* Korean is taken to pieces, Chinese set apart */
        {"한", "ᄒ ##ᅡ ##ᆫ"},
        {"한국", "[UNK]"}, /* ##ᄀ is not there */
        {"한 국", "ᄒ ##ᅡ ##ᆫ ᄀ ##ᅮ ##ᆨ"},
        {"日本語good", "日 本 語 good"},
        {"a日b", "a 日 b"},
        {"日\u0301本", "日 本"},
        {"\uf900", "豈"},
        {"日。本", "日 。 本"},
        {"ひ", "[UNK]"},
        /* from the right */
        {"שלום", "ש ##ל ##ו ##ם"},
        {"שָׁלוֹם", "ש ##ל ##ו ##ם"},
        {"مم", "[UNK]"},
        /* removed: control and format characters, and U+FFFD */
        {"go\u200bod", "good"},
        {"go\u00ad\ufeffod\u200d", "good"},
        {"go\x01od \x7f", "good"},
        {"go\vod go\fod go\xc2\x85od", "good good good"},
        {"go\ufffdod \ue000", "good"},
        {"\u200b", ""},
        {"go\u00a0od\u2028x\u3000y", "g ##o o ##d x y"},
        {"👍 x👍 👍👍", "👍 x ##👍 👍 ##👍"},
        {"👍\u200d👍", "👍 ##👍"},
        /* not UTF-8: each such byte is U+FFFD, which is removed */
        {"go\xffod \xc3 \xed\xa0\x80 x\xe2\x80y", "good x ##y"},
    };
    sf_wordpiece *w = make(&uncased);
    (void)unused;
    check_examples(w, list, COUNT(list));
    assert_string_equal(encode(w, "go\0od\0", 6, SIZE_MAX), "good");
    assert_int_equal(sf_wordpiece_size(w), name_count);
    sf_wordpiece_free(w);
}

static void test_cased(void **unused)
{
    static const example list[] = {
        {"The Hello the hello", "The Hello the hello"},
        {"THE", "T ##H ##E"},
        {"é e\u0301", "é e ##\u0301"},
        {"naïve naive", "naïve naive"},
        {"\u0301", "\u0301"},
        {"日\u0301", "日 \u0301"},
        {"İ", "İ"},
        {"\u2260", "\u2260"},
        {"한 한국", "한 한 ##국"},
        {"\uf900", "[UNK]"},
        {"go\u200bod\xc2\x85", "good"},
    };
    static const example lowered[] = {
        {"İ aİ", "i\u0307 a ##i\u0307"}, {"É é", "é é"}, {"THE \u2260", "the \u2260"}, {"NAÏVE", "naïve"}};
    static const example stripped[] = {{"Hellò HELLO", "Hello H ##E ##L ##L ##O"}, {"İ", "I"}};
    static const example untidy[] = {
        {"go\u200bod", "[UNK]"},
        {"a\x01 \x01", "a ##\x01 \x01"},
        {"a\vb a\fb a\xc2\x85"
         "b",
         "a b a b a b"},
        {"a\ufffd \ufffd", "a ##\ufffd \ufffd"},
        {"a\xff\xff", "a ##\ufffd ##\ufffd"},
    };
    static const example glued[] = {{"日", "日"}, {"日本", "[UNK]"}, {"日 本", "日 本"}, {"a日", "[UNK]"}};
    sf_wordpiece_options options = cased;
    (void)unused;
    sf_wordpiece *w = make(&options);
    check_examples(w, list, COUNT(list));
    sf_wordpiece_free(w);
    options.lower = 1;
    w = make(&options);
    check_examples(w, lowered, COUNT(lowered));
    sf_wordpiece_free(w);
    options = (sf_wordpiece_options){.accents = 1, .clean = 1, .longest = 100};
    w = make(&options);
    check_examples(w, stripped, COUNT(stripped));
    sf_wordpiece_free(w);
    options = (sf_wordpiece_options){.longest = 100};
    w = make(&options);
    check_examples(w, untidy, COUNT(untidy));
    check_examples(w, glued, COUNT(glued));
    assert_string_equal(encode(w, "a\0b", 3, SIZE_MAX), "[UNK]");
    sf_wordpiece_free(w);
}

static void test_long_words(void **unused)
{
    static char word[20001];
    sf_wordpiece *w = make(&uncased);
    (void)unused;
    memset(word, 'a', sizeof word - 1);
    for (size_t n = 90; n <= 140; n++) {
        const char *got = encode(w, word, n, SIZE_MAX);
        assert_int_equal(strcmp(got, "[UNK]") == 0, n > 100);
        assert_int_equal(strlen(got), n > 100 ? 5 : 4 * n - 3); /* "a ##a ##a" */
    }
    assert_string_equal(encode(w, word, 10000, SIZE_MAX), "[UNK]");
    word[10000] = ' ';
    assert_string_equal(encode(w, word, 10003, SIZE_MAX), "[UNK] a ##a");

    /* The length counts after normalization, in characters. */
    sf_buffer text = {0};
    for (int i = 0; i < 100; i++) assert_int_equal(sf_buffer_add_string(&text, "\u00e9\u0301\u200b"), 0);
    assert_int_equal(strlen(encode(w, text.bytes, text.length, SIZE_MAX)), 4 * 100 - 3);
    assert_int_equal(sf_buffer_add_string(&text, "e"), 0);
    assert_string_equal(encode(w, text.bytes, text.length, SIZE_MAX), "[UNK]");
    sf_buffer_clear(&text);
    sf_wordpiece_free(w);
    sf_wordpiece_options options = cased;
    options.longest = 3;
    w = make(&options);
    check_examples(w,
                   (const example[]){
                       {"ééé", "é ##é ##é"}, {"éééé", "[UNK]"}, {"good the", "[UNK] the"}, {"日本語日", "日 本 語 日"}},
                   4);
    sf_wordpiece_free(w);

    /* Marks without end, in the wrong order. */
    w = make(&uncased);
    for (int i = 0; i < 20000; i++) assert_int_equal(sf_buffer_add_string(&text, i % 2 ? "\u0301" : "\u0323"), 0);
    assert_string_equal(encode(w, text.bytes, text.length, SIZE_MAX), "");
    for (int i = 0; i < 20000; i++) assert_int_equal(sf_buffer_add_string(&text, i % 2 ? "\u302e" : "\U0001d165"), 0);
    assert_string_equal(encode(w, text.bytes, text.length, SIZE_MAX), "[UNK]");
    sf_buffer_free(&text);
    sf_wordpiece_free(w);
}

static void test_special_tokens(void **unused)
{
    static const example list[] = {
        {"[SEP]", "[SEP]"},
        {"a[SEP]b", "a [SEP] b"},
        {"[CLS] hello[MASK] [UNK][PAD]", "[CLS] hello [MASK] [UNK] [PAD]"},
        {"[sep]", "[ sep ]"}, /* found in the text as it stands */
        {"[Sep] [SEP ] [ SEP] [SEP", "[ sep ] [ sep ] [ sep ] [ sep"},
        {"[[SEP]]", "[ [SEP] ]"},
        {"[SE[SEP]", "[ s ##e [SEP]"},
        {"[SE\u200bP]", "[ sep ]"},
        {"go[SEP]od", "g ##o [SEP] o ##d"},
        {"e[SEP]\u0301", "e [SEP]"},
        {"[MASK][MASK]", "[MASK] [MASK]"},
    };
    sf_wordpiece *w = make(&uncased);
    (void)unused;
    check_examples(w, list, COUNT(list));
    sf_wordpiece_specials specials = sf_wordpiece_special(w);
    assert_true(specials.pad == 0 && specials.unk == 1 && specials.cls == 2 && specials.sep == 3);
    assert_true(sf_wordpiece_joins(w, '[', 'S') && sf_wordpiece_joins(w, 'P', ']') && sf_wordpiece_joins(w, 'A', 'S'));
    assert_false(sf_wordpiece_joins(w, '[', 's') || sf_wordpiece_joins(w, ']', '[') || sf_wordpiece_joins(w, ' ', '['));
    assert_true(sf_wordpiece_joins(w, '[', -1) && sf_wordpiece_joins(w, -1, ']') && sf_wordpiece_joins(w, -1, -1));
    assert_false(sf_wordpiece_joins(w, -1, '[') || sf_wordpiece_joins(w, ']', -1) || sf_wordpiece_joins(w, -1, '-'));
    sf_wordpiece_free(w);
}

/* The first pieces are the same however many are asked for, and are added to what is there. */
static void test_limit(void **unused)
{
    static const char text[] = "Hello unaffable [SEP] naïve 日本語 goodgood\u00a7x wanted!";
    sf_wordpiece *w = make(&uncased);
    sf_ids all = {0}, some = {0};
    sf_wordpiece_scratch scratch = {0};
    (void)unused;
    assert_int_equal(sf_wordpiece_encode(&all, w, text, strlen(text), SIZE_MAX, &scratch), 0);
    assert_int_equal(all.count, 16);
    for (size_t limit = 0; limit < all.count + 3; limit++) {
        size_t before = some.count, n = limit < all.count ? limit : all.count;
        assert_int_equal(sf_wordpiece_encode(&some, w, text, strlen(text), limit, &scratch), 0);
        assert_int_equal(some.count - before, n);
        assert_true(n == 0 || memcmp(some.ids + before, all.ids, n * sizeof *all.ids) == 0);
    }
    sf_ids_free(&all);
    sf_ids_free(&some);
    sf_wordpiece_scratch_free(&scratch);
    sf_wordpiece_free(w);
}

/* -------------------------------------------------- a plain implementation */

/* Whole texts as code points, one step after the other; pieces by trying every name. */
typedef struct points {
    uint32_t at[4096];
    size_t count;
} points;

static void add(points *p, uint32_t code)
{
    assert_true(p->count < COUNT(p->at));
    p->at[p->count++] = code;
}

static void plain_normalize(points *out, const sf_wordpiece_options *o, const char *text, size_t length)
{
    points a = {.count = 0}, b = {.count = 0};
    for (const char *p = text, *end = text + length; p < end;) {
        uint32_t code;
        size_t step = sf_utf8_decode(p, end, &code);
        add(&a, step ? code : 0xfffd);
        p += step ? step : 1;
    }
    if (o->clean) {
        for (size_t i = 0; i < a.count; i++)
            if (!sf_bert_is_control(a.at[i])) add(&b, sf_bert_is_space(a.at[i]) ? ' ' : a.at[i]);
        a = b;
        b.count = 0;
    }
    if (o->ideographs) {
        for (size_t i = 0; i < a.count; i++) {
            int ideograph = sf_bert_is_ideograph(a.at[i]);
            if (ideograph) add(&b, ' ');
            add(&b, a.at[i]);
            if (ideograph) add(&b, ' ');
        }
        a = b;
        b.count = 0;
    }
    if (o->accents) {
        for (size_t i = 0; i < a.count; i++) {
            uint32_t parts[SF_BERT_DECOMPOSED];
            size_t n = sf_bert_decompose(parts, a.at[i]);
            for (size_t k = 0; k < n; k++) add(&b, parts[k]);
        }
        for (size_t i = 1; i < b.count; i++) /* marks sink to their places */
            for (size_t k = i;
                 k > 0 && sf_bert_combining(b.at[k]) && sf_bert_combining(b.at[k - 1]) > sf_bert_combining(b.at[k]);
                 k--) {
                uint32_t other = b.at[k];
                b.at[k] = b.at[k - 1];
                b.at[k - 1] = other;
            }
        a.count = 0;
        for (size_t i = 0; i < b.count; i++)
            if (!sf_bert_is_mark(b.at[i])) add(&a, b.at[i]);
    }
    out->count = 0;
    for (size_t i = 0; i < a.count; i++) {
        uint32_t parts[SF_BERT_LOWERED] = {a.at[i]};
        size_t n = o->lower ? sf_bert_lower(parts, a.at[i]) : 1;
        for (size_t k = 0; k < n; k++) add(out, parts[k]);
    }
}

static void plain_word(sf_ids *out, const sf_wordpiece_options *o, const uint32_t *word, size_t length)
{
    size_t before = out->count, at = 0;
    while (at < length && length <= o->longest) {
        size_t end = length, found = SIZE_MAX;
        for (; end > at && found == SIZE_MAX; end--) {
            char name[1024] = "##";
            size_t n = at ? 2 : 0;
            for (size_t i = at; i < end; i++) n += sf_utf8_encode(word[i], name + n);
            for (size_t i = 0; i < name_count; i++)
                if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0) found = i;
            if (found != SIZE_MAX) break;
        }
        if (found == SIZE_MAX) break;
        out->ids[out->count++] = (uint32_t)found;
        at = end;
    }
    if (at < length) {
        out->count = before;
        out->ids[out->count++] = 1;
    }
}

static void plain_encode(sf_ids *out, const sf_wordpiece_options *o, const char *text, size_t length)
{
    static points p;
    size_t begin = 0;
    plain_normalize(&p, o, text, length);
    assert_int_equal(sf_grow(&out->ids, &out->capacity, out->count + p.count + 1, sizeof *out->ids), 0);
    for (size_t i = 0; i <= p.count; i++) {
        int space = i == p.count || sf_bert_is_space(p.at[i]), alone = !space && sf_bert_is_punctuation(p.at[i]);
        if (!space && !alone) continue;
        if (begin < i) plain_word(out, o, p.at + begin, i - begin);
        if (alone) plain_word(out, o, p.at + i, 1);
        begin = i + 1;
    }
}

static const char *const bits[] = {
    "the ",     "Hello",   "good",   "un",     "aff",        "able",       "naïve",
    "é",        "e\u0301", "\u0301", "\u0323", "\u302e",     "\U0001d165", "\u0345",
    "\u1abf",   "日",      "本",     "\uf900", "한",         "국",         "ᄒ",
    "ß",        "Σ",       "İ",      "ﬁ",      "ש",          "👍",          "\u200b",
    "\u200d",   "\u00ad",  "\x01",   "\v",     "\xc2\x85",   " ",          " ",
    "\n",       "\u00a0",  "\u2028", ".",      ",",          "-",          "'",
    "\u2019",   "\u2014",  "。",     "#",      "[",          "]",          "\u2260",
    "\u1fef",   "1",       "2",      "A",      "z",          "\ufffd",     "\xff",
    "\xe2\x80", "\ue000",  "½",      "\u2e43", "\U000111c9", "\u166d",     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
};

static size_t make_text(sf_buffer *out)
{
    sf_buffer_clear(out);
    assert_int_equal(sf_buffer_add(out, "", 0), 0);
    for (uint32_t n = next_below(16); n > 0; n--) {
        char bytes[4];
        uint32_t code;
        switch (next_below(8)) {
        case 0:
            do code = next_below(next_below(2) ? 0x3000 : 0x110000);
            while (code >= 0xd800 && code < 0xe000);
            assert_int_equal(sf_buffer_add(out, bytes, sf_utf8_encode(code, bytes)), 0);
            break;
        case 1: assert_int_equal(sf_buffer_add_byte(out, (char)next_below(256)), 0); break;
        default: assert_int_equal(sf_buffer_add_string(out, bits[next_below(COUNT(bits))]), 0);
        }
    }
    return out->length;
}

static void test_plain(void **unused)
{
    sf_buffer text = {0}, normal = {0};
    sf_ids got = {0}, expected = {0};
    sf_wordpiece_scratch scratch = {0};
    size_t known = 0;
    (void)unused;
    for (unsigned set = 0; set < 16; set++) {
        sf_wordpiece_options o = {(int)(set & 1),      (int)(set >> 1 & 1), (int)(set >> 2 & 1),
                                  (int)(set >> 3 & 1), set % 3 ? 100 : 20,  0};
        sf_wordpiece *w = make(&o);
        for (int round = 0; round < 3000; round++) {
            static points p;
            size_t length = make_text(&text), at = 0;
            got.count = expected.count = 0;
            sf_buffer_clear(&normal);
            assert_int_equal(sf_wordpiece_normalize(&normal, w, text.bytes, length, &scratch), 0);
            plain_normalize(&p, &o, text.bytes, length);
            for (size_t i = 0; i < p.count; i++) {
                uint32_t code = 0;
                size_t step = sf_utf8_decode(normal.bytes + at, normal.bytes + normal.length, &code);
                if (code != p.at[i]) fail_msg("\"%s\" becomes \"%s\"", text.bytes, normal.bytes);
                at += step;
            }
            assert_int_equal(at, normal.length);
            if (memmem(text.bytes, length, "[SEP]", 5)) continue;
            assert_int_equal(sf_wordpiece_encode(&got, w, text.bytes, length, SIZE_MAX, &scratch), 0);
            plain_encode(&expected, &o, text.bytes, length);
            if (got.count != expected.count ||
                (got.count && memcmp(got.ids, expected.ids, got.count * sizeof *got.ids) != 0))
                fail_msg("options %u: \"%s\" has %zu pieces, not %zu", set, text.bytes, got.count, expected.count);
            for (size_t i = 0; i < got.count; i++) known += got.ids[i] != 1;
        }
        sf_wordpiece_free(w);
    }
    assert_true(known > 100000); /* not all of it was [UNK] */
    sf_ids_free(&got);
    sf_ids_free(&expected);
    sf_buffer_free(&text);
    sf_buffer_free(&normal);
    sf_wordpiece_scratch_free(&scratch);
}

/* ------------------------------------------------------------------ cuts */

static void assert_same_ids(const sf_ids *a, const sf_ids *b, const char *text)
{
    if (a->count != b->count || (a->count && memcmp(a->ids, b->ids, a->count * sizeof *a->ids) != 0))
        fail_msg("\"%s\": %zu pieces, %zu in parts", text, a->count, b->count);
}

/* A text cut where cutting is allowed has the pieces of its parts. */
static void test_cuts(void **unused)
{
    static const char *const specials[] = {"[SEP]", "[SEP", "SEP]", "[MASK]", "[[", "[ SEP]", "[CLS]"};
    sf_buffer text = {0};
    sf_ids whole = {0}, parts = {0};
    size_t cuts = 0;
    (void)unused;
    for (unsigned set = 0; set < 16; set++) {
        sf_wordpiece_options o = {
            (int)(set & 1), (int)(set >> 1 & 1), (int)(set >> 2 & 1), (int)(set >> 3 & 1), 100, 0};
        sf_wordpiece *w = make(&o);
        for (int round = 0; round < 1000; round++) {
            make_text(&text);
            if (next_below(2)) assert_int_equal(sf_buffer_add_string(&text, specials[next_below(COUNT(specials))]), 0);
            for (uint32_t n = next_below(4); n > 0; n--)
                assert_int_equal(sf_buffer_add_string(&text, bits[next_below(COUNT(bits))]), 0);
            size_t begin = 0;
            whole.count = parts.count = 0;
            append(&whole, w, text.bytes, text.length);
            for (size_t at = 0; at < text.length;) {
                uint32_t code;
                size_t step = sf_utf8_decode(text.bytes + at, text.bytes + text.length, &code),
                       end = at + (step ? step : 1);
                int cut = step && sf_wordpiece_cuts(w, code);
                for (int side = 0; cut && side < 2; side++) {
                    size_t here = side ? end : at;
                    if (here == 0 || here == text.length || here <= begin) continue;
                    if (sf_wordpiece_joins(w, (unsigned char)text.bytes[here - 1], (unsigned char)text.bytes[here]))
                        continue;
                    append(&parts, w, text.bytes + begin, here - begin);
                    begin = here;
                    cuts++;
                }
                at = end;
            }
            append(&parts, w, text.bytes + begin, text.length - begin);
            assert_same_ids(&whole, &parts, text.bytes);
        }
        sf_wordpiece_free(w);
    }
    assert_true(cuts > 50000);
    sf_buffer_free(&text);
    sf_ids_free(&whole);
    sf_ids_free(&parts);
}

/* ------------------------------------------------------- every character */

/* What "aXb" becomes, for every X that Unicode changes no more, as one number. The numbers
 * were made by the Rust library (scripts/compare-tokenizer compares each character). */
static uint64_t hash_of_characters(const sf_wordpiece_options *options)
{
    sf_wordpiece *w = make(options);
    sf_buffer all = {0};
    sf_wordpiece_scratch scratch = {0};
    for (uint32_t c = 0; c < 0x30000; c++) {
        if ((c >= 0xd800 && c < 0xe000) || (c >= 0x10000 && c < 0x1f000)) continue;
        char text[8] = "a";
        size_t n = 1 + sf_utf8_encode(c, text + 1);
        text[n++] = 'b';
        assert_int_equal(sf_wordpiece_normalize(&all, w, text, n, &scratch), 0);
    }
    uint64_t hash = sf_hash(all.bytes, all.length, 0);
    sf_buffer_free(&all);
    sf_wordpiece_scratch_free(&scratch);
    sf_wordpiece_free(w);
    return hash;
}

static void test_every_character(void **unused)
{
    static const struct {
        sf_wordpiece_options options;
        uint64_t hash;
    } golden[] = {
        {{1, 1, 1, 1, 100, 0}, UINT64_C(0x391bfec9a2d93f13)},
        {{0, 0, 1, 1, 100, 0}, UINT64_C(0xdd88b45b05b83b4d)},
        {{1, 0, 0, 1, 100, 0}, UINT64_C(0x7c33aab9302ccdf5)},
        {{0, 1, 0, 0, 100, 0}, UINT64_C(0xcc3ca78754241459)},
    };
    (void)unused;
    for (size_t i = 0; i < COUNT(golden); i++) {
        uint64_t hash = hash_of_characters(&golden[i].options);
        if (hash != golden[i].hash) fail_msg("options %zu: 0x%016llx", i, (unsigned long long)hash);
    }
}

/* Marks that are younger than the Rust library's tables stay, and stay where they are. */
static void test_young_characters(void **unused)
{
    static const example list[] = {
        {"a\u302e\u0898b", "a\u302e\u0898b"},
        {"a\U0001d165\U00016ff0", "a\U0001d165\U00016ff0"},
        {"a\u302e\u093c\U0001d165b", "a\U0001d165\u302eb"}, /* old ones are put in order, and Mn removed */
        {"\U00011938", "\U00011938"},
        {"\u1734x", "x"},
        {"\U00010d50\ua7dc\u1c89", "\U00010d70\u019b\u1c8a"},
    };
    sf_wordpiece *w = make(&uncased);
    (void)unused;
    for (size_t i = 0; i < COUNT(list); i++) {
        sf_buffer normal = {0};
        sf_wordpiece_scratch scratch = {0};
        assert_int_equal(sf_wordpiece_normalize(&normal, w, list[i].text, strlen(list[i].text), &scratch), 0);
        assert_string_equal(normal.bytes, list[i].expected);
        sf_buffer_free(&normal);
        sf_wordpiece_scratch_free(&scratch);
    }
    sf_wordpiece_free(w);
}

/* How every character cuts: counted by kind, from the Rust library too. Letters never vanish,
 * which the lower bounds of model/pieces.c rest on. */
static void test_every_class(void **unused)
{
    size_t spaces = 0, punctuation = 0, controls = 0, marks = 0, ideographs = 0;
    (void)unused;
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xd800 && c < 0xe000) continue;
        spaces += sf_bert_is_space(c) != 0;
        punctuation += sf_bert_is_punctuation(c) != 0;
        controls += sf_bert_is_control(c) != 0;
        marks += sf_bert_is_mark(c) != 0;
        ideographs += sf_bert_is_ideograph(c) != 0;
        if (!sf_is_letter(c)) continue;
        uint32_t parts[SF_BERT_DECOMPOSED];
        size_t n = sf_bert_decompose(parts, c), left = 0;
        for (size_t i = 0; i < n; i++)
            left += !sf_bert_is_mark(parts[i]) && !sf_bert_is_space(parts[i]) && !sf_bert_is_control(parts[i]);
        if (!left || sf_bert_is_control(c) || sf_bert_is_space(c)) fail_msg("letter U+%04X vanishes", (unsigned)c);
    }
    assert_int_equal(spaces, 25);
    assert_int_equal(punctuation, 726);
    assert_int_equal(controls, 137681);
    assert_int_equal(marks, 1567);
    assert_int_equal(ideographs, 81264);
}

/* ---------------------------------------------------- the Rust library's */

static void test_golden(void **unused)
{
    sf_file file = {0};
    sf_buffer text = {0};
    sf_ids got = {0};
    sf_wordpiece_scratch scratch = {0};
    sf_wordpiece *w = NULL;
    sf_wordpiece_options made = {0};
    size_t rows = 0;
    (void)unused;
    assert_ok(sf_file_load(&file, SOURCE_DIR "/tests/golden/wordpiece.jsonl", &error));
    for (const char *p = file.bytes, *end = p + file.length, *stop; p < end; p = stop + 1) {
        stop = memchr(p, '\n', (size_t)(end - p));
        assert_non_null(stop);
        json_t *row = json_loadb(p, (size_t)(stop - p), JSON_ALLOW_NUL, NULL);
        assert_non_null(row);
        if (p == file.bytes) {
            const json_t *list = json_object_get(row, "vocabulary");
            for (size_t i = 0; i < json_array_size(list); i++)
                assert_int_equal(sf_buffer_format(&text, "%s\n", json_string_value(json_array_get(list, i))), 0);
            json_decref(row);
            continue;
        }
        sf_wordpiece_options o = {json_is_true(json_object_get(row, "lower")),
                                  json_is_true(json_object_get(row, "accents")),
                                  json_is_true(json_object_get(row, "ideographs")),
                                  json_is_true(json_object_get(row, "clean")),
                                  100,
                                  0};
        if (!w || o.lower != made.lower || o.accents != made.accents || o.ideographs != made.ideographs ||
            o.clean != made.clean) {
            sf_wordpiece_free(w);
            assert_ok(sf_wordpiece_new(&w, text.bytes, text.length, &o, "golden", &error));
            made = o;
        }
        const json_t *line = json_object_get(row, "text"), *ids = json_object_get(row, "ids");
        got.count = 0;
        assert_int_equal(
            sf_wordpiece_encode(&got, w, json_string_value(line), json_string_length(line), SIZE_MAX, &scratch), 0);
        int same = got.count == json_array_size(ids);
        for (size_t i = 0; same && i < got.count; i++) same = got.ids[i] == json_integer_value(json_array_get(ids, i));
        if (!same) fail_msg("row %zu: \"%s\"", rows, json_string_value(line));
        rows++;
        json_decref(row);
    }
    assert_true(rows > 400);
    sf_file_free(&file);
    sf_buffer_free(&text);
    sf_ids_free(&got);
    sf_wordpiece_scratch_free(&scratch);
    sf_wordpiece_free(w);
}

/* ------------------------------------------------------------ added tokens */

static void test_marks(void **unused)
{
    static const char text[] =
        "[UNK]\tunk added\n[CLS]\tcls added\n[SEP]\tsep added\nnew\nyork\nYork City\tadded only normal\n"
        "cat\ns\n<x>\tadded only\n"
        "CAT\tadded only word\n[L]\tadded only left right\nund\tadded only normal word\nü\nd\na\n"
        "\\n\tadded only\n##s\n[\n]\ne\n##d\n"
        "x>s\tadded only\nq \tadded only normal\n z\tadded only normal\n";
    static const example list[] = {
        {"new york city york", "new 5 york"},
        {"York Citys YORK  CITY", "5 s york [UNK]"},
        {"cats<x>s CAT CATs sCAT", "cat ##s <x> s 9 cat ##s [UNK]"},
        {"CAT-CAT \u0301CAT", "9 [UNK] 9 cat"},
        {"a [L] [L]cat", "a 10 10 cat"},
        {"und unds ünd", "11 [UNK] 11"},
        {"a\ne", "a 15 e"},
        {"[UNK][new]", "[UNK] [ new ]"},
        {"[MASK]", "[ [UNK] ]"}, /* not marked, so not special */
        {"<X> <x>", "[UNK] [UNK] [UNK] <x>"},
        {"<x>s x>s", "<x> s 21"}, /* what is found is not found again in part */
        {"q a z", "22 a 23"},
        {"q [L] z", "[UNK] 10 [UNK]"}, /* the white space is gone */
    };
    static const char *const shown[] = {"[UNK]", "[CLS]", "[SEP]", "new", "york", "5",  "cat", "s",
                                        "<x>",   "9",     "10",    "11",  "ü",    "d",  "a",   "15",
                                        "##s",   "[",     "]",     "e",   "##d",  "21", "22",  "23"};
    size_t own_count = name_count;
    sf_wordpiece *w = NULL, *again = NULL;
    sf_buffer copy = {0};
    (void)unused;
    assert_ok(sf_wordpiece_new(&w, text, strlen(text), &uncased, "marked", &error));
    assert_int_equal(sf_wordpiece_vocabulary(&copy, w), 0);
    assert_ok(sf_wordpiece_new(&again, copy.bytes, copy.length, &uncased, "again", &error));
    names = (const char **)(uintptr_t)shown;
    name_count = COUNT(shown);
    check_examples(w, list, COUNT(list));
    check_examples(again, list, COUNT(list));
    names = made_names;
    name_count = own_count;
    assert_true(sf_wordpiece_joins(w, ' ', 'a')); /* tokens of normalized text may lie anywhere */
    sf_wordpiece_free(w);
    sf_wordpiece_free(again);
    sf_buffer_free(&copy);
}

static void test_prefix(void **unused)
{
    sf_wordpiece *w = NULL;
    sf_ids ids = {0};
    (void)unused;
    static const char other[] = "[UNK]\tunk prefix=@@\n[CLS]\tcls\n[SEP]\tsep\na\n@@b\n##b\nb\n",
                      none[] = "[UNK]\tprefix= unk\n[CLS]\tcls\n[SEP]\tsep\na\nb\nab\n";
    assert_ok(sf_wordpiece_new(&w, other, strlen(other), &uncased, "other", &error));
    append(&ids, w, "abb b a", 7);
    assert_int_equal(ids.count, 5);
    assert_memory_equal(ids.ids, ((const uint32_t[]){3, 4, 4, 6, 3}), 5 * sizeof *ids.ids);
    sf_wordpiece_free(w);
    ids.count = 0;
    assert_ok(sf_wordpiece_new(&w, none, strlen(none), &uncased, "none", &error));
    append(&ids, w, "abb baab", 8);
    assert_int_equal(ids.count, 5);
    assert_memory_equal(ids.ids, ((const uint32_t[]){5, 4, 4, 3, 5}), 5 * sizeof *ids.ids);
    sf_wordpiece_free(w);
    sf_ids_free(&ids);
}

/* No piece begins anything. */
static void test_bare_vocabulary(void **unused)
{
    static const char text[] = "[UNK]\tunk\n[CLS]\tcls\n[SEP]\tsep\n";
    sf_wordpiece *w = NULL;
    sf_ids ids = {0};
    (void)unused;
    assert_ok(sf_wordpiece_new(&w, text, strlen(text), &uncased, "bare", &error));
    append(&ids, w, "a é [UNK]", strlen("a é [UNK]"));
    assert_int_equal(ids.count, 5);
    for (size_t i = 0; i < 5; i++) assert_int_equal(ids.ids[i], 0);
    sf_ids_free(&ids);
    sf_wordpiece_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uncased),
        cmocka_unit_test(test_cased),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_special_tokens),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_every_class),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_young_characters),
        cmocka_unit_test(test_bare_vocabulary),
    };
    return cmocka_run_group_tests_name("wordpiece", tests, make_vocabulary, free_vocabulary);
}
