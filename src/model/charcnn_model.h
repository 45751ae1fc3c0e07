/* The `charcnn` classifier: what its class (charcnn.c) and its file (charcnn_file.c) share. */
#ifndef SF_MODEL_CHARCNN_MODEL_H
#define SF_MODEL_CHARCNN_MODEL_H

#include "model/charcnn.h"
#include "model/charcnn_net.h"

typedef struct sf_charcnn_model {
    safer_model base;
    sf_safetensors *file; /* what another precision is made from; owned */
    sf_charcnn_layout layout;
    sf_charcnn_net *net; /* owned */
} sf_charcnn_model;

extern const sf_model_class sf_charcnn_class;

void sf_charcnn_model_free(sf_charcnn_model *model); /* NULL is fine */

#endif
