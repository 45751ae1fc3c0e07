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

/* The file of authorities that vouch for servers: the one that the environment names (CURL_CA_BUNDLE, SSL_CERT_FILE);
 * NULL, which leaves it to libcurl, where libcurl has a file or folder of its own (`preset`, NULL for none); else the
 * first of `usual`, a list that ends with NULL, that can be read. NULL as well if there is none: then no server is
 * trusted. */
const char *sf_http_authorities(const char *const preset[2], const char *const *usual);

/* Where systems keep that file: a libcurl that was built on another one looks elsewhere. */
extern const char *const sf_http_usual_authorities[];

#endif
