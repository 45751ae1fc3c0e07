/* A crew: processes, also on many machines, that share the work of one run. Part of safer.h, which says what holds
 * throughout.
 *
 * mpirun starts the same program several times; each process is a rank, numbered from 0. All join, open the same model
 * and lexicon, and call the same function (safer_certify, safer_attack) with the crew in its options. Rank 0 reads the
 * data, hands out its texts, works too, writes the records and has the results; the other ranks, helpers, give NULL for
 * the data and for the output, and return when the run is over. docs/scale.md tells more.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAFER_CREW_H
#define SAFER_CREW_H

#include "safer/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct safer_crew safer_crew;

/* Called at once, from a thread of the crew's, when a rank is found to be lost: it died, hangs, or its machine cannot
 * be reached. On rank 0; where that is lost itself, on rank 1. Then the run ends with the same message, as
 * SAFER_SYSTEM, but that may take until the texts in work are done. */
typedef void (*safer_crew_lost)(void *context, const char *message);

/* Joins the ranks that mpirun started, through MPI, which a plugin brings; without mpirun, a crew of one. A rank that
 * is silent for `timeout` seconds (0: 60) is lost. `lost` may be NULL. Once per process. */
SAFER_API safer_status safer_crew_join(safer_crew **out, double timeout, safer_crew_lost lost, void *context,
                                       safer_error *error);

SAFER_API int safer_crew_rank(const safer_crew *crew);
SAFER_API int safer_crew_size(const safer_crew *crew);
/* The name of a rank's machine, and the number of this rank among those of its machine. */
SAFER_API const char *safer_crew_host(const safer_crew *crew, int rank);
SAFER_API int safer_crew_local_rank(const safer_crew *crew);

/* A helper that cannot take part, since its model cannot be opened, or whose run failed, tells rank 0, whose run ends
 * with this error and the rank's name. Returns whether all is said by that: nothing need be printed here. 0 on rank 0,
 * unless it was itself held for lost and is now told to stop; 0 on rank 1 when rank 0 is lost. */
SAFER_API int safer_crew_report(safer_crew *crew, const safer_error *error);

/* Between runs, where a crew does several: rank 0 tells all others what comes next, in words of the program's own, and
 * these hear it, in order. A helper that opens the model for a run that rank 0 has given up before it began (its data
 * cannot be read) finds that run ended, SAFER_CANCELLED, and hears the next. */
SAFER_API safer_status safer_crew_tell(safer_crew *crew, const char *words, safer_error *error);
/* Waits for them; `size` bytes at `out` must be enough, with a NUL. SAFER_CANCELLED: rank 0 left, or `progress`, which
 * may be NULL, asks to stop. */
SAFER_API safer_status safer_crew_hear(safer_crew *crew, char *out, size_t size, const safer_progress *progress,
                                       safer_error *error);
/* Whether all ranks are there and well; else the first failure, which stays. `stopped`: this process was asked to stop,
 * which mpirun does to all when one has died; then the others are asked for a sign of life, for a moment. */
SAFER_API safer_status safer_crew_check(safer_crew *crew, int stopped, safer_error *error);

/* Leaves: all ranks do it, whatever happened, rank 0 with the exit status of the program. It waits for the others, and
 * ends them where they do not come. NULL is accepted. */
SAFER_API void safer_crew_leave(safer_crew *crew, int code);

#ifdef __cplusplus
}
#endif
#endif
