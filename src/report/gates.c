/* Gates: what continuous integration requires of a run.
 *
 * A share is required to be at least so much. "Not worse" is a paired test, since two runs on the same texts are not
 * independent: of the texts that held in one of the two runs only, `lost` held in the baseline. Were the run as good as
 * the baseline, each of them would be lost with probability one half, so that the p-value is P[Bin(lost + gained, 1/2)
 * >= lost]: McNemar's exact test, one-sided. The gate is not met when it is SAFER_NOT_WORSE_LEVEL or less. A test of
 * this kind errs on one side: it calls a run worse that is not with at most that probability, and says nothing of
 * a loss too small for it to see; that is what the number of lost texts is for.
 *
 * A run that claims less is no match for its baseline: the same texts and labels, lexicon and radius are needed, and a
 * delta per text and an alpha of the vote that are not larger. Interval bounds and groups have neither. */
#include "base/file.h"
#include "base/number.h"
#include "certify/evidence.h"
#include "certify/summary.h"
#include "report/finished.h"
#include "report/writer.h"
#include "stats/binomial.h"
#include "text/unicode.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Writes what fits; a character of UTF-8 that does not is left out whole. */
static void write_words(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void write_words(char *out, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(out, size, format, arguments);
    va_end(arguments);
    if (length < 0) *out = '\0';
    if (length >= (int)size) out[sf_utf8_valid(out, size - 1)] = '\0';
}

static void require_share(safer_gate *gate, size_t part, size_t whole, double least)
{
    char required[SF_REAL_SIZE] = "";
    const uint64_t found = whole ? (uint64_t)part * 10000 / whole : 0;
    gate->part = part;
    gate->whole = whole;
    gate->value = whole ? (double)part / (double)whole : 0;
    gate->threshold = least;
    gate->met = whole && gate->value >= least;
    sf_format_real(required, round(1e10 * least) / 1e8); /* 57.0, where 100 * 0.57 is a little less */
    write_words(gate->message, sizeof gate->message, "%s: %llu.%02llu%% of %zu text%s, %s %s%%", gate->name,
                (unsigned long long)(found / 100), (unsigned long long)(found % 100), whole, whole == 1 ? "" : "s",
                gate->met ? "at least the required" : "below the required", required);
}

/* No share is met by certificates that write_words nothing. */
static void refuse_empty(safer_gate *gate, const safer_summary *summary)
{
    char caution[300];
    if (!sf_summary_is_empty(summary)) return;
    safer_summary_caution(summary, caution, sizeof caution);
    gate->met = 0;
    write_words(gate->message, sizeof gate->message, "%s: not met, since %s", gate->name, caution);
}

void safer_gate_accuracy(safer_gate *out, const safer_summary *summary, double least)
{
    const safer_figure headline = safer_summary_headline(summary);
    *out = (safer_gate){.kind = SAFER_GATE_ACCURACY};
    write_words(out->name, sizeof out->name, "%s", headline.name);
    require_share(out, headline.part, headline.whole, least);
    refuse_empty(out, summary);
}

safer_status safer_gate_recall(safer_gate *out, const safer_summary *summary, const char *label, double least,
                               safer_error *error)
{
    size_t c = 0;
    while (c < summary->classes && strcmp(summary->by_class[c].label, label) != 0) c++;
    if (c == summary->classes) return sf_fail(error, SAFER_INVALID, "the run has no label %s", label);
    const safer_figure recall = safer_summary_recall(summary, c);
    *out = (safer_gate){.kind = SAFER_GATE_RECALL};
    write_words(out->name, sizeof out->name, "certified recall of %s", label);
    require_share(out, recall.part, recall.whole, least);
    refuse_empty(out, summary);
    if (!recall.whole) write_words(out->message, sizeof out->message, "%s: no text has this label", out->name);
    return SAFER_OK;
}

/* ---------------------------------------------------------------- not worse */

static safer_status fail_match(const safer_run *run, const safer_run *baseline, const char *what, safer_error *error)
{
    return sf_fail(error, SAFER_INVALID, "%s cannot be compared with %s: %s", run->path, baseline->path, what);
}

static int same_member(const safer_run *a, const safer_run *b, const char *part, const char *member)
{
    const json_t *of_a = json_object_get(a->json, part), *of_b = json_object_get(b->json, part);
    return json_equal(member ? json_object_get(of_a, member) : of_a, member ? json_object_get(of_b, member) : of_b);
}

safer_status sf_run_identified(const safer_run *run, safer_error *error)
{
    if (json_object_get(json_object_get(run->json, "data"), "sha256")) return SAFER_OK;
    return sf_fail(error, SAFER_INPUT, "%s: run it again; format 1 has no digests", run->path);
}

/* Of a text; interval bounds and groups cannot err by chance. */
static double delta_of(const safer_run *run) { return sf_method_samples(run->config.method) ? run->config.delta : 0; }

/* The chance of an answer that does not win, which a text that is answered may be. */
static double alpha_of(const safer_run *run)
{
    return sf_method_samples(run->config.method) ? run->config.options.alpha : 0;
}

/* A digest that a forger wrote says little: ids and labels of the records must agree too. */
static int same_texts(const safer_run *a, const safer_run *b)
{
    int same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = a->texts[i].label == b->texts[i].label && strcmp(safer_run_id(a, i), safer_run_id(b, i)) == 0;
    return same;
}

/* A member that only runs with deletion have. */
static int same_or_none(const safer_run *run, const safer_run *baseline, const char *name)
{
    const json_t *own = json_object_get(run->json, name), *other = json_object_get(baseline->json, name);
    return own && other ? json_equal(own, other) : own == other;
}

safer_status sf_run_matches(const safer_run *run, const safer_run *baseline, safer_error *error)
{
    if (run->is_attack || baseline->is_attack)
        return fail_match(run, baseline, "both must be runs of certificates", error);
    safer_status status = sf_run_identified(run, error);
    if (status == SAFER_OK) status = sf_run_identified(baseline, error);
    if (status != SAFER_OK) return status;
    if (!same_member(run, baseline, "data", "sha256") || !same_texts(run, baseline))
        return fail_match(run, baseline, "they are about different texts", error);
    if (!same_member(run, baseline, "labels", NULL)) return fail_match(run, baseline, "their labels differ", error);
    if (!same_member(run, baseline, "lexicon", "sha256"))
        return fail_match(run, baseline, "their lexicons differ, and with them what an attacker may do", error);
    if (!same_member(run, baseline, "radius", NULL)) return fail_match(run, baseline, "their radii differ", error);
    if (!same_or_none(run, baseline, "edits") || !same_or_none(run, baseline, "edit_kind"))
        return fail_match(run, baseline, "their edits differ", error);
    if (delta_of(run) > delta_of(baseline))
        return fail_match(run, baseline, "its delta is larger, and its certificates claim less", error);
    if (alpha_of(run) > alpha_of(baseline))
        return fail_match(run, baseline, "its alpha is larger, and its answers claim less", error);
    return SAFER_OK;
}

safer_status safer_gate_not_worse(safer_gate *out, const safer_run *run, const safer_run *baseline, safer_error *error)
{
    size_t lost = 0, gained = 0;
    safer_status status = sf_run_matches(run, baseline, error);
    if (status != SAFER_OK) return status;
    for (size_t i = 0; i < run->count; i++) {
        lost += (size_t)(baseline->texts[i].held && !run->texts[i].held);
        gained += (size_t)(!baseline->texts[i].held && run->texts[i].held);
    }
    *out = (safer_gate){.kind = SAFER_GATE_NOT_WORSE,
                        .part = lost,
                        .whole = lost + gained,
                        .value = sf_sign_test_above(lost, gained),
                        .threshold = SAFER_NOT_WORSE_LEVEL};
    out->met = out->value > out->threshold;
    const uint32_t p = sf_myriads_up(out->value);
    write_words(out->name, sizeof out->name, "not worse than %s", sf_base_name(baseline->path));
    write_words(out->message, sizeof out->message, "%s: %zu certificate%s lost and %zu gained, p = %u.%04u %s",
                out->name, lost, lost == 1 ? "" : "s", gained, p / 10000, p % 10000,
                out->met ? "does not show a loss at level 0.05" : "shows a loss at level 0.05");
    return SAFER_OK;
}
