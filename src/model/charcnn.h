/* The `charcnn` classifier, as other rooms and its file see it.
 *
 * What it computes is in model/charcnn_layout.h. Inside, a text becomes codes (charcnn_codes.h), the
 * codes pass through the convolutions (charcnn_pass.h) and the dense layers of the net
 * (charcnn_net.h), and what comes out is a class (charcnn_answer.h); training uses these headers
 * too. sf_charcnn_open is in model/model.h. */
#ifndef SF_MODEL_CHARCNN_H
#define SF_MODEL_CHARCNN_H

#include "model/model.h"

struct sf_charcnn_layout;
struct sf_charcnn_net;

/* Products in SF_BF16, as when it is opened, or SF_F32. */
safer_status sf_charcnn_set_precision(safer_model *model, safer_precision precision, safer_error *error);

/* The weights that answer, the model's own: valid until it is freed or its precision or device set. NULL on a
 * device. */
const struct sf_charcnn_net *sf_charcnn_net_of(const safer_model *model);

/* Writes a model file. labels and trained_with: JSON for the metadata. */
safer_status sf_charcnn_save(const char *path, const struct sf_charcnn_layout *layout, const float *parameters,
                             const char *labels, const char *trained_with, safer_error *error);

#endif
