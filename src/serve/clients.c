/* The clients: addresses, how many connections each has, and how often each may ask. */
#define _GNU_SOURCE
#include "serve/clients.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/progress.h"

#include <netinet/in.h>
#include <string.h>

/* -1: those who come from there are not counted. */
static int read_address(unsigned char out[8], const struct sockaddr *from)
{
    memset(out, 0, 8);
    if (from && from->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, from, sizeof v4);
        memcpy(out, &v4.sin_addr, 4);
        return ntohl(v4.sin_addr.s_addr) == INADDR_LOOPBACK ? -1 : 0;
    }
    if (from && from->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, from, sizeof v6);
        memcpy(out, &v6.sin6_addr, 8);
        return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ? -1 : 0;
    }
    return -1;
}

static double bucket_size(const sf_clients *clients) { return clients->rate > 1 ? clients->rate : 1; }

int sf_client_enter(sf_client **out, sf_clients *clients, const struct sockaddr *from)
{
    unsigned char address[8];
    *out = NULL;
    if (read_address(address, from)) return 0;
    sf_client **place = &clients->buckets[sf_hash(address, sizeof address, 0) % SF_CLIENT_BUCKETS];
    sf_client *client = *place;
    while (client && memcmp(client->address, address, sizeof address) != 0) client = client->next;
    if (!client) {
        if (!(client = sf_calloc(1, sizeof *client))) return -1;
        memcpy(client->address, address, sizeof address);
        client->left = bucket_size(clients);
        client->at = sf_seconds();
        client->next = *place;
        *place = client;
        clients->count++;
    }
    client->connections++;
    *out = client;
    return 0;
}

void sf_client_leave(sf_client *client)
{
    if (client) client->connections--;
}

static void fill(sf_client *client, const sf_clients *clients, double now)
{
    client->left += (now - client->at) * clients->rate;
    if (client->left > bucket_size(clients)) client->left = bucket_size(clients);
    client->at = now;
}

int sf_client_may_ask(sf_client *client, const sf_clients *clients, double now, int *seconds)
{
    if (!client || !(clients->rate > 0)) return 1;
    fill(client, clients, now);
    if (client->left >= 1) {
        client->left -= 1;
        return 1;
    }
    const double wait = (1 - client->left) / clients->rate;
    *seconds = wait < 1 ? 1 : wait > 3600 ? 3600 : (int)(wait + 0.999);
    return 0;
}

void sf_clients_sweep(sf_clients *clients, double now)
{
    for (size_t i = 0; clients->count && i < SF_CLIENT_BUCKETS; i++)
        for (sf_client **place = &clients->buckets[i]; *place;) {
            sf_client *client = *place;
            fill(client, clients, now);
            if (client->connections || (clients->rate > 0 && client->left < bucket_size(clients))) {
                place = &client->next;
                continue;
            }
            *place = client->next;
            clients->count--;
            free(client);
        }
}

void sf_clients_free(sf_clients *clients)
{
    for (size_t i = 0; i < SF_CLIENT_BUCKETS; i++)
        for (sf_client *client = clients->buckets[i], *next; client; client = next) {
            next = client->next;
            free(client);
        }
}
