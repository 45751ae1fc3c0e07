/* Answers by text. */
#include "remote/cache.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

uint64_t sf_cache_hash(sf_span text) { return sf_hash(text.bytes, text.length, 0); }

const sf_cache_entry *sf_cache_find(const sf_cache *c, sf_span text, uint64_t hash)
{
    sf_hashtable_walk walk = sf_hashtable_find(&c->table, sf_hashtable_tag(hash));
    for (uint32_t i; (i = sf_hashtable_next(&c->table, &walk)) != SF_NONE;) {
        const sf_cache_entry *e = &c->entries[i];
        if (e->length == text.length && memcmp(c->bytes.bytes + e->at, text.bytes, text.length) == 0) return e;
    }
    return NULL;
}

int sf_cache_add(sf_cache *c, sf_span text, uint64_t hash, int answer)
{
    const size_t at = c->bytes.length;
    if (c->limit && at + text.length > c->limit) return 0;
    if (sf_grow(&c->entries, &c->capacity, c->count + 1, sizeof *c->entries) ||
        sf_buffer_add(&c->bytes, text.bytes, text.length) ||
        sf_hashtable_add(&c->table, sf_hashtable_tag(hash), (uint32_t)c->count))
        return -1;
    c->entries[c->count++] = (sf_cache_entry){at, text.length, answer};
    return 0;
}

void sf_cache_clear(sf_cache *c)
{
    sf_hashtable_clear(&c->table);
    sf_buffer_clear(&c->bytes);
    c->count = 0;
}

void sf_cache_free(sf_cache *c)
{
    sf_hashtable_free(&c->table);
    free(c->entries);
    sf_buffer_free(&c->bytes);
    *c = (sf_cache){0};
}
