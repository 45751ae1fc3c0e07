/* What all verbs of the command line share: exit codes, tables of options, messages, output. Groups of
 * options that several verbs have stand in NAME_options.h. The program uses the library through safer.h
 * alone. */
#ifndef CLI_H
#define CLI_H

#include "safer.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit {
    CLI_DONE = 0,
    CLI_UNMET = 1,        /* a stated requirement was not met */
    CLI_USAGE = 2,        /* the command line is wrong */
    CLI_INPUT = 3,        /* a file does not hold what it should */
    CLI_SYSTEM = 4,       /* the machine failed us: disk, memory, permissions */
    CLI_INTERRUPTED = 130 /* Ctrl-C */
};

/* ----------------------------------------------------------------- options */

typedef enum cli_kind {
    CLI_FLAG,    /* int *: set to 1 */
    CLI_STRING,  /* const char ** */
    CLI_CHOICE,  /* const char **: one of several names */
    CLI_PATH,    /* const char **: a file or folder that is read */
    CLI_OUTPUT,  /* const char **: a file or folder that is written */
    CLI_LIST,    /* cli_list *: paths that are read; may be given several times */
    CLI_STRINGS, /* cli_list *: anything; may be given several times */
    CLI_INT,     /* int *: not negative */
    CLI_UINT,    /* uint64_t * */
    CLI_REAL,    /* double * */
    CLI_VALUE,   /* json_t **, borrowed: any value; in configurations only */
    CLI_HEADING  /* a line in the help, nothing else */
} cli_kind;

typedef struct cli_list {
    const char **items;
    size_t count;
} cli_list;

/* The names of a choice, by number from 0 on; NULL beyond the last. */
typedef const char *(*cli_names)(size_t number);

typedef struct cli_option {
    const char *name; /* "threshold" for --threshold */
    cli_kind kind;
    void *target;
    const char *value; /* how the help names the value */
    const char *help;  /* {default} in it stands for the value before parsing, {choices} for all names */
    cli_names names;   /* of a choice */
    const void *usual; /* where {default} is read, when the target holds a sign for "not given"; else NULL */
} cli_option;

/* A table of options: of a verb, or of an object in a configuration. Begins as {0}. */
enum { CLI_MOST_OPTIONS = 96 };
typedef struct cli_options {
    cli_option rows[CLI_MOST_OPTIONS];
    size_t count;
} cli_options;

/* Each adds an option to a table; what is returned is for setting `usual`. */
void cli_add_heading(cli_options *options, const char *text);
cli_option *cli_add_flag(cli_options *options, const char *name, int *target, const char *help);
cli_option *cli_add_string(cli_options *options, const char *name, const char **target, const char *value,
                           const char *help);
cli_option *cli_add_choice(cli_options *options, const char *name, const char **target, cli_names names,
                           const char *value, const char *help);
cli_option *cli_add_path(cli_options *options, const char *name, const char **target, const char *value,
                         const char *help);
cli_option *cli_add_output(cli_options *options, const char *name, const char **target, const char *value,
                           const char *help);
cli_option *cli_add_list(cli_options *options, const char *name, cli_list *target, const char *value, const char *help);
cli_option *cli_add_strings(cli_options *options, const char *name, cli_list *target, const char *value,
                            const char *help);
cli_option *cli_add_int(cli_options *options, const char *name, int *target, const char *value, const char *help);
cli_option *cli_add_uint(cli_options *options, const char *name, uint64_t *target, const char *value, const char *help);
cli_option *cli_add_real(cli_options *options, const char *name, double *target, const char *value, const char *help);
cli_option *cli_add_value(cli_options *options, const char *name, json_t **target);

/* One thing the program can do. Its request is a struct of its own, into which the options are read. */
typedef struct cli_verb {
    const char *name;                                  /* "lexicon build" */
    const char *brief;                                 /* a few words, for lists of verbs */
    const char *usage;                                 /* what follows the name */
    const char *summary;                               /* one or more sentences */
    const char *examples;                              /* two or more, one per line */
    size_t min_arguments, max_arguments;               /* positional */
    size_t request_size;                               /* 0: it has no options of its own, and its request is NULL */
    void (*list)(cli_options *options, void *request); /* sets the defaults of a zeroed request, adds its options */
    int (*run)(void *request, char **arguments, size_t count); /* returns an exit code */
} cli_verb;

/* Runs a verb with what follows its name; returns its exit code. Prints help and exits on --help; prints
 * one line and exits on misuse. Every verb also takes --json, --quiet, --threads, --max-unpacked and
 * --help. */
int cli_run(const cli_verb *verb, int argc, char **argv);

/* The options of a verb for a request of its own, with the defaults; free() it. */
void *cli_list_options(cli_options *options, const cli_verb *verb);

/* The options that every verb has: the table, and what was given. */
void cli_common_options(cli_options *options);
typedef struct cli_common {
    int json, quiet, threads;
    const char *max_unpacked; /* a size; NULL: as the library has it */
} cli_common;
const cli_common *cli_settings(void);

/* The option of a name, or NULL; and the one that was likely meant where no option has it, or NULL. */
const cli_option *cli_option_named(const cli_options *options, const char *name, size_t length);
const char *cli_option_nearest(const cli_options *options, const char *typed, size_t length);

/* Whether a choice has this name; all its names as "a, b or c"; the help of an option with its default
 * and choices filled in, which is true before parsing. */
int cli_is_choice(cli_names names, const char *name);
void cli_choices(char *out, size_t size, cli_names names);
void cli_option_help(char *out, size_t size, const cli_option *option);

int cli_read_real(const char *text, double *out);    /* whether it is a number */
void cli_list_add(cli_list *list, const char *item); /* which is borrowed */

/* Letters to change to get from what was typed to a name, for "did you mean"; SIZE_MAX
 * when it is too far off to have been meant. */
size_t cli_distance(const char *typed, size_t length, const char *name);

/* ---------------------------------------------------------------- messages */

/* "safer: message" on stderr, one line whatever it quotes. cli_say is for notes, which
 * --quiet silences; cli_fail returns the exit code that the status means, as cli_code does; cli_misuse
 * also says which help to read (of the program itself when the verb is NULL). */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_fail(const safer_error *error);
int cli_code(safer_status status);
const char *cli_message(const safer_error *error); /* with options for the library's members; until the next call */
void cli_message_for(const cli_verb *verb);        /* whose options are meant */
_Noreturn void cli_no_memory(void); /* the message and the exit status for it; not while a file is being written */
_Noreturn void cli_misuse(const cli_verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints on stdout what a file says, an id or a label, with '?' for what would end the line, command a terminal or
 * turn the order of what is read. */
void cli_put(const char *text);

void cli_clean(char *text); /* the same in its place, for what is printed otherwise */

/* Call last: CLI_SYSTEM, with a message, when what was printed on stdout did not
 * arrive (a full disk), else `code`. */
int cli_finish(int code);

/* Ctrl-C and SIGTERM end the program with CLI_INTERRUPTED: at once, or, with `grace`, when the verb has noticed,
 * and within a second in any case. */
void cli_interrupt_start(void);
void cli_interrupt_grace(int grace);
int cli_interrupted(void);
#define CLI_RESUME "continue with --resume"
void cli_interrupt_again(const char *how); /* how to go on afterwards, as "continue with --resume"; borrowed */
const char *cli_interrupt_advice(void);    /* what was given there, or NULL */
const char *cli_interrupt_name(void);      /* "Ctrl-C" or "SIGTERM" */

/* For a process of many (--mpi): it stays for a little longer when it is interrupted, so that others find that it is
 * there; a silent one prints nothing. And what its exit status is then, when not CLI_INTERRUPTED. */
void cli_interrupt_shared(int silent);
void cli_interrupt_silence(void); /* another process says it */
void cli_interrupt_code(int code);

/* A progress line on stderr, when that is a terminal and --quiet was not given; notices
 * Ctrl-C in any case: from now on there is grace. */
const safer_progress *cli_progress(void);
void cli_progress_clear(void);

double cli_now(void); /* seconds, of a clock that is never set */

/* ------------------------------------------------------------------ output */

/* Emphasis on stdout, empty when it is not a terminal or NO_COLOR is set. */
const char *cli_bold(void);
const char *cli_dim(void);
const char *cli_red(void);
const char *cli_green(void);
const char *cli_plain(void);

/* Numbers, all static, 8 at a time. None is rounded to the side that claims more. */
const char *cli_count(uint64_t n);                                   /* with thousands separated: "44,593" */
const char *cli_some(uint64_t n, const char *one, const char *many); /* "1 entry", "44,593 entries" */
const char *cli_texts(uint64_t n);                                   /* "1 text", "44,593 texts" */
const char *cli_cut(double x, int decimals);                         /* x >= 0 cut to so many decimals */
const char *cli_up(double x, int decimals);                          /* the same, rounded up: for upper bounds */
const char *cli_percent(size_t part, size_t whole);                  /* part/whole in per cent, two decimals, cut */
const char *cli_share(double share, int decimals);   /* a share in per cent, cut, where its parts are not known */
const char *cli_mean(double x, int decimals);        /* x >= 0, no bound, cut */
const char *cli_interval(size_t part, size_t whole); /* 95%, in per cent, the ends outward: "82.79 to 86.75" */
const char *cli_p_value(double p);                   /* rounded up: "0.0312", "1.3e-07" */
const char *cli_real(double x);                      /* the shortest decimal that reads back to x */

/* Fills in an error of this program's own and returns its status. */
safer_status cli_error(safer_error *error, safer_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes a file whole or not at all, what links lead to; a device or pipe directly. */
safer_status cli_write_file(const char *path, const char *bytes, size_t length, safer_error *error);

safer_status cli_make_folder(const char *path, safer_error *error); /* one that is there is fine */

/* Put JSON together; what is added is taken over. They end the program when memory is out, also when there is no
 * value: it could not be made. cli_extend adds the members of another object. */
void cli_append(json_t *array, json_t *value);
void cli_set(json_t *object, const char *name, json_t *value);
void cli_extend(json_t *object, json_t *members);

json_t *cli_need(json_t *value); /* the value itself */

/* Read it: NULL where the text is not JSON; the program ends when memory is out. */
json_t *cli_json_read(const char *text);
json_t *cli_json_load(const char *path, size_t flags, json_error_t *where);

/* As json_dumps; the program ends when memory is out. */
char *cli_json_text(const json_t *value, size_t flags);

/* Prints a JSON value and a newline on stdout, and releases it. */
void cli_print_json(json_t *value);

/* A real so that reading gives it back, by 15, 16 or 17 digits, and never without a point or an exponent. */
void cli_put_real(FILE *out, double x);

#endif
