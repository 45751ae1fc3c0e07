/* Remote models: classifiers behind a program, a service or a function of the caller.
 *
 * A transport carries texts there and answers back; what every such model needs besides is
 * here: names or numbers become classes, and the question whether an answer is a function of the text alone,
 * on which certificates without sampling, and the cache, depend.
 *
 *   Before a run, texts of the data and the probe set (remote/probe.h) are asked twice, in different requests.
 *   During it, a small share of all texts is asked again with later requests: the guard.
 *   Every text behind an exact certificate is asked twice before the certificate is given: sf_model_confirm.
 *   A model that changes an answer is random from then on: it is sampled, and nothing exact is said of it.
 *   The cache, which asks identical texts once, is for models that are declared functions of the text. Samples of
 *   any other must be independent: a kept answer would count one noisy vote many times. */
#ifndef SF_REMOTE_REMOTE_H
#define SF_REMOTE_REMOTE_H

#include "model/model.h"

/* What an answer can be. */
typedef struct sf_labels {
    char **names;
    size_t count;
    int numbers; /* every name is a whole number: then a number in an answer is a name, else a position */
} sf_labels;

/* Carries batches of texts. Any number of threads may ask at once. */
typedef struct sf_transport {
    const char *arch; /* "exec", "http", "callback" */
    void *self;

    /* labels[i] = class of texts[i], or SF_NO_LABEL for an answer that names no class; scores, when not
     * NULL, gets (count, classes). Failures on the way are retried inside: an error is
     * final. Counts are 1 .. batch. */
    safer_status (*ask)(void *self, const sf_span *texts, size_t count, int *labels, float *scores, safer_error *error);
    void (*free)(void *self);
    void (*tell)(void *self, safer_traffic *traffic); /* adds what it knows; may be NULL */
    size_t batch;                                     /* most texts of a request */
    int concurrency;                                  /* requests that it gains by having at once */
} sf_transport;

/* SAFER_INVALID, with the field's name, when an option is out of range. */
safer_status sf_remote_check(const safer_remote_options *options, safer_error *error);

/* Transports. `labels` outlive them. */
safer_status sf_exec_open(sf_transport *out, const char *command, const sf_labels *labels,
                          const safer_remote_options *options, safer_error *error);
safer_status sf_http_open(sf_transport *out, const char *address, const sf_labels *labels,
                          const safer_remote_options *options, safer_error *error);

/* ------------------------------------------------------------------- answers */

/* The class that a JSON value names, or SF_NO_LABEL - 1 when it names none of them. null is
 * SF_NO_LABEL: the model declined. */
int sf_labels_find(const sf_labels *labels, const json_t *value);

/* A JSON list of labels, or of lists of scores (one per class; the greatest wins, the first of
 * equals), as `count` classes. What is wrong is said as "NAME: ...". */
safer_status sf_read_labels(int *out, const sf_labels *labels, const json_t *list, size_t count, const char *name,
                            safer_error *error);
safer_status sf_read_scores(int *out, float *scores, const sf_labels *labels, const json_t *list, size_t count,
                            const char *name, safer_error *error);

/* Lists of scores that came with the labels `out`: SAFER_INPUT when another label has a greater score, or when only one
 * of the two is null. */
safer_status sf_check_scores(const int *out, const sf_labels *labels, const json_t *list, size_t count,
                             const char *name, safer_error *error);

/* (count, classes) scores for labels alone: 1 for the label, 0 for the rest. */
void sf_one_hot(float *scores, const int *labels, size_t count, size_t classes);

#endif
