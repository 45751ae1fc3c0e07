/* The options of a model, of a remote one too, and opening it. */
#define _GNU_SOURCE
#include "model_options.h"
#include "crew.h"
#include "data_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ----------------------------------------------------------------- options */

static const char *arithmetics(size_t number) { return safer_precision_name((safer_precision)number); }

const char *cli_precisions(size_t number) { return number < SAFER_PRECISION_PORTABLE ? arithmetics(number) : NULL; }

static const char *profiles(size_t number) { return safer_profile_name((safer_profile)number); }

static const char *on_or_off(size_t number)
{
    static const char *const names[] = {"on", "off"};
    return number < 2 ? names[number] : NULL;
}

cli_model_flags cli_model_default(void) { return (cli_model_flags){.remote = safer_remote_options_default()}; }

void cli_model_options(cli_options *options, cli_model_flags *m)
{
    cli_add_path(options, "model", &m->path, "MODEL",
                 "a model file, a sum (JSON), a HuggingFace folder, exec:COMMAND, http address");
    cli_add_choice(options, "arithmetic", &m->arithmetic, arithmetics, "NAME",
                   "how charcnn, bert, context and sums of them compute: {choices} (default {default})");
    cli_add_string(options, "device", &m->device, "NAME",
                   "where charcnn, bert or context is computed: cpu, cuda (all GPUs), cuda:N or auto (default cpu)");
    cli_add_choice(options, "precision", &m->arithmetic, cli_precisions, "NAME",
                   "the old name of --arithmetic, for {choices}");
}

void cli_remote_options(cli_options *options, cli_model_flags *m)
{
    safer_remote_options *o = &m->remote;
    cli_add_heading(options, "Remote models (exec, http)");
    if (!m->shared_labels)
        cli_add_string(options, "labels", &m->labels, "LIST", "names of the classes, as neg,pos (default: the data's)");
    cli_add_int(options, "workers", &o->workers, "N", "exec: processes (default: one per core)");
    cli_add_int(options, "concurrency", &o->concurrency, "N", "http: requests at a time (default 8)");
    cli_add_uint(options, "request-texts", &m->request_texts, "N",
                 "texts of a request, at most (default: exec 64, http 32)");
    cli_add_real(options, "timeout", &o->timeout, "S", "seconds that a request may take (default {default})");
    cli_add_int(options, "retries", &o->retries, "N", "of a request that got lost (default {default})");
    if (!m->asked_once) {
        cli_add_choice(options, "cache", &m->cache, on_or_off, "HOW",
                       "on: ask a declared function once about identical texts; off (default: on for http)");
        cli_add_flag(options, "function", &o->function, "declares that its answer is a function of the text alone");
        cli_add_flag(options, "random", &o->random, "it may answer the same text differently: sampling only");
    }
    cli_add_choice(options, "profile", &m->profile, profiles, "NAME", "http: {choices} (default {default})");
    cli_add_string(options, "request", &o->request, "BODY",
                   "json: the body, with {{texts}} or {{text}}; openai: the prompt");
    cli_add_string(options, "answer", &o->answer, "POINTER", "json: where labels or scores are, as /result/labels");
    cli_add_string(options, "name", &o->name, "NAME", "kserve: the input's name; openai: the model's");
    cli_add_string(options, "token-env", &o->token, "VAR", "http: the environment variable with a bearer token");
    cli_add_flag(options, "insecure-token", &o->insecure_token,
                 "allow a token or password over http:// to another machine");
}

void cli_model_name_option(cli_options *options, cli_model_flags *m)
{
    cli_add_string(options, "model-name", &m->remote.model_name, "NAME",
                   "what records call it; needed where records are written or compared");
}

void cli_model_need_name(const cli_model_flags *m, const cli_verb *verb)
{
    if (cli_is_remote(m->path) && !m->remote.model_name)
        cli_misuse(verb, "-o FILE needs --model-name NAME: an address does not say which model answers there");
}

void cli_share_labels(cli_model_flags *m, cli_data *d)
{
    m->shared_labels = &d->labels;
    d->labels_shared = 1;
}

/* The list of classes that was given, or NULL. */
static const char *labels_of(const cli_model_flags *m)
{
    if (!m->shared_labels) return m->labels;
    return *m->shared_labels && !strchr(*m->shared_labels, '=') ? *m->shared_labels : NULL;
}

void cli_model_need_labels(const cli_model_flags *m, const cli_verb *verb)
{
    if (cli_is_remote(m->path) && !labels_of(m))
        cli_misuse(verb, "--mpi needs --labels LIST here: only one of the processes reads the data");
}

int cli_model_is_remote(const safer_model *model)
{
    const char *arch = safer_model_arch(model);
    return strcmp(arch, "exec") == 0 || strcmp(arch, "http") == 0;
}

/* ----------------------------------------------------------------- opening */

/* "neg,pos" in pieces, which live in *copy. */
static void split_labels(safer_remote_options *o, const char *list, char **copy)
{
    const char **names = calloc(strlen(list) + 1, sizeof *names);
    *copy = strdup(list);
    if (!*copy || !names) cli_no_memory();
    for (char *name = *copy; name; o->label_count++) {
        char *comma = strchr(name, ',');
        if (comma) *comma++ = '\0';
        names[o->label_count] = name;
        name = comma;
    }
    o->labels = names;
}

static void take_labels(safer_remote_options *o, const safer_data *data)
{
    size_t count = safer_data_label_count(data);
    const char **names = calloc(count + 1, sizeof *names);
    if (!names) cli_no_memory();
    for (size_t k = 0; k < count; k++) names[k] = safer_data_label(data, k);
    o->labels = names;
    o->label_count = count;
}

int cli_is_remote(const char *path)
{
    return strncmp(path, "exec:", 5) == 0 || strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0;
}

/* A program that stands where a model is expected. */
static int is_script(const char *path)
{
    const size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".py") == 0 && access(path, F_OK) == 0;
}

static safer_status open_file(safer_model **out, const cli_model_flags *m, safer_error *error)
{
    safer_model *model = NULL;
    safer_precision precision;
    char device[32];
    if (m->remote.model_name)
        return cli_error(error, SAFER_INVALID, "--model-name is for remote models: a file has its own name");
    if (m->device && m->arithmetic && strcmp(m->device, "cpu") != 0)
        return cli_error(error, SAFER_INVALID, "--arithmetic is for the CPU: a device has its own");
    if (m->remote.function)
        return cli_error(error, SAFER_INVALID, "--function is for remote models: a file is a function of the text");
    if (is_script(m->path))
        return cli_error(error, SAFER_INVALID,
                         "--model %.300s is a program, not a model file; to ask it: --model 'exec:python3 %.300s'",
                         m->path, m->path);
    safer_status status = safer_model_open(&model, m->path, error);
    if (status == SAFER_OK && m->arithmetic) {
        status = safer_precision_parse(&precision, m->arithmetic, error);
        if (status == SAFER_OK) status = safer_model_set_precision(model, precision, error);
    }
    if (status == SAFER_OK && m->device)
        status = safer_model_set_device(model, cli_crew_device(m->device, device), error);
    if (status == SAFER_OK)
        *out = model;
    else
        safer_model_free(model);
    return status;
}

safer_status cli_model_try(safer_model **out, cli_model_flags *m, const safer_data *data, safer_error *error)
{
    safer_remote_options *o = &m->remote;
    if (!cli_is_remote(m->path)) return open_file(out, m, error);
    if (m->arithmetic) return cli_error(error, SAFER_INVALID, "--arithmetic is for model files");
    if (m->device) return cli_error(error, SAFER_INVALID, "--device is for model files");
    if (m->cache) o->cache = strcmp(m->cache, "on") == 0;
    if (m->profile && safer_profile_parse(&o->profile, m->profile, error) != SAFER_OK) return SAFER_INVALID;
    o->batch = (size_t)m->request_texts;
    o->label_count = 0;
    char *copy = NULL;
    if (labels_of(m))
        split_labels(o, labels_of(m), &copy);
    else if (data)
        take_labels(o, data);
    else
        return cli_error(error, SAFER_INVALID, "--labels LIST is needed: the names of the model's classes, as neg,pos");
    const safer_status status = safer_model_connect(out, m->path, o, error); /* which copies the names */
    free((void *)(uintptr_t)o->labels);
    free(copy);
    o->labels = NULL;
    return status;
}

safer_model *cli_model_open(cli_model_flags *m, const cli_verb *verb, const safer_data *data)
{
    safer_error error = {0};
    safer_model *model = NULL;
    safer_status status = cli_model_try(&model, m, data, &error);
    if (status == SAFER_INVALID && strncmp(error.message, "--", 2) == 0) cli_misuse(verb, "%s", cli_message(&error));
    if (status != SAFER_OK) exit(cli_fail(&error));
    return model;
}

json_t *cli_traffic_json(const safer_model *model)
{
    safer_traffic t = safer_model_traffic(model);
    if (!t.asked && !t.again) return NULL;
#define N(x) (json_int_t)(x)
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "random", safer_model_is_random(model), "asked",
                     N(t.asked), "cached", N(t.cached), "asked_again", N(t.again), "changed", N(t.changed), "none",
                     N(t.none), "requests", N(t.requests), "retries", N(t.retries), "restarts", N(t.restarts));
#undef N
}

void cli_traffic_print(const safer_model *model, int width)
{
    safer_traffic t = safer_model_traffic(model);
    if (!t.asked && !t.again) return;
    printf("%-*s%s, %s more a second time", width, "asked", cli_texts(t.asked), cli_count(t.again));
    if (t.cached) printf(", %s from the cache", cli_count(t.cached));
    if (t.none) printf("; %s no label", cli_some(t.none, "answer was", "answers were"));
    if (t.retries) printf("; %s again", cli_some(t.retries, "request", "requests"));
    if (t.restarts) printf("; %s started again", cli_some(t.restarts, "worker", "workers"));
    printf("\n");
    if (safer_model_is_random(model))
        printf("%-*sthe model answers the same text differently: certified by sampling alone\n", width, "random");
}

/* Whether words were deleted as often in training as they are now. */
static void note_deletion(const json_t *with, safer_deletion now)
{
    char names[2][40];
    safer_deletion trained = {0};
    const json_t *value = json_object_get(with, "delete");
    if (json_is_string(value)) safer_deletion_parse(&trained, json_string_value(value), NULL);
    if (json_is_number(value)) trained.chance = json_number_value(value);
    trained.groups = (size_t)json_integer_value(json_object_get(with, "groups"));
    if (trained.groups != now.groups) {
        cli_say("note: the model was trained with --groups %zu, not %zu", trained.groups, now.groups);
        return;
    }
    if (trained.keep == now.keep && fabs(trained.chance - now.chance) <= 1e-9) return;
    for (int i = 0; i < 2; i++) {
        const safer_deletion d = i ? now : trained;
        snprintf(names[i], sizeof *names, d.keep ? "keep:%.0f" : "%g", d.keep ? (double)d.keep : d.chance);
    }
    cli_say("note: the model was trained with --delete %s, not %s", names[0], names[1]);
}

void cli_note_training(const safer_model *model, const safer_lexicon *lexicon, safer_deletion deletion)
{
    safer_lexicon_info info = cli_lexicon_info(lexicon);
    json_t *with = safer_model_trained_with(model) ? cli_json_read(safer_model_trained_with(model)) : NULL;
    const char *kernel = json_string_value(json_object_get(with, "kernel"));
    const int same = safer_model_trained_on(model, lexicon);
    const char *silent[] = {"exec", "http", "sum"}; /* of how these were trained nothing is known here */
    for (size_t i = 0; same < 0 && i < sizeof silent / sizeof *silent; i++)
        if (strcmp(safer_model_arch(model), silent[i]) == 0) return;
    if (json_is_null(json_object_get(with, "lexicon")))
        cli_say("note: the model was trained on plain text, without a lexicon");
    else if (same < 0)
        cli_say("note: the model does not say that it was trained with a lexicon");
    else if (kernel && strcmp(kernel, info.kernel) != 0)
        cli_say("note: the model was trained with kernel %s, the lexicon has %s", kernel, info.kernel);
    else if (!same)
        cli_say("note: the model was trained with another lexicon");
    if (with) note_deletion(with, deletion);
    json_decref(with);
}
