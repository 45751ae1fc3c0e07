/* What every part of the interface uses: the version, errors, options, progress. Part of safer.h, which says what
 * holds throughout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_BASE_H
#define SAFER_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SAFER_API __attribute__((visibility("default")))
#else
#define SAFER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- version */

#define SAFER_VERSION_MAJOR 0
#define SAFER_VERSION_MINOR 2
#define SAFER_VERSION_PATCH 0
#define SAFER_VERSION "0.2.0"
#define SAFER_VERSION_NUMBER (SAFER_VERSION_MAJOR * 10000 + SAFER_VERSION_MINOR * 100 + SAFER_VERSION_PATCH)

/* The version of the library that is running: "0.2.0", and 200. */
SAFER_API const char *safer_version(void);
SAFER_API int safer_version_number(void);

/* ------------------------------------------------------------------ errors */

#define SAFER_STATUS_MAP(X) \
    X(OK, "ok") \
    X(INVALID, "invalid parameter") /* the caller asked for something impossible */ \
    X(INPUT, "bad input")           /* a file or text does not hold what it should */ \
    X(SYSTEM, "system error")       /* open, read, write, map or thread failed */ \
    X(MEMORY, "out of memory") \
    X(CANCELLED, "cancelled")      /* the progress callback asked to stop */ \
    X(CALLBACK, "callback failed") /* a function of the caller reported failure */

typedef enum safer_status {
#define X(name, text) SAFER_##name,
    SAFER_STATUS_MAP(X)
#undef X
} safer_status;

/* What went wrong, where (file, line or row) and, if it helps, what to do. A member of a struct of options stands
 * between backquotes, so that a program can say there what its users call it: "`max_texts`: 0 (1 to `queue`)". Where
 * several structs have such a member, the name of one goes before: `remote.batch`. */
typedef struct safer_error {
    safer_status status;
    char message[1000]; /* one line, no trailing newline, always terminated */
} safer_error;

/* Whether the library that is running can serve a program compiled with a header of this number
 * (pass SAFER_VERSION_NUMBER): the same major version, before 1.0 the same minor one too, and not
 * older. Else SAFER_INVALID. */
SAFER_API safer_status safer_version_check(int number, safer_error *error);

/* Every enum has names, as the program, records and Python spell them. TYPE_name gives that of a
 * value, NULL beyond the last, so that counting up from 0 lists all; TYPE_parse reads one, and
 * refuses others with a message that lists all (SAFER_INVALID). */
#define SAFER_NAMED(type) \
    SAFER_API const char *type##_name(type value); \
    SAFER_API safer_status type##_parse(type *out, const char *name, safer_error *error)

SAFER_NAMED(safer_status); /* "ok", "bad input", ... */

/* Every struct of options begins with its size, by which the library knows which members the caller
 * has: later versions add members at the end of the outermost struct, never within a nested one, and
 * those that a caller lacks keep their defaults.
 * TYPE_default gives all defaults and sets the size; it calls TYPE_init, which is what a caller
 * from another language needs (size: that of its struct). Options that were not begun with
 * either are refused (SAFER_INVALID). */
#define SAFER_OPTIONS(type) \
    SAFER_API void type##_init(type *options, size_t size); \
    static inline type type##_default(void) \
    { \
        type options; \
        type##_init(&options, sizeof options); \
        return options; \
    } \
    struct type /* declared again, to end with the caller's semicolon */

/* Stands for what suits the case, where a member says so. */
#define SAFER_DEFAULT (-1)

/* Called from time to time, always from the thread that called the library.
 * `total` is 0 when it is not known. Return nonzero to cancel: the operation then
 * cleans up and returns SAFER_CANCELLED. */
typedef struct safer_progress {
    int (*report)(void *context, const char *stage, uint64_t done, uint64_t total);
    void *context;
} safer_progress;

/* How often draws delete a token (word, number, mark): with a chance, above 0, below 1, rounded to a fraction of 2^32;
 * or by the length of the text, so that `keep` tokens of 256 stay on average, and of others by the square root; zeros:
 * nothing is deleted. docs/edits.md. Or there are no draws: every token is in one of so many `groups`, and the text of
 * each group is asked about: docs/groups.md */
#define SAFER_KEEP 1000000
#define SAFER_GROUPS 10000
typedef struct safer_deletion {
    double chance;
    size_t keep;   /* 1 to SAFER_KEEP */
    size_t groups; /* 1 to SAFER_GROUPS */
} safer_deletion;

/* "0.9" or "keep:25". */
SAFER_API safer_status safer_deletion_parse(safer_deletion *out, const char *text, safer_error *error);

#ifdef __cplusplus
}
#endif
#endif
