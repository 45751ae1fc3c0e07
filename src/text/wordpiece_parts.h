/* BERT's tokenizer, from the inside. */
#ifndef SF_TEXT_WORDPIECE_PARTS_H
#define SF_TEXT_WORDPIECE_PARTS_H

#include "base/words.h"
#include "text/wordpiece.h"

/* ------------------------------------------------------------- characters */

/* As the `tokenizers` library sees them; see wordpiece_unicode.c. */
int sf_bert_is_space(uint32_t code);
int sf_bert_is_control(uint32_t code); /* what cleaning removes, U+FFFD among it */
int sf_bert_is_punctuation(uint32_t code);
int sf_bert_is_ideograph(uint32_t code);
int sf_bert_is_mark(uint32_t code);        /* what stripping accents removes */
int sf_bert_is_word(uint32_t code);        /* a regular expression's \w */
unsigned sf_bert_combining(uint32_t code); /* the class that orders marks */

enum { SF_BERT_DECOMPOSED = 4, SF_BERT_LOWERED = 2 };
size_t sf_bert_decompose(uint32_t out[SF_BERT_DECOMPOSED], uint32_t code);
size_t sf_bert_lower(uint32_t out[SF_BERT_LOWERED], uint32_t code);

/* ------------------------------------------------------------- dictionary */

/* Strings of bytes in one tree, whose edges lie in a hash table. Each root has its own set. */
typedef enum sf_root {
    SF_ROOT_START,    /* pieces that begin a pre-token */
    SF_ROOT_CONTINUE, /* pieces that continue one, without their prefix */
    SF_ROOT_RAW,      /* added tokens, looked for in the text as it stands */
    SF_ROOT_NORMAL,   /* added tokens, looked for in the normalized text */
    SF_ROOTS
} sf_root;

typedef struct sf_tree {
    uint64_t *edges;                    /* (parent << 8 | byte) << 32 | child; 0: none */
    uint32_t *values;                   /* of each node: a number, or SF_NONE */
    size_t nodes, capacity, edge_slots; /* edge_slots is a power of two */
    unsigned shift;                     /* 64 - log2(edge_slots) */
} sf_tree;

static inline size_t sf_tree_slot(const sf_tree *tree, uint64_t key)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> tree->shift);
}

/* The node below, or 0, which is a root and so never below anything. */
static inline uint32_t sf_tree_step(const sf_tree *tree, uint32_t node, unsigned char byte)
{
    const uint64_t key = (uint64_t)node << 8 | byte;
    for (size_t slot = sf_tree_slot(tree, key);; slot = (slot + 1) & (tree->edge_slots - 1)) {
        uint64_t edge = tree->edges[slot];
        if (edge == 0) return 0;
        if (edge >> 32 == key) return (uint32_t)edge;
    }
}

/* Adds a string, unless it is there already. 0; -1 when memory is out, or nodes are. */
int sf_tree_add(sf_tree *tree, sf_root root, const char *bytes, size_t length, uint32_t value);

/* Pieces of at most 15 bytes that begin a pre-token, by themselves: most words of a text are
 * one of them, found at the first look. The key is the bytes, padded, and their number. */
enum { SF_SHORT = 15 };

typedef struct sf_short {
    uint64_t key[2]; /* 0 0: none */
} sf_short;

typedef struct sf_shorts {
    sf_short *keys;
    uint32_t *ids;
    size_t count, slots; /* slots is a power of two */
} sf_shorts;

static inline size_t sf_shorts_slot(const sf_shorts *table, const uint64_t key[2])
{
    uint64_t hash = (key[0] ^ key[1] * UINT64_C(0xff51afd7ed558ccd)) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash ^ hash >> 32) & (table->slots - 1);
}

/* The number of the piece with this key, or SF_NONE. */
static inline uint32_t sf_shorts_find(const sf_shorts *table, const uint64_t key[2])
{
    for (size_t slot = sf_shorts_slot(table, key);; slot = (slot + 1) & (table->slots - 1)) {
        const uint64_t *found = table->keys[slot].key;
        if (found[0] == key[0] && found[1] == key[1]) return table->ids[slot];
        if (found[1] == 0) return SF_NONE;
    }
}

typedef struct sf_added {
    uint32_t id;
    int single;      /* only where no word character is next to it */
    int left, right; /* swallows white space there */
} sf_added;

typedef enum sf_byte_class { SF_BYTE_WORD, SF_BYTE_SPACE, SF_BYTE_ALONE, SF_BYTE_REMOVED, SF_BYTE_HIGH } sf_byte_class;

struct sf_wordpiece {
    sf_wordpiece_options options;
    sf_wordpiece_specials specials;
    size_t size;
    sf_buffer vocabulary; /* as it was given */
    sf_tree tree;
    sf_shorts shorts;
    sf_added *added;
    size_t added_count, added_capacity;
    int has_normal;                        /* some added token is to be found in the normalized text */
    int whole;                             /* some added token depends on more than its own bytes */
    int starts[2][256];                    /* of the added tokens, raw and normal: whether one begins with this byte */
    uint32_t joined[256][256 / 32];        /* whether a raw one holds these two bytes in a row */
    int inner_first[256], inner_last[256]; /* whether one holds this byte before another, after another */
    uint8_t classes[256];
    uint8_t lowered[128];
};

#endif
