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
 * The method ibp is of another kind: it looks into the model and bounds, without any draw, by
 * how much the target leads whatever synonyms stand in the text (ibp/bounds.c). It speaks
 * of the model itself, and of all words at once: the radius is all or 0. */
#include "certify/certificate.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "lexicon/overlap.h"
#include "stats/binomial.h"
#include "stats/select.h"
#include "stats/special.h"
#include "text/unicode.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const size_t sf_reported_radii[SAFER_RADII] = {1, 2, 5, 10, 20, SAFER_ALL};

size_t safer_reported_radius(size_t index) { return index < SAFER_RADII ? sf_reported_radii[index] : SAFER_ALL; }

void safer_interval(size_t part, size_t whole, double *low, double *high)
{
    sf_interval interval = sf_wilson(part, whole, SF_Z95);
    *low = interval.low;
    *high = interval.high;
}

safer_certify_options safer_certify_options_default(void)
{
    return (safer_certify_options){.method = SAFER_ADAPTIVE,
                                   .n = 5000,
                                   .n0 = 100,
                                   .delta = 0.01,
                                   .alpha = 0.001,
                                   .radius = SAFER_ALL,
                                   .seed = 1,
                                   .batch = 256};
}

safer_status sf_certify_check(const safer_certify_options *o, const safer_model *model, const safer_lexicon *lexicon,
                              safer_error *error)
{
    if (o->method != SAFER_ADAPTIVE && o->method != SAFER_BINOMIAL && o->method != SAFER_HOEFFDING &&
        o->method != SAFER_IBP)
        return sf_fail(error, SAFER_INVALID, "method: unknown");
    if (o->n < 1 || o->n > SF_SAMPLES_MAX)
        return sf_fail(error, SAFER_INVALID, "n: %llu (1 to 999999999)", (unsigned long long)o->n);
    if (o->n0 < 1 || o->n0 > SF_SAMPLES_MAX)
        return sf_fail(error, SAFER_INVALID, "n0: %llu (1 to 999999999)", (unsigned long long)o->n0);
    if (!(o->delta > 0 && o->delta < 1)) return sf_fail(error, SAFER_INVALID, "delta: %g (above 0, below 1)", o->delta);
    if (!(o->alpha > 0 && o->alpha < 1)) return sf_fail(error, SAFER_INVALID, "alpha: %g (above 0, below 1)", o->alpha);
    if (o->radius < 1) return sf_fail(error, SAFER_INVALID, "radius: at least 1, or all");
    if (o->threads < 0) return sf_fail(error, SAFER_INVALID, "threads: %d", o->threads);
    if (o->batch < 1 || o->batch > 1 << 20) return sf_fail(error, SAFER_INVALID, "batch: %zu (1 to 1048576)", o->batch);
    return o->method == SAFER_IBP && model ? sf_ibp_check(model, lexicon, error) : SAFER_OK;
}

/* ---------------------------------------------------------------- evidence */

/* With several classes, or answers that are none, the rival is the strongest other class. */
static uint64_t strongest_rival(const uint64_t *votes, size_t classes, size_t target)
{
    uint64_t most = 0;
    for (size_t c = 0; c < classes; c++)
        if (c != target && votes[c] > most) most = votes[c];
    return most;
}

static sf_eprocess_options process_options(double delta, size_t classes, uint64_t n)
{
    sf_eprocess_options o = sf_eprocess_options_default();
    o.delta = delta;
    o.n_max = n;
    o.classes = classes;
    o.none = 0; /* built-in models always answer */
    return o;
}

int sf_evidence_certifies(const sf_evidence *e, double q)
{
    if (e->exact) return sf_tally_certifies(e->tally, e->target, q);
    if (e->method == SAFER_HOEFFDING)
        return sf_hoeffding_certifies(e->votes[e->target], strongest_rival(e->votes, e->classes, e->target), e->n,
                                      e->classes, q, e->delta);
    if (e->method == SAFER_BINOMIAL) return sf_binomial_certifies(e->votes[e->target], e->n, q, e->delta);
    sf_eprocess_options o = process_options(e->delta, e->classes, e->n);
    double p0 = sf_null_probability(q);
    return p0 < 1 && sf_eprocess_claims(&o, e->target, p0, e->votes, e->n);
}

double sf_evidence_bound(const sf_evidence *e)
{
    if (e->exact) return sf_tally_bound(e->tally, e->target);
    if (e->method == SAFER_BINOMIAL) return sf_binomial_lower(e->votes[e->target], e->n, e->delta);
    if (e->method == SAFER_HOEFFDING) {
        /* (1 + margin - slack)/2: the same quantity as for the other methods. */
        double rival = (double)strongest_rival(e->votes, e->classes, e->target);
        double margin = ((double)e->votes[e->target] - rival) / (double)e->n;
        double bound = 0.5 + (margin - sf_hoeffding_slack(e->n, e->classes, e->delta)) / 2;
        return bound > 0 ? nextafter(nextafter(bound, 0), 0) : 0;
    }
    sf_eprocess_options o = process_options(e->delta, e->classes, e->n);
    return sf_eprocess_bound(&o, e->target, e->votes, e->n);
}

/* --------------------------------------------------------------- workspace */

void safer_workspace_free(safer_workspace *w)
{
    if (!w) return;
    sf_slots_free(&w->slots);
    sf_sampler_free(&w->sampler);
    sf_eprocess_free(w->process);
    sf_tally_free(&w->tally);
    for (size_t i = 0; w->texts && i < w->options.batch; i++) sf_buffer_free(&w->texts[i]);
    for (int i = 0; w->scratch && i < w->threads; i++)
        if (w->scratch[i]) w->model->class->scratch_free(w->scratch[i]);
    free(w->scratch);
    free(w->texts);
    free(w->spans);
    free(w->votes);
    free(w->selection);
    free(w->shares);
    free(w->overlaps);
    free(w->draws);
    free(w->answers);
    free(w->margins);
    sf_margins_scratch_free(w->ibp);
    free(w);
}

safer_status sf_workspace_new(safer_workspace **out, const safer_model *model, const safer_lexicon *lexicon,
                              const safer_certify_options *options, safer_error *error)
{
    safer_status status = sf_certify_check(options, model, lexicon, error);
    if (status != SAFER_OK) return status;
    safer_workspace *w = sf_calloc(1, sizeof *w);
    if (!w) return sf_fail_memory(error);
    w->model = model;
    w->lexicon = lexicon;
    w->options = *options;
    w->votes = sf_calloc(model->classes, sizeof *w->votes);
    w->selection = sf_calloc(model->classes, sizeof *w->selection);
    w->shares = sf_calloc(model->classes, sizeof *w->shares);
    w->answers = sf_alloc(options->batch, sizeof *w->answers);
    w->texts = sf_calloc(options->batch, sizeof *w->texts);
    w->spans = sf_alloc(options->batch, sizeof *w->spans);
    w->threads = sf_threads(options->threads);
    w->scratch = sf_calloc((size_t)w->threads, sizeof *w->scratch);
    w->margins = sf_calloc(model->classes, sizeof *w->margins);
    if (!w->margins || !w->votes || !w->selection || !w->shares || !w->answers || !w->texts || !w->spans ||
        !w->scratch) {
        status = sf_fail_memory(error);
        goto done;
    }
    sf_eprocess_options process = process_options(options->delta, model->classes, options->n);
    SF_TRY(sf_eprocess_new(&w->process, &process, error));
    SF_TRY(sf_tally_new(&w->tally, model->classes, error));
    for (int i = 0; model->class->scratch_new && i < w->threads; i++)
        SF_TRY(model->class->scratch_new(model, &w->scratch[i], error));
    *out = w;
    w = NULL;
done:
    safer_workspace_free(w);
    return status;
}

/* ------------------------------------------------------------------ asking */

/* A batch, spread over the threads in pieces; each answer depends on its draw alone. */
static size_t piece_of(const safer_workspace *w) { return w->model->class->group ? w->model->class->group : 32; }

typedef struct batch {
    safer_workspace *workspace;
    const void *prepared;
    safer_status status;
    safer_error error;
    pthread_mutex_t lock;
} batch;

static safer_status ask_piece(safer_workspace *w, const void *prepared, size_t begin, size_t count, int worker,
                              safer_error *error)
{
    const uint32_t *draws = w->draws + begin * w->slots.slot_count;
    if (prepared)
        return w->model->class->sample(w->model, prepared, draws, count, w->answers + begin, w->scratch[worker], error);
    for (size_t i = 0; i < count; i++) {
        sf_buffer *text = &w->texts[begin + i];
        sf_buffer_clear(text);
        if (sf_slots_render(text, &w->slots, w->lexicon, draws + i * w->slots.slot_count)) return sf_fail_memory(error);
        w->spans[begin + i] = (sf_span){text->bytes, text->length};
    }
    return w->model->class->classify(w->model, w->spans + begin, count, w->answers + begin, NULL, w->scratch[worker],
                                     error);
}

static void ask_pieces(void *context, size_t begin, size_t end, int worker)
{
    batch *b = context;
    safer_error error = {0};
    safer_status status = ask_piece(b->workspace, b->prepared, begin, end - begin, worker, &error);
    if (status == SAFER_OK) return;
    pthread_mutex_lock(&b->lock);
    if (b->status == SAFER_OK) {
        b->status = status;
        b->error = error;
    }
    pthread_mutex_unlock(&b->lock);
}

/* The model's answers for `count` draws, at most a batch. */
static safer_status ask(safer_workspace *w, const void *prepared, size_t count, safer_error *error)
{
    if (w->threads == 1 || count <= piece_of(w)) return ask_piece(w, prepared, 0, count, 0, error);
    batch b = {.workspace = w, .prepared = prepared};
    pthread_mutex_init(&b.lock, NULL);
    sf_parallel(w->threads, count, piece_of(w), ask_pieces, &b);
    pthread_mutex_destroy(&b.lock);
    if (b.status != SAFER_OK && error) *error = b.error;
    return b.status;
}

/* Whoever watches may end it. */
static safer_status look(safer_workspace *w, sf_moment moment, const safer_certificate *so_far, safer_error *error)
{
    if (!w->watch.look || !w->watch.look(w->watch.context, moment, so_far, w)) return SAFER_OK;
    return sf_fail(error, SAFER_CANCELLED, "cancelled");
}

/* `n` answers of a stream, counted. The certificate's own (n and votes of *c) are watched. */
static safer_status count_votes(safer_workspace *w, void *prepared, sf_stage stage, uint64_t n, uint64_t *votes,
                                safer_certificate *c, safer_error *error)
{
    sf_stream stream = sf_stream_of(w->options.seed, w->slots.hash, stage);
    memset(votes, 0, w->model->classes * sizeof *votes);
    for (uint64_t done = 0; done < n;) {
        size_t count = n - done < w->options.batch ? (size_t)(n - done) : w->options.batch;
        sf_sampler_draw(w->draws, &w->sampler, stream, done, count);
        safer_status status = ask(w, prepared, count, error);
        if (status != SAFER_OK) return status;
        for (size_t i = 0; i < count; i++)
            if (w->answers[i] >= 0) votes[w->answers[i]]++;
        done += count;
        if (stage != SF_STAGE_CERTIFICATION) continue;
        c->n = done;
        c->votes = votes;
        status = done < n ? look(w, SF_BATCH_ASKED, c, error) : SAFER_OK;
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

/* Samples until the process has decided every radius. Answers past that point are
 * discarded, so that batches do not matter; they start small and grow, unless the model
 * gains nothing by large ones. */
static safer_status sample_until_decided(safer_workspace *w, void *prepared, safer_certificate *c, const double *q,
                                         size_t radii, safer_error *error)
{
    double p0[SAFER_RADII + 1];
    sf_stream stream = sf_stream_of(w->options.seed, w->slots.hash, SF_STAGE_CERTIFICATION);
    for (size_t r = 0; r < radii; r++) p0[r] = sf_null_probability(q[r]);
    safer_status status = sf_eprocess_begin(w->process, (size_t)c->target, p0, radii, error);
    size_t group = w->model->class->group * (size_t)w->threads, count = group ? group : 16;
    if (count > w->options.batch) count = w->options.batch;
    for (uint64_t done = 0; status == SAFER_OK && !sf_eprocess_done(w->process); done += count) {
        if (done && !group) count = count * 2 < w->options.batch ? count * 2 : w->options.batch;
        if (w->options.n - done < count) count = (size_t)(w->options.n - done);
        sf_sampler_draw(w->draws, &w->sampler, stream, done, count);
        status = ask(w, prepared, count, error);
        for (size_t i = 0; i < count && status == SAFER_OK && !sf_eprocess_done(w->process); i++)
            sf_eprocess_add(w->process, w->answers[i]);
        c->n = sf_eprocess_samples(w->process);
        c->votes = sf_eprocess_counts(w->process);
        if (status == SAFER_OK && !sf_eprocess_done(w->process)) status = look(w, SF_BATCH_ASKED, c, error);
    }
    if (status == SAFER_OK) memcpy(w->votes, sf_eprocess_counts(w->process), w->model->classes * sizeof *w->votes);
    c->n = sf_eprocess_samples(w->process);
    c->votes = w->votes;
    return status;
}

/* The model's own answer, and in the same call that for the text's only draw, w->answers[0]: a
 * model elsewhere would else be called twice for two texts. */
static safer_status ask_with_draw(int *base, safer_workspace *w, const sf_span *text, safer_error *error)
{
    int answers[2] = {0};
    memset(w->draws, 0, w->slots.slot_count * sizeof *w->draws);
    sf_buffer_clear(&w->texts[0]);
    if (sf_slots_render(&w->texts[0], &w->slots, w->lexicon, w->draws)) return sf_fail_memory(error);
    const sf_span both[2] = {*text, {w->texts[0].bytes, w->texts[0].length}};
    safer_status status = w->model->class->classify(w->model, both, 2, answers, NULL, w->scratch[0], error);
    *base = answers[0];
    w->answers[0] = answers[1];
    return status;
}

/* Every distinct draw once, with its weight. `known`: the only draw has its answer already. *asked
 * gets how many; 0 when the weights do not fit and the text must be sampled. */
static safer_status enumerate(safer_workspace *w, void *prepared, uint64_t draws, int known, uint64_t *asked,
                              const safer_certificate *c, safer_error *error)
{
    size_t slots = w->slots.slot_count, filled = 0;
    sf_tally_clear(&w->tally);
    *asked = 0;
    for (uint64_t d = 0; d < draws; d++) { /* the draw's number, in mixed radix, is the draw */
        uint64_t rest = d;
        for (size_t s = 0; s < slots; s++) {
            uint32_t choices = s < w->visible ? w->sampler.rules[s].count : 1; /* what is not seen does not matter */
            w->draws[filled * slots + s] = (uint32_t)(rest % choices);
            rest /= choices;
        }
        if (++filled < w->options.batch && d + 1 < draws) continue;
        safer_status status = known ? SAFER_OK : ask(w, prepared, filled, error);
        if (status != SAFER_OK) return status;
        for (size_t i = 0; i < filled; i++) {
            sf_weight weight = 1;
            for (size_t s = 0; s < w->visible; s++)
                if (sf_exact_multiply(&weight, w->sampler.rules[s].weights[w->draws[i * slots + s]])) return SAFER_OK;
            if (sf_tally_add(&w->tally, w->answers[i], weight)) return SAFER_OK;
        }
        filled = 0;
        safer_certificate so_far = *c;
        so_far.exact = 1;
        so_far.n = d + 1;
        if (d + 1 < draws && (status = look(w, SF_BATCH_ASKED, &so_far, error)) != SAFER_OK) return status;
    }
    *asked = draws;
    return SAFER_OK;
}

/* ------------------------------------------------------------ the decision */

double sf_q_at(const double *overlaps, size_t slots, size_t radius)
{
    double product = 1.0;
    for (size_t i = 0; i < slots && i < radius && overlaps[i] < 1.0; i++)
        product = sf_multiply_down(product, overlaps[i]);
    return sf_complement_up(product);
}

/* The largest certified radius, walking up: the nulls are nested, so the first that
 * fails ends it. Radii past the last overlap below 1 change nothing. */
static size_t largest_radius(safer_workspace *w, const sf_evidence *evidence)
{
    size_t slots = w->visible;
    double product = 1.0;
    w->q_radius = w->q_next = 0;
    if (!sf_evidence_certifies(evidence, 0)) return 0;
    for (size_t i = 0; i < slots && w->overlaps[i] < 1.0; i++) {
        product = sf_multiply_down(product, w->overlaps[i]);
        w->q_next = sf_complement_up(product);
        if (!sf_evidence_certifies(evidence, w->q_next)) return i;
        w->q_radius = w->q_next;
    }
    return SAFER_ALL;
}

int sf_certificate_claims(safer_workspace *w, const safer_certificate *c, double *bound, size_t *radius)
{
    if (w->options.method != SAFER_ADAPTIVE || c->exact || !c->votes) return 0;
    sf_evidence evidence = {.method = SAFER_ADAPTIVE,
                            .delta = w->options.delta,
                            .classes = w->model->classes,
                            .target = (size_t)c->target,
                            .n = c->n,
                            .votes = c->votes};
    *bound = sf_evidence_bound(&evidence);
    *radius = largest_radius(w, &evidence);
    return 1;
}

static safer_status make_room(safer_workspace *w, safer_error *error)
{
    size_t slots = w->slots.slot_count;
    if (slots && w->options.batch > SIZE_MAX / sizeof *w->draws / slots) return sf_fail_memory(error);
    if (sf_grow(&w->overlaps, &w->overlap_capacity, slots + 1, sizeof *w->overlaps) ||
        sf_grow(&w->draws, &w->draw_capacity, w->options.batch * slots + 1, sizeof *w->draws))
        return sf_fail_memory(error);
    return SAFER_OK;
}

/* How many distinct draws there are, when enumerating them is cheaper than sampling. A model
 * that answers at random has no exact shares. */
static uint64_t enumerable(const safer_workspace *w)
{
    uint64_t draws = 1;
    if (w->options.method != SAFER_ADAPTIVE || sf_model_is_random(w->model)) return 0;
    for (size_t s = 0; s < w->visible; s++) {
        draws *= w->sampler.rules[s].count; /* below 2^30 * 2^32 */
        if (draws > w->options.n) return 0;
    }
    return draws;
}

/* The certificate by bounds: everything but what is known of the text already. */
static safer_status bound_text(safer_certificate *c, safer_workspace *w, const sf_span *text, safer_error *error)
{
    safer_status status;
    const safer_model *model = w->model;
    SF_TRY(model->class->classify(model, text, 1, &c->base, NULL, w->scratch[0], error));
    c->visible = sf_ibp_visible(model, &w->slots);
    c->prediction = c->base;
    c->target = c->label >= 0 && !w->options.unlabelled ? c->label : c->prediction;
    SF_TRY(sf_ibp_margins(w->margins, model, w->lexicon, &w->slots, (size_t)c->target, w->scratch[0], &w->ibp, error));
    int certified = sf_ibp_certifies(w->margins, model->classes, (size_t)c->target);
    assert(!certified || c->base == c->target); /* the text is one of those that the bounds speak of */
    for (size_t k = 0; k < model->classes; k++) w->shares[k] = (int)k == c->base;
    c->exact = 1;
    c->margins = w->margins;
    c->shares = w->shares;
    c->bound = certified;
    c->radius = certified ? SAFER_ALL : 0;
    for (size_t r = 0; r < SAFER_RADII; r++) c->certified_at[r] = certified;
    c->certified = certified;
done:
    return status;
}

safer_status safer_certify_text(safer_certificate *out, safer_workspace **workspace, const safer_model *model,
                                const safer_lexicon *lexicon, const char *text, size_t length, int label,
                                const safer_certify_options *options, safer_error *error)
{
    safer_status status = SAFER_OK;
    void *prepared = NULL;
    double start = sf_seconds();
    if (!*workspace) SF_TRY(sf_workspace_new(workspace, model, lexicon, options, error));
    safer_workspace *w = *workspace;
    const safer_certify_options *o = &w->options;
    if (!sf_rounds_to_nearest()) { /* every bound's error is reckoned for that */
        status = sf_fail(error, SAFER_INVALID, "the calling thread does not round to the nearest (fesetround)");
        goto done;
    }
    if (label >= (int)model->classes) {
        status = sf_fail(error, SAFER_INVALID, "label: %d, but the model has %zu classes", label, model->classes);
        goto done;
    }
    size_t valid = sf_utf8_valid(text, length);
    if (valid < length) {
        status = sf_fail(error, SAFER_INPUT, "the text is not valid UTF-8 at byte %zu", valid);
        goto done;
    }
    SF_TRY(sf_slots_read(&w->slots, lexicon, text, length, error));
    safer_certificate c = {.label = label, .words = w->slots.word_count, .slots = w->slots.slot_count};
    const sf_span whole = {text, length};
    if (o->method == SAFER_IBP) {
        SF_TRY(bound_text(&c, w, &whole, error));
        c.seconds = sf_seconds() - start;
        *out = c;
        goto done;
    }
    SF_TRY(make_room(w, error));
    SF_TRY(sf_sampler_prepare(&w->sampler, &w->slots, lexicon, error));
    if (model->class->prepare) SF_TRY(model->class->prepare(model, lexicon, &w->slots, &prepared, error));
    w->visible = prepared && model->class->visible ? model->class->visible(prepared) : w->slots.slot_count;
    sf_slots_overlaps(w->overlaps, &w->slots, lexicon); /* those of the visible slots come first */
    qsort(w->overlaps, w->visible, sizeof *w->overlaps, sf_compare_doubles);

    c.visible = w->visible;
    SF_TRY(sf_model_probe(model, &whole, 1, error));

    /* The reported radii and the asked one, rising. */
    double q[SAFER_RADII + 1], q_asked = sf_q_at(w->overlaps, w->visible, o->radius);
    size_t radii = 0;
    int placed = 0;
    for (size_t r = 0; r < SAFER_RADII; r++) {
        c.q[r] = sf_q_at(w->overlaps, w->visible, sf_reported_radii[r]);
        if (!placed && o->radius <= sf_reported_radii[r]) {
            if (o->radius < sf_reported_radii[r]) q[radii++] = q_asked;
            placed = 1;
        }
        q[radii++] = c.q[r];
    }
    SF_TRY(look(w, SF_TEXT_READ, &c, error));

    uint64_t draws = enumerable(w), asked = 0;
    c.target = label >= 0 && !o->unlabelled ? label : SF_NO_LABEL; /* or the prediction, once there is one */
    const int together = draws == 1 && !prepared;
    if (together)
        SF_TRY(ask_with_draw(&c.base, w, &whole, error));
    else
        SF_TRY(model->class->classify(model, &whole, 1, &c.base, NULL, w->scratch[0], error));
    if (draws) SF_TRY(enumerate(w, prepared, draws, together, &asked, &c, error));
    c.exact = asked > 0;
    c.queries = asked;
    if (c.exact) {
        sf_weight most = 0;
        for (size_t k = 0; k < model->classes; k++)
            if (w->tally.votes[k] > most) {
                most = w->tally.votes[k];
                c.prediction = (int)k;
            }
        for (size_t k = 0; k < model->classes; k++) c.abstained |= (int)k != c.prediction && w->tally.votes[k] == most;
    } else {
        SF_TRY(count_votes(w, prepared, SF_STAGE_SELECTION, o->n0, w->selection, &c, error));
        sf_election election = sf_elect(w->selection, model->classes);
        c.prediction = (int)election.winner;
        c.abstained = !sf_election_is_clear(&election, o->alpha);
        c.queries = o->n0;
    }
    c.target = label >= 0 && !o->unlabelled ? label : c.prediction;

    if (!c.exact) {
        SF_TRY(look(w, SF_PREDICTION_CHOSEN, &c, error));
        if (o->method == SAFER_ADAPTIVE) {
            SF_TRY(sample_until_decided(w, prepared, &c, q, radii, error));
        } else {
            SF_TRY(count_votes(w, prepared, SF_STAGE_CERTIFICATION, o->n, w->votes, &c, error));
        }
        c.queries += c.n;
    }
    sf_evidence evidence = {.method = o->method,
                            .delta = o->delta,
                            .classes = model->classes,
                            .target = (size_t)c.target,
                            .exact = c.exact,
                            .n = c.n,
                            .votes = w->votes,
                            .tally = &w->tally};
    for (size_t k = 0; k < model->classes; k++)
        w->shares[k] = c.exact ? (double)w->tally.votes[k] / (double)w->tally.total
                       : c.n   ? (double)w->votes[k] / (double)c.n
                               : 0;
    c.shares = w->shares;
    c.bound = sf_evidence_bound(&evidence);
    c.radius = largest_radius(w, &evidence);
    for (size_t r = 0; r < SAFER_RADII; r++) c.certified_at[r] = c.radius >= sf_reported_radii[r];
    c.certified = c.radius >= o->radius;
    c.seconds = sf_seconds() - start;
    *out = c;
done:
    if (prepared) model->class->release(prepared);
    return status;
}
