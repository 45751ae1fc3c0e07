/* The tensors of an encoder's checkpoint, whatever their file calls them.
 *
 * Names are brought to one form, HuggingFace BERT's without a prefix: "bert.", "roberta."
 * and the like are cut off, LayerNorm's old "gamma" and "beta" become "weight" and "bias",
 * and the names of other families become BERT's ("transformer.layer.0.attention.q_lin.weight" of DistilBERT is
 * "encoder.layer.0.attention.self.query.weight", "pre_classifier" is "pooler.dense"). What BERT does not have is
 * called as in bert_layout.c.
 * Tensors that no classifier needs (cls.predictions, position_ids) are passed over. */
#ifndef SF_MODEL_BERT_NAMES_H
#define SF_MODEL_BERT_NAMES_H

#include "model/bert.h"
#include "model/config.h"

/* The most that a configuration may ask for: far beyond any model there is, and so little
 * that no product of them overflows 64 bits. */
enum {
    SF_BERT_PIECES = 1 << 24,
    SF_BERT_POSITIONS = 1 << 16,
    SF_BERT_TYPES = 1 << 10,
    SF_BERT_LAYERS = 1 << 8,
    SF_BERT_HIDDEN = 1 << 14,
    SF_BERT_INNER = 1 << 18,
    SF_BERT_CLASSES = 1 << 12
};

/* Whose names and keys. RoBERTa: XLM-RoBERTa, CamemBERT and ELECTRA too. */
typedef enum sf_bert_family {
    SF_FAMILY_BERT,
    SF_FAMILY_DISTIL,
    SF_FAMILY_ROBERTA,
    SF_FAMILY_ALBERT,
    SF_FAMILY_MPNET,
    SF_FAMILY_DEBERTA,
    SF_FAMILY_MODERN
} sf_bert_family;

typedef struct sf_bert_found {
    char name[96]; /* canonical */
    sf_tensor tensor;
    const char *file; /* that it lies in */
    int transposed;   /* (inputs, outputs): the matrix on the right of a product, as ONNX has it */
} sf_bert_found;

/* Files, their tensors and their names outlive it. Zero-initialise. */
typedef struct sf_bert_source {
    const char *name;      /* for messages */
    sf_bert_family family; /* whose names messages use */
    int onnx;              /* some come from a graph, where a matrix without a bias has no name */
    sf_bert_found *found;
    size_t count, capacity;
} sf_bert_source;

/* Writes the canonical form of a name; -1 when it is longer than any. */
int sf_bert_canonical(char out[96], const char *name);

/* `name` is the tensor's, or the one it is known by when its file gives it none. */
safer_status sf_bert_source_add(sf_bert_source *source, const sf_tensor *tensor, const char *name, const char *file,
                                int transposed, safer_error *error);
safer_status sf_bert_source_add_file(sf_bert_source *source, const sf_safetensors *file, safer_error *error);
/* Call when all are added, before the functions below. Two tensors of one name are an error. */
safer_status sf_bert_source_sort(sf_bert_source *source, safer_error *error);
const sf_bert_found *sf_bert_source_find(const sf_bert_source *source, const char *name); /* or NULL */
void sf_bert_source_free(sf_bert_source *source);

/* All tensors of the layout are there, with its shapes and of a floating type. */
safer_status sf_bert_source_check(const sf_bert_source *source, const sf_bert_layout *layout, safer_error *error);
/* The same, and their values are finite: into parameters (layout->size), allocated here. */
safer_status sf_bert_source_load(float **parameters, const sf_bert_source *source, const sf_bert_layout *layout,
                                 safer_error *error);

/* ------------------------------------------------------------ configurations */

safer_status sf_bert_config_epsilon(float *out, sf_model_config config, const char *key, safer_error *error);
safer_status sf_bert_config_activation(sf_activation *out, sf_model_config config, const char *key, safer_error *error);
/* The same of the dense layer of a head, where there may be tanh too; when the key is missing, *out stays. */
safer_status sf_bert_config_dense(sf_encoder_activation *out, sf_model_config config, const char *key,
                                  safer_error *error);
sf_encoder_activation sf_bert_activation(sf_activation activation); /* as devices call it */
/* What the numbers must be to each other. */
safer_status sf_bert_config_check(const sf_bert_shape *shape, sf_model_config config, safer_error *error);

/* config.json: the family, and the shape except for the head and `tokens`. */
safer_status sf_bert_config_read(sf_bert_shape *shape, sf_bert_family *family, sf_model_config config,
                                 safer_error *error);
/* With a classifier: its head and how many classes, or why it does not classify texts. */
safer_status sf_bert_config_head(sf_bert_shape *shape, const sf_bert_source *source, sf_model_config config,
                                 safer_error *error);

/* The metadata "config" of the one-file form. */
int sf_bert_shape_write(sf_buffer *out, const sf_bert_shape *shape); /* -1 without memory */
safer_status sf_bert_shape_read(sf_bert_shape *shape, const sf_safetensors *file, safer_error *error);

/* What the one-file form says in its metadata. Zero-initialise. */
typedef struct sf_bert_description {
    sf_buffer config;
    sf_buffer vocabulary; /* of BERT's tokenizer; empty for any other */
    sf_buffer tokenizer;  /* its options; or a tokenizer.json */
} sf_bert_description;
safer_status sf_bert_describe(sf_bert_description *out, const sf_bert_shape *shape, const sf_piecer *piecer,
                              const char *path, safer_error *error);
void sf_bert_description_free(sf_bert_description *description);
/* That as metadata; returns how many. And the parameters as tensors: out (layout->tensor_count). */
enum { SF_BERT_METADATA = 3 };
size_t sf_bert_metadata(sf_metadata out[SF_BERT_METADATA], const sf_bert_description *description);
void sf_bert_tensors(sf_tensor *out, const sf_bert_layout *layout, const float *parameters);
int sf_bert_labels_json(sf_buffer *out, char *const *labels, size_t count); /* -1 without memory */

/* ----------------------------------------------------------------- tokenizers */

/* What the metadata say of it; `path` is for messages. */
safer_status sf_bert_tokenizer_write(sf_buffer *vocabulary, sf_buffer *tokenizer, const sf_piecer *piecer,
                                     const char *path, safer_error *error);
/* That of a file of this library's, and that of a folder whose model is of this type. Both check that it suits the
 * shape; a folder's other than BERT's own also sets how many tokens a text may have. On failure *out may be set, and
 * is the caller's to free. */
safer_status sf_bert_tokenizer_read(sf_piecer **out, const sf_bert_shape *shape, const sf_safetensors *file,
                                    safer_error *error);
safer_status sf_bert_tokenizer_open(sf_piecer **out, sf_bert_shape *shape, const char *folder, const char *type,
                                    sf_digest_list *read, safer_error *error);

/* ---------------------------------------------------------------- checkpoints */

safer_status sf_bert_directory_open(sf_bert_checkpoint *out, const char *path, safer_error *error);
/* An .onnx file, with config.json and the vocabulary beside it or in the folder above. */
safer_status sf_bert_onnx_open(sf_bert_checkpoint *out, const char *path, safer_error *error);
safer_status sf_bert_file_read(sf_bert_checkpoint *out, const sf_safetensors *file, safer_error *error);

#endif
