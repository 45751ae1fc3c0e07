/* Remote models, seen through a function: labels and scores, the cache, the
 * guard, answers without a label, and runs with them. */
#define _GNU_SOURCE
#include "support.h"

#include "base/hash.h"
#include "remote/remote.h"
#include "remote/cache.h"
#include "remote/queue.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static safer_error error;

/* ------------------------------------------------------------- a small world */

static const char *const two[] = {"neg", "pos"}, *const three[] = {"a", "b", "c"};

static safer_lexicon *make_lexicon(const char *kernel)
{
    static const char table[] = "good\tfine great\nbad\tpoor awful\nfilm\tmovie picture\nlong\tlengthy\n";
    safer_lexicon_options o = safer_lexicon_options_default();
    safer_lexicon *lexicon = NULL;
    o.table = write_temporary("table.tsv", table, sizeof table - 1);
    o.kernel = kernel;
    assert_ok(safer_lexicon_import(&lexicon, &o, NULL, &error));
    return lexicon;
}

static const char *const texts[] = {
    "A good film, if long.",
    "A bad film and a long one.",
    "Good good GOOD movie!",
    "bad bad bad awful picture.",
    "Neither one nor the other.",
    "A fine picture: good, good, great.",
    "The poor movie was long.",
    "",
    "long long long long film film film",
};
static const char *const labels_of[] = {"pos", "neg", "pos", "neg", "neg", "pos", "neg", "neg", "pos"};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static safer_data *make_data(void)
{
    safer_data *data = NULL;
    assert_ok(safer_data_from_texts(&data, texts, NULL, labels_of, NULL, TEXTS, &error));
    return data;
}

/* The caller's function. */
typedef struct function {
    atomic_size_t calls, asked;
    uint32_t classes;
    uint32_t none;   /* of 1024 texts, by their content, so many get no label */
    uint32_t noise;  /* of 1024 answers, so many are drawn afresh each time */
    size_t fails_at; /* call number, from 1 */
    int wrong;       /* answer this class */
    int alternates;  /* answer 0, 1, 0, 1 ... */
} function;

static int right_answer(const function *f, const char *text, size_t length)
{
    const uint64_t h = sf_hash(text, length, 77);
    if (h % 1024 < f->none) return -1;
    if (memmem(text, length, "good", 4) || memmem(text, length, "great", 5)) return 1;
    return (h >> 10) % 8 == 0 ? (int)((h >> 20) % f->classes) : 0;
}

static int classify(void *context, const char *const *strings, const size_t *lengths, size_t count, int *labels)
{
    function *f = context;
    size_t call = atomic_fetch_add(&f->calls, 1) + 1, before = atomic_fetch_add(&f->asked, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(strings[i][lengths[i]], 0);
        labels[i] = f->wrong ? f->wrong : right_answer(f, strings[i], lengths[i]);
        uint64_t number = before + i, luck = sf_hash(&number, sizeof number, 3);
        if (luck % 1024 < f->noise) labels[i] = (int)((luck >> 20) % f->classes);
        if (f->alternates) labels[i] = (int)(number % 2);
    }
    return f->fails_at && call >= f->fails_at;
}

static safer_model *model_of(function *f, safer_remote_options o)
{
    safer_model *model = NULL;
    if (!f->classes) f->classes = 2;
    o.model_name = "the function";
    o.labels = f->classes == 3 ? three : two;
    o.label_count = f->classes;
    assert_ok(safer_model_from_callback(&model, classify, f, &o, &error));
    return model;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *bytes = calloc(1, 1 << 20);
    assert_true(fread(bytes, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return bytes;
}

/* Records without "seconds" and "check", which differ from run to run or follow, and without what was declared. */
static json_t *records_of(const char *path)
{
    char *bytes = read_file(path);
    json_t *list = json_array();
    for (char *line = strtok(bytes, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *record = json_loads(line, 0, NULL);
        assert_non_null(record);
        json_object_del(record, "seconds");
        json_object_del(record, "check");
        json_object_del(json_object_get(record, "model"), "function");
        json_array_append_new(list, record);
    }
    free(bytes);
    return list;
}

static safer_summary run(const char *path, const safer_model *model, const safer_lexicon *lexicon,
                         const safer_certify_options *o)
{
    safer_summary summary;
    safer_data *data = make_data();
    unlink(path);
    assert_ok(safer_certify(&summary, path, 0, model, lexicon, data, o, &error));
    safer_data_free(data);
    return summary;
}

/* --------------------------------------------------------------------- answers */

static char *names_words[] = {"neg", "pos"}, *names_numbers[] = {"1", "2", "10"};
static const sf_labels words = {names_words, 2, 0}, numbers = {names_numbers, 3, 1};

static int find(const sf_labels *labels, const char *json)
{
    json_t *value = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(value);
    int label = sf_labels_find(labels, value);
    json_decref(value);
    return label;
}

static void test_labels(void **state)
{
    static const struct {
        const sf_labels *labels;
        const char *json;
        int label;
    } cases[] = {
        {&words, "\"neg\"", 0},
        {&words, "\"pos\"", 1},
        {&words, "0", 0},
        {&words, "1", 1},
        {&words, "2", -2},
        {&words, "-1", -2},
        {&words, "null", -1},
        {&words, "\"0\"", -2},
        {&words, "1.0", -2},
        {&words, "true", -2},
        {&words, "\"Pos\"", -2},
        {&words, "\"\"", -2},
        {&words, "[]", -2},
        {&words, "\"pos\\u0000\"", -2},
        {&numbers, "1", 0},
        {&numbers, "2", 1},
        {&numbers, "10", 2},
        {&numbers, "0", -2},
        {&numbers, "\"10\"", 2},
        {&numbers, "\"01\"", -2},
        {&numbers, "9223372036854775807", -2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (find(cases[i].labels, cases[i].json) != cases[i].label) fail_msg("%s", cases[i].json);
}

static safer_status read_as(int scores, const char *json, int *out, float *values)
{
    json_t *list = json_loads(json, JSON_DECODE_ANY, NULL);
    assert_non_null(list);
    safer_status status = scores ? sf_read_scores(out, values, &words, list, 2, "it", &error)
                                 : sf_read_labels(out, &words, list, 2, "it", &error);
    json_decref(list);
    return status;
}

static void test_answers(void **state)
{
    int out[2];
    float values[4];
    (void)state;
    assert_ok(read_as(0, "[\"pos\", null]", out, NULL));
    assert_true(out[0] == 1 && out[1] == -1);
    assert_fails(read_as(0, "[\"pos\"]", out, NULL), SAFER_INPUT, "labels: 1, texts: 2");
    assert_fails(read_as(0, "{}", out, NULL), SAFER_INPUT, "no list");
    assert_fails(read_as(0, "[\"pos\", \"good\"]", out, NULL), SAFER_INPUT,
                 "\"good\" is not one of the labels (neg, pos)");
    assert_ok(read_as(1, "[[0.25, 0.75], [3, 3]]", out, values));
    assert_true(out[0] == 1 && out[1] == 0 && values[1] == 0.75f && values[2] == 3);
    assert_ok(read_as(1, "[null, [-1, -2]]", out, NULL));
    assert_true(out[0] == -1 && out[1] == 0);
    assert_fails(read_as(1, "[[1, 2], [1, 2, 3]]", out, NULL), SAFER_INPUT, "list of 2 numbers");
    assert_fails(read_as(1, "[[1, 2], 3]", out, NULL), SAFER_INPUT, "list of 2 numbers");
    assert_fails(read_as(1, "[[1, 2], [1, \"NaN\"]]", out, NULL), SAFER_INPUT,
                 "score of label \"pos\" is no finite number");
    assert_fails(read_as(1, "[[1, 2]]", out, NULL), SAFER_INPUT, "lists of scores: 1, texts: 2");
    sf_one_hot(values, (const int[]){1, -1}, 2, 2);
    assert_true(values[0] == 0 && values[1] == 1 && values[2] == 0 && values[3] == 0);
}

static void test_cache_of_texts(void **state)
{
    sf_cache cache = {.limit = 100000};
    char text[32];
    (void)state;
    assert_null(sf_cache_find(&cache, (sf_span){"x", 1}, 5));
    for (int i = 0; i < 3000; i++) { /* hashes that collide all the time */
        sf_span span = {text, (size_t)snprintf(text, sizeof text, "text %d", i)};
        assert_int_equal(sf_cache_add(&cache, span, (uint64_t)i % 7 << 32, i), 0);
    }
    for (int i = 0; i < 3000; i++) {
        sf_span span = {text, (size_t)snprintf(text, sizeof text, "text %d", i)};
        assert_int_equal(sf_cache_find(&cache, span, (uint64_t)i % 7 << 32)->answer, i);
        assert_null(sf_cache_find(&cache, (sf_span){text, 4}, (uint64_t)i % 7 << 32)); /* "text" */
        assert_null(sf_cache_find(&cache, span, UINT64_C(1000) << 32));
    }
    cache.limit = cache.bytes.length;
    assert_int_equal(sf_cache_add(&cache, (sf_span){"more", 4}, 1, 1), 0);
    assert_null(sf_cache_find(&cache, (sf_span){"more", 4}, 1));
    sf_cache_clear(&cache);
    assert_null(sf_cache_find(&cache, (sf_span){"text 1", 6}, 1));
    sf_cache_free(&cache);
}

/* ---------------------------------------------------------------------- queues */

static void test_queue(void **state)
{
    struct item {
        sf_link link;
        int number;
    } items[5], *item;
    sf_queue queue = {0};
    (void)state;
    for (int round = 0; round < 3; round++) { /* an empty queue is as good as a new one */
        assert_null(sf_queue_first(&queue));
        assert_null(sf_queue_pop(&queue));
        for (int i = 0; i < 5; i++) {
            items[i].number = i;
            sf_queue_push(&queue, &items[i].link);
            int seen = 0;
            for (item = sf_queue_first(&queue); item; item = sf_queue_after(&item->link))
                assert_int_equal(item->number, seen++);
            assert_int_equal(seen, i + 1);
        }
        item = sf_queue_pop(&queue);
        assert_int_equal(item->number, 0);
        sf_queue_push(&queue, &item->link); /* last, now */
        for (int i = 1; i <= 5; i++) {
            item = sf_queue_pop(&queue);
            assert_int_equal(item->number, i % 5);
        }
    }
}

/* ------------------------------------------------------------------------ runs */

/* The counts of a record are those of the draws, asked here one by one. */
static uint64_t recount(uint64_t *votes, const safer_lexicon *lexicon, const char *text, safer_stage stage, uint64_t n,
                        const function *f);

typedef struct counting {
    uint64_t *votes;
    const function *f;
} counting;

static int count_draw(void *context, uint64_t index, const char *text, size_t length)
{
    counting *c = context;
    int label = right_answer(c->f, text, length);
    (void)index;
    if (label >= 0) c->votes[label]++;
    return 0;
}

static uint64_t recount(uint64_t *votes, const safer_lexicon *lexicon, const char *text, safer_stage stage, uint64_t n,
                        const function *f)
{
    counting c = {votes, f};
    memset(votes, 0, 3 * sizeof *votes);
    assert_ok(safer_draw(lexicon, text, strlen(text), stage, 9, 0, n, count_draw, &c, &error));
    return votes[0] + votes[1] + votes[2];
}

static void test_counts_are_those_of_the_draws(void **state)
{
    (void)state;
    for (uint32_t classes = 2; classes <= 3; classes++) {
        function f = {.classes = classes, .none = 50};
        safer_model *model = model_of(&f, safer_remote_options_default());
        safer_lexicon *lexicon = make_lexicon("component");
        safer_certify_options o = safer_certify_options_default();
        safer_workspace *workspace = NULL;
        safer_certificate c;
        o.method = SAFER_METHOD_BINOMIAL;
        o.n = 700;
        o.seed = 9;
        for (size_t i = 0; i < TEXTS; i++) {
            uint64_t votes[3], sum = recount(votes, lexicon, texts[i], SAFER_STAGE_CERTIFICATION, o.n, &f);
            assert_ok(safer_certify_text(&c, &workspace, model, lexicon, texts[i], strlen(texts[i]), -1, &o, &error));
            assert_true(sum <= o.n && !c.exact && c.n == o.n);
            assert_memory_equal(votes, c.votes, classes * sizeof *votes);
            assert_int_equal(c.base, right_answer(&f, texts[i], strlen(texts[i])));
        }
        safer_workspace_free(workspace);
        safer_lexicon_free(lexicon);
        safer_model_free(model);
    }
}

static void test_nothing_changes_the_records(void **state)
{
    static const struct {
        size_t batch;
        int concurrency, cache, retries;
    } ways[] = {{0, 1, 0, 5}, {1, 1, 0, 5}, {7, 4, 0, 5}, {3, 3, 1, 5}, {1, 2, 1, 5}};
    safer_lexicon *lexicon = make_lexicon("component");
    safer_certify_options o = safer_certify_options_default();
    json_t *first = NULL;
    size_t asked = 0;
    (void)state;
    o.n = 40; /* some are enumerated, some not */
    o.n0 = 20;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        function f = {.none = 30};
        safer_remote_options r = safer_remote_options_default();
        r.batch = ways[i].batch;
        r.concurrency = ways[i].concurrency;
        r.cache = r.function = ways[i].cache;
        safer_model *model = model_of(&f, r);
        const char *path = temporary("ways.jsonl");
        safer_summary summary = run(path, model, lexicon, &o);
        assert_true(summary.exact > 0 && summary.exact < TEXTS);
        json_t *records = records_of(path);
        if (first && !json_equal(first, records)) fail_msg("way %zu differs", i);
        safer_traffic t = safer_model_traffic(model);
        assert_true(t.changed == 0 && t.again > 0 && t.asked + t.again == f.asked);
        assert_true(ways[i].cache ? t.cached > 0 && t.asked < asked
                                  : t.cached == 0 && t.asked + t.again >= summary.queries + summary.base_queries);
        if (!first) asked = (size_t)t.asked;
        if (!first)
            first = records;
        else
            json_decref(records);
        safer_verification checked;
        safer_data *data = make_data();
        assert_ok(safer_verify(NULL, path, NULL, NULL, NULL, 1, NULL, &error));
        assert_ok(safer_verify(&checked, path, model, lexicon, data, 1, NULL, &error));
        assert_int_equal(checked.summary.certified, summary.certified);
        safer_summary_free(&checked.summary);
        safer_summary_free(&summary);
        safer_data_free(data);
        safer_model_free(model);
    }
    json_decref(first);
    safer_lexicon_free(lexicon);
}

/* A model that is random now and then is found before the run, or stops it. */
static void test_guard(void **state)
{
    safer_lexicon *lexicon = make_lexicon("representative");
    safer_certify_options o = safer_certify_options_default();
    safer_summary summary;
    safer_data *data = make_data();
    const char *path = temporary("guard.jsonl");
    (void)state;
    function very = {.noise = 600};
    safer_model *model = model_of(&very, safer_remote_options_default());
    summary = run(path, model, lexicon, &o);
    assert_true(safer_model_is_random(model) && summary.exact == 0 && safer_model_traffic(model).changed > 0);
    safer_summary_free(&summary);
    json_t *records = records_of(path);
    assert_true(json_is_true(json_object_get(json_object_get(json_array_get(records, 0), "model"), "random")));
    json_decref(records);
    assert_ok(safer_verify(NULL, path, NULL, NULL, NULL, 1, NULL, &error));
    assert_fails(safer_verify(NULL, path, model, lexicon, data, 1, NULL, &error), SAFER_INVALID,
                 "cannot be asked again");
    safer_model_free(model);

    /* Resumed with a model that seems constant this time, the run stays what it was. */
    char *bytes = read_file(path), *cut = bytes;
    for (int i = 0; i < 4; i++) cut = strchr(cut, '\n') + 1;
    assert_int_equal(truncate(path, cut - bytes), 0);
    free(bytes);
    function constant = {0};
    model = model_of(&constant, safer_remote_options_default());
    assert_ok(safer_certify(&summary, path, 1, model, lexicon, data, &o, &error));
    assert_true(summary.resumed == 3 && summary.exact == 0 && safer_model_is_random(model));
    safer_summary_free(&summary);
    safer_model_free(model);

    function declared = {0};
    safer_remote_options r = safer_remote_options_default();
    r.random = 1;
    model = model_of(&declared, r);
    summary = run(path, model, lexicon, &o);
    assert_true(summary.exact == 0 && safer_model_traffic(model).again == 0);
    safer_summary_free(&summary);
    safer_model_free(model);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* What escapes the first look is found by asking again during the run. */
static void test_guard_during_a_run(void **state)
{
    safer_lexicon *lexicon = make_lexicon("component");
    safer_certify_options o = safer_certify_options_default();
    safer_data *data = make_data();
    size_t found = 0, first = 0;
    (void)state;
    o.method = SAFER_METHOD_BINOMIAL;
    o.n = 2000;
    for (uint32_t seed = 0; seed < 20; seed++) {
        function f = {.noise = 60, .asked = 100 * seed};
        safer_model *model = model_of(&f, safer_remote_options_default());
        error = (safer_error){0};
        safer_status status = safer_certify(NULL, NULL, 0, model, lexicon, data, &o, &error);
        found += status == SAFER_INPUT && strstr(error.message, "for the same text") != NULL;
        first += status == SAFER_OK && safer_model_is_random(model);
        safer_model_free(model);
    }
    assert_int_equal(found + first,
                     20); /* some 200 texts are asked again, and 6% of them change: a miss has a chance of 4e-6 */
    assert_true(found > 0);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

/* Seven answers by the text, seven the other way round, and so on: too slow for the first look. */
static int classify_turning(void *context, const char *const *asked, const size_t *lengths, size_t count, int *labels)
{
    uint64_t *answers = context;
    (void)asked;
    for (size_t i = 0; i < count; i++) labels[i] = (int)((lengths[i] + (*answers)++ / 7) % 2);
    return 0;
}

static int classify_nothing(void *context, const char *const *asked, const size_t *lengths, size_t count, int *labels)
{
    (void)context, (void)asked, (void)lengths, (void)count, (void)labels;
    return 0;
}

/* A model that was seen to change gets no exact certificate any more, whatever comes after the error. */
static void test_changes_are_remembered(void **state)
{
    safer_lexicon *lexicon = make_lexicon("representative"); /* one draw per text: exact, while it is a function */
    safer_certify_options o = safer_certify_options_default();
    safer_remote_options r = safer_remote_options_default();
    safer_workspace *w = NULL;
    safer_model *model = NULL;
    safer_certificate c;
    uint64_t answers = 0;
    size_t exact_before = 0, refused = 0, exact_after = 0;
    char text[64];
    (void)state;
    r.labels = (const char *const[]){"neg", "pos"};
    r.label_count = 2;
    r.cache = 0;
    assert_ok(safer_model_from_callback(&model, classify_turning, &answers, &r, &error));
    for (int i = 0; i < 2000; i++) {
        const int length = snprintf(text, sizeof text, "text number %d is good %s", i, i % 2 ? "!" : "");
        const safer_status status = safer_certify_text(&c, &w, model, lexicon, text, (size_t)length, -1, &o, &error);
        refused += status == SAFER_INPUT;
        exact_before += status == SAFER_OK && c.exact && !refused;
        exact_after += status == SAFER_OK && c.exact && refused;
    }
    assert_true(exact_before > 0 && refused > 0 && safer_model_is_random(model));
    assert_int_equal(exact_after, 0);
    safer_model *other = NULL;
    assert_ok(safer_model_from_callback(&other, classify_nothing, NULL, &r, &error));
    assert_fails(safer_certify_text(&c, &w, other, lexicon, "good", 4, -1, &o, &error), SAFER_INVALID,
                 "workspace: it was made with another model");
    safer_workspace_free(w);
    w = NULL;
    assert_fails(safer_certify_text(&c, &w, other, lexicon, "good", 4, -1, &o, &error), SAFER_INPUT,
                 "left a text without an answer");
    safer_workspace_free(w);
    safer_model_free(other);
    safer_model_free(model);
    safer_lexicon_free(lexicon);
}

static void test_failures(void **state)
{
    safer_lexicon *lexicon = make_lexicon("component");
    safer_certify_options o = safer_certify_options_default();
    safer_data *data = make_data();
    safer_summary summary;
    const char *path = temporary("failure.jsonl");
    (void)state;
    function f = {.fails_at = 20};
    safer_model *model = model_of(&f, safer_remote_options_default());
    assert_fails(safer_certify(NULL, path, 0, model, lexicon, data, &o, &error), SAFER_CALLBACK, "reported failure");
    f.fails_at = 0;
    assert_ok(safer_certify(&summary, path, 1, model, lexicon, data, &o, &error)); /* nothing was lost */
    assert_true(summary.texts == TEXTS);
    safer_summary_free(&summary);
    f.wrong = 2;
    unlink(path);
    assert_fails(safer_certify(NULL, path, 0, model, lexicon, data, &o, &error), SAFER_INPUT,
                 "returned class 2; there are 2");
    safer_model_free(model);

    safer_remote_options r = safer_remote_options_default();
    safer_model *none = NULL;
    assert_fails(safer_model_from_callback(&none, classify, &f, &r, &error), SAFER_INVALID, "labels");
    r.labels = (const char *const[]){"same", "same"};
    r.label_count = 2;
    assert_fails(safer_model_from_callback(&none, classify, &f, &r, &error), SAFER_INVALID, "\"same\" twice");
    r.labels = two;
    r.timeout = (double)NAN;
    assert_fails(safer_model_from_callback(&none, classify, &f, &r, &error), SAFER_INVALID, "timeout");
    r = safer_remote_options_default();
    r.labels = two;
    r.label_count = 2;
    r.concurrency = 0;
    assert_fails(safer_model_from_callback(&none, classify, &f, &r, &error), SAFER_INVALID, "concurrency");
    r.concurrency = 1;
    assert_fails(safer_model_connect(&none, "ftp://x", &r, &error), SAFER_INVALID, "neither exec:COMMAND");
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void test_data_from_texts(void **state)
{
    safer_data *data = NULL;
    const char *const ids[] = {"x", NULL, "z"}, *const strings[] = {"one", "two", "a\0b"},
                      *const labels[] = {"2", "10", NULL};
    const size_t lengths[] = {3, 3, 3};
    (void)state;
    assert_ok(safer_data_from_texts(&data, strings, lengths, labels, ids, 3, &error));
    assert_int_equal(safer_data_label_count(data), 2);
    assert_string_equal(safer_data_label(data, 1), "10");
    assert_string_equal(safer_data_row(data, 1).id, "2");
    assert_int_equal(safer_data_row(data, 2).label, -1);
    assert_int_equal(safer_data_row(data, 2).text_length, 3);
    safer_data_free(data);
    assert_fails(safer_data_from_texts(&data, (const char *const[]){"\xff"}, NULL, NULL, NULL, 1, &error), SAFER_INPUT,
                 "line 1");
    assert_fails(safer_data_from_texts(&data, NULL, NULL, NULL, NULL, 0, &error), SAFER_INPUT, "no rows");
}

/* ------------------------------------------------------- a model that threads share */

enum { THREADS = 8 };

typedef struct shared {
    const safer_model *model;
    const safer_lexicon *lexicon;
    pthread_barrier_t start;
    atomic_size_t next;
} shared;

typedef struct certifier {
    shared *shared;
    pthread_t thread;
    safer_status status; /* the worst */
    int was_random;
    safer_certificate certificates[TEXTS]; /* of those texts that it took, .label is 1; without the arrays */
} certifier;

static safer_status certify_one(safer_certificate *out, safer_workspace **workspace, const shared *s, size_t i)
{
    safer_certify_options o = safer_certify_options_default();
    o.n = 300;
    return safer_certify_text(out, workspace, s->model, s->lexicon, texts[i], strlen(texts[i]), 1, &o, NULL);
}

/* All begin at once, each with a text of its own. */
static void *certify_some(void *context)
{
    certifier *c = context;
    safer_workspace *workspace = NULL;
    pthread_barrier_wait(&c->shared->start);
    for (size_t i; (i = atomic_fetch_add(&c->shared->next, 1)) < TEXTS;) {
        safer_status status = certify_one(&c->certificates[i], &workspace, c->shared, i);
        if (status != SAFER_OK) c->status = status;
        c->was_random |= safer_model_is_random(c->shared->model);
    }
    safer_workspace_free(workspace);
    return NULL;
}

static void certify_by_threads(safer_certificate out[TEXTS], const safer_model *model, const safer_lexicon *lexicon)
{
    certifier *certifiers = calloc(THREADS, sizeof *certifiers);
    shared s = {.model = model, .lexicon = lexicon};
    size_t done = 0;
    assert_non_null(certifiers);
    assert_int_equal(pthread_barrier_init(&s.start, NULL, THREADS), 0);
    for (int t = 0; t < THREADS; t++) {
        certifiers[t].shared = &s;
        assert_int_equal(pthread_create(&certifiers[t].thread, NULL, certify_some, &certifiers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(certifiers[t].thread, NULL);
        assert_int_equal(certifiers[t].status, SAFER_OK);
        for (size_t i = 0; i < TEXTS; i++) {
            if (certifiers[t].certificates[i].label != 1) continue;
            out[i] = certifiers[t].certificates[i];
            assert_int_equal(certifiers[t].was_random, safer_model_is_random(model));
            done++;
        }
    }
    assert_int_equal(done, TEXTS);
    pthread_barrier_destroy(&s.start);
    free(certifiers);
}

/* One model that nobody has looked into yet, eight threads: one of them does, once, and the
 * others wait for what it finds. `make tsan` watches. */
static void test_threads_share_a_model(void **state)
{
    safer_lexicon *lexicon = make_lexicon("component");
    safer_remote_options r = safer_remote_options_default();
    safer_certificate found[TEXTS], expected;
    safer_workspace *workspace = NULL;
    (void)state;
    r.concurrency = THREADS;
    for (int cache = 0; cache < 2; cache++) {
        function constant = {.none = 30}, other = {.none = 30};
        r.cache = r.function = cache;
        safer_model *model = model_of(&constant, r), *alone = model_of(&other, r);
        certify_by_threads(found, model, lexicon);
        assert_false(safer_model_is_random(model));
        assert_int_equal(safer_model_traffic(model).changed, 0);
        assert_int_equal(constant.asked, safer_model_traffic(model).asked + safer_model_traffic(model).again);
        shared s = {.model = alone, .lexicon = lexicon};
        for (size_t i = 0; i < TEXTS; i++) {
            assert_ok(certify_one(&expected, &workspace, &s, i));
            assert_int_equal(found[i].exact, expected.exact);
            assert_int_equal(found[i].n, expected.n);
            assert_int_equal(found[i].base, expected.base);
            assert_int_equal(found[i].prediction, expected.prediction);
            assert_int_equal(found[i].radius, expected.radius);
            assert_true(found[i].bound == expected.bound);
        }
        safer_workspace_free(workspace);
        workspace = NULL;
        safer_model_free(alone);
        safer_model_free(model);

        /* Its answers alternate: two questions in a row show it. */
        function fickle = {.alternates = 1};
        r.cache = r.function = 0;
        model = model_of(&fickle, r);
        certify_by_threads(found, model, lexicon);
        assert_true(safer_model_is_random(model));
        assert_int_equal(safer_model_traffic(model).again, 2);
        assert_int_equal(safer_model_traffic(model).changed, 1);
        for (size_t i = 0; i < TEXTS; i++) assert_false(found[i].exact);
        safer_model_free(model);
    }
    safer_lexicon_free(lexicon);
}

static safer_status whole_run(void *context, safer_error *e)
{
    safer_lexicon *lexicon = context;
    function f = {.none = 30, .classes = 2};
    safer_remote_options r = safer_remote_options_default();
    safer_certify_options o = safer_certify_options_default();
    safer_data *data = NULL;
    safer_model *model = NULL;
    r.labels = two;
    r.label_count = 2;
    r.cache = r.function = 1;
    r.model_name = "the function";
    o.n = 30;
    o.n0 = 10;
    safer_status status = safer_data_from_texts(&data, texts, NULL, labels_of, NULL, TEXTS, e);
    if (status == SAFER_OK) status = safer_model_from_callback(&model, classify, &f, &r, e);
    if (status == SAFER_OK) status = safer_certify(NULL, NULL, 0, model, lexicon, data, &o, e);
    safer_model_free(model);
    safer_data_free(data);
    return status;
}

static void test_allocations(void **state)
{
    safer_lexicon *lexicon = make_lexicon("component");
    (void)state;
    check_every_allocation(whole_run, lexicon);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_cache_of_texts),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_counts_are_those_of_the_draws),
        cmocka_unit_test(test_nothing_changes_the_records),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_guard_during_a_run),
        cmocka_unit_test(test_changes_are_remembered),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_data_from_texts),
        cmocka_unit_test(test_threads_share_a_model),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
