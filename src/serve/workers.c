/* Where the work is done. */
#include "serve/workers.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "serve/answer.h"

#include <pthread.h>

typedef struct worker {
    struct sf_room *room;
    safer_workspace *workspace;
    pthread_t thread;
} worker;

struct sf_room {
    sf_metrics *metrics;
    size_t queue; /* texts that may wait */
    worker *workers;
    size_t count;            /* of the workers that were started */
    safer_workspace *shared; /* all threads on one text */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work;
    sf_job *first, *last; /* with texts that nobody took */
    size_t waiting, busy;
    int shared_taken, ending;
    double seconds; /* that texts took lately, each */
};

/* Certifies a text or looks its words up, with the workspace of a thread or the shared one. */
static void do_text(sf_room *room, sf_job *job, size_t index, safer_workspace *workspace)
{
    safer_certificate certificate;
    if (atomic_load(&job->cancelled) || !sf_answer_text(&certificate, job, index, workspace)) return;
    sf_metrics_text(room->metrics, certificate.certified, certificate.abstained, certificate.exact,
                    certificate.queries);
}

static void *work(void *argument)
{
    worker *self = argument;
    sf_room *room = self->room;
    pthread_mutex_lock(&room->lock);
    for (;;) {
        while (!room->first && !room->ending) pthread_cond_wait(&room->work, &room->lock);
        if (!room->first) break;
        sf_job *job = room->first;
        size_t index = job->taken++;
        room->waiting--;
        room->busy++;
        if (job->taken == job->count) {
            room->first = job->next;
            if (!room->first) room->last = NULL;
        }
        int alone = room->busy == 1 && room->waiting == 0 && room->shared && !room->shared_taken;
        if (alone) room->shared_taken = 1;
        pthread_mutex_unlock(&room->lock);

        double start = sf_seconds();
        do_text(room, job, index, alone ? room->shared : self->workspace);
        double seconds = sf_seconds() - start;

        pthread_mutex_lock(&room->lock);
        if (alone) room->shared_taken = 0;
        room->busy--;
        room->seconds += (seconds - room->seconds) / 16;
        if (++job->finished < job->count) continue;
        pthread_mutex_unlock(&room->lock);
        sf_answer_whole(job);
        sf_job_release(job);
        pthread_mutex_lock(&room->lock);
    }
    pthread_mutex_unlock(&room->lock);
    return NULL;
}

static safer_status start_workers(sf_room *room, size_t count, const safer_model *model, const safer_lexicon *lexicon,
                                  safer_certify_options options, safer_error *error)
{
    safer_status status = SAFER_OK;
    room->workers = sf_calloc(count, sizeof *room->workers);
    if (!room->workers) return sf_fail_memory(error);
    options.threads = (int)count;
    if (count > 1) SF_TRY(sf_workspace_new(&room->shared, model, lexicon, &options, error));
    options.threads = 1;
    for (; room->count < count; room->count++) {
        worker *w = &room->workers[room->count];
        w->room = room;
        SF_TRY(sf_workspace_new(&w->workspace, model, lexicon, &options, error));
        if (pthread_create(&w->thread, NULL, work, w) != 0) {
            safer_workspace_free(w->workspace);
            status = sf_fail(error, SAFER_SYSTEM, "cannot start thread %zu of %zu", room->count + 1, count);
            goto done;
        }
    }
done:
    return status;
}

safer_status sf_room_open(sf_room **out, const safer_model *model, const safer_lexicon *lexicon,
                          const safer_certify_options *options, size_t queue, sf_metrics *metrics, safer_error *error)
{
    sf_room *room = sf_calloc(1, sizeof *room);
    if (!room) return sf_fail_memory(error);
    room->queue = queue;
    room->metrics = metrics;
    pthread_mutex_init(&room->lock, NULL);
    pthread_cond_init(&room->work, NULL);
    size_t threads = (size_t)(model->concurrency ? model->concurrency : sf_threads(options->threads));
    safer_status status = start_workers(room, threads, model, lexicon, *options, error);
    if (status == SAFER_OK)
        *out = room;
    else
        sf_room_close(room);
    return status;
}

void sf_room_close(sf_room *room)
{
    if (!room) return;
    pthread_mutex_lock(&room->lock);
    room->ending = 1;
    pthread_cond_broadcast(&room->work);
    pthread_mutex_unlock(&room->lock);
    for (size_t i = 0; i < room->count; i++) {
        pthread_join(room->workers[i].thread, NULL);
        safer_workspace_free(room->workers[i].workspace);
    }
    safer_workspace_free(room->shared);
    pthread_mutex_destroy(&room->lock);
    pthread_cond_destroy(&room->work);
    free(room->workers);
    free(room);
}

int sf_room_offer(sf_room *room, sf_job *job, int *seconds)
{
    pthread_mutex_lock(&room->lock);
    int fits = job->count <= room->queue - room->waiting;
    if (fits) {
        job->references++;
        if (room->last)
            room->last->next = job;
        else
            room->first = job;
        room->last = job;
        room->waiting += job->count;
        if (job->count == 1)
            pthread_cond_signal(&room->work);
        else
            pthread_cond_broadcast(&room->work);
    } else {
        double wait = room->seconds * (double)room->waiting / (double)room->count;
        *seconds = wait < 1 ? 1 : wait > 3600 ? 3600 : (int)(wait + 0.999);
    }
    pthread_mutex_unlock(&room->lock);
    return fits ? 0 : -1;
}

void sf_room_gauge(sf_room *room, sf_gauges *out)
{
    pthread_mutex_lock(&room->lock);
    out->waiting = room->waiting;
    out->busy = room->busy;
    out->workers = room->count;
    pthread_mutex_unlock(&room->lock);
}
