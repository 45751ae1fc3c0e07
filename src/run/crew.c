/* A crew: the post, signs of life, and the end. crew.h has the frames.
 *
 * What can go wrong with a rank is noticed in three ways. It says so (ERROR, STOPPED). It is silent for too long. Or
 * this process is asked to stop, which mpirun does to all when one has died; then whoever does not answer is that one
 * (sf_crew_muster). In each case the first failure is kept, and the run, which looks for it, ends. */
#define _GNU_SOURCE
#include "run/crew.h"

#include "base/memory.h"
#include "base/progress.h"
#include "run/crew_frames.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define BEAT_SECONDS 1.0      /* between two signs of life; a tenth of the time-out where that is less */
#define MUSTER_SECONDS 0.3    /* for an answer when asked: mpirun kills a second after it asked to stop, */
#define LAST_WORDS 0.4        /* or when the first rank goes: rank 1 has so long to say that rank 0 is lost */
#define STOPPED_SECONDS 0.5   /* between the signal to a helper and that to rank 0, when all get one */
#define LEAVE_SECONDS 2.0     /* for the others to come, after a failure */
#define ABORT_SECONDS 0.2     /* for the others to hear that it is over, before they are ended */
#define LONGEST_PAUSE 5e-3    /* of the post */
#define RETURNED_SECONDS 5.0  /* after an absence of one's own, in which what happens follows from that */
enum { MOST_MESSAGES = 256 }; /* received before others have their turn */

typedef struct peer {
    const char *host;
    sf_buffer box;   /* frames for it */
    double heard;    /* when the last message came */
    double answered; /* when it last showed that it knows of a wish to stop: PONG, or PING */
    double stopped;  /* when it said so; 0: it did not */
    int greeted, bye;
} peer;

/* A frame that came before there was a part in a run. */
typedef struct kept {
    struct kept *next;
    int from;
    sf_frame kind;
    size_t length;
    char bytes[];
} kept;

typedef enum ending { STAYING, TOGETHER, ALONE, ABORTING } ending;

struct safer_crew {
    const sf_transport_table *table;
    sf_transport *transport; /* the post's alone, once it is open */
    void *where;
    int rank, size;
    uint64_t runs; /* that rank 0 began */
    double timeout;
    safer_crew_lost lost;
    void *context;
    pthread_t post;
    double turned, beaten; /* when the post last came round, and when it last sent a sign of life */
    _Atomic double away;   /* when it came round after a time in which the others may have held this rank for lost */

    pthread_mutex_t lock; /* of all that follows, and of the peers */
    pthread_cond_t changed, wake;
    peer *peers;
    kept *first, **last;
    const sf_crew_part *part;
    int inside; /* the post is in the part */
    int opened, over, go, mustered;
    ending end;
    int code;            /* of the exit, when it ends by aborting */
    atomic_int failed;   /* set last */
    int is_lost, random; /* of the failure */
    safer_error error;
};

/* Waits for a change, at most so long. The lock is held. */
static void wait_for(safer_crew *c, pthread_cond_t *condition, double seconds)
{
    const double until = sf_seconds() + seconds;
    const struct timespec at = {(time_t)until, (long)((until - floor(until)) * 1e9)};
    pthread_cond_clockwait(condition, &c->lock, CLOCK_MONOTONIC, &at);
}

/* ------------------------------------------------------------------ failures */

/* Whether the others held this rank itself for lost a moment ago, and said so. */
static int was_lost(const safer_crew *c) { return c->away > 0 && sf_seconds() - c->away < RETURNED_SECONDS; }

/* Keeps the first failure. The lock is not held. */
static void fail(safer_crew *c, int is_lost, int random, safer_status status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static void fail(safer_crew *c, int is_lost, int random, safer_status status, const char *format, ...)
{
    char message[sizeof c->error.message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&c->lock);
    const int first = !atomic_load(&c->failed), over = c->rank && c->over; /* which rank 0 has explained */
    if (first) {
        sf_fail(&c->error, status, "%s", message);
        c->is_lost = is_lost;
        c->random = random;
        atomic_store(&c->failed, 1);
    }
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (first && is_lost && c->lost && c->rank <= 1 && !over && !was_lost(c)) c->lost(c->context, message);
}

safer_status sf_crew_failure(safer_crew *c, int *random, safer_error *error)
{
    if (!atomic_load(&c->failed)) return SAFER_OK;
    pthread_mutex_lock(&c->lock);
    if (error) *error = c->error;
    if (random) *random = c->random;
    pthread_mutex_unlock(&c->lock);
    return c->error.status;
}

static void fail_silent(safer_crew *c, int rank, const char *why)
{
    fail(c, 1, 0, SAFER_SYSTEM, "rank %d on %s is lost: %s", rank, c->peers[rank].host, why);
}

/* Whether this rank watches that one. */
static int watches(const safer_crew *c, int rank) { return rank != c->rank && (c->rank == 0 || rank == 0); }

/* ------------------------------------------------------------------- sending */

/* The lock is held. */
static int put(safer_crew *c, int to, sf_frame kind, sf_span contents)
{
    sf_buffer *box = &c->peers[to].box;
    const uint32_t number = kind;
    if (sf_buffer_reserve(box, sizeof number + sizeof(uint64_t) + contents.length)) return -1;
    return sf_buffer_add(box, &number, sizeof number) || sf_put_string(box, contents);
}

void sf_crew_put(safer_crew *c, int to, sf_frame kind, sf_span contents)
{
    int failed = 0;
    pthread_mutex_lock(&c->lock);
    const int all = to == SF_ALL_RANKS;
    for (int i = all ? 0 : to; i < (all ? c->size : to + 1); i++)
        if (i != c->rank && put(c, i, kind, contents)) failed = 1;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (failed) fail(c, 0, 0, SAFER_SYSTEM, "out of memory for a message to rank %d", to);
}

/* Sends what is in the boxes. Returns whether there was anything. */
static int send_boxes(safer_crew *c)
{
    int any = 0;
    for (int i = 0; i < c->size; i++) {
        safer_error error = {0};
        pthread_mutex_lock(&c->lock);
        const sf_buffer full = c->peers[i].box;
        c->peers[i].box = (sf_buffer){0};
        pthread_mutex_unlock(&c->lock);
        if (!full.length) {
            free(full.bytes);
            continue;
        }
        any = 1;
        if (c->table->send(c->transport, i, full.bytes, full.length, &error) != SAFER_OK)
            fail(c, 1, 0, error.status, "%s", error.message);
    }
    return any;
}

/* ----------------------------------------------------------------- receiving */

static int take_hello(safer_crew *c, int from, sf_span contents)
{
    c->peers[from].greeted = 1;
    if (contents.length != strlen(SAFER_VERSION) || memcmp(contents.bytes, SAFER_VERSION, contents.length) != 0)
        fail(c, 0, 0, SAFER_SYSTEM, "rank %d on %s is safer %.*s, and rank 0 on %s is " SAFER_VERSION, from,
             c->peers[from].host, sf_clip(contents.bytes, contents.length, 40), contents.bytes, c->peers[0].host);
    return 0;
}

static int take_error(safer_crew *c, int from, sf_span contents)
{
    uint64_t status, random;
    sf_span message;
    if (sf_take_number(&status, &contents) || sf_take_number(&random, &contents) ||
        sf_take_string(&message, &contents) || contents.length || status == SAFER_OK || status > INT32_MAX)
        return -1;
    fail(c, 0, random == 1, (safer_status)status, "rank %d on %s: %.*s", from, c->peers[from].host,
         (int)(message.length < 900 ? message.length : 900), message.bytes);
    return 0;
}

/* Hands a frame to the part that takes part in a run, or keeps it until there is one. What is told, and what follows
 * it, waits for the next run. */
static int hand_on(safer_crew *c, int from, sf_frame kind, sf_span contents)
{
    pthread_mutex_lock(&c->lock);
    const sf_crew_part *part = c->first || kind == SF_TELL ? NULL : c->part;
    c->inside = part != NULL;
    pthread_mutex_unlock(&c->lock);
    if (!part) {
        kept *k = malloc(sizeof *k + contents.length);
        if (!k) {
            fail(c, 0, 0, SAFER_SYSTEM, "out of memory for a message of rank %d", from);
            return 0;
        }
        *k = (kept){.from = from, .kind = kind, .length = contents.length};
        if (contents.length) memcpy(k->bytes, contents.bytes, contents.length);
        pthread_mutex_lock(&c->lock);
        *c->last = k;
        c->last = &k->next;
        pthread_mutex_unlock(&c->lock);
        return 0;
    }
    const int wrong = part->frame(part->context, from, kind, contents);
    pthread_mutex_lock(&c->lock);
    c->inside = 0;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return wrong;
}

/* A frame that says only that something happened. */
static void note(safer_crew *c, int from, sf_frame kind)
{
    pthread_mutex_lock(&c->lock);
    if (kind == SF_PONG || kind == SF_PING) c->peers[from].answered = sf_seconds();
    if (kind == SF_STOPPED) c->peers[from].stopped = sf_seconds();
    if (kind == SF_BYE) c->peers[from].bye = 1;
    if (kind == SF_OVER) c->over = 1;
    if (kind == SF_GO) c->go = 1;
    if (kind == SF_PING && put(c, from, SF_PONG, (sf_span){0}))
        kind = SF_FRAMES; /* without memory there is no answer, and soon worse */
    pthread_mutex_unlock(&c->lock);
}

/* Nonzero: it makes no sense. */
static int take_frame(safer_crew *c, int from, sf_frame kind, sf_span contents)
{
    const int to_helper = kind == SF_WELCOME || kind == SF_TASK || kind == SF_FINISH || kind == SF_TELL ||
                          kind == SF_OVER || kind == SF_GO,
              of_both = kind == SF_BEAT || kind == SF_PING || kind == SF_PONG;
    if (!of_both && to_helper != (from == 0)) return -1;
    if (from > 0 && !c->peers[from].greeted && kind != SF_HELLO) return -1;
    switch (kind) {
    case SF_HELLO: return take_hello(c, from, contents);
    case SF_ERROR: return take_error(c, from, contents);
    case SF_WELCOME:
    case SF_READY:
    case SF_TASK:
    case SF_DONE:
    case SF_TELL:
    case SF_FINISH: return hand_on(c, from, kind, contents);
    default: note(c, from, kind); return contents.length != 0;
    }
}

static int take_message(safer_crew *c, int from, sf_span message)
{
    while (message.length) {
        uint32_t kind;
        sf_span contents;
        if (message.length < sizeof kind) return -1;
        memcpy(&kind, message.bytes, sizeof kind);
        message = (sf_span){message.bytes + sizeof kind, message.length - sizeof kind};
        if (kind >= SF_FRAMES || sf_take_string(&contents, &message) || take_frame(c, from, kind, contents)) return -1;
    }
    return 0;
}

/* What was kept comes first. Returns whether anything came. */
static int receive_messages(safer_crew *c)
{
    int any = 0;
    for (int i = 0; i < MOST_MESSAGES; i++) {
        safer_error error = {0};
        char *bytes = NULL;
        size_t length = 0;
        int from = 0;
        if (c->table->receive(c->transport, &from, &bytes, &length, &error) != SAFER_OK)
            fail(c, 1, 0, error.status, "%s", error.message);
        if (!bytes) break;
        any = 1;
        pthread_mutex_lock(&c->lock);
        c->peers[from].heard = sf_seconds();
        pthread_mutex_unlock(&c->lock);
        if (take_message(c, from, (sf_span){bytes, length}))
            fail(c, 0, 0, SAFER_SYSTEM, "a message of rank %d on %s makes no sense here", from, c->peers[from].host);
        free(bytes);
    }
    if (!any) return 0;
    pthread_mutex_lock(&c->lock);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return any;
}

/* ------------------------------------------------------------------ the post */

/* Signs of life, sent and expected. A post that did not come round itself (a process that was stopped, a machine that
 * slept) cannot tell silence from its own absence, and begins to listen anew. */
static void watch(safer_crew *c)
{
    const double now = sf_seconds(), beat = c->timeout < 10 * BEAT_SECONDS ? c->timeout / 10 : BEAT_SECONDS;
    const int was_away = now - c->turned > c->timeout / 2;
    int silent = 0, stopped = 0, left = 0; /* a rank and 1 */
    c->turned = now;
    if (was_away) c->away = now;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < c->size; i++) {
        peer *p = &c->peers[i];
        if (!c->rank && c->part && p->bye && !(p->stopped > 0)) left = i + 1;
        if (p->stopped > 0 && now - p->stopped > STOPPED_SECONDS && !c->mustered && !c->over) stopped = i + 1;
        if (!watches(c, i) || p->bye || c->go) continue;
        if (was_away) p->heard = now;
        if (now - p->heard > c->timeout) silent = i + 1;
        if (now - c->beaten >= beat) (void)put(c, i, SF_BEAT, (sf_span){0});
    }
    pthread_mutex_unlock(&c->lock);
    if (now - c->beaten >= beat) c->beaten = now;
    char why[64];
    snprintf(why, sizeof why, "nothing was heard from it for %g s", c->timeout);
    if (silent) fail_silent(c, silent - 1, why);
    if (left) fail_silent(c, left - 1, "it left");
    if (stopped) fail_silent(c, stopped - 1, "it was told to stop");
}

/* What was kept up to what was told, which is not for a run. The lock is held. */
static kept *take_kept(safer_crew *c)
{
    kept *all = c->first, **end = &all;
    while (*end && (*end)->kind != SF_TELL) end = &(*end)->next;
    c->first = *end;
    if (!c->first) c->last = &c->first;
    *end = NULL;
    return all;
}

/* The part's turn, and before it the frames that came before the part. */
static void take_turn(safer_crew *c)
{
    pthread_mutex_lock(&c->lock);
    const sf_crew_part *part = c->part;
    kept *k = part ? take_kept(c) : NULL;
    c->inside = part != NULL;
    pthread_mutex_unlock(&c->lock);
    while (k) {
        kept *next = k->next;
        if (part->frame(part->context, k->from, k->kind, (sf_span){k->bytes, k->length}))
            fail(c, 0, 0, SAFER_SYSTEM, "a message of rank %d on %s makes no sense here", k->from,
                 c->peers[k->from].host);
        free(k);
        k = next;
    }
    if (!part) return;
    part->turn(part->context);
    pthread_mutex_lock(&c->lock);
    c->inside = 0;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Sends the last messages, and closes the transport. */
static void close_transport(safer_crew *c)
{
    const double start = sf_seconds();
    const double most = c->end == TOGETHER ? c->timeout : c->end == ABORTING ? ABORT_SECONDS : 0;
    while (sf_seconds() - start < most) {
        const int sent = send_boxes(c);
        (void)receive_messages(c);
        if (!sent && !c->table->sending(c->transport)) break;
    }
    if (c->end == ABORTING) c->table->abort(c->transport, c->code);
    c->table->close(c->transport, c->end == TOGETHER);
}

static safer_status open_transport(safer_crew *c, safer_error *error)
{
    safer_status status;
    SF_TRY(c->table->open(&c->transport, c->where, error));
    c->rank = c->table->rank(c->transport);
    c->size = c->table->count(c->transport);
    c->peers = sf_calloc((size_t)c->size, sizeof *c->peers);
    if (!c->peers) {
        c->table->close(c->transport, 0);
        return sf_fail_memory(error);
    }
    for (int i = 0; i < c->size; i++)
        c->peers[i] = (peer){.host = c->table->host(c->transport, i), .heard = sf_seconds()};
    c->turned = sf_seconds();
    if (c->rank) (void)put(c, 0, SF_HELLO, (sf_span){SAFER_VERSION, strlen(SAFER_VERSION)});
done:
    return status;
}

static void *run_post(void *context)
{
    safer_crew *c = context;
    safer_error error = {0};
    double pause = 0;
    const safer_status status = open_transport(c, &error);
    pthread_mutex_lock(&c->lock);
    c->opened = status == SAFER_OK ? 1 : -1;
    if (status != SAFER_OK) c->error = error;
    pthread_cond_broadcast(&c->changed);
    while (status == SAFER_OK && c->end == STAYING) {
        pthread_mutex_unlock(&c->lock);
        const int busy = send_boxes(c) + receive_messages(c);
        take_turn(c);
        watch(c);
        pthread_mutex_lock(&c->lock);
        pause = busy ? LONGEST_PAUSE / 100 : pause * 2 < LONGEST_PAUSE ? pause * 2 : LONGEST_PAUSE;
        int waiting = 0;
        for (int i = 0; i < c->size; i++) waiting |= c->peers[i].box.length > 0;
        if (!busy && !waiting && c->end == STAYING) wait_for(c, &c->wake, pause);
    }
    pthread_mutex_unlock(&c->lock);
    if (status == SAFER_OK) close_transport(c);
    return NULL;
}

/* -------------------------------------------------------- joining and leaving */

static void free_crew(safer_crew *c)
{
    for (int i = 0; c->peers && i < c->size; i++) sf_buffer_free(&c->peers[i].box);
    while (c->first) {
        kept *next = c->first->next;
        free(c->first);
        c->first = next;
    }
    pthread_cond_destroy(&c->changed);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c->peers);
    free(c);
}

/* Starts the post, which takes no signals: they are for the program's own threads. */
static int start_post(safer_crew *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&c->post, NULL, run_post, c);
    if (!failed) (void)pthread_setname_np(c->post, "safer-post"); /* for top, and for scripts/bench-mpi */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

safer_status sf_crew_new(safer_crew **out, const sf_transport_table *table, void *where, double timeout,
                         safer_crew_lost lost, void *context, safer_error *error)
{
    safer_crew *c = sf_calloc(1, sizeof *c);
    if (!c) return sf_fail_memory(error);
    c->table = table;
    c->where = where;
    c->timeout = timeout;
    c->lost = lost;
    c->context = context;
    c->last = &c->first;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    pthread_cond_init(&c->wake, NULL);
    if (start_post(c)) {
        free_crew(c);
        return sf_fail(error, SAFER_SYSTEM, "cannot start a thread");
    }
    pthread_mutex_lock(&c->lock);
    while (!c->opened) pthread_cond_wait(&c->changed, &c->lock);
    const int opened = c->opened;
    pthread_mutex_unlock(&c->lock);
    if (opened > 0) {
        *out = c;
        return SAFER_OK;
    }
    pthread_join(c->post, NULL);
    const safer_status status = c->error.status;
    if (error) *error = c->error;
    free_crew(c);
    return status;
}

/* Whether all helpers said goodbye; of a helper, whether all may go. The lock is held. */
static int may_go(const safer_crew *c)
{
    if (c->rank) return c->go;
    for (int i = 1; i < c->size; i++)
        if (!c->peers[i].bye) return 0;
    return 1;
}

void safer_crew_leave(safer_crew *c, int code)
{
    if (!c) return;
    const double start = sf_seconds();
    sf_crew_put(c, c->rank ? 0 : SF_ALL_RANKS, c->rank ? SF_BYE : SF_OVER, (sf_span){0});
    pthread_mutex_lock(&c->lock);
    c->over = 1;
    while (!may_go(c) && !c->is_lost && (c->rank || !code || sf_seconds() - start < LEAVE_SECONDS))
        wait_for(c, &c->changed, 0.1);
    const int go = may_go(c);
    for (const double lost = sf_seconds(); c->rank > 1 && c->is_lost && sf_seconds() - lost < LAST_WORDS;)
        wait_for(c, &c->changed, 0.1);
    pthread_mutex_unlock(&c->lock);
    if (go && !c->rank) sf_crew_put(c, SF_ALL_RANKS, SF_GO, (sf_span){0});
    pthread_mutex_lock(&c->lock);
    c->code = code;
    c->end = go ? TOGETHER : c->rank ? ALONE : ABORTING;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->post, NULL);
    free_crew(c);
}

/* ------------------------------------------------------------------ in a run */

void sf_crew_set_part(safer_crew *c, const sf_crew_part *part)
{
    pthread_mutex_lock(&c->lock);
    c->part = part;
    pthread_cond_signal(&c->wake);
    while (!part && c->inside) pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

uint64_t sf_crew_next_run(safer_crew *c) { return ++c->runs; }

int sf_crew_is_over(safer_crew *c)
{
    pthread_mutex_lock(&c->lock);
    const int over = c->over;
    pthread_mutex_unlock(&c->lock);
    return over;
}

int sf_crew_is_told(safer_crew *c)
{
    pthread_mutex_lock(&c->lock);
    const int told = c->first && c->first->kind == SF_TELL;
    pthread_mutex_unlock(&c->lock);
    return told;
}

safer_status sf_crew_muster(safer_crew *c, safer_error *error)
{
    const double asked = sf_seconds();
    int silent;
    if (c->rank) sf_crew_put(c, 0, SF_STOPPED, (sf_span){0});
    sf_crew_put(c, c->rank ? 0 : SF_ALL_RANKS, SF_PING, (sf_span){0});
    pthread_mutex_lock(&c->lock);
    c->mustered = 1;
    for (;;) {
        silent = -1;
        for (int i = c->size - 1; i >= 0; i--) {
            const peer *p = &c->peers[i];
            /* Not `heard`: what a rank sent before it died may still be coming in. */
            if (watches(c, i) && !(p->answered > 0) && !(p->stopped > 0) && !p->bye && !(c->rank && c->over))
                silent = i;
        }
        if (silent < 0 || sf_seconds() - asked > MUSTER_SECONDS) break;
        wait_for(c, &c->changed, MUSTER_SECONDS / 8);
    }
    pthread_mutex_unlock(&c->lock);
    if (silent >= 0) fail_silent(c, silent, "it died, or its machine cannot be reached");
    return sf_crew_failure(c, NULL, error);
}

int sf_crew_report(safer_crew *c, const safer_error *error, int random)
{
    sf_buffer frame = {0};
    if (!c->rank) return (error->status == SAFER_CANCELLED || c->is_lost) && was_lost(c);
    pthread_mutex_lock(&c->lock);
    const int alone = c->is_lost;
    pthread_mutex_unlock(&c->lock);
    if (alone) return c->rank > 1;
    if (error->status == SAFER_CANCELLED) return 1; /* rank 0 was told: STOPPED, or itself ended the run */
    if (sf_put_number(&frame, error->status) || sf_put_number(&frame, random != 0) ||
        sf_put_string(&frame, (sf_span){error->message, strlen(error->message)}))
        sf_buffer_clear(&frame); /* rank 0 will say that it makes no sense, which names the rank at least */
    sf_crew_put(c, 0, SF_ERROR, (sf_span){frame.bytes, frame.length});
    sf_buffer_free(&frame);
    return 1;
}

/* --------------------------------------------------------------- between runs */

safer_status safer_crew_tell(safer_crew *c, const char *words, safer_error *error)
{
    if (c->rank) return sf_fail(error, SAFER_INVALID, "`crew`: only rank 0 tells the others");
    const safer_status status = sf_crew_failure(c, NULL, error);
    if (status == SAFER_OK) sf_crew_put(c, SF_ALL_RANKS, SF_TELL, (sf_span){words, strlen(words)});
    return status;
}

/* The next thing that was told, or NULL. What was kept of a run that rank 0 gave up is passed over. */
static kept *take_told(safer_crew *c)
{
    kept *k, *told = NULL;
    pthread_mutex_lock(&c->lock);
    while (!told && (k = c->first)) {
        if (!(c->first = k->next)) c->last = &c->first;
        if (k->kind == SF_TELL)
            told = k;
        else
            free(k);
    }
    pthread_mutex_unlock(&c->lock);
    return told;
}

safer_status safer_crew_hear(safer_crew *c, char *out, size_t size, const safer_progress *progress, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_meter meter;
    kept *told;
    if (!c->rank) return sf_fail(error, SAFER_INVALID, "`crew`: rank 0 has nobody to hear");
    sf_meter_start(&meter, progress, "waiting for rank 0", 0);
    const sf_duty before = sf_duty_change((sf_duty){&meter, 0});
    while (!(told = take_told(c)) && status == SAFER_OK) {
        status = safer_crew_check(c, sf_meter_cancelled(&meter), error);
        if (status == SAFER_OK && sf_crew_is_over(c)) status = sf_fail(error, SAFER_CANCELLED, "rank 0 ended the run");
        if (status == SAFER_OK && sf_meter_cancelled(&meter)) status = sf_fail(error, SAFER_CANCELLED, "cancelled");
        pthread_mutex_lock(&c->lock);
        if (status == SAFER_OK && !c->first) (void)sf_duty_wait(&c->changed, &c->lock);
        pthread_mutex_unlock(&c->lock);
    }
    (void)sf_duty_change(before);
    if (told && told->length >= size) status = sf_fail(error, SAFER_SYSTEM, "what rank 0 tells is too long");
    if (told && status == SAFER_OK) {
        memcpy(out, told->bytes, told->length);
        out[told->length] = '\0';
    }
    free(told);
    return status;
}

safer_status safer_crew_check(safer_crew *c, int stopped, safer_error *error)
{
    return stopped ? sf_crew_muster(c, error) : sf_crew_failure(c, NULL, error);
}

int safer_crew_report(safer_crew *c, const safer_error *error) { return sf_crew_report(c, error, 0); }

int safer_crew_rank(const safer_crew *c) { return c->rank; }

int safer_crew_size(const safer_crew *c) { return c->size; }

const char *safer_crew_host(const safer_crew *c, int rank) { return c->peers[rank].host; }

int safer_crew_local_rank(const safer_crew *c)
{
    int below = 0;
    for (int i = 0; i < c->rank; i++) below += strcmp(c->peers[i].host, c->peers[c->rank].host) == 0;
    return below;
}
