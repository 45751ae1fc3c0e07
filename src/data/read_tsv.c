/* TSV: one row per line, id TAB label TAB text.
 *
 * A tab, line feed, carriage return or backslash inside a column is written \t \n \r \\ ;
 * nothing else may follow a backslash, so that a file with other habits (Windows paths,
 * LaTeX) is noticed instead of being read wrongly. Empty lines may end the file.
 *
 * A first line that names the columns in this order is skipped; one that names them in
 * another is refused. */
#include "data/loader.h"

#include "data/columns.h"
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
    const char *slash = memchr(p, '\\', column->length);
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

/* Whether the columns are names: *is_header. Names in another order, and names after line 1, are refused. */
static safer_status look_for_header(const sf_loader *loader, const sf_span *column, size_t line, int *is_header,
                                    safer_error *error)
{
    const int label = sf_column_named(column[1]), text = sf_column_named(column[2]);
    *is_header = label == SF_COLUMN_LABEL && text == SF_COLUMN_TEXT;
    if (line > 1) return *is_header ? sf_loader_fail(loader, line, error, SF_HEADER_INSIDE) : SAFER_OK;
    const int names = (sf_column_named(column[0]) >= 0) + (label >= 0) + (text >= 0);
    if (*is_header || names < 2) return SAFER_OK;
    return sf_loader_fail(loader, 1, error,
                          "a header (\"%.*s\", \"%.*s\", \"%.*s\"), but the columns of TSV are id, label, text in "
                          "this order",
                          sf_clip(column[0].bytes, column[0].length, 40), column[0].bytes,
                          sf_clip(column[1].bytes, column[1].length, 40), column[1].bytes,
                          sf_clip(column[2].bytes, column[2].length, 40), column[2].bytes);
}

static safer_status read_row(sf_loader *loader, sf_span row, size_t line, safer_error *error)
{
    sf_buffer *scratch = &loader->scratch;
    sf_span column[3];
    size_t columns = 0;
    const char *p = row.bytes, *end = p + row.length;
    for (;;) {
        const char *tab = memchr(p, '\t', (size_t)(end - p)), *stop = tab ? tab : end;
        if (columns < 3) column[columns] = (sf_span){p, (size_t)(stop - p)};
        columns++;
        if (!tab) break;
        p = tab + 1;
    }
    if (columns != 3)
        return sf_loader_fail(loader, line, error, "%zu column%s, but TSV has 3: id, label, text%s", columns,
                              columns == 1 ? "" : "s", columns > 3 ? " (a tab inside a text is written \\t)" : "");
    int is_header = 0;
    safer_status status = look_for_header(loader, column, line, &is_header, error);
    if (status != SAFER_OK || is_header) return status;
    sf_buffer_clear(scratch);
    if (sf_buffer_reserve(scratch, row.length)) return sf_fail_memory(error);
    for (size_t i = 0; i < 3; i++) {
        status = decode(loader, &column[i], scratch, line, error);
        if (status != SAFER_OK) return status;
    }
    return sf_loader_add(loader, column[0], column[1], column[2], line, error);
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
