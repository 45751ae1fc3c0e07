/* The feeder. */
#define _GNU_SOURCE
#include "base/feeder.h"

#include "base/progress.h"

#include <assert.h>
#include <fenv.h>

/* States of an asking: in the queue; first in it, and told to make the next call; part of a call; done. */
enum { WAITING, CALLED, TAKEN, ANSWERED };

void sf_feeder_start(sf_feeder *f, sf_feeder_call call, void *self, size_t most, int calls)
{
    *f = (sf_feeder){.call = call, .self = self, .most = most, .calls = calls};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->news, NULL);
}

void sf_feeder_end(sf_feeder *f)
{
    assert(!f->first && !f->running && !f->hosted);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->news);
}

/* Whether this thread is to stop. Does not report: a lock may be held. */
static int stopped(void)
{
    const sf_duty duty = sf_duty_now();
    return duty.meter && sf_meter_cancelled(duty.meter);
}

/* ------------------------------------------------------------- the queue; the lock is held */

/* Puts it behind another; NULL: at the front. */
static void put(sf_feeder *f, sf_asking *own, sf_asking *before)
{
    sf_asking **link = before ? &before->next : &f->first;
    own->state = WAITING;
    own->next = *link;
    *link = own;
    if (f->last == before) f->last = own;
}

static void leave(sf_feeder *f, sf_asking *own)
{
    sf_asking *before = NULL;
    for (sf_asking *a = f->first; a != own; a = a->next) before = a;
    *(before ? &before->next : &f->first) = own->next;
    if (f->last == own) f->last = before;
    own->state = ANSWERED;
    own->status = sf_fail(own->error, SAFER_CANCELLED, "cancelled while the model was asked");
}

/* Whether one more call is to begin. */
static int call_is_due(const sf_feeder *f) { return f->first && f->first->state == WAITING && f->running < f->calls; }

/* Has it made: by the host, or by the thread of the first in the queue. */
static void call_next(sf_feeder *f)
{
    if (!call_is_due(f)) return;
    if (f->hosted) {
        pthread_cond_signal(&f->news);
        return;
    }
    f->running++;
    f->first->state = CALLED;
    pthread_cond_signal(&f->first->turn);
}

/* Takes those out of the queue that fit into one call. */
static sf_asking *take(sf_feeder *f, size_t *count)
{
    sf_asking *first = f->first, *last = first;
    first->state = TAKEN;
    for (*count = first->count; last->next && last->next->count <= f->most - *count; last = last->next) {
        *count += last->next->count;
        last->next->state = TAKEN;
    }
    f->first = last->next;
    if (!f->first) f->last = NULL;
    last->next = NULL;
    return first;
}

/* Tells the threads of a call. One that is told goes on, and its asking is gone, once the lock is given back. Where
 * the thread that called was stopped, those of others are in the queue again, before all that nobody has called. */
static void tell(sf_feeder *f, sf_asking *first, const sf_asking *own)
{
    sf_asking *before = f->first && f->first->state == CALLED ? f->first : NULL;
    for (sf_asking *a = first, *next; a; a = next) {
        next = a->next;
        if (a->status == SAFER_CANCELLED && a != own) {
            put(f, a, before);
            before = a;
        } else {
            a->state = ANSWERED;
            pthread_cond_signal(&a->turn);
        }
    }
}

/* ------------------------------------------------------------------------- calls */

/* What became of the first `threads` of a list; returns those after them. */
static sf_asking *settle(sf_asking *first, size_t threads, safer_status status, const safer_error *error)
{
    sf_asking *a = first;
    for (size_t i = 0; i < threads; i++, a = a->next) {
        a->status = status;
        if (status != SAFER_OK && a->error) *a->error = *error;
    }
    return a;
}

/* Whether it is of no use to ask again in parts. */
static int is_final(safer_status status)
{
    return status == SAFER_OK || status == SAFER_CANCELLED || status == SAFER_MEMORY;
}

/* One call for the first `threads` of a list. */
static safer_status call(sf_feeder *f, sf_asking *first, size_t threads, safer_error *error)
{
    sf_asking *last = first;
    size_t count = first->count;
    for (size_t i = 1; i < threads; i++) {
        last = last->next;
        count += last->count;
    }
    sf_asking *rest = last->next;
    last->next = NULL;
    const safer_status status = f->call(f->self, first, count, error);
    last->next = rest;
    return status;
}

/* Asks the first `threads` of a list, in halves where they fail; returns those after them. */
static sf_asking *ask_parts(sf_feeder *f, sf_asking *first, size_t threads)
{
    safer_error error = {0};
    if (threads == 0) return first;
    const safer_status status = call(f, first, threads, &error);
    if (is_final(status) || threads == 1) return settle(first, threads, status, &error);
    return ask_parts(f, ask_parts(f, first, threads / 2), threads - threads / 2);
}

/* Answers a list; in a second attempt, where the first fails, by its parts. */
static void answer(sf_feeder *f, sf_asking *first, int hosted)
{
    size_t threads = 0;
    sf_asking *last = first;
    safer_error error = {0}, of_first = {0}, of_last = {0};
    for (sf_asking *a = first; a; a = a->next, threads++) last = a;
    const safer_status status = call(f, first, threads, &error);
    if (is_final(status) || threads == 1 || (hosted && status == SAFER_CALLBACK)) {
        settle(first, threads, status, &error);
        return;
    }
    const safer_status one = call(f, first, 1, &of_first), two = call(f, last, 1, &of_last);
    if (two == SAFER_CANCELLED) {
        settle(first, threads, two, &of_last);
    } else if (one != SAFER_OK && two != SAFER_OK) {
        settle(first, threads, status, &error);
    } else {
        settle(first, 1, one, &of_first);
        settle(last, 1, two, &of_last);
        ask_parts(f, first->next, threads - 2);
    }
}

/* Makes the next call, which was counted. `own` is this thread's; a host has none. The lock is held, but not during
 * the call. */
static void make_call(sf_feeder *f, const sf_asking *own)
{
    size_t count;
    sf_asking *first = take(f, &count);
    call_next(f);
    pthread_mutex_unlock(&f->lock);
    answer(f, first, own == NULL);
    pthread_mutex_lock(&f->lock);
    tell(f, first, own);
    f->running--;
    call_next(f);
}

safer_status sf_feeder_ask(sf_feeder *f, sf_asking *own)
{
    assert(own->count > 0 && own->count <= f->most);
    pthread_cond_init(&own->turn, NULL);
    pthread_mutex_lock(&f->lock);
    put(f, own, f->last);
    call_next(f);
    while (own->state != ANSWERED) {
        if (own->state == CALLED && stopped()) {
            f->running--;
            leave(f, own);
            call_next(f);
        } else if (own->state == CALLED) {
            make_call(f, own);
        } else if (sf_duty_wait(&own->turn, &f->lock) && own->state == WAITING) {
            leave(f, own);
        }
    }
    pthread_mutex_unlock(&f->lock);
    pthread_cond_destroy(&own->turn);
    return own->status;
}

/* -------------------------------------------------------------------------- a host */

typedef struct guest {
    sf_feeder *feeder;
    void (*work)(void *context);
    void *context;
    fenv_t arithmetic; /* the host's */
    sf_duty duty;      /* likewise; but the host alone reports */
} guest;

static int become_host(sf_feeder *f)
{
    pthread_mutex_lock(&f->lock);
    const int free = !f->hosted;
    f->hosted = 1;
    pthread_mutex_unlock(&f->lock);
    return free;
}

/* Others may ask still: they call from now on. */
static void end_hosting(sf_feeder *f)
{
    pthread_mutex_lock(&f->lock);
    f->hosted = 0;
    pthread_cond_signal(&f->news);
    call_next(f);
    pthread_mutex_unlock(&f->lock);
}

static void *work_as_guest(void *argument)
{
    const guest *g = argument;
    fesetenv(&g->arithmetic);
    (void)sf_duty_change(g->duty);
    g->work(g->context);
    end_hosting(g->feeder);
    return NULL;
}

void sf_feeder_host(sf_feeder *f, void (*work)(void *context), void *context)
{
    pthread_t thread;
    guest g = {.feeder = f, .work = work, .context = context, .duty = sf_duty_now()};
    g.duty.worker = 1;
    fegetenv(&g.arithmetic);
    const int hosting = become_host(f);
    if (!hosting || pthread_create(&thread, NULL, work_as_guest, &g) != 0) {
        if (hosting) end_hosting(f);
        work(context);
        return;
    }
    pthread_mutex_lock(&f->lock);
    while (f->hosted) {
        if (call_is_due(f) && !stopped()) {
            f->running++;
            make_call(f, NULL);
            pthread_mutex_unlock(&f->lock);
            (void)sf_duty_cancelled(); /* reports, however many calls are due */
            pthread_mutex_lock(&f->lock);
        } else {
            (void)sf_duty_wait(&f->news, &f->lock);
        }
    }
    pthread_mutex_unlock(&f->lock);
    pthread_join(thread, NULL);
}
