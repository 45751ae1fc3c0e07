/* Strings in one tree: which of them are beginnings of this text?
 *
 * Nodes lie breadth first, so that the children of one are neighbours in the order of their bytes: a step is a search
 * among these few bytes. Made once and then read by any thread. */
#ifndef SF_TEXT_TRIE_H
#define SF_TEXT_TRIE_H

#include "base/buffer.h"
#include "base/table.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sf_trie_node {
    uint32_t first;      /* of its children */
    uint32_t value;      /* or SF_NONE */
    uint32_t count : 9;  /* children */
    uint32_t single : 8; /* the byte of an only child */
} sf_trie_node;

/* Zero-initialise. */
typedef struct sf_trie {
    sf_trie_node *nodes;  /* NULL: no strings; 0 is the root */
    unsigned char *bytes; /* that leads to each node */
    uint32_t root[256];   /* children of the root, or SF_NONE */
    size_t count, capacity, byte_capacity;
} sf_trie;

/* The strings, none of them empty, with a value each; of equal ones the last counts. Nothing of them is kept. 0; -1
 * when memory is out, and then the trie is to be freed all the same. */
int sf_trie_build(sf_trie *trie, const sf_span *strings, const uint32_t *values, size_t count);
void sf_trie_free(sf_trie *trie);

/* The child of a node by this byte, or SF_NONE; a built trie. */
static inline uint32_t sf_trie_step(const sf_trie *trie, uint32_t node, unsigned char byte)
{
    if (node == 0) return trie->root[byte];
    const sf_trie_node *n = &trie->nodes[node];
    if (n->count <= 1) return n->count && n->single == byte ? n->first : SF_NONE;
    uint32_t low = n->first, high = low + n->count;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (trie->bytes[middle] <= byte)
            low = middle;
        else
            high = middle;
    }
    return trie->bytes[low] == byte ? low : SF_NONE;
}

/* The longest string that the bytes begin with: its value, and its length; SF_NONE when there is none. */
uint32_t sf_trie_longest(const sf_trie *trie, const char *bytes, size_t length, size_t *longest);

/* The value of exactly these bytes, or SF_NONE. */
uint32_t sf_trie_find(const sf_trie *trie, const char *bytes, size_t length);

#endif
