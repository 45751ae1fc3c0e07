/* Zip files whose entries are stored.
 *
 * From the end of the file (PKWARE's APPNOTE; all numbers little-endian):
 *
 *   1. End of central directory, 22 bytes without a comment: signature PK\5\6, this disk and the directory's (2 each,
 *      0), entries here and in all (2 each), size and offset of the directory (4 each), length of the comment (2, 0).
 *   2. Before it, in large files and in those of PyTorch: the locator of its 64-bit form, 20 bytes, PK\6\7, disk (4),
 *      offset of that form (8), disks (4); and before that the form itself, 56 bytes, PK\6\6, its size without these
 *      12 bytes (8), versions (2 each), disks (4 each), entries (8 each), size and offset of the directory (8 each). A
 *      number of the short form is either the same or all ones.
 *   3. The central directory, up to there: of each entry 46 bytes, its name, extra fields and comment. Sizes and
 *      offsets that are all ones stand in the extra field 1.
 *   4. Before it the entries: a local header of 30 bytes, the name, extra fields (PyTorch pads with one), data. */
#include "base/zip.h"

#include "base/memory.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

enum { END = 22, LOCATOR = 20, END64 = 56, CENTRAL = 46, LOCAL = 30 };

/* What flags an entry may have: sizes behind the data, names in UTF-8. */
enum { FLAGS = 1 << 3 | 1 << 11 };

typedef struct zip_file { /* being read */
    const unsigned char *bytes;
    uint64_t length;
    const char *name;
    uint64_t count, begin, end; /* of the central directory */
} zip_file;

/* Of an entry, as the central directory has it. */
typedef struct record {
    uint64_t size, packed, offset, end; /* `end`: behind its data */
    uint32_t crc;
    sf_zip_entry entry;
} record;

static uint64_t number(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0) value = value << 8 | at[bytes];
    return value;
}

static int is_signed(const unsigned char *at, int third, int fourth)
{
    return at[0] == 'P' && at[1] == 'K' && at[2] == third && at[3] == fourth;
}

int sf_is_zip(const char *bytes, size_t length)
{
    return length >= 4 &&
           (is_signed((const unsigned char *)bytes, 3, 4) || is_signed((const unsigned char *)bytes, 5, 6));
}

/* ------------------------------------------------------------------ the end */

/* A number of the short form agrees with that of the long one. */
static int agree(uint64_t brief, uint64_t full, size_t bytes)
{
    return brief == full || brief == (UINT64_C(1) << 8 * bytes) - 1;
}

static safer_status read_end64(zip_file *z, const unsigned char *end, const unsigned char *locator, safer_error *error)
{
    const uint64_t at = number(locator + 8, 8), from_locator = (uint64_t)(locator - z->bytes);
    if (number(locator + 4, 4) != 0 || number(locator + 16, 4) > 1 || from_locator < END64 ||
        at != from_locator - END64)
        return sf_fail(error, SAFER_INPUT, "%s: the zip file's 64-bit end is not where its locator says", z->name);
    const unsigned char *p = z->bytes + at;
    if (!is_signed(p, 6, 6) || number(p + 4, 8) != END64 - 12 || number(p + 16, 4) != 0 || number(p + 20, 4) != 0)
        return sf_fail(error, SAFER_INPUT, "%s: the zip file's 64-bit end is damaged", z->name);
    z->count = number(p + 32, 8);
    z->begin = number(p + 48, 8);
    z->end = at;
    const uint64_t size = number(p + 40, 8);
    if (number(p + 24, 8) != z->count || !agree(number(end + 8, 2), z->count, 2) ||
        !agree(number(end + 10, 2), z->count, 2) || !agree(number(end + 12, 4), size, 4) ||
        !agree(number(end + 16, 4), z->begin, 4))
        return sf_fail(error, SAFER_INPUT, "%s: the two ends of the zip file contradict each other", z->name);
    return z->begin <= at && size == at - z->begin
               ? SAFER_OK
               : sf_fail(error, SAFER_INPUT, "%s: the zip file's directory does not end where it says", z->name);
}

static safer_status read_end(zip_file *z, safer_error *error)
{
    if (z->length < END || !is_signed(z->bytes + z->length - END, 5, 6))
        return sf_fail(error, SAFER_INPUT, "%s: no zip file ends here (is it truncated?)", z->name);
    const unsigned char *end = z->bytes + z->length - END;
    if (number(end + 20, 2) != 0) return sf_fail(error, SAFER_INPUT, "%s: the zip file's end is damaged", z->name);
    if (z->length >= END + LOCATOR && is_signed(end - LOCATOR, 6, 7)) return read_end64(z, end, end - LOCATOR, error);
    z->count = number(end + 10, 2);
    z->begin = number(end + 16, 4);
    z->end = z->length - END;
    if (number(end + 4, 4) != 0 || number(end + 8, 2) != z->count || z->begin > z->end ||
        number(end + 12, 4) != z->end - z->begin)
        return sf_fail(error, SAFER_INPUT, "%s: the zip file's directory does not end where it says", z->name);
    return SAFER_OK;
}

/* ------------------------------------------------------------------ entries */

/* Numbers that are all ones stand in the extra field 1, in this order. */
static int read_extra(record *r, const unsigned char *extra, size_t length)
{
    uint64_t *const wanted[] = {&r->size, &r->packed, &r->offset};
    size_t next = 0;
    for (size_t at = 0, field; length - at >= 4; at += 4 + field) {
        field = (size_t)number(extra + at + 2, 2);
        if (field > length - at - 4) return -1;
        if (number(extra + at, 2) != 1) continue;
        for (size_t from = 0; next < 3; next++) {
            if (*wanted[next] != UINT32_MAX) continue;
            if (field - from < 8) return -1;
            *wanted[next] = number(extra + at + 4 + from, 8);
            from += 8;
        }
    }
    return 0;
}

/* What a message calls the entry. */
static int shown(const record *r) { return sf_clip(r->entry.name.bytes, r->entry.name.length, 80); }

static safer_status fail_entry(const zip_file *z, const record *r, const char *what, safer_error *error)
{
    return sf_fail(error, SAFER_INPUT, "%s: entry \"%.*s\" %s", z->name, shown(r), r->entry.name.bytes, what);
}

/* Where its data are: behind a local header that has the same name. */
static safer_status find_data(record *r, const zip_file *z, safer_error *error)
{
    const int inside = r->offset <= z->begin && z->begin - r->offset >= LOCAL;
    const unsigned char *local = z->bytes + (inside ? r->offset : 0); /* not even an address beyond the file */
    if (!inside || !is_signed(local, 3, 4))
        return fail_entry(z, r, "is not where the zip file's directory says", error);
    const uint64_t name = number(local + 26, 2), extra = number(local + 28, 2), left = z->begin - r->offset - LOCAL;
    if (name != r->entry.name.length || name + extra > left || memcmp(local + LOCAL, r->entry.name.bytes, name) != 0)
        return fail_entry(z, r, "has another name where it lies", error);
    if (number(local + 8, 2) != 0 || (number(local + 6, 2) & ~(uint64_t)FLAGS))
        return fail_entry(z, r, "is compressed or encrypted where it lies", error);
    if (r->size > left - name - extra) return fail_entry(z, r, "is longer than the file has room for", error);
    r->end = r->offset + LOCAL + name + extra + r->size;
    r->entry.data = (sf_span){(const char *)z->bytes + r->end - r->size, (size_t)r->size};
    return SAFER_OK;
}

static int crc_is(const sf_span data, uint32_t expected)
{
    uLong crc = crc32(0, NULL, 0);
    for (size_t at = 0; at < data.length;) {
        const size_t left = data.length - at, piece = left < 1u << 30 ? left : 1u << 30;
        crc = crc32(crc, (const Bytef *)data.bytes + at, (uInt)piece);
        at += piece;
    }
    return crc == expected;
}

/* The entry at *at, behind which it moves. */
static safer_status read_record(record *r, const zip_file *z, uint64_t *at, safer_error *error)
{
    safer_status status;
    const unsigned char *p = z->bytes + *at;
    if (z->end - *at < CENTRAL || !is_signed(p, 1, 2))
        return sf_fail(error, SAFER_INPUT, "%s: the zip file's directory is damaged at byte %" PRIu64, z->name, *at);
    const uint64_t name = number(p + 28, 2), extra = number(p + 30, 2), comment = number(p + 32, 2);
    if (name + extra + comment > z->end - *at - CENTRAL)
        return sf_fail(error, SAFER_INPUT, "%s: the zip file's directory is damaged at byte %" PRIu64, z->name, *at);
    *r = (record){.size = number(p + 24, 4), .packed = number(p + 20, 4), .offset = number(p + 42, 4)};
    r->crc = (uint32_t)number(p + 16, 4);
    r->entry.name = (sf_span){(const char *)p + CENTRAL, (size_t)name};
    if (read_extra(r, p + CENTRAL + name, (size_t)extra)) return fail_entry(z, r, "has damaged extra fields", error);
    if (number(p + 8, 2) & ~(uint64_t)FLAGS) return fail_entry(z, r, "is encrypted or of an unknown kind", error);
    if (number(p + 10, 2) != 0 || r->size != r->packed)
        return fail_entry(z, r, "is compressed; PyTorch stores entries as they are", error);
    if (number(p + 34, 2) != 0) return fail_entry(z, r, "is on another disk", error);
    SF_TRY(find_data(r, z, error));
    *at += CENTRAL + name + extra + comment;
done:
    return status;
}

static int by_offset(const void *a, const void *b)
{
    const record *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int compare_names(sf_span a, sf_span b)
{
    const size_t length = a.length < b.length ? a.length : b.length;
    const int order = length ? memcmp(a.bytes, b.bytes, length) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int by_name(const void *a, const void *b)
{
    const sf_zip_entry *x = a, *y = b;
    return compare_names(x->name, y->name);
}

/* No bytes belong to two entries, and all are as they were written. Checked before the sums, which take time. */
static safer_status check_records(record *records, size_t count, const zip_file *z, safer_error *error)
{
    qsort(records, count, sizeof *records, by_offset);
    for (size_t i = 1; i < count; i++)
        if (records[i].offset < records[i - 1].end)
            return fail_entry(z, &records[i], "shares bytes with the one before it", error);
    for (size_t i = 0; i < count; i++)
        if (!crc_is(records[i].entry.data, records[i].crc))
            return fail_entry(z, &records[i], "is damaged: its CRC-32 is another", error);
    return SAFER_OK;
}

safer_status sf_zip_open(sf_zip *out, const char *bytes, size_t length, const char *name, safer_error *error)
{
    safer_status status;
    zip_file z = {(const unsigned char *)bytes, length, name, 0, 0, 0};
    record *records = NULL;
    sf_zip zip = {0};
    SF_TRY(read_end(&z, error));
    if (z.count > (z.end - z.begin) / CENTRAL) {
        status = sf_fail(error, SAFER_INPUT, "%s: the zip file's directory has no room for %" PRIu64 " entries", name,
                         z.count);
        goto done;
    }
    records = sf_calloc((size_t)z.count, sizeof *records);
    zip.entries = sf_calloc((size_t)z.count, sizeof *zip.entries);
    if (!records || !zip.entries) {
        status = sf_fail_memory(error);
        goto done;
    }
    uint64_t at = z.begin;
    for (; zip.count < z.count; zip.count++) SF_TRY(read_record(&records[zip.count], &z, &at, error));
    if (at != z.end) {
        status = sf_fail(error, SAFER_INPUT, "%s: the zip file's directory is damaged at byte %" PRIu64, name, at);
        goto done;
    }
    SF_TRY(check_records(records, zip.count, &z, error));
    for (size_t i = 0; i < zip.count; i++) zip.entries[i] = records[i].entry;
    qsort(zip.entries, zip.count, sizeof *zip.entries, by_name);
    for (size_t i = 1; i < zip.count; i++)
        if (by_name(&zip.entries[i - 1], &zip.entries[i]) == 0) {
            status = fail_entry(&z, &(record){.entry = zip.entries[i]}, "is there twice", error);
            goto done;
        }
    *out = zip;
    zip = (sf_zip){0};
done:
    free(records);
    sf_zip_free(&zip);
    return status;
}

void sf_zip_free(sf_zip *zip)
{
    free(zip->entries);
    *zip = (sf_zip){0};
}

const sf_zip_entry *sf_zip_find(const sf_zip *zip, const char *name, size_t length)
{
    const sf_zip_entry wanted = {.name = {name, length}};
    return zip->count ? bsearch(&wanted, zip->entries, zip->count, sizeof *zip->entries, by_name) : NULL;
}
