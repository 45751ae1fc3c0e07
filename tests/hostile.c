/* The program, run again and again: what scripts/hostile starts once where it would start thousands.
 *
 * Every line of the standard input is a command line, its words separated by tabs. Each runs in a child of this
 * process, which has not begun a thread: starting costs a fork, not the loading of a sanitized program. After each,
 * one line: exit code (-N: ended by signal N; late: it was stopped), milliseconds, kilobytes at most, and the
 * beginning of what it wrote to stderr, where \n and \t stand for newline and tab.
 *
 * hostile SECONDS */
#define _GNU_SOURCE
#define main safer_main
#include "main.c"
#undef main

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 64, SHOWN = 4000 };

static double now(void)
{
    struct timeval t;
    gettimeofday(&t, NULL);
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static _Noreturn void run(char **words, int count, int messages)
{
    const struct rlimit none = {0, 0}, size = {1 << 28, 1 << 28};
    const int nothing = open("/dev/null", O_RDWR);
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_FSIZE, &size);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 || dup2(messages, 2) < 0) _exit(97);
    exit(safer_main(count, words));
}

/* Waits so long for the child to end; nonzero: it did not. */
static int lasts(pid_t child, double seconds)
{
    const int handle = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd one = {.fd = handle, .events = POLLIN};
    if (handle < 0) return 0; /* an old kernel: no limit */
    const int ended = poll(&one, 1, (int)(seconds * 1000));
    close(handle);
    if (ended == 0) kill(child, SIGKILL);
    return ended == 0;
}

static void show(int messages)
{
    char text[SHOWN];
    const ssize_t length = pread(messages, text, sizeof text, 0);
    for (ssize_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '\n' || c == '\t')
            printf("\\%c", c == '\n' ? 'n' : 't');
        else
            putchar(c < 32 ? '?' : c);
    }
}

static void try_line(char *line, double seconds)
{
    char *words[WORDS] = {"safer"}, *rest = line;
    int count = 1, status = 0;
    struct rusage used;
    const int messages = memfd_create("messages", MFD_CLOEXEC);
    const double begin = now();
    for (char *word; count < WORDS - 1 && (word = strsep(&rest, "\t\n")) && rest;) words[count++] = word;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) run(words, count, messages);
    if (child < 0 || messages < 0) exit(97);
    const int late = lasts(child, seconds);
    while (wait4(child, &status, 0, &used) < 0 && errno == EINTR) continue;
    if (late)
        printf("late");
    else
        printf("%d", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    printf("\t%.0f\t%ld\t", 1000 * (now() - begin), used.ru_maxrss);
    show(messages);
    putchar('\n');
    fflush(stdout);
    close(messages);
}

int main(int argc, char **argv)
{
    const double seconds = argc == 2 ? atof(argv[1]) : 0;
    char *line = NULL;
    size_t room = 0;
    if (seconds <= 0) {
        fprintf(stderr, "hostile: SECONDS is needed\n");
        return 2;
    }
    while (getline(&line, &room, stdin) > 0) try_line(line, seconds);
    free(line);
    return 0;
}
