/* JSON Lines: one object per line, with
 *
 *   text   a string;
 *   label  a string, an integer or a boolean, standing for its text; null or absent: none;
 *   id     a string or an integer; null or absent: the row's number.
 *
 * Other members are ignored, blank lines skipped. The same member twice is refused:
 * which one counts is anybody's guess. */
#include "data/loader.h"

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

/* The value as text, or empty when it is absent. Integers are written to `number`. */
static safer_status get_name(const sf_loader *loader, const json_t *object, const char *key, int may_be_boolean,
                             digits number, sf_span *out, size_t line, safer_error *error)
{
    const json_t *value = json_object_get(object, key);
    *out = (sf_span){0};
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

static safer_status read_row(sf_loader *loader, const json_t *object, size_t line, safer_error *error)
{
    safer_status status;
    sf_span id, label;
    digits id_digits, label_digits;
    if (!json_is_object(object))
        return sf_loader_fail(loader, line, error, "%s; JSON Lines holds one object per line", type_name(object));
    const json_t *text = json_object_get(object, "text");
    if (!text) return sf_loader_fail(loader, line, error, "no \"text\" in the object");
    if (!json_is_string(text))
        return sf_loader_fail(loader, line, error, "\"text\" is %s; it must be a string", type_name(text));
    SF_TRY(get_name(loader, object, "label", 1, label_digits, &label, line, error));
    SF_TRY(get_name(loader, object, "id", 0, id_digits, &id, line, error));
    SF_TRY(sf_loader_add(loader, id, label, (sf_span){json_string_value(text), json_string_length(text)}, line, error));
done:
    return status;
}

static int is_blank(sf_span row)
{
    for (size_t i = 0; i < row.length; i++)
        if (row.bytes[i] != ' ' && row.bytes[i] != '\t' && row.bytes[i] != '\r') return 0;
    return 1;
}

safer_status sf_read_jsonl(sf_loader *loader, const char *bytes, size_t length, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_lines lines = {.at = bytes, .end = bytes + length};
    sf_span row;
    json_t *object = NULL;
    while (sf_lines_next(&lines, &row)) {
        if (is_blank(row)) continue;
        SF_TRY(sf_loader_check(loader, &row, lines.number, error));
        json_error_t problem;
        object = json_loadb(row.bytes, row.length, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
        /* Out of memory, jansson often gives no reason at all. */
        if (!object && (!problem.text[0] || json_error_code(&problem) == json_error_out_of_memory)) {
            status = sf_fail_memory(error);
            goto done;
        }
        if (!object) {
            status = sf_loader_fail(loader, lines.number, error, "not valid JSON at byte offset %d: %s",
                                    problem.position, problem.text);
            goto done;
        }
        SF_TRY(read_row(loader, object, lines.number, error));
        json_decref(object);
        object = NULL;
    }
done:
    json_decref(object);
    return status;
}
