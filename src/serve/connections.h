/* The open connections, and how long each may take over what it is doing.
 *
 * MHD knows idle connections only; one that sends a byte now and then is never idle. So every
 * connection has a time by which what it is doing must be over. A watchman looks at them
 * all: who has not sent a request, or not taken an answer away, by then is shut; who waits
 * for work gets an error. */
#ifndef SF_SERVE_CONNECTIONS_H
#define SF_SERVE_CONNECTIONS_H

#include "serve/job.h"

#include <pthread.h>

typedef struct sf_guest {
    int fd;
    int busy;     /* a request has begun to come in and its answer is not sent */
    double since; /* when that last changed */
    double due;   /* when it must change */
    sf_job *job;  /* what it waits for; NULL: it sends or receives. Borrowed */
    struct sf_guest *next, *previous;
} sf_guest;

typedef struct sf_guests {
    pthread_mutex_t lock;
    pthread_cond_t wish;
    pthread_t watchman;
    sf_guest *first;
    size_t count;
    int ending, watched;
    int closed;      /* no request may begin */
    double patience; /* seconds to send what there is once the deadline is over */
} sf_guests;

safer_status sf_guests_start(sf_guests *guests, double patience, safer_error *error);
void sf_guests_end(sf_guests *guests); /* all must have left */

/* NULL without memory. `seconds`: until its first request must have come in. */
sf_guest *sf_guest_enter(sf_guests *guests, int fd, double seconds);
void sf_guest_leave(sf_guests *guests, sf_guest *guest); /* before its socket is closed */

/* A request begins to come in, for so many seconds at most. -1: none may begin any more, or there is
 * no guest. */
int sf_guest_asks(sf_guests *guests, sf_guest *guest, double seconds);

/* What the connection does from now on, and for how many seconds at most. No job's lock may be
 * held. */
void sf_guest_does(sf_guests *guests, sf_guest *guest, int busy, sf_job *job, double seconds);

size_t sf_guests_count(sf_guests *guests);

/* Waits until every connection has been idle for `seconds`. From then on no request may begin. */
void sf_guests_quiet(sf_guests *guests, double seconds);

#endif
