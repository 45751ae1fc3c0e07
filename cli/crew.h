/* Many processes that mpirun started: --mpi. */
#ifndef CLI_CREW_H
#define CLI_CREW_H

#include "cli.h"

typedef struct cli_crew_flags {
    int mpi;
    double timeout;
    const char *again; /* what a user does when a rank was lost; NULL: --resume */
} cli_crew_flags;

void cli_crew_options(cli_options *options, cli_crew_flags *c); /* with a heading */

/* Joins, with --mpi, before anything else is done; else NULL. Says why not and exits. The crew is left when the program
 * exits. */
safer_crew *cli_crew_join(const cli_crew_flags *c, const cli_verb *verb);

/* Whether this process is a helper, which reads no data and prints nothing. */
int cli_crew_helps(void);

/* Whether all is said of a failure: rank 0 was told, or the rank that is lost was named already. */
int cli_crew_told(const safer_error *error);

/* Called with the program's arguments. With --mpi, all ranks find the same mistakes in them before they are a crew. */
void cli_crew_expect(int argc, char **argv);

/* Before a mistake is told: lets rank 0 tell it first, upon which mpirun ends the others. Where only this rank made it,
 * it returns. */
void cli_crew_let_first(void);

/* The device for this rank: with a crew "cuda", all GPUs, becomes the one of its number on its machine, and so does
 * "auto" where there is a GPU. `out` is for the name. */
const char *cli_crew_device(const char *asked, char out[32]);

#endif
