/* The open connections: how many there may be, and how long each may take over what it is doing.
 *
 * MHD knows idle connections only; one that sends a byte now and then is never idle. So every
 * connection has a time by which what it is doing must be over. A thread, the watcher, looks at
 * all of them: one that has not sent its request, or not received its answer, by then is closed;
 * one that waits for work gets an error.
 *
 * When there are as many as there may be, in all or of one client, a new one takes the place of another: of the
 * oldest that has never asked anything; else of the one that has been idle longest; else of the one that has been
 * sending its request longest, for a second at least. Those that wait for an answer or receive it are never closed for
 * this; when there is nothing but them, the new one is told to come back later.
 *
 * A client that goes away while its answer is computed says so in two ways. A reset is certain. A mere end of its
 * sending may also come from a client that still wants its answer; HTTP allows that. So it is sent "100 Continue",
 * which every client of HTTP/1.1 must accept and pass over: the system of one that is gone answers with a reset. */
#ifndef SF_SERVE_CONNECTIONS_H
#define SF_SERVE_CONNECTIONS_H

#include "serve/clients.h"
#include "serve/job.h"

#include <pthread.h>

/* What a connection does, in the order in which they give way to others. */
typedef enum sf_doing {
    SF_SILENT,   /* it has never asked */
    SF_IDLE,     /* all that it asked is answered */
    SF_ASKING,   /* a request has begun to come in */
    SF_WAITING,  /* for work */
    SF_ANSWERED, /* the answer is being sent */
} sf_doing;

typedef struct sf_connection {
    int fd;
    sf_doing doing;
    double since; /* when that last changed */
    double due;   /* when it must change */
    sf_job *job;  /* what it waits for, or NULL. Borrowed */
    sf_client *client;
    int refused; /* the status of HTTP that its first request gets, because there are too many; 0: none */
    int closing; /* it has been shut */
    int newer;   /* it speaks HTTP/1.1 */
    int probed;  /* it was sent "100 Continue" */
    struct sf_connection *next, *previous;
} sf_connection;

typedef struct sf_connection_limits {
    size_t all, client; /* connections in all, and of one client; 0: any number */
    double rate;        /* requests per second of one client; 0: any number */
    double patience;    /* seconds to send what there is once the deadline is over */
} sf_connection_limits;

typedef struct sf_connections {
    pthread_mutex_t lock;
    pthread_cond_t woken; /* the watcher shall end */
    pthread_t watcher;
    sf_connection_limits limits;
    sf_connection *first, *last; /* by `since` */
    sf_clients clients;
    size_t count, closing;
    size_t opened; /* ever */
    int ending, watched;
    int closed; /* no request may begin */
} sf_connections;

safer_status sf_connections_start(sf_connections *connections, sf_connection_limits limits, safer_error *error);
void sf_connections_end(sf_connections *connections); /* all must be closed */

/* NULL without memory. `seconds`: until its first request must have come in. */
sf_connection *sf_connection_open(sf_connections *connections, int fd, const struct sockaddr *from, double seconds);
void sf_connection_close(sf_connections *connections, sf_connection *connection); /* before its socket is closed */

/* A request begins to come in, for so many seconds at most; `counts`: for the rate; `newer`: by HTTP/1.1.
 * 0, or 429 or 503 when it must be refused; *retry gets the seconds after which to try again. -1: none may begin any
 * more, or `connection` is NULL. */
int sf_connection_begin(sf_connections *connections, sf_connection *connection, double seconds, int counts, int newer,
                        int *retry);

/* What the connection does from now on, and for how many seconds at most. No job's lock may be
 * held. */
void sf_connection_set(sf_connections *connections, sf_connection *connection, sf_doing doing, sf_job *job,
                       double seconds);

size_t sf_connections_count(sf_connections *connections);

/* Waits until so many were ever opened, for a second at most: the server opens those that it is given a moment
 * later. */
size_t sf_connections_opened(sf_connections *connections);
void sf_connections_await(sf_connections *connections, size_t opened);

/* Waits until every connection has been idle for `seconds`, and has sent nothing that was not read. From then on no
 * request may begin. */
void sf_connections_drain(sf_connections *connections, double seconds);

#endif
