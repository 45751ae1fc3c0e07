/* JSON: put together, read, and written to stdout. jansson itself writes 0.68 as 0.68000000000000005, and needs memory
 * to write. */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *cli_need(json_t *value)
{
    if (!value) cli_no_memory();
    return value;
}

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

/* jansson's reader goes on when memory ends, without characters of a string, or aborts; its writer leaves out names.
 * So they are given memory, or the program ends. */
static void *need(size_t size)
{
    void *memory = malloc(size);
    if (!memory) cli_no_memory();
    return memory;
}

/* For the functions of jansson that do not notice. */
typedef struct memory {
    json_malloc_t take;
    json_free_t release;
} memory;

static memory insist(void)
{
    memory usual;
    json_get_alloc_funcs(&usual.take, &usual.release);
    json_set_alloc_funcs(need, usual.release);
    return usual;
}

json_t *cli_json_read(const char *text)
{
    const memory usual = insist();
    json_t *value = json_loads(text, JSON_ALLOW_NUL, NULL);
    json_set_alloc_funcs(usual.take, usual.release);
    return value;
}

json_t *cli_json_load(const char *path, size_t flags, json_error_t *where)
{
    const memory usual = insist();
    errno = 0;
    json_t *value = json_load_file(path, flags, where);
    if (!value && errno == ENOMEM) cli_no_memory(); /* to open it */
    json_set_alloc_funcs(usual.take, usual.release);
    return value;
}

char *cli_json_text(const json_t *value, size_t flags)
{
    const memory usual = insist();
    char *text = value ? json_dumps(value, flags) : NULL;
    json_set_alloc_funcs(usual.take, usual.release);
    if (!text) cli_no_memory();
    return text;
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

static void put_value(FILE *out, json_t *value, int depth);

static void put_string(FILE *out, const char *text, size_t length)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    fputc('"', out);
    for (const char *c = text; c < text + length; c++) {
        const char *known = *c ? strchr(escaped, *c) : NULL;
        if (known)
            fprintf(out, "\\%c", letters[known - escaped]);
        else if ((unsigned char)*c < 0x20)
            fprintf(out, "\\u%04X", (unsigned char)*c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void put_leaf(FILE *out, const json_t *value)
{
    if (json_is_real(value))
        cli_put_real(out, json_real_value(value));
    else if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_string(value))
        put_string(out, json_string_value(value), json_string_length(value));
    else
        fputs(json_is_null(value) ? "null" : json_is_true(value) ? "true" : "false", out);
}

static void put_newline(FILE *out, int depth) { fprintf(out, "\n%*s", 2 * depth, ""); }

static void put_members(FILE *out, json_t *object, int depth)
{
    const char *key, *comma = "";
    json_t *value;
    json_object_foreach(object, key, value)
    {
        fputs(comma, out);
        put_newline(out, depth);
        put_string(out, key, strlen(key));
        fputs(": ", out);
        put_value(out, value, depth);
        comma = ",";
    }
}

static void put_elements(FILE *out, const json_t *array, int depth)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i) fputc(',', out);
        put_newline(out, depth);
        put_value(out, json_array_get(array, i), depth);
    }
}

static void put_value(FILE *out, json_t *value, int depth)
{
    if (!json_is_object(value) && !json_is_array(value)) {
        put_leaf(out, value);
        return;
    }
    const int object = json_is_object(value), empty = !json_object_size(value) && !json_array_size(value);
    fputc(object ? '{' : '[', out);
    if (object)
        put_members(out, value, depth + 1);
    else
        put_elements(out, value, depth + 1);
    if (!empty) put_newline(out, depth);
    fputc(object ? '}' : ']', out);
}

void cli_print_json(json_t *value)
{
    if (!value) cli_no_memory();
    put_value(stdout, value, 0);
    putchar('\n');
    json_decref(value);
}
