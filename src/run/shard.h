/* A part of a run: of the rows of the data every N-th, from the K-th on.
 *
 * The rows are dealt like cards, so that parts of data in any order, the longest texts first or last, are about equally
 * much work, and so that the parts can be put together while they are read (run/merge.c). A part's records keep the
 * "row" that they would have in the whole run; its configuration is that of the whole run and one member more, "shard":
 * [K,N]. Nothing else of it depends on the part. */
#ifndef SF_RUN_SHARD_H
#define SF_RUN_SHARD_H

#include "base/error.h"

#include <jansson.h>
#include <stddef.h>

typedef struct sf_shard {
    size_t number, count; /* K, from 1, and N; zeros: the whole run */
} sf_shard;

/* SAFER_INVALID where it is none. */
safer_status sf_shard_check(sf_shard shard, safer_error *error);

/* How many of `texts` rows a part has, which of the rows its i-th is, and where a row of it is in it: all from 0. */
size_t sf_shard_size(sf_shard shard, size_t texts);
size_t sf_shard_row(sf_shard shard, size_t i);
size_t sf_shard_place(sf_shard shard, size_t row);

/* Adds the member to a configuration, where it is a part. *config becomes NULL without memory. */
void sf_shard_add(json_t **config, sf_shard shard);

/* The member of a configuration; zeros where there is none. */
safer_status sf_shard_read(sf_shard *out, const json_t *config, const char *path, safer_error *error);

/* SAFER_INPUT where it is a part, which the caller cannot do with. */
safer_status sf_shard_need_whole(sf_shard shard, const char *path, safer_error *error);

#endif
