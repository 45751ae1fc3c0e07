/* config.json of a HuggingFace folder: which encoder it describes. Anything that would change an answer and is not
 * understood is refused by name. */
#include "model/bert_names.h"

#include <string.h>

int sf_bert_config_distil(const json_t *config)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    return type && strcmp(type, "distilbert") == 0;
}

static safer_status check_type(const json_t *config, const char *path, safer_error *error)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    const char *positions = json_string_value(json_object_get(config, "position_embedding_type"));
    if (!type || (strcmp(type, "bert") != 0 && strcmp(type, "distilbert") != 0))
        return type ? sf_fail(error, SAFER_INPUT,
                              "%s: the model is of type \"%.60s\"; bert and distilbert are supported", path, type)
                    : sf_fail(error, SAFER_INPUT, "%s: there is no \"model_type\"; bert and distilbert are supported",
                              path);
    if (positions && strcmp(positions, "absolute") != 0)
        return sf_fail(error, SAFER_INPUT, "%s: \"position_embedding_type\" is \"%.60s\"; absolute is supported", path,
                       positions);
    if (json_is_true(json_object_get(config, "is_decoder")))
        return sf_fail(error, SAFER_INPUT, "%s: the model is a decoder; encoders are supported", path);
    return SAFER_OK;
}

safer_status sf_bert_config_read(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    safer_status status;
    SF_TRY(check_type(c.json, c.file, error));
    const int d = sf_bert_config_distil(c.json);
    SF_TRY(sf_model_config_number(&s->vocabulary, c, "vocab_size", 1, SF_BERT_PIECES, error));
    SF_TRY(sf_model_config_number(&s->positions, c, "max_position_embeddings", 3, SF_BERT_POSITIONS, error));
    SF_TRY(sf_model_config_number(&s->hidden, c, d ? "dim" : "hidden_size", 1, SF_BERT_HIDDEN, error));
    SF_TRY(sf_model_config_number(&s->layers, c, d ? "n_layers" : "num_hidden_layers", 1, SF_BERT_LAYERS, error));
    SF_TRY(sf_model_config_number(&s->heads, c, d ? "n_heads" : "num_attention_heads", 1, SF_BERT_HIDDEN, error));
    SF_TRY(sf_model_config_number(&s->inner, c, d ? "hidden_dim" : "intermediate_size", 1, SF_BERT_INNER, error));
    SF_TRY(sf_bert_config_activation(&s->activation, c, d ? "activation" : "hidden_act", error));
    s->types = 0;
    s->epsilon = 1e-12f;
    if (!d) SF_TRY(sf_model_config_number(&s->types, c, "type_vocab_size", 1, SF_BERT_TYPES, error));
    if (!d && json_object_get(c.json, "layer_norm_eps"))
        SF_TRY(sf_bert_config_epsilon(&s->epsilon, c, "layer_norm_eps", error));
    SF_TRY(sf_bert_config_check(s, c, error));
done:
    return status;
}

safer_status sf_bert_config_head(sf_bert_shape *s, const sf_bert_source *source, sf_model_config c, safer_error *error)
{
    const sf_bert_found *classifier = sf_bert_source_find(source, "classifier.weight");
    const char *file = c.file;
    const char *architecture = json_string_value(json_array_get(json_object_get(c.json, "architectures"), 0));
    const char *problem = json_string_value(json_object_get(c.json, "problem_type"));
    size_t classes = classifier->tensor.rank == 2 ? classifier->tensor.shape[classifier->transposed] : 0;
    if (architecture && !strstr(architecture, "ForSequenceClassification"))
        return sf_fail(error, SAFER_INPUT,
                       "%s: the architecture \"%.80s\" does not classify texts (ForSequenceClassification does)", file,
                       architecture);
    if (problem && strcmp(problem, "single_label_classification") != 0)
        return sf_fail(error, SAFER_INPUT,
                       "%s: \"problem_type\" is \"%.60s\"; single_label_classification is supported", file, problem);
    if (classes < 2 || classes > SF_BERT_CLASSES)
        return sf_fail(error, SAFER_INPUT, "%s: tensor \"%.200s\" must have from 2 to %d rows, one per class",
                       classifier->file, classifier->tensor.name, SF_BERT_CLASSES);
    s->classes = classes;
    s->pool = SF_POOL_POOLER;
    s->pooler_relu = sf_bert_config_distil(c.json);
    return SAFER_OK;
}
