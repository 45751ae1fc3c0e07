/* Reading the command line from a table of options. */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static cli_common common;

const cli_common *cli_settings(void) { return &common; }

static const cli_option shared_options[] = {
    {NULL, CLI_HEADING, NULL, NULL, "Everywhere"},
    {"json", CLI_FLAG, &common.json, NULL, "print the result as JSON"},
    {"quiet", CLI_FLAG, &common.quiet, NULL, "no progress and no notes on stderr"},
    {"threads", CLI_INT, &common.threads, "N", "threads to use (default: all cores)"},
    {"help", CLI_FLAG, NULL, NULL, "this text"},
    {0},
};

/* ------------------------------------------------------------------- help */

static void print_options(const cli_option *options)
{
    for (const cli_option *o = options; o->kind || o->name || o->help; o++) {
        char left[64];
        if (o->kind == CLI_HEADING) {
            printf("\n%s:\n", o->help);
            continue;
        }
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("  %-28s%s%s\n", left, strlen(left) > 27 ? " " : "", o->help);
    }
}

static void print_help(const cli_verb *verb, const cli_option *options)
{
    printf("Usage: safer %s %s\n\n%s\n", verb->name, verb->usage, verb->summary);
    if (options[0].kind != CLI_HEADING && options[0].name) printf("\nOptions:\n");
    print_options(options);
    print_options(shared_options);
    printf("\nExamples:\n%s", verb->examples);
}

/* ---------------------------------------------------------------- parsing */

const cli_option *cli_option_named(const cli_option *options, const char *name, size_t length)
{
    for (const cli_option *o = options; o->kind || o->name || o->help; o++)
        if (o->name && strlen(o->name) == length && strncmp(o->name, name, length) == 0) return o;
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

const char *cli_option_nearest(const cli_option *options, const char *typed, size_t length)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (const cli_option *o = options; o->kind || o->name || o->help; o++) {
        size_t d = o->name ? cli_distance(typed, length, o->name) : SIZE_MAX;
        if (d < least) {
            least = d;
            nearest = o->name;
        }
    }
    return nearest;
}

void cli_list_add(cli_list *list, const char *item)
{
    const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items) abort();
    items[list->count++] = item;
    list->items = items;
}

static _Noreturn void unknown_option(const cli_verb *verb, const cli_option *options, const char *name, size_t length)
{
    const char *nearest = cli_option_nearest(options, name, length);
    if (!nearest) nearest = cli_option_nearest(shared_options, name, length);
    if (nearest) cli_misuse(verb, "there is no option --%.*s; did you mean --%s?", (int)length, name, nearest);
    cli_misuse(verb, "there is no option --%.*s", (int)length, name);
}

/* Digits only: strtol and strtoull would also take spaces and signs. */
static int is_whole(const char *text) { return *text && strspn(text, "0123456789") == strlen(text); }

static void set_value(const cli_verb *verb, const cli_option *o, const char *text)
{
    switch (o->kind) {
    case CLI_STRING:
    case CLI_PATH: *(const char **)o->target = text; break;
    case CLI_LIST: cli_list_add(o->target, text); break;
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
    case CLI_REAL: {
        char *end = NULL;
        double value = strtod(text, &end);
        if (!*text || strspn(text, "0123456789.eE+-") != strlen(text) || *end || !isfinite(value))
            cli_misuse(verb, "--%s %s: a number is expected", o->name, text);
        *(double *)o->target = value;
        break;
    }
    case CLI_FLAG:
    case CLI_VALUE:
    case CLI_HEADING: break;
    }
}

size_t cli_parse(int argc, char **argv, const cli_verb *verb, const cli_option *options)
{
    size_t arguments = 0;
    int only_arguments = 0;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (only_arguments || word[0] != '-' || !word[1]) {
            argv[arguments++] = argv[i];
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_arguments = 1;
            continue;
        }
        if (strcmp(word, "-h") == 0) word = "--help";
        if (strcmp(word, "-q") == 0) word = "--quiet";
        if (strncmp(word, "-o", 2) == 0) word = word[2] ? word : "--output";
        if (word[1] != '-') cli_misuse(verb, "there is no option %s; options have two dashes", word);
        const char *name = word + 2, *equals = strchr(name, '=');
        size_t length = equals ? (size_t)(equals - name) : strlen(name);
        const cli_option *o = cli_option_named(options, name, length);
        if (!o) o = cli_option_named(shared_options, name, length);
        if (!o) unknown_option(verb, options, name, length);
        if (o->kind == CLI_FLAG) {
            if (equals) cli_misuse(verb, "--%s takes no value", o->name);
            if (strcmp(o->name, "help") == 0) {
                print_help(verb, options);
                exit(cli_finish(CLI_DONE));
            }
            *(int *)o->target = 1;
            continue;
        }
        if (!equals && i + 1 >= argc) cli_misuse(verb, "--%s needs a value: %s", o->name, o->value);
        set_value(verb, o, equals ? equals + 1 : argv[++i]);
    }
    if (arguments < verb->min_arguments) cli_misuse(verb, "too few arguments: %s", verb->usage);
    if (arguments > verb->max_arguments) cli_misuse(verb, "unexpected argument %s", argv[verb->max_arguments]);
    return arguments;
}
