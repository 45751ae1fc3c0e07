/* A tokenizer from its description, the contents of a tokenizer.json. */
#include "base/json.h"
#include "base/memory.h"
#include "text/tokenizer_parts.h"

#include <string.h>

safer_status sf_json_flag(int *out, const json_t *object, const char *key, int missing, const char *name,
                          safer_error *error)
{
    const json_t *value = json_object_get(object, key);
    *out = missing;
    if (!value || json_is_null(value)) return SAFER_OK;
    if (!json_is_boolean(value)) return sf_fail(error, SAFER_INPUT, "%s: %s is neither true nor false", name, key);
    *out = json_is_true(value);
    return SAFER_OK;
}

safer_status sf_json_string(const char **out, size_t *length, const json_t *object, const char *key, const char *name,
                            safer_error *error)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value)) return sf_fail(error, SAFER_INPUT, "%s: %s is not a string", name, key);
    *out = json_string_value(value);
    *length = json_string_length(value);
    return SAFER_OK;
}

safer_status sf_json_type(const char **out, const json_t *object, const char *part, const char *name,
                          safer_error *error)
{
    *out = json_string_value(json_object_get(object, "type"));
    return *out ? SAFER_OK : sf_fail(error, SAFER_INPUT, "%s: a %s without its type", name, part);
}

/* ------------------------------------------------------------------- frame */

/* The number of a special token, checked. */
static safer_status read_id(uint32_t *out, const sf_tokenizer *t, const json_t *value, const char *name,
                            safer_error *error)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) >= t->size)
        return sf_fail(error, SAFER_INPUT, "%s: a special token of the post_processor has no number of the vocabulary",
                       name);
    *out = (uint32_t)json_integer_value(value);
    return SAFER_OK;
}

/* Puts one more frame around what is there. */
static safer_status wrap(sf_tokenizer *t, const sf_ids *before, const sf_ids *after, safer_error *error)
{
    sf_ids all = {0};
    int failed = 0;
    for (size_t i = 0; i < before->count; i++) failed |= sf_ids_push(&all, before->ids[i]);
    for (size_t i = 0; i < t->frame.count; i++) failed |= sf_ids_push(&all, t->frame.ids[i]);
    for (size_t i = 0; i < after->count; i++) failed |= sf_ids_push(&all, after->ids[i]);
    if (failed) {
        sf_ids_free(&all);
        return sf_fail_memory(error);
    }
    sf_ids_free(&t->frame);
    t->frame = all;
    t->before += before->count;
    return SAFER_OK;
}

/* BertProcessing and RobertaProcessing: "cls" and "sep", each [name, number]. */
static safer_status read_pair(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    uint32_t cls, sep;
    safer_status status = SAFER_OK;
    SF_TRY(read_id(&cls, t, json_array_get(json_object_get(value, "cls"), 1), name, error));
    SF_TRY(read_id(&sep, t, json_array_get(json_object_get(value, "sep"), 1), name, error));
    status = wrap(t, &(sf_ids){&cls, 1, 1}, &(sf_ids){&sep, 1, 1}, error);
done:
    return status;
}

/* One special token of a template. */
static safer_status read_special(sf_ids *out, const sf_tokenizer *t, const json_t *special, const json_t *tokens,
                                 const char *name, safer_error *error)
{
    const char *key = json_string_value(json_object_get(special, "id"));
    const json_t *list = key ? json_object_get(json_object_get(tokens, key), "ids") : NULL, *value;
    size_t i;
    if (!json_is_array(list))
        return sf_fail(error, SAFER_INPUT, "%s: a special token of the template is not among special_tokens", name);
    json_array_foreach(list, i, value)
    {
        uint32_t id = 0;
        safer_status status = read_id(&id, t, value, name, error);
        if (status != SAFER_OK) return status;
        if (sf_ids_push(out, id)) return sf_fail_memory(error);
    }
    return SAFER_OK;
}

static safer_status read_template(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    const json_t *list = json_object_get(value, "single"), *tokens = json_object_get(value, "special_tokens"), *piece;
    sf_ids sides[2] = {{0}, {0}};
    int texts = 0;
    size_t i;
    safer_status status = SAFER_OK;
    json_array_foreach(list, i, piece)
    {
        const json_t *special = json_object_get(piece, "SpecialToken"), *text = json_object_get(piece, "Sequence");
        const json_t *type = json_object_get(special ? special : text, "type_id");
        if ((!special && !text) || (type && json_integer_value(type) != 0)) {
            status = sf_fail(error, SAFER_INPUT,
                             "%s: the template has a piece of another kind, or a type_id that is not 0", name);
            goto done;
        }
        if (special)
            SF_TRY(read_special(&sides[texts > 0], t, special, tokens, name, error));
        else
            texts++;
    }
    if (texts != 1)
        status = sf_fail(error, SAFER_INPUT, "%s: the template for one text does not have one text", name);
    else
        status = wrap(t, &sides[0], &sides[1], error);
done:
    sf_ids_free(&sides[0]);
    sf_ids_free(&sides[1]);
    return status;
}

safer_status sf_tokenizer_read_frame(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    const char *type;
    if (!value || json_is_null(value)) return SAFER_OK;
    safer_status status = sf_json_type(&type, value, "post_processor", name, error);
    if (status != SAFER_OK) return status;
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(value, "processors"), *member;
        size_t i;
        if (!json_is_array(list)) return sf_fail(error, SAFER_INPUT, "%s: a Sequence without processors", name);
        json_array_foreach(list, i, member)
        {
            if (json_is_null(member)) return sf_fail(error, SAFER_INPUT, "%s: a post_processor is null", name);
            status = sf_tokenizer_read_frame(t, member, name, error);
            if (status != SAFER_OK) return status;
        }
        return SAFER_OK;
    }
    if (strcmp(type, "ByteLevel") == 0) return SAFER_OK; /* it changes offsets alone */
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
        return read_pair(t, value, name, error);
    if (strcmp(type, "TemplateProcessing") == 0) return read_template(t, value, name, error);
    return sf_fail(error, SAFER_INPUT, "%s: post_processor '%.*s' is not supported", name,
                   sf_clip(type, strlen(type), 80), type);
}

/* ------------------------------------------------------------------- whole */

static safer_status read_model(sf_tokenizer *t, const json_t *model, const char *name, safer_error *error)
{
    static const char *const kinds[] = {"BPE", "Unigram", "WordPiece", "WordLevel"};
    const json_t *member = json_object_get(model, "type");
    const char *type = json_string_value(member);
    size_t kind = 0;
    safer_status status = SAFER_OK;
    /* Files of old versions do not say it. */
    if (!type && json_object_get(model, "merges")) type = "BPE";
    if (!type) return sf_fail(error, SAFER_INPUT, "%s: a model without its type", name);
    while (kind < 4 && strcmp(type, kinds[kind]) != 0) kind++;
    if (kind == 4)
        return sf_fail(error, SAFER_INPUT, "%s: model '%.*s' is not supported", name, sf_clip(type, strlen(type), 80),
                       type);
    t->kind = (sf_model_kind)kind;
    if (t->kind != SF_MODEL_UNIGRAM) SF_TRY(sf_vocabulary_read(&t->vocabulary, model, name, error));
    switch (t->kind) {
    case SF_MODEL_BPE: status = sf_bpe_read(&t->bpe, &t->vocabulary, model, name, error); break;
    case SF_MODEL_UNIGRAM: status = sf_unigram_read(&t->unigram, &t->vocabulary, model, name, error); break;
    case SF_MODEL_WORDPIECE: status = sf_wordpieces_read(&t->wordpieces, &t->vocabulary, model, name, error); break;
    case SF_MODEL_WORDLEVEL: status = sf_wordlevel_read(&t->wordlevel_unk, &t->vocabulary, model, name, error); break;
    }
    t->size = t->vocabulary.size;
done:
    return status;
}

static safer_status read_truncation(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    const json_t *most = json_object_get(value, "max_length"), *direction = json_object_get(value, "direction");
    const char *side = direction ? json_string_value(direction) : "Right";
    t->longest = SIZE_MAX;
    if (!value || json_is_null(value)) return SAFER_OK;
    if (!json_is_integer(most) || json_integer_value(most) < 1)
        return sf_fail(error, SAFER_INPUT, "%s: truncation has no max_length", name);
    if (!side || (strcmp(side, "Left") != 0 && strcmp(side, "Right") != 0))
        return sf_fail(error, SAFER_INPUT, "%s: the direction of the truncation is neither Left nor Right", name);
    t->ending = strcmp(side, "Left") == 0;
    t->longest = (size_t)json_integer_value(most);
    return SAFER_OK;
}

static safer_status read_padding(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    const json_t *id = json_object_get(value, "pad_id"), *token = json_object_get(value, "pad_token");
    t->pad = SF_NONE;
    if (!value || json_is_null(value)) return SAFER_OK;
    if (json_is_integer(id) && json_integer_value(id) >= 0 && (uint64_t)json_integer_value(id) < t->size)
        t->pad = (uint32_t)json_integer_value(id);
    else if (!id && json_is_string(token))
        t->pad = sf_tokenizer_find(t, json_string_value(token), json_string_length(token));
    return t->pad == SF_NONE ? sf_fail(error, SAFER_INPUT, "%s: what pads is not in the vocabulary", name) : SAFER_OK;
}

/* What the steps must agree on. */
static safer_status check_steps(sf_tokenizer *t, const char *name, safer_error *error)
{
    const int bytes = t->cut_count && t->cuts[t->cut_count - 1].kind == SF_CUT_BYTES;
    if (bytes && t->kind != SF_MODEL_BPE)
        return sf_fail(error, SAFER_INPUT, "%s: the ByteLevel pre_tokenizer is supported with a BPE model only", name);
    t->bpe.byte_level = bytes;
    return SAFER_OK;
}

static safer_status keep_text(sf_tokenizer *t, json_t *root, safer_error *error)
{
    json_object_del(root, "decoder");
    return sf_json_add(&t->text, root) ? sf_fail_memory(error) : SAFER_OK;
}

safer_status sf_tokenizer_build(sf_tokenizer **out, json_t *root, const char *name, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_tokenizer *t = sf_calloc(1, sizeof *t);
    if (!t) return sf_fail_memory(error);
    if (!json_is_object(root)) {
        status = sf_fail(error, SAFER_INPUT, "%s is not a JSON object", name);
        goto done;
    }
    SF_TRY(read_model(t, json_object_get(root, "model"), name, error));
    SF_TRY(sf_tokenizer_read_normalizer(t, json_object_get(root, "normalizer"), name, error));
    SF_TRY(sf_tokenizer_read_cuts(t, json_object_get(root, "pre_tokenizer"), name, error));
    SF_TRY(check_steps(t, name, error));
    SF_TRY(sf_tokenizer_read_added(t, json_object_get(root, "added_tokens"), name, error));
    SF_TRY(sf_tokenizer_read_frame(t, json_object_get(root, "post_processor"), name, error));
    SF_TRY(read_truncation(t, json_object_get(root, "truncation"), name, error));
    SF_TRY(read_padding(t, json_object_get(root, "padding"), name, error));
    SF_TRY(keep_text(t, root, error));
    *out = t;
    t = NULL;
done:
    sf_tokenizer_free(t);
    return status;
}

safer_status sf_tokenizer_parse(sf_tokenizer **out, const char *json, size_t length, const char *name,
                                safer_error *error)
{
    json_t *root = NULL;
    json_error_t problem;
    safer_status status = sf_json_parse(&root, json, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
    if (status == SAFER_INPUT) return sf_fail(error, SAFER_INPUT, "%s, line %d: %s", name, problem.line, problem.text);
    if (status != SAFER_OK) return sf_fail_memory(error);
    status = sf_tokenizer_build(out, root, name, error);
    json_decref(root);
    return status;
}
