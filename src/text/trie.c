/* A tree of strings, built breadth first from their sorted list. */
#include "text/trie.h"

#include "base/memory.h"

#include <string.h>

typedef struct entry {
    const char *bytes;
    size_t length;
    size_t index; /* equal strings stay in their order */
} entry;

/* What is below a node: a stretch of the sorted list whose strings share this many bytes. */
typedef struct below {
    size_t first, last, depth;
} below;

static int compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const size_t shorter = x->length < y->length ? x->length : y->length;
    const int order = memcmp(x->bytes, y->bytes, shorter);
    if (order) return order;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int add_node(sf_trie *trie, below **todo, size_t *capacity, below b, unsigned char byte)
{
    const size_t n = trie->count;
    if (n >= SF_NONE - 1 || sf_grow(&trie->nodes, &trie->capacity, n + 1, sizeof *trie->nodes) ||
        sf_grow(&trie->bytes, &trie->byte_capacity, n + 1, 1) || sf_grow(todo, capacity, n + 1, sizeof **todo))
        return -1;
    trie->nodes[n] = (sf_trie_node){.value = SF_NONE};
    trie->bytes[n] = byte;
    (*todo)[n] = b;
    trie->count++;
    return 0;
}

/* Gives a node its value and its children. */
static int expand(sf_trie *trie, size_t node, const entry *sorted, const uint32_t *values, below **todo,
                  size_t *capacity)
{
    const below b = (*todo)[node];
    size_t at = b.first;
    for (; at < b.last && sorted[at].length == b.depth; at++) trie->nodes[node].value = values[sorted[at].index];
    trie->nodes[node].first = (uint32_t)trie->count;
    while (at < b.last) {
        const unsigned char byte = (unsigned char)sorted[at].bytes[b.depth];
        const size_t begin = at;
        while (at < b.last && (unsigned char)sorted[at].bytes[b.depth] == byte) at++;
        if (add_node(trie, todo, capacity, (below){begin, at, b.depth + 1}, byte)) return -1;
        trie->nodes[node].count++;
        trie->nodes[node].single = byte;
        if (node == 0) trie->root[byte] = (uint32_t)trie->count - 1;
    }
    return 0;
}

int sf_trie_build(sf_trie *trie, const sf_span *strings, const uint32_t *values, size_t count)
{
    size_t capacity = 0;
    below *todo = NULL;
    entry *sorted = sf_alloc(count, sizeof *sorted);
    int failed = !sorted;
    for (size_t i = 0; !failed && i < count; i++) sorted[i] = (entry){strings[i].bytes, strings[i].length, i};
    for (size_t i = 0; i < 256; i++) trie->root[i] = SF_NONE;
    if (!failed) {
        if (count) qsort(sorted, count, sizeof *sorted, compare);
        failed = add_node(trie, &todo, &capacity, (below){0, count, 0}, 0);
    }
    for (size_t node = 0; !failed && node < trie->count; node++)
        failed = expand(trie, node, sorted, values, &todo, &capacity);
    free(sorted);
    free(todo);
    return failed ? -1 : 0;
}

void sf_trie_free(sf_trie *trie)
{
    free(trie->nodes);
    free(trie->bytes);
    *trie = (sf_trie){0};
}

uint32_t sf_trie_longest(const sf_trie *trie, const char *bytes, size_t length, size_t *longest)
{
    uint32_t node = 0, best = SF_NONE;
    for (size_t i = 0; i < length && (node = sf_trie_step(trie, node, (unsigned char)bytes[i])) != SF_NONE; i++)
        if (trie->nodes[node].value != SF_NONE) {
            best = trie->nodes[node].value;
            *longest = i + 1;
        }
    return best;
}

uint32_t sf_trie_find(const sf_trie *trie, const char *bytes, size_t length)
{
    uint32_t node = 0;
    for (size_t i = 0; i < length; i++)
        if ((node = sf_trie_step(trie, node, (unsigned char)bytes[i])) == SF_NONE) return SF_NONE;
    return trie->nodes[node].value;
}
