/* The plugin without a device: convolutional networks, by plain loops in double precision. mock_plugin.c says what it
 * is; what is computed is in model/charcnn_layout.h, and how weights are standardised in train/charcnn_scale.h. */
#include "mock.h"

#include <math.h>
#include <string.h>

enum { CONVS = SF_CONVNET_CONVS, MATRICES = SF_CONVNET_MATRICES };

static size_t width_of(size_t convolution) { return convolution < 2 ? 7 : 3; }
static int is_pooled(size_t convolution) { return convolution < 2 || convolution == CONVS - 1; }

/* ---------------------------------------------------------------------- one text */

/* What a text leaves behind at a convolution: frames after ReLU, and those that are kept of them. */
typedef struct stage {
    size_t rows, kept_rows;
    double *raw, *kept;
} stage;

typedef struct text {
    const uint8_t *codes;
    stage stages[CONVS];
    double *hidden[2], *dropped[2]; /* after ReLU, and after dropout */
    double *logits;
} text;

static text text_new(const sf_convnet *n, const uint8_t *codes)
{
    text t = {.codes = codes, .logits = room(n->classes, sizeof(double))};
    size_t rows = n->characters;
    for (size_t i = 0; i < CONVS; i++) {
        stage *s = &t.stages[i];
        s->rows = rows - (width_of(i) - 1);
        s->kept_rows = rows = is_pooled(i) ? s->rows / 3 : s->rows;
        s->raw = room(s->rows * n->features, sizeof(double));
        s->kept = room(s->kept_rows * n->features, sizeof(double));
    }
    for (size_t i = 0; i < 2; i++) {
        t.hidden[i] = room(n->hidden, sizeof(double));
        t.dropped[i] = room(n->hidden, sizeof(double));
    }
    return t;
}

static void text_free(text *t)
{
    for (size_t i = 0; i < CONVS; i++) {
        free(t->stages[i].raw);
        free(t->stages[i].kept);
    }
    for (size_t i = 0; i < 2; i++) {
        free(t->hidden[i]);
        free(t->dropped[i]);
    }
    free(t->logits);
}

static void convolve(stage *s, const stage *before, const sf_convnet *n, const double *w, size_t i,
                     const uint8_t *codes)
{
    const size_t F = n->features, width = width_of(i);
    for (size_t r = 0; r < s->rows; r++) {
        double *out = s->raw + r * F;
        for (size_t f = 0; f < F; f++) out[f] = w[n->conv_bias[i] + f];
        for (size_t k = 0; k < width; k++)
            for (size_t c = 0; c < (i ? F : 1); c++) {
                if (!i && !codes[r + k]) continue;
                const double x = i ? before->kept[(r + k) * F + c] : 1;
                const double *row = w + n->conv_weight[i] + (i ? k * F + c : (codes[r + k] - 1u) * width + k) * F;
                for (size_t f = 0; f < F; f++) out[f] += x * row[f];
            }
        for (size_t f = 0; f < F; f++) out[f] = fmax(out[f], 0);
    }
    for (size_t r = 0; r < s->kept_rows; r++)
        for (size_t f = 0; f < F; f++) {
            const double *from = s->raw + (is_pooled(i) ? 3 * r : r) * F + f;
            s->kept[r * F + f] = is_pooled(i) ? fmax(fmax(from[0], from[F]), from[2 * F]) : from[0];
        }
}

/* masks (2, apart): of this text; NULL: none. w: (size) */
static void forward(text *t, const sf_convnet *n, const double *w, const float *masks, size_t apart)
{
    const size_t H = n->hidden, inputs = n->frames[2] * n->features;
    for (size_t i = 0; i < CONVS; i++) convolve(&t->stages[i], i ? &t->stages[i - 1] : NULL, n, w, i, t->codes);
    for (size_t k = 0; k < 2; k++) {
        const double *in = k ? t->dropped[0] : t->stages[CONVS - 1].kept;
        for (size_t h = 0; h < H; h++) {
            double sum = w[n->dense_bias[k] + h];
            for (size_t i = 0; i < (k ? H : inputs); i++) sum += in[i] * w[n->dense_weight[k] + i * H + h];
            t->hidden[k][h] = fmax(sum, 0);
            t->dropped[k][h] = t->hidden[k][h] * (masks ? (double)masks[k * apart + h] : 1);
        }
    }
    for (size_t c = 0; c < n->classes; c++) {
        t->logits[c] = w[n->output_bias + c];
        for (size_t h = 0; h < H; h++) t->logits[c] += t->dropped[1][h] * w[n->output_weight + c * H + h];
    }
}

/* d (kept_rows, F) becomes that of the frames before; all but the first: added to `below` (rows of it, F). */
static void convolve_back(double *below, const double *d, const stage *s, const stage *before, const sf_convnet *n,
                          const double *w, double *g, size_t i, const uint8_t *codes)
{
    const size_t F = n->features, width = width_of(i);
    for (size_t r = 0; r < s->kept_rows; r++)
        for (size_t f = 0; f < F; f++) {
            size_t row = r;
            const double *from = s->raw + 3 * r * F + f, slope = d[r * F + f];
            if (s->kept[r * F + f] <= 0) continue;
            if (is_pooled(i)) row = 3 * r + (from[2 * F] > fmax(from[0], from[F]) ? 2 : from[F] > from[0]);
            g[n->conv_bias[i] + f] += slope;
            for (size_t k = 0; k < width; k++)
                for (size_t c = 0; c < (i ? F : 1); c++) {
                    if (!i && !codes[row + k]) continue;
                    const size_t at = n->conv_weight[i] + (i ? k * F + c : (codes[row + k] - 1u) * width + k) * F + f;
                    g[at] += slope * (i ? before->kept[(row + k) * F + c] : 1);
                    if (i) below[(row + k) * F + c] += slope * w[at];
                }
        }
}

/* Adds to g (size): the gradient of all parameters by dlogits. */
static void backward(text *t, const double *dlogits, const sf_convnet *n, const double *w, double *g,
                     const float *masks, size_t apart)
{
    const size_t H = n->hidden, F = n->features, inputs = n->frames[2] * F;
    double *above = room(H, sizeof *above), *below;
    for (size_t c = 0; c < n->classes; c++) {
        g[n->output_bias + c] += dlogits[c];
        for (size_t h = 0; h < H; h++) {
            g[n->output_weight + c * H + h] += dlogits[c] * t->dropped[1][h];
            above[h] += dlogits[c] * w[n->output_weight + c * H + h];
        }
    }
    for (size_t k = 2; k-- > 0; free(above), above = below) {
        const double *in = k ? t->dropped[0] : t->stages[CONVS - 1].kept;
        below = room(k ? H : inputs, sizeof *below);
        for (size_t h = 0; h < H; h++) {
            const double d = t->hidden[k][h] > 0 ? above[h] * (masks ? (double)masks[k * apart + h] : 1) : 0;
            g[n->dense_bias[k] + h] += d;
            for (size_t i = 0; i < (k ? H : inputs); i++) {
                g[n->dense_weight[k] + i * H + h] += d * in[i];
                below[i] += d * w[n->dense_weight[k] + i * H + h];
            }
        }
    }
    for (size_t i = CONVS; i-- > 0; free(above), above = below) {
        const stage *before = i ? &t->stages[i - 1] : NULL;
        below = room(before ? before->kept_rows * F : 1, sizeof *below);
        convolve_back(below, above, &t->stages[i], before, n, w, g, i, t->codes);
    }
    free(above);
}

static void classify(float *logits, const sf_convnet *n, const double *w, const uint8_t *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text t = text_new(n, codes + i * n->characters);
        forward(&t, n, w, NULL, 0);
        for (size_t c = 0; c < n->classes; c++) logits[i * n->classes + c] = (float)t.logits[c];
        text_free(&t);
    }
}

/* ------------------------------------------------------------------------ answers */

struct sf_device_convnet {
    sf_convnet shape;
    double *weights;
    int device;
    size_t texts;
    long calls;
};

static safer_status check_shape(const sf_convnet *n, safer_error *error)
{
    const long hidden = order("MOCK_HIDDEN", 0);
    return !hidden || n->hidden == (size_t)hidden
               ? SAFER_OK
               : fail(error, SAFER_INPUT, "the mock takes dense layers of another size");
}

safer_status mock_convnet_new(sf_device_convnet **out, int device, const sf_convnet *shape, const float *parameters,
                              int slots, size_t *texts, safer_error *error)
{
    const size_t fit = (size_t)order("MOCK_TEXTS", 1 << 10);
    (void)slots;
    if (check_shape(shape, error) != SAFER_OK) return SAFER_INPUT;
    if (!fit) return fail(error, SAFER_MEMORY, "out of memory");
    if (*texts > fit) *texts = fit;
    sf_device_convnet *net = room(1, sizeof *net);
    net->shape = *shape;
    net->device = device;
    mock_trace(device);
    net->texts = *texts;
    net->weights = room(shape->size, sizeof *net->weights);
    for (size_t i = 0; i < shape->size; i++) net->weights[i] = (double)parameters[i];
    *out = net;
    return SAFER_OK;
}

void mock_convnet_free(sf_device_convnet *net)
{
    free(net->weights);
    free(net);
}

safer_status mock_convnet_answer(float *logits, sf_device_convnet *net, int slot, const uint8_t *codes, size_t count,
                                 safer_error *error)
{
    (void)slot;
    if (mock_call(&net->calls, "computing answers", error) != SAFER_OK) return SAFER_SYSTEM;
    if (count > net->texts) return fail(error, SAFER_SYSTEM, "the mock was given too many texts");
    classify(logits, &net->shape, net->weights, codes, count);
    mock_count(net->device, count);
    return SAFER_OK;
}

/* ----------------------------------------------------------------------- training */

struct sf_device_convnet_step {
    sf_convnet shape;
    sf_device_convnet_training training; /* its pointers are not used */
    float *trained, *means, *variances;
    double *weights, *gradient;
    long calls;
};

typedef struct matrix {
    size_t offset, inputs, outputs, gains;
    double share;
} matrix;

static matrix matrix_at(const sf_device_convnet_step *s, size_t i)
{
    const sf_convnet *n = &s->shape;
    const size_t F = n->features, k = i - (CONVS - 1);
    if (i < CONVS - 1)
        return (matrix){n->conv_weight[i + 1], width_of(i + 1) * F, F, n->gains[i], s->training.shares[i]};
    return (matrix){n->dense_weight[k], k ? n->hidden : n->frames[2] * F, n->hidden, n->gains[i],
                    s->training.shares[i]};
}

/* Mean and spread of an output's V. */
static void moments(double *mean, double *spread, const matrix *m, const float *trained, size_t o)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < m->inputs; i++) sum += (double)trained[m->offset + i * m->outputs + o];
    *mean = sum / (double)m->inputs;
    for (size_t i = 0; i < m->inputs; i++) squares += pow((double)trained[m->offset + i * m->outputs + o] - *mean, 2);
    *spread = sqrt(fmax(squares / (double)m->inputs, 1e-12));
}

static void standardise(sf_device_convnet_step *s)
{
    for (size_t i = 0; i < s->shape.size; i++) s->weights[i] = (double)s->trained[i];
    for (size_t k = 0; k < MATRICES; k++) {
        const matrix m = matrix_at(s, k);
        for (size_t o = 0; o < m.outputs; o++) {
            double mean, spread;
            moments(&mean, &spread, &m, s->trained, o);
            const double scale = (double)s->trained[m.gains + o] * sqrt(m.share) / spread;
            for (size_t i = 0; i < m.inputs; i++) {
                double *w = &s->weights[m.offset + i * m.outputs + o];
                *w = (*w - mean) * scale;
            }
        }
    }
}

static void standardise_back(sf_device_convnet_step *s)
{
    for (size_t k = 0; k < MATRICES; k++) {
        const matrix m = matrix_at(s, k);
        for (size_t o = 0; o < m.outputs; o++) {
            double mean, spread, plain = 0, along = 0;
            moments(&mean, &spread, &m, s->trained, o);
            for (size_t i = 0; i < m.inputs; i++) {
                const size_t at = m.offset + i * m.outputs + o;
                plain += s->gradient[at] / (double)m.inputs;
                along += s->gradient[at] * ((double)s->trained[at] - mean) / spread / (double)m.inputs;
            }
            const double scale = (double)s->trained[m.gains + o] * sqrt(m.share) / spread;
            s->gradient[m.gains + o] = sqrt(m.share) * along * (double)m.inputs;
            for (size_t i = 0; i < m.inputs; i++) {
                const size_t at = m.offset + i * m.outputs + o;
                s->gradient[at] = scale * (s->gradient[at] - plain - ((double)s->trained[at] - mean) / spread * along);
            }
        }
    }
}

safer_status mock_convnet_step_new(sf_device_convnet_step **out, int device, const sf_device_convnet_training *t,
                                   safer_error *error)
{
    const size_t trained = t->net->trained;
    (void)device;
    if (check_shape(t->net, error) != SAFER_OK) return SAFER_INPUT;
    if (t->texts > (size_t)order("MOCK_TEXTS", 1 << 10)) return fail(error, SAFER_MEMORY, "out of memory");
    sf_device_convnet_step *s = room(1, sizeof *s);
    s->shape = *t->net;
    s->training = *t;
    s->trained = room(trained, sizeof *s->trained);
    s->means = room(trained, sizeof *s->means);
    s->variances = room(trained, sizeof *s->variances);
    s->gradient = room(trained, sizeof *s->gradient);
    s->weights = room(t->net->size, sizeof *s->weights);
    memcpy(s->trained, t->trained, trained * sizeof *s->trained);
    *out = s;
    return SAFER_OK;
}

void mock_convnet_step_free(sf_device_convnet_step *s)
{
    free(s->trained);
    free(s->means);
    free(s->variances);
    free(s->gradient);
    free(s->weights);
    free(s);
}

safer_status mock_convnet_step_write(sf_device_convnet_step *s, const float *trained, const float *means,
                                     const float *variances, safer_error *error)
{
    const size_t bytes = s->shape.trained * sizeof *trained;
    (void)error;
    memcpy(s->trained, trained, bytes);
    memcpy(s->means, means, bytes);
    memcpy(s->variances, variances, bytes);
    return SAFER_OK;
}

safer_status mock_convnet_step_read(float *trained, float *means, float *variances, sf_device_convnet_step *s,
                                    safer_error *error)
{
    const size_t bytes = s->shape.trained * sizeof *trained;
    (void)error;
    memcpy(trained, s->trained, bytes);
    memcpy(means, s->means, bytes);
    memcpy(variances, s->variances, bytes);
    return SAFER_OK;
}

/* The loss of one text; logits become their gradient. */
static double loss_of(double *logits, size_t label, size_t C, double smoothing, size_t count)
{
    double sum = 0, loss = 0;
    for (size_t c = 0; c < C; c++) sum += exp(logits[c]);
    for (size_t c = 0; c < C; c++) {
        const double wanted = smoothing / (double)C + (c == label ? 1 - smoothing : 0), p = exp(logits[c]) / sum;
        loss -= wanted * log(p);
        logits[c] = (p - wanted) / (double)count;
    }
    return loss;
}

safer_status mock_convnet_step_gradient(double *loss, float *gradient, sf_device_convnet_step *s, const uint8_t *codes,
                                        size_t count, const int *labels, const float *masks, safer_error *error)
{
    const sf_convnet *n = &s->shape;
    if (mock_call(&s->calls, "training", error) != SAFER_OK) return SAFER_SYSTEM;
    if (count > s->training.texts) return fail(error, SAFER_SYSTEM, "the mock was given too many texts");
    *loss = 0;
    memset(s->gradient, 0, n->trained * sizeof *s->gradient);
    standardise(s);
    for (size_t i = 0; i < count; i++) {
        text t = text_new(n, codes + i * n->characters);
        const float *own = masks ? masks + i * n->hidden : NULL;
        forward(&t, n, s->weights, own, count * n->hidden);
        *loss += loss_of(t.logits, (size_t)labels[i], n->classes, (double)s->training.smoothing, count);
        backward(&t, t.logits, n, s->weights, s->gradient, own, count * n->hidden);
        text_free(&t);
    }
    standardise_back(s);
    for (size_t i = 0; gradient && i < n->trained; i++) gradient[i] = (float)s->gradient[i];
    return SAFER_OK;
}

safer_status mock_convnet_step_update(sf_device_convnet_step *s, const sf_device_adam *adam, safer_error *error)
{
    const mock_state state = {s->trained, s->means, s->variances, s->gradient, NULL};
    (void)error;
    mock_update(state, 0, s->shape.trained, s->training.clip, adam);
    return SAFER_OK;
}

safer_status mock_convnet_step_answer(float *logits, sf_device_convnet_step *s, const uint8_t *codes, size_t count,
                                      safer_error *error)
{
    if (count > s->training.texts) return fail(error, SAFER_SYSTEM, "the mock was given too many texts");
    standardise(s);
    classify(logits, &s->shape, s->weights, codes, count);
    return SAFER_OK;
}
