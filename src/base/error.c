/* Status and message of a failure. */
#define _GNU_SOURCE
#include "base/error.h"

#include "base/buffer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *safer_version(void) { return SAFER_VERSION; }

int safer_version_number(void) { return SAFER_VERSION_NUMBER; }

safer_status safer_version_check(int number, safer_error *error)
{
    const int same = number / 10000 > 0 ? 10000 : 100; /* before 1.0 every minor version stands alone */
    if (number / same == SAFER_VERSION_NUMBER / same && number <= SAFER_VERSION_NUMBER) return SAFER_OK;
    return sf_fail(error, SAFER_INVALID, "this is libsafer %s, but the program was made for version %d.%d.%d",
                   SAFER_VERSION, number / 10000, number / 100 % 100, number % 100);
}

/* The '@' that ends a user and password at the beginning of an address, or NULL. After a colon comes a port or a
 * password; a password is no number, and may hold what else ends a host. */
static char *users_end(char *at)
{
    const size_t word = strcspn(at, " \"'<>"), host = strcspn(at, "/\\?# \"'<>");
    char *end = memrchr(at, '@', host), *colon = *at == '[' ? NULL : memchr(at, ':', host);
    if (!end && colon && colon + 1 + strspn(colon + 1, "0123456789") < at + host) end = memrchr(at, '@', word);
    return end;
}

/* The length of what begins an address, well written or not: //, :/, http: or https:, and more slashes. 0: none. */
static size_t address_begin(const char *at)
{
    const size_t length = strncmp(at, "//", 2) == 0 || strncmp(at, ":/", 2) == 0 ? 2
                          : strncasecmp(at, "http:", 5) == 0                     ? 5
                          : strncasecmp(at, "https:", 6) == 0                    ? 6
                                                                                 : 0;
    return length ? length + strspn(at + length, "/\\") : 0;
}

/* Names of files and models end up in messages, and one that was meant as an address may hold a password: what stands
 * before the host is not shown. (The program does the same with its arguments.) */
static void hide_users(char *text)
{
    for (char *at = text; *at;) {
        const size_t begin = address_begin(at);
        at += begin ? begin : 1;
        char *end = begin ? users_end(at) : NULL;
        if (!end) continue;
        const size_t length = (size_t)(end - at), stars = length < 3 ? length : 3;
        memset(at, '*', stars);
        memmove(at + stars, end, strlen(end) + 1);
    }
}

safer_status sf_fail(safer_error *error, safer_status status, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        int length = vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
        if (length >= (int)sizeof error->message) { /* cut: not within a character */
            char *end = error->message + sizeof error->message - 1;
            while (end > error->message && (end[-1] & 0xc0) == 0x80) end--;
            if (end > error->message && (end[-1] & 0x80)) end--;
            *end = '\0';
        }
        /* Names and bytes of damaged files end up here: keep it one printable line. */
        for (char *c = error->message; *c; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
        hide_users(error->message);
    }
    return status;
}

enum { SHOWN_NAME = 800 }; /* bytes of a name */

safer_status sf_fail_errno(safer_error *error, const char *action, const char *name)
{
    int code = errno;
    char text[128];
    const char *message = strerror_r(code, text, sizeof text); /* GNU: returns the string */
    return sf_fail(error, SAFER_SYSTEM, "cannot %s %.*s: %s", action, sf_clip(name, strlen(name), SHOWN_NAME), name,
                   message); /* whatever the name, the reason is not cut off */
}

safer_status sf_fail_memory(safer_error *error) { return sf_fail(error, SAFER_MEMORY, "out of memory"); }
