/* Fresh draws of texts, for training: one row of the data after the other is read, its slots
 * drawn, and the result written out. */
#ifndef SF_DRAW_DRAWN_H
#define SF_DRAW_DRAWN_H

#include "draw/sampler.h"

/* Working memory of one thread. Zero-initialise. */
typedef struct sf_drawn {
    sf_slots slots;
    sf_sampler sampler;
    uint32_t *draws;
    size_t capacity;
    sf_buffer text; /* the result */
} sf_drawn;

void sf_drawn_free(sf_drawn *drawn);

/* drawn->text = the text with sample `sample` of the training stage in every slot, none when lexicon is NULL;
 * tokens are deleted besides, or but one group of them, which differs from sample to sample. */
safer_status sf_drawn_text(sf_drawn *drawn, const safer_lexicon *lexicon, const char *text, size_t length,
                           safer_deletion deletion, uint64_t seed, uint64_t sample, safer_error *error);

#endif
