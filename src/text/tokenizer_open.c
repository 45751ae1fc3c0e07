/* Tokenizers from HuggingFace folders: the description, from whichever files are there, and what tokenizer_config.json
 * changes in it, as in `transformers`. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer_parts.h"

#include <string.h>
#include <unistd.h>

typedef struct folder {
    const char *path;
    sf_digest_list *read;
    json_t *config, *map; /* tokenizer_config.json and special_tokens_map.json, or NULL */
} folder;

enum { MOST_BYTES = 1 << 28 }; /* of a file: sixteen times the largest there is */

safer_status sf_tokenizer_load(sf_file *out, const char *path, safer_error *error)
{
    sf_file file = {0};
    safer_status status = sf_file_load(&file, path, error);
    if (status != SAFER_OK) return status;
    if (file.length > MOST_BYTES) {
        status = sf_fail(error, SAFER_INPUT, "%s: a file of %zu bytes; a tokenizer's are read up to %d", path,
                         file.length, MOST_BYTES);
        sf_file_free(&file);
        return status;
    }
    *out = file;
    return SAFER_OK;
}

static safer_status load(sf_file *out, const folder *f, const char *file, sf_buffer *path, safer_error *error)
{
    sf_buffer_clear(path);
    if (sf_buffer_format(path, "%s/%s", f->path, file)) return sf_fail_memory(error);
    safer_status status = sf_tokenizer_load(out, path->bytes, error);
    return status == SAFER_OK ? sf_digest_list_add(f->read, file, out->bytes, out->length, error) : status;
}

static int is_there(const folder *f, const char *file, sf_buffer *path)
{
    sf_buffer_clear(path);
    return !sf_buffer_format(path, "%s/%s", f->path, file) && access(path->bytes, F_OK) == 0;
}

/* A file that is an object; *out stays NULL when it is not there. */
static safer_status load_json(json_t **out, const folder *f, const char *file, size_t flags, safer_error *error)
{
    sf_file bytes = {0};
    sf_buffer path = {0};
    json_error_t problem;
    safer_status status = SAFER_OK;
    if (!is_there(f, file, &path)) goto done;
    SF_TRY(load(&bytes, f, file, &path, error));
    status = sf_json_parse(out, bytes.bytes, bytes.length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | flags, &problem);
    if (status == SAFER_MEMORY)
        status = sf_fail_memory(error);
    else if (status != SAFER_OK)
        status = sf_fail(error, SAFER_INPUT, "%s, line %d: %s", path.bytes, problem.line, problem.text);
    else if (!json_is_object(*out))
        status = sf_fail(error, SAFER_INPUT, "%s is not a JSON object", path.bytes);
done:
    sf_file_free(&bytes);
    sf_buffer_free(&path);
    return status;
}

/* ------------------------------------------------------------- older files */

/* The name that a role has ("cls_token"), or NULL: a string, or an object with its content. */
static const char *role_name(const folder *f, const char *role, const char *missing)
{
    const json_t *value = json_object_get(f->config, role);
    if (!value || json_is_null(value)) value = json_object_get(f->map, role);
    if (json_is_object(value)) value = json_object_get(value, "content");
    return json_is_string(value) ? json_string_value(value) : missing;
}

/* The special tokens of a vocabulary, whatever their numbers, and the frame that two of them make. */
static void add_specials(json_t **root, const folder *f, json_t *vocab, const char *const names[5])
{
    static const char *const roles[] = {"cls_token", "sep_token", "unk_token", "pad_token", "mask_token"};
    json_t *list = json_array(), *frame = json_object(), *padding = json_object();
    for (size_t i = 0; i < 5; i++) {
        const char *name = role_name(f, roles[i], names[i]);
        json_t *id = json_object_get(vocab, name), *token = json_object(), *pair = json_array();
        sf_json_put(&token, "id", json_incref(id));
        sf_json_put(&token, "content", json_string(name));
        sf_json_put(&token, "lstrip", json_boolean(i == 4 && names[4][0] == '<'));
        sf_json_put(&token, "normalized", json_false());
        if (id)
            sf_json_push(&list, token);
        else
            json_decref(token);
        sf_json_push(&pair, json_string(name));
        sf_json_push(&pair, id ? json_incref(id) : json_null());
        if (i < 2)
            sf_json_put(&frame, i ? "sep" : "cls", pair);
        else
            json_decref(pair);
        if (i == 3 && id) sf_json_put(&padding, "pad_id", json_incref(id));
    }
    sf_json_put(&frame, "type", json_string("BertProcessing"));
    sf_json_put(root, "added_tokens", list);
    sf_json_put(root, "post_processor", frame);
    if (json_object_size(padding))
        sf_json_put(root, "padding", padding);
    else
        json_decref(padding);
}

/* merges.txt: a pair on every line; the first may be "#version: 0.2". */
static json_t *read_merges(const sf_file *file)
{
    json_t *list = json_array();
    const char *p = file->bytes, *end = p + file->length;
    for (int first = 1; p < end && list; first = 0) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t length = (size_t)((stop ? stop : end) - p);
        const char *line = p;
        p = stop ? stop + 1 : end;
        while (length && (line[length - 1] == '\r' || line[length - 1] == ' ')) length--;
        if (length == 0 || (first && length >= 8 && memcmp(line, "#version", 8) == 0)) continue;
        json_t *merge = json_stringn(line, length);
        sf_json_push(&list, merge ? merge : json_null()); /* what is not UTF-8 is refused as no pair of pieces */
    }
    return list;
}

static safer_status describe_bpe(json_t **out, const folder *f, const char *type, safer_error *error)
{
    static const char *const roberta[] = {"<s>", "</s>", "<unk>", "<pad>", "<mask>"};
    json_t *vocab = NULL, *model = json_object(), *cut = json_object(), *root = json_object();
    sf_file merges = {0};
    sf_buffer path = {0};
    safer_status status = SAFER_OK;
    if (!type || (strcmp(type, "roberta") != 0 && strcmp(type, "longformer") != 0)) {
        status = sf_fail(error, SAFER_INPUT,
                         "%s: vocab.json and merges.txt alone are read for roberta and longformer; others need a "
                         "tokenizer.json",
                         f->path);
        goto done;
    }
    SF_TRY(load_json(&vocab, f, "vocab.json", 0, error));
    SF_TRY(load(&merges, f, "merges.txt", &path, error));
    sf_json_put(&model, "type", json_string("BPE"));
    sf_json_put(&model, "vocab", json_incref(vocab));
    sf_json_put(&model, "merges", read_merges(&merges));
    sf_json_put(&cut, "type", json_string("ByteLevel"));
    sf_json_put(&cut, "add_prefix_space", json_false()); /* tokenizer_config.json may say otherwise */
    add_specials(&root, f, vocab, roberta);
    sf_json_put(&root, "model", json_incref(model));
    sf_json_put(&root, "pre_tokenizer", json_incref(cut));
    if (!root) {
        status = sf_fail_memory(error);
        goto done;
    }
    *out = json_incref(root);
done:
    json_decref(vocab);
    json_decref(model);
    json_decref(cut);
    json_decref(root);
    sf_file_free(&merges);
    sf_buffer_free(&path);
    return status;
}

/* vocab.txt: a piece on every line. */
static safer_status read_lines(json_t **out, const sf_file *file, const char *path, safer_error *error)
{
    const char *p = file->bytes, *end = p + file->length;
    *out = json_object();
    for (json_int_t number = 0; p < end; number++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t length = (size_t)((stop ? stop : end) - p);
        char *piece = sf_strndup(p, length - (length && p[length - 1] == '\r'));
        p = stop ? stop + 1 : end;
        if (!piece || !*out) {
            free(piece);
            return sf_fail_memory(error);
        }
        const int twice = json_object_get(*out, piece) != NULL;
        const int failed = *piece && !twice && json_object_set_new(*out, piece, json_integer(number)) != 0;
        free(piece);
        if (failed || twice)
            return sf_fail(error, SAFER_INPUT, "%s, line %lld: the piece %s", path, (long long)number + 1,
                           twice ? "is there already" : "is not UTF-8");
    }
    return SAFER_OK;
}

static safer_status describe_words(json_t **out, const folder *f, safer_error *error)
{
    static const char *const bert[] = {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"};
    json_t *vocab = NULL, *root = NULL, *model = json_object();
    sf_file file = {0};
    sf_buffer path = {0};
    static const char steps[] =
        "{\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}}";
    safer_status status = SAFER_OK;
    SF_TRY(load(&file, f, "vocab.txt", &path, error));
    SF_TRY(read_lines(&vocab, &file, path.bytes, error));
    sf_json_put(&model, "type", json_string("WordPiece"));
    sf_json_put(&model, "unk_token", json_string(role_name(f, "unk_token", bert[2])));
    sf_json_put(&model, "vocab", json_incref(vocab));
    SF_TRY(sf_json_parse(&root, steps, strlen(steps), 0, NULL));
    add_specials(&root, f, vocab, bert);
    sf_json_put(&root, "model", json_incref(model));
    if (!root) {
        status = sf_fail_memory(error);
        goto done;
    }
    *out = json_incref(root);
done:
    json_decref(vocab);
    json_decref(model);
    json_decref(root);
    sf_file_free(&file);
    sf_buffer_free(&path);
    return status;
}

/* ----------------------------------------------------- tokenizer_config.json */

/* A switch of the configuration, in every step of a type that has it. */
static void change_steps(json_t *step, const char *type, const char *key, const json_t *value)
{
    static const char *const lists[] = {"normalizers", "pretokenizers"};
    const char *its = json_string_value(json_object_get(step, "type"));
    if (its && strcmp(its, type) == 0) json_object_set(step, key, (json_t *)(uintptr_t)value);
    for (size_t k = 0; its && strcmp(its, "Sequence") == 0 && k < 2; k++) {
        json_t *member;
        size_t i;
        json_array_foreach(json_object_get(step, lists[k]), i, member) change_steps(member, type, key, value);
    }
}

/* The smaller length of the two files; the side of this one, where it has one. */
static safer_status apply_truncation(json_t *root, const folder *f, safer_error *error)
{
    const json_t *given = json_object_get(f->config, "truncation_side"), *there = json_object_get(root, "truncation");
    const char *side = json_string_value(given);
    const double length = json_is_object(there) ? json_number_value(json_object_get(there, "max_length")) : 1e15,
                 own = json_number_value(json_object_get(f->config, "model_max_length"));
    const int shorter = own >= 1 && own < 1e9 && own < length;
    if (given && !json_is_null(given) && (!side || (strcmp(side, "left") != 0 && strcmp(side, "right") != 0)))
        return sf_fail(error, SAFER_INPUT, "%s/tokenizer_config.json: \"truncation_side\" is neither left nor right",
                       f->path);
    if (!side && !shorter) return SAFER_OK;
    json_t *truncation = json_object(), *direction = json_object_get(there, "direction");
    const double most = shorter ? own : length; /* a file may say any number */
    sf_json_put(&truncation, "max_length", json_integer(most >= 1 ? (json_int_t)(most < 1e15 ? most : 1e15) : 0));
    if (side)
        sf_json_put(&truncation, "direction", json_string(strcmp(side, "left") == 0 ? "Left" : "Right"));
    else if (direction)
        sf_json_put(&truncation, "direction", json_incref(direction));
    return !truncation || json_object_set_new(root, "truncation", truncation) ? sf_fail_memory(error) : SAFER_OK;
}

static safer_status apply_config(json_t *root, const folder *f, safer_error *error)
{
    static const char *const bert[][2] = {{"do_lower_case", "lowercase"},
                                          {"strip_accents", "strip_accents"},
                                          {"tokenize_chinese_chars", "handle_chinese_chars"}};
    const json_t *prefix = json_object_get(f->config, "add_prefix_space");
    for (size_t i = 0; i < 3; i++) {
        const json_t *value = json_object_get(f->config, bert[i][0]);
        if (json_is_boolean(value))
            change_steps(json_object_get(root, "normalizer"), "BertNormalizer", bert[i][1], value);
    }
    if (json_is_boolean(prefix))
        change_steps(json_object_get(root, "pre_tokenizer"), "ByteLevel", "add_prefix_space", prefix);
    const safer_status status = apply_truncation(root, f, error);
    if (status != SAFER_OK) return status;
    const char *pad = role_name(f, "pad_token", NULL);
    if (pad && !json_is_object(json_object_get(root, "padding"))) {
        json_t *padding = json_object();
        sf_json_put(&padding, "pad_token", json_string(pad));
        if (!padding || json_object_set_new(root, "padding", padding)) return sf_fail_memory(error);
    }
    return SAFER_OK;
}

/* The description that the folder holds, whichever files it has. */
static safer_status describe(json_t **out, const folder *f, const char *type, safer_error *error)
{
    static const char *const models[] = {"sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model"};
    sf_file file = {0};
    sf_buffer path = {0};
    safer_status status = SAFER_OK;
    SF_TRY(load_json(out, f, "tokenizer.json", 0, error));
    if (*out) goto done;
    if (is_there(f, "vocab.json", &path) && is_there(f, "merges.txt", &path)) {
        status = describe_bpe(out, f, type, error);
        goto done;
    }
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (!is_there(f, models[i], &path)) continue;
        SF_TRY(load(&file, f, models[i], &path, error));
        status = sf_tokenizer_describe_sentencepiece(out, file.bytes, file.length, type, path.bytes, error);
        goto done;
    }
    if (is_there(f, "vocab.txt", &path))
        status = describe_words(out, f, error);
    else
        status = sf_fail(
            error, SAFER_INPUT,
            "%s has no tokenizer: neither tokenizer.json, nor vocab.json and merges.txt, nor a sentencepiece "
            "model, nor vocab.txt",
            f->path);
done:
    sf_file_free(&file);
    sf_buffer_free(&path);
    return status;
}

/* Older files: added_tokens.json may say nothing that the description does not. */
static safer_status check_added(const sf_tokenizer *t, const folder *f, safer_error *error)
{
    json_t *added = NULL, *id;
    const char *token;
    safer_status status = load_json(&added, f, "added_tokens.json", 0, error);
    json_object_foreach(added, token, id)
    {
        const uint32_t number = sf_tokenizer_find(t, token, strlen(token));
        if (status != SAFER_OK || (number != SF_NONE && json_is_integer(id) && json_integer_value(id) == number))
            continue;
        status = sf_fail(error, SAFER_INPUT, "%s/added_tokens.json: the token \"%.80s\" needs a tokenizer.json",
                         f->path, token);
    }
    json_decref(added);
    return status;
}

safer_status sf_tokenizer_open(sf_tokenizer **out, const char *directory, const char *type, sf_digest_list *read,
                               safer_error *error)
{
    folder f = {directory, read, NULL, NULL};
    json_t *root = NULL;
    sf_tokenizer *t = NULL;
    sf_buffer name = {0};
    safer_status status = SAFER_OK;
    /* "model_max_length" is often 10^30: whole numbers are read as real ones. */
    SF_TRY(load_json(&f.config, &f, "tokenizer_config.json", JSON_DECODE_INT_AS_REAL, error));
    SF_TRY(load_json(&f.map, &f, "special_tokens_map.json", 0, error));
    SF_TRY(describe(&root, &f, type, error));
    SF_TRY(apply_config(root, &f, error));
    if (sf_buffer_format(&name, "%s/tokenizer.json", directory)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_tokenizer_build(&t, root, name.bytes, error));
    if (!is_there(&f, "tokenizer.json", &name)) SF_TRY(check_added(t, &f, error));
    *out = t;
    t = NULL;
done:
    sf_tokenizer_free(t);
    json_decref(root);
    json_decref(f.config);
    json_decref(f.map);
    sf_buffer_free(&name);
    return status;
}
