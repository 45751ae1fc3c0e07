/* Normalizers of a tokenizer: one step of each kind, and how a description becomes steps.
 *
 * Every step also says how many of the first bytes still stem from the first character of the text: Metaspace's
 * prepend_scheme "first" depends on it. tokenizer.h has the whole way. */
#include "base/memory.h"
#include "text/classes.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"
#include "text/wordpiece_parts.h"

#include <string.h>

void sf_normal_free(sf_normal *normal)
{
    free(normal->content);
    sf_regex_free(normal->regex);
    sf_charsmap_free(normal->map);
}

size_t sf_byte_spelled(unsigned char byte, char out[2])
{
    /* What can be seen stands for itself; the others, in their order, are U+0100 and what follows. */
    uint32_t code = byte;
    if (byte <= 0x20)
        code = 0x100u + byte;
    else if (byte >= 0x7f && byte <= 0xa0)
        code = 0x121u + (byte - 0x7fu);
    else if (byte == 0xad)
        code = 0x143;
    char bytes[4];
    const size_t length = sf_utf8_encode(code, bytes);
    memcpy(out, bytes, 2);
    return length;
}

static int is_ascii(const char *bytes, size_t length)
{
    unsigned char all = 0;
    for (size_t i = 0; i < length; i++) all |= (unsigned char)bytes[i];
    return all < 0x80;
}

static int add_code(sf_buffer *out, uint32_t code)
{
    char bytes[4];
    return sf_buffer_add(out, bytes, sf_utf8_encode(code, bytes));
}

static uint32_t nmt_of(uint32_t c)
{
    switch (c) {
    case 0x9:
    case 0xa:
    case 0xc:
    case 0xd:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x2581:
    case 0xfeff:
    case 0xfffd: return ' ';
    default: return c >= 0x200b && c <= 0x200f ? ' ' : c;
    }
}

static int nmt_removes(uint32_t c)
{
    return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
}

/* Appends what one character becomes. */
static int add_changed(sf_buffer *out, sf_normal_kind kind, uint32_t code)
{
    uint32_t letters[SF_BERT_LOWERED] = {code};
    size_t count = 1;
    switch (kind) {
    case SF_NORMAL_LOWER: count = sf_bert_lower(letters, code); break;
    case SF_NORMAL_MARKS: count = !(sf_class(code) & SF_CLASS_MARK); break;
    case SF_NORMAL_NONSPACING: count = !sf_bert_is_mark(code); break;
    case SF_NORMAL_CLEAN:
        count = code != 0 && !sf_bert_is_control(code);
        if (sf_bert_is_space(code)) letters[0] = ' ';
        break;
    case SF_NORMAL_IDEOGRAPHS:
        if (!sf_bert_is_ideograph(code)) break;
        return sf_buffer_add_byte(out, ' ') || add_code(out, code) || sf_buffer_add_byte(out, ' ');
    default:
        count = !nmt_removes(code);
        letters[0] = nmt_of(code);
        break;
    }
    for (size_t i = 0; i < count; i++)
        if (add_code(out, letters[i])) return -1;
    return 0;
}

/* Steps that look at one character at a time. */
static int change_characters(const sf_normal *n, sf_passage *passage, sf_buffer *to)
{
    const char *p = passage->bytes, *end = p + passage->length;
    const int leaves_ascii = n->kind == SF_NORMAL_MARKS || n->kind == SF_NORMAL_NONSPACING ||
                             n->kind == SF_NORMAL_IDEOGRAPHS;
    if (leaves_ascii && is_ascii(p, passage->length)) return 0;
    size_t head = 0;
    if (sf_buffer_reserve(to, passage->length)) return -1;
    while (p < end) {
        const unsigned char byte = (unsigned char)*p;
        uint32_t code = 0xfffd;
        if (byte >= 0x20 && byte < 0x7f) {
            /* What can be seen of ASCII changes in lower case only. */
            const char plain = n->kind == SF_NORMAL_LOWER && byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20)
                                                                                        : (char)byte;
            if (to->length + 1 < to->capacity)
                to->bytes[to->length++] = plain;
            else if (sf_buffer_add_byte(to, plain))
                return -1;
            p++;
            if ((size_t)(p - passage->bytes) <= passage->head) head = to->length;
            continue;
        }
        const size_t step = sf_utf8_decode(p, end, &code);
        if (add_changed(to, n->kind, code)) return -1;
        p += step ? step : 1;
        if ((size_t)(p - passage->bytes) <= passage->head) head = to->length;
    }
    *passage = (sf_passage){to->length ? to->bytes : "", to->length, head};
    return 0;
}

static size_t space_at(const char *p, const char *end)
{
    uint32_t code;
    const size_t step = sf_utf8_decode(p, end, &code);
    return step && sf_bert_is_space(code) ? step : 0;
}

static int strip(const sf_normal *n, sf_passage *passage)
{
    const char *p = passage->bytes, *end = p + passage->length, *begin = p;
    for (size_t step; n->left && p < end && (step = space_at(p, end)) != 0;) p += step;
    while (n->right && end > p) {
        const char *last = end - 1;
        while (last > p && ((unsigned char)*last & 0xc0) == 0x80) last--;
        if (!space_at(last, end)) break;
        end = last;
    }
    const size_t gone = (size_t)(p - begin);
    *passage = (sf_passage){p, (size_t)(end - p), passage->head > gone ? passage->head - gone : 0};
    return 0;
}

static int replace(const sf_normal *n, sf_passage *passage, sf_buffer *to)
{
    sf_regex_memo memo = {0};
    size_t at = 0, begin, end;
    size_t head = 0;
    int found, changed = 0, failed = 0;
    while (!failed &&
           (found = sf_regex_find(n->regex, passage->bytes, passage->length, at, &begin, &end, &memo)) != 0) {
        failed = found < 0 || sf_buffer_add(to, passage->bytes + at, begin - at) ||
                 sf_buffer_add(to, n->content, n->length);
        /* What replaces several characters counts as the last of them. */
        if (at < passage->head) head = to->length - n->length - (begin > passage->head ? begin - passage->head : 0);
        if (end <= passage->head) head = to->length;
        at = end;
        changed = 1;
    }
    sf_regex_memo_free(&memo);
    if (failed || (changed && sf_buffer_add(to, passage->bytes + at, passage->length - at))) return -1;
    if (changed && at < passage->head) head = to->length - (passage->length - passage->head);
    if (changed) *passage = (sf_passage){to->length ? to->bytes : "", to->length, head};
    return 0;
}

static int spell_bytes(sf_passage *passage, sf_buffer *to)
{
    size_t head = 0;
    for (size_t i = 0; i < passage->length; i++) {
        char spelled[2];
        if (sf_buffer_add(to, spelled, sf_byte_spelled((unsigned char)passage->bytes[i], spelled))) return -1;
        if (i < passage->head) head = to->length;
    }
    passage->head = head;
    passage->bytes = to->length ? to->bytes : "";
    passage->length = to->length;
    return 0;
}

int sf_normal_apply(const sf_normal *normal, sf_passage *passage, sf_buffer *to, sf_ids *points)
{
    size_t head;
    if (passage->length == 0) return 0;
    sf_buffer_clear(to);
    switch (normal->kind) {
    case SF_NORMAL_FORM:
        if (sf_form_holds(normal->form, passage->bytes, passage->length)) return 0;
        if (sf_form_apply(to, normal->form, passage->bytes, passage->head, points)) return -1;
        head = to->length;
        sf_buffer_clear(to);
        if (sf_form_apply(to, normal->form, passage->bytes, passage->length, points)) return -1;
        passage->head = head;
        break;
    case SF_NORMAL_STRIP: return strip(normal, passage);
    case SF_NORMAL_REPLACE: return replace(normal, passage, to);
    case SF_NORMAL_BYTES: return spell_bytes(passage, to);
    case SF_NORMAL_PREPEND:
        if (sf_buffer_add(to, normal->content, normal->length) || sf_buffer_add(to, passage->bytes, passage->length))
            return -1;
        if (passage->head) passage->head += normal->length;
        break;
    case SF_NORMAL_CHARSMAP:
        if (sf_charsmap_apply(to, normal->map, passage->bytes, passage->length, &passage->head)) return -1;
        break;
    default: return change_characters(normal, passage, to);
    }
    passage->bytes = to->length ? to->bytes : "";
    passage->length = to->length;
    return 0;
}

/* -------------------------------------------------------- from descriptions */

static safer_status add_step(sf_tokenizer *t, sf_normal step, safer_error *error)
{
    if (sf_grow(&t->normals, &t->normal_capacity, t->normal_count + 1, sizeof *t->normals)) {
        sf_normal_free(&step);
        return sf_fail_memory(error);
    }
    t->normals[t->normal_count++] = step;
    return SAFER_OK;
}

static safer_status read_bert(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    int clean, ideographs, lower, accents;
    safer_status status = SAFER_OK;
    SF_TRY(sf_json_flag(&clean, value, "clean_text", 1, name, error));
    SF_TRY(sf_json_flag(&ideographs, value, "handle_chinese_chars", 1, name, error));
    SF_TRY(sf_json_flag(&lower, value, "lowercase", 1, name, error));
    SF_TRY(sf_json_flag(&accents, value, "strip_accents", lower, name, error));
    if (clean) SF_TRY(add_step(t, (sf_normal){.kind = SF_NORMAL_CLEAN}, error));
    if (ideographs) SF_TRY(add_step(t, (sf_normal){.kind = SF_NORMAL_IDEOGRAPHS}, error));
    if (accents) {
        SF_TRY(add_step(t, (sf_normal){.kind = SF_NORMAL_FORM, .form = SF_FORM_NFD}, error));
        SF_TRY(add_step(t, (sf_normal){.kind = SF_NORMAL_NONSPACING}, error));
    }
    if (lower) SF_TRY(add_step(t, (sf_normal){.kind = SF_NORMAL_LOWER}, error));
done:
    return status;
}

static safer_status read_replace(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    const json_t *pattern = json_object_get(value, "pattern");
    const json_t *literal = json_object_get(pattern, "String"), *regex = json_object_get(pattern, "Regex");
    const char *content;
    sf_normal step = {.kind = SF_NORMAL_REPLACE};
    safer_status status = SAFER_OK;
    SF_TRY(sf_json_string(&content, &step.length, value, "content", name, error));
    if (!(step.content = sf_strndup(content, step.length))) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (json_is_string(literal) && json_string_length(literal) > 0)
        SF_TRY(sf_regex_literal(&step.regex, json_string_value(literal), json_string_length(literal), error));
    else if (json_is_string(regex))
        SF_TRY(sf_regex_new(&step.regex, json_string_value(regex), json_string_length(regex), name, error));
    else {
        status = sf_fail(error, SAFER_INPUT, "%s: the Replace normalizer has no pattern", name);
        goto done;
    }
    return add_step(t, step, error);
done:
    sf_normal_free(&step);
    return status;
}

/* The bytes of base64. SAFER_INPUT when it is none. */
static safer_status decode_base64(sf_buffer *out, const char *text, size_t length, const char *name, safer_error *error)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    int count = 0;
    while (length > 0 && text[length - 1] == '=') length--;
    for (size_t i = 0; i < length; i++) {
        const char *digit = memchr(digits, text[i], 64);
        if (!digit)
            return sf_fail(error, SAFER_INPUT, "%s: precompiled_charsmap is not base64 (character %zu)", name, i + 1);
        bits = bits << 6 | (uint32_t)(digit - digits);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        if (sf_buffer_add_byte(out, (char)(bits >> count & 0xff))) return sf_fail_memory(error);
    }
    return SAFER_OK;
}

static safer_status read_charsmap(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    const char *text;
    size_t length;
    sf_buffer bytes = {0};
    sf_normal step = {.kind = SF_NORMAL_CHARSMAP};
    safer_status status = SAFER_OK;
    /* transformers writes null where a model has none: nothing is done then. */
    if (json_is_null(json_object_get(value, "precompiled_charsmap"))) return SAFER_OK;
    SF_TRY(sf_json_string(&text, &length, value, "precompiled_charsmap", name, error));
    SF_TRY(decode_base64(&bytes, text, length, name, error));
    SF_TRY(sf_charsmap_new(&step.map, bytes.length ? bytes.bytes : "", bytes.length, name, error));
    status = add_step(t, step, error);
done:
    sf_buffer_free(&bytes);
    return status;
}

static safer_status read_other(sf_tokenizer *t, const char *type, const json_t *value, const char *name,
                               safer_error *error)
{
    sf_normal step = {0};
    safer_status status = SAFER_OK;
    if (strcmp(type, "Strip") == 0) {
        step.kind = SF_NORMAL_STRIP;
        SF_TRY(sf_json_flag(&step.left, value, "strip_left", 1, name, error));
        SF_TRY(sf_json_flag(&step.right, value, "strip_right", 1, name, error));
        return add_step(t, step, error);
    }
    if (strcmp(type, "Prepend") == 0) {
        const char *content;
        step.kind = SF_NORMAL_PREPEND;
        SF_TRY(sf_json_string(&content, &step.length, value, "prepend", name, error));
        if (!(step.content = sf_strndup(content, step.length))) return sf_fail_memory(error);
        return add_step(t, step, error);
    }
    status = sf_fail(error, SAFER_INPUT, "%s: normalizer '%.*s' is not supported", name,
                     sf_clip(type, strlen(type), 80), type);
done:
    return status;
}

safer_status sf_tokenizer_read_normalizer(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    static const struct {
        const char *type;
        sf_normal step;
    } simple[] = {
        {"NFC", {.kind = SF_NORMAL_FORM, .form = SF_FORM_NFC}},
        {"NFD", {.kind = SF_NORMAL_FORM, .form = SF_FORM_NFD}},
        {"NFKC", {.kind = SF_NORMAL_FORM, .form = SF_FORM_NFKC}},
        {"NFKD", {.kind = SF_NORMAL_FORM, .form = SF_FORM_NFKD}},
        {"Lowercase", {.kind = SF_NORMAL_LOWER}},
        {"StripAccents", {.kind = SF_NORMAL_MARKS}},
        {"Nmt", {.kind = SF_NORMAL_NMT}},
        {"ByteLevel", {.kind = SF_NORMAL_BYTES}},
    };
    const char *type;
    if (!value || json_is_null(value)) return SAFER_OK;
    safer_status status = sf_json_type(&type, value, "normalizer", name, error);
    if (status != SAFER_OK) return status;
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(value, "normalizers"), *member;
        size_t i;
        if (!json_is_array(list)) return sf_fail(error, SAFER_INPUT, "%s: a Sequence without normalizers", name);
        json_array_foreach(list, i, member)
        {
            if (json_is_null(member)) return sf_fail(error, SAFER_INPUT, "%s: a normalizer is null", name);
            status = sf_tokenizer_read_normalizer(t, member, name, error);
            if (status != SAFER_OK) return status;
        }
        return SAFER_OK;
    }
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++)
        if (strcmp(type, simple[i].type) == 0) return add_step(t, simple[i].step, error);
    if (strcmp(type, "BertNormalizer") == 0) return read_bert(t, value, name, error);
    if (strcmp(type, "Replace") == 0) return read_replace(t, value, name, error);
    if (strcmp(type, "Precompiled") == 0) return read_charsmap(t, value, name, error);
    return read_other(t, type, value, name, error);
}
