/* Asking the model again about a run, by all processes of a crew. */
#ifndef SF_CERTIFY_VERIFY_CREW_H
#define SF_CERTIFY_VERIFY_CREW_H

#include "certify/read.h"

/* What rank 0 has. */
typedef struct sf_verify_crew {
    const sf_run *run;
    const safer_data *data;
    const int *classes; /* of each of the data's labels, the run's class */
} sf_verify_crew;

/* Makes every record again. SAFER_INPUT names the first that is another one. `of` is NULL on a helper. */
safer_status sf_verify_again(safer_crew *crew, const sf_verify_crew *of, const safer_model *model,
                             const safer_lexicon *lexicon, int threads, const safer_progress *progress,
                             safer_error *error);

#endif
