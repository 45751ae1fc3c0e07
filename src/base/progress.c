/* Progress of a long loop. */
#define _GNU_SOURCE
#include "base/progress.h"

#include <math.h>
#include <time.h>

double sf_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void report(sf_meter *meter)
{
    const safer_progress *p = meter->progress;
    if (p && meter->describe) meter->describe(meter->context);
    if (p && p->report && p->report(p->context, meter->stage, atomic_load(&meter->done), meter->total))
        atomic_store(&meter->cancelled, 1);
    meter->last = sf_seconds();
}

void sf_meter_start(sf_meter *meter, const safer_progress *progress, const char *stage, uint64_t total)
{
    meter->progress = progress;
    meter->stage = stage;
    meter->total = total;
    meter->describe = NULL;
    atomic_init(&meter->done, 0);
    atomic_init(&meter->cancelled, 0);
    report(meter);
}

int sf_meter_add(sf_meter *meter, uint64_t more, int worker)
{
    atomic_fetch_add_explicit(&meter->done, more, memory_order_relaxed);
    int cancelled = atomic_load_explicit(&meter->cancelled, memory_order_relaxed);
    if (cancelled || worker != 0 || !meter->progress || sf_seconds() - meter->last <= 0.1) return cancelled;
    report(meter);
    return atomic_load_explicit(&meter->cancelled, memory_order_relaxed);
}

int sf_meter_cancelled(sf_meter *meter) { return atomic_load_explicit(&meter->cancelled, memory_order_relaxed); }

safer_status sf_meter_finish(sf_meter *meter, safer_error *error)
{
    if (!atomic_load(&meter->cancelled)) report(meter);
    return atomic_load(&meter->cancelled) ? sf_fail(error, SAFER_CANCELLED, "cancelled during: %s", meter->stage)
                                          : SAFER_OK;
}

static _Thread_local sf_duty duty;

sf_duty sf_duty_now(void) { return duty; }

sf_duty sf_duty_change(sf_duty next)
{
    sf_duty before = duty;
    duty = next;
    return before;
}

int sf_duty_cancelled(void) { return duty.meter && sf_meter_add(duty.meter, 0, duty.worker); }

int sf_duty_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    const double until = sf_seconds() + SF_PATIENCE;
    const struct timespec at = {(time_t)until, (long)((until - floor(until)) * 1e9)};
    /* Who reports looks for a wish to stop each time: where things always happen, no wait is ever in vain. */
    if (pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &at) == 0 && (!duty.meter || duty.worker)) return 0;
    pthread_mutex_unlock(lock);
    int cancelled = sf_duty_cancelled();
    pthread_mutex_lock(lock);
    return cancelled;
}
