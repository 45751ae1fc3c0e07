/* Where the work is done: a bounded queue of texts and the threads that take them.
 *
 * A text of whatever request goes to the next free thread, so requests with many texts and many
 * requests with one keep the model equally busy. As in a run of safer certify a thread has a
 * text to itself and fills the model's batches with its draws; a text that is alone is
 * shared by all threads. */
#ifndef SF_SERVE_WORKERS_H
#define SF_SERVE_WORKERS_H

#include "serve/job.h"
#include "serve/metrics.h"

typedef struct sf_room sf_room;

/* Starts the threads. Texts are counted in `metrics`. */
safer_status sf_room_open(sf_room **out, const safer_model *model, const safer_lexicon *lexicon,
                          const safer_certify_options *options, size_t queue, sf_metrics *metrics, safer_error *error);

/* Lets the threads finish what is there, and ends them. NULL is fine. */
void sf_room_close(sf_room *room);

/* Takes all texts of the job (and a reference to it; the caller holds its lock), or none: -1 when they do not fit into
 * the queue; *seconds gets when that will likely have changed, at least 1. */
int sf_room_offer(sf_room *room, sf_job *job, int *seconds);

/* Fills all but the connections. */
void sf_room_gauge(sf_room *room, sf_gauges *out);

#endif
