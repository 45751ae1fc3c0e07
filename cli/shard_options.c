/* --shard: a part of a run. */
#include "shard_options.h"

void cli_shard_option(cli_options *options, const char **text)
{
    cli_add_string(options, "shard", text, "K/N",
                   "only part K of N; auto: as an array of Slurm says; auto/N: also a Job of Kubernetes");
}

void cli_shard_finish(const char *text, size_t *shard, size_t *shards, const cli_verb *verb)
{
    safer_error error = {0};
    if (text && safer_shard_parse(shard, shards, text, &error) != SAFER_OK) cli_misuse(verb, "%s", cli_message(&error));
}

void cli_shard_print(size_t shard, size_t shards, int width)
{
    if (shards)
        printf("%-*s%s of %s; safer merge puts them together\n", width, "part", cli_count(shard), cli_count(shards));
}

void cli_shard_add_json(json_t *result, size_t shard, size_t shards)
{
    if (shards) cli_set(result, "shard", json_pack("[I, I]", (json_int_t)shard, (json_int_t)shards));
}
