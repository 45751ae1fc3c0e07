/* Which remote model it is, and whether it is a function of the text: names, the probe set, and exact certificates
 * of models that answer by place, by neighbours, by the time of asking, or by chance. */
#define _GNU_SOURCE
#include "support.h"

#include "remote/probe.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static safer_error error;

/* ------------------------------------------------------------- a small world */

static const char *const two[] = {"neg", "pos"};
static const char *const originals[] = {"Text: a good film.", "Text: a fine film.", "Text: a great film."};

typedef enum habit { HONEST, BY_PLACE, BY_NEIGHBOURS, FIRST_TIME, DECLINES } habit;

enum { LOGGED = 20000 };

/* The caller's function, and all that it was asked. */
typedef struct function {
    habit habit;
    int turned;           /* answers the other class */
    const char *original; /* the text that is certified, */
    pthread_mutex_t lock;
    size_t calls, count;
    struct {
        size_t call;
        char *text;
    } log[LOGGED];
} function;

static function *function_new(habit how)
{
    function *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->habit = how;
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

static void function_free(function *f)
{
    for (size_t i = 0; i < f->count; i++) free(f->log[i].text);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static size_t times_asked(const function *f, const char *text)
{
    size_t times = 0;
    for (size_t i = 0; i < f->count; i++) times += strcmp(f->log[i].text, text) == 0;
    return times;
}

/* in whose draws alone the function shows its habit: the texts that are asked about before show nothing. */
static int is_draw(const function *f, const char *text)
{
    return strncmp(text, "Text:", 5) == 0 && (!f->original || strcmp(text, f->original) != 0);
}

static int answer_of(const function *f, const char *text, size_t place, size_t count)
{
    if (f->habit == DECLINES && strlen(text) % 3 == 0) return -1;
    if (is_draw(f, text)) {
        if (f->habit == BY_PLACE) return (int)(place % 2);
        if (f->habit == BY_NEIGHBOURS) return (int)(count % 2);
        if (f->habit == FIRST_TIME) return times_asked(f, text) == 0;
    }
    return (strlen(text) % 5 < 3) ^ f->turned;
}

static int classify(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    function *f = context;
    (void)lengths;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < count; i++) labels[i] = answer_of(f, texts[i], i, count);
    for (size_t i = 0; i < count; i++, f->count++) {
        assert_true(f->count < LOGGED);
        f->log[f->count].call = f->calls;
        f->log[f->count].text = strdup(texts[i]);
    }
    f->calls++;
    pthread_mutex_unlock(&f->lock);
    return 0;
}

static safer_remote_options named(const char *name)
{
    safer_remote_options o = safer_remote_options_default();
    o.labels = two;
    o.label_count = 2;
    o.model_name = name;
    return o;
}

static safer_model *model_of(function *f, const safer_remote_options *o)
{
    safer_model *model = NULL;
    assert_ok(safer_model_from_callback(&model, classify, f, o, &error));
    return model;
}

static safer_lexicon *make_lexicon(const char *kernel)
{
    static const char table[] = "good\tfine great\nfilm\tmovie picture\nlong\tlengthy\n";
    safer_lexicon_options o = safer_lexicon_options_default();
    safer_lexicon *lexicon = NULL;
    o.table = write_temporary("table.tsv", table, sizeof table - 1);
    o.kernel = kernel;
    assert_ok(safer_lexicon_import(&lexicon, &o, NULL, &error));
    return lexicon;
}

static safer_data *make_data(void)
{
    safer_data *data = NULL;
    const char *const labels[] = {"pos", "neg", "pos"};
    assert_ok(safer_data_from_texts(&data, originals, NULL, labels, NULL, COUNT(originals), &error));
    return data;
}

/* ------------------------------------------------------------- asked twice */

/* No exact certificate of a model whose answers depend on more than the text. */
static void test_not_a_function(void **state)
{
    static const char *const kernels[] = {"representative", "component"};
    (void)state;
    for (habit how = BY_PLACE; how <= FIRST_TIME; how++)
        for (size_t k = 0; k < 2 * COUNT(kernels); k++) {
            safer_lexicon *lexicon = make_lexicon(kernels[k / 2]);
            safer_certify_options o = safer_certify_options_default();
            safer_remote_options r = named(NULL);
            size_t refused = 0;
            r.function = (int)(k % 2); /* declared or not */
            for (size_t i = 0; i < COUNT(originals); i++) {
                function *f = function_new(how);
                f->original = originals[i];
                safer_model *model = model_of(f, &r);
                safer_workspace *w = NULL;
                safer_certificate c;
                const size_t length = strlen(originals[i]);
                const safer_status first = safer_certify_text(&c, &w, model, lexicon, originals[i], length, -1, &o,
                                                              &error);
                refused += first == SAFER_INPUT;
                if (first == SAFER_INPUT) {
                    assert_non_null(strstr(error.message, "for the same text"));
                    assert_int_equal(strstr(error.message, "as was declared") != NULL, r.function);
                    assert_true(safer_model_is_random(model));
                    assert_ok(safer_certify_text(&c, &w, model, lexicon, originals[i], length, -1, &o, &error));
                    assert_false(c.exact);
                }
                safer_workspace_free(w);
                safer_model_free(model);
                function_free(f);
            }
            assert_true(refused >= 2); /* one of the three may be its own only draw */
            safer_lexicon_free(lexicon);
        }
}

/* Whether two calls had the same texts, in any order. */
static int same_company(const function *f, size_t a, size_t b)
{
    size_t sizes[2] = {0}, shared = 0;
    for (size_t i = 0; i < f->count; i++) {
        sizes[0] += f->log[i].call == a;
        sizes[1] += f->log[i].call == b;
        for (size_t j = 0; f->log[i].call == a && j < f->count; j++)
            shared += f->log[j].call == b && strcmp(f->log[i].text, f->log[j].text) == 0;
    }
    return sizes[0] == sizes[1] && shared == sizes[0];
}

/* Every draw was asked by two calls, and with different company, unless some answers were
 * cached. Returns how many draws there were. */
static size_t check_company(const function *f, int cached)
{
    size_t draws = 0;
    for (size_t i = 0; i < f->count; i++) {
        size_t first = SIZE_MAX;
        int apart = 0;
        if (strncmp(f->log[i].text, "Text:", 5) != 0) continue;
        for (size_t j = 0; j < f->count; j++) {
            if (strcmp(f->log[j].text, f->log[i].text) != 0) continue;
            if (j < i) break; /* looked at before */
            if (first == SIZE_MAX) first = f->log[j].call;
            apart |= f->log[j].call != first && (cached || !same_company(f, f->log[j].call, first));
            if (apart) break;
        }
        if (times_asked(f, f->log[i].text) < 2) fail_msg("asked once: %s", f->log[i].text);
        if (first != SIZE_MAX) {
            draws++;
            if (!apart) fail_msg("asked in one company only: %s", f->log[i].text);
        }
    }
    return draws;
}

static void test_every_draw_is_asked_twice(void **state)
{
    static const struct {
        const char *kernel, *text;
        size_t draws, batch;
        int threads;
    } cases[] = {
        {"component", "Text: a good film.", 9, 0, 1},
        {"component", "Text: long.", 2, 0, 1},
        {"component", "Text: good good film film good long.", 486, 0, 1}, /* more than a batch of the certificate */
        {"component", "Text: good good film film good long.", 486, 7, 4},
        {"component", "Text: good film long lengthy.", 36, 0, 4},
        {"representative", "Text: a long and lengthy, great, good, fine film.", 1, 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int declared = 0; declared < 2; declared++) {
            safer_lexicon *lexicon = make_lexicon(cases[i].kernel);
            safer_certify_options o = safer_certify_options_default();
            safer_remote_options r = named("f");
            r.function = r.cache = declared;
            r.batch = cases[i].batch;
            r.concurrency = o.threads = cases[i].threads;
            function *f = function_new(HONEST);
            safer_model *model = model_of(f, &r);
            safer_workspace *w = NULL;
            safer_certificate c;
            for (uint64_t round = 0; round < 2; round++) { /* the cache, where there is one, does not answer for it */
                assert_ok(
                    safer_certify_text(&c, &w, model, lexicon, cases[i].text, strlen(cases[i].text), -1, &o, &error));
                assert_true(c.exact);
                assert_int_equal(c.queries, 2 * cases[i].draws);
                assert_true(safer_model_traffic(model).again >= (round + 1) * cases[i].draws);
            }
            const size_t seen = check_company(f, declared);
            assert_in_range(seen, cases[i].draws, cases[i].draws + 1); /* the text itself need not be a draw of it */
            safer_workspace_free(w);
            safer_model_free(model);
            function_free(f);
            safer_lexicon_free(lexicon);
        }
}

/* ---------------------------------------------------------------- the probe set */

/* The digest of a function's answers, by the rule of remote/probe.h. */
static sf_digest digest_of(const function *f)
{
    sf_digest digest;
    char bytes[32 * SF_PROBE_TEXTS] = "";
    for (size_t i = 0; i < SF_PROBE_TEXTS; i++) {
        const int label = answer_of(f, sf_probe_texts[i], 0, 1);
        const char *name = label < 0 ? "" : two[label];
        sprintf(bytes + strlen(bytes), "%zu:%s,", strlen(name), name);
    }
    assert_ok(sf_sha256(&digest, bytes, strlen(bytes), &error));
    return digest;
}

static void test_probe(void **state)
{
    (void)state;
    for (size_t i = 0; i < SF_PROBE_TEXTS; i++)
        for (size_t j = 0; j <= i; j++)
            assert_true(strlen(sf_probe_texts[i]) > 0 && (j == i || strcmp(sf_probe_texts[i], sf_probe_texts[j]) != 0));
    for (size_t batch = 1; batch <= 64; batch *= 4) {
        function *f = function_new(batch == 4 ? DECLINES : HONEST);
        safer_remote_options r = named("f");
        r.batch = batch;
        safer_model *model = model_of(f, &r);
        assert_string_equal(sf_model_probe_digest(model), "");
        for (int again = 0; again < 2; again++) assert_ok(sf_model_identify(model, &error)); /* asks once only */
        assert_string_equal(sf_model_probe_digest(model), digest_of(f).hex);
        assert_int_equal(f->count, 2 * SF_PROBE_TEXTS);
        assert_int_equal(safer_model_traffic(model).again, 2 * SF_PROBE_TEXTS);
        assert_int_equal(safer_model_traffic(model).asked, 0);
        for (size_t i = 0; i < SF_PROBE_TEXTS; i++) assert_int_equal(times_asked(f, sf_probe_texts[i]), 2);
        if (batch == 64) assert_int_equal(f->calls, 7); /* 32; 1, 2, 4, 8, 16, 1 */
        sf_model_set_random(model);
        assert_string_equal(sf_model_probe_digest(model), ""); /* it is not known by its answers any more */
        safer_model_free(model);
        function_free(f);
    }
}

/* Answers 0, 1, 0, 1 ... */
static int classify_in_turn(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    int *next = context;
    (void)texts, (void)lengths;
    for (size_t i = 0; i < count; i++) labels[i] = (*next)++ / 3 % 2;
    return 0;
}

static void test_probe_finds_chance(void **state)
{
    int next = 0;
    safer_model *model = NULL;
    safer_remote_options r = named("f");
    (void)state;
    assert_ok(safer_model_from_callback(&model, classify_in_turn, &next, &r, &error));
    error = (safer_error){0};
    assert_ok(sf_model_identify(model, &error));
    assert_int_equal(error.status, SAFER_OK); /* nothing went wrong */
    assert_true(safer_model_is_random(model));
    assert_string_equal(sf_model_probe_digest(model), "");
    safer_model_free(model);
    r.function = 1; /* declared, and refuted */
    assert_ok(safer_model_from_callback(&model, classify_in_turn, &next, &r, &error));
    assert_fails(sf_model_identify(model, &error), SAFER_INPUT, "not a function of the text, as was declared");
    safer_model_free(model);
}

/* ------------------------------------------------------------------------ runs */

static void test_names(void **state)
{
    safer_lexicon *lexicon = make_lexicon("component");
    safer_data *data = make_data();
    safer_certify_options o = safer_certify_options_default();
    safer_attack_options a = safer_attack_options_default();
    safer_remote_options r = named(NULL);
    safer_summary summary;
    safer_attack_summary attacked;
    safer_against_summary checked;
    function *f = function_new(HONEST);
    safer_model *model = model_of(f, &r), *none = NULL;
    const char *path = temporary("names.jsonl");
    (void)state;
    assert_fails(safer_certify(&summary, path, 0, model, lexicon, data, &o, &error), SAFER_INVALID, "model_name");
    assert_fails(safer_attack(&attacked, path, 0, model, lexicon, data, &a, &error), SAFER_INVALID, "model_name");
    assert_int_equal(f->count, 0); /* refused before anything is asked */
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(safer_certify(&summary, NULL, 0, model, lexicon, data, &o, &error)); /* nothing is written: no name */
    safer_summary_free(&summary);
    assert_ok(safer_attack(&attacked, NULL, 0, model, lexicon, data, &a, &error));
    r.model_name = "f";
    safer_model *with_name = model_of(f, &r);
    assert_ok(safer_certify(&summary, path, 0, with_name, lexicon, data, &o, &error));
    safer_summary_free(&summary);
    assert_ok(safer_verify(NULL, path, with_name, lexicon, data, 1, NULL, &error));
    assert_fails(safer_verify(NULL, path, model, lexicon, data, 1, NULL, &error), SAFER_INVALID, "model_name");
    assert_fails(safer_attack_against(&checked, path, NULL, 0, model, lexicon, data, &a, &error), SAFER_INVALID,
                 "model_name");
    safer_model_free(model);
    safer_model_free(with_name);
    static const char *const bad[] = {"", "two\nlines", "\x7f", "\xff"};
    char longest[202];
    memset(longest, 'x', 201);
    longest[201] = '\0';
    for (size_t i = 0; i <= COUNT(bad); i++) {
        r.model_name = i < COUNT(bad) ? bad[i] : longest;
        assert_fails(safer_model_from_callback(&none, classify, f, &r, &error), SAFER_INVALID, "model_name");
    }
    longest[200] = '\0';
    r.model_name = longest;
    safer_model_free(model_of(f, &r));
    function_free(f);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

static void test_declared(void **state)
{
    safer_remote_options r = named("f");
    safer_model *none = NULL;
    function *f = function_new(HONEST);
    (void)state;
    r.cache = 1;
    assert_fails(safer_model_from_callback(&none, classify, f, &r, &error), SAFER_INVALID, "cache: only a model");
    r.function = 1;
    safer_model_free(model_of(f, &r));
    r.random = 1;
    assert_fails(safer_model_from_callback(&none, classify, f, &r, &error), SAFER_INVALID, "function: the model");
    function_free(f);
}

/* Another model behind the same address, or the same under another name, neither continues nor confirms a run. */
static void test_another_model(void **state)
{
    safer_lexicon *lexicon = make_lexicon("component");
    safer_data *data = make_data();
    safer_certify_options o = safer_certify_options_default();
    safer_attack_options a = safer_attack_options_default();
    safer_remote_options r = named("f"), other_name = named("g");
    safer_summary summary;
    safer_attack_summary attacked;
    safer_against_summary checked;
    const char *path = temporary("run.jsonl"), *attack = temporary("attack.jsonl");
    function *f = function_new(HONEST), *turned = function_new(HONEST);
    (void)state;
    turned->turned = 1;
    safer_model *model = model_of(f, &r);
    assert_ok(safer_certify(&summary, path, 0, model, lexicon, data, &o, &error));
    safer_summary_free(&summary);
    assert_ok(safer_attack(&attacked, attack, 0, model, lexicon, data, &a, &error));
    safer_model *others[] = {model_of(turned, &r), model_of(f, &other_name)};
    for (size_t i = 0; i < COUNT(others); i++) {
        const char *const why = i == 0 ? "the model's answers to the probe set changed"
                                       : "model.name is \"f\" there, \"g\" here";
        assert_fails(safer_certify(&summary, path, 1, others[i], lexicon, data, &o, &error), SAFER_INPUT, why);
        assert_fails(safer_attack(&attacked, attack, 1, others[i], lexicon, data, &a, &error), SAFER_INPUT, why);
        assert_fails(safer_verify(NULL, path, others[i], lexicon, data, 1, NULL, &error), SAFER_INPUT, why);
        assert_fails(safer_attack_against(&checked, path, NULL, 0, others[i], lexicon, data, &a, &error), SAFER_INPUT,
                     why);
        safer_model_free(others[i]);
    }
    assert_ok(safer_certify(&summary, path, 1, model, lexicon, data, &o, &error));
    assert_int_equal(summary.resumed, COUNT(originals));
    safer_summary_free(&summary);
    assert_ok(safer_attack(&attacked, attack, 1, model, lexicon, data, &a, &error));
    assert_ok(safer_verify(NULL, path, model, lexicon, data, 1, NULL, &error));
    safer_model_free(model);
    function_free(turned);
    function_free(f);
    safer_data_free(data);
    safer_lexicon_free(lexicon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_a_function), cmocka_unit_test(test_every_draw_is_asked_twice),
        cmocka_unit_test(test_probe),          cmocka_unit_test(test_probe_finds_chance),
        cmocka_unit_test(test_names),          cmocka_unit_test(test_declared),
        cmocka_unit_test(test_another_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
