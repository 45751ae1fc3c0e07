/* config.json of a HuggingFace folder: which encoder it describes (nn/encoder.h).
 *
 * Keys that are missing have the defaults of transformers. Anything that would change an answer and is not
 * understood is refused by name; keys that only matter to training (dropout, initializer_range) are passed over. */
#include "model/bert_names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The models that are read, by "model_type", and the activation of the dense layer in their heads. */
static const struct type {
    const char *name;
    sf_bert_family family;
    sf_encoder_activation head;
} types[] = {{"bert", SF_FAMILY_BERT, SF_ENCODER_TANH},           {"distilbert", SF_FAMILY_DISTIL, SF_ENCODER_RELU},
             {"roberta", SF_FAMILY_ROBERTA, SF_ENCODER_TANH},     {"camembert", SF_FAMILY_ROBERTA, SF_ENCODER_TANH},
             {"xlm-roberta", SF_FAMILY_ROBERTA, SF_ENCODER_TANH}, {"electra", SF_FAMILY_ROBERTA, SF_ENCODER_GELU},
             {"albert", SF_FAMILY_ALBERT, SF_ENCODER_TANH},       {"mpnet", SF_FAMILY_MPNET, SF_ENCODER_TANH},
             {"deberta-v2", SF_FAMILY_DEBERTA, SF_ENCODER_GELU},  {"modernbert", SF_FAMILY_MODERN, SF_ENCODER_GELU}};
enum { TYPES = sizeof types / sizeof *types };

#define SUPPORTED \
    "bert, distilbert, roberta, camembert, xlm-roberta, electra, albert, mpnet, deberta-v2 and modernbert are supported"

/* The shortest way for everything else that transformers opens. */
#define ANYTHING_ELSE \
    "use --model 'exec:python3 examples/exec_transformers.py FOLDER' --workers 1 for this one (docs/models.md)"

/* ----------------------------------------------------------------------- keys */

/* The value of a key, or NULL: null is as good as missing. */
static const json_t *value_of(sf_model_config c, const char *key)
{
    const json_t *value = json_object_get(c.json, key);
    return json_is_null(value) ? NULL : value;
}

static safer_status number_or(size_t *out, sf_model_config c, const char *key, size_t otherwise, size_t low,
                              size_t high, safer_error *error)
{
    *out = otherwise;
    return value_of(c, key) ? sf_model_config_number(out, c, key, low, high, error) : SAFER_OK;
}

/* As number_or, but numbers below 1 mean `otherwise`, too. */
static safer_status positive_or(size_t *out, sf_model_config c, const char *key, size_t otherwise, size_t high,
                                safer_error *error)
{
    const json_t *value = value_of(c, key);
    *out = otherwise;
    if (json_is_real(value) && json_real_value(value) < 1) return SAFER_OK;
    return number_or(out, c, key, otherwise, 1, high, error);
}

static safer_status flag_or(int *out, sf_model_config c, const char *key, int otherwise, safer_error *error)
{
    const json_t *value = value_of(c, key);
    *out = value ? json_is_true(value) : otherwise;
    if (value && !json_is_boolean(value))
        return sf_fail(error, SAFER_INPUT, "%s: \"%s\" must be true or false", c.file, key);
    return SAFER_OK;
}

static safer_status theta_of(double *out, sf_model_config c, const char *key, double otherwise, safer_error *error)
{
    const json_t *value = value_of(c, key);
    *out = value ? json_real_value(value) : otherwise;
    if ((value && !json_is_real(value)) || !(*out >= 1 && *out <= 1e12))
        return sf_fail(error, SAFER_INPUT, "%s: \"%s\"%s must be a number from 1 to 1e12", c.file, key, c.place);
    return SAFER_OK;
}

/* `text` or missing; `what`: what is supported. */
static safer_status only(sf_model_config c, const char *key, const char *text, safer_error *error)
{
    const json_t *value = value_of(c, key);
    const char *is = json_string_value(value);
    if (!value || (is && strcmp(is, text) == 0)) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s: \"%s\"%s is %s%.60s%s; %s is supported", c.file, key, c.place,
                   is ? "\"" : "", is ? is : "no text", is ? "\"" : "", text);
}

/* -------------------------------------------------------------------- the type */

static safer_status find_type(const struct type **out, sf_model_config c, safer_error *error)
{
    const char *type = json_string_value(json_object_get(c.json, "model_type"));
    for (int i = 0; type && i < TYPES; i++)
        if (strcmp(type, types[i].name) == 0) {
            *out = &types[i];
            return SAFER_OK;
        }
    return type ? sf_fail(error, SAFER_INPUT, "%s: the model is of type \"%.60s\"; " SUPPORTED "; " ANYTHING_ELSE,
                          c.file, type)
                : sf_fail(error, SAFER_INPUT, "%s: there is no \"model_type\"; " SUPPORTED, c.file);
}

/* What none of them may have. */
static safer_status check_common(sf_model_config c, safer_error *error)
{
    static const char *const none[] = {"rope_scaling", "quantization_config", "pruned_heads"};
    safer_status status;
    SF_TRY(only(c, "position_embedding_type", "absolute", error));
    if (json_is_true(json_object_get(c.json, "is_decoder")))
        return sf_fail(error, SAFER_INPUT, "%s: the model is a decoder; encoders are supported", c.file);
    if (json_is_true(json_object_get(c.json, "add_cross_attention")))
        return sf_fail(error, SAFER_INPUT, "%s: \"add_cross_attention\" is true; encoders are supported", c.file);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        const json_t *value = value_of(c, none[i]);
        if (value && !(json_is_object(value) && json_object_size(value) == 0))
            return sf_fail(error, SAFER_INPUT, "%s: \"%s\" is set; models without it are supported", c.file, none[i]);
    }
done:
    return status;
}

/* ------------------------------------------------------------------- families */

/* All but DistilBERT and ModernBERT, which have their own keys. */
static safer_status read_usual(sf_bert_shape *s, sf_bert_family family, sf_model_config c, safer_error *error)
{
    safer_status status;
    SF_TRY(sf_model_config_number(&s->hidden, c, "hidden_size", 1, SF_BERT_HIDDEN, error));
    SF_TRY(sf_model_config_number(&s->layers, c, "num_hidden_layers", 1, SF_BERT_LAYERS, error));
    SF_TRY(sf_model_config_number(&s->heads, c, "num_attention_heads", 1, SF_BERT_HIDDEN, error));
    SF_TRY(sf_model_config_number(&s->inner, c, "intermediate_size", 1, SF_BERT_INNER, error));
    SF_TRY(sf_bert_config_activation(&s->activation, c, "hidden_act", error));
    if (family == SF_FAMILY_DEBERTA)
        SF_TRY(number_or(&s->types, c, "type_vocab_size", 0, 0, SF_BERT_TYPES, error));
    else if (family != SF_FAMILY_MPNET)
        SF_TRY(sf_model_config_number(&s->types, c, "type_vocab_size", 1, SF_BERT_TYPES, error));
    s->epsilon = family == SF_FAMILY_DEBERTA ? 1e-7f : 1e-12f;
    if (value_of(c, "layer_norm_eps")) SF_TRY(sf_bert_config_epsilon(&s->epsilon, c, "layer_norm_eps", error));
done:
    return status;
}

static safer_status read_distil(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    safer_status status;
    SF_TRY(sf_model_config_number(&s->hidden, c, "dim", 1, SF_BERT_HIDDEN, error));
    SF_TRY(sf_model_config_number(&s->layers, c, "n_layers", 1, SF_BERT_LAYERS, error));
    SF_TRY(sf_model_config_number(&s->heads, c, "n_heads", 1, SF_BERT_HIDDEN, error));
    SF_TRY(sf_model_config_number(&s->inner, c, "hidden_dim", 1, SF_BERT_INNER, error));
    SF_TRY(sf_bert_config_activation(&s->activation, c, "activation", error));
    s->epsilon = 1e-12f;
done:
    return status;
}

/* RoBERTa counts positions from the padding piece on; MPNet from 1, whatever it is. */
static safer_status read_padding(sf_bert_shape *s, sf_bert_family family, sf_model_config c, safer_error *error)
{
    s->form.padded = 1;
    s->form.pad = 1;
    if (family == SF_FAMILY_MPNET) return SAFER_OK;
    return number_or(&s->form.pad, c, "pad_token_id", 1, 0, s->positions - 2, error);
}

static safer_status read_width(sf_bert_shape *s, size_t otherwise, sf_model_config c, safer_error *error)
{
    return number_or(&s->form.width, c, "embedding_size", otherwise, 1, SF_BERT_HIDDEN, error);
}

static safer_status read_albert(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    static const char *const ones[] = {"num_hidden_groups", "inner_group_num"};
    safer_status status;
    for (int i = 0; i < 2; i++) {
        size_t groups;
        SF_TRY(number_or(&groups, c, ones[i], 1, 0, SF_BERT_LAYERS, error));
        if (groups != 1)
            return sf_fail(error, SAFER_INPUT, "%s: \"%s\" is %zu; 1 is supported: all layers are the same", c.file,
                           ones[i], groups);
    }
    s->form.shared = 1;
    SF_TRY(read_width(s, 128, c, error));
done:
    return status;
}

static safer_status read_mpnet(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    s->form.relative = SF_RELATIVE_BIAS;
    return number_or(&s->form.buckets, c, "relative_attention_num_buckets", 32, 32, SF_BERT_POSITIONS, error);
}

/* "p2c|c2p" or ["p2c", "c2p"] */
static safer_status read_parts(sf_encoder_form *f, sf_model_config c, safer_error *error)
{
    const json_t *value = value_of(c, "pos_att_type");
    const char *text = json_string_value(value);
    size_t known = 0, count = json_is_array(value) ? json_array_size(value) : 0;
    char joined[32] = "";
    for (size_t i = 0; i < count && i < 4; i++) {
        const char *part = json_string_value(json_array_get(value, i));
        const size_t length = strlen(joined);
        snprintf(joined + length, sizeof joined - length, "%s%.6s", i ? "|" : "", part ? part : "?");
    }
    if (!text) text = joined;
    f->place_keys = strstr(text, "c2p") != NULL;
    f->place_queries = strstr(text, "p2c") != NULL;
    known = 3 * (size_t)(f->place_keys + f->place_queries) + (f->place_keys && f->place_queries);
    if (known && strlen(text) == known) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s: \"pos_att_type\" is \"%.60s\"; p2c, c2p or both are supported", c.file,
                   text);
}

static safer_status read_deberta(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    safer_status status;
    sf_encoder_form *f = &s->form;
    const char *norm = json_string_value(json_object_get(c.json, "norm_rel_ebd"));
    size_t convolution, size;
    int relative, biased;
    SF_TRY(flag_or(&relative, c, "relative_attention", 0, error));
    if (!relative)
        return sf_fail(error, SAFER_INPUT, "%s: \"relative_attention\" is not true; with it is supported", c.file);
    SF_TRY(positive_or(&convolution, c, "conv_kernel_size", 0, SF_BERT_POSITIONS, error));
    if (convolution)
        return sf_fail(error, SAFER_INPUT,
                       "%s: \"conv_kernel_size\" is %zu; models without a convolution are supported", c.file,
                       convolution);
    SF_TRY(number_or(&size, c, "attention_head_size", s->hidden / s->heads, 1, SF_BERT_HIDDEN, error));
    if (size != s->hidden / s->heads)
        return sf_fail(error, SAFER_INPUT, "%s: \"attention_head_size\" is %zu, not hidden_size / num_attention_heads",
                       c.file, size);
    f->relative = SF_RELATIVE_PARTS;
    SF_TRY(read_parts(f, c, error));
    SF_TRY(positive_or(&f->span, c, "max_relative_positions", s->positions, SF_BERT_POSITIONS, error));
    SF_TRY(positive_or(&f->buckets, c, "position_buckets", 0, SF_BERT_POSITIONS, error));
    if (f->buckets == 1 || (f->buckets && f->span < f->buckets / 2 + 2))
        return sf_fail(error, SAFER_INPUT, "%s: \"position_buckets\" is %zu, too many for %zu relative positions or 1",
                       c.file, f->buckets, f->span);
    SF_TRY(flag_or(&f->places_shared, c, "share_att_key", 0, error));
    SF_TRY(flag_or(&biased, c, "position_biased_input", 1, error));
    f->placeless = !biased;
    if (norm && strcmp(norm, "layer_norm") != 0) SF_TRY(only(c, "norm_rel_ebd", "none", error));
    f->places_normed = norm && strcmp(norm, "layer_norm") == 0;
    SF_TRY(read_width(s, s->hidden, c, error));
    if (f->width == s->hidden) f->width = 0;
    f->projected_first = f->width != 0;
done:
    return status;
}

/* ---------------------------------------------------------------- ModernBERT */

/* Which layers are local: as "layer_types" lists them, else all but every n-th. */
static safer_status read_layers(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    safer_status status;
    const json_t *list = value_of(c, "layer_types");
    size_t every;
    SF_TRY(number_or(&every, c, "global_attn_every_n_layers", 3, 1, SF_BERT_LAYERS, error));
    if (list && (!json_is_array(list) || json_array_size(list) != s->layers))
        return sf_fail(error, SAFER_INPUT, "%s: \"layer_types\" must be a list of %zu names", c.file, s->layers);
    for (size_t i = 0; i < s->layers; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        s->form.local[i] = list ? name && strcmp(name, "sliding_attention") == 0 : i % every != 0;
        if (list && !s->form.local[i] && (!name || strcmp(name, "full_attention") != 0))
            return sf_fail(error, SAFER_INPUT,
                           "%s: entry %zu of \"layer_types\" must be \"full_attention\" or \"sliding_attention\"",
                           c.file, i);
    }
done:
    return status;
}

/* "rope_parameters" of transformers 5, or the two keys of 4. */
static safer_status read_rotary(double *out, sf_model_config c, const char *layers, const char *old, double otherwise,
                                safer_error *error)
{
    safer_status status;
    const json_t *all = value_of(c, "rope_parameters"), *own = json_object_get(all, layers);
    char place[80];
    if (!all) return theta_of(out, c, old, otherwise, error);
    if (!json_is_object(own))
        return sf_fail(error, SAFER_INPUT, "%s: \"rope_parameters\" has no \"%s\" (an object)", c.file, layers);
    snprintf(place, sizeof place, " in \"%s\" of \"rope_parameters\"", layers);
    const sf_model_config c2 = {own, c.file, place};
    SF_TRY(only(c2, "rope_type", "default", error));
    SF_TRY(theta_of(out, c2, "rope_theta", otherwise, error));
done:
    return status;
}

static safer_status read_modern(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    safer_status status;
    sf_encoder_form *f = &s->form;
    int attention, inner, norm;
    size_t width;
    SF_TRY(sf_model_config_number(&s->hidden, c, "hidden_size", 1, SF_BERT_HIDDEN, error));
    SF_TRY(sf_model_config_number(&s->layers, c, "num_hidden_layers", 1, SF_BERT_LAYERS, error));
    SF_TRY(sf_model_config_number(&s->heads, c, "num_attention_heads", 1, SF_BERT_HIDDEN, error));
    SF_TRY(sf_model_config_number(&s->inner, c, "intermediate_size", 1, SF_BERT_INNER, error));
    SF_TRY(sf_bert_config_activation(&s->activation, c, "hidden_activation", error));
    s->epsilon = 1e-5f;
    if (value_of(c, "norm_eps")) SF_TRY(sf_bert_config_epsilon(&s->epsilon, c, "norm_eps", error));
    SF_TRY(flag_or(&attention, c, "attention_bias", 0, error));
    SF_TRY(flag_or(&inner, c, "mlp_bias", 0, error));
    SF_TRY(flag_or(&norm, c, "norm_bias", 0, error));
    f->attention_plain = !attention, f->inner_plain = !inner, f->norm_plain = !norm;
    f->prenorm = f->gated = f->placeless = 1;
    SF_TRY(number_or(&width, c, "local_attention", 128, 1, SF_BERT_POSITIONS, error));
    f->window = width / 2;
    SF_TRY(read_layers(s, c, error));
    SF_TRY(read_rotary(&f->theta, c, "full_attention", "global_rope_theta", 160000, error));
    SF_TRY(read_rotary(&f->local_theta, c, "sliding_attention", "local_rope_theta", 10000, error));
done:
    return status;
}

/* ------------------------------------------------------------------ the shape */

safer_status sf_bert_config_read(sf_bert_shape *s, sf_bert_family *family, sf_model_config c, safer_error *error)
{
    safer_status status;
    const struct type *type;
    SF_TRY(find_type(&type, c, error));
    SF_TRY(check_common(c, error));
    *family = type->family;
    SF_TRY(sf_model_config_number(&s->vocabulary, c, "vocab_size", 1, SF_BERT_PIECES, error));
    SF_TRY(sf_model_config_number(&s->positions, c, "max_position_embeddings", 3, SF_BERT_POSITIONS, error));
    if (type->family == SF_FAMILY_DISTIL)
        SF_TRY(read_distil(s, c, error));
    else if (type->family == SF_FAMILY_MODERN)
        SF_TRY(read_modern(s, c, error));
    else
        SF_TRY(read_usual(s, type->family, c, error));
    SF_TRY(sf_bert_config_check(s, c, error));
    if (type->family == SF_FAMILY_ALBERT) SF_TRY(read_albert(s, c, error));
    if (type->family == SF_FAMILY_DEBERTA) SF_TRY(read_deberta(s, c, error));
    if (type->family == SF_FAMILY_MPNET) SF_TRY(read_mpnet(s, c, error));
    if (strcmp(type->name, "electra") == 0) {
        SF_TRY(read_width(s, 128, c, error));
        if (s->form.width == s->hidden) s->form.width = 0; /* then there is no matrix */
    } else if (type->family == SF_FAMILY_ROBERTA || type->family == SF_FAMILY_MPNET) {
        SF_TRY(read_padding(s, type->family, c, error));
    }
    SF_TRY(sf_bert_config_check(s, c, error));
done:
    return status;
}

/* ------------------------------------------------------------------- the head */

/* The dense layer before the classifier. */
static safer_status read_dense(sf_bert_shape *s, sf_model_config c, safer_error *error)
{
    safer_status status;
    const struct type *type;
    const char *pooling = json_string_value(json_object_get(c.json, "classifier_pooling"));
    size_t size;
    int bias;
    SF_TRY(find_type(&type, c, error));
    s->pool = SF_POOL_POOLER;
    s->pooler = type->head;
    if (type->family == SF_FAMILY_DEBERTA) {
        SF_TRY(sf_bert_config_dense(&s->pooler, c, "pooler_hidden_act", error));
        SF_TRY(number_or(&size, c, "pooler_hidden_size", s->hidden, 1, SF_BERT_HIDDEN, error));
        if (size != s->hidden)
            return sf_fail(error, SAFER_INPUT, "%s: \"pooler_hidden_size\" is %zu; hidden_size, %zu, is supported",
                           c.file, size, s->hidden);
    }
    if (type->family != SF_FAMILY_MODERN) return SAFER_OK;
    SF_TRY(sf_bert_config_dense(&s->pooler, c, "classifier_activation", error));
    SF_TRY(flag_or(&bias, c, "classifier_bias", 0, error));
    s->form.dense_plain = !bias;
    s->form.dense_norm = 1;
    s->form.dense_mean = pooling && strcmp(pooling, "mean") == 0;
    if (!s->form.dense_mean) SF_TRY(only(c, "classifier_pooling", "cls", error));
done:
    return status;
}

/* A certificate is about one class of several. What else a head may be for is asked through a program that makes two
 * classes of it. */
static safer_status check_problem(sf_model_config c, size_t outputs, safer_error *error)
{
    const json_t *value = value_of(c, "problem_type");
    const char *problem = json_string_value(value);
    if (problem && strcmp(problem, "multi_label_classification") == 0)
        return sf_fail(
            error, SAFER_INPUT,
            "%s: \"problem_type\" is multi_label_classification: a text may have several labels; certify one "
            "of them: --model 'exec:python3 examples/exec_transformers.py FOLDER --label NAME' --workers 1",
            c.file);
    if ((problem && strcmp(problem, "regression") == 0) || (!value && outputs == 1))
        return sf_fail(error, SAFER_INPUT,
                       "%s: the model gives a number, not a class (regression); say which numbers are a class: "
                       "--model 'exec:python3 examples/exec_transformers.py FOLDER --threshold T' --workers 1",
                       c.file);
    return only(c, "problem_type", "single_label_classification", error);
}

safer_status sf_bert_config_head(sf_bert_shape *s, const sf_bert_source *source, sf_model_config c, safer_error *error)
{
    const sf_bert_found *classifier = sf_bert_source_find(source, "classifier.weight");
    const char *architecture = json_string_value(json_array_get(json_object_get(c.json, "architectures"), 0));
    size_t classes = classifier->tensor.rank == 2 ? classifier->tensor.shape[classifier->transposed] : 0;
    if (architecture && !strstr(architecture, "ForSequenceClassification"))
        return sf_fail(error, SAFER_INPUT,
                       "%s: the architecture \"%.80s\" does not classify texts (ForSequenceClassification does)",
                       c.file, architecture);
    const safer_status status = check_problem(c, classes, error);
    if (status != SAFER_OK) return status;
    if (classes < 2 || classes > SF_BERT_CLASSES)
        return sf_fail(error, SAFER_INPUT, "%s: tensor \"%.200s\" must have from 2 to %d rows, one per class",
                       classifier->file, classifier->tensor.name, SF_BERT_CLASSES);
    s->classes = classes;
    return read_dense(s, c, error);
}
