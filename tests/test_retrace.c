/* Records, compared with themselves and with what they were made from: whoever seals them, what does not follow is
 * found. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "certify/read.h"
#include "certify/workspace.h"
#include "forging.h"

/* A model of two classes: "b", but "a" for texts with too many words that are not "good"; and one answer, counted
 * from the first, or those to one text, can be made to differ. */
typedef struct scripted_model {
    safer_model base;
    size_t most;      /* other words than "good" */
    long flipped;     /* the number of an answer; -1: none */
    const char *text; /* whose answer is another; NULL: none */
    long asked;
} scripted_model;

static safer_status classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *e)
{
    scripted_model *m = (scripted_model *)model;
    (void)scores, (void)scratch, (void)e;
    for (size_t i = 0; i < count; i++) {
        size_t words = 0;
        for (const char *at = texts[i].bytes, *end = at + texts[i].length; at < end; at += strcspn(at, " ") + 1)
            words += strncmp(at, "good", 4) != 0;
        const int is_text = m->text && strlen(m->text) == texts[i].length &&
                            memcmp(m->text, texts[i].bytes, texts[i].length) == 0;
        labels[i] = (words <= m->most) ^ (m->asked++ == m->flipped) ^ is_text;
    }
    return SAFER_OK;
}

static char *names[] = {"a", "b"};
static const sf_model_class scripted = {.arch = "bow", .classify = classify};

static scripted_model make_model(size_t most)
{
    return (scripted_model){.base = {.class = &scripted,
                                     .name = "scripted",
                                     .classes = 2,
                                     .labels = names,
                                     .hash = 1,
                                     .sha256 = digest_for(1),
                                     .arithmetic = "portable"},
                            .most = most,
                            .flipped = -1};
}

/* Eight words of two choices each, and twenty of ten: of these, good has nine in common with each other word. */
static const char pair_text[] = "good good good good good good good good", pair_table[] = "good\tgreat\n",
                  tied_text[] = "good good good good good good good good good good "
                                "good good good good good good good good good good",
                  tied_table[] = "good\tgreat fine nice superb lovely neat solid grand sweet\ngreat\tgreatest\n";

typedef struct made {
    char path[500];
    scripted_model model;
    safer_lexicon *lexicon;
    safer_data *data;
    sf_run run;
    sf_record record; /* of its one text */
    json_t *json;
} made;

/* A run of one text of class "b". */
static made make_run(const char *name, const char *table, const char *kernel, const char *text,
                     const safer_certify_options *options)
{
    static const char *const labels[] = {"b"};
    made m = {.model = make_model(1000), .lexicon = import_table(table, kernel)};
    snprintf(m.path, sizeof m.path, "%s", temporary(name));
    assert_ok(safer_data_from_texts(&m.data, &text, NULL, labels, NULL, 1, &error));
    assert_ok(safer_certify(NULL, m.path, 0, &m.model.base, m.lexicon, m.data, options, &error));
    assert_ok(sf_run_load(&m.run, m.path, &error));
    sf_window window = {.source = &m.run.source};
    assert_ok(sf_run_index(&m.run, &error));
    assert_ok(sf_run_record(&m.record, &m.json, &m.run, 0, &window, &error));
    sf_window_free(&window);
    return m;
}

static void free_run(made *m)
{
    json_decref(m->json);
    sf_run_free(&m->run);
    safer_lexicon_free(m->lexicon);
    safer_data_free(m->data);
}

static safer_certify_options options_of(safer_method method, uint64_t n)
{
    safer_certify_options o = safer_certify_options_default();
    o.method = method;
    o.n = n;
    o.threads = 1;
    return o;
}

static safer_status verify(const char *path) { return safer_verify(NULL, path, NULL, NULL, NULL, 1, NULL, &error); }

static safer_status verify_texts(const made *m, const char *path)
{
    return safer_verify(NULL, path, NULL, m->lexicon, m->data, 1, NULL, &error);
}

static safer_status ask_again(made *m)
{
    m->model.asked = 0;
    return safer_verify(NULL, m->path, &m->model.base, m->lexicon, m->data, 1, NULL, &error);
}

/* --------------------------------------------------------- the record itself */

/* Line 2 with these members; as many numbers as the format has. */
#define FORGED(m, ...) \
    (snprintf(members, sizeof members, __VA_ARGS__), forge((m)->path, &(forgery){2, "*", members, ""}))

/* Each claim of a radius is tied to q at it and beyond, and to the counts. */
static void test_radius(void **state)
{
    static const char radius[] = "line 2: q_radius or q_next is not that of the radius";
    char members[500];
    const safer_certify_options o = options_of(SAFER_METHOD_BINOMIAL, 2000);
    made m = make_run("radius.jsonl", tied_table, "topk:10", tied_text, &o);
    const sf_record *r = &m.record;
    const double last = r->q_at[SAFER_RADII - 1], near_radius = (r->q_at[2] + r->q_radius) / 2;
    (void)state;
    assert_true(r->radius > 5 && r->radius < 9 && r->q_at[2] < r->q_radius && r->q_next < r->q_at[3] && last < 1);
    assert_ok(verify(m.path));
    assert_ok(verify(FORGED(&m, "{\"id\":\"other\"}")));
    assert_fails(verify(FORGED(&m, "{\"radius\":\"0\"}")), SAFER_INPUT, radius);
    assert_fails(verify(FORGED(&m, "{\"radius\":\"0\",\"q_radius\":0.0}")), SAFER_INPUT, radius);
    assert_fails(verify(FORGED(&m, "{\"radius\":\"0\",\"q_radius\":0.0,\"q_next\":%.17g}", r->q_at[0])), SAFER_INPUT,
                 "line 2: the counts certify a larger radius");
    assert_fails(verify(FORGED(&m, "{\"radius\":\"0\",\"q_radius\":0.0,\"q_next\":0.0}")), SAFER_INPUT,
                 "line 2: the counts certify a larger radius");
    assert_fails(verify(FORGED(&m, "{\"radius\":\"5\"}")), SAFER_INPUT, radius);
    assert_fails(verify(FORGED(&m, "{\"radius\":\"10\"}")), SAFER_INPUT, radius);
    assert_fails(verify(FORGED(&m, "{\"q_next\":1.0}")), SAFER_INPUT, radius);
    assert_fails(verify(FORGED(&m, "{\"radius\":\"20\"}")), SAFER_INPUT, "line 2: a radius beyond the number of slots");
    assert_fails(verify(FORGED(&m, "{\"radius\":\"all\"}")), SAFER_INPUT, "line 2: q_radius is not that of all words");
    assert_fails(verify(FORGED(&m, "{\"radius\":\"all\",\"q_radius\":%.17g,\"q_next\":1.0}", last)), SAFER_INPUT,
                 "line 2: q_next is not that of all words");
    assert_fails(verify(FORGED(&m, "{\"radius\":\"all\",\"q_radius\":%.17g,\"q_next\":%.17g}", last, last)),
                 SAFER_INPUT, "line 2: the radius is not certified by the counts");
    /* What a record cannot contradict alone, the words do. */
    assert_ok(verify(FORGED(&m, "{\"q_radius\":%.17g}", near_radius)));
    assert_fails(verify_texts(&m, FORGED(&m, "{\"q_radius\":%.17g}", near_radius)), SAFER_INPUT,
                 "line 2: q_radius does not follow from the overlaps of the words");
    assert_ok(verify(FORGED(&m, "{\"q_next\":%.17g}", (r->q_next + r->q_at[3]) / 2)));
    assert_fails(verify_texts(&m, FORGED(&m, "{\"q_next\":%.17g}", (r->q_next + r->q_at[3]) / 2)), SAFER_INPUT,
                 "line 2: q_next does not follow from the overlaps of the words");
    free_run(&m);
}

/* What the configuration does not allow, however the rest fits. */
static void test_configuration(void **state)
{
    char members[500];
    safer_certify_options o = options_of(SAFER_METHOD_BINOMIAL, 50);
    made fixed = make_run("fixed.jsonl", pair_table, "topk:2", pair_text, &o);
    o.method = SAFER_METHOD_ADAPTIVE;
    made adaptive = make_run("adaptive.jsonl", pair_table, "topk:2", pair_text, &o);
    (void)state;
    assert_false(fixed.record.exact || adaptive.record.exact);
    assert_fails(verify(FORGED(&fixed, "{\"n\":51,\"counts\":{\"a\":0,\"b\":51}}")), SAFER_INPUT,
                 "line 2: n does not fit the configuration");
    assert_fails(verify(FORGED(&fixed, "{\"n\":49,\"counts\":{\"a\":0,\"b\":49}}")), SAFER_INPUT,
                 "line 2: n does not fit the configuration");
    assert_fails(verify(FORGED(&adaptive, "{\"n\":51,\"counts\":{\"a\":0,\"b\":51}}")), SAFER_INPUT,
                 "line 2: n does not fit the configuration");
    assert_fails(verify(FORGED(&fixed, "{\"target\":\"a\"}")), SAFER_INPUT,
                 "line 2: the certificate is about another class");
    assert_fails(verify(FORGED(&fixed, "{\"exact\":true,\"vote\":null,\"n\":null,\"counts\":null,"
                                       "\"weights\":{\"a\":\"0\",\"b\":\"256\"},\"total\":\"256\"}")),
                 SAFER_INPUT, "line 2: this method never enumerates");
    /* As exact it would be granted more; only with the words is it seen that there were too many draws. */
    const char *exact = FORGED(&adaptive, "{\"exact\":true,\"vote\":null,\"n\":null,\"counts\":null,\"bound\":1.0,"
                                          "\"weights\":{\"a\":\"0\",\"b\":\"256\"},\"total\":\"256\",\"queries\":256}");
    assert_ok(verify(exact));
    assert_fails(verify_texts(&adaptive, exact), SAFER_INPUT, "line 2: the text has too many draws to be exact");
    free_run(&fixed);
    free_run(&adaptive);
}

/* --------------------------------------------------------------- the answers */

/* Every answer that was counted is asked again: whichever is another one, the record is refused. Those that follow
 * the decision in their batch were not counted. */
static void test_every_answer(void **state)
{
    static const safer_method methods[] = {SAFER_METHOD_ADAPTIVE, SAFER_METHOD_BINOMIAL, SAFER_METHOD_HOEFFDING};
    (void)state;
    for (size_t k = 0; k < COUNT(methods); k++) {
        const safer_certify_options o = options_of(methods[k], 60);
        made m = make_run("answers.jsonl", pair_table, "topk:2", pair_text, &o);
        long refused = 0, votes = 0, counts = 0;
        assert_ok(ask_again(&m));
        const long asked = m.model.asked;
        assert_true(!m.record.exact && m.record.n > 0 && m.record.vote_n > 0 && asked >= (long)m.record.queries);
        for (m.model.flipped = 0; m.model.flipped < asked; m.model.flipped++) {
            if (ask_again(&m) == SAFER_OK) continue;
            assert_non_null(strstr(error.message, "line 2: the model gives another record: "));
            votes += strstr(error.message, "\"vote\" differs") != NULL;
            counts += strstr(error.message, "\"counts\" differs") || strstr(error.message, "\"n\" differs");
            refused++;
        }
        assert_int_equal(refused, 1 + m.record.queries); /* the text's own, too */
        assert_int_equal(votes, m.record.vote_n);
        assert_int_equal(counts, m.record.n);
        free_run(&m);
        assert_int_equal(remove(m.path), 0);
    }
}

/* The same where all draws were asked. */
static void test_every_draw(void **state)
{
    static const char *const texts[] = {"good good", "good great", "great good", "great great"};
    const safer_certify_options o = options_of(SAFER_METHOD_ADAPTIVE, 60);
    made m = make_run("draws.jsonl", pair_table, "topk:2", texts[0], &o);
    (void)state;
    assert_true(m.record.exact && m.record.queries == COUNT(texts));
    assert_ok(ask_again(&m));
    for (size_t i = 0; i < COUNT(texts); i++) {
        m.model.text = texts[i];
        assert_fails(ask_again(&m), SAFER_INPUT, i ? "\"weights\" differs" : "\"base\" differs");
    }
    free_run(&m);
}

/* A model that answers the text as before but its draws otherwise is told by the first member that it changes. */
static void test_other_model(void **state)
{
    safer_certify_options o = options_of(SAFER_METHOD_BINOMIAL, 100);
    made about_label = make_run("label.jsonl", pair_table, "topk:2", pair_text, &o);
    o.unlabelled = 1;
    made about_prediction = make_run("prediction.jsonl", pair_table, "topk:2", pair_text, &o);
    (void)state;
    assert_ok(ask_again(&about_label));
    assert_ok(ask_again(&about_prediction));
    about_label.model.most = about_prediction.model.most = 1; /* of 8: nearly all draws are "a" now */
    assert_fails(ask_again(&about_label), SAFER_INPUT, "\"prediction\" differs");
    assert_fails(ask_again(&about_prediction), SAFER_INPUT, "\"target\" differs");
    about_label.model.most = about_prediction.model.most = 4; /* 163 of 256: too close to call */
    assert_fails(ask_again(&about_label), SAFER_INPUT, "\"abstained\" differs");
    free_run(&about_label);
    free_run(&about_prediction);
}

/* -------------------------------------------------------------------- bounds */

#define GOLDEN SOURCE_DIR "/tests/golden/format1/"

/* Records of interval bounds: the decision follows from the margins, and the margins from the model. */
static void test_margins(void **state)
{
    static const char must[] = "\"margins\" must be a real number for every label but the target's";
    static const forgery forgeries[] = {
        {2, "margins", NULL, "\"margins\" is missing"},
        {2, "margins", "[]", "\"margins\" must be an object"},
        {2, "margins", "{}", must},
        {2, "margins", "{\"0\":1}", must},
        {2, "margins", "{\"1\":1.5}", must},
        {2, "margins", "{\"2\":1.5}", must},
        {2, "margins", "{\"0\":1.5,\"1\":1.5}", must},
        {2, "margins", "{\"0\":0.0}", "the radius does not follow from the margins"},
        {2, "radius", "\"0\"", "the radius does not follow from the margins"},
        {2, "radius", "\"3\"", "the radius does not follow from the margins"},
        {2, "certified", "false", "certified does not follow from the radius"},
        {2, "prediction", "\"0\"", "the prediction is not the model's answer"},
        {2, "*", "{\"prediction\":\"0\",\"base\":\"0\"}", "the margins contradict the model's answer"},
        {2, "*", "{\"target\":\"0\",\"margins\":{\"1\":1.5}}", "the certificate is about another class"},
        {2, "exact", "false", "bounds need no queries"},
        {2, "queries", "1", "bounds need no queries"},
    };
    static const forgery lower = {2, "margins", "{\"0\":1e-9}", ""}, higher = {2, "margins", "{\"0\":1e9}", ""};
    safer_certify_options o = options_of(SAFER_METHOD_IBP, 10);
    made m = {0};
    safer_model *model = NULL;
    safer_verification said;
    (void)state;
    snprintf(m.path, sizeof m.path, "%s", temporary("margins.jsonl"));
    assert_ok(safer_model_open(&model, GOLDEN "bow.safetensors", &error));
    assert_ok(safer_lexicon_open(&m.lexicon, GOLDEN "words.lex", &error));
    assert_ok(safer_data_load(&m.data, GOLDEN "texts.tsv", NULL, &error));
    assert_ok(safer_certify(NULL, m.path, 0, model, m.lexicon, m.data, &o, &error));
    assert_ok(safer_verify(&said, m.path, model, m.lexicon, m.data, 1, NULL, &error));
    assert_true(said.method == SAFER_METHOD_IBP && said.delta == 0 && said.alpha == 0 && !said.family_wise);
    assert_string_equal(said.checked[1], "radii and decisions, from the margins");
    safer_summary_free(&said.summary);
    for (size_t i = 0; i < COUNT(forgeries); i++)
        assert_fails(verify(forge(m.path, &forgeries[i])), SAFER_INPUT, forgeries[i].words);
    for (int high = 0; high < 2; high++) {
        const char *forged = forge(m.path, high ? &higher : &lower);
        assert_ok(verify_texts(&m, forged));
        assert_fails(safer_verify(NULL, forged, model, m.lexicon, m.data, 1, NULL, &error), SAFER_INPUT,
                     "line 2: the model gives another record: \"margins\" differs");
    }
    safer_model_free(model);
    safer_lexicon_free(m.lexicon);
    safer_data_free(m.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_radius),     cmocka_unit_test(test_configuration), cmocka_unit_test(test_every_answer),
        cmocka_unit_test(test_every_draw), cmocka_unit_test(test_other_model),   cmocka_unit_test(test_margins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
