/* The clients: addresses, how many connections each has, and how often each may ask.
 *
 * A client is an address of IPv4, or the 64 bits of IPv6 that one subscriber has. 127.0.0.1 and ::1 are no client: a
 * proxy on this machine brings all of its own from there, and has limits of its own.
 *
 * How often: a bucket that holds as many requests as a second allows, and at least one; each request takes one out,
 * and time fills it again. Nothing here is locked; connections.c does that. */
#ifndef SF_SERVE_CLIENTS_H
#define SF_SERVE_CLIENTS_H

#include <stddef.h>
#include <sys/socket.h>

enum { SF_CLIENT_BUCKETS = 1024 };

typedef struct sf_client {
    unsigned char address[8];
    size_t connections;
    double left, at; /* requests that it may make at once, as of then */
    struct sf_client *next;
} sf_client;

typedef struct sf_clients {
    double rate; /* requests per second; 0: any */
    size_t count;
    sf_client *buckets[SF_CLIENT_BUCKETS];
} sf_clients;

/* The client at this address (which may be NULL), one connection richer. *out is NULL for those that are not counted.
 * -1 without memory. */
int sf_client_enter(sf_client **out, sf_clients *clients, const struct sockaddr *from);
void sf_client_leave(sf_client *client); /* NULL is fine */

/* Whether it may make a request now; if not, *seconds gets when to come back, at least 1. */
int sf_client_may_ask(sf_client *client, const sf_clients *clients, double now, int *seconds);

/* Forgets those that are gone and whose bucket is full again. */
void sf_clients_sweep(sf_clients *clients, double now);
void sf_clients_free(sf_clients *clients);

#endif
