/* A set of strings numbered 0, 1, 2, ... in the order they were added.
 *
 * The strings lie terminated in one pool; an open-addressing table of numbers finds
 * them. The read-only view is what a lexicon file maps into memory, so that loading a
 * lexicon builds nothing; the layout of its table is therefore that of the file, not base/table's. */
#ifndef SF_BASE_WORDS_H
#define SF_BASE_WORDS_H

#include "base/error.h"
#include "base/table.h" /* SF_NONE */

#include <stddef.h>
#include <stdint.h>

typedef struct sf_words_view {
    const char *pool;        /* count terminated strings */
    const uint32_t *offsets; /* count+1: where each begins in the pool, and the pool's length */
    const uint32_t *table;   /* slots: a number or SF_NONE */
    uint32_t count, slots;   /* slots is a power of two, more than count */
} sf_words_view;

uint32_t sf_words_view_find(const sf_words_view *view, const char *bytes, size_t length);

typedef struct sf_words {
    char *pool;
    uint32_t *offsets, *table;
    uint32_t count, slots;
    size_t pool_length, pool_capacity, offset_capacity;
} sf_words; /* zero-initialise */

uint32_t sf_words_find(const sf_words *words, const char *bytes, size_t length);

/* Finds or adds; *id gets the number. */
safer_status sf_words_add(sf_words *words, const char *bytes, size_t length, uint32_t *id, safer_error *error);

const char *sf_words_string(const sf_words *words, uint32_t id);
size_t sf_words_length(const sf_words *words, uint32_t id);
sf_words_view sf_words_as_view(const sf_words *words);
void sf_words_free(sf_words *words);

#endif
