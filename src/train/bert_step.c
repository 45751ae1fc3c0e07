/* The `bert` classifier: one step of training.
 *
 * The texts of a batch lie one after the other. Each stage of a layer is spread over
 * threads by blocks of rows, by texts (attention) or by rows of a weight matrix (its
 * gradient); what is summed over rows is summed over the same blocks in the same order
 * however many threads there are.
 *
 * The forward pass keeps what the backward pass reads: the factors of every product, the
 * sums before every norm, and the inner layer before its activation. Attention's shares
 * are not kept but computed again. The forward pass itself is model/bert_net.c; the way back is bert_back.c,
 * bert_attend_back.c and bert_embed_back.c. */
#include "train/bert_inside.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/layers.h"
#include "nn/vector.h"

#include <math.h>
#include <string.h>

enum { BLOCK = SF_STEP_BLOCK, CHUNK = 1 << 16, MATRICES = SF_STEP_MATRICES };
enum { SUMS = 384 * 384 }; /* elements of a weight gradient that are worked on together: they stay in the cache */

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

/* Outputs of the inner matrix. */
static size_t inner_of(const sf_bert_shape *s) { return s->form.gated ? 2 * s->inner : s->inner; }

static int rows_new(sf_bert_rows *r, const sf_bert_step *s, int saved)
{
    const sf_bert_shape *shape = &s->layout->shape;
    size_t N = s->capacity, H = shape->hidden, F = shape->inner;
    sf_dtype type = s->options.type;
    *r = (sf_bert_rows){.x = s->x};
    return sf_view_new(&r->input, N, H, type) || sf_view_new(&r->qkv, N, 3 * H, type) ||
           sf_view_new(&r->context, N, H, type) || sf_view_new(&r->middle, N, H, type) ||
           sf_view_new(&r->inner, N, F, type) ||
           (saved && (sf_view_new(&r->sum1, N, H, SF_F32) || sf_view_new(&r->raw, N, inner_of(shape), type))) ||
           /* of the last frozen layer: what the first trained one norms */
           ((saved || shape->form.prenorm) && sf_view_new(&r->sum2, N, H, SF_F32));
}

void sf_bert_step_free(sf_bert_step *s)
{
    if (!s) return;
    size_t trained = s->layout->shape.layers - s->first;
    for (size_t i = 0; s->saved && i < trained; i++) rows_free(&s->saved[i]);
    for (size_t i = 0; s->back && i < trained; i++) sf_bert_matrices_free(&s->back[i]);
    rows_free(&s->frozen);
    for (int i = 0; s->workers && i < s->threads; i++) sf_step_worker_free(&s->workers[i]);
    for (int i = 0; i < MATRICES; i++) {
        free(s->weights[i].turned.values);
        for (size_t b = 0; s->weights[i].packed && b <= s->capacity / BLOCK; b++)
            sf_packed_free(&s->weights[i].packed[b]);
        free(s->weights[i].packed);
    }
    sf_step_places_free(&s->places);
    sf_view *views[] = {&s->x,      &s->last,       &s->embedded, &s->d,    &s->douter,
                        &s->dinner, &s->dattention, &s->dcontext, &s->dqkv, &s->through};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) free(views[i]->values);
    float *arrays[] = {s->gradient, s->partial,   s->features,      s->dropped,
                       s->masks,    s->dfeatures, s->probabilities, s->room};
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
            s->chunks[s->chunk_count++] = (sf_step_chunk){tensor->offset + done, count, tensor->rank == 2};
        }
    }
    s->squares = sf_alloc(s->chunk_count, sizeof *s->squares);
    return s->squares ? 0 : -1;
}

/* Matrices of the trained layers: shared ones are one. */
static size_t trained_sets(const sf_bert_step *s)
{
    const size_t trained = s->layout->shape.layers - s->first;
    return s->layout->shape.form.shared && trained ? 1 : trained;
}

static int make_back(sf_bert_step *s)
{
    const sf_bert_shape *shape = &s->layout->shape;
    size_t H = shape->hidden, F = shape->inner, G = inner_of(shape), trained = shape->layers - s->first;
    sf_dtype type = s->options.type;
    sf_isa isa = s->net->isa;
    s->back = sf_calloc(trained, sizeof *s->back);
    s->saved = sf_calloc(trained, sizeof *s->saved);
    if (!s->back || !s->saved) return -1;
    for (size_t i = 0; i < trained; i++)
        if (rows_new(&s->saved[i], s, 1)) return -1;
    for (size_t i = 0; i < trained_sets(s); i++) {
        sf_bert_matrices *m = &s->back[i];
        if (sf_packed_shape(&m->qkv, 3 * H, H, type, isa) || sf_packed_shape(&m->attention, H, H, type, isa) ||
            sf_packed_shape(&m->inner, G, H, type, isa) || sf_packed_shape(&m->outer, H, F, type, isa))
            return -1;
    }
    return 0;
}

static int make_weights(sf_bert_step *s)
{
    const sf_bert_shape *shape = &s->layout->shape;
    const size_t H = shape->hidden, F = shape->inner, G = inner_of(shape), N = s->capacity;
    const sf_dtype type = s->options.type;
    const size_t outputs[MATRICES] = {H, G, H, 3 * H}, inputs[MATRICES] = {F, H, H, H};
    size_t stride = (N + 31) / 32 * 32 + 32; /* not a power of two */
    for (int i = 0; i < MATRICES; i++) {
        sf_step_weight *w = &s->weights[i];
        *w = (sf_step_weight){.outputs = outputs[i], .inputs = inputs[i], .strip = (SUMS / inputs[i] + 31) / 32 * 32};
        w->packed = sf_calloc(N / BLOCK + 1, sizeof *w->packed);
        if (!w->packed || sf_view_new(&w->turned, outputs[i], stride, type)) return -1;
        for (size_t b = 0; b <= N / BLOCK; b++)
            if (sf_packed_shape(&w->packed[b], BLOCK, inputs[i], type, s->net->isa)) return -1;
    }
    return sf_view_new(&s->douter, N, H, type) || sf_view_new(&s->dinner, N, G, type) ||
           sf_view_new(&s->dattention, N, H, type) || sf_view_new(&s->dcontext, N, H, type) ||
           sf_view_new(&s->dqkv, N, 3 * H, type) || (shape->form.prenorm && sf_view_new(&s->through, N, H, SF_F32)) ||
           (shape->form.relative == SF_RELATIVE_PARTS && sf_step_places_new(&s->places, s));
}

static int make_arrays(sf_bert_step *s)
{
    const sf_bert_shape *shape = &s->layout->shape;
    size_t H = shape->hidden, E = sf_bert_width(shape), N = s->capacity, B = s->texts;
    s->partial_size = 12 * H + inner_of(shape); /* of a layer */
    s->gradient = sf_alloc_aligned(s->layout->size, sizeof *s->gradient);
    s->partial = sf_alloc_aligned((N / BLOCK + 1) * s->partial_size, sizeof *s->partial);
    s->features = sf_alloc_aligned(B * H, sizeof *s->features);
    s->dropped = sf_alloc_aligned(B * H, sizeof *s->dropped);
    s->masks = sf_alloc_aligned(B * H, sizeof *s->masks);
    s->dfeatures = sf_alloc_aligned(B * H, sizeof *s->dfeatures);
    s->probabilities = sf_alloc_aligned(B * shape->classes, 2 * sizeof *s->probabilities); /* and their gradients */
    s->room = sf_alloc_aligned(8 * (H > E ? H : E), sizeof *s->room);
    s->workers = sf_calloc((size_t)s->threads, sizeof *s->workers);
    if (!s->gradient || !s->partial || !s->features || !s->dropped || !s->masks || !s->dfeatures || !s->probabilities ||
        !s->room || !s->workers)
        return -1;
    memset(s->gradient, 0, s->layout->size * sizeof *s->gradient);
    memset(s->room, 0, 8 * (H > E ? H : E) * sizeof *s->room);
    if (sf_view_new(&s->x, N, H, SF_F32) || sf_view_new(&s->last, N, H, s->options.type) ||
        sf_view_new(&s->d, N, H, SF_F32) || rows_new(&s->frozen, s, 0) || make_back(s))
        return -1;
    if (s->embeddings && sf_view_new(&s->embedded, N, shape->form.projected_first ? H : E, SF_F32)) return -1;
    for (int i = 0; i < s->threads; i++)
        if (sf_step_worker_new(&s->workers[i], s)) return -1;
    return s->first == shape->layers ? 0 : make_weights(s);
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

/* Shared layers are trained together: the last of them is all of them. */
sf_bert_trained sf_bert_trained_of(const sf_bert_layout *l, const sf_bert_options *options)
{
    const size_t layers = l->shape.layers, most = l->shape.form.shared && options->layers ? layers : options->layers;
    const size_t first = most >= layers ? 0 : layers - most;
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
    sf_parallel(s->threads, 4 * trained_sets(s), 1, pack_back, s);
    *out = s;
    s = NULL;
done:
    sf_bert_step_free(s);
    return status;
}

/* ------------------------------------------------------------------ forward */

static sf_view input_of(sf_bert_step *s, size_t layer)
{
    return layer == s->layout->shape.layers ? s->last : sf_step_rows(s, layer)->input;
}

sf_bert_rows sf_step_shifted(const sf_bert_rows *r, size_t row)
{
    return (sf_bert_rows){.x = sf_step_shift(r->x, row),
                          .input = sf_step_shift(r->input, row),
                          .qkv = sf_step_shift(r->qkv, row),
                          .context = sf_step_shift(r->context, row),
                          .sum1 = sf_step_shift(r->sum1, row),
                          .middle = sf_step_shift(r->middle, row),
                          .raw = sf_step_shift(r->raw, row),
                          .inner = sf_step_shift(r->inner, row),
                          .sum2 = sf_step_shift(r->sum2, row)};
}

static void embed_texts(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    const sf_bert_rows *work = &s->workers[index].work;
    for (size_t t = begin; t < end; t++) {
        size_t row = s->batch->offsets[t];
        sf_bert_rows r = {.x = sf_step_shift(s->x, row),
                          .input = sf_step_shift(input_of(s, 0), row),
                          .sum1 = sf_step_shift(s->embedded, row),
                          .narrow = work->narrow,
                          .factor = work->factor};
        sf_bert_embed(&r, s->net, s->batch->ids + row, s->batch->offsets[t + 1] - row);
    }
}

/* The end of the layer before, the beginning of this one. */
static void forward_blocks(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    const sf_bert_layout *l = s->layout;
    size_t layer = s->layer;
    for (size_t b = begin; b < end; b++) {
        size_t row = b * BLOCK, count = s->rows - row < BLOCK ? s->rows - row : BLOCK;
        if (layer) {
            sf_bert_rows r = sf_step_shifted(sf_step_rows(s, layer - 1), row);
            r.gate = s->workers[index].work.gate;
            r.normed = s->workers[index].work.normed;
            sf_bert_transform(&r, sf_step_shift(input_of(s, layer), row), s->net, layer - 1, count);
        }
        if (layer < l->shape.layers)
            sf_product(sf_step_shift(sf_step_rows(s, layer)->qkv, row),
                       sf_step_shift(sf_step_rows(s, layer)->input, row), &s->net->layers[sf_bert_set(l, layer)].qkv,
                       sf_bert_bias(s->net, l->layers[layer].qkv_bias), SF_LINEAR, 0, count);
    }
}

static void forward_texts(void *context, size_t begin, size_t end, int index)
{
    sf_bert_step *s = context;
    for (size_t t = begin; t < end; t++) {
        size_t row = s->batch->offsets[t];
        sf_bert_rows r = sf_step_shifted(sf_step_rows(s, s->layer), row);
        sf_bert_attend(r.context, r.qkv, s->net, s->layer, s->batch->offsets[t + 1] - row,
                       &s->workers[index].attention);
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

/* From the gradient of the features of a text, in df, to that of the vector that the dense layer reads, in df again.
 * `work` is that of sf_bert_pool_text. */
static void dense_back(sf_bert_step *s, float *df, const float *work)
{
    const sf_bert_layout *l = s->layout;
    const size_t H = l->shape.hidden;
    const float *pooled = work, *active = work + 2 * H;
    float *g = s->gradient, *raw = (float *)work + H, *spare = s->room + 3 * H, *out = s->room + 4 * H;
    if (l->shape.form.dense_norm)
        sf_norm_row_backward(df, g + l->pooler_norm_weight,
                             l->pooler_norm_bias == SIZE_MAX ? spare : g + l->pooler_norm_bias, df, active,
                             s->parameters + l->pooler_norm_weight, l->shape.epsilon, H, s->net->isa);
    if (l->shape.pooler > SF_ENCODER_RELU) {
        const sf_view d = {df, H, SF_F32}, before = {raw, H, SF_F32};
        sf_activate_rows_backward(d, d, before, sf_bert_dense(l->shape.pooler), 1, H, s->net->isa);
    } else {
        for (size_t j = 0; j < H; j++)
            df[j] *= l->shape.pooler == SF_ENCODER_RELU ? (float)(active[j] > 0) : 1 - active[j] * active[j];
    }
    sf_linear_backward(out, g + l->pooler_weight, l->pooler_bias == SIZE_MAX ? NULL : g + l->pooler_bias, df, pooled,
                       s->parameters + l->pooler_weight, 1, H, H);
    memcpy(df, out, H * sizeof *df);
}

/* Pools, classifies, and leaves the gradient of the last layer's output in d. Returns the
 * summed loss. */
static double head(sf_bert_step *s, const int *labels)
{
    const sf_bert_layout *l = s->layout;
    size_t H = l->shape.hidden, C = l->shape.classes, B = s->batch->count;
    const float *p = s->parameters;
    const int dense = l->pooler_weight != SIZE_MAX;
    const size_t begins = dense ? l->pooler_weight : l->classifier_weight; /* it comes last */
    float *g = s->gradient, *dlogits = s->probabilities + s->texts * C;
    const sf_stream stream = sf_bert_step_dropout(&s->options);
    double loss = 0;
    memset(g + begins, 0, (l->size - begins) * sizeof *g);
    memset(s->d.values, 0, s->rows * H * sizeof *g);
    for (size_t t = 0; t < B; t++) {
        size_t row = s->batch->offsets[t], T = s->batch->offsets[t + 1] - row;
        float *features = s->features + t * H, *dropped = s->dropped + t * H, *df = s->dfeatures + t * H,
              *logits = s->probabilities + t * C;
        sf_bert_pool_text(features, s->room, s->net, sf_step_shift(s->x, row), T);
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
        if (dense) dense_back(s, df, s->room);
        if (l->shape.pool == SF_POOL_MEAN || (dense && l->shape.form.dense_mean)) {
            for (size_t i = 0; i < T; i++)
                for (size_t j = 0; j < H; j++) sf_view_row(s->d, row + i)[j] = df[j] / (float)T;
        } else {
            memcpy(sf_view_row(s->d, row), df, H * sizeof *df);
        }
    }
    return loss;
}

double sf_bert_step_gradient(sf_bert_step *s, const sf_bert_batch *batch, const int *labels, uint64_t number)
{
    s->batch = batch;
    s->rows = batch->offsets[batch->count];
    s->number = number;
    forward(s);
    double loss = head(s, labels);
    sf_step_backward(s);
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
        const sf_step_chunk *k = &s->chunks[c];
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
    sf_parallel(s->threads, 4 * trained_sets(s), 1, pack_back, s);
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
