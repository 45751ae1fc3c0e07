/* Progress of a long loop: counts from any thread, reports from the caller's, a few
 * times per second, and carries the wish to cancel back to the workers. */
#ifndef SF_BASE_PROGRESS_H
#define SF_BASE_PROGRESS_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct sf_meter {
    const safer_progress *progress; /* may be NULL */
    const char *stage;
    uint64_t total;
    double last; /* when it last reported; touched by worker 0 alone */
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

double sf_seconds(void); /* a monotonic clock */

#endif
