/* safer_merge: the parts of a run in, the run out.
 *
 * A record of a part is the record of the whole run but for its seal, which depends on the configuration. So the first
 * line is the parts' common configuration without "shard", and every record is taken over byte by byte and sealed anew:
 * the first of part 1, the first of part 2, and so on, round after round. What costs little is looked at before
 * anything is written: that the parts belong together, that each is there once, and that each is finished. The seals
 * are checked on the way; the output gets its name when the last was right.
 *
 * Memory does not depend on the number of records: a part has a buffer that holds a few of its lines. Files are opened
 * for the moment in which a buffer is filled, so that there may be more parts than a process may have open files.
 * Should a file change meanwhile, the seals tell. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/progress.h"
#include "run/difference.h"
#include "run/members.h"
#include "run/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 14, OUTPUT = 1 << 16, NAMED = 5 };

typedef struct part {
    const char *path;
    dev_t device;
    ino_t file;
    json_t *config; /* without "shard" */
    sf_sealed_place place;
    size_t whole; /* lines in the file, */
    int is_cut;   /* and whether something follows them */
    char *bytes;  /* (capacity): of the file, [begin, end) not yet read as lines */
    size_t capacity, begin, end;
    off_t next; /* where the file goes on behind them */
} part;

typedef struct merge {
    part *parts;
    size_t count, texts;
    sf_meter meter;
} merge;

/* -------------------------------------------------------------------- bytes */

/* Reads a piece of a file; *got is 0 at its end. */
static safer_status read_piece(const part *p, char *into, size_t size, off_t at, size_t *got, safer_error *error)
{
    const int fd = open(p->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return sf_fail_errno(error, "open", p->path);
    ssize_t done;
    do done = pread(fd, into, size, at);
    while (done < 0 && errno == EINTR);
    safer_status status = done < 0 ? sf_fail_errno(error, "read", p->path) : SAFER_OK;
    close(fd);
    *got = done > 0 ? (size_t)done : 0;
    return status;
}

/* Makes room behind what is not read yet, and fills it. */
static safer_status fill(part *p, size_t *got, safer_error *error)
{
    if (p->begin) memmove(p->bytes, p->bytes + p->begin, p->end - p->begin);
    p->end -= p->begin;
    p->begin = 0;
    if (sf_grow(&p->bytes, &p->capacity, p->end + PIECE, 1)) return sf_fail_memory(error);
    safer_status status = read_piece(p, p->bytes + p->end, p->capacity - p->end, p->next, got, error);
    p->end += *got;
    p->next += (off_t)*got;
    return status;
}

/* The next line, without its newline, which stands behind it. It lives until the next call. */
static safer_status next_line(part *p, char **line, size_t *length, safer_error *error)
{
    size_t looked = 0, got = 0;
    for (;;) {
        char *start = p->bytes + p->begin;
        const size_t here = p->end - p->begin;
        const char *newline = here > looked ? memchr(start + looked, '\n', here - looked) : NULL;
        if (newline) {
            *line = start;
            *length = (size_t)(newline - start);
            p->begin += *length + 1;
            return SAFER_OK;
        }
        looked = here;
        const safer_status status = fill(p, &got, error);
        if (status != SAFER_OK) return status;
        if (!got) return sf_fail(error, SAFER_INPUT, "%s changed while it was read", p->path);
    }
}

/* Counts the whole lines of a file, up to the first byte 0: what follows it did not reach the disk (sealed.h). */
static safer_status count_lines(merge *m, part *p, safer_error *error)
{
    safer_status status;
    char piece[OUTPUT];
    size_t got = 0;
    off_t at = 0;
    do {
        SF_TRY(read_piece(p, piece, sizeof piece, at, &got, error));
        const char *zero = memchr(piece, '\0', got), *stop = zero ? zero : piece + got, *look = piece, *newline;
        for (; look < stop && (newline = memchr(look, '\n', (size_t)(stop - look))); look = newline + 1) p->whole++;
        if (got) p->is_cut = zero || look < stop;
        if (zero) break;
        at += (off_t)got;
    } while (got && !sf_meter_add(&m->meter, 0, 0));
done:
    return status;
}

/* ------------------------------------------------------------------- survey */

/* Looks at a file: what it is part of, and how far it got. */
static safer_status open_part(merge *m, part *p, safer_error *error)
{
    safer_status status;
    struct stat info;
    uint64_t seal;
    char *line = NULL;
    size_t length = 0;
    if (stat(p->path, &info) != 0) return sf_fail_errno(error, "open", p->path);
    if (!S_ISREG(info.st_mode))
        return sf_fail(error, SAFER_INPUT, "%s is a %s, not a part of a run", p->path,
                       S_ISDIR(info.st_mode) ? "folder" : "device or pipe");
    if (info.st_size == 0) return sf_fail(error, SAFER_INPUT, "%s is empty: run its part again", p->path);
    p->device = info.st_dev;
    p->file = info.st_ino;
    SF_TRY(fill(p, &length, error));
    if (p->end == 0 || p->bytes[0] != '{') {
        status = sf_fail(error, SAFER_INPUT, "%s is not the output of a run; what is packed must be unpacked first",
                         p->path);
        goto done;
    }
    SF_TRY(count_lines(m, p, error));
    if (p->whole == 0) {
        status = sf_fail(error, SAFER_INPUT, "%s, line 1: the configuration is cut; run its part again with `resume`",
                         p->path);
        goto done;
    }
    SF_TRY(next_line(p, &line, &length, error));
    SF_TRY(sf_sealed_next(&p->place, line, length, &p->config, &seal, error));
    if (!p->place.shard.count) {
        status = sf_fail(error, SAFER_INPUT, "%s is a whole run, not a part of one", p->path);
        goto done;
    }
    json_object_del(p->config, "shard");
done:
    return status;
}

/* The parts come as they may; afterwards part 1 is the first. */
static int compare_parts(const void *a, const void *b)
{
    const size_t one = ((const part *)a)->place.shard.number, other = ((const part *)b)->place.shard.number;
    return (one > other) - (one < other);
}

static safer_status check_together(const merge *m, safer_error *error)
{
    const part *first = &m->parts[0];
    char difference[256];
    for (size_t i = 1; i < m->count; i++) {
        const part *p = &m->parts[i];
        const sf_shard there = first->place.shard, here = p->place.shard;
        if (sf_difference(difference, sizeof difference, NULL, first->config, p->config))
            return sf_fail(error, SAFER_INPUT, "%s (here) and %s (there) are not of the same run: %s", p->path,
                           first->path, difference);
        if (there.count != here.count)
            return sf_fail(error, SAFER_INPUT, "%s is one of %zu parts, %s one of %zu", p->path, here.count,
                           first->path, there.count);
        if (here.number == m->parts[i - 1].place.shard.number)
            return sf_fail(error, SAFER_INPUT, "%s and %s are both part %zu of %zu", m->parts[i - 1].path, p->path,
                           here.number, here.count);
    }
    return SAFER_OK;
}

/* `list` names the first few of `count` parts. */
static safer_status fail_with_list(const sf_buffer *list, size_t count, size_t of, const char *what, const char *advice,
                                   safer_error *error)
{
    return sf_fail(error, SAFER_INPUT, "%zu of %zu parts %s %s: %s%s%s", count, of, count == 1 ? "is" : "are", what,
                   list->bytes, count > NAMED ? ", ..." : "", advice);
}

static safer_status check_missing(const merge *m, safer_error *error)
{
    const size_t wanted = m->parts[0].place.shard.count;
    safer_status status = SAFER_OK;
    sf_buffer list = {0};
    size_t missing = 0, next = 0;
    int failed = 0;
    for (size_t number = 1; number <= wanted && !failed; number++) {
        if (next < m->count && m->parts[next].place.shard.number == number)
            next++;
        else if (missing++ < NAMED)
            failed = sf_buffer_format(&list, "%s%zu", missing > 1 ? ", " : "", number);
    }
    if (failed)
        status = sf_fail_memory(error);
    else if (missing)
        status = fail_with_list(&list, missing, wanted, "missing", "", error);
    sf_buffer_free(&list);
    return status;
}

static safer_status check_finished(const merge *m, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer list = {0};
    size_t unfinished = 0;
    for (size_t i = 0; i < m->count; i++) {
        const part *p = &m->parts[i];
        const size_t records = p->whole - 1, wanted = sf_shard_size(p->place.shard, m->texts);
        if (records > wanted) {
            status = sf_fail(error, SAFER_INPUT, "%s: its records are %zu, the texts of its part %zu", p->path, records,
                             wanted);
            goto done;
        }
        if (records == wanted && !p->is_cut) continue;
        if (unfinished++ < NAMED && sf_buffer_format(&list, "%s%s (%zu of %zu records)", unfinished > 1 ? ", " : "",
                                                     p->path, records, wanted)) {
            status = sf_fail_memory(error);
            goto done;
        }
    }
    if (unfinished)
        status = fail_with_list(&list, unfinished, m->count, "not finished", "; run again with `resume`", error);
done:
    sf_buffer_free(&list);
    return status;
}

static safer_status survey(merge *m, const char *output, safer_error *error)
{
    safer_status status;
    struct stat info;
    for (size_t i = 0; i < m->count; i++) {
        SF_TRY(open_part(m, &m->parts[i], error));
        if (sf_meter_add(&m->meter, 1, 0)) break;
    }
    SF_TRY(sf_meter_finish(&m->meter, error));
    const int exists = stat(output, &info) == 0;
    for (size_t i = 0; i < m->count && exists; i++)
        if (m->parts[i].device == info.st_dev && m->parts[i].file == info.st_ino) {
            status = sf_fail(error, SAFER_INVALID, "%s is one of the parts: choose another name for the run", output);
            goto done;
        }
    qsort(m->parts, m->count, sizeof *m->parts, compare_parts);
    SF_TRY(check_together(m, error));
    SF_TRY(check_missing(m, error));
    const json_t *texts = json_object_get(json_object_get(m->parts[0].config, "data"), "texts");
    if (!json_is_integer(texts) || json_integer_value(texts) < 0) {
        status = sf_fail(error, SAFER_INPUT,
                         "%s, line 1: not the configuration of a run: \"data.texts\" must be a count",
                         m->parts[0].path);
        goto done;
    }
    m->texts = (size_t)json_integer_value(texts);
    status = check_finished(m, error);
done:
    return status;
}

/* ------------------------------------------------------------------ writing */

/* The first line of the run: its date is that of the part that was begun first. */
static safer_status begin_run(const merge *m, sf_buffer *out, uint64_t *seal, safer_error *error)
{
    const char *earliest = NULL;
    char *line = NULL;
    size_t length;
    for (size_t i = 0; i < m->count; i++) {
        const char *date = json_string_value(json_object_get(m->parts[i].config, "date"));
        if (date && (!earliest || strcmp(date, earliest) < 0)) earliest = date;
    }
    safer_status status = sf_sealed_first(&line, &length, seal, m->parts[0].config, earliest, error);
    if (status == SAFER_OK && sf_buffer_add(out, line, length)) status = sf_fail_memory(error);
    free(line);
    return status;
}

/* Checks a part's next record and adds it as one of the run. */
static safer_status take_record(part *p, sf_buffer *out, uint64_t seal, safer_error *error)
{
    safer_status status;
    json_t *record = NULL;
    char *line = NULL;
    size_t length = 0;
    uint64_t own;
    SF_TRY(next_line(p, &line, &length, error));
    SF_TRY(sf_sealed_next(&p->place, line, length, &record, &own, error));
    sf_reseal(line, length, seal);
    if (sf_buffer_add(out, line, length + 1)) status = sf_fail_memory(error);
done:
    json_decref(record);
    return status;
}

static safer_status write_run(merge *m, const char *output, const safer_progress *progress, safer_error *error)
{
    safer_status status;
    sf_new_file file = {.fd = -1};
    sf_buffer out = {0};
    uint64_t seal = 0;
    sf_meter_start(&m->meter, progress, "merging", m->texts);
    SF_TRY(begin_run(m, &out, &seal, error));
    SF_TRY(sf_new_file_begin(&file, output, error));
    for (size_t row = 0; row < m->texts && !sf_meter_cancelled(&m->meter); row++) {
        SF_TRY(take_record(&m->parts[row % m->count], &out, seal, error));
        if (out.length >= OUTPUT) {
            SF_TRY(sf_new_file_add(&file, out.bytes, out.length, error));
            sf_buffer_clear(&out);
        }
        sf_meter_add(&m->meter, 1, 0);
    }
    SF_TRY(sf_meter_finish(&m->meter, error));
    SF_TRY(sf_new_file_add(&file, out.bytes, out.length, error));
    status = sf_new_file_finish(&file, error);
done:
    sf_new_file_end(&file);
    sf_buffer_free(&out);
    return status;
}

safer_status safer_merge(size_t *records, const char *output, const char *const *parts, size_t count,
                         const safer_progress *progress, safer_error *error)
{
    safer_status status;
    merge m = {.count = count};
    if (!count) return sf_fail(error, SAFER_INVALID, "parts: none is given");
    m.parts = sf_calloc(count, sizeof *m.parts);
    if (!m.parts) return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++)
        m.parts[i] = (part){.path = parts[i], .place = {.path = parts[i], .flags = JSON_ALLOW_NUL}};
    sf_meter_start(&m.meter, progress, "reading the parts", count);
    SF_TRY(survey(&m, output, error));
    SF_TRY(write_run(&m, output, progress, error));
    if (records) *records = m.texts;
done:
    for (size_t i = 0; i < count; i++) {
        json_decref(m.parts[i].config);
        free(m.parts[i].bytes);
    }
    free(m.parts);
    return status;
}
