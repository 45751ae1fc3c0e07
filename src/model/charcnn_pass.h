/* The `charcnn` classifier: texts on their way through the convolutions.
 *
 * For the files of charcnn here and in training. */
#ifndef SF_MODEL_CHARCNN_PASS_H
#define SF_MODEL_CHARCNN_PASS_H

#include "model/charcnn_net.h"

/* Some texts on their way through the convolutions. Their rows lie one after the other;
 * at stages A and B a text has `rows` rows, of which the first `used` depend on its
 * characters and the rest are blank frames. Frames at the seams between texts, computed
 * from both, are never read. */
typedef struct sf_charcnn_extent {
    size_t used[SF_CHARCNN_STAGES]; /* frames that depend on the characters */
    size_t rows[SF_CHARCNN_C];      /* kept at A and B */
    size_t first[SF_CHARCNN_C];     /* where they begin */
} sf_charcnn_extent;

typedef struct sf_charcnn_pass {
    size_t capacity, count;
    size_t total[SF_CHARCNN_C]; /* rows at A and B */
    sf_charcnn_extent *extents; /* (capacity) */
    int keep;                   /* for the backward pass: what follows is kept apart */
    void *frames[SF_CHARCNN_C]; /* (rows, F) of stages A and B */
    void *between[3];           /* (rows of B, F): after the third, fourth and fifth convolution */
    void *raw;                  /* (rows, F) before pooling */
    uint8_t *which[SF_CHARCNN_STAGES];
} sf_charcnn_pass;

safer_status sf_charcnn_pass_new(sf_charcnn_pass **out, const sf_charcnn_net *net, size_t texts, int keep,
                                 safer_error *error);
void sf_charcnn_pass_free(sf_charcnn_pass *pass);

/* Sends `count` texts through: codes (count, L), blank where a text has ended; lengths
 * (count), at most L each. out (count, inputs) of the net's type. */
void sf_charcnn_pass_run(sf_charcnn_pass *pass, void *out, const sf_charcnn_net *net, const uint8_t *codes,
                         const size_t *lengths, size_t count);

/* Computes the blank frames of a net whose weights were loaded. */
void sf_charcnn_pass_blanks(sf_charcnn_net *net);

#endif
