/* What the tests share: cmocka, failing allocations, temporary files, random numbers, archives, the data folder. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/sha256.h"
#include "safer.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* From now on the n-th allocation of the library (0: the next) fails, once. Returns to
 * normal with a negative n. */
void fail_allocation(long n);

/* Whether the failure set up last has happened. */
int allocation_failed(void);

/* Runs `operation` with its 1st, 2nd, ... allocation failing until it succeeds. Each
 * failed run must return SAFER_MEMORY (and leak nothing: the sanitizers watch). The
 * operation frees what it made. */
void check_every_allocation(safer_status (*operation)(void *context, safer_error *error), void *context);

/* A path in a fresh folder of this process, removed at exit. The string is static per call slot (16). */
const char *temporary(const char *name);

/* Writes a file there and returns its path. */
const char *write_temporary(const char *name, const void *bytes, size_t length);

/* Pseudo-random numbers, the same in every run: below `bound`, and from -1 to 1. They have nothing to do with
 * base/rng, which is tested with them. */
uint32_t next_below(uint32_t bound);
float next_float(void);

/* Begins them anew: the same seed, the same numbers. */
void next_seed(uint64_t seed);

/* A member of an archive. A name that ends in '/' is that of a folder. */
typedef struct archive_member {
    const char *name, *bytes;
    size_t length;
} archive_member;

/* Packs members into `out`, at most `room` bytes, and returns how many. Format "raw", "tar" or "zip"; filter "none",
 * "gz", "xz", "zst" or "bz2". */
size_t pack_archive(char *out, size_t room, const char *format, const char *filter, const archive_member *members,
                    size_t count);

/* The lexicon of a table of synonyms, the text of a file. */
safer_lexicon *import_table(const char *table, const char *kernel);

/* The path of NAME in the shared data folder, or NULL (having said so) when it is absent. */
const char *shared_data(const char *name);

/* Fails unless the files hold the same bytes. */
void assert_same_file(const char *left, const char *right);

/* A progress function and its context: remembers what it was told last, and stops when the stage
 * contains `when` or so much `at` is done. */
typedef struct stopper {
    const char *when; /* NULL: never */
    uint64_t at;      /* 0: never */
    int slow;         /* meters speak ten times per second: with this, for which the clock hurries, every time */
    char last[200];
    uint64_t done, total;
} stopper;
int stop_run(void *stopper, const char *stage, uint64_t done, uint64_t total);

/* Fails with the message when the status is not as expected. */
#define assert_ok(expression) \
    do { \
        safer_status status_ = (expression); \
        if (status_ != SAFER_OK) fail_msg("%s: %s", safer_status_name(status_), error.message); \
    } while (0)

/* The expression fails with this status and a message that contains `words`. */
int says(const safer_error *error, const char *words); /* with members' names as they are, or between backquotes */

#define assert_fails(expression, expected, words) \
    do { \
        error = (safer_error){0}; \
        safer_status status_ = (expression); \
        if (status_ != (expected) || !says(&error, words)) \
            fail_msg("expected \"%s\" with \"%s\", got \"%s\": %s", safer_status_name(expected), words, \
                     safer_status_name(status_), error.message); \
    } while (0)

/* A digest for a model that has no file: a different one for every number. */
sf_digest digest_for(uint64_t number);

#endif
