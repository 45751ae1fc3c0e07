/* A hash table of numbers. */
#include "base/table.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { FIRST_SHIFT = 64 - 8, LAST_SHIFT = 64 - 32 }; /* from 256 slots to as many as tags distinguish */

static void put(sf_hashtable *table, uint64_t slot)
{
    size_t at = sf_hashtable_home(table, (uint32_t)(slot >> 32));
    while (table->slots[at]) at = (at + 1) & (table->size - 1);
    table->slots[at] = slot;
}

/* Twice the slots. Those of one tag are moved in the order in which a walk meets them: from the
 * first slot behind a free one on, so that none of a run that wraps around overtakes another. */
static int grow(sf_hashtable *table)
{
    sf_hashtable bigger = {.count = table->count, .shift = table->slots ? table->shift - 1 : FIRST_SHIFT};
    if (bigger.shift < LAST_SHIFT) return -1;
    bigger.size = (size_t)1 << (64 - bigger.shift);
    bigger.slots = sf_calloc(bigger.size, sizeof *bigger.slots);
    if (!bigger.slots) return -1;
    size_t free_slot = 0;
    while (free_slot < table->size && table->slots[free_slot]) free_slot++;
    for (size_t i = 0; i < table->size; i++) {
        const uint64_t slot = table->slots[(free_slot + i) & (table->size - 1)];
        if (slot) put(&bigger, slot);
    }
    free(table->slots);
    *table = bigger;
    return 0;
}

int sf_hashtable_add(sf_hashtable *table, uint32_t tag, uint32_t number)
{
    assert(number != SF_NONE);
    if (2 * (table->count + 1) > table->size && grow(table)) return -1;
    put(table, (uint64_t)tag << 32 | (number + 1));
    table->count++;
    return 0;
}

void sf_hashtable_clear(sf_hashtable *table)
{
    if (table->slots) memset(table->slots, 0, table->size * sizeof *table->slots);
    table->count = 0;
}

void sf_hashtable_free(sf_hashtable *table)
{
    free(table->slots);
    *table = (sf_hashtable){0};
}
