/* The runs of a report. */
#include "report/runs.h"

#include "base/hash.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

const char *sf_report_run_label(const sf_report_run *run, int label) { return sf_config_label(&run->config, label); }

int sf_report_run_has_votes(const sf_report_run *run) { return run->config.method != SAFER_METHOD_IBP; }

int sf_report_run_has_edits(const sf_report_run *run) { return run->summary.edits > 0; }

int sf_report_run_held(const sf_report_run *run, size_t row)
{
    return (unsigned char)run->held.bytes[row / 8] >> row % 8 & 1;
}

size_t sf_page_rows(size_t texts) { return texts < SF_PAGE_ROWS ? texts : SF_PAGE_ROWS; }

size_t sf_page_row(size_t texts, size_t k) { return texts <= SF_PAGE_ROWS ? k : k * texts / SF_PAGE_ROWS; }

/* ------------------------------------------------------------------ reading */

static safer_status take_config(void *context, json_t *json, const sf_config *config, safer_error *error)
{
    sf_report_run *run = context;
    run->json = json_incref(json);
    run->config = *config; /* its labels live in the JSON */
    run->counts = sf_calloc(1, sizeof *run->counts);
    if (!run->counts) return sf_fail_memory(error);
    return sf_shard_need_whole(config->shard, run->path, error);
}

/* A record that was rechecked has all that a decision needs; the rest is looked at here. */
static const char *fault_of(const sf_record *r)
{
    if (r->slots > r->words || r->visible > r->slots) return "the numbers of words and slots contradict each other";
    return r->bound >= 0 && r->bound <= 1 ? NULL : "the bound is not a share";
}

static void add_to_hash(sf_report_run *run, const sf_record *record)
{
    const uint64_t numbers[] = {record->queries, record->n};
    const double reals[] = {record->bound, record->margin};
    run->hash = sf_hash(record->id, strlen(record->id), run->hash);
    run->hash = sf_hash(numbers, sizeof numbers, run->hash);
    run->hash = sf_hash(reals, sizeof reals, run->hash);
}

static int add_held(sf_report_run *run, const sf_record *record)
{
    if (run->count % 8 == 0 && sf_buffer_add_byte(&run->held, 0)) return -1;
    run->held.bytes[run->count / 8] = (char)(run->held.bytes[run->count / 8] | sf_record_holds(record)
                                                                                   << run->count % 8);
    return 0;
}

static safer_status take_record(void *context, json_t *json, const sf_record *record, size_t line, safer_error *error)
{
    sf_report_run *run = context;
    const char *fault = fault_of(record);
    (void)json;
    if (fault) return sf_fail(error, SAFER_INPUT, "%s, line %zu: %s", run->path, line, fault);
    sf_counts_add(run->counts, record, &run->config);
    add_to_hash(run, record);
    if (add_held(run, record)) return sf_fail_memory(error);
    if (run->count++ != sf_page_row(run->config.texts, run->shown)) return SAFER_OK;
    if (sf_grow(&run->records, &run->capacity, run->shown + 1, sizeof *run->records) ||
        sf_buffer_add(&run->ids, record->id, strlen(record->id) + 1))
        return sf_fail_memory(error);
    sf_record *kept = &run->records[run->shown++];
    *kept = *record;
    kept->q = sf_shown_q(record, &run->config);
    kept->vote = kept->counts = kept->total = kept->margins = kept->q_edits = NULL;
    return SAFER_OK;
}

safer_status sf_report_run_read(sf_report_run *run, const char *path, safer_error *error)
{
    run->path = path;
    run->lexicon = -1;
    safer_status status = sf_run_walk(&run->summary, path, &(sf_run_visitor){take_config, take_record, run}, error);
    const char *id = run->ids.bytes; /* which has stopped growing */
    for (size_t i = 0; i < run->shown; i++) {
        run->records[i].id = id;
        id += strlen(id) + 1;
    }
    return status;
}

void sf_report_run_free(sf_report_run *run)
{
    free(run->name);
    json_decref(run->json);
    free(run->records);
    free(run->counts);
    sf_buffer_free(&run->ids);
    sf_buffer_free(&run->held);
    safer_summary_free(&run->summary);
    *run = (sf_report_run){0};
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
static int is_shared(const sf_report_run *runs, size_t count, size_t i)
{
    for (size_t k = 0; k < count; k++)
        if (k != i && strcmp(sf_base_name(runs[k].path), sf_base_name(runs[i].path)) == 0) return 1;
    return 0;
}

safer_status sf_report_runs_name(sf_report_run *runs, size_t count, safer_error *error)
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

/* `part` is the configuration's member, `noun` what a person calls it. */
static safer_status fail_match(const sf_report_run *runs, size_t count, const char *part, const char *noun,
                               const char *sha256, safer_error *error)
{
    if (count == 1)
        return sf_fail(error, SAFER_INPUT, "%s was made with another %s: its digest is %s, that of the one given %s",
                       runs[0].path, noun, sf_origin_digest(runs[0].json, part), sha256);
    if (count == 1) return sf_fail(error, SAFER_INPUT, "the run was not made with this %s (SHA-256 %s)", noun, sha256);
    return sf_fail(error, SAFER_INPUT, "none of the %zu runs was made with this %s (SHA-256 %s)", count, noun, sha256);
}

safer_status sf_report_runs_match(sf_report_run *runs, size_t count, const safer_data *data,
                                  const safer_lexicon *const *lexicons, size_t lexicon_count, safer_error *error)
{
    size_t found = 0;
    if (data && !safer_data_sha256(data)) return sf_fail_memory(error);
    if (data) {
        for (size_t i = 0; i < count; i++) found += (size_t)(runs[i].has_data = sf_origin_has_data(runs[i].json, data));
        if (!found) return fail_match(runs, count, "data", "data set, sample or limit", safer_data_sha256(data), error);
    }
    for (size_t l = 0; l < lexicon_count; l++) {
        found = 0;
        for (size_t i = 0; i < count; i++) {
            if (!sf_origin_has_lexicon(runs[i].json, lexicons[l])) continue;
            runs[i].lexicon = (int)l;
            found++;
        }
        if (!found) return fail_match(runs, count, "lexicon", "lexicon", safer_lexicon_sha256(lexicons[l]), error);
    }
    return SAFER_OK;
}
