/* The workers: a bounded queue of texts and the threads that take them.
 *
 * A text goes to the next free thread, whatever request it belongs to, so requests with many texts
 * and many requests with one keep the model equally busy. As in a run of safer certify, a thread has a
 * text to itself and fills the model's batches with its draws; a text that is alone is
 * shared by all threads. */
#ifndef SF_SERVE_WORKERS_H
#define SF_SERVE_WORKERS_H

#include "serve/job.h"
#include "serve/metrics.h"

typedef struct sf_workers sf_workers;

/* Starts the threads. Texts are counted in `metrics`. */
safer_status sf_workers_start(sf_workers **out, const safer_model *model, const safer_lexicon *lexicon,
                              const safer_certify_options *options, size_t queue, sf_metrics *metrics,
                              safer_error *error);

/* Lets the threads finish what is there, and ends them. NULL is fine. */
void sf_workers_end(sf_workers *workers);

/* Takes all texts of the job (and a reference to it; the caller holds its lock), or none: -1 when they do not fit into
 * the queue; *seconds gets when that will likely have changed, at least 1. */
int sf_workers_offer(sf_workers *workers, sf_job *job, int *seconds);

/* Adds to all but the connections. */
void sf_workers_gauge(sf_workers *workers, sf_gauges *out);

int sf_workers_full(sf_workers *workers); /* not one text more fits into the queue */

#endif
