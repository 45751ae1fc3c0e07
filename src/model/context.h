/* The `context` classifier, from the inside: for this room and for train. context_sum.h says what it is. */
#ifndef SF_MODEL_CONTEXT_H
#define SF_MODEL_CONTEXT_H

#include "base/words.h"
#include "model/bert.h"
#include "model/context_sum.h"

/* -------------------------------------------------------------- reading texts */

/* What makes contexts; borrowed. */
typedef struct sf_context_encoder {
    const sf_piecer *piecer;
    const sf_bert_layout *layout; /* of the encoder, which is computed */
    const sf_bert_net *net;       /* on the CPU, */
    sf_bert_device *device;       /* or, unless NULL, on devices */
    size_t size;                  /* numbers of a context */
    const float *mean;            /* (hidden) */
    const float *projection;      /* (size, hidden) */
} sf_context_encoder;

/* A text in its canonical form. Zero-initialise; reused from text to text. */
typedef struct sf_context_text {
    sf_buffer canonical;
    size_t *ends; /* (words): where each word ends there */
    size_t words;
    /* Once it has been encoded: */
    size_t *pieces;      /* (words+1): word i has the pieces pieces[i] .. pieces[i+1]-1 of those that are read */
    size_t first, count; /* the words from the first to the last that has one */
    float *contexts;     /* (count, size) */
    size_t end_capacity, piece_capacity, context_capacity;
} sf_context_text;

void sf_context_text_free(sf_context_text *text);

/* A text that was read with a canonical lexicon. -1 without memory. */
int sf_context_text_set(sf_context_text *text, const sf_slots *slots, const safer_lexicon *lexicon);

/* Whether two texts are the same to the encoder. */
int sf_context_text_same(const sf_context_text *a, const sf_context_text *b);

static inline sf_contexts sf_contexts_of(const sf_context_text *text, size_t size)
{
    return (sf_contexts){text->contexts, text->first, text->count, size, text->words};
}

/* Working memory of one thread. Zero-initialise. */
enum { SF_CONTEXT_GROUP = 8 /* texts encoded together: enough rows to fill the products */ };
typedef struct sf_context_reader {
    sf_bert_scratch *bert; /* made when it is first needed; on a device never */
    sf_piecer_scratch piecer;
    sf_ids encoded; /* the pieces of one text */
    sf_ids ids;     /* of all texts in their frames */
    float *means;   /* of all words that have a piece, text by text */
    size_t mean_capacity;
} sf_context_reader;

void sf_context_reader_free(sf_context_reader *reader);

/* Encodes up to SF_CONTEXT_GROUP texts: sets their pieces and contexts. Without a projection (NULL) there are no
 * contexts; reader->means then has the vectors themselves, (count, hidden) of text after text. A text's are the same to
 * the last bit whatever the others are. */
safer_status sf_context_encode(sf_context_text *const *texts, size_t count, const sf_context_encoder *encoder,
                               sf_context_reader *reader, safer_error *error);

/* ----------------------------------------------------- the model, its file */

typedef struct sf_context_model {
    safer_model base;
    safer_lexicon *lexicon;
    sf_words words;             /* word k has number k + 1 */
    sf_bert_checkpoint encoder; /* without classes */
    sf_bert_net *net;           /* of it; NULL on a device */
    sf_bert_device *device;     /* NULL on the CPU */
    float *mean, *projection;   /* as in sf_context_encoder */
    float *parameters;          /* of the sum */
    sf_context_sum sum;
} sf_context_model;

void sf_context_model_free(sf_context_model *model);

/* Everything a file has. */
typedef struct sf_context_parts {
    const sf_bert_layout *layout; /* of the encoder; without classes */
    const float *encoder;         /* its parameters */
    const sf_piecer *piecer;
    const safer_lexicon *lexicon;
    const sf_words *words;
    const float *mean, *projection;
    sf_context_sum sum;
} sf_context_parts;

safer_status sf_context_save(const char *path, const sf_context_parts *parts, const char *labels,
                             const char *trained_with, safer_error *error);

#endif
