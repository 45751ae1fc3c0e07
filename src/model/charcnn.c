/* The `charcnn` classifier: answering. */
#include "model/charcnn.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "nn/layers.h"
#include "nn/vector.h"
#include "text/unicode.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t thirds(size_t n) { return (n + SF_CHARCNN_POOL - 1) / SF_CHARCNN_POOL; }
static size_t size_of(sf_dtype type) { return type == SF_F32 ? sizeof(float) : sizeof(sf_bf16); }

/* ------------------------------------------------------------------ layout */

size_t sf_charcnn_width(size_t convolution) { return convolution < 2 ? SF_CHARCNN_WIDE : SF_CHARCNN_NARROW; }

static size_t add_tensor(sf_charcnn_layout *l, const char *name, size_t index, const char *what, size_t rank, size_t a,
                         size_t b, size_t c)
{
    size_t i = l->tensor_count++, at = l->size;
    assert(i < SF_CHARCNN_TENSORS);
    if (index == SIZE_MAX)
        snprintf(l->tensors[i].name, sizeof l->tensors[i].name, "%s.%s", name, what);
    else
        snprintf(l->tensors[i].name, sizeof l->tensors[i].name, "%s.%u.%s", name, (unsigned)index, what);
    l->tensors[i].rank = rank;
    l->tensors[i].shape[0] = a;
    l->tensors[i].shape[1] = b;
    l->tensors[i].shape[2] = c;
    l->tensors[i].count = a * (rank > 1 ? b : 1) * (rank > 2 ? c : 1);
    l->tensors[i].offset = at;
    l->size += l->tensors[i].count;
    return at;
}

void sf_charcnn_layout_make(sf_charcnn_layout *out, const sf_charcnn_shape *shape)
{
    sf_charcnn_layout l = {.shape = *shape};
    const size_t F = shape->features, H = shape->hidden, K = shape->classes;
    const size_t shrink = (SF_CHARCNN_CONVS - 2) * (SF_CHARCNN_NARROW - 1);
    assert(shape->characters >= SF_CHARCNN_SHORTEST && F && F % SF_CHARCNN_LANES == 0);
    l.frames[SF_CHARCNN_A] = (shape->characters - (SF_CHARCNN_WIDE - 1)) / SF_CHARCNN_POOL;
    l.frames[SF_CHARCNN_B] = (l.frames[SF_CHARCNN_A] - (SF_CHARCNN_WIDE - 1)) / SF_CHARCNN_POOL;
    l.frames[SF_CHARCNN_C] = (l.frames[SF_CHARCNN_B] - shrink) / SF_CHARCNN_POOL;
    l.inputs = l.frames[SF_CHARCNN_C] * F;
    for (size_t i = 0; i < SF_CHARCNN_CONVS; i++) {
        if (i == 0)
            l.conv_weight[i] = add_tensor(&l, "conv", i, "weight", 3, SF_CHARCNN_ALPHABET, SF_CHARCNN_WIDE, F);
        else
            l.conv_weight[i] = add_tensor(&l, "conv", i, "weight", 3, sf_charcnn_width(i), F, F);
        l.conv_bias[i] = add_tensor(&l, "conv", i, "bias", 1, F, 0, 0);
    }
    l.convolutions = l.size;
    for (size_t i = 0; i < 2; i++) {
        l.hidden_weight[i] = add_tensor(&l, "dense", i, "weight", 2, i ? H : l.inputs, H, 0);
        l.hidden_bias[i] = add_tensor(&l, "dense", i, "bias", 1, H, 0, 0);
    }
    l.output_weight = add_tensor(&l, "output", SIZE_MAX, "weight", 2, K, H, 0);
    l.output_bias = add_tensor(&l, "output", SIZE_MAX, "bias", 1, K, 0, 0);
    l.trained = l.size;
    for (size_t i = 0; i < SF_CHARCNN_MATRICES; i++) {
        l.gains[i] = l.trained;
        l.trained += i < SF_CHARCNN_CONVS - 1 ? F : H;
    }
    *out = l;
}

/* --------------------------------------------------------------- characters */

/* In the paper's order. */
static const uint8_t alphabet[128] = {
    ['a'] = 1,  ['b'] = 2,   ['c'] = 3,  ['d'] = 4,  ['e'] = 5,  ['f'] = 6,   ['g'] = 7,  ['h'] = 8,   ['i'] = 9,
    ['j'] = 10, ['k'] = 11,  ['l'] = 12, ['m'] = 13, ['n'] = 14, ['o'] = 15,  ['p'] = 16, ['q'] = 17,  ['r'] = 18,
    ['s'] = 19, ['t'] = 20,  ['u'] = 21, ['v'] = 22, ['w'] = 23, ['x'] = 24,  ['y'] = 25, ['z'] = 26,  ['0'] = 27,
    ['1'] = 28, ['2'] = 29,  ['3'] = 30, ['4'] = 31, ['5'] = 32, ['6'] = 33,  ['7'] = 34, ['8'] = 35,  ['9'] = 36,
    ['-'] = 37, [','] = 38,  [';'] = 39, ['.'] = 40, ['!'] = 41, ['?'] = 42,  [':'] = 43, ['\''] = 44, ['"'] = 45,
    ['/'] = 46, ['\\'] = 47, ['|'] = 48, ['_'] = 49, ['@'] = 50, ['#'] = 51,  ['$'] = 52, ['%'] = 53,  ['^'] = 54,
    ['&'] = 55, ['*'] = 56,  ['~'] = 57, ['`'] = 58, ['+'] = 59, ['='] = 60,  ['<'] = 61, ['>'] = 62,  ['('] = 63,
    [')'] = 64, ['['] = 65,  [']'] = 66, ['{'] = 67, ['}'] = 68, ['\n'] = 69,
};

uint8_t sf_charcnn_code(uint32_t character)
{
    character = sf_lower(character);
    return character < 128 ? alphabet[character] : 0;
}

size_t sf_charcnn_encode(uint8_t *codes, const char *text, size_t length, size_t limit)
{
    const char *p = text, *end = text + length;
    size_t count = 0;
    for (; p < end && count < limit; count++) {
        uint32_t character;
        size_t step = sf_utf8_decode(p, end, &character);
        codes[count] = step ? sf_charcnn_code(character) : 0;
        p += step ? step : 1;
    }
    return count;
}

/* As sf_charcnn_encode counts them. */
static size_t count_characters(const char *text, size_t length)
{
    const char *p = text, *end = text + length;
    size_t count = 0;
    for (; p < end; count++) {
        uint32_t character;
        size_t step = sf_utf8_decode(p, end, &character);
        p += step ? step : 1;
    }
    return count;
}

/* ------------------------------------------------------------------- the net */

void sf_charcnn_net_free(sf_charcnn_net *net)
{
    if (!net) return;
    free(net->table);
    free(net->bias);
    for (size_t i = 0; i < SF_CHARCNN_CONVS; i++) sf_packed_free(&net->conv[i]);
    for (size_t i = 0; i < 2; i++) {
        for (size_t p = 0; net->hidden[i] && p < net->slices[i] * net->pieces; p++) sf_packed_free(&net->hidden[i][p]);
        free(net->hidden[i]);
    }
    free(net->hidden_bias);
    free(net->output_weight);
    free(net->output_bias);
    for (size_t i = 0; i < SF_CHARCNN_STAGES; i++) free(net->blank[i]);
    sf_charcnn_pass_free(net->blank_pass);
    free(net->blank_codes);
    free(net->blank_out);
    free(net);
}

static int shape_weights(sf_charcnn_net *net)
{
    const sf_charcnn_layout *l = &net->layout;
    const size_t F = l->shape.features, H = l->shape.hidden;
    for (size_t i = 1; i < SF_CHARCNN_CONVS; i++)
        if (sf_packed_shape(&net->conv[i], sf_charcnn_width(i) * F, F, net->type, net->isa)) return -1;
    net->pieces = (H + SF_CHARCNN_PIECE - 1) / SF_CHARCNN_PIECE;
    for (size_t i = 0; i < 2; i++) {
        const size_t inputs = i ? H : l->inputs;
        net->slices[i] = (inputs + SF_CHARCNN_SLICE - 1) / SF_CHARCNN_SLICE;
        if (!(net->hidden[i] = sf_calloc(net->slices[i] * net->pieces, sizeof *net->hidden[i]))) return -1;
        for (size_t k = 0; k < net->slices[i]; k++)
            for (size_t p = 0; p < net->pieces; p++)
                if (sf_packed_shape(&net->hidden[i][k * net->pieces + p],
                                    smaller(SF_CHARCNN_SLICE, inputs - k * SF_CHARCNN_SLICE),
                                    smaller(SF_CHARCNN_PIECE, H - p * SF_CHARCNN_PIECE), net->type, net->isa))
                    return -1;
    }
    return 0;
}

safer_status sf_charcnn_net_new(sf_charcnn_net **out, const sf_charcnn_layout *layout, sf_dtype type,
                                safer_error *error)
{
    safer_status status;
    const size_t F = layout->shape.features, H = layout->shape.hidden, K = layout->shape.classes;
    sf_charcnn_net *net = sf_calloc(1, sizeof *net);
    if (!net) return sf_fail_memory(error);
    net->layout = *layout;
    net->type = type;
    net->isa = sf_isa_choose();
    net->table = sf_alloc_aligned(SF_CHARCNN_CODES * SF_CHARCNN_WIDE * F, sizeof *net->table);
    net->bias = sf_alloc_aligned(SF_CHARCNN_CONVS * F, sizeof *net->bias);
    net->hidden_bias = sf_alloc_aligned(2 * H, sizeof *net->hidden_bias);
    net->output_weight = sf_alloc(K * H, sizeof *net->output_weight);
    net->output_bias = sf_alloc(K, sizeof *net->output_bias);
    net->blank_codes = sf_calloc(layout->shape.characters, 1);
    net->blank_out = sf_alloc_aligned(layout->inputs, size_of(type));
    int failed = !net->table || !net->bias || !net->hidden_bias || !net->output_weight || !net->output_bias ||
                 !net->blank_codes || !net->blank_out || shape_weights(net);
    for (size_t i = 0; i < SF_CHARCNN_STAGES; i++)
        if (!(net->blank[i] = sf_alloc_aligned(F, size_of(type)))) failed = 1;
    if (failed) {
        status = sf_fail_memory(error);
        goto done;
    }
    SF_TRY(sf_charcnn_pass_new(&net->blank_pass, net, 1, 1, error));
    *out = net;
    net = NULL;
done:
    sf_charcnn_net_free(net);
    return status;
}

typedef struct loading {
    sf_charcnn_net *net;
    const float *parameters;
} loading;

/* The packed matrix number `index` and its place among the parameters; NULL after the last. */
static sf_packed *matrix_at(sf_view *source, const loading *job, size_t index)
{
    sf_charcnn_net *net = job->net;
    const sf_charcnn_layout *l = &net->layout;
    const size_t convs = SF_CHARCNN_CONVS - 1, H = l->shape.hidden;
    size_t offset, stride;
    sf_packed *packed;
    if (index < convs) {
        packed = &net->conv[index + 1];
        offset = l->conv_weight[index + 1];
        stride = l->shape.features;
    } else {
        const size_t first = net->slices[0] * net->pieces, layer = index - convs >= first;
        index -= convs + (layer ? first : 0);
        if (layer && index >= net->slices[1] * net->pieces) return NULL;
        packed = &net->hidden[layer][index];
        offset = l->hidden_weight[layer] + index / net->pieces * SF_CHARCNN_SLICE * H +
                 index % net->pieces * SF_CHARCNN_PIECE;
        stride = H;
    }
    *source = (sf_view){(void *)(uintptr_t)(job->parameters + offset), stride, SF_F32};
    return packed;
}

/* Items are panels of all matrices, one after the other. */
static void load_panels(void *context, size_t begin, size_t end, int worker)
{
    const loading *job = context;
    sf_view source;
    sf_packed *packed;
    size_t first = 0;
    (void)worker;
    for (size_t i = 0; first < end && (packed = matrix_at(&source, job, i)); i++) {
        size_t panels = sf_packed_panels(packed), from = begin > first ? begin - first : 0,
               to = smaller(panels, end - first);
        if (from < to) sf_pack(packed, source, 0, from, to - from);
        first += panels;
    }
}

static void load_table(sf_charcnn_net *net, const float *parameters)
{
    const size_t F = net->layout.shape.features, row = SF_CHARCNN_WIDE * SF_CHARCNN_LANES;
    const float *weight = parameters + net->layout.conv_weight[0];
    for (size_t block = 0; block < F / SF_CHARCNN_LANES; block++) {
        float *table = net->table + block * SF_CHARCNN_CODES * row;
        memset(table, 0, row * sizeof *table); /* blank */
        for (size_t i = 0; i < SF_CHARCNN_ALPHABET * SF_CHARCNN_WIDE; i++)
            memcpy(table + row + i * SF_CHARCNN_LANES, weight + i * F + block * SF_CHARCNN_LANES,
                   SF_CHARCNN_LANES * sizeof *table);
    }
}

static void run_pass(sf_charcnn_pass *pass, void *out, const sf_charcnn_net *net, const uint8_t *codes,
                     const size_t *lengths, size_t count, int define);

void sf_charcnn_net_load(sf_charcnn_net *net, const float *parameters, int threads)
{
    const sf_charcnn_layout *l = &net->layout;
    const size_t F = l->shape.features, H = l->shape.hidden, K = l->shape.classes, one = 1;
    loading job = {net, parameters};
    sf_view source;
    const sf_packed *packed;
    size_t panels = 0;
    for (size_t i = 0; (packed = matrix_at(&source, &job, i)); i++) panels += sf_packed_panels(packed);
    sf_parallel(threads, panels, 1, load_panels, &job);
    load_table(net, parameters);
    for (size_t i = 0; i < SF_CHARCNN_CONVS; i++)
        memcpy(net->bias + i * F, parameters + l->conv_bias[i], F * sizeof *net->bias);
    for (size_t i = 0; i < 2; i++)
        memcpy(net->hidden_bias + i * H, parameters + l->hidden_bias[i], H * sizeof *net->hidden_bias);
    memcpy(net->output_weight, parameters + l->output_weight, K * H * sizeof *net->output_weight);
    memcpy(net->output_bias, parameters + l->output_bias, K * sizeof *net->output_bias);
    /* A text of one character, and that a blank: its frames are all alike. */
    run_pass(net->blank_pass, net->blank_out, net, net->blank_codes, &one, 1, 1);
}

/* ------------------------------------------------------------- convolutions */

void sf_charcnn_pass_free(sf_charcnn_pass *pass)
{
    if (!pass) return;
    free(pass->extents);
    for (size_t i = 0; i < SF_CHARCNN_C; i++) free(pass->frames[i]);
    for (size_t i = 0; i < (pass->keep ? 3u : 2u); i++) free(pass->between[i]);
    free(pass->raw);
    for (size_t i = 0; i < SF_CHARCNN_STAGES; i++) free(pass->which[i]);
    free(pass);
}

/* Rows of F elements. Cleared, so that rows at the end that nobody computes are numbers. */
static void *new_rows(int *failed, size_t texts, size_t frames, size_t row)
{
    size_t count;
    int too_many = __builtin_mul_overflow(texts, frames, &count) || __builtin_mul_overflow(count, row, &count);
    void *rows = too_many ? NULL : sf_alloc_aligned(count, 1);
    if (rows)
        memset(rows, 0, count);
    else
        *failed = 1;
    return rows;
}

safer_status sf_charcnn_pass_new(sf_charcnn_pass **out, const sf_charcnn_net *net, size_t texts, int keep,
                                 safer_error *error)
{
    const size_t *frames = net->layout.frames, F = net->layout.shape.features, row = F * size_of(net->type);
    int failed = 0;
    sf_charcnn_pass *pass = sf_calloc(1, sizeof *pass);
    if (!pass) return sf_fail_memory(error);
    pass->capacity = texts;
    pass->keep = keep;
    pass->extents = sf_calloc(texts, sizeof *pass->extents);
    pass->raw = new_rows(&failed, texts, frames[SF_CHARCNN_A], row);
    for (size_t i = 0; i < SF_CHARCNN_C; i++) pass->frames[i] = new_rows(&failed, texts, frames[i], row);
    for (size_t i = 0; i < 3; i++)
        pass->between[i] = keep || i < 2 ? new_rows(&failed, texts, frames[SF_CHARCNN_B], row) : pass->between[0];
    for (size_t i = 0; keep && i < SF_CHARCNN_STAGES; i++) pass->which[i] = new_rows(&failed, texts, frames[i], F);
    if (failed || !pass->extents) {
        sf_charcnn_pass_free(pass);
        return sf_fail_memory(error);
    }
    *out = pass;
    return SAFER_OK;
}

static void place_texts(sf_charcnn_pass *pass, const sf_charcnn_layout *l, const size_t *lengths, size_t count)
{
    const size_t wide = SF_CHARCNN_WIDE - 1, narrow = (SF_CHARCNN_CONVS - 2) * (SF_CHARCNN_NARROW - 1);
    pass->count = count;
    memset(pass->total, 0, sizeof pass->total);
    for (size_t b = 0; b < count; b++) {
        sf_charcnn_extent *e = &pass->extents[b];
        size_t used = lengths[b];
        for (size_t i = 0; i < SF_CHARCNN_STAGES; i++) e->used[i] = used = smaller(thirds(used), l->frames[i]);
        e->rows[SF_CHARCNN_A] = used ? SF_CHARCNN_POOL * e->used[SF_CHARCNN_B] + wide : 0;
        e->rows[SF_CHARCNN_B] = used ? SF_CHARCNN_POOL * e->used[SF_CHARCNN_C] + narrow : 0;
        for (size_t i = 0; i < SF_CHARCNN_C; i++) {
            e->used[i] = smaller(e->used[i], e->rows[i]); /* pooling may drop a rest */
            e->first[i] = pass->total[i];
            pass->total[i] += e->rows[i];
        }
    }
}

/* Copies the blank frame to rows from..to-1. */
static void fill_blank(void *rows, const void *blank, size_t from, size_t to, size_t size)
{
    for (size_t r = from; r < to; r++) memcpy((char *)rows + r * size, blank, size);
}

static void close_stage(sf_charcnn_pass *pass, const sf_charcnn_net *net, size_t stage, int define)
{
    const size_t size = net->layout.shape.features * size_of(net->type);
    if (define) memcpy(net->blank[stage], pass->frames[stage], size);
    for (size_t b = 0; b < pass->count; b++) {
        const sf_charcnn_extent *e = &pass->extents[b];
        fill_blank(pass->frames[stage], net->blank[stage], e->first[stage] + e->used[stage],
                   e->first[stage] + e->rows[stage], size);
    }
}

static void convolve(const sf_charcnn_net *net, void *out, const void *in, size_t convolution, size_t rows)
{
    const size_t F = net->layout.shape.features;
    const sf_view to = {out, F, net->type}, from = {(void *)(uintptr_t)in, F, net->type};
    sf_product(to, from, &net->conv[convolution], net->bias + convolution * F, SF_RELU, 0, rows);
}

static void run_pass(sf_charcnn_pass *pass, void *out, const sf_charcnn_net *net, const uint8_t *codes,
                     const size_t *lengths, size_t count, int define)
{
    const sf_charcnn_layout *l = &net->layout;
    const size_t F = l->shape.features, size = size_of(net->type), inputs = l->inputs;
    const size_t *frames = l->frames;
    const sf_view a = {pass->frames[SF_CHARCNN_A], F, net->type}, b = {pass->frames[SF_CHARCNN_B], F, net->type};
    const sf_view raw = {pass->raw, F, net->type}, c = {out, F, net->type};
    uint8_t *const *which = pass->which;
    assert(count <= pass->capacity);
    place_texts(pass, l, lengths, count);
    for (size_t block = 0; block < F / SF_CHARCNN_LANES; block++) /* its table stays in the first-level cache */
        for (size_t i = 0; i < count; i++) {
            const sf_charcnn_extent *e = &pass->extents[i];
            sf_charcnn_first(sf_view_at(a, e->first[SF_CHARCNN_A], 0),
                             which[0] ? which[0] + e->first[SF_CHARCNN_A] * F : NULL,
                             net->table + block * SF_CHARCNN_CODES * SF_CHARCNN_WIDE * SF_CHARCNN_LANES, net->bias,
                             codes + i * l->shape.characters, e->used[SF_CHARCNN_A], block, net->isa);
        }
    close_stage(pass, net, SF_CHARCNN_A, define);
    if (pass->total[SF_CHARCNN_A])
        convolve(net, pass->raw, pass->frames[SF_CHARCNN_A], 1, pass->total[SF_CHARCNN_A] - (SF_CHARCNN_WIDE - 1));
    for (size_t i = 0; i < count; i++) {
        const sf_charcnn_extent *e = &pass->extents[i];
        sf_charcnn_pool(sf_view_at(b, e->first[SF_CHARCNN_B], 0),
                        which[1] ? which[1] + e->first[SF_CHARCNN_B] * F : NULL,
                        sf_view_at(raw, e->first[SF_CHARCNN_A], 0), e->used[SF_CHARCNN_B], F, net->isa);
    }
    close_stage(pass, net, SF_CHARCNN_B, define);
    for (size_t i = 2; pass->total[SF_CHARCNN_B] && i < SF_CHARCNN_CONVS; i++)
        convolve(net, i < 5 ? pass->between[i - 2] : pass->raw,
                 i > 2 ? pass->between[i - 3] : pass->frames[SF_CHARCNN_B], i,
                 pass->total[SF_CHARCNN_B] - (i - 1) * (SF_CHARCNN_NARROW - 1));
    for (size_t i = 0; i < count; i++) {
        const sf_charcnn_extent *e = &pass->extents[i];
        const size_t row = i * frames[SF_CHARCNN_C];
        sf_charcnn_pool(sf_view_at(c, row, 0), which[2] ? which[2] + row * F : NULL,
                        sf_view_at(raw, e->first[SF_CHARCNN_B], 0), e->used[SF_CHARCNN_C], F, net->isa);
        if (define) memcpy(net->blank[SF_CHARCNN_C], out, F * size);
        fill_blank((char *)out + i * inputs * size, net->blank[SF_CHARCNN_C], e->used[SF_CHARCNN_C],
                   frames[SF_CHARCNN_C], F * size);
    }
}

void sf_charcnn_pass_run(sf_charcnn_pass *pass, void *out, const sf_charcnn_net *net, const uint8_t *codes,
                         const size_t *lengths, size_t count)
{
    run_pass(pass, out, net, codes, lengths, count, 0);
}

/* ----------------------------------------------------------------- scratch */

/* Texts go through the convolutions PASS at a time (fewer are slower, more are not faster),
 * and through the dense layers HEAD at a time, many, because those read more weights than
 * any cache holds. */
enum { PASS = 8, HEAD = 128 };

struct sf_charcnn_scratch {
    sf_charcnn_pass *pass;
    uint8_t *codes;  /* (HEAD, L) */
    size_t *lengths; /* (HEAD) */
    void *features;  /* (HEAD, inputs) */
    float *hidden;   /* (HEAD, H): of either dense layer */
    void *rounded;   /* (HEAD, H): of the first */
    float *logits;   /* (HEAD, classes) */
};

void sf_charcnn_scratch_free(sf_charcnn_scratch *s)
{
    if (!s) return;
    sf_charcnn_pass_free(s->pass);
    free(s->codes);
    free(s->lengths);
    free(s->features);
    free(s->hidden);
    free(s->rounded);
    free(s->logits);
    free(s);
}

safer_status sf_charcnn_scratch_new(const sf_charcnn_net *net, sf_charcnn_scratch **out, safer_error *error)
{
    const sf_charcnn_layout *l = &net->layout;
    safer_status status;
    sf_charcnn_scratch *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    SF_TRY(sf_charcnn_pass_new(&s->pass, net, PASS, 0, error));
    s->codes = sf_alloc(HEAD * l->shape.characters, 1);
    s->lengths = sf_alloc(HEAD, sizeof *s->lengths);
    s->features = sf_alloc_aligned(HEAD * l->inputs, size_of(net->type));
    s->hidden = sf_alloc_aligned(HEAD * l->shape.hidden, sizeof *s->hidden);
    s->rounded = sf_alloc_aligned(HEAD * l->shape.hidden, size_of(net->type));
    s->logits = sf_alloc(HEAD * l->shape.classes, sizeof *s->logits);
    if (!s->codes || !s->lengths || !s->features || !s->hidden || !s->rounded || !s->logits) {
        status = sf_fail_memory(error);
        goto done;
    }
    *out = s;
    s = NULL;
done:
    sf_charcnn_scratch_free(s);
    return status;
}

const float *sf_charcnn_scratch_logits(const sf_charcnn_scratch *scratch) { return scratch->logits; }

/* ----------------------------------------------------------------- answers */

void sf_charcnn_dense(float *out, sf_view in, const sf_charcnn_net *net, size_t layer, size_t first, size_t last,
                      size_t count)
{
    const size_t H = net->layout.shape.hidden;
    for (size_t p = first; p < last; p++) {
        const size_t at = p * SF_CHARCNN_PIECE, width = smaller(SF_CHARCNN_PIECE, H - at);
        for (size_t k = 0; k < net->slices[layer]; k++)
            sf_product((sf_view){out + at, H, SF_F32}, sf_view_at(in, 0, k * SF_CHARCNN_SLICE),
                       &net->hidden[layer][k * net->pieces + p], k ? NULL : net->hidden_bias + layer * H + at,
                       SF_LINEAR, k > 0, count);
        for (size_t i = 0; i < count; i++) sf_activate(out + i * H + at, out + i * H + at, SF_RELU, width, net->isa);
    }
}

/* An f32 product may depend on how many rows it has: then every text goes alone. */
static void answer(int *labels, float *probabilities, const sf_charcnn_net *net, const uint8_t *codes,
                   const size_t *lengths, size_t count, sf_charcnn_scratch *s)
{
    const sf_charcnn_layout *l = &net->layout;
    const size_t H = l->shape.hidden, K = l->shape.classes, size = size_of(net->type);
    const sf_view features = {s->features, l->inputs, net->type}, rounded = {s->rounded, H, net->type};
    const size_t together = net->type == SF_F32 ? 1 : count, pass = smaller(PASS, together);
    for (size_t i = 0; i < count; i += pass)
        sf_charcnn_pass_run(s->pass, (char *)s->features + i * l->inputs * size, net, codes + i * l->shape.characters,
                            lengths + i, smaller(pass, count - i));
    for (size_t i = 0; i < count; i += together) {
        float *out = s->hidden + i * H;
        sf_charcnn_dense(out, sf_view_at(features, i, 0), net, 0, 0, net->pieces, together);
        if (net->type == SF_F32)
            memcpy(rounded.values, out, together * H * sizeof *out);
        else
            sf_to_bf16(rounded.values, out, together * H, net->isa);
        sf_charcnn_dense(out, rounded, net, 1, 0, net->pieces, together);
    }
    sf_linear_forward(s->logits, s->hidden, net->output_weight, net->output_bias, count, H, K);
    for (size_t i = 0; i < count; i++) {
        const float *logits = s->logits + i * K;
        labels[i] = 0;
        for (size_t k = 1; k < K; k++)
            if (logits[k] > logits[labels[i]]) labels[i] = (int)k;
        if (probabilities) sf_softmax_forward(probabilities + i * K, logits, K);
    }
}

void sf_charcnn_classify_codes(int *labels, float *probabilities, float *logits, const sf_charcnn_net *net,
                               const uint8_t *codes, const size_t *lengths, size_t count, sf_charcnn_scratch *scratch)
{
    const size_t K = net->layout.shape.classes;
    for (size_t i = 0; i < count; i += HEAD) {
        size_t n = smaller(HEAD, count - i);
        answer(labels + i, probabilities ? probabilities + i * K : NULL, net, codes + i * net->layout.shape.characters,
               lengths + i, n, scratch);
        if (logits) memcpy(logits + i * K, scratch->logits, n * K * sizeof *logits);
    }
}

/* --------------------------------------------------------------- the model */

static safer_status classify(const safer_model *base, const sf_span *texts, size_t count, int *labels, float *scores,
                             void *scratch, safer_error *error)
{
    const sf_charcnn_net *net = ((const sf_charcnn_model *)base)->net;
    const size_t L = net->layout.shape.characters;
    sf_charcnn_scratch *s = scratch;
    (void)error;
    for (size_t i = 0; i < count; i += HEAD) {
        size_t n = smaller(HEAD, count - i);
        for (size_t b = 0; b < n; b++) {
            uint8_t *codes = s->codes + b * L;
            s->lengths[b] = sf_charcnn_encode(codes, texts[i + b].bytes, texts[i + b].length, L);
            memset(codes + s->lengths[b], 0, L - s->lengths[b]);
        }
        sf_charcnn_classify_codes(labels + i, scores ? scores + i * base->classes : NULL, NULL, net, s->codes,
                                  s->lengths, n, s);
    }
    return SAFER_OK;
}

static safer_status scratch_new(const safer_model *model, void **out, safer_error *error)
{
    sf_charcnn_scratch *scratch = NULL;
    safer_status status = sf_charcnn_scratch_new(((const sf_charcnn_model *)model)->net, &scratch, error);
    if (status == SAFER_OK) *out = scratch;
    return status;
}

static void scratch_free(void *scratch) { sf_charcnn_scratch_free(scratch); }

/* --------------------------------------------------------------- fast path */

/* A text made ready for draws: codes of what stays, and of all words that can be drawn. */
typedef struct prepared {
    size_t slots;   /* of the text: the length of a draw */
    size_t visible; /* of them can be seen */
    uint8_t *fixed; /* codes of everything between the slots, at most L */
    size_t fixed_count;
    size_t *before;  /* (visible): fixed codes before each slot */
    uint32_t *first; /* (visible): where a slot's support begins among the choices */
    uint8_t *codes;  /* of the choices, one after the other */
    uint32_t *begin; /* (choices+1): where each begins there */
} prepared;

static void release(void *pointer)
{
    prepared *p = pointer;
    if (!p) return;
    free(p->fixed);
    free(p->before);
    free(p->first);
    free(p->codes);
    free(p->begin);
    free(p);
}

size_t sf_charcnn_visible(const void *pointer) { return ((const prepared *)pointer)->visible; }

/* The fewest characters of a word that a row draws. */
static size_t shortest_of_row(const safer_lexicon *lexicon, uint32_t row)
{
    const sf_kernel_view *kernel = &lexicon->kernel;
    size_t least = SIZE_MAX;
    for (uint64_t k = kernel->offsets[row]; k < kernel->offsets[row + 1]; k++) {
        uint32_t at = lexicon->words.offsets[kernel->ids[k]], end = lexicon->words.offsets[kernel->ids[k] + 1] - 1;
        least = smaller(least, count_characters(lexicon->words.pool + at, end - at));
    }
    return least;
}

/* The fewest characters of what the word, or a synonym in its place, can become. Every
 * case pattern has as many. shortest: of the kernel rows met already, else 0. */
static size_t shortest_of_word(uint32_t *shortest, const safer_lexicon *lexicon, uint32_t word)
{
    size_t least = SIZE_MAX;
    for (uint64_t k = lexicon->synonym_offsets[word];; k++) {
        int last = k == lexicon->synonym_offsets[word + 1];
        uint32_t row = lexicon->kernel.row_of[last ? word : lexicon->synonyms[k]];
        if (!shortest[row]) shortest[row] = (uint32_t)shortest_of_row(lexicon, row);
        least = smaller(least, shortest[row]);
        if (last) return least;
    }
}

/* Counts the slots that can be seen and lists the codes of what stays between them. */
static safer_status place_slots(prepared *p, const safer_lexicon *lexicon, const sf_slots *slots, size_t L,
                                safer_error *error)
{
    size_t at = 0, earliest = 0; /* the least characters before `at`, over all draws and exchanges */
    uint32_t *shortest = sf_calloc(lexicon->kernel.rows, sizeof *shortest);
    p->fixed = sf_alloc(L, 1);
    p->before = sf_alloc(p->slots, sizeof *p->before);
    p->first = sf_alloc(p->slots, sizeof *p->first);
    if (!shortest || !p->fixed || !p->before || !p->first) {
        free(shortest);
        return sf_fail_memory(error);
    }
    for (size_t s = 0; earliest < L; s++) {
        const sf_text_word *w = s < p->slots ? &slots->words[slots->slots[s]] : NULL;
        size_t end = w ? w->begin : slots->length, left = L - earliest;
        size_t count = sf_charcnn_encode(p->fixed + p->fixed_count, slots->text + at, end - at, left);
        p->fixed_count += count;
        earliest += count;
        if (!w || earliest >= L) break;
        p->before[s] = p->fixed_count;
        earliest += shortest_of_word(shortest, lexicon, w->word);
        p->visible++;
        at = w->end;
    }
    free(shortest);
    return SAFER_OK;
}

/* Encodes the support of a kernel row, written in a pattern. */
static int encode_support(prepared *p, size_t *choices, size_t *begin_capacity, size_t *code_capacity,
                          const safer_lexicon *lexicon, uint32_t row, sf_case pattern, sf_buffer *surface)
{
    const sf_kernel_view *kernel = &lexicon->kernel;
    for (uint64_t k = kernel->offsets[row]; k < kernel->offsets[row + 1]; k++) {
        uint32_t at = lexicon->words.offsets[kernel->ids[k]], end = lexicon->words.offsets[kernel->ids[k] + 1] - 1;
        size_t from = p->begin[*choices];
        sf_buffer_clear(surface);
        if (sf_word_render(surface, lexicon->words.pool + at, end - at, pattern) ||
            sf_grow(&p->codes, code_capacity, from + surface->length, 1) ||
            sf_grow(&p->begin, begin_capacity, *choices + 2, sizeof *p->begin))
            return -1;
        p->begin[++*choices] = (uint32_t)(from + sf_charcnn_encode(p->codes + from, surface->bytes, surface->length,
                                                                   SIZE_MAX));
    }
    return 0;
}

/* Lists what each slot can become. Slots with the same kernel row and pattern share. */
static safer_status encode_choices(prepared *p, const safer_lexicon *lexicon, const sf_slots *slots, safer_error *error)
{
    safer_status status = SAFER_OK;
    const sf_kernel_view *kernel = &lexicon->kernel;
    size_t choices = 0, begin_capacity = 0, code_capacity = 0;
    sf_buffer surface = {0};
    uint32_t *known = sf_alloc((size_t)kernel->rows * (SF_UPPER + 1), sizeof *known);
    if (!known || sf_grow(&p->begin, &begin_capacity, 1, sizeof *p->begin)) {
        status = sf_fail_memory(error);
        goto done;
    }
    memset(known, 0xff, (size_t)kernel->rows * (SF_UPPER + 1) * sizeof *known);
    p->begin[0] = 0;
    for (size_t s = 0; s < p->visible; s++) {
        const sf_text_word *w = &slots->words[slots->slots[s]];
        uint32_t row = kernel->row_of[w->word], *place = &known[(size_t)row * (SF_UPPER + 1) + w->pattern];
        if (*place == SF_NONE) {
            *place = (uint32_t)choices;
            if (encode_support(p, &choices, &begin_capacity, &code_capacity, lexicon, row, w->pattern, &surface)) {
                status = sf_fail_memory(error);
                goto done;
            }
        }
        p->first[s] = *place;
    }
done:
    free(known);
    sf_buffer_free(&surface);
    return status;
}

static safer_status prepare(const safer_model *base, const safer_lexicon *lexicon, const sf_slots *slots, void **out,
                            safer_error *error)
{
    safer_status status;
    prepared *p = sf_calloc(1, sizeof *p);
    if (!p) return sf_fail_memory(error);
    p->slots = slots->slot_count;
    SF_TRY(place_slots(p, lexicon, slots, ((const sf_charcnn_model *)base)->net->layout.shape.characters, error));
    SF_TRY(encode_choices(p, lexicon, slots, error));
    *out = p;
    p = NULL;
done:
    release(p);
    return status;
}

/* The codes of a draw; returns how many there are. */
static size_t assemble(uint8_t *codes, const prepared *p, const uint32_t *draw, size_t L)
{
    size_t count = 0, from = 0;
    for (size_t s = 0; s < p->visible && count < L; s++) {
        const uint32_t choice = p->first[s] + draw[s];
        size_t part = smaller(p->before[s] - from, L - count);
        memcpy(codes + count, p->fixed + from, part);
        from = p->before[s];
        count += part;
        part = smaller(p->begin[choice + 1] - p->begin[choice], L - count);
        memcpy(codes + count, p->codes + p->begin[choice], part);
        count += part;
    }
    size_t rest = smaller(p->fixed_count - from, L - count);
    memcpy(codes + count, p->fixed + from, rest);
    count += rest;
    memset(codes + count, 0, L - count);
    return count;
}

static safer_status sample(const safer_model *base, const void *pointer, const uint32_t *draws, size_t count,
                           int *labels, void *scratch, safer_error *error)
{
    const sf_charcnn_net *net = ((const sf_charcnn_model *)base)->net;
    const size_t L = net->layout.shape.characters;
    const prepared *p = pointer;
    sf_charcnn_scratch *s = scratch;
    (void)error;
    for (size_t i = 0; i < count; i += HEAD) {
        size_t n = smaller(HEAD, count - i);
        for (size_t b = 0; b < n; b++) s->lengths[b] = assemble(s->codes + b * L, p, draws + (i + b) * p->slots, L);
        sf_charcnn_classify_codes(labels + i, NULL, NULL, net, s->codes, s->lengths, n, s);
    }
    return SAFER_OK;
}

/* ------------------------------------------------------------------- class */

void sf_charcnn_model_free(sf_charcnn_model *model)
{
    if (!model) return;
    sf_charcnn_net_free(model->net);
    sf_safetensors_free(model->file);
    sf_model_clear(&model->base);
    free(model);
}

static void model_free(safer_model *model) { sf_charcnn_model_free((sf_charcnn_model *)model); }

const sf_model_class sf_charcnn_class = {
    .arch = "charcnn",
    .classify = classify,
    .prepare = prepare,
    .sample = sample,
    .release = release,
    .visible = sf_charcnn_visible,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .free = model_free,
    .set_precision = sf_charcnn_set_precision,
};
