/* The `charcnn` classifier: what its class (charcnn.c) and its file (charcnn_file.c) share. */
#ifndef SF_MODEL_CHARCNN_MODEL_H
#define SF_MODEL_CHARCNN_MODEL_H

#include "model/charcnn.h"
#include "model/charcnn_device.h"
#include "model/charcnn_net.h"

typedef struct sf_charcnn_model {
    safer_model base;
    sf_safetensors *file; /* what another precision or device is made from; owned */
    sf_charcnn_layout layout;
    sf_charcnn_net *net;       /* owned; NULL on a device */
    sf_charcnn_device *device; /* owned; NULL on the CPU */
} sf_charcnn_model;

extern const sf_model_class sf_charcnn_class;

safer_status sf_charcnn_set_device(safer_model *model, const char *device, safer_error *error);

void sf_charcnn_model_free(sf_charcnn_model *model); /* NULL is fine */

#endif
