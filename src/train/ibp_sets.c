/* Synonym sets. */
#include "train/ibp_sets.h"

#include "base/memory.h"

#include <string.h>

static int holds(const uint32_t *list, size_t count, uint32_t word)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == word) return 1;
    return 0;
}

/* The word, then its synonyms, each number once. What the vocabulary lacks is the unknown word, in a set as in a
 * text. */
safer_status sf_ibp_sets_make(sf_ibp_sets *sets, const sf_textset *corpus, safer_error *error)
{
    const safer_lexicon *lexicon = corpus->lexicon;
    size_t words = lexicon->words.count, count = 0;
    sets->offsets = sf_calloc(words + 1, sizeof *sets->offsets);
    sets->members = sf_alloc(words + (size_t)lexicon->synonym_offsets[words], sizeof *sets->members);
    if (!sets->offsets || !sets->members) return sf_fail_memory(error);
    for (size_t w = 0; w < words; w++) {
        uint32_t *set = sets->members + count;
        size_t size = 0;
        set[size++] = corpus->drawn[w];
        for (uint64_t k = lexicon->synonym_offsets[w]; k < lexicon->synonym_offsets[w + 1]; k++) {
            uint32_t word = corpus->drawn[lexicon->synonyms[k]];
            if (!holds(set, size, word)) set[size++] = word;
        }
        count += size;
        sets->offsets[w + 1] = count;
    }
    sets->count = words;
    return SAFER_OK;
}

void sf_ibp_sets_free(sf_ibp_sets *sets)
{
    free(sets->members);
    free(sets->offsets);
    *sets = (sf_ibp_sets){0};
}

/* A word whose set is itself alone is a word that stays. */
void sf_ibp_sets_apply(sf_texts *texts, const sf_ibp_sets *sets, size_t vocabulary)
{
    for (size_t i = 0; i < texts->offsets[texts->count]; i++) {
        uint32_t word = texts->tokens[i] & ~SF_TOKEN_SLOT;
        if (!(texts->tokens[i] & SF_TOKEN_SLOT)) continue;
        int alone = sets->offsets[word + 1] - sets->offsets[word] == 1;
        texts->tokens[i] = alone ? sets->members[sets->offsets[word]] : (uint32_t)vocabulary + word;
    }
}

int sf_ibp_sets_list(sf_ibp_choices *out, sf_ibp_listed *l, const sf_texts *texts, size_t text, const sf_ibp_sets *sets,
                     size_t vocabulary)
{
    const uint32_t *items = texts->tokens + texts->offsets[text];
    const size_t N = texts->offsets[text + 1] - texts->offsets[text];
    size_t count = 0;
    if (sf_grow(&l->begin, &l->begin_capacity, N + 1, sizeof *l->begin)) return -1;
    for (size_t i = 0; i < N; i++) {
        const size_t first = items[i] < vocabulary ? 0 : sets->offsets[items[i] - vocabulary],
                     size = items[i] < vocabulary ? 1 : sets->offsets[items[i] - vocabulary + 1] - first;
        l->begin[i] = count;
        if (sf_grow(&l->ids, &l->id_capacity, count + size, sizeof *l->ids)) return -1;
        if (items[i] < vocabulary)
            l->ids[count] = items[i];
        else
            memcpy(l->ids + count, sets->members + first, size * sizeof *l->ids);
        count += size;
    }
    l->begin[N] = count;
    *out = (sf_ibp_choices){l->ids, l->begin, N};
    return 0;
}

void sf_ibp_listed_free(sf_ibp_listed *l)
{
    free(l->ids);
    free(l->begin);
    *l = (sf_ibp_listed){0};
}
