/* Word vectors from an encoder: what it makes of every word when it reads the word alone. */
#ifndef SF_TRAIN_ENCODER_VECTORS_H
#define SF_TRAIN_ENCODER_VECTORS_H

#include "lexicon/vectors.h"

/* Whether the path names an encoder, not a file of vectors: a folder, or a file that ends in .safetensors or .onnx. */
int sf_encoder_named(const char *path);

/* Vectors of all of these words, of `dim` numbers, or of as many as the encoder has where these are fewer. */
safer_status sf_encoder_vectors(sf_vectors *out, const sf_words *words, const char *path, size_t dim,
                                const safer_train_options *options, safer_error *error);

#endif
