/* A lexicon for one text under attack. */
#include "attack/shadow.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void sf_shadow_free(sf_shadow *s)
{
    free(s->row_of);
    free(s->rows_of);
    free(s->offsets);
    free(s->ids);
    free(s->weights);
    free(s->totals);
    free(s->maps);
    free(s->map_offsets);
    *s = (sf_shadow){0};
}

/* What a word draws. */
typedef struct support {
    const uint32_t *ids; /* ascending */
    size_t count;
} support;

static support support_of(const safer_lexicon *l, uint32_t word)
{
    const uint32_t row = l->kernel.row_of[word];
    const uint64_t first = l->kernel.offsets[row];
    return (support){l->kernel.ids + first, (size_t)(l->kernel.offsets[row + 1] - first)};
}

static uint32_t choice_word(const safer_lexicon *l, uint32_t word, uint32_t choice)
{
    return choice ? l->synonyms[l->synonym_offsets[word] + choice - 1] : word;
}

static uint32_t choice_count(const safer_lexicon *l, uint32_t word)
{
    return 1 + (uint32_t)(l->synonym_offsets[word + 1] - l->synonym_offsets[word]);
}

static int compare_ids(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* All that the word and its synonyms draw, ascending, each once. */
static int add_union(sf_shadow *s, const safer_lexicon *l, uint32_t word)
{
    const size_t begin = (size_t)s->offsets[s->rows];
    size_t count = 0, kept = 0;
    for (uint32_t k = 0; k < choice_count(l, word); k++) {
        const support draws = support_of(l, choice_word(l, word, k));
        if (sf_grow(&s->ids, &s->id_capacity, begin + count + draws.count, sizeof *s->ids)) return -1;
        memcpy(s->ids + begin + count, draws.ids, draws.count * sizeof *s->ids);
        count += draws.count;
    }
    uint32_t *ids = s->ids + begin;
    qsort(ids, count, sizeof *ids, compare_ids);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || ids[i] != ids[i - 1]) ids[kept++] = ids[i];
    s->totals[s->rows] = (uint32_t)kept;
    s->offsets[s->rows + 1] = begin + kept;
    return 0;
}

/* Of every choice, where in the row's union its draws stand. */
static int add_maps(sf_shadow *s, const safer_lexicon *l, uint32_t word)
{
    const uint32_t *ids = s->ids + s->offsets[s->rows];
    size_t end = (size_t)s->map_offsets[s->rows];
    for (uint32_t k = 0; k < choice_count(l, word); k++) {
        const support draws = support_of(l, choice_word(l, word, k));
        if (sf_grow(&s->maps, &s->map_capacity, end + draws.count, sizeof *s->maps)) return -1;
        uint32_t at = 0;
        for (size_t i = 0; i < draws.count; i++) {
            while (ids[at] != draws.ids[i]) at++;
            s->maps[end++] = at;
        }
    }
    s->map_offsets[s->rows + 1] = end;
    return 0;
}

static int add_row(sf_shadow *s, const safer_lexicon *l, uint32_t word)
{
    if (sf_grow(&s->offsets, &s->offset_capacity, s->rows + 2, sizeof *s->offsets) ||
        sf_grow(&s->map_offsets, &s->map_offset_capacity, s->rows + 2, sizeof *s->map_offsets) ||
        sf_grow(&s->totals, &s->total_capacity, s->rows + 1, sizeof *s->totals) ||
        sf_grow(&s->rows_of, &s->rows_capacity, s->rows + 1, sizeof *s->rows_of))
        return -1;
    if (s->rows == 0) s->offsets[0] = s->map_offsets[0] = 0;
    if (add_union(s, l, word) || add_maps(s, l, word)) return -1;
    s->rows_of[s->rows] = word;
    s->row_of[word] = s->rows++;
    return 0;
}

static int has_row(const sf_shadow *s, uint32_t word)
{
    const uint32_t row = s->row_of[word];
    return row < s->rows && s->rows_of[row] == word;
}

safer_status sf_shadow_make(sf_shadow *s, const safer_lexicon *l, const sf_slots *slots, safer_error *error)
{
    s->rows = 0;
    if (!s->row_of && !(s->row_of = sf_calloc(l->words.count, sizeof *s->row_of))) return sf_fail_memory(error);
    for (size_t i = 0; i < slots->slot_count; i++) {
        const uint32_t word = slots->words[slots->slots[i]].word;
        if (!has_row(s, word) && add_row(s, l, word)) return sf_fail_memory(error);
    }
    /* A model may look at what synonyms draw: at least that, then. */
    const uint32_t own = s->rows;
    for (uint32_t r = 0; r < own; r++)
        for (uint32_t k = 1; k < choice_count(l, s->rows_of[r]); k++) {
            const uint32_t other = choice_word(l, s->rows_of[r], k);
            if (!has_row(s, other)) s->row_of[other] = r;
        }
    const size_t entries = own ? (size_t)s->offsets[own] : 0;
    if (sf_grow(&s->weights, &s->weight_capacity, entries + 1, sizeof *s->weights)) return sf_fail_memory(error);
    for (size_t i = 0; i < entries; i++) s->weights[i] = 1;
    s->lexicon = *l;
    s->lexicon.shadow = 1;
    s->lexicon.kernel = (sf_kernel_view){.words = l->words.count,
                                         .rows = own,
                                         .row_of = s->row_of,
                                         .offsets = s->offsets,
                                         .ids = s->ids,
                                         .weights = s->weights,
                                         .totals = s->totals};
    return SAFER_OK;
}

const uint32_t *sf_shadow_maps(const sf_shadow *s, uint32_t word) { return s->maps + s->map_offsets[s->row_of[word]]; }
