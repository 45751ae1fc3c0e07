/* The `bow` and `cnn` classifiers: answering.
 *
 * A word's row (all taps of all filters, fixed point) is made when the word is first met
 * and kept: a certified data set needs a few ten thousand rows, opening a model none. Making
 * one is a fixed sequence of operations, so it does not matter which thread made it, and when. The network
 * is described in cnn.h, the look-up form of its convolutions in nn/lookup.h. */
#define _GNU_SOURCE
#include "model/cnn.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/layers.h"

#include <assert.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

/* ------------------------------------------------------------------ layout */

static void add_tensor(sf_cnn_layout *l, size_t *where, const char *name, size_t index, size_t rank, size_t a, size_t b,
                       size_t c)
{
    size_t i = l->tensor_count++;
    assert(i < SF_CNN_TENSORS);
    if (index == SIZE_MAX)
        snprintf(l->tensors[i].name, sizeof l->tensors[i].name, "%s", name);
    else
        snprintf(l->tensors[i].name, sizeof l->tensors[i].name, "conv.%zu.%s", index, name);
    l->tensors[i].rank = rank;
    l->tensors[i].shape[0] = a;
    l->tensors[i].shape[1] = b;
    l->tensors[i].shape[2] = c;
    l->tensors[i].count = a * (rank > 1 ? b : 1) * (rank > 2 ? c : 1);
    l->tensors[i].offset = l->size;
    if (where) *where = l->size;
    l->size += l->tensors[i].count;
}

void sf_cnn_layout_make(sf_cnn_layout *out, const sf_cnn_shape *shape)
{
    sf_cnn_layout l = {.shape = *shape};
    size_t K = shape->classes, H = shape->hidden;
    l.features = shape->width_count * shape->filters;
    for (size_t g = 0; g < shape->width_count; g++) l.row += shape->widths[g] * shape->filters;
    l.inputs = H ? H : l.features;
    add_tensor(&l, &l.embedding, "embedding.weight", SIZE_MAX, 2, shape->vocabulary, shape->dim, 0);
    if (shape->convolution) {
        for (size_t g = 0; g < shape->width_count; g++)
            add_tensor(&l, g ? NULL : &l.conv_weight, "weight", g, 3, shape->widths[g], shape->filters, shape->dim);
        for (size_t g = 0; g < shape->width_count; g++)
            add_tensor(&l, g ? NULL : &l.conv_bias, "bias", g, 1, shape->filters, 0, 0);
    }
    if (H) {
        add_tensor(&l, &l.hidden_weight, "hidden.weight", SIZE_MAX, 2, H, l.features, 0);
        add_tensor(&l, &l.hidden_bias, "hidden.bias", SIZE_MAX, 1, H, 0, 0);
    }
    add_tensor(&l, &l.output_weight, "output.weight", SIZE_MAX, 2, K, l.inputs, 0);
    add_tensor(&l, &l.output_bias, "output.bias", SIZE_MAX, 1, K, 0, 0);
    *out = l;
}

/* ----------------------------------------------------------------- the net */

enum { ROW_NONE, ROW_BUSY, ROW_READY };

typedef struct group { /* the filters of one width */
    size_t width;
    size_t offset; /* of its taps in a word's row: (width, F) */
    int limit;     /* of one term */
} group;

struct sf_cnn_net {
    sf_cnn_layout layout;
    sf_isa isa;
    group groups[SF_CNN_WIDTHS];
    size_t F; /* filters of a width, padded */
    size_t R; /* a word's row, padded: the sum of widths * F */
    size_t H; /* hidden units, padded */
    const float *parameters;
    float *project;               /* (dim, R): convolution weights, transposed. NULL: bow */
    float *row_scale;             /* (R) */
    double *unit;                 /* (features): the worth of one quantum */
    int16_t *bias;                /* (groups, F) */
    float *hidden;                /* (features, H): transposed */
    float *hidden_bias;           /* (H) */
    int16_t *rows;                /* (vocabulary, R) */
    _Atomic unsigned char *state; /* (vocabulary) of the rows */
};

/* bow has no bias; this one keeps its sums positive, and is taken off after pooling. */
enum { BOW_BIAS = 8192, BOW_LIMIT = SF_LOOKUP_LIMIT - BOW_BIAS };

static int group_limit(const sf_cnn_shape *s, size_t g)
{
    return s->convolution ? SF_LOOKUP_LIMIT / ((int)s->widths[g] + 1) : BOW_LIMIT;
}

static void place_groups(sf_cnn_net *net)
{
    const sf_cnn_shape *s = &net->layout.shape;
    net->F = round_up(s->filters, SF_LOOKUP_LANES);
    net->H = round_up(s->hidden, 16);
    for (size_t g = 0; g < s->width_count; g++) {
        net->groups[g] = (group){s->widths[g], net->R, group_limit(s, g)};
        net->R += s->widths[g] * net->F;
    }
}

/* Padded, transposed convolution weights. */
static void transpose_convolution(float *project, const sf_cnn_net *net)
{
    const sf_cnn_shape *s = &net->layout.shape;
    const float *weight = net->parameters + net->layout.conv_weight;
    memset(project, 0, s->dim * net->R * sizeof *project);
    for (size_t g = 0; g < s->width_count; g++)
        for (size_t t = 0; t < s->widths[g]; t++)
            for (size_t f = 0; f < s->filters; f++, weight += s->dim)
                for (size_t d = 0; d < s->dim; d++)
                    project[d * net->R + net->groups[g].offset + t * net->F + f] = weight[d];
}

/* The word's row before rounding. */
static void project_word(float *out, const sf_cnn_net *net, uint32_t word)
{
    size_t D = net->layout.shape.dim;
    const float *vector = net->parameters + net->layout.embedding + word * D;
    if (net->project) {
        sf_affine(out, vector, net->project, NULL, D, net->R, net->isa);
    } else {
        memcpy(out, vector, D * sizeof *out);
        memset(out + D, 0, (net->R - D) * sizeof *out);
    }
}

void sf_cnn_net_free(sf_cnn_net *net)
{
    if (!net) return;
    free(net->project);
    free(net->row_scale);
    free(net->unit);
    free(net->bias);
    free(net->hidden);
    free(net->hidden_bias);
    free(net->rows);
    free(net->state);
    free(net);
}

safer_status sf_cnn_net_new(sf_cnn_net **out, const sf_cnn_layout *layout, const float *parameters, const float *scale,
                            safer_error *error)
{
    const sf_cnn_shape *s = &layout->shape;
    size_t P = layout->features, bytes;
    sf_cnn_net *net = sf_calloc(1, sizeof *net);
    if (!net) return sf_fail_memory(error);
    net->layout = *layout;
    net->isa = sf_isa_choose();
    net->parameters = parameters;
    place_groups(net);
    size_t G = s->width_count, F = net->F, R = net->R;
    net->row_scale = sf_calloc(R, sizeof *net->row_scale);
    net->unit = sf_calloc(P, sizeof *net->unit);
    net->bias = sf_alloc_aligned(G * F, sizeof *net->bias);
    net->hidden = sf_calloc(P * net->H, sizeof *net->hidden);
    net->hidden_bias = sf_calloc(net->H, sizeof *net->hidden_bias);
    net->state = sf_calloc(s->vocabulary, sizeof *net->state);
    if (!__builtin_mul_overflow(s->vocabulary, R, &bytes)) net->rows = sf_alloc_aligned(bytes, sizeof *net->rows);
    if (s->convolution) net->project = sf_alloc_aligned(s->dim * R, sizeof *net->project);
    if (!net->row_scale || !net->unit || !net->bias || !net->hidden || !net->hidden_bias || !net->state || !net->rows ||
        (s->convolution && !net->project)) {
        sf_cnn_net_free(net);
        return sf_fail_memory(error);
    }
    memset(net->bias, 0, G * F * sizeof *net->bias);
    for (size_t g = 0; g < G; g++) {
        for (size_t t = 0; t < s->widths[g]; t++)
            memcpy(net->row_scale + net->groups[g].offset + t * F, scale + g * s->filters, s->filters * sizeof *scale);
        if (s->convolution)
            sf_lookup_quantise(net->bias + g * F, parameters + layout->conv_bias + g * s->filters,
                               scale + g * s->filters, net->groups[g].limit, s->filters);
        else
            for (size_t f = 0; f < F; f++) net->bias[f] = BOW_BIAS;
    }
    for (size_t p = 0; p < P; p++) net->unit[p] = 1 / (double)scale[p];
    if (s->convolution) transpose_convolution(net->project, net);
    for (size_t h = 0; h < s->hidden; h++) {
        for (size_t p = 0; p < P; p++) net->hidden[p * net->H + h] = parameters[layout->hidden_weight + h * P + p];
        net->hidden_bias[h] = parameters[layout->hidden_bias + h];
    }
    *out = net;
    return SAFER_OK;
}

const sf_cnn_layout *sf_cnn_net_layout(const sf_cnn_net *net) { return &net->layout; }
const float *sf_cnn_net_parameters(const sf_cnn_net *net) { return net->parameters; }
const double *sf_cnn_units(const sf_cnn_net *net) { return net->unit; }
size_t sf_cnn_row_length(const sf_cnn_net *net) { return net->R; }

/* ------------------------------------------------------------------ scales */

typedef struct scaling {
    const sf_cnn_net *net;
    float *tops; /* (workers, 2R): the largest magnitudes, and a row */
} scaling;

static void find_tops(void *context, size_t begin, size_t end, int worker)
{
    scaling *job = context;
    size_t R = job->net->R;
    float *tops = job->tops + (size_t)worker * 2 * R, *row = tops + R;
    for (size_t w = begin; w < end; w++) {
        project_word(row, job->net, (uint32_t)w);
        for (size_t r = 0; r < R; r++) tops[r] = fabsf(row[r]) > tops[r] ? fabsf(row[r]) : tops[r];
    }
}

int sf_cnn_scales(float *scale, const sf_cnn_layout *layout, const float *parameters, int threads)
{
    const sf_cnn_shape *s = &layout->shape;
    sf_cnn_net net = {.layout = *layout, .isa = sf_isa_choose(), .parameters = parameters};
    threads = sf_threads(threads);
    place_groups(&net);
    scaling job = {&net, sf_calloc((size_t)threads * 2 * net.R, sizeof *job.tops)};
    if (s->convolution) net.project = sf_alloc_aligned(s->dim * net.R, sizeof *net.project);
    int failed = !job.tops || (s->convolution && !net.project);
    if (!failed) {
        if (s->convolution) transpose_convolution(net.project, &net);
        sf_parallel(threads, s->vocabulary, 256, find_tops, &job);
        for (size_t g = 0; g < s->width_count; g++)
            for (size_t f = 0; f < s->filters; f++) {
                float top = s->convolution ? fabsf(parameters[layout->conv_bias + g * s->filters + f]) : 0;
                for (size_t k = 0; k < (size_t)threads; k++)
                    for (size_t t = 0; t < s->widths[g]; t++) {
                        float x = job.tops[k * 2 * net.R + net.groups[g].offset + t * net.F + f];
                        if (x > top) top = x;
                    }
                float fine = (float)net.groups[g].limit / top; /* an idle filter needs no fineness */
                scale[g * s->filters + f] = top > 0 && isfinite(fine) ? fine : 1;
            }
    }
    free(job.tops);
    free(net.project);
    return failed ? -1 : 0;
}

/* ----------------------------------------------------------------- scratch */

/* Samples are made BATCH at a time, SPAN windows after SPAN windows: the rows that a few
 * windows can draw stay in the second-level cache while all samples of the batch read
 * them, where one sample after the other would walk through megabytes each time. */
enum { BATCH = 32, SPAN = 16 };

struct sf_cnn_scratch {
    float *row;      /* (R) */
    uint32_t *sums;  /* (BATCH, groups, F) */
    int16_t *tops;   /* (BATCH, groups, F) */
    float *features; /* (features) */
    float *hidden;   /* (H) */
    float *logits;   /* (classes) */
    uint32_t *ids;
    const int16_t **rows; /* of every word; or (BATCH, slots) of what was drawn */
    sf_term *terms;
    size_t id_capacity, row_capacity, term_capacity;
    sf_word_reader reader;
};

void sf_cnn_scratch_free(sf_cnn_scratch *s)
{
    if (!s) return;
    free(s->row);
    free(s->sums);
    free(s->tops);
    free(s->features);
    free(s->hidden);
    free(s->logits);
    free(s->ids);
    free(s->rows);
    free(s->terms);
    sf_word_reader_free(&s->reader);
    free(s);
}

safer_status sf_cnn_scratch_new(const sf_cnn_net *net, sf_cnn_scratch **out, safer_error *error)
{
    size_t G = net->layout.shape.width_count;
    sf_cnn_scratch *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->row = sf_alloc(net->R, sizeof *s->row);
    s->sums = sf_alloc_aligned(BATCH * G * net->F, sizeof *s->sums);
    s->tops = sf_alloc_aligned(BATCH * G * net->F, sizeof *s->tops);
    s->features = sf_alloc(net->layout.features, sizeof *s->features);
    s->hidden = sf_alloc(net->H, sizeof *s->hidden);
    s->logits = sf_alloc(net->layout.shape.classes, sizeof *s->logits);
    if (!s->row || !s->sums || !s->tops || !s->features || !s->hidden || !s->logits) {
        sf_cnn_scratch_free(s);
        return sf_fail_memory(error);
    }
    *out = s;
    return SAFER_OK;
}

const float *sf_cnn_scratch_logits(const sf_cnn_scratch *scratch) { return scratch->logits; }

/* ----------------------------------------------------------------- answers */

/* The first who asks for a row makes it; others wait until it is there. */
const int16_t *sf_cnn_row(const sf_cnn_net *net, uint32_t word, sf_cnn_scratch *scratch)
{
    int16_t *row = net->rows + (size_t)word * net->R;
    _Atomic unsigned char *state = &net->state[word];
    unsigned char seen = atomic_load_explicit(state, memory_order_acquire);
    if (seen == ROW_READY) return row;
    if (seen == ROW_NONE && atomic_compare_exchange_strong(state, &seen, ROW_BUSY)) {
        project_word(scratch->row, net, word);
        for (size_t g = 0; g < net->layout.shape.width_count; g++) {
            const group *at = &net->groups[g];
            sf_lookup_quantise(row + at->offset, scratch->row + at->offset, net->row_scale + at->offset, at->limit,
                               at->width * net->F);
        }
        atomic_store_explicit(state, ROW_READY, memory_order_release);
        return row;
    }
    while (atomic_load_explicit(state, memory_order_acquire) != ROW_READY) sched_yield();
    return row;
}

/* An inner product in 16 interleaved sums, always in this order. */
static float dot16(const float *a, const float *b, size_t N)
{
    float lane[16] = {0};
    size_t i = 0;
    for (; i + 16 <= N; i += 16)
        for (size_t l = 0; l < 16; l++) lane[l] += a[i + l] * b[i + l];
    for (size_t l = 0; i < N; i++, l++) lane[l] += a[i] * b[i];
    for (size_t half = 8; half; half /= 2)
        for (size_t l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

/* scratch->features from the pooled whole numbers of `count` windows. sums, tops: (groups, F). */
static void make_features(const sf_cnn_net *net, sf_cnn_scratch *scratch, const uint32_t *sums, const int16_t *tops,
                          size_t count)
{
    const sf_cnn_shape *s = &net->layout.shape;
    const int64_t bias = s->convolution ? 0 : BOW_BIAS;
    for (size_t g = 0, p = 0; g < s->width_count; g++)
        for (size_t f = 0; f < s->filters; f++, p++) {
            int64_t x = s->max_pool ? tops[g * net->F + f] - bias
                                    : (int64_t)sums[g * net->F + f] - bias * (int64_t)count;
            scratch->features[p] = count ? (float)((double)x * net->unit[p] / (double)(s->max_pool ? 1 : count)) : 0;
        }
}

/* From the features to the class: the one place where a text and a draw meet again. */
static int answer(const sf_cnn_net *net, sf_cnn_scratch *scratch)
{
    const sf_cnn_layout *l = &net->layout;
    const sf_cnn_shape *s = &l->shape;
    const float *inp = scratch->features;
    if (s->hidden) {
        sf_affine(scratch->hidden, scratch->features, net->hidden, net->hidden_bias, l->features, net->H, net->isa);
        sf_relu_forward(scratch->hidden, scratch->hidden, s->hidden);
        inp = scratch->hidden;
    }
    int best = 0;
    for (size_t k = 0; k < s->classes; k++) {
        scratch->logits[k] = net->parameters[l->output_bias + k] +
                             dot16(inp, net->parameters + l->output_weight + k * l->inputs, l->inputs);
        if (scratch->logits[k] > scratch->logits[best]) best = (int)k;
    }
    return best;
}

/* Pools into those of sample b and group g. */
static void pool(const sf_cnn_net *net, sf_cnn_scratch *scratch, size_t b, size_t g, const sf_windows *windows,
                 const int16_t *const *rows)
{
    size_t at = (b * net->layout.shape.width_count + g) * net->F;
    if (net->layout.shape.max_pool)
        sf_lookup_max(scratch->tops + at, windows, rows, net->F, net->isa);
    else
        sf_lookup_sum(scratch->sums + at, windows, rows, net->F, net->isa);
}

/* Pools the windows begin..end-1 of a text, which all have the taps first..first+taps-1
 * inside it. */
static void pool_range(const sf_cnn_net *net, sf_cnn_scratch *scratch, const int16_t *const *rows, size_t g,
                       size_t begin, size_t end, size_t first, size_t taps)
{
    sf_term *term = scratch->terms;
    const group *at = &net->groups[g];
    for (size_t i = begin; i < end; i++)
        for (size_t t = first; t < first + taps; t++)
            *term++ = (sf_term){(uint32_t)(i + t - SF_LEFT(at->width)), (uint32_t)(at->offset + t * net->F)};
    sf_windows windows = {net->bias + g * net->F, 0, scratch->terms, end - begin, taps};
    pool(net, scratch, 0, g, &windows, rows);
}

safer_status sf_cnn_features(const float **features, const sf_cnn_net *net, const int16_t *const *rows, size_t count,
                             sf_cnn_scratch *scratch, safer_error *error)
{
    const sf_cnn_shape *s = &net->layout.shape;
    size_t widest = 0;
    for (size_t g = 0; g < s->width_count; g++) widest = s->widths[g] > widest ? s->widths[g] : widest;
    if (sf_grow(&scratch->terms, &scratch->term_capacity, count * widest, sizeof *scratch->terms))
        return sf_fail_memory(error);
    memset(scratch->sums, 0, s->width_count * net->F * sizeof *scratch->sums);
    memset(scratch->tops, 0, s->width_count * net->F * sizeof *scratch->tops);
    for (size_t g = 0; g < s->width_count; g++) {
        size_t T = s->widths[g], left = SF_LEFT(T);
        for (size_t i = 0; i < count;) { /* edges one by one, the middle at once */
            size_t first = i < left ? left - i : 0;
            size_t last = i + T - left > count ? count + left - i : T; /* one past */
            size_t end = first == 0 && last == T ? count - (T - 1 - left) : i + 1;
            pool_range(net, scratch, rows, g, i, end, first, last - first);
            i = end;
        }
    }
    make_features(net, scratch, scratch->sums, scratch->tops, count);
    *features = scratch->features;
    return SAFER_OK;
}

safer_status sf_cnn_classify_ids(int *label, float *probabilities, const sf_cnn_net *net, const uint32_t *ids,
                                 size_t count, sf_cnn_scratch *scratch, safer_error *error)
{
    const sf_cnn_shape *s = &net->layout.shape;
    const float *features;
    if (count > s->max_words) count = s->max_words;
    if (sf_grow(&scratch->rows, &scratch->row_capacity, count, sizeof *scratch->rows)) return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++) scratch->rows[i] = sf_cnn_row(net, ids[i], scratch);
    safer_status status = sf_cnn_features(&features, net, scratch->rows, count, scratch, error);
    if (status != SAFER_OK) return status;
    *label = answer(net, scratch);
    if (probabilities) sf_softmax_forward(probabilities, scratch->logits, s->classes);
    return SAFER_OK;
}

/* --------------------------------------------------------------- the model */

uint32_t sf_cnn_number(const sf_cnn_model *model, const char *key, size_t length)
{
    return sf_words_find(&model->words, key, length) + 1; /* SF_NONE + 1 is 0 */
}

static safer_status classify(const safer_model *base, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *error)
{
    const sf_cnn_model *model = (const sf_cnn_model *)base;
    sf_cnn_scratch *s = scratch;
    size_t limit = model->net->layout.shape.max_words;
    for (size_t i = 0; i < count; i++) {
        sf_word word;
        size_t words = 0;
        int more = 0;
        sf_word_reader_start(&s->reader, texts[i].bytes, texts[i].length);
        while (words < limit && (more = sf_word_reader_next(&s->reader, &word)) > 0) {
            if (sf_grow(&s->ids, &s->id_capacity, words + 1, sizeof *s->ids)) return sf_fail_memory(error);
            s->ids[words++] = sf_cnn_number(model, word.key, word.key_length);
        }
        if (more < 0) return sf_fail_memory(error);
        safer_status status = sf_cnn_classify_ids(&labels[i], scores ? scores + i * base->classes : NULL, model->net,
                                                  s->ids, words, s, error);
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

static safer_status scratch_new(const safer_model *model, void **out, safer_error *error)
{
    sf_cnn_scratch *scratch = NULL;
    safer_status status = sf_cnn_scratch_new(((const sf_cnn_model *)model)->net, &scratch, error);
    if (status == SAFER_OK) *out = scratch;
    return status;
}

static void scratch_free(void *scratch) { sf_cnn_scratch_free(scratch); }

/* --------------------------------------------------------------- fast path */

/* A text made ready for draws. Windows without a slot are pooled already; the others
 * have their fixed words summed and are sorted by the number of slots they hold. */
typedef struct prepared {
    size_t words;        /* windows of each width */
    size_t slots;        /* of the text: the length of a draw */
    size_t used;         /* of them within the words that are read */
    int16_t *table;      /* (candidates, R): rows of the words that can be drawn */
    uint32_t *choices;   /* rows in the table, support after support */
    uint32_t *first;     /* (used): where a slot's support begins in the choices */
    sf_windows *windows; /* those with t drawn words of group g at g * (widest+1) + t */
    size_t widest;
    int16_t *fixed; /* what the windows point to */
    sf_term *terms;
    uint32_t *sums; /* (groups, F) of the windows without slots */
    int16_t *tops;

    /* Where draws delete tokens: windows are those of what is kept, so that only words are looked up beforehand. */
    const sf_token *tokens; /* borrowed from the slots; NULL: nothing is deleted */
    size_t token_count, width;
    uint32_t *numbers; /* (tokens): of a word that is no slot; SF_NONE: no word, which is not read */
} prepared;

static void release(void *pointer)
{
    prepared *p = pointer;
    if (!p) return;
    free(p->table);
    free(p->choices);
    free(p->first);
    free(p->windows);
    free(p->fixed);
    free(p->terms);
    free(p->sums);
    free(p->tops);
    free(p->numbers);
    free(p);
}

/* Numbers the words that can be drawn and gathers their rows. */
static safer_status gather_choices(prepared *p, const sf_cnn_model *model, const safer_lexicon *lexicon,
                                   const sf_slots *slots, sf_cnn_scratch *scratch, safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_kernel_view *kernel = &lexicon->kernel;
    const sf_cnn_net *net = model->net;
    size_t vocabulary = net->layout.shape.vocabulary, R = net->R;
    size_t choices = 0, choice_capacity = 0, rows = 0, row_capacity = 0;
    uint32_t *place = sf_alloc(vocabulary, sizeof *place);   /* of a vocabulary word in the table */
    uint32_t *begin = sf_alloc(kernel->rows, sizeof *begin); /* of a kernel row in the choices */
    uint32_t *members = NULL;                                /* the table's words */
    p->first = sf_alloc(p->used, sizeof *p->first);
    if (!place || !begin || !p->first) goto no_memory;
    memset(place, 0xff, vocabulary * sizeof *place);
    memset(begin, 0xff, kernel->rows * sizeof *begin);
    for (size_t s = 0; s < p->used; s++) {
        uint32_t row = kernel->row_of[slots->words[slots->slots[s]].word];
        if (begin[row] == SF_NONE) {
            size_t count = (size_t)(kernel->offsets[row + 1] - kernel->offsets[row]);
            begin[row] = (uint32_t)choices;
            if (sf_grow(&p->choices, &choice_capacity, choices + count, sizeof *p->choices) ||
                sf_grow(&members, &row_capacity, rows + count, sizeof *members))
                goto no_memory;
            for (size_t i = 0; i < count; i++) {
                uint32_t drawn = kernel->ids[kernel->offsets[row] + i], at = lexicon->words.offsets[drawn];
                uint32_t word = sf_cnn_number(model, lexicon->words.pool + at,
                                              lexicon->words.offsets[drawn + 1] - at - 1);
                if (place[word] == SF_NONE) {
                    place[word] = (uint32_t)rows;
                    members[rows++] = word;
                }
                p->choices[choices++] = place[word];
            }
        }
        p->first[s] = begin[row];
    }
    if (!(p->table = sf_alloc_aligned(rows * R, sizeof *p->table))) goto no_memory;
    for (size_t i = 0; i < rows; i++)
        memcpy(p->table + i * R, sf_cnn_row(net, members[i], scratch), R * sizeof *p->table);
    goto done;
no_memory:
    status = sf_fail_memory(error);
done:
    free(place);
    free(begin);
    free(members);
    return status;
}

/* How many words of window i are drawn. */
static size_t drawn_words(const sf_slots *slots, size_t i, size_t T, size_t N)
{
    size_t drawn = 0;
    for (size_t t = 0; t < T; t++) {
        size_t j = i + t;
        if (j >= SF_LEFT(T) && j - SF_LEFT(T) < N && slots->words[j - SF_LEFT(T)].slot != SF_NONE) drawn++;
    }
    return drawn;
}

/* Writes window i: its fixed part and its drawn terms. */
static void write_window(int16_t *fixed, sf_term *terms, const sf_cnn_net *net, const sf_slots *slots,
                         const int16_t *const *rows, size_t g, size_t i, size_t N)
{
    const group *at = &net->groups[g];
    memcpy(fixed, net->bias + g * net->F, net->F * sizeof *fixed);
    for (size_t t = 0; t < at->width; t++) {
        size_t j = i + t;
        if (j < SF_LEFT(at->width) || j - SF_LEFT(at->width) >= N) continue;
        j -= SF_LEFT(at->width);
        if (slots->words[j].slot != SF_NONE) {
            *terms++ = (sf_term){slots->words[j].slot, (uint32_t)(at->offset + t * net->F)};
        } else {
            const int16_t *row = rows[j] + at->offset + t * net->F;
            for (size_t f = 0; f < net->F; f++) fixed[f] = (int16_t)(fixed[f] + row[f]);
        }
    }
}

/* Sorts the windows by their number of drawn words and pools those that have none. */
static safer_status sort_windows(prepared *p, const sf_cnn_net *net, const sf_slots *slots, sf_cnn_scratch *scratch,
                                 safer_error *error)
{
    const sf_cnn_shape *s = &net->layout.shape;
    size_t G = s->width_count, F = net->F, N = p->words, terms = 0, lists;
    for (size_t g = 0; g < G; g++) p->widest = s->widths[g] > p->widest ? s->widths[g] : p->widest;
    lists = p->widest + 1;
    p->windows = sf_calloc(G * lists, sizeof *p->windows);
    p->sums = sf_calloc(G * F, sizeof *p->sums);
    p->tops = sf_calloc(G * F, sizeof *p->tops);
    p->fixed = sf_alloc_aligned(G * N * F, sizeof *p->fixed);
    if (!p->windows || !p->sums || !p->tops || !p->fixed) return sf_fail_memory(error);
    for (size_t g = 0; g < G; g++)
        for (size_t i = 0; i < N; i++) {
            size_t drawn = drawn_words(slots, i, s->widths[g], N);
            p->windows[g * lists + drawn].count++;
            terms += drawn;
        }
    if (!(p->terms = sf_alloc(terms, sizeof *p->terms))) return sf_fail_memory(error);
    int16_t *fixed = p->fixed;
    sf_term *term = p->terms;
    for (size_t g = 0; g < G; g++) {
        size_t written[SF_CNN_WIDEST + 1] = {0};
        for (size_t t = 0; t < lists; t++) {
            sf_windows *w = &p->windows[g * lists + t];
            *w = (sf_windows){fixed, F, term, w->count, t};
            fixed += w->count * F;
            term += w->count * t;
        }
        for (size_t i = 0; i < N; i++) {
            size_t drawn = drawn_words(slots, i, s->widths[g], N), k = written[drawn]++;
            const sf_windows *w = &p->windows[g * lists + drawn];
            write_window(p->fixed + (w->fixed - p->fixed) + k * F, p->terms + (w->terms - p->terms) + k * drawn, net,
                         slots, scratch->rows, g, i, N);
        }
        sf_lookup_sum(p->sums + g * F, &p->windows[g * lists], NULL, F, net->isa);
        sf_lookup_max(p->tops + g * F, &p->windows[g * lists], NULL, F, net->isa);
    }
    return SAFER_OK;
}

/* Where draws delete tokens: the numbers of all words, and of all that can be drawn. */
static safer_status prepare_deleting(prepared *p, const sf_cnn_model *model, const safer_lexicon *lexicon,
                                     const sf_slots *slots, safer_error *error)
{
    const sf_kernel_view *kernel = &lexicon->kernel;
    size_t choices = 0, capacity = 0, w = 0;
    p->tokens = slots->tokens;
    p->token_count = slots->token_count;
    p->width = sf_slots_width(slots);
    p->numbers = sf_alloc(p->token_count, sizeof *p->numbers);
    p->first = sf_alloc(slots->slot_count, sizeof *p->first);
    if (!p->numbers || !p->first) return sf_fail_memory(error);
    for (size_t t = 0; t < p->token_count; t++) {
        const int is_word = w < slots->word_count && slots->words[w].begin == slots->tokens[t].begin;
        const sf_text_word *word = is_word ? &slots->words[w++] : NULL;
        const int plain = word && word->slot == SF_NONE;
        p->numbers[t] = plain ? sf_cnn_number(model, slots->keys.bytes + word->key, word->key_length) : SF_NONE;
    }
    for (size_t s = 0; s < slots->slot_count; s++) {
        const uint32_t row = kernel->row_of[slots->words[slots->slots[s]].word];
        const size_t count = (size_t)(kernel->offsets[row + 1] - kernel->offsets[row]);
        p->first[s] = (uint32_t)choices;
        if (sf_grow(&p->choices, &capacity, choices + count, sizeof *p->choices)) return sf_fail_memory(error);
        for (size_t i = 0; i < count; i++) {
            const uint32_t drawn = kernel->ids[kernel->offsets[row] + i], at = lexicon->words.offsets[drawn];
            p->choices[choices++] = sf_cnn_number(model, lexicon->words.pool + at,
                                                  lexicon->words.offsets[drawn + 1] - at - 1);
        }
    }
    return SAFER_OK;
}

static safer_status sample_deleting(const sf_cnn_net *net, const prepared *p, const uint32_t *draws, size_t count,
                                    int *labels, sf_cnn_scratch *scratch, safer_error *error)
{
    safer_status status = SAFER_OK;
    if (sf_grow(&scratch->ids, &scratch->id_capacity, p->token_count + 1, sizeof *scratch->ids))
        return sf_fail_memory(error);
    for (size_t i = 0; i < count && status == SAFER_OK; i++, draws += p->width) {
        size_t kept = 0;
        for (size_t k = 0; k < p->width - p->slots; k++)
            for (uint32_t bits = draws[p->slots + k]; bits; bits &= bits - 1) {
                const size_t t = 32 * k + (size_t)__builtin_ctz(bits);
                const uint32_t slot = p->tokens[t].slot;
                const uint32_t number = slot == SF_NONE ? p->numbers[t] : p->choices[p->first[slot] + draws[slot]];
                if (number != SF_NONE && kept < net->layout.shape.max_words) scratch->ids[kept++] = number;
            }
        status = sf_cnn_classify_ids(&labels[i], NULL, net, scratch->ids, kept, scratch, error);
    }
    return status;
}

static safer_status prepare(const safer_model *base, const safer_lexicon *lexicon, const sf_slots *slots, void **out,
                            safer_error *error)
{
    safer_status status;
    const sf_cnn_model *model = (const sf_cnn_model *)base;
    const sf_cnn_net *net = model->net;
    sf_cnn_scratch *scratch = NULL;
    prepared *p = sf_calloc(1, sizeof *p);
    if (!p) return sf_fail_memory(error);
    p->words = slots->word_count > net->layout.shape.max_words ? net->layout.shape.max_words : slots->word_count;
    p->slots = slots->slot_count;
    while (p->used < p->slots && slots->slots[p->used] < p->words) p->used++;
    if (slots->split) {
        SF_TRY(prepare_deleting(p, model, lexicon, slots, error));
        *out = p;
        return SAFER_OK;
    }
    SF_TRY(sf_cnn_scratch_new(net, &scratch, error));
    if (sf_grow(&scratch->rows, &scratch->row_capacity, p->words, sizeof *scratch->rows)) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t i = 0; i < p->words; i++) {
        const sf_text_word *w = &slots->words[i];
        scratch->rows[i] = w->slot == SF_NONE
                               ? sf_cnn_row(net, sf_cnn_number(model, slots->keys.bytes + w->key, w->key_length),
                                            scratch)
                               : NULL;
    }
    SF_TRY(gather_choices(p, model, lexicon, slots, scratch, error));
    SF_TRY(sort_windows(p, net, slots, scratch, error));
    *out = p;
    p = NULL;
done:
    sf_cnn_scratch_free(scratch);
    release(p);
    return status;
}

static void pool_batch(const prepared *p, const sf_cnn_net *net, sf_cnn_scratch *scratch, size_t samples)
{
    size_t lists = p->widest + 1;
    for (size_t g = 0; g < net->layout.shape.width_count; g++)
        for (size_t t = 1; t < lists; t++) {
            const sf_windows *all = &p->windows[g * lists + t];
            for (size_t first = 0; first < all->count; first += SPAN) {
                sf_windows span = {all->fixed + first * all->stride, all->stride, all->terms + first * t,
                                   all->count - first < SPAN ? all->count - first : SPAN, t};
                for (size_t b = 0; b < samples; b++) pool(net, scratch, b, g, &span, scratch->rows + b * p->used);
            }
        }
}

static safer_status sample(const safer_model *base, const void *pointer, const uint32_t *draws, size_t count,
                           int *labels, void *scratch_pointer, safer_error *error)
{
    const sf_cnn_net *net = ((const sf_cnn_model *)base)->net;
    const prepared *p = pointer;
    sf_cnn_scratch *scratch = scratch_pointer;
    size_t GF = net->layout.shape.width_count * net->F, R = net->R;
    if (p->numbers) return sample_deleting(net, p, draws, count, labels, scratch, error);
    if (sf_grow(&scratch->rows, &scratch->row_capacity, BATCH * p->used, sizeof *scratch->rows))
        return sf_fail_memory(error);
    for (size_t i = 0; i < count; i += BATCH) {
        size_t samples = count - i < BATCH ? count - i : BATCH;
        for (size_t b = 0; b < samples; b++) {
            const uint32_t *draw = draws + (i + b) * p->slots;
            for (size_t s = 0; s < p->used; s++)
                scratch->rows[b * p->used + s] = p->table + p->choices[p->first[s] + draw[s]] * R;
            memcpy(scratch->sums + b * GF, p->sums, GF * sizeof *p->sums);
            memcpy(scratch->tops + b * GF, p->tops, GF * sizeof *p->tops);
        }
        pool_batch(p, net, scratch, samples);
        for (size_t b = 0; b < samples; b++) {
            make_features(net, scratch, scratch->sums + b * GF, scratch->tops + b * GF, p->words);
            labels[i + b] = answer(net, scratch);
        }
    }
    return SAFER_OK;
}

/* ------------------------------------------------------------------ classes */

void sf_cnn_model_free(sf_cnn_model *model)
{
    if (!model) return;
    sf_cnn_net_free(model->net);
    free(model->parameters);
    sf_words_free(&model->words);
    sf_model_clear(&model->base);
    free(model);
}

static void model_free(safer_model *model) { sf_cnn_model_free((sf_cnn_model *)model); }

static size_t visible(const void *pointer) { return ((const prepared *)pointer)->used; }

#define FUNCTIONS \
    .classify = classify, .prepare = prepare, .sample = sample, .release = release, .visible = visible, .deletes = 1, \
    .scratch_new = scratch_new, .scratch_free = scratch_free, .free = model_free
const sf_model_class sf_bow_class = {.arch = "bow", FUNCTIONS}, sf_cnn_class = {.arch = "cnn", FUNCTIONS};
