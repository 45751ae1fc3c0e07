/* A linear classifier on features that stay as they are. */
#include "train/head.h"

#include "base/memory.h"
#include "nn/layers.h"

#include <math.h>
#include <string.h>

void sf_head_free(sf_head *head)
{
    if (!head) return;
    void *owned[] = {head->parameters, head->centre, head->scale, head->gradient, head->row, head->mask, head->logits};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
    free(head);
}

safer_status sf_head_new(sf_head **out, size_t features, size_t classes, safer_error *error)
{
    sf_head *h = sf_calloc(1, sizeof *h);
    if (!h) return sf_fail_memory(error);
    h->features = features;
    h->classes = classes;
    h->size = classes * features + classes;
    h->parameters = sf_calloc(h->size, sizeof(float));
    h->gradient = sf_calloc(h->size, sizeof(float));
    h->centre = sf_calloc(features, sizeof(float));
    h->scale = sf_calloc(features, sizeof(float));
    h->row = sf_calloc(features, sizeof(float));
    h->mask = sf_calloc(features, sizeof(float));
    h->logits = sf_calloc(classes, sizeof(float));
    if (!h->parameters || !h->gradient || !h->centre || !h->scale || !h->row || !h->mask || !h->logits) {
        sf_head_free(h);
        return sf_fail_memory(error);
    }
    *out = h;
    return SAFER_OK;
}

void sf_head_standardise(sf_head *h, const float *x, size_t count)
{
    for (size_t j = 0; j < h->features; j++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < count; i++) sum += (double)x[i * h->features + j];
        const double mean = count ? sum / (double)count : 0;
        for (size_t i = 0; i < count; i++) {
            const double away = (double)x[i * h->features + j] - mean;
            squares += away * away;
        }
        const double deviation = count ? sqrt(squares / (double)count) : 0;
        h->centre[j] = (float)mean;
        h->scale[j] = deviation > 1e-6 * (1 + fabs(mean)) ? (float)(1 / deviation) : 0;
    }
}

void sf_head_begin(sf_head *h, const float *weight, const float *bias)
{
    for (size_t c = 0; c < h->classes; c++) {
        double sum = (double)bias[c];
        for (size_t j = 0; j < h->features; j++) {
            const float w = weight[c * h->features + j];
            h->parameters[c * h->features + j] = h->scale[j] > 0 ? w / h->scale[j] : 0;
            sum += (double)w * (double)h->centre[j];
        }
        h->parameters[h->classes * h->features + c] = (float)sum;
    }
}

void sf_head_finish(float *weight, float *bias, const sf_head *h)
{
    for (size_t c = 0; c < h->classes; c++) {
        double sum = (double)h->parameters[h->classes * h->features + c];
        for (size_t j = 0; j < h->features; j++) {
            const float w = h->parameters[c * h->features + j] * h->scale[j];
            weight[c * h->features + j] = w;
            sum -= (double)w * (double)h->centre[j];
        }
        bias[c] = (float)sum;
    }
}

/* head->row, then head->logits, of x. */
static void forward(sf_head *h, const float *x, const float *mask)
{
    for (size_t j = 0; j < h->features; j++) h->row[j] = (x[j] - h->centre[j]) * h->scale[j];
    for (size_t j = 0; mask && j < h->features; j++) h->row[j] *= mask[j];
    for (size_t c = 0; c < h->classes; c++) {
        const float *weight = h->parameters + c * h->features;
        float sums[8] = {0}; /* side by side: a fixed order that a processor need not wait for */
        for (size_t j = 0; j < h->features; j++) sums[j % 8] += weight[j] * h->row[j];
        h->logits[c] = h->parameters[h->classes * h->features + c] +
                       (((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])));
    }
}

int sf_head_answer(sf_head *h, const float *x)
{
    int best = 0;
    forward(h, x, NULL);
    for (size_t c = 1; c < h->classes; c++)
        if (h->logits[c] > h->logits[best]) best = (int)c;
    return best;
}

/* The loss of the present logits, which become its gradient. */
static double loss_of(sf_head *h, int label)
{
    double most = (double)h->logits[0], sum = 0;
    for (size_t c = 1; c < h->classes; c++)
        if ((double)h->logits[c] > most) most = (double)h->logits[c];
    for (size_t c = 0; c < h->classes; c++) sum += exp((double)h->logits[c] - most);
    const double loss = log(sum) + most - (double)h->logits[label];
    for (size_t c = 0; c < h->classes; c++)
        h->logits[c] = (float)(exp((double)h->logits[c] - most) / sum - ((int)c == label));
    return loss;
}

static void clip(float *gradient, size_t count, double most)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++) squares += (double)gradient[i] * (double)gradient[i];
    if (most <= 0 || squares <= most * most) return;
    const float factor = (float)(most / sqrt(squares));
    for (size_t i = 0; i < count; i++) gradient[i] *= factor;
}

double sf_head_step(sf_head *h, const float *const *x, const int *labels, size_t count, float *means, float *variances,
                    double rate, uint64_t number, const sf_head_options *options)
{
    const size_t weights = h->classes * h->features;
    const float share = 1.0f / (float)count;
    double loss = 0;
    memset(h->gradient, 0, h->size * sizeof *h->gradient);
    for (size_t i = 0; i < count; i++) {
        if (options->dropout > 0)
            sf_dropout_mask(h->mask, options->dropout, options->stream, number, (uint32_t)i, h->features);
        forward(h, x[i], options->dropout > 0 ? h->mask : NULL);
        loss += loss_of(h, labels[i]);
        for (size_t c = 0; c < h->classes; c++) {
            const float d = h->logits[c] * share;
            float *gradient = h->gradient + c * h->features;
            for (size_t j = 0; j < h->features; j++) gradient[j] += d * h->row[j];
            h->gradient[weights + c] += d;
        }
    }
    clip(h->gradient, h->size, options->clip);
    const sf_adam decays = sf_adam_at(rate, options->decay, number), plain = sf_adam_at(rate, 0, number);
    sf_adam_update(h->parameters, means, variances, h->gradient, &decays, weights);
    sf_adam_update(h->parameters + weights, means + weights, variances + weights, h->gradient + weights, &plain,
                   h->classes);
    return loss;
}
