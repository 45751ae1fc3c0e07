/* The open connections, and how long each may take. */
#define _GNU_SOURCE
#include "serve/connections.h"

#include "base/memory.h"
#include "base/progress.h"

#include <sys/socket.h>
#include <time.h>

#define LOOK_SECONDS 0.05

/* Whose time is over. The lock is held. */
static void look_at(sf_guest *g, double now, double patience)
{
    sf_fault fault;
    if (now < g->due) return;
    g->due = now + patience;
    if (!g->job) {
        shutdown(g->fd, SHUT_RDWR); /* the server sees it end */
        return;
    }
    sf_fault_set(&fault, 504, "deadline", "there was no answer in time");
    sf_job_fail(g->job, &fault, NULL); /* unless it is done */
    g->job = NULL;                     /* what is left is to send it */
}

/* Waits a little, or until it shall end. The lock is held. */
static void wait_a_little(sf_guests *guests)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(LOOK_SECONDS * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&guests->wish, &guests->lock, &until);
}

static void *watch(void *argument)
{
    sf_guests *guests = argument;
    pthread_mutex_lock(&guests->lock);
    while (!guests->ending) {
        wait_a_little(guests);
        double now = sf_seconds();
        for (sf_guest *g = guests->first; g; g = g->next) look_at(g, now, guests->patience);
    }
    pthread_mutex_unlock(&guests->lock);
    return NULL;
}

safer_status sf_guests_start(sf_guests *guests, double patience, safer_error *error)
{
    pthread_condattr_t monotonic;
    *guests = (sf_guests){.patience = patience};
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&guests->wish, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&guests->lock, NULL);
    guests->watched = pthread_create(&guests->watchman, NULL, watch, guests) == 0;
    return guests->watched ? SAFER_OK : sf_fail(error, SAFER_SYSTEM, "cannot start a thread");
}

void sf_guests_end(sf_guests *guests)
{
    pthread_mutex_lock(&guests->lock);
    guests->ending = 1;
    pthread_cond_signal(&guests->wish);
    pthread_mutex_unlock(&guests->lock);
    if (guests->watched) pthread_join(guests->watchman, NULL);
    pthread_cond_destroy(&guests->wish);
    pthread_mutex_destroy(&guests->lock);
}

sf_guest *sf_guest_enter(sf_guests *guests, int fd, double seconds)
{
    sf_guest *g = sf_calloc(1, sizeof *g);
    if (!g) return NULL;
    g->fd = fd;
    g->since = sf_seconds();
    g->due = g->since + seconds;
    pthread_mutex_lock(&guests->lock);
    g->next = guests->first;
    if (g->next) g->next->previous = g;
    guests->first = g;
    guests->count++;
    pthread_mutex_unlock(&guests->lock);
    return g;
}

void sf_guest_leave(sf_guests *guests, sf_guest *g)
{
    if (!g) return;
    pthread_mutex_lock(&guests->lock);
    if (g->previous)
        g->previous->next = g->next;
    else
        guests->first = g->next;
    if (g->next) g->next->previous = g->previous;
    guests->count--;
    pthread_mutex_unlock(&guests->lock);
    free(g);
}

/* The lock is held. */
static void change(sf_guest *g, int busy, sf_job *job, double seconds)
{
    g->busy = busy;
    g->job = job;
    g->since = sf_seconds();
    g->due = g->since + seconds;
}

int sf_guest_asks(sf_guests *guests, sf_guest *g, double seconds)
{
    if (!g) return -1;
    pthread_mutex_lock(&guests->lock);
    int closed = guests->closed;
    if (!closed) change(g, 1, NULL, seconds);
    pthread_mutex_unlock(&guests->lock);
    return closed ? -1 : 0;
}

void sf_guest_does(sf_guests *guests, sf_guest *g, int busy, sf_job *job, double seconds)
{
    pthread_mutex_lock(&guests->lock);
    change(g, busy, job, seconds);
    pthread_mutex_unlock(&guests->lock);
}

size_t sf_guests_count(sf_guests *guests)
{
    pthread_mutex_lock(&guests->lock);
    size_t count = guests->count;
    pthread_mutex_unlock(&guests->lock);
    return count;
}

void sf_guests_quiet(sf_guests *guests, double seconds)
{
    pthread_mutex_lock(&guests->lock);
    for (;;) {
        double now = sf_seconds();
        const sf_guest *g = guests->first;
        while (g && !g->busy && now - g->since >= seconds) g = g->next;
        if (!g) break;
        wait_a_little(guests);
    }
    guests->closed = 1;
    pthread_mutex_unlock(&guests->lock);
}
