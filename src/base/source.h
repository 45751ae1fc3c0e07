/* The contents of a file that are looked at piece by piece, once and perhaps again.
 *
 * A plain file stays on the disk, however large it is: it is read in blocks, when they are asked for. What has to be
 * unpacked, and what comes from a pipe, is kept in memory. Who looks cannot tell the difference.
 *
 * What was checked in the first reading must be what is seen in the second. So every block that is read gets a hash,
 * 8 bytes for 64 KiB, and a block that is read again must have it still. The file is neither mapped (who cuts off a
 * mapped file kills the process) nor told apart by its time, which two quick changes share. */
#ifndef SF_BASE_SOURCE_H
#define SF_BASE_SOURCE_H

#include "base/buffer.h"
#include "base/file.h"

#include <stdint.h>
#include <sys/stat.h>

typedef struct sf_source {
    const char *path; /* borrowed */
    uint64_t length;  /* of the contents */
    sf_file file;     /* they, when they are in memory */
    uint64_t *hashes; /* of every block, 0 while it was not read; NULL: in memory */
    int fd;           /* where there are hashes */
    struct stat begun;
} sf_source; /* begin with zeros */

/* With `unpack` as sf_file_read, else the bytes as they are on the disk. Close it whether or not this succeeds. */
safer_status sf_source_open(sf_source *out, const char *path, int unpack, safer_error *error);
void sf_source_close(sf_source *source);

/* When it was read once: whether nobody wrote to the file meanwhile, so that it was read as it was at one moment. */
safer_status sf_source_check(const sf_source *source, safer_error *error);

/* What is in memory of a source. Of the same source any number of threads may have a window each, when one of them has
 * read it once. */
typedef struct sf_window {
    const sf_source *source; /* borrowed */
    char *bytes;             /* (capacity): of the source, from `begin` on, `have` */
    size_t capacity, have;
    uint64_t begin;
} sf_window; /* begin with the source and zeros */

void sf_window_free(sf_window *window);

/* The bytes from `offset` on, at least `least` of them, or all up to the end. They live until the next call. A file
 * that is not what it was is an error that names it. */
safer_status sf_window_at(sf_window *window, uint64_t offset, size_t least, sf_span *out, safer_error *error);

/* The line at *offset, without its newline, behind which *offset moves. Not *whole: the file ends before a newline
 * comes, and *offset stays. */
safer_status sf_window_line(sf_window *window, uint64_t *offset, sf_span *line, int *whole, safer_error *error);

#endif
