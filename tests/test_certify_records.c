/* Records that anybody may have written: whatever a member is, all that read runs refuse it by the same
 * line, which names file, line and member. */
#define _GNU_SOURCE
#include "base/file.h"
#include "certify/read.h"
#include "forging.h"

#include <unistd.h>

static safer_data *data;
static safer_lexicon *lexicon;
static safer_model *model;
static safer_method last_method; /* of certify */

static int answer(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    (void)context;
    for (size_t i = 0; i < count; i++) labels[i] = lengths[i] % 2 && strstr(texts[i], "good");
    return 0;
}

static int set_up(void **state)
{
    static const char *const texts[] = {"a good text", "good good books", "great"}, *const labels[] = {"a", "b", "a"};
    safer_remote_options remote = safer_remote_options_default();
    (void)state;
    remote.labels = labels;
    remote.label_count = 2;
    remote.model_name = "a function";
    lexicon = import_table("good\tgreat\n", "representative");
    assert_ok(safer_data_from_texts(&data, texts, NULL, labels, NULL, COUNT(texts), &error));
    assert_ok(safer_model_from_callback(&model, answer, NULL, &remote, &error));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    safer_model_free(model);
    safer_lexicon_free(lexicon);
    safer_data_free(data);
    return 0;
}

static const char *certify(const char *name, safer_method method)
{
    safer_certify_options o = safer_certify_options_default();
    const char *path = temporary(name);
    o.method = last_method = method;
    o.n = 40;
    assert_ok(safer_certify(NULL, path, 0, model, lexicon, data, &o, &error));
    return path;
}

/* ------------------------------------------------------------------- readers */

static safer_status verify(const char *path, safer_error *e)
{
    return safer_verify(NULL, path, NULL, NULL, NULL, 1, NULL, e);
}

static safer_status report(const char *path, safer_error *e)
{
    return safer_report(NULL, temporary("page.html"), &path, 1, NULL, e);
}

static safer_status read_run(const char *path, safer_error *e)
{
    safer_run *run = NULL;
    safer_status status = safer_run_read(&run, path, e);
    safer_run_free(run);
    return status;
}

static safer_status attack_against(const char *path, safer_error *e)
{
    safer_against_summary summary;
    safer_attack_options o = safer_attack_options_default();
    o.n = 10;
    return safer_attack_against(&summary, path, NULL, 0, model, lexicon, data, &o, e);
}

static safer_status (*const readers[])(const char *path, safer_error *e) = {verify, report, read_run, attack_against};

static safer_status resume(const char *path, safer_error *e)
{
    safer_certify_options o = safer_certify_options_default();
    o.method = last_method;
    o.n = 40;
    return safer_certify(NULL, path, 1, model, lexicon, data, &o, e);
}

static void refuse(const char *name, const forgery *forgeries, size_t count)
{
    char path[500], place[64];
    snprintf(path, sizeof path, "%s", name); /* temporary() will have forgotten it */
    for (size_t r = 0; r < COUNT(readers); r++) assert_ok(readers[r](path, &error));
    for (size_t i = 0; i < count; i++) {
        const forgery *g = &forgeries[i];
        const char *forged = forge(path, g);
        snprintf(place, sizeof place, "forged.jsonl, line %zu: ", g->line);
        for (size_t r = 0; r < COUNT(readers); r++) {
            assert_fails(readers[r](forged, &error), SAFER_INPUT, g->words);
            assert_non_null(strstr(error.message, place));
        }
        if (g->line > 1) assert_fails(resume(forged, &error), SAFER_INPUT, g->words); /* as verify does */
    }
}

/* --------------------------------------------------------------------- tests */

#define ZEROS "\"0000000000000000000000000000000000000000000000000000000000000000\""

static void test_configurations(void **state)
{
    static const char names[] = "\"labels\" must be a list of two names or more, all different";
    static const forgery forgeries[] = {
        {1, "labels", "[\"a\",1]", names},
        {1, "labels", "[null,\"b\"]", names},
        {1, "labels", "[\"a\"]", names},
        {1, "labels", "[\"a\",\"b\",\"a\"]", names},
        {1, "labels", "{\"a\":0,\"b\":1}", "\"labels\" must be a list"},
        {1, "labels", NULL, "\"labels\" is missing"},
        {1, "format", "\"2\"", "\"format\" must be a whole number"},
        {1, "format", "2.0", "\"format\" must be a whole number"},
        {1, "format", "7", "format 7, this program reads 1 to 2"},
        {1, "format", "0", "format 0, this program reads 1 to 2"},
        {1, "date", NULL, "\"date\" is missing"},
        {1, "safer", NULL, "\"safer\" is missing"},
        {1, "safer", "2", "\"safer\" must be a string"},
        {1, "note", "1", "\"note\" is unknown"},
        {1, "model", "\"m\"", "\"model\" must be an object"},
        {1, "model.arch", NULL, "\"model.arch\" is missing"},
        {1, "model.name", "1", "\"model.name\" must be a string"},
        {1, "model.probe", NULL, "\"model.probe\" is missing"},
        {1, "model.probe", "\"12\"", "\"model.probe\" must be 64 hexadecimal digits"},
        {1, "model.random", "false", "\"model.random\" must be true, or missing"},
        {1, "model.random", "true", "\"model.probe\" is unknown"},
        {1, "model.function", "false", "\"model.function\" must be true, or missing"},
        {1, "model.sha256", ZEROS, "\"model.sha256\" is unknown"},
        {1, "model.arch", "\"cnn\"", "\"model.sha256\" is missing"},
        {1, "lexicon.sha256", NULL, "\"lexicon.sha256\" is missing"},
        {1, "lexicon.hash", "\"0123456789abcdef\"", "\"lexicon.hash\" is unknown"},
        {1, "lexicon.kernel", "{}", "\"lexicon.kernel\" must be a string"},
        {1, "data", "3", "\"data\" must be an object"},
        {1, "data.texts", "\"3\"", "\"data.texts\" must be a whole number"},
        {1, "data.path", "\"/\"", "\"data.path\" is unknown"},
        {1, "method", "1", "\"method\" must be a string"},
        {1, "method", "\"none\"", "\"method\" must be a method that this program knows"},
        {1, "method", "\"ibp\"", "is unknown"}, /* what is about draws */
        {1, "radius", "-1", "\"radius\" must be a string: a number of words or \"all\""},
        {1, "radius", "\"0\"", "\"radius\": at least 1"},
        {1, "radius", "\"01\"", "\"radius\" must be a string"},
        {1, "radii", "[\"1\",\"2\",\"5\",\"10\",\"20\",\"30\"]", "\"radii\" must be those that are always reported"},
        {1, "radii", "[1,2,5,10,20,\"all\"]", "\"radii\" must be those that are always reported"},
        {1, "radii", NULL, "\"radii\" is missing"},
        {1, "unlabelled", "0", "\"unlabelled\" must be true or false"},
        {1, "n", "40.0", "\"n\" must be a whole number"},
        {1, "n", "0", "\"n\" must be a whole number above 0"},
        {1, "n0", "[]", "\"n0\" must be a whole number"},
        {1, "n0", "0", "\"n0\" must be a whole number above 0"},
        {1, "delta", "\"0.1\"", "\"delta\" must be a real number"},
        {1, "delta", "1", "\"delta\" must be a real number"},
        {1, "delta", "1.0", "\"delta\": 1"},
        {1, "delta_text", "null", "\"delta_text\" must be a real number"},
        {1, "delta_text", "0.5", "delta_text does not follow from delta"},
        {1, "family_wise", "\"no\"", "\"family_wise\" must be true or false"},
        {1, "alpha", "{}", "\"alpha\" must be a real number"},
        {1, "seed", "1.5", "\"seed\" must be a whole number"},
        {1, "seed", NULL, "\"seed\" is missing"},
    };
    (void)state;
    refuse(certify("configured.jsonl", SAFER_METHOD_HOEFFDING), forgeries, COUNT(forgeries));
}

static void test_votes(void **state)
{
    static const char counts[] = "\"counts\" must be a whole number for every label",
                      vote[] = "\"vote.counts\" must be a whole number for every label",
                      q_at[] = "\"q_at\" must be numbers from 0 to 1 that do not fall",
                      radius[] = "\"radius\" must be a string: a number of words or \"all\"";
    static const forgery forgeries[] = {
        {2, "row", "\"1\"", "\"row\" must be a whole number"},
        {2, "row", NULL, "\"row\" must be a whole number"},
        {2, "note", "null", "\"note\" is unknown"},
        {2, "date", "\"2026-11-16T10:03:22Z\"", "the check does not match"},
        {2, "id", "1", "\"id\" must be a string"},
        {2, "id", NULL, "\"id\" is missing"},
        {2, "label", "0", "\"label\" must be one of the labels, or null"},
        {3, "label", "\"c\"", "\"label\" must be one of the labels, or null"},
        {2, "prediction", "[\"a\"]", "\"prediction\" must be one of the labels"},
        {2, "prediction", "null", "\"prediction\" must be one of the labels"},
        {2, "base", "{}", "\"base\" must be one of the labels, or null"},
        {2, "target", "null", "\"target\" must be one of the labels"},
        {2, "abstained", "0", "\"abstained\" must be true or false"},
        {2, "words", "\"3\"", "\"words\" must be a whole number"},
        {2, "slots", "-1", "\"slots\" must be a whole number, not below 0"},
        {2, "visible", "null", "\"visible\" must be a whole number"},
        {2, "visible", NULL, "\"visible\" is missing"},
        {2, "exact", "1", "\"exact\" must be true or false"},
        {2, "n", "40.0", "\"n\" must be a whole number"},
        {2, "bound", "true", "\"bound\" must be a real number"},
        {2, "bound", "0", "\"bound\" must be a real number"},
        {2, "q", "\"0\"", "\"q\" must be a real number"},
        {2, "q", "0", "\"q\" must be a real number"},
        {2, "q_at", "1", "\"q_at\" must be a list"},
        {2, "q_at", "[0.0]", "\"q_at\" must be a number for every radius"},
        {2, "q_at", "[0.0,0.0,0.0,0.0,0.0,\"1\"]", q_at},
        {2, "q_at", "[0.0,0.0,0.0,0.0,0.0,0]", q_at},
        {2, "q_at", "[0.0,0.5,0.0,0.0,0.0,0.5]", q_at},
        {2, "q_at", "[0.0,0.0,0.0,0.0,0.0,2.0]", q_at},
        {2, "q_at", "[-0.5,0.0,0.0,0.0,0.0,0.0]", q_at},
        {2, "q_radius", "-0.5", "\"q_radius\" must be a number from 0 to 1"},
        {2, "q_next", "1.5", "\"q_next\" must be a number from 0 to 1"},
        {2, "q_next", NULL, "\"q_next\" is missing"},
        {2, "counts", "[]", "\"counts\" must be an object"},
        {2, "counts", "{\"a\":40}", counts},
        {2, "counts", "{\"a\":20,\"b\":20,\"c\":0}", counts},
        {2, "counts", "{\"a\":20,\"b\":\"20\"}", counts},
        {2, "counts", "{\"a\":41,\"b\":-1}", "the counts do not add up"},
        {2, "weights", "{\"a\":\"1\",\"b\":\"0\"}", "\"weights\" is unknown"},
        {2, "total", "\"1\"", "\"total\" is unknown"},
        {2, "assumes", "[]", "\"assumes\" is unknown"},
        {2, "margins", "{}", "\"margins\" is unknown"},
        {2, "vote", NULL, "\"vote\" is missing"},
        {2, "vote", "1", "\"vote\" must be an object"},
        {2, "vote.n", "\"12\"", "\"vote.n\" must be a whole number"},
        {2, "vote.n", "0", "\"vote.n\" must be a whole number above 0"},
        {2, "vote.note", "0", "\"vote.note\" is unknown"},
        {2, "vote.counts", NULL, "\"vote.counts\" is missing"},
        {2, "vote.counts", "{\"a\":9}", vote},
        {2, "vote.counts", "{\"a\":9,\"b\":1.0}", vote},
        {2, "vote.counts", "{\"a\":9000,\"b\":0}", "the votes for the prediction do not add up"},
        {2, "vote.n", "41", "more than n0 draws chose the prediction"},
        {2, "vote.counts", "{\"a\":0,\"b\":0}", "the vote for the prediction does not end with these votes"},
        {2, "certified", "\"true\"", "\"certified\" must be true or false"},
        {2, "radius", "\"any\"", radius},
        {2, "radius", "0", radius},
        {4, "queries", "-1", "\"queries\" must be a whole number, not below 0"},
        {4, "queries", "7", "queries are not those of both votes"},
    };
    (void)state;
    refuse(certify("votes.jsonl", SAFER_METHOD_HOEFFDING), forgeries, COUNT(forgeries));
}

static void read_first(sf_record *record, json_t **json, sf_run *run)
{
    sf_window window = {.source = &run->source};
    assert_ok(sf_run_index(run, &error));
    assert_ok(sf_run_record(record, json, run, 0, &window, &error));
    sf_window_free(&window);
}

/* The prediction and the abstention follow from the vote, whatever else they would say. */
static void test_vote(void **state)
{
    static const forgery forgeries[] = {
        {2, "prediction", NULL, "the prediction does not follow from the vote"},
        {2, "abstained", NULL, "abstained does not follow from the vote"},
    };
    sf_run run;
    sf_record r;
    json_t *json = NULL;
    char kept[500];
    (void)state;
    snprintf(kept, sizeof kept, "%s", certify("vote.jsonl", SAFER_METHOD_BINOMIAL));
    assert_ok(sf_run_load(&run, kept, &error));
    read_first(&r, &json, &run);
    assert_true(r.vote && r.vote_n > 0 && r.vote_n <= run.config.n0 && r.queries == r.n + r.vote_n);
    for (size_t i = 0; i < COUNT(forgeries); i++) {
        forgery g = forgeries[i];
        g.value = i == 0 ? (r.prediction ? "\"a\"" : "\"b\"") : r.abstained ? "false" : "true";
        assert_fails(verify(forge(kept, &g), &error), SAFER_INPUT, g.words);
    }
    json_decref(json);
    sf_run_free(&run);
}

static void test_weights(void **state)
{
    static const char weights[] = "\"weights\" must be digits for every label",
                      assumes[] = "\"assumes\" must be [\"the model is a function of the text\"]";
    static const forgery forgeries[] = {
        {2, "weights", "{\"a\":1,\"b\":1}", weights},
        {2, "weights", "{\"a\":\"1\",\"b\":\"-1\"}", weights},
        {2, "weights", "{\"a\":\"1\",\"b\":\"\"}", weights},
        {2, "weights", "{\"a\":\"340282366920938463463374607431768211455\",\"b\":\"1\"}", weights},
        {2, "weights", "{\"a\":\"1\",\"b\":\"0000000000000000000000000000000000000000\"}", weights},
        {2, "weights", "{\"a\":\"340282366920938463463374607431768211440\",\"b\":\"99\"}",
         "the counts do not add up"}, /* above 2^128 */
        {2, "weights", "{\"a\":\"7\",\"b\":\"0\"}", "the counts do not add up"},
        {2, "weights", NULL, "\"weights\" is missing"},
        {2, "counts", "{\"a\":\"1\",\"b\":\"0\"}", "\"counts\" is unknown"},
        {2, "n", "0", "\"n\" is unknown"},
        {2, "vote", "{\"n\":1,\"counts\":{\"a\":1,\"b\":0}}", "\"vote\" is unknown"},
        {2, "total", "1", "\"total\" must be digits"},
        {2, "total", "\"0\"", "the counts do not add up"},
        {2, "total", NULL, "\"total\" is missing"},
        {2, "assumes", NULL, "\"assumes\" is missing"},
        {2, "assumes", "[]", assumes},
        {2, "assumes", "[\"the model is a function of the text\",\"\"]", assumes},
        {2, "assumes", "[\"nothing\"]", assumes},
        {2, "assumes", "[1]", assumes},
        {2, "abstained", "true", "abstained does not follow from the weights"},
    };
    (void)state;
    refuse(certify("weights.jsonl", SAFER_METHOD_ADAPTIVE), forgeries, COUNT(forgeries));
}

/* A model that answers at random has no share of all draws, and cannot be declared a function. */
static void test_random(void **state)
{
    static const forgery forgeries[] = {
        {1, "model.function", "true", "\"model.function\" must be true, or missing, as where the model is random"},
        {2, "*",
         "{\"exact\":true,\"vote\":null,\"n\":null,\"counts\":null,\"weights\":{\"a\":\"1\",\"b\":\"0\"},"
         "\"total\":\"1\",\"assumes\":[\"the model is a function of the text\"]}",
         "a model that answers at random has no exact certificate"},
    };
    static const char *const labels[] = {"a", "b"};
    safer_model *honest = model;
    safer_remote_options remote = safer_remote_options_default();
    safer_verification said;
    char path[500];
    (void)state;
    remote.labels = labels;
    remote.label_count = 2;
    remote.model_name = "a function";
    remote.random = 1;
    assert_ok(safer_model_from_callback(&model, answer, NULL, &remote, &error));
    snprintf(path, sizeof path, "%s", certify("random.jsonl", SAFER_METHOD_ADAPTIVE));
    assert_ok(safer_verify(&said, path, NULL, lexicon, data, 1, NULL, &error));
    assert_string_equal(said.not_checked[0], "votes and answers: the model answers at random");
    assert_null(strstr(said.not_checked[1], "function of the text"));
    safer_summary_free(&said.summary);
    assert_fails(safer_verify(NULL, path, model, lexicon, data, 1, NULL, &error), SAFER_INVALID, "answered at random");
    for (size_t i = 0; i < COUNT(forgeries); i++)
        assert_fails(verify(forge(path, &forgeries[i]), &error), SAFER_INPUT, forgeries[i].words);
    safer_model_free(model);
    model = honest;
}

/* Lexicon and data go together, and the model only with both; phrases say what each form checked. */
static void test_forms(void **state)
{
    safer_verification alone, texts, all;
    char path[500];
    (void)state;
    snprintf(path, sizeof path, "%s", certify("forms.jsonl", SAFER_METHOD_ADAPTIVE));
    assert_fails(safer_verify(NULL, path, model, NULL, NULL, 1, NULL, &error), SAFER_INVALID, "model: it can be asked");
    assert_fails(safer_verify(NULL, path, model, lexicon, NULL, 1, NULL, &error), SAFER_INVALID, "model: ");
    assert_fails(safer_verify(NULL, path, NULL, lexicon, NULL, 1, NULL, &error), SAFER_INVALID, "lexicon and data: ");
    assert_fails(safer_verify(NULL, path, NULL, NULL, data, 1, NULL, &error), SAFER_INVALID, "lexicon and data: ");
    assert_ok(safer_verify(&alone, path, NULL, NULL, NULL, 1, NULL, &error));
    assert_ok(safer_verify(&texts, path, NULL, lexicon, data, 2, NULL, &error));
    assert_ok(safer_verify(&all, path, model, lexicon, data, 2, NULL, &error));
    assert_true(alone.format == 2 && texts.summary.texts == 3 && all.summary.texts == 3);
    assert_true(alone.checked[3] == NULL && texts.checked[3] && !texts.checked[6] && all.checked[6] && !all.checked[8]);
    assert_non_null(strstr(alone.not_checked[0], "lexicon and data"));
    assert_non_null(strstr(texts.not_checked[0], "the model"));
    assert_non_null(strstr(all.not_checked[0], "function of the text"));
    safer_summary_free(&alone.summary);
    safer_summary_free(&texts.summary);
    safer_summary_free(&all.summary);
}

static safer_status verify_texts(void *path, safer_error *e)
{
    return safer_verify(NULL, path, NULL, lexicon, data, 1, NULL, e);
}

static void test_forms_without_memory(void **state)
{
    char path[500];
    (void)state;
    snprintf(path, sizeof path, "%s", certify("memory.jsonl", SAFER_METHOD_HOEFFDING));
    check_every_allocation(verify_texts, path);
}

/* ------------------------------------------------------------------ format 1 */

/* Kept runs are refused when they are forged as those of today; tests/golden/format1/README.md says what they are. */
static void test_format_1(void **state)
{
    static const forgery forgeries[] = {
        {1, "date", "\"2026-11-16T10:03:22Z\"", "\"date\" is unknown"},
        {1, "model.sha256", ZEROS, "\"model.sha256\" is unknown"},
        {1, "model.hash", NULL, "\"model.hash\" is missing"},
        {1, "data.hash", "7", "\"data.hash\" must be a string"},
        {1, "model.arithmetic", "1", "\"model.arithmetic\" must be a string"},
        {1, "radius", "\"2\"", "\"radius\" must be a number of words or \"all\""},
        {1, "radii", "[1,2,5,10,20,21]", "\"radii\" must be those that are always reported"},
        {2, "weights", "{\"0\":\"1\",\"1\":\"0\"}", "\"weights\" is unknown"},
        {3, "vote", "{\"n\":1,\"counts\":{\"0\":1,\"1\":0}}", "\"vote\" is unknown"},
        {2, "n", "1", "n does not fit the configuration"},
        {2, "total", "\"13\"", "the counts do not add up"},
        {2, "prediction", "\"0\"", "the prediction does not follow from the weights"},
        {2, "abstained", "true", "abstained does not follow from the weights"},
        {2, "radius", "\"0\"", "\"radius\" must be a number of words or \"all\""},
        {4, "queries", "7", "queries are not n + n0"},
        {4, "bound", "0.999", "the bound does not follow from the counts"},
        {4, "counts", "{\"0\":0,\"1\":1}", "the counts do not add up"},
        {4, "certified", "false", "certified does not follow from the radius"},
        {4, "q", "0.1", "q is not that of all words"},
        {4, "q_at", "[0.5]", "\"q_at\" must be a number for every radius"},
        {4, "q_at", "[0,0,0,0,0,\"1\"]", "\"q_at\" must be numbers from 0 to 1 that do not fall"},
    };
    const char *path = SOURCE_DIR "/tests/golden/format1/adaptive.jsonl";
    const forgery first = {.line = 4, .member = "visible"}, later = {1, "model.arithmetic", "\"portable\"", ""};
    (void)state;
    assert_ok(verify(path, &error));
    for (size_t i = 0; i < COUNT(forgeries); i++)
        assert_fails(verify(forge(path, &forgeries[i]), &error), SAFER_INPUT, forgeries[i].words);
    assert_ok(verify(forge(path, &first), &error)); /* the first version wrote no "visible" */
    assert_ok(verify(forge(path, &later), &error)); /* nor which arithmetic */
}

/* What only pages look at. */
static void test_report(void **state)
{
    static const forgery forgeries[] = {{2, "words", "0", "there are more slots than words"},
                                        {2, "visible", "9", "more slots are visible than there are"}};
    (void)state;
    const char *path = certify("reported.jsonl", SAFER_METHOD_HOEFFDING);
    for (size_t i = 0; i < COUNT(forgeries); i++)
        assert_fails(report(forge(path, &forgeries[i]), &error), SAFER_INPUT, forgeries[i].words);
}

/* ------------------------------------------------------------------- attacks */

static safer_status attack(const char *path, int resume, safer_error *e)
{
    safer_attack_summary summary;
    safer_attack_options o = safer_attack_options_default();
    return safer_attack(&summary, path, resume, model, lexicon, data, &o, e);
}

/* Every q of a record belongs to one list of overlaps, here of 2/3 each: none can be changed alone. */
static void test_q_is_tied(void **state)
{
    static const char text[] = "good good good good good good good good good good good good books",
                      table[] = "good\tgreat fine\ngreat\tgreatest\n";
    const char *const texts[] = {text}, *const labels[] = {"b"};
    safer_lexicon *honest = lexicon;
    safer_data *honest_data = data;
    sf_run run = {0};
    size_t refused = 0;
    (void)state;
    lexicon = import_table(table, "topk:3");
    data = NULL;
    assert_ok(safer_data_from_texts(&data, texts, NULL, labels, NULL, 1, &error));
    const char *path = certify("tied.jsonl", SAFER_METHOD_BINOMIAL);
    char kept[500];
    strcpy(kept, path);
    assert_ok(sf_run_load(&run, kept, &error));
    sf_record record;
    const sf_record *r = &record;
    json_t *line = NULL;
    read_first(&record, &line, &run);
    assert_true(r->q_at[0] > 0 && r->q_at[1] > r->q_at[0] && r->q_at[2] > r->q_at[1]);
    for (int member = 0; member < 3 + SAFER_RADII; member++)
        for (int way = 0; way < 2; way++) {
            static const char *const names[] = {"q", "q_radius", "q_next"};
            char value[400];
            size_t length = 0;
            const double old = member == 0   ? r->q
                               : member == 1 ? r->q_radius
                               : member == 2 ? r->q_next
                                             : r->q_at[member - 3];
            const double new = way ? (old + 1) / 2 : old / 2;
            if (new == old) continue;
            if (member < 3) {
                snprintf(value, sizeof value, "%.17g", new);
            } else {
                for (int i = 0; i < SAFER_RADII; i++)
                    length += (size_t)snprintf(value + length, sizeof value - length, "%s%.17g", i ? "," : "[",
                                               i == member - 3 ? new : r->q_at[i]);
                snprintf(value + length, sizeof value - length, "]");
            }
            const forgery g = {2, member < 3 ? names[member] : "q_at", value, ""};
            assert_fails(verify(forge(kept, &g), &error), SAFER_INPUT, "forged.jsonl, line 2: ");
            refused++;
        }
    assert_true(refused > 12);
    json_decref(line);
    sf_run_free(&run);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
    lexicon = honest;
    data = honest_data;
}

/* What is kept of an earlier run must be what this one would have written of its rows. */
static void test_resume_rechecks(void **state)
{
    static const forgery forgeries[] = {
        {2, "id", "\"7\"", "line 2: the id is not that of the data"},
        {3, "label", "\"a\"", ""},
        {2, "words", "4", "line 2: the number of words is not that of the text"},
        {2, "slots", "0", ""},
        {2, "queries", "7", "queries are not the number of draws"},
        {2, "certified", "true", "certified does not follow from the radius"},
        {2, "radius", "\"all\"", ""},
        {4, "bound", "0.25", "the bound does not follow from the counts"},
        {3, "slots", "99", "there are more slots than words"},
    };
    const char *run = certify("kept.jsonl", SAFER_METHOD_ADAPTIVE);
    (void)state;
    assert_ok(resume(run, &error)); /* all is there already */
    for (size_t i = 0; i < COUNT(forgeries); i++)
        assert_fails(resume(forge(run, &forgeries[i]), &error), SAFER_INPUT, forgeries[i].words);
}

/* A run that an earlier version wrote in the same format can be asked again; it is not resumed, since its
 * first line names the version that made it. */
static void test_earlier_version(void **state)
{
    static const forgery earlier = {1, "safer", "\"0.1.0\"", ""}, lost = {1, "safer", NULL, ""};
    const char *run = certify("earlier.jsonl", SAFER_METHOD_ADAPTIVE), *forged = forge(run, &earlier);
    safer_certify_options o = safer_certify_options_default();
    (void)state;
    o.n = 40;
    assert_ok(safer_verify(NULL, forged, model, lexicon, data, 1, NULL, &error));
    assert_ok(attack_against(forged, &error));
    assert_fails(safer_certify(NULL, forged, 1, model, lexicon, data, &o, &error), SAFER_INPUT,
                 "belongs to another run: safer is \"0.1.0\" there, \"" SAFER_VERSION "\" here");
    assert_fails(safer_verify(NULL, forge(run, &lost), model, lexicon, data, 1, NULL, &error), SAFER_INPUT,
                 "\"safer\" is missing");
}

static safer_status cross_check(const char *path, const char *run, int resume, safer_error *e)
{
    safer_against_summary summary;
    safer_attack_options o = safer_attack_options_default();
    o.n = 10;
    return safer_attack_against(&summary, run, path, resume, model, lexicon, data, &o, e);
}

/* Records of attacks are read when a run is resumed and when runs are compared. */
static void test_attacks(void **state)
{
    static const forgery forgeries[] = {
        {1, "note", "1", "\"note\" is unknown"},
        {1, "radius", "3", "\"radius\" must be a string"},
        {1, "tries", "\"1\"", "\"tries\" must be a whole number"},
        {1, "alpha", "1", "\"alpha\" must be a real number"},
        {1, "kind", "\"against\"", "neither a run of certificates nor an attack"},
        {1, "date", NULL, "\"date\" is missing"},
        {2, "note", "1", "\"note\" is unknown"},
        {2, "id", NULL, "\"id\" is missing"},
        {2, "score_before", "1", "\"score_before\" must be a real number"},
        {2, "changes", "[1]", "\"changes\" must be a list of changed words"},
        {2, "text", "1", "\"text\" must be a string, or null"},
        {2, "outcome", "1", "not the record of an attack: \"outcome\" must be a string"},
        {2, "outcome", "\"won\"", "\"outcome\" must be failed, succeeded or skipped"},
        {2, "reason", "1", "\"reason\" must be a string, or null"},
        {3, "reason", NULL, "\"reason\" is missing"},
        {2, "words", "\"3\"", "\"words\" must be a whole number"},
        {2, "choices", "-1", "\"choices\" must be a whole number, not below 0"},
        {2, "changed", "1.0", "\"changed\" must be a whole number"},
        {2, "queries", "[]", "\"queries\" must be a whole number"},
        {2, "checks", "null", "\"checks\" must be a whole number"},
    };
    const forgery other = {2, "reason", "\"said by another version\"", ""};
    char path[500]; /* temporary() will have forgotten it */
    (void)state;
    snprintf(path, sizeof path, "%s", temporary("attack.jsonl"));
    assert_ok(attack(path, 0, &error));
    assert_ok(read_run(path, &error));
    for (size_t i = 0; i < COUNT(forgeries); i++) {
        const char *forged = forge(path, &forgeries[i]);
        assert_fails(read_run(forged, &error), SAFER_INPUT, forgeries[i].words);
        assert_fails(attack(forged, 1, &error), SAFER_INPUT, forgeries[i].line > 1 ? forgeries[i].words : "");
    }
    assert_ok(read_run(forge(path, &other), &error));
}

static void test_cross_checks(void **state)
{
    static const forgery forgeries[] = {
        {2, "target", "0", "not the record of a cross-check: \"target\" must be a string"},
        {2, "target", "\"c\"", "has no such certificate"},
        {2, "exact", "0", "\"exact\" must be true or false"},
        {2, "note", "1", "\"note\" is unknown"},
        {2, "radius", "null", "\"radius\" must be a string"},
        {2, "radius", "\"77\"", "has no such certificate"},
        {2, "violation", "{}", "\"violation.method\" is missing"},
        {2, "violation", "true", "\"violation\" must be an object, or null"},
        {2, "choices", "\"1\"", "\"choices\" must be a whole number"},
        {2, "flips", "-1", "\"flips\" must be a whole number, not below 0"},
        {2, "limited", NULL, "\"limited\" is missing"},
        {2, "queries", "1.5", "\"queries\" must be a whole number"},
        {2, "checks", "{}", "\"checks\" must be a whole number"},
    };
    const char *run = certify("checked.jsonl", SAFER_METHOD_ADAPTIVE), *path = temporary("against.jsonl");
    (void)state;
    assert_ok(cross_check(path, run, 0, &error));
    for (size_t i = 0; i < COUNT(forgeries); i++)
        assert_fails(cross_check(forge(path, &forgeries[i]), run, 1, &error), SAFER_INPUT, forgeries[i].words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configurations),
        cmocka_unit_test(test_earlier_version),
        cmocka_unit_test(test_resume_rechecks),
        cmocka_unit_test(test_q_is_tied),
        cmocka_unit_test(test_votes),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_vote),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_forms_without_memory),
        cmocka_unit_test(test_format_1),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_attacks),
        cmocka_unit_test(test_cross_checks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
