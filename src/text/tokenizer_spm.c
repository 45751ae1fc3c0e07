/* A tokenizer from sentencepiece's own file: the description that transformers makes of it.
 *
 * Which pieces come first, what is done to a text before and what stands around it, the file does not say: that
 * belongs to the model's type. */
#include "base/json.h"
#include "text/sentencepiece.h"
#include "text/tokenizer_parts.h"

#include <string.h>

/* What differs between the types. */
typedef struct custom {
    const char *type;
    const char *first[6]; /* pieces that come instead of the file's first; NULL ends them */
    size_t skipped;       /* of the file's */
    const char *last;     /* a piece behind all others */
    int unk;              /* its number, or -1: as the file says */
    const char *normal;   /* normalizers before the table of characters, and */
    const char *behind;   /* behind it; as they stand in a tokenizer.json */
    const char *cls, *sep, *pad, *mask;
} custom;

#define SPACES(with) "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\"" with "\"}"
#define REPLACE(what) "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" what "\"},\"content\":\"\\\"\"},"
#define STRIP(left) "{\"type\":\"Strip\",\"strip_left\":" left ",\"strip_right\":true}"

static const custom customs[] = {
    {"xlm-roberta",
     {"<s>", "<pad>", "</s>", "<unk>"},
     3,
     "<mask>",
     3,
     "",
     "," STRIP("false") "," SPACES("▁"),
     "<s>",
     "</s>",
     "<pad>",
     "<mask>"},
    {"camembert",
     {"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"},
     1,
     "<mask>",
     3,
     "",
     "," STRIP("false") "," SPACES("▁"),
     "<s>",
     "</s>",
     "<pad>",
     "<mask>"},
    {"deberta-v2", {NULL}, 0, NULL, -1, STRIP("true"), "," SPACES(" "), "[CLS]", "[SEP]", "[PAD]", "[MASK]"},
    {"albert",
     {NULL},
     0,
     NULL,
     -1,
     REPLACE("``") REPLACE("''") "{\"type\":\"NFKD\"},{\"type\":\"StripAccents\"},{\"type\":\"Lowercase\"}",
     "," SPACES(" "),
     "[CLS]",
     "[SEP]",
     "<pad>",
     "[MASK]"},
};

static size_t count_first(const custom *c)
{
    size_t count = 0;
    while (c->first[count]) count++;
    return count;
}

static void push_piece(json_t **list, const char *text, size_t length, double score)
{
    json_t *entry = json_array();
    sf_json_push(&entry, json_stringn(text, length));
    sf_json_push(&entry, json_real(score));
    sf_json_push(list, entry);
}

/* ALBERT keeps digits and commas apart: pieces that end in both are made unlikely. */
static double score_of(const custom *c, const sf_sentencepiece_piece *p)
{
    const char *end = p->text.bytes + p->text.length;
    const int comma = p->text.length > 1 && end[-1] == ',' && end[-2] >= '0' && end[-2] <= '9';
    return (double)p->score - (comma && strcmp(c->type, "albert") == 0 ? 100 : 0);
}

static json_t *make_model(const custom *c, const sf_sentencepiece *file)
{
    json_t *model = json_object(), *list = json_array();
    for (size_t i = 0; i < count_first(c); i++) push_piece(&list, c->first[i], strlen(c->first[i]), i == 4 ? -100 : 0);
    for (size_t i = c->skipped; i < file->count; i++)
        push_piece(&list, file->pieces[i].text.bytes, file->pieces[i].text.length, score_of(c, &file->pieces[i]));
    if (c->last) push_piece(&list, c->last, strlen(c->last), 0);
    sf_json_put(&model, "type", json_string("Unigram"));
    sf_json_put(&model, "unk_id", json_integer(c->unk < 0 ? (json_int_t)file->unk_id : c->unk));
    sf_json_put(&model, "vocab", list);
    return model;
}

/* Appends base64. */
static int encode_base64(sf_buffer *out, sf_span bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.length; i += 3) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < bytes.length ? (unsigned char)bytes.bytes[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            if (sf_buffer_add_byte(out, k <= bytes.length - i ? digits[bits >> (18 - 6 * k) & 63] : '=')) return -1;
    }
    return 0;
}

/* The steps before the model, as JSON. */
static int write_steps(sf_buffer *out, const custom *c, const sf_sentencepiece *file)
{
    int failed = sf_buffer_format(out, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[%s", c->normal);
    const char *behind = c->behind;
    if (file->charsmap.length)
        failed |= sf_buffer_format(out, "%s{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"",
                                   *c->normal ? "," : "") ||
                  encode_base64(out, file->charsmap) || sf_buffer_add_string(out, "\"}");
    else if (!*c->normal)
        behind++; /* no comma where nothing is before it */
    return failed | sf_buffer_format(out,
                                     "%s]},\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\","
                                     "\"prepend_scheme\":\"always\",\"split\":true}}",
                                     behind);
}

/* The number of a piece in the model, the last of that name; -1 without it. */
static json_int_t number_of(const json_t *model, sf_span piece)
{
    const json_t *list = json_object_get(model, "vocab"), *entry;
    json_int_t found = -1;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        const json_t *text = json_array_get(entry, 0);
        if (json_string_length(text) == piece.length && memcmp(json_string_value(text), piece.bytes, piece.length) == 0)
            found = (json_int_t)i;
    }
    return found;
}

static json_int_t number_of_name(const json_t *model, const char *name)
{
    return number_of(model, (sf_span){name, strlen(name)});
}

static void add_token(json_t **list, sf_span content, json_int_t id, int left)
{
    json_t *token = json_object();
    sf_json_put(&token, "id", json_integer(id));
    sf_json_put(&token, "content", json_stringn(content.bytes, content.length));
    sf_json_put(&token, "lstrip", json_boolean(left));
    sf_json_put(&token, "normalized", json_false());
    sf_json_push(list, token);
}

/* Control and user-defined pieces, and the special tokens of the type. */
static json_t *make_added(const custom *c, const sf_sentencepiece *file, const json_t *model)
{
    json_t *list = json_array();
    const char *names[] = {c->cls, c->pad, c->sep, "<unk>", c->mask};
    for (size_t i = 0; i < file->count; i++) {
        const sf_sentencepiece_piece *p = &file->pieces[i];
        if (p->type != 3 && p->type != 4) continue;
        const json_int_t id = i < c->skipped ? number_of(model, p->text)
                                             : (json_int_t)(i - c->skipped + count_first(c));
        if (id >= 0) add_token(&list, p->text, id, 0);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const sf_span name = {names[i], strlen(names[i])};
        json_int_t id = number_of(model, name);
        if (id < 0 && names[i] == c->mask) id = (json_int_t)json_array_size(json_object_get(model, "vocab"));
        if (id >= 0) add_token(&list, name, id, names[i] == c->mask);
    }
    return list;
}

static json_t *make_frame(const custom *c, const json_t *model)
{
    json_t *frame = json_object(), *cls = json_array(), *sep = json_array();
    sf_json_push(&cls, json_string(c->cls));
    sf_json_push(&cls, json_integer(number_of_name(model, c->cls)));
    sf_json_push(&sep, json_string(c->sep));
    sf_json_push(&sep, json_integer(number_of_name(model, c->sep)));
    sf_json_put(&frame, "type", json_string("BertProcessing"));
    sf_json_put(&frame, "cls", cls);
    sf_json_put(&frame, "sep", sep);
    return frame;
}

static json_t *make_padding(const custom *c, const json_t *model)
{
    json_t *padding = json_object();
    sf_json_put(&padding, "pad_id", json_integer(number_of_name(model, c->pad)));
    sf_json_put(&padding, "pad_token", json_string(c->pad));
    return padding;
}

safer_status sf_tokenizer_describe_sentencepiece(json_t **out, const char *bytes, size_t length, const char *type,
                                                 const char *name, safer_error *error)
{
    const custom *c = NULL;
    sf_sentencepiece file = {0};
    sf_buffer steps = {0};
    json_t *root = NULL, *model = NULL;
    safer_status status = SAFER_OK;
    for (size_t i = 0; i < sizeof customs / sizeof *customs; i++)
        if (type && strcmp(type, customs[i].type) == 0) c = &customs[i];
    if (!c)
        return sf_fail(
            error, SAFER_INPUT,
            "%s: a sentencepiece model alone is read for albert, camembert, deberta-v2 and xlm-roberta; others "
            "need a tokenizer.json",
            name);
    SF_TRY(sf_sentencepiece_read(&file, bytes, length, name, error));
    if (file.model_type != 1) {
        status = sf_fail(error, SAFER_INPUT, "%s: a sentencepiece model that is not Unigram needs a tokenizer.json",
                         name);
        goto done;
    }
    if (write_steps(&steps, c, &file) || !(model = make_model(c, &file))) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_json_parse(&root, steps.bytes, steps.length, 0, NULL));
    sf_json_put(&root, "added_tokens", make_added(c, &file, model));
    sf_json_put(&root, "post_processor", make_frame(c, model));
    sf_json_put(&root, "padding", make_padding(c, model));
    sf_json_put(&root, "model", json_incref(model));
    if (!root) {
        status = sf_fail_memory(error);
        goto done;
    }
    *out = root;
    root = NULL;
done:
    json_decref(root);
    json_decref(model);
    sf_buffer_free(&steps);
    sf_sentencepiece_free(&file);
    return status;
}

safer_status sf_tokenizer_parse_sentencepiece(sf_tokenizer **out, const char *bytes, size_t length, const char *type,
                                              const char *name, safer_error *error)
{
    json_t *root = NULL;
    safer_status status = sf_tokenizer_describe_sentencepiece(&root, bytes, length, type, name, error);
    if (status == SAFER_OK) status = sf_tokenizer_build(out, root, name, error);
    json_decref(root);
    return status;
}
