/* The settings of a `bert` model as JSON: the metadata "config" of its file (bert_file.c), and what every
 * configuration, this one or HuggingFace's (bert_config.c), must keep to. */
#include "base/json.h"
#include "model/bert_names.h"

#include <stdio.h>
#include <string.h>

static const char *const pools[] = {[SF_POOL_CLS] = "cls", [SF_POOL_POOLER] = "pooler", [SF_POOL_MEAN] = "mean"};

/* gelu_new and its siblings are the same approximation by tanh. */
static const struct {
    const char *name;
    sf_activation activation;
    sf_encoder_activation dense; /* as a device, or the dense layer of a head, has it */
} activations[] = {
    {"gelu", SF_GELU, SF_ENCODER_GELU}, /* the first of each are written */
    {"gelu_new", SF_GELU_TANH, SF_ENCODER_GELU_TANH},
    {"relu", SF_RELU, SF_ENCODER_RELU},
    {"silu", SF_SILU, SF_ENCODER_SILU},
    {"tanh", SF_LINEAR, SF_ENCODER_TANH}, /* of the head alone */
    {"gelu_python", SF_GELU, SF_ENCODER_GELU},
    {"gelu_fast", SF_GELU_TANH, SF_ENCODER_GELU_TANH},
    {"gelu_pytorch_tanh", SF_GELU_TANH, SF_ENCODER_GELU_TANH},
    {"swish", SF_SILU, SF_ENCODER_SILU},
};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

/* ------------------------------------------------------------ configurations */

safer_status sf_bert_config_epsilon(float *out, sf_model_config config, const char *key, safer_error *error)
{
    const json_t *value = json_object_get(config.json, key);
    double x = json_real_value(value);
    if (!json_is_real(value) || !(x >= 1e-30 && x <= 1))
        return sf_fail(error, SAFER_INPUT, "%s: \"%s\"%s must be a number from 1e-30 to 1", config.file, key,
                       config.place);
    *out = (float)x;
    return SAFER_OK;
}

sf_encoder_activation sf_bert_activation(sf_activation activation)
{
    int i = 0;
    while (activations[i].activation != activation) i++;
    return activations[i].dense;
}

safer_status sf_bert_config_activation(sf_activation *out, sf_model_config config, const char *key, safer_error *error)
{
    const char *name = json_string_value(json_object_get(config.json, key));
    for (int i = 0; name && i < ACTIVATIONS; i++)
        if (strcmp(name, activations[i].name) == 0 && activations[i].activation != SF_LINEAR) {
            *out = activations[i].activation;
            return SAFER_OK;
        }
    return sf_fail(error, SAFER_INPUT,
                   "%s: \"%s\"%s is %s%.60s%s; gelu, gelu_new, gelu_pytorch_tanh, relu and silu are supported",
                   config.file, key, config.place, name ? "\"" : "", name ? name : "missing", name ? "\"" : "");
}

safer_status sf_bert_config_dense(sf_encoder_activation *out, sf_model_config config, const char *key,
                                  safer_error *error)
{
    const json_t *value = json_object_get(config.json, key);
    const char *name = json_string_value(value);
    if (!value || json_is_null(value)) return SAFER_OK;
    for (int i = 0; name && i < ACTIVATIONS; i++)
        if (strcmp(name, activations[i].name) == 0) {
            *out = activations[i].dense;
            return SAFER_OK;
        }
    return sf_fail(error, SAFER_INPUT, "%s: \"%s\"%s is %s%.60s%s; gelu, gelu_new, relu, silu and tanh are supported",
                   config.file, key, config.place, name ? "\"" : "", name ? name : "no text", name ? "\"" : "");
}

/* What a form must keep to, or NULL. */
static const char *fault_of(const sf_bert_shape *s)
{
    const sf_encoder_form *f = &s->form;
    const int parts = f->relative == SF_RELATIVE_PARTS, rotary = f->theta > 0;
    int local = 0;
    for (size_t i = 0; i < s->layers; i++) local = local || f->local[i];
    if (sf_bert_most_tokens(s) < 3) return "there are less than 3 positions for pieces";
    if (rotary && s->hidden / s->heads % 2) return "rotary positions need heads of an even size";
    if (local && (!f->window || (rotary && !(f->local_theta > 0)))) return "local layers need a window and angles";
    if (f->relative != SF_RELATIVE_NONE && (rotary || local)) return "relative positions exclude rotary and local ones";
    if (f->relative == SF_RELATIVE_BIAS && f->buckets < 32) return "there are less than 32 buckets of distances";
    if (parts && (!f->span || f->buckets == 1 || (f->buckets && f->span < f->buckets / 2 + 2)))
        return "the buckets of distances do not fit the farthest one";
    if (parts && (f->attention_plain || f->prenorm)) return "disentangled attention needs biases and norms behind it";
    if (f->shared && f->prenorm) return "shared layers need norms behind them";
    if (f->projected_first && !f->width) return "there is nothing to project";
    return NULL;
}

safer_status sf_bert_config_check(const sf_bert_shape *s, sf_model_config config, safer_error *error)
{
    if (s->hidden % s->heads)
        return sf_fail(error, SAFER_INPUT, "%s: a hidden size of %zu%s cannot be divided among %zu heads", config.file,
                       s->hidden, config.place, s->heads);
    const char *fault = fault_of(s);
    return fault ? sf_fail(error, SAFER_INPUT, "%s: %s%s", config.file, fault, config.place) : SAFER_OK;
}

/* ------------------------------------------------------------------- the form */

/* The members of a form that are whole numbers, and how large they may be. */
#define SIZE(name, most) \
    { \
#name, offsetof(sf_encoder_form, name), 0, most \
    }
#define FLAG(name) \
    { \
#name, offsetof(sf_encoder_form, name), 1, 1 \
    }
static const struct {
    const char *name;
    size_t offset;
    int flag;
    size_t most;
} members[] = {
    SIZE(width, SF_BERT_HIDDEN),
    FLAG(projected_first),
    FLAG(placeless),
    FLAG(padded),
    SIZE(pad, SF_BERT_POSITIONS - 1),
    FLAG(shared),
    FLAG(prenorm),
    FLAG(gated),
    FLAG(attention_plain),
    FLAG(inner_plain),
    FLAG(norm_plain),
    SIZE(buckets, SF_BERT_POSITIONS),
    SIZE(span, SF_BERT_POSITIONS),
    FLAG(place_keys),
    FLAG(place_queries),
    FLAG(places_shared),
    FLAG(places_normed),
    SIZE(window, SF_BERT_POSITIONS),
    FLAG(dense_mean),
    FLAG(dense_plain),
    FLAG(dense_norm),
};
#undef SIZE
#undef FLAG
enum { MEMBERS = sizeof members / sizeof *members };

static const char *const relatives[] =
    {[SF_RELATIVE_NONE] = "none", [SF_RELATIVE_BIAS] = "bias", [SF_RELATIVE_PARTS] = "parts"};

static size_t member_get(const sf_encoder_form *f, int i)
{
    const void *at = (const char *)f + members[i].offset;
    return members[i].flag ? (size_t)(*(const int *)at != 0) : *(const size_t *)at;
}

/* {"width":16,...}: what is not zero; nothing for BERT's. */
static int write_form(sf_buffer *out, const sf_bert_shape *s)
{
    const sf_encoder_form *f = &s->form;
    sf_buffer text = {0};
    int failed = 0, any = 0;
    for (int i = 0; i < MEMBERS; i++)
        if (member_get(f, i))
            failed = failed || sf_buffer_format(&text, ",\"%s\":%zu", members[i].name, member_get(f, i));
    if (f->relative != SF_RELATIVE_NONE)
        failed = failed || sf_buffer_format(&text, ",\"relative\":\"%s\"", relatives[f->relative]);
    const struct {
        const char *name;
        double value;
    } thetas[] = {{"theta", f->theta}, {"local_theta", f->local_theta}};
    for (int i = 0; i < 2; i++)
        if (thetas[i].value > 0) {
            json_t *value = json_real(thetas[i].value);
            failed = failed || sf_buffer_format(&text, ",\"%s\":", thetas[i].name) || sf_json_add(&text, value);
            json_decref(value);
        }
    for (size_t i = 0; i < s->layers; i++) any = any || f->local[i];
    failed = failed || (any && sf_buffer_add_string(&text, ",\"local\":\""));
    for (size_t i = 0; any && i < s->layers; i++) failed = failed || sf_buffer_add_byte(&text, f->local[i] ? '1' : '0');
    failed = failed || (any && sf_buffer_add_byte(&text, '"'));
    if (!failed && text.length)
        failed = sf_buffer_add_string(out, ",\"form\":{") || sf_buffer_add_string(out, text.bytes + 1) ||
                 sf_buffer_add_byte(out, '}');
    sf_buffer_free(&text);
    return failed;
}

static safer_status read_member(sf_encoder_form *f, sf_model_config c, const char *key, safer_error *error)
{
    for (int i = 0; i < MEMBERS; i++)
        if (strcmp(members[i].name, key) == 0) {
            size_t value;
            void *at = (char *)f + members[i].offset;
            const safer_status status = sf_model_config_number(&value, c, key, 0, members[i].most, error);
            if (status != SAFER_OK) return status;
            if (members[i].flag)
                *(int *)at = (int)value;
            else
                *(size_t *)at = value;
            return SAFER_OK;
        }
    return sf_fail(error, SAFER_INPUT, "%s: \"%.60s\"%s is a setting that this version does not know", c.file, key,
                   c.place);
}

static safer_status read_local(sf_bert_shape *s, sf_model_config c, const json_t *value, safer_error *error)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) != s->layers || strspn(text, "01") != s->layers)
        return sf_fail(error, SAFER_INPUT, "%s: \"local\"%s must be a 0 or 1 for every layer", c.file, c.place);
    for (size_t i = 0; i < s->layers; i++) s->form.local[i] = text[i] == '1';
    return SAFER_OK;
}

static safer_status read_form(sf_bert_shape *s, sf_model_config config, safer_error *error)
{
    safer_status status = SAFER_OK;
    json_t *form = json_object_get(config.json, "form"), *value;
    const char *key;
    const sf_model_config c = {form, config.file, " in \"form\" of the metadata \"config\""};
    if (form && !json_is_object(form))
        return sf_fail(error, SAFER_INPUT, "%s: \"form\"%s must be an object", config.file, config.place);
    json_object_foreach(form, key, value)
    {
        const double number = json_real_value(value);
        const char *text = json_string_value(value);
        if (strcmp(key, "local") == 0) {
            SF_TRY(read_local(s, c, value, error));
        } else if (strcmp(key, "relative") == 0) {
            for (int i = 0; text && i <= SF_RELATIVE_PARTS; i++)
                if (strcmp(text, relatives[i]) == 0) s->form.relative = (sf_encoder_relative)i;
            if (!text || strcmp(text, relatives[s->form.relative]) != 0)
                return sf_fail(error, SAFER_INPUT, "%s: \"relative\"%s must be \"bias\" or \"parts\"", c.file, c.place);
        } else if (strcmp(key, "theta") == 0 || strcmp(key, "local_theta") == 0) {
            if (!(number >= 1 && number <= 1e12))
                return sf_fail(error, SAFER_INPUT, "%s: \"%s\"%s must be a number from 1 to 1e12", c.file, key,
                               c.place);
            *(key[0] == 't' ? &s->form.theta : &s->form.local_theta) = number;
        } else {
            SF_TRY(read_member(&s->form, c, key, error));
        }
    }
done:
    return status;
}

/* -------------------------------------------------------------------- the file */

int sf_bert_shape_write(sf_buffer *out, const sf_bert_shape *s)
{
    const char *activation = "", *pooler = "";
    for (int i = ACTIVATIONS; i-- > 0;) {
        if (activations[i].activation == s->activation) activation = activations[i].name;
        if (activations[i].dense == s->pooler) pooler = activations[i].name;
    }
    json_t *epsilon = json_real((double)s->epsilon);
    int failed =
        sf_buffer_format(
            out,
            "{\"vocabulary\":%zu,\"positions\":%zu,\"types\":%zu,\"layers\":%zu,\"hidden\":%zu,\"heads\":%zu,"
            "\"inner\":%zu,\"activation\":\"%s\",\"pool\":\"%s\",\"pooler\":\"%s\",\"tokens\":%zu,\"epsilon\":",
            s->vocabulary, s->positions, s->types, s->layers, s->hidden, s->heads, s->inner, activation, pools[s->pool],
            pooler, s->tokens) ||
        sf_json_add(out, epsilon) || (s->ending && sf_buffer_add_string(out, ",\"truncation_side\":\"left\"")) ||
        write_form(out, s) || sf_buffer_add_byte(out, '}');
    json_decref(epsilon);
    return failed;
}

static safer_status config_pool(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    const char *value = json_string_value(json_object_get(c.json, "pool"));
    for (s->pool = SF_POOL_CLS; value && s->pool <= SF_POOL_MEAN; s->pool++)
        if (strcmp(value, pools[s->pool]) == 0) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s: \"pool\"%s must be \"cls\", \"pooler\" or \"mean\"", c.file, c.place);
}

static safer_status config_pooler(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    if (!json_is_string(json_object_get(c.json, "pooler")))
        return sf_fail(error, SAFER_INPUT,
                       "%s: \"pooler\"%s must be \"tanh\", \"relu\", \"gelu\", \"gelu_new\" or \"silu\"", c.file,
                       c.place);
    return sf_bert_config_dense(&s->pooler, c, "pooler", error);
}

static safer_status config_side(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    const json_t *value = json_object_get(c.json, "truncation_side");
    const char *side = value ? json_string_value(value) : "right";
    s->ending = side && strcmp(side, "left") == 0;
    if (s->ending || (side && strcmp(side, "right") == 0)) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s: \"truncation_side\"%s must be \"left\" or \"right\"", c.file, c.place);
}

safer_status sf_bert_shape_read(sf_bert_shape *s, const sf_safetensors *file, safer_error *error)
{
    safer_status status;
    json_t *json = NULL;
    SF_TRY(sf_model_config_read(&json, file, "config", error));
    sf_model_config c = sf_model_config_of(json, file);
    SF_TRY(sf_model_config_number(&s->vocabulary, c, "vocabulary", 1, SF_BERT_PIECES, error));
    SF_TRY(sf_model_config_number(&s->positions, c, "positions", 3, SF_BERT_POSITIONS, error));
    SF_TRY(sf_model_config_number(&s->types, c, "types", 0, SF_BERT_TYPES, error));
    SF_TRY(sf_model_config_number(&s->layers, c, "layers", 1, SF_BERT_LAYERS, error));
    SF_TRY(sf_model_config_number(&s->hidden, c, "hidden", 1, SF_BERT_HIDDEN, error));
    SF_TRY(sf_model_config_number(&s->heads, c, "heads", 1, SF_BERT_HIDDEN, error));
    SF_TRY(sf_model_config_number(&s->inner, c, "inner", 1, SF_BERT_INNER, error));
    SF_TRY(read_form(s, c, error));
    SF_TRY(sf_bert_config_activation(&s->activation, c, "activation", error));
    SF_TRY(sf_bert_config_epsilon(&s->epsilon, c, "epsilon", error));
    SF_TRY(config_pool(s, c, error));
    SF_TRY(config_pooler(s, c, error));
    SF_TRY(sf_bert_config_check(s, c, error));
    SF_TRY(sf_model_config_number(&s->tokens, c, "tokens", 3, sf_bert_most_tokens(s), error));
    SF_TRY(config_side(s, c, error));
done:
    json_decref(json);
    return status;
}
