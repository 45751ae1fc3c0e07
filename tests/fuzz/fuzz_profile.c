/* What a user says about a service: the first byte chooses the profile, then come the address, the template of a
 * request, the pointer to the answer and the input's name, one line each. A body that is made is JSON. */
#define _GNU_SOURCE
#include "fuzz.h"

#include "remote/http_address.h"
#include "remote/http_profile.h"

static char *names[] = {"neg", "pos"};
static const sf_labels labels = {names, 2, 0};

static void use(const sf_http_profile *profile)
{
    const sf_span texts[] = {{"a \"good\"\nfilm", 13}, {"", 0}};
    sf_buffer body = {0};
    safer_error error = {0};
    json_error_t where;
    require(sf_http_body(&body, profile, texts, profile->single ? 1 : 2, &error) == SAFER_OK);
    json_t *json = json_loadb(body.bytes, body.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &where);
    require(json);
    if (profile->answer) (void)sf_json_pointer_get(json, profile->answer);
    json_decref(json);
    sf_buffer_free(&body);
}

static void check_address(const char *text)
{
    sf_http_address address = {0};
    safer_error error = {0};
    char message[300];
    if (sf_http_address_read(&address, text, &error) == SAFER_OK) {
        require(sf_secrets_add(&address.secrets, "secret", NULL) == SAFER_OK);
        snprintf(message, sizeof message, "%.200s secret", text);
        const size_t length = strlen(message);
        sf_secrets_scrub(&address.secrets, message);
        require(strlen(message) <= length && !strstr(message, "secret"));
        fuzz_read(address.shown, strlen(address.shown) + 1);
    } else {
        require(error.status == SAFER_INVALID && error.message[0]);
    }
    sf_http_address_free(&address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *lines[4] = {0};
    const char *p = (const char *)data + 1, *end = (const char *)data + size;
    if (!size) return 0;
    for (int i = 0; i < 4 && p < end; i++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline ? newline : end;
        lines[i] = strndup(p, (size_t)(stop - p));
        require(lines[i]);
        p = newline ? newline + 1 : end;
    }
    if (lines[0]) check_address(lines[0]);
    safer_remote_options options = {.profile = (safer_profile)(data[0] & 3)};
    options.request = lines[1] && lines[1][0] ? lines[1] : NULL;
    options.answer = lines[2] && lines[2][0] ? lines[2] : NULL;
    options.name = lines[3] && lines[3][0] ? lines[3] : NULL;
    sf_http_profile profile = {0};
    safer_error error = {0};
    if (sf_http_profile_open(&profile, &labels, &options, &error) == SAFER_OK)
        use(&profile);
    else
        require(error.status == SAFER_INVALID && error.message[0]);
    sf_http_profile_free(&profile);
    for (int i = 0; i < 4; i++) free(lines[i]);
    return 0;
}
