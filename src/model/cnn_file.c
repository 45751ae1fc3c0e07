/* The `bow` and `cnn` classifiers: their file.
 *
 * Safetensors; metadata arch, config, labels, trained_with; tensors
 *
 *   vocabulary        U8   every word followed by a newline; word k has number k + 1
 *   embedding.weight  F32  (words + 1, dim); row 0 is the unknown word
 *   conv.I.weight     F32  (width, filters, dim), conv.I.bias (filters): cnn only
 *   hidden.weight     F32  (hidden, features), hidden.bias (hidden): unless hidden is 0
 *   output.weight     F32  (classes, hidden or features), output.bias (classes)
 *   lookup.scale      F32  (features): fixed-point quanta in 1.0 (nn/lookup.h)
 *
 * config is {"dim", "widths": [...], "filters", "pool": "mean"|"max", "hidden",
 * "max_words"}; bow has no widths and filters. features = filters * number of widths, or
 * dim. F16, BF16 and F64 tensors are read too. */
#include "base/memory.h"
#include "model/cnn.h"
#include "model/config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ----------------------------------------------------------------- writing */

int sf_cnn_words_pack(sf_buffer *out, const sf_words *words)
{
    for (uint32_t i = 0; i < words->count; i++)
        if (sf_buffer_add(out, sf_words_string(words, i), sf_words_length(words, i)) || sf_buffer_add_byte(out, '\n'))
            return -1;
    return 0;
}

static int write_config(sf_buffer *out, const sf_cnn_shape *s)
{
    int failed = sf_buffer_format(out, "{\"dim\":%zu,", s->dim);
    for (size_t g = 0; s->convolution && g < s->width_count; g++)
        failed |= sf_buffer_format(out, "%s%zu", g ? "," : "\"widths\":[", s->widths[g]);
    if (s->convolution) failed |= sf_buffer_format(out, "],\"filters\":%zu,", s->filters);
    failed |= sf_buffer_format(out, "\"pool\":\"%s\",\"hidden\":%zu,\"max_words\":%zu}", s->max_pool ? "max" : "mean",
                               s->hidden, s->max_words == SF_LOOKUP_POSITIONS ? 0 : s->max_words);
    return failed;
}

safer_status sf_cnn_save(const char *path, const sf_cnn_layout *l, const float *parameters, const float *scale,
                         const sf_words *words, const char *labels, const char *trained_with, safer_error *error)
{
    safer_status status;
    sf_buffer packed = {0}, config = {0};
    sf_tensor tensors[SF_CNN_TENSORS + 2];
    size_t count = 0;
    if (sf_cnn_words_pack(&packed, words) || write_config(&config, &l->shape)) {
        status = sf_fail_memory(error);
        goto done;
    }
    tensors[count++] = (sf_tensor){.name = "vocabulary",
                                   .type = SF_U8,
                                   .rank = 1,
                                   .shape = {packed.length},
                                   .count = packed.length,
                                   .bytes = packed.bytes};
    for (size_t i = 0; i < l->tensor_count; i++) {
        sf_tensor t = {.name = l->tensors[i].name,
                       .type = SF_F32,
                       .rank = l->tensors[i].rank,
                       .count = l->tensors[i].count,
                       .bytes = parameters + l->tensors[i].offset};
        memcpy(t.shape, l->tensors[i].shape, sizeof l->tensors[i].shape);
        tensors[count++] = t;
    }
    tensors[count++] = (sf_tensor){.name = "lookup.scale",
                                   .type = SF_F32,
                                   .rank = 1,
                                   .shape = {l->features},
                                   .count = l->features,
                                   .bytes = scale};
    const sf_metadata metadata[] = {{"arch", l->shape.convolution ? "cnn" : "bow"},
                                    {"config", config.bytes},
                                    {"labels", labels},
                                    {"trained_with", trained_with}};
    status = sf_safetensors_write(path, tensors, count, metadata, sizeof metadata / sizeof metadata[0], error);
done:
    sf_buffer_free(&packed);
    sf_buffer_free(&config);
    return status;
}

/* ----------------------------------------------------------------- reading */

static safer_status config_widths(sf_cnn_shape *s, sf_model_config config, safer_error *error)
{
    const json_t *list = json_object_get(config.json, "widths");
    s->width_count = json_array_size(list);
    int good = s->width_count >= 1 && s->width_count <= SF_CNN_WIDTHS;
    for (size_t g = 0; good && g < s->width_count; g++) {
        double x = json_real_value(json_array_get(list, g));
        good = x >= 1 && x <= SF_CNN_WIDEST && x == floor(x);
        s->widths[g] = good ? (size_t)x : 0;
    }
    if (good) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s: \"widths\"%s must be a list of 1 to %d whole numbers from 1 to %d",
                   config.file, config.place, SF_CNN_WIDTHS, SF_CNN_WIDEST);
}

static safer_status read_config(sf_cnn_shape *s, const sf_safetensors *file, safer_error *error)
{
    safer_status status;
    json_t *json = NULL;
    SF_TRY(sf_model_config_read(&json, file, "config", error));
    sf_model_config c = sf_model_config_of(json, file);
    s->convolution = strcmp(sf_safetensors_metadata(file, "arch"), "cnn") == 0;
    SF_TRY(sf_model_config_number(&s->dim, c, "dim", 1, 4096, error));
    SF_TRY(sf_model_config_number(&s->hidden, c, "hidden", 0, 65536, error));
    SF_TRY(sf_model_config_number(&s->max_words, c, "max_words", 0, INT32_MAX, error));
    if (s->max_words == 0 || s->max_words > SF_LOOKUP_POSITIONS) s->max_words = SF_LOOKUP_POSITIONS;
    if (s->convolution) {
        SF_TRY(config_widths(s, c, error));
        SF_TRY(sf_model_config_number(&s->filters, c, "filters", 1, 65536, error));
    } else {
        s->width_count = s->widths[0] = 1;
        s->filters = s->dim;
    }
    SF_TRY(sf_model_config_choice(&s->max_pool, c, "pool", "mean", "max", error));
done:
    json_decref(json);
    return status;
}

safer_status sf_cnn_words_read(sf_words *words, const sf_safetensors *file, const char *name, safer_error *error)
{
    const sf_tensor *tensor;
    const size_t any = SIZE_MAX;
    safer_status status = sf_safetensors_require(&tensor, file, name, SF_U8, 1, &any, error);
    if (status != SAFER_OK) return status;
    const char *at = tensor->bytes, *end = at + tensor->count;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        uint32_t id, before = words->count;
        if (!stop || stop == at || memchr(at, '\0', (size_t)(stop - at)))
            return sf_fail(error, SAFER_INPUT,
                           "%s: tensor \"%s\": word %" PRIu32 " is empty, holds a zero byte or does not end",
                           sf_safetensors_name(file), name, before + 1);
        status = sf_words_add(words, at, (size_t)(stop - at), &id, error);
        if (status != SAFER_OK) return status;
        if (words->count == before)
            return sf_fail(error, SAFER_INPUT, "%s: tensor \"%s\": word %" PRIu32 " (\"%.*s\") occurs twice",
                           sf_safetensors_name(file), name, before + 1, (int)(stop - at > 60 ? 60 : stop - at), at);
        at = stop + 1;
    }
    return SAFER_OK;
}

/* A tensor of this shape, of any of the types that become floats. */
static safer_status read_tensor(float *out, const sf_safetensors *file, const char *name, size_t rank,
                                const size_t *shape, safer_error *error)
{
    const sf_tensor *tensor = sf_safetensors_find(file, name);
    int is_float = tensor && (tensor->type == SF_F16 || tensor->type == SF_BF16 || tensor->type == SF_F64);
    safer_status status = sf_safetensors_require(&tensor, file, name, is_float ? tensor->type : SF_F32, rank, shape,
                                                 error);
    return status == SAFER_OK ? sf_tensor_to_f32(out, tensor, file, error) : status;
}

safer_status sf_cnn_open(safer_model **out, sf_safetensors *file, safer_error *error)
{
    safer_status status;
    sf_cnn_shape shape = {0};
    sf_cnn_layout layout;
    float *scale = NULL;
    sf_cnn_model *model = sf_calloc(1, sizeof *model);
    if (!model) return sf_fail_memory(error);
    SF_TRY(sf_model_read_common(&model->base, file, error));
    SF_TRY(read_config(&shape, file, error));
    SF_TRY(sf_cnn_words_read(&model->words, file, "vocabulary", error));
    model->base.class = shape.convolution ? &sf_cnn_class : &sf_bow_class;
    shape.vocabulary = (size_t)model->words.count + 1;
    shape.classes = model->base.classes;
    sf_cnn_layout_make(&layout, &shape);
    /* Shapes before memory: a configuration that the tensors contradict allocates nothing. */
    for (size_t i = 0; i < layout.tensor_count; i++) {
        const sf_tensor *tensor = sf_safetensors_find(file, layout.tensors[i].name);
        SF_TRY(sf_safetensors_require(&tensor, file, layout.tensors[i].name, tensor ? tensor->type : SF_F32,
                                      layout.tensors[i].rank, layout.tensors[i].shape, error));
    }
    model->parameters = sf_alloc_aligned(layout.size, sizeof *model->parameters);
    scale = sf_alloc(layout.features, sizeof *scale);
    if (!model->parameters || !scale) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < layout.tensor_count; i++)
        SF_TRY(read_tensor(model->parameters + layout.tensors[i].offset, file, layout.tensors[i].name,
                           layout.tensors[i].rank, layout.tensors[i].shape, error));
    SF_TRY(read_tensor(scale, file, "lookup.scale", 1, &layout.features, error));
    for (size_t p = 0; p < layout.features; p++)
        if (!(scale[p] > 0)) {
            status = sf_fail(error, SAFER_INPUT, "%s: tensor \"lookup.scale\": value %zu is %g; it must be above 0",
                             sf_safetensors_name(file), p + 1, (double)scale[p]);
            goto done;
        }
    SF_TRY(sf_cnn_net_new(&model->net, &layout, model->parameters, scale, error));
    sf_safetensors_free(file);
    *out = &model->base;
    model = NULL;
done:
    free(scale);
    sf_cnn_model_free(model);
    return status;
}
