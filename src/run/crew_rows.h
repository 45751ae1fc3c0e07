/* Rows of a run that are shared with a crew: rank 0 leads, the others follow.
 *
 *     WELCOME   the number of the run; the seal of the configuration; how many texts follow to try a remote model
 *               with; these; the configuration as JSON
 *     READY     the number of the run, how many threads the helper has
 *     TASK      number, label (0: none, else its class + 1), id and text of a row, and what else is to be known of it
 *     DONE      the number of the run, that of a row, its record as a sealed line
 *     FINISH    1 when all records are there, else 0
 *
 * A crew may do one run after the other. Where rank 0 ended one before a helper knew of it, what that helper says of it
 * comes later, and is passed over by its number.
 *
 * A helper has some rows beside those that it works on, so that it need not wait for the next: as many as it does in
 * a twentieth of a second, and fewer towards the end, so that none waits behind a long text while another rank is
 * idle. */
#ifndef SF_RUN_CREW_ROWS_H
#define SF_RUN_CREW_ROWS_H

#include "run/crew.h"
#include "run/rows.h"

#define SF_CREW_START_SECONDS 10.0 /* for the first worker of a rank to begin */

/* Whose rows they are; the post calls these. */
typedef struct sf_lead_pass {
    void *context;
    size_t (*left)(void *context); /* rows that nobody has begun */
    /* 0: there is none at the moment. `more` is room for what is said beside the text. */
    int (*claim)(void *context, int rank, sf_row *row, sf_buffer *more);
    /* Takes the record of a row; nonzero when that rank has no such row. */
    int (*take)(void *context, int rank, size_t index, sf_span line);
} sf_lead_pass;

typedef struct sf_lead sf_lead;

/* Welcomes the helpers; they get rows from now on, when all are ready. Both are borrowed. */
safer_status sf_lead_new(sf_lead **out, const sf_rows *rows, uint64_t seal, const sf_lead_pass *pass,
                         safer_error *error);
int sf_lead_is_ready(sf_lead *lead); /* whether all helpers are */

/* Adds to a stage what each host does in a second; `own` is how many rows this rank itself did so far. One thread. */
void sf_lead_describe(sf_lead *lead, size_t own, char *stage, size_t size);

/* Tells the helpers that the run is over, and whether all its records are there. NULL is fine. */
void sf_lead_free(sf_lead *lead, int whole);

/* What a helper does in place of sf_rows_run. */
safer_status sf_follow(const sf_rows *rows, safer_error *error);

#endif
