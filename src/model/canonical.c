/* The canonical form of texts. */
#include "model/canonical.h"

#include <string.h>

/* The one word drawn for a word, or SF_NONE when there are several. */
static uint32_t only_draw(const safer_lexicon *l, uint32_t word)
{
    uint32_t row = l->kernel.row_of[word];
    return l->kernel.offsets[row + 1] - l->kernel.offsets[row] == 1 ? l->kernel.ids[l->kernel.offsets[row]] : SF_NONE;
}

int sf_canonical_is(const safer_lexicon *l)
{
    for (uint32_t w = 0; w < l->words.count; w++) {
        uint32_t drawn = only_draw(l, w);
        if (drawn == SF_NONE) return 0;
        for (uint64_t i = l->synonym_offsets[w]; i < l->synonym_offsets[w + 1]; i++)
            if (only_draw(l, l->synonyms[i]) != drawn) return 0;
    }
    return 1;
}

int sf_canonical_same(const safer_lexicon *a, const safer_lexicon *b)
{
    return a->image.length == b->image.length && memcmp(a->image.bytes, b->image.bytes, a->image.length) == 0;
}

int sf_canonical_render(sf_buffer *out, size_t *ends, const sf_slots *slots, const safer_lexicon *l)
{
    const size_t start = out->length;
    size_t at = 0;
    for (size_t i = 0; i < slots->word_count; i++) {
        const sf_text_word *w = &slots->words[i];
        if (sf_buffer_add(out, slots->text + at, w->begin - at) ||
            (w->slot == SF_NONE ? sf_buffer_add(out, slots->text + w->begin, w->end - w->begin)
                                : sf_slots_render_slot(out, slots, l, w->slot, 0)))
            return -1;
        at = w->end;
        ends[i] = out->length - start;
    }
    return sf_buffer_add(out, slots->text + at, slots->length - at);
}
