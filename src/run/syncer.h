/* What a file was given reaches the disk about a second later, at the latest: a thread of its own syncs it.
 *
 * A write is noted; half a second after the first note the thread syncs, so that those who write never wait for the
 * disk, and many writes cost one sync. A write is then lost by a power cut only if it is younger than half a second
 * and the time that the disk takes. */
#ifndef SF_RUN_SYNCER_H
#define SF_RUN_SYNCER_H

#include "base/error.h"

typedef struct sf_syncer sf_syncer;

/* Starts the thread. fd and path, which messages name, are borrowed. */
safer_status sf_syncer_new(sf_syncer **out, int fd, const char *path, safer_error *error);

/* Something was written. Fails when an earlier write could not be brought to the disk. */
safer_status sf_syncer_note(sf_syncer *syncer, safer_error *error);

/* Returns when all that was noted is on the disk; may be called again. */
safer_status sf_syncer_finish(sf_syncer *syncer, safer_error *error);

/* Ends the thread; what was noted last may not be on the disk. NULL is fine. */
void sf_syncer_free(sf_syncer *syncer);

#endif
