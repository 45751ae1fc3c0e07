/* The feeder: everybody gets the answers to his own questions, whatever met in a call. */
#define _GNU_SOURCE
#include "support.h"

#include "base/feeder.h"
#include "base/parallel.h"

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
    atomic_fetch_add(&s->calls, 1);
    raise_to(&s->most_running, atomic_fetch_add(&s->running, 1) + 1);
    raise_to(&s->most, (int)count);
    if (!first->next) atomic_fetch_add(&s->singles, 1);
    if (s->seconds > 0) pause_for(s->seconds);
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

static void what_is_cancelled_is_not_asked_again(void **unused)
{
    (void)unused;
    crowd c;
    squares s = {.refused = -2, .with = SAFER_CANCELLED, .seconds = 2e-3};
    gather(&c, &s, 1000, 1, 20);
    assert_int_equal(c.failed, THREADS * 20);
    assert_true(s.singles < 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_gets_his_own),
        cmocka_unit_test(calls_are_shared),
        cmocka_unit_test(one_thread_does_not_wait),
        cmocka_unit_test(a_fault_stays_with_its_thread),
        cmocka_unit_test(a_fault_of_all_is_not_asked_again_for_each),
        cmocka_unit_test(what_is_cancelled_is_not_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
