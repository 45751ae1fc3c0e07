/* The address of a service as messages may show it. */
#include "remote/http_address.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "text/unicode.h"

#include <curl/curl.h>
#include <string.h>

enum {
    SHOWN = 300, /* bytes of an address in a message, at most */
    WORTH_HIDING =
        8 /* shorter values of a query are versions and switches; stars for every "1" would spoil the message */
};

safer_status sf_http_address_hide(sf_http_address *address, const char *secret, safer_error *error)
{
    size_t at = address->count, length = strlen(secret);
    if (!length) return SAFER_OK;
    char *copy = sf_strdup(secret);
    if (!copy || sf_grow(&address->secrets, &address->capacity, at + 1, sizeof *address->secrets)) {
        free(copy);
        return sf_fail_memory(error);
    }
    for (; at > 0 && strlen(address->secrets[at - 1]) < length; at--) address->secrets[at] = address->secrets[at - 1];
    address->secrets[at] = copy;
    address->count++;
    return SAFER_OK;
}

void sf_http_address_scrub(const sf_http_address *address, char *text)
{
    for (size_t i = 0; i < address->count; i++) {
        size_t length = strlen(address->secrets[i]), stars = length < 3 ? length : 3;
        for (char *at = text; (at = strstr(at, address->secrets[i])); at += stars) {
            memset(at, '*', stars);
            memmove(at + stars, at + length, strlen(at + length) + 1);
        }
    }
}

void sf_http_address_free(sf_http_address *address)
{
    for (size_t i = 0; i < address->count; i++) free(address->secrets[i]);
    free(address->secrets);
    free(address->shown);
    *address = (sf_http_address){0};
}

/* A part as it stands in the address, and as it reads with its %xx decoded. */
static safer_status hide_part(sf_http_address *out, CURLU *url, CURLUPart part, safer_error *error)
{
    safer_status status = SAFER_OK;
    const unsigned forms[] = {0, CURLU_URLDECODE};
    for (size_t i = 0; status == SAFER_OK && i < 2; i++) {
        char *text = NULL;
        if (curl_url_get(url, part, &text, forms[i]) == CURLUE_OK) status = sf_http_address_hide(out, text, error);
        curl_free(text);
    }
    return status;
}

/* Keys often travel as "?key=...": the query as a whole, and every value in it. */
static safer_status hide_query(sf_http_address *out, char *query, safer_error *error)
{
    safer_status status = strlen(query) < WORTH_HIDING ? SAFER_OK : sf_http_address_hide(out, query, error);
    for (char *next, *pair = query; pair && status == SAFER_OK; pair = next) {
        if ((next = strchr(pair, '&'))) *next++ = '\0';
        char *equals = strchr(pair, '='), *value = equals ? equals + 1 : pair;
        if (strlen(value) < WORTH_HIDING) continue;
        status = sf_http_address_hide(out, value, error);
        char *plain = curl_easy_unescape(NULL, value, 0, NULL);
        if (plain && status == SAFER_OK) status = sf_http_address_hide(out, plain, error);
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

safer_status sf_http_address_read(sf_http_address *out, const char *address, safer_error *error)
{
    safer_status status;
    char *query = NULL, *user = NULL, *scheme = NULL;
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
    out->has_user = curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK;
    SF_TRY(hide_part(out, url, CURLUPART_PASSWORD, error));
    if (curl_url_get(url, CURLUPART_QUERY, &query, 0) == CURLUE_OK) SF_TRY(hide_query(out, query, error));
    SF_TRY(show(out, url, query != NULL, error));
done:
    curl_free(scheme);
    curl_free(user);
    curl_free(query);
    curl_url_cleanup(url);
    return status;
}
