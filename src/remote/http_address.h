/* The address of a service as messages may show it: what could be secret in it, or in an
 * answer that echoes it, never gets out. */
#ifndef SF_REMOTE_HTTP_ADDRESS_H
#define SF_REMOTE_HTTP_ADDRESS_H

#include "remote/secrets.h"

typedef struct sf_http_address {
    char *shown;        /* scheme, host, port and path; "?..." stands for a query */
    char *proxy;        /* "HOST:PORT from VARIABLE", or NULL */
    int has_user;       /* it names a user: libcurl signs in with it */
    int secure;         /* https */
    int loopback;       /* this machine: no proxy is asked, and nothing leaves it */
    sf_secrets secrets; /* of the address and of the proxy's */
} sf_http_address;      /* zero-initialise */

/* SAFER_INVALID, without a word of the address, when it is no http or https one. What was
 * read so far must be freed on failure too. */
safer_status sf_http_address_read(sf_http_address *out, const char *address, safer_error *error);

void sf_http_address_free(sf_http_address *address);

#endif
