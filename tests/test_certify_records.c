/* Records that anybody may have written: whatever a member is, all that read runs refuse it by the same
 * line, which names file, line and member. */
#define _GNU_SOURCE
#include "base/buffer.h"
#include "base/file.h"
#include "certify/read.h"
#include "run/sealed.h"
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static safer_error error;
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

/* ------------------------------------------------------------------- forging */

/* What to put in place of a member: JSON, or NULL to remove it. */
typedef struct forgery {
    size_t line;
    const char *member, *value, *words;
} forgery;

typedef struct forging {
    const forgery *forgery;
    sf_buffer out;
    uint64_t seal;
} forging;

static safer_status forge_line(void *context, json_t *object, uint64_t seal, size_t line, safer_error *e)
{
    forging *f = context;
    const forgery *g = f->forgery;
    size_t length;
    (void)seal;
    (void)e;
    if (line == g->line && g->value)
        json_object_set_new(object, g->member, json_loads(g->value, JSON_DECODE_ANY, NULL));
    else if (line == g->line)
        json_object_del(object, g->member);
    char *sealed = sf_seal(object, line > 1 ? 0.5 : -1, f->seal, &length, line == 1 ? &f->seal : NULL);
    assert_int_equal(sf_buffer_add(&f->out, sealed, length), 0);
    free(sealed);
    return SAFER_OK;
}

/* The run with one member changed, sealed as if it had been written so. */
static const char *forge(const char *path, const forgery *g)
{
    forging f = {.forgery = g};
    assert_ok(sf_sealed_read(path, "run", JSON_ALLOW_NUL, forge_line, &f, &error));
    const char *forged = write_temporary("forged.jsonl", f.out.bytes, f.out.length);
    sf_buffer_free(&f.out);
    return forged;
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

static void test_configurations(void **state)
{
    static const char names[] = "\"labels\" must be a list of two names or more";
    static const forgery forgeries[] = {
        {1, "labels", "[\"a\",1]", names},
        {1, "labels", "[null,\"b\"]", names},
        {1, "labels", "[\"a\"]", names},
        {1, "labels", "{\"a\":0,\"b\":1}", "\"labels\" must be a list"},
        {1, "labels", NULL, "\"labels\" is missing"},
        {1, "format", "\"1\"", "\"format\" must be a whole number"},
        {1, "format", "7", "format 7, this program reads 1"},
        {1, "data", "3", "\"data\" must be an object"},
        {1, "data", "{\"texts\":\"3\"}", "\"data\" must be an object with the number of texts"},
        {1, "method", "1", "\"method\" must be a string"},
        {1, "method", "\"none\"", "\"method\" must be a method that this program knows"},
        {1, "radius", "-1", "\"radius\" must be a number of words or \"all\""},
        {1, "radius", "0", "radius: at least 1"},
        {1, "unlabelled", "0", "\"unlabelled\" must be true or false"},
        {1, "n", "40.0", "\"n\" must be a whole number"},
        {1, "n", "0", "\"n\" must be a whole number above 0"},
        {1, "n0", "[]", "\"n0\" must be a whole number"},
        {1, "delta", "\"0.1\"", "\"delta\" must be a number"},
        {1, "delta", "1", "delta: 1"},
        {1, "delta_text", "null", "\"delta_text\" must be a number"},
        {1, "delta_text", "0.5", "delta_text does not follow from delta"},
        {1, "family_wise", "\"no\"", "\"family_wise\" must be true or false"},
        {1, "alpha", "{}", "\"alpha\" must be a number"},
        {1, "seed", "1.5", "\"seed\" must be a whole number"},
        {1, "seed", NULL, "\"seed\" is missing"},
    };
    (void)state;
    refuse(certify("configured.jsonl", SAFER_METHOD_HOEFFDING), forgeries, COUNT(forgeries));
}

static void test_votes(void **state)
{
    static const char counts[] = "\"counts\" must be a whole number for every label",
                      q_at[] = "\"q_at\" must be numbers from 0 to 1 that do not fall";
    static const forgery forgeries[] = {
        {2, "row", "\"1\"", "\"row\" must be a whole number"},
        {2, "row", NULL, "\"row\" must be a whole number"},
        {2, "id", "1", "\"id\" must be a string"},
        {2, "id", NULL, "\"id\" is missing"},
        {2, "label", "0", "\"label\" must be one of the labels, or null"},
        {3, "label", "\"c\"", "\"label\" must be one of the labels, or null"},
        {2, "prediction", "[\"a\"]", "\"prediction\" must be one of the labels, or null"},
        {2, "base", "{}", "\"base\" must be one of the labels, or null"},
        {2, "target", "null", "\"target\" must be one of the labels"},
        {2, "abstained", "0", "\"abstained\" must be true or false"},
        {2, "words", "\"3\"", "\"words\" must be a whole number"},
        {2, "slots", "-1", "\"slots\" must be a whole number, not below 0"},
        {2, "visible", "null", "\"visible\" must be a whole number"},
        {2, "exact", "1", "\"exact\" must be true or false"},
        {2, "n", "40.0", "\"n\" must be a whole number"},
        {2, "bound", "true", "\"bound\" must be a number"},
        {2, "q", "\"0\"", "\"q\" must be a number"},
        {2, "q_at", "1", "\"q_at\" must be a list"},
        {2, "q_at", "[0.0]", "\"q_at\" must be a number for every radius"},
        {2, "q_at", "[0,0,0,0,0,\"1\"]", q_at},
        {2, "q_at", "[0,0.5,0,0,0,0.5]", q_at},
        {2, "q_at", "[0,0,0,0,0,2]", q_at},
        {2, "q_radius", "-0.5", "\"q_radius\" must be a number from 0 to 1"},
        {2, "q_next", "1.5", "\"q_next\" must be a number from 0 to 1"},
        {2, "q_next", NULL, "\"q_next\" is missing"},
        {2, "counts", "[]", "\"counts\" must be an object"},
        {2, "counts", "{\"a\":40}", counts},
        {2, "counts", "{\"a\":20,\"b\":\"20\"}", counts},
        {2, "counts", "{\"a\":41,\"b\":-1}", "the counts do not add up"},
        {2, "certified", "\"true\"", "\"certified\" must be true or false"},
        {2, "radius", "\"any\"", "\"radius\" must be a number of words or \"all\""},
        {4, "queries", "-1", "\"queries\" must be a whole number, not below 0"},
    };
    (void)state;
    refuse(certify("votes.jsonl", SAFER_METHOD_HOEFFDING), forgeries, COUNT(forgeries));
}

static void test_weights(void **state)
{
    static const char counts[] = "\"counts\" must be digits for every label";
    static const forgery forgeries[] = {
        {2, "counts", "{\"a\":1,\"b\":1}", counts},
        {2, "counts", "{\"a\":\"1\",\"b\":\"-1\"}", counts},
        {2, "counts", "{\"a\":\"1\",\"b\":\"\"}", counts},
        {2, "counts", "{\"a\":\"340282366920938463463374607431768211455\",\"b\":\"1\"}", counts},
        {2, "counts", "{\"a\":\"7\",\"b\":\"0\"}", "the counts do not add up"},
        {2, "total", "1", "\"total\" must be digits"},
        {2, "total", "\"0\"", "the counts do not add up"},
        {2, "total", NULL, "\"total\" is missing"},
    };
    (void)state;
    refuse(certify("weights.jsonl", SAFER_METHOD_ADAPTIVE), forgeries, COUNT(forgeries));
}

/* The first version wrote no "visible". */
static void test_first_version(void **state)
{
    const forgery g = {.line = 2, .member = "visible"};
    (void)state;
    const char *forged = forge(certify("first.jsonl", SAFER_METHOD_HOEFFDING), &g);
    for (size_t r = 0; r < COUNT(readers); r++) assert_ok(readers[r](forged, &error));
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
    assert_ok(sf_run_record(&record, &line, &run, 0, &error));
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
        {2, "id", "\"7\"", "id or label are not those of row 1"},
        {3, "label", "\"a\"", ""},
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
                 "the version of safer differ");
    assert_fails(safer_verify(NULL, forge(run, &lost), model, lexicon, data, 1, NULL, &error), SAFER_INPUT,
                 "another configuration");
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
    const char *path = temporary("attack.jsonl");
    (void)state;
    assert_ok(attack(path, 0, &error));
    assert_ok(read_run(path, &error));
    for (size_t i = 0; i < COUNT(forgeries); i++) {
        const char *forged = forge(path, &forgeries[i]);
        assert_fails(read_run(forged, &error), SAFER_INPUT, forgeries[i].words);
        assert_fails(attack(forged, 1, &error), SAFER_INPUT, forgeries[i].words);
    }
    assert_ok(read_run(forge(path, &other), &error));
}

static void test_cross_checks(void **state)
{
    static const forgery forgeries[] = {
        {2, "target", "0", "not the record of a cross-check: \"target\" must be a string"},
        {2, "target", "\"c\"", "has no such certificate"},
        {2, "exact", "0", "\"exact\" must be true or false"},
        {2, "radius", "null", "\"radius\" must be a number of words or \"all\""},
        {2, "radius", "77", "has no such certificate"},
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
        cmocka_unit_test(test_configurations),  cmocka_unit_test(test_earlier_version),
        cmocka_unit_test(test_resume_rechecks), cmocka_unit_test(test_q_is_tied),
        cmocka_unit_test(test_votes),           cmocka_unit_test(test_weights),
        cmocka_unit_test(test_first_version),   cmocka_unit_test(test_report),
        cmocka_unit_test(test_attacks),         cmocka_unit_test(test_cross_checks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
