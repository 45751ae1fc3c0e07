/* Texts to pieces by either kind of tokenizer. */
#include "text/piecer.h"

#include "base/memory.h"
#include "text/unicode.h"

#include <string.h>

struct sf_piecer {
    sf_wordpiece *wordpiece; /* owned, as the other: one of them is there */
    sf_tokenizer *tokenizer;
    sf_places *places;  /* tokenizer: where texts may be cut; owned */
    uint32_t around[2]; /* wordpiece: what stands before and after a text */
};

void sf_piecer_free(sf_piecer *piecer)
{
    if (!piecer) return;
    sf_wordpiece_free(piecer->wordpiece);
    sf_tokenizer_free(piecer->tokenizer);
    sf_places_free(piecer->places);
    free(piecer);
}

safer_status sf_piecer_of_wordpiece(sf_piecer **out, sf_wordpiece *wordpiece, safer_error *error)
{
    sf_piecer *p = sf_calloc(1, sizeof *p);
    if (!p) {
        sf_wordpiece_free(wordpiece);
        return sf_fail_memory(error);
    }
    const sf_wordpiece_specials specials = sf_wordpiece_special(wordpiece);
    *p = (sf_piecer){.wordpiece = wordpiece, .around = {specials.cls, specials.sep}};
    *out = p;
    return SAFER_OK;
}

safer_status sf_piecer_of_tokenizer(sf_piecer **out, sf_tokenizer *tokenizer, safer_error *error)
{
    sf_piecer *p = sf_calloc(1, sizeof *p);
    sf_places *places = sf_places_new(tokenizer);
    if (!p || !places) {
        sf_tokenizer_free(tokenizer);
        sf_places_free(places);
        free(p);
        return sf_fail_memory(error);
    }
    *p = (sf_piecer){.tokenizer = tokenizer, .places = places};
    *out = p;
    return SAFER_OK;
}

safer_status sf_piecer_open(sf_piecer **out, const char *directory, const char *type, sf_digest_list *read,
                            safer_error *error)
{
    sf_wordpiece *wordpiece = NULL;
    sf_tokenizer *tokenizer = NULL;
    safer_error why = {0};
    const int plain = type && (strcmp(type, "bert") == 0 || strcmp(type, "distilbert") == 0);
    safer_status status = sf_wordpiece_open(&wordpiece, directory, read, &why);
    if (status == SAFER_OK) return sf_piecer_of_wordpiece(out, wordpiece, error);
    if (status == SAFER_INPUT) {
        status = sf_tokenizer_open(&tokenizer, directory, type, read, error);
        if (status == SAFER_OK) return sf_piecer_of_tokenizer(out, tokenizer, error);
        if (status != SAFER_INPUT || !plain) return status;
    }
    if (error) *error = why; /* of two refusals, what plain BERT's lacks, where a model should have that */
    return status;
}

const sf_wordpiece *sf_piecer_wordpiece(const sf_piecer *piecer) { return piecer->wordpiece; }
const sf_tokenizer *sf_piecer_tokenizer(const sf_piecer *piecer) { return piecer->tokenizer; }

size_t sf_piecer_size(const sf_piecer *piecer)
{
    return piecer->wordpiece ? sf_wordpiece_size(piecer->wordpiece) : sf_tokenizer_size(piecer->tokenizer);
}

sf_tokenizer_frame sf_piecer_frame(const sf_piecer *piecer)
{
    if (piecer->tokenizer) return sf_tokenizer_get_frame(piecer->tokenizer);
    return (sf_tokenizer_frame){&piecer->around[0], &piecer->around[1], 1, 1};
}

size_t sf_piecer_framed(const sf_piecer *piecer)
{
    const sf_tokenizer_frame frame = sf_piecer_frame(piecer);
    return frame.before_count + frame.after_count;
}

size_t sf_piecer_longest(const sf_piecer *piecer)
{
    return piecer->tokenizer ? sf_tokenizer_longest(piecer->tokenizer) : SIZE_MAX;
}

int sf_piecer_ending(const sf_piecer *piecer)
{
    return piecer->tokenizer ? sf_tokenizer_ending(piecer->tokenizer)
                             : sf_wordpiece_get_options(piecer->wordpiece)->ending;
}

void sf_piecer_scratch_free(sf_piecer_scratch *scratch)
{
    sf_wordpiece_scratch_free(&scratch->wordpiece);
    sf_tokenizer_scratch_free(scratch->tokenizer);
    *scratch = (sf_piecer_scratch){0};
}

int sf_piecer_encode_part(sf_ids *out, const sf_piecer *piecer, const char *text, size_t length, size_t limit,
                          int inside, sf_piecer_scratch *scratch)
{
    if (piecer->wordpiece) return sf_wordpiece_encode(out, piecer->wordpiece, text, length, limit, &scratch->wordpiece);
    if (!scratch->tokenizer && !(scratch->tokenizer = sf_tokenizer_scratch_new(piecer->tokenizer))) return -1;
    if (!inside) return sf_tokenizer_encode(out, piecer->tokenizer, text, length, limit, scratch->tokenizer);
    return sf_tokenizer_encode_part(out, piecer->tokenizer, text, length, limit, sf_places_skips(piecer->places),
                                    scratch->tokenizer);
}

size_t sf_window_add(uint32_t *ids, size_t count, const uint32_t *more, size_t more_count, sf_window window)
{
    const size_t room = window.most - count;
    if (more_count > room && !window.last) more_count = room;
    if (more_count > window.most) {
        more += more_count - window.most;
        more_count = window.most;
    }
    const size_t out = more_count > room ? more_count - room : 0; /* of the earlier ones */
    if (out) memmove(ids, ids + out, (count - out) * sizeof *ids);
    if (more_count) memcpy(ids + count - out, more, more_count * sizeof *ids);
    return count - out + more_count;
}

int sf_piecer_encode(sf_ids *out, const sf_piecer *piecer, const char *text, size_t length, sf_window window,
                     sf_piecer_scratch *scratch)
{
    out->count = 0;
    if (sf_piecer_encode_part(out, piecer, text, length, sf_window_reach(window), 0, scratch)) return -1;
    if (out->count > window.most) {
        memmove(out->ids, out->ids + out->count - window.most, window.most * sizeof *out->ids);
        out->count = window.most;
    }
    return 0;
}

/* ------------------------------------------------------------- drawn words */

uint32_t sf_piecer_least(const sf_piecer *piecer) { return piecer->wordpiece != NULL; }

int sf_piecer_minds_letters(const sf_piecer *piecer) { return piecer->tokenizer != NULL; }

static void note_cut(sf_gap *gap, size_t at)
{
    if (gap->first == SIZE_MAX) gap->first = at;
    gap->last = at;
}

/* A place beside a character that cuts, unless a special token could lie across it in some draw ("[" before a word that
 * may become "SEP"): a word's own bytes are not known. */
static void note_beside(sf_gap *gap, const sf_wordpiece *w, const char *text, size_t length, size_t at)
{
    if (at > 0 && at < length) {
        const int before = at > gap->begin ? (unsigned char)text[at - 1] : -1,
                  after = at < gap->end ? (unsigned char)text[at] : -1;
        if (sf_wordpiece_joins(w, before, after)) return;
    }
    note_cut(gap, at);
}

static void find_in_wordpiece(sf_gap *gap, const sf_wordpiece *w, const char *text, size_t length)
{
    for (size_t at = gap->begin; at < gap->end;) {
        uint32_t code;
        const size_t step = sf_utf8_decode(text + at, text + gap->end, &code);
        if (step && sf_wordpiece_cuts(w, code)) {
            note_beside(gap, w, text, length, at);
            note_beside(gap, w, text, length, at + step);
        }
        at += step ? step : 1;
    }
}

static void find_in_tokenizer(sf_gap *gap, const sf_places *places, const char *text)
{
    const size_t length = gap->end - gap->begin;
    for (size_t at = gap->begin == 0; at < length; at++)
        if (sf_places_cut(places, text + gap->begin, length, at, gap->before, gap->after))
            note_cut(gap, gap->begin + at);
}

void sf_piecer_find_cuts(sf_gap *gap, const sf_piecer *piecer, const char *text, size_t length)
{
    gap->first = gap->last = SIZE_MAX;
    if (gap->begin == 0) note_cut(gap, 0);
    if (piecer->wordpiece)
        find_in_wordpiece(gap, piecer->wordpiece, text, length);
    else
        find_in_tokenizer(gap, piecer->places, text);
    if (gap->end == length) note_cut(gap, length);
}

/* White space always cuts; only a special token may lie across. */
sf_edges sf_piecer_edges(const sf_piecer *piecer, const char *token, size_t length)
{
    if (!piecer->wordpiece) return sf_places_edges(piecer->places, token, length);
    return (sf_edges){1, !sf_wordpiece_joins(piecer->wordpiece, (unsigned char)token[length - 1], ' ')};
}

sf_edges sf_piecer_word_edges(const sf_piecer *piecer, sf_letters begins, sf_letters ends)
{
    if (!piecer->wordpiece) return sf_places_word_edges(piecer->places, begins, ends);
    return (sf_edges){1, !sf_wordpiece_joins(piecer->wordpiece, -1, ' ')};
}
