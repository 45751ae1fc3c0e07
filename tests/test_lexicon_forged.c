/* Lexicons made to deceive: whole files with a checksum that fits, of which something that a certificate
 * rests on is not true. Every one must be refused when it is opened. */
#include "base/hash.h"
#include "lexicon/check.h"
#include "support.h"

#include <string.h>

static safer_error error;

/* The table that all forgeries begin with: "good" and "fine" lie in each other's reach, "Zahl" does not. */
static safer_lexicon *honest(const char *kernel)
{
    return import_table("good\tgreat fine\ngreat\tgreatest\nbad\tawful\nalone\t\nна\tпо\n", kernel);
}

/* A writable copy of a lexicon's file, `more` bytes longer. */
typedef struct copy {
    char *bytes;
    size_t length;
    const safer_lexicon *of;
} copy;

static copy copy_of(const safer_lexicon *l, size_t more)
{
    copy c = {calloc(l->image.length + more, 1), l->image.length + more, l};
    assert_non_null(c.bytes);
    memcpy(c.bytes, l->image.bytes, l->image.length);
    return c;
}

/* Where something that the lexicon points to lies in the copy. */
static void *at(const copy *c, const void *in_lexicon)
{
    return c->bytes + ((const char *)in_lexicon - c->of->image.bytes);
}

/* Puts length and checksum right, as a forger would. */
static void seal(copy *c)
{
    enum { LENGTH_AT = 16 };
    const uint64_t length = c->length;
    memcpy(c->bytes + LENGTH_AT, &length, sizeof length);
    const uint64_t checksum = sf_hash(c->bytes, c->length - 8, 0);
    memcpy(c->bytes + c->length - 8, &checksum, sizeof checksum);
}

static void refused(copy *c, const char *words)
{
    safer_lexicon *read = NULL;
    seal(c);
    assert_fails(safer_lexicon_open(&read, write_temporary("forged.lex", c->bytes, c->length), &error), SAFER_INPUT,
                 words);
    assert_non_null(strstr(error.message, "forged.lex"));
    assert_null(read);
    free(c->bytes);
}

static uint32_t number(const safer_lexicon *l, const char *word)
{
    const uint32_t x = safer_lexicon_find(l, word, strlen(word));
    assert_int_not_equal(x, SAFER_NO_WORD);
    return x;
}

static void test_honest(void **state)
{
    static const char *const kernels[] = {"topk:1", "topk:2", "component", "representative"};
    (void)state;
    for (size_t i = 0; i < COUNT(kernels); i++) {
        safer_lexicon *l = honest(kernels[i]), *read = NULL;
        copy c = copy_of(l, 0);
        seal(&c);
        assert_ok(safer_lexicon_open(&read, write_temporary("honest.lex", c.bytes, c.length), &error));
        free(c.bytes);
        safer_lexicon_free(read);
        safer_lexicon_free(l);
    }
}

static void test_overlaps(void **state)
{
    safer_lexicon *l = honest("topk:2");
    const uint32_t words = (uint32_t)safer_lexicon_describe(l).words;
    size_t below_one = 0;
    (void)state;
    for (uint32_t x = 0; x < words; x++) {
        const double wrong[] = {1.0, l->overlap[x] / 2, 0.0};
        for (size_t i = 0; i < COUNT(wrong); i++) {
            if (l->overlap[x] == wrong[i]) continue;
            copy c = copy_of(l, 0);
            memcpy(at(&c, &l->overlap[x]), &wrong[i], sizeof wrong[i]);
            refused(&c, "its overlaps are not those of its kernel");
            below_one++;
        }
        const uint32_t other = l->worst[x] == UINT32_MAX ? 0 : (l->worst[x] + 1) % words;
        copy c = copy_of(l, 0);
        memcpy(at(&c, &l->worst[x]), &other, sizeof other);
        refused(&c, "its overlaps are not those of its kernel");
    }
    assert_true(below_one > words);
    /* Weights that sum to the total, with the overlaps of the old ones: refused where these differ. */
    static const uint32_t weights[2] = {9, 1}, total = 10;
    size_t differ = 0;
    for (uint32_t row = 0; row < l->kernel.rows; row++) {
        if (l->kernel.offsets[row + 1] - l->kernel.offsets[row] != 2) continue;
        safer_lexicon *read = NULL;
        copy c = copy_of(l, 0);
        memcpy(at(&c, &l->kernel.weights[l->kernel.offsets[row]]), weights, sizeof weights);
        memcpy(at(&c, &l->kernel.totals[row]), &total, sizeof total);
        seal(&c);
        const char *path = write_temporary("weights.lex", c.bytes, c.length);
        if (safer_lexicon_open(&read, path, &error) != SAFER_OK)
            differ += strstr(error.message, "its overlaps are not those of its kernel") != NULL;
        safer_lexicon_free(read);
        free(c.bytes);
    }
    assert_true(differ > 0);
    safer_lexicon_free(l);
}

/* A kernel under a name that it does not deserve. */
static void test_names(void **state)
{
    static const char *const kernels[] = {"topk:1", "topk:2", "topk:9"};
    (void)state;
    for (size_t i = 0; i < COUNT(kernels); i++)
        for (size_t j = 0; j < COUNT(kernels); j++) {
            if (i == j) continue;
            safer_lexicon *l = honest(kernels[i]);
            copy c = copy_of(l, 0);
            memcpy(at(&c, l->kernel_name), kernels[j], strlen(kernels[j]));
            refused(&c, "its kernel is not what its name says");
            safer_lexicon_free(l);
        }
}

static void test_words(void **state)
{
    static const uint32_t none = UINT32_MAX;
    safer_lexicon *l = honest("component");
    const uint32_t good = number(l, "good");
    (void)state;
    for (uint32_t i = 0; i < l->words.slots; i++) {
        copy c = copy_of(l, 0);
        if (l->words.table[i] != none) { /* a word that nobody finds any more */
            memcpy(at(&c, &l->words.table[i]), &none, sizeof none);
            refused(&c, "a word cannot be found in it");
            c = copy_of(l, 0); /* a word that is found as another */
            const uint32_t other = (l->words.table[i] + 1) % l->words.count;
            memcpy(at(&c, &l->words.table[i]), &other, sizeof other);
        } else { /* one too many */
            memcpy(at(&c, &l->words.table[i]), &good, sizeof good);
        }
        refused(&c, "a word cannot be found in it");
    }
    copy c = copy_of(l, 0); /* two words in the place of one */
    memcpy(at(&c, l->words.pool + l->words.offsets[good]), "g\0od", 4);
    refused(&c, "a word cannot be found in it");
    safer_lexicon_free(l);
}

/* A word is renamed: the table of words is made anew, so that it is found. */
static void rename_word(copy *c, const char *from, const char *to)
{
    const safer_lexicon *l = c->of;
    sf_words words = {0};
    uint32_t id;
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at(c, l->words.pool + l->words.offsets[number(l, from)]), to, strlen(to));
    for (uint32_t x = 0; x < l->words.count; x++) {
        const char *word = at(c, l->words.pool + l->words.offsets[x]);
        assert_ok(sf_words_add(&words, word, strlen(word), &id, &error));
        assert_int_equal(id, x);
    }
    assert_int_equal(words.slots, l->words.slots);
    memcpy(at(c, l->words.table), words.table, words.slots * sizeof *words.table);
    sf_words_free(&words);
}

static void test_admission(void **state)
{
    static const struct {
        const char *from, *to;
    } names[] = {{"good", "g00d"},      {"good", "g od"},     {"fine", "Fine"}, {"great", "grea."},
                 {"awful", "\xffwful"}, {"на", "ab\xc3\x9f"}, {"по", "good"}};
    safer_lexicon *l = honest("component");
    (void)state;
    for (size_t i = 0; i + 1 < COUNT(names); i++) {
        copy c = copy_of(l, 0);
        rename_word(&c, names[i].from, names[i].to);
        refused(&c, "it exchanges words that do not read back");
    }
    copy c = copy_of(l, 0); /* a word that is never exchanged may be anything */
    rename_word(&c, "alone", "al-n3");
    seal(&c);
    safer_lexicon *read = NULL;
    assert_ok(safer_lexicon_open(&read, write_temporary("odd.lex", c.bytes, c.length), &error));
    free(c.bytes);
    safer_lexicon_free(read);
    safer_lexicon_free(l);
}

static void test_synonyms(void **state)
{
    safer_lexicon *l = honest("component");
    const uint32_t bad = number(l, "bad"), awful = number(l, "awful"), alone = number(l, "alone");
    (void)state;
    copy c = copy_of(l, 0); /* a word among its own synonyms */
    memcpy(at(&c, &l->synonyms[l->synonym_offsets[bad]]), &bad, sizeof bad);
    refused(&c, "its synonyms contradict each other");
    c = copy_of(l, 0); /* one way only, in a lexicon that is not directed */
    memcpy(at(&c, &l->synonyms[l->synonym_offsets[bad]]), &alone, sizeof alone);
    refused(&c, "its synonyms contradict each other");
    c = copy_of(l, 0); /* of another component */
    memcpy(at(&c, &l->component[awful]), &l->component[alone], sizeof alone);
    refused(&c, "its synonyms contradict each other");
    safer_lexicon_free(l);
}

static void test_layout(void **state)
{
    enum { DIRECTED = 40, TABLE = 48, SECTIONS = 19 };
    safer_lexicon *l = honest("component");
    (void)state;
    copy c = copy_of(l, 64); /* a message behind the last section */
    memcpy(c.bytes + l->image.length, "hidden", 6);
    refused(&c, "there are bytes behind its last section");
    for (size_t i = 0; i < SECTIONS; i++) { /* a byte in the gap behind a section */
        uint64_t section[2];
        memcpy(section, l->image.bytes + TABLE + 16 * i, sizeof section);
        if ((section[0] + section[1]) % 64 == 0) continue;
        c = copy_of(l, 0);
        c.bytes[section[0] + section[1]] = 1;
        refused(&c, "there are bytes between its sections");
    }
    c = copy_of(l, 0); /* words behind the end of the kernel's name */
    ((char *)at(&c, l->kernel_name))[2] = '\0';
    refused(&c, "its description is cut");
    c = copy_of(l, 0);
    ((char *)at(&c, l->kernel_name))[0] = '\xff';
    refused(&c, "is no UTF-8");
    c = copy_of(l, 0); /* neither directed nor not */
    c.bytes[DIRECTED] = 2;
    refused(&c, "unknown layout");
    for (size_t i = 1; i < SECTIONS; i++) { /* two sections in one place */
        uint64_t section[2];
        memcpy(section, l->image.bytes + TABLE + 16 * (i - 1), sizeof section);
        if (section[1] == 0) continue; /* an empty one is nowhere */
        c = copy_of(l, 0);
        memcpy(c.bytes + TABLE + 16 * i, c.bytes + TABLE + 16 * (i - 1), 8);
        refused(&c, "a section is not where it belongs");
    }
    safer_lexicon_free(l);
}

static safer_status open_saved(void *path, safer_error *e)
{
    safer_lexicon *read = NULL;
    const safer_status status = safer_lexicon_open(&read, path, e);
    safer_lexicon_free(read);
    return status;
}

static void test_memory(void **state)
{
    safer_lexicon *l = honest("topk:2");
    char path[500];
    (void)state;
    strcpy(path, temporary("saved.lex"));
    assert_ok(safer_lexicon_save(l, path, &error));
    check_every_allocation(open_saved, path);
    safer_lexicon_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest), cmocka_unit_test(test_overlaps),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_words),  cmocka_unit_test(test_admission), cmocka_unit_test(test_synonyms),
        cmocka_unit_test(test_layout), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
