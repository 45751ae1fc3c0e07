/* Threads and progress. */
#define _GNU_SOURCE
#include "support.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- threads */

typedef struct visits {
    size_t count, grain;
    int threads;
    _Atomic unsigned *seen; /* how often each item was done */
    atomic_int wrong, workers;
} visits;

static void visit(void *context, size_t begin, size_t end, int worker)
{
    visits *v = context;
    if (worker < 0 || worker >= v->threads || begin >= end || end > v->count || begin % v->grain ||
        end - begin > v->grain)
        atomic_store(&v->wrong, 1);
    atomic_fetch_or(&v->workers, 1 << worker);
    for (size_t i = begin; i < end && i < v->count; i++) atomic_fetch_add(&v->seen[i], 1);
}

static void test_parallel(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 5, 16};
    static const size_t counts[] = {0, 1, 2, 15, 16, 17, 1000, 10007}, grains[] = {1, 2, 7, 64, 10007, SIZE_MAX};
    for (size_t t = 0; t < COUNT(threads); t++)
        for (size_t c = 0; c < COUNT(counts); c++)
            for (size_t g = 0; g < COUNT(grains); g++) {
                visits v = {.count = counts[c], .grain = grains[g], .threads = threads[t]};
                v.seen = calloc(counts[c] + 1, sizeof *v.seen);
                assert_non_null(v.seen);
                sf_parallel(threads[t], counts[c], grains[g], visit, &v);
                assert_false(atomic_load(&v.wrong));
                for (size_t i = 0; i < counts[c]; i++) assert_int_equal(atomic_load(&v.seen[i]), 1);
                assert_int_equal(atomic_load(&v.seen[counts[c]]), 0);
                assert_int_equal(atomic_load(&v.workers) != 0, counts[c] != 0);
                free(v.seen);
            }
    visits v = {.count = 9, .grain = 1, .threads = 3};
    v.seen = calloc(9, sizeof *v.seen);
    assert_non_null(v.seen);
    sf_parallel(3, 9, 0, visit, &v); /* a grain of 0 is 1 */
    for (size_t i = 0; i < 9; i++) assert_int_equal(atomic_load(&v.seen[i]), 1);
    free(v.seen);
}

/* Workers that wait for one another: threads do run at the same time, and the caller waits
 * for those that take longer than itself. */
typedef struct meeting {
    atomic_int here, left;
} meeting;

static void meet(void *context, size_t begin, size_t end, int worker)
{
    meeting *m = context;
    (void)begin, (void)end;
    atomic_fetch_add(&m->here, 1);
    double start = sf_seconds();
    while (atomic_load(&m->here) < 4 && sf_seconds() - start < 10) sched_yield();
    struct timespec nap = {0, worker * 20000000};
    nanosleep(&nap, NULL);
    atomic_fetch_add(&m->left, 1);
}

/* Every worker's arithmetic is the caller's: also that of threads which an earlier call left. */
typedef struct arithmetic {
    meeting all;
    atomic_int flushed, upward;
} arithmetic;

static void compute(void *context, size_t begin, size_t end, int worker)
{
    arithmetic *a = context;
    volatile float tiny = 0x1p-126f, one = 1;
    meet(&a->all, begin, end, worker);
    if (tiny * 0.5f == 0) atomic_fetch_add(&a->flushed, 1);
    if (one + tiny > one) atomic_fetch_add(&a->upward, 1);
}

static void test_parallel_arithmetic(void **state)
{
    (void)state;
    fenv_t before;
    arithmetic plain = {0}, flushing = {0}, upward = {0}, again = {0};
    sf_parallel(4, 4, 1, compute, &plain);
    sf_flush_denormals(&before);
    sf_parallel(4, 4, 1, compute, &flushing);
    fesetenv(&before);
    fesetround(FE_UPWARD);
    sf_parallel(4, 4, 1, compute, &upward);
    fesetenv(&before);
    sf_parallel(4, 4, 1, compute, &again);
    assert_int_equal(plain.flushed, 0);
    assert_int_equal(flushing.flushed, 4);
    assert_int_equal(upward.flushed, 0);
    assert_int_equal(again.flushed, 0);
    assert_int_equal(plain.upward, 0);
    assert_int_equal(upward.upward, 4);
    assert_int_equal(again.upward, 0);
}

static void test_parallel_at_once(void **state)
{
    (void)state;
    meeting m = {.here = 0};
    double start = sf_seconds();
    sf_parallel(4, 4, 1, meet, &m);
    assert_int_equal(atomic_load(&m.left), 4);
    assert_true(sf_seconds() - start < 10);
    assert_true(sf_cores() >= 1);
    assert_int_equal(sf_threads(0), sf_threads(sf_cores()));
    assert_int_equal(sf_threads(-1), sf_threads(0));
    assert_int_equal(sf_threads(7), 7);
    assert_true(sf_threads(1 << 30) >= 16); /* bounded, not refused */
    sf_parallel(1 << 30, 0, 1, meet, &m);
    assert_int_equal(atomic_load(&m.left), 4);
}

/* Calls within calls, calls beside calls, and calls in a child of fork. */
static void add_inner(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    atomic_fetch_add((atomic_size_t *)context, end - begin);
}

static void add_outer(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    for (size_t i = begin; i < end; i++) sf_parallel(3, 50, 1, add_inner, context);
}

static void *call_from_beside(void *context)
{
    for (int i = 0; i < 50; i++) sf_parallel(4, 100, 7, add_inner, context);
    return NULL;
}

static void test_parallel_nested(void **state)
{
    (void)state;
    atomic_size_t sum = 0;
    sf_parallel(4, 20, 1, add_outer, &sum);
    assert_int_equal(atomic_load(&sum), 1000);
    pthread_t others[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&others[i], NULL, call_from_beside, &sum), 0);
    call_from_beside(&sum);
    for (int i = 0; i < 3; i++) pthread_join(others[i], NULL);
    assert_int_equal(atomic_load(&sum), 1000 + 4 * 50 * 100);
    for (int i = 0; i < 200; i++) sf_parallel(2 + i % 5, 10, 1, add_inner, &sum); /* changing numbers of threads */
    assert_int_equal(atomic_load(&sum), 23000);
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    return; /* which ends a child that starts threads */
#endif
#endif
    pid_t child = fork();
    if (child == 0) {
        atomic_size_t own = 0;
        for (int i = 0; i < 20; i++) sf_parallel(4, 100, 1, add_inner, &own);
        _exit(atomic_load(&own) == 2000 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --------------------------------------------------------------- progress */

typedef struct listener {
    pthread_t caller;
    int calls, elsewhere, stop_at;
    uint64_t last, total;
    const char *stage;
} listener;

static int listen_to(void *context, const char *stage, uint64_t done, uint64_t total)
{
    listener *l = context;
    l->calls++;
    l->elsewhere |= !pthread_equal(pthread_self(), l->caller);
    l->elsewhere |= done < l->last; /* never backwards */
    l->last = done;
    l->total = total;
    l->stage = stage;
    return l->stop_at && l->calls >= l->stop_at;
}

typedef struct loop {
    sf_meter meter;
    atomic_int stopped, items;
} loop;

static void count_slowly(void *context, size_t begin, size_t end, int worker)
{
    loop *l = context;
    (void)begin, (void)end;
    if (atomic_load(&l->stopped)) return;
    struct timespec nap = {0, 2000000};
    nanosleep(&nap, NULL);
    atomic_fetch_add(&l->items, 1);
    if (sf_meter_add(&l->meter, 1, worker)) atomic_store(&l->stopped, 1);
}

static void test_meter(void **state)
{
    (void)state;
    safer_error error = {0};
    listener l = {.caller = pthread_self()};
    safer_progress progress = {listen_to, &l};
    loop work = {.stopped = 0};
    double start = sf_seconds();
    sf_meter_start(&work.meter, &progress, "counting", 600);
    assert_int_equal(l.calls, 1);
    assert_string_equal(l.stage, "counting");
    sf_parallel(4, 600, 1, count_slowly, &work); /* 0.3 seconds at least: some reports */
    assert_ok(sf_meter_finish(&work.meter, &error));
    assert_int_equal(l.elsewhere, 0);
    assert_int_equal(l.last, 600);
    assert_int_equal(l.total, 600);
    assert_true(l.calls >= 3 && l.calls <= 3 + (sf_seconds() - start) / 0.1); /* a few times per second */
    assert_int_equal(atomic_load(&work.items), 600);
}

static void test_meter_cancel(void **state)
{
    (void)state;
    safer_error error = {0};
    for (int stop_at = 1; stop_at <= 3; stop_at++) {
        listener l = {.caller = pthread_self(), .stop_at = stop_at};
        safer_progress progress = {listen_to, &l};
        loop work = {.stopped = 0};
        sf_meter_start(&work.meter, &progress, "counting", 0);
        sf_parallel(3, 2000, 1, count_slowly, &work);
        assert_true(atomic_load(&work.stopped));
        assert_true(atomic_load(&work.items) < 1500);
        assert_fails(sf_meter_finish(&work.meter, &error), SAFER_CANCELLED, "counting");
        assert_int_equal(l.elsewhere, 0);
        assert_int_equal(l.calls, stop_at);
    }
    /* Nobody is asked again after wanting to stop. */
    listener l = {.caller = pthread_self(), .stop_at = 1};
    safer_progress progress = {listen_to, &l};
    sf_meter meter;
    sf_meter_start(&meter, &progress, "quick", 1);
    meter.last -= 1; /* a report is due */
    assert_int_equal(sf_meter_add(&meter, 1, 0), 1);
    assert_fails(sf_meter_finish(&meter, &error), SAFER_CANCELLED, "quick");
    assert_int_equal(l.calls, 1);
    /* Cancelled by the very last report; and nobody listening at all. */
    l = (listener){.caller = pthread_self(), .stop_at = 2};
    sf_meter_start(&meter, &progress, "quick", 1);
    assert_int_equal(sf_meter_add(&meter, 1, 0), 0);
    assert_fails(sf_meter_finish(&meter, &error), SAFER_CANCELLED, "quick");
    progress.report = NULL;
    const safer_progress *silent[] = {NULL, &progress};
    for (size_t i = 0; i < COUNT(silent); i++) {
        sf_meter_start(&meter, silent[i], "quiet", 1);
        assert_int_equal(sf_meter_add(&meter, 1, 0), 0);
        assert_ok(sf_meter_finish(&meter, &error));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_parallel_at_once),
        cmocka_unit_test(test_parallel_arithmetic),
        cmocka_unit_test(test_parallel_nested),
        cmocka_unit_test(test_meter),
        cmocka_unit_test(test_meter_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
