/* Weights as PyTorch's torch.save writes them (pytorch_model.bin), read without executing anything.
 *
 *   1. A zip file whose entries are stored, not compressed, all below one folder (base/zip.h).
 *   2. FOLDER/data.pkl: a pickle (nn/pickle.h) of a dictionary, name -> tensor, also collections.OrderedDict. A tensor
 *      is the call torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks), a parameter
 *      torch._utils._rebuild_parameter(tensor, requires_grad, hooks), and a storage the persistent id
 *      ("storage", torch.FloatStorage or another, key, device, number of values).
 *   3. FOLDER/data/KEY: the values of a storage. Several tensors may be views of one.
 *   4. FOLDER/byteorder: "little". Others (version, .data/serialization_id) say nothing that is needed.
 *
 * What is not of this form is refused by name; the form before PyTorch 1.6, which is no zip file, with how to convert
 * it. */
#ifndef SF_NN_TORCHFILE_H
#define SF_NN_TORCHFILE_H

#include "nn/safetensors.h"

typedef struct sf_torchfile sf_torchfile;

/* From memory, which is taken over on success only; `name` is for messages. */
safer_status sf_torchfile_parse(sf_torchfile **out, sf_file *image, const char *name, safer_error *error);
void sf_torchfile_free(sf_torchfile *file);

/* Tensors in the order of the dictionary; views may have strides. */
size_t sf_torchfile_count(const sf_torchfile *file);
const sf_tensor *sf_torchfile_at(const sf_torchfile *file, size_t index);
const char *sf_torchfile_name(const sf_torchfile *file); /* for messages */

#endif
