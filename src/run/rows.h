/* The rows of a data set, worked on in parallel, their records written in order.
 *
 * What is done with a row, and what a record means, is the caller's: certifying and
 * attacking share this. */
#ifndef SF_RUN_ROWS_H
#define SF_RUN_ROWS_H

#include "model/model.h"
#include "run/sealed.h"
#include "run/shard.h"

/* All that the work on a row needs of the data; the bytes are borrowed. */
typedef struct sf_row {
    size_t index;  /* in the data, from 0 */
    safer_row row; /* its label is the model's class, or -1 */
    sf_span more;  /* on a helper: what `attach` of rank 0 said of it */
} sf_row;

typedef struct sf_rows {
    size_t count;             /* to do: of the data, or of its part */
    sf_shard shard;           /* which part that is */
    const safer_model *model; /* that the work asks */
    int threads;
    const safer_data *data; /* NULL on a helper */
    const int *classes;     /* of each of its labels, the model's class; NULL: rows have no label */
    const json_t *config;   /* the first line; borrowed */
    const safer_progress *progress;
    void *context;

    /* The record of a row, without "seconds" and "check"; the caller owns it. *record is NULL
     * without memory. `worker` is at most `threads`. */
    safer_status (*work)(void *context, const sf_row *row, int worker, json_t **record, double *seconds,
                         safer_error *error);

    /* Checks a record of an earlier run before it is kept and counted; may be NULL. */
    safer_status (*recheck)(void *context, const json_t *record, const char *name, size_t line, safer_error *error);

    /* Counts a record, in the order of the data; those of an earlier run too. Never called by
     * two threads at once. */
    safer_status (*add)(void *context, const json_t *record, const char *name, size_t line, safer_error *error);

    /* What to call the stage now; under the same lock as `add`. */
    void (*describe)(void *context, char *stage, size_t size);

    /* On rank 0 of a crew: adds what a helper must know of a row beside its text; may be NULL. */
    safer_status (*attach)(void *context, size_t index, sf_buffer *out, safer_error *error);

    safer_crew *crew; /* NULL: this process is alone. On a helper `work`, and this one, are called alone: */

    /* Before the first row: whether the configuration of rank 0 is the helper's own, but for the data. The texts are
     * the first of the data, for sf_model_probe; none where the model is not remote. */
    safer_status (*join)(void *context, const json_t *config, const sf_span *texts, size_t count, safer_error *error);
} sf_rows;

/* Does every row that `path` (NULL: no records) does not hold yet. *resumed gets how many it
 * held. See safer_certify for what `resume` means. On a helper: does the rows that rank 0 sends. */
safer_status sf_rows_run(const sf_rows *rows, const char *path, int resume, size_t *resumed, safer_error *error);

/* Reads a row of the data; it lives until the reader reads the next. */
safer_status sf_rows_read(const sf_rows *rows, safer_reader **reader, size_t index, sf_row *out, safer_error *error);

#endif
