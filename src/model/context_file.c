/* The `context` classifier: its file, which has all that an answer depends on.
 *
 * Safetensors; metadata arch, labels and trained_with as in all model files, and of the encoder config and its
 * tokenizer as in bert_file.c. Tensors: those of the encoder, without a pooler or a classifier, and
 *
 *   context.lexicon     U8   a .lex file, byte by byte; its kernel gives every text one form (`representative`)
 *   context.vocabulary  U8   every word followed by a newline; word k has number k + 1, 0 is every other word
 *   context.mean        F32  (hidden)
 *   context.projection  F32  (size, hidden)
 *   context.bias        F32  (outputs): 1 for two classes, else their number
 *   context.words       F32  (words + 1, outputs)
 *   context.common      F32  (outputs, size)
 *   context.each        F32  (words + 1, outputs, size) */
#include "base/memory.h"
#include "model/bert_names.h"
#include "model/canonical.h"
#include "model/cnn.h"
#include "model/context.h"

#include <stdio.h>
#include <string.h>

enum { OWN = 8 /* tensors beside the encoder's */ };

/* --------------------------------------------------------------------- writing */

static sf_tensor bytes_tensor(const char *name, const void *bytes, size_t count)
{
    return (sf_tensor){.name = name, .type = SF_U8, .rank = 1, .shape = {count}, .count = count, .bytes = bytes};
}

static sf_tensor floats_tensor(const char *name, const float *values, size_t rank, size_t a, size_t b, size_t c)
{
    return (sf_tensor){.name = name,
                       .type = SF_F32,
                       .rank = rank,
                       .shape = {a, b, c},
                       .count = a * (rank > 1 ? b : 1) * (rank > 2 ? c : 1),
                       .bytes = values};
}

static void own_tensors(sf_tensor out[OWN], const sf_context_parts *p, const sf_buffer *words)
{
    const sf_context_layout *l = &p->sum.layout;
    const float *values = p->sum.parameters;
    const size_t V = l->shape.vocabulary, D = l->shape.outputs, k = l->shape.size, H = p->layout->shape.hidden;
    out[0] = bytes_tensor("context.lexicon", p->lexicon->image.bytes, p->lexicon->image.length);
    out[1] = bytes_tensor("context.vocabulary", words->bytes, words->length);
    out[2] = floats_tensor("context.mean", p->mean, 1, H, 0, 0);
    out[3] = floats_tensor("context.projection", p->projection, 2, k, H, 0);
    out[4] = floats_tensor("context.bias", values + l->bias, 1, D, 0, 0);
    out[5] = floats_tensor("context.words", values + l->words, 2, V, D, 0);
    out[6] = floats_tensor("context.common", values + l->common, 2, D, k, 0);
    out[7] = floats_tensor("context.each", values + l->each, 3, V, D, k);
}

safer_status sf_context_save(const char *path, const sf_context_parts *p, const char *labels, const char *trained_with,
                             safer_error *error)
{
    safer_status status;
    const size_t count = p->layout->tensor_count;
    sf_bert_description text = {0};
    sf_buffer words = {0};
    sf_tensor *tensors = sf_calloc(count + OWN, sizeof *tensors);
    if (!tensors || sf_cnn_words_pack(&words, p->words)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_bert_describe(&text, &p->layout->shape, p->piecer, path, error));
    sf_bert_tensors(tensors, p->layout, p->encoder);
    own_tensors(tensors + count, p, &words);
    sf_metadata metadata[SF_BERT_METADATA + 3] = {{"arch", "context"},
                                                  {"labels", labels},
                                                  {"trained_with", trained_with}};
    const size_t described = sf_bert_metadata(metadata + 3, &text);
    status = sf_safetensors_write(path, tensors, count + OWN, metadata, 3 + described, error);
done:
    sf_bert_description_free(&text);
    sf_buffer_free(&words);
    free(tensors);
    return status;
}

/* --------------------------------------------------------------------- reading */

static safer_status read_lexicon(sf_context_model *m, const sf_safetensors *file, safer_error *error)
{
    static const char tensor_name[] = "context.lexicon";
    const size_t any = SIZE_MAX;
    const sf_tensor *tensor;
    char name[400];
    safer_status status = sf_safetensors_require(&tensor, file, tensor_name, SF_U8, 1, &any, error);
    if (status != SAFER_OK) return status;
    char *bytes = sf_alloc_aligned(tensor->count, 1);
    if (!bytes) return sf_fail_memory(error);
    memcpy(bytes, tensor->bytes, tensor->count);
    sf_file image = {.bytes = bytes, .length = tensor->count, .heap = bytes};
    snprintf(name, sizeof name, "%s: tensor \"%s\"", sf_safetensors_name(file), tensor_name);
    status = sf_lexicon_parse(&m->lexicon, &image, name, error);
    sf_file_free(&image);
    if (status == SAFER_OK && !sf_canonical_is(m->lexicon))
        status = sf_fail(error, SAFER_INPUT, "%s needs the kernel representative; it has %s", name,
                         m->lexicon->kernel_name);
    return status;
}

/* A tensor of floats of this shape, into memory of its own unless *out has some. */
static safer_status read_floats(float **out, const sf_safetensors *file, const char *name, size_t rank, size_t a,
                                size_t b, size_t c, safer_error *error)
{
    const size_t shape[3] = {a, b, c};
    const sf_tensor *tensor;
    safer_status status = sf_safetensors_require(&tensor, file, name, SF_F32, rank, shape, error);
    if (status != SAFER_OK) return status;
    if (!*out && !(*out = sf_alloc(tensor->count + 1, sizeof **out))) return sf_fail_memory(error);
    return sf_tensor_to_f32(*out, tensor, file, error);
}

/* The numbers of words, and how many a context has: shapes before memory. */
static safer_status read_sum(sf_context_model *m, const sf_safetensors *file, safer_error *error)
{
    safer_status status;
    const size_t any[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX}, H = m->encoder.layout.shape.hidden;
    const sf_tensor *tensor;
    SF_TRY(sf_safetensors_require(&tensor, file, "context.projection", SF_F32, 2, any, error));
    const size_t k = tensor->shape[0];
    if (k < 1 || k > SF_CONTEXT_LARGEST) {
        status = sf_fail(error, SAFER_INPUT, "%s: tensor \"context.projection\": %zu rows; there must be 1 to %d",
                         sf_safetensors_name(file), k, SF_CONTEXT_LARGEST);
        goto done;
    }
    sf_context_layout l;
    sf_context_layout_make(&l, m->base.classes, (size_t)m->words.count + 1, k);
    const size_t V = l.shape.vocabulary, D = l.shape.outputs;
    SF_TRY(sf_safetensors_require(&tensor, file, "context.each", SF_F32, 3, (size_t[]){V, D, k}, error));
    if (!(m->parameters = sf_alloc(l.total, sizeof *m->parameters))) {
        status = sf_fail_memory(error);
        goto done;
    }
    float *bias = m->parameters + l.bias, *words = m->parameters + l.words, *common = m->parameters + l.common,
          *each = m->parameters + l.each;
    SF_TRY(read_floats(&m->mean, file, "context.mean", 1, H, 0, 0, error));
    SF_TRY(read_floats(&m->projection, file, "context.projection", 2, k, H, 0, error));
    SF_TRY(read_floats(&bias, file, "context.bias", 1, D, 0, 0, error));
    SF_TRY(read_floats(&words, file, "context.words", 2, V, D, 0, error));
    SF_TRY(read_floats(&common, file, "context.common", 2, D, k, 0, error));
    SF_TRY(read_floats(&each, file, "context.each", 3, V, D, k, error));
    m->sum = (sf_context_sum){l, m->parameters};
done:
    return status;
}

safer_status sf_context_open(safer_model **out, const sf_safetensors *file, safer_error *error)
{
    safer_status status;
    sf_context_model *m = sf_calloc(1, sizeof *m);
    if (!m) return sf_fail_memory(error);
    m->base.class = &sf_context_class;
    m->base.group = SF_CONTEXT_GROUP;
    SF_TRY(sf_isa_check(error));
    SF_TRY(sf_model_read_common(&m->base, file, error));
    SF_TRY(read_lexicon(m, file, error));
    SF_TRY(sf_cnn_words_read(&m->words, file, "context.vocabulary", error));
    SF_TRY(sf_bert_encoder_read(&m->encoder, file, error));
    SF_TRY(read_sum(m, file, error));
    SF_TRY(m->base.class->set_precision(&m->base, SAFER_PRECISION_BF16, error));
    *out = &m->base;
    m = NULL;
done:
    sf_context_model_free(m);
    return status;
}
