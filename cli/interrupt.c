/* Ctrl-C and SIGTERM: the program ends within a second, with exit status 130, whatever it waits for.
 *
 * A verb that has something to bring to an end (records, a checkpoint, children) sees the wish in its progress
 * function and has GRACE for it. Then, and at the second signal, the program ends where it is: what it wrote can be
 * resumed after any end, temporary files are removed by the next program that writes there, and children end
 * with us. Other verbs have nothing to lose and end at once. */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

/* microseconds; the rest of the second is for the end itself. With other processes mpirun decides how long it waits. */
enum { GRACE_US = 400000, SHARED_US = 2500000 };

static volatile sig_atomic_t interrupted, graceful, silent, grace_us = GRACE_US, exit_code = CLI_INTERRUPTED;
static const char *volatile again; /* how to go on from here; NULL: nothing is kept */

/* write() alone is allowed here. */
static void put(const char *text)
{
    size_t length = 0;
    while (text[length]) length++;
    if (write(STDERR_FILENO, text, length) < 0) { /* nobody reads it */
    }
}

/* Ctrl-C at a verb that has nothing to lose says enough by itself; what ends by another's wish says so. */
static void end_now(int number)
{
    const char *advice = again;
    if (!interrupted && number != SIGALRM) interrupted = number;
    if (!silent && exit_code == CLI_INTERRUPTED && (interrupted == SIGTERM || graceful)) {
        if (isatty(STDERR_FILENO)) put("\r\033[K"); /* in place of a progress line */
        put("safer: cancelled by ");
        put(cli_interrupt_name());
        if (advice) put("; ");
        if (advice) put(advice);
        put("\n");
    }
    _exit(exit_code);
}

static void on_interrupt(int number)
{
    const struct itimerval grace = {.it_value = {grace_us / 1000000, grace_us % 1000000}};
    const int before = errno;
    if (!graceful || interrupted) end_now(number);
    interrupted = number;
    setitimer(ITIMER_REAL, &grace, NULL);
    errno = before;
}

void cli_interrupt_start(void)
{
    struct sigaction interrupt = {.sa_handler = on_interrupt}, last = {.sa_handler = end_now};
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &interrupt, NULL);
    sigaction(SIGALRM, &last, NULL);
}

void cli_interrupt_grace(int grace) { graceful = grace; }

void cli_interrupt_shared(int is_silent)
{
    silent = is_silent;
    grace_us = SHARED_US;
    graceful = 1;
}

void cli_interrupt_silence(void) { silent = 1; }

void cli_interrupt_code(int code) { exit_code = code; }

void cli_interrupt_again(const char *how) { again = how; }

const char *cli_interrupt_advice(void) { return again; }

const char *cli_interrupt_name(void) { return interrupted == SIGTERM ? "SIGTERM" : "Ctrl-C"; }

int cli_interrupted(void) { return interrupted; }
