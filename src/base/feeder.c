/* The feeder. */
#include "base/feeder.h"

enum { WAITING, CALLED, ANSWERED }; /* states of an asking; CALLED: its thread makes the next call */

void sf_feeder_start(sf_feeder *f, sf_feeder_call call, void *self, size_t most, int calls)
{
    *f = (sf_feeder){.call = call, .self = self, .most = most, .calls = calls};
    pthread_mutex_init(&f->lock, NULL);
}

void sf_feeder_end(sf_feeder *f) { pthread_mutex_destroy(&f->lock); }

/* Lets the thread of the first in the queue make a call, where one more may be under way. The lock is held. */
static void call_next(sf_feeder *f)
{
    if (!f->first || f->first->state == CALLED || f->running >= f->calls) return;
    f->running++;
    f->first->state = CALLED;
    pthread_cond_signal(&f->first->turn);
}

/* Takes those out of the queue that fit into one call. The lock is held. */
static sf_asking *take(sf_feeder *f, size_t *count)
{
    sf_asking *first = f->first, *last = first;
    for (*count = first->count; last->next && last->next->count <= f->most - *count; last = last->next)
        *count += last->next->count;
    f->first = last->next;
    if (!f->first) f->last = NULL;
    last->next = NULL;
    return first;
}

/* Each alone. */
static void ask_each(sf_feeder *f, sf_asking *first, safer_status status, const safer_error *error)
{
    int asked = 0, failed = 0;
    for (sf_asking *a = first, *next; a; a = next) {
        next = a->next;
        if (status == SAFER_CANCELLED || (asked == 2 && failed == 2)) {
            a->status = status;
            if (a->error) *a->error = *error;
            continue;
        }
        a->next = NULL;
        a->status = f->call(f->self, a, a->count, a->error);
        a->next = next;
        if (asked < 2) failed += a->status != SAFER_OK, asked++;
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

safer_status sf_feeder_ask(sf_feeder *f, sf_asking *own)
{
    size_t count;
    own->next = NULL;
    own->state = WAITING;
    pthread_cond_init(&own->turn, NULL);
    pthread_mutex_lock(&f->lock);
    if (f->last)
        f->last->next = own;
    else
        f->first = own;
    f->last = own;
    call_next(f);
    while (own->state == WAITING) pthread_cond_wait(&own->turn, &f->lock);
    if (own->state == CALLED) {
        sf_asking *first = take(f, &count);
        call_next(f);
        pthread_mutex_unlock(&f->lock);
        answer(f, first, count);
        pthread_mutex_lock(&f->lock);
        f->running--;
        for (sf_asking *a = first, *next; a; a = next) {
            next = a->next; /* a thread that is told goes on, and its asking is gone, once the lock is given back */
            a->state = ANSWERED;
            if (a != own) pthread_cond_signal(&a->turn);
        }
        call_next(f);
    }
    pthread_mutex_unlock(&f->lock);
    pthread_cond_destroy(&own->turn);
    return own->status;
}
