/* The certificate of one text.
 *
 * Theorem (SAFER, theorem 1, for any independent kernels): if g(X,c) is the share of
 * draws of X that the model gives class c, then for every X' that differs from X in at
 * most R slots, each a synonym of what it replaces, |g(X',c) - g(X,c)| <= q_X(R) = 1 -
 * the product of the R smallest overlaps. So class y wins at every such X' when
 * g(X,y) - max g(X,c) > 2 q_X(R). Overlaps and their products round down, q rounds up,
 * and the test of g against q errs with probability at most delta (or never, when all
 * draws were enumerated).
 *
 * Samples that choose the prediction are never used for its certificate: they come from
 * another random stream.
 *
 * Where draws delete tokens, overlaps are those of tokens (sf_deletion_overlap), and edits have their own q
 * (stats/edits.c): thresholds on the same number, so that the same delta covers them.
 *
 * The method groups draws nothing: the groups of the text are asked in place of all draws (draw/groups.h), and counted
 * and decided as those are, exactly. Where the model is remote each is asked once, for dear models.
 *
 * The method ibp is of another kind: it looks into the model and bounds, without any draw, by
 * how much the target leads whatever synonyms stand in the text (ibp/bounds.c). It speaks
 * of the model itself, and of all words at once: the radius is all or 0. Where what words give adds up, it speaks of
 * every number of them. */
#include "certify/certificate.h"

#include "base/number.h"
#include "base/progress.h"
#include "certify/ask.h"
#include "certify/votes.h"
#include "stats/edits.h"
#include "stats/select.h"
#include "text/unicode.h"

#include <assert.h>

/* ---------------------------------------------------------------- the text */

/* Checks what is given and reads the text: its words and slots. */
static safer_status read_text(safer_certificate *c, safer_workspace *w, const char *text, size_t length,
                              safer_error *error)
{
    if (!sf_rounds_to_nearest()) /* every bound's error is computed for that */
        return sf_fail(error, SAFER_INVALID, "the calling thread does not round to the nearest (fesetround)");
    if (c->label >= (int)w->model->classes)
        return sf_fail(error, SAFER_INVALID, "label: %d, but the model has %zu classes", c->label, w->model->classes);
    const size_t valid = sf_utf8_valid(text, length);
    if (valid < length) return sf_fail(error, SAFER_INPUT, "the text is not valid UTF-8 at byte %zu", valid);
    const safer_status status = sf_workspace_read(w, text, length, error);
    c->words = w->slots.word_count;
    c->slots = w->slots.slot_count;
    c->tokens = w->slots.token_count;
    c->deletion = sf_deletion_share(w->slots.deletion);
    c->groups = w->slots.groups;
    return status;
}

/* The class that the certificate is about, given what is known of the prediction. */
static int target_of(const safer_certificate *c, const safer_workspace *w, int prediction)
{
    return c->label >= 0 && !w->options.unlabelled ? c->label : prediction;
}

/* All that is known before the model is asked: q at every reported radius, the visible slots. */
static safer_status prepare_text(safer_certificate *c, safer_workspace *w, safer_error *error)
{
    safer_status status;
    SF_TRY(sf_workspace_prepare(w, error));
    c->visible = w->visible;
    SF_TRY(sf_model_probe(w->model, &w->text, 1, error));
    for (size_t r = 0; r < SAFER_RADII; r++) c->q[r] = sf_q_at(w->overlaps, w->visible, sf_reported_radii[r]);
    for (size_t i = 0; w->split && i <= w->options.edits; i++)
        c->q_edits[i] = sf_edits_q(w->options.deletion, c->tokens, w->options.edit_kind, i,
                                   sf_q_at(w->overlaps, w->visible, w->options.radius));
    SF_TRY(sf_workspace_show(w, SF_TEXT_READ, c, error));
    c->target = target_of(c, w, SF_NO_LABEL); /* or the prediction, once there is one */
done:
    return status;
}

/* --------------------------------------------------------------- its draws */

/* The model's own answer; and, where the text has few draws, the answers for all of them. */
static safer_status ask_text(safer_certificate *c, safer_workspace *w, safer_error *error)
{
    safer_status status;
    const uint64_t draws = sf_votes_enumerable(w);
    const int together = draws == 1 && !w->prepared && !c->groups;
    if (together)
        SF_TRY(sf_ask_text_and_draw(&c->base, w, error));
    else
        SF_TRY(sf_ask_text(&c->base, w, error));
    if (draws) SF_TRY(sf_votes_enumerate(w, draws, together, c, error));
    c->exact = draws > 0 && !sf_model_is_random(w->model); /* which may have been found out meanwhile */
    c->queries = !c->exact ? 0 : c->groups ? draws : draws * sf_model_asks(w->model);
    if (c->groups && !c->exact)
        return sf_fail(error, SAFER_INVALID, "`groups`: the model answers at random, and groups are asked only once");
done:
    return status;
}

/* The samples that choose the prediction. */
static safer_status sample_for_selection(safer_certificate *c, safer_workspace *w, safer_error *error)
{
    safer_status status;
    if (w->fixed_vote) {
        SF_TRY(sf_votes_sample(w->selection, w, SF_STAGE_SELECTION, w->options.n0, NULL, error));
        c->vote_n = w->options.n0;
        c->vote_votes = w->selection;
    } else {
        sf_vote_begin(&w->vote, &w->vote_rule, w->selection);
        SF_TRY(sf_votes_until_clear(c, w, error));
    }
done:
    return status;
}

/* The prediction: the class with most votes, and whether that is clear. */
static void select_class(safer_certificate *c, const safer_workspace *w)
{
    if (c->exact) {
        const sf_weight *votes = w->tally.votes;
        c->prediction = 0;
        for (int k = 1; k < (int)w->model->classes; k++)
            if (votes[k] > votes[c->prediction]) c->prediction = k;
        for (int k = 0; k < (int)w->model->classes; k++)
            c->abstained |= k != c->prediction && votes[k] == votes[c->prediction];
    } else if (w->fixed_vote) {
        const sf_election election = sf_elect(w->selection, w->model->classes);
        c->prediction = (int)election.winner;
        c->abstained = !sf_election_is_clear(&election, w->options.alpha);
    } else {
        c->prediction = (int)sf_vote_leader(w->selection, w->model->classes);
        c->abstained = !sf_vote_clear(w->selection, w->model->classes, w->options.alpha);
    }
    c->target = target_of(c, w, c->prediction);
}

/* The certificate's own samples. */
static safer_status sample_for_certificate(safer_certificate *c, safer_workspace *w, safer_error *error)
{
    safer_status status;
    SF_TRY(sf_workspace_show(w, SF_PREDICTION_CHOSEN, c, error));
    if (w->options.method == SAFER_METHOD_ADAPTIVE)
        SF_TRY(sf_votes_until_decided(c, w, error));
    else
        SF_TRY(sf_votes_sample(w->votes, w, SF_STAGE_CERTIFICATION, w->options.n, c, error));
done:
    return status;
}

/* ------------------------------------------------------------ the decision */

static sf_evidence evidence_of(const safer_certificate *c, const safer_workspace *w)
{
    return (sf_evidence){.method = w->options.method,
                         .delta = w->options.delta,
                         .classes = w->model->classes,
                         .target = (size_t)c->target,
                         .exact = c->exact,
                         .n = c->n,
                         .votes = c->votes,
                         .tally = &w->tally};
}

int sf_certificate_claims(safer_workspace *w, const safer_certificate *c, double *bound, size_t *radius)
{
    if (w->options.method != SAFER_METHOD_ADAPTIVE || c->exact || !c->votes) return 0;
    const sf_evidence evidence = evidence_of(c, w);
    *bound = sf_evidence_bound(&evidence);
    *radius = sf_evidence_radius(&w->q_radius, &w->q_next, &evidence, w->overlaps, w->visible);
    return 1;
}

/* The shares of the classes, for people to look at: nothing is decided by them. */
static void set_shares(safer_certificate *c, safer_workspace *w)
{
    for (size_t k = 0; k < w->model->classes; k++)
        w->shares[k] = c->exact ? (double)w->tally.votes[k] / (double)w->tally.total
                       : c->n   ? (double)c->votes[k] / (double)c->n
                                : 0;
    c->shares = w->shares;
}

/* What the largest certified radius says about the reported ones and the asked one. */
static void set_radius(safer_certificate *c, const safer_workspace *w, size_t radius)
{
    c->radius = radius;
    for (size_t r = 0; r < SAFER_RADII; r++) c->certified_at[r] = radius >= sf_reported_radii[r];
    c->certified = radius >= w->options.radius;
}

/* Bound and radius of the target, from all that was asked. */
static void decide(safer_certificate *c, safer_workspace *w)
{
    const sf_evidence evidence = evidence_of(c, w);
    set_shares(c, w);
    c->bound = sf_evidence_bound(&evidence);
    set_radius(c, w, sf_evidence_radius(&w->q_radius, &w->q_next, &evidence, w->overlaps, w->visible));
    if (!w->split) return;
    c->edits = sf_evidence_edits(&evidence, c->q_edits, w->options.edits);
    c->certified &= c->edits >= w->options.edits;
}

/* A vote is given up where more draws are not worth it. Where there is a certificate they are: without an
 * answer it says nothing. The certificate's samples say only whether to go on, so that both tests stay what they
 * are. Should another class lead in the end, the same samples are about that one, and certify nothing. */
static safer_status answer_certified(safer_certificate *c, safer_workspace *w, safer_error *error)
{
    safer_status status = SAFER_OK;
    if (w->fixed_vote || !c->abstained || c->radius == 0) return SAFER_OK;
    sf_vote_insist(&w->vote);
    SF_TRY(sf_votes_until_clear(c, w, error));
    select_class(c, w);
    decide(c, w);
    SF_TRY(sf_workspace_show(w, SF_PREDICTION_CHOSEN, c, error));
done:
    return status;
}

/* The certified radius of a curve, which does not rise, and the margins there and at the next. */
static size_t radius_of(safer_certificate *c, safer_workspace *w, const double *curve)
{
    const size_t last = c->visible;
    size_t radius = 0;
    for (size_t r = 0; r < SAFER_RADII; r++)
        c->margin_at[r] = curve[sf_reported_radii[r] < last ? sf_reported_radii[r] : last];
    while (radius < last && curve[radius + 1] > 0) radius++;
    w->margin_radius = curve[radius];
    w->margin_next = curve[radius < last ? radius + 1 : last];
    return curve[last] > 0 ? SAFER_ALL : radius;
}

/* The certificate by bounds, without a draw: all or nothing, unless words add up. */
static safer_status bound_text(safer_certificate *c, safer_workspace *w, safer_error *error)
{
    safer_status status;
    const safer_model *model = w->model;
    SF_TRY(sf_ask_text(&c->base, w, error));
    c->visible = sf_ibp_visible(model, &w->slots);
    c->prediction = c->base;
    c->target = target_of(c, w, c->prediction);
    size_t radius;
    if (w->additive) {
        const double *curve;
        SF_TRY(sf_ibp_curve(w->margins, &curve, model, w->lexicon, &w->slots, (size_t)c->target, w->scratch[0], &w->ibp,
                            error));
        radius = radius_of(c, w, curve);
    } else {
        SF_TRY(
            sf_ibp_margins(w->margins, model, w->lexicon, &w->slots, (size_t)c->target, w->scratch[0], &w->ibp, error));
        radius = sf_ibp_certifies(w->margins, model->classes, (size_t)c->target) ? SAFER_ALL : 0;
    }
    assert(!radius || c->base == c->target); /* the text is one of those that the bounds cover */
    for (size_t k = 0; k < model->classes; k++) w->shares[k] = (int)k == c->base;
    c->exact = 1;
    c->margins = w->margins;
    c->shares = w->shares;
    c->additive = w->additive;
    set_radius(c, w, radius);
    c->bound = c->certified;
done:
    return status;
}

/* The model's answer for the text as it was given: what the fold costs. */
static safer_status ask_unfolded(safer_certificate *c, safer_workspace *w, safer_error *error)
{
    c->folded = w->lexicon->folds;
    c->unfolded = c->base;
    if (!sf_slots_folded(&w->slots)) return SAFER_OK;
    return sf_model_classify(w->model, &w->slots.given, 1, &c->unfolded, NULL, w->scratch[0], error);
}

/* Sample, select, sample again, bound, radius; and again sample and select, where the first were too few. Where all
 * draws were asked, `exact`, there is nothing to sample; the method ibp draws nothing at all. */
safer_status safer_certify_text(safer_certificate *out, safer_workspace **workspace, const safer_model *model,
                                const safer_lexicon *lexicon, const char *text, size_t length, int label,
                                const safer_certify_options *options, safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_certificate c = {.label = label};
    const double start = sf_seconds();
    if (!*workspace) SF_TRY(sf_workspace_new(workspace, model, lexicon, options, error));
    safer_workspace *w = *workspace;
    if (w->model != model || w->lexicon != lexicon)
        return sf_fail(error, SAFER_INVALID, "workspace: it was made with another model or lexicon");
    SF_TRY(read_text(&c, w, text, length, error));
    if (w->options.method == SAFER_METHOD_IBP) {
        SF_TRY(bound_text(&c, w, error));
    } else {
        SF_TRY(prepare_text(&c, w, error));
        SF_TRY(ask_text(&c, w, error));
        if (!c.exact) SF_TRY(sample_for_selection(&c, w, error));
        select_class(&c, w);
        if (!c.exact) SF_TRY(sample_for_certificate(&c, w, error));
        decide(&c, w);
        if (!c.exact) {
            SF_TRY(answer_certified(&c, w, error));
            c.queries = c.vote_n + c.n;
        }
    }
    SF_TRY(ask_unfolded(&c, w, error));
    c.seconds = sf_seconds() - start;
    *out = c;
done:
    if (*workspace) sf_workspace_release(*workspace);
    return status;
}
