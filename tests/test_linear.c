/* Linear classifiers: their bounds are the worst case itself, their steps follow the gradient of
 * it, and training ends where it should. */
#define _GNU_SOURCE
#include "ibp/network.h"
#include "support.h"
#include "train/ibp_step.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------- bounds */

enum { KNOWN = 9, POSITIONS = 5 };

/* The smallest lead of `target` over `other` among all choices, as the program computes it. */
static double worst_of_all(const sf_cnn_net *net, sf_cnn_scratch *scratch, const sf_ibp_choices *text, size_t target,
                           size_t other)
{
    safer_error error = {0};
    uint32_t chosen[POSITIONS];
    double worst = (double)INFINITY;
    for (size_t way = 0;; way++) {
        size_t rest = way;
        for (size_t i = 0; i < text->count; i++) {
            size_t size = text->begin[i + 1] - text->begin[i];
            chosen[i] = text->ids[text->begin[i] + rest % size];
            rest /= size;
        }
        if (rest) return worst;
        int label;
        assert_ok(sf_cnn_classify_ids(&label, NULL, net, chosen, text->count, scratch, &error));
        const float *logits = sf_cnn_scratch_logits(scratch);
        double lead = (double)logits[target] - (double)logits[other];
        worst = lead < worst ? lead : worst;
    }
}

/* Neither above the worst case, nor below it by more than rounding. With several classes the box
 * alone would be far below. */
static void the_bound_is_the_worst_case(void **unused)
{
    (void)unused;
    for (uint32_t c = 0; c < 200; c++) {
        safer_error error = {0};
        sf_cnn_shape shape = {.vocabulary = KNOWN,
                              .dim = 1 + c % 6,
                              .filters = 1 + c % 6,
                              .classes = 2 + c % 4,
                              .width_count = 1,
                              .widths = {1},
                              .max_words = 100};
        sf_cnn_layout layout;
        sf_cnn_net *net = NULL;
        sf_cnn_scratch *scratch = NULL;
        sf_ibp_network_scratch *ibp = NULL;
        float parameters[200], scale[8];
        uint32_t ids[POSITIONS * 4];
        size_t begin[POSITIONS + 1], count = 0, N = 1 + c % POSITIONS;
        double margins[8];
        sf_cnn_layout_make(&layout, &shape);
        assert_true(layout.size <= COUNT(parameters));
        for (size_t i = 0; i < layout.size; i++) parameters[i] = next_float();
        assert_int_equal(sf_cnn_scales(scale, &layout, parameters, 1), 0);
        assert_ok(sf_cnn_net_new(&net, &layout, parameters, scale, &error));
        assert_ok(sf_cnn_scratch_new(net, &scratch, &error));
        for (size_t i = 0; i < N; i++) {
            begin[i] = count;
            for (uint32_t k = 0, size = 1 + next_below(4); k < size; k++) ids[count++] = next_below(KNOWN);
        }
        begin[N] = count;
        sf_ibp_choices text = {ids, begin, N};
        for (size_t target = 0; target < shape.classes; target++) {
            assert_ok(sf_ibp_network_margins(margins, NULL, net, &text, target, &ibp, &error));
            for (size_t k = 0; k < shape.classes; k++) {
                if (k == target) continue;
                double worst = worst_of_all(net, scratch, &text, target, k);
                if (margins[k] > worst || margins[k] < worst - 1e-5)
                    fail_msg("bound %.9g, worst case %.9g", margins[k], worst);
            }
        }
        sf_ibp_network_scratch_free(ibp);
        sf_cnn_scratch_free(scratch);
        sf_cnn_net_free(net);
    }
}

/* --------------------------------------------------------------------- steps */

enum { VOCABULARY = 7 };

static uint32_t members[] = {1, 2, 3, 4, 5, 2, 1, 6};
static size_t set_offsets[] = {0, 3, 5, 8};
static const sf_ibp_sets sets = {members, set_offsets, 3};
/* Words that stay, sets, and a word twice. */
static const uint32_t items[] = {VOCABULARY, 6, VOCABULARY + 1, VOCABULARY + 2, 6, 0};

static double lead(const double *row, size_t D, size_t y, size_t c)
{
    return D == 1 ? (y ? row[0] : -row[0]) : row[y] - row[c];
}

/* The loss, from its definition. */
static double reference(const double *p, const sf_ibp_layout *l, size_t y, double kappa, double eps)
{
    size_t D = l->shape.dim;
    double clean = 1, worst = 1;
    for (size_t c = 0; c < l->shape.classes; c++) {
        if (c == y) continue;
        double own = 0, least = 0;
        for (size_t i = 0; i < COUNT(items); i++) {
            uint32_t first = items[i] < VOCABULARY ? items[i] : members[set_offsets[items[i] - VOCABULARY]];
            double low = lead(p + first * D, D, y, c);
            own += low;
            for (size_t k = items[i] < VOCABULARY ? 0 : set_offsets[items[i] - VOCABULARY];
                 items[i] >= VOCABULARY && k < set_offsets[items[i] - VOCABULARY + 1]; k++)
                low = fmin(low, lead(p + members[k] * D, D, y, c));
            least += eps * low + (1 - eps) * lead(p + first * D, D, y, c);
        }
        double bias = lead(p + l->output_bias, D, y, c);
        clean += exp(-(bias + own / (double)COUNT(items)));
        worst += exp(-(bias + least / (double)COUNT(items)));
    }
    return (1 - kappa) * log(clean) + kappa * log(worst);
}

/* With huge squares, AdaGrad's step is the gradient times a known number. */
static void steps_follow_the_gradient(void **unused)
{
    (void)unused;
    for (size_t K = 2; K <= 4; K++)
        for (int c = 0; c < 12; c++) {
            safer_error error = {0};
            sf_ibp_shape shape = {
                .vocabulary = VOCABULARY, .dim = K == 2 ? 1 : K, .width = 1, .classes = K, .max_words = 100};
            sf_ibp_layout layout;
            sf_linear_step *step = NULL;
            float before[64], after[64], squares[64];
            double exact[64], kappa = c % 2 ? 1 : 0, eps = c % 3 ? 1 : 0.4;
            const size_t offsets[] = {0, COUNT(items)};
            sf_ibp_layout_make(&layout, &shape);
            assert_true(layout.linear && layout.size <= 64);
            for (size_t i = 0; i < layout.size; i++) exact[i] = (double)(before[i] = next_float());
            memcpy(after, before, sizeof after);
            for (size_t i = 0; i < 64; i++) squares[i] = 0x1p60f;
            const int label = (int)next_below((uint32_t)K);
            assert_ok(
                sf_linear_step_new(&step, &layout, &sets, &(sf_linear_options){.rate = 0x1p30}, COUNT(items), &error));
            double loss = sf_linear_step_learn(step, after, squares, &(sf_ibp_batch){items, offsets, &label, 1}, kappa,
                                               eps, 1);
            assert_true(fabs(loss - reference(exact, &layout, (size_t)label, kappa, eps)) < 1e-6);
            for (size_t i = 0; i < layout.size; i++) {
                double step_size = i >= layout.output_bias ? 1.0 / 64 : 1, keep = exact[i], up, down;
                exact[i] = keep + 1e-6;
                up = reference(exact, &layout, (size_t)label, kappa, eps);
                exact[i] = keep - 1e-6;
                down = reference(exact, &layout, (size_t)label, kappa, eps);
                exact[i] = keep;
                double gradient = (up - down) / 2e-6, taken = ((double)before[i] - (double)after[i]) / step_size;
                if (fabs(gradient - taken) > 1e-4) fail_msg("number %zu: gradient %.6f, step %.6f", i, gradient, taken);
            }
            sf_linear_step_free(step);
        }
}

/* A word whose synonyms speak for the other class learns to say nothing; one that stands alone
 * learns to decide. */
static void the_worst_case_is_what_is_learned(void **unused)
{
    (void)unused;
    safer_error error = {0};
    sf_ibp_shape shape = {.vocabulary = VOCABULARY, .dim = 1, .width = 1, .classes = 2, .max_words = 100};
    sf_ibp_layout layout;
    sf_linear_step *step = NULL;
    float parameters[64] = {0}, squares[64] = {0};
    uint32_t pair_members[] = {1, 2, 2, 1};
    size_t pair_offsets[] = {0, 2, 4}, offsets[] = {0, 2, 4};
    const sf_ibp_sets pair = {pair_members, pair_offsets, 2};
    const uint32_t texts[] = {VOCABULARY, 3, VOCABULARY + 1, 4}; /* "1 3" against "2 4"; 1 and 2 are synonyms */
    const int labels[] = {0, 1};
    sf_ibp_layout_make(&layout, &shape);
    assert_ok(sf_linear_step_new(&step, &layout, &pair, &(sf_linear_options){.rate = 1}, 2, &error));
    for (uint64_t n = 1; n <= 200; n++)
        sf_linear_step_learn(step, parameters, squares, &(sf_ibp_batch){texts, offsets, labels, 2}, 1, 1, n);
    assert_true(fabs((double)parameters[1] - (double)parameters[2]) < 0.2);
    assert_true(parameters[3] < -2 && parameters[4] > 2);
    sf_linear_step_free(step);
}

/* ------------------------------------------------------------------ training */

static safer_status train(const char *path, const safer_data *data, const safer_lexicon *lexicon, int classes,
                          int resume, stopper *stop, safer_error *error)
{
    safer_train_options o = safer_train_options_default();
    safer_train_report report;
    o.arch = SAFER_ARCH_BOW;
    o.defense.kind = SAFER_DEFENSE_EXACT;
    o.train = o.dev = data;
    o.lexicon = lexicon;
    o.cnn.min_count = 1;
    o.course.dropout = classes == 2 ? 0 : 0.2;
    o.resume = resume;
    if (stop) o.progress = (safer_progress){stop_run, stop};
    safer_status status = safer_train(path, &o, &report, error);
    if (status == SAFER_OK && classes == 2) assert_true(report.dev_accuracy > 0.7);
    return status;
}

static safer_data *demo_data(int classes)
{
    safer_error error = {0};
    safer_data *data = NULL;
    char *text = malloc(60000);
    size_t n = 0;
    const char *const tell[] = {"good", "bad", "odd"};
    for (int i = 0; i < 300; i++)
        n += (size_t)sprintf(text + n, "%d\t%d\tthe film is %s number%d\n", i, i % classes, tell[i % classes],
                             (int)next_below(9));
    assert_ok(safer_data_load(&data, write_temporary(classes == 2 ? "two.tsv" : "three.tsv", text, n), NULL, &error));
    free(text);
    return data;
}

/* Stopped and continued it gives the same file; certify finds what training measured. */
static void training_resumes_and_certifies(void **unused)
{
    (void)unused;
    for (int classes = 2; classes <= 3; classes++) {
        safer_error error = {0};
        safer_lexicon *lexicon = NULL;
        safer_lexicon_options lo = safer_lexicon_options_default();
        lo.table = write_temporary("words.tsv", "good\tfine\nbad\tpoor\nfilm\tmovie\nis\twas\n", 38);
        lo.kernel = "component";
        assert_ok(safer_lexicon_import(&lexicon, &lo, NULL, &error));
        safer_data *data = demo_data(classes);
        const char *whole = temporary("whole.safetensors"), *part = temporary("part.safetensors");
        assert_ok(train(whole, data, lexicon, classes, 0, NULL, &error));
        stopper stop = {.when = "epoch 4 of", .slow = 1};
        assert_int_equal(train(part, data, lexicon, classes, 0, &stop, &error), SAFER_CANCELLED);
        assert_ok(train(part, data, lexicon, classes, 1, NULL, &error));
        assert_same_file(whole, part);
        safer_model *model = NULL;
        assert_ok(safer_model_open(&model, whole, &error));
        safer_certify_options co = safer_certify_options_default();
        safer_summary summary;
        co.method = SAFER_METHOD_IBP;
        assert_ok(safer_certify(&summary, NULL, 0, model, lexicon, data, &co, &error));
        assert_true(summary.certified > 210);
        safer_summary_free(&summary);
        safer_model_free(model);
        safer_data_free(data);
        safer_lexicon_free(lexicon);
    }
}

static void bad_options_are_named(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    safer_lexicon_options lo = safer_lexicon_options_default();
    lo.table = write_temporary("words.tsv", "good\tfine\n", 10);
    assert_ok(safer_lexicon_import(&lexicon, &lo, NULL, &error));
    safer_data *data = demo_data(2);
    safer_train_options o = safer_train_options_default();
    safer_train_report report;
    o.defense.kind = SAFER_DEFENSE_EXACT;
    o.train = data;
    o.lexicon = lexicon;
    o.arch = SAFER_ARCH_CNN;
    assert_fails(safer_train(temporary("m"), &o, &report, &error), SAFER_INVALID, "bow alone");
    o.arch = SAFER_ARCH_BOW;
    o.cnn.vectors = "vectors.txt";
    assert_fails(safer_train(temporary("m"), &o, &report, &error), SAFER_INVALID, "no use for vectors");
    o.cnn.vectors = NULL;
    o.defense.triplet = 1;
    assert_fails(safer_train(temporary("m"), &o, &report, &error), SAFER_INVALID, "no use for vectors");
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_is_the_worst_case),
        cmocka_unit_test(steps_follow_the_gradient),
        cmocka_unit_test(the_worst_case_is_what_is_learned),
        cmocka_unit_test(training_resumes_and_certifies),
        cmocka_unit_test(bad_options_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
