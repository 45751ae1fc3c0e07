/* Progress of a long loop: counts from any thread, reports from the caller's, a few
 * times per second, and carries the wish to cancel back to the workers. */
#ifndef SF_BASE_PROGRESS_H
#define SF_BASE_PROGRESS_H

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct sf_meter {
    const safer_progress *progress; /* may be NULL */
    const char *stage;
    uint64_t total;
    double last;                     /* when it last reported; touched by worker 0 alone */
    void (*describe)(void *context); /* brings `stage` up to date before a report; NULL: it never changes. Set it */
    void *context;                   /* after the start, before others work */
    _Atomic uint64_t done;
    atomic_int cancelled;
} sf_meter;

/* Starts a stage and reports it once. */
void sf_meter_start(sf_meter *meter, const safer_progress *progress, const char *stage, uint64_t total);

/* Adds `more`; worker 0 is the thread that called the library. Nonzero: stop. */
int sf_meter_add(sf_meter *meter, uint64_t more, int worker);

/* Whether someone asked to stop: look before starting a piece of work. */
int sf_meter_cancelled(sf_meter *meter);

/* The last report of a stage; SAFER_CANCELLED when someone asked to stop. */
safer_status sf_meter_finish(sf_meter *meter, safer_error *error);

/* What the calling thread works for, while it does. A thread that waits for something outside (a child, a service)
 * looks here, every SF_PATIENCE seconds, whether to go on waiting: else a silent service would keep the caller
 * until its time-out. sf_parallel hands it on to its threads. */
typedef struct sf_duty {
    sf_meter *meter; /* NULL: nobody can ask it to stop */
    int worker;      /* 0 reports */
} sf_duty;

#define SF_PATIENCE 0.1

/* Begins another one and returns the one before, to be put back with the same call before the meter ends. */
sf_duty sf_duty_change(sf_duty next);
sf_duty sf_duty_now(void);

/* Whether it was asked to stop; reports, where that is its part. */
int sf_duty_cancelled(void);

/* Waits on a condition for SF_PATIENCE seconds at most; nonzero: stop. The lock is given back while the caller is
 * asked, since that may take its time. */
int sf_duty_wait(pthread_cond_t *condition, pthread_mutex_t *lock);

double sf_seconds(void); /* a monotonic clock */

#endif
