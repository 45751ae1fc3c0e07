/* The cross-check: attacks on what a run certified.
 *
 * A certificate says that its class wins at every text within its radius, or its edits. So each method
 * searches the smoothed classifier within what is certified (claim.c), and its best text, whatever the votes of
 * the search were, is tested with fresh draws (smoothed.c). A violation is a text at which the class
 * does not win: by enumeration, or by a test at level 1e-6 for all that is tested of one
 * certificate. Bounds (certify's method ibp) are about the model itself, which is then what is
 * attacked: its answer settles everything.
 *
 * An exact certificate allows no violation. With sampling, the chance that a text that could be
 * attacked gets a certificate is at most delta, independently of other texts.
 * So the number of those that did, among the N sampled texts of the run (certified or not: what
 * was certified is a selection), is at most Bin(N, delta). Equal texts share their draws, so they
 * err together: their violations count once. The alarm is raised when as many violations as were
 * found have a probability below 0.001. */
#include "attack/claim.h"

#include "attack/records.h"
#include "base/elementary.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "certify/read.h"
#include "run/crew_frames.h"
#include "run/guard.h"
#include "run/members.h"
#include "run/rows.h"
#include "stats/special.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct check {
    const safer_model *model;
    const safer_lexicon *lexicon;
    const safer_data *data;
    const sf_run *run; /* NULL on a helper of a crew */
    sf_shard shard;    /* of the data: that of the run, where it is a part */
    safer_attack_options options;
    safer_attacker **attackers; /* one per worker */
    safer_edit_kind edit_kind;  /* of the run, where its draws delete, */
    size_t edit_radius;         /* and of how many words beside edits synonyms are certified; */
    uint64_t key;               /* where groups vote, that of their hash: the seed of the run */
    sf_wordlist vocabulary;     /* that attackers share */
    safer_against_summary summary;
    uint64_t *wrong; /* hashes of the texts whose sampled certificates are violated, each once */
    size_t wrong_count, wrong_capacity;
    safer_reader *reader; /* of these texts */
} check;

/* ------------------------------------------------------------------- a claim */

/* The run's labels are the model's. */
static safer_status read_claim(sf_claim *out, const check *c, size_t index, safer_error *error)
{
    const sf_run *run = c->run;
    sf_record record;
    json_t *line = NULL;
    sf_window window = {.source = &run->source};
    safer_status status = sf_run_record(&record, &line, run, sf_shard_place(run->config.shard, index), &window, error);
    sf_window_free(&window);
    if (status == SAFER_OK)
        *out = (sf_claim){.target = record.target,
                          .exact = record.exact,
                          .radius = record.radius,
                          .words = record.words,
                          .edits = record.edits,
                          .kind = c->edit_kind,
                          .edit_radius = c->edit_radius};
    json_decref(line);
    return status;
}

/* For a helper, which does not have the run. */
static safer_status attach_claim(void *context, size_t index, sf_buffer *out, safer_error *error)
{
    const check *c = context;
    sf_claim own = {0};
    const safer_status status = read_claim(&own, c, index, error);
    if (status != SAFER_OK) return status;
    const int failed = sf_put_number(out, (uint64_t)own.target) || sf_put_number(out, (uint64_t)own.exact) ||
                       sf_put_number(out, own.radius) || sf_put_number(out, own.words) || sf_put_number(out, own.edits);
    return failed ? sf_fail_memory(error) : SAFER_OK;
}

static safer_status take_claim(sf_claim *out, const check *c, const sf_row *row, safer_error *error)
{
    uint64_t target, exact, radius, words, edits;
    sf_span said = row->more;
    if (c->run) return read_claim(out, c, row->index, error);
    if (sf_take_number(&target, &said) || sf_take_number(&exact, &said) || sf_take_number(&radius, &said) ||
        sf_take_number(&words, &said) || sf_take_number(&edits, &said) || edits > SAFER_EDITS || said.length ||
        target >= c->model->classes || exact > 1)
        return sf_fail(error, SAFER_SYSTEM, "what rank 0 says of row %zu makes no sense", row->index + 1);
    *out = (sf_claim){.target = (int)target,
                      .exact = (int)exact,
                      .radius = (size_t)radius,
                      .words = (size_t)words,
                      .edits = (size_t)edits,
                      .kind = c->edit_kind,
                      .edit_radius = c->edit_radius};
    return SAFER_OK;
}

/* ---------------------------------------------------------------- its attack */

static safer_status check_row(void *context, const sf_row *row, int worker, json_t **record, double *seconds,
                              safer_error *error)
{
    check *c = context;
    const double start = sf_seconds();
    sf_claim claimed = {0};
    safer_status status = take_claim(&claimed, c, row, error);
    if (status != SAFER_OK) return status;
    json_t *r = json_pack("{s:I, s:s, s:o, s:b, s:o, s:I, s:n, s:i, s:i, s:i, s:i, s:i}", "row",
                          (json_int_t)row->index + 1, "id", row->row.id, "target",
                          sf_label_json(c->model, claimed.target), "exact", claimed.exact, "radius",
                          sf_radius_text(claimed.radius), "words", (json_int_t)claimed.words, "violation", "choices", 0,
                          "flips", 0, "limited", 0, "queries", 0, "checks", 0);
    if (!r) status = sf_fail_memory(error);
    if (sf_deletes(c->options.deletion)) sf_member_add(&r, "edits", json_integer((json_int_t)claimed.edits));
    if (status == SAFER_OK && sf_claim_covers(&claimed)) {
        safer_attacker **a = &c->attackers[worker];
        if (!*a) status = sf_attacker_new(a, c->model, c->lexicon, &c->options, NULL, 1, error);
        if (status == SAFER_OK) {
            (*a)->rewrite.words = &c->vocabulary;
            (*a)->victim->options.key = c->key;
            status = sf_claim_attack(*a, &claimed, row->row.text, row->row.text_length, &r, error);
        }
    }
    if (status != SAFER_OK) {
        json_decref(r);
        return status;
    }
    *record = r;
    *seconds = sf_seconds() - start;
    return SAFER_OK;
}

/* Remembers the text of a violation, once. */
static safer_status add_wrong(check *c, size_t index, safer_error *error)
{
    safer_row row;
    const safer_status status = safer_data_read(&row, &c->reader, c->data, index, error);
    if (status != SAFER_OK) return status;
    const uint64_t hash = sf_hash(row.text, row.text_length, 0);
    for (size_t i = 0; i < c->wrong_count; i++)
        if (c->wrong[i] == hash) return SAFER_OK;
    if (sf_grow(&c->wrong, &c->wrong_capacity, c->wrong_count + 1, sizeof *c->wrong)) return sf_fail_memory(error);
    c->wrong[c->wrong_count++] = hash;
    return SAFER_OK;
}

/* What the record of a cross-check says. */
typedef struct checked {
    size_t row, radius, edits;
    int exact, broken;
    const char *target;
    uint64_t choices, flips, limited, queries, checks;
} checked;

/* Whether there is a violation: an object, or null. */
static int read_violation(sf_members *m)
{
    const json_t *value = sf_member_any(m, "violation");
    if (!value || json_is_null(value)) return 0;
    if (!json_is_object(value)) sf_member_refuse(m, "violation", "an object, or null");
    sf_members violation = {.object = value, .format = m->format, .within = "violation"};
    (void)sf_member_string(&violation, "method");
    (void)sf_member_flag(&violation, "proved");
    (void)sf_member_count(&violation, "draws");
    (void)sf_member_real(&violation, "p_value");
    (void)sf_member_count(&violation, "changed");
    (void)sf_member_array(&violation, "changes");
    (void)sf_member_any(&violation, "text");
    sf_members_leave(m, &violation);
    return 1;
}

static safer_status read_checked(checked *out, const json_t *json, const char *path, size_t line, safer_error *error)
{
    sf_members m = {.object = json, .format = SF_FORMAT};
    checked r = {.row = (size_t)sf_member_integer(&m, "row", 1)};
    (void)sf_member_string(&m, "id");
    r.target = sf_member_string(&m, "target");
    r.exact = sf_member_flag(&m, "exact");
    r.radius = sf_member_radius(&m, "radius");
    (void)sf_member_count(&m, "words");
    r.broken = read_violation(&m);
    r.choices = sf_member_count(&m, "choices");
    r.flips = sf_member_count(&m, "flips");
    r.limited = sf_member_count(&m, "limited");
    r.queries = sf_member_count(&m, "queries");
    r.checks = sf_member_count(&m, "checks");
    (void)sf_member_optional(&m, "margins");
    if (sf_member_optional(&m, "edits")) r.edits = (size_t)sf_member_count(&m, "edits");
    safer_status status = sf_members_check(&m, "the record of a cross-check", path, line, error);
    if (status == SAFER_OK) *out = r;
    return status;
}

/* Whether this is what the run claims: a model that answers at random may have been certified again
 * since an earlier attack. */
static safer_status check_claim(const checked *r, const sf_run *run, const char *name, size_t line, safer_error *error)
{
    sf_record claimed;
    json_t *json = NULL;
    int same = 0;
    const size_t place = sf_shard_place(run->config.shard, r->row - 1);
    if (place < run->count) {
        sf_window window = {.source = &run->source};
        safer_status status = sf_run_record(&claimed, &json, run, place, &window, error);
        sf_window_free(&window);
        if (status != SAFER_OK) return status;
        same = r->exact == claimed.exact && r->radius == claimed.radius && r->edits == claimed.edits &&
               strcmp(r->target, sf_config_label(&run->config, claimed.target)) == 0;
        json_decref(json);
    }
    return same ? SAFER_OK
                : sf_fail(error, SAFER_INPUT, "%s, line %zu: %s has no such certificate", name, line, run->path);
}

static safer_status count_record(void *context, const json_t *record, const char *name, size_t line, safer_error *error)
{
    check *c = context;
    safer_against_summary *s = &c->summary;
    checked r;
    safer_status status = read_checked(&r, record, name, line, error);
    if (status == SAFER_OK) status = check_claim(&r, c->run, name, line, error);
    if (status != SAFER_OK) return status;
    const int certified = r.radius > 0 || r.edits > 0;
    s->certified_edits += r.edits > 0;
    s->texts++;
    s->sampled += !r.exact;
    s->certified += (size_t)certified;
    s->exact += certified && r.exact;
    s->untouched += certified && r.choices == 0;
    s->violations += (size_t)r.broken;
    s->violations_exact += r.broken && r.exact;
    s->limited += r.limited > 0;
    s->flips += (size_t)r.flips;
    s->queries += r.queries;
    s->checks += r.checks;
    status = r.broken && !r.exact ? add_wrong(c, r.row - 1, error) : SAFER_OK;
    return status != SAFER_OK ? status : sf_show_record(&c->options, record, error);
}

static void describe(void *context, char *stage, size_t size)
{
    const safer_against_summary *s = &((const check *)context)->summary;
    snprintf(stage, size, "attacking certified texts, %zu violation%s so far", s->violations,
             s->violations == 1 ? "" : "s");
}

/* Whether delta explains what was found. */
static void judge(check *c, double delta)
{
    safer_against_summary *s = &c->summary;
    const double tail = sf_log_binomial_tail(c->wrong_count, s->sampled, delta);
    s->delta = delta;
    s->p_value = c->wrong_count ? fmin(1, sf_exp(tail + sf_log_tail_error(tail))) : 1;
    s->alarm = s->violations_exact > 0 || s->p_value < SAFER_AGAINST_LEVEL;
}

/* The configuration names the run by its seal; where that is a part, by the seal of the whole run, so that parts of a
 * cross-check are of one kind whether they were made against parts or against the run. NULL without memory. */
static json_t *config_json(const check *c)
{
    uint64_t seal = c->run->config.seal;
    if (c->run->config.shard.count && sf_sealed_whole(&seal, c->run->config_json)) return NULL;
    json_t *config = sf_attack_config("against", c->model, c->lexicon, c->data, &c->options);
    sf_member_add(&config, "against", sf_hex_json(seal));
    if (sf_deletes(c->options.deletion)) {
        sf_member_add(&config, "edit_kind", json_string(safer_edit_kind_name(c->edit_kind)));
        sf_member_add(&config, "edit_radius", sf_radius_text(c->edit_radius));
        if (c->options.deletion.groups) sf_member_add(&config, "key", json_integer((json_int_t)c->key));
    }
    sf_shard_add(&config, c->shard);
    return config;
}

/* Which texts are attacked: those of the part that the options ask for, or of the run that is itself a part. */
static safer_status choose_shard(check *c, safer_error *error)
{
    const sf_shard own = c->run->config.shard;
    c->shard = own.count ? own : (sf_shard){c->options.shard, c->options.shards};
    if (!own.count || !c->options.shards) return SAFER_OK;
    return sf_fail(error, SAFER_INVALID, "`shard`: %s is part %zu of %zu already", c->run->path, own.number, own.count);
}

/* The words that attacks put in, where edits are certified, are scored once. */
static safer_status make_words(check *c, safer_error *error)
{
    if (!sf_deletes(c->options.deletion) || c->edit_kind == SAFER_EDITS_DELETE) return SAFER_OK;
    return sf_wordlist_make(&c->vocabulary, c->model, c->lexicon, c->options.words, c->options.batch, error);
}

/* What rank 0 says of a run whose draws delete. */
static safer_status join_edits(check *c, const json_t *theirs, safer_error *error)
{
    sf_members m = {.object = theirs, .format = SF_FORMAT};
    const json_t *deletion = json_object_get(theirs, "delete"), *groups = json_object_get(theirs, "groups");
    c->options.deletion = (safer_deletion){0};
    if (!deletion && !groups) return SAFER_OK;
    const char *kind = sf_member_string(&m, "edit_kind");
    c->edit_radius = sf_member_radius(&m, "edit_radius");
    if (groups) {
        c->options.deletion.groups = (size_t)sf_member_integer(&m, "groups", 1);
        c->key = (uint64_t)sf_member_integer(&m, "key", INT64_MIN);
    }
    if (m.wrong || (deletion && sf_deletion_read(&c->options.deletion, deletion)) ||
        safer_edit_kind_parse(&c->edit_kind, kind, NULL) != SAFER_OK)
        return sf_fail(error, SAFER_SYSTEM, "what rank 0 says of the edits of the run makes no sense");
    return SAFER_OK;
}

/* A helper of a crew: see certify/run.c. What rank 0 took from the run is taken over, not compared. */
static safer_status join_run(void *context, const json_t *theirs, const sf_span *texts, size_t count,
                             safer_error *error)
{
    static const char *const of_run[] = {"against", "shard", "edit_kind", "edit_radius", "key"};
    check *c = context;
    c->options.smoothed = json_is_true(json_object_get(theirs, "smoothed"));
    safer_status status = join_edits(c, theirs, error);
    if (status == SAFER_OK) status = sf_attack_check(&c->options, error);
    if (status == SAFER_OK) status = sf_certify_follow(c->model, theirs, texts, count, error);
    if (status != SAFER_OK) return status;
    json_t *own = sf_attack_config("against", c->model, c->lexicon, NULL, &c->options);
    for (size_t i = 0; i < sizeof of_run / sizeof of_run[0]; i++) {
        json_t *member = json_object_get(theirs, of_run[i]);
        if (member) sf_member_add(&own, of_run[i], json_incref(member));
    }
    status = sf_origin_follow(&own, theirs, error);
    json_decref(own);
    return status == SAFER_OK ? make_words(c, error) : status;
}

/* Before a cross-check, but not on a helper: the run, and whether model, lexicon and data are its own. */
static safer_status begin(check *c, sf_run *run, const char *against, sf_guard *guard, const char *path, int resume,
                          safer_error *error)
{
    safer_status status;
    SF_TRY(sf_run_load(run, against, error));
    SF_TRY(sf_run_index(run, error));
    c->run = run;
    c->options.smoothed = run->config.method != SAFER_METHOD_IBP;
    c->options.deletion = run->config.options.deletion;
    c->edit_kind = run->config.options.edit_kind;
    c->edit_radius = run->config.radius;
    c->key = run->config.options.seed;
    SF_TRY(sf_attack_check(&c->options, error));
    SF_TRY(choose_shard(c, error));
    SF_TRY(sf_model_check_name(c->model, "to be compared with that of the run", error));
    if (run->config.random) sf_model_set_random(c->model);
    SF_TRY(sf_guard_begin(guard, path, resume, c->model, error));
    SF_TRY(sf_certify_probe(c->model, c->data, &c->options.progress, error));
    SF_TRY(sf_origin_check(run->config_json, c->model, c->lexicon, c->data, run->path, error));
    SF_TRY(make_words(c, error));
done:
    return status;
}

/* Attacks the texts, or on a helper those that rank 0 sends. */
static safer_status check_rows(check *c, const json_t *config, int threads, const char *path, int resume,
                               safer_error *error)
{
    const sf_rows rows = {.count = c->run ? sf_shard_size(c->shard, c->run->config.texts) : 0,
                          .shard = c->shard,
                          .model = c->model,
                          .threads = threads,
                          .config = config,
                          .progress = &c->options.progress,
                          .context = c,
                          .data = c->data,
                          .work = check_row,
                          .add = count_record,
                          .describe = describe,
                          .attach = attach_claim,
                          .crew = c->options.crew,
                          .join = join_run};
    return sf_rows_run(&rows, path, resume, &c->summary.resumed, error);
}

safer_status safer_attack_against(safer_against_summary *out, const char *against, const char *path, int resume,
                                  const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                                  const safer_attack_options *given, safer_error *error)
{
    safer_attack_options own = safer_attack_options_default();
    safer_status status = SF_TAKE_OPTIONS(&own, given, safer_attack_options, error);
    if (status != SAFER_OK) return status;
    const int helps = own.crew && safer_crew_rank(own.crew) > 0;
    sf_run run = {0};
    json_t *config = NULL;
    sf_guard guard = {0};
    const int threads = model->concurrency ? model->concurrency : sf_threads(own.threads);
    const double start = sf_seconds();
    check c = {.model = model, .lexicon = lexicon, .data = helps ? NULL : data, .options = own};
    if (sf_likeness_asked(&own)) /* a certificate knows nothing of them */
        return sf_fail(error, SAFER_INVALID,
                       "`same_pos`, `vectors`, `min_cosine` and `min_similarity`: not against certificates");
    c.options.radius = SAFER_ALL;
    c.options.method = SAFER_ATTACK_TEXTFOOLER;
    c.options.deletion = (safer_deletion){0}; /* that of the run */
    if (!helps) SF_TRY(begin(&c, &run, against, &guard, path, resume, error));
    config = helps ? json_object() : config_json(&c);
    c.attackers = sf_calloc((size_t)threads + 1, sizeof *c.attackers);
    if (!config || !c.attackers) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(check_rows(&c, config, threads, path, resume, error));
    if (helps) goto done;
    judge(&c, run.config.delta);
    c.summary.seconds = sf_seconds() - start;
    c.summary.shard = c.shard.number;
    c.summary.shards = c.shard.count;
    c.summary.words = c.vocabulary.asked;
    c.summary.deletion = c.options.deletion;
    *out = c.summary;
done:
    if (status != SAFER_OK) sf_guard_end(&guard, error);
    for (int i = 0; c.attackers && i <= threads; i++) safer_attacker_free(c.attackers[i]);
    free(c.attackers);
    sf_wordlist_free(&c.vocabulary);
    free(c.wrong);
    safer_reader_free(c.reader);
    json_decref(config);
    sf_run_free(&run);
    return status;
}
