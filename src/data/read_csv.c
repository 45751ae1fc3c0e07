/* CSV as in RFC 4180: fields between commas; a field in quotes may hold commas, line
 * ends and, doubled, quotes.
 *
 * With a header (a first record that names a text column) the columns are found by their
 * names (columns.h); the title, where there is one, is put before the text.
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
#include "data/columns.h"

#include <string.h>

/* A field as it stands in the file, without the quotes around it. */
typedef struct field {
    const char *begin;
    size_t length;
    int quoted; /* two quotes inside stand for one */
} field;

typedef struct reader {
    sf_loader *loader;
    field *fields; /* of the record at hand */
    size_t count, capacity;
    size_t columns;             /* of every record */
    size_t head_line;           /* where the first record is */
    sf_span header;             /* it, as it stands in the file, when it is a header */
    int id, label, title, text; /* their columns */
    int zhang;
    sf_buffer scratch; /* decoded fields */
} reader;

static safer_status add_field(reader *r, const char *begin, const char *stop, int quoted, safer_error *error)
{
    if (sf_grow(&r->fields, &r->capacity, r->count + 1, sizeof *r->fields)) return sf_fail_memory(error);
    r->fields[r->count++] = (field){begin, (size_t)(stop - begin), quoted};
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

/* Splits the record that begins at p; *stop is where it ends, before its line end.
 * `line` is the record's, for messages. */
static safer_status split(reader *r, const char *p, const char *end, size_t line, const char **stop, safer_error *error)
{
    safer_status status = SAFER_OK;
    r->count = 0;
    for (const char *record = p;; p++) {
        if (p < end && *p == '"') {
            const char *close = closing_quote(p + 1, end);
            if (!close) {
                size_t begun = line;
                for (const char *c = record; c < p; c++) begun += *c == '\n';
                return sf_loader_fail(r->loader, begun, error, "a quote that begins here never ends");
            }
            SF_TRY(add_field(r, p + 1, close, 1, error));
            p = close + 1;
            if (!at_line_end(p, end) && *p != ',')
                return sf_loader_fail(r->loader, line, error,
                                      "column %zu continues after its closing quote (a quote inside is doubled)",
                                      r->count);
        } else {
            const char *begin = p;
            while (!at_line_end(p, end) && *p != ',') p++;
            SF_TRY(add_field(r, begin, p, 0, error));
        }
        if (p == end || *p != ',') break;
    }
    *stop = p;
done:
    return status;
}

/* Appends a field's value to the scratch buffer, where there is room for the record. */
static void decode(reader *r, int column)
{
    const field *f = &r->fields[column];
    const char *p = f->begin, *end = p + f->length;
    char *out = r->scratch.bytes + r->scratch.length;
    while (p < end) {
        if (f->quoted && *p == '"') p++; /* the first of two */
        if (r->zhang && *p == '\\' && p + 1 < end && p[1] == 'n') {
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

/* Where the column with the first of its names that is there is. Twice the same name is an error. */
static safer_status find_column(const reader *r, sf_column wanted, int *column, size_t line, safer_error *error)
{
    *column = SF_NO_COLUMN;
    for (const char *const *names = sf_column_names(wanted); *names && *column == SF_NO_COLUMN; names++) {
        for (size_t i = 0; i < r->count; i++) {
            if (!sf_column_is(span_of(&r->fields[i]), *names)) continue;
            if (*column != SF_NO_COLUMN)
                return sf_loader_fail(r->loader, line, error, "the header names the column \"%s\" twice", *names);
            *column = (int)i;
        }
    }
    return SAFER_OK;
}

static safer_status fail_class(const reader *r, size_t line, safer_error *error)
{
    const sf_span class = span_of(&r->fields[0]);
    return sf_loader_fail(r->loader, line, error,
                          "without a header that names the text's column (text, review, sentence, ...) the first "
                          "column is a class number; \"%.*s\" is none",
                          sf_clip(class.bytes, class.length, 60), class.bytes);
}

/* Looks at the first record: a header (then *is_header), or what columns to expect. */
static safer_status understand(reader *r, size_t line, int *is_header, safer_error *error)
{
    safer_status status = SAFER_OK;
    r->columns = r->count;
    r->head_line = line;
    /* A first review may have the title "Review": a class number distinguishes it from a header. */
    if (!sf_is_whole_number(span_of(&r->fields[0]))) {
        SF_TRY(find_column(r, SF_COLUMN_TEXT, &r->text, line, error));
        SF_TRY(find_column(r, SF_COLUMN_LABEL, &r->label, line, error));
        SF_TRY(find_column(r, SF_COLUMN_ID, &r->id, line, error));
        SF_TRY(find_column(r, SF_COLUMN_TITLE, &r->title, line, error));
        *is_header = r->text != SF_NO_COLUMN;
        if (*is_header) return SAFER_OK;
    }
    *is_header = 0;
    if (r->columns != 2 && r->columns != 3)
        return sf_loader_fail(r->loader, line, error,
                              "no header with a column \"text\", and %zu column%s; without a header CSV is "
                              "class,text or class,title,text",
                              r->columns, r->columns == 1 ? "" : "s");
    r->zhang = 1;
    r->label = 0;
    r->id = SF_NO_COLUMN;
    r->title = r->columns == 3 ? 1 : SF_NO_COLUMN;
    r->text = (int)r->columns - 1;
done:
    return status;
}

/* Files that were joined have headers inside: the same bytes again, or names of columns where label and text belong. */
static int is_header_again(const reader *r, sf_span record)
{
    const size_t mark = sf_mark_length(record.bytes, record.length);
    if (!r->header.length || r->columns < 2) return 0; /* one column: a text may be the word "text" */
    if (record.length - mark == r->header.length && memcmp(record.bytes + mark, r->header.bytes, r->header.length) == 0)
        return 1;
    return r->count == r->columns && r->label != SF_NO_COLUMN &&
           sf_column_named(span_of(&r->fields[r->label])) == SF_COLUMN_LABEL &&
           sf_column_named(span_of(&r->fields[r->text])) == SF_COLUMN_TEXT;
}

/* ---------------------------------------------------------------- records */

/* The value of a column: SF_NO_COLUMN has an empty one. It lies in the scratch buffer. */
static sf_span value(reader *r, int column)
{
    size_t begin = r->scratch.length;
    if (column != SF_NO_COLUMN) decode(r, column);
    return (sf_span){r->scratch.bytes + begin, r->scratch.length - begin};
}

static safer_status read_row(reader *r, size_t record_length, size_t line, safer_error *error)
{
    if (r->count != r->columns)
        return sf_loader_fail(r->loader, line, error, "%zu column%s, but line %zu has %zu", r->count,
                              r->count == 1 ? "" : "s", r->head_line, r->columns);
    if (r->zhang && !sf_is_whole_number(span_of(&r->fields[0]))) return fail_class(r, line, error);
    sf_buffer_clear(&r->scratch);
    if (sf_buffer_reserve(&r->scratch, record_length + 1)) return sf_fail_memory(error);
    sf_span id = value(r, r->id), label = value(r, r->label);
    sf_span text = value(r, r->title);
    if (text.length) (void)sf_buffer_add_byte(&r->scratch, ' '); /* takes the comma's room */
    (void)value(r, r->text);
    text.length = (size_t)(r->scratch.bytes + r->scratch.length - text.bytes);
    return sf_loader_add(r->loader, id, label, text, line, error);
}

static const char *skip_line_end(const char *p, const char *end)
{
    if (p < end && *p == '\r') p++;
    return p < end ? p + 1 : p;
}

safer_status sf_read_csv(sf_loader *loader, const char *bytes, size_t length, safer_error *error)
{
    safer_status status = SAFER_OK;
    reader r = {.loader = loader};
    const char *end = bytes + sf_lines_trim(bytes, length);
    size_t line = 1;
    for (const char *p = bytes, *stop; p < end; p = skip_line_end(stop, end)) {
        SF_TRY(split(&r, p, end, line, &stop, error));
        sf_span record = {p, (size_t)(stop - p)};
        SF_TRY(sf_loader_check(loader, &record, line, error));
        if (record.bytes != p) { /* repaired: the fields are now those of the copy */
            const char *copy_stop;
            SF_TRY(split(&r, record.bytes, record.bytes + record.length, line, &copy_stop, error));
        }
        int is_header = 0;
        if (is_header_again(&r, (sf_span){p, (size_t)(stop - p)})) {
            status = sf_loader_fail(loader, line, error, SF_HEADER_INSIDE);
            goto done;
        }
        if (r.columns == 0) SF_TRY(understand(&r, line, &is_header, error));
        if (is_header) r.header = (sf_span){p, (size_t)(stop - p)};
        if (!is_header) SF_TRY(read_row(&r, record.length, line, error));
        for (const char *c = p; c < stop; c++) line += *c == '\n';
        line++;
    }
done:
    free(r.fields);
    sf_buffer_free(&r.scratch);
    return status;
}
