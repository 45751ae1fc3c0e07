/* Records, and a remote model that is found to change its answers while they are made.
 *
 * Some of them may say "exact", which holds only of a function of the text, and a later run may happen not to see
 * the change. So such records are never continued: they are renamed to PATH.changed, and a run that would continue
 * them is refused while that file is there and PATH is not. */
#ifndef SF_RUN_GUARD_H
#define SF_RUN_GUARD_H

#include "model/model.h"

typedef struct sf_guard {
    const char *path; /* of the records; borrowed, as is the model */
    const safer_model *model;
    int on; /* the records are this run's, and the model is not known to be random */
} sf_guard;

/* Before the model is asked anything. NULL path: no records. With `resume`, a model that was random in the records
 * is random here: it is not asked about again, because it might pass this time. */
safer_status sf_guard_begin(sf_guard *out, const char *path, int resume, const safer_model *model, safer_error *error);

/* After a run that failed. Where the model was found to change its answers, renames the records, which replaces
 * older ones of that name, and adds to the message that this was done. A file that another run writes stays. */
void sf_guard_end(const sf_guard *guard, safer_error *error);

#endif
