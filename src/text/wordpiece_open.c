/* Vocabularies as HuggingFace keeps them, turned into the text form.
 *
 * tokenizer.json says everything itself; tokenizer_config.json overrides its options, as
 * it does in `transformers`. Without it there is vocab.txt, where tokenizer_config.json,
 * special_tokens_map.json and added_tokens.json say what is special. The text form is read by
 * wordpiece_new.c; docs/design.md, "From a text to BERT's answer", has the rest of the way. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "text/tokenizer_parts.h"
#include "text/wordpiece_parts.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#define MAX_NUMBER 16000000 /* of a piece */

/* --------------------------------------------------------------- the draft */

typedef struct line {
    const char *bytes; /* borrowed; NULL: no piece has this number */
    size_t length;
    const json_t *added; /* an added token's flags, or NULL */
    int is_piece, is_added;
    int is_normal; /* without flags of its own: found in the normalized text */
} line;

typedef enum role { UNK, CLS, SEP, PAD, MASK, ROLES } role;

static const char *const role_keys[ROLES] = {"unk_token", "cls_token", "sep_token", "pad_token", "mask_token"};
static const char *const role_names[ROLES] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
static const char *const role_marks[ROLES] = {"unk", "cls", "sep", "pad", NULL};

typedef struct draft {
    const char *name; /* of the file that holds the pieces */
    line *lines;
    size_t count, capacity;
    const char *roles[ROLES];
    const char *prefix; /* NULL: ## */
    sf_wordpiece_options options;
} draft;

static draft start_draft(const char *name)
{
    draft d = {.name = name, .options = {.lower = 1, .accents = 1, .ideographs = 1, .clean = 1, .longest = 100}};
    memcpy(d.roles, role_names, sizeof d.roles);
    return d;
}

static int shown(size_t length) { return length < 80 ? (int)length : 80; } /* bytes of a piece in a message */

static safer_status set_line(draft *d, json_int_t number, const char *bytes, size_t length, safer_error *error)
{
    if (number < 0 || number >= MAX_NUMBER)
        return sf_fail(error, SAFER_INPUT,
                       "%s: piece \"%.*s\" has the number %" JSON_INTEGER_FORMAT "; 0 to %d can be read", d->name,
                       shown(length), bytes, number, MAX_NUMBER - 1);
    size_t index = (size_t)number;
    if (index >= d->count) {
        if (sf_grow(&d->lines, &d->capacity, index + 1, sizeof *d->lines)) return sf_fail_memory(error);
        memset(d->lines + d->count, 0, (index + 1 - d->count) * sizeof *d->lines);
        d->count = index + 1;
    }
    line *l = &d->lines[index];
    if (l->bytes && (l->length != length || memcmp(l->bytes, bytes, length) != 0))
        return sf_fail(error, SAFER_INPUT, "%s: pieces \"%.*s\" and \"%.*s\" have the same number %zu", d->name,
                       shown(l->length), l->bytes, shown(length), bytes, index);
    l->bytes = bytes;
    l->length = length;
    return SAFER_OK;
}

static int escape(sf_buffer *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char byte = bytes[i], name = byte == '\n'   ? 'n'
                                     : byte == '\r' ? 'r'
                                     : byte == '\t' ? 't'
                                     : byte == '\\' ? '\\'
                                                    : 0;
        if (name ? sf_buffer_format(out, "\\%c", name) : sf_buffer_add_byte(out, byte)) return -1;
    }
    return 0;
}

static int flag(const line *l, const char *name) { return json_is_true(json_object_get(l->added, name)); }

static int is_role(const draft *d, const line *l, role r)
{
    return d->roles[r] && strlen(d->roles[r]) == l->length && memcmp(d->roles[r], l->bytes, l->length) == 0;
}

/* The marks that a line with such a name has in a vocabulary where no line has any. */
static const char *default_marks(const line *l)
{
    static const char *const marks[ROLES] = {" unk added", " cls added", " sep added", " pad added", " added"};
    for (int r = 0; l->bytes && r < ROLES; r++)
        if (strlen(role_names[r]) == l->length && memcmp(role_names[r], l->bytes, l->length) == 0) return marks[r];
    return "";
}

/* The marks of a line, each with a space before it. */
static int write_marks(sf_buffer *out, const draft *d, size_t number)
{
    const line *l = &d->lines[number];
    int failed = 0;
    if (number == 0 && d->prefix) failed |= sf_buffer_format(out, " prefix=%s", d->prefix);
    for (int r = 0; r < ROLES; r++)
        if (l->bytes && role_marks[r] && is_role(d, l, (role)r)) failed |= sf_buffer_format(out, " %s", role_marks[r]);
    if (l->is_added) failed |= sf_buffer_add_string(out, l->is_piece ? " added" : " added only");
    if (l->is_normal || flag(l, "normalized")) failed |= sf_buffer_add_string(out, " normal");
    if (flag(l, "single_word")) failed |= sf_buffer_add_string(out, " word");
    if (flag(l, "lstrip")) failed |= sf_buffer_add_string(out, " left");
    if (flag(l, "rstrip")) failed |= sf_buffer_add_string(out, " right");
    return failed;
}

/* Pieces with white space in them match nothing, unless they are added tokens. */
static int holds_space(const line *l) { return memchr(l->bytes, '\t', l->length) || memchr(l->bytes, '\n', l->length); }

/* Whether the vocabulary needs no marks. -1 when memory is out. */
static int is_plain(const draft *d)
{
    sf_buffer marks = {0};
    int plain = 1;
    for (size_t i = 0; i < d->count && plain == 1; i++) {
        sf_buffer_clear(&marks);
        if (write_marks(&marks, d, i))
            plain = -1;
        else
            plain = strcmp(marks.length ? marks.bytes : "", default_marks(&d->lines[i])) == 0;
    }
    sf_buffer_free(&marks);
    return plain;
}

static int write_line(sf_buffer *text, const draft *d, size_t number, int plain)
{
    const line *l = &d->lines[number];
    sf_buffer marks = {0};
    int failed = plain ? 0 : write_marks(&marks, d, number);
    if (marks.length) {
        if (l->bytes) failed |= escape(text, l->bytes, l->length);
        marks.bytes[0] = '\t';
        failed |= sf_buffer_add(text, marks.bytes, marks.length);
    } else if (l->bytes && !holds_space(l)) {
        failed |= sf_buffer_add(text, l->bytes, l->length);
    }
    sf_buffer_free(&marks);
    return failed | sf_buffer_add_byte(text, '\n');
}

static safer_status finish_draft(sf_wordpiece **out, const draft *d, safer_error *error)
{
    safer_status status;
    sf_buffer text = {0};
    int plain = is_plain(d), failed = plain < 0;
    for (size_t i = 0; i < d->count && !failed; i++) failed = write_line(&text, d, i, plain);
    if (failed)
        status = sf_fail_memory(error);
    else
        status = sf_wordpiece_new(out, text.bytes ? text.bytes : "", text.length, &d->options, d->name, error);
    sf_buffer_free(&text);
    return status;
}

/* ------------------------------------------------------------------- JSON */

static safer_status parse_json(json_t **out, const sf_file *file, size_t flags, const char *name, safer_error *error)
{
    json_error_t problem;
    const safer_status status = sf_json_parse(out, file->bytes, file->length, JSON_REJECT_DUPLICATES | flags, &problem);
    if (*out && json_is_object(*out)) return SAFER_OK;
    if (*out) {
        json_decref(*out);
        *out = NULL;
        return sf_fail(error, SAFER_INPUT, "%s is not a JSON object", name);
    }
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    return sf_fail(error, SAFER_INPUT, "%s: line %d, column %d: %s", name, problem.line, problem.column, problem.text);
}

/* Reads DIRECTORY/NAME when it is there; *out stays NULL when it is not. */
static safer_status load_json(json_t **out, const char *directory, const char *name, sf_digest_list *read,
                              safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_file file = {0};
    sf_buffer path = {0};
    if (sf_buffer_format(&path, "%s/%s", directory, name)) return sf_fail_memory(error);
    if (access(path.bytes, F_OK) == 0) {
        SF_TRY(sf_tokenizer_load(&file, path.bytes, error));
        SF_TRY(sf_digest_list_add(read, name, file.bytes, file.length, error));
        /* "model_max_length" is often 10^30: whole numbers are read as real ones where none matters. */
        size_t flags = strcmp(name, "tokenizer_config.json") == 0 ? JSON_DECODE_INT_AS_REAL : 0;
        SF_TRY(parse_json(out, &file, flags, path.bytes, error));
    }
done:
    sf_file_free(&file);
    sf_buffer_free(&path);
    return status;
}

/* A special token's name: a string, or an object with its content. */
static const char *token_name(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

static void read_roles(draft *d, const json_t *object)
{
    for (int r = 0; r < ROLES; r++) {
        const char *name = token_name(object, role_keys[r]);
        if (name) d->roles[r] = name;
    }
}

/* true, false, or null when that is allowed: *out stays as it is. */
static safer_status read_switch(int *out, const json_t *object, const char *key, const char *name, safer_error *error)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) return SAFER_OK;
    if (!json_is_boolean(value)) return sf_fail(error, SAFER_INPUT, "%s: \"%s\" is neither true nor false", name, key);
    *out = json_is_true(value);
    return SAFER_OK;
}

/* Which end of a text is kept: `left` is the name of the side that is cut then. */
static safer_status read_side(int *ending, const json_t *object, const char *key, const char *left, const char *right,
                              const char *name, safer_error *error)
{
    const json_t *value = json_object_get(object, key);
    const char *side = json_string_value(value);
    if (!value || json_is_null(value)) return SAFER_OK;
    if (!side || (strcmp(side, left) != 0 && strcmp(side, right) != 0))
        return sf_fail(error, SAFER_INPUT, "%s: \"%s\" is neither %s nor %s", name, key, left, right);
    *ending = strcmp(side, left) == 0;
    return SAFER_OK;
}

/* The options in tokenizer_config.json. */
static safer_status read_config(draft *d, const json_t *config, safer_error *error)
{
    safer_status status;
    const char *file = "tokenizer_config.json", *class = json_string_value(json_object_get(config, "tokenizer_class"));
    const json_t *accents = json_object_get(config, "strip_accents");
    SF_TRY(read_side(&d->options.ending, config, "truncation_side", "left", "right", file, error));
    if (class && strcmp(class, "PreTrainedTokenizerFast") == 0) return SAFER_OK; /* leaves tokenizer.json alone */
    int before = d->options.lower;
    SF_TRY(read_switch(&d->options.lower, config, "do_lower_case", file, error));
    SF_TRY(read_switch(&d->options.ideographs, config, "tokenize_chinese_chars", file, error));
    if ((accents && json_is_null(accents)) || (!accents && d->options.accents == before))
        d->options.accents = d->options.lower;
    SF_TRY(read_switch(&d->options.accents, config, "strip_accents", file, error));
done:
    return status;
}

/* --------------------------------------------------------- tokenizer.json */

/* The object under a key; it must be of the one type that is known. */
static safer_status need_type(const json_t **out, const json_t *root, const char *key, const char *type,
                              const char *name, safer_error *error)
{
    const json_t *object = json_object_get(root, key);
    if (!json_is_object(object)) return sf_fail(error, SAFER_INPUT, "%s has no \"%s\" (an object)", name, key);
    const char *found = json_string_value(json_object_get(object, "type"));
    /* Old files do not name the type of the model. */
    if (!found && strcmp(key, "model") == 0 && json_object_get(object, "max_input_chars_per_word")) found = type;
    if (!found || strcmp(found, type) != 0)
        return sf_fail(error, SAFER_INPUT, "%s: the %s is of type \"%.40s\"; only %s can be read", name, key,
                       found ? found : "", type);
    *out = object;
    return SAFER_OK;
}

static safer_status read_normalizer(draft *d, const json_t *root, safer_error *error)
{
    safer_status status;
    const json_t *normalizer = NULL;
    sf_wordpiece_options *o = &d->options;
    SF_TRY(need_type(&normalizer, root, "normalizer", "BertNormalizer", d->name, error));
    SF_TRY(read_switch(&o->clean, normalizer, "clean_text", d->name, error));
    SF_TRY(read_switch(&o->ideographs, normalizer, "handle_chinese_chars", d->name, error));
    SF_TRY(read_switch(&o->lower, normalizer, "lowercase", d->name, error));
    o->accents = o->lower;
    SF_TRY(read_switch(&o->accents, normalizer, "strip_accents", d->name, error));
done:
    return status;
}

static safer_status read_model(draft *d, const json_t *root, safer_error *error)
{
    safer_status status;
    const json_t *model = NULL, *vocabulary, *longest;
    const char *key;
    json_t *number;
    SF_TRY(need_type(&model, root, "model", "WordPiece", d->name, error));
    vocabulary = json_object_get(model, "vocab");
    longest = json_object_get(model, "max_input_chars_per_word");
    if (!json_is_object(vocabulary)) {
        status = sf_fail(error, SAFER_INPUT, "%s: the model has no \"vocab\" (an object of pieces and numbers)",
                         d->name);
        goto done;
    }
    json_object_foreach((json_t *)(uintptr_t)vocabulary, key, number)
    {
        if (!json_is_integer(number)) {
            status = sf_fail(error, SAFER_INPUT, "%s: the number of piece \"%.80s\" is not a whole number", d->name,
                             key);
            goto done;
        }
        SF_TRY(set_line(d, json_integer_value(number), key, strlen(key), error));
        d->lines[json_integer_value(number)].is_piece = 1;
    }
    if (longest && (!json_is_integer(longest) || json_integer_value(longest) < 1)) {
        status = sf_fail(error, SAFER_INPUT, "%s: \"max_input_chars_per_word\" is not a whole number of at least 1",
                         d->name);
        goto done;
    }
    if (longest) d->options.longest = (size_t)json_integer_value(longest);
    const char *unk = token_name(model, "unk_token");
    if (unk) d->roles[UNK] = unk;
    d->prefix = json_string_value(json_object_get(model, "continuing_subword_prefix"));
    if (d->prefix && strcmp(d->prefix, "##") == 0) d->prefix = NULL; /* as usual */
    if (d->prefix && strpbrk(d->prefix, " \t\r\n\\"))
        status = sf_fail(error, SAFER_INPUT, "%s: a \"continuing_subword_prefix\" with white space or a backslash",
                         d->name);
done:
    return status;
}

static safer_status read_added(draft *d, const json_t *list, safer_error *error)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *token = json_array_get(list, i), *content = json_object_get(token, "content");
        const json_t *id = json_object_get(token, "id");
        if (!json_is_string(content) || !json_is_integer(id))
            return sf_fail(error, SAFER_INPUT,
                           "%s: added token %zu has no \"content\" (a string) or no \"id\" (a number)", d->name, i + 1);
        safer_status status = set_line(d, json_integer_value(id), json_string_value(content),
                                       json_string_length(content), error);
        if (status != SAFER_OK) return status;
        line *l = &d->lines[json_integer_value(id)];
        l->added = token;
        l->is_added = 1;
    }
    return SAFER_OK;
}

/* Who stands at the ends of a text. */
static void read_ends(draft *d, const json_t *processor)
{
    const json_t *single = json_object_get(processor, "single");
    size_t count = json_array_size(single);
    const char *cls = json_string_value(json_array_get(json_object_get(processor, "cls"), 0));
    const char *sep = json_string_value(json_array_get(json_object_get(processor, "sep"), 0));
    if (count >= 2) {
        cls = json_string_value(json_object_get(json_object_get(json_array_get(single, 0), "SpecialToken"), "id"));
        sep = json_string_value(
            json_object_get(json_object_get(json_array_get(single, count - 1), "SpecialToken"), "id"));
    }
    if (cls) d->roles[CLS] = cls;
    if (sep) d->roles[SEP] = sep;
}

static safer_status open_json(sf_wordpiece **out, draft *d, const json_t *root, const json_t *config,
                              safer_error *error)
{
    safer_status status;
    const json_t *pre = NULL;
    SF_TRY(read_model(d, root, error)); /* first: "the model is BPE" says more than its normalizer does */
    SF_TRY(read_normalizer(d, root, error));
    SF_TRY(need_type(&pre, root, "pre_tokenizer", "BertPreTokenizer", d->name, error));
    SF_TRY(read_added(d, json_object_get(root, "added_tokens"), error));
    SF_TRY(read_side(&d->options.ending, json_object_get(root, "truncation"), "direction", "Left", "Right", d->name,
                     error));
    const char *unk = d->roles[UNK];
    if (config) {
        SF_TRY(read_config(d, config, error));
        read_roles(d, config);
        d->roles[UNK] = unk;
    }
    read_ends(d, json_object_get(root, "post_processor"));
    SF_TRY(finish_draft(out, d, error));
done:
    return status;
}

safer_status sf_wordpiece_parse(sf_wordpiece **out, const char *json, size_t length, const char *name,
                                safer_error *error)
{
    safer_status status;
    const sf_file file = {.bytes = json, .length = length};
    json_t *root = NULL;
    draft d = start_draft(name);
    SF_TRY(parse_json(&root, &file, 0, name, error));
    SF_TRY(open_json(out, &d, root, NULL, error));
done:
    free(d.lines);
    json_decref(root);
    return status;
}

/* -------------------------------------------------------------- vocab.txt */

static safer_status read_lines(draft *d, const sf_file *file, safer_error *error)
{
    const char *p = file->bytes, *end = p + file->length;
    for (json_int_t number = 0; p < end; number++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t length = (size_t)((stop ? stop : end) - p);
        if (length && p[length - 1] == '\r') length--;
        safer_status status = set_line(d, number, p, length, error);
        if (status != SAFER_OK) return status;
        d->lines[number].is_piece = 1;
        p = stop ? stop + 1 : end;
    }
    return SAFER_OK;
}

/* {"102": {"content": "[SEP]", ...}} */
static safer_status read_decoder(draft *d, const json_t *decoder, safer_error *error)
{
    const char *key;
    json_t *token;
    json_object_foreach((json_t *)(uintptr_t)decoder, key, token)
    {
        const json_t *content = json_object_get(token, "content");
        char *rest;
        long number = strtol(key, &rest, 10);
        if (!json_is_string(content) || rest == key || *rest)
            return sf_fail(
                error, SAFER_INPUT,
                "tokenizer_config.json: \"added_tokens_decoder\" holds \"%.40s\", which is no number with a token",
                key);
        safer_status status = set_line(d, number, json_string_value(content), json_string_length(content), error);
        if (status != SAFER_OK) return status;
        d->lines[number].added = token;
        d->lines[number].is_added = 1;
    }
    return SAFER_OK;
}

/* {"token": 30522}: tokens that are not special. */
static safer_status read_added_file(draft *d, const json_t *object, safer_error *error)
{
    const char *key;
    json_t *number;
    json_object_foreach((json_t *)(uintptr_t)object, key, number)
    {
        if (!json_is_integer(number))
            return sf_fail(error, SAFER_INPUT, "added_tokens.json: the number of \"%.80s\" is not a whole number", key);
        safer_status status = set_line(d, json_integer_value(number), key, strlen(key), error);
        if (status != SAFER_OK) return status;
        line *l = &d->lines[json_integer_value(number)];
        l->is_normal = !l->is_added;
        l->is_added = 1;
    }
    return SAFER_OK;
}

static safer_status open_text(sf_wordpiece **out, draft *d, const char *directory, const json_t *config,
                              sf_digest_list *read, safer_error *error)
{
    safer_status status;
    sf_file file = {0};
    json_t *map = NULL, *added = NULL;
    SF_TRY(load_json(&map, directory, "special_tokens_map.json", read, error));
    SF_TRY(load_json(&added, directory, "added_tokens.json", read, error));
    SF_TRY(sf_tokenizer_load(&file, d->name, error));
    SF_TRY(sf_digest_list_add(read, "vocab.txt", file.bytes, file.length, error));
    SF_TRY(read_lines(d, &file, error));
    if (config) SF_TRY(read_config(d, config, error));
    read_roles(d, map);
    read_roles(d, config);
    SF_TRY(read_decoder(d, json_object_get(config, "added_tokens_decoder"), error));
    SF_TRY(read_added_file(d, added, error));
    for (size_t i = 0; i < d->count; i++)
        for (int r = 0; r < ROLES; r++)
            if (d->lines[i].bytes && is_role(d, &d->lines[i], (role)r)) {
                d->lines[i].is_added = 1;
                d->lines[i].is_normal = 0;
            }
    SF_TRY(finish_draft(out, d, error));
done:
    sf_file_free(&file);
    json_decref(map);
    json_decref(added);
    return status;
}

safer_status sf_wordpiece_open(sf_wordpiece **out, const char *directory, sf_digest_list *read, safer_error *error)
{
    safer_status status;
    sf_buffer json_path = {0}, text_path = {0};
    json_t *root = NULL, *config = NULL;
    draft d = start_draft(NULL);
    if (sf_buffer_format(&json_path, "%s/tokenizer.json", directory) ||
        sf_buffer_format(&text_path, "%s/vocab.txt", directory)) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(load_json(&config, directory, "tokenizer_config.json", read, error));
    SF_TRY(load_json(&root, directory, "tokenizer.json", read, error));
    if (root) {
        d.name = json_path.bytes;
        SF_TRY(open_json(out, &d, root, config, error));
    } else if (access(text_path.bytes, F_OK) == 0) {
        d.name = text_path.bytes;
        SF_TRY(open_text(out, &d, directory, config, read, error));
    } else {
        status = sf_fail(error, SAFER_INPUT, "%s has neither tokenizer.json nor vocab.txt", directory);
    }
done:
    free(d.lines);
    json_decref(root);
    json_decref(config);
    sf_buffer_free(&json_path);
    sf_buffer_free(&text_path);
    return status;
}
