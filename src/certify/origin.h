/* What a run was made with: the parts "model", "lexicon", "data" and "labels" of a configuration, of
 * certificates and of attacks alike. docs/certify.md lists their members. */
#ifndef SF_CERTIFY_ORIGIN_H
#define SF_CERTIFY_ORIGIN_H

#include "model/model.h"
#include "run/members.h"

/* The format of configurations and records that is written; 1 is read too. */
enum { SF_FORMAT = 2 };

/* Adds the parts, as `format` has them; 1 only to be compared. NULL model: without what is the model's; NULL data:
 * without the data. *config becomes NULL without memory. */
void sf_origin_add(json_t **config, int format, const safer_model *model, const safer_lexicon *lexicon,
                   const safer_data *data);

typedef struct sf_origin {
    int remote; /* the model is remote: some answers may be no label */
    int random; /* it answers the same text differently */
    int whole;  /* it reads every text to its end: all slots are visible */
    int folded; /* its lexicon has a fold */
    size_t texts, classes;
    const json_t *labels; /* borrowed: array of names */
} sf_origin;

/* Takes the parts from a configuration, in the format that `members` has. */
sf_origin sf_origin_read(sf_members *members);

/* SAFER_INPUT where a run was made with another model, lexicon or data: the message says which, and by what that
 * is seen. NULL model: it is not looked at. */
safer_status sf_origin_check(const json_t *config, const safer_model *model, const safer_lexicon *lexicon,
                             const safer_data *data, const char *path, safer_error *error);

/* Whether a helper of a crew has the configuration of rank 0, but for what follows from the data, which only that
 * knows. `own`, made without data, may be NULL: memory was out. */
safer_status sf_origin_follow(json_t **own, const json_t *theirs, safer_error *error);

/* The SHA-256 that a configuration has for the part, in format 1 its hash; "" where it has none. */
const char *sf_origin_digest(const json_t *config, const char *part);

/* Whether both configurations have the same "model" or "data". */
int sf_origin_is_same(const json_t *one, const json_t *other, const char *part);

/* Whether a configuration is about this lexicon, or these data. */
int sf_origin_has_lexicon(const json_t *config, const safer_lexicon *lexicon);
int sf_origin_has_data(const json_t *config, const safer_data *data);

#endif
