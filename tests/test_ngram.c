/* The n-gram classifier: features, the fit against a naive optimiser, training, files, and
 * draws against rendered texts. */
#include "support.h"

#include "base/hash.h"
#include "base/progress.h"
#include "base/rng.h"
#include "draw/sampler.h"
#include "model/ngram.h"
#include "train/ngram_fit.h"
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- features */

static size_t features_of(sf_ngram_scratch *scratch, const char *text, int ngrams, int bits)
{
    size_t tokens;
    assert_int_equal(sf_ngram_read(scratch, text, strlen(text), &tokens), 0);
    assert_int_equal(sf_ngram_reserve(scratch, tokens, ngrams), 0);
    return sf_ngram_features(scratch, tokens, ngrams, bits);
}

static void features(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        size_t tokens[3];
    } cases[] = {
        {"", {0, 0, 0}},
        {" \t\n", {0, 0, 0}},
        {"one", {1, 1, 1}},
        {"one two one two", {2, 4, 6}},            /* a b, ab ba, aba bab */
        {"One, TWO", {3, 5, 6}},                   /* the comma is a token */
        {"10/10 !!", {3, 7, 10}},                  /* 10 / !; 10/ /10 10! !!; 10/10 /10! 10!! */
        {"x\xe2\x80\x94\xe2\x80\x94y", {3, 5, 6}}, /* two dashes are one run */
        {"don\xe2\x80\x99t don't", {1, 2, 2}},
    };
    sf_ngram_scratch a = {0}, b = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int n = 1; n <= 3; n++) {
            size_t count = features_of(&a, cases[i].text, n, 28);
            if (count != cases[i].tokens[n - 1]) fail_msg("\"%s\", %d-grams: %zu", cases[i].text, n, count);
        }
    /* The order of words counts, their case does not. */
    assert_int_equal(features_of(&a, "good bad", 2, 28), 3);
    assert_int_equal(features_of(&b, "BAD Good", 2, 28), 3);
    assert_true(a.buckets[0] == b.buckets[1] && a.buckets[1] == b.buckets[0] && a.buckets[2] != b.buckets[2]);
    /* Within the table, however small; distinct, even when everything collides. */
    size_t count = features_of(&a, "a b c d e f g h i j k l m n o p q r s t u v w x y z", 3, 3);
    assert_true(count > 4 && count <= 8);
    for (size_t i = 0; i < count; i++) {
        assert_true(a.buckets[i] < 8);
        for (size_t j = 0; j < i; j++) assert_true(a.buckets[i] != a.buckets[j]);
    }
    /* When the stamp comes round, nothing of old texts is left. */
    a.stamp = UINT32_MAX - 1;
    for (int i = 0; i < 4; i++) assert_int_equal(features_of(&a, "one two one two", 3, 28), 6);
    sf_ngram_scratch_clear(&a);
    sf_ngram_scratch_clear(&b);
}

/* ---------------------------------------------------------------- the fit */

enum { N = 24, F = 12 };

typedef struct toy {
    sf_ngram_example examples[N];
    uint32_t buckets[N][F];
    char has[N][F];
} toy;

static void make_toy(toy *t, int classes)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < N; i++) {
        sf_ngram_example *e = &t->examples[i];
        e->label = i % classes;
        e->features = t->buckets[i];
        for (int j = 0; j < F; j++) {
            if (next_below(100) >= (j % classes == e->label ? 60u : 30u)) continue;
            t->has[i][j] = 1;
            t->buckets[i][e->count++] = (uint32_t)(20 * j + 3);
        }
    }
}

static double sigmoid(double t) { return 1 / (1 + exp(-t)); }

/* r as in the paper; 0 for what nobody has. */
static void naive_ratios(double *r, const toy *t, int positive, double alpha, double weight)
{
    double p[F], q[F], P = 0, Q = 0;
    int seen[F] = {0};
    for (int j = 0; j < F; j++) {
        p[j] = q[j] = alpha;
        for (int i = 0; i < N; i++) {
            if (!t->has[i][j]) continue;
            seen[j] = 1;
            *(t->examples[i].label == positive ? &p[j] : &q[j]) += weight;
        }
        if (seen[j]) P += p[j], Q += q[j];
    }
    for (int j = 0; j < F; j++) r[j] = seen[j] ? log(p[j] / P) - log(q[j] / Q) : 0;
}

static double scale_of(const toy *t, int i) { return t->examples[i].count ? 16 / sqrt(t->examples[i].count) : 0; }

/* What is minimised, at v_j = w_j r_j and b. */
static double objective(const double *v, const double *r, const toy *t, int positive, double cost)
{
    double value = v[F] * v[F] / 2;
    for (int j = 0; j < F; j++) value += r[j] != 0 ? v[j] * v[j] / (r[j] * r[j]) / 2 : 0;
    for (int i = 0; i < N; i++) {
        double s = v[F], c = scale_of(t, i);
        for (int j = 0; j < F; j++) s += t->has[i][j] ? c * v[j] : 0;
        value += cost * log1p(exp(t->examples[i].label == positive ? -s : s));
    }
    return value;
}

/* Plain gradient descent on the primal. values: w_j r_j, then b. */
static void naive_fit(double *values, const toy *t, int positive, double cost, double alpha, double weight)
{
    double r[F], w[F] = {0}, b = 0;
    naive_ratios(r, t, positive, alpha, weight);
    for (int step = 0; step < 200000; step++) {
        double gw[F], gb = b;
        memcpy(gw, w, sizeof gw);
        for (int i = 0; i < N; i++) {
            double y = t->examples[i].label == positive ? 1 : -1, s = b, c = scale_of(t, i);
            for (int j = 0; j < F; j++) s += t->has[i][j] ? c * w[j] * r[j] : 0;
            double pull = weight * cost * y * sigmoid(-y * s);
            gb -= pull;
            for (int j = 0; j < F; j++) gw[j] -= t->has[i][j] ? pull * c * r[j] : 0;
        }
        b -= 0.001 * gb;
        for (int j = 0; j < F; j++) w[j] -= 0.001 * gw[j];
    }
    for (int j = 0; j < F; j++) values[j] = w[j] * r[j];
    values[F] = b;
}

static void agrees_with_the_naive_optimiser(void **unused)
{
    (void)unused;
    static const struct {
        int classes;
        double cost, alpha, weight;
    } cases[] = {{2, 1, 1, 1}, {2, 0.05, 1, 1}, {2, 2, 0.5, 0.5}, {3, 1, 1, 1}, {4, 0.3, 2, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        toy t;
        size_t outputs = sf_ngram_outputs((size_t)cases[c].classes);
        float weights[256 * 4], bias[4];
        safer_error error;
        sf_ngram_fitted fitted;
        sf_ngram_settings settings = {.cost = cases[c].cost,
                                      .alpha = cases[c].alpha,
                                      .weight = cases[c].weight,
                                      .passes = 2000,
                                      .tolerance = 1e-6,
                                      .seed = 1,
                                      .threads = 2};
        make_toy(&t, cases[c].classes);
        assert_ok(
            sf_ngram_fit(weights, bias, t.examples, N, (size_t)cases[c].classes, 8, &settings, NULL, &fitted, &error));
        assert_true(fitted.passes > 2 && fitted.passes < 2000);
        for (size_t k = 0; k < outputs; k++) {
            double expected[F + 1];
            naive_fit(expected, &t, outputs == 1 ? 1 : (int)k, cases[c].cost, cases[c].alpha, cases[c].weight);
            for (int j = 0; j < F; j++)
                assert_true(fabs((double)weights[(size_t)(20 * j + 3) * outputs + k] - expected[j]) < 2e-5);
            assert_true(fabs((double)bias[k] - expected[F]) < 2e-5);
            assert_true(weights[5 * outputs + k] == 0); /* a bucket nobody has */
        }
    }
}

/* The objective comes down to the optimum, never below it. */
static void objective_falls(void **unused)
{
    (void)unused;
    toy t;
    float weights[256], bias[1];
    safer_error error;
    sf_ngram_fitted fitted;
    double r[F], v[F + 1], first = 0, last = 0;
    make_toy(&t, 2);
    naive_ratios(r, &t, 1, 1, 1);
    naive_fit(v, &t, 1, 1, 1, 1);
    double optimum = objective(v, r, &t, 1, 1);
    for (int passes = 1; passes <= 256; passes *= 2) {
        sf_ngram_settings settings = {.cost = 1, .alpha = 1, .weight = 1, .passes = passes, .seed = 1, .threads = 1};
        assert_ok(sf_ngram_fit(weights, bias, t.examples, N, 2, 8, &settings, NULL, &fitted, &error));
        assert_int_equal(fitted.passes, passes);
        for (int j = 0; j < F; j++) v[j] = (double)weights[20 * j + 3];
        v[F] = (double)bias[0];
        last = objective(v, r, &t, 1, 1);
        if (passes == 1) first = last;
        assert_true(last > optimum - 1e-6);
    }
    assert_true(first > last + 1e-3 && first < N * log(2)); /* what zero weights cost */
    assert_true(last < optimum + 1e-5);
    assert_true(fitted.loss > 0 && fitted.loss < log(2));
}

/* ---------------------------------------------------------------- training */

static const char *const topics[4][6] = {{"goal", "team", "match", "coach", "league", "player"},
                                         {"stock", "market", "bank", "profit", "trade", "price"},
                                         {"film", "actor", "scene", "script", "camera", "cinema"},
                                         {"virus", "doctor", "patient", "clinic", "cure", "nurse"}};
static const char *const fillers[8] = {"the", "of", "and", "to", "in", "was", "with", "for"};

/* `rows` texts of each class; about half of the words are fillers. */
static safer_data *make_data(size_t rows, int classes, uint64_t seed)
{
    static char text[1 << 20];
    size_t length = 0;
    safer_data *data = NULL;
    safer_error error;
    safer_data_options options = safer_data_options_default();
    next_seed(seed);
    for (size_t i = 0; i < rows * (size_t)classes; i++) {
        int label = (int)(i % (size_t)classes);
        length += (size_t)sprintf(text + length, "%zu\tclass %d\t", i, label);
        for (int w = 0; w < 12; w++)
            length += (size_t)sprintf(text + length, "%s ",
                                      next_below(2)
                                          ? fillers[next_below(8)]
                                          : topics[next_below(6) ? label : (int)next_below(4)][next_below(6)]);
        text[length - 1] = '\n';
    }
    options.format = SAFER_FORMAT_TSV;
    assert_ok(safer_data_load(&data, write_temporary("data.tsv", text, length), &options, &error));
    return data;
}

static safer_lexicon *make_lexicon(const char *kernel)
{
    static const char table[] =
        "goal\tteam match\nstock\tmarket\nfilm\tcinema scene camera\nvirus\tcure\nthe\tof\nBig\tlarge\nlarge\thuge\n";
    safer_lexicon_options options = safer_lexicon_options_default();
    safer_lexicon *lexicon = NULL;
    safer_error error;
    options.table = write_temporary("table.tsv", table, sizeof table - 1);
    options.kernel = kernel;
    options.threads = 1;
    assert_ok(safer_lexicon_import(&lexicon, &options, NULL, &error));
    return lexicon;
}

static safer_train_options options_for(const safer_data *train)
{
    safer_train_options options = safer_train_options_default();
    options.arch = SAFER_ARCH_NGRAM;
    options.train = train;
    options.ngram.bits = 12;
    options.threads = 1;
    return options;
}

static double accuracy_on(const safer_model *model, const safer_data *data)
{
    size_t right = 0, count = safer_data_size(data), classes = safer_model_class_count(model);
    float scores[8];
    safer_error error;
    for (size_t i = 0; i < count; i++) {
        safer_row row = safer_data_row(data, i);
        int label;
        double sum = 0;
        assert_ok(safer_model_classify(model, &row.text, &row.text_length, 1, &label, scores, &error));
        for (size_t k = 0; k < classes; k++) {
            sum += (double)scores[k];
            assert_true(scores[label] >= scores[k]);
        }
        assert_true(fabs(sum - 1) < 1e-5);
        right += label == row.label;
    }
    return (double)right / (double)count;
}

static void learns(void **unused)
{
    (void)unused;
    for (int classes = 2; classes <= 4; classes += 2) {
        safer_data *train = make_data(200, classes, 5), *test = make_data(100, classes, 77);
        safer_train_options options = options_for(train);
        safer_train_report report;
        safer_model *model = NULL;
        safer_error error;
        const char *path = temporary("learned");
        assert_ok(safer_train(path, &options, &report, &error));
        assert_int_equal(report.texts, 200 * classes);
        assert_int_equal(report.tokens, 200 * 12 * classes);
        size_t outputs = classes == 2 ? 1 : 4;
        assert_int_equal(report.parameters, 4096 * outputs + outputs);
        assert_true(report.dev_accuracy > 0.9 && report.loss < 0.3 && report.epochs > 1 && report.seconds > 0);
        assert_ok(safer_model_open(&model, path, &error));
        assert_string_equal(safer_model_arch(model), "ngram");
        assert_int_equal(safer_model_class_count(model), classes);
        assert_string_equal(safer_model_label(model, 1), "class 1");
        assert_string_equal(safer_model_trained_with(model), "{\"lexicon\":null,\"kernel\":null,\"seed\":1}");
        assert_true(accuracy_on(model, test) > 0.9);
        /* A batch gives what single texts give. */
        const char *texts[3];
        size_t lengths[3];
        int batch[3], single;
        for (size_t i = 0; i < 3; i++)
            texts[i] = safer_data_row(test, i).text, lengths[i] = safer_data_row(test, i).text_length;
        assert_ok(safer_model_classify(model, texts, lengths, 3, batch, NULL, &error));
        for (size_t i = 0; i < 3; i++) {
            assert_ok(safer_model_classify(model, &texts[i], &lengths[i], 1, &single, NULL, &error));
            assert_int_equal(single, batch[i]);
        }
        assert_ok(safer_model_classify(model, NULL, NULL, 0, NULL, NULL, &error));
        safer_model_free(model);
        safer_data_free(train);
        safer_data_free(test);
    }
    safer_model_free(NULL);
}

/* With dev given, only train is learned from, and dev is all measured. */
static void dev_is_only_measured(void **unused)
{
    (void)unused;
    safer_data *train = make_data(50, 2, 5), *dev = make_data(100, 2, 6);
    safer_train_options options = options_for(train);
    safer_train_report report;
    safer_model *model = NULL;
    safer_error error;
    options.dev = dev;
    assert_ok(safer_train(temporary("dev"), &options, &report, &error));
    assert_int_equal(report.texts, 100);
    assert_ok(safer_model_open(&model, temporary("dev"), &error));
    assert_true(fabs(accuracy_on(model, dev) - report.dev_accuracy) < 1e-9);
    safer_model_free(model);
    safer_data_free(train);
    safer_data_free(dev);
}

static uint64_t file_hash(const char *path)
{
    sf_file file = {0};
    safer_error error;
    assert_ok(sf_file_load(&file, path, &error));
    uint64_t hash = sf_hash(file.bytes, file.length, 0);
    sf_file_free(&file);
    return hash;
}

/* What a model says of its lexicon: both digests, the short one alone as version 0.1.0 wrote it, or nothing. */
static void lexicon_is_recognised(void **unused)
{
    (void)unused;
    safer_lexicon *ours = import_table("good\tgreat\n", "component"),
                  *other = import_table("good\tfine\n", "component");
    char with[256];
    const unsigned long long hash = sf_lexicon_hash(ours);
    safer_model model = {.trained_with = with};
    snprintf(with, sizeof with, "{\"lexicon\":\"%016llx\",\"lexicon_sha256\":\"%s\"}", hash,
             safer_lexicon_sha256(ours));
    assert_int_equal(safer_model_trained_on(&model, ours), 1);
    assert_int_equal(safer_model_trained_on(&model, other), 0);
    snprintf(with, sizeof with, "{\"lexicon\":\"%016llx\",\"lexicon_sha256\":\"%s\"}", hash,
             safer_lexicon_sha256(other));
    assert_int_equal(safer_model_trained_on(&model, ours), 0); /* the longer one decides */
    snprintf(with, sizeof with, "{\"lexicon\":\"%016llx\"}", hash);
    assert_int_equal(safer_model_trained_on(&model, ours), 1);
    assert_int_equal(safer_model_trained_on(&model, other), 0);
    snprintf(with, sizeof with, "{\"lexicon\":null}");
    assert_int_equal(safer_model_trained_on(&model, ours), -1);
    model.trained_with = NULL;
    assert_int_equal(safer_model_trained_on(&model, ours), -1);
    safer_lexicon_free(ours);
    safer_lexicon_free(other);
}

static void threads_do_not_matter(void **unused)
{
    (void)unused;
    static const char *const kernels[] = {NULL, "representative", "component", "topk:2"};
    static const int threads[] = {1, 2, 5};
    safer_data *data = make_data(150, 4, 9);
    uint64_t hashes[4] = {0};
    safer_error error;
    for (size_t k = 0; k < 4; k++) {
        safer_lexicon *lexicon = kernels[k] ? make_lexicon(kernels[k]) : NULL;
        safer_train_options options = options_for(data);
        double accuracy = 0;
        options.lexicon = lexicon;
        for (size_t i = 0; i < 3; i++) {
            safer_train_report report;
            options.threads = threads[i];
            assert_ok(safer_train(temporary("threads"), &options, &report, &error));
            uint64_t hash = file_hash(temporary("threads"));
            if (i == 0) hashes[k] = hash, accuracy = report.dev_accuracy;
            assert_true(hash == hashes[k] && report.dev_accuracy == accuracy && accuracy > 0.8);
        }
        for (size_t i = 0; i < k; i++) assert_true(hashes[i] != hashes[k]);
        options.seed = 2; /* other draws, another order */
        assert_ok(safer_train(temporary("threads"), &options, NULL, &error));
        assert_true(file_hash(temporary("threads")) != hashes[k]);
        if (lexicon) {
            safer_model *model = NULL;
            char expected[256], sha256[65];
            snprintf(expected, sizeof expected,
                     "{\"lexicon\":\"%016llx\",\"lexicon_sha256\":\"%s\",\"kernel\":\"%s\",\"seed\":2}",
                     (unsigned long long)sf_lexicon_hash(lexicon), safer_lexicon_sha256(lexicon), kernels[k]);
            assert_ok(safer_model_open(&model, temporary("threads"), &error));
            assert_string_equal(safer_model_trained_with(model), expected);
            assert_int_equal(safer_model_trained_on(model, lexicon), 1);
            assert_ok(safer_path_sha256(sha256, temporary("threads"), &error));
            assert_string_equal(safer_model_sha256(model), sha256);
            assert_string_equal(safer_model_name(model), "threads");
            safer_model_free(model);
        }
        safer_lexicon_free(lexicon);
    }
    safer_data_free(data);
}

/* ------------------------------------------------------------------- files */

typedef struct parts { /* of a model file; NULL or 0: as it should be */
    const char *arch, *labels, *ngrams, *hashing;
    size_t rows, outputs, biases;
    int drop;  /* 1: no weights, 2: no bias */
    float bad; /* in the middle of the weights */
} parts;

static const char *write_model(const char *name, parts p)
{
    size_t rows = p.rows ? p.rows : 4096, outputs = p.outputs ? p.outputs : 1, biases = p.biases ? p.biases : outputs;
    float *weights = malloc(rows * outputs * sizeof *weights), bias[8] = {0.25f, 0.125f};
    safer_error error;
    assert_non_null(weights);
    for (size_t i = 0; i < rows * outputs; i++) weights[i] = (float)next_below(2001) / 1000 - 1;
    if (p.bad != 0) weights[rows * outputs / 2] = p.bad;
    sf_tensor tensors[] = {{.name = p.drop == 1 ? "w" : "weights",
                            .type = SF_F32,
                            .rank = 2,
                            .shape = {rows, outputs},
                            .count = rows * outputs,
                            .bytes = weights},
                           {.name = p.drop == 2 ? "b" : "bias",
                            .type = SF_F32,
                            .rank = 1,
                            .shape = {biases},
                            .count = biases,
                            .bytes = bias}};
    sf_metadata metadata[] = {{p.arch && !*p.arch ? "-" : "arch", p.arch ? p.arch : "ngram"},
                              {p.labels && !*p.labels ? "-" : "labels", p.labels ? p.labels : "[\"no\",\"yes\"]"},
                              {"ngrams", p.ngrams ? p.ngrams : "3"},
                              {"hashing", p.hashing ? p.hashing : SF_NGRAM_HASHING}};
    const char *path = temporary(name);
    assert_ok(sf_safetensors_write(path, tensors, 2, metadata, 4, &error));
    free(weights);
    return path;
}

static void bad_files_are_refused(void **unused)
{
    (void)unused;
    const struct {
        parts p;
        const char *words;
    } cases[] = {
        {{.arch = ""}, "no \"arch\""},
        {{.arch = "gpt"}, "architecture \"gpt\"; ngram, bow, cnn, charcnn, bert and context can be opened"},
        {{.labels = ""}, "no \"labels\""},
        {{.labels = "{"}, "\"labels\" must be a JSON list"},
        {{.labels = "[\"a\"]"}, "at least two names"},
        {{.labels = "[\"a\",1]"}, "item 2 of the metadata \"labels\" is not a string"},
        {{.labels = "[\"a\",\"a\"]"}, "label \"a\" occurs twice"},
        {{.labels = "[\"a\",\"b\",\"c\"]"}, "F32 [4096, 1], not F32 [*, 3]"},
        {{.ngrams = "0"}, "\"ngrams\" must be a number from 1 to 8"},
        {{.ngrams = "9"}, "\"ngrams\""},
        {{.ngrams = "x"}, "\"ngrams\""},
        {{.hashing = "0"}, "train it anew"},
        {{.rows = 1000}, "has 1000 rows; it must be a power of two"},
        {{.rows = 1}, "has 1 rows"},
        {{.outputs = 2}, "F32 [4096, 2], not F32 [*, 1]"},
        {{.biases = 2}, "tensor \"bias\" is F32 [2], not F32 [1]"},
        {{.drop = 1}, "no tensor \"weights\""},
        {{.drop = 2}, "no tensor \"bias\""},
        {{.bad = (float)NAN}, "value 2048 of tensor \"weights\" is not a finite number"},
        {{.bad = (float)INFINITY}, "value 2048 of tensor \"weights\""},
    };
    safer_model *model = NULL;
    safer_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_fails(safer_model_open(&model, write_model("bad", cases[i].p), &error), SAFER_INPUT, cases[i].words);
    assert_null(model);
    assert_fails(safer_model_open(&model, temporary("none"), &error), SAFER_SYSTEM, "none");
    assert_fails(safer_model_open(&model, write_temporary("text", "hello, world", 12), &error), SAFER_INPUT,
                 "no safetensors file");
}

static void empty_texts_and_ties(void **unused)
{
    (void)unused;
    double sums[3] = {0, 0, 0};
    float scores[4];
    safer_model *model = NULL;
    safer_error error;
    const char *texts[2] = {"", "\n \t"};
    int labels[2] = {-1, -1};
    assert_int_equal(sf_ngram_decide(sums, 2, scores), 0);
    assert_true(scores[0] == 0.5f && scores[1] == 0.5f);
    assert_int_equal(sf_ngram_decide(sums, 3, NULL), 0);
    sums[1] = sums[2] = 700;
    assert_int_equal(sf_ngram_decide(sums, 3, scores), 1);
    assert_true(scores[1] == 0.5f && scores[0] == 0);
    sums[0] = -800;
    assert_int_equal(sf_ngram_decide(sums, 2, scores), 0);
    assert_true(scores[0] == 1 && scores[1] == 0);

    assert_ok(safer_model_open(&model, write_model("empty", (parts){0}), &error));
    assert_ok(safer_model_classify(model, texts, (size_t[]){0, 3}, 2, labels, scores, &error));
    assert_int_equal(labels[0], 1); /* the bias is 1/4 */
    assert_int_equal(labels[1], 1);
    assert_true(fabs((double)scores[1] - 1 / (1 + exp(-0.25))) < 1e-6);
    safer_model_free(model);
}

/* --------------------------------------------------------------- fast path */

/* Words of the lexicon and others, in any case, between all kinds of things. */
static size_t random_text(char *out)
{
    static const char *const words[] = {"goal", "team", "stock", "film",  "cinema", "the",
                                        "of",   "big",  "huge",  "actor", "I",      "don't"};
    static const char *const gaps[] = {" ", " ",  ", ",        "! ",  " 10/10 ", "7", "\xe2\x80\x94",
                                       "-", "\n", "1\xd9\xa1", "\x1c"};
    size_t length = 0;
    for (uint32_t n = next_below(40); n-- > 0;) {
        size_t begin = length;
        length += (size_t)sprintf(out + length, "%s",
                                  words[next_below(next_below(2) ? 3 : 12)]); /* repeated n-grams, too */
        uint32_t pattern = next_below(4);
        for (size_t i = begin; i < length; i++)
            if (pattern == 2 || (pattern == 1 && i == begin))
                if (out[i] >= 'a' && out[i] <= 'z') out[i] = (char)(out[i] - 32);
        length += (size_t)sprintf(out + length, "%s", gaps[next_below(11)]);
    }
    return length;
}

static void draws_equal_rendered_texts(void **unused)
{
    (void)unused;
    static const char *const kernels[] = {"topk:2", "component", "representative"};
    static const char *const labels[] = {"[\"a\",\"b\"]", "[\"a\",\"b\",\"c\"]"};
    enum { DRAWS = 5 };
    for (size_t c = 0; c < 2; c++)
        for (size_t k = 0; k < 3; k++) {
            safer_lexicon *lexicon = make_lexicon(kernels[k]);
            safer_model *model = NULL;
            safer_error error;
            void *scratch = NULL;
            sf_slots slots = {0};
            sf_sampler sampler = {0};
            sf_buffer text = {0};
            size_t differing = 0;
            assert_ok(safer_model_open(
                &model, write_model("fast", (parts){.labels = labels[c], .outputs = c ? 3 : 1, .rows = c ? 64 : 4096}),
                &error));
            assert_ok(model->class->scratch_new(model, &scratch, &error));
            for (int round = 0; round < 300; round++) {
                char original[1024];
                uint32_t draws[DRAWS * 64];
                float fast[DRAWS][3], slow[3];
                int fast_labels[DRAWS], again[DRAWS], label, plain;
                void *prepared = NULL;
                size_t length = random_text(original), classes = model->classes;
                assert_ok(sf_slots_read(&slots, lexicon, original, length, &error));
                assert_ok(sf_slots_split(&slots, (safer_deletion){.chance = round % 3 / 4.},
                                         &error)); /* a quarter, half, or none deleted */
                assert_ok(sf_sampler_prepare(&sampler, &slots, lexicon, &error));
                assert_true(sampler.width <= 64);
                sf_sampler_draw(draws, &sampler, sf_stream_of(1, slots.hash, SF_STAGE_CERTIFICATION), 0, DRAWS);
                assert_ok(model->class->prepare(model, lexicon, &slots, &prepared, &error));
                assert_ok(
                    sf_ngram_sample_scores(model, prepared, draws, DRAWS, fast_labels, &fast[0][0], scratch, &error));
                assert_ok(model->class->sample(model, prepared, draws, DRAWS, again, scratch, &error));
                assert_ok(safer_model_classify(model, &(const char *){original}, &length, 1, &plain, NULL, &error));
                for (size_t i = 0; i < DRAWS; i++) {
                    sf_buffer_clear(&text);
                    assert_int_equal(sf_slots_render(&text, &slots, lexicon, draws + i * sampler.width), 0);
                    const char *bytes = text.bytes ? text.bytes : "";
                    assert_ok(safer_model_classify(model, &bytes, &text.length, 1, &label, slow, &error));
                    assert_int_equal(label, fast_labels[i]);
                    assert_int_equal(label, again[i]);
                    assert_memory_equal(slow, &fast[0][0] + i * classes, classes * sizeof *slow);
                    differing += label != plain;
                }
                model->class->release(prepared);
            }
            assert_true(differing > 10); /* the draws do something */
            sf_slots_free(&slots);
            sf_sampler_free(&sampler);
            sf_buffer_free(&text);
            model->class->scratch_free(scratch);
            safer_model_free(model);
            safer_lexicon_free(lexicon);
        }
}

/* ------------------------------------------------------------------ errors */

static safer_data *load_text(const char *tsv, const safer_data *labels_of)
{
    safer_data *data = NULL;
    safer_error error;
    safer_data_options options = safer_data_options_default();
    options.format = SAFER_FORMAT_TSV;
    options.labels_of = labels_of;
    assert_ok(safer_data_load(&data, write_temporary("rows.tsv", tsv, strlen(tsv)), &options, &error));
    return data;
}

static void bad_options_are_named(void **unused)
{
    (void)unused;
    safer_data *data = make_data(20, 2, 1);
    safer_error error;
    safer_train_options o;
    const char *path = temporary("never");
#define REFUSED(change, words) \
    do { \
        o = options_for(data); \
        change; \
        assert_fails(safer_train(path, &o, NULL, &error), SAFER_INVALID, words); \
    } while (0)
    REFUSED(o.arch = (safer_arch)6, "arch: unknown");
    REFUSED(o.train = NULL, "train is not given");
    REFUSED(o.ngram.order = 0, "ngram.order is 0; it must be from 1 to 8");
    REFUSED(o.ngram.order = 9, "ngram.order is 9");
    REFUSED(o.ngram.bits = 7, "bits is 7; it must be from 8 to 28");
    REFUSED(o.ngram.bits = 29, "bits is 29");
    REFUSED(o.threads = -1, "threads is -1");
    REFUSED(o.course.epochs = 0, "epochs is 0");
    REFUSED(o.course.batch = 0, "batch is 0");
    REFUSED(o.cnn.dim = 0, "dim is 0");
    REFUSED(o.cnn.filters = -5, "filters is -5");
    REFUSED(o.cnn.hidden = -1, "hidden is -1");
    REFUSED(o.course.patience = -2, "patience is -2");
    REFUSED(o.cnn.max_words = -1, "max_words is -1");
    REFUSED(o.cnn.min_count = 0, "min_count is 0");
    REFUSED(o.cnn.freeze = 2, "freeze is 2");
    REFUSED(o.resume = -1, "resume is -1");
    REFUSED(o.seeds = 0, "seeds is 0; it must be from 1 to 64");
    REFUSED(o.seeds = 65, "seeds is 65");
    REFUSED((o.seeds = 2, o.seed = UINT64_MAX), "seed is 18446744073709551615: there are no 2 seeds from it on");
    REFUSED(o.seeds = 2, "with seeds it is a sum of models, whose name ends with .json");
    REFUSED(o.course.dropout = 1, "dropout is 1; it must be at least 0 and below 1");
    REFUSED(o.course.dropout = (double)NAN, "dropout is nan");
    REFUSED(o.course.rate = 0, "rate is 0; it must be above 0");
    REFUSED(o.course.rate = (double)INFINITY, "rate is inf");
    REFUSED(o.course.decay = -0.1, "decay is -0.1");
    REFUSED(o.course.decay = (double)NAN, "decay is nan");
    REFUSED(o.course.pool = SAFER_POOL_CLS, "pool is \"cls\"; it must be mean or max");
    REFUSED(o.cnn.widths = "3,,4", "widths is \"3,,4\"");
    REFUSED(o.cnn.widths = "0", "widths is");
    REFUSED(o.cnn.widths = "101", "widths is");
    REFUSED(o.cnn.widths = "", "widths is");
    REFUSED(o.cnn.widths = NULL, "widths is");
    o = options_for(data);
    assert_fails(safer_train("", &o, NULL, &error), SAFER_INVALID, "output is not given");
    assert_fails(safer_train(path, NULL, NULL, &error), SAFER_INVALID, "train is not given");
    assert_fails(safer_train("/nonexistent/model", &o, NULL, &error), SAFER_SYSTEM, "/nonexistent/model");
    safer_data_free(data);
}

static void bad_data_are_named(void **unused)
{
    (void)unused;
    safer_error error;
    safer_data *good = make_data(20, 2, 1);
    safer_data *bare = load_text("1\ta\tgood\n2\tb\tbad\nseventh\t\tneither\n", NULL);
    safer_data *lonely = load_text("1\tclass 1\tgood\n2\tclass 1\tfine\n", good);
    safer_data *few = load_text("1\ta\tgood\n2\tb\tbad\n", NULL);
    const char *path = temporary("never");
    const struct {
        const safer_data *train, *dev;
        const char *words;
    } cases[] = {
        {bare, NULL, "train, row 3 (id seventh) has no label"},
        {few, bare, "dev, row 3 (id seventh) has no label"},
        {lonely, NULL, "all rows of train have the label \"class 1\""},
        {good, few, "dev does not have the labels of train"},
        {few, NULL, "no class of train has 10 rows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        safer_train_options o = options_for(cases[i].train);
        o.dev = cases[i].dev;
        assert_fails(safer_train(path, &o, NULL, &error), SAFER_INPUT, cases[i].words);
    }
    sf_file file = {0};
    assert_int_equal(sf_file_load(&file, path, NULL), SAFER_SYSTEM); /* nothing was written */
    safer_train_options o = options_for(few);
    o.dev = few;
    assert_ok(safer_train(temporary("few"), &o, NULL, &error));
    safer_data_free(good);
    safer_data_free(bare);
    safer_data_free(lonely);
    safer_data_free(few);
}

static int stop_at_once(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    return strcmp(stage, context) == 0;
}

static void can_be_cancelled(void **unused)
{
    (void)unused;
    static char *const stages[] = {"reading texts", "reading dev texts", "fitting", "fitting the kept model"};
    safer_data *data = make_data(200, 2, 1);
    safer_error error;
    sf_file file = {0};
    for (size_t i = 0; i < 4; i++) {
        safer_train_options o = options_for(data);
        o.progress = (safer_progress){stop_at_once, stages[i]};
        assert_fails(safer_train(temporary("cancelled"), &o, NULL, &error), SAFER_CANCELLED, stages[i]);
        assert_int_equal(sf_file_load(&file, temporary("cancelled"), NULL), SAFER_SYSTEM);
    }
    safer_data_free(data);
}

/* -------------------------------------------------------------- allocation */

typedef struct world {
    safer_train_options options;
    const char *path;
} world;

static safer_status train_tiny(void *context, safer_error *error)
{
    world *w = context;
    return safer_train(w->path, &w->options, NULL, error);
}

static safer_status use_tiny(void *context, safer_error *error)
{
    world *w = context;
    safer_status status;
    safer_model *model = NULL;
    void *prepared = NULL, *scratch = NULL;
    sf_slots slots = {0};
    const char *text = "Goal! the team of 11.";
    size_t length = strlen(text);
    uint32_t draws[8] = {0};
    int label;
    SF_TRY(safer_model_open(&model, w->path, error));
    SF_TRY(safer_model_classify(model, &text, &length, 1, &label, NULL, error));
    SF_TRY(sf_slots_read(&slots, w->options.lexicon, text, length, error));
    SF_TRY(model->class->scratch_new(model, &scratch, error));
    SF_TRY(model->class->prepare(model, w->options.lexicon, &slots, &prepared, error));
    SF_TRY(model->class->sample(model, prepared, draws, 1, &label, scratch, error));
done:
    if (model) model->class->release(prepared);
    if (model) model->class->scratch_free(scratch);
    sf_slots_free(&slots);
    safer_model_free(model);
    return status;
}

static void out_of_memory(void **unused)
{
    (void)unused;
    safer_data *data = make_data(12, 3, 4);
    safer_lexicon *lexicon = make_lexicon("component");
    world w = {options_for(data), "/dev/null"};
    safer_error error;
    w.options.lexicon = lexicon;
    w.options.ngram.bits = 8;
    check_every_allocation(train_tiny, &w);
    w.options.dev = data;
    w.options.lexicon = NULL;
    check_every_allocation(train_tiny, &w);
    w.options.lexicon = lexicon;
    w.path = temporary("tiny");
    assert_ok(safer_train(w.path, &w.options, NULL, &error));
    check_every_allocation(use_tiny, &w);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* -------------------------------------------------------------------- IMDB */

static void imdb_in_small(void **unused)
{
    (void)unused;
    const char *path = shared_data("imdb_train.tsv.xz");
    if (!path) skip();
    safer_data_options options = safer_data_options_default();
    safer_data *data = NULL;
    safer_train_report report;
    safer_error error;
    options.sample = "every:10";
    assert_ok(safer_data_load(&data, path, &options, &error));
    safer_train_options o = options_for(data);
    o.ngram.bits = 20;
    o.threads = 2;
    assert_ok(safer_train(temporary("imdb"), &o, &report, &error));
    printf("2,500 reviews: %.1f%% on the held-out tenth, %.2f s, %.0f tokens/s\n", 100 * report.dev_accuracy,
           report.seconds, report.tokens_per_second);
    assert_true(report.dev_accuracy > 0.8 && report.tokens > 500000);
    safer_data_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features),
        cmocka_unit_test(agrees_with_the_naive_optimiser),
        cmocka_unit_test(objective_falls),
        cmocka_unit_test(learns),
        cmocka_unit_test(dev_is_only_measured),
        cmocka_unit_test(lexicon_is_recognised),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(empty_texts_and_ties),
        cmocka_unit_test(draws_equal_rendered_texts),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(bad_data_are_named),
        cmocka_unit_test(can_be_cancelled),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(imdb_in_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
