/* The address of a service as messages may show it. */
#define _GNU_SOURCE
#include "remote/http_address.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "text/unicode.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    SHOWN = 300, /* bytes of an address in a message, at most */
    WORTH_HIDING =
        8 /* shorter values of a query are versions and switches; stars for every "1" would spoil the message */
};

void sf_http_address_free(sf_http_address *address)
{
    sf_secrets_free(&address->secrets);
    free(address->shown);
    free(address->proxy);
    *address = (sf_http_address){0};
}

/* A part as it stands in the address, and as it reads with its %xx decoded. */
static safer_status hide_part(sf_http_address *out, CURLU *url, CURLUPart part, safer_error *error)
{
    safer_status status = SAFER_OK;
    const unsigned forms[] = {0, CURLU_URLDECODE};
    for (size_t i = 0; status == SAFER_OK && i < 2; i++) {
        char *text = NULL;
        if (curl_url_get(url, part, &text, forms[i]) == CURLUE_OK) status = sf_secrets_add(&out->secrets, text, error);
        curl_free(text);
    }
    return status;
}

/* The password; the name too where it may be one: alone, or long enough for a key; and both together, as they
 * travel. */
static safer_status hide_user(sf_http_address *out, CURLU *url, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer both = {0};
    char *user = NULL, *password = NULL;
    out->has_user = curl_url_get(url, CURLUPART_USER, &user, CURLU_URLDECODE) == CURLUE_OK;
    int alone = curl_url_get(url, CURLUPART_PASSWORD, &password, CURLU_URLDECODE) != CURLUE_OK;
    if (!out->has_user) goto done;
    SF_TRY(hide_part(out, url, CURLUPART_PASSWORD, error));
    if (alone || strlen(user) >= WORTH_HIDING) SF_TRY(hide_part(out, url, CURLUPART_USER, error));
    if (sf_buffer_format(&both, "%s:%s", user, alone ? "" : password)) {
        status = sf_fail_memory(error);
        goto done;
    }
    status = sf_secrets_add(&out->secrets, both.bytes, error);
done:
    sf_buffer_free(&both);
    curl_free(user);
    curl_free(password);
    return status;
}

/* Keys often travel as "?key=...": the query as a whole, and every value in it. */
static safer_status hide_query(sf_http_address *out, char *query, safer_error *error)
{
    safer_status status = strlen(query) < WORTH_HIDING ? SAFER_OK : sf_secrets_add(&out->secrets, query, error);
    for (char *next, *pair = query; pair && status == SAFER_OK; pair = next) {
        if ((next = strchr(pair, '&'))) *next++ = '\0';
        char *equals = strchr(pair, '='), *value = equals ? equals + 1 : pair;
        if (strlen(value) < WORTH_HIDING) continue;
        status = sf_secrets_add(&out->secrets, value, error);
        char *plain = curl_easy_unescape(NULL, value, 0, NULL);
        if (plain && status == SAFER_OK) status = sf_secrets_add(&out->secrets, plain, error);
        curl_free(plain);
    }
    return status;
}

static safer_status show(sf_http_address *out, CURLU *url, int has_query, safer_error *error)
{
    sf_buffer shown = {0};
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
    int failed = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) || curl_url_get(url, CURLUPART_HOST, &host, 0) ||
                 curl_url_get(url, CURLUPART_PATH, &path, 0);
    (void)curl_url_get(url, CURLUPART_PORT, &port, 0);
    failed = failed || sf_buffer_format(&shown, "%s://%s%s%s%s", scheme, host, port ? ":" : "", port ? port : "", path);
    if (!failed && shown.length > SHOWN) {
        shown.length = SHOWN;
        shown.length = sf_utf8_valid(shown.bytes, SHOWN);
        shown.bytes[shown.length] = '\0';
        failed = sf_buffer_add_string(&shown, "...");
    }
    failed = failed || (has_query && sf_buffer_add_string(&shown, "?..."));
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    if (failed) {
        sf_buffer_free(&shown);
        return sf_fail_memory(error);
    }
    out->shown = shown.bytes;
    return SAFER_OK;
}

/* ------------------------------------------------------------------- the way */

static int is_loopback(const char *host)
{
    unsigned char bytes[4];
    const size_t length = strlen(host), suffix = strlen(".localhost");
    if (strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0) return 1;
    if (length > suffix && strcasecmp(host + length - suffix, ".localhost") == 0) return 1;
    return inet_pton(AF_INET, host, bytes) == 1 && bytes[0] == 127;
}

/* Whether one of the names in no_proxy is the host or a domain of it. (libcurl also knows networks there; a message
 * then names a proxy that was not asked.) */
static int is_excepted(const char *host)
{
    const char *list = getenv("no_proxy") ? getenv("no_proxy") : getenv("NO_PROXY");
    const size_t length = strlen(host);
    for (const char *next, *name = list; name && *name; name = next) {
        name += strspn(name, ", .");
        const size_t size = strcspn(name, ", ");
        next = name + size;
        if (size == 1 && *name == '*') return 1;
        if (size && size <= length && strncasecmp(host + length - size, name, size) == 0 &&
            (size == length || host[length - size - 1] == '.'))
            return 1;
    }
    return 0;
}

/* The proxy that libcurl takes from the environment, as messages may show it. */
static safer_status find_proxy(sf_http_address *out, const char *host, safer_error *error)
{
    safer_status status = SAFER_OK;
    static const char *const variables[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    const char *value = NULL, *variable = NULL;
    for (size_t i = out->secure ? 1 : 0; i < sizeof variables / sizeof variables[0] && !(value && *value); i++) {
        if (!out->secure && (i == 1 || i == 2)) continue;
        variable = variables[i];
        value = getenv(variable);
    }
    if (!value || !*value || is_excepted(host)) return SAFER_OK;
    sf_buffer shown = {0};
    char *name = NULL, *port = NULL;
    CURLU *url = curl_url();
    if (!url) return sf_fail_memory(error);
    int known = curl_url_set(url, CURLUPART_URL, value, CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
                curl_url_get(url, CURLUPART_HOST, &name, 0) == CURLUE_OK;
    (void)curl_url_get(url, CURLUPART_PORT, &port, 0);
    const int has_user = out->has_user; /* the proxy's is another */
    if (known) SF_TRY(hide_user(out, url, error));
    out->has_user = has_user;
    if (sf_buffer_format(&shown, "%s%s%s from %s", known ? name : "an address", port ? ":" : "", port ? port : "",
                         variable))
        status = sf_fail_memory(error);
    out->proxy = shown.bytes;
done:
    curl_free(name);
    curl_free(port);
    curl_url_cleanup(url);
    return status;
}

safer_status sf_http_address_read(sf_http_address *out, const char *address, safer_error *error)
{
    safer_status status;
    char *query = NULL, *host = NULL, *scheme = NULL;
    CURLU *url = curl_url();
    if (!url) return sf_fail_memory(error);
    CURLUcode code = curl_url_set(url, CURLUPART_URL, address, 0);
    if (code == CURLUE_OUT_OF_MEMORY) {
        status = sf_fail_memory(error);
        goto done;
    }
    int is_http = code == CURLUE_OK && curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                  (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    if (!is_http) { /* not shown: where its secrets are is not known */
        status = sf_fail(error, SAFER_INVALID, "the model's address is no http:// or https:// address: %s",
                         code == CURLUE_OK ? "another scheme" : curl_url_strerror(code));
        goto done;
    }
    out->secure = strcmp(scheme, "https") == 0;
    SF_TRY(hide_user(out, url, error));
    if (curl_url_get(url, CURLUPART_QUERY, &query, 0) == CURLUE_OK) SF_TRY(hide_query(out, query, error));
    SF_TRY(show(out, url, query != NULL, error));
    if (curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK) {
        status = sf_fail_memory(error);
        goto done;
    }
    out->loopback = is_loopback(host);
    if (!out->loopback) status = find_proxy(out, host, error);
done:
    curl_free(scheme);
    curl_free(host);
    curl_free(query);
    curl_url_cleanup(url);
    return status;
}

const char *const sf_http_usual_authorities[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, RHEL */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* their newer place */
    "/etc/ssl/ca-bundle.pem",                            /* openSUSE */
    "/etc/ssl/cert.pem",                                 /* the BSDs, macOS */
    NULL,
};

const char *sf_http_authorities(const char *const preset[2], const char *const *usual)
{
    const char *file = getenv("CURL_CA_BUNDLE");
    if (!file || !*file) file = getenv("SSL_CERT_FILE");
    if (file && *file) return file;
    for (int i = 0; i < 2; i++)
        if (preset[i] && access(preset[i], R_OK) == 0) return NULL;
    while (*usual && access(*usual, R_OK) != 0) usual++;
    return *usual;
}
