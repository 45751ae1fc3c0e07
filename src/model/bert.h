/* The `bert` classifier, from the inside: for this room and for train. Everything else uses model.h.
 *
 * An encoder (BERT, Devlin et al. 2019, and its kin: nn/encoder.h), one vector out of its last layer,
 * and a linear classifier:
 *
 *   pool cls     the vector of [CLS]
 *   pool pooler  activation(W [CLS] + b): tanh in BERT, relu in DistilBERT, gelu in ELECTRA and DeBERTa; or that of the
 *                mean, and perhaps a norm behind it (ModernBERT)
 *   pool mean    the mean over all pieces, [CLS] and [SEP] included
 *
 * All parameters lie in one array of floats, which training works with; answers come from
 * sf_bert_net, which holds the matrices packed. */
#ifndef SF_MODEL_BERT_H
#define SF_MODEL_BERT_H

#include "model/arithmetic.h"
#include "model/kept.h"
#include "model/model.h"
#include "nn/device.h"

typedef enum sf_bert_pool { SF_POOL_CLS, SF_POOL_POOLER, SF_POOL_MEAN } sf_bert_pool;

typedef struct sf_bert_shape {
    size_t vocabulary, positions;
    size_t types; /* of token types; 0: no such embedding (DistilBERT) */
    size_t layers, hidden, heads, inner;
    size_t classes;           /* 0: an encoder without a classifier */
    sf_activation activation; /* SF_GELU, SF_GELU_TANH, SF_RELU or SF_SILU */
    sf_bert_pool pool;
    sf_encoder_activation pooler; /* pool pooler: its activation */
    float epsilon;                /* of the layer norms */
    size_t tokens;                /* most pieces of a text with its frame ([CLS], [SEP]); at most sf_bert_most_tokens */
    int ending;                   /* of longer texts the last pieces are read, not the first */
    sf_encoder_form form;         /* zeros: BERT's */
} sf_bert_shape;

size_t sf_bert_width(const sf_bert_shape *shape);         /* of the embeddings */
size_t sf_bert_relative_rows(const sf_bert_shape *shape); /* of the table of distances; 0: none */
float sf_bert_scale(const sf_bert_shape *shape);          /* of scores */
size_t sf_bert_most_tokens(const sf_bert_shape *shape);   /* that it has positions for */

/* Parameters of a layer, offsets into the array of parameters, SIZE_MAX for those that the form does not have.
 * Matrices are (outputs, inputs). */
typedef struct sf_bert_layer {
    size_t qkv_weight, qkv_bias;             /* (3*hidden, hidden): query, key, value */
    size_t attention_weight, attention_bias; /* (hidden, hidden) */
    size_t norm1_weight, norm1_bias;         /* after attention; prenorm: before */
    size_t inner_weight, inner_bias;         /* (inner, hidden), gated (2*inner, hidden) */
    size_t outer_weight, outer_bias;         /* (hidden, inner) */
    size_t norm2_weight, norm2_bias;
    size_t place_key_weight, place_key_bias, place_query_weight, place_query_bias; /* (hidden, hidden) */
    const float *turns; /* rotary: as in nn/encoder.h; or NULL */
    size_t window;      /* SIZE_MAX: global */
} sf_bert_layer;

typedef struct sf_bert_tensor {
    char name[96]; /* canonical: bert_names.h */
    size_t rank, shape[2], count, offset;
} sf_bert_tensor;

typedef struct sf_bert_layout {
    sf_bert_shape shape;
    size_t words, positions, types; /* embeddings; these and the following: SIZE_MAX without */
    size_t norm_weight, norm_bias;
    size_t projection_weight, projection_bias; /* (hidden, width) */
    size_t relative;                           /* (buckets, heads) or (rows, hidden) */
    size_t relative_norm_weight, relative_norm_bias;
    sf_bert_layer *layers;       /* owned */
    size_t end_weight, end_bias; /* prenorm: the last norm */
    size_t pooler_weight, pooler_bias, pooler_norm_weight, pooler_norm_bias;
    size_t classifier_weight, classifier_bias;
    size_t size;             /* of all parameters, floats */
    int32_t *buckets;        /* owned; as in nn/encoder.h; or NULL */
    float *turns[2];         /* owned; of global and of local layers; or NULL */
    sf_bert_tensor *tensors; /* owned, in the order of their offsets */
    size_t tensor_count;
} sf_bert_layout;

/* -1 when memory is out. Tensors follow each other without gaps. */
int sf_bert_layout_make(sf_bert_layout *out, const sf_bert_shape *shape);
void sf_bert_layout_free(sf_bert_layout *layout);

/* --------------------------------------------------------------------- devices */

/* The encoder on one or more devices of a kind. Any number of threads may ask; their texts meet in calls
 * (base/feeder.h). */
typedef struct sf_bert_device sf_bert_device;

/* On the device of this name, at most so many where it names several. *out is NULL for the CPU: where that is named, or
 * "auto" finds no device that can have this encoder. */
safer_status sf_bert_device_open(sf_bert_device **out, const char *name, int most, const sf_bert_layout *layout,
                                 const float *parameters, safer_error *error);
void sf_bert_device_free(sf_bert_device *device); /* NULL is fine */

/* The name of its bits, as long as it lives, and how many threads keep it busy. */
const char *sf_bert_device_arithmetic(const sf_bert_device *device);
int sf_bert_device_concurrency(const sf_bert_device *device);

/* What sf_bert_logits gives of a classifier, and sf_bert_part_means of an encoder without classes. */
typedef struct sf_bert_batch sf_bert_batch;
typedef struct sf_bert_parts sf_bert_parts;
safer_status sf_bert_device_answer(float *logits, sf_bert_device *device, const sf_bert_batch *batch,
                                   safer_error *error);
safer_status sf_bert_device_part_means(sf_bert_device *device, const sf_bert_batch *batch, const sf_bert_parts *parts,
                                       safer_error *error);

/* The encoder as devices are given it; it points into the parameters. Free out->layer. -1 when memory is out. */
int sf_bert_encoder(sf_encoder *out, const sf_bert_layout *layout, const float *parameters);

/* ---------------------------------------------------------------- checkpoints */

/* An encoder or classifier read from anywhere. */
typedef struct sf_bert_checkpoint {
    sf_bert_layout layout;
    float *parameters; /* (layout.size), 64-byte aligned; owned */
    sf_piecer *piecer;
    char **labels;      /* layout.shape.classes of them; owned */
    uint64_t hash;      /* of everything that decides an answer */
    sf_digest sha256;   /* of the file or folder, when it is a classifier's */
    char *trained_with; /* or NULL */
} sf_bert_checkpoint;

/* A directory as HuggingFace has them, or a file of this library's (metadata arch "bert"). */
safer_status sf_bert_checkpoint_open(sf_bert_checkpoint *out, const char *path, safer_error *error);
void sf_bert_checkpoint_free(sf_bert_checkpoint *checkpoint);

/* What is read of a text; at least one piece. */
static inline sf_window sf_bert_window(const sf_bert_shape *shape, const sf_piecer *piecer)
{
    return (sf_window){shape->tokens - sf_piecer_framed(piecer), shape->ending};
}

/* The encoder of a checkpoint alone, without pooling and classifier, which reads this many tokens at this end: its
 * layout, and its parameters, which are the caller's to free. */
safer_status sf_bert_encoder_of(sf_bert_layout *layout, float **parameters, const sf_bert_checkpoint *checkpoint,
                                size_t tokens, int ending, safer_error *error);
/* The encoder in a file of this library's that holds more than that (model/context_file.c). */
safer_status sf_bert_encoder_read(sf_bert_checkpoint *out, const sf_safetensors *file, safer_error *error);

/* The one-file form. labels: JSON, NULL without classes; trained_with may be NULL. */
safer_status sf_bert_save(const char *path, const sf_bert_layout *layout, const float *parameters,
                          const sf_piecer *piecer, const char *labels, const char *trained_with, safer_error *error);

/* ------------------------------------------------------------------- the net */

/* The matrices of a layer, packed. */
typedef struct sf_bert_matrices {
    sf_packed qkv, attention, inner, outer;
    sf_packed gate; /* gated: the second half of inner's outputs */
} sf_bert_matrices;

/* Disentangled attention: the vectors of distances as keys and as queries of a layer. */
typedef struct sf_bert_places {
    sf_view vectors[2];   /* (rows, hidden) in the type of the net; values NULL: not used */
    sf_packed *packed[2]; /* (heads), each (hidden / heads, rows) */
} sf_bert_places;
enum { SF_PLACE_KEYS, SF_PLACE_QUERIES };

/* Everything a forward pass reads. */
typedef struct sf_bert_net {
    const sf_bert_layout *layout; /* borrowed, */
    const float *parameters;      /* as these */
    sf_dtype type;                /* of products: SF_BF16 or SF_F32 */
    sf_isa isa;
    sf_bert_matrices *layers; /* sf_bert_sets of them: shared layers are one */
    sf_packed projection;     /* of the embeddings */
    float *zeros;             /* for norms without a bias */
    float *biases;            /* (heads, 2 * tokens - 1): relative biases, divided by the scale of scores */
    sf_view relative;         /* (rows, hidden): the table of distances, normed where it is, in the type of the net */
    sf_bert_places *places;   /* (layers) */
} sf_bert_net;

void sf_bert_matrices_free(sf_bert_matrices *matrices);

size_t sf_bert_sets(const sf_bert_layout *layout);
size_t sf_bert_set(const sf_bert_layout *layout, size_t layer); /* whose parameters a layer has */
/* A bias for products, NULL without; and for norms, where it is zeros then. */
const float *sf_bert_bias(const sf_bert_net *net, size_t offset);
const float *sf_bert_shift(const sf_bert_net *net, size_t offset);

safer_status sf_bert_net_new(sf_bert_net **out, const sf_bert_layout *layout, const float *parameters,
                             sf_arithmetic arithmetic, int threads, safer_error *error);
/* Packs the matrices of layers first.. again after parameters changed. */
void sf_bert_net_update(sf_bert_net *net, size_t first, int threads);
void sf_bert_net_free(sf_bert_net *net);

/* Some texts in a row, as pieces with what stands around them ([CLS] and [SEP]). Text i is
 * ids[offsets[i]] .. ids[offsets[i+1]-1]. */
struct sf_bert_batch {
    const uint32_t *ids;
    const size_t *offsets; /* (count+1), from 0 */
    size_t count;
};

/* Working memory of one thread: for texts of up to layout->shape.tokens pieces. */
typedef struct sf_bert_scratch sf_bert_scratch;
safer_status sf_bert_scratch_new(sf_bert_scratch **out, const sf_bert_net *net, safer_error *error);
void sf_bert_scratch_free(sf_bert_scratch *scratch);

/* features (count, hidden): the pooled vector of every text; a text's is the same to the
 * last bit in every batch. */
void sf_bert_features(float *features, const sf_bert_net *net, const sf_bert_batch *batch, sf_bert_scratch *scratch);

/* Parts of a text, one behind the other: part i is its pieces begin[i] .. begin[i+1]-1. */
struct sf_bert_parts {
    const size_t *begin; /* (count+1) */
    size_t count;
    float *means; /* (count, hidden): of the last layer's vectors; zeros where a part has no piece */
};

/* The means of the parts of every text (batch->count); a text's are the same to the last bit in every batch. */
void sf_bert_part_means(const sf_bert_net *net, const sf_bert_batch *batch, const sf_bert_parts *parts,
                        sf_bert_scratch *scratch);

/* logits (count, classes) of features. */
void sf_bert_logits(float *logits, const sf_bert_net *net, const float *features, size_t count);

/* --------------------------------------- the parts that training shares with it */

/* One head of one text. */
typedef struct sf_bert_head {
    const sf_bert_net *net;
    size_t layer, head, T;
    sf_view queries, keys, values; /* (T, hidden / heads) */
} sf_bert_head;

sf_bert_head sf_bert_head_of(const sf_bert_net *net, sf_view qkv, size_t layer, size_t head, size_t T);

/* Memory of one thread's attention. */
typedef struct sf_bert_attention {
    sf_packed keys, values;
    sf_view scores, shares;     /* (SF_BERT_QUERIES, tokens): F32, and in the type of the net */
    sf_view mixed;              /* (SF_BERT_QUERIES, hidden / heads) F32 */
    sf_view by_queries;         /* disentangled: (SF_BERT_QUERIES, rows) F32: queries times keys of distances */
    sf_view by_keys;            /* (tokens, rows) F32: keys times queries of distances */
    size_t first_panel, panels; /* of their rows: those that distances of this text have */
} sf_bert_attention;

/* Keys low..high-1 that a block of queries sees, of which query i sees those from i - window to i + window. */
typedef struct sf_bert_seen {
    size_t low, high, window;
} sf_bert_seen;

sf_bert_seen sf_bert_sees(const sf_bert_head *head, size_t first, size_t count);
/* Of those the ones that query i sees, counted from `low`. */
sf_bert_seen sf_bert_sees_row(sf_bert_seen seen, size_t i);

/* Before the first block: packs all keys. Then of each block, whose keys were packed if it is local: the scores, before
 * their scale, of queries first..first+count-1 and the keys seen. */
void sf_bert_head_begin(sf_bert_attention *attention, const sf_bert_head *head);
void sf_bert_head_scores(sf_bert_attention *attention, const sf_bert_head *head, sf_bert_seen seen, size_t first,
                         size_t count);

/* Rows of a block: of queries, of the rest; and those that are still in the cache when they are normed. */
enum { SF_BERT_QUERIES = 64, SF_BERT_ROWS = 256, SF_BERT_JOINED = 128 };

int sf_bert_attention_new(sf_bert_attention *out, const sf_bert_net *net); /* -1 without memory */
void sf_bert_attention_free(sf_bert_attention *attention);

/* context (T, hidden) of one text from qkv (T, 3*hidden), whose queries and keys are turned if the layer is rotary. */
void sf_bert_attend(sf_view context, sf_view qkv, const sf_bert_net *net, size_t layer, size_t T,
                    sf_bert_attention *scratch);

/* What a layer leaves behind. In training, rows of everything; else `sum1`, `sum2` and `raw`
 * are missing (values NULL) and the rest is the rows of a block or of a group of texts. */
typedef struct sf_bert_rows {
    sf_view x;       /* (N, hidden) F32: the layer's input, then its output */
    sf_view input;   /* (N, hidden): x as a factor of products */
    sf_view qkv;     /* (N, 3*hidden) */
    sf_view context; /* (N, hidden) */
    sf_view sum1;    /* (N, hidden) F32 before the first norm */
    sf_view middle;  /* (N, hidden) after it, as a factor */
    sf_view raw;     /* (N, inner) before the activation */
    sf_view inner;   /* (N, inner) after it */
    sf_view sum2;    /* (N, hidden) F32 before the second norm */
    /* To work in, for any rows: */
    sf_view narrow, factor; /* (tokens, width): embeddings that are projected, F32 and as a factor */
    sf_view gate;           /* (SF_BERT_JOINED, inner): of gated layers, not in training */
    sf_view normed;         /* (SF_BERT_JOINED, hidden) F32: of norms before products */
} sf_bert_rows;

/* The views to work in. -1 without memory; frees what it made. */
int sf_bert_rows_work(sf_bert_rows *rows, const sf_bert_net *net);
void sf_bert_rows_work_free(sf_bert_rows *rows);

/* The position of a piece after `seen` pieces that count, which are then one more if it does. */
size_t sf_bert_place(const sf_bert_shape *shape, uint32_t id, size_t *seen);
/* x and input of the N pieces of a text; sum1, when there, gets the sum before the norm. */
void sf_bert_embed(const sf_bert_rows *rows, const sf_bert_net *net, const uint32_t *ids, size_t N);
/* The layer without its attention: from context to x and the next layer's input. */
void sf_bert_transform(const sf_bert_rows *rows, sf_view next, const sf_bert_net *net, size_t layer, size_t N);

/* Memory for a view, 64-byte aligned, and the row of a view of floats. view_new: -1 without memory. */
int sf_view_new(sf_view *out, size_t rows, size_t stride, sf_dtype type);
float *sf_view_row(sf_view view, size_t row);
/* A row of N floats into a view of either type, unless it lies there already. */
void sf_view_keep(sf_view out, size_t row, const float *x, size_t N, sf_isa isa);

sf_activation sf_bert_dense(sf_encoder_activation activation); /* of a head, other than tanh */
/* features (hidden) of a text from x (T, hidden) of the last layer. work (3, hidden), of a dense layer: what goes in,
 * what comes out, that activated. */
void sf_bert_pool_text(float *features, float *work, const sf_bert_net *net, sf_view x, size_t T);

#endif
