/* The configuration of a model: a JSON object in the metadata of its file, or in a file of its own.
 * Its numbers are read as reals, so that whole ones may be of any size (sf_model_json). */
#ifndef SF_MODEL_CONFIG_H
#define SF_MODEL_CONFIG_H

#include "nn/safetensors.h"

#include <jansson.h>

/* A JSON object and where it stands: "FILE: "key"PLACE must be ...". */
typedef struct sf_model_config {
    const json_t *json;
    const char *file, *place;
} sf_model_config;

/* The object that the metadata `key` holds. *out is owned by the caller, and may be set on failure, too. */
safer_status sf_model_config_read(json_t **out, const sf_safetensors *file, const char *key, safer_error *error);

/* That of the metadata "config". */
sf_model_config sf_model_config_of(const json_t *json, const sf_safetensors *file);

/* A whole number within these limits. */
safer_status sf_model_config_number(size_t *out, sf_model_config config, const char *key, size_t low, size_t high,
                                    safer_error *error);

/* One of two names: 0 for `no`, 1 for `yes`. */
safer_status sf_model_config_choice(int *out, sf_model_config config, const char *key, const char *no, const char *yes,
                                    safer_error *error);

#endif
