/* The `bert` classifier: its file, and opening checkpoints of any kind.
 *
 * Safetensors; metadata
 *
 *   arch          "bert"
 *   config        {"vocabulary", "positions", "types", "layers", "hidden", "heads", "inner",
 *                 "activation": "gelu"|"gelu_new"|"relu", "pool": "cls"|"pooler"|"mean",
 *                 "pooler": "tanh"|"relu", "epsilon", "tokens", "truncation_side": "left", if it is not "right"}
 *   vocabulary    the word pieces, each followed by a newline, in the order of their numbers, and
 *   tokenizer     {"lower", "accents", "ideographs", "clean", "longest"} (text/wordpiece.h): BERT's tokenizer; or
 *   tokenizer.json   that of any other (text/tokenizer.h)
 *   labels        a JSON list of names; missing: an encoder without a classifier
 *   trained_with  as in all model files; may be missing
 *
 * and F32 tensors under the names of bert_layout.c. F16, BF16 and F64 are read too.
 * The files around this one: docs/design.md, "From a text to BERT's answer". */
#define _GNU_SOURCE
#include "base/json.h"
#include "base/memory.h"
#include "model/bert_names.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------- writing */

int sf_bert_labels_json(sf_buffer *out, char *const *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_t *label = json_string(labels[i]);
        int failed = sf_buffer_add_string(out, i ? "," : "[") || sf_json_add(out, label);
        json_decref(label);
        if (failed) return -1;
    }
    return sf_buffer_add_byte(out, ']');
}

safer_status sf_bert_describe(sf_bert_description *out, const sf_bert_shape *shape, const sf_piecer *piecer,
                              const char *path, safer_error *error)
{
    if (sf_bert_shape_write(&out->config, shape)) return sf_fail_memory(error);
    return sf_bert_tokenizer_write(&out->vocabulary, &out->tokenizer, piecer, path, error);
}

void sf_bert_description_free(sf_bert_description *description)
{
    sf_buffer_free(&description->config);
    sf_buffer_free(&description->vocabulary);
    sf_buffer_free(&description->tokenizer);
}

void sf_bert_tensors(sf_tensor *out, const sf_bert_layout *layout, const float *parameters)
{
    for (size_t i = 0; i < layout->tensor_count; i++) {
        const sf_bert_tensor *t = &layout->tensors[i];
        out[i] = (sf_tensor){
            .name = t->name, .type = SF_F32, .rank = t->rank, .count = t->count, .bytes = parameters + t->offset};
        memcpy(out[i].shape, t->shape, sizeof t->shape);
    }
}

size_t sf_bert_metadata(sf_metadata out[SF_BERT_METADATA], const sf_bert_description *text)
{
    size_t count = 0;
    const int plain = text->vocabulary.length > 0;
    out[count++] = (sf_metadata){"config", text->config.bytes};
    if (plain) out[count++] = (sf_metadata){"vocabulary", text->vocabulary.bytes};
    out[count++] = (sf_metadata){plain ? "tokenizer" : "tokenizer.json", text->tokenizer.bytes};
    return count;
}

safer_status sf_bert_save(const char *path, const sf_bert_layout *layout, const float *parameters,
                          const sf_piecer *piecer, const char *labels, const char *trained_with, safer_error *error)
{
    safer_status status;
    sf_bert_description text = {0};
    sf_tensor *tensors = sf_calloc(layout->tensor_count, sizeof *tensors);
    if (!tensors) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_bert_describe(&text, &layout->shape, piecer, path, error));
    sf_bert_tensors(tensors, layout, parameters);
    sf_metadata metadata[SF_BERT_METADATA + 3] = {{"arch", "bert"}};
    size_t count = 1 + sf_bert_metadata(metadata + 1, &text);
    if (labels) metadata[count++] = (sf_metadata){"labels", labels};
    if (trained_with) metadata[count++] = (sf_metadata){"trained_with", trained_with};
    SF_TRY(sf_safetensors_write(path, tensors, layout->tensor_count, metadata, count, error));
done:
    sf_bert_description_free(&text);
    free(tensors);
    return status;
}

/* ------------------------------------------------------------------- reading */

/* Tokenizer and parameters, once the shape is known. */
static safer_status read_encoder(sf_bert_checkpoint *c, const sf_bert_shape *shape, const sf_safetensors *file,
                                 safer_error *error)
{
    safer_status status;
    sf_bert_source source = {.name = sf_safetensors_name(file)};
    SF_TRY(sf_bert_tokenizer_read(&c->piecer, shape, file, error));
    if (sf_bert_layout_make(&c->layout, shape)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_bert_source_add_file(&source, file, error));
    SF_TRY(sf_bert_source_sort(&source, error));
    SF_TRY(sf_bert_source_load(&c->parameters, &source, &c->layout, error));
done:
    sf_bert_source_free(&source);
    return status;
}

safer_status sf_bert_file_read(sf_bert_checkpoint *out, const sf_safetensors *file, safer_error *error)
{
    safer_status status;
    const char *name = sf_safetensors_name(file), *arch = sf_safetensors_metadata(file, "arch");
    const char *trained_with = sf_safetensors_metadata(file, "trained_with");
    sf_bert_checkpoint c = {.hash = sf_safetensors_hash(file)};
    sf_bert_shape shape = {0};
    safer_model common = {0};
    if (!arch || strcmp(arch, "bert") != 0)
        return arch ? sf_fail(error, SAFER_INPUT, "%s: a model of architecture \"%.40s\", not bert", name, arch)
                    : sf_fail(error, SAFER_INPUT,
                              "%s: the metadata have no \"arch\": it was not written by safer. To read the "
                              "weights of a HuggingFace model, give its folder",
                              name);
    SF_TRY(sf_bert_shape_read(&shape, file, error));
    if (sf_safetensors_metadata(file, "labels")) {
        SF_TRY(sf_model_read_common(&common, file, error));
        shape.classes = c.layout.shape.classes = common.classes; /* of the labels to free, even on failure */
        c.labels = common.labels;
        c.trained_with = common.trained_with;
        c.sha256 = common.sha256;
        common = (safer_model){0};
    } else if (trained_with && !(c.trained_with = sf_strdup(trained_with))) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(read_encoder(&c, &shape, file, error));
    *out = c;
    c = (sf_bert_checkpoint){0};
done:
    sf_model_clear(&common);
    sf_bert_checkpoint_free(&c);
    return status;
}

safer_status sf_bert_encoder_read(sf_bert_checkpoint *out, const sf_safetensors *file, safer_error *error)
{
    sf_bert_checkpoint c = {.hash = sf_safetensors_hash(file)};
    sf_bert_shape shape = {0};
    safer_status status = sf_bert_shape_read(&shape, file, error);
    if (status == SAFER_OK) status = read_encoder(&c, &shape, file, error);
    if (status == SAFER_OK)
        *out = c;
    else
        sf_bert_checkpoint_free(&c);
    return status;
}

safer_status sf_bert_encoder_of(sf_bert_layout *layout, float **parameters, const sf_bert_checkpoint *c, size_t tokens,
                                int ending, safer_error *error)
{
    sf_bert_shape shape = c->layout.shape;
    shape.tokens = tokens;
    shape.ending = ending;
    shape.classes = 0;
    shape.pool = SF_POOL_MEAN; /* for which no parameters are kept */
    if (sf_bert_layout_make(layout, &shape)) return sf_fail_memory(error);
    *parameters = sf_alloc_aligned(layout->size, sizeof **parameters);
    if (!*parameters) {
        sf_bert_layout_free(layout);
        return sf_fail_memory(error);
    }
    for (size_t i = 0, k = 0; i < layout->tensor_count; i++) { /* in the same order there, among others */
        const sf_bert_tensor *to = &layout->tensors[i];
        while (strcmp(c->layout.tensors[k].name, to->name) != 0) k++;
        memcpy(*parameters + to->offset, c->parameters + c->layout.tensors[k].offset, to->count * sizeof **parameters);
    }
    return SAFER_OK;
}

/* --------------------------------------------------------------- checkpoints */

safer_status sf_bert_checkpoint_open(sf_bert_checkpoint *out, const char *path, safer_error *error)
{
    struct stat info;
    size_t length = strlen(path);
    if (stat(path, &info) != 0) return sf_fail_errno(error, "open", path);
    if (S_ISDIR(info.st_mode)) return sf_bert_directory_open(out, path, error);
    if (length > 5 && strcasecmp(path + length - 5, ".onnx") == 0) return sf_bert_onnx_open(out, path, error);
    sf_safetensors *file = NULL;
    safer_status status = sf_safetensors_open(&file, path, error);
    if (status == SAFER_OK) status = sf_bert_file_read(out, file, error);
    sf_safetensors_free(file);
    return status;
}

void sf_bert_checkpoint_free(sf_bert_checkpoint *checkpoint)
{
    for (size_t i = 0; checkpoint->labels && i < checkpoint->layout.shape.classes; i++) free(checkpoint->labels[i]);
    free(checkpoint->labels);
    free(checkpoint->trained_with);
    free(checkpoint->parameters);
    sf_piecer_free(checkpoint->piecer);
    sf_bert_layout_free(&checkpoint->layout);
    *checkpoint = (sf_bert_checkpoint){0};
}
