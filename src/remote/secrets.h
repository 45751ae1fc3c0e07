/* What must not get into messages: passwords and tokens, in every form in which a service, a proxy or a library may
 * repeat them. */
#ifndef SF_REMOTE_SECRETS_H
#define SF_REMOTE_SECRETS_H

#include "base/error.h"

#include <stddef.h>

typedef struct sf_secrets {
    char **forms; /* the longest first: none may break another one apart */
    size_t count, capacity;
} sf_secrets; /* zero-initialise */

/* From now on this is a secret: as it is, with %xx in either case, in Base64 (both alphabets), and as it stands in
 * JSON. Nothing for "". */
safer_status sf_secrets_add(sf_secrets *secrets, const char *secret, safer_error *error);

/* Puts stars in the place of every secret; the text gets no longer. */
void sf_secrets_scrub(const sf_secrets *secrets, char *text);

void sf_secrets_free(sf_secrets *secrets);

#endif
