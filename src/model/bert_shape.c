/* The settings of a `bert` model as JSON: the metadata "config" of its file (bert_file.c), and what every configuration,
 * this one or HuggingFace's (bert_config.c), must keep to. */
#include "base/json.h"
#include "model/bert_names.h"

#include <string.h>

static const char *const pools[] = {[SF_POOL_CLS] = "cls", [SF_POOL_POOLER] = "pooler", [SF_POOL_MEAN] = "mean"};

/* gelu_new and its siblings are the same approximation by tanh. */
static const struct {
    const char *name;
    sf_activation activation;
} activations[] = {
    {"gelu", SF_GELU},        {"gelu_new", SF_GELU_TANH},  {"relu", SF_RELU}, /* these are written */
    {"gelu_python", SF_GELU}, {"gelu_fast", SF_GELU_TANH}, {"gelu_pytorch_tanh", SF_GELU_TANH},
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

safer_status sf_bert_config_activation(sf_activation *out, sf_model_config config, const char *key, safer_error *error)
{
    const char *name = json_string_value(json_object_get(config.json, key));
    for (int i = 0; name && i < ACTIVATIONS; i++)
        if (strcmp(name, activations[i].name) == 0) {
            *out = activations[i].activation;
            return SAFER_OK;
        }
    return sf_fail(error, SAFER_INPUT,
                   "%s: \"%s\"%s is %s%.60s%s; gelu, gelu_new, gelu_pytorch_tanh and relu are supported", config.file,
                   key, config.place, name ? "\"" : "", name ? name : "missing", name ? "\"" : "");
}

safer_status sf_bert_config_check(const sf_bert_shape *s, sf_model_config config, safer_error *error)
{
    if (s->hidden % s->heads)
        return sf_fail(error, SAFER_INPUT, "%s: a hidden size of %zu%s cannot be divided among %zu heads", config.file,
                       s->hidden, config.place, s->heads);
    return SAFER_OK;
}

/* -------------------------------------------------------------------- the file */

int sf_bert_shape_write(sf_buffer *out, const sf_bert_shape *s)
{
    const char *activation = "";
    for (int i = ACTIVATIONS; i-- > 0;)
        if (activations[i].activation == s->activation) activation = activations[i].name;
    json_t *epsilon = json_real((double)s->epsilon);
    int failed =
        sf_buffer_format(
            out,
            "{\"vocabulary\":%zu,\"positions\":%zu,\"types\":%zu,\"layers\":%zu,\"hidden\":%zu,\"heads\":%zu,"
            "\"inner\":%zu,\"activation\":\"%s\",\"pool\":\"%s\",\"pooler\":\"%s\",\"tokens\":%zu,\"epsilon\":",
            s->vocabulary, s->positions, s->types, s->layers, s->hidden, s->heads, s->inner, activation, pools[s->pool],
            s->pooler_relu ? "relu" : "tanh", s->tokens) ||
        sf_json_add(out, epsilon) || sf_buffer_add_byte(out, '}');
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
    SF_TRY(sf_model_config_number(&s->tokens, c, "tokens", 3, s->positions, error));
    SF_TRY(sf_bert_config_activation(&s->activation, c, "activation", error));
    SF_TRY(sf_bert_config_epsilon(&s->epsilon, c, "epsilon", error));
    SF_TRY(config_pool(s, c, error));
    SF_TRY(sf_model_config_choice(&s->pooler_relu, c, "pooler", "tanh", "relu", error));
    SF_TRY(sf_bert_config_check(s, c, error));
done:
    json_decref(json);
    return status;
}
