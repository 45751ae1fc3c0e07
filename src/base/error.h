/* Status and message of a failure. */
#ifndef SF_BASE_ERROR_H
#define SF_BASE_ERROR_H

#include "safer.h"

/* Writes the message into `error` (may be NULL) and returns `status`, so that a
 * caller can write `return sf_fail(...)`. */
safer_status sf_fail(safer_error *error, safer_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call on `name`; says strerror(errno). */
safer_status sf_fail_errno(safer_error *error, const char *action, const char *name);

safer_status sf_fail_memory(safer_error *error);

/* Evaluates an expression of type safer_status; on failure leaves through `done:`
 * with the status in the local variable `status`. */
#define SF_TRY(expression) \
    do { \
        status = (expression); \
        if (status != SAFER_OK) goto done; \
    } while (0)

#endif
