/* Several models that differ in their seed alone, and their sum.
 *
 * What `seeds` of safer_train asks for. OUTPUT is the sum, a file of JSON as model/sum.h has it. Beside it, named after
 * it, lies a model for every seed: both.json has both.1.safetensors, both.2.safetensors, ... A model errs in part by
 * chance, and chance differs from seed to seed, so the sum errs less than its members. Weights are found on the dev
 * texts (sum_fit.c): by bounds where members were trained to have them, else by answers. Without dev texts there are
 * none that no member was trained on, and all weigh the same.
 *
 * Every model is written as soon as it is trained. With `resume` those that are there, of the same architecture,
 * labels, lexicon, seed, defense and deletion, are kept, and the one that was begun goes on from its checkpoint. */
#define _GNU_SOURCE
#include "train/seeds.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "model/model.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

safer_status sf_seeds_check(const char *output, const safer_train_options *o, safer_error *error)
{
    const size_t length = strlen(output);
    if (o->seeds < 1 || o->seeds > SAFER_SUM_MEMBERS)
        return sf_fail(error, SAFER_INVALID, "`seeds` is %d; it must be from 1 to %d", o->seeds, SAFER_SUM_MEMBERS);
    if (o->seeds == 1) return SAFER_OK;
    if (o->seed > UINT64_MAX - (uint64_t)(o->seeds - 1))
        return sf_fail(error, SAFER_INVALID, "`seed` is %" PRIu64 ": there are no %d seeds from it on", o->seed,
                       o->seeds);
    if (length <= strlen(".json") || strcmp(output + length - strlen(".json"), ".json") != 0)
        return sf_fail(error, SAFER_INVALID, "%s: with `seeds` it is a sum of models, whose name ends with .json",
                       output);
    if (length > PATH_MAX - 64) return sf_fail(error, SAFER_INVALID, "%s: its name is too long", output);
    return SAFER_OK;
}

/* The file of the model with this seed. */
static void member_path(char path[PATH_MAX], const char *output, uint64_t seed)
{
    snprintf(path, PATH_MAX, "%.*s.%" PRIu64 ".safetensors", (int)(strlen(output) - strlen(".json")), output, seed);
}

/* Sets *done when the model of options->seed was trained before. Another model in its place is an error. */
static safer_status look(int *done, const char *path, const safer_train_options *options, safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_model *model = NULL;
    struct stat info;
    char *made = NULL;
    *done = 0;
    if (!options->resume || (stat(path, &info) && errno == ENOENT)) return SAFER_OK;
    SF_TRY(safer_model_open(&model, path, error));
    const char *with = safer_model_trained_with(model);
    made = sf_train_provenance_json(options);
    if (!made) {
        status = sf_fail_memory(error);
        goto done;
    }
    int same = strcmp(safer_model_arch(model), safer_arch_name(options->arch)) == 0 &&
               safer_model_class_count(model) == safer_data_label_count(options->train) &&
               strcmp(made, with ? with : "") == 0;
    for (size_t k = 0; same && k < safer_model_class_count(model); k++)
        same = strcmp(safer_model_label(model, k), safer_data_label(options->train, k)) == 0;
    if (!same) status = sf_fail(error, SAFER_INPUT, "%s: another model; remove it, or write the sum elsewhere", path);
    *done = same;
done:
    safer_model_free(model);
    free(made);
    return status;
}

/* The sum with all weights 1. */
static safer_status write_sum(const char *output, const safer_train_options *options, safer_error *error)
{
    char path[PATH_MAX];
    safer_status status = SAFER_OK;
    json_t *members = json_array(), *root = NULL;
    char *text = NULL;
    int failed = !members;
    for (int k = 0; k < options->seeds && !failed; k++) {
        member_path(path, output, options->seed + (uint64_t)k);
        failed = json_array_append_new(members, json_pack("{s:s, s:f}", "model", sf_base_name(path), "weight", 1.0));
    }
    if (!failed) root = json_pack("{s:s, s:O}", "arch", "sum", "members", members);
    if (root) text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    if (text)
        status = sf_file_write(output, text, strlen(text), error);
    else
        status = sf_fail(error, SAFER_MEMORY, "%s: out of memory, or a name that is not UTF-8", output);
    free(text);
    json_decref(root);
    json_decref(members);
    return status;
}

/* Weights by the dev texts. */
static safer_status fit(double *right, const char *output, const safer_train_options *o, safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_model *sum = NULL;
    safer_sum_result found;
    safer_sum_options options;
    safer_sum_options_init(&options, sizeof options);
    options.bounds = o->defense.kind != SAFER_DEFENSE_NONE || o->arch == SAFER_ARCH_CONTEXT;
    options.seed = o->seed;
    options.threads = o->threads;
    options.progress = o->progress;
    SF_TRY(safer_model_open(&sum, output, error));
    if (o->device) SF_TRY(safer_model_set_device(sum, o->device, error));
    SF_TRY(safer_sum_fit(&found, output, output, sum, o->dev, o->lexicon, &options, error));
    *right = found.after;
done:
    safer_model_free(sum);
    return status;
}

/* Adds a member's report to that of the sum. */
static void add_report(safer_train_report *total, const safer_train_report *one, int members)
{
    total->texts = one->texts;
    total->tokens = one->tokens;
    total->parameters += one->parameters;
    if (one->epochs > total->epochs) total->epochs = one->epochs;
    if (one->best_epoch > total->best_epoch) total->best_epoch = one->best_epoch;
    total->loss += one->loss / members;
    total->dev_accuracy += one->dev_accuracy / members;
    total->seconds += one->seconds;
    total->tokens_per_second += one->tokens_per_second / members;
}

safer_status sf_seeds_train(const char *output, const safer_train_options *options, safer_train_report *report,
                            safer_error *error)
{
    safer_status status = SAFER_OK;
    char path[PATH_MAX];
    int trained = 0;
    safer_train_report reports[SAFER_SUM_MEMBERS];
    for (int k = 0; k < options->seeds; k++) {
        safer_train_options o = *options;
        int done;
        o.seeds = 1;
        o.seed += (uint64_t)k;
        member_path(path, output, o.seed);
        SF_TRY(look(&done, path, &o, error));
        if (!done) SF_TRY(safer_train(path, &o, &reports[trained++], error));
    }
    *report = (safer_train_report){.texts = safer_data_size(options->train)};
    for (int k = 0; k < trained; k++) add_report(report, &reports[k], trained);
    SF_TRY(write_sum(output, options, error));
    if (options->dev) SF_TRY(fit(&report->dev_accuracy, output, options, error));
done:
    return status;
}
