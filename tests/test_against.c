/* The cross-check must find no violation of sound certificates, and those of a lexicon that lies
 * about its overlaps. */
#define _GNU_SOURCE
#include "test_attack.h"

#include "run/sealed.h"

/* Certifies and attacks what was certified. */
static safer_against_summary cross_check(const safer_lexicon *l, const safer_model *model, const safer_data *data,
                                         uint64_t n, double delta, const char *path)
{
    safer_summary certified;
    safer_against_summary s;
    safer_certify_options c = safer_certify_options_default();
    safer_attack_options o = safer_attack_options_default();
    const char *run = temporary("certified.jsonl");
    unlink(run);
    if (path) unlink(path);
    c.n = n;
    c.delta = delta;
    c.unlabelled = 1;
    o.iterations = 3;
    o.population = 10;
    o.tries = 20;
    assert_ok(safer_certify(&certified, run, 0, model, l, data, &c, &error));
    assert_ok(safer_attack_against(&s, run, path, 0, model, l, data, &o, &error));
    assert_int_equal(s.texts, safer_data_size(data));
    /* What is certified and not counted as stable is not answered. */
    assert_in_range(s.certified, certified.stable_at[0], certified.stable_at[0] + certified.abstained);
    safer_summary_free(&certified);
    return s;
}

static void test_sound_certificates_hold(void **state)
{
    (void)state;
    safer_data *data = make_tiny_data(40);
    size_t certified = 0, exact = 0;
    for (uint32_t seed = 0; seed < 90; seed++) {
        any_model m;
        safer_lexicon *l = make_tiny_lexicon(seed, kinds[seed % KINDS], 0, seed % 7 == 3);
        make_model(&m, seed, 2 + seed % 3, seed % 4 * 150);
        m.base.class = seed % 2 ? &fast_class : &any_class;
        m.additive = (int)(seed % 3 == 0);
        safer_against_summary s = cross_check(l, &m.base, data, seed % 3 ? 200 : 100000, 0.001, NULL);
        if (s.violations || s.alarm) fail_msg("seed %u (%s): %zu violations", seed, kinds[seed % KINDS], s.violations);
        certified += s.certified;
        exact += s.exact;
        safer_lexicon_free(l);
    }
    printf("%zu certificates attacked, %zu of them exact, no violation\n", certified, exact);
    assert_true(certified > 800 && exact > 300 && exact < certified);
    safer_data_free(data);
}

/* Certificates against edits, of every kind, beside synonyms and without: nothing is found. */
static void test_sound_edits_hold(void **state)
{
    (void)state;
    safer_data *data = make_tiny_data(12);
    size_t certified = 0, exact = 0;
    for (uint32_t seed = 0; seed < 48; seed++) {
        any_model m;
        safer_summary summary;
        safer_against_summary s;
        safer_certify_options c = safer_certify_options_default();
        safer_attack_options o = safer_attack_options_default();
        safer_lexicon *l = make_tiny_lexicon(seed, kinds[seed % KINDS], 0, 0);
        const char *run = temporary("edits.jsonl");
        unlink(run);
        make_model(&m, seed, 2 + seed % 2, 700);
        m.base.class = seed % 2 ? &fast_class : &any_class;
        m.additive = (int)(seed / 2 % 2);
        c.n = seed % 3 ? 300 : 100000;
        c.unlabelled = 1;
        c.deletion = (safer_deletion){.chance = seed % 5 ? 0.9 : 0.75};
        c.edits = 1 + seed / 4 % 3;
        c.edit_kind = (safer_edit_kind)(seed % 4);
        c.radius = seed % 7 == 0 ? 1 : SAFER_ALL;
        o.n = 100;
        o.iterations = 2;
        o.population = 4;
        o.tries = 5;
        assert_ok(safer_certify(&summary, run, 0, &m.base, l, data, &c, &error));
        assert_ok(safer_attack_against(&s, run, NULL, 0, &m.base, l, data, &o, &error));
        if (s.violations || s.alarm) fail_msg("seed %u: %zu violations", seed, s.violations);
        assert_true(s.deletion.chance > 0.7 && s.texts == 12);
        certified += s.certified_edits;
        exact += s.exact;
        safer_summary_free(&summary);
        safer_lexicon_free(l);
    }
    printf("%zu certificates against edits attacked (%zu exact ones in all), no violation\n", certified, exact);
    assert_true(certified > 100 && exact > 20);
    safer_data_free(data);
}

/* A lexicon that says every overlap is 1 certifies too much, exactly and by sampling, and is found out. */
static void test_broken_certificates_are_caught(void **state)
{
    (void)state;
    safer_data *data = make_tiny_data(40);
    size_t alarms[2] = {0}, tried[2] = {0};
    for (uint32_t seed = 0; seed < 60; seed++) {
        any_model m;
        const int exact = seed % 2 == 0;
        safer_lexicon *l = make_tiny_lexicon(seed, seed % 4 < 2 ? "topk:1" : "topk:2", 1, 0);
        make_model(&m, seed, 2, 0);
        m.additive = 1;
        m.base.class = seed % 3 ? &fast_class : &any_class;
        const char *path = temporary("against.jsonl");
        safer_against_summary s = cross_check(l, &m.base, data, exact ? 100000 : 20, 0.01, path);
        tried[exact]++;
        alarms[exact] += (size_t)s.alarm;
        assert_true(!s.violations || s.alarm == (s.violations_exact > 0 || s.p_value < SAFER_AGAINST_LEVEL));
        /* What the records call a violation is one. */
        char *records = records_of(path);
        size_t found = 0;
        for (char *p = records; (p = strstr(p, "\"violation\":{")); p++) found++;
        assert_int_equal(found, s.violations);
        free(records);
        safer_lexicon_free(l);
    }
    printf("found out: %zu of %zu exact, %zu of %zu sampled\n", alarms[1], tried[1], alarms[0], tried[0]);
    assert_true(alarms[1] * 10 >= tried[1] * 8);
    assert_true(alarms[0] * 10 >= tried[0] * 5);
    safer_data_free(data);
}

/* The cross-check itself: the same records however it is run, resumed too; and only for its own run. */
static void test_against_run(void **state)
{
    (void)state;
    safer_data *data = make_tiny_data(30), *other_data = make_tiny_data(29);
    safer_lexicon *l = make_tiny_lexicon(4, "topk:2", 1, 0), *other = make_tiny_lexicon(5, "topk:2", 0, 0);
    any_model m, another;
    safer_against_summary s;
    safer_attack_options o = safer_attack_options_default();
    const char *path = temporary("against-1.jsonl");
    make_model(&m, 4, 2, 0);
    make_model(&another, 5, 2, 0);
    m.additive = 1;
    cross_check(l, &m.base, data, 50, 0.01, path);
    char *expected = records_of(path);
    sf_file whole = {0};
    assert_ok(sf_file_load(&whole, path, &error));
    o.iterations = 3;
    o.population = 10;
    o.tries = 20;
    const char *run = temporary("certified.jsonl");
    for (int i = 0; i < 6; i++) {
        const char *again = i < 3 ? temporary("against-2.jsonl")
                                  : write_temporary("against-2.jsonl", whole.bytes, whole.length * (size_t)i / 6);
        if (i < 3) unlink(again);
        o.threads = 1 + i;
        o.batch = i % 2 ? 3 : 100;
        m.base.class = i % 2 ? &fast_class : &any_class;
        assert_ok(safer_attack_against(&s, run, again, i >= 3, &m.base, l, data, &o, &error));
        assert_int_equal(s.resumed > 0, i >= 3);
        char *got = records_of(again);
        assert_string_equal(got, expected);
        free(got);
    }
    free(expected);
    sf_file_free(&whole);
    assert_fails(safer_attack_against(&s, run, NULL, 0, &another.base, l, data, &o, &error), SAFER_INPUT,
                 "belongs to another model");
    assert_fails(safer_attack_against(&s, run, NULL, 0, &m.base, other, data, &o, &error), SAFER_INPUT,
                 "belongs to another lexicon");
    assert_fails(safer_attack_against(&s, run, NULL, 0, &m.base, l, other_data, &o, &error), SAFER_INPUT,
                 "belongs to another data set, or to other rows");
    assert_fails(safer_attack_against(&s, path, NULL, 0, &m.base, l, data, &o, &error), SAFER_INPUT,
                 "not the configuration of a run");
    safer_data_free(data);
    safer_data_free(other_data);
    safer_lexicon_free(l);
    safer_lexicon_free(other);
}

/* Searches that --max-queries cut short are told. */
static void test_limits_are_told(void **state)
{
    (void)state;
    safer_data *data = make_tiny_data(30);
    safer_lexicon *l = make_tiny_lexicon(4, "topk:2", 1, 0); /* it certifies much */
    any_model m;
    safer_against_summary s;
    safer_attack_options o = safer_attack_options_default();
    make_model(&m, 4, 2, 1000);
    cross_check(l, &m.base, data, 1000, 0.01, NULL);
    o.n = 30;
    assert_ok(safer_attack_against(&s, temporary("certified.jsonl"), NULL, 0, &m.base, l, data, &o, &error));
    assert_true(s.certified > s.untouched && s.limited == 0);
    o.max_queries = 29;
    assert_fails(safer_attack_against(&s, temporary("certified.jsonl"), NULL, 0, &m.base, l, data, &o, &error),
                 SAFER_INVALID, "max_queries");
    o.max_queries = 30;
    assert_ok(safer_attack_against(&s, temporary("certified.jsonl"), NULL, 0, &m.base, l, data, &o, &error));
    assert_true(s.limited > 0 && s.limited <= s.certified - s.untouched);
    safer_data_free(data);
    safer_lexicon_free(l);
}

/* A wrong certificate repeated is one piece of bad luck, not many. */
static void test_equal_texts_count_once(void **state)
{
    (void)state;
    size_t violated = 0;
    for (uint32_t seed = 0; seed < 20; seed++) {
        any_model m;
        safer_data *data = NULL;
        char rows[2000], text[64];
        size_t length = 0;
        const uint32_t words[] = {seed % WORDS, 1, 2, 3, 4, 5, 0, 1};
        safer_lexicon *l = make_tiny_lexicon(seed, "topk:2", 1, 0);
        make_model(&m, seed, 2, 0);
        m.additive = 1;
        write_text(text, words, 8);
        for (int i = 0; i < 30; i++) length += (size_t)sprintf(rows + length, "%d\t0\t%s\n", i, text);
        assert_ok(safer_data_load(&data, write_temporary("equal.tsv", rows, length), NULL, &error));
        safer_against_summary s = cross_check(l, &m.base, data, 20, 0.01, NULL);
        if (s.violations > s.violations_exact) {
            violated++;
            assert_int_equal(s.violations, 30);
            assert_true(s.p_value > 0.2 && s.p_value < 0.3); /* 1 - 0.99^30 */
            assert_false(s.alarm);
        }
        safer_data_free(data);
        safer_lexicon_free(l);
    }
    assert_true(violated >= 3);
}

/* Writes the run again, with every bound above 0 and sealed as if it had been found so. */
static const char *forge_bounds(const char *path)
{
    char line[1000];
    FILE *in = fopen(path, "r");
    sf_buffer out = {0};
    uint64_t check = 0;
    for (int row = 0; fgets(line, sizeof line, in); row++) {
        json_t *object = json_loads(line, 0, NULL), *margins = json_object_get(object, "margins"), *margin;
        const char *key;
        size_t length;
        uint64_t seal;
        assert_ok(sf_unseal(object, line, strlen(line) - 1, check, &(uint64_t){0}, path, (size_t)row + 1, &error));
        json_object_foreach(margins, key, margin) json_real_set(margin, 0.5);
        if (row) json_object_set_new(object, "radius", json_string("all"));
        if (row) json_object_set_new(object, "certified", json_true());
        char *sealed = sf_seal(object, row ? 0 : -1, check, &length, &seal);
        assert_int_equal(sf_buffer_add(&out, sealed, length), 0);
        if (!row) check = seal;
        free(sealed);
        json_decref(object);
    }
    fclose(in);
    const char *forged = write_temporary("forged.jsonl", out.bytes, out.length);
    sf_buffer_free(&out);
    return forged;
}

/* Certificates by interval bounds are attacked too, on the model itself: those that the bounds
 * give hold, others do not. */
static void test_bounds(void **state)
{
    (void)state;
    safer_data *data = make_tiny_data(60);
    safer_lexicon *l = make_tiny_lexicon(8, "topk:2", 0, 0);
    size_t certified = 0, violations = 0;
    for (int i = 0; i < 4; i++) {
        safer_model *model = NULL;
        safer_summary run;
        safer_against_summary s;
        safer_certify_options c = safer_certify_options_default();
        safer_attack_options o = safer_attack_options_default();
        safer_train_options t = safer_train_options_default();
        const char *file = temporary("bounded"), *path = temporary("bounds.jsonl");
        unlink(path);
        t.arch = i % 2 ? SAFER_ARCH_CNN : SAFER_ARCH_BOW;
        t.train = t.dev = data;
        t.lexicon = l;
        t.course.epochs = 6;
        t.course.rate = 0.05;
        t.cnn.min_count = 1;
        t.cnn.dim = t.cnn.filters = t.cnn.hidden = 8;
        t.seed = (uint64_t)i;
        assert_ok(safer_train(file, &t, NULL, &error));
        assert_ok(safer_model_open(&model, file, &error));
        c.method = SAFER_METHOD_IBP;
        c.unlabelled = 1;
        assert_ok(safer_certify(&run, path, 0, model, l, data, &c, &error));
        assert_ok(safer_attack_against(&s, path, NULL, 0, model, l, data, &o, &error));
        assert_true(s.certified == run.certificates && s.exact == run.certificates && s.sampled == 0 && s.checks == 0);
        assert_true(s.violations == 0 && !s.alarm);
        certified += s.certified;
        const char *forged = forge_bounds(path);
        assert_ok(safer_attack_against(&s, forged, temporary("bounds-attacked.jsonl"), 1, model, l, data, &o, &error));
        assert_true(s.certified == 60 && s.violations == s.violations_exact && s.alarm == (s.violations > 0));
        violations += s.violations;
        if (run.certificates < 60)
            assert_fails(safer_attack_against(&s, path, temporary("bounds-attacked.jsonl"), 1, model, l, data, &o,
                                              &error),
                         SAFER_INPUT, "has no such certificate");
        unlink(temporary("bounds-attacked.jsonl"));
        safer_summary_free(&run);
        safer_model_free(model);
    }
    printf("%zu certificates by bounds hold; of those forged %zu are broken\n", certified, violations);
    assert_true(certified > 20 && violations > 20);
    safer_data_free(data);
    safer_lexicon_free(l);
}

static safer_status against_once(void *context, safer_error *e)
{
    world *w = context;
    safer_against_summary s;
    safer_attack_options o = safer_attack_options_default();
    o.threads = 1;
    o.n = 3;
    o.population = 3;
    o.iterations = 1;
    o.tries = 3;
    return safer_attack_against(&s, temporary("certified.jsonl"), NULL, 0, &w->model.base, w->lexicon, w->data, &o, e);
}
static void test_out_of_memory(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    w.model.base.class = &fast_class;
    cross_check(w.lexicon, &w.model.base, w.data, 20, 0.01, NULL);
    check_every_allocation(against_once, &w);
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_certificates_hold),
        cmocka_unit_test(test_sound_edits_hold),
        cmocka_unit_test(test_broken_certificates_are_caught),
        cmocka_unit_test(test_against_run),
        cmocka_unit_test(test_limits_are_told),
        cmocka_unit_test(test_equal_texts_count_once),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
