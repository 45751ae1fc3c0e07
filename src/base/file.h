/* Whole files: read, unpacked, written atomically. */
#ifndef SF_BASE_FILE_H
#define SF_BASE_FILE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>

/* The contents of a file; read-only. They are a copy: whatever happens to the file, they stay as they were read. */
typedef struct sf_file {
    const char *bytes; /* not terminated */
    size_t length;
    char *heap; /* private: what to free */
} sf_file;

/* open(), with O_CLOEXEC and 0666, that goes on after a signal: who opens one end of a named pipe waits for the other,
 * and whether a signal ends the program is not decided here. */
int sf_open(const char *path, int flags);

/* The bytes as they are on disk. A regular file that is written to, or cut off, while it is read is an error. */
safer_status sf_file_load(sf_file *out, const char *path, safer_error *error);

/* The contents after unpacking. PATH is a file, plain or compressed (gz, xz, zst, bz2),
 * an archive (tar, zip) with one file in it, or ARCHIVE:MEMBER. */
safer_status sf_file_read(sf_file *out, const char *path, safer_error *error);

void sf_file_free(sf_file *file); /* an all-zero file is fine */

/* How many bytes `packed` bytes may become, and (0) how many may come out of a pipe or device: a small file can
 * unpack to more than any machine holds. What safer_set_max_unpacked said; else 8 GiB (2 GiB from a pipe) or half of
 * this machine's memory, whichever is less, and, above 1 GiB, 250 times what is packed. */
size_t sf_unpacked_most(size_t packed);
safer_status sf_fail_unpacked(safer_error *error, const char *name, size_t most);

/* Splits ARCHIVE:MEMBER at the last ':' before which a file exists. Returns the length
 * of the archive's name, or 0 when PATH itself exists or no such split does. */
size_t sf_archive_split(const char *path);

/* Calls `visit` for every regular file of the tar or zip archive PATH, in archive order.
 * `bytes` live for the call only. With a NULL prefix all files are visited, else those
 * below PREFIX/ ; names are relative to it. */
typedef safer_status (*sf_member_visit)(void *context, const char *name, const char *bytes, size_t length,
                                        safer_error *error);
safer_status sf_archive_walk(const char *path, const char *prefix, sf_member_visit visit, void *context,
                             safer_error *error);

/* Whether a file that begins with these bytes is unpacked by sf_file_read; a block of a tar archive is enough. */
int sf_is_packed(const char *bytes, size_t length);

/* Unpacks bytes already in memory as sf_file_read does (`member` may be NULL). */
safer_status sf_unpack(sf_file *out, const char *bytes, size_t length, const char *name, const char *member,
                       safer_error *error);

/* Writes PATH whole or not at all: a temporary file beside it (PATH.safer-XXXXXX), fsync, rename. Temporary files of
 * PATH that killed runs left are removed. A file that was there keeps its permissions; a new one gets those of open()
 * with 0666. A name that is a device or pipe is written to directly. */
safer_status sf_file_write(const char *path, const void *bytes, size_t length, safer_error *error);

/* The same piece by piece: begin, add, finish. Until it is finished, PATH is what it was. End it in any case: what is
 * not finished is removed. */
typedef struct sf_new_file {
    const char *path;    /* borrowed */
    char *target;        /* the name that links lead to, */
    sf_buffer temporary; /* and what is beside it; both empty where a device or pipe is written */
    int fd, unfinished;  /* whether there is a temporary file */
} sf_new_file;

safer_status sf_new_file_begin(sf_new_file *out, const char *path, safer_error *error);
safer_status sf_new_file_add(sf_new_file *file, const void *bytes, size_t length, safer_error *error);
safer_status sf_new_file_finish(sf_new_file *file, safer_error *error);
void sf_new_file_end(sf_new_file *file);

/* Syncs the folder that PATH lies in: a new name, a rename or a removal outlives a power cut when its folder is on the
 * disk, not when the file is. */
void sf_folder_sync(const char *path);

/* The part after the last '/'. */
const char *sf_base_name(const char *path);

#endif
