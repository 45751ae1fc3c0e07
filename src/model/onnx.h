/* ONNX files: as much of them as it takes to get the weights out.
 *
 * An ONNX file is one protobuf message, ModelProto, whose graph holds nodes (operation,
 * names of inputs and outputs, attributes) and initialisers (named tensors). Exporters keep
 * the names of biases and embeddings, but store the matrix of a linear layer without a
 * name, transposed, as the right side of a MatMul. Its name is found through the graph:
 * the product goes to an Add whose other input is "LAYER.bias", so it is "LAYER.weight".
 * Nothing is computed, and every length is checked before it is used. */
#ifndef SF_MODEL_ONNX_H
#define SF_MODEL_ONNX_H

#include "nn/safetensors.h"

typedef struct sf_onnx sf_onnx;

typedef struct sf_onnx_weight {
    sf_tensor tensor;
    const char *name; /* its own, or the one found through the graph */
    int transposed;   /* it is (inputs, outputs) */
} sf_onnx_weight;

/* From memory, which is taken over on success only; `name` is for messages. */
safer_status sf_onnx_parse(sf_onnx **out, sf_file *image, const char *name, safer_error *error);
void sf_onnx_free(sf_onnx *onnx);

/* The initialisers of floating point, in the order of the file. */
size_t sf_onnx_count(const sf_onnx *onnx);
const sf_onnx_weight *sf_onnx_at(const sf_onnx *onnx, size_t index);
const char *sf_onnx_name(const sf_onnx *onnx); /* for messages */

#endif
