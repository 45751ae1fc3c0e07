/* The votes of the text at hand. */
#include "certify/votes.h"

#include "certify/ask.h"
#include "certify/evidence.h"
#include "draw/enumerate.h"
#include "stats/binomial.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BATCH = 64 };

static size_t smaller(uint64_t left, size_t batch) { return left < batch ? (size_t)left : batch; }

/* ----------------------------------------------------------------- samples */

safer_status sf_votes_sample(uint64_t *votes, safer_workspace *w, sf_stage stage, uint64_t n,
                             safer_certificate *watched, safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_stream stream = sf_stream_of(w->options.seed, w->slots.hash, stage);
    memset(votes, 0, w->model->classes * sizeof *votes);
    for (uint64_t done = 0; done < n;) {
        const size_t count = smaller(n - done, w->options.batch);
        sf_sampler_draw(w->draws, &w->sampler, stream, done, count);
        SF_TRY(sf_ask_draws(w, count, error));
        for (size_t i = 0; i < count; i++)
            if (w->answers[i] >= 0) votes[w->answers[i]]++;
        done += count;
        if (!watched) continue;
        watched->n = done;
        watched->votes = votes;
        if (done < n) SF_TRY(sf_workspace_show(w, SF_BATCH_ASKED, watched, error));
    }
done:
    return status;
}

/* p0 at the radii to decide, rising: the reported ones, the asked one, and edits. */
static size_t radii_to_decide(double *p0, const safer_workspace *w, const safer_certificate *c)
{
    const size_t asked = w->options.radius;
    size_t radii = 0;
    for (size_t i = 1; w->split && i <= w->options.edits && c->q_edits[i] < 0.5; i++)
        p0[radii++] = sf_null_probability(c->q_edits[i]);
    const size_t edits = radii;
    for (size_t r = 0; r < SAFER_RADII; r++) {
        if (r > 0 && asked > sf_reported_radii[r - 1] && asked < sf_reported_radii[r])
            p0[radii++] = sf_null_probability(sf_q_at(w->overlaps, w->visible, asked));
        p0[radii++] = sf_null_probability(c->q[r]);
    }
    if (edits) qsort(p0, radii, sizeof *p0, sf_compare_doubles);
    return radii;
}

/* Where nobody knows how many draws it takes, answers past the one that decides are discarded, so that batches do not
 * matter. The first batch is what it takes if all answers agree, as they mostly do. Later ones are what is then left,
 * within bounds that double: texts that will be given up are not asked much, nor others in many small steps. A model
 * that gains nothing by large batches has one size. `most` is the upper bound, 0 before the first batch. */
static size_t next_batch(const safer_workspace *w, size_t *most, uint64_t soonest, uint64_t left)
{
    const size_t group = w->model->group * (size_t)w->threads, least = *most / 2;
    *most = *most ? smaller(2 * (uint64_t)*most, w->options.batch) : FIRST_BATCH;
    const uint64_t wanted = group ? group : soonest < least ? least : soonest < *most ? soonest : *most;
    return smaller(left, smaller(wanted, w->options.batch));
}

safer_status sf_votes_until_decided(safer_certificate *c, safer_workspace *w, safer_error *error)
{
    safer_status status = SAFER_OK;
    double p0[SAFER_RADII + 1 + SAFER_EDITS];
    const size_t radii = radii_to_decide(p0, w, c);
    const sf_stream stream = sf_stream_of(w->options.seed, w->slots.hash, SF_STAGE_CERTIFICATION);
    size_t count = 0, most = 0;
    SF_TRY(sf_eprocess_begin(w->process, (size_t)c->target, p0, radii, error));
    for (uint64_t done = 0; !sf_eprocess_done(w->process); done += count) {
        count = next_batch(w, &most, sf_eprocess_soonest(w->process), w->options.n - done);
        sf_sampler_draw(w->draws, &w->sampler, stream, done, count);
        SF_TRY(sf_ask_draws(w, count, error));
        for (size_t i = 0; i < count && !sf_eprocess_done(w->process); i++) sf_eprocess_add(w->process, w->answers[i]);
        c->n = sf_eprocess_samples(w->process);
        c->votes = sf_eprocess_counts(w->process);
        if (!sf_eprocess_done(w->process)) SF_TRY(sf_workspace_show(w, SF_BATCH_ASKED, c, error));
    }
    memcpy(w->votes, sf_eprocess_counts(w->process), w->model->classes * sizeof *w->votes);
    c->n = sf_eprocess_samples(w->process);
    c->votes = w->votes;
done:
    return status;
}

safer_status sf_votes_until_clear(safer_certificate *c, safer_workspace *w, safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_stream stream = sf_stream_of(w->options.seed, w->slots.hash, SF_STAGE_SELECTION);
    sf_vote *vote = &w->vote;
    size_t most = 0;
    while (!sf_vote_done(vote)) {
        const size_t count = next_batch(w, &most, sf_vote_soonest(vote), w->options.n0 - vote->n);
        sf_sampler_draw(w->draws, &w->sampler, stream, vote->n, count);
        SF_TRY(sf_ask_draws(w, count, error));
        for (size_t i = 0; i < count && !sf_vote_done(vote); i++) sf_vote_add(vote, w->answers[i]);
        c->vote_n = vote->n;
        c->vote_votes = w->selection;
        if (!sf_vote_done(vote)) SF_TRY(sf_workspace_show(w, SF_VOTE_ASKED, c, error));
    }
done:
    return status;
}

/* --------------------------------------------------------------- every draw */

/* A model that answers at random has no exact shares. */
uint64_t sf_votes_enumerable(const safer_workspace *w)
{
    const safer_method method = w->options.method;
    if (sf_model_is_random(w->model)) return 0;
    if (method != SAFER_METHOD_ADAPTIVE && method != SAFER_METHOD_GROUPS) return 0;
    return sf_enumerate_count(&w->sampler, w->visible, w->options.n);
}

safer_status sf_votes_enumerate(safer_workspace *w, uint64_t draws, int known, const safer_certificate *watched,
                                safer_error *error)
{
    safer_status status = SAFER_OK;
    safer_certificate so_far = *watched;
    so_far.exact = 1;
    sf_tally_clear(&w->tally);
    for (uint64_t done = 0; done < draws;) {
        const size_t count = smaller(draws - done, w->options.batch);
        sf_enumerate_draws(w->draws, &w->sampler, w->visible, done, count);
        if (!known) SF_TRY(sf_ask_draws(w, count, error));
        for (size_t i = 0; i < count; i++) /* the sum of all weights fits: sf_enumerate_count saw to it */
            (void)sf_tally_add(&w->tally, w->answers[i],
                               sf_enumerate_weight(&w->sampler, w->visible, w->draws + i * w->sampler.width));
        done += count;
        so_far.n = done;
        if (w->slots.groups)
            SF_TRY(sf_workspace_show(w, SF_GROUPS_ASKED, &so_far, error));
        else
            SF_TRY(sf_ask_again(w, count, error));
        if (done < draws) SF_TRY(sf_workspace_show(w, SF_BATCH_ASKED, &so_far, error));
    }
done:
    return status;
}
