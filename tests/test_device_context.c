/* context on devices, by the plugin without one (mock_plugin.c): the means that its encoder gives, answers, sums and
 * training as on the CPU, and what is said when a device is too small, cannot do it or fails. */
#define _GNU_SOURCE
#include "devices.h"
#include "encoder.h"
#include "model/context.h"
#include "model/sum.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { TEXTS = 40, CLASSES = 2 };
static const char there[] = "bf16 cuda sm_00 mock";

/* ---------------------------------------------------------------------- means */

enum { B = 9, LONGEST = 16, H = 16, PARTS = 6 };

/* An encoder without classes, and texts in parts: some have no piece, the first pieces and the last are in none. */
typedef struct lesson {
    sf_bert_layout layout;
    float *parameters;
    uint32_t ids[B * LONGEST];
    size_t offsets[B + 1], begin[B][PARTS + 1];
} lesson;

static void make_lesson(lesson *x, const sf_bert_shape *shape)
{
    assert_int_equal(sf_bert_layout_make(&x->layout, shape), 0);
    x->parameters = sf_alloc_aligned(x->layout.size, sizeof *x->parameters);
    assert_non_null(x->parameters);
    for (size_t i = 0; i < x->layout.size; i++) x->parameters[i] = next_float();
    x->offsets[0] = 0;
    for (size_t t = 0; t < B; t++) {
        const size_t length = t == 1 ? 1 : 2 + next_below(LONGEST - 1);
        x->offsets[t + 1] = x->offsets[t] + length;
        for (size_t n = x->offsets[t]; n < x->offsets[t + 1]; n++) x->ids[n] = next_below(30);
        for (size_t i = 0, at = length > 1; i <= PARTS; i++) {
            x->begin[t][i] = at;
            if (at + 1 < length) at += next_below(3) < length - at ? next_below(3) % (length - at) : 0;
        }
    }
}

static void drop_lesson(lesson *x)
{
    free(x->parameters);
    sf_bert_layout_free(&x->layout);
}

/* Of texts first..last-1, (B, PARTS, H). */
static void ask_means(float *means, sf_bert_device *device, const lesson *x, size_t first, size_t last)
{
    safer_error error = {0};
    sf_bert_parts parts[B];
    for (size_t t = first; t < last; t++) parts[t] = (sf_bert_parts){x->begin[t], PARTS, means + t * PARTS * H};
    assert_ok(sf_bert_device_part_means(device, &(sf_bert_batch){x->ids, x->offsets + first, last - first},
                                        parts + first, &error));
}

typedef struct asker {
    sf_bert_device *device;
    const lesson *x;
    const float *expected;
    int wrong;
} asker;

static void *ask_often(void *argument)
{
    asker *a = argument;
    float own[B * PARTS * H];
    for (size_t i = 0; i < 30; i++) {
        const size_t t = i % B;
        ask_means(own, a->device, a->x, t, t + 1);
        a->wrong |= memcmp(own + t * PARTS * H, a->expected + t * PARTS * H, PARTS * H * sizeof *own) != 0;
    }
    return NULL;
}

static void means_are_the_cpus(void **unused)
{
    (void)unused;
    static const sf_bert_shape shapes[] = {
        {30, 20, 2, 2, H, 2, 24, 0, SF_GELU, SF_POOL_MEAN, SF_ENCODER_TANH, 1e-6f, LONGEST, 0, {0}},
        {30, 20, 0, 1, H, 4, 32, 0, SF_RELU, SF_POOL_MEAN, SF_ENCODER_TANH, 1e-6f, LONGEST, 1, {0}},
    };
    safer_error error = {0};
    for (size_t k = 0; k < COUNT(shapes); k++) {
        lesson x;
        static float cpu[B * PARTS * H], device[B * PARTS * H], again[B * PARTS * H];
        sf_bert_net *net = NULL;
        sf_bert_scratch *scratch = NULL;
        sf_bert_device *d = NULL;
        sf_bert_parts parts[B];
        size_t empty = 0;
        make_lesson(&x, &shapes[k]);
        assert_ok(sf_bert_net_new(&net, &x.layout, x.parameters, sf_arithmetic_of(SAFER_PRECISION_F32), 1, &error));
        assert_ok(sf_bert_scratch_new(&scratch, net, &error));
        for (size_t t = 0; t < B; t++) parts[t] = (sf_bert_parts){x.begin[t], PARTS, cpu + t * PARTS * H};
        sf_bert_part_means(net, &(sf_bert_batch){x.ids, x.offsets, B}, parts, scratch);
        assert_ok(sf_bert_device_open(&d, "cuda", 1, &x.layout, x.parameters, &error));
        ask_means(device, d, &x, 0, B);
        for (size_t i = 0; i < B * PARTS; i++) {
            const int none = x.begin[i / PARTS][i % PARTS] == x.begin[i / PARTS][i % PARTS + 1];
            empty += (size_t)none;
            for (size_t c = 0; c < H; c++) {
                const float value = device[i * H + c];
                assert_true(none ? value == 0 && cpu[i * H + c] == 0 : fabsf(value - cpu[i * H + c]) < 1e-4f);
            }
        }
        assert_true(empty > 0 && empty < B * PARTS);

        /* Alone, in smaller calls, and with those of other threads: the same bits. */
        for (size_t t = 0; t < B; t++) ask_means(again, d, &x, t, t + 1);
        assert_memory_equal(again, device, sizeof again);
        tell("MOCK_ROWS", "20");
        tell("MOCK_SLOW", "1000");
        sf_bert_device_free(d);
        assert_ok(sf_bert_device_open(&d, "cuda", 1, &x.layout, x.parameters, &error));
        ask_means(again, d, &x, 0, B);
        assert_memory_equal(again, device, sizeof again);
        size_t *most = counter("mock_most_texts");
        pthread_t threads[6];
        asker askers[COUNT(threads)];
        *most = 0;
        for (size_t i = 0; i < COUNT(threads); i++) {
            askers[i] = (asker){d, &x, device, 0};
            assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &askers[i]), 0);
        }
        for (size_t i = 0; i < COUNT(threads); i++) {
            pthread_join(threads[i], NULL);
            assert_false(askers[i].wrong);
        }
        assert_true(*most > 1); /* they met */
        withdraw_all(NULL);
        sf_bert_device_free(d);
        sf_bert_scratch_free(scratch);
        sf_bert_net_free(net);
        drop_lesson(&x);
    }
}

/* -------------------------------------------------------------------- training */

static safer_train_options small_options(const safer_data *data, const safer_lexicon *lexicon, const char *encoder)
{
    safer_train_options o = safer_train_options_default();
    o.arch = SAFER_ARCH_CONTEXT;
    o.train = data;
    o.lexicon = lexicon;
    o.bert.encoder = encoder;
    o.context.size = 4;
    o.course.epochs = 6;
    o.cnn.min_count = 1;
    o.threads = 1;
    o.device = "cuda";
    return o;
}

typedef struct asked {
    const char *texts[TEXTS];
    size_t lengths[TEXTS];
    int labels[TEXTS];
    float scores[TEXTS * CLASSES];
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

static double difference(const asked *a, const asked *b)
{
    double most = 0;
    for (size_t i = 0; i < TEXTS * CLASSES; i++) most = fmax(most, fabs((double)a->scores[i] - (double)b->scores[i]));
    return most;
}

/* The contexts are nearly the CPU's in f32, and so is what is learned from them. */
static void training_is_the_cpus(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(200);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    safer_train_options o = small_options(data, lexicon, make_encoder());
    safer_train_report ours, theirs;
    asked found[2];
    size_t *answers = counter("mock_answers");
    memset(answers, 0, 2 * sizeof *answers);
    tell("MOCK_DEVICES", "2"); /* of which the first is used */
    assert_ok(safer_train(temporary("device"), &o, &ours, &error));
    assert_true(answers[0] > 0 && answers[1] == 0);
    *answers = 0;
    o.device = "cpu";
    o.course.precision = SAFER_PRECISION_F32;
    assert_ok(safer_train(temporary("cpu"), &o, &theirs, &error));
    o.device = "auto"; /* f32 is the CPU's */
    assert_ok(safer_train(temporary("auto"), &o, NULL, &error));
    assert_same_file(temporary("cpu"), temporary("auto"));
    assert_int_equal(*answers, 0);
    assert_true(ours.dev_accuracy == theirs.dev_accuracy && ours.tokens == theirs.tokens);
    assert_true(fabs(ours.loss - theirs.loss) < 1e-3);
    for (int i = 0; i < 2; i++) {
        safer_model *model = NULL;
        assert_ok(safer_model_open(&model, temporary(i ? "cpu" : "device"), &error));
        assert_ok(safer_model_set_precision(model, SAFER_PRECISION_F32, &error));
        ask(&found[i], model, data);
        safer_model_free(model);
    }
    assert_true(difference(&found[0], &found[1]) < 1e-2);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* Another device, or the CPU, has other contexts: what was learned from these is not continued with those. */
static void stopped_runs_are_resumed(void **unused)
{
    (void)unused;
    static const stop_point stops[] = {{"epoch 2 of 6: loss", 0, 1}};
    safer_data *data = make_reviews(100);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    safer_train_options o = small_options(data, lexicon, make_encoder());
    safer_error error = {0};
    stopper s = {.when = "epoch 2 of 6: loss"};
    tell("MOCK_ROWS", "500"); /* several calls, which meet in other ways each time */
    check_threads_do_not_matter(safer_train, &o);
    check_stopped_runs_are_resumed(safer_train, &o, 90, stops, COUNT(stops));
    o.progress = (safer_progress){stop_run, &s};
    assert_fails(safer_train(temporary("stopped"), &o, NULL, &error), SAFER_CANCELLED, "epoch");
    o.progress = (safer_progress){0};
    o.resume = 1;
    o.device = NULL;
    assert_fails(safer_train(temporary("stopped"), &o, NULL, &error), SAFER_INPUT,
                 "with other options or data, or on another device or processor; remove it");
    o.device = "cuda";
    assert_ok(safer_train(temporary("stopped"), &o, NULL, &error));
    assert_same_file(temporary("stopped"), temporary("whole"));
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void training_mistakes_are_named(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(60);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    const char *output = temporary("mistake");
    safer_train_options o = small_options(data, lexicon, make_encoder());
    tell("MOCK_ROWS", "10");
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_MEMORY, "cuda:0 has not enough free memory");
    withdraw_all(NULL);
    for (int first = 1; first < 4; first++) { /* at the projection, or the contexts */
        char number[16];
        snprintf(number, sizeof number, "%d", first);
        tell("MOCK_ROWS", "300");
        tell("MOCK_FAIL", number);
        assert_fails(safer_train(output, &o, NULL, &error), SAFER_SYSTEM, "computing means: it fell off the bus");
        withdraw_all(NULL);
    }
    o.device = "cuda:1";
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "there is no cuda:1; there is 1");
    o.device = "cuda";
    o.course.precision = SAFER_PRECISION_F32;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "a GPU computes in bf16");
    o.course.precision = SAFER_PRECISION_BF16;
    tell("MOCK_HEAD", "64");
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INPUT, "heads of another size");
    assert_int_equal(access(output, F_OK), -1);

    /* "auto" is the CPU for what a device cannot do. */
    o.device = NULL;
    assert_ok(safer_train(temporary("cpu"), &o, NULL, &error));
    o.device = "auto";
    assert_ok(safer_train(output, &o, NULL, &error));
    assert_same_file(output, temporary("cpu"));
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews(24);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    safer_train_options o = small_options(data, lexicon, make_encoder());
    o.course.epochs = 1;
    check_training_memory(safer_train, &o, 0);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* -------------------------------------------------------------------- answers */

static const char *make_model(const char *name, const safer_data *data, const safer_lexicon *lexicon, int tokens)
{
    safer_error error = {0};
    safer_train_options o = small_options(data, lexicon, make_encoder());
    o.device = NULL;
    o.bert.tokens = tokens;
    o.course.epochs = 2;
    assert_ok(safer_train(temporary(name), &o, NULL, &error));
    return temporary(name);
}

static void answers_are_the_cpus(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = NULL;
    safer_data *data = make_reviews(TEXTS);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    asked cpu, device, small;
    assert_ok(safer_model_open(&model, make_model("context", data, lexicon, 0), &error));
    assert_ok(safer_model_set_precision(model, SAFER_PRECISION_F32, &error));
    ask(&cpu, model, data);
    assert_ok(safer_model_set_device(model, "cuda", &error));
    assert_string_equal(model->arithmetic, there);
    assert_true(model->concurrency > 1);
    ask(&device, model, data);
    assert_true(difference(&cpu, &device) < 1e-4);

    /* Less memory: smaller calls, the same bits; then one line. */
    size_t *most = counter("mock_most_texts");
    tell("MOCK_ROWS", "50");
    *most = 0;
    assert_ok(safer_model_set_device(model, "cuda", &error));
    ask(&small, model, data);
    assert_memory_equal(small.scores, device.scores, sizeof small.scores);
    assert_in_range(*most, 1, SF_CONTEXT_GROUP - 1);
    tell("MOCK_ROWS", "10");
    assert_fails(safer_model_set_device(model, "cuda", &error), SAFER_MEMORY, "cuda:0 has not enough free memory");
    assert_string_equal(model->arithmetic, there); /* it stays where it was */
    ask(&small, model, data);
    assert_memory_equal(small.scores, device.scores, sizeof small.scores);
    withdraw_all(NULL);

    /* What a device cannot have, "auto" computes on the CPU. */
    tell("MOCK_HEAD", "64");
    assert_fails(safer_model_set_device(model, "cuda:0", &error), SAFER_INPUT, "heads of another size");
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
    safer_lexicon_free(lexicon);
}

/* Texts of many threads meet in calls on all devices there are. */
static void all_devices_are_used(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_model *model = NULL;
    safer_data *data = make_reviews(200);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    safer_summary summary;
    safer_certify_options options = safer_certify_options_default();
    size_t *answers = counter("mock_answers"), *most = counter("mock_most_texts");
    options.method = SAFER_METHOD_IBP;
    options.threads = 1;
    assert_ok(safer_model_open(&model, make_model("context", data, lexicon, 0), &error));
    tell("MOCK_DEVICES", "3");
    tell("MOCK_ROWS", "8192");
    tell("MOCK_SLOW", "5000");
    assert_ok(safer_model_set_device(model, "cuda", &error));
    memset(answers, 0, 3 * sizeof *answers);
    *most = 0;
    assert_ok(safer_certify(&summary, temporary("all"), 0, model, lexicon, data, &options, &error));
    for (int i = 0; i < 3; i++) assert_true(answers[i] > 0);
    assert_true(*most > 1);
    safer_summary_free(&summary);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    safer_data_free(data);
}

/* Members of a sum are where the sum is, and it is asked by as many threads as they need. */
static void sums_are_there_too(void **unused)
{
    (void)unused;
    static const char text[] = "{\"arch\": \"sum\", \"members\": [{\"model\": \"short\"}, {\"model\": \"context\"}]}";
    safer_error error = {0};
    safer_model *model = NULL;
    safer_data *data = make_reviews(TEXTS);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    asked cpu, device, again;
    make_model("short", data, lexicon, 9);
    make_model("context", data, lexicon, 0);
    assert_ok(safer_model_open(&model, write_temporary("sum.json", text, sizeof text - 1), &error));
    assert_int_equal(model->concurrency, 0);
    ask(&cpu, model, data);
    assert_ok(safer_model_set_precision(model, SAFER_PRECISION_F32, &error));
    tell("MOCK_ROWS", "12"); /* for the first member alone: it does not stay there, since records name one arithmetic */
    assert_fails(safer_model_set_device(model, "cuda", &error), SAFER_MEMORY, "cuda:0 has not enough free memory");
    assert_null(strstr(model->arithmetic, "cuda"));
    assert_true(!model->concurrency && !model->calls);
    ask(&again, model, data);
    assert_memory_equal(again.scores, cpu.scores, sizeof again.scores);
    withdraw_all(NULL);
    assert_ok(safer_model_set_precision(model, SAFER_PRECISION_F32, &error));
    ask(&cpu, model, data);
    assert_ok(safer_model_set_device(model, "cuda", &error));
    assert_string_equal(model->arithmetic, there);
    assert_true(model->concurrency > 1 && model->calls == 1);
    ask(&device, model, data);
    assert_true(difference(&cpu, &device) < 1e-4);
    tell("MOCK_ROWS", "12"); /* for the first member alone: the name of its bits is that of another net now */
    assert_fails(safer_model_set_device(model, "cuda", &error), SAFER_MEMORY, "cuda:0 has not enough free memory");
    assert_string_equal(model->arithmetic, there);
    withdraw_all(NULL);
    ask(&again, model, data);
    assert_memory_equal(again.scores, device.scores, sizeof again.scores);
    assert_ok(safer_model_set_device(model, "cpu", &error));
    assert_null(strstr(model->arithmetic, "cuda"));
    assert_int_equal(model->concurrency, 0);
    ask(&again, model, data);
    safer_model_free(model);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(means_are_the_cpus, withdraw_all),
        cmocka_unit_test_teardown(training_is_the_cpus, withdraw_all),
        cmocka_unit_test_teardown(stopped_runs_are_resumed, withdraw_all),
        cmocka_unit_test_teardown(training_mistakes_are_named, withdraw_all),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test_teardown(answers_are_the_cpus, withdraw_all),
        cmocka_unit_test_teardown(all_devices_are_used, withdraw_all),
        cmocka_unit_test_teardown(sums_are_there_too, withdraw_all),
    };
    tell("SAFER_PLUGINS", MOCKS "works");
    return cmocka_run_group_tests_name("devices, context", tests, NULL, NULL);
}
