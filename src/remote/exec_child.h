/* A shell command that runs beside us, with pipes to and from it.
 *
 * It has a process group of its own: what it starts ends with it, and Ctrl-C at the terminal
 * is for us alone, who then end it in our own time. Knows nothing of what is said.
 *
 * The group also ends when we do, in whatever way, kill -9 and crashes included: a shell in it waits for the end
 * of a pipe whose other end we alone hold, and then kills the group. The kernel closes that end for us. (A signal at
 * the parent's death, PR_SET_PDEATHSIG, would reach one process, not what it has started, and is sent when a thread
 * ends.) What leaves the group, by setsid or as a job of an interactive shell, is out of reach; and a
 * process that was forked from us without an exec holds the pipe too, until it ends. */
#ifndef SF_REMOTE_EXEC_CHILD_H
#define SF_REMOTE_EXEC_CHILD_H

#include "base/error.h"

#include <sys/types.h>

typedef struct sf_child {
    pid_t pid;       /* 0: none runs */
    int input;       /* we write: its standard input, */
    int output;      /* and read: its standard output, */
    int errors;      /* and standard error. None of them blocks; -1: closed */
    int life;        /* the pipe that ends with us */
    int code;        /* how the last one ended: an exit status, or minus a signal, or SF_CHILD_UNKNOWN */
    char tail[2048]; /* the end of what it wrote to standard error */
    size_t tail_length;
} sf_child;

enum { SF_CHILD_UNKNOWN = -1000, SF_CHILD_STORY = 512 };

#define SF_CHILD_NONE ((sf_child){.input = -1, .output = -1, .errors = -1, .life = -1})

/* Runs /bin/sh -c COMMAND. */
safer_status sf_child_start(sf_child *child, const char *command, safer_error *error);

/* Takes what it wrote to standard error; never waits. */
void sf_child_listen(sf_child *child);

/* Closes its input, waits `grace` seconds for it to end by itself, then ends it and all of
 * its group; 0: kills it. What it still writes to its output is lost. Nothing when none runs. */
void sf_child_end(sf_child *child, double grace);

/* "ended with status 127", "was killed by signal 9 (Killed)" */
void sf_child_end_text(char out[SF_CHILD_STORY], const sf_child *child);

/* ": " and the last lines of standard error, joined by " | "; "" when nothing was written. */
void sf_child_tail_text(char out[SF_CHILD_STORY], const sf_child *child);

#endif
