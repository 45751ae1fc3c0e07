/* The HTTP transport against a real server (http_server.py), with faults on the way: answers that are late, cut short
 * or refused, a server that ends, certificates, tokens. */
#define _GNU_SOURCE
#include "support.h"

#include "base/progress.h"
#include "remote/remote.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TEXTS = 16, THREADS = 5 };
static const char token[] = "tok-1234567890/abc+def=";

static char *names[] = {"neg", "pos"};
static const sf_labels labels = {names, 2, 0};
static safer_error error;

/* --------------------------------------------------------------- the server */

typedef struct server {
    pid_t pid;
    int input; /* it ends when this is closed */
    int port;
} server;

static server plain, guarded;

static server start_server(const char *option, const char *value)
{
    server s = {0};
    int in[2], out[2];
    char line[32] = "";
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) abort();
    s.pid = fork();
    if (s.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execlp("python3", "python3", SOURCE_DIR "/tests/http_server.py", option, value, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    FILE *port = fdopen(out[0], "r");
    if (s.pid < 0 || !port || !fgets(line, sizeof line, port)) fail_msg("the server does not start");
    fclose(port);
    s.input = in[1];
    s.port = atoi(line);
    return s;
}

static void stop_server(server *s)
{
    close(s->input);
    waitpid(s->pid, NULL, 0);
}

static CURL *control; /* keeps its own connection, so that it does not count */

static size_t collect(char *bytes, size_t size, size_t count, void *context)
{
    FILE *out = context;
    return fwrite(bytes, size, count, out);
}

static json_t *fetch(const char *path, int post)
{
    char url[100], *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", plain.port, path);
    curl_easy_reset(control);
    curl_easy_setopt(control, CURLOPT_URL, url);
    curl_easy_setopt(control, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(control, CURLOPT_WRITEDATA, out);
    if (post) curl_easy_setopt(control, CURLOPT_POSTFIELDS, "");
    assert_int_equal(curl_easy_perform(control), CURLE_OK);
    fclose(out);
    json_t *json = json_loads(text, 0, NULL);
    free(text);
    assert_non_null(json);
    return json;
}

static long stat_of(const char *name)
{
    json_t *stats = fetch("/stats", 0);
    long value = (long)json_integer_value(json_object_get(stats, name));
    json_decref(stats);
    return value;
}

/* Zeros, once what an earlier test has given up no longer keeps the server busy. */
static void clear(void)
{
    for (int i = 0; i < 500 && stat_of("now") > 0; i++) usleep(20000);
    usleep(100000); /* for requests that are on their way to it */
    for (int i = 0; i < 500 && stat_of("now") > 0; i++) usleep(20000);
    json_decref(fetch("/clear", 1));
}

/* -------------------------------------------------------------------- asking */

static safer_remote_options quick(void)
{
    return (safer_remote_options){.timeout = 20, .retries = 12, .concurrency = 4};
}

static sf_transport open_at(int port, const char *path, safer_remote_options options)
{
    char address[300];
    sf_transport transport = {0};
    snprintf(address, sizeof address, "http://127.0.0.1:%d%s", port, path);
    assert_ok(sf_http_open(&transport, address, &labels, &options, &error));
    assert_string_equal(transport.arch, "http");
    return transport;
}

/* Texts with a known answer: more e than a is pos. */
static int text_of(char out[64], unsigned number)
{
    unsigned a = number % 5, e = number / 5 % 4;
    snprintf(out, 64, "%u: %.*s \"\\\n%.*s", number, (int)a, "aaaaa", (int)e, "eeeee");
    return e > a;
}

typedef struct asker {
    sf_transport *transport;
    unsigned first;
    size_t batch;
    int with_scores;
    safer_status status;
    safer_error error;
    int mistakes;
    pthread_t thread;
} asker;

static void *ask_many(void *argument)
{
    asker *self = argument;
    char texts[TEXTS][64];
    sf_span spans[TEXTS];
    int expected[TEXTS], found[TEXTS];
    float scores[TEXTS * 2];
    for (unsigned i = 0; i < TEXTS; i++) {
        expected[i] = text_of(texts[i], self->first + i);
        spans[i] = (sf_span){texts[i], strlen(texts[i])};
        found[i] = -7;
    }
    for (size_t at = 0; at < TEXTS && self->status == SAFER_OK; at += self->batch)
        self->status = self->transport->ask(self->transport->self, spans + at,
                                            TEXTS - at < self->batch ? TEXTS - at : self->batch, found + at,
                                            self->with_scores ? scores + 2 * at : NULL, &self->error);
    for (size_t i = 0; i < TEXTS && self->status == SAFER_OK; i++) {
        self->mistakes += found[i] != expected[i];
        if (self->with_scores) self->mistakes += (scores[2 * i + 1] > scores[2 * i]) != expected[i];
    }
    return NULL;
}

/* Several threads ask at once; every one gets the right answers, or all fail. */
static void ask_at_once(sf_transport *transport, size_t batch, int with_scores, safer_status expected,
                        const char *words)
{
    asker askers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        askers[i] = (asker){.transport = transport, .first = i * TEXTS, .batch = batch, .with_scores = with_scores};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_many, &askers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) pthread_join(askers[i].thread, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        if (askers[i].status != expected || !strstr(askers[i].error.message, words))
            fail_msg("status %d, \"%s\"", (int)askers[i].status, askers[i].error.message);
        assert_int_equal(askers[i].mistakes, 0);
    }
}

static void works(const char *path, safer_remote_options options, size_t batch)
{
    sf_transport transport = open_at(plain.port, path, options);
    safer_traffic traffic = {0};
    for (int scores = 0; scores < 2; scores++) ask_at_once(&transport, batch, scores, SAFER_OK, "");
    transport.tell(transport.self, &traffic);
    assert_true(traffic.requests >= 2 * THREADS * (TEXTS / batch) && traffic.retries < traffic.requests);
    transport.free(transport.self);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static safer_status ask_one(sf_transport *transport, const char *text, int *label)
{
    const sf_span span = {text, strlen(text)};
    error = (safer_error){0};
    return transport->ask(transport->self, &span, 1, label, NULL, &error);
}

/* --------------------------------------------------------------------- tests */

static safer_remote_options of_profile(safer_profile profile, const char *request, const char *answer, const char *name)
{
    safer_remote_options options = quick();
    options.profile = profile;
    options.request = request;
    options.answer = answer;
    options.name = name;
    return options;
}

static void test_profiles(void **state)
{
    (void)state;
    works("/json", quick(), 7);
    works("/scores", quick(), 8);
    works("/one", of_profile(SAFER_PROFILE_JSON, "{\"text\": {{text}}}", "/result/label", NULL), 6);
    works("/pipeline", of_profile(SAFER_PROFILE_JSON, "{\"inputs\": {{texts}}}", NULL, NULL), 8);
    works("/v2/models/m/infer", of_profile(SAFER_PROFILE_KSERVE, NULL, NULL, NULL), 8);
    works("/v2/models/scores/infer", of_profile(SAFER_PROFILE_KSERVE, NULL, NULL, "input"), 8);
    works("/predict", of_profile(SAFER_PROFILE_TEI, NULL, NULL, NULL), 8);
    works("/v1/chat/completions", of_profile(SAFER_PROFILE_OPENAI, NULL, NULL, "some-model"), 8);
}

static void test_faults(void **state)
{
    (void)state;
    static const char *const faults[] = {"503",   "500",    "429&after=0", "slow",
                                         "reset", "empty",  "malformed",   "half",
                                         "chunk", "header", "html",        "503,reset,half,malformed,slow,empty"};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        char path[100];
        snprintf(path, sizeof path, "/json?share=0.2&fault=%s", faults[i]);
        clear();
        works(path, quick(), 4);
        if (stat_of("faults") == 0) fail_msg("no fault of kind %s", faults[i]);
    }
    works("/v1/chat/completions?share=0.2&fault=503,reset,half,malformed",
          of_profile(SAFER_PROFILE_OPENAI, NULL, NULL, "m"), 8);
    works("/v2/models/m/infer?share=0.2&fault=503,reset,half,malformed",
          of_profile(SAFER_PROFILE_KSERVE, NULL, NULL, NULL), 4);
    works("/predict?share=0.2&fault=503,reset,half,malformed", of_profile(SAFER_PROFILE_TEI, NULL, NULL, NULL), 4);
}

/* A fault that stays ends in an error, after as many tries as there should be. */
static void stays(const char *path, safer_status status, const char *words, long tries)
{
    safer_remote_options options = quick();
    options.retries = 2;
    sf_transport transport = open_at(plain.port, path, options);
    int label;
    clear();
    assert_fails(ask_one(&transport, "a", &label), status, words);
    assert_non_null(strstr(error.message, "http://127.0.0.1:"));
    assert_null(strstr(error.message, "fault="));
    assert_int_equal(strstr(error.message, "(tried 3 times)") != NULL, tries == 3);
    if (tries) assert_int_equal(stat_of("requests"), tries);
    transport.free(transport.self);
}

static void test_lasting_faults(void **state)
{
    (void)state;
    stays("/json?fault=500", SAFER_SYSTEM, "answered 500: {\"error\": \"fault 500\"}", 3);
    stays("/json?fault=429&after=0", SAFER_SYSTEM, "answered 429", 3);
    stays("/json?fault=malformed", SAFER_INPUT, "not JSON", 3);
    stays("/json?fault=html", SAFER_INPUT, "it begins: <html> <body>Bad gateway \xe2\x98\x83 </body>", 3);
    stays("/json?fault=half", SAFER_SYSTEM, "with 10 bytes ", 3);
    stays("/json?fault=chunk", SAFER_SYSTEM, "127.0.0.1", 3);
    stays("/json?fault=404", SAFER_SYSTEM, "answered 404", 1);
    stays("/nowhere", SAFER_SYSTEM, "answered 404", 1);
    stays("/json?fault=nan", SAFER_INPUT, "NaN", 1);
    stays("/json?fault=count", SAFER_INPUT, "labels: 0, texts: 1", 1);
    stays("/json?fault=unknown", SAFER_INPUT, "maybe", 1);
    stays("/json?fault=shape", SAFER_INPUT, "no list", 1);
    stays("/json?fault=huge", SAFER_INPUT, "larger than 64 MB", 1);
    stays("/json?fault=307", SAFER_SYSTEM, "a redirect to http://example.org/elsewhere?...;", 1);
}

static void test_others_continue(void **state)
{
    (void)state;
    safer_remote_options options = quick();
    options.retries = 1;
    sf_transport transport = open_at(plain.port, "/json?fault=500&share=0.6", options);
    int failed = 0, done = 0, label;
    for (int i = 0; i < 40; i++) { /* a failure leaves the transport as it was */
        safer_status status = ask_one(&transport, "aaee", &label);
        assert_true(status == SAFER_OK || status == SAFER_SYSTEM);
        if (status == SAFER_OK) assert_int_equal(label, 0);
        *(status == SAFER_OK ? &done : &failed) += 1;
    }
    assert_true(failed > 0 && done > 0);
    transport.free(transport.self);
    /* One request of many fails for good: the rest of its call is dropped, other calls are not. */
    options = of_profile(SAFER_PROFILE_JSON, "{\"text\": {{text}}}", "/result/label", NULL);
    transport = open_at(plain.port, "/one?fault=404&share=0.02", options);
    asker askers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        askers[i] = (asker){.transport = &transport, .first = i * TEXTS, .batch = TEXTS};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_many, &askers[i]), 0);
    }
    failed = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_true(askers[i].status == SAFER_OK ||
                    (askers[i].status == SAFER_SYSTEM && strstr(askers[i].error.message, "404")));
        assert_int_equal(askers[i].mistakes, 0);
        failed += askers[i].status != SAFER_OK;
    }
    assert_in_range(failed, 1, THREADS - 1);
    transport.free(transport.self);
}

static void test_connections(void **state)
{
    (void)state;
    safer_remote_options options = quick();
    options.concurrency = 3;
    sf_transport transport = open_at(plain.port, "/json?fault=slow&delay=0.02", options);
    assert_int_equal(transport.concurrency, 3);
    assert_int_equal(transport.batch, 32);
    clear();
    ask_at_once(&transport, 2, 0, SAFER_OK, "");
    assert_int_equal(stat_of("requests"), THREADS * TEXTS / 2);
    assert_int_equal(stat_of("at_once"), 3); /* as many as allowed, never more */
    assert_int_equal(stat_of("connections"), 3);
    transport.free(transport.self);

    options = of_profile(SAFER_PROFILE_JSON, "{\"text\": {{text}}}", "/result/label", NULL);
    transport = open_at(plain.port, "/one?fault=slow&delay=0.05", options);
    clear();
    ask_at_once(&transport, TEXTS, 0, SAFER_OK, ""); /* one text per request: all of a call at once */
    assert_int_equal(stat_of("requests"), THREADS * TEXTS);
    assert_int_equal(stat_of("at_once"), 4);
    assert_int_equal(stat_of("connections"), 4);
    transport.free(transport.self);
}

static void test_waiting(void **state)
{
    (void)state;
    safer_remote_options options = quick();
    int label;
    options.retries = 1;
    sf_transport transport = open_at(plain.port, "/json?fault=429&after=1", options);
    double begin_time = seconds();
    assert_fails(ask_one(&transport, "a", &label), SAFER_SYSTEM, "answered 429");
    assert_true(seconds() - begin_time >= 1); /* as asked for */
    transport.free(transport.self);

    options.concurrency = 1; /* nobody waits for a request that waits */
    transport = open_at(plain.port, "/json?fault=429&after=3&only=17%3A", options);
    asker patient = {.transport = &transport, .first = 17, .batch = TEXTS};
    clear();
    assert_int_equal(pthread_create(&patient.thread, NULL, ask_many, &patient), 0);
    while (stat_of("faults") == 0) usleep(1000);
    begin_time = seconds();
    for (int i = 0; i < 5; i++) assert_ok(ask_one(&transport, "e", &label));
    assert_true(seconds() - begin_time < 2.5);
    assert_int_equal(stat_of("faults"), 1); /* the other still waits */
    pthread_join(patient.thread, NULL);
    assert_int_equal(patient.status, SAFER_SYSTEM);
    assert_int_equal(stat_of("faults"), 2);
    transport.free(transport.self);
}

static void test_time_outs(void **state)
{
    (void)state;
    safer_remote_options options = quick();
    options.timeout = 0.3;
    options.retries = 1;
    int label;
    sf_transport transport = open_at(plain.port, "/json?fault=slow&delay=3", options);
    double begin_time = seconds();
    assert_fails(ask_one(&transport, "a", &label), SAFER_SYSTEM, "(tried 2 times)");
    assert_non_null(strstr(error.message, "timed out"));
    assert_true(seconds() - begin_time < 2.5);
    transport.free(transport.self);
    options.retries = 8;
    transport = open_at(plain.port, "/json?fault=slow&delay=3&share=0.1",
                        options); /* a slow answer is asked for again */
    ask_at_once(&transport, 6, 0, SAFER_OK, "");
    transport.free(transport.self);
}

/* Nobody waits for a service, for the next try or for a connection who was asked to stop. */
static int stop_after_a_while(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage, (void)done, (void)total;
    return seconds() > *(double *)context;
}

static void test_cancelled(void **state)
{
    (void)state;
    const char *paths[] = {"/json?fault=slow&delay=30", "/json?fault=429&after=30", "/json?fault=503"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        double begin_time = seconds(), end = begin_time + 0.2;
        safer_remote_options options = quick();
        options.timeout = 60;
        options.retries = 1000;
        int label;
        sf_transport transport = open_at(plain.port, paths[i], options);
        safer_progress progress = {stop_after_a_while, &end};
        sf_meter meter = {.progress = &progress, .stage = "asking"};
        const sf_duty before = sf_duty_change((sf_duty){&meter, 0});
        assert_fails(ask_one(&transport, "a", &label), SAFER_CANCELLED, "cancelled while http://127.0.0.1");
        (void)sf_duty_change(before);
        transport.free(transport.self);
        assert_true(seconds() - begin_time < 5);
    }
}

static void test_dead_server(void **state)
{
    (void)state;
    safer_remote_options options = quick();
    options.retries = 1;
    int label;
    sf_transport transport = open_at(1, "/", options);
    ask_at_once(&transport, 8, 0, SAFER_SYSTEM, "http://127.0.0.1:1/: Failed to connect");
    transport.free(transport.self);

    server mortal = start_server("--labels", "neg,pos");
    transport = open_at(mortal.port, "/json", options);
    assert_ok(ask_one(&transport, "e", &label));
    assert_int_equal(label, 1);
    stop_server(&mortal);
    assert_fails(ask_one(&transport, "e", &label), SAFER_SYSTEM, "(tried 2 times)");
    transport.free(transport.self);
    transport = open_at(plain.port, "/json", options); /* closed without being asked anything */
    transport.free(transport.self);
}

static void test_replies(void **state)
{
    (void)state;
    const sf_span texts[] = {{"REFUSE", 6}, {"e", 1}, {"FILTER", 6}, {"NULL", 4}, {"a", 1}, {"\0e", 2}};
    static const int expected[] = {SF_NO_LABEL, 1, SF_NO_LABEL, SF_NO_LABEL, 0, 1};
    int found[6];
    float scores[12];
    sf_transport transport = open_at(plain.port, "/v1/chat/completions",
                                     of_profile(SAFER_PROFILE_OPENAI, NULL, NULL, "m"));
    clear();
    assert_ok(transport.ask(transport.self, texts, 6, found, scores, &error));
    assert_memory_equal(found, expected, sizeof found);
    assert_true(scores[0] == 0 && scores[1] == 0 && scores[2] == 0 && scores[3] == 1 && scores[4] == 0 &&
                scores[5] == 0);
    assert_int_equal(stat_of("requests"), 6); /* what is no label is not asked again */
    transport.free(transport.self);
}

static void test_token(void **state)
{
    (void)state;
    safer_remote_options options = quick();
    sf_transport transport;
    int label;
    setenv("SAFER_TEST_TOKEN", token, 1);
    setenv("SAFER_TEST_WRONG", "wrong-0987654321", 1);
    setenv("SAFER_TEST_EMPTY", "", 1);
    setenv("SAFER_TEST_LINES", "tok-123\nX-Other: 1", 1);
    options.token = "SAFER_TEST_TOKEN";
    transport = open_at(guarded.port, "/json", options);
    assert_ok(ask_one(&transport, "e", &label));
    transport.free(transport.self);
    transport = open_at(guarded.port, "/json?fault=echo&key=hush-hush-hush",
                        options); /* a server that tells all it knows */
    assert_fails(ask_one(&transport, "e", &label), SAFER_SYSTEM, "\"Bearer ***\"");
    assert_null(strstr(error.message, token));
    assert_null(strstr(error.message, "hush"));
    transport.free(transport.self);
    options.token = "SAFER_TEST_WRONG";
    transport = open_at(guarded.port, "/json", options);
    assert_fails(ask_one(&transport, "e", &label), SAFER_SYSTEM,
                 "answered 401: {\"error\": \"bad token: Bearer ***\"}");
    assert_null(strstr(error.message, "0987"));
    transport.free(transport.self);
    static const struct {
        const char *variable, *address, *words;
    } cases[] = {{"SAFER_TEST_EMPTY", "http://h/", "\"SAFER_TEST_EMPTY\" is empty"},
                 {"SAFER_TEST_UNSET", "http://h/", "is not set"},
                 {"SAFER_TEST_LINES", "http://h/", "no token has"},
                 {"SAFER_TEST_TOKEN", "http://me:word@h/", "names a user"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        options.token = cases[i].variable;
        assert_fails(sf_http_open(&transport, cases[i].address, &labels, &options, &error), SAFER_INVALID,
                     cases[i].words);
        assert_null(strstr(error.message, "tok-"));
        assert_null(strstr(error.message, "word"));
    }
    options = quick();
    transport = open_at(plain.port, "/nowhere?key=hush-hush-hush", options);
    assert_fails(ask_one(&transport, "e", &label), SAFER_SYSTEM, "/nowhere?...: answered 404");
    assert_null(strstr(error.message, "hush"));
    transport.free(transport.self);
    assert_fails(sf_http_open(&transport, "gopher://h/", &labels, &options, &error), SAFER_INVALID, "address");
    options.profile = (safer_profile)4;
    assert_fails(sf_http_open(&transport, "http://h/", &labels, &options, &error), SAFER_INVALID, "profile");
}

/* A certificate that nobody vouches for is refused, at once and by name. */
static void test_certificates(void **state)
{
    (void)state;
    char command[600], address[64];
    const char *file = temporary("server.pem");
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 "
             "-addext subjectAltName=IP:127.0.0.1 "
             "-keyout %s.key -out %s.crt 2>/dev/null && cat %s.key %s.crt > %s",
             file, file, file, file, file);
    if (system(command) != 0) skip();
    safer_remote_options options = quick();
    sf_transport transport = {0};
    int label;
    server secure = start_server("--certificate", file);
    snprintf(address, sizeof address, "https://127.0.0.1:%d/json", secure.port);
    assert_ok(sf_http_open(&transport, address, &labels, &options, &error));
    assert_fails(ask_one(&transport, "e", &label), SAFER_SYSTEM, "certificate");
    assert_null(strstr(error.message, "tried"));
    transport.free(transport.self);
    snprintf(command, sizeof command, "%s.crt", file);
    setenv("CURL_CA_BUNDLE", command, 1);
    assert_ok(sf_http_open(&transport, address, &labels, &options, &error));
    assert_ok(ask_one(&transport, "e", &label));
    assert_int_equal(label, 1);
    ask_at_once(&transport, 4, 1, SAFER_OK, "");
    transport.free(transport.self);
    unsetenv("CURL_CA_BUNDLE");
    stop_server(&secure);
    unlink(command);
    snprintf(command, sizeof command, "%s.key", file);
    unlink(command);
}

static safer_status open_and_ask(void *context, safer_error *failure)
{
    const sf_span texts[] = {{"a", 1}, {"e", 1}};
    safer_remote_options options = quick();
    sf_transport transport = {0};
    int found[2];
    options.token = "SAFER_TEST_TOKEN";
    options.concurrency = 2;
    safer_status status = sf_http_open(&transport, context, &labels, &options, failure);
    if (status != SAFER_OK) return status;
    status = transport.ask(transport.self, texts, 2, found, NULL, failure);
    transport.free(transport.self);
    return status;
}

static void test_no_memory(void **state)
{
    (void)state;
    char address[64];
    snprintf(address, sizeof address, "http://127.0.0.1:%d/json", plain.port);
    check_every_allocation(open_and_ask, address);
}

static int begin(void **state)
{
    (void)state;
    setenv("no_proxy", "127.0.0.1", 1);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    control = curl_easy_init();
    plain = start_server("--labels", "neg,pos");
    guarded = start_server("--token", token);
    return 0;
}

static int end(void **state)
{
    (void)state;
    curl_easy_cleanup(control);
    stop_server(&plain);
    stop_server(&guarded);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profiles),       cmocka_unit_test(test_faults),
        cmocka_unit_test(test_lasting_faults), cmocka_unit_test(test_others_continue),
        cmocka_unit_test(test_connections),    cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_time_outs),      cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_dead_server),    cmocka_unit_test(test_replies),
        cmocka_unit_test(test_token),          cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
