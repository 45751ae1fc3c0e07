/* sentencepiece's own files (.model): a message in the form of Protocol Buffers.
 *
 * Of ModelProto are read: 1 pieces (1 piece, 2 score, 3 type), 2 trainer_spec (3 model_type, 40 unk_id), 3
 * normalizer_spec (2 precompiled_charsmap). All other fields are passed over. */
#ifndef SF_TEXT_SENTENCEPIECE_H
#define SF_TEXT_SENTENCEPIECE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdint.h>

typedef struct sf_sentencepiece_piece {
    sf_span text; /* valid UTF-8, not empty */
    float score;  /* finite */
    int type;     /* 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte */
} sf_sentencepiece_piece;

/* What a file holds; its bytes are borrowed. */
typedef struct sf_sentencepiece {
    sf_sentencepiece_piece *pieces;
    size_t count, capacity;
    uint64_t model_type; /* 1 Unigram, 2 BPE */
    uint64_t unk_id;
    sf_span charsmap;
} sf_sentencepiece;

/* `name` is for messages. The caller frees what it holds, also after a failure. */
safer_status sf_sentencepiece_read(sf_sentencepiece *out, const char *bytes, size_t length, const char *name,
                                   safer_error *error);
void sf_sentencepiece_free(sf_sentencepiece *model);

#endif
