/* The open connections: how many, and how long each may take. */
#define _GNU_SOURCE
#include "serve/connections.h"

#include "base/memory.h"
#include "base/progress.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#define LOOK_SECONDS 0.05
#define OPENING_SECONDS 1.0
#define ASKING_SECONDS 1.0 /* that a request may take to come in, however full it is */

static void shut(sf_connections *connections, sf_connection *c)
{
    shutdown(c->fd, SHUT_RDWR); /* the server sees it end */
    connections->closing += !c->closing;
    c->closing = 1;
}

/* Whether the client has gone away while it waited. */
static int is_gone(sf_connection *c)
{
    static const char probe[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct pollfd socket = {.fd = c->fd, .events = POLLRDHUP};
    if (c->doing != SF_WAITING || poll(&socket, 1, 0) <= 0) return 0;
    if (socket.revents & (POLLERR | POLLHUP)) return 1;
    if (c->newer && !c->probed) {
        (void)send(c->fd, probe, sizeof probe - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        c->probed = 1;
    }
    return 0;
}

/* Ends what has taken too long, or is not wanted any more. The lock is held. */
static void look_at(sf_connections *connections, sf_connection *c, double now)
{
    sf_fault fault;
    const int gone = is_gone(c);
    if (now < c->due && !gone) return;
    c->due = now + connections->limits.patience;
    if (!c->job) {
        shut(connections, c);
        return;
    }
    if (gone)
        sf_fault_set(&fault, 499, "gone", "the client has gone away");
    else
        sf_fault_set(&fault, 504, "deadline", "there was no answer in time");
    sf_job_fail(c->job, &fault, NULL); /* unless it is done */
    c->job = NULL;                     /* what is left is to send it */
    c->doing = SF_ANSWERED;
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
        for (sf_connection *c = connections->first; c; c = c->next) look_at(connections, c, now);
        sf_clients_sweep(&connections->clients, now);
    }
    pthread_mutex_unlock(&connections->lock);
    return NULL;
}

safer_status sf_connections_start(sf_connections *connections, sf_connection_limits limits, safer_error *error)
{
    pthread_condattr_t monotonic;
    *connections = (sf_connections){.limits = limits, .clients.rate = limits.rate};
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
    sf_clients_free(&connections->clients);
    pthread_cond_destroy(&connections->woken);
    pthread_mutex_destroy(&connections->lock);
}

/* ------------------------------------------------------------------ the list */

static void unlink_from(sf_connections *connections, sf_connection *c)
{
    *(c->previous ? &c->previous->next : &connections->first) = c->next;
    *(c->next ? &c->next->previous : &connections->last) = c->previous;
    c->next = c->previous = NULL;
}

static void append(sf_connections *connections, sf_connection *c)
{
    c->previous = connections->last;
    *(c->previous ? &c->previous->next : &connections->first) = c;
    connections->last = c;
}

/* Shuts the connection that gives way first, of this client or (NULL) of all; -1: none does. */
static int make_room(sf_connections *connections, const sf_client *client)
{
    const double now = sf_seconds();
    sf_connection *chosen = NULL;
    for (sf_connection *c = connections->first; c && !(chosen && chosen->doing == SF_SILENT); c = c->next) {
        if (c->closing || (client && c->client != client) || c->doing > SF_ASKING) continue;
        if (c->doing == SF_ASKING && now - c->since < ASKING_SECONDS) continue;
        if (!chosen || c->doing < chosen->doing) chosen = c;
    }
    if (chosen) shut(connections, chosen);
    return chosen ? 0 : -1;
}

/* Whether there is room for one more: 0, or the status with which it is refused. */
static int admit(sf_connections *connections, const sf_client *client)
{
    const sf_connection_limits *l = &connections->limits;
    if (client && l->client && client->connections > l->client && make_room(connections, client)) return 429;
    return l->all && connections->count - connections->closing >= l->all && make_room(connections, NULL) ? 503 : 0;
}

sf_connection *sf_connection_open(sf_connections *connections, int fd, const struct sockaddr *from, double seconds)
{
    sf_connection *c = sf_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->fd = fd;
    c->since = sf_seconds();
    c->due = c->since + seconds;
    pthread_mutex_lock(&connections->lock);
    const int failed = sf_client_enter(&c->client, &connections->clients, from);
    if (!failed) {
        c->refused = admit(connections, c->client);
        append(connections, c);
        connections->count++;
        connections->opened++;
    }
    pthread_mutex_unlock(&connections->lock);
    if (!failed) return c;
    free(c);
    return NULL;
}

void sf_connection_close(sf_connections *connections, sf_connection *c)
{
    if (!c) return;
    pthread_mutex_lock(&connections->lock);
    unlink_from(connections, c);
    sf_client_leave(c->client);
    connections->count--;
    connections->closing -= (size_t)c->closing;
    pthread_mutex_unlock(&connections->lock);
    free(c);
}

/* The lock is held. */
static void change(sf_connections *connections, sf_connection *c, sf_doing doing, sf_job *job, double seconds)
{
    c->doing = doing;
    c->job = job;
    c->probed = 0;
    c->since = sf_seconds();
    c->due = c->since + seconds;
    unlink_from(connections, c);
    append(connections, c);
}

int sf_connection_begin(sf_connections *connections, sf_connection *c, double seconds, int counts, int newer,
                        int *retry)
{
    if (!c) return -1;
    pthread_mutex_lock(&connections->lock);
    int status = connections->closed ? -1 : c->refused;
    if (status > 0) *retry = 1;
    if (status >= 0) {
        change(connections, c, SF_ASKING, NULL, seconds);
        c->newer = newer;
    }
    if (status == 0 && counts && !sf_client_may_ask(c->client, &connections->clients, c->since, retry)) status = 429;
    pthread_mutex_unlock(&connections->lock);
    return status;
}

void sf_connection_set(sf_connections *connections, sf_connection *c, sf_doing doing, sf_job *job, double seconds)
{
    pthread_mutex_lock(&connections->lock);
    change(connections, c, doing, job, seconds);
    pthread_mutex_unlock(&connections->lock);
}

size_t sf_connections_count(sf_connections *connections)
{
    pthread_mutex_lock(&connections->lock);
    size_t count = connections->count;
    pthread_mutex_unlock(&connections->lock);
    return count;
}

size_t sf_connections_opened(sf_connections *connections)
{
    pthread_mutex_lock(&connections->lock);
    const size_t opened = connections->opened;
    pthread_mutex_unlock(&connections->lock);
    return opened;
}

void sf_connections_await(sf_connections *connections, size_t opened)
{
    const double until = sf_seconds() + OPENING_SECONDS;
    pthread_mutex_lock(&connections->lock);
    while (connections->opened < opened && sf_seconds() < until) wait_a_little(connections);
    pthread_mutex_unlock(&connections->lock);
}

/* Whether something came in that nobody has read yet: it will be read, or the connection shut when its time is over. */
static int has_unread(const sf_connection *c)
{
    struct pollfd socket = {.fd = c->fd, .events = POLLIN};
    return !c->closing && poll(&socket, 1, 0) > 0 && socket.revents & POLLIN;
}

void sf_connections_drain(sf_connections *connections, double seconds)
{
    pthread_mutex_lock(&connections->lock);
    for (;;) {
        double now = sf_seconds();
        const sf_connection *c = connections->first;
        while (c && c->doing <= SF_IDLE && now - c->since >= seconds && !has_unread(c)) c = c->next;
        if (!c) break;
        wait_a_little(connections);
    }
    connections->closed = 1;
    pthread_mutex_unlock(&connections->lock);
}
