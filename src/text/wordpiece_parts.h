/* BERT's tokenizer, from the inside. */
#ifndef SF_TEXT_WORDPIECE_PARTS_H
#define SF_TEXT_WORDPIECE_PARTS_H

#include "base/table.h"
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
int sf_bert_undivided(uint32_t code); /* younger than its tables: not taken apart, nor put together */
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
    sf_hashtable edges; /* parent << 8 | byte, which is the tag, to the child */
    uint32_t *values;   /* of each node: a number, or SF_NONE */
    size_t nodes, capacity;
} sf_tree;

static inline uint32_t sf_tree_edge(uint32_t node, unsigned char byte) { return node << 8 | byte; }

/* The node below, or SF_NONE. */
static inline uint32_t sf_tree_step(const sf_tree *tree, uint32_t node, unsigned char byte)
{
    return sf_hashtable_first(&tree->edges, sf_tree_edge(node, byte));
}

/* Adds a string, unless it is there already. 0; -1 when memory is out, or nodes are. */
int sf_tree_add(sf_tree *tree, sf_root root, const char *bytes, size_t length, uint32_t value);

/* Pieces of at most 15 bytes that begin a pre-token, by themselves: most words of a text are
 * one of them, found at the first look. The key is the bytes, padded, and their number. */
enum { SF_SHORT = 15 };

typedef struct sf_short {
    uint64_t key[2];
    uint32_t id;
} sf_short;

typedef struct sf_shorts {
    sf_hashtable table; /* of the pieces' numbers */
    sf_short *pieces;
    size_t count, capacity;
} sf_shorts;

static inline uint32_t sf_short_tag(const uint64_t key[2])
{
    return sf_hashtable_tag(key[0] * UINT64_C(0x9e3779b97f4a7c15) + key[1] * UINT64_C(0xff51afd7ed558ccd));
}

/* The id of the piece with this key, or SF_NONE. */
static inline uint32_t sf_shorts_find(const sf_shorts *shorts, const uint64_t key[2])
{
    sf_hashtable_walk walk = sf_hashtable_find(&shorts->table, sf_short_tag(key));
    for (uint32_t i; (i = sf_hashtable_next(&shorts->table, &walk)) != SF_NONE;) {
        const sf_short *piece = &shorts->pieces[i];
        if (piece->key[0] == key[0] && piece->key[1] == key[1]) return piece->id;
    }
    return SF_NONE;
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
