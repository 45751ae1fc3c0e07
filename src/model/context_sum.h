/* The `context` classifier, for the rooms that ask it and bound it: what it adds up. context.h has the rest.
 *
 * It adds up a number for every word of the text, a score of the word itself in the context of the canonical text
 * (model/canonical.h). Exchanging a word for a synonym of the model's lexicon changes that word's number alone: no
 * context, and no other word's number. So the worst case over all choices of synonyms is a minimum for every word, and
 * over R of them the R lowest of what each can take.
 *
 *   - The text is read with the model's lexicon; an encoder reads its canonical form word by word. Part i is what
 *     stands from the end of word i-1 to the end of word i, the last part what follows the last word; their pieces are
 *     put together, as many as the encoder reads of a text.
 *   - h_i is the mean of the last layer's vectors of part i, and g_i = projection (h_i - mean) the context of word i:
 *     `size` numbers. A word without a piece that is read has none: 0.
 *   - Word x in context g gives output o the number
 *         words[x][o] + the sum over j of (common[o][j] + each[x][o][j]) g[j],
 *     divided by how many words the text has; an output has its bias besides. Two classes have one output, the lead of
 *     class 1 over class 0; more have one each. The class with the greatest sum wins, the first of equal ones.
 *
 * What is added up are whole numbers of 2^-SF_CONTEXT_BITS: sf_context_word and sf_context_bias make them, for answers
 * and for bounds. The number before it is divided is cut at SF_CONTEXT_MOST either way, so N words give less than
 * 2^50 + N, a bias 2^50 at most, and a class fewer than 2^52 units: no sum overflows 64 bits, and leads are exact in
 * double. */
#ifndef SF_MODEL_CONTEXT_SUM_H
#define SF_MODEL_CONTEXT_SUM_H

#include "model/model.h"

enum { SF_CONTEXT_BITS = 30, SF_CONTEXT_LARGEST = 256 /* numbers of a context */ };
#define SF_CONTEXT_MOST 0x1p20

typedef struct sf_context_shape {
    size_t vocabulary; /* with the unknown word, number 0 */
    size_t classes;
    size_t outputs; /* 1 for two classes, else their number */
    size_t size;    /* numbers of a context */
} sf_context_shape;

/* Where the trained numbers lie in one array. */
typedef struct sf_context_layout {
    sf_context_shape shape;
    size_t bias;   /* (outputs) */
    size_t words;  /* (vocabulary, outputs) */
    size_t common; /* (outputs, size) */
    size_t each;   /* (vocabulary, outputs, size) */
    size_t total;  /* all of them */
} sf_context_layout;

/* Of the classes, the vocabulary and the size. */
void sf_context_layout_make(sf_context_layout *out, size_t classes, size_t vocabulary, size_t size);

/* The trained numbers, and where they lie. */
typedef struct sf_context_sum {
    sf_context_layout layout;
    const float *parameters; /* (layout.total), finite; borrowed */
} sf_context_sum;

/* The contexts of the words of a text: `count` words from `first` on have some. */
typedef struct sf_contexts {
    const float *values; /* (count, size), finite */
    size_t first, count, size;
    size_t words; /* of the text */
} sf_contexts;

/* That of word i; NULL: it has none. */
static inline const float *sf_context_at(sf_contexts contexts, size_t i)
{
    return i >= contexts.first && i - contexts.first < contexts.count
               ? contexts.values + (i - contexts.first) * contexts.size
               : NULL;
}

/* What a word gives an output in the place of word i of a text with these contexts; what the bias gives it. */
int64_t sf_context_word(const sf_context_sum *sum, uint32_t word, sf_contexts contexts, size_t i, size_t output);
int64_t sf_context_bias(const sf_context_sum *sum, size_t output);

/* By how much these put class y ahead of class c. */
int64_t sf_context_word_lead(const sf_context_sum *sum, uint32_t word, sf_contexts contexts, size_t i, size_t y,
                             size_t c);
int64_t sf_context_bias_lead(const sf_context_sum *sum, size_t y, size_t c);

/* ------------------------------------------------------------------ of a model */

extern const sf_model_class sf_context_class;
static inline int sf_context_is(const safer_model *model) { return model->class == &sf_context_class; }

/* Of a model that is one: what it adds up, the lexicon it reads texts with, and the number of a word (its key) in its
 * vocabulary, 0 when it is unknown. */
const sf_context_sum *sf_context_sum_of(const safer_model *model);
const safer_lexicon *sf_context_lexicon(const safer_model *model);
uint32_t sf_context_number(const safer_model *model, const char *key, size_t length);

/* Of the last text that was answered with a scratch: what every class got (classes), and the contexts of its words. */
const int64_t *sf_context_said(const void *scratch);
sf_contexts sf_context_answered(const void *scratch);

#endif
