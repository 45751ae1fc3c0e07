/* What the verbs of the command line share. The program uses the library through
 * safer.h alone. */
#ifndef CLI_H
#define CLI_H

#include "safer.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit {
    CLI_DONE = 0,
    CLI_UNMET = 1,       /* a stated requirement was not met */
    CLI_USAGE = 2,       /* the command line is wrong */
    CLI_INPUT = 3,       /* a file does not hold what it should */
    CLI_SYSTEM = 4,      /* the machine failed us: disk, memory, permissions */
    CLI_INTERRUPTED = 130 /* Ctrl-C */
};

/* ----------------------------------------------------------------- options */

typedef enum cli_kind {
    CLI_FLAG,   /* int *: set to 1 */
    CLI_STRING, /* const char ** */
    CLI_LIST,   /* cli_list *: may be given several times */
    CLI_INT,    /* int *: not negative */
    CLI_UINT,   /* uint64_t * */
    CLI_REAL,   /* double * */
    CLI_HEADING /* a line in the help, nothing else */
} cli_kind;

typedef struct cli_list {
    const char **items;
    size_t count;
} cli_list;

typedef struct cli_option {
    const char *name;  /* "threshold" for --threshold */
    cli_kind kind;
    void *target;
    const char *value; /* how the help names the value */
    const char *help;  /* with the default */
} cli_option;

typedef struct cli_verb {
    const char *name;     /* "lexicon build" */
    const char *usage;    /* what follows the name */
    const char *summary;  /* one or two sentences */
    const char *examples; /* two or more, one a line */
    size_t min_arguments, max_arguments; /* positional */
} cli_verb;

/* Reads the command line into the targets; prints help and exits on --help; prints one
 * line and exits on misuse. Positional arguments are moved to the front of argv and
 * their number is returned. Every verb also takes --json, --quiet and --threads. */
size_t cli_parse(int argc, char **argv, const cli_verb *verb, const cli_option *options);

/* The options that every verb has, after cli_parse. */
typedef struct cli_common {
    int json, quiet, threads;
} cli_common;
const cli_common *cli_settings(void);

/* ---------------------------------------------------------------- messages */

/* "safer: message" on stderr. cli_fail returns the exit code that the status means. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_fail(const safer_error *error);
_Noreturn void cli_misuse(const cli_verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A progress line on stderr, when that is a terminal and --quiet was not given; notices
 * Ctrl-C in any case. */
const safer_progress *cli_progress(void);
void cli_progress_clear(void);

/* ------------------------------------------------------------------ output */

/* Emphasis on stdout, empty when it is not a terminal or NO_COLOR is set. */
const char *cli_bold(void);
const char *cli_dim(void);
const char *cli_plain(void);

/* A whole number with thousands separated: "44,593". Static, 8 at a time. */
const char *cli_count(uint64_t n);

/* x cut (not rounded up) to so many decimals. Static, 8 at a time. */
const char *cli_cut(double x, int decimals);

/* Prints a JSON value and a newline on stdout, and releases it. */
void cli_print_json(json_t *value);

/* The verbs; each returns an exit code. */
int cli_lexicon(int argc, char **argv);
int cli_lexicon_build(int argc, char **argv);
int cli_lexicon_import(int argc, char **argv);
int cli_lexicon_export(int argc, char **argv);
int cli_lexicon_show(int argc, char **argv);
int cli_lexicon_stats(int argc, char **argv);

#endif
