/* The configuration of a run. */
#include "certify/config.h"

#include "base/memory.h"
#include "certify/evidence.h"
#include "run/members.h"

#include <string.h>

/* ------------------------------------------------------------------- writing */

json_t *sf_radius_json(size_t radius)
{
    return radius == SAFER_ALL ? json_string("all") : json_integer((json_int_t)radius);
}

json_t *sf_radius_text(size_t radius) { return radius == SAFER_ALL ? json_string("all") : json_sprintf("%zu", radius); }

static json_t *radii_json(int format)
{
    json_t *radii = json_array();
    for (size_t r = 0; r < SAFER_RADII; r++)
        sf_item_add(&radii, (format < 2 ? sf_radius_json : sf_radius_text)(sf_reported_radii[r]));
    return radii;
}

/* The delta of one text. */
static double delta_of_text(const safer_certify_options *o, size_t texts)
{
    return o->family_wise && texts ? o->delta / (double)texts : o->delta;
}

json_t *sf_config_json(const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                       const safer_certify_options *o)
{
    const int samples = sf_method_samples(o->method); /* else members about samples would only mislead */
    json_t *config = json_object();
    sf_member_add(&config, "safer", json_string(SAFER_VERSION));
    sf_member_add(&config, "format", json_integer(SF_FORMAT));
    sf_origin_add(&config, SF_FORMAT, model, lexicon, data);
    sf_member_add(&config, "method", json_string(safer_method_name(o->method)));
    if (samples) {
        sf_member_add(&config, "n", json_integer((json_int_t)o->n));
        sf_member_add(&config, "n0", json_integer((json_int_t)o->n0));
        sf_member_add(&config, "delta", json_real(o->delta));
        sf_member_add(&config, "delta_text", json_real(delta_of_text(o, data ? safer_data_size(data) : 0)));
        sf_member_add(&config, "family_wise", json_boolean(o->family_wise));
        sf_member_add(&config, "alpha", json_real(o->alpha));
    }
    sf_member_add(&config, "radius", sf_radius_text(o->radius));
    sf_member_add(&config, "radii", radii_json(SF_FORMAT));
    if (o->method == SAFER_METHOD_IBP && sf_ibp_adds(model)) sf_member_add(&config, "additive", json_true());
    if (sf_deletes(o->deletion)) {
        sf_member_add(&config, sf_deletion_member(o->deletion), sf_deletion_json(o->deletion));
        sf_member_add(&config, "edits", json_integer((json_int_t)o->edits));
        sf_member_add(&config, "edit_kind", json_string(safer_edit_kind_name(o->edit_kind)));
    }
    sf_member_add(&config, "unlabelled", json_boolean(o->unlabelled));
    if (o->method != SAFER_METHOD_IBP) sf_member_add(&config, "seed", json_integer((json_int_t)o->seed));
    sf_shard_add(&config, (sf_shard){o->shard, o->shards});
    return config;
}

/* ------------------------------------------------------------------- reading */

static safer_method read_method(sf_members *m)
{
    safer_method method = SAFER_METHOD_ADAPTIVE;
    const char *name = sf_member_string(m, "method");
    if (!name || safer_method_parse(&method, name, NULL) != SAFER_OK)
        sf_member_refuse(m, "method", "a method that this program knows");
    return method;
}

/* The part of a configuration that samples need. */
static void read_sampling(sf_config *out, sf_members *m)
{
    safer_certify_options *o = &out->options;
    o->n = (uint64_t)sf_member_integer(m, "n", 1);
    o->n0 = (uint64_t)sf_member_integer(m, "n0", 1);
    o->delta = sf_member_real(m, "delta");
    out->delta = sf_member_real(m, "delta_text");
    o->family_wise = sf_member_flag(m, "family_wise");
    o->alpha = sf_member_real(m, "alpha");
}

/* Where draws delete tokens: how often, and what is certified; or how many groups vote. */
static void read_edits(sf_config *out, sf_members *m)
{
    safer_certify_options *o = &out->options;
    const int groups = o->method == SAFER_METHOD_GROUPS;
    const json_t *deletion = groups ? NULL : sf_member_optional(m, "delete");
    if (!deletion && !groups) return;
    if (groups)
        o->deletion.groups = (size_t)sf_member_integer(m, "groups", 1);
    else if (sf_deletion_read(&o->deletion, deletion))
        sf_member_refuse(m, "delete", "a fraction of 2^32, above 0 and below 1, or keep:K");
    o->edits = (size_t)sf_member_integer(m, "edits", 1);
    const char *kind = sf_member_string(m, "edit_kind");
    if (kind && safer_edit_kind_parse(&o->edit_kind, kind, NULL) != SAFER_OK)
        sf_member_refuse(m, "edit_kind", "any, replace, insert or delete");
    out->deletes = sf_deletes(o->deletion);
}

/* The radii of q_at, which are always the same. */
static safer_status read_radii(sf_members *m, int format, safer_error *error)
{
    const json_t *radii = sf_member_array(m, "radii");
    json_t *expected = radii_json(format);
    if (!expected) return sf_fail_memory(error);
    if (radii && !json_equal(radii, expected)) sf_member_refuse(m, "radii", "those that are always reported");
    json_decref(expected);
    return SAFER_OK;
}

/* Bounds that say something at every radius. Earlier runs are about all words alone, whatever the model. */
static void read_additive(sf_config *out, sf_members *m)
{
    const json_t *additive = sf_member_optional(m, "additive");
    if (additive && !json_is_true(additive)) sf_member_refuse(m, "additive", "true");
    out->additive = additive != NULL;
}

/* What is wrong with numbers that have the right types. */
static safer_status check_numbers(const sf_config *c, const char *path, safer_error *error)
{
    safer_error inner = {0};
    safer_certify_options text = c->options;
    text.delta = c->delta;
    if (sf_certify_check(&c->options, NULL, NULL, &inner) != SAFER_OK ||
        sf_certify_check(&text, NULL, NULL, &inner) != SAFER_OK) {
        for (char *at = inner.message; *at; at++) /* members of the file, not of the caller's options */
            if (*at == '`') *at = '"';
        return sf_fail(error, SAFER_INPUT, "%s, line 1: %s", path, inner.message);
    }
    if (c->delta != delta_of_text(&c->options, c->texts))
        return sf_fail(error, SAFER_INPUT, "%s, line 1: delta_text does not follow from delta", path);
    return SAFER_OK;
}

safer_status sf_config_read(sf_config *out, const json_t *config, const char *path, safer_error *error)
{
    safer_status status;
    sf_members m = {.object = config};
    *out = (sf_config){.options = safer_certify_options_default()};
    safer_certify_options *o = &out->options;
    const json_int_t format = sf_member_integer(&m, "format", INT64_MIN);
    if (!m.wrong && (format < 1 || format > SF_FORMAT))
        return sf_fail(error, SAFER_INPUT, "%s, line 1: format %lld, this program reads 1 to %d", path,
                       (long long)format, SF_FORMAT);
    m.format = out->format = (int)format;
    (void)sf_member_string(&m, "safer");
    const sf_origin origin = sf_origin_read(&m);
    out->texts = origin.texts;
    out->classes = origin.classes;
    out->labels = origin.labels;
    out->remote = origin.remote;
    out->random = origin.random;
    out->whole = origin.whole;
    out->folded = origin.folded;
    o->method = read_method(&m);
    o->radius = sf_member_radius(&m, "radius");
    o->unlabelled = sf_member_flag(&m, "unlabelled");
    out->delta = o->delta;
    if (sf_method_samples(o->method)) read_sampling(out, &m);
    if (o->method != SAFER_METHOD_IBP) o->seed = (uint64_t)sf_member_integer(&m, "seed", INT64_MIN);
    if (o->method != SAFER_METHOD_IBP && out->format >= 2) read_edits(out, &m);
    SF_TRY(read_radii(&m, out->format, error));
    if (o->method == SAFER_METHOD_IBP && out->format >= 2) read_additive(out, &m);
    out->date = out->format < 2 ? NULL
                                : json_string_value(sf_member_optional(&m, "date")); /* sealed.h saw to its form */
    if (out->format >= 2 && sf_member_optional(&m, "shard")) SF_TRY(sf_shard_read(&out->shard, config, path, error));
    SF_TRY(sf_members_check(&m, "the configuration of a run", path, 1, error));
    out->method = o->method;
    out->n = o->n;
    out->n0 = o->n0;
    out->radius = o->radius;
    out->unlabelled = o->unlabelled;
    SF_TRY(check_numbers(out, path, error));
    if (sf_method_samples(o->method)) out->rule = sf_vote_rule_of(out->classes, o->alpha, o->n0);
done:
    return status;
}

const char *sf_config_label(const sf_config *config, int label)
{
    return label < 0 ? "" : json_string_value(json_array_get(config->labels, (size_t)label));
}

safer_status sf_config_map_labels(int **out, const sf_config *config, const safer_data *data, const char *path,
                                  safer_error *error)
{
    const size_t count = safer_data_label_count(data);
    int *classes = sf_alloc(count, sizeof *classes);
    if (!classes) return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++) {
        classes[i] = -1;
        for (size_t k = 0; k < config->classes && classes[i] < 0; k++)
            if (strcmp(safer_data_label(data, i), sf_config_label(config, (int)k)) == 0) classes[i] = (int)k;
        if (classes[i] >= 0) continue;
        free(classes);
        return sf_fail(error, SAFER_INPUT, "%s: the data has the label \"%s\", which the run does not know", path,
                       safer_data_label(data, i));
    }
    *out = classes;
    return SAFER_OK;
}
