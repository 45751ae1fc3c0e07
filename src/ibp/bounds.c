/* Bounds of a classifier's margins over all substitutions.
 *
 * What is bounded is the program that answers (model/cnn.c), not an ideal network:
 *
 *   1. A word's row is whole numbers. The box of a position is their minimum and maximum
 *      over the word and its synonyms: exact.
 *   2. The features of a text rise with every number of every row. Sums of whole numbers
 *      are exact; the ReLU, and the one rounded multiplication and division behind them,
 *      rise too. So the features of the lowest rows are the lowest features, to the bit.
 *      This is the interval after the first affine layer with all vertices pushed through
 *      it exactly, tap by tap; it is at least as tight as the interval before it.
 *   3. A hidden unit is bias + x0*w0 + x1*w1 + ..., rounded to float after every operation,
 *      always in this order. Rounding to nearest never reverses an order, so the unit rises
 *      with x where w >= 0 and falls where w < 0: the same loop, fed with the end of each
 *      interval that suits the sign, computes the extreme value of the program itself. Its
 *      error needs no bounding: it is the program's own. ReLU rises.
 *   4. A margin is logit[y] - logit[c], two sums with inputs in common; bounding each alone
 *      would lose much. Here the real number
 *          (b_y - b_c) + sum of the least (w_y - w_c) * h over h in [low, high]
 *      is computed in double, and two errors are taken off: that of the program's logits,
 *      at most gamma(k, 2^-24) * A + k * 2^-123, where A bounds |b| + sum |w h| of both and k
 *      the roundings that a term can meet (gamma(k, u) = k u / (1 - k u), Higham 2002,
 *      lemma 3.1; the last summand is for results that underflow: 2k of them in each logit, even
 *      if the process flushes denormal numbers to 0, as libraries built for speed make it do;
 *      steps 1 to 3 do not mind), and that of this computation, at most gamma(k, 2^-53) * A. Both
 *      are tiny beside margins that matter.
 *
 *   5. Without a hidden layer a mean over words is all there is: the real number of step 4 is
 *      a sum over words, and its least value over all choices is the sum of the least that
 *      every word can give. It is never below what the box says, for two classes with one
 *      number per word it is the same, and apart from the errors it is the worst case itself.
 *
 * No operation here is fused (the build says -ffp-contract=off). */
#include "ibp/network.h"

#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct sf_ibp_network_scratch {
    sf_cnn_scratch *cnn;
    int16_t *boxes;                        /* (positions, 2, row length): low, high; aligned as rows are */
    const int16_t **low_rows, **high_rows; /* (positions) */
    float *low_features, *high_features;   /* (features) */
    float *low_hidden, *high_hidden;       /* (hidden) */
    size_t box_capacity, low_row_capacity, high_row_capacity;
};

void sf_ibp_network_scratch_free(sf_ibp_network_scratch *s)
{
    if (!s) return;
    sf_cnn_scratch_free(s->cnn);
    free(s->boxes);
    free(s->low_rows);
    free(s->high_rows);
    free(s->low_features);
    free(s->high_features);
    free(s->low_hidden);
    free(s->high_hidden);
    free(s);
}

static safer_status scratch_new(sf_ibp_network_scratch **out, const sf_cnn_net *net, safer_error *error)
{
    const sf_cnn_layout *l = sf_cnn_net_layout(net);
    safer_status status = SAFER_OK;
    sf_ibp_network_scratch *s = sf_calloc(1, sizeof *s);
    if (!s) return sf_fail_memory(error);
    SF_TRY(sf_cnn_scratch_new(net, &s->cnn, error));
    s->low_features = sf_alloc(l->features, sizeof *s->low_features);
    s->high_features = sf_alloc(l->features, sizeof *s->high_features);
    s->low_hidden = sf_alloc(l->shape.hidden, sizeof *s->low_hidden);
    s->high_hidden = sf_alloc(l->shape.hidden, sizeof *s->high_hidden);
    if (!s->low_features || !s->high_features || !s->low_hidden || !s->high_hidden) {
        status = sf_fail_memory(error);
        goto done;
    }
    *out = s;
    s = NULL;
done:
    sf_ibp_network_scratch_free(s);
    return status;
}

/* ---------------------------------------------------------------------- rows */

static void widen(int16_t *low, int16_t *high, const int16_t *row, size_t R)
{
    for (size_t r = 0; r < R; r++) {
        low[r] = row[r] < low[r] ? row[r] : low[r];
        high[r] = row[r] > high[r] ? row[r] : high[r];
    }
}

/* Room for the boxes of `count` positions; what was there is lost. */
static int make_boxes(sf_ibp_network_scratch *s, size_t count, size_t R)
{
    size_t need = count * 2 * R;
    if (need <= s->box_capacity) return 0;
    free(s->boxes);
    s->boxes = sf_alloc_aligned(need, sizeof *s->boxes);
    s->box_capacity = s->boxes ? need : 0;
    return s->boxes ? 0 : -1;
}

/* Steps 1 and 2. */
static safer_status bound_features(sf_ibp_network_scratch *s, const sf_cnn_net *net, const sf_ibp_choices *text,
                                   size_t count, safer_error *error)
{
    size_t R = sf_cnn_row_length(net), F = sf_cnn_net_layout(net)->features;
    const float *features;
    if (make_boxes(s, count, R) || sf_grow(&s->low_rows, &s->low_row_capacity, count, sizeof *s->low_rows) ||
        sf_grow(&s->high_rows, &s->high_row_capacity, count, sizeof *s->high_rows))
        return sf_fail_memory(error);
    for (size_t i = 0; i < count; i++) {
        const uint32_t *id = text->ids + text->begin[i], *end = text->ids + text->begin[i + 1];
        s->low_rows[i] = s->high_rows[i] = sf_cnn_row(net, *id, s->cnn);
        if (end - id == 1) continue; /* nothing to copy */
        int16_t *low = s->boxes + i * 2 * R, *high = low + R;
        memcpy(low, s->low_rows[i], R * sizeof *low);
        memcpy(high, s->high_rows[i], R * sizeof *high);
        while (++id < end) widen(low, high, sf_cnn_row(net, *id, s->cnn), R);
        s->low_rows[i] = low;
        s->high_rows[i] = high;
    }
    safer_status status = sf_cnn_features(&features, net, s->low_rows, count, s->cnn, error);
    if (status != SAFER_OK) return status;
    memcpy(s->low_features, features, F * sizeof *features);
    status = sf_cnn_features(&features, net, s->high_rows, count, s->cnn, error);
    if (status == SAFER_OK) memcpy(s->high_features, features, F * sizeof *features);
    return status;
}

/* -------------------------------------------------------------------- layers */

/* Step 3: the ends of one hidden unit. */
static void bound_unit(float *low, float *high, const float *low_inputs, const float *high_inputs, const float *weight,
                       float bias, size_t C)
{
    float least = bias, most = bias;
    for (size_t c = 0; c < C; c++) {
        least += (weight[c] >= 0 ? low_inputs[c] : high_inputs[c]) * weight[c];
        most += (weight[c] >= 0 ? high_inputs[c] : low_inputs[c]) * weight[c];
    }
    int finite = isfinite(least) && isfinite(most); /* then so is everything between them */
    *low = !finite ? NAN : least > 0 ? least : 0;
    *high = !finite ? NAN : most > 0 ? most : 0;
}

double sf_ibp_gamma(double k, double unit) { return k * unit / (1 - k * unit); }

/* Step 5: what all words give class y over class c at least, their mean. */
static double bound_words(const sf_cnn_net *net, sf_ibp_network_scratch *s, const sf_ibp_choices *text, size_t count,
                          const float *own, const float *other)
{
    size_t D = sf_cnn_net_layout(net)->features;
    const double *unit = sf_cnn_units(net);
    double sum = 0, size = 0, k = (double)count + (double)D + 8;
    for (size_t i = 0; i < count; i++) {
        double least = DBL_MAX, largest = 0;
        for (size_t j = text->begin[i]; j < text->begin[i + 1]; j++) {
            const int16_t *row = sf_cnn_row(net, text->ids[j], s->cnn);
            double value = 0, extent = 0;
            for (size_t d = 0; d < D; d++) {
                double term = ((double)own[d] - (double)other[d]) * (unit[d] * row[d]);
                value += term;
                extent += fabs(term);
            }
            least = value < least ? value : least;
            largest = extent > largest ? extent : largest;
        }
        sum += least;
        size += largest;
    }
    return count ? (sum - sf_ibp_gamma(k, 0x1p-53) * size * (1 + 0x1p-30)) / (double)count : 0;
}

int sf_ibp_network_adds(const sf_cnn_net *net)
{
    const sf_cnn_shape *shape = &sf_cnn_net_layout(net)->shape;
    return !shape->hidden && !shape->convolution && !shape->max_pool;
}

/* Steps 4 and 5, word by word: of any text that the choices make, the magnitudes of the program's terms add up to
 * `size` at most, and so its error is bounded as in step 4. */
sf_ibp_lead sf_ibp_network_lead(double *values, const sf_cnn_net *net, const sf_ibp_choices *text, size_t y, size_t c,
                                double factor, sf_ibp_network_scratch *s)
{
    const sf_cnn_layout *l = sf_cnn_net_layout(net);
    const float *parameters = sf_cnn_net_parameters(net), *own = parameters + l->output_weight + y * l->features,
                *other = parameters + l->output_weight + c * l->features;
    const double *unit = sf_cnn_units(net), own_bias = (double)parameters[l->output_bias + y],
                 other_bias = (double)parameters[l->output_bias + c], k = (double)l->features + 12;
    const size_t D = l->features, count = text->count < l->shape.max_words ? text->count : l->shape.max_words;
    double size = 0, underflow = k * 0x1p-123;
    for (size_t i = 0; i < count; i++) {
        double largest = 0;
        for (size_t j = text->begin[i]; j < text->begin[i + 1]; j++) {
            const int16_t *row = sf_cnn_row(net, text->ids[j], s->cnn);
            double value = 0, extent = 0;
            for (size_t d = 0; d < D; d++) {
                const double number = unit[d] * row[d];
                value += ((double)own[d] - (double)other[d]) * number;
                extent += (fabs((double)own[d]) + fabs((double)other[d])) * fabs(number);
            }
            values[j] += factor * value / (double)count;
            largest = extent > largest ? extent : largest;
        }
        size += largest;
    }
    for (size_t d = 0; d < D; d++) underflow += (fabs((double)own[d]) + fabs((double)other[d])) * 0x1p-125;
    if (count) size /= (double)count;
    size = (size + fabs(own_bias) + fabs(other_bias)) * (1 + 0x1p-20); /* which covers the roundings of `size` itself */
    if (!(size < 1e38)) size = DBL_MAX;
    return (sf_ibp_lead){.bias = factor * (own_bias - other_bias),
                         .error = factor * (sf_ibp_gamma(k, 0x1p-24) * size + underflow) * (1 + 0x1p-20),
                         .size = size};
}

/* Step 4: the lead of class y over class c; `words` is a lower bound of what the inputs
 * contribute to it besides, or -DBL_MAX. *extent grows to what neither logit exceeds. */
static double bound_margin(double *extent, const sf_cnn_layout *l, const float *parameters, size_t y, size_t c,
                           const float *low, const float *high, double words)
{
    const float *own = parameters + l->output_weight + y * l->inputs,
                *other = parameters + l->output_weight + c * l->inputs;
    double own_bias = (double)parameters[l->output_bias + y], other_bias = (double)parameters[l->output_bias + c];
    double k = (double)l->inputs + 12, underflow = 0, sum = 0, size = fabs(own_bias) + fabs(other_bias);
    for (size_t i = 0; i < l->inputs; i++) {
        double weight = (double)own[i] - (double)other[i], a = (double)low[i], b = (double)high[i];
        double largest = fabs(a) > fabs(b) ? fabs(a) : fabs(b), weights = fabs((double)own[i]) + fabs((double)other[i]);
        sum += weight * (weight >= 0 ? a : b);
        size += weights * largest;
        underflow += weights * 0x1p-125; /* of a feature, which `words` takes for a real number */
    }
    /* `size` itself was rounded, by less than a part in 2^30: so is the factor in front. */
    double error = (sf_ibp_gamma(k, 0x1p-24) + sf_ibp_gamma(k, 0x1p-53)) * size * (1 + 0x1p-30) + k * 0x1p-123 +
                   underflow;
    double margin = own_bias - other_bias + (words > sum ? words : sum) - error;
    if (!(2 * size <= *extent))
        *extent = size < 1e38 ? 2 * size : DBL_MAX; /* twice: for the logits' own errors, and that of `size` */
    return size < 1e38 ? nextafter(margin, -DBL_MAX) : -DBL_MAX; /* beyond, or NaN: floats may overflow */
}

safer_status sf_ibp_network_margins(double *margins, double *extent, const sf_cnn_net *net, const sf_ibp_choices *text,
                                    size_t target, sf_ibp_network_scratch **scratch, safer_error *error)
{
    safer_status status = SAFER_OK;
    double largest = 0x1p-100; /* what underflows is smaller */
    const sf_cnn_layout *l = sf_cnn_net_layout(net);
    const float *parameters = sf_cnn_net_parameters(net);
    size_t H = l->shape.hidden, P = l->features, count = text->count;
    if (count > l->shape.max_words) count = l->shape.max_words;
    if (!*scratch) SF_TRY(scratch_new(scratch, net, error));
    sf_ibp_network_scratch *s = *scratch;
    SF_TRY(bound_features(s, net, text, count, error));
    for (size_t h = 0; h < H; h++)
        bound_unit(&s->low_hidden[h], &s->high_hidden[h], s->low_features, s->high_features,
                   parameters + l->hidden_weight + h * P, parameters[l->hidden_bias + h], P);
    int linear = sf_ibp_network_adds(net);
    for (size_t c = 0; c < l->shape.classes; c++) {
        const float *weights = parameters + l->output_weight;
        double words = linear && c != target ? bound_words(net, s, text, count, weights + target * P, weights + c * P)
                                             : -DBL_MAX;
        margins[c] = c == target ? 0
                                 : bound_margin(&largest, l, parameters, target, c, H ? s->low_hidden : s->low_features,
                                                H ? s->high_hidden : s->high_features, words);
    }
    if (extent) *extent = largest;
done:
    return status;
}
