/* CSV as in RFC 4180: fields between commas; a field in quotes may hold commas, line
 * ends and, doubled, quotes. Where the first record has no comma but, with semicolons or
 * tabs between its fields, is a header, these separate the fields of all records.
 *
 * With a header (a first record that names a text column) the columns are found by their
 * names (header.c); the title, where there is one, is put before the text.
 *
 * Without one the file is like those of Zhang, Zhao and LeCun (2015): class,title,text
 * or class,text, and a class is a whole number. They write a line feed inside a text as \n
 * and leave other backslashes as they are; so do we, for these files only. A first column
 * that is no number is refused: it may be a header, or the text itself.
 *
 * All records have as many columns as the first. A message names the line where the
 * record begins. Empty lines may end the file. */
#include "data/loader.h"

#include "base/memory.h"
#include "data/header.h"

#include <string.h>

/* A field as it stands in the file, without the quotes around it. */
typedef struct sf_field {
    const char *begin;
    size_t length;
    int quoted; /* two quotes inside stand for one */
} field;

static safer_status add_field(sf_loader *r, const char *begin, const char *stop, int quoted, safer_error *error)
{
    if (sf_grow(&r->fields, &r->field_capacity, r->field_count + 1, sizeof *r->fields)) return sf_fail_memory(error);
    r->fields[r->field_count++] = (field){begin, (size_t)(stop - begin), quoted};
    return SAFER_OK;
}

static int at_line_end(const char *p, const char *end)
{
    return p == end || *p == '\n' || (*p == '\r' && p + 1 < end && p[1] == '\n');
}

/* The end of a quoted field whose first byte inside is p: its closing quote, or NULL. */
static const char *closing_quote(const char *p, const char *end)
{
    while ((p = memchr(p, '"', (size_t)(end - p))) != NULL) {
        if (p + 1 == end || p[1] != '"') return p;
        p += 2;
    }
    return NULL;
}

/* Splits the record that begins at p; *stop is where it ends, before its line end. Where it does not end before
 * `end`, which is not the `last` byte of the file, *stop is `end`. `line` is the record's, for messages. */
static safer_status split(sf_loader *r, const char *p, const char *end, int last, size_t line, const char **stop,
                          safer_error *error)
{
    safer_status status = SAFER_OK;
    const char separator = r->table.separator ? r->table.separator : ',';
    r->field_count = 0;
    *stop = end;
    for (const char *record = p;; p++) {
        if (p < end && *p == '"') {
            const char *close = closing_quote(p + 1, end);
            if (!close && !last) {
                p = end;
                break;
            }
            if (!close) {
                size_t begun = line;
                for (const char *c = record; c < p; c++) begun += *c == '\n';
                return sf_loader_fail(r, begun, error, "a quote that begins here never ends");
            }
            SF_TRY(add_field(r, p + 1, close, 1, error));
            p = close + 1;
            if (!last && p + 1 == end && *p == '\r') p = end; /* the line feed may come next */
            if (!at_line_end(p, end) && *p != separator)
                return sf_loader_fail(r, line, error,
                                      "column %zu continues after its closing quote (a quote inside is doubled)",
                                      r->field_count);
        } else {
            const char *begin = p;
            while (!at_line_end(p, end) && *p != separator) p++;
            SF_TRY(add_field(r, begin, p, 0, error));
        }
        if (p == end || *p != separator) break;
    }
    *stop = p;
done:
    return status;
}

/* Appends a field's value to the scratch buffer, where there is room for the record. */
static void decode(sf_loader *r, int column)
{
    const field *f = &r->fields[column];
    const char *p = f->begin, *end = p + f->length;
    char *out = r->scratch.bytes + r->scratch.length;
    while (p < end) {
        if (f->quoted && *p == '"') p++; /* the first of two */
        if (r->table.zhang && *p == '\\' && p + 1 < end && p[1] == 'n') {
            *out++ = '\n';
            p += 2;
        } else {
            *out++ = *p++;
        }
    }
    r->scratch.length = (size_t)(out - r->scratch.bytes);
}

/* ----------------------------------------------------------------- header */

static sf_span span_of(const field *f) { return (sf_span){f->begin, f->length}; }

static safer_status fail_class(const sf_loader *r, size_t line, safer_error *error)
{
    const sf_span class = span_of(&r->fields[0]);
    return sf_loader_fail(
        r, line, error,
        "without a header that names the text's column (text, review, sentence, ...) the first "
        "column is a class number; \"%.*s\" is none; `text_column` and `label_column` name the columns",
        sf_clip(class.bytes, class.length, 60), class.bytes);
}

/* The fields as they stand in the file. */
static safer_status list_fields(sf_loader *r, safer_error *error)
{
    if (sf_grow(&r->spans, &r->span_capacity, r->field_count, sizeof *r->spans)) return sf_fail_memory(error);
    for (size_t i = 0; i < r->field_count; i++) r->spans[i] = span_of(&r->fields[i]);
    return SAFER_OK;
}

/* Whether the fields, which a separator other than the comma made, are names: that of the text is there, as it is usual
 * or as the caller gave it, or the caller gave its number, which with a comma there would not be. */
static int names_text(const sf_loader *r)
{
    const char *wanted = r->wanted[SF_COLUMN_TEXT];
    if (r->field_count < 2) return 0;
    if (wanted && sf_is_whole_number((sf_span){wanted, strlen(wanted)})) return strcmp(wanted, "1") != 0;
    for (size_t i = 0; i < r->field_count; i++)
        if (wanted ? sf_column_is(r->spans[i], wanted) : sf_column_named(r->spans[i]) == SF_COLUMN_TEXT) return 1;
    return 0;
}

/* Finds what separates the fields: semicolons or tabs where the first line has no comma and is a header with them. */
static safer_status find_separator(sf_loader *r, uint64_t at, size_t line, safer_error *error)
{
    safer_status status;
    sf_span first;
    int whole;
    SF_TRY(sf_window_line(&r->window, &at, &first, &whole, error));
    if (first.length && first.bytes[first.length - 1] == '\r') first.length--;
    for (const char *other = ";\t"; *other && !memchr(first.bytes, ',', first.length); other++) {
        const char *stop;
        r->table.separator = *other;
        status = split(r, first.bytes, first.bytes + first.length, 1, line, &stop, NULL);
        if (status == SAFER_MEMORY) return sf_fail_memory(error);
        if (status == SAFER_OK) SF_TRY(list_fields(r, error));
        if (status == SAFER_OK && names_text(r)) return SAFER_OK;
    }
    r->table.separator = ',';
    status = SAFER_OK;
done:
    return status;
}

/* Looks at the first record: a header (then *is_header), or what columns to expect. */
static safer_status understand(sf_loader *r, size_t line, int *is_header, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_table_head *h = &r->table;
    SF_TRY(list_fields(r, error));
    SF_TRY(sf_header_read(r, r->spans, r->field_count, line, 1, is_header, error));
    if (*is_header || sf_header_wanted(r)) return SAFER_OK;
    if (h->columns != 2 && h->columns != 3)
        return sf_loader_fail(r, line, error,
                              "no header with a column \"text\", and %zu column%s; without a header CSV is "
                              "class,text or class,title,text; `text_column` and `label_column` say otherwise",
                              h->columns, h->columns == 1 ? "" : "s");
    h->zhang = 1;
    h->label = 0;
    h->id = SF_NO_COLUMN;
    h->title = h->columns == 3 ? 1 : SF_NO_COLUMN;
    h->text = (int)h->columns - 1;
done:
    return status;
}

/* ---------------------------------------------------------------- records */

/* The value of a column: SF_NO_COLUMN has an empty one. It lies in the scratch buffer. */
static sf_span value(sf_loader *r, int column)
{
    size_t begin = r->scratch.length;
    if (column != SF_NO_COLUMN) decode(r, column);
    return (sf_span){r->scratch.bytes + begin, r->scratch.length - begin};
}

static safer_status read_row(sf_loader *r, size_t record_length, size_t line, safer_error *error)
{
    const sf_table_head *h = &r->table;
    if (r->field_count != h->columns)
        return sf_loader_fail(r, line, error, "%zu column%s, but line %zu has %zu", r->field_count,
                              r->field_count == 1 ? "" : "s", h->line, h->columns);
    if (h->zhang && !sf_is_whole_number(span_of(&r->fields[0]))) return fail_class(r, line, error);
    sf_buffer_clear(&r->scratch);
    if (sf_buffer_reserve(&r->scratch, record_length + 1)) return sf_fail_memory(error);
    sf_span id = value(r, h->id), label = value(r, h->label);
    sf_span text = value(r, h->title);
    if (text.length) (void)sf_buffer_add_byte(&r->scratch, ' '); /* takes the comma's room */
    (void)value(r, h->text);
    text.length = (size_t)(r->scratch.bytes + r->scratch.length - text.bytes);
    return sf_loader_add(r, id, label, text, line, error);
}

/* Splits the record at a place of the file; *length is its own, without its line end, which *next is behind. */
static safer_status find_record(sf_loader *r, uint64_t at, size_t line, sf_span *record, uint64_t *next,
                                safer_error *error)
{
    size_t least = 1;
    for (;;) {
        sf_span seen;
        const char *stop;
        safer_status status = sf_window_at(&r->window, at, least, &seen, error);
        if (status != SAFER_OK) return status;
        const char *end = seen.bytes + seen.length;
        const int last = at + seen.length == r->window.source->length;
        status = split(r, seen.bytes, end, last, line, &stop, error);
        if (status != SAFER_OK) return status;
        if (last || end - stop > 1) { /* what decides where it ends was seen */
            const size_t ending = stop == end ? 0 : *stop == '\r' ? 2 : 1;
            *record = (sf_span){seen.bytes, (size_t)(stop - seen.bytes)};
            *next = at + record->length + ending;
            return SAFER_OK;
        }
        least = 2 * seen.length;
    }
}

safer_status sf_read_csv(sf_loader *loader, uint64_t *at, size_t *line, safer_error *error)
{
    safer_status status;
    const size_t number = *line;
    sf_span record;
    uint64_t next;
    int is_header = 0, ends = 0;
    SF_TRY(sf_loader_only_ends(loader, *at, &ends, error));
    if (ends) {
        *at = loader->window.source->length;
        return SAFER_OK;
    }
    if (loader->table.columns == 0) SF_TRY(find_separator(loader, *at, number, error));
    SF_TRY(find_record(loader, *at, number, &record, &next, error));
    const sf_span raw = record;
    SF_TRY(sf_loader_check(loader, &record, number, error));
    if (record.bytes != raw.bytes) { /* repaired: the fields are now those of the copy */
        const char *copy_stop;
        SF_TRY(split(loader, record.bytes, record.bytes + record.length, 1, number, &copy_stop, error));
    }
    if (loader->header.length && loader->field_count == loader->table.columns) {
        SF_TRY(list_fields(loader, error));
        if (sf_header_again(loader, raw, loader->spans)) return sf_loader_fail(loader, number, error, SF_HEADER_INSIDE);
    }
    if (loader->table.columns == 0) SF_TRY(understand(loader, number, &is_header, error));
    if (is_header && sf_buffer_add(&loader->header, raw.bytes, raw.length)) return sf_fail_memory(error);
    if (!is_header) SF_TRY(read_row(loader, record.length, number, error));
    for (size_t i = 0; i < raw.length; i++) *line += raw.bytes[i] == '\n';
    ++*line;
    *at = next;
done:
    return status;
}
