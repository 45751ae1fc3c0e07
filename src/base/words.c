/* A numbered set of strings. */
#include "base/words.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

static uint32_t start_slot(const char *bytes, size_t length, uint32_t slots)
{
    return (uint32_t)sf_hash(bytes, length, 0) & (slots - 1);
}

/* The slot that holds the word, or the empty one where it would go. Bounded by the
 * table's size, so that a damaged table cannot make it run without end. */
static uint32_t probe(const sf_words_view *view, const char *bytes, size_t length, uint32_t *id)
{
    uint32_t slot = start_slot(bytes, length, view->slots);
    for (uint32_t tries = 0; tries < view->slots; tries++, slot = (slot + 1) & (view->slots - 1)) {
        uint32_t candidate = view->table[slot];
        if (candidate == SF_NONE) break;
        uint32_t begin = view->offsets[candidate];
        if (view->offsets[candidate + 1] - begin == length + 1 && memcmp(view->pool + begin, bytes, length) == 0) {
            *id = candidate;
            return slot;
        }
    }
    *id = SF_NONE;
    return slot;
}

uint32_t sf_words_view_find(const sf_words_view *view, const char *bytes, size_t length)
{
    uint32_t id;
    if (view->slots == 0) return SF_NONE;
    probe(view, bytes, length, &id);
    return id;
}

sf_words_view sf_words_as_view(const sf_words *words)
{
    return (sf_words_view){words->pool, words->offsets, words->table, words->count, words->slots};
}

uint32_t sf_words_find(const sf_words *words, const char *bytes, size_t length)
{
    sf_words_view view = sf_words_as_view(words);
    return sf_words_view_find(&view, bytes, length);
}

/* Keeps the table at most half full. */
static int make_room(sf_words *words)
{
    if ((size_t)words->count * 2 < words->slots) return 0;
    uint32_t slots = words->slots ? words->slots * 2 : 64;
    if (slots < words->slots) return -1;
    uint32_t *table = sf_alloc(slots, sizeof *table);
    if (!table) return -1;
    memset(table, 0xff, slots * sizeof *table);
    for (uint32_t id = 0; id < words->count; id++) {
        uint32_t slot = start_slot(sf_words_string(words, id), sf_words_length(words, id), slots);
        while (table[slot] != SF_NONE) slot = (slot + 1) & (slots - 1);
        table[slot] = id;
    }
    free(words->table);
    words->table = table;
    words->slots = slots;
    return 0;
}

safer_status sf_words_add(sf_words *words, const char *bytes, size_t length, uint32_t *id, safer_error *error)
{
    if (make_room(words)) return sf_fail_memory(error);
    sf_words_view view = sf_words_as_view(words);
    uint32_t slot = probe(&view, bytes, length, id);
    if (*id != SF_NONE) return SAFER_OK;

    size_t need = words->pool_length + length + 1;
    if (need > UINT32_MAX || words->count >= UINT32_MAX / 2)
        return sf_fail(error, SAFER_INPUT, "more than 4 GiB of distinct words");
    if (sf_grow(&words->pool, &words->pool_capacity, need, 1) ||
        sf_grow(&words->offsets, &words->offset_capacity, (size_t)words->count + 2, sizeof *words->offsets))
        return sf_fail_memory(error);
    if (length) memcpy(words->pool + words->pool_length, bytes, length);
    words->pool[need - 1] = '\0';
    words->offsets[words->count] = (uint32_t)words->pool_length;
    words->offsets[words->count + 1] = (uint32_t)need;
    words->pool_length = need;
    words->table[slot] = *id = words->count++;
    return SAFER_OK;
}

const char *sf_words_string(const sf_words *words, uint32_t id) { return words->pool + words->offsets[id]; }

size_t sf_words_length(const sf_words *words, uint32_t id) { return words->offsets[id + 1] - words->offsets[id] - 1; }

void sf_words_free(sf_words *words)
{
    free(words->pool);
    free(words->offsets);
    free(words->table);
    *words = (sf_words){0};
}
