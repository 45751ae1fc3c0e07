/* What the classifier says of whole texts. */
#include "attack/poll.h"

#include "base/hash.h"
#include "base/memory.h"
#include "draw/groups.h"

#include <math.h>
#include <string.h>

void sf_poll_free(sf_poll *p)
{
    sf_hashtable_free(&p->asked);
    sf_hashtable_free(&p->lots);
    sf_slots_free(&p->slots);
    sf_sampler_free(&p->sampler);
    sf_folder_free(&p->folder);
    sf_buffer_free(&p->text);
    free(p->hashes);
    free(p->labels);
    free(p->scores);
    free(p->ballots);
    free(p->lot_hashes);
    free(p->lot_bits);
    free(p->draw);
    free(p->tokens);
    free(p->token_lots);
    *p = (sf_poll){0};
}

void sf_poll_begin(sf_poll *p, sf_victim *v, uint64_t max_queries)
{
    p->victim = v;
    p->max_queries = max_queries;
    p->queries = 0;
    p->exhausted = 0;
    p->count = p->lot_count = p->waiting = 0;
    p->stream = sf_stream_of(v->options.seed, v->slots.hash, SF_STAGE_ATTACK);
    sf_hashtable_clear(&p->asked);
    sf_hashtable_clear(&p->lots);
}

static uint32_t find(const sf_hashtable *table, const uint64_t *hashes, uint64_t hash)
{
    sf_hashtable_walk walk = sf_hashtable_find(table, sf_hashtable_tag(hash));
    uint32_t i;
    while ((i = sf_hashtable_next(table, &walk)) != SF_NONE)
        if (hashes[i] == hash) break;
    return i;
}

/* ------------------------------------------------------------ texts to ask */

/* Asks about the texts that wait. */
static safer_status flush(sf_poll *p, safer_error *error)
{
    sf_victim *v = p->victim;
    const size_t classes = v->model->classes, count = p->waiting;
    float *scores = v->options.smoothed ? NULL : v->scores;
    if (!count) return SAFER_OK;
    if (scores) memset(scores, 0, count * classes * sizeof *scores);
    safer_status status = sf_model_classify(v->model, v->spans, count, v->labels, scores, v->scratch, error);
    if (status != SAFER_OK) return status;
    for (size_t i = 0; i < count; i++) {
        p->labels[v->waiting[i]] = v->labels[i];
        for (size_t c = 0; scores && c < classes; c++) { /* logits that overflow leave no probability */
            const float score = scores[i * classes + c];
            p->scores[v->waiting[i] * classes + c] = isfinite(score) ? score : 0;
        }
    }
    p->waiting = 0;
    return SAFER_OK;
}

/* *number: of a text that was asked about, or is to be. */
static safer_status ballot(uint32_t *number, sf_poll *p, const char *bytes, size_t length, safer_error *error)
{
    sf_victim *v = p->victim;
    const uint64_t hash = sf_hash(bytes, length, 0);
    const int known = !sf_model_is_random(v->model);
    if (known && (*number = find(&p->asked, p->hashes, hash)) != SF_NONE) return SAFER_OK;
    *number = (uint32_t)p->count;
    if (sf_grow(&p->hashes, &p->hash_capacity, p->count + 1, sizeof *p->hashes) ||
        sf_grow(&p->labels, &p->label_capacity, p->count + 1, sizeof *p->labels) ||
        (!v->options.smoothed &&
         sf_grow(&p->scores, &p->score_capacity, (p->count + 1) * v->model->classes, sizeof *p->scores)) ||
        (known && sf_hashtable_add(&p->asked, sf_hashtable_tag(hash), *number)))
        return sf_fail_memory(error);
    p->hashes[p->count++] = hash;
    sf_buffer *text = &v->texts[p->waiting];
    sf_buffer_clear(text);
    if (sf_buffer_add(text, bytes, length)) return sf_fail_memory(error);
    v->spans[p->waiting] = (sf_span){text->bytes ? text->bytes : "", text->length};
    v->waiting[p->waiting++] = *number;
    p->queries++;
    return p->waiting == v->options.batch ? flush(p, error) : SAFER_OK;
}

/* -------------------------------------------------------------------- draws */

/* The hashes of what is kept or drawn, each with the number of equal ones before it. */
static int hash_tokens(sf_poll *p)
{
    const sf_slots *s = &p->slots;
    const size_t count = s->deletion ? s->token_count : s->slot_count;
    if (sf_grow(&p->tokens, &p->token_capacity, 2 * count + 1, sizeof *p->tokens) ||
        sf_grow(&p->token_lots, &p->token_lot_capacity, count + 1, sizeof *p->token_lots))
        return -1;
    uint64_t *plain = p->tokens + count;
    for (size_t t = 0; t < count; t++) {
        const sf_text_word *w = s->deletion ? NULL : &s->words[s->slots[t]];
        const size_t begin = w ? w->begin : s->tokens[t].begin, end = w ? w->end : s->tokens[t].end;
        uint64_t before = 0;
        plain[t] = sf_hash(s->text + begin, end - begin, 0);
        for (size_t k = 0; k < t; k++) before += plain[k] == plain[t];
        p->tokens[t] = sf_hash(&before, sizeof before, plain[t]);
    }
    return 0;
}

/* Which draws keep a token: a number, or SF_NONE without memory. The random numbers do not depend on the chance. */
static uint32_t lot_of(sf_poll *p, uint64_t token)
{
    const uint64_t n = p->victim->options.n, words = (n + 63) / 64, hash = token ^ (uint64_t)p->slots.deletion << 32;
    const uint32_t known = find(&p->lots, p->lot_hashes, hash);
    if (known != SF_NONE) return known;
    if (sf_grow(&p->lot_hashes, &p->lot_hash_capacity, p->lot_count + 1, sizeof *p->lot_hashes) ||
        sf_grow(&p->lot_bits, &p->lot_bit_capacity, (p->lot_count + 1) * words, sizeof *p->lot_bits) ||
        sf_hashtable_add(&p->lots, sf_hashtable_tag(hash), (uint32_t)p->lot_count))
        return SF_NONE;
    uint64_t *bits = p->lot_bits + p->lot_count * words;
    memset(bits, 0, words * sizeof *bits);
    for (uint64_t i = 0; i < n; i += 4) {
        const uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)token, (uint32_t)(token >> 32), UINT32_MAX};
        uint32_t block[4];
        sf_philox(block, counter, p->stream.key);
        for (uint64_t k = 0; k < 4 && i + k < n; k++)
            bits[(i + k) / 64] |= (uint64_t)(block[k] >= p->slots.deletion) << (i + k) % 64;
    }
    p->lot_hashes[p->lot_count] = hash;
    return (uint32_t)p->lot_count++;
}

/* p->draw = draw i of the text that was read. */
static void draw(sf_poll *p, uint64_t i)
{
    const sf_slots *s = &p->slots;
    const uint64_t words = (p->victim->options.n + 63) / 64;
    const size_t count = s->deletion ? s->token_count : s->slot_count;
    memset(p->draw, 0, p->sampler.width * sizeof *p->draw);
    for (size_t t = 0; t < count; t++) {
        const uint32_t slot = s->deletion ? s->tokens[t].slot : (uint32_t)t;
        if (s->deletion) {
            if (!(p->lot_bits[p->token_lots[t] * words + i / 64] >> i % 64 & 1)) continue;
            p->draw[s->slot_count + t / 32] |= 1u << t % 32;
            if (slot == SF_NONE) continue;
        }
        const sf_draw_rule *rule = &p->sampler.rules[slot];
        const uint64_t sample = i ^ (p->tokens[t] & ~(uint64_t)UINT32_MAX); /* n is below 2^32 */
        p->draw[slot] = sf_draw_item(rule, sf_draw_below(p->stream, sample, (uint32_t)p->tokens[t], rule->total));
    }
}

/* The draws of a text, to be asked. */
static safer_status cast(uint32_t *ballots, sf_poll *p, const sf_span *text, safer_error *error)
{
    sf_victim *v = p->victim;
    safer_status status;
    SF_TRY(sf_slots_read(&p->slots, v->lexicon, text->bytes, text->length, error));
    SF_TRY(sf_victim_draw(v, &p->slots, &p->sampler, error));
    if (hash_tokens(p) || sf_grow(&p->draw, &p->draw_capacity, p->sampler.width + 1, sizeof *p->draw)) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t t = 0; p->slots.deletion && t < p->sampler.token_count; t++)
        if ((p->token_lots[t] = lot_of(p, p->tokens[t])) == SF_NONE) return sf_fail_memory(error);
    for (uint64_t i = 0; i < v->options.n; i++) {
        if (p->slots.groups)
            sf_groups_draw(p->draw, &p->sampler, (uint32_t)i);
        else
            draw(p, i);
        sf_buffer_clear(&p->text);
        if (sf_slots_render(&p->text, &p->slots, v->lexicon, p->draw)) return sf_fail_memory(error);
        SF_TRY(ballot(&ballots[i], p, p->text.bytes ? p->text.bytes : "", p->text.length, error));
    }
done:
    return status;
}

/* --------------------------------------------------------------------- asking */

/* A text of the model itself: what the lexicon folds it to. */
static safer_status ask_model(uint32_t *number, sf_poll *p, const sf_span *text, safer_error *error)
{
    const sf_fold *fold = sf_lexicon_fold(p->victim->lexicon);
    if (!fold) return ballot(number, p, text->bytes, text->length, error);
    if (sf_folder_apply(&p->folder, fold, text->bytes, text->length)) return sf_fail_memory(error);
    return ballot(number, p, p->folder.text.bytes, p->folder.text.length, error);
}

/* Of equal votes the first class, or, where ties lose, not the target. */
static sf_answer count_votes(sf_poll *p, const uint32_t *ballots, int target)
{
    sf_victim *v = p->victim;
    const size_t classes = v->model->classes;
    float *shares = v->scores;
    int best = 0;
    memset(v->votes, 0, classes * sizeof *v->votes);
    for (uint64_t i = 0; i < v->options.n; i++)
        if (p->labels[ballots[i]] >= 0) v->votes[p->labels[ballots[i]]]++;
    for (int c = 0; c < (int)classes; c++) {
        shares[c] = (float)((double)v->votes[c] / (double)v->options.n);
        if (v->votes[c] > v->votes[best] || (v->votes[c] == v->votes[best] && v->options.ties_lose && best == target))
            best = c;
    }
    sf_answer answer = sf_victim_answer(v->votes[best] ? best : SF_NO_LABEL, shares, classes, target);
    answer.exact = v->options.deletion.groups > 0;
    return answer;
}

safer_status sf_poll_ask(sf_answer *answers, size_t *answered, sf_poll *p, const sf_span *texts, size_t count,
                         int target, safer_error *error)
{
    sf_victim *v = p->victim;
    safer_status status = SAFER_OK;
    const size_t draws = v->options.smoothed ? (size_t)v->options.n : 1;
    *answered = 0;
    if (sf_grow(&p->ballots, &p->ballot_capacity, count * draws + 1, sizeof *p->ballots)) return sf_fail_memory(error);
    for (size_t i = 0; i < count && !p->exhausted; i++) {
        uint32_t *ballots = p->ballots + i * draws;
        p->exhausted = p->max_queries && p->queries + draws > p->max_queries;
        if (p->exhausted) break;
        SF_TRY((v->options.smoothed ? cast : ask_model)(ballots, p, &texts[i], error));
        *answered = i + 1;
    }
    SF_TRY(flush(p, error));
    for (size_t i = 0; i < *answered; i++) {
        const uint32_t *ballots = p->ballots + i * draws;
        answers[i] = v->options.smoothed
                         ? count_votes(p, ballots, target)
                         : sf_victim_answer(p->labels[*ballots], p->scores + *ballots * v->model->classes,
                                            v->model->classes, target);
    }
done:
    return status;
}
