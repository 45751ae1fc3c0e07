/* charcnn on devices, by the plugin without one (mock_plugin.c): answers and training as on the CPU, and what is said
 * when a device is too small, cannot do it or fails. */
#define _GNU_SOURCE
#include "nn/device.h"

#include "devices.h"
#include "model/charcnn_device.h"
#include "test_charcnn.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(answers_are_the_cpus, withdraw_all),
        cmocka_unit_test_teardown(all_devices_are_used, withdraw_all),
    };
    tell("SAFER_PLUGINS", MOCKS "works");
    return cmocka_run_group_tests_name("devices, charcnn", tests, NULL, NULL);
}
