/* The plugin libsafer_mpi.so: the messages of a crew over MPI.
 *
 * One thread makes all calls, so MPI_THREAD_FUNNELED is enough. Nothing here waits but opening and closing: sending and
 * receiving begin, and are asked about later, so that a rank that hangs in the middle of a message stops nobody. */
#include "run/transport.h"

#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 7 };

/* A message under way, to or from a rank. */
typedef struct message {
    struct message *next;
    MPI_Request request;
    int rank, done;
    size_t length;
    char *bytes; /* owned */
} message;

struct sf_transport {
    int rank, count;
    char *hosts; /* (count, MPI_MAX_PROCESSOR_NAME) */
    message *out, *in;
};

static safer_status fail(safer_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static safer_status fail(safer_error *error, const char *format, ...)
{
    va_list arguments;
    if (!error) return SAFER_SYSTEM;
    error->status = SAFER_SYSTEM;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return SAFER_SYSTEM;
}

/* What MPI says of a failure. */
static safer_status check(int code, const char *action, safer_error *error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS) return SAFER_OK;
    MPI_Error_string(code, text, &length);
    return fail(error, "MPI failed %s: %s", action, text);
}

static void free_messages(message *m)
{
    while (m) {
        message *next = m->next;
        free(m->bytes);
        free(m);
        m = next;
    }
}

static void free_transport(sf_transport *t)
{
    free_messages(t->out);
    free_messages(t->in);
    free(t->hosts);
    free(t);
}

static safer_status open_transport(sf_transport **out, void *context, safer_error *error)
{
    int provided = 0, length = 0, ready = 0;
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    (void)context;
    MPI_Initialized(&ready);
    if (ready) return fail(error, "MPI is in use in this process already");
    safer_status status = check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "to start", error);
    if (status != SAFER_OK) return status;
    if (provided < MPI_THREAD_FUNNELED) return fail(error, "this MPI cannot be used by a program with threads");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    sf_transport *t = calloc(1, sizeof *t);
    if (t) {
        MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
        MPI_Comm_size(MPI_COMM_WORLD, &t->count);
        t->hosts = calloc((size_t)t->count, sizeof name);
    }
    if (!t || !t->hosts) { /* the others must not wait for this rank */
        fail(error, "out of memory");
        MPI_Abort(MPI_COMM_WORLD, 4);
        abort();
    }
    MPI_Get_processor_name(name, &length);
    status = check(MPI_Allgather(name, sizeof name, MPI_CHAR, t->hosts, sizeof name, MPI_CHAR, MPI_COMM_WORLD),
                   "to ask for the names of the machines", error);
    if (status != SAFER_OK)
        free_transport(t);
    else
        *out = t;
    return status;
}

static int get_rank(const sf_transport *t) { return t->rank; }

static int get_count(const sf_transport *t) { return t->count; }

static const char *get_host(const sf_transport *t, int rank) { return t->hosts + rank * MPI_MAX_PROCESSOR_NAME; }

/* Ends those that have been sent; how many have not. */
static int reap(sf_transport *t)
{
    int left = 0;
    for (message **at = &t->out; *at;) {
        message *m = *at;
        int done = 0;
        if (MPI_Test(&m->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
            left++;
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->next = NULL;
        free_messages(m);
    }
    return left;
}

static safer_status send_message(sf_transport *t, int to, char *bytes, size_t length, safer_error *error)
{
    message *m = malloc(sizeof *m);
    safer_status status = !m                 ? fail(error, "out of memory")
                          : length > INT_MAX ? fail(error, "a message to rank %d of %zu bytes: MPI has at most %d", to,
                                                    length, INT_MAX)
                                             : SAFER_OK;
    if (status == SAFER_OK)
        status = check(MPI_Isend(bytes, (int)length, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &m->request), "to send", error);
    if (status != SAFER_OK) {
        free(m);
        free(bytes);
        return status;
    }
    m->bytes = bytes;
    m->next = t->out;
    t->out = m;
    return SAFER_OK;
}

/* Begins to receive all messages that have come. */
static safer_status begin_receiving(sf_transport *t, safer_error *error)
{
    message **last = &t->in;
    while (*last) last = &(*last)->next;
    for (;;) {
        MPI_Message matched;
        MPI_Status about;
        int there = 0, length = 0;
        safer_status status = check(MPI_Improbe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, &matched, &about),
                                    "to look for messages", error);
        if (status != SAFER_OK || !there) return status;
        MPI_Get_count(&about, MPI_BYTE, &length);
        message *m = calloc(1, sizeof *m);
        char *bytes = malloc((size_t)length + 1);
        if (!m || !bytes) {
            free(m);
            free(bytes);
            return fail(error, "out of memory for a message of rank %d", about.MPI_SOURCE);
        }
        *m = (message){.rank = about.MPI_SOURCE, .length = (size_t)length, .bytes = bytes};
        *last = m;
        last = &m->next;
        status = check(MPI_Imrecv(bytes, length, MPI_BYTE, &matched, &m->request), "to receive", error);
        if (status != SAFER_OK) return status;
    }
}

/* The first that is whole, but none before an earlier one of the same rank. */
static safer_status receive_message(sf_transport *t, int *from, char **bytes, size_t *length, safer_error *error)
{
    *bytes = NULL;
    safer_status status = begin_receiving(t, error);
    for (message **at = &t->in; *at && status == SAFER_OK; at = &(*at)->next) {
        message *m = *at;
        const message *earlier = t->in;
        while (earlier != m && earlier->rank != m->rank) earlier = earlier->next;
        if (!m->done) status = check(MPI_Test(&m->request, &m->done, MPI_STATUS_IGNORE), "to receive", error);
        if (status != SAFER_OK || !m->done || earlier != m) continue;
        *from = m->rank;
        *bytes = m->bytes;
        *length = m->length;
        *at = m->next;
        free(m);
        break;
    }
    (void)reap(t);
    return status;
}

/* MPI itself frees nothing of ours; what is still under way when it ends alone stays with it. */
static void close_transport(sf_transport *t, int together)
{
    if (!together) return;
    MPI_Finalize();
    free_transport(t);
}

static void abort_all(sf_transport *t, int code)
{
    (void)t;
    MPI_Abort(MPI_COMM_WORLD, code);
}

__attribute__((visibility("default"))) const sf_transport_table *sf_transport_plugin(void);
const sf_transport_table *sf_transport_plugin(void)
{
    static const sf_transport_table table = {SAFER_VERSION, sizeof table,    open_transport, get_rank,
                                             get_count,     get_host,        send_message,   receive_message,
                                             reap,          close_transport, abort_all};
    return &table;
}
