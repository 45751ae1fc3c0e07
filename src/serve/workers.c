/* The workers: threads that take texts from a queue. */
#include "serve/workers.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "serve/answer.h"

#include <pthread.h>

typedef struct worker {
    struct sf_workers *workers; /* it is one of */
    safer_workspace *workspace;
    pthread_t thread;
} worker;

struct sf_workers {
    sf_metrics *metrics;
    size_t queue; /* texts that may wait */
    worker *list;
    size_t count;            /* of the workers that were started */
    safer_workspace *shared; /* several threads on one text */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work;
    sf_job *first, *last; /* with texts that nobody took */
    size_t waiting, busy;
    int shared_taken, ending;
    double seconds; /* that texts took lately, each */
};

/* Certifies a text or looks its words up, with the workspace of a thread or the shared one. */
static void do_text(sf_workers *workers, sf_job *job, size_t index, safer_workspace *workspace)
{
    safer_certificate certificate;
    if (atomic_load(&job->cancelled) || !sf_answer_text(&certificate, job, index, workspace)) return;
    sf_metrics_text(workers->metrics, certificate.certified, certificate.abstained, certificate.exact,
                    certificate.queries);
}

static void *work(void *argument)
{
    worker *self = argument;
    sf_workers *workers = self->workers;
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (!workers->first && !workers->ending) pthread_cond_wait(&workers->work, &workers->lock);
        if (!workers->first) break;
        sf_job *job = workers->first;
        size_t index = job->taken++;
        workers->waiting--;
        workers->busy++;
        if (job->taken == job->count) {
            workers->first = job->next;
            if (!workers->first) workers->last = NULL;
        }
        int alone = workers->busy == 1 && workers->waiting == 0 && workers->shared && !workers->shared_taken;
        if (alone) workers->shared_taken = 1;
        pthread_mutex_unlock(&workers->lock);

        double start = sf_seconds();
        do_text(workers, job, index, alone ? workers->shared : self->workspace);
        double seconds = sf_seconds() - start;

        pthread_mutex_lock(&workers->lock);
        if (alone) workers->shared_taken = 0;
        workers->busy--;
        workers->seconds += (seconds - workers->seconds) / 16;
        if (++job->finished < job->count) continue;
        pthread_mutex_unlock(&workers->lock);
        sf_answer_whole(job);
        sf_job_release(job);
        pthread_mutex_lock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

static safer_status start_workers(sf_workers *workers, size_t count, const safer_model *model,
                                  const safer_lexicon *lexicon, safer_certify_options options, safer_error *error)
{
    safer_status status = SAFER_OK;
    workers->list = sf_calloc(count, sizeof *workers->list);
    if (!workers->list) return sf_fail_memory(error);
    options.threads = model->calls ? model->calls : (int)count;
    if (options.threads > 1) SF_TRY(sf_workspace_new(&workers->shared, model, lexicon, &options, error));
    options.threads = 1;
    for (; workers->count < count; workers->count++) {
        worker *w = &workers->list[workers->count];
        w->workers = workers;
        SF_TRY(sf_workspace_new(&w->workspace, model, lexicon, &options, error));
        if (pthread_create(&w->thread, NULL, work, w) != 0) {
            safer_workspace_free(w->workspace);
            status = sf_fail(error, SAFER_SYSTEM, "cannot start thread %zu of %zu", workers->count + 1, count);
            goto done;
        }
    }
done:
    return status;
}

safer_status sf_workers_start(sf_workers **out, const safer_model *model, const safer_lexicon *lexicon,
                              const safer_certify_options *options, size_t queue, sf_metrics *metrics,
                              safer_error *error)
{
    sf_workers *workers = sf_calloc(1, sizeof *workers);
    if (!workers) return sf_fail_memory(error);
    workers->queue = queue;
    workers->metrics = metrics;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->work, NULL);
    size_t threads = (size_t)(model->concurrency ? model->concurrency : sf_threads(options->threads));
    safer_status status = start_workers(workers, threads, model, lexicon, *options, error);
    if (status == SAFER_OK)
        *out = workers;
    else
        sf_workers_end(workers);
    return status;
}

void sf_workers_end(sf_workers *workers)
{
    if (!workers) return;
    pthread_mutex_lock(&workers->lock);
    workers->ending = 1;
    pthread_cond_broadcast(&workers->work);
    pthread_mutex_unlock(&workers->lock);
    for (size_t i = 0; i < workers->count; i++) {
        pthread_join(workers->list[i].thread, NULL);
        safer_workspace_free(workers->list[i].workspace);
    }
    safer_workspace_free(workers->shared);
    pthread_mutex_destroy(&workers->lock);
    pthread_cond_destroy(&workers->work);
    free(workers->list);
    free(workers);
}

int sf_workers_offer(sf_workers *workers, sf_job *job, int *seconds)
{
    pthread_mutex_lock(&workers->lock);
    int fits = job->count <= workers->queue - workers->waiting;
    if (fits) {
        job->references++;
        if (workers->last)
            workers->last->next = job;
        else
            workers->first = job;
        workers->last = job;
        workers->waiting += job->count;
        if (job->count == 1)
            pthread_cond_signal(&workers->work);
        else
            pthread_cond_broadcast(&workers->work);
    } else {
        double wait = workers->seconds * (double)workers->waiting / (double)workers->count;
        *seconds = wait < 1 ? 1 : wait > 3600 ? 3600 : (int)(wait + 0.999);
    }
    pthread_mutex_unlock(&workers->lock);
    return fits ? 0 : -1;
}

void sf_workers_gauge(sf_workers *workers, sf_gauges *out)
{
    pthread_mutex_lock(&workers->lock);
    out->waiting += workers->waiting;
    out->busy += workers->busy;
    out->workers += workers->count;
    pthread_mutex_unlock(&workers->lock);
}

int sf_workers_full(sf_workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    const int full = workers->waiting >= workers->queue;
    pthread_mutex_unlock(&workers->lock);
    return full;
}
