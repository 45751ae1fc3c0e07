/* The record of a text: written, read, and checked against itself. record.h says what it is;
 * docs/certify.md, what its members mean. */
#include "certify/record.h"

#include "base/memory.h"
#include "run/members.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------- weights */

/* A weight as decimal digits. */
static json_t *weight_json(sf_weight weight)
{
    char digits[48], *p = digits + sizeof digits - 1;
    *p = '\0';
    do *--p = (char)('0' + (int)(weight % 10));
    while (weight /= 10);
    return json_string(p);
}

static int read_weight(const json_t *value, sf_weight *out)
{
    const char *p = json_string_value(value);
    sf_weight weight = 0;
    if (!p || !*p || strlen(p) > 39) return -1;
    for (; *p; p++) {
        if (*p < '0' || *p > '9' || weight > (~(sf_weight)0 - 9) / 10) return -1;
        weight = weight * 10 + (unsigned)(*p - '0');
    }
    *out = weight;
    return 0;
}

/* ------------------------------------------------------------------- writing */

static json_t *label_json(const safer_model *model, int label)
{
    return label >= 0 && (size_t)label < model->classes ? json_string(model->labels[label]) : json_null();
}

/* What sampling or enumeration found. */
static void add_counts(json_t *record, const safer_certificate *c, const safer_workspace *w)
{
    const safer_model *model = w->model;
    json_t *counts = json_object(), *q_at = json_array();
    for (size_t k = 0; k < model->classes; k++)
        json_object_set_new(counts, model->labels[k],
                            c->exact ? weight_json(w->tally.votes[k]) : json_integer((json_int_t)c->votes[k]));
    for (size_t r = 0; r < SAFER_RADII; r++) json_array_append_new(q_at, json_real(c->q[r]));
    json_object_set_new(record, "n", json_integer((json_int_t)c->n));
    json_object_set_new(record, "counts", counts);
    if (c->exact) json_object_set_new(record, "total", weight_json(w->tally.total));
    json_object_set_new(record, "bound", json_real(c->bound));
    json_object_set_new(record, "q", json_real(c->q[SAFER_RADII - 1]));
    json_object_set_new(record, "q_at", q_at);
    json_object_set_new(record, "q_radius", json_real(w->q_radius));
    json_object_set_new(record, "q_next", json_real(w->q_next));
}

/* What interval bounds found: the target's lead over every other class. */
static void add_margins(json_t *record, const safer_certificate *c, const safer_model *model)
{
    json_t *margins = json_object();
    for (size_t k = 0; k < model->classes; k++)
        if ((int)k != c->target) json_object_set_new(margins, model->labels[k], json_real(c->margins[k]));
    json_object_set_new(record, "margins", margins);
}

json_t *sf_record_json(const safer_certificate *c, size_t row, const safer_workspace *w)
{
    const safer_model *model = w->model;
    json_t *record = json_object();
    if (row) json_object_set_new(record, "row", json_integer((json_int_t)row));
    json_object_set_new(record, "id", json_string(c->id));
    json_object_set_new(record, "label", label_json(model, c->label));
    json_object_set_new(record, "prediction", label_json(model, c->prediction));
    json_object_set_new(record, "abstained", json_boolean(c->abstained));
    json_object_set_new(record, "base", label_json(model, c->base));
    json_object_set_new(record, "target", label_json(model, c->target));
    json_object_set_new(record, "words", json_integer((json_int_t)c->words));
    json_object_set_new(record, "slots", json_integer((json_int_t)c->slots));
    json_object_set_new(record, "visible", json_integer((json_int_t)c->visible));
    json_object_set_new(record, "exact", json_boolean(c->exact));
    if (c->margins)
        add_margins(record, c, model);
    else
        add_counts(record, c, w);
    json_object_set_new(record, "certified", json_boolean(c->certified));
    json_object_set_new(record, "radius", sf_radius_json(c->radius));
    json_object_set_new(record, "queries", json_integer((json_int_t)c->queries));
    return record;
}

/* ------------------------------------------------------------------- reading */

/* A class by its name; null is -1, where the record need not have one. */
static int read_class(sf_members *m, const char *name, const sf_config *config, int needed)
{
    const json_t *value = sf_member_any(m, name);
    int class = -1;
    if (!value || (json_is_null(value) && !needed)) return -1;
    for (size_t k = 0; k < config->classes && json_is_string(value); k++)
        if (strcmp(json_string_value(value), sf_config_label(config, (int)k)) == 0) class = (int)k;
    if (class < 0) sf_member_refuse(m, name, needed ? "one of the labels" : "one of the labels, or null");
    return class;
}

/* Only types: what they add up to is looked at by sf_record_recheck. */
static void read_counts(sf_record *r, sf_members *m, const sf_config *config)
{
    static const char votes[] = "a whole number for every label", weights[] = "digits for every label";
    sf_weight weight;
    r->counts = sf_member_object(m, "counts");
    if (!r->counts) return;
    if (json_object_size(r->counts) != config->classes) sf_member_refuse(m, "counts", r->exact ? weights : votes);
    for (size_t k = 0; k < config->classes; k++) {
        const json_t *count = json_object_get(r->counts, sf_config_label(config, (int)k));
        if (r->exact ? read_weight(count, &weight) : !json_is_integer(count))
            sf_member_refuse(m, "counts", r->exact ? weights : votes);
    }
    if (!r->exact) return;
    r->total = sf_member_any(m, "total");
    if (r->total && read_weight(r->total, &weight)) sf_member_refuse(m, "total", "digits");
}

static void read_votes(sf_record *r, sf_members *m, const sf_config *config)
{
    r->n = sf_member_count(m, "n");
    r->bound = sf_member_number(m, "bound");
    r->q = sf_member_number(m, "q");
    const json_t *q_at = sf_member_array(m, "q_at");
    if (q_at && json_array_size(q_at) != SAFER_RADII) sf_member_refuse(m, "q_at", "a number for every radius");
    for (size_t i = 0; q_at && i < SAFER_RADII; i++) {
        const json_t *q = json_array_get(q_at, i);
        r->q_at[i] = json_number_value(q);
        if (!json_is_number(q) || !(r->q_at[i] >= 0 && r->q_at[i] <= 1) || (i && r->q_at[i] < r->q_at[i - 1]))
            sf_member_refuse(m, "q_at", "numbers from 0 to 1 that do not fall");
    }
    r->q_radius = sf_member_number(m, "q_radius");
    if (!(r->q_radius >= 0)) sf_member_refuse(m, "q_radius", "a number from 0 to 1");
    r->q_next = sf_member_number(m, "q_next");
    if (!(r->q_next >= r->q_radius && r->q_next <= 1))
        sf_member_refuse(m, "q_next", "a number from 0 to 1, not below q_radius");
    read_counts(r, m, config);
}

static void read_margins(sf_record *r, sf_members *m, const sf_config *config)
{
    static const char must[] = "a real number for every label but the target's";
    r->margins = sf_member_object(m, "margins");
    if (!r->margins) return;
    if (json_object_size(r->margins) != config->classes - 1) sf_member_refuse(m, "margins", must);
    r->margin = HUGE_VAL;
    for (size_t k = 0; k < config->classes; k++) {
        const json_t *margin = json_object_get(r->margins, sf_config_label(config, (int)k));
        if ((int)k == r->target ? margin != NULL : !json_is_real(margin)) sf_member_refuse(m, "margins", must);
        if (margin) r->margin = fmin(r->margin, json_real_value(margin));
    }
}

safer_status sf_record_read(sf_record *out, const json_t *json, const sf_config *config, const char *path, size_t line,
                            safer_error *error)
{
    sf_members m = {.object = json};
    sf_record r = {.id = sf_member_string(&m, "id")};
    r.label = read_class(&m, "label", config, 0);
    r.prediction = read_class(&m, "prediction", config, 0);
    r.abstained = sf_member_flag(&m, "abstained");
    r.base = read_class(&m, "base", config, 0);
    r.target = read_class(&m, "target", config, 1);
    r.words = (size_t)sf_member_count(&m, "words");
    r.slots = (size_t)sf_member_count(&m, "slots");
    /* The first records did not say: they had no model that stops reading. */
    r.visible = json_object_get(json, "visible") ? (size_t)sf_member_count(&m, "visible") : r.slots;
    r.exact = sf_member_flag(&m, "exact");
    if (config->method == SAFER_METHOD_IBP)
        read_margins(&r, &m, config);
    else
        read_votes(&r, &m, config);
    r.certified = sf_member_flag(&m, "certified");
    r.radius = sf_member_radius(&m, "radius");
    r.queries = sf_member_count(&m, "queries");
    safer_status status = sf_members_check(&m, "a record", path, line, error);
    if (status == SAFER_OK) *out = r;
    return status;
}

/* ------------------------------------------------------------------ checking */

/* The class that a certificate must be about. */
static int right_target(const sf_record *r, const sf_config *config)
{
    return r->label >= 0 && !config->unlabelled ? r->label : r->prediction;
}

/* The counts of a record, as votes or as exact weights. 0, or -1 when they do not add up. */
static int take_counts(uint64_t *votes, sf_tally *tally, const sf_record *r, const sf_config *config)
{
    sf_weight total = 0;
    uint64_t sum = 0;
    for (size_t k = 0; k < config->classes; k++) {
        const json_t *count = json_object_get(r->counts, sf_config_label(config, (int)k));
        const json_int_t whole = json_integer_value(count);
        sf_weight weight;
        if (r->exact) {
            if (read_weight(count, &weight) || sf_tally_add(tally, (int)k, weight)) return -1;
        } else {
            if (whole < 0 || (uint64_t)whole > r->n) return -1;
            votes[k] = (uint64_t)whole;
            sum += votes[k];
        }
    }
    /* What is missing is answers that were not a label; models made here always answer. */
    if (!r->exact) return sum == r->n || (config->remote && sum < r->n) ? 0 : -1;
    if (read_weight(r->total, &total) || total == 0 || total < tally->total) return -1;
    if (config->remote && total > tally->total) return sf_tally_add(tally, SF_NO_LABEL, total - tally->total);
    return total == tally->total ? 0 : -1;
}

/* What of a record does not fit the configuration, or NULL. */
static const char *fault_of_counts(const sf_record *r, const sf_config *config)
{
    if (r->slots > r->words) return "there are more slots than words";
    if (r->visible > r->slots) return "more slots are visible than there are";
    if (r->exact && config->method != SAFER_METHOD_ADAPTIVE) return "this method never enumerates";
    if (r->exact && config->random) return "a model that answers at random has no exact certificate";
    if (r->exact ? r->n != 0 : r->n > config->n || (config->method != SAFER_METHOD_ADAPTIVE && r->n != config->n))
        return "n does not fit the configuration";
    return r->target != right_target(r, config) ? "the certificate is about another class" : NULL;
}

/* Whether q can be that of a radius, as far as the reported radii tell: q rises with the radius. */
static int q_fits(const sf_record *r, double q, size_t radius)
{
    for (size_t i = 0; i < SAFER_RADII; i++)
        if ((sf_reported_radii[i] <= radius && r->q_at[i] > q) || (sf_reported_radii[i] >= radius && r->q_at[i] < q))
            return 0;
    return q >= 0 && q <= 1;
}

/* Whether q can grow so between two radii: the overlaps rise, so the mean logarithm of the first few cannot
 * exceed that of more. A product is at least 1 - q, and exceeds it by less than 2^-52. */
static int q_slows_down(double few_q, size_t few, double more_q, size_t more)
{
    const double few_least = 1 - few_q, more_most = 1 - more_q + 0x1p-52;
    return few == 0 || few >= more || log(more_most) / (double)more >= log(few_least) / (double)few - 1e-9;
}

/* What of the q of a record contradicts the rest of it, or NULL. All of them come from one list of
 * overlaps, rising, of the visible slots. */
static const char *fault_of_q(const sf_record *r)
{
    const int all = r->radius == SAFER_ALL;
    const double last = r->q_at[SAFER_RADII - 1];
    for (size_t i = 0; i < SAFER_RADII; i++) {
        if (!q_fits(r, r->q_at[i], sf_reported_radii[i])) return "q_at does not rise from 0 to 1";
        if (sf_reported_radii[i] >= r->visible && r->q_at[i] != last) return "q_at goes on where the slots end";
        const size_t more = i + 1 < SAFER_RADII ? sf_reported_radii[i + 1] : SAFER_ALL;
        if (i + 1 < SAFER_RADII &&
            !q_slows_down(r->q_at[i], sf_reported_radii[i], r->q_at[i + 1], more < r->visible ? more : r->visible))
            return "q_at grows faster than overlaps that rise allow";
    }
    if (r->q != last) return "q is not that of all words";
    if (!all && r->radius > 0 && r->radius >= r->visible) return "a radius beyond the number of slots";
    if (all && r->q_radius != last) return "q_radius is not that of all words";
    if (all && r->q_next != last) return "q_next is not that of all words";
    if (r->radius == 0 && (r->q_radius != 0 || (r->q_next != 0 && !q_fits(r, r->q_next, 1))))
        return "q_radius or q_next is not that of the radius";
    if (!all && r->radius > 0 && (!q_fits(r, r->q_radius, r->radius) || !q_fits(r, r->q_next, r->radius + 1)))
        return "q_radius or q_next is not that of the radius";
    return NULL;
}

/* What of a record does not follow from its counts, or NULL. */
static const char *fault_of_radius(const sf_record *r, const sf_config *config, const sf_evidence *e)
{
    const int all = r->radius == SAFER_ALL;
    const char *fault = fault_of_q(r);
    if (sf_evidence_bound(e) != r->bound) return "the bound does not follow from the counts";
    if (fault) return fault;
    if ((all || r->radius > 0) && !sf_evidence_certifies(e, r->q_radius))
        return "the radius is not certified by the counts";
    if (!all && sf_evidence_certifies(e, r->q_next)) return "the counts certify a larger radius";
    if (r->certified != (r->radius >= config->radius)) return "certified does not follow from the radius";
    if (!r->exact && r->queries != r->n + config->n0) return "queries are not n + n0";
    for (size_t i = 0; i < SAFER_RADII; i++)
        if (sf_evidence_certifies(e, r->q_at[i]) != (r->radius >= sf_reported_radii[i]))
            return "the radius does not agree with q_at";
    return NULL;
}

/* *fault gets what is wrong with a record of votes, or NULL. */
static safer_status recheck_votes(const char **fault, const sf_record *r, const sf_config *config, safer_error *error)
{
    safer_status status;
    sf_tally tally = {0};
    uint64_t *votes = sf_calloc(config->classes, sizeof *votes);
    if (!votes) return sf_fail_memory(error);
    SF_TRY(sf_tally_new(&tally, config->classes, error));
    const sf_evidence evidence = {.method = config->method,
                                  .delta = config->delta,
                                  .classes = config->classes,
                                  .target = (size_t)r->target,
                                  .exact = r->exact,
                                  .n = r->n,
                                  .votes = votes,
                                  .tally = &tally};
    *fault = take_counts(votes, &tally, r, config) ? "the counts do not add up" : fault_of_counts(r, config);
    if (!*fault) *fault = fault_of_radius(r, config, &evidence);
done:
    free(votes);
    sf_tally_free(&tally);
    return status;
}

/* The same for a record of bounds. */
static const char *fault_of_margins(const sf_record *r, const sf_config *config)
{
    const int leads = r->margin > 0;
    if (r->prediction != r->base) return "the prediction is not the model's answer";
    if (r->target != right_target(r, config)) return "the certificate is about another class";
    if (r->radius != (leads ? SAFER_ALL : 0)) return "the radius does not follow from the margins";
    if (leads && r->base != r->target) return "the margins contradict the model's answer";
    if (r->certified != leads) return "certified does not follow from the radius";
    return !r->exact || r->queries != 0 ? "bounds need no queries" : NULL;
}

safer_status sf_record_recheck(const sf_record *r, const sf_config *config, const char *path, size_t line,
                               safer_error *error)
{
    const char *fault = NULL;
    safer_status status = SAFER_OK;
    if (config->method == SAFER_METHOD_IBP)
        fault = fault_of_margins(r, config);
    else
        status = recheck_votes(&fault, r, config, error);
    return fault ? sf_fail(error, SAFER_INPUT, "%s, line %zu: %s", path, line, fault) : status;
}
