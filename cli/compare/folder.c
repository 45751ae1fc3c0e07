/* The folder of safer compare, and what is known of every file in it.
 *
 * made.json is an object: the name of a file, and for it "with", all that the file depends on, the
 * version of "safer" that made it, "seconds" of work, over several runs where it was interrupted,
 * and whether it is "done". It is written before a file is begun and after it is finished, whole or not
 * at all, so that work can be resumed after a kill at any moment. */
#define _GNU_SOURCE
#include "compare/compare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

void cmp_folder_file(char *out, size_t size, const cmp_folder *folder, const char *file)
{
    snprintf(out, size, "%s/%s", folder->path, file);
}

safer_status cmp_folder_open(cmp_folder *out, const char *path, safer_error *error)
{
    char name[4096];
    json_error_t where;
    *out = (cmp_folder){.path = path, .lock = -1};
    if (strlen(path) > 3000) return cli_error(error, SAFER_INVALID, "%.800s...: too long a name", path);
    safer_status status = cli_make_folder(path, error);
    if (status != SAFER_OK) return status;
    out->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->lock < 0)
        return cli_error(error, SAFER_SYSTEM, "cannot open the folder %.800s: %s", path, strerror(errno));
    if (flock(out->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return cli_error(error, SAFER_SYSTEM, "%.800s is being written by another comparison", path);
    cmp_folder_file(name, sizeof name, out, "made.json");
    if (access(name, F_OK) != 0) {
        out->made = json_object();
        return SAFER_OK;
    }
    out->made = cli_json_load(name, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(out->made)) return SAFER_OK;
    return cli_error(error, SAFER_INPUT, "%.500s is damaged (%.200s); remove it, or choose another folder", name,
                     out->made ? "no object" : where.text);
}

void cmp_folder_close(cmp_folder *folder)
{
    json_decref(folder->made);
    if (folder->lock >= 0) close(folder->lock);
}

static safer_status save(const cmp_folder *folder, safer_error *error)
{
    char name[4096];
    cmp_folder_file(name, sizeof name, folder, "made.json");
    char *text = cli_json_text(folder->made, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    safer_status status = cli_write_file(name, text, strlen(text), error);
    free(text);
    return status;
}

/* The first member in which two objects differ, as options.epochs. */
static void find_difference(char *out, size_t size, const json_t *a, const json_t *b)
{
    const size_t length = strlen(out);
    const json_t *const both[] = {a, b};
    const char *key;
    json_t *value;
    for (int i = 0; i < 2; i++) json_object_foreach((json_t *)(uintptr_t)both[i], key, value)
        {
            const json_t *other = json_object_get(both[1 - i], key);
            if (json_equal(value, other)) continue;
            snprintf(out + length, size - length, "%s%s", length ? "." : "", key);
            if (json_is_object(value) && json_is_object(other)) find_difference(out, size, value, other);
            return;
        }
}

static int is_there(const cmp_folder *folder, const char *file, const char *ending)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", folder->path, file, ending);
    return access(path, F_OK) == 0;
}

static int is_of_this_version(const json_t *entry)
{
    const char *version = json_string_value(json_object_get(entry, "safer"));
    return version && strcmp(version, safer_version()) == 0;
}

/* Records hold times, and are sealed; of all other files the digest is noted. */
static int has_digest(const char *file)
{
    const char *ending = strrchr(file, '.');
    return !ending || strcmp(ending, ".jsonl") != 0;
}

/* Whether a finished file is still what it was. */
static int is_unchanged(const cmp_folder *folder, const char *file, const json_t *entry)
{
    const char *before = json_string_value(json_object_get(entry, "sha256"));
    char path[4096], now[65];
    if (!has_digest(file)) return is_there(folder, file, "");
    cmp_folder_file(path, sizeof path, folder, file);
    return before && safer_path_sha256(now, path, NULL) == SAFER_OK && strcmp(before, now) == 0;
}

safer_status cmp_folder_begin(cmp_folder *folder, const char *file, const json_t *with, int *done, safer_error *error)
{
    json_t *entry = json_object_get(folder->made, file), *before = json_object_get(entry, "with");
    const int there = is_there(folder, file, "");
    *done = 0;
    const int same = json_equal(before, with);
    if (same && is_of_this_version(entry)) {
        *done = there && json_is_true(json_object_get(entry, "done"));
        if (*done && !is_unchanged(folder, file, entry))
            return cli_error(error, SAFER_INPUT,
                             "%.500s/%s is not what was written there; remove it, and what was made from it, or choose "
                             "another folder",
                             folder->path, file);
        return SAFER_OK;
    }
    if (there || is_there(folder, file, ".checkpoint")) {
        char what[256] = "";
        if (!entry)
            return cli_error(error, SAFER_INPUT,
                             "%.500s/%s is not from this command; remove it, or choose another folder", folder->path,
                             file);
        if (same)
            strcpy(what, "version of safer");
        else
            find_difference(what, sizeof what, before, with);
        return cli_error(error, SAFER_INPUT, "%.500s/%s was made with another %s; remove it, or choose another folder",
                         folder->path, file, what);
    }
    cli_set(folder->made, file,
            json_pack("{s:O, s:s, s:f, s:b}", "with", (json_t *)(uintptr_t)with, "safer", safer_version(), "seconds",
                      0.0, "done", 0));
    return save(folder, error);
}

safer_status cmp_folder_end(cmp_folder *folder, const char *file, double seconds, int done, safer_error *error)
{
    json_t *entry = json_object_get(folder->made, file);
    char path[4096], sha256[65];
    cmp_folder_file(path, sizeof path, folder, file);
    if (done && has_digest(file)) {
        const safer_status status = safer_path_sha256(sha256, path, error);
        if (status != SAFER_OK) return status;
        cli_set(entry, "sha256", json_string(sha256));
    }
    cli_set(entry, "seconds", json_real(json_number_value(json_object_get(entry, "seconds")) + seconds));
    cli_set(entry, "done", json_boolean(done));
    return save(folder, error);
}

void cmp_folder_drop_checkpoint(const cmp_folder *folder, const char *file)
{
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s.checkpoint", folder->path, file);
    if (length < (int)sizeof path) (void)unlink(path);
}

const char *cmp_folder_find(const cmp_folder *folder, const json_t *with)
{
    const char *file;
    json_t *entry;
    json_object_foreach(folder->made, file, entry) if (json_equal(json_object_get(entry, "with"), with) &&
                                                       is_of_this_version(entry) &&
                                                       json_is_true(json_object_get(entry, "done")) &&
                                                       is_unchanged(folder, file, entry)) return file;
    return NULL;
}

double cmp_folder_seconds(const cmp_folder *folder, const char *file)
{
    return json_number_value(json_object_get(json_object_get(folder->made, file), "seconds"));
}
