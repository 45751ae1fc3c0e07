/* An HTTP server. Part of safer.h, which says what holds throughout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_SERVE_H
#define SAFER_SERVE_H

#include "safer/certify.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An HTTP server that predicts and certifies; docs/serve.md is its contract. */
typedef struct safer_server safer_server;

typedef struct safer_serve_options {
    size_t size;
    int fixed_seed;    /* use the seed of `certify` and show it to clients; else it is random and a secret. Groups have
                        * that of `certify` in any case: it belongs to the classifier */
    const char *host;  /* an address to bind to; "127.0.0.1" */
    uint16_t port;     /* 0: any free one; 8080 */
    const char *token; /* bearer token that clients must send, 16 visible ASCII characters or more; NULL: no token */
    int without_token; /* allows an address that is not loopback without a token */
    size_t max_body, max_text; /* bytes; 1048576 and 100000 */
    size_t max_texts;          /* of a request; 64 */
    size_t queue;              /* texts that wait, at most; 1024 */
    size_t connections;        /* open at a time; 1024 */
    double deadline;           /* seconds until a request must be answered; 30 */
    double patience;           /* seconds in which a whole request must arrive, and an answer be received; 20 */
    int log_texts;             /* the log holds the texts too */
    /* Takes a line of JSON about every request, from a thread of the server; may be NULL. */
    void (*log)(void *context, const char *line);
    void *log_context;
    /* Of one client, which is an address (of IPv6, a /64; 127.0.0.1 and ::1 are not counted): */
    size_t client_connections; /* open at a time; 0: any number; 256 */
    double client_rate;        /* requests per second, on average over a second; 0: any number; 0 */
    /* A second model, beside which the first can be tried: requests name it, the explorer asks both. It has the first
     * one's lexicon and options, threads of its own, and must outlive the server; a reload leaves it. May be NULL. */
    const safer_model *second;
} safer_serve_options;

SAFER_OPTIONS(safer_serve_options);

/* Starts to serve, with threads of its own. Model and lexicon must outlive it, or be replaced. `certify` says how texts
 * are certified; its threads are the texts worked on at a time, and its seed (unless fixed_seed),
 * unlabelled, family_wise and progress have no effect. NULL options, of both, mean the defaults. */
SAFER_API safer_status safer_server_start(safer_server **out, const safer_model *model, const safer_lexicon *lexicon,
                                          const safer_certify_options *certify, const safer_serve_options *options,
                                          safer_error *error);

/* "http://127.0.0.1:8080", and the port in it. */
SAFER_API const char *safer_server_url(const safer_server *server);
SAFER_API uint16_t safer_server_port(const safer_server *server);

/* Serves another model and lexicon from now on: requests that come later are answered with them, those that came
 * earlier with the old pair. Returns when none of these is left, so that the old pair may be freed; that takes no
 * longer than the deadline, or the model's last answer. The options stay as they were at the start, and so does the
 * seed. On failure nothing has changed, and the new pair may be freed. May be called from any thread. When
 * safer_server_stop is called meanwhile, it does not wait for the new pair: SAFER_CANCELLED is returned, or SAFER_OK
 * where the new pair was served already. Either way both pairs may be freed once the two calls have returned. */
SAFER_API safer_status safer_server_reload(safer_server *server, const safer_model *model, const safer_lexicon *lexicon,
                                           safer_error *error);

/* Accepts no more connections, answers what was asked on those it has, and ends. Takes no longer
 * than deadline and patience together. NULL is accepted. */
SAFER_API void safer_server_stop(safer_server *server);

#ifdef __cplusplus
}
#endif
#endif
