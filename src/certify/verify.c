/* Checking a run: every decision from its record; with lexicon and data, what the record says of its text; with
 * the model, every answer.
 *
 * Records are read again from the bytes of the run as they are needed, so that memory does not grow with their
 * number. What costs least comes first: all records are checked by themselves, then all against their texts,
 * and only then is the model asked. */
#include "certify/read.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "certify/retrace.h"
#include "certify/verify_crew.h"
#include "run/rows.h"

#include <stdint.h>

/* One thread's part. */
typedef struct worker {
    safer_workspace *workspace; /* with a model */
    sf_retrace retrace;
    sf_window window;     /* of the run */
    safer_reader *reader; /* of the data */
    size_t failed;        /* its first failure, SIZE_MAX for none, */
    safer_status status;
    safer_error error; /* and its message */
} worker;

typedef struct replay {
    const safer_model *model; /* NULL: only the texts are looked at */
    const safer_lexicon *lexicon;
    const safer_data *data;
    const sf_run *run;
    int *classes; /* of each of the data's labels, the run's class */
    safer_certify_options options;
    safer_status (*check)(struct replay *r, const sf_record *record, size_t index, worker *w, safer_error *error);
    worker *workers;
    sf_meter meter;
} replay;

/* ---------------------------------------------------------------- one record */

static safer_status check_text(replay *r, const sf_record *record, size_t i, worker *w, safer_error *error)
{
    safer_row row;
    const safer_status status = safer_data_read(&row, &w->reader, r->data, sf_shard_row(r->run->config.shard, i),
                                                error);
    if (status != SAFER_OK) return status;
    return sf_retrace_text(&w->retrace, record, &r->run->config, row, row.label >= 0 ? r->classes[row.label] : -1,
                           r->run->path, i + 2, error);
}

/* Draws and asks again. */
static safer_status check_answers(replay *r, const sf_record *record, size_t i, worker *w, safer_error *error)
{
    safer_status status;
    safer_certificate c;
    const sf_config *config = &r->run->config;
    safer_row row;
    SF_TRY(safer_data_read(&row, &w->reader, r->data, sf_shard_row(config->shard, i), error));
    if (!w->workspace) {
        SF_TRY(sf_workspace_new(&w->workspace, r->model, r->lexicon, &r->options, error));
        w->workspace->fixed_vote = config->format < 2;
        w->workspace->additive = config->additive;
    }
    SF_TRY(safer_certify_text(&c, &w->workspace, r->model, r->lexicon, row.text, row.text_length, record->label,
                              &r->options, error));
    const char *different = sf_retrace_answers(record, config, &c, w->workspace);
    if (different)
        status = sf_fail(error, SAFER_INPUT, "%s, line %zu: the model gives another record: \"%s\" differs",
                         r->run->path, i + 2, different);
done:
    return status;
}

/* --------------------------------------------------------------- all of them */

static void check_records(void *context, size_t begin, size_t end, int index)
{
    replay *r = context;
    worker *w = &r->workers[index];
    for (size_t i = begin; i < end && !sf_meter_cancelled(&r->meter); i++) {
        safer_error error = {0};
        sf_record record;
        json_t *json = NULL;
        safer_status status = sf_run_record(&record, &json, r->run, i, &w->window, &error);
        if (status == SAFER_OK) status = r->check(r, &record, i, w, &error);
        json_decref(json);
        if (status != SAFER_OK && i < w->failed) {
            w->failed = i;
            w->status = status;
            w->error = error;
        }
        sf_meter_add(&r->meter, 1, sf_duty_now().worker);
    }
}

/* The failure of the first record that has one. */
static safer_status check_all(replay *r, int threads, const safer_progress *progress, const char *stage,
                              safer_error *error)
{
    safer_status status;
    size_t first = SIZE_MAX;
    for (int i = 0; i < threads; i++) r->workers[i].failed = SIZE_MAX;
    sf_meter_start(&r->meter, progress, stage, r->run->count);
    const sf_duty before = sf_duty_change((sf_duty){&r->meter, 0});
    sf_model_parallel(r->model, threads, r->run->count, 1, check_records, r);
    (void)sf_duty_change(before);
    SF_TRY(sf_meter_finish(&r->meter, error));
    for (int i = 0; i < threads; i++) {
        if (r->workers[i].failed >= first) continue;
        first = r->workers[i].failed;
        status = r->workers[i].status;
        if (error) *error = r->workers[i].error;
    }
done:
    return status;
}

static safer_status replay_run(replay *r, int threads, safer_crew *crew, const safer_progress *progress,
                               safer_error *error)
{
    safer_status status;
    const int asking = r->model && r->model->concurrency ? r->model->concurrency : sf_threads(threads);
    r->workers = sf_calloc((size_t)asking, sizeof *r->workers);
    if (!r->workers) return sf_fail_memory(error);
    for (int i = 0; i < asking; i++) {
        r->workers[i].retrace.lexicon = r->lexicon;
        r->workers[i].window.source = &r->run->source;
    }
    SF_TRY(sf_config_map_labels(&r->classes, &r->run->config, r->data, r->run->path, error));
    r->check = check_text;
    SF_TRY(check_all(r, asking, progress, "reading the texts", error));
    if (!r->model) goto done;
    r->check = check_answers;
    const sf_verify_crew of = {r->run, r->data, r->classes};
    if (crew)
        status = sf_verify_again(crew, &of, r->model, r->lexicon, threads, progress, error);
    else
        status = check_all(r, asking, progress, "asking again", error);
done:
    for (int i = 0; i < asking; i++) {
        safer_workspace_free(r->workers[i].workspace);
        sf_retrace_free(&r->workers[i].retrace);
        sf_window_free(&r->workers[i].window);
        safer_reader_free(r->workers[i].reader);
    }
    free(r->workers);
    free(r->classes);
    return status;
}

/* Whether the run is about these things, and can be asked about again. */
static safer_status check_origin(const sf_run *run, const safer_model *model, const safer_lexicon *lexicon,
                                 const safer_data *data, const safer_progress *progress, safer_error *error)
{
    safer_status status = SAFER_OK;
    if (model && run->config.random)
        return sf_fail(error, SAFER_INVALID,
                       "%s: the model answered at random; its counts cannot be asked again, only rechecked", run->path);
    if (model && run->config.format >= 2) SF_TRY(sf_model_check_name(model, "to be compared with the run's", error));
    if (model) SF_TRY(sf_certify_probe(model, data, progress, error));
    status = sf_origin_check(run->config_json, model, lexicon, data, run->path, error);
done:
    return status;
}

/* -------------------------------------------------------------- what it says */

/* Adds a phrase to a list that ends with NULL. */
static void add(const char **list, const char *phrase)
{
    while (*list) list++;
    *list = phrase;
}

static void list_checks(safer_verification *v, const sf_config *c, int files, int model)
{
    const int old = c->format < 2, ibp = c->method == SAFER_METHOD_IBP, groups = c->method == SAFER_METHOD_GROUPS;
    const char **checked = v->checked, **not_checked = v->not_checked;
    add(checked, "seals, and that no record is missing, repeated or moved");
    add(checked, ibp ? "radii and decisions, from the margins" : "bounds, radii and decisions, from counts and q");
    if (!old && !ibp) add(checked, "predictions and abstentions, from their votes");
    if (files) {
        add(checked, old ? "hashes of lexicon and data" : "digests of lexicon and data");
        add(checked, "ids, labels, words and slots, from data and lexicon");
        if (!ibp)
            add(checked, groups ? "tokens and their groups, from data and lexicon"
                                : "q and totals of exact certificates, from the lexicon");
    } else {
        add(not_checked, ibp ? "ids, labels, words and slots: they need lexicon and data"
                             : "ids, labels, words, slots and q: they need lexicon and data");
    }
    if (model) {
        add(checked, old ? "hash of the model" : c->remote ? "name and probe of the model" : "digest of the model");
        add(checked, ibp      ? "answers and margins of the model"
                     : groups ? "the model's answer for every group"
                              : "every draw and every answer of the model");
    } else {
        add(not_checked, c->random ? "votes and answers: the model answers at random"
                         : ibp     ? "answers, margins and visible slots: they need the model"
                                   : "votes, answers and visible slots: they need the model");
    }
    if (c->remote && !ibp && !c->random)
        add(not_checked, "that the model is a function of the text, which exact certificates assume");
    if (old) add(not_checked, "what format 1 lacks: SHA-256 digests, the votes behind predictions, names, a date");
    add(not_checked, old ? "who made the run" : "names of files, the date and who made the run");
    if (c->shard.count) add(not_checked, "the other parts of the run");
    add(not_checked, "whether synonyms and labels are right");
}

safer_status safer_verify_crew(safer_verification *out, const char *path, const safer_model *model,
                               const safer_lexicon *lexicon, const safer_data *data, int threads, safer_crew *crew,
                               const safer_progress *progress, safer_error *error)
{
    safer_status status;
    sf_run run = {0};
    const double start = sf_seconds();
    if (crew && !model) return sf_fail(error, SAFER_INVALID, "`crew`: only asking the model again is shared");
    if (crew && safer_crew_rank(crew) > 0) return sf_verify_again(crew, NULL, model, lexicon, threads, progress, error);
    if (model && !(lexicon && data))
        return sf_fail(error, SAFER_INVALID, "`model`: it can be asked again only with `lexicon` and `data`");
    if (!lexicon != !data)
        return sf_fail(error, SAFER_INVALID, "`lexicon` and `data`: both or none are needed to check the texts");
    SF_TRY(sf_run_load(&run, path, error));
    if (lexicon) {
        SF_TRY(check_origin(&run, model, lexicon, data, progress, error));
        SF_TRY(sf_run_index(&run, error));
        replay r = {.model = model, .lexicon = lexicon, .data = data, .run = &run, .options = run.config.options};
        r.options.delta = run.config.delta;
        r.options.threads = 1; /* one thread per text */
        SF_TRY(replay_run(&r, threads, crew, progress, error));
    }
    run.summary.seconds = sf_seconds() - start;
    if (out) {
        const safer_certify_options *o = &run.config.options;
        const int samples = sf_method_samples(o->method);
        *out = (safer_verification){.summary = run.summary,
                                    .format = run.config.format,
                                    .method = o->method,
                                    .radius = o->radius,
                                    .delta = samples ? o->delta : 0,
                                    .alpha = samples ? o->alpha : 0,
                                    .family_wise = samples && o->family_wise,
                                    .shard = run.config.shard.number,
                                    .shards = run.config.shard.count,
                                    .deletion = o->deletion,
                                    .edits = run.config.deletes ? o->edits : 0,
                                    .edit_kind = o->edit_kind};
        list_checks(out, &run.config, lexicon != NULL, model != NULL);
        run.summary = (safer_summary){0}; /* the caller's now */
    }
done:
    sf_run_free(&run);
    return status;
}

safer_status safer_verify(safer_verification *out, const char *path, const safer_model *model,
                          const safer_lexicon *lexicon, const safer_data *data, int threads,
                          const safer_progress *progress, safer_error *error)
{
    return safer_verify_crew(out, path, model, lexicon, data, threads, NULL, progress, error);
}
