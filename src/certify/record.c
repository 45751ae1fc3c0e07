/* Records of a run. */
#include "certify/record.h"

#include "base/hash.h"
#include "base/memory.h"
#include "stats/binomial.h"

#include <stdio.h>
#include <string.h>

enum { FORMAT = 1 };

static const char *const method_names[] = {[SAFER_ADAPTIVE] = "adaptive",
                                           [SAFER_BINOMIAL] = "binomial",
                                           [SAFER_HOEFFDING] = "hoeffding",
                                           [SAFER_IBP] = "ibp"};
enum { METHODS = sizeof method_names / sizeof method_names[0] };

const char *sf_method_name(safer_method method) { return method_names[method]; }

json_t *sf_radius_json(size_t radius)
{
    return radius == SAFER_ALL ? json_string("all") : json_integer((json_int_t)radius);
}

static int read_radius(const json_t *value, size_t *out)
{
    if (json_is_string(value) && strcmp(json_string_value(value), "all") == 0)
        *out = SAFER_ALL;
    else if (json_is_integer(value) && json_integer_value(value) >= 0)
        *out = (size_t)json_integer_value(value);
    else
        return -1;
    return 0;
}

json_t *sf_hex_json(uint64_t value) { return json_sprintf("%016llx", (unsigned long long)value); }

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

/* ----------------------------------------------------------- configuration */

static const char *const sampling_members[] = {"n", "n0", "delta", "delta_text", "family_wise", "alpha", "seed"};

json_t *sf_config_json(const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                       const safer_certify_options *o)
{
    json_t *labels = json_array(), *radii = json_array();
    for (size_t k = 0; k < model->classes; k++) json_array_append_new(labels, json_string(model->labels[k]));
    for (size_t r = 0; r < SAFER_RADII; r++) json_array_append_new(radii, sf_radius_json(sf_reported_radii[r]));
    size_t texts = safer_data_size(data);
    double delta = o->family_wise && texts ? o->delta / (double)texts : o->delta;
    json_t *config = json_pack(
        "{s:s, s:i, s:{s:s, s:o, s:s*}, s:{s:o, s:s}, s:{s:o, s:I}, s:o, s:s, s:I, s:I, s:f, s:f, s:b, s:f, s:o, s:o, s:b, s:I}",
        "safer", SAFER_VERSION, "format", FORMAT, "model", "arch", model->class->arch, "hash", sf_hex_json(model->hash),
        "arithmetic", model->arithmetic, "lexicon", "hash", sf_hex_json(sf_lexicon_hash(lexicon)), "kernel",
        lexicon->kernel_name, "data", "hash", sf_hex_json(safer_data_hash(data)), "texts", (json_int_t)texts, "labels",
        labels, "method", method_names[o->method], "n", (json_int_t)o->n, "n0", (json_int_t)o->n0, "delta", o->delta,
        "delta_text", delta, "family_wise", o->family_wise != 0, "alpha", o->alpha, "radius", sf_radius_json(o->radius),
        "radii", radii, "unlabelled", o->unlabelled != 0, "seed", (json_int_t)o->seed);
    if (sf_model_is_random(model)) json_object_set_new(json_object_get(config, "model"), "random", json_true());
    /* Nothing is drawn: what speaks of draws would only mislead. */
    for (size_t i = 0; o->method == SAFER_IBP && i < sizeof sampling_members / sizeof sampling_members[0]; i++)
        json_object_del(config, sampling_members[i]);
    return config;
}

/* The part of a configuration that samples need. */
static int read_sampling(safer_certify_options *o, double *delta_text, json_t *config)
{
    json_int_t n = 0, n0 = 0, seed = 0;
    if (json_unpack(config, "{s:I, s:I, s:F, s:F, s:b, s:F, s:I}", "n", &n, "n0", &n0, "delta", &o->delta, "delta_text",
                    delta_text, "family_wise", &o->family_wise, "alpha", &o->alpha, "seed", &seed) != 0 ||
        n < 1 || n0 < 1)
        return -1;
    o->n = (uint64_t)n;
    o->n0 = (uint64_t)n0;
    o->seed = (uint64_t)seed;
    return 0;
}

safer_status sf_config_read(sf_config *out, json_t *config, const char *name, safer_error *error)
{
    const char *method = "";
    int format = 0, unlabelled = 0, m = 0;
    json_int_t texts = 0;
    json_t *labels = NULL, *radius = NULL;
    *out = (sf_config){.options = safer_certify_options_default()};
    safer_certify_options *o = &out->options;
    if (json_unpack(config, "{s:i, s:{s:I}, s:o, s:s, s:o, s:b}", "format", &format, "data", "texts", &texts, "labels",
                    &labels, "method", &method, "radius", &radius, "unlabelled", &unlabelled) != 0)
        return sf_fail(error, SAFER_INPUT, "%s, line 1: not the configuration of a run", name);
    const char *arch = json_string_value(json_object_get(json_object_get(config, "model"), "arch"));
    out->remote = arch && (strcmp(arch, "exec") == 0 || strcmp(arch, "http") == 0 || strcmp(arch, "callback") == 0);
    out->random = json_is_true(json_object_get(json_object_get(config, "model"), "random"));
    if (format != FORMAT)
        return sf_fail(error, SAFER_INPUT, "%s, line 1: format %d, this program reads %d", name, format, FORMAT);
    if (read_radius(radius, &o->radius)) return sf_fail(error, SAFER_INPUT, "%s, line 1: a radius that is none", name);
    while (m < METHODS && strcmp(method, method_names[m]) != 0) m++;
    o->method = (safer_method)m;
    o->unlabelled = unlabelled;
    out->delta = o->delta;
    out->labels = labels;
    out->classes = json_array_size(labels);
    if (m == METHODS || out->classes < 2 || texts < 0 ||
        (o->method != SAFER_IBP && read_sampling(o, &out->delta, config)))
        return sf_fail(error, SAFER_INPUT, "%s, line 1: not the configuration of a run", name);
    out->method = o->method;
    out->n = o->n;
    out->n0 = o->n0;
    out->radius = o->radius;
    out->texts = (size_t)texts;
    out->unlabelled = unlabelled;
    safer_error inner = {0};
    safer_certify_options text_options = *o;
    text_options.delta = out->delta;
    if (sf_certify_check(o, NULL, NULL, &inner) != SAFER_OK ||
        sf_certify_check(&text_options, NULL, NULL, &inner) != SAFER_OK)
        return sf_fail(error, SAFER_INPUT, "%s, line 1: %s", name, inner.message);
    double expected = o->family_wise && texts ? o->delta / (double)texts : o->delta;
    if (out->delta != expected)
        return sf_fail(error, SAFER_INPUT, "%s, line 1: delta_text does not follow from delta", name);
    return SAFER_OK;
}

/* ----------------------------------------------------------------- records */

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
    json_object_set_new(record, "row", json_integer((json_int_t)row));
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

static char *dump(const json_t *object) { return json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)); }

char *sf_record_line(json_t *object, double seconds, uint64_t seed, size_t *length)
{
    char *sealed = object ? dump(object) : NULL, *line = NULL;
    if (!sealed) return NULL;
    uint64_t check = sf_hash(sealed, strlen(sealed), seed);
    free(sealed);
    if (seconds >= 0) json_object_set_new(object, "seconds", json_real(seconds));
    json_object_set_new(object, "check", sf_hex_json(check));
    char *text = dump(object);
    if (!text) return NULL;
    *length = strlen(text) + 1;
    line = sf_realloc(text, *length + 1, 1);
    if (!line) {
        free(text);
        return NULL;
    }
    line[*length - 1] = '\n';
    line[*length] = '\0';
    return line;
}

/* Where `word` stands last, or NULL. */
static const char *find_last(const char *bytes, size_t length, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = length < n ? 0 : length - n + 1; i-- > 0;)
        if (memcmp(bytes + i, word, n) == 0) return bytes + i;
    return NULL;
}

safer_status sf_record_unseal(json_t *object, const char *bytes, size_t length, uint64_t seed, uint64_t *check,
                              const char *name, size_t line, safer_error *error)
{
    const char *seconds = find_last(bytes, length, ",\"seconds\":"), *seal = find_last(bytes, length, ",\"check\":");
    const char *stored = json_string_value(json_object_get(object, "check"));
    const char *end = seconds && seal && seconds < seal ? seconds : seal;
    char expected[17] = "";
    if (end) {
        char *sealed = sf_strndup(bytes, (size_t)(end - bytes) + 1);
        if (!sealed) return sf_fail_memory(error);
        sealed[end - bytes] = '}';
        *check = sf_hash(sealed, (size_t)(end - bytes) + 1, seed);
        free(sealed);
        snprintf(expected, sizeof expected, "%016llx", (unsigned long long)*check);
    }
    if (!end || !stored || strcmp(stored, expected) != 0)
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: the check does not match: the line was changed", name, line);
    json_object_del(object, "check");
    json_object_del(object, "seconds");
    return SAFER_OK;
}

/* ---------------------------------------------------------------- checking */

static int label_index(const sf_config *config, const json_t *value, int *out)
{
    *out = -1;
    if (json_is_null(value)) return 0;
    for (size_t k = 0; k < config->classes; k++)
        if (json_is_string(value) &&
            strcmp(json_string_value(value), json_string_value(json_array_get(config->labels, k))) == 0)
            *out = (int)k;
    return *out < 0 ? -1 : 0;
}

/* What a record says, as numbers. */
typedef struct parsed {
    int label, prediction, target, exact, certified;
    json_int_t n, queries, slots;
    double bound, q, q_at[SAFER_RADII], q_radius, q_next;
    size_t radius;
} parsed;

static int parse_record(parsed *p, const json_t *record, const sf_config *config)
{
    json_t *label, *prediction, *target, *radius, *q_at;
    if (json_unpack((json_t *)(uintptr_t)record,
                    "{s:o, s:o, s:o, s:b, s:I, s:F, s:F, s:o, s:F, s:F, s:b, s:o, s:I, s:I}", "label", &label,
                    "prediction", &prediction, "target", &target, "exact", &p->exact, "n", &p->n, "bound", &p->bound,
                    "q", &p->q, "q_at", &q_at, "q_radius", &p->q_radius, "q_next", &p->q_next, "certified",
                    &p->certified, "radius", &radius, "queries", &p->queries, "slots", &p->slots) != 0)
        return -1;
    if (label_index(config, label, &p->label) || label_index(config, prediction, &p->prediction) ||
        label_index(config, target, &p->target) || p->target < 0 || read_radius(radius, &p->radius) ||
        json_array_size(q_at) != SAFER_RADII || p->n < 0 || p->slots < 0)
        return -1;
    for (size_t r = 0; r < SAFER_RADII; r++) {
        const json_t *q = json_array_get(q_at, r);
        if (!json_is_number(q)) return -1;
        p->q_at[r] = json_number_value(q);
        if (!(p->q_at[r] >= 0 && p->q_at[r] <= 1) || (r && p->q_at[r] < p->q_at[r - 1])) return -1;
    }
    return p->q_radius >= 0 && p->q_next >= p->q_radius && p->q_next <= 1 ? 0 : -1;
}

/* The counts of a record, as votes or as exact weights. */
static int parse_counts(uint64_t *votes, sf_tally *tally, const parsed *p, const json_t *record,
                        const sf_config *config)
{
    json_t *counts = json_object_get(record, "counts");
    sf_weight total = 0;
    uint64_t sum = 0;
    if (json_object_size(counts) != config->classes) return -1;
    for (size_t k = 0; k < config->classes; k++) {
        json_t *count = json_object_get(counts, json_string_value(json_array_get(config->labels, k)));
        sf_weight weight;
        if (p->exact) {
            if (!count || read_weight(count, &weight) || sf_tally_add(tally, (int)k, weight)) return -1;
        } else {
            if (!json_is_integer(count) || json_integer_value(count) < 0 || json_integer_value(count) > p->n) return -1;
            votes[k] = (uint64_t)json_integer_value(count);
            sum += votes[k];
        }
    }
    /* What is missing is answers that were no label; models made here always answer. */
    if (!p->exact) return sum == (uint64_t)p->n || (config->remote && sum < (uint64_t)p->n) ? 0 : -1;
    if (read_weight(json_object_get(record, "total"), &total) || total == 0 || total < tally->total) return -1;
    if (config->remote && total > tally->total) return sf_tally_add(tally, SF_NO_LABEL, total - tally->total);
    return total == tally->total ? 0 : -1;
}

safer_status sf_record_in_place(const json_t *record, const char *name, size_t line, safer_error *error)
{
    const json_t *row = json_object_get(record, "row");
    if (!json_is_integer(row)) return sf_fail(error, SAFER_INPUT, "%s, line %zu: not a record", name, line);
    if (json_integer_value(row) == (json_int_t)line - 1) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT,
                   "%s, line %zu: the record of row %lld stands here: lines were moved, repeated or removed", name,
                   line, (long long)json_integer_value(row));
}

/* The same for a record of bounds: NULL when it holds. */
static const char *fault_of_margins(const json_t *record, const sf_config *config)
{
    int label, prediction, base, target, exact, certified, leads = 1;
    json_int_t queries;
    size_t radius;
    json_t *labels[4], *margins, *radius_json_value;
    if (json_unpack((json_t *)(uintptr_t)record, "{s:o, s:o, s:o, s:o, s:b, s:o, s:b, s:o, s:I}", "label", &labels[0],
                    "prediction", &labels[1], "base", &labels[2], "target", &labels[3], "exact", &exact, "margins",
                    &margins, "certified", &certified, "radius", &radius_json_value, "queries", &queries) != 0 ||
        label_index(config, labels[0], &label) || label_index(config, labels[1], &prediction) ||
        label_index(config, labels[2], &base) || label_index(config, labels[3], &target) || target < 0 ||
        read_radius(radius_json_value, &radius) || json_object_size(margins) != config->classes - 1)
        return "not a record";
    for (size_t k = 0; k < config->classes; k++) {
        const json_t *margin = json_object_get(margins, json_string_value(json_array_get(config->labels, k)));
        if ((int)k == target ? margin != NULL : !json_is_real(margin)) return "not a record";
        leads &= (int)k == target || json_real_value(margin) > 0;
    }
    if (prediction != base) return "the prediction is not the model's answer";
    if (target != (label >= 0 && !config->unlabelled ? label : prediction))
        return "the certificate speaks of another class";
    if (radius != (leads ? SAFER_ALL : 0)) return "the radius does not follow from the margins";
    if (leads && base != target) return "the margins contradict the model's answer";
    if (certified != leads) return "certified does not follow from the radius";
    return !exact || queries != 0 ? "bounds need no queries" : NULL;
}

safer_status sf_record_recheck(const json_t *record, const sf_config *config, const char *name, size_t line,
                               safer_error *error)
{
    parsed p;
    if (config->method == SAFER_IBP) {
        const char *wrong = fault_of_margins(record, config);
        return wrong ? sf_fail(error, SAFER_INPUT, "%s, line %zu: %s", name, line, wrong) : SAFER_OK;
    }
    sf_tally tally = {0};
    uint64_t *votes = NULL;
    safer_status status = SAFER_OK;
    const char *fault = NULL;
    if (parse_record(&p, record, config)) return sf_fail(error, SAFER_INPUT, "%s, line %zu: not a record", name, line);
    votes = sf_calloc(config->classes, sizeof *votes);
    if (!votes) return sf_fail_memory(error);
    SF_TRY(sf_tally_new(&tally, config->classes, error));
    sf_evidence e = {.method = config->method,
                     .delta = config->delta,
                     .classes = config->classes,
                     .target = (size_t)p.target,
                     .exact = p.exact,
                     .n = (uint64_t)p.n,
                     .votes = votes,
                     .tally = &tally};
    int all = p.radius == SAFER_ALL;
    if (parse_counts(votes, &tally, &p, record, config))
        fault = "the counts do not add up";
    else if (p.exact && config->method != SAFER_ADAPTIVE)
        fault = "this method never enumerates";
    else if (p.exact && config->random)
        fault = "a model that answers at random has no exact certificate";
    else if (p.exact ? p.n != 0
                     : (uint64_t)p.n > config->n || (config->method != SAFER_ADAPTIVE && (uint64_t)p.n != config->n))
        fault = "n does not fit the configuration";
    else if (p.target != (p.label >= 0 && !config->unlabelled ? p.label : p.prediction))
        fault = "the certificate speaks of another class";
    else if (sf_evidence_bound(&e) != p.bound)
        fault = "the bound does not follow from the counts";
    else if (p.q != p.q_at[SAFER_RADII - 1])
        fault = "q is not that of all words";
    else if (!all && p.radius > 0 && p.radius >= (size_t)p.slots)
        fault = "a radius beyond the number of slots";
    else if (all && p.q_radius != p.q_at[SAFER_RADII - 1])
        fault = "q_radius is not that of all words";
    else if ((all || p.radius > 0) && !sf_evidence_certifies(&e, p.q_radius))
        fault = "the radius is not certified by the counts";
    else if (!all && sf_evidence_certifies(&e, p.q_next))
        fault = "the counts certify a larger radius";
    else if (p.certified != (p.radius >= config->radius))
        fault = "certified does not follow from the radius";
    else if (!p.exact && (uint64_t)p.queries != (uint64_t)p.n + config->n0)
        fault = "queries are not n + n0";
    for (size_t r = 0; r < SAFER_RADII && !fault; r++)
        if (sf_evidence_certifies(&e, p.q_at[r]) != (p.radius >= sf_reported_radii[r]))
            fault = "the radius does not agree with q_at";
    if (fault) status = sf_fail(error, SAFER_INPUT, "%s, line %zu: %s", name, line, fault);
done:
    free(votes);
    sf_tally_free(&tally);
    return status;
}

safer_status sf_summary_add(safer_summary *s, const json_t *record, const char *name, size_t line, safer_error *error)
{
    int abstained, exact, certified;
    json_int_t slots, queries;
    json_t *label, *prediction, *base, *radius_value;
    size_t radius;
    if (json_unpack((json_t *)(uintptr_t)record, "{s:o, s:o, s:o, s:b, s:b, s:b, s:I, s:I, s:o}", "label", &label,
                    "prediction", &prediction, "base", &base, "abstained", &abstained, "exact", &exact, "certified",
                    &certified, "slots", &slots, "queries", &queries, "radius", &radius_value) != 0 ||
        read_radius(radius_value, &radius))
        return sf_fail(error, SAFER_INPUT, "%s, line %zu: not a record", name, line);
    s->texts++;
    if (json_is_string(label)) {
        s->labelled++;
        s->base_correct += (size_t)json_equal(label, base);
        s->smoothed_correct += (size_t)json_equal(label, prediction);
    }
    s->certified += (size_t)certified;
    for (size_t r = 0; r < SAFER_RADII; r++) s->certified_at[r] += radius >= sf_reported_radii[r];
    s->abstained += (size_t)abstained;
    s->exact += (size_t)exact;
    s->without_slots += slots == 0;
    s->queries += (uint64_t)queries;
    s->base_queries++;
    return SAFER_OK;
}
