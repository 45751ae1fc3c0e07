/* The server: what its parts share. */
#ifndef SF_SERVE_SERVER_H
#define SF_SERVE_SERVER_H

#include "serve/connections.h"
#include "serve/workers.h"

#include <microhttpd.h>

/* What is served, and the threads that work with it. A pair is replaced with its workers: those of the old one finish
 * what they have, and end. */
typedef struct sf_served {
    const safer_model *model;
    const safer_lexicon *lexicon;
    sf_workers *workers;
    sf_workers *second; /* those of the second model; NULL: there is none */
} sf_served;

struct safer_server {
    pthread_mutex_t lock; /* of what is served: whoever uses it holds it until the end, and never waits meanwhile */
    sf_served served;
    pthread_mutex_t reloading; /* one at a time */
    size_t users;              /* the one who started it, and reloads that have not returned; under the lock */
    safer_certify_options certify;
    safer_serve_options options; /* a copy; where host and token lay may be freed: */
    char *token;                 /* a copy, or NULL */
    int local;                   /* for this machine alone, and without a token */
    struct MHD_Daemon *daemon;
    sf_metrics metrics;
    sf_connections connections;
    atomic_size_t held; /* bytes of bodies and answers that are in memory */
    atomic_int stopping;
    uint16_t port;
    char url[80];
};

/* MHD's callbacks; the server is their first argument. */
enum MHD_Result sf_http_handle(void *server, struct MHD_Connection *mhd, const char *url, const char *method,
                               const char *version, const char *upload, size_t *upload_size, void **request);
void sf_http_completed(void *server, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode how);
void sf_http_connection(void *server, struct MHD_Connection *mhd, void **connection,
                        enum MHD_ConnectionNotificationCode what);

#endif
