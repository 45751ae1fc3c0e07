/* charcnn on devices, by the plugin without one (mock_plugin.c): answers and training as on the CPU, and what is said
 * when a device is too small, cannot do it or fails. */
#define _GNU_SOURCE
#include "nn/device.h"

#include "devices.h"
#include "model/charcnn_device.h"
#include "test_charcnn.h"
#include "train/charcnn_learner.h"
#include "train/charcnn_scale.h"
#include "train/charcnn_train.h"

enum { TEXTS = 40 };

/* -------------------------------------------------------------------- answers */

typedef struct asked {
    const char *texts[TEXTS];
    size_t lengths[TEXTS];
    int labels[TEXTS];
    float scores[TEXTS * 2];
} asked;

static void ask(asked *a, safer_model *model, const safer_data *data)
{
    safer_error error = {0};
    for (size_t i = 0; i < TEXTS; i++) {
        a->texts[i] = safer_data_row(data, i).text;
        a->lengths[i] = i == 3 ? 0 : safer_data_row(data, i).text_length; /* one is empty */
    }
    assert_ok(safer_model_classify(model, a->texts, a->lengths, TEXTS, a->labels, a->scores, &error));
}

static safer_model *open_small(void)
{
    safer_error error = {0};
    safer_model *model = NULL;
    const sf_charcnn_layout l = make_layout(130, 16, 8, 2);
    float *parameters = random_parameters(&l);
    assert_ok(sf_charcnn_save(temporary("small"), &l, parameters, "[\"0\",\"1\"]", "{}", &error));
    assert_ok(safer_model_open(&model, temporary("small"), &error));
    free(parameters);
    return model;
}

static void answers_are_the_cpus(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(TEXTS);
    safer_model *model = open_small();
    asked cpu, device, small;
    assert_ok(safer_model_set_precision(model, SAFER_PRECISION_F32, &error));
    ask(&cpu, model, data);
    assert_ok(safer_model_set_device(model, "cuda", &error));
    assert_string_equal(model->arithmetic, "bf16 cuda sm_00 mock");
    ask(&device, model, data);
    for (size_t i = 0; i < TEXTS * 2; i++) assert_true(fabsf(cpu.scores[i] - device.scores[i]) < 1e-4f);

    /* Less memory: smaller batches, the same bits; then one line. */
    size_t *most = counter("mock_most_texts");
    tell("MOCK_TEXTS", "7");
    *most = 0;
    assert_ok(safer_model_set_device(model, "cuda", &error));
    ask(&small, model, data);
    assert_memory_equal(small.scores, device.scores, sizeof small.scores);
    assert_int_equal(*most, 7);
    tell("MOCK_TEXTS", "0");
    assert_fails(safer_model_set_device(model, "cuda", &error), SAFER_MEMORY, "cuda:0 has not enough free memory");
    assert_string_equal(model->arithmetic, "bf16 cuda sm_00 mock"); /* it stays where it was */
    ask(&small, model, data);
    withdraw_all(NULL);

    /* What a device cannot have, "auto" computes on the CPU. */
    tell("MOCK_HIDDEN", "64");
    assert_fails(safer_model_set_device(model, "cuda:0", &error), SAFER_INPUT, "dense layers of another size");
    assert_ok(safer_model_set_device(model, "auto", &error));
    assert_null(strstr(model->arithmetic, "cuda"));
    assert_int_equal(model->concurrency, 0);
    withdraw_all(NULL);

    /* A device that fails: an error, and the CPU goes on. */
    tell("MOCK_FAIL", "1");
    assert_ok(safer_model_set_device(model, "auto", &error));
    assert_fails(safer_model_classify(model, cpu.texts, cpu.lengths, TEXTS, cpu.labels, NULL, &error), SAFER_SYSTEM,
                 "fell off the bus");
    assert_ok(safer_model_set_device(model, "cpu", &error));
    ask(&small, model, data);
    safer_model_free(model);
    safer_data_free(data);
}

/* Draws of many texts meet in calls; which, and on which of several devices, changes no record. */
static void all_devices_are_used(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = open_small();
    safer_data *data = make_reviews(60);
    safer_lexicon *lexicon = make_review_lexicon("component");
    safer_certify_options options = safer_certify_options_default();
    size_t *answers = counter("mock_answers"), certified[2];
    options.n = 60;
    for (int i = 0; i < 2; i++) {
        safer_summary summary;
        char name[20];
        snprintf(name, sizeof name, "records%d", i);
        tell("MOCK_DEVICES", i ? "3" : "1");
        tell("MOCK_TEXTS", i ? "64" : NULL);
        tell("MOCK_SLOW", i ? "2000" : NULL); /* so that calls meet */
        assert_ok(safer_model_set_device(model, "cuda", &error));
        memset(answers, 0, 3 * sizeof *answers);
        assert_ok(safer_certify(&summary, temporary(name), 0, model, lexicon, data, &options, &error));
        for (int k = 0; k < 3; k++) assert_true((answers[k] > 0) == (i || k == 0));
        certified[i] = summary.certified;
        safer_summary_free(&summary);
    }
    assert_int_equal(certified[0], certified[1]);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    safer_data_free(data);
}

/* ------------------------------------------------------------------- training */

/* Numbers are near when their difference is short. */
static void check_near(const char *name, const float *ours, const float *theirs, size_t count, double most)
{
    double length = 0, far = 0;
    for (size_t i = 0; i < count; i++) {
        length += (double)theirs[i] * (double)theirs[i];
        far += pow((double)ours[i] - (double)theirs[i], 2);
    }
    if (sqrt(far) > most * sqrt(length)) fail_msg("%s is off by %g of %g", name, sqrt(far), sqrt(length));
}

static void check_all_near(const sf_charcnn_layout *l, const float *ours, const float *theirs, double most)
{
    for (size_t t = 0; t < l->tensor_count; t++)
        check_near(l->tensors[t].name, ours + l->tensors[t].offset, theirs + l->tensors[t].offset, l->tensors[t].count,
                   most);
    check_near("gains", ours + l->size, theirs + l->size, l->trained - l->size, most);
}

/* With dropout, smoothed labels and texts of any length: where the CPU has one frame for all blanks, a device has
 * all. */
static void gradients_are_the_cpus(void **unused)
{
    (void)unused;
    enum { B = 6, L = 150, H = 8, CLASSES = 3 };
    safer_error error = {0};
    const sf_device_table *table = NULL;
    const sf_charcnn_layout l = make_layout(L, 16, H, CLASSES);
    const sf_convnet net = sf_charcnn_convnet(&l);
    const sf_charcnn_options o = {
        .type = SF_F32, .dropout = 0.3f, .smoothing = 0.1f, .clip = 0, .threads = 1, .seed = 7};
    float *trained = random_parameters(&l), *gradient = zeros(l.trained, sizeof *gradient), masks[2 * B * H];
    uint8_t codes[B * L];
    size_t lengths[B];
    int labels[B];
    double loss, expected;
    sf_charcnn_step *step = NULL;
    sf_device_convnet_step *device = NULL;
    for (size_t b = 0; b < B; b++) {
        lengths[b] = b < 2 ? b * L : next_below(L);
        random_codes(codes + b * L, lengths[b], L);
        labels[b] = (int)next_below(CLASSES);
        for (size_t k = 0; k < 2; k++)
            sf_dropout_mask(masks + (k * B + b) * H, o.dropout, sf_charcnn_step_dropout(&o), 3, (uint32_t)(2 * b + k),
                            H);
    }
    const sf_charcnn_batch batch = {codes, lengths, labels, B};
    sf_device_convnet_training training = {.net = &net, .trained = trained, .texts = B, .smoothing = o.smoothing};
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) training.shares[i] = sf_charcnn_share(&l, i);
    assert_ok(sf_charcnn_step_new(&step, &l, &o, B, &error));
    const float *cpu = sf_charcnn_step_gradient(&expected, step, trained, &batch, 3);
    assert_ok(sf_device_load(&table, &error));
    assert_ok(table->convnet_step_new(&device, 0, &training, &error));
    assert_ok(table->convnet_step_gradient(&loss, gradient, device, codes, B, labels, masks, &error));
    assert_true(fabs(loss - expected) < 1e-4 * expected);
    check_all_near(&l, gradient, cpu, 1e-3);
    table->convnet_step_free(device);
    sf_charcnn_step_free(step);
    free(trained);
    free(gradient);
}

static const sf_charcnn_plan small_plan = {.features = 16, .hidden = 16, .blanked = 0.05, .moved = 0.5, .shift = 4};

static safer_status train(const char *output, const safer_train_options *o, safer_train_report *report,
                          safer_error *error)
{
    safer_train_report unused;
    return sf_charcnn_train_plan(output, o, &small_plan, report ? report : &unused, error);
}

static safer_train_options small_options(const safer_data *data, const safer_lexicon *lexicon)
{
    safer_train_options o = safer_train_options_default();
    o.arch = SAFER_ARCH_CHARCNN;
    o.train = data;
    o.lexicon = lexicon;
    o.charcnn.characters = 123;
    o.course.dropout = 0.1;
    o.course.rate = 0.003;
    o.course.decay = 0.1;
    o.course.clip = 1;
    o.course.warmup = 0.1;
    o.course.batch = 8;
    o.course.epochs = 2;
    o.course.patience = 0;
    o.threads = 1;
    o.device = "cuda";
    return o;
}

/* The same draws, order, masks, rates and updates: in f32 the CPU comes to nearly the same model. */
static void training_is_the_cpus(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(60);
    safer_lexicon *lexicon = make_review_lexicon("component");
    safer_train_options o = small_options(data, lexicon);
    safer_train_report ours, theirs;
    const sf_charcnn_layout l = make_layout(123, 16, 16, 2);
    sf_safetensors *files[2] = {NULL, NULL};
    assert_ok(train(temporary("device"), &o, &ours, &error));
    o.device = "cpu";
    o.course.precision = SAFER_PRECISION_F32;
    assert_ok(train(temporary("cpu"), &o, &theirs, &error));
    assert_true(fabs(ours.loss - theirs.loss) < 1e-3 * theirs.loss);
    assert_true(ours.tokens == theirs.tokens && ours.dev_accuracy == theirs.dev_accuracy);
    assert_ok(sf_safetensors_open(&files[0], temporary("device"), &error));
    assert_ok(sf_safetensors_open(&files[1], temporary("cpu"), &error));
    for (size_t t = 0; t < l.tensor_count; t++) {
        const sf_tensor *device = sf_safetensors_find(files[0], l.tensors[t].name),
                        *cpu = sf_safetensors_find(files[1], l.tensors[t].name);
        assert_true(device && cpu && device->count == l.tensors[t].count && cpu->count == l.tensors[t].count);
        check_near(l.tensors[t].name, device->bytes, cpu->bytes, cpu->count, 2e-2);
    }
    for (int i = 0; i < 2; i++) sf_safetensors_free(files[i]);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void stopped_runs_are_resumed(void **unused)
{
    (void)unused;
    static const stop_point stops[] = {{NULL, 8, 1}, {NULL, 36, 1}, {NULL, 44, 1}};
    safer_data *data = make_reviews(40); /* 36 to learn from: five steps per epoch */
    safer_lexicon *lexicon = make_review_lexicon("component");
    safer_train_options o = small_options(data, lexicon);
    check_threads_do_not_matter(train, &o);
    check_stopped_runs_are_resumed(train, &o, 36, stops, COUNT(stops));
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* It ends with an error and the checkpoint of its last epoch, from which it goes on, here or on the CPU. */
static void a_device_may_fail(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(40);
    safer_train_options o = small_options(data, NULL);
    assert_ok(train(temporary("whole"), &o, NULL, &error));
    for (int cpu = 0; cpu < 2; cpu++) {
        const char *output = temporary("failing");
        safer_train_report report;
        (void)unlink(output);
        o.device = "cuda";
        o.resume = 0;
        tell("MOCK_FAIL", "8");
        assert_fails(train(output, &o, NULL, &error), SAFER_SYSTEM, "fell off the bus");
        tell("MOCK_FAIL", NULL);
        assert_int_equal(access(output, F_OK), -1);
        assert_int_equal(access(temporary("failing.checkpoint"), F_OK), 0);
        o.resume = 1;
        o.device = cpu ? NULL : "cuda";
        assert_ok(train(output, &o, &report, &error));
        assert_int_equal(report.epochs, 2);
        if (!cpu) assert_same_file(output, temporary("whole"));
    }
    safer_data_free(data);
}

static void training_mistakes_are_named(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(40);
    const char *output = temporary("mistake");
    safer_train_options o = small_options(data, NULL);
    tell("MOCK_TEXTS", "7");
    assert_fails(
        train(output, &o, NULL, &error), SAFER_MEMORY,
        "cuda:0 has not enough free memory for a step of 8 texts of 123 characters: lower batch or characters");
    o.course.batch = 4;
    assert_ok(train(output, &o, NULL, &error));
    tell("MOCK_TEXTS", NULL);
    o.course.precision = SAFER_PRECISION_F32;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "a GPU computes in bf16");

    /* "auto" is the CPU for what a device cannot do: another arithmetic, another shape. */
    for (int i = 0; i < 2; i++) {
        o.course.precision = i ? SAFER_PRECISION_BF16 : SAFER_PRECISION_F32;
        tell("MOCK_HIDDEN", i ? "64" : NULL);
        o.device = NULL;
        assert_ok(train(temporary("cpu"), &o, NULL, &error));
        o.device = "auto";
        assert_ok(train(output, &o, NULL, &error));
        assert_same_file(output, temporary("cpu"));
    }
    o.device = "cuda";
    assert_fails(train(output, &o, NULL, &error), SAFER_INPUT, "dense layers of another size");
    safer_data_free(data);
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews(20);
    safer_train_options o = small_options(data, NULL);
    o.course.epochs = 1;
    check_training_memory(train, &o, 0);
    safer_data_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(answers_are_the_cpus, withdraw_all),
        cmocka_unit_test_teardown(all_devices_are_used, withdraw_all),
        cmocka_unit_test(gradients_are_the_cpus),
        cmocka_unit_test(training_is_the_cpus),
        cmocka_unit_test(stopped_runs_are_resumed),
        cmocka_unit_test_teardown(a_device_may_fail, withdraw_all),
        cmocka_unit_test_teardown(training_mistakes_are_named, withdraw_all),
        cmocka_unit_test(memory_may_run_out),
    };
    tell("SAFER_PLUGINS", MOCKS "works");
    return cmocka_run_group_tests_name("devices, charcnn", tests, NULL, NULL);
}
