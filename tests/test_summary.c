/* The totals of a run: against a plain count of random records, and recall and precision against every outcome that
 * an attacker can bring about. */
#include "certify/summary.h"

#include "support.h"

#include <string.h>

enum { MOST = 4, TEXTS = 5 };

static safer_error error;

/* A run of so many classes, called a, b, ...; `labels` ends with json_decref. */
static sf_config config_of(size_t classes, int unlabelled, json_t **labels)
{
    *labels = json_array();
    for (size_t k = 0; k < classes; k++) json_array_append_new(*labels, json_pack("s#", &"abcd"[k % 4], 1));
    return (sf_config){.classes = classes, .unlabelled = unlabelled, .labels = *labels};
}

static sf_record random_record(size_t classes, int unlabelled)
{
    sf_record r = {.id = "x", .words = 9, .slots = next_below(3), .queries = 7};
    r.visible = r.slots ? next_below((uint32_t)r.slots + 1) : 0;
    r.label = (int)next_below((uint32_t)classes + 1) - 1;
    r.prediction = (int)next_below((uint32_t)classes);
    r.base = (int)next_below((uint32_t)classes);
    r.abstained = next_below(4) == 0;
    r.exact = next_below(2) != 0;
    r.target = unlabelled || r.label < 0 ? r.prediction : r.label;
    r.radius = next_below(3) ? next_below(25) : SAFER_ALL;
    r.certified = r.radius >= 6;
    return r;
}

/* The smallest share of "answered c" that is right, over all that an attacker can do: a text that is certified and
 * answered keeps its label, any other is answered anything or nothing. 2 when nothing is ever answered c. */
static double worst_precision(const sf_record *records, size_t count, int c, size_t classes)
{
    size_t outcome[TEXTS] = {0};
    double worst = 2;
    for (;;) {
        size_t right = 0, all = 0, at = 0;
        for (size_t i = 0; i < count; i++) {
            if (records[i].label < 0) continue;
            const int answer = sf_record_holds(&records[i]) ? records[i].label : (int)outcome[i] - 1;
            all += answer == c;
            right += answer == c && records[i].label == c;
        }
        if (all && (double)right / (double)all < worst) worst = (double)right / (double)all;
        while (at < count && ++outcome[at] > classes) outcome[at++] = 0;
        if (at == count) return worst;
    }
}

static void test_worst_case(void **state)
{
    size_t some = 0;
    (void)state;
    next_seed(1);
    for (int i = 0; i < 300; i++) {
        const size_t classes = 2 + next_below(2);
        const int unlabelled = next_below(2) != 0;
        json_t *labels;
        sf_config config = config_of(classes, unlabelled, &labels);
        safer_summary s;
        sf_record records[TEXTS];
        assert_ok(sf_summary_start(&s, &config, &error));
        for (size_t k = 0; k < TEXTS; k++) {
            records[k] = random_record(classes, unlabelled);
            sf_summary_add(&s, &records[k]);
        }
        for (size_t c = 0; c < classes; c++) {
            const safer_figure precision = safer_summary_precision(&s, c);
            const double worst = worst_precision(records, TEXTS, (int)c, classes);
            assert_true(precision.whole ? worst == (double)precision.part / (double)precision.whole
                                        : worst >= 1); /* nothing else can be answered c */
            size_t texts = 0, held = 0;
            for (size_t k = 0; k < TEXTS; k++) {
                texts += records[k].label == (int)c;
                held += records[k].label == (int)c && sf_record_holds(&records[k]);
            }
            const safer_figure recall = safer_summary_recall(&s, c);
            assert_true(recall.part == held && recall.whole == texts);
            some += held > 0;
        }
        safer_summary_free(&s);
        json_decref(labels);
    }
    assert_true(some > 100);
}

/* Every count again, by its definition. */
static void check_counts(const safer_summary *s, const sf_record *records, size_t count)
{
    size_t certified = 0, answered = 0, stable = 0, unlabelled = 0, empty = 0, abstained = 0, at = 0, stable_at = 0;
    for (size_t i = 0; i < count; i++) {
        const sf_record *r = &records[i];
        const int is_answered = !r->abstained && r->prediction == r->target,
                  right = r->label >= 0 && r->label == r->target;
        certified += (size_t)(r->certified && right);
        answered += (size_t)(r->certified && right && is_answered);
        stable += (size_t)(r->certified && is_answered);
        unlabelled += (size_t)(r->certified && r->label < 0);
        empty += (size_t)(r->certified && !r->visible);
        abstained += (size_t)r->abstained;
        at += (size_t)(r->radius >= 5 && right && is_answered);
        stable_at += (size_t)(r->radius >= 5 && is_answered);
    }
    assert_true(s->texts == count && s->certified == certified && s->certified_answered == answered);
    assert_true(s->stable == stable && s->unlabelled_certified == unlabelled && s->empty == empty);
    assert_true(s->abstained == abstained && s->certified_answered_at[2] == at && s->stable_at[2] == stable_at);
    size_t cells = 0, of_classes = 0;
    for (size_t c = 0; c < s->classes; c++) {
        of_classes += s->by_class[c].certified_answered;
        for (size_t k = 0; k <= s->classes; k++) cells += s->by_class[c].answers[k];
        assert_true(s->by_class[c].certified_answered <= s->by_class[c].answers[c]);
    }
    assert_true(cells == s->labelled && of_classes == answered);
}

static void test_counts(void **state)
{
    (void)state;
    next_seed(2);
    for (int i = 0; i < 100; i++) {
        const size_t classes = 2 + next_below(MOST - 1);
        const int unlabelled = next_below(2) != 0;
        json_t *labels;
        sf_config config = config_of(classes, unlabelled, &labels);
        config.remote = i % 2;
        safer_summary s;
        sf_record records[200];
        assert_ok(sf_summary_start(&s, &config, &error));
        for (size_t k = 0; k < COUNT(records); k++) {
            records[k] = random_record(classes, unlabelled);
            sf_summary_add(&s, &records[k]);
        }
        check_counts(&s, records, COUNT(records));
        const safer_figure f = safer_summary_headline(&s);
        assert_string_equal(f.name, unlabelled ? "stable" : "certified and answered");
        assert_true(f.part == (unlabelled ? s.stable : s.certified_answered) &&
                    f.whole == (unlabelled ? s.texts : s.labelled));
        assert_true(s.remote == i % 2 && s.about_predictions == unlabelled);
        assert_string_equal(s.by_class[1].label, "b");
        safer_summary_free(&s);
        assert_null(s.by_class);
        safer_summary_free(&s);
        json_decref(labels);
    }
    safer_summary_free(NULL);
}

/* A text that is certified though the vote abstains, or says something else, is not in the headline; without labels
 * there is no accuracy. */
static void test_answered(void **state)
{
    json_t *labels;
    sf_config config = config_of(2, 0, &labels);
    sf_record r = {.label = 1,
                   .prediction = 1,
                   .base = 1,
                   .target = 1,
                   .certified = 1,
                   .radius = SAFER_ALL,
                   .visible = 1,
                   .slots = 1};
    safer_summary s;
    (void)state;
    assert_ok(sf_summary_start(&s, &config, &error));
    sf_summary_add(&s, &r);
    r.abstained = 1;
    sf_summary_add(&s, &r);
    r.abstained = 0;
    r.prediction = 0;
    sf_summary_add(&s, &r);
    assert_true(s.certified == 3 && s.certified_answered == 1 && s.stable == 1);
    assert_true(s.by_class[1].answers[1] == 1 && s.by_class[1].answers[0] == 1 && s.by_class[1].answers[2] == 1);
    safer_summary_free(&s);

    assert_ok(sf_summary_start(&s, &config, &error));
    r.label = -1;
    r.target = 0;
    sf_summary_add(&s, &r);
    assert_true(s.certified == 0 && s.unlabelled_certified == 1 && s.certified_at[0] == 0 && s.labelled == 0);
    assert_string_equal(safer_summary_headline(&s).name, "stable");
    assert_int_equal(safer_summary_recall(&s, 0).whole, 0);
    r.prediction = -1; /* a remote model may never answer */
    r.target = r.label = 1;
    sf_summary_add(&s, &r);
    assert_int_equal(s.by_class[1].answers[2], 1);
    safer_summary_free(&s);
    json_decref(labels);
}

static void test_caution(void **state)
{
    json_t *labels;
    sf_config config = config_of(2, 0, &labels);
    safer_summary s;
    char text[300], few[8];
    (void)state;
    assert_ok(sf_summary_start(&s, &config, &error));
    assert_int_equal(safer_summary_caution(&s, text, sizeof text), 0); /* nothing is certified */
    assert_string_equal(text, "");
    for (size_t i = 0; i < 4; i++) {
        sf_record r = {.certified = 1, .radius = SAFER_ALL, .words = 5, .slots = i, .visible = i > 1};
        assert_int_equal(safer_summary_caution(&s, text, sizeof text), i > 0);
        sf_summary_add(&s, &r); /* slots that the model never reads count as none */
    }
    assert_int_equal(safer_summary_caution(&s, text, sizeof text), 0); /* two of four */
    sf_record r = {.certified = 1, .radius = SAFER_ALL, .words = 5};
    sf_summary_add(&s, &r);
    assert_int_equal(safer_summary_caution(&s, text, sizeof text), 1);
    assert_non_null(strstr(text, "in 3 of 5 certified texts"));
    assert_int_equal(safer_summary_caution(&s, few, sizeof few), 1);
    assert_string_equal(few, "most ce");
    s.empty = 0;
    s.words = 100;
    s.slots = 9; /* fewer than a tenth of at least 100 words: said, but no reason to refuse a requirement */
    assert_int_equal(safer_summary_caution(&s, text, sizeof text), 1);
    assert_non_null(strstr(text, "only 9 of 100 words"));
    assert_false(sf_summary_is_empty(&s));
    s.slots = 10;
    assert_int_equal(safer_summary_caution(&s, text, sizeof text), 0);
    s.words = 99;
    s.slots = 0;
    assert_int_equal(safer_summary_caution(&s, text, sizeof text), 0);
    safer_summary_free(&s);
    json_decref(labels);
}

/* So many classes that a table of answers would be too large: all but that table. */
static void test_many_classes(void **state)
{
    json_t *labels;
    sf_config config = config_of(1001, 0, &labels);
    safer_summary s;
    (void)state;
    assert_ok(sf_summary_start(&s, &config, &error));
    sf_record r = {.label = 1000, .prediction = 1000, .target = 1000, .certified = 1, .radius = SAFER_ALL};
    sf_summary_add(&s, &r);
    assert_null(s.by_class[1000].answers);
    assert_true(s.classes == 1001 && safer_summary_recall(&s, 1000).part == 1);
    safer_summary_free(&s);
    json_decref(labels);
}

static safer_status start(void *context, safer_error *e)
{
    safer_summary s;
    safer_status status = sf_summary_start(&s, context, e);
    if (status == SAFER_OK) safer_summary_free(&s);
    return status;
}

static void test_memory(void **state)
{
    json_t *labels;
    sf_config config = config_of(4, 0, &labels);
    (void)state;
    check_every_allocation(start, &config);
    json_decref(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worst_case), cmocka_unit_test(test_counts),       cmocka_unit_test(test_answered),
        cmocka_unit_test(test_caution),    cmocka_unit_test(test_many_classes), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
