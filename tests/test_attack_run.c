/* Attacks on data sets: threads, batches, resume, models of every kind, mistakes. What an attack finds in one text is
 * in test_attack.c, attacks on certificates in test_against.c. */
#define _GNU_SOURCE
#include "test_attack.h"

/* ---------------------------------------------------------------------- run */

static void count_line(void *context, const char *record)
{
    assert_int_equal(record[0], '{');
    ++*(size_t *)context;
}

/* The same bytes with any threads and batches, with and without the fast path, cut anywhere
 * and resumed. */
static void test_run(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(8, "weighted", 0, 0);
    safer_data *data = make_tiny_data(60);
    const struct {
        int threads;
        size_t batch;
        const sf_model_class *class;
    } ways[] = {{2, 256, &any_class}, {5, 7, &any_class}, {1, 1, &fast_class}, {3, 1000, &fast_class}};
    for (int method = 0; method < SAFER_ATTACKS; method++)
        for (int smoothed = 0; smoothed < 2; smoothed++) {
            any_model m;
            safer_attack_summary first, other;
            safer_attack_options o = safer_attack_options_default();
            size_t lines = 0;
            const char *path = temporary("attack.jsonl");
            unlink(path);
            make_model(&m, 3, 2, 100);
            o.method = (safer_attack_method)method;
            o.smoothed = smoothed;
            o.n = 30;
            o.threads = 1;
            o.iterations = 3;
            o.population = 10;
            o.each = count_line;
            o.each_context = &lines;
            assert_ok(safer_attack(&first, path, 0, &m.base, l, data, &o, &error));
            assert_int_equal(first.texts, 60);
            assert_int_equal(lines, 60);
            const int typo = method == SAFER_ATTACK_TYPO; /* words of two letters: none can be mistyped */
            assert_true(first.skipped > 0 && first.queries >= 60);
            assert_true(o.method >= SAFER_ATTACK_HOMOGLYPH || first.without_choices >= 1);
            if (!smoothed) assert_true(typo == (first.queries == 60));
            if (!smoothed && !typo) assert_true(first.succeeded > 5);
            assert_int_equal(first.queries + first.checks + first.words, atomic_load(&m.asked));
            char *expected = records_of(path);
            for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
                const char *again = temporary("again.jsonl");
                unlink(again);
                m.base.class = ways[i].class;
                o.threads = ways[i].threads;
                o.batch = ways[i].batch;
                assert_ok(safer_attack(&other, again, 0, &m.base, l, data, &o, &error));
                char *got = records_of(again);
                assert_string_equal(got, expected);
                free(got);
            }
            sf_file whole = {0};
            assert_ok(sf_file_load(&whole, path, &error));
            char *bytes = malloc(whole.length);
            memcpy(bytes, whole.bytes, whole.length);
            const size_t length = whole.length;
            sf_file_free(&whole);
            for (uint32_t i = 0; i < 10; i++) {
                const char *part = write_temporary("part.jsonl", bytes, tiny_below(i, 77, (uint32_t)length + 1));
                lines = 0;
                assert_ok(safer_attack(&other, part, 1, &m.base, l, data, &o, &error));
                char *got = records_of(part);
                assert_string_equal(got, expected);
                free(got);
                assert_int_equal(other.succeeded, first.succeeded);
                assert_int_equal(lines, 60);
            }
            o.seed = 2;
            assert_fails(safer_attack(&other, path, 1, &m.base, l, data, &o, &error), SAFER_INPUT,
                         "belongs to another run");
            free(bytes);
            free(expected);
        }
    safer_data_free(data);
    safer_lexicon_free(l);
}

static int stop_soon(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage, (void)done, (void)total;
    return ++*(int *)context > 1;
}

static void test_cancel(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(8, "topk:2", 0, 0);
    safer_data *data = make_tiny_data(20);
    any_model m;
    int calls = 1;
    safer_attack_summary s;
    safer_attack_options o = safer_attack_options_default();
    o.progress = (safer_progress){stop_soon, &calls};
    make_model(&m, 1, 2, 0);
    assert_fails(safer_attack(&s, NULL, 0, &m.base, l, data, &o, &error), SAFER_CANCELLED, "cancelled");
    safer_data_free(data);
    safer_lexicon_free(l);
}

/* --------------------------------------------------------- remote models */

static int say_none(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)texts, (void)lengths;
    for (size_t i = 0; i < count; i++) labels[i] = *(int *)context;
    return 0;
}

/* "aa" is 0, all else 1; labels only. */
static int say_by_word(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)context, (void)lengths;
    for (size_t i = 0; i < count; i++) labels[i] = strstr(texts[i], "aa") ? 0 : 1;
    return 0;
}

static int say_at_random(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)texts, (void)lengths;
    for (size_t i = 0; i < count; i++) labels[i] = (int)tiny_below(++*(uint64_t *)context, 5, 2);
    return 0;
}

static void test_other_answers(void **state)
{
    (void)state;
    const char *const labels[] = {"0", "1"};
    safer_remote_options remote = safer_remote_options_default();
    safer_lexicon *l = make_tiny_lexicon(5, "component", 0, 0);
    uint32_t synonym = SAFER_NO_WORD;
    assert_true(safer_lexicon_word(l, 0).synonym_count > 0);
    synonym = safer_lexicon_word(l, 0).synonyms[0];
    remote.labels = labels;
    remote.label_count = 2;
    for (int smoothed = 0; smoothed < 2; smoothed++)
        for (int method = 0; method < EXCHANGES; method++) {
            safer_model *model = NULL;
            safer_attacker *attacker = NULL;
            safer_attack_result r;
            safer_attack_options o = safer_attack_options_default();
            int none = -1;
            uint64_t counter = 0;
            char text[16];
            o.method = (safer_attack_method)method;
            o.smoothed = smoothed;
            o.iterations = 4;
            assert_ok(safer_model_from_callback(&model, say_none, &none, &remote, &error));
            assert_ok(safer_attack_text(&r, &attacker, model, l, "aa bb", 5, 0, &o, &error));
            assert_int_equal(r.outcome, SAFER_OUTCOME_SKIPPED);
            assert_string_equal(r.reason, "the classifier gives no answer");
            safer_attacker_free(attacker);
            safer_model_free(model);
            attacker = NULL;
            assert_ok(safer_model_from_callback(&model, say_by_word, NULL, &remote, &error));
            snprintf(text, sizeof text, "aa %s", names[synonym]);
            assert_ok(safer_attack_text(&r, &attacker, model, l, text, 5, 0, &o, &error));
            if (!smoothed) assert_int_equal(r.outcome, SAFER_OUTCOME_SUCCEEDED); /* one word, whatever the scores */
            safer_attacker_free(attacker);
            safer_model_free(model);
            attacker = NULL;
            remote.random = 1;
            assert_ok(safer_model_from_callback(&model, say_at_random, &counter, &remote, &error));
            assert_ok(safer_attack_text(&r, &attacker, model, l, "aa bb cc dd", 11, -1, &o, &error));
            assert_true(r.queries >= 1);
            safer_attacker_free(attacker);
            safer_model_free(model);
            remote.random = 0;
        }
    safer_lexicon_free(l);
}

/* Logits that overflow leave no probabilities. */
static safer_status overflown_classify(const safer_model *model, const sf_span *texts, size_t count, int *labels,
                                       float *scores, void *scratch, safer_error *e)
{
    safer_status status = any_classify(model, texts, count, labels, scores, scratch, e);
    for (size_t i = 0; scores && i < count * model->classes; i++) scores[i] = i % 3 ? NAN : INFINITY;
    return status;
}

static void test_scores_that_are_none(void **state)
{
    (void)state;
    const sf_model_class overflown = {.arch = "bow", .classify = overflown_classify};
    safer_lexicon *l = make_tiny_lexicon(8, "component", 0, 0);
    safer_data *data = make_tiny_data(30);
    for (int method = 0; method < SAFER_ATTACKS; method++) {
        any_model m;
        safer_attack_summary s;
        safer_attack_options o = safer_attack_options_default();
        make_model(&m, 8, 2, 0);
        m.base.class = &overflown;
        o.method = (safer_attack_method)method;
        o.iterations = 3;
        assert_ok(safer_attack(&s, NULL, 0, &m.base, l, data, &o, &error));
        assert_true(s.texts == 30 && (s.succeeded > 0 || method == SAFER_ATTACK_TYPO)); /* answers are answers */
    }
    safer_data_free(data);
    safer_lexicon_free(l);
}

/* ------------------------------------------------------------- real models */

/* One preparation for all texts in reach answers as the texts written out do, for every
 * architecture with a fast path. */
static void test_fast_paths(void **state)
{
    (void)state;
    static const char *const archs[] = {"ngram", "bow", "cnn", "charcnn"};
    safer_data *data = make_tiny_data(50);
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++)
        for (int k = 0; k < 2; k++) {
            safer_lexicon *l = make_tiny_lexicon(8, k ? "topk:2" : "weighted", 0, 0);
            safer_model *model = NULL;
            safer_attack_summary s;
            safer_attack_options o = safer_attack_options_default();
            safer_train_options t = safer_train_options_default();
            const char *file = temporary("trained"), *fast_records = temporary("fast.jsonl"),
                       *slow_records = temporary("slow.jsonl");
            unlink(fast_records);
            unlink(slow_records);
            assert_ok(safer_arch_parse(&t.arch, archs[i], &error));
            t.train = t.dev = data;
            t.lexicon = l;
            t.ngram.bits = 10;
            t.course.epochs = 1;
            t.cnn.min_count = 1;
            t.cnn.dim = t.cnn.filters = t.cnn.hidden = 8;
            if (t.arch == SAFER_ARCH_CHARCNN) t.charcnn.characters = 200; /* more than a text has */
            assert_ok(safer_train(file, &t, NULL, &error));
            assert_ok(safer_model_open(&model, file, &error));
            sf_model_class slow = *model->class;
            const sf_model_class *quick = model->class;
            assert_non_null(slow.prepare);
            slow.prepare = NULL;
            o.smoothed = 1;
            o.n = 20;
            o.population = 6;
            o.iterations = 2;
            o.method = k ? SAFER_ATTACK_TEXTFOOLER : SAFER_ATTACK_GENETIC;
            assert_ok(safer_attack(&s, fast_records, 0, model, l, data, &o, &error));
            model->class = &slow;
            assert_ok(safer_attack(&s, slow_records, 0, model, l, data, &o, &error));
            model->class = quick;
            char *a = records_of(fast_records), *b = records_of(slow_records);
            assert_string_equal(a, b);
            assert_true(s.queries > 1000);
            free(a);
            free(b);
            safer_model_free(model);
            safer_lexicon_free(l);
        }
    safer_data_free(data);
}

/* ---------------------------------------------------------- bad parameters */

static void test_bad_options(void **state)
{
    (void)state;
    safer_lexicon *l = make_tiny_lexicon(1, "component", 0, 0);
    safer_data *data = make_tiny_data(3);
    any_model m;
    safer_attacker *attacker = NULL;
    safer_attack_result r;
    safer_attack_summary s;
    safer_attack_options o;
    make_model(&m, 1, 2, 0);
#define BAD(field, value, words) \
    o = safer_attack_options_default(); \
    o.field = value; \
    assert_fails(safer_attack(&s, NULL, 0, &m.base, l, data, &o, &error), SAFER_INVALID, words)
    BAD(method, (safer_attack_method)SAFER_ATTACKS, "method");
    BAD(n, 0, "n:");
    BAD(n, UINT64_MAX, "n:");
    BAD(smoothed, (o.max_queries = 199, 1), "max_queries: 199, but one vote may take n = 200");
    BAD(radius, 0, "radius");
    BAD(population, 1, "population");
    BAD(iterations, -1, "iterations");
    BAD(tries, 0, "tries");
    BAD(alpha, 0, "alpha");
    BAD(alpha, (double)NAN, "alpha");
    BAD(threads, -1, "threads");
    BAD(batch, 0, "batch");
    BAD(words, 0, "words");
    BAD(deletion.chance, 0.5, "deletion");
    BAD(deletion.keep, 5, "deletion");
    BAD(smoothed, (o.deletion.chance = 1, 1), "deletion: 1");
#undef BAD
    o = safer_attack_options_default();
    assert_fails(safer_attack_text(&r, &attacker, &m.base, l, "aa", 2, 2, &o, &error), SAFER_INVALID, "label: 2");
    assert_fails(safer_attack_text(&r, &attacker, &m.base, l, "a\xff", 2, 0, &o, &error), SAFER_INPUT,
                 "UTF-8 at byte 1");
    assert_ok(safer_attack_text(&r, &attacker, &m.base, l, "", 0, -1, &o, &error));
    assert_string_equal(r.reason, "no word can change");
    assert_string_equal(safer_attack_method_name(SAFER_ATTACK_PWWS), "pwws");
    assert_null(safer_attack_method_name((safer_attack_method)SAFER_ATTACKS));
    safer_attacker_free(attacker);
    safer_data_free(data);
    safer_lexicon_free(l);
}
static safer_status attack_once(void *context, safer_error *e)
{
    world *w = context;
    safer_attack_summary s;
    safer_attack_options o = safer_attack_options_default();
    const char *path = temporary("memory.jsonl");
    unlink(path);
    o.method = w->method;
    o.smoothed = w->smoothed;
    o.threads = 1;
    o.n = 3;
    o.population = 3;
    o.iterations = 2;
    o.tries = 3;
    return safer_attack(&s, path, 0, &w->model.base, w->lexicon, w->data, &o, e);
}
static void test_out_of_memory(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    for (int method = 0; method < SAFER_ATTACKS; method++)
        for (w.smoothed = 0; w.smoothed < 2; w.smoothed++) {
            w.method = (safer_attack_method)method;
            w.model.base.class = w.smoothed ? &fast_class : &any_class;
            check_every_allocation(attack_once, &w);
        }
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),           cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_other_answers), cmocka_unit_test(test_scores_that_are_none),
        cmocka_unit_test(test_fast_paths),    cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
