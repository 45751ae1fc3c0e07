/* Texts as word numbers, ready to be drawn again and again.
 *
 * What training reads instead of text: every word that stays is its number in the model's
 * vocabulary, every slot the number of its word in the lexicon. */
#ifndef SF_TRAIN_TEXTS_H
#define SF_TRAIN_TEXTS_H

#include "lexicon/lexicon.h"
#include "lexicon/vectors.h"
#include "train/train.h"

typedef struct sf_texts {
    uint32_t *tokens;    /* a vocabulary number, or SF_TOKEN_SLOT | a lexicon word */
    size_t *offsets;     /* (count+1) */
    uint64_t *hashes;    /* (count): of the text, what its random stream depends on */
    int *labels;         /* (count) */
    uint32_t *deletions; /* (count): the chance that a draw deletes a word, of 2^32; NULL: none is deleted */
    size_t count, longest;
} sf_texts;

#define SF_TOKEN_SLOT UINT32_C(0x80000000)

/* The texts of a training run and the vocabulary made from them. */
typedef struct sf_textset {
    const safer_lexicon *lexicon; /* or NULL */
    sf_texts fit, dev;
    sf_words words;  /* word k has number k + 1; 0 is every unknown word */
    uint32_t *drawn; /* (lexicon words): their numbers, 0 for unknown ones */
    int deletes;     /* draws delete words; then texts are read whole, and draws cut */
    size_t groups;   /* draws keep the words of one of so many groups; 0: there are none */
    size_t limit;    /* words of a draw, at most */
} sf_textset;

/* Which words of the lexicon a vocabulary takes in beside those of the texts, for every word
 * that was seen: what can be drawn in its place, or the word and its synonyms. */
typedef enum sf_known { SF_KNOW_DRAWN, SF_KNOW_SYNONYMS } sf_known;

/* Words of a text that are read: options->max_words, or as many as a model can take. */
size_t sf_texts_limit(const safer_train_options *options);

/* Reads both parts of the split, of each text as much as sf_texts_limit says. The
 * vocabulary: words seen at least min_count times in the part that is learned from, and
 * words of the options' lexicon for all words seen there. */
safer_status sf_textset_read(sf_textset *out, const sf_train_split *split, sf_known known,
                             const safer_train_options *options, safer_error *error);
void sf_textset_free(sf_textset *corpus);

/* Text `index` with a draw in every slot, without the words that are deleted, as vocabulary numbers; returns how
 * many. `ids` has room for the whole text. */
size_t sf_textset_draw(uint32_t *ids, const sf_textset *corpus, const sf_texts *texts, size_t index, uint64_t seed,
                       uint64_t sample);

/* One batch of texts as a step reads it: text b is ids[offsets[b]] .. ids[offsets[b+1]-1]. Zeros at first. */
typedef struct sf_textbatch {
    uint32_t *ids;
    size_t *offsets; /* (size+1) */
    int *labels;     /* (size) */
    size_t size;     /* texts at most */
    size_t words;    /* at most: those of the longest texts together */
} sf_textbatch;

/* For any `size` of these texts, or all of them when there are fewer. */
safer_status sf_textbatch_new(sf_textbatch *out, const sf_texts *texts, size_t size, safer_error *error);
void sf_textbatch_free(sf_textbatch *batch);

/* Sets the offsets and labels of the chosen texts; the ids are for the caller to fill in. */
void sf_textbatch_choose(sf_textbatch *batch, const sf_texts *texts, const uint32_t *chosen, size_t count);

/* Where the texts turned out shorter: moves them together. lengths (count) */
void sf_textbatch_shorten(sf_textbatch *batch, const size_t *lengths, size_t count);

/* The vectors that the options' file, or encoder, has for the vocabulary, and their place in an embedding of
 * (vocabulary, dim): words that the file lacks keep what is there. */
safer_status sf_textset_vectors(sf_vectors *out, const sf_textset *corpus, const safer_train_options *options,
                                safer_error *error);
void sf_textset_place(float *embedding, const sf_textset *corpus, const sf_vectors *vectors);

#endif
