/* A shell command that runs beside us, with pipes to and from it. */
#define _GNU_SOURCE
#include "remote/exec_child.h"

#include "base/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PIPE_BYTES = 1 << 20, /* of its input: a few requests, so that it never waits for us */
    LIFE = 3              /* what the guard reads */
};

/* The guard, which kills the group when we are gone, and the command. It keeps none of the command's streams
 * open, and no signal that the command may send to its group ends it but SIGKILL, which ends them all. */
static const char script[] = "(trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2\n"
                             "read -r end <&3; kill -s KILL 0) </dev/null >/dev/null 2>&1 &\n"
                             "exec 3<&-\n"
                             "exec /bin/sh -c \"$1\" sh";

extern char **environ;

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* ------------------------------------------------------------------ starting */

/* A pipe's end may have got the number of a standard stream that this process has closed;
 * setting up the child's own would then overwrite it. */
static int lift(int *fd)
{
    if (*fd > LIFE) return 0;
    int higher = fcntl(*fd, F_DUPFD_CLOEXEC, LIFE + 1);
    if (higher < 0) return -1;
    close(*fd);
    *fd = higher;
    return 0;
}

/* Closed on exec, so that no child ever holds the pipes of another. */
static int open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    return lift(&ends[0]) || lift(&ends[1]) ? -1 : 0;
}

/* Our mask and the signals that we, or the program that we are in, may ignore are not for the child. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, ours;
    sigemptyset(&none);
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    return posix_spawnattr_setflags(attributes,
                                    POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) ||
           posix_spawnattr_setpgroup(attributes, 0) || posix_spawnattr_setsigmask(attributes, &none) ||
           posix_spawnattr_setsigdefault(attributes, &ours);
}

static int spawn(pid_t *pid, const char *command, int input, int output, int errors, int life)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *arguments[] = {
        (char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)script, (char[]){"sh"}, (char *)(uintptr_t)command, NULL};
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return code;
    code = posix_spawnattr_init(&attributes);
    if (!code) {
        code = set_attributes(&attributes);
        if (!code) code = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
        if (!code) code = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (!code) code = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
        if (!code) code = posix_spawn_file_actions_adddup2(&actions, life, LIFE);
        if (!code) code = posix_spawn(pid, "/bin/sh", &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static int unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? -1 : 0;
}

safer_status sf_child_start(sf_child *child, const char *command, safer_error *error)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, life[2] = {-1, -1}, code;
    pid_t pid = 0;
    *child = SF_CHILD_NONE;
    if (open_pipe(in) || open_pipe(out) || open_pipe(err) || open_pipe(life) || unblock(in[1]) || unblock(out[0]) ||
        unblock(err[0]))
        code = errno;
    else
        code = spawn(&pid, command, in[0], out[1], err[1], life[0]);
    close_fd(&in[0]);
    close_fd(&out[1]);
    close_fd(&err[1]);
    close_fd(&life[0]);
    if (code) {
        close_fd(&life[1]);
        close_fd(&in[1]);
        close_fd(&out[0]);
        close_fd(&err[0]);
        errno = code;
        return sf_fail_errno(error, "start", "/bin/sh");
    }
    if (fcntl(in[1], F_SETPIPE_SZ, PIPE_BYTES) < 0) { /* only speed: there is a limit for each user */
    }
    child->pid = pid;
    child->input = in[1];
    child->output = out[0];
    child->errors = err[0];
    child->life = life[1];
    return SAFER_OK;
}

/* ------------------------------------------------------------ standard error */

static void keep_tail(sf_child *child, const char *bytes, size_t length)
{
    size_t room = sizeof child->tail;
    if (length > room) {
        bytes += length - room;
        length = room;
    }
    if (child->tail_length + length > room) {
        size_t drop = child->tail_length + length - room;
        child->tail_length -= drop;
        memmove(child->tail, child->tail + drop, child->tail_length);
    }
    memcpy(child->tail + child->tail_length, bytes, length);
    child->tail_length += length;
}

void sf_child_listen(sf_child *child)
{
    char bytes[4096];
    for (int i = 0; i < 256 && child->errors >= 0; i++) { /* one that never stops talking must not hold us up */
        ssize_t got = read(child->errors, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) close_fd(&child->errors);
        if (got > 0) keep_tail(child, bytes, (size_t)got);
    }
}

/* Where the last lines of at most `most` bytes begin; the last one is cut if it must be. */
static size_t last_lines(const char *bytes, size_t length, size_t most)
{
    if (length <= most) return 0;
    size_t start = length - most;
    const char *newline = memchr(bytes + start, '\n', length - start);
    if (newline) return (size_t)(newline - bytes) + 1;
    while (start < length && (bytes[start] & 0xc0) == 0x80) start++; /* not within a character */
    return start;
}

void sf_child_tail_text(char out[SF_CHILD_STORY], const sf_child *child)
{
    size_t length = child->tail_length, used = 2;
    while (length && strchr(" \t\r\n", child->tail[length - 1])) length--;
    size_t start = last_lines(child->tail, length, 300);
    out[0] = '\0';
    if (start == length) return;
    memcpy(out, ": ", 2);
    for (size_t i = start; i < length && used < SF_CHILD_STORY - 4; i++) {
        char c = child->tail[i];
        if (c != '\n') {
            out[used++] = c ? c : '?';
        } else if (child->tail[i + 1] != '\n') { /* there is a next: the last byte is no newline */
            memcpy(out + used, " | ", 3);
            used += 3;
        }
    }
    out[used] = '\0';
}

/* -------------------------------------------------------------------- ending */

/* Whether it has ended; it stays a zombie, so that nobody else can get its number. */
static int has_ended(sf_child *child)
{
    siginfo_t info = {0};
    int code;
    do code = waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    while (code != 0 && errno == EINTR);
    if (code != 0) { /* the program that we are in collects, or ignores, all of its children */
        child->code = SF_CHILD_UNKNOWN;
        return 1;
    }
    if (info.si_pid == 0) return 0;
    child->code = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
    return 1;
}

/* It is not needed any more, but a child that writes to a full pipe cannot end. */
static void discard_output(sf_child *child)
{
    char bytes[4096];
    ssize_t got = 1;
    for (int i = 0; i < 256 && got > 0 && child->output >= 0; i++) got = read(child->output, bytes, sizeof bytes);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) close_fd(&child->output);
}

static int wait_for_end(sf_child *child, double seconds)
{
    double start = sf_seconds();
    int pause = 1; /* milliseconds */
    for (;;) {
        if (has_ended(child)) return 1;
        if (sf_seconds() - start >= seconds) return 0;
        struct pollfd fds[] = {{.fd = child->output, .events = POLLIN}, {.fd = child->errors, .events = POLLIN}};
        poll(fds, 2, pause);
        discard_output(child);
        sf_child_listen(child);
        if (pause < 16) pause *= 2;
    }
}

/* Waits without end: nothing can withstand SIGKILL. */
static void kill_group(sf_child *child)
{
    kill(-child->pid, SIGKILL);
    while (!wait_for_end(child, 1)) kill(-child->pid, SIGKILL);
}

void sf_child_end(sf_child *child, double grace)
{
    int ended;
    if (!child->pid) return;
    close_fd(&child->input);
    ended = grace > 0 && wait_for_end(child, grace);
    if (!ended && grace > 0) {
        kill(-child->pid, SIGTERM);
        ended = wait_for_end(child, 0.5);
    }
    if (!ended)
        kill_group(child);
    else if (child->code != SF_CHILD_UNKNOWN)
        kill(-child->pid, SIGKILL); /* what it has left behind */
    sf_child_listen(child);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {}
    close_fd(&child->output);
    close_fd(&child->errors);
    close_fd(&child->life);
    child->pid = 0;
}

void sf_child_end_text(char out[SF_CHILD_STORY], const sf_child *child)
{
    if (child->code == SF_CHILD_UNKNOWN) {
        snprintf(out, SF_CHILD_STORY, "ended");
    } else if (child->code >= 0) {
        snprintf(out, SF_CHILD_STORY, "ended with status %d", child->code);
    } else {
        const char *name = sigdescr_np(-child->code); /* NULL for the signals of no fixed meaning */
        snprintf(out, SF_CHILD_STORY, "was killed by signal %d%s%s%s", -child->code, name ? " (" : "", name ? name : "",
                 name ? ")" : "");
    }
}
