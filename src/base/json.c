/* JSON put together and written. Names of members end at their NUL: jansson makes no others, unless asked to. */
#include "base/json.h"

#include "base/number.h"
#include "base/quote.h"

#include <string.h>

static int add_string(sf_buffer *out, const char *bytes, size_t length)
{
    return sf_buffer_add_byte(out, '"') || sf_quote(out, bytes, length) || sf_buffer_add_byte(out, '"') ? -1 : 0;
}

static int add_real(sf_buffer *out, double x)
{
    char text[SF_REAL_SIZE];
    return sf_format_real(text, x) || sf_buffer_add_string(out, text) ? -1 : 0;
}

static int add_array(sf_buffer *out, const json_t *array)
{
    if (sf_buffer_add_byte(out, '[')) return -1;
    for (size_t i = 0; i < json_array_size(array); i++)
        if ((i && sf_buffer_add_byte(out, ',')) || sf_json_add(out, json_array_get(array, i))) return -1;
    return sf_buffer_add_byte(out, ']');
}

static int add_object(sf_buffer *out, json_t *object)
{
    const char *comma = "";
    if (sf_buffer_add_byte(out, '{')) return -1;
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at), comma = ",") {
        const char *key = json_object_iter_key(at);
        if (sf_buffer_add_string(out, comma) || add_string(out, key, strlen(key)) || sf_buffer_add_byte(out, ':') ||
            sf_json_add(out, json_object_iter_value(at)))
            return -1;
    }
    return sf_buffer_add_byte(out, '}');
}

int sf_json_add(sf_buffer *out, const json_t *value)
{
    if (!value) return -1;
    switch (json_typeof(value)) {
    case JSON_OBJECT: return add_object(out, (json_t *)(uintptr_t)value); /* jansson's walk knows no const */
    case JSON_ARRAY: return add_array(out, value);
    case JSON_STRING: return add_string(out, json_string_value(value), json_string_length(value));
    case JSON_INTEGER: return sf_buffer_format(out, "%lld", (long long)json_integer_value(value));
    case JSON_REAL: return add_real(out, json_real_value(value));
    case JSON_TRUE: return sf_buffer_add_string(out, "true");
    case JSON_FALSE: return sf_buffer_add_string(out, "false");
    case JSON_NULL: return sf_buffer_add_string(out, "null");
    }
    return -1;
}

char *sf_json_text(const json_t *value)
{
    sf_buffer out = {0};
    if (sf_json_add(&out, value) == 0) return out.bytes;
    sf_buffer_free(&out);
    return NULL;
}

static void lose(json_t **whole)
{
    json_decref(*whole);
    *whole = NULL;
}

void sf_json_put(json_t **object, const char *name, json_t *value)
{
    if (json_object_set_new(*object, name, value)) lose(object);
}

void sf_json_push(json_t **array, json_t *value)
{
    if (json_array_append_new(*array, value)) lose(array);
}
