/* The totals of a run.
 *
 * A certificate speaks of the smoothed classifier g; what is deployed is a vote of finitely many draws. So the
 * headline counts a text when its label is certified and the vote on the text as it stands answers that label. Texts
 * without a label can be stable, never right: they are counted apart.
 *
 * By class, in the worst case: the attacker changes every text within the asked radius, one by one. A text of label c
 * that is certified keeps the answer c, whatever he does; so the recall of c is at least the share of these. The texts
 * answered c are then those, further texts of label c, which can only raise the precision, and texts of other labels.
 * Of the latter a certified one keeps its own label. So at worst all others are answered c, and none of label c but the
 * certified: that is the precision. Counting those that are certified and answered, fewer, lowers both figures. Both
 * speak of g: on a changed text the vote may also abstain. */
#include "certify/summary.h"

#include "base/memory.h"
#include "lexicon/lexicon.h"

#include <stdio.h>

enum { MOST_CLASSES = 1000 }; /* of a table of answers: its size is the square */

/* ------------------------------------------------------------------ counting */

safer_status sf_summary_start(safer_summary *out, const sf_config *config, safer_error *error)
{
    const size_t classes = config->classes, columns = classes <= MOST_CLASSES ? classes + 1 : 0;
    safer_summary s = {.about_predictions = config->unlabelled,
                       .remote = config->remote,
                       .folded = config->folded,
                       .additive = config->additive};
    if (config->deletes) {
        s.edits = config->options.edits;
        s.edit_kind = config->options.edit_kind;
    }
    s.by_class = sf_calloc(classes, sizeof *s.by_class);
    if (!s.by_class) return sf_fail_memory(error);
    for (; s.classes < classes; s.classes++) {
        safer_class_summary *c = &s.by_class[s.classes];
        c->label = sf_strdup(sf_config_label(config, (int)s.classes));
        c->answers = columns ? sf_calloc(columns, sizeof *c->answers) : NULL;
        if (c->label && (c->answers || !columns)) continue;
        s.classes++; /* what it has is freed too */
        safer_summary_free(&s);
        return sf_fail_memory(error);
    }
    *out = s;
    return SAFER_OK;
}

void safer_summary_free(safer_summary *summary)
{
    if (!summary) return;
    for (size_t i = 0; i < summary->classes; i++) {
        free(summary->by_class[i].label);
        free(summary->by_class[i].answers);
    }
    free(summary->by_class);
    *summary = (safer_summary){0};
}

int sf_record_answered(const sf_record *r) { return !r->abstained && r->prediction == r->target; }

int sf_record_holds(const sf_record *r) { return r->certified && r->target == r->label && sf_record_answered(r); }

static void add_label(safer_summary *s, const sf_record *r)
{
    safer_class_summary *c = &s->by_class[r->label];
    const int is_right = r->target == r->label;
    s->labelled++;
    s->base_correct += r->label == r->base;
    s->unfolded_correct += r->label == r->unfolded;
    s->smoothed_correct += r->label == r->prediction;
    s->certified += (size_t)(is_right && r->certified);
    s->certified_answered += (size_t)sf_record_holds(r);
    c->texts++;
    c->certified += (size_t)(is_right && r->certified);
    c->certified_answered += (size_t)sf_record_holds(r);
    if (c->answers) c->answers[r->abstained || r->prediction < 0 ? s->classes : (size_t)r->prediction]++;
}

void sf_summary_add(safer_summary *s, const sf_record *r)
{
    const int answered = sf_record_answered(r), is_right = r->label >= 0 && r->target == r->label;
    s->texts++;
    if (r->label >= 0)
        add_label(s, r);
    else
        s->unlabelled_certified += (size_t)r->certified;
    s->stable += (size_t)(r->certified && answered);
    for (size_t i = 0; i < SAFER_RADII; i++) {
        const int certified = r->radius >= sf_reported_radii[i];
        s->certified_at[i] += (size_t)(certified && is_right);
        s->certified_answered_at[i] += (size_t)(certified && is_right && answered);
        s->stable_at[i] += (size_t)(certified && answered);
    }
    for (size_t i = 0; i < s->edits; i++) {
        const int certified = r->edits > i;
        s->certified_edits[i] += (size_t)(certified && is_right);
        s->certified_answered_edits[i] += (size_t)(certified && is_right && answered);
        s->stable_edits[i] += (size_t)(certified && answered);
    }
    s->certificates += (size_t)r->certified;
    s->empty += (size_t)(r->certified && r->visible == 0 && !s->edits); /* edits can change any text */
    s->abstained += (size_t)r->abstained;
    s->exact += (size_t)r->exact;
    s->without_slots += r->slots == 0;
    s->words += r->words;
    s->slots += r->slots;
    s->queries += r->queries;
    s->base_queries++;
}

/* ------------------------------------------------------------------- figures */

static safer_figure headline(const safer_summary *s, size_t answered, size_t stable)
{
    return s->about_predictions || !s->labelled ? (safer_figure){"stable", stable, s->texts}
                                                : (safer_figure){"certified and answered", answered, s->labelled};
}

safer_figure safer_summary_headline(const safer_summary *s) { return headline(s, s->certified_answered, s->stable); }

safer_figure sf_summary_headline_at(const safer_summary *s, size_t r)
{
    return headline(s, s->certified_answered_at[r], s->stable_at[r]);
}

safer_figure sf_summary_headline_edits(const safer_summary *s, size_t edits)
{
    return headline(s, s->certified_answered_edits[edits], s->stable_edits[edits]);
}

safer_figure safer_summary_recall(const safer_summary *s, size_t class)
{
    const safer_class_summary *c = &s->by_class[class];
    return (safer_figure){"certified recall", c->certified_answered, c->texts};
}

safer_figure safer_summary_precision(const safer_summary *s, size_t class)
{
    const safer_class_summary *c = &s->by_class[class];
    const size_t others = s->labelled - c->texts, held = s->certified_answered - c->certified_answered;
    return (safer_figure){"certified precision", c->certified_answered, c->certified_answered + others - held};
}

int sf_summary_is_empty(const safer_summary *s) { return s->empty > s->certificates - s->empty; }

int safer_summary_caution(const safer_summary *s, char *text, size_t size)
{
    snprintf(text, size, "%s", "");
    if (sf_summary_is_empty(s))
        snprintf(text, size,
                 "most certificates are empty: in %zu of %zu certified texts the model reads no word that has a "
                 "synonym; the lexicon may not fit the language",
                 s->empty, s->certificates);
    else if (!s->edits && sf_few_words(s->slots, s->words)) /* edits can change any word */
        snprintf(text, size,
                 "certificates say little: only %zu of %zu words of these texts have a synonym; the lexicon may not "
                 "fit the language",
                 s->slots, s->words);
    return *text != '\0';
}
