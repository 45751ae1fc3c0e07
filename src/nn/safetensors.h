/* Model files: safetensors, as Python's `safetensors` reads and writes them.
 *
 *   1. 8 bytes: the length N of the header, little-endian.
 *   2. N bytes of JSON: {"name": {"dtype", "shape", "data_offsets"}, ..., "__metadata__":
 *      {string: string}}.
 *   3. The tensors' bytes; offsets count from here.
 *
 * Everything is checked before it is used: lengths, overlaps, gaps, shapes, types. */
#ifndef SF_NN_SAFETENSORS_H
#define SF_NN_SAFETENSORS_H

#include "base/file.h"
#include "base/sha256.h"

#include <stddef.h>
#include <stdint.h>

typedef enum sf_dtype { SF_F32, SF_F16, SF_BF16, SF_F64, SF_I64, SF_I32, SF_U32, SF_U8 } sf_dtype;

typedef struct sf_tensor {
    const char *name;
    sf_dtype type;
    size_t rank, shape[8];
    size_t count; /* the product of the shape */
    const void *bytes;
    int strided;       /* views in files of PyTorch: values do not lie row after row, but */
    size_t strides[8]; /* so many values apart */
} sf_tensor;

typedef struct sf_safetensors sf_safetensors;

/* Maps a file. Tensors point into it and are numbered in the order they lie there. Each
 * is aligned to its element size when this library wrote the file; in others it may not
 * be: sf_safetensors_require refuses such a tensor, sf_tensor_to_f32 copies it. */
safer_status sf_safetensors_open(sf_safetensors **out, const char *path, safer_error *error);
/* The same from memory, which is taken over on success only. */
safer_status sf_safetensors_parse(sf_safetensors **out, sf_file *image, const char *name, safer_error *error);
void sf_safetensors_free(sf_safetensors *file);

size_t sf_safetensors_count(const sf_safetensors *file);
const sf_tensor *sf_safetensors_at(const sf_safetensors *file, size_t index);
const sf_tensor *sf_safetensors_find(const sf_safetensors *file, const char *name); /* or NULL */
const char *sf_safetensors_metadata(const sf_safetensors *file, const char *key);   /* or NULL */
uint64_t sf_safetensors_hash(const sf_safetensors *file);                           /* of the whole file */
safer_status sf_safetensors_sha256(sf_digest *out, const sf_safetensors *file, safer_error *error);
const char *sf_safetensors_name(const sf_safetensors *file); /* for messages */

/* The tensor, which must have this type and shape and be aligned to its elements; the
 * error names file, tensor and what was found. A dimension of SIZE_MAX matches anything. */
safer_status sf_safetensors_require(const sf_tensor **out, const sf_safetensors *file, const char *name, sf_dtype type,
                                    size_t rank, const size_t *shape, safer_error *error);

/* Copies F32, F16, BF16 or F64 values to floats; NaN and infinity are errors that name
 * file and tensor. */
safer_status sf_tensor_to_f32(float *out, const sf_tensor *tensor, const sf_safetensors *file, safer_error *error);
/* The same for a tensor from anywhere; `file` is its name. */
safer_status sf_tensor_floats(float *out, const sf_tensor *tensor, const char *file, safer_error *error);

/* Writing, whole or not at all. The data begin at a multiple of 64 bytes; the format allows
 * no gaps, so tensors lie in order of falling element size (else in the given order) and
 * each is aligned to its element size. Names are distinct, all strings UTF-8. The same
 * input gives the same bytes. */
typedef struct sf_metadata {
    const char *key, *value;
} sf_metadata;

safer_status sf_safetensors_write(const char *path, const sf_tensor *tensors, size_t count, const sf_metadata *metadata,
                                  size_t metadata_count, safer_error *error);

#endif
