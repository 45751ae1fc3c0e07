/* A request's work: its texts, what came out, and who waits for it.
 *
 * Two sides hold a job: the connection, which waits, and the workers. Either may be done
 * with it first. A job ends once, with a status and a body, or (streams) with a last
 * event; what comes later is dropped. */
#ifndef SF_SERVE_JOB_H
#define SF_SERVE_JOB_H

#include "base/buffer.h"
#include "base/error.h"
#include "certify/workspace.h"
#include "serve/routes.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

/* An error as a client sees it. */
typedef struct sf_fault {
    int status;       /* of HTTP */
    const char *code; /* of the table in docs/serve.md */
    char message[400];
} sf_fault;

/* Fills it; always returns -1. */
int sf_fault_set(sf_fault *fault, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* {"error": {...}}; the caller frees it. NULL without memory. */
char *sf_fault_json(const sf_fault *fault);

typedef struct sf_job_text {
    const char *text;
    size_t length;
    int label;      /* the model's class, or -1 */
    json_t *answer; /* written by the thread that works on it */
} sf_job_text;

typedef struct sf_job {
    const sf_route *route;
    json_t *body; /* holds the texts */
    sf_job_text *texts;
    size_t count;
    int labelled;         /* the request named a label for at least one text */
    int second;           /* it asks the second model */
    sf_terms terms;       /* the server's, or stricter ones that the request named */
    atomic_int cancelled; /* the rest is not needed any more */
    atomic_uint_fast64_t queries;

    struct sf_job *next; /* the workers', under their lock */
    size_t taken, finished;

    atomic_size_t *account; /* of the bytes that all requests hold; NULL: they are not counted */

    pthread_mutex_t lock; /* of all below */
    int references;
    size_t held;  /* of these bytes; given back in the end */
    int status;   /* 0: at work */
    char *answer; /* the body; a stream has events instead */
    sf_buffer events;
    size_t sent;      /* bytes of the events that were taken away */
    size_t streamed;  /* and of all events that ever were */
    char detail[400]; /* of a failure, for the log */
    int waiting;      /* call `wake` when something new is there */
    void (*wake)(void *context);
    void *wake_context;
} sf_job;

/* What a request may ask for. */
typedef struct sf_job_limits {
    size_t text, texts;
    const safer_certify_options *certify;
    const safer_model *model, *second; /* there may be no second one: NULL */
} sf_job_limits;

/* Reads the body of a request for work. *out has one reference. -1: the fault says why not. */
int sf_job_read(sf_job **out, const sf_route *route, const char *body, size_t length, const sf_job_limits *limits,
                sf_fault *fault);

void sf_job_hold(sf_job *job);
void sf_job_release(sf_job *job);

/* Ends the job with a body, which is taken over (NULL: memory was out). */
void sf_job_finish(sf_job *job, char *answer);

/* Ends the job with an error; `detail` (may be NULL) is for the log. */
void sf_job_fail(sf_job *job, const sf_fault *fault, const char *detail);

/* Adds an event to a stream; `data` is taken over. One that is not the last is dropped when the
 * client is too slow to read. */
void sf_job_emit(sf_job *job, const char *event, json_t *data, int last);

#endif
