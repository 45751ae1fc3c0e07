/* The configuration of a run. */
#include "certify/config.h"

#include "data/data.h"
#include "run/members.h"

#include <string.h>

enum { FORMAT = 1 };

json_t *sf_radius_json(size_t radius)
{
    return radius == SAFER_ALL ? json_string("all") : json_integer((json_int_t)radius);
}

/* ------------------------------------------------------------------- writing */

static const char *const sampling_members[] = {"n", "n0", "delta", "delta_text", "family_wise", "alpha", "seed"};

/* The delta of one text. */
static double delta_of_text(const safer_certify_options *o, size_t texts)
{
    return o->family_wise && texts ? o->delta / (double)texts : o->delta;
}

json_t *sf_config_json(const safer_model *model, const safer_lexicon *lexicon, const safer_data *data,
                       const safer_certify_options *o)
{
    json_t *labels = json_array(), *radii = json_array();
    for (size_t k = 0; k < model->classes; k++) json_array_append_new(labels, json_string(model->labels[k]));
    for (size_t r = 0; r < SAFER_RADII; r++) json_array_append_new(radii, sf_radius_json(sf_reported_radii[r]));
    const size_t texts = safer_data_size(data);
    json_t *config = json_pack("{s:s, s:i, s:{s:s, s:o, s:s*}, s:{s:o, s:s}, s:{s:o, s:I}, s:o, s:s, s:I, s:I,"
                               " s:f, s:f, s:b, s:f, s:o, s:o, s:b, s:I}",
                               "safer", SAFER_VERSION, "format", FORMAT, "model", "arch", model->class->arch, "hash",
                               sf_hex_json(model->hash), "arithmetic", model->arithmetic, "lexicon", "hash",
                               sf_hex_json(sf_lexicon_hash(lexicon)), "kernel", lexicon->kernel_name, "data", "hash",
                               sf_hex_json(sf_data_hash(data)), "texts", (json_int_t)texts, "labels", labels,
                               "method", safer_method_name(o->method), "n", (json_int_t)o->n, "n0", (json_int_t)o->n0,
                               "delta", o->delta, "delta_text", delta_of_text(o, texts), "family_wise",
                               o->family_wise != 0, "alpha", o->alpha, "radius", sf_radius_json(o->radius), "radii",
                               radii, "unlabelled", o->unlabelled != 0, "seed", (json_int_t)o->seed);
    json_t *who = json_object_get(config, "model");
    if (model->name) json_object_set_new(who, "name", json_string(model->name));
    if (*sf_model_probe_digest(model)) json_object_set_new(who, "probe", json_string(sf_model_probe_digest(model)));
    if (sf_model_is_random(model)) json_object_set_new(who, "random", json_true());
    if (model->function) json_object_set_new(who, "function", json_true());
    /* Nothing is drawn: members about draws would only mislead. */
    for (size_t i = 0; o->method == SAFER_METHOD_IBP && i < sizeof sampling_members / sizeof sampling_members[0]; i++)
        json_object_del(config, sampling_members[i]);
    return config;
}

/* ------------------------------------------------------------------- reading */

/* The part of a configuration that samples need. */
static void read_sampling(sf_config *out, sf_members *m)
{
    safer_certify_options *o = &out->options;
    o->n = (uint64_t)sf_member_integer(m, "n", 1);
    o->n0 = (uint64_t)sf_member_integer(m, "n0", 1);
    o->delta = sf_member_number(m, "delta");
    out->delta = sf_member_number(m, "delta_text");
    o->family_wise = sf_member_flag(m, "family_wise");
    o->alpha = sf_member_number(m, "alpha");
    o->seed = (uint64_t)sf_member_integer(m, "seed", INT64_MIN);
}

static void read_labels(sf_config *out, sf_members *m)
{
    static const char must[] = "a list of two names or more";
    out->labels = sf_member_array(m, "labels");
    out->classes = json_array_size(out->labels);
    if (out->classes < 2) sf_member_refuse(m, "labels", must);
    for (size_t k = 0; k < out->classes; k++)
        if (!json_is_string(json_array_get(out->labels, k))) sf_member_refuse(m, "labels", must);
}

/* How many texts the data has. */
static size_t read_texts(sf_members *m)
{
    sf_members data = {.object = sf_member_object(m, "data")};
    if (m->wrong) return 0;
    const uint64_t texts = sf_member_count(&data, "texts");
    if (data.wrong) sf_member_refuse(m, "data", "an object with the number of texts");
    return (size_t)texts;
}

static safer_method read_method(sf_members *m)
{
    safer_method method = SAFER_METHOD_ADAPTIVE;
    const char *name = sf_member_string(m, "method");
    if (!name || safer_method_parse(&method, name, NULL) != SAFER_OK)
        sf_member_refuse(m, "method", "a method that this program knows");
    return method;
}

/* What is wrong with numbers that have the right types. */
static safer_status check_numbers(const sf_config *c, const char *path, safer_error *error)
{
    safer_error inner = {0};
    safer_certify_options text = c->options;
    text.delta = c->delta;
    if (sf_certify_check(&c->options, NULL, NULL, &inner) != SAFER_OK ||
        sf_certify_check(&text, NULL, NULL, &inner) != SAFER_OK)
        return sf_fail(error, SAFER_INPUT, "%s, line 1: %s", path, inner.message);
    if (c->delta != delta_of_text(&c->options, c->texts))
        return sf_fail(error, SAFER_INPUT, "%s, line 1: delta_text does not follow from delta", path);
    return SAFER_OK;
}

safer_status sf_config_read(sf_config *out, const json_t *config, const char *path, safer_error *error)
{
    safer_status status;
    sf_members m = {.object = config};
    const json_t *model = json_object_get(config, "model");
    const char *arch = json_string_value(json_object_get(model, "arch"));
    *out = (sf_config){.options = safer_certify_options_default()};
    safer_certify_options *o = &out->options;
    out->remote = arch && (strcmp(arch, "exec") == 0 || strcmp(arch, "http") == 0 || strcmp(arch, "callback") == 0);
    out->random = json_is_true(json_object_get(model, "random"));
    const json_int_t format = sf_member_integer(&m, "format", INT64_MIN);
    if (!m.wrong && format != FORMAT)
        return sf_fail(error, SAFER_INPUT, "%s, line 1: format %lld, this program reads %d", path, (long long)format,
                       FORMAT);
    out->texts = read_texts(&m);
    read_labels(out, &m);
    o->method = read_method(&m);
    o->radius = sf_member_radius(&m, "radius");
    o->unlabelled = sf_member_flag(&m, "unlabelled");
    out->delta = o->delta;
    if (o->method != SAFER_METHOD_IBP) read_sampling(out, &m);
    SF_TRY(sf_members_check(&m, "the configuration of a run", path, 1, error));
    out->method = o->method;
    out->n = o->n;
    out->n0 = o->n0;
    out->radius = o->radius;
    out->unlabelled = o->unlabelled;
    status = check_numbers(out, path, error);
done:
    return status;
}

const char *sf_config_label(const sf_config *config, int label)
{
    return label < 0 ? "" : json_string_value(json_array_get(config->labels, (size_t)label));
}
