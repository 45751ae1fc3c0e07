/* A text as the certificate sees it. */
#include "draw/slots.h"

#include "base/hash.h"
#include "base/memory.h"
#include "text/unicode.h"

/* Does the lexicon let anything happen to this word? */
static int is_slot(const safer_lexicon *l, uint32_t word)
{
    uint32_t row = l->kernel.row_of[word];
    uint64_t first = l->kernel.offsets[row];
    return l->synonym_offsets[word + 1] > l->synonym_offsets[word] || l->kernel.offsets[row + 1] - first != 1 ||
           l->kernel.ids[first] != word;
}

safer_status sf_slots_read(sf_slots *slots, const safer_lexicon *lexicon, const char *text, size_t length,
                           safer_error *error)
{
    sf_word word;
    int more;
    slots->given = (sf_span){text, length};
    if (length <= INT32_MAX && lexicon && lexicon->folds) {
        if (sf_folder_apply(&slots->folder, &lexicon->phi.fold, text, length)) return sf_fail_memory(error);
        text = slots->folder.text.bytes;
        length = slots->folder.text.length;
    }
    if (length > INT32_MAX) return sf_fail(error, SAFER_INPUT, "a text of %zu bytes is too long", length);
    slots->text = text;
    slots->length = length;
    slots->hash = sf_hash(text, length, 0);
    slots->word_count = slots->slot_count = slots->token_count = 0;
    slots->split = 0;
    slots->deletion = 0;
    slots->groups = 0;
    sf_buffer_clear(&slots->keys);
    sf_word_reader_start(&slots->reader, text, length);
    while ((more = sf_word_reader_next(&slots->reader, &word)) > 0) {
        sf_text_word entry = {.begin = (uint32_t)word.begin,
                              .end = (uint32_t)word.end,
                              .key = (uint32_t)slots->keys.length,
                              .key_length = (uint32_t)word.key_length,
                              .slot = SF_NONE,
                              .pattern = word.pattern};
        entry.word = lexicon ? sf_words_view_find(&lexicon->words, word.key, word.key_length) : SF_NONE;
        if (sf_grow(&slots->words, &slots->word_capacity, slots->word_count + 1, sizeof *slots->words) ||
            sf_grow(&slots->slots, &slots->slot_capacity, slots->slot_count + 1, sizeof *slots->slots) ||
            sf_buffer_add(&slots->keys, word.key, word.key_length + 1))
            return sf_fail_memory(error);
        if (entry.word != SF_NONE && is_slot(lexicon, entry.word)) {
            entry.slot = (uint32_t)slots->slot_count;
            slots->slots[slots->slot_count++] = (uint32_t)slots->word_count;
        }
        slots->words[slots->word_count++] = entry;
    }
    return more < 0 ? sf_fail_memory(error) : SAFER_OK;
}

void sf_slots_free(sf_slots *slots)
{
    free(slots->words);
    free(slots->slots);
    free(slots->tokens);
    sf_buffer_free(&slots->keys);
    sf_word_reader_free(&slots->reader);
    sf_folder_free(&slots->folder);
    *slots = (sf_slots){0};
}

/* ------------------------------------------------------------------- tokens */

static int add_token(sf_slots *slots, size_t begin, size_t end, uint32_t slot)
{
    if (sf_grow(&slots->tokens, &slots->token_capacity, slots->token_count + 1, sizeof *slots->tokens)) return -1;
    slots->tokens[slots->token_count++] = (sf_token){(uint32_t)begin, (uint32_t)end, slot};
    return 0;
}

/* The numbers and marks between two words. Bytes that are not UTF-8 are marks. */
static int split_gap(sf_slots *slots, size_t begin, size_t end)
{
    const char *text = slots->text;
    for (size_t at = begin; at < end;) {
        uint32_t code = 0;
        size_t step = sf_utf8_decode(text + at, text + end, &code), next = at + (step ? step : 1);
        if (step && sf_is_space(code)) {
            at = next;
            continue;
        }
        if (step && sf_is_digit(code))
            while (next < end && (step = sf_utf8_decode(text + next, text + end, &code)) && sf_is_digit(code))
                next += step;
        if (add_token(slots, at, next, SF_NONE)) return -1;
        at = next;
    }
    return 0;
}

safer_status sf_slots_split(sf_slots *slots, safer_deletion deletion, safer_error *error)
{
    size_t at = 0;
    int failed = 0;
    slots->split = sf_deletes(deletion);
    slots->deletion = 0;
    slots->groups = deletion.groups;
    slots->token_count = 0;
    if (!slots->split) return SAFER_OK;
    for (size_t i = 0; i < slots->word_count && !failed; i++) {
        const sf_text_word *w = &slots->words[i];
        failed = split_gap(slots, at, w->begin) || add_token(slots, w->begin, w->end, w->slot);
        at = w->end;
    }
    if (failed || split_gap(slots, at, slots->length)) return sf_fail_memory(error);
    slots->deletion = deletion.groups ? 0 : sf_deletion_at(deletion, slots->token_count);
    return SAFER_OK;
}

size_t sf_slots_width(const sf_slots *slots)
{
    return slots->slot_count + (slots->split ? (slots->token_count + 31) / 32 : 0);
}

/* ---------------------------------------------------------------- rendering */

int sf_slots_render_slot(sf_buffer *out, const sf_slots *slots, const safer_lexicon *l, size_t slot, uint32_t draw)
{
    const sf_text_word *w = &slots->words[slots->slots[slot]];
    const uint32_t drawn = l->kernel.ids[l->kernel.offsets[l->kernel.row_of[w->word]] + draw];
    const uint32_t begin = l->words.offsets[drawn];
    return sf_word_render(out, l->words.pool + begin, l->words.offsets[drawn + 1] - begin - 1, w->pattern);
}

int sf_slots_render_token(sf_buffer *out, const sf_slots *slots, const safer_lexicon *l, const sf_token *t,
                          const uint32_t *draws)
{
    return t->slot == SF_NONE ? sf_buffer_add(out, slots->text + t->begin, t->end - t->begin)
                              : sf_slots_render_slot(out, slots, l, t->slot, draws[t->slot]);
}

static int render_kept(sf_buffer *out, const sf_slots *slots, const safer_lexicon *l, const uint32_t *draw)
{
    int failed = 0;
    const size_t first = out->length, groups = (slots->token_count + 31) / 32;
    for (size_t group = 0; group < groups; group++)
        for (uint32_t bits = draw[slots->slot_count + group]; bits && !failed; bits &= bits - 1) {
            const sf_token *t = &slots->tokens[32 * group + (size_t)__builtin_ctz(bits)];
            if (out->length > first) failed = sf_buffer_add(out, " ", 1);
            failed = failed || sf_slots_render_token(out, slots, l, t, draw);
        }
    return failed;
}

int sf_slots_render(sf_buffer *out, const sf_slots *slots, const safer_lexicon *l, const uint32_t *draws)
{
    size_t at = 0;
    if (slots->split) return render_kept(out, slots, l, draws);
    for (size_t s = 0; s < slots->slot_count; s++) {
        const sf_text_word *w = &slots->words[slots->slots[s]];
        if (sf_buffer_add(out, slots->text + at, w->begin - at) || sf_slots_render_slot(out, slots, l, s, draws[s]))
            return -1;
        at = w->end;
    }
    return sf_buffer_add(out, slots->text + at, slots->length - at);
}

size_t sf_slots_overlaps(double *overlaps, const sf_slots *slots, const safer_lexicon *l)
{
    for (size_t s = 0; s < slots->slot_count; s++) overlaps[s] = l->overlap[slots->words[slots->slots[s]].word];
    return slots->slot_count;
}
