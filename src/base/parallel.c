/* Work spread over threads. */
#define _GNU_SOURCE
#include "base/parallel.h"

#include "base/progress.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

enum { MAX_THREADS = 256 };

typedef struct job {
    sf_task task;
    void *context;
    size_t count, grain;
    atomic_size_t next;
    fenv_t arithmetic; /* the caller's, */
    sf_duty duty;      /* and what they work for */
} job;

typedef struct worker {
    job *job;
    int index;
    pthread_t thread;
    struct crew *crew; /* NULL: the pool's */
} worker;

static void *work(void *argument)
{
    worker *self = argument;
    job *j = self->job;
    if (self->index > 0) {
        fesetenv(&j->arithmetic);
        (void)sf_duty_change(j->duty);
    }
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

/* ------------------------------------------------------------------ the pool */

/* Threads that wait for work from one call to the next: work that lasts milliseconds would
 * otherwise be over before the system has found a core for a new thread. One call has the
 * pool at a time; calls within calls, and beside them, make threads of their own. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, rest; /* there is a job; the last of its workers is done */
    worker workers[MAX_THREADS];
    int started; /* threads 1 .. started wait or work */
    int taken;   /* by a call */
    job *job;    /* open to workers below `wanted`, or NULL */
    int wanted, working;
    uint64_t number; /* of the job */
    int ending;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .rest = PTHREAD_COND_INITIALIZER};

static void *wait_for_work(void *argument)
{
    worker *self = argument;
    uint64_t seen = 0; /* the last job it took part in */
    pthread_mutex_lock(&pool.lock);
    while (!pool.ending) {
        if (!pool.job || self->index >= pool.wanted || seen == pool.number) {
            pthread_cond_wait(&pool.work, &pool.lock);
            continue;
        }
        seen = pool.number;
        self->job = pool.job;
        pool.working++;
        pthread_mutex_unlock(&pool.lock);
        work(self);
        pthread_mutex_lock(&pool.lock);
        if (--pool.working == 0) pthread_cond_signal(&pool.rest);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* A child of fork has none of its parent's threads. */
static void forget_threads(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.rest, NULL);
    pool.started = pool.taken = pool.working = 0;
    pool.job = NULL;
}

/* When the library is unloaded or the program ends. */
__attribute__((destructor)) static void end_threads(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.ending = 1;
    pthread_cond_broadcast(&pool.work);
    int started = pool.taken ? 0 : pool.started; /* in the middle of a job: exit() was called by another thread */
    pthread_mutex_unlock(&pool.lock);
    for (int i = 1; i <= started; i++) pthread_join(pool.workers[i].thread, NULL);
}

/* Whether the pool took the job on. */
static int pool_runs(job *j, int threads)
{
    static int watched; /* for forks */
    pthread_mutex_lock(&pool.lock);
    int mine = !pool.taken && !pool.ending;
    if (mine) {
        pool.taken = 1;
        if (!watched) watched = pthread_atfork(NULL, NULL, forget_threads) == 0;
        while (pool.started < threads - 1) {
            worker *next = &pool.workers[pool.started + 1];
            *next = (worker){.index = pool.started + 1};
            if (pthread_create(&next->thread, NULL, wait_for_work, next) != 0) break;
            pool.started++;
        }
        pool.job = j;
        pool.wanted = threads;
        pool.number++;
        pthread_cond_broadcast(&pool.work);
    }
    pthread_mutex_unlock(&pool.lock);
    if (!mine) return 0;
    work(&(worker){.job = j, .index = 0}); /* the caller is worker 0 */
    pthread_mutex_lock(&pool.lock);
    pool.job = NULL; /* who has not begun need not: all is handed out */
    while (pool.working) (void)sf_duty_wait(&pool.rest, &pool.lock);
    pool.taken = 0;
    pthread_mutex_unlock(&pool.lock);
    return 1;
}

/* ------------------------------------------------------- threads of its own */

/* What is still at work: the caller, who waits for it, looks meanwhile whether to stop. */
typedef struct crew {
    pthread_mutex_t lock;
    pthread_cond_t rest;
    int working;
    worker workers[MAX_THREADS];
} crew;

static void *work_in_crew(void *argument)
{
    worker *self = argument;
    crew *c = self->crew;
    work(self);
    pthread_mutex_lock(&c->lock);
    if (--c->working == 0) pthread_cond_signal(&c->rest);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void crew_runs(job *j, int threads)
{
    crew c = {.lock = PTHREAD_MUTEX_INITIALIZER, .rest = PTHREAD_COND_INITIALIZER};
    int started = 1; /* the caller is worker 0 */
    for (; started < threads; started++) {
        c.workers[started] = (worker){.job = j, .index = started, .crew = &c};
        pthread_mutex_lock(&c.lock);
        c.working++;
        pthread_mutex_unlock(&c.lock);
        if (pthread_create(&c.workers[started].thread, NULL, work_in_crew, &c.workers[started]) != 0) break;
    }
    work(&(worker){.job = j, .index = 0});
    pthread_mutex_lock(&c.lock);
    c.working -= started < threads; /* the one that could not be started */
    while (c.working) (void)sf_duty_wait(&c.rest, &c.lock);
    pthread_mutex_unlock(&c.lock);
    for (int i = 1; i < started; i++) pthread_join(c.workers[i].thread, NULL);
    pthread_cond_destroy(&c.rest);
    pthread_mutex_destroy(&c.lock);
}

void sf_parallel(int threads, size_t count, size_t grain, sf_task task, void *context)
{
    job j = {.task = task, .context = context, .count = count, .grain = grain ? grain : 1};
    atomic_init(&j.next, 0);
    fegetenv(&j.arithmetic);
    j.duty = sf_duty_now();
    if (j.duty.worker == 0) j.duty.worker = 1; /* the caller alone reports */
    threads = sf_threads(threads);
    size_t pieces = count / j.grain + (count % j.grain != 0);
    if ((size_t)threads > pieces) threads = pieces ? (int)pieces : 1;
    if (threads == 1)
        work(&(worker){.job = &j});
    else if (!pool_runs(&j, threads))
        crew_runs(&j, threads);
}
