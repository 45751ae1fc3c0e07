/* What the classifier says of whole texts, any texts, many at once.
 *
 * The victim knows the texts that synonyms make of one text: they have its tokens. Here are others, with words put in
 * and taken out. The model itself is asked about all of them in batches. The smoothed classifier is asked by n draws of
 * each, with common random numbers: what happens to a token in draw i depends on the seed, the text under attack, the
 * token's bytes and how often they stood before, so that texts differ in what their different tokens do. Where draws
 * delete, most draws of a text and of one edited are then the same text, and no text is asked twice. */
#ifndef SF_ATTACK_POLL_H
#define SF_ATTACK_POLL_H

#include "attack/victim.h"

typedef struct sf_poll {
    sf_victim *victim;
    sf_stream stream;
    uint64_t max_queries; /* 0: any number */
    uint64_t queries;     /* texts that the model was asked about */
    int exhausted;        /* an answer was refused because max_queries were used up */

    /* Working memory. */
    sf_hashtable asked; /* of the texts below; a random model's answers are not looked up */
    uint64_t *hashes;   /* (count) */
    int *labels;        /* (count) */
    float *scores;      /* (count, classes), of the model itself */
    size_t count, hash_capacity, label_capacity, score_capacity;
    uint32_t *ballots; /* (texts, draws): their numbers above */
    size_t ballot_capacity, waiting;
    sf_hashtable lots;    /* of tokens, by hash and chance: */
    uint64_t *lot_hashes; /* (lot_count) */
    uint64_t *lot_bits;   /* (lot_count, n/64 up): bit i is 1 where draw i keeps the token */
    size_t lot_count, lot_hash_capacity, lot_bit_capacity;
    sf_slots slots;
    sf_sampler sampler;
    sf_folder folder;
    uint32_t *draw;
    uint64_t *tokens; /* hashes of the text's tokens, or of its words where nothing is deleted */
    uint32_t *token_lots;
    size_t draw_capacity, token_capacity, token_lot_capacity;
    sf_buffer text;
} sf_poll; /* zero-initialise; reused from text to text */

void sf_poll_free(sf_poll *poll);

/* Begins with the text that the victim has read. */
void sf_poll_begin(sf_poll *poll, sf_victim *victim, uint64_t max_queries);

/* Answers about `count` texts, for the class that must not win. They come in order; *answered is less than count when
 * max_queries do not suffice. */
safer_status sf_poll_ask(sf_answer *answers, size_t *answered, sf_poll *poll, const sf_span *texts, size_t count,
                         int target, safer_error *error);

#endif
