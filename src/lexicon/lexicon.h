/* The lexicon object: a read-only image, read from a .lex file or just assembled. */
#ifndef SF_LEXICON_LEXICON_H
#define SF_LEXICON_LEXICON_H

#include "base/file.h"
#include "base/sha256.h"
#include "base/words.h"
#include "lexicon/graph.h"
#include "lexicon/kernel.h"
#include "text/fold.h"

struct safer_lexicon {
    sf_file image;
    sf_digest sha256; /* of the image */
    char *name;       /* of its file; NULL: it was made here */
    sf_words_view words;
    const uint64_t *counts;          /* words */
    const uint64_t *synonym_offsets; /* words+1 */
    const uint32_t *synonyms;        /* without the word itself, ascending */
    const float *similarity;         /* parallel to synonyms, or NULL */
    const uint32_t *component;       /* words */
    sf_kernel_view kernel;
    int shadow;                   /* the kernel is not the file's, and another for every text (attack/shadow.h) */
    uint32_t *equal;              /* kernel rows: the weight that all words of a row have, or 0: they differ; owned */
    const double *overlap;        /* words, rounded down */
    const uint32_t *worst;        /* words */
    const uint32_t *vector_words; /* ascending: the words that have a vector */
    const float *vectors;         /* (vector_count, vector_dim) */
    uint32_t vector_count, vector_dim;
    int directed;
    const char *kernel_name; /* "topk:100" */
    const char *provenance;  /* JSON */
    int folds;               /* texts are read as Phi(text) by all who read them with this lexicon (draw/slots.h): */
    safer_fold phi;          /* what Phi is, */
    sf_span fold_table;      /* where it stands, */
    sf_digest fold_sha256;   /* and its digest */
};

/* The fold of a lexicon, or NULL. */
static inline const sf_fold *sf_lexicon_fold(const safer_lexicon *lexicon)
{
    return lexicon->folds ? &lexicon->phi.fold : NULL;
}

/* The checksum at the end of its image: what names a lexicon in runs of format 1. */
uint64_t sf_lexicon_hash(const safer_lexicon *lexicon);

/* What a lexicon is assembled from. All arrays are copied. */
typedef struct sf_lexicon_parts {
    const sf_words *words;
    const uint64_t *counts; /* NULL: all 0 */
    const sf_graph *graph;
    const sf_kernel *kernel;
    const double *overlap;
    const uint32_t *worst;
    const float *const *rows; /* words: the vector of each, or NULL. May be NULL */
    size_t dim;
    int directed;
    const char *kernel_name, *provenance;
    sf_span fold; /* its table; empty: none */
} sf_lexicon_parts;

safer_status sf_lexicon_assemble(safer_lexicon **out, const sf_lexicon_parts *parts, safer_error *error);

/* Checks an image and points a lexicon into it; takes the image over on success only. */
safer_status sf_lexicon_from_image(safer_lexicon **out, sf_file *image, const char *name, safer_error *error);

/* The same, and checks what certificates rest on too: for an image from anybody. The image, which must be aligned as
 * files are when they are loaded, may be taken over on failure as well; it is then freed. */
safer_status sf_lexicon_parse(safer_lexicon **out, sf_file *image, const char *name, safer_error *error);

/* Whether so few words can change that certificates say little: fewer than a tenth, of 100 at least. */
int sf_few_words(size_t changeable, size_t words);

#endif
