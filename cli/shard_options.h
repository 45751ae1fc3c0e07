/* --shard: a part of a run. */
#ifndef CLI_SHARD_OPTIONS_H
#define CLI_SHARD_OPTIONS_H

#include "cli.h"

void cli_shard_option(cli_options *options, const char **text); /* NULL: not given */

/* Reads it, where it was given, or says what is wrong and exits. */
void cli_shard_finish(const char *text, size_t *shard, size_t *shards, const cli_verb *verb);

/* Before the figures of a part: that it is one, in a table whose first column is so wide, and for programs. Nothing
 * where it is none. */
void cli_shard_print(size_t shard, size_t shards, int width);
void cli_shard_add_json(json_t *result, size_t shard, size_t shards);

#endif
