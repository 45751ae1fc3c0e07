/* The configuration of safer compare: JSON whose keys are the options of the other verbs, so that the tables that
 * read a command line read it too. docs/compare.md describes it. */
#define _GNU_SOURCE
#include "compare/compare.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* "CONFIG.json: message" */
__attribute__((format(printf, 3, 4))) static safer_status fail(const cmp_config *c, safer_error *error,
                                                               const char *format, ...)
{
    char message[700];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return cli_error(error, SAFER_INPUT, "%.250s: %s", c->path, message);
}

/* ------------------------------------------------------- objects and options */

static const char *keep(cmp_config *c, json_t *string)
{
    cli_append(c->kept, string);
    return json_string_value(string);
}

/* A number as it would be typed: the shortest that reads as the same. */
static const char *keep_number(cmp_config *c, const json_t *value)
{
    char text[40];
    for (int digits = 1; json_is_real(value) && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, json_real_value(value));
        if (strtod(text, NULL) == json_real_value(value)) break;
    }
    if (json_is_integer(value)) snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    return keep(c, json_string(text));
}

/* A path is relative to the configuration, unless it begins with a variable of the environment. */
static safer_status resolve(const char **out, cmp_config *c, const char *text, const char *where, safer_error *error)
{
    if (text[0] == '$') {
        char name[128];
        size_t length = strspn(text + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        snprintf(name, sizeof name, "%.*s", (int)(length < 120 ? length : 120), text + 1);
        const char *value = getenv(name);
        if (!value || !*value) return fail(c, error, "%s: $%s is not set in the environment", where, name);
        *out = keep(c, json_sprintf("%s%s", value, text + 1 + length));
    } else if (text[0] == '/' || cli_is_remote(text)) {
        *out = text;
    } else {
        *out = keep(c, json_sprintf("%s%s", c->folder, text));
    }
    return SAFER_OK;
}

static safer_status add_path(cmp_config *c, cli_list *list, const json_t *value, const char *where, safer_error *error)
{
    const char *path;
    if (!json_is_string(value)) return fail(c, error, "%s: a path, or a list of paths, is expected", where);
    safer_status status = resolve(&path, c, json_string_value(value), where, error);
    if (status != SAFER_OK) return status;
    cli_list_add(list, path);
    return SAFER_OK;
}

static safer_status set_choice(cmp_config *c, const cli_option *o, const json_t *value, const char *where,
                               safer_error *error)
{
    char choices[512];
    if (!json_is_string(value)) return fail(c, error, "%s: a string is expected", where);
    cli_choices(choices, sizeof choices, o->names);
    if (!cli_is_choice(o->names, json_string_value(value)))
        return fail(c, error, "%s is \"%.60s\": %s", where, json_string_value(value), choices);
    *(const char **)o->target = json_string_value(value);
    return SAFER_OK;
}

/* One member into its option's target. */
static safer_status set_option(cmp_config *c, const cli_option *o, const json_t *value, const char *where,
                               safer_error *error)
{
    switch (o->kind) {
    case CLI_FLAG:
        if (!json_is_boolean(value)) return fail(c, error, "%s: true or false is expected", where);
        *(int *)o->target = json_is_true(value);
        return SAFER_OK;
    case CLI_STRING: /* also one that is a number most of the time */
        if (!json_is_string(value) && !json_is_number(value)) return fail(c, error, "%s: a string is expected", where);
        *(const char **)o->target = json_is_string(value) ? json_string_value(value) : keep_number(c, value);
        return SAFER_OK;
    case CLI_CHOICE: return set_choice(c, o, value, where, error);
    case CLI_PATH:
    case CLI_OUTPUT:
        if (!json_is_string(value)) return fail(c, error, "%s: a path is expected", where);
        return resolve(o->target, c, json_string_value(value), where, error);
    case CLI_LIST: {
        safer_status status = SAFER_OK;
        if (!json_is_array(value)) return add_path(c, o->target, value, where, error);
        for (size_t i = 0; i < json_array_size(value) && status == SAFER_OK; i++)
            status = add_path(c, o->target, json_array_get(value, i), where, error);
        return status;
    }
    case CLI_INT:
    case CLI_UINT: {
        const json_int_t number = json_integer_value(value);
        if (!json_is_integer(value) || number < 0 || (o->kind == CLI_INT && number > 1000000000))
            return fail(c, error, "%s: a whole number is expected", where);
        if (o->kind == CLI_INT)
            *(int *)o->target = (int)number;
        else
            *(uint64_t *)o->target = (uint64_t)number;
        return SAFER_OK;
    }
    case CLI_REAL:
        if (!json_is_number(value)) return fail(c, error, "%s: a number is expected", where);
        *(double *)o->target = json_number_value(value);
        return SAFER_OK;
    case CLI_VALUE: *(const json_t **)o->target = value; break;
    case CLI_STRINGS: /* none is in a configuration */
    case CLI_HEADING: break;
    }
    return SAFER_OK;
}

static safer_status unknown_key(cmp_config *c, const cli_options *options, const char *key, const char *where,
                                safer_error *error)
{
    const char *nearest = cli_option_nearest(options, key, strlen(key));
    if (nearest) return fail(c, error, "%s has no key \"%.60s\"; did you mean \"%s\"?", where, key, nearest);
    return fail(c, error, "%s has no key \"%.60s\"", where, key);
}

/* All members of an object into the targets of a table. */
static safer_status read_object(cmp_config *c, const json_t *object, const char *where, const cli_options *options,
                                safer_error *error)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object)) return fail(c, error, "%s: an object is expected", where);
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        char inner[256];
        const cli_option *o = cli_option_named(options, key, strlen(key));
        if (!o) return unknown_key(c, options, key, where, error);
        snprintf(inner, sizeof inner, "%s.%s", where, key);
        safer_status status = set_option(c, o, value, inner, error);
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

static safer_status path_digest(json_t **out, const char *path, safer_error *error)
{
    char sha256[65];
    safer_status status = safer_path_sha256(sha256, path, error);
    if (status == SAFER_OK) *out = json_string(sha256);
    return status;
}

/* Adds to `given` the members of an object that the table knows, with digests for paths. The
 * targets hold the paths as they were resolved. */
static safer_status add_given(json_t *given, const json_t *object, const cli_options *options, safer_error *error)
{
    const char *key;
    json_t *value, *digest = NULL;
    safer_status status = SAFER_OK;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        const cli_option *o = cli_option_named(options, key, strlen(key));
        if (!o || status != SAFER_OK) continue;
        if (o->kind == CLI_PATH) {
            status = path_digest(&digest, *(const char **)o->target, error);
            if (status == SAFER_OK) cli_set(given, key, digest);
        } else if (o->kind == CLI_LIST) {
            const cli_list *list = o->target;
            json_t *digests = json_array();
            for (size_t i = 0; i < list->count && status == SAFER_OK; i++) {
                status = path_digest(&digest, list->items[i], error);
                if (status == SAFER_OK) cli_append(digests, digest);
            }
            cli_set(given, key, digests);
        } else {
            cli_set(given, key, json_incref(value));
        }
    }
    return status;
}

static const json_t *entry(const cmp_config *c, const char *table, const char *name)
{
    return json_object_get(json_object_get(c->root, table), name);
}

/* ------------------------------------------------------------------ corpora */

static safer_status read_texts(cli_data *out, cmp_config *c, const json_t *value, const char *where, safer_error *error)
{
    *out = cli_data_default();
    if (json_is_string(value)) return resolve(&out->path, c, json_string_value(value), where, error);
    cli_options options = {0};
    cli_data_options(&options, out);
    safer_status status = read_object(c, value, where, &options, error);
    if (status == SAFER_OK && !out->path)
        status = fail(c, error, "%s: \"data\" is missing: the file with the texts", where);
    return status;
}

static safer_status read_lexicon(cmp_corpus *out, cmp_config *c, const json_t *value, const char *where, json_t **given,
                                 safer_error *error)
{
    if (json_is_string(value)) return resolve(&out->lexicon, c, json_string_value(value), where, error);
    out->build = cli_lexicon_default();
    out->imports = json_object_get(value, "table") || json_object_get(value, "wordnet");
    cli_options options = {0};
    if (out->imports)
        cli_import_options(&options, &out->build);
    else
        cli_build_options(&options, &out->build);
    cli_fold_option(&options, &out->build);
    safer_status status = read_object(c, value, where, &options, error);
    if (status == SAFER_OK && !out->imports && !out->build.options.vectors)
        status = fail(c, error, "%s: \"vectors\", \"table\" or \"wordnet\" is missing: where the synonyms come from",
                      where);
    if (status == SAFER_OK && cli_lexicon_finish(&out->build, error) != SAFER_OK) {
        const safer_error inner = *error;
        status = fail(c, error, "%s: %.500s", where, inner.message);
    }
    if (status == SAFER_OK && given) {
        *given = json_object();
        status = add_given(*given, value, &options, error);
        if (status != SAFER_OK) {
            json_decref(*given);
            *given = NULL;
        }
    }
    return status;
}

safer_status cmp_corpus_read(cmp_corpus *out, cmp_config *c, const char *name, json_t **given, safer_error *error)
{
    json_t *train = NULL, *dev = NULL, *test = NULL, *lexicon = NULL;
    cli_options options = {0};
    char where[128], inner[160];
    cli_add_value(&options, "train", &train);
    cli_add_value(&options, "dev", &dev);
    cli_add_value(&options, "test", &test);
    cli_add_value(&options, "lexicon", &lexicon);
    *out = (cmp_corpus){0};
    snprintf(where, sizeof where, "data.%s", name);
    safer_status status = read_object(c, entry(c, "data", name), where, &options, error);
    if (status == SAFER_OK && !test) status = fail(c, error, "%s: \"test\" is missing: the texts to certify", where);
    if (status == SAFER_OK && !lexicon)
        status = fail(c, error, "%s: \"lexicon\" is missing: a .lex file, or how to make one", where);
    const struct {
        cli_data *out;
        json_t *value;
        const char *key;
    } texts[] = {{&out->train, train, "train"}, {&out->dev, dev, "dev"}, {&out->test, test, "test"}};
    for (size_t i = 0; i < 3 && status == SAFER_OK; i++) {
        snprintf(inner, sizeof inner, "%s.%s", where, texts[i].key);
        if (texts[i].value) status = read_texts(texts[i].out, c, texts[i].value, inner, error);
    }
    snprintf(inner, sizeof inner, "%s.lexicon", where);
    if (status == SAFER_OK) status = read_lexicon(out, c, lexicon, inner, given, error);
    if (status != SAFER_OK) cmp_corpus_free(out);
    return status;
}

void cmp_corpus_free(cmp_corpus *corpus)
{
    cli_lexicon_flags_free(&corpus->build);
    *corpus = (cmp_corpus){0};
}

/* ------------------------------------------------------------------- setups */

/* The model's part: a path or address, the same with options, or an architecture to train. */
static safer_status read_model(cmp_setup *out, cmp_config *c, const json_t *value, const char *where,
                               safer_error *error)
{
    out->model = cli_model_default();
    out->is_ready = 1;
    if (json_is_string(value)) return resolve(&out->model.path, c, json_string_value(value), where, error);
    cli_options options = {0};
    out->is_ready = json_object_get(value, "model") != NULL;
    if (out->is_ready) {
        cli_model_options(&options, &out->model);
        cli_remote_options(&options, &out->model);
        cli_model_name_option(&options, &out->model);
    } else {
        cli_arch_option(&options, &out->training);
        cli_add_uint(&options, "seed", &out->training.options.seed, NULL, NULL);
        cli_train_options(&options, &out->training);
    }
    safer_status status = read_object(c, value, where, &options, error);
    if (status == SAFER_OK && !out->is_ready && !out->training.arch)
        status = fail(c, error, "%s: \"arch\" (to train one) or \"model\" (a ready one) is missing", where);
    return status;
}

/* What the defence says about certificates, and whether its parts go together. */
static safer_status finish_defense(cmp_setup *out, cmp_config *c, cli_certify_flags *flags, const char *where,
                                   safer_error *error)
{
    safer_certify_options *o = &flags->options;
    safer_error inner = {0};
    const char *usual = safer_method_name(o->method);
    if (!flags->method && out->training.defense) flags->method = "ibp";
    if (!flags->method && flags->groups) flags->method = "groups";
    out->certifies = flags->method || out->kernel;
    if (!flags->method) flags->method = usual;
    safer_status status = safer_method_parse(&o->method, flags->method, error);
    if (status != SAFER_OK) return status;
    if (out->kernel && (o->method == SAFER_METHOD_IBP || out->training.defense))
        return fail(c, error, "%s: a kernel is for smoothing, not for interval bounds", where);
    if (cli_edits_finish(flags, &inner) != SAFER_OK) return fail(c, error, "%s: %.500s", where, cli_message(&inner));
    if (!out->kernel && o->method == SAFER_METHOD_GROUPS)
        return fail(c, error, "%s: \"kernel\" is missing: representative or component, whose synonyms share a group",
                    where);
    if (!out->kernel && (cli_deletes(o->deletion) || (out->certifies && o->method != SAFER_METHOD_IBP)))
        return fail(c, error, "%s: \"kernel\" is missing: %s certifies a smoothed model", where, flags->method);
    out->training.options.deletion = o->deletion;
    return SAFER_OK;
}

/* What a training depends on: the model's options, and the defence's where it has any, with what its draws delete. */
static safer_status training_given(json_t **given, cmp_setup *s, const json_t *model, const json_t *defense,
                                   safer_error *error)
{
    cli_options options = {0};
    cli_certify_flags flags = cli_certify_default();
    cli_arch_option(&options, &s->training);
    cli_train_options(&options, &s->training);
    cli_defense_options(&options, &s->training);
    cli_add_string(&options, "delete", &flags.deletion, NULL, NULL);
    cli_add_uint(&options, "groups", &flags.groups, NULL, NULL);
    *given = json_object();
    safer_status status = add_given(*given, model, &options, error);
    if (status == SAFER_OK) status = add_given(*given, defense, &options, error);
    return status;
}

/* The digest of a model at a path: of its bytes or, where these are JSON that names other files (a sum),
 * of all of them. */
static safer_status model_digest(json_t **out, const char *path, safer_error *error)
{
    safer_model *model = NULL;
    json_t *sum = cli_json_load(path, 0, NULL);
    json_decref(sum);
    if (!sum) return path_digest(out, path, error);
    safer_status status = safer_model_open(&model, path, error);
    if (status != SAFER_OK) return status;
    *out = json_string(safer_model_sha256(model));
    safer_model_free(model);
    return SAFER_OK;
}

/* What tells a ready model from others: its digest, or its address and what it is asked. How fast and
 * how patiently it is asked changes no answer. */
static safer_status ready_given(json_t **given, const cmp_setup *s, const json_t *model, safer_error *error)
{
    static const char *const without_effect[] = {"workers", "concurrency", "request-texts",
                                                 "timeout", "retries",     "token-env"};
    json_t *digest = NULL;
    *given = cli_need(json_object());
    if (json_is_object(model) && json_object_update(*given, (json_t *)(uintptr_t)model)) cli_no_memory();
    for (size_t i = 0; i < sizeof without_effect / sizeof *without_effect; i++)
        json_object_del(*given, without_effect[i]);
    if (cli_is_remote(s->model.path)) return cli_set(*given, "model", json_string(s->model.path)), SAFER_OK;
    safer_status status = model_digest(&digest, s->model.path, error);
    if (status == SAFER_OK) cli_set(*given, "model", digest);
    return status;
}

safer_status cmp_setup_read(cmp_setup *out, cmp_config *c, const cmp_cell *cell, json_t **given, safer_error *error)
{
    const json_t *model = entry(c, "models", cell->model), *defense = entry(c, "defenses", cell->defense);
    cli_certify_flags flags = cli_certify_default();
    char where[128];
    *out = (cmp_setup){.training = cli_train_default()};
    flags.method = NULL;
    out->training.options.seed = c->seed;
    snprintf(where, sizeof where, "models.%s", cell->model);
    safer_status status = read_model(out, c, model, where, error);
    if (status == SAFER_OK && out->is_ready && cli_is_remote(out->model.path) && !out->model.remote.model_name)
        out->model.remote.model_name = cell->model;
    cli_options options = {0};
    cli_add_string(&options, "kernel", &out->kernel, NULL, NULL);
    cli_defense_options(&options, &out->training);
    cli_test_options(&options, &flags);
    cli_edit_options(&options, &flags);
    cli_train_options(&options, &out->training);
    snprintf(where, sizeof where, "defenses.%s", cell->defense);
    if (status == SAFER_OK) status = read_object(c, defense, where, &options, error);
    if (status == SAFER_OK) status = cli_train_finish(&out->training, error);
    if (status == SAFER_OK) status = finish_defense(out, c, &flags, where, error);
    out->certify = flags.options;
    out->certify.radius = c->radius;
    out->certify.seed = c->seed;
    out->certify.threads = out->training.options.threads = cli_settings()->threads;
    out->certify.progress = out->training.options.progress = *cli_progress();
    out->training.options.resume = 1;
    if (status == SAFER_OK && given)
        status = out->is_ready ? ready_given(given, out, model, error)
                               : training_given(given, out, model, defense, error);
    return status;
}

safer_status cmp_attack_read(cmp_attack *out, cmp_config *c, const char *data, const char *attack, safer_error *error)
{
    const json_t *object = entry(c, "attacks", attack);
    const char *method = attack;
    char where[128];
    cmp_corpus corpus;
    *out = (cmp_attack){.options = safer_attack_options_default()};
    safer_status status = cmp_corpus_read(&corpus, c, data, NULL, error);
    out->data = corpus.test;
    cmp_corpus_free(&corpus);
    if (status != SAFER_OK) return status;
    cli_options options = {0};
    cli_add_string(&options, "method", &method, NULL, NULL); /* its own name, where none is given */
    cli_add_string(&options, "sample", &out->data.options.sample, NULL, NULL);
    cli_add_uint(&options, "limit", &out->data.limit, NULL, NULL);
    cli_search_options(&options, &out->options);
    cli_vote_options(&options, &out->options);
    snprintf(where, sizeof where, "attacks.%s", attack);
    status = read_object(c, object, where, &options, error);
    if (status != SAFER_OK) return status;
    if (safer_attack_method_parse(&out->options.method, method, NULL) != SAFER_OK) {
        char choices[128];
        cli_choices(choices, sizeof choices, cli_attack_methods);
        return fail(c, error, "%s: the method is \"%.60s\": %s", where, method, choices);
    }
    out->has_own_texts = json_object_get(object, "sample") || json_object_get(object, "limit");
    out->options.radius = c->radius;
    out->options.seed = c->seed;
    out->options.threads = cli_settings()->threads;
    out->options.progress = *cli_progress();
    return SAFER_OK;
}

/* -------------------------------------------------------------------- cells */

void cmp_file_name(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s", name);
    for (char *p = out; *p; p++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", *p)) *p = '-';
}

enum { NAME_MAX_LENGTH = 60 };

/* Names become parts of file names, which have to differ. */
static safer_status check_names(cmp_config *c, const char *table, const json_t *object, safer_error *error)
{
    const char *key, *other;
    json_t *value, *ignored;
    char mine[NAME_MAX_LENGTH + 1], theirs[NAME_MAX_LENGTH + 1];
    if (!json_is_object(object))
        return fail(c, error, "%s: an object is expected: a name and what it stands for", table);
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        const size_t good = strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:-");
        if (!*key || key[good] || strlen(key) > NAME_MAX_LENGTH || strchr("_:-", *key))
            return fail(c, error,
                        "%s: the name \"%.60s\": up to %d letters, digits, - _ and : that begin with a letter or digit",
                        table, key, NAME_MAX_LENGTH);
        cmp_file_name(mine, sizeof mine, key);
        json_object_foreach((json_t *)(uintptr_t)object, other, ignored)
        {
            cmp_file_name(theirs, sizeof theirs, other);
            if (strcmp(key, other) != 0 && strcmp(mine, theirs) == 0)
                return fail(c, error, "%s: \"%s\" and \"%s\" would share their files", table, key, other);
        }
    }
    return SAFER_OK;
}

/* Names from a table: all, or those that `value` lists. */
static safer_status choose(const char **out, size_t most, size_t *count, cmp_config *c, const char *table,
                           const json_t *value, const char *where, safer_error *error)
{
    const json_t *all = json_object_get(c->root, table);
    const size_t listed = json_is_array(value) ? json_array_size(value) : 1;
    const char *key;
    json_t *ignored;
    *count = 0;
    if (!value) json_object_foreach((json_t *)(uintptr_t)all, key, ignored)
        {
            if (*count == most) return fail(c, error, "%s: more than %zu", table, most);
            out[(*count)++] = key;
        }
    for (size_t i = 0; value && i < listed; i++) {
        const char *name = json_string_value(json_is_array(value) ? json_array_get(value, i) : value);
        if (!name) return fail(c, error, "%s.%s: a name, or a list of names, is expected", where, table);
        if (!json_object_get(all, name))
            return fail(c, error, "%s.%s: there is no \"%.60s\" in \"%s\"", where, table, name, table);
        if (*count == most) return fail(c, error, "%s.%s: more than %zu", where, table, most);
        for (size_t k = 0; k < *count; k++)
            if (strcmp(out[k], name) == 0) return fail(c, error, "%s.%s: \"%s\" is named twice", where, table, name);
        out[(*count)++] = name;
    }
    return SAFER_OK;
}

static safer_status add_cell(cmp_config *c, cmp_cell cell, safer_error *error)
{
    char parts[3][64];
    cmp_setup setup;
    cmp_corpus corpus;
    safer_status status = cmp_setup_read(&setup, c, &cell, NULL, error);
    if (status == SAFER_OK) status = cmp_corpus_read(&corpus, c, cell.data, NULL, error);
    if (status != SAFER_OK) return status;
    const int has_train = corpus.train.path != NULL;
    cmp_corpus_free(&corpus);
    if (!setup.is_ready && !has_train)
        return fail(c, error, "data.%s: \"train\" is missing: the model %s is trained", cell.data, cell.model);
    if (!setup.certifies && !cell.attack_count)
        return fail(c, error, "%s %s %s: neither a certificate nor an attack is asked for", cell.data, cell.model,
                    cell.defense);
    for (size_t i = 0; i < c->cell_count; i++)
        if (strcmp(c->cells[i].data, cell.data) == 0 && strcmp(c->cells[i].model, cell.model) == 0 &&
            strcmp(c->cells[i].defense, cell.defense) == 0)
            return fail(c, error, "%s %s %s is asked for twice", cell.data, cell.model, cell.defense);
    if (c->cell_count == CMP_CELLS) return fail(c, error, "more than %d combinations are asked for", CMP_CELLS);
    cmp_file_name(parts[0], sizeof parts[0], cell.data);
    cmp_file_name(parts[1], sizeof parts[1], cell.model);
    cmp_file_name(parts[2], sizeof parts[2], cell.defense);
    snprintf(cell.name, sizeof cell.name, "%s.%s.%s", parts[0], parts[1], parts[2]);
    cmp_cell *cells = realloc(c->cells, (c->cell_count + 1) * sizeof *cells);
    if (!cells) cli_no_memory();
    c->cells = cells;
    cells[c->cell_count++] = cell;
    return SAFER_OK;
}

/* One entry of "compare": every combination of what it lists. */
static safer_status add_product(cmp_config *c, const json_t *object, const char *where, safer_error *error)
{
    enum { MOST = 64 };
    static const char *const tables[] = {"data", "models", "defenses", "attacks"};
    const char *names[4][MOST];
    json_t *chosen[4] = {0};
    size_t counts[4];
    cli_options options = {0};
    for (size_t t = 0; t < 4; t++) cli_add_value(&options, tables[t], &chosen[t]);
    safer_status status = read_object(c, object, where, &options, error);
    for (size_t t = 0; t < 4 && status == SAFER_OK; t++)
        status = choose(names[t], t == 3 ? CMP_ATTACKS : MOST, &counts[t], c, tables[t], chosen[t], where, error);
    for (size_t i = 0; status == SAFER_OK && i < counts[0] * counts[1] * counts[2]; i++) {
        cmp_cell cell = {.data = names[0][i / (counts[1] * counts[2])],
                         .model = names[1][i / counts[2] % counts[1]],
                         .defense = names[2][i % counts[2]],
                         .attack_count = counts[3]};
        memcpy(cell.attacks, names[3], counts[3] * sizeof names[3][0]);
        status = add_cell(c, cell, error);
    }
    return status;
}

/* The cells that "compare" lists or, where it is missing, all. */
static safer_status read_products(cmp_config *c, const json_t *compare, safer_error *error)
{
    safer_status status = SAFER_OK;
    if (!compare) {
        json_t *everything = cli_need(json_object());
        status = add_product(c, everything, "compare", error);
        json_decref(everything);
    } else if (!json_is_array(compare)) {
        status = fail(c, error, "compare: a list of objects is expected");
    }
    for (size_t i = 0; i < json_array_size(compare) && status == SAFER_OK; i++) {
        char where[64];
        snprintf(where, sizeof where, "compare[%zu]", i);
        status = add_product(c, json_array_get(compare, i), where, error);
    }
    if (status == SAFER_OK && !c->cell_count) status = fail(c, error, "there is nothing to compare");
    return status;
}

static safer_status read_root(cmp_config *c, safer_error *error)
{
    static const char *const names[] = {"data", "models", "defenses", "attacks"};
    json_t *tables[4] = {0}, *compare = NULL;
    const char *radius = "all";
    cli_options options = {0};
    cli_add_string(&options, "title", &c->title, NULL, NULL);
    cli_add_uint(&options, "seed", &c->seed, NULL, NULL);
    cli_add_string(&options, "radius", &radius, NULL, NULL);
    for (size_t i = 0; i < 4; i++) cli_add_value(&options, names[i], &tables[i]);
    cli_add_value(&options, "compare", &compare);
    safer_status status = read_object(c, c->root, "the configuration", &options, error);
    if (status != SAFER_OK) return status;
    c->radius = cli_radius_of(radius);
    if (c->radius < 1) return fail(c, error, "radius is \"%.60s\": a number of words from 1, or all", radius);
    for (size_t i = 0; i < 4 && status == SAFER_OK; i++) {
        if (!tables[i] && i < 3) return fail(c, error, "\"%s\" is missing", names[i]);
        if (tables[i]) status = check_names(c, names[i], tables[i], error);
    }
    const char *key, *name;
    json_t *value, *ignored;
    if (status == SAFER_OK) json_object_foreach(tables[3], key, value) json_object_foreach(tables[0], name, ignored)
        {
            cmp_attack attack;
            if (status == SAFER_OK) status = cmp_attack_read(&attack, c, name, key, error);
        }
    return status == SAFER_OK ? read_products(c, compare, error) : status;
}

safer_status cmp_config_read(cmp_config *out, const char *path, safer_error *error)
{
    json_error_t where;
    const char *slash = strrchr(path, '/');
    *out = (cmp_config){
        .path = path, .seed = 1, .kept = json_array(), .folder = strndup(path, slash ? (size_t)(slash - path) + 1 : 0)};
    if (!out->kept || !out->folder) cli_no_memory();
    out->root = cli_json_load(path, JSON_REJECT_DUPLICATES, &where);
    if (!out->root && where.line < 1) return cli_error(error, SAFER_INPUT, "%.700s", where.text);
    if (!out->root)
        return cli_error(error, SAFER_INPUT, "%.500s, line %d, column %d: %.300s", path, where.line, where.column,
                         where.text);
    return read_root(out, error);
}

safer_status cmp_config_take(cmp_config *out, const char *name, json_t *root, safer_error *error)
{
    *out = (cmp_config){.path = name, .seed = 1, .kept = json_array(), .folder = strdup(""), .root = root};
    if (!out->kept || !out->folder || !root) cli_no_memory();
    return read_root(out, error);
}

void cmp_config_free(cmp_config *config)
{
    for (size_t i = 0; i < config->cell_count; i++) {
        safer_run_free(config->cells[i].certified);
        for (size_t k = 0; k < config->cells[i].attack_count; k++) safer_run_free(config->cells[i].attacked[k]);
    }
    free(config->cells);
    free(config->folder);
    json_decref(config->kept);
    json_decref(config->root);
}
