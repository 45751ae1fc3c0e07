/* Finished runs, text by text, and how two of them differ.
 *
 * Two systems on the same texts are not independent, so their accuracies are not compared as
 * such. McNemar's test looks only at texts on which they disagree: were both equally good, each
 * of these would be won by either with probability one half. Its exact form is the two-sided
 * binomial test (no correction for continuity and no mid-p). With many pairs some p-values are
 * small by chance: after Holm (1979) the chance of any false claim among all is bounded. */
#include "base/memory.h"
#include "report/finished.h"
#include "stats/binomial.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ reading */

static safer_status read_config(safer_run *run, json_t *config, safer_error *error)
{
    const char *kind = json_string_value(json_object_get(config, "kind"));
    run->json = json_incref(config);
    run->is_attack = kind && strcmp(kind, "attack") == 0;
    if (kind && !run->is_attack)
        return sf_fail(error, SAFER_INPUT, "%s, line 1: neither a run of certificates nor an attack", run->path);
    safer_status status;
    if (run->is_attack) {
        SF_TRY(sf_attack_config_read(&run->attack, config, run->path, error));
        return sf_shard_need_whole(run->attack.shard, run->path, error);
    }
    SF_TRY(sf_config_read(&run->config, config, run->path, error));
    SF_TRY(sf_shard_need_whole(run->config.shard, run->path, error));
    status = sf_summary_start(&run->certified, &run->config, error);
done:
    return status;
}

static safer_status read_certificate(safer_run *run, const json_t *record, size_t line, sf_finished *text,
                                     safer_error *error)
{
    safer_status status;
    sf_record r;
    SF_TRY(sf_record_read(&r, record, &run->config, run->path, line, error));
    SF_TRY(sf_record_recheck(&r, &run->config, run->path, line, error));
    sf_summary_add(&run->certified, &r);
    text->held = sf_record_holds(&r);
    text->label = r.label;
    text->answer = r.abstained ? -1 : r.prediction;
done:
    return status;
}

static safer_status read_attack(safer_run *run, const json_t *record, size_t line, sf_finished *text,
                                safer_error *error)
{
    sf_attack_record r;
    safer_status status = sf_attack_record_read(&r, record, run->attack.format, run->path, line, error);
    if (status != SAFER_OK) return status;
    sf_attack_summary_add(&run->attacked, &r);
    text->held = r.outcome == SAFER_OUTCOME_FAILED;
    return SAFER_OK;
}

static safer_status read_line(void *context, json_t *object, uint64_t seal, size_t line, safer_error *error)
{
    safer_run *run = context;
    sf_finished text = {.id = run->ids.length, .label = -1, .answer = -1};
    safer_status status;
    (void)seal;
    if (line == 1) return read_config(run, object, error);
    SF_TRY((run->is_attack ? read_attack : read_certificate)(run, object, line, &text, error));
    const char *id = json_string_value(json_object_get(object, "id"));
    if (sf_grow(&run->texts, &run->capacity, run->count + 1, sizeof *run->texts) ||
        sf_buffer_add(&run->ids, id ? id : "", id ? strlen(id) + 1 : 1))
        return sf_fail_memory(error);
    run->texts[run->count++] = text;
done:
    return status;
}

safer_status safer_run_read(safer_run **out, const char *path, safer_error *error)
{
    safer_run *run = sf_calloc(1, sizeof *run);
    if (!run) return sf_fail_memory(error);
    run->path = sf_strdup(path);
    if (!run->path) {
        free(run);
        return sf_fail_memory(error);
    }
    safer_status status = sf_sealed_read(path, "run", JSON_ALLOW_NUL, read_line, run, error);
    const size_t texts = run->is_attack ? run->attack.texts : run->config.texts;
    if (status == SAFER_OK && run->count != texts)
        status = sf_fail(error, SAFER_INPUT, "%s holds %zu of %zu records; resume the run", path, run->count, texts);
    if (status == SAFER_OK)
        *out = run;
    else
        safer_run_free(run);
    return status;
}

void safer_run_free(safer_run *run)
{
    if (!run) return;
    json_decref(run->json);
    safer_summary_free(&run->certified);
    free(run->texts);
    sf_buffer_free(&run->ids);
    free(run->path);
    free(run);
}

const safer_summary *safer_run_certified(const safer_run *run) { return run->is_attack ? NULL : &run->certified; }
const safer_attack_summary *safer_run_attacked(const safer_run *run) { return run->is_attack ? &run->attacked : NULL; }
size_t safer_run_size(const safer_run *run) { return run->count; }
int safer_run_held(const safer_run *run, size_t row) { return row < run->count && run->texts[row].held; }

const char *safer_run_id(const safer_run *run, size_t row)
{
    return row < run->count ? run->ids.bytes + run->texts[row].id : NULL;
}

const char *safer_run_outcome(const safer_run *run, size_t row)
{
    if (run->is_attack || row >= run->count) return NULL;
    const sf_finished *text = &run->texts[row];
    if (text->held) return "certified and answered";
    return text->answer < 0 ? "abstained" : text->answer == text->label ? "not certified" : "answered as another class";
}

/* ---------------------------------------------------------------- comparing */

/* A member that both have, the same, or neither has. */
static int is_same(const json_t *a, const json_t *b, const char *member)
{
    const json_t *one = json_object_get(a, member), *other = json_object_get(b, member);
    return one || other ? json_equal(one, other) : 1;
}

const char *sf_runs_differ(const json_t *a, const json_t *b)
{
    if (!is_same(a, b, "kind")) return ": certificates and attacks cannot be compared";
    if (!is_same(a, b, "format"))
        return " have different formats: whether they are about the same texts cannot be seen; make the older one "
               "again";
    if (!sf_origin_is_same(a, b, "data")) return " are about different texts";
    if (!is_same(a, b, "radius")) return " have different radii";
    return is_same(a, b, "edits") && is_same(a, b, "edit_kind") ? NULL : " are about different edits";
}

static safer_status check_pair(const safer_run *a, const safer_run *b, size_t i, size_t k, safer_error *error)
{
    const char *difference = sf_runs_differ(a->json, b->json);
    return difference ? sf_fail(error, SAFER_INVALID, "runs %zu and %zu%s", i + 1, k + 1, difference) : SAFER_OK;
}

static safer_comparison compare(const safer_run *a, const safer_run *b)
{
    safer_comparison c = {0};
    for (size_t i = 0; i < a->count; i++) {
        c.both += (size_t)(a->texts[i].held && b->texts[i].held);
        c.only_first += (size_t)(a->texts[i].held && !b->texts[i].held);
        c.only_second += (size_t)(!a->texts[i].held && b->texts[i].held);
        c.neither += (size_t)(!a->texts[i].held && !b->texts[i].held);
    }
    c.p_value = sf_sign_test(c.only_first, c.only_second);
    return c;
}

static int by_p_value(const void *a, const void *b)
{
    const double x = (*(safer_comparison *const *)a)->p_value, y = (*(safer_comparison *const *)b)->p_value;
    return (x > y) - (x < y);
}

safer_status sf_comparisons_adjust(safer_comparison *pairs, size_t count, safer_error *error)
{
    safer_comparison **order = sf_alloc(count, sizeof *order);
    double least = 0;
    if (!order) return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++) order[i] = &pairs[i];
    qsort(order, count, sizeof *order, by_p_value);
    for (size_t i = 0; i < count; i++)
        order[i]->adjusted = least = fmax(least, fmin(1, order[i]->p_value * (double)(count - i)));
    free(order);
    return SAFER_OK;
}

safer_status safer_compare(safer_comparison *out, const safer_run *const *runs, size_t count, safer_error *error)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++) {
            safer_status status = check_pair(runs[i], runs[k], i, k, error);
            if (status != SAFER_OK) return status;
        }
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++) {
            out[made] = compare(runs[i], runs[k]);
            out[made].first = i;
            out[made++].second = k;
        }
    return sf_comparisons_adjust(out, made, error);
}
