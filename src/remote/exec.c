/* exec:COMMAND. A program of the user's classifies: requests on its standard input, answers
 * on its standard output, one line of JSON for each. The user's side is docs/models.md.
 *
 * Several copies of the command run at once, the workers. Each has a thread of ours, its
 * keeper, which alone writes to it, reads from it, starts it and reaps it; whatever the
 * child does or leaves undone, the keeper waits in poll(2) for all of its pipes at once, so
 * neither side can block the other for good. A thread that asks makes the line of its
 * request, gives it to the worker with the least to do, and sleeps until a keeper wakes it.
 *
 * A request belongs to one keeper at a time: it waits to be written, then it is sent, then it
 * is answered. When the child dies, or is silent for too long and is killed, its requests go
 * to the workers again, a bounded number of times. Nothing else is ever sent twice: an answer
 * that is wrong stays wrong, because asking until one likes the answer would be selection. */
#define _GNU_SOURCE
#include "remote/remote.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/quote.h"
#include "remote/exec_child.h"
#include "remote/queue.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    BATCH = 64,            /* texts of a request, unless the options say otherwise */
    GAINFUL = 2,           /* requests that a worker can use at a time: one in work, one on the way */
    DEPTH = 8,             /* requests given to a worker at a time, at most, */
    ROOM = 8 << 20,        /* and their bytes; a longer one goes alone */
    SPARE_BYTES = 4 << 20, /* a longer line's memory is not kept */
    READ_BYTES = 64 << 10,
    LINE_LIMIT = 64 << 20, /* bytes of an answer */
    BARREN = 5             /* children in a row that ended without a single answer: the command does not work */
};

static const double GRACE = 2;        /* seconds for a child to end when its input does, */
static const double LAST_GRACE = 0.5; /* when it has closed its output, or a run has failed */

typedef struct request {
    sf_link link; /* first: it is queued by it */
    uint64_t id;
    sf_buffer line;
    size_t written; /* bytes of it */
    double deadline;
    int lost;     /* times that a child ended with it */
    size_t count; /* texts */
    int *labels;  /* (count), and (count, classes) or NULL: the asking thread's */
    float *scores;
    int answered;
    int cancelled;         /* the asking thread no longer needs it */
    struct worker *holder; /* whose it is */
    int done;              /* answered, or given up: the asking thread waits for this, */
    pthread_cond_t woken;  /* here */
} request;

struct exec;

typedef struct worker {
    struct exec *exec;
    pthread_t keeper;
    int wake; /* an eventfd: stirs the keeper from poll */

    /* Under the lock. */
    int asleep;         /* in poll, or on the way there */
    sf_queue waiting;   /* not yet wholly written; only the keeper takes them out */
    size_t load, bytes; /* of the requests that it has, waiting or sent */
    int cancelled;      /* one of them was */

    /* The keeper's own. */
    sf_child child;
    int starts;
    uint64_t answers; /* of this child */
    double heard;     /* when it last answered, or got something to do after a rest */
    sf_queue sent;
    sf_buffer reply; /* what it wrote, from the last newline on */
} worker;

typedef struct exec {
    char *command;
    const sf_labels *labels;
    double timeout;
    int retries;
    worker *workers;
    int worker_count;

    pthread_mutex_t lock;
    pthread_cond_t room; /* a worker can take another request */
    int crowd;           /* threads that wait for that */
    sf_queue spare;      /* requests for the next to ask */
    uint64_t next_id;
    uint64_t requests, resent, restarts;
    int barren; /* children in a row that ended without an answer */
    int ending, failed;
    int hurried;       /* a request was cancelled: children get no time to end by themselves */
    safer_error error; /* once failed */
} exec;

/* ------------------------------------------------------------------ the line */

static int write_line(request *r, const sf_span *texts, size_t count)
{
    sf_buffer_clear(&r->line);
    if (sf_buffer_format(&r->line, "{\"id\":%llu,\"texts\":[", (unsigned long long)r->id)) return -1;
    for (size_t i = 0; i < count; i++) {
        if (sf_buffer_add_string(&r->line, i ? ",\"" : "\"")) return -1;
        if (sf_quote(&r->line, texts[i].bytes, texts[i].length)) return -1;
        if (sf_buffer_add_byte(&r->line, '"')) return -1;
    }
    return sf_buffer_add_string(&r->line, "]}\n");
}

/* ----------------------------------------------- giving out; under the lock */

static void wake(worker *w)
{
    uint64_t one = 1;
    if (!w->asleep) return;
    w->asleep = 0;
    if (write(w->wake, &one, sizeof one) < 0) { /* its counter is full: then it is awake */
    }
}

/* The worker with the least to do; of equals the first, so that none is started without need. */
static worker *least_loaded(exec *x)
{
    worker *best = &x->workers[0];
    for (int i = 1; i < x->worker_count; i++)
        if (x->workers[i].load < best->load) best = &x->workers[i];
    return best;
}

static void give(worker *w, request *r)
{
    r->written = 0;
    r->holder = w;
    if (r->cancelled) w->cancelled = 1;
    sf_queue_push(&w->waiting, &r->link);
    w->load++;
    w->bytes += r->line.length;
    wake(w);
}

static void finish(worker *w, request *r, int answered)
{
    r->answered = answered;
    w->load--;
    w->bytes -= r->line.length;
    r->done = 1;
    pthread_cond_signal(&r->woken);
    if (w->exec->crowd) pthread_cond_broadcast(&w->exec->room);
}

/* The first failure counts. Each keeper then lets its requests go. */
static void fail(exec *x, const safer_error *error)
{
    if (!x->failed) x->error = *error;
    x->failed = 1;
    for (int i = 0; i < x->worker_count; i++) wake(&x->workers[i]);
    pthread_cond_broadcast(&x->room);
}

/* ------------------------------------------------------------------- answers */

static request *find_sent(const worker *w, const json_t *id)
{
    request *r = sf_queue_first(&w->sent);
    if (!json_is_integer(id)) return NULL;
    while (r && r->id != (uint64_t)json_integer_value(id)) r = sf_queue_after(&r->link);
    return r;
}

static void remove_sent(worker *w, request *r)
{
    sf_queue kept = {0};
    for (request *q; (q = sf_queue_pop(&w->sent));)
        if (q != r) sf_queue_push(&kept, &q->link);
    w->sent = kept;
}

static safer_status read_answer(request *r, const exec *x, const json_t *labels, const json_t *scores,
                                safer_error *error)
{
    safer_status status = SAFER_OK;
    if (!labels && !scores)
        return sf_fail(error, SAFER_INPUT, "exec: the answer to request %llu has neither \"labels\" nor \"scores\"",
                       (unsigned long long)r->id);
    if (scores) status = sf_read_scores(r->labels, r->scores, x->labels, scores, r->count, "exec", error);
    if (labels && status == SAFER_OK) status = sf_read_labels(r->labels, x->labels, labels, r->count, "exec", error);
    if (labels && scores && status == SAFER_OK)
        status = sf_check_scores(r->labels, x->labels, scores, r->count, "exec", error);
    if (!scores && r->scores && status == SAFER_OK) sf_one_hot(r->scores, r->labels, r->count, x->labels->count);
    return status;
}

/* What jansson says of a line, in the user's terms. */
static safer_status fail_parse(const char *line, size_t length, const json_error_t *problem, safer_error *error)
{
    int shown = length > 80 ? 80 : (int)length;
    if (json_error_code(problem) == json_error_out_of_memory) return sf_fail_memory(error);
    if (memmem(line, length, "NaN", 3) || memmem(line, length, "Infinity", 8))
        return sf_fail(error, SAFER_INPUT, "exec: NaN and Infinity are no scores, and no JSON: %.*s", shown, line);
    return sf_fail(error, SAFER_INPUT,
                   "exec: the command wrote what is not JSON (%.60s); standard output is for answers alone: %.*s",
                   problem->text, shown, line);
}

static safer_status take_object(worker *w, const json_t *object, safer_error *error)
{
    exec *x = w->exec;
    const json_t *id = json_object_get(object, "id"), *refusal = json_object_get(object, "error");
    const json_t *labels = json_object_get(object, "labels"), *scores = json_object_get(object, "scores");
    if (!json_is_object(object))
        return sf_fail(error, SAFER_INPUT, "exec: an answer must be an object with \"id\" and \"labels\"");
    if (refusal && !json_is_null(refusal)) {
        char *text = json_is_string(refusal) ? sf_strdup(json_string_value(refusal))
                                             : json_dumps(refusal, JSON_ENCODE_ANY);
        safer_status status = sf_fail(error, SAFER_INPUT, "exec: the command says: %.800s", text ? text : "?");
        free(text);
        return status;
    }
    request *r = find_sent(w, id);
    if (!r) {
        char *text = id ? json_dumps(id, JSON_ENCODE_ANY) : NULL;
        safer_status status = sf_fail(error, SAFER_INPUT, "exec: an answer to request %.80s, which is not open",
                                      text ? text : "(no \"id\")");
        free(text);
        return status;
    }
    safer_status status = read_answer(r, x, labels, scores, error);
    if (status != SAFER_OK) return status;
    remove_sent(w, r);
    w->answers++;
    w->heard = sf_seconds();
    pthread_mutex_lock(&x->lock);
    x->barren = 0;
    finish(w, r, 1);
    pthread_mutex_unlock(&x->lock);
    return SAFER_OK;
}

static safer_status take_line(worker *w, const char *line, size_t length, safer_error *error)
{
    json_error_t problem;
    json_t *object;
    safer_status status = sf_json_parse(&object, line, length, JSON_REJECT_DUPLICATES, &problem);
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    if (!object) return fail_parse(line, length, &problem, error);
    status = take_object(w, object, error);
    json_decref(object);
    return status;
}

/* The whole lines among what was read; the last `fresh` bytes are new. */
static safer_status take_lines(worker *w, size_t fresh, safer_error *error)
{
    const char *start = w->reply.bytes, *end = start + w->reply.length, *p = end - fresh;
    for (const char *newline; (newline = memchr(p, '\n', (size_t)(end - p))); start = p = newline + 1) {
        safer_status status = take_line(w, start, (size_t)(newline - start), error);
        if (status != SAFER_OK) return status;
    }
    w->reply.length = (size_t)(end - start);
    if (start > w->reply.bytes) memmove(w->reply.bytes, start, w->reply.length);
    if (w->reply.length > LINE_LIMIT)
        return sf_fail(error, SAFER_INPUT, "exec: a line of the answer is longer than %d MB", LINE_LIMIT >> 20);
    return SAFER_OK;
}

/* Reads what is there. *ended: the child has closed its output. */
static safer_status read_output(worker *w, int *ended, safer_error *error)
{
    for (;;) {
        if (sf_buffer_reserve(&w->reply, READ_BYTES)) return sf_fail_memory(error);
        ssize_t got = read(w->child.output, w->reply.bytes + w->reply.length, READ_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return SAFER_OK;
        *ended = got <= 0;
        if (*ended) return SAFER_OK;
        w->reply.length += (size_t)got;
        safer_status status = take_lines(w, (size_t)got, error);
        if (status != SAFER_OK || got < READ_BYTES) return status;
    }
}

/* ------------------------------------------------------------------ requests */

static request *first_waiting(worker *w)
{
    pthread_mutex_lock(&w->exec->lock);
    request *r = sf_queue_first(&w->waiting);
    pthread_mutex_unlock(&w->exec->lock);
    return r;
}

/* Every request may take its time, and has those before it to wait for. */
static void begin(worker *w, request *r)
{
    double now = sf_seconds();
    int ahead = 0;
    for (const request *q = sf_queue_first(&w->sent); q; q = sf_queue_after(&q->link)) ahead++;
    if (!ahead) w->heard = now;
    r->deadline = now + w->exec->timeout * (ahead + 1);
}

/* Writes as much as the child takes; nonzero: it does not take all. A child that has closed
 * its input gets no more, but what it has answered before is still to be read. */
static int write_input(worker *w)
{
    request *r;
    while (w->child.input >= 0 && (r = first_waiting(w))) {
        if (!r->written) begin(w, r);
        ssize_t put = write(w->child.input, r->line.bytes + r->written, r->line.length - r->written);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == EAGAIN) return 1;
        if (put < 0) {
            close(w->child.input);
            w->child.input = -1;
            return 0;
        }
        r->written += (size_t)put;
        if (r->written < r->line.length) continue;
        pthread_mutex_lock(&w->exec->lock);
        sf_queue_pop(&w->waiting);
        pthread_mutex_unlock(&w->exec->lock);
        sf_queue_push(&w->sent, &r->link);
    }
    return 0;
}

/* ------------------------------------------------------- a worker's life */

/* Takes the requests of a child that is gone. One that was not begun has lost nothing.
 * Returns how often the unluckiest was lost. Under the lock. */
static int take_back(worker *w, sf_queue *lost)
{
    int most = 0;
    for (request *r; (r = sf_queue_pop(&w->sent)) || (r = sf_queue_pop(&w->waiting)); sf_queue_push(lost, &r->link)) {
        w->load--;
        w->bytes -= r->line.length;
        if (r->written && ++r->lost > most) most = r->lost;
    }
    return most;
}

/* Gives them out again; after a failure back to their own keeper, who lets them go: the
 * others may be gone. Under the lock. */
static void give_again(worker *w, sf_queue *lost)
{
    exec *x = w->exec;
    for (request *r; (r = sf_queue_pop(lost));) {
        if (!x->failed && r->written) x->resent++;
        give(x->failed ? w : least_loaded(x), r);
    }
}

static void explain(safer_error *error, const worker *w, int silent, int barren, int lost)
{
    char end[SF_CHILD_STORY], tail[SF_CHILD_STORY], often[80];
    if (silent)
        snprintf(end, sizeof end, "gave no answer within %g seconds (time-out)", w->exec->timeout);
    else
        sf_child_end_text(end, &w->child);
    if (barren >= BARREN)
        snprintf(often, sizeof often, ", %d times in a row before it answered anything", barren);
    else if (lost > 1)
        snprintf(often, sizeof often, ", %d times with the same request", lost);
    else
        snprintf(often, sizeof often, " while it had a request");
    sf_child_tail_text(tail, &w->child);
    sf_fail(error, SAFER_SYSTEM, "exec: the command %s%s%s", end, often, tail);
}

/* The child has ended, or must: it answers no more. */
static void bury(worker *w, int silent)
{
    exec *x = w->exec;
    safer_error error;
    sf_queue lost = {0};
    sf_child_end(&w->child, silent ? 0 : LAST_GRACE);
    sf_buffer_clear(&w->reply); /* half a line is not an answer */
    pthread_mutex_lock(&x->lock);
    if (!w->answers) x->barren++;
    int barren = x->barren, most = take_back(w, &lost);
    if (barren >= BARREN || most > x->retries) {
        explain(&error, w, silent, barren, most);
        fail(x, &error);
    }
    give_again(w, &lost);
    pthread_mutex_unlock(&x->lock);
}

/* Lets the cancelled requests go. A child that has begun one would still answer it: it is killed, and what else
 * it had is begun again. */
static void let_go(worker *w)
{
    exec *x = w->exec;
    sf_queue kept = {0};
    request *r;
    int begun = 0;
    pthread_mutex_lock(&x->lock);
    for (r = sf_queue_first(&w->sent); r; r = sf_queue_after(&r->link)) begun |= r->cancelled;
    for (r = sf_queue_first(&w->waiting); r; r = sf_queue_after(&r->link)) begun |= r->cancelled && r->written;
    if (begun) {
        pthread_mutex_unlock(&x->lock);
        sf_child_end(&w->child, 0);
        sf_buffer_clear(&w->reply);
        pthread_mutex_lock(&x->lock);
        while ((r = sf_queue_pop(&w->sent))) sf_queue_push(&kept, &r->link);
    }
    while ((r = sf_queue_pop(&w->waiting))) sf_queue_push(&kept, &r->link);
    while ((r = sf_queue_pop(&kept))) {
        if (begun) r->written = 0;
        if (r->cancelled)
            finish(w, r, 0);
        else
            sf_queue_push(&w->waiting, &r->link);
    }
    w->cancelled = 0;
    pthread_mutex_unlock(&x->lock);
}

static safer_status start(worker *w, safer_error *error)
{
    safer_status status = sf_child_start(&w->child, w->exec->command, error);
    w->answers = 0;
    w->heard = sf_seconds();
    if (w->starts++) {
        pthread_mutex_lock(&w->exec->lock);
        w->exec->restarts++;
        pthread_mutex_unlock(&w->exec->lock);
    }
    return status;
}

/* When the child has been silent for too long, or has forgotten a request. */
static double deadline(const worker *w, int blocked)
{
    double first = HUGE_VAL;
    if (w->sent.first || blocked) first = w->heard + w->exec->timeout;
    for (const request *r = sf_queue_first(&w->sent); r; r = sf_queue_after(&r->link))
        if (r->deadline < first) first = r->deadline;
    return first;
}

/* Waits until there is something to do. `blocked`: also for the child to read on. */
static void rest(worker *w, struct pollfd fds[4], int blocked)
{
    exec *x = w->exec;
    double left = deadline(w, blocked) - sf_seconds();
    int patience = left > 3600 ? 3600000 : left > 0 ? (int)(left * 1000) + 1 : 0;
    uint64_t count;
    fds[0] = (struct pollfd){.fd = w->wake, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = w->child.output, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = w->child.errors, .events = POLLIN};
    fds[3] = (struct pollfd){.fd = w->child.input, .events = blocked ? POLLOUT : 0};
    int stuck = blocked || (w->child.pid && w->child.input < 0); /* what waits cannot be written now */
    pthread_mutex_lock(&x->lock);
    w->asleep = !x->ending && !x->failed && !w->cancelled && (stuck || !w->waiting.first);
    int asleep = w->asleep;
    pthread_mutex_unlock(&x->lock);
    int ready = poll(fds, 4, asleep ? patience : 0);
    if (ready <= 0) fds[0].revents = fds[1].revents = fds[2].revents = fds[3].revents = 0;
    pthread_mutex_lock(&x->lock);
    w->asleep = 0;
    pthread_mutex_unlock(&x->lock);
    if (fds[0].revents && read(w->wake, &count, sizeof count) < 0) { /* it does not block */
    }
}

/* One round of writing, waiting and reading. */
static safer_status tend(worker *w, safer_error *error)
{
    struct pollfd fds[4];
    int ended = 0;
    if (!w->child.pid && first_waiting(w)) {
        safer_status status = start(w, error);
        if (status != SAFER_OK) return status;
    }
    int blocked = write_input(w);
    rest(w, fds, blocked);
    if (!w->child.pid) return SAFER_OK;
    if (fds[2].revents) sf_child_listen(&w->child);
    if (fds[1].revents) {
        safer_status status = read_output(w, &ended, error);
        if (status != SAFER_OK) return status;
    }
    if ((fds[3].revents & POLLERR) && w->child.input >= 0) { /* it has closed its input */
        close(w->child.input);
        w->child.input = -1;
    }
    if (ended || (w->child.input < 0 && !w->sent.first))
        bury(w, 0);
    else if (sf_seconds() > deadline(w, blocked))
        bury(w, 1);
    return SAFER_OK;
}

static void *keep(void *argument)
{
    worker *w = argument;
    exec *x = w->exec;
    safer_error error;
    int over = 0, cancelled = 0;
    double grace = GRACE;
    while (!over) {
        if (cancelled) let_go(w);
        safer_status status = tend(w, &error);
        pthread_mutex_lock(&x->lock);
        if (status != SAFER_OK) fail(x, &error);
        grace = x->hurried ? 0 : x->failed ? LAST_GRACE : GRACE;
        over = x->failed || x->ending;
        cancelled = w->cancelled;
        for (request *r; over && ((r = sf_queue_pop(&w->sent)) || (r = sf_queue_pop(&w->waiting)));) finish(w, r, 0);
        pthread_mutex_unlock(&x->lock);
    }
    sf_child_end(&w->child, grace);
    return NULL;
}

/* ------------------------------------------------------------- the transport */

static void free_request(request *r)
{
    sf_buffer_free(&r->line);
    pthread_cond_destroy(&r->woken);
    free(r);
}

/* A request to fill in, with a number. */
static request *borrow(exec *x)
{
    pthread_mutex_lock(&x->lock);
    request *r = sf_queue_pop(&x->spare);
    uint64_t id = x->next_id++;
    pthread_mutex_unlock(&x->lock);
    if (!r) {
        r = sf_calloc(1, sizeof *r);
        if (!r) return NULL;
        pthread_cond_init(&r->woken, NULL);
    }
    r->id = id;
    r->lost = r->done = r->answered = r->cancelled = 0;
    return r;
}

/* Under the lock. */
static void hand_back(exec *x, request *r)
{
    if (r->line.capacity > SPARE_BYTES) sf_buffer_free(&r->line);
    sf_queue_push(&x->spare, &r->link);
}

/* Gives the request to a worker, when one has room for it. Under the lock. */
static int offer(exec *x, request *r)
{
    worker *w = least_loaded(x);
    if (w->load && (w->load >= DEPTH || w->bytes + r->line.length > ROOM)) return 0;
    x->requests++;
    give(w, r);
    return 1;
}

/* Under the lock. */
static void cancel(exec *x, request *r)
{
    x->hurried = r->cancelled = r->holder->cancelled = 1;
    wake(r->holder);
}

static safer_status ask(void *self, const sf_span *texts, size_t count, int *labels, float *scores, safer_error *error)
{
    exec *x = self;
    safer_status status = SAFER_OK;
    request *r = borrow(x);
    if (!r) return sf_fail_memory(error);
    r->count = count;
    r->labels = labels;
    r->scores = scores;
    int made = write_line(r, texts, count) == 0, given = 0;
    pthread_mutex_lock(&x->lock);
    while (made && !x->failed && !r->cancelled && !(given = offer(x, r))) {
        x->crowd++;
        r->cancelled = sf_duty_wait(&x->room, &x->lock);
        x->crowd--;
    }
    while (given && !r->done) /* also after a failure: its keeper has it */
        if (sf_duty_wait(&r->woken, &x->lock) && !r->done) cancel(x, r);
    if (!made) {
        status = sf_fail_memory(error);
    } else if (!r->answered && !x->failed) {
        status = sf_fail(error, SAFER_CANCELLED, "cancelled while the model was asked");
    } else if (!r->answered) {
        status = x->error.status;
        if (error) *error = x->error;
    }
    hand_back(x, r);
    pthread_mutex_unlock(&x->lock);
    return status;
}

static void tell(void *self, safer_traffic *traffic)
{
    exec *x = self;
    pthread_mutex_lock(&x->lock);
    traffic->requests += x->requests;
    traffic->retries += x->resent;
    traffic->restarts += x->restarts;
    pthread_mutex_unlock(&x->lock);
}

static void exec_free(void *self)
{
    exec *x = self;
    pthread_mutex_lock(&x->lock);
    x->ending = 1;
    for (int i = 0; i < x->worker_count; i++) wake(&x->workers[i]);
    pthread_mutex_unlock(&x->lock);
    for (int i = 0; i < x->worker_count; i++) {
        worker *w = &x->workers[i];
        pthread_join(w->keeper, NULL);
        close(w->wake);
        sf_buffer_free(&w->reply);
    }
    for (request *r; (r = sf_queue_pop(&x->spare));) {
        free_request(r);
    }
    pthread_cond_destroy(&x->room);
    pthread_mutex_destroy(&x->lock);
    free(x->workers);
    free(x->command);
    free(x);
}

/* A worker's thread, which no signal reaches: those are for the program's own threads, and
 * writing to a child that is gone must not end us. */
static safer_status hire(exec *x, safer_error *error)
{
    worker *w = &x->workers[x->worker_count];
    sigset_t all, before;
    *w = (worker){.exec = x, .child = SF_CHILD_NONE, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (w->wake < 0) return sf_fail_errno(error, "open", "an eventfd");
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    errno = pthread_create(&w->keeper, NULL, keep, w);
    int code = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code) {
        errno = code;
        close(w->wake);
        return sf_fail_errno(error, "start", "a thread");
    }
    x->worker_count++;
    return SAFER_OK;
}

/* Children are started when there is work for them. */
safer_status sf_exec_open(sf_transport *out, const char *command, const sf_labels *labels,
                          const safer_remote_options *options, safer_error *error)
{
    safer_status status = SAFER_OK;
    int workers = options->workers > 0 ? options->workers : sf_cores();
    exec *x = sf_calloc(1, sizeof *x);
    if (!x) return sf_fail_memory(error);
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->room, NULL);
    x->labels = labels;
    x->timeout = options->timeout;
    x->retries = options->retries;
    x->command = sf_strdup(command);
    x->workers = sf_calloc((size_t)workers, sizeof *x->workers);
    if (!x->command || !x->workers) status = sf_fail_memory(error);
    while (status == SAFER_OK && x->worker_count < workers) status = hire(x, error);
    if (status != SAFER_OK) {
        exec_free(x);
        return status;
    }
    *out = (sf_transport){.arch = "exec",
                          .self = x,
                          .ask = ask,
                          .free = exec_free,
                          .tell = tell,
                          .batch = options->batch ? options->batch : BATCH,
                          .concurrency = GAINFUL * workers};
    return SAFER_OK;
}
