/* The `bert` classifier: one step of training.
 *
 * The texts of a batch lie one after the other. Each stage of a layer is spread over
 * threads by blocks of rows, by texts (attention) or by rows of a weight matrix (its
 * gradient); what is summed over rows is summed over the same blocks in the same order
 * however many threads there are.
 *
 * The forward pass keeps what the backward pass reads: the factors of every product, the
 * sums before every norm, and the inner layer before its activation. Attention's shares
 * are not kept but computed again. The forward pass itself is model/bert_net.c. */
#include "train/bert_step.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/layers.h"
#include "nn/vector.h"

#include <math.h>
#include <string.h>

enum { BLOCK = SF_BERT_ROWS, QUERIES = SF_BERT_QUERIES, CHUNK = 1 << 16, MATRICES = 4 };
enum { SUMS = 384 * 384 }; /* elements of a weight gradient that are worked on together: they stay in the cache */

/* Memory of one thread. */
typedef struct worker {
    sf_bert_attention attention;
    sf_packed keys, values;    /* transposed the other way: (T, d) and (d, T) */
    sf_packed queries, slopes; /* (QUERIES, d) */
    sf_view dshares, dscores;  /* (QUERIES, tokens): F32, and in the type of the net */
    sf_view turned;            /* (tokens, QUERIES) */
    sf_view dkeys, dvalues;    /* (tokens, d) F32 */
} worker;

/* Gradients of vectors that are sums over rows, one set per block. */
typedef struct sums {
    float *norm2_weight, *norm2_bias, *outer_bias, *norm1_weight, *norm1_bias, *attention_bias, *inner_bias, *qkv_bias;
} sums;

/* One weight gradient: out (outputs, inputs) = turned (outputs, N) * packed (N, inputs), the
 * latter in blocks of rows. */
typedef struct weight_task {
    sf_view dout, inp; /* (N, outputs), (N, inputs) */
    size_t outputs, inputs, weight;
    size_t strip; /* outputs worked on together */
    sf_view turned;
    sf_packed *packed; /* (blocks) */
} weight_task;

typedef struct chunk {
    size_t offset, count;
    int decays;
} chunk;

struct sf_bert_step {
    const sf_bert_layout *layout;
    sf_bert_options options;
    float *parameters, *gradient;
    sf_bert_net *net;
    sf_bert_matrices *back; /* of the trained layers: packed for the way back */
    size_t first;           /* trained layer */
    size_t start;           /* trained parameter */
    int embeddings;         /* are trained */
    size_t texts, capacity; /* of a batch: texts, pieces */
    sf_bert_rows *saved;    /* of the trained layers; the frozen share one */
    sf_bert_rows frozen;
    sf_view x, last, embedded; /* (N, hidden): F32; the last layer's output as a factor; embeddings before the norm */
    sf_view d;                 /* (N, hidden) F32: the gradient on its way down */
    sf_view douter, dinner, dattention, dcontext, dqkv; /* as factors */
    weight_task weights[MATRICES];
    float *partial; /* (blocks, partial_size) */
    size_t partial_size;
    float *features, *dropped, *masks, *dfeatures, *probabilities;
    worker *workers;
    int threads;
    chunk *chunks;
    size_t chunk_count;
    double *squares; /* (chunks) */

    /* The batch at hand. */
    const sf_bert_batch *batch;
    size_t rows, layer;
    double rate, scale;
    uint64_t number;
    float *means, *variances;
};

const sf_bert_net *sf_bert_step_net(const sf_bert_step *s) { return s->net; }
const float *sf_bert_step_read(const sf_bert_step *s) { return s->gradient; }

sf_stream sf_bert_step_dropout(const sf_bert_options *o) { return sf_stream_of(o->seed, 1, SF_STAGE_TRAINING); }

/* ------------------------------------------------------------------- memory */

static void rows_free(sf_bert_rows *r)
{
    free(r->input.values);
    free(r->qkv.values);
    free(r->context.values);
    free(r->sum1.values);
    free(r->middle.values);
    free(r->raw.values);
    free(r->inner.values);
    free(r->sum2.values);
}

static int rows_new(sf_bert_rows *r, const sf_bert_step *s, int saved)
{
    size_t N = s->capacity, H = s->layout->shape.hidden, F = s->layout->shape.inner;
    sf_dtype type = s->options.type;
    *r = (sf_bert_rows){.x = s->x};
    return sf_view_new(&r->input, N, H, type) || sf_view_new(&r->qkv, N, 3 * H, type) ||
           sf_view_new(&r->context, N, H, type) || sf_view_new(&r->middle, N, H, type) ||
           sf_view_new(&r->inner, N, F, type) ||
           (saved && (sf_view_new(&r->sum1, N, H, SF_F32) || sf_view_new(&r->raw, N, F, type) ||
                      sf_view_new(&r->sum2, N, H, SF_F32)));
}

static void worker_free(worker *w)
{
    sf_bert_attention_free(&w->attention);
    sf_packed_free(&w->keys);
    sf_packed_free(&w->values);
    sf_packed_free(&w->queries);
    sf_packed_free(&w->slopes);
    free(w->dshares.values);
    free(w->dscores.values);
    free(w->turned.values);
    free(w->dkeys.values);
    free(w->dvalues.values);
}

static int worker_new(worker *w, const sf_bert_step *s)
{
    const sf_bert_shape *shape = &s->layout->shape;
    size_t T = shape->tokens, H = shape->hidden, d = H / shape->heads, stride = (T + 31) / 32 * 32;
    sf_dtype type = s->options.type;
    sf_isa isa = s->net->isa;
    return sf_bert_attention_new(&w->attention, s->net) || sf_packed_shape(&w->keys, T, d, type, isa) ||
           sf_packed_shape(&w->values, d, T, type, isa) || sf_packed_shape(&w->queries, QUERIES, d, type, isa) ||
           sf_packed_shape(&w->slopes, QUERIES, d, type, isa) || sf_view_new(&w->dshares, QUERIES, stride, SF_F32) ||
           sf_view_new(&w->dscores, QUERIES, stride, type) || sf_view_new(&w->turned, T, QUERIES, type) ||
           sf_view_new(&w->dkeys, T, d, SF_F32) || sf_view_new(&w->dvalues, T, d, SF_F32);
}

void sf_bert_step_free(sf_bert_step *s)
{
    if (!s) return;
    size_t trained = s->layout->shape.layers - s->first;
    for (size_t i = 0; s->saved && i < trained; i++) rows_free(&s->saved[i]);
    for (size_t i = 0; s->back && i < trained; i++) {
        sf_packed_free(&s->back[i].qkv);
        sf_packed_free(&s->back[i].attention);
        sf_packed_free(&s->back[i].inner);
        sf_packed_free(&s->back[i].outer);
    }
    rows_free(&s->frozen);
    for (int i = 0; s->workers && i < s->threads; i++) worker_free(&s->workers[i]);
    for (int i = 0; i < MATRICES; i++) {
        free(s->weights[i].turned.values);
        for (size_t b = 0; s->weights[i].packed && b <= s->capacity / BLOCK; b++)
            sf_packed_free(&s->weights[i].packed[b]);
        free(s->weights[i].packed);
    }
    sf_view *views[] = {&s->x,      &s->last,       &s->embedded, &s->d,   &s->douter,
                        &s->dinner, &s->dattention, &s->dcontext, &s->dqkv};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) free(views[i]->values);
    float *arrays[] = {s->gradient, s->partial, s->features, s->dropped, s->masks, s->dfeatures, s->probabilities};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) free(arrays[i]);
    free(s->saved);
    free(s->back);
    free(s->workers);
    free(s->chunks);
    free(s->squares);
    sf_bert_net_free(s->net);
    free(s);
}

/* The trained parameters in pieces for the threads. */
static int make_chunks(sf_bert_step *s)
{
    const sf_bert_layout *l = s->layout;
    size_t capacity = 0;
    for (size_t t = 0; t < l->tensor_count; t++) {
        const sf_bert_tensor *tensor = &l->tensors[t];
        for (size_t done = 0; tensor->offset >= s->start && done < tensor->count; done += CHUNK) {
            size_t count = tensor->count - done < CHUNK ? tensor->count - done : CHUNK;
            if (sf_grow(&s->chunks, &capacity, s->chunk_count + 1, sizeof *s->chunks)) return -1;
            s->chunks[s->chunk_count++] = (chunk){tensor->offset + done, count, tensor->rank == 2};
        }
    }
    s->squares = sf_alloc(s->chunk_count, sizeof *s->squares);
    return s->squares ? 0 : -1;
}

static int make_back(sf_bert_step *s)
{
    size_t H = s->layout->shape.hidden, F = s->layout->shape.inner, trained = s->layout->shape.layers - s->first;
    sf_dtype type = s->options.type;
    sf_isa isa = s->net->isa;
    s->back = sf_calloc(trained, sizeof *s->back);
    s->saved = sf_calloc(trained, sizeof *s->saved);
    if (!s->back || !s->saved) return -1;
    for (size_t i = 0; i < trained; i++) {
        sf_bert_matrices *m = &s->back[i];
        if (sf_packed_shape(&m->qkv, 3 * H, H, type, isa) || sf_packed_shape(&m->attention, H, H, type, isa) ||
            sf_packed_shape(&m->inner, F, H, type, isa) || sf_packed_shape(&m->outer, H, F, type, isa) ||
            rows_new(&s->saved[i], s, 1))
            return -1;
    }
    return 0;
}

static int make_arrays(sf_bert_step *s)
{
    const sf_bert_shape *shape = &s->layout->shape;
    size_t H = shape->hidden, F = shape->inner, N = s->capacity, B = s->texts, trained = shape->layers - s->first;
    sf_dtype type = s->options.type;
    s->partial_size = 10 * H + F; /* of a layer; of the embeddings' norm 2 * H */
    s->gradient = sf_alloc_aligned(s->layout->size, sizeof *s->gradient);
    s->partial = sf_alloc_aligned((N / BLOCK + 1) * s->partial_size, sizeof *s->partial);
    s->features = sf_alloc_aligned(B * H, sizeof *s->features);
    s->dropped = sf_alloc_aligned(B * H, sizeof *s->dropped);
    s->masks = sf_alloc_aligned(B * H, sizeof *s->masks);
    s->dfeatures = sf_alloc_aligned(B * H, sizeof *s->dfeatures);
    s->probabilities = sf_alloc_aligned(B * shape->classes, 2 * sizeof *s->probabilities); /* and their gradients */
    s->workers = sf_calloc((size_t)s->threads, sizeof *s->workers);
    if (!s->gradient || !s->partial || !s->features || !s->dropped || !s->masks || !s->dfeatures || !s->probabilities ||
        !s->workers)
        return -1;
    memset(s->gradient, 0, s->layout->size * sizeof *s->gradient);
    if (sf_view_new(&s->x, N, H, SF_F32) || sf_view_new(&s->last, N, H, type) || sf_view_new(&s->d, N, H, SF_F32) ||
        rows_new(&s->frozen, s, 0) || make_back(s))
        return -1;
    if (s->embeddings && sf_view_new(&s->embedded, N, H, SF_F32)) return -1;
    for (int i = 0; i < s->threads; i++)
        if (worker_new(&s->workers[i], s)) return -1;
    if (trained == 0) return 0;
    const size_t outputs[MATRICES] = {H, F, H, 3 * H}, inputs[MATRICES] = {F, H, H, H};
    size_t stride = (N + 31) / 32 * 32 + 32; /* not a power of two */
    for (int i = 0; i < MATRICES; i++) {
        weight_task *w = &s->weights[i];
        *w = (weight_task){.outputs = outputs[i], .inputs = inputs[i], .strip = (SUMS / inputs[i] + 31) / 32 * 32};
        w->packed = sf_calloc(N / BLOCK + 1, sizeof *w->packed);
        if (!w->packed || sf_view_new(&w->turned, outputs[i], stride, type)) return -1;
        for (size_t b = 0; b <= N / BLOCK; b++)
            if (sf_packed_shape(&w->packed[b], BLOCK, inputs[i], type, s->net->isa)) return -1;
    }
    return sf_view_new(&s->douter, N, H, type) || sf_view_new(&s->dinner, N, F, type) ||
           sf_view_new(&s->dattention, N, H, type) || sf_view_new(&s->dcontext, N, H, type) ||
           sf_view_new(&s->dqkv, N, 3 * H, type);
}

static void pack_back(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    size_t H = s->layout->shape.hidden, F = s->layout->shape.inner;
    (void)index;
    for (size_t i = begin; i < end; i++) {
        sf_bert_matrices *m = &s->back[i / 4];
        const sf_bert_layer *l = &s->layout->layers[s->first + i / 4];
        sf_packed *packed[] = {&m->qkv, &m->attention, &m->inner, &m->outer};
        const size_t weights[] = {l->qkv_weight, l->attention_weight, l->inner_weight, l->outer_weight},
                     strides[] = {H, H, H, F};
        sf_view source = {s->parameters + weights[i % 4], strides[i % 4], SF_F32};
        sf_pack(packed[i % 4], source, 0, 0, sf_packed_panels(packed[i % 4]));
    }
}

sf_bert_trained sf_bert_trained_of(const sf_bert_layout *l, const sf_bert_options *options)
{
    const size_t layers = l->shape.layers, first = options->layers >= layers ? 0 : layers - options->layers;
    if (options->layers == SIZE_MAX) return (sf_bert_trained){0, 0, 1};
    if (first < layers) return (sf_bert_trained){first, l->layers[first].qkv_weight, 0};
    return (sf_bert_trained){first, l->pooler_weight != SIZE_MAX ? l->pooler_weight : l->classifier_weight, 0};
}

safer_status sf_bert_step_new(sf_bert_step **out, const sf_bert_layout *layout, float *parameters,
                              const sf_bert_options *options, size_t texts, size_t pieces, safer_error *error)
{
    safer_status status;
    sf_bert_step *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    const sf_bert_trained trained = sf_bert_trained_of(layout, options);
    s->layout = layout;
    s->options = *options;
    s->parameters = parameters;
    s->texts = texts;
    s->capacity = pieces;
    s->threads = sf_threads(options->threads);
    s->embeddings = trained.embeddings;
    s->first = trained.layer;
    s->start = trained.start;
    SF_TRY(sf_bert_net_new(&s->net, layout, parameters, sf_arithmetic_fast(options->type), s->threads, error));
    if (make_arrays(s) || make_chunks(s)) {
        status = sf_fail_memory(error);
        goto done;
    }
    sf_parallel(s->threads, 4 * (layout->shape.layers - s->first), 1, pack_back, s);
    *out = s;
    s = NULL;
done:
    sf_bert_step_free(s);
    return status;
}

/* ------------------------------------------------------------------ forward */

static sf_bert_rows *rows_of(sf_bert_step *s, size_t layer)
{
    return layer < s->first ? &s->frozen : &s->saved[layer - s->first];
}

static sf_view input_of(sf_bert_step *s, size_t layer)
{
    return layer == s->layout->shape.layers ? s->last : rows_of(s, layer)->input;
}

static sf_view shift(sf_view view, size_t row) { return view.values ? sf_view_at(view, row, 0) : view; }

static sf_bert_rows shifted(const sf_bert_rows *r, size_t row)
{
    return (sf_bert_rows){shift(r->x, row),       shift(r->input, row), shift(r->qkv, row),
                          shift(r->context, row), shift(r->sum1, row),  shift(r->middle, row),
                          shift(r->raw, row),     shift(r->inner, row), shift(r->sum2, row)};
}

static void embed_texts(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    (void)index;
    for (size_t t = begin; t < end; t++) {
        size_t row = s->batch->offsets[t];
        sf_bert_rows r = {.x = shift(s->x, row), .input = shift(input_of(s, 0), row), .sum1 = shift(s->embedded, row)};
        sf_bert_embed(&r, s->net, s->batch->ids + row, s->batch->offsets[t + 1] - row);
    }
}

/* The end of the layer before, the beginning of this one. */
static void forward_blocks(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    size_t layer = s->layer;
    (void)index;
    for (size_t b = begin; b < end; b++) {
        size_t row = b * BLOCK, count = s->rows - row < BLOCK ? s->rows - row : BLOCK;
        if (layer) {
            sf_bert_rows r = shifted(rows_of(s, layer - 1), row);
            sf_bert_transform(&r, shift(input_of(s, layer), row), s->net, layer - 1, count);
        }
        if (layer < s->layout->shape.layers)
            sf_product(shift(rows_of(s, layer)->qkv, row), shift(rows_of(s, layer)->input, row),
                       &s->net->layers[layer].qkv, s->parameters + s->layout->layers[layer].qkv_bias, SF_LINEAR, 0,
                       count);
    }
}

static void forward_texts(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    for (size_t t = begin; t < end; t++) {
        size_t row = s->batch->offsets[t];
        sf_bert_rows r = shifted(rows_of(s, s->layer), row);
        sf_bert_attend(r.context, r.qkv, s->net, s->batch->offsets[t + 1] - row, &s->workers[index].attention);
    }
}

static void forward(sf_bert_step *s)
{
    size_t blocks = (s->rows + BLOCK - 1) / BLOCK, layers = s->layout->shape.layers;
    sf_parallel(s->threads, s->batch->count, 1, embed_texts, s);
    for (s->layer = 0; s->layer <= layers; s->layer++) {
        sf_parallel(s->threads, blocks, 1, forward_blocks, s);
        if (s->layer < layers) sf_parallel(s->threads, s->batch->count, 1, forward_texts, s);
    }
}

/* --------------------------------------------------------------------- head */

/* Pools, classifies, and leaves the gradient of the last layer's output in d. Returns the
 * summed loss. */
static double head(sf_bert_step *s, const int *labels)
{
    const sf_bert_layout *l = s->layout;
    size_t H = l->shape.hidden, C = l->shape.classes, B = s->batch->count;
    const float *p = s->parameters;
    float *g = s->gradient, *dlogits = s->probabilities + s->texts * C;
    const sf_stream stream = sf_bert_step_dropout(&s->options);
    double loss = 0;
    memset(g + l->classifier_weight, 0, C * H * sizeof *g);
    memset(g + l->classifier_bias, 0, C * sizeof *g);
    if (l->pooler_weight != SIZE_MAX) {
        memset(g + l->pooler_weight, 0, H * H * sizeof *g);
        memset(g + l->pooler_bias, 0, H * sizeof *g);
    }
    memset(s->d.values, 0, s->rows * H * sizeof *g);
    for (size_t t = 0; t < B; t++) {
        size_t row = s->batch->offsets[t], T = s->batch->offsets[t + 1] - row;
        float *features = s->features + t * H, *dropped = s->dropped + t * H, *df = s->dfeatures + t * H,
              *logits = s->probabilities + t * C;
        sf_bert_pool_text(features, s->net, shift(s->x, row), T);
        if (s->options.dropout > 0)
            sf_dropout_forward(dropped, s->masks + t * H, features, s->options.dropout, stream, s->number, (uint32_t)t,
                               H);
        else
            memcpy(dropped, features, H * sizeof *dropped);
        sf_bert_logits(logits, s->net, dropped, 1);
        loss += (double)sf_softmax_loss(logits, dlogits, logits, labels[t], 1.0f / (float)B, C);
        sf_linear_backward(df, g + l->classifier_weight, g + l->classifier_bias, dlogits, dropped,
                           p + l->classifier_weight, 1, H, C);
        if (s->options.dropout > 0) sf_dropout_backward(df, df, s->masks + t * H, H);
        if (l->shape.pool == SF_POOL_MEAN) {
            for (size_t i = 0; i < T; i++)
                for (size_t j = 0; j < H; j++) sf_view_row(s->d, row + i)[j] = df[j] / (float)T;
        } else if (l->shape.pool == SF_POOL_CLS) {
            memcpy(sf_view_row(s->d, row), df, H * sizeof *df);
        } else {
            for (size_t j = 0; j < H; j++)
                df[j] *= l->shape.pooler == SF_ENCODER_RELU ? (float)(features[j] > 0) : 1 - features[j] * features[j];
            sf_linear_backward(sf_view_row(s->d, row), g + l->pooler_weight, g + l->pooler_bias, df,
                               sf_view_row(s->x, row), p + l->pooler_weight, 1, H, H);
        }
    }
    return loss;
}

/* ----------------------------------------------------------------- backward */

static sums sums_of(sf_bert_step *s, size_t block)
{
    size_t H = s->layout->shape.hidden;
    float *p = s->partial + block * s->partial_size;
    return (sums){p, p + H, p + 2 * H, p + 3 * H, p + 4 * H, p + 5 * H, p + 9 * H, p + 6 * H};
}

static void add_rows(float *sum, sf_view x, size_t count, size_t N, sf_isa isa)
{
    float row[1024];
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < N; j += 1024) {
            size_t n = N - j < 1024 ? N - j : 1024;
            const float *values = sf_view_row(x, i) + j;
            if (x.type == SF_BF16) {
                sf_from_bf16(row, (const sf_bf16 *)x.values + i * x.stride + j, n, isa);
                values = row;
            }
            sf_add(sum + j, values, n, isa);
        }
}

/* From the gradient of a layer's output to that of its context, for a block of rows. */
static void backward_blocks(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    const sf_bert_layer *l = &s->layout->layers[s->layer];
    const sf_bert_matrices *m = &s->back[s->layer - s->first];
    const float *p = s->parameters;
    size_t H = s->layout->shape.hidden, F = s->layout->shape.inner;
    float epsilon = s->layout->shape.epsilon;
    sf_isa isa = s->net->isa;
    for (size_t b = begin; b < end; b++) {
        size_t row = b * BLOCK, count = s->rows - row < BLOCK ? s->rows - row : BLOCK;
        sf_bert_rows r = shifted(rows_of(s, s->layer), row);
        sf_view d = shift(s->d, row), douter = shift(s->douter, row), dinner = shift(s->dinner, row);
        sf_view dattention = shift(s->dattention, row);
        sums g = sums_of(s, b);
        memset(s->partial + b * s->partial_size, 0, s->partial_size * sizeof *s->partial);
        for (size_t i = 0; i < count; i++) {
            float *x = sf_view_row(d, i);
            sf_norm_row_backward(x, g.norm2_weight, g.norm2_bias, x, sf_view_row(r.sum2, i), p + l->norm2_weight,
                                 epsilon, H, isa);
            sf_add(g.outer_bias, x, H, isa);
            sf_view_keep(douter, i, x, H, isa);
        }
        sf_product(dinner, douter, &m->outer, NULL, SF_LINEAR, 0, count);
        sf_activate_rows_backward(dinner, dinner, r.raw, s->layout->shape.activation, count, F, isa);
        add_rows(g.inner_bias, dinner, count, F, isa);
        sf_product(d, dinner, &m->inner, NULL, SF_LINEAR, 1, count);
        for (size_t i = 0; i < count; i++) {
            float *x = sf_view_row(d, i);
            sf_norm_row_backward(x, g.norm1_weight, g.norm1_bias, x, sf_view_row(r.sum1, i), p + l->norm1_weight,
                                 epsilon, H, isa);
            sf_add(g.attention_bias, x, H, isa);
            sf_view_keep(dattention, i, x, H, isa);
        }
        sf_product(shift(s->dcontext, row), dattention, &m->attention, NULL, SF_LINEAR, 0, count);
    }
    (void)index;
}

/* dqkv of one head of a text of T pieces. */
static void attend_back(sf_view dqkv, sf_view dcontext, sf_view qkv, const sf_bert_net *net, size_t head, size_t T,
                        worker *w)
{
    size_t H = net->layout->shape.hidden, d = H / net->layout->shape.heads;
    float scale = 1.0f / sqrtf((float)d);
    sf_bert_attention *a = &w->attention;
    sf_view queries = sf_view_at(qkv, 0, head * d), keys = sf_view_at(qkv, 0, H + head * d),
            values = sf_view_at(qkv, 0, 2 * H + head * d);
    (void)sf_packed_shape(&a->keys, d, T, net->type, net->isa); /* all were made large enough */
    (void)sf_packed_shape(&w->keys, T, d, net->type, net->isa);
    (void)sf_packed_shape(&w->values, d, T, net->type, net->isa);
    sf_pack(&a->keys, keys, 1, 0, sf_packed_panels(&a->keys));
    sf_pack(&w->keys, keys, 0, 0, sf_packed_panels(&w->keys));
    sf_pack(&w->values, values, 1, 0, sf_packed_panels(&w->values));
    for (size_t first = 0; first < T; first += QUERIES) {
        size_t count = T - first < QUERIES ? T - first : QUERIES;
        sf_view slopes = sf_view_at(dcontext, first, head * d);
        (void)sf_packed_shape(&w->queries, count, d, net->type, net->isa);
        (void)sf_packed_shape(&w->slopes, count, d, net->type, net->isa);
        sf_pack(&w->queries, sf_view_at(queries, first, 0), 0, 0, sf_packed_panels(&w->queries));
        sf_pack(&w->slopes, slopes, 0, 0, sf_packed_panels(&w->slopes));
        sf_product(a->scores, sf_view_at(queries, first, 0), &a->keys, NULL, SF_LINEAR, 0, count);
        sf_product(w->dshares, slopes, &w->values, NULL, SF_LINEAR, 0, count);
        for (size_t i = 0; i < count; i++) {
            float *shares = sf_view_row(a->scores, i), *ds = sf_view_row(w->dshares, i);
            sf_softmax_row(shares, scale, T, net->isa);
            sf_softmax_row_backward(ds, ds, shares, scale, T, net->isa);
            sf_view_keep(w->dscores, i, ds, T, net->isa);
            sf_view_keep(a->shares, i, shares, T, net->isa);
        }
        sf_product(sf_view_at(dqkv, first, head * d), w->dscores, &w->keys, NULL, SF_LINEAR, 0, count);
        sf_transpose(w->turned, w->dscores, count, T, net->isa);
        sf_product(w->dkeys, w->turned, &w->queries, NULL, SF_LINEAR, first > 0, T);
        sf_transpose(w->turned, a->shares, count, T, net->isa);
        sf_product(w->dvalues, w->turned, &w->slopes, NULL, SF_LINEAR, first > 0, T);
    }
    for (size_t i = 0; i < T; i++) {
        sf_view_keep(sf_view_at(dqkv, 0, H + head * d), i, sf_view_row(w->dkeys, i), d, net->isa);
        sf_view_keep(sf_view_at(dqkv, 0, 2 * H + head * d), i, sf_view_row(w->dvalues, i), d, net->isa);
    }
}

static void backward_texts(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    for (size_t t = begin; t < end; t++) {
        size_t row = s->batch->offsets[t], T = s->batch->offsets[t + 1] - row;
        for (size_t h = 0; h < s->layout->shape.heads; h++)
            attend_back(shift(s->dqkv, row), shift(s->dcontext, row), shift(rows_of(s, s->layer)->qkv, row), s->net, h,
                        T, &s->workers[index]);
    }
}

/* To the gradient of the layer's input. */
static void backward_inputs(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    size_t H = s->layout->shape.hidden;
    (void)index;
    for (size_t b = begin; b < end; b++) {
        size_t row = b * BLOCK, count = s->rows - row < BLOCK ? s->rows - row : BLOCK;
        add_rows(sums_of(s, b).qkv_bias, shift(s->dqkv, row), count, 3 * H, s->net->isa);
        if (s->layer > s->first || s->embeddings)
            sf_product(shift(s->d, row), shift(s->dqkv, row), &s->back[s->layer - s->first].qkv, NULL, SF_LINEAR, 1,
                       count);
    }
}

/* Adds up what the blocks have: vectors of a layer. */
static void collect(sf_bert_step *s)
{
    const sf_bert_layer *l = &s->layout->layers[s->layer];
    size_t H = s->layout->shape.hidden, F = s->layout->shape.inner, blocks = (s->rows + BLOCK - 1) / BLOCK;
    sums first = sums_of(s, 0);
    const struct {
        size_t offset, count;
        float *from;
    } vectors[] = {
        {l->norm2_weight, H, first.norm2_weight}, {l->norm2_bias, H, first.norm2_bias},
        {l->outer_bias, H, first.outer_bias},     {l->norm1_weight, H, first.norm1_weight},
        {l->norm1_bias, H, first.norm1_bias},     {l->attention_bias, H, first.attention_bias},
        {l->inner_bias, F, first.inner_bias},     {l->qkv_bias, 3 * H, first.qkv_bias},
    };
    for (size_t v = 0; v < sizeof vectors / sizeof vectors[0]; v++) {
        float *g = s->gradient + vectors[v].offset;
        memset(g, 0, vectors[v].count * sizeof *g);
        for (size_t b = 0; b < blocks; b++)
            sf_add(g, vectors[v].from + b * s->partial_size, vectors[v].count, s->net->isa);
    }
}

/* ---- weights: dout^T * inp ---- */

static void prepare_weights(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    (void)index;
    for (size_t b = begin; b < end; b++)
        for (weight_task *w = s->weights; w < s->weights + MATRICES; w++) {
            size_t row = b * BLOCK, count = s->rows - row < BLOCK ? s->rows - row : BLOCK;
            sf_transpose(sf_view_at(w->turned, 0, row), shift(w->dout, row), count, w->outputs, s->net->isa);
            (void)sf_packed_shape(&w->packed[b], count, w->inputs, s->options.type,
                                  s->net->isa); /* was made large enough */
            sf_pack(&w->packed[b], shift(w->inp, row), 0, 0, sf_packed_panels(&w->packed[b]));
        }
}

static size_t strips(const weight_task *w) { return (w->outputs + w->strip - 1) / w->strip; }

static void multiply_weights(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    size_t blocks = (s->rows + BLOCK - 1) / BLOCK;
    (void)index;
    for (size_t i = begin; i < end; i++) {
        size_t strip = i;
        weight_task *w = s->weights;
        while (strip >= strips(w)) strip -= strips(w++);
        size_t row = strip * w->strip, count = w->outputs - row < w->strip ? w->outputs - row : w->strip;
        sf_view out = {s->gradient + w->weight + row * w->inputs, w->inputs, SF_F32};
        for (size_t b = 0; b < blocks; b++)
            sf_product(out, sf_view_at(w->turned, row, b * BLOCK), &w->packed[b], NULL, SF_LINEAR, b > 0, count);
    }
}

static void weight_gradients(sf_bert_step *s)
{
    const sf_bert_layer *l = &s->layout->layers[s->layer];
    const sf_bert_rows *r = rows_of(s, s->layer);
    const sf_view douts[MATRICES] = {s->douter, s->dinner, s->dattention, s->dqkv},
                  inputs[MATRICES] = {r->inner, r->middle, r->context, r->input};
    const size_t offsets[MATRICES] = {l->outer_weight, l->inner_weight, l->attention_weight, l->qkv_weight};
    size_t products = 0;
    for (int i = 0; i < MATRICES; i++) {
        weight_task *w = &s->weights[i];
        w->dout = douts[i];
        w->inp = inputs[i];
        w->weight = offsets[i];
        products += strips(w);
    }
    sf_parallel(s->threads, (s->rows + BLOCK - 1) / BLOCK, 1, prepare_weights, s);
    sf_parallel(s->threads, products, 1, multiply_weights, s);
}

/* ---- embeddings ---- */

static void embeddings_back(sf_bert_step *s)
{
    const sf_bert_layout *l = s->layout;
    size_t H = l->shape.hidden;
    float *g = s->gradient;
    sf_isa isa = s->net->isa;
    memset(g, 0, l->layers[0].qkv_weight * sizeof *g); /* they come first */
    for (size_t t = 0; t < s->batch->count; t++)
        for (size_t i = s->batch->offsets[t], position = 0; i < s->batch->offsets[t + 1]; i++, position++) {
            float *d = sf_view_row(s->d, i);
            sf_norm_row_backward(d, g + l->norm_weight, g + l->norm_bias, d, sf_view_row(s->embedded, i),
                                 s->parameters + l->norm_weight, l->shape.epsilon, H, isa);
            sf_add(g + l->words + s->batch->ids[i] * H, d, H, isa);
            sf_add(g + l->positions + position * H, d, H, isa);
            if (l->types != SIZE_MAX) sf_add(g + l->types, d, H, isa);
        }
}

double sf_bert_step_gradient(sf_bert_step *s, const sf_bert_batch *batch, const int *labels, uint64_t number)
{
    s->batch = batch;
    s->rows = batch->offsets[batch->count];
    s->number = number;
    size_t blocks = (s->rows + BLOCK - 1) / BLOCK;
    forward(s);
    double loss = head(s, labels);
    for (size_t layer = s->layout->shape.layers; layer-- > s->first;) {
        s->layer = layer;
        sf_parallel(s->threads, blocks, 1, backward_blocks, s);
        sf_parallel(s->threads, batch->count, 1, backward_texts, s);
        sf_parallel(s->threads, blocks, 1, backward_inputs, s);
        collect(s);
        weight_gradients(s);
    }
    if (s->embeddings) embeddings_back(s);
    return loss;
}

/* ------------------------------------------------------------------- update */

static void square_chunks(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    (void)index;
    for (size_t c = begin; c < end; c++) {
        const float *g = s->gradient + s->chunks[c].offset;
        double lanes[8] = {0};
        for (size_t i = 0; i < s->chunks[c].count; i++) lanes[i % 8] += (double)g[i] * (double)g[i];
        s->squares[c] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                        ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    }
}

static void update_chunks(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    (void)index;
    for (size_t c = begin; c < end; c++) {
        const chunk *k = &s->chunks[c];
        sf_adam adam = sf_adam_at(s->rate, k->decays ? s->options.decay : 0, s->number);
        float *g = s->gradient + k->offset;
        if (s->scale < 1)
            for (size_t i = 0; i < k->count; i++) g[i] *= (float)s->scale;
        sf_adam_update(s->parameters + k->offset, s->means + (k->offset - s->start),
                       s->variances + (k->offset - s->start), g, &adam, k->count);
    }
}

void sf_bert_step_refresh(sf_bert_step *s)
{
    if (s->first == s->layout->shape.layers) return;
    sf_bert_net_update(s->net, s->first, s->threads);
    sf_parallel(s->threads, 4 * (s->layout->shape.layers - s->first), 1, pack_back, s);
}

void sf_bert_step_update(sf_bert_step *s, float *means, float *variances, double rate, uint64_t number)
{
    double sum = 0;
    s->scale = 1;
    s->rate = rate;
    s->number = number;
    s->means = means;
    s->variances = variances;
    if (s->options.clip > 0) {
        sf_parallel(s->threads, s->chunk_count, 4, square_chunks, s);
        for (size_t c = 0; c < s->chunk_count; c++) sum += s->squares[c];
        if (sqrt(sum) > s->options.clip) s->scale = s->options.clip / sqrt(sum);
    }
    sf_parallel(s->threads, s->chunk_count, 4, update_chunks, s);
    sf_bert_step_refresh(s);
}
