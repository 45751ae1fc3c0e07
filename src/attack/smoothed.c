/* The smoothed classifier under attack.
 *
 * What the search sees of a text X' is the share of votes of each class over n draws of X',
 * under common random numbers: draw i of slot s uses the same random number for every X', so
 * that two texts differ by what their words do, not by luck. X' has the same slots in the same
 * places (the lexicon's admission rule), so the numbering is that of the text attacked. Where
 * X' has no more than n distinct draws, all of them are asked, and the shares are exact.
 *
 * Where groups vote, all of them are asked; synonyms are in the group of the word itself.
 *
 * Votes that chose X' favour the attack: the best of many texts on the same draws. So what
 * was found is tested on draws of its own, made as the deployed classifier makes them: the text
 * is written out, read again, and drawn from the lexicon itself. With a votes for the target
 * and b for the rival (chosen by the search), "the rival is no more probable" makes b, given
 * a + b, at most Bin(a + b, 1/2); its upper tail, rounded up, is the p-value. */
#include "attack/victim.h"

#include "base/elementary.h"
#include "base/memory.h"
#include "draw/enumerate.h"
#include "stats/special.h"

#include <math.h>
#include <string.h>

enum { ENUMERATE = 1 << 16 }; /* draws that a finding may enumerate */

/* -------------------------------------------------------- a text in reach */

/* The class with most votes; of equals the first, or, where ties lose, not the target. */
static int winner(const sf_victim *v, const sf_weight *votes)
{
    int best = 0;
    for (int c = 1; c < (int)v->model->classes; c++)
        if (votes[c] > votes[best] || (votes[c] == votes[best] && v->options.ties_lose && best == v->target)) best = c;
    return votes[best] || v->options.ties_lose ? best : SF_NO_LABEL; /* perhaps not one answer was a label */
}

static void set_rules(sf_victim *v, const uint32_t *choices)
{
    static const uint32_t one = 1;
    for (size_t s = 0; s < v->slots.slot_count; s++) /* a removed word draws nothing, in one way */
        v->sampler.rules[s] = choices[s] == SF_REMOVED
                                  ? (sf_draw_rule){.total = 1, .equal = 1, .count = 1, .weights = &one}
                                  : v->items[v->first[s] + choices[s]].rule;
}

/* Whether the draw has the token of a slot. */
static int has_slot(const sf_victim *v, const uint32_t *choices, const uint32_t *draw, size_t slot)
{
    return choices[slot] != SF_REMOVED && (!v->slots.split || sf_slots_keeps(&v->slots, draw, v->token_of[slot]));
}

/* The word taken out, or SIZE_MAX. */
static size_t removed_slot(const sf_victim *v, const uint32_t *choices)
{
    for (size_t s = 0; s < v->slots.slot_count; s++)
        if (choices[s] == SF_REMOVED) return s;
    return SIZE_MAX;
}

/* Prepares the text without the word of a slot. NULL where the rest does not read as before. */
static safer_status prepare_without(void **out, sf_victim *v, size_t slot, safer_error *error)
{
    const sf_text_word *w = &v->slots.words[v->slots.slots[slot]];
    *out = NULL;
    sf_buffer_clear(&v->check_text);
    if (sf_buffer_add(&v->check_text, v->slots.text, w->begin) ||
        sf_buffer_add(&v->check_text, v->slots.text + w->end, v->slots.length - w->end))
        return sf_fail_memory(error);
    safer_status status = sf_slots_read(&v->check_slots, v->lexicon, v->check_text.bytes ? v->check_text.bytes : "",
                                        v->check_text.length, error);
    if (status != SAFER_OK || v->check_slots.slot_count + 1 != v->slots.slot_count) return status;
    return v->model->class->prepare(v->model, &v->shadow.lexicon, &v->check_slots, out, error);
}

/* Appends what is drawn into a slot. */
static int render_slot(sf_buffer *out, const sf_victim *v, const uint32_t *choices, const uint32_t *draw, size_t s)
{
    const safer_lexicon *l = v->lexicon;
    const uint32_t drawn = l->kernel.ids[l->kernel.offsets[v->items[v->first[s] + choices[s]].row] + draw[s]];
    const uint32_t begin = l->words.offsets[drawn];
    return sf_word_render(out, l->words.pool + begin, l->words.offsets[drawn + 1] - begin - 1,
                          v->slots.words[v->slots.slots[s]].pattern);
}

/* The draw as a text, where draws delete: what is kept, one space between two tokens. */
static int render_kept(sf_buffer *out, const sf_victim *v, const uint32_t *choices, const uint32_t *draw)
{
    for (size_t t = 0; t < v->slots.token_count; t++) {
        const sf_token *token = &v->slots.tokens[t];
        const int word = token->slot != SF_NONE;
        if (!sf_slots_keeps(&v->slots, draw, t) || (word && choices[token->slot] == SF_REMOVED)) continue;
        if ((out->length && sf_buffer_add_byte(out, ' ')) ||
            (word ? render_slot(out, v, choices, draw, token->slot)
                  : sf_buffer_add(out, v->slots.text + token->begin, token->end - token->begin)))
            return -1;
    }
    return 0;
}

/* The draw as a text, in an empty buffer. */
static int render_draw(sf_buffer *out, const sf_victim *v, const uint32_t *choices, const uint32_t *draw)
{
    size_t at = 0;
    if (v->slots.split) return render_kept(out, v, choices, draw);
    for (size_t s = 0; s < v->slots.slot_count; s++) {
        const sf_text_word *w = &v->slots.words[v->slots.slots[s]];
        if (sf_buffer_add(out, v->slots.text + at, w->begin - at)) return -1;
        at = w->end;
        if (choices[s] == SF_REMOVED) continue;
        if (render_slot(out, v, choices, draw, s)) return -1;
    }
    return sf_buffer_add(out, v->slots.text + at, v->slots.length - at);
}

/* A draw as the model that was prepared with the shadow numbers it. A word taken out of a text that is not split
 * has no number: the preparation is one without it. Returns where the next one begins. */
static uint32_t *map_draw(uint32_t *mapped, const sf_victim *v, const uint32_t *choices, const uint32_t *draw)
{
    const size_t slots = v->slots.slot_count, groups = v->sampler.width - slots;
    for (size_t s = 0; s < slots; s++)
        if (has_slot(v, choices, draw, s))
            *mapped++ = v->items[v->first[s] + choices[s]].map[draw[s]];
        else if (v->slots.split)
            *mapped++ = 0;
    if (!groups) return mapped;
    memcpy(mapped, draw + slots, groups * sizeof *mapped);
    for (size_t s = 0; s < slots; s++)
        if (choices[s] == SF_REMOVED) mapped[v->token_of[s] / 32] &= ~(1u << v->token_of[s] % 32);
    return mapped + groups;
}

/* v->labels = the answers for the first `count` of v->draws. */
static safer_status ask_draws(sf_victim *v, const void *prepared, const uint32_t *choices, size_t count,
                              safer_error *error)
{
    const size_t width = v->sampler.width;
    if (prepared) {
        uint32_t *mapped = v->mapped;
        for (size_t i = 0; i < count; i++) mapped = map_draw(mapped, v, choices, v->draws + i * width);
        return sf_model_sample(v->model, prepared, v->mapped, count, v->labels, v->scratch, error);
    }
    for (size_t i = 0; i < count; i++) {
        sf_buffer_clear(&v->texts[i]);
        if (render_draw(&v->texts[i], v, choices, v->draws + i * width)) return sf_fail_memory(error);
        v->spans[i] = (sf_span){v->texts[i].bytes ? v->texts[i].bytes : "", v->texts[i].length};
    }
    return sf_model_classify(v->model, v->spans, count, v->labels, NULL, v->scratch, error);
}

safer_status sf_victim_vote(float *scores, int *label, int *exact, uint64_t *cost, sf_victim *v,
                            const uint32_t *choices, safer_error *error)
{
    safer_status status = SAFER_OK;
    void *without = NULL;
    const size_t removed = removed_slot(v, choices);
    set_rules(v, choices);
    /* The slots that count are those of the text with all its words: with one less, one more may
     * come into sight. */
    const size_t visible = removed == SIZE_MAX ? v->visible : v->slots.slot_count;
    const int random = sf_model_is_random(v->model) && !v->slots.groups; /* with groups it was not, at the beginning */
    const uint64_t all = random ? 0 : sf_enumerate_count(&v->sampler, visible, v->options.n),
                   draws = all ? all : v->options.n;
    *cost = draws;
    if (!scores) return SAFER_OK;
    const int whole = removed == SIZE_MAX || v->slots.split; /* a deleted token leaves no trace: nothing to prepare */
    if (v->prepared && !whole) SF_TRY(prepare_without(&without, v, removed, error));
    const void *prepared = whole ? v->prepared : without;
    const sf_stream stream = sf_stream_of(v->options.seed, v->slots.hash, SF_STAGE_ATTACK);
    sf_tally_clear(&v->tally);
    *exact = all > 0;
    for (uint64_t done = 0; done < draws;) {
        const size_t count = draws - done < v->options.batch ? (size_t)(draws - done) : v->options.batch;
        if (all)
            sf_enumerate_draws(v->draws, &v->sampler, visible, done, count);
        else
            sf_sampler_draw(v->draws, &v->sampler, stream, done, count);
        SF_TRY(ask_draws(v, prepared, choices, count, error));
        for (size_t i = 0; i < count; i++)
            (void)sf_tally_add(&v->tally, v->labels[i],
                               all ? sf_enumerate_weight(&v->sampler, visible, v->draws + i * v->sampler.width) : 1);
        done += count;
    }
    *label = winner(v, v->tally.votes);
    for (size_t c = 0; c < v->model->classes; c++)
        scores[c] = (float)((double)v->tally.votes[c] / (double)v->tally.total);
done:
    if (without) v->model->class->release(without);
    return status;
}

/* ------------------------------------------------------------ fresh draws */

/* A text on its own, as the deployed classifier has it before it. */
typedef struct deployed {
    sf_victim *victim;
    sf_sampler sampler;
    void *prepared;
    size_t visible;
    sf_stream stream;
} deployed;

/* Into the victim's check_slots. */
static safer_status read_again(sf_victim *v, const uint32_t *choices, safer_error *error)
{
    sf_buffer_clear(&v->check_text);
    if (sf_victim_render(&v->check_text, v, choices)) return sf_fail_memory(error);
    return sf_slots_read(&v->check_slots, v->lexicon, v->check_text.bytes ? v->check_text.bytes : "",
                         v->check_text.length, error);
}

safer_status sf_victim_folds(int *folds, sf_victim *v, const uint32_t *choices, safer_error *error)
{
    const safer_status status = read_again(v, choices, error);
    *folds = status == SAFER_OK && sf_slots_folded(&v->check_slots);
    return status;
}

static safer_status deploy(deployed *d, const uint32_t *choices, safer_error *error)
{
    sf_victim *v = d->victim;
    safer_status status;
    SF_TRY(read_again(v, choices, error));
    SF_TRY(sf_victim_draw(v, &v->check_slots, &d->sampler, error));
    if (sf_grow(&v->draws, &v->draw_capacity, v->options.batch * d->sampler.width + 1, sizeof *v->draws)) {
        status = sf_fail_memory(error);
        goto done;
    }
    d->visible = v->check_slots.slot_count;
    if (sf_victim_prepares(v)) {
        SF_TRY(v->model->class->prepare(v->model, v->lexicon, &v->check_slots, &d->prepared, error));
        if (v->model->class->visible && !sf_deletes(v->options.deletion))
            d->visible = v->model->class->visible(d->prepared);
    }
    d->stream = sf_stream_of(v->options.seed, v->check_slots.hash, SF_STAGE_RECHECK);
done:
    return status;
}

static safer_status ask_deployed(deployed *d, size_t count, safer_error *error)
{
    sf_victim *v = d->victim;
    v->checks += count;
    if (d->prepared) return sf_model_sample(v->model, d->prepared, v->draws, count, v->labels, v->scratch, error);
    for (size_t i = 0; i < count; i++) {
        sf_buffer_clear(&v->texts[i]);
        if (sf_slots_render(&v->texts[i], &v->check_slots, v->lexicon, v->draws + i * d->sampler.width))
            return sf_fail_memory(error);
        v->spans[i] = (sf_span){v->texts[i].bytes ? v->texts[i].bytes : "", v->texts[i].length};
    }
    return sf_model_classify(v->model, v->spans, count, v->labels, NULL, v->scratch, error);
}

/* Every draw, with its weight. */
static safer_status enumerate(sf_finding *out, deployed *d, uint64_t draws, safer_error *error)
{
    sf_victim *v = d->victim;
    sf_tally_clear(&v->tally);
    for (uint64_t first = 0; first < draws;) {
        const size_t count = draws - first < v->options.batch ? (size_t)(draws - first) : v->options.batch;
        sf_enumerate_draws(v->draws, &d->sampler, d->visible, first, count);
        safer_status status = ask_deployed(d, count, error);
        if (status != SAFER_OK) return status;
        for (size_t i = 0; i < count; i++)
            (void)sf_tally_add(&v->tally, v->labels[i],
                               sf_enumerate_weight(&d->sampler, d->visible, v->draws + i * d->sampler.width));
        first += count;
    }
    const int won = winner(v, v->tally.votes);
    *out = (sf_finding){.exact = 1, .draws = draws, .beaten = won >= 0 && won != v->target};
    out->p_value = out->beaten ? 0 : 1;
    return SAFER_OK;
}

/* Adds the votes of draws first .. end-1. */
static safer_status add_votes(deployed *d, uint64_t first, uint64_t end, safer_error *error)
{
    sf_victim *v = d->victim;
    while (first < end) {
        const size_t count = end - first < v->options.batch ? (size_t)(end - first) : v->options.batch;
        sf_sampler_draw(v->draws, &d->sampler, d->stream, first, count);
        safer_status status = ask_deployed(d, count, error);
        if (status != SAFER_OK) return status;
        for (size_t i = 0; i < count; i++)
            if (v->labels[i] >= 0) v->votes[v->labels[i]]++;
        first += count;
    }
    return SAFER_OK;
}

/* P[Bin(a+b, 1/2) >= b], rounded up. */
static double sign_p_value(uint64_t a, uint64_t b)
{
    const double tail = sf_log_binomial_tail(b, a + b, 0.5);
    return fmin(1, sf_exp(tail + sf_log_tail_error(tail)));
}

safer_status sf_victim_confirm(sf_finding *out, sf_victim *v, const uint32_t *choices, int rival, double level,
                               int looks, safer_error *error)
{
    safer_status status;
    deployed d = {.victim = v};
    uint64_t end = v->options.n, first = 0;
    *out = (sf_finding){.p_value = 1};
    SF_TRY(deploy(&d, choices, error));
    if (sf_slots_folded(&v->check_slots)) goto done; /* no folded text: no certificate speaks of it */
    const int random = sf_model_is_random(v->model) && !v->check_slots.groups;
    const uint64_t draws = random ? 0 : sf_enumerate_count(&d.sampler, d.visible, ENUMERATE);
    memset(v->votes, 0, v->model->classes * sizeof *v->votes);
    if (draws && draws <= end) SF_TRY(enumerate(out, &d, draws, error));
    for (int look = 0; look < looks && !out->exact; look++, end *= 4) {
        SF_TRY(add_votes(&d, first, end, error));
        first = end;
        const uint64_t a = v->votes[v->target], b = v->votes[rival];
        *out = (sf_finding){.draws = end, .p_value = sign_p_value(a, b)};
        out->beaten = out->p_value <= level / looks;
        /* Two standard deviations ahead: more draws would be wasted. Stopping can only cost the attack a success. */
        if (out->beaten || (a > b && (double)(a - b) > 2 * sqrt((double)(a + b)))) break;
        if (draws && draws <= 4 * end) SF_TRY(enumerate(out, &d, draws, error));
    }
done:
    if (d.prepared) v->model->class->release(d.prepared);
    sf_sampler_free(&d.sampler);
    return status;
}
