/* What a service is asked: every profile's body is a template in which the texts are put.
 *
 * A template is taken apart once. Texts are then copied between its pieces, so nothing in a
 * text is ever taken for a placeholder. */
#include "remote/http_profile.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/quote.h"
#include "text/unicode.h"

#include <string.h>

static const char default_request[] = "{\"texts\": {{texts}}}";
static const char default_question[] =
    "Classify the text below. The labels are: {{labels}}. Answer with exactly one of these labels "
    "and nothing else.\n\nText:\n{{text}}";

/* ------------------------------------------------------------------ JSON text */

static int add_string(sf_buffer *out, const char *bytes, size_t length)
{
    return sf_buffer_add_byte(out, '"') || sf_quote(out, bytes, length) || sf_buffer_add_byte(out, '"');
}

static int add_texts(sf_buffer *out, const sf_span *texts, size_t count, const char *open, const char *close)
{
    int failed = sf_buffer_add_byte(out, '[');
    for (size_t i = 0; i < count && !failed; i++)
        failed = (i && sf_buffer_add_byte(out, ',')) || sf_buffer_add_string(out, open) ||
                 add_string(out, texts[i].bytes, texts[i].length) || sf_buffer_add_string(out, close);
    return failed || sf_buffer_add_byte(out, ']');
}

static int add_hole(sf_buffer *out, sf_hole hole, const sf_span *texts, size_t count)
{
    switch (hole) {
    case SF_HOLE_TEXT: return add_string(out, texts->bytes, texts->length);
    case SF_HOLE_INSIDE: return sf_quote(out, texts->bytes, texts->length);
    case SF_HOLE_TEXTS: return add_texts(out, texts, count, "", "");
    case SF_HOLE_LISTS: return add_texts(out, texts, count, "[", "]");
    case SF_HOLE_COUNT: return sf_buffer_format(out, "%zu", count);
    case SF_HOLE_NONE: break;
    }
    return 0;
}

safer_status sf_http_body(sf_buffer *out, const sf_http_profile *profile, const sf_span *texts, size_t count,
                          safer_error *error)
{
    for (size_t i = 0; i < profile->count; i++) {
        const sf_piece *piece = &profile->pieces[i];
        if (sf_buffer_add(out, profile->template.bytes + piece->begin, piece->end - piece->begin) ||
            add_hole(out, piece->hole, texts, count))
            return sf_fail_memory(error);
    }
    return SAFER_OK;
}

/* ------------------------------------------------------------------ templates */

static sf_hole hole_at(const char *text, size_t *length)
{
    static const struct {
        const char *name;
        sf_hole hole;
    } holes[] = {{"{{text}}", SF_HOLE_TEXT},
                 {"{{texts}}", SF_HOLE_TEXTS},
                 {"{{lists}}", SF_HOLE_LISTS},
                 {"{{count}}", SF_HOLE_COUNT}};
    for (size_t i = 0; i < sizeof holes / sizeof holes[0]; i++)
        if (strncmp(text, holes[i].name, *length = strlen(holes[i].name)) == 0) return holes[i].hole;
    return SF_HOLE_NONE;
}

static int add_piece(sf_http_profile *profile, size_t begin, size_t end, sf_hole hole)
{
    if (sf_grow(&profile->pieces, &profile->capacity, profile->count + 1, sizeof *profile->pieces)) return -1;
    profile->pieces[profile->count++] = (sf_piece){begin, end, hole};
    return 0;
}

/* Takes the template apart. Within its strings only {{text}} means something. */
static safer_status split(sf_http_profile *profile, safer_error *error)
{
    const char *text = profile->template.bytes;
    size_t begin = 0, length, one = 0, many = 0;
    int inside = 0;
    for (size_t i = 0; text[i];) {
        sf_hole hole = hole_at(text + i, &length);
        if (inside && hole != SF_HOLE_NONE) hole = hole == SF_HOLE_TEXT ? SF_HOLE_INSIDE : SF_HOLE_NONE;
        if (hole != SF_HOLE_NONE) {
            if (add_piece(profile, begin, i, hole)) return sf_fail_memory(error);
            one += hole == SF_HOLE_TEXT || hole == SF_HOLE_INSIDE;
            many += hole == SF_HOLE_TEXTS || hole == SF_HOLE_LISTS;
            begin = i += length;
            continue;
        }
        if (text[i] == '"') inside = !inside;
        i += inside && text[i] == '\\' && text[i + 1] ? 2 : 1;
    }
    if (add_piece(profile, begin, profile->template.length, SF_HOLE_NONE)) return sf_fail_memory(error);
    if (one && many)
        return sf_fail(error, SAFER_INVALID,
                       "`request`: both {{text}} and {{texts}}; a request carries one text or a list");
    if (!one && !many)
        return sf_fail(error, SAFER_INVALID,
                       "`request`: neither {{texts}} (a list) nor {{text}} is in it; nothing would be asked");
    profile->single = one > 0;
    return SAFER_OK;
}

/* Whether the template makes JSON: tried with texts that need escaping. */
static safer_status try_out(const sf_http_profile *profile, safer_error *error)
{
    safer_status status;
    json_error_t where;
    sf_buffer body = {0};
    const sf_span texts[] = {{"\"a\\\n", 4}, {"b", 1}};
    SF_TRY(sf_http_body(&body, profile, texts, profile->single ? 1 : 2, error));
    json_t *json;
    status = sf_json_parse(&json, body.bytes, body.length, JSON_DECODE_ANY, &where);
    if (status == SAFER_MEMORY) (void)sf_fail_memory(error);
    if (status == SAFER_INPUT)
        status = sf_fail(error, SAFER_INVALID, "`request`: with a text in it, it is not JSON: %s. It begins: %.120s",
                         where.text, body.bytes);
    json_decref(json);
done:
    sf_buffer_free(&body);
    return status;
}

/* ------------------------------------------------------------------- profiles */

static int json_template(sf_buffer *out, const safer_remote_options *o)
{
    return sf_buffer_add_string(out, o->request ? o->request : default_request);
}

static int kserve_template(sf_buffer *out, const safer_remote_options *o)
{
    const char *name = o->name ? o->name : "text";
    return sf_buffer_add_string(out, "{\"inputs\":[{\"name\":") || add_string(out, name, strlen(name)) ||
           sf_buffer_add_string(out, ",\"shape\":[{{count}}],\"datatype\":\"BYTES\",\"data\":{{texts}}}]}");
}

/* A list of strings would be taken for one pair: texts of a batch are lists of one. Texts that
 * are too long are cut, not refused. */
static int tei_template(sf_buffer *out)
{
    return sf_buffer_add_string(out, "{\"inputs\":{{lists}},\"truncate\":true}");
}

/* Tokens of a reply: a token is a byte or more. The rest is for quotes and a full stop. */
static size_t reply_tokens(const sf_labels *labels)
{
    size_t longest = 0;
    for (size_t k = 0; k < labels->count; k++)
        if (strlen(labels->names[k]) > longest) longest = strlen(labels->names[k]);
    return longest + 8;
}

/* The question within a JSON string, with {{labels}} filled in already. */
static int add_question(sf_buffer *out, const char *question, const sf_labels *labels)
{
    static const char hole[] = "{{labels}}";
    for (const char *next; (next = strstr(question, hole)); question = next + sizeof hole - 1) {
        if (sf_quote(out, question, (size_t)(next - question))) return -1;
        for (size_t k = 0; k < labels->count; k++)
            if ((k && sf_buffer_add_string(out, ", ")) || sf_quote(out, labels->names[k], strlen(labels->names[k])))
                return -1;
    }
    return sf_quote(out, question, strlen(question));
}

static int openai_template(sf_buffer *out, const safer_remote_options *o, const sf_labels *labels)
{
    return sf_buffer_add_string(out, "{\"model\":") || add_string(out, o->name, strlen(o->name)) ||
           sf_buffer_format(out,
                            ",\"temperature\":0,\"max_tokens\":%zu,\"messages\":[{\"role\":\"user\",\"content\":\"",
                            reply_tokens(labels)) ||
           add_question(out, o->request ? o->request : default_question, labels) || sf_buffer_add_string(out, "\"}]}");
}

/* Replies are searched for names in any case: two that differ in case alone, or that are
 * empty, could not be distinguished. */
static safer_status check_names(const sf_labels *labels, safer_error *error)
{
    for (size_t k = 0; k < labels->count; k++) {
        const char *name = labels->names[k];
        if (sf_http_label_in(labels, name, strlen(name)) != (int)k)
            return sf_fail(
                error, SAFER_INVALID,
                "`labels`: \"%.80s\" cannot be distinguished from the others in a reply (openai ignores case)", name);
    }
    return SAFER_OK;
}

/* What a profile has no use for is refused: it would silently do nothing. */
static safer_status check_options(safer_profile kind, const safer_remote_options *o, const sf_labels *labels,
                                  safer_error *error)
{
    const char *profile = safer_profile_name(kind);
    if (o->request && (kind == SAFER_PROFILE_KSERVE || kind == SAFER_PROFILE_TEI))
        return sf_fail(error, SAFER_INVALID,
                       "`request`: the body of profile %s is fixed; a template is for json and openai", profile);
    if (o->answer && (kind == SAFER_PROFILE_TEI || kind == SAFER_PROFILE_OPENAI))
        return sf_fail(error, SAFER_INVALID,
                       "`answer`: where the answer of profile %s stands is fixed; this is for json and kserve",
                       profile);
    if (o->name && (kind == SAFER_PROFILE_JSON || kind == SAFER_PROFILE_TEI))
        return sf_fail(error, SAFER_INVALID, "`name`: profile %s asks for no name; this is for kserve and openai",
                       profile);
    if (o->answer && kind == SAFER_PROFILE_JSON && !sf_json_pointer_valid(o->answer))
        return sf_fail(error, SAFER_INVALID, "`answer`: \"%.80s\" is no JSON pointer; write it as /results/0/labels",
                       o->answer);
    if (kind != SAFER_PROFILE_OPENAI) return SAFER_OK;
    if (!o->name || !*o->name) return sf_fail(error, SAFER_INVALID, "`name`: profile openai needs the model's name");
    if (o->request && !strstr(o->request, "{{text}}"))
        return sf_fail(error, SAFER_INVALID, "`request`: {{text}} is not in the question; nothing would be asked");
    return check_names(labels, error);
}

static int make_template(sf_http_profile *out, const safer_remote_options *o)
{
    switch (out->kind) {
    case SAFER_PROFILE_JSON: return json_template(&out->template, o);
    case SAFER_PROFILE_KSERVE: return kserve_template(&out->template, o);
    case SAFER_PROFILE_TEI: return tei_template(&out->template);
    case SAFER_PROFILE_OPENAI: return openai_template(&out->template, o, out->labels);
    }
    return -1;
}

safer_status sf_http_profile_open(sf_http_profile *out, const sf_labels *labels, const safer_remote_options *options,
                                  safer_error *error)
{
    safer_status status;
    out->labels = labels;
    out->kind = options->profile;
    if (!safer_profile_name(out->kind)) return sf_fail(error, SAFER_INVALID, "`profile`: unknown");
    SF_TRY(check_options(out->kind, options, labels, error));
    if (make_template(out, options) || (options->answer && !(out->answer = sf_strdup(options->answer)))) {
        status = sf_fail_memory(error);
        goto done;
    }
    if (sf_utf8_valid(out->template.bytes, out->template.length) != out->template.length) {
        status = sf_fail(error, SAFER_INVALID, "`request`: not UTF-8");
        goto done;
    }
    SF_TRY(split(out, error));
    SF_TRY(try_out(out, error));
done:
    return status;
}

void sf_http_profile_free(sf_http_profile *profile)
{
    sf_buffer_free(&profile->template);
    free(profile->pieces);
    free(profile->answer);
    *profile = (sf_http_profile){0};
}
