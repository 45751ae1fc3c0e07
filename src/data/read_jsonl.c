/* JSON Lines: one object per line, with
 *
 *   text   a string;
 *   title  a string, put before the text; null or absent: none;
 *   label  a string, an integer or a boolean, standing for its text; null or absent: none;
 *   id     a string or an integer; null or absent: the row's number.
 *
 * Each may have another of its names (columns.h), in any case, or the one that the caller gave. Other
 * members are ignored, blank lines skipped. The same member twice is refused: which one counts is anybody's guess. */
#include "data/header.h"

#include "base/json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a real number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: return "null";
    }
    return "unknown";
}

typedef char digits[32];

/* The member of a name, in any case when none has it exactly; *key is its own name. */
static const json_t *member(const json_t *object, const char *name, const char **key)
{
    const char *other;
    json_t *value = json_object_get(object, name);
    *key = name;
    if (value) return value;
    json_object_foreach((json_t *)(uintptr_t)object, other, value)
    {
        *key = other;
        if (sf_column_is((sf_span){other, strlen(other)}, name)) return value;
    }
    return NULL;
}

/* None of the object's members has this name: says which names they have. */
static safer_status fail_member(const sf_loader *loader, const json_t *object, const char *name, sf_column column,
                                size_t line, safer_error *error)
{
    char list[200] = "";
    size_t used = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        const int room = sf_clip(key, strlen(key), 40);
        const int more = used + (size_t)room + 8 > sizeof list;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", used ? ", " : "", more ? 3 : room,
                                 more ? "..." : key);
        if (more) break;
    }
    return sf_loader_fail(
        loader, line, error, "no \"%.60s\" in the object, which has %s%s", name, used ? list : "no members",
        used && column == SF_COLUMN_TEXT && !loader->wanted[column] ? ": `text_column` NAME says which" : "");
}

/* The member that a column has: by the name that the caller gave, or the first usual one that is there; NULL: none. A
 * name of the caller's must be there. */
static safer_status find_member(sf_loader *loader, const json_t *object, sf_column column, const json_t **out,
                                const char **key, size_t line, safer_error *error)
{
    const char *wanted = loader->wanted[column];
    *out = NULL;
    if (wanted) {
        *out = member(object, wanted, key);
        return *out ? SAFER_OK : fail_member(loader, object, wanted, column, line, error);
    }
    for (const char *const *name = sf_column_names(column); *name && !*out; name++) *out = member(object, *name, key);
    for (int c = 0; *out && c < SF_COLUMNS; c++) /* what the caller named is nothing else besides */
        if (loader->wanted[c] && sf_column_is((sf_span){*key, strlen(*key)}, loader->wanted[c])) *out = NULL;
    if (!*out || loader->row || loader->data->count) return SAFER_OK;
    return sf_header_note(loader, column, (sf_span){*key, strlen(*key)}, error);
}

/* The value as text, or empty when it is absent. Integers are written to `number`. */
static safer_status get_name(sf_loader *loader, const json_t *object, sf_column column, digits number, sf_span *out,
                             size_t line, safer_error *error)
{
    const char *key = NULL;
    const json_t *value;
    const int may_be_boolean = column == SF_COLUMN_LABEL;
    const safer_status status = find_member(loader, object, column, &value, &key, line, error);
    *out = (sf_span){0};
    if (status != SAFER_OK) return status;
    if (!value || json_is_null(value)) return SAFER_OK;
    if (json_is_string(value)) {
        *out = (sf_span){json_string_value(value), json_string_length(value)};
    } else if (json_is_integer(value)) {
        int length = snprintf(number, sizeof(digits), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        *out = (sf_span){number, (size_t)length};
    } else if (may_be_boolean && json_is_boolean(value)) {
        *out = json_is_true(value) ? (sf_span){"true", 4} : (sf_span){"false", 5};
    } else {
        return sf_loader_fail(loader, line, error, "\"%s\" is %s; it must be a string%s", key, type_name(value),
                              may_be_boolean ? ", an integer or a boolean" : " or an integer");
    }
    return SAFER_OK;
}

/* The text, with the title before it. It lies in the object or in the buffer. */
static safer_status get_text(sf_loader *loader, const json_t *object, sf_buffer *joined, sf_span *out, size_t line,
                             safer_error *error)
{
    const char *key = NULL, *title_key = NULL;
    const json_t *text, *title;
    safer_status status = find_member(loader, object, SF_COLUMN_TEXT, &text, &key, line, error);
    if (status == SAFER_OK) status = find_member(loader, object, SF_COLUMN_TITLE, &title, &title_key, line, error);
    if (status != SAFER_OK) return status;
    if (json_is_null(title)) title = NULL;
    if (!text) return fail_member(loader, object, "text", SF_COLUMN_TEXT, line, error);
    if (!json_is_string(text))
        return sf_loader_fail(loader, line, error, "\"%s\" is %s; it must be a string", key, type_name(text));
    if (title && !json_is_string(title))
        return sf_loader_fail(loader, line, error, "\"%s\" is %s; it must be a string", title_key, type_name(title));
    *out = (sf_span){json_string_value(text), json_string_length(text)};
    if (!title || json_string_length(title) == 0) return SAFER_OK;
    sf_buffer_clear(joined);
    if (sf_buffer_add(joined, json_string_value(title), json_string_length(title)) || sf_buffer_add_byte(joined, ' ') ||
        sf_buffer_add(joined, out->bytes, out->length))
        return sf_fail_memory(error);
    *out = (sf_span){joined->bytes, joined->length};
    return SAFER_OK;
}

static safer_status read_row(sf_loader *loader, const json_t *object, size_t line, safer_error *error)
{
    safer_status status;
    sf_span id, label, text;
    digits id_digits, label_digits;
    if (!json_is_object(object))
        return sf_loader_fail(loader, line, error, "%s; JSON Lines holds one object per line", type_name(object));
    SF_TRY(get_text(loader, object, &loader->scratch, &text, line, error));
    SF_TRY(get_name(loader, object, SF_COLUMN_LABEL, label_digits, &label, line, error));
    SF_TRY(get_name(loader, object, SF_COLUMN_ID, id_digits, &id, line, error));
    SF_TRY(sf_loader_add(loader, id, label, text, line, error));
done:
    return status;
}

static int is_blank(sf_span row)
{
    for (size_t i = 0; i < row.length; i++)
        if (row.bytes[i] != ' ' && row.bytes[i] != '\t' && row.bytes[i] != '\r') return 0;
    return 1;
}

safer_status sf_read_jsonl(sf_loader *loader, uint64_t *at, size_t *line, safer_error *error)
{
    safer_status status;
    const size_t number = *line;
    sf_span row;
    json_t *object = NULL;
    json_error_t problem;
    SF_TRY(sf_loader_line(loader, at, line, &row, error));
    if (is_blank(row)) goto done;
    SF_TRY(sf_loader_check(loader, &row, number, error));
    status = sf_json_parse(&object, row.bytes, row.length, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                           &problem);
    if (status == SAFER_MEMORY)
        status = sf_fail_memory(error);
    else if (!object)
        status = sf_loader_fail(loader, number, error, "not valid JSON at byte offset %d: %s", problem.position,
                                problem.text);
    else
        status = read_row(loader, object, number, error);
done:
    json_decref(object);
    return status;
}
