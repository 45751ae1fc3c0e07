/* What the tests of BERT's tokenizer share: a small vocabulary, and ids as text. */
#ifndef TESTS_TEST_WORDPIECE_H
#define TESTS_TEST_WORDPIECE_H

#include "support.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/rng.h"
#include "text/unicode.h"
#include "text/wordpiece_parts.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static safer_error error;

static const sf_wordpiece_options uncased = {.lower = 1, .accents = 1, .ideographs = 1, .clean = 1, .longest = 100};
static const sf_wordpiece_options cased = {.lower = 0, .accents = 0, .ideographs = 1, .clean = 1, .longest = 100};

/* ------------------------------------------------------- a small vocabulary */

static const char *const pieces[] = {
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "want",
    "un",
    "runn",
    "hello",
    "world",
    "good",
    "naive",
    "cafe",
    "sep",
    "The",
    "Hello",
    "I",
    "istanbul",
    "##ed",
    "##aff",
    "##able",
    "##ing",
    "##s",
    "##bul",
    "##good",
    ".",
    ",",
    "-",
    "'",
    "!",
    "[",
    "]",
    "#",
    "=",
    "\xe2\x80\x94",
    "\xe3\x80\x82",
    "\xe2\x80\x99",
    "`",
    "日",
    "本",
    "語",
    "豈",
    "ß",
    "##ß",
    "ο",
    "##ο",
    "##δ",
    "##σ",
    "##ς",
    "σ",
    "δ",
    "ᄒ",
    "##ᅡ",
    "##ᆫ",
    "ᄀ",
    "##ᅮ",
    "##ᆨ",
    "한",
    "##국",
    "ש",
    "##ל",
    "##ו",
    "##ם",
    "م",
    "👍",
    "##👍",
    "ﬁ",
    "##ﬁ",
    "é",
    "##é",
    "naïve",
    "İ",
    "##i\u0307",
    "i\u0307",
    "\xe2\x89\xa0",
    "##\xe2\x89\xa0",
    "ⓐ",
    "½",
    "\u0301",
    "##\u0301",
    "\ufffd",
    "##\ufffd",
    "\x01",
    "##\x01",
};

static sf_buffer vocabulary;
static const char **names; /* of every number */
static const char **made_names;
static size_t name_count;

static inline void name_piece(const char *name, size_t *capacity)
{
    assert_int_equal(sf_grow(&made_names, capacity, name_count + 1, sizeof *made_names), 0);
    names = made_names;
    made_names[name_count++] = name;
    assert_int_equal(sf_buffer_add_string(&vocabulary, name), 0);
    assert_int_equal(sf_buffer_add_byte(&vocabulary, '\n'), 0);
}

/* The pieces above and all letters and digits, as beginnings and as continuations. */
static inline int make_vocabulary(void **unused)
{
    static char letters[26 + 26 + 10][2][4];
    size_t capacity = 0;
    (void)unused;
    for (size_t i = 0; i < COUNT(pieces); i++) name_piece(pieces[i], &capacity);
    for (size_t i = 0; i < COUNT(letters); i++) {
        char c = "abcdefghijklmnopqrstuvwxyzABCDEFGHJKLMNOPQRSTUVWXYZZ0123456789"[i];
        if (i == 51) continue; /* I is above */
        snprintf(letters[i][0], 4, "%c", c);
        snprintf(letters[i][1], 4, "##%c", c);
        name_piece(letters[i][0], &capacity);
        if (c != 's') name_piece(letters[i][1], &capacity);
    }
    return 0;
}

static inline int free_vocabulary(void **unused)
{
    (void)unused;
    sf_buffer_free(&vocabulary);
    free(made_names);
    return 0;
}

static inline sf_wordpiece *make(const sf_wordpiece_options *options)
{
    sf_wordpiece *w = NULL;
    assert_ok(sf_wordpiece_new(&w, vocabulary.bytes, vocabulary.length, options, "small", &error));
    return w;
}

/* The names of a text's pieces, separated by spaces. Static. */
static inline const char *encode(const sf_wordpiece *w, const char *text, size_t length, size_t limit)
{
    static sf_buffer out;
    sf_ids ids = {0};
    sf_wordpiece_scratch scratch = {0};
    sf_buffer_free(&out);
    assert_int_equal(sf_wordpiece_encode(&ids, w, text, length, limit, &scratch), 0);
    assert_int_equal(sf_buffer_add(&out, "", 0), 0);
    for (size_t i = 0; i < ids.count; i++) {
        assert_true(ids.ids[i] < sf_wordpiece_size(w));
        assert_int_equal(sf_buffer_format(&out, i ? " %s" : "%s", ids.ids[i] < name_count ? names[ids.ids[i]] : "?"),
                         0);
    }
    sf_ids_free(&ids);
    sf_wordpiece_scratch_free(&scratch);
    static char copy[65536];
    snprintf(copy, sizeof copy, "%s", out.bytes);
    sf_buffer_free(&out);
    return copy;
}

typedef struct example {
    const char *text, *expected;
} example;

static inline void check_examples(const sf_wordpiece *w, const example *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *got = encode(w, list[i].text, strlen(list[i].text), SIZE_MAX);
        if (strcmp(got, list[i].expected) != 0)
            fail_msg("\"%s\": \"%s\", not \"%s\"", list[i].text, got, list[i].expected);
    }
}

static inline void append(sf_ids *out, const sf_wordpiece *w, const char *text, size_t length)
{
    sf_wordpiece_scratch scratch = {0};
    assert_int_equal(sf_wordpiece_encode(out, w, text, length, SIZE_MAX, &scratch), 0);
    sf_wordpiece_scratch_free(&scratch);
}

#endif
