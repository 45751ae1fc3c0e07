/* Tokenizers from the inside: what the steps are made of. See tokenizer.h for how they follow each other; each kind of
 * step has its file, named there. */
#ifndef SF_TEXT_TOKENIZER_PARTS_H
#define SF_TEXT_TOKENIZER_PARTS_H

#include "base/file.h"
#include "base/memory.h"
#include "base/words.h"
#include "text/charsmap.h"
#include "text/forms.h"
#include "text/regex.h"
#include "text/tokenizer.h"
#include "text/trie.h"

#include <jansson.h>

/* ------------------------------------------------------------ vocabulary */

/* Pieces and their numbers, both ways apart. */
typedef struct sf_vocabulary {
    sf_words pieces;
    uint32_t *ids; /* of each piece */
    size_t capacity;
    size_t size; /* largest id + 1 */
} sf_vocabulary;

uint32_t sf_vocabulary_find(const sf_vocabulary *vocabulary, const char *bytes, size_t length); /* or SF_NONE */
/* Adds a piece; of one that is there the id changes. */
safer_status sf_vocabulary_add(sf_vocabulary *vocabulary, const char *bytes, size_t length, uint32_t id,
                               safer_error *error);
/* From "vocab" of a model: pieces with a number each, none of them twice. */
safer_status sf_vocabulary_read(sf_vocabulary *out, const json_t *model, const char *name, safer_error *error);
void sf_vocabulary_free(sf_vocabulary *vocabulary);

/* ------------------------------------------------------------- normalizer */

typedef enum sf_normal_kind {
    SF_NORMAL_FORM,       /* NFC, NFD, NFKC, NFKD */
    SF_NORMAL_LOWER,      /* Lowercase */
    SF_NORMAL_MARKS,      /* StripAccents */
    SF_NORMAL_NONSPACING, /* BertNormalizer's strip_accents, behind NFD */
    SF_NORMAL_CLEAN,      /* BertNormalizer's clean_text */
    SF_NORMAL_IDEOGRAPHS, /* BertNormalizer's handle_chinese_chars */
    SF_NORMAL_STRIP,
    SF_NORMAL_NMT,
    SF_NORMAL_PREPEND,
    SF_NORMAL_REPLACE,
    SF_NORMAL_BYTES, /* ByteLevel */
    SF_NORMAL_CHARSMAP,
} sf_normal_kind;

typedef struct sf_normal {
    sf_normal_kind kind;
    sf_form form;
    int left, right;  /* STRIP */
    char *content;    /* PREPEND, REPLACE; owned, as are the two below */
    size_t length;    /* of it */
    sf_regex *regex;  /* REPLACE */
    sf_charsmap *map; /* CHARSMAP */
} sf_normal;

void sf_normal_free(sf_normal *normal);

/* A text on its way. */
typedef struct sf_passage {
    const char *bytes;
    size_t length;
    size_t head; /* how many of its first bytes stem from the first character of the whole text */
} sf_passage;

/* Applies one step. The result lies in `to`, or where it was when nothing changed. -1 without memory. */
int sf_normal_apply(const sf_normal *normal, sf_passage *passage, sf_buffer *to, sf_ids *points);

/* ---------------------------------------------------------- pre-tokenizer */

typedef enum sf_cut_kind {
    SF_CUT_BYTES,     /* ByteLevel's spelling of bytes; last, and done by the model */
    SF_CUT_PREFIX,    /* a space, or Metaspace's sign, in front where none is */
    SF_CUT_METASPACE, /* spaces become the sign */
    SF_CUT_REGEX,     /* Split, and ByteLevel's own */
    SF_CUT_CHARACTER, /* Metaspace's sign, CharDelimiterSplit */
    SF_CUT_SPACE,     /* WhitespaceSplit */
    SF_CUT_WORDS,     /* Whitespace: words, and what is neither word nor space */
    SF_CUT_PUNCTUATION,
    SF_CUT_DIGITS,
} sf_cut_kind;

typedef enum sf_behavior { SF_REMOVED, SF_ISOLATED, SF_WITH_PREVIOUS, SF_WITH_NEXT, SF_CONTIGUOUS } sf_behavior;

typedef struct sf_cut {
    sf_cut_kind kind;
    sf_behavior behavior;
    int invert;
    int first;                /* PREFIX: only at the beginning of the text */
    char sign[5];             /* PREFIX, METASPACE, CHARACTER; terminated */
    sf_regex *regex;          /* owned */
    unsigned char ascii[128]; /* what matches, where single characters do */
} sf_cut;

void sf_cut_free(sf_cut *cut);

typedef struct sf_stretch {
    size_t begin, end;
    size_t head; /* as that of a passage */
} sf_stretch;

typedef struct sf_stretches {
    sf_stretch *list;
    size_t count, capacity;
} sf_stretches;

/* A text and the stretches that are left of it. */
typedef struct sf_cuttings {
    sf_passage passage;
    sf_stretches stretches;
    size_t skips; /* the first stretch gets no prefix so many times more */
} sf_cuttings;

/* Working memory of cutting. */
typedef struct sf_cut_scratch {
    sf_buffer buffers[2];
    sf_stretches marks;
    sf_stretches other;
} sf_cut_scratch;

/* Applies one step to all stretches. -1 without memory. */
int sf_cut_apply(const sf_cut *cut, sf_cuttings *cuttings, sf_cut_scratch *scratch);

/* Whether a step that looks at single characters matches this one. */
int sf_cut_matches(const sf_cut *cut, uint32_t code);

/* ------------------------------------------------------------------ models */

typedef struct sf_symbol {
    uint32_t id;
    uint32_t length; /* 0: merged into the one before */
    uint32_t previous, next;
} sf_symbol;

typedef struct sf_candidate {
    uint64_t order; /* rank << 32 | place */
    uint32_t left, right;
} sf_candidate;

typedef struct sf_merge {
    uint32_t left, right, rank, id; /* rank SF_NONE: free */
} sf_merge;

typedef struct sf_bpe {
    sf_merge *merges; /* open addressing */
    size_t size;      /* a power of two */
    char *prefix, *suffix;
    uint32_t unk;
    uint32_t bytes[256];    /* ByteLevel's piece of every byte, or SF_NONE */
    uint32_t fallback[256]; /* <0x..>, or SF_NONE */
    int byte_level, byte_fallback, fuse_unk, ignore_merges;
    int signs;                  /* words may be encoded apart before U+2581, */
    unsigned char crosses[256]; /* but not behind these bytes: a merge leads across */
} sf_bpe;

typedef struct sf_unigram {
    sf_trie trie; /* values are places in scores */
    double *scores;
    size_t count;
    double unk_score;
    uint32_t unk;
    uint32_t fallback[256];
    int byte_fallback;
    int signs;                  /* as of sf_bpe: every way through a text passes the place before U+2581, */
    unsigned char crosses[256]; /* but not behind these bytes: a piece leads across */
} sf_unigram;

typedef struct sf_wordpieces {
    sf_trie start, rest;
    uint32_t unk;
    size_t longest; /* characters */
} sf_wordpieces;

typedef struct sf_best {
    double score;
    uint32_t id;
    uint32_t begin; /* SF_NONE: not reached */
} sf_best;

typedef struct sf_model_scratch {
    sf_symbol *symbols;
    sf_candidate *heap;
    sf_best *best;
    size_t symbol_count, symbol_capacity, heap_count, heap_capacity, best_capacity;
    sf_buffer spelled;
} sf_model_scratch;

typedef enum sf_model_kind { SF_MODEL_BPE, SF_MODEL_UNIGRAM, SF_MODEL_WORDPIECE, SF_MODEL_WORDLEVEL } sf_model_kind;

int sf_bpe_encode(sf_ids *out, const sf_bpe *bpe, const sf_vocabulary *vocabulary, const char *word, size_t length,
                  sf_model_scratch *scratch);
/* Where U+2581 is in a word, but not behind such bytes: how many bytes are before it; else all. */
size_t sf_sign_apart(const unsigned char crosses[256], const char *word, size_t length);
/* Notes which bytes a piece has before U+2581. */
void sf_sign_note(unsigned char crosses[256], const char *piece, size_t length);

/* How many bytes of a word can be encoded apart from the rest, at least 1: models without a pre-tokenizer get whole
 * texts as one word. */
size_t sf_bpe_apart(const sf_bpe *bpe, const char *word, size_t length);
/* Where every way through a text passes, the text can be taken apart if sums go on: *sum is that of the scores before
 * the word, and then with it. *sure: the pieces are the same for all sums up to SF_UNIGRAM_SUM, and they alone make up
 * the way. */
int sf_unigram_encode(sf_ids *out, const sf_unigram *unigram, const char *word, size_t length, double *sum, int *sure,
                      sf_model_scratch *scratch);
size_t sf_unigram_apart(const sf_unigram *unigram, const char *word, size_t length); /* as sf_bpe_apart */
#define SF_UNIGRAM_SUM 1e6
int sf_wordpieces_encode(sf_ids *out, const sf_wordpieces *model, const char *word, size_t length);

/* Reads a model's description; `name` is for messages. */
safer_status sf_bpe_read(sf_bpe *out, sf_vocabulary *vocabulary, const json_t *model, const char *name,
                         safer_error *error);
safer_status sf_unigram_read(sf_unigram *out, sf_vocabulary *vocabulary, const json_t *model, const char *name,
                             safer_error *error);
safer_status sf_wordpieces_read(sf_wordpieces *out, sf_vocabulary *vocabulary, const json_t *model, const char *name,
                                safer_error *error);
safer_status sf_wordlevel_read(uint32_t *unk, sf_vocabulary *vocabulary, const json_t *model, const char *name,
                               safer_error *error);
void sf_bpe_free(sf_bpe *bpe);
void sf_unigram_free(sf_unigram *unigram);
void sf_wordpieces_free(sf_wordpieces *model);

/* ------------------------------------------------------------ added tokens */

typedef struct sf_added_token {
    uint32_t id;
    int single;      /* only where no word is next to it */
    int left, right; /* with the white space there */
} sf_added_token;

/* Those of one kind: found as they stand, or in the normalized text. */
typedef struct sf_added_set {
    sf_trie trie; /* values are places in the list */
    int any;
} sf_added_set;

typedef struct sf_added_match {
    size_t begin, end;
    uint32_t id;
} sf_added_match;

/* The first that counts at or behind *at; `from` is where the last one ended. *at moves on. Whether there is one. */
int sf_added_find(sf_added_match *out, const sf_added_set *set, const sf_added_token *tokens, const char *text,
                  size_t length, size_t from, size_t *at);

/* --------------------------------------------------------------- the whole */

struct sf_tokenizer {
    sf_vocabulary vocabulary; /* of the model, and then added tokens besides */
    size_t size;
    sf_normal *normals;
    size_t normal_count, normal_capacity;
    sf_cut *cuts;
    size_t cut_count, cut_capacity;
    sf_model_kind kind;
    sf_bpe bpe;
    sf_unigram unigram;
    sf_wordpieces wordpieces;
    uint32_t wordlevel_unk;
    sf_added_token *added;
    size_t added_count, added_capacity;
    sf_added_set raw, normal;
    sf_vocabulary added_names;
    sf_ids frame; /* what stands before, then what stands behind */
    size_t before;
    size_t longest;
    int ending; /* longer texts lose their beginning */
    uint32_t pad;
    sf_buffer text; /* the description, as sf_tokenizer_parse reads it */
};

/* A file of a tokenizer, which must not be huge: sizes of files are foreign too. */
safer_status sf_tokenizer_load(sf_file *out, const char *path, safer_error *error);

/* Builds a tokenizer from its description. */
safer_status sf_tokenizer_build(sf_tokenizer **out, json_t *root, const char *name, safer_error *error);

/* The description that transformers makes of a sentencepiece model. The caller releases *out. */
safer_status sf_tokenizer_describe_sentencepiece(json_t **out, const char *bytes, size_t length, const char *type,
                                                 const char *name, safer_error *error);

/* The normalizer and pre-tokenizer of a description. */
safer_status sf_tokenizer_read_normalizer(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error);
safer_status sf_tokenizer_read_cuts(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error);
safer_status sf_tokenizer_read_added(sf_tokenizer *t, const json_t *list, const char *name, safer_error *error);
safer_status sf_tokenizer_read_frame(sf_tokenizer *t, const json_t *value, const char *name, safer_error *error);

/* That of two buffers in which the bytes do not lie. */
sf_buffer *sf_tokenizer_other(sf_buffer buffers[2], const char *bytes);

/* What ByteLevel spells a byte as: the length, 1 or 2. */
size_t sf_byte_spelled(unsigned char byte, char out[2]);

/* Members of a description. Missing and null give what is the default. */
safer_status sf_json_flag(int *out, const json_t *object, const char *key, int missing, const char *name,
                          safer_error *error);
safer_status sf_json_string(const char **out, size_t *length, const json_t *object, const char *key, const char *name,
                            safer_error *error);
/* The type of a part ("normalizer"), a string. */
safer_status sf_json_type(const char **out, const json_t *object, const char *part, const char *name,
                          safer_error *error);

#endif
