/* The feeder: everybody gets the answers to his own questions, whatever met in a call, and whoever of those that share
 * it fails, is stopped, or hosts the calls of others. */
#define _GNU_SOURCE
#include "support.h"

#include "base/feeder.h"
#include "base/parallel.h"
#include "base/progress.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct numbers {
    sf_asking asking;
    int first, *out; /* the questions are first, first + 1 ...; the answers are their squares */
} numbers;

typedef struct squares {
    sf_feeder feeder;
    int refused; /* a question that no call survives; -1: none. -2: no call succeeds */
    safer_status with;
    double seconds; /* of a call */
    int hosted;     /* every call is to come from `host` */
    pthread_t host;
    int patient;      /* the number of a call that waits until it is stopped */
    atomic_int gated; /* calls wait while it is set */
    atomic_int calls, running, most_running, most, singles, wrong;
} squares;

static void pause_for(double seconds)
{
    const struct timespec t = {0, (long)(1e9 * seconds)};
    nanosleep(&t, NULL);
}

static void raise_to(atomic_int *most, int value)
{
    int old = atomic_load(most);
    while (old < value && !atomic_compare_exchange_weak(most, &old, value)) continue;
}

static safer_status square(void *self, sf_asking *first, size_t count, safer_error *error)
{
    squares *s = self;
    size_t counted = 0;
    safer_status status = SAFER_OK;
    const int number = atomic_fetch_add(&s->calls, 1) + 1;
    raise_to(&s->most_running, atomic_fetch_add(&s->running, 1) + 1);
    raise_to(&s->most, (int)count);
    if (!first->next) atomic_fetch_add(&s->singles, 1);
    if (s->seconds > 0) pause_for(s->seconds);
    if (s->hosted && !pthread_equal(s->host, pthread_self())) atomic_store(&s->wrong, 1);
    while (atomic_load(&s->gated)) pause_for(1e-4);
    while (s->patient == number && status == SAFER_OK) {
        if (sf_duty_cancelled()) status = SAFER_CANCELLED;
        pause_for(1e-4);
    }
    for (numbers *n = (numbers *)first; n; n = (numbers *)n->asking.next) {
        counted += n->asking.count;
        for (int i = 0; i < (int)n->asking.count; i++) {
            n->out[i] = (n->first + i) * (n->first + i);
            if (s->refused == -2 || n->first + i == s->refused) status = s->with;
        }
    }
    if (counted != count || count > s->feeder.most) atomic_store(&s->wrong, 1);
    atomic_fetch_sub(&s->running, 1);
    return status == SAFER_OK ? SAFER_OK : sf_fail(error, status, "%d is refused", s->refused);
}

static safer_status ask(squares *s, int first, size_t count, int *out, safer_error *e)
{
    numbers own = {{.count = count, .error = e}, first, out};
    return sf_feeder_ask(&s->feeder, &own.asking);
}

/* ------------------------------------------------------------------- threads */

enum { THREADS = 24, ROUNDS = 200 };

typedef struct crowd {
    squares *squares;
    int rounds;
    atomic_int wrong, failed;
} crowd;

/* One thread's questions; of every size up to 5. */
static void ask_often(void *context, size_t begin, size_t end, int worker)
{
    crowd *c = context;
    (void)end;
    (void)worker;
    for (int i = 0; i < c->rounds; i++) {
        const int first = (int)begin * 1000 + 5 * i, count = 1 + (i + (int)begin) % 5;
        int out[5] = {0};
        safer_error e = {0};
        if (ask(c->squares, first, (size_t)count, out, &e) != SAFER_OK) {
            const int own = c->squares->refused >= first && c->squares->refused < first + count;
            if (!own && c->squares->refused != -2) atomic_store(&c->wrong, 1);
            if (!strstr(e.message, "is refused")) atomic_store(&c->wrong, 1);
            atomic_fetch_add(&c->failed, 1);
            continue;
        }
        for (int k = 0; k < count; k++)
            if (out[k] != (first + k) * (first + k)) atomic_store(&c->wrong, 1);
    }
}

static void gather(crowd *c, squares *s, size_t most, int calls, int rounds)
{
    *c = (crowd){.squares = s, .rounds = rounds};
    sf_feeder_start(&s->feeder, square, s, most, calls);
    sf_parallel(THREADS, THREADS, 1, ask_often, c);
    sf_feeder_end(&s->feeder);
    assert_false(s->wrong);
    assert_false(c->wrong);
    assert_true(s->most_running <= calls);
}

static void everybody_gets_his_own(void **unused)
{
    (void)unused;
    static const size_t most[] = {5, 7, 16, 1000};
    static const int calls[] = {1, 2, 30};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 3; k++) {
            crowd c;
            squares s = {.refused = -1};
            gather(&c, &s, most[i], calls[k], ROUNDS);
            assert_int_equal(c.failed, 0);
        }
}

/* While a call lasts, others gather: of 24 threads a call has about half. */
static void calls_are_shared(void **unused)
{
    (void)unused;
    crowd c;
    squares s = {.refused = -1, .seconds = 2e-3};
    gather(&c, &s, 1000, 1, 20);
    assert_true(s.calls < THREADS * 20 / 4);
    assert_true(s.most > 15);
}

static void one_thread_does_not_wait(void **unused)
{
    (void)unused;
    squares s = {.refused = -1};
    int out[3];
    sf_feeder_start(&s.feeder, square, &s, 3, 1);
    for (int i = 0; i < 100; i++) assert_int_equal(ask(&s, i, 3, out, NULL), SAFER_OK);
    assert_int_equal(s.calls, 100);
    assert_int_equal(out[2], 101 * 101);
    sf_feeder_end(&s.feeder);
}

/* -------------------------------------------------------------------- faults */

static void a_fault_stays_with_its_thread(void **unused)
{
    (void)unused;
    crowd c;
    squares s = {.refused = 3000, .with = SAFER_INPUT, .seconds = 1e-4};
    gather(&c, &s, 1000, 1, 20);
    assert_int_equal(c.failed, 1);
}

static void a_fault_of_all_is_not_asked_again_for_each(void **unused)
{
    (void)unused;
    crowd c;
    squares s = {.refused = -2, .with = SAFER_SYSTEM, .seconds = 2e-3};
    gather(&c, &s, 1000, 1, 20);
    assert_int_equal(c.failed, THREADS * 20);
    assert_true(s.calls < THREADS * 20 * 3 / 4); /* a call for 12 threads fails, and then two of them alone */
}

/* ------------------------------------------------------------------- a gate */

/* Threads one after the other, whose questions meet in one call: the first call waits for the gate. */
typedef struct asker {
    squares *squares;
    int first, out;
    sf_meter *meter; /* NULL: none */
    pthread_t thread;
    safer_status status;
    safer_error error;
} asker;

static void *ask_one(void *argument)
{
    asker *a = argument;
    if (a->meter) (void)sf_duty_change((sf_duty){a->meter, 1});
    a->status = ask(a->squares, a->first, 1, &a->out, &a->error);
    return NULL;
}

static size_t queue_length(squares *s)
{
    size_t count = 0;
    pthread_mutex_lock(&s->feeder.lock);
    for (const sf_asking *a = s->feeder.first; a; a = a->next) count++;
    pthread_mutex_unlock(&s->feeder.lock);
    return count;
}

static int calls_under_way(squares *s) { return atomic_load(&s->running); }

static void start(asker *a, squares *s, int first, sf_meter *meter)
{
    *a = (asker){.squares = s, .first = first, .meter = meter};
    assert_int_equal(pthread_create(&a->thread, NULL, ask_one, a), 0);
}

/* Asker 0 is in a call that the gate holds, and 1 .. count-1 wait, in order. */
static void line_up(asker *list, size_t count, squares *s, sf_meter *const *meters)
{
    for (size_t i = 0; i < count; i++) {
        start(&list[i], s, (int)i, meters ? meters[i] : NULL);
        if (i == 0)
            while (!calls_under_way(s)) pause_for(1e-4);
        while (queue_length(s) < i) pause_for(1e-4);
    }
}

static void join_all(asker *list, size_t count)
{
    for (size_t i = 0; i < count; i++) pthread_join(list[i].thread, NULL);
}

static void one_bad_question_among_many_is_found_in_few_calls(void **unused)
{
    (void)unused;
    asker list[65];
    squares s = {.refused = 40, .with = SAFER_INPUT, .gated = 1};
    sf_feeder_start(&s.feeder, square, &s, 1000, 1);
    line_up(list, 65, &s, NULL);
    atomic_store(&s.gated, 0);
    join_all(list, 65);
    for (int i = 0; i < 65; i++) {
        assert_int_equal(list[i].status, i == 40 ? SAFER_INPUT : SAFER_OK);
        assert_int_equal(list[i].error.message[0] != 0, i == 40); /* nobody else hears of it */
        if (i != 40) assert_int_equal(list[i].out, i * i);
    }
    assert_true(s.calls <= 1 + 1 + 2 + 13); /* the gate's, all, two of them, and halves of 62 */
    sf_feeder_end(&s.feeder);
}

/* A function's fault ends the work of a host, but not that of threads who only share it. */
static void a_function_that_fails_fails_its_own(void **unused)
{
    (void)unused;
    asker list[9];
    squares s = {.refused = 4, .with = SAFER_CALLBACK, .gated = 1};
    sf_feeder_start(&s.feeder, square, &s, 1000, 1);
    line_up(list, 9, &s, NULL);
    atomic_store(&s.gated, 0);
    join_all(list, 9);
    for (int i = 0; i < 9; i++) assert_int_equal(list[i].status, i == 4 ? SAFER_CALLBACK : SAFER_OK);
    sf_feeder_end(&s.feeder);
}

/* --------------------------------------------------------------------- ends */

static void who_waits_can_be_stopped(void **unused)
{
    (void)unused;
    asker list[4];
    sf_meter meter;
    sf_meter_start(&meter, NULL, "", 0);
    sf_meter *meters[4] = {NULL, NULL, &meter, NULL};
    squares s = {.refused = -1, .gated = 1};
    sf_feeder_start(&s.feeder, square, &s, 1000, 1);
    line_up(list, 4, &s, meters);
    atomic_store(&meter.cancelled, 1);
    pthread_join(list[2].thread, NULL); /* while the call is under way */
    assert_int_equal(list[2].status, SAFER_CANCELLED);
    assert_int_equal(queue_length(&s), 2);
    atomic_store(&s.gated, 0);
    for (int i = 0; i < 4; i++) {
        if (i == 2) continue;
        pthread_join(list[i].thread, NULL);
        assert_int_equal(list[i].status, SAFER_OK);
        assert_int_equal(list[i].out, i * i);
    }
    assert_int_equal(s.calls, 2);
    sf_feeder_end(&s.feeder);
}

/* Thread 1 makes the call for 1, 2 and 3, and is stopped in it. */
static void others_outlive_the_end_of_who_called_for_them(void **unused)
{
    (void)unused;
    asker list[5];
    sf_meter meter;
    sf_meter_start(&meter, NULL, "", 0);
    sf_meter *meters[4] = {NULL, &meter, NULL, NULL};
    squares s = {.refused = -1, .gated = 1, .patient = 2};
    sf_feeder_start(&s.feeder, square, &s, 1000, 1);
    line_up(list, 4, &s, meters);
    atomic_store(&s.gated, 0);
    while (s.calls < 2) pause_for(1e-4);
    start(&list[4], &s, 4, NULL);
    while (queue_length(&s) < 1) pause_for(1e-4);
    atomic_store(&meter.cancelled, 1);
    join_all(list, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(list[i].status, i == 1 ? SAFER_CANCELLED : SAFER_OK);
        if (i != 1) assert_int_equal(list[i].out, i * i);
    }
    assert_int_equal(s.calls, 3); /* for 0; 1, 2 and 3; 2, 3 and 4 */
    assert_false(s.wrong);
    sf_feeder_end(&s.feeder);
}

/* All of one run: nobody's questions are asked once it is stopped. */
static void who_is_stopped_makes_no_call(void **unused)
{
    (void)unused;
    asker list[20];
    sf_meter meter;
    sf_meter_start(&meter, NULL, "", 0);
    sf_meter *meters[20];
    for (int i = 0; i < 20; i++) meters[i] = &meter;
    squares s = {.refused = -1, .gated = 1};
    sf_feeder_start(&s.feeder, square, &s, 1, 1); /* a call each */
    line_up(list, 20, &s, meters);
    atomic_store(&meter.cancelled, 1);
    atomic_store(&s.gated, 0);
    join_all(list, 20);
    assert_int_equal(list[0].status, SAFER_OK);
    for (int i = 1; i < 20; i++) assert_int_equal(list[i].status, SAFER_CANCELLED);
    assert_int_equal(s.calls, 1);
    sf_feeder_end(&s.feeder);
}

/* ------------------------------------------------------------------- a host */

static void gather_as_guests(void *context) { sf_parallel(8, 8, 1, ask_often, context); }

static void a_host_makes_all_calls(void **unused)
{
    (void)unused;
    squares s = {.refused = -1, .host = pthread_self(), .hosted = 1, .seconds = 1e-4};
    crowd c = {.squares = &s, .rounds = 50};
    sf_feeder_start(&s.feeder, square, &s, 16, 1);
    sf_feeder_host(&s.feeder, gather_as_guests, &c);
    assert_false(s.wrong);
    assert_false(c.wrong);
    assert_int_equal(c.failed, 0);
    sf_feeder_end(&s.feeder);
}

static void the_fault_of_a_hosts_function_ends_its_work(void **unused)
{
    (void)unused;
    squares s = {.refused = -2, .with = SAFER_CALLBACK, .host = pthread_self(), .hosted = 1, .seconds = 1e-3};
    crowd c = {.squares = &s, .rounds = 5};
    sf_feeder_start(&s.feeder, square, &s, 1000, 1);
    sf_feeder_host(&s.feeder, gather_as_guests, &c);
    assert_int_equal(c.failed, 8 * 5);
    assert_true(s.calls <= 8 * 5); /* nothing is asked again */
    assert_false(s.wrong);
    sf_feeder_end(&s.feeder);
}

/* Hosts come and go while strangers ask; never two calls at once, and nobody is forgotten. */
static void host_or_ask(void *context, size_t begin, size_t end, int worker)
{
    crowd *c = context;
    crowd own = {.squares = c->squares, .rounds = 3};
    if (begin % 3 != 0) {
        ask_often(context, begin, end, worker);
        return;
    }
    for (int i = 0; i < c->rounds / 4; i++) sf_feeder_host(&c->squares->feeder, gather_as_guests, &own);
    if (own.wrong || own.failed) atomic_store(&c->wrong, 1);
}

static void hosts_come_and_go(void **unused)
{
    (void)unused;
    squares s = {.refused = -1, .seconds = 1e-5};
    crowd c = {.squares = &s, .rounds = 60};
    sf_feeder_start(&s.feeder, square, &s, 16, 1);
    sf_parallel(9, 9, 1, host_or_ask, &c);
    assert_false(s.wrong);
    assert_false(c.wrong);
    assert_int_equal(c.failed, 0);
    assert_int_equal(s.most_running, 1);
    sf_feeder_end(&s.feeder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_gets_his_own),
        cmocka_unit_test(calls_are_shared),
        cmocka_unit_test(one_thread_does_not_wait),
        cmocka_unit_test(a_fault_stays_with_its_thread),
        cmocka_unit_test(a_fault_of_all_is_not_asked_again_for_each),
        cmocka_unit_test(one_bad_question_among_many_is_found_in_few_calls),
        cmocka_unit_test(a_function_that_fails_fails_its_own),
        cmocka_unit_test(who_waits_can_be_stopped),
        cmocka_unit_test(others_outlive_the_end_of_who_called_for_them),
        cmocka_unit_test(who_is_stopped_makes_no_call),
        cmocka_unit_test(a_host_makes_all_calls),
        cmocka_unit_test(the_fault_of_a_hosts_function_ends_its_work),
        cmocka_unit_test(hosts_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
