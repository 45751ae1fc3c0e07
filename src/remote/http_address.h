/* The address of a service as messages may show it: what could be secret in it, or in an
 * answer that echoes it, never gets out. */
#ifndef SF_REMOTE_HTTP_ADDRESS_H
#define SF_REMOTE_HTTP_ADDRESS_H

#include "base/error.h"

#include <stddef.h>

typedef struct sf_http_address {
    char *shown;    /* scheme, host, port and path; "?..." stands for a query */
    int has_user;   /* it names a user: libcurl signs in with it */
    char **secrets; /* the longest first: none may break another one apart */
    size_t count, capacity;
} sf_http_address; /* zero-initialise */

/* SAFER_INVALID, without a word of the address, when it is no http or https one. What was
 * read so far must be freed on failure too. */
safer_status sf_http_address_read(sf_http_address *out, const char *address, safer_error *error);

/* From now on this is a secret too. */
safer_status sf_http_address_hide(sf_http_address *address, const char *secret, safer_error *error);

/* Puts stars in the place of every secret; the text gets no longer. */
void sf_http_address_scrub(const sf_http_address *address, char *text);

void sf_http_address_free(sf_http_address *address);

#endif
