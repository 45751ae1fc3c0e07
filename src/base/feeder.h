/* The feeder: questions of many threads, asked together.
 *
 * What answers (a function of the caller, a program, a service, a GPU) answers many questions at once for little more
 * than one. So a thread puts its questions into a queue and waits. Whenever fewer than `calls` calls are under way, the
 * thread whose questions are first in the queue makes the next call, with all that wait, up to `most`. Nobody waits
 * for company: where nothing else is asked a question is a call of its own at once, and the longer a call takes, the
 * more gather for the next. Each thread gets its own answers, so how questions met in calls changes no answer of a
 * model that is a function of the text.
 *
 * What must be called by one thread alone, as a function of Python's, has a host: that thread makes all calls while
 * the others work. */
#ifndef SF_BASE_FEEDER_H
#define SF_BASE_FEEDER_H

#include "base/error.h"

#include <pthread.h>
#include <stddef.h>

/* The questions of one thread, on its stack. The caller's own struct begins with it. */
typedef struct sf_asking {
    struct sf_asking *next; /* in the queue, and in a call */
    size_t count;           /* of questions, 1 .. most */
    safer_status status;    /* what became of them, */
    safer_error *error;     /* and its message; may be NULL */
    int state;              /* private, as is */
    pthread_cond_t turn;
} sf_asking;

/* Answers a list of them, `count` questions in all, in one call. A failure is of all of them. */
typedef safer_status (*sf_feeder_call)(void *self, sf_asking *first, size_t count, safer_error *error);

typedef struct sf_feeder {
    sf_feeder_call call;
    void *self;
    size_t most; /* questions of a call */
    int calls;   /* at once */
    pthread_mutex_t lock;
    sf_asking *first, *last; /* the queue */
    int running;             /* calls */
    int hosted;              /* by a thread that waits for `news` */
    pthread_cond_t news;     /* of the queue, or of the end */
} sf_feeder;

void sf_feeder_start(sf_feeder *feeder, sf_feeder_call call, void *self, size_t most, int calls);
void sf_feeder_end(sf_feeder *feeder); /* when nobody asks any more */

/* Returns when the questions are answered: asking->status, also returned.
 *
 * Where a call for several threads fails, its parts are asked again, so that a fault stays with the questions it came
 * from: first those of two threads alone, and when both fail too, it is the fault of all; else halves, and halves of
 * those. SAFER_MEMORY is nobody's fault, and SAFER_CALLBACK from a host's call ends its whole work: then nothing is
 * asked again.
 *
 * A thread that is asked to stop (base/progress.h) gets SAFER_CANCELLED: at once while its questions wait, after the
 * call when they are part of one. Where the thread that made the call is stopped in it, the questions of others go back
 * to where they waited. */
safer_status sf_feeder_ask(sf_feeder *feeder, sf_asking *asking);

/* Does `work` on another thread, and meanwhile makes all calls on this one; none once this thread is asked to stop.
 * Where no thread can be started, or another one is the host, `work` is done here, and whoever asks calls. */
void sf_feeder_host(sf_feeder *feeder, void (*work)(void *context), void *context);

#endif
