/* Tables of options: making them, printing them as help, reading the command line into their targets.
 *
 * The manual page and completions (cli/pages) are made from the same tables; the configuration of safer compare
 * is read into them too (cli/compare/config.c). */
#define _GNU_SOURCE
#include "cli.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static cli_common common;

const cli_common *cli_settings(void) { return &common; }

/* ------------------------------------------------------------------ tables */

static cli_option *add(cli_options *options, cli_option option)
{
    assert(options->count < CLI_MOST_OPTIONS);
    options->rows[options->count] = option;
    return &options->rows[options->count++];
}

void cli_add_heading(cli_options *options, const char *text)
{
    add(options, (cli_option){.kind = CLI_HEADING, .help = text});
}

cli_option *cli_add_flag(cli_options *options, const char *name, int *target, const char *help)
{
    return add(options, (cli_option){.kind = CLI_FLAG, .name = name, .target = target, .help = help});
}

cli_option *cli_add_choice(cli_options *options, const char *name, const char **target, cli_names names,
                           const char *value, const char *help)
{
    cli_option *option = cli_add_string(options, name, target, value, help);
    option->kind = CLI_CHOICE;
    option->names = names;
    return option;
}

/* The others differ in the type of the target alone. */
#define ADDS(function, type, its_kind) \
    cli_option *function(cli_options *options, const char *name, type *target, const char *value, const char *help) \
    { \
        return add(options, \
                   (cli_option){.kind = its_kind, .name = name, .target = target, .value = value, .help = help}); \
    } \
    struct cli_option

ADDS(cli_add_string, const char *, CLI_STRING);
ADDS(cli_add_path, const char *, CLI_PATH);
ADDS(cli_add_output, const char *, CLI_OUTPUT);
ADDS(cli_add_list, cli_list, CLI_LIST);
ADDS(cli_add_strings, cli_list, CLI_STRINGS);
ADDS(cli_add_int, int, CLI_INT);
ADDS(cli_add_uint, uint64_t, CLI_UINT);
ADDS(cli_add_real, double, CLI_REAL);

cli_option *cli_add_value(cli_options *options, const char *name, json_t **target)
{
    return add(options, (cli_option){.kind = CLI_VALUE, .name = name, .target = target});
}

void cli_common_options(cli_options *options)
{
    cli_add_heading(options, "Everywhere");
    cli_add_flag(options, "json", &common.json, "print the result as JSON");
    cli_add_flag(options, "quiet", &common.quiet, "no progress and no notes on stderr");
    cli_add_int(options, "threads", &common.threads, "N", "threads to use (default: all cores)");
    cli_add_string(options, "max-unpacked", &common.max_unpacked, "SIZE",
                   "the most that a compressed input or a pipe may hold: 500MB, 20GB (default: 8GB, 2GB)");
    cli_add_flag(options, "help", NULL, "this text");
}

void *cli_list_options(cli_options *options, const cli_verb *verb)
{
    void *request = verb->request_size ? calloc(1, verb->request_size) : NULL;
    if (verb->request_size && !request) cli_no_memory();
    verb->list(options, request);
    return request;
}

/* ------------------------------------------------------------------- help */

int cli_is_choice(cli_names names, const char *name)
{
    for (size_t i = 0; names(i); i++)
        if (strcmp(names(i), name) == 0) return 1;
    return 0;
}

void cli_choices(char *out, size_t size, cli_names names)
{
    size_t length = 0;
    *out = '\0';
    for (size_t i = 0; names(i) && length < size; i++) {
        const char *before = i == 0 ? "" : names(i + 1) ? ", " : " or ";
        length += (size_t)snprintf(out + length, size - length, "%s%s", before, names(i));
    }
}

/* The value that a target holds. */
static void write_value(char *out, size_t size, const cli_option *o)
{
    const void *from = o->usual ? o->usual : o->target;
    const char *text = NULL;
    switch (o->kind) {
    case CLI_INT: snprintf(out, size, "%d", *(const int *)from); return;
    case CLI_UINT: snprintf(out, size, "%llu", (unsigned long long)*(const uint64_t *)from); return;
    case CLI_REAL: snprintf(out, size, "%g", *(const double *)from); return;
    case CLI_CHOICE: /* not given: the first */
        text = *(const char *const *)from;
        snprintf(out, size, "%s", text ? text : o->names(0));
        return;
    case CLI_STRING:
    case CLI_PATH:
    case CLI_OUTPUT: text = *(const char *const *)from; break;
    case CLI_FLAG:
    case CLI_LIST:
    case CLI_STRINGS:
    case CLI_VALUE:
    case CLI_HEADING: break;
    }
    snprintf(out, size, "%s", text ? text : "none");
}

/* Puts `text` in the place of `mark`, where it occurs. */
static void fill_in(char *line, size_t size, const char *mark, const char *text)
{
    char *at = strstr(line, mark), rest[512];
    if (!at) return;
    snprintf(rest, sizeof rest, "%s", at + strlen(mark));
    snprintf(at, size - (size_t)(at - line), "%s%s", text, rest);
}

void cli_option_help(char *out, size_t size, const cli_option *option)
{
    char text[512];
    snprintf(out, size, "%s", option->help);
    if (option->kind == CLI_HEADING) return;
    write_value(text, sizeof text, option);
    fill_in(out, size, "{default}", text);
    if (option->kind != CLI_CHOICE) return;
    cli_choices(text, sizeof text, option->names);
    fill_in(out, size, "{choices}", text);
}

static void print_options(const cli_options *options)
{
    for (size_t i = 0; i < options->count; i++) {
        const cli_option *o = &options->rows[i];
        char left[64], help[1024];
        cli_option_help(help, sizeof help, o);
        if (o->kind == CLI_HEADING) {
            printf("\n%s:\n", help);
            continue;
        }
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("  %-28s%s%s\n", left, strlen(left) > 27 ? " " : "", help);
    }
}

/* Of a fresh request, since options before --help may have changed the values that the help tells. */
static void print_help(const cli_verb *verb)
{
    cli_options options = {0}, everywhere = {0};
    void *request = cli_list_options(&options, verb);
    cli_common_options(&everywhere);
    printf("Usage: safer %s %s\n\n%s\n", verb->name, verb->usage, verb->summary);
    if (options.count && options.rows[0].kind != CLI_HEADING) printf("\nOptions:\n");
    print_options(&options);
    print_options(&everywhere);
    printf("\nExamples:\n%s", verb->examples);
    free(request);
}

/* ---------------------------------------------------------------- parsing */

const cli_option *cli_option_named(const cli_options *options, const char *name, size_t length)
{
    for (size_t i = 0; i < options->count; i++) {
        const char *own = options->rows[i].name;
        if (own && strlen(own) == length && strncmp(own, name, length) == 0) return &options->rows[i];
    }
    return NULL;
}

size_t cli_distance(const char *a, size_t a_length, const char *b)
{
    size_t row[64], b_length = strlen(b);
    if (a_length > 60 || b_length > 60) return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++) row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_length] > 3 || 2 * row[b_length] > b_length ? SIZE_MAX : row[b_length];
}

const char *cli_option_nearest(const cli_options *options, const char *typed, size_t length)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < options->count; i++) {
        const char *name = options->rows[i].name;
        size_t d = name ? cli_distance(typed, length, name) : SIZE_MAX;
        if (d < least) {
            least = d;
            nearest = name;
        }
    }
    return nearest;
}

void cli_list_add(cli_list *list, const char *item)
{
    const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items) cli_no_memory();
    items[list->count++] = item;
    list->items = items;
}

static _Noreturn void unknown_option(const cli_verb *verb, const cli_options *options, const char *name, size_t length)
{
    const char *nearest = cli_option_nearest(options, name, length);
    if (nearest) cli_misuse(verb, "there is no option --%.*s; did you mean --%s?", (int)length, name, nearest);
    cli_misuse(verb, "there is no option --%.*s", (int)length, name);
}

static _Noreturn void refuse_choice(const cli_verb *verb, const cli_option *o, const char *text)
{
    char choices[512];
    cli_choices(choices, sizeof choices, o->names);
    cli_misuse(verb, "--%s %s: %s", o->name, text, choices);
}

/* Digits only: strtol and strtoull would also take spaces and signs. */
static int is_whole(const char *text) { return *text && strspn(text, "0123456789") == strlen(text); }

int cli_read_real(const char *text, double *out)
{
    char *end = NULL;
    const double value = strtod(text, &end);
    if (!*text || strspn(text, "0123456789.eE+-") != strlen(text) || *end || !isfinite(value)) return 0;
    *out = value;
    return 1;
}

static void set_value(const cli_verb *verb, const cli_option *o, const char *text)
{
    switch (o->kind) {
    case CLI_CHOICE:
        if (!cli_is_choice(o->names, text)) refuse_choice(verb, o, text);
        *(const char **)o->target = text;
        break;
    case CLI_STRING:
    case CLI_PATH:
    case CLI_OUTPUT: *(const char **)o->target = text; break;
    case CLI_LIST:
    case CLI_STRINGS: cli_list_add(o->target, text); break;
    case CLI_INT: {
        long value = is_whole(text) ? strtol(text, NULL, 10) : -1;
        if (value < 0 || value > 1000000000) cli_misuse(verb, "--%s %s: a whole number is expected", o->name, text);
        *(int *)o->target = (int)value;
        break;
    }
    case CLI_UINT: {
        errno = 0;
        unsigned long long value = strtoull(text, NULL, 10);
        if (!is_whole(text) || errno) cli_misuse(verb, "--%s %s: a whole number is expected", o->name, text);
        *(uint64_t *)o->target = value;
        break;
    }
    case CLI_REAL:
        if (!cli_read_real(text, o->target)) cli_misuse(verb, "--%s %s: a number is expected", o->name, text);
        break;
    case CLI_FLAG:
    case CLI_VALUE:
    case CLI_HEADING: break;
    }
}

/* The word at argv[i] as an option, with its value; returns the number of the last word that it used. */
static int read_option(int argc, char **argv, int i, const cli_verb *verb, const cli_options *options)
{
    const char *word = argv[i];
    if (strcmp(word, "-h") == 0) word = "--help";
    if (strcmp(word, "-q") == 0) word = "--quiet";
    if (strncmp(word, "-o", 2) == 0) word = word[2] ? word : "--output";
    if (word[1] != '-') cli_misuse(verb, "there is no option %s; options have two dashes", word);
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const cli_option *o = cli_option_named(options, name, length);
    if (!o) unknown_option(verb, options, name, length);
    if (o->kind == CLI_FLAG) {
        if (equals) cli_misuse(verb, "--%s takes no value", o->name);
        if (strcmp(o->name, "help") == 0) {
            print_help(verb);
            exit(cli_finish(CLI_DONE));
        }
        *(int *)o->target = 1;
        return i;
    }
    if (!equals && i + 1 >= argc) cli_misuse(verb, "--%s needs a value: %s", o->name, o->value);
    set_value(verb, o, equals ? equals + 1 : argv[i + 1]);
    return equals ? i : i + 1;
}

/* Reads the options into their targets. Positional arguments are moved to the front of argv, and their
 * number is returned. */
static size_t parse(int argc, char **argv, const cli_verb *verb, const cli_options *options)
{
    size_t arguments = 0;
    int only_arguments = 0;
    for (int i = 0; i < argc; i++) {
        if (only_arguments || argv[i][0] != '-' || !argv[i][1])
            argv[arguments++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            only_arguments = 1;
        else
            i = read_option(argc, argv, i, verb, options);
    }
    if (arguments < verb->min_arguments) cli_misuse(verb, "too few arguments: %s", verb->usage);
    if (arguments > verb->max_arguments) cli_misuse(verb, "unexpected argument %s", argv[verb->max_arguments]);
    return arguments;
}

/* Whether a path that is read leads to a file that is there; of ARCHIVE:MEMBER, to that archive. */
static int is_file(const char *path, const struct stat *file)
{
    struct stat info;
    char archive[4096];
    const char *colon = strrchr(path, ':');
    if (stat(path, &info) != 0) {
        if (!colon || (size_t)(colon - path) >= sizeof archive) return 0;
        snprintf(archive, sizeof archive, "%.*s", (int)(colon - path), path);
        if (stat(archive, &info) != 0) return 0;
    }
    return info.st_dev == file->st_dev && info.st_ino == file->st_ino;
}

/* Refuses to write over what is read. */
static void check_output(const cli_verb *verb, const cli_options *options, const char *name, const char *path,
                         char **arguments, size_t count)
{
    struct stat file;
    if (!path || stat(path, &file) != 0 || !S_ISREG(file.st_mode)) return;
    for (size_t i = 0; i < count; i++)
        if (is_file(arguments[i], &file)) cli_misuse(verb, "--%s %s: that is an input", name, path);
    for (const cli_option *o = options->rows; o < options->rows + options->count; o++) {
        const cli_list one = {o->kind == CLI_PATH ? o->target : NULL, o->kind == CLI_PATH}, *list = &one;
        if (o->kind == CLI_LIST) list = o->target;
        for (size_t i = 0; i < list->count; i++)
            if (list->items[i] && is_file(list->items[i], &file))
                cli_misuse(verb, "--%s %s: that is the file of --%s", name, path, o->name);
    }
}

static void check_outputs(const cli_verb *verb, const cli_options *options, char **arguments, size_t count)
{
    for (const cli_option *o = options->rows; o < options->rows + options->count; o++)
        if (o->kind == CLI_OUTPUT) check_output(verb, options, o->name, *(const char **)o->target, arguments, count);
}

/* The bytes of "500MB", "20GB" or "20", which is the same. 0: it is no size, or above a petabyte. */
static uint64_t read_size(const char *text)
{
    char *unit;
    if (*text < '0' || *text > '9') return 0;
    const uint64_t count = strtoull(text, &unit, 10), bytes = strcmp(unit, "MB") == 0 ? 1000000 : 1000000000;
    if (*unit && strcmp(unit, "MB") != 0 && strcmp(unit, "GB") != 0) return 0;
    return count <= UINT64_C(1000000000000000) / bytes ? count * bytes : 0;
}

int cli_run(const cli_verb *verb, int argc, char **argv)
{
    cli_options options = {0};
    cli_message_for(verb);
    void *request = cli_list_options(&options, verb);
    cli_common_options(&options); /* last: where a verb has an option of the same name, that is meant */
    const size_t count = parse(argc, argv, verb, &options);
    if (common.max_unpacked) {
        const uint64_t most = read_size(common.max_unpacked);
        if (!most)
            cli_misuse(verb, "--max-unpacked %s: a size is a number of GB, or as 500MB or 20GB", common.max_unpacked);
        safer_set_max_unpacked(most);
    }
    check_outputs(verb, &options, argv, count);
    const int code = verb->run(request, argv, count);
    free(request);
    return code;
}
