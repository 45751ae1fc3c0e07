/* Products by oneDNN: against a naive product in double precision, for every order of the sides;
 * and the calling thread has its OpenMP threads back after each, and after every public call that
 * multiplies matrices. */
#include "nn/gemm.h"

#include "encoder.h"

#include <math.h>
#include <string.h>

/* As a host program has them, from libgomp. */
extern void omp_set_num_threads(int threads);
extern int omp_get_max_threads(void);

enum { HOST_THREADS = 5 }; /* no number that a call of ours would choose */

/* -------------------------------------------------------------------- products */

static void fill(float *out, size_t count)
{
    for (size_t i = 0; i < count; i++) out[i] = next_float();
}

static void check_product(sf_gemm_sides sides, int add, size_t M, size_t N, size_t K, size_t gap)
{
    enum { MOST = 40 * 48 };
    float left[MOST], right[MOST], out[MOST], before[MOST];
    const size_t rows[] = {sides == SF_GEMM_TN ? K : M, sides == SF_GEMM_NT ? N : K};
    const sf_gemm_side a = {left, (sides == SF_GEMM_TN ? M : K) + gap},
                       b = {right, (sides == SF_GEMM_NT ? K : N) + gap};
    const size_t stride = N + gap;
    assert_true(rows[0] * a.stride <= MOST && rows[1] * b.stride <= MOST && M * stride <= MOST);
    fill(left, MOST);
    fill(right, MOST);
    fill(out, MOST);
    memcpy(before, out, sizeof out);
    if (gap)
        assert_int_equal(sf_gemm(sides, out, stride, a, b, add, M, N, K), SAFER_OK);
    else
        assert_int_equal(sf_gemm_dense(sides, out, left, right, add, M, N, K), SAFER_OK);
    for (size_t i = 0; i < MOST; i++) {
        const size_t m = i / stride, n = i % stride;
        double want = add ? (double)before[i] : 0;
        if (m >= M || n >= N) { /* not ours */
            assert_true(out[i] == before[i]);
            continue;
        }
        for (size_t k = 0; k < K; k++)
            want += (double)left[sides == SF_GEMM_TN ? k * a.stride + m : m * a.stride + k] *
                    (double)right[sides == SF_GEMM_NT ? n * b.stride + k : k * b.stride + n];
        assert_true(fabs((double)out[i] - want) <= 1e-5 * (double)K);
    }
}

static void products_equal_the_definition(void **unused)
{
    (void)unused;
    static const sf_gemm_sides all[] = {SF_GEMM_NN, SF_GEMM_NT, SF_GEMM_TN};
    for (int round = 0; round < 300; round++)
        check_product(all[round % 3], (int)next_below(2), 1 + next_below(38), 1 + next_below(38), 1 + next_below(38),
                      next_below(2) * next_below(8));
    float untouched = 3;
    assert_int_equal(sf_gemm_dense(SF_GEMM_NN, &untouched, NULL, NULL, 0, 0, 1, 1), SAFER_OK);
    assert_true(untouched == 3);
}

static void failures_have_a_status(void **unused)
{
    (void)unused;
    safer_error error = {0};
    float x[4] = {1, 2, 3, 4}, out[4];
    const sf_gemm_side wide = {x, 2}, narrow = {x, 1}; /* rows of two, one number apart */
    omp_set_num_threads(HOST_THREADS);
    assert_int_equal(sf_gemm(SF_GEMM_NN, out, 2, wide, narrow, 0, 2, 2, 2), SAFER_SYSTEM);
    assert_int_equal(omp_get_max_threads(), HOST_THREADS);
    assert_fails(sf_gemm_fail(&error, SAFER_SYSTEM), SAFER_SYSTEM, "matrix product");
    assert_fails(sf_gemm_fail(&error, SAFER_MEMORY), SAFER_MEMORY, "memory");
    assert_int_equal(sf_gemm_fail(&error, SAFER_OK), SAFER_OK);
}

/* ------------------------------------------------------------------ public calls */

/* The expression leaves the number of OpenMP threads as the host has set it. */
#define assert_unthrottled(expression) \
    do { \
        omp_set_num_threads(HOST_THREADS); \
        assert_ok(expression); \
        assert_int_equal(omp_get_max_threads(), HOST_THREADS); \
    } while (0)

static void building_a_lexicon(void **unused)
{
    (void)unused;
    safer_error error = {0};
    safer_lexicon_options o = safer_lexicon_options_default();
    o.vectors = make_review_vectors();
    o.all_but_the_top = 0;
    for (o.threads = 1; o.threads <= 2; o.threads++) {
        safer_lexicon *lexicon = NULL;
        assert_unthrottled(safer_lexicon_build(&lexicon, &o, NULL, &error));
        safer_lexicon_free(lexicon);
    }
}

/* Everything that is asked of a model. */
static void check_model(const char *path, const char *precision, const safer_lexicon *lexicon, const safer_data *data,
                        int threads)
{
    static const safer_method methods[] = {SAFER_METHOD_ADAPTIVE, SAFER_METHOD_BINOMIAL, SAFER_METHOD_HOEFFDING,
                                           SAFER_METHOD_IBP};
    static const char *const texts[] = {"a good film", "the plot was bad"};
    static const size_t lengths[] = {11, 16};
    safer_error error = {0};
    safer_model *model = NULL;
    int labels[2];
    float scores[4];
    assert_unthrottled(safer_model_open(&model, path, &error));
    safer_precision type;
    if (precision && safer_precision_parse(&type, precision, &error) == SAFER_OK)
        assert_unthrottled(safer_model_set_precision(model, type, &error));
    assert_unthrottled(safer_model_classify(model, texts, lengths, 2, labels, scores, &error));
    for (size_t i = 0; i < COUNT(methods); i++) {
        const char *arch = safer_model_arch(model);
        safer_certify_options o = safer_certify_options_default();
        if (methods[i] == SAFER_METHOD_IBP && strcmp(arch, "bow") != 0 && strcmp(arch, "cnn") != 0) continue;
        o.method = methods[i];
        o.n = o.n0 = 20;
        o.threads = threads;
        assert_unthrottled(safer_certify(NULL, NULL, 0, model, lexicon, data, &o, &error));
    }
    safer_model_free(model);
}

static void training_and_certifying(void **unused)
{
    (void)unused;
    static const struct {
        const char *arch, *defense, *precision;
    } cases[] = {{"ngram", NULL, NULL},      {"bow", NULL, NULL},      {"cnn", NULL, NULL},    {"cnn", "ibp-jia", NULL},
                 {"cnn", "ibp-huang", NULL}, {"bow", "ibp-jia", NULL}, {"bow", "exact", NULL}, {"charcnn", NULL, "f32"},
                 {"charcnn", NULL, "bf16"},  {"bert", NULL, "f32"},    {"bert", NULL, "bf16"}};
    safer_error error = {0};
    safer_data *data = make_reviews(24);
    safer_lexicon *lexicon = make_review_lexicon("component");
    const char *encoder = make_encoder(), *output = temporary("model");
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int threads = 1; threads <= 2; threads++) {
            safer_train_options o = safer_train_options_default();
            assert_ok(safer_arch_parse(&o.arch, cases[i].arch, &error));
            if (cases[i].defense) assert_ok(safer_defense_parse(&o.defense.kind, cases[i].defense, &error));
            o.train = data;
            o.lexicon = lexicon;
            o.threads = threads;
            o.course.epochs = 1;
            o.ngram.bits = 10;
            o.cnn.min_count = 1;
            o.charcnn.characters = 123;
            if (o.arch == SAFER_ARCH_BERT) o.bert.encoder = encoder;
            if (cases[i].precision) assert_ok(safer_precision_parse(&o.course.precision, cases[i].precision, &error));
            assert_unthrottled(safer_train(output, &o, NULL, &error));
            check_model(output, cases[i].precision, lexicon, data, threads);
        }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal_the_definition),
        cmocka_unit_test(failures_have_a_status),
        cmocka_unit_test(building_a_lexicon),
        cmocka_unit_test(training_and_certifying),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
