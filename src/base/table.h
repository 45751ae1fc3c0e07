/* A hash table of numbers: where is the thing with this key among those that the caller numbered?
 *
 * Open addressing with linear probing, at most half full. A slot is 8 bytes: a tag of 32 bits
 * and a number. The tag is all that the table knows of a key: the upper half of a 64-bit hash
 * (sf_hashtable_tag), or the key itself where 32 bits hold it. Where a tag lies depends on the tag
 * alone, so growing asks the caller nothing. Keys and values stay in the caller's own arrays,
 * at the table's numbers and so in the order in which they were added; different keys may share
 * a tag, and the caller compares:
 *
 *     sf_hashtable_walk walk = sf_hashtable_find(&table, tag);
 *     for (uint32_t i; (i = sf_hashtable_next(&table, &walk)) != SF_NONE;)
 *         if (keys[i] == key) return &values[i];
 *
 * One thread may change a table while no other uses it; any number may search one at once. */
#ifndef SF_BASE_TABLE_H
#define SF_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define SF_NONE UINT32_MAX /* no such number */

/* Zero-initialise; owns its slots, which sf_hashtable_free releases. Read by any thread as above. */
typedef struct sf_hashtable {
    uint64_t *slots;    /* (size): tag << 32 | number + 1, or 0 for a free one; NULL before the first */
    size_t size, count; /* size is a power of two */
    unsigned shift;     /* 64 - log2(size) */
} sf_hashtable;

/* A search that is under way: ends when the table changes. Owns nothing; one thread's own. */
typedef struct sf_hashtable_walk {
    uint32_t tag;
    size_t at;
} sf_hashtable_walk;

/* The tag of a key with this hash. Any thread. */
static inline uint32_t sf_hashtable_tag(uint64_t hash) { return (uint32_t)(hash >> 32); }

/* The slot where the search for a tag begins, once there are slots. For sf_hashtable_find. */
static inline size_t sf_hashtable_home(const sf_hashtable *table, uint32_t tag)
{
    return (size_t)(tag * UINT64_C(0x9e3779b97f4a7c15) >> table->shift);
}

/* Begins a search for the numbers of a tag. Any thread, see above. */
static inline sf_hashtable_walk sf_hashtable_find(const sf_hashtable *table, uint32_t tag)
{
    return (sf_hashtable_walk){tag, sf_hashtable_home(table, tag)};
}

/* The next number with the tag, in the order in which they were added; SF_NONE when there are no
 * more, and then the walk is over. Any thread, with a walk of its own. */
static inline uint32_t sf_hashtable_next(const sf_hashtable *table, sf_hashtable_walk *walk)
{
    if (!table->slots) return SF_NONE;
    for (;;) {
        const uint64_t slot = table->slots[walk->at];
        if (!slot) return SF_NONE;
        walk->at = (walk->at + 1) & (table->size - 1);
        if (slot >> 32 == walk->tag) return (uint32_t)slot - 1;
    }
}

/* The first number with the tag, or SF_NONE: the only one where tags are keys. Any thread. */
static inline uint32_t sf_hashtable_first(const sf_hashtable *table, uint32_t tag)
{
    sf_hashtable_walk walk = sf_hashtable_find(table, tag);
    return sf_hashtable_next(table, &walk);
}

/* Adds a number below SF_NONE, whether or not it or its tag is there. 0; -1 when memory is out or
 * the table holds 2^31 numbers, and then it is as it was. One thread, while no other searches. */
int sf_hashtable_add(sf_hashtable *table, uint32_t tag, uint32_t number);

/* Forgets all numbers and keeps the memory. One thread, while no other searches. */
void sf_hashtable_clear(sf_hashtable *table);

/* Releases the slots; the table is empty and may be used again. One thread, while no other searches. */
void sf_hashtable_free(sf_hashtable *table);

#endif
