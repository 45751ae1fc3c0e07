/* Numbers of pieces, growing. */
#ifndef SF_TEXT_IDS_H
#define SF_TEXT_IDS_H

#include "base/memory.h"

#include <stddef.h>
#include <stdint.h>

/* Zero-initialise; owns its numbers, which sf_ids_free releases. One thread's own. */
typedef struct sf_ids {
    uint32_t *ids;
    size_t count, capacity;
} sf_ids;

/* Appends a number. 0, or -1 without memory; the list is then unchanged. */
static inline int sf_ids_push(sf_ids *ids, uint32_t id)
{
    if (ids->count == ids->capacity && sf_grow(&ids->ids, &ids->capacity, ids->count + 1, sizeof *ids->ids)) return -1;
    ids->ids[ids->count++] = id;
    return 0;
}

/* Releases the numbers; the list is empty and may be used again. */
static inline void sf_ids_free(sf_ids *ids)
{
    free(ids->ids);
    *ids = (sf_ids){0};
}

#endif
