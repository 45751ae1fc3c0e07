/* Training bow and cnn: the same file for any number of threads and after any stop; it
 * learns; it says what is wrong. */
#define _GNU_SOURCE
#include "model/cnn.h"
#include "train/course.h"
#include "training.h"

#include <string.h>

static safer_train_options small_options(const char *arch, const safer_data *data, const safer_lexicon *lexicon)
{
    safer_train_options o = safer_train_options_default();
    assert_int_equal(safer_arch_parse(&o.arch, arch, NULL), SAFER_OK);
    o.train = data;
    o.lexicon = lexicon;
    o.cnn.dim = 8;
    o.cnn.filters = 10;
    o.cnn.widths = "3,2";
    o.cnn.hidden = 6;
    o.course.rate = 0.01;
    o.course.batch = 7;
    o.course.epochs = 5;
    o.course.patience = 0;
    o.cnn.min_count = 1;
    o.threads = 1;
    return o;
}

static void threads_do_not_matter(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews_with(600, 1);
    safer_lexicon *lexicon = make_review_lexicon("component");
    const char *arches[] = {"cnn", "bow", "cnn"};
    for (int a = 0; a < 3; a++) {
        safer_train_options o = small_options(arches[a], data, lexicon);
        o.course.pool = a == 2 ? SAFER_POOL_MAX : SAFER_POOL_MEAN;
        o.course.batch = 200; /* some 500 different words: more than one block of them */
        check_threads_do_not_matter(safer_train, &o);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void stopped_runs_are_resumed(void **unused)
{
    (void)unused;
    static const stop_point stops[] = {
        {"epoch 1", 0, 0}, {"epoch 1 of 5: loss 0", 0, 1}, {"epoch 2 of 5: loss", 0, 1}, {"epoch 3 of 5: loss", 0, 1}};
    safer_data *data = make_reviews(100);
    safer_lexicon *lexicon = make_review_lexicon("component");
    for (int bow = 0; bow < 2; bow++) {
        safer_train_options o = small_options(bow ? "bow" : "cnn", data, lexicon);
        o.course.patience = 3;
        check_stopped_runs_are_resumed(safer_train, &o, 90, stops, COUNT(stops));
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void other_checkpoints_are_refused(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews(60);
    safer_lexicon *lexicon = make_review_lexicon("component");
    const safer_train_options o = small_options("cnn", data, lexicon);
    safer_train_options changed[6];
    for (size_t i = 0; i < COUNT(changed); i++) changed[i] = o;
    changed[0].seed = 9;
    changed[1].course.rate = 0.02;
    changed[2].cnn.filters = 11;
    changed[3].lexicon = NULL;
    changed[4].course.pool = SAFER_POOL_MAX;
    changed[5].course.dropout = 0;
    check_other_options_are_refused(safer_train, &o, "epoch 1 of 5: loss", changed, COUNT(changed));
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void it_learns(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(300);
    safer_lexicon *lexicon = make_review_lexicon("component");
    const char *output = temporary("learned"), *vectors = make_review_vectors();
    for (int i = 0; i < 8; i++) {
        safer_train_options o = small_options(i % 2 ? "bow" : "cnn", data, i / 2 % 2 ? lexicon : NULL);
        safer_train_report report;
        safer_model *model = NULL;
        o.cnn.vectors = i >= 4 ? vectors : NULL;
        o.cnn.freeze = i == 4;
        o.course.pool = i == 6 ? SAFER_POOL_MAX : SAFER_POOL_MEAN;
        o.course.epochs = 12;
        assert_ok(safer_train(output, &o, &report, &error));
        if (!(report.dev_accuracy > (o.cnn.freeze ? 0.8 : 0.95) && report.loss < 0.4))
            fail_msg("case %d: dev %.3f, loss %.3f", i, report.dev_accuracy, report.loss);
        check_report(&report, 270, 1000, 100);
        assert_ok(safer_model_open(&model, output, &error));
        check_learned(model);
        assert_non_null(strstr(safer_model_trained_with(model), o.lexicon ? "component" : "null"));
        /* Words that can be drawn are known, though no text holds them. */
        const sf_cnn_model *inside = (const sf_cnn_model *)model;
        assert_int_equal(sf_words_find(&inside->words, "splendid", 8) != SF_NONE, o.lexicon != NULL);
        /* Frozen vectors are those of the file. */
        if (i == 4) {
            const float *good = inside->parameters + ((size_t)sf_words_find(&inside->words, "good", 4) + 1) * 4;
            assert_true(good[0] == 1 && good[1] == 0 && good[2] == 0.5f && good[3] == 0.1f);
        }
        safer_model_free(model);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void early_stopping_stops(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(100);
    safer_train_report report;
    safer_train_options o = small_options("bow", data, NULL);
    o.course.epochs = 60;
    o.course.patience = 2;
    assert_ok(safer_train(temporary("early"), &o, &report, &error));
    assert_true(report.epochs < 60);
    assert_int_equal(report.epochs, report.best_epoch + 2);
    safer_data_free(data);
}

/* Steps take denormal numbers for 0; whatever measures a model does not, and nobody afterwards. */
static int flushes(void)
{
    volatile float smallest = 0x1p-126f;
    return smallest / 2 == 0;
}

static int flushed; /* steps that took denormal numbers for 0 */

static safer_status step_flushing(sf_course *c, const uint32_t *texts, size_t count, double rate, double *loss,
                                  safer_error *error)
{
    (void)texts, (void)count, (void)rate, (void)loss;
    flushed += flushes();
    return c->steps == 9 ? sf_fail(error, SAFER_INVALID, "step 9") : SAFER_OK;
}

static safer_status start_with_one(sf_course *c, safer_error *error)
{
    static float parameter = 1;
    (void)error;
    c->texts = 8;
    c->parameters = &parameter;
    c->size = 1;
    return SAFER_OK;
}

static void free_nothing(sf_course *c) { (void)c; }

static safer_status measure_exactly(sf_course *c, double *accuracy, safer_error *error)
{
    (void)c, (void)error;
    assert_false(flushes());
    *accuracy = 1;
    return SAFER_OK;
}

static void steps_flush_denormals(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(8);
    safer_train_options o = small_options("bow", data, NULL);
    const sf_course_methods methods = {.size = sizeof(sf_course),
                                       .start = start_with_one,
                                       .step = step_flushing,
                                       .measure = measure_exactly,
                                       .free = free_nothing};
    safer_train_report report;
    o.course.batch = 2;
    flushed = 0;
    assert_int_equal(sf_course_train(&methods, NULL, temporary("flushed"), &o, &report, &error), SAFER_INVALID);
    assert_string_equal(error.message, "step 9");
    assert_int_equal(flushed, 9);
    assert_false(flushes());
    safer_data_free(data);
}

static void bad_vectors_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(60);
    safer_train_options o = small_options("bow", data, NULL);
    o.cnn.vectors = "/nonexistent/vectors";
    assert_fails(safer_train(temporary("v"), &o, NULL, &error), SAFER_SYSTEM, "/nonexistent/vectors");
    o.cnn.vectors = write_temporary("strange.txt", "zebra 1 2\nlion 3 4\n", 19);
    assert_fails(safer_train(temporary("v"), &o, NULL, &error), SAFER_INPUT, "not one word");
    o.cnn.vectors = write_temporary("ragged.txt", "good 1 2\nbad 3\n", 15);
    assert_fails(safer_train(temporary("v"), &o, NULL, &error), SAFER_INPUT, "ragged.txt");
    o.cnn.vectors = NULL;
    o.course.rate = 10; /* Adam's steps are bounded by the rate: this still ends, in one way or the other */
    safer_status status = safer_train(temporary("v"), &o, NULL, &error);
    assert_true(status == SAFER_OK || status == SAFER_INVALID);
    assert_fails(safer_train("/nonexistent/folder/model", &o, NULL, &error), SAFER_SYSTEM, "/nonexistent/folder");
    safer_data_free(data);
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews(24);
    safer_lexicon *lexicon = make_review_lexicon("component");
    safer_train_options o = small_options("cnn", data, lexicon);
    o.course.epochs = 1;
    o.cnn.vectors = make_review_vectors();
    check_training_memory(safer_train, &o, 1); /* describing a lexicon, for the provenance, can do without memory */
    o.lexicon = NULL;
    o.arch = SAFER_ARCH_BOW;
    o.cnn.vectors = NULL;
    check_training_memory(safer_train, &o, 0);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_matter),         cmocka_unit_test(stopped_runs_are_resumed),
        cmocka_unit_test(other_checkpoints_are_refused), cmocka_unit_test(it_learns),
        cmocka_unit_test(early_stopping_stops),          cmocka_unit_test(bad_vectors_are_refused),
        cmocka_unit_test(steps_flush_denormals),         cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
