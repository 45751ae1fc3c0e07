/* Putting tokens in, taking them out, replacing them by any word.
 *
 * Greedy: tokens are ranked by what the target loses when each is out. Then, edit by edit, a few tokens and places
 * are tried with the words that speak most against the target (attack/wordlist.h), in one batch; a wrong answer ends
 * it, and otherwise the edit with the lowest margin stays, unless the margin was lower without it. Equal ones count as
 * progress: where all draws vote for the target one edit alone may not show. Tokens that led nowhere make room for
 * the next ones of the ranking. */
#include "attack/rewrite.h"

#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    TESTS = 20,       /* of a text, at most; what is found later does not count */
    TAKEN_OUT = 32,   /* tokens that a step tries to take out, */
    REPLACED = 4,     /* to replace, */
    PLACES = 5,       /* and places where it tries to put a word in */
    RANKED_PLACES = 2 /* of them, in front of tokens that matter */
};

unsigned sf_rewrite_operations(safer_attack_method method)
{
    switch (method) {
    case SAFER_ATTACK_INSERT: return SF_PUT_IN;
    case SAFER_ATTACK_DELETE: return SF_TAKE_OUT;
    default: return SF_REPLACE;
    }
}

void sf_rewrite_free(sf_rewrite *r)
{
    sf_slots_free(&r->slots);
    sf_buffer_free(&r->text);
    sf_poll_free(&r->poll);
    for (size_t i = 0; i < r->text_count; i++) sf_buffer_free(&r->texts[i]);
    free(r->best.list);
    free(r->now.list);
    free(r->trial.list);
    free(r->tried);
    free(r->answers);
    free(r->texts);
    free(r->spans);
    free(r->order);
    free(r->touched);
    free(r->own);
    free(r->word_of);
    free(r->before);
    free(r->after);
    *r = (sf_rewrite){0};
}

/* --------------------------------------------------------------------- edits */

static int copy_edits(sf_edits *to, const sf_edits *from)
{
    if (sf_grow(&to->list, &to->capacity, from->count + 1, sizeof *to->list)) return -1;
    if (from->count) memcpy(to->list, from->list, from->count * sizeof *to->list);
    to->count = from->count;
    return 0;
}

/* In order: by token, what is put in first, and of that what came first. */
static int add_edit(sf_edits *edits, sf_edit edit)
{
    if (sf_grow(&edits->list, &edits->capacity, edits->count + 1, sizeof *edits->list)) return -1;
    size_t at = edits->count++;
    for (; at > 0; at--) {
        const sf_edit *before = &edits->list[at - 1];
        if (before->token < edit.token || (before->token == edit.token && before->operation == SF_PUT_IN)) break;
        edits->list[at] = *before;
    }
    edits->list[at] = edit;
    return 0;
}

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Whether a space must follow so that what stands next is a token of its own, and reads well. */
static int needs_space(const sf_slots *s, size_t at)
{
    return at < s->length && !is_space(s->text[at]) && !(s->text[at] && strchr(".,;:!?)", s->text[at]));
}

int sf_rewrite_word(sf_buffer *out, const sf_rewrite *r, const sf_edit *edit)
{
    const sf_slots *s = &r->slots;
    const sf_span word = sf_wordlist_word(r->words, edit->word);
    const uint32_t replaced = edit->operation == SF_REPLACE ? r->word_of[edit->token] : SF_NONE;
    return sf_word_render(out, word.bytes, word.length, replaced == SF_NONE ? SF_LOWER : s->words[replaced].pattern);
}

int sf_rewrite_write(sf_buffer *out, const sf_rewrite *r, const sf_edits *edits)
{
    const sf_slots *s = &r->slots;
    const size_t first = out->length;
    size_t at = 0;
    for (size_t i = 0; i < edits->count; i++) {
        const sf_edit *e = &edits->list[i];
        const size_t begin = e->token < s->token_count ? s->tokens[e->token].begin : s->length;
        if (begin > at && sf_buffer_add(out, s->text + at, begin - at)) return -1;
        at = e->operation == SF_PUT_IN ? begin : s->tokens[e->token].end;
        const int open = out->length > first && !is_space(out->bytes[out->length - 1]);
        if (e->operation == SF_TAKE_OUT) {
            if (!open && at < s->length && is_space(s->text[at])) at++;         /* not two spaces, */
            if (!open && at == s->length && out->length > first) out->length--; /* and none at the end */
            if (open && needs_space(s, at) && sf_buffer_add_byte(out, ' ')) return -1;
            continue;
        }
        if ((open && sf_buffer_add_byte(out, ' ')) || sf_rewrite_word(out, r, e)) return -1;
        if ((needs_space(s, at) || (i + 1 < edits->count && e->token == edits->list[i + 1].token)) &&
            sf_buffer_add_byte(out, ' '))
            return -1;
    }
    return sf_buffer_add(out, s->text + at, s->length - at);
}

/* --------------------------------------------------------------------- asking */

static int try_edit(sf_rewrite *r, sf_operation operation, size_t token, uint32_t word)
{
    if (sf_grow(&r->tried, &r->tried_capacity, r->count + 1, sizeof *r->tried)) return -1;
    r->tried[r->count++] = (sf_edit){operation, (uint32_t)token, word};
    return 0;
}

/* r->texts = the text as it is now with each of the tried edits. */
static int write_texts(sf_rewrite *r)
{
    if (sf_grow(&r->texts, &r->text_capacity, r->count + 1, sizeof *r->texts) ||
        sf_grow(&r->spans, &r->span_capacity, r->count + 1, sizeof *r->spans) ||
        sf_grow(&r->answers, &r->answer_capacity, r->count + 1, sizeof *r->answers))
        return -1;
    for (; r->text_count < r->count; r->text_count++) r->texts[r->text_count] = (sf_buffer){0};
    for (size_t i = 0; i < r->count; i++) {
        sf_buffer_clear(&r->texts[i]);
        if (copy_edits(&r->trial, &r->now) || add_edit(&r->trial, r->tried[i]) ||
            sf_rewrite_write(&r->texts[i], r, &r->trial))
            return -1;
        r->spans[i] = (sf_span){r->texts[i].bytes ? r->texts[i].bytes : "", r->texts[i].length};
    }
    return 0;
}

/* The answers about all that is tried; r->count is then how many came. */
static safer_status ask(sf_rewrite *r, safer_error *error)
{
    size_t answered = 0;
    if (write_texts(r)) return sf_fail_memory(error);
    safer_status status = sf_poll_ask(r->answers, &answered, &r->poll, r->spans, r->count, r->target, error);
    r->stopped |= r->poll.exhausted;
    r->count = answered;
    return status;
}

/* The victim reads the text with some edits. */
static safer_status read_text(sf_rewrite *r, const char *text, size_t length, safer_error *error)
{
    sf_victim *v = r->victim;
    safer_status status = sf_victim_read(v, text, length, error);
    if (status != SAFER_OK) return status;
    if (sf_grow(&r->own, &r->own_capacity, v->slots.slot_count + 1, sizeof *r->own)) return sf_fail_memory(error);
    memset(r->own, 0, (v->slots.slot_count + 1) * sizeof *r->own);
    v->target = r->target;
    return SAFER_OK;
}

/* Whether the target really does not win with these edits. Then it is won. */
static safer_status test(sf_rewrite *r, const sf_edits *edits, const sf_answer *answer, safer_error *error)
{
    safer_status status = SAFER_OK;
    int covered = 1;
    sf_buffer_clear(&r->text);
    if (sf_rewrite_write(&r->text, r, edits)) return sf_fail_memory(error);
    const char *text = r->text.bytes ? r->text.bytes : "";
    if (r->reach) SF_TRY(sf_reach_covers(&covered, r->reach, text, r->text.length, error));
    if (!covered || (r->victim->options.smoothed && r->tests == TESTS)) return SAFER_OK;
    if (!r->victim->options.smoothed) {
        r->finding = (sf_finding){.beaten = answer->label >= 0 && answer->label != r->target, .exact = 1};
    } else {
        const double k = ++r->tests;
        SF_TRY(read_text(r, text, r->text.length, error));
        SF_TRY(sf_victim_confirm(&r->finding, r->victim, r->own, answer->rival, r->level / (k * (k + 1)), r->looks,
                                 error));
        r->checks += r->victim->checks;
    }
    r->won = r->finding.beaten;
    if (!r->won) goto done;
    r->best_answer = *answer;
    r->has_best = 1;
    if (edits != &r->best && copy_edits(&r->best, edits)) status = sf_fail_memory(error);
done:
    return status;
}

safer_status sf_rewrite_test(sf_rewrite *r, safer_error *error)
{
    return r->won || !r->has_best ? SAFER_OK : test(r, &r->best, &r->best_answer, error);
}

/* Of the answers: tests the wrong one with the lowest margin, and keeps track of the best. *lowest: which one it is. */
static safer_status harvest(sf_rewrite *r, size_t *lowest, safer_error *error)
{
    size_t wrong = SIZE_MAX;
    *lowest = SIZE_MAX;
    for (size_t i = 0; i < r->count; i++) {
        const sf_answer *a = &r->answers[i];
        if (*lowest == SIZE_MAX || a->margin < r->answers[*lowest].margin) *lowest = i;
        if (a->label < 0 || a->label == r->target) continue;
        if (wrong == SIZE_MAX || a->margin < r->answers[wrong].margin) wrong = i;
    }
    const size_t shown = wrong != SIZE_MAX ? wrong : *lowest;
    if (shown == SIZE_MAX) return SAFER_OK;
    if (copy_edits(&r->trial, &r->now) || add_edit(&r->trial, r->tried[shown])) return sf_fail_memory(error);
    if (!r->has_best || r->answers[shown].margin < r->best_answer.margin) {
        if (copy_edits(&r->best, &r->trial)) return sf_fail_memory(error);
        r->best_answer = r->answers[shown];
        r->has_best = 1;
    }
    if (wrong == SIZE_MAX) return SAFER_OK;
    r->flips++;
    return test(r, &r->trial, &r->answers[wrong], error);
}

/* --------------------------------------------------------------------- search */

/* What the target loses without each token. What may be taken out alone may be enough. */
static safer_status rank_tokens(sf_rewrite *r, safer_error *error)
{
    const size_t tokens = r->slots.token_count;
    size_t lowest;
    r->count = 0;
    for (size_t t = 0; t < tokens; t++)
        if (try_edit(r, SF_TAKE_OUT, t, 0)) return sf_fail_memory(error);
    safer_status status = ask(r, error);
    if (status != SAFER_OK || r->count < tokens) return status;
    for (size_t t = 0; t < tokens; t++) r->order[t] = (sf_ranked){-r->answers[t].margin, t};
    if (tokens) sf_rank(r->order, tokens);
    return r->operations & SF_TAKE_OUT ? harvest(r, &lowest, error) : SAFER_OK;
}

/* Whether the token is a word that this one may replace, after the replacements that are there already. */
static int may_replace(sf_rewrite *r, size_t token, uint32_t word)
{
    const sf_likeness *likeness = r->victim->options.likeness;
    const uint32_t place = r->word_of[token];
    if (!likeness) return 1;
    if (place == SF_NONE || r->before[place] == SF_NONE || r->before[place] == word) return 0;
    if (!sf_likeness_words(likeness, r->before[place], word)) return 0;
    memcpy(r->after, r->before, r->slots.word_count * sizeof *r->after);
    for (size_t i = 0; i < r->now.count; i++) r->after[r->word_of[r->now.list[i].token]] = r->now.list[i].word;
    r->after[place] = word;
    return sf_likeness_texts(likeness, r->before, r->after, r->slots.word_count);
}

/* The first words against the target, in one place. -1 without memory, or how many there are. */
static int try_words(sf_rewrite *r, sf_operation operation, size_t token)
{
    const sf_wordlist *w = r->words;
    size_t tried = 0;
    for (size_t i = 0; i < w->asked && tried < w->tried; i++) {
        const uint32_t word = w->ranked[(size_t)r->target * w->asked + i];
        if (operation == SF_REPLACE && !may_replace(r, token, word)) continue;
        if (try_edit(r, operation, token, word)) return -1;
        tried++;
    }
    return (int)tried;
}

/* Places to put a word in: evenly, both ends among them, and, where tokens are ranked, in front of the first. */
static int try_places(sf_rewrite *r)
{
    const size_t tokens = r->slots.token_count;
    size_t places[PLACES + RANKED_PLACES], count = 0;
    for (size_t i = 0; i < PLACES; i++) places[count++] = tokens * i / (PLACES - 1);
    for (size_t i = 0; (r->operations & ~(unsigned)SF_PUT_IN) && i < RANKED_PLACES && i < tokens; i++)
        places[count++] = r->order[i].number;
    for (size_t i = 0; i < count; i++) {
        int again = 0;
        for (size_t k = 0; k < i; k++) again |= places[k] == places[i];
        if (!again && try_words(r, SF_PUT_IN, places[i]) < 0) return -1;
    }
    return 0;
}

/* All that the next step tries; -1 without memory. */
static int propose(sf_rewrite *r)
{
    size_t out = 0, replaced = 0;
    r->count = 0;
    for (size_t i = 0; (r->operations & ~(unsigned)SF_PUT_IN) && i < r->slots.token_count; i++) {
        const size_t t = r->order[i].number;
        if (r->touched[t]) continue;
        if ((r->operations & SF_TAKE_OUT) && out++ < TAKEN_OUT && try_edit(r, SF_TAKE_OUT, t, 0)) return -1;
        if (!(r->operations & SF_REPLACE) || replaced == REPLACED) continue;
        const int words = try_words(r, SF_REPLACE, t);
        if (words < 0) return -1;
        replaced += words > 0;
        if (!words) r->touched[t] = 1; /* nothing may stand there */
    }
    return r->operations & SF_PUT_IN ? try_places(r) : 0;
}

/* Whether a step that made nothing better leaves others to try. */
static int pass_over(sf_rewrite *r)
{
    int others = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->tried[i].operation != SF_PUT_IN) {
            r->touched[r->tried[i].token] = 1;
            others = 1;
        }
    return others;
}

/* One edit more, until there are as many as may be. */
static safer_status descend(sf_rewrite *r, safer_error *error)
{
    const size_t tokens = r->slots.token_count, most = tokens ? tokens : 1;
    const size_t radius = r->radius < most ? r->radius : most;
    while (r->now.count < radius && !r->won && !r->stopped) {
        size_t lowest;
        if (propose(r)) return sf_fail_memory(error);
        if (!r->count) return SAFER_OK;
        safer_status status = ask(r, error);
        if (status == SAFER_OK) status = harvest(r, &lowest, error);
        if (status != SAFER_OK || r->won || lowest == SIZE_MAX) return status;
        if (r->answers[lowest].margin > r->margin) {
            if (!pass_over(r)) return SAFER_OK;
            continue;
        }
        const sf_edit edit = r->tried[lowest];
        r->margin = r->answers[lowest].margin;
        if (edit.operation != SF_PUT_IN) r->touched[edit.token] = 1;
        if (add_edit(&r->now, edit)) return sf_fail_memory(error);
    }
    return SAFER_OK;
}

/* What is answered for the text as it is: by the draws that all methods share, then by those of the poll. */
static safer_status ask_start(sf_rewrite *r, const char *text, size_t length, safer_error *error)
{
    sf_victim *v = r->victim;
    safer_status status;
    size_t answered = 0;
    sf_answer same;
    const sf_span whole = {text, length};
    SF_TRY(read_text(r, text, length, error));
    SF_TRY(sf_victim_ask(&r->start, &answered, v, r->own, 1, error));
    r->stopped = !answered;
    r->queries = v->queries;
    if (r->stopped) goto done;
    if (r->target < 0 && r->start.label >= 0) {
        r->target = v->target = r->start.label;
        r->start = sf_victim_start(v);
    }
    r->margin = r->start.margin;
    sf_poll_begin(&r->poll, v, r->max_queries ? r->max_queries - r->queries : 0);
    r->poll.exhausted = r->max_queries && r->queries >= r->max_queries;
    if (r->target < 0 || r->poll.exhausted || !v->options.smoothed) goto done; /* the model has been asked */
    SF_TRY(sf_poll_ask(&same, &answered, &r->poll, &whole, 1, r->target, error));
    if (answered) r->margin = same.margin;
done:
    r->stopped |= status == SAFER_OK && r->poll.exhausted;
    return status;
}

/* Which words of the text its tokens are, and which of the lexicon these are. */
static int place_words(sf_rewrite *r)
{
    const sf_slots *s = &r->slots;
    if (sf_grow(&r->word_of, &r->place_capacity, s->token_count + 1, sizeof *r->word_of) ||
        sf_grow(&r->before, &r->before_capacity, s->word_count + 1, sizeof *r->before) ||
        sf_grow(&r->after, &r->after_capacity, s->word_count + 1, sizeof *r->after))
        return -1;
    for (size_t t = 0, i = 0; t < s->token_count; t++) {
        while (i < s->word_count && s->words[i].begin < s->tokens[t].begin) i++;
        const int is_word = i < s->word_count && s->words[i].begin == s->tokens[t].begin;
        r->word_of[t] = is_word ? (uint32_t)i : SF_NONE;
    }
    for (size_t i = 0; i < s->word_count; i++) r->before[i] = s->words[i].word;
    return 0;
}

/* The text as it was given, and room for its tokens. */
static safer_status begin(sf_rewrite *r, const char *text, size_t length, safer_error *error)
{
    safer_status status;
    r->start = r->best_answer = (sf_answer){.label = -1, .rival = -1};
    r->won = r->stopped = r->has_best = 0;
    r->flips = r->best.count = r->now.count = 0;
    r->queries = r->checks = 0;
    r->tests = 0;
    r->poll.queries = 0;
    r->poll.exhausted = 0;
    r->finding = (sf_finding){.p_value = 1};
    SF_TRY(sf_slots_read(&r->slots, r->victim->lexicon, text, length, error));
    SF_TRY(sf_slots_split(&r->slots, SF_SPLIT, error)); /* tokens alone are wanted */
    if (sf_grow(&r->order, &r->order_capacity, r->slots.token_count + 1, sizeof *r->order) ||
        sf_grow(&r->touched, &r->touched_capacity, r->slots.token_count + 1, sizeof *r->touched) || place_words(r)) {
        status = sf_fail_memory(error);
        goto done;
    }
    memset(r->touched, 0, r->slots.token_count + 1);
    SF_TRY(ask_start(r, text, length, error));
done:
    return status;
}

safer_status sf_rewrite_attack(sf_rewrite *r, const char *text, size_t length, int target, safer_error *error)
{
    safer_status status;
    r->target = target;
    SF_TRY(begin(r, text, length, error));
    if (r->stopped || r->target < 0) goto done;
    if (!r->reach && r->start.label != r->target) goto done; /* nothing to attack */
    if (r->operations & ~(unsigned)SF_PUT_IN) SF_TRY(rank_tokens(r, error));
    if (!r->won && !r->stopped) SF_TRY(descend(r, error));
done:
    r->queries += r->poll.queries;
    r->poll.queries = 0;
    return status;
}
