/* The trial's command line; trial.h says what it is. */
#define _GNU_SOURCE
#include "trial.h"

#include <inttypes.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "Usage: trial instances [--instances N] [--seed S] [--first I]\n"
    "       trial models [--instances N] [--seed S]\n"
    "       trial edits [--instances N] [--seed S] [--first I]\n"
    "       trial rates [--texts N] [--seed S]\n"
    "\n"
    "Compares what certificates claim with the truth; bench/trial.h says how.\n"
    "\n"
    "  instances  made-up lexicons, texts and classifiers, every attack and every draw tried\n"
    "  models     the same for trained models, and bounds of the models themselves\n"
    "  edits      words put in, taken out and replaced, where draws delete words\n"
    "  rates      how often texts on the border receive a certificate, or a wrong answer\n"
    "\n"
    "  --instances N  how many (default: 1000000; models: 40000; edits: 200000)\n"
    "  --first I      number of the first one, to repeat it (default: 0)\n"
    "  --texts N      of every line of the table (default: 20000)\n"
    "  --seed S       default: 1\n"
    "  --break NAME   puts a fault into what the library gives, to see that it is found:\n"
    "                 radius overlap tie class q bound answer draw plain vote record margin delta edits\n"
    "\n"
    "Exit: 0 nothing is wrong, 1 something is, 2 usage, 4 the trial could not go on.\n";

/* ----------------------------------------------------------------- services */

static char folder[60];

static void remove_folder(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (*folder && system(command) != 0) fprintf(stderr, "trial: %s is left behind\n", folder);
}

_Noreturn void trial_stop(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fflush(stdout);
    fputs("trial: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(4);
}

void trial_expect(safer_status status, const safer_error *error, const char *doing)
{
    if (status != SAFER_OK) trial_stop("%s: %s", doing, error->message);
}

const char *trial_path(const char *name)
{
    static char paths[4][160];
    static int slot;
    if (!*folder) {
        snprintf(folder, sizeof folder, "%.30s/safer-trial-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        if (!mkdtemp(folder)) trial_stop("%s: %s", folder, strerror(errno));
        atexit(remove_folder);
    }
    slot = (slot + 1) % 4;
    snprintf(paths[slot], sizeof paths[slot], "%s/%s", folder, name);
    return paths[slot];
}

double trial_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void trial_progress(const char *part, uint64_t done, uint64_t total, double start)
{
    static double last;
    const int terminal = isatty(STDERR_FILENO);
    const double now = trial_seconds(), rate = (double)done / (now - start + 1e-9);
    if (now - (last > start ? last : start) < (terminal ? 1 : 60) && (done < total || last < start)) return;
    last = now;
    fprintf(stderr, "%s%s: %" PRIu64 " of %" PRIu64 ", %.0f per second, %.0f s left%s", terminal ? "\r" : "", part,
            done, total, rate, (double)(total - done) / (rate + 1e-9), terminal && done < total ? "  " : "\n");
}

/* ------------------------------------------------------------- command line */

static _Noreturn void misuse(const char *what, const char *argument)
{
    fprintf(stderr, "trial: %s: %s (see --help)\n", argument, what);
    exit(2);
}

static uint64_t number_of(const char *option, const char *text)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long value = text && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    if (!end || *end || errno) misuse("a whole number must follow", option);
    return value;
}

static trial_break break_of(const char *name)
{
    for (trial_break b = BREAK_NONE + 1; name && b < BREAKS; b++)
        if (strcmp(name, trial_break_names[b]) == 0) return b;
    misuse("no such fault", name ? name : "--break");
}

static void read_options(trial_options *o, char **arguments)
{
    for (char **a = arguments; *a; a += 2) {
        if (strcmp(*a, "--instances") == 0)
            o->instances = number_of(*a, a[1]);
        else if (strcmp(*a, "--first") == 0)
            o->first = number_of(*a, a[1]);
        else if (strcmp(*a, "--texts") == 0)
            o->texts = number_of(*a, a[1]);
        else if (strcmp(*a, "--seed") == 0)
            o->seed = number_of(*a, a[1]);
        else if (strcmp(*a, "--break") == 0)
            o->fault = break_of(a[1]);
        else
            misuse("no such option", *a);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        size_t (*part)(const trial_options *);
        uint64_t instances;
    } parts[] = {{"instances", trial_instances, 1000000},
                 {"models", trial_models, 40000},
                 {"edits", trial_edits, 200000},
                 {"rates", trial_rates, 0}};
    trial_options o = {.seed = 1, .texts = 20000};
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return fputs(usage, stdout) < 0 ? 4 : 0;
    for (size_t i = 0; argc > 1 && i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(argv[1], parts[i].name) != 0) continue;
        o.instances = parts[i].instances;
        read_options(&o, argv + 2);
        return parts[i].part(&o) ? 1 : 0;
    }
    fputs(usage, stderr);
    return 2;
}
