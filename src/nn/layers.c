/* Layers for training: forward and backward. */
#include "nn/layers.h"

#include "base/elementary.h"
#include "nn/isa.h"

#include <math.h>
#include <string.h>

/* The inner product, in eight interleaved sums so that it vectorises; always this order. */
static float dot(const float *a, const float *b, size_t N)
{
    float lane[8] = {0};
    size_t i = 0;
    for (; i + 8 <= N; i += 8)
        for (size_t l = 0; l < 8; l++) lane[l] += a[i + l] * b[i + l];
    for (size_t l = 0; i < N; i++, l++) lane[l] += a[i] * b[i];
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

static void add_scaled(float *out, const float *inp, float x, size_t N)
{
    for (size_t i = 0; i < N; i++) out[i] += x * inp[i];
}

static void add(float *out, const float *inp, size_t N)
{
    for (size_t i = 0; i < N; i++) out[i] += inp[i];
}

SF_WIDE void sf_linear_forward(float *out, const float *inp, const float *weight, const float *bias, size_t B, size_t C,
                               size_t OC)
{
    for (size_t b = 0; b < B; b++)
        for (size_t o = 0; o < OC; o++) out[b * OC + o] = bias[o] + dot(inp + b * C, weight + o * C, C);
}

SF_WIDE void sf_linear_backward(float *dinp, float *dweight, float *dbias, const float *dout, const float *inp,
                                const float *weight, size_t B, size_t C, size_t OC)
{
    for (size_t b = 0; b < B; b++) {
        const float *d = dout + b * OC;
        if (dinp) memset(dinp + b * C, 0, C * sizeof *dinp);
        for (size_t o = 0; o < OC; o++) {
            if (dinp) add_scaled(dinp + b * C, weight + o * C, d[o], C);
            if (dweight) add_scaled(dweight + o * C, inp + b * C, d[o], C);
        }
        if (dbias) add(dbias, d, OC);
    }
}

SF_WIDE void sf_relu_forward(float *out, const float *inp, size_t N)
{
    for (size_t i = 0; i < N; i++) out[i] = inp[i] > 0 ? inp[i] : 0;
}

SF_WIDE void sf_relu_backward(float *dinp, const float *dout, const float *out, size_t N)
{
    for (size_t i = 0; i < N; i++) dinp[i] = out[i] > 0 ? dout[i] : 0;
}

void sf_dropout_mask(float *mask, float p, sf_stream stream, uint64_t sample, uint32_t layer, size_t N)
{
    const float keep = 1 / (1 - p);
    const uint32_t limit = (uint32_t)((double)p * 0x1p32); /* p < 1 */
    for (size_t i = 0; i < N; i += 4) {
        uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), layer, (uint32_t)(i / 4)}, block[4];
        sf_philox(block, counter, stream.key);
        for (size_t l = 0; l < 4 && i + l < N; l++) mask[i + l] = block[l] < limit ? 0 : keep;
    }
}

void sf_dropout_forward(float *out, float *mask, const float *inp, float p, sf_stream stream, uint64_t sample,
                        uint32_t layer, size_t N)
{
    sf_dropout_mask(mask, p, stream, sample, layer, N);
    sf_dropout_backward(out, inp, mask, N);
}

SF_WIDE void sf_dropout_backward(float *dinp, const float *dout, const float *mask, size_t N)
{
    for (size_t i = 0; i < N; i++) dinp[i] = dout[i] * mask[i];
}

void sf_softmax_forward(float *probabilities, const float *logits, size_t K)
{
    float top = logits[0], sum = 0;
    for (size_t k = 1; k < K; k++)
        if (logits[k] > top) top = logits[k];
    for (size_t k = 0; k < K; k++) sum += probabilities[k] = (float)sf_exp((double)(logits[k] - top));
    for (size_t k = 0; k < K; k++) probabilities[k] /= sum;
}

float sf_softmax_loss(float *probabilities, float *dlogits, const float *logits, int target, float scale, size_t K)
{
    float top = logits[0], sum = 0;
    for (size_t k = 1; k < K; k++)
        if (logits[k] > top) top = logits[k];
    const float own = logits[target] - top; /* now: the probabilities may take the logits' place */
    for (size_t k = 0; k < K; k++) sum += probabilities[k] = expf(logits[k] - top);
    for (size_t k = 0; k < K; k++) {
        probabilities[k] /= sum;
        if (dlogits) dlogits[k] = scale * (probabilities[k] - (k == (size_t)target ? 1.0f : 0.0f));
    }
    return logf(sum) - own;
}

/* ------------------------------------------------------------- convolution */

void sf_conv_naive_forward(float *out, const float *inp, const float *weight, const float *bias, size_t N, size_t T,
                           size_t F, size_t D)
{
    for (size_t i = 0; i < N; i++)
        for (size_t f = 0; f < F; f++) {
            double sum = (double)bias[f];
            for (size_t t = 0; t < T; t++) {
                size_t j = i + t; /* of the padded text */
                if (j < SF_LEFT(T) || j - SF_LEFT(T) >= N) continue;
                for (size_t d = 0; d < D; d++)
                    sum += (double)inp[(j - SF_LEFT(T)) * D + d] * (double)weight[(t * F + f) * D + d];
            }
            out[i * F + f] = (float)sum;
        }
}

SF_WIDE void sf_conv_forward(float *out, const float *rows, const uint32_t *ids, const float *bias, size_t N, size_t T,
                             size_t F, size_t R, size_t P)
{
    for (size_t i = 0; i < N; i++) {
        float *x = out + i * P;
        if (bias)
            memcpy(x, bias, F * sizeof *x);
        else
            memset(x, 0, F * sizeof *x);
        for (size_t t = 0; t < T; t++) {
            size_t j = i + t;
            if (j >= SF_LEFT(T) && j - SF_LEFT(T) < N) add(x, rows + ids[j - SF_LEFT(T)] * R + t * F, F);
        }
    }
}

SF_WIDE void sf_conv_backward_word(float *drow, const float *dout, size_t j, size_t N, size_t T, size_t F, size_t P)
{
    for (size_t t = 0; t < T; t++) { /* window i reads word i + t - left */
        size_t i = j + SF_LEFT(T);
        if (i >= t && i - t < N) add(drow + t * F, dout + (i - t) * P, F);
    }
}

/* ----------------------------------------------------------------- pooling */

SF_WIDE void sf_pool_forward(float *out, uint32_t *arg, float *x, int relu, int max, size_t N, size_t F, size_t P)
{
    memset(out, 0, F * sizeof *out);
    if (max) memset(arg, 0, F * sizeof *arg);
    for (size_t i = 0; i < N; i++) {
        float *row = x + i * P;
        if (relu) sf_relu_forward(row, row, F);
        if (max && i == 0) {
            memcpy(out, row, F * sizeof *out);
        } else if (max) {
            for (size_t f = 0; f < F; f++)
                if (row[f] > out[f]) {
                    out[f] = row[f];
                    arg[f] = (uint32_t)i;
                }
        } else {
            add(out, row, F);
        }
    }
    if (!max && N)
        for (size_t f = 0; f < F; f++) out[f] /= (float)N;
}

SF_WIDE void sf_pool_backward(float *x, float *dbias, const float *dout, const uint32_t *arg, int relu, int max,
                              size_t N, size_t F, size_t P)
{
    const float share = max || !N ? 1 : 1 / (float)N;
    if (dbias) memset(dbias, 0, F * sizeof *dbias);
    for (size_t i = 0; i < N; i++) {
        float *row = x + i * P;
        if (max)
            for (size_t f = 0; f < F; f++) row[f] = arg[f] == i && (!relu || row[f] > 0) ? dout[f] : 0;
        else if (relu)
            for (size_t f = 0; f < F; f++) row[f] = row[f] > 0 ? share * dout[f] : 0;
        else
            for (size_t f = 0; f < F; f++) row[f] = share * dout[f];
        if (dbias) add(dbias, row, F);
    }
}

/* -------------------------------------------------------------------- Adam */

sf_adam sf_adam_at(double rate, double decay, uint64_t step)
{
    const double beta1 = 0.9, beta2 = 0.999;
    return (sf_adam){.rate = (float)rate,
                     .beta1 = (float)beta1,
                     .beta2 = (float)beta2,
                     .epsilon = 1e-8f,
                     .decay = (float)(rate * decay),
                     .correct1 = (float)(1 - pow(beta1, (double)step)),
                     .correct2 = (float)(1 - pow(beta2, (double)step))};
}

SF_WIDE void sf_adam_update(float *parameter, float *mean, float *variance, const float *gradient, const sf_adam *a,
                            size_t N)
{
    for (size_t i = 0; i < N; i++) {
        float g = gradient[i];
        mean[i] = a->beta1 * mean[i] + (1 - a->beta1) * g;
        variance[i] = a->beta2 * variance[i] + (1 - a->beta2) * g * g;
        float step = (mean[i] / a->correct1) / (sqrtf(variance[i] / a->correct2) + a->epsilon);
        parameter[i] -= a->rate * step + a->decay * parameter[i];
    }
}
