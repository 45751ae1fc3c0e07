/* Files that are read piece by piece. */
#define _GNU_SOURCE
#include "base/source.h"

#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 16 };

/* ----------------------------------------------------------------- sources */

static safer_status fail_changed(const sf_source *source, safer_error *error)
{
    return sf_fail(error, SAFER_INPUT, "%s was changed while it was read; try again when it is whole", source->path);
}

/* Opens a regular file that holds something; *opened tells whether it is one. Its size is 0 in /proc. */
static safer_status open_regular(sf_source *out, const char *path, int *opened, safer_error *error)
{
    struct stat info;
    *opened = 0;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return SAFER_OK;
    const int fd = sf_open(path, O_RDONLY);
    if (fd < 0) return sf_fail_errno(error, "open", path);
    if (fstat(fd, &out->begun) != 0 || !S_ISREG(out->begun.st_mode) || out->begun.st_size == 0) {
        close(fd);
        return SAFER_OK;
    }
    out->length = (uint64_t)out->begun.st_size;
    out->hashes = sf_calloc((size_t)((out->length + BLOCK - 1) / BLOCK), sizeof *out->hashes);
    if (!out->hashes) {
        close(fd);
        return sf_fail_memory(error);
    }
    out->fd = fd;
    *opened = 1;
    return SAFER_OK;
}

void sf_source_close(sf_source *source)
{
    if (source->hashes) close(source->fd);
    free(source->hashes);
    sf_file_free(&source->file);
    *source = (sf_source){0};
}

safer_status sf_source_open(sf_source *out, const char *path, int unpack, safer_error *error)
{
    safer_status status;
    sf_window window = {.source = out};
    sf_span start;
    int opened = 0, packed = 0;
    *out = (sf_source){.path = path};
    SF_TRY(open_regular(out, path, &opened, error));
    if (opened && unpack) {
        SF_TRY(sf_window_at(&window, 0, 1, &start, error));
        packed = sf_is_packed(start.bytes, start.length);
    }
    if (opened && !packed) goto done;
    sf_source_close(out);
    out->path = path;
    SF_TRY((unpack ? sf_file_read : sf_file_load)(&out->file, path, error));
    out->length = out->file.length;
done:
    sf_window_free(&window);
    return status;
}

safer_status sf_source_check(const sf_source *source, safer_error *error)
{
    struct stat now;
    if (!source->hashes) return SAFER_OK;
    if (fstat(source->fd, &now) != 0 || now.st_size != source->begun.st_size ||
        now.st_mtim.tv_sec != source->begun.st_mtim.tv_sec || now.st_mtim.tv_nsec != source->begun.st_mtim.tv_nsec)
        return fail_changed(source, error);
    return SAFER_OK;
}

/* ----------------------------------------------------------------- windows */

void sf_window_free(sf_window *window)
{
    free(window->bytes);
    *window = (sf_window){0};
}

/* Reads a block of a file, which must be what it was. */
static safer_status read_block(const sf_source *source, uint64_t number, char *into, size_t *length, safer_error *error)
{
    const uint64_t begin = number * BLOCK, left = source->length - begin;
    const size_t size = left < BLOCK ? (size_t)left : BLOCK;
    size_t have = 0;
    ssize_t got = 1;
    while (have < size && got != 0) {
        got = pread(source->fd, into + have, size - have, (off_t)(begin + have));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return sf_fail_errno(error, "read", source->path);
        have += (size_t)got;
    }
    if (have < size) return fail_changed(source, error);
    const uint64_t hash = sf_hash(into, size, 0) | 1;
    if (source->hashes[number] == 0) source->hashes[number] = hash;
    *length = size;
    return source->hashes[number] == hash ? SAFER_OK : fail_changed(source, error);
}

/* Makes the window begin with the block `first`, and keeps what it has of that and the following ones. */
static void move_to(sf_window *window, uint64_t first)
{
    const uint64_t begin = first * BLOCK;
    const int inside = begin >= window->begin && begin < window->begin + window->have;
    const size_t gone = inside ? (size_t)(begin - window->begin) : window->have;
    if (gone && gone < window->have) memmove(window->bytes, window->bytes + gone, window->have - gone);
    window->have -= gone;
    window->begin = begin;
}

safer_status sf_window_at(sf_window *window, uint64_t offset, size_t least, sf_span *out, safer_error *error)
{
    const sf_source *source = window->source;
    if (offset >= source->length) {
        *out = (sf_span){"", 0};
        return SAFER_OK;
    }
    if (!source->hashes) {
        *out = (sf_span){source->file.bytes + offset, (size_t)(source->length - offset)};
        return SAFER_OK;
    }
    const uint64_t left = source->length - offset, stop = offset + (least < left ? least : left);
    if (offset < window->begin || stop > window->begin + window->have) {
        const uint64_t first = offset / BLOCK, count = (stop + BLOCK - 1) / BLOCK - first;
        move_to(window, first);
        if (sf_grow(&window->bytes, &window->capacity, (size_t)count * BLOCK, 1)) return sf_fail_memory(error);
        while (window->begin + window->have < stop) {
            size_t got = 0;
            const safer_status status = read_block(source, first + window->have / BLOCK, window->bytes + window->have,
                                                   &got, error);
            if (status != SAFER_OK) return status;
            window->have += got;
        }
    }
    *out = (sf_span){window->bytes + (offset - window->begin), (size_t)(window->begin + window->have - offset)};
    return SAFER_OK;
}

safer_status sf_window_line(sf_window *window, uint64_t *offset, sf_span *line, int *whole, safer_error *error)
{
    size_t looked = 0, least = 1;
    for (;;) {
        const safer_status status = sf_window_at(window, *offset, least, line, error);
        if (status != SAFER_OK) return status;
        const char *newline = memchr(line->bytes + looked, '\n', line->length - looked);
        *whole = newline != NULL;
        if (newline) {
            line->length = (size_t)(newline - line->bytes);
            *offset += line->length + 1;
            return SAFER_OK;
        }
        if (*offset + line->length >= window->source->length) return SAFER_OK;
        looked = line->length;
        least = 2 * looked;
    }
}
