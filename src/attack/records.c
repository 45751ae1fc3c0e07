/* Records of attacks: written, read and added up. docs/attack.md lists their members. */
#include "attack/records.h"

#include "base/json.h"
#include "certify/config.h"
#include "run/members.h"

#include <string.h>

enum { FORMAT = 1 };

/* ------------------------------------------------------------------- writing */

json_t *sf_attack_config(const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                         const safer_attack_options *o)
{
    json_t *labels = json_array();
    for (size_t k = 0; k < model->classes; k++) json_array_append_new(labels, json_string(model->labels[k]));
    json_t *config = json_pack(
        "{s:s, s:s, s:i, s:{s:s, s:o, s:s*}, s:{s:o, s:s}, s:{s:o, s:I}, s:o, s:b, s:I, s:o, s:I, s:i, s:i, s:i,"
        " s:f, s:I}",
        "safer", SAFER_VERSION, "kind", "attack", "format", FORMAT, "model", "arch", model->class->arch, "hash",
        sf_hex_json(model->hash), "arithmetic", model->arithmetic, "lexicon", "hash",
        sf_hex_json(sf_lexicon_hash(lexicon)), "kernel", lexicon->kernel_name, "data", "hash",
        sf_hex_json(safer_data_hash(data)), "texts", (json_int_t)safer_data_size(data), "labels", labels, "smoothed",
        o->smoothed != 0, "n", (json_int_t)o->n, "radius", sf_radius_json(o->radius), "max_queries",
        (json_int_t)o->max_queries, "population", o->population, "iterations", o->iterations, "tries", o->tries,
        "alpha", o->alpha, "seed", (json_int_t)o->seed);
    if (sf_model_is_random(model)) json_object_set_new(json_object_get(config, "model"), "random", json_true());
    return config;
}

json_t *sf_label_json(const safer_model *model, int label)
{
    return label >= 0 && (size_t)label < model->classes ? json_string(model->labels[label]) : json_null();
}

json_t *sf_changes_json(const safer_change *changes, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list,
                              json_pack("{s:I, s:I, s:s, s:s}", "word", (json_int_t)changes[i].word + 1, "byte",
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

safer_status sf_attack_record_read(sf_attack_record *out, const json_t *json, const char *path, size_t line,
                                   safer_error *error)
{
    sf_members m = {.object = json};
    sf_attack_record r = {.outcome = SAFER_OUTCOME_FAILED};
    const char *outcome = sf_member_string(&m, "outcome");
    if (!outcome || safer_outcome_parse(&r.outcome, outcome, NULL) != SAFER_OK)
        sf_member_refuse(&m, "outcome", "failed, succeeded or skipped");
    const json_t *reason = sf_member_any(&m, "reason");
    if (json_is_string(reason))
        r.reason = reason_of(json_string_value(reason));
    else if (reason && !json_is_null(reason))
        sf_member_refuse(&m, "reason", "a string, or null");
    r.words = (size_t)sf_member_count(&m, "words");
    r.choices = (size_t)sf_member_count(&m, "choices");
    r.changed = (size_t)sf_member_count(&m, "changed");
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
