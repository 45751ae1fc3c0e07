/* One training step by interval bounds.
 *
 * The box of a word is the same wherever the word stands, so everything up to the windows is
 * computed once for each different word of the batch, and windows are sums of its rows, as
 * in train/cnn_step.c. In order:
 *
 *   words    different words of the batch, synonyms included: vector, then `pre` (Q numbers)
 *   types    different items (words that stay, and words with a set of synonyms; those with
 *            sets come first): the hull, i.e. for every item a value row and for every set a
 *            low and a high row, shrunk to the share eps around the value, after ReLU (Jia)
 *   rows     what the item adds to the windows. The hull itself or, after Jia in a cnn,
 *            the convolution's taps, for intervals as centre and radius: W c and |W| r
 *   texts    windows, ReLU and pooling three times: for values, low and high ends
 *   head     hidden layer, margins, losses, for all texts at once
 *
 * and back again. Rows of all three kinds lie in one table: the values of all types, then the
 * low ends of the sets, then the high ends; an item without synonyms has only its value, and
 * that serves as its ends, too.
 *
 * Nothing depends on the number of threads: texts are independent of each other; words and
 * types are taken in blocks of fixed size, whose shares of a gradient are added in order; a
 * type's occurrences are added in the order of the batch, and a word's shares in the order
 * of the types, each column by one worker. The idea, and the papers: ibp_step.h. */
#include "train/ibp_inside.h"

#include "base/parallel.h"
#include "nn/gemm.h"
#include "nn/isa.h"
#include "nn/layers.h"

#include <math.h>
#include <string.h>

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

/* One block of words. */
static void project_words(void *context, size_t first, size_t last, int worker)
{
    sf_ibp_step *s = context;
    const sf_ibp_layout *l = &s->layout;
    size_t D = l->shape.dim, Q = l->hull;
    (void)worker;
    for (size_t i = first; i < last; i++)
        memcpy(s->vectors + i * D, s->parameters + l->embedding + s->words[i] * D, D * sizeof *s->vectors);
    sf_gemm_dense(SF_GEMM_NT, s->pre + first * Q, s->vectors + first * D, s->parameters + l->first, 0, last - first, Q,
                  D);
    for (size_t i = first; l->shape.wordwise && i < last; i++) add(s->pre + i * Q, s->parameters + l->word_bias, Q);
}

/* The ends of a set, and which word attains them: the first in the set's order. */
SF_WIDE static void find_ends(sf_ibp_step *s, size_t u)
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
    sf_gemm_dense(SF_GEMM_NT, s->rows + first * R, s->hull + first * Q, weight, 0, last - first, R, Q);
    if (first >= sets) return;
    size_t count = sets - first, low = s->U + first, high = s->U + s->S + first;
    to_centre(s->centre + first * Q, s->radius + first * Q, s->hull + low * Q, s->hull + high * Q, count * Q);
    sf_gemm_dense(SF_GEMM_NT, s->rows + low * R, s->centre + first * Q, weight, 0, count, R, Q);
    sf_gemm_dense(SF_GEMM_NT, s->rows + high * R, s->radius + first * Q, s->conv_size, 0, count, R, Q);
    to_ends(s->rows + low * R, s->rows + high * R, s->rows + low * R, s->rows + high * R, count * R);
}

/* One block of types. */
static void make_hulls(void *context, size_t first, size_t last, int worker)
{
    sf_ibp_step *s = context;
    size_t Q = s->layout.hull;
    (void)worker;
    for (size_t u = first; u < last; u++) {
        memcpy(s->hull + u * Q, s->pre + s->own[u] * Q, Q * sizeof *s->hull);
        if (u < s->S) find_ends(s, u);
        if (!s->layout.shape.wordwise) continue;
        sf_relu_forward(s->hull + u * Q, s->hull + u * Q, Q);
        for (size_t row = s->U + u; u < s->S && row < s->U + 2 * s->S; row += s->S)
            sf_relu_forward(s->hull + row * Q, s->hull + row * Q, Q);
    }
    if (sf_ibp_has_taps(s)) convolve_hulls(s, first, last);
}

/* ----------------------------------------------------------------------- texts */

static void read_texts(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    const sf_ibp_layout *l = &s->layout;
    size_t F = l->features;
    (void)worker;
    for (size_t b = begin; b < end; b++)
        for (int run = 0; run < SF_IBP_RUNS; run++) {
            size_t first = s->batch->offsets[b], N = s->batch->offsets[b + 1] - first;
            sf_conv_forward(s->x[run] + first * F, s->rows, s->rows_of[run] + first,
                            l->shape.convolution ? s->parameters + l->conv_bias : NULL, N, l->shape.width, F, l->row,
                            F);
            sf_pool_forward(s->features[run] + b * F, s->arg[run] + b * F, s->x[run] + first * F, l->shape.convolution,
                            l->shape.max_pool, N, F, F);
        }
}

static void return_to_texts(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    size_t F = s->layout.features, B = s->batch->count;
    (void)worker;
    for (size_t b = begin; b < end; b++)
        for (int run = 0; run < SF_IBP_RUNS; run++) {
            size_t first = s->batch->offsets[b], N = s->batch->offsets[b + 1] - first;
            sf_pool_backward(s->x[run] + first * F, s->dbias + ((size_t)run * B + b) * F, s->dfeatures[run] + b * F,
                             s->arg[run] + b * F, s->layout.shape.convolution, s->layout.shape.max_pool, N, F, F);
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
    memcpy(mid[SF_VALUE], s->features[SF_VALUE], B * F * sizeof(float));
    to_centre(mid[SF_LOW], mid[SF_HIGH], s->features[SF_LOW], s->features[SF_HIGH], B * F);
    if (!l->pooled_hidden) {
        absolute(s->hidden_size, weight, H * F);
        for (size_t b = 0; b < B; b++)
            sf_dropout_forward(mid[SF_VALUE] + b * F, s->feature_mask + b * F, mid[SF_VALUE] + b * F,
                               s->options.dropout, s->dropout, s->number, (uint32_t)(2 * b), F);
        sf_dropout_backward(mid[SF_LOW], mid[SF_LOW], s->feature_mask, B * F);
        sf_dropout_backward(mid[SF_HIGH], mid[SF_HIGH], s->feature_mask, B * F);
        sf_gemm_dense(SF_GEMM_NT, s->before[SF_VALUE], mid[SF_VALUE], weight, 0, B, H, F);
        sf_gemm_dense(SF_GEMM_NT, s->before[SF_LOW], mid[SF_LOW], weight, 0, B, H, F);
        sf_gemm_dense(SF_GEMM_NT, s->before[SF_HIGH], mid[SF_HIGH], s->hidden_size, 0, B, H, F);
    }
    for (size_t b = 0; b < B; b++) {
        add(s->before[SF_VALUE] + b * H, bias, H);
        add(s->before[SF_LOW] + b * H, bias, H);
    }
}

/* ReLU and dropout: `before` becomes value, low and high after the ReLU, `after` value,
 * centre and radius behind the dropout. */
static void leave_hidden(sf_ibp_step *s)
{
    size_t B = s->batch->count, H = s->layout.shape.hidden;
    to_ends(s->before[SF_LOW], s->before[SF_HIGH], s->before[SF_LOW], s->before[SF_HIGH], B * H);
    for (int run = 0; run < SF_IBP_RUNS; run++) sf_relu_forward(s->before[run], s->before[run], B * H);
    for (size_t b = 0; b < B; b++)
        sf_dropout_forward(s->after[SF_VALUE] + b * H, s->hidden_mask + b * H, s->before[SF_VALUE] + b * H,
                           s->options.dropout, s->dropout, s->number, (uint32_t)(2 * b + 1), H);
    to_centre(s->after[SF_LOW], s->after[SF_HIGH], s->before[SF_LOW], s->before[SF_HIGH], B * H);
    sf_dropout_backward(s->after[SF_LOW], s->after[SF_LOW], s->hidden_mask, B * H);
    sf_dropout_backward(s->after[SF_HIGH], s->after[SF_HIGH], s->hidden_mask, B * H);
}

/* The share of the loss that text b has by its worst margins. Class k may lead the label y by
 * (w_k - w_y) c + |w_k - w_y| r + b_k - b_y. Adds to dcentre, dradius (H) and the gradient. */
static double lose_worst(sf_ibp_step *s, size_t b, float *dcentre, float *dradius, float *dweight, float *dbias)
{
    const sf_ibp_layout *l = &s->layout;
    size_t H = l->shape.hidden, K = l->shape.classes, y = (size_t)s->batch->labels[b];
    const float *weight = s->parameters + l->output_weight, *bias = s->parameters + l->output_bias,
                *own = weight + y * H;
    const float *centre = s->after[SF_LOW] + b * H, *radius = s->after[SF_HIGH] + b * H;
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
    const float *weight = s->parameters + l->output_weight, *value = s->after[SF_VALUE] + b * H;
    float *logits = s->logits + b * K, *dlogits = s->dlogits + b * K;
    sf_linear_forward(logits, value, weight, s->parameters + l->output_bias, 1, H, K);
    double loss = (double)sf_softmax_loss(dlogits, NULL, logits, s->batch->labels[b], 1, K);
    for (size_t k = 0; k < K; k++)
        dlogits[k] = (1 - s->kappa) / (float)s->batch->count *
                     (dlogits[k] - (k == (size_t)s->batch->labels[b] ? 1.0f : 0.0f));
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
        memset(d, 0, SF_IBP_RUNS * H * sizeof *d);
        loss += (1 - (double)s->kappa) * lose_clean(s, b, d + SF_VALUE * H, dweight, dbias);
        loss += (double)s->kappa * lose_worst(s, b, d + SF_LOW * H, d + SF_HIGH * H, dweight, dbias);
        for (int run = 0; run < SF_IBP_RUNS; run++) memcpy(s->after[run] + b * H, d + (size_t)run * H, H * sizeof *d);
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
    for (int run = 0; run < SF_IBP_RUNS; run++)
        sf_dropout_backward(s->after[run], s->after[run], s->hidden_mask, B * H);
    halves(s->after[SF_LOW], s->after[SF_HIGH], s->after[SF_LOW], s->after[SF_HIGH], B * H);
    for (int run = 0; run < SF_IBP_RUNS; run++) sf_relu_backward(s->after[run], s->after[run], s->before[run], B * H);
    /* Ends are centre -+ radius: the gradients of centre and radius are their sum and difference. */
    float *dvalue = s->after[SF_VALUE], *dcentre = s->after[SF_LOW], *dradius = s->after[SF_HIGH];
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
        memcpy(s->dfeatures[SF_VALUE], dvalue, B * F * sizeof(float));
        halves(s->dfeatures[SF_LOW], s->dfeatures[SF_HIGH], dcentre, dradius, B * F);
        return;
    }
    sf_gemm_dense(SF_GEMM_TN, dweight, dvalue, s->mid[SF_VALUE], 1, H, F, B);
    sf_gemm_dense(SF_GEMM_TN, dweight, dcentre, s->mid[SF_LOW], 1, H, F, B);
    sf_gemm_dense(SF_GEMM_NN, s->dfeatures[SF_VALUE], dvalue, weight, 0, B, F, H);
    sf_gemm_dense(SF_GEMM_NN, s->dfeatures[SF_LOW], dcentre, weight, 0, B, F, H);
    sf_gemm_dense(SF_GEMM_NN, s->dfeatures[SF_HIGH], dradius, s->hidden_size, 0, B, F, H);
    sf_gemm_dense(SF_GEMM_TN, s->hidden_size, dradius, s->mid[SF_HIGH], 0, H, F,
                  B); /* |W| was needed last just above */
    add_signed(dweight, s->hidden_size, weight, H * F);
    for (int run = 0; run < SF_IBP_RUNS; run++)
        sf_dropout_backward(s->dfeatures[run], s->dfeatures[run], s->feature_mask, B * F);
    halves(s->dfeatures[SF_LOW], s->dfeatures[SF_HIGH], s->dfeatures[SF_LOW], s->dfeatures[SF_HIGH], B * F);
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
static void return_through_taps(sf_ibp_step *s, size_t first, size_t last)
{
    const sf_ibp_layout *l = &s->layout;
    size_t Q = l->hull, R = l->row, sets = last < s->S ? last : s->S, block = first / SF_IBP_BLOCK;
    const float *weight = s->parameters + l->conv_weight;
    float *part = s->conv_parts + block * 2 * R * Q, *part_radius = part + R * Q;
    sf_gemm_dense(SF_GEMM_NN, s->dhull + first * Q, s->drows + first * R, weight, 0, last - first, Q, R);
    sf_gemm_dense(SF_GEMM_TN, part, s->drows + first * R, s->hull + first * Q, 0, R, Q, last - first);
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
    sf_gemm_dense(SF_GEMM_NN, to_low, dlow, weight, 0, count, Q, R);
    sf_gemm_dense(SF_GEMM_NN, to_high, dhigh, s->conv_size, 0, count, Q, R);
    sf_gemm_dense(SF_GEMM_TN, part, dlow, s->centre + first * Q, 1, R, Q, count);
    sf_gemm_dense(SF_GEMM_TN, part_radius, dhigh, s->radius + first * Q, 0, R, Q, count);
    halves(to_low, to_high, to_low, to_high, count * Q);
}

/* Through the ReLU and the shrinking of a set's box: dhull becomes the gradient of the value
 * and of the two ends as they were found. */
SF_WIDE static void return_through_hull(sf_ibp_step *s, size_t u)
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

/* One block of types. */
static void return_to_types(void *context, size_t first, size_t last, int worker)
{
    sf_ibp_step *s = context;
    (void)worker;
    for (size_t u = first; u < last; u++) {
        collect_row(s, u, u, SF_VALUE,
                    u < s->S ? SF_VALUE : SF_HIGH); /* without synonyms the value is both ends, too */
        if (u < s->S) {
            collect_row(s, s->U + u, u, SF_LOW, SF_LOW);
            collect_row(s, s->U + s->S + u, u, SF_HIGH, SF_HIGH);
        }
    }
    if (sf_ibp_has_taps(s)) return_through_taps(s, first, last);
    for (size_t u = first; u < last; u++) return_through_hull(s, u);
}

/* Items are columns: each worker takes its own through all types, in their order. */
SF_WIDE static void return_to_words(void *context, size_t begin, size_t end, int worker)
{
    sf_ibp_step *s = context;
    size_t Q = s->layout.hull;
    (void)worker;
    for (size_t w = 0; w < s->W; w++) memset(s->dpre + w * Q + begin, 0, (end - begin) * sizeof *s->dpre);
    for (size_t u = 0; u < s->U; u++) {
        const float *dvalue = s->dhull + u * Q, *dlow = s->dhull + (s->U + u) * Q,
                    *dhigh = s->dhull + (s->U + s->S + u) * Q;
        float *own = s->dpre + s->own[u] * Q;
        for (size_t q = begin; q < end; q++) own[q] += dvalue[q];
        for (size_t q = begin; u < s->S && q < end; q++) {
            s->dpre[s->arg_low[u * Q + q] * Q + q] += dlow[q];
            s->dpre[s->arg_high[u * Q + q] * Q + q] += dhigh[q];
        }
    }
}

/* One block of words. */
static void return_through_first(void *context, size_t first, size_t last, int worker)
{
    sf_ibp_step *s = context;
    const sf_ibp_layout *l = &s->layout;
    size_t D = l->shape.dim, Q = l->hull, block = first / SF_IBP_BLOCK;
    (void)worker;
    float *bias = s->bias_parts + block * Q;
    sf_gemm_dense(SF_GEMM_TN, s->first_parts + block * Q * D, s->dpre + first * Q, s->vectors + first * D, 0, Q, D,
                  last - first);
    if (!s->options.freeze)
        sf_gemm_dense(SF_GEMM_NN, s->dvectors + first * D, s->dpre + first * Q, s->parameters + l->first, 0,
                      last - first, D, Q);
    else if (sf_ibp_moves_vectors(s))
        memset(s->dvectors + first * D, 0, (last - first) * D * sizeof *s->dvectors);
    memset(bias, 0, Q * sizeof *bias);
    for (size_t i = first; i < last; i++) add(bias, s->dpre + i * Q, Q);
}

/* --------------------------------------------------------------------- the step */

/* Adds up what texts and blocks left, in their order. */
static void reduce(sf_ibp_step *s)
{
    const sf_ibp_layout *l = &s->layout;
    size_t D = l->shape.dim, Q = l->hull, R = l->row, F = l->features, B = s->batch->count,
           base = l->shape.vocabulary * D;
    float *gradient = s->gradient;
    for (size_t block = 0; block < sf_ibp_blocks(s->W); block++) {
        add(gradient + l->first - base, s->first_parts + block * Q * D, Q * D);
        if (l->shape.wordwise) add(gradient + l->word_bias - base, s->bias_parts + block * Q, Q);
    }
    for (size_t block = 0; sf_ibp_has_taps(s) && block < sf_ibp_blocks(s->U); block++) {
        add(gradient + l->conv_weight - base, s->conv_parts + block * 2 * R * Q, R * Q);
        add_signed(gradient + l->conv_weight - base, s->conv_parts + (block * 2 + 1) * R * Q,
                   s->parameters + l->conv_weight, R * Q);
    }
    for (size_t i = 0; l->shape.convolution && i < SF_IBP_RUNS * B; i++)
        add(gradient + l->conv_bias - base, s->dbias + i * F, F);
}

safer_status sf_ibp_step_gradient(double *loss, sf_ibp_step *s, const float *parameters, const sf_ibp_batch *batch,
                                  double kappa, double eps, uint64_t number, safer_error *error)
{
    const sf_ibp_layout *l = &s->layout;
    int threads = s->options.threads;
    s->parameters = parameters;
    s->batch = batch;
    s->kappa = (float)kappa;
    s->eps = (float)eps;
    s->number = number;
    sf_ibp_step_number(s);
    safer_status status = sf_ibp_step_room(s, error);
    if (status != SAFER_OK) return status;
    memset(s->gradient, 0, (l->size - l->shape.vocabulary * l->shape.dim) * sizeof *s->gradient);
    if (sf_ibp_has_taps(s)) absolute(s->conv_size, parameters + l->conv_weight, l->row * l->hull);
    sf_parallel(threads, s->W, SF_IBP_BLOCK, project_words, s);
    sf_parallel(threads, s->U, SF_IBP_BLOCK, make_hulls, s);
    sf_parallel(threads, batch->count, 1, read_texts, s);
    enter_hidden(s);
    leave_hidden(s);
    *loss = lose(s, s->gradient);
    return_through_hidden(s, s->gradient);
    sf_parallel(threads, batch->count, 1, return_to_texts, s);
    sf_parallel(threads, s->U, SF_IBP_BLOCK, return_to_types, s);
    sf_parallel(threads, l->hull, SF_IBP_COLUMNS, return_to_words, s);
    sf_parallel(threads, s->W, SF_IBP_BLOCK, return_through_first, s);
    *loss += sf_ibp_triplets(s);
    reduce(s);
    return SAFER_OK;
}

/* What the gradient is multiplied by so that it is no longer than options.clip. */
static float shorten(const sf_ibp_step *s)
{
    size_t D = s->layout.shape.dim, dense = s->layout.size - s->layout.shape.vocabulary * D;
    double square = 0;
    if (!(s->options.clip > 0)) return 1;
    for (size_t i = 0; i < dense; i++) square += (double)s->gradient[i] * (double)s->gradient[i];
    for (size_t i = 0; sf_ibp_moves_vectors(s) && i < s->W * D; i++)
        square += (double)s->dvectors[i] * (double)s->dvectors[i];
    double length = sqrt(square);
    return length > s->options.clip ? (float)(s->options.clip / length) : 1;
}

/* Adam with the decay as part of the gradient, as the published code has it. */
static void move(float *parameter, float *mean, float *variance, float *gradient, float scale, float decay,
                 const sf_adam *adam, size_t N)
{
    for (size_t i = 0; i < N; i++) gradient[i] = scale * gradient[i] + decay * parameter[i];
    sf_adam_update(parameter, mean, variance, gradient, adam, N);
}

void sf_ibp_step_update(sf_ibp_step *s, float *parameters, float *means, float *variances, uint64_t number)
{
    size_t D = s->layout.shape.dim, base = s->layout.shape.vocabulary * D, skip = sf_ibp_moves_vectors(s) ? base : 0;
    const sf_adam adam = sf_adam_at(s->options.rate, 0, number);
    const float scale = shorten(s), decay = (float)s->options.decay;
    for (size_t i = 0; sf_ibp_moves_vectors(s) && i < s->W; i++) {
        size_t at = s->layout.embedding + s->words[i] * D;
        move(parameters + at, means + at, variances + at, s->dvectors + i * D, scale, decay, &adam, D);
    }
    move(parameters + base, means + skip, variances + skip, s->gradient, scale, decay, &adam, s->layout.size - base);
}

void sf_ibp_step_read(float *gradient, const sf_ibp_step *s)
{
    size_t D = s->layout.shape.dim, base = s->layout.shape.vocabulary * D;
    memset(gradient, 0, base * sizeof *gradient);
    for (size_t i = 0; sf_ibp_moves_vectors(s) && i < s->W; i++)
        memcpy(gradient + s->words[i] * D, s->dvectors + i * D, D * sizeof *gradient);
    memcpy(gradient + base, s->gradient, (s->layout.size - base) * sizeof *gradient);
}

const float *sf_ibp_step_logits(const sf_ibp_step *s) { return s->logits; }
const float *sf_ibp_step_worst(const sf_ibp_step *s) { return s->worst; }

double sf_ibp_step_work(const sf_ibp_step *s)
{
    const sf_ibp_layout *l = &s->layout;
    double first = (double)(s->W * l->hull * l->shape.dim),
           taps = sf_ibp_has_taps(s) ? (double)((s->U + 2 * s->S) * l->row * l->hull) : 0;
    double head = l->pooled_hidden ? 0 : (double)(SF_IBP_RUNS * s->batch->count * l->features * l->shape.hidden);
    return 2 * (first * (s->options.freeze ? 2 : 3) + 3 * taps + 3 * head);
}
