/* Records of attacks: written, read and added up. docs/attack.md lists their members. */
#include "attack/records.h"

#include "attack/attack.h"
#include "base/json.h"
#include "base/rng.h"
#include "certify/config.h"
#include "run/members.h"

#include <string.h>

/* ------------------------------------------------------------- configurations */

json_t *sf_attack_config(const char *kind, const safer_model *model, const safer_lexicon *lexicon,
                         const safer_data *data, const safer_attack_options *o)
{
    json_t *config = json_object();
    sf_member_add(&config, "safer", json_string(SAFER_VERSION));
    sf_member_add(&config, "kind", json_string(kind));
    sf_member_add(&config, "format", json_integer(SF_FORMAT));
    sf_origin_add(&config, SF_FORMAT, model, lexicon, data);
    sf_member_add(&config, "smoothed", json_boolean(o->smoothed));
    sf_member_add(&config, "n", json_integer((json_int_t)o->n));
    sf_member_add(&config, "radius", sf_radius_text(o->radius));
    sf_member_add(&config, "max_queries", json_integer((json_int_t)o->max_queries));
    sf_member_add(&config, "population", json_integer(o->population));
    sf_member_add(&config, "iterations", json_integer(o->iterations));
    sf_member_add(&config, "tries", json_integer(o->tries));
    sf_member_add(&config, "alpha", json_real(o->alpha));
    sf_member_add(&config, "seed", json_integer((json_int_t)o->seed));
    if (sf_deletes(o->deletion))
        sf_member_add(&config, sf_deletion_member(o->deletion), sf_deletion_json(sf_deletion_round(o->deletion)));
    if (sf_needs_words(o->method) || (sf_deletes(o->deletion) && strcmp(kind, "against") == 0))
        sf_member_add(&config, "words", json_integer((json_int_t)o->words));
    return config;
}

/* What new texts had to have in common with the texts. */
static void read_likeness(sf_attack_head *head, sf_members *m)
{
    const json_t *parts = sf_member_optional(m, "same_pos"), *vectors = sf_member_optional(m, "vectors");
    const json_t *cosine = sf_member_optional(m, "min_cosine"), *similarity = sf_member_optional(m, "min_similarity");
    if (parts && !json_is_string(parts)) sf_member_refuse(m, "same_pos", "a digest");
    if (vectors && !json_is_string(vectors)) sf_member_refuse(m, "vectors", "a digest");
    if (cosine && !json_is_real(cosine)) sf_member_refuse(m, "min_cosine", "a number");
    if (similarity && !json_is_real(similarity)) sf_member_refuse(m, "min_similarity", "a number");
    head->same_pos = parts != NULL;
    head->min_cosine = json_real_value(cosine);
    head->min_similarity = json_real_value(similarity);
}

safer_status sf_attack_config_read(sf_attack_head *out, const json_t *json, const char *path, safer_error *error)
{
    static const char *const counts[] = {"n", "max_queries", "population", "iterations", "tries"};
    sf_members m = {.object = json};
    const json_int_t format = sf_member_integer(&m, "format", INT64_MIN);
    const char *kind = sf_member_string(&m, "kind");
    if (!m.wrong && strcmp(kind, "attack") != 0) sf_member_refuse(&m, "kind", "\"attack\"");
    if (!m.wrong && (format < 1 || format > SF_FORMAT))
        return sf_fail(error, SAFER_INPUT, "%s, line 1: format %lld, this program reads 1 to %d", path,
                       (long long)format, SF_FORMAT);
    m.format = (int)format;
    (void)sf_member_string(&m, "safer");
    const sf_origin origin = sf_origin_read(&m);
    sf_attack_head head = {.format = m.format, .texts = origin.texts, .smoothed = sf_member_flag(&m, "smoothed")};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) (void)sf_member_count(&m, counts[i]);
    (void)sf_member_radius(&m, "radius");
    (void)sf_member_real(&m, "alpha");
    (void)sf_member_integer(&m, "seed", INT64_MIN);
    head.method = sf_member_string(&m, "method");
    if (m.format >= 2) (void)sf_member_optional(&m, "date");
    const json_t *deletion = sf_member_optional(&m, "delete"), *words = sf_member_optional(&m, "words");
    safer_deletion rate;
    if (deletion && sf_deletion_read(&rate, deletion)) sf_member_refuse(&m, "delete", "a fraction of 2^32, or keep:K");
    if (sf_member_optional(&m, "groups")) (void)sf_member_integer(&m, "groups", 1);
    if (words && !json_is_integer(words)) sf_member_refuse(&m, "words", "a whole number");
    read_likeness(&head, &m);
    safer_status status = SAFER_OK;
    if (m.format >= 2 && sf_member_optional(&m, "shard")) status = sf_shard_read(&head.shard, json, path, error);
    if (status == SAFER_OK) status = sf_members_check(&m, "the configuration of an attack", path, 1, error);
    if (status == SAFER_OK) *out = head;
    return status;
}

json_t *sf_label_json(const safer_model *model, int label)
{
    return label >= 0 && (size_t)label < model->classes ? json_string(model->labels[label]) : json_null();
}

json_t *sf_changes_json(const safer_change *changes, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        sf_item_add(&list, json_pack("{s:I, s:I, s:s, s:s}", "word", (json_int_t)changes[i].word + 1, "byte",
                                     (json_int_t)changes[i].begin, "from", changes[i].from, "to", changes[i].to));
    return list;
}

/* -------------------------------------------------------- outcomes and reasons */

static const char *const reasons[] = {[SF_NO_ANSWER] = "the classifier gives no answer",
                                      [SF_ALREADY_WRONG] = "already wrong",
                                      [SF_QUERIES_USED_UP] = "the queries are used up",
                                      [SF_NO_WORD_CHANGES] = "no word can change",
                                      [SF_NOT_BORNE_OUT] = "fresh draws do not bear it out",
                                      [SF_NOTHING_FOUND] = "nothing was found",
                                      [SF_OTHER_REASON] = NULL};

const char *sf_reason_text(sf_reason reason) { return reasons[reason]; }

static sf_reason reason_of(const char *text)
{
    for (int i = SF_NO_REASON + 1; i < SF_OTHER_REASON; i++)
        if (strcmp(text, reasons[i]) == 0) return (sf_reason)i;
    return SF_OTHER_REASON;
}

/* ------------------------------------------------------------------- records */

json_t *sf_attack_record_json(const safer_attack_result *r, size_t row, const safer_model *model)
{
    json_t *text = r->text ? json_stringn(r->text, r->text_length) : json_null();
    return json_pack("{s:I, s:s, s:o, s:o, s:o, s:s, s:s?, s:I, s:I, s:f, s:f, s:I, s:o, s:o, s:I, s:I}", "row",
                     (json_int_t)row, "id", r->id, "label", sf_label_json(model, r->label), "before",
                     sf_label_json(model, r->before), "after", sf_label_json(model, r->after), "outcome",
                     safer_outcome_name(r->outcome), "reason", r->reason, "words", (json_int_t)r->words, "choices",
                     (json_int_t)r->choices, "score_before", r->score_before, "score_after", r->score_after, "changed",
                     (json_int_t)r->changed, "changes", sf_changes_json(r->changes, r->changed), "text", text,
                     "queries", (json_int_t)r->queries, "checks", (json_int_t)r->checks);
}

/* A string, or null. */
static const json_t *read_text(sf_members *m, const char *name)
{
    const json_t *value = sf_member_any(m, name);
    if (value && !json_is_string(value) && !json_is_null(value)) sf_member_refuse(m, name, "a string, or null");
    return value;
}

/* Whether a list is one of changes. */
static int are_changes(const json_t *list)
{
    size_t i;
    json_t *change;
    json_array_foreach(list, i, change)
    {
        const json_int_t word = json_integer_value(json_object_get(change, "word")); /* 0 where it is none */
        const json_t *byte = json_object_get(change, "byte");
        if (json_object_size(change) != 4 || word < 1 || !json_is_integer(byte) || json_integer_value(byte) < 0 ||
            !sf_is_string(json_object_get(change, "from")) || !sf_is_string(json_object_get(change, "to")))
            return 0;
    }
    return 1;
}

safer_status sf_attack_record_read(sf_attack_record *out, const json_t *json, int format, const char *path, size_t line,
                                   safer_error *error)
{
    sf_members m = {.object = json, .format = format};
    sf_attack_record r = {.outcome = SAFER_OUTCOME_FAILED};
    (void)sf_member_integer(&m, "row", 1);
    (void)sf_member_string(&m, "id");
    (void)read_text(&m, "label");
    (void)read_text(&m, "before");
    r.after = json_string_value(read_text(&m, "after"));
    const char *outcome = sf_member_string(&m, "outcome");
    if (!outcome || safer_outcome_parse(&r.outcome, outcome, NULL) != SAFER_OK)
        sf_member_refuse(&m, "outcome", "failed, succeeded or skipped");
    const json_t *reason = read_text(&m, "reason");
    if (json_is_string(reason)) r.reason = reason_of(json_string_value(reason));
    r.words = (size_t)sf_member_count(&m, "words");
    r.choices = (size_t)sf_member_count(&m, "choices");
    (void)sf_member_real(&m, "score_before");
    (void)sf_member_real(&m, "score_after");
    r.changed = (size_t)sf_member_count(&m, "changed");
    r.changes = sf_member_array(&m, "changes");
    if (r.changes && !are_changes(r.changes)) sf_member_refuse(&m, "changes", "a list of changed words");
    (void)read_text(&m, "text");
    r.queries = sf_member_count(&m, "queries");
    r.checks = sf_member_count(&m, "checks");
    safer_status status = sf_members_check(&m, "the record of an attack", path, line, error);
    if (status == SAFER_OK) *out = r;
    return status;
}

void sf_attack_summary_add(safer_attack_summary *s, const sf_attack_record *r)
{
    s->texts++;
    s->skipped += r->outcome == SAFER_OUTCOME_SKIPPED;
    s->without_choices += r->choices == 0;
    s->limited += r->reason == SF_QUERIES_USED_UP;
    if (r->outcome == SAFER_OUTCOME_SUCCEEDED) {
        s->succeeded++;
        s->changed += r->changed;
        s->changed_share += r->words > 0 ? (double)r->changed / (double)r->words : 0;
    }
    s->queries += r->queries;
    s->checks += r->checks;
}

safer_status sf_show_record(const safer_attack_options *options, const json_t *record, safer_error *error)
{
    if (!options->each) return SAFER_OK;
    char *line = sf_json_text(record);
    if (!line) return sf_fail_memory(error);
    options->each(options->each_context, line);
    free(line);
    return SAFER_OK;
}
