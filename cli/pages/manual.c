/* The manual page, in mdoc: prose from a template, options from the tables.
 *
 * Lines of the template that begin with @ are filled in or set aside:
 *
 *     @synopsis                      all verbs with what follows them
 *     @verbs                         a section for every verb: its summary, then its options
 *     @everywhere                    the options that all verbs have
 *     @about VERB                    begins lines that follow the verb's summary
 *     @note VERB, VERB --OPTION      begins lines that follow what the help says of an option; VERB may be "everywhere"
 *
 * The lines of @about and @note end before the next line with @ in front; they stand at the template's end. */
#define _GNU_SOURCE
#include "pages/pages.h"

#include <stdlib.h>
#include <string.h>

static const char EVERYWHERE[] = "everywhere"; /* what notes on the options of all verbs begin with */

static const char *line_end(const char *line) { return line + strcspn(line, "\n"); }
static const char *next_line(const char *line) { return *line_end(line) ? line_end(line) + 1 : line_end(line); }

/* --------------------------------------------------------------- text in mdoc */

/* Text of the program's as lines of text: no macro, no escape, dashes that can be copied, every sentence on a line
 * of its own. A full stop ends it, where `stop` says so. */
static void print_text(FILE *out, const char *text, int stop)
{
    for (const char *p = text; *p; p++) {
        if ((p == text || p[-1] == '\n') && (*p == '.' || *p == '\'')) fputs("\\&", out);
        if (*p == '\\')
            fputs("\\e", out);
        else if (*p == ' ' && p > text + 1 && p[-1] == '.' && p[-2] != '.')
            fputc('\n', out);
        else if (*p == '-' && (p[1] == '-' || (p > text && (p[-1] == '-' || p[-1] == ' '))))
            fputs("\\-", out);
        else
            fputc(*p, out);
    }
    fputs(stop ? ".\n" : "\n", out);
}

/* ---------------------------------------------------------------------- notes */

/* Whether a list "certify, predict" has a name. */
static int lists(const char *names, const char *end, const char *name)
{
    while (names < end) {
        const size_t length = strcspn(names, ",");
        const size_t own = names + length > end ? (size_t)(end - names) : length;
        if (own == strlen(name) && strncmp(names, name, own) == 0) return 1;
        names += own + 1;
        while (names < end && *names == ' ') names++;
    }
    return 0;
}

/* The verbs (up to *end) and the option (NULL: none) that a line "@note ..." or "@about ..." speaks of. */
static const char *read_head(const char *line, const char **end, const char **option)
{
    const int is_note = strncmp(line, "@note ", 6) == 0;
    const char *verbs = line + (is_note ? 6 : 7), *stop = line_end(line);
    *option = NULL;
    *end = stop;
    if (!is_note) return verbs;
    *option = memmem(line, (size_t)(stop - line), " --", 3);
    if (*option) {
        *end = *option;
        *option += 3;
    }
    return verbs;
}

static int is_block(const char *line) { return strncmp(line, "@note ", 6) == 0 || strncmp(line, "@about ", 7) == 0; }

/* Prints the lines of the blocks that speak of a verb and of an option (NULL: of the verb itself). */
static void print_notes(FILE *out, const char *text, const char *verb, const char *option)
{
    for (const char *line = text; *line; line = next_line(line)) {
        const char *end, *about;
        if (!is_block(line)) continue;
        const char *verbs = read_head(line, &end, &about);
        if (!about != !option || !lists(verbs, end, verb)) continue;
        if (option && !(strncmp(about, option, strlen(option)) == 0 && about + strlen(option) == line_end(line)))
            continue;
        for (line = next_line(line); *line && *line != '@'; line = next_line(line))
            fprintf(out, "%.*s\n", (int)(line_end(line) - line), line);
        line -= *line == '@'; /* the newline before it: the loop takes the next line */
        if (!*line) return;
    }
}

/* --------------------------------------------------------------------- verbs */

static void print_options(FILE *out, const char *text, const char *verb, const cli_options *options)
{
    int open = 0;
    for (size_t i = 0; i < options->count; i++) {
        const cli_option *o = &options->rows[i];
        char help[1024];
        cli_option_help(help, sizeof help, o);
        if (o->kind == CLI_HEADING) {
            if (open) fputs(".El\n", out);
            fprintf(out, ".Pp\n.Em %s :\n", help);
            open = 0;
            continue;
        }
        if (!open) fputs(".Bl -tag -width Ds\n", out);
        open = 1;
        fprintf(out, ".It Fl -%s%s%s\n", o->name, o->value ? " Ar " : "", o->value ? o->value : "");
        print_text(out, help, 1);
        print_notes(out, text, verb, o->name);
    }
    if (open) fputs(".El\n", out);
}

static void print_verb(FILE *out, const char *text, const cli_verb *verb)
{
    cli_options options = {0};
    void *request = cli_list_options(&options, verb);
    fprintf(out, ".Ss %s\n", verb->name);
    print_text(out, verb->summary, 0);
    print_notes(out, text, verb->name, NULL);
    print_options(out, text, verb->name, &options);
    free(request);
}

static void print_synopsis(FILE *out, const cli_verb *verb)
{
    fprintf(out, ".Nm safer\n.Cm %s\n", verb->name);
    print_text(out, verb->usage, 0);
}

static void each_verb(FILE *out, const char *text, int synopsis)
{
    for (size_t i = 0; i < cli_group_count; i++)
        for (size_t k = 0; cli_groups[i].verbs[k]; k++) {
            if (synopsis)
                print_synopsis(out, cli_groups[i].verbs[k]);
            else
                print_verb(out, text, cli_groups[i].verbs[k]);
        }
}

/* -------------------------------------------------------------------- checks */

/* Whether there is an option (NULL: any) of one of the verbs that a block names, and all of these are there. */
static int block_is_good(const char *line)
{
    const char *end, *option, *verbs = read_head(line, &end, &option);
    size_t named = 1, found = 0;
    for (const char *p = verbs; p < end; p++) named += *p == ',';
    if (option && lists(verbs, end, EVERYWHERE)) {
        cli_options options = {0};
        cli_common_options(&options);
        found += cli_option_named(&options, option, (size_t)(line_end(line) - option)) != NULL;
    }
    for (size_t i = 0; i < cli_group_count; i++)
        for (size_t k = 0; cli_groups[i].verbs[k]; k++) {
            const cli_verb *verb = cli_groups[i].verbs[k];
            cli_options options = {0};
            if (!lists(verbs, end, verb->name)) continue;
            void *request = cli_list_options(&options, verb);
            found += !option || cli_option_named(&options, option, (size_t)(line_end(line) - option));
            free(request);
        }
    return found == named && (option || strncmp(line, "@about", 6) == 0);
}

safer_status pages_manual(FILE *out, const char *text, safer_error *error)
{
    int number = 0;
    for (const char *line = text; *line; line = next_line(line)) {
        const int length = (int)(line_end(line) - line);
        number++;
        if (strncmp(line, "@synopsis\n", 10) == 0) {
            each_verb(out, text, 1);
        } else if (strncmp(line, "@verbs\n", 7) == 0) {
            each_verb(out, text, 0);
        } else if (strncmp(line, "@everywhere\n", 12) == 0) {
            cli_options options = {0};
            cli_common_options(&options);
            memmove(options.rows, options.rows + 1, --options.count * sizeof *options.rows); /* not the heading */
            print_options(out, text, EVERYWHERE, &options);
        } else if (is_block(line)) {
            if (!block_is_good(line))
                return cli_error(error, SAFER_INPUT, "line %d: there is no such verb or option: %.*s", number, length,
                                 line);
            for (; *next_line(line) && *next_line(line) != '@'; number++) line = next_line(line);
        } else if (*line == '@') {
            return cli_error(error, SAFER_INPUT, "line %d: there is no %.*s", number, length, line);
        } else {
            fprintf(out, "%.*s\n", length, line);
        }
    }
    return SAFER_OK;
}
