/* The configuration of a model. */
#include "model/config.h"

#include "model/model.h"

#include <math.h>
#include <string.h>

safer_status sf_model_config_read(json_t **out, const sf_safetensors *file, const char *key, safer_error *error)
{
    const char *text = sf_safetensors_metadata(file, key), *name = sf_safetensors_name(file);
    *out = NULL;
    if (text && *text) {
        safer_status status = sf_model_json(out, text, strlen(text), 0, name, error);
        if (status == SAFER_MEMORY) return status;
    }
    return json_is_object(*out)
               ? SAFER_OK
               : sf_fail(error, SAFER_INPUT, "%s: the metadata have no \"%s\" (a JSON object)", name, key);
}

sf_model_config sf_model_config_of(const json_t *json, const sf_safetensors *file)
{
    return (sf_model_config){json, sf_safetensors_name(file), " in the metadata \"config\""};
}

safer_status sf_model_config_number(size_t *out, sf_model_config config, const char *key, size_t low, size_t high,
                                    safer_error *error)
{
    const json_t *value = json_object_get(config.json, key);
    double x = json_real_value(value);
    if (!json_is_real(value) || x != floor(x) || x < (double)low || x > (double)high)
        return sf_fail(error, SAFER_INPUT, "%s: \"%s\"%s must be a whole number from %zu to %zu", config.file, key,
                       config.place, low, high);
    *out = (size_t)x;
    return SAFER_OK;
}

safer_status sf_model_config_choice(int *out, sf_model_config config, const char *key, const char *no, const char *yes,
                                    safer_error *error)
{
    const char *value = json_string_value(json_object_get(config.json, key));
    if (!value || (strcmp(value, no) != 0 && strcmp(value, yes) != 0))
        return sf_fail(error, SAFER_INPUT, "%s: \"%s\"%s must be \"%s\" or \"%s\"", config.file, key, config.place, no,
                       yes);
    *out = strcmp(value, yes) == 0;
    return SAFER_OK;
}
