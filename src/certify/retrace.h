/* A record, compared with what it was made from: with its text, and with the model's answers.
 *
 * sf_record_recheck says whether a record agrees with itself. Here is what needs more: the data and the lexicon,
 * from which words, slots, q and the weight of all draws follow; and a certificate that was made again. */
#ifndef SF_CERTIFY_RETRACE_H
#define SF_CERTIFY_RETRACE_H

#include "certify/record.h"
#include "draw/sampler.h"

/* One thread's memory for texts. */
typedef struct sf_retrace {
    const safer_lexicon *lexicon;
    sf_slots slots;
    sf_sampler sampler;
    double *overlaps; /* of the visible slots, rising */
    size_t overlap_capacity;
} sf_retrace; /* begin with the lexicon and zeros */

void sf_retrace_free(sf_retrace *retrace);

/* Whether the record is about this row of the data. How many of the slots are visible is believed: only the
 * model knows. `label` is the row's class, or -1. SAFER_INPUT when it is not, with file, line and what differs. */
safer_status sf_retrace_text(sf_retrace *retrace, const sf_record *record, const sf_config *config, safer_row row,
                             int label, const char *path, size_t line, safer_error *error);

/* The first member that is not as in the certificate in the workspace, or NULL. All that is counted must be
 * the same; bounds and q were compared with these counts, and with the text, before. Margins may be lower by
 * 1e-9, never higher. */
const char *sf_retrace_answers(const sf_record *record, const sf_config *config, const safer_certificate *certificate,
                               const safer_workspace *workspace);

#endif
