/* Pre-tokenizers: where a text is cut, and how a description becomes steps.
 *
 * A step finds the matches in every stretch, and its behavior says what becomes of them and of what is between: as
 * `tokenizers` does it. Metaspace and the space that ByteLevel puts in front write the text anew. tokenizer.h has the
 * whole way. */
#include "base/memory.h"
#include "text/classes.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"
#include "text/wordpiece_parts.h"

#include <string.h>

static const char byte_level_regex[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

void sf_cut_free(sf_cut *cut) { sf_regex_free(cut->regex); }

static int push(sf_stretches *s, size_t begin, size_t end, size_t head)
{
    if (s->count == s->capacity && sf_grow(&s->list, &s->capacity, s->count + 1, sizeof *s->list)) return -1;
    s->list[s->count++] = (sf_stretch){begin, end, head};
    return 0;
}

/* ---------------------------------------------------------------- matches */

/* The marks of a step lie in a list of stretches, where `head` says whether it is a match. */

static int mark_regex(sf_stretches *marks, const sf_regex *regex, const char *text, size_t length)
{
    sf_regex_memo memo = {0};
    size_t at = 0, begin, end;
    int found = 0, failed = 0;
    while (!failed && (found = sf_regex_find(regex, text, length, at, &begin, &end, &memo)) == 1) {
        failed = (at < begin && push(marks, at, begin, 0)) || push(marks, begin, end, 1);
        at = end;
    }
    sf_regex_memo_free(&memo);
    return failed || found < 0 || (at < length && push(marks, at, length, 0)) ? -1 : 0;
}

static int is_match(const sf_cut *cut, uint32_t sign, uint32_t code)
{
    switch (cut->kind) {
    case SF_CUT_SPACE: return sf_bert_is_space(code);
    case SF_CUT_PUNCTUATION: return sf_bert_is_punctuation(code);
    case SF_CUT_DIGITS: return (sf_class(code) & SF_CLASS_NUMERIC) != 0;
    default: return code == sign;
    }
}

static uint32_t sign_of(const sf_cut *cut);

int sf_cut_matches(const sf_cut *cut, uint32_t code) { return is_match(cut, sign_of(cut), code); }

static uint32_t sign_of(const sf_cut *cut)
{
    uint32_t sign = 0;
    if (cut->kind == SF_CUT_CHARACTER) sf_utf8_decode(cut->sign, cut->sign + strlen(cut->sign), &sign);
    return sign;
}

/* Matches of one character each. */
static int mark_characters(sf_stretches *marks, const sf_cut *cut, const char *text, size_t length)
{
    const char *end = text + length;
    size_t from = 0, step;
    const uint32_t sign = sign_of(cut);
    for (size_t at = 0; at < length; at += step) {
        uint32_t code = (unsigned char)text[at];
        step = code < 0x80 ? 1 : sf_utf8_decode(text + at, end, &code);
        if (!step) step = 1;
        if (!(code < 0x80 ? cut->ascii[code] : is_match(cut, sign, code))) continue;
        if ((from < at && push(marks, from, at, 0)) || push(marks, at, at + step, 1)) return -1;
        from = at + step;
    }
    return from < length ? push(marks, from, length, 0) : 0;
}

/* Words, and runs of what is neither word nor space. */
static int mark_words(sf_stretches *marks, const char *text, size_t length)
{
    const char *end = text + length;
    size_t from = 0, step;
    int last = -1;
    for (size_t at = 0; at < length; at += step) {
        uint32_t code = (unsigned char)text[at];
        step = code < 0x80 ? 1 : sf_utf8_decode(text + at, end, &code);
        if (!step) step = 1;
        const uint32_t class = sf_class(code);
        const int kind = class & SF_CLASS_RUST_WORD ? 1 : class & SF_CLASS_SPACE ? 0 : 2;
        if (kind != last && from < at && push(marks, from, at, last != 0)) return -1;
        if (kind != last) from = at;
        last = kind;
    }
    return from < length ? push(marks, from, length, last != 0) : 0;
}

/* -------------------------------------------------------------- behaviors */

/* Appends what a behavior makes of the marks of one stretch. */
static int add_marked(sf_stretches *out, const sf_cut *cut, const sf_stretches *marks, sf_stretch whole)
{
    const size_t before = out->count;
    int previous = 0;
    for (size_t i = 0; i < marks->count; i++) {
        const sf_stretch m = marks->list[i];
        const int match = (m.head != 0) != cut->invert;
        const size_t begin = whole.begin + m.begin, end = whole.begin + m.end;
        const size_t head = m.begin < whole.head ? whole.head - m.begin : 0;
        sf_stretch *last = out->count > before ? &out->list[out->count - 1] : NULL;
        int join = 0;
        switch (cut->behavior) {
        case SF_REMOVED:
            if (match) continue;
            break;
        case SF_ISOLATED: break;
        case SF_CONTIGUOUS: join = last && match == previous; break;
        case SF_WITH_PREVIOUS: join = last && match && !previous; break;
        /* From the right: a match joins what follows it, unless that is a match itself. */
        case SF_WITH_NEXT: join = last && previous && !match; break;
        }
        previous = match;
        if (join)
            last->end = end;
        else if (push(out, begin, end, head))
            return -1;
    }
    return 0;
}

static int cut_all(const sf_cut *cut, sf_cuttings *c, sf_cut_scratch *scratch)
{
    sf_stretches *out = &scratch->other, *marks = &scratch->marks;
    out->count = 0;
    for (size_t i = 0; i < c->stretches.count; i++) {
        const sf_stretch s = c->stretches.list[i];
        const char *text = c->passage.bytes + s.begin;
        const size_t length = s.end - s.begin;
        marks->count = 0;
        const int failed = cut->kind == SF_CUT_REGEX   ? mark_regex(marks, cut->regex, text, length)
                           : cut->kind == SF_CUT_WORDS ? mark_words(marks, text, length)
                                                       : mark_characters(marks, cut, text, length);
        if (failed || add_marked(out, cut, marks, s)) return -1;
    }
    const sf_stretches old = c->stretches;
    c->stretches = *out;
    *out = old;
    return 0;
}

/* ------------------------------------------------------- the text anew */

static int starts_with(const char *text, size_t length, const char *sign)
{
    const size_t n = strlen(sign);
    return length >= n && memcmp(text, sign, n) == 0;
}

/* Spaces become the sign, or a prefix goes in front. The head grows with it. */
static int write_stretch(sf_buffer *to, const sf_cut *cut, const char *text, size_t length, size_t *head)
{
    const size_t n = strlen(cut->sign), old = *head;
    if (cut->kind == SF_CUT_PREFIX) {
        if (!starts_with(text, length, cut->sign) && (!cut->first || *head)) {
            if (*head) *head += n;
            if (sf_buffer_add(to, cut->sign, n)) return -1;
        }
        return sf_buffer_add(to, text, length);
    }
    for (size_t at = 0; at < length;) {
        const char *space = memchr(text + at, ' ', length - at);
        const size_t stop = space ? (size_t)(space - text) : length;
        if (sf_buffer_add(to, text + at, stop - at) || (space && sf_buffer_add(to, cut->sign, n))) return -1;
        if (space && stop < old) *head += n - 1;
        at = stop + 1;
    }
    return 0;
}

static int write_all(const sf_cut *cut, sf_cuttings *c, sf_cut_scratch *scratch)
{
    sf_buffer *to = sf_tokenizer_other(scratch->buffers, c->passage.bytes);
    const int skip = cut->kind == SF_CUT_PREFIX && c->skips > 0;
    c->skips -= (size_t)skip;
    sf_buffer_clear(to);
    for (size_t i = 0; i < c->stretches.count; i++) {
        sf_stretch *s = &c->stretches.list[i];
        const size_t begin = to->length;
        const char *text = c->passage.bytes + s->begin;
        const size_t length = s->end - s->begin;
        if (skip && i == 0 ? sf_buffer_add(to, text, length) : write_stretch(to, cut, text, length, &s->head))
            return -1;
        s->begin = begin;
        s->end = to->length;
    }
    c->passage.bytes = to->length ? to->bytes : "";
    c->passage.length = to->length;
    return 0;
}

int sf_cut_apply(const sf_cut *cut, sf_cuttings *cuttings, sf_cut_scratch *scratch)
{
    switch (cut->kind) {
    case SF_CUT_BYTES: return 0;
    case SF_CUT_PREFIX:
    case SF_CUT_METASPACE: return write_all(cut, cuttings, scratch);
    default: return cut_all(cut, cuttings, scratch);
    }
}

/* ------------------------------------------------------ from descriptions */

static safer_status add_step(sf_tokenizer *t, sf_cut step, const char *name, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (uint32_t c = 0; c < 128; c++) step.ascii[c] = (unsigned char)is_match(&step, sign_of(&step), c);
    if (t->cut_count && t->cuts[t->cut_count - 1].kind == SF_CUT_BYTES)
        status = sf_fail(error, SAFER_INPUT, "%s: a pre_tokenizer behind ByteLevel is not supported", name);
    else if (sf_grow(&t->cuts, &t->cut_capacity, t->cut_count + 1, sizeof *t->cuts))
        status = sf_fail_memory(error);
    if (status != SAFER_OK)
        sf_cut_free(&step);
    else
        t->cuts[t->cut_count++] = step;
    return status;
}

static safer_status read_byte_level(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    int prefix, regex;
    sf_cut split = {.kind = SF_CUT_REGEX, .behavior = SF_ISOLATED};
    safer_status status = SAFER_OK;
    SF_TRY(sf_json_flag(&prefix, value, "add_prefix_space", 1, name, error));
    SF_TRY(sf_json_flag(&regex, value, "use_regex", 1, name, error));
    if (prefix) SF_TRY(add_step(t, (sf_cut){.kind = SF_CUT_PREFIX, .sign = " "}, name, error));
    if (regex) {
        SF_TRY(sf_regex_new(&split.regex, byte_level_regex, strlen(byte_level_regex), name, error));
        SF_TRY(add_step(t, split, name, error));
    }
    status = add_step(t, (sf_cut){.kind = SF_CUT_BYTES}, name, error);
done:
    return status;
}

/* A string that is one character. */
static safer_status read_sign(char out[5], const json_t *value, const char *key, const char *name, safer_error *error)
{
    const char *text;
    size_t length;
    uint32_t code;
    safer_status status = sf_json_string(&text, &length, value, key, name, error);
    if (status != SAFER_OK) return status;
    if (length == 0 || length > 4 || sf_utf8_decode(text, text + length, &code) != length || code == 0)
        return sf_fail(error, SAFER_INPUT, "%s: %s is not one character", name, key);
    memset(out, 0, 5);
    memcpy(out, text, length);
    return SAFER_OK;
}

static safer_status read_metaspace(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    int split, old;
    const json_t *scheme = json_object_get(value, "prepend_scheme");
    const char *text = scheme ? json_string_value(scheme) : "always";
    sf_cut step = {.kind = SF_CUT_METASPACE};
    safer_status status = SAFER_OK;
    SF_TRY(read_sign(step.sign, value, "replacement", name, error));
    SF_TRY(sf_json_flag(&split, value, "split", 1, name, error));
    SF_TRY(sf_json_flag(&old, value, "add_prefix_space", 1, name, error));
    if (!text || (strcmp(text, "always") != 0 && strcmp(text, "first") != 0 && strcmp(text, "never") != 0)) {
        status = sf_fail(error, SAFER_INPUT, "%s: Metaspace's prepend_scheme is not always, first or never", name);
        goto done;
    }
    /* Older files have add_prefix_space alone; where both are there they must agree. */
    if (!old && scheme && strcmp(text, "never") != 0) {
        status = sf_fail(error, SAFER_INPUT, "%s: Metaspace's add_prefix_space does not match its prepend_scheme",
                         name);
        goto done;
    }
    if (!old) text = "never";
    SF_TRY(add_step(t, step, name, error));
    step.kind = SF_CUT_PREFIX;
    step.first = strcmp(text, "first") == 0;
    if (strcmp(text, "never") != 0) SF_TRY(add_step(t, step, name, error));
    step.kind = SF_CUT_CHARACTER;
    step.behavior = SF_WITH_NEXT;
    if (split) SF_TRY(add_step(t, step, name, error));
done:
    return status;
}

static safer_status read_behavior(sf_behavior *out, const json_t *value, sf_behavior missing, const char *name,
                                  safer_error *error)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    const json_t *member = json_object_get(value, "behavior");
    *out = missing;
    if (!member) return SAFER_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_is_string(member) && strcmp(json_string_value(member), names[i]) == 0) {
            *out = (sf_behavior)i;
            return SAFER_OK;
        }
    return sf_fail(error, SAFER_INPUT,
                   "%s: a pre_tokenizer's behavior is not one of Removed, Isolated, "
                   "MergedWithPrevious, MergedWithNext and Contiguous",
                   name);
}

static safer_status read_split(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    const json_t *pattern = json_object_get(value, "pattern");
    const json_t *literal = json_object_get(pattern, "String"), *regex = json_object_get(pattern, "Regex");
    sf_cut step = {.kind = SF_CUT_REGEX};
    safer_status status = SAFER_OK;
    SF_TRY(read_behavior(&step.behavior, value, SF_REMOVED, name, error));
    SF_TRY(sf_json_flag(&step.invert, value, "invert", 0, name, error));
    if (json_is_string(literal) && json_string_length(literal) > 0)
        SF_TRY(sf_regex_literal(&step.regex, json_string_value(literal), json_string_length(literal), error));
    else if (json_is_string(regex))
        SF_TRY(sf_regex_new(&step.regex, json_string_value(regex), json_string_length(regex), name, error));
    else {
        status = sf_fail(error, SAFER_INPUT, "%s: the Split pre_tokenizer has no pattern", name);
        goto done;
    }
    return add_step(t, step, name, error);
done:
    sf_cut_free(&step);
    return status;
}

static safer_status read_simple(sf_tokenizer *t, const char *type, const json_t *value, const char *name,
                                safer_error *error)
{
    sf_cut step = {.behavior = SF_REMOVED};
    int single;
    safer_status status = SAFER_OK;
    if (strcmp(type, "WhitespaceSplit") == 0) {
        step.kind = SF_CUT_SPACE;
    } else if (strcmp(type, "Whitespace") == 0) {
        step = (sf_cut){.kind = SF_CUT_WORDS, .invert = 1};
    } else if (strcmp(type, "Punctuation") == 0) {
        step.kind = SF_CUT_PUNCTUATION;
        SF_TRY(read_behavior(&step.behavior, value, SF_ISOLATED, name, error));
    } else if (strcmp(type, "Digits") == 0) {
        SF_TRY(sf_json_flag(&single, value, "individual_digits", 0, name, error));
        step = (sf_cut){.kind = SF_CUT_DIGITS, .behavior = single ? SF_ISOLATED : SF_CONTIGUOUS};
    } else if (strcmp(type, "CharDelimiterSplit") == 0) {
        step.kind = SF_CUT_CHARACTER;
        SF_TRY(read_sign(step.sign, value, "delimiter", name, error));
    } else if (strcmp(type, "BertPreTokenizer") == 0) {
        SF_TRY(add_step(t, (sf_cut){.kind = SF_CUT_SPACE, .behavior = SF_REMOVED}, name, error));
        step = (sf_cut){.kind = SF_CUT_PUNCTUATION, .behavior = SF_ISOLATED};
    } else {
        return sf_fail(error, SAFER_INPUT, "%s: pre_tokenizer '%.*s' is not supported", name,
                       sf_clip(type, strlen(type), 80), type);
    }
    status = add_step(t, step, name, error);
done:
    return status;
}

safer_status sf_tokenizer_read_cuts(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error)
{
    const char *type;
    if (!value || json_is_null(value)) return SAFER_OK;
    safer_status status = sf_json_type(&type, value, "pre_tokenizer", name, error);
    if (status != SAFER_OK) return status;
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(value, "pretokenizers"), *member;
        size_t i;
        if (!json_is_array(list)) return sf_fail(error, SAFER_INPUT, "%s: a Sequence without pretokenizers", name);
        json_array_foreach(list, i, member)
        {
            if (json_is_null(member)) return sf_fail(error, SAFER_INPUT, "%s: a pre_tokenizer is null", name);
            status = sf_tokenizer_read_cuts(t, member, name, error);
            if (status != SAFER_OK) return status;
        }
        return SAFER_OK;
    }
    if (strcmp(type, "ByteLevel") == 0) return read_byte_level(t, value, name, error);
    if (strcmp(type, "Metaspace") == 0) return read_metaspace(t, value, name, error);
    if (strcmp(type, "Split") == 0) return read_split(t, value, name, error);
    return read_simple(t, type, value, name, error);
}
