/* Training bow and cnn: the same file for any number of threads and after any stop; it
 * learns; it says what is wrong. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/memory.h"
#include "model/cnn.h"
#include "train/course.h"
#include "training.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    safer_error error = {0};
    safer_data *data = make_data_with(600, 1);
    safer_lexicon *lexicon = make_lexicon("component");
    const char *arches[] = {"cnn", "bow", "cnn"}, *one = temporary("one"), *more = temporary("more");
    const int threads[] = {2, 5};
    for (int a = 0; a < 3; a++) {
        safer_train_options o = small_options(arches[a], data, lexicon);
        o.course.pool = a == 2 ? SAFER_POOL_MAX : SAFER_POOL_MEAN;
        o.course.batch = 200; /* some 500 different words: more than one block of them */
        assert_ok(safer_train(one, &o, NULL, &error));
        for (int i = 0; i < 2; i++) {
            o.threads = threads[i];
            assert_ok(safer_train(more, &o, NULL, &error));
            assert_same_file(one, more);
        }
        o.seed = 2; /* and the seed does */
        assert_ok(safer_train(more, &o, NULL, &error));
        safer_model *first = NULL, *second = NULL;
        assert_ok(safer_model_open(&first, one, &error));
        assert_ok(safer_model_open(&second, more, &error));
        assert_true(safer_model_hash(first) != safer_model_hash(second));
        safer_model_free(first);
        safer_model_free(second);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void stopped_runs_go_on(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_data(100);
    safer_lexicon *lexicon = make_lexicon("component");
    const char *whole = temporary("whole"), *parts = temporary("parts"), *checkpoint = temporary("parts.checkpoint");
    for (int bow = 0; bow < 2; bow++) {
        safer_train_options o = small_options(bow ? "bow" : "cnn", data, lexicon);
        stopper s = {0};
        o.course.patience = 3;
        o.progress = (safer_progress){stop_run, &s};
        assert_ok(safer_train(whole, &o, NULL, &error));
        assert_non_null(strstr(s.last, "epoch"));
        assert_non_null(strstr(s.last, "loss 0."));
        assert_non_null(strstr(s.last, "dev "));
        assert_int_equal(s.total, 5 * 90);
        o.resume = 1; /* where there is nothing to go on from, it begins */
        const char *stops[] = {"epoch 1", "epoch 1 of 5: loss 0", "epoch 2 of 5: loss", "epoch 3 of 5: loss"};
        for (int i = 0; i < 4; i++) {
            s.when = stops[i];
            assert_fails(safer_train(parts, &o, NULL, &error), SAFER_CANCELLED, "epoch");
            assert_int_not_equal(access(parts, F_OK), 0);
            assert_int_equal(access(checkpoint, F_OK) == 0, i > 0);
        }
        s.when = NULL;
        safer_train_report report;
        assert_ok(safer_train(parts, &o, &report, &error));
        assert_same_file(whole, parts);
        assert_int_not_equal(access(checkpoint, F_OK), 0);
        assert_int_equal(report.texts, 90);
        unlink(parts);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void other_checkpoints_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_data(60);
    safer_lexicon *lexicon = make_lexicon("component");
    const char *output = temporary("other"), *checkpoint = temporary("other.checkpoint");
    safer_train_options o = small_options("cnn", data, lexicon);
    stopper s = {.when = "epoch 1 of 5: loss"};
    o.progress = (safer_progress){stop_run, &s};
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_CANCELLED, "epoch");
    s.when = NULL;
    o.resume = 1;
    safer_train_options changed[6];
    for (int i = 0; i < 6; i++) changed[i] = o;
    changed[0].seed = 9;
    changed[1].course.rate = 0.02;
    changed[2].cnn.filters = 11;
    changed[3].lexicon = NULL;
    changed[4].course.pool = SAFER_POOL_MAX;
    changed[5].course.dropout = 0;
    for (int i = 0; i < 6; i++)
        assert_fails(safer_train(output, &changed[i], NULL, &error), SAFER_INPUT, "other options");
    assert_int_equal(truncate(checkpoint, 1000), 0);
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INPUT, "other.checkpoint");
    o.resume = 0; /* a fresh start does not look at it */
    assert_ok(safer_train(output, &o, NULL, &error));
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void it_learns(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_data(300);
    safer_lexicon *lexicon = make_lexicon("component");
    const char *output = temporary("learned"), *vectors = make_vectors();
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
        assert_true(report.texts == 270 && report.tokens > 1000 && report.parameters > 100 && report.seconds > 0);
        assert_true(report.best_epoch >= 1 && report.best_epoch <= report.epochs && report.tokens_per_second > 0);
        assert_ok(safer_model_open(&model, output, &error));
        const char *texts[] = {"A GOOD film, the story was fine and great", "awful plot, poor movie, dull"};
        const size_t lengths[] = {strlen(texts[0]), strlen(texts[1])};
        int labels[2];
        assert_ok(safer_model_classify(model, texts, lengths, 2, labels, NULL, &error));
        assert_string_equal(safer_model_label(model, (size_t)labels[0]), "1");
        assert_string_equal(safer_model_label(model, (size_t)labels[1]), "0");
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
    safer_data *data = make_data(100);
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
    safer_data *data = make_data(8);
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
    safer_data *data = make_data(60);
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
    safer_data *data = make_data(24);
    safer_lexicon *lexicon = make_lexicon("component");
    char vectors[600], output[600];
    snprintf(vectors, sizeof vectors, "%s", make_vectors());
    snprintf(output, sizeof output, "%s", temporary("memory"));
    job j = {small_options("cnn", data, lexicon), output};
    j.options.course.epochs = 1;
    j.options.cnn.vectors = vectors;
    /* Describing a lexicon, for the provenance, does without memory: the run is then whole. */
    for (long n = 0;; n++) {
        safer_error error = {0};
        fail_allocation(n);
        safer_status status = train_once(&j, &error);
        int happened = allocation_failed();
        fail_allocation(-1);
        if (status != SAFER_MEMORY) assert_ok(status);
        if (!happened) break;
    }
    j.options.lexicon = NULL;
    j.options.arch = SAFER_ARCH_BOW;
    j.options.cnn.vectors = NULL;
    check_every_allocation(train_once, &j);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_matter),         cmocka_unit_test(stopped_runs_go_on),
        cmocka_unit_test(other_checkpoints_are_refused), cmocka_unit_test(it_learns),
        cmocka_unit_test(early_stopping_stops),          cmocka_unit_test(bad_vectors_are_refused),
        cmocka_unit_test(steps_flush_denormals),         cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
