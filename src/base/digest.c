/* The content of a path as one number. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 16 }; /* of folders in folders: links may go round */

static safer_status add_file(uint64_t *hash, const char *path, safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_map(&file, path, error);
    if (status == SAFER_OK) *hash = sf_hash(file.bytes, file.length, *hash);
    sf_file_free(&file);
    return status;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }
static int is_named(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* A folder: the names and contents of all that is in it, in the order of their bytes. */
static safer_status add_path(uint64_t *hash, const char *path, int depth, safer_error *error)
{
    struct stat info;
    struct dirent **entries = NULL;
    char inner[PATH_MAX];
    if (stat(path, &info) != 0) return sf_fail_errno(error, "open", path);
    if (!S_ISDIR(info.st_mode)) return add_file(hash, path, error);
    int count = depth < MAX_DEPTH ? scandir(path, &entries, is_named, by_bytes) : 0;
    if (count < 0) return sf_fail_errno(error, "read", path);
    safer_status status = depth < MAX_DEPTH ? SAFER_OK
                                            : sf_fail(error, SAFER_INPUT, "%s: folders in folders, too deep", path);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (status == SAFER_OK && snprintf(inner, sizeof inner, "%s/%s", path, name) >= (int)sizeof inner)
            status = sf_fail(error, SAFER_INPUT, "%s/%s: too long a name", path, name);
        if (status == SAFER_OK) {
            *hash = sf_hash(name, strlen(name), *hash);
            status = add_path(hash, inner, depth + 1, error);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

safer_status safer_path_hash(uint64_t *out, const char *path, safer_error *error)
{
    uint64_t hash = 0;
    size_t archive = sf_archive_split(path);
    char *outer = archive ? sf_strndup(path, archive) : NULL;
    if (archive && !outer) return sf_fail_memory(error);
    safer_status status = archive ? add_file(&hash, outer, error) : add_path(&hash, path, 0, error);
    if (archive) hash = sf_hash(path + archive, strlen(path + archive), hash); /* which member */
    free(outer);
    if (status == SAFER_OK) *out = hash;
    return status;
}
