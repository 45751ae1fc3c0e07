/* The runs of a report. */
#include "report/runs.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *sf_entry_id(const sf_run *run, const sf_entry *entry) { return run->ids.bytes + entry->id; }

const char *sf_run_label(const sf_run *run, int label)
{
    return label < 0 ? "" : json_string_value(json_array_get(run->config.labels, (size_t)label));
}

int sf_entry_is_right(const sf_entry *entry) { return entry->label >= 0 && entry->prediction == entry->label; }

int sf_run_has_votes(const sf_run *run) { return run->config.method != SAFER_IBP; }

int sf_runs_have_votes(const sf_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sf_run_has_votes(&runs[i])) return 1;
    return 0;
}

/* ------------------------------------------------------------------ reading */

static safer_status take_config(void *context, json_t *json, const sf_config *config, safer_error *error)
{
    sf_run *run = context;
    (void)error;
    run->json = json_incref(json);
    run->config = *config; /* its labels live in the JSON */
    return SAFER_OK;
}

static int class_of(const sf_run *run, const json_t *name)
{
    for (size_t k = 0; k < run->config.classes; k++)
        if (json_equal(name, json_array_get(run->config.labels, k))) return (int)k;
    return -1;
}

/* What votes have shown, or interval bounds. */
static int read_evidence(sf_entry *e, const sf_run *run, const json_t *record)
{
    json_t *json = (json_t *)(uintptr_t)record, *margin;
    json_int_t n;
    const char *name;
    if (sf_run_has_votes(run)) {
        if (json_unpack(json, "{s:I, s:F, s:F}", "n", &n, "bound", &e->bound, "q", &e->q) != 0) return -1;
        e->n = (uint64_t)n;
        return e->bound >= 0 && e->bound <= 1 ? 0 : -1;
    }
    e->margin = HUGE_VAL;
    json_object_foreach(json_object_get(json, "margins"), name, margin)
        e->margin = fmin(e->margin, json_real_value(margin));
    return isfinite(e->margin) ? 0 : -1;
}

/* A record that was rechecked has all that a decision needs; the rest is looked at here. */
static int read_entry(sf_entry *e, const sf_run *run, const json_t *record, const char **id)
{
    json_t *label, *prediction, *base, *target, *radius;
    json_int_t words, slots, visible = -1, queries;
    if (json_unpack((json_t *)(uintptr_t)record, "{s:s, s:o, s:o, s:o, s:o, s:I, s:I, s?:I, s:o, s:I, s:b, s:b, s:b}",
                    "id", id, "label", &label, "prediction", &prediction, "base", &base, "target", &target, "words",
                    &words, "slots", &slots, "visible", &visible, "radius", &radius, "queries", &queries, "abstained",
                    &e->abstained, "exact", &e->exact, "certified", &e->certified) != 0 ||
        read_evidence(e, run, record))
        return -1;
    if (visible == -1) visible = slots; /* the first records did not say: they had no model that stops reading */
    if (slots < 0 || visible < 0 || visible > slots || words < slots || queries < 0) return -1;
    e->label = class_of(run, label);
    e->prediction = class_of(run, prediction);
    e->base = class_of(run, base);
    e->target = class_of(run, target);
    e->words = (size_t)words;
    e->slots = (size_t)slots;
    e->visible = (size_t)visible;
    e->queries = (uint64_t)queries;
    e->radius = json_is_integer(radius) ? (size_t)json_integer_value(radius) : SAFER_ALL;
    return 0;
}

static safer_status take_record(void *context, json_t *record, size_t line, safer_error *error)
{
    sf_run *run = context;
    const char *id = "";
    sf_entry entry = {.id = run->ids.length};
    if (read_entry(&entry, run, record, &id))
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: not a record", run->path, line);
    if (sf_grow(&run->entries, &run->capacity, run->count + 1, sizeof *run->entries) ||
        sf_buffer_add(&run->ids, id, strlen(id) + 1))
        return sf_fail_memory(error);
    run->entries[run->count++] = entry;
    return SAFER_OK;
}

safer_status sf_report_run_read(sf_run *run, const char *path, safer_error *error)
{
    run->path = path;
    run->lexicon = -1;
    return sf_run_read(&run->summary, path, &(sf_run_visit){take_config, take_record, run}, error);
}

void sf_report_run_free(sf_run *run)
{
    free(run->name);
    json_decref(run->json);
    free(run->entries);
    sf_buffer_free(&run->ids);
    *run = (sf_run){0};
}

/* ------------------------------------------------------------------- naming */

static char *short_name(const char *path)
{
    static const char *const endings[] = {".jsonl", ".json"};
    const char *name = sf_base_name(path);
    size_t length = strlen(name);
    for (size_t i = 0; i < 2; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(name + length - ending, endings[i]) == 0)
            return sf_strndup(name, length - ending);
    }
    return sf_strdup(name);
}

/* Whether another run's file has the same last part. */
static int is_shared(const sf_run *runs, size_t count, size_t i)
{
    for (size_t k = 0; k < count; k++)
        if (k != i && strcmp(sf_base_name(runs[k].path), sf_base_name(runs[i].path)) == 0) return 1;
    return 0;
}

safer_status sf_report_runs_name(sf_run *runs, size_t count, safer_error *error)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(runs[i].path, runs[k].path) == 0)
                return sf_fail(error, SAFER_INVALID, "%s is given twice", runs[i].path);
    for (size_t i = 0; i < count; i++) {
        runs[i].name = is_shared(runs, count, i) ? sf_strdup(runs[i].path) : short_name(runs[i].path);
        if (!runs[i].name) return sf_fail_memory(error);
    }
    return SAFER_OK;
}

/* ----------------------------------------------------------------- matching */

static const char *hash_of(const sf_run *run, const char *part)
{
    const char *hash = json_string_value(json_object_get(json_object_get(run->json, part), "hash"));
    return hash ? hash : "";
}

/* `part` is the configuration's member, `noun` what a person calls it. */
static safer_status fail_match(const sf_run *runs, size_t count, const char *part, const char *noun, const char *hash,
                               safer_error *error)
{
    if (count == 1)
        return sf_fail(error, SAFER_INPUT, "%s was made with another %s: its hash is %s, that of the one given %s",
                       runs[0].path, noun, hash_of(&runs[0], part), hash);
    return sf_fail(error, SAFER_INPUT, "none of the %zu runs was made with this %s (hash %s)", count, noun, hash);
}

safer_status sf_report_runs_match(sf_run *runs, size_t count, const safer_data *data,
                                  const safer_lexicon *const *lexicons, size_t lexicon_count, safer_error *error)
{
    char hash[17];
    size_t found = 0;
    if (data) {
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)safer_data_hash(data));
        for (size_t i = 0; i < count; i++)
            found += (size_t)(runs[i].has_data = strcmp(hash, hash_of(&runs[i], "data")) == 0);
        if (!found) return fail_match(runs, count, "data", "data set, sample or limit", hash, error);
    }
    for (size_t l = 0; l < lexicon_count; l++) {
        found = 0;
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)sf_lexicon_hash(lexicons[l]));
        for (size_t i = 0; i < count; i++) {
            if (strcmp(hash, hash_of(&runs[i], "lexicon")) != 0) continue;
            runs[i].lexicon = (int)l;
            found++;
        }
        if (!found) return fail_match(runs, count, "lexicon", "lexicon", hash, error);
    }
    return SAFER_OK;
}
