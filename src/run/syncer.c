/* One thread, one lock: `noted` says that there is something to sync. */
#define _GNU_SOURCE
#include "run/syncer.h"

#include "base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { DELAY = 500000000 }; /* nanoseconds from a note to the sync */

struct sf_syncer {
    int fd;
    const char *path;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int noted, stop;
    int problem; /* errno of the first sync that failed, or 0 */
};

/* 0, or errno; not under the lock. What cannot be synced, a pipe or a file system that is only read, need not be. */
static int sync_now(const sf_syncer *s)
{
    int result;
    do result = fdatasync(s->fd);
    while (result != 0 && errno == EINTR);
    if (result != 0 && errno != EINVAL && errno != EROFS) return errno;
    return 0;
}

static struct timespec half_a_second_from_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += DELAY;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void *keep_syncing(void *context)
{
    sf_syncer *s = context;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        while (!s->noted && !s->stop) pthread_cond_wait(&s->changed, &s->lock);
        const struct timespec then = half_a_second_from_now();
        while (!s->stop && pthread_cond_timedwait(&s->changed, &s->lock, &then) != ETIMEDOUT) continue;
        if (s->stop) break;
        s->noted = 0;
        pthread_mutex_unlock(&s->lock);
        const int problem = sync_now(s);
        pthread_mutex_lock(&s->lock);
        if (!s->problem) s->problem = problem;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

safer_status sf_syncer_new(sf_syncer **out, int fd, const char *path, safer_error *error)
{
    pthread_condattr_t monotonic;
    sf_syncer *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    *s = (sf_syncer){.fd = fd, .path = path};
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    errno = pthread_create(&s->thread, NULL, keep_syncing, s);
    if (errno == 0) {
        *out = s;
        return SAFER_OK;
    }
    const safer_status status = sf_fail_errno(error, "start a thread for", path);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return status;
}

/* The lock is held. */
static safer_status report(const sf_syncer *s, safer_error *error)
{
    errno = s->problem;
    return s->problem ? sf_fail_errno(error, "write", s->path) : SAFER_OK;
}

safer_status sf_syncer_note(sf_syncer *s, safer_error *error)
{
    pthread_mutex_lock(&s->lock);
    if (!s->noted) pthread_cond_signal(&s->changed);
    s->noted = 1;
    const safer_status status = report(s, error);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static void stop(sf_syncer *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = 1;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
}

safer_status sf_syncer_finish(sf_syncer *s, safer_error *error)
{
    const int problem = sync_now(s);
    pthread_mutex_lock(&s->lock);
    if (!s->problem) s->problem = problem;
    const safer_status status = report(s, error);
    pthread_mutex_unlock(&s->lock);
    return status;
}

void sf_syncer_free(sf_syncer *s)
{
    if (!s) return;
    stop(s);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
