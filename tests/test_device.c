/* Devices, by a plugin without one (mock_plugin.c): which plugins are taken, which devices are chosen, answers and
 * training of bert as on the CPU, and what is said when a device is too small, cannot do it or fails. charcnn and
 * context are in test_device_charcnn.c and test_device_context.c. */
#define _GNU_SOURCE
#include "nn/device.h"

#include "devices.h"
#include "encoder.h"
#include "train/bert_learner.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -------------------------------------------------------------------- finding */

/* First of all tests: a plugin that was taken stays. */
static void other_plugins_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    sf_device_choice choice;
    char folder[600];
    snprintf(folder, sizeof folder, "%s", temporary("plugins"));
    assert_int_equal(mkdir(folder, 0700), 0);
    const struct {
        const char *folder, *message;
    } cases[] = {{NULL, "built without CUDA"},
                 {folder, "where there is no libsafer_cuda.so"},
                 {MOCKS "old", "is of safer 0.0.9, and this is " SAFER_VERSION},
                 {MOCKS "other", "is of another build of safer"},
                 {MOCKS "nameless", "is no plugin of safer: it has no sf_device_plugin"},
                 {folder, "cannot load the plugin"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tell("SAFER_PLUGINS", cases[i].folder);
        if (i + 1 == COUNT(cases)) write_temporary("plugins/libsafer_cuda.so", "no library", 10);
        assert_fails(sf_device_choose(&choice, "cuda", &error), SAFER_SYSTEM, cases[i].message);
        assert_ok(sf_device_choose(&choice, "auto", &error));
        assert_int_equal(choice.count, 0);
    }
    tell("SAFER_PLUGINS", MOCKS "works");
}

static void devices_are_chosen(void **unused)
{
    (void)unused;
    safer_error error = {0};
    sf_device_choice choice;
    static const char *const wrong[] = {"",        "gpu",     "CUDA",         "cuda:", "cuda:x",
                                        "cuda:1x", "cuda:-1", "cuda:1234567", "cudas"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_fails(sf_device_choose(&choice, wrong[i], &error), SAFER_INVALID, "cpu, cuda, cuda:N or auto");
    tell("MOCK_DEVICES", "3");
    const struct {
        const char *name;
        int first, count;
    } cases[] = {{"cpu", 0, 0}, {"cuda", 0, 3}, {"auto", 0, 3}, {"cuda:0", 0, 1}, {"cuda:2", 2, 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_ok(sf_device_choose(&choice, cases[i].name, &error));
        assert_int_equal(choice.first, cases[i].first);
        assert_int_equal(choice.count, cases[i].count);
    }
    assert_fails(sf_device_choose(&choice, "cuda:3", &error), SAFER_INVALID, "there is no cuda:3; there are 3");
    tell("MOCK_DEVICES", "0");
    assert_fails(sf_device_choose(&choice, "cuda", &error), SAFER_SYSTEM, "no NVIDIA driver");
    assert_ok(sf_device_choose(&choice, "auto", &error));
    assert_int_equal(choice.count, 0);
}

/* -------------------------------------------------------------------- answers */

enum { TEXTS = 40 };

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
        a->lengths[i] = safer_data_row(data, i).text_length;
    }
    assert_ok(safer_model_classify(model, a->texts, a->lengths, TEXTS, a->labels, a->scores, &error));
}

static void answers_are_the_cpus(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = NULL;
    safer_data *data = make_reviews(TEXTS);
    asked cpu, device;
    assert_ok(safer_model_open(&model, make_bert(2), &error));
    assert_ok(safer_model_set_precision(model, SAFER_PRECISION_F32, &error));
    ask(&cpu, model, data);
    assert_ok(safer_model_set_device(model, "cuda", &error));
    assert_string_equal(model->arithmetic, "bf16 cuda sm_00 mock");
    ask(&device, model, data);
    for (size_t i = 0; i < TEXTS * 2; i++) assert_true(fabsf(cpu.scores[i] - device.scores[i]) < 1e-4f);

    /* Less memory: smaller batches, the same bits; then one line. */
    asked small;
    size_t *most = counter("mock_most_texts");
    tell("MOCK_ROWS", "50");
    *most = 0;
    assert_ok(safer_model_set_device(model, "cuda", &error));
    ask(&small, model, data);
    assert_memory_equal(small.scores, device.scores, sizeof small.scores);
    assert_in_range(*most, 1, 50 / 3);
    tell("MOCK_ROWS", "10");
    assert_fails(safer_model_set_device(model, "cuda", &error), SAFER_MEMORY, "cuda:0 has not enough free memory");
    assert_string_equal(model->arithmetic, "bf16 cuda sm_00 mock"); /* it stays where it was */
    ask(&small, model, data);
    withdraw_all(NULL);

    /* What a device cannot have, "auto" computes on the CPU. */
    tell("MOCK_HEAD", "64");
    assert_fails(safer_model_set_device(model, "cuda:0", &error), SAFER_INPUT, "heads of another size");
    assert_ok(safer_model_set_device(model, "auto", &error));
    assert_null(strstr(model->arithmetic, "cuda"));
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

static void all_devices_are_used(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = NULL;
    safer_data *data = make_reviews(120);
    safer_lexicon *lexicon = make_review_lexicon("component");
    safer_summary summary;
    safer_certify_options options = safer_certify_options_default();
    size_t *answers = counter("mock_answers");
    tell("MOCK_DEVICES", "3");
    tell("MOCK_ROWS", "4096");
    tell("MOCK_SLOW", "5000"); /* so that calls meet */
    assert_ok(safer_model_open(&model, make_bert(2), &error));
    assert_ok(safer_model_set_device(model, "cuda", &error));
    options.n = 60;
    memset(answers, 0, 3 * sizeof *answers);
    assert_ok(safer_certify(&summary, temporary("all"), 0, model, lexicon, data, &options, &error));
    for (int i = 0; i < 3; i++) assert_true(answers[i] > 0);
    safer_summary_free(&summary);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    safer_data_free(data);
}

static void other_models_stay_on_the_cpu(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = NULL;
    safer_data *data = make_reviews(40);
    safer_train_options o = safer_train_options_default();
    o.arch = SAFER_ARCH_NGRAM;
    o.train = data;
    assert_ok(safer_train(temporary("ngram"), &o, NULL, &error));
    assert_ok(safer_model_open(&model, temporary("ngram"), &error));
    assert_ok(safer_model_set_device(model, "auto", &error));
    assert_ok(safer_model_set_device(model, "cpu", &error));
    assert_fails(safer_model_set_device(model, "cuda", &error), SAFER_INVALID, "ngram is computed on the CPU alone");
    assert_fails(safer_model_set_device(model, "tpu", &error), SAFER_INVALID, "\"tpu\" is none");
    safer_model_free(model);
    safer_data_free(data);
}

/* ------------------------------------------------------------------- training */

/* Gradients of a tensor are near when their difference is short. */
static void check_near(const sf_bert_layout *l, const float *ours, const float *theirs, double most)
{
    for (size_t t = 0; t < l->tensor_count; t++) {
        const sf_bert_tensor *tensor = &l->tensors[t];
        double length = 0, far = 0;
        for (size_t i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            length += (double)theirs[i] * (double)theirs[i];
            far += pow((double)ours[i] - (double)theirs[i], 2);
        }
        if (strstr(tensor->name, "key.bias") && length < 1e-8) continue; /* 0 but for rounding */
        if (sqrt(far) > most * sqrt(length)) fail_msg("%s is off by %g of %g", tensor->name, sqrt(far), sqrt(length));
    }
}

static void gradients_are_the_cpus(void **unused)
{
    (void)unused;
    static const sf_bert_shape shapes[] = {
        {30, 20, 2, 2, 16, 2, 24, 2, SF_GELU, SF_POOL_POOLER, SF_ENCODER_TANH, 1e-6f, 16, 0, {0}},
        {30, 20, 0, 2, 16, 4, 32, 3, SF_RELU, SF_POOL_CLS, SF_ENCODER_TANH, 1e-6f, 16, 0, {0}},
        {30, 20, 2, 1, 16, 2, 24, 2, SF_GELU_TANH, SF_POOL_MEAN, SF_ENCODER_TANH, 1e-6f, 16, 0, {0}},
        {30, 20, 2, 2, 16, 2, 24, 2, SF_GELU, SF_POOL_POOLER, SF_ENCODER_RELU, 1e-6f, 16, 0, {0}},
    };
    safer_error error = {0};
    const sf_device_table *table = NULL;
    assert_ok(sf_device_load(&table, &error));
    for (size_t k = 0; k < COUNT(shapes); k++) {
        enum { B = 5 };
        sf_bert_layout l;
        sf_encoder encoder;
        sf_bert_step *step = NULL;
        sf_device_step *device = NULL;
        uint32_t ids[B * 16];
        size_t offsets[B + 1] = {0};
        int labels[B];
        double loss;
        assert_int_equal(sf_bert_layout_make(&l, &shapes[k]), 0);
        float *p = sf_alloc_aligned(l.size, sizeof *p), *gradient = sf_calloc(l.size, sizeof *gradient);
        uint8_t *decays = sf_calloc(l.size, 1);
        for (size_t i = 0; i < l.size; i++) p[i] = next_float();
        for (size_t i = 0; i < B; i++) {
            offsets[i + 1] = offsets[i] + 2 + next_below(15);
            labels[i] = (int)next_below((uint32_t)shapes[k].classes);
            for (size_t n = offsets[i]; n < offsets[i + 1]; n++) ids[n] = next_below(30);
        }
        const sf_bert_options o = {.layers = SIZE_MAX, .clip = 1, .type = SF_F32, .threads = 1, .seed = 1};
        const sf_bert_batch batch = {ids, offsets, B};
        assert_int_equal(sf_bert_encoder(&encoder, &l, p), 0);
        assert_ok(sf_bert_step_new(&step, &l, p, &o, B, B * 16, &error));
        const double expected = sf_bert_step_gradient(step, &batch, labels, 1);
        const sf_device_training training = {&encoder, p, l.size, 0, 0, 1, decays, B, B * 16, 1};
        assert_ok(table->step_new(&device, 0, &training, &error));
        assert_ok(table->step_gradient(&loss, gradient, device, ids, offsets, B, labels, NULL, &error));
        assert_true(fabs(loss - expected) < 1e-4 * expected);
        check_near(&l, gradient, sf_bert_step_read(step), 1e-3);
        table->step_free(device);
        sf_bert_step_free(step);
        sf_bert_layout_free(&l);
        free((void *)encoder.layer);
        free(p);
        free(gradient);
        free(decays);
    }
}

static safer_train_options small_options(const char *encoder, const safer_data *data, const safer_lexicon *lexicon)
{
    safer_train_options o = safer_train_options_default();
    o.arch = SAFER_ARCH_BERT;
    o.bert.encoder = encoder;
    o.train = data;
    o.lexicon = lexicon;
    o.course.rate = 0.003;
    o.course.batch = 8;
    o.course.epochs = 2;
    o.threads = 1;
    o.bert.layers = SAFER_ALL_LAYERS;
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
    char encoder[600];
    snprintf(encoder, sizeof encoder, "%s", make_encoder());
    const int layers[] = {SAFER_ALL_LAYERS, 1, 0};
    for (size_t i = 0; i < COUNT(layers); i++) {
        safer_train_options o = small_options(encoder, data, lexicon);
        safer_train_report ours, theirs;
        sf_bert_checkpoint device = {0}, cpu = {0};
        o.bert.layers = layers[i];
        o.course.decay = 0.5; /* so that it shows what decays */
        assert_ok(safer_train(temporary("device"), &o, &ours, &error));
        o.device = "cpu";
        o.course.precision = SAFER_PRECISION_F32;
        assert_ok(safer_train(temporary("cpu"), &o, &theirs, &error));
        assert_true(fabs(ours.loss - theirs.loss) < 1e-3 * theirs.loss);
        assert_true(ours.tokens == theirs.tokens && ours.dev_accuracy == theirs.dev_accuracy);
        assert_ok(sf_bert_checkpoint_open(&device, temporary("device"), &error));
        assert_ok(sf_bert_checkpoint_open(&cpu, temporary("cpu"), &error));
        check_near(&cpu.layout, device.parameters, cpu.parameters, 5e-3);
        sf_bert_checkpoint_free(&device);
        sf_bert_checkpoint_free(&cpu);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void stopped_runs_are_resumed(void **unused)
{
    (void)unused;
    static const stop_point stops[] = {{NULL, 8, 1}, {NULL, 36, 1}, {NULL, 44, 1}};
    safer_data *data = make_reviews(40); /* 36 to learn from: five steps per epoch */
    safer_lexicon *lexicon = make_review_lexicon("component");
    char encoder[600];
    snprintf(encoder, sizeof encoder, "%s", make_encoder());
    safer_train_options o = small_options(encoder, data, lexicon);
    check_threads_do_not_matter(safer_train, &o);
    check_stopped_runs_are_resumed(safer_train, &o, 36, stops, COUNT(stops));
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* It ends with an error and the checkpoint of its last epoch, from which it goes on, here or on the CPU. */
static void a_device_may_fail(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(40);
    char encoder[600];
    snprintf(encoder, sizeof encoder, "%s", make_encoder());
    safer_train_options o = small_options(encoder, data, NULL);
    assert_ok(safer_train(temporary("whole"), &o, NULL, &error));
    for (int cpu = 0; cpu < 2; cpu++) {
        const char *output = temporary("failing");
        safer_train_report report;
        (void)unlink(output);
        o.device = "cuda";
        o.resume = 0;
        tell("MOCK_FAIL", "8");
        assert_fails(safer_train(output, &o, NULL, &error), SAFER_SYSTEM, "fell off the bus");
        tell("MOCK_FAIL", NULL);
        assert_int_equal(access(output, F_OK), -1);
        assert_int_equal(access(temporary("failing.checkpoint"), F_OK), 0);
        o.resume = 1;
        o.device = cpu ? NULL : "cuda";
        assert_ok(safer_train(output, &o, &report, &error));
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
    char encoder[600];
    snprintf(encoder, sizeof encoder, "%s", make_encoder());
    const char *output = temporary("mistake");
    safer_train_options o = small_options(encoder, data, NULL);
    tell("MOCK_ROWS", "100");
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_MEMORY,
                 "cuda:0 has not enough free memory for a step of 8 texts of up to 24 pieces: lower batch or tokens");
    o.course.batch = 4;
    assert_ok(safer_train(output, &o, NULL, &error));
    tell("MOCK_ROWS", NULL);
    o.device = "cuda:1";
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "there is no cuda:1; there is 1");
    o.device = "fpga";
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "\"fpga\" is none");
    o.device = "cuda";
    o.course.precision = SAFER_PRECISION_F32;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "a GPU computes in bf16");
    o.course.precision = SAFER_PRECISION_BF16;
    tell("MOCK_HEAD", "64");
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INPUT, "heads of another size");

    /* "auto" is the CPU for what a device cannot do. */
    o.device = NULL;
    assert_ok(safer_train(temporary("cpu"), &o, NULL, &error));
    o.device = "auto";
    assert_ok(safer_train(output, &o, NULL, &error));
    assert_same_file(output, temporary("cpu"));
    tell("MOCK_HEAD", NULL);
    o.arch = SAFER_ARCH_CNN;
    o.bert = safer_train_options_default().bert;
    assert_ok(safer_train(output, &o, NULL, &error));
    o.device = "cuda";
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "but cnn is trained on the CPU alone");
    safer_data_free(data);
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews(20);
    safer_train_options o = small_options(make_encoder(), data, NULL);
    o.course.epochs = 1;
    check_training_memory(safer_train, &o, 0);
    safer_data_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_plugins_are_refused),
        cmocka_unit_test_teardown(devices_are_chosen, withdraw_all),
        cmocka_unit_test_teardown(answers_are_the_cpus, withdraw_all),
        cmocka_unit_test_teardown(all_devices_are_used, withdraw_all),
        cmocka_unit_test(other_models_stay_on_the_cpu),
        cmocka_unit_test(gradients_are_the_cpus),
        cmocka_unit_test(training_is_the_cpus),
        cmocka_unit_test(stopped_runs_are_resumed),
        cmocka_unit_test_teardown(a_device_may_fail, withdraw_all),
        cmocka_unit_test_teardown(training_mistakes_are_named, withdraw_all),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
