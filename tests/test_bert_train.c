/* Training bert, and the trained model: it learns; the same file for any number of threads
 * and after any stop; draws answer as their texts do; either end of texts is read; it says what is wrong. */
#define _GNU_SOURCE
#include "base/rng.h"
#include "draw/sampler.h"
#include "encoder.h"
#include "model/bert.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

static safer_train_options small_options(const char *encoder, const safer_data *data, const safer_lexicon *lexicon)
{
    safer_train_options o = safer_train_options_default();
    o.arch = SAFER_ARCH_BERT;
    o.bert.encoder = encoder;
    o.train = data;
    o.lexicon = lexicon;
    o.course.rate = 0.003;
    o.course.batch = 8;
    o.course.epochs = 3;
    o.threads = 1;
    o.bert.layers = SAFER_ALL_LAYERS;
    return o;
}

static void threads_do_not_matter(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews(80);
    safer_lexicon *lexicon = make_review_lexicon("component");
    const char *encoder = make_encoder();
    for (int i = 0; i < 4; i++) {
        safer_train_options o = small_options(encoder, data, lexicon);
        o.course.epochs = 2;
        if (i == 1) o.bert.layers = 1;
        if (i == 3) o.bert.layers = 0;
        if (i == 2) o.course.precision = SAFER_PRECISION_F32, o.course.pool = SAFER_POOL_CLS;
        check_threads_do_not_matter(safer_train, &o);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static float *read_parameters(const char *path, sf_bert_checkpoint *c)
{
    safer_error error = {0};
    assert_ok(sf_bert_checkpoint_open(c, path, &error));
    return c->parameters;
}

/* What lies below the trained layers stays as it was, to the last bit. */
static void frozen_layers_stay(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(40);
    const char *encoder = make_encoder(), *output = temporary("frozen");
    const int layers[] = {0, 1, 2, SAFER_ALL_LAYERS};
    sf_bert_checkpoint before = {0}, after = {0};
    float *p = read_parameters(encoder, &before);
    for (int i = 0; i < 4; i++) {
        safer_train_options o = small_options(encoder, data, NULL);
        o.course.epochs = 1;
        o.bert.layers = layers[i];
        assert_ok(safer_train(output, &o, NULL, &error));
        float *q = read_parameters(output, &after);
        size_t trained = i == 0 ? before.layout.size : i == 3 ? 0 : before.layout.layers[2 - i].qkv_weight;
        assert_memory_equal(p, q, trained * sizeof *p);
        for (size_t t = 0; t < before.layout.tensor_count; t++) {
            const sf_bert_tensor *tensor = &before.layout.tensors[t];
            int changed = memcmp(p + tensor->offset, q + tensor->offset, tensor->count * sizeof *p) != 0;
            if (changed != (tensor->offset >= trained) && !strstr(tensor->name, "key.bias")) /* whose gradient is 0 */
                fail_msg("training %d layers: %s %s", layers[i], tensor->name, changed ? "changed" : "stayed");
        }
        sf_bert_checkpoint_free(&after);
    }
    sf_bert_checkpoint_free(&before);
    safer_data_free(data);
}

static void stopped_runs_are_resumed(void **unused)
{
    (void)unused;
    static const stop_point stops[] = {{NULL, 8, 1}, {NULL, 24, 1}, {NULL, 36, 1}, {NULL, 70, 1}, {NULL, 108, 1}};
    safer_data *data = make_reviews(40); /* 36 to learn from: five steps per epoch */
    safer_lexicon *lexicon = make_review_lexicon("component");
    const char *encoder = make_encoder();
    for (int i = 0; i < 2; i++) {
        safer_train_options o = small_options(encoder, data, lexicon);
        o.bert.layers = i ? 0 : SAFER_ALL_LAYERS;
        check_stopped_runs_are_resumed(safer_train, &o, 36, stops, COUNT(stops));
        safer_train_options changed[3] = {o, o, o};
        changed[0].course.rate = 0.004;
        changed[1].course.precision = SAFER_PRECISION_F32 - o.course.precision;
        changed[2].bert.truncation_side = SAFER_TRUNCATION_LEFT;
        check_other_options_are_refused(safer_train, &o, "epoch 2 of 3: loss", changed, COUNT(changed));
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void it_learns_and_answers(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(200);
    safer_lexicon *lexicon = make_review_lexicon("component");
    const char *encoder = make_encoder(), *output = temporary("learned");
    safer_train_options o = small_options(encoder, data, lexicon);
    safer_train_report report;
    safer_model *model = NULL;
    o.course.epochs = 8;
    assert_ok(safer_train(output, &o, &report, &error));
    assert_true(report.dev_accuracy > 0.95);
    check_report(&report, 180, 1000, 100);
    assert_ok(safer_model_open(&model, output, &error));
    assert_string_equal(safer_model_arch(model), "bert");
    assert_string_equal(safer_model_label(model, 1), "1");
    assert_non_null(strstr(safer_model_trained_with(model), "component"));

    /* Draws answer as their rendered texts do, in every arithmetic. */
    const char *texts[] = {"the good film was a plot", "GOOD!bad Film123plot", "",
                           ("poor\xe2\x80\x8b"
                            "fine film-film"),
                           "a b c"};
    for (int precision = 0; precision < 3; precision++) {
        assert_ok(safer_model_set_precision(model, (safer_precision)precision, &error));
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            sf_slots slots = {0};
            sf_sampler sampler = {0};
            void *prepared = NULL;
            uint32_t draws[40 * 8];
            assert_ok(sf_slots_read(&slots, lexicon, texts[i], strlen(texts[i]), &error));
            assert_ok(sf_sampler_prepare(&sampler, &slots, lexicon, &error));
            assert_ok(model->class->prepare(model, lexicon, &slots, &prepared, &error));
            assert_int_equal(model->class->visible(prepared), slots.slot_count);
            model->class->release(prepared);
            sf_sampler_draw(draws, &sampler, sf_stream_of(1, slots.hash, SF_STAGE_CERTIFICATION), 0, 40);
            check_draws(model, lexicon, &slots, draws, 40, NULL, NULL);
            sf_slots_free(&slots);
            sf_sampler_free(&sampler);
        }
    }
    assert_fails(safer_model_set_precision(model, (safer_precision)3, &error), SAFER_INVALID, "precision: unknown");

    /* A sum computes as its members are told to. */
    const char of_one[] = "{\"arch\": \"sum\", \"members\": [{\"model\": \"learned\"}]}";
    const size_t lengths[] = {strlen(texts[0]), strlen(texts[1])};
    safer_model *sum = NULL;
    assert_ok(safer_model_open(&sum, write_temporary("sum.json", of_one, sizeof of_one - 1), &error));
    for (int precision = 0; precision < 3; precision++) {
        float ours[2][2], theirs[2][2];
        int labels[2];
        assert_ok(safer_model_set_precision(model, (safer_precision)precision, &error));
        assert_ok(safer_model_set_precision(sum, (safer_precision)precision, &error));
        assert_string_equal(sum->arithmetic, model->arithmetic);
        assert_ok(safer_model_classify(model, texts, lengths, 2, labels, &theirs[0][0], &error));
        assert_ok(safer_model_classify(sum, texts, lengths, 2, labels, &ours[0][0], &error));
        for (int i = 0; i < 4; i++) assert_true(fabsf(ours[i / 2][i % 2] - theirs[i / 2][i % 2]) < 4e-6f);
    }
    safer_model_free(sum);
    safer_model_free(model);

    /* What is trained can be trained on: with the same labels the head stays. */
    o.bert.encoder = output;
    o.course.epochs = 1;
    o.course.rate = 1e-9;
    assert_ok(safer_train(temporary("again"), &o, &report, &error));
    assert_true(report.dev_accuracy > 0.95);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* The share of the rows that a model file answers as they are labelled. */
static double accuracy_of(const char *path, const safer_data *data)
{
    safer_error error = {0};
    safer_model *model = NULL;
    size_t right = 0;
    assert_ok(safer_model_open(&model, path, &error));
    for (size_t i = 0; i < safer_data_size(data); i++) {
        const safer_row row = safer_data_row(data, i);
        int label = -1;
        assert_ok(safer_model_classify(model, &row.text, &row.text_length, 1, &label, NULL, &error));
        right += label == row.label;
    }
    safer_model_free(model);
    return (double)right / (double)safer_data_size(data);
}

/* The head alone: what the encoder makes of a text is computed once, in however many epochs; the file answers as was
 * measured; and a head that is trained on stays where it was. */
static void features_are_computed_once(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(200), *dev = make_reviews(60);
    safer_lexicon *lexicon = make_review_lexicon("component"), *one = make_review_lexicon("representative");
    const char *output = temporary("head");
    safer_train_options o = small_options(make_encoder(), data, NULL);
    safer_train_report once, report;
    o.bert.layers = 0;
    o.dev = dev;
    o.course.epochs = 1;
    assert_ok(safer_train(output, &o, &once, &error));
    o.course.epochs = SAFER_DEFAULT;
    o.course.rate = 0.01;
    assert_ok(safer_train(output, &o, &report, &error));
    assert_int_equal(report.epochs, 20);
    assert_int_equal(report.tokens, once.tokens);
    assert_true(report.dev_accuracy > 0.85 && report.dev_accuracy > once.dev_accuracy); /* of a random encoder */
    assert_true(fabs(accuracy_of(output, dev) - report.dev_accuracy) < 0.02);           /* rounding apart */

    o.bert.encoder = output;
    o.course.epochs = 1;
    o.course.rate = 1e-9;
    assert_ok(safer_train(temporary("head2"), &o, &once, &error));
    assert_true(fabs(once.dev_accuracy - report.dev_accuracy) < 0.02);
    assert_true(fabs(accuracy_of(temporary("head2"), dev) - report.dev_accuracy) < 0.02);

    o.course.epochs = 7; /* three draws of a text are kept, and one where there is only one */
    o.lexicon = lexicon;
    assert_ok(safer_train(output, &o, &report, &error));
    o.lexicon = one;
    assert_ok(safer_train(output, &o, &once, &error));
    assert_true(report.tokens > 2 * once.tokens && report.tokens < 4 * once.tokens);
    safer_data_free(data);
    safer_data_free(dev);
    safer_lexicon_free(lexicon);
    safer_lexicon_free(one);
}

static void mistakes_are_named(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(40);
    const char *encoder = make_encoder(), *output = temporary("mistake");
    safer_train_options o = small_options(NULL, data, NULL);
    safer_model *model = NULL;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "encoder is not given");
    o.bert.encoder = temporary("nowhere");
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_SYSTEM, "nowhere");
    o.bert.encoder = encoder;
    o.bert.tokens = 41;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "40 positions");
    o.bert.tokens = 2;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "tokens is 2");
    o.bert.tokens = 0;
    o.bert.layers = 3;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "2 layers");
    o.bert.layers = -2;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "layers is -2");
    o.bert.layers = 0;
    o.course.pool = SAFER_POOL_MAX;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "mean or cls");
    o.course.pool = SAFER_POOL_DEFAULT;
    o.course.precision = (safer_precision)-1;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "precision: unknown");
    o.course.precision = SAFER_PRECISION_PORTABLE;
    assert_fails(safer_train(output, &o, NULL, &error), SAFER_INVALID, "training takes bf16 or f32");
    assert_fails(safer_model_open(&model, encoder, &error), SAFER_INPUT, "without a classifier");
    safer_data_free(data);
}

static safer_status train_and_open(const char *output, const safer_train_options *options, safer_train_report *report,
                                   safer_error *error)
{
    safer_model *model = NULL;
    int label;
    const char *text = "a good film";
    size_t length = 11;
    safer_status status = safer_train(output, options, report, error);
    if (status == SAFER_OK) status = safer_model_open(&model, output, error);
    if (status == SAFER_OK) status = safer_model_classify(model, &text, &length, 1, &label, NULL, error);
    safer_model_free(model);
    return status;
}

/* Texts that differ in their last word alone are learned where the end is read. Models say which end they read, and
 * those trained from them go on with it unless they are told otherwise. */
static void the_end_of_texts_is_read(void **unused)
{
    (void)unused;
    static const struct {
        safer_truncation_side side;
        int again; /* from the model before it */
        int ending;
    } runs[] = {{SAFER_TRUNCATION_DEFAULT, 0, 0},
                {SAFER_TRUNCATION_LEFT, 0, 1},
                {SAFER_TRUNCATION_DEFAULT, 1, 1},
                {SAFER_TRUNCATION_RIGHT, 1, 0}};
    safer_error error = {0};
    safer_data *data = NULL;
    sf_buffer rows = {0};
    for (int i = 0; i < 80; i++)
        assert_int_equal(sf_buffer_format(&rows, "%d\t%d\tit was a film and the story of the plot was %s\n", i, i % 2,
                                          i % 2 ? "good" : "bad"),
                         0);
    assert_ok(safer_data_load(&data, write_temporary("ends.tsv", rows.bytes, rows.length), NULL, &error));
    const char *output = temporary("ends"), *encoder = make_encoder();
    for (size_t i = 0; i < COUNT(runs); i++) {
        safer_train_options o = small_options(runs[i].again ? output : encoder, data, NULL);
        sf_bert_checkpoint c;
        safer_train_report report;
        o.course.epochs = 6;
        o.bert.tokens = 8;
        o.bert.truncation_side = runs[i].side;
        assert_ok(safer_train(output, &o, &report, &error));
        if (runs[i].ending)
            assert_true(report.dev_accuracy > 0.95);
        else
            assert_true(report.dev_accuracy < 0.6);
        read_parameters(output, &c);
        assert_int_equal(c.layout.shape.ending, runs[i].ending);
        sf_bert_checkpoint_free(&c);
    }
    safer_data_free(data);
    sf_buffer_free(&rows);
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews(20);
    safer_train_options o = small_options(make_encoder(), data, NULL);
    o.course.epochs = 1;
    check_training_memory(train_and_open, &o, 0);
    o.bert.layers = 0;
    check_training_memory(train_and_open, &o, 0);
    safer_data_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_matter),      cmocka_unit_test(frozen_layers_stay),
        cmocka_unit_test(stopped_runs_are_resumed),   cmocka_unit_test(it_learns_and_answers),
        cmocka_unit_test(mistakes_are_named),         cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(features_are_computed_once), cmocka_unit_test(the_end_of_texts_is_read),
    };
    return cmocka_run_group_tests_name("bert training", tests, NULL, NULL);
}
