/* Answers by text. */
#include "remote/cache.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

uint64_t sf_cache_hash(sf_span text) { return sf_hash(text.bytes, text.length, 0); }

/* Where the text is, or the free place where it belongs. */
static sf_cache_entry *place(const sf_cache *c, sf_span text, uint64_t hash)
{
    size_t mask = c->capacity - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        sf_cache_entry *e = &c->entries[i];
        if (!e->used) return e;
        if (e->hash == hash && e->length == text.length && memcmp(c->bytes.bytes + e->at, text.bytes, text.length) == 0)
            return e;
    }
}

sf_cache_entry *sf_cache_find(const sf_cache *c, sf_span text, uint64_t hash)
{
    if (!c->capacity) return NULL;
    sf_cache_entry *e = place(c, text, hash);
    return e->used ? e : NULL;
}

static int grow(sf_cache *c)
{
    size_t capacity = c->capacity ? 2 * c->capacity : 256, mask = capacity - 1;
    sf_cache_entry *entries = sf_calloc(capacity, sizeof *entries);
    if (!entries) return -1;
    for (size_t i = 0; i < c->capacity; i++) {
        if (!c->entries[i].used) continue;
        size_t at = (size_t)c->entries[i].hash & mask;
        while (entries[at].used) at = (at + 1) & mask;
        entries[at] = c->entries[i];
    }
    free(c->entries);
    c->entries = entries;
    c->capacity = capacity;
    return 0;
}

int sf_cache_add(sf_cache *c, sf_span text, uint64_t hash, int answer)
{
    if (c->limit && c->bytes.length + text.length > c->limit) return 0;
    if (2 * (c->count + 1) > c->capacity && grow(c)) return -1;
    size_t at = c->bytes.length;
    if (sf_buffer_add(&c->bytes, text.bytes, text.length)) return -1;
    *place(c, text, hash) = (sf_cache_entry){hash, at, text.length, answer, 1};
    c->count++;
    return 0;
}

void sf_cache_clear(sf_cache *c)
{
    if (c->capacity) memset(c->entries, 0, c->capacity * sizeof *c->entries);
    sf_buffer_clear(&c->bytes);
    c->count = 0;
}

void sf_cache_free(sf_cache *c)
{
    free(c->entries);
    sf_buffer_free(&c->bytes);
    *c = (sf_cache){0};
}
