/* What evidence states about a run, collected once. What they mean, and which of them
 * other programs read, is in docs/evidence.md. */
#define _GNU_SOURCE
#include "report/facts.h"

#include "base/memory.h"
#include "base/number.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Composes a string that lives as long as the facts; "" without memory, which sf_facts_collect reports. */
static const char *say(sf_facts *facts, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *say(sf_facts *facts, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0 || sf_grow(&facts->strings, &facts->string_capacity, facts->string_count + 1, sizeof(char *))) {
        if (length >= 0) free(text);
        facts->failed = 1;
        return "";
    }
    return facts->strings[facts->string_count++] = text;
}

static const char *say_real(sf_facts *facts, double x)
{
    char text[SF_REAL_SIZE] = "";
    sf_format_real(text, x);
    return say(facts, "%s", text);
}

static void add_term(sf_facts *facts, const char *name, const char *value)
{
    assert(facts->term_count < SF_MOST_TERMS);
    facts->terms[facts->term_count++] = (sf_term){name, value};
}

static void add_limit(sf_facts *facts, const char *text)
{
    assert(facts->limit_count < SF_MOST_LIMITS);
    facts->limits[facts->limit_count++] = text;
}

static const char *member(const json_t *json, const char *part, const char *name)
{
    return json_string_value(json_object_get(json_object_get(json, part), name));
}

/* ---------------------------------------------------------------- artifacts */

static void name_artifact(sf_facts *facts, sf_artifact *artifact)
{
    sf_writer out = {0};
    if (!*artifact->name) artifact->name = artifact->role; /* data that never were a file */
    sf_put_uri(&out, artifact->name);
    artifact->uri = out.failed ? "" : say(facts, "%s", out.out.bytes);
    facts->failed |= out.failed;
    sf_writer_free(&out);
}

static const char *digest_of_model(const char *arch)
{
    if (strcmp(arch, "sum") == 0) return "the bytes of the sum's file, then the digests of its members";
    if (strcmp(arch, "bert") == 0) return "the file's bytes; of a folder: every file that is read, by name and digest";
    return "the file's bytes";
}

static void take_artifacts(sf_facts *facts)
{
    const json_t *json = facts->run->json;
    static const char *const bytes = "the file's bytes";
    facts->date = json_string_value(json_object_get(json, "date"));
    facts->arch = member(json, "model", "arch");
    facts->probe = member(json, "model", "probe");
    facts->model = (sf_artifact){.role = "model",
                                 .name = member(json, "model", "name"),
                                 .sha256 = member(json, "model", "sha256"),
                                 .digest_of = "nothing: the model is remote"};
    facts->lexicon = (sf_artifact){.role = "lexicon",
                                   .name = member(json, "lexicon", "name"),
                                   .sha256 = member(json, "lexicon", "sha256"),
                                   .digest_of = bytes};
    facts->data = (sf_artifact){.role = "data",
                                .name = member(json, "data", "name"),
                                .sha256 = member(json, "data", "sha256"),
                                .digest_of = "every row: id, label and text, each as a netstring"};
    if (facts->model.sha256) facts->model.digest_of = digest_of_model(facts->arch);
    facts->file.role = "run";
    facts->before.role = "baseline";
    facts->card_file.role = "card";
    facts->file.digest_of = facts->before.digest_of = facts->card_file.digest_of = bytes;
    sf_artifact *const all[] = {&facts->file, &facts->model,  &facts->lexicon,
                                &facts->data, &facts->before, &facts->card_file};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->name) name_artifact(facts, all[i]);
}

/* --------------------------------------------------------------- assessment */

/* What is covered beside synonyms: spellings and edits. */
static void take_reach(sf_facts *facts)
{
    const safer_run *run = facts->run;
    const safer_summary *s = &run->certified;
    const json_t *lexicon = json_object_get(run->json, "lexicon");
    if (s->folded)
        add_term(facts, "characters",
                 say(facts,
                     "besides, every spelling that folds to the same text (%s; Unicode %s); words are those of "
                     "the folded text",
                     member(lexicon, "fold", "steps"), member(lexicon, "fold", "unicode")));
    if (!s->edits) return;
    add_term(facts, "edits",
             say(facts, "besides, at most %zu token%s (words, numbers, marks) edited; kind of edit: %s", s->edits,
                 s->edits == 1 ? "" : "s", safer_edit_kind_name(s->edit_kind)));
    const safer_deletion d = run->config.options.deletion;
    if (d.groups)
        add_term(facts, "groups", say(facts, "%zu", d.groups));
    else
        add_term(facts, "deletion", d.keep ? say(facts, "keep:%zu", d.keep) : say_real(facts, d.chance));
}

static void take_terms(sf_facts *facts)
{
    const safer_run *run = facts->run;
    const int bounds = run->config.method == SAFER_METHOD_IBP;
    const int sampled = !bounds && run->certified.exact < run->certified.texts;
    const int family = json_is_true(json_object_get(run->json, "family_wise"));
    const char *arithmetic = member(run->json, "model", "arithmetic");
    const char *radius = json_string_value(json_object_get(run->json, "radius"));
    add_term(facts, "terminology", "ISO/IEC 24029-2:2023");
    add_term(facts, "domain",
             strcmp(radius, "all") == 0
                 ? say(facts, "every text made by exchanging any of its words for their synonyms in %s",
                       facts->lexicon.name)
                 : say(facts, "every text made by exchanging at most %s of its words for their synonyms in %s", radius,
                       facts->lexicon.name));
    take_reach(facts);
    add_term(facts, "property", "stability: the answer stays the same");
    add_term(facts, "classifier",
             bounds                                      ? "the model itself"
             : run->config.method == SAFER_METHOD_GROUPS ? "a vote of groups of words"
                                                         : "the smoothed classifier");
    add_term(facts, "method", safer_method_name(run->config.method));
    add_term(facts, "evidence", sampled ? "statistical" : "deterministic");
    if (sampled) {
        add_term(facts, "delta", say_real(facts, json_number_value(json_object_get(run->json, "delta"))));
        add_term(facts, "deltaOf", family ? "all texts together" : "each text");
        add_term(facts, "alpha", say_real(facts, json_number_value(json_object_get(run->json, "alpha"))));
    }
    add_term(facts, "completeness", "incomplete");
    add_term(facts, "access", bounds ? "glass box" : "closed box");
    add_term(facts, "arithmetic", arithmetic ? arithmetic : "unknown: the model is remote");
}

static void take_limits(sf_facts *facts)
{
    const safer_run *run = facts->run;
    const safer_summary *s = &run->certified;
    const int bounds = run->config.method == SAFER_METHOD_IBP, groups = run->config.method == SAFER_METHOD_GROUPS;
    const char *arithmetic = member(run->json, "model", "arithmetic");
    const int family = json_is_true(json_object_get(run->json, "family_wise"));
    add_limit(facts,
              s->edits
                  ? "Only exchanges of words for the synonyms of this lexicon and so many edits of the kind named are "
                    "covered: no more of them, and no paraphrases that need more."
                  : "Only exchanges of words for the synonyms of this lexicon are covered: no other words, no "
                    "insertions, deletions, misspellings or paraphrases.");
    if (s->folded) add_limit(facts, "Of spellings only those that fold to the same text are covered.");
    add_limit(facts,
              bounds   ? "The certificates are about the model itself, not about a smoothed classifier."
              : groups ? "The certificates are about a vote of groups of the text's words, not about one answer of the "
                         "model."
                       : "The certificates are about the smoothed classifier, a vote over random exchanges, not about "
                         "one answer of the model.");
    add_limit(facts, "A text without a certificate is not shown to be open to attack.");
    if (!bounds && s->exact < s->texts)
        add_limit(facts,
                  say(facts,
                      "The chance that %s text that could be attacked gets a certificate is at most delta; it is "
                      "not the chance that a given certificate is wrong.",
                      family ? "any" : "a"));
    if (!bounds && s->exact < s->texts)
        add_limit(facts, "The chance that a text is answered with a class that does not win among all draws is at most "
                         "alpha.");
    if (!bounds && s->remote && s->exact)
        add_limit(facts, "Certificates without sampling assume that the remote model is a function of the text.");
    if (!arithmetic || strcmp(arithmetic, "portable") != 0)
        add_limit(facts, "In another arithmetic than the one named the model may answer some texts differently.");
    add_limit(facts,
              "The figures are those of these texts; the intervals (Wilson, 95%) are about their source, if they were "
              "drawn from it at random.");
}

static void take_unchecked(sf_facts *facts)
{
    size_t count = 0;
    while (facts->not_checked[count]) count++;
    if (facts->baseline && count + 1 < SAFER_PHRASES)
        facts->not_checked[count] = "the baseline but for its records: neither its texts nor its model were looked at";
    facts->unchecked = "Not checked: ";
    for (size_t i = 0; facts->not_checked[i]; i++)
        facts->unchecked = say(facts, "%s%s%s", facts->unchecked, i ? "; " : "", facts->not_checked[i]);
}

/* ------------------------------------------------------------------ figures */

/* Adds a share of texts, unless there are none. */
static void add_metric(sf_facts *facts, const char *name, const char *slice, const char *label, size_t part,
                       size_t whole)
{
    if (!whole) return;
    if (sf_grow(&facts->metrics, &facts->metric_capacity, facts->metric_count + 1, sizeof *facts->metrics))
        facts->failed = 1;
    else
        facts->metrics[facts->metric_count++] = (sf_metric){name, slice, label, part, whole};
}

static void take_radii(sf_facts *facts)
{
    for (size_t r = 0; r < SAFER_RADII; r++) {
        const safer_figure at = sf_summary_headline_at(&facts->run->certified, r);
        const size_t radius = safer_reported_radius(r);
        const char *slice = radius == SAFER_ALL
                                ? "any number of words changed"
                                : say(facts, "at most %zu word%s changed", radius, radius == 1 ? "" : "s");
        add_metric(facts, at.name, slice, NULL, at.part, at.whole);
    }
}

static void take_edits(sf_facts *facts)
{
    const safer_summary *s = &facts->run->certified;
    for (size_t i = 0; i < s->edits; i++) {
        const safer_figure at = sf_summary_headline_edits(s, i);
        add_metric(facts, at.name, say(facts, "at most %zu token%s edited", i + 1, i ? "s" : ""), NULL, at.part,
                   at.whole);
    }
}

static void take_classes(sf_facts *facts)
{
    const safer_summary *s = &facts->run->certified;
    for (size_t c = 0; c < s->classes; c++) {
        const char *label = s->by_class[c].label, *slice = say(facts, "class %s", label);
        const safer_figure recall = safer_summary_recall(s, c), precision = safer_summary_precision(s, c);
        add_metric(facts, "certified recall", slice, label, recall.part, recall.whole);
        add_metric(facts, "certified precision", slice, label, precision.part, precision.whole);
    }
}

static void take_metrics(sf_facts *facts)
{
    const safer_summary *s = &facts->run->certified;
    const int bounds = facts->run->config.method == SAFER_METHOD_IBP; /* which most often have one radius */
    const safer_figure headline = safer_summary_headline(s);
    add_metric(facts, headline.name, NULL, NULL, headline.part, headline.whole);
    add_metric(facts, "certified, as in the paper", NULL, NULL, s->certified, s->labelled);
    if (!bounds) add_metric(facts, "smoothed accuracy", NULL, NULL, s->smoothed_correct, s->labelled);
    add_metric(facts, "clean accuracy", NULL, NULL, s->base_correct, s->labelled);
    if (!bounds || s->additive) take_radii(facts);
    take_edits(facts);
    take_classes(facts);
}

/* ------------------------------------------------------------------- losses */

static void add_loss(sf_facts *facts, size_t row)
{
    const safer_run *run = facts->run;
    const char *id = safer_run_id(run, row), *reason = safer_run_outcome(run, row);
    if (sf_grow(&facts->losses, &facts->loss_capacity, facts->loss_count + 1, sizeof *facts->losses)) {
        facts->failed = 1;
        return;
    }
    facts->losses[facts->loss_count++] = (sf_loss){
        .row = row + 1,
        .id = id,
        .label = sf_config_label(&run->config, run->texts[row].label),
        .name = say(facts, "text %s", id),
        .reason = reason,
        .message = say(facts, "text %s (row %zu): certified and answered in %s, not in %s: %s", id, row + 1,
                       facts->before.name, facts->file.name, reason)};
}

static void take_losses(sf_facts *facts)
{
    size_t gained = 0;
    if (!facts->baseline) return;
    for (size_t i = 0; i < facts->run->count; i++) {
        const int before = facts->baseline->texts[i].held, now = facts->run->texts[i].held;
        gained += (size_t)(now && !before);
        if (before && !now) add_loss(facts, i);
    }
    const size_t count = facts->run->count;
    facts->compared = say(facts, "%zu lost and %zu gained, of %zu text%s", facts->loss_count, gained, count,
                          count == 1 ? "" : "s");
    for (size_t i = 0; i < facts->gate_count; i++)
        facts->worse |= facts->gates[i].kind == SAFER_GATE_NOT_WORSE && !facts->gates[i].met;
}

/* ---------------------------------------------------------------------- all */

/* A date is not sealed, and has been seen to have the form of one only. */
static int is_date(const char *text)
{
    struct tm date = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &date);
    const int day = date.tm_mday;
    return end && !*end && timegm(&date) != (time_t)-1 && date.tm_mday == day; /* the 30th of February moves */
}

safer_status sf_facts_collect(sf_facts *facts, safer_error *error)
{
    char caution[300];
    safer_status status = sf_run_identified(facts->run, error);
    if (status != SAFER_OK) return status;
    take_artifacts(facts);
    if (!is_date(facts->date))
        return sf_fail(error, SAFER_INPUT, "%s, line 1: there is no such date: %s", facts->run->path, facts->date);
    if (safer_summary_caution(&facts->run->certified, caution, sizeof caution))
        facts->caution = say(facts, "%s", caution);
    take_terms(facts);
    take_limits(facts);
    take_unchecked(facts);
    take_metrics(facts);
    take_losses(facts);
    return facts->failed ? sf_fail_memory(error) : SAFER_OK;
}

void sf_facts_free(sf_facts *facts)
{
    for (size_t i = 0; i < facts->string_count; i++) free(facts->strings[i]);
    free(facts->strings);
    free(facts->metrics);
    free(facts->losses);
    sf_card_free(&facts->card);
    *facts = (sf_facts){0};
}
