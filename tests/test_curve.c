/* Certificates by bounds at every radius, of models whose words add up: every text that an attacker can write is
 * asked. No certificate is broken, and where one ends an attack of one word more succeeds. */
#define _GNU_SOURCE
#include "certify/read.h"
#include "certify/workspace.h"
#include "forging.h"
#include "model/cnn.h"
#include "model/sum.h"
#include "training.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const pool[] = {"aa", "bb", "cc", "dd", "ee", "ff", "gg"};
enum { POOL = sizeof pool / sizeof pool[0], IN_LEXICON = 6, LONGEST = 5 };
static const char *const labels_of[] = {NULL, NULL, "[\"0\",\"1\"]", "[\"0\",\"1\",\"2\"]",
                                        "[\"0\",\"1\",\"2\",\"3\"]"};

/* What a network's numbers are: any, few that are equal (ties), or of very different sizes. */
typedef enum numbers { ANY, TIES, EXTREMES } numbers;

static float number_of(numbers kind, float size)
{
    if (kind == TIES) return (float)next_below(3) - 1;
    return size * next_float() * (kind == EXTREMES && next_below(2) ? 1e-6F : 1);
}

/* Random synonyms, one-way or not, in two groups of three. linked[a][b]: b may stand for a. */
static safer_lexicon *random_lexicon(int linked[POOL][POOL], int directed)
{
    safer_lexicon *lexicon = NULL;
    sf_buffer table = {0};
    safer_lexicon_options options = safer_lexicon_options_default();
    memset(linked, 0, sizeof(int[POOL][POOL]));
    for (int a = 0; a < IN_LEXICON; a++) {
        int any = 0;
        for (int b = 0; b < IN_LEXICON; b++) {
            if (a == b || a / 3 != b / 3 || next_below(3) == 0) continue;
            if (!any) assert_int_equal(sf_buffer_format(&table, "%s\t", pool[a]), 0);
            assert_int_equal(sf_buffer_format(&table, any++ ? " %s" : "%s", pool[b]), 0);
            linked[a][b] = 1;
            if (!directed) linked[b][a] = 1;
        }
        if (any) assert_int_equal(sf_buffer_add_byte(&table, '\n'), 0);
    }
    if (!table.length) { /* there must be one pair */
        assert_int_equal(sf_buffer_format(&table, "aa\tbb\n"), 0);
        linked[0][1] = 1;
        linked[1][0] = !directed;
    }
    options.function_words = 0;
    options.table = write_temporary("links.tsv", table.bytes, table.length);
    options.directed = directed;
    options.kernel = "representative";
    assert_ok(safer_lexicon_import(&lexicon, &options, NULL, &error));
    sf_buffer_free(&table);
    assert_ok(safer_lexicon_save(lexicon, temporary("words.lex"), &error));
    return lexicon;
}

/* A bow without a hidden layer, which knows most of the words. */
static void write_linear(const char *path, size_t classes, size_t max_words, numbers kind, float size)
{
    sf_words words = {0};
    sf_cnn_layout layout;
    sf_cnn_shape shape = {
        .dim = 1 + next_below(3), .classes = classes, .width_count = 1, .widths = {1}, .max_words = max_words};
    float parameters[400], scale[20];
    uint32_t id;
    for (uint32_t w = 0; w < POOL; w++)
        if (next_below(5)) assert_ok(sf_words_add(&words, pool[w], strlen(pool[w]), &id, &error));
    shape.filters = shape.dim;
    shape.vocabulary = words.count + 1;
    sf_cnn_layout_make(&layout, &shape);
    assert_true(layout.size <= COUNT(parameters) && layout.features <= COUNT(scale));
    for (size_t i = 0; i < layout.size; i++) parameters[i] = number_of(kind, size);
    assert_int_equal(sf_cnn_scales(scale, &layout, parameters, 1), 0);
    assert_ok(sf_cnn_save(path, &layout, parameters, scale, &words, labels_of[classes], "{}", &error));
    sf_words_free(&words);
}

static safer_model *open_model(const char *path)
{
    safer_model *model = NULL;
    assert_ok(safer_model_open(&model, path, &error));
    return model;
}

/* One network, or a sum of up to three and, sometimes, one that reads the canonical text. */
static safer_model *random_model(size_t members, size_t classes, numbers kind, float size)
{
    sf_buffer text = {0};
    if (!members) {
        write_linear(temporary("linear"), classes, next_below(4) ? 1000 : 1 + next_below(4), kind, size);
        return open_model(temporary("linear"));
    }
    assert_int_equal(sf_buffer_format(&text, "{\"arch\": \"sum\", \"members\": ["), 0);
    for (size_t m = 0; m < members; m++) {
        char name[32];
        snprintf(name, sizeof name, "member%zu", m);
        write_linear(temporary(name), classes, next_below(4) ? 1000 : 1 + next_below(4), kind, size);
        const double weight = kind == TIES ? 1 : pow(10, (double)next_float());
        assert_int_equal(sf_buffer_format(&text, "%s{\"model\": \"%s\", \"weight\": %.17g%s}", m ? ", " : "", name,
                                          weight, m == 2 ? ", \"canonical\": \"words.lex\"" : ""),
                         0);
    }
    assert_int_equal(sf_buffer_format(&text, "]}"), 0);
    const char *path = write_temporary("sum.json", text.bytes, text.length);
    sf_buffer_free(&text);
    return open_model(path);
}

/* ------------------------------------------------------------------- attacks */

/* The least lead of the target over any class in an answered text. */
static double lead_of(const safer_model *model, const void *scratch, size_t target)
{
    double least = HUGE_VAL;
    for (size_t k = 0; k < model->classes; k++) {
        if (k == target) continue;
        if (model->class == &sf_sum_class) {
            int64_t sum = 0;
            for (size_t m = 0; m < ((const sf_sum_model *)model)->count; m++) {
                const int64_t *said = sf_sum_said(scratch, m);
                sum += said[target] - said[k];
            }
            least = fmin(least, ldexp((double)sum, -SF_SUM_BITS));
        } else {
            const float *logits = sf_cnn_scratch_logits(scratch);
            least = fmin(least, (double)logits[target] - (double)logits[k]);
        }
    }
    return least;
}

static size_t write_words(char *out, const uint32_t *words, size_t count)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count; i++) n += (size_t)sprintf(out + n, "%s%s", i ? " " : "", pool[words[i]]);
    return n;
}

/* By the number of changed words: the least lead of all texts, and whether one of them has another answer. */
typedef struct truth {
    double least[LONGEST + 1];
    int falls[LONGEST + 1];
    size_t asked;
} truth;

static truth attack(const safer_model *model, const uint32_t *words, size_t count, int linked[POOL][POOL], int target)
{
    truth t = {0};
    void *scratch;
    uint32_t changed[LONGEST];
    size_t ways = 1;
    for (size_t i = 0; i < count; i++) ways *= POOL;
    for (size_t i = 0; i <= LONGEST; i++) t.least[i] = HUGE_VAL;
    assert_ok(model->class->scratch_new(model, &scratch, &error));
    for (size_t way = 0; way < ways; way++) {
        char bytes[64];
        size_t rest = way, i = 0, changes = 0;
        int label;
        for (; i < count; i++, rest /= POOL) {
            changed[i] = (uint32_t)(rest % POOL);
            changes += changed[i] != words[i];
            if (changed[i] != words[i] && !linked[words[i]][changed[i]]) break;
        }
        if (i < count) continue;
        const sf_span text = {bytes, write_words(bytes, changed, count)};
        assert_ok(model->class->classify(model, &text, 1, &label, NULL, scratch, &error));
        const double lead = lead_of(model, scratch, (size_t)target);
        for (size_t r = changes; r <= LONGEST; r++) {
            t.least[r] = fmin(t.least[r], lead);
            t.falls[r] |= label != target;
        }
        t.asked++;
    }
    model->class->scratch_free(scratch);
    return t;
}

typedef struct counts {
    size_t texts, asked, all, between, none, ends, fall;
} counts;

/* A certificate against the truth. `slack`: what rounding may cost. */
static void check(counts *n, const safer_certificate *c, const truth *t, const char *bytes, double slack, size_t asked)
{
    const size_t radius = c->radius < LONGEST ? c->radius : LONGEST;
    assert_true(c->additive && c->exact && c->certified == (c->radius >= asked));
    for (size_t r = 0; r < SAFER_RADII; r++) {
        const size_t at = safer_reported_radius(r) < LONGEST ? safer_reported_radius(r) : LONGEST;
        if (t->least[at] < c->margin_at[r] || c->margin_at[r] < t->least[at] - slack)
            fail_msg("\"%s\": at %zu changes class %d leads by %.9g, margin %.9g", bytes, at, c->target, t->least[at],
                     c->margin_at[r]);
        assert_true(c->certified_at[r] == (c->radius >= safer_reported_radius(r)));
    }
    if (c->radius > 0 && t->falls[radius]) fail_msg("\"%s\": certified at %zu, but an attack succeeds", bytes, radius);
    n->texts++;
    n->asked += t->asked;
    n->all += c->radius == SAFER_ALL;
    n->none += c->radius == 0;
    n->between += c->radius > 0 && c->radius < SAFER_ALL;
    if (c->radius == SAFER_ALL) return;
    assert_true(radius < LONGEST); /* the radius is below the number of slots */
    if (t->least[radius + 1] > slack)
        fail_msg("\"%s\": certified at %zu, but at %zu it still leads by %g", bytes, radius, radius + 1,
                 t->least[radius + 1]);
    n->ends++;
    n->fall += (size_t)t->falls[radius + 1];
}

static void try_model(counts *n, uint32_t number, numbers kind, float size, double slack)
{
    int linked[POOL][POOL];
    safer_lexicon *lexicon = random_lexicon(linked, (int)(number % 2));
    safer_model *model = random_model(number / 2 % 4, 2 + number / 8 % 3, kind, size);
    safer_workspace *workspace = NULL;
    safer_certify_options options = safer_certify_options_default();
    options.method = SAFER_METHOD_IBP;
    options.radius = number % 3 ? SAFER_ALL : 1 + number % 4;
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t words[LONGEST];
        char bytes[64];
        safer_certificate found;
        const size_t count = i ? 1 + next_below(LONGEST) : 0;
        for (size_t w = 0; w < count; w++) words[w] = w && next_below(3) == 0 ? words[w - 1] : next_below(POOL);
        const size_t length = write_words(bytes, words, count);
        assert_ok(
            safer_certify_text(&found, &workspace, model, lexicon, bytes, length, i % 3 ? -1 : 0, &options, &error));
        const truth t = attack(model, words, count, linked, found.target);
        check(n, &found, &t, bytes, slack * (1 + (double)size * (double)size), options.radius);
    }
    safer_workspace_free(workspace);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
}

static void the_radius_is_exact(void **unused)
{
    (void)unused;
    const struct {
        numbers kind;
        float size;
    } kinds[] = {{ANY, 1}, {TIES, 1}, {EXTREMES, 1}, {ANY, 1e3F}, {TIES, 1}};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        counts n = {0};
        for (uint32_t number = 0; number < 96; number++) try_model(&n, number, kinds[k].kind, kinds[k].size, 2e-4);
        printf("kind %zu: %zu texts, %zu asked; radius all %zu, between %zu, 0 %zu; of %zu ends %zu attacks succeed\n",
               k, n.texts, n.asked, n.all, n.between, n.none, n.ends, n.fall);
        assert_true(n.all > 100 && n.none > 100 && n.between > 20);
        assert_true(kinds[k].kind != ANY || n.fall * 100 >= n.ends * 99); /* else leads are within rounding */
    }
}

/* Numbers beyond what can be said anything about certify nothing, at no radius. */
static void overflow_certifies_nothing(void **unused)
{
    (void)unused;
    int linked[POOL][POOL];
    safer_lexicon *lexicon = random_lexicon(linked, 0);
    for (uint32_t i = 0; i < 8; i++) {
        safer_model *model = random_model(i % 2, 2, ANY, 1e25F);
        safer_workspace *workspace = NULL;
        safer_certificate c;
        safer_certify_options options = safer_certify_options_default();
        options.method = SAFER_METHOD_IBP;
        assert_ok(safer_certify_text(&c, &workspace, model, lexicon, "aa bb cc", 8, -1, &options, &error));
        assert_true(c.additive && c.radius == 0);
        safer_workspace_free(workspace);
        safer_model_free(model);
    }
    safer_lexicon_free(lexicon);
}

/* ------------------------------------------------------------------- records */

static safer_status check_record(const json_t *json, const sf_config *config, safer_error *e)
{
    sf_record record;
    safer_status status = sf_record_read(&record, json, config, "run", 2, e);
    return status == SAFER_OK ? sf_record_recheck(&record, config, "run", 2, e) : status;
}

/* Decisions follow from the margins by radius. */
static void records_follow_from_the_curve(void **unused)
{
    (void)unused;
    json_t *labels = json_pack("[ss]", "a", "b");
    sf_config config = {
        .method = SAFER_METHOD_IBP, .format = 2, .radius = 2, .classes = 2, .labels = labels, .additive = 1};
    static const char right[] =
        "{\"id\":\"1\",\"label\":\"b\",\"prediction\":\"b\",\"abstained\":false,\"base\":\"b\",\"target\":\"b\","
        "\"words\":9,\"slots\":8,\"visible\":7,\"exact\":true,\"margins\":{\"a\":-0.5},"
        "\"margin_at\":[0.5,0.25,-0.25,-0.5,-0.5,-0.5],\"margin_radius\":0.125,\"margin_next\":0.0,"
        "\"certified\":true,\"radius\":\"3\",\"queries\":0}";
    static const struct {
        const char *field, *value, *words;
    } forged[] = {
        {"margin_at", "[0.5,0.25,-0.25,-0.5,-0.5]", "not a record"},
        {"margin_at", "[0.5,0.25,0.5,-0.5,-0.5,-0.5]", "not a record"},
        {"margin_at", "[0.5,0.25,-0.25,-0.5,-0.5,-1]", "not a record"},
        {"margin_at", "[0.5,0.25,-0.25,-0.5,-0.5,-0.75]", "does not end with the least"},
        {"margin_at", "[0.5,0.25,-0.25,-0.25,-0.5,-0.5]", "goes on where the slots end"},
        {"margin_at", "[0.5,0.1,-0.25,-0.5,-0.5,-0.5]", "margin_radius or margin_next"},
        {"margin_at", "[0.5,0.25,0.1,-0.5,-0.5,-0.5]", "margin_radius or margin_next"},
        {"margin_radius", "0.3", "margin_radius or margin_next"},
        {"margin_radius", "-0.1", "not a record"},
        {"margin_next", "0.01", "does not follow from the margins"},
        {"margin_next", "0.2", "not a record"},
        {"radius", "\"2\"", "margin_radius or margin_next"},
        {"radius", "\"4\"", "margin_radius or margin_next"},
        {"radius", "\"7\"", "beyond the number of slots"},
        {"radius", "\"all\"", "does not follow from the margins"},
        {"radius", "\"0\"", "margin_radius or margin_next"},
        {"certified", "false", "certified does not follow"},
        {"margins", "{\"a\":0.5}", "does not end with the least"},
        {"queries", "1", "no queries"},
    };
    json_t *record = json_loads(right, 0, NULL);
    assert_ok(check_record(record, &config, &error));
    for (size_t i = 0; i < COUNT(forged); i++) {
        json_t *copy = json_deep_copy(record);
        json_object_set_new(copy, forged[i].field, json_loads(forged[i].value, JSON_DECODE_ANY, NULL));
        if (check_record(copy, &config, &error) == SAFER_OK) fail_msg("%s %s", forged[i].field, forged[i].value);
        assert_fails(check_record(copy, &config, &error), SAFER_INPUT, forged[i].words);
        json_decref(copy);
    }
    json_object_set_new(record, "base", json_string("a"));
    json_object_set_new(record, "prediction", json_string("a"));
    assert_fails(check_record(record, &config, &error), SAFER_INPUT, "contradict");
    config.additive = 0; /* a run from before there were radii knows no such members */
    assert_fails(check_record(record, &config, &error), SAFER_INPUT, "\"margin_at\" is unknown");
    json_decref(record);
    json_decref(labels);
}

/* A run as versions without radii wrote it. */
static const char *old_run(const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                           const safer_certify_options *o)
{
    sf_buffer out = {0};
    safer_workspace *workspace = NULL;
    safer_reader *reader = NULL;
    uint64_t seal;
    size_t length;
    json_t *json = sf_config_json(model, lexicon, data, o);
    assert_int_equal(json_object_del(json, "additive"), 0);
    json_object_set_new(json, "date", json_string("2026-11-16T10:03:22Z"));
    char *line = sf_seal(json, -1, 0, &length, &seal);
    assert_int_equal(sf_buffer_add(&out, line, length), 0);
    free(line);
    json_decref(json);
    assert_ok(sf_workspace_new(&workspace, model, lexicon, o, &error));
    workspace->additive = 0;
    for (size_t i = 0; i < safer_data_size(data); i++) {
        safer_row row;
        safer_certificate c;
        assert_ok(safer_data_read(&row, &reader, data, i, &error));
        assert_ok(safer_certify_text(&c, &workspace, model, lexicon, row.text, row.text_length, row.label, o, &error));
        assert_true(!c.additive && (c.radius == 0 || c.radius == SAFER_ALL));
        c.id = row.id;
        json = sf_record_json(&c, i + 1, workspace);
        line = sf_seal(json, 0.5, seal, &length, NULL);
        assert_int_equal(sf_buffer_add(&out, line, length), 0);
        free(line);
        json_decref(json);
    }
    safer_workspace_free(workspace);
    safer_reader_free(reader);
    const char *path = write_temporary("old.jsonl", out.bytes, out.length);
    sf_buffer_free(&out);
    return path;
}

/* Written, verified with the model, and found out where margins are not the model's. A run without radii still
 * verifies, and is not resumed. */
static void runs_are_verified(void **unused)
{
    (void)unused;
    int linked[POOL][POOL];
    char path[500];
    safer_verification said;
    safer_data *data = NULL;
    static const char rows[] = "1\t0\taa bb cc\n2\t1\tdd ee ff\n3\t1\taa aa dd gg\n4\t0\tgg\n";
    static const char higher[] = "{\"margins\":{\"1\":9.5},\"margin_at\":[9.5,9.5,9.5,9.5,9.5,9.5],"
                                 "\"margin_radius\":9.5,\"margin_next\":9.5,\"radius\":\"all\","
                                 "\"certified\":true,\"base\":\"0\",\"prediction\":\"0\"}";
    const forgery more = {5, "*", higher, ""};
    safer_certify_options o = safer_certify_options_default();
    safer_lexicon *lexicon = random_lexicon(linked, 0);
    o.method = SAFER_METHOD_IBP;
    assert_ok(safer_data_load(&data, write_temporary("rows.tsv", rows, sizeof rows - 1), NULL, &error));
    for (size_t members = 0; members < 4; members++) {
        safer_model *model = random_model(members, 2, ANY, 1);
        snprintf(path, sizeof path, "%s", temporary("curve.jsonl"));
        (void)remove(path);
        assert_ok(safer_certify(NULL, path, 0, model, lexicon, data, &o, &error));
        assert_ok(safer_verify(&said, path, model, lexicon, data, 1, NULL, &error));
        assert_true(said.summary.additive && said.summary.texts == 4);
        safer_summary_free(&said.summary);
        const char *forged = forge(path, &more);
        assert_ok(safer_verify(NULL, forged, NULL, NULL, NULL, 1, NULL, &error));
        assert_fails(safer_verify(NULL, forged, model, lexicon, data, 1, NULL, &error), SAFER_INPUT, "differs");
        snprintf(path, sizeof path, "%s", old_run(model, lexicon, data, &o));
        assert_ok(safer_verify(&said, path, model, lexicon, data, 1, NULL, &error));
        assert_true(!said.summary.additive);
        safer_summary_free(&said.summary);
        assert_fails(safer_certify(NULL, path, 1, model, lexicon, data, &o, &error), SAFER_INPUT, "additive");
        safer_model_free(model);
    }
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static safer_status open_and_certify(void *lexicon, safer_error *e)
{
    safer_model *model = NULL;
    safer_workspace *workspace = NULL;
    safer_certificate found;
    safer_certify_options options = safer_certify_options_default();
    options.method = SAFER_METHOD_IBP;
    safer_status status = safer_model_open(&model, temporary("sum.json"), e);
    if (status == SAFER_OK)
        status = safer_certify_text(&found, &workspace, model, lexicon, "aa bb cc", 8, 0, &options, e);
    safer_workspace_free(workspace);
    safer_model_free(model);
    return status;
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    int linked[POOL][POOL];
    safer_lexicon *lexicon = random_lexicon(linked, 0);
    safer_model_free(random_model(3, 2, ANY, 1));
    check_every_allocation(open_and_certify, lexicon);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_radius_is_exact),
        cmocka_unit_test(overflow_certifies_nothing),
        cmocka_unit_test(records_follow_from_the_curve),
        cmocka_unit_test(runs_are_verified),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
