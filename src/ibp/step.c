/* One training step by interval bounds.
 *
 * The box of a word is the same wherever the word stands, so everything up to the windows is
 * computed once for each different word of the batch, and windows are sums of its rows, as
 * in model/cnn_step.c. In order:
 *
 *   words    different words of the batch, synonyms included: vector, then `pre` (Q numbers)
 *   types    different items (words that stay, and words with a set of synonyms; those with
 *            sets come first): the hull, i.e. for every item a value row and for every set a
 *            low and a high row, shrunk to the share eps around the value, after ReLU (Jia)
 *   rows     what the item adds to the windows. The hull itself or, after Jia in a cnn,
 *            the convolution's taps, for intervals as centre and radius: W c and |W| r
 *   texts    windows, ReLU and mean three times: for values, low and high ends
 *   head     hidden layer, margins, losses, for all texts at once
 *
 * and back again. Rows of all three kinds lie in one table: the values of all types, then the
 * low ends of the sets, then the high ends; an item without synonyms has only its value, and
 * that serves as its ends, too.
 *
 * Nothing depends on the number of threads: texts are independent of each other; words and
 * types are taken in blocks of fixed size, whose shares of a gradient are added in order; a
 * type's occurrences are added in the order of the batch, and a word's shares in the order
 * of the types, each column by one worker. */
#include "ibp/ibp.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/layers.h"

#include <assert.h>
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

extern void omp_set_num_threads(int threads);

enum { BLOCK = 256, COLUMNS = 32, OTHERS = 8 }; /* words of a product; of a worker's share; of a triplet */

/* The three runs through the text. */
enum { VALUE, LOW, HIGH, RUNS };

struct sf_ibp_step {
    sf_ibp_layout layout;
    const sf_ibp_sets *sets;
    sf_ibp_options options;
    sf_stream dropout, others;

    uint32_t *word_place; /* (vocabulary): where a word is among the batch's, or SF_NONE */
    uint32_t *item_place; /* (vocabulary + sets): likewise among the types */
    uint32_t *words;      /* (W): the batch's words */
    uint32_t *types;      /* (U): the batch's items, sets first */
    uint32_t *single;     /* those that stay, while they are being numbered */
    uint32_t *own;        /* (U): the word itself, among the batch's */
    uint32_t *members;    /* words of the sets, among the batch's */
    size_t *member_begin; /* (S+1) */
    uint32_t *rows_of[RUNS]; /* (words): the row of each position */
    uint32_t *text;       /* (words): the text each position is in */
    uint32_t *occurrences; /* (words): where each type occurs */
    size_t *begin;        /* (U+1): in the occurrences */
    uint32_t other[OTHERS]; /* a triplet's other words, among the batch's */
    size_t W, S, U;       /* words, sets, types */

    /* Carved from one piece of memory, anew for every batch. */
    float *memory;
    size_t capacity;
    float *vectors, *dvectors;   /* (W, D) */
    float *pre, *dpre;           /* (W, Q) */
    float *hull, *dhull;         /* (U+2S, Q) */
    uint32_t *arg_low, *arg_high; /* (S, Q): which word gives the end */
    float *centre, *radius;      /* (S, Q): Jia's cnn */
    float *rows, *drows;         /* (U+2S, R): or the hull itself */
    float *x[RUNS];              /* (words, F): activations, then their gradients */
    float *dbias;                /* (RUNS, texts, F) */
    float *features[RUNS], *dfeatures[RUNS]; /* (texts, F) */
    float *feature_mask;         /* (texts, F) */
    float *mid[RUNS];            /* (texts, F): value, centre, radius, dropped out */
    float *before[RUNS];         /* (texts, H): value, centre, radius; then gradients */
    float *after[RUNS];          /* (texts, H): value, centre, radius, dropped out; then gradients */
    float *hidden_mask;          /* (texts, H) */
    float *logits, *worst, *dlogits; /* (texts, K) */
    float *conv_parts;           /* (blocks, 2, R, Q) */
    float *first_parts;          /* (blocks, Q, D) */
    float *bias_parts;           /* (blocks, Q) */
    float *pull, *apart;         /* (U): a triplet's excess; (U, OTHERS): distances from the others */
    float *conv_size, *hidden_size; /* |W| */
    float *dafter;               /* (RUNS, H): of one text */

    float *gradient;             /* (size - vocabulary * dim): of all behind the word vectors */

    /* Of the step in progress. */
    const float *parameters;
    const sf_ibp_batch *batch;
    float eps, kappa;
    uint64_t number;
    atomic_int failed;
};

/* ------------------------------------------------------------------- memory */

void sf_ibp_step_free(sf_ibp_step *s)
{
    if (!s) return;
    void *owned[] = {s->word_place, s->item_place, s->words, s->types, s->single, s->own, s->members, s->member_begin, s->text,
                     s->occurrences, s->begin, s->memory, s->gradient};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
    for (int run = 0; run < RUNS; run++) free(s->rows_of[run]);
    free(s);
}

static void *numbers(int *failed, size_t count)
{
    void *p = sf_alloc(count, sizeof(uint32_t));
    if (!p) *failed = 1;
    return p;
}

safer_status sf_ibp_step_new(sf_ibp_step **out, const sf_ibp_layout *l, const sf_ibp_sets *sets, const sf_ibp_options *options,
                             size_t words, safer_error *error)
{
    size_t V = l->shape.vocabulary, items = V + sets->count, types = words < items ? words : items;
    int failed = 0;
    sf_ibp_step *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->layout = *l;
    s->sets = sets;
    s->options = *options;
    s->dropout = sf_stream_of(options->seed, UINT64_C(0x64726f706f757400), SF_STAGE_TRAINING); /* "dropout" */
    s->others = sf_stream_of(options->seed, UINT64_C(0x7472697000000000), SF_STAGE_TRAINING);  /* "trip" */
    s->word_place = numbers(&failed, V);
    s->item_place = numbers(&failed, items);
    s->words = numbers(&failed, V);
    s->types = numbers(&failed, types);
    s->single = numbers(&failed, types);
    s->own = numbers(&failed, types);
    s->members = numbers(&failed, sets->offsets[sets->count]);
    s->member_begin = sf_calloc((types < sets->count ? types : sets->count) + 1, sizeof *s->member_begin);
    for (int run = 0; run < RUNS; run++) s->rows_of[run] = numbers(&failed, words);
    s->text = numbers(&failed, words);
    s->occurrences = numbers(&failed, words);
    s->begin = sf_calloc(types + 1, sizeof *s->begin);
    s->gradient = sf_alloc_aligned(l->size - V * l->shape.dim, sizeof *s->gradient);
    if (failed || !s->member_begin || !s->begin || !s->gradient) {
        sf_ibp_step_free(s);
        return sf_fail_memory(error);
    }
    memset(s->word_place, 0xff, V * sizeof *s->word_place);
    memset(s->item_place, 0xff, items * sizeof *s->item_place);
    *out = s;
    return SAFER_OK;
}

static size_t blocks_of(size_t count) { return (count + BLOCK - 1) / BLOCK; }
static int has_inner_product(const sf_ibp_step *s) { return s->layout.shape.wordwise && s->layout.shape.convolution; }
/* The vectors that a triplet pulls together: the word vectors, or what is made of frozen ones. */
static int triplet_on_vectors(const sf_ibp_step *s) { return !s->options.freeze; }

/* Hands out pieces of `base`; with NULL it only counts. */
typedef struct carver {
    float *base;
    size_t at;
} carver;

static void *carve(carver *c, size_t count)
{
    float *piece = c->base ? c->base + c->at : NULL;
    c->at += (count + 15) / 16 * 16;
    return piece;
}

static size_t carve_all(sf_ibp_step *s, float *base)
{
    const sf_ibp_layout *l = &s->layout;
    carver c = {base, 0};
    size_t D = l->shape.dim, Q = l->hull, R = l->row, F = l->features, H = l->shape.hidden, K = l->shape.classes;
    size_t B = s->batch->count, N = s->batch->offsets[B], rows = s->U + 2 * s->S;
    s->vectors = carve(&c, s->W * D);
    s->dvectors = carve(&c, s->options.freeze ? 0 : s->W * D);
    s->pre = carve(&c, s->W * Q);
    s->dpre = carve(&c, s->W * Q);
    s->hull = carve(&c, rows * Q);
    s->dhull = carve(&c, rows * Q);
    s->arg_low = carve(&c, s->S * Q);
    s->arg_high = carve(&c, s->S * Q);
    s->rows = s->hull;
    s->drows = s->dhull;
    if (has_inner_product(s)) {
        s->centre = carve(&c, s->S * Q);
        s->radius = carve(&c, s->S * Q);
        s->rows = carve(&c, rows * R);
        s->drows = carve(&c, rows * R);
        s->conv_parts = carve(&c, blocks_of(s->U) * 2 * R * Q);
        s->conv_size = carve(&c, R * Q);
    }
    s->first_parts = carve(&c, blocks_of(s->W) * Q * D);
    s->bias_parts = carve(&c, blocks_of(s->W) * Q);
    s->dbias = carve(&c, RUNS * B * F);
    for (int run = 0; run < RUNS; run++) {
        s->x[run] = carve(&c, N * F);
        s->features[run] = carve(&c, B * F);
        s->dfeatures[run] = carve(&c, B * F);
        s->mid[run] = carve(&c, B * F);
        s->before[run] = carve(&c, B * H);
        s->after[run] = carve(&c, B * H);
    }
    s->feature_mask = carve(&c, B * F);
    s->hidden_mask = carve(&c, B * H);
    s->hidden_size = carve(&c, H * F);
    s->dafter = carve(&c, RUNS * H);
    s->logits = carve(&c, B * K);
    s->worst = carve(&c, B * K);
    s->dlogits = carve(&c, B * K);
    s->pull = carve(&c, s->U);
    s->apart = carve(&c, s->U * OTHERS);
    return c.at;
}

static safer_status make_room(sf_ibp_step *s, safer_error *error)
{
    size_t need = carve_all(s, NULL);
    if (need > s->capacity) {
        free(s->memory);
        s->capacity = need + need / 8;
        s->memory = sf_alloc_aligned(s->capacity, sizeof *s->memory);
        if (!s->memory) {
            s->capacity = 0;
            return sf_fail_memory(error);
        }
    }
    carve_all(s, s->memory);
    return SAFER_OK;
}

/* ------------------------------------------------------------------ numbering */

static uint32_t place_word(sf_ibp_step *s, uint32_t word)
{
    if (s->word_place[word] == SF_NONE) {
        s->word_place[word] = (uint32_t)s->W;
        s->words[s->W++] = word;
    }
    return s->word_place[word];
}

/* Numbers the batch's items: those with sets from 0 on, the others behind them. */
static void number_items(sf_ibp_step *s)
{
    const sf_ibp_batch *b = s->batch;
    size_t V = s->layout.shape.vocabulary, N = b->offsets[b->count], singles = 0;
    for (size_t i = 0; i < s->U; i++) s->item_place[s->types[i]] = SF_NONE; /* of the step before */
    s->S = 0;
    for (size_t i = 0; i < N; i++) {
        uint32_t item = b->items[i], *place = &s->item_place[item];
        if (*place != SF_NONE) continue;
        *place = (uint32_t)(item < V ? singles : s->S);
        if (item < V) s->single[singles++] = item;
        else s->types[s->S++] = item;
    }
    s->U = s->S + singles;
    for (size_t i = 0; i < singles; i++) {
        s->types[s->S + i] = s->single[i];
        s->item_place[s->single[i]] += (uint32_t)s->S;
    }
}

/* Lists the words that are needed, and the sets in terms of them. */
static void number_words(sf_ibp_step *s)
{
    size_t V = s->layout.shape.vocabulary, count = 0;
    for (size_t i = 0; i < s->W; i++) s->word_place[s->words[i]] = SF_NONE;
    s->W = 0;
    for (size_t u = 0; u < s->U; u++) {
        if (u >= s->S) {
            s->own[u] = place_word(s, s->types[u]);
            continue;
        }
        size_t set = s->types[u] - V;
        s->own[u] = place_word(s, s->sets->members[s->sets->offsets[set]]);
        for (size_t m = s->sets->offsets[set]; m < s->sets->offsets[set + 1]; m++)
            s->members[count++] = place_word(s, s->sets->members[m]);
        s->member_begin[u + 1] = count;
    }
    if (s->options.triplet > 0)
        for (uint32_t i = 0; i < OTHERS; i++)
            s->other[i] = place_word(s, V > 1 ? 1 + sf_draw_below(s->others, s->number, i, (uint32_t)(V - 1)) : 0);
}

/* The rows of every position, and where each type occurs. */
static void number_positions(sf_ibp_step *s)
{
    const sf_ibp_batch *b = s->batch;
    size_t sum = 0;
    memset(s->begin, 0, (s->U + 1) * sizeof *s->begin);
    for (size_t t = 0; t < b->count; t++)
        for (size_t i = b->offsets[t]; i < b->offsets[t + 1]; i++) {
            uint32_t type = s->item_place[b->items[i]];
            s->rows_of[VALUE][i] = type;
            s->rows_of[LOW][i] = type < s->S ? (uint32_t)s->U + type : type;
            s->rows_of[HIGH][i] = type < s->S ? (uint32_t)(s->U + s->S) + type : type;
            s->text[i] = (uint32_t)t;
            s->begin[type]++;
        }
    for (size_t u = 0; u < s->U; u++) { /* counts become ends, and filling backwards makes them begins */
        sum += s->begin[u];
        s->begin[u] = sum;
    }
    s->begin[s->U] = sum;
    for (size_t i = sum; i-- > 0;) s->occurrences[--s->begin[s->rows_of[VALUE][i]]] = (uint32_t)i;
}

/* ------------------------------------------------------------------- products */

/* C (M, N) = A B, or with A or B transposed; or C += A B. The worker's own thread does it. */
static void multiply(sf_ibp_step *s, char transpose_a, char transpose_b, float *C, const float *A, const float *B, size_t M, size_t N,
                     size_t K, int add)
{
    size_t lda = transpose_a == 'T' ? M : K, ldb = transpose_b == 'T' ? K : N;
    if (M == 0) return;
    if (dnnl_sgemm(transpose_a, transpose_b, (dnnl_dim_t)M, (dnnl_dim_t)N, (dnnl_dim_t)K, 1.0f, A, (dnnl_dim_t)lda, B, (dnnl_dim_t)ldb,
                   add ? 1.0f : 0.0f, C, (dnnl_dim_t)N) != dnnl_success)
        atomic_store(&s->failed, 1);
}

static void add(float *out, const float *inp, size_t N)
{
    for (size_t i = 0; i < N; i++) out[i] += inp[i];
}

static void absolute(float *out, const float *inp, size_t N)
{
    for (size_t i = 0; i < N; i++) out[i] = fabsf(inp[i]);
}

/* gradient += sign(weight) * part: the gradient of |W| r. */
static void add_signed(float *gradient, const float *part, const float *weight, size_t N)
{
    for (size_t i = 0; i < N; i++) gradient[i] += weight[i] > 0 ? part[i] : weight[i] < 0 ? -part[i] : 0;
}

/* (low, high) to (centre, radius), and gradients of (centre, radius) to those of (low, high). */
static void to_centre(float *centre, float *radius, const float *low, const float *high, size_t N)
{
    for (size_t i = 0; i < N; i++) {
        float a = low[i], b = high[i];
        centre[i] = 0.5f * (a + b);
        radius[i] = 0.5f * (b - a);
    }
}

static void to_ends(float *low, float *high, const float *centre, const float *radius, size_t N)
{
    for (size_t i = 0; i < N; i++) {
        float c = centre[i], r = radius[i];
        low[i] = c - r;
        high[i] = c + r;
    }
}

static void halves(float *dlow, float *dhigh, const float *dcentre, const float *dradius, size_t N)
{
    for (size_t i = 0; i < N; i++) {
        float c = dcentre[i], r = dradius[i];
        dlow[i] = 0.5f * (c - r);
        dhigh[i] = 0.5f * (c + r);
    }
}

/* ------------------------------------------------------------- words and hulls */

/* Items are blocks of words. */
static void project_words(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    const sf_ibp_layout *l = &s->layout;
    size_t D = l->shape.dim, Q = l->hull;
    (void)worker;
    omp_set_num_threads(1);
    for (size_t block = begin; block < end; block++) {
        size_t first = block * BLOCK, last = s->W - first > BLOCK ? first + BLOCK : s->W;
        for (size_t i = first; i < last; i++)
            memcpy(s->vectors + i * D, s->parameters + l->embedding + s->words[i] * D, D * sizeof *s->vectors);
        multiply(s, 'N', 'T', s->pre + first * Q, s->vectors + first * D, s->parameters + l->first, last - first, Q, D, 0);
        for (size_t i = first; l->shape.wordwise && i < last; i++) add(s->pre + i * Q, s->parameters + l->word_bias, Q);
    }
}

/* The ends of a set, and who attains them: the first in the set's order. */
static void find_ends(sf_ibp_step *s, size_t u)
{
    size_t Q = s->layout.hull;
    const float *value = s->pre + s->own[u] * Q;
    float *low = s->hull + (s->U + u) * Q, *high = s->hull + (s->U + s->S + u) * Q;
    uint32_t *arg_low = s->arg_low + u * Q, *arg_high = s->arg_high + u * Q;
    memcpy(low, value, Q * sizeof *low);
    memcpy(high, value, Q * sizeof *high);
    for (size_t q = 0; q < Q; q++) arg_low[q] = arg_high[q] = s->own[u];
    for (size_t m = s->member_begin[u] + 1; m < s->member_begin[u + 1]; m++) {
        uint32_t word = s->members[m];
        const float *pre = s->pre + word * Q;
        for (size_t q = 0; q < Q; q++) {
            float x = pre[q];
            arg_low[q] = x < low[q] ? word : arg_low[q];
            low[q] = x < low[q] ? x : low[q];
            arg_high[q] = x > high[q] ? word : arg_high[q];
            high[q] = x > high[q] ? x : high[q];
        }
    }
    for (size_t q = 0; q < Q; q++) {
        low[q] = value[q] + s->eps * (low[q] - value[q]);
        high[q] = value[q] + s->eps * (high[q] - value[q]);
    }
}

/* The taps of types first..last-1: values, and for sets the two ends. */
static void convolve_hulls(sf_ibp_step *s, size_t first, size_t last)
{
    const sf_ibp_layout *l = &s->layout;
    size_t Q = l->hull, R = l->row, sets = last < s->S ? last : s->S;
    const float *weight = s->parameters + l->conv_weight;
    multiply(s, 'N', 'T', s->rows + first * R, s->hull + first * Q, weight, last - first, R, Q, 0);
    if (first >= sets) return;
    size_t count = sets - first, low = s->U + first, high = s->U + s->S + first;
    to_centre(s->centre + first * Q, s->radius + first * Q, s->hull + low * Q, s->hull + high * Q, count * Q);
    multiply(s, 'N', 'T', s->rows + low * R, s->centre + first * Q, weight, count, R, Q, 0);
    multiply(s, 'N', 'T', s->rows + high * R, s->radius + first * Q, s->conv_size, count, R, Q, 0);
    to_ends(s->rows + low * R, s->rows + high * R, s->rows + low * R, s->rows + high * R, count * R);
}

/* Items are blocks of types. */
static void make_hulls(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    size_t Q = s->layout.hull;
    (void)worker;
    omp_set_num_threads(1);
    for (size_t block = begin; block < end; block++) {
        size_t first = block * BLOCK, last = s->U - first > BLOCK ? first + BLOCK : s->U;
        for (size_t u = first; u < last; u++) {
            memcpy(s->hull + u * Q, s->pre + s->own[u] * Q, Q * sizeof *s->hull);
            if (u < s->S) find_ends(s, u);
            if (!s->layout.shape.wordwise) continue;
            sf_relu_forward(s->hull + u * Q, s->hull + u * Q, Q);
            for (size_t row = s->U + u; u < s->S && row < s->U + 2 * s->S; row += s->S) sf_relu_forward(s->hull + row * Q, s->hull + row * Q, Q);
        }
        if (has_inner_product(s)) convolve_hulls(s, first, last);
    }
}

/* ----------------------------------------------------------------------- texts */

static void read_texts(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    const sf_ibp_layout *l = &s->layout;
    size_t F = l->features;
    (void)worker;
    for (size_t b = begin; b < end; b++)
        for (int run = 0; run < RUNS; run++) {
            size_t first = s->batch->offsets[b], N = s->batch->offsets[b + 1] - first;
            sf_conv_forward(s->x[run] + first * F, s->rows, s->rows_of[run] + first,
                            l->shape.convolution ? s->parameters + l->conv_bias : NULL, N, l->shape.width, F, l->row, F);
            sf_pool_forward(s->features[run] + b * F, NULL, s->x[run] + first * F, l->shape.convolution, 0, N, F, F);
        }
}

static void return_to_texts(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    size_t F = s->layout.features, B = s->batch->count;
    (void)worker;
    for (size_t b = begin; b < end; b++)
        for (int run = 0; run < RUNS; run++) {
            size_t first = s->batch->offsets[b], N = s->batch->offsets[b + 1] - first;
            sf_pool_backward(s->x[run] + first * F, s->dbias + ((size_t)run * B + b) * F, s->dfeatures[run] + b * F, NULL,
                             s->layout.shape.convolution, 0, N, F, F);
        }
}

/* ------------------------------------------------------------------------ head */

/* From the features to the hidden layer: value, centre and radius, before the ReLU. */
static void enter_hidden(sf_ibp_step *s)
{
    const sf_ibp_layout *l = &s->layout;
    const float *weight = s->parameters + l->hidden_weight, *bias = s->parameters + l->hidden_bias;
    size_t B = s->batch->count, F = l->features, H = l->shape.hidden;
    float **mid = l->pooled_hidden ? s->before : s->mid;
    memcpy(mid[VALUE], s->features[VALUE], B * F * sizeof(float));
    to_centre(mid[LOW], mid[HIGH], s->features[LOW], s->features[HIGH], B * F);
    if (!l->pooled_hidden) {
        absolute(s->hidden_size, weight, H * F);
        for (size_t b = 0; b < B; b++)
            sf_dropout_forward(mid[VALUE] + b * F, s->feature_mask + b * F, mid[VALUE] + b * F, s->options.dropout, s->dropout, s->number,
                               (uint32_t)(2 * b), F);
        sf_dropout_backward(mid[LOW], mid[LOW], s->feature_mask, B * F);
        sf_dropout_backward(mid[HIGH], mid[HIGH], s->feature_mask, B * F);
        multiply(s, 'N', 'T', s->before[VALUE], mid[VALUE], weight, B, H, F, 0);
        multiply(s, 'N', 'T', s->before[LOW], mid[LOW], weight, B, H, F, 0);
        multiply(s, 'N', 'T', s->before[HIGH], mid[HIGH], s->hidden_size, B, H, F, 0);
    }
    for (size_t b = 0; b < B; b++) {
        add(s->before[VALUE] + b * H, bias, H);
        add(s->before[LOW] + b * H, bias, H);
    }
}

/* ReLU and dropout: `before` becomes value, low and high after the ReLU, `after` value,
 * centre and radius behind the dropout. */
static void leave_hidden(sf_ibp_step *s)
{
    size_t B = s->batch->count, H = s->layout.shape.hidden;
    to_ends(s->before[LOW], s->before[HIGH], s->before[LOW], s->before[HIGH], B * H);
    for (int run = 0; run < RUNS; run++) sf_relu_forward(s->before[run], s->before[run], B * H);
    for (size_t b = 0; b < B; b++)
        sf_dropout_forward(s->after[VALUE] + b * H, s->hidden_mask + b * H, s->before[VALUE] + b * H, s->options.dropout, s->dropout,
                           s->number, (uint32_t)(2 * b + 1), H);
    to_centre(s->after[LOW], s->after[HIGH], s->before[LOW], s->before[HIGH], B * H);
    sf_dropout_backward(s->after[LOW], s->after[LOW], s->hidden_mask, B * H);
    sf_dropout_backward(s->after[HIGH], s->after[HIGH], s->hidden_mask, B * H);
}

/* The share of the loss that text b has by its worst margins. Class k may lead the label y by
 * (w_k - w_y) c + |w_k - w_y| r + b_k - b_y. Adds to dcentre, dradius (H) and the gradient. */
static double lose_worst(sf_ibp_step *s, size_t b, float *dcentre, float *dradius, float *dweight, float *dbias)
{
    const sf_ibp_layout *l = &s->layout;
    size_t H = l->shape.hidden, K = l->shape.classes, y = (size_t)s->batch->labels[b];
    const float *weight = s->parameters + l->output_weight, *bias = s->parameters + l->output_bias, *own = weight + y * H;
    const float *centre = s->after[LOW] + b * H, *radius = s->after[HIGH] + b * H;
    float *worst = s->worst + b * K, *probabilities = s->dlogits + b * K; /* that of the clean loss is done with */
    for (size_t k = 0; k < K; k++) {
        const float *w = weight + k * H;
        float sum = 0;
        for (size_t h = 0; h < H; h++) sum += (w[h] - own[h]) * centre[h] + fabsf(w[h] - own[h]) * radius[h];
        worst[k] = k == y ? 0 : sum + bias[k] - bias[y];
    }
    double loss = (double)sf_softmax_loss(probabilities, NULL, worst, (int)y, 1, K);
    for (size_t k = 0; k < K; k++) {
        const float *w = weight + k * H, d = k == y ? 0 : s->kappa / (float)s->batch->count * probabilities[k];
        for (size_t h = 0; h < H && k != y; h++) {
            float difference = w[h] - own[h], sign = difference > 0 ? 1.0f : difference < 0 ? -1.0f : 0.0f;
            float share = d * (centre[h] + sign * radius[h]);
            dcentre[h] += d * difference;
            dradius[h] += d * fabsf(difference);
            dweight[k * H + h] += share;
            dweight[y * H + h] -= share;
        }
        dbias[k] += d;
        dbias[y] -= d;
    }
    return loss;
}

static double lose_clean(sf_ibp_step *s, size_t b, float *dvalue, float *dweight, float *dbias)
{
    const sf_ibp_layout *l = &s->layout;
    size_t H = l->shape.hidden, K = l->shape.classes;
    const float *weight = s->parameters + l->output_weight, *value = s->after[VALUE] + b * H;
    float *logits = s->logits + b * K, *dlogits = s->dlogits + b * K;
    sf_linear_forward(logits, value, weight, s->parameters + l->output_bias, 1, H, K);
    double loss = (double)sf_softmax_loss(dlogits, NULL, logits, s->batch->labels[b], 1, K);
    for (size_t k = 0; k < K; k++)
        dlogits[k] = (1 - s->kappa) / (float)s->batch->count * (dlogits[k] - (k == (size_t)s->batch->labels[b] ? 1.0f : 0.0f));
    sf_linear_backward(dvalue, dweight, dbias, dlogits, value, weight, 1, H, K);
    return loss;
}

/* Logits, margins and losses; `after` becomes its own gradient, and the output layer's is added up. */
static double lose(sf_ibp_step *s, float *gradient)
{
    const sf_ibp_layout *l = &s->layout;
    size_t B = s->batch->count, H = l->shape.hidden, base = l->shape.vocabulary * l->shape.dim;
    float *dweight = gradient + l->output_weight - base, *dbias = gradient + l->output_bias - base;
    double loss = 0;
    for (size_t b = 0; b < B; b++) {
        float *d = s->dafter;
        memset(d, 0, RUNS * H * sizeof *d);
        loss += (1 - (double)s->kappa) * lose_clean(s, b, d + VALUE * H, dweight, dbias);
        loss += (double)s->kappa * lose_worst(s, b, d + LOW * H, d + HIGH * H, dweight, dbias);
        for (int run = 0; run < RUNS; run++) memcpy(s->after[run] + b * H, d + (size_t)run * H, H * sizeof *d);
    }
    return loss;
}

/* From the gradient of `after` to those of the features. */
static void return_through_hidden(sf_ibp_step *s, float *gradient)
{
    const sf_ibp_layout *l = &s->layout;
    size_t B = s->batch->count, F = l->features, H = l->shape.hidden, base = l->shape.vocabulary * l->shape.dim;
    const float *weight = s->parameters + l->hidden_weight;
    float *dweight = gradient + l->hidden_weight - base, *dbias = gradient + l->hidden_bias - base;
    for (int run = 0; run < RUNS; run++) sf_dropout_backward(s->after[run], s->after[run], s->hidden_mask, B * H);
    halves(s->after[LOW], s->after[HIGH], s->after[LOW], s->after[HIGH], B * H);
    for (int run = 0; run < RUNS; run++) sf_relu_backward(s->after[run], s->after[run], s->before[run], B * H);
    /* Ends are centre -+ radius: the gradients of centre and radius are their sum and difference. */
    float *dvalue = s->after[VALUE], *dcentre = s->after[LOW], *dradius = s->after[HIGH];
    for (size_t i = 0; i < B * H; i++) {
        float low = dcentre[i], high = dradius[i];
        dcentre[i] = low + high;
        dradius[i] = high - low;
    }
    for (size_t b = 0; b < B; b++) {
        add(dbias, dvalue + b * H, H);
        add(dbias, dcentre + b * H, H);
    }
    if (l->pooled_hidden) {
        memcpy(s->dfeatures[VALUE], dvalue, B * F * sizeof(float));
        halves(s->dfeatures[LOW], s->dfeatures[HIGH], dcentre, dradius, B * F);
        return;
    }
    multiply(s, 'T', 'N', dweight, dvalue, s->mid[VALUE], H, F, B, 1);
    multiply(s, 'T', 'N', dweight, dcentre, s->mid[LOW], H, F, B, 1);
    multiply(s, 'N', 'N', s->dfeatures[VALUE], dvalue, weight, B, F, H, 0);
    multiply(s, 'N', 'N', s->dfeatures[LOW], dcentre, weight, B, F, H, 0);
    multiply(s, 'N', 'N', s->dfeatures[HIGH], dradius, s->hidden_size, B, F, H, 0);
    multiply(s, 'T', 'N', s->hidden_size, dradius, s->mid[HIGH], H, F, B, 0); /* |W| was needed last just above */
    add_signed(dweight, s->hidden_size, weight, H * F);
    for (int run = 0; run < RUNS; run++) sf_dropout_backward(s->dfeatures[run], s->dfeatures[run], s->feature_mask, B * F);
    halves(s->dfeatures[LOW], s->dfeatures[HIGH], s->dfeatures[LOW], s->dfeatures[HIGH], B * F);
}

/* ------------------------------------------------------------- back to the words */

/* The gradient of one row of type u, from the runs first..last in which it was used. */
static void collect_row(sf_ibp_step *s, size_t row, size_t u, int first_run, int last_run)
{
    const sf_ibp_layout *l = &s->layout;
    size_t F = l->features;
    float *drow = s->drows + row * l->row;
    memset(drow, 0, l->row * sizeof *drow);
    for (size_t o = s->begin[u]; o < s->begin[u + 1]; o++) {
        uint32_t at = s->occurrences[o], text = s->text[at];
        size_t first = s->batch->offsets[text], N = s->batch->offsets[text + 1] - first;
        for (int run = first_run; run <= last_run; run++)
            sf_conv_backward_word(drow, s->x[run] + first * F, at - first, N, l->shape.width, F, F);
    }
}

/* The reverse of convolve_hulls, with the block's share of the convolution's gradient. */
static void return_through_taps(sf_ibp_step *s, size_t block, size_t first, size_t last)
{
    const sf_ibp_layout *l = &s->layout;
    size_t Q = l->hull, R = l->row, sets = last < s->S ? last : s->S;
    const float *weight = s->parameters + l->conv_weight;
    float *part = s->conv_parts + block * 2 * R * Q, *part_radius = part + R * Q;
    multiply(s, 'N', 'N', s->dhull + first * Q, s->drows + first * R, weight, last - first, Q, R, 0);
    multiply(s, 'T', 'N', part, s->drows + first * R, s->hull + first * Q, R, Q, last - first, 0);
    memset(part_radius, 0, R * Q * sizeof *part);
    if (first >= sets) return;
    size_t count = sets - first;
    float *dlow = s->drows + (s->U + first) * R, *dhigh = s->drows + (s->U + s->S + first) * R;
    float *to_low = s->dhull + (s->U + first) * Q, *to_high = s->dhull + (s->U + s->S + first) * Q;
    for (size_t i = 0; i < count * R; i++) { /* ends become centre and radius */
        float low = dlow[i], high = dhigh[i];
        dlow[i] = low + high;
        dhigh[i] = high - low;
    }
    multiply(s, 'N', 'N', to_low, dlow, weight, count, Q, R, 0);
    multiply(s, 'N', 'N', to_high, dhigh, s->conv_size, count, Q, R, 0);
    multiply(s, 'T', 'N', part, dlow, s->centre + first * Q, R, Q, count, 1);
    multiply(s, 'T', 'N', part_radius, dhigh, s->radius + first * Q, R, Q, count, 0);
    halves(to_low, to_high, to_low, to_high, count * Q);
}

/* Through the ReLU and the shrinking of a set's box: dhull becomes the gradient of the value
 * and of the two ends as they were found. */
static void return_through_hull(sf_ibp_step *s, size_t u)
{
    size_t Q = s->layout.hull, low = s->U + u, high = low + s->S;
    float *dvalue = s->dhull + u * Q, *dlow = s->dhull + low * Q, *dhigh = s->dhull + high * Q;
    if (s->layout.shape.wordwise) sf_relu_backward(dvalue, dvalue, s->hull + u * Q, Q);
    if (u >= s->S) return;
    if (s->layout.shape.wordwise) {
        sf_relu_backward(dlow, dlow, s->hull + low * Q, Q);
        sf_relu_backward(dhigh, dhigh, s->hull + high * Q, Q);
    }
    for (size_t q = 0; q < Q; q++) {
        dvalue[q] += (1 - s->eps) * (dlow[q] + dhigh[q]);
        dlow[q] *= s->eps;
        dhigh[q] *= s->eps;
    }
}

/* Items are blocks of types. */
static void return_to_types(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    (void)worker;
    omp_set_num_threads(1);
    for (size_t block = begin; block < end; block++) {
        size_t first = block * BLOCK, last = s->U - first > BLOCK ? first + BLOCK : s->U;
        for (size_t u = first; u < last; u++) {
            collect_row(s, u, u, VALUE, u < s->S ? VALUE : HIGH); /* without synonyms the value is both ends, too */
            if (u < s->S) {
                collect_row(s, s->U + u, u, LOW, LOW);
                collect_row(s, s->U + s->S + u, u, HIGH, HIGH);
            }
        }
        if (has_inner_product(s)) return_through_taps(s, block, first, last);
        for (size_t u = first; u < last; u++) return_through_hull(s, u);
    }
}

/* Items are columns: each worker takes its own through all types, in their order. */
static void return_to_words(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    size_t Q = s->layout.hull;
    (void)worker;
    for (size_t w = 0; w < s->W; w++) memset(s->dpre + w * Q + begin, 0, (end - begin) * sizeof *s->dpre);
    for (size_t u = 0; u < s->U; u++) {
        const float *dvalue = s->dhull + u * Q, *dlow = s->dhull + (s->U + u) * Q, *dhigh = s->dhull + (s->U + s->S + u) * Q;
        float *own = s->dpre + s->own[u] * Q;
        for (size_t q = begin; q < end; q++) own[q] += dvalue[q];
        for (size_t q = begin; u < s->S && q < end; q++) {
            s->dpre[s->arg_low[u * Q + q] * Q + q] += dlow[q];
            s->dpre[s->arg_high[u * Q + q] * Q + q] += dhigh[q];
        }
    }
}

/* Items are blocks of words. */
static void return_through_first(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    const sf_ibp_layout *l = &s->layout;
    size_t D = l->shape.dim, Q = l->hull;
    (void)worker;
    omp_set_num_threads(1);
    for (size_t block = begin; block < end; block++) {
        size_t first = block * BLOCK, last = s->W - first > BLOCK ? first + BLOCK : s->W;
        float *bias = s->bias_parts + block * Q;
        multiply(s, 'T', 'N', s->first_parts + block * Q * D, s->dpre + first * Q, s->vectors + first * D, Q, D, last - first, 0);
        if (!s->options.freeze)
            multiply(s, 'N', 'N', s->dvectors + first * D, s->dpre + first * Q, s->parameters + l->first, last - first, D, Q, 0);
        memset(bias, 0, Q * sizeof *bias);
        for (size_t i = first; i < last; i++) add(bias, s->dpre + i * Q, Q);
    }
}

/* --------------------------------------------------------------------- triplets */

/* EIBC (Wang, Yang, He and He, Findings of ACL 2023): a word's synonyms should lie close, other
 * words far away. The extent of a set is the sum over all numbers of the largest distance from
 * the word to a synonym; the distance from another word, drawn at random, is the sum of the
 * differences, and counts up to the margin a. The loss of a word is
 *     max(0, extent - mean over the others of min(a, distance) + a),
 * averaged over all positions of the batch. */
typedef struct triplet_view {
    const float *x; /* (W, C) */
    float *dx;
    size_t C;
} triplet_view;

static triplet_view view_triplets(const sf_ibp_step *s)
{
    return triplet_on_vectors(s) ? (triplet_view){s->vectors, s->dvectors, s->layout.shape.dim} : (triplet_view){s->pre, s->dpre, s->layout.hull};
}

/* The synonym of type u that is farthest in column c, the first of them; the word itself
 * when it has none. */
static uint32_t farthest(const sf_ibp_step *s, triplet_view v, size_t u, size_t c)
{
    uint32_t own = s->own[u], best = own;
    float most = 0;
    for (size_t m = u < s->S ? s->member_begin[u] : 0; u < s->S && m < s->member_begin[u + 1]; m++) {
        float distance = fabsf(v.x[own * v.C + c] - v.x[s->members[m] * v.C + c]);
        if (distance > most) {
            most = distance;
            best = s->members[m];
        }
    }
    return best;
}

static void measure_triplets(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    triplet_view v = view_triplets(s);
    const float margin = (float)s->options.margin;
    (void)worker;
    for (size_t u = begin; u < end; u++) {
        const float *own = v.x + s->own[u] * v.C;
        float extent = 0, far = 0;
        for (size_t c = 0; c < v.C; c++) extent += fabsf(own[c] - v.x[farthest(s, v, u, c) * v.C + c]);
        for (size_t i = 0; i < OTHERS; i++) {
            const float *other = v.x + s->other[i] * v.C;
            float distance = 0;
            for (size_t c = 0; c < v.C; c++) distance += fabsf(own[c] - other[c]);
            s->apart[u * OTHERS + i] = distance;
            far += distance < margin ? distance : margin;
        }
        float excess = extent - far / OTHERS + margin;
        s->pull[u] = excess > 0 ? excess : 0;
    }
}

/* out += x, of -= x, with the sign of the difference of two numbers. */
static void push(float *out, float *from, float a, float b, float x)
{
    float signed_x = a > b ? x : a < b ? -x : 0;
    *out += signed_x;
    *from -= signed_x;
}

/* Items are columns, as in return_to_words. */
static void pull_columns(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    triplet_view v = view_triplets(s);
    size_t N = s->batch->offsets[s->batch->count];
    (void)worker;
    for (size_t u = 0; u < s->U; u++) {
        size_t own = s->own[u] * v.C;
        float weight = (float)(s->options.triplet * (double)(s->begin[u + 1] - s->begin[u]) / (double)N);
        if (s->pull[u] <= 0) continue;
        for (size_t c = begin; c < end; c++) {
            size_t synonym = farthest(s, v, u, c) * v.C;
            push(&v.dx[own + c], &v.dx[synonym + c], v.x[own + c], v.x[synonym + c], weight);
        }
        for (size_t i = 0; i < OTHERS; i++) {
            size_t other = s->other[i] * v.C;
            if (!(s->apart[u * OTHERS + i] < (float)s->options.margin)) continue;
            for (size_t c = begin; c < end; c++) push(&v.dx[own + c], &v.dx[other + c], v.x[own + c], v.x[other + c], -weight / OTHERS);
        }
    }
}

/* Adds its gradient, and returns its loss for the whole batch. */
static double lose_triplets(sf_ibp_step *s)
{
    double sum = 0, N = (double)s->batch->offsets[s->batch->count];
    if (!(s->options.triplet > 0) || N == 0) return 0;
    sf_parallel(s->options.threads, s->U, 64, measure_triplets, s);
    sf_parallel(s->options.threads, view_triplets(s).C, COLUMNS, pull_columns, s);
    for (size_t u = 0; u < s->U; u++) sum += (double)s->pull[u] * (double)(s->begin[u + 1] - s->begin[u]);
    return s->options.triplet * sum / N * (double)s->batch->count;
}

/* --------------------------------------------------------------------- the step */

/* Adds up what texts and blocks left, in their order. */
static void reduce(sf_ibp_step *s)
{
    const sf_ibp_layout *l = &s->layout;
    size_t D = l->shape.dim, Q = l->hull, R = l->row, F = l->features, B = s->batch->count, base = l->shape.vocabulary * D;
    float *gradient = s->gradient;
    for (size_t block = 0; block < blocks_of(s->W); block++) {
        add(gradient + l->first - base, s->first_parts + block * Q * D, Q * D);
        if (l->shape.wordwise) add(gradient + l->word_bias - base, s->bias_parts + block * Q, Q);
    }
    for (size_t block = 0; has_inner_product(s) && block < blocks_of(s->U); block++) {
        add(gradient + l->conv_weight - base, s->conv_parts + block * 2 * R * Q, R * Q);
        add_signed(gradient + l->conv_weight - base, s->conv_parts + (block * 2 + 1) * R * Q, s->parameters + l->conv_weight, R * Q);
    }
    for (size_t i = 0; l->shape.convolution && i < RUNS * B; i++) add(gradient + l->conv_bias - base, s->dbias + i * F, F);
}

safer_status sf_ibp_step_gradient(double *loss, sf_ibp_step *s, const float *parameters, const sf_ibp_batch *batch, double kappa,
                                  double eps, uint64_t number, safer_error *error)
{
    const sf_ibp_layout *l = &s->layout;
    int threads = s->options.threads;
    s->parameters = parameters;
    s->batch = batch;
    s->kappa = (float)kappa;
    s->eps = (float)eps;
    s->number = number;
    atomic_store(&s->failed, 0);
    number_items(s);
    number_words(s);
    number_positions(s);
    safer_status status = make_room(s, error);
    if (status != SAFER_OK) return status;
    memset(s->gradient, 0, (l->size - l->shape.vocabulary * l->shape.dim) * sizeof *s->gradient);
    if (has_inner_product(s)) absolute(s->conv_size, parameters + l->conv_weight, l->row * l->hull);
    omp_set_num_threads(1);
    sf_parallel(threads, blocks_of(s->W), 1, project_words, s);
    sf_parallel(threads, blocks_of(s->U), 1, make_hulls, s);
    sf_parallel(threads, batch->count, 1, read_texts, s);
    enter_hidden(s);
    leave_hidden(s);
    *loss = lose(s, s->gradient);
    return_through_hidden(s, s->gradient);
    sf_parallel(threads, batch->count, 1, return_to_texts, s);
    sf_parallel(threads, blocks_of(s->U), 1, return_to_types, s);
    sf_parallel(threads, l->hull, COLUMNS, return_to_words, s);
    if (!triplet_on_vectors(s)) *loss += lose_triplets(s);
    sf_parallel(threads, blocks_of(s->W), 1, return_through_first, s);
    if (triplet_on_vectors(s)) *loss += lose_triplets(s);
    reduce(s);
    return atomic_load(&s->failed) ? sf_fail(error, SAFER_SYSTEM, "a matrix product failed (dnnl_sgemm)") : SAFER_OK;
}

/* What the gradient is multiplied by so that it is no longer than options.clip. */
static float shorten(const sf_ibp_step *s)
{
    size_t D = s->layout.shape.dim, dense = s->layout.size - s->layout.shape.vocabulary * D;
    double square = 0;
    if (!(s->options.clip > 0)) return 1;
    for (size_t i = 0; i < dense; i++) square += (double)s->gradient[i] * (double)s->gradient[i];
    for (size_t i = 0; !s->options.freeze && i < s->W * D; i++) square += (double)s->dvectors[i] * (double)s->dvectors[i];
    double length = sqrt(square);
    return length > s->options.clip ? (float)(s->options.clip / length) : 1;
}

/* Adam with the decay as part of the gradient, as the published code has it. */
static void move(float *parameter, float *mean, float *variance, float *gradient, float scale, float decay, const sf_adam *adam, size_t N)
{
    for (size_t i = 0; i < N; i++) gradient[i] = scale * gradient[i] + decay * parameter[i];
    sf_adam_update(parameter, mean, variance, gradient, adam, N);
}

void sf_ibp_step_update(sf_ibp_step *s, float *parameters, float *means, float *variances, uint64_t number)
{
    size_t D = s->layout.shape.dim, base = s->layout.shape.vocabulary * D, skip = s->options.freeze ? 0 : base;
    const sf_adam adam = sf_adam_at(s->options.rate, 0, number);
    const float scale = shorten(s), decay = (float)s->options.decay;
    for (size_t i = 0; !s->options.freeze && i < s->W; i++) {
        size_t at = s->layout.embedding + s->words[i] * D;
        move(parameters + at, means + at, variances + at, s->dvectors + i * D, scale, decay, &adam, D);
    }
    move(parameters + base, means + skip, variances + skip, s->gradient, scale, decay, &adam, s->layout.size - base);
}

void sf_ibp_step_read(float *gradient, const sf_ibp_step *s)
{
    size_t D = s->layout.shape.dim, base = s->layout.shape.vocabulary * D;
    memset(gradient, 0, base * sizeof *gradient);
    for (size_t i = 0; !s->options.freeze && i < s->W; i++) memcpy(gradient + s->words[i] * D, s->dvectors + i * D, D * sizeof *gradient);
    memcpy(gradient + base, s->gradient, (s->layout.size - base) * sizeof *gradient);
}

const float *sf_ibp_step_logits(const sf_ibp_step *s) { return s->logits; }
const float *sf_ibp_step_worst(const sf_ibp_step *s) { return s->worst; }

double sf_ibp_step_work(const sf_ibp_step *s)
{
    const sf_ibp_layout *l = &s->layout;
    double first = (double)(s->W * l->hull * l->shape.dim), taps = has_inner_product(s) ? (double)((s->U + 2 * s->S) * l->row * l->hull) : 0;
    double head = l->pooled_hidden ? 0 : (double)(RUNS * s->batch->count * l->features * l->shape.hidden);
    return 2 * (first * (s->options.freeze ? 2 : 3) + 3 * taps + 3 * head);
}
