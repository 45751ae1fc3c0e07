/* How the ranks of a crew send each other messages: what the plugin libsafer_mpi.so does with MPI, and a test without.
 *
 * Ranks are numbered from 0. A message is bytes; those from one rank to another arrive whole and in order, or not at
 * all: a rank that dies is not told of here, it just falls silent. No function waits for another rank but `open` and
 * `close`, and all calls come from one thread, the one that called `open`. */
#ifndef SF_RUN_TRANSPORT_H
#define SF_RUN_TRANSPORT_H

#include "base/error.h"

typedef struct sf_transport sf_transport;

typedef struct sf_transport_table {
    const char *version; /* SAFER_VERSION of its build */
    size_t size;         /* of this struct */

    /* Returns when all ranks are there. `context` is whatever the transport needs; the plugin needs nothing. */
    safer_status (*open)(sf_transport **out, void *context, safer_error *error);

    int (*rank)(const sf_transport *transport); /* one's own */
    int (*count)(const sf_transport *transport);
    const char *(*host)(const sf_transport *transport, int rank); /* its machine's name; lives until the end */

    /* Begins to send. It takes `bytes`, which malloc gave, also when it fails. */
    safer_status (*send)(sf_transport *transport, int to, char *bytes, size_t length, safer_error *error);
    /* A message that has come, whose bytes the caller frees; *bytes is NULL when there is none. */
    safer_status (*receive)(sf_transport *transport, int *from, char **bytes, size_t *length, safer_error *error);
    int (*sending)(sf_transport *transport); /* how many messages are not sent yet */

    /* Ends it, together with all other ranks, which call this now too; or, alone, without a word to the others. */
    void (*close)(sf_transport *transport, int together);
    /* Ends all ranks, and this process, with an exit status. */
    void (*abort)(sf_transport *transport, int code);
} sf_transport_table;

/* What the plugin defines, under the name "sf_transport_plugin". */
typedef const sf_transport_table *(*sf_transport_plugin_function)(void);

#endif
