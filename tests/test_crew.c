/* A crew without MPI: every rank is a thread, and messages lie in queues of this process. Ranks die, fall silent, send
 * nonsense, differ, are told to stop: the run ends with an error that names them, and can be resumed by any number. */
#define _GNU_SOURCE
#include "base/progress.h"
#include "run/crew.h"
#include "run/crew_frames.h"
#include "run/rows.h"
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 7, ROWS = 300, MANY = 20000 /* more than may wait for a record before them */ };
enum { ENDLESS = 10 * MANY }; /* of rows that take a millisecond each: a run is stopped long before its end */

/* ------------------------------------------------------------ the transport */

typedef struct letter {
    struct letter *next;
    int from;
    size_t length;
    char *bytes;
} letter;

typedef struct hub {
    pthread_mutex_t lock;
    int count, joined;
    letter *first[RANKS], **last[RANKS];
    atomic_int dead[RANKS]; /* nothing comes from it, and nothing to it */
    atomic_int broken;      /* sending fails */
    atomic_int aborted;     /* the exit status, or -1 */
    int together;           /* ranks that closed together */
} hub;

struct sf_transport {
    hub *hub;
    int rank;
};

static void hub_start(hub *h, int count)
{
    *h = (hub){.count = count};
    pthread_mutex_init(&h->lock, NULL);
    for (int i = 0; i < RANKS; i++) h->last[i] = &h->first[i];
    atomic_store(&h->aborted, -1);
}

static void hub_end(hub *h)
{
    for (int i = 0; i < RANKS; i++)
        while (h->first[i]) {
            letter *next = h->first[i]->next;
            free(h->first[i]->bytes);
            free(h->first[i]);
            h->first[i] = next;
        }
    pthread_mutex_destroy(&h->lock);
}

typedef struct seat {
    hub *hub;
    int rank;
} seat;

static safer_status mock_open(sf_transport **out, void *context, safer_error *e)
{
    const seat *s = context;
    if (s->rank < 0) return sf_fail(e, SAFER_SYSTEM, "there is no MPI today");
    *out = malloc(sizeof **out);
    **out = (sf_transport){s->hub, s->rank};
    return SAFER_OK;
}

static int mock_rank(const sf_transport *t) { return t->rank; }
static int mock_count(const sf_transport *t) { return t->hub->count; }

static const char *mock_host(const sf_transport *t, int rank)
{
    static const char *const names[] = {"ant", "ant", "bee", "bee", "bee", "cat", "dog"};
    (void)t;
    return names[rank];
}

static void deliver(hub *h, int from, int to, char *bytes, size_t length)
{
    letter *l = malloc(sizeof *l);
    *l = (letter){NULL, from, length, bytes};
    pthread_mutex_lock(&h->lock);
    *h->last[to] = l;
    h->last[to] = &l->next;
    pthread_mutex_unlock(&h->lock);
}

static safer_status mock_send(sf_transport *t, int to, char *bytes, size_t length, safer_error *e)
{
    if (atomic_load(&t->hub->dead[t->rank]) || atomic_load(&t->hub->dead[to]) || atomic_load(&t->hub->broken)) {
        free(bytes);
        return atomic_load(&t->hub->broken) ? sf_fail(e, SAFER_SYSTEM, "the wire is cut") : SAFER_OK;
    }
    deliver(t->hub, t->rank, to, bytes, length);
    return SAFER_OK;
}

static safer_status mock_receive(sf_transport *t, int *from, char **bytes, size_t *length, safer_error *e)
{
    *bytes = NULL;
    if (atomic_load(&t->hub->aborted) >= 0) return sf_fail(e, SAFER_SYSTEM, "all were ended");
    pthread_mutex_lock(&t->hub->lock);
    letter *l = atomic_load(&t->hub->dead[t->rank]) ? NULL : t->hub->first[t->rank];
    if (l && !(t->hub->first[t->rank] = l->next)) t->hub->last[t->rank] = &t->hub->first[t->rank];
    pthread_mutex_unlock(&t->hub->lock);
    if (!l) return SAFER_OK;
    *from = l->from;
    *bytes = l->bytes;
    *length = l->length;
    free(l);
    return SAFER_OK;
}

static int mock_sending(sf_transport *t) { return (void)t, 0; }

static void mock_close(sf_transport *t, int together)
{
    pthread_mutex_lock(&t->hub->lock);
    t->hub->together += together;
    pthread_mutex_unlock(&t->hub->lock);
    free(t);
}

static void mock_abort(sf_transport *t, int code) { atomic_store(&t->hub->aborted, code); }

static const sf_transport_table mock = {SAFER_VERSION, sizeof mock,  mock_open,    mock_rank,  mock_count, mock_host,
                                        mock_send,     mock_receive, mock_sending, mock_close, mock_abort};

/* ----------------------------------------------------------------- the work */

/* What a rank is and does. */
typedef struct rank {
    hub *hub;
    int number, threads, resume;
    size_t rows;
    const char *path, *config;              /* the configuration, one string */
    size_t fails, dies, lies, leaves, slow; /* at these rows, which are SIZE_MAX where it does not */
    const safer_model *model;
    double timeout;
    int *stop;           /* whether to ask to stop, */
    atomic_int *stopped; /* which it says here */
    const char *report;  /* it cannot take part, and says why */
    const struct rank
        *after; /* does only some rows before that one has begun its second, with which it has its fault */
    atomic_int begun;

    safer_crew *crew;
    safer_status status;
    safer_error error;
    size_t resumed, added;
    atomic_size_t done;
    atomic_int lost;
    char lost_message[300];
} rank;

/* Rows that rank 0 reads, made once: their ids are numbers, and every fourth has no label. */
static safer_data *data;

static int make_data(void **state)
{
    static const char *const names[] = {NULL, "a", "b", "c"};
    char(*texts)[40] = malloc(ENDLESS * sizeof *texts), (*ids)[20] = malloc(ENDLESS * sizeof *ids);
    const char **text = malloc(ENDLESS * sizeof *text), **id = malloc(ENDLESS * sizeof *id),
               **label = malloc(ENDLESS * sizeof *label);
    size_t *lengths = malloc(ENDLESS * sizeof *lengths);
    (void)state;
    for (size_t i = 0; i < ENDLESS; i++) {
        snprintf(ids[i], sizeof *ids, "n%zu", i);
        lengths[i] = (size_t)snprintf(texts[i], sizeof *texts, "text %zu with a %c NUL", i, 0);
        text[i] = texts[i];
        id[i] = ids[i];
        label[i] = names[i % 4];
    }
    const safer_status status = safer_data_from_texts(&data, text, lengths, label, id, ENDLESS, NULL);
    free(texts);
    free(ids);
    free(text);
    free(id);
    free(label);
    free(lengths);
    return status != SAFER_OK;
}

static int free_data(void **state)
{
    (void)state;
    safer_data_free(data);
    return 0;
}

static int is_ending(const rank *r)
{
    return atomic_load(&r->hub->aborted) >= 0 || sf_crew_failure(r->crew, NULL, NULL) != SAFER_OK ||
           sf_crew_is_over(r->crew);
}

static safer_status do_row(void *context, const sf_row *row, int worker, json_t **record, double *seconds,
                           safer_error *e)
{
    rank *r = context;
    char expected[40];
    assert_true(worker >= 0 && worker <= r->threads);
    const int length = snprintf(expected, sizeof expected, "text %zu with a %c NUL", row->index, 0);
    assert_int_equal(row->row.text_length, length);
    assert_memory_equal(row->row.text, expected, (size_t)length + 1);
    assert_int_equal(row->row.label, (int)(row->index % 4) - 1);
    while (r->after && r->done >= 5 && !r->after->begun && !is_ending(r)) usleep(1000);
    r->begun = r->done >= 1;
    if (r->done >= r->dies) {
        atomic_store(&r->hub->dead[r->number], 1);
        while (!is_ending(r)) usleep(1000); /* nor does it go on */
    }
    if (r->done >= r->leaves) sf_crew_put(r->crew, 0, SF_BYE, (sf_span){0});
    if (r->done >= r->lies) {
        atomic_store(&r->hub->dead[r->number], 0);
        sf_crew_put(r->crew, 0, SF_DONE, (sf_span){"not a record", 12});
    }
    if (r->done >= r->fails) {
        if (r->model) sf_model_set_random(r->model);
        return sf_fail(e, SAFER_INPUT, "the model has no answer");
    }
    if (row->index == r->slow) usleep(300000);
    if (r->rows == ENDLESS) usleep(1000);
    atomic_fetch_add(&r->done, 1);
    *record = json_pack("{s:I, s:s, s:f}", "row", (json_int_t)row->index + 1, "id", row->row.id, "x",
                        (double)row->index / 3);
    *seconds = 0.5;
    return SAFER_OK;
}

static safer_status add_record(void *context, const json_t *record, const char *name, size_t line, safer_error *e)
{
    rank *r = context;
    (void)name, (void)e;
    assert_int_equal(json_integer_value(json_object_get(record, "row")), line - 1);
    assert_null(json_object_get(record, "seconds"));
    r->added++;
    return SAFER_OK;
}

static void name_stage(void *context, char *stage, size_t size)
{
    (void)context;
    snprintf(stage, size, "working");
}

static safer_status join_run(void *context, const json_t *config, const sf_span *texts, size_t count, safer_error *e)
{
    const rank *r = context;
    const char *theirs = json_string_value(json_object_get(config, "safer"));
    assert_int_equal(count, r->model && sf_model_is_remote(r->model) ? 16 : 0);
    for (size_t i = 0; i < count; i++) assert_memory_equal(texts[i].bytes, "text ", 5);
    return strcmp(theirs, r->config) == 0 ? SAFER_OK : sf_fail(e, SAFER_INPUT, "safer is %s there", r->config);
}

static void on_lost(void *context, const char *message)
{
    rank *r = context;
    snprintf(r->lost_message, sizeof r->lost_message, "%s", message);
    atomic_fetch_add(&r->lost, 1);
}

static char last_stage[256]; /* rank 0's */

static int on_progress(void *context, const char *stage, uint64_t done, uint64_t total)
{
    rank *r = context;
    (void)done, (void)total;
    if (!r->number) snprintf(last_stage, sizeof last_stage, "%s", stage);
    return r->stop && atomic_load(r->stopped);
}

static const sf_model_class plain = {.arch = "plain"};
static const safer_model plain_model = {.class = &plain};

static void *be_rank(void *context)
{
    rank *r = context;
    const seat s = {r->hub, r->number};
    const safer_progress progress = {on_progress, r};
    static const int classes[] = {0, 1, 2};
    json_t *config = json_pack("{s:s}", "safer", r->config);
    const sf_rows rows = {.count = r->rows,
                          .model = r->model ? r->model : &plain_model,
                          .threads = r->threads,
                          .config = config,
                          .progress = &progress,
                          .context = r,
                          .data = r->number ? NULL : data,
                          .classes = classes,
                          .work = do_row,
                          .add = add_record,
                          .describe = name_stage,
                          .join = join_run};
    r->status = sf_crew_new(&r->crew, &mock, (void *)(uintptr_t)&s, r->timeout, on_lost, r, &r->error);
    sf_rows own = rows;
    own.crew = r->crew;
    if (r->report) {
        r->status = sf_fail(&r->error, SAFER_SYSTEM, "%s", r->report);
        assert_int_equal(safer_crew_report(r->crew, &r->error), 1);
    } else if (r->status == SAFER_OK) {
        r->status = sf_rows_run(&own, r->number ? NULL : r->path, r->resume, &r->resumed, &r->error);
    }
    safer_crew_leave(r->crew, r->status == SAFER_OK ? 0 : 4);
    json_decref(config);
    return NULL;
}

/* Ranks that all do well; tests change what they are about. */
static void make_ranks(rank *ranks, hub *h, int count, const char *path)
{
    hub_start(h, count);
    memset(ranks, 0, (size_t)count * sizeof *ranks);
    for (int i = 0; i < count; i++) {
        rank *r = &ranks[i];
        r->hub = h;
        r->number = i;
        r->threads = 1 + i % 3;
        r->rows = ROWS;
        r->path = path;
        r->config = "same";
        r->fails = r->dies = r->lies = r->leaves = r->slow = SIZE_MAX;
        r->timeout = 20;
    }
}

static void start_ranks(pthread_t *threads, rank *ranks, hub *h)
{
    for (int i = 0; i < h->count; i++)
        for (int k = 0; k < h->count; k++) {
            const rank *r = &ranks[k];
            if (k != i && (r->fails < ROWS || r->dies < ROWS || r->lies < ROWS || r->leaves < ROWS)) ranks[i].after = r;
        }
    for (int i = 0; i < h->count; i++) assert_int_equal(pthread_create(&threads[i], NULL, be_rank, &ranks[i]), 0);
}

static void run_ranks(rank *ranks, hub *h)
{
    pthread_t threads[RANKS];
    start_ranks(threads, ranks, h);
    for (int i = 0; i < h->count; i++) pthread_join(threads[i], NULL);
    hub_end(h);
}

/* What one process writes. */
static const char *alone(size_t rows)
{
    const char *path = temporary(rows == MANY ? "many.jsonl" : "alone.jsonl");
    rank r;
    hub h;
    unlink(path);
    make_ranks(&r, &h, 1, path);
    r.rows = rows;
    run_ranks(&r, &h);
    if (r.status != SAFER_OK) fail_msg("%s", r.error.message);
    return path;
}

/* The file is whole, and any number of ranks makes of it what one process writes. */
static void check_resumed(const char *path)
{
    for (int count = 2; count >= 1; count--) {
        rank ranks[RANKS];
        hub h;
        make_ranks(ranks, &h, count, path);
        ranks[0].resume = 1;
        run_ranks(ranks, &h);
        if (ranks[0].status != SAFER_OK) fail_msg("%s", ranks[0].error.message);
        assert_int_equal(ranks[0].added, ROWS);
    }
    assert_same_file(path, alone(ROWS));
}

static void assert_says(const rank *r, safer_status status, const char *message)
{
    if (r->status != status || !strstr(r->error.message, message))
        fail_msg("rank %d: status %d, \"%s\", not \"%s\"", r->number, r->status, r->error.message, message);
}

/* -------------------------------------------------------------------- tests */

/* The same bytes from any number of ranks, with more rows than wait at a time; all of them work. */
static void test_same(void **state)
{
    (void)state;
    const char *expected = alone(MANY), *path = temporary("crew.jsonl");
    const int counts[] = {1, 2, 3, 7};
    for (size_t k = 0; k < COUNT(counts); k++) {
        rank ranks[RANKS];
        hub h;
        unlink(path);
        make_ranks(ranks, &h, counts[k], path);
        for (int i = 0; i < counts[k]; i++) ranks[i].rows = MANY;
        const double start = sf_seconds();
        run_ranks(ranks, &h);
        print_message("%d ranks: %.0f rows/s\n", counts[k], MANY / (sf_seconds() - start));
        size_t done = 0;
        for (int i = 0; i < counts[k]; i++) {
            if (ranks[i].status != SAFER_OK) fail_msg("rank %d: %s", i, ranks[i].error.message);
            done += ranks[i].done;
        }
        assert_int_equal(done, MANY);
        assert_int_equal(h.together, counts[k]);
        assert_true(atomic_load(&h.aborted) < 0);
        assert_same_file(path, expected);
    }
    assert_non_null(strstr(last_stage, "working"));
}

/* The stage shows the rate of each host. */
static void test_rates(void **state)
{
    (void)state;
    static const char *const names[] = {"ant", "bee", "cat"};
    for (int count = 6; count <= RANKS; count++) { /* three hosts, and four */
        rank ranks[RANKS];
        hub h;
        double rates[3] = {0};
        int stop = 1;
        atomic_int stopped = 0;
        pthread_t threads[RANKS];
        make_ranks(ranks, &h, count, NULL);
        for (int i = 0; i < count; i++) ranks[i].rows = ENDLESS;
        ranks[0].stop = &stop;
        ranks[0].stopped = &stopped;
        start_ranks(threads, ranks, &h);
        usleep(2500000);
        atomic_store(&stopped, 1);
        for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
        hub_end(&h);
        if (strncmp(last_stage, "working, ant ", 13) != 0) fail_msg("%s", last_stage);
        for (int k = 0; k < 3; k++) {
            const char *at = strstr(last_stage, names[k]);
            if (!at || sscanf(at + 3, "%lf/s", &rates[k]) != 1 || !(rates[k] > 10)) fail_msg("%s", last_stage);
        }
    }
}

/* A row that takes long holds up neither the others nor those behind it at the same rank. */
static void test_slow(void **state)
{
    (void)state;
    const char *path = temporary("slow.jsonl");
    rank ranks[RANKS];
    hub h;
    make_ranks(ranks, &h, 3, path);
    for (int i = 0; i < 3; i++) {
        ranks[i].slow = ROWS - 1;
        ranks[i].threads = 1;
    }
    const double start = sf_seconds();
    run_ranks(ranks, &h);
    assert_int_equal(ranks[0].status, SAFER_OK);
    assert_true(sf_seconds() - start >= 0.3);
    assert_same_file(path, alone(ROWS));
}

/* What a helper says ends the run, with its name. */
static void test_errors(void **state)
{
    (void)state;
    const char *path = temporary("errors.jsonl");
    rank ranks[RANKS];
    hub h;
    make_ranks(ranks, &h, 4, path);
    ranks[2].fails = 1;
    run_ranks(ranks, &h);
    assert_says(&ranks[0], SAFER_INPUT, "rank 2 on bee: the model has no answer");
    assert_int_equal(ranks[0].lost, 0);
    check_resumed(path);
    unlink(path);

    make_ranks(ranks, &h, 3, path);
    ranks[1].config = "other";
    run_ranks(ranks, &h);
    assert_says(&ranks[0], SAFER_INPUT, "rank 1 on ant: safer is other there");
    assert_says(&ranks[2], SAFER_CANCELLED, "rank 0 ended the run");
    assert_int_not_equal(access(path, F_OK), 0); /* no work was done: the name is free */

    make_ranks(ranks, &h, 3, path);
    ranks[2].report = "cannot open model";
    run_ranks(ranks, &h);
    assert_says(&ranks[0], SAFER_SYSTEM, "rank 2 on bee: cannot open model");
    check_resumed(path);
    unlink(path);

    make_ranks(ranks, &h, 3, path); /* rank 0's own failure */
    ranks[0].fails = 1;
    run_ranks(ranks, &h);
    assert_says(&ranks[0], SAFER_INPUT, "the model has no answer");
    check_resumed(path);
    unlink(path);

    make_ranks(ranks, &h, 3, "/dev/full");
    run_ranks(ranks, &h);
    assert_says(&ranks[0], SAFER_SYSTEM, "cannot write /dev/full");
    assert_says(&ranks[1], SAFER_CANCELLED, "rank 0 ended the run");
}

/* A rank that dies says nothing: it is named after the time-out, at once to the one who asked for that, and the others
 * are ended. */
static void test_silence(void **state)
{
    (void)state;
    const char *path = temporary("silence.jsonl");
    rank ranks[RANKS];
    hub h;
    make_ranks(ranks, &h, 4, path);
    for (int i = 0; i < 4; i++) ranks[i].timeout = i ? 20 : 1;
    ranks[3].dies = 1;
    run_ranks(ranks, &h);
    assert_says(&ranks[0], SAFER_SYSTEM, "rank 3 on bee is lost: nothing was heard from it for 1 s");
    assert_int_equal(ranks[0].lost, 1);
    assert_non_null(strstr(ranks[0].lost_message, "rank 3 on bee is lost"));
    assert_int_equal(atomic_load(&h.aborted), 4);
    check_resumed(path);
    unlink(path);

    make_ranks(ranks, &h, 4, path); /* rank 0 itself: rank 1 says it, the others are silent */
    ranks[0].dies = 1;
    for (int i = 0; i < 4; i++) ranks[i].timeout = i ? 1 : 3;
    run_ranks(ranks, &h);
    for (int i = 1; i < 4; i++) {
        assert_says(&ranks[i], SAFER_SYSTEM, "rank 0 on ant is lost");
        assert_int_equal(ranks[i].lost, i == 1);
    }
    check_resumed(path);
    unlink(path);

    make_ranks(ranks, &h, 3, path); /* it is there, but leaves */
    ranks[1].leaves = 1;
    run_ranks(ranks, &h);
    assert_says(&ranks[0], SAFER_SYSTEM, "rank 1 on ant is lost: it left");
    check_resumed(path);
    unlink(path);

    make_ranks(ranks, &h, 3, path);
    atomic_store(&h.broken, 1);
    run_ranks(ranks, &h);
    assert_says(&ranks[0], SAFER_SYSTEM, "the wire is cut");
}

/* Asked to stop: all are there, or the one that is not is named; a helper alone that is asked to. */
static void test_stopping(void **state)
{
    (void)state;
    const char *path = temporary("stopping.jsonl");
    for (int test = 0; test < 3; test++) {
        rank ranks[RANKS];
        hub h;
        atomic_int stopped = 0;
        unlink(path);
        make_ranks(ranks, &h, 4, path);
        for (int i = 0; i < 4; i++) {
            ranks[i].rows = ENDLESS;
            ranks[i].stopped = &stopped;
            if (test < 2 || i == 3) ranks[i].stop = &ranks[i].resume;
        }
        if (test == 1) ranks[2].dies = 1;
        pthread_t threads[RANKS];
        start_ranks(threads, ranks, &h);
        while (ranks[0].done < 20 || ranks[2].done < 1 || (test == 1 && !h.dead[2])) usleep(1000);
        atomic_store(&stopped, 1);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        hub_end(&h);
        if (test == 0) assert_says(&ranks[0], SAFER_CANCELLED, "cancelled during: working");
        if (test == 1) assert_says(&ranks[0], SAFER_SYSTEM, "rank 2 on bee is lost: it died, or its machine");
        if (test == 2) assert_says(&ranks[0], SAFER_SYSTEM, "rank 3 on bee is lost: it was told to stop");
        assert_int_equal(ranks[0].lost, test > 0);
    }
}

/* A message that makes no sense is refused with its sender's name, whatever it is. */
static void test_nonsense(void **state)
{
    (void)state;
    const char *path = temporary("nonsense.jsonl");
    rank ranks[RANKS];
    hub h;
    make_ranks(ranks, &h, 3, path);
    ranks[2].lies = 1;
    run_ranks(ranks, &h);
    assert_says(&ranks[0], SAFER_SYSTEM, "a message of rank 2 on bee makes no sense here");
    check_resumed(path);
    for (uint32_t kind = 0; kind <= SF_FRAMES; kind++)
        for (uint64_t length = 0; length < 30; length += 13) {
            const uint64_t claims = length == 26 ? 1000 : length; /* more than there is */
            unlink(path);
            make_ranks(ranks, &h, 2, path);
            char *bytes = calloc(1, 12 + length);
            memcpy(bytes, &kind, 4);
            memcpy(bytes + 4, &claims, 8);
            deliver(&h, 1, 0, bytes, 12 + length); /* the first that comes */
            run_ranks(ranks, &h);
            assert_true(ranks[0].status == SAFER_SYSTEM ||
                        (claims == 0 && (kind == SF_BEAT || kind == SF_PING || kind == SF_PONG)));
            if (kind == SF_HELLO && length == 0)
                assert_says(&ranks[0], SAFER_SYSTEM, "rank 1 on ant is safer , and rank 0 on ant is " SAFER_VERSION);
        }
}

/* A helper whose remote model is found to change its answers: rank 0's counts as random from then on. */
static atomic_int random_models;
static int is_random(const safer_model *model) { return (void)model, atomic_load(&random_models); }
static void set_random(const safer_model *model) { (void)model, atomic_store(&random_models, 1); }
static safer_status confirm(const safer_model *model, const sf_span *texts, const int *answers, size_t count,
                            void *scratch, safer_error *e)
{
    (void)model, (void)texts, (void)answers, (void)count, (void)scratch, (void)e;
    return SAFER_OK;
}

static void test_random(void **state)
{
    (void)state;
    const sf_model_class remote = {
        .arch = "remote", .is_random = is_random, .set_random = set_random, .confirm = confirm};
    const safer_model model = {.class = &remote};
    rank ranks[RANKS];
    hub h;
    make_ranks(ranks, &h, 2, NULL);
    ranks[0].model = ranks[1].model = &model;
    ranks[1].fails = 1;
    run_ranks(ranks, &h);
    assert_says(&ranks[0], SAFER_INPUT, "rank 1 on ant: the model has no answer");
    assert_int_equal(is_random(&model), 1);
}

/* ------------------------------------------------------------- several runs */

/* Rank 0 tells of three runs, does the first and the last, and ends; the others do what they hear of. */
static void lead_several(rank *r, const sf_rows *rows)
{
    const char *paths[] = {temporary("several1.jsonl"), NULL, temporary("several3.jsonl")};
    size_t resumed;
    for (size_t i = 0; i < COUNT(paths); i++) {
        char words[16];
        snprintf(words, sizeof words, "run %zu", i + 1);
        assert_int_equal(safer_crew_tell(r->crew, words, &r->error), SAFER_OK);
        if (!paths[i]) continue; /* given up */
        unlink(paths[i]);
        if (i) usleep(20000); /* the others wait for a run that does not come, and hear of this one */
        r->added = 0;
        r->status = sf_rows_run(rows, paths[i], 0, &resumed, &r->error);
        if (r->status != SAFER_OK) return;
    }
    assert_int_equal(safer_crew_tell(r->crew, "", &r->error), SAFER_OK);
}

static void follow_several(rank *r, const sf_rows *rows)
{
    char words[16];
    size_t resumed;
    while ((r->status = safer_crew_hear(r->crew, words, sizeof words, NULL, &r->error)) == SAFER_OK && *words) {
        r->status = sf_rows_run(rows, NULL, 0, &resumed, &r->error);
        if (r->status != (words[4] == '2' ? SAFER_CANCELLED : SAFER_OK)) return;
        r->resumed++; /* runs */
    }
}

static void *be_one_of_several(void *context)
{
    rank *r = context;
    const seat s = {r->hub, r->number};
    static const int classes[] = {0, 1, 2};
    json_t *config = json_pack("{s:s}", "safer", r->config);
    safer_error error = {0};
    char words[4];
    assert_ok(sf_crew_new(&r->crew, &mock, (void *)(uintptr_t)&s, r->timeout, on_lost, r, &r->error));
    const sf_rows rows = {.count = r->rows,
                          .model = &plain_model,
                          .threads = r->threads,
                          .config = config,
                          .context = r,
                          .data = r->number ? NULL : data,
                          .classes = classes,
                          .work = do_row,
                          .add = add_record,
                          .describe = name_stage,
                          .crew = r->crew,
                          .join = join_run};
    if (r->number)
        assert_int_equal(safer_crew_tell(r->crew, "x", &error), SAFER_INVALID);
    else
        assert_int_equal(safer_crew_hear(r->crew, words, sizeof words, NULL, &error), SAFER_INVALID);
    (r->number ? follow_several : lead_several)(r, &rows);
    if (r->status == SAFER_OK) r->status = safer_crew_check(r->crew, 0, &r->error);
    safer_crew_leave(r->crew, r->status == SAFER_OK ? 0 : 4);
    json_decref(config);
    return NULL;
}

/* A crew does one run after the other, and passes over one that rank 0 gave up before it began. */
static void test_several(void **state)
{
    (void)state;
    rank ranks[RANKS];
    hub h;
    pthread_t threads[RANKS];
    make_ranks(ranks, &h, 4, NULL);
    for (int i = 0; i < h.count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, be_one_of_several, &ranks[i]), 0);
    for (int i = 0; i < h.count; i++) pthread_join(threads[i], NULL);
    hub_end(&h);
    for (int i = 0; i < h.count; i++)
        if (ranks[i].status != SAFER_OK) fail_msg("rank %d: %s", i, ranks[i].error.message);
    for (int i = 1; i < h.count; i++) assert_int_equal(ranks[i].resumed, 3);
    assert_int_equal(h.together, 4);
    assert_same_file(temporary("several1.jsonl"), alone(ROWS));
    assert_same_file(temporary("several3.jsonl"), alone(ROWS));
}

/* Joining: without a transport, with a number that is none; ranks of one machine are counted. */
static void test_joining(void **state)
{
    (void)state;
    safer_error error = {0};
    safer_crew *crew = NULL;
    const seat nowhere = {NULL, -1};
    assert_int_equal(sf_crew_new(&crew, &mock, (void *)(uintptr_t)&nowhere, 1, NULL, NULL, &error), SAFER_SYSTEM);
    assert_string_equal(error.message, "there is no MPI today");
    assert_int_equal(safer_crew_join(&crew, -1, NULL, NULL, &error), SAFER_INVALID);
    setenv("SAFER_PLUGINS", "/nowhere", 1);
    assert_int_equal(safer_crew_join(&crew, 0, NULL, NULL, &error), SAFER_SYSTEM);
    assert_non_null(strstr(error.message, "SAFER_PLUGINS is /nowhere, where there is no libsafer_mpi.so"));
    unsetenv("SAFER_PLUGINS");
    hub h;
    hub_start(&h, 7);
    const seat last = {&h, 4};
    assert_ok(sf_crew_new(&crew, &mock, (void *)(uintptr_t)&last, 60, NULL, NULL, &error));
    assert_int_equal(safer_crew_rank(crew), 4);
    assert_int_equal(safer_crew_size(crew), 7);
    assert_int_equal(safer_crew_local_rank(crew), 2);
    assert_string_equal(safer_crew_host(crew, 6), "dog");
    atomic_store(&h.aborted, 0);
    safer_crew_leave(crew, 0);
    safer_crew_leave(NULL, 0);
    hub_end(&h);
}

int main(void)
{
    setenv("SOURCE_DATE_EPOCH", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joining), cmocka_unit_test(test_same),     cmocka_unit_test(test_slow),
        cmocka_unit_test(test_errors),  cmocka_unit_test(test_silence),  cmocka_unit_test(test_stopping),
        cmocka_unit_test(test_random),  cmocka_unit_test(test_nonsense), cmocka_unit_test(test_rates),
        cmocka_unit_test(test_several),
    };
    return cmocka_run_group_tests(tests, make_data, free_data);
}
