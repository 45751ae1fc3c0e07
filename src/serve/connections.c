/* The open connections, and how long each may take. */
#define _GNU_SOURCE
#include "serve/connections.h"

#include "base/memory.h"
#include "base/progress.h"

#include <sys/socket.h>
#include <time.h>

#define LOOK_SECONDS 0.05

/* Ends what has taken too long. The lock is held. */
static void look_at(sf_connection *c, double now, double patience)
{
    sf_fault fault;
    if (now < c->due) return;
    c->due = now + patience;
    if (!c->job) {
        shutdown(c->fd, SHUT_RDWR); /* the server sees it end */
        return;
    }
    sf_fault_set(&fault, 504, "deadline", "there was no answer in time");
    sf_job_fail(c->job, &fault, NULL); /* unless it is done */
    c->job = NULL;                     /* what is left is to send it */
}

/* Waits a little, or until the watcher shall end. The lock is held. */
static void wait_a_little(sf_connections *connections)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(LOOK_SECONDS * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&connections->woken, &connections->lock, &until);
}

static void *watch(void *argument)
{
    sf_connections *connections = argument;
    pthread_mutex_lock(&connections->lock);
    while (!connections->ending) {
        wait_a_little(connections);
        double now = sf_seconds();
        for (sf_connection *c = connections->first; c; c = c->next) look_at(c, now, connections->patience);
    }
    pthread_mutex_unlock(&connections->lock);
    return NULL;
}

safer_status sf_connections_start(sf_connections *connections, double patience, safer_error *error)
{
    pthread_condattr_t monotonic;
    *connections = (sf_connections){.patience = patience};
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&connections->woken, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&connections->lock, NULL);
    connections->watched = pthread_create(&connections->watcher, NULL, watch, connections) == 0;
    return connections->watched ? SAFER_OK : sf_fail(error, SAFER_SYSTEM, "cannot start a thread");
}

void sf_connections_end(sf_connections *connections)
{
    pthread_mutex_lock(&connections->lock);
    connections->ending = 1;
    pthread_cond_signal(&connections->woken);
    pthread_mutex_unlock(&connections->lock);
    if (connections->watched) pthread_join(connections->watcher, NULL);
    pthread_cond_destroy(&connections->woken);
    pthread_mutex_destroy(&connections->lock);
}

sf_connection *sf_connection_open(sf_connections *connections, int fd, double seconds)
{
    sf_connection *c = sf_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->fd = fd;
    c->since = sf_seconds();
    c->due = c->since + seconds;
    pthread_mutex_lock(&connections->lock);
    c->next = connections->first;
    if (c->next) c->next->previous = c;
    connections->first = c;
    connections->count++;
    pthread_mutex_unlock(&connections->lock);
    return c;
}

void sf_connection_close(sf_connections *connections, sf_connection *c)
{
    if (!c) return;
    pthread_mutex_lock(&connections->lock);
    if (c->previous)
        c->previous->next = c->next;
    else
        connections->first = c->next;
    if (c->next) c->next->previous = c->previous;
    connections->count--;
    pthread_mutex_unlock(&connections->lock);
    free(c);
}

/* The lock is held. */
static void change(sf_connection *c, int busy, sf_job *job, double seconds)
{
    c->busy = busy;
    c->job = job;
    c->since = sf_seconds();
    c->due = c->since + seconds;
}

int sf_connection_begin(sf_connections *connections, sf_connection *c, double seconds)
{
    if (!c) return -1;
    pthread_mutex_lock(&connections->lock);
    int closed = connections->closed;
    if (!closed) change(c, 1, NULL, seconds);
    pthread_mutex_unlock(&connections->lock);
    return closed ? -1 : 0;
}

void sf_connection_set(sf_connections *connections, sf_connection *c, int busy, sf_job *job, double seconds)
{
    pthread_mutex_lock(&connections->lock);
    change(c, busy, job, seconds);
    pthread_mutex_unlock(&connections->lock);
}

size_t sf_connections_count(sf_connections *connections)
{
    pthread_mutex_lock(&connections->lock);
    size_t count = connections->count;
    pthread_mutex_unlock(&connections->lock);
    return count;
}

void sf_connections_drain(sf_connections *connections, double seconds)
{
    pthread_mutex_lock(&connections->lock);
    for (;;) {
        double now = sf_seconds();
        const sf_connection *c = connections->first;
        while (c && !c->busy && now - c->since >= seconds) c = c->next;
        if (!c) break;
        wait_a_little(connections);
    }
    connections->closed = 1;
    pthread_mutex_unlock(&connections->lock);
}
