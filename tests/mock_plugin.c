/* A plugin without a device: what src/cuda does, on the CPU by plain loops in double precision, so that all that stands
 * in front of a plugin is tested where there is no GPU. It takes its orders from the environment:
 *
 *   MOCK_DEVICES=N  so many devices; 0: there is no driver
 *   MOCK_OLD=N      device N is too old
 *   MOCK_ROWS=N     pieces that memory has room for
 *   MOCK_TEXTS=N    texts that it has room for, of charcnn
 *   MOCK_HEAD=N     heads must have N numbers
 *   MOCK_HIDDEN=N   dense layers must, of charcnn
 *   MOCK_SLOW=N     answers take N microseconds more
 *   MOCK_TRACE=FILE  gets a line with the number of each device that gets a net
 *   MOCK_FAIL=N     the N-th answer or gradient of every net or step fails, and all after it
 *
 * Of encoders it knows those of the form of BERT, and refuses others.
 *
 * Built again with MOCK_VERSION, MOCK_SIZE or MOCK_NAME, it is one that must be refused. Here are the table and
 * encoders; convolutional networks are in mock_convnet.c. */
#define _GNU_SOURCE
#include "mock.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#ifndef MOCK_VERSION
#define MOCK_VERSION SAFER_VERSION
#endif
#ifndef MOCK_SIZE
#define MOCK_SIZE sizeof(sf_device_table)
#endif
#ifndef MOCK_NAME
#define MOCK_NAME sf_device_plugin
#endif

/* ------------------------------------------------------------------------ parts */

/* out (N, O) = in (N, I) * weight (O, I) + bias */
static void linear(double *out, const double *in, sf_encoder_pair p, size_t N, size_t O, size_t I)
{
    for (size_t n = 0; n < N; n++)
        for (size_t o = 0; o < O; o++) {
            double sum = (double)p.bias[o];
            for (size_t i = 0; i < I; i++) sum += in[n * I + i] * (double)p.weight[o * I + i];
            out[n * O + o] = sum;
        }
}

/* Where the gradient of a parameter is: as far from the first as the parameter. */
typedef struct slopes {
    double *gradient;
    const float *parameters;
} slopes;

static double *slope(slopes s, const float *parameter) { return s.gradient + (parameter - s.parameters); }

/* Adds to din and to the gradients of weight and bias. */
static void linear_back(double *din, slopes s, const double *dout, const double *in, sf_encoder_pair p, size_t N,
                        size_t O, size_t I)
{
    for (size_t n = 0; n < N; n++)
        for (size_t o = 0; o < O; o++) {
            const double d = dout[n * O + o];
            slope(s, p.bias)[o] += d;
            for (size_t i = 0; i < I; i++) {
                slope(s, p.weight)[o * I + i] += d * in[n * I + i];
                din[n * I + i] += d * (double)p.weight[o * I + i];
            }
        }
}

static void moments(double *mean, double *scale, const double *x, size_t H, double epsilon)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < H; i++) sum += x[i];
    *mean = sum / (double)H;
    for (size_t i = 0; i < H; i++) squares += (x[i] - *mean) * (x[i] - *mean);
    *scale = 1 / sqrt(squares / (double)H + epsilon);
}

static void norm(double *out, const double *in, sf_encoder_pair p, size_t N, size_t H, double epsilon)
{
    for (size_t n = 0; n < N; n++) {
        double mean, scale;
        moments(&mean, &scale, in + n * H, H, epsilon);
        for (size_t i = 0; i < H; i++)
            out[n * H + i] = (in[n * H + i] - mean) * scale * (double)p.weight[i] + (double)p.bias[i];
    }
}

static void norm_back(double *din, slopes s, const double *dout, const double *in, sf_encoder_pair p, size_t N,
                      size_t H, double epsilon)
{
    for (size_t n = 0; n < N; n++) {
        const double *x = in + n * H, *d = dout + n * H;
        double mean, scale, sum = 0, along = 0;
        moments(&mean, &scale, x, H, epsilon);
        for (size_t i = 0; i < H; i++) {
            const double unit = (x[i] - mean) * scale, dunit = d[i] * (double)p.weight[i];
            slope(s, p.weight)[i] += d[i] * unit;
            slope(s, p.bias)[i] += d[i];
            sum += dunit;
            along += dunit * unit;
        }
        for (size_t i = 0; i < H; i++)
            din[n * H + i] += scale * (d[i] * (double)p.weight[i] - sum / (double)H -
                                       (x[i] - mean) * scale * along / (double)H);
    }
}

static double activate(double x, sf_encoder_activation activation)
{
    switch (activation) {
    case SF_ENCODER_RELU: return x > 0 ? x : 0;
    case SF_ENCODER_TANH: return tanh(x);
    case SF_ENCODER_GELU_TANH: return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case SF_ENCODER_SILU: return x / (1 + exp(-x));
    case SF_ENCODER_GELU: break;
    }
    return 0.5 * x * (1 + erf(x * 0.7071067811865476));
}

/* By differences: exact enough, and not the formula that it is compared with. */
static double activate_slope(double x, sf_encoder_activation activation)
{
    const double h = 1e-5;
    return activation == SF_ENCODER_RELU ? x > 0
                                         : (activate(x + h, activation) - activate(x - h, activation)) / (2 * h);
}

/* --------------------------------------------------------------------- one text */

/* What a layer leaves behind. */
typedef struct layer_rows {
    double *input, *qkv, *shares, *context, *sum1, *middle, *raw, *inner, *sum2;
} layer_rows;

typedef struct text {
    const uint32_t *ids;
    size_t T;
    double *embedded, *last, *pooled, *raw, *features; /* of the end: (hidden) */
    layer_rows *layers;
} text;

static void attend(layer_rows *r, const sf_encoder *e, size_t T)
{
    const size_t H = e->hidden, D = H / e->heads;
    for (size_t h = 0; h < e->heads; h++)
        for (size_t i = 0; i < T; i++) {
            double *share = r->shares + (h * T + i) * T, sum = 0;
            for (size_t j = 0; j < T; j++) {
                double score = 0;
                for (size_t k = h * D; k < (h + 1) * D; k++) score += r->qkv[i * 3 * H + k] * r->qkv[j * 3 * H + H + k];
                sum += share[j] = exp(score / sqrt((double)D));
            }
            for (size_t j = 0; j < T; j++) share[j] /= sum;
            for (size_t k = h * D; k < (h + 1) * D; k++)
                for (size_t j = 0; j < T; j++) r->context[i * H + k] += share[j] * r->qkv[j * 3 * H + 2 * H + k];
        }
}

static void attend_back(double *dqkv, const double *dcontext, const layer_rows *r, const sf_encoder *e, size_t T)
{
    const size_t H = e->hidden, D = H / e->heads;
    double *dshare = room(T, sizeof *dshare);
    for (size_t h = 0; h < e->heads; h++)
        for (size_t i = 0; i < T; i++) {
            const double *share = r->shares + (h * T + i) * T;
            double along = 0;
            for (size_t j = 0; j < T; j++) {
                dshare[j] = 0;
                for (size_t k = h * D; k < (h + 1) * D; k++) {
                    dshare[j] += dcontext[i * H + k] * r->qkv[j * 3 * H + 2 * H + k];
                    dqkv[j * 3 * H + 2 * H + k] += share[j] * dcontext[i * H + k];
                }
                along += dshare[j] * share[j];
            }
            for (size_t j = 0; j < T; j++) {
                const double dscore = share[j] * (dshare[j] - along) / sqrt((double)D);
                for (size_t k = h * D; k < (h + 1) * D; k++) {
                    dqkv[i * 3 * H + k] += dscore * r->qkv[j * 3 * H + H + k];
                    dqkv[j * 3 * H + H + k] += dscore * r->qkv[i * 3 * H + k];
                }
            }
        }
    free(dshare);
}

static void add(double *out, const double *in, size_t count)
{
    for (size_t i = 0; i < count; i++) out[i] += in[i];
}

static void run_layer(double *out, layer_rows *r, const sf_encoder *e, const sf_encoder_layer *l, size_t T)
{
    const size_t H = e->hidden, F = e->inner;
    const double epsilon = (double)e->epsilon;
    linear(r->qkv, r->input, l->qkv, T, 3 * H, H);
    attend(r, e, T);
    linear(r->sum1, r->context, l->attention, T, H, H);
    add(r->sum1, r->input, T * H);
    norm(r->middle, r->sum1, l->norm1, T, H, epsilon);
    linear(r->raw, r->middle, l->inner, T, F, H);
    for (size_t i = 0; i < T * F; i++) r->inner[i] = activate(r->raw[i], e->activation);
    linear(r->sum2, r->inner, l->outer, T, H, F);
    add(r->sum2, r->middle, T * H);
    norm(out, r->sum2, l->norm2, T, H, epsilon);
}

/* d (T, H): of the layer's output, then of its input. */
static void layer_back(double *d, const layer_rows *r, const sf_encoder *e, const sf_encoder_layer *l, size_t T,
                       slopes s)
{
    const size_t H = e->hidden, F = e->inner;
    const double epsilon = (double)e->epsilon;
    double *dsum = room(T * H, sizeof *d), *dmiddle = room(T * H, sizeof *d), *dinner = room(T * F, sizeof *d);
    double *dsum1 = room(T * H, sizeof *d), *dcontext = room(T * H, sizeof *d), *dqkv = room(3 * T * H, sizeof *d);
    norm_back(dsum, s, d, r->sum2, l->norm2, T, H, epsilon);
    linear_back(dinner, s, dsum, r->inner, l->outer, T, H, F);
    for (size_t i = 0; i < T * F; i++) dinner[i] *= activate_slope(r->raw[i], e->activation);
    memcpy(dmiddle, dsum, T * H * sizeof *d);
    linear_back(dmiddle, s, dinner, r->middle, l->inner, T, F, H);
    norm_back(dsum1, s, dmiddle, r->sum1, l->norm1, T, H, epsilon);
    linear_back(dcontext, s, dsum1, r->context, l->attention, T, H, H);
    attend_back(dqkv, dcontext, r, e, T);
    memcpy(d, dsum1, T * H * sizeof *d);
    linear_back(d, s, dqkv, r->input, l->qkv, T, 3 * H, H);
    double *taken[] = {dsum, dmiddle, dinner, dsum1, dcontext, dqkv};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) free(taken[i]);
}

static text text_new(const sf_encoder *e, const uint32_t *ids, size_t T)
{
    const size_t H = e->hidden, F = e->inner;
    text t = {ids,        T,          room(T * H, 8), room(T * H, 8),
              room(H, 8), room(H, 8), room(H, 8),     room(e->layers, sizeof *t.layers)};
    for (size_t i = 0; i < e->layers; i++)
        t.layers[i] = (layer_rows){room(T * H, 8), room(3 * T * H, 8), room(e->heads * T * T, 8),
                                   room(T * H, 8), room(T * H, 8),     room(T * H, 8),
                                   room(T * F, 8), room(T * F, 8),     room(T * H, 8)};
    return t;
}

static void text_free(text *t, const sf_encoder *e)
{
    for (size_t i = 0; i < e->layers; i++) {
        const layer_rows *r = &t->layers[i];
        double *owned[] = {r->input, r->qkv, r->shares, r->context, r->sum1, r->middle, r->raw, r->inner, r->sum2};
        for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
    }
    double *owned[] = {t->embedded, t->last, t->pooled, t->raw, t->features};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
    free(t->layers);
}

static void forward(text *t, const sf_encoder *e)
{
    const size_t H = e->hidden, T = t->T;
    for (size_t n = 0; n < T; n++)
        for (size_t i = 0; i < H; i++)
            t->embedded[n * H + i] = (double)e->words[t->ids[n] * H + i] + (double)e->places[n * H + i] +
                                     (e->type ? (double)e->type[i] : 0);
    norm(e->layers ? t->layers[0].input : t->last, t->embedded, e->norm, T, H, (double)e->epsilon);
    for (size_t l = 0; l < e->layers; l++)
        run_layer(l + 1 < e->layers ? t->layers[l + 1].input : t->last, &t->layers[l], e, &e->layer[l], T);
    for (size_t n = 0; n < (e->mean ? T : 1); n++)
        for (size_t i = 0; i < H; i++) t->pooled[i] += t->last[n * H + i] / (double)(e->mean ? T : 1);
    memcpy(t->features, t->pooled, H * sizeof *t->features);
    if (!e->pooler.weight) return;
    linear(t->raw, t->pooled, e->pooler, 1, H, H);
    for (size_t i = 0; i < H; i++) t->features[i] = activate(t->raw[i], e->pooler_activation);
}

static void backward(text *t, const double *dfeatures, const sf_encoder *e, slopes s, size_t first, int embeddings)
{
    const size_t H = e->hidden, T = t->T;
    double *d = room(T * H, sizeof *d), *dpooled = room(H, sizeof *d), *draw = room(H, sizeof *d);
    for (size_t i = 0; i < H; i++) draw[i] = dfeatures[i] * activate_slope(t->raw[i], e->pooler_activation);
    if (e->pooler.weight)
        linear_back(dpooled, s, draw, t->pooled, e->pooler, 1, H, H);
    else
        memcpy(dpooled, dfeatures, H * sizeof *d);
    for (size_t n = 0; n < (e->mean ? T : 1); n++)
        for (size_t i = 0; i < H; i++) d[n * H + i] = dpooled[i] / (double)(e->mean ? T : 1);
    for (size_t l = e->layers; l-- > first;) layer_back(d, &t->layers[l], e, &e->layer[l], T, s);
    if (embeddings) {
        double *dsum = room(T * H, sizeof *d);
        norm_back(dsum, s, d, t->embedded, e->norm, T, H, (double)e->epsilon);
        for (size_t n = 0; n < T; n++) {
            add(slope(s, e->words) + t->ids[n] * H, dsum + n * H, H);
            add(slope(s, e->places) + n * H, dsum + n * H, H);
            if (e->type) add(slope(s, e->type), dsum + n * H, H);
        }
        free(dsum);
    }
    free(d);
    free(dpooled);
    free(draw);
}

static void classify(float *logits, const sf_encoder *e, const uint32_t *ids, const size_t *offsets, size_t count)
{
    double *own = room(e->classes, sizeof *own);
    for (size_t i = 0; i < count; i++) {
        text t = text_new(e, ids + offsets[i], offsets[i + 1] - offsets[i]);
        forward(&t, e);
        linear(own, t.features, e->classifier, 1, e->classes, e->hidden);
        for (size_t c = 0; c < e->classes; c++) logits[i * e->classes + c] = (float)own[c];
        text_free(&t, e);
    }
    free(own);
}

/* --------------------------------------------------------------------- encoders */

/* The same encoder with its parameters elsewhere: `to` instead of `from`. */
static const float *moved(const float *p, const float *from, const float *to) { return p ? to + (p - from) : NULL; }

static sf_encoder_pair moved_pair(sf_encoder_pair p, const float *from, const float *to)
{
    return (sf_encoder_pair){moved(p.weight, from, to), moved(p.bias, from, to)};
}

static sf_encoder moved_encoder(const sf_encoder *e, const float *from, const float *to)
{
    sf_encoder out = *e;
    sf_encoder_layer *layers = room(e->layers, sizeof *layers);
    for (size_t i = 0; i < e->layers; i++) {
        const sf_encoder_layer *l = &e->layer[i];
        layers[i] = (sf_encoder_layer){.qkv = moved_pair(l->qkv, from, to),
                                       .attention = moved_pair(l->attention, from, to),
                                       .norm1 = moved_pair(l->norm1, from, to),
                                       .inner = moved_pair(l->inner, from, to),
                                       .outer = moved_pair(l->outer, from, to),
                                       .norm2 = moved_pair(l->norm2, from, to)};
    }
    out.words = moved(e->words, from, to);
    out.places = moved(e->places, from, to);
    out.type = moved(e->type, from, to);
    out.norm = moved_pair(e->norm, from, to);
    out.layer = layers;
    out.pooler = moved_pair(e->pooler, from, to);
    out.classifier = moved_pair(e->classifier, from, to);
    return out;
}

static safer_status check_shape(const sf_encoder *e, safer_error *error)
{
    const long head = order("MOCK_HEAD", 0);
    if (!sf_encoder_is_bert(e)) return fail(error, SAFER_INPUT, "the mock takes encoders of the form of BERT");
    return !head || e->hidden == (size_t)head * e->heads
               ? SAFER_OK
               : fail(error, SAFER_INPUT, "the mock takes heads of another size");
}

/* ---------------------------------------------------------------------- the table */

static safer_status count_devices(int *count, safer_error *error)
{
    *count = (int)order("MOCK_DEVICES", 1);
    return *count ? SAFER_OK : fail(error, SAFER_SYSTEM, "there is no NVIDIA driver");
}

static safer_status describe(sf_device_info *out, int device, safer_error *error)
{
    *out = (sf_device_info){.name = "Mock",
                            .instructions = "sm_00",
                            .driver = "mock 1.0",
                            .arithmetic = "bf16 cuda sm_00 mock",
                            .memory = 1000000000,
                            .free_memory = 500000000};
    return order("MOCK_OLD", -1) == device ? fail(error, SAFER_SYSTEM, "Mock has compute capability 0.0; 8.0 is needed")
                                           : SAFER_OK;
}

__attribute__((visibility("default"))) size_t mock_answers[16], mock_most_texts;

safer_status mock_call(long *calls, const char *what, safer_error *error)
{
    const long last = order("MOCK_FAIL", 0);
    char message[80];
    snprintf(message, sizeof message, "the GPU failed at %s: it fell off the bus", what);
    if (__atomic_add_fetch(calls, 1, __ATOMIC_SEQ_CST) >= last && last) return fail(error, SAFER_SYSTEM, message);
    usleep((useconds_t)order("MOCK_SLOW", 0));
    return SAFER_OK;
}

struct sf_device_net {
    sf_encoder encoder;
    float *parameters;
    int device;
    size_t rows;
    long calls;
};

void mock_trace(int device)
{
    const char *path = getenv("MOCK_TRACE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) fprintf(file, "%d\n", device);
    if (file) fclose(file);
}

/* A layout of this library's begins with the words, and ends with the classifier's bias or, without classes, with that
 * of the last layer's norm. */
static size_t size_of(const sf_encoder *e)
{
    const float *end = e->classifier.bias ? e->classifier.bias + e->classes
                                          : e->layer[e->layers - 1].norm2.bias + e->hidden;
    return (size_t)(end - e->words);
}

static safer_status net_new(sf_device_net **out, int device, const sf_encoder *encoder, int slots, size_t *rows,
                            safer_error *error)
{
    const size_t fit = (size_t)order("MOCK_ROWS", 1 << 20);
    (void)slots;
    if (check_shape(encoder, error) != SAFER_OK) return SAFER_INPUT;
    const size_t size = size_of(encoder);
    if (fit < encoder->tokens) return fail(error, SAFER_MEMORY, "out of memory");
    if (*rows > fit) *rows = fit;
    sf_device_net *net = room(1, sizeof *net);
    net->device = device;
    mock_trace(device);
    net->rows = *rows;
    net->parameters = room(size, sizeof *net->parameters);
    memcpy(net->parameters, encoder->words, size * sizeof *net->parameters);
    net->encoder = moved_encoder(encoder, encoder->words, net->parameters);
    *out = net;
    return SAFER_OK;
}

static void net_free(sf_device_net *net)
{
    free((void *)net->encoder.layer);
    free(net->parameters);
    free(net);
}

/* Calls of several slots come at once. */
void mock_count(int device, size_t texts)
{
    size_t most = __atomic_load_n(&mock_most_texts, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&mock_answers[device], 1, __ATOMIC_SEQ_CST);
    while (texts > most &&
           !__atomic_compare_exchange_n(&mock_most_texts, &most, texts, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
}

static safer_status begin(sf_device_net *net, const char *what, const size_t *offsets, size_t count, safer_error *error)
{
    if (mock_call(&net->calls, what, error) != SAFER_OK) return SAFER_SYSTEM;
    if (offsets[count] - offsets[0] > net->rows) return fail(error, SAFER_SYSTEM, "the mock was given too many pieces");
    mock_count(net->device, count);
    return SAFER_OK;
}

static safer_status answer(float *logits, sf_device_net *net, int slot, const uint32_t *ids, const size_t *offsets,
                           size_t count, safer_error *error)
{
    (void)slot;
    const safer_status status = begin(net, "computing answers", offsets, count, error);
    if (status == SAFER_OK) classify(logits, &net->encoder, ids, offsets, count);
    return status;
}

/* Every part lies in a text, behind the one before. */
static safer_status means(const sf_device_part *parts, size_t part_count, sf_device_net *net, int slot,
                          const uint32_t *ids, const size_t *offsets, size_t count, safer_error *error)
{
    const sf_encoder *e = &net->encoder;
    const sf_device_part *p = parts, *end = parts + part_count;
    size_t at = 0;
    (void)slot;
    if (begin(net, "computing means", offsets, count, error) != SAFER_OK) return SAFER_SYSTEM;
    for (size_t i = 0; i < count; i++) {
        const size_t first = offsets[i] - offsets[0], last = offsets[i + 1] - offsets[0];
        text t = text_new(e, ids + offsets[i], last - first);
        forward(&t, e);
        for (; p < end && p->begin < last; at = p->begin + p->count, p++) {
            if (p->begin < at || p->begin < first || !p->count || p->count > last - p->begin) abort();
            for (size_t c = 0; c < e->hidden; c++) {
                double sum = 0;
                for (size_t n = p->begin - first; n < p->begin - first + p->count; n++)
                    sum += t.last[n * e->hidden + c];
                p->mean[c] = (float)(sum / (double)p->count);
            }
        }
        text_free(&t, e);
    }
    if (p < end) abort();
    return SAFER_OK;
}

struct sf_device_step {
    sf_encoder encoder;
    sf_device_training training; /* its pointers are not used */
    float *parameters, *means, *variances;
    double *gradient;
    uint8_t *decays;
    long calls;
};

static void step_free(sf_device_step *s)
{
    free((void *)s->encoder.layer);
    free(s->parameters);
    free(s->means);
    free(s->variances);
    free(s->gradient);
    free(s->decays);
    free(s);
}

static safer_status step_new(sf_device_step **out, int device, const sf_device_training *t, safer_error *error)
{
    (void)device;
    if (check_shape(t->encoder, error) != SAFER_OK) return SAFER_INPUT;
    if (t->rows > (size_t)order("MOCK_ROWS", 1 << 20)) return fail(error, SAFER_MEMORY, "out of memory");
    sf_device_step *s = room(1, sizeof *s);
    s->training = *t;
    s->parameters = room(t->size, sizeof *s->parameters);
    s->means = room(t->size, sizeof *s->means);
    s->variances = room(t->size, sizeof *s->variances);
    s->gradient = room(t->size, sizeof *s->gradient);
    s->decays = room(t->size, 1);
    memcpy(s->parameters, t->parameters, t->size * sizeof *s->parameters);
    memcpy(s->decays, t->decays, t->size);
    s->encoder = moved_encoder(t->encoder, t->parameters, s->parameters);
    *out = s;
    return SAFER_OK;
}

static safer_status step_write(sf_device_step *s, const float *parameters, const float *means, const float *variances,
                               safer_error *error)
{
    const size_t trained = s->training.size - s->training.start;
    (void)error;
    memcpy(s->parameters, parameters, s->training.size * sizeof *parameters);
    memcpy(s->means, means, trained * sizeof *means);
    memcpy(s->variances, variances, trained * sizeof *variances);
    return SAFER_OK;
}

static safer_status step_read(float *parameters, float *means, float *variances, sf_device_step *s, safer_error *error)
{
    const size_t trained = s->training.size - s->training.start;
    (void)error;
    memcpy(parameters, s->parameters, s->training.size * sizeof *parameters);
    memcpy(means, s->means, trained * sizeof *means);
    memcpy(variances, s->variances, trained * sizeof *variances);
    return SAFER_OK;
}

/* The loss of one text, and its share of the gradient. */
static double learn(sf_device_step *s, text *t, int label, const float *mask, size_t count)
{
    const sf_encoder *e = &s->encoder;
    const size_t H = e->hidden, C = e->classes;
    const slopes g = {s->gradient, s->parameters};
    double *logits = room(C, sizeof *logits), *dropped = room(H, sizeof *dropped), *d = room(H, sizeof *d), sum = 0;
    forward(t, e);
    for (size_t i = 0; i < H; i++) dropped[i] = t->features[i] * (mask ? (double)mask[i] : 1);
    linear(logits, dropped, e->classifier, 1, C, H);
    for (size_t c = 0; c < C; c++) sum += exp(logits[c]);
    const double loss = log(sum) - logits[label];
    for (size_t c = 0; c < C; c++) logits[c] = (exp(logits[c]) / sum - (c == (size_t)label)) / (double)count;
    linear_back(d, g, logits, dropped, e->classifier, 1, C, H);
    for (size_t i = 0; i < H; i++) d[i] *= mask ? (double)mask[i] : 1;
    backward(t, d, e, g, s->training.layer, s->training.embeddings);
    free(logits);
    free(dropped);
    free(d);
    return loss;
}

static safer_status step_gradient(double *loss, float *gradient, sf_device_step *s, const uint32_t *ids,
                                  const size_t *offsets, size_t count, const int *labels, const float *masks,
                                  safer_error *error)
{
    const sf_device_training *t = &s->training;
    if (mock_call(&s->calls, "training", error) != SAFER_OK) return SAFER_SYSTEM;
    if (count > t->texts || offsets[count] - offsets[0] > t->rows)
        return fail(error, SAFER_SYSTEM, "the mock was given too many texts");
    *loss = 0;
    memset(s->gradient, 0, t->size * sizeof *s->gradient);
    for (size_t i = 0; i < count; i++) {
        text own = text_new(&s->encoder, ids + offsets[i], offsets[i + 1] - offsets[i]);
        *loss += learn(s, &own, labels[i], masks ? masks + i * s->encoder.hidden : NULL, count);
        text_free(&own, &s->encoder);
    }
    for (size_t i = 0; gradient && i < t->size; i++) gradient[i] = (float)s->gradient[i];
    return SAFER_OK;
}

void mock_update(mock_state s, size_t first, size_t last, double clip, const sf_device_adam *a)
{
    double squares = 0;
    for (size_t i = first; i < last; i++) squares += s.gradient[i] * s.gradient[i];
    const double scale = clip > 0 && sqrt(squares) > clip ? clip / sqrt(squares) : 1;
    for (size_t i = first; i < last; i++) {
        const float g = (float)(s.gradient[i] * scale);
        float *mean = &s.means[i - first], *variance = &s.variances[i - first], *p = &s.parameters[i];
        *mean = a->beta1 * *mean + (1 - a->beta1) * g;
        *variance = a->beta2 * *variance + (1 - a->beta2) * g * g;
        const float step = (*mean / a->correct1) / (sqrtf(*variance / a->correct2) + a->epsilon);
        *p -= a->rate * step + (!s.decays || s.decays[i] ? a->decay * *p : 0);
    }
}

static safer_status step_update(sf_device_step *s, const sf_device_adam *a, safer_error *error)
{
    const mock_state state = {s->parameters, s->means, s->variances, s->gradient, s->decays};
    (void)error;
    mock_update(state, s->training.start, s->training.size, s->training.clip, a);
    return SAFER_OK;
}

static safer_status step_answer(float *logits, sf_device_step *s, const uint32_t *ids, const size_t *offsets,
                                size_t count, safer_error *error)
{
    if (count > s->training.texts) return fail(error, SAFER_SYSTEM, "the mock was given too many texts");
    classify(logits, &s->encoder, ids, offsets, count);
    return SAFER_OK;
}

__attribute__((visibility("default"))) const sf_device_table *MOCK_NAME(void);
const sf_device_table *MOCK_NAME(void)
{
    static const sf_device_table table = {.version = MOCK_VERSION,
                                          .size = MOCK_SIZE,
                                          .count = count_devices,
                                          .describe = describe,
                                          .net_new = net_new,
                                          .net_free = net_free,
                                          .answer = answer,
                                          .means = means,
                                          .step_new = step_new,
                                          .step_free = step_free,
                                          .step_write = step_write,
                                          .step_read = step_read,
                                          .step_gradient = step_gradient,
                                          .step_update = step_update,
                                          .step_answer = step_answer,
                                          .convnet_new = mock_convnet_new,
                                          .convnet_free = mock_convnet_free,
                                          .convnet_answer = mock_convnet_answer,
                                          .convnet_step_new = mock_convnet_step_new,
                                          .convnet_step_free = mock_convnet_step_free,
                                          .convnet_step_write = mock_convnet_step_write,
                                          .convnet_step_read = mock_convnet_step_read,
                                          .convnet_step_gradient = mock_convnet_step_gradient,
                                          .convnet_step_update = mock_convnet_step_update,
                                          .convnet_step_answer = mock_convnet_step_answer};
    return &table;
}
