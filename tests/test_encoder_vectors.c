/* Word vectors from an encoder: they are what it makes of every word alone, turned and scaled; of fewer numbers they
 * keep as much of it as any; threads do not matter; what is wrong is said. */
#include "base/memory.h"
#include "model/bert.h"
#include "support.h"
#include "train/encoder_vectors.h"

#include <math.h>
#include <string.h>

static const char *encoders[] = {"bert", "roberta", "deberta-v3", "modernbert-mean"};
static const char *listed[] = {"good", "bad",    "film", "don't", "unbelievable", "ünlü",
                               "a",    "zzzzqx", "plot", "dull",  "superb",       "the"};
enum { WORDS = 400 };

static char *path_of(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/tests/golden/encoders/%s", SOURCE_DIR, name);
    return path;
}

/* Some real words and many made up. */
static void make_words(sf_words *words, size_t count)
{
    safer_error error = {0};
    uint32_t id;
    char made[32];
    for (size_t i = 0; words->count < count; i++) {
        if (i < sizeof listed / sizeof listed[0])
            snprintf(made, sizeof made, "%s", listed[i]);
        else
            snprintf(made, sizeof made, "%c%c%zu", (char)('a' + i % 7), (char)('a' + i * i % 23), i);
        assert_int_equal(sf_words_add(words, made, strlen(made), &id, &error), SAFER_OK);
    }
}

static safer_train_options plain(int threads)
{
    safer_train_options o = safer_train_options_default();
    o.course.precision = SAFER_PRECISION_F32;
    o.threads = threads;
    return o;
}

/* Naively: every word read by itself, brought to length 1, without the mean of all: (count, hidden). */
static double *read_alone(const sf_words *words, const sf_bert_checkpoint *c)
{
    safer_error error = {0};
    const size_t H = c->layout.shape.hidden;
    const sf_tokenizer_frame frame = sf_piecer_frame(c->piecer);
    double *x = sf_alloc(words->count * H, sizeof *x);
    float *features = sf_alloc_aligned(H, sizeof *features);
    sf_bert_net *net = NULL;
    sf_bert_scratch *scratch = NULL;
    assert_int_equal(sf_bert_net_new(&net, &c->layout, c->parameters, sf_arithmetic_of(SAFER_PRECISION_F32), 1, &error),
                     SAFER_OK);
    assert_int_equal(sf_bert_scratch_new(&scratch, net, &error), SAFER_OK);
    for (uint32_t w = 0; w < words->count; w++) {
        sf_piecer_scratch pieces = {0};
        sf_ids ids = {0};
        double square = 0;
        for (size_t i = 0; i < frame.before_count; i++) assert_int_equal(sf_ids_push(&ids, frame.before[i]), 0);
        assert_int_equal(sf_piecer_encode_part(&ids, c->piecer, sf_words_string(words, w), sf_words_length(words, w),
                                               1000, 0, &pieces),
                         0);
        for (size_t i = 0; i < frame.after_count; i++) assert_int_equal(sf_ids_push(&ids, frame.after[i]), 0);
        const size_t offsets[] = {0, ids.count};
        sf_bert_features(features, net, &(sf_bert_batch){ids.ids, offsets, 1}, scratch);
        for (size_t d = 0; d < H; d++) square += (double)features[d] * (double)features[d];
        for (size_t d = 0; d < H; d++) x[w * H + d] = (double)features[d] / sqrt(square);
        sf_piecer_scratch_free(&pieces);
        sf_ids_free(&ids);
    }
    for (size_t d = 0; d < H; d++) {
        double mean = 0;
        for (size_t w = 0; w < words->count; w++) mean += x[w * H + d] / (double)words->count;
        for (size_t w = 0; w < words->count; w++) x[w * H + d] -= mean;
    }
    sf_bert_scratch_free(scratch);
    sf_bert_net_free(net);
    free(features);
    return x;
}

static double distance(const double *x, size_t a, size_t b, size_t H)
{
    double sum = 0;
    for (size_t d = 0; d < H; d++) sum += (x[a * H + d] - x[b * H + d]) * (x[a * H + d] - x[b * H + d]);
    return sqrt(sum);
}

static double distance_of(const sf_vectors *v, size_t a, size_t b)
{
    double sum = 0;
    for (size_t d = 0; d < v->dim; d++) {
        const double x = (double)v->values[a * v->dim + d] - (double)v->values[b * v->dim + d];
        sum += x * x;
    }
    return sqrt(sum);
}

/* The mean square of all numbers. */
static double size_of(const sf_vectors *v)
{
    double sum = 0;
    for (size_t i = 0; i < v->words.count * v->dim; i++) sum += (double)v->values[i] * (double)v->values[i];
    return sum / (double)(v->words.count * v->dim);
}

/* With all their numbers distances are those of the words read alone, times one factor. */
static void they_are_what_the_encoder_says(void **state)
{
    (void)state;
    for (size_t e = 0; e < sizeof encoders / sizeof encoders[0]; e++) {
        safer_error error = {0};
        sf_bert_checkpoint c = {0};
        sf_words words = {0};
        sf_vectors v;
        const safer_train_options o = plain(1);
        make_words(&words, WORDS);
        assert_int_equal(sf_bert_checkpoint_open(&c, path_of(encoders[e]), &error), SAFER_OK);
        const size_t H = c.layout.shape.hidden;
        double *x = read_alone(&words, &c), factor = 0;
        assert_int_equal(sf_encoder_vectors(&v, &words, path_of(encoders[e]), 100000, &o, &error), SAFER_OK);
        assert_int_equal(v.dim, H);
        assert_int_equal(v.words.count, WORDS);
        assert_true(fabs(size_of(&v) - 0.16) < 1e-5);
        for (size_t a = 0; a < WORDS; a++) {
            assert_string_equal(sf_words_string(&v.words, (uint32_t)a), sf_words_string(&words, (uint32_t)a));
            for (size_t b = a + 1; b < WORDS; b += 7) {
                const double expected = distance(x, a, b, H), found = distance_of(&v, a, b);
                if (factor == 0) factor = found / expected;
                if (!(fabs(found - factor * expected) <= 1e-3 * factor))
                    fail_msg("%s: words %zu and %zu are %g apart, not %g", encoders[e], a, b, found, factor * expected);
            }
        }
        free(x);
        sf_vectors_free(&v);
        sf_words_free(&words);
        sf_bert_checkpoint_free(&c);
    }
}

/* What a projection on `dim` directions keeps of all squares, after they were made orthonormal. */
static double kept(const double *x, size_t count, size_t H, double *directions, size_t dim)
{
    double all = 0, found = 0;
    for (size_t k = 0; k < dim; k++) {
        double *u = directions + k * H, square = 0;
        for (size_t j = 0; j < k; j++) {
            double dot = 0;
            for (size_t d = 0; d < H; d++) dot += u[d] * directions[j * H + d];
            for (size_t d = 0; d < H; d++) u[d] -= dot * directions[j * H + d];
        }
        for (size_t d = 0; d < H; d++) square += u[d] * u[d];
        for (size_t d = 0; d < H; d++) u[d] /= sqrt(square);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t d = 0; d < H; d++) all += x[i * H + d] * x[i * H + d];
        for (size_t k = 0; k < dim; k++) {
            double dot = 0;
            for (size_t d = 0; d < H; d++) dot += x[i * H + d] * directions[k * H + d];
            found += dot * dot;
        }
    }
    return found / all;
}

/* Fewer numbers keep what subspace iteration finds to be the most, and more than the words' own directions do. */
static void fewer_numbers_keep_the_most(void **state)
{
    (void)state;
    enum { DIM = 5, STEPS = 400 };
    safer_error error = {0};
    sf_bert_checkpoint c = {0};
    sf_words words = {0};
    sf_vectors full, few;
    const safer_train_options o = plain(2);
    make_words(&words, WORDS);
    assert_int_equal(sf_bert_checkpoint_open(&c, path_of("bert"), &error), SAFER_OK);
    const size_t H = c.layout.shape.hidden;
    double *x = read_alone(&words, &c), *u = sf_alloc(DIM * H, sizeof *u), *next = sf_alloc(DIM * H, sizeof *next);
    for (size_t i = 0; i < DIM * H; i++) u[i] = x[i]; /* of the first words */
    const double words_keep = kept(x, WORDS, H, u, DIM);
    double most = 0;
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < DIM * H; i++) next[i] = 0;
        for (size_t i = 0; i < WORDS; i++)
            for (size_t k = 0; k < DIM; k++) {
                double dot = 0;
                for (size_t d = 0; d < H; d++) dot += x[i * H + d] * u[k * H + d];
                for (size_t d = 0; d < H; d++) next[k * H + d] += dot * x[i * H + d];
            }
        memcpy(u, next, DIM * H * sizeof *u);
        most = kept(x, WORDS, H, u, DIM);
    }
    assert_int_equal(sf_encoder_vectors(&full, &words, path_of("bert"), H, &o, &error), SAFER_OK);
    assert_int_equal(sf_encoder_vectors(&few, &words, path_of("bert"), DIM, &o, &error), SAFER_OK);
    assert_int_equal(few.dim, DIM);
    assert_true(fabs(size_of(&few) - 0.16) < 1e-5);
    /* The first numbers of the full vectors are the few, but for a factor and signs; their share is the most. */
    double share = 0, factor = fabs((double)few.values[0] / (double)full.values[0]);
    for (size_t i = 0; i < WORDS; i++)
        for (size_t k = 0; k < DIM; k++) {
            const double number = (double)full.values[i * H + k];
            share += number * number;
            assert_true(fabs(fabs((double)few.values[i * DIM + k]) - factor * fabs(number)) <= 1e-4);
        }
    share /= 0.16 * (double)(WORDS * H);
    assert_true(share > most - 1e-4 && share < most + 1e-4);
    assert_true(share > words_keep);
    free(x);
    free(u);
    free(next);
    sf_vectors_free(&full);
    sf_vectors_free(&few);
    sf_words_free(&words);
    sf_bert_checkpoint_free(&c);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_words words = {0};
    sf_vectors one, more;
    const safer_train_options o = plain(1), p = plain(5);
    make_words(&words, WORDS);
    assert_int_equal(sf_encoder_vectors(&one, &words, path_of("roberta"), 7, &o, &error), SAFER_OK);
    assert_int_equal(sf_encoder_vectors(&more, &words, path_of("roberta"), 7, &p, &error), SAFER_OK);
    assert_memory_equal(one.values, more.values, WORDS * 7 * sizeof *one.values);
    sf_vectors_free(&one);
    sf_vectors_free(&more);
    sf_words_free(&words);
}

static int stop(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    *(int *)context += strcmp(stage, "word vectors") == 0;
    return 1;
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    safer_error error = {0};
    sf_words words = {0};
    sf_vectors v;
    safer_train_options o = plain(1);
    int told = 0;
    make_words(&words, 40);
    assert_true(sf_encoder_named(path_of("bert")));
    assert_true(sf_encoder_named("a/b.safetensors"));
    assert_true(sf_encoder_named("c.ONNX"));
    assert_false(sf_encoder_named("glove.6B.100d.txt"));
    assert_false(sf_encoder_named("folder.d/vectors"));
    assert_fails(sf_encoder_vectors(&v, &words, SOURCE_DIR "/tests/golden", 7, &o, &error), SAFER_SYSTEM,
                 "config.json");
    assert_fails(sf_encoder_vectors(&v, &words, "/nonexistent.safetensors", 7, &o, &error), SAFER_SYSTEM,
                 "nonexistent");
    o.progress = (safer_progress){.report = stop, .context = &told};
    assert_int_equal(sf_encoder_vectors(&v, &words, path_of("bert"), 7, &o, &error), SAFER_CANCELLED);
    assert_true(told > 0);
    assert_null(v.values);
    sf_words_free(&words);
}

static safer_status once(void *context, safer_error *error)
{
    sf_vectors v;
    const safer_train_options o = plain(1);
    const safer_status status = sf_encoder_vectors(&v, context, path_of("bert"), 7, &o, error);
    if (status == SAFER_OK) sf_vectors_free(&v);
    return status;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    sf_words words = {0};
    make_words(&words, 40);
    check_every_allocation(once, &words);
    sf_words_free(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_what_the_encoder_says),
        cmocka_unit_test(fewer_numbers_keep_the_most),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
