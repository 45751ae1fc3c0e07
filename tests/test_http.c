/* What HTTP services are asked and how their answers are read: no connection is made. The transport itself is in
 * test_http_server.c. */
#define _GNU_SOURCE
#include "support.h"

#include "remote/http_address.h"
#include "remote/http_profile.h"

#include <math.h>
#include <string.h>

static char *names[] = {"neg", "pos"};
static const sf_labels labels = {names, 2, 0};
static char *grades[] = {"bad", "good", "very good"};
static const sf_labels three = {grades, 3, 0};

static safer_error error;

static safer_remote_options with(safer_profile profile, const char *request, const char *answer, const char *name)
{
    return (safer_remote_options){.profile = profile, .request = request, .answer = answer, .name = name};
}

static sf_http_profile opened(const sf_labels *of, safer_remote_options options)
{
    sf_http_profile profile = {0};
    assert_ok(sf_http_profile_open(&profile, of, &options, &error));
    return profile;
}

/* ------------------------------------------------------------------- requests */

static void check_body(safer_remote_options options, const sf_span *texts, size_t count, const char *expected)
{
    sf_http_profile profile = opened(&labels, options);
    sf_buffer body = {0};
    assert_ok(sf_http_body(&body, &profile, texts, count, &error));
    assert_string_equal(body.bytes, expected);
    json_t *json = json_loadb(body.bytes, body.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(json);
    json_decref(json);
    sf_buffer_free(&body);
    sf_http_profile_free(&profile);
}

static void test_bodies(void **state)
{
    (void)state;
    const sf_span two[] = {{"so \"good\"", 9}, {"a\\b", 3}};
    const sf_span odd[] = {{"\0\x01\n\x7f\xc3\xa9{{text}}", 14}};
    check_body(with(SAFER_PROFILE_JSON, NULL, NULL, NULL), two, 2, "{\"texts\": [\"so \\\"good\\\"\",\"a\\\\b\"]}");
    check_body(with(SAFER_PROFILE_JSON, "{\"n\":{{count}},\"q\":{{texts}}}", NULL, NULL), two, 2,
               "{\"n\":2,\"q\":[\"so \\\"good\\\"\",\"a\\\\b\"]}");
    check_body(with(SAFER_PROFILE_JSON, "{{texts}}", NULL, NULL), odd, 1,
               "[\"\\u0000\\u0001\\n\x7f\xc3\xa9{{text}}\"]");
    check_body(with(SAFER_PROFILE_JSON, "{\"t\":{{text}},\"again\":\"<{{text}}>\"}", NULL, NULL), two, 1,
               "{\"t\":\"so \\\"good\\\"\",\"again\":\"<so \\\"good\\\">\"}");
    check_body(with(SAFER_PROFILE_JSON, "{\"a\":\"\\\"{{texts}} {{other}}\",\"t\":{{text}}}", NULL, NULL), two + 1, 1,
               "{\"a\":\"\\\"{{texts}} {{other}}\",\"t\":\"a\\\\b\"}");
    check_body(with(SAFER_PROFILE_KSERVE, NULL, NULL, NULL), two, 2,
               "{\"inputs\":[{\"name\":\"text\",\"shape\":[2],\"datatype\":\"BYTES\","
               "\"data\":[\"so \\\"good\\\"\",\"a\\\\b\"]}]}");
    check_body(with(SAFER_PROFILE_KSERVE, NULL, "out", "IN\"0"), two + 1, 1,
               "{\"inputs\":[{\"name\":\"IN\\\"0\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[\"a\\\\b\"]}]}");
    check_body(with(SAFER_PROFILE_TEI, NULL, NULL, NULL), two, 2,
               "{\"inputs\":[[\"so \\\"good\\\"\"],[\"a\\\\b\"]],\"truncate\":true}");
    check_body(with(SAFER_PROFILE_OPENAI, "One of {{labels}}?\n\"{{text}}\" {{labels}}", NULL, "gpt"), two, 1,
               "{\"model\":\"gpt\",\"temperature\":0,\"max_tokens\":11,\"messages\":[{\"role\":\"user\",\"content\":"
               "\"One of neg, pos?\\n\\\"so \\\"good\\\"\\\" neg, pos\"}]}");
}

static void test_every_text_survives(void **state)
{
    (void)state;
    char bytes[256];
    for (int i = 0; i < 128; i++) bytes[i] = (char)i;
    memcpy(bytes + 128, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xe2\x80\xa8", 12);
    const sf_span text = {bytes, 140};
    sf_http_profile profile = opened(&labels, with(SAFER_PROFILE_JSON, "{{text}}", NULL, NULL));
    sf_buffer body = {0};
    assert_true(profile.single);
    assert_ok(sf_http_body(&body, &profile, &text, 1, &error));
    json_t *json = json_loadb(body.bytes, body.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_int_equal(json_string_length(json), 140);
    assert_memory_equal(json_string_value(json), bytes, 140);
    json_decref(json);
    sf_buffer_free(&body);
    sf_http_profile_free(&profile);
}

static void refused(const sf_labels *of, safer_remote_options options, const char *words)
{
    sf_http_profile profile = {0};
    assert_fails(sf_http_profile_open(&profile, of, &options, &error), SAFER_INVALID, words);
    sf_http_profile_free(&profile);
}

static void test_options(void **state)
{
    (void)state;
    static char *twins[] = {"yes", "YES"}, *blank[] = {"", "x"};
    refused(&labels, with((safer_profile)4, NULL, NULL, NULL), "profile: unknown");
    refused(&labels, with(SAFER_PROFILE_JSON, "{\"x\": 1}", NULL, NULL), "nothing would be asked");
    refused(&labels, with(SAFER_PROFILE_JSON, "", NULL, NULL), "nothing would be asked");
    refused(&labels, with(SAFER_PROFILE_JSON, "\"{{texts}}\"", NULL, NULL), "nothing would be asked");
    refused(&labels, with(SAFER_PROFILE_JSON, "[{{text}}, {{texts}}]", NULL, NULL), "both");
    refused(&labels, with(SAFER_PROFILE_JSON, "{\"x\": {{texts}}", NULL, NULL), "not JSON");
    refused(&labels, with(SAFER_PROFILE_JSON, "{\"x\": \"{{text}}}", NULL, NULL), "not JSON");
    refused(&labels, with(SAFER_PROFILE_JSON, "{\"x\": {{texts}}, \"y\": {{labels}}}", NULL, NULL), "not JSON");
    refused(&labels, with(SAFER_PROFILE_JSON, "[{{texts}}, \"\xff\"]", NULL, NULL), "UTF-8");
    refused(&labels, with(SAFER_PROFILE_JSON, NULL, "labels", NULL), "no JSON pointer");
    refused(&labels, with(SAFER_PROFILE_JSON, NULL, "/a~2", NULL), "no JSON pointer");
    refused(&labels, with(SAFER_PROFILE_JSON, NULL, NULL, "m"), "name:");
    refused(&labels, with(SAFER_PROFILE_KSERVE, "{{texts}}", NULL, NULL), "request:");
    refused(&labels, with(SAFER_PROFILE_TEI, "{{texts}}", NULL, NULL), "request:");
    refused(&labels, with(SAFER_PROFILE_TEI, NULL, "/x", NULL), "answer:");
    refused(&labels, with(SAFER_PROFILE_TEI, NULL, NULL, "m"), "name:");
    refused(&labels, with(SAFER_PROFILE_OPENAI, NULL, NULL, NULL), "needs the model's name");
    refused(&labels, with(SAFER_PROFILE_OPENAI, NULL, NULL, ""), "needs the model's name");
    refused(&labels, with(SAFER_PROFILE_OPENAI, NULL, "/x", "m"), "answer:");
    refused(&labels, with(SAFER_PROFILE_OPENAI, "What is {{labels}}?", NULL, "m"), "{{text}}");
    refused(&(sf_labels){twins, 2, 0}, with(SAFER_PROFILE_OPENAI, NULL, NULL, "m"), "ignores case");
    refused(&(sf_labels){blank, 2, 0}, with(SAFER_PROFILE_OPENAI, NULL, NULL, "m"), "ignores case");
}

/* -------------------------------------------------------------------- answers */

enum { MOST = 4 };

typedef struct result {
    safer_status status;
    int labels[MOST];
    float scores[MOST * 3];
    int lost;
} result;

static result read_answer(const sf_http_profile *profile, const char *body, size_t count, int with_scores)
{
    result r = {0};
    error = (safer_error){0};
    r.status = sf_http_answer(r.labels, with_scores ? r.scores : NULL, &r.lost, profile, body, strlen(body), count,
                              "http://host", &error);
    return r;
}

/* The classes are as expected, with and without scores; the greatest score is the class's. */
static void answers(sf_http_profile *profile, const char *body, size_t count, const int *expected)
{
    result plain = read_answer(profile, body, count, 0);
    if (plain.status != SAFER_OK) fail_msg("%s: %s", body, error.message);
    result scored = read_answer(profile, body, count, 1);
    assert_int_equal(scored.status, SAFER_OK);
    size_t classes = profile->labels->count;
    for (size_t i = 0; i < count; i++) {
        if (plain.labels[i] != expected[i])
            fail_msg("%s: text %zu has class %d, not %d", body, i, plain.labels[i], expected[i]);
        assert_int_equal(scored.labels[i], expected[i]);
        for (size_t k = 0; k < classes && expected[i] >= 0; k++)
            assert_true(scored.scores[i * classes + k] <= scored.scores[i * classes + (size_t)expected[i]]);
    }
}

static void wrong(sf_http_profile *profile, const char *body, size_t count, const char *words)
{
    for (int scores = 0; scores < 2; scores++) {
        result r = read_answer(profile, body, count, scores);
        if (r.status != SAFER_INPUT || r.lost || !strstr(error.message, words) ||
            strncmp(error.message, "http://host: ", 13) != 0)
            fail_msg("%s: expected \"%s\", got status %d, lost %d: %s", body, words, (int)r.status, r.lost,
                     error.message);
    }
}

static void lost(sf_http_profile *profile, const char *body)
{
    result r = read_answer(profile, body, 1, 0);
    if (r.status != SAFER_INPUT || !r.lost || !strstr(error.message, "not JSON"))
        fail_msg("%s: status %d, lost %d", body, (int)r.status, r.lost);
}

static const int none_pos[] = {SF_NO_LABEL, 1}, neg_pos[] = {0, 1}, pos[] = {1}, neg[] = {0}, nothing[] = {SF_NO_LABEL};

static void test_json_answers(void **state)
{
    (void)state;
    sf_http_profile p = opened(&labels, with(SAFER_PROFILE_JSON, NULL, NULL, NULL));
    answers(&p, "{\"labels\":[\"neg\",\"pos\"],\"scores\":3}", 2, neg_pos);
    answers(&p, "{\"labels\":[0,1]}", 2, neg_pos);
    answers(&p, "{\"labels\":[null,1]}", 2, none_pos);
    answers(&p, "{\"scores\":[[0.5,0.5],[0,1]]}", 2, neg_pos);
    answers(&p, "{\"scores\":[null,[-2,-1e-9]]}", 2, none_pos);
    answers(&p, "{\"predictions\":[[0.9,0.1],[1,2]]}", 2, neg_pos);
    answers(&p, "{\"label\":[\"pos\"]}", 1, pos);
    answers(&p, "[\"neg\",\"pos\"]", 2, neg_pos);
    answers(&p, "[{\"label\":\"neg\",\"score\":0.7},{\"label\":\"pos\"}]", 2, neg_pos);
    answers(&p, "[null,{\"label\":\"pos\"}]", 2, none_pos);
    answers(&p, "[{\"label\":null},{\"label\":\"pos\"}]", 2, none_pos);
    answers(
        &p,
        "[[{\"label\":\"pos\",\"score\":0.2},{\"label\":\"neg\",\"score\":0.8}],[{\"label\":\"pos\",\"score\":0.8}]]",
        2, neg_pos);
    answers(&p, "[[{\"label\":\"pos\",\"score\":1},{\"label\":\"neg\",\"score\":1}]]", 1, neg);
    lost(&p, "");
    lost(&p, "{\"labels\":[\"neg\"");
    lost(&p, "<html>");
    lost(&p, "{\"labels\":[\"neg\",\"pos\"]}}");
    lost(&p, "{\"labels\":[NaN");
    lost(&p, "{\"labels\":[\"\xff\"]}");
    wrong(&p, "{\"scores\":[[NaN,0.5]]}", 1, "NaN");
    wrong(&p, "{\"scores\":[[1,-Infinity]],\"x\":\"\\\"NaN\"}", 1, "NaN or Infinity");
    wrong(&p, "{}", 1, "no \"labels\"");
    wrong(&p, "null", 1, "no \"labels\"");
    wrong(&p, "\"pos\"", 1, "no \"labels\"");
    wrong(&p, "{\"error\":\"no\"}", 1, "no \"labels\"");
    wrong(&p, "{\"label\":\"pos\"}", 1, "no list");
    wrong(&p, "{\"labels\":\"pos\"}", 1, "no list");
    wrong(&p, "{\"labels\":{}}", 1, "no list");
    wrong(&p, "{\"labels\":null}", 1, "no list");
    wrong(&p, "{\"labels\":[]}", 1, "labels: 0, texts: 1");
    wrong(&p, "{\"labels\":[0,1]}", 1, "labels: 2, texts: 1");
    wrong(&p, "{\"labels\":[\"maybe\"]}", 1, "maybe");
    wrong(&p, "{\"labels\":[\"POS\"]}", 1, "POS");
    wrong(&p, "{\"labels\":[2]}", 1, "2");
    wrong(&p, "{\"labels\":[-1]}", 1, "-1");
    wrong(&p, "{\"labels\":[0.5]}", 1, "0.5");
    wrong(&p, "{\"labels\":[true]}", 1, "true");
    wrong(&p, "{\"labels\":[0,[1,0]]}", 2, "not one of the labels");
    wrong(&p, "{\"scores\":[[0.5,0.5]]}", 2, "lists of scores: 1, texts: 2");
    wrong(&p, "{\"scores\":[[0.5]]}", 1, "2 numbers");
    wrong(&p, "{\"scores\":[[0.5,0.2,0.3]]}", 1, "2 numbers");
    wrong(&p, "{\"scores\":[[]]}", 1, "2 numbers");
    wrong(&p, "{\"scores\":[[0.5,\"x\"]]}", 1, "no finite number");
    wrong(&p, "{\"scores\":[[0.5,null]]}", 1, "no finite number");
    wrong(&p, "{\"scores\":[[0.5,0.5],\"x\"]}", 2, "2 numbers");
    wrong(&p, "[{\"score\":1}]", 1, "no \"label\"");
    wrong(&p, "[{\"label\":\"maybe\"}]", 1, "maybe");
    wrong(&p, "[{\"label\":\"pos\"}]", 2, "answers: 1, texts: 2");
    wrong(&p, "[{\"label\":\"pos\"},3]", 2, "several kinds");
    wrong(&p, "[{\"label\":\"pos\"},[3]]", 2, "label");
    wrong(&p, "[[{\"label\":\"pos\"}]]", 1, "no finite number");
    wrong(&p, "[[{\"label\":\"pos\",\"score\":\"1\"}]]", 1, "no finite number");
    wrong(&p, "[[{\"label\":\"pos\",\"score\":1},{\"label\":\"pos\",\"score\":2}]]", 1, "two scores");
    wrong(&p, "[[{\"label\":null,\"score\":1}]]", 1, "null");
    wrong(&p, "[[{\"label\":\"pos\",\"score\":1}],[]]", 2, "without any label");
    sf_http_profile_free(&p);
}

/* A label and scores that say different things: neither is believed. */
static void test_contradictions(void **state)
{
    (void)state;
    sf_http_profile p = opened(&labels, with(SAFER_PROFILE_JSON, NULL, NULL, NULL));
    answers(&p, "{\"labels\":[\"neg\",\"pos\"],\"scores\":[[0.9,0.1],[0.5,0.5]]}", 2, neg_pos); /* equal: either */
    answers(&p, "{\"labels\":[\"neg\",\"pos\"],\"scores\":[0.9,0.8]}", 2, neg_pos); /* of each label alone */
    answers(&p, "{\"labels\":[null,\"pos\"],\"scores\":[null,[0,1]]}", 2, none_pos);
    answers(&p, "[{\"label\":\"neg\",\"scores\":[1,0]},{\"label\":\"pos\",\"scores\":[0,1]}]", 2, neg_pos);
    wrong(&p, "{\"labels\":[\"neg\",\"pos\"],\"scores\":[[0.9,0.1],[0.6,0.4]]}", 2,
          "contradict each other: pos and neg");
    wrong(&p, "{\"labels\":[\"neg\",\"pos\"],\"scores\":[[0.9,0.1],null]}", 2,
          "contradict each other: pos and no scores");
    wrong(&p, "{\"labels\":[null,\"pos\"],\"scores\":[[0.9,0.1],[0,1]]}", 2, "contradict each other: no label and neg");
    wrong(&p, "{\"label\":[\"pos\"],\"scores\":[[0.9,0.1]]}", 1, "contradict");
    wrong(&p, "{\"labels\":[\"neg\",\"pos\"],\"scores\":[[0.9,0.1]]}", 2, "lists of scores: 1, texts: 2");
    wrong(&p, "[{\"label\":\"neg\",\"scores\":[0,1]}]", 1, "contradict");
    sf_http_profile_free(&p);
    p = opened(&labels, with(SAFER_PROFILE_JSON, "{\"text\":{{text}}}", NULL, NULL));
    answers(&p, "{\"label\":\"pos\",\"scores\":[0.1,0.9]}", 1, pos);
    wrong(&p, "{\"label\":\"pos\",\"scores\":[0.9,0.1]}", 1, "contradict");
    sf_http_profile_free(&p);
    p = opened(&labels, with(SAFER_PROFILE_JSON, NULL, "/labels", NULL)); /* asked for: the other is not looked at */
    answers(&p, "{\"labels\":[\"neg\",\"pos\"],\"scores\":[[0.1,0.9],[1,0]]}", 2, neg_pos);
    sf_http_profile_free(&p);
    static const char both[] =
        "{\"outputs\":[{\"name\":\"probabilities\",\"datatype\":\"FP32\",\"data\":[1,0,0.25,0.75]},"
        "{\"name\":\"label\",\"datatype\":\"INT64\",\"data\":[0,%d]}]}";
    p = opened(&labels, with(SAFER_PROFILE_KSERVE, NULL, NULL, NULL));
    for (int last = 0; last < 2; last++) {
        char answer[sizeof both];
        snprintf(answer, sizeof answer, both, last);
        if (last)
            answers(&p, answer, 2, neg_pos);
        else
            wrong(&p, answer, 2, "contradict each other: neg and pos");
    }
    sf_http_profile_free(&p);
}

static void test_scores_come_back(void **state)
{
    (void)state;
    sf_http_profile p = opened(&three, with(SAFER_PROFILE_JSON, NULL, NULL, NULL));
    result r = read_answer(&p, "{\"scores\":[[0.25,0.5,0.125]]}", 1, 1);
    assert_true(r.labels[0] == 1 && r.scores[0] == 0.25f && r.scores[1] == 0.5f && r.scores[2] == 0.125f);
    r = read_answer(
        &p,
        "[[{\"label\":\"very good\",\"score\":3},{\"label\":\"bad\",\"score\":-1},{\"label\":\"good\",\"score\":2}]]",
        1, 1);
    assert_true(r.labels[0] == 2 && r.scores[0] == -1 && r.scores[1] == 2 && r.scores[2] == 3);
    r = read_answer(&p, "[[{\"label\":\"good\",\"score\":-3},{\"label\":\"bad\",\"score\":-4}]]", 1,
                    1); /* the two best: one hot */
    assert_true(r.labels[0] == 1 && r.scores[0] == 0 && r.scores[1] == 1 && r.scores[2] == 0);
    r = read_answer(&p, "{\"labels\":[\"bad\",null]}", 2, 1);
    assert_true(r.scores[0] == 1 && r.scores[1] == 0 && r.scores[3] == 0 && r.scores[4] == 0 && r.scores[5] == 0);
    sf_http_profile_free(&p);
}

static void test_json_pointers(void **state)
{
    (void)state;
    sf_http_profile p = opened(&labels, with(SAFER_PROFILE_JSON, NULL, "/a~1b/1/~0x", NULL));
    answers(&p, "{\"a/b\":[0,{\"~x\":[\"neg\",\"pos\"]}]}", 2, neg_pos);
    wrong(&p, "{\"a/b\":[0]}", 1, "nothing at");
    wrong(&p, "{\"a/b\":{\"1\":3}}", 1, "nothing at");
    wrong(&p, "[]", 1, "nothing at");
    wrong(&p, "3", 1, "nothing at");
    sf_http_profile_free(&p);
    p = opened(&labels, with(SAFER_PROFILE_JSON, NULL, "", NULL));
    answers(&p, "[0,1]", 2, neg_pos);
    sf_http_profile_free(&p);
    json_t *root = json_loads("{\"\":[10,11,12,13,14,15,16,17,18,19,20],\"x\":{\"\":7}}", 0, NULL);
    assert_int_equal(json_integer_value(sf_json_pointer_get(root, "//10")), 20);
    assert_int_equal(json_integer_value(sf_json_pointer_get(root, "/x/")), 7);
    assert_null(sf_json_pointer_get(root, "//01"));
    assert_null(sf_json_pointer_get(root, "//-"));
    assert_null(sf_json_pointer_get(root, "//11"));
    assert_null(sf_json_pointer_get(root, "//99999999999999999999"));
    assert_null(sf_json_pointer_get(root, "//"));
    assert_null(sf_json_pointer_get(root, "/x//y"));
    json_decref(root);
}

static void test_one_text(void **state)
{
    (void)state;
    sf_http_profile p = opened(&labels, with(SAFER_PROFILE_JSON, "{\"q\":{{text}}}", "/r", NULL));
    answers(&p, "{\"r\":\"pos\"}", 1, pos);
    answers(&p, "{\"r\":1}", 1, pos);
    answers(&p, "{\"r\":null}", 1, nothing);
    answers(&p, "{\"r\":[0.1,0.9]}", 1, pos);
    answers(&p, "{\"r\":[[0.1,0.9]]}", 1, pos);
    answers(&p, "{\"r\":[\"pos\"]}", 1, pos);
    answers(&p, "{\"r\":{\"label\":\"pos\",\"score\":0.9}}", 1, pos);
    answers(&p, "{\"r\":[{\"label\":\"pos\",\"score\":0.9}]}", 1, pos);
    answers(&p, "{\"r\":[{\"label\":\"neg\",\"score\":0.1},{\"label\":\"pos\",\"score\":0.9}]}", 1, pos);
    answers(&p, "{\"r\":[[{\"label\":\"neg\",\"score\":0.1},{\"label\":\"pos\",\"score\":0.9}]]}", 1, pos);
    wrong(&p, "{\"r\":[]}", 1, "2 numbers");
    wrong(&p, "{\"r\":[\"pos\",\"neg\"]}", 1, "no finite number");
    wrong(&p, "{\"r\":[0.1,0.2,0.7]}", 1, "2 numbers");
    wrong(&p, "{\"r\":\"maybe\"}", 1, "maybe");
    wrong(&p, "{\"r\":{}}", 1, "no \"label\"");
    sf_http_profile_free(&p);
}

static void test_kserve_answers(void **state)
{
    (void)state;
    sf_http_profile p = opened(&labels, with(SAFER_PROFILE_KSERVE, NULL, NULL, NULL));
    answers(&p, "{\"outputs\":[{\"name\":\"x\",\"datatype\":\"BYTES\",\"shape\":[2,1],\"data\":[\"neg\",\"pos\"]}]}", 2,
            neg_pos);
    answers(&p, "{\"outputs\":[{\"datatype\":\"STRING\",\"data\":[[\"neg\"],[\"pos\"]]}]}", 2, neg_pos);
    answers(&p, "{\"outputs\":[{\"datatype\":\"INT64\",\"data\":[0,1]}]}", 2, neg_pos);
    answers(&p, "{\"outputs\":[{\"datatype\":\"UINT8\",\"data\":[[0],[1]]}]}", 2, neg_pos);
    answers(&p, "{\"outputs\":[{\"datatype\":\"FP32\",\"data\":[0.9,0.1,0,1]}]}", 2, neg_pos);
    answers(&p, "{\"outputs\":[{\"datatype\":\"FP64\",\"data\":[[0.9,0.1],[-3.5,1]]}]}", 2, neg_pos);
    answers(&p,
            "{\"outputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"data\":[]},"
            "{\"name\":\"Labels\",\"datatype\":\"INT32\",\"data\":[1]}]}",
            1, pos);
    answers(&p,
            "{\"outputs\":[{\"name\":\"logits\",\"datatype\":\"FP32\",\"data\":[0,1]},"
            "{\"name\":\"label\",\"datatype\":\"INT32\",\"data\":[1]}]}",
            1, pos);
    lost(&p, "{\"outputs\":[");
    wrong(&p, "{}", 1, "no \"outputs\"");
    wrong(&p, "[]", 1, "no \"outputs\"");
    wrong(&p, "{\"error\":\"x\"}", 1, "no \"outputs\"");
    wrong(&p, "{\"outputs\":[]}", 1, "no \"outputs\"");
    wrong(&p, "{\"outputs\":{}}", 1, "no \"outputs\"");
    wrong(&p, "{\"outputs\":[3]}", 1, "datatype");
    wrong(&p, "{\"outputs\":[{\"datatype\":\"FP32\"}]}", 1, "data");
    wrong(&p, "{\"outputs\":[{\"data\":[1]}]}", 1, "datatype");
    wrong(&p, "{\"outputs\":[{\"datatype\":\"FP32\",\"data\":3}]}", 1, "data");
    wrong(&p, "{\"outputs\":[{\"datatype\":\"BOOL\",\"data\":[true]}]}", 1, "BOOL");
    wrong(&p, "{\"outputs\":[{\"datatype\":\"FP32\",\"data\":[0.5]}]}", 1, "scores: 1, not 2 (texts times labels)");
    wrong(&p, "{\"outputs\":[{\"datatype\":\"FP32\",\"data\":[0.5,\"x\"]}]}", 1, "no finite number");
    wrong(&p, "{\"outputs\":[{\"datatype\":\"FP32\",\"data\":[0.5,NaN]}]}", 1, "NaN");
    wrong(&p, "{\"outputs\":[{\"datatype\":\"INT64\",\"data\":[0,1]}]}", 1, "labels: 2, texts: 1");
    wrong(&p, "{\"outputs\":[{\"datatype\":\"INT64\",\"data\":[7]}]}", 1, "7");
    wrong(&p, "{\"outputs\":[{\"datatype\":\"BYTES\",\"data\":[\"maybe\"]}]}", 1, "maybe");
    sf_http_profile_free(&p);
    p = opened(&labels, with(SAFER_PROFILE_KSERVE, NULL, "second", NULL));
    answers(&p,
            "{\"outputs\":[{\"name\":\"label\",\"datatype\":\"INT64\",\"data\":[0]},"
            "{\"name\":\"second\",\"datatype\":\"INT64\",\"data\":[1]}]}",
            1, pos);
    wrong(&p, "{\"outputs\":[{\"name\":\"label\",\"datatype\":\"INT64\",\"data\":[0]}]}", 1, "no output \"second\"");
    sf_http_profile_free(&p);
}

static void test_tei_answers(void **state)
{
    (void)state;
    sf_http_profile p = opened(&labels, with(SAFER_PROFILE_TEI, NULL, NULL, NULL));
    answers(&p,
            "[[{\"score\":0.9,\"label\":\"neg\"},{\"score\":0.1,\"label\":\"pos\"}],"
            "[{\"score\":0.6,\"label\":\"pos\"},{\"score\":0.4,\"label\":\"neg\"}]]",
            2, neg_pos);
    wrong(&p, "[[{\"score\":0.9,\"label\":\"LABEL_0\"}]]", 1, "LABEL_0");
    wrong(&p, "{\"error\":\"x\",\"error_type\":\"y\"}", 1, "no list");
    wrong(&p, "[{\"score\":0.9,\"label\":\"neg\"},{\"score\":0.1,\"label\":\"pos\"}]", 1, "answers: 2, texts: 1");
    wrong(&p, "[]", 1, "labels: 0");
    sf_http_profile_free(&p);
}

static void test_openai_answers(void **state)
{
    (void)state;
    sf_http_profile p = opened(&labels, with(SAFER_PROFILE_OPENAI, NULL, NULL, "m"));
    answers(&p, "{\"choices\":[{\"message\":{\"content\":\" Pos. \"}}]}", 1, pos);
    answers(&p, "{\"choices\":[{\"message\":{\"content\":\"neg\"}},{\"message\":{\"content\":\"pos\"}}]}", 1, neg);
    answers(&p, "{\"choices\":[{\"message\":{\"content\":null,\"refusal\":\"no\"}}]}", 1, nothing);
    answers(&p, "{\"choices\":[{\"message\":{}}]}", 1, nothing);
    answers(&p, "{\"choices\":[{\"message\":{\"content\":\"\"}}]}", 1, nothing);
    answers(&p, "{\"choices\":[{\"message\":{\"content\":[\"pos\"]}}]}", 1, nothing);
    answers(&p, "{\"choices\":[{\"message\":{\"content\":\"pos or neg\"}}]}", 1, nothing);
    answers(&p, "{\"choices\":[{\"message\":{\"content\":\"pos\\u0000\"}}]}", 1, pos);
    lost(&p, "{\"choices\":[{\"mess");
    wrong(&p, "{}", 1, "choices[0].message");
    wrong(&p, "[]", 1, "choices[0].message");
    wrong(&p, "{\"choices\":[]}", 1, "choices[0].message");
    wrong(&p, "{\"choices\":{}}", 1, "choices[0].message");
    wrong(&p, "{\"choices\":[{}]}", 1, "choices[0].message");
    wrong(&p, "{\"choices\":[{\"message\":\"pos\"}]}", 1, "choices[0].message");
    const char *filtered = "{\"error\":{\"code\":\"content_filter\"}}", *other = "{\"error\":{\"code\":\"x\"}}";
    assert_true(sf_http_declined(&p, 400, filtered, strlen(filtered)));
    assert_false(sf_http_declined(&p, 500, filtered, strlen(filtered)));
    assert_false(sf_http_declined(&p, 400, other, strlen(other)));
    assert_false(sf_http_declined(&p, 400, "x", 1));
    assert_false(sf_http_declined(&p, 400, NULL, 0));
    sf_http_profile_free(&p);
    p = opened(&labels, with(SAFER_PROFILE_JSON, NULL, NULL, NULL));
    assert_false(sf_http_declined(&p, 400, filtered, strlen(filtered)));
    sf_http_profile_free(&p);
}

static void test_labels_in_replies(void **state)
{
    (void)state;
    static char *numbers[] = {"1", "2", "-1"}, *odd[] = {"C", "C++", "\xc3\x84rger", "non-toxic", "toxic"};
    static const sf_labels digits = {numbers, 3, 1}, strange = {odd, 5, 0};
    static const struct {
        const sf_labels *of;
        const char *reply;
        int expected;
    } cases[] = {{&three, "good", 1},
                 {&three, "  Good.\n", 1},
                 {&three, "**GOOD**", 1},
                 {&three, "\"good\"", 1},
                 {&three, "_good_", 1},
                 {&three, "\xe2\x80\x9cgood\xe2\x80\x9d", 1},
                 {&three, "The label is: good!", 1},
                 {&three, "good, good", 1},
                 {&three, "very good", 2},
                 {&three, "Very Good", 2},
                 {&three, "very good, not good", SF_NO_LABEL},
                 {&three, "very bad", 0},
                 {&three, "good or bad", SF_NO_LABEL},
                 {&three, "goodness", SF_NO_LABEL},
                 {&three, "nogood", SF_NO_LABEL},
                 {&three, "goods", SF_NO_LABEL},
                 {&three, "good1", SF_NO_LABEL},
                 {&three, "no-good", SF_NO_LABEL},
                 {&three, "good-natured", SF_NO_LABEL},
                 {&three, "- good", 1},
                 {&three, "good - really", 1},
                 {&three, "good's", SF_NO_LABEL},
                 {&three, "\xc3\xa9good", SF_NO_LABEL},
                 {&three, "", SF_NO_LABEL},
                 {&three, "I cannot help.", SF_NO_LABEL},
                 {&three, "good/bad", SF_NO_LABEL},
                 {&three, "\xffgood\xff", 1},
                 {&three, "goo", SF_NO_LABEL},
                 {&digits, "1", 0},
                 {&digits, "Label 2.", 1},
                 {&digits, "-1", 2},
                 {&digits, "-2", SF_NO_LABEL},
                 {&digits, "12", SF_NO_LABEL},
                 {&digits, "1.5", SF_NO_LABEL},
                 {&digits, "0.1", SF_NO_LABEL},
                 {&digits, "1, 2", SF_NO_LABEL},
                 {&digits, "1.", 0},
                 {&strange, "C", 0},
                 {&strange, "c++", 1},
                 {&strange, "C++ it is", 1},
                 {&strange, "\xc3\xa4RGER", 2},
                 {&strange, "non-toxic", 3},
                 {&strange, "Toxic", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int found = sf_http_label_in(cases[i].of, cases[i].reply, strlen(cases[i].reply));
        if (found != cases[i].expected)
            fail_msg("\"%s\" is class %d, not %d", cases[i].reply, found, cases[i].expected);
    }
}

/* ------------------------------------------------------------------ addresses */

static void shows(const char *address, const char *expected)
{
    sf_http_address a = {0};
    assert_ok(sf_http_address_read(&a, address, &error));
    assert_string_equal(a.shown, expected);
    sf_http_address_free(&a);
}

static void test_addresses(void **state)
{
    (void)state;
    char text[] = "hushhush s3cr%74 s3crt xx hush/hush=1 a tokentoken", longer[600] = "http://h/";
    static const char *const bad[] = {
        "", "host", "ftp://h/x", "file:///etc/passwd", "http://", "http://h:99999/", "http://a b/"};
    sf_http_address a = {0};
    shows("http://host:8080/path", "http://host:8080/path");
    shows("https://me:s3cret@host/p?key=hushhush#frag", "https://host/p?...");
    shows("http://[::1]:80", "http://[::1]:80/");
    memset(longer + 9, 'x', 500);
    assert_ok(sf_http_address_read(&a, longer, &error));
    assert_true(strlen(a.shown) < 310);
    sf_http_address_free(&a);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_fails(sf_http_address_read(&a, bad[i], &error), SAFER_INVALID, "no http:// or https:// address");
        sf_http_address_free(&a);
    }
    assert_fails(sf_http_address_read(&a, "http://me:s3cret@ho st/", &error), SAFER_INVALID, "address");
    assert_null(strstr(error.message, "s3cret"));
    sf_http_address_free(&a);
    assert_ok(sf_http_address_read(&a, "http://me:s3cr%74@h/?a=1&key=hushhush&b=hush%2fhush%3d1", &error));
    assert_true(a.has_user);
    assert_ok(sf_secrets_add(&a.secrets, "token", &error));
    assert_ok(sf_secrets_add(&a.secrets, "xx", &error));
    sf_secrets_scrub(&a.secrets, text);
    assert_string_equal(text, "*** *** *** ** *** a ******");
    sf_http_address_free(&a);
}

/* Who vouches for servers: what the environment names, else libcurl's own, else what this system has. */
static void test_authorities(void **state)
{
    (void)state;
    const char *const none[2] = {0}, *const lost[2] = {"/nowhere/a.crt", "/nowhere/certs"}, *const own[2] = {NULL, "/"};
    const char *const usual[] = {"/nowhere/b.crt", SOURCE_DIR "/NOTICE", SOURCE_DIR "/LICENSE", NULL};
    const char *const nowhere[] = {"/nowhere/b.crt", NULL};
    unsetenv("CURL_CA_BUNDLE");
    unsetenv("SSL_CERT_FILE");
    assert_null(sf_http_authorities(own, usual));
    assert_string_equal(sf_http_authorities(none, usual), SOURCE_DIR "/NOTICE");
    assert_string_equal(sf_http_authorities(lost, usual), SOURCE_DIR "/NOTICE");
    assert_null(sf_http_authorities(lost, nowhere));
    setenv("SSL_CERT_FILE", "/of/openssl", 1);
    assert_string_equal(sf_http_authorities(own, usual), "/of/openssl");
    setenv("CURL_CA_BUNDLE", "/of/curl", 1);
    assert_string_equal(sf_http_authorities(own, usual), "/of/curl");
    unsetenv("CURL_CA_BUNDLE");
    unsetenv("SSL_CERT_FILE");
    for (size_t i = 0; sf_http_usual_authorities[i]; i++) assert_int_equal(sf_http_usual_authorities[i][0], '/');
}

/* Every form in which a password may come back. */
static void test_secrets(void **state)
{
    (void)state;
    sf_http_address a = {0};
    assert_ok(sf_http_address_read(&a, "http://me:p%40ss%2Bw%22rd%3F~@h/", &error));
    static const char *const forms[] = {
        "p%40ss%2Bw%22rd%3F~",                         /* as it stands in the address, */
        "p@ss+w\"rd?~",                                /* as it is, */
        "p%40ss%2bw%22rd%3f~",                         /* in small letters, */
        "p@ss+w\\\"rd?~",                              /* in JSON, */
        "bWU6cEBzcyt3InJkP34=", "bWU6cEBzcyt3InJkP34", /* with the name, as in Authorization: Basic, */
        "cEBzcyt3InJkP34=",     "cEBzcyt3InJkP34",     /* and alone */
        "me:p@ss+w\"rd?~",      "me%3Ap%40ss%2Bw%22rd%3F~"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char text[100];
        snprintf(text, sizeof text, "<%s>", forms[i]);
        sf_secrets_scrub(&a.secrets, text);
        if (strcmp(text, "<***>") != 0 && strcmp(text, "<***=>") != 0) fail_msg("%s: %s", forms[i], text);
    }
    sf_http_address_free(&a);

    char alphabets[] = "Pz8/Pj4+ Pz8_Pj4- \?\?\?>>>";
    assert_ok(sf_secrets_add(&a.secrets, "\?\?\?>>>", &error));
    sf_secrets_scrub(&a.secrets, alphabets);
    assert_string_equal(alphabets, "*** *** ***");
    assert_ok(sf_secrets_add(&a.secrets, "", &error));
    sf_http_address_free(&a);

    char alone[] = "A0b1C2d3E4 QTBiMUMyZDNFNA== QTBiMUMyZDNFNDo="; /* a key in the place of the name */
    assert_ok(sf_http_address_read(&a, "https://A0b1C2d3E4@h/", &error));
    sf_secrets_scrub(&a.secrets, alone);
    assert_string_equal(alone, "*** ***== ***=");
    sf_http_address_free(&a);
}

static void test_messages_hide_users(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } cases[] = {{"cannot open HTTP://me:word@h/x: no", "cannot open HTTP://***@h/x: no"},
                 {"\"ftp://w@h\" and http://a:b@c:d@e", "\"ftp://*@h\" and http://***@e"},
                 {"http:/a:word@h Https:a:word@h", "http:/***@h Https:***@h"},
                 {"https:\\\\a:word@h http:///a:word@h", "https:\\\\***@h http:///***@h"},
                 {"ftp:/a:word@h http//a:word@h", "ftp:/***@h http//***@h"},
                 {"http://a:wo/r#d@h/x http:/a:wo?rd@h", "http://***@h/x http:/***@h"},
                 {"http://h:80/a@b http://[::1]:80/a@b http:", "http://h:80/a@b http://[::1]:80/a@b http:"},
                 {"a.zip:b@c exec:a@b", "a.zip:b@c exec:a@b"},
                 {"//@h a@b http://h/a@b https://h?x@y", "//@h a@b http://h/a@b https://h?x@y"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sf_fail(&error, SAFER_INPUT, "%s", cases[i].text);
        assert_string_equal(error.message, cases[i].shown);
    }
    safer_model *model = NULL;
    const char *two[] = {"a", "b"};
    safer_remote_options options = safer_remote_options_default();
    options.labels = two;
    options.label_count = 2;
    assert_fails(safer_model_connect(&model, "ftp://me:word@h/", &options, &error), SAFER_INVALID,
                 "\"ftp...\" is neither");
    assert_null(strstr(error.message, "word"));
}

/* Which way it goes: loopback or not, and through which proxy. */
static void test_ways(void **state)
{
    (void)state;
    static const struct {
        const char *address, *proxy, *all, *none, *shown;
        int loopback;
    } cases[] = {{"http://localhost:1/", "http://p:1", NULL, NULL, NULL, 1},
                 {"http://a.LOCALHOST/", "http://p:1", NULL, NULL, NULL, 1},
                 {"http://127.8.9.1/", "http://p:1", NULL, NULL, NULL, 1},
                 {"http://[::1]:80/", "http://p:1", NULL, NULL, NULL, 1},
                 {"http://localhost.example.org/", NULL, NULL, NULL, NULL, 0},
                 {"http://128.0.0.1/", "http://p:1", NULL, "", "p:1 from http_proxy", 0},
                 {"http://h/", "u:w0rdw0rd@p", NULL, "other,xh", "p from http_proxy", 0},
                 {"http://a.h/", "p:1", NULL, "x, .h", NULL, 0},
                 {"http://h/", "p:1", NULL, "*", NULL, 0},
                 {"http://h/", "", "socks5://q:9", NULL, "q:9 from all_proxy", 0},
                 {"http://h/", "http://a b", NULL, NULL, "an address from http_proxy", 0},
                 {"https://h/", "http://p:1", NULL, NULL, NULL, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sf_http_address a = {0};
        char text[] = "w0rdw0rd dTp3MHJkdzByZA==";
        setenv("http_proxy", cases[i].proxy ? cases[i].proxy : "", 1);
        setenv("all_proxy", cases[i].all ? cases[i].all : "", 1);
        setenv("no_proxy", cases[i].none ? cases[i].none : "", 1);
        unsetenv("https_proxy");
        unsetenv("HTTPS_PROXY");
        unsetenv("ALL_PROXY");
        assert_ok(sf_http_address_read(&a, cases[i].address, &error));
        assert_int_equal(a.loopback, cases[i].loopback);
        assert_false(a.has_user);
        if (!cases[i].shown)
            assert_null(a.proxy);
        else
            assert_string_equal(a.proxy, cases[i].shown);
        sf_secrets_scrub(&a.secrets, text);
        if (cases[i].proxy && strchr(cases[i].proxy, '@')) assert_string_equal(text, "*** ***==");
        sf_http_address_free(&a);
    }
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("no_proxy");
}

/* A token or a password over http:// to another machine must be allowed. */
static void test_insecure(void **state)
{
    (void)state;
    const char *two[] = {"a", "b"};
    static const struct {
        const char *address, *token;
        int refused;
    } cases[] = {{"http://h/", NULL, 0},
                 {"http://h/", "SAFER_TEST_TOKEN", 1},
                 {"http://me:word@h/", NULL, 1},
                 {"http://me@h/", NULL, 1},
                 {"https://h/", "SAFER_TEST_TOKEN", 0},
                 {"https://me:word@h/", NULL, 0},
                 {"http://127.0.0.1/", "SAFER_TEST_TOKEN", 0},
                 {"http://me:word@[::1]/", NULL, 0}};
    setenv("SAFER_TEST_TOKEN", "tok-1234567890", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int allowed = 0; allowed < 2; allowed++) {
            safer_model *model = NULL;
            safer_remote_options options = safer_remote_options_default();
            options.labels = two;
            options.label_count = 2;
            options.token = cases[i].token;
            options.insecure_token = allowed;
            if (cases[i].refused && !allowed) {
                assert_fails(safer_model_connect(&model, cases[i].address, &options, &error), SAFER_INVALID,
                             "without encryption; use https://");
                assert_non_null(strstr(error.message, cases[i].token ? "the token" : "the password"));
                assert_null(strstr(error.message, "word@"));
                assert_null(strstr(error.message, "tok-"));
            } else {
                assert_ok(safer_model_connect(&model, cases[i].address, &options, &error));
                safer_model_free(model);
            }
        }
}

/* --------------------------------------------------------------- no memory */

static safer_status open_and_body(void *context, safer_error *failure)
{
    const sf_span texts[] = {{"a\n", 2}, {"b", 1}};
    sf_http_profile profile = {0};
    sf_buffer body = {0};
    safer_status status = sf_http_profile_open(&profile, &labels, context, failure);
    if (status == SAFER_OK) status = sf_http_body(&body, &profile, texts, profile.single ? 1 : 2, failure);
    sf_buffer_free(&body);
    sf_http_profile_free(&profile);
    return status;
}

static safer_status open_address(void *context, safer_error *failure)
{
    sf_http_address a = {0};
    safer_status status = sf_http_address_read(&a, context, failure);
    sf_http_address_free(&a);
    return status;
}

static void test_no_memory(void **state)
{
    (void)state;
    safer_remote_options options[] = {with(SAFER_PROFILE_JSON, NULL, "/x", NULL),
                                      with(SAFER_PROFILE_KSERVE, NULL, NULL, NULL),
                                      with(SAFER_PROFILE_TEI, NULL, NULL, NULL),
                                      with(SAFER_PROFILE_OPENAI, NULL, NULL, "m")};
    for (size_t i = 0; i < 4; i++) check_every_allocation(open_and_body, &options[i]);
    check_every_allocation(open_address, (void *)(uintptr_t) "http://me:s3cr%74@h/?a=1&key=hushhush&b=hush%2fhush%3d1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),         cmocka_unit_test(test_every_text_survives),
        cmocka_unit_test(test_options),        cmocka_unit_test(test_json_answers),
        cmocka_unit_test(test_contradictions), cmocka_unit_test(test_scores_come_back),
        cmocka_unit_test(test_json_pointers),  cmocka_unit_test(test_one_text),
        cmocka_unit_test(test_kserve_answers), cmocka_unit_test(test_tei_answers),
        cmocka_unit_test(test_openai_answers), cmocka_unit_test(test_labels_in_replies),
        cmocka_unit_test(test_addresses),      cmocka_unit_test(test_authorities),
        cmocka_unit_test(test_secrets),        cmocka_unit_test(test_messages_hide_users),
        cmocka_unit_test(test_ways),           cmocka_unit_test(test_insecure),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
