/* Folds: that what they do is what docs/fold.md says, on every code point, on all pairs around it and on random texts;
 * that a second time changes nothing; and that no table, however it was made, can break that once it is opened. */
#define _GNU_SOURCE
#include "support.h"

#include "base/buffer.h"
#include "text/fold.h"
#include "text/unicode.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

enum { LIMIT = 0x110000 };

typedef struct made {
    sf_buffer table;
    sf_fold fold;
    sf_folder folder, again;
} made;

static void make_fold(made *m, const char *spec)
{
    uint32_t steps = 0;
    safer_error error;
    *m = (made){0};
    assert_ok(sf_fold_spec_parse(&steps, spec, &error));
    assert_ok(sf_fold_build(&m->table, steps, &error));
    assert_null(sf_fold_open(&m->fold, m->table.bytes, m->table.length));
}

static void free_fold(made *m)
{
    sf_buffer_free(&m->table);
    sf_folder_free(&m->folder);
    sf_folder_free(&m->again);
}

/* Phi of a text, which must be valid UTF-8 and folded already. */
static const sf_buffer *fold_text(made *m, const char *text, size_t length)
{
    assert_int_equal(sf_folder_apply(&m->folder, &m->fold, text, length), 0);
    const sf_buffer *once = &m->folder.text;
    assert_int_equal(strlen(once->bytes) <= once->length, 1);
    assert_int_equal(sf_utf8_valid(once->bytes, once->length), once->length);
    assert_int_equal(sf_folder_keeps(&m->again, &m->fold, once->bytes, once->length), 1);
    return once;
}

static void expect(made *m, const char *text, const char *folded)
{
    const sf_buffer *found = fold_text(m, text, strlen(text));
    if (found->length != strlen(folded) || memcmp(found->bytes, folded, found->length) != 0)
        fail_msg("\"%s\" becomes \"%s\", not \"%s\"", text, found->bytes, folded);
}

static size_t put(char *out, uint32_t code) { return sf_utf8_encode(code, out); }

/* ------------------------------------------------------------------- examples */

static void test_examples(void **state)
{
    (void)state;
    made m;
    make_fold(&m, "standard");
    expect(&m, "", "");
    expect(&m, "The GREAT film", "the great film");
    expect(&m, "Th\u0435 f\u0456lm w\u0430s GR\u0415\u0410T", "the film was great"); /* Cyrillic */
    expect(&m, "\u0397\u0395LL\u039f", "hello"); /* Greek capitals, by their looks */
    expect(&m, "g\u200bo\u2060o\u00add\ufe0f\U000e0041", "good");
    expect(&m, "\u202egood\u202c", "good");
    expect(&m, "na\u00efve caf\u00e9 \u0142\u00f3d\u017a", "naive cafe lodz");
    expect(&m, "g\u0336o\u0338\u0323o\u20ddd \u0301!", "good !");
    expect(&m, "\uff46\uff55\uff4c\uff4c \ufb01lm \u2460", "full film 1");
    expect(&m, "\U0001d4d7\U0001d4ee\U0001d4f5\U0001d4f5\U0001d4f8", "hello");
    expect(&m, "don\u2019t \u201cquote\u201d\u2026", "don't \"quote\"...");
    expect(&m, "a\u00a0b\u3000c\u2028d\u1680e", "a b c d e");
    expect(&m, "stra\u00dfe STRASSE", "strasse strasse");
    expect(&m, "burn modern film", "burn modern film"); /* rn and m are left */
    expect(&m, "I1l| 0O", "i1l| 0o");                   /* and so is ASCII */
    expect(&m, "\u0438\u0306 \u0439 \u304b\u3099 \u304c", "\u0439 \u0439 \u304c \u304c");
    expect(&m, "\ud55c\uad6d \u1112\u1161\u11ab", "\ud55c\uad6d \ud55c");
    expect(&m, "m0vie g o o d soooo", "m0vie g o o d soooo");
    expect(&m, "\001\002tab\tline\n\r\177", "tab\tline\n\r");
    assert_int_equal(sf_folder_apply(&m.folder, &m.fold, "a\0b", 3), 0);
    assert_string_equal(m.folder.text.bytes, "ab");
    /* Bytes that are no UTF-8 can never join: each becomes a character of its own. */
    expect(&m, "\xc3\u200b\xa9", "\ufffd\ufffd");
    expect(&m, "a\xff\xf0\x9f", "a\ufffd\ufffd\ufffd");
    free_fold(&m);
}

static void test_options(void **state)
{
    (void)state;
    made m;
    make_fold(&m, "nfkc,repeats,spaced,leet,case,standard");
    assert_int_equal(m.fold.head.steps, SF_FOLD_ALL);
    expect(&m, "g r e a t  m0v13, s.p-a_c*e", "great  movie, space");
    expect(&m, "soooo COOOOL gooood", "soo cool good");
    expect(&m, "b@d $o 50 3d 4th mp3 x4", "bad $o 50 3d ath mpe x4");
    expect(&m, "a b, a b c. I a m", "a b, abc. iam");
    expect(&m, "g o o o d a", "gooda");
    expect(&m, "1 2 3 a  b  c", "1 2 3 a  b  c");
    expect(&m, "4'a b c", "4'a b c"); /* joined, the run would have two letters and the 4 would follow */
    expect(&m, "\u0436a4 \u04364", "\u0436aa \u04364");
    free_fold(&m);
    make_fold(&m, "case");
    expect(&m, "\u00c9T\u00c9 \u0391", "\u00e9t\u00e9 \u03b1");
    free_fold(&m);
    make_fold(&m, "nfkc,marks");
    expect(&m, "\u00c9T\u00c9 \u00f8", "ETE \u00f8");
    free_fold(&m);
    make_fold(&m, "nfkc,leet"); /* composed only once all else is done */
    expect(&m, "go0\u0301d", "go\u00f3d");
    free_fold(&m);
}

static void test_specifications(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *written;
    } good[] = {{"none", "none"},
                {"standard", "nfkc,case,ignorable,marks,lookalikes"},
                {"repeats,case", "case,repeats"},
                {"standard,leet,spaced,repeats", "nfkc,case,ignorable,marks,lookalikes,leet,spaced,repeats"}};
    static const char *const bad[] = {"",           "all",   "case,",           ",case",
                                      "case,,nfkc", "marks", "lookalikes,case", "none,case"};
    for (size_t i = 0; i < COUNT(good); i++) {
        uint32_t steps = 77;
        char written[SF_FOLD_SPEC];
        assert_int_equal(sf_fold_spec_parse(&steps, good[i].spec, NULL), SAFER_OK);
        sf_fold_spec_write(written, steps);
        assert_string_equal(written, good[i].written);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint32_t steps = 77;
        safer_error error;
        assert_int_equal(sf_fold_spec_parse(&steps, bad[i], &error), SAFER_INVALID);
        assert_non_null(strstr(error.message, "`fold`: "));
        assert_int_equal(steps, 77);
    }
}

/* ---------------------------------------------------------------- idempotence */

static const char *const specs[] = {"standard",
                                    "standard,leet,spaced,repeats",
                                    "nfkc",
                                    "case",
                                    "ignorable",
                                    "nfkc,case,leet",
                                    "nfkc,marks",
                                    "nfkc,lookalikes,repeats",
                                    "nfkc,case,marks,spaced"};

/* Every code point, alone and among letters. */
static void test_every_code_point(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT(specs); s++) {
        made m;
        make_fold(&m, specs[s]);
        for (uint32_t c = 0; c < LIMIT; c++) {
            char text[16] = "a";
            if (c - 0xd800 < 0x800) continue;
            size_t length = put(text, c);
            fold_text(&m, text, length);
            if (s > 1) continue;
            text[length] = text[0] ? 'e' : 'o';
            length += 1;
            length += put(text + length, c);
            text[length++] = 's';
            fold_text(&m, text, length);
        }
        free_fold(&m);
    }
}

/* Bases of many kinds with every mark, in twos and threes. */
static void test_bases_and_marks(void **state)
{
    (void)state;
    static const uint32_t bases[] = {'a',    'I',    '0',    ' ',    '=',    0xe9,   0x131,   0x3b7,
                                     0x3b1,  0x416,  0x438,  0x430,  0x627,  0x5d0,  0x915,   0x9c7,
                                     0xb92,  0x1100, 0x1175, 0x11a8, 0xac00, 0xac01, 0x304b,  0x30ab,
                                     0x4e00, 0x1e00, 0x212b, 0x1f80, 0xfb2c, 0x10a0, 0x1d165, 0x105d2};
    made m;
    for (size_t s = 0; s < 3; s++) {
        make_fold(&m, specs[s]);
        for (size_t b = 0; b < COUNT(bases); b++)
            for (uint32_t c = 0x300; c < 0x1f000; c++) {
                const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
                if (category != UTF8PROC_CATEGORY_MN && category != UTF8PROC_CATEGORY_MC &&
                    category != UTF8PROC_CATEGORY_ME && c - 0x1100 >= 0x100)
                    continue;
                char text[24];
                size_t length = put(text, bases[b]);
                length += put(text + length, c);
                fold_text(&m, text, length);
                length += put(text + length, bases[(b + c) % COUNT(bases)]);
                length += put(text + length, 0x300 + c % 0x70);
                fold_text(&m, text, length);
            }
        free_fold(&m);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Characters that something happens to, more often than they are. */
static uint32_t random_code(uint64_t *seed)
{
    static const uint32_t often[] = {'a',   'b',    'o',   'O',    'i',    'I',    '0',     '1',    '3',
                                     '4',   '@',    '$',   '\'',   ' ',    ' ',    '.',     '-',    '_',
                                     '*',   0x200b, 0xad,  0x301,  0x306,  0x323,  0x338,   0x345,  0x3099,
                                     0x430, 0x438,  0x439, 0x1100, 0x1161, 0x11a8, 0xac00,  0x304b, 0x5b0,
                                     0x64b, 0x9c7,  0x9be, 0x20dd, 0x2019, 0xfdfa, 0x1d15e, 0x2800, 0};
    const uint64_t kind = next_random(seed) % 10;
    if (kind < 7) return often[next_random(seed) % COUNT(often)];
    if (kind == 7) return (uint32_t)(next_random(seed) % 0x800);
    uint32_t code = (uint32_t)(next_random(seed) % (kind == 8 ? 0x3000 : LIMIT));
    return code - 0xd800 < 0x800 ? 'x' : code;
}

static void test_random_texts(void **state)
{
    (void)state;
    uint64_t seed = 20261118;
    for (size_t s = 0; s < COUNT(specs); s++) {
        made m;
        make_fold(&m, specs[s]);
        for (int i = 0; i < 40000; i++) {
            char text[128];
            size_t length = 0, count = next_random(&seed) % 16;
            for (size_t k = 0; k < count; k++) {
                if (next_random(&seed) % 40 == 0)
                    text[length++] = (char)(0x80 + next_random(&seed) % 0x80); /* no UTF-8 */
                else
                    length += put(text + length, random_code(&seed));
            }
            fold_text(&m, text, length);
        }
        free_fold(&m);
    }
}

/* All four normal forms of a text fold alike, and so does ASCII in either case. */
static void test_normal_forms(void **state)
{
    (void)state;
    static const int forms[] = {UTF8PROC_COMPOSE, UTF8PROC_DECOMPOSE, UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
                                UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
    uint64_t seed = 7;
    made m;
    for (size_t s = 0; s < 3; s++) {
        make_fold(&m, specs[s]);
        for (int i = 0; i < 30000; i++) {
            char text[128];
            size_t length = 0, count = 1 + next_random(&seed) % 10;
            for (size_t k = 0; k < count; k++) length += put(text + length, random_code(&seed));
            const sf_buffer *folded = fold_text(&m, text, length);
            for (size_t form = 0; form < COUNT(forms); form++) {
                utf8proc_uint8_t *normal = NULL;
                const utf8proc_ssize_t size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length,
                                                           &normal, (utf8proc_option_t)(UTF8PROC_STABLE | forms[form]));
                assert_true(size >= 0);
                assert_int_equal(sf_folder_apply(&m.again, &m.fold, (const char *)normal, (size_t)size), 0);
                assert_int_equal(m.again.text.length, folded->length);
                assert_memory_equal(m.again.text.bytes, folded->bytes, folded->length);
                free(normal);
            }
        }
        free_fold(&m);
    }
}

/* The way for ASCII alone and the way for all texts agree. */
static void test_ascii_path(void **state)
{
    (void)state;
    made m;
    char text[0x80];
    make_fold(&m, "standard");
    assert_int_equal(m.fold.direct, 1);
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)i;
    assert_int_equal(sf_folder_apply(&m.folder, &m.fold, text, sizeof text), 0);
    m.fold.direct = 0;
    assert_int_equal(sf_folder_apply(&m.again, &m.fold, text, sizeof text), 0);
    assert_int_equal(m.folder.text.length, m.again.text.length);
    assert_memory_equal(m.folder.text.bytes, m.again.text.bytes, m.again.text.length);
    free_fold(&m);
}

/* Ten megabytes of marks, of separators, of letters: time in proportion, or the test does not end. */
static void test_long_runs(void **state)
{
    (void)state;
    static const char *const parts[] = {"\u0323\u0301", "\u05b0\u05bf\u05b1", "a ", "o", "0'", "\u0438\u0306"};
    enum { LENGTH = 10 << 20 };
    char *text = malloc(LENGTH);
    made m;
    assert_non_null(text);
    make_fold(&m, "standard,leet,spaced,repeats");
    for (size_t p = 0; p < COUNT(parts); p++) {
        const size_t part = strlen(parts[p]);
        size_t length = 0;
        text[length++] = '\'';
        while (length + part <= LENGTH) {
            memcpy(text + length, parts[p], part);
            length += part;
        }
        fold_text(&m, text, length);
    }
    free(text);
    free_fold(&m);
}

/* -------------------------------------------------------------------- tables */

/* Whatever is done to a table: it is refused, or it is still idempotent. */
static void test_changed_tables(void **state)
{
    (void)state;
    made m;
    make_fold(&m, "nfkc,case,marks,leet,spaced,repeats");
    uint32_t *words = (uint32_t *)(void *)m.table.bytes;
    const size_t count = m.table.length / sizeof *words;
    uint64_t seed = 99;
    size_t refused = 0, opened = 0;
    for (int i = 0; i < 4000; i++) {
        const size_t at = i < 200 ? (size_t)i % 8 : next_random(&seed) % count;
        const uint32_t before = words[at], kind = (uint32_t)(next_random(&seed) % 4);
        words[at] = kind == 0   ? before ^ 1u << next_random(&seed) % 22
                    : kind == 1 ? before + 1
                    : kind == 2 ? random_code(&seed)
                                : words[next_random(&seed) % count];
        if (sf_fold_open(&m.fold, m.table.bytes, m.table.length)) {
            refused++;
        } else {
            opened++;
            for (int k = 0; k < 20; k++) {
                char text[64];
                size_t length = 0;
                for (int j = 0; j < 8; j++) length += put(text + length, j % 3 ? random_code(&seed) : before % 0xd800);
                fold_text(&m, text, length);
            }
        }
        words[at] = before;
    }
    assert_true(refused > 100 && opened > 100);
    free_fold(&m);
}

/* A table from numbers. */
static const char *open_numbers(const uint32_t *numbers, size_t count)
{
    sf_fold fold;
    return sf_fold_open(&fold, numbers, count * sizeof *numbers);
}
#define OPEN(...) open_numbers((const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void test_hostile_tables(void **state)
{
    (void)state;
    const char *const order = "its fold is not in order",
                      *const again = "its fold does not leave alone what it has folded";
    assert_string_equal(OPEN(2, 0, 0), "its fold has the wrong length");
    assert_string_equal(OPEN(2, 0, 0, UINT32_MAX, 0, 0, 0, 0), "its fold has the wrong length");
    assert_string_equal(OPEN(2, 0, 0, 0, 0, 0, UINT32_MAX, 0), "its fold has the wrong length");
    assert_string_equal(OPEN(0, 0, 0, 0, 0, 0, 0, 0), "its fold has steps that are unknown here");
    assert_string_equal(OPEN(256, 0, 0, 0, 0, 0, 0, 0), "its fold has steps that are unknown here");
    assert_null(OPEN(2, 0, 0, 0, 0, 0, 0, 0));
    assert_null(OPEN(2, 0, 0, 1, 1, 0, 0, 'A', 0, 1, 'a'));
    assert_string_equal(OPEN(2, 0, 0, 1, 1, 0, 0, 'A', 0, 0, 'a'), order);
    assert_string_equal(OPEN(2, 0, 0, 1, 1, 0, 0, 'A', 1, 1, 'a'), order);
    assert_string_equal(OPEN(2, 0, 0, 2, 2, 0, 0, 'B', 'A', 0, 1, 2, 'b', 'a'), order);
    assert_string_equal(OPEN(2, 0, 0, 2, 2, 0, 0, 'A', 'B', 0, 3, 2, 'b', 'a'), order);
    assert_string_equal(OPEN(2, 0, 0, 1, 1, 0, 0, 0xd800, 0, 1, 'a'), order);
    assert_string_equal(OPEN(1, 0, 0, 1, 1, 0, 0, 0xac00, 0, 1, 'a'), order);
    assert_string_equal(OPEN(2, 0, 0, 1, 1, 0, 0, 'A', 0, 1, 0x110000), again);
    assert_string_equal(OPEN(2, 0, 0, 2, 2, 0, 0, 'A', 'B', 0, 1, 2, 'B', 'b'), again); /* a chain */
    assert_string_equal(OPEN(2, 0, 0, 1, 1, 0, 0, 'a', 0, 1, 'b'), again);              /* what leetspeak stands for */
    assert_string_equal(OPEN(2, 0, 0, 0, 0, 1, 0, 0, 'a', 'a', SF_FOLD_DROPPED), again);
    assert_string_equal(OPEN(1, 0, 0, 1, 1, 0, 0, 0x1100, 0, 1, 'g'), again);
    assert_string_equal(OPEN(2, 0, 0, 1, 1, 0, 0, 0xfffd, 0, 1, 'g'), again);
    assert_string_equal(OPEN(2, 0, 0, 0, 0, 1, 0, 0, 'A', 'B', 5), order); /* ASCII as marks */
    assert_string_equal(OPEN(2, 0, 0, 0, 0, 1, 0, 0, 0x300, 0x2ff, 5), order);
    assert_string_equal(OPEN(2, 0, 0, 0, 0, 2, 0, 0, 0x300, 0x310, 5, 0x310, 0x311, 5), order);
    assert_string_equal(OPEN(2, 0, 0, 0, 0, 1, 0, 0, 0x300, 0x310, 0x1000), order);
    assert_null(OPEN(1, 0, 0, 1, 2, 0, 1, 0xe9, 0, 2, 'e', 0x301, 'e', 0x301, 0xe9));
    assert_string_equal(OPEN(1, 0, 0, 1, 2, 0, 1, 0xe9, 0, 2, 'e', 0x301, 'e', 0x302, 0xe9), again);
    assert_string_equal(OPEN(1, 0, 0, 0, 0, 0, 1, 0, 'e', 0x301, 0xe9), again);
    assert_string_equal(OPEN(1, 0, 0, 1, 2, 0, 1, 0xe9, 0, 2, 'e', 0x301, 'e', 0x301, 0x110000), again);
    /* a composite where Hangul has one already: two readers of the table could differ */
    assert_string_equal(OPEN(1, 0, 0, 1, 2, 0, 1, 0xe000, 0, 2, 0x1100, 0x1161, 0x1100, 0x1161, 0xe000), again);
    assert_string_equal(OPEN(1, 0, 0, 1, 3, 0, 1, 0xe000, 0, 3, 0x1100, 0x1161, 0x11a8, 0xac00, 0x11a8, 0xe000), again);
}

static safer_status build_and_apply(void *context, safer_error *error)
{
    made m = {0};
    safer_status status;
    (void)context;
    SF_TRY(sf_fold_build(&m.table, SF_FOLD_CASE, error));
    if (sf_fold_open(&m.fold, m.table.bytes, m.table.length)) fail();
    char marks[200];
    for (size_t i = 0; i < 100; i++) put(marks + 2 * i, i % 2 ? 0x301 : 0x323);
    if (sf_folder_apply(&m.folder, &m.fold, "\u00c9t\u00e9", 5) ||
        sf_folder_apply(&m.folder, &m.fold, marks, sizeof marks))
        status = sf_fail_memory(error);
done:
    free_fold(&m);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    check_every_allocation(build_and_apply, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),        cmocka_unit_test(test_options),
        cmocka_unit_test(test_specifications),  cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_bases_and_marks), cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_normal_forms),    cmocka_unit_test(test_ascii_path),
        cmocka_unit_test(test_long_runs),       cmocka_unit_test(test_changed_tables),
        cmocka_unit_test(test_hostile_tables),  cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
