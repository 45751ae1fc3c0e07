/* Compressed files and archives, through libarchive, from memory. gzip is undone first,
 * by gzip.c. */
#define _GNU_SOURCE
#include "base/file.h"

#include "base/buffer.h"
#include "base/gzip.h"
#include "base/memory.h"
#include "base/words.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int starts_with(const char *bytes, size_t length, const char *magic, size_t magic_length)
{
    return length >= magic_length && memcmp(bytes, magic, magic_length) == 0;
}

/* No text begins like this; it may begin with "BZh" or have "ustar" somewhere. */
static int is_packed(const char *bytes, size_t length)
{
    return starts_with(bytes, length,
                       "\xfd"
                       "7zXZ",
                       6) ||                                      /* xz, with its NUL */
           starts_with(bytes, length, "\x28\xb5\x2f\xfd", 4) ||   /* zstd */
           (starts_with(bytes, length, "BZh", 3) && length > 4 && /* bzip2: level, then a block or the end */
            (starts_with(bytes + 4, length - 4, "\x31\x41\x59\x26\x53\x59", 6) ||
             starts_with(bytes + 4, length - 4, "\x17\x72\x45\x38\x50\x90", 6))) ||
           starts_with(bytes, length, "PK\x03\x04", 4) ||              /* zip */
           starts_with(bytes, length, "PK\x05\x06", 4) ||              /* zip, empty */
           (length > 265 && (memcmp(bytes + 257, "ustar", 6) == 0 ||   /* tar, with its NUL */
                             memcmp(bytes + 257, "ustar  ", 8) == 0)); /* GNU tar, the same */
}

/* There was a magic number, but libarchive found nothing behind it and hands the bytes
 * over as they are. */
static int is_unrecognised(struct archive *archive)
{
    return archive_format(archive) == ARCHIVE_FORMAT_RAW && archive_filter_code(archive, 0) == ARCHIVE_FILTER_NONE;
}

/* libarchive turns names into the locale's characters: while it works, this thread has
 * one that knows them all. Made once and kept, since it never changes. */
static locale_t utf8_locale;
static pthread_once_t utf8_once = PTHREAD_ONCE_INIT;

static void make_utf8_locale(void) { utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0); }

/* Returns what to hand to leave_utf8. */
static locale_t enter_utf8(void)
{
    pthread_once(&utf8_once, make_utf8_locale);
    return utf8_locale ? uselocale(utf8_locale) : (locale_t)0;
}

static void leave_utf8(locale_t before)
{
    if (before) uselocale(before);
}

/* The member's name without a leading "./", or NULL. */
static const char *member_name(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname_utf8(entry);
    if (!name) name = archive_entry_pathname(entry);
    while (name && name[0] == '.' && name[1] == '/') name += 2;
    return name;
}

static safer_status fail_archive(safer_error *error, struct archive *archive, const char *name)
{
    const char *reason = archive_error_string(archive);
    return sf_fail(error, SAFER_INPUT, "cannot unpack %s: %s", name, reason ? reason : "damaged or truncated");
}

static safer_status open_archive(struct archive **out, const char *bytes, size_t length, const char *name,
                                 safer_error *error)
{
    struct archive *archive = archive_read_new();
    if (!archive) return sf_fail_memory(error);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_zstd(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_format_tar(archive);
    archive_read_support_format_zip(archive);
    archive_read_support_format_raw(archive);
    archive_read_support_format_empty(archive);
    if (archive_read_open_memory(archive, bytes, length) != ARCHIVE_OK) {
        safer_status status = fail_archive(error, archive, name);
        archive_read_free(archive);
        return status;
    }
    *out = archive;
    return SAFER_OK;
}

/* Reads the current member to its end, or until it and the `before` bytes of others are more than `most`. */
static safer_status read_member(struct archive *archive, struct archive_entry *entry, sf_buffer *buffer, size_t before,
                                size_t most, const char *name, safer_error *error)
{
    sf_buffer_clear(buffer);
    /* Trust a stated size only so far: it may be damaged. */
    if (archive_entry_size_is_set(entry) && archive_entry_size(entry) > 0 && archive_entry_size(entry) < 1 << 28 &&
        sf_buffer_reserve(buffer, (size_t)archive_entry_size(entry)))
        return sf_fail_memory(error);
    for (;;) {
        if (sf_buffer_reserve(buffer, 1 << 18)) return sf_fail_memory(error);
        la_ssize_t got = archive_read_data(archive, buffer->bytes + buffer->length,
                                           buffer->capacity - buffer->length - 1);
        if (got < 0) return fail_archive(error, archive, name);
        if (got == 0) break;
        buffer->length += (size_t)got;
        if (before + buffer->length > most) return sf_fail_unpacked(error, name, most);
    }
    buffer->bytes[buffer->length] = '\0';
    return SAFER_OK;
}

/* Two members of one name: of a tar archive, which may have been added to, the last counts, as it does when it is
 * unpacked. Programs differ about which one of a zip archive it is. */
static int must_differ(struct archive *archive)
{
    return (archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP;
}

static safer_status fail_twice(safer_error *error, const char *name, const char *member)
{
    return sf_fail(error, SAFER_INPUT, "%s holds two members %s; which one counts is not clear", name, member);
}

/* Adds the name of one more member to the list that an error message shows. */
static safer_status list_name(sf_buffer *list, const char *name, safer_error *error)
{
    if (list->length > 300) return SAFER_OK;
    if (sf_buffer_format(list, "%s%s", list->length ? ", " : "", name) ||
        (list->length > 300 && sf_buffer_add_string(list, ", ...")))
        return sf_fail_memory(error);
    return SAFER_OK;
}

/* Whether what was asked for is one file of the archive. */
static safer_status check_choice(const char *name, const char *member, int found, int files, const char *list,
                                 safer_error *error)
{
    if (!found && member) return sf_fail(error, SAFER_INPUT, "%s has no member %s (it has: %s)", name, member, list);
    if (!found) return sf_fail(error, SAFER_INPUT, "%s holds no file", name);
    if (member || files <= 1) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s holds %d files; name one as %s:MEMBER (%s)", name, files, name, list);
}

/* What libarchive understands: everything but gzip. */
static safer_status unpack_archive(sf_file *out, const char *bytes, size_t length, const char *name, const char *member,
                                   safer_error *error)
{
    safer_status status;
    struct archive *archive = NULL;
    struct archive_entry *entry;
    sf_buffer contents = {0}, list = {0};
    int code, files = 0, found = 0;
    SF_TRY(open_archive(&archive, bytes, length, name, error));
    while ((code = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || code == ARCHIVE_WARN) {
        int raw = archive_format(archive) == ARCHIVE_FORMAT_RAW;
        if (is_unrecognised(archive)) {
            status = fail_archive(error, archive, name);
            goto done;
        }
        const char *path = raw ? name : member_name(entry);
        if (!raw && archive_entry_filetype(entry) != AE_IFREG) continue;
        if (raw && member) {
            status = sf_fail(error, SAFER_INPUT, "%s is not an archive, so it has no member %s", name, member);
            goto done;
        }
        if (member && (!path || strcmp(path, member) != 0)) {
            SF_TRY(list_name(&list, path ? path : "?", error));
            continue;
        }
        if (member && files && must_differ(archive)) {
            status = fail_twice(error, name, member);
            goto done;
        }
        if (files++ == 0 || member) {
            SF_TRY(read_member(archive, entry, &contents, 0, sf_unpacked_most(length), name, error));
            found = 1;
        }
        SF_TRY(list_name(&list, path ? path : "?", error));
    }
    if (code == ARCHIVE_EOF && archive_format(archive) == ARCHIVE_FORMAT_EMPTY && !member) {
        if (sf_buffer_add(&contents, "", 0)) { /* nothing, compressed */
            status = sf_fail_memory(error);
            goto done;
        }
        found = 1;
    }
    if (code != ARCHIVE_EOF)
        status = fail_archive(error, archive, name);
    else
        status = check_choice(name, member, found, files, list.bytes ? list.bytes : "nothing", error);
    if (status == SAFER_OK) {
        *out = (sf_file){.bytes = contents.bytes, .length = contents.length, .heap = contents.bytes};
        contents = (sf_buffer){0};
    }
done:
    if (archive) archive_read_free(archive);
    sf_buffer_free(&contents);
    sf_buffer_free(&list);
    return status;
}

int sf_is_packed(const char *bytes, size_t length) { return sf_is_gzip(bytes, length) || is_packed(bytes, length); }

safer_status sf_unpack(sf_file *out, const char *bytes, size_t length, const char *name, const char *member,
                       safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer inner = {0};
    int gzip = sf_is_gzip(bytes, length);
    while (member && member[0] == '.' && member[1] == '/') member += 2;
    if (gzip) {
        SF_TRY(sf_gunzip(&inner, bytes, length, name, error));
        bytes = inner.bytes;
        length = inner.length;
    }
    if (is_packed(bytes, length)) {
        locale_t before = enter_utf8();
        status = unpack_archive(out, bytes, length, name, member, error);
        leave_utf8(before);
    } else if (member) {
        status = sf_fail(error, SAFER_INPUT, "%s is not an archive, so it has no member %s", name, member);
    } else {
        *out = (sf_file){.bytes = bytes, .length = length, .heap = inner.bytes};
        inner = (sf_buffer){0};
    }
done:
    sf_buffer_free(&inner);
    return status;
}

static safer_status add_name(sf_words *names, const char *archive, const char *member, safer_error *error)
{
    const size_t before = names->count;
    uint32_t id;
    safer_status status = sf_words_add(names, member, strlen(member), &id, error);
    return status == SAFER_OK && names->count == before ? fail_twice(error, archive, member) : status;
}

safer_status sf_archive_walk(const char *path, const char *prefix, sf_member_visit visit, void *context,
                             safer_error *error)
{
    safer_status status;
    sf_file raw = {0};
    struct archive *archive = NULL;
    struct archive_entry *entry;
    sf_buffer contents = {0}, inner = {0};
    sf_words names = {0};
    locale_t before = enter_utf8();
    int code;
    while (prefix && prefix[0] == '.' && prefix[1] == '/') prefix += 2;
    size_t prefix_length = prefix ? strlen(prefix) : 0;
    while (prefix_length && prefix[prefix_length - 1] == '/') prefix_length--;
    SF_TRY(sf_file_load(&raw, path, error));
    const char *bytes = raw.bytes;
    size_t length = raw.length;
    if (sf_is_gzip(bytes, length)) {
        SF_TRY(sf_gunzip(&inner, bytes, length, path, error));
        bytes = inner.bytes;
        length = inner.length;
    }
    if (!is_packed(bytes, length)) {
        status = inner.bytes ? sf_fail(error, SAFER_INPUT, "%s is a compressed file, not an archive", path)
                             : sf_fail(error, SAFER_INPUT, "%s is not an archive", path);
        goto done;
    }
    SF_TRY(open_archive(&archive, bytes, length, path, error));
    const size_t most = sf_unpacked_most(length);
    size_t total = 0; /* of all members */
    while ((code = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || code == ARCHIVE_WARN) {
        if (is_unrecognised(archive)) {
            status = fail_archive(error, archive, path);
            goto done;
        }
        if (archive_format(archive) == ARCHIVE_FORMAT_RAW) {
            status = sf_fail(error, SAFER_INPUT, "%s is a compressed file, not an archive", path);
            goto done;
        }
        const char *name = member_name(entry);
        if (!name || archive_entry_filetype(entry) != AE_IFREG) continue;
        if (prefix_length) {
            if (strncmp(name, prefix, prefix_length) != 0 || name[prefix_length] != '/') continue;
            name += prefix_length + 1;
        }
        if (must_differ(archive)) SF_TRY(add_name(&names, path, name, error));
        SF_TRY(read_member(archive, entry, &contents, total, most, path, error));
        total += contents.length;
        SF_TRY(visit(context, name, contents.bytes, contents.length, error));
    }
    if (code != ARCHIVE_EOF) status = fail_archive(error, archive, path);
done:
    if (archive) archive_read_free(archive);
    sf_buffer_free(&contents);
    sf_buffer_free(&inner);
    sf_words_free(&names);
    sf_file_free(&raw);
    leave_utf8(before);
    return status;
}
