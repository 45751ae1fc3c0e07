/* Work spread over threads.
 *
 * Plain POSIX threads that wait from call to call, so that work of a millisecond pays, and
 * the thread sanitizer sees everything. Results must not depend on which worker did what:
 * sum over fixed blocks, not over workers. */
#ifndef SF_BASE_PARALLEL_H
#define SF_BASE_PARALLEL_H

#include <stddef.h>

/* Does items begin..end-1. `worker` is below the number of threads: an index for scratch. */
typedef void (*sf_task)(void *context, size_t begin, size_t end, int worker);

/* The cores this process may use, at least 1. */
int sf_cores(void);

/* `threads` when positive, else the number of cores. */
int sf_threads(int threads);

/* Runs `task` over 0..count-1 in pieces of `grain` items, handed out as workers come
 * free; returns when all are done. When a thread cannot be started the others do its
 * share. Workers round, and treat denormal numbers, as the caller does at that moment. */
void sf_parallel(int threads, size_t count, size_t grain, sf_task task, void *context);

#endif
