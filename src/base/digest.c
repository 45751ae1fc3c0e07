/* Several files as one digest: those that were read, and all that is below a path. */
#define _GNU_SOURCE
#include "base/digest.h"

#include "base/file.h"
#include "base/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 16 }; /* of folders in folders: links may go round */

/* -------------------------------------------------------------------- lists */

/* Takes over the name, whatever comes back. */
static safer_status add_entry(sf_digest_list *list, char *name, const sf_digest *digest, safer_error *error)
{
    if (!name || sf_grow(&list->entries, &list->capacity, list->count + 1, sizeof *list->entries)) {
        free(name);
        return sf_fail_memory(error);
    }
    list->entries[list->count++] = (sf_digest_entry){name, *digest};
    return SAFER_OK;
}

safer_status sf_digest_list_add(sf_digest_list *list, const char *name, const void *bytes, size_t length,
                                safer_error *error)
{
    sf_digest digest;
    if (!list) return SAFER_OK;
    safer_status status = sf_sha256(&digest, bytes, length, error);
    if (status != SAFER_OK) return status;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->entries[i].name, name) != 0) continue;
        if (strcmp(list->entries[i].digest.hex, digest.hex) == 0) return SAFER_OK;
        return sf_fail(error, SAFER_INPUT, "%s was changed while it was read", name);
    }
    return add_entry(list, sf_strdup(name), &digest, error);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const sf_digest_entry *)left)->name, ((const sf_digest_entry *)right)->name);
}

safer_status sf_digest_list_end(sf_digest *out, sf_digest_list *list, safer_error *error)
{
    sf_sha256_sum sum = {0};
    if (list->count) qsort(list->entries, list->count, sizeof *list->entries, by_name);
    for (size_t i = 0; i < list->count; i++) {
        sf_sha256_add(&sum, list->entries[i].name, strlen(list->entries[i].name) + 1);
        sf_sha256_add(&sum, list->entries[i].digest.bytes, sizeof list->entries[i].digest.bytes);
    }
    return sf_sha256_end(out, &sum, error);
}

void sf_digest_list_free(sf_digest_list *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->entries[i].name);
    free(list->entries);
    *list = (sf_digest_list){0};
}

/* -------------------------------------------------------------------- paths */

/* Piece by piece, since files of vectors may be larger than memory. */
static safer_status add_pieces(sf_sha256_sum *sum, uint64_t *length, int fd, const char *path, safer_error *error)
{
    char piece[1 << 16];
    struct stat info;
    ssize_t got;
    const int regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    for (*length = 0; (got = read(fd, piece, sizeof piece)) != 0; *length += (uint64_t)got) {
        if (got < 0) return sf_fail_errno(error, "read", path);
        sf_sha256_add(sum, piece, (size_t)got);
        if (!regular && *length > sf_unpacked_most(0)) return sf_fail_unpacked(error, path, sf_unpacked_most(0));
    }
    return SAFER_OK;
}

safer_status sf_file_digest(sf_digest *out, uint64_t *length, const char *path, safer_error *error)
{
    sf_sha256_sum sum = {0};
    const int fd = sf_open(path, O_RDONLY);
    if (fd < 0) return sf_fail_errno(error, "open", path);
    safer_status status = add_pieces(&sum, length, fd, path, error);
    close(fd);
    const safer_status ended = sf_sha256_end(status == SAFER_OK ? out : NULL, &sum, error);
    return status == SAFER_OK ? ended : status;
}

static int is_named(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* A folder: all that is in it as a list, whose entries may be folders themselves. */
static safer_status digest_path(sf_digest *out, const char *path, int depth, safer_error *error)
{
    struct stat info;
    struct dirent **entries = NULL;
    sf_digest_list list = {0};
    char inner[PATH_MAX];
    uint64_t length;
    if (stat(path, &info) != 0) return sf_fail_errno(error, "open", path);
    if (!S_ISDIR(info.st_mode)) return sf_file_digest(out, &length, path, error);
    if (depth == MAX_DEPTH) return sf_fail(error, SAFER_INPUT, "%s: folders in folders, too deep", path);
    const int count = scandir(path, &entries, is_named, NULL);
    safer_status status = count < 0 ? sf_fail_errno(error, "read", path) : SAFER_OK;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        sf_digest digest;
        if (status == SAFER_OK && snprintf(inner, sizeof inner, "%s/%s", path, name) >= (int)sizeof inner)
            status = sf_fail(error, SAFER_INPUT, "%s/%s: too long a name", path, name);
        if (status == SAFER_OK) status = digest_path(&digest, inner, depth + 1, error);
        if (status == SAFER_OK) status = add_entry(&list, sf_strdup(name), &digest, error);
        free(entries[i]);
    }
    free(entries);
    if (status == SAFER_OK) status = sf_digest_list_end(out, &list, error);
    sf_digest_list_free(&list);
    return status;
}

/* Of ARCHIVE:MEMBER, the digest of the archive and the member's name. */
static safer_status digest_member(sf_digest *out, const char *path, size_t archive, safer_error *error)
{
    sf_digest digest;
    sf_sha256_sum sum = {0};
    uint64_t length;
    char *outer = sf_strndup(path, archive);
    if (!outer) return sf_fail_memory(error);
    safer_status status = sf_file_digest(&digest, &length, outer, error);
    free(outer);
    if (status != SAFER_OK) return status;
    sf_sha256_add(&sum, digest.bytes, sizeof digest.bytes);
    sf_sha256_add(&sum, path + archive, strlen(path + archive));
    return sf_sha256_end(out, &sum, error);
}

safer_status safer_path_sha256(char *out, const char *path, safer_error *error)
{
    sf_digest digest;
    const size_t archive = sf_archive_split(path);
    safer_status status = archive ? digest_member(&digest, path, archive, error) : digest_path(&digest, path, 0, error);
    if (status == SAFER_OK) memcpy(out, digest.hex, sizeof digest.hex);
    return status;
}
