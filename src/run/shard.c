/* Parts of runs, by number or as a scheduler numbers its tasks. */
#include "run/shard.h"

#include "base/number.h"
#include "run/members.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1000000 }; /* parts */

static int is_shard(uint64_t number, uint64_t count) { return number >= 1 && number <= count && count <= MOST; }

safer_status sf_shard_check(sf_shard shard, safer_error *error)
{
    if ((!shard.number && !shard.count) || is_shard(shard.number, shard.count)) return SAFER_OK;
    return sf_fail(error, SAFER_INVALID, "`shard`: %zu of %zu (from 1 to their number, which is at most %d)",
                   shard.number, shard.count, MOST);
}

size_t sf_shard_size(sf_shard shard, size_t texts)
{
    return shard.count ? texts / shard.count + (shard.number <= texts % shard.count) : texts;
}

size_t sf_shard_row(sf_shard shard, size_t i) { return shard.count ? i * shard.count + shard.number - 1 : i; }

size_t sf_shard_place(sf_shard shard, size_t row) { return shard.count ? row / shard.count : row; }

/* ------------------------------------------------------------ configurations */

void sf_shard_add(json_t **config, sf_shard shard)
{
    if (shard.count)
        sf_member_add(config, "shard", json_pack("[I, I]", (json_int_t)shard.number, (json_int_t)shard.count));
}

safer_status sf_shard_read(sf_shard *out, const json_t *config, const char *path, safer_error *error)
{
    const json_t *member = json_object_get(config, "shard");
    const json_t *number = json_array_get(member, 0), *count = json_array_get(member, 1);
    *out = (sf_shard){0};
    if (!member) return SAFER_OK;
    const json_int_t k = json_integer_value(number), n = json_integer_value(count); /* 0 where they are none */
    if (json_array_size(member) != 2 || k < 1 || n < 1 || !is_shard((uint64_t)k, (uint64_t)n))
        return sf_fail(error, SAFER_INPUT, "%s, line 1: \"shard\" must be [K,N], with K from 1 to N", path);
    *out = (sf_shard){(size_t)k, (size_t)n};
    return SAFER_OK;
}

safer_status sf_shard_need_whole(sf_shard shard, const char *path, safer_error *error)
{
    if (!shard.count) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s is part %zu of %zu: put all parts together with safer merge", path,
                   shard.number, shard.count);
}

/* ---------------------------------------------------------------- schedulers */

static const char slurm_id[] = "SLURM_ARRAY_TASK_ID", kubernetes_id[] = "JOB_COMPLETION_INDEX";

/* A whole number of the environment. */
static safer_status read_variable(uint64_t *out, const char *name, safer_error *error)
{
    const char *value = getenv(name);
    if (!value) return sf_fail(error, SAFER_INVALID, "`shard`: auto: %s is not set", name);
    if (sf_to_uint64(value, out) == 0) return SAFER_OK;
    return sf_fail(error, SAFER_INVALID, "`shard`: auto: %s: \"%.40s\" is not a whole number", name, value);
}

/* The place of a task among those of its array. Where the array is not one range of numbers, or where only some of
 * its tasks are run again, its places are not those of the parts. */
static safer_status from_array(uint64_t *number, uint64_t *count, safer_error *error)
{
    safer_status status;
    uint64_t id, first, last, step;
    SF_TRY(read_variable(&id, slurm_id, error));
    SF_TRY(read_variable(&first, "SLURM_ARRAY_TASK_MIN", error));
    SF_TRY(read_variable(&last, "SLURM_ARRAY_TASK_MAX", error));
    SF_TRY(read_variable(&step, "SLURM_ARRAY_TASK_STEP", error));
    SF_TRY(read_variable(count, "SLURM_ARRAY_TASK_COUNT", error));
    if (!step || id < first || id > last || (id - first) % step || (last - first) / step + 1 != *count) {
        status = sf_fail(error, SAFER_INVALID,
                         "`shard`: auto: task %" PRIu64 " is not one of %" PRIu64 " from %" PRIu64 " to %" PRIu64
                         " in steps of %" PRIu64 ": say auto/N, which takes the task's number itself",
                         id, *count, first, last, step);
        goto done;
    }
    *number = (id - first) / step + 1;
done:
    return status;
}

/* As the scheduler says; *count is 0 or how many parts there are. */
static safer_status ask_scheduler(uint64_t *number, uint64_t *count, safer_error *error)
{
    safer_status status;
    const int slurm = getenv(slurm_id) != NULL, kubernetes = getenv(kubernetes_id) != NULL;
    if (slurm && kubernetes)
        return sf_fail(error, SAFER_INVALID, "`shard`: auto: both %s and %s are set: say K/N", slurm_id, kubernetes_id);
    if (!slurm && !kubernetes)
        return sf_fail(error, SAFER_INVALID, "`shard`: auto: neither %s (Slurm) nor %s (Kubernetes) is set: say K/N",
                       slurm_id, kubernetes_id);
    if (kubernetes && !*count)
        return sf_fail(error, SAFER_INVALID,
                       "`shard`: auto: Kubernetes does not tell a pod how many there are: say auto/N, with the Job's "
                       "completions");
    if (slurm && !*count) return from_array(number, count, error);
    SF_TRY(read_variable(number, slurm ? slurm_id : kubernetes_id, error));
    if (*number < (uint64_t)slurm || *number - (uint64_t)slurm >= *count) {
        status = sf_fail(error, SAFER_INVALID, "`shard`: auto/%" PRIu64 ": %s is %" PRIu64 ", not from %d to %" PRIu64,
                         *count, slurm ? slurm_id : kubernetes_id, *number, slurm, *count - !slurm);
        goto done;
    }
    if (kubernetes) ++*number; /* which counts from 0 */
done:
    return status;
}

/* K/N, auto or auto/N: 0, or -1 where it is none of them. *number is 0 for auto, *count where it is not said. */
static int parse(const char *text, uint64_t *number, uint64_t *count)
{
    char first[24];
    const char *slash = strchr(text, '/');
    const size_t length = slash ? (size_t)(slash - text) : strlen(text);
    *number = *count = 0;
    if (length >= sizeof first || (slash && (sf_to_uint64(slash + 1, count) || *count < 1 || *count > MOST))) return -1;
    memcpy(first, text, length);
    first[length] = '\0';
    if (strcmp(first, "auto") == 0) return 0;
    return slash && sf_to_uint64(first, number) == 0 && is_shard(*number, *count) ? 0 : -1;
}

safer_status safer_shard_parse(size_t *shard, size_t *shards, const char *text, safer_error *error)
{
    safer_status status = SAFER_OK;
    uint64_t number, count;
    if (parse(text, &number, &count))
        return sf_fail(error, SAFER_INVALID,
                       "`shard`: \"%.40s\" is not K/N (K from 1 to N, N at most %d), auto or auto/N", text, MOST);
    if (!number) SF_TRY(ask_scheduler(&number, &count, error));
    SF_TRY(sf_shard_check((sf_shard){(size_t)number, (size_t)count}, error));
    *shard = (size_t)number;
    *shards = (size_t)count;
done:
    return status;
}
