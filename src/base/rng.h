/* Philox 4x32-10 (Salmon et al., SC 2011): a counter-based generator.
 *
 * A draw is a pure function of (seed, text, stage, sample, slot): nothing depends on
 * the order in which draws are made, so any number of threads, any batch size and any
 * restart give the same samples. */
#ifndef SF_BASE_RNG_H
#define SF_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* What the randomness is for; streams of different stages are independent. */
typedef enum sf_stage {
    SF_STAGE_SELECTION = 1,     /* choosing the class to certify */
    SF_STAGE_CERTIFICATION = 2, /* the certificate's own samples */
    SF_STAGE_TRAINING = 3,
    SF_STAGE_ATTACK = 4,  /* the draws that an attack on the smoothed classifier looks at */
    SF_STAGE_DATA = 5,    /* drawing rows of a data set */
    SF_STAGE_SEARCH = 6,  /* an attack's own choices */
    SF_STAGE_RECHECK = 7, /* fresh draws that confirm or refute what an attack found */
} sf_stage;

typedef struct sf_stream {
    uint32_t key[2];
} sf_stream;

/* The bare bijection: out = philox(counter, key). */
void sf_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

sf_stream sf_stream_of(uint64_t seed, uint64_t text_hash, sf_stage stage);

/* Uniform on 0 .. bound-1, without bias (Lemire's multiplication with rejection).
 * bound >= 1. */
uint32_t sf_draw_below(sf_stream stream, uint64_t sample, uint32_t slot, uint32_t bound);

/* Uniform on [0,1) with 53 bits. */
double sf_draw_unit(sf_stream stream, uint64_t sample, uint32_t slot);

#endif
