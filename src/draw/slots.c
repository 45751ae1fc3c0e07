/* A text as the certificate sees it. */
#include "draw/slots.h"

#include "base/hash.h"
#include "base/memory.h"

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
    if (length <= INT32_MAX && lexicon->folds) {
        if (sf_folder_apply(&slots->folder, &lexicon->phi.fold, text, length)) return sf_fail_memory(error);
        text = slots->folder.text.bytes;
        length = slots->folder.text.length;
    }
    if (length > INT32_MAX) return sf_fail(error, SAFER_INPUT, "a text of %zu bytes is too long", length);
    slots->text = text;
    slots->length = length;
    slots->hash = sf_hash(text, length, 0);
    slots->word_count = slots->slot_count = 0;
    sf_buffer_clear(&slots->keys);
    sf_word_reader_start(&slots->reader, text, length);
    while ((more = sf_word_reader_next(&slots->reader, &word)) > 0) {
        sf_text_word entry = {.begin = (uint32_t)word.begin,
                              .end = (uint32_t)word.end,
                              .key = (uint32_t)slots->keys.length,
                              .key_length = (uint32_t)word.key_length,
                              .slot = SF_NONE,
                              .pattern = word.pattern};
        entry.word = sf_words_view_find(&lexicon->words, word.key, word.key_length);
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
    sf_buffer_free(&slots->keys);
    sf_word_reader_free(&slots->reader);
    sf_folder_free(&slots->folder);
    *slots = (sf_slots){0};
}

int sf_slots_render(sf_buffer *out, const sf_slots *slots, const safer_lexicon *l, const uint32_t *draws)
{
    size_t at = 0;
    for (size_t s = 0; s < slots->slot_count; s++) {
        const sf_text_word *w = &slots->words[slots->slots[s]];
        uint32_t drawn = l->kernel.ids[l->kernel.offsets[l->kernel.row_of[w->word]] + draws[s]];
        uint32_t begin = l->words.offsets[drawn];
        if (sf_buffer_add(out, slots->text + at, w->begin - at) ||
            sf_word_render(out, l->words.pool + begin, l->words.offsets[drawn + 1] - begin - 1, w->pattern))
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
