/* The parts of the server: routes, requests, jobs, connections, workers, metrics, and what a
 * certificate shows while it grows. tests/test_cli_serve.py asks the whole server. */
#define _GNU_SOURCE
#include "support.h"

#include "base/hash.h"
#include "base/progress.h"
#include "serve/answer.h"
#include "serve/connections.h"
#include "serve/workers.h"

#include <arpa/inet.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---------------------------------------------------------------- fixtures */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: the model does not answer */

/* Says 0 for nine draws of ten, by a hash of the text. */
static safer_status classify(const safer_model *model, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *error)
{
    (void)model, (void)scores, (void)scratch, (void)error;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    for (size_t i = 0; i < count; i++) labels[i] = sf_hash(texts[i].bytes, texts[i].length, 0) % 10 == 0;
    return SAFER_OK;
}

static const sf_model_class stand_in = {.arch = "stand-in", .classify = classify};
static char *names[] = {"neg", "pos"};
static safer_model model = {.class = &stand_in, .classes = 2, .labels = names};
static safer_lexicon *lexicon;
static safer_certify_options settings; /* of the server: set up with the lexicon */

#define LONG_TEXT "good bad film good bad film good bad film good bad film good bad film"

static int make_lexicon(void **state)
{
    static const char table[] = "good\tgreat fine superb\nbad\tawful poor dreadful\nfilm\tmovie picture flick\n";
    safer_error error = {0};
    safer_lexicon_options options = safer_lexicon_options_default();
    (void)state;
    options.table = write_temporary("table.tsv", table, sizeof table - 1);
    options.kernel = "topk:3";
    assert_ok(safer_lexicon_import(&lexicon, &options, NULL, &error));
    settings = safer_certify_options_default();
    return 0;
}

static int free_lexicon(void **state)
{
    (void)state;
    safer_lexicon_free(lexicon);
    return 0;
}

static const sf_job_limits limits = {.text = 100, .texts = 3, .certify = &settings, .model = &model};

static sf_job *read_job(sf_route_id route, const char *body)
{
    sf_job *job = NULL;
    sf_fault fault = {0};
    if (sf_job_read(&job, &sf_routes[route], body, strlen(body), &limits, &fault)) fail_msg("%s", fault.message);
    return job;
}

/* ------------------------------------------------------------------ routes */

static void test_routes(void **state)
{
    (void)state;
    for (int i = 0; i < SF_ROUTES; i++) {
        assert_int_equal(sf_routes[i].id, i);
        assert_ptr_equal(sf_route_find(sf_routes[i].path), &sf_routes[i]);
        assert_true(sf_routes[i].works || !(sf_routes[i].many || sf_routes[i].labels));
        assert_true(sf_routes[i].guarded || strncmp(sf_routes[i].path, "/v1/", 4) != 0);
    }
    assert_int_equal(sf_route_find("/v1/words")->id, SF_ROUTE_WORDS);
    assert_int_equal(sf_route_find("/v1/words/")->id, SF_ROUTE_NONE);
    assert_int_equal(sf_route_find("other")->id, SF_ROUTE_NONE);
    assert_int_equal(sf_route_find("")->id, SF_ROUTE_NONE);
}

/* ---------------------------------------------------------------- requests */

static void test_requests(void **state)
{
    (void)state;
    sf_job *job = read_job(SF_ROUTE_CERTIFY, "{\"texts\": [\"a\\u0000b\", \"\"], \"labels\": [\"pos\", null]}");
    assert_int_equal(job->count, 2);
    assert_int_equal(job->texts[0].length, 3);
    assert_memory_equal(job->texts[0].text, "a\0b", 3);
    assert_int_equal(job->texts[0].label, 1);
    assert_int_equal(job->texts[1].label, -1);
    assert_true(job->labelled);
    sf_job_release(job);
    job = read_job(SF_ROUTE_CERTIFY,
                   "{\"text\": \"a\", \"radius\": 3, \"delta\": 0.001, \"n\": 40, \"model\": \"first\"}");
    assert_int_equal(job->terms.radius, 3);
    assert_true(job->terms.delta == 0.001);
    assert_int_equal(job->terms.n, 40);
    assert_int_equal(job->terms.n0, 40); /* no more draws for the answer than for the certificate */
    assert_false(job->second);
    sf_job_release(job);
    job = read_job(SF_ROUTE_PREDICT, "{\"text\": \"a\"}");
    assert_int_equal(job->terms.n, 5000);
    assert_int_equal(job->terms.n0, 5000);
    assert_true(job->terms.delta == 0.01);
    assert_int_equal(job->count, 1);
    assert_false(job->labelled);
    sf_job_release(job);
}

#define FOUR_FACES "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80"
#define FIFTY_BYTES "01234567890123456789012345678901234567890123456789"

static void test_faults(void **state)
{
    static const struct {
        sf_route_id route;
        const char *body, *code;
        int status;
    } cases[] = {
        {SF_ROUTE_PREDICT, "", "bad_json", 400},
        {SF_ROUTE_PREDICT, "{\"text\": \"\xff\"}", "bad_json", 400},
        {SF_ROUTE_PREDICT, "{\"\xc3\xa9" FOUR_FACES, "bad_json", 400},
        {SF_ROUTE_PREDICT, "[]", "bad_request", 400},
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"label\": \"pos\"}", "bad_request", 400},
        {SF_ROUTE_CERTIFY, "{\"text\": \"a\", \"label\": \"" FOUR_FACES FOUR_FACES FOUR_FACES FOUR_FACES "\"}",
         "bad_request", 400},
        {SF_ROUTE_STREAM, "{\"texts\": [\"a\"]}", "bad_request", 400},
        {SF_ROUTE_WORDS, "{\"text\": \"a\", \"label\": \"pos\"}", "bad_request", 400},
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"delta\": 0.02}", "bad_request", 400}, /* more than the server's */
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"delta\": 0}", "bad_request", 400},
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"delta\": \"0.001\"}", "bad_request", 400},
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"n\": 5001}", "bad_request", 400},
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"n\": 0}", "bad_request", 400},
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"n\": 10.0}", "bad_request", 400},
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"radius\": 0}", "bad_request", 400},
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"radius\": \"any\"}", "bad_request", 400},
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"model\": \"second\"}", "bad_request", 400}, /* there is none */
        {SF_ROUTE_PREDICT, "{\"text\": \"a\", \"model\": 2}", "bad_request", 400},
        {SF_ROUTE_WORDS, "{\"text\": \"a\", \"radius\": 1}", "bad_request", 400},
        {SF_ROUTE_PREDICT, "{\"texts\": [\"a\", \"b\", \"c\", \"d\"]}", "too_large", 413},
        {SF_ROUTE_PREDICT, "{\"text\": \"" FIFTY_BYTES FIFTY_BYTES "+\"}", "too_large", 413},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sf_job *job = NULL;
        sf_fault fault = {0};
        assert_int_equal(
            sf_job_read(&job, &sf_routes[cases[i].route], cases[i].body, strlen(cases[i].body), &limits, &fault), -1);
        assert_string_equal(fault.code, cases[i].code);
        assert_int_equal(fault.status, cases[i].status);
        char *text = sf_fault_json(&fault);
        assert_non_null(text); /* so the message is UTF-8 */
        json_t *value = json_loads(text, 0, NULL);
        assert_string_equal(json_string_value(json_object_get(json_object_get(value, "error"), "message")),
                            fault.message);
        json_decref(value);
        free(text);
    }
}

/* -------------------------------------------------------------------- jobs */

static int woken;
static void count_waking(void *context)
{
    (void)context;
    woken++;
}

static void test_job_ends_once(void **state)
{
    sf_fault fault;
    (void)state;
    sf_job *job = read_job(SF_ROUTE_PREDICT, "{\"text\": \"a\"}");
    job->wake = count_waking;
    job->waiting = 1;
    woken = 0;
    sf_job_finish(job, strdup("first"));
    assert_int_equal(woken, 1);
    sf_fault_set(&fault, 504, "deadline", "late");
    sf_job_fail(job, &fault, NULL);
    sf_job_finish(job, strdup("second"));
    assert_int_equal(woken, 1);
    assert_int_equal(job->status, 200);
    assert_string_equal(job->answer, "first");
    sf_job_release(job);

    job = read_job(SF_ROUTE_PREDICT, "{\"text\": \"a\"}"); /* what it holds is given back with it */
    atomic_size_t account = 10;
    job->account = &account;
    job->held = 3;
    sf_job_finish(job, strdup("seven.."));
    assert_int_equal(account, 17);
    sf_job_release(job);
    assert_int_equal(account, 7);

    job = read_job(SF_ROUTE_PREDICT, "{\"text\": \"a\"}");
    sf_job_fail(job, &fault, "why\xc3");
    sf_job_finish(job, strdup("second"));
    assert_int_equal(job->status, 504);
    assert_non_null(strstr(job->answer, "late"));
    assert_string_equal(job->detail, "why");
    assert_true(atomic_load(&job->cancelled));
    sf_job_release(job);
}

static void test_slow_readers(void **state)
{
    sf_job *job = read_job(SF_ROUTE_STREAM, "{\"text\": \"a\"}");
    (void)state;
    for (int i = 0; i < 100000; i++) sf_job_emit(job, "progress", json_pack("{s:i}", "n", i), 0);
    assert_true(job->events.length < 1 << 17);
    for (int i = 0; i < 100000; i++) { /* never quite catches up */
        job->sent = job->events.length - 1;
        sf_job_emit(job, "progress", json_pack("{s:i}", "n", i), 0);
    }
    assert_true(job->events.length < 1 << 17);
    assert_string_equal(job->events.bytes, "\nevent: progress\ndata: {\"n\":99999}\n\n");
    size_t before = job->events.length;
    sf_job_emit(job, "result", json_pack("{s:i}", "n", 1), 1);
    assert_string_equal(job->events.bytes + before, "event: result\ndata: {\"n\":1}\n\n");
    assert_int_equal(job->status, 200);
    before = job->events.length;
    sf_job_emit(job, "progress", json_pack("{s:i}", "n", 2), 0);
    assert_int_equal(job->events.length, before);
    sf_job_release(job);
}

/* ------------------------------------------------------------- connections */

static void wait_for(int (*condition)(void *), void *context)
{
    double limit = sf_seconds() + 10;
    while (!condition(context)) {
        assert_true(sf_seconds() < limit);
        usleep(2000);
    }
}

static int has_status(void *context)
{
    sf_job *job = context;
    pthread_mutex_lock(&job->lock);
    int status = job->status;
    pthread_mutex_unlock(&job->lock);
    return status;
}

static void test_connections(void **state)
{
    sf_connections connections;
    safer_error error = {0};
    int pair[2], retry = 0;
    char byte;
    (void)state;
    assert_ok(sf_connections_start(&connections, (sf_connection_limits){.patience = 5}, &error));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    sf_connection *connection = sf_connection_open(&connections, pair[0], NULL, 60);
    assert_int_equal(sf_connections_count(&connections), 1);
    sf_job *job = read_job(SF_ROUTE_PREDICT, "{\"text\": \"a\"}");
    sf_connection_set(&connections, connection, SF_WAITING, job, 0.01); /* for work, too long: told so, not shut */
    wait_for(has_status, job);
    assert_int_equal(job->status, 504);
    assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
    double start = sf_seconds();
    sf_connection_set(&connections, connection, SF_ASKING, NULL, 0.1); /* sends, too slowly: shut */
    assert_int_equal(recv(pair[1], &byte, 1, 0), 0);
    assert_true(sf_seconds() - start >= 0.1);
    start = sf_seconds();
    sf_connection_set(&connections, connection, SF_IDLE, NULL, 60);
    assert_int_equal(sf_connection_begin(&connections, connection, 60, 1, 1, &retry), 0);
    assert_int_equal(connection->doing, SF_ASKING);
    sf_connection_set(&connections, connection, SF_IDLE, NULL, 60);
    sf_connections_drain(&connections, 0.2);
    assert_true(sf_seconds() - start >= 0.2);
    assert_int_equal(sf_connection_begin(&connections, connection, 60, 1, 1, &retry), -1); /* too late */
    assert_int_equal(connection->doing, SF_IDLE);
    assert_int_equal(sf_connection_begin(&connections, NULL, 60, 1, 1, &retry), -1);
    sf_connection_close(&connections, connection);
    sf_connections_drain(&connections, 60); /* nobody is there */
    sf_connections_end(&connections);
    sf_job_release(job);
    close(pair[0]);
    close(pair[1]);
}

typedef struct late {
    sf_connections *connections;
    sf_connection *opened;
    int fd;
} late;

/* As a server on a machine that is busy: reads, and opens another, a little later. */
static void *read_late(void *argument)
{
    late *l = argument;
    char byte;
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    assert_int_equal(recv(l->fd, &byte, 1, 0), 1);
    l->opened = sf_connection_open(l->connections, -1, NULL, 60);
    return NULL;
}

static void test_unread(void **state)
{
    sf_connections connections;
    safer_error error = {0};
    pthread_t reader;
    int pair[2];
    (void)state;
    assert_ok(sf_connections_start(&connections, (sf_connection_limits){.patience = 5}, &error));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    sf_connection *connection = sf_connection_open(&connections, pair[0], NULL, 60);
    assert_int_equal(send(pair[1], "P", 1, 0), 1);
    late l = {.connections = &connections, .fd = pair[0]};
    const double start = sf_seconds();
    assert_int_equal(pthread_create(&reader, NULL, read_late, &l), 0);
    sf_connections_drain(&connections, 0.01); /* has been silent for longer, but has asked */
    assert_true(sf_seconds() - start >= 0.3);
    sf_connections_await(&connections, 2);
    assert_int_equal(sf_connections_opened(&connections), 2);
    pthread_join(reader, NULL);
    sf_connections_await(&connections, 3); /* never comes: not for ever */
    sf_connection_close(&connections, l.opened);
    sf_connection_close(&connections, connection);
    sf_connections_end(&connections);
    close(pair[0]);
    close(pair[1]);
}

static int is_shut(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Who gives way when it is full: the silent, then the idle, then those that ask too slowly; nobody else. */
static void test_room(void **state)
{
    enum { ALL = 5 };
    sf_connections connections;
    safer_error error = {0};
    int pairs[ALL + 4][2], retry = 0;
    sf_connection *c[ALL + 4];
    (void)state;
    assert_ok(sf_connections_start(&connections, (sf_connection_limits){.all = ALL, .patience = 60}, &error));
    for (int i = 0; i < ALL + 4; i++) assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
    for (int i = 0; i < ALL; i++) assert_non_null(c[i] = sf_connection_open(&connections, pairs[i][0], NULL, 60));
    sf_job *job = read_job(SF_ROUTE_PREDICT, "{\"text\": \"a\"}");
    sf_connection_set(&connections, c[0], SF_ANSWERED, NULL, 60);
    sf_connection_set(&connections, c[1], SF_WAITING, job, 60);
    assert_int_equal(sf_connection_begin(&connections, c[2], 60, 1, 1, &retry), 0);
    sf_connection_set(&connections, c[3], SF_IDLE, NULL, 60); /* the fifth is silent */
    for (int i = 0; i < 2; i++) {
        assert_non_null(c[ALL + i] = sf_connection_open(&connections, pairs[ALL + i][0], NULL, 60));
        sf_connection_set(&connections, c[ALL + i], SF_ANSWERED, NULL, 60);
        assert_true(is_shut(pairs[4][1]));
        assert_int_equal(is_shut(pairs[3][1]), i == 1);
    }
    c[2]->since += 100; /* a slow machine must not matter */
    c[ALL + 2] = sf_connection_open(&connections, pairs[ALL + 2][0], NULL, 60);
    assert_int_equal(sf_connection_begin(&connections, c[ALL + 2], 60, 1, 1, &retry), 503);
    assert_int_equal(retry, 1);
    sf_connection_close(&connections, c[ALL + 2]);
    c[2]->since -= 102;
    c[ALL + 3] = sf_connection_open(&connections, pairs[ALL + 3][0], NULL, 60);
    assert_int_equal(sf_connection_begin(&connections, c[ALL + 3], 60, 1, 1, &retry), 0);
    for (int i = 0; i < ALL; i++) assert_int_equal(is_shut(pairs[i][1]), i >= 2);
    for (int i = 0; i < ALL + 4; i++) {
        if (i != ALL + 2) sf_connection_close(&connections, c[i]);
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    assert_int_equal(sf_connections_count(&connections), 0);
    assert_int_equal(connections.closing, 0);
    sf_connections_end(&connections);
    sf_job_release(job);
}

/* One who has gone is told from one who has only said all. */
static void test_gone(void **state)
{
    sf_connections connections;
    safer_error error = {0};
    int pair[2];
    char got[64] = "";
    (void)state;
    assert_ok(sf_connections_start(&connections, (sf_connection_limits){.patience = 60}, &error));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    sf_connection *connection = sf_connection_open(&connections, pair[0], NULL, 60);
    sf_job *job = read_job(SF_ROUTE_PREDICT, "{\"text\": \"a\"}");
    int retry = 0;
    assert_int_equal(sf_connection_begin(&connections, connection, 60, 1, 1, &retry), 0);
    sf_connection_set(&connections, connection, SF_WAITING, job, 60);
    shutdown(pair[1], SHUT_WR);
    assert_int_equal(recv(pair[1], got, sizeof got - 1, 0), 25);
    assert_string_equal(got, "HTTP/1.1 100 Continue\r\n\r\n");
    usleep(200000);
    assert_int_equal(recv(pair[1], got, sizeof got, MSG_DONTWAIT), -1); /* once is enough */
    assert_false(has_status(job));
    close(pair[1]);
    wait_for(has_status, job);
    assert_int_equal(job->status, 499);
    assert_true(atomic_load(&job->cancelled));
    sf_connection_close(&connections, connection);
    sf_connections_end(&connections);
    sf_job_release(job);
    close(pair[0]);
}

static sf_client *enter(sf_clients *clients, const char *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    sf_client *client = NULL;
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        assert_int_equal(sf_client_enter(&client, clients, (struct sockaddr *)&v4), 0);
    else if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        assert_int_equal(sf_client_enter(&client, clients, (struct sockaddr *)&v6), 0);
    else
        fail();
    return client;
}

static void test_clients(void **state)
{
    sf_clients clients = {.rate = 2};
    int seconds = 0;
    (void)state;
    assert_null(enter(&clients, "127.0.0.1"));
    assert_null(enter(&clients, "::1"));
    sf_client *one = enter(&clients, "192.0.2.1"), *network = enter(&clients, "2001:db8::1");
    assert_ptr_equal(enter(&clients, "192.0.2.1"), one);
    assert_ptr_not_equal(enter(&clients, "192.0.2.2"), one);
    assert_ptr_equal(enter(&clients, "2001:db8::ffff:1"), network);
    assert_ptr_not_equal(enter(&clients, "2001:db8:0:1::1"), network);
    assert_int_equal(one->connections, 2);
    assert_int_equal(clients.count, 4);

    const double now = one->at;
    assert_true(sf_client_may_ask(one, &clients, now, &seconds) && sf_client_may_ask(one, &clients, now, &seconds));
    assert_false(sf_client_may_ask(one, &clients, now, &seconds));
    assert_int_equal(seconds, 1);
    assert_false(sf_client_may_ask(one, &clients, now + 0.4, &seconds));
    assert_true(sf_client_may_ask(one, &clients, now + 0.6, &seconds));
    assert_true(sf_client_may_ask(NULL, &clients, now, &seconds));
    clients.rate = 0.01; /* one at a time, then a wait */
    one->left = 0;
    assert_false(sf_client_may_ask(one, &clients, one->at, &seconds));
    assert_int_equal(seconds, 100);

    clients.rate = 2;
    sf_client_leave(one);
    sf_client_leave(one);
    sf_client_leave(NULL);
    sf_clients_sweep(&clients, one->at); /* gone, but it has asked a moment ago */
    assert_int_equal(clients.count, 4);
    sf_clients_sweep(&clients, one->at + 1);
    assert_int_equal(clients.count, 3);
    sf_clients_free(&clients);
}

/* ----------------------------------------------------------------- workers */

static int offer(sf_workers *workers, sf_job *job, int *seconds)
{
    pthread_mutex_lock(&job->lock);
    int refused = sf_workers_offer(workers, job, seconds);
    pthread_mutex_unlock(&job->lock);
    return refused;
}

static int all_taken(void *context)
{
    sf_gauges gauges = {0};
    sf_workers_gauge(context, &gauges);
    return gauges.waiting == 0;
}

static void test_workers(void **state)
{
    enum { JOBS = 20 };
    safer_error error = {0};
    sf_metrics metrics;
    sf_workers *workers = NULL;
    sf_job *jobs[JOBS], *blocking = read_job(SF_ROUTE_PREDICT, "{\"text\": \"good film\"}"),
                        *full = read_job(SF_ROUTE_PREDICT, "{\"text\": \"bad\"}");
    sf_gauges gauges = {0};
    int seconds = 0;
    (void)state;
    safer_certify_options options = safer_certify_options_default();
    options.threads = 1;
    sf_metrics_start(&metrics);
    assert_ok(sf_workers_start(&workers, &model, lexicon, &options, 3 * JOBS, &metrics, &error));
    pthread_mutex_lock(&gate);
    assert_int_equal(offer(workers, blocking, &seconds), 0);
    wait_for(all_taken, workers);
    for (int i = 0; i < JOBS; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"texts\": [\"good film %d\", \"bad\", \"good good film %d\"]}", i, i);
        jobs[i] = read_job(i % 2 ? SF_ROUTE_CERTIFY : SF_ROUTE_PREDICT, body);
        assert_int_equal(offer(workers, jobs[i], &seconds), 0);
    }
    sf_workers_gauge(workers, &gauges);
    assert_int_equal(gauges.waiting, 3 * JOBS);
    assert_int_equal(gauges.busy, 1);
    assert_int_equal(offer(workers, full, &seconds), -1);
    assert_true(seconds >= 1);
    assert_int_equal(full->references, 1);
    atomic_store(&jobs[3]->cancelled, 1); /* its client is gone */
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < JOBS; i++) {
        if (i == 3) continue;
        wait_for(has_status, jobs[i]);
        assert_int_equal(jobs[i]->status, 200);
        json_t *answer = json_loads(jobs[i]->answer, 0, NULL);
        assert_int_equal(json_array_size(json_object_get(answer, i % 2 ? "certificates" : "answers")), 3);
        json_decref(answer);
    }
    sf_workers_end(workers); /* finishes what is there */
    assert_int_equal(jobs[3]->status, 0);
    for (int i = 0; i < JOBS; i++) sf_job_release(jobs[i]);
    assert_int_equal(metrics.texts, 1 + 3 * (JOBS - 1));
    sf_job_release(blocking);
    sf_job_release(full);
    sf_metrics_end(&metrics);
}

/* Many threads, a text that is alone or not: the same answers. */
static void test_workers_threads(void **state)
{
    enum { JOBS = 30 };
    safer_error error = {0};
    char *expected[JOBS] = {0};
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        sf_metrics metrics;
        sf_workers *workers = NULL;
        sf_job *jobs[JOBS];
        int seconds;
        safer_certify_options options = safer_certify_options_default();
        options.threads = threads;
        sf_metrics_start(&metrics);
        assert_ok(sf_workers_start(&workers, &model, lexicon, &options, 100, &metrics, &error));
        for (int i = 0; i < JOBS; i++) {
            char body[200];
            snprintf(body, sizeof body, "{\"text\": \"%d " LONG_TEXT "\"}", i);
            jobs[i] = read_job(SF_ROUTE_CERTIFY, body);
            assert_int_equal(offer(workers, jobs[i], &seconds), 0);
            if (i < 5) wait_for(has_status, jobs[i]); /* alone */
        }
        sf_workers_end(workers);
        for (int i = 0; i < JOBS; i++) {
            assert_int_equal(jobs[i]->status, 200);
            if (!expected[i]) expected[i] = strdup(jobs[i]->answer);
            assert_string_equal(jobs[i]->answer, expected[i]);
            sf_job_release(jobs[i]);
        }
        sf_metrics_end(&metrics);
    }
    for (int i = 0; i < JOBS; i++) free(expected[i]);
}

/* ----------------------------------------------------------------- answers */

static json_int_t integer_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void check_answer(const char *text, const safer_certificate *c)
{
    json_t *answer = json_loads(text, 0, NULL), *shares = json_object_get(answer, "shares");
    assert_non_null(answer);
    assert_null(strchr(text, '\n'));
    assert_int_equal(json_object_size(answer), 12);
    assert_int_equal(json_object_size(shares), 2);
    for (size_t k = 0; k < 2; k++) assert_true(json_real_value(json_object_get(shares, names[k])) == c->shares[k]);
    assert_string_equal(json_string_value(json_object_get(answer, "leading")), names[c->prediction]);
    assert_true(json_real_value(json_object_get(answer, "confidence")) == c->shares[c->prediction]);
    assert_true(json_real_value(json_object_get(answer, "bound")) == c->bound);
    assert_int_equal(json_is_true(json_object_get(answer, "abstained")), c->abstained);
    assert_int_equal(json_is_true(json_object_get(answer, "exact")), c->exact);
    assert_int_equal(integer_of(answer, "words"), (json_int_t)c->words);
    assert_int_equal(integer_of(answer, "slots"), (json_int_t)c->slots);
    assert_int_equal(integer_of(answer, "queries"), (json_int_t)c->queries);
    if (c->abstained) { /* no answer, so nothing holds */
        assert_true(json_is_null(json_object_get(answer, "label")));
        assert_true(json_is_false(json_object_get(answer, "certified")));
        assert_int_equal(integer_of(answer, "radius"), 0);
    } else {
        assert_string_equal(json_string_value(json_object_get(answer, "label")), names[c->prediction]);
        assert_int_equal(json_is_true(json_object_get(answer, "certified")), c->certified);
        if (c->radius == SAFER_ALL)
            assert_string_equal(json_string_value(json_object_get(answer, "radius")), "all");
        else
            assert_int_equal(integer_of(answer, "radius"), (json_int_t)c->radius);
    }
    json_decref(answer);
}

static safer_status give_answer(const safer_certificate *c, safer_error *error)
{
    char *text = NULL;
    safer_status status = safer_answer_json(&text, c, &model, error);
    if (status == SAFER_OK) check_answer(text, c);
    free(text);
    return status;
}

static void test_answer(void **state)
{
    const double shares[] = {0.9, 1 - 0.9};
    const safer_certificate certain = {.words = 5,
                                       .slots = 3,
                                       .shares = shares,
                                       .bound = 1 / 3.0,
                                       .certified = 1,
                                       .radius = SAFER_ALL,
                                       .queries = 110};
    safer_certificate c = certain;
    safer_error error = {0};
    (void)state;
    assert_ok(give_answer(&c, &error));
    c.abstained = 1;
    assert_ok(give_answer(&c, &error));
    c = certain;
    c.certified = 0;
    c.radius = 2;
    c.exact = 1;
    assert_ok(give_answer(&c, &error));
    c.target = 1; /* a certificate of a label is no answer */
    assert_fails(give_answer(&c, &error), SAFER_INVALID, "another class than the prediction");
    c.prediction = c.target = 2;
    assert_fails(give_answer(&c, &error), SAFER_INVALID, "no class of the model");
    c.prediction = c.target = -1;
    assert_fails(give_answer(&c, &error), SAFER_INVALID, "no class of the model");
}

/* Without memory there is an error, never an object that lacks a member. */
static safer_status give_whole_answer(void *context, safer_error *error)
{
    static const double shares[] = {0.25, 0.75};
    const safer_certificate c = {.prediction = 1, .target = 1, .shares = shares};
    char *text = NULL;
    safer_status status = safer_answer_json(&text, &c, &model, error);
    (void)context;
    if (status == SAFER_OK)
        assert_string_equal(text, "{\"label\":\"pos\",\"leading\":\"pos\",\"abstained\":false,\"confidence\":0.75,"
                                  "\"shares\":{\"neg\":0.25,\"pos\":0.75},\"bound\":0.0,\"certified\":false,"
                                  "\"radius\":0,\"exact\":false,\"words\":0,\"slots\":0,\"queries\":0}");
    free(text);
    return status;
}

static void test_answer_memory(void **state)
{
    json_malloc_t usual_malloc;
    json_free_t usual_free;
    (void)state;
    json_get_alloc_funcs(&usual_malloc, &usual_free);
    json_set_alloc_funcs(malloc, free);
    check_every_allocation(give_whole_answer, NULL);
    json_set_alloc_funcs(usual_malloc, usual_free);
}

/* ------------------------------------------------- a certificate that grows */

typedef struct seen {
    int moments[4], stop_at; /* the moment to cancel at, -1: none */
    uint64_t last;
} seen;

static int look(void *context, sf_moment moment, const safer_certificate *c, safer_workspace *workspace)
{
    seen *s = context;
    double bound;
    size_t radius;
    s->moments[moment]++;
    if (moment == SF_BATCH_ASKED) {
        assert_true(c->n > s->last);
        s->last = c->n;
        int claims = sf_certificate_claims(workspace, c, &bound, &radius);
        assert_int_equal(claims, workspace->options.method == SAFER_METHOD_ADAPTIVE && !c->exact);
        if (claims) { /* exactly what these counts would be worth at the end */
            sf_evidence e = {.method = SAFER_METHOD_ADAPTIVE,
                             .delta = workspace->options.delta,
                             .classes = 2,
                             .target = (size_t)c->target,
                             .n = c->n,
                             .votes = c->votes};
            assert_true(bound == sf_evidence_bound(&e));
            for (size_t r = 0; r < SAFER_RADII; r++)
                assert_int_equal(radius >= sf_reported_radii[r], sf_evidence_certifies(&e, c->q[r]));
        }
    }
    return (int)moment == s->stop_at;
}

static void test_watching(void **state)
{
    static const safer_method methods[] = {SAFER_METHOD_ADAPTIVE, SAFER_METHOD_BINOMIAL, SAFER_METHOD_HOEFFDING};
    (void)state;
    for (size_t m = 0; m < 4; m++) {
        safer_error error = {0};
        safer_workspace *workspace = NULL, *plain = NULL;
        safer_certificate watched, unwatched;
        safer_certify_options options = safer_certify_options_default();
        options.method = methods[m % 3];
        options.batch = 16;
        options.threads = 1;
        if (m == 3) options.n = 100000; /* and a text with few draws: exact */
        options.alpha = 1e-9;           /* more draws than a batch choose the prediction */
        const char *text = m == 3 ? "good bad film good bad film" : LONG_TEXT;
        assert_ok(safer_certify_text(&unwatched, &plain, &model, lexicon, text, strlen(text), -1, &options, &error));
        assert_int_equal(unwatched.exact, m == 3);
        assert_ok(sf_workspace_new(&workspace, &model, lexicon, &options, &error));
        seen s = {.stop_at = -1};
        workspace->watch = (sf_watch){look, &s};
        assert_ok(safer_certify_text(&watched, &workspace, &model, lexicon, text, strlen(text), -1, &options, &error));
        assert_int_equal(s.moments[SF_TEXT_READ], 1);
        assert_int_equal(s.moments[SF_VOTE_ASKED] > 0, m != 3);
        assert_int_equal(s.moments[SF_PREDICTION_CHOSEN], m != 3);
        assert_true(s.moments[SF_BATCH_ASKED] > 1);
        assert_true(watched.bound == unwatched.bound);
        assert_int_equal(watched.radius, unwatched.radius);
        assert_int_equal(watched.n, unwatched.n);
        assert_int_equal(watched.queries, unwatched.queries);
        for (int moment = SF_TEXT_READ; moment <= SF_BATCH_ASKED; moment++) {
            if (m == 3 && (moment == SF_VOTE_ASKED || moment == SF_PREDICTION_CHOSEN)) continue;
            s = (seen){.stop_at = moment};
            assert_fails(safer_certify_text(&watched, &workspace, &model, lexicon, text, strlen(text), -1, &options,
                                            &error),
                         SAFER_CANCELLED, "cancelled");
        }
        workspace->watch = (sf_watch){0}; /* and it can be used again */
        assert_ok(safer_certify_text(&watched, &workspace, &model, lexicon, text, strlen(text), -1, &options, &error));
        assert_true(watched.bound == unwatched.bound);
        safer_workspace_free(workspace);
        safer_workspace_free(plain);
    }
}

/* A reader who looks after every draw is ever shown a false claim with probability at most delta:
 * computed, not sampled. */
static void test_looking_is_allowed(void **state)
{
    enum { N = 400 };
    static const struct {
        double p0, delta;
    } cases[] = {{0.6, 0.05}, {0.8, 0.05}, {0.55, 0.01}, {0.9, 0.1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double alive[N + 2] = {1}, claimed = 0, p = cases[i].p0; /* alive[k]: no claim so far, k votes for the target */
        for (uint64_t n = 1; n <= N; n++) {
            for (size_t k = n + 1; k-- > 0;)
                alive[k] = (k ? alive[k - 1] * p : 0) + (k <= n - 1 ? alive[k] * (1 - p) : 0);
            for (size_t k = 0; k <= n; k++) {
                const uint64_t votes[2] = {k, n - k};
                sf_evidence e = {.method = SAFER_METHOD_ADAPTIVE,
                                 .delta = cases[i].delta,
                                 .classes = 2,
                                 .target = 0,
                                 .n = n,
                                 .votes = votes};
                if (!sf_evidence_certifies(&e, p - 0.5)) continue;
                claimed += alive[k];
                alive[k] = 0;
            }
        }
        assert_true(claimed <= cases[i].delta);
        assert_true(claimed > cases[i].delta / 20); /* the test is not empty */
    }
}

/* ----------------------------------------------------------------- metrics */

static void test_metrics(void **state)
{
    sf_metrics metrics;
    sf_buffer page = {0};
    const sf_gauges gauges = {.waiting = 7, .busy = 2, .workers = 3, .connections = 9};
    (void)state;
    sf_metrics_start(&metrics);
    sf_metrics_request(&metrics, &sf_routes[SF_ROUTE_PREDICT], 200, 0.003);
    sf_metrics_request(&metrics, &sf_routes[SF_ROUTE_PREDICT], 200, 100);
    sf_metrics_request(&metrics, &sf_routes[SF_ROUTE_NONE], 418, 0);
    sf_metrics_text(&metrics, 1, 0, 1, 5);
    assert_int_equal(sf_metrics_print(&page, &metrics, &gauges), 0);
    static const char *const lines[] = {"\nsafer_requests_total{path=\"/v1/predict\",status=\"200\"} 2\n",
                                        "\nsafer_requests_total{path=\"other\",status=\"0\"} 1\n",
                                        "\nsafer_request_seconds_bucket{le=\"0.0025\"} 0\n",
                                        "\nsafer_request_seconds_bucket{le=\"0.005\"} 1\n",
                                        "\nsafer_request_seconds_bucket{le=\"30\"} 1\n",
                                        "\nsafer_request_seconds_bucket{le=\"+Inf\"} 2\n",
                                        "\nsafer_request_seconds_count 2\n",
                                        "\nsafer_texts_total 1\n",
                                        "\nsafer_queries_total 5\n",
                                        "\nsafer_waiting_texts 7\n",
                                        "\nsafer_connections 9\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (!strstr(page.bytes, lines[i])) fail_msg("no line %s in %s", lines[i], page.bytes);
    sf_buffer_free(&page);
    sf_metrics_end(&metrics);
}

/* -------------------------------------------------------------- the server */

static safer_status start_and_stop(void *context, safer_error *error)
{
    safer_server *server = NULL;
    safer_serve_options options = safer_serve_options_default();
    (void)context;
    options.port = 0;
    options.token = "0123456789abcdef";
    safer_certify_options certify = safer_certify_options_default();
    certify.threads = 3;
    safer_status status = safer_server_start(&server, &model, lexicon, &certify, &options, error);
    if (status == SAFER_OK) assert_true(safer_server_port(server) > 0);
    safer_server_stop(server);
    return status;
}

static safer_status reload_once(void *context, safer_error *error)
{
    safer_status status = safer_server_reload(context, &model, lexicon, error);
    assert_true(safer_server_port(context) > 0); /* whatever came of it, it serves */
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    check_every_allocation(start_and_stop, NULL);
    safer_server *server = NULL;
    safer_error error = {0};
    safer_serve_options options = safer_serve_options_default();
    options.port = 0;
    assert_ok(safer_server_start(&server, &model, lexicon, NULL, &options, &error));
    check_every_allocation(reload_once, server);
    safer_server_stop(server);
}

/* A model that is asked its first texts, and does not answer while the gate is held. */
static atomic_int probed;
static safer_status probe(const safer_model *silent, const sf_span *texts, size_t count, safer_error *error)
{
    (void)silent, (void)texts, (void)count, (void)error;
    atomic_store(&probed, 1);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return SAFER_OK;
}

typedef struct reloading {
    safer_server *server;
    const safer_model *model;
    safer_status status;
} reloading;

static void *reload_with(void *argument)
{
    reloading *r = argument;
    r->status = safer_server_reload(r->server, r->model, lexicon, NULL);
    return NULL;
}

/* The server stops while a reload waits for a silent model: without waiting for it. */
static void test_stop_while_reloading(void **state)
{
    static const sf_model_class silent_class = {.arch = "silent", .classify = classify, .probe = probe};
    const safer_model silent = {.class = &silent_class, .classes = 2, .labels = names};
    safer_server *server = NULL;
    safer_error error = {0};
    pthread_t thread;
    safer_serve_options options = safer_serve_options_default();
    (void)state;
    options.port = 0;
    assert_ok(safer_server_start(&server, &model, lexicon, NULL, &options, &error));
    reloading r = {.server = server, .model = &silent, .status = SAFER_OK};
    pthread_mutex_lock(&gate);
    assert_int_equal(pthread_create(&thread, NULL, reload_with, &r), 0);
    while (!atomic_load(&probed)) usleep(1000);
    safer_server_stop(server);
    pthread_mutex_unlock(&gate);
    pthread_join(thread, NULL);
    assert_int_equal(r.status, SAFER_CANCELLED);
}

static void test_options(void **state)
{
    safer_server *server = NULL;
    safer_error error = {0};
    const safer_serve_options good = safer_serve_options_default();
    safer_serve_options o;
    safer_certify_options certify = safer_certify_options_default();
    (void)state;
#define REFUSED(field, value, words) \
    do { \
        o = good; \
        o.field = value; \
        assert_fails(safer_server_start(&server, &model, lexicon, &certify, &o, &error), SAFER_INVALID, words); \
    } while (0)
    REFUSED(host, "0.0.0.0", "token");
    REFUSED(host, "nowhere", "nowhere");
    REFUSED(token, "short", "token");
    REFUSED(token, "0123456789abcde\n", "token");
    REFUSED(max_body, 0, "max_body");
    REFUSED(max_text, good.max_body + 1, "max_text");
    REFUSED(max_texts, good.queue + 1, "max_texts");
    REFUSED(connections, 0, "connections");
    REFUSED(client_rate, -1, "client_rate");
    REFUSED(deadline, (double)NAN, "deadline");
    REFUSED(patience, -1, "patience");
    REFUSED(size, 0, "safer_serve_options");
    certify.n = 0;
    REFUSED(port, 0, "n:");
    certify = safer_certify_options_default();
    certify.method = SAFER_METHOD_IBP;
    REFUSED(port, 0, "");
#undef REFUSED
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_job_ends_once),
        cmocka_unit_test(test_slow_readers),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_workers_threads),
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_answer_memory),
        cmocka_unit_test(test_watching),
        cmocka_unit_test(test_looking_is_allowed),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_stop_while_reloading),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, make_lexicon, free_lexicon);
}
