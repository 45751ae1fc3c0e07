/* What targets share that need files: a folder of their own, removed at exit, and records sealed anew, so that what
 * is inside them is reached. */
#ifndef TESTS_FUZZ_FILES_H
#define TESTS_FUZZ_FILES_H

#include "fuzz.h"

#include "run/sealed.h"

#include <ftw.h>
#include <unistd.h>

static char fuzz_folder[64];

static inline int fuzz_remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info, (void)type;
    return at->level ? remove(path) : 0;
}

static inline void fuzz_empty(void) { (void)nftw(fuzz_folder, fuzz_remove_one, 8, FTW_DEPTH | FTW_PHYS); }

static inline void fuzz_remove(void)
{
    fuzz_empty();
    rmdir(fuzz_folder);
}

/* The path of a file in the folder, in one of eight strings. */
static inline const char *fuzz_path(const char *name)
{
    static char paths[8][200];
    static int next;
    if (!fuzz_folder[0]) {
        const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(fuzz_folder, sizeof fuzz_folder, "%s/safer-fuzz-XXXXXX", parent);
        require(mkdtemp(fuzz_folder) && atexit(fuzz_remove) == 0);
    }
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", fuzz_folder, name);
    return path;
}

static inline const char *fuzz_write(const char *name, const void *bytes, size_t size)
{
    const char *path = fuzz_path(name);
    FILE *file = fopen(path, "wb");
    require(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
    return path;
}

/* Writes a line as a run would, in its place, which is that of a part where the first line says so; one that is no
 * object as it is. `number` counts from 1. */
static inline void fuzz_seal(FILE *file, const char *bytes, size_t length, size_t number, uint64_t *seal)
{
    static sf_shard shard;
    json_t *object = json_loadb(bytes, length, JSON_ALLOW_NUL, NULL);
    char *sealed = NULL;
    if (json_object_size(object)) {
        if (number == 1) (void)sf_shard_read(&shard, object, "", NULL);
        const json_int_t row = (json_int_t)(number > 1 ? sf_shard_row(shard, number - 2) + 1 : 0);
        if (number > 1) json_object_set_new(object, "row", json_integer(row));
        sealed = sf_seal(object, number > 1 ? 0 : -1, *seal, &length, number > 1 ? NULL : seal);
    }
    fwrite(sealed ? sealed : bytes, 1, length, file);
    free(sealed);
    json_decref(object);
}

/* All lines, of which the first has this number. */
static inline void fuzz_seal_lines(FILE *file, const char *bytes, size_t size, size_t number, uint64_t *seal)
{
    for (const char *p = bytes, *end = p + size, *next; p < end; p = next) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        next = newline ? newline + 1 : end;
        fuzz_seal(file, p, (size_t)(next - p), number++, seal);
    }
}

/* They as a file of that folder. */
static inline const char *fuzz_write_sealed(const char *name, const char *bytes, size_t size)
{
    const char *path = fuzz_path(name);
    FILE *file = fopen(path, "wb");
    uint64_t seal = 0;
    require(file);
    fuzz_seal_lines(file, bytes, size, 1, &seal);
    require(fclose(file) == 0);
    return path;
}

#endif
