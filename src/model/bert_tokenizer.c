/* The tokenizer of a checkpoint: as a folder has it, and as the one-file form keeps it.
 *
 * BERT's own is two metadata, "vocabulary" and "tokenizer" (its options); any other is one, "tokenizer.json", which
 * sf_tokenizer_text writes. The model must have a row for every number, and room for at least one piece of a text. */
#include "base/memory.h"
#include "model/bert_names.h"
#include "text/unicode.h"

#include <string.h>

/* ------------------------------------------------------------------- writing */

static int write_options(sf_buffer *out, const sf_wordpiece_options *o)
{
    return sf_buffer_format(out, "{\"lower\":%s,\"accents\":%s,\"ideographs\":%s,\"clean\":%s,\"longest\":%zu}",
                            o->lower ? "true" : "false", o->accents ? "true" : "false",
                            o->ideographs ? "true" : "false", o->clean ? "true" : "false", o->longest);
}

safer_status sf_bert_tokenizer_write(sf_buffer *vocabulary, sf_buffer *tokenizer, const sf_piecer *piecer,
                                     const char *path, safer_error *error)
{
    const sf_wordpiece *w = sf_piecer_wordpiece(piecer);
    if (!w) return sf_tokenizer_text(tokenizer, sf_piecer_tokenizer(piecer)) ? sf_fail_memory(error) : SAFER_OK;
    if (sf_wordpiece_vocabulary(vocabulary, w) || write_options(tokenizer, sf_wordpiece_get_options(w)))
        return sf_fail_memory(error);
    const sf_buffer *v = vocabulary; /* will be a string in JSON */
    if (v->length == 0 || memchr(v->bytes, '\0', v->length) || sf_utf8_valid(v->bytes, v->length) != v->length)
        return sf_fail(error, SAFER_INPUT, "%s: a word piece of the vocabulary is not UTF-8 or holds a zero byte",
                       path);
    return SAFER_OK;
}

/* ------------------------------------------------------------------- reading */

static safer_status read_wordpiece(sf_piecer **out, const sf_safetensors *file, safer_error *error)
{
    safer_status status;
    const char *name = sf_safetensors_name(file), *vocabulary = sf_safetensors_metadata(file, "vocabulary");
    json_t *json = NULL;
    sf_wordpiece *wordpiece = NULL;
    sf_wordpiece_options options = {0};
    const struct {
        const char *key;
        int *out;
    } flags[] = {{"lower", &options.lower},
                 {"accents", &options.accents},
                 {"ideographs", &options.ideographs},
                 {"clean", &options.clean}};
    SF_TRY(sf_model_config_read(&json, file, "tokenizer", error));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const json_t *flag = json_object_get(json, flags[i].key);
        if (!json_is_boolean(flag)) {
            status = sf_fail(error, SAFER_INPUT, "%s: \"%s\" in the metadata \"tokenizer\" must be true or false", name,
                             flags[i].key);
            goto done;
        }
        *flags[i].out = json_is_true(flag);
    }
    sf_model_config config = {json, name, " in the metadata \"tokenizer\""};
    SF_TRY(sf_model_config_number(&options.longest, config, "longest", 1, (size_t)1 << 53, error));
    if (!vocabulary) {
        status = sf_fail(error, SAFER_INPUT, "%s: the metadata have no \"vocabulary\"", name);
        goto done;
    }
    SF_TRY(sf_wordpiece_new(&wordpiece, vocabulary, strlen(vocabulary), &options, name, error));
    status = sf_piecer_of_wordpiece(out, wordpiece, error);
done:
    json_decref(json);
    return status;
}

static safer_status read_other(sf_piecer **out, const char *text, const char *file, safer_error *error)
{
    safer_status status;
    sf_tokenizer *tokenizer = NULL;
    sf_buffer name = {0};
    if (sf_buffer_format(&name, "%s: metadata \"tokenizer.json\"", file)) return sf_fail_memory(error);
    SF_TRY(sf_tokenizer_parse(&tokenizer, text, strlen(text), name.bytes, error));
    status = sf_piecer_of_tokenizer(out, tokenizer, error);
done:
    sf_buffer_free(&name);
    return status;
}

/* Whether it suits the model: rows of the embedding, and places. */
static safer_status check(const sf_piecer *piecer, const sf_bert_shape *shape, const char *name, safer_error *error)
{
    const size_t size = sf_piecer_size(piecer), framed = sf_piecer_framed(piecer);
    if (size > shape->vocabulary)
        return sf_fail(error, SAFER_INPUT,
                       "%s: the tokenizer has %zu pieces, but the embedding of the model has %zu rows only", name, size,
                       shape->vocabulary);
    if (shape->tokens <= framed)
        return sf_fail(error, SAFER_INPUT,
                       "%s: %zu tokens are room for no piece of a text between the %zu that the tokenizer puts around "
                       "it",
                       name, shape->tokens, framed);
    return SAFER_OK;
}

safer_status sf_bert_tokenizer_read(sf_piecer **out, const sf_bert_shape *shape, const sf_safetensors *file,
                                    safer_error *error)
{
    const char *name = sf_safetensors_name(file), *text = sf_safetensors_metadata(file, "tokenizer.json");
    safer_status status = text ? read_other(out, text, name, error) : read_wordpiece(out, file, error);
    return status == SAFER_OK ? check(*out, shape, name, error) : status;
}

safer_status sf_bert_tokenizer_open(sf_piecer **out, sf_bert_shape *shape, const char *folder, const char *type,
                                    sf_digest_list *read, safer_error *error)
{
    safer_status status = sf_piecer_open(out, folder, type, read, error);
    if (status != SAFER_OK) return status;
    if (sf_piecer_tokenizer(*out)) { /* BERT's own has been asked already */
        const size_t longest = sf_piecer_longest(*out), most = sf_bert_most_tokens(shape);
        shape->tokens = longest < most ? longest : most;
    }
    shape->ending = sf_piecer_ending(*out);
    return check(*out, shape, folder, error);
}
