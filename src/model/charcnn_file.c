/* The `charcnn` classifier: its file.
 *
 * Safetensors; metadata arch ("charcnn"), config, labels, trained_with; tensors
 *
 *   conv.0.weight    F32  (69, 7, features): character, tap, feature
 *   conv.I.weight    F32  (7 or 3, features, features): tap, input, output; I = 1..5
 *   conv.I.bias      F32  (features)
 *   dense.0.weight   F32  (frames * features, hidden): input, output
 *   dense.1.weight   F32  (hidden, hidden)
 *   dense.I.bias     F32  (hidden)
 *   output.weight    F32  (classes, hidden), output.bias (classes)
 *
 * config is {"characters", "features", "hidden"}. Characters are numbered as in the paper:
 * a-z, 0-9, -,;.!?:'"/\|_@#$%^&*~`+=<>()[]{} and the new line. F16, BF16 and F64 tensors
 * are read too. */
#include "base/memory.h"
#include "model/charcnn_model.h"

#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------- writing */

safer_status sf_charcnn_save(const char *path, const sf_charcnn_layout *l, const float *parameters, const char *labels,
                             const char *trained_with, safer_error *error)
{
    sf_tensor tensors[SF_CHARCNN_TENSORS];
    sf_buffer config = {0};
    safer_status status;
    for (size_t i = 0; i < l->tensor_count; i++) {
        tensors[i] = (sf_tensor){.name = l->tensors[i].name,
                                 .type = SF_F32,
                                 .rank = l->tensors[i].rank,
                                 .count = l->tensors[i].count,
                                 .bytes = parameters + l->tensors[i].offset};
        memcpy(tensors[i].shape, l->tensors[i].shape, sizeof l->tensors[i].shape);
    }
    if (sf_buffer_format(&config, "{\"characters\":%zu,\"features\":%zu,\"hidden\":%zu}", l->shape.characters,
                         l->shape.features, l->shape.hidden)) {
        status = sf_fail_memory(error);
    } else {
        const sf_metadata metadata[] = {
            {"arch", "charcnn"}, {"config", config.bytes}, {"labels", labels}, {"trained_with", trained_with}};
        status = sf_safetensors_write(path, tensors, l->tensor_count, metadata, sizeof metadata / sizeof metadata[0],
                                      error);
    }
    sf_buffer_free(&config);
    return status;
}

/* ----------------------------------------------------------------- reading */

static safer_status config_number(size_t *out, const json_t *config, const char *key, size_t low, size_t high,
                                  size_t step, const char *file, safer_error *error)
{
    const json_t *value = json_object_get(config, key);
    json_int_t x = json_integer_value(value);
    if (!json_is_integer(value) || x < (json_int_t)low || x > (json_int_t)high || (size_t)x % step != 0)
        return sf_fail(error, SAFER_INPUT,
                       "%s: \"%s\" in the metadata \"config\" must be a whole number from %zu to %zu%s", file, key, low,
                       high, step > 1 ? ", divisible by 16" : "");
    *out = (size_t)x;
    return SAFER_OK;
}

static safer_status read_config(sf_charcnn_shape *s, const sf_safetensors *file, safer_error *error)
{
    safer_status status = SAFER_OK;
    const char *name = sf_safetensors_name(file), *text = sf_safetensors_metadata(file, "config");
    json_error_t problem;
    json_t *config = text ? json_loads(text, 0, &problem) : NULL;
    if (!json_is_object(config)) {
        if (text && !config && json_error_code(&problem) == json_error_out_of_memory)
            status = sf_fail_memory(error);
        else
            status = sf_fail(error, SAFER_INPUT, "%s: the metadata have no \"config\" (a JSON object)", name);
        goto done;
    }
    SF_TRY(
        config_number(&s->characters, config, "characters", SF_CHARCNN_SHORTEST, SF_CHARCNN_LONGEST, 1, name, error));
    SF_TRY(config_number(&s->features, config, "features", SF_CHARCNN_LANES, 65536, SF_CHARCNN_LANES, name, error));
    SF_TRY(config_number(&s->hidden, config, "hidden", 1, 65536, 1, name, error));
done:
    json_decref(config);
    return status;
}

safer_status sf_charcnn_set_precision(safer_model *base, sf_dtype type, safer_error *error)
{
    safer_status status;
    sf_charcnn_model *model = (sf_charcnn_model *)base;
    const sf_charcnn_layout *l = &model->layout;
    sf_charcnn_net *net = NULL;
    float *parameters = sf_alloc_aligned(l->size, sizeof *parameters);
    if (!parameters) return sf_fail_memory(error);
    for (size_t i = 0; i < l->tensor_count; i++)
        SF_TRY(sf_tensor_to_f32(parameters + l->tensors[i].offset, sf_safetensors_find(model->file, l->tensors[i].name),
                                model->file, error));
    SF_TRY(sf_charcnn_net_new(&net, l, type, error));
    sf_charcnn_net_load(net, parameters, 0);
    sf_charcnn_net_free(model->net);
    model->net = net;
    snprintf(model->arithmetic, sizeof model->arithmetic, "%s %s", type == SF_F32 ? "f32" : "bf16",
             sf_isa_name(net->isa));
    base->arithmetic = model->arithmetic;
done:
    free(parameters);
    return status;
}

safer_status sf_charcnn_open(safer_model **out, sf_safetensors *file, safer_error *error)
{
    safer_status status;
    sf_charcnn_shape shape = {0};
    sf_charcnn_model *model = sf_calloc(1, sizeof *model);
    if (!model) return sf_fail_memory(error);
    model->base.class = &sf_charcnn_class;
    SF_TRY(sf_isa_check(error));
    SF_TRY(sf_model_read_common(&model->base, file, error));
    SF_TRY(read_config(&shape, file, error));
    shape.classes = model->base.classes;
    sf_charcnn_layout_make(&model->layout, &shape);
    /* Shapes before memory: a configuration that no tensor bears out allocates nothing. */
    for (size_t i = 0; i < model->layout.tensor_count; i++) {
        const char *name = model->layout.tensors[i].name;
        const sf_tensor *tensor = sf_safetensors_find(file, name);
        int is_float = tensor && (tensor->type == SF_F16 || tensor->type == SF_BF16 || tensor->type == SF_F64);
        SF_TRY(sf_safetensors_require(&tensor, file, name, is_float ? tensor->type : SF_F32,
                                      model->layout.tensors[i].rank, model->layout.tensors[i].shape, error));
    }
    model->file = file;
    status = sf_charcnn_set_precision(&model->base, SF_BF16, error);
    if (status != SAFER_OK) {
        model->file = NULL; /* the caller's still */
        goto done;
    }
    *out = &model->base;
    model = NULL;
done:
    sf_charcnn_model_free(model);
    return status;
}
