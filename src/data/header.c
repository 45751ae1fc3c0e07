/* Which column is which. docs/data.md lists the names that are known, and says what the options do. */
#include "data/header.h"

#include "text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const options_of[SF_COLUMNS] =
    {[SF_COLUMN_ID] = "id", [SF_COLUMN_LABEL] = "label", [SF_COLUMN_TITLE] = "title", [SF_COLUMN_TEXT] = "text"};

/* ------------------------------------------------------- what the caller says */

static sf_span span_of(const char *text) { return (sf_span){text, strlen(text)}; }

/* One entry of "0=neg,1=pos" after another: 0 at the end. An entry without '=' has no name. */
static int next_entry(const char **at, sf_span *label, sf_span *name)
{
    if (!**at) return 0;
    const size_t length = strcspn(*at, ","), split = strcspn(*at, "=,");
    *label = (sf_span){*at, split};
    *name = split < length ? (sf_span){*at + split + 1, length - split - 1} : (sf_span){"", 0};
    *at += length;
    if (**at == ',') ++*at;
    return 1;
}

static int same(sf_span a, sf_span b) { return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0; }

sf_span sf_label_renamed(const char *map, sf_span label)
{
    sf_span from, to;
    if (!map) return label;
    while (next_entry(&map, &from, &to))
        if (same(from, label)) return to;
    return (sf_span){"", 0};
}

static safer_status check_labels(const char *map, safer_error *error)
{
    sf_span from, to;
    if (!*map) return sf_fail(error, SAFER_INVALID, "`labels`: none given (as in 0=neg,1=pos)");
    for (const char *at = map; next_entry(&at, &from, &to);) {
        if (!from.length || !to.length)
            return sf_fail(error, SAFER_INVALID, "`labels` %.200s: \"%.*s\" is no LABEL=NAME (as in 0=neg,1=pos)", map,
                           sf_clip(from.bytes, from.length, 60), from.bytes);
        sf_span other, name;
        const char *rest = at;
        while (next_entry(&rest, &other, &name))
            if (same(from, other))
                return sf_fail(error, SAFER_INVALID, "`labels` %.200s: \"%.*s\" is there twice", map,
                               sf_clip(from.bytes, from.length, 60), from.bytes);
    }
    return SAFER_OK;
}

safer_status sf_header_check(const safer_data_options *o, safer_error *error)
{
    const char *const wanted[SF_COLUMNS] = {o->id_column, o->label_column, o->title_column, o->text_column};
    for (int c = 0; c < SF_COLUMNS; c++) {
        if (wanted[c] && !*wanted[c])
            return sf_fail(error, SAFER_INVALID, "`%s_column`: a name or a number from 1 on is needed", options_of[c]);
        for (int d = 0; wanted[c] && d < c; d++)
            if (wanted[d] && strcmp(wanted[c], wanted[d]) == 0)
                return sf_fail(error, SAFER_INVALID, "`%s_column` and `%s_column` are both \"%s\"", options_of[d],
                               options_of[c], wanted[c]);
    }
    return o->labels ? check_labels(o->labels, error) : SAFER_OK;
}

int sf_header_wanted(const sf_loader *loader)
{
    int any = 0;
    for (int c = 0; c < SF_COLUMNS; c++) any |= loader->wanted[c] != NULL;
    return any;
}

/* ------------------------------------------------------------------- finding */

/* The number of the field that has this name, or SF_NO_COLUMN. Twice the same name is an error. */
static safer_status find_name(const sf_loader *loader, const char *name, const sf_span *fields, size_t count,
                              int *column, size_t line, safer_error *error)
{
    *column = SF_NO_COLUMN;
    for (size_t i = 0; i < count; i++) {
        if (!sf_column_is(fields[i], name)) continue;
        if (*column != SF_NO_COLUMN)
            return sf_loader_fail(loader, line, error, "the header names the column \"%s\" twice", name);
        *column = (int)i;
    }
    return SAFER_OK;
}

/* Where the column with the first of its usual names that is there is. */
static safer_status find_usual(const sf_loader *loader, sf_column wanted, const sf_span *fields, size_t count,
                               int *column, size_t line, safer_error *error)
{
    safer_status status = SAFER_OK;
    *column = SF_NO_COLUMN;
    for (const char *const *name = sf_column_names(wanted); *name && *column == SF_NO_COLUMN; name++)
        SF_TRY(find_name(loader, *name, fields, count, column, line, error));
done:
    return status;
}

static safer_status fail_missing(const sf_loader *loader, int column, const sf_span *fields, size_t count, size_t line,
                                 safer_error *error)
{
    char list[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const int room = sf_clip(fields[i].bytes, fields[i].length, 40);
        if (used + (size_t)room + 8 > sizeof list) {
            snprintf(list + used, sizeof list - used, ", ...");
            break;
        }
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", i ? ", " : "", room, fields[i].bytes);
    }
    return sf_loader_fail(loader, line, error, "no column \"%.60s\" for `%s_column`; the line has %s",
                          loader->wanted[column], options_of[column], list);
}

/* What the caller says of a column: by its number, or by its name in the header. */
static safer_status find_wanted(const sf_loader *loader, int column, const sf_span *fields, size_t count, int *found,
                                size_t line, safer_error *error)
{
    const char *name = loader->wanted[column];
    if (!sf_is_whole_number(span_of(name))) {
        const safer_status status = find_name(loader, name, fields, count, found, line, error);
        if (status != SAFER_OK || *found != SF_NO_COLUMN) return status;
        return fail_missing(loader, column, fields, count, line, error);
    }
    const unsigned long long number = strlen(name) < 10 ? strtoull(name, NULL, 10) : 0;
    if (number < 1 || number > count)
        return sf_loader_fail(loader, line, error, "no column %.20s for `%s_column`: the line has %zu column%s", name,
                              options_of[column], count, count == 1 ? "" : "s");
    *found = (int)number - 1;
    return SAFER_OK;
}

/* Whether the first record, whose columns the caller gave by number, names them. */
static int names_columns(const int *at, const sf_span *fields)
{
    for (int c = 0; c < SF_COLUMNS; c++)
        if ((c == SF_COLUMN_LABEL || c == SF_COLUMN_TEXT) && at[c] != SF_NO_COLUMN &&
            sf_column_named(fields[at[c]]) == c)
            return 1;
    return 0;
}

/* A column that the caller gave is nothing else besides. */
static void leave_given(const sf_loader *loader, int *at)
{
    for (int c = 0; c < SF_COLUMNS; c++)
        for (int d = 0; d < SF_COLUMNS; d++)
            if (loader->wanted[d] && !loader->wanted[c] && at[c] == at[d]) at[c] = SF_NO_COLUMN;
}

safer_status sf_header_note(sf_loader *loader, sf_column column, sf_span name, safer_error *error)
{
    safer_data *data = loader->data;
    if (sf_column_is(name, sf_column_names(column)[0])) return SAFER_OK;
    const char *begin = data->note.length ? ", " : "taken by their names: ";
    if (sf_buffer_format(&data->note, "%s%s from \"%.*s\"", begin, options_of[column],
                         sf_clip(name.bytes, name.length, 40), name.bytes))
        return sf_fail_memory(error);
    return SAFER_OK;
}

safer_status sf_header_read(sf_loader *loader, const sf_span *fields, size_t count, size_t line, int lone,
                            int *is_header, safer_error *error)
{
    safer_status status = SAFER_OK;
    int at[SF_COLUMNS] = {SF_NO_COLUMN, SF_NO_COLUMN, SF_NO_COLUMN, SF_NO_COLUMN}, by_name = 0;
    sf_table_head *h = &loader->table;
    h->columns = count;
    h->line = line;
    for (int c = 0; c < SF_COLUMNS; c++) {
        if (!loader->wanted[c]) continue;
        SF_TRY(find_wanted(loader, c, fields, count, &at[c], line, error));
        by_name |= !sf_is_whole_number(span_of(loader->wanted[c]));
    }
    *is_header = by_name || names_columns(at, fields);
    /* A first review may have the title "Review": a class number distinguishes it from a header. */
    if (*is_header || !sf_is_whole_number(fields[0])) {
        for (int c = 0; c < SF_COLUMNS; c++)
            if (!loader->wanted[c]) SF_TRY(find_usual(loader, (sf_column)c, fields, count, &at[c], line, error));
        leave_given(loader, at);
        int found = 0;
        for (int c = 0; c < SF_COLUMNS; c++) found += at[c] != SF_NO_COLUMN;
        *is_header |= !loader->wanted[SF_COLUMN_TEXT] && at[SF_COLUMN_TEXT] != SF_NO_COLUMN && (lone || found > 1);
    }
    for (int c = 0; c < SF_COLUMNS; c++) {
        if (loader->wanted[c]) continue;
        if (!*is_header) at[c] = SF_NO_COLUMN;
        if (at[c] != SF_NO_COLUMN) SF_TRY(sf_header_note(loader, (sf_column)c, fields[at[c]], error));
    }
    if ((*is_header || sf_header_wanted(loader)) && at[SF_COLUMN_TEXT] == SF_NO_COLUMN)
        return sf_loader_fail(loader, line, error,
                              "which column is the text? `text_column`, a name or a number, says it");
    if (!*is_header && at[SF_COLUMN_LABEL] != SF_NO_COLUMN) {
        const sf_span label = fields[at[SF_COLUMN_LABEL]];
        if (sf_buffer_format(&loader->data->note, "no header: line %zu is a row, with the label \"%.*s\"", line,
                             sf_clip(label.bytes, label.length, 40), label.bytes))
            return sf_fail_memory(error);
    }
    h->id = at[SF_COLUMN_ID];
    h->label = at[SF_COLUMN_LABEL];
    h->title = at[SF_COLUMN_TITLE];
    h->text = at[SF_COLUMN_TEXT];
done:
    return status;
}

int sf_header_again(const sf_loader *loader, sf_span record, const sf_span *fields)
{
    const size_t mark = sf_mark_length(record.bytes, record.length);
    const sf_table_head *h = &loader->table;
    if (h->columns < 2) return 0; /* a text may be the word "text" */
    if (loader->header.length && record.length - mark == loader->header.length &&
        memcmp(record.bytes + mark, loader->header.bytes, loader->header.length) == 0)
        return 1;
    return h->label != SF_NO_COLUMN && sf_column_named(fields[h->label]) == SF_COLUMN_LABEL &&
           sf_column_named(fields[h->text]) == SF_COLUMN_TEXT;
}
