/* safer: certified robustness of text classifiers to word substitution.
 *
 * This is the whole public interface of libsafer. It reads in the order in which
 * data flows: errors, data sets, lexicons. Rules that hold throughout:
 *
 *   - A fallible function returns a safer_status; results come back through
 *     pointers, which are written only on SAFER_OK. The last parameter is an
 *     optional safer_error (NULL is fine) that explains a failure in one line.
 *   - An object made by a _load, _open, _build or _import function belongs to the
 *     caller and ends with its _free function, which accepts NULL.
 *   - Strings are UTF-8. Pointers into an object live as long as the object.
 *   - Objects are immutable once made: any number of threads may read one.
 *   - The library never prints, never exits, and never repairs a parameter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_H
#define SAFER_H

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

#define SAFER_VERSION "0.1.0"

/* The version of the library that is running, e.g. "0.1.0". */
SAFER_API const char *safer_version(void);

/* ------------------------------------------------------------------ errors */

#define SAFER_STATUS_MAP(X)                                                   \
    X(OK, "ok")                                                               \
    X(INVALID, "invalid parameter") /* the caller asked for something impossible */ \
    X(INPUT, "bad input")           /* a file or text does not hold what it should */ \
    X(SYSTEM, "system error")       /* open, read, write, map or thread failed */ \
    X(MEMORY, "out of memory")                                                \
    X(CANCELLED, "cancelled")       /* the progress callback asked to stop */

typedef enum safer_status {
#define X(name, text) SAFER_##name,
    SAFER_STATUS_MAP(X)
#undef X
} safer_status;

/* What went wrong, where (file, line or row) and, if it helps, what to do. */
typedef struct safer_error {
    safer_status status;
    char message[1000]; /* one line, no trailing newline, always terminated */
} safer_error;

/* "ok", "bad input", ...; never NULL. */
SAFER_API const char *safer_status_text(safer_status status);

/* Called from time to time, always from the thread that called the library.
 * `total` is 0 when it is not known. Return nonzero to cancel: the operation then
 * cleans up and returns SAFER_CANCELLED. */
typedef struct safer_progress {
    int (*report)(void *context, const char *stage, uint64_t done, uint64_t total);
    void *context;
} safer_progress;

/* -------------------------------------------------------------------- data */

/* A labelled set of texts, in memory, in file order. */
typedef struct safer_data safer_data;

typedef struct safer_data_options {
    const char *format; /* "tsv", "csv", "jsonl", "fasttext", "folder"; NULL: found by name and content */
    const char *sample; /* "every:N": every Nth of each class; "random:N": N rows; NULL: all */
    size_t limit;       /* keep the first `limit` rows after sampling; 0: all */
    uint64_t seed;      /* for random:N */
    int repair;         /* invalid UTF-8 becomes U+FFFD instead of an error */
    int strip_breaks;   /* "<br />" becomes a space (folders of IMDB reviews always do) */
    const safer_data *labels_of; /* use this set's labels; a label it lacks is an error. May be NULL */
} safer_data_options;

/* One text. `label` indexes the label names, or is -1 when the row has none. */
typedef struct safer_row {
    const char *id;      /* terminated; the row's number from 1 when the file has no ids */
    const char *text;    /* terminated, but may hold NUL bytes: use text_length */
    size_t text_length;  /* bytes */
    int label;
} safer_row;

SAFER_API safer_data_options safer_data_options_default(void);

/* Reads PATH: a file (plain, gz, xz, zst, bz2), `ARCHIVE:MEMBER` inside a tar or
 * zip archive, or a folder (or archive folder) with one subfolder of .txt files a
 * class. NULL options mean the defaults. */
SAFER_API safer_status safer_data_load(safer_data **out, const char *path,
                                       const safer_data_options *options, safer_error *error);
SAFER_API void safer_data_free(safer_data *data);

SAFER_API size_t safer_data_size(const safer_data *data);
SAFER_API safer_row safer_data_row(const safer_data *data, size_t index);

/* Label names, in ascending order: numbers by value first, then words by bytes. */
SAFER_API size_t safer_data_label_count(const safer_data *data);
SAFER_API const char *safer_data_label(const safer_data *data, size_t label);

#ifdef __cplusplus
}
#endif
#endif
