/* Many processes that mpirun started. */
#define _GNU_SOURCE
#include "crew.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    safer_crew *crew; /* NULL: this process is alone */
    volatile int lost_said;
    int expected;      /* not rank 0, and no crew yet */
    const char *again; /* what to do when a rank is lost */
} state;

void cli_crew_options(cli_options *options, cli_crew_flags *c)
{
    c->timeout = 60;
    cli_add_heading(options, "Many processes");
    cli_add_flag(options, "mpi", &c->mpi, "share the texts with the other processes that mpirun started");
    cli_add_real(options, "mpi-timeout", &c->timeout, "S",
                 "end the run when one of them is silent for so many seconds (default {default})");
}

/* Another thread's: the run may take a while to end, and mpirun may not wait for it. */
static void say_lost(void *context, const char *message)
{
    (void)context;
    if (state.lost_said) return;
    state.lost_said = 1;
    cli_interrupt_code(CLI_SYSTEM);
    char line[1200];
    snprintf(line, sizeof line, "%ssafer: %s; %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", message, state.again);
    fputs(line, stderr);
}

static void leave(int code, void *context)
{
    (void)context;
    fflush(stdout);
    cli_interrupt_shared(1); /* all is said */
    safer_crew *crew = state.crew;
    state.crew = NULL;
    safer_crew_leave(crew, code);
}

safer_crew *cli_crew_join(const cli_crew_flags *c, const cli_verb *verb)
{
    safer_error error = {0};
    if (!c->mpi && c->timeout != 60) cli_misuse(verb, "--mpi-timeout: only with --mpi");
    if (!c->mpi) return NULL;
    if (!(c->timeout >= 1 && c->timeout <= 1e6)) cli_misuse(verb, "--mpi-timeout %g: from 1 to a million", c->timeout);
    safer_crew *crew = NULL;
    state.again = c->again ? c->again : "what was written can be continued with --resume";
    if (safer_crew_join(&crew, c->timeout, say_lost, NULL, &error) != SAFER_OK) exit(cli_fail(&error));
    state.crew = crew;
    on_exit(leave, NULL);
    cli_interrupt_shared(cli_crew_helps());
    return crew;
}

void cli_crew_expect(int argc, char **argv)
{
    /* Open MPI, MPICH and Slurm */
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
    int mpi = 0;
    for (int i = 1; i < argc; i++) mpi |= strcmp(argv[i], "--mpi") == 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && mpi; i++) {
        const char *rank = getenv(names[i]);
        if (!rank) continue;
        state.expected = strcmp(rank, "0") != 0;
        if (state.expected) cli_interrupt_silence(); /* of many processes one speaks */
        return;
    }
}

void cli_crew_let_first(void)
{
    if (state.expected && !state.crew) usleep(2000000);
}

int cli_crew_helps(void) { return state.crew && safer_crew_rank(state.crew) > 0; }

static int is_usable(const safer_device *device) { return strncmp(device->name, "cuda:", 5) == 0 && !*device->reason; }

int cli_crew_told(const safer_error *error)
{
    return state.crew && (state.lost_said || safer_crew_report(state.crew, error));
}

const char *cli_crew_device(const char *asked, char out[32])
{
    safer_device device;
    int gpus = 0;
    if (!state.crew || (strcmp(asked, "cuda") != 0 && strcmp(asked, "auto") != 0)) return asked;
    for (size_t i = 0; safer_device_get(&device, i); i++) gpus += is_usable(&device);
    if (!gpus) return asked;
    int which = safer_crew_local_rank(state.crew) % gpus;
    for (size_t i = 0; safer_device_get(&device, i) && (!is_usable(&device) || which-- > 0);) i++;
    snprintf(out, 32, "%s", device.name);
    return out;
}
