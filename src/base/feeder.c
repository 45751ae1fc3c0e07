/* The feeder. */
#define _GNU_SOURCE
#include "base/feeder.h"

#include "base/progress.h"

#include <fenv.h>

/* States of an asking: in the queue; told to make the next call; part of a call; done. */
enum { WAITING, CALLED, TAKEN, ANSWERED };

void sf_feeder_start(sf_feeder *f, sf_feeder_call call, void *self, size_t most, int calls)
{
    *f = (sf_feeder){.call = call, .self = self, .most = most, .calls = calls};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->news, NULL);
}

void sf_feeder_end(sf_feeder *f)
{
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->news);
}

/* ------------------------------------------------------------- the queue; the lock is held */

static void put(sf_feeder *f, sf_asking *own)
{
    own->next = NULL;
    own->state = WAITING;
    if (f->last)
        f->last->next = own;
    else
        f->first = own;
    f->last = own;
}

static void leave(sf_feeder *f, const sf_asking *own)
{
    sf_asking *before = NULL;
    for (sf_asking *a = f->first; a != own; a = a->next) before = a;
    if (before)
        before->next = own->next;
    else
        f->first = own->next;
    if (f->last == own) f->last = before;
}

/* Has the next call made, where one more may be under way: by the host, or by the thread of the first in the queue. */
static void call_next(sf_feeder *f)
{
    if (f->hosted) pthread_cond_signal(&f->news);
    if (f->hosted || !f->first || f->first->state == CALLED || f->running >= f->calls) return;
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

/* A thread that is told goes on, and its asking is gone, once the lock is given back. */
static void tell(sf_asking *first)
{
    for (sf_asking *a = first, *next; a; a = next) {
        next = a->next;
        a->state = ANSWERED;
        pthread_cond_signal(&a->turn);
    }
}

/* ------------------------------------------------------------------------- calls */

/* Each alone, after `status` of them all. */
static void ask_each(sf_feeder *f, sf_asking *first, safer_status status, const safer_error *error)
{
    const int over = status == SAFER_CANCELLED || status == SAFER_CALLBACK;
    int asked = 0, failed = 0;
    for (sf_asking *a = first, *next; a; a = next) {
        next = a->next;
        if (over || failed == 2) {
            a->status = status;
            if (a->error) *a->error = *error;
            continue;
        }
        a->next = NULL;
        a->status = f->call(f->self, a, a->count, a->error);
        a->next = next;
        if (asked++ < 2) failed += a->status != SAFER_OK;
    }
}

static void answer(sf_feeder *f, sf_asking *first, size_t count)
{
    safer_error error = {0};
    if (!first->next) {
        first->status = f->call(f->self, first, count, first->error);
        return;
    }
    const safer_status status = f->call(f->self, first, count, &error);
    if (status != SAFER_OK) {
        ask_each(f, first, status, &error);
        return;
    }
    for (sf_asking *a = first; a; a = a->next) a->status = SAFER_OK;
}

/* Makes the next call. The lock is held, but not during the call. */
static void make_call(sf_feeder *f)
{
    size_t count;
    sf_asking *first = take(f, &count);
    call_next(f);
    pthread_mutex_unlock(&f->lock);
    answer(f, first, count);
    pthread_mutex_lock(&f->lock);
    tell(first);
}

safer_status sf_feeder_ask(sf_feeder *f, sf_asking *own)
{
    pthread_cond_init(&own->turn, NULL);
    pthread_mutex_lock(&f->lock);
    put(f, own);
    call_next(f);
    while (own->state == WAITING || own->state == TAKEN) {
        if (!sf_duty_wait(&own->turn, &f->lock) || own->state != WAITING) continue;
        leave(f, own);
        own->state = ANSWERED;
        own->status = sf_fail(own->error, SAFER_CANCELLED, "cancelled while the model was asked");
    }
    if (own->state == CALLED) {
        make_call(f);
        f->running--;
        call_next(f);
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

static void *work_as_guest(void *argument)
{
    const guest *g = argument;
    fesetenv(&g->arithmetic);
    (void)sf_duty_change(g->duty);
    g->work(g->context);
    pthread_mutex_lock(&g->feeder->lock);
    g->feeder->hosted = 0;
    pthread_cond_signal(&g->feeder->news);
    call_next(g->feeder); /* others may ask still */
    pthread_mutex_unlock(&g->feeder->lock);
    return NULL;
}

void sf_feeder_host(sf_feeder *f, void (*work)(void *context), void *context)
{
    pthread_t thread;
    guest g = {.feeder = f, .work = work, .context = context, .duty = sf_duty_now()};
    g.duty.worker = 1;
    fegetenv(&g.arithmetic);
    f->hosted = 1; /* nobody asks yet */
    if (pthread_create(&thread, NULL, work_as_guest, &g) != 0) {
        f->hosted = 0;
        work(context);
        return;
    }
    pthread_mutex_lock(&f->lock);
    while (f->hosted)
        if (f->first)
            make_call(f);
        else
            (void)sf_duty_wait(&f->news, &f->lock);
    pthread_mutex_unlock(&f->lock);
    pthread_join(thread, NULL);
}
