/* A step of training from the inside: what step.cu makes and step_layers.cu computes with. */
#ifndef SF_CUDA_STEP_STATE_CUH
#define SF_CUDA_STEP_STATE_CUH

#include "cuda/attention_back.cuh"
#include "cuda/forms.cuh"
#include "cuda/loss.cuh"
#include "cuda/memory.cuh"
#include "cuda/product.cuh"

namespace sf
{

enum { QKV, ATTENTION, INNER, OUTER, FACTORS }; /* matrices of a layer */
enum { PLACE_KEYS, PLACE_QUERIES, SIDES };      /* of disentangled attention */

/* What a layer keeps, its products (forward, back, and of the weights' gradients), and where its parameters lie
 * (SIZE_MAX: nowhere). */
struct step_layer {
    bf16 *input, *normed, *qkv, *context, *sum1, *middle, *raw, *inner, *sum2; /* normed: what qkv is made from */
    float *sums;                                                               /* of attention */
    product forward[FACTORS], backward[FACTORS], weights[FACTORS];
    size_t weight[FACTORS], bias[FACTORS], norm[4];
    attend_kind kind;
    float *turns;      /* NULL: none */
    bf16 *side[SIDES]; /* (columns, hidden): vectors of places; NULL: none */
    product side_forward[SIDES], side_backward[SIDES], side_weights[SIDES];
    size_t side_weight[SIDES], side_bias[SIDES];
    int add;      /* gradients are added to those of a layer with the same parameters, */
    int side_add; /* and those of vectors of places to these */
};

/* A batch on the device. */
struct sent {
    size_t rows, blocks, back_blocks, entries[2], chunks;
};

} // namespace sf

struct sf_device_step {
    sf_encoder shape; /* its pointers are not used */
    int device;
    size_t size, start, first, texts, rows;
    int embeddings;
    double clip;
    sf::memory memory;
    cublasLtHandle_t library;
    cudaStream_t stream;
    void *workspace;
    float *parameters, *gradient, *means, *variances;
    sf::bf16 *rounded;
    uint8_t *decays;
    sf::step_layer *layers;

    /* Embeddings: their sum, which is normed; projected before or after that. */
    sf::bf16 *embedded, *narrow, *dnarrow;  /* (rows, hidden) or (rows, width); NULL without a projection */
    size_t words, positions, type, norm[2]; /* offsets; SIZE_MAX without */
    size_t projection[2];
    sf::product project, project_back, project_weights;

    /* Layers. */
    sf::bf16 *last, *end_sum;                             /* (rows, hidden): the end, and what the last norm is of */
    sf::bf16 *d, *dsum, *dinner, *draw, *dcontext, *dqkv; /* gradients on their way down */
    float *deltas, *partial;
    size_t end_norm[2];

    /* Distances. */
    sf::relation distances;
    sf::column_range *columns;                    /* of scores by places, by length; or NULL */
    size_t relative, relative_norm[2], place;     /* PARTS: the first row that is used */
    float *bias, *diagonals, *shares, *bias_sums; /* BIASED */
    int tiles;
    sf::bf16 *table, *table_normed;                         /* PARTS: (columns, hidden) */
    sf::bf16 *places_by[sf::SIDES], *dplaces_by[sf::SIDES]; /* (rows of a chunk, heads, columns) */
    sf::bf16 *shares_of_chunk, *dscores;                    /* (rows of a chunk, heads, the longest text) */
    float *dside, *dtable;                                  /* (columns, hidden) */
    sf::bf16 *dside_rounded, *dtable_rounded;
    sf::heads scores, vectors, tables;
    sf::chunk *chunks, *back_chunks; /* as many of either */

    /* The end. */
    sf::head end;
    size_t end_offsets[6]; /* classifier, its bias, pooler, its bias, its norm's weight and bias */
    sf::ends ends_of;
    float *masks, *scale;
    double *squares;
    int *labels;

    /* The batch. */
    uint32_t *ids, *starts;
    uint16_t *places;
    sf_attend_block *blocks, *back_blocks;
    uint32_t *lists[2][3]; /* of words and of places: keys, starts, rows */
    char *host;            /* pinned */
    size_t host_bytes;
};

namespace sf
{

inline float *at_or_null(float *base, size_t offset) { return offset == SIZE_MAX ? NULL : base + offset; }
inline bf16 *at_or_null(bf16 *base, size_t offset) { return offset == SIZE_MAX ? NULL : base + offset; }

/* From the batch to the last layer's output, in s->last. */
safer_status step_forward(sf_device_step *s, const sent *b, safer_error *error);
/* From s->d, its gradient, to the gradients of all that is trained. */
safer_status step_back(sf_device_step *s, const sent *b, safer_error *error);

} // namespace sf
#endif
