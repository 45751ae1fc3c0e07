/* The names of columns. docs/data.md lists them. */
#include "data/columns.h"

#include <string.h>

const char *const *sf_column_names(sf_column column)
{
    static const char *const names[SF_COLUMNS][12] = {
        [SF_COLUMN_ID] = {"id", "idx"},
        [SF_COLUMN_LABEL] = {"label", "labels", "class", "class index", "class_index", "sentiment", "rating",
                             "category", "stance", "polarity", "target"},
        [SF_COLUMN_TITLE] = {"title"},
        [SF_COLUMN_TEXT] = {"text", "review", "sentence", "content", "tweet", "comment", "message", "description",
                            "document", "body"},
    };
    return names[column];
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c; }

int sf_column_is(sf_span value, const char *name)
{
    const char *p = value.bytes, *end = p + value.length;
    while (p < end && *p == ' ') p++;
    while (p < end && end[-1] == ' ') end--;
    if ((size_t)(end - p) != strlen(name)) return 0;
    while (p < end)
        if (lower(*p++) != lower(*name++)) return 0;
    return 1;
}

int sf_column_named(sf_span value)
{
    for (int column = 0; column < SF_COLUMNS; column++)
        for (const char *const *name = sf_column_names((sf_column)column); *name; name++)
            if (sf_column_is(value, *name)) return column;
    return SF_NO_COLUMN;
}

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80); }

size_t sf_column_words(sf_span value)
{
    enum { SHORTEST = 2, LONGEST = 40, MOST = 2 };
    size_t words = 1, characters = 0;
    if (!value.length || value.length > LONGEST || !is_letter(value.bytes[0])) return 0;
    for (size_t i = 0; i < value.length; i++) {
        const char c = value.bytes[i];
        if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != ' ') return 0;
        words += c == ' ';
        characters += (c & 0xc0) != 0x80;
    }
    return words <= MOST && characters >= SHORTEST ? words : 0;
}

int sf_is_whole_number(sf_span value)
{
    for (size_t i = 0; i < value.length; i++)
        if (value.bytes[i] < '0' || value.bytes[i] > '9') return 0;
    return value.length > 0;
}
