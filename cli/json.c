/* JSON: put together, read, and written to stdout. jansson writes 0.68 as 0.68000000000000005, and leaves out a
 * member's name when memory ends at that moment. */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value)) cli_no_memory();
}

void cli_set(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, value)) cli_no_memory();
}

void cli_extend(json_t *object, json_t *members)
{
    if (json_object_update_new(object, members)) cli_no_memory();
}

/* jansson does not say that memory was out, but malloc does, and jansson returns at once then. */
json_t *cli_json_read(const char *text)
{
    errno = 0;
    json_t *value = json_loads(text, JSON_ALLOW_NUL, NULL);
    if (!value && errno == ENOMEM) cli_no_memory();
    return value;
}

json_t *cli_json_load(const char *path, size_t flags, json_error_t *where)
{
    errno = 0;
    json_t *value = json_load_file(path, flags, where);
    if (!value && errno == ENOMEM) cli_no_memory();
    return value;
}

void cli_put_real(FILE *out, double x)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static int put_value(FILE *out, json_t *value, int depth);

static int put_leaf(FILE *out, const json_t *value)
{
    if (json_is_real(value)) cli_put_real(out, json_real_value(value));
    return json_is_real(value) ? 0 : json_dumpf(value, out, JSON_ENCODE_ANY);
}

static int put_name(FILE *out, const char *key)
{
    json_t *name = json_string(key);
    const int failed = !name || put_leaf(out, name);
    json_decref(name);
    fputs(": ", out);
    return failed;
}

static void put_newline(FILE *out, int depth) { fprintf(out, "\n%*s", 2 * depth, ""); }

static int put_members(FILE *out, json_t *object, int depth)
{
    const char *key, *comma = "";
    json_t *value;
    json_object_foreach(object, key, value)
    {
        fputs(comma, out);
        put_newline(out, depth);
        if (put_name(out, key) || put_value(out, value, depth)) return -1;
        comma = ",";
    }
    return 0;
}

static int put_elements(FILE *out, const json_t *array, int depth)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i) fputc(',', out);
        put_newline(out, depth);
        if (put_value(out, json_array_get(array, i), depth)) return -1;
    }
    return 0;
}

/* 0, or -1 when memory is out. */
static int put_value(FILE *out, json_t *value, int depth)
{
    if (!json_is_object(value) && !json_is_array(value)) return put_leaf(out, value);
    const int object = json_is_object(value), empty = !json_object_size(value) && !json_array_size(value);
    fputc(object ? '{' : '[', out);
    if (object ? put_members(out, value, depth + 1) : put_elements(out, value, depth + 1)) return -1;
    if (!empty) put_newline(out, depth);
    fputc(object ? '}' : ']', out);
    return 0;
}

void cli_print_json(json_t *value)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    const int failed = !out || !value || put_value(out, value, 0) || ferror(out);
    if ((out && fclose(out)) || failed) cli_no_memory();
    puts(text);
    free(text);
    json_decref(value);
}
