/* fastText: one row per line, `__label__x` and the text; a line without a label is a text
 * without one. fastText itself allows several labels a line, but a row here has one, so
 * more are an error rather than a silent choice. Blank lines are skipped, as fastText
 * does. The text begins after one space or tab and is otherwise kept as it is. A first line that is nothing
 * but names of columns is refused: fastText's files have no header. */
#include "data/loader.h"

#include "data/columns.h"

#include <string.h>

static const char prefix[] = "__label__";
enum { PREFIX_LENGTH = sizeof prefix - 1 };

static int is_space(char c) { return c == ' ' || c == '\t'; }

static const char *skip_spaces(const char *p, const char *end)
{
    while (p < end && is_space(*p)) p++;
    return p;
}

static int is_label(const char *p, const char *end)
{
    return end - p >= PREFIX_LENGTH && memcmp(p, prefix, PREFIX_LENGTH) == 0;
}

/* Whether every word of a line is the name of a column. */
static int is_header(const char *p, const char *end)
{
    while (p < end) {
        const char *stop = p;
        while (stop < end && !is_space(*stop)) stop++;
        if (sf_column_named((sf_span){p, (size_t)(stop - p)}) == SF_NO_COLUMN) return 0;
        p = skip_spaces(stop, end);
    }
    return 1;
}

static safer_status read_row(sf_loader *loader, sf_span row, size_t line, safer_error *error)
{
    const sf_span none = {0};
    const char *end = row.bytes + row.length, *p = skip_spaces(row.bytes, end);
    if (p == end) return SAFER_OK;
    if (line == 1 && is_header(p, end))
        return sf_loader_fail(loader, line, error, "a header, but the files of fastText have none");
    if (!is_label(p, end)) return sf_loader_add(loader, none, none, row, line, error);

    sf_span label = {p + PREFIX_LENGTH, 0};
    for (p = label.bytes; p < end && !is_space(*p); p++) label.length++;
    if (label.length == 0) return sf_loader_fail(loader, line, error, "__label__ without a name");
    const char *text = p < end ? p + 1 : end, *next = skip_spaces(text, end);
    if (is_label(next, end)) {
        const char *stop = next;
        while (stop < end && !is_space(*stop)) stop++;
        return sf_loader_fail(loader, line, error, "more than one label (__label__%.*s and %.*s); a row has one",
                              sf_clip(label.bytes, label.length, 60), label.bytes,
                              sf_clip(next, (size_t)(stop - next), 60), next);
    }
    return sf_loader_add(loader, none, label, (sf_span){text, (size_t)(end - text)}, line, error);
}

safer_status sf_read_fasttext(sf_loader *loader, uint64_t *at, size_t *line, safer_error *error)
{
    safer_status status;
    const size_t number = *line;
    sf_span row;
    SF_TRY(sf_loader_line(loader, at, line, &row, error));
    SF_TRY(sf_loader_check(loader, &row, number, error));
    status = read_row(loader, row, number, error);
done:
    return status;
}
