/* What must not get into messages. */
#define _GNU_SOURCE
#include "remote/secrets.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/quote.h"

#include <string.h>

static int is_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

static int add_percent(sf_buffer *out, const char *text, const char *format)
{
    for (const char *c = text; *c; c++)
        if (is_plain((unsigned char)*c) ? sf_buffer_add_byte(out, *c)
                                        : sf_buffer_format(out, format, (unsigned char)*c))
            return -1;
    return 0;
}

/* Without the '=' at the end, which says nothing. `last` are the two characters in which alphabets differ. */
static int add_base64(sf_buffer *out, const char *text, const char *last)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const size_t bits = 8 * strlen(text);
    for (size_t at = 0; at < bits; at += 6) {
        const unsigned char *byte = (const unsigned char *)text + at / 8; /* the last one is followed by a NUL */
        const unsigned pair = (unsigned)byte[0] << 8 | byte[1], digit = pair >> (10 - at % 8) & 63;
        if (sf_buffer_add_byte(out, digit < 62 ? digits[digit] : last[digit - 62])) return -1;
    }
    return 0;
}

static int add_form(sf_secrets *secrets, const char *form)
{
    size_t at = secrets->count, length = strlen(form);
    for (size_t i = 0; i < at; i++)
        if (strcmp(secrets->forms[i], form) == 0) return 0;
    char *copy = sf_strdup(form);
    if (!copy || sf_grow(&secrets->forms, &secrets->capacity, at + 1, sizeof *secrets->forms)) {
        free(copy);
        return -1;
    }
    for (; at > 0 && strlen(secrets->forms[at - 1]) < length; at--) secrets->forms[at] = secrets->forms[at - 1];
    secrets->forms[at] = copy;
    secrets->count++;
    return 0;
}

safer_status sf_secrets_add(sf_secrets *secrets, const char *secret, safer_error *error)
{
    sf_buffer forms[5] = {0};
    int failed = 0;
    if (!*secret) return SAFER_OK;
    failed |= add_percent(&forms[0], secret, "%%%02X");
    failed |= add_percent(&forms[1], secret, "%%%02x");
    failed |= add_base64(&forms[2], secret, "+/");
    failed |= add_base64(&forms[3], secret, "-_");
    failed |= sf_quote(&forms[4], secret, strlen(secret));
    if (!failed) failed = add_form(secrets, secret);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (!failed) failed = add_form(secrets, forms[i].bytes);
        sf_buffer_free(&forms[i]);
    }
    return failed ? sf_fail_memory(error) : SAFER_OK;
}

void sf_secrets_scrub(const sf_secrets *secrets, char *text)
{
    for (size_t i = 0; i < secrets->count; i++) {
        size_t length = strlen(secrets->forms[i]), stars = length < 3 ? length : 3;
        for (char *at = text; (at = strstr(at, secrets->forms[i])); at += stars) {
            memset(at, '*', stars);
            memmove(at + stars, at + length, strlen(at + length) + 1);
        }
    }
}

void sf_secrets_free(sf_secrets *secrets)
{
    for (size_t i = 0; i < secrets->count; i++) free(secrets->forms[i]);
    free(secrets->forms);
    *secrets = (sf_secrets){0};
}
