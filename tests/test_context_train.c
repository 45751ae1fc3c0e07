/* Training of the `context` classifier: gradients against finite differences of the loss in double; runs. */
#define _GNU_SOURCE
#include "encoder.h"
#include "model/canonical.h"
#include "model/context.h"
#include "train/context_step.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------- gradients */

enum { V = 14, SIZE = 3, SETS = 4, WORDS = 5, MOST = 300 };

/* Sets 0..3; items V+k. No word of the text is another's synonym: every number moves once. */
static uint32_t members[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0};
static size_t set_offsets[] = {0, 3, 5, 8, 10};
static const sf_ibp_sets sets = {members, set_offsets, SETS};
static const uint32_t items[WORDS] = {V, 11, V + 1, V + 2, V + 3};

static double lead(const double *p, const sf_context_layout *l, size_t at, size_t stride, size_t y, size_t c)
{
    return l->shape.outputs == 1 ? (y ? p[at] : -p[at]) : p[at + y * stride] - p[at + c * stride];
}

/* The worst lead of y over c, or that of the text as it stands; word 2 has no context. */
static double reference_lead(const sf_context_layout *l, const double *p, const float *contexts, int worst, size_t y,
                             size_t c)
{
    const size_t D = l->shape.outputs;
    double sum = 0;
    for (size_t i = 0; i < WORDS; i++) {
        double least = HUGE_VAL, common = 0;
        const size_t first = items[i] < V ? 0 : set_offsets[items[i] - V],
                     end = items[i] < V || !worst ? first + 1 : set_offsets[items[i] - V + 1];
        for (size_t m = first; m < end; m++) {
            const size_t word = items[i] < V ? items[i] : members[m];
            double value = lead(p, l, l->words + word * D, 1, y, c);
            for (size_t j = 0; j < SIZE; j++)
                value += lead(p, l, l->each + word * D * SIZE + j, SIZE, y, c) * (double)contexts[i * SIZE + j];
            least = fmin(least, value);
        }
        for (size_t j = 0; j < SIZE; j++)
            common += lead(p, l, l->common + j, SIZE, y, c) * (double)contexts[i * SIZE + j];
        sum += least + common;
    }
    return lead(p, l, l->bias, 1, y, c) + sum / WORDS;
}

static double reference_loss(const sf_context_layout *l, const double *p, const float *contexts, double kappa, size_t y)
{
    double loss = 0;
    for (int worst = 0; worst < 2; worst++) {
        double sum = 1;
        for (size_t c = 0; c < l->shape.classes; c++)
            if (c != y) sum += exp(-reference_lead(l, p, contexts, worst, y, c));
        loss += (worst ? kappa : 1 - kappa) * log(sum);
    }
    return loss;
}

/* AdaGrad's first step keeps the square of every gradient, and goes against its sign. */
static void gradients_are_right(void **unused)
{
    (void)unused;
    safer_error error = {0};
    size_t checked = 0;
    for (uint32_t c = 0; c < 40; c++) {
        sf_context_layout l;
        sf_context_step *step = NULL;
        float p[MOST], moved[MOST], squares[MOST] = {0}, contexts[WORDS * SIZE];
        double exact[MOST];
        const double kappa = c % 4 < 2 ? 1 : 0; /* each number is then learned once */
        const sf_context_step_options options = {1, 0, 0, kappa, c};
        sf_context_layout_make(&l, 2 + c % 2, V, SIZE);
        assert_true(l.total <= MOST);
        for (size_t i = 0; i < l.total; i++) exact[i] = (double)(p[i] = next_float());
        for (size_t i = 0; i < COUNT(contexts); i++) contexts[i] = i / SIZE == 2 ? 0 : next_float();
        memcpy(moved, p, sizeof p);
        const sf_context_lesson lesson = {items, {contexts, 0, WORDS, SIZE, WORDS}, next_below(2 + c % 2)};
        assert_ok(sf_context_step_new(&step, &l, &sets, &options, WORDS, &error));
        const double loss = sf_context_step_learn(step, moved, squares, &lesson, 1, 7);
        const double expected = reference_loss(&l, exact, contexts, kappa, lesson.label);
        assert_true(fabs(loss - expected) < 1e-9);
        for (size_t i = 0; i < l.total && l.shape.outputs == 1; i++) {
            const double h = 1e-6, kept = exact[i];
            exact[i] = kept + h;
            const double up = reference_loss(&l, exact, contexts, kappa, lesson.label);
            exact[i] = kept - h;
            const double down = reference_loss(&l, exact, contexts, kappa, lesson.label), slope = (up - down) / (2 * h);
            exact[i] = kept;
            if (fabs((up - loss) - (loss - down)) > 1e-3 * h + 1e-13) continue; /* a kink: there is no slope */
            if (fabs(fabs(slope) - sqrt((double)squares[i])) > 1e-5 * (1 + fabs(slope)))
                fail_msg("case %u, parameter %zu: %.7f, not %.7f", c, i, sqrt((double)squares[i]), fabs(slope));
            if (fabs(slope) > 1e-4) assert_true((moved[i] < p[i]) == (slope > 0));
            checked++;
        }
        sf_context_step_free(step);
    }
    assert_true(checked > 1000);
}

/* With three classes every lead moves two outputs, one after the other: small steps go down the loss as the gradient
 * says, and what is not learned stays. */
static void steps_go_down(void **unused)
{
    (void)unused;
    safer_error error = {0};
    for (uint32_t c = 0; c < 20; c++) {
        sf_context_layout l;
        sf_context_step *step = NULL;
        float p[MOST], before[MOST], squares[MOST], contexts[WORDS * SIZE];
        const int each = (int)(c % 2);
        const sf_context_step_options options = {1e-3, 0, 0, c % 4 < 2 ? 1 : 0.5, c};
        double first = 0, last = 0;
        sf_context_layout_make(&l, 3, V, SIZE);
        for (size_t i = 0; i < l.total; i++) p[i] = next_float(), squares[i] = 1;
        for (size_t i = 0; i < COUNT(contexts); i++) contexts[i] = next_float();
        for (size_t i = 0; !each && i < V * 3 * SIZE; i++) p[l.each + i] = 0;
        memcpy(before, p, sizeof before);
        const sf_context_lesson lesson = {items, {contexts, 0, WORDS, SIZE, WORDS}, c % 3};
        assert_ok(sf_context_step_new(&step, &l, &sets, &options, WORDS, &error));
        for (int i = 0; i < 200; i++) {
            last = sf_context_step_learn(step, p, squares, &lesson, each, (uint64_t)i);
            if (!i) first = last;
        }
        assert_true(last < first);
        assert_int_equal(memcmp(before + l.each, p + l.each, V * 3 * SIZE * sizeof *p) == 0, !each);
        sf_context_step_free(step);
    }
}

/* ------------------------------------------------------------------------ runs */

static safer_train_options small_options(const safer_data *data, const safer_lexicon *lexicon, const char *encoder)
{
    safer_train_options o = safer_train_options_default();
    o.arch = SAFER_ARCH_CONTEXT;
    o.train = data;
    o.lexicon = lexicon;
    o.bert.encoder = encoder;
    o.context.size = 4;
    o.course.epochs = 6;
    o.course.batch = 7;
    o.cnn.min_count = 1;
    o.threads = 1;
    return o;
}

static void threads_do_not_matter(void **unused)
{
    (void)unused;
    safer_data *data = make_reviews_with(200, 1);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    const safer_train_options o = small_options(data, lexicon, make_encoder());
    check_threads_do_not_matter(safer_train, &o);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* What the encoder makes of the texts is made again; the epochs are not. */
static void stopped_runs_are_resumed(void **unused)
{
    (void)unused;
    static const stop_point stops[] = {{"contexts", 0, 0}, {"epoch 2 of 6: loss", 0, 1}};
    safer_data *data = make_reviews(100);
    safer_lexicon *lexicon = make_review_lexicon("representative");
    const safer_train_options o = small_options(data, lexicon, make_encoder());
    safer_train_options changed[3] = {o, o, o};
    stopper s = {.when = "contexts"};
    safer_error error = {0};
    safer_train_options stopped = o;
    stopped.progress = (safer_progress){stop_run, &s};
    assert_fails(safer_train(temporary("stopped"), &stopped, NULL, &error), SAFER_CANCELLED, "contexts");
    check_stopped_runs_are_resumed(safer_train, &o, 90, stops + 1, 1);
    changed[0].defense.kappa = 0.5;
    changed[1].course.epochs = 9; /* it decides when words in context are learned */
    changed[2].context.size = 3;
    check_other_options_are_refused(safer_train, &o, "epoch 2 of 6: loss", changed, COUNT(changed));
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static safer_data *three_classes(void)
{
    static const char *const words[3][2] = {{"good", "great"}, {"bad", "awful"}, {"film", "movie"}};
    safer_error error = {0};
    safer_data *data = NULL;
    sf_buffer out = {0};
    for (size_t i = 0; i < 120; i++)
        assert_int_equal(sf_buffer_format(&out, "%zu\t%zu\t%s the %s was\n", i, i % 3, words[i % 3][next_below(2)],
                                          words[i % 3][next_below(2)]),
                         0);
    assert_ok(safer_data_load(&data, write_temporary("three.tsv", out.bytes, out.length), NULL, &error));
    sf_buffer_free(&out);
    return data;
}

/* It learns, and what it says of the dev texts is what certify finds there. */
static void it_learns(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_lexicon *lexicon = make_review_lexicon("representative");
    const char *output = temporary("learned"), *encoder = make_encoder();
    for (int c = 0; c < 4; c++) {
        safer_data *data = c % 2 ? three_classes() : make_reviews(300),
                   *dev = c % 2 ? three_classes() : make_reviews(200);
        safer_train_options o = small_options(data, lexicon, encoder);
        safer_certify_options certify = safer_certify_options_default();
        safer_workspace *workspace = NULL;
        safer_train_report report;
        safer_model *model = NULL;
        size_t certified = 0;
        o.dev = dev;
        o.defense.kappa = c < 2 ? SAFER_DEFAULT : 0.5;
        o.bert.tokens = c == 2 ? 9 : 0;
        o.bert.truncation_side = c == 2 ? SAFER_TRUNCATION_LEFT : SAFER_TRUNCATION_DEFAULT;
        assert_ok(safer_train(output, &o, &report, &error));
        if (!(report.dev_accuracy > 0.95))
            fail_msg("case %d: dev %.3f, loss %.3f", c, report.dev_accuracy, report.loss);
        check_report(&report, c % 2 ? 120 : 300, 400, 1000);
        assert_ok(safer_model_open(&model, output, &error));
        if (c % 2 == 0) check_learned(model);
        assert_int_equal(safer_model_trained_on(model, lexicon), 1);
        assert_int_equal(sf_canonical_same(sf_context_lexicon(model), lexicon), 1);
        assert_true(sf_context_number(model, "splendid", 8) != 0 || c % 2); /* synonyms are known, though unseen */
        certify.method = SAFER_METHOD_IBP;
        for (size_t i = 0; i < safer_data_size(dev); i++) {
            const safer_row row = safer_data_row(dev, i);
            safer_certificate found;
            assert_ok(safer_certify_text(&found, &workspace, model, lexicon, row.text, row.text_length, row.label,
                                         &certify, &error));
            certified += (size_t)found.certified;
        }
        assert_true((double)certified / (double)safer_data_size(dev) == report.dev_accuracy);
        safer_workspace_free(workspace);
        safer_model_free(model);
        safer_data_free(data);
        safer_data_free(dev);
    }
    safer_lexicon_free(lexicon);
}

static void bad_options_are_named(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_data *data = make_reviews(40);
    safer_lexicon *lexicon = make_review_lexicon("representative"), *other = make_review_lexicon("component");
    const safer_train_options good = small_options(data, lexicon, make_encoder());
    safer_train_options o;
#define REFUSED(words, change) \
    o = good; \
    change; \
    assert_fails(safer_train(temporary("bad"), &o, NULL, &error), SAFER_INVALID, words)
    REFUSED("encoder is not given: context", o.bert.encoder = NULL);
    REFUSED("lexicon is not given: context", o.lexicon = NULL);
    REFUSED("lexicon has the kernel component: context needs", o.lexicon = other);
    REFUSED("context.size is 0; it must be from 1 to 256", o.context.size = 0);
    REFUSED("context.size is 257", o.context.size = 257);
    REFUSED("context.size is 17; the encoder's vectors have 16 numbers", o.context.size = 17);
    REFUSED("tokens is 41", o.bert.tokens = 41);
    REFUSED("which is for bow alone, not context", o.defense.kind = SAFER_DEFENSE_EXACT);
    REFUSED("max_words: context reads all words", o.cnn.max_words = 5);
    REFUSED("deletion: context reads texts whole", o.deletion.chance = 0.5);
    REFUSED("a GPU computes in bf16", (o.device = "cuda", o.course.precision = SAFER_PRECISION_F32));
    REFUSED("pool is \"cls\"", o.course.pool = SAFER_POOL_CLS);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    safer_lexicon_free(other);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_right),
        cmocka_unit_test(steps_go_down),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(stopped_runs_are_resumed),
        cmocka_unit_test(it_learns),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
