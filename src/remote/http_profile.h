/* What a service is asked and how its answer is read. Nothing here knows of connections.
 *
 *   json    The body is a template. Answers are labels or scores, wherever a pointer says.
 *   kserve  Open Inference Protocol v2: one BYTES tensor of texts, one tensor of answers.
 *   tei     text-embeddings-inference, /predict: lists of labels with their scores.
 *   openai  Chat completions: one question per text, and a label somewhere in the reply. */
#ifndef SF_REMOTE_HTTP_PROFILE_H
#define SF_REMOTE_HTTP_PROFILE_H

#include "base/buffer.h"
#include "remote/remote.h"

/* What takes the place of a {{name}} in a template. */
typedef enum sf_hole {
    SF_HOLE_NONE,   /* the template ends */
    SF_HOLE_TEXT,   /* a JSON string */
    SF_HOLE_INSIDE, /* {{text}} within a string of the template: the same without its quotes */
    SF_HOLE_TEXTS,  /* a list of strings */
    SF_HOLE_LISTS,  /* a list of lists of one string */
    SF_HOLE_COUNT   /* the number of texts */
} sf_hole;

typedef struct sf_piece {
    size_t begin, end; /* bytes of the template, as they are */
    sf_hole hole;      /* and what follows them */
} sf_piece;

typedef struct sf_http_profile {
    safer_profile kind;
    const sf_labels *labels;
    int single;         /* a request carries one text */
    sf_buffer template; /* every profile's body is one */
    sf_piece *pieces;
    size_t count, capacity;
    char *answer;  /* json: the JSON pointer. kserve: the output's name. NULL: found */
} sf_http_profile; /* zero-initialise */

/* SAFER_INVALID when options do not fit the profile or each other. What was made so far must
 * be freed on failure too. */
safer_status sf_http_profile_open(sf_http_profile *out, const sf_labels *labels, const safer_remote_options *options,
                                  safer_error *error);
void sf_http_profile_free(sf_http_profile *profile);

/* Appends the body of a request for these texts (one text when `single`), which are UTF-8. */
safer_status sf_http_body(sf_buffer *out, const sf_http_profile *profile, const sf_span *texts, size_t count,
                          safer_error *error);

/* Reads what came back for `count` texts; `name` begins every message. *lost: it is not JSON at
 * all, so something went wrong on the way. What is JSON and yet no answer is an error of the
 * service's that asking again does not mend. */
safer_status sf_http_answer(int *labels, float *scores, int *lost, const sf_http_profile *profile, const char *bytes,
                            size_t length, size_t count, const char *name, safer_error *error);

/* Whether a failure (its HTTP status and its body) is the model's way of declining a text. */
int sf_http_declined(const sf_http_profile *profile, long code, const char *bytes, size_t length);

/* The class whose name stands in a reply as a word of its own, in whatever case, when there is
 * exactly one such class; else SF_NO_LABEL. A name within a longer name does not count. */
int sf_http_label_in(const sf_labels *labels, const char *text, size_t length);

/* Whether a pointer is one (RFC 6901), and what it points to, or NULL. */
int sf_json_pointer_valid(const char *pointer);
const json_t *sf_json_pointer_get(const json_t *root, const char *pointer);

#endif
