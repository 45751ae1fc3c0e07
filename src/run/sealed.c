/* Sealed lines: one reader, one writer. sealed.h specifies them; docs/certify.md and docs/check.md
 * say what they hold. */
#define _GNU_SOURCE
#include "run/sealed.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "run/syncer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --------------------------------------------------------------------- seals */

json_t *sf_hex_json(uint64_t value) { return json_sprintf("%016llx", (unsigned long long)value); }

/* NULL without memory: a copy that lacks a member for want of memory is none. */
static json_t *copy_without(const json_t *object, const char *member)
{
    json_t *copy = json_copy((json_t *)object);
    if (copy && json_object_size(copy) != json_object_size(object)) {
        json_decref(copy);
        return NULL;
    }
    json_object_del(copy, member);
    return copy;
}

char *sf_seal(const json_t *object, double seconds, uint64_t seed, size_t *length, uint64_t *seal)
{
    char *sealed = NULL, *tail = NULL, *line = NULL;
    json_t *last = json_object(), *date = json_object_get(object, "date"),
           *body_of = date ? copy_without(object, "date") : json_incref((json_t *)object);
    sealed = sf_json_text(body_of);
    if (!sealed || !last) goto done;
    const size_t body = strlen(sealed) - 1; /* without the brace */
    const uint64_t hash = sf_hash(sealed, body + 1, seed);
    if (date && json_object_set(last, "date", date)) goto done;
    if (seconds >= 0 && json_object_set_new(last, "seconds", json_real(seconds))) goto done;
    if (json_object_set_new(last, "check", sf_hex_json(hash))) goto done;
    tail = sf_json_text(last);
    if (!tail) goto done;
    const size_t rest = strlen(tail);
    line = sf_alloc(body + rest + 2, 1);
    if (!line) goto done;
    memcpy(line, sealed, body);
    memcpy(line + body, tail, rest);
    line[body] = ','; /* in place of the tail's brace */
    memcpy(line + body + rest, "\n", 2);
    *length = body + rest + 1;
    if (seal) *seal = hash;
done:
    free(sealed);
    free(tail);
    json_decref(last);
    json_decref(body_of);
    return line;
}

/* Where `word` stands last, or NULL. */
static const char *find_last(const char *bytes, size_t length, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = length < n ? 0 : length - n + 1; i-- > 0;)
        if (memcmp(bytes + i, word, n) == 0) return bytes + i;
    return NULL;
}

/* Where the value of the unsealed member ends that stands at `at`, or NULL: a date in the first line, a
 * number in others. */
static const char *skip_unsealed(const char *at, const char *stop, size_t line)
{
    static const char form[] = "\"0000-00-00T00:00:00Z\"";
    if (line > 1) {
        while (at < stop && strchr("0123456789.eE+-", *at)) at++;
        return at;
    }
    if ((size_t)(stop - at) < sizeof form - 1) return NULL;
    for (const char *f = form; *f; f++, at++)
        if (*f == '0' ? *at < '0' || *at > '9' : *at != *f) return NULL;
    return at;
}

/* Where a line's tail begins, if it ends as sf_seal ends it: perhaps the member that is not sealed, then
 * "check", and nothing else; else NULL. What stood there besides would not be sealed. */
static const char *find_tail(const char *bytes, size_t length, size_t line, int unsealed)
{
    static const char check[] = ",\"check\":\"";
    const char *name = line > 1 ? ",\"seconds\":" : ",\"date\":", *stop = bytes + length;
    const char *tail = find_last(bytes, length, unsealed ? name : check), *at = tail;
    if (tail && unsealed) at = skip_unsealed(tail + strlen(name), stop, line);
    const int ends = at && (size_t)(stop - at) == sizeof check - 1 + 16 + 2 &&
                     memcmp(at, check, sizeof check - 1) == 0 && memcmp(stop - 2, "\"}", 2) == 0;
    return ends ? tail : NULL;
}

safer_status sf_unseal(json_t *object, const char *bytes, size_t length, uint64_t seed, uint64_t *seal,
                       const char *path, size_t line, safer_error *error)
{
    const char *stored = json_string_value(json_object_get(object, "check"));
    const json_t *unsealed = json_object_get(object, line > 1 ? "seconds" : "date");
    const char *end = find_tail(bytes, length, line, unsealed != NULL);
    char expected[17] = "";
    if (line > 1 && unsealed && !json_is_real(unsealed)) end = NULL;
    if (end) {
        char *sealed = sf_strndup(bytes, (size_t)(end - bytes) + 1);
        if (!sealed) return sf_fail_memory(error);
        sealed[end - bytes] = '}';
        *seal = sf_hash(sealed, (size_t)(end - bytes) + 1, seed);
        free(sealed);
        snprintf(expected, sizeof expected, "%016llx", (unsigned long long)*seal);
    }
    if (!end || !stored || strcmp(stored, expected) != 0)
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: the check does not match: the line was changed", path, line);
    json_object_del(object, "check");
    if (line > 1) json_object_del(object, "seconds");
    return SAFER_OK;
}

int sf_sealed_whole(uint64_t *seal, const json_t *config)
{
    size_t length;
    json_t *whole = copy_without(config, "shard");
    char *line = sf_seal(whole, -1, 0, &length, seal);
    json_decref(whole);
    free(line);
    return line ? 0 : -1;
}

void sf_reseal(char *bytes, size_t length, uint64_t seed)
{
    enum { RECORD = 2, END = 16 + 2 }; /* the digits of the check, a quote and a brace */
    char check[17];
    const char *tail = find_tail(bytes, length, RECORD, 1);
    if (!tail) tail = find_tail(bytes, length, RECORD, 0);
    assert(tail);
    char *end = bytes + (tail - bytes);
    *end = '}';
    snprintf(check, sizeof check, "%016llx", (unsigned long long)sf_hash(bytes, (size_t)(end - bytes) + 1, seed));
    *end = ',';
    memcpy(bytes + length - END, check, 16);
}

/* ------------------------------------------------------------------- reading */

/* Whether the record of a line is the one that belongs there. */
static safer_status check_place(const json_t *record, const sf_sealed_place *place, safer_error *error)
{
    const json_t *row = json_object_get(record, "row");
    const size_t line = place->lines + 1;
    if (!json_is_integer(row))
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: not a record: \"row\" must be a whole number", place->path,
                       line);
    if (json_integer_value(row) == (json_int_t)sf_shard_row(place->shard, line - 2) + 1) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT,
                   "%s, line %zu: the record of row %lld stands here: lines were moved, repeated or removed",
                   place->path, line, (long long)json_integer_value(row));
}

/* Every file says when it was begun, since format 2. */
static safer_status check_date(const json_t *config, const char *path, safer_error *error)
{
    if (json_integer_value(json_object_get(config, "format")) < 2 || json_object_get(config, "date")) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s, line 1: \"date\" is missing", path);
}

safer_status sf_sealed_next(sf_sealed_place *place, const char *bytes, size_t length, json_t **object, uint64_t *seal,
                            safer_error *error)
{
    safer_status status;
    json_error_t where;
    const size_t line = place->lines + 1;
    json_t *read;
    status = sf_json_parse(&read, bytes, length, JSON_REJECT_DUPLICATES | place->flags, &where);
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    if (!read)
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: not JSON, so not the output of a run: %s", place->path, line,
                       where.text);
    SF_TRY(sf_unseal(read, bytes, length, place->seal, seal, place->path, line, error));
    if (line == 1) {
        SF_TRY(check_date(read, place->path, error));
        SF_TRY(sf_shard_read(&place->shard, read, place->path, error));
        place->seal = *seal;
    } else {
        SF_TRY(check_place(read, place, error));
    }
    place->lines = line;
    *object = read;
    read = NULL;
done:
    json_decref(read);
    return status;
}

/* Where a reader of a file stands. */
typedef struct reading {
    sf_sealed_place place;
    size_t most; /* lines to read; SIZE_MAX: all */
    sf_line_visit visit;
    void *context;
    uint64_t end; /* of the last line that was read */
    int damaged;  /* behind it stand zeros, in what was not written whole before a power cut */
} reading;

static safer_status read_line(reading *r, sf_span line, safer_error *error)
{
    json_t *object = NULL;
    uint64_t seal = 0;
    safer_status status = sf_sealed_next(&r->place, line.bytes, line.length, &object, &seal, error);
    if (status == SAFER_OK) status = r->visit(r->context, object, seal, r->place.lines, error);
    json_decref(object);
    return status;
}

/* The one loop over lines: up to the last that is whole. */
static safer_status read_lines(reading *r, const sf_source *source, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_window window = {.source = source};
    uint64_t at = 0;
    while (r->place.lines < r->most) {
        sf_span line;
        int whole;
        SF_TRY(sf_window_line(&window, &at, &line, &whole, error));
        r->damaged = memchr(line.bytes, '\0', line.length) != NULL;
        if (r->damaged || !whole) break;
        SF_TRY(read_line(r, line, error));
        r->end = at;
    }
done:
    sf_window_free(&window);
    return status;
}

safer_status sf_sealed_walk(const sf_source *source, const char *what, size_t flags, sf_line_visit visit, void *context,
                            safer_error *error)
{
    const char *path = source->path;
    reading r = {.place = {.path = path, .flags = flags}, .most = SIZE_MAX, .visit = visit, .context = context};
    safer_status status = read_lines(&r, source, error);
    if (status == SAFER_OK) status = sf_source_check(source, error);
    if (status != SAFER_OK) return status;
    if (r.end < source->length)
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: the record is %s; resume the %s", path, r.place.lines + 1,
                       r.damaged ? "damaged, as after a power cut" : "cut", what);
    return r.place.lines ? SAFER_OK : sf_fail(error, SAFER_INPUT, "%s is empty", path);
}

safer_status sf_sealed_read(const char *path, const char *what, size_t flags, sf_line_visit visit, void *context,
                            safer_error *error)
{
    sf_source source;
    safer_status status = sf_source_open(&source, path, 1, error);
    if (status == SAFER_OK) status = sf_sealed_walk(&source, what, flags, visit, context, error);
    sf_source_close(&source);
    return status;
}

static safer_status keep_line(void *context, json_t *object, uint64_t seal, size_t line, safer_error *error)
{
    (void)seal;
    (void)line;
    (void)error;
    *(json_t **)context = json_incref(object);
    return SAFER_OK;
}

json_t *sf_sealed_config(const char *path)
{
    struct stat info;
    sf_source source = {0};
    json_t *config = NULL;
    reading r = {.place = {.path = path, .flags = JSON_ALLOW_NUL}, .most = 1, .visit = keep_line, .context = &config};
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && sf_source_open(&source, path, 0, NULL) == SAFER_OK)
        (void)read_lines(&r, &source, NULL); /* where it fails, there is no configuration */
    sf_source_close(&source);
    return config;
}

/* ------------------------------------------------------------------- writing */

/* Whether there is nothing in the file but the beginning of `first`, but for its date, and zeros, perhaps: its first
 * line was on the disk before any other was written. */
static int is_begun(sf_span file, const char *first, size_t first_length)
{
    const size_t sealed = (size_t)(find_last(first, first_length, ",\"date\":") - first);
    const char *zero = memchr(file.bytes, '\0', file.length);
    const size_t written = zero ? (size_t)(zero - file.bytes) : file.length;
    for (size_t i = written; i < file.length; i++)
        if (file.bytes[i] != '\0') return 0;
    return file.length <= first_length && memcmp(file.bytes, first, written < sealed ? written : sealed) == 0;
}

/* Reads the whole lines of an earlier run, as they are on the disk, and cuts off what follows them. Where no
 * line is whole, there must be nothing but the beginning of `first`: anything else is not ours to cut. */
static safer_status resume_file(sf_sealed_output *out, const char *first, size_t first_length, sf_line_visit visit,
                                void *context, safer_error *error)
{
    safer_status status;
    sf_source source;
    sf_window window = {.source = &source};
    sf_span start;
    reading r = {
        .place = {.path = out->path, .flags = JSON_ALLOW_NUL}, .most = SIZE_MAX, .visit = visit, .context = context};
    SF_TRY(sf_source_open(&source, out->path, 0, error));
    SF_TRY(read_lines(&r, &source, error));
    SF_TRY(sf_window_at(&window, 0, first_length + 1, &start, error));
    if (r.place.lines == 0 && !is_begun(start, first, first_length)) {
        status = sf_fail(error, SAFER_INPUT, "%s is not the output of a run; choose another name", out->path);
        goto done;
    }
    out->end = (off_t)r.end;
    out->seal = r.place.seal;
    if (ftruncate(out->fd, out->end) != 0 || lseek(out->fd, out->end, SEEK_SET) < 0)
        status = sf_fail_errno(error, "continue", out->path);
done:
    sf_window_free(&window);
    sf_source_close(&source);
    return status;
}

safer_status sf_sealed_first(char **line, size_t *length, uint64_t *seal, const json_t *config, const char *date,
                             safer_error *error)
{
    const char *asked = getenv("SOURCE_DATE_EPOCH");
    uint64_t seconds = (uint64_t)time(NULL);
    struct tm split;
    char text[21];
    if (asked && (sf_to_uint64(asked, &seconds) || seconds > 253402300799))
        return sf_fail(error, SAFER_INVALID, "SOURCE_DATE_EPOCH: \"%s\" is not a number of seconds since 1970", asked);
    gmtime_r(&(time_t){(time_t)seconds}, &split);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &split);
    json_t *dated = copy_without(config, "date");
    if (json_object_set_new(dated, "date", json_string(date && !asked ? date : text)) == 0)
        *line = sf_seal(dated, -1, 0, length, seal);
    json_decref(dated);
    return *line ? SAFER_OK : sf_fail_memory(error);
}

/* Whether a path still leads to this file. (A file in memory has no link, but is what /proc calls it.) */
static int is_called(const struct stat *file, const char *path)
{
    struct stat named;
    return stat(path, &named) == 0 && named.st_dev == file->st_dev && named.st_ino == file->st_ino;
}

safer_status sf_sealed_open(sf_sealed_output *out, const char *path, int resume, const json_t *config,
                            sf_line_visit visit, void *context, safer_error *error)
{
    safer_status status;
    struct stat info;
    char *line = NULL;
    size_t length = 0;
    uint64_t seal = 0;
    *out = (sf_sealed_output){.fd = -1, .path = path};
    if (!path) return SAFER_OK;
    const int was_there = access(path, F_OK) == 0;
    out->fd = sf_open(path, O_WRONLY | O_CREAT);
    if (out->fd < 0) return sf_fail_errno(error, "open", path);
    const int locked = flock(out->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    /* Looked at under the lock: another run may have finished or removed it a moment ago. */
    const int is_file = fstat(out->fd, &info) == 0 && S_ISREG(info.st_mode), exists = is_file && info.st_size > 0;
    if (!locked || (is_file && !is_called(&info, path)))
        return sf_fail(error, SAFER_SYSTEM, "%s is being written by another run", path);
    if (exists && !resume)
        return sf_fail(error, SAFER_INVALID, "%s exists; resume it, remove it or choose another name", path);
    SF_TRY(sf_sealed_first(&line, &length, &seal, config, NULL, error));
    if (is_file) SF_TRY(sf_syncer_new(&out->syncer, out->fd, path, error));
    status = exists ? resume_file(out, line, length, visit, context, error) : SAFER_OK;
    if (status != SAFER_OK || out->end > 0) goto done;
    out->seal = seal; /* it is new, or not even its first line was whole */
    out->began = is_file && !was_there;
    SF_TRY(sf_sealed_append(out, line, length, error));
    status = sf_sealed_sync(out, error); /* before any record: see resume_file */
    sf_folder_sync(path);
done:
    free(line);
    return status;
}

void sf_sealed_forget(sf_sealed_output *out)
{
    if (out->began) (void)unlink(out->path);
}

safer_status sf_sealed_append(sf_sealed_output *out, const char *line, size_t length, safer_error *error)
{
    size_t done = 0;
    if (out->fd < 0) return SAFER_OK;
    while (done < length) {
        ssize_t put = write(out->fd, line + done, length - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            safer_status status = sf_fail_errno(error, "write", out->path);
            if (ftruncate(out->fd, out->end) != 0) { /* a regular file can always shrink; a pipe cannot */
            }
            return status;
        }
        done += (size_t)put;
    }
    out->end += (off_t)length;
    return out->syncer ? sf_syncer_note(out->syncer, error) : SAFER_OK;
}

safer_status sf_sealed_sync(sf_sealed_output *out, safer_error *error)
{
    return out->syncer ? sf_syncer_finish(out->syncer, error) : SAFER_OK;
}

void sf_sealed_close(sf_sealed_output *out)
{
    sf_syncer_free(out->syncer);
    if (out->fd >= 0) close(out->fd);
    *out = (sf_sealed_output){.fd = -1};
}
