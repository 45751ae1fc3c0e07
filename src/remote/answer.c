/* Answers of a remote model: JSON values become classes. */
#include "remote/remote.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { UNKNOWN = SF_NO_LABEL - 1 };

static int find_name(const sf_labels *labels, const char *name)
{
    for (size_t k = 0; k < labels->count; k++)
        if (strcmp(labels->names[k], name) == 0) return (int)k;
    return UNKNOWN;
}

int sf_labels_find(const sf_labels *labels, const json_t *value)
{
    if (json_is_null(value)) return SF_NO_LABEL;
    if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
        return find_name(labels, json_string_value(value));
    if (!json_is_integer(value)) return UNKNOWN;
    json_int_t number = json_integer_value(value);
    if (labels->numbers) {
        char name[24];
        snprintf(name, sizeof name, "%" JSON_INTEGER_FORMAT, number);
        return find_name(labels, name);
    }
    return number >= 0 && (size_t)number < labels->count ? (int)number : UNKNOWN;
}

/* "LABELS: " for a message: the names that there are. */
static const char *known(const sf_labels *labels, char text[200])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t k = 0; k < labels->count && used < 160; k++)
        used += (size_t)snprintf(text + used, 200 - used, "%s%.*s", k ? ", " : "",
                                 sf_clip(labels->names[k], strlen(labels->names[k]), 30), labels->names[k]);
    return text;
}

static safer_status check_list(const json_t *list, size_t count, const char *what, const char *name, safer_error *error)
{
    if (!json_is_array(list)) return sf_fail(error, SAFER_INPUT, "%s: the %s are no list", name, what);
    if (json_array_size(list) != count)
        return sf_fail(error, SAFER_INPUT, "%s: %s: %zu, texts: %zu", name, what, json_array_size(list), count);
    return SAFER_OK;
}

safer_status sf_read_labels(int *out, const sf_labels *labels, const json_t *list, size_t count, const char *name,
                            safer_error *error)
{
    safer_status status = check_list(list, count, "labels", name, error);
    for (size_t i = 0; status == SAFER_OK && i < count; i++) {
        const json_t *value = json_array_get(list, i);
        out[i] = sf_labels_find(labels, value);
        if (out[i] != UNKNOWN) continue;
        char names[200], *text = json_dumps(value, JSON_ENCODE_ANY);
        status = sf_fail(error, SAFER_INPUT, "%s: the answer %.80s is not one of the labels (%s)", name,
                         text ? text : "?", known(labels, names));
        free(text);
    }
    return status;
}

static safer_status read_row(int *out, float *scores, const sf_labels *labels, const json_t *row, const char *name,
                             safer_error *error)
{
    double best = -HUGE_VAL;
    if (!json_is_array(row) || json_array_size(row) != labels->count)
        return sf_fail(error, SAFER_INPUT, "%s: the scores of a text must be a list of %zu numbers, one per label",
                       name, labels->count);
    *out = 0;
    for (size_t k = 0; k < labels->count; k++) {
        const json_t *value = json_array_get(row, k);
        double score = json_number_value(value);
        if (!json_is_number(value) || !(fabs(score) <= (double)FLT_MAX))
            return sf_fail(error, SAFER_INPUT, "%s: a score of label \"%.60s\" is no finite number", name,
                           labels->names[k]);
        if (score > best) {
            best = score;
            *out = (int)k;
        }
        if (scores) scores[k] = (float)score;
    }
    return SAFER_OK;
}

safer_status sf_read_scores(int *out, float *scores, const sf_labels *labels, const json_t *list, size_t count,
                            const char *name, safer_error *error)
{
    safer_status status = check_list(list, count, "lists of scores", name, error);
    for (size_t i = 0; status == SAFER_OK && i < count; i++) {
        const json_t *row = json_array_get(list, i);
        float *row_scores = scores ? scores + i * labels->count : NULL;
        if (!json_is_null(row)) {
            status = read_row(&out[i], row_scores, labels, row, name, error);
            continue;
        }
        out[i] = SF_NO_LABEL;
        for (size_t k = 0; scores && k < labels->count; k++) row_scores[k] = 0;
    }
    return status;
}

static double score_of(const json_t *row, int label) { return json_number_value(json_array_get(row, (size_t)label)); }

safer_status sf_check_scores(const int *out, const sf_labels *labels, const json_t *list, size_t count,
                             const char *name, safer_error *error)
{
    safer_status status = check_list(list, count, "lists of scores", name, error);
    for (size_t i = 0; status == SAFER_OK && i < count; i++) {
        const json_t *row = json_array_get(list, i);
        int best = SF_NO_LABEL;
        if (!json_is_null(row)) status = read_row(&best, NULL, labels, row, name, error);
        if (status != SAFER_OK || out[i] == best) continue;
        if (best >= 0 && out[i] >= 0 && score_of(row, out[i]) == score_of(row, best)) continue;
        status = sf_fail(error, SAFER_INPUT, "%s: label and scores of a text contradict each other: %.60s and %.60s",
                         name, out[i] < 0 ? "no label" : labels->names[out[i]],
                         best < 0 ? "no scores" : labels->names[best]);
    }
    return status;
}

void sf_one_hot(float *scores, const int *labels, size_t count, size_t classes)
{
    memset(scores, 0, count * classes * sizeof *scores);
    for (size_t i = 0; i < count; i++)
        if (labels[i] >= 0) scores[i * classes + (size_t)labels[i]] = 1;
}
