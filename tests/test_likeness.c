/* What replacements must have in common with the words they replace: parts of speech as WordNet's rules have them,
 * windows against the plain sum, and attacks against brute force: with constraints they find less, never what breaks
 * one, and nearly all that is left. */
#define _GNU_SOURCE
#include "test_attack.h"

#include "lexicon/parts.h"
#include "lexicon/vectors.h"

/* ------------------------------------------------------------- parts of speech */

static const char *const of_wordnet[8][2] = {
    {"index.noun",
     "  1 the licence  \nfilm n 1 2 @ ~ 1 0 06613686  \nbox n 1 0 1 0 1\nact_of_god n 1 0 1 0 1\nwalk n 1 0 1 0 1\n"
     "man n 1 0 1 0 1\nbaby n 1 0 1 0 1\n"},
    {"noun.exc", "geese goose\r\n"},
    {"index.verb", "walk v 1 0 1 0 1\nlove v 1 0 1 0 1\ncarry v 1 0 1 0 1\n"},
    {"verb.exc", "went go\nstopped stop\n"},
    {"index.adj", "nice a 1 0 1 0 1\nbaby a 1 0 1 0 1\nslow a 1 0 1 0 1"},
    {"adj.exc", "better good well\n"},
    {"index.adv", "slow r 1 0 1 0 1\n"},
    {"adv.exc", ""}};

/* The folder that holds them. */
static const char *write_wordnet(const char *const (*files)[2])
{
    static char folder[4096];
    for (size_t i = 0; i < 8; i++) write_temporary(files[i][0], files[i][1], strlen(files[i][1]));
    snprintf(folder, sizeof folder, "%s", temporary("index.noun"));
    *strrchr(folder, '/') = '\0';
    return folder;
}

static void test_parts(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        unsigned parts;
    } cases[] = {{"film", SF_NOUN},
                 {"films", SF_NOUN},
                 {"boxes", SF_NOUN},
                 {"babies", SF_NOUN}, /* an adjective does not take an s */
                 {"baby", SF_NOUN | SF_ADJECTIVE},
                 {"men", SF_NOUN},
                 {"geese", SF_NOUN},
                 {"goose", SF_NO_PART}, /* only what a file lists */
                 {"walk", SF_NOUN | SF_VERB},
                 {"walks", SF_NOUN | SF_VERB},
                 {"walked", SF_VERB},
                 {"loving", SF_VERB},
                 {"loved", SF_VERB},
                 {"carries", SF_VERB},
                 {"went", SF_VERB},
                 {"stopped", SF_VERB},
                 {"nicest", SF_ADJECTIVE},
                 {"nicer", SF_ADJECTIVE},
                 {"better", SF_ADJECTIVE},
                 {"slow", SF_ADJECTIVE | SF_ADVERB},
                 {"slower", SF_ADJECTIVE},
                 {"because", SF_NO_PART},
                 {"s", SF_NO_PART},
                 {"ing", SF_NO_PART},
                 {"", SF_NO_PART},
                 {"god", SF_NO_PART}};
    sf_parts parts = {0};
    char longest[200];
    assert_ok(sf_parts_read(&parts, write_wordnet(of_wordnet), &error));
    for (size_t i = 0; i < COUNT(cases); i++)
        if (sf_parts_of(&parts, cases[i].word, strlen(cases[i].word)) != cases[i].parts)
            fail_msg("%s: %u", cases[i].word, sf_parts_of(&parts, cases[i].word, strlen(cases[i].word)));
    memset(longest, 's', sizeof longest);
    for (size_t i = 1; i < sizeof longest; i++) assert_int_equal(sf_parts_of(&parts, longest, i), SF_NO_PART);
    assert_int_equal(strlen(parts.digest.hex), 64);
    sf_parts_free(&parts);
}

/* Another file, or none: one line that names it. */
static void test_wrong_files(void **state)
{
    (void)state;
    sf_parts parts = {0};
    static const char data[] = "00001740 03 n 01 entity 0 003 ~ 00001930 n 0000\n", other[] = "walk v 1 0\n";
    assert_fails(sf_parts_parse(&parts, SF_NOUN, 1, data, sizeof data - 1, "data.noun", &error), SAFER_INPUT,
                 "data.noun, line 1: not a line of WordNet's index");
    assert_fails(sf_parts_parse(&parts, SF_NOUN, 1, other, sizeof other - 1, "index.verb", &error), SAFER_INPUT,
                 "index.verb, line 1");
    assert_fails(sf_parts_parse(&parts, SF_NOUN, 0, "geese goose\nword\n", 17, "noun.exc", &error), SAFER_INPUT,
                 "noun.exc, line 2: not a line of WordNet's exceptions");
    sf_parts_free(&parts);
    assert_fails(sf_parts_read(&parts, "/nonexistent", &error), SAFER_SYSTEM, "/nonexistent/index.noun");
}

/* ------------------------------------------------------------------- windows */

enum { DIM = 3, MANY = 40 };

/* The same by the definition: the words around each changed one, all in double precision. */
static int alike_by_definition(const float *vectors, double least, const uint32_t *before, const uint32_t *after,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double a[DIM] = {0}, b[DIM] = {0}, ab = 0, aa = 0, bb = 0;
        if (before[i] == after[i]) continue;
        size_t first = 0, last = count; /* TextFooler's window: 15 words, or all */
        if (count > 15) {
            first = i < 7 ? 0 : i + 8 > count ? count - 15 : i - 7;
            last = first + 15;
        }
        for (size_t j = first; j < last; j++)
            for (size_t k = 0; k < DIM; k++) {
                if (before[j] != SF_NONE) a[k] += (double)vectors[before[j] * DIM + k];
                if (after[j] != SF_NONE) b[k] += (double)vectors[after[j] * DIM + k];
            }
        for (size_t k = 0; k < DIM; k++) ab += a[k] * b[k], aa += a[k] * a[k], bb += b[k] * b[k];
        if (!(aa > 0 && bb > 0 && ab >= least * sqrt(aa) * sqrt(bb))) return 0;
    }
    return 1;
}

static void test_windows(void **state)
{
    (void)state;
    float vectors[WORDS * DIM];
    size_t alike = 0, unlike = 0;
    next_seed(3);
    for (size_t i = 0; i < WORDS * DIM; i++) vectors[i] = i / DIM == 5 ? 0 : next_float(); /* ff has none */
    sf_vectors_normalise(vectors, WORDS, DIM, 1);
    for (int trial = 0; trial < 4000; trial++) {
        uint32_t before[MANY], after[MANY];
        const size_t count = next_below(MANY + 1);
        const sf_likeness l = {.vectors = vectors, .dim = DIM, .min_similarity = 0.5 + next_below(50) * 0.01};
        for (size_t i = 0; i < count; i++) {
            before[i] = after[i] = next_below(8) ? next_below(WORDS) : SF_NONE;
            if (before[i] != SF_NONE && !next_below(3)) after[i] = next_below(WORDS);
        }
        const int found = sf_likeness_texts(&l, before, after, count);
        assert_int_equal(found, alike_by_definition(vectors, l.min_similarity, before, after, count));
        alike += found == 1;
        unlike += found == 0;
    }
    printf("%zu texts alike, %zu not\n", alike, unlike);
    assert_true(alike > 500 && unlike > 500);
}

/* A change seven words away is in the window, one eight words away is not. */
static void test_window_is_fifteen_words(void **state)
{
    (void)state;
    const float vectors[] = {1, 0, 0, 1};
    const sf_likeness l = {.vectors = (float *)(uintptr_t)vectors, .dim = 2, .min_similarity = 0.99};
    uint32_t before[MANY] = {0}, after[MANY] = {0};
    after[20] = 1;
    assert_true(sf_likeness_texts(&l, before, after, MANY)); /* 14 of 15 words are as they were: cosine 0.997 */
    after[28] = 1;
    assert_true(sf_likeness_texts(&l, before, after, MANY));
    after[27] = 1;
    assert_false(sf_likeness_texts(&l, before, after, MANY)); /* 13 of 15: 0.988 */
}

/* ------------------------------------------------------------------- attacks */

/* Each of the tiny lexicon's words is a noun, a verb, both, or neither; vectors are whole numbers. */
typedef struct nature {
    unsigned parts[WORDS];
    float vectors[WORDS * DIM];
} nature;

static safer_attack_options make_nature(nature *n, uint32_t seed, unsigned which)
{
    static char nouns[200], verbs[200], file[400];
    static const char *const files[8][2] = {{"index.noun", nouns}, {"noun.exc", ""},  {"index.verb", verbs},
                                            {"verb.exc", ""},      {"index.adj", ""}, {"adj.exc", ""},
                                            {"index.adv", ""},     {"adv.exc", ""}};
    safer_attack_options o = safer_attack_options_default();
    *nouns = *verbs = *file = '\0';
    for (uint32_t w = 0; w < WORDS; w++) {
        n->parts[w] = tiny_below(seed, 5000 + w, 4);
        if (n->parts[w] & 1) strcat(strcat(nouns, names[w]), " n 1 0\n");
        if (n->parts[w] & 2) strcat(strcat(verbs, names[w]), " v 1 0\n");
        if (!n->parts[w]) n->parts[w] = 4;
        int numbers[DIM];
        for (uint32_t k = 0; k < DIM; k++) numbers[k] = (int)tiny_below(seed, 5100 + DIM * w + k, 5) - 1;
        if (!numbers[0] && !numbers[1] && !numbers[2]) numbers[0] = 1; /* no direction */
        for (uint32_t k = 0; k < DIM; k++) n->vectors[w * DIM + k] = (float)numbers[k];
        sprintf(file + strlen(file), "%s %d %d %d\n", names[w], numbers[0], numbers[1], numbers[2]);
    }
    sf_vectors_normalise(n->vectors, WORDS, DIM, 1);
    if (which & 1) o.same_pos = write_wordnet(files);
    if (which & 6) o.vectors = write_temporary("vectors.txt", file, strlen(file));
    if (which & 2) o.min_cosine = 0.4;
    if (which & 4) o.min_similarity = 0.9;
    return o;
}

/* Whether a text breaks none of the constraints, by their definition. */
static int is_natural(const nature *n, const safer_attack_options *o, const uint32_t *text, const uint32_t *other,
                      size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const float *a = n->vectors + text[i] * DIM, *b = n->vectors + other[i] * DIM;
        const double cosine = (double)a[0] * (double)b[0] + (double)a[1] * (double)b[1] + (double)a[2] * (double)b[2];
        if (text[i] == other[i]) continue;
        if (o->same_pos && !(n->parts[text[i]] & n->parts[other[i]])) return 0;
        if (o->min_cosine > 0 && cosine < o->min_cosine) return 0;
    }
    return !(o->min_similarity > 0) || alike_by_definition(n->vectors, o->min_similarity, text, other, length);
}

/* Whether some text in reach is answered otherwise; `any`: whatever is replaced by what. */
static int can_fool(const safer_lexicon *l, const any_model *m, const nature *n, const safer_attack_options *o,
                    const uint32_t *text, size_t length, int y)
{
    uint32_t other[LONGEST] = {0};
    char bytes[32];
    for (;;) {
        int reachable = 1;
        for (size_t i = 0; i < length; i++) {
            const safer_word w = safer_lexicon_word(l, text[i]);
            int synonym = other[i] == text[i] || o->method == SAFER_ATTACK_OUTOFLIST;
            for (size_t k = 0; k < w.synonym_count; k++) synonym |= w.synonyms[k] == other[i];
            reachable &= synonym;
        }
        if (reachable && is_natural(n, o, text, other, length) &&
            any_answer(m, bytes, write_text(bytes, other, length), NULL) != y)
            return 1;
        size_t i = 0;
        while (i < length && ++other[i] == WORDS) other[i++] = 0;
        if (i == length) return 0;
    }
}

static void read_words(uint32_t *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        out[i] = WORDS;
        for (uint32_t w = 0; w < WORDS; w++)
            if (strncmp(text + 3 * i, names[w], 2) == 0) out[i] = w;
        assert_true(out[i] < WORDS);
    }
}

/* One method with one set of constraints on many small texts. */
static void try_method(safer_attack_method method, unsigned which, int smoothed)
{
    size_t possible = 0, found = 0, without = 0;
    for (uint32_t seed = 0; seed < 150; seed++) {
        safer_lexicon *l = make_tiny_lexicon(seed, "topk:1", 0,
                                             0); /* every word draws itself: smoothing changes nothing */
        nature n;
        any_model m;
        safer_attacker *attacker = NULL;
        safer_attack_options o = make_nature(&n, seed, which), plain = safer_attack_options_default();
        make_model(&m, seed, 2 + seed % 2, 0);
        m.additive = 1;
        o.method = plain.method = method;
        o.smoothed = smoothed;
        o.iterations = 8;
        for (uint32_t k = 0; k < 8; k++) {
            uint32_t text[LONGEST], new[LONGEST];
            char bytes[32];
            const size_t length = 2 + tiny_below(seed, 6000 + k, LONGEST - 1);
            for (uint32_t i = 0; i < length; i++) text[i] = tiny_below(seed, 6100 + LONGEST * k + i, WORDS);
            safer_attack_result r;
            assert_ok(
                safer_attack_text(&r, &attacker, &m.base, l, bytes, write_text(bytes, text, length), -1, &o, &error));
            const int can = can_fool(l, &m, &n, &o, text, length, r.before);
            possible += (size_t)can;
            without += (size_t)can_fool(l, &m, &n, &plain, text, length, r.before);
            if (r.outcome != SAFER_OUTCOME_SUCCEEDED) continue;
            assert_true(can);
            read_words(new, r.text, length);
            assert_true(is_natural(&n, &o, text, new, length));
            found++;
        }
        safer_attacker_free(attacker);
        safer_lexicon_free(l);
    }
    printf("%s, constraints %u: %zu of %zu possible successes found, %zu possible without\n",
           safer_attack_method_name(method), which, found, possible, without);
    assert_true(possible > 10 && possible < without);
    assert_true((double)found > 0.8 * (double)possible);
}

static void test_attacks(void **state)
{
    (void)state;
    static const safer_attack_method methods[] = {SAFER_ATTACK_TEXTFOOLER, SAFER_ATTACK_GENETIC, SAFER_ATTACK_PWWS,
                                                  SAFER_ATTACK_RANDOM, SAFER_ATTACK_OUTOFLIST};
    for (size_t i = 0; i < COUNT(methods); i++) {
        static const unsigned sets[] = {1, 2, 4, 7};
        for (size_t k = 0; k < COUNT(sets); k++) try_method(methods[i], sets[k], 0);
    }
    try_method(SAFER_ATTACK_TEXTFOOLER, 7, 1);
}

/* The configuration says what was asked for, by digests of the files; a run with other constraints is not continued. */
static void test_config(void **state)
{
    (void)state;
    nature n;
    any_model m;
    safer_attack_summary s;
    safer_lexicon *l = make_tiny_lexicon(3, "topk:1", 0, 0);
    safer_data *data = make_tiny_data(5);
    safer_attack_options o = make_nature(&n, 3, 7);
    const char *path = temporary("attack.jsonl");
    make_model(&m, 3, 2, 0);
    assert_ok(safer_attack(&s, path, 0, &m.base, l, data, &o, &error));
    char *records = records_of(path);
    records[strcspn(records, "\n")] = '\0';
    assert_non_null(strstr(records, "\"same_pos\":"));
    assert_non_null(strstr(records, "\"vectors\":"));
    assert_non_null(strstr(records, "\"min_cosine\":"));
    assert_non_null(strstr(records, "\"min_similarity\":"));
    free(records);
    safer_run *run = NULL;
    assert_ok(safer_run_read(&run, path, &error));
    safer_run_free(run);
    o.min_cosine = 0.5;
    assert_fails(safer_attack(&s, path, 1, &m.base, l, data, &o, &error), SAFER_INPUT, "min_cosine");
    safer_data_free(data);
    safer_lexicon_free(l);
}

static void test_bad_options(void **state)
{
    (void)state;
    any_model m;
    safer_attack_summary s;
    safer_against_summary found;
    safer_attack_options o;
    safer_lexicon *l = make_tiny_lexicon(3, "topk:1", 0, 0);
    safer_data *data = make_tiny_data(3);
    const char *vectors = write_temporary("others.txt", "zz 1 2\nyy 2 3\n", 14);
    make_model(&m, 3, 2, 0);
#define BAD(change, status, words) \
    o = safer_attack_options_default(); \
    change; \
    assert_fails(safer_attack(&s, NULL, 0, &m.base, l, data, &o, &error), status, words)
    BAD(o.min_cosine = 1.5, SAFER_INVALID, "min_cosine: 1.5");
    BAD(o.min_cosine = (double)NAN, SAFER_INVALID, "min_cosine");
    BAD(o.min_similarity = -0.5, SAFER_INVALID, "min_similarity: -0.5");
    BAD(o.min_similarity = 0.5, SAFER_INVALID, "vectors: min_cosine");
    BAD(o.vectors = vectors, SAFER_INVALID, "vectors: only");
    BAD((o.same_pos = "/nonexistent", o.method = SAFER_ATTACK_TYPO), SAFER_INVALID, "typo does not replace words");
    BAD(o.same_pos = "/nonexistent", SAFER_SYSTEM, "/nonexistent/index.noun");
    BAD((o.vectors = vectors, o.min_cosine = 0.5), SAFER_INPUT, "has a vector for no word of the lexicon");
#undef BAD
    o = safer_attack_options_default();
    o.same_pos = "/nonexistent";
    assert_fails(safer_attack_against(&found, "none.jsonl", NULL, 0, &m.base, l, data, &o, &error), SAFER_INVALID,
                 "not against certificates");
    safer_data_free(data);
    safer_lexicon_free(l);
}

static safer_status attack_once(void *context, safer_error *e)
{
    world *w = context;
    nature n;
    safer_attack_summary s;
    safer_attack_options o = make_nature(&n, 4, 7);
    o.method = w->method;
    o.threads = 1;
    o.population = 3;
    o.iterations = 2;
    o.tries = 3;
    return safer_attack(&s, NULL, 0, &w->model.base, w->lexicon, w->data, &o, e);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    for (int method = 0; method < SAFER_ATTACKS; method++) {
        w.method = (safer_attack_method)method;
        if (method <= SAFER_ATTACK_RANDOM || method == SAFER_ATTACK_OUTOFLIST) check_every_allocation(attack_once, &w);
    }
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),       cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_windows),     cmocka_unit_test(test_window_is_fifteen_words),
        cmocka_unit_test(test_attacks),     cmocka_unit_test(test_config),
        cmocka_unit_test(test_bad_options), cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
