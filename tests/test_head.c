/* The linear classifier on features of a frozen encoder: its gradient, its scale, what it becomes in a model file. */
#include "support.h"

#include "train/head.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 5, CLASSES = 3, TEXTS = 40 };

static float values[TEXTS][FEATURES];
static const float *rows[TEXTS];
static int labels[TEXTS];

/* Features of sizes from a thousandth to a thousand, the last of them always the same; the label depends on two. */
static void make_texts(void)
{
    static const float sizes[FEATURES] = {1e-3f, 1, 1e3f, 1, 0};
    next_seed(7);
    for (size_t i = 0; i < TEXTS; i++) {
        for (size_t j = 0; j < FEATURES; j++) values[i][j] = sizes[j] * (next_float() + (float)j);
        values[i][4] = 3.25f;
        const float first = values[i][0] / sizes[0], third = values[i][2] / sizes[2] - 2;
        labels[i] = first > 0.2f ? 0 : third > 0 ? 1 : 2;
        rows[i] = values[i];
    }
}

static sf_head *make_head(void)
{
    safer_error error = {0};
    sf_head *head = NULL;
    make_texts();
    assert_ok(sf_head_new(&head, FEATURES, CLASSES, &error));
    sf_head_standardise(head, values[0], TEXTS);
    return head;
}

static void test_scale(void **state)
{
    (void)state;
    sf_head *head = make_head();
    for (size_t j = 0; j < FEATURES - 1; j++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < TEXTS; i++) {
            const double x = (double)((values[i][j] - head->centre[j]) * head->scale[j]);
            sum += x;
            squares += x * x;
        }
        assert_true(fabs(sum / TEXTS) < 1e-4 && fabs(squares / TEXTS - 1) < 1e-4);
    }
    assert_true(head->scale[FEATURES - 1] == 0); /* it tells nothing */
    sf_head_free(head);
}

/* The loss of all texts, without dropout, in double precision and by the definition. */
static double loss_of(const sf_head *head, const float *weight, const float *bias)
{
    double loss = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        double logits[CLASSES], sum = 0;
        for (size_t c = 0; c < CLASSES; c++) {
            logits[c] = (double)bias[c];
            for (size_t j = 0; j < FEATURES; j++)
                logits[c] += (double)weight[c * FEATURES + j] * ((double)values[i][j] - (double)head->centre[j]) *
                             (double)head->scale[j];
            sum += exp(logits[c]);
        }
        loss += log(sum) - logits[labels[i]];
    }
    return loss;
}

static void test_gradient(void **state)
{
    (void)state;
    sf_head *head = make_head();
    float means[32] = {0}, variances[32] = {0}, before[32];
    assert_int_equal(head->size, CLASSES * FEATURES + CLASSES);
    for (size_t i = 0; i < head->size; i++) before[i] = head->parameters[i] = next_float() * 0.5f;
    const double loss = sf_head_step(head, rows, labels, TEXTS, means, variances, 1e-9, 1, &(sf_head_options){0});
    assert_true(fabs(loss - loss_of(head, before, before + CLASSES * FEATURES)) < 1e-3);
    for (size_t i = 0; i < head->size; i++) {
        const float step = 1e-2f, was = before[i];
        before[i] = was + step;
        double slope = loss_of(head, before, before + CLASSES * FEATURES);
        before[i] = was - step;
        slope = (slope - loss_of(head, before, before + CLASSES * FEATURES)) / (2 * (double)step) / TEXTS;
        before[i] = was;
        assert_true(fabs(slope - (double)head->gradient[i]) < 2e-4);
    }
    sf_head_free(head);
}

/* Clipped, and with weights that decay but biases that do not. */
static void test_options(void **state)
{
    (void)state;
    sf_head *head = make_head();
    float means[32] = {0}, variances[32] = {0};
    double squares = 0;
    (void)sf_head_step(head, rows, labels, TEXTS, means, variances, 1e-9, 1, &(sf_head_options){.clip = 0.01});
    for (size_t i = 0; i < head->size; i++) squares += (double)head->gradient[i] * (double)head->gradient[i];
    assert_true(fabs(sqrt(squares) - 0.01) < 1e-5);
    for (size_t i = 0; i < head->size; i++) head->parameters[i] = 1;
    memset(means, 0, sizeof means);
    memset(variances, 0, sizeof variances);
    const float unused = head->parameters[FEATURES - 1]; /* of the feature without a scale: no gradient */
    (void)sf_head_step(head, rows, labels, TEXTS, means, variances, 0.1, 1, &(sf_head_options){.decay = 0.5});
    assert_true(fabsf(head->parameters[FEATURES - 1] - unused * 0.95f) < 1e-6f);
    sf_head_free(head);
}

static void test_learning(void **state)
{
    (void)state;
    sf_head *head = make_head();
    float means[32] = {0}, variances[32] = {0}, weight[CLASSES * FEATURES], bias[CLASSES];
    const sf_head_options options = {.dropout = 0.05f, .stream = sf_stream_of(1, 2, SF_STAGE_TRAINING)};
    for (uint64_t step = 1; step <= 2000; step++)
        (void)sf_head_step(head, rows, labels, TEXTS, means, variances, 0.02, step, &options);
    size_t right = 0;
    sf_head_finish(weight, bias, head);
    for (size_t i = 0; i < TEXTS; i++) {
        const int answer = sf_head_answer(head, values[i]);
        int plain = 0;
        double best = -1e300;
        right += answer == labels[i];
        for (int c = 0; c < CLASSES; c++) { /* as a model with these weights answers */
            double sum = (double)bias[c];
            for (size_t j = 0; j < FEATURES; j++) sum += (double)weight[c * FEATURES + (int)j] * (double)values[i][j];
            assert_true(fabs(sum - (double)head->logits[c]) < 1e-2);
            if (sum > best) {
                best = sum;
                plain = c;
            }
        }
        assert_int_equal(plain, answer);
    }
    assert_true(right >= TEXTS - 4);

    float again[32];
    memcpy(again, head->parameters, head->size * sizeof *again);
    sf_head_begin(head, weight, bias); /* a head that is kept begins where it ended */
    for (size_t i = 0; i < head->size; i++)
        if (i % FEATURES != FEATURES - 1 || i >= CLASSES * FEATURES)
            assert_true(fabsf(head->parameters[i] - again[i]) < 1e-3f * (1 + fabsf(again[i])));
    sf_head_free(head);
}

static safer_status try_new(void *context, safer_error *error)
{
    sf_head *head = NULL;
    (void)context;
    const safer_status status = sf_head_new(&head, 4, 2, error);
    sf_head_free(head);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    check_every_allocation(try_new, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scale), cmocka_unit_test(test_gradient),
                                       cmocka_unit_test(test_options), cmocka_unit_test(test_learning),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
