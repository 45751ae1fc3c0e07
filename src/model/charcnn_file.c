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
#include "model/config.h"

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

static safer_status read_config(sf_charcnn_shape *s, const sf_safetensors *file, safer_error *error)
{
    safer_status status;
    json_t *json = NULL;
    SF_TRY(sf_model_config_read(&json, file, "config", error));
    sf_model_config c = sf_model_config_of(json, file);
    SF_TRY(sf_model_config_number(&s->characters, c, "characters", SF_CHARCNN_SHORTEST, SF_CHARCNN_LONGEST, error));
    SF_TRY(sf_model_config_number(&s->features, c, "features", SF_CHARCNN_LANES, 65536, error));
    SF_TRY(sf_model_config_number(&s->hidden, c, "hidden", 1, 65536, error));
    if (s->features % SF_CHARCNN_LANES != 0)
        status = sf_fail(error, SAFER_INPUT, "%s: \"features\"%s must be divisible by %d", c.file, c.place,
                         SF_CHARCNN_LANES);
done:
    json_decref(json);
    return status;
}

/* Free *out. */
static safer_status read_parameters(float **out, const sf_charcnn_model *model, safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_charcnn_layout *l = &model->layout;
    float *parameters = sf_alloc_aligned(l->size, sizeof *parameters);
    if (!parameters) return sf_fail_memory(error);
    for (size_t i = 0; i < l->tensor_count; i++)
        SF_TRY(sf_tensor_to_f32(parameters + l->tensors[i].offset, sf_safetensors_find(model->file, l->tensors[i].name),
                                model->file, error));
    *out = parameters;
    parameters = NULL;
done:
    free(parameters);
    return status;
}

/* What answers from now on: one of them. */
static void take_over(sf_charcnn_model *model, sf_charcnn_net *net, sf_charcnn_device *device)
{
    sf_charcnn_net_free(model->net);
    sf_charcnn_device_free(model->device);
    model->net = net;
    model->device = device;
    model->base.concurrency = device ? sf_charcnn_device_concurrency(device) : 0;
    model->base.calls = device ? 1 : 0; /* a text's draws are one question */
}

safer_status sf_charcnn_set_precision(safer_model *base, safer_precision precision, safer_error *error)
{
    safer_status status;
    sf_charcnn_model *model = (sf_charcnn_model *)base;
    const sf_arithmetic arithmetic = sf_arithmetic_of(precision);
    sf_charcnn_net *net = NULL;
    float *parameters = NULL;
    SF_TRY(read_parameters(&parameters, model, error));
    SF_TRY(sf_charcnn_net_new(&net, &model->layout, arithmetic, error));
    sf_charcnn_net_load(net, parameters, 0);
    take_over(model, net, NULL);
    base->arithmetic = sf_arithmetic_name(arithmetic);
done:
    free(parameters);
    return status;
}

safer_status sf_charcnn_set_device(safer_model *base, const char *name, safer_error *error)
{
    safer_status status;
    sf_charcnn_model *model = (sf_charcnn_model *)base;
    sf_device_choice choice;
    sf_charcnn_device *device = NULL;
    float *parameters = NULL;
    SF_TRY(sf_device_choose(&choice, name, error));
    if (!choice.count) return model->device ? sf_charcnn_set_precision(base, SAFER_PRECISION_BF16, error) : SAFER_OK;
    SF_TRY(read_parameters(&parameters, model, error));
    status = sf_charcnn_device_new(&device, &choice, &model->layout, parameters, error);
    if (status == SAFER_OK) {
        take_over(model, NULL, device);
        base->arithmetic = sf_charcnn_device_arithmetic(device);
    } else if (status == SAFER_INPUT && strcmp(name, "auto") == 0) { /* not this one */
        status = sf_charcnn_set_device(base, "cpu", error);
    }
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
    status = sf_charcnn_set_precision(&model->base, SAFER_PRECISION_BF16, error);
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
