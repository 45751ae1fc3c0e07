/* The record of a text: written, read, and checked against itself. record.h says what it is;
 * docs/certify.md, what its members mean. */
#include "certify/record.h"

#include "base/elementary.h"
#include "base/memory.h"
#include "run/members.h"
#include "stats/edits.h"

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

/* Votes of every class. */
static json_t *votes_json(const uint64_t *votes, const safer_model *model)
{
    json_t *counts = json_object();
    for (size_t k = 0; k < model->classes; k++)
        sf_member_add(&counts, model->labels[k], json_integer((json_int_t)votes[k]));
    return counts;
}

/* What sampling found: the vote that chose the prediction, and that of the certificate. */
static void add_votes(json_t **record, const safer_certificate *c, const safer_workspace *w)
{
    json_t *vote = json_object();
    sf_member_add(&vote, "n", json_integer((json_int_t)c->vote_n));
    sf_member_add(&vote, "counts", votes_json(c->vote_votes, w->model));
    sf_member_add(record, "vote", vote);
    sf_member_add(record, "n", json_integer((json_int_t)c->n));
    sf_member_add(record, "counts", votes_json(c->votes, w->model));
}

/* What enumeration found. */
static void add_weights(json_t **record, const safer_workspace *w)
{
    json_t *weights = json_object();
    for (size_t k = 0; k < w->model->classes; k++)
        sf_member_add(&weights, w->model->labels[k], weight_json(w->tally.votes[k]));
    sf_member_add(record, "weights", weights);
    sf_member_add(record, "total", weight_json(w->tally.total));
}

/* What either proves. */
static void add_bound(json_t **record, const safer_certificate *c, const safer_workspace *w)
{
    json_t *q_at = json_array();
    for (size_t r = 0; r < SAFER_RADII; r++) sf_item_add(&q_at, json_real(c->q[r]));
    sf_member_add(record, "bound", json_real(c->bound));
    sf_member_add(record, "q", json_real(c->q[SAFER_RADII - 1]));
    sf_member_add(record, "q_at", q_at);
    sf_member_add(record, "q_radius", json_real(w->q_radius));
    sf_member_add(record, "q_next", json_real(w->q_next));
    if (w->split) {
        json_t *q_edits = json_array();
        for (size_t i = 0; i <= w->options.edits; i++) sf_item_add(&q_edits, json_real(c->q_edits[i]));
        sf_member_add(record, "q_edits", q_edits);
    }
    if (!c->exact || !sf_model_is_remote(w->model)) return;
    json_t *assumes = json_array();
    sf_item_add(&assumes, json_string(SF_ASSUMES_FUNCTION));
    sf_member_add(record, "assumes", assumes);
}

/* What interval bounds found: the target's lead over every other class. */
static void add_margins(json_t **record, const safer_certificate *c, const safer_model *model)
{
    json_t *margins = json_object();
    for (size_t k = 0; k < model->classes; k++)
        if ((int)k != c->target) sf_member_add(&margins, model->labels[k], json_real(c->margins[k]));
    sf_member_add(record, "margins", margins);
}

/* Where words add up: the least of them, by how many words change. */
static void add_curve(json_t **record, const safer_certificate *c, const safer_workspace *w)
{
    json_t *margin_at = json_array();
    for (size_t r = 0; r < SAFER_RADII; r++) sf_item_add(&margin_at, json_real(c->margin_at[r]));
    sf_member_add(record, "margin_at", margin_at);
    sf_member_add(record, "margin_radius", json_real(w->margin_radius));
    sf_member_add(record, "margin_next", json_real(w->margin_next));
}

json_t *sf_record_json(const safer_certificate *c, size_t row, const safer_workspace *w)
{
    const safer_model *model = w->model;
    json_t *record = json_object();
    if (row) sf_member_add(&record, "row", json_integer((json_int_t)row));
    if (c->id) sf_member_add(&record, "id", json_string(c->id));
    sf_member_add(&record, "label", label_json(model, c->label));
    sf_member_add(&record, "prediction", label_json(model, c->prediction));
    sf_member_add(&record, "abstained", json_boolean(c->abstained));
    sf_member_add(&record, "base", label_json(model, c->base));
    if (c->folded) sf_member_add(&record, "unfolded", label_json(model, c->unfolded));
    sf_member_add(&record, "target", label_json(model, c->target));
    sf_member_add(&record, "words", json_integer((json_int_t)c->words));
    sf_member_add(&record, "slots", json_integer((json_int_t)c->slots));
    sf_member_add(&record, "visible", json_integer((json_int_t)c->visible));
    if (w->split) sf_member_add(&record, "tokens", json_integer((json_int_t)c->tokens));
    sf_member_add(&record, "exact", json_boolean(c->exact));
    if (c->margins)
        add_margins(&record, c, model);
    else if (c->exact)
        add_weights(&record, w);
    else
        add_votes(&record, c, w);
    if (!c->margins) add_bound(&record, c, w);
    if (c->additive) add_curve(&record, c, w);
    sf_member_add(&record, "certified", json_boolean(c->certified));
    sf_member_add(&record, "radius", sf_radius_text(c->radius));
    if (w->split) sf_member_add(&record, "edits", json_integer((json_int_t)c->edits));
    sf_member_add(&record, "queries", json_integer((json_int_t)c->queries));
    return record;
}

safer_status sf_record_row(json_t **record, double *seconds, safer_workspace **workspace, const safer_model *model,
                           const safer_lexicon *lexicon, const sf_row *row, const safer_certify_options *options,
                           safer_error *error)
{
    safer_certificate c;
    const safer_status status = safer_certify_text(&c, workspace, model, lexicon, row->row.text, row->row.text_length,
                                                   row->row.label, options, error);
    if (status != SAFER_OK) return status;
    c.id = row->row.id;
    *record = sf_record_json(&c, row->index + 1, *workspace);
    *seconds = c.seconds;
    return SAFER_OK;
}

/* ------------------------------------------------------------------- reading */

/* A class by its name; null is -1, where the record need not have one. */
static int read_class(sf_members *m, const char *name, const sf_config *config, int needed)
{
    const json_t *value = sf_member_any(m, name);
    int class = -1;
    if (!value || (json_is_null(value) && !needed)) return -1;
    for (size_t k = 0; k < config->classes && class < 0; k++)
        if (json_equal(value, json_array_get(config->labels, k))) class = (int)k;
    if (class < 0) sf_member_refuse(m, name, needed ? "one of the labels" : "one of the labels, or null");
    return class;
}

/* A number for every class. Only types: what they add up to is looked at by sf_record_recheck. */
static const json_t *read_counts(sf_members *m, const char *name, const sf_config *config, int weights)
{
    const char *must = weights ? "digits for every label" : "a whole number for every label";
    const json_t *counts = sf_member_object(m, name);
    sf_weight weight;
    if (counts && json_object_size(counts) != config->classes) sf_member_refuse(m, name, must);
    for (size_t k = 0; counts && k < config->classes; k++) {
        const json_t *count = json_object_get(counts, sf_config_label(config, (int)k));
        if (weights ? read_weight(count, &weight) : !json_is_integer(count)) sf_member_refuse(m, name, must);
    }
    return counts;
}

/* What an exact record counts. */
static void read_weights(sf_record *r, sf_members *m, const sf_config *config)
{
    sf_weight weight;
    r->counts = read_counts(m, config->format < 2 ? "counts" : "weights", config, 1);
    r->total = sf_member_any(m, "total");
    if (r->total && read_weight(r->total, &weight)) sf_member_refuse(m, "total", "digits");
    if (config->format < 2 || !config->remote) return;
    const json_t *assumes = sf_member_array(m, "assumes");
    const char *only = json_string_value(json_array_get(assumes, 0));
    if (assumes && (json_array_size(assumes) != 1 || !only || strcmp(only, SF_ASSUMES_FUNCTION) != 0))
        sf_member_refuse(m, "assumes", "[\"" SF_ASSUMES_FUNCTION "\"]");
}

static void read_q(sf_record *r, sf_members *m)
{
    r->q = sf_member_real(m, "q");
    const json_t *q_at = sf_member_array(m, "q_at");
    if (q_at && json_array_size(q_at) != SAFER_RADII) sf_member_refuse(m, "q_at", "a number for every radius");
    for (size_t i = 0; q_at && i < SAFER_RADII; i++) {
        const json_t *q = json_array_get(q_at, i);
        const int fits = m->format < 2 ? json_is_number(q) : json_is_real(q);
        r->q_at[i] = json_number_value(q);
        if (!fits || !(r->q_at[i] >= 0 && r->q_at[i] <= 1) || (i && r->q_at[i] < r->q_at[i - 1]))
            sf_member_refuse(m, "q_at", "numbers from 0 to 1 that do not fall");
    }
    r->q_radius = sf_member_real(m, "q_radius");
    if (!(r->q_radius >= 0)) sf_member_refuse(m, "q_radius", "a number from 0 to 1");
    r->q_next = sf_member_real(m, "q_next");
    if (!(r->q_next >= r->q_radius && r->q_next <= 1))
        sf_member_refuse(m, "q_next", "a number from 0 to 1, not below q_radius");
}

/* Where draws delete tokens. */
static void read_edits(sf_record *r, sf_members *m, const sf_config *config)
{
    const size_t most = config->options.edits;
    r->tokens = (size_t)sf_member_count(m, "tokens");
    r->edits = (size_t)sf_member_count(m, "edits");
    if (r->edits > most) sf_member_refuse(m, "edits", "at most that of the configuration");
    r->q_edits = sf_member_array(m, "q_edits");
    if (r->q_edits && json_array_size(r->q_edits) != most + 1)
        sf_member_refuse(m, "q_edits", "a number for 0, 1, ... edits");
    for (size_t i = 0; i < json_array_size(r->q_edits); i++) {
        const double q = sf_record_q_edits(r, i);
        if (!json_is_real(json_array_get(r->q_edits, i)) || !(q >= 0 && q <= 1))
            sf_member_refuse(m, "q_edits", "numbers from 0 to 1");
    }
}

/* The vote that chose the prediction. */
static void read_vote(sf_record *r, sf_members *m, const sf_config *config)
{
    sf_members vote = sf_members_enter(m, "vote");
    r->vote_n = (uint64_t)sf_member_integer(&vote, "n", 1);
    r->vote = read_counts(&vote, "counts", config, 0);
    sf_members_leave(m, &vote);
}

static void read_votes(sf_record *r, sf_members *m, const sf_config *config)
{
    if (!r->exact && config->format >= 2) read_vote(r, m, config);
    if (!r->exact || config->format < 2) r->n = sf_member_count(m, "n");
    if (r->exact)
        read_weights(r, m, config);
    else
        r->counts = read_counts(m, "counts", config, 0);
    r->bound = sf_member_real(m, "bound");
    read_q(r, m);
    if (config->deletes) read_edits(r, m, config);
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

static void read_curve(sf_record *r, sf_members *m)
{
    const json_t *at = sf_member_array(m, "margin_at");
    if (at && json_array_size(at) != SAFER_RADII) sf_member_refuse(m, "margin_at", "a number for every radius");
    for (size_t i = 0; at && i < SAFER_RADII; i++) {
        r->margin_at[i] = json_real_value(json_array_get(at, i));
        if (!json_is_real(json_array_get(at, i)) || (i && r->margin_at[i] > r->margin_at[i - 1]))
            sf_member_refuse(m, "margin_at", "real numbers that do not rise");
    }
    r->margin_radius = sf_member_real(m, "margin_radius");
    r->margin_next = sf_member_real(m, "margin_next");
    if (r->margin_next > r->margin_radius) sf_member_refuse(m, "margin_next", "a number not above margin_radius");
}

safer_status sf_record_read(sf_record *out, const json_t *json, const sf_config *config, const char *path, size_t line,
                            safer_error *error)
{
    sf_members m = {.object = json, .format = config->format};
    (void)sf_member_optional(&m, "row"); /* sealed.h saw to it */
    sf_record r = {.id = sf_member_string(&m, "id")};
    r.label = read_class(&m, "label", config, 0);
    r.prediction = read_class(&m, "prediction", config, config->format >= 2);
    r.abstained = sf_member_flag(&m, "abstained");
    r.base = read_class(&m, "base", config, !config->remote); /* else it may be no label */
    r.unfolded = config->folded ? read_class(&m, "unfolded", config, !config->remote) : r.base;
    r.target = read_class(&m, "target", config, 1);
    r.words = (size_t)sf_member_count(&m, "words");
    r.slots = (size_t)sf_member_count(&m, "slots");
    /* The first records did not say: they had no model that stops reading. */
    r.visible = config->format >= 2 || json_object_get(json, "visible") ? (size_t)sf_member_count(&m, "visible")
                                                                        : r.slots;
    r.exact = sf_member_flag(&m, "exact");
    if (config->method == SAFER_METHOD_IBP)
        read_margins(&r, &m, config);
    else
        read_votes(&r, &m, config);
    if (config->additive) read_curve(&r, &m);
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

/* Votes of n draws. 0, or -1 when they do not add up. What is missing is answers that were not a label; models
 * made here always answer. */
static int take_votes(uint64_t *votes, const json_t *counts, uint64_t n, const sf_config *config)
{
    uint64_t left = n;
    for (size_t k = 0; k < config->classes; k++) {
        const json_int_t count = json_integer_value(json_object_get(counts, sf_config_label(config, (int)k)));
        if (count < 0 || (uint64_t)count > left) return -1;
        votes[k] = (uint64_t)count;
        left -= votes[k];
    }
    return left == 0 || config->remote ? 0 : -1;
}

/* The same for exact weights. */
static int take_weights(sf_tally *tally, const sf_record *r, const sf_config *config)
{
    sf_weight weight, total;
    for (size_t k = 0; k < config->classes; k++)
        if (read_weight(json_object_get(r->counts, sf_config_label(config, (int)k)), &weight) ||
            sf_tally_add(tally, (int)k, weight))
            return -1;
    if (read_weight(r->total, &total) || total == 0 || total < tally->total) return -1;
    if (config->remote && total > tally->total) return sf_tally_add(tally, SF_NO_LABEL, total - tally->total);
    return total == tally->total ? 0 : -1;
}

int sf_record_total(const sf_record *r, sf_weight *total) { return read_weight(r->total, total); }

int sf_record_has_tally(const sf_record *r, const sf_config *config, const sf_tally *tally)
{
    sf_weight weight;
    for (size_t k = 0; k < config->classes; k++)
        if (read_weight(json_object_get(r->counts, sf_config_label(config, (int)k)), &weight) ||
            weight != tally->votes[k])
            return 0;
    return read_weight(r->total, &weight) == 0 && weight == tally->total;
}

/* What of the sizes of a text cannot be, or NULL. A slot that is said to be invisible costs nothing in q, and a model
 * that answers at random cannot be asked where it stops reading. */
static const char *fault_of_sizes(const sf_record *r, const sf_config *config)
{
    if (r->slots > r->words) return "there are more slots than words";
    if (r->visible > r->slots) return "more slots are visible than there are";
    if (config->deletes && r->visible < r->slots) return "where tokens are deleted every slot is visible";
    if (config->deletes && r->tokens < r->words) return "there are more words than tokens";
    return config->whole && r->visible < r->slots ? "a model of this kind sees every slot" : NULL;
}

/* What of the votes of groups cannot be, or NULL. Groups without tokens are asked about once, together. */
static const char *fault_of_groups(const sf_record *r, const sf_config *config)
{
    sf_weight total = 0;
    const size_t groups = config->options.deletion.groups;
    if (!r->exact) return "votes of groups are always exact";
    if (read_weight(r->total, &total) || total != groups) return "the total is not the number of groups";
    if (r->queries < 1 || r->queries > groups || r->queries > r->tokens + 1) return "queries are not those of groups";
    return r->q != 0 ? "synonyms change no group, but q is not 0" : NULL;
}

/* What of a record does not fit the configuration, or NULL. */
static const char *fault_of_counts(const sf_record *r, const sf_config *config)
{
    const char *fault = config->method == SAFER_METHOD_GROUPS ? fault_of_groups(r, config) : NULL;
    if (fault) return fault;
    if (r->exact && config->method != SAFER_METHOD_ADAPTIVE && config->method != SAFER_METHOD_GROUPS)
        return "this method never enumerates";
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
    return few == 0 || few >= more || sf_log(more_most) / (double)more >= sf_log(few_least) / (double)few - 1e-9;
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

/* What of the edits of a record does not follow from the rest of it, or NULL. Their q follows from that of
 * synonyms at the asked radius, q_edits[0]. */
static const char *fault_of_edits(const sf_record *r, const sf_config *config, const sf_evidence *e)
{
    const size_t most = config->options.edits;
    if (!q_fits(r, sf_record_q_edits(r, 0), config->radius)) return "q_edits does not begin with q at the asked radius";
    for (size_t i = 1; i <= most; i++) {
        const double own = sf_edits_q(config->options.deletion, r->tokens, config->options.edit_kind, i,
                                      sf_record_q_edits(r, 0));
        const double q = sf_record_q_edits(r, i);
        if (!(q >= own && q <= own + SF_TOLERANCE))
            return config->options.deletion.groups ? "q_edits does not follow from the number of groups"
                                                   : "q_edits does not follow from q and the chance to be deleted";
    }
    if (r->edits > 0 && !sf_evidence_grants(e, sf_record_q_edits(r, r->edits)))
        return "the edits are not certified by the counts";
    if (r->edits < most && sf_evidence_certifies(e, sf_record_q_edits(r, r->edits + 1) + (r->exact ? 0 : SF_TOLERANCE)))
        return "the counts certify more edits";
    return NULL;
}

/* What of a record does not follow from its counts, or NULL. A claim must be granted on some machine; one that
 * says less than this machine would is fine within SF_TOLERANCE. */
static const char *fault_of_radius(const sf_record *r, const sf_config *config, const sf_evidence *e)
{
    const int all = r->radius == SAFER_ALL;
    const double more = r->exact ? 0 : SF_TOLERANCE;
    const char *fault = fault_of_q(r);
    if (!(r->bound >= sf_evidence_bound(e) - SF_TOLERANCE) || !sf_evidence_grants_bound(e, r->bound))
        return "the bound does not follow from the counts";
    if (fault) return fault;
    if ((all || r->radius > 0) && !sf_evidence_grants(e, r->q_radius))
        return "the radius is not certified by the counts";
    if (!all && sf_evidence_certifies(e, r->q_next + more)) return "the counts certify a larger radius";
    if (config->deletes && (fault = fault_of_edits(r, config, e))) return fault;
    if (r->certified != (r->radius >= config->radius && (!config->deletes || r->edits >= config->options.edits)))
        return "certified does not follow from the radius";
    for (size_t i = 0; i < SAFER_RADII; i++)
        if (r->radius >= sf_reported_radii[i] ? !sf_evidence_grants(e, r->q_at[i])
                                              : sf_evidence_certifies(e, r->q_at[i] + more))
            return "the radius does not agree with q_at";
    return NULL;
}

/* Whether the vote for the prediction ends where the record says. It is given up where it is hopeless, but not
 * while the class at hand is certified: the label or, where the record is about the prediction, the class that led
 * then, which need not be the one that led in the end. */
static int vote_ends(const sf_record *r, const sf_config *config, uint64_t *votes)
{
    const int about_prediction = r->label < 0 || config->unlabelled, insisted = r->radius > 0 || about_prediction;
    if (!(r->abstained && r->radius > 0) && sf_vote_can_end(&config->rule, votes, r->vote_n, 0)) return 1;
    return insisted && sf_vote_can_end(&config->rule, votes, r->vote_n, 1);
}

/* What of the prediction does not follow from the vote that chose it, or NULL. `votes` has room for them. Format 1
 * does not have that vote, which was always of n0 draws. */
static const char *fault_of_vote(const sf_record *r, const sf_config *config, uint64_t *votes)
{
    if (!r->vote) return r->queries != r->n + config->n0 ? "queries are not n + n0" : NULL;
    if (take_votes(votes, r->vote, r->vote_n, config)) return "the votes for the prediction do not add up";
    if (r->vote_n > config->n0) return "more than n0 draws chose the prediction";
    if (!vote_ends(r, config, votes)) return "the vote for the prediction does not end with these votes";
    if (r->prediction != (int)sf_vote_leader(votes, config->classes))
        return "the prediction does not follow from the vote";
    if (r->abstained != !sf_vote_clear(votes, config->classes, config->options.alpha))
        return "abstained does not follow from the vote";
    return r->queries != r->n + r->vote_n ? "queries are not those of both votes" : NULL;
}

/* The same for an exact record: most weight, and a clear answer where no other class has as much. */
static const char *fault_of_weights(const sf_record *r, const sf_tally *tally)
{
    size_t winner = 0, equals = 0;
    for (size_t k = 1; k < tally->classes; k++)
        if (tally->votes[k] > tally->votes[winner]) winner = k;
    for (size_t k = 0; k < tally->classes; k++) equals += tally->votes[k] == tally->votes[winner];
    if (r->prediction != (int)winner) return "the prediction does not follow from the weights";
    return r->abstained != (equals > 1) ? "abstained does not follow from the weights" : NULL;
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
    const int wrong = r->exact ? take_weights(&tally, r, config) : take_votes(votes, r->counts, r->n, config);
    *fault = wrong ? "the counts do not add up" : fault_of_counts(r, config);
    if (!*fault) *fault = fault_of_radius(r, config, &evidence);
    if (!*fault) *fault = r->exact ? fault_of_weights(r, &tally) : fault_of_vote(r, config, votes);
done:
    free(votes);
    sf_tally_free(&tally);
    return status;
}

/* Whether a margin can be that of a radius, as far as the reported radii tell: it falls as the radius rises. */
static int margin_fits(const sf_record *r, double margin, size_t radius)
{
    for (size_t i = 0; i < SAFER_RADII; i++)
        if ((sf_reported_radii[i] <= radius && r->margin_at[i] < margin) ||
            (sf_reported_radii[i] >= radius && r->margin_at[i] > margin))
            return 0;
    return 1;
}

/* What of the margins by radius does not follow from the rest of a record, or NULL. */
static const char *fault_of_curve(const sf_record *r, const sf_config *config)
{
    const int all = r->radius == SAFER_ALL;
    if (r->margin_at[SAFER_RADII - 1] != r->margin) return "margin_at does not end with the least of the margins";
    for (size_t i = 0; i < SAFER_RADII; i++)
        if (sf_reported_radii[i] >= r->visible && r->margin_at[i] != r->margin)
            return "margin_at goes on where the slots end";
    if (all != (r->margin > 0)) return "the radius does not follow from the margins";
    if (!all && r->radius > 0 && r->radius >= r->visible) return "a radius beyond the number of slots";
    if (all ? r->margin_radius != r->margin || r->margin_next != r->margin
            : !margin_fits(r, r->margin_next, r->radius + 1) ||
                  (r->radius > 0 ? !margin_fits(r, r->margin_radius, r->radius) : r->margin_radius < r->margin_at[0]))
        return "margin_radius or margin_next is not that of the radius";
    if (!all && ((r->radius > 0 && !(r->margin_radius > 0)) || r->margin_next > 0))
        return "the radius does not follow from the margins";
    if (r->margin_radius > 0 && r->base != r->target) return "the margins contradict the model's answer";
    return r->certified != (r->radius >= config->radius) ? "certified does not follow from the radius" : NULL;
}

/* The same for a record of bounds. */
static const char *fault_of_margins(const sf_record *r, const sf_config *config)
{
    const int leads = r->margin > 0;
    if (!r->exact || r->queries != 0) return "bounds need no queries";
    if (r->prediction != r->base) return "the prediction is not the model's answer";
    if (r->target != right_target(r, config)) return "the certificate is about another class";
    if (config->additive) return fault_of_curve(r, config);
    if (r->radius != (leads ? SAFER_ALL : 0)) return "the radius does not follow from the margins";
    if (leads && r->base != r->target) return "the margins contradict the model's answer";
    return r->certified != leads ? "certified does not follow from the radius" : NULL;
}

safer_status sf_record_recheck(const sf_record *r, const sf_config *config, const char *path, size_t line,
                               safer_error *error)
{
    const char *fault = fault_of_sizes(r, config);
    safer_status status = SAFER_OK;
    if (!fault && config->method == SAFER_METHOD_IBP)
        fault = fault_of_margins(r, config);
    else if (!fault)
        status = recheck_votes(&fault, r, config, error);
    return fault ? sf_fail(error, SAFER_INPUT, "%s, line %zu: %s", path, line, fault) : status;
}
