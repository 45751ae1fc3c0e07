/* How a service's answer is read: JSON of every profile, and the labels in it. The profiles are
 * described in http_profile.h and docs/models.md. */
#include "remote/http_profile.h"

#include "base/json.h"
#include "base/memory.h"
#include "text/unicode.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* One answer on its way from JSON to classes. */
typedef struct reading {
    const sf_http_profile *profile;
    const sf_labels *labels;
    const char *name;
    int *out;
    float *scores; /* or NULL */
    safer_error *error;
} reading;

/* -------------------------------------------------------------- JSON pointers */

int sf_json_pointer_valid(const char *pointer)
{
    if (*pointer && *pointer != '/') return 0;
    if (sf_utf8_valid(pointer, strlen(pointer)) != strlen(pointer)) return 0;
    for (; *pointer; pointer++)
        if (*pointer == '~' && pointer[1] != '0' && pointer[1] != '1') return 0;
    return 1;
}

/* Whether the pointer's next part, up to the next slash, spells this key. */
static int part_is(const char *part, size_t length, const char *key)
{
    for (size_t i = 0; i < length; i++, key++) {
        char c = part[i];
        if (c == '~') c = part[++i] == '0' ? '~' : '/';
        if (*key != c) return 0;
    }
    return *key == '\0';
}

static const json_t *member(const json_t *object, const char *part, size_t length)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) if (part_is(part, length, key)) return value;
    return NULL;
}

static const json_t *element(const json_t *array, const char *part, size_t length)
{
    size_t index = 0;
    if (!length || length > 9 || (length > 1 && *part == '0')) return NULL;
    for (size_t i = 0; i < length; i++) {
        if (part[i] < '0' || part[i] > '9') return NULL;
        index = index * 10 + (size_t)(part[i] - '0');
    }
    return json_array_get(array, index);
}

const json_t *sf_json_pointer_get(const json_t *root, const char *pointer)
{
    while (root && *pointer) {
        const char *part = pointer + 1;
        size_t length = strcspn(part, "/");
        root = json_is_object(root) ? member(root, part, length) : element(root, part, length);
        pointer = part + length;
    }
    return root;
}

/* -------------------------------------------------- labels with their scores */

/* The class of a label, or an error that names it. */
static safer_status find_label(int *out, const reading *r, const json_t *label)
{
    *out = sf_labels_find(r->labels, label);
    if (*out >= SF_NO_LABEL) return SAFER_OK;
    json_t *list = json_pack("[O]", label ? label : json_null());
    if (!list) return sf_fail_memory(r->error);
    safer_status status = sf_read_labels(out, r->labels, list, 1, r->name, r->error);
    if (status == SAFER_OK) status = sf_fail(r->error, SAFER_INPUT, "%s: an answer has no \"label\"", r->name);
    json_decref(list);
    return status;
}

/* One text: [{"label": ..., "score": ...}, ...] in any order, all labels or the best ones. The
 * greatest wins, of equals the first class. */
static safer_status read_ranked(const reading *r, size_t text, const json_t *row)
{
    size_t classes = r->labels->count, named = json_array_size(row);
    double best = -HUGE_VAL;
    double *seen = sf_alloc(classes, sizeof *seen);
    safer_status status = seen ? SAFER_OK : sf_fail_memory(r->error);
    for (size_t k = 0; seen && k < classes; k++) seen[k] = nan("");
    r->out[text] = SF_NO_LABEL;
    if (seen && !named) status = sf_fail(r->error, SAFER_INPUT, "%s: a list without any label", r->name);
    for (size_t i = 0; status == SAFER_OK && i < named; i++) {
        const json_t *entry = json_array_get(row, i), *score = json_object_get(entry, "score");
        int label = SF_NO_LABEL;
        SF_TRY(find_label(&label, r, json_object_get(entry, "label")));
        double value = json_number_value(score);
        if (label < 0)
            status = sf_fail(r->error, SAFER_INPUT, "%s: a score for the label null", r->name);
        else if (!json_is_number(score) || !(fabs(value) <= (double)FLT_MAX))
            status = sf_fail(r->error, SAFER_INPUT, "%s: the score of label \"%.60s\" is no finite number", r->name,
                             r->labels->names[label]);
        else if (!isnan(seen[label]))
            status = sf_fail(r->error, SAFER_INPUT, "%s: two scores of label \"%.60s\" for one text", r->name,
                             r->labels->names[label]);
        if (status != SAFER_OK) break;
        seen[label] = value;
        if (value > best || (value == best && label < r->out[text])) {
            best = value;
            r->out[text] = label;
        }
    }
    if (status == SAFER_OK && r->scores) {
        float *scores = r->scores + text * classes;
        if (named < classes)
            sf_one_hot(scores, &r->out[text], 1, classes); /* the best ones alone say nothing of the rest */
        for (size_t k = 0; named == classes && k < classes; k++) scores[k] = (float)seen[k];
    }
done:
    free(seen);
    return status;
}

/* One text: {"label": ...}, maybe with "scores": [...] that must agree. */
static safer_status read_object(const reading *r, size_t text, const json_t *answer)
{
    const json_t *scores = json_object_get(answer, "scores");
    safer_status status = find_label(&r->out[text], r, json_object_get(answer, "label"));
    if (status != SAFER_OK || !json_is_array(scores)) return status;
    json_t *list = json_pack("[O]", scores);
    if (!list) return sf_fail_memory(r->error);
    status = sf_check_scores(&r->out[text], r->labels, list, 1, r->name, r->error);
    json_decref(list);
    return status;
}

/* A list with something for every text: lists as above, {"label": ...}, or null. */
static safer_status read_objects(const reading *r, const json_t *list, size_t count)
{
    safer_status status = SAFER_OK;
    size_t classes = r->labels->count;
    if (json_array_size(list) != count)
        return sf_fail(r->error, SAFER_INPUT, "%s: answers: %zu, texts: %zu", r->name, json_array_size(list), count);
    for (size_t i = 0; status == SAFER_OK && i < count; i++) {
        const json_t *answer = json_array_get(list, i);
        if (json_is_array(answer)) {
            status = read_ranked(r, i, answer);
            continue;
        }
        r->out[i] = SF_NO_LABEL;
        if (json_is_object(answer))
            status = read_object(r, i, answer);
        else if (!json_is_null(answer))
            status = sf_fail(r->error, SAFER_INPUT, "%s: answers of several kinds", r->name);
        if (status == SAFER_OK && r->scores) sf_one_hot(r->scores + i * classes, &r->out[i], 1, classes);
    }
    return status;
}

static safer_status read_labels(const reading *r, const json_t *list, size_t count)
{
    safer_status status = sf_read_labels(r->out, r->labels, list, count, r->name, r->error);
    if (status == SAFER_OK && r->scores) sf_one_hot(r->scores, r->out, count, r->labels->count);
    return status;
}

/* The first item that is not null, if there is one. */
static const json_t *first_item(const json_t *list)
{
    const json_t *first = NULL;
    for (size_t i = 0; i < json_array_size(list) && (!first || json_is_null(first)); i++)
        first = json_array_get(list, i);
    return first;
}

/* Labels, scores, or labels with scores: as the first answer is. */
static safer_status read_list(const reading *r, const json_t *list, size_t count)
{
    const json_t *first = first_item(list);
    if (!json_is_array(list))
        return sf_fail(r->error, SAFER_INPUT, "%s: no list of answers, but one value for %zu text%s", r->name, count,
                       count == 1 ? "" : "s");
    if (json_is_object(first) || json_is_object(json_array_get(first, 0))) return read_objects(r, list, count);
    if (json_is_array(first)) return sf_read_scores(r->out, r->scores, r->labels, list, count, r->name, r->error);
    return read_labels(r, list, count);
}

/* ----------------------------------------------------------------------- json */

static const json_t *find_answer(const json_t *root)
{
    static const char *const names[] = {"labels", "scores", "predictions", "label"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *value = json_object_get(root, names[i]);
        if (value) return value;
    }
    return json_is_array(root) ? root : NULL;
}

/* A new reference to the answers of all texts, or NULL without memory. For one text there may be a label or its scores,
 * or either as a list of one: there are at least two classes, so a list of one is no scores. */
static json_t *list_of(const reading *r, const json_t *value)
{
    int is_list = !r->profile->single || (json_is_array(value) && json_array_size(value) == 1);
    return is_list ? json_incref((json_t *)(uintptr_t)value) : json_pack("[O]", value);
}

/* The list of an answer for `count` texts, as a label or scores. */
static safer_status read_value(const reading *r, const json_t *value, size_t count)
{
    json_t *list = list_of(r, value);
    safer_status status = list ? read_list(r, list, count) : sf_fail_memory(r->error);
    json_decref(list);
    return status;
}

/* An answer with labels and scores: the labels become the answer, if they agree with the scores. Scores that are no
 * lists (the probability of each label alone, say) are not looked at. */
static safer_status check_both(const reading *r, const json_t *labels, const json_t *scores, size_t count)
{
    reading again = *r;
    json_t *list = list_of(r, scores);
    safer_status status = list ? SAFER_OK : sf_fail_memory(r->error);
    again.scores = NULL; /* they are read */
    if (json_is_array(first_item(list))) {
        SF_TRY(read_value(&again, labels, count));
        SF_TRY(sf_check_scores(r->out, r->labels, list, count, r->name, r->error));
    }
done:
    json_decref(list);
    return status;
}

static safer_status read_json(const reading *r, const json_t *root, size_t count)
{
    const char *pointer = r->profile->answer;
    const json_t *value = pointer ? sf_json_pointer_get(root, pointer) : find_answer(root);
    const json_t *labels = json_object_get(root, "labels"), *scores = json_object_get(root, "scores");
    if (!labels) labels = json_object_get(root, "label");
    if (!value && pointer)
        return sf_fail(r->error, SAFER_INPUT, "%s: nothing at \"%.80s\" in the answer", r->name, pointer);
    if (!value)
        return sf_fail(r->error, SAFER_INPUT,
                       "%s: no \"labels\", \"scores\", \"predictions\" or \"label\" in the answer; say where they are",
                       r->name);
    safer_status status = read_value(r, value, count);
    if (status == SAFER_OK && !pointer && labels && scores) status = check_both(r, labels, scores, count);
    return status;
}

/* --------------------------------------------------------------------- kserve */

static const json_t *output_named(const json_t *outputs, const char *name)
{
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *output = json_array_get(outputs, i);
        const char *its = json_string_value(json_object_get(output, "name"));
        if (its && strcasecmp(its, name) == 0) return output;
    }
    return NULL;
}

/* The first output that has one of these names, from the `first` of them on; or NULL. */
static const json_t *output_like(const json_t *outputs, size_t first)
{
    static const char *const names[] = {"label", "labels", "scores", "probabilities", "logits"};
    const json_t *output = NULL;
    for (size_t i = first; i < sizeof names / sizeof names[0] && !output; i++) output = output_named(outputs, names[i]);
    return output;
}
enum { SCORES = 2 }; /* the first name of scores */

static const json_t *find_output(const json_t *outputs, const char *asked)
{
    const json_t *output = asked ? output_named(outputs, asked) : output_like(outputs, 0);
    return output || asked ? output : json_array_get(outputs, 0);
}

/* A tensor may come flat or in lists of lists. */
static int flatten(json_t *out, const json_t *data)
{
    for (size_t i = 0; i < json_array_size(data); i++) {
        json_t *value = json_array_get(data, i);
        if (json_is_array(value) ? flatten(out, value) : json_array_append(out, value)) return -1;
    }
    return 0;
}

/* A new list of (count, classes) scores, one list per text; NULL without memory. */
static json_t *score_rows(const json_t *flat, size_t count, size_t classes)
{
    json_t *rows = json_array();
    int failed = !rows;
    for (size_t i = 0; i < count && !failed; i++) {
        json_t *row = json_array();
        for (size_t k = 0; k < classes && row; k++)
            failed |= json_array_append(row, json_array_get(flat, i * classes + k));
        failed |= json_array_append_new(rows, row);
    }
    if (!failed) return rows;
    json_decref(rows);
    return NULL;
}

/* A tensor of scores: read, or (`check`) compared with the labels that were. One with other numbers, such as the
 * probability of each label alone, has nothing to compare. */
static safer_status read_score_tensor(const reading *r, const json_t *flat, size_t count, int check)
{
    size_t classes = r->labels->count;
    if (json_array_size(flat) != count * classes && check) return SAFER_OK;
    if (json_array_size(flat) != count * classes)
        return sf_fail(r->error, SAFER_INPUT, "%s: scores: %zu, not %zu (texts times labels)", r->name,
                       json_array_size(flat), count * classes);
    json_t *rows = score_rows(flat, count, classes);
    safer_status status = !rows   ? sf_fail_memory(r->error)
                          : check ? sf_check_scores(r->out, r->labels, rows, count, r->name, r->error)
                                  : sf_read_scores(r->out, r->scores, r->labels, rows, count, r->name, r->error);
    json_decref(rows);
    return status;
}

static int is_type(const json_t *output, const char *begins)
{
    const char *type = json_string_value(json_object_get(output, "datatype"));
    return type && strncmp(type, begins, strlen(begins)) == 0;
}

static safer_status read_tensor(const reading *r, const json_t *output, size_t count, int check)
{
    const char *type = json_string_value(json_object_get(output, "datatype"));
    const json_t *data = json_object_get(output, "data");
    if (!type || !json_is_array(data))
        return sf_fail(r->error, SAFER_INPUT, "%s: an output without \"datatype\" or a list \"data\"", r->name);
    json_t *flat = json_array();
    safer_status status;
    if (!flat || flatten(flat, data))
        status = sf_fail_memory(r->error);
    else if (is_type(output, "FP"))
        status = read_score_tensor(r, flat, count, check);
    else if (strcmp(type, "BYTES") == 0 || strcmp(type, "STRING") == 0 || is_type(output, "INT") ||
             is_type(output, "UINT"))
        status = read_labels(r, flat, count);
    else
        status = sf_fail(r->error, SAFER_INPUT, "%s: outputs of type \"%.30s\" are neither labels nor scores", r->name,
                         type);
    json_decref(flat);
    return status;
}

static safer_status read_kserve(const reading *r, const json_t *root, size_t count)
{
    const char *asked = r->profile->answer;
    const json_t *outputs = json_object_get(root, "outputs"), *output;
    if (!json_is_array(outputs) || !json_array_size(outputs))
        return sf_fail(r->error, SAFER_INPUT, "%s: no \"outputs\" in the answer", r->name);
    if (!(output = find_output(outputs, asked)))
        return sf_fail(r->error, SAFER_INPUT, "%s: no output \"%.60s\"", r->name, asked);
    safer_status status = read_tensor(r, output, count, 0);
    const json_t *scores = asked || is_type(output, "FP") ? NULL : output_like(outputs, SCORES);
    if (status == SAFER_OK && is_type(scores, "FP")) status = read_tensor(r, scores, count, 1);
    return status;
}

/* --------------------------------------------------------------------- openai */

static int is_digit(uint32_t code) { return code >= '0' && code <= '9'; }
static int is_word(uint32_t code) { return is_digit(code) || sf_is_letter(code); }

/* The code point before or at p; 0 at the ends and for bytes that are not UTF-8. */
static uint32_t code_before(const char *begin, const char *p, const char **start)
{
    uint32_t code = 0;
    const char *at = p;
    while (at > begin && p - at < 4) {
        at--;
        if ((*at & 0xc0) != 0x80) break;
    }
    *start = at;
    return at < p && sf_utf8_decode(at, p, &code) == (size_t)(p - at) ? code : 0;
}

static uint32_t code_at(const char *p, const char *end, const char **after)
{
    uint32_t code = 0;
    size_t length = p < end ? sf_utf8_decode(p, end, &code) : 0;
    *after = p + (length ? length : p < end);
    return length ? code : 0;
}

/* Whether `near` at the edge of a name, with `far` behind it, makes it part of a longer word:
 * "non-toxic" does not say toxic, nor "4.5" five. */
static int joins(uint32_t near, uint32_t far)
{
    if (is_word(near)) return 1;
    if (near == '-' || near == '_' || near == '\'' || near == 0x2019) return is_word(far);
    return (near == '.' || near == ',') && is_digit(far);
}

static int begins_word(const char *begin, const char *p, const char *end)
{
    const char *start, *unused;
    uint32_t near = code_before(begin, p, &start), far = code_before(begin, start, &unused);
    if (near == '-' && is_digit(code_at(p, end, &unused))) return 0; /* a minus */
    return !joins(near, far);
}

static int ends_word(const char *p, const char *end)
{
    const char *after, *unused;
    uint32_t near = code_at(p, end, &after);
    return !joins(near, code_at(after, end, &unused));
}

/* Where the name ends in the text, or NULL when it is not there. */
static const char *match(const char *text, const char *end, const char *name)
{
    const char *name_end = name + strlen(name);
    while (name < name_end) {
        const char *text_next, *name_next;
        uint32_t a = code_at(text, end, &text_next), b = code_at(name, name_end, &name_next);
        if (!a || !b || sf_lower(a) != sf_lower(b)) return NULL;
        text = text_next;
        name = name_next;
    }
    return text;
}

int sf_http_label_in(const sf_labels *labels, const char *text, size_t length)
{
    const char *end = text + length, *next;
    int found = SF_NO_LABEL;
    for (const char *p = text; p < end; p = next) {
        int best = SF_NO_LABEL;
        (void)code_at(p, end, &next);
        if (!begins_word(text, p, end)) continue;
        for (size_t k = 0; k < labels->count; k++) { /* the longest: "very good" is not "good" */
            const char *stop = match(p, end, labels->names[k]);
            if (!stop || stop == p || !ends_word(stop, end) || (best >= 0 && stop <= next)) continue;
            best = (int)k;
            next = stop;
        }
        if (best >= 0 && found >= 0 && found != best) return SF_NO_LABEL;
        if (best >= 0) found = best;
    }
    return found;
}

/* A reply that holds no label is the model's answer too, and stays: to ask again until one
 * comes would be to select. Only an answer without any reply is an error. */
static safer_status read_openai(const reading *r, const json_t *root)
{
    const json_t *message = json_object_get(json_array_get(json_object_get(root, "choices"), 0), "message");
    if (!json_is_object(message))
        return sf_fail(r->error, SAFER_INPUT, "%s: no choices[0].message in the answer", r->name);
    const json_t *content = json_object_get(message, "content");
    *r->out = SF_NO_LABEL;
    if (json_is_string(content))
        *r->out = sf_http_label_in(r->labels, json_string_value(content), json_string_length(content));
    if (r->scores) sf_one_hot(r->scores, r->out, 1, r->labels->count);
    return SAFER_OK;
}

int sf_http_declined(const sf_http_profile *profile, long code, const char *bytes, size_t length)
{
    if (profile->kind != SAFER_PROFILE_OPENAI || code != 400) return 0;
    json_t *root = length ? json_loadb(bytes, length, JSON_ALLOW_NUL, NULL) : NULL;
    const char *why = json_string_value(json_object_get(json_object_get(root, "error"), "code"));
    int declined = why && (strcmp(why, "content_filter") == 0 || strcmp(why, "content_policy_violation") == 0);
    json_decref(root);
    return declined;
}

/* ------------------------------------------------------------------- the whole */

/* Python's json writes NaN and Infinity, which JSON does not have: an answer that would be one
 * but for these has arrived whole, and asking again gives the same. */
static int is_json_but_for_nan(const char *bytes, size_t length)
{
    char *copy = sf_strndup(bytes, length);
    int inside = 0, replaced = 0;
    if (!copy) return 0;
    for (size_t i = 0; i < length; i++) {
        if (inside && copy[i] == '\\') {
            i++;
            continue;
        }
        if (copy[i] == '"') inside = !inside;
        if (inside) continue;
        size_t word = strncmp(copy + i, "NaN", 3) == 0 ? 3 : strncmp(copy + i, "Infinity", 8) == 0 ? 8 : 0;
        if (!word) continue;
        memset(copy + i, ' ', word);
        copy[i] = '0';
        replaced = 1;
    }
    json_t *json = replaced ? json_loadb(copy, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
    int is_json = json != NULL;
    free(copy);
    json_decref(json);
    return is_json;
}

safer_status sf_http_answer(int *labels, float *scores, int *lost, const sf_http_profile *profile, const char *bytes,
                            size_t length, size_t count, const char *name, safer_error *error)
{
    json_error_t where;
    const reading r = {profile, profile->labels, name, labels, scores, error};
    json_t *root = NULL;
    safer_status status = SAFER_INPUT;
    if (length) status = sf_json_parse(&root, bytes, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &where);
    *lost = 0;
    if (status == SAFER_MEMORY) return sf_fail_memory(error);
    if (!root) {
        if (length && is_json_but_for_nan(bytes, length))
            return sf_fail(error, SAFER_INPUT, "%s: the answer holds NaN or Infinity, which are no scores", name);
        *lost = 1;
        return sf_fail(error, SAFER_INPUT, "%s: the answer is not JSON (%s)", name,
                       length ? where.text : "it is empty");
    }
    switch (profile->kind) {
    case SAFER_PROFILE_JSON: status = read_json(&r, root, count); break;
    case SAFER_PROFILE_KSERVE: status = read_kserve(&r, root, count); break;
    case SAFER_PROFILE_TEI: status = read_list(&r, root, count); break;
    case SAFER_PROFILE_OPENAI: status = read_openai(&r, root); break;
    }
    json_decref(root);
    return status;
}
