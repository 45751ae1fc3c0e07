/* Whether a text lies in what a certificate against edits covers.
 *
 * least[e][j - i] is the least number of synonyms with which e edits turn the first i tokens of the one text into the
 * first j of the other. Since no path has more than R edits, |j - i| <= R: the work is O(tokens R^2). */
#include "attack/reach.h"

#include "base/memory.h"

#include <string.h>

void sf_reach_free(sf_reach *r)
{
    sf_slots_free(&r->from);
    sf_slots_free(&r->to);
    sf_buffer_free(&r->word);
    free(r->rows);
    *r = (sf_reach){0};
}

/* Reads a text into tokens. The chance to be deleted is of no meaning here. */
static safer_status read_tokens(sf_slots *slots, const safer_lexicon *l, const char *text, size_t length,
                                safer_error *error)
{
    safer_status status = sf_slots_read(slots, l, text, length, error);
    return status == SAFER_OK ? sf_slots_split(slots, SF_SPLIT, error) : status;
}

safer_status sf_reach_begin(sf_reach *r, const safer_lexicon *l, const char *text, size_t length, safer_error *error)
{
    r->lexicon = l;
    return read_tokens(&r->from, l, text, length, error);
}

/* What token i of the one text and j of the other have in common. */
typedef enum relation { NOTHING, SYNONYMS, EQUAL, NO_MEMORY } relation;

static int is_token(const sf_slots *s, const sf_token *t, const char *bytes, size_t length)
{
    return t->end - t->begin == length && memcmp(s->text + t->begin, bytes, length) == 0;
}

static relation relate(sf_reach *r, size_t i, size_t j)
{
    const safer_lexicon *l = r->lexicon;
    const sf_token *from = &r->from.tokens[i], *to = &r->to.tokens[j];
    if (is_token(&r->to, to, r->from.text + from->begin, from->end - from->begin)) return EQUAL;
    if (from->slot == SF_NONE) return NOTHING;
    const sf_text_word *w = &r->from.words[r->from.slots[from->slot]];
    for (uint64_t k = l->synonym_offsets[w->word]; k < l->synonym_offsets[w->word + 1]; k++) {
        const uint32_t word = l->synonyms[k], begin = l->words.offsets[word];
        sf_buffer_clear(&r->word);
        if (sf_word_render(&r->word, l->words.pool + begin, l->words.offsets[word + 1] - begin - 1, w->pattern))
            return NO_MEMORY;
        if (is_token(&r->to, to, r->word.bytes, r->word.length)) return SYNONYMS;
    }
    return NOTHING;
}

static void relax(size_t *least, size_t synonyms)
{
    if (synonyms < *least) *least = synonyms;
}

/* From the first i tokens to the first i + 1. `row` is that of i, and gets its insertions. -1 without memory. */
static int advance(sf_reach *r, size_t i, size_t *row, size_t *next)
{
    const size_t most = r->edits, width = 2 * most + 1, all = r->from.token_count, others = r->to.token_count;
    const int any = r->kind == SAFER_EDITS_ANY, inserts = any || r->kind == SAFER_EDITS_INSERT,
              deletes = any || r->kind == SAFER_EDITS_DELETE, replaces = any || r->kind == SAFER_EDITS_REPLACE;
    for (size_t k = 0; k < (most + 1) * width; k++) next[k] = SIZE_MAX;
    for (size_t e = 0; e <= most; e++)
        for (size_t o = 0; o < width; o++) {
            const size_t used = row[e * width + o], j = i + o - most; /* reached: i + o >= most */
            if (used == SIZE_MAX || i + o < most || j > others) continue;
            if (inserts && e < most && j < others && o + 1 < width) relax(&row[(e + 1) * width + o + 1], used);
            if (i == all) continue;
            if (deletes && e < most && o > 0) relax(&next[(e + 1) * width + o - 1], used);
            if (j == others) continue;
            const relation how = relate(r, i, j);
            if (how == NO_MEMORY) return -1;
            if (how == EQUAL) relax(&next[e * width + o], used);
            if (how == SYNONYMS && used < r->radius) relax(&next[e * width + o], used + 1);
            if (replaces && e < most) relax(&next[(e + 1) * width + o], used);
        }
    return 0;
}

safer_status sf_reach_covers(int *covered, sf_reach *r, const char *text, size_t length, safer_error *error)
{
    const size_t most = r->edits, width = 2 * most + 1, size = (most + 1) * width, all = r->from.token_count;
    safer_status status = read_tokens(&r->to, r->lexicon, text, length, error);
    *covered = 0;
    if (status != SAFER_OK) return status;
    if (sf_grow(&r->rows, &r->row_capacity, 2 * size, sizeof *r->rows)) return sf_fail_memory(error);
    const size_t others = r->to.token_count;
    if (others + most < all || all + most < others) return SAFER_OK;
    size_t *row = r->rows, *next = r->rows + size;
    for (size_t k = 0; k < size; k++) row[k] = SIZE_MAX;
    row[most] = 0;
    for (size_t i = 0; i <= all; i++) {
        if (advance(r, i, row, next)) return sf_fail_memory(error);
        for (size_t e = 0; i == all && e <= most; e++) *covered |= row[e * width + others + most - all] != SIZE_MAX;
        size_t *last = row;
        row = next;
        next = last;
    }
    return SAFER_OK;
}
