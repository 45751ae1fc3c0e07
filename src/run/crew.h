/* A crew: ranks that send each other frames, and notice when one of them is lost.
 *
 * Each rank has one thread, the post, which alone speaks to the transport. It sends what others put, hands on what
 * comes, sends a sign of life every second, and watches for those of the others: a helper watches rank 0, rank 0 all.
 * When nothing happens it sleeps, for up to 5 ms: MPI knows only how to wait by spinning.
 *
 * Frames. A message is one or more of them:
 *
 *     kind      4 bytes    see below
 *     length    8 bytes    of what follows
 *     contents
 *
 * Numbers are 8 bytes, in the machine's order; strings are their length as a number and their bytes (crew_frames.h).
 *
 *     HELLO    helper → 0   the first: the version of safer
 *     BEAT     both         a sign of life
 *     PING     both         asks for a PONG at once
 *     PONG     both         the answer, which no earlier message can be taken for
 *     WELCOME  0 → helper   a run begins: run/crew_rows.h has what it holds
 *     READY    helper → 0   ... and the helper takes part in it
 *     TASK     0 → helper   a row
 *     DONE     helper → 0   its record
 *     ERROR    helper → 0   the helper cannot go on: status, whether the model is random, message
 *     STOPPED  helper → 0   the helper was told to stop (a signal) and goes
 *     FINISH   0 → helper   this run is over
 *     TELL     0 → helper   between runs: the caller's own words, for safer_crew_hear
 *     OVER     0 → helper   so is the crew
 *     BYE      helper → 0   the helper leaves
 *     GO       0 → helper   ... as all do: close the transport now
 */
#ifndef SF_RUN_CREW_H
#define SF_RUN_CREW_H

#include "base/buffer.h"
#include "run/transport.h"

#include <stdint.h>

typedef enum sf_frame {
    SF_HELLO,
    SF_BEAT,
    SF_PING,
    SF_PONG,
    SF_WELCOME,
    SF_READY,
    SF_TASK,
    SF_DONE,
    SF_ERROR,
    SF_STOPPED,
    SF_FINISH,
    SF_TELL,
    SF_OVER,
    SF_BYE,
    SF_GO,
    SF_FRAMES
} sf_frame;

#define SF_CREW_TIMEOUT 60.0 /* seconds of silence after which a rank is lost */

/* Joins over a transport, whose `open` gets `where`. The rest is as for safer_crew_join. */
safer_status sf_crew_new(safer_crew **out, const sf_transport_table *table, void *where, double timeout,
                         safer_crew_lost lost, void *context, safer_error *error);

/* What takes part in a run: the post calls these, one at a time, without a lock. `frame` gets WELCOME to DONE and
 * FINISH, those too that came before it was set; it returns 0, or -1 when they make no sense. `turn` is called every
 * time round. */
typedef struct sf_crew_part {
    void *context;
    int (*frame)(void *context, int from, sf_frame kind, sf_span contents);
    void (*turn)(void *context);
} sf_crew_part;

/* Sets it; NULL: none, and the post is no longer in it when this returns. */
void sf_crew_set_part(safer_crew *crew, const sf_crew_part *part);

/* Puts a frame into the box of a rank, or of all others (SF_ALL_RANKS); any thread. Without memory the crew fails. */
#define SF_ALL_RANKS (-1)
void sf_crew_put(safer_crew *crew, int to, sf_frame kind, sf_span contents);

/* On rank 0: numbers the runs of the crew, from 1. One thread. */
uint64_t sf_crew_next_run(safer_crew *crew);

/* The first failure: a rank that is lost, or reported an error. Cheap where there is none. *random, which may be NULL,
 * gets whether a helper found that the model changes its answers. */
safer_status sf_crew_failure(safer_crew *crew, int *random, safer_error *error);

/* safer_crew_report, and whether the model was found to change its answers. */
int sf_crew_report(safer_crew *crew, const safer_error *error, int random);

int sf_crew_is_over(safer_crew *crew); /* on a helper: rank 0 ended it */
int sf_crew_is_told(
    safer_crew *crew); /* on a helper: rank 0 told something that comes next: it went on from this run */

/* After a wish to stop. Finds out whether the others are there, and who is not is lost: mpirun sends this wish
 * (SIGTERM) to all ranks when one has died. A helper tells rank 0 that it goes. */
safer_status sf_crew_muster(safer_crew *crew, safer_error *error);

#endif
