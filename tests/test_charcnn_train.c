/* The charcnn classifier: gradients, training, and memory that runs out. Its answers and files are in
 * test_charcnn.c, what every training must do in training.h. */
#define _GNU_SOURCE
#include "test_charcnn.h"

#include "train/charcnn_step.h"
#include "train/charcnn_train.h"

/* ---------------------------------------------------------------- gradients */

enum { BATCH = 19, CLASSES = 3 }; /* more than one group of texts */

static double naive_loss(const sf_charcnn_layout *l, const double *trained, const sf_charcnn_batch *batch,
                         const float *masks, double smoothing)
{
    double loss = 0, logits[CLASSES], *w = zeros(l->size, sizeof *w);
    naive_scale(w, l, trained);
    const size_t K = l->shape.classes;
    for (size_t b = 0; b < batch->count; b++) {
        double sum = 0, mean = 0;
        naive_logits(logits, l, w, batch->codes + b * l->shape.characters,
                     masks ? masks + b * 2 * l->shape.hidden : NULL);
        for (size_t k = 0; k < K; k++) {
            sum += exp(logits[k]);
            mean += logits[k] / (double)K;
        }
        loss += log(sum) - (1 - smoothing) * logits[batch->labels[b]] - smoothing * mean;
    }
    free(w);
    return loss;
}

/* The masks that step `number` uses. */
static void read_masks(float *masks, float dropout, uint64_t seed, uint64_t number, size_t count, size_t H)
{
    sf_stream stream = sf_stream_of(seed, UINT64_C(0x64726f706f757400), SF_STAGE_TRAINING);
    float *ones = malloc(H * sizeof *ones), *out = malloc(H * sizeof *out);
    assert_true(ones && out);
    for (size_t i = 0; i < H; i++) ones[i] = 1;
    for (size_t b = 0; b < count; b++)
        for (size_t i = 0; i < 2; i++)
            sf_dropout_forward(out, masks + (b * 2 + i) * H, ones, dropout, stream, number, (uint32_t)(2 * b + i), H);
    free(ones);
    free(out);
}

static void check_gradients(size_t L, size_t F, size_t H, float dropout, float smoothing, size_t count, size_t tries)
{
    safer_error error = {0};
    sf_charcnn_layout l = make_layout(L, F, H, CLASSES);
    float *w = random_parameters(&l), *masks = zeros(count * 2 * H, sizeof *masks);
    double *exact = zeros(l.trained, sizeof *exact), loss, want;
    uint8_t *codes = zeros(count * L, 1);
    size_t lengths[BATCH];
    int labels[BATCH];
    sf_charcnn_step *step = NULL;
    const float *gradient = NULL;
    for (size_t i = 0; i < l.trained; i++) exact[i] = (double)w[i];
    for (size_t i = 0; i < count; i++) {
        random_codes(codes + i * L, lengths[i] = i == 0 ? L : i == 1 ? 40 : i == 2 ? 0 : some_length(16 + i, L), L);
        labels[i] = (int)next_below(CLASSES);
    }
    sf_charcnn_batch batch = {codes, lengths, labels, count};
    sf_charcnn_options options = {.type = SF_F32, .dropout = dropout, .smoothing = smoothing, .threads = 2, .seed = 5};
    assert_ok(sf_charcnn_step_new(&step, &l, &options, BATCH, &error));
    for (int round = 0; round < 2; round++) /* twice: nothing may be left from the step before */
        gradient = sf_charcnn_step_gradient(&loss, step, w, &batch, 3);
    read_masks(masks, dropout, 5, 3, count, H);
    want = naive_loss(&l, exact, &batch, masks, (double)smoothing);
    if (!(fabs(loss - want) < 1e-4 * want)) fail_msg("loss %g, definition %g", loss, want);
    for (size_t t = 0; t <= l.tensor_count; t++) { /* the gains last */
        const int gains = t == l.tensor_count;
        const size_t first = gains ? l.size : l.tensors[t].offset,
                     count_of = gains ? l.trained - l.size : l.tensors[t].count;
        const char *name = gains ? "gains" : l.tensors[t].name;
        size_t alive = 0, off = 0;
        for (size_t k = 0; k < tries || (k < 50 * tries && alive < 3); k++) {
            const size_t i = first + next_below((uint32_t)count_of);
            const double h = 1e-6, at = exact[i];
            exact[i] = at + h;
            double up = naive_loss(&l, exact, &batch, masks, (double)smoothing);
            exact[i] = at - h;
            double down = naive_loss(&l, exact, &batch, masks, (double)smoothing);
            exact[i] = at;
            want = (up - down) / (2 * h) / (double)count; /* of the mean */
            /* Where two frames are equal to the last bits of a float, the step may take the other. */
            off += !(fabs(want - (double)gradient[i]) < 1e-6 + 1e-3 * fabs(want));
            alive += want != 0;
        }
        if (off > tries / 20) fail_msg("%s: %zu of %zu gradients differ", name, off, tries);
        if (!alive) fail_msg("%s: nothing was tested", name);
    }
    sf_charcnn_step_free(step);
    free(w);
    free(masks);
    free(exact);
    free(codes);
}

static void gradients_match_differences(void **unused)
{
    (void)unused;
    check_gradients(128, 16, 10, 0, 0, 3, 40);
    check_gradients(123, 16, 7, 0.5f, 0, 2, 20);
    check_gradients(180, 16, 6, 0, 0.2f, 3, 20);
    check_gradients(150, 32, 130, 0.3f, 0.1f, BATCH, 3);
}

/* Blank texts alone, where every frame is the shared one. */
static void blank_texts_have_gradients(void **unused)
{
    (void)unused;
    safer_error error = {0};
    sf_charcnn_layout l = make_layout(130, 16, 6, CLASSES);
    float *w = random_parameters(&l);
    double *exact = zeros(l.trained, sizeof *exact), loss;
    uint8_t codes[2 * 130] = {0};
    const size_t lengths[] = {0, 100}; /* the second is as blank, but is not told so */
    const int labels[] = {1, 2};
    sf_charcnn_step *step = NULL;
    for (size_t i = 0; i < l.trained; i++) exact[i] = (double)w[i];
    sf_charcnn_batch batch = {codes, lengths, labels, 2};
    sf_charcnn_options options = {.type = SF_F32, .threads = 1};
    assert_ok(sf_charcnn_step_new(&step, &l, &options, 2, &error));
    const float *gradient = sf_charcnn_step_gradient(&loss, step, w, &batch, 1);
    for (size_t i = 0; i < SF_CHARCNN_CONVS; i++)
        for (size_t f = 0; f < 16; f++) {
            const size_t at = l.conv_bias[i] + f;
            const double h = 1e-6, x = exact[at];
            exact[at] = x + h;
            double up = naive_loss(&l, exact, &batch, NULL, 0);
            exact[at] = x - h;
            double down = naive_loss(&l, exact, &batch, NULL, 0);
            exact[at] = x;
            assert_true(fabs((up - down) / (4 * h) - (double)gradient[at]) < 1e-5);
        }
    for (size_t i = 0; i < SF_CHARCNN_ALPHABET * SF_CHARCNN_WIDE * 16; i++)
        assert_true(gradient[l.conv_weight[0] + i] == 0);
    sf_charcnn_step_free(step);
    free(w);
    free(exact);
}

/* bf16 gradients point where those in f32 do; clipping keeps the direction; threads do not matter. */
static void gradients_keep_their_direction(void **unused)
{
    (void)unused;
    safer_error error = {0};
    enum { L = 200, TEXTS = 150 };
    sf_charcnn_layout l = make_layout(L, 32, 140, CLASSES);
    float *w = random_parameters(&l), *kept[5];
    uint8_t *codes = zeros(TEXTS * L, 1);
    size_t lengths[TEXTS];
    int labels[TEXTS];
    double losses[5];
    for (size_t i = 0; i < TEXTS; i++) {
        random_codes(codes + i * L, lengths[i] = some_length(i, L), L);
        labels[i] = (int)next_below(CLASSES);
    }
    sf_charcnn_batch batch = {codes, lengths, labels, TEXTS};
    for (int i = 0; i < 5; i++) {
        sf_charcnn_options options = {.type = i == 0 ? SF_F32 : SF_BF16,
                                      .dropout = 0.5f,
                                      .threads = i == 2 ? 3 : 1,
                                      .seed = 1,
                                      .clip = i == 3   ? 1e-3
                                              : i == 4 ? 1e9
                                                       : 0};
        sf_charcnn_step *step = NULL;
        kept[i] = zeros(l.trained, sizeof *kept[i]);
        assert_ok(sf_charcnn_step_new(&step, &l, &options, TEXTS, &error));
        memcpy(kept[i], sf_charcnn_step_gradient(&losses[i], step, w, &batch, 1), l.trained * sizeof *kept[i]);
        sf_charcnn_step_free(step);
    }
    assert_memory_equal(kept[1], kept[2], l.trained * sizeof(float));
    assert_memory_equal(kept[1], kept[4], l.trained * sizeof(float));
    assert_true(losses[1] == losses[2] && fabs(losses[0] - losses[1]) < 0.02 * losses[0]);
    for (size_t t = 0; t < l.tensor_count; t++) {
        double ab = 0, aa = 0, bb = 0;
        for (size_t i = l.tensors[t].offset; i < l.tensors[t].offset + l.tensors[t].count; i++) {
            ab += (double)kept[0][i] * (double)kept[1][i];
            aa += (double)kept[0][i] * (double)kept[0][i];
            bb += (double)kept[1][i] * (double)kept[1][i];
        }
        if (!(ab / sqrt(aa * bb) > 0.97)) fail_msg("%s: cosine %g", l.tensors[t].name, ab / sqrt(aa * bb));
    }
    double norm = 0, plain = 0;
    for (size_t i = 0; i < l.trained; i++) {
        norm += (double)kept[3][i] * (double)kept[3][i];
        plain += (double)kept[1][i] * (double)kept[1][i];
    }
    assert_true(fabs(sqrt(norm) - 1e-3) < 1e-6 && plain > 1e-4);
    for (size_t i = 0; i < l.trained; i++)
        assert_true(fabs((double)kept[3][i] - (double)kept[1][i] * 1e-3 / sqrt(plain)) <=
                    1e-6 * fabs((double)kept[3][i]) + 1e-12);
    for (int i = 0; i < 5; i++) free(kept[i]);
    free(w);
    free(codes);
}

/* ----------------------------------------------------------------- training */

static safer_train_options small_options(const safer_data *data, const safer_lexicon *lexicon)
{
    safer_train_options o = safer_train_options_default();
    o.arch = SAFER_ARCH_CHARCNN;
    o.train = data;
    o.lexicon = lexicon;
    o.charcnn.characters = 123;
    o.course.dropout = 0.1;
    o.course.rate = 0.003;
    o.course.decay = 0.0001;
    o.course.clip = 1;
    o.course.warmup = 0.1;
    o.course.batch = 10;
    o.course.epochs = 4;
    o.course.patience = 0;
    o.threads = 1;
    return o;
}

static const sf_charcnn_plan small_plan = {.features = 32, .hidden = 24, .blanked = 0.05, .moved = 0.5, .shift = 4};

static safer_status train(const char *output, const safer_train_options *o, safer_train_report *report,
                          safer_error *error)
{
    safer_train_report unused;
    return sf_charcnn_train_plan(output, o, &small_plan, report ? report : &unused, error);
}

static void it_learns(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(400);
    safer_lexicon *lexicon = make_word_lexicon("component");
    const char *output = temporary("learned");
    for (int i = 0; i < 3; i++) {
        safer_train_options o = small_options(data, i == 1 ? lexicon : NULL);
        safer_train_report report;
        safer_model *model = NULL;
        o.course.epochs = 12;
        o.course.precision = i == 2 ? SAFER_PRECISION_F32 : SAFER_PRECISION_BF16;
        assert_ok(train(output, &o, &report, &error));
        if (!(report.dev_accuracy > 0.9 && report.loss < 0.35))
            fail_msg("case %d: dev %.3f, loss %.3f", i, report.dev_accuracy, report.loss);
        check_report(&report, 360, 5000, 10000);
        assert_ok(open_model(&model, output, &error));
        check_learned(model);
        assert_non_null(strstr(safer_model_trained_with(model), o.lexicon ? "component" : "null"));
        assert_string_equal(safer_model_arch(model), "charcnn");
        assert_non_null(strstr(model->arithmetic, "bf16"));
        model->class->free(model);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* Texts learned from are changed as the plan says: what the last epoch's loss tells. */
static void texts_are_changed(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(200), *late = NULL;
    sf_buffer out = {0};
    for (size_t i = 0; i < 200; i++) { /* the class is told behind the characters that are read */
        assert_int_equal(sf_buffer_format(&out, "%zu\t%d\t", i, i % 2 == 0), 0);
        for (size_t k = 0; k < 33; k++) assert_int_equal(sf_buffer_add_string(&out, "abc "), 0);
        for (size_t k = 0; k < 100; k++) assert_int_equal(sf_buffer_add_string(&out, i % 2 ? "77 " : "!! "), 0);
        assert_int_equal(sf_buffer_add_byte(&out, '\n'), 0);
    }
    assert_ok(safer_data_load(&late, write_temporary("late.tsv", out.bytes, out.length), NULL, &error));
    sf_buffer_free(&out);
    const struct {
        const safer_data *data;
        sf_charcnn_plan plan;
        int learns;
    } cases[] = {
        {data, {.features = 16, .hidden = 16}, 1},
        {data, {.features = 16, .hidden = 16, .blanked = 1}, 0},
        {data, {.features = 16, .hidden = 16, .shift = 100000}, 0},
        {late, {.features = 16, .hidden = 16}, 0},
        {late, {.features = 16, .hidden = 16, .moved = 1}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        safer_train_options o = small_options(cases[i].data, NULL);
        safer_train_report report;
        o.course.epochs = 8;
        o.course.dropout = 0;
        o.charcnn.characters = 130;
        assert_ok(sf_charcnn_train_plan(temporary("changed"), &o, &cases[i].plan, &report, &error));
        if ((report.loss < 0.6) != cases[i].learns) fail_msg("case %zu: loss %g", i, report.loss);
    }
    safer_data_free(data);
    safer_data_free(late);
}

static void threads_do_not_matter(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews(120);
    safer_lexicon *lexicon = make_word_lexicon("component");
    safer_train_options o = small_options(data, lexicon);
    o.course.batch = 50;
    o.course.epochs = 2;
    check_threads_do_not_matter(train, &o);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void stopped_runs_are_resumed(void **unused)
{
    (void)unused;
    static const stop_point stops[] = {{"epoch 1 of 4", 0, 0},
                                       {"epoch 1 of 4: loss", 0, 1},
                                       {"epoch 2 of 4: loss", 0, 1},
                                       {"epoch 3 of 4: loss", 0, 1}};
    safer_data *data = make_reviews(100);
    safer_lexicon *lexicon = make_word_lexicon("component");
    const safer_train_options o = small_options(data, lexicon);
    check_stopped_runs_are_resumed(train, &o, 90, stops, COUNT(stops));
    safer_train_options changed[8];
    for (size_t i = 0; i < COUNT(changed); i++) changed[i] = o;
    changed[0].seed = 9;
    changed[1].course.rate = 0.02;
    changed[2].course.epochs = 5;
    changed[3].lexicon = NULL;
    changed[4].course.warmup = 0.5;
    changed[5].course.dropout = 0;
    changed[6].charcnn.characters = 124;
    changed[7].course.precision = SAFER_PRECISION_F32 - o.course.precision;
    check_other_options_are_refused(train, &o, "epoch 1 of 4: loss", changed, COUNT(changed));
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* In the middle of an epoch: progress is told ten times per second, so the epoch must last. */
static void runs_stop_within_an_epoch(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(200);
    const char *whole = temporary("whole2"), *parts = temporary("parts2");
    safer_train_options o = small_options(data, NULL);
    safer_train_report report, straight;
    stopper s = {0};
    size_t within = 0;
    const sf_charcnn_plan plan = {.features = 128, .hidden = 64};
    o.course.batch = 1;
    o.course.epochs = 2;
    o.progress = (safer_progress){stop_run, &s};
    assert_ok(sf_charcnn_train_plan(whole, &o, &plan, &straight, &error));
    o.resume = 1;
    for (s.at = 2; s.at < 2 * 180;) {
        assert_fails(sf_charcnn_train_plan(parts, &o, &plan, &report, &error), SAFER_CANCELLED, "epoch");
        within += s.done % 180 != 0;
        s.at = s.done + 60;
    }
    s.at = 0;
    assert_ok(sf_charcnn_train_plan(parts, &o, &plan, &report, &error));
    assert_same_file(whole, parts);
    assert_true(report.loss == straight.loss);
    assert_true(within > 0);
    safer_data_free(data);
}

static void bad_options_are_refused(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(40);
    safer_train_options o = small_options(data, NULL);
    o.charcnn.characters = 122;
    assert_fails(train(temporary("bad"), &o, NULL, &error), SAFER_INVALID, "characters");
    o.charcnn.characters = 1 << 17;
    assert_fails(train(temporary("bad"), &o, NULL, &error), SAFER_INVALID, "characters");
    o = small_options(data, NULL);
    assert_fails(train("/nonexistent/folder/model", &o, NULL, &error), SAFER_SYSTEM, "/nonexistent/folder");
    sf_charcnn_plan plan = sf_charcnn_plan_of(&o);
    assert_true(plan.features == 256 && plan.hidden == 1024);
    o.charcnn.size = SAFER_CHARCNN_LARGE;
    plan = sf_charcnn_plan_of(&o);
    assert_true(plan.features == 1024 && plan.hidden == 2048);
    o = small_options(data, NULL);
    o.course.epochs = 60;
    o.course.patience = 2;
    safer_train_report report;
    assert_ok(train(temporary("patience"), &o, &report, &error));
    assert_true(report.epochs < 60 && report.epochs == report.best_epoch + 2);
    safer_data_free(data);
}

/* ------------------------------------------------------------------- memory */

static safer_status open_and_use(void *context, safer_error *error)
{
    safer_status status;
    safer_model *model = NULL;
    SF_TRY(open_model(&model, ((void **)context)[0], error));
    SF_TRY(use_model(model, ((void **)context)[1], error));
    SF_TRY(sf_charcnn_set_precision(model, SAFER_PRECISION_F32, error));
done:
    if (model) model->class->free(model);
    return status;
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    sf_charcnn_layout l = make_layout(123, 16, 7, 2);
    char path[600];
    safer_lexicon *lexicon = make_word_lexicon("component");
    safer_data *data = make_reviews(24);
    snprintf(path, sizeof path, "%s", save_random_model(&l, "memory.safetensors"));
    void *context[2] = {path, lexicon};
    check_every_allocation(open_and_use, context);
    safer_train_options o = small_options(data, lexicon);
    o.course.epochs = 1;
    check_training_memory(train, &o, 1); /* describing a lexicon, for the provenance, can do without memory */
    o.lexicon = NULL;
    check_training_memory(train, &o, 0);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(blank_texts_have_gradients),
        cmocka_unit_test(gradients_keep_their_direction),
        cmocka_unit_test(it_learns),
        cmocka_unit_test(texts_are_changed),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(stopped_runs_are_resumed),
        cmocka_unit_test(runs_stop_within_an_epoch),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
