/* Which kernel is chosen: where a long chain of synonyms leads from one class to the other, the one that keeps
 * neighbours; where nothing distinguishes them, the simplest; and none is tried where labels say nothing. */
#define _GNU_SOURCE
#include "support.h"

#include "base/buffer.h"
#include "base/file.h"
#include "certify/trials.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static safer_error error;

enum { CHAIN = 400 };

/* The i-th word of a chain: three letters. */
static const char *word(char out[8], size_t i)
{
    snprintf(out, 8, "q%c%c", (int)('a' + i / 26), (int)('a' + i % 26));
    return out;
}

static const char *add(sf_buffer *out, const char *format, const char *a, const char *b)
{
    char line[128];
    const int length = snprintf(line, sizeof line, format, a, b);
    assert_int_equal(sf_buffer_add(out, line, (size_t)length), 0);
    return out->bytes;
}

/* Synonyms in a row, each of the one before: a single component. */
static safer_lexicon *chain(void)
{
    sf_buffer table = {0};
    char a[8], b[8];
    for (size_t i = 0; i + 1 < CHAIN; i++) add(&table, "%s\t%s\n", word(a, i), word(b, i + 1));
    assert_int_equal(sf_buffer_add_byte(&table, '\0'), 0);
    safer_lexicon *l = import_table(table.bytes, "component");
    sf_buffer_free(&table);
    return l;
}

/* Every word of the chain in texts of its own: one class has the first half of it, the other the second; or, as
 * asked for, all texts are of one class, or the class is told by a word without synonyms. */
typedef enum telling { BY_HALF, BY_OTHER_WORD, NOT_AT_ALL, UNLABELLED } telling;

static safer_data *texts_of(telling how, size_t count)
{
    static char texts[2000][64];
    static const char *pointers[2000], *labels[2000];
    safer_data *data = NULL;
    char w[8];
    assert_true(count <= COUNT(texts));
    for (size_t i = 0; i < count; i++) {
        const size_t at = i * 7 % CHAIN;
        const int second = how == BY_HALF ? at >= CHAIN / 2 : i % 2 == 1;
        snprintf(texts[i], sizeof texts[i], "%s was %s", word(w, at), how == BY_OTHER_WORD && second ? "lost" : "won");
        pointers[i] = texts[i];
        labels[i] = how == UNLABELLED ? NULL : how == NOT_AT_ALL || !second ? "no" : "yes";
    }
    assert_ok(safer_data_from_texts(&data, pointers, NULL, labels, NULL, count, &error));
    return data;
}

/* Heads of so many even coins, by counting all their falls. */
static double chance_of(size_t won, size_t coins)
{
    size_t enough = 0;
    for (size_t falls = 0; falls < (size_t)1 << coins; falls++) enough += (size_t)__builtin_popcountll(falls) >= won;
    return (double)enough / (double)((size_t)1 << coins);
}

/* Every outcome of two ways on up to 14 texts that one of them alone holds. */
static void test_the_rule(void **state)
{
    (void)state;
    size_t taken = 0;
    for (size_t won = 0; won <= 14; won++)
        for (size_t lost = 0; won + lost <= 14; lost++) {
            double p = -1;
            const double chance = chance_of(won, won + lost);
            const int better = sf_trial_is_better(&p, won, lost);
            assert_true(p >= chance && p <= chance + 1e-9);
            assert_int_equal(better, chance <= 0.05);
            taken += (size_t)better;
        }
    assert_in_range(taken, 20, 40); /* five of five are enough, four of four are not */
    double p;
    assert_true(sf_trial_is_better(&p, 5, 0));
    assert_false(sf_trial_is_better(&p, 4, 0));
    assert_false(sf_trial_is_better(&p, 471, 469)); /* of MR: component and representative */
}

/* Every word of the chain has a synonym of its own, so that models know all of them. */
static safer_lexicon *pairs(void)
{
    sf_buffer table = {0};
    char w[8], other[16];
    for (size_t i = 0; i < CHAIN; i++) {
        snprintf(other, sizeof other, "z%s", word(w, i));
        add(&table, "%s\t%s\n", w, other);
    }
    assert_int_equal(sf_buffer_add_byte(&table, '\0'), 0);
    safer_lexicon *l = import_table(table.bytes, "representative");
    sf_buffer_free(&table);
    return l;
}

/* Vectors that say which half of the chain a word is of. */
static const char *write_vectors(void)
{
    static char path[64];
    char w[8];
    strcpy(path, "/tmp/safer-vectors-XXXXXX");
    const int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    assert_non_null(file);
    for (size_t i = 0; i < CHAIN; i++) {
        const int half = i < CHAIN / 2 ? -1 : 1;
        fprintf(file, "%s %d 0.5\nz%s %d 0.5\n", word(w, i), half, word(w, i), half);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static safer_choice train_choosing(const char *path, const char *vectors, int threads)
{
    safer_choice choice;
    safer_model *model = NULL;
    safer_lexicon *l = pairs();
    safer_data *data = texts_of(BY_HALF, 400);
    safer_train_options o = safer_train_options_default();
    o.train = data;
    o.lexicon = l;
    o.threads = threads;
    o.ngram.bits = 16;
    o.cnn.vectors = vectors;
    o.cnn.filters = o.cnn.hidden = 8;
    o.course.rate = 0.05;
    o.course.dropout = 0;
    assert_ok(safer_train_choose(path, &o, &choice, NULL, &error));
    assert_ok(safer_model_open(&model, path, &error));
    assert_string_equal(safer_model_arch(model), choice.untried ? "ngram" : choice.trials[choice.best].name);
    safer_model_free(model);
    safer_data_free(data);
    safer_lexicon_free(l);
    return choice;
}

/* What was tried, what was taken of it, and that threads make no difference. */
static void test_architectures(void **state)
{
    (void)state;
    char path[64] = "/tmp/safer-model-XXXXXX", other[64] = "/tmp/safer-model-XXXXXX";
    const int fds[] = {mkstemp(path), mkstemp(other)};
    assert_true(fds[0] >= 0 && fds[1] >= 0);
    const char *vectors = write_vectors();
    const safer_choice c = train_choosing(path, vectors, 1), d = train_choosing(other, vectors, 3);
    assert_null(c.untried);
    assert_int_equal(c.trial_count, 3);
    assert_string_equal(c.trials[0].name, "ngram");
    assert_string_equal(c.trials[1].name, "bow");
    assert_string_equal(c.trials[2].name, "cnn");
    for (size_t i = 0, best = 0; i < 3; i++) { /* whichever is better by more than chance than the best before it */
        assert_in_range(c.trials[i].certified_answered, 200, 400);
        if (i && c.trials[i].p_value <= 0.05) best = i;
        if (i == 2) assert_int_equal(c.best, best);
    }
    assert_int_equal(c.best, d.best);
    sf_file one, two;
    assert_ok(sf_file_read(&one, path, &error));
    assert_ok(sf_file_read(&two, other, &error));
    assert_int_equal(one.length, two.length);
    assert_memory_equal(one.bytes, two.bytes, one.length); /* threads make no difference */
    assert_non_null(memmem(one.bytes, one.length, "arch_choice", 11));
    sf_file_free(&one);
    sf_file_free(&two);
    const safer_choice plain = train_choosing(path, NULL, 2);
    assert_string_equal(plain.untried, "there are no word vectors");
    unlink(path);
    unlink(other);
    unlink(vectors);
}

static void test_refused_architectures(void **state)
{
    (void)state;
    safer_data *data = texts_of(BY_HALF, 300);
    safer_train_options o = safer_train_options_default();
    o.train = data;
    o.resume = 1;
    assert_fails(safer_train_choose("x", &o, NULL, NULL, &error), SAFER_INVALID, "resume needs arch");
    o.resume = 0;
    o.device = "cuda";
    assert_fails(safer_train_choose("x", &o, NULL, NULL, &error), SAFER_INVALID, "device needs arch");
    o.device = NULL;
    o.bert.encoder = "x";
    assert_fails(safer_train_choose("x", &o, NULL, NULL, &error), SAFER_INVALID, "encoder needs arch");
    o.bert.encoder = NULL;
    o.arch_choice = "[]";
    assert_fails(safer_train("x", &o, NULL, &error), SAFER_INVALID, "what was tried is not a JSON object");
    safer_data_free(data);
}

static safer_choice choose(char sha256[65], telling how, size_t count, size_t most, int threads)
{
    safer_choice choice;
    safer_lexicon *l = chain(), *chosen = NULL;
    safer_data *data = texts_of(how, count);
    safer_choose_options o = safer_choose_options_default();
    o.most_texts = most;
    o.threads = threads;
    assert_ok(safer_lexicon_choose(&chosen, &choice, l, data, &o, &error));
    assert_string_equal(safer_lexicon_describe(chosen).kernel,
                        choice.untried ? "representative" : choice.trials[choice.best].name);
    assert_int_equal(strstr(safer_lexicon_describe(chosen).provenance, "kernel_choice") != NULL, !choice.untried);
    snprintf(sha256, 65, "%s", safer_lexicon_sha256(chosen));
    safer_lexicon_free(chosen);
    safer_lexicon_free(l);
    safer_data_free(data);
    return choice;
}

static void test_the_best(void **state)
{
    (void)state;
    char sha256[65], again[65];
    const safer_choice c = choose(sha256, BY_HALF, 1600, 10000, 1);
    assert_null(c.untried);
    assert_int_equal(c.labelled, 1600);
    assert_int_equal(c.texts, 1600);
    assert_int_equal(c.held_out, 1600);
    assert_int_equal(c.trial_count, 4); /* the component has more than 250 words */
    assert_string_equal(c.trials[0].name, "representative");
    assert_int_equal(c.trials[0].texts, 1600);
    assert_int_equal(c.trials[0].queries, 1600);                /* one reading of each text */
    assert_in_range(c.trials[0].certified_answered, 600, 1000); /* which says nothing of its class */
    assert_true(c.trials[0].p_value == 1);
    assert_string_equal(c.trials[2].name, "topk:100");
    assert_int_equal(c.best, 2);
    assert_in_range(c.trials[2].certified_answered, 1300, 1600);
    assert_true(c.trials[2].won > c.trials[2].lost && c.trials[2].p_value < 1e-6);
    for (size_t i = 0; i < c.trial_count; i++) /* all texts, or whole parts until it was hopeless */
        assert_true(c.trials[i].texts == 1600 || (i != c.best && c.trials[i].texts >= 320));
    const safer_choice d = choose(again, BY_HALF, 1600, 10000, 3);
    for (size_t i = 0; i < c.trial_count; i++) {
        assert_int_equal(c.trials[i].certified_answered, d.trials[i].certified_answered);
        assert_int_equal(c.trials[i].won, d.trials[i].won);
    }
    assert_string_equal(sha256, again); /* threads make no difference */
}

static void test_the_simplest_of_equals(void **state)
{
    (void)state;
    char sha256[65];
    const safer_choice c = choose(sha256, BY_OTHER_WORD, 500, 300, 2);
    assert_int_equal(c.labelled, 500);
    assert_int_equal(c.texts, 300); /* drawn from them */
    assert_int_equal(c.best, 0);
    assert_int_equal(c.trials[0].certified_answered, c.held_out);
    assert_int_equal(c.trials[1].certified_answered, c.held_out);
}

static void test_nothing_to_try(void **state)
{
    (void)state;
    char sha256[65];
    safer_choice c = choose(sha256, NOT_AT_ALL, 300, 10000, 1);
    assert_string_equal(c.untried, "the data has fewer than two classes");
    c = choose(sha256, UNLABELLED, 300, 10000, 1);
    assert_string_equal(c.untried, "the data has fewer than two classes");
    c = choose(sha256, BY_HALF, 199, 10000, 1);
    assert_string_equal(c.untried, "the data has fewer than 200 labelled texts");

    safer_lexicon *l = chain(), *chosen = NULL, *none = import_table("good\tgood\n", "component");
    assert_ok(safer_lexicon_choose(&chosen, &c, l, NULL, NULL, &error));
    assert_string_equal(c.untried, "there is no data");
    safer_lexicon_free(chosen);
    safer_data *data = texts_of(BY_HALF, 300);
    assert_ok(safer_lexicon_choose(&chosen, &c, none, data, NULL, &error));
    assert_string_equal(c.untried, "no word has a synonym");
    safer_lexicon_free(chosen);
    safer_data_free(data);
    safer_lexicon_free(none);
    safer_lexicon_free(l);
}

static int stop_at_component(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)context, (void)done, (void)total;
    return strncmp(stage, "kernel component, 1 of 5: ", 26) == 0;
}

static void test_failures(void **state)
{
    (void)state;
    safer_lexicon *l = chain(), *chosen = NULL;
    safer_data *data = texts_of(BY_HALF, 300);
    safer_choose_options o = safer_choose_options_default();
    o.progress.report = stop_at_component;
    assert_fails(safer_lexicon_choose(&chosen, NULL, l, data, &o, &error), SAFER_CANCELLED, "");
    o = safer_choose_options_default();
    o.most_texts = 199;
    assert_fails(safer_lexicon_choose(&chosen, NULL, l, data, &o, &error), SAFER_INVALID, "most_texts: 199");
    o = safer_choose_options_default();
    o.threads = -1;
    assert_fails(safer_lexicon_choose(&chosen, NULL, l, data, &o, &error), SAFER_INVALID, "threads: -1");
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;
    setenv("TMPDIR", "/nowhere/at/all", 1);
    assert_fails(safer_lexicon_choose(&chosen, NULL, l, data, NULL, &error), SAFER_SYSTEM, "/nowhere/at/all (TMPDIR)");
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    assert_null(chosen);
    safer_data_free(data);
    safer_lexicon_free(l);
}

typedef struct given {
    safer_lexicon *lexicon;
    safer_data *data;
} given;

static safer_status choose_once(void *context, safer_error *e)
{
    const given *g = context;
    safer_lexicon *chosen = NULL;
    safer_choose_options o = safer_choose_options_default();
    o.threads = 1;
    const safer_status status = safer_lexicon_choose(&chosen, NULL, g->lexicon, g->data, &o, e);
    safer_lexicon_free(chosen);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    given g = {chain(), texts_of(NOT_AT_ALL, 300)};
    check_every_allocation(choose_once, &g);
    safer_data_free(g.data);
    safer_lexicon_free(g.lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best),       cmocka_unit_test(test_the_simplest_of_equals),
        cmocka_unit_test(test_nothing_to_try), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_out_of_memory),  cmocka_unit_test(test_the_rule),
        cmocka_unit_test(test_architectures),  cmocka_unit_test(test_refused_architectures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
