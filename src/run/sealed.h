/* Sealed lines: the files that runs write and read back.
 *
 *   1. A file is UTF-8 text of lines, each ended by a newline. Every line is one JSON object without
 *      spaces.
 *   2. Line 1 is the configuration of the run: everything that its records depend on. Line k + 1 is the
 *      record of row k of the data and says so: its member "row" is k. In a part of a run, whose
 *      configuration has the member "shard": [K,N], line k + 1 is the record of row (k - 1) N + K.
 *   3. Every line ends with the member "check", 16 hexadecimal digits: its seal. Before it may stand one
 *      member that no seal covers, so that the same run has the same seals: in line 1 "date", when the
 *      file was begun, in UTC, as "2026-11-16T10:03:22Z", which must be there where the member "format" is 2
 *      or more; in a record "seconds", a real number.
 *   4. The seal is the XXH64 of the line's bytes up to the comma before "date" or "seconds", or, where
 *      there is no such member, before "check", followed by "}". Its seed is 0 in line 1, and the seal of
 *      line 1 in all others. So no line can be edited, and no record can be moved, repeated, taken out or
 *      brought in from another run, without notice. A seal is not a signature: it needs no secret.
 *   5. A last line without its newline was being written when a run died. A byte 0, which no line holds, stands
 *      where something did not reach the disk before a power cut. The run can be resumed, which cuts off that line
 *      and all behind it; until then the file is not whole.
 *
 * What the members mean is the business of those who call: certificates, attacks, cross-checks. */
#ifndef SF_RUN_SEALED_H
#define SF_RUN_SEALED_H

#include "base/error.h"
#include "base/source.h"
#include "run/shard.h"

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/* A hash as 16 digits; NULL without memory. */
json_t *sf_hex_json(uint64_t value);

/* The object as one sealed line with its newline, terminated; `length` counts the newline. Its member
 * "date" is put behind what is sealed. "seconds" is left out when negative. *seal, which may be NULL, gets
 * the seal. NULL without memory; free it. */
char *sf_seal(const json_t *object, double seconds, uint64_t seed, size_t *length, uint64_t *seal);

/* Checks a line's seal on its very bytes (without the newline) and removes "seconds" and "check" from
 * its parsed form; "date" stays. */
safer_status sf_unseal(json_t *object, const char *bytes, size_t length, uint64_t seed, uint64_t *seal,
                       const char *path, size_t line, safer_error *error);

/* The seal that the first line of the whole run has, from that of a part. -1 without memory. */
int sf_sealed_whole(uint64_t *seal, const json_t *config);

/* Seals a line anew, in place, as a record of the file whose first line has the seal `seed`. Its own seal was right. */
void sf_reseal(char *bytes, size_t length, uint64_t seed);

/* ------------------------------------------------------------------ reading */

/* Where a reader of lines stands. */
typedef struct sf_sealed_place {
    const char *path; /* borrowed */
    size_t flags;     /* jansson's, besides those that are always set */
    size_t lines;     /* read so far */
    uint64_t seal;    /* of line 1 */
    sf_shard shard;   /* that line 1 says */
} sf_sealed_place;    /* begin with the path, the flags and zeros */

/* Reads the next line, without its newline: its seal, and that it is in its place. *object gets what it says, without
 * "seconds" and "check"; the caller releases it. */
safer_status sf_sealed_next(sf_sealed_place *place, const char *bytes, size_t length, json_t **object, uint64_t *seal,
                            safer_error *error);

/* Sees a line, without "seconds" and "check", its seal and its number, from 1. The seal was right, and a
 * record is in its place. */
typedef safer_status (*sf_line_visit)(void *context, json_t *object, uint64_t seal, size_t line, safer_error *error);

/* Reads a finished file, packed or not, of what `what` names: a "run", an "attack". `flags` are jansson's,
 * besides. A file without lines, and one whose last line is cut, are errors. */
safer_status sf_sealed_read(const char *path, const char *what, size_t flags, sf_line_visit visit, void *context,
                            safer_error *error);

/* The same for a file that is open, of which a line at a time is in memory. */
safer_status sf_sealed_walk(const sf_source *source, const char *what, size_t flags, sf_line_visit visit, void *context,
                            safer_error *error);

/* The configuration of a regular file with at least one whole line; else NULL. */
json_t *sf_sealed_config(const char *path);

/* ------------------------------------------------------------------ writing */

/* A file that grows by whole lines: when a line cannot be written, the file is cut back to the one
 * before it. At any moment, whatever happens, it is whole lines and perhaps a part of one more. A line outlives the
 * process at once, and a power cut about a second after it was written (run/syncer.h), the first line before any other
 * is written. */
typedef struct sf_sealed_output {
    int fd;                   /* -1: there is no file, and nothing is written */
    const char *path;         /* borrowed */
    off_t end;                /* after the last whole line */
    uint64_t seal;            /* of the configuration, which seeds those of the records */
    struct sf_syncer *syncer; /* of a regular file */
    int began;                /* it is a regular file that was not there */
} sf_sealed_output;

/* The first line of a file, terminated, with its newline, and its seal. Its date is `date` or, where that is NULL, that
 * of now; in either case, where it is set, that of the environment's SOURCE_DATE_EPOCH, in seconds since 1970. The
 * caller frees it. */
safer_status sf_sealed_first(char **line, size_t *length, uint64_t *seal, const json_t *config, const char *date,
                             safer_error *error);

/* Creates the file and writes its configuration, with the date of sf_sealed_first. A file that holds something is
 * refused, or, with `resume`, read: `visit` sees its whole lines and may refuse them, what follows them is cut off, and
 * further lines follow them. The file is locked against other runs until it is closed. NULL path: no
 * file. Close it whether or not this succeeds. */
safer_status sf_sealed_open(sf_sealed_output *out, const char *path, int resume, const json_t *config,
                            sf_line_visit visit, void *context, safer_error *error);

/* Appends a line that sf_seal made, by one write where the system allows it. */
safer_status sf_sealed_append(sf_sealed_output *out, const char *line, size_t length, safer_error *error);

/* Returns when all that was written will outlive a crash of the system. */
safer_status sf_sealed_sync(sf_sealed_output *out, safer_error *error);

/* Removes a file that this run began, and which has no record. */
void sf_sealed_forget(sf_sealed_output *out);

void sf_sealed_close(sf_sealed_output *out);

#endif
