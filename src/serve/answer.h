/* What comes out of a text, as JSON. */
#ifndef SF_SERVE_ANSWER_H
#define SF_SERVE_ANSWER_H

#include "certify/certificate.h"
#include "serve/job.h"

/* Certifies text `index` of the job, or (/v1/words) looks its words up, and keeps the answer
 * in the job, or streams it. A failure ends the job. Returns whether *out is a certificate. */
int sf_answer_text(safer_certificate *out, sf_job *job, size_t index, safer_workspace *workspace);

/* Ends a job whose texts are all answered. */
void sf_answer_whole(sf_job *job);

/* The words of a text (POST /v1/words), with q where draws delete tokens as these options say, or with the groups that
 * they ask for; NULL on failure. */
json_t *sf_words_json(const char *text, size_t length, const safer_lexicon *lexicon,
                      const safer_certify_options *options, safer_error *error);

#endif
