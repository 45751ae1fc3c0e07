/* One training step of the `charcnn` classifier.
 *
 * Products run in bf16 with f32 sums, on weights rounded from the f32 parameters; frames
 * and the gradients that enter products are bf16, everything that is added up is f32.
 *
 * Backwards through a convolution, with D the gradient of its output rows: the gradient of
 * the input is again a convolution, of D with the taps reversed; the zero rows between
 * texts (every text keeps as many rows as the convolution shortens it by) make it come out
 * right at the seams. The gradient of tap t is the product of the transposed input, read
 * from column t on, with D.
 *
 * Blank frames: what texts send back to their copies of a blank frame is added up, and goes
 * further back from the one place where that frame was computed, a pass of its own over one
 * blank text (net->blank_pass), after all others.
 *
 * Nothing depends on the number of threads: texts are taken in groups of fixed size, the
 * groups are dealt to a number of lanes that depends on the batch alone, each lane adds up
 * the gradients of its groups in order, and the lanes are added in order. In the dense
 * layers every thread has rows or columns of its own. */
#include "train/charcnn_step.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "model/charcnn_pass.h"
#include "nn/layers.h"
#include "nn/vector.h"
#include "train/charcnn_scale.h"

#include <math.h>
#include <string.h>

enum { GROUP = 8, LANES = 8, ROWS = 256, RANGE = 16384 };

typedef struct lane {
    float *gradient;                 /* (convolutions): all but the first weight */
    float *table;                    /* (F/16, codes, 7, 16): the first weight */
    float *blank[SF_CHARCNN_STAGES]; /* (F): of the blank frames */
} lane;

/* What one thread works with. */
typedef struct workspace {
    void *douts;      /* (WIDE-1 + rows, F): D, behind rows of zeros */
    float *dframes;   /* (rows, F) */
    void *transposed; /* (F, rows) or (ROWS, texts) */
    sf_packed packed; /* D as a right side */
    float *dfeatures; /* (GROUP, inputs) */
    float *spread;    /* (L + 6, 16) */
    uint32_t *places; /* (GROUP, L) */
    uint32_t *begin;  /* (GROUP, codes + 1) */
} workspace;

struct sf_charcnn_step {
    sf_charcnn_layout layout;
    sf_charcnn_options options;
    sf_stream dropout;
    sf_charcnn_net *net;
    sf_packed back[SF_CHARCNN_CONVS]; /* taps reversed; the first is not used */
    float *turned;                    /* (F, width, F): what they are packed from */
    size_t texts, groups;             /* capacity */
    sf_charcnn_pass **passes;         /* (groups) */
    lane lanes[LANES];
    workspace *workspaces; /* (threads) */
    int threads;
    sf_charcnn_scaling *scaling;
    float *weights;  /* (size): what the trained numbers stand for */
    float *gradient; /* (trained): of the parameters first */
    double *squares; /* of every RANGE numbers of the gradient */

    void *features;          /* (texts, inputs) */
    float *relu[2];          /* (texts, H) */
    float *masks[2];         /* (texts, H) */
    void *dropped;           /* (texts, H): first layer */
    float *last;             /* (texts, H): second layer, after dropout */
    float *logits, *dlogits; /* (texts, classes) */
    float *losses;           /* (texts) */
    float *dhidden;          /* (texts, H) */
    void *douts;             /* (texts, H): rounded */
    sf_packed across, down;  /* D (texts, H) and its transpose */
    float *dinputs;          /* (inputs, texts): transposed */

    /* Of the step in progress. */
    const sf_charcnn_batch *batch;
    uint64_t number;
    size_t layer;
    size_t used; /* lanes */
    float scale;
    float *moved, *means, *variances;
    sf_adam adam;
};

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }
static size_t table_size(size_t F) { return SF_CHARCNN_CODES * SF_CHARCNN_WIDE * F; }

/* ------------------------------------------------------------------- memory */

void sf_charcnn_step_free(sf_charcnn_step *s)
{
    if (!s) return;
    sf_charcnn_net_free(s->net);
    sf_charcnn_scaling_free(s->scaling);
    for (size_t i = 0; i < SF_CHARCNN_CONVS; i++) sf_packed_free(&s->back[i]);
    for (size_t g = 0; s->passes && g < s->groups; g++) sf_charcnn_pass_free(s->passes[g]);
    for (size_t i = 0; i < LANES; i++) {
        free(s->lanes[i].gradient);
        free(s->lanes[i].table);
        for (size_t k = 0; k < SF_CHARCNN_STAGES; k++) free(s->lanes[i].blank[k]);
    }
    for (int i = 0; s->workspaces && i < s->threads; i++) {
        workspace *w = &s->workspaces[i];
        free(w->douts);
        free(w->dframes);
        free(w->transposed);
        sf_packed_free(&w->packed);
        free(w->dfeatures);
        free(w->spread);
        free(w->places);
        free(w->begin);
    }
    sf_packed_free(&s->across);
    sf_packed_free(&s->down);
    void *owned[] = {s->turned,  s->passes,  s->workspaces, s->weights,  s->gradient, s->squares, s->features,
                     s->relu[0], s->relu[1], s->masks[0],   s->masks[1], s->dropped,  s->last,    s->logits,
                     s->dlogits, s->losses,  s->dhidden,    s->douts,    s->dinputs};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
    free(s);
}

static void *array(int *failed, size_t a, size_t b, size_t size)
{
    size_t count;
    void *p = __builtin_mul_overflow(a, b, &count) ? NULL : sf_alloc_aligned(count, size);
    if (!p) *failed = 1;
    return p;
}

static int new_lanes(sf_charcnn_step *s)
{
    const size_t F = s->layout.shape.features;
    int failed = 0;
    for (size_t i = 0; i < LANES; i++) {
        s->lanes[i].gradient = array(&failed, s->layout.convolutions, 1, sizeof(float));
        s->lanes[i].table = array(&failed, table_size(F), 1, sizeof(float));
        for (size_t k = 0; k < SF_CHARCNN_STAGES; k++) s->lanes[i].blank[k] = array(&failed, F, 1, sizeof(float));
    }
    return failed;
}

static int new_workspaces(sf_charcnn_step *s)
{
    const size_t F = s->layout.shape.features, size = sf_element(s->options.type),
                 rows = GROUP * s->layout.frames[SF_CHARCNN_A];
    int failed = 0;
    if (!(s->workspaces = sf_calloc((size_t)s->threads, sizeof *s->workspaces))) return -1;
    for (int i = 0; i < s->threads; i++) {
        workspace *w = &s->workspaces[i];
        w->douts = array(&failed, rows + SF_CHARCNN_WIDE - 1, F, size);
        w->dframes = array(&failed, rows, F, sizeof(float));
        w->transposed = array(&failed, larger(F * rows, ROWS * s->texts), 1, size);
        w->dfeatures = array(&failed, GROUP, s->layout.inputs, sizeof(float));
        w->spread = array(&failed, s->layout.shape.characters + SF_CHARCNN_WIDE - 1, SF_CHARCNN_LANES, sizeof(float));
        w->places = array(&failed, GROUP, s->layout.shape.characters, sizeof *w->places);
        w->begin = array(&failed, GROUP, SF_CHARCNN_CODES + 1, sizeof *w->begin);
        if (sf_packed_shape(&w->packed, rows, F, s->options.type, s->net->isa)) failed = 1;
    }
    return failed;
}

static int new_head(sf_charcnn_step *s)
{
    const size_t B = s->texts, H = s->layout.shape.hidden, K = s->layout.shape.classes,
                 size = sf_element(s->options.type);
    int failed = 0;
    s->features = array(&failed, B, s->layout.inputs, size);
    for (size_t i = 0; i < 2; i++) {
        s->relu[i] = array(&failed, B, H, sizeof(float));
        s->masks[i] = array(&failed, B, H, sizeof(float));
    }
    s->dropped = array(&failed, B, H, size);
    s->last = array(&failed, B, H, sizeof(float));
    s->logits = array(&failed, B, K, sizeof(float));
    s->dlogits = array(&failed, B, K, sizeof(float));
    s->losses = array(&failed, B, 1, sizeof(float));
    s->dhidden = array(&failed, B, H, sizeof(float));
    s->douts = array(&failed, B, H, size);
    s->dinputs = array(&failed, larger(s->layout.inputs, H), B, sizeof(float));
    return failed || sf_packed_shape(&s->across, B, H, s->options.type, s->net->isa) ||
           sf_packed_shape(&s->down, H, B, s->options.type, s->net->isa);
}

sf_stream sf_charcnn_step_dropout(const sf_charcnn_options *options)
{
    return sf_stream_of(options->seed, UINT64_C(0x64726f706f757400), SF_STAGE_TRAINING); /* "dropout" */
}

safer_status sf_charcnn_step_new(sf_charcnn_step **out, const sf_charcnn_layout *l, const sf_charcnn_options *options,
                                 size_t texts, safer_error *error)
{
    safer_status status = SAFER_OK;
    const size_t F = l->shape.features;
    int failed = 0;
    sf_charcnn_step *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    s->layout = *l;
    s->options = *options;
    s->dropout = sf_charcnn_step_dropout(options);
    s->texts = texts;
    s->groups = (texts + GROUP - 1) / GROUP;
    s->threads = sf_threads(options->threads);
    SF_TRY(sf_charcnn_net_new(&s->net, l, sf_arithmetic_fast(options->type), error));
    SF_TRY(sf_charcnn_scaling_new(&s->scaling, l, s->threads, error));
    for (size_t i = 1; i < SF_CHARCNN_CONVS; i++)
        if (sf_packed_shape(&s->back[i], sf_charcnn_width(i) * F, F, options->type, s->net->isa)) failed = 1;
    s->turned = array(&failed, SF_CHARCNN_WIDE * F, F, sizeof(float));
    s->weights = array(&failed, l->size, 1, sizeof(float));
    s->gradient = array(&failed, l->trained, 1, sizeof(float));
    s->squares = array(&failed, l->trained / RANGE + 1, 1, sizeof(double));
    s->passes = sf_calloc(s->groups, sizeof *s->passes);
    if (failed || !s->passes || new_lanes(s) || new_workspaces(s) || new_head(s)) {
        status = sf_fail_memory(error);
        goto done;
    }
    for (size_t g = 0; g < s->groups; g++)
        SF_TRY(sf_charcnn_pass_new(&s->passes[g], s->net, sf_least(GROUP, texts - g * GROUP), 1, error));
    *out = s;
    s = NULL;
done:
    sf_charcnn_step_free(s);
    return status;
}

/* ------------------------------------------------------------------ weights */

static void pack_panels(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    const size_t F = s->layout.shape.features, width = sf_charcnn_width(s->layer);
    const sf_view source = {s->turned, width * F, SF_F32};
    (void)worker;
    sf_pack(&s->back[s->layer], source, 1, begin, end - begin);
}

static void load_weights(sf_charcnn_step *s)
{
    const size_t F = s->layout.shape.features;
    sf_charcnn_net_load(s->net, s->weights, s->threads);
    for (size_t i = 1; i < SF_CHARCNN_CONVS; i++) {
        const size_t width = sf_charcnn_width(i);
        const float *weight = s->weights + s->layout.conv_weight[i];
        for (size_t c = 0; c < F; c++)
            for (size_t j = 0; j < width; j++)
                memcpy(s->turned + (c * width + j) * F, weight + ((width - 1 - j) * F + c) * F, F * sizeof *weight);
        s->layer = i;
        sf_parallel(s->threads, sf_packed_panels(&s->back[i]), 1, pack_panels, s);
    }
}

/* ------------------------------------------------------ forward, dense layers */

static void run_groups(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    const size_t L = s->layout.shape.characters;
    (void)worker;
    for (size_t g = begin; g < end; g++) {
        const size_t first = g * GROUP;
        sf_charcnn_pass_run(s->passes[g], (char *)s->features + first * s->layout.inputs * sf_element(s->options.type),
                            s->net, s->batch->codes + first * L, s->batch->lengths + first,
                            sf_least(GROUP, s->batch->count - first));
    }
}

/* Items are pieces of outputs. */
static void hidden_forward(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    const size_t i = s->layer;
    const sf_view in = {i ? s->dropped : s->features, i ? s->layout.shape.hidden : s->layout.inputs, s->options.type};
    (void)worker;
    sf_charcnn_dense(s->relu[i], in, s->net, i, begin, end, s->batch->count);
}

static void round_row(sf_charcnn_step *s, void *out, const float *row, size_t index, size_t N)
{
    if (s->options.type == SF_F32)
        memcpy((float *)out + index * N, row, N * sizeof *row);
    else
        sf_to_bf16((sf_bf16 *)out + index * N, row, N, s->net->isa);
}

static void drop_first(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    const size_t H = s->layout.shape.hidden;
    (void)worker;
    for (size_t b = begin; b < end; b++) {
        float *row = s->dhidden + b * H; /* for the moment */
        sf_dropout_forward(row, s->masks[0] + b * H, s->relu[0] + b * H, s->options.dropout, s->dropout, s->number,
                           (uint32_t)(2 * b), H);
        round_row(s, s->dropped, row, b, H);
    }
}

/* From the second layer's output to the loss, and back to its gradient. */
static void finish_texts(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    const sf_charcnn_layout *l = &s->layout;
    const size_t H = l->shape.hidden, K = l->shape.classes;
    const float *weight = s->weights + l->output_weight, scale = 1 / (float)s->batch->count,
                smoothing = s->options.smoothing;
    (void)worker;
    for (size_t b = begin; b < end; b++) {
        float *last = s->last + b * H, *logits = s->logits + b * K, *dlogits = s->dlogits + b * K,
              *dhidden = s->dhidden + b * H;
        float mean = 0;
        const size_t target = (size_t)s->batch->labels[b];
        sf_dropout_forward(last, s->masks[1] + b * H, s->relu[1] + b * H, s->options.dropout, s->dropout, s->number,
                           (uint32_t)(2 * b + 1), H);
        sf_linear_forward(logits, last, weight, s->weights + l->output_bias, 1, H, K);
        for (size_t k = 0; k < K; k++) mean += logits[k] / (float)K;
        s->losses[b] = smoothing * (logits[target] - mean);
        s->losses[b] += sf_softmax_loss(logits, dlogits, logits, (int)target, scale, K);
        for (size_t k = 0; k < K; k++) dlogits[k] += scale * smoothing * ((k == target ? 1.0f : 0.0f) - 1 / (float)K);
        sf_linear_backward(dhidden, NULL, NULL, dlogits, last, weight, 1, H, K);
        sf_dropout_backward(dhidden, dhidden, s->masks[1] + b * H, H);
        sf_relu_backward(dhidden, dhidden, s->relu[1] + b * H, H);
        round_row(s, s->douts, dhidden, b, H);
    }
}

static void forward(sf_charcnn_step *s)
{
    sf_parallel(s->threads, (s->batch->count + GROUP - 1) / GROUP, 1, run_groups, s);
    s->layer = 0;
    sf_parallel(s->threads, s->net->pieces, 1, hidden_forward, s);
    sf_parallel(s->threads, s->batch->count, 8, drop_first, s);
    s->layer = 1;
    sf_parallel(s->threads, s->net->pieces, 1, hidden_forward, s);
    sf_parallel(s->threads, s->batch->count, 8, finish_texts, s);
}

/* ----------------------------------------------------- backward, dense layers */

static void pack_douts(sf_charcnn_step *s)
{
    const size_t B = s->batch->count, H = s->layout.shape.hidden;
    const sf_view douts = {s->douts, H, s->options.type};
    (void)sf_packed_shape(&s->across, B, H, s->options.type, s->net->isa); /* memory is there */
    (void)sf_packed_shape(&s->down, H, B, s->options.type, s->net->isa);
    sf_pack(&s->across, douts, 0, 0, sf_packed_panels(&s->across));
    sf_pack(&s->down, douts, 1, 0, sf_packed_panels(&s->down));
}

/* Items are inputs of the layer: the gradient of their weights, and their own. */
static void hidden_backward(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    const size_t B = s->batch->count, H = s->layout.shape.hidden, i = s->layer, at = s->layout.hidden_weight[i];
    const sf_view in = {i ? s->dropped : s->features, i ? H : s->layout.inputs, s->options.type};
    const sf_view transposed = {s->workspaces[worker].transposed, B, s->options.type};
    const sf_view dweight = {s->gradient + at, H, SF_F32}, dinputs = {s->dinputs, B, SF_F32};
    const sf_view weight = {(void *)(uintptr_t)(s->weights + at), H, SF_F32};
    sf_transpose(transposed, sf_view_at(in, 0, begin), B, end - begin, s->net->isa);
    sf_product(sf_view_at(dweight, begin, 0), transposed, &s->across, NULL, SF_LINEAR, 0, end - begin);
    sf_product(sf_view_at(dinputs, begin, 0), sf_view_at(weight, begin, 0), &s->down, NULL, SF_LINEAR, 0, end - begin);
}

static void first_douts(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    const size_t B = s->batch->count, H = s->layout.shape.hidden;
    (void)worker;
    sf_transpose((sf_view){s->dhidden + begin * H, H, SF_F32}, (sf_view){s->dinputs + begin, B, SF_F32}, H, end - begin,
                 s->net->isa);
    for (size_t b = begin; b < end; b++) {
        float *dhidden = s->dhidden + b * H;
        sf_dropout_backward(dhidden, dhidden, s->masks[0] + b * H, H);
        sf_relu_backward(dhidden, dhidden, s->relu[0] + b * H, H);
        round_row(s, s->douts, dhidden, b, H);
    }
}

static void add_rows(float *out, const float *rows, size_t count, size_t N, sf_isa isa)
{
    memset(out, 0, N * sizeof *out);
    for (size_t r = 0; r < count; r++) sf_add(out, rows + r * N, N, isa);
}

static void backward_head(sf_charcnn_step *s)
{
    const sf_charcnn_layout *l = &s->layout;
    const size_t B = s->batch->count, H = l->shape.hidden, K = l->shape.classes;
    memset(s->gradient + l->output_weight, 0, (K * H + K) * sizeof *s->gradient);
    sf_linear_backward(NULL, s->gradient + l->output_weight, s->gradient + l->output_bias, s->dlogits, s->last, NULL, B,
                       H, K);
    for (size_t i = 2; i-- > 0;) {
        if (i == 0) sf_parallel(s->threads, B, 8, first_douts, s);
        add_rows(s->gradient + l->hidden_bias[i], s->dhidden, B, H, s->net->isa);
        pack_douts(s);
        s->layer = i;
        sf_parallel(s->threads, i ? H : l->inputs, ROWS, hidden_backward, s);
    }
}

/* ----------------------------------------------------- backward, convolutions */

/* One convolution: the gradient of its weight, and of its input in w->dframes. D is in
 * w->douts; in: (rows, F). */
static void backward_convolution(sf_charcnn_step *s, workspace *w, lane *to, size_t convolution, const void *in,
                                 size_t rows)
{
    const size_t F = s->layout.shape.features, width = sf_charcnn_width(convolution), K = rows - (width - 1);
    const sf_dtype type = s->options.type;
    const sf_view frames = {(void *)(uintptr_t)in, F, type}, transposed = {w->transposed, rows, type},
                  padded = {w->douts, F, type};
    const sf_view douts = sf_view_at(padded, SF_CHARCNN_WIDE - 1, 0);
    float *dweight = to->gradient + s->layout.conv_weight[convolution];
    sf_transpose(transposed, frames, rows, F, s->net->isa);
    (void)sf_packed_shape(&w->packed, K, F, type, s->net->isa); /* memory is there */
    sf_pack(&w->packed, douts, 0, 0, sf_packed_panels(&w->packed));
    for (size_t t = 0; t < width; t++)
        sf_product((sf_view){dweight + t * F * F, F, SF_F32}, sf_view_at(transposed, 0, t), &w->packed, NULL, SF_LINEAR,
                   1, F);
    sf_product((sf_view){w->dframes, F, SF_F32}, sf_view_at(padded, SF_CHARCNN_WIDE - width, 0), &s->back[convolution],
               NULL, SF_LINEAR, 0, rows);
}

/* Takes what reached the blank rows of a stage; in the pass over the blank text, gives all
 * that was taken to its first frame, which is where it was computed. */
static void take_blanks(sf_charcnn_step *s, lane *to, const sf_charcnn_pass *pass, float *dframes, size_t stage,
                        int blank)
{
    const size_t F = s->layout.shape.features;
    for (size_t b = 0; b < pass->count; b++) {
        const sf_charcnn_extent *e = &pass->extents[b];
        const size_t first = stage == SF_CHARCNN_C ? b * s->layout.frames[stage] : e->first[stage];
        const size_t rows = stage == SF_CHARCNN_C ? s->layout.frames[stage] : e->rows[stage];
        for (size_t r = e->used[stage]; r < rows; r++)
            sf_add(to->blank[stage], dframes + (first + r) * F, F, s->net->isa);
    }
    for (size_t i = 0; blank && i < s->used; i++) sf_add(dframes, s->lanes[i].blank[stage], F, s->net->isa);
}

static void unpool(sf_charcnn_step *s, workspace *w, lane *to, const sf_charcnn_pass *pass, const float *dframes,
                   const void *frames, size_t stage, size_t rows)
{
    const size_t F = s->layout.shape.features, before = stage - 1;
    const sf_dtype type = s->options.type;
    const sf_view douts = sf_view_at((sf_view){w->douts, F, type}, SF_CHARCNN_WIDE - 1, 0),
                  out = {(void *)(uintptr_t)frames, F, type};
    float *dbias = to->gradient + s->layout.conv_bias[stage == SF_CHARCNN_C ? SF_CHARCNN_CONVS - 1 : 1];
    memset(w->douts, 0, (rows + SF_CHARCNN_WIDE - 1) * F * sf_element(type));
    for (size_t b = 0; b < pass->count; b++) {
        const sf_charcnn_extent *e = &pass->extents[b];
        const size_t first = stage == SF_CHARCNN_C ? b * s->layout.frames[stage] : e->first[stage];
        sf_frames_pool_backward(sf_view_at(douts, e->first[before], 0), dbias, dframes + first * F,
                                sf_view_at(out, first, 0), pass->which[stage] + first * F, e->used[stage], F,
                                s->net->isa);
    }
}

/* The first convolution, from the gradient of stage A in w->dframes. */
static void backward_first(sf_charcnn_step *s, workspace *w, lane *to, const sf_charcnn_pass *pass,
                           const uint8_t *codes)
{
    const size_t F = s->layout.shape.features, L = s->layout.shape.characters;
    const sf_view frames = {pass->frames[SF_CHARCNN_A], F, s->options.type};
    for (size_t i = 0; i < pass->count; i++) {
        const size_t used = pass->extents[i].used[SF_CHARCNN_A],
                     read = used ? SF_CHARCNN_POOL * used + SF_CHARCNN_WIDE - 1 : 0;
        sf_frames_places(w->places + i * L, w->begin + i * (SF_CHARCNN_CODES + 1), codes + i * L, read,
                         SF_CHARCNN_CODES);
    }
    for (size_t block = 0; block < F / SF_CHARCNN_LANES; block++) /* its table stays in the first-level cache */
        for (size_t i = 0; i < pass->count; i++) {
            const size_t row = pass->extents[i].first[SF_CHARCNN_A];
            sf_frames_of_codes_backward(to->table + block * SF_CHARCNN_CODES * SF_CHARCNN_WIDE * SF_CHARCNN_LANES,
                                        to->gradient + s->layout.conv_bias[0] + block * SF_CHARCNN_LANES, w->spread,
                                        w->dframes + row * F, sf_view_at(frames, row, 0),
                                        pass->which[SF_CHARCNN_A] + row * F, w->places + i * L,
                                        w->begin + i * (SF_CHARCNN_CODES + 1), pass->extents[i].used[SF_CHARCNN_A],
                                        block, SF_CHARCNN_CODES, s->net->isa);
        }
}

/* dfeatures (count, inputs) is used up. */
static void backward_pass(sf_charcnn_step *s, workspace *w, lane *to, const sf_charcnn_pass *pass, float *dfeatures,
                          const void *features, const uint8_t *codes, int blank)
{
    const size_t F = s->layout.shape.features, a = pass->total[SF_CHARCNN_A], b = pass->total[SF_CHARCNN_B];
    const sf_dtype type = s->options.type;
    const sf_view douts = sf_view_at((sf_view){w->douts, F, type}, SF_CHARCNN_WIDE - 1, 0);
    take_blanks(s, to, pass, dfeatures, SF_CHARCNN_C, blank);
    if (!a) return;
    unpool(s, w, to, pass, dfeatures, features, SF_CHARCNN_C, b);
    for (size_t i = SF_CHARCNN_CONVS - 1; i >= 2; i--) {
        const void *in = i > 2 ? pass->between[i - 3] : pass->frames[SF_CHARCNN_B];
        backward_convolution(s, w, to, i, in, b);
        if (i > 2)
            sf_frames_relu_backward(douts, to->gradient + s->layout.conv_bias[i - 1], w->dframes,
                                    (sf_view){pass->between[i - 3], F, type}, b, F, s->net->isa);
    }
    take_blanks(s, to, pass, w->dframes, SF_CHARCNN_B, blank);
    unpool(s, w, to, pass, w->dframes, pass->frames[SF_CHARCNN_B], SF_CHARCNN_B, a);
    backward_convolution(s, w, to, 1, pass->frames[SF_CHARCNN_A], a);
    take_blanks(s, to, pass, w->dframes, SF_CHARCNN_A, blank);
    backward_first(s, w, to, pass, codes);
}

/* Items are lanes. */
static void backward_lanes(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    const sf_charcnn_layout *l = &s->layout;
    const size_t B = s->batch->count, F = l->shape.features;
    workspace *w = &s->workspaces[worker];
    for (size_t i = begin; i < end; i++) {
        lane *to = &s->lanes[i];
        memset(to->gradient, 0, l->convolutions * sizeof *to->gradient);
        memset(to->table, 0, table_size(F) * sizeof *to->table);
        for (size_t k = 0; k < SF_CHARCNN_STAGES; k++) memset(to->blank[k], 0, F * sizeof *to->blank[k]);
        for (size_t first = i * GROUP; first < B; first += s->used * GROUP) {
            sf_transpose((sf_view){w->dfeatures, l->inputs, SF_F32}, (sf_view){s->dinputs + first, B, SF_F32},
                         l->inputs, sf_least(GROUP, B - first), s->net->isa);
            backward_pass(s, w, to, s->passes[first / GROUP], w->dfeatures,
                          (const char *)s->features + first * l->inputs * sf_element(s->options.type),
                          s->batch->codes + first * l->shape.characters, 0);
        }
    }
}

/* Adds the lanes up. Items are numbers of the convolutions' gradient. */
static void reduce(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    (void)worker;
    memcpy(s->gradient + begin, s->lanes[0].gradient + begin, (end - begin) * sizeof *s->gradient);
    for (size_t i = 1; i < s->used; i++)
        sf_add(s->gradient + begin, s->lanes[i].gradient + begin, end - begin, s->net->isa);
}

/* The first weight's, which the lanes hold in blocks of features. */
static void reduce_table(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    const size_t F = s->layout.shape.features, row = SF_CHARCNN_WIDE * SF_CHARCNN_LANES, size = SF_CHARCNN_CODES * row;
    float *gradient = s->gradient + s->layout.conv_weight[0];
    (void)worker;
    for (size_t block = begin; block < end; block++) {
        for (size_t i = 1; i < s->used; i++)
            sf_add(s->lanes[0].table + block * size, s->lanes[i].table + block * size, size, s->net->isa);
        for (size_t i = 0; i < SF_CHARCNN_ALPHABET * SF_CHARCNN_WIDE; i++)
            memcpy(gradient + i * F + block * SF_CHARCNN_LANES,
                   s->lanes[0].table + block * size + row + i * SF_CHARCNN_LANES, SF_CHARCNN_LANES * sizeof *gradient);
    }
}

static void backward_convolutions(sf_charcnn_step *s)
{
    const size_t F = s->layout.shape.features;
    workspace *w = &s->workspaces[0];
    sf_parallel(s->threads, s->used, 1, backward_lanes, s);
    memset(w->dfeatures, 0, s->layout.inputs * sizeof *w->dfeatures);
    backward_pass(s, w, &s->lanes[0], s->net->blank_pass, w->dfeatures, s->net->blank_out, s->net->blank_codes, 1);
    sf_parallel(s->threads, s->layout.convolutions, RANGE, reduce, s);
    sf_parallel(s->threads, F / SF_CHARCNN_LANES, 1, reduce_table, s);
}

/* ----------------------------------------------------------------- the step */

static void sum_squares(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    double lanes[8] = {0}; /* the order of the sum is fixed, and vectorises */
    (void)worker;
    size_t i = begin;
    for (; i + 8 <= end; i += 8)
        for (size_t k = 0; k < 8; k++) lanes[k] += (double)s->gradient[i + k] * (double)s->gradient[i + k];
    for (; i < end; i++) lanes[0] += (double)s->gradient[i] * (double)s->gradient[i];
    s->squares[begin / RANGE] = ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
                                ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

static void scale_gradient(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    (void)worker;
    for (size_t i = begin; i < end; i++) s->gradient[i] *= s->scale;
}

static void clip(sf_charcnn_step *s)
{
    double sum = 0, norm;
    sf_parallel(s->threads, s->layout.trained, RANGE, sum_squares, s);
    for (size_t i = 0; i * RANGE < s->layout.trained; i++) sum += s->squares[i];
    norm = sqrt(sum);
    if (!(norm > s->options.clip)) return;
    s->scale = (float)(s->options.clip / norm);
    sf_parallel(s->threads, s->layout.trained, RANGE, scale_gradient, s);
}

const float *sf_charcnn_step_gradient(double *loss, sf_charcnn_step *s, const float *trained,
                                      const sf_charcnn_batch *batch, uint64_t number)
{
    s->batch = batch;
    s->number = number;
    s->used = sf_least(LANES, (batch->count + GROUP - 1) / GROUP);
    sf_charcnn_scale(s->weights, s->scaling, trained);
    load_weights(s);
    forward(s);
    backward_head(s);
    backward_convolutions(s);
    sf_charcnn_scale_backward(s->gradient, s->scaling, trained);
    if (s->options.clip > 0) clip(s);
    *loss = 0;
    for (size_t b = 0; b < batch->count; b++) *loss += (double)s->losses[b];
    return s->gradient;
}

static void move(void *context, size_t begin, size_t end, int worker)
{
    sf_charcnn_step *s = context;
    (void)worker;
    sf_adam_update(s->moved + begin, s->means + begin, s->variances + begin, s->gradient + begin, &s->adam,
                   end - begin);
}

void sf_charcnn_step_update(sf_charcnn_step *s, float *trained, float *means, float *variances, double rate,
                            uint64_t number)
{
    s->adam = sf_adam_at(rate, s->options.decay, number);
    s->moved = trained;
    s->means = means;
    s->variances = variances;
    sf_parallel(s->threads, s->layout.trained, RANGE, move, s);
}
