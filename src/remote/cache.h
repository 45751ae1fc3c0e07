/* Answers by text. Texts are kept and compared whole: two that share a hash stay apart. */
#ifndef SF_REMOTE_CACHE_H
#define SF_REMOTE_CACHE_H

#include "base/buffer.h"
#include "base/table.h"

#include <stdint.h>

typedef struct sf_cache_entry {
    size_t at, length; /* in the bytes */
    int answer;
} sf_cache_entry;

typedef struct sf_cache {
    sf_hashtable table;      /* of the entries' numbers */
    sf_cache_entry *entries; /* (count) in the order in which they came */
    size_t count, capacity;
    sf_buffer bytes;
    size_t limit; /* of the bytes: then nothing more is added */
} sf_cache;       /* zero-initialise; not for several threads at once */

uint64_t sf_cache_hash(sf_span text);

/* The entry of a text, or NULL; the cache's own until something is added. */
const sf_cache_entry *sf_cache_find(const sf_cache *cache, sf_span text, uint64_t hash);

/* Adds a text that is not there, unless the limit is reached. -1 when memory is out. */
int sf_cache_add(sf_cache *cache, sf_span text, uint64_t hash, int answer);

void sf_cache_clear(sf_cache *cache); /* keeps the memory */
void sf_cache_free(sf_cache *cache);

#endif
