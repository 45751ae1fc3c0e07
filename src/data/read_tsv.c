/* TSV: one row per line, id TAB label TAB text, or the columns that a header names.
 *
 * A tab, line feed, carriage return or backslash inside a column is written \t \n \r \\ ;
 * nothing else may follow a backslash, so that a file with other habits (Windows paths,
 * LaTeX) is noticed instead of being read wrongly. Empty lines may end the file.
 *
 * A first line that names the text's column is a header (header.c). */
#include "data/header.h"

#include "base/memory.h"

#include "text/unicode.h"

#include <string.h>

static char escaped(char letter)
{
    switch (letter) {
    case '\\': return '\\';
    case 't': return '\t';
    case 'n': return '\n';
    case 'r': return '\r';
    default: return '\0';
    }
}

/* Decodes a column. One without a backslash is returned as it is, others land in
 * `scratch`, where room for the whole row was made. */
static safer_status decode(const sf_loader *loader, sf_span *column, sf_buffer *scratch, size_t line,
                           safer_error *error)
{
    const char *p = column->bytes, *end = p + column->length;
    const char *slash = column->length ? memchr(p, '\\', column->length) : NULL;
    if (!slash) return SAFER_OK;
    char *begin = scratch->bytes + scratch->length, *out = begin;
    while (slash) {
        memcpy(out, p, (size_t)(slash - p));
        out += slash - p;
        if (slash + 1 == end)
            return sf_loader_fail(loader, line, error, "a column ends in a backslash (write \\\\ for one)");
        char meant = escaped(slash[1]);
        if (!meant) {
            uint32_t code;
            return sf_loader_fail(loader, line, error, "unknown escape \\%.*s (known: \\\\ \\t \\n \\r)",
                                  (int)sf_utf8_decode(slash + 1, end, &code), slash + 1);
        }
        *out++ = meant;
        p = slash + 2;
        slash = memchr(p, '\\', (size_t)(end - p));
    }
    memcpy(out, p, (size_t)(end - p));
    out += end - p;
    *column = (sf_span){begin, (size_t)(out - begin)};
    scratch->length += column->length;
    return SAFER_OK;
}

/* Splits a row at its tabs: loader->spans, field_count. */
static safer_status split(sf_loader *r, sf_span row, safer_error *error)
{
    const char *p = row.bytes, *end = p + row.length;
    for (r->field_count = 0;;) {
        const char *tab = memchr(p, '\t', (size_t)(end - p)), *stop = tab ? tab : end;
        if (sf_grow(&r->spans, &r->span_capacity, r->field_count + 1, sizeof *r->spans)) return sf_fail_memory(error);
        r->spans[r->field_count++] = (sf_span){p, (size_t)(stop - p)};
        if (!tab) return SAFER_OK;
        p = tab + 1;
    }
}

/* Whether a column is a name of ours in quotes, which TSV does not know. */
static int is_quoted_name(sf_span column)
{
    return column.length > 2 && column.bytes[0] == '"' && column.bytes[column.length - 1] == '"' &&
           sf_column_named((sf_span){column.bytes + 1, column.length - 2}) != SF_NO_COLUMN;
}

/* Looks at the first line: a header (then *is_header), or id, label, text. */
static safer_status understand(sf_loader *r, sf_span row, size_t line, int *is_header, safer_error *error)
{
    sf_table_head *h = &r->table;
    for (size_t i = 0; i < r->field_count; i++)
        if (is_quoted_name(r->spans[i]))
            return sf_loader_fail(r, line, error, "a header in quotes, which TSV does not have: `format` csv reads it");
    const safer_status status = sf_header_read(r, r->spans, r->field_count, line, r->field_count == 1, is_header,
                                               error);
    if (status != SAFER_OK) return status;
    /* Ids in front of a label and a text need no name of ours: pandas leaves it out, others call it guid. */
    if (*is_header && h->columns == 3 && h->id == SF_NO_COLUMN && h->label == 1 && h->text == 2) h->id = 0;
    if (*is_header) return sf_buffer_add(&r->header, row.bytes, row.length) ? sf_fail_memory(error) : SAFER_OK;
    if (sf_header_wanted(r)) return SAFER_OK;
    *h = (sf_table_head){.columns = 3, .line = 0, .id = 0, .label = 1, .title = SF_NO_COLUMN, .text = 2};
    return SAFER_OK;
}

static safer_status fail_columns(const sf_loader *r, size_t line, safer_error *error)
{
    const size_t n = r->field_count, wanted = r->table.columns;
    if (r->table.line)
        return sf_loader_fail(r, line, error, "%zu column%s, but line %zu has %zu%s", n, n == 1 ? "" : "s",
                              r->table.line, wanted, n > wanted ? " (a tab inside a text is written \\t)" : "");
    return sf_loader_fail(
        r, line, error,
        "%zu column%s, but TSV has 3: id, label, text%s; a header, or `text_column` and `label_column`, "
        "may say otherwise",
        n, n == 1 ? "" : "s", n > wanted ? " (a tab inside a text is written \\t)" : "");
}

/* The decoded value of a column, empty for SF_NO_COLUMN. */
static safer_status value(const sf_loader *r, int column, sf_buffer *scratch, size_t line, sf_span *out,
                          safer_error *error)
{
    *out = column == SF_NO_COLUMN ? (sf_span){"", 0} : r->spans[column];
    return decode(r, out, scratch, line, error);
}

static safer_status read_row(sf_loader *r, sf_span row, size_t line, safer_error *error)
{
    safer_status status;
    sf_buffer *scratch = &r->scratch;
    const sf_table_head *h = &r->table;
    int is_header = 0;
    sf_span id, label, title, text;
    SF_TRY(split(r, row, error));
    if (h->columns == 0) SF_TRY(understand(r, row, line, &is_header, error));
    if (is_header) return SAFER_OK;
    if (r->field_count != h->columns) return fail_columns(r, line, error);
    if (sf_header_again(r, row, r->spans)) return sf_loader_fail(r, line, error, SF_HEADER_INSIDE);
    sf_buffer_clear(scratch);
    if (sf_buffer_reserve(scratch, 2 * row.length + 1)) return sf_fail_memory(error); /* columns, then title and text */
    SF_TRY(value(r, h->id, scratch, line, &id, error));
    SF_TRY(value(r, h->label, scratch, line, &label, error));
    SF_TRY(value(r, h->title, scratch, line, &title, error));
    SF_TRY(value(r, h->text, scratch, line, &text, error));
    if (title.length) {
        const size_t begin = scratch->length;
        (void)sf_buffer_add(scratch, title.bytes, title.length); /* cannot fail: reserved */
        (void)sf_buffer_add_byte(scratch, ' ');
        (void)sf_buffer_add(scratch, text.bytes, text.length);
        text = (sf_span){scratch->bytes + begin, scratch->length - begin};
    }
    status = sf_loader_add(r, id, label, text, line, error);
done:
    return status;
}

safer_status sf_read_tsv(sf_loader *loader, uint64_t *at, size_t *line, safer_error *error)
{
    safer_status status;
    const uint64_t begin = *at;
    const size_t number = *line;
    sf_span row;
    int ends = 0;
    SF_TRY(sf_loader_line(loader, at, line, &row, error));
    if (row.length == 0) {
        SF_TRY(sf_loader_only_ends(loader, begin, &ends, error));
        if (!ends) return sf_loader_fail(loader, number, error, "an empty line inside the file");
        *at = loader->window.source->length;
        return SAFER_OK;
    }
    SF_TRY(sf_loader_check(loader, &row, number, error));
    status = read_row(loader, row, number, error);
done:
    return status;
}
