/* Attacking a data set. */
#include "attack/attack.h"

#include "attack/records.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "certify/certificate.h"
#include "certify/origin.h"
#include "run/guard.h"
#include "run/rows.h"

#include <stdio.h>

typedef struct attacking {
    const safer_model *model;
    const safer_lexicon *lexicon;
    const safer_data *data;
    const int *classes;
    const safer_attack_options *options;
    sf_shard shard;
    safer_attacker **attackers; /* one per worker */
    sf_wordlist words;          /* that they share, */
    sf_likeness likeness;       /* and what new texts must have in common */
    safer_attack_summary summary;
} attacking;

static safer_status attack_row(void *context, const sf_row *row, int worker, json_t **record, double *seconds,
                               safer_error *error)
{
    attacking *r = context;
    safer_attack_result result;
    safer_status status = SAFER_OK;
    if (!r->attackers[worker]) {
        status = sf_attacker_new(&r->attackers[worker], r->model, r->lexicon, r->options,
                                 r->likeness.lexicon ? &r->likeness : NULL, 0, error);
        if (status != SAFER_OK) return status;
        r->attackers[worker]->rewrite.words = r->words.lexicon ? &r->words : NULL;
    }
    status = safer_attack_text(&result, &r->attackers[worker], r->model, r->lexicon, row->row.text,
                               row->row.text_length, row->row.label, r->options, error);
    if (status != SAFER_OK) return status;
    result.id = row->row.id;
    *record = sf_attack_record_json(&result, row->index + 1, r->model);
    *seconds = result.seconds;
    return SAFER_OK;
}

static safer_status count_record(void *context, const json_t *record, const char *name, size_t line, safer_error *error)
{
    attacking *r = context;
    sf_attack_record read;
    safer_status status = sf_attack_record_read(&read, record, SF_FORMAT, name, line, error);
    if (status != SAFER_OK) return status;
    sf_attack_summary_add(&r->summary, &read);
    return sf_show_record(r->options, record, error);
}

static void describe(void *context, char *stage, size_t size)
{
    const safer_attack_summary *s = &((const attacking *)context)->summary;
    const size_t attacked = s->texts - s->skipped;
    if (!attacked)
        snprintf(stage, size, "attacking");
    else
        snprintf(stage, size, "attacking, %zu%% succeed so far", 100 * s->succeeded / attacked); /* cut */
}

static json_t *config_of(const attacking *r)
{
    json_t *config = sf_attack_config("attack", r->model, r->lexicon, r->data, r->options);
    sf_member_add(&config, "method", json_string(safer_attack_method_name(r->options->method)));
    sf_likeness_add(&config, &r->likeness);
    sf_shard_add(&config, r->shard);
    return config;
}

/* The words that methods without synonyms put in are scored once. */
static safer_status make_words(attacking *r, safer_error *error)
{
    if (!sf_needs_words(r->options->method)) return SAFER_OK;
    return sf_wordlist_make(&r->words, r->model, r->lexicon, r->options->words, r->options->batch, error);
}

/* A helper of a crew: see certify/run.c. */
static safer_status join_run(void *context, const json_t *theirs, const sf_span *texts, size_t count,
                             safer_error *error)
{
    attacking *r = context;
    safer_status status = sf_certify_follow(r->model, theirs, texts, count, error);
    if (status != SAFER_OK) return status;
    json_t *own = config_of(r);
    status = sf_origin_follow(&own, theirs, error);
    json_decref(own);
    return status == SAFER_OK ? make_words(r, error) : status;
}

/* Before a run, but not on a helper. */
static safer_status begin(attacking *r, sf_guard *guard, int **classes, const char *path, int resume,
                          safer_error *error)
{
    safer_status status;
    if (path) SF_TRY(sf_model_check_name(r->model, "to write records", error));
    SF_TRY(sf_map_labels(classes, r->model, r->data, error));
    SF_TRY(sf_guard_begin(guard, path, resume, r->model, error));
    SF_TRY(sf_certify_probe(r->model, r->data, &r->options->progress, error));
    SF_TRY(make_words(r, error));
    r->classes = *classes;
done:
    return status;
}

safer_status safer_attack(safer_attack_summary *out, const char *path, int resume, const safer_model *model,
                          const safer_lexicon *lexicon, const safer_data *data, const safer_attack_options *given,
                          safer_error *error)
{
    safer_attack_options own = safer_attack_options_default();
    const safer_attack_options *options = &own;
    safer_status status = SF_TAKE_OPTIONS(&own, given, safer_attack_options, error);
    if (status != SAFER_OK) return status;
    const int helps = own.crew && safer_crew_rank(own.crew) > 0;
    int *classes = NULL;
    const int threads = model->concurrency ? model->concurrency : sf_threads(options->threads);
    const double start = sf_seconds();
    json_t *config = NULL;
    sf_guard guard = {0};
    attacking r = {.model = model, .lexicon = lexicon, .data = helps ? NULL : data, .options = options};
    r.shard = (sf_shard){options->shard, options->shards};
    SF_TRY(sf_attack_check(options, error));
    if (sf_likeness_asked(options)) SF_TRY(sf_likeness_make(&r.likeness, lexicon, options, error));
    if (!helps) SF_TRY(begin(&r, &guard, &classes, path, resume, error));
    config = config_of(&r);
    r.attackers = sf_calloc((size_t)threads + 1, sizeof *r.attackers);
    if (!config || !r.attackers) {
        status = sf_fail_memory(error);
        goto done;
    }
    const sf_rows rows = {.count = helps ? 0 : sf_shard_size(r.shard, safer_data_size(data)),
                          .shard = r.shard,
                          .model = model,
                          .threads = threads,
                          .config = config,
                          .progress = &options->progress,
                          .context = &r,
                          .data = r.data,
                          .classes = classes,
                          .work = attack_row,
                          .add = count_record,
                          .describe = describe,
                          .crew = own.crew,
                          .join = join_run};
    SF_TRY(sf_rows_run(&rows, path, resume, &r.summary.resumed, error));
    r.summary.seconds = sf_seconds() - start;
    r.summary.words = r.words.asked;
    if (!helps) *out = r.summary;
done:
    if (status != SAFER_OK) sf_guard_end(&guard, error);
    for (int i = 0; r.attackers && i <= threads; i++) safer_attacker_free(r.attackers[i]);
    free(r.attackers);
    sf_wordlist_free(&r.words);
    sf_likeness_free(&r.likeness);
    free(classes);
    json_decref(config);
    return status;
}
