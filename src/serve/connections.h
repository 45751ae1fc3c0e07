/* The open connections, and how long each may take over what it is doing.
 *
 * MHD knows idle connections only; one that sends a byte now and then is never idle. So every
 * connection has a time by which what it is doing must be over. A thread, the watcher, looks at
 * all of them: one that has not sent its request, or not received its answer, by then is closed;
 * one that waits for work gets an error. */
#ifndef SF_SERVE_CONNECTIONS_H
#define SF_SERVE_CONNECTIONS_H

#include "serve/job.h"

#include <pthread.h>

typedef struct sf_connection {
    int fd;
    int busy;     /* a request has begun to come in and its answer is not sent */
    double since; /* when that last changed */
    double due;   /* when it must change */
    sf_job *job;  /* what it waits for; NULL: it sends or receives. Borrowed */
    struct sf_connection *next, *previous;
} sf_connection;

typedef struct sf_connections {
    pthread_mutex_t lock;
    pthread_cond_t woken; /* the watcher shall end */
    pthread_t watcher;
    sf_connection *first;
    size_t count;
    int ending, watched;
    int closed;      /* no request may begin */
    double patience; /* seconds to send what there is once the deadline is over */
} sf_connections;

safer_status sf_connections_start(sf_connections *connections, double patience, safer_error *error);
void sf_connections_end(sf_connections *connections); /* all must be closed */

/* NULL without memory. `seconds`: until its first request must have come in. */
sf_connection *sf_connection_open(sf_connections *connections, int fd, double seconds);
void sf_connection_close(sf_connections *connections, sf_connection *connection); /* before its socket is closed */

/* A request begins to come in, for so many seconds at most. -1: none may begin any more, or
 * `connection` is NULL. */
int sf_connection_begin(sf_connections *connections, sf_connection *connection, double seconds);

/* What the connection does from now on, and for how many seconds at most. No job's lock may be
 * held. */
void sf_connection_set(sf_connections *connections, sf_connection *connection, int busy, sf_job *job, double seconds);

size_t sf_connections_count(sf_connections *connections);

/* Waits until every connection has been idle for `seconds`. From then on no request may begin. */
void sf_connections_drain(sf_connections *connections, double seconds);

#endif
