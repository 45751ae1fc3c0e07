/* Draws of many texts meet in the calls of one function: few calls, the same records, and everything that belongs to
 * the caller, its function and its progress, on the thread of the caller. */
#define _GNU_SOURCE
#include "support.h"

#include "base/buffer.h"
#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static safer_error error;
static const char *const two[] = {"neg", "pos"};

enum { TEXTS = 60 };

static safer_lexicon *lexicon;
static safer_data *data;

/* Texts of 8 words with many synonyms: draws are sampled. */
static int set_up(void **state)
{
    static const char *const words[] = {"good", "film", "long", "story", "plot", "actor"};
    static const char table[] = "good\tfine great nice\nfilm\tmovie picture\nlong\tlengthy slow\nstory\ttale yarn\n"
                                "plot\tscheme plan\nactor\tplayer star\n";
    static char lines[TEXTS][200];
    const char *texts[TEXTS], *labels[TEXTS];
    (void)state;
    for (size_t i = 0; i < TEXTS; i++) {
        size_t at = (size_t)snprintf(lines[i], sizeof lines[i], "Number %zu:", i);
        for (size_t k = 0; k < 16; k++)
            at += (size_t)snprintf(lines[i] + at, sizeof lines[i] - at, " %s", words[(i * 7 + k * k + k) % 6]);
        texts[i] = lines[i];
        labels[i] = two[i % 2];
    }
    lexicon = import_table(table, "component");
    assert_ok(safer_data_from_texts(&data, texts, NULL, labels, NULL, TEXTS, &error));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    safer_lexicon_free(lexicon);
    safer_data_free(data);
    return 0;
}

/* -------------------------------------------------------------------- a function */

typedef struct function {
    pthread_t caller;
    int calls, strangers, overlaps, running; /* of the function; from other threads; during others; under way */
    int reports, strange_reports;
    size_t texts, most;
    long nanoseconds; /* of a call */
} function;

static int classify(void *context, const char *const *texts, const size_t *lengths, size_t count, int *labels)
{
    function *f = context;
    f->strangers += !pthread_equal(f->caller, pthread_self());
    f->overlaps += f->running++ > 0;
    f->calls++;
    f->texts += count;
    if (count > f->most) f->most = count;
    if (f->nanoseconds) nanosleep(&(struct timespec){0, f->nanoseconds}, NULL);
    for (size_t i = 0; i < count; i++) {
        size_t sum = 0; /* of the words, so that synonyms matter */
        for (size_t k = 0; k < lengths[i]; k++) sum += (unsigned char)texts[i][k] == 'a';
        labels[i] = sum % 8 > 0;
    }
    f->running--;
    return 0;
}

static int report(void *context, const char *stage, uint64_t done, uint64_t total)
{
    function *f = context;
    (void)stage;
    (void)done;
    (void)total;
    f->reports++;
    f->strange_reports += !pthread_equal(f->caller, pthread_self());
    return 0;
}

static safer_model *model_of(function *f, size_t batch)
{
    safer_model *model = NULL;
    safer_remote_options o = safer_remote_options_default();
    o.labels = two;
    o.label_count = 2;
    o.model_name = "a function";
    o.batch = batch;
    f->caller = pthread_self();
    assert_ok(safer_model_from_callback(&model, classify, f, &o, &error));
    return model;
}

/* The records without the time they took and their checks. */
static void records_of(sf_buffer *out, const char *path)
{
    char line[1 << 16];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int first = 1; fgets(line, sizeof line, file); first = 0) {
        const char *end = strstr(line, ",\"seconds\"");
        assert_true(first || end);
        if (!first) assert_int_equal(sf_buffer_add(out, line, (size_t)(end - line)), 0);
    }
    fclose(file);
}

static void certify(function *f, size_t batch, const char *path)
{
    safer_model *model = model_of(f, batch);
    safer_certify_options o = safer_certify_options_default();
    o.n = 400;
    o.n0 = 40;
    o.progress = (safer_progress){report, f};
    assert_ok(safer_certify(NULL, path, 0, model, lexicon, data, &o, &error));
    safer_model_free(model);
}

/* ------------------------------------------------------------------------- tests */

static void test_few_calls_same_records(void **state)
{
    function alone = {0}, together = {.nanoseconds = 5000000};
    const char *path = temporary("small.jsonl");
    sf_buffer small = {0}, large = {0};
    (void)state;
    certify(&alone, 8, path); /* as many as a text is counted for: one text at a time */
    records_of(&small, path);
    path = temporary("large.jsonl");
    certify(&together, 1024, path);
    records_of(&large, path);
    assert_int_equal(small.length, large.length);
    assert_memory_equal(small.bytes, large.bytes, small.length);
    assert_true(alone.most <= 8);
    assert_true(together.most > 200 && together.most <= 1024);
    assert_true(together.calls < alone.calls / 4);
    sf_buffer_free(&small);
    sf_buffer_free(&large);
}

/* Runs, verifications and attacks: Python's functions live on one thread. It reports though it is always busy. */
static void test_callers_thread(void **state)
{
    function f = {.nanoseconds = 20000000};
    const char *path = temporary("thread.jsonl");
    const safer_progress progress = {report, &f};
    safer_attack_options a = safer_attack_options_default();
    safer_attack_summary attacked;
    (void)state;
    certify(&f, 64, path);
    assert_true(f.reports >= f.calls / 10); /* ten per second */
    f.nanoseconds = 1000000;
    safer_model *model = model_of(&f, 256);
    assert_ok(safer_verify(NULL, path, model, lexicon, data, 0, &progress, &error));
    a.progress = progress;
    a.max_queries = 50;
    assert_ok(safer_attack(&attacked, temporary("attack.jsonl"), 0, model, lexicon, data, &a, &error));
    safer_model_free(model);
    assert_int_equal(f.strangers + f.overlaps, 0);
    assert_int_equal(f.strange_reports, 0);
}

/* One text has nobody to wait for: its calls are those it asks for. */
static void test_alone(void **state)
{
    function f = {0};
    safer_model *model = model_of(&f, 1024);
    safer_workspace *w = NULL;
    safer_certificate c;
    static const char text[] = "A good film with a long story, a plot, a good actor, a good plot and a long film.";
    safer_certify_options o = safer_certify_options_default();
    (void)state;
    o.threads = 4;
    assert_ok(safer_certify_text(&c, &w, model, lexicon, text, strlen(text), -1, &o, &error));
    assert_int_equal(f.strangers, 0);
    assert_true(f.calls < 30);
    safer_workspace_free(w);
    safer_model_free(model);
}

/* ------------------------------------------------------------------ a server's threads */

enum { CLIENTS = 16 };

typedef struct clients {
    safer_model *model;
    safer_certificate found[CLIENTS];
    atomic_int failed;
} clients;

static void certify_one(void *context, size_t begin, size_t end, int worker)
{
    clients *c = context;
    safer_workspace *w = NULL;
    safer_certify_options o = safer_certify_options_default();
    const safer_row row = safer_data_row(data, begin);
    (void)end;
    (void)worker;
    o.n = 400;
    if (safer_certify_text(&c->found[begin], &w, c->model, lexicon, row.text, row.text_length, -1, &o, NULL) !=
        SAFER_OK)
        atomic_store(&c->failed, 1);
    safer_workspace_free(w);
}

/* The questions of threads that know nothing of each other meet too, and each gets its own answers. */
static void test_threads_share(void **state)
{
    function alone = {0}, together = {.nanoseconds = 5000000};
    clients a = {.model = model_of(&alone, 1024)}, b = {.model = model_of(&together, 1024)};
    (void)state;
    sf_parallel(1, CLIENTS, 1, certify_one, &a);
    sf_parallel(CLIENTS, CLIENTS, 1, certify_one, &b);
    assert_false(a.failed || b.failed);
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(a.found[i].prediction, b.found[i].prediction);
        assert_int_equal(a.found[i].certified, b.found[i].certified);
        assert_int_equal(a.found[i].radius, b.found[i].radius);
        assert_int_equal(a.found[i].queries, b.found[i].queries);
    }
    assert_true(together.calls < alone.calls / 3);
    assert_int_equal(together.overlaps, 0);
    safer_model_free(a.model);
    safer_model_free(b.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_few_calls_same_records),
                                       cmocka_unit_test(test_callers_thread), cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_threads_share)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
