/* Work spread over threads. */
#define _GNU_SOURCE
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MAX_THREADS = 256 };

typedef struct job {
    sf_task task;
    void *context;
    size_t count, grain;
    atomic_size_t next;
} job;

typedef struct worker {
    job *job;
    int index;
    pthread_t thread;
} worker;

static void *work(void *argument)
{
    worker *self = argument;
    job *j = self->job;
    for (;;) {
        size_t begin = atomic_fetch_add(&j->next, j->grain);
        if (begin >= j->count) return NULL;
        size_t end = j->count - begin > j->grain ? begin + j->grain : j->count;
        j->task(j->context, begin, end, self->index);
    }
}

int sf_cores(void)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return cores < 1 ? 1 : cores;
}

int sf_threads(int threads)
{
    if (threads <= 0) threads = sf_cores();
    return threads > MAX_THREADS ? MAX_THREADS : threads;
}

void sf_parallel(int threads, size_t count, size_t grain, sf_task task, void *context)
{
    worker workers[MAX_THREADS];
    job j = {.task = task, .context = context, .count = count, .grain = grain ? grain : 1};
    atomic_init(&j.next, 0);
    threads = sf_threads(threads);
    size_t pieces = count / j.grain + (count % j.grain != 0);
    if ((size_t)threads > pieces) threads = pieces ? (int)pieces : 1;

    int started = 1; /* the caller is worker 0 */
    for (; started < threads; started++) {
        workers[started] = (worker){.job = &j, .index = started};
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0) break;
    }
    workers[0] = (worker){.job = &j, .index = 0};
    work(&workers[0]);
    for (int i = 1; i < started; i++) pthread_join(workers[i].thread, NULL);
}
